/* Which blocks of a kernel all lanes of a warp provably enter together.
 *
 * A *cohort* is a set of lanes that have taken the same path from the kernel's entry and take every
 * later step together, as long as they stay in the cohort's blocks: at the entry the whole warp is
 * one; a branch whose predicate may differ between lanes ends it, and a block entered by one edge
 * of such a branch, outside every cycle, begins a new one. Where paths join again there is no
 * cohort, because no device promises when lanes meet. Holds for every schedule, so a count that
 * rests on it is exact on every device. */
#ifndef MG_ANALYSIS_UNIFORM_H
#define MG_ANALYSIS_UNIFORM_H

#include "analysis/analysis.h"
#include "analysis/loop.h"

#define MG_NO_COHORT UINT32_MAX

struct mg_uniform {
    uint32_t n_blocks;
    uint32_t *cohort;    /* block -> block at whose entry its cohort begins; MG_NO_COHORT: none */
    bool *varying;       /* register - reg_lo: may differ between lanes of one cohort */
    mg_id reg_lo, reg_hi;
};
/* Functions that are not kernels have no cohorts: who calls them together is not known. */
struct mg_uniform *mg_uniform_new(const struct mg_cfg *c, const struct mg_loops *l);
void mg_uniform_free(struct mg_uniform *u);

#endif
