/* Executable graphs: instantiation, update, launch. An executable graph owns copies of everything;
 * each launch makes one task a node between a first and a last one that stand in the stream's order. */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- flattening ---------------------------------------------------------------------------------------- */

static void free_nodes(struct mg_exec_node *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        mg_work_release(&at[i].op);
        mg_graph_mem_unref(at[i].mem);
        mg_vec_release(&at[i].deps);
    }
}

typedef MG_VEC(struct mg_exec_node) exec_nodes;

/* Appends g's nodes in an order that respects its edges. Roots wait for `before` (entry + 1, 0: nothing); the
 * entry that ends the whole is appended last when it is a child (owner != 0). */
static bool flatten(exec_nodes *out, const struct CUgraph_st *g, uint32_t before, uint32_t owner, uint32_t *end)
{
    uint32_t n = g->nodes.n, done = 0, start = out->n;
    struct mg_map place = MG_MAP_INIT; /* node -> entry that ends it + 1 */
    uint32_t *waiting = calloc(n + 1, sizeof *waiting), *ready = calloc(n + 1, sizeof *ready), n_ready = 0;
    struct mg_map index = MG_MAP_INIT; /* node -> number in g */
    bool ok = waiting && ready;
    for (uint32_t i = 0; ok && i < n; i++) {
        mg_map_set(&index, (uintptr_t)g->nodes.at[i], i);
        waiting[i] = g->nodes.at[i]->deps.n;
        if (!waiting[i]) ready[n_ready++] = i;
    }
    MG_VEC(uint32_t) leaves = {0};
    while (ok && done < n_ready) {
        struct CUgraphNode_st *node = g->nodes.at[ready[done++]];
        struct mg_exec_node e = {
            .node_id = node->id, .type = node->type, .ctx = node->ctx, .mem = node->mem, .owner = owner};
        if (node->op.kind == MG_OPK_CHILD)
            e.op.kind = MG_OPK_EMPTY;
        else if (node->op.kind == MG_OPK_COND) {
            e.op = (struct mg_work){.kind = MG_OPK_COND, .u.cond = mg_cond_compile(node->op.u.cond)};
            if (!e.op.u.cond) ok = false, e.op.kind = MG_OPK_EMPTY;
        } else
            ok = mg_work_clone(&e.op, &node->op);
        if (e.mem) e.mem->refs++;
        for (uint32_t k = 0; k < node->deps.n; k++) {
            uint64_t at = 0;
            mg_map_get(&place, (uintptr_t)node->deps.at[k], &at);
            *mg_vec_push(&e.deps) = (uint32_t)at - 1;
        }
        if (!node->deps.n && before) *mg_vec_push(&e.deps) = before - 1;
        /* Also after what was made before it, edge or not: as on an H200, and NVIDIA's own sample needs it. */
        for (uint32_t k = start; node->op.kind == MG_OPK_COND && k < out->n; k++) *mg_vec_push(&e.deps) = k;
        uint32_t here = out->n, last = here;
        *mg_vec_push(out) = e;
        if (ok && node->op.kind == MG_OPK_CHILD) ok = flatten(out, node->op.u.child.graph, here + 1, here + 1, &last);
        mg_map_set(&place, (uintptr_t)node, last + 1);
        if (!node->dependents.n) *mg_vec_push(&leaves) = last;
        for (uint32_t k = 0; k < node->dependents.n; k++) {
            uint64_t ix = 0;
            mg_map_get(&index, (uintptr_t)node->dependents.at[k], &ix);
            if (!--waiting[ix]) ready[n_ready++] = (uint32_t)ix;
        }
    }
    if (ok && end) { /* a child's end: everything of it has run */
        struct mg_exec_node e = {.type = CUNODE_EMPTY, .owner = owner, .op.kind = MG_OPK_EMPTY};
        for (uint32_t i = 0; i < leaves.n; i++) *mg_vec_push(&e.deps) = leaves.at[i];
        if (!leaves.n) *mg_vec_push(&e.deps) = before - 1;
        *end = out->n;
        *mg_vec_push(out) = e;
    }
    mg_vec_release(&leaves);
    mg_map_release(&place);
    mg_map_release(&index);
    free(waiting);
    free(ready);
    return ok && done == n;
}

