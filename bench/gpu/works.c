/* Sizes, data and launches of the kernels in kernels.cu. Small sizes are those whose counts are
 * compared with the emulator's. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static uint64_t buffer(struct work *w, size_t bytes)
{
    uint64_t at = 0;
    check(cu.alloc(&at, bytes), "cuMemAlloc");
    w->buffers[w->n_buffers++] = at;
    return at;
}

void work_release(struct work *w)
{
    for (unsigned i = 0; i < w->n_buffers; i++) cu.free(w->buffers[i]);
    w->n_buffers = w->n_launches = w->n_resets = 0;
}

static uint64_t real(float f)
{
    uint64_t v = 0;
    memcpy(&v, &f, sizeof f);
    return v;
}

static void fill(void *module, const char *kernel, uint64_t at, size_t n, uint64_t a, uint64_t b)
{
    void *f;
    uint64_t args[4] = {at, n, a, b};
    void *params[4] = {&args[0], &args[1], &args[2], &args[3]};
    unsigned grid = (unsigned)((n + 255) / 256);
    check(cu.function(&f, module, kernel), kernel);
    check(cu.launch(f, grid > 4096 ? 4096 : grid, 1, 1, 256, 1, 1, 0, NULL, params, NULL), kernel);
    check(cu.sync(), kernel);
}

static uint64_t floats(struct work *w, void *module, size_t n, float lo, float hi)
{
    uint64_t at = buffer(w, n * 4);
    fill(module, "fill_floats", at, n, real(lo), real(hi));
    return at;
}

static uint64_t words(struct work *w, void *module, size_t n, unsigned below)
{
    uint64_t at = buffer(w, n * 4);
    fill(module, "fill_words", at, n, below, 0);
    return at;
}

static void output(struct work *w, uint64_t at, size_t bytes)
{
    w->out = at;
    w->out_bytes = bytes;
}

/* Restores `at` before every run. */
static void keep(struct work *w, uint64_t at, size_t bytes)
{
    uint64_t copy = buffer(w, bytes);
    check(cu.copy(copy, at, bytes), "cuMemcpyDtoD");
    w->resets[w->n_resets].to = at;
    w->resets[w->n_resets].from = copy;
    w->resets[w->n_resets++].bytes = bytes;
}

static struct launch *add(struct work *w, const char *kernel, size_t gx, size_t gy, unsigned bx, unsigned by)
{
    struct launch *l = &w->launches[w->n_launches++];
    *l = (struct launch){.kernel = kernel, .grid = {(unsigned)gx, (unsigned)gy, 1}, .block = {bx, by, 1}};
    return l;
}

static void arg(struct launch *l, uint64_t v)
{
    l->args[l->n_args++] = v;
}

static void setup_saxpy(struct work *w, bool small, void *m)
{
    size_t n = small ? 100000 : 1u << 26;
    uint64_t x = floats(w, m, n, 0, 1), y = floats(w, m, n, 0, 1);
    if (small) keep(w, y, n * 4);
    struct launch *l = add(w, "saxpy", (n + 255) / 256, 1, 256, 1);
    arg(l, x), arg(l, y), arg(l, real(2.5f)), arg(l, n);
    output(w, y, n * 4);
}

static void setup_matmul(struct work *w, bool small, void *m)
{
    size_t n = small ? 64 : 2048;
    uint64_t a = floats(w, m, n * n, -1, 1), b = floats(w, m, n * n, -1, 1), c = buffer(w, n * n * 4);
    struct launch *l = add(w, "matmul", n / 16, n / 16, 16, 16);
    arg(l, a), arg(l, b), arg(l, c), arg(l, n);
    output(w, c, n * n * 4);
}

static void setup_nbody(struct work *w, bool small, void *m)
{
    size_t n = small ? 512 : 98304;
    uint64_t p = floats(w, m, 4 * n, -1, 1), v = floats(w, m, 4 * n, -1, 1);
    keep(w, v, 16 * n);
    struct launch *l = add(w, "nbody", n / 256, 1, 256, 1);
    arg(l, p), arg(l, v), arg(l, n), arg(l, real(1e-5f));
    output(w, v, 16 * n);
}

static void setup_blackscholes(struct work *w, bool small, void *m)
{
    size_t n = small ? 20000 : 1u << 25;
    uint64_t call = buffer(w, n * 4), put = buffer(w, n * 4), s = floats(w, m, n, 5, 30), x = floats(w, m, n, 1, 100),
             t = floats(w, m, n, 0.25f, 10);
    struct launch *l = add(w, "blackscholes", (n + 127) / 128, 1, 128, 1);
    arg(l, call), arg(l, put), arg(l, s), arg(l, x), arg(l, t), arg(l, n);
    output(w, call, n * 4);
}

