/* Where the addresses come from to which a kernel writes global memory: its parameters and variables of
 * its module. What a launch may change is then known from its arguments. Relies on this: adding to a
 * pointer stays in its allocation. */
#ifndef MG_ANALYSIS_REACH_H
#define MG_ANALYSIS_REACH_H

#include "analysis/analysis.h"

struct mg_reach {
    bool everything; /* nothing is proven: an address is loaded or made otherwise, or a called function writes */
    uint32_t *params;
    uint32_t n_params; /* byte offsets in the parameter block, of 8 bytes each */
    mg_id *vars;
    uint32_t n_vars; /* module scope */
};
struct mg_reach *mg_reach_new(const struct mg_module *m, mg_id kernel); /* NULL: out of memory */
void mg_reach_free(struct mg_reach *r);

#endif
