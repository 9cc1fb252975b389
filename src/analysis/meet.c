/* Where it is open whether lanes have met: see meet.h. */
#include "analysis/meet.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/callgraph.h"
#include "analysis/dom.h"

enum { MOST_STEPS = 1 << 26 }; /* of walks in one function; beyond that all of it is open */

struct walk {
    const struct mg_graph *g;
    bool *open;
    uint32_t *branch, *way; /* of a block: the branch, + 1, and the number of its way, that came here last */
    uint32_t *stack, n;
    uint64_t steps;
    bool some; /* some block is open by the branch at hand */
};

static void arrive(struct walk *w, uint32_t branch, uint32_t way, uint32_t b)
{
    w->steps++;
    if (w->branch[b] == branch + 1 && w->way[b] == way) return;
    if (w->branch[b] == branch + 1) w->some = w->open[b] = true;
    w->branch[b] = branch + 1;
    w->way[b] = way;
    w->stack[w->n++] = b;
}

static bool is_repeated(const struct mg_graph *g, uint32_t from, uint32_t edge)
{
    for (uint32_t e = g->at[from]; e < edge; e++)
        if (g->to[e] == g->to[edge]) return true;
    return false;
}

/* Walks all ways of a branch up to `end`; blocks that two of them come to are open. True: there are any. */
static bool walk_ways(struct walk *w, uint32_t branch, uint32_t end)
{
    const struct mg_graph *g = w->g;
    w->some = false;
    MG_EACH_EDGE(g, branch, way)
    {
        if (g->to[way] == end || is_repeated(g, branch, way)) continue;
        for (arrive(w, branch, way, g->to[way]); w->n;) {
            uint32_t b = w->stack[--w->n];
            MG_EACH_EDGE(g, b, e)
            {
                if (g->to[e] != end) arrive(w, branch, way, g->to[e]);
            }
        }
    }
    return w->some;
}

/* Does nothing but end lanes? */
static bool only_ends(const struct mg_cfg *c, uint32_t b)
{
    return c->blocks[b].n_insts == 1 && !c->blocks[b].n_succs && c->blocks[b].leaves;
}

/* The ways that lanes of a kernel take and do not end on: nobody waits for who has ended. */
static struct mg_graph lasting(const struct mg_cfg *c, struct mg_arena *a)
{
    uint32_t n = 0, *from = mg_arena_array(a, uint32_t, c->succ.at[c->n_blocks] + 1),
             *to = mg_arena_array(a, uint32_t, c->succ.at[c->n_blocks] + 1);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        MG_EACH_EDGE(&c->succ, b, e)
        {
            if (!only_ends(c, c->succ.to[e])) from[n] = b, to[n++] = c->succ.to[e];
        }
    }
    return mg_graph_of_pairs(a, c->n_blocks, from, to, n);
}

static bool may_end(const struct mg_cfg *c, uint32_t b)
{
    bool may = c->blocks[b].leaves;
    MG_EACH_EDGE(&c->succ, b, e) may |= only_ends(c, c->succ.to[e]);
    return may;
}

/* Ways end where none of them goes on; those round a loop that only ending leads out of, where lanes may end. */
static struct mg_dom *lasting_postdom(const struct mg_cfg *c, const struct mg_graph *g, struct mg_arena *a)
{
    struct mg_graph back = mg_graph_reversed(a, g);
    uint32_t words = mg_bits_words(g->n);
    uint64_t *ends = mg_arena_array(a, uint64_t, words + 1), *to_end = mg_arena_array(a, uint64_t, words + 1);
    for (uint32_t b = 0; b < g->n; b++)
        if (!mg_graph_degree(g, b)) mg_put(ends, b);
    memcpy(to_end, ends, words * sizeof *ends);
    mg_graph_close(&back, to_end, NULL);
    for (uint32_t b = 0; b < g->n; b++)
        if (!mg_has(to_end, b) && may_end(c, b)) mg_put(ends, b);
    return mg_dom_of(&back, ends, true);
}

static void find_in(const struct mg_cfg *c, bool kernel, bool *open)
{
    struct mg_arena a = {0};
    struct mg_graph g = kernel ? lasting(c, &a) : c->succ;
    struct mg_dom *post = kernel ? lasting_postdom(c, &g, &a) : mg_postdom_new(c);
    struct walk w = {.g = &g, .open = open, .branch = mg_arena_array(&a, uint32_t, c->n_blocks + 1)};
    w.way = mg_arena_array(&a, uint32_t, c->n_blocks + 1);
    w.stack = mg_arena_array(&a, uint32_t, c->n_blocks + 1);
    for (uint32_t b = 0; b < c->n_blocks && w.steps < MOST_STEPS; b++) {
        uint32_t end = post->idom[b];
        if (c->reachable[b] && mg_graph_degree(&g, b) > 1 && walk_ways(&w, b, end) && end < c->n_blocks)
            open[end] = true;
    }
    for (uint32_t b = 0; b < c->n_blocks && w.steps >= MOST_STEPS; b++) open[b] = true;
    mg_dom_free(post);
    mg_arena_release(&a);
}

