/* Dominators by Cooper, Harvey and Kennedy's iteration over a reverse postorder; postdominators by
 * the same over the reversed graph with one root behind every leaving block. */
#include "analysis/dom.h"

#include <stdlib.h>
#include <string.h>

#define UNDEFINED UINT32_MAX

/* The graph the iteration runs on: nodes 0..n-1 are blocks, node n is the root in front of block 0
 * (behind all leaving blocks, when reversed). */
struct graph {
    const struct mg_cfg *c;
    bool post;
    uint32_t n;
    uint32_t *order, *number; /* reverse postorder from the root, and its inverse; UNDEFINED: not reached */
    uint32_t n_order;
};

static bool next_edge(const struct graph *g, uint32_t x, uint32_t *i, uint32_t *to)
{
    const struct mg_cfg *c = g->c;
    if (x == g->n) { /* the root */
        if (!g->post) {
            *to = 0;
            return (*i)++ == 0 && g->n;
        }
        while (*i < g->n && !c->blocks[*i].leaves) ++*i;
        *to = *i;
        return (*i)++ < g->n;
    }
    const struct mg_block *k = &c->blocks[x];
    if (*i >= (g->post ? k->n_preds : k->n_succs)) return false;
    *to = g->post ? c->preds[k->pred_at + *i] : c->edges[k->succ_at + *i];
    ++*i;
    return true;
}

static void order_graph(struct graph *g)
{
    uint32_t n = g->n + 1, depth = 0, post = n;
    struct frame { uint32_t node, next; } *stack = mg_xmalloc(sizeof *stack * (n + 1));
    memset(g->number, 0xff, sizeof *g->number * n);
    stack[depth++] = (struct frame){g->n, 0};
    g->number[g->n] = 0;
    while (depth) {
        struct frame *top = &stack[depth - 1];
        uint32_t to;
        if (!next_edge(g, top->node, &top->next, &to)) {
            g->order[--post] = top->node;
            depth--;
        } else if (g->number[to] == UNDEFINED) {
            g->number[to] = 0;
            stack[depth++] = (struct frame){to, 0};
        }
    }
    free(stack);
    g->n_order = n - post;
    memmove(g->order, g->order + post, sizeof *g->order * g->n_order);
    for (uint32_t i = 0; i < g->n_order; i++) g->number[g->order[i]] = i;
}

static uint32_t meet(const struct graph *g, const uint32_t *idom, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (g->number[a] > g->number[b]) a = idom[a];
        while (g->number[b] > g->number[a]) b = idom[b];
    }
    return a;
}

static uint32_t meet_preds(const struct graph *g, const uint32_t *idom, uint32_t x)
{
    const struct mg_cfg *c = g->c;
    const struct mg_block *k = &c->blocks[x];
    uint32_t n = g->post ? k->n_succs : k->n_preds, now = UNDEFINED;
    if (g->post ? k->leaves : x == 0) now = g->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = g->post ? c->edges[k->succ_at + i] : c->preds[k->pred_at + i];
        if (g->number[p] == UNDEFINED || idom[p] == UNDEFINED) continue;
        now = now == UNDEFINED ? p : meet(g, idom, now, p);
    }
    return now;
}

/* Numbers the tree and lists children. */
static void number_tree(struct mg_dom *d, const struct graph *g, const uint32_t *idom)
{
    uint32_t n = g->n, count = 0;
    d->kids_at = mg_arena_array(&d->arena, uint32_t, n + 2);
    d->kids = mg_arena_array(&d->arena, uint32_t, n + 1);
    uint32_t *fill = mg_xcalloc(n + 2, sizeof *fill), *at = mg_xcalloc(n + 3, sizeof *at);
    for (uint32_t b = 0; b < n; b++)
        if (idom[b] != UNDEFINED) at[idom[b] + 1]++;
    for (uint32_t b = 0; b <= n; b++) at[b + 1] += at[b];
    uint32_t *kids = mg_xcalloc(n + 1, sizeof *kids);
    for (uint32_t b = 0; b < n; b++)
        if (idom[b] != UNDEFINED) kids[at[idom[b]] + fill[idom[b]]++] = b;
    memcpy(d->kids_at, at, sizeof *at * (n + 1));
    memcpy(d->kids, kids, sizeof *kids * n);
    struct frame { uint32_t node, next; } *stack = mg_xmalloc(sizeof *stack * (n + 2));
    uint32_t depth = 0;
    stack[depth++] = (struct frame){n, at[n]};
    while (depth) {
        struct frame *top = &stack[depth - 1];
        if (top->next < at[top->node + 1]) {
            uint32_t kid = kids[top->next++];
            d->pre[kid] = ++count;
            stack[depth++] = (struct frame){kid, at[kid]};
        } else {
            if (top->node < n) d->last[top->node] = count;
            depth--;
        }
    }
    free(stack);
    free(kids);
    free(at);
    free(fill);
}

static struct mg_dom *solve(const struct mg_cfg *c, bool post)
{
    struct mg_dom *d = mg_xcalloc(1, sizeof *d);
    uint32_t n = c->n_blocks;
    d->n_blocks = n;
    d->post = post;
    d->idom = mg_arena_array(&d->arena, uint32_t, n + 1);
    d->pre = mg_arena_array(&d->arena, uint32_t, n + 1);
    d->last = mg_arena_array(&d->arena, uint32_t, n + 1);
    uint32_t *words = mg_xmalloc(sizeof *words * 3 * ((size_t)n + 1)), *idom = words + 2 * ((size_t)n + 1);
    struct graph g = {.c = c, .post = post, .n = n, .order = words, .number = words + n + 1};
    order_graph(&g);
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
    number_tree(d, &g, idom);
    for (uint32_t b = 0; b < n; b++) d->idom[b] = idom[b] == n ? (post ? MG_DOM_ROOT : MG_NO_BLOCK) : idom[b];
    free(words);
    return d;
}

struct mg_dom *mg_dom_new(const struct mg_cfg *c)
{
    return solve(c, false);
}

struct mg_dom *mg_postdom_new(const struct mg_cfg *c)
{
    return solve(c, true);
}

void mg_dom_free(struct mg_dom *d)
{
    if (!d) return;
    mg_arena_release(&d->arena);
    free(d);
}

/* ---- frontiers ------------------------------------------------------------------------------- */

static int by_pair(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

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
    if (pairs.n) qsort(pairs.at, pairs.n, sizeof *pairs.at, by_pair);
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
