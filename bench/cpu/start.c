/* How long a program waits for its first result: loads a module of ten kernels, launches one CTA of one of them, waits.
 * usage: start kernels.ptx KERNEL: prints the milliseconds from the text to the module, from launch to result, and the
 * process's largest resident size in KiB. `start` beside it runs it on the software devices. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemsetD8_v2(uint64_t, unsigned char, size_t),
    cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

/* i: a number of elements that one CTA takes, f: a float, p: memory */
static const struct {
    const char *name, *args;
    unsigned bx, by;
    int n;
} kernels[] = {{"saxpy", "ifpp", 256, 1, 256},          {"matmul", "ippp", 16, 16, 16},
               {"reduce", "ipp", 256, 1, 512},          {"nbody", "ipp", 256, 1, 256},
               {"histogram", "ipp", 256, 1, 256},       {"stencil", "ipp", 16, 16, 16},
               {"blackscholes", "ippppp", 256, 1, 256}, {"mandelbrot", "iip", 256, 1, 16},
               {"bfs", "ipppi", 256, 1, 256},           {"scan", "ippp", 512, 1, 512}};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static long peak_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %ld", &kib);
    if (f) fclose(f);
    return kib;
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    void *ctx, *module, *fn, *args[8];
    int dev, got;
    uint64_t memory;
    float half = 0.5f;
    unsigned k = 0;
    FILE *f = argc == 3 ? fopen(argv[1], "r") : NULL;
    while (f && k < sizeof kernels / sizeof *kernels && strcmp(kernels[k].name, argv[2])) k++;
    if (!f || k == sizeof kernels / sizeof *kernels || !fread(text, 1, sizeof text - 1, f)) return 2;
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx) ||
        cuMemAlloc_v2(&memory, 1 << 16) || cuMemsetD8_v2(memory, 0, 1 << 16))
        return 1;
    double t0 = now_ms();
    if (cuModuleLoadData(&module, text)) return 1;
    double t1 = now_ms();
    for (int i = 0; kernels[k].args[i]; i++)
        args[i] = kernels[k].args[i] == 'i'   ? (void *)&kernels[k].n
                  : kernels[k].args[i] == 'f' ? (void *)&half
                                              : &memory;
    if (cuModuleGetFunction(&fn, module, argv[2]) ||
        cuLaunchKernel(fn, 1, 1, 1, kernels[k].bx, kernels[k].by, 1, 0, NULL, args, NULL) ||
        cuMemcpyDtoH_v2(&got, memory, 4))
        return 1;
    printf("%.3f %.3f %ld\n", t1 - t0, now_ms() - t1, peak_kib());
    return 0;
}
