/* Launches a kernel of the PTX file in turn with each number of CTAs, of 64 threads; every thread adds 1 to a word.
 * usage: wide FILE CTAS... */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *lib;
#define CALL(name, type, ...)                                                                                          \
    do {                                                                                                               \
        int rc_ = ((int(*) type)(uintptr_t)dlsym(lib, name))(__VA_ARGS__);                                             \
        if (rc_) printf("%s: error %d\n", name, rc_), exit(1);                                                         \
    } while (0)

int main(int argc, char **argv)
{
    static char text[1 << 16];
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    void *ctx, *module, *f;
    uint64_t out, want = 0, got;
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!file || !lib || fread(text, 1, sizeof text - 1, file) == 0) return 1;
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &ctx, 0);
    CALL("cuCtxSetCurrent", (void *), ctx);
    CALL("cuModuleLoadData", (void **, const void *), &module, text);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &f, module, "k");
    CALL("cuMemAlloc_v2", (uint64_t *, size_t), &out, 8);
    CALL("cuMemsetD8_v2", (uint64_t, unsigned char, size_t), out, 0, 8);
    for (int k = 2; k < argc; k++) {
        unsigned ctas = (unsigned)atoi(argv[k]);
        void *params[] = {&out};
        CALL("cuLaunchKernel",
             (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
             f, ctas, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
        CALL("cuCtxSynchronize", (void));
        want += 64ull * ctas;
    }
    CALL("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), &got, out, 8);
    puts(got == want ? "ok" : "wrong");
    return got != want;
}
