/* CUPTI's records joined with our calls: both layers' intervals, any order, against what was made up. */
#include "test.h"

#include <stdlib.h>

#include "inject/nvidia/cupti_join.h"

enum { THREADS = 5, CALLS = 400 };
struct call { /* what happened */
    uint64_t begin, end, start, stop;
    uint32_t number; /* of CUPTI's call */
    uint8_t work;
    bool failed, captured, lost, driver;
};
static struct call calls[THREADS][CALLS];
static uint32_t emitted[THREADS][CALLS], wrong;

static uint64_t state;
static uint64_t any(uint64_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
}

static uint64_t correlation_of(uint32_t t, uint32_t i)
{
    return 1 + t * CALLS + i;
}

static void emit(void *user, const struct mg_record_work *r)
{
    (void)user;
    uint32_t t = (uint32_t)(r->correlation - 1) / CALLS, i = (uint32_t)(r->correlation - 1) % CALLS;
    const struct call *c = &calls[t][i];
    bool timed = !c->lost;
    emitted[t][i]++;
    wrong += r->work != c->work || (r->source == MG_SOURCE_cupti) != timed;
    wrong += timed && (r->begin != c->start || r->end != c->stop);
}

/* What can come in any order: 0 ours begins and ends, 1 our record, 2 CUPTI's call, 3 its activity. */
static void deliver(struct mg_join *j, uint32_t t, uint32_t i, uint32_t what)
{
    const struct call *c = &calls[t][i];
    struct mg_record_work r = {.correlation = correlation_of(t, i), .work = c->work, .begin = 7, .end = 7};
    uint64_t inside = (c->end - c->begin) / 4;
    struct mg_join_call theirs = {c->driver ? c->begin + inside : c->begin - 3,
                                  c->driver ? c->end - inside : c->end + 3, c->number, 100 + t};
    struct mg_join_activity a = {
        .start_ns = c->start, .stop_ns = c->stop, .seen_ns = c->stop, .number = c->number, .work = c->work};
    if (what == 1 && !c->failed && !c->captured) MG_CHECK(mg_join_work(j, &r));
    if (what == 2) mg_join_call(j, &theirs);
    if (what == 3 && !c->failed && !c->captured && !c->lost) mg_join_activity(j, &a);
}

static void make_up(void)
{
    uint32_t number = 0;
    for (uint32_t t = 0; t < THREADS; t++) {
        uint64_t now = 1000 + any(50);
        for (uint32_t i = 0; i < CALLS; i++) {
            struct call *c = &calls[t][i];
            uint64_t begin = now + 8, end = begin + 8 + any(100);
            *c = (struct call){.begin = begin, .end = end, .number = ++number, .work = (uint8_t)any(3)};
            c->failed = !any(9);
            c->captured = !any(9);
            c->lost = !any(9);
            c->driver = any(2);
            c->start = begin + any(5000); /* a kernel may begin while its call runs, or long after */
            c->stop = c->start + 1 + any(9000);
            now = end + any(20);
        }
    }
}

MG_TEST(cupti_join_finds_each_call)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct mg_join j = {.emit = emit};
        state = seed;
        make_up();
        memset(emitted, 0, sizeof emitted);
        wrong = 0;
        for (uint32_t t = 0; t < THREADS; t++)
            for (uint32_t i = 0; i < CALLS; i += 16) { /* what is under way is 16 calls, and comes shuffled */
                uint32_t order[48];
                for (uint32_t k = 0; k < 16; k++) {
                    const struct call *c = &calls[t][i + k];
                    mg_join_begin(&j, 100 + t, c->begin, correlation_of(t, i + k), c->work);
                    mg_join_end(&j, correlation_of(t, i + k), c->end, c->failed);
                }
                for (uint32_t k = 0; k < 48; k++) order[k] = k;
                for (uint32_t k = 47; k; k--) {
                    uint32_t o = (uint32_t)any(k + 1), was = order[k];
                    order[k] = order[o];
                    order[o] = was;
                }
                for (uint32_t k = 0; k < 48; k++) deliver(&j, t, i + order[k] / 3, 1 + order[k] % 3);
                if (!any(3)) mg_join_sweep(&j, 1000000);
                mg_join_activity(
                    &j, &(struct mg_join_activity){.number = 99999, .start_ns = 1, .stop_ns = 2, .seen_ns = 3});
            }
        mg_join_finish(&j);
        MG_CHECK_EQ(wrong, 0);
        MG_CHECK_EQ(j.odd, 0);
        for (uint32_t t = 0; t < THREADS; t++)
            for (uint32_t i = 0; i < CALLS; i++)
                MG_CHECK_EQ(emitted[t][i], !calls[t][i].failed && !calls[t][i].captured);
    }
}

MG_TEST(cupti_join_forgets)
{
    struct mg_join j = {.emit = emit};
    for (uint32_t i = 0; i < 1000; i++) {
        mg_join_begin(&j, 1, 1000 + 10 * i, 1 + i, MG_WORK_kernel);
        mg_join_end(&j, 1 + i, 1005 + 10 * i, i % 2);
        mg_join_activity(&j, &(struct mg_join_activity){.number = 5000 + i, .seen_ns = 1000});
    }
    mg_join_sweep(&j, 2000);
    MG_CHECK_EQ(j.threads.at[0].at.n, 500); /* the failed ones are gone */
    MG_CHECK_EQ(j.early.n, 1000);
    mg_join_sweep(&j, 20000000000u);
    MG_CHECK_EQ(j.early.n, 0);
    mg_join_sweep(&j, 2000000000000u); /* captured ones, too */
    MG_CHECK_EQ(j.threads.at[0].at.n, 0);
    MG_CHECK_EQ(j.piece_of.n, 0);
    mg_join_finish(&j);
}
