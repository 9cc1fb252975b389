/* Unit tests: MG_TEST(name) { MG_CHECK(...); } in tests/unit/test_<module>.c, all in one binary.
 * `test-unit [GLOB]` runs them and ends with "N passed, N failed". */
#ifndef MG_TESTS_UNIT_TEST_H
#define MG_TESTS_UNIT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef void (*mg_test_fn)(void);
void mg_test_add(const char *file, const char *name, mg_test_fn fn);
void mg_test_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void mg_test_skip(const char *why);

/* Of the seeds of a costly case a sanitizer's build takes one in eight, other ones in each process; a release build
 * takes all. How often something happens in all of them is checked where MG_TEST_PART is 1. */
#ifdef MG_SANITIZER
#define MG_TEST_PART 8u
#else
#define MG_TEST_PART 1u
#endif
static inline bool mg_test_takes(unsigned seed)
{
    return seed % MG_TEST_PART == (unsigned)getpid() % MG_TEST_PART;
}

#define MG_TEST(name)                                                                                                  \
    static void test_##name(void);                                                                                     \
    __attribute__((constructor)) static void add_##name(void)                                                          \
    {                                                                                                                  \
        mg_test_add(__FILE__, #name, test_##name);                                                                     \
    }                                                                                                                  \
    static void test_##name(void)
#define MG_CHECK(c) ((c) ? (void)0 : mg_test_fail(__FILE__, __LINE__, "%s", #c))
#define MG_CHECK_EQ(a, b)                                                                                              \
    do {                                                                                                               \
        long long a_ = (long long)(a), b_ = (long long)(b);                                                            \
        if (a_ != b_) mg_test_fail(__FILE__, __LINE__, "%s is %lld (%#llx), want %lld (%#llx)", #a, a_, a_, b_, b_);   \
    } while (0)
#define MG_CHECK_STR(a, b)                                                                                             \
    do {                                                                                                               \
        const char *a_ = (a), *b_ = (b);                                                                               \
        if (!a_ || strcmp(a_, b_))                                                                                     \
            mg_test_fail(__FILE__, __LINE__, "%s is \"%s\", want \"%s\"", #a, a_ ? a_ : "(null)", b_);                 \
    } while (0)

#endif
