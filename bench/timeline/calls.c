/* What one call and one launch cost on this machine: run natively, under `-t none` and under the time line.
 * usage: calls FILE.ptx calls|launches N [DEPTH]
 * DEPTH: so many more frames below main. Prints "NS nanoseconds each, KIB KiB resident at most" */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxGetCurrent(void **), cuCtxSynchronize(void), cuModuleLoadData(void **, const void *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int run(char **argv)
{
    static char text[1 << 16];
    FILE *f = fopen(argv[1], "r");
    if (!f || !fread(text, 1, sizeof text - 1, f)) return 2;
    fclose(f);
    int device;
    unsigned n = 32;
    uint64_t cells, count = strtoull(argv[3], NULL, 10);
    void *ctx, *module, *kernel, *params[] = {&cells, &n};
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
        cuModuleLoadData(&module, text) || cuModuleGetFunction(&kernel, module, "fill") || cuMemAlloc_v2(&cells, 4096))
        return 1;
    if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) || cuCtxSynchronize()) return 1;
    int launches = !strcmp(argv[2], "launches");
    uint64_t from = now_ns(), waited = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (launches ? cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) : cuCtxGetCurrent(&ctx))
            return 1;
        if (launches && i % 64 == 63) { /* the queue never fills: only the call counts */
            uint64_t begin = now_ns();
            if (cuCtxSynchronize()) return 1;
            waited += now_ns() - begin;
        }
    }
    uint64_t ns = now_ns() - from - waited;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("%.1f nanoseconds each, %ld KiB resident at most\n", (double)ns / (double)count, u.ru_maxrss);
    return 0;
}

__attribute__((noinline)) static int deep(int depth, char **argv)
{
    int rc = depth > 0 ? deep(depth - 1, argv) : run(argv);
    __asm__ volatile("" : "+r"(rc));
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    return deep(argc > 4 ? atoi(argv[4]) : 0, argv);
}
