/* One kernel started in every way there is: parameters and `extra` buffers, per-thread streams (_ptsz), attributes
 * (clusters, programmatic dependent launch), cooperative, the calls of CUDA 3, captured, in nodes, from a
 * library. Each way adds its number to 100 of 128 words, so every one that ran can be told from the sum.
 * What a driver lacks is named and left out. What the driver says of the kernels is printed before and after.
 *   ways          ways text: prints the PTX          ways FILE: the module is loaded from there */
#include <stdbool.h>
#include <string.h>

#include "abi/cu.h"
#include "by_name.h"

static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
#define BODY(name, first, last)                                                                                                   \
    ".visible .entry " name                                                                                                       \
    "(.param .u64 out, .param .u32 n, .param .u32 by)\n{\n.reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n" first             \
    "ld.param.u64 %d1, [out];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [by];\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"  \
    "mov.u32 %r5, %tid.x;\nmad.lo.u32 %r6, %r3, %r4, %r5;\nsetp.ge.u32 %p, %r6, %r1;\n@%p bra DONE;\nmul.wide.u32 %d2, %r6, 4;\n" \
    "add.u64 %d3, %d1, %d2;\nred.global.add.u32 [%d3], %r2;\nDONE:\n" last "ret;\n}\n"
    BODY("add", "", "") BODY("early", "", "griddepcontrol.launch_dependents;\n")
        BODY("late", "griddepcontrol.wait;\n", "");

static void *lib;
static cu_ptr out;
static uint32_t n = 100, number, want;
static cu_stream stream;

static void **args(void) /* of the next launch */
{
    static void *a[3];
    static uint32_t add;
    add = 1u << number++;
    want += add;
    a[0] = &out, a[1] = &n, a[2] = &add;
    return a;
}

static void **extra(void)
{
    static struct {
        uint64_t out;
        uint32_t n, add;
    } buffer;
    static size_t bytes = sizeof buffer;
    static void *e[] = {CULAUNCH_PARAM_BUFFER_POINTER, &buffer, CULAUNCH_PARAM_BUFFER_SIZE, &bytes, CULAUNCH_PARAM_END};
    buffer.out = out, buffer.n = n, buffer.add = 1u << number++;
    want += buffer.add;
    return e;
}

typedef int launch_fn(cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream,
                      void **, void **);
typedef int launch_ex_fn(const struct cu_launch_config *, cu_function, void **, void **);

static void by(const char *name, cu_function f, bool in_extra)
{
    launch_fn *go = (launch_fn *)(uintptr_t)dlsym(lib, name);
    if (go)
        DO(go(f, 2, 1, 1, 64, 1, 1, 0, stream, in_extra ? NULL : args(), in_extra ? extra() : NULL));
    else
        printf("no %s\n", name);
}

static void by_attribute(const char *name, cu_function f, struct cu_launch_attribute a, bool in_extra)
{
    launch_ex_fn *go = (launch_ex_fn *)(uintptr_t)dlsym(lib, name);
    struct cu_launch_config c = {2, 1, 1, 64, 1, 1, 0, stream, &a, a.id != CULAUNCH_IGNORE};
    if (go)
        DO(go(&c, f, in_extra ? NULL : args(), in_extra ? extra() : NULL));
    else
        printf("no %s\n", name);
}

