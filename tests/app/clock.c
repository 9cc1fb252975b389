/* Preloaded under a program that seeds its random numbers from the time: the time of day stands still.
 * The monotonic clock goes on, so that what waits still waits. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { NOON = 1700000000 };

time_t time(time_t *t)
{
    if (t) *t = NOON;
    return NOON;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    (void)zone;
    *tv = (struct timeval){.tv_sec = NOON};
    return 0;
}
int clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (clock != CLOCK_REALTIME) return (int)syscall(SYS_clock_gettime, clock, ts);
    *ts = (struct timespec){.tv_sec = NOON};
    return 0;
}
clock_t clock(void)
{
    return 0;
}
