/* The time line's records on their way through a file, and the tables of calls. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "abi/calls.h"
#include "abi/cu.h"
#include "base/io.h"
#include "span/span.h"
#include "span/sum.h"
#include "span/writer.h"
#include "tool/timeline.h"

/* ---- tables ---- */

MG_TEST(span_classes_are_the_tools)
{
    for (int c = 0; c < MG_CLASS_COUNT; c++) MG_CHECK_STR(mg_call_class_name(c), mg_timeline_classes[c]);
    MG_CHECK(!mg_timeline_classes[MG_CLASS_COUNT]);
    MG_CHECK_EQ(mg_call_class_find("copy", 4), MG_CLASS_copy);
    MG_CHECK_EQ(mg_call_class_find("cop", 3), -1);
}

MG_TEST(span_calls_are_in_order)
{
    int gtpin = 0;
    const char *seen[64] = {0};
    for (uint32_t i = 0; i < mg_cu_entry_count; i++) {
        const struct mg_cu_call *c = mg_call_of_entry(i);
        MG_CHECK_STR(c->base, mg_cu_entries[i].base);
        MG_CHECK(mg_call_find(c->base) == c);
        MG_CHECK(strspn(mg_call_arguments(i), "pszuifl?") == strlen(mg_call_arguments(i)));
        int k = 0;
        while (*c->opencl && k < gtpin && strcmp(seen[k], c->opencl)) k++;
        if (*c->opencl && k == gtpin) seen[gtpin++] = c->opencl;
    }
    MG_CHECK_EQ(gtpin, 7); /* GT-Pin's synchronisation calls (section III-A) */
    MG_CHECK(!mg_call_find("cuNothing"));
    MG_CHECK_EQ(mg_call_find("cuStreamSynchronize")->waits, MG_WAITS_stream);
    MG_CHECK_STR(mg_call_arguments((uint32_t)mg_cu_entry_find("cuMemcpyHtoD_v2")), "ppz");
    MG_CHECK_STR(mg_call_arguments((uint32_t)mg_cu_entry_find("cuLaunchKernel")), "puuuuuuuppp");
}

/* ---- through a file ---- */

static void remove_all(const char *dir)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    MG_CHECK(!system(command));
}

static struct mg_span_writer *open_in(char *dir)
{
    strcpy(dir, "/tmp/mg-span-XXXXXX");
    MG_CHECK(mkdtemp(dir) != NULL);
    struct mg_span_writer *w = NULL;
    struct mg_span_writer_opts o = {.size = sizeof o, .dir = dir, .rank = 3, .memory_bytes = 1 << 20, .wait = true};
    MG_CHECK_EQ(mg_span_writer_open(&o, &w, NULL), MG_ERR_OK);
    return w;
}

