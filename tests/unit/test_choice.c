/* --launches: what the grammar takes and refuses, and which launches a SPEC selects. */
#include "inject/choice.h"

#include <string.h>

#include "test.h"

static struct mg_choice read_choice(const char *spec)
{
    struct mg_choice c;
    MG_CHECK(mg_choice_parse(spec, &c, NULL) == MG_ERR_OK);
    return c;
}

/* The launches 0..n-1 that are taken, as a string of 0 and 1. */
static const char *taken(const char *spec, uint32_t n)
{
    static char out[65];
    struct mg_choice c = read_choice(spec);
    for (uint32_t i = 0; i < n; i++) {
        struct mg_choice_facts f = {.number = i, .earlier = i / 2, .elapsed_ns = 1000};
        out[i] = mg_choice_why_not(&c, &f) ? '0' : '1';
    }
    out[n] = 0;
    return out;
}

MG_TEST(choice_numbers)
{
    MG_CHECK(!strcmp(taken(NULL, 4), "1111"));
    MG_CHECK(!strcmp(taken("2", 4), "0010"));
    MG_CHECK(!strcmp(taken("0,2-3,6-", 8), "10110011"));
    MG_CHECK(!strcmp(taken("%3", 8), "10010010"));
    MG_CHECK(!strcmp(taken("first=2", 8), "11110000")); /* two kernels in turns */
}

MG_TEST(choice_refused)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "1,",
                                      "a",
                                      "3-2",
                                      "%",
                                      "%0",
                                      "first=0",
                                      "first=",
                                      "random=0",
                                      "random=2",
                                      "random=0.5:",
                                      "budget=5",
                                      "budget=101%",
                                      "steady=0",
                                      "1;2",
                                      "1 2",
                                      "0x10",
                                      "99999999999999999999",
                                      "1-99999999999999999999",
                                      "%18446744073709551616",
                                      "first=1e99",
                                      "random=nan",
                                      "random=-1",
                                      "random=1:18446744073709551616",
                                      "budget=nan%",
                                      "budget=inf%",
                                      "budget=1e999%",
                                      "steady=99999999999999999999",
                                      "1-x"};
    for (size_t i = 0; i < MG_COUNT_OF(bad); i++) {
        struct mg_choice c;
        struct mg_diag d = MG_DIAG_INIT;
        MG_CHECK(mg_choice_parse(bad[i], &c, &d) != MG_ERR_OK);
        MG_CHECK(d.n_errors == 1);
        mg_diag_release(&d);
    }
}

/* The fraction that is taken: 20,000 draws, within five standard deviations; the seed decides which. */
MG_TEST(choice_random)
{
    struct mg_choice a = read_choice("random=0.1"), b = read_choice("random=0.1:7");
    uint32_t n = 20000, in_a = 0, in_b = 0, both = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct mg_choice_facts f = {.number = i};
        bool x = !mg_choice_why_not(&a, &f), y = !mg_choice_why_not(&b, &f);
        in_a += x, in_b += y, both += x && y;
        MG_CHECK(x == !mg_choice_why_not(&a, &f));
    }
    MG_CHECK(in_a > 1788 && in_a < 2212);
    MG_CHECK(in_b > 1788 && in_b < 2212);
    MG_CHECK(both > 130 && both < 270);
}

MG_TEST(choice_limits)
{
    struct mg_choice c = read_choice("budget=5%,steady=2");
    MG_CHECK(!mg_choice_why_not(&c, &(struct mg_choice_facts){.elapsed_ns = 1000, .instrumented_ns = 50, .equal = 1}));
    MG_CHECK_EQ(mg_choice_why_not(&c, &(struct mg_choice_facts){.elapsed_ns = 1000, .instrumented_ns = 51, .equal = 1}),
                MG_REASON_over_budget);
    MG_CHECK_EQ(mg_choice_why_not(&c, &(struct mg_choice_facts){.elapsed_ns = 1000, .equal = 2}), MG_REASON_steady);
    c = read_choice("%2,steady");
    MG_CHECK(c.steady == 3 && c.by_kernel);
    MG_CHECK(mg_choice_why_not(&c, &(struct mg_choice_facts){.number = 1}));
    MG_CHECK(!mg_choice_why_not(&c, &(struct mg_choice_facts){.number = 2}));
}

/* --strict minds every reason but those that the user gave: the table says which. */
MG_TEST(reasons_are_found_by_their_text)
{
    for (unsigned r = MG_REASON_detail + 1; r < MG_REASON_COUNT; r++)
        MG_CHECK_EQ(mg_reason_find(mg_reason_text((enum mg_reason)r)), r);
    MG_CHECK_EQ(mg_reason_find(NULL), MG_REASON_none);
    MG_CHECK_EQ(mg_reason_find("filtered "), MG_REASON_detail);
    MG_CHECK(mg_reason_is_choice(mg_reason_find("switched off")) && !mg_reason_is_choice(mg_reason_find("no tool")));
    MG_CHECK(!mg_reason_is_choice(MG_REASON_detail) && !mg_reason_is_choice(MG_REASON_none));
}
