/* Preloaded into all sides of bench/cpu/suites: how long computing took, as processors' time, so that a busy machine
 * shows little. Of OpenMP: what the process used inside parallel regions (libgomp's entries). Of CUDA on a device of
 * Margay's: what threads other than the program's first used. Of OpenCL: what the process used while kernels ran.
 * Written at the end, two numbers, OpenMP's or OpenCL's and CUDA's: to the file that TWIN_TIME names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double used(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double inside;
static int depth;

static void enter(void)
{
    if (!depth++) inside -= used(CLOCK_PROCESS_CPUTIME_ID);
}
static void leave(void)
{
    if (!--depth) inside += used(CLOCK_PROCESS_CPUTIME_ID);
}

#define REGION(name, parameters, arguments)                                                                            \
    void name parameters;                                                                                              \
    void name parameters                                                                                               \
    {                                                                                                                  \
        static void(*next) parameters;                                                                                 \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                                          \
        enter();                                                                                                       \
        next arguments;                                                                                                \
        leave();                                                                                                       \
    }
REGION(GOMP_parallel, (void (*fn)(void *), void *data, unsigned threads, unsigned flags), (fn, data, threads, flags))
#define LOOP(name)                                                                                                     \
    REGION(name,                                                                                                       \
           (void (*fn)(void *), void *data, unsigned threads, long from, long to, long step, long chunk,               \
            unsigned flags),                                                                                           \
           (fn, data, threads, from, to, step, chunk, flags))
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)

/* OpenCL: from the call that launches a kernel until it has ended */
int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dims, const size_t *from, const size_t *global,
                           const size_t *local, unsigned waits, void *const *events, void **event);
int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dims, const size_t *from, const size_t *global,
                           const size_t *local, unsigned waits, void *const *events, void **event)
{
    int (*next)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned, void *const *,
                void **);
    int (*finish)(void *);
    *(void **)&next = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    *(void **)&finish = dlsym(RTLD_DEFAULT, "clFinish");
    finish(queue);
    enter();
    int result = next(queue, kernel, dims, from, global, local, waits, events, event);
    finish(queue);
    leave();
    return result;
}

/* leukocyte asks for a GPU */
void *clCreateContextFromType(const void *properties, unsigned long type, void (*told)(void), void *data, int *result);
void *clCreateContextFromType(const void *properties, unsigned long type, void (*told)(void), void *data, int *result)
{
    void *(*next)(const void *, unsigned long, void (*)(void), void *, int *);
    *(void **)&next = dlsym(RTLD_NEXT, "clCreateContextFromType");
    (void)type;
    return next(properties, 0xffffffff, told, data, result);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("TWIN_TIME");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%.3f %.3f\n", inside, used(CLOCK_PROCESS_CPUTIME_ID) - used(CLOCK_THREAD_CPUTIME_ID));
    fclose(f);
}
