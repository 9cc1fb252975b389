/* Cycle equivalence of blocks. In a strongly connected graph two edges lie on the same cycles
 * exactly when they do so with directions ignored (Johnson, Pearson, Pingali 1994), and there the
 * question is answered by labels: every edge outside a spanning tree gets a random word, every tree
 * edge the XOR of the words of the edges that close a cycle over it. Equal labels, equal cycles
 * (wrong with probability 2^-64 a pair; the words are fixed, so results never change).
 *
 *   block b = node edge  in(b) --- out(b);  CFG edge  out(a) --- in(b);  leaving  out(a) --- in(0) via END
 */
#include "analysis/equiv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"

struct edge {
    uint32_t a, b;
};

struct labels {
    uint32_t n_nodes, n_edges;
    struct edge *edges;
    uint32_t *at, *list; /* node -> run of edge ids */
    uint32_t *parent_edge, *order;
    bool *seen, *tree;
    uint64_t *node_xor, *label;
};

static uint32_t other_end(const struct edge *e, uint32_t x)
{
    return e->a == x ? e->b : e->a;
}

static void index_edges(struct labels *g)
{
    for (uint32_t i = 0; i < g->n_edges; i++) {
        g->at[g->edges[i].a + 1]++;
        g->at[g->edges[i].b + 1]++;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) g->at[i + 1] += g->at[i];
    uint32_t *fill = mg_xmalloc(sizeof *fill * (g->n_nodes + 1));
    memcpy(fill, g->at, sizeof *fill * (g->n_nodes + 1));
    for (uint32_t i = 0; i < g->n_edges; i++) {
        g->list[fill[g->edges[i].a]++] = i;
        g->list[fill[g->edges[i].b]++] = i;
    }
    free(fill);
}

static void label_edges(struct labels *g, uint32_t root)
{
    uint32_t n = 0;
    g->order[n++] = root;
    g->seen[root] = true;
    g->parent_edge[root] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) { /* any spanning tree will do */
        uint32_t x = g->order[i];
        for (uint32_t k = g->at[x]; k < g->at[x + 1]; k++) {
            uint32_t y = other_end(&g->edges[g->list[k]], x);
            if (g->seen[y]) continue;
            g->seen[y] = true;
            g->tree[g->list[k]] = true;
            g->parent_edge[y] = g->list[k];
            g->order[n++] = y;
        }
    }
    for (uint32_t i = 0; i < g->n_edges; i++) {
        if (g->tree[i]) continue;
        uint64_t w = mg_mix64(0x9e3779b97f4a7c15u * (i + 1) + 1);
        g->label[i] = w ? w : 1;
        g->node_xor[g->edges[i].a] ^= g->label[i]; /* a loop edge cancels itself: no tree edge is under it */
        g->node_xor[g->edges[i].b] ^= g->label[i];
    }
    while (n-- > 1) {
        uint32_t x = g->order[n], e = g->parent_edge[x];
        g->label[e] = g->node_xor[x];
        g->node_xor[other_end(&g->edges[e], x)] ^= g->node_xor[x];
    }
}

/* Blocks from which leaving is possible at all. */
static uint64_t *find_leaving(const struct mg_cfg *c, const bool *may_leave)
{
    uint64_t *can = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *can);
    for (uint32_t i = 0; i < c->n_blocks; i++)
        if (c->blocks[i].leaves || (may_leave && may_leave[i])) mg_put(can, i);
    mg_graph_close(&c->pred, can, NULL);
    return can;
}

/* Edges of the closed graph. Edge b (b < n_blocks) is block b itself, edge n_blocks closes the graph. */
static void build_edges(const struct mg_cfg *c, const bool *may_leave, struct labels *g)
{
    uint32_t n = c->n_blocks, end = 2 * n;
    uint64_t *can = find_leaving(c, may_leave);
    for (uint32_t b = 0; b < n; b++) g->edges[g->n_edges++] = (struct edge){2 * b, 2 * b + 1};
    g->edges[g->n_edges++] = (struct edge){end, 0};
    for (uint32_t b = 0; b < n; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b]) continue;
        for (uint32_t i = 0; i < k->n_succs; i++)
            g->edges[g->n_edges++] = (struct edge){2 * b + 1, 2 * c->edges[k->succ_at + i]};
        if (k->leaves || (may_leave && may_leave[b]) || !mg_has(can, b))
            g->edges[g->n_edges++] = (struct edge){2 * b + 1, end};
    }
    free(can);
}

struct mg_equiv *mg_equiv_new(const struct mg_cfg *c, const bool *may_leave)
{
    struct mg_equiv *e = mg_xcalloc(1, sizeof *e);
    uint32_t n = c->n_blocks, n_cfg_edges = 0;
    e->n_blocks = n;
    e->once = MG_NO_CLASS;
    e->class_of = mg_xmalloc(sizeof *e->class_of * (n + 1));
    for (uint32_t b = 0; b < n; b++) {
        e->class_of[b] = MG_NO_CLASS;
        n_cfg_edges += c->blocks[b].n_succs;
    }
    if (!n) return e;
    struct mg_arena a = MG_ARENA_INIT;
    uint32_t cap = n + 1 + n_cfg_edges + n;
    struct labels g = {.n_nodes = 2 * n + 1, .edges = mg_arena_array(&a, struct edge, cap)};
    build_edges(c, may_leave, &g);
    g.at = mg_arena_array(&a, uint32_t, g.n_nodes + 2);
    g.list = mg_arena_array(&a, uint32_t, 2 * g.n_edges);
    g.parent_edge = mg_arena_array(&a, uint32_t, g.n_nodes);
    g.order = mg_arena_array(&a, uint32_t, g.n_nodes);
    g.seen = mg_arena_array(&a, bool, g.n_nodes);
    g.tree = mg_arena_array(&a, bool, g.n_edges);
    g.node_xor = mg_arena_array(&a, uint64_t, g.n_nodes);
    g.label = mg_arena_array(&a, uint64_t, g.n_edges);
    index_edges(&g);
    label_edges(&g, 0);
    struct mg_map classes = MG_MAP_INIT;
    for (uint32_t b = 0; b < n; b++) {
        uint64_t known;
        if (!c->reachable[b]) continue;
        if (!mg_map_get(&classes, g.label[b], &known)) mg_map_set(&classes, g.label[b], known = e->n_classes++);
        e->class_of[b] = (uint32_t)known;
        if (g.label[b] == g.label[n]) e->once = e->class_of[b];
    }
    mg_map_release(&classes);
    mg_arena_release(&a);
    return e;
}

void mg_equiv_free(struct mg_equiv *e)
{
    if (!e) return;
    free(e->class_of);
    free(e);
}
