/* Walks and fixpoints over abstract graphs; see graph.h. */
#include "analysis/graph.h"

#include <stdlib.h>
#include <string.h>

struct mg_graph mg_graph_of_pairs(struct mg_arena *a, uint32_t n, const uint32_t *from, const uint32_t *to,
                                  uint32_t n_edges)
{
    uint32_t *at = mg_arena_array(a, uint32_t, n + 2), *ends = mg_arena_array(a, uint32_t, n_edges + 1);
    for (uint32_t e = 0; e < n_edges; e++) at[from[e] + 2]++; /* one place ahead: filling moves each begin to its end */
    for (uint32_t x = 0; x < n; x++) at[x + 2] += at[x + 1];
    for (uint32_t e = 0; e < n_edges; e++) ends[at[from[e] + 1]++] = to[e];
    return (struct mg_graph){n, at, ends};
}

struct mg_graph mg_graph_reversed(struct mg_arena *a, const struct mg_graph *g)
{
    uint32_t n_edges = g->at[g->n], *from = mg_xmalloc(sizeof *from * (n_edges + 1));
    for (uint32_t x = 0; x < g->n; x++) MG_EACH_EDGE(g, x, e) from[e] = x;
    struct mg_graph r = mg_graph_of_pairs(a, g->n, g->to, from, n_edges);
    free(from);
    return r;
}

/* ---- walks ------------------------------------------------------------------------------------ */

/* Follows the edges of the first `n` nodes of `stack`, and of all that they lead to. */
static void follow(const struct mg_graph *g, uint32_t *stack, uint32_t n, uint64_t *set, const uint64_t *wall)
{
    while (n) {
        uint32_t x = stack[--n];
        MG_EACH_EDGE(g, x, e)
        {
            uint32_t to = g->to[e];
            if (mg_has(set, to) || (wall && mg_has(wall, to))) continue;
            mg_put(set, to);
            stack[n++] = to;
        }
    }
}

void mg_graph_close(const struct mg_graph *g, uint64_t *set, const uint64_t *wall)
{
    uint32_t *stack = mg_xmalloc(sizeof *stack * (g->n + 1)), n = 0;
    for (uint32_t x = 0; x < g->n; x++)
        if (mg_has(set, x)) stack[n++] = x;
    follow(g, stack, n, set, wall);
    free(stack);
}

void mg_graph_after(const struct mg_graph *g, uint32_t x, uint64_t *set, const uint64_t *wall)
{
    uint32_t *stack = mg_xmalloc(sizeof *stack * (g->n + 1));
    memset(set, 0, sizeof *set * mg_bits_words(g->n));
    stack[0] = x;
    follow(g, stack, 1, set, wall);
    free(stack);
}

bool mg_graph_is_behind(const struct mg_graph *g, uint32_t root, uint32_t through, uint32_t x, const uint64_t *wall)
{
    if (through == x || through == root) return true;
    uint32_t words = mg_bits_words(g->n);
    uint64_t *seen = mg_xcalloc(2 * (size_t)words, sizeof *seen), *stops = seen + words;
    if (wall) memcpy(stops, wall, sizeof *stops * words);
    mg_put(stops, root);
    mg_put(stops, through);
    mg_graph_after(g, root, seen, stops);
    bool behind = x != root && !mg_has(seen, x);
    free(seen);
    return behind;
}

bool mg_graph_loop(const struct mg_graph *pred, uint32_t head, uint64_t *set)
{
    uint32_t words = mg_bits_words(pred->n);
    bool found = false;
    memset(set, 0, sizeof *set * words);
    MG_EACH_EDGE(pred, head, e)
    if (pred->to[e] >= head) found = true, mg_put(set, pred->to[e]);
    if (!found) return false;
    uint64_t *wall = mg_xcalloc(words, sizeof *wall);
    mg_put(wall, head);
    mg_cut(set, head);
    mg_graph_close(pred, set, wall);
    mg_put(set, head);
    free(wall);
    return true;
}

