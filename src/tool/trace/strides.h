/* How an address goes from round to round of a loop. See strides.c. */
#ifndef MG_TOOL_TRACE_STRIDES_H
#define MG_TOOL_TRACE_STRIDES_H

#include "analysis/loop.h"
#include "analysis/ssa.h"
#include "analysis/uniform.h"

enum mg_stride_how {
    MG_STRIDE_NONE,    /* anyhow */
    MG_STRIDE_SAME,    /* it stays */
    MG_STRIDE_LIKELY,  /* it seems to grow by a stride that is the same in all lanes and rounds */
    MG_STRIDE_LOW,     /* it grows by `step`, modulo 2^32: a value of 32 bits */
    MG_STRIDE_WHOLE,   /* the same modulo 2^64 */
    MG_STRIDE_WIDENED, /* it is `scale` times such a value of 32 bits, widened, and something that stays */
};
struct mg_stride {
    enum mg_stride_how how;
    int64_t step;   /* of the value of 32 bits, or 64; */
    mg_id step_reg; /* times this register, which keeps its value from before the loop on; 0: none */
    /* WIDENED */
    int64_t scale;
    bool is_signed;
    mg_id narrow, widens; /* the register of 32 bits, and the instruction that widens it */
};
struct mg_stride_of { /* what is asked about; analyses of one function */
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_loops *loops;
    const struct mg_ssa *ssa;
    const struct mg_uniform *u;
    uint32_t loop;
};
/* Of the address that an operand (kind addr) names at the instruction. */
struct mg_stride mg_stride_of(const struct mg_stride_of *f, mg_id node, const struct mg_opnd *address);

#endif
