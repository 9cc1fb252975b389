/* Profile objects of TAUcuda from a time line whose times are known: kernels of two streams, asked for by polls, a wait
 * for a stream, one for an event, and one for everything. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "span/sum.h"
#include "span/tau_events.h"
#include "span/writer.h"

static struct mg_span_writer *writer;

#define NONE UINT32_MAX
static uint32_t context; /* of what is put */

static void put_call(const char *name, uint64_t begin, uint64_t end, uint64_t correlation, int result, uint64_t event,
                     uint32_t stream)
{
    uint64_t arguments[2] = {event, 0xdead};
    struct mg_record_call r = {.begin = begin,
                               .end = end,
                               .correlation = correlation,
                               .name = mg_span_name(writer, name),
                               .result = result,
                               .stream = stream,
                               .context = context,
                               .layer = MG_LAYER_driver,
                               .class_ = strstr(name, "Launch") ? MG_CLASS_kernel : MG_CLASS_synchronisation};
    mg_span_put_call(writer, &r, arguments, 2);
}

static void put_kernel(const char *name, uint64_t begin, uint64_t end, uint64_t correlation, uint64_t stream,
                       uint64_t mark)
{
    struct mg_record_work r = {.begin = begin,
                               .end = end,
                               .correlation = correlation,
                               .stream = stream,
                               .context = context,
                               .bytes = UINT64_MAX,
                               .launch = correlation,
                               .replay = UINT64_MAX,
                               .mark = mark,
                               .name = mg_span_name(writer, name),
                               .work = MG_WORK_kernel,
                               .source = begin == end ? MG_SOURCE_none : MG_SOURCE_device};
    mg_span_put_work(writer, &r);
}

static const struct mg_tau_event *find(const struct mg_tau_events *e, const char *name, uint64_t stream)
{
    for (uint32_t i = 0; i < e->at.n; i++)
        if (!strcmp(e->at.at[i].name, name) && e->at.at[i].stream == stream) return &e->at.at[i];
    return NULL;
}

MG_TEST(tau_events_have_their_waits)
{
    char dir[64] = "/tmp/mg-tau-XXXXXX", command[100];
    enum { A = 1, B = 2, EVENT = 0xe0 };
    MG_CHECK(mkdtemp(dir) != NULL);
    struct mg_span_writer_opts o = {.size = sizeof o, .dir = dir, .rank = -1, .memory_bytes = 1 << 20, .wait = true};
    MG_CHECK_EQ(mg_span_writer_open(&o, &writer, NULL), MG_ERR_OK);
    struct mg_record_mark mark = {
        .begin = 10, .end = 5000, .correlation = 99, .name = mg_span_name(writer, "step"), .layer = MG_LAYER_nvtx};
    mg_span_put_mark(writer, &mark);
    put_call("cuLaunchKernel", 100, 110, 1, 0, 0, A);
    put_call("cuLaunchKernel", 120, 130, 2, 0, 0, A);
    put_call("cuLaunchKernel", 140, 150, 3, 0, 0, B);
    put_call("cuEventRecord", 160, 165, 4, 0, EVENT, A);
    put_kernel("one", 200, 300, 1, 1, 99);
    put_kernel("two", 300, 400, 2, 1, 0);
    put_kernel("three", 200, 900, 3, 2, 0);
    put_call("cuStreamQuery", 170, 175, 5, 600, 0, A);           /* one has not begun: asked at 170 */
    put_call("cuEventSynchronize", 350, 420, 6, 0, EVENT, NONE); /* one: delivered at 420; two, too */
    put_call("cuLaunchKernel", 430, 440, 7, 0, 0, A);
    put_kernel("one", 450, 460, 7, 1, 99);
    put_call("cuStreamSynchronize", 470, 480, 8, 0, 0, A); /* it is done: no wait */
    put_call("cuCtxSynchronize", 500, 910, 9, 0, 0, NONE); /* three */
    put_call("cuLaunchKernel", 920, 930, 10, 0, 0, B);
    put_kernel("three", 940, 950, 10, 2, 0); /* nobody asks */
    put_call("cuGraphLaunch", 960, 970, 11, 0, 0, B);
    put_kernel("untimed", 960, 960, 11, 2, 0);
    mg_span_writer_close(writer);

    struct mg_tau_events e;
    MG_CHECK_EQ(mg_tau_events_init(&e, dir, NULL), MG_ERR_OK);
    MG_CHECK_EQ(e.at.n, 4);
    const struct mg_tau_event *one = find(&e, "one", 1), *two = find(&e, "two", 1), *three = find(&e, "three", 2),
                              *untimed = find(&e, "untimed", 2);
    MG_CHECK(one && two && three && untimed);
    if (one && two && three && untimed) {
        MG_CHECK_STR(one->context, "step");
        MG_CHECK_STR(two->context, MG_TAU_TOP);
        MG_CHECK_EQ(one->calls, 2);
        MG_CHECK_EQ(one->delivered, 2);
        MG_CHECK_EQ(one->inclusive_ns, 110);
        MG_CHECK_EQ(one->wait_ns, 420 - 170 + 0);
        MG_CHECK_EQ(one->finalize_ns, 420 - 100 + 480 - 430);
        MG_CHECK_EQ(two->wait_ns, 420 - 170);
        MG_CHECK_EQ(two->finalize_ns, 420 - 120);
        MG_CHECK_EQ(three->calls, 2);
        MG_CHECK_EQ(three->delivered, 1);
        MG_CHECK_EQ(three->inclusive_ns, 710);
        MG_CHECK_EQ(three->wait_ns, 910 - 500);
        MG_CHECK_EQ(three->finalize_ns, 910 - 140);
        MG_CHECK_EQ(untimed->untimed, 1);
        MG_CHECK_EQ(untimed->delivered, 0);
    }
    mg_tau_events_release(&e);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    MG_CHECK(!system(command));
}

