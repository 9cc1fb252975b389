/* Code of a one-liner at one spot: values, expressions, predicates. Where they are counted is
 * expr_place.c's business. */
#ifndef MG_TOOL_EXPR_CODE_H
#define MG_TOOL_EXPR_CODE_H

#include "probe/expr_site.h"

struct mg_expr_val { /* of an expression at a spot */
    enum { MG_VAL_NONE /* there is no such thing here */, MG_VAL_IMM, MG_VAL_REG /* b64 */, MG_VAL_PRED } kind;
    bool warp; /* the same in all lanes that are here */
    int64_t num;
    mg_id reg;
};
struct mg_expr_here {
    struct mg_patch *p;
    const struct mg_expr_spot *spot;
    struct mg_code_at *at;     /* where code goes */
    struct mg_code_at *before; /* of an instruction looked at from behind; else `at` */
    bool after;
    mg_id guard;
    bool guard_not;    /* of the instruction: lanes where the clause fires; 0: all */
    const mg_id *vars; /* b64 registers of the function's variables */
    const struct mg_expr_val *inputs;
    uint32_t n_inputs;  /* $0.. */
    uint32_t ranges_at; /* word of the launch's list where the live allocations stand */
    struct mg_expr_val values[MG_EV_COUNT];
    bool has[MG_EV_COUNT];
};
/* Values alloc and offset (expr_alloc.c). Their code is guarded: ask before any condition that not all uses share. */
void mg_expr_find_allocation(struct mg_expr_here *h);
enum { MG_EXPR_ALLOC_WORDS = 1 + 3 * 1024 };
static inline bool mg_expr_wants_allocations(const struct mg_expr *e)
{
    return e->uses[MG_EV_alloc] || e->uses[MG_EV_offset];
}
/* False: the clause has nothing to look at here (an instruction without a result, ...). */
bool mg_expr_here_init(struct mg_expr_here *h, struct mg_patch *p, const struct mg_expr_spot *spot);
struct mg_expr_val mg_expr_code(struct mg_expr_here *h, const struct mg_expr_node *n);
struct mg_expr_val mg_expr_value_at(struct mg_expr_here *h, enum mg_expr_value v);
struct mg_opnd mg_expr_opnd(struct mg_expr_here *h, struct mg_expr_val v); /* 64 bits: register or immediate */
mg_id mg_expr_reg(struct mg_expr_here *h, struct mg_expr_val v);           /* b64 */
mg_id mg_expr_pred(struct mg_expr_here *h, struct mg_expr_val v);          /* predicate: not 0 */
static inline struct mg_expr_val mg_expr_imm(int64_t num)
{
    return (struct mg_expr_val){.kind = MG_VAL_IMM, .warp = true, .num = num};
}

#endif
