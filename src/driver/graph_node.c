/* Graph nodes by type: making, reading and changing them. Every typed call is the general one
 * (cuGraphAddNode, cuGraphNodeSetParams) with the parameters put into its structure. */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- parameters to op -------------------------------------------------------------------------------- */

static cu_result kernel_op(const struct cu_kernel_node *p, struct mg_work *op)
{
    struct cu_launch_config c = {p->grid_x,  p->grid_y,       p->grid_z, p->block_x, p->block_y,
                                 p->block_z, p->shared_bytes, NULL,      NULL,       0};
    cu_result r =
        mg_kernel_op_make(op, p->func ? (const void *)p->func : (const void *)p->kernel, &c, p->params, p->extra);
    if (!r)
        mg_note_take(&op->u.kernel);
    else
        mg_driver_note_next_launch(NULL, NULL);
    return r;
}

static cu_result memop_op(const struct cu_memop_node *p, struct mg_work *op)
{
    CHECK(p->params && p->count);
    cu_result r = mg_memops_check(p->count, p->params);
    if (r) return r;
    *op = (struct mg_work){.kind = MG_OPK_MEMOPS, .u.memops = {p->count, malloc(p->count * sizeof *p->params)}};
    if (!op->u.memops.at) return CUE_OUT_OF_MEMORY;
    memcpy(op->u.memops.at, p->params, p->count * sizeof *p->params);
    return CUE_SUCCESS;
}

static cu_result alloc_op(struct cu_alloc_node *p, struct CUctx_st *ctx, struct mg_work *op, struct mg_graph_mem **mem)
{
    CHECK(p->bytes && p->props.alloc_type == 1 && p->props.location.type == CULOC_DEVICE &&
          !mg_location_check(&p->props.location));
    struct cu_alloc_node *keep = malloc(sizeof *keep);
    if (keep && !*mem) *mem = mg_graph_mem_new(ctx, p->props.location.id, p->bytes);
    if (!keep || !*mem) {
        free(keep);
        return CUE_OUT_OF_MEMORY;
    }
    p->ptr = (*mem)->base;
    *keep = *p;
    keep->access = NULL;
    keep->n_access = 0;
    *op = (struct mg_work){.kind = MG_OPK_ALLOC, .u.mem = {p->ptr, NULL, p->bytes, keep}};
    return CUE_SUCCESS;
}

