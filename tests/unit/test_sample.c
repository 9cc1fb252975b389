/* Estimates from some of a kernel's launches: figures computed by hand. */
#include "store/sample.h"

#include <math.h>

#include "test.h"

enum { MOST = 8 };
static struct mg_plaunch launches[MOST];
static uint64_t counts[MOST];
static struct mg_pblock block = {.n_insts = 5};
static struct mg_pkernel kernel;
static struct mg_recording profile;

/* One launch: CTAs of 32 threads; entries < 0: it ran native. */
static void launch(uint32_t ctas, long long entries)
{
    uint64_t i = profile.n_launches++;
    counts[i] = (uint64_t)entries;
    launches[i] = (struct mg_plaunch){.id = i,
                                      .grid = {ctas, 1, 1},
                                      .block = {32, 1, 1},
                                      .complete = true,
                                      .replays = 1,
                                      .ran = entries < 0 ? MG_RAN_NATIVE : MG_RAN_INSTRUMENTED};
    if (entries >= 0) {
        launches[i].threads = &counts[i];
        launches[i].n_counts = 1;
    }
    kernel.launches++;
    kernel.instrumented += entries >= 0;
}
static void begin(void)
{
    kernel = (struct mg_pkernel){.blocks = &block, .n_blocks = 1};
    profile = (struct mg_recording){.kernels = &kernel, .n_kernels = 1, .launches = launches};
}
static bool near(double a, double b)
{
    return fabs(a - b) < 0.01;
}

MG_TEST(sample_of_one_geometry)
{
    struct mg_sample s;
    begin();
    launch(2, 10), launch(2, -1), launch(2, 14), launch(2, -1), launch(2, 12), launch(2, -1);
    MG_CHECK(mg_sample_of(&profile, &kernel, &s));
    MG_CHECK_EQ(s.launches, 6);
    MG_CHECK_EQ(s.counted, 3);
    MG_CHECK_EQ(s.method, MG_SAMPLE_GEOMETRY);
    MG_CHECK(near(s.blocks[0].value, 72) && near(s.blocks[0].bound, 4.303 * sqrt(24)));
    MG_CHECK(near(s.insts.value, 360) && near(s.insts.bound, 5 * 4.303 * sqrt(24)));
    mg_sample_release(&s);
}

MG_TEST(sample_of_two_geometries)
{
    struct mg_sample s;
    begin(); /* the second is known in full: nothing is uncertain about it */
    launch(2, 10), launch(2, 14), launch(2, 12), launch(2, -1), launch(2, -1), launch(2, -1), launch(9, 1000);
    MG_CHECK(mg_sample_of(&profile, &kernel, &s));
    MG_CHECK(near(s.blocks[0].value, 1072) && near(s.blocks[0].bound, 4.303 * sqrt(24)));
    mg_sample_release(&s);
}

MG_TEST(sample_by_threads)
{
    struct mg_sample s;
    begin(); /* no geometry twice: 2 entries a thread, more or less */
    launch(2, 130), launch(4, 254), launch(8, -1);
    MG_CHECK(mg_sample_of(&profile, &kernel, &s));
    MG_CHECK_EQ(s.method, MG_SAMPLE_THREADS);
    MG_CHECK(near(s.blocks[0].value, 896) && near(s.blocks[0].bound, 12.706 * sqrt(12)));
    mg_sample_release(&s);
}

MG_TEST(sample_without_bound)
{
    struct mg_sample s;
    begin();
    launch(2, 130), launch(2, -1);
    MG_CHECK(mg_sample_of(&profile, &kernel, &s));
    MG_CHECK(near(s.insts.value, 1300) && s.insts.bound < 0);
    mg_sample_release(&s);
    begin(); /* all of them, or none: nothing to estimate */
    launch(2, 130), launch(2, 131);
    MG_CHECK(!mg_sample_of(&profile, &kernel, &s));
    begin();
    launch(2, -1);
    MG_CHECK(!mg_sample_of(&profile, &kernel, &s));
}

static void timed(uint32_t ctas, long long entries, uint64_t ns)
{
    launch(ctas, entries);
    launches[profile.n_launches - 1].timed = ns != 0;
    launches[profile.n_launches - 1].time_ns = ns;
}

MG_TEST(sample_times_of_either_code)
{
    struct mg_both_times t;
    begin(); /* of 2 CTAs: native 10, 20, counted 18, 18; of 3: native 7, counted 9; of 4 there is no native time */
    timed(2, -1, 20), timed(3, 1, 9), timed(2, 1, 18), timed(2, -1, 10), timed(4, 1, 50), timed(2, 1, 18),
        timed(3, -1, 7), timed(2, -1, 0);
    MG_CHECK(mg_sample_times(&profile, &kernel, &t));
    MG_CHECK_EQ(t.launches, 7);
    MG_CHECK(near(t.native_ns, 5 * 15 + 2 * 7) && near(t.instrumented_ns, 5 * 18 + 2 * 9));
    begin();
    timed(2, 1, 20), timed(3, -1, 9);
    MG_CHECK(!mg_sample_times(&profile, &kernel, &t));
}
