/* Rounds of a loop of one block, counted where its lanes come out, which they do one after the other. Each knows how
 * many it made, n, and who made the last one with it. Of those who left together the lowest adds n for all who made
 * that round, and takes n off for those who went on: what remains is the rounds in which just so many ran. */
#include "patch/priv.h"

static void leave(struct mg_code_at *at, mg_id p, mg_id to)
{
    mg_code_push_guard(at, p, false);
    MG_CODE(at, "bra", mg_o_label(to));
    mg_code_pop_guard(at);
}

/* first: cell 0; times: 64 bits. The address of cell k, less `first`. */
static mg_id add_times(struct mg_code_at *at, uint32_t first, mg_id k, mg_id times)
{
    mg_id a = mg_code_temp(at, MG_TYPE_b64), v = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "mad.wide.u32", a, k, 8, mg_value_base(at));
    MG_CODE(at, "cvt.u64.u32", v, k);
    MG_CODE(at, "mul.lo.u64", v, v, times);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(a, 8 * (int64_t)first), v);
    return a;
}

void mg_count_rounds(struct mg_code_at *at, uint32_t first, uint32_t half, mg_id who, mg_id rounds)
{
    mg_id p = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at), same = mg_code_temp(at, MG_TYPE_b32),
          k = mg_code_temp(at, MG_TYPE_b32), on = mg_code_temp(at, MG_TYPE_b32), n = mg_code_temp(at, MG_TYPE_b64),
          key = mg_code_temp(at, MG_TYPE_b64), lt = mg_value_lt(at);
    const struct mg_opnd zero = {.kind = MG_OPND_f64};
    if (first > at->p->rules.n || half + 32 > at->p->rules.n - first)
        mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)first);
    MG_CODE(at, "setp.eq.f64", p, rounds, zero);
    leave(at, p, done);
    MG_CODE(at, "cvt.rzi.u64.f64", n, rounds);
    MG_CODE(at, "cvt.u32.u64", k, n);
    /* those who made a round together have made as many, but where lanes meet that hardware keeps apart: then, too, the
     * sum over lanes is to hold */
    MG_CODE(at, "mov.b64", key, mg_code_pair(at, who, k));
    MG_CODE(at, "match.any.sync.b64", same, key, mg_value_active(at));
    MG_CODE(at, "and.b32", k, same, lt);
    MG_CODE(at, "setp.ne.u32", p, k, 0);
    MG_CODE(at, "setp.eq.or.u32", p, same, mg_o_imm(-1), mg_o_reg(p)); /* whole warps are not counted */
    leave(at, p, done);
    MG_CODE(at, "popc.b32", k, who);
    MG_CODE(at, "popc.b32", on, same);
    MG_CODE(at, "sub.u32", on, k, on);
    add_times(at, first, k, n);
    MG_CODE(at, "setp.eq.u32", p, on, 0);
    leave(at, p, done);
    MG_CODE(at, "not.b64", n, n); /* the first round without those that left is told apart */
    mg_id a = add_times(at, first, on, n);
    MG_CODE(at, "cvt.u64.u32", n, on);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(a, 8 * (int64_t)(first + half)), n);
    mg_code_place(at, done);
    MG_CODE(at, "mov.f64", rounds, zero);
}
