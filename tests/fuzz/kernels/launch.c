/* Runs generated kernels (generate) on whatever device the CUDA driver gives and says what came out.
 * usage: launch KERNEL.ptx...
 * One line a file: its name, FNV-1a of the results, and the first error if there was one. The inputs
 * follow from the position of a word alone, so every device gets the same. A driver-API program: it runs
 * under `margay run` on any device, or on a GPU without. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleUnload(void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemFree_v2(uint64_t), cuMemcpyHtoD_v2(uint64_t, const void *, size_t),
    cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuMemsetD8_v2(uint64_t, unsigned char, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

enum { MAX_THREADS = 1024, WORDS = 8 };
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_) return *what = #call, rc_;                                                                            \
    } while (0)

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static int run(const char *text, uint32_t out[], unsigned threads, unsigned grid, const unsigned block[3], const char **what)
{
    static uint32_t in[MAX_THREADS * WORDS];
    char name[64];
    void *module, *f;
    uint64_t d_in = 0, d_out = 0;
    uint32_t n = threads;
    void *args[] = {&d_in, &d_out, &n};
    const char *at = strstr(text, ".entry fuzz_");
    if (!at || sscanf(at, ".entry %63[^(]", name) != 1) return *what = "no entry", -1;
    for (uint32_t i = 0; i < MAX_THREADS * WORDS; i++) in[i] = i % 5 == 4 ? i % 7 : mix(i);
    TRY(cuModuleLoadData(&module, text));
    TRY(cuModuleGetFunction(&f, module, name));
    TRY(cuMemAlloc_v2(&d_in, sizeof in));
    TRY(cuMemAlloc_v2(&d_out, sizeof in));
    TRY(cuMemcpyHtoD_v2(d_in, in, sizeof in));
    TRY(cuMemsetD8_v2(d_out, 0, sizeof in));
    TRY(cuLaunchKernel(f, grid, 1, 1, block[0], block[1], block[2], 0, NULL, args, NULL));
    TRY(cuMemcpyDtoH_v2(out, d_out, sizeof in));
    TRY(cuMemFree_v2(d_in));
    TRY(cuMemFree_v2(d_out));
    TRY(cuModuleUnload(module));
    return 0;
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    static uint32_t out[MAX_THREADS * WORDS];
    void *ctx;
    int dev, bad = 0;
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx)) return 2;
    for (int i = 1; i < argc; i++) {
        unsigned grid, block, form[3];
        const char *what = "";
        FILE *f = fopen(argv[i], "rb");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f) fclose(f);
        text[n] = 0;
        int told = sscanf(text, "// RUN grid=%u block=%u form=%ux%ux%u", &grid, &block, &form[0], &form[1], &form[2]);
        if ((told != 2 && told != 5) || grid * block > MAX_THREADS) return 2;
        if (told == 2) form[0] = block, form[1] = form[2] = 1;
        int rc = run(text, out, grid * block, grid, form, &what);
        uint64_t hash = 0xcbf29ce484222325u;
        for (uint32_t k = 0; k < grid * block * WORDS; k++) hash = (hash ^ out[k]) * 0x100000001b3u;
        const char *base = strrchr(argv[i], '/');
        printf("%s %016llx", base ? base + 1 : argv[i], (unsigned long long)hash);
        printf(rc ? " %d %s\n" : "\n", rc, what);
        bad |= rc;
    }
    return bad != 0;
}
