/* Which blocks of a kernel warps are likely to enter in parts: those on whose way a branch decides whose lanes differ
 * as they like. Not those behind branches that compare a thread's place with some bound, which part one warp of many,
 * nor where all ways join again. A guess, on which no count may depend. */
#ifndef MG_ANALYSIS_PARTED_H
#define MG_ANALYSIS_PARTED_H

#include "analysis/uniform.h"

/* By block; to be freed. */
bool *mg_parted_new(const struct mg_cfg *c, const struct mg_uniform *u);

#endif