cu_result mg_node_make(const struct cu_node_params *p, struct mg_work *op, struct CUctx_st **ctx,
                       struct mg_graph_mem **mem, struct CUgraph_st **child)
{
    cu_result r = mg_enter(ctx);
    if (r) return r;
    *op = (struct mg_work){.kind = MG_OPK_EMPTY};
    *child = NULL;
    cu_ctx given = p->type == CUNODE_KERNEL         ? p->u.kernel.ctx
                   : p->type == CUNODE_MEMCPY       ? p->u.memcpy.ctx
                   : p->type == CUNODE_MEMSET       ? p->u.memset.ctx
                   : p->type == CUNODE_BATCH_MEM_OP ? p->u.memop.ctx
                                                    : NULL;
    if (given) {
        if (!mg_obj_is(given, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
        *ctx = given;
    }
    switch (p->type) {
    case CUNODE_KERNEL:
        return kernel_op(&p->u.kernel, op);
    case CUNODE_MEMCPY:
        return mg_copy_make(op, &p->u.memcpy.copy);
    case CUNODE_MEMSET:
        return mg_fill_make(op, p->u.memset.dst, p->u.memset.pitch, p->u.memset.value, p->u.memset.element_bytes,
                            p->u.memset.width, p->u.memset.height);
    case CUNODE_HOST:
        CHECK(p->u.host.fn);
        *op = (struct mg_work){.kind = MG_OPK_HOST, .u.host = p->u.host};
        return CUE_SUCCESS;
    case CUNODE_GRAPH:
        CHECK(mg_graph_is(p->u.graph.graph));
        if (p->u.graph.ownership) return CUE_NOT_SUPPORTED;
        *child = p->u.graph.graph;
        return CUE_SUCCESS;
    case CUNODE_EMPTY:
        return CUE_SUCCESS;
    case CUNODE_WAIT_EVENT:
    case CUNODE_EVENT_RECORD:
        if (!mg_obj_is(p->u.event.event, MG_OBJ_EVENT)) return CUE_INVALID_HANDLE;
        op->kind = p->type == CUNODE_WAIT_EVENT ? MG_OPK_WAIT : MG_OPK_RECORD;
        op->u.event.event = p->u.event.event;
        return CUE_SUCCESS;
    case CUNODE_MEM_ALLOC:
        return alloc_op((struct cu_alloc_node *)(uintptr_t)&p->u.alloc, *ctx, op, mem);
    case CUNODE_MEM_FREE:
        mg_lock();
        *mem = mg_graph_mem_of(p->u.free.ptr);
        if (*mem) (*mem)->refs++;
        mg_unlock();
        CHECK(*mem || mg_ptr_on_device(p->u.free.ptr, 1));
        *op = (struct mg_work){.kind = MG_OPK_FREE, .u.mem = {.ptr = p->u.free.ptr}};
        return CUE_SUCCESS;
    case CUNODE_BATCH_MEM_OP:
        return memop_op(&p->u.memop, op);
    case CUNODE_CONDITIONAL: {
        const struct cu_conditional_node *c = &p->u.conditional;
        CHECK(c->handle && c->type >= CUCOND_IF && c->type <= CUCOND_SWITCH && c->count &&
              c->count <= (c->type == CUCOND_IF      ? 2u
                           : c->type == CUCOND_WHILE ? 1u
                                                     : 1u << 16));
        mg_lock();
        *op = (struct mg_work){.kind = MG_OPK_COND, .u.cond = mg_cond_new(c)};
        mg_unlock();
        if (op->u.cond) return CUE_SUCCESS;
        op->kind = MG_OPK_EMPTY;
        return CUE_OUT_OF_MEMORY;
    }
    case CUNODE_EXT_SEMAS_SIGNAL:
    case CUNODE_EXT_SEMAS_WAIT:
        mg_say("external semaphores are not supported");
        return CUE_NOT_SUPPORTED;
    default:
        return CUE_INVALID_VALUE;
    }
}

/* ---- adding ------------------------------------------------------------------------------------------------ */

static cu_result add_node(cu_node *out, cu_graph g, const cu_node *deps, size_t n, struct cu_node_params *p)
{
    CHECK(out && mg_graph_is(g) && p && (!n || deps));
    for (size_t i = 0; i < n; i++) CHECK(mg_obj_is(deps[i], MG_OBJ_NODE) && deps[i]->graph == g);
    struct mg_work op;
    struct CUctx_st *ctx;
    struct mg_graph_mem *mem = p->type == CUNODE_MEM_ALLOC ? mg_graph_mem_again(deps, n, p->u.alloc.bytes) : NULL;
    struct CUgraph_st *child;
    cu_result r = mg_node_make(p, &op, &ctx, &mem, &child);
    if (r) {
        mg_lock();
        mg_graph_mem_unref(mem);
        mg_unlock();
        return r;
    }
    mg_lock();
    if (child) {
        op.kind = MG_OPK_CHILD;
        op.u.child.graph = mg_graph_clone(child);
        if (!op.u.child.graph) {
            mg_unlock();
            return CUE_OUT_OF_MEMORY;
        }
    }
    *out = mg_graph_add(g, p->type, ctx, &op, deps, n);
    if (*out) (*out)->mem = mem;
    if (*out && op.kind == MG_OPK_COND) p->u.conditional.bodies = op.u.cond->graphs;
    mg_unlock();
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result cuGraphAddNode(cu_node *out, cu_graph g, const cu_node *deps, size_t n, struct cu_node_params *p)
{
    return add_node(out, g, deps, n, p);
}
static cu_result cuGraphAddNode_v2(cu_node *out, cu_graph g, const cu_node *deps, const struct cu_edge_data *data,
                                   size_t n, struct cu_node_params *p)
{
    (void)data;
    return add_node(out, g, deps, n, p);
}

#define PARAMS(t, field)                                                                                               \
    struct cu_node_params p = {.type = t};                                                                             \
    memcpy(&p.u.field, params, sizeof p.u.field)
#define DEPS cu_node *out, cu_graph g, const cu_node *deps, size_t n

static void kernel_params(struct cu_node_params *p, const void *params, bool v1)
{
    memset(p, 0, sizeof *p);
    p->type = CUNODE_KERNEL;
    memcpy(&p->u.kernel, params, v1 ? CU_KERNEL_NODE_V1_BYTES : sizeof p->u.kernel);
}

static cu_result cuGraphAddKernelNode(DEPS, const void *params)
{
    CHECK(params);
    struct cu_node_params p;
    kernel_params(&p, params, true);
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddKernelNode_v2(DEPS, const void *params)
{
    CHECK(params);
    struct cu_node_params p;
    kernel_params(&p, params, false);
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddMemcpyNode(DEPS, const struct cu_memcpy3d *copy, cu_ctx ctx)
{
    CHECK(copy);
    struct cu_node_params p = {.type = CUNODE_MEMCPY, .u.memcpy = {.ctx = ctx, .copy = *copy}};
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddMemsetNode(DEPS, const void *params, cu_ctx ctx)
{
    CHECK(params);
    struct cu_node_params p = {.type = CUNODE_MEMSET};
    memcpy(&p.u.memset, params, CU_MEMSET_NODE_V1_BYTES);
    p.u.memset.ctx = ctx;
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddHostNode(DEPS, const struct cu_host_node *params)
{
    CHECK(params);
    PARAMS(CUNODE_HOST, host);
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddChildGraphNode(DEPS, cu_graph child)
{
    struct cu_node_params p = {.type = CUNODE_GRAPH, .u.graph = {.graph = child}};
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddEmptyNode(DEPS)
{
    struct cu_node_params p = {.type = CUNODE_EMPTY};
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddEventRecordNode(DEPS, cu_event e)
{
    struct cu_node_params p = {.type = CUNODE_EVENT_RECORD, .u.event = {e}};
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddEventWaitNode(DEPS, cu_event e)
{
    struct cu_node_params p = {.type = CUNODE_WAIT_EVENT, .u.event = {e}};
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddMemAllocNode(DEPS, struct cu_alloc_node *params)
{
    CHECK(params);
    PARAMS(CUNODE_MEM_ALLOC, alloc);
    cu_result r = add_node(out, g, deps, n, &p);
    if (!r) params->ptr = p.u.alloc.ptr;
    return r;
}
static cu_result cuGraphAddMemFreeNode(DEPS, cu_ptr ptr)
{
    struct cu_node_params p = {.type = CUNODE_MEM_FREE, .u.free = {ptr}};
    return add_node(out, g, deps, n, &p);
}
static cu_result cuGraphAddBatchMemOpNode(DEPS, const struct cu_memop_node *params)
{
    CHECK(params);
    PARAMS(CUNODE_BATCH_MEM_OP, memop);
    return add_node(out, g, deps, n, &p);
}

/* ---- changing ------------------------------------------------------------------------------------------------ */

static cu_result check_node(cu_node n, int type)
{
    if (!mg_obj_is(n, MG_OBJ_NODE)) return CUE_INVALID_HANDLE;
    CHECK(n->type == type);
    return CUE_SUCCESS;
}

static cu_result change(cu_node n, struct cu_node_params *p)
{
    cu_result r = check_node(n, p->type);
    if (r) return r;
    CHECK(p->type != CUNODE_GRAPH && p->type != CUNODE_CONDITIONAL && p->type != CUNODE_MEM_ALLOC &&
          p->type != CUNODE_MEM_FREE);
    struct mg_work op;
    struct CUctx_st *ctx;
    struct mg_graph_mem *mem = NULL;
    struct CUgraph_st *child;
    r = mg_node_make(p, &op, &ctx, &mem, &child);
    if (r) return r;
    mg_lock();
    if (op.kind == MG_OPK_KERNEL) { /* set as attributes, not as parameters */
        op.u.kernel.cooperative |= n->op.u.kernel.cooperative;
        if (!op.u.kernel.cluster.x) op.u.kernel.cluster = n->op.u.kernel.cluster;
    }
    mg_work_release(&n->op);
    n->op = op;
    n->ctx = ctx;
    free(n->param_ptrs);
    n->param_ptrs = NULL;
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuGraphNodeSetParams(cu_node n, struct cu_node_params *p)
{
    CHECK(p);
    return change(n, p);
}
static cu_result cuGraphKernelNodeSetParams(cu_node n, const void *params)
{
    CHECK(params);
    struct cu_node_params p;
    kernel_params(&p, params, true);
    return change(n, &p);
}
static cu_result cuGraphKernelNodeSetParams_v2(cu_node n, const void *params)
{
    CHECK(params);
    struct cu_node_params p;
    kernel_params(&p, params, false);
    return change(n, &p);
}
static cu_result cuGraphMemcpyNodeSetParams(cu_node n, const struct cu_memcpy3d *copy)
{
    CHECK(copy);
    struct cu_node_params p = {.type = CUNODE_MEMCPY, .u.memcpy = {.copy = *copy}};
    return change(n, &p);
}
static cu_result cuGraphMemsetNodeSetParams(cu_node n, const void *params)
{
    CHECK(params);
    struct cu_node_params p = {.type = CUNODE_MEMSET};
    memcpy(&p.u.memset, params, CU_MEMSET_NODE_V1_BYTES);
    return change(n, &p);
}
static cu_result cuGraphHostNodeSetParams(cu_node n, const struct cu_host_node *params)
{
    CHECK(params);
    PARAMS(CUNODE_HOST, host);
    return change(n, &p);
}
static cu_result cuGraphEventRecordNodeSetEvent(cu_node n, cu_event e)
{
    struct cu_node_params p = {.type = CUNODE_EVENT_RECORD, .u.event = {e}};
    return change(n, &p);
}
static cu_result cuGraphEventWaitNodeSetEvent(cu_node n, cu_event e)
{
    struct cu_node_params p = {.type = CUNODE_WAIT_EVENT, .u.event = {e}};
    return change(n, &p);
}
static cu_result cuGraphBatchMemOpNodeSetParams(cu_node n, const struct cu_memop_node *params)
{
    CHECK(params);
    PARAMS(CUNODE_BATCH_MEM_OP, memop);
    return change(n, &p);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static cu_result get_kernel(cu_node n, void *out, bool v1)
{
    cu_result r = check_node(n, CUNODE_KERNEL);
    if (r) return r;
    CHECK(out);
    mg_lock();
    const struct mg_kernel_op *k = &n->op.u.kernel;
    const struct mg_kernel_info *info = &k->func->info;
    if (!n->param_ptrs) {
        n->param_ptrs = malloc((info->n_params + 1) * sizeof *n->param_ptrs);
        for (uint32_t i = 0; n->param_ptrs && i < info->n_params; i++)
            n->param_ptrs[i] = k->params + info->param_offsets[i];
    }
    struct cu_kernel_node p = {
        .func = k->kernel && v1 ? (cu_function)(void *)k->kernel
                : k->kernel     ? NULL
                                : k->func,
        .grid_x = k->grid.x,
        .grid_y = k->grid.y,
        .grid_z = k->grid.z,
        .block_x = k->block.x,
        .block_y = k->block.y,
        .block_z = k->block.z,
        .shared_bytes = k->shared_bytes,
        .params = n->param_ptrs,
        .kernel = k->kernel,
        .ctx = n->ctx,
    };
    if (!v1 && k->kernel) p.func = k->func;
    memcpy(out, &p, v1 ? CU_KERNEL_NODE_V1_BYTES : sizeof p);
    mg_unlock();
    return n->param_ptrs ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}
static cu_result cuGraphKernelNodeGetParams(cu_node n, void *out)
{
    return get_kernel(n, out, true);
}
static cu_result cuGraphKernelNodeGetParams_v2(cu_node n, void *out)
{
    return get_kernel(n, out, false);
}

static cu_result cuGraphMemcpyNodeGetParams(cu_node n, struct cu_memcpy3d *out)
{
    cu_result r = check_node(n, CUNODE_MEMCPY);
    if (r) return r;
    CHECK(out);
    *out = n->op.u.copy.raw;
    return CUE_SUCCESS;
}
static cu_result cuGraphMemsetNodeGetParams(cu_node n, void *out)
{
    cu_result r = check_node(n, CUNODE_MEMSET);
    if (r) return r;
    CHECK(out);
    const struct mg_fill_op *f = &n->op.u.fill;
    struct cu_memset_node p = {(uintptr_t)f->dst, f->pitch, f->value, f->element_bytes, f->width, f->height, NULL};
    memcpy(out, &p, CU_MEMSET_NODE_V1_BYTES);
    return CUE_SUCCESS;
}
static cu_result cuGraphHostNodeGetParams(cu_node n, struct cu_host_node *out)
{
    cu_result r = check_node(n, CUNODE_HOST);
    if (r) return r;
    CHECK(out);
    *out = n->op.u.host;
    return CUE_SUCCESS;
}
static cu_result cuGraphChildGraphNodeGetGraph(cu_node n, cu_graph *out)
{
    cu_result r = check_node(n, CUNODE_GRAPH);
    if (r) return r;
    CHECK(out);
    *out = n->op.u.child.graph;
    return CUE_SUCCESS;
}
static cu_result get_event(cu_node n, int type, cu_event *out)
{
    cu_result r = check_node(n, type);
    if (r) return r;
    CHECK(out);
    *out = n->op.u.event.event;
    return CUE_SUCCESS;
}
static cu_result cuGraphEventRecordNodeGetEvent(cu_node n, cu_event *out)
{
    return get_event(n, CUNODE_EVENT_RECORD, out);
}
static cu_result cuGraphEventWaitNodeGetEvent(cu_node n, cu_event *out)
{
    return get_event(n, CUNODE_WAIT_EVENT, out);
}

static cu_result cuGraphMemAllocNodeGetParams(cu_node n, struct cu_alloc_node *out)
{
    cu_result r = check_node(n, CUNODE_MEM_ALLOC);
    if (r) return r;
    CHECK(out && n->op.u.mem.params);
    *out = *n->op.u.mem.params;
    return CUE_SUCCESS;
}
static cu_result cuGraphMemFreeNodeGetParams(cu_node n, cu_ptr *out)
{
    cu_result r = check_node(n, CUNODE_MEM_FREE);
    if (r) return r;
    CHECK(out);
    *out = n->op.u.mem.ptr;
    return CUE_SUCCESS;
}
static cu_result cuGraphBatchMemOpNodeGetParams(cu_node n, struct cu_memop_node *out)
{
    cu_result r = check_node(n, CUNODE_BATCH_MEM_OP);
    if (r) return r;
    CHECK(out);
    *out = (struct cu_memop_node){n->ctx, n->op.u.memops.n, n->op.u.memops.at, 0};
    return CUE_SUCCESS;
}

/* ---- attributes of kernel nodes ------------------------------------------------------------------------------- */

static cu_result node_attr(cu_node n, int id, union cu_launch_value *get, const union cu_launch_value *set)
{
    cu_result r = check_node(n, CUNODE_KERNEL);
    if (r) return r;
    CHECK((get || set) && id > 0 && id < CULAUNCH_COUNT);
    mg_lock();
    struct mg_kernel_op *k = &n->op.u.kernel;
    if (set) {
        if (!n->attrs) n->attrs = calloc(CULAUNCH_COUNT, sizeof *n->attrs);
        if (n->attrs) n->attrs[id] = *set;
        if (id == CULAUNCH_COOPERATIVE) k->cooperative = set->cooperative != 0;
        if (id == CULAUNCH_PRIORITY) k->priority = set->priority;
        if (id == CULAUNCH_CLUSTER_DIMENSION)
            k->cluster = (struct mg_dim3){set->cluster.x, set->cluster.y, set->cluster.z};
    } else {
        memset(get, 0, sizeof *get);
        if (n->attrs) *get = n->attrs[id];
        if (id == CULAUNCH_COOPERATIVE) get->cooperative = k->cooperative;
        if (id == CULAUNCH_PRIORITY) get->priority = k->priority;
        if (id == CULAUNCH_CLUSTER_DIMENSION)
            get->cluster.x = k->cluster.x, get->cluster.y = k->cluster.y, get->cluster.z = k->cluster.z;
    }
    mg_unlock();
    return CUE_SUCCESS;
}
static cu_result cuGraphKernelNodeGetAttribute(cu_node n, int id, union cu_launch_value *v)
{
    return node_attr(n, id, v, NULL);
}
static cu_result cuGraphKernelNodeSetAttribute(cu_node n, int id, const union cu_launch_value *v)
{
    return node_attr(n, id, NULL, v);
}

static cu_result cuGraphKernelNodeCopyAttributes(cu_node dst, cu_node src)
{
    cu_result r = check_node(dst, CUNODE_KERNEL);
    if (!r) r = check_node(src, CUNODE_KERNEL);
    if (r) return r;
    mg_lock();
    if (src->attrs && (dst->attrs || (dst->attrs = malloc(CULAUNCH_COUNT * sizeof *dst->attrs))))
        memcpy(dst->attrs, src->attrs, CULAUNCH_COUNT * sizeof *dst->attrs);
    dst->op.u.kernel.cooperative = src->op.u.kernel.cooperative;
    dst->op.u.kernel.priority = src->op.u.kernel.priority;
    dst->op.u.kernel.cluster = src->op.u.kernel.cluster;
    mg_unlock();
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_graph_node[] = {
    MG_ENTRY(cuGraphAddNode),
    MG_ENTRY(cuGraphAddNode_v2),
    MG_ENTRY(cuGraphAddKernelNode),
    MG_ENTRY(cuGraphAddKernelNode_v2),
    MG_ENTRY(cuGraphAddMemcpyNode),
    MG_ENTRY(cuGraphAddMemsetNode),
    MG_ENTRY(cuGraphAddHostNode),
    MG_ENTRY(cuGraphAddChildGraphNode),
    MG_ENTRY(cuGraphAddEmptyNode),
    MG_ENTRY(cuGraphAddEventRecordNode),
    MG_ENTRY(cuGraphAddEventWaitNode),
    MG_ENTRY(cuGraphAddMemAllocNode),
    MG_ENTRY(cuGraphAddMemFreeNode),
    MG_ENTRY(cuGraphAddBatchMemOpNode),
    MG_ENTRY(cuGraphNodeSetParams),
    MG_ENTRY(cuGraphKernelNodeSetParams),
    MG_ENTRY(cuGraphKernelNodeSetParams_v2),
    MG_ENTRY(cuGraphMemcpyNodeSetParams),
    MG_ENTRY(cuGraphMemsetNodeSetParams),
    MG_ENTRY(cuGraphHostNodeSetParams),
    MG_ENTRY(cuGraphEventRecordNodeSetEvent),
    MG_ENTRY(cuGraphEventWaitNodeSetEvent),
    MG_ENTRY(cuGraphBatchMemOpNodeSetParams),
    MG_ENTRY(cuGraphKernelNodeGetParams),
    MG_ENTRY(cuGraphKernelNodeGetParams_v2),
    MG_ENTRY(cuGraphMemcpyNodeGetParams),
    MG_ENTRY(cuGraphMemsetNodeGetParams),
    MG_ENTRY(cuGraphHostNodeGetParams),
    MG_ENTRY(cuGraphChildGraphNodeGetGraph),
    MG_ENTRY(cuGraphEventRecordNodeGetEvent),
    MG_ENTRY(cuGraphEventWaitNodeGetEvent),
    MG_ENTRY(cuGraphMemAllocNodeGetParams),
    MG_ENTRY(cuGraphMemFreeNodeGetParams),
    MG_ENTRY(cuGraphBatchMemOpNodeGetParams),
    MG_ENTRY(cuGraphKernelNodeGetAttribute),
    MG_ENTRY(cuGraphKernelNodeSetAttribute),
    MG_ENTRY(cuGraphKernelNodeCopyAttributes),
    {0},
};
