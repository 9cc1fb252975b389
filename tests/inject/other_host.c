/* Preloaded: from rank 2 on Margay believes to be on another host (nobody else does: MPI would send by other ways),
 * whose clock began elsewhere and runs 100 ppm fast, and whose time of day is 40 ms late. SINCE: the moment, of the
 * true clock, when both agreed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int64_t offset_ns = 987654321012345, late_ns = 40000000;
static const char boot[] = "00000000-1111-2222-3333-444444444444\n";

static int is_margay(const void *caller)
{
    static __thread const void *last[16];
    static __thread int known[16];
    unsigned at = (uint32_t)(uintptr_t)caller * 0x9e3779b1u >> 28;
    Dl_info info;
    if (last[at] != caller) known[at] = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/margay/");
    last[at] = caller;
    return known[at];
}
static int is_there_(const void *caller)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    return rank && atoi(rank) >= 2 && is_margay(caller);
}
#define is_there() is_there_(__builtin_return_address(0))
static int64_t shift(int64_t true_ns)
{
    static int64_t since;
    if (!since) since = atoll(getenv("SINCE"));
    return offset_ns + (true_ns - since) / 10000;
}
static int64_t true_ns(clockid_t id)
{
    struct timespec t;
    syscall(SYS_clock_gettime, id, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int clock_gettime(clockid_t id, struct timespec *t)
{
    int64_t now = true_ns(id);
    if (is_there() && id == CLOCK_MONOTONIC) now += shift(now);
    if (is_there() && id == CLOCK_REALTIME) now -= late_ns;
    t->tv_sec = now / 1000000000;
    t->tv_nsec = now % 1000000000;
    return 0;
}
/* Deadlines of the monotonic clock are small numbers. */
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
        dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    struct timespec t = *until;
    if (is_there()) {
        int64_t ns = t.tv_sec * 1000000000LL + t.tv_nsec, now = true_ns(CLOCK_MONOTONIC);
        ns += ns > now + offset_ns / 2 && t.tv_sec < 1400000000 ? -shift(now) : t.tv_sec > 1400000000 ? late_ns : 0;
        t = (struct timespec){ns / 1000000000, ns % 1000000000};
    }
    return real(c, m, &t);
}
#define is_boot(path) (is_there() && !strcmp(path, "/proc/sys/kernel/random/boot_id"))
FILE *fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
    return is_boot(path) ? fmemopen((void *)boot, sizeof boot - 1, "r") : real(path, mode);
}
int open(const char *path, int flags, ...)
{
    int fds[2];
    va_list ap;
    va_start(ap, flags);
    int mode = va_arg(ap, int);
    va_end(ap);
    if (!is_boot(path)) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (pipe(fds) || write(fds[1], boot, sizeof boot - 1) < 0) return -1;
    close(fds[1]);
    return fds[0];
}
