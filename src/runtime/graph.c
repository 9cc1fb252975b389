/* Graphs as wholes: making, walking, instantiating, launching; user objects. Nodes with parameters
 * are in graph_node.c. */
#include "runtime/priv.h"

RT_API(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphCreate(graph, flags));
}
RT_API(cudaGraphDestroy, (cudaGraph_t graph))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphDestroy(graph));
}
RT_API(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphClone(clone, graph));
}
RT_API(cudaGraphDestroyNode, (cudaGraphNode_t node))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphDestroyNode(node));
}
RT_API(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphDebugDotPrint(graph, path, flags));
}

/* ---- walking ---- */

RT_API(cudaGraphNodeFindInClone, (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphNodeFindInClone(node, original, clone));
}
RT_API(cudaGraphNodeGetType, (cudaGraphNode_t node, int *type))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphNodeGetType(node, type)); /* the same numbers */
}
RT_API(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphGetNodes(graph, nodes, n));
}
RT_API(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphGetRootNodes(graph, nodes, n));
}

static struct cu_edge_data *edge_data(const cudaGraphEdgeData *edges)
{
    return (struct cu_edge_data *)(uintptr_t)edges;
}

RT_API(cudaGraphGetEdges,
       (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges, size_t *n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphGetEdges_v2(graph, from, to, edge_data(edges), n));
}
RT_API(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t *deps, cudaGraphEdgeData *edges, size_t *n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphNodeGetDependencies_v2(node, deps, edge_data(edges), n));
}
RT_API(cudaGraphNodeGetDependentNodes,
       (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphNodeGetDependentNodes_v2(node, nodes, edge_data(edges), n));
}
RT_API(cudaGraphAddDependencies, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                  const cudaGraphEdgeData *edges, size_t n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphAddDependencies_v2(graph, from, to, edge_data(edges), n));
}
RT_API(cudaGraphRemoveDependencies, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphRemoveDependencies_v2(graph, from, to, edge_data(edges), n));
}

/* ---- instances ---- */

RT_API(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphInstantiateWithFlags(exec, graph, flags));
}
RT_API(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags))
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(struct cu_instantiate_params) &&
                   sizeof(cudaGraphExecUpdateResultInfo) == sizeof(struct cu_update_info),
               "passed on as they are");

RT_API(cudaGraphInstantiateWithParams, (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphInstantiateWithParams(exec, graph, (struct cu_instantiate_params *)(void *)params));
}
RT_API(cudaGraphInstantiateWithParams_ptsz,
       (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params))
{
    if (!params) return mg_rt_fail(cudaErrorInvalidValue);
    cudaStream_t given = params->uploadStream;
    params->uploadStream = RT_PT(given);
    cudaError_t e = cudaGraphInstantiateWithParams(exec, graph, params);
    params->uploadStream = given;
    return e;
}

RT_API(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags))
{
    uint64_t value = 0;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuGraphExecGetFlags(exec, &value));
    if (!e) *flags = value;
    return e;
}
RT_API(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphNodeSetEnabled(exec, node, enabled));
}
RT_API(cudaGraphNodeGetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphNodeGetEnabled(exec, node, enabled));
}
RT_API(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphExecUpdate_v2(exec, graph, (struct cu_update_info *)(void *)info));
}
RT_API(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphUpload(exec, stream));
}
RT_API_PTSZ(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, RT_PT(stream)))
RT_API(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphLaunch(exec, stream));
}
RT_API_PTSZ(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, RT_PT(stream)))
RT_API(cudaGraphExecDestroy, (cudaGraphExec_t exec))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphExecDestroy(exec));
}
RT_API(cudaGraphConditionalHandleCreate,
       (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned value, unsigned flags))
{
    cu_ctx ctx = NULL;
    uint64_t made = 0;
    RT_ENTER();
    cu_result r = cu.cuCtxGetCurrent(&ctx);
    if (!r) r = cu.cuGraphConditionalHandleCreate(&made, graph, ctx, value, flags);
    if (!r) *handle = made;
    return mg_rt_done(r);
}

/* ---- user objects ---- */

RT_API(cudaUserObjectCreate, (cudaUserObject_t * object, void *p, cudaHostFn_t destroy, unsigned count, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuUserObjectCreate(object, p, destroy, count, flags));
}
RT_API(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count))
{
    RT_ENTER();
    return mg_rt_done(cu.cuUserObjectRetain(object, count));
}
RT_API(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count))
{
    RT_ENTER();
    return mg_rt_done(cu.cuUserObjectRelease(object, count));
}
RT_API(cudaGraphRetainUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphRetainUserObject(graph, object, count, flags));
}
RT_API(cudaGraphReleaseUserObject, (cudaGraph_t graph, cudaUserObject_t object, unsigned count))
{
    RT_ENTER();
    return mg_rt_done(cu.cuGraphReleaseUserObject(graph, object, count));
}
