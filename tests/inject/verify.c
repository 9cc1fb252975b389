/* Launches of every kind that --verify meets; prints what the kernels left behind, the same in every run.
 * Driver API, PTX as text.  usage: verify [spin] */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define ENTRY(name)                                                                                                           \
    ".visible .entry " name                                                                                                   \
    "(.param .u64 p, .param .u64 q)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<9>;\n"                             \
    "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n" \
    "mad.lo.u32 %r1, %r2, %r3, %r1;\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n"
static const char ptx[] =
    HEAD ".visible .global .u32 total;\n.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    /* each run adds once more: running it three times must not show */
    ENTRY(
        "add") "ld.global.u32 %r4, [%rd4];\nld.global.u32 %r5, [%rd5];\nadd.u32 %r4, %r4, %r5;\nst.global.u32 [%rd4], %r4;\n"
               "atom.global.add.u32 %r5, [total], 1;\nret;\n}\n"
    /* the time is another in every run */
    ENTRY("times") "mul.wide.u32 %rd3, %r1, 8;\nadd.u64 %rd4, %rd1, %rd3;\nmov.u64 %rd6, %globaltimer;\nst.global.u64 [%rd4], %rd6;\nret;\n}\n" ENTRY("read") "ld.global.u32 %r4, [total];\nst.global.u32 [%rd4], %r4;\nret;\n}\n" ENTRY(
        "host") "atom.global.add.u32 %r4, [%rd1], 1;\nret;\n}\n" ENTRY("spin") "L: ld.volatile.global.u32 %r4, [%rd1];\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra D;\nbra L;\nD: ret;\n}\n" ENTRY("print") "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra D;\n{\n.param .b64 f;\n.param .b64 a;\n.param .b32 r;\nst.param.b64 [f], 0;\nst.param.b64 [a], 0;\n"
                                                                                                                                                                                                    "call (r), vprintf, (f, a);\n}\nD: ret;\n}\n";

#define F(name, args) static int(*name) args;
#define LIST                                                                                                           \
    F(cuInit, (unsigned))                                                                                              \
    F(cuDeviceGet, (int *, int))                                                                                       \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                                                        \
    F(cuCtxSetCurrent, (void *))                                                                                       \
    F(cuModuleLoadData, (void **, const void *))                                                                       \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuModuleGetFunction, (void **, void *, const char *))                                                            \
    F(cuMemAlloc_v2, (uint64_t *, size_t))                                                                             \
    F(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    F(cuMemsetD32_v2, (uint64_t, unsigned, size_t))                                                                    \
    F(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                     \
    F(cuStreamCreate, (void **, unsigned))                                                                             \
    F(cuStreamBeginCapture_v2, (void *, int))                                                                          \
    F(cuStreamEndCapture, (void *, void **))                                                                           \
    F(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                              \
    F(cuGraphLaunch, (void *, void *))                                                                                 \
    F(cuMemAllocManaged, (uint64_t *, size_t, unsigned))                                                               \
    F(cuMemFree_v2, (uint64_t))                                                                                        \
    F(cuLaunchKernel,                                                                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
LIST
#undef F

    static void *module,
    *stream;
static int bad;

static void want(int rc, const char *what)
{
    if (rc) printf("%s: %d\n", what, rc), bad = 1;
}

static void launch(const char *name, uint64_t p, uint64_t q)
{
    void *f, *params[] = {&p, &q};
    want(cuModuleGetFunction(&f, module, name), name);
    want(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL), name);
}

static void show(const char *name, uint64_t p)
{
    uint32_t v[256] = {0}, sum = 0;
    want(cuCtxSynchronize(), name);
    want(cuMemcpyDtoH_v2(v, p, sizeof v), name);
    for (int i = 0; i < 256; i++) sum = sum * 31 + v[i];
    printf("%s: %u %u %08x\n", name, v[0], v[255], sum);
}

int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *graph, *exec;
    volatile uint32_t *host;
    uint64_t a, b, c, freed, managed;
    int device;
    if (!lib) return 1;
#define F(name, args)                                                                                                  \
    if (!(name = (int(*) args)dlsym(lib, #name))) return printf("no %s\n", #name), 1;
    LIST if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx) ||
             cuModuleLoadData(&module, ptx)) return 2;
    want(cuMemAlloc_v2(&a, 1024), "alloc"), want(cuMemAlloc_v2(&freed, 512), "alloc"),
        want(cuMemAlloc_v2(&b, 1024), "alloc");
    want(cuMemAlloc_v2(&c, 2048), "alloc"), want(cuMemHostAlloc((void **)&host, 1024, 0), "host"),
        want(cuMemFree_v2(freed), "free");
    want(cuMemsetD32_v2(a, 5, 256), "set"), want(cuMemsetD32_v2(b, 3, 256), "set"),
        want(cuMemsetD32_v2(c, 0, 512), "set");
    memset((void *)host, 0, 1024);
    if (argc > 1 && !strcmp(argv[1], "spin")) {
        launch("spin", (uint64_t)(uintptr_t)host, 0);
        *host = 1; /* the kernel ends when its launch has returned */
        want(cuCtxSynchronize(), "spin");
        puts("spin: ended");
        return bad;
    }
    launch("add", a, b), launch("add", a, b);
    show("add", a);
    launch("read", b, 0);
    show("total", b);
    launch("times", c, 0);
    launch("host", (uint64_t)(uintptr_t)host, 0);
    want(cuCtxSynchronize(), "host");
    printf("host: %u\n", *host);
    want(cuMemAllocManaged(&managed, 1024, 1), "managed");
    memset((void *)(uintptr_t)managed, 0, 1024);
    launch("add", managed, a);
    show("managed", managed);
    want(cuStreamCreate(&stream, 1), "stream");
    want(cuStreamBeginCapture_v2(stream, 0), "capture");
    launch("add", a, b);
    want(cuStreamEndCapture(stream, &graph), "capture");
    want(cuGraphInstantiateWithFlags(&exec, graph, 0), "graph"), want(cuGraphLaunch(exec, stream), "graph");
    show("graph", a);
    stream = NULL;
    launch("add", a, b);
    show("end", a);
    return bad;
}
