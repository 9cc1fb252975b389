/* Exclusive times of nested and overlapping blocks against a count of single time units. */
#include <string.h>

#include "tau/nest.h"
#include "test.h"

enum { MOST = 40 };
static double times[2 * MOST + 2]; /* by position */
static double between(void *user, void *from, void *to)
{
    (void)user;
    return times[(uintptr_t)to] - times[(uintptr_t)from];
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* Random begins and ends; each block's exclusive time is counted unit by unit. */
static void random_blocks(uint64_t seed)
{
    struct tau_nested blocks[MOST] = {0}, *live[MOST];
    uint32_t n_live = 0, n = 0;
    uint64_t position = 0, time = 0;
    uint32_t n_ended = 0;
    while (n < MOST || n_live) {
        time += draw(&seed, 4);
        times[++position] = (double)time;
        bool begin = n < MOST && (!n_live || draw(&seed, 100) < 50);
        if (begin) {
            blocks[n] = (struct tau_nested){.begin = position, .begin_event = (void *)(uintptr_t)position};
            live[n_live++] = &blocks[n++];
            continue;
        }
        uint32_t at = draw(&seed, 3) ? n_live - 1 : (uint32_t)draw(&seed, n_live);
        live[at]->end = position;
        live[at]->end_event = (void *)(uintptr_t)position;
        n_ended++;
        tau_nest_close(live, n_live, at, between, NULL);
        tau_nested_release(live[at]);
        memmove(live + at, live + at + 1, (--n_live - at) * sizeof *live);
    }
    MG_CHECK_EQ(n_ended, MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        struct tau_nested *b = &blocks[i];
        double exclusive = 0;
        for (double t = times[b->begin]; t < times[b->end]; t++) {
            bool covered = false;
            for (uint32_t k = 0; k < MOST; k++)
                if (blocks[k].begin > b->begin && blocks[k].end < b->end && times[blocks[k].begin] <= t &&
                    t < times[blocks[k].end])
                    covered = true;
            exclusive += !covered;
        }
        MG_CHECK(b->inclusive_us == times[b->end] - times[b->begin]);
        if (b->exclusive_us != exclusive)
            printf("seed %llu block %u: %g, should be %g\n", (unsigned long long)seed, i, b->exclusive_us, exclusive);
        MG_CHECK(b->exclusive_us == exclusive);
    }
}

MG_TEST(tau_exclusive_random)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) random_blocks(seed);
}

/* A block with a million children keeps one entry. */
MG_TEST(tau_many_children)
{
    struct tau_nested outer = {.begin = 1, .begin_event = (void *)1}, inner = {.begin = 2, .begin_event = (void *)1};
    struct tau_nested *live[3] = {&outer, &inner};
    times[1] = 0;
    for (uint64_t i = 0; i < 1000000; i++) {
        struct tau_nested child = {
            .begin = 3 + 2 * i, .end = 4 + 2 * i, .begin_event = (void *)2, .end_event = (void *)3};
        times[2] = (double)(10 * i), times[3] = (double)(10 * i + 4);
        live[2] = &child;
        tau_nest_close(live, 3, 2, between, NULL);
        tau_nested_release(&child);
    }
    MG_CHECK_EQ(inner.inside.n, 1);
    MG_CHECK_EQ(inner.children, 1000000);
    times[4] = 1e7;
    inner.end = 3000000, inner.end_event = (void *)4;
    tau_nest_close(live, 2, 1, between, NULL);
    MG_CHECK(inner.exclusive_us == 6e6);
    tau_nested_release(&inner);
    tau_nested_release(&outer);
}
