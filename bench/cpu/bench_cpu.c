/* The CPU device against native C + OpenMP (-O3 -march=native, and with -ffast-math) on ten kernels,
 * interleaved in one process, medians. usage: bench-cpu kernels.ptx [-t THREADS] [-r REPEATS] [-k NAME]
 * [-d cpu|emu] [-j]: -j prints JSON. Results are compared first; a kernel that differs is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "device/device.h"
#include "device/mem.h"
#include "native.h"
#include "ptx/ptx.h"

enum { N = 4 << 20, M = 1024, BODIES = 8192, S = 2048, OPTIONS = 1 << 20, NODES = 1 << 18, MAX_RUNS = 64 };

static const struct mg_device_ops *ops;
static struct mg_device *dev;
static struct mg_dmod *mod;
static float *fx, *fy, *fz, *gz;
static unsigned *ux, *uy, *gy;
static int *ix, *iy, *iz, *gd;

static void *room(size_t n)
{
    uint64_t p = mg_mem_alloc(n, 256, MG_ALLOC_DEVICE);
    if (!p) exit(3);
    return (void *)p;
}

/* ---- launches ----------------------------------------------------------------------------------------- */

struct args { char at[128]; uint32_t n; };
static void put(struct args *a, const void *v, uint32_t bytes)
{
    a->n = (a->n + bytes - 1) / bytes * bytes;
    memcpy(a->at + a->n, v, bytes);
    a->n += bytes;
}
static void put_i(struct args *a, int v) { put(a, &v, 4); }
static void put_f(struct args *a, float v) { put(a, &v, 4); }
static void put_p(struct args *a, const void *p) { put(a, &p, 8); }

static void launch(const char *name, uint32_t gx, uint32_t gy_, uint32_t bx, uint32_t by, const struct args *a)
{
    struct mg_fault fault;
    struct mg_launch l = {.kernel = ops->kernel(mod, name), .grid = {gx, gy_, 1}, .block = {bx, by, 1}, .params = a->at, .param_bytes = a->n};
    ops->launch(dev, &l, NULL, &fault);
    if (fault.kind) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
}

/* ---- the kernels: on the device, native strict and fast -------------------------------------------------- */

struct bench { const char *name; void (*device)(void), (*strict)(void), (*fast)(void); bool (*same)(void); };

#define BOTH(name, call_strict, call_fast)                  \
    static void name##_s(void) { call_strict; }             \
    static void name##_f(void) { call_fast; }

static bool close_to(const float *a, const float *b, int n, float rel)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= rel * fmaxf(1, fabsf(b[i])))) return false;
    return true;
}

static void saxpy_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, N), put_f(&a, 0.5f), put_p(&a, fx), put_p(&a, fz);
    launch("saxpy", N / 256, 1, 256, 1, &a);
}
BOTH(saxpy, saxpy_strict(N, 0.5f, fx, gz), saxpy_fast(N, 0.5f, fx, gz))
static bool saxpy_ok(void)
{
    memcpy(fz, fy, N * 4);
    memcpy(gz, fy, N * 4);
    saxpy_d(), saxpy_s();
    return close_to(fz, gz, N, 1e-6f);
}

static void matmul_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, M), put_p(&a, fx), put_p(&a, fy), put_p(&a, fz);
    launch("matmul", M / 16, M / 16, 16, 16, &a);
}
BOTH(matmul, matmul_strict(M, fx, fy, gz), matmul_fast(M, fx, fy, gz))
static bool matmul_ok(void)
{
    matmul_d(), matmul_s();
    return close_to(fz, gz, M * M, 1e-4f);
}

static float sum_s, sum_f;
static void reduce_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, N), put_p(&a, fx), put_p(&a, fz);
    launch("reduce", N / 512, 1, 256, 1, &a);
}
BOTH(reduce, sum_s = reduce_strict(N, fx), sum_f = reduce_fast(N, fx))
static bool total_ok(void)
{
    double t = 0, want = 0;
    for (int i = 0; i < N / 512; i++) t += fz[i];
    for (int i = 0; i < N; i++) want += fx[i];
    return fabs(t - want) < 1e-4 * want;
}
static bool reduce_ok(void)
{
    reduce_d();
    return total_ok();
}
static void reduce_shfl_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, N), put_p(&a, fx), put_p(&a, fz);
    launch("reduce_shfl", N / 512, 1, 256, 1, &a);
}
BOTH(shuffles, shuffles_strict(N, fx, gz), shuffles_fast(N, fx, gz))
static bool reduce_shfl_ok(void)
{
    reduce_shfl_d();
    return total_ok();
}

static void nbody_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, BODIES), put_p(&a, fx), put_p(&a, fz);
    launch("nbody", BODIES / 256, 1, 256, 1, &a);
}
BOTH(nbody, nbody_strict(BODIES, (struct body *)fx, (struct body *)gz), nbody_fast(BODIES, (struct body *)fx, (struct body *)gz))
static bool nbody_ok(void)
{
    nbody_d(), nbody_s();
    return close_to(fz, gz, BODIES * 4, 1e-3f);
}

