/* What all CTAs of a launch do alike: a block is *alike* if thread t of any CTA executes it as often as thread t of CTA
 * 0 does, a register if it gets the same values there, one after the other. That is so where control and values depend
 * on the launch's parameters, its shape and the thread's place in its CTA alone: on no memory, no CTA's number, no
 * other thread. */
#ifndef MG_ANALYSIS_ALIKE_H
#define MG_ANALYSIS_ALIKE_H

#include "analysis/analysis.h"
#include "analysis/dom.h"

struct mg_alike {
    uint32_t n_blocks;
    bool *block; /* block -> alike */
    mg_id lo, hi;
    bool *differs; /* register - lo -> not alike */
};
/* may_leave: block -> its call may end the thread, or NULL. In functions that are not kernels nothing is alike, nor
 * where such calls are. */
struct mg_alike *mg_alike_new(const struct mg_cfg *c, const bool *may_leave);
void mg_alike_free(struct mg_alike *a);
bool mg_alike_reg(const struct mg_alike *a, mg_id reg);
/* Are all ways from the block's end taken as often as in CTA 0? */
bool mg_alike_end(const struct mg_alike *a, const struct mg_cfg *c, uint32_t b);

#endif
