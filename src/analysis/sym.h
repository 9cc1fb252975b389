/* Values of registers as expressions of the launch: arguments, geometry, the thread's position, and in
 * loops the round. Whole numbers without bounds stand for the machine's: what is said holds where no
 * sum or product of the program's overflows and nothing negative is shifted or masked. */
#ifndef MG_ANALYSIS_SYM_H
#define MG_ANALYSIS_SYM_H

#include "analysis/loop.h"
#include "analysis/ssa.h"
#include "base/buf.h"

enum mg_sym_op {
    MG_SYM_none, /* not known */
    MG_SYM_const,
    MG_SYM_arg /* val: number of the parameter */,
    MG_SYM_place /* val: enum mg_sym_place + axis */,
    MG_SYM_iv,      /* a register that each round of a loop changes alike; val: the phi at the loop's header */
    MG_SYM_threads, /* val: axis, threads of the launch along it */
    MG_SYM_add,
    MG_SYM_sub,
    MG_SYM_mul,
    MG_SYM_div,
    MG_SYM_rem,
    MG_SYM_shl,
    MG_SYM_shr,
    MG_SYM_and,
    MG_SYM_min,
    MG_SYM_max,
    MG_SYM_ceil /* quotient, upwards */,
    MG_SYM_bits /* as many as a needs; 0 needs none */,
    MG_SYM_lt,
    MG_SYM_le,
    MG_SYM_eq,
    MG_SYM_ne, /* 0 or 1 */
    MG_SYM_both,
    MG_SYM_either,
    MG_SYM_rounds, /* a, as a number of rounds of loop val that begin with the first */
};
enum mg_sym_place { MG_SYM_TID = 0, MG_SYM_CTAID = 3, MG_SYM_NTID = 6, MG_SYM_NCTAID = 9 };
enum mg_sym_step { MG_STEP_NONE, MG_STEP_ADD, MG_STEP_SHL, MG_STEP_SHR };

typedef uint32_t mg_sym; /* 0: not known */
struct mg_sym_node {
    uint8_t op;
    uint8_t axes; /* bit: depends on the thread's position along it */
    bool varies;  /* in a loop */
    mg_sym a, b;
    int64_t val;
};
struct mg_sym_iv {
    mg_sym start;
    uint8_t how;
    int64_t by;
    uint32_t loop;
}; /* how: enum mg_sym_step */
struct mg_syms {
    const struct mg_cfg *c;
    const struct mg_ssa *ssa;
    const struct mg_loops *l;
    MG_VEC(struct mg_sym_node) at;
    struct mg_map known;
    mg_sym *memo;          /* by SSA value */
    struct mg_sym_iv *ivs; /* by SSA value */
};
void mg_syms_init(struct mg_syms *y, const struct mg_cfg *c, const struct mg_ssa *ssa, const struct mg_loops *l);
void mg_syms_release(struct mg_syms *y);
mg_sym mg_sym_make(struct mg_syms *y, enum mg_sym_op op, mg_sym a, mg_sym b, int64_t val);
mg_sym mg_sym_const(struct mg_syms *y, int64_t v);
mg_sym mg_sym_not(struct mg_syms *y, mg_sym a);
/* What the register holds where the instruction reads it. */
mg_sym mg_sym_of(struct mg_syms *y, mg_id node, mg_id reg);
/* The only loop whose rounds it depends on, MG_NO_LOOP: none; false: several. */
bool mg_sym_loop(const struct mg_syms *y, mg_sym a, uint32_t *loop);
void mg_sym_print(const struct mg_syms *y, mg_sym a, struct mg_buf *out);

#endif
