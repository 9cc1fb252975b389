/* A storm of launches: threads that each launch on a stream of their own, all at once, a kernel that nobody has
 * launched before. The kernel takes many parameters and adds their sum to its thread's cell, so that a parameter in the
 * wrong place is a wrong result. usage: storm THREADS LAUNCHES ROUNDS [PARAMETERS]: each round loads the module anew;
 * prints "ok" or what is wrong, exit 1. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleUnload(void *),
    cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(uint64_t *, size_t),
    cuMemcpyDtoH_v2(void *, uint64_t, size_t), cuMemsetD32_v2(uint64_t, unsigned, size_t),
    cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *), cuStreamDestroy_v2(void *),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

enum { MOST = 1000, LANES = 32, ADDERS = 4 };
static unsigned n_threads, n_launches, n_params;
static void *ctx, *kernel;
static uint64_t cells;
static pthread_barrier_t start;

static void check(const char *what, int rc)
{
    if (!rc) return;
    printf("%s: %d\n", what, rc);
    exit(1);
}

static char *make_ptx(void)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(f, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 cells, .param .u32 at");
    for (unsigned k = 0; k < n_params; k++) fprintf(f, ", .param .u32 p%u", k);
    fprintf(
        f,
        ")\n{\n.reg .b32 %%r<5>;\n.reg .b64 %%d<3>;\n.reg .pred %%p;\nld.param.u64 %%d1, [cells];\nld.param.u32 %%r1, [at];\n"
        "mad.wide.u32 %%d2, %%r1, 4, %%d1;\nmov.u32 %%r2, %%tid.x;\nsetp.ge.u32 %%p, %%r2, %d;\n@%%p bra done;\nmov.u32 %%r3, 1;\n",
        ADDERS);
    for (unsigned k = 0; k < n_params; k++) fprintf(f, "ld.param.u32 %%r4, [p%u];\nadd.u32 %%r3, %%r3, %%r4;\n", k);
    fprintf(f, "red.global.add.u32 [%%d2], %%r3;\ndone:\nret;\n}\n");
    fclose(f);
    return text;
}

static void *launch_all(void *arg)
{
    uint32_t at = (uint32_t)(uintptr_t)arg, values[MOST];
    void *stream, *params[MOST + 2] = {&cells, &at};
    for (unsigned k = 0; k < n_params; k++) params[2 + k] = &values[k], values[k] = at + k;
    check("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    check("cuStreamCreate", cuStreamCreate(&stream, 1));
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < n_launches; i++)
        check("cuLaunchKernel", cuLaunchKernel(kernel, 1, 1, 1, LANES, 1, 1, 0, stream, params, NULL));
    check("cuStreamSynchronize", cuStreamSynchronize(stream));
    check("cuStreamDestroy", cuStreamDestroy_v2(stream));
    return NULL;
}

static int look(uint32_t *got)
{
    check("cuMemcpyDtoH", cuMemcpyDtoH_v2(got, cells, n_threads * sizeof *got));
    for (uint32_t t = 0; t < n_threads; t++) {
        uint32_t want = n_launches * ADDERS * (1 + t * n_params + n_params * (n_params - 1) / 2);
        if (got[t] != want) return printf("thread %u: %u instead of %u\n", t, got[t], want), 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    n_threads = (unsigned)atoi(argv[1]), n_launches = (unsigned)atoi(argv[2]),
    n_params = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
    if (n_params > MOST) return 2;
    int device, bad = 0;
    check("cuInit", cuInit(0));
    check("cuDeviceGet", cuDeviceGet(&device, 0));
    check("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, device));
    check("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    check("cuMemAlloc", cuMemAlloc_v2(&cells, n_threads * sizeof(uint32_t)));
    char *ptx = make_ptx();
    pthread_t *threads = calloc(n_threads, sizeof *threads);
    uint32_t *got = calloc(n_threads, sizeof *got);
    pthread_barrier_init(&start, NULL, n_threads);
    for (int round = atoi(argv[3]); round-- > 0 && !bad;) {
        void *module;
        check("cuMemsetD32", cuMemsetD32_v2(cells, 0, n_threads));
        check("cuModuleLoadData", cuModuleLoadData(&module, ptx));
        check("cuModuleGetFunction", cuModuleGetFunction(&kernel, module, "k"));
        for (uintptr_t t = 0; t < n_threads; t++)
            check("pthread_create", pthread_create(&threads[t], NULL, launch_all, (void *)t));
        for (unsigned t = 0; t < n_threads; t++) pthread_join(threads[t], NULL);
        check("cuCtxSynchronize", cuCtxSynchronize());
        bad = look(got);
        check("cuModuleUnload", cuModuleUnload(module));
    }
    free(threads), free(got), free(ptx);
    if (!bad) puts("ok");
    return bad;
}
