/* Liveness: which registers hold a value that may still be read. Rows of bits over the registers
 * the function declares or uses, one row at each block's entry and end. */
#ifndef MG_ANALYSIS_LIVE_H
#define MG_ANALYSIS_LIVE_H

#include "analysis/analysis.h"

struct mg_live {
    struct mg_arena arena;
    uint32_t n_blocks, n_words; /* words of 64 bits in a row */
    mg_id reg_lo, reg_hi;       /* bit i of a row: register reg_lo + i */
    uint64_t *in, *out;         /* [block][n_words] */
};
struct mg_live *mg_live_new(const struct mg_cfg *c);
void mg_live_free(struct mg_live *l);
static inline bool mg_live_in(const struct mg_live *l, uint32_t block, mg_id reg)
{
    uint32_t i = reg - l->reg_lo;
    return reg >= l->reg_lo && reg < l->reg_hi && (l->in[(size_t)block * l->n_words + i / 64] >> i % 64 & 1);
}
/* Most 32-bit register cells (64-bit registers are two, predicates none) live at one place: what an
 * allocator without spills would need, before alignment and the machine's own. */
uint32_t mg_live_pressure(const struct mg_live *l, const struct mg_cfg *c);

#endif
