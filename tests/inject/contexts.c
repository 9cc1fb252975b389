/* Three contexts, two of one device and one of another, that take turns: memory, streams and a library's variable of
 * their own, copies from one to the other, a graph; then two of them go, and the last works on. Every result is
 * compared with the host's. contexts again: contexts that come and go, with and without what they have; the primary one
 * is reset and released. */
#include "adder.h"

D(cuDeviceGetCount, int *)
D(cuDevicePrimaryCtxReset_v2, cu_device)
D(cuDevicePrimaryCtxRelease_v2, cu_device)
D(cuArray3DCreate_v2, cu_array *, const struct cu_array3d_desc *)
D(cuSurfObjectCreate, cu_surf *, const struct cu_resource_desc *)
D(cuCtxCreate_v2, cu_ctx *, unsigned, cu_device)
D(cuCtxDestroy_v2, cu_ctx)
D(cuCtxSynchronize, void)
D(cuLibraryLoadData, cu_library *, const void *, int *, void **, unsigned, int *, void **, unsigned)
D(cuLibraryGetKernel, cu_kernel *, cu_library, const char *)
D(cuLibraryGetGlobal, cu_ptr *, size_t *, cu_library, const char *)
D(cuModuleUnload, cu_module)
D(cuModuleGetGlobal_v2, cu_ptr *, size_t *, cu_module, const char *)
D(cuKernelGetFunction, cu_function *, cu_kernel)
D(cuMemcpyHtoD_v2, cu_ptr, const void *, size_t)
D(cuMemcpyDtoD_v2, cu_ptr, cu_ptr, size_t)
D(cuMemcpyPeerAsync, cu_ptr, cu_ctx, cu_ptr, cu_ctx, size_t, cu_stream)

/* p[i] += step (the variable, of this context) + times, counted up one by one */
static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .global .align 4 .u32 step;\n"
                          ".visible .entry add(.param .u64 p, .param .u32 times, .param .u32 n)\n{\n"
                          "    .reg .pred %q<3>;\n    .reg .b32 %r<9>;\n    .reg .b64 %d<4>;\n"
                          "    ld.param.u64 %d1, [p];\n    ld.param.u32 %r5, [times];\n    ld.param.u32 %r6, [n];\n"
                          "    mov.u32 %r1, %ctaid.x;\n    mov.u32 %r2, %ntid.x;\n    mov.u32 %r3, %tid.x;\n"
                          "    mad.lo.u32 %r1, %r1, %r2, %r3;\n    setp.ge.u32 %q1, %r1, %r6;\n    @%q1 bra done;\n"
                          "    mul.wide.u32 %d2, %r1, 4;\n    add.s64 %d3, %d1, %d2;\n"
                          "    ld.global.u32 %r4, [step];\n    mov.u32 %r7, 0;\n"
                          "again:\n    setp.ge.u32 %q2, %r7, %r5;\n    @%q2 bra last;\n"
                          "    add.u32 %r4, %r4, 1;\n    add.u32 %r7, %r7, 1;\n    bra again;\n"
                          "last:\n    ld.global.u32 %r8, [%d3];\n    add.u32 %r8, %r8, %r4;\n"
                          "    st.global.u32 [%d3], %r8;\ndone:\n    ret;\n}\n";

enum { CONTEXTS = 3, ROUNDS = 4 };
static cu_ctx context[CONTEXTS];
static cu_ptr at[CONTEXTS];
static cu_stream stream[CONTEXTS];
static cu_function function[CONTEXTS];
static unsigned want[CONTEXTS], step[CONTEXTS] = {100, 2000, 30000};

static void set_up(int c, cu_library library, cu_kernel kernel)
{
    cu_ptr variable;
    size_t bytes;
    unsigned zeros[N] = {0};
    OK(cuCtxSetCurrent(context[c]));
    OK(cuKernelGetFunction(&function[c], kernel));
    OK(cuLibraryGetGlobal(&variable, &bytes, library, "step"));
    OK(cuMemcpyHtoD_v2(variable, &step[c], 4));
    OK(cuMemAlloc_v2(&at[c], sizeof zeros));
    OK(cuMemcpyHtoD_v2(at[c], zeros, sizeof zeros));
    if (c) OK(cuStreamCreate(&stream[c], CUSTREAM_NON_BLOCKING)); /* the first one uses its default stream */
}

static void run(int c, unsigned times)
{
    unsigned n = N;
    OK(cuCtxSetCurrent(context[c]));
    OK(cuLaunchKernel(function[c], (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream[c], (void *[]){&at[c], &times, &n},
                      NULL));
    want[c] += step[c] + times;
}

static void compare(const char *what, int c)
{
    unsigned back[N], wrong = 0;
    OK(cuCtxSetCurrent(context[c]));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(back, at[c], sizeof back));
    for (int i = 0; i < N; i++) wrong += back[i] != want[c];
    printf("%s, context %d: %s\n", what, c, wrong ? "WRONG" : "ok");
}

