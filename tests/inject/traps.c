/* A driver-API program that does what an instrumenting library in front of a GPU's driver may break. It prints
 * "<what>: ok" or what went wrong, and asks Margay for nothing but to be switched (onoff). usage: traps WHAT
 *   spin       a kernel spins on a flag that a kernel launched for the first time, in another stream, sets
 *   capture    a thread captures in global mode while launches of another end and are collected
 *   incapture  the first launch of a kernel is inside a capture
 *   threads    64 threads launch at once, each in its own stream
 *   contexts   two contexts, a module unloaded and loaded again, a context destroyed with work in flight
 *   reset      the primary context is reset with work in flight, and used again
 *   update     graphs: executables changed, updated, disabled nodes, clones, child graphs, 50 replays
 *              unsynchronized
 *   onoff      switched off and on while executable graphs live, made, replayed and updated in either state
 *   recapture  20000 graphs, each captured, instantiated, launched and destroyed
 *   alive      ends by exit() with an executable graph that it has launched
 *   last       ends by exit() while a kernel waits for what a handler of exit sets
 *   endless    ends by exit() while a kernel runs for ever
 *   leave      ends by _exit with work in flight
 *   reload     a module is loaded, used and unloaded, 300 times
 *   many       20000 launches without a synchronization */
#include <dlfcn.h>
#include <margay/control.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *handle;
#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
static const char text[] = HEAD
    ".visible .global .u32 hits;\n"
    ".visible .entry add(.param .u64 p, .param .u32 n)\n{\n.reg .pred %q;\n.reg .b32 %i, %n, %a;\n.reg .b64 %p, %o;\nld.param.u64 %p, [p];\nld.param.u32 %n, [n];\n"
    "mov.u32 %i, %ctaid.x;\nmov.u32 %a, %ntid.x;\nmul.lo.u32 %i, %i, %a;\nmov.u32 %a, %tid.x;\nadd.u32 %i, %i, %a;\nsetp.ge.u32 %q, %i, %n;\n@%q bra D;\n"
    "mul.wide.u32 %o, %i, 4;\nadd.u64 %p, %p, %o;\nld.global.u32 %a, [%p];\nadd.u32 %a, %a, 1;\nst.global.u32 [%p], %a;\nmov.u64 %o, hits;\nred.global.add.u32 [%o], 1;\nD: ret;\n}\n"
    ".visible .entry spin(.param .u64 p)\n{\n.reg .pred %q;\n.reg .b32 %a;\n.reg .b64 %p;\nld.param.u64 %p, [p];\nL: ld.volatile.global.u32 %a, [%p];\nsetp.eq.u32 %q, %a, 0;\n@%q bra L;\nret;\n}\n";
static const char other[] = HEAD
    ".visible .entry set(.param .u64 p)\n{\n.reg .b64 %p;\nld.param.u64 %p, [p];\nst.volatile.global.u32 [%p], 1;\nret;\n}\n"
    ".visible .entry twice(.param .u64 p, .param .u32 n)\n{\n.reg .pred %q;\n.reg .b32 %i, %n, %a;\n.reg .b64 %p, %o;\nld.param.u64 %p, [p];\nld.param.u32 %n, [n];\n"
    "mov.u32 %i, %tid.x;\nsetp.ge.u32 %q, %i, %n;\n@%q bra D;\nmul.wide.u32 %o, %i, 4;\nadd.u64 %p, %p, %o;\nld.global.u32 %a, [%p];\nshl.b32 %a, %a, 1;\nst.global.u32 [%p], %a;\nD: ret;\n}\n";

