/* Runs the collected unit tests; see test.h. */
#include "test.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

struct test {
    const char *file, *name;
    mg_test_fn fn;
};
static struct test tests[4096];
static int n_tests, failures;
static jmp_buf skip_to;

void mg_test_add(const char *file, const char *name, mg_test_fn fn)
{
    if (n_tests < 4096) tests[n_tests++] = (struct test){file, name, fn};
}

void mg_test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    failures++;
}

void mg_test_skip(const char *why)
{
    printf("skip: %s\n", why);
    longjmp(skip_to, 1);
}

enum outcome { PASSED, FAILED, SKIPPED };
static enum outcome outcome_of(void (*fn)(void))
{
    if (setjmp(skip_to)) return SKIPPED;
    int before = failures;
    fn();
    return failures == before ? PASSED : FAILED;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    for (int i = 0; i < n_tests; i++) {
        if (argc > 1 && fnmatch(argv[1], tests[i].name, 0)) continue;
        clock_t began = clock();
        enum outcome o = outcome_of(tests[i].fn);
        double took = (double)(clock() - began) / CLOCKS_PER_SEC;
        if (took >= 5) printf("slow %s: %.0f s of CPU time\n", tests[i].name, took);
        if (o == FAILED) printf("FAIL %s (%s)\n", tests[i].name, tests[i].file);
        passed += o == PASSED, failed += o == FAILED, skipped += o == SKIPPED;
    }
    printf("%d passed, %d failed", passed, failed);
    if (skipped) printf(", %d skipped", skipped);
    putchar('\n');
    return failed != 0;
}
