/* Several devices of one process, asked and used through the driver's calls alone: what each says of itself, contexts,
 * peers, memory, pools, variables, events and waits across devices, peer copies, graphs, and kernels of two devices
 * that wait for one another. Every expected value follows from CUDA's reference or from the numbers that go in. usage:
 * ordinals COUNT, or ordinals list: prints each device's place, from its UUID */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;
/* fill: p[i] = v + i, hits += 1.  meet: mine = 1, until yours is 1. */
static const char
    text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .u32 hits = 5;\n"
        ".visible .entry fill(.param .u64 p, .param .u32 v)\n{\n.reg .b32 %i, %v;\n.reg .b64 %p, %o;\nld.param.u64 %p, [p];\nld.param.u32 %v, [v];\n"
        "mov.u32 %i, %tid.x;\nadd.u32 %v, %v, %i;\nmul.wide.u32 %o, %i, 4;\nadd.u64 %p, %p, %o;\nst.global.u32 [%p], %v;\nmov.u64 %o, hits;\nred.global.add.u32 [%o], 1;\nret;\n}\n"
        ".visible .entry meet(.param .u64 mine, .param .u64 yours)\n{\n.reg .pred %q;\n.reg .b32 %v;\n.reg .b64 %m, %y;\nld.param.u64 %m, [mine];\nld.param.u64 %y, [yours];\n"
        "st.volatile.global.u32 [%m], 1;\nmembar.sys;\nL: ld.volatile.global.u32 %v, [%y];\nsetp.ne.u32 %q, %v, 1;\n@%q bra L;\nret;\n}\n",
    shared_text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .attribute(.managed) .align 4 .u32 common = 9;\n"
        ".visible .global .align 8 .u64 where = generic(common);\n.visible .global .align 4 .u32 own = 3;\n"
        ".visible .entry add(.param .u32 v)\n{\n.reg .b32 %v;\n.reg .b64 %p;\nld.param.u32 %v, [v];\n"
        "mov.u64 %p, common;\nred.global.add.u32 [%p], %v;\nmov.u64 %p, own;\nred.global.add.u32 [%p], %v;\nret;\n}\n";

