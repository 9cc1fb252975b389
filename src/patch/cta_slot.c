#include "patch/cta_slot.h"

uint32_t mg_cta_slot_shift(const uint32_t grid[3], uint64_t slots)
{
    uint64_t ctas = (uint64_t)grid[0] * grid[1] * grid[2];
    uint32_t shift = 0;
    while (ctas >> shift > slots || (ctas >> shift == slots && ctas & (((uint64_t)1 << shift) - 1))) shift++;
    return shift;
}

static mg_id read_sreg(struct mg_code_at *at, enum mg_sreg r, uint8_t axis)
{
    mg_id v = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "mov.u32", v, mg_o_sreg(r, axis));
    return v;
}

mg_id mg_cta_slot_find(struct mg_code_at *at, mg_id mask, mg_id *slot)
{
    mg_id row = read_sreg(at, MG_SREG_ctaid, 3), low = mg_code_temp(at, MG_TYPE_b32),
          shift = mg_code_temp(at, MG_TYPE_b32);
    mg_id in = mg_code_temp(at, MG_TYPE_pred), cta = mg_code_temp(at, MG_TYPE_b64), x = mg_code_temp(at, MG_TYPE_b64);
    *slot = mg_code_temp(at, MG_TYPE_b32);
    /* row = ctaid.z * nctaid.y + ctaid.y, in 32 bits: grids are at most 65535 high and deep */
    MG_CODE(at, "mad.lo.u32", row, row, read_sreg(at, MG_SREG_nctaid, 2), read_sreg(at, MG_SREG_ctaid, 2));
    MG_CODE(at, "mad.lo.u32", low, row, read_sreg(at, MG_SREG_nctaid, 1), read_sreg(at, MG_SREG_ctaid, 1));
    MG_CODE(at, "and.b32", low, low, mask);
    MG_CODE(at, "setp.eq.u32", in, low, 0);
    mg_id without = mg_code_label(at);
    mg_code_push_guard(at, in, true);
    MG_CODE(at, "bra", mg_o_label(without));
    mg_code_pop_guard(at);
    MG_CODE(at, "mul.wide.u32", cta, row, read_sreg(at, MG_SREG_nctaid, 1));
    MG_CODE(at, "cvt.u64.u32", x, read_sreg(at, MG_SREG_ctaid, 1));
    MG_CODE(at, "add.u64", cta, cta, x);
    MG_CODE(at, "popc.b32", shift, mask);
    MG_CODE(at, "shr.u64", cta, cta, shift);
    MG_CODE(at, "cvt.u32.u64", *slot, cta);
    return without;
}