void mg_graph_walk(const struct mg_graph *g, uint32_t root, uint64_t *seen, const struct mg_graph_visit *v)
{
    struct frame {
        uint32_t node, edge;
    } *stack = mg_xmalloc(sizeof *stack * (g->n + 1));
    uint32_t depth = 0, next = root;
    bool enters = !mg_has(seen, root);
    while (enters || depth) {
        if (enters) {
            mg_put(seen, next);
            if (v->enter) v->enter(v->user, next);
            stack[depth++] = (struct frame){next, g->at[next]};
        }
        struct frame *top = &stack[depth - 1];
        enters = top->edge < g->at[top->node + 1];
        if (enters) {
            next = g->to[top->edge++];
            enters = !mg_has(seen, next);
        } else {
            if (v->leave) v->leave(v->user, top->node);
            depth--;
        }
    }
    free(stack);
}

struct order {
    uint32_t *list, at;
};

static void note_last(void *user, uint32_t node)
{
    struct order *o = user;
    o->list[--o->at] = node;
}

uint32_t mg_graph_order(const struct mg_graph *g, uint32_t root, uint64_t *seen, uint32_t *order)
{
    struct order o = {order, g->n};
    mg_graph_walk(g, root, seen, &(struct mg_graph_visit){.leave = note_last, .user = &o});
    memmove(order, order + o.at, sizeof *order * (g->n - o.at));
    return g->n - o.at;
}

/* ---- facts ------------------------------------------------------------------------------------ */

static void begin_rows(const struct mg_dataflow *f)
{
    memset(f->rows, 0, sizeof *f->rows * f->words * f->g->n);
    for (uint32_t e = 0; e < f->g->at[f->g->n]; e++)
        memset(f->rows + (size_t)f->g->to[e] * f->words, 0xff, sizeof *f->rows * f->words);
}

void mg_dataflow_run(const struct mg_dataflow *f)
{
    const struct mg_graph *g = f->g;
    uint64_t *now = mg_xmalloc(sizeof *now * (f->words + 1));
    if (!f->any) begin_rows(f);
    for (bool again = g->n > 0; again;) {
        again = false;
        for (uint32_t i = 0; i < g->n; i++) {
            uint32_t x = f->order ? f->order[i] : i;
            memcpy(now, f->rows + (size_t)x * f->words, sizeof *now * f->words);
            if (f->pass) f->pass(f->user, x, now);
            MG_EACH_EDGE(g, x, e)
            {
                uint64_t *row = f->rows + (size_t)g->to[e] * f->words;
                again |= f->join  ? f->join(row, now, f->words)
                         : f->any ? mg_bits_join(row, now, f->words)
                                  : mg_bits_meet(row, now, f->words);
            }
        }
    }
    free(now);
}

struct live_rows {
    uint64_t *use, *def;
    uint32_t words;
}; /* by node */

/* From what is live behind a node to what is live in front of it. */
static void pass_live(void *user, uint32_t node, uint64_t *row)
{
    const struct live_rows *l = user;
    const uint64_t *use = l->use + (size_t)node * l->words, *def = l->def + (size_t)node * l->words;
    for (uint32_t w = 0; w < l->words; w++) row[w] = use[w] | (row[w] & ~def[w]);
}

void mg_liveness_run(const struct mg_liveness *l)
{
    uint32_t n = l->pred->n;
    size_t all = (size_t)n * l->words;
    uint64_t *use = mg_xcalloc(2 * all + 1, sizeof *use);
    uint32_t *down = mg_xmalloc(sizeof *down * (n + 1));
    struct live_rows rows = {use, use + all, l->words};
    for (uint32_t x = 0; x < n; x++) {
        struct mg_effects e = {rows.use + (size_t)x * l->words, rows.def + (size_t)x * l->words};
        l->effects(l->user, x, &e);
        down[x] = n - 1 - x;
    }
    mg_dataflow_run(&(struct mg_dataflow){.g = l->pred,
                                          .order = l->order ? l->order : down,
                                          .any = true,
                                          .words = l->words,
                                          .rows = l->out,
                                          .pass = pass_live,
                                          .user = &rows});
    memcpy(l->in, l->out, sizeof *l->in * all);
    for (uint32_t x = 0; x < n; x++) pass_live(&rows, x, l->in + (size_t)x * l->words);
    free(down);
    free(use);
}
