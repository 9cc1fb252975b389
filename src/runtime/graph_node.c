/* Graph nodes and their parameters. Each kind of node has add, get, set and set-in-an-instance; the
 * runtime's parameter structures become the driver's. Kernel nodes take a CUfunction of the current
 * context (cuKernelGetFunction); what a program reads back is its own host stub again. */
#include "runtime/priv.h"

static cu_ctx current_context(void)
{
    cu_ctx ctx = NULL;
    return cu.cuCtxGetCurrent(&ctx) ? NULL : ctx;
}

/* ---- kernels ---- */

static cudaError_t to_kernel_node(const struct cudaKernelNodeParams *p, struct cu_kernel_node *d)
{
    cu_function f = NULL;
    cudaError_t e = p ? mg_rt_kernel(p->func, &f) : cudaErrorInvalidValue;
    if (e) return e;
    *d = (struct cu_kernel_node){
        .grid_x = p->gridDim.x,
        .grid_y = p->gridDim.y,
        .grid_z = p->gridDim.z,
        .block_x = p->blockDim.x,
        .block_y = p->blockDim.y,
        .block_z = p->blockDim.z,
        .shared_bytes = p->sharedMemBytes,
        .params = p->kernelParams,
        .extra = p->extra,
    };
    if (!p->gridDim.x || !p->gridDim.y || !p->gridDim.z || !p->blockDim.x || !p->blockDim.y || !p->blockDim.z)
        return cudaErrorInvalidConfiguration;
    return mg_rt_function(p->func, f, &d->func);
}

static void from_kernel_node(const struct cu_kernel_node *d, struct cudaKernelNodeParams *p)
{
    *p = (struct cudaKernelNodeParams){
        .func = (void *)(uintptr_t)mg_rt_host_of(d->func ? (const void *)d->func : (const void *)d->kernel),
        .gridDim = {d->grid_x, d->grid_y, d->grid_z},
        .blockDim = {d->block_x, d->block_y, d->block_z},
        .sharedMemBytes = d->shared_bytes,
        .kernelParams = d->params,
        .extra = d->extra,
    };
}

RT_API(cudaGraphAddKernelNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
                                const struct cudaKernelNodeParams *p))
{
    struct cu_kernel_node d;
    RT_ENTER();
    cudaError_t e = to_kernel_node(p, &d);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuGraphAddKernelNode_v2(node, graph, deps, n, &d));
}
RT_API(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, struct cudaKernelNodeParams *p))
{
    struct cu_kernel_node d;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuGraphKernelNodeGetParams_v2(node, &d));
    if (!e) from_kernel_node(&d, p);
    return e;
}
RT_API(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const struct cudaKernelNodeParams *p))
{
    struct cu_kernel_node d;
    RT_ENTER();
    cudaError_t e = to_kernel_node(p, &d);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuGraphKernelNodeSetParams_v2(node, &d));
}
RT_API(cudaGraphExecKernelNodeSetParams,
       (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *p))
{
    struct cu_kernel_node d;
    RT_ENTER();
    cudaError_t e = to_kernel_node(p, &d);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &d));
}
RT_API(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t dst, cudaGraphNode_t src))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphKernelNodeCopyAttributes(dst, src));
}
RT_API(cudaGraphKernelNodeGetAttribute, (cudaGraphNode_t node, int id, cudaLaunchAttributeValue *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphKernelNodeGetAttribute(node, id, (union cu_launch_value *)(void *)value));
}
RT_API(cudaGraphKernelNodeSetAttribute, (cudaGraphNode_t node, int id, const cudaLaunchAttributeValue *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphKernelNodeSetAttribute(node, id, (const union cu_launch_value *)(const void *)value));
}

/* ---- copies: 3D, linear, to and from symbols, all of them a 3D copy of the driver ---- */

static cudaError_t linear_volume(void *dst, const void *src, size_t bytes, int kind, struct cu_memcpy3d *c)
{
    struct cudaMemcpy3DParms p = {
        .dstPtr = {dst, bytes, bytes, 1},
        .srcPtr = {(void *)(uintptr_t)src, bytes, bytes, 1},
        .extent = {bytes, 1, 1},
        .kind = kind,
    };
    return mg_rt_volume(&p, c);
}