static void by_old_calls(cu_function f)
{
    GET(cuFuncSetBlockShape, (cu_function, int, int, int));
    GET(cuParamSetSize, (cu_function, unsigned));
    GET(cuParamSetv, (cu_function, int, void *, unsigned));
    GET(cuParamSeti, (cu_function, int, unsigned));
    GET(cuLaunchGrid, (cu_function, int, int));
    GET(cuLaunchGridAsync, (cu_function, int, int, cu_stream));
    if (!cuFuncSetBlockShape || !cuParamSetSize || !cuParamSetv || !cuParamSeti || !cuLaunchGrid ||
        !cuLaunchGridAsync) {
        puts("no cuLaunchGrid");
        return;
    }
    DO(cuFuncSetBlockShape(f, 64, 1, 1));
    DO(cuParamSetSize(f, 16));
    DO(cuParamSetv(f, 0, &out, 8));
    DO(cuParamSeti(f, 8, n));
    DO(cuParamSeti(f, 12, *(uint32_t *)args()[2]));
    DO(cuLaunchGrid(f, 2, 1));
    DO(cuParamSeti(f, 12, *(uint32_t *)args()[2]));
    DO(cuLaunchGridAsync(f, 2, 1, stream));
}

static void by_graph(cu_function f)
{
    GET(cuGraphCreate, (cu_graph *, unsigned));
    GET(cuGraphAddKernelNode_v2, (cu_node *, cu_graph, const cu_node *, size_t, const struct cu_kernel_node *));
    GET(cuGraphInstantiateWithFlags, (cu_graph_exec *, cu_graph, unsigned long long));
    GET(cuGraphLaunch, (cu_graph_exec, cu_stream));
    GET(cuStreamBeginCapture_v2, (cu_stream, int));
    GET(cuStreamEndCapture, (cu_stream, cu_graph *));
    cu_graph g;
    cu_graph_exec x;
    cu_node first, second;
    struct cu_kernel_node p = {
        .func = f, .grid_x = 2, .grid_y = 1, .grid_z = 1, .block_x = 64, .block_y = 1, .block_z = 1};
    DO(cuGraphCreate(&g, 0));
    p.params = args();
    DO(cuGraphAddKernelNode_v2(&first, g, NULL, 0, &p));
    p.params = NULL, p.extra = extra();
    DO(cuGraphAddKernelNode_v2(&second, g, &first, 1, &p));
    DO(cuGraphInstantiateWithFlags(&x, g, 0));
    DO(cuGraphLaunch(x, stream));
    DO(cuStreamBeginCapture_v2(stream, 0));
    by("cuLaunchKernel", f, false);
    by("cuLaunchKernel", f, true);
    DO(cuStreamEndCapture(stream, &g));
    DO(cuGraphInstantiateWithFlags(&x, g, 0));
    DO(cuGraphLaunch(x, stream));
}

/* Attributes, occupancy and names as the program sees them. */
static void tell(cu_module module, cu_function f)
{
    GET(cuFuncGetAttribute, (int *, int, cu_function));
    GET(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, cu_function, int, size_t));
    GET(cuOccupancyMaxPotentialBlockSize, (int *, int *, cu_function, void *, size_t, int));
    GET(cuModuleGetFunctionCount, (unsigned *, cu_module));
    GET(cuModuleEnumerateFunctions, (cu_function *, unsigned, cu_module));
    GET(cuFuncGetName, (const char **, cu_function));
    GET(cuFuncGetParamInfo, (cu_function, size_t, size_t *, size_t *));
    int value = 0, grid = 0, block = 0;
    unsigned count = 0;
    cu_function all[8];
    const char *name = "?";
    size_t at = 0, size = 0;
    for (int i = 0; i < 10; i++) printf("%d ", cuFuncGetAttribute(&value, i, f) ? -1 : value);
    printf("occupancy %d ", cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 256, 1024) ? -1 : value);
    printf("%d %d ", cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0) ? -1 : grid, block);
    for (size_t i = 0; cuFuncGetParamInfo && !cuFuncGetParamInfo(f, i, &at, &size); i++)
        printf("param %zu %zu ", at, size);
    if (cuModuleGetFunctionCount && !cuModuleGetFunctionCount(&count, module) && count <= 8 &&
        !cuModuleEnumerateFunctions(all, count, module))
        for (unsigned i = 0; i < count; i++) printf("%s ", cuFuncGetName && !cuFuncGetName(&name, all[i]) ? name : "?");
    printf("\n");
}

