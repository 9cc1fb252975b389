/* exchange PATTERN [CTAS] [STEPS]: STEPS supersteps of an exchange between CTAs, 64 threads each. Who reads from whom
 * is known by formula (tests/app/exchanges.py): `margay run -t trace`, then `margay study communication`. */
#include "../common/host.h"

enum { T = 64 };
static int p, steps;
static int *now, *next; /* what the device must hold: the same computed here */
static void *in, *out;

static void exchange_ends(void)
{
    int *t = now;
    void *d = in;
    now = next, next = t;
    in = out, out = d;
}

static void launch(kernel_t k, int n, void *a, void *b)
{
    void *args[] = {&n, a, b};
    dev_launch(k, shape1((unsigned)p), shape1(T), 0, args);
}

static void run_ring(int s)
{
    (void)s;
    launch(KERNEL_OF(ring), p, &in, &out);
    for (int i = 0; i < p * T; i++) next[i] = now[(i / T + 1) % p * T + i % T] + 1;
    exchange_ends();
}

static void run_halo(int s)
{
    (void)s;
    launch(KERNEL_OF(halo), p, &in, &out);
    for (int i = 0; i < p * T; i++) {
        next[i] = now[i];
        if (i % T == 0 && i) next[i] += now[i - 1];
        if (i % T == T - 1 && i < p * T - 1) next[i] += now[i + 1];
    }
    exchange_ends();
}

static void run_tree(int s)
{
    int apart = 1 << s;
    launch(KERNEL_OF(tree), p, &apart, &in);
    for (int c = 0; c + apart < p; c += 2 * apart)
        for (int t = 0; t < T; t++) now[c * T + t] += now[(c + apart) * T + t];
}

static void run_transpose(int s)
{
    int q = 1;
    (void)s;
    while (q * q < p) q++;
    void *args[] = {&q, &in, &out};
    dev_launch(KERNEL_OF(transpose), shape2((unsigned)q, (unsigned)q), shape1(T), 0, args);
    for (int i = 0; i < p * T; i++) next[i] = now[(i / T % q * q + i / T / q) * T + i % T] + 1;
    exchange_ends();
}

static void run_all(int s)
{
    (void)s;
    launch(KERNEL_OF(broadcast), p, &in, &out);
    for (int t = 0; t < T; t++) {
        int v = 0;
        for (int i = 0; i < p; i++) v += now[i * T + t] >> 3;
        for (int i = 0; i < p; i++) next[i * T + t] = v;
    }
    exchange_ends();
}

static void run_personal(int s)
{
    (void)s;
    launch(KERNEL_OF(personal), p, &in, &out);
    for (int i = 0; i < p * T; i++)
        if (i % T < p) next[i] = now[i % T * T + i / T] + 1;
    exchange_ends();
}

/* Scatter and multicast: even steps write `in`, odd ones copy from it. */
static void run_spread(int s, int step)
{
    if (s % 2 == 0) {
        launch(KERNEL_OF(root), p, &s, &in);
        for (int i = 0; i < p * T; i++) now[i] = s + i / T;
        return;
    }
    void *args[] = {&p, &step, &in, &out};
    dev_launch(KERNEL_OF(spread), shape1((unsigned)p), shape1(T), 0, args);
    for (int i = 0; i < p * T; i++) next[i] = now[i / T * step + i % T];
}
static void run_scatter(int s)
{
    run_spread(s, T);
}
static void run_multicast(int s)
{
    run_spread(s, 0);
}

static void run_gather(int s)
{
    if (s % 2 == 0) {
        launch(KERNEL_OF(fill), p, &s, &in);
        for (int i = 0; i < p * T; i++) now[i] = s + i / T;
        return;
    }
    launch(KERNEL_OF(gather), p, &in, &out);
    for (int t = 0; t < T; t++) next[t] = 0;
    for (int i = 0; i < p * T; i++) next[i % T] += now[i];
}

/* Even steps add, odd ones read what all have added. */
static void run_add(int s)
{
    if (s % 2 == 0) {
        launch(KERNEL_OF(add), p, &s, &in);
        for (int i = 0; i < p * T; i++) now[i % T] += s + i / T;
        return;
    }
    int step = 0;
    void *args[] = {&p, &step, &in, &out};
    dev_launch(KERNEL_OF(spread), shape1((unsigned)p), shape1(T), 0, args);
    for (int i = 0; i < p * T; i++) next[i] = now[i % T];
}

static const struct pattern {
    const char *name;
    void (*run)(int step);
} patterns[] = {
    {"ring", run_ring},     {"halo", run_halo},         {"tree", run_tree},       {"transpose", run_transpose},
    {"all", run_all},       {"personal", run_personal}, {"scatter", run_scatter}, {"multicast", run_multicast},
    {"gather", run_gather}, {"add", run_add},
};

int main(int argc, char **argv)
{
    const struct pattern *x = NULL;
    p = arg_or(argc, argv, 2, 16), steps = arg_or(argc, argv, 3, 4);
    for (size_t i = 0; argc > 1 && i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(argv[1], patterns[i].name)) x = &patterns[i];
    if (!x || p < 1 || p > 4096 || steps < 1 || steps > 1000) {
        fprintf(stderr, "exchange ring|halo|tree|transpose|all|personal|scatter|multicast|gather|add [CTAS] [STEPS]\n");
        return 2;
    }
    size_t bytes = (size_t)p * T * sizeof(int);
    now = (int *)malloc(bytes), next = (int *)calloc(1, bytes);
    int *got = (int *)malloc(bytes);
    uint32_t seed = 3;
    for (int i = 0; i < p * T; i++) now[i] = (int)pick(&seed, 64);
    in = dev_alloc(bytes), out = dev_alloc(bytes);
    dev_put(in, now, bytes);
    dev_zero(out, bytes);
    for (int s = 0; s < steps; s++) x->run(s);
    long long wrong = 0;
    dev_get(got, in, bytes);
    for (int i = 0; i < p * T; i++) wrong += got[i] != now[i];
    dev_get(got, out, bytes);
    for (int i = 0; i < p * T && strcmp(x->name, "tree"); i++) wrong += got[i] != next[i];
    return verdict(x->name, wrong);
}
