/* Inserting code into one function of a twin, node by node. What collects code spot by spot for tools is patch/patch.h.
 */
#ifndef MG_INSERT_EMIT_H
#define MG_INSERT_EMIT_H

#include "analysis/callgraph.h"
#include "pass/priv.h"

/* Where code goes in one function of a twin. */
struct mg_emit {
    struct mg_twin *t;
    struct mg_module *m;
    const struct mg_cfg *c;
    uint32_t ix;         /* of the function: in t->funcs */
    mg_id func, ctx, at; /* at: node in front of which code goes; 0: at the end */
    mg_id guard;
    bool guard_not;       /* of what is inserted; 0: none */
    mg_id both;           /* predicate for guards that are made of two */
    const bool *may_exit; /* by func id */
};

mg_id mg_emit(struct mg_emit *x, const char *form, const struct mg_opnd *opnds, uint32_t n);
#define EMIT_AT(x, ...) mg_emit((x), MG_INST(__VA_ARGS__))
mg_id mg_emit_reg(struct mg_emit *x, const char *name, enum mg_type type);
void mg_emit_guard(struct mg_emit *x, mg_id guard, bool guard_not);
/* Sets the guard of what follows to (guard and p). */
void mg_emit_guard_by(struct mg_emit *x, mg_id guard, bool guard_not, mg_id p);
/* The thread's linear id within its CTA, or the CTA's within the grid, as a new 64-bit register. */
mg_id mg_emit_linear(struct mg_emit *x, enum mg_sreg id, enum mg_sreg extent);

/* What the code counts, for devices that take probes by what they mean (mg_module.marked): n, a number or a register of
 * 64 bits, goes to a cell for every lane here that has the guard, or, per warp, once for all of them, from the lowest.
 */
void mg_emit_count(struct mg_emit *x, uint64_t cell, struct mg_opnd n, bool per_warp);

mg_id mg_in_front_of(const struct mg_module *m, mg_id node); /* and of the pragmas that belong to it */
static inline mg_id mg_block_head(const struct mg_module *m, const struct mg_block *k)
{
    return mg_in_front_of(m, k->first);
}
/* The function with a body that this node calls by name, or 0. */
mg_id mg_direct_callee(const struct mg_module *m, mg_id node);
/* May the lane end in what this call calls? */
bool mg_callee_may_exit(const struct mg_module *m, const bool *may_exit, mg_id node);
/* Which functions may end a lane by `exit`, themselves or in what they call. Index 0: some
 * address-taken function may. To be freed. */
bool *mg_funcs_may_exit(const struct mg_module *m, const struct mg_twin *t);
/* A body may end without ret: by its last instruction, or by a branch to a label behind it. */
bool mg_body_falls_off(const struct mg_module *m, const struct mg_cfg *c);
/* Ends such a body by a ret; every later caller gets the same. 0: it needs none. */
mg_id mg_body_close(struct mg_twin *t, uint32_t ix, const struct mg_cfg *c);
/* From sm_70 on a newer target means the same: it only allows more. sm: of the device, 0: as the PTX has it. */
void mg_raise_target(struct mg_module *m, uint32_t sm);
/* Sets how the active lanes are asked for; false: this PTX has no way. */
bool mg_choose_mask(struct mg_module *m, bool *ballot);

#endif