bool mg_graph_flatten(struct mg_exec_nodes *out, const struct CUgraph_st *g)
{
    exec_nodes nodes = {0};
    bool ok = flatten(&nodes, g, 0, 0, NULL);
    *out = (struct mg_exec_nodes){nodes.at, nodes.n};
    return ok;
}

void mg_exec_nodes_free(struct mg_exec_nodes *n)
{
    free_nodes(n->at, n->n);
    free(n->at);
    *n = (struct mg_exec_nodes){0};
}

/* Memory that nodes of this graph allocate once more than they free it outlives a launch. */
static bool outlives(const struct CUgraphExec_st *x, const struct mg_graph_mem *m)
{
    int held = 0;
    for (uint32_t i = 0; i < x->nodes.n; i++)
        if (x->nodes.at[i].mem == m) held += x->nodes.at[i].type == CUNODE_MEM_ALLOC ? 1 : -1;
    return held > 0;
}

static cu_result instantiate(cu_graph_exec *out, cu_graph g, uint64_t flags)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out && mg_graph_is(g) && !(flags & ~15ull));
    if (flags & CUINST_DEVICE_LAUNCH) {
        mg_say("graphs launched from the device are not supported");
        return CUE_NOT_SUPPORTED;
    }
    struct CUgraphExec_st *x = calloc(1, sizeof *x);
    if (!x) return CUE_OUT_OF_MEMORY;
    x->flags = flags;
    exec_nodes nodes = {0};
    mg_lock();
    bool ok = flatten(&nodes, g, 0, 0, NULL);
    if (ok) x->reset = mg_cond_reset(g, &ok);
    if (ok)
        for (uint32_t i = 0; i < g->users.n; i++) {
            g->users.at[i].object->refs += g->users.at[i].count;
            *mg_vec_push(&x->users) = g->users.at[i];
        }
    else
        free_nodes(nodes.at, nodes.n);
    mg_unlock();
    x->nodes.at = nodes.at, x->nodes.n = nodes.n, x->nodes.cap = nodes.cap;
    if (!ok) {
        mg_vec_release(&x->nodes);
        free(x);
        return CUE_OUT_OF_MEMORY;
    }
    mg_obj_add(x, MG_OBJ_EXEC);
    *out = x;
    return CUE_SUCCESS;
}

static cu_result cuGraphInstantiateWithFlags(cu_graph_exec *out, cu_graph g, unsigned long long flags)
{
    return instantiate(out, g, flags);
}
static cu_result cuGraphInstantiate(cu_graph_exec *out, cu_graph g, cu_node *error, char *log, size_t bytes)
{
    if (error) *error = NULL;
    if (log && bytes) *log = 0;
    return instantiate(out, g, 0);
}
static cu_result cuGraphInstantiate_v2(cu_graph_exec *out, cu_graph g, cu_node *error, char *log, size_t bytes)
{
    return cuGraphInstantiate(out, g, error, log, bytes);
}

static cu_result with_params(cu_graph_exec *out, cu_graph g, struct cu_instantiate_params *p)
{
    CHECK(p);
    cu_result r = instantiate(out, g, p->flags);
    p->error_node = NULL;
    p->result = r ? CUINSTRES_ERROR : CUINSTRES_SUCCESS;
    return r;
}
MG_BOTH(cuGraphInstantiateWithParams, ptsz, (cu_graph_exec * out, cu_graph g, struct cu_instantiate_params *p),
        ((void)PT, with_params(out, g, p)))

