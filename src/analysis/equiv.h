/* Blocks that are entered equally often in every complete run of a function: one counter serves a
 * whole class. Two blocks are in one class when every cycle of the graph, closed by an edge from
 * leaving back to entering, holds both or neither. */
#ifndef MG_ANALYSIS_EQUIV_H
#define MG_ANALYSIS_EQUIV_H

#include "analysis/analysis.h"

#define MG_NO_CLASS UINT32_MAX

struct mg_equiv {
    uint32_t n_blocks, n_classes;
    uint32_t *class_of; /* block -> class, numbered by first member; MG_NO_CLASS: unreachable, never entered */
    uint32_t once;      /* class entered exactly once by every lane that enters the function; MG_NO_CLASS: none */
};
/* may_leave: block -> its call may end the lane, or NULL. Blocks from which nothing leaves (endless
 * loops) count as leaving, which only makes classes smaller. */
struct mg_equiv *mg_equiv_new(const struct mg_cfg *c, const bool *may_leave);
void mg_equiv_free(struct mg_equiv *e);

#endif
