/* Which blocks of a kernel all lanes of a warp provably enter together.
 *
 * A *cohort* is a set of lanes that have taken the same path from the kernel's entry and take every
 * later step together, as long as they stay in the cohort's blocks: at the entry the whole warp is
 * one; a branch whose predicate may differ between lanes ends it, and a block entered by one edge
 * of such a branch, outside every cycle, begins a new one. Where paths join again there is no
 * cohort, because no device promises when lanes meet. Holds for every schedule, so a count that
 * rests on it is exact on every device.
 *
 * An aligned barrier of the whole CTA is where they do meet: all lanes that have not left execute it
 * together. Where every lane that enters some block comes to one such barrier once, the cohort goes on
 * behind it (mg_uniform_new_barriers); a block that begins with it is entered when it is over. */
#ifndef MG_ANALYSIS_UNIFORM_H
#define MG_ANALYSIS_UNIFORM_H

#include "analysis/analysis.h"
#include "analysis/dom.h"
#include "analysis/equiv.h"
#include "analysis/loop.h"

#define MG_NO_COHORT UINT32_MAX

struct mg_uniform {
    uint32_t n_blocks;
    uint32_t *cohort; /* block -> block at whose entry its cohort begins; MG_NO_COHORT: none */
    uint32_t *at_end; /* the same of the lanes that end the block */
    bool *varying;    /* register - reg_lo: may differ between lanes of one cohort */
    mg_id reg_lo, reg_hi;
};
/* Functions that are not kernels have no cohorts: who calls them together is not known. */
struct mg_uniform *mg_uniform_new(const struct mg_cfg *c, const struct mg_loops *l);
struct mg_uniform *mg_uniform_new_barriers(const struct mg_cfg *c, const struct mg_loops *l, const struct mg_dom *dom,
                                           const struct mg_dom *post, const struct mg_equiv *e);
void mg_uniform_free(struct mg_uniform *u);
/* A barrier that all threads of the CTA that have not left wait in, those of a warp together. */
bool mg_is_cta_barrier(const struct mg_module *m, mg_id node);

#endif
