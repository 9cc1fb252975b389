/* Graphs: nodes, edges, clones, user objects and what can be asked of them. */
#include "driver/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

static uint64_t next_id;
static struct mg_map graph_mems = MG_MAP_INIT; /* base -> struct mg_graph_mem * */

/* ---- memory of allocation nodes ------------------------------------------------------------------ */

struct mg_graph_mem *mg_graph_mem_new(struct CUctx_st *ctx, cu_device device, uint64_t bytes)
{
    struct mg_graph_mem *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    if (mg_dalloc_new(ctx, bytes, 0, MG_ALLOC_DEVICE, 0, &m->base)) {
        free(m);
        return NULL;
    }
    m->refs = 1;
    m->bytes = bytes;
    m->device = device;
    mg_lock();
    mg_dalloc_move(m->base, device);
    mg_dalloc_get(m->base)->graph = true;
    mg_map_set(&graph_mems, m->base, (uintptr_t)m);
    mg_unlock();
    return m;
}

void mg_graph_mem_unref(struct mg_graph_mem *m)
{
    if (!m || --m->refs) return;
    mg_map_del(&graph_mems, m->base);
    uint64_t base = m->base;
    free(m);
    mg_unlock();
    mg_dalloc_free(base);
    mg_lock();
}

struct mg_graph_mem *mg_graph_mem_again(struct CUgraphNode_st *const *deps, size_t n_deps, uint64_t bytes)
{
    struct mg_map seen = MG_MAP_INIT, held = MG_MAP_INIT; /* memory -> allocations less frees before the new node */
    MG_VEC(struct CUgraphNode_st *) todo = {0};
    struct mg_graph_mem *found = NULL;
    mg_lock();
    for (size_t i = 0; i < n_deps; i++) *mg_vec_push(&todo) = deps[i];
    while (todo.n) {
        struct CUgraphNode_st *n = todo.at[--todo.n];
        uint64_t k = 0;
        if (mg_map_get(&seen, (uintptr_t)n, NULL)) continue;
        mg_map_set(&seen, (uintptr_t)n, 1);
        for (uint32_t i = 0; i < n->deps.n; i++) *mg_vec_push(&todo) = n->deps.at[i];
        if (!n->mem || n->mem->bytes != bytes) continue;
        mg_map_get(&held, (uintptr_t)n->mem, &k);
        mg_map_set(&held, (uintptr_t)n->mem, n->type == CUNODE_MEM_ALLOC ? k + 1 : k - 1);
    }
    const struct CUgraph_st *g = n_deps ? deps[0]->graph : NULL;
    for (uint32_t i = 0; g && !found && i < g->nodes.n;
         i++) { /* the first in order of creation; not one in use beside the new node */
        struct CUgraphNode_st *n = g->nodes.at[i];
        uint64_t k;
        if (n->type != CUNODE_MEM_ALLOC || !mg_map_get(&held, (uintptr_t)n->mem, &k) || k) continue;
        found = n->mem;
        for (uint32_t j = 0; found && j < g->nodes.n; j++)
            if (g->nodes.at[j]->mem == n->mem && !mg_map_get(&seen, (uintptr_t)g->nodes.at[j], NULL)) found = NULL;
    }
    if (found) found->refs++;
    mg_unlock();
    mg_vec_release(&todo);
    mg_map_release(&seen);
    mg_map_release(&held);
    return found;
}

struct mg_graph_mem *mg_graph_mem_of(uint64_t base)
{
    uint64_t v;
    return mg_map_get(&graph_mems, base, &v) ? (struct mg_graph_mem *)(uintptr_t)v : NULL;
}

/* ---- user objects ------------------------------------------------------------------------------------ */

static MG_VEC(struct CUuserObject_st *) dying; /* their destroyers wait for the lock to be dropped */

static void user_drop(struct CUuserObject_st *u, uint64_t count)
{
    u->refs -= MG_MIN(count, u->refs);
    if (!u->refs && mg_obj_del(u, MG_OBJ_USER)) *mg_vec_push(&dying) = u;
}

void mg_graph_run_destroyers(void)
{
    for (;;) {
        mg_lock();
        struct CUuserObject_st *u = dying.n ? dying.at[--dying.n] : NULL;
        mg_unlock();
        if (!u) return;
        u->destroy(u->ptr);
        free(u);
    }
}

void mg_graph_user_drop(struct mg_graph_user *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) user_drop(at[i].object, at[i].count);
}