/* The other end of a copy with a symbol: its kind says which side the host is on. */
static cudaError_t symbol_volume(const void *symbol, size_t offset, const void *other, size_t bytes, int kind, bool to,
                                 struct cu_memcpy3d *c)
{
    struct mg_rt_variable v;
    cudaError_t e = mg_rt_variable(symbol, &v);
    if (e) return e;
    if (offset > v.bytes || bytes > v.bytes - offset) return cudaErrorInvalidValue;
    void *at = (char *)(uintptr_t)v.address + offset;
    return to ? linear_volume(at, other, bytes, kind, c) : linear_volume((void *)(uintptr_t)other, at, bytes, kind, c);
}

static cudaError_t add_copy(cudaError_t e, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
                            size_t n, const struct cu_memcpy3d *c)
{
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuGraphAddMemcpyNode(node, graph, deps, n, c, current_context()));
}
/* exec NULL: the node of the graph itself. */
static cudaError_t set_copy(cudaError_t e, cudaGraphExec_t exec, cudaGraphNode_t node, const struct cu_memcpy3d *c)
{
    if (e) return mg_rt_fail(e);
    return mg_rt_done(exec ? cu.cuGraphExecMemcpyNodeSetParams(exec, node, c, current_context())
                           : cu.cuGraphMemcpyNodeSetParams(node, c));
}

RT_API(cudaGraphAddMemcpyNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
                                const struct cudaMemcpy3DParms *p))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return add_copy(p ? mg_rt_volume(p, &c) : cudaErrorInvalidValue, node, graph, deps, n, &c);
}
RT_API(cudaGraphAddMemcpyNode1D, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
                                  void *dst, const void *src, size_t bytes, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return add_copy(linear_volume(dst, src, bytes, kind, &c), node, graph, deps, n, &c);
}
RT_API(cudaGraphAddMemcpyNodeToSymbol,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, const void *symbol,
        const void *src, size_t bytes, size_t offset, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return add_copy(symbol_volume(symbol, offset, src, bytes, kind, true, &c), node, graph, deps, n, &c);
}
RT_API(cudaGraphAddMemcpyNodeFromSymbol,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, void *dst, const void *symbol,
        size_t bytes, size_t offset, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return add_copy(symbol_volume(symbol, offset, dst, bytes, kind, false, &c), node, graph, deps, n, &c);
}
RT_API(cudaGraphMemcpyNodeGetParams, (cudaGraphNode_t node, struct cudaMemcpy3DParms *p))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuGraphMemcpyNodeGetParams(node, &c));
    if (!e) mg_rt_volume_back(&c, p);
    return e;
}
RT_API(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const struct cudaMemcpy3DParms *p))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(p ? mg_rt_volume(p, &c) : cudaErrorInvalidValue, NULL, node, &c);
}
RT_API(cudaGraphMemcpyNodeSetParams1D, (cudaGraphNode_t node, void *dst, const void *src, size_t bytes, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(linear_volume(dst, src, bytes, kind, &c), NULL, node, &c);
}
RT_API(cudaGraphMemcpyNodeSetParamsToSymbol,
       (cudaGraphNode_t node, const void *symbol, const void *src, size_t bytes, size_t offset, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(symbol_volume(symbol, offset, src, bytes, kind, true, &c), NULL, node, &c);
}
RT_API(cudaGraphMemcpyNodeSetParamsFromSymbol,
       (cudaGraphNode_t node, void *dst, const void *symbol, size_t bytes, size_t offset, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(symbol_volume(symbol, offset, dst, bytes, kind, false, &c), NULL, node, &c);
}
RT_API(cudaGraphExecMemcpyNodeSetParams,
       (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(p && exec ? mg_rt_volume(p, &c) : cudaErrorInvalidValue, exec, node, &c);
}
RT_API(cudaGraphExecMemcpyNodeSetParams1D,
       (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src, size_t bytes, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(exec ? linear_volume(dst, src, bytes, kind, &c) : cudaErrorInvalidValue, exec, node, &c);
}
RT_API(cudaGraphExecMemcpyNodeSetParamsToSymbol, (cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                                  const void *src, size_t bytes, size_t offset, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(exec ? symbol_volume(symbol, offset, src, bytes, kind, true, &c) : cudaErrorInvalidValue, exec,
                    node, &c);
}
RT_API(cudaGraphExecMemcpyNodeSetParamsFromSymbol, (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
                                                    const void *symbol, size_t bytes, size_t offset, int kind))
{
    struct cu_memcpy3d c;
    RT_ENTER();
    return set_copy(exec ? symbol_volume(symbol, offset, dst, bytes, kind, false, &c) : cudaErrorInvalidValue, exec,
                    node, &c);
}

/* ---- fills ---- */

static struct cu_memset_node to_memset_node(const struct cudaMemsetParams *p)
{
    return (struct cu_memset_node){(cu_ptr)(uintptr_t)p->dst, p->pitch, p->value, p->elementSize, p->width, p->height,
                                   current_context()};
}

RT_API(cudaGraphAddMemsetNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
                                const struct cudaMemsetParams *p))
{
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    struct cu_memset_node d = to_memset_node(p);
    return mg_rt_done(cu.cuGraphAddMemsetNode(node, graph, deps, n, &d, d.ctx));
}
RT_API(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, struct cudaMemsetParams *p))
{
    struct cu_memset_node d;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuGraphMemsetNodeGetParams(node, &d));
    if (!e)
        *p = (struct cudaMemsetParams){(void *)(uintptr_t)d.dst, d.pitch, d.value, d.element_bytes, d.width, d.height};
    return e;
}
RT_API(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const struct cudaMemsetParams *p))
{
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    struct cu_memset_node d = to_memset_node(p);
    return mg_rt_done(cu.cuGraphMemsetNodeSetParams(node, &d));
}
RT_API(cudaGraphExecMemsetNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *p))
{
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    struct cu_memset_node d = to_memset_node(p);
    return mg_rt_done(cu.cuGraphExecMemsetNodeSetParams(exec, node, &d, d.ctx));
}

/* ---- host functions ---- */

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(struct cu_host_node), "passed on as it is");
#define HOST_NODE(p) ((const struct cu_host_node *)(const void *)(p))

