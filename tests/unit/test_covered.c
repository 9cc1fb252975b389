/* inject/covered: what is new of random spans, against a row of marks. */
#include "inject/covered.h"

#include <stdlib.h>

#include "base/hash.h"
#include "test.h"

MG_TEST(covered_by_hand)
{
    struct mg_covered c = {0};
    MG_CHECK_EQ(mg_covered_add(&c, 10, 20), 10);
    MG_CHECK_EQ(mg_covered_add(&c, 10, 20), 0);
    MG_CHECK_EQ(mg_covered_add(&c, 20, 25), 5); /* meets the last one */
    MG_CHECK_EQ(c.n, 1);
    MG_CHECK_EQ(mg_covered_add(&c, 30, 40), 10);
    MG_CHECK_EQ(mg_covered_add(&c, 5, 45), 15); /* around both */
    MG_CHECK_EQ(c.n, 1);
    MG_CHECK_EQ(mg_covered_add(&c, 50, 50), 0);
    MG_CHECK_EQ(mg_covered_add(&c, 60, 50), 0);
    MG_CHECK_EQ(mg_covered_add(&c, UINT64_MAX - 5, UINT64_MAX), 5);
    MG_CHECK_EQ(c.n, 2);
}

MG_TEST(covered_random)
{
    enum { TIME = 2000 };
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct mg_covered c = {0};
        bool marks[TIME + 100] = {false};
        uint64_t state = seed, longest = 1 + seed % 90;
        for (int i = 0; i < 100; i++) {
            uint64_t begin = (state = mg_mix64(state + 1)) % TIME, end = begin + (state >> 32) % longest, fresh = 0;
            for (uint64_t t = begin; t < end; t++) fresh += !marks[t], marks[t] = true;
            MG_CHECK_EQ(mg_covered_add(&c, begin, end), fresh);
            for (uint32_t k = 1; k < c.n; k++) MG_CHECK(c.at[k - 1].end < c.at[k].begin);
        }
    }
}

/* More spans apart than there is room: the oldest are forgotten, and nothing is ever told as less than it is new. */
MG_TEST(covered_without_room)
{
    struct mg_covered c = {0};
    for (uint64_t i = 0; i < 3 * MG_COVERED_SPANS; i++) MG_CHECK_EQ(mg_covered_add(&c, 10 * i, 10 * i + 5), 5);
    MG_CHECK_EQ(c.n, MG_COVERED_SPANS);
    MG_CHECK_EQ(mg_covered_add(&c, 20 * MG_COVERED_SPANS, 30 * MG_COVERED_SPANS), 5 * MG_COVERED_SPANS);
    MG_CHECK_EQ(mg_covered_add(&c, 0, 5), 5);
}
