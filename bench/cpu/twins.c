/* Kernels of gen-twins on the CPU device against their twins in C, by gcc and by clang, on one core: CPU time, the
 * least of several turns of RUNS, so that other load on the machine shows little. Results are compared first.
 * usage: bench-cpu-twins kernels.ptx [-r TURNS] [-k NUMBER]; prints what C was compiled for; a row a kernel:
 * milliseconds of ours, gcc's, clang's, and ours over the faster of these; then the faster of both with -ffast-math
 * (the C library's functions as vectors, sums and quotients by other steps), and ours over that; at last the geometric
 * means by family and of all. Exit status 1: a result differs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"

enum { ROOM = 4 << 20 /* floats of each array */, MAX_FAMILIES = 32, RUNS = 4 };

typedef void native_fn(int, const float *, const float *, const int *, float *);
enum { GCC, CLANG, GCC_FAST, CLANG_FAST, CODES, OURS = CODES };
extern native_fn *const native_gcc[], *const native_gcc_fast[];
#ifdef WITH_CLANG
extern native_fn *const native_clang[], *const native_clang_fast[];
static native_fn *const *const codes[CODES] = {native_gcc, native_clang, native_gcc_fast, native_clang_fast};
#else
static native_fn *const *const codes[CODES] = {[GCC] = native_gcc, [GCC_FAST] = native_gcc_fast};
#endif

static const struct row {
    const char *what;
    struct mg_dim3 grid, block;
    int n, out;
} rows[] = {
#define KERNEL(i, what, gx, gy, gz, bx, by, bz, n, out) {what, {gx, gy, gz}, {bx, by, bz}, n, out},
#include "list.h"
};

static const struct mg_device_ops *ops;
static struct mg_device *dev;
static struct mg_dmod *mod;
static float *a, *b, *out, *want;
static int *ix;

static void *room(void)
{
    uint64_t p = mg_mem_alloc(ROOM * 4ull, 256, MG_ALLOC_DEVICE);
    if (!p) exit(3);
    memset((void *)p, 0, ROOM * 4ull);
    return (void *)p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void on_device(unsigned i)
{
    struct {
        int n;
        const void *a, *b, *ix, *out;
    } params = {rows[i].n, a, b, ix, out};
    char name[16];
    struct mg_fault fault;
    snprintf(name, sizeof name, "k%u", i);
    struct mg_launch l = {.kernel = ops->kernel(mod, name), .params = &params, .param_bytes = sizeof params};
    l.grid = rows[i].grid;
    l.block = rows[i].block;
    ops->launch(dev, &l, NULL, &fault);
    if (fault.kind) {
        fprintf(stderr, "%s\n", fault.text);
        exit(1);
    }
}

static void in_c(unsigned code, unsigned i)
{
    codes[code][i](rows[i].n, a, b, ix, want);
}

/* Approximate functions and another order of sums: within 1e-3, but for 1 in 1,000 that went another way at a branch */
static bool same(unsigned i)
{
    int bad = 0;
    for (int k = 0; k < rows[i].out; k++) {
        if (fabsf(out[k] - want[k]) <= 1e-3f * fmaxf(1, fabsf(want[k])) || ++bad <= rows[i].out / 1000) continue;
        printf("k%u (%s): out[%d] is %g, in C %g\n", i, rows[i].what, k, (double)out[k], (double)want[k]);
        return false;
    }
    return true;
}

struct family {
    char name[32];
    double sum, fast;
    unsigned n;
};
static struct family families[MAX_FAMILIES];
static void tell_family(const char *what, double ratio, double fast)
{
    unsigned k = 0, n = (unsigned)strcspn(what, ", ");
    while (families[k].n && (strlen(families[k].name) != n || strncmp(families[k].name, what, n))) k++;
    snprintf(families[k].name, sizeof families[k].name, "%.*s", (int)n, what);
    families[k].sum += log(ratio), families[k].fast += log(fast);
    families[k].n++;
}

/* Milliseconds, the least of a turn of RUNS: the first finds the caches and the branch history of another code. */
static double timed(unsigned code, unsigned i)
{
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        if (code == OURS)
            on_device(i);
        else
            in_c(code, i);
        least = fmin(least, now() - start);
    }
    return least;
}

