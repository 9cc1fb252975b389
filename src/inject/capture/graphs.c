/* Executable graphs: what each would do is read from its nodes when it is made, in an order that their edges allow, and
 * told node by node at every launch. Contents of copies from the host are those at the launch. */
#include "inject/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "inject/session.h"
#include "inject/streams.h"

struct plan;
struct item { /* a node */
    cu_node node;
    int type; /* enum cu_node_type */
    bool disabled;
    struct mg_cap_launch_in launch;
    struct cu_memcpy3d copy;
    struct cu_memset_node set;
    uint64_t at, bytes; /* memory that it allocates or frees */
    struct plan *child;
    const char *missed; /* what it does is not captured: why */
};
struct plan {
    struct item *at;
    uint32_t n;
};
static struct mg_map plans; /* executable graphs -> struct plan; under the lock */

#define CONDITIONAL "conditional nodes of graphs are not captured"
#define OTHER_NODE  "a node of a graph that is neither kernel, copy, memset nor memory is not captured"
#define UNREADABLE  "a node of a graph that the driver does not describe is not captured"
#define HOST_BEFORE "graphs behind work of the host that does not end are not captured"
#define HOST_SHARED                                                                                                    \
    "kernels behind a host function in one graph are not captured where memory of the host is the device's, too"
#define HOST_NODE "copies from the host behind a host function or a copy to the host, in one graph, are not captured"

/* ---- nodes ------------------------------------------------------------------------------------------------ */

static struct plan *plan_new(cu_graph g);
static void plan_free(struct plan *p)
{
    for (uint32_t k = 0; p && k < p->n; k++) {
        free(p->at[k].launch.args);
        plan_free(p->at[k].child);
    }
    if (p) free(p->at);
    free(p);
}

static void set_kernel(struct item *i, const struct cu_kernel_node *n)
{
    struct mg_shape s = {.grid = {n->grid_x, n->grid_y, n->grid_z},
                         .block = {n->block_x, n->block_y, n->block_z},
                         .shared_bytes = n->shared_bytes};
    union cu_launch_value v = {{0}};
    cu_result (*get)(cu_node, int, union cu_launch_value *) =
        MG_REAL_AS(cuGraphKernelNodeGetAttribute, cu_node, int, union cu_launch_value *);
    if (get(i->node, CULAUNCH_COOPERATIVE, &v) == CUE_SUCCESS) s.cooperative = v.cooperative != 0;
    if (get(i->node, CULAUNCH_CLUSTER_DIMENSION, &v) == CUE_SUCCESS)
        s.cluster[0] = v.cluster.x, s.cluster[1] = v.cluster.y, s.cluster[2] = v.cluster.z;
    free(i->launch.args);
    i->missed = mg_cap_launch_read(&i->launch, n->func ? (void *)n->func : (void *)n->kernel, &s, n->params, n->extra)
                    ? NULL
                    : UNREADABLE;
    i->launch.ctx = n->ctx;
}

static void read_node(struct item *i)
{
    struct cu_kernel_node kernel = {0};
    struct cu_alloc_node alloc = {0};
    cu_graph child = NULL;
    cu_ptr p = 0;
    cu_result rc = MG_REAL_AS(cuGraphNodeGetType, cu_node, int *)(i->node, &i->type);
    if (rc != CUE_SUCCESS) {
        i->missed = UNREADABLE;
        return;
    }
    switch (i->type) {
    case CUNODE_KERNEL:
        rc = MG_REAL_AS(cuGraphKernelNodeGetParams_v2, cu_node, struct cu_kernel_node *)(i->node, &kernel);
        if (rc == CUE_SUCCESS) set_kernel(i, &kernel);
        break;
    case CUNODE_MEMCPY:
        rc = MG_REAL_AS(cuGraphMemcpyNodeGetParams, cu_node, struct cu_memcpy3d *)(i->node, &i->copy);
        break;
    case CUNODE_MEMSET:
        rc = MG_REAL_AS(cuGraphMemsetNodeGetParams, cu_node, struct cu_memset_node *)(i->node, &i->set);
        break;
    case CUNODE_GRAPH:
        rc = MG_REAL_AS(cuGraphChildGraphNodeGetGraph, cu_node, cu_graph *)(i->node, &child);
        i->child = rc == CUE_SUCCESS ? plan_new(child) : NULL;
        break;
    case CUNODE_MEM_ALLOC:
        rc = MG_REAL_AS(cuGraphMemAllocNodeGetParams, cu_node, struct cu_alloc_node *)(i->node, &alloc);
        i->at = alloc.ptr;
        i->bytes = alloc.bytes;
        break;
    case CUNODE_MEM_FREE:
        rc = MG_REAL_AS(cuGraphMemFreeNodeGetParams, cu_node, cu_ptr *)(i->node, &p);
        i->at = p;
        break;
    case CUNODE_CONDITIONAL:
        i->missed = CONDITIONAL;
        break;
    case CUNODE_HOST:
    case CUNODE_EMPTY:
    case CUNODE_WAIT_EVENT:
    case CUNODE_EVENT_RECORD:
        break;
    default:
        i->missed = OTHER_NODE;
    }
    if (rc != CUE_SUCCESS) i->missed = UNREADABLE;
}