static void histogram_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, N), put_p(&a, ux), put_p(&a, uy);
    launch("histogram", 256, 1, 256, 1, &a);
}
BOTH(histogram, histogram_strict(N, ux, gy), histogram_fast(N, ux, gy))
static bool histogram_ok(void)
{
    memset(uy, 0, 1024);
    memset(gy, 0, 1024);
    histogram_d(), histogram_s();
    return !memcmp(uy, gy, 1024);
}

static void stencil_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, S), put_p(&a, fx), put_p(&a, fz);
    launch("stencil", S / 16, S / 16, 16, 16, &a);
}
BOTH(stencil, stencil_strict(S, fx, gz), stencil_fast(S, fx, gz))
static bool stencil_ok(void)
{
    stencil_d(), stencil_s();
    return close_to(fz, gz, S * S, 1e-5f);
}

static void blackscholes_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, OPTIONS), put_p(&a, fx), put_p(&a, fx + OPTIONS), put_p(&a, fx + 2 * OPTIONS), put_p(&a, fz), put_p(&a, fz + OPTIONS);
    launch("blackscholes", OPTIONS / 256, 1, 256, 1, &a);
}
BOTH(blackscholes, blackscholes_strict(OPTIONS, fx, fx + OPTIONS, fx + 2 * OPTIONS, gz, gz + OPTIONS),
     blackscholes_fast(OPTIONS, fx, fx + OPTIONS, fx + 2 * OPTIONS, gz, gz + OPTIONS))
static bool blackscholes_ok(void)
{
    blackscholes_d(), blackscholes_s();
    return close_to(fz, gz, 2 * OPTIONS, 2e-5f);
}

static void mandelbrot_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, M), put_i(&a, 256), put_p(&a, iz);
    launch("mandelbrot", M * M / 256, 1, 256, 1, &a);
}
BOTH(mandelbrot, mandelbrot_strict(M, 256, gd), mandelbrot_fast(M, 256, gd))
static bool mandelbrot_ok(void)
{
    int differ = 0;
    mandelbrot_d(), mandelbrot_s();
    for (int i = 0; i < M * M; i++) differ += iz[i] != gd[i];
    return differ < M * M / 200; /* the compilers contract differently */
}

static int *depth0;
static void bfs_d(void)
{
    struct args a = {.n = 0};
    memcpy(iz, depth0, NODES * 4);
    put_i(&a, NODES), put_p(&a, ix), put_p(&a, iy), put_p(&a, iz), put_i(&a, 5);
    launch("bfs", NODES / 256, 1, 256, 1, &a);
}
BOTH(bfs, (memcpy(gd, depth0, NODES * 4), bfs_strict(NODES, ix, iy, gd, 5)), (memcpy(gd, depth0, NODES * 4), bfs_fast(NODES, ix, iy, gd, 5)))
static bool bfs_ok(void)
{
    bfs_d(), bfs_s();
    return !memcmp(iz, gd, NODES * 4);
}

static void scan_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, N), put_p(&a, ux), put_p(&a, uy), put_p(&a, iz);
    launch("scan", N / 512, 1, 512, 1, &a);
}
BOTH(scan, scan_strict(N, ux, gy), scan_fast(N, ux, gy))
static bool scan_ok(void)
{
    scan_d(), scan_s();
    return !memcmp(uy, gy, N * 4);
}

#define ROW(n) {#n, n##_d, n##_s, n##_f, n##_ok}
static const struct bench benches[] = {ROW(saxpy), ROW(matmul), ROW(reduce), ROW(nbody), ROW(histogram), ROW(stencil), ROW(blackscholes), ROW(mandelbrot), ROW(bfs), ROW(scan),
                                       {"reduce_shfl", reduce_shfl_d, reduce_s, reduce_f, reduce_shfl_ok},
                                       {"shuffles", reduce_shfl_d, shuffles_s, shuffles_f, reduce_shfl_ok}}; /* the same against COX's form */

/* ---- measuring ---------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, by_value);
    return t[n / 2];
}
/* One thread is measured by the time the process ran, which other load does not count in. */
static int n_threads = 1;
static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(n_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static double timed(void (*fn)(void))
{
    uint64_t t = now();
    fn();
    return (double)(now() - t) * 1e-6;
}

static void fill(void)
{
    uint32_t seed = 12345;
    fx = room(4 * (size_t)N), fy = room(4 * (size_t)N), fz = room(4 * (size_t)N);
    ux = room(4 * (size_t)N), uy = room(4 * (size_t)N);
    ix = room(4 * (NODES + 1)), iy = room(4 * (size_t)NODES * 16), iz = room(4 * (size_t)M * M);
    gz = malloc(4 * (size_t)N), gy = malloc(4 * (size_t)N), gd = malloc(4 * (size_t)M * M), depth0 = malloc(4 * NODES);
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525 + 1013904223;
        fx[i] = 0.5f + (float)(seed >> 8) * 0x1p-24f;
        fy[i] = (float)(seed >> 9) * 0x1p-23f;
        ux[i] = seed >> 11;
    }
    memset(fz, 0, 4 * (size_t)N);
    int e = 0;
    for (int v = 0; v < NODES; v++) {
        ix[v] = e;
        seed = seed * 1664525 + 1013904223;
        for (unsigned k = 0; k < (seed >> 20 & 15); k++) {
            uint32_t h = (uint32_t)v * 2654435761u + k * 40503u;
            iy[e++] = (int)((h ^ h >> 15) % NODES);
        }
        depth0[v] = seed >> 28 < 4 ? 5 : -1;
    }
    ix[NODES] = e;
}