MG_TEST(span_comes_back_as_it_was)
{
    char dir[64];
    struct mg_span_writer *w = open_in(dir);
    uint64_t t = mg_now_ns(), arguments[3] = {0x7000, 0x8000, 4096};
    struct mg_record_call call = {.begin = t + 10,
                                  .end = t + 30,
                                  .correlation = 7,
                                  .outer = 5,
                                  .result = -3,
                                  .name = mg_span_name(w, "cuMemcpyHtoD_v2"),
                                  .layer = MG_LAYER_driver,
                                  .class_ = MG_CLASS_copy};
    struct mg_record_work work = {.begin = t + 15,
                                  .end = t + 25,
                                  .correlation = 7,
                                  .stream = 2,
                                  .context = 1,
                                  .bytes = 4096,
                                  .launch = UINT64_MAX,
                                  .replay = UINT64_MAX,
                                  .device = 1,
                                  .uncertainty_ns = 500,
                                  .work = MG_WORK_copy,
                                  .source = MG_SOURCE_events,
                                  .direction = MG_DIR_HtoD};
    struct mg_record_work kernel = {.begin = t + 5,
                                    .end = t + 6,
                                    .bytes = UINT64_MAX,
                                    .launch = 12,
                                    .replay = 4,
                                    .name = mg_span_name(w, "saxpy"),
                                    .work = MG_WORK_kernel,
                                    .source = MG_SOURCE_device};
    struct mg_record_mark mark = {.begin = t,
                                  .end = t + 100,
                                  .payload = 9,
                                  .correlation = 1,
                                  .name = mg_span_name(w, "step"),
                                  .domain = mg_span_name(w, "app"),
                                  .layer = MG_LAYER_nvtx,
                                  .kind = MG_MARK_PUSHED};
    struct mg_record_thread thread = {.time = t, .thread = (uint32_t)gettid(), .name = mg_span_name(w, "worker")};
    mg_span_put_call(w, &call, arguments, 3);
    mg_span_put_work(w, &work);
    mg_span_put_work(w, &kernel);
    mg_span_put_mark(w, &mark);
    mg_span_put_thread(w, &thread);
    MG_CHECK_EQ(mg_span_writer_lost(w), 0);
    mg_span_writer_close(w);

    struct mg_spans *s = NULL;
    struct mg_span_query q = {.size = sizeof q};
    MG_CHECK_EQ(mg_spans_open(dir, &q, &s, NULL), MG_ERR_OK);
    MG_CHECK_EQ(mg_spans_n_processes(s), 1);
    MG_CHECK_EQ(mg_spans_process(s, 0).rank, 3);
    const struct mg_span *p = mg_spans_next(s);
    MG_CHECK(p && p->kind == MG_SPAN_MARK && p->begin_ns == t && p->end_ns == t + 100 && p->layer == MG_LAYER_nvtx);
    MG_CHECK(p && !strcmp(p->name, "step") && !strcmp(p->domain, "app") && p->payload == 9);
    p = mg_spans_next(s);
    MG_CHECK(p && p->kind == MG_SPAN_KERNEL && !strcmp(p->name, "saxpy") && p->launch == 12 && p->replay == 4);
    MG_CHECK(p && p->bytes == MG_SPAN_NONE && p->source == MG_SOURCE_device);
    p = mg_spans_next(s);
    MG_CHECK(p && p->kind == MG_SPAN_CALL && !strcmp(p->name, "cuMemcpyHtoD_v2") && p->result == -3 && p->outer == 5);
    MG_CHECK(p && p->class_ == MG_CLASS_copy && p->n_arguments == 3 &&
             !memcmp(p->arguments, arguments, sizeof arguments));
    MG_CHECK(p && p->thread == (uint32_t)gettid() && p->process == (uint32_t)getpid() && p->rank == 3);
    p = mg_spans_next(s);
    MG_CHECK(p && p->kind == MG_SPAN_COPY && !strcmp(p->name, "HtoD") && p->bytes == 4096 && p->stream == 2 &&
             p->device == 1);
    MG_CHECK(p && p->context == 1 && p->correlation == 7 && p->uncertainty_ns == 500 && p->launch == MG_SPAN_NONE);
    MG_CHECK(!mg_spans_next(s));
    MG_CHECK_STR(mg_spans_thread_name(s, (uint32_t)getpid(), (uint32_t)gettid()), "worker");
    mg_spans_close(s);

    q.kinds = 1u << MG_SPAN_CALL | 1u << MG_SPAN_COPY; /* and a time that the call alone meets */
    q.from_ns = t + 26, q.to_ns = t + 40;
    MG_CHECK_EQ(mg_spans_open(dir, &q, &s, NULL), MG_ERR_OK);
    p = mg_spans_next(s);
    MG_CHECK(p && p->kind == MG_SPAN_CALL && !mg_spans_next(s));
    mg_spans_close(s);
    remove_all(dir);
}