static cu_result cuUserObjectCreate(cu_user_object *out, void *ptr, cu_host_fn destroy, unsigned refs, unsigned flags)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out && destroy && refs && flags == 1);
    struct CUuserObject_st *u = malloc(sizeof *u);
    if (!u) return CUE_OUT_OF_MEMORY;
    *u = (struct CUuserObject_st){refs, destroy, ptr};
    mg_obj_add(u, MG_OBJ_USER);
    *out = u;
    return CUE_SUCCESS;
}

static cu_result cuUserObjectRetain(cu_user_object u, unsigned count)
{
    CHECK(count && mg_obj_is(u, MG_OBJ_USER));
    mg_lock();
    u->refs += count;
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuUserObjectRelease(cu_user_object u, unsigned count)
{
    CHECK(count && mg_obj_is(u, MG_OBJ_USER));
    mg_lock();
    user_drop(u, count);
    mg_unlock();
    mg_graph_run_destroyers();
    return CUE_SUCCESS;
}

static cu_result cuGraphRetainUserObject(cu_graph g, cu_user_object u, unsigned count, unsigned flags)
{
    CHECK(mg_graph_is(g) && mg_obj_is(u, MG_OBJ_USER) && count && flags <= 1);
    mg_lock();
    if (!(flags & 1)) u->refs += count; /* else the caller's own references move */
    *mg_vec_push(&g->users) = (struct mg_graph_user){u, count};
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuGraphReleaseUserObject(cu_graph g, cu_user_object u, unsigned count)
{
    CHECK(mg_graph_is(g) && mg_obj_is(u, MG_OBJ_USER) && count);
    mg_lock();
    for (uint32_t i = 0; i < g->users.n && count; i++) {
        struct mg_graph_user *e = &g->users.at[i];
        if (e->object != u) continue;
        uint32_t n = MG_MIN(e->count, count);
        e->count -= n;
        count -= n;
        user_drop(u, n);
    }
    mg_unlock();
    mg_graph_run_destroyers();
    return count ? CUE_INVALID_VALUE : CUE_SUCCESS;
}

/* ---- nodes and edges --------------------------------------------------------------------------------- */

bool mg_graph_is(const struct CUgraph_st *g)
{
    return mg_obj_is(g, MG_OBJ_GRAPH);
}

struct CUgraph_st *mg_graph_new(void)
{
    struct CUgraph_st *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
    mg_obj_add(g, MG_OBJ_GRAPH);
    return g;
}

static void free_node(struct CUgraphNode_st *n)
{
    mg_obj_del(n, MG_OBJ_NODE);
    if (n->op.kind == MG_OPK_CHILD) mg_graph_free(n->op.u.child.graph);
    if (n->op.kind == MG_OPK_COND) mg_cond_drop_graphs(n->op.u.cond);
    mg_work_release(&n->op);
    mg_graph_mem_unref(n->mem);
    mg_vec_release(&n->deps);
    mg_vec_release(&n->dependents);
    free(n->param_ptrs);
    free(n->attrs);
    free(n);
}

void mg_graph_free(struct CUgraph_st *g)
{
    if (!g) return;
    mg_obj_del(g, MG_OBJ_GRAPH);
    for (uint32_t i = 0; i < g->nodes.n; i++) free_node(g->nodes.at[i]);
    mg_graph_user_drop(g->users.at, g->users.n);
    mg_vec_release(&g->users);
    mg_vec_release(&g->handles);
    mg_vec_release(&g->nodes);
    free(g);
}

static bool has_dep(const struct CUgraphNode_st *to, const struct CUgraphNode_st *from)
{
    for (uint32_t i = 0; i < to->deps.n; i++)
        if (to->deps.at[i] == from) return true;
    return false;
}

/* Is `to` reachable from `from` along dependents? */
static bool reaches(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    static uint32_t mark;
    MG_VEC(struct CUgraphNode_st *) todo = {0};
    bool found = false;
    mark++;
    *mg_vec_push(&todo) = from;
    while (todo.n && !found) {
        struct CUgraphNode_st *n = todo.at[--todo.n];
        found = n == to;
        if (n->mark == mark) continue;
        n->mark = mark;
        for (uint32_t i = 0; i < n->dependents.n; i++) *mg_vec_push(&todo) = n->dependents.at[i];
    }
    mg_vec_release(&todo);
    return found;
}

static void add_edge(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    if (has_dep(to, from)) return;
    *mg_vec_push(&to->deps) = from;
    *mg_vec_push(&from->dependents) = to;
}

bool mg_graph_link(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    if (from == to || reaches(to, from)) return false;
    add_edge(from, to);
    return true;
}

static void del_edge(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    for (uint32_t i = 0; i < to->deps.n; i++)
        if (to->deps.at[i] == from) {
            memmove(to->deps.at + i, to->deps.at + i + 1, (--to->deps.n - i) * sizeof *to->deps.at);
            break;
        }
    for (uint32_t i = 0; i < from->dependents.n; i++)
        if (from->dependents.at[i] == to) {
            memmove(from->dependents.at + i, from->dependents.at + i + 1,
                    (--from->dependents.n - i) * sizeof *from->dependents.at);
            break;
        }
}

struct CUgraphNode_st *mg_graph_add(struct CUgraph_st *g, int type, struct CUctx_st *ctx, struct mg_work *op,
                                    struct CUgraphNode_st *const *deps, size_t n_deps)
{
    struct CUgraphNode_st *n = calloc(1, sizeof *n);
    if (!n) {
        mg_work_release(op);
        return NULL;
    }
    n->graph = g;
    n->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
    n->type = type;
    n->ctx = ctx;
    n->op = *op;
    if (op->kind == MG_OPK_CHILD) op->u.child.graph->parent = n;
    for (unsigned i = 0; op->kind == MG_OPK_COND && op->u.cond->graphs && i < op->u.cond->n; i++)
        op->u.cond->graphs[i]->parent = n;
    *mg_vec_push(&g->nodes) = n;
    for (size_t i = 0; i < n_deps; i++) add_edge(deps[i], n);
    mg_obj_add(n, MG_OBJ_NODE);
    return n;
}

struct CUgraph_st *mg_graph_clone(const struct CUgraph_st *g)
{
    struct CUgraph_st *c = mg_graph_new();
    if (!c) return NULL;
    for (uint32_t i = 0; i < g->handles.n; i++) *mg_vec_push(&c->handles) = g->handles.at[i];
    struct mg_map index = MG_MAP_INIT; /* old node -> new node */
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        const struct CUgraphNode_st *old = g->nodes.at[i];
        struct mg_work op;
        bool ok = mg_work_clone(&op, &old->op);
        if (ok && op.kind == MG_OPK_CHILD && !(op.u.child.graph = mg_graph_clone(op.u.child.graph))) ok = false;
        if (ok && op.kind == MG_OPK_COND && op.u.cond->graphs) {
            mg_cond_unref(op.u.cond);
            if (!(op.u.cond = mg_cond_clone(old->op.u.cond))) ok = false;
        }
        struct CUgraphNode_st *n = ok ? mg_graph_add(c, old->type, old->ctx, &op, NULL, 0) : NULL;
        if (!n) {
            mg_map_release(&index);
            mg_graph_free(c);
            return NULL;
        }
        n->clone_of = old->id;
        n->mem = old->mem;
        if (n->mem) n->mem->refs++;
        if (old->attrs && (n->attrs = malloc(CULAUNCH_COUNT * sizeof *n->attrs)))
            memcpy(n->attrs, old->attrs, CULAUNCH_COUNT * sizeof *n->attrs);
        mg_map_set(&index, (uintptr_t)old, (uintptr_t)n);
    }
    for (uint32_t i = 0; i < g->nodes.n; i++)
        for (uint32_t k = 0; k < g->nodes.at[i]->deps.n; k++) {
            uint64_t from = 0;
            mg_map_get(&index, (uintptr_t)g->nodes.at[i]->deps.at[k], &from);
            add_edge((struct CUgraphNode_st *)(uintptr_t)from, c->nodes.at[i]);
        }
    for (uint32_t i = 0; i < g->users.n; i++) {
        g->users.at[i].object->refs += g->users.at[i].count;
        *mg_vec_push(&c->users) = g->users.at[i];
    }
    mg_map_release(&index);
    return c;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static cu_result cuGraphCreate(cu_graph *out, unsigned flags)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out && !flags);
    *out = mg_graph_new();
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result cuGraphDestroy(cu_graph g)
{
    CHECK(mg_graph_is(g) && !g->parent);
    mg_lock();
    mg_graph_free(g);
    mg_unlock();
    mg_graph_run_destroyers();
    return CUE_SUCCESS;
}

static cu_result cuGraphClone(cu_graph *out, cu_graph g)
{
    CHECK(out && mg_graph_is(g));
    mg_lock();
    *out = mg_graph_clone(g);
    mg_unlock();
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result cuGraphNodeFindInClone(cu_node *out, cu_node original, cu_graph clone)
{
    CHECK(out && mg_obj_is(original, MG_OBJ_NODE) && mg_graph_is(clone));
    cu_result r = CUE_INVALID_VALUE;
    mg_lock();
    for (uint32_t i = 0; i < clone->nodes.n && r; i++)
        if (clone->nodes.at[i]->clone_of == original->id) {
            *out = clone->nodes.at[i];
            r = CUE_SUCCESS;
        }
    mg_unlock();
    return r;
}

static cu_result cuGraphDestroyNode(cu_node n)
{
    CHECK(mg_obj_is(n, MG_OBJ_NODE));
    if (n->type == CUNODE_MEM_ALLOC || n->type == CUNODE_MEM_FREE) return CUE_NOT_SUPPORTED;
    mg_lock();
    struct CUgraph_st *g = n->graph;
    while (n->deps.n) del_edge(n->deps.at[0], n);
    while (n->dependents.n) del_edge(n, n->dependents.at[0]);
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i] == n)
            memmove(g->nodes.at + i, g->nodes.at + i + 1, (--g->nodes.n - i) * sizeof *g->nodes.at);
    free_node(n);
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuGraphNodeGetType(cu_node n, int *type)
{
    CHECK(type && mg_obj_is(n, MG_OBJ_NODE));
    *type = n->type;
    return CUE_SUCCESS;
}

/* With no room given: the number. With room: as many as fit, the rest of the room cleared. */
static void give_nodes(struct CUgraphNode_st *const *at, size_t n, cu_node *out, size_t *count)
{
    if (!out) {
        *count = n;
        return;
    }
    for (size_t i = 0; i < *count; i++) out[i] = i < n ? at[i] : NULL;
    *count = MG_MIN(*count, n);
}

static cu_result cuGraphGetNodes(cu_graph g, cu_node *out, size_t *count)
{
    CHECK(count && mg_graph_is(g));
    mg_lock();
    give_nodes(g->nodes.at, g->nodes.n, out, count);
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuGraphGetRootNodes(cu_graph g, cu_node *out, size_t *count)
{
    CHECK(count && mg_graph_is(g));
    MG_VEC(struct CUgraphNode_st *) roots = {0};
    mg_lock();
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (!g->nodes.at[i]->deps.n) *mg_vec_push(&roots) = g->nodes.at[i];
    give_nodes(roots.at, roots.n, out, count);
    mg_unlock();
    mg_vec_release(&roots);
    return CUE_SUCCESS;
}

static cu_result cuGraphGetEdges_v2(cu_graph g, cu_node *from, cu_node *to, struct cu_edge_data *data, size_t *count)
{
    CHECK(count && mg_graph_is(g) && !from == !to);
    mg_lock();
    size_t n = 0;
    for (uint32_t i = 0; i < g->nodes.n; i++)
        for (uint32_t k = 0; k < g->nodes.at[i]->deps.n; k++, n++) {
            if (!from || n >= *count) continue;
            from[n] = g->nodes.at[i]->deps.at[k];
            to[n] = g->nodes.at[i];
            if (data) memset(&data[n], 0, sizeof data[n]);
        }
    for (size_t i = n; from && i < *count; i++) from[i] = to[i] = NULL;
    *count = from ? MG_MIN(*count, n) : n;
    mg_unlock();
    return CUE_SUCCESS;
}
static cu_result cuGraphGetEdges(cu_graph g, cu_node *from, cu_node *to, size_t *count)
{
    return cuGraphGetEdges_v2(g, from, to, NULL, count);
}

static cu_result cuGraphNodeGetDependencies_v2(cu_node n, cu_node *out, struct cu_edge_data *data, size_t *count)
{
    CHECK(count && mg_obj_is(n, MG_OBJ_NODE));
    mg_lock();
    give_nodes(n->deps.at, n->deps.n, out, count);
    mg_unlock();
    if (data && out) memset(data, 0, *count * sizeof *data);
    return CUE_SUCCESS;
}
static cu_result cuGraphNodeGetDependencies(cu_node n, cu_node *out, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(n, out, NULL, count);
}

static cu_result cuGraphNodeGetDependentNodes_v2(cu_node n, cu_node *out, struct cu_edge_data *data, size_t *count)
{
    CHECK(count && mg_obj_is(n, MG_OBJ_NODE));
    mg_lock();
    give_nodes(n->dependents.at, n->dependents.n, out, count);
    mg_unlock();
    if (data && out) memset(data, 0, *count * sizeof *data);
    return CUE_SUCCESS;
}
static cu_result cuGraphNodeGetDependentNodes(cu_node n, cu_node *out, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(n, out, NULL, count);
}

static cu_result edit_edges(cu_graph g, const cu_node *from, const cu_node *to, size_t n, bool add)
{
    CHECK(mg_graph_is(g) && (!n || (from && to)));
    for (size_t i = 0; i < n; i++)
        CHECK(mg_obj_is(from[i], MG_OBJ_NODE) && mg_obj_is(to[i], MG_OBJ_NODE) && from[i]->graph == g &&
              to[i]->graph == g);
    cu_result r = CUE_SUCCESS;
    mg_lock();
    for (size_t i = 0; i < n && !r; i++) {
        bool there = has_dep(to[i], from[i]);
        if (there == add)
            r = CUE_INVALID_VALUE;
        else if (!add)
            del_edge(from[i], to[i]);
        else if (!mg_graph_link(from[i], to[i]))
            r = CUE_INVALID_VALUE;
    }
    mg_unlock();
    return r;
}
static cu_result cuGraphAddDependencies(cu_graph g, const cu_node *from, const cu_node *to, size_t n)
{
    return edit_edges(g, from, to, n, true);
}
static cu_result cuGraphAddDependencies_v2(cu_graph g, const cu_node *from, const cu_node *to,
                                           const struct cu_edge_data *data, size_t n)
{
    (void)data;
    return edit_edges(g, from, to, n, true);
}
static cu_result cuGraphRemoveDependencies(cu_graph g, const cu_node *from, const cu_node *to, size_t n)
{
    return edit_edges(g, from, to, n, false);
}
static cu_result cuGraphRemoveDependencies_v2(cu_graph g, const cu_node *from, const cu_node *to,
                                              const struct cu_edge_data *data, size_t n)
{
    (void)data;
    return edit_edges(g, from, to, n, false);
}

static cu_result cuGraphDebugDotPrint(cu_graph g, const char *path, unsigned flags)
{
    static const char *const names[CUNODE_COUNT] = {"kernel", "memcpy",     "memset",       "host",       "graph",
                                                    "empty",  "wait event", "record event", "signal",     "wait",
                                                    "alloc",  "free",       "memop",        "conditional"};
    (void)flags;
    CHECK(path && mg_graph_is(g));
    FILE *f = fopen(path, "w");
    if (!f) return CUE_OPERATING_SYSTEM;
    mg_lock();
    fprintf(f, "digraph graph_1 {\n");
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        struct CUgraphNode_st *n = g->nodes.at[i];
        n->mark = i;
        fprintf(f, "  n%u [label=\"%u %s%s%s\"];\n", i, i, names[n->type], n->op.kind == MG_OPK_KERNEL ? " " : "",
                n->op.kind == MG_OPK_KERNEL ? n->op.u.kernel.func->name : "");
    }
    for (uint32_t i = 0; i < g->nodes.n; i++)
        for (uint32_t k = 0; k < g->nodes.at[i]->deps.n; k++)
            fprintf(f, "  n%u -> n%u;\n", g->nodes.at[i]->deps.at[k]->mark, i);
    fprintf(f, "}\n");
    for (uint32_t i = 0; i < g->nodes.n; i++) g->nodes.at[i]->mark = 0;
    mg_unlock();
    return fclose(f) ? CUE_OPERATING_SYSTEM : CUE_SUCCESS;
}

const struct mg_entry mg_entries_graph[] = {
    MG_ENTRY(cuUserObjectCreate),
    MG_ENTRY(cuUserObjectRetain),
    MG_ENTRY(cuUserObjectRelease),
    MG_ENTRY(cuGraphRetainUserObject),
    MG_ENTRY(cuGraphReleaseUserObject),
    MG_ENTRY(cuGraphCreate),
    MG_ENTRY(cuGraphDestroy),
    MG_ENTRY(cuGraphClone),
    MG_ENTRY(cuGraphNodeFindInClone),
    MG_ENTRY(cuGraphDestroyNode),
    MG_ENTRY(cuGraphNodeGetType),
    MG_ENTRY(cuGraphGetNodes),
    MG_ENTRY(cuGraphGetRootNodes),
    MG_ENTRY(cuGraphGetEdges),
    MG_ENTRY(cuGraphGetEdges_v2),
    MG_ENTRY(cuGraphNodeGetDependencies),
    MG_ENTRY(cuGraphNodeGetDependencies_v2),
    MG_ENTRY(cuGraphNodeGetDependentNodes),
    MG_ENTRY(cuGraphNodeGetDependentNodes_v2),
    MG_ENTRY(cuGraphAddDependencies),
    MG_ENTRY(cuGraphAddDependencies_v2),
    MG_ENTRY(cuGraphRemoveDependencies),
    MG_ENTRY(cuGraphRemoveDependencies_v2),
    MG_ENTRY(cuGraphDebugDotPrint),
    {0},
};
