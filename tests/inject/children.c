/* Kernels that launch kernels, through the driver API. usage: children KERNELS.ptx */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemsetD8_v2(uint64_t, unsigned char, size_t),
    cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

int main(int argc, char **argv)
{
    static char text[1 << 16];
    static uint32_t got[32];
    uint64_t out;
    uint32_t depth = 0;
    void *ctx, *module, *tree, *order, *args[] = {&out, &depth};
    int dev;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) return 2;
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx) ||
        cuModuleLoadData(&module, text) || cuModuleGetFunction(&tree, module, "tree") ||
        cuModuleGetFunction(&order, module, "order") || cuMemAlloc_v2(&out, sizeof got) ||
        cuMemsetD8_v2(out, 0, sizeof got))
        return 3;
    /* every CTA launches one grid of two CTAs of the next level, down to level 3 */
    if (cuLaunchKernel(tree, 2, 1, 1, 32, 1, 1, 0, NULL, args, NULL) || cuMemcpyDtoH_v2(got, out, sizeof got)) return 4;
    for (uint32_t d = 0; d < 6; d++)
        if (got[d] != (d < 4 ? 2u << d : 0)) {
            printf("level %u: %u CTAs\n", d, got[d]);
            return 1;
        }
    /* launched: tail 7, child 1 (which launches 2), child 3 */
    if (cuMemsetD8_v2(out, 0, sizeof got) || cuLaunchKernel(order, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) ||
        cuMemcpyDtoH_v2(got, out, sizeof got))
        return 5;
    if (got[0] != 4 || got[1] != 1 || got[2] != 2 || got[3] != 3 || got[4] != 7) {
        printf("order: %u of %u %u %u %u\n", got[0], got[1], got[2], got[3], got[4]);
        return 1;
    }
    puts("ok");
    return 0;
}