/* Many calls whose begins are not in the order of their records: all come, by time. */
MG_TEST(span_many_come_in_order)
{
    enum { N = 200000 };
    char dir[64];
    struct mg_span_writer *w = open_in(dir);
    uint32_t name = mg_span_name(w, "cuCtxGetCurrent");
    uint64_t t = mg_now_ns(), sum = 0, last = 0, n = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t at = t + (i ^ 5) * 100;
        mg_span_put_call(
            w, &(struct mg_record_call){.begin = at, .end = at + i % 97, .correlation = i + 1, .name = name}, NULL, 0);
    }
    mg_span_writer_close(w);
    struct mg_spans *s = NULL;
    struct mg_span_query q = {.size = sizeof q};
    MG_CHECK_EQ(mg_spans_open(dir, &q, &s, NULL), MG_ERR_OK);
    bool ordered = true;
    for (const struct mg_span *p; (p = mg_spans_next(s)); n++) {
        ordered &= p->begin_ns >= last;
        last = p->begin_ns;
        sum += p->correlation;
    }
    MG_CHECK(ordered);
    MG_CHECK_EQ(n, N);
    MG_CHECK_EQ(sum, (uint64_t)N * (N + 1) / 2);
    mg_spans_close(s);
    remove_all(dir);
}

/* ---- stacks ---- */

static void put_module(struct mg_span_writer *w, uint64_t t, const char *path)
{
    struct mg_record_module m = {.time = t, .begin = 0x10000, .end = 0x20000, .bias = 0x8000};
    m.name = mg_span_name(w, path);
    MG_CHECK(mg_span_put_module(w, &m));
}

static void put_stacked_call(struct mg_span_writer *w, uint64_t t, uint64_t id, uint64_t address)
{
    struct mg_record_stack k = {.time = t, .id = id};
    struct mg_record_call c = {
        .begin = t + 1, .end = t + 2, .correlation = id, .stack = id, .name = mg_span_name(w, "cuLaunchKernel")};
    if (address) MG_CHECK(mg_span_put_stack(w, &k, &address, 1));
    mg_span_put_call(w, &c, NULL, 0);
}

static void check_frame(struct mg_spans *s, const char *path, uint64_t address)
{
    const struct mg_span *p = mg_spans_next(s);
    uint32_t n = 0;
    MG_CHECK(p && p->stack != UINT32_MAX);
    const struct mg_frame *f = mg_stacks_frames(mg_spans_stacks(s), p->stack, &n);
    MG_CHECK(n == 1 && f->address == address && !f->symbol->function);
    MG_CHECK(path ? f->path && !strcmp(f->path, path) : !f->path);
}

MG_TEST(span_stacks_know_what_lay_there_then)
{
    char dir[64];
    struct mg_span_writer *w = open_in(dir);
    uint64_t t = mg_now_ns();
    put_module(w, t, "/nowhere/a.so");
    put_stacked_call(w, t + 10, 1, 0x12345);
    put_stacked_call(w, t + 20, 2, 0x20000); /* behind its end */
    put_module(w, t + 30, "");               /* it is gone */
    put_stacked_call(w, t + 40, 3, 0x12345);
    put_module(w, t + 50, "/nowhere/b.so");
    put_stacked_call(w, t + 60, 4, 0x12345);
    put_stacked_call(w, t + 70, 1, 0); /* known from before */
    put_stacked_call(w, t + 80, 9, 0); /* its record is lost */
    mg_span_writer_close(w);
    struct mg_spans *s = NULL;
    struct mg_span_query q = {.size = sizeof q};
    MG_CHECK_EQ(mg_spans_open(dir, &q, &s, NULL), MG_ERR_OK);
    check_frame(s, "/nowhere/a.so", 0x12345 - 0x8000);
    check_frame(s, NULL, 0x20000);
    check_frame(s, NULL, 0x12345);
    check_frame(s, "/nowhere/b.so", 0x12345 - 0x8000);
    check_frame(s, "/nowhere/a.so", 0x12345 - 0x8000);
    const struct mg_span *p = mg_spans_next(s);
    MG_CHECK(p && p->stack == UINT32_MAX && !mg_spans_next(s));
    mg_spans_close(s);
    remove_all(dir);
}

