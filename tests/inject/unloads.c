/* Loads, launches and unloads modules, each with a text of its own or all with the same: the process may not grow by
 * them. usage: unloads MODULES same|own: prints "ok KILOBYTES": resident memory at the end less that after the 400th
 * module. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleUnload(void *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuMemcpyDtoH_v2(void *, uint64_t, size_t), cuMemsetD32_v2(uint64_t, unsigned, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 g[64];\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<4>;\n"
    ".reg .b64 %%d<2>;\n.reg .pred %%p;\n.shared .u32 s[256];\nld.param.u64 %%d1, [p];\nmov.u32 %%r1, %%tid.x;\nsetp.gt.u32 %%p, %%r1, 3;\n@%%p bra done;\n"
    "red.global.add.u32 [%%d1], %d;\ndone:\nret;\n}\n";

static void check(const char *what, int rc)
{
    if (!rc) return;
    printf("%s: %d\n", what, rc);
    exit(1);
}

/* Once what is queued has been written: on a busy machine some 5 MB wait for the profile. */
static long resident_kb(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    char line[200];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, f) && sscanf(line, "VmRSS: %ld", &kb) != 1) {
    }
    fclose(f);
    return kb;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    int device, n = atoi(argv[1]), own = !strcmp(argv[2], "own");
    uint64_t cell;
    uint32_t want = 0, got;
    void *ctx, *params[] = {&cell};
    long before = 0;
    check("cuInit", cuInit(0));
    check("cuDeviceGet", cuDeviceGet(&device, 0));
    check("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, device));
    check("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    check("cuMemAlloc", cuMemAlloc_v2(&cell, 4096));
    check("cuMemsetD32", cuMemsetD32_v2(cell, 0, 1));
    for (int i = 0; i < n; i++) {
        char ptx[sizeof text + 20];
        void *module, *kernel;
        int add = own ? i : 1;
        snprintf(ptx, sizeof ptx, text, add);
        check("cuModuleLoadData", cuModuleLoadData(&module, ptx));
        check("cuModuleGetFunction", cuModuleGetFunction(&kernel, module, "k"));
        check("cuLaunchKernel", cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
        if (i % 2) check("cuCtxSynchronize", cuCtxSynchronize()); /* the others are unloaded while they may run */
        check("cuModuleUnload", cuModuleUnload(module));
        want += 4 * (uint32_t)add;
        if (i % 8 == 0) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* the writer keeps pace */
        if (i + 1 == (n < 800 ? n / 2 : 400)) before = resident_kb();
    }
    check("cuMemcpyDtoH", cuMemcpyDtoH_v2(&got, cell, sizeof got));
    if (got != want) return printf("%u instead of %u\n", got, want), 1;
    printf("ok %ld\n", resident_kb() - before);
    return 0;
}
