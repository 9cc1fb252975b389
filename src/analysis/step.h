/* How far a register's value moves from one round of a loop to the next: by a constant, by nothing, or nobody knows. */
#ifndef MG_ANALYSIS_STEP_H
#define MG_ANALYSIS_STEP_H

#include "analysis/affine.h"
#include "analysis/loop.h"
#include "analysis/ssa.h"

/* Of the register as the instruction reads it; the loop is one around the instruction. Whole numbers stand for the
 * machine's, as in poly.h. */
struct mg_affine mg_step_of(const struct mg_ssa *s, const struct mg_loops *l, uint32_t loop, mg_id node, mg_id reg);

#endif