/* Nodes in an order that their edges allow; of those that may come next the one that the driver names first. */
static void sort_nodes(cu_node *nodes, size_t n, const cu_node *from, const cu_node *to, size_t n_edges)
{
    struct mg_map place = MG_MAP_INIT;
    uint32_t *before = calloc(n + 1, sizeof *before);
    bool *done = calloc(n + 1, 1);
    cu_node *out = calloc(n + 1, sizeof *out);
    size_t k = 0;
    uint64_t v;
    for (size_t i = 0; i < n; i++) mg_map_set(&place, (uintptr_t)nodes[i], i);
    for (size_t e = 0; before && e < n_edges; e++)
        if (mg_map_get(&place, (uintptr_t)to[e], &v)) before[v]++;
    for (bool found = before && done && out; found && k < n;) {
        found = false;
        for (size_t i = 0; i < n && !found; i++)
            if (!done[i] && !before[i]) {
                found = done[i] = true;
                out[k++] = nodes[i];
                for (size_t e = 0; e < n_edges; e++)
                    if (from[e] == nodes[i] && mg_map_get(&place, (uintptr_t)to[e], &v)) before[v]--;
            }
    }
    if (k == n) memcpy(nodes, out, n * sizeof *nodes);
    free(before);
    free(done);
    free(out);
    mg_map_release(&place);
}

static bool read_edges(cu_graph g, cu_node **from, cu_node **to, size_t *n)
{
    typedef cu_result (*with_data)(cu_graph, cu_node *, cu_node *, struct cu_edge_data *, size_t *);
    typedef cu_result (*plain)(cu_graph, cu_node *, cu_node *, size_t *);
    struct cu_edge_data *data = NULL;
    *n = 0;
    bool v2 = ((with_data)mg_slots[MG_FN_cuGraphGetEdges_v2])(g, NULL, NULL, NULL, n) == CUE_SUCCESS;
    if (!v2 && ((plain)mg_slots[MG_FN_cuGraphGetEdges])(g, NULL, NULL, n) != CUE_SUCCESS) return false;
    *from = calloc(*n + 1, sizeof **from);
    *to = calloc(*n + 1, sizeof **to);
    data = calloc(*n + 1, sizeof *data);
    bool ok = *from && *to && data;
    if (ok && *n)
        ok = (v2 ? ((with_data)mg_slots[MG_FN_cuGraphGetEdges_v2])(g, *from, *to, data, n)
                 : ((plain)mg_slots[MG_FN_cuGraphGetEdges])(g, *from, *to, n)) == CUE_SUCCESS;
    free(data);
    return ok;
}

static struct plan *plan_new(cu_graph g)
{
    struct plan *p = calloc(1, sizeof *p);
    cu_node *nodes = NULL, *from = NULL, *to = NULL;
    size_t n = 0, n_edges = 0;
    cu_result (*get)(cu_graph, cu_node *, size_t *) = MG_REAL_AS(cuGraphGetNodes, cu_graph, cu_node *, size_t *);
    bool ok = p && get(g, NULL, &n) == CUE_SUCCESS && (nodes = calloc(n + 1, sizeof *nodes)) &&
              (p->at = calloc(n + 1, sizeof *p->at)) && (!n || get(g, nodes, &n) == CUE_SUCCESS) &&
              read_edges(g, &from, &to, &n_edges);
    if (ok) sort_nodes(nodes, n, from, to, n_edges);
    for (size_t k = 0; ok && k < n; k++) {
        p->at[k].node = nodes[k];
        read_node(&p->at[k]);
        p->n++;
    }
    if (!ok && p && p->at) {
        p->at[0].missed = UNREADABLE;
        p->n = 1;
    }
    free(nodes);
    free(from);
    free(to);
    return p;
}