static cu_result cuGraphExecDestroy(cu_graph_exec x)
{
    if (!mg_obj_del(x, MG_OBJ_EXEC)) return CUE_INVALID_HANDLE;
    mg_lock();
    free_nodes(x->nodes.at, x->nodes.n); /* running launches have copies of their own */
    mg_graph_user_drop(x->users.at, x->users.n);
    if (x->reset) mg_cond_unref(x->reset);
    mg_task_unref(x->last);
    mg_unlock();
    mg_vec_release(&x->nodes);
    mg_vec_release(&x->users);
    free(x);
    mg_graph_run_destroyers();
    return CUE_SUCCESS;
}

static cu_result cuGraphExecGetFlags(cu_graph_exec x, uint64_t *flags)
{
    CHECK(flags);
    if (!mg_obj_is(x, MG_OBJ_EXEC)) return CUE_INVALID_HANDLE;
    *flags = x->flags;
    return CUE_SUCCESS;
}

/* ---- launch ---------------------------------------------------------------------------------------------- */

/* Lock held. */
static cu_result check_memory(struct CUgraphExec_st *x)
{
    for (uint32_t i = 0; i < x->nodes.n; i++) {
        const struct mg_exec_node *e = &x->nodes.at[i];
        if (e->type == CUNODE_MEM_ALLOC && e->mem->live && !(x->flags & CUINST_AUTO_FREE)) return CUE_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < x->nodes.n; i++) {
        const struct mg_exec_node *e = &x->nodes.at[i];
        if (e->mem) e->mem->live = outlives(x, e->mem);
    }
    return CUE_SUCCESS;
}

/* The graph an executable one amounts to: what a launch inside a capture becomes a child node of. */
static struct CUgraph_st *unflatten(const struct CUgraphExec_st *x)
{
    struct CUgraph_st *g = mg_graph_new();
    for (uint32_t i = 0; g && i < x->nodes.n; i++) {
        const struct mg_exec_node *e = &x->nodes.at[i];
        struct mg_work op = {.kind = MG_OPK_EMPTY};
        bool ok = e->disabled || mg_work_clone(&op, &e->op);
        struct CUgraphNode_st *n =
            ok ? mg_graph_add(g, e->disabled || e->type == CUNODE_GRAPH ? CUNODE_EMPTY : e->type, e->ctx, &op, NULL, 0)
               : NULL;
        if (!n) {
            mg_graph_free(g);
            return NULL;
        }
        n->mem = e->mem;
        if (n->mem) n->mem->refs++;
        for (uint32_t k = 0; k < e->deps.n; k++) mg_graph_link(g->nodes.at[e->deps.at[k]], n);
    }
    return g;
}

/* A graph may outlive the modules and contexts that its nodes are of. */
static cu_result check_nodes(const struct CUgraphExec_st *x)
{
    for (uint32_t i = 0; i < x->nodes.n; i++) {
        const struct mg_exec_node *e = &x->nodes.at[i];
        const struct CUfunc_st *func = e->op.kind == MG_OPK_KERNEL ? e->op.u.kernel.func : NULL;
        if (func && (!mg_obj_is(func, MG_OBJ_FUNC) || (func->native && !mg_obj_is(func->native, MG_OBJ_FUNC))))
            return CUE_INVALID_HANDLE;
        if (e->ctx && !mg_obj_is(e->ctx, MG_OBJ_CTX)) return CUE_CONTEXT_IS_DESTROYED;
    }
    return CUE_SUCCESS;
}

