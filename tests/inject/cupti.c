/* Tells a libcupti.so.13 of ours (fake_cupti.c) when its work ran, and writes the same down.
 * usage: cupti fill.ptx THREADS ROUNDS OUT     a line for each piece of work: kind, begin, end */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t), cuMemcpyHtoD_v2(uint64_t, const void *, size_t),
    cuMemcpyDtoH_v2(void *, uint64_t, size_t), cuMemsetD32_v2(uint64_t, unsigned, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
static void *ctx, *module, *kernel;
static uint64_t cells;
static int rounds;
static FILE *out;
static void (*tell)(uint32_t, uint64_t, uint64_t);

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* The work is said to run right after the call, for as long as its number says. */
static void did(int rc, uint32_t kind, uint64_t ns)
{
    uint64_t end = now();
    if (rc && kind) printf("kind %u: %d\n", kind, rc), exit(1);
    if (tell && kind) tell(kind, end, end + ns);
    if (kind) fprintf(out, "%u %llu %llu\n", kind, (unsigned long long)end, (unsigned long long)(end + ns));
    while (now() < end + ns) continue; /* before the next call */
}
static void *run(void *arg)
{
    uint32_t host[32];
    unsigned n = 32;
    void *params[] = {&cells, &n};
    cuCtxSetCurrent(ctx);
    for (int i = 0; i < rounds; i++) {
        did(cuMemsetD32_v2(cells + 4096, 7, 16), 2, 3000u + (unsigned)i);
        did(cuMemcpyHtoD_v2(cells + 8192, host, sizeof host), 1, 2000u + (unsigned)i);
        did(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 10, 1000u + (unsigned)i);
        did(cuMemcpyDtoH_v2(host, 0, 16), 0, 0); /* it fails */
        did(cuMemcpyDtoH_v2(host, cells, sizeof host), 1, 4000u + (unsigned)i);
        if (host[31] != 31) puts("the kernel's result"), exit(1);
    }
    return arg;
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    pthread_t t[64];
    FILE *f = argc == 5 ? fopen(argv[1], "r") : NULL;
    if (!f || !fread(text, 1, sizeof text - 1, f)) return 2;
    fclose(f);
    int device, n = atoi(argv[2]);
    rounds = atoi(argv[3]);
    if (!(out = fopen(argv[4], "w"))) return 2;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
        cuModuleLoadData(&module, text) || cuModuleGetFunction(&kernel, module, "fill") ||
        cuMemAlloc_v2(&cells, 1 << 16))
        return 1;
    void *lib = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL),
         *fn = lib ? dlsym(lib, "fake_cupti_tell") : NULL;
    memcpy(&tell, &fn, sizeof fn);
    for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, run, NULL);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    cuCtxSynchronize();
    fclose(out);
    puts("ok");
    return 0;
}