/* The least of `turns` turns of each code */
static void measure(unsigned i, int turns, double t[OURS + 1])
{
    for (unsigned k = 0; k <= OURS; k++) t[k] = INFINITY;
    for (int r = 0; r < turns; r++)
        for (unsigned k = 0; k <= OURS; k++)
            if (k == OURS || codes[k]) t[k] = fmin(t[k], timed(k, i));
}

static void fill(void)
{
    uint32_t x = 1;
    for (int i = 0; i < ROOM; i++) {
        x = x * 1664525u + 1013904223u;
        a[i] = 0.5f + (float)(x >> 8) * 0x1p-24f;
        b[i] = 0.5f + (float)(x * 2654435761u >> 8) * 0x1p-24f;
        ix[i] = (int)(x >> 9);
    }
}

static bool open_device(const char *path)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_module *m;
    struct mg_device_opts opts = {.size = sizeof opts, .workers = 1};
    char *text = NULL;
    size_t n;
    setenv("MARGAY_CPU_TIER", "sync", 1);
    ops = mg_cpu_ops();
    bool ok = !mg_io_read(path, &text, &n, &d) && !ops->open(&dev, &opts, &d) && !mg_ptx_parse(text, n, path, &m, &d) &&
              !ops->module_load(dev, m, &mod, &d);
    if (!ok) fprintf(stderr, "%s\n", mg_diag_first(&d, MG_ERR_INPUT));
    free(text);
    mg_diag_release(&d);
    return ok;
}

int main(int argc, char **argv)
{
    int turns = 3, only = -1, opt;
    double total = 0, total_fast = 0;
    unsigned n = 0, differ = 0, over = 0;
    while ((opt = getopt(argc, argv, "r:k:")) != -1)
        if (opt == 'r')
            turns = atoi(optarg);
        else if (opt == 'k')
            only = atoi(optarg);
    if (optind >= argc || !open_device(argv[optind])) return 2;
    a = room(), b = room(), out = room(), want = room(), ix = room();
    fill();
    printf("C: -O3 -march=" ARCH "; fast: -ffast-math, too\n%-4s %-40s %-12s %9s %9s %9s %6s %9s %6s\n", "", "kernel",
           "block", "ours ms", "gcc", "clang", "ratio", "fast", "ratio");
    for (unsigned i = 0; i < MG_COUNT_OF(rows); i++) {
        double t[OURS + 1];
        char block[32];
        if (only >= 0 && only != (int)i) continue;
        memset(out, 0, ROOM * 4ull);
        memset(want, 0, ROOM * 4ull);
        on_device(i);
        in_c(GCC, i);
        differ += !same(i);
        measure(i, turns, t);
        double c = fmin(t[GCC], t[CLANG]), c_fast = fmin(t[GCC_FAST], t[CLANG_FAST]);
        double ratio = t[OURS] / c, fast = t[OURS] / c_fast;
        snprintf(block, sizeof block, "%ux%ux%u", rows[i].block.x, rows[i].block.y, rows[i].block.z);
        printf("k%-3u %-40s %-12s %9.3f %9.3f %9.3f %6.2f %9.3f %6.2f\n", i, rows[i].what, block, t[OURS], t[GCC],
               t[CLANG], ratio, c_fast, fast);
        fflush(stdout);
        total += log(ratio), total_fast += log(fast);
        over += ratio > 3;
        n++;
        tell_family(rows[i].what, ratio, fast);
    }
    for (unsigned k = 0; families[k].n; k++)
        printf("%-16s %3u kernels, geomean %.2f, over -ffast-math %.2f\n", families[k].name, families[k].n,
               exp(families[k].sum / families[k].n), exp(families[k].fast / families[k].n));
    printf("all: %u kernels, geomean %.2f, %u above 3, over -ffast-math %.2f, %u differ\n", n, exp(total / n), over,
           exp(total_fast / n), differ);
    return differ > 0;
}