#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDevicePrimaryCtxRetain, (handle *, int))                                                                       \
    F(cuDevicePrimaryCtxReset_v2, (int))                                                                               \
    F(cuCtxCreate_v2, (handle *, unsigned, int))                                                                       \
    F(cuCtxDestroy_v2, (handle))                                                                                       \
    F(cuCtxSetCurrent, (handle))                                                                                       \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleLoadData, (handle *, const void *))                                                                      \
    F(cuModuleUnload, (handle))                                                                                        \
    F(cuModuleGetFunction, (handle *, handle, const char *))                                                           \
    F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, handle, const char *))                                              \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    F(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                                               \
    F(cuMemsetD8_v2, (uint64_t, unsigned char, size_t))                                                                \
    F(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    F(cuStreamCreate, (handle *, unsigned))                                                                            \
    F(cuStreamSynchronize, (handle))                                                                                   \
    F(cuStreamBeginCapture_v2, (handle, int))                                                                          \
    F(cuStreamEndCapture, (handle, handle *))                                                                          \
    F(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                                             \
    F(cuGraphLaunch, (handle, handle))                                                                                 \
    F(cuGraphGetNodes, (handle, handle *, size_t *))                                                                   \
    F(cuGraphNodeSetEnabled, (handle, handle, unsigned))                                                               \
    F(cuGraphKernelNodeGetParams_v2, (handle, void *))                                                                 \
    F(cuGraphExecKernelNodeSetParams_v2, (handle, handle, const void *))                                               \
    F(cuGraphExecUpdate_v2, (handle, handle, void *))                                                                  \
    F(cuGraphClone, (handle *, handle))                                                                                \
    F(cuGraphCreate, (handle *, unsigned))                                                                             \
    F(cuGraphAddChildGraphNode, (handle *, handle, const handle *, size_t, handle))                                    \
    F(cuGraphExecDestroy, (handle))                                                                                    \
    F(cuGraphDestroy, (handle))                                                                                        \
    F(cuLaunchKernel,                                                                                                  \
      (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))
#define F(name, args) static int(*name) args;
LIST
#undef F

    static const char *what;
static void check(int rc, const char *call)
{
    if (!rc) return;
    printf("%s: %s: error %d\n", what, call, rc);
    fflush(stdout);
    _exit(3);
}
#define DO(name, ...) check(name(__VA_ARGS__), #name)

static handle ctx, module, f_add, f_spin;
static uint64_t p;
enum { N = 1000 };

static void begin(void)
{
    DO(cuModuleLoadData, &module, text);
    DO(cuModuleGetFunction, &f_add, module, "add");
    DO(cuModuleGetFunction, &f_spin, module, "spin");
    DO(cuMemAlloc_v2, &p, 4096);
    DO(cuMemsetD8_v2, p, 0, 4096);
}
static int add(uint64_t to, handle stream)
{
    unsigned n = N;
    void *params[] = {&to, &n};
    return cuLaunchKernel(f_add, 4, 1, 1, 256, 1, 1, 0, stream, params, NULL);
}
static int with_pointer(handle f, uint64_t to, handle stream)
{
    void *params[] = {&to};
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}
static void expect(uint64_t at, unsigned want)
{
    static unsigned host[N];
    DO(cuMemcpyDtoH_v2, host, at, sizeof host);
    for (int i = 0; i < N; i++)
        if (host[i] != want) {
            printf("%s: element %d is %u, not %u\n", what, i, host[i], want);
            exit(2);
        }
}

static void spin(void)
{
    handle s[2], m2, set;
    uint64_t flag;
    void *host;
    DO(cuStreamCreate, &s[0], 1);
    DO(cuStreamCreate, &s[1], 1);
    DO(cuMemHostAlloc, &host, 64, 2);
    flag = (uint64_t)(uintptr_t)host;
    DO(cuModuleLoadData, &m2, other);
    DO(cuModuleGetFunction, &set, m2, "set");
    for (int round = 0; round < 2; round++) { /* the second time nothing is launched first */
        *(volatile unsigned *)host = 0;
        DO(with_pointer, f_spin, flag, s[0]);
        usleep(20000);
        DO(with_pointer, set, flag, s[1]);
        DO(cuStreamSynchronize, s[0]);
        DO(cuStreamSynchronize, s[1]);
    }
    *(volatile unsigned *)host = 1;
    DO(with_pointer, set, flag, s[1]); /* idle: now it can be loaded */
    DO(cuStreamSynchronize, s[1]);
}

static volatile int over;
static void *launch_on(void *arg)
{
    handle s;
    DO(cuCtxSetCurrent, ctx);
    (void)arg;
    DO(cuStreamCreate, &s, 1);
    while (!over) {
        for (int i = 0; i < 5; i++)
            if (add(p, s)) /* launches are allowed while another thread captures */
                printf("%s: launch refused\n", what), exit(2);
        usleep(1000); /* a synchronization would not be allowed: another thread captures */
    }
    return NULL;
}
static void capture(void)
{
    handle s, g, x;
    pthread_t t;
    uint64_t q;
    DO(cuMemAlloc_v2, &q, 4096);
    DO(cuMemsetD8_v2, q, 0, 4096);
    DO(cuStreamCreate, &s, 1);
    DO(add, q, NULL); /* its twin is there */
    DO(cuCtxSynchronize);
    pthread_create(&t, NULL, launch_on, NULL);
    for (int i = 0; i < 20; i++) {
        DO(cuStreamBeginCapture_v2, s, 0);
        DO(add, q, s);
        usleep(5000); /* long enough for a pass of whoever collects */
        DO(add, q, s);
        DO(cuStreamEndCapture, s, &g);
        DO(cuGraphInstantiateWithFlags, &x, g, 0);
        DO(cuGraphLaunch, x, s);
    }
    over = 1;
    pthread_join(t, NULL);
    DO(cuCtxSynchronize);
    expect(q, 41);
}
static void incapture(void)
{
    handle s, g, x;
    DO(cuStreamCreate, &s, 1);
    DO(cuStreamBeginCapture_v2, s, 0);
    DO(add, p, s);
    DO(add, p, s);
    DO(cuStreamEndCapture, s, &g);
    DO(cuGraphInstantiateWithFlags, &x, g, 0);
    for (int i = 0; i < 3; i++) DO(cuGraphLaunch, x, s);
    DO(cuStreamSynchronize, s);
    expect(p, 6);
}

static void *thread(void *arg)
{
    handle s;
    uint64_t q;
    (void)arg;
    DO(cuCtxSetCurrent, ctx);
    DO(cuStreamCreate, &s, 1);
    DO(cuMemAlloc_v2, &q, 4096);
    DO(cuMemsetD8_v2, q, 0, 4096);
    DO(cuCtxSynchronize);
    for (int i = 0; i < 20; i++) DO(add, q, s);
    DO(cuStreamSynchronize, s);
    expect(q, 20);
    return NULL;
}
static void threads(void)
{
    pthread_t t[64];
    for (int i = 0; i < 64; i++) pthread_create(&t[i], NULL, thread, NULL);
    for (int i = 0; i < 64; i++) pthread_join(t[i], NULL);
}

static void contexts(void)
{
    handle c[2];
    uint64_t hits, q;
    size_t bytes;
    unsigned n;
    for (int k = 0; k < 2; k++) {
        DO(cuCtxCreate_v2, &c[k], 0, 0);
        for (int round = 0; round < 2; round++) { /* the module again: variables of its own, at another place */
            DO(cuMemAlloc_v2, &q, (size_t)4096 << round);
            begin();
            DO(add, p, NULL);
            DO(cuCtxSynchronize);
            expect(p, 1);
            DO(cuModuleGetGlobal_v2, &hits, &bytes, module, "hits");
            DO(cuMemcpyDtoH_v2, &n, hits, 4);
            if (n != N) printf("contexts: %u hits\n", n), exit(2);
            if (!round) DO(cuModuleUnload, module);
        }
    }
    for (int i = 0; i < 50; i++) DO(add, p, NULL);
    DO(cuCtxDestroy_v2, c[1]);
    DO(cuCtxSetCurrent, c[0]);
    DO(cuCtxSynchronize);
}
static void reset(void)
{
    for (int i = 0; i < 50; i++) DO(add, p, NULL);
    DO(cuDevicePrimaryCtxReset_v2, 0);
    DO(cuDevicePrimaryCtxRetain, &ctx, 0);
    DO(cuCtxSetCurrent, ctx);
    begin();
    DO(add, p, NULL);
    DO(cuCtxSynchronize);
    expect(p, 1);
}

/* 0 + add, twice in a row, for every replay: counted on paper in the comments. */
static void update(void)
{
    handle s, g, g2, copy, outer, x, y, z, nodes[4], child;
    size_t n = 4;
    uint64_t q;
    struct {
        handle func;
        unsigned d[7];
        void **params, **extra;
        handle kernel, ctx;
    } k;
    unsigned few = N;
    DO(cuMemAlloc_v2, &q, 4096);
    DO(cuMemsetD8_v2, q, 0, 4096);
    DO(cuStreamCreate, &s, 1);
    DO(cuStreamBeginCapture_v2, s, 0);
    DO(add, p, s);
    DO(add, p, s);
    DO(cuStreamEndCapture, s, &g);
    DO(cuGraphGetNodes, g, nodes, &n);
    DO(cuGraphInstantiateWithFlags, &x, g, 0);
    for (int i = 0; i < 50; i++) DO(cuGraphLaunch, x, s); /* 100 adds to p */
    DO(cuGraphKernelNodeGetParams_v2, nodes[0], &k);
    void *changed[] = {&q, &few};
    k.params = changed;
    DO(cuGraphExecKernelNodeSetParams_v2, x, nodes[0], &k);
    DO(cuGraphLaunch, x, s); /* 1 to q, 1 to p */
    DO(cuGraphNodeSetEnabled, x, nodes[0], 0);
    DO(cuGraphLaunch, x, s); /* 1 to p */
    DO(cuGraphNodeSetEnabled, x, nodes[0], 1);
    DO(cuStreamBeginCapture_v2, s, 0);
    DO(add, q, s);
    DO(add, q, s);
    DO(cuStreamEndCapture, s, &g2);
    long info[3];
    DO(cuGraphExecUpdate_v2, x, g2, info);
    DO(cuGraphLaunch, x, s); /* 2 to q */
    DO(cuGraphClone, &copy, g);
    DO(cuGraphInstantiateWithFlags, &y, copy, 0);
    DO(cuGraphLaunch, y, s); /* 2 to p */
    DO(cuGraphCreate, &outer, 0);
    DO(cuGraphAddChildGraphNode, &child, outer, NULL, 0, g);
    DO(cuGraphInstantiateWithFlags, &z, outer, 0);
    DO(cuGraphLaunch, z, s); /* 2 to p */
    DO(cuGraphExecDestroy, z);
    DO(cuStreamSynchronize, s);
    expect(p, 106);
    expect(q, 3);
}
static handle captured(handle s)
{
    handle g;
    DO(cuStreamBeginCapture_v2, s, 0);
    DO(add, p, s);
    DO(cuStreamEndCapture, s, &g);
    return g;
}
static void replay(handle x, int times, handle s)
{
    for (int i = 0; i < times; i++) DO(cuGraphLaunch, x, s);
}
/* counted: 3 + 2 + 1 + 1 + 1 = 8 of 14; native: 1 + 2 + 1 + 2 */
static void onoff(void)
{
    handle s, x, y;
    long info[3];
    DO(cuStreamCreate, &s, 1);
    DO(cuGraphInstantiateWithFlags, &x, captured(s), 0);
    replay(x, 3, s); /* made on */
    mg_control_set(0);
    DO(add, p, s);   /* native */
    replay(x, 2, s); /* as it was made */
    DO(cuGraphInstantiateWithFlags, &y, captured(s), 0);
    replay(y, 2, s); /* made off: native */
    mg_control_set(1);
    replay(y, 1, s); /* native */
    replay(x, 1, s);
    DO(add, p, s);
    mg_control_set(0);
    DO(cuGraphExecUpdate_v2, x, captured(s), info);
    mg_control_set(1);
    replay(x, 2, s); /* updated while off: native */
    DO(cuGraphExecUpdate_v2, x, captured(s), info);
    replay(x, 1, s);
    DO(cuStreamSynchronize, s);
    expect(p, 14);
}
static void recapture(void)
{
    handle s, g, x;
    DO(cuStreamCreate, &s, 1);
    for (int i = 0; i < 20000; i++) {
        DO(cuStreamBeginCapture_v2, s, 0);
        DO(add, p, s);
        DO(cuStreamEndCapture, s, &g);
        DO(cuGraphInstantiateWithFlags, &x, g, 0);
        DO(cuGraphDestroy, g);
        DO(cuGraphLaunch, x, s);
        DO(cuGraphExecDestroy, x);
    }
    DO(cuStreamSynchronize, s);
    expect(p, 20000);
}
static void alive(void)
{
    handle s, g, x;
    DO(cuStreamCreate, &s, 1);
    DO(cuStreamBeginCapture_v2, s, 0);
    DO(add, p, s);
    DO(cuStreamEndCapture, s, &g);
    DO(cuGraphInstantiateWithFlags, &x, g, 0);
    for (int i = 0; i < 3; i++) DO(cuGraphLaunch, x, s);
    DO(cuStreamSynchronize, s);
    expect(p, 3);
}
static void *awaited;
static void set_awaited(void)
{
    *(volatile unsigned *)awaited = 1;
}
static void last(void)
{
    DO(cuMemHostAlloc, &awaited, 64, 2);
    *(volatile unsigned *)awaited = 0;
    atexit(set_awaited);
    DO(with_pointer, f_spin, (uint64_t)(uintptr_t)awaited, NULL);
    DO(add, p, NULL);
}
static void reload(void)
{
    for (int i = 0; i < 300; i++) {
        DO(cuModuleUnload, module);
        DO(cuModuleLoadData, &module, text);
        DO(cuModuleGetFunction, &f_add, module, "add");
        DO(add, p, NULL);
        if (i % 3) DO(cuCtxSynchronize);
    }
    DO(cuCtxSynchronize);
    expect(p, 300);
}
static void many(void)
{
    for (int i = 0; i < 20000; i++) DO(add, p, NULL);
    DO(cuCtxSynchronize);
    expect(p, 20000);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } all[] = {{"spin", spin},         {"capture", capture},     {"incapture", incapture}, {"threads", threads},
               {"contexts", contexts}, {"reset", reset},         {"update", update},       {"many", many},
               {"reload", reload},     {"recapture", recapture}, {"onoff", onoff},         {"alive", alive},
               {"last", last}};
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc != 2 || !lib) return 1;
#define F(name, args) *(void **)&name = dlsym(lib, #name);
    LIST
#undef F
        what = argv[1];
    DO(cuInit, 0);
    DO(cuDevicePrimaryCtxRetain, &ctx, 0);
    DO(cuCtxSetCurrent, ctx);
    begin();
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, what)) all[i].fn();
    if (!strcmp(what, "leave"))
        for (int i = 0; i < 50; i++) DO(add, p, NULL);
    if (!strcmp(what, "endless")) {
        void *host;
        DO(cuMemHostAlloc, &host, 64, 2);
        DO(add, p, NULL);
        DO(cuCtxSynchronize);
        DO(with_pointer, f_spin, (uint64_t)(uintptr_t)host, NULL);
    }
    printf("%s: ok\n", what);
    fflush(stdout);
    if (!strcmp(what, "leave")) _exit(7);
    return 0;
}
