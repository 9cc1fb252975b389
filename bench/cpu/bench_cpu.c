/* The CPU device against native C + OpenMP (-O3 -march=native, and with -ffast-math), against OpenCL where one is
 * installed, and for operations of warps against COX's form, interleaved in one process, medians. With several threads,
 * how much faster they are than one: ours and native, each in a row of launches after a rest, the first left out.
 * usage: bench-cpu kernels.ptx kernels.cl [-t THREADS] [-r REPEATS] [-k NAME] [-d cpu|emu] [-n] [-j]: -n leaves OpenCL
 * out, -j prints JSON. Results are compared first; a kernel that differs is named.
 * Each contestant runs twice in its turn, and the second run counts. */
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
#include "opencl.h"
#include "ptx/ptx.h"

enum { N = 4 << 20, M = 1024, BODIES = 8192, S = 2048, OPTIONS = 1 << 20, NODES = 1 << 18, MAX_RUNS = 64 };

static const struct mg_device_ops *ops;
static struct mg_device *dev, *devices[2]; /* on all threads; on one, where that is not the same */
static struct mg_dmod *mod, *mods[2];
static float *fx, *fy, *fz, *gz;
static unsigned *ux, *uy, *gy;
static int *ix, *iy, *iz, *gd;

static void *room(size_t n)
{
    uint64_t p = mg_mem_alloc(n, 256, MG_ALLOC_DEVICE);
    if (!p) exit(3);
    opencl_share((void *)p, n);
    return (void *)p;
}

/* ---- launches ----------------------------------------------------------------------------------------- */

static void put(struct args *a, const void *v, uint32_t bytes, bool pointer)
{
    a->n = (a->n + bytes - 1) / bytes * bytes;
    memcpy(a->at + a->n, v, bytes);
    a->from[a->count] = a->n;
    a->bytes[a->count] = bytes;
    a->pointer[a->count++] = pointer;
    a->n += bytes;
}
static void put_i(struct args *a, int v)
{
    put(a, &v, 4, false);
}
static void put_f(struct args *a, float v)
{
    put(a, &v, 4, false);
}
static void put_p(struct args *a, const void *p)
{
    put(a, &p, 8, true);
}

static bool on_opencl; /* where launches go */
static void launch(const char *name, uint32_t gx, uint32_t gy_, uint32_t bx, uint32_t by, const struct args *a)
{
    struct mg_fault fault;
    struct mg_launch l = {.kernel = ops->kernel(mod, name),
                          .grid = {gx, gy_, 1},
                          .block = {bx, by, 1},
                          .params = a->at,
                          .param_bytes = a->n};
    if (on_opencl) {
        opencl_launch(name, (uint32_t[2]){gx, gy_}, (uint32_t[2]){bx, by}, a);
        return;
    }
    ops->launch(dev, &l, NULL, &fault);
    if (fault.kind) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
}

/* ---- the kernels: on the device, native strict and fast -------------------------------------------------- */

struct bench {
    const char *name;
    void (*device)(void), (*strict)(void), (*fast)(void);
    bool (*same)(void);
};

#define BOTH(name, call_strict, call_fast)                                                                             \
    static void name##_s(void)                                                                                         \
    {                                                                                                                  \
        call_strict;                                                                                                   \
    }                                                                                                                  \
    static void name##_f(void)                                                                                         \
    {                                                                                                                  \
        call_fast;                                                                                                     \
    }

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
static bool total_ok(const float *parts)
{
    double t = 0, want = 0;
    for (int i = 0; i < N / 512; i++) t += parts[i];
    for (int i = 0; i < N; i++) want += fx[i];
    return fabs(t - want) < 1e-4 * want;
}
static bool reduce_ok(void)
{
    reduce_d();
    return total_ok(fz);
}
static void reduce_shfl_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, N), put_p(&a, fx), put_p(&a, fz);
    launch("reduce_shfl", N / 512, 1, 256, 1, &a);
}

/* Operations of warps: small launches, many times. */
enum { W = 128 << 10, TIMES = 16 };
static void warp_op(const char *name, const void *in, void *out, void *more)
{
    struct args a = {.n = 0};
    put_p(&a, in), put_p(&a, out);
    if (more) put_p(&a, more);
    for (int i = 0; i < TIMES; i++) launch(name, W / 256, 1, 256, 1, &a);
}
static void warp_sum_d(void)
{
    warp_op("warp_sum", fx, fz, NULL);
}
static void warp_scan_d(void)
{
    warp_op("warp_scan", ux, uy, NULL);
}
static void warp_vote_d(void)
{
    warp_op("warp_vote", fx, uy, NULL);
}
static void warp_compact_d(void)
{
    warp_op("warp_compact", fx, fz, uy);
}

