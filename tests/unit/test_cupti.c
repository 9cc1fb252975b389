/* CUPTI's records joined with our calls: any order that can be, against what was made up. */
#include "test.h"

#include <stdlib.h>

#include "inject/nvidia/cupti_join.h"

enum { CALLS = 2000, UNDER_WAY = 16 };
struct call { /* what happened */
    uint64_t begin, start, stop;
    uint8_t work;
    bool failed, captured, lost;
};
static struct call calls[CALLS];
static uint32_t emitted[CALLS], wrong;

static uint64_t state;
static uint64_t any(uint64_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
}

static void emit(void *user, const struct mg_record_work *r)
{
    (void)user;
    uint32_t i = (uint32_t)(r->correlation - 1);
    const struct call *c = &calls[i];
    emitted[i]++;
    wrong += r->work != c->work || (r->source == MG_SOURCE_cupti) == c->lost;
    wrong += !c->lost && (r->begin != c->start || r->end != c->stop);
}

static uint32_t number_of(uint32_t i)
{
    return 7000 + 3 * i;
}

/* In any order: our record; CUPTI's activity, and one of another kind of work under the same number. */
static void deliver(struct mg_join *j, uint32_t i, uint32_t what)
{
    const struct call *c = &calls[i];
    struct mg_record_work r = {.correlation = i + 1, .work = c->work, .begin = 7, .end = 7};
    struct mg_join_activity a = {c->start, c->stop, c->stop, number_of(i), c->work};
    if (c->failed || c->captured) return;
    if (what == 0) MG_CHECK(mg_join_work(j, &r));
    if (what == 1 && !c->lost) mg_join_activity(j, &a);
    a.work = (c->work + 1) % 3;
    a.start_ns += 1;
    if (what == 2) mg_join_activity(j, &a);
}

static void make_up(void)
{
    for (uint32_t i = 0; i < CALLS; i++) {
        struct call *c = &calls[i];
        *c = (struct call){.begin = 1000 + 100 * i, .work = (uint8_t)any(3)};
        c->failed = !any(9);
        c->captured = !any(9);
        c->lost = !any(9);
        c->start = c->begin + any(5000); /* a kernel may begin while its call runs, or long after */
        c->stop = c->start + 1 + any(9000);
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
        for (uint32_t i = 0; i < CALLS; i += UNDER_WAY) {
            uint32_t order[3 * UNDER_WAY];
            for (uint32_t k = i; k < i + UNDER_WAY; k++) {
                struct mg_join_call c = {calls[k].begin, k + 1, number_of(k), calls[k].work, false};
                mg_join_call(&j, &c);
                c.number++; /* the driver's own call inside: the first counts */
                mg_join_call(&j, &c);
                if (calls[k].failed) mg_join_call(&j, &(struct mg_join_call){.correlation = k + 1, .failed = true});
            }
            for (uint32_t k = 0; k < 3 * UNDER_WAY; k++) order[k] = k;
            for (uint32_t k = 3 * UNDER_WAY - 1; k; k--) {
                uint32_t o = (uint32_t)any(k + 1), was = order[k];
                order[k] = order[o];
                order[o] = was;
            }
            for (uint32_t k = 0; k < 3 * UNDER_WAY; k++) deliver(&j, i + order[k] / 3, order[k] % 3);
            if (!any(3)) mg_join_sweep(&j, 1000000);
            mg_join_activity(&j, &(struct mg_join_activity){1, 2, 3, 5, MG_WORK_kernel}); /* of nobody's call */
        }
        mg_join_finish(&j);
        MG_CHECK_EQ(wrong, 0);
        MG_CHECK_EQ(j.odd, 0);
        for (uint32_t i = 0; i < CALLS; i++) MG_CHECK_EQ(emitted[i], !calls[i].failed && !calls[i].captured);
    }
}

MG_TEST(cupti_join_drops_times_that_cannot_be)
{
    struct mg_join j = {.emit = emit};
    const struct mg_join_activity odd[] = {{99, 200, 300, 5, MG_WORK_kernel},   /* before the call */
                                           {150, 140, 300, 5, MG_WORK_kernel},  /* it ends before it begins */
                                           {150, 301, 300, 5, MG_WORK_kernel}}; /* or after it was handed over */
    mg_join_call(&j, &(struct mg_join_call){100, 1, 5, MG_WORK_kernel, false});
    for (uint32_t k = 0; k < MG_COUNT_OF(odd); k++) mg_join_activity(&j, &odd[k]);
    MG_CHECK_EQ(j.odd, MG_COUNT_OF(odd));
    calls[0] = (struct call){.work = MG_WORK_kernel, .lost = true};
    emitted[0] = wrong = 0;
    MG_CHECK(mg_join_work(&j, &(struct mg_record_work){.correlation = 1, .work = MG_WORK_kernel}));
    mg_join_finish(&j);
    MG_CHECK_EQ(emitted[0], 1);
    MG_CHECK_EQ(wrong, 0);
}

MG_TEST(cupti_join_forgets)
{
    struct mg_join j = {.emit = emit};
    for (uint32_t i = 0; i < 1000; i++) {
        mg_join_call(&j, &(struct mg_join_call){1000 + 10 * i, 1 + i, 1 + i, MG_WORK_kernel, false});
        if (i % 2) mg_join_call(&j, &(struct mg_join_call){.correlation = 1 + i, .failed = true});
    }
    mg_join_sweep(&j, 2000);
    MG_CHECK_EQ(j.piece_of.n, 500); /* the failed ones are gone */
    MG_CHECK_EQ(j.correlation_of.n, 500);
    mg_join_sweep(&j, 2000000000000u); /* captured ones, too */
    MG_CHECK_EQ(j.piece_of.n, 0);
    MG_CHECK_EQ(j.correlation_of.n, 0);
    mg_join_finish(&j);
}