static cu_result launch(cu_graph_exec x, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    if (!mg_obj_is(x, MG_OBJ_EXEC)) return CUE_INVALID_HANDLE;
    struct mg_work_mark mark = mg_watch_mark(s, true);
    mg_lock();
    if (s->capture) {
        struct mg_work op = {.kind = MG_OPK_CHILD, .u.child = {unflatten(x)}};
        r = op.u.child.graph ? mg_capture_add(s, &op) : CUE_OUT_OF_MEMORY;
        mg_unlock();
        mg_watch_replayed(&mark);
        return r;
    }
    if (s == s->ctx->legacy && s->ctx->n_captures) r = mg_capture_implicit(s->ctx);
    if (!r) r = check_memory(x);
    if (!r) r = check_nodes(x);
    struct mg_task **tasks = r ? NULL : calloc(x->nodes.n + 1, sizeof *tasks);
    struct mg_work none = {.kind = MG_OPK_EMPTY}, none2 = none;
    if (tasks && x->reset) {
        none = (struct mg_work){.kind = MG_OPK_COND, .u.cond = x->reset};
        mg_cond_ref(x->reset);
    }
    struct mg_task *first = tasks ? mg_task_new(s->ctx, &none) : NULL,
                   *last = first ? mg_task_new(s->ctx, &none2) : NULL;
    if (!r && !last) r = CUE_OUT_OF_MEMORY;
    for (uint32_t i = 0; !r && i < x->nodes.n; i++) {
        const struct mg_exec_node *e = &x->nodes.at[i];
        struct mg_work op = {.kind = MG_OPK_EMPTY};
        bool skip = e->disabled || (e->type == CUNODE_MEM_FREE && e->mem) || e->type == CUNODE_MEM_ALLOC;
        if (!skip && !mg_work_clone(&op, &e->op))
            r = CUE_OUT_OF_MEMORY;
        else if (!(tasks[i] = mg_task_new(e->ctx ? e->ctx : s->ctx, &op)))
            r = CUE_OUT_OF_MEMORY;
    }
    if (!r) {
        mark.replay = x->launches++;
        mg_task_wait_for(first, x->last);
        mg_stream_order(s, first);
        for (uint32_t i = 0; i < x->nodes.n; i++) {
            const struct mg_exec_node *e = &x->nodes.at[i];
            mg_task_wait_for(tasks[i], first);
            for (uint32_t k = 0; k < e->deps.n; k++) mg_task_wait_for(tasks[i], tasks[e->deps.at[k]]);
            struct CUevent_st *event =
                e->type == CUNODE_WAIT_EVENT || e->type == CUNODE_EVENT_RECORD ? e->op.u.event.event : NULL;
            if (event && mg_obj_is(event, MG_OBJ_EVENT)) {
                if (e->type == CUNODE_WAIT_EVENT)
                    mg_task_wait_for(tasks[i], event->task);
                else
                    mg_event_set(event, tasks[i]);
            }
            mg_task_wait_for(last, tasks[i]);
            tasks[i]->stream = s;
            tasks[i]->mark = mark;
        }
        mg_task_wait_for(last, first);
        last->mark = mark;
        last->mark.last = true;
        mg_task_unref(x->last);
        x->last = mg_task_ref(last);
        mg_graph_mem_launch(x, s, last);
        mg_task_unref(s->tail);
        s->tail = mg_task_ref(last);
        mg_task_submit(last);
        for (uint32_t i = x->nodes.n; i--;) mg_task_submit(tasks[i]); /* none can start before `first` */
        mg_task_submit(first);
    }
    for (uint32_t i = 0; tasks && i < x->nodes.n; i++) mg_task_unref(tasks[i]);
    mg_task_unref(first);
    mg_task_unref(last);
    mg_unlock();
    if (r) mg_watch_replayed(&mark);
    free(tasks);
    return r;
}
MG_BOTH(cuGraphLaunch, ptsz, (cu_graph_exec x, cu_stream s), launch(x, s, PT))

static cu_result upload(cu_graph_exec x, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    return mg_obj_is(x, MG_OBJ_EXEC) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
}
MG_BOTH(cuGraphUpload, ptsz, (cu_graph_exec x, cu_stream s), upload(x, s, PT))

/* ---- changing nodes ------------------------------------------------------------------------------------ */

static struct mg_exec_node *find(cu_graph_exec x, cu_node n)
{
    for (uint32_t i = 0; i < x->nodes.n; i++)
        if (x->nodes.at[i].node_id == n->id) return &x->nodes.at[i];
    return NULL;
}