RT_API(cudaGraphAddHostNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
                              const struct cudaHostNodeParams *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphAddHostNode(node, graph, deps, n, HOST_NODE(p)));
}
RT_API(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, struct cudaHostNodeParams *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphHostNodeGetParams(node, (struct cu_host_node *)(void *)p));
}
RT_API(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const struct cudaHostNodeParams *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphHostNodeSetParams(node, HOST_NODE(p)));
}
RT_API(cudaGraphExecHostNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphExecHostNodeSetParams(exec, node, HOST_NODE(p)));
}

/* ---- children, empty nodes, events ---- */

RT_API(cudaGraphAddChildGraphNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, cudaGraph_t child))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphAddChildGraphNode(node, graph, deps, n, child));
}
RT_API(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *child))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphChildGraphNodeGetGraph(node, child));
}
RT_API(cudaGraphExecChildGraphNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphExecChildGraphNodeSetParams(exec, node, child));
}
RT_API(cudaGraphAddEmptyNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphAddEmptyNode(node, graph, deps, n));
}

#define EVENT_NODE(kind)                                                                                               \
    RT_API(cudaGraphAddEvent##kind##Node,                                                                              \
           (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, cudaEvent_t event))      \
    {                                                                                                                  \
        RT_ENTER();                                                                                                    \
        return mg_rt_done(cu.cuGraphAddEvent##kind##Node(node, graph, deps, n, event));                                \
    }                                                                                                                  \
    RT_API(cudaGraphEvent##kind##NodeGetEvent, (cudaGraphNode_t node, cudaEvent_t * event))                            \
    {                                                                                                                  \
        RT_ENTER();                                                                                                    \
        return mg_rt_done(cu.cuGraphEvent##kind##NodeGetEvent(node, event));                                           \
    }                                                                                                                  \
    RT_API(cudaGraphEvent##kind##NodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event))                              \
    {                                                                                                                  \
        RT_ENTER();                                                                                                    \
        return mg_rt_done(cu.cuGraphEvent##kind##NodeSetEvent(node, event));                                           \
    }                                                                                                                  \
    RT_API(cudaGraphExecEvent##kind##NodeSetEvent, (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event))    \
    {                                                                                                                  \
        RT_ENTER();                                                                                                    \
        return mg_rt_done(cu.cuGraphExecEvent##kind##NodeSetEvent(exec, node, event));                                 \
    }
EVENT_NODE(Record)
EVENT_NODE(Wait)
#undef EVENT_NODE

/* ---- allocation ---- */

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(struct cu_alloc_node), "passed on as it is");

RT_API(cudaGraphAddMemAllocNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
                                  struct cudaMemAllocNodeParams *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphAddMemAllocNode(node, graph, deps, n, (struct cu_alloc_node *)(void *)p));
}
RT_API(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphMemAllocNodeGetParams(node, (struct cu_alloc_node *)(void *)p));
}
RT_API(cudaGraphAddMemFreeNode,
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, void *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphAddMemFreeNode(node, graph, deps, n, (cu_ptr)(uintptr_t)p));
}
RT_API(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *out))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphMemFreeNodeGetParams(node, out));
}

