/* Conditional graph nodes through the driver API. usage: conditional KERNELS.ptx */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cu.h"

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(cu_ctx *, int), cuCtxSetCurrent(cu_ctx),
    cuCtxSynchronize(void);
int cuModuleLoadData(cu_module *, const void *), cuModuleGetFunction(cu_function *, cu_module, const char *);
int cuMemAlloc_v2(cu_ptr *, size_t), cuMemsetD8_v2(cu_ptr, unsigned char, size_t),
    cuMemcpyDtoH_v2(void *, cu_ptr, size_t);
int cuGraphCreate(cu_graph *, unsigned),
    cuGraphConditionalHandleCreate(uint64_t *, cu_graph, cu_ctx, unsigned, unsigned);
int cuGraphAddNode(cu_node *, cu_graph, const cu_node *, size_t, struct cu_node_params *);
int cuGraphInstantiateWithFlags(cu_graph_exec *, cu_graph, unsigned long long), cuGraphLaunch(cu_graph_exec, cu_stream),
    cuGraphExecDestroy(cu_graph_exec), cuGraphDestroy(cu_graph);

#define DO(call)                                                                                                       \
    do {                                                                                                               \
        int r_ = (call);                                                                                               \
        if (r_) {                                                                                                      \
            printf("line %d: %s gave %d\n", __LINE__, #call, r_);                                                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
static cu_ctx ctx;
static cu_function step, mark;
static cu_ptr out;

static cu_node kernel(cu_graph g, const cu_node *dep, cu_function f, uint64_t handle, uint32_t k)
{
    cu_node n;
    void *args[] = {&out, &handle, &k};
    struct cu_node_params p = {.type = CUNODE_KERNEL,
                               .u.kernel = {.func = f,
                                            .grid_x = 1,
                                            .grid_y = 1,
                                            .grid_z = 1,
                                            .block_x = 1,
                                            .block_y = 1,
                                            .block_z = 1,
                                            .params = args}};
    DO(cuGraphAddNode(&n, g, dep, dep ? 1 : 0, &p));
    return n;
}

static cu_graph *conditional(cu_graph g, const cu_node *dep, uint64_t handle, int type, unsigned count)
{
    cu_node n;
    struct cu_node_params p = {.type = CUNODE_CONDITIONAL,
                               .u.conditional = {.handle = handle, .type = type, .count = count, .ctx = ctx}};
    DO(cuGraphAddNode(&n, g, dep, dep ? 1 : 0, &p));
    return p.u.conditional.bodies;
}

static uint32_t *launched(cu_graph g, int times)
{
    static uint32_t got[16];
    cu_graph_exec x;
    DO(cuGraphInstantiateWithFlags(&x, g, 0));
    DO(cuGraphDestroy(g)); /* the executable one stands alone */
    DO(cuMemsetD8_v2(out, 0, sizeof got));
    for (int i = 0; i < times; i++) DO(cuGraphLaunch(x, NULL));
    DO(cuCtxSynchronize());
    DO(cuMemcpyDtoH_v2(got, out, sizeof got));
    DO(cuGraphExecDestroy(x));
    return got;
}

static void want(const char *what, const uint32_t *got, int i, uint32_t x)
{
    if (got[i] == x) return;
    printf("%s: word %d is %u, not %u\n", what, i, got[i], x);
    exit(1);
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    cu_module module;
    cu_graph g;
    uint64_t handle;
    int dev;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || !fread(text, 1, sizeof text - 1, file)) return 2;
    DO(cuInit(0));
    DO(cuDeviceGet(&dev, 0));
    DO(cuDevicePrimaryCtxRetain(&ctx, dev));
    DO(cuCtxSetCurrent(ctx));
    DO(cuModuleLoadData(&module, text));
    DO(cuModuleGetFunction(&step, module, "step"));
    DO(cuModuleGetFunction(&mark, module, "mark"));
    DO(cuMemAlloc_v2(&out, 64));

    /* while: the value starts at 1 in every launch; `step` counts word 0 up and goes on until it is a multiple of 5 */
    DO(cuGraphCreate(&g, 0));
    DO(cuGraphConditionalHandleCreate(&handle, g, ctx, 1, CUCOND_ASSIGN_DEFAULT));
    kernel(conditional(g, NULL, handle, CUCOND_WHILE, 1)[0], NULL, step, handle, 5);
    uint32_t *got = launched(g, 3);
    want("while", got, 0, 15);

    /* if and else: `step` sets the value to word 0 mod 2, in four launches */
    DO(cuGraphCreate(&g, 0));
    DO(cuGraphConditionalHandleCreate(&handle, g, ctx, 0, 0));
    cu_node n = kernel(g, NULL, step, handle, 2);
    cu_graph *bodies = conditional(g, &n, handle, CUCOND_IF, 2);
    kernel(bodies[0], NULL, mark, 0, 1);
    kernel(bodies[1], NULL, mark, 0, 2);
    got = launched(g, 5);
    want("if", got, 1, 3);
    want("else", got, 2, 2);

    /* switch: word 0 mod 4 is 1, 2, 3, 0, 1: the third has no body */
    DO(cuGraphCreate(&g, 0));
    DO(cuGraphConditionalHandleCreate(&handle, g, ctx, 0, 0));
    n = kernel(g, NULL, step, handle, 4);
    bodies = conditional(g, &n, handle, CUCOND_SWITCH, 3);
    for (uint32_t k = 0; k < 3; k++) kernel(bodies[k], NULL, mark, 0, 1 + k);
    got = launched(g, 5);
    want("case 0", got, 1, 1);
    want("case 1", got, 2, 2);
    want("case 2", got, 3, 1);
    puts("ok");
    return 0;
}