/* Two contexts' default streams share the number 0; a stream of another context is asked for by its number alone. */
MG_TEST(tau_events_of_two_contexts)
{
    char dir[64] = "/tmp/mg-tau-XXXXXX", command[100];
    MG_CHECK(mkdtemp(dir) != NULL);
    struct mg_span_writer_opts o = {.size = sizeof o, .dir = dir, .rank = -1, .memory_bytes = 1 << 20, .wait = true};
    MG_CHECK_EQ(mg_span_writer_open(&o, &writer, NULL), MG_ERR_OK);
    context = 0;
    put_call("cuLaunchKernelEx", 100, 110, 1, 0, 0, NONE);
    put_kernel("first", 120, 300, 1, 0, 0);
    context = 1;
    put_call("cuLaunchKernelEx", 130, 140, 2, 0, 0, NONE);
    put_kernel("second", 150, 400, 2, 0, 0);
    put_call("cuLaunchKernelEx", 160, 165, 3, 0, 0, NONE);
    put_kernel("side", 170, 800, 3, 5, 0);
    put_call("cuMemcpyDtoH_v2", 200, 410, 4, 0, 0, 0);        /* second; neither first nor side */
    put_call("cuStreamSynchronize", 420, 430, 5, 0, 0, NONE); /* a stream without work: nothing */
    context = 0;
    put_call("cuCtxSynchronize", 500, 510, 6, 0, 0, NONE); /* first, which is done */
    put_call("cuStreamSynchronize", 600, 810, 7, 0, 0, 5); /* side, from the other context */
    mg_span_writer_close(writer);

    struct mg_tau_events e;
    MG_CHECK_EQ(mg_tau_events_init(&e, dir, NULL), MG_ERR_OK);
    const struct mg_tau_event *first = find(&e, "first", 0), *second = find(&e, "second", 0),
                              *side = find(&e, "side", 5);
    MG_CHECK(e.at.n == 3 && first && second && side);
    if (first && second && side) {
        MG_CHECK_EQ(first->wait_ns, 0);
        MG_CHECK_EQ(first->finalize_ns, 510 - 100);
        MG_CHECK_EQ(second->wait_ns, 410 - 200);
        MG_CHECK_EQ(second->finalize_ns, 410 - 130);
        MG_CHECK_EQ(side->wait_ns, 810 - 600);
        MG_CHECK_EQ(side->finalize_ns, 810 - 160);
    }
    mg_tau_events_release(&e);
    context = 0;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    MG_CHECK(!system(command));
}

