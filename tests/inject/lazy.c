/* Loads a PTX file of kernels k0, k1, ... (each adds its number to a word) and launches those named by
 * number, from one thread each.   usage: lazy FILE NUMBER... */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *lib, *ctx, *module;
#define CALL(name, type, ...)                                                                                          \
    do {                                                                                                               \
        int rc_ = ((int(*) type)(uintptr_t)dlsym(lib, name))(__VA_ARGS__);                                             \
        if (rc_) printf("%s: error %d\n", name, rc_), exit(1);                                                         \
    } while (0)

static void *launch(void *arg)
{
    unsigned number = (unsigned)atoi(arg), got;
    char name[32];
    uint64_t out;
    void *f, *stream, *params[] = {&out};
    snprintf(name, sizeof name, "k%u", number);
    CALL("cuCtxSetCurrent", (void *), ctx);
    CALL("cuStreamCreate", (void **, unsigned), &stream, 1);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &f, module, name);
    CALL("cuMemAlloc_v2", (uint64_t *, size_t), &out, 4);
    CALL("cuMemsetD8_v2", (uint64_t, unsigned char, size_t), out, 0, 4);
    CALL("cuCtxSynchronize", (void));
    CALL("cuLaunchKernel",
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), f, 1,
         1, 1, 32, 1, 1, 0, stream, params, NULL);
    CALL("cuStreamSynchronize", (void *), stream);
    CALL("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), &got, out, 4);
    if (got != 32 * number) printf("%s: %u\n", name, got), exit(2);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[64];
    static char text[4 << 20];
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!f || !lib || fread(text, 1, sizeof text - 1, f) == 0 || argc > 66) return 1;
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &ctx, 0);
    CALL("cuCtxSetCurrent", (void *), ctx);
    CALL("cuModuleLoadData", (void **, const void *), &module, text);
    for (int k = 2; k < argc; k++) pthread_create(&t[k - 2], NULL, launch, argv[k]);
    for (int k = 2; k < argc; k++) pthread_join(t[k - 2], NULL);
    puts("ok");
    return 0;
}