/* ---- launches ----------------------------------------------------------------------------------------------- */

struct state {
    bool host_wrote, host_ran;
    uint64_t graph, stream;
}; /* of one launch of a graph */

static bool reads_host(const struct cu_memcpy3d *c)
{
    return c->src_type != CUMEM_ARRAY &&
           mg_cap_place_of(c->src_type == CUMEM_HOST ? (uintptr_t)c->src_host : c->src_device) == MG_PLACE_HOST;
}
static bool writes_host(const struct cu_memcpy3d *c)
{
    return c->dst_type != CUMEM_ARRAY &&
           mg_cap_place_of(c->dst_type == CUMEM_HOST ? (uintptr_t)c->dst_host : c->dst_device) == MG_PLACE_HOST;
}

static void put_copy(const struct item *i, struct state *s)
{
    bool writes = writes_host(&i->copy);
    if (s->host_wrote && reads_host(&i->copy)) mg_capture_miss(HOST_NODE, true);
    s->host_wrote |= writes;
    if (!writes) mg_cap_copy_3d(&i->copy, s->stream, false);
}

static void put_plan(const struct plan *p, struct state *s);
static void put_item(struct item *i, struct state *s)
{
    switch (i->type) {
    case CUNODE_KERNEL:
        i->launch.graph = s->graph;
        i->launch.stream = s->stream;
        if (s->host_ran && mg_capture.shares) mg_capture_miss(HOST_SHARED, true);
        i->launch.why = mg_capture.sticky;
        mg_capture.of = i->launch.ctx;
        if (i->launch.args) mg_cap_launch_put(&i->launch);
        mg_capture.of = NULL;
        break;
    case CUNODE_MEMCPY:
        put_copy(i, s);
        break;
    case CUNODE_MEMSET:
        mg_cap_set(i->set.dst, i->set.pitch, i->set.width, i->set.height, i->set.element_bytes, i->set.value,
                   s->stream);
        break;
    case CUNODE_GRAPH:
        if (i->child) put_plan(i->child, s);
        break;
    case CUNODE_MEM_ALLOC:
        if (!mg_cap_area_find(i->at) && i->bytes) mg_cap_area_tell(mg_cap_area_add(i->at, i->bytes, MG_CAP_DEVICE));
        break;
    case CUNODE_MEM_FREE:
        mg_cap_freed(i->at);
        break;
    case CUNODE_HOST:
        s->host_wrote = s->host_ran = true;
        break;
    default:
        break;
    }
}
static void put_plan(const struct plan *p, struct state *s)
{
    for (uint32_t k = 0; k < p->n; k++)
        if (!p->at[k].disabled) put_item(&p->at[k], s);
}

/* What cannot be told of it is a reason against all of its launches. */
static void miss_plan(const struct plan *p)
{
    for (uint32_t k = 0; k < p->n; k++) {
        if (p->at[k].missed) mg_capture_miss(p->at[k].missed, true);
        if (p->at[k].child) miss_plan(p->at[k].child);
    }
}

/* Memory that is handed to its kernels, before any of them runs. */
static void before_plan(const struct plan *p)
{
    for (uint32_t k = 0; k < p->n; k++)
        if (p->at[k].launch.args)
            mg_cap_launch_before(&p->at[k].launch);
        else if (p->at[k].child)
            before_plan(p->at[k].child);
    mg_shared_before();
}
static void after_plan(const struct plan *p)
{
    for (uint32_t k = 0; k < p->n; k++)
        if (p->at[k].launch.args)
            mg_check_launch(p->at[k].launch.args, p->at[k].launch.arg_bytes);
        else if (p->at[k].child)
            after_plan(p->at[k].child);
}