/* More launches are under way than any table of fixed size holds, each in ranges of its own inside one of all, and the
 * program polls far more often: every launch still has its call, its ranges and the first poll. */
MG_TEST(tau_events_of_many_launches_under_way)
{
    enum { N = 150000, DEPTH = 20, LAST = 400000000 };
    char dir[64] = "/tmp/mg-tau-XXXXXX", command[100];
    MG_CHECK(mkdtemp(dir) != NULL);
    struct mg_span_writer_opts o = {.size = sizeof o, .dir = dir, .rank = -1, .memory_bytes = 64 << 20, .wait = true};
    MG_CHECK_EQ(mg_span_writer_open(&o, &writer, NULL), MG_ERR_OK);
    uint64_t number = 1;
    for (uint64_t i = 1; i <= DEPTH; i++) {
        char name[16];
        snprintf(name, sizeof name, "depth %d", (int)i);
        struct mg_record_mark mark = {
            .begin = i, .end = LAST, .name = mg_span_name(writer, name), .outer = number - 1, .layer = MG_LAYER_nvtx};
        mark.correlation = number++;
        mg_span_put_mark(writer, &mark);
    }
    for (uint64_t i = 0; i < N; i++) {
        struct mg_record_mark mark = {.begin = 100 + 10 * i,
                                      .end = 105 + 10 * i,
                                      .correlation = number + 2 * i,
                                      .outer = DEPTH,
                                      .name = mg_span_name(writer, "step"),
                                      .layer = MG_LAYER_nvtx};
        mg_span_put_mark(writer, &mark);
        put_call("cuLaunchKernel", 101 + 10 * i, 102 + 10 * i, number + 2 * i + 1, 0, 0, 1);
    }
    const uint64_t POLL = 200 + 10 * N;
    for (uint64_t i = 0; i < 10000; i++) put_call("cuStreamQuery", POLL + i, POLL + i + 1, 0, 600, 0, 1);
    uint64_t begin = POLL + 20000, finalize = 0, wait = 0;
    for (uint64_t i = 0; i < N; i++) {
        put_kernel("late", begin + 2 * i, begin + 2 * i + 2, number + 2 * i + 1, 1, number + 2 * i);
        finalize += LAST - (101 + 10 * i);
        wait += LAST - POLL;
    }
    put_call("cuStreamSynchronize", begin + 2 * N + 10, LAST, 0, 0, 0, 1);
    mg_span_writer_close(writer);

    struct mg_tau_events e;
    MG_CHECK_EQ(mg_tau_events_init(&e, dir, NULL), MG_ERR_OK);
    MG_CHECK_EQ(e.at.n, 1);
    if (e.at.n == 1) {
        MG_CHECK_STR(e.at.at[0].context, "step");
        MG_CHECK_EQ(e.at.at[0].calls, N);
        MG_CHECK_EQ(e.at.at[0].delivered, N);
        MG_CHECK_EQ(e.at.at[0].finalize_ns, finalize);
        MG_CHECK_EQ(e.at.at[0].wait_ns, wait);
    }
    mg_tau_events_release(&e);
    struct mg_sum s;
    MG_CHECK_EQ(mg_sum_init(&s, dir, NULL), MG_ERR_OK);
    MG_CHECK_EQ(s.latency.n, N);
    MG_CHECK_EQ(s.ranges.n, DEPTH + 1);
    for (uint32_t i = 0; i < s.ranges.n; i++) {
        MG_CHECK_EQ(s.ranges.at[i].launches, N);
        MG_CHECK_EQ(s.ranges.at[i].own_launches, strcmp(s.ranges.at[i].name, "step") ? 0 : N);
        MG_CHECK_EQ(s.ranges.at[i].device_ns, 2 * N);
    }
    mg_sum_release(&s);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    MG_CHECK(!system(command));
}
