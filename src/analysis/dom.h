/* Dominators and postdominators of a function's blocks, as trees with constant-time queries. */
#ifndef MG_ANALYSIS_DOM_H
#define MG_ANALYSIS_DOM_H

#include "analysis/analysis.h"

#define MG_DOM_ROOT (UINT32_MAX - 1) /* postdominators: the place behind every leaving block */

struct mg_dom {
    struct mg_arena arena;
    uint32_t n_blocks;
    bool post;
    uint32_t *idom;       /* block -> parent; MG_NO_BLOCK: the entry, or a block the analysis does not
                           * reach (no path from the entry; postdominators: no way to leave);
                           * MG_DOM_ROOT: postdominated by leaving alone */
    uint32_t *pre, *last; /* numbers of the tree walk: a dominates b if pre[a] <= pre[b] <= last[a] */
    struct mg_graph kids; /* the tree: edges to children, in id order; node n_blocks is the root of all */
};
/* Of any graph: nodes that all ways from the roots to a node lead over. post: the ways are those of a reversed graph,
 * and what only the roots' root dominates has parent MG_DOM_ROOT. */
struct mg_dom *mg_dom_of(const struct mg_graph *way, const uint64_t *roots, bool post);
struct mg_dom *mg_dom_new(const struct mg_cfg *c);
struct mg_dom *mg_postdom_new(const struct mg_cfg *c);
void mg_dom_free(struct mg_dom *d);
/* Does a dominate (postdominate) b? Reflexive. False when either is out of the analysis' reach. */
static inline bool mg_dom_over(const struct mg_dom *d, uint32_t a, uint32_t b)
{
    return d->pre[a] && d->pre[b] && d->pre[a] <= d->pre[b] && d->pre[b] <= d->last[a];
}
/* Dominance frontier of every block: blocks where its dominance ends. frontier of b:
 * list[at[b] .. at[b + 1]), sorted. */
struct mg_frontier {
    struct mg_arena arena;
    uint32_t *at, *list;
};
struct mg_frontier *mg_frontier_new(const struct mg_cfg *c, const struct mg_dom *d);
void mg_frontier_free(struct mg_frontier *f);

#endif
