/* The kernels of kernels.cu as a CUDA program, to be run under margay: what a tool costs, kernel by kernel. Prints the
 * median CPU time of a launch in milliseconds, all threads together. usage: margay run --device cpu -t TOOL --
 * bench-cpu-kernels kernels.ptx [repeats [name]]; `make bench-cpu-tools` runs it under none and others. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* of the driver; no header of CUDA is used in this repository */
typedef uint64_t CUdeviceptr;
extern int cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned, int),
    cuModuleLoad(void **, const char *), cuModuleGetFunction(void **, void *, const char *);
extern int cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t),
    cuCtxSynchronize(void);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);

enum { N = 4 << 20, M = 1024, BODIES = 8192, S = 2048, OPTIONS = 1 << 20, NODES = 1 << 18, MAX_RUNS = 64 };

#define CALL(x)                                                                                                        \
    do {                                                                                                               \
        int code = (int)(x);                                                                                           \
        if (code) fprintf(stderr, "%s: %d\n", #x, code), exit(1);                                                      \
    } while (0)

static void *mod;
static const char *only; /* kernel */
static CUdeviceptr f[3], u[2], graph[3];

static CUdeviceptr filled(size_t words, uint32_t (*at)(size_t))
{
    uint32_t *host = malloc(words * 4);
    CUdeviceptr d;
    if (!host) exit(1);
    for (size_t i = 0; i < words; i++) host[i] = at ? at(i) : 0;
    CALL(cuMemAlloc_v2(&d, words * 4));
    CALL(cuMemcpyHtoD_v2(d, host, words * 4));
    free(host);
    return d;
}

static uint32_t hashed(size_t i)
{
    return (uint32_t)i * 2654435761u ^ (uint32_t)i >> 7;
}
static uint32_t float_at(size_t i)
{
    float v = 0.5f + (float)(hashed(i) >> 8) * 0x1p-24f;
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits;
}
static uint32_t first_at(size_t i)
{
    return (uint32_t)i * 8;
}
static uint32_t edge_at(size_t i)
{
    return hashed(i) % NODES;
}
static uint32_t depth_at(size_t i)
{
    return hashed(i) >> 28 < 4 ? 5 : UINT32_MAX;
}

struct args {
    void *at[8];
    uint64_t v[8];
    unsigned n;
};
static void *put(struct args *a, const void *v, size_t bytes)
{
    memcpy(&a->v[a->n], v, bytes);
    a->at[a->n] = &a->v[a->n];
    return a->at[a->n++];
}
static void put_i(struct args *a, int v)
{
    put(a, &v, 4);
}
static void put_p(struct args *a, CUdeviceptr p)
{
    put(a, &p, 8);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void bench(const char *name, int repeats, unsigned gx, unsigned gy, unsigned bx, unsigned by, struct args *a)
{
    void *fn;
    double t[MAX_RUNS];
    if (only && strcmp(only, name)) return;
    CALL(cuModuleGetFunction(&fn, mod, name));
    for (int r = -1; r < repeats; r++) { /* the first one compiles */
        double s = now_ms();
        CALL(cuLaunchKernel(fn, gx, gy, 1, bx, by, 1, 0, NULL, a->at, NULL));
        CALL(cuCtxSynchronize());
        if (r >= 0) t[r] = now_ms() - s;
    }
    qsort(t, (size_t)repeats, sizeof *t, by_value);
    printf("%s\t%.4f\n", name, t[repeats / 2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int dev;
    void *ctx;
    int repeats = argc > 2 ? atoi(argv[2]) : 7;
    only = argc > 3 ? argv[3] : NULL;
    if (argc < 2 || repeats < 1 || repeats > MAX_RUNS) return 2;
    CALL(cuInit(0));
    CALL(cuDeviceGet(&dev, 0));
    CALL(cuCtxCreate_v2(&ctx, 0, dev));
    CALL(cuModuleLoad(&mod, argv[1]));
    for (int k = 0; k < 3; k++) f[k] = filled(N, float_at);
    u[0] = filled(N, hashed);
    u[1] = filled(N, NULL);
    graph[0] = filled(NODES + 1, first_at);
    graph[1] = filled((size_t)NODES * 8, edge_at);
    graph[2] = filled(NODES, depth_at);
    float half = 0.5f;
    struct args a = {.n = 0};
    put_i(&a, N), put(&a, &half, 4), put_p(&a, f[0]), put_p(&a, f[2]);
    bench("saxpy", repeats, N / 256, 1, 256, 1, &a);
    a.n = 0, put_i(&a, M), put_p(&a, f[0]), put_p(&a, f[1]), put_p(&a, f[2]);
    bench("matmul", repeats, M / 16, M / 16, 16, 16, &a);
    a.n = 0, put_i(&a, N), put_p(&a, f[0]), put_p(&a, f[2]);
    bench("reduce", repeats, N / 512, 1, 256, 1, &a);
    a.n = 0, put_i(&a, BODIES), put_p(&a, f[0]), put_p(&a, f[2]);
    bench("nbody", repeats, BODIES / 256, 1, 256, 1, &a);
    a.n = 0, put_i(&a, N), put_p(&a, u[0]), put_p(&a, u[1]);
    bench("histogram", repeats, 256, 1, 256, 1, &a);
    a.n = 0, put_i(&a, S), put_p(&a, f[0]), put_p(&a, f[2]);
    bench("stencil", repeats, S / 16, S / 16, 16, 16, &a);
    a.n = 0, put_i(&a, OPTIONS), put_p(&a, f[0]), put_p(&a, f[0] + 4 * OPTIONS), put_p(&a, f[0] + 8 * OPTIONS),
    put_p(&a, f[2]), put_p(&a, f[2] + 4 * OPTIONS);
    bench("blackscholes", repeats, OPTIONS / 256, 1, 256, 1, &a);
    a.n = 0, put_i(&a, M), put_i(&a, 256), put_p(&a, u[1]);
    bench("mandelbrot", repeats, M * M / 256, 1, 256, 1, &a);
    a.n = 0, put_i(&a, NODES), put_p(&a, graph[0]), put_p(&a, graph[1]), put_p(&a, graph[2]), put_i(&a, 5);
    bench("bfs", repeats, NODES / 256, 1, 256, 1, &a);
    a.n = 0, put_i(&a, N), put_p(&a, u[0]), put_p(&a, u[1]), put_p(&a, f[2]);
    bench("scan", repeats, N / 512, 1, 512, 1, &a);
    return 0;
}
