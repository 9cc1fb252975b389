/* SSA view of a function's registers, beside the IR: which definition each read sees, and who reads
 * each definition. Pruned: a phi stands only where its register is live.
 *
 * Values are numbered from 1. A guarded write makes a value that also depends on the one before it
 * (`prev`), because lanes whose guard is false keep that. */
#ifndef MG_ANALYSIS_SSA_H
#define MG_ANALYSIS_SSA_H

#include "analysis/dom.h"
#include "analysis/live.h"
#include "analysis/loop.h"

enum mg_ssa_kind {
    MG_SSA_none,
    MG_SSA_entry /* as the function was entered: undefined or a .reg parameter */,
    MG_SSA_def,
    MG_SSA_phi
};

struct mg_ssa_value {
    uint8_t kind; /* enum mg_ssa_kind */
    mg_id reg;
    uint32_t block;
    mg_id node;               /* def: the instruction */
    uint32_t prev;            /* guarded def: value before; 0: none */
    uint32_t args_at, n_args; /* phi: run in ssa->args, one per predecessor in the order of cfg->preds;
                               * 0: the predecessor is unreachable */
    uint32_t uses_at, n_uses; /* run in ssa->uses */
};
struct mg_ssa_use {
    mg_id node;
    uint32_t value;
}; /* reader: an instruction, or (node 0) the phi or guarded def `value` */

struct mg_ssa {
    struct mg_arena arena;
    const struct mg_cfg *c;
    struct mg_ssa_value *values;
    uint32_t n_values; /* values[0] is none */
    uint32_t *args;
    struct mg_ssa_use *uses;
    uint32_t *phis_at, *phis; /* phis of block b: phis[phis_at[b] .. phis_at[b + 1]) */
    uint32_t *reads_at,
        *reads; /* node - node_lo -> run; values in the order of mg_node_uses; unreachable blocks: none */
    uint32_t *writes_at, *writes; /* the same for mg_node_defs */
};
struct mg_ssa *mg_ssa_new(const struct mg_cfg *c, const struct mg_dom *d, const struct mg_live *l);
void mg_ssa_free(struct mg_ssa *s);
/* Value that the instruction reads (writes) in reg; 0: it does not, or is unreachable. */
uint32_t mg_ssa_read(const struct mg_ssa *s, mg_id node, mg_id reg);
uint32_t mg_ssa_write(const struct mg_ssa *s, mg_id node, mg_id reg);
/* Is the value made outside of the loop, or of such values alone, so that each round has the same? */
bool mg_ssa_is_fixed(const struct mg_ssa *s, const struct mg_loops *l, uint32_t loop, uint32_t value);

#endif
