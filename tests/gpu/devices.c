/* Two contexts at once, on two devices or on one: every kernel runs in both, with variables of each one's
 * own, through a module's function and through a library's kernel, from two threads; one context's kernel
 * reads the other's memory where the devices can; modules are unloaded and loaded again, after
 * allocations that put everything elsewhere.   usage: devices DEVICE DEVICE [MIB]: so much is allocated first */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *handle;
static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .u32 hits;\n"
    ".visible .entry add(.param .u64 p, .param .u32 n)\n{\n.reg .pred %q;\n.reg .b32 %i, %n, %a;\n.reg .b64 %p, %o;\nld.param.u64 %p, [p];\nld.param.u32 %n, [n];\n"
    "mov.u32 %i, %ctaid.x;\nmov.u32 %a, %ntid.x;\nmul.lo.u32 %i, %i, %a;\nmov.u32 %a, %tid.x;\nadd.u32 %i, %i, %a;\nsetp.ge.u32 %q, %i, %n;\n@%q bra D;\n"
    "mul.wide.u32 %o, %i, 4;\nadd.u64 %p, %p, %o;\nld.global.u32 %a, [%p];\nadd.u32 %a, %a, 1;\nst.global.u32 [%p], %a;\nmov.u64 %o, hits;\nred.global.add.u32 [%o], 1;\nD: ret;\n}\n"
    ".visible .entry fetch(.param .u64 to, .param .u64 from)\n{\n.reg .b32 %i, %a;\n.reg .b64 %p, %q, %o;\nld.param.u64 %p, [to];\nld.param.u64 %q, [from];\n"
    "mov.u32 %i, %tid.x;\nmul.wide.u32 %o, %i, 4;\nadd.u64 %p, %p, %o;\nadd.u64 %q, %q, %o;\nld.global.u32 %a, [%q];\nshl.b32 %a, %a, 1;\nst.global.u32 [%p], %a;\nret;\n}\n";

#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDevicePrimaryCtxRetain, (handle *, int))                                                                       \
    F(cuCtxCreate_v2, (handle *, unsigned, int))                                                                       \
    F(cuCtxSetCurrent, (handle))                                                                                       \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleLoadData, (handle *, const void *))                                                                      \
    F(cuModuleUnload, (handle))                                                                                        \
    F(cuModuleGetFunction, (handle *, handle, const char *))                                                           \
    F(cuModuleGetGlobal_v2, (uint64_t *, size_t *, handle, const char *))                                              \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    F(cuMemsetD8_v2, (uint64_t, unsigned char, size_t))                                                                \
    F(cuDeviceCanAccessPeer, (int *, int, int))                                                                        \
    F(cuCtxEnablePeerAccess, (handle, unsigned))                                                                       \
    F(cuLibraryLoadData, (handle *, const void *, int *, void **, unsigned, int *, void **, unsigned))                 \
    F(cuLibraryGetKernel, (handle *, handle, const char *))                                                            \
    F(cuLibraryUnload, (handle))                                                                                       \
    F(cuLaunchKernel,                                                                                                  \
      (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))
#define F(name, args) static int(*name) args;
LIST
#undef F
    static void
    check(int rc, const char *call)
{
    if (rc) printf("%s: error %d\n", call, rc), exit(3);
}
#define DO(name, ...) check(name(__VA_ARGS__), #name)

enum { N = 1000, LAUNCHES = 20 };
struct side {
    handle ctx, module, add, fetch;
    uint64_t p, hits;
    int device;
};
static struct side side[2];
static handle kernel; /* of a library: one handle for every context */

static void expect(uint64_t at, int n, unsigned want, const char *what)
{
    unsigned host[N];
    DO(cuMemcpyDtoH_v2, host, at, (size_t)n * 4);
    for (int i = 0; i < n; i++)
        if (host[i] != want) printf("%s: element %d is %u, not %u\n", what, i, host[i], want), exit(2);
}
static void load(struct side *s, size_t before)
{
    uint64_t elsewhere;
    size_t bytes;
    DO(cuMemAlloc_v2, &elsewhere, before);
    DO(cuModuleLoadData, &s->module, text);
    DO(cuModuleGetFunction, &s->add, s->module, "add");
    DO(cuModuleGetFunction, &s->fetch, s->module, "fetch");
    DO(cuModuleGetGlobal_v2, &s->hits, &bytes, s->module, "hits");
    DO(cuMemAlloc_v2, &s->p, 4096);
    DO(cuMemsetD8_v2, s->p, 0, 4096);
}
static void add(struct side *s, handle f)
{
    unsigned n = N;
    void *params[] = {&s->p, &n};
    DO(cuLaunchKernel, f, 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
}
static void *work(void *arg)
{
    struct side *s = arg;
    DO(cuCtxSetCurrent, s->ctx);
    for (int i = 0; i < LAUNCHES; i++) {
        add(s, s->add);
        add(s, kernel);
    }
    DO(cuCtxSynchronize);
    return NULL;
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    pthread_t t[2];
    handle library;
    size_t first = argc > 3 ? (size_t)atoi(argv[3]) << 20 : 0;
    if (argc < 3 || !lib) return 1;
#define F(name, args) *(void **)&name = dlsym(lib, #name);
    LIST
#undef F
        DO(cuInit, 0);
    DO(cuLibraryLoadData, &library, text, NULL, NULL, 0, NULL, NULL, 0);
    DO(cuLibraryGetKernel, &kernel, library, "add");
    for (int k = 0; k < 2; k++) {
        side[k].device = atoi(argv[1 + k]);
        if (k && side[0].device == side[1].device)
            DO(cuCtxCreate_v2, &side[k].ctx, 0, side[k].device);
        else
            DO(cuDevicePrimaryCtxRetain, &side[k].ctx, side[k].device);
    }
    for (int round = 0; round < 2; round++) { /* the second time all is somewhere else */
        for (int k = 0; k < 2; k++) {
            DO(cuCtxSetCurrent, side[k].ctx);
            load(&side[k], first + ((size_t)(k + 1 + 2 * round) << 21));
        }
        for (int k = 0; k < 2; k++) pthread_create(&t[k], NULL, work, &side[k]);
        for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
        for (int k = 0; k < 2; k++) {
            DO(cuCtxSetCurrent, side[k].ctx);
            expect(side[k].p, N, 2 * LAUNCHES, "sums");
            expect(side[k].hits, 1, N * LAUNCHES, "hits of the module");
        }
        int can = 0;
        DO(cuCtxSetCurrent, side[0].ctx);
        if (side[0].device != side[1].device) DO(cuDeviceCanAccessPeer, &can, side[0].device, side[1].device);
        if (can && !round) DO(cuCtxEnablePeerAccess, side[1].ctx, 0);
        uint64_t from = can ? side[1].p : side[0].p, to;
        void *params[] = {&to, &from};
        DO(cuMemAlloc_v2, &to, 4096);
        DO(cuLaunchKernel, side[0].fetch, 1, 1, 1, N, 1, 1, 0, NULL, params, NULL);
        expect(to, N, 4 * LAUNCHES, can ? "the other device's memory" : "memory");
        for (int k = 0; k < 2; k++) {
            DO(cuCtxSetCurrent, side[k].ctx);
            DO(cuModuleUnload, side[k].module);
        }
        if (!round) printf("%s\n", can ? "peers" : "no peers");
    }
    DO(cuLibraryUnload, library);
    puts("ok");
    return 0;
}