static struct plan *plan_of(cu_graph_exec x)
{
    uint64_t v;
    return mg_map_get(&plans, (uintptr_t)x, &v) ? (struct plan *)(uintptr_t)v : NULL;
}

static void graph_before(const struct plan *p, cu_graph_exec x, cu_stream s)
{
    struct state state = {.graph = mg_graph_number(x), .stream = mg_stream_number(s)};
    miss_plan(p);
    before_plan(p);
    if (mg_capture.host_works && !mg_check_wait(true)) mg_capture_miss(HOST_BEFORE, true);
    mg_capture.told_graph = true; /* what it does is told before it runs: nothing is to be waited for in between */
    put_plan(p, &state);
    mg_capture.told_graph = false;
    mg_capture.host_works |= state.host_wrote;
}

#define GRAPH_LAUNCH(name, pt)                                                                                         \
    MG_CAPTURE(name, cu_graph_exec x, cu_stream s)                                                                     \
    {                                                                                                                  \
        if (!mg_capture_looks() || mg_cap_is_capturing(s, pt)) return NEXT(name)(x, s);                                \
        mg_capture_lock();                                                                                             \
        mg_check_stream(STREAM_OF(s, pt));                                                                             \
        const struct plan *p = plan_of(x);                                                                             \
        if (p) graph_before(p, x, s);                                                                                  \
        mg_inside--;                                                                                                   \
        cu_result rc = NEXT(name)(x, s);                                                                               \
        mg_inside++;                                                                                                   \
        if (!p || rc != CUE_SUCCESS)                                                                                   \
            mg_capture_miss(p ? "a launch of a graph failed" : UNREADABLE, true);                                      \
        else                                                                                                           \
            after_plan(p);                                                                                             \
        mg_capture_unlock();                                                                                           \
        return rc;                                                                                                     \
    }
GRAPH_LAUNCH(cuGraphLaunch, false)
GRAPH_LAUNCH(cuGraphLaunch_ptsz, true)

/* ---- executable graphs come, change and go ---------------------------------------------------------------------- */

static cu_result made(cu_result rc, cu_graph_exec *x, cu_graph g)
{
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        plan_free(plan_of(*x));
        mg_map_set(&plans, (uintptr_t)*x, (uintptr_t)plan_new(g));
        mg_capture_unlock();
    }
    return rc;
}
#define INSTANTIATE(name)                                                                                              \
    MG_CAPTURE(name, cu_graph_exec *x, cu_graph g, cu_node *error, char *log, size_t room)                             \
    {                                                                                                                  \
        return made(NEXT(name)(x, g, error, log, room), x, g);                                                         \
    }
INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)
MG_CAPTURE(cuGraphInstantiateWithFlags, cu_graph_exec *x, cu_graph g, unsigned long long flags)
{
    return made(NEXT(cuGraphInstantiateWithFlags)(x, g, flags), x, g);
}
MG_CAPTURE(cuGraphInstantiateWithParams, cu_graph_exec *x, cu_graph g, struct cu_instantiate_params *p)
{
    return made(NEXT(cuGraphInstantiateWithParams)(x, g, p), x, g);
}
MG_CAPTURE(cuGraphInstantiateWithParams_ptsz, cu_graph_exec *x, cu_graph g, struct cu_instantiate_params *p)
{
    return made(NEXT(cuGraphInstantiateWithParams_ptsz)(x, g, p), x, g);
}
MG_CAPTURE(cuGraphExecDestroy, cu_graph_exec x)
{
    if (mg_capture_looks()) {
        mg_capture_lock();
        plan_free(plan_of(x));
        mg_map_del(&plans, (uintptr_t)x);
        mg_capture_unlock();
    }
    return NEXT(cuGraphExecDestroy)(x);
}

/* Changes name nodes of the graph that it was made from. */
static struct item *item_of(const struct plan *p, cu_node node)
{
    struct item *found = NULL;
    for (uint32_t k = 0; p && k < p->n && !found; k++)
        found = p->at[k].node == node ? &p->at[k] : item_of(p->at[k].child, node);
    return found;
}