static void setup_binomial(struct work *w, bool small, void *m)
{
    size_t n = small ? 16 : 20000;
    uint64_t out = buffer(w, n * 4), s = floats(w, m, n, 5, 30), x = floats(w, m, n, 1, 100);
    struct launch *l = add(w, "binomial", n, 1, 256, 1);
    arg(l, out), arg(l, s), arg(l, x), arg(l, 255);
    output(w, out, n * 4);
}

static void setup_mandelbrot(struct work *w, bool small, void *m)
{
    size_t n = small ? 80 : 4096;
    (void)m;
    uint64_t out = buffer(w, n * n * 4);
    struct launch *l = add(w, "mandelbrot", (n + 31) / 32, (n + 7) / 8, 32, 8);
    arg(l, out), arg(l, n), arg(l, n), arg(l, small ? 64 : 600);
    output(w, out, n * n * 4);
}

static unsigned mixed(unsigned x)
{
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* Offsets of n rows with 1 + hash % most entries; returns how many entries there are. */
static size_t rows(struct work *w, size_t n, unsigned most, uint64_t *at)
{
    unsigned *off = malloc((n + 1) * 4), sum = 0;
    for (size_t i = 0; i <= n; i++) {
        off[i] = sum;
        sum += 1 + mixed((unsigned)i) % most;
    }
    *at = buffer(w, (n + 1) * 4);
    check(cu.to_device(*at, off, (n + 1) * 4), "rows");
    size_t total = off[n];
    free(off);
    return total;
}

static void setup_bfs(struct work *w, bool small, void *m)
{
    size_t n = small ? 5000 : 1u << 21;
    uint64_t at, cost = buffer(w, n * 4), changed = buffer(w, 4);
    size_t edges = rows(w, n, 7, &at);
    uint64_t to = words(w, m, edges, (unsigned)n);
    unsigned zero = 0;
    check(cu.set(cost, 0xffffffffu, n), "cost");
    check(cu.to_device(cost, &zero, 4), "cost");
    check(cu.set(changed, 0, 1), "changed");
    keep(w, cost, n * 4);
    for (unsigned level = 0; level < 14; level++) {
        struct launch *l = add(w, "bfs_step", (n + 255) / 256, 1, 256, 1);
        arg(l, at), arg(l, to), arg(l, cost), arg(l, changed), arg(l, n), arg(l, level);
    }
    output(w, cost, n * 4);
}

static void setup_reduce(struct work *w, bool small, void *m)
{
    size_t n = small ? 50000 : 1u << 27, grid = small ? 8 : 132 * 8;
    uint64_t in = floats(w, m, n, 0, 1), out = buffer(w, grid * 4);
    struct launch *l = add(w, "reduce", grid, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, n);
    output(w, out, grid * 4);
}

static void setup_histogram(struct work *w, bool small, void *m)
{
    size_t n = small ? 50000 : 1u << 26, grid = small ? 8 : 132 * 8;
    uint64_t in = words(w, m, n, 65536), out = buffer(w, 1024);
    check(cu.set(out, 0, 256), "bins");
    keep(w, out, 1024);
    struct launch *l = add(w, "histogram", grid, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, n);
    output(w, out, 1024);
}

static void setup_stencil(struct work *w, bool small, void *m)
{
    size_t n = small ? 100 : 8192;
    uint64_t in = floats(w, m, n * n, 0, 1), out = floats(w, m, n * n, 0, 0);
    struct launch *l = add(w, "stencil", (n + 31) / 32, (n + 7) / 8, 32, 8);
    arg(l, in), arg(l, out), arg(l, n), arg(l, n);
    output(w, out, n * n * 4);
}

static void setup_spmv(struct work *w, bool small, void *m)
{
    size_t n = small ? 3000 : 1u << 20;
    uint64_t at;
    size_t entries = rows(w, n, 63, &at);
    uint64_t col = words(w, m, entries, (unsigned)n), val = floats(w, m, entries, -1, 1), x = floats(w, m, n, -1, 1),
             y = buffer(w, n * 4);
    struct launch *l = add(w, "spmv", (n + 255) / 256, 1, 256, 1);
    arg(l, at), arg(l, col), arg(l, val), arg(l, x), arg(l, y), arg(l, n);
    output(w, y, n * 4);
}

static void setup_scan(struct work *w, bool small, void *m)
{
    size_t n = small ? 512 * 20 : 1u << 25;
    uint64_t in = words(w, m, n, 1000), out = buffer(w, n * 4), sums = buffer(w, n / 512 * 4);
    struct launch *l = add(w, "scan", n / 512, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, sums);
    output(w, out, n * 4);
}

static void setup_bitonic(struct work *w, bool small, void *m)
{
    size_t n = small ? 512 * 20 : 1u << 23;
    uint64_t data = words(w, m, n, 1u << 30);
    keep(w, data, n * 4);
    struct launch *l = add(w, "bitonic", n / 512, 1, 256, 1);
    arg(l, data);
    output(w, data, n * 4);
}

static void setup_collatz(struct work *w, bool small, void *m)
{
    size_t n = small ? 3000 : 6u << 20;
    (void)m;
    uint64_t out = buffer(w, n * 4);
    struct launch *l = add(w, "collatz", (n + 255) / 256, 1, 256, 1);
    arg(l, out), arg(l, n);
    output(w, out, n * 4);
}

static void constants(void *m, const char *name, unsigned n)
{
    float v[256];
    uint64_t at;
    size_t bytes;
    for (unsigned i = 0; i < n; i++) v[i] = 1.0f / (float)(i + 2);
    check(cu.global(&at, &bytes, m, name), name);
    check(cu.to_device(at, v, n * 4), name);
}

static void setup_filter(struct work *w, bool small, void *m)
{
    size_t n = small ? 20000 : 1u << 25;
    constants(m, "taps", 32);
    uint64_t in = floats(w, m, n, -1, 1), out = floats(w, m, n, 0, 0);
    struct launch *l = add(w, "filter", (n + 255) / 256, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, n);
    output(w, out, n * 4);
}

static void setup_horner(struct work *w, bool small, void *m)
{
    size_t n = small ? 5000 : 1u << 25;
    constants(m, "coefficients", 256);
    uint64_t in = floats(w, m, n, -0.5f, 0.5f), out = buffer(w, n * 4);
    struct launch *l = add(w, "horner", (n + 255) / 256, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, n), arg(l, 256);
    output(w, out, n * 4);
}

static void setup_calls(struct work *w, bool small, void *m)
{
    size_t n = small ? 5000 : 1u << 23;
    uint64_t in = floats(w, m, n, 0, 1), out = buffer(w, n * 4);
    struct launch *l = add(w, "calls", (n + 255) / 256, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, n);
    output(w, out, n * 4);
}

static void setup_recursion(struct work *w, bool small, void *m)
{
    size_t n = small ? 500 : 1u << 18;
    (void)m;
    uint64_t out = buffer(w, n * 4);
    struct launch *l = add(w, "recursion", (n + 255) / 256, 1, 256, 1);
    arg(l, out), arg(l, n);
    output(w, out, n * 4);
}

static void setup_leavers(struct work *w, bool small, void *m)
{
    size_t n = small ? 256 * 10 : 1u << 22;
    uint64_t in = words(w, m, n, 1u << 20), out = words(w, m, n, 1);
    struct launch *l = add(w, "leavers", n / 256, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, 40);
    output(w, out, n * 4);
}

static void setup_branchy(struct work *w, bool small, void *m)
{
    size_t n = small ? 2000 : 1u << 21;
    uint64_t in = words(w, m, n, 1u << 30), out = buffer(w, n * 4);
    struct launch *l = add(w, "branchy", (n + 255) / 256, 1, 256, 1);
    arg(l, in), arg(l, out), arg(l, n), arg(l, 40);
    output(w, out, n * 4);
}

/* One thread, `rounds` (beyond 2^32) of a loop: see --long. */
void work_long(struct work *w, uint64_t rounds)
{
    *w = (struct work){.name = "long_run"};
    uint64_t out = buffer(w, 8);
    struct launch *l = add(w, "long_run", 1, 1, 1, 1);
    arg(l, out), arg(l, rounds);
    output(w, out, 8);
}

struct work works[] = {
    {.name = "saxpy", .setup = setup_saxpy},
    {.name = "matmul", .setup = setup_matmul},
    {.name = "nbody", .setup = setup_nbody},
    {.name = "blackscholes", .setup = setup_blackscholes},
    {.name = "binomial", .setup = setup_binomial},
    {.name = "mandelbrot", .setup = setup_mandelbrot},
    {.name = "bfs", .setup = setup_bfs},
    {.name = "reduce", .setup = setup_reduce},
    {.name = "histogram", .setup = setup_histogram},
    {.name = "stencil", .setup = setup_stencil},
    {.name = "spmv", .setup = setup_spmv},
    {.name = "scan", .setup = setup_scan},
    {.name = "bitonic", .setup = setup_bitonic},
    {.name = "collatz", .setup = setup_collatz},
    {.name = "filter", .setup = setup_filter},
    {.name = "horner", .setup = setup_horner},
    {.name = "calls", .setup = setup_calls},
    {.name = "recursion", .setup = setup_recursion},
    {.name = "leavers", .setup = setup_leavers},
    {.name = "branchy", .setup = setup_branchy},
};
const unsigned n_works = sizeof works / sizeof *works;
