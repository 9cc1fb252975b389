/* A driver-API program whose kernel is compiled when it runs, to machine code for sm_90, and checked.
 * usage: nvrtc linked            the entries of a DT_NEEDED libnvrtc
 *        nvrtc dlopen LIBNVRTC   dlopen (RTLD_LOCAL) + dlsym
 *        nvrtc file LIBNVRTC     the same; the cubin goes to a file and is loaded from there
 *        nvrtc other LIBNVRTC    one byte of a symbol's name differs from what NVRTC made: unknown machine code
 * 200 of 256 threads store their number. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVRTC(E)                                                                                                       \
    E(nvrtcCreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *))        \
    E(nvrtcCompileProgram, (void *, int, const char *const *))                                                         \
    E(nvrtcGetCUBINSize, (void *, size_t *))                                                                           \
    E(nvrtcGetCUBIN, (void *, char *))                                                                                 \
    E(nvrtcDestroyProgram, (void **))
#define E(name, args)                                                                                                  \
    static int(*p_##name) args;                                                                                        \
    extern int name args __attribute__((weak));
NVRTC(E)
#undef E
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleLoad(void **, const char *);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static const char source[] =
    "extern \"C\" __global__ void fill(unsigned *p, unsigned n)\n{\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        p[i] = i;\n}\n";

static char *compile(size_t *bytes)
{
    void *program;
    const char *options[] = {"--gpu-architecture=sm_90"};
    if (p_nvrtcCreateProgram(&program, source, "fill.cu", 0, NULL, NULL) ||
        p_nvrtcCompileProgram(program, 1, options) || p_nvrtcGetCUBINSize(program, bytes))
        return NULL;
    char *cubin = malloc(*bytes);
    if (!cubin || p_nvrtcGetCUBIN(program, cubin) || p_nvrtcDestroyProgram(&program)) return NULL;
    return cubin;
}

static int load(const char *way, char *cubin, size_t bytes, void **module)
{
    if (!strcmp(way, "file")) {
        FILE *f = fopen("fill.cubin", "wb");
        if (!f || fwrite(cubin, 1, bytes, f) != bytes || fclose(f)) return -1;
        return cuModuleLoad(module, "fill.cubin");
    }
    if (!strcmp(way, "other"))
        for (size_t i = 0; i + 4 <= bytes; i++)
            if (!memcmp(cubin + i, "fill", 4)) cubin[i] = 'k';
    return cuModuleLoadData(module, cubin);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (argc > 2) {
        void *lib = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
#define E(name, args) *(void **)&p_##name = lib ? dlsym(lib, #name) : NULL;
        NVRTC(E)
#undef E
    } else {
#define E(name, args) p_##name = name;
        NVRTC(E)
#undef E
    }
    size_t bytes;
    char *cubin = p_nvrtcGetCUBIN ? compile(&bytes) : NULL;
    void *ctx, *module, *f;
    uint64_t p;
    unsigned n = 200;
    uint32_t out[200];
    int device, rc;
    if (!cubin) return fprintf(stderr, "nvrtc: does not compile\n"), 2;
    if ((rc = cuInit(0)) || (rc = cuDeviceGet(&device, 0)) || (rc = cuDevicePrimaryCtxRetain(&ctx, device)) ||
        (rc = cuCtxSetCurrent(ctx)))
        return fprintf(stderr, "nvrtc: error %d\n", rc), 1;
    rc = load(way, cubin, bytes, &module);
    free(cubin);
    printf("load: %d\n", rc);
    fflush(stdout);
    if (rc) return 3;
    void *params[] = {&p, &n};
    if ((rc = cuModuleGetFunction(&f, module, "fill")) || (rc = cuMemAlloc_v2(&p, sizeof out)) ||
        (rc = cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL)) ||
        (rc = cuMemcpyDtoH_v2(out, p, sizeof out)))
        return fprintf(stderr, "nvrtc: error %d\n", rc), 1;
    for (unsigned i = 0; i < n; i++)
        if (out[i] != i) return fprintf(stderr, "nvrtc: out[%u] = %u\n", i, out[i]), 1;
    puts("ok");
    return 0;
}