static cu_result enter_exec(cu_graph_exec x, cu_node n)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(x, MG_OBJ_EXEC)) return CUE_INVALID_HANDLE;
    CHECK(mg_obj_is(n, MG_OBJ_NODE));
    return CUE_SUCCESS;
}

static cu_result change(cu_graph_exec x, cu_node n, struct cu_node_params *p)
{
    cu_result r = enter_exec(x, n);
    if (r) return r;
    CHECK(p->type == n->type && p->type != CUNODE_CONDITIONAL && p->type != CUNODE_MEM_ALLOC &&
          p->type != CUNODE_MEM_FREE && p->type != CUNODE_GRAPH);
    struct mg_work op;
    struct CUctx_st *ctx;
    struct mg_graph_mem *mem = NULL;
    struct CUgraph_st *child;
    r = mg_node_make(p, &op, &ctx, &mem, &child);
    if (r) return r;
    mg_lock();
    struct mg_exec_node *e = find(x, n);
    if (!e) {
        mg_work_release(&op);
        r = CUE_INVALID_VALUE;
    } else {
        if (op.kind == MG_OPK_KERNEL) {
            op.u.kernel.cooperative |= e->op.u.kernel.cooperative;
            if (!op.u.kernel.cluster.x) op.u.kernel.cluster = e->op.u.kernel.cluster;
        }
        mg_work_release(&e->op);
        e->op = op;
        e->ctx = ctx;
    }
    mg_unlock();
    return r;
}

static cu_result cuGraphExecNodeSetParams(cu_graph_exec x, cu_node n, struct cu_node_params *p)
{
    CHECK(p);
    return change(x, n, p);
}
static cu_result kernel_params(cu_graph_exec x, cu_node n, const void *params, size_t bytes)
{
    CHECK(params);
    struct cu_node_params p = {.type = CUNODE_KERNEL};
    memcpy(&p.u.kernel, params, bytes);
    return change(x, n, &p);
}
static cu_result cuGraphExecKernelNodeSetParams(cu_graph_exec x, cu_node n, const void *params)
{
    return kernel_params(x, n, params, CU_KERNEL_NODE_V1_BYTES);
}
static cu_result cuGraphExecKernelNodeSetParams_v2(cu_graph_exec x, cu_node n, const void *params)
{
    return kernel_params(x, n, params, sizeof(struct cu_kernel_node));
}
static cu_result cuGraphExecMemcpyNodeSetParams(cu_graph_exec x, cu_node n, const struct cu_memcpy3d *copy, cu_ctx ctx)
{
    CHECK(copy);
    struct cu_node_params p = {.type = CUNODE_MEMCPY, .u.memcpy = {.ctx = ctx, .copy = *copy}};
    return change(x, n, &p);
}
static cu_result cuGraphExecMemsetNodeSetParams(cu_graph_exec x, cu_node n, const void *params, cu_ctx ctx)
{
    CHECK(params);
    struct cu_node_params p = {.type = CUNODE_MEMSET};
    memcpy(&p.u.memset, params, CU_MEMSET_NODE_V1_BYTES);
    p.u.memset.ctx = ctx;
    return change(x, n, &p);
}
static cu_result cuGraphExecHostNodeSetParams(cu_graph_exec x, cu_node n, const struct cu_host_node *params)
{
    CHECK(params);
    struct cu_node_params p = {.type = CUNODE_HOST, .u.host = *params};
    return change(x, n, &p);
}
static cu_result cuGraphExecEventRecordNodeSetEvent(cu_graph_exec x, cu_node n, cu_event e)
{
    struct cu_node_params p = {.type = CUNODE_EVENT_RECORD, .u.event = {e}};
    return change(x, n, &p);
}
static cu_result cuGraphExecEventWaitNodeSetEvent(cu_graph_exec x, cu_node n, cu_event e)
{
    struct cu_node_params p = {.type = CUNODE_WAIT_EVENT, .u.event = {e}};
    return change(x, n, &p);
}
static cu_result cuGraphExecBatchMemOpNodeSetParams(cu_graph_exec x, cu_node n, const struct cu_memop_node *params)
{
    CHECK(params);
    struct cu_node_params p = {.type = CUNODE_BATCH_MEM_OP, .u.memop = *params};
    return change(x, n, &p);
}

