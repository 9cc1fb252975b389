/* The text of --range. */
#include "test.h"

#include "inject/range.h"

static bool parses(const char *spec, struct mg_range *r)
{
    struct mg_diag d = MG_DIAG_INIT;
    bool ok = !mg_range_parse(spec, r, &d);
    mg_diag_release(&d);
    return ok;
}

MG_TEST(range_parses)
{
    struct mg_range r;
    MG_CHECK(parses(NULL, &r) && r.kind == MG_RANGE_ALL);
    MG_CHECK(parses("profiler", &r) && r.kind == MG_RANGE_PROFILER);
    MG_CHECK(parses("nvtx:step*", &r) && r.kind == MG_RANGE_NVTX && !strcmp(r.glob, "step*"));
    MG_CHECK(parses("delay=1.5,duration=2", &r) && r.kind == MG_RANGE_TIME && r.delay_ns == 1500000000 &&
             r.duration_ns == 2000000000);
    MG_CHECK(parses("duration=0.25,delay=0", &r) && r.delay_ns == 0 && r.duration_ns == 250000000);
    MG_CHECK(parses("delay=3", &r) && r.duration_ns == 0);
}

MG_TEST(range_refuses)
{
    struct mg_range r;
    static const char *const bad[] = {"",           "profile",       "nvtx",
                                      "nvtx:",      "delay",         "delay=",
                                      "delay=x",    "delay=-1",      "delay=1,delay=2",
                                      "duration=0", "delay=1,",      "delay=1;duration=2",
                                      "delay=nan",  "duration=1e99", "duration= 1"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) MG_CHECK(!parses(bad[i], &r));
    char longer[400] = "nvtx:";
    memset(longer + 5, 'a', 300);
    MG_CHECK(!parses(longer, &r));
}