_Thread_local struct cox_place cox_place;
_Thread_local int cox_warp[32];
static void cox_run(cox_block_fn *block)
{
#pragma omp parallel for
    for (int b = 0; b < N / 512; b++) {
        cox_place = (struct cox_place){256, 256, b};
        block(N, fx, gz);
    }
}
static void cox_gcc(void)
{
    cox_run(cox_block_gcc);
}
#ifdef COX_CLANG
static void cox_clang(void)
{
    cox_run(cox_block_clang);
}
#else
#define cox_clang NULL
#endif
static void cox_warps(cox_warp_fn *block, const void *in, void *out, void *more)
{
    for (int i = 0; i < TIMES; i++) {
#pragma omp parallel for
        for (int b = 0; b < W / 256; b++) {
            cox_place = (struct cox_place){256, 256, b};
            block(in, out, more);
        }
    }
}
#ifdef COX_CLANG
#define COX_BOTH(name, in, out, more)                                                                                  \
    static void name##_gcc(void)                                                                                       \
    {                                                                                                                  \
        cox_warps(cox_##name##_gcc, in, out, more);                                                                    \
    }                                                                                                                  \
    static void name##_clang(void)                                                                                     \
    {                                                                                                                  \
        cox_warps(cox_##name##_clang, in, out, more);                                                                  \
    }
#else
#define COX_BOTH(name, in, out, more)                                                                                  \
    static void name##_gcc(void)                                                                                       \
    {                                                                                                                  \
        cox_warps(cox_##name##_gcc, in, out, more);                                                                    \
    }                                                                                                                  \
    static void (*const name##_clang)(void) = NULL;
#endif
COX_BOTH(sum, fx, gz, NULL)
COX_BOTH(scan, ux, gy, NULL)
COX_BOTH(vote, fx, gy, NULL)
COX_BOTH(compact, fx, gz, gy)

static bool near(float a, float b)
{
    return fabsf(a - b) <= 1e-5f * fabsf(b);
}
/* What one warp is to give, and what both have. */
static bool warp_ok(int op, int w)
{
    const float *x = fx + 32 * w;
    unsigned n = 0, sum = 0, all = 1, any = 0;
    float total = 0;
    bool ok = true;
    for (int l = 0; l < 32; l++) {
        sum += ux[32 * w + l];
        total += x[l];
        all &= x[l] > 0.52f;
        any |= x[l] > 1.48f;
        if (op == 1) ok = ok && uy[32 * w + l] == sum && gy[32 * w + l] == sum;
        if (op == 3 && x[l] > 1.0f) ok = ok && fz[32 * w + n] == x[l] && gz[32 * w + n] == x[l], n++;
    }
    if (op == 0) ok = near(fz[w], total) && near(gz[w], total);
    if (op == 2) ok = uy[w] == all + 2 * any && gy[w] == all + 2 * any;
    return ok && (op != 3 || (uy[w] == n && gy[w] == n));
}
static bool reduce_shfl_ok(void)
{
    reduce_shfl_d();
    return total_ok(fz);
}

static void nbody_d(void)
{
    struct args a = {.n = 0};
    put_i(&a, BODIES), put_p(&a, fx), put_p(&a, fz);
    launch("nbody", BODIES / 256, 1, 256, 1, &a);
}
BOTH(nbody, nbody_strict(BODIES, (struct body *)fx, (struct body *)gz),
     nbody_fast(BODIES, (struct body *)fx, (struct body *)gz))
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
    put_i(&a, OPTIONS), put_p(&a, fx), put_p(&a, fx + OPTIONS), put_p(&a, fx + 2 * OPTIONS), put_p(&a, fz),
        put_p(&a, fz + OPTIONS);
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
BOTH(bfs, (memcpy(gd, depth0, NODES * 4), bfs_strict(NODES, ix, iy, gd, 5)),
     (memcpy(gd, depth0, NODES * 4), bfs_fast(NODES, ix, iy, gd, 5)))
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

#define ROW(n)                                                                                                         \
    {                                                                                                                  \
#n, n##_d, n##_s, n##_f, n##_ok                                                                                \
    }
static const struct bench benches[] = {
    ROW(saxpy),
    ROW(matmul),
    ROW(reduce),
    ROW(nbody),
    ROW(histogram),
    ROW(stencil),
    ROW(blackscholes),
    ROW(mandelbrot),
    ROW(bfs),
    ROW(scan),
    {"reduce_shfl", reduce_shfl_d, reduce_s, reduce_f, reduce_shfl_ok}}; /* not in the means */
enum { TEN = 10 };

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
/* OpenMP's threads spin for a while when they have done their part, on Intel for as long as a launch takes: on several
 * threads everybody begins when they have gone to sleep. A thread that sleeps may take 3 ms to wake up, for which
 * native code waits in its first launch and ours does not: who begins warm has launched before for as long as 8 ms. */
static void rest(void (*fn)(void), bool warm)
{
    nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
    uint64_t t = now();
    while (warm && now() - t < 8000000) fn();
}
static double timed(void (*fn)(void), bool warm)
{
    if (n_threads > 1)
        rest(fn, warm);
    else if (warm)
        fn();
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
    gz = room(4 * (size_t)N), gy = room(4 * (size_t)N), gd = room(4 * (size_t)M * M),
    depth0 = malloc(4 * NODES); /* the same kind of pages for all */
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

/* Times of the same work, interleaved: medians in milliseconds, 0 for those that are not there. Each finds the caches
 * as itself left them (warm), or as the one before it did: the second of two with the same arrays gains by that. */
enum { DEVICE, STRICT, FAST, OPENCL, KINDS };
static void interleave(void (*const fn[KINDS])(void), int repeats, bool warm, double m[KINDS])
{
    double t[KINDS][MAX_RUNS];
    for (int r = 0; r < repeats; r++)
        for (int i = 0; i < KINDS; i++) {
            on_opencl = i == OPENCL;
            if (fn[i]) t[i][r] = timed(fn[i], warm);
        }
    on_opencl = false;
    for (int i = 0; i < KINDS; i++) m[i] = fn[i] ? median(t[i], repeats) : 0;
}

static void overhead(int repeats, bool opencl, bool json)
{
    double t[MAX_RUNS];
    struct args a = {.n = 0};
    put_i(&a, 0);
    static const uint32_t ctas[] = {1, 16384};
    for (int k = 0; k < 2; k++)
        for (on_opencl = false;; on_opencl = true) {
            launch("empty", ctas[k], 1, 32, 1, &a);
            for (int r = 0; r < repeats; r++) {
                uint64_t s = now();
                for (int i = 0; i < 20; i++) launch("empty", ctas[k], 1, 32, 1, &a);
                t[r] = (double)(now() - s) * 1e-3 / 20;
            }
            double m = median(t, repeats);
            if (json)
                printf("  \"empty_%u_%sus\": %.3f,\n", ctas[k], on_opencl ? "opencl_" : "", m);
            else
                printf("empty launch of %u CTAs%s: %.2f us\n", ctas[k], on_opencl ? " with OpenCL" : "", m);
            if (!opencl || on_opencl) break;
        }
    on_opencl = false;
}

/* reduce_shfl against COX's form of it; beside them (in OpenCL's place) what reading the array takes. */
static bool shuffles(int repeats, bool json)
{
    void (*const fn[KINDS])(void) = {reduce_shfl_d, cox_gcc, cox_clang, reduce_f};
    double m[KINDS];
    bool ok = true;
    for (int i = STRICT; i <= FAST; i++)
        if (fn[i]) fn[i](), ok = total_ok(gz) && ok;
    if (!ok) fprintf(stderr, "COX's form: the results differ\n");
    for (int warm = 1; warm >= 0; warm--) {
        interleave(fn, repeats, warm, m);
        const char *how = warm ? "" : "_apart";
        if (json)
            printf("  \"shuffles%s_ms\": %.4f, \"shuffles%s_cox_gcc_ms\": %.4f, \"shuffles%s_cox_clang_ms\": %.4f,\n",
                   how, m[DEVICE], how, m[STRICT], how, m[FAST]);
        else {
            printf("shuffles %s: ours %.3f ms; as COX emits them: %.3f ms by gcc, %.2f times ours",
                   warm ? "one launch after another" : "with others' launches between", m[DEVICE], m[STRICT],
                   m[STRICT] / m[DEVICE]);
            if (fn[FAST]) printf("; %.3f ms by clang, %.2f times", m[FAST], m[FAST] / m[DEVICE]);
            printf("; gcc -ffast-math sums the array in %.3f ms\n", m[OPENCL]);
        }
    }
    return ok;
}

/* Warps' operations on data in cache against COX's form. */
static bool warp_ops(const char *only, int repeats, bool json)
{
    static const char *const names[] = {"warp_sum", "warp_scan", "warp_vote", "warp_compact"};
    void (*const fns[][KINDS])(void) = {{warp_sum_d, sum_gcc, sum_clang, NULL},
                                        {warp_scan_d, scan_gcc, scan_clang, NULL},
                                        {warp_vote_d, vote_gcc, vote_clang, NULL},
                                        {warp_compact_d, compact_gcc, compact_clang, NULL}};
    bool ok = true;
    for (int op = 0; op < 4; op++) {
        double m[KINDS];
        if (only && strcmp(only, names[op])) continue;
        for (int i = STRICT; i <= FAST; i++) {
            if (!fns[op][i]) continue;
            bool same = true;
            fns[op][DEVICE](), fns[op][i]();
            for (int w = 0; w < W / 32; w++) same = same && warp_ok(op, w);
            if (!same) fprintf(stderr, "%s: the results differ\n", names[op]);
            ok = ok && same;
        }
        interleave(fns[op], repeats, true, m);
        double ns = 1e6 / TIMES / (W / 32);
        if (json)
            printf("  \"%s_ns\": %.3f, \"%s_cox_gcc_ns\": %.3f, \"%s_cox_clang_ns\": %.3f,\n", names[op],
                   m[DEVICE] * ns, names[op], m[STRICT] * ns, names[op], m[FAST] * ns);
        else {
            printf("%-13s %6.1f ns a warp; as COX emits it: %.1f ns by gcc, %.1f times ours", names[op], m[DEVICE] * ns,
                   m[STRICT] * ns, m[STRICT] / m[DEVICE]);
            if (fns[op][FAST]) printf("; %.1f ns by clang, %.1f times", m[FAST] * ns, m[FAST] / m[DEVICE]);
            printf("\n");
        }
        fflush(stdout);
    }
    return ok;
}

/* ---- several threads against one ------------------------------------------------------------------------------ */

static void use(int which, int threads)
{
    dev = devices[which];
    mod = mods[which];
    threads_strict(which ? 1 : threads);
}

/* Three launches in a row after a rest: how long one takes. */
static double row(void (*fn)(void))
{
    rest(fn, true);
    uint64_t t = now();
    for (int i = 0; i < 3; i++) fn();
    return (double)(now() - t) * 1e-6 / 3;
}

static void scaling(const char *only, int threads, int repeats, bool json)
{
    if (!json) printf("%-13s %9s %9s %9s %9s %9s %9s\n", "", "1: ms", "all: ms", "times", "native 1", "all", "times");
    for (int k = 0; k < TEN; k++) {
        const struct bench *b = &benches[k];
        double t[4][MAX_RUNS], m[4];
        if (only && strcmp(only, b->name)) continue;
        for (int r = -1; r < repeats; r++)
            for (int i = 0; i < 4; i++) {
                use(!(i & 1), threads);
                double ms = row(i < 2 ? b->device : b->strict);
                if (r >= 0) t[i][r] = ms;
            }
        for (int i = 0; i < 4; i++) m[i] = median(t[i], repeats);
        if (json)
            printf("  \"scaling_%s\": [%.4f, %.4f, %.4f, %.4f],\n", b->name, m[0], m[1], m[2], m[3]);
        else
            printf("%-13s %9.3f %9.3f %9.2f %9.3f %9.3f %9.2f\n", b->name, m[0], m[1], m[0] / m[1], m[2], m[3],
                   m[2] / m[3]);
        fflush(stdout);
    }
    use(0, threads);
}

int main(int argc, char **argv)
{
    int threads = 1, repeats = 7, opt;
    const char *only = NULL, *device = "cpu";
    bool json = false, opencl = true;
    while ((opt = getopt(argc, argv, "t:r:k:d:nj")) > 0) {
        if (opt == 't')
            threads = atoi(optarg);
        else if (opt == 'r')
            repeats = atoi(optarg);
        else if (opt == 'k')
            only = optarg;
        else if (opt == 'd')
            device = optarg;
        else if (opt == 'n')
            opencl = false;
        else if (opt == 'j')
            json = true;
        else
            return 2;
    }
    if (argc - optind != 2 || repeats < 1 || repeats > MAX_RUNS) return 2;
    setenv("MARGAY_CPU_TIER", "sync", 0);
    setenv("MARGAY_CPU_STORE", "off", 0); /* first launches are cold ones */
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_device_opts opts = {.size = sizeof opts, .workers = (uint32_t)threads};
    char *text, what[256] = "";
    size_t bytes;
    double build_ms = 0;
    struct mg_module *ir;
    ops = strcmp(device, "emu") ? mg_cpu_ops() : &mg_emu_ops;
    if (mg_io_read(argv[optind], &text, &bytes, &d)) return 1;
    for (int i = 0; i < (threads > 1 ? 2 : 1); i++) {
        if (i) opts.workers = 1;
        if (ops->open(&devices[i], &opts, &d) || mg_ptx_parse(text, bytes, "kernels", &ir, &d) ||
            ops->module_load(devices[i], ir, &mods[i], &d)) {
            fprintf(stderr, "%s\n", mg_diag_first(&d, MG_ERR_DEVICE));
            return 1;
        }
    }
    dev = devices[0];
    mod = mods[0];
    n_threads = threads;
    threads_strict(threads);
    threads_fast(threads);
    if (opencl && !(opencl = opencl_open(argv[optind + 1], threads, what, sizeof what, &build_ms)))
        fprintf(stderr, "not measured against OpenCL: %s\n", what);
    fill();
    double log_sum[KINDS] = {0}, worst = 0, worst_opencl = INFINITY;
    int n = 0, status = 0;
    if (json)
        printf(
            "{\n  \"device\": \"%s\", \"threads\": %d, \"opencl\": \"%s\", \"opencl_build_ms\": %.1f, \"kernels\": [\n",
            device, threads, opencl ? what : "", build_ms);
    else {
        if (opencl) printf("OpenCL: %s, %.0f ms to build\n", what, build_ms);
        printf("%-13s %9s %9s %9s %9s %9s %8s %8s %8s\n", "", "first ms", "ms", "native", "fastmath", "OpenCL",
               "/native", "/fast", "OpenCL/");
    }
    for (size_t k = 0; k < sizeof benches / sizeof *benches; k++) {
        const struct bench *b = &benches[k];
        void (*const fn[KINDS])(void) = {b->device, b->strict, b->fast, opencl && k < TEN ? b->device : NULL};
        double m[KINDS];
        if (only && strcmp(only, b->name)) continue;
        double first = timed(b->device, false);
        for (on_opencl = false;; on_opencl = true) {
            if (!b->same()) {
                fprintf(stderr, "%s%s: the results differ\n", b->name, on_opencl ? " with OpenCL" : "");
                status = 1;
            }
            if (!fn[OPENCL] || on_opencl) break;
        }
        interleave(fn, repeats, true, m);
        if (k < TEN) {
            for (int i = STRICT; i < KINDS; i++) log_sum[i] += log(m[DEVICE] / m[i]);
            worst = fmax(worst, m[DEVICE] / m[STRICT]);
            worst_opencl = fmin(worst_opencl, m[OPENCL] / m[DEVICE]);
            n++;
        }
        if (json)
            printf(
                "    {\"kernel\": \"%s\", \"first_ms\": %.3f, \"ms\": %.4f, \"native_ms\": %.4f, \"fastmath_ms\": %.4f, \"opencl_ms\": %.4f}%s\n",
                b->name, first, m[DEVICE], m[STRICT], m[FAST], m[OPENCL],
                k + 1 < sizeof benches / sizeof *benches && !only ? "," : "");
        else
            printf("%-13s %9.2f %9.3f %9.3f %9.3f %9.3f %8.2f %8.2f %8.2f\n", b->name, first, m[DEVICE], m[STRICT],
                   m[FAST], m[OPENCL], m[DEVICE] / m[STRICT], m[DEVICE] / m[FAST], m[OPENCL] / m[DEVICE]);
        fflush(stdout);
    }
    if (json) printf("  ],\n");
    if ((!only || !strcmp(only, "reduce_shfl")) && !shuffles(repeats, json)) status = 1;
    if (!warp_ops(only, repeats, json)) status = 1;
    if (threads > 1) scaling(only, threads, repeats, json);
    if (!only) overhead(repeats, opencl, json);
    double mean[KINDS];
    for (int i = 0; i < KINDS; i++) mean[i] = n ? exp(log_sum[i] / n) : 0;
    if (json)
        printf("  \"geomean_opencl\": %.4f, \"worst_opencl\": %.4f,\n", opencl && n ? 1 / mean[OPENCL] : 0,
               opencl && n ? worst_opencl : 0);
    else if (opencl && n)
        printf("OpenCL takes %.2f times as long (geomean), at least %.2f times\n", 1 / mean[OPENCL], worst_opencl);
    if (json)
        printf("  \"geomean_native\": %.4f, \"geomean_fastmath\": %.4f, \"worst_native\": %.4f\n}\n", mean[STRICT],
               mean[FAST], worst);
    else if (n)
        printf("geomean %.2f x native, %.2f x fast-math; worst %.2f x native\n", mean[STRICT], mean[FAST], worst);
    for (int i = 0; i < 2 && devices[i]; i++) {
        ops->module_unload(mods[i]);
        ops->close(devices[i]);
    }
    return status;
}