static void graph(void)
{
    cu_graph g;
    cu_graph_exec x;
    cu_stream s, other;
    OK(cuCtxSetCurrent(context[1]));
    OK(cuStreamCreate(&s, CUSTREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CUSTREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(s, CUCAPTURE_THREAD_LOCAL));
    cu_stream own = stream[1];
    stream[1] = s;
    run(1, 5);
    stream[1] = own;
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, other)); /* not the stream whose work it was */
    OK(cuStreamSynchronize(other));
    compare("a graph", 1);
}

/* A module, an array with a surface, memory and a launch of its own, in the current context. */
static void use(unsigned k, int tidy)
{
    enum { FAR = 39 << 20 };
    unsigned back[N], zeros[N] = {0}, n = N, wrong = 0;
    size_t bytes;
    cu_module m;
    cu_function f;
    cu_ptr variable, p, large;
    cu_array a;
    cu_surf surface;
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetFunction(&f, m, "add"));
    OK(cuModuleGetGlobal_v2(&variable, &bytes, m, "step"));
    OK(cuMemcpyHtoD_v2(variable, &k, 4));
    OK(cuArray3DCreate_v2(&a, &(struct cu_array3d_desc){64, 64, 0, CUAD_UINT32, 1, CUARRAY_SURFACE}));
    OK(cuSurfObjectCreate(&surface, &(struct cu_resource_desc){.type = CURES_ARRAY, .res.array.array = a}));
    OK(cuMemAlloc_v2(&p, sizeof zeros));
    OK(cuMemAlloc_v2(&large, FAR + sizeof zeros));
    large += FAR;
    OK(cuMemcpyHtoD_v2(p, zeros, sizeof zeros));
    OK(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&p, &k, &n}, NULL));
    OK(cuMemcpyDtoD_v2(large, p, sizeof zeros));
    OK(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&large, &k, &n}, NULL));
    OK(cuMemcpyDtoH_v2(back, large, sizeof back));
    for (int i = 0; i < N; i++) wrong += back[i] != 4 * k;
    printf("use %u: %s\n", k, wrong ? "WRONG" : "ok");
    if (!tidy) return;
    OK(cuMemFree_v2(p));
    OK(cuMemFree_v2(large - FAR));
    OK(cuModuleUnload(m));
}

static int again(void)
{
    cu_device d;
    cu_ctx own, other;
    cu_ptr whole;
    OK(cuInit(0));
    OK(cuDeviceGet(&d, 0));
    OK(cuDevicePrimaryCtxRetain(&own, d));
    OK(cuCtxSetCurrent(own));
    OK(cuMemAlloc_v2(&whole, 64 << 20)); /* what capture maps at once is as large */
    OK(cuMemFree_v2(whole));
    use(1, 0);
    OK(cuDevicePrimaryCtxReset_v2(d));
    OK(cuDevicePrimaryCtxRetain(&own, d)); /* NVIDIA's driver has none until then */
    OK(cuCtxSetCurrent(own));
    use(2, 0);
    for (unsigned k = 0; k < 12; k++) {
        OK(cuCtxCreate_v2(&other, 0, d));
        use(3 + k, k % 2);
        if (k % 3) OK(cuCtxDestroy_v2(other));
        OK(cuCtxSetCurrent(own));
        use(20 + k, k % 2);
    }
    OK(cuDevicePrimaryCtxRelease_v2(d));
    OK(cuDevicePrimaryCtxRetain(&own, d));
    OK(cuCtxSetCurrent(own));
    use(99, 1);
    return 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) return again();
    cu_device d[2] = {0};
    cu_library library;
    cu_kernel kernel;
    int n;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    OK(cuDeviceGet(&d[0], 0));
    OK(cuDeviceGet(&d[1], n > 1));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "add"));
    OK(cuDevicePrimaryCtxRetain(&context[0], d[0]));
    OK(cuCtxSetCurrent(context[0]));
    if (n > 1)
        OK(cuDevicePrimaryCtxRetain(&context[1], d[1]));
    else
        OK(cuCtxCreate_v2(&context[1], 0, d[0]));
    OK(cuCtxCreate_v2(&context[2], 0, d[0]));
    for (int c = CONTEXTS; c-- > 0;) set_up(c, library, kernel);
    for (int round = 0; round < ROUNDS; round++) {
        run(1, 3000); /* longer than the others: whoever waits for one context alone reads too early */
        run(0, 1);
        run(2, 2);
    }
    for (int c = 0; c < CONTEXTS; c++) compare("in turns", c);
    run(1, 1000);
    OK(cuMemcpyPeerAsync(at[0], context[0], at[1], context[1], N * 4, stream[1]));
    OK(cuCtxSynchronize());
    want[0] = want[1];
    run(0, 7);
    compare("a copy between devices", 0);
    OK(cuMemcpyDtoD_v2(at[2], at[0], N * 4));
    OK(cuCtxSynchronize()); /* the host does not wait for it, nor does the other context */
    want[2] = want[0];
    run(2, 8);
    compare("a copy within one", 2);
    graph();
    OK(cuCtxDestroy_v2(context[2])); /* with its memory */
    run(1, 9);
    compare("one is gone", 1);
    if (n > 1) {
        OK(cuDevicePrimaryCtxReset_v2(d[1]));
    } else {
        OK(cuCtxDestroy_v2(context[1]));
    }
    run(0, 10);
    compare("two are gone", 0);
    return 0;
}
