/* Which registers ptxas takes to hold one value for all lanes of a warp: arguments, the CTA's place, constants, what
 * lies in memory at such an address, and what is computed of these; where branches decide which of several writes was
 * the last one, only if all lanes that read it went the same way. Unlike uniform.h it says nothing of when lanes meet,
 * and trusts that nobody writes between the loads of two lanes: enough to tell what the assembler will do, no ground
 * for a count. */
#ifndef MG_ANALYSIS_SAME_H
#define MG_ANALYSIS_SAME_H

#include "analysis/analysis.h"

enum mg_same_among {
    MG_SAME_LANES, /* of a warp */
    MG_SAME_CTAS,  /* thread t of each: what is loaded differs */
};
struct mg_same {
    mg_id lo, hi;
    bool *differs; /* register - lo */
    enum mg_same_among among;
};
/* In functions that are not kernels no register is. */
struct mg_same *mg_same_new(const struct mg_cfg *c, enum mg_same_among among);
void mg_same_free(struct mg_same *s);
bool mg_same_reg(const struct mg_same *s, mg_id reg);
/* An operand: a register or an address as well, a constant, a special register. */
bool mg_same_operand(const struct mg_same *s, const struct mg_module *m, const struct mg_opnd *o);

#endif
