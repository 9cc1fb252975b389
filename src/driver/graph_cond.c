/* Conditional graph nodes: if, while and switch around bodies that are graphs. The node is one op that
 * looks at its handle's value and runs a body's ops in order, on the thread that runs it. */
#include "driver/graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- handles ------------------------------------------------------------------------------------------- */

static struct mg_cond_value *value_of(uint64_t handle)
{
    struct mg_alloc a;
    struct mg_cond_value *v = (struct mg_cond_value *)(uintptr_t)handle;
    return mg_mem_find_any(handle, &a) && a.base == handle && a.bytes >= sizeof *v && v->magic == MG_COND_MAGIC ? v
                                                                                                                : NULL;
}

/* A handle lives as long as the process: executable graphs outlive the graph it was made for. */
static cu_result cuGraphConditionalHandleCreate(uint64_t *out, cu_graph g, cu_ctx ctx, unsigned initial, unsigned flags)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out && mg_graph_is(g) && mg_obj_is(ctx, MG_OBJ_CTX) && !(flags & ~(unsigned)CUCOND_ASSIGN_DEFAULT));
    struct mg_cond_value *v = (struct mg_cond_value *)(uintptr_t)mg_mem_alloc(sizeof *v, 0, MG_ALLOC_INTERNAL);
    if (!v) return CUE_OUT_OF_MEMORY;
    *v = (struct mg_cond_value){
        .magic = MG_COND_MAGIC, .value = initial, .initial = initial, .assigns = flags & CUCOND_ASSIGN_DEFAULT};
    mg_lock();
    *mg_vec_push(&g->handles) = (uintptr_t)v;
    mg_unlock();
    *out = (uintptr_t)v;
    return CUE_SUCCESS;
}

/* ---- what a node does ------------------------------------------------------------------------------------ */

struct mg_cond *mg_cond_new(const struct cu_conditional_node *p)
{
    struct mg_cond *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    atomic_init(&c->refs, 1);
    c->handle = p->handle;
    c->type = p->type;
    c->n = p->count;
    c->graphs = calloc(c->n, sizeof *c->graphs);
    for (unsigned i = 0; c->graphs && i < c->n; i++)
        if (!(c->graphs[i] = mg_graph_new())) {
            mg_cond_drop_graphs(c);
            mg_cond_unref(c);
            return NULL;
        }
    if (c->graphs) return c;
    mg_cond_unref(c);
    return NULL;
}

void mg_cond_ref(struct mg_cond *c)
{
    atomic_fetch_add(&c->refs, 1);
}

void mg_cond_unref(struct mg_cond *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1) return;
    for (unsigned i = 0; c->bodies && i < c->n; i++) mg_exec_nodes_free(&c->bodies[i]);
    free(c->bodies);
    free(c->graphs);
    free(c->resets);
    free(c);
}

void mg_cond_drop_graphs(struct mg_cond *c)
{
    for (unsigned i = 0; c->graphs && i < c->n; i++) {
        mg_graph_free(c->graphs[i]);
        c->graphs[i] = NULL;
    }
}

struct mg_cond *mg_cond_clone(const struct mg_cond *c)
{
    struct cu_conditional_node p = {.handle = c->handle, .type = c->type, .count = c->n};
    struct mg_cond *out = mg_cond_new(&p);
    for (unsigned i = 0; out && i < c->n; i++) {
        mg_graph_free(out->graphs[i]);
        if (!(out->graphs[i] = mg_graph_clone(c->graphs[i]))) {
            mg_cond_drop_graphs(out);
            mg_cond_unref(out);
            out = NULL;
        }
    }
    return out;
}

struct mg_cond *mg_cond_compile(struct mg_cond *c)
{
    if (c->bodies) { /* of a graph that was made from an executable one */
        mg_cond_ref(c);
        return c;
    }
    struct mg_cond *out = calloc(1, sizeof *out);
    if (!out) return NULL;
    atomic_init(&out->refs, 1);
    out->handle = c->handle;
    out->type = c->type;
    out->n = c->n;
    out->bodies = calloc(c->n, sizeof *out->bodies);
    bool ok = out->bodies != NULL;
    for (unsigned i = 0; ok && i < c->n; i++) ok = mg_graph_flatten(&out->bodies[i], c->graphs[i]);
    if (ok) return out;
    mg_cond_unref(out);
    return NULL;
}

static bool collect(struct mg_cond *to, const struct CUgraph_st *g)
{
    for (uint32_t i = 0; i < g->handles.n; i++) {
        const struct mg_cond_value *v = value_of(g->handles.at[i]);
        if (!v || !v->assigns) continue;
        uint64_t *more = realloc(to->resets, (to->n_resets + 1) * sizeof *more);
        if (!more) return false;
        to->resets = more;
        more[to->n_resets++] = g->handles.at[i];
    }
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        const struct mg_work *op = &g->nodes.at[i]->op;
        if (op->kind == MG_OPK_CHILD && !collect(to, op->u.child.graph)) return false;
        for (unsigned k = 0; op->kind == MG_OPK_COND && op->u.cond->graphs && k < op->u.cond->n; k++)
            if (!collect(to, op->u.cond->graphs[k])) return false;
    }
    return true;
}

struct mg_cond *mg_cond_reset(const struct CUgraph_st *g, bool *ok)
{
    struct mg_cond *c = calloc(1, sizeof *c);
    *ok = c && collect(c, g);
    if (c) atomic_init(&c->refs, 1);
    if (*ok && c->n_resets) return c;
    if (c) mg_cond_unref(c);
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------------------------- */

static void run_body(struct CUctx_st *ctx, const struct mg_exec_nodes *b, const struct mg_work_mark *m)
{
    uint64_t start, end;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->at[i].op.kind != MG_OPK_EMPTY)
            mg_work_run(b->at[i].ctx ? b->at[i].ctx : ctx, &b->at[i].op, m, &start, &end);
}

void mg_cond_run(struct CUctx_st *ctx, const struct mg_cond *c, const struct mg_work_mark *m)
{
    for (uint32_t i = 0; i < c->n_resets; i++) {
        struct mg_cond_value *v = value_of(c->resets[i]);
        if (v) v->value = v->initial;
    }
    struct mg_cond_value *v = c->n ? value_of(c->handle) : NULL;
    if (!v) return;
    uint32_t now = __atomic_load_n(&v->value, __ATOMIC_RELAXED);
    switch (c->type) {
    case CUCOND_IF:
        if (now)
            run_body(ctx, &c->bodies[0], m);
        else if (c->n > 1)
            run_body(ctx, &c->bodies[1], m);
        break;
    case CUCOND_WHILE:
        while (__atomic_load_n(&v->value, __ATOMIC_RELAXED) && !mg_drv.cancel &&
               !__atomic_load_n(&ctx->error, __ATOMIC_ACQUIRE))
            run_body(ctx, &c->bodies[0], m);
        break;
    default:
        if (now < c->n) run_body(ctx, &c->bodies[now], m);
    }
}

const struct mg_entry mg_entries_graph_cond[] = {MG_ENTRY(cuGraphConditionalHandleCreate), {0}};
