/* Directed graphs over numbered nodes, and the walks and fixpoints that every analysis asks of them.
 *
 *   node x    its edges lead to to[at[x]], ... to[at[x + 1] - 1], in the order of whoever built the graph
 *
 * A graph knows nothing of instructions: the blocks of PTX (struct mg_cfg), the blocks of a decoded function on the CPU
 * device, those of machine code and a dominator tree are all of this form. Sets of nodes are rows of bits
 * (base/bits.h). Scratch memory comes from the heap and is given back before a function returns. */
#ifndef MG_ANALYSIS_GRAPH_H
#define MG_ANALYSIS_GRAPH_H

#include "base/arena.h"
#include "base/bits.h"

struct mg_graph {
    uint32_t n;
    const uint32_t *at; /* [n + 1]; owner: whoever built it */
    const uint32_t *to;
};
#define MG_EACH_EDGE(g, x, e) for (uint32_t e = (g)->at[x]; e < (g)->at[(x) + 1]; e++)
static inline uint32_t mg_graph_degree(const struct mg_graph *g, uint32_t x)
{
    return g->at[x + 1] - g->at[x];
}

/* A graph of n nodes from pairs (from[i], to[i]); the edges of a node keep the order of the pairs. */
struct mg_graph mg_graph_of_pairs(struct mg_arena *a, uint32_t n, const uint32_t *from, const uint32_t *to,
                                  uint32_t n_edges);
/* The same edges the other way round; sources in ascending order. */
struct mg_graph mg_graph_reversed(struct mg_arena *a, const struct mg_graph *g);

/* Adds to `set` every node that a way from one of its members leads to. Nodes of `wall` are not entered (NULL: none).
 */
void mg_graph_close(const struct mg_graph *g, uint64_t *set, const uint64_t *wall);
/* Sets `set` to the nodes at the ends of all ways of one edge or more from x: x itself only where a cycle leads back.
 */
void mg_graph_after(const struct mg_graph *g, uint32_t x, uint64_t *set, const uint64_t *wall);

/* Does every way from root to x lead through `through`? Ways over nodes of `wall` do not count, nor those that come
 * back to root; nodes count as ways through themselves. */
bool mg_graph_is_behind(const struct mg_graph *g, uint32_t root, uint32_t through, uint32_t x, const uint64_t *wall);
/* Nodes that come back to `head` without passing it, by an edge from a node that is not below it: for nodes in an order
 * in which only jumps back go down, the natural loop of head. False: no such edge, and `set` is empty. */
bool mg_graph_loop(const struct mg_graph *pred, uint32_t head, uint64_t *set);

/* Depth-first walk from root over nodes not in `seen`, which grows; edges in order. Either call may be NULL. */
struct mg_graph_visit {
    void (*enter)(void *user, uint32_t node);
    void (*leave)(void *user, uint32_t node);
    void *user;
};
void mg_graph_walk(const struct mg_graph *g, uint32_t root, uint64_t *seen, const struct mg_graph_visit *v);
/* Reverse postorder of such a walk into order, [n]. Result: how many nodes it holds. */
uint32_t mg_graph_order(const struct mg_graph *g, uint32_t root, uint64_t *seen, uint32_t *order);

/* Facts that flow along edges until nothing changes: a row of bits a node, what is known where it begins.
 * `any`: a fact holds that some edge brings; else only what all edges bring, and nothing where no edge leads. */
struct mg_dataflow {
    const struct mg_graph *g; /* for facts that flow backwards, the reversed graph */
    const uint32_t *order;    /* nodes in a good order, [g->n]; NULL: by number */
    bool any;
    bool (*join)(uint64_t *to, const uint64_t *from,
                 uint32_t words); /* NULL: bits; else rows of whatever else, which this
                                   * joins (true: `to` changed), with any set */
    uint32_t words;
    uint64_t *rows; /* [g->n][words]; any: what holds from the start; else written here */
    void (*pass)(void *user, uint32_t node, uint64_t *row); /* the node changes the row; NULL: it does not */
    void *user;
};
void mg_dataflow_run(const struct mg_dataflow *f);

/* Which values may still be read, for code of any kind whose values are numbers. */
struct mg_effects {
    uint64_t *use, *def;
}; /* of one node: read before it is written there; surely written */
static inline void mg_effect_use(struct mg_effects *e, uint32_t v)
{
    if (!mg_has(e->def, v)) mg_put(e->use, v);
}
static inline void mg_effect_def(struct mg_effects *e, uint32_t v)
{
    mg_put(e->def, v);
} /* a write that keeps something is a use */
struct mg_liveness {
    const struct mg_graph *pred;
    const uint32_t *order; /* a good one against the flow; NULL: by descending number */
    uint32_t words;
    void (*effects)(void *user, uint32_t node,
                    struct mg_effects *e); /* calls the two above, in the order of the node's instructions */
    void *user;
    uint64_t *in, *out; /* [pred->n][words], zeros: live where a node begins, and where it ends */
};
void mg_liveness_run(const struct mg_liveness *l);

#endif
