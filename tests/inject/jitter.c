/* Preloaded into a program: every so often a thread stands still for a while before it takes a lock, so that a race
 * whose window is some instructions wide becomes one of milliseconds. JITTER=SEED[,ONE_OF[,MICROSECONDS]]: one of so
 * many calls (100) waits up to so long (2000). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static atomic_uint_least64_t turn;
static unsigned long seed, one_of = 100, most_us = 2000;

__attribute__((constructor)) static void read_options(void)
{
    char *at = getenv("JITTER");
    if (!at) return;
    seed = strtoul(at, &at, 10);
    if (*at == ',') one_of = strtoul(at + 1, &at, 10);
    if (*at == ',') most_us = strtoul(at + 1, &at, 10);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void stand(void)
{
    uint64_t x = mix(seed * 0x9e3779b97f4a7c15u + atomic_fetch_add(&turn, 1));
    if (!one_of || !most_us || x % one_of) return;
    nanosleep(&(struct timespec){0, (long)((x >> 32) % (most_us * 1000))}, NULL);
}

#define STANDS_IN(name, type)                                                                                          \
    int name(type *lock)                                                                                               \
    {                                                                                                                  \
        static _Thread_local int inside; /* dlsym may come here */                                                     \
        static int (*real)(type *);                                                                                    \
        if (!real && inside) return 0;                                                                                 \
        if (!real) {                                                                                                   \
            inside = 1;                                                                                                \
            real = (int (*)(type *))dlsym(RTLD_NEXT, #name);                                                           \
            inside = 0;                                                                                                \
        }                                                                                                              \
        stand();                                                                                                       \
        return real(lock);                                                                                             \
    }
STANDS_IN(pthread_mutex_lock, pthread_mutex_t)
STANDS_IN(pthread_rwlock_rdlock, pthread_rwlock_t)
STANDS_IN(pthread_rwlock_wrlock, pthread_rwlock_t)
