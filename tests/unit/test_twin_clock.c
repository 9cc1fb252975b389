/* The distance of a device's clock from the host's, from launches of a simulated device: with drift, ticks and delays.
 */
#include "test.h"

#include "inject/twin_clock.h"

#define HOUR 3600000000000ull

static uint64_t state = 1;
static uint64_t any(uint64_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
}

/* What the device reads at a host time. */
static uint64_t device_at(uint64_t host_ns, int64_t apart, double drift, uint64_t tick)
{
    uint64_t ns = (uint64_t)((int64_t)host_ns + apart + (int64_t)((double)host_ns * drift));
    return ns - ns % tick;
}

static void check_run(int64_t apart, double drift, uint64_t tick, uint64_t every_ns)
{
    struct mg_twin_clock c = {0};
    uint64_t worst = 0, outside = 0, n = 0;
    for (uint64_t host = HOUR; host < 2 * HOUR; host += every_ns, n++) {
        uint64_t begin = host + 3000 + any(4000), end = begin + 1 + any(200000), seen = end + 2000 + any(50000),
                 uncertainty;
        uint64_t b = device_at(begin, apart, drift, tick), e = device_at(end, apart, drift, tick);
        mg_twin_clock_add(&c, b, e, host, seen);
        int64_t offset = mg_twin_clock_offset(&c, e, &uncertainty);
        int64_t error = (int64_t)(b + (uint64_t)offset - begin);
        uint64_t off = (uint64_t)(error < 0 ? -error : error);
        outside += off > uncertainty;
        if (n > 20) worst = MG_MAX(worst, off);
    }
    MG_CHECK_EQ(outside, 0);
    MG_CHECK(worst <
             20000 + tick + every_ns / 5000); /* half of the least delays, and what drift adds between good launches */
}

MG_TEST(twin_clock_stays_within_its_uncertainty)
{
    check_run(0, 0, 1, 10000000);
    check_run(1700000000000000000, 0, 32, 10000000);
    check_run(-1000000, 100e-6, 1024, 10000000);
    check_run(1700000000000000000, -100e-6, 1024, 1000000000);
}

MG_TEST(twin_clock_says_what_it_does_not_know)
{
    struct mg_twin_clock c = {0};
    uint64_t uncertainty;
    mg_twin_clock_add(&c, 1000, 2000, 0, 5000); /* a replay: nobody knows when it was called */
    MG_CHECK_EQ(mg_twin_clock_offset(&c, 2000, &uncertainty), 3000);
    MG_CHECK_EQ(uncertainty, UINT32_MAX);
    mg_twin_clock_add(&c, 1000, 2000, 3000, 5000);
    int64_t offset = mg_twin_clock_offset(&c, 2000, &uncertainty); /* from 2000 less a tick of 1000 to 3000 */
    MG_CHECK(offset >= 1998 && offset <= 2002);
    MG_CHECK(uncertainty >= 1000 + 1000 && uncertainty <= 1002 + 1000);
}