/* What a kernel began and ended: only if asked for, as it was; the share of its kernel counts no time twice. */
MG_TEST(span_inside_kernels)
{
    char dir[64];
    struct mg_span_writer *w = open_in(dir);
    uint64_t t = mg_now_ns();
    struct mg_record_work kernel = {.begin = t,
                                    .end = t + 100,
                                    .bytes = UINT64_MAX,
                                    .launch = 2,
                                    .replay = UINT64_MAX,
                                    .name = mg_span_name(w, "k"),
                                    .device = 1,
                                    .source = MG_SOURCE_device};
    struct mg_record_inside r = {.begin = t + 10,
                                 .end = t + 40,
                                 .launch = 2,
                                 .replay = UINT64_MAX,
                                 .cta = 1ull << 33,
                                 .correlation = 9,
                                 .context = 3,
                                 .stream = 4,
                                 .name = mg_span_name(w, "load"),
                                 .kernel = kernel.name,
                                 .device = 1,
                                 .sm = 131,
                                 .lanes = 0xf0f0,
                                 .uncertainty_ns = 33,
                                 .warp = 31,
                                 .depth = 2,
                                 .source = MG_SOURCE_twin};
    mg_span_put_work(w, &kernel);
    kernel.inside = 1;
    mg_span_put_work(w, &kernel);
    kernel.begin = t + 80, kernel.end = t + 140; /* 140 in all, of them 40 without events */
    mg_span_put_work(w, &kernel);
    kernel.begin = t + 50, kernel.inside = 0, kernel.end = t + 180;
    mg_span_put_work(w, &kernel);
    mg_span_put_inside(w, &r);
    r.begin = t + 20, r.end = t + 60, r.outside_ns = 7;
    mg_span_put_inside(w, &r);
    r.begin = t + 90, r.end = t + 95, r.outside_ns = UINT64_MAX, r.uncertainty_ns = UINT32_MAX;
    mg_span_put_inside(w, &r);
    mg_span_writer_close(w);

    struct mg_spans *s = NULL;
    struct mg_span_query q = {.size = sizeof q};
    MG_CHECK_EQ(mg_spans_open(dir, &q, &s, NULL), MG_ERR_OK);
    for (int i = 0; i < 4; i++) MG_CHECK(mg_spans_next(s)); /* the kernels alone */
    MG_CHECK(!mg_spans_next(s));
    mg_spans_close(s);
    q.kinds = 1u << MG_SPAN_INSIDE;
    MG_CHECK_EQ(mg_spans_open(dir, &q, &s, NULL), MG_ERR_OK);
    const struct mg_span *p = mg_spans_next(s);
    MG_CHECK(p && p->kind == MG_SPAN_INSIDE && p->begin_ns == t + 10 && p->end_ns == t + 40 &&
             !strcmp(p->name, "load") && !strcmp(p->kernel, "k"));
    MG_CHECK(p && p->launch == 2 && p->replay == MG_SPAN_NONE && p->cta == 1ull << 33 && p->warp == 31 &&
             p->sm == 131 && p->lanes == 0xf0f0 && p->depth == 2);
    MG_CHECK(p && p->device == 1 && p->context == 3 && p->stream == 4 && p->correlation == 9 &&
             p->uncertainty_ns == 33 && p->source == MG_SOURCE_twin && !p->payload && !p->thread);
    p = mg_spans_next(s);
    MG_CHECK(p && p->payload == 7);
    p = mg_spans_next(s);
    MG_CHECK(p && p->payload == MG_SPAN_NONE && p->uncertainty_ns == MG_SPAN_NONE && !mg_spans_next(s));
    mg_spans_close(s);

    struct mg_sum sum;
    MG_CHECK_EQ(mg_sum_init(&sum, dir, NULL), MG_ERR_OK);
    MG_CHECK_EQ(sum.inside.n, 1);
    const struct mg_sum_inside *x = sum.inside.at;
    MG_CHECK(x->count == 3 && x->time_ns == 30 + 40 + 5 && x->longest_ns == 40 && x->covered_ns == 50 + 5 &&
             x->kernel_ns == 140 && x->kernel_covered_ns == 50 && x->compared == 2 && x->outside == 1 &&
             x->uncertainty_ns == MG_SPAN_NONE); /* of one it is not known */
    MG_CHECK(sum.events == 4 && sum.launches == 4);
    mg_sum_release(&sum);
    remove_all(dir);
}
