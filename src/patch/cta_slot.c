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
    MG_CODE(at, "mov.u32", mg_o_reg(v), mg_o_sreg(r, axis));
    return v;
}

mg_id mg_cta_slot_find(struct mg_code_at *at, mg_id mask, mg_id *slot)
{
    mg_id row = read_sreg(at, MG_SREG_ctaid, 3), low = mg_code_temp(at, MG_TYPE_b32),
          shift = mg_code_temp(at, MG_TYPE_b32);
    mg_id in = mg_code_temp(at, MG_TYPE_pred), cta = mg_code_temp(at, MG_TYPE_b64), x = mg_code_temp(at, MG_TYPE_b64);
    *slot = mg_code_temp(at, MG_TYPE_b32);
    /* row = ctaid.z * nctaid.y + ctaid.y, in 32 bits: grids are at most 65535 high and deep */
    MG_CODE(at, "mad.lo.u32", mg_o_reg(row), mg_o_reg(row), mg_o_reg(read_sreg(at, MG_SREG_nctaid, 2)),
            mg_o_reg(read_sreg(at, MG_SREG_ctaid, 2)));
    MG_CODE(at, "mad.lo.u32", mg_o_reg(low), mg_o_reg(row), mg_o_reg(read_sreg(at, MG_SREG_nctaid, 1)),
            mg_o_reg(read_sreg(at, MG_SREG_ctaid, 1)));
    MG_CODE(at, "and.b32", mg_o_reg(low), mg_o_reg(low), mg_o_reg(mask));
    MG_CODE(at, "setp.eq.u32", mg_o_reg(in), mg_o_reg(low), mg_o_imm(0));
    mg_id without = mg_code_label(at);
    mg_code_push_guard(at, in, true);
    MG_CODE(at, "bra", mg_o_label(without));
    mg_code_pop_guard(at);
    MG_CODE(at, "mul.wide.u32", mg_o_reg(cta), mg_o_reg(row), mg_o_reg(read_sreg(at, MG_SREG_nctaid, 1)));
    MG_CODE(at, "cvt.u64.u32", mg_o_reg(x), mg_o_reg(read_sreg(at, MG_SREG_ctaid, 1)));
    MG_CODE(at, "add.u64", mg_o_reg(cta), mg_o_reg(cta), mg_o_reg(x));
    MG_CODE(at, "popc.b32", mg_o_reg(shift), mg_o_reg(mask));
    MG_CODE(at, "shr.u64", mg_o_reg(cta), mg_o_reg(cta), mg_o_reg(shift));
    MG_CODE(at, "cvt.u32.u64", mg_o_reg(*slot), mg_o_reg(cta));
    return without;
}
