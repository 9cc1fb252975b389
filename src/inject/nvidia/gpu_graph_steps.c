/* What the trace of accesses is told of graphs on a real GPU: their kernels, copies and memsets each time they run.
 *
 * Kernels write the number of their launch into their records; a node's lies in its context block. Before an
 * executable is launched, each of its nodes gets the number of its next replay there, by a memset in the launch's
 * stream. That must not change it under a replay that is still running, which another stream may have: such a node
 * keeps its number, and what it accesses stands with that replay. */
#include "inject/nvidia/gpu_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/order.h"
#include "inject/channels.h"
#include "inject/hooks.h"
#include "inject/streams.h"

/* ---- order of nodes ---------------------------------------------------------------------------------------- */

struct edges {
    size_t n;
    uint32_t *first;    /* by node: of `to`, one more than there are nodes */
    uint32_t *to;       /* by the node they leave */
    uint32_t *incoming; /* by node */
};

static void release_edges(struct edges *e)
{
    free(e->first);
    free(e->to);
    free(e->incoming);
}

/* False: they are not known. */
static bool read_edges(cu_graph g, const cu_node *nodes, size_t n_nodes, struct edges *e)
{
    cu_result (*get)(cu_graph, cu_node *, cu_node *, struct cu_edge_data *, size_t *) =
        MG_REAL_AS(cuGraphGetEdges_v2, cu_graph, cu_node *, cu_node *, struct cu_edge_data *, size_t *);
    *e = (struct edges){0};
    if (get(g, NULL, NULL, NULL, &e->n) != CUE_SUCCESS || e->n >= UINT32_MAX || n_nodes >= UINT32_MAX) return false;
    size_t n = e->n;
    struct mg_map index = MG_MAP_INIT;
    cu_node *from = calloc(n + 1, sizeof *from), *to = calloc(n + 1, sizeof *to);
    struct cu_edge_data *data = calloc(n + 1, sizeof *data);
    e->first = calloc(n_nodes + 2, sizeof *e->first);
    e->to = calloc(n + 1, sizeof *e->to);
    e->incoming = calloc(n_nodes + 1, sizeof *e->incoming);
    bool ok = from && to && data && e->first && e->to && e->incoming;
    ok = ok && (!n || (get(g, from, to, data, &n) == CUE_SUCCESS && n == e->n));
    for (size_t i = 0; ok && i < n_nodes; i++) mg_map_set(&index, (uintptr_t)nodes[i], i);
    for (size_t i = 0; ok && i < n; i++) {
        uint64_t a, b;
        ok = mg_map_get(&index, (uintptr_t)from[i], &a) && mg_map_get(&index, (uintptr_t)to[i], &b);
        if (!ok) break;
        e->first[a + 1]++;
        e->incoming[b]++;
    }
    for (size_t i = 0; ok && i < n_nodes; i++) e->first[i + 1] += e->first[i];
    uint32_t *at = ok ? calloc(n_nodes + 1, sizeof *at) : NULL;
    ok = at != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        uint64_t a = 0, b = 0;
        mg_map_get(&index, (uintptr_t)from[i], &a);
        mg_map_get(&index, (uintptr_t)to[i], &b);
        e->to[e->first[a] + at[a]++] = (uint32_t)b;
    }
    free(at);
    free(from);
    free(to);
    free(data);
    mg_map_release(&index);
    return ok;
}

/* nodes in the order of their edges, into out; false: a circle, or edges twice. */
static bool sort_nodes(const cu_node *nodes, size_t n, struct edges *e, cu_node *out)
{
    uint32_t *ready = calloc(n + 1, sizeof *ready);
    size_t n_ready = 0, done = 0;
    for (size_t i = 0; ready && i < n; i++)
        if (!e->incoming[i]) ready[n_ready++] = (uint32_t)i;
    while (done < n_ready) {
        uint32_t k = ready[done];
        out[done++] = nodes[k];
        qsort(e->to + e->first[k], e->first[k + 1] - e->first[k], sizeof *e->to, mg_by_u32);
        for (uint32_t i = e->first[k]; i < e->first[k + 1]; i++)
            if (!--e->incoming[e->to[i]]) ready[n_ready++] = e->to[i];
    }
    free(ready);
    return done == n;
}

cu_node *mg_gpu_graph_order(cu_graph g, size_t *n)
{
    cu_result (*get)(cu_graph, cu_node *, size_t *) = MG_REAL_AS(cuGraphGetNodes, cu_graph, cu_node *, size_t *);
    struct edges e;
    *n = 0;
    if (get(g, NULL, n) != CUE_SUCCESS || !*n) return *n = 0, NULL;
    cu_node *nodes = calloc(*n, sizeof *nodes), *out = calloc(*n, sizeof *out);
    if (!nodes || !out || get(g, nodes, n) != CUE_SUCCESS) {
        free(nodes);
        free(out);
        return *n = 0, NULL;
    }
    if (!mg_steps_on || !read_edges(g, nodes, *n, &e) || !sort_nodes(nodes, *n, &e, out))
        memcpy(out, nodes, *n * sizeof *out);
    if (mg_steps_on) release_edges(&e);
    free(nodes);
    return out;
}

