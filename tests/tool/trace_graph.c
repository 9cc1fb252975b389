/* Graphs for the trace of accesses: a memset, a kernel, a copy and a kernel that follow each other, launched again and
 * again in one stream and in another, as a second executable, with a memset and a copy that were changed, and with a
 * node switched off. `trace_graph fault`: a launch without a graph that faults. `trace_graph mixed`: two executables
 * 300 times in three streams, so that a node runs several times at once. `trace_graph twice`: the same graph is there
 * twice in another one, so a node's replays cannot be told apart.
 */
#include <string.h>

#include "../inject/by_name.h"
#include "abi/cu.h"

static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add(.param .u64 out, .param .u64 in, .param .u32 by)\n{\n.reg .b32 %r<8>;\n.reg .b64 %d<6>;\n"
    "ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nld.param.u32 %r1, [by];\nmov.u32 %r3, %ctaid.x;\n"
    "mov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.u32 %r6, %r3, %r4, %r5;\nmul.wide.u32 %d3, %r6, 4;\n"
    "add.u64 %d4, %d2, %d3;\nld.global.u32 %r2, [%d4];\nadd.u32 %r2, %r2, %r1;\nadd.u64 %d5, %d1, %d3;\n"
    "st.global.u32 [%d5], %r2;\nret;\n}\n";

static void *lib;

enum { N = 64, BYTES = 4 * N };

static struct cu_memcpy3d copy_of(cu_ptr to, cu_ptr from)
{
    return (struct cu_memcpy3d){.src_type = CUMEM_DEVICE,
                                .src_device = from,
                                .src_pitch = BYTES,
                                .src_height = 1,
                                .dst_type = CUMEM_DEVICE,
                                .dst_device = to,
                                .dst_pitch = BYTES,
                                .dst_height = 1,
                                .width = BYTES,
                                .height = 1,
                                .depth = 1};
}

int main(int argc, char **argv)
{
    if (!(lib = dlopen("libcuda.so.1", RTLD_NOW))) return puts("no libcuda.so.1"), 1;
    GET(cuInit, (unsigned));
    GET(cuDevicePrimaryCtxRetain, (cu_ctx *, int));
    GET(cuCtxSetCurrent, (cu_ctx));
    GET(cuCtxSynchronize, (void));
    GET(cuModuleLoadData, (cu_module *, const void *));
    GET(cuModuleGetFunction, (cu_function *, cu_module, const char *));
    GET(cuMemAlloc_v2, (cu_ptr *, size_t));
    GET(cuMemcpyDtoH_v2, (void *, cu_ptr, size_t));
    GET(cuStreamCreate, (cu_stream *, unsigned));
    GET(cuGraphCreate, (cu_graph *, unsigned));
    GET(cuGraphAddKernelNode_v2, (cu_node *, cu_graph, const cu_node *, size_t, const struct cu_kernel_node *));
    GET(cuGraphAddMemsetNode, (cu_node *, cu_graph, const cu_node *, size_t, const struct cu_memset_node *, cu_ctx));
    GET(cuGraphAddMemcpyNode, (cu_node *, cu_graph, const cu_node *, size_t, const struct cu_memcpy3d *, cu_ctx));
    GET(cuGraphAddChildGraphNode, (cu_node *, cu_graph, const cu_node *, size_t, cu_graph));
    GET(cuGraphInstantiateWithFlags, (cu_graph_exec *, cu_graph, unsigned long long));
    GET(cuGraphExecMemsetNodeSetParams, (cu_graph_exec, cu_node, const struct cu_memset_node *, cu_ctx));
    GET(cuGraphExecMemcpyNodeSetParams, (cu_graph_exec, cu_node, const struct cu_memcpy3d *, cu_ctx));
    GET(cuGraphNodeSetEnabled, (cu_graph_exec, cu_node, unsigned));
    GET(cuGraphLaunch, (cu_graph_exec, cu_stream));

    cu_ctx ctx;
    cu_module module;
    cu_function add;
    cu_ptr a, b, c;
    cu_stream one, two;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&ctx, 0));
    DO(cuCtxSetCurrent(ctx));
    DO(cuModuleLoadData(&module, text));
    DO(cuModuleGetFunction(&add, module, "add"));
    DO(cuMemAlloc_v2(&a, BYTES));
    DO(cuMemAlloc_v2(&b, BYTES));
    DO(cuMemAlloc_v2(&c, BYTES));
    DO(cuStreamCreate(&one, 1));
    DO(cuStreamCreate(&two, 1));

    cu_graph g;
    cu_node set, first, copy, second;
    uint32_t by[2] = {1, 2};
    void *args[2][3] = {{&b, &a, &by[0]}, {&a, &c, &by[1]}};
    struct cu_memset_node m = {.dst = a, .value = 7, .element_bytes = 4, .width = N / 2, .height = 1};
    struct cu_memcpy3d p = copy_of(c, b);
    struct cu_kernel_node k = {.func = add,
                               .grid_x = 2,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = N / 2,
                               .block_y = 1,
                               .block_z = 1,
                               .params = args[0]};
    DO(cuGraphCreate(&g, 0));
    DO(cuGraphAddMemsetNode(&set, g, NULL, 0, &m, ctx));
    DO(cuGraphAddKernelNode_v2(&first, g, &set, 1, &k));
    DO(cuGraphAddMemcpyNode(&copy, g, &first, 1, &p, ctx));
    k.params = args[1];
    DO(cuGraphAddKernelNode_v2(&second, g, &copy, 1, &k));

    cu_graph_exec x, y;
    if (argc > 1 && !strcmp(argv[1], "fault")) {
        GET(cuLaunchKernel, (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             cu_stream, void **, void **));
        b = 64; /* no allocation's */
        DO(cuLaunchKernel(add, 2, 1, 1, N / 2, 1, 1, 0, one, args[0], NULL));
        DO(cuCtxSynchronize());
    }
    if (argc > 1 && !strcmp(argv[1], "twice")) {
        cu_graph h;
        cu_node left, right;
        DO(cuGraphCreate(&h, 0));
        DO(cuGraphAddChildGraphNode(&left, h, NULL, 0, g));
        DO(cuGraphAddChildGraphNode(&right, h, &left, 1, g));
        DO(cuGraphInstantiateWithFlags(&x, h, 0));
        for (int i = 0; i < 2; i++) DO(cuGraphLaunch(x, one));
    } else if (argc > 1) {
        cu_stream three, streams[3] = {one, two, NULL};
        DO(cuStreamCreate(&three, 1));
        streams[2] = three;
        DO(cuGraphInstantiateWithFlags(&x, g, 0));
        DO(cuGraphInstantiateWithFlags(&y, g, 0));
        for (int i = 0; i < 300; i++) DO(cuGraphLaunch(i % 2 ? x : y, streams[i % 3]));
        DO(cuCtxSynchronize());
        return 0; /* what is in the arrays is a race */
    } else {
        DO(cuGraphInstantiateWithFlags(&x, g, 0));
        DO(cuGraphInstantiateWithFlags(&y, g, 0));
        for (int i = 0; i < 3; i++) DO(cuGraphLaunch(x, one));
        DO(cuCtxSynchronize());
        for (int i = 0; i < 2; i++) DO(cuGraphLaunch(x, two));
        DO(cuGraphLaunch(y, two));
        DO(cuCtxSynchronize());
        m.width = N / 4;
        m.value = 100;
        p = copy_of(c, a);
        DO(cuGraphExecMemsetNodeSetParams(x, set, &m, ctx));
        DO(cuGraphExecMemcpyNodeSetParams(x, copy, &p, ctx));
        DO(cuGraphLaunch(x, one));
        DO(cuCtxSynchronize());
        DO(cuGraphNodeSetEnabled(x, first, 0));
        DO(cuGraphLaunch(x, one));
    }
    DO(cuCtxSynchronize());
    uint32_t got[N], sum = 0;
    for (int i = 0; i < 3; i++) {
        DO(cuMemcpyDtoH_v2(got, i == 0 ? a : i == 1 ? b : c, BYTES));
        for (int j = 0; j < N; j++) sum = sum * 31 + got[j];
    }
    printf("%u\n", sum);
    return 0;
}