static bool calls(const struct mg_module *m, mg_id node)
{
    const struct mg_node *n = &m->nodes.at[node];
    return n->kind == MG_NODE_inst && m->forms.at[n->ref].op == MG_OP_call;
}

/* Who may call whom, by number. */
static struct mg_graph calls_of(struct mg_arena *a, const struct mg_module *m, const mg_id *funcs,
                                struct mg_cfg *const *cfgs, uint32_t n, const bool *taken)
{
    MG_VEC(uint32_t) from = {0}, to = {0};
    for (uint32_t f = 0; f < n; f++)
        for (uint32_t b = 0; b < cfgs[f]->n_blocks; b++)
            for (uint32_t k = 1; k < n && calls(m, cfgs[f]->blocks[b].last); k++)
                if (mg_call_enters(m, cfgs[f]->blocks[b].last, funcs[k], taken))
                    *mg_vec_push(&from) = f, *mg_vec_push(&to) = k;
    struct mg_graph g = mg_graph_of_pairs(a, n, from.at, to.at, from.n);
    mg_vec_release(&from);
    mg_vec_release(&to);
    return g;
}

/* What follows the calls of function k is open. */
static void open_behind(const struct mg_module *m, mg_id k, struct mg_cfg *const *cfgs, uint32_t n,
                        const uint32_t *first, const bool *taken, bool *open)
{
    for (uint32_t f = 0; f < n; f++) {
        const struct mg_cfg *c = cfgs[f];
        uint64_t *behind = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *behind);
        for (uint32_t b = 0; b < c->n_blocks; b++) {
            if (!calls(m, c->blocks[b].last) || !mg_call_enters(m, c->blocks[b].last, k, taken)) continue;
            MG_EACH_EDGE(&c->succ, b, e) mg_put(behind, c->succ.to[e]);
        }
        mg_graph_close(&c->succ, behind, NULL);
        for (uint32_t b = 0; b < c->n_blocks; b++) open[first[f] + b] |= mg_has(behind, b);
        free(behind);
    }
}

/* Lanes of several depths may be together where a recursive function ends, and part there. */
static void open_behind_recursion(const struct mg_module *m, const mg_id *funcs, struct mg_cfg *const *cfgs, uint32_t n,
                                  const uint32_t *first, const bool *taken, bool *open)
{
    struct mg_arena a = {0};
    struct mg_graph g = calls_of(&a, m, funcs, cfgs, n, taken);
    uint64_t *reached = mg_arena_array(&a, uint64_t, mg_bits_words(n) + 1);
    for (uint32_t k = 1; k < n; k++) {
        mg_graph_after(&g, k, reached, NULL);
        if (mg_has(reached, k)) open_behind(m, funcs[k], cfgs, n, first, taken, open);
    }
    mg_arena_release(&a);
}

static bool is_called_open(const struct mg_module *m, struct mg_cfg *const *cfgs, uint32_t n_funcs,
                           const uint32_t *first, const bool *open, mg_id func, const bool *taken)
{
    for (uint32_t f = 0; f < n_funcs; f++)
        for (uint32_t b = 0; b < cfgs[f]->n_blocks; b++)
            if (open[first[f] + b] && calls(m, cfgs[f]->blocks[b].last) &&
                mg_call_enters(m, cfgs[f]->blocks[b].last, func, taken))
                return true;
    return false;
}

void mg_meet_find(const struct mg_module *m, const mg_id *funcs, struct mg_cfg *const *cfgs, uint32_t n_funcs,
                  const uint32_t *first, bool *open)
{
    bool *taken = mg_funcs_taken(m), *whole = mg_xcalloc(n_funcs + 1, sizeof *whole);
    for (uint32_t f = 0; f < n_funcs; f++) find_in(cfgs[f], !f, open + first[f]);
    if (n_funcs > 1) open_behind_recursion(m, funcs, cfgs, n_funcs, first, taken, open);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t f = 1; f < n_funcs; f++) {
            if (whole[f] || !is_called_open(m, cfgs, n_funcs, first, open, funcs[f], taken)) continue;
            again = whole[f] = true;
            for (uint32_t b = 0; b < cfgs[f]->n_blocks; b++) open[first[f] + b] = true;
        }
    }
    free(taken);
    free(whole);
}
