/* Reads a growing profile. usage: subscriber DIR [STALL_MS]: waits until there is a profile, is told every launch, and
 * prints how many, the sum of their instructions, launches told twice, and the delay from a launch's end on the device
 * (where it is not known: from its being recorded) to its being told: median and 99th percentile in us, of launches
 * that end after the first was told. STALL_MS: sleeps once for so long after the first launch. */
#include <margay/profile.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t n, sum, twice, n_delays, n_unnamed, from_ns;
static uint64_t *delays;
static unsigned char seen[1 << 24];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void tell(void *user, const struct mg_profile_launch *l)
{
    (void)user;
    n++;
    if (l->thread_instructions != UINT64_MAX) sum += l->thread_instructions;
    if (l->id < sizeof seen) twice += seen[l->id]++ != 0;
    n_unnamed += !*l->kernel;
    uint64_t now = now_ns();
    if (!from_ns) from_ns = now;
    if (!l->told_ns || l->told_ns < from_ns) return; /* it had ended before this process was noticed */
    if (!(n_delays & (n_delays - 1))) delays = realloc(delays, (n_delays ? 2 * n_delays : 1) * sizeof *delays);
    bool known = l->start_ns != UINT64_MAX && l->time_ns != UINT64_MAX && l->time_ns;
    uint64_t end = known ? l->start_ns + l->time_ns : l->told_ns;
    delays[n_delays++] = now > end ? now - end : 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    char error[300];
    struct mg_profile *p = NULL;
    for (int i = 0; i < 1000 && !(p = mg_profile_open(argv[1], error, sizeof error)); i++) usleep(10000);
    if (!p) return printf("%s\n", error), 1;
    mg_profile_subscribe(p, tell, NULL);
    int stall = argc > 2 ? atoi(argv[2]) : 0;
    for (int r; (r = mg_profile_wait(p, 10000)) >= 0;) {
        if (!r) return printf("nothing for ten seconds\n"), 1;
        if (stall) usleep((unsigned)stall * 1000);
        stall = 0;
    }
    if (n_delays) qsort(delays, n_delays, sizeof *delays, compare);
    printf("%llu %llu %llu %llu %.1f %.1f\n", (unsigned long long)n, (unsigned long long)sum, (unsigned long long)twice,
           (unsigned long long)n_unnamed, n_delays ? (double)delays[n_delays / 2] / 1000 : 0,
           n_delays ? (double)delays[n_delays * 99 / 100] / 1000 : 0);
    mg_profile_close(p);
    return 0;
}