#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDeviceGetCount, (int *))                                                                                       \
    F(cuDeviceGet, (int *, int))                                                                                       \
    F(cuDeviceGetUuid_v2, (void *, int))                                                                               \
    F(cuDeviceGetPCIBusId, (char *, int, int))                                                                         \
    F(cuDeviceGetByPCIBusId, (int *, const char *))                                                                    \
    F(cuDeviceGetAttribute, (int *, int, int))                                                                         \
    F(cuDeviceCanAccessPeer, (int *, int, int))                                                                        \
    F(cuDeviceGetP2PAttribute, (int *, int, int, int))                                                                 \
    F(cuDeviceGetDefaultMemPool, (handle *, int))                                                                      \
    F(cuDeviceSetMemPool, (int, handle))                                                                               \
    F(cuLibraryLoadData, (handle *, const void *, int *, void **, unsigned, int *, void **, unsigned))                 \
    F(cuLibraryUnload, (handle))                                                                                       \
    F(cuLibraryGetKernel, (handle *, handle, const char *))                                                            \
    F(cuLibraryGetGlobal, (uint64_t *, size_t *, handle, const char *))                                                \
    F(cuLibraryGetManaged, (uint64_t *, size_t *, handle, const char *))                                               \
    F(cuDevicePrimaryCtxReset_v2, (int))                                                                               \
    F(cuDevicePrimaryCtxRetain, (handle *, int))                                                                       \
    F(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))                                                            \
    F(cuCtxSetCurrent, (handle))                                                                                       \
    F(cuCtxGetDevice, (int *))                                                                                         \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuCtxEnablePeerAccess, (handle, unsigned))                                                                       \
    F(cuCtxDisablePeerAccess, (handle))                                                                                \
    F(cuModuleLoadData, (handle *, const void *))                                                                      \
    F(cuModuleUnload, (handle))                                                                                        \
    F(cuModuleGetFunction, (handle *, handle, const char *))                                                           \
    F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, handle, const char *))                                              \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuMemFree_v2, (uint64_t))                                                                                        \
    F(cuMemGetInfo_v2, (size_t *, size_t *))                                                                           \
    F(cuMemAllocAsync, (uint64_t *, size_t, handle))                                                                   \
    F(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long))                                             \
    F(cuMemRelease, (uint64_t))                                                                                        \
    F(cuMemAllocManaged, (uint64_t *, size_t, unsigned))                                                               \
    F(cuMemFreeAsync, (uint64_t, handle))                                                                              \
    F(cuPointerGetAttribute, (void *, int, uint64_t))                                                                  \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    F(cuMemcpyPeer, (uint64_t, handle, uint64_t, handle, size_t))                                                      \
    F(cuMemcpyPeerAsync, (uint64_t, handle, uint64_t, handle, size_t, handle))                                         \
    F(cuMemsetD8_v2, (uint64_t, unsigned char, size_t))                                                                \
    F(cuStreamCreate, (handle *, unsigned))                                                                            \
    F(cuStreamGetDevice, (handle, int *))                                                                              \
    F(cuStreamWaitEvent, (handle, handle, unsigned))                                                                   \
    F(cuStreamSynchronize, (handle))                                                                                   \
    F(cuStreamBeginCapture_v2, (handle, int))                                                                          \
    F(cuStreamEndCapture, (handle, handle *))                                                                          \
    F(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                                             \
    F(cuGraphLaunch, (handle, handle))                                                                                 \
    F(cuEventCreate, (handle *, unsigned))                                                                             \
    F(cuEventRecord, (handle, handle))                                                                                 \
    F(cuEventElapsedTime, (float *, handle, handle))                                                                   \
    F(cuLaunchKernel,                                                                                                  \
      (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))
#define F(name, args) static int(*name) args;
LIST
#undef F

    enum {
        MOST = 16,
        N = 64,
        BUS = 33,
        ALREADY = 704,
        NOT_ENABLED = 705,
        INVALID_DEVICE = 101,
        INVALID_VALUE = 1,
        OUT_OF_MEMORY = 2,
        INVALID_HANDLE = 400,
        NO_DEVICE = 100,
        ORDINAL = 9
    };
struct side {
    handle ctx, module, fill, meet, stream, event;
    uint64_t p, hits;
};
static struct side side[MOST];
static int n;

static void expect(long long got, long long want, const char *what, int line)
{
    if (got != want) printf("line %d: %s is %lld, not %lld\n", line, what, got, want), exit(2);
}
#define IS(got, want)    expect((long long)(got), (long long)(want), #got, __LINE__)
#define DO(name, ...)    IS(name(__VA_ARGS__), 0)
#define AT(s)            DO(cuCtxSetCurrent, (s)->ctx)
#define ORDINAL_IS(p, d) (value = -1, DO(cuPointerGetAttribute, &value, ORDINAL, p), IS(value, d))

static void fill(struct side *s, uint64_t p, unsigned v)
{
    DO(cuLaunchKernel, s->fill, 1, 1, 1, N, 1, 1, 0, s->stream, (void *[]){&p, &v}, NULL);
}
static void filled(uint64_t p, unsigned v)
{
    unsigned host[N];
    DO(cuMemcpyDtoH_v2, host, p, sizeof host);
    for (unsigned i = 0; i < N; i++) IS(host[i], v + i);
}

static void identities(void)
{
    int value;
    char uuids[MOST][16], ids[MOST][32];
    for (int d = 0; d < n; d++) {
        DO(cuDeviceGet, &value, d), IS(value, d);
        DO(cuDeviceGetUuid_v2, uuids[d], d);
        DO(cuDeviceGetPCIBusId, ids[d], 32, d);
        DO(cuDeviceGetByPCIBusId, &value, ids[d]), IS(value, d);
        DO(cuDeviceGetAttribute, &value, BUS, d), IS(value, strtol(ids[d] + 5, NULL, 16));
        for (int e = 0; e < d; e++) IS(!memcmp(uuids[d], uuids[e], 16) || !strcmp(ids[d], ids[e]), 0);
        for (int e = 0; e < n; e++) {
            DO(cuDeviceCanAccessPeer, &value, d, e), IS(value, d != e);
            static const int peer[] = {0, 1, 1, 1, 0}; /* rank, access, all atomics, arrays, some atomics alone */
            for (int a = 1; a <= 5; a++) {
                IS(cuDeviceGetP2PAttribute(&value, a, d, e), d == e ? INVALID_DEVICE : 0);
                if (d != e) IS(value, peer[a - 1]);
            }
            if (d != e) IS(cuDeviceGetP2PAttribute(&value, 6, d, e), INVALID_VALUE);
        }
    }
    IS(cuDeviceGet(&value, n), INVALID_DEVICE);
    IS(cuDeviceGet(&value, -1), INVALID_DEVICE);
    IS(cuDeviceCanAccessPeer(&value, 0, n), INVALID_DEVICE);
}

static void open_all(void)
{
    int value, active;
    unsigned flags;
    size_t bytes;
    for (int d = 0; d < n; d++) {
        struct side *s = &side[d];
        DO(cuDevicePrimaryCtxGetState, d, &flags, &active), IS(active, 0);
        DO(cuDevicePrimaryCtxRetain, &s->ctx, d);
        DO(cuDevicePrimaryCtxGetState, d, &flags, &active), IS(active, 1);
        AT(s);
        DO(cuCtxGetDevice, &value), IS(value, d);
        DO(cuModuleLoadData, &s->module, text);
        DO(cuModuleGetFunction, &s->fill, s->module, "fill");
        DO(cuModuleGetFunction, &s->meet, s->module, "meet");
        DO(cuModuleGetGlobal_v2, &s->hits, &bytes, s->module, "hits");
        DO(cuStreamCreate, &s->stream, 1);
        DO(cuEventCreate, &s->event, 0);
        DO(cuStreamGetDevice, s->stream, &value), IS(value, d);
        DO(cuMemAlloc_v2, &s->p, 4096);
        ORDINAL_IS(s->p, d);
        ORDINAL_IS(s->hits, d);
        for (int e = 0; e < d; e++) IS(s->ctx == side[e].ctx || s->hits == side[e].hits, 0);
    }
    for (int d = 0; d < n; d++) { /* whatever is current */
        DO(cuStreamGetDevice, side[d].stream, &value), IS(value, d);
        ORDINAL_IS(side[d].p, d);
    }
}

static void peers(void)
{
    struct side *a = &side[0], *b = &side[1];
    AT(a);
    IS(cuCtxDisablePeerAccess(b->ctx), NOT_ENABLED);
    DO(cuCtxEnablePeerAccess, b->ctx, 0);
    IS(cuCtxEnablePeerAccess(b->ctx, 0), ALREADY);
    IS(cuCtxEnablePeerAccess(a->ctx, 0), 217);
    IS(cuCtxEnablePeerAccess(b->ctx, 1), INVALID_VALUE);
    AT(b);
    IS(cuCtxDisablePeerAccess(a->ctx), NOT_ENABLED); /* one way */
    AT(a);
    fill(a, b->p, 100);
    DO(cuCtxSynchronize);
    filled(b->p, 100);
    DO(cuCtxDisablePeerAccess, b->ctx);
    IS(cuCtxDisablePeerAccess(b->ctx), NOT_ENABLED);
}

static void memory(void)
{
    enum { SOME = 64 << 20 };
    int value;
    size_t before[MOST], after, total;
    uint64_t p, q;
    handle pools[MOST];
    for (int d = 0; d < n; d++) {
        AT(&side[d]);
        DO(cuMemGetInfo_v2, &before[d], &total);
        DO(cuDeviceGetDefaultMemPool, &pools[d], d);
        for (int e = 0; e < d; e++) IS(pools[d] == pools[e], 0);
    }
    for (int d = 0; d < n; d++) {
        AT(&side[d]);
        DO(cuMemAlloc_v2, &p, SOME);
        for (int e = 0; e < n; e++) {
            AT(&side[e]);
            DO(cuMemGetInfo_v2, &after, &total);
            IS(before[e] - after, d == e ? SOME : 0);
        }
        struct {
            int type, handles, where, id;
            uint64_t rest[2];
        } prop = {1, 0, 1, d, {0}};
        DO(cuMemCreate, &q, SOME, &prop, 0); /* of d's account, whichever is current */
        for (int e = 0; e < n; e++) {
            AT(&side[e]);
            DO(cuMemGetInfo_v2, &after, &total);
            IS(before[e] - after, d == e ? 2 * SOME : 0);
        }
        IS(cuMemCreate(&q, total / (2 << 20) * (2 << 20), &prop, 0), OUT_OF_MEMORY);
        DO(cuMemRelease, q);
        DO(cuMemFree_v2, p); /* the last device is current: memory of any is freed */
        AT(&side[0]);
        DO(cuMemAllocAsync, &q, 4096, side[d].stream); /* of the stream's device, not of the current one */
        ORDINAL_IS(q, d);
        handle pool = NULL;
        IS(cuDeviceSetMemPool((d + 1) % n, pools[d]), INVALID_VALUE); /* another device's */
        DO(cuDeviceSetMemPool, d, pools[d]);
        DO(cuPointerGetAttribute, &pool, 17, q);
        IS(pool == pools[d], 1);
        DO(cuMemFreeAsync, q, side[d].stream);
        DO(cuStreamSynchronize, side[d].stream);
    }
    AT(&side[1]);
    DO(cuMemAllocManaged, &q, 4096, 1);
    for (int d = 0; d < n; d++) {
        AT(&side[d]);
        fill(&side[d], q, 7 + d);
        DO(cuCtxSynchronize);
        IS(((volatile unsigned *)(uintptr_t)q)[N - 1], 7 + d + N - 1);
    }
}

/* Each device adds on: an event of one, a wait of the next, a copy by either. */
static void order(void)
{
    float ms;
    for (int d = 0; d < n; d++) {
        struct side *s = &side[d], *t = &side[(d + 1) % n];
        AT(s);
        IS(cuLaunchKernel(s->fill, 1, 1, 1, N, 1, 1, 0, t->stream, (void *[]){&s->p, &n}, NULL), INVALID_HANDLE);
        IS(cuEventRecord(s->event, t->stream), INVALID_HANDLE);
        fill(s, s->p, 1000 * d);
        DO(cuEventRecord, s->event, s->stream);
        AT(t);
        DO(cuStreamWaitEvent, t->stream, s->event, 0);
        DO(cuMemcpyPeerAsync, t->p, t->ctx, s->p, s->ctx, N * 4, t->stream);
        DO(cuStreamSynchronize, t->stream);
        filled(t->p, 1000 * d);
        IS(cuEventElapsedTime(&ms, s->event, t->event), INVALID_HANDLE);
    }
    struct side *a = &side[0], *b = &side[1];
    AT(a);
    fill(b, b->p, 77777); /* the current device is not the kernel's */
    DO(cuMemcpyPeer, a->p, a->ctx, b->p, b->ctx, N * 4);
    filled(a->p, 77777);
    IS(cuMemcpyPeer(a->p, a->ctx, b->p, (handle)(uintptr_t)text, 4), 201);
}

static void graphs(void)
{
    for (int d = 0; d < n; d++) {
        struct side *s = &side[d];
        handle graph, exec;
        AT(s);
        DO(cuStreamBeginCapture_v2, s->stream, 0);
        fill(s, s->p, 31 * d);
        DO(cuStreamEndCapture, s->stream, &graph);
        DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
        for (int i = 0; i < 3; i++) DO(cuGraphLaunch, exec, s->stream);
        DO(cuStreamSynchronize, s->stream);
        filled(s->p, 31 * d);
        if (d < n - 1) continue;
        handle module; /* of a module that goes before the graph does */
        DO(cuModuleLoadData, &module, text);
        DO(cuModuleGetFunction, &s->fill, module, "fill");
        DO(cuStreamBeginCapture_v2, s->stream, 0);
        fill(s, s->p, 7);
        DO(cuStreamEndCapture, s->stream, &graph);
        DO(cuGraphInstantiateWithFlags, &exec, graph, 0);
        DO(cuModuleUnload, module);
        IS(cuGraphLaunch(exec, s->stream), INVALID_HANDLE);
        DO(cuModuleGetFunction, &s->fill, s->module, "fill");
    }
}

/* A library's managed variable is one of all devices, which the host sees; its other variables are each device's own.
 */
static void managed_variable(void)
{
    handle library, add;
    uint64_t common, first = 0, own, where, at;
    unsigned host, by, all = 9;
    int value;
    DO(cuLibraryLoadData, &library, shared_text, NULL, NULL, 0, NULL, NULL, 0);
    DO(cuLibraryGetKernel, &add, library, "add");
    for (int d = 0; d < n; d++) {
        AT(&side[d]);
        DO(cuLibraryGetManaged, &common, NULL, library, "common");
        if (!d) first = common;
        IS(common, first);
        ORDINAL_IS(common, 0);
        DO(cuLibraryGetGlobal, &own, NULL, library, "own");
        ORDINAL_IS(own, d);
        DO(cuLibraryGetGlobal, &where, NULL, library, "where");
        DO(cuMemcpyDtoH_v2, &at, where, 8), IS(at, common);
        by = 10 + (unsigned)d, all += by;
        DO(cuLaunchKernel, add, 1, 1, 1, 1, 1, 1, 0, side[d].stream, (void *[]){&by}, NULL);
        DO(cuCtxSynchronize);
        IS(*(volatile unsigned *)(uintptr_t)common, all);
        DO(cuMemcpyDtoH_v2, &host, own, 4), IS(host, 3 + by);
    }
    AT(&side[0]);
    DO(cuDevicePrimaryCtxReset_v2, n - 1); /* the others have it still */
    IS(*(volatile unsigned *)(uintptr_t)common, all);
    DO(cuLibraryUnload, library);
}

static void meet(void)
{
    for (int d = 0; d < 2; d++) AT(&side[d]), DO(cuMemsetD8_v2, side[d].p, 0, 4);
    for (int d = 0; d < 2; d++) {
        AT(&side[d]);
        DO(cuLaunchKernel, side[d].meet, 1, 1, 1, 1, 1, 1, 0, side[d].stream, (void *[]){&side[d].p, &side[1 - d].p},
           NULL);
    }
    for (int d = 0; d < 2; d++) AT(&side[d]), DO(cuCtxSynchronize);
}

static int list(void)
{
    char uuid[16];
    for (int d = 0; d < n; d++) DO(cuDeviceGetUuid_v2, uuid, d), printf("%d ", uuid[15]);
    puts("");
    return 0;
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
#define F(name, args) name = (int(*) args)dlsym(lib, #name);
    LIST
#undef F
        int r = cuInit(0);
    if (r == NO_DEVICE) return puts("none"), 0;
    if (argc > 1 && !strcmp(argv[1], "list") && r) return printf("error %d\n", r), 0;
    IS(r, 0);
    DO(cuDeviceGetCount, &n);
    if (!strcmp(argv[argc > 1], "list")) return list();
    IS(n, atoi(argv[argc > 1]));
    identities();
    open_all();
    peers();
    memory();
    order();
    graphs();
    meet();
    /* Variables are each device's own: fill ran once for all (managed), in order, in graphs; more on the first two. */
    for (int d = 0; d < n; d++) {
        unsigned hits;
        AT(&side[d]);
        DO(cuMemcpyDtoH_v2, &hits, side[d].hits, 4);
        IS(hits, 5 + N * (1 + 1 + 3 + (d == 0) + (d == 1)));
    }
    managed_variable();
    puts("ok");
    return 0;
}