/* ---- any node by one call ---- */

/* `p` to `d`. Kinds whose parameters are laid out alike are copied whole. */
static cudaError_t to_node(const struct cudaGraphNodeParams *p, struct cu_node_params *d)
{
    _Static_assert(sizeof *p == sizeof *d, "one layout but for kernels, copies and fills");
    *d = *(const struct cu_node_params *)(const void *)p;
    if (p->type == cudaGraphNodeTypeKernel) return to_kernel_node(&p->kernel, &d->u.kernel);
    if (p->type == cudaGraphNodeTypeMemset) {
        d->u.memset = to_memset_node(&p->memset);
    } else if (p->type == cudaGraphNodeTypeMemcpy) {
        d->u.memcpy = (struct cu_memcpy_node){.flags = p->memcpy.flags, .ctx = current_context()};
        return mg_rt_volume(&p->memcpy.copyParams, &d->u.memcpy.copy);
    }
    return cudaSuccess;
}

/* A conditional node's parameters differ from the driver's by a context at their end. */
struct conditional_node {
    uint64_t handle;
    int type;
    unsigned count;
    cu_graph *bodies;
    cu_ctx ctx;
};

RT_API(cudaGraphAddNode, (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps,
                          const cudaGraphEdgeData *edges, size_t n, struct cudaGraphNodeParams *p))
{
    struct cu_node_params d;
    struct conditional_node *conditional = (struct conditional_node *)(void *)&d.u;
    RT_ENTER();
    cudaError_t e = p ? to_node(p, &d) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    if (p->type == cudaGraphNodeTypeConditional) conditional->ctx = current_context();
    e = mg_rt_done(cu.cuGraphAddNode_v2(node, graph, deps, (const struct cu_edge_data *)(const void *)edges, n, &d));
    if (!e && p->type == cudaGraphNodeTypeMemAlloc) p->alloc.dptr = (void *)(uintptr_t)d.u.alloc.ptr;
    if (!e && p->type == cudaGraphNodeTypeConditional) p->conditional.phGraph_out = conditional->bodies;
    return e;
}
RT_API(cudaGraphNodeSetParams, (cudaGraphNode_t node, struct cudaGraphNodeParams *p))
{
    struct cu_node_params d;
    RT_ENTER();
    cudaError_t e = p ? to_node(p, &d) : cudaErrorInvalidValue;
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuGraphNodeSetParams(node, &d));
}
RT_API(cudaGraphExecNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *p))
{
    struct cu_node_params d;
    RT_ENTER();
    cudaError_t e = p ? to_node(p, &d) : cudaErrorInvalidValue;
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuGraphExecNodeSetParams(exec, node, &d));
}
