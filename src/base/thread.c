/* Starting threads of our own, see thread.h. */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

/* What a thread does itself: blocked, such a signal ends the process without asking its handler. */
static const int its_own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

bool mg_thread_start(void *(*fn)(void *), void *arg, size_t stack_bytes, pthread_t *joinable)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t every, before;
    sigfillset(&every);
    for (unsigned i = 0; i < MG_COUNT_OF(its_own); i++) sigdelset(&every, its_own[i]);
    pthread_attr_init(&attr);
    if (!joinable) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack_bytes) pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    bool ok = !pthread_create(joinable ? joinable : &thread, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return ok;
}

void mg_thread_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

uint64_t mg_thread_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

unsigned mg_thread_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}
