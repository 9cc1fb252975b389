/* hold [SECONDS [idle]]: holds half of the multiprocessors of the first GPU until it is told to end (SIGTERM), at most
 * SECONDS (600); idle: only has the GPU open. gcc hold.c -ldl. Each CTA asks for all shared memory of a multiprocessor, so that no other fits beside it. Prints a line
 * once all CTAs run. In another process it holds them beside a program only under MPS; else the two take turns on all
 * of them. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry hold(.param .u64 words)\n{\n"
                           ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<3>;\n"
                           "ld.param.u64 %d0, [words];\n"
                           "mov.u32 %r0, %ctaid.x;\n"
                           "mul.wide.u32 %d1, %r0, 4;\n"
                           "add.s64 %d1, %d1, %d0;\n"
                           "mov.u32 %r1, 1;\n"
                           "st.volatile.global.u32 [%d1+4], %r1;\n"
                           "again:\n"
                           "mov.u32 %r2, 20000;\n"
                           "nanosleep.u32 %r2;\n"
                           "ld.volatile.global.u32 %r3, [%d0];\n"
                           "setp.eq.u32 %p, %r3, 0;\n"
                           "@%p bra again;\n"
                           "ret;\n}\n";
static volatile sig_atomic_t told;
static void tell(int signal)
{
    told = signal;
}

#define DO(name, types, ...)                                                                                           \
    do {                                                                                                               \
        int(*f) types = (int(*) types)dlsym(driver, #name);                                                            \
        int rc = f ? f(__VA_ARGS__) : -1;                                                                              \
        if (rc) return fprintf(stderr, "hold: %s: %d\n", #name, rc), 1;                                                \
    } while (0)
enum { MOST = 1024, SHARED_OPT_IN = 97, MULTIPROCESSORS = 16, MAX_DYNAMIC_SHARED = 8, PORTABLE_AND_MAPPED = 3 };

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function, *stream;
    volatile unsigned *words; /* 1: end; then 1 for each CTA that runs (no atomics: not every machine has them on memory
                                 of the host) */
    unsigned long long at;
    int shared = 0, n = 0;
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 600);
    if (!driver) return fprintf(stderr, "hold: no libcuda.so.1\n"), 1;
    signal(SIGTERM, tell);
    signal(SIGINT, tell);
    DO(cuInit, (unsigned), 0);
    DO(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    DO(cuCtxSetCurrent, (void *), context);
    while (argc > 2 && !told && time(NULL) < end) nanosleep(&(struct timespec){0, 10000000}, NULL);
    if (argc > 2) return 0;
    DO(cuDeviceGetAttribute, (int *, int, int), &n, MULTIPROCESSORS, 0);
    DO(cuDeviceGetAttribute, (int *, int, int), &shared, SHARED_OPT_IN, 0);
    DO(cuModuleLoadData, (void **, const void *), &module, text);
    DO(cuModuleGetFunction, (void **, void *, const char *), &function, module, "hold");
    DO(cuFuncSetAttribute, (void *, int, int), function, MAX_DYNAMIC_SHARED, shared);
    DO(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&words, 4 * (MOST + 1), PORTABLE_AND_MAPPED);
    DO(cuMemHostGetDevicePointer_v2, (unsigned long long *, void *, unsigned), &at, (void *)words, 0);
    DO(cuStreamCreate, (void **, unsigned), &stream, 1);
    for (unsigned k = 0; k <= MOST; k++) words[k] = 0;
    void *arguments[] = {&at};
    unsigned half = (unsigned)(n > 1 ? n / 2 : 1), running = 0;
    if (half > MOST) half = MOST;
    DO(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
       function, half, 1, 1, 1, 1, 1, (unsigned)shared, stream, arguments, NULL);
    while (running < half && !told && time(NULL) < end) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        for (running = 0; running < half && words[1 + running];) running++;
    }
    printf(running == half ? "holds %u of %d multiprocessors\n" : "holds less than %u of %d multiprocessors\n", half,
           n);
    fflush(stdout);
    while (!told && time(NULL) < end) nanosleep(&(struct timespec){0, 10000000}, NULL);
    words[0] = 1;
    DO(cuStreamSynchronize, (void *), stream);
    return 0;
}