static cu_result cuGraphNodeSetEnabled(cu_graph_exec x, cu_node n, unsigned enabled)
{
    cu_result r = enter_exec(x, n);
    if (r) return r;
    CHECK(n->type == CUNODE_KERNEL || n->type == CUNODE_MEMCPY || n->type == CUNODE_MEMSET);
    mg_lock();
    struct mg_exec_node *e = find(x, n);
    if (e) e->disabled = !enabled;
    mg_unlock();
    return e ? CUE_SUCCESS : CUE_INVALID_VALUE;
}

static cu_result cuGraphNodeGetEnabled(cu_graph_exec x, cu_node n, unsigned *enabled)
{
    cu_result r = enter_exec(x, n);
    if (r) return r;
    CHECK(enabled);
    mg_lock();
    struct mg_exec_node *e = find(x, n);
    if (e) *enabled = !e->disabled;
    mg_unlock();
    return e ? CUE_SUCCESS : CUE_INVALID_VALUE;
}

/* ---- update ------------------------------------------------------------------------------------------------ */

static cu_node node_by_id(const struct CUgraph_st *g, uint64_t id)
{
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        cu_node n = g->nodes.at[i];
        if (n->id == id) return n;
        if (n->op.kind == MG_OPK_CHILD && (n = node_by_id(n->op.u.child.graph, id))) return n;
    }
    return NULL;
}

static int same_shape(const struct mg_exec_node *a, const struct mg_exec_node *b)
{
    if (a->type != b->type) return CUUPDATE_NODE_TYPE;
    if (a->deps.n != b->deps.n || a->owner != b->owner ||
        (a->deps.n && memcmp(a->deps.at, b->deps.at, a->deps.n * sizeof *a->deps.at)))
        return CUUPDATE_TOPOLOGY;
    if (a->op.kind == MG_OPK_KERNEL && (a->op.u.kernel.cooperative != b->op.u.kernel.cooperative))
        return CUUPDATE_ATTRIBUTES;
    if (a->op.kind == MG_OPK_KERNEL && a->op.u.kernel.func->module->ctx != b->op.u.kernel.func->module->ctx)
        return CUUPDATE_UNSUPPORTED_FUNCTION;
    if (a->type == CUNODE_MEM_ALLOC || a->type == CUNODE_MEM_FREE) {
        if (a->mem != b->mem) return CUUPDATE_PARAMETERS;
    }
    return CUUPDATE_SUCCESS;
}

static cu_result update(cu_graph_exec x, cu_graph g, struct cu_update_info *info)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (!mg_obj_is(x, MG_OBJ_EXEC)) return CUE_INVALID_HANDLE;
    CHECK(mg_graph_is(g));
    *info = (struct cu_update_info){0};
    exec_nodes fresh = {0};
    mg_lock();
    if (!flatten(&fresh, g, 0, 0, NULL)) r = CUE_OUT_OF_MEMORY;
    if (!r && fresh.n != x->nodes.n) info->result = CUUPDATE_TOPOLOGY;
    for (uint32_t i = 0; !r && !info->result && i < fresh.n; i++) {
        info->result = same_shape(&x->nodes.at[i], &fresh.at[i]);
        if (info->result) info->error_node = node_by_id(g, fresh.at[i].node_id);
    }
    if (!r && info->result) r = CUE_GRAPH_EXEC_UPDATE_FAILURE;
    if (r) {
        free_nodes(fresh.at, fresh.n);
        mg_vec_release(&fresh);
    } else {
        /* Entries keep the node ids of the graph they were instantiated from. */
        for (uint32_t i = 0; i < fresh.n; i++) {
            struct mg_work old = x->nodes.at[i].op;
            x->nodes.at[i].op = fresh.at[i].op;
            x->nodes.at[i].ctx = fresh.at[i].ctx;
            fresh.at[i].op = old;
        }
        free_nodes(fresh.at, fresh.n);
        mg_vec_release(&fresh);
    }
    mg_unlock();
    return r;
}

