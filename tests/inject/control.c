/* A driver-API program that switches Margay on and off itself, or waits until somebody else does.
 * usage: control KERNEL.ptx api|wait
 * Ten launches of `fill`, in each of them 200 of 256 threads store the launch's number + 1; api: launches
 * 3 to 6 are switched off from inside. wait: "ready" is printed before launch 5, and a line read. */
#include <margay/control.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

int main(int argc, char **argv)
{
    static char text[1 << 16], line[16];
    static uint32_t got[256];
    uint64_t d;
    uint32_t n = 200;
    void *ctx, *module, *f, *args[] = {&d, &n};
    int dev;
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) return 2;
    int before = mg_control_get();
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx) ||
        cuModuleLoadData(&module, text) || cuModuleGetFunction(&f, module, "fill") || cuMemAlloc_v2(&d, sizeof got))
        return 2;
    printf("before %d after %d\n", before, mg_control_get());
    for (int i = 0; i < 10; i++) {
        if (!strcmp(argv[2], "api") && (i == 3 || i == 7)) printf("was %d\n", mg_control_set(i == 7));
        if (!strcmp(argv[2], "wait") && i == 5) {
            puts("ready");
            fflush(stdout);
            if (!fgets(line, sizeof line, stdin)) return 2;
        }
        if (cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL) || cuMemcpyDtoH_v2(got, d, sizeof got) ||
            got[199] != 199)
            return 2;
    }
    puts("ok");
    return 0;
}