void mg_gpu_graph_copy(struct mg_graph_list *l, cu_node node, int type)
{
    struct mg_graph_copy c = {.handle = node, .first = node, .before = l->entries.n};
    struct cu_memcpy3d copy;
    struct cu_memset_node set;
    if (type == CUNODE_MEMCPY) {
        if (MG_REAL_AS(cuGraphMemcpyNodeGetParams, cu_node, struct cu_memcpy3d *)(node, &copy) != CUE_SUCCESS) return;
        mg_steps_copy_node(&copy, &c.step);
    } else {
        if (MG_REAL_AS(cuGraphMemsetNodeGetParams, cu_node, struct cu_memset_node *)(node, &set) != CUE_SUCCESS) return;
        mg_steps_memset_node(&set, &c.step);
    }
    *mg_vec_push(&l->copies) = c;
}

/* ---- replays ----------------------------------------------------------------------------------------------- */

/* But for the launch at hand, which it counts already. */
static bool is_over(const struct mg_graph_node *node)
{
    return node->launched == node->ended + 1;
}

static uint64_t current_context(void)
{
    cu_ctx ctx = NULL;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx);
    return ctx ? mg_ctx_number(ctx) : 0;
}

struct mg_graph_replays *mg_gpu_replays_new(struct mg_graph_list *l, cu_stream s, bool per_thread)
{
    struct mg_graph_replays *r = calloc(1, sizeof *r + l->entries.n * sizeof *r->of);
    uint64_t order = r ? mg_steps_take() : 0;
    if (!order) {
        free(r);
        return NULL;
    }
    *r = (struct mg_graph_replays){.list = l, .handle = s, .per_thread = per_thread, .order = order, .holders = 2};
    r->stream = mg_stream_number(s || !per_thread ? s : CU_PER_THREAD_STREAM);
    r->at = mg_mix64(r->stream) ^ current_context(); /* default streams of two contexts have one number */
    mg_steps_hold(order);
    return r;
}

bool mg_gpu_replays_meet(const struct mg_graph_replays *r)
{
    const struct mg_graph_list *l = r->list;
    for (uint32_t i = 0; i < l->entries.n; i++) {
        const struct mg_graph_node *n = l->entries.at[i].node;
        if (!l->entries.at[i].disabled && (n->mixed || n->at != r->at) && !is_over(n)) return true;
    }
    return false;
}

void mg_gpu_replays_begin(struct mg_graph_replays *r, bool alone)
{
    const struct mg_graph_list *l = r->list;
    for (uint32_t i = 0; i < l->entries.n; i++) {
        struct mg_graph_node *n = l->entries.at[i].node;
        struct mg_graph_replay *of = &r->of[i];
        if (l->entries.at[i].disabled) continue;
        n->mixed = n->order && !is_over(n) && (n->mixed || n->at != r->at);
        *of =
            (struct mg_graph_replay){.number = n->run->runs.next++, .before = n->numbered, .before_number = n->number};
        of->own = !of->number || (alone && !l->unknown && n->order != r->order && !n->mixed);
        if (of->own) {
            n->numbered = r->order;
            n->number = of->number;
        } else if (n->numbered != r->order)
            mg_steps_hold(of->with = n->numbered);
        n->at = r->at;
        n->order = r->order;
    }
}

/* Where what a node runs is not known, accesses may always come. */
void mg_gpu_replays_over(const struct mg_graph_replays *r)
{
    for (uint32_t i = 0; i < r->list->entries.n && !r->list->unknown; i++) mg_steps_over(r->of[i].with);
    if (!r->list->unknown) mg_steps_over(r->order);
}

struct target {
    const struct mg_graph_node *node;
    const struct mg_graph_replays *of;
};

static bool put_number(void *user, uint64_t offset, uint32_t number)
{
    const struct target *t = user;
    return mg_nv_slot_set(t->node->slot, offset, number, t->of->handle, t->of->per_thread);
}

static bool set_number(const struct mg_graph_replays *r, uint32_t entry, uint64_t number)
{
    struct target t = {r->list->entries.at[entry].node, r};
    return !t.node->slot || mg_channels_replay(t.node->run, number, put_number, &t);
}

void mg_gpu_replays_number(struct mg_graph_replays *r)
{
    for (uint32_t i = 0; i < r->list->entries.n; i++)
        if (r->of[i].own && r->of[i].number) r->of[i].own = set_number(r, i, r->of[i].number);
}

/* Numbers go back to what they were, also on the device. While nobody else is between `begin` and `send`. */
void mg_gpu_replays_fail(struct mg_graph_replays *r)
{
    for (uint32_t i = r->list->entries.n; i-- > 0;) {
        struct mg_graph_node *n = r->list->entries.at[i].node;
        struct mg_graph_replay *of = &r->of[i];
        if (r->list->entries.at[i].disabled || n->run->runs.next != of->number + 1) continue;
        n->run->runs.next--;
        if (!of->own) continue;
        n->numbered = of->before;
        n->number = of->before_number;
        if (of->number) set_number(r, i, n->number);
    }
    mg_gpu_replays_over(r);
}

void mg_gpu_replays_tell(const struct mg_graph_replays *r)
{
    const struct mg_graph_list *l = r->list;
    const struct mg_launch_done d = {.mark = {.order = r->order, .stream = r->stream}};
    const uint64_t ctx = l->entries.n ? l->entries.at[0].node->run->ctx : current_context();
    uint32_t copy = 0;
    for (uint32_t i = 0; i <= l->entries.n; i++) {
        for (; copy < l->copies.n && l->copies.at[copy].before <= i; copy++)
            if (!l->copies.at[copy].disabled) mg_steps_put_node(&l->copies.at[copy].step, r->order, ctx, r->stream);
        if (i < l->entries.n && !l->entries.at[i].disabled)
            mg_steps_node(l->entries.at[i].node->run, &d, r->of[i].number, r->of[i].own);
    }
}
