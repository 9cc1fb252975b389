/* Host cost of launches and graph replays, and whether two streams overlap: run it as it is and under
 * `margay run`, and compare the lines.
 *   launch [empty|overlap|graph]...     needs a driver; prints one line a figure */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *handle;
static int (*init)(unsigned), (*retain)(handle *, int), (*set_ctx)(handle), (*load)(handle *, const void *),
    (*get)(handle *, handle, const char *);
static int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **,
                     void **);
static int (*stream_new)(handle *, unsigned), (*sync)(handle), (*begin)(handle, int), (*end)(handle, handle *),
    (*instantiate)(handle *, handle, unsigned long long);
static int (*graph_launch)(handle, handle), (*alloc)(uint64_t *, size_t);
static handle stream[2], empty, busy;
static double took[200000];

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 p)\n{\n\tret;\n}\n"
    ".visible .entry busy(.param .u64 p, .param .u64 ns)\n{\n\t.reg .u64 %a, %t, %u, %n;\n\t.reg .pred %q;\n\tld.param.u64 %a, [p];\n\tld.param.u64 %n, [ns];\n"
    "\tmov.u64 %t, %globaltimer;\nL:\n\tmov.u64 %u, %globaltimer;\n\tsub.u64 %u, %u, %t;\n\tsetp.lt.u64 %q, %u, %n;\n\t@%q bra L;\n\tst.global.u64 [%a], %u;\n\tret;\n}\n";

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static void print(const char *what, int n, double total)
{
    qsort(took, (size_t)n, sizeof *took, by_size);
    printf("%-40s median %.3f us, p90 %.3f, p99 %.3f, all %.3f each\n", what, took[n / 2], took[n * 9 / 10],
           took[n * 99 / 100], total / n);
}
static void check(int rc, const char *what)
{
    if (rc) {
        printf("%s: error %d\n", what, rc);
        exit(1);
    }
}
static void launches(const char *what, int n, int every)
{
    uint64_t p = 0;
    void *args[] = {&p};
    double start = now_us();
    for (int i = 0; i < n; i++) {
        double t = now_us();
        check(launch(empty, 1, 1, 1, 32, 1, 1, 0, stream[0], args, NULL), "launch");
        took[i] = now_us() - t;
        if (i % every == every - 1) check(sync(stream[0]), "sync");
    }
    check(sync(stream[0]), "sync");
    print(what, n, now_us() - start);
}
static void overlap(void)
{
    uint64_t p, ns = 20000000;
    check(alloc(&p, 64), "alloc");
    void *args[] = {&p, &ns};
    for (int round = 0; round < 3; round++) {
        double start = now_us();
        for (int k = 0; k < 2; k++) check(launch(busy, 1, 1, 1, 32, 1, 1, 0, stream[k], args, NULL), "launch");
        check(sync(stream[0]), "sync");
        check(sync(stream[1]), "sync");
        double all = (now_us() - start) * 1e-3;
        if (round)
            printf("two kernels of 20 ms in two streams      %.2f ms: %s\n", all,
                   all < 30 ? "they overlap" : "one after the other");
    }
}
static void graphs(void)
{
    handle g, x;
    uint64_t p = 0;
    void *args[] = {&p};
    check(begin(stream[0], 0), "capture");
    for (int i = 0; i < 20; i++) check(launch(empty, 1, 1, 1, 32, 1, 1, 0, stream[0], args, NULL), "launch");
    check(end(stream[0], &g), "end of capture");
    check(instantiate(&x, g, 0), "instantiate");
    check(graph_launch(x, stream[0]), "graph");
    check(sync(stream[0]), "sync");
    double start = now_us();
    for (int i = 0; i < 5000; i++) {
        double t = now_us();
        check(graph_launch(x, stream[0]), "graph");
        took[i] = now_us() - t;
        if (i % 50 == 49) check(sync(stream[0]), "sync");
    }
    check(sync(stream[0]), "sync");
    print("replay of 20 empty nodes", 5000, now_us() - start);
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    handle ctx, m;
    if (!lib) {
        printf("%s\n", dlerror());
        return 1;
    }
#define GET(f, name) *(void **)&f = dlsym(lib, name)
    GET(init, "cuInit"), GET(retain, "cuDevicePrimaryCtxRetain"), GET(set_ctx, "cuCtxSetCurrent"),
        GET(load, "cuModuleLoadData");
    GET(get, "cuModuleGetFunction"), GET(launch, "cuLaunchKernel"), GET(stream_new, "cuStreamCreate"),
        GET(sync, "cuStreamSynchronize");
    GET(begin, "cuStreamBeginCapture_v2"), GET(end, "cuStreamEndCapture"),
        GET(instantiate, "cuGraphInstantiateWithFlags");
    GET(graph_launch, "cuGraphLaunch"), GET(alloc, "cuMemAlloc_v2");
    check(init(0), "cuInit");
    check(retain(&ctx, 0), "context");
    check(set_ctx(ctx), "context");
    check(load(&m, text), "module");
    check(get(&empty, m, "empty"), "kernel");
    check(get(&busy, m, "busy"), "kernel");
    for (int k = 0; k < 2; k++) check(stream_new(&stream[k], 1), "stream");
    int n = getenv("LAUNCHES") ? atoi(getenv("LAUNCHES")) : 100000;
    for (int i = 1; i < argc || i == 1; i++) {
        const char *what = i < argc ? argv[i] : "empty";
        if (!strcmp(what, "empty")) {
            launches("warm up", 3000, 500);
            launches("launch, synchronized every 500", n, 500);
            launches("launch, not synchronized", n, n);
        } else if (!strcmp(what, "overlap")) {
            overlap();
        } else if (!strcmp(what, "graph")) {
            graphs();
        }
    }
    return 0;
}