static void overhead(int repeats, bool json)
{
    double t[MAX_RUNS];
    struct args a = {.n = 0};
    put_i(&a, 0);
    static const uint32_t ctas[] = {1, 16384};
    for (int k = 0; k < 2; k++) {
        launch("empty", ctas[k], 1, 32, 1, &a);
        for (int r = 0; r < repeats; r++) {
            uint64_t s = now();
            for (int i = 0; i < 20; i++) launch("empty", ctas[k], 1, 32, 1, &a);
            t[r] = (double)(now() - s) * 1e-3 / 20;
        }
        double m = median(t, repeats);
        if (json) printf("  \"empty_%u_us\": %.3f,\n", ctas[k], m);
        else printf("empty launch of %u CTAs: %.2f us\n", ctas[k], m);
    }
}

int main(int argc, char **argv)
{
    int threads = 1, repeats = 7, opt;
    const char *only = NULL, *device = "cpu";
    bool json = false;
    while ((opt = getopt(argc, argv, "t:r:k:d:j")) > 0) {
        if (opt == 't') threads = atoi(optarg);
        else if (opt == 'r') repeats = atoi(optarg);
        else if (opt == 'k') only = optarg;
        else if (opt == 'd') device = optarg;
        else if (opt == 'j') json = true;
        else return 2;
    }
    if (optind >= argc || repeats < 1 || repeats > MAX_RUNS) return 2;
    setenv("MARGAY_CPU_TIER", "sync", 0);
    setenv("MARGAY_CPU_STORE", "off", 0); /* first launches are cold ones */
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_device_opts opts = {.size = sizeof opts, .workers = (uint32_t)threads};
    char *text;
    size_t bytes;
    struct mg_module *ir;
    ops = strcmp(device, "emu") ? mg_cpu_ops() : &mg_emu_ops;
    if (ops->open(&dev, &opts, &d) || mg_io_read(argv[optind], &text, &bytes, &d) || mg_ptx_parse(text, bytes, "kernels", &ir, &d) || ops->module_load(dev, ir, &mod, &d)) {
        fprintf(stderr, "%s\n", mg_diag_first(&d, MG_ERR_DEVICE));
        return 1;
    }
    n_threads = threads;
    threads_strict(threads);
    threads_fast(threads);
    fill();
    double log_strict = 0, log_fast = 0, worst = 0;
    int n = 0, status = 0;
    if (json) printf("{\n  \"device\": \"%s\", \"threads\": %d, \"kernels\": [\n", device, threads);
    else printf("%-13s %9s %9s %9s %9s %8s %8s\n", "", "first ms", "ms", "native", "fastmath", "/native", "/fast");
    for (size_t k = 0; k < sizeof benches / sizeof *benches; k++) {
        const struct bench *b = &benches[k];
        double t[3][MAX_RUNS];
        if (only && strcmp(only, b->name)) continue;
        double first = timed(b->device);
        if (!b->same()) {
            fprintf(stderr, "%s: the results differ\n", b->name);
            status = 1;
        }
        for (int r = 0; r < repeats; r++) {
            t[0][r] = timed(b->device);
            t[1][r] = timed(b->strict);
            t[2][r] = timed(b->fast);
        }
        double m[3];
        for (int i = 0; i < 3; i++) m[i] = median(t[i], repeats);
        if (strcmp(b->name, "reduce_shfl") && strcmp(b->name, "shuffles")) {
            log_strict += log(m[0] / m[1]);
            log_fast += log(m[0] / m[2]);
            worst = fmax(worst, m[0] / m[1]);
            n++;
        }
        if (json) printf("    {\"kernel\": \"%s\", \"first_ms\": %.3f, \"ms\": %.4f, \"native_ms\": %.4f, \"fastmath_ms\": %.4f}%s\n", b->name, first, m[0], m[1], m[2], k + 1 < sizeof benches / sizeof *benches && !only ? "," : "");
        else printf("%-13s %9.2f %9.3f %9.3f %9.3f %8.2f %8.2f\n", b->name, first, m[0], m[1], m[2], m[0] / m[1], m[0] / m[2]);
        fflush(stdout);
    }
    if (json) printf("  ],\n");
    if (!only) overhead(repeats, json);
    if (json) printf("  \"geomean_native\": %.4f, \"geomean_fastmath\": %.4f, \"worst_native\": %.4f\n}\n", exp(log_strict / n), exp(log_fast / n), worst);
    else printf("geomean %.2f x native, %.2f x fast-math; worst %.2f x native\n", exp(log_strict / n), exp(log_fast / n), worst);
    ops->module_unload(mod);
    ops->close(dev);
    return status;
}
