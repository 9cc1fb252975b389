/* Address space of every memory operation: where a generic address may point, found through moves,
 * arithmetic, phis, parameters and results of calls. Never gives up: where the answer is not one
 * space it is the set of those possible, and a tool tests the address against their windows.
 *
 * What it relies on: a pointer handed over by the host is a global address (or what .ptr .space
 * says), and adding to a pointer stays in its space. */
#ifndef MG_ANALYSIS_SPACE_H
#define MG_ANALYSIS_SPACE_H

#include "analysis/analysis.h"

#define MG_SPACE_BIT(space) (1u << (space))
#define MG_SPACE_WINDOWS                                                                                               \
    (MG_SPACE_BIT(MG_SPACE_global) | MG_SPACE_BIT(MG_SPACE_shared) | MG_SPACE_BIT(MG_SPACE_local) |                    \
     MG_SPACE_BIT(MG_SPACE_const) | MG_SPACE_BIT(MG_SPACE_param)) /* a generic address may be any of these */

struct mg_spaces {
    uint16_t *of_node;
    uint32_t n_nodes;    /* node -> set of MG_SPACE_BIT; 0: no memory operation */
    uint32_t n_generic;  /* memory operations written without a space */
    uint32_t n_resolved; /* of those, the ones with one possible space */
};
struct mg_spaces *mg_spaces_new(const struct mg_module *m);
void mg_spaces_free(struct mg_spaces *s);
static inline unsigned mg_spaces_of(const struct mg_spaces *s, mg_id node)
{
    return node < s->n_nodes ? s->of_node[node] : 0;
}
/* The one space, or MG_SPACE_generic when a window test has to tell. */
static inline enum mg_space mg_spaces_one(unsigned set)
{
    for (unsigned i = 1; i < MG_SPACE_COUNT; i++)
        if (set == MG_SPACE_BIT(i)) return (enum mg_space)i;
    return MG_SPACE_generic;
}

#endif