static cu_result cuGraphExecUpdate_v2(cu_graph_exec x, cu_graph g, struct cu_update_info *info)
{
    CHECK(info);
    return update(x, g, info);
}
static cu_result cuGraphExecUpdate(cu_graph_exec x, cu_graph g, cu_node *error, int *result)
{
    struct cu_update_info info = {0};
    cu_result r = update(x, g, &info);
    if (error) *error = info.error_node;
    if (result) *result = info.result;
    return r;
}

static cu_result cuGraphExecChildGraphNodeSetParams(cu_graph_exec x, cu_node n, cu_graph child)
{
    cu_result r = enter_exec(x, n);
    if (r) return r;
    CHECK(n->type == CUNODE_GRAPH && mg_graph_is(child));
    exec_nodes fresh = {0};
    mg_lock();
    uint32_t at = 0;
    while (at < x->nodes.n && x->nodes.at[at].node_id != n->id) at++;
    struct mg_exec_node head = {.type = CUNODE_GRAPH, .op.kind = MG_OPK_EMPTY};
    for (uint32_t i = 0; i <= at; i++) *mg_vec_push(&fresh) = head; /* so that entries get the numbers they have in x */
    uint32_t end = 0;
    if (at == x->nodes.n || !flatten(&fresh, child, at + 1, at + 1, &end)) r = CUE_INVALID_VALUE;
    for (uint32_t i = at + 1; !r && i < fresh.n; i++)
        if (i >= x->nodes.n || same_shape(&x->nodes.at[i], &fresh.at[i])) r = CUE_GRAPH_EXEC_UPDATE_FAILURE;
    for (uint32_t i = at + 1; !r && i < fresh.n; i++) {
        struct mg_work old = x->nodes.at[i].op;
        x->nodes.at[i].op = fresh.at[i].op;
        x->nodes.at[i].ctx = fresh.at[i].ctx;
        fresh.at[i].op = old;
    }
    free_nodes(fresh.at, fresh.n);
    mg_unlock();
    mg_vec_release(&fresh);
    return r;
}

const struct mg_entry mg_entries_graph_exec[] = {
    MG_ENTRY(cuGraphInstantiate),
    MG_ENTRY(cuGraphInstantiate_v2),
    MG_ENTRY(cuGraphInstantiateWithFlags),
    MG_ENTRY2(cuGraphInstantiateWithParams, ptsz),
    MG_ENTRY(cuGraphExecDestroy),
    MG_ENTRY(cuGraphExecGetFlags),
    MG_ENTRY2(cuGraphLaunch, ptsz),
    MG_ENTRY2(cuGraphUpload, ptsz),
    MG_ENTRY(cuGraphExecNodeSetParams),
    MG_ENTRY(cuGraphExecKernelNodeSetParams),
    MG_ENTRY(cuGraphExecKernelNodeSetParams_v2),
    MG_ENTRY(cuGraphExecMemcpyNodeSetParams),
    MG_ENTRY(cuGraphExecMemsetNodeSetParams),
    MG_ENTRY(cuGraphExecHostNodeSetParams),
    MG_ENTRY(cuGraphExecEventRecordNodeSetEvent),
    MG_ENTRY(cuGraphExecEventWaitNodeSetEvent),
    MG_ENTRY(cuGraphExecBatchMemOpNodeSetParams),
    MG_ENTRY(cuGraphNodeSetEnabled),
    MG_ENTRY(cuGraphNodeGetEnabled),
    MG_ENTRY(cuGraphExecUpdate),
    MG_ENTRY(cuGraphExecUpdate_v2),
    MG_ENTRY(cuGraphExecChildGraphNodeSetParams),
    {0},
};