int main(int argc, char **argv)
{
    static uint32_t got[128];
    cu_ctx ctx;
    cu_module module;
    cu_function add, early, late;
    void *library, *kernel;
    int dev;
    if (argc > 1 && !strcmp(argv[1], "text")) return fputs(text, stdout), 0;
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return puts("no driver"), 1;
    GET(cuInit, (unsigned));
    GET(cuDeviceGet, (int *, int));
    GET(cuDevicePrimaryCtxRetain, (cu_ctx *, int));
    GET(cuCtxSetCurrent, (cu_ctx));
    GET(cuCtxSynchronize, (void));
    GET(cuModuleLoadData, (cu_module *, const void *));
    GET(cuModuleLoad, (cu_module *, const char *));
    GET(cuModuleGetFunction, (cu_function *, cu_module, const char *));
    GET(cuMemAlloc_v2, (cu_ptr *, size_t));
    GET(cuMemsetD8_v2, (cu_ptr, unsigned char, size_t));
    GET(cuMemcpyDtoH_v2, (void *, cu_ptr, size_t));
    GET(cuStreamCreate, (cu_stream *, unsigned));
    GET(cuLibraryLoadData, (void **, const void *, void *, void *, unsigned, void *, void *, unsigned));
    GET(cuLibraryGetKernel, (void **, void *, const char *));
    DO(cuInit(0));
    DO(cuDeviceGet(&dev, 0));
    DO(cuDevicePrimaryCtxRetain(&ctx, dev));
    DO(cuCtxSetCurrent(ctx));
    DO(argc > 1 ? cuModuleLoad(&module, argv[1]) : cuModuleLoadData(&module, text));
    DO(cuModuleGetFunction(&add, module, "add"));
    DO(cuModuleGetFunction(&early, module, "early"));
    DO(cuModuleGetFunction(&late, module, "late"));
    DO(cuMemAlloc_v2(&out, sizeof got));
    DO(cuMemsetD8_v2(out, 0, sizeof got));
    tell(module, add);

    typedef int cooperative_fn(cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               cu_stream, void **);
    struct cu_launch_attribute none = {.id = CULAUNCH_IGNORE},
                               cluster = {.id = CULAUNCH_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}},
                               follow = {.id = CULAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.serialization = 1};
    for (int round = 0; round < 2; round++) { /* in the legacy default stream, and in one of our own */
        if (round) DO(cuStreamCreate(&stream, 1));
        by("cuLaunchKernel", add, false);
        by("cuLaunchKernel", add, true);
        by("cuLaunchKernel_ptsz", add, false);
        by_attribute("cuLaunchKernelEx", add, none, true);
        by_attribute("cuLaunchKernelEx_ptsz", add, none, false);
        by_attribute("cuLaunchKernelEx", add, cluster, false);
        by_attribute("cuLaunchKernelEx", early, none, false);
        by_attribute("cuLaunchKernelEx", late, follow, true);
        static const char *const together[] = {"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"};
        for (int i = 0; i < 2; i++) {
            cooperative_fn *go = (cooperative_fn *)(uintptr_t)dlsym(lib, together[i]);
            if (go)
                DO(go(add, 2, 1, 1, 64, 1, 1, 0, stream, args()));
            else
                printf("no %s\n", together[i]);
        }
    }
    by_graph(add);
    by_old_calls(add);
    tell(module, add);
    DO(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    DO(cuLibraryGetKernel(&kernel, library, "add")); /* launched as it is, as the runtime does */
    by("cuLaunchKernel", (cu_function)kernel, false);
    DO(cuCtxSynchronize());
    DO(cuMemcpyDtoH_v2(got, out, sizeof got));
    for (uint32_t i = 0; i < 128; i++)
        if (got[i] != (i < n ? want : 0)) return printf("word %u is %x, not %x\n", i, got[i], want), 1;
    printf("ok %u launches\n", number);
    return 0;
}
