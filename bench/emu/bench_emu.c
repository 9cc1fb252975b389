/* Emulator speed against native loops: medians of interleaved runs in one process, one core.
 *
 *   bench-emu [KERNELS.ptx]      ratios of emulated to native time, per kernel and ISA build
 *
 * scalar = gcc -O3 (baseline x86-64), native = gcc -O3 -march=native. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"

enum { N = 4 << 20, SIDE = 1024, LIMIT = 256, MM = 512, REPS = 7 };

void saxpy_scalar(int, float, const float *, float *);
void saxpy_native(int, float, const float *, float *);
void mandelbrot_scalar(int, int, int, int *);
void mandelbrot_native(int, int, int, int *);
void matmul_scalar(int, const float *, const float *, float *);
void matmul_native(int, const float *, const float *, float *);

static const char *const kernels[] = {"saxpy", "mandelbrot", "matmul"};
static const char *const isas[] = {"base", "avx2", "avx512"};
static float *x, *y, *a, *b, *c;
static int *pixels;

/* CPU time of this thread: the emulator runs with one worker, the caller. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct emu {
    struct mg_device *dev;
    struct mg_dmod *mod;
};

static uint64_t run_native(int kernel, int build)
{
    uint64_t t = cpu_ns();
    if (kernel == 0)
        (build ? saxpy_native : saxpy_scalar)(N, 2.0f, x, y);
    else if (kernel == 1)
        (build ? mandelbrot_native : mandelbrot_scalar)(SIDE, SIDE, LIMIT, pixels);
    else
        (build ? matmul_native : matmul_scalar)(MM, a, b, c);
    return cpu_ns() - t;
}

static uint64_t run_emu(const struct emu *e, int kernel, uint64_t *insts)
{
    struct {
        int32_t n;
        float a;
        void *x, *y;
    } p0 = {N, 2.0f, x, y};
    struct {
        int32_t w, h, limit, pad;
        void *out;
    } p1 = {SIDE, SIDE, LIMIT, 0, pixels};
    struct {
        int32_t n, pad;
        void *a, *b, *c;
    } p2 = {MM, 0, a, b, c};
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(e->mod, kernels[kernel])};
    l.params = kernel == 0 ? (void *)&p0 : kernel == 1 ? (void *)&p1 : (void *)&p2;
    l.param_bytes = kernel == 0 ? sizeof p0 : kernel == 1 ? sizeof p1 : sizeof p2;
    l.block = kernel == 0 ? (struct mg_dim3){256, 1, 1} : (struct mg_dim3){16, 16, 1};
    l.grid = kernel == 0   ? (struct mg_dim3){N / 256, 1, 1}
             : kernel == 1 ? (struct mg_dim3){SIDE / 16, SIDE / 16, 1}
                           : (struct mg_dim3){MM / 16, MM / 16, 1};
    struct mg_fault fault;
    struct mg_launch_stats stats;
    uint64_t t = cpu_ns();
    mg_emu_ops.launch(e->dev, &l, &stats, &fault);
    t = cpu_ns() - t;
    if (fault.kind) fprintf(stderr, "%s\n", fault.text), exit(1);
    *insts = stats.thread_instructions;
    return t;
}

static int by_value(const void *p, const void *q)
{
    uint64_t u = *(const uint64_t *)p, v = *(const uint64_t *)q;
    return u < v ? -1 : u > v;
}
static double median(uint64_t *t)
{
    qsort(t, REPS, sizeof *t, by_value);
    return (double)t[REPS / 2] * 1e-6;
}

static double cube_root(double v)
{
    double r = v > 1 ? v : 1;
    for (int i = 0; i < 60; i++) r -= (r * r * r - v) / (3 * r * r);
    return r;
}

int main(int argc, char **argv)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct emu e[3];
    char *text;
    size_t bytes;
    const char *path = argc > 1 ? argv[1] : "bench/emu/kernels.ptx";
    if (mg_io_read(path, &text, &bytes, &d)) return fprintf(stderr, "%s\n", mg_diag_first(&d, MG_ERR_IO)), 1;
    struct mg_device_opts opts = {.size = sizeof opts, .properties = "h200", .workers = 1};
    for (int i = 0; i < 3; i++) {
        struct mg_module *m;
        setenv("MARGAY_ISA", isas[i], 1);
        if (mg_emu_ops.open(&e[i].dev, &opts, &d) || mg_ptx_parse(text, bytes, path, &m, &d) ||
            mg_emu_ops.module_load(e[i].dev, m, &e[i].mod, &d))
            return fprintf(stderr, "%s\n", mg_diag_first(&d, MG_ERR_INPUT)), 1;
    }
    x = (float *)mg_mem_alloc(N * 4ull, 0, MG_ALLOC_DEVICE);
    y = (float *)mg_mem_alloc(N * 4ull, 0, MG_ALLOC_DEVICE);
    a = (float *)mg_mem_alloc(MM * MM * 4ull, 0, MG_ALLOC_DEVICE);
    b = (float *)mg_mem_alloc(MM * MM * 4ull, 0, MG_ALLOC_DEVICE);
    c = (float *)mg_mem_alloc(MM * MM * 4ull, 0, MG_ALLOC_DEVICE);
    pixels = (int *)mg_mem_alloc(SIDE * SIDE * 4ull, 0, MG_ALLOC_DEVICE);
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
    for (int i = 0; i < MM * MM; i++) a[i] = (float)(i % 7) - 3, b[i] = (float)(i % 5) - 2;

    double geo[3] = {1, 1, 1};
    printf("%-11s %9s %9s", "ms", "scalar", "native");
    for (int i = 0; i < 3; i++) printf("  | %-6s %7s %7s %6s", isas[i], "/scalar", "/native", "G/s");
    printf("\n");
    for (int k = 0; k < 3; k++) {
        uint64_t t[5][REPS], insts = 0;
        for (int r = 0; r < REPS; r++) {
            t[0][r] = run_native(k, 0);
            t[1][r] = run_native(k, 1);
            for (int i = 0; i < 3; i++) t[2 + i][r] = run_emu(&e[i], k, &insts);
        }
        double s = median(t[0]), n = median(t[1]);
        printf("%-11s %9.2f %9.2f", kernels[k], s, n);
        for (int i = 0; i < 3; i++) {
            double m = median(t[2 + i]);
            geo[i] *= m / n;
            printf("  | %6.2f %7.2f %7.2f %6.2f", m, m / s, m / n, (double)insts / m * 1e-6);
        }
        printf("\n");
    }
    printf("%-31s", "geomean of emulated/native");
    for (int i = 0; i < 3; i++) printf("  | %6s %7s %7.2f %6s", "", "", cube_root(geo[i]), "");
    printf("\n");
    for (int i = 0; i < 3; i++) mg_emu_ops.close(e[i].dev);
    free(text);
    return 0;
}
