/* A libcupti.so.13 for tests: the stand-in driver tells it of calls from inside (fake_cupti_called), the program when
 * their work ran (fake_cupti_tell), and it hands that over as CUPTI 13.0 would. FAKE_CUPTI: subscribed, another tool is
 * there; old, an unknown version; lossy, every third piece of work is lost; odd, it ran before its call; late, work of
 * every other call is handed over when all ends. When the process ends it is gone before the library is: whoever calls
 * it then is aborted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/cupti.h"

static const char *const names[] = {
    NULL, "cuMemsetD32_v2", "cuMemcpyHtoD_v2", "cuLaunchKernel", "cuMemcpyDtoH_v2", "cuLaunchKernelEx"};
enum { NAMES = sizeof names / sizeof *names };
static void (*callback)(void *, int, uint32_t, const void *);
static void *user_of_callback;
static bool called[NAMES];
static __thread uint32_t last[NAMES]; /* the number of this thread's last call of each */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *records[2]; /* handed over one after the other */
static size_t bytes[2], room[2], lost, lost_told;
static uint32_t numbers, enabled, gone;
static void (*request)(uint8_t **, size_t *, size_t *), (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
static uint64_t (*now)(void);

static int is(const char *mode)
{
    const char *v = getenv("FAKE_CUPTI");
    return v && !strcmp(v, mode);
}
static uint32_t bytes_of(uint32_t kind)
{
    return kind == 2 ? 88 : kind == 10 ? 216 : 96;
}
static void add(int which, const void *record)
{
    uint32_t kind;
    memcpy(&kind, record, 4);
    if (!(enabled >> kind & 1)) return;
    if (bytes[which] + 256 > room[which])
        records[which] = realloc(records[which], room[which] = 2 * room[which] + 4096);
    memcpy(records[which] + bytes[which], record, bytes_of(kind));
    bytes[which] += bytes_of(kind);
}

void fake_cupti_called(const char *name, uint32_t leaves)
{
    uint32_t id = NAMES - 1;
    while (id && strcmp(name, names[id])) id--;
    if (!leaves) last[id] = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
    struct cupti_callback c = {.leaves = leaves, .function = name, .correlation = last[id]};
    if (called[id]) callback(user_of_callback, 1, id, &c);
}

static uint32_t later(int a, int b)
{
    return last[a] > last[b] ? last[a] : last[b];
}

/* The work of this thread's last call of that kind. */
void fake_cupti_tell(uint32_t kind, uint64_t begin, uint64_t end)
{
    uint8_t work[256] = {0};
    uint32_t number = kind == 10 ? later(3, 5) : kind == 2 ? last[1] : later(2, 4);
    pthread_mutex_lock(&lock);
    memcpy(work, &kind, 4);
    if (is("odd")) begin -= 1000000000, end -= 1000000000;
    memcpy(work + 16, &begin, 8);
    memcpy(work + 24, &end, 8);
    memcpy(work + (kind == 10 ? 92 : kind == 22 ? 60 : 44), &number, 4);
    if (is("lossy") && number % 3 == 0)
        lost++;
    else
        add(is("late") && number % 2, work);
    pthread_mutex_unlock(&lock);
}

int cuptiGetVersion(uint32_t *v)
{
    return *v = is("old") ? 7 : 130000, 0;
}
/* As CUPTI does, it calls the driver, which leads to whoever called it. */
int cuptiSubscribe(void **s, void *fn, void *user)
{
    void *init = dlsym(RTLD_DEFAULT, "cuInit");
    int (*call)(unsigned);
    memcpy(&callback, &fn, sizeof fn);
    user_of_callback = user;
    memcpy(&call, &init, sizeof init);
    if (!init || call(0)) return 999;
    return *s = NULL, is("subscribed") ? 39 : 0;
}
int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    return domain == 1 && id && id < NAMES ? *name = names[id], 0 : 1;
}
int cuptiEnableCallback(uint32_t on, void *s, int domain, uint32_t id)
{
    (void)s;
    if (domain != 1 || !id || id >= NAMES) return 1;
    return called[id] = on, 0;
}
int cuptiActivityRegisterTimestampCallback(uint64_t (*fn)(void))
{
    now = fn;
    return 0;
}
int cuptiActivityRegisterCallbacks(void *r, void *c)
{
    memcpy(&request, &r, sizeof r);
    memcpy(&complete, &c, sizeof c);
    return 0;
}
static void go(void)
{
    __atomic_store_n(&gone, 1, __ATOMIC_SEQ_CST);
}
int cuptiActivityEnable(int kind)
{
    if (!enabled) atexit(go);
    return enabled |= 1u << kind, now ? 0 : 1;
}
int cuptiActivityDisable(int kind)
{
    (void)kind;
    if (__atomic_load_n(&gone, __ATOMIC_SEQ_CST)) abort();
    return 0;
}
int cuptiActivityGetNumDroppedRecords(void *ctx, uint32_t stream, size_t *n)
{
    (void)ctx, (void)stream;
    *n = lost - lost_told;
    return lost_told = lost, 0;
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint32_t kind = 0;
    uint8_t *next = buffer;
    if (*record) memcpy(&kind, *record, 4), next = (uint8_t *)*record + bytes_of(kind);
    if (next >= buffer + valid) return 12;
    return *record = next, 0;
}
int cuptiActivityFlushAll(uint32_t flags)
{
    if (__atomic_load_n(&gone, __ATOMIC_SEQ_CST)) abort();
    for (int which = 0; which < (flags ? 2 : 1); which++)
        for (;;) {
            uint8_t *buffer;
            size_t most, size, n = 0;
            request(&buffer, &size, &most);
            pthread_mutex_lock(&lock);
            while (n < bytes[which]) { /* as many whole records as there is room for */
                uint32_t kind;
                memcpy(&kind, records[which] + n, 4);
                if (n + bytes_of(kind) > size) break;
                n += bytes_of(kind);
            }
            memcpy(buffer, records[which], n);
            memmove(records[which], records[which] + n, bytes[which] -= n);
            pthread_mutex_unlock(&lock);
            complete(NULL, 0, buffer, size, n);
            if (!n) break;
        }
    return 0;
}
