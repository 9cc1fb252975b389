/* A libcupti.so.13 in front of the real one (CUPTI=PATH): hands every call on, and writes the start and end of each
 * kernel, copy and memset that its caller is given to the file CUPTI_TEE: what a bare client of CUPTI sees, in the same
 * run. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *real;
static FILE *out;

static void open_real(void)
{
    const char *path = getenv("CUPTI"), *tee = getenv("CUPTI_TEE");
    real = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    out = tee ? fopen(tee, "w") : NULL;
    if (!real || !out) fprintf(stderr, "cupti_tee: CUPTI and CUPTI_TEE must name a library and a file\n"), exit(1);
}
static void *function(const char *name)
{
    pthread_once(&once, open_real);
    void *f = dlsym(real, name);
    if (!f) fprintf(stderr, "cupti_tee: no %s\n", name), exit(1);
    return f;
}
#define ON(name, parameters, arguments)                                                                                \
    int name parameters                                                                                                \
    {                                                                                                                  \
        static int(*f) parameters;                                                                                     \
        if (!f) {                                                                                                      \
            void *p = function(#name);                                                                                 \
            memcpy(&f, &p, sizeof p);                                                                                  \
        }                                                                                                              \
        return f arguments;                                                                                            \
    }
ON(cuptiGetVersion, (uint32_t * v), (v))
ON(cuptiSubscribe, (void **s, void *fn, void *user), (s, fn, user))
ON(cuptiGetCallbackName, (int domain, uint32_t id, const char **name), (domain, id, name))
ON(cuptiEnableCallback, (uint32_t on, void *s, int domain, uint32_t id), (on, s, domain, id))
ON(cuptiActivityRegisterTimestampCallback, (void *fn), (fn))
ON(cuptiActivityRegisterCallbacks, (void *a, void *b), (a, b))
ON(cuptiActivityEnable, (int kind), (kind))
ON(cuptiActivityDisable, (int kind), (kind))
ON(cuptiActivityGetNumDroppedRecords, (void *c, uint32_t s, size_t *n), (c, s, n))
ON(cuptiActivityFlushAll, (uint32_t flags), (flags))

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, void **record)
{
    static int (*f)(uint8_t *, size_t, void **);
    uint32_t kind;
    uint64_t at[2];
    if (!f) {
        void *p = function("cuptiActivityGetNextRecord");
        memcpy(&f, &p, sizeof p);
    }
    int rc = f(buffer, bytes, record);
    if (rc) return fflush(out), rc;
    memcpy(&kind, *record, 4);
    memcpy(at, (char *)*record + 16, 16);
    if (kind == 10 || kind == 1 || kind == 2)
        fprintf(out, "%u %llu %llu\n", kind, (unsigned long long)at[0], (unsigned long long)at[1]);
    return 0;
}
