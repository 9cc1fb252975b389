/* Unit tests: MG_TEST(name) { MG_CHECK(...); } in tests/unit/test_<module>.c, all in one binary.
 * `test-unit [GLOB]` runs them and ends with "N passed, N failed". */
#ifndef MG_TESTS_UNIT_TEST_H
#define MG_TESTS_UNIT_TEST_H

#include <stdio.h>
#include <string.h>

typedef void (*mg_test_fn)(void);
void mg_test_add(const char *file, const char *name, mg_test_fn fn);
void mg_test_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void mg_test_skip(const char *why);

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
