/* Dominators by Cooper, Harvey and Kennedy's iteration over a reverse postorder; postdominators by
 * the same over the reversed graph with one root behind every leaving block. */
#include "analysis/dom.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

#define UNDEFINED UINT32_MAX

/* The graph the iteration runs on: nodes 0..n-1 are those of the graph, node n is the root in front of all roots. */
struct rooted {
    struct mg_arena arena;
    struct mg_graph succ, pred;
    uint32_t *order, *number; /* reverse postorder from the root, and its inverse; UNDEFINED: not reached */
    uint32_t n_order;
};

static void make_rooted(struct rooted *g, const struct mg_graph *way, const uint64_t *roots)
{
    uint32_t n = way->n, n_edges = way->at[n], k = 0;
    uint32_t *from = mg_xmalloc(sizeof *from * (n_edges + n + 1)), *to = mg_xmalloc(sizeof *to * (n_edges + n + 1));
    for (uint32_t b = 0; b < n; b++) {
        if (mg_has(roots, b)) from[k] = n, to[k++] = b;
        MG_EACH_EDGE(way, b, e) from[k] = b, to[k++] = way->to[e];
    }
    g->succ = mg_graph_of_pairs(&g->arena, n + 1, from, to, k);
    g->pred = mg_graph_reversed(&g->arena, &g->succ);
    free(from);
    free(to);
}

static void order_rooted(struct rooted *g)
{
    uint32_t n = g->succ.n;
    uint64_t *seen = mg_arena_array(&g->arena, uint64_t, mg_bits_words(n));
    g->order = mg_arena_array(&g->arena, uint32_t, n);
    g->number = mg_arena_array(&g->arena, uint32_t, n);
    memset(g->number, 0xff, sizeof *g->number * n);
    g->n_order = mg_graph_order(&g->succ, n - 1, seen, g->order);
    for (uint32_t i = 0; i < g->n_order; i++) g->number[g->order[i]] = i;
}

static uint32_t meet(const struct rooted *g, const uint32_t *idom, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (g->number[a] > g->number[b]) a = idom[a];
        while (g->number[b] > g->number[a]) b = idom[b];
    }
    return a;
}

static uint32_t meet_preds(const struct rooted *g, const uint32_t *idom, uint32_t x)
{
    uint32_t now = UNDEFINED;
    MG_EACH_EDGE(&g->pred, x, e)
    {
        uint32_t p = g->pred.to[e];
        if (g->number[p] == UNDEFINED || idom[p] == UNDEFINED) continue;
        now = now == UNDEFINED ? p : meet(g, idom, now, p);
    }
    return now;
}

struct numbering {
    struct mg_dom *d;
    uint32_t count;
};

static void enter_tree(void *user, uint32_t node)
{
    struct numbering *y = user;
    if (node < y->d->n_blocks) y->d->pre[node] = ++y->count;
}

static void leave_tree(void *user, uint32_t node)
{
    struct numbering *y = user;
    if (node < y->d->n_blocks) y->d->last[node] = y->count;
}

/* Lists children and numbers the tree. */
static void number_tree(struct mg_dom *d, const uint32_t *idom)
{
    uint32_t n = d->n_blocks, k = 0, *parent = mg_xmalloc(sizeof *parent * (n + 1)),
             *kid = mg_xmalloc(sizeof *kid * (n + 1));
    for (uint32_t b = 0; b < n; b++)
        if (idom[b] != UNDEFINED) parent[k] = idom[b], kid[k++] = b;
    d->kids = mg_graph_of_pairs(&d->arena, n + 1, parent, kid, k);
    uint64_t *seen = mg_xcalloc(mg_bits_words(n + 1), sizeof *seen);
    mg_graph_walk(&d->kids, n, seen, &(struct mg_graph_visit){enter_tree, leave_tree, &(struct numbering){.d = d}});
    free(seen);
    free(parent);
    free(kid);
}

struct mg_dom *mg_dom_of(const struct mg_graph *way, const uint64_t *roots, bool post)
{
    struct mg_dom *d = mg_xcalloc(1, sizeof *d);
    uint32_t n = way->n;
    d->n_blocks = n;
    d->post = post;
    d->idom = mg_arena_array(&d->arena, uint32_t, n + 1);
    d->pre = mg_arena_array(&d->arena, uint32_t, n + 1);
    d->last = mg_arena_array(&d->arena, uint32_t, n + 1);
    uint32_t *idom = mg_xmalloc(sizeof *idom * (n + 1));
    struct rooted g = {0};
    make_rooted(&g, way, roots);
    order_rooted(&g);
    memset(idom, 0xff, sizeof *idom * (n + 1));
    idom[n] = n;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < g.n_order; i++) {
            uint32_t x = g.order[i], now = meet_preds(&g, idom, x);
            changed |= now != idom[x];
            idom[x] = now;
        }
    }
    number_tree(d, idom);
    for (uint32_t b = 0; b < n; b++) d->idom[b] = idom[b] == n ? (post ? MG_DOM_ROOT : MG_NO_BLOCK) : idom[b];
    mg_arena_release(&g.arena);
    free(idom);
    return d;
}

struct mg_dom *mg_dom_new(const struct mg_cfg *c)
{
    uint64_t *roots = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *roots);
    if (c->n_blocks) mg_put(roots, 0);
    struct mg_dom *d = mg_dom_of(&c->succ, roots, false);
    free(roots);
    return d;
}

struct mg_dom *mg_postdom_new(const struct mg_cfg *c)
{
    uint64_t *roots = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *roots);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->blocks[b].leaves) mg_put(roots, b);
    struct mg_dom *d = mg_dom_of(&c->pred, roots, true);
    free(roots);
    return d;
}

void mg_dom_free(struct mg_dom *d)
{
    if (!d) return;
    mg_arena_release(&d->arena);
    free(d);
}

/* ---- frontiers ------------------------------------------------------------------------------- */

struct mg_frontier *mg_frontier_new(const struct mg_cfg *c, const struct mg_dom *d)
{
    struct mg_frontier *f = mg_xcalloc(1, sizeof *f);
    MG_VEC(uint64_t) pairs = {0}; /* block << 32 | member of its frontier */
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b]) continue;
        for (uint32_t i = 0; i < k->n_preds; i++) {
            uint32_t x = c->preds[k->pred_at + i];
            if (!c->reachable[x]) continue;
            while (x != MG_NO_BLOCK && x != d->idom[b]) {
                *mg_vec_push(&pairs) = (uint64_t)x << 32 | b;
                x = d->idom[x];
            }
        }
    }
    if (pairs.n) qsort(pairs.at, pairs.n, sizeof *pairs.at, mg_by_u64);
    f->at = mg_arena_array(&f->arena, uint32_t, c->n_blocks + 1);
    f->list = mg_arena_array(&f->arena, uint32_t, pairs.n + 1);
    uint32_t n = 0;
    for (uint32_t b = 0, p = 0; b < c->n_blocks; b++) {
        f->at[b] = n;
        for (; p < pairs.n && pairs.at[p] >> 32 == b; p++)
            if (!p || pairs.at[p] != pairs.at[p - 1]) f->list[n++] = (uint32_t)pairs.at[p];
    }
    f->at[c->n_blocks] = n;
    mg_vec_release(&pairs);
    return f;
}

void mg_frontier_free(struct mg_frontier *f)
{
    if (!f) return;
    mg_arena_release(&f->arena);
    free(f);
}