static cu_result updated(cu_result rc, cu_graph_exec x, cu_graph g)
{
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        struct plan *old = plan_of(x), *p = plan_new(g);
        for (uint32_t k = 0; old && p && k < p->n && p->n == old->n; k++) /* the same nodes in the same order */
            p->at[k].node = old->at[k].node, p->at[k].disabled = old->at[k].disabled;
        plan_free(old);
        mg_map_set(&plans, (uintptr_t)x, (uintptr_t)p);
        mg_capture_unlock();
    }
    return rc;
}

MG_CAPTURE(cuGraphExecUpdate, cu_graph_exec x, cu_graph g, cu_node *node, int *why)
{
    return updated(NEXT(cuGraphExecUpdate)(x, g, node, why), x, g);
}
MG_CAPTURE(cuGraphExecUpdate_v2, cu_graph_exec x, cu_graph g, struct cu_update_info *info)
{
    return updated(NEXT(cuGraphExecUpdate_v2)(x, g, info), x, g);
}

#define CHANGED(entry, params, ...)                                                                                    \
    cu_result rc = NEXT(entry)(x, node, __VA_ARGS__);                                                                  \
    if (rc == CUE_SUCCESS && mg_capture_looks()) {                                                                     \
        mg_capture_lock();                                                                                             \
        struct item *i = item_of(plan_of(x), node);                                                                    \
        if (i)                                                                                                         \
            params;                                                                                                    \
        else                                                                                                           \
            mg_capture_miss(UNREADABLE, true);                                                                         \
        mg_capture_unlock();                                                                                           \
    }                                                                                                                  \
    return rc
MG_CAPTURE(cuGraphExecKernelNodeSetParams, cu_graph_exec x, cu_node node, const struct cu_kernel_node *n)
{
    struct cu_kernel_node all = {0};
    if (n) memcpy(&all, n, CU_KERNEL_NODE_V1_BYTES);
    CHANGED(cuGraphExecKernelNodeSetParams, set_kernel(i, &all), n);
}
MG_CAPTURE(cuGraphExecKernelNodeSetParams_v2, cu_graph_exec x, cu_node node, const struct cu_kernel_node *n)
{
    CHANGED(cuGraphExecKernelNodeSetParams_v2, set_kernel(i, n), n);
}
MG_CAPTURE(cuGraphExecMemcpyNodeSetParams, cu_graph_exec x, cu_node node, const struct cu_memcpy3d *c, cu_ctx ctx)
{
    CHANGED(cuGraphExecMemcpyNodeSetParams, i->copy = *c, c, ctx);
}
MG_CAPTURE(cuGraphExecMemsetNodeSetParams, cu_graph_exec x, cu_node node, const struct cu_memset_node *n, cu_ctx ctx)
{
    CHANGED(cuGraphExecMemsetNodeSetParams, memcpy(&i->set, n, CU_MEMSET_NODE_V1_BYTES), n, ctx);
}
static void set_child(struct item *i, cu_graph g)
{
    plan_free(i->child);
    i->child = plan_new(g);
}
MG_CAPTURE(cuGraphExecChildGraphNodeSetParams, cu_graph_exec x, cu_node node, cu_graph g)
{
    CHANGED(cuGraphExecChildGraphNodeSetParams, set_child(i, g), g);
}
static void set_any(struct item *i, const struct cu_node_params *n)
{
    switch (n->type) {
    case CUNODE_KERNEL:
        set_kernel(i, &n->u.kernel);
        break;
    case CUNODE_MEMCPY:
        i->copy = n->u.memcpy.copy;
        break;
    case CUNODE_MEMSET:
        i->set = n->u.memset;
        break;
    case CUNODE_GRAPH:
        set_child(i, n->u.graph.graph);
        break;
    case CUNODE_HOST:
        break;
    default:
        i->missed = OTHER_NODE;
    }
}
MG_CAPTURE(cuGraphExecNodeSetParams, cu_graph_exec x, cu_node node, struct cu_node_params *n)
{
    CHANGED(cuGraphExecNodeSetParams, set_any(i, n), n);
}
MG_CAPTURE(cuGraphNodeSetEnabled, cu_graph_exec x, cu_node node, unsigned enabled)
{
    CHANGED(cuGraphNodeSetEnabled, i->disabled = !enabled, enabled);
}
