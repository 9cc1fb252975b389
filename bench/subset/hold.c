/* Holds half of the multiprocessors of the first GPU until it is told to end (SIGTERM), at most SECONDS (600): gcc
 * hold.c -ldl Each CTA asks for all shared memory of a multiprocessor, so that no other fits beside it. Prints a line
 * once all CTAs run. In another process it holds them beside a program only under MPS; else the two take turns on all
 * of them. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry hold(.param .u64 words)\n{\n"
                           ".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d;\n"
                           "ld.param.u64 %d, [words];\n"
                           "atom.global.sys.add.u32 %r0, [%d], 1;\n"
                           "again:\n"
                           "ld.volatile.global.u32 %r1, [%d + 4];\n"
                           "setp.eq.u32 %p, %r1, 0;\n"
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
enum { SHARED_OPT_IN = 97, MULTIPROCESSORS = 16, MAX_DYNAMIC_SHARED = 8, PORTABLE_AND_MAPPED = 3 };

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function, *stream;
    volatile unsigned *words; /* CTAs that run; 1: end */
    unsigned long long at;
    int shared = 0, n = 0;
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 600);
    if (!driver) return fprintf(stderr, "hold: no libcuda.so.1\n"), 1;
    signal(SIGTERM, tell);
    signal(SIGINT, tell);
    DO(cuInit, (unsigned), 0);
    DO(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    DO(cuCtxSetCurrent, (void *), context);
    DO(cuDeviceGetAttribute, (int *, int, int), &n, MULTIPROCESSORS, 0);
    DO(cuDeviceGetAttribute, (int *, int, int), &shared, SHARED_OPT_IN, 0);
    DO(cuModuleLoadData, (void **, const void *), &module, text);
    DO(cuModuleGetFunction, (void **, void *, const char *), &function, module, "hold");
    DO(cuFuncSetAttribute, (void *, int, int), function, MAX_DYNAMIC_SHARED, shared);
    DO(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&words, 8, PORTABLE_AND_MAPPED);
    DO(cuMemHostGetDevicePointer_v2, (unsigned long long *, void *, unsigned), &at, (void *)words, 0);
    DO(cuStreamCreate, (void **, unsigned), &stream, 1);
    words[0] = words[1] = 0;
    void *arguments[] = {&at};
    unsigned half = (unsigned)(n > 1 ? n / 2 : 1);
    DO(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
       function, half, 1, 1, 32, 1, 1, (unsigned)shared, stream, arguments, NULL);
    while (words[0] < half && !told && time(NULL) < end) nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (words[0] == half) printf("holds %u of %d multiprocessors\n", half, n), fflush(stdout);
    while (!told && time(NULL) < end) nanosleep(&(struct timespec){0, 10000000}, NULL);
    words[1] = 1;
    DO(cuStreamSynchronize, (void *), stream);
    return 0;
}
