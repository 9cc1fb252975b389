/* Counts in a register of each lane.
 *
 * Rounds of a loop of one block, counted where its lanes come out, which they do one after the other. Each knows how
 * many it made, n, and who made the last one with it. Of those who left together the lowest adds n for all who made
 * that round, and takes n off for those who went on: what remains is the rounds in which just so many ran. */
#include "patch/priv.h"

#include <string.h>

static bool is_32(const struct mg_code_at *at, mg_id count)
{
    return mg_type_bits((enum mg_type)mg_at_module(at)->regs.at[count].type) == 32;
}

static struct mg_opnd number(const struct mg_code_at *at, mg_id count, int v)
{
    double real = v;
    struct mg_opnd o = {.kind = MG_OPND_f64};
    memcpy(&o.val, &real, sizeof real);
    return is_32(at, count) ? mg_o_imm(v) : o;
}

mg_id mg_count_new(struct mg_code_at *at)
{
    mg_id n = mg_code_reg(at, mg_at_is_bounded(at) ? MG_TYPE_b32 : MG_TYPE_b64);
    mg_count_set(mg_at_entry(at->p, at->func_ix), n, 0);
    return n;
}

void mg_count_set(struct mg_code_at *at, mg_id count, int to)
{
    MG_CODE(at, is_32(at, count) ? "mov.u32" : "mov.f64", count, number(at, count, to));
}

void mg_count_add(struct mg_code_at *at, mg_id count)
{
    MG_CODE(at, is_32(at, count) ? "add.u32" : "add.f64", count, count, number(at, count, 1));
}

void mg_count_is_some(struct mg_code_at *at, mg_id p, mg_id count)
{
    MG_PURE(at, is_32(at, count) ? "setp.ne.and.u32" : "setp.neu.and.f64", p, count, number(at, count, 0), mg_o_reg(p));
}

mg_id mg_count_is_none(struct mg_code_at *at, mg_id count)
{
    mg_id p = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, is_32(at, count) ? "setp.eq.u32" : "setp.eq.f64", p, count, number(at, count, 0));
    return p;
}

mg_id mg_count_times(struct mg_code_at *at, mg_id count, mg_id n)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64), lanes = is_32(at, count) ? 0 : mg_code_temp(at, MG_TYPE_b64);
    if (!lanes) {
        MG_PURE(at, "mul.wide.u32", r, count, n);
        return r;
    }
    MG_PURE(at, "cvt.u64.u32", lanes, n);
    MG_PURE(at, "cvt.rzi.u64.f64", r, count);
    MG_PURE(at, "mul.lo.u64", r, r, lanes);
    return r;
}

static void leave(struct mg_code_at *at, mg_id p, mg_id to)
{
    mg_code_push_guard(at, p, false);
    MG_CODE(at, "bra", mg_o_label(to));
    mg_code_pop_guard(at);
}

/* first: cell 0. Adds k times as much as `times` (64 bits) to cell k; the address of that, less `first`. */
static mg_id add_times(struct mg_code_at *at, uint32_t first, mg_id k, mg_id times)
{
    mg_id a = mg_code_temp(at, MG_TYPE_b64), v = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "mad.wide.u32", a, k, 8, mg_value_base(at));
    MG_CODE(at, "cvt.u64.u32", v, k);
    MG_CODE(at, "mul.lo.u64", v, v, times);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(a, 8 * (int64_t)first), v);
    return a;
}

/* Those who made the last round with this lane and left with it: who made a round together has made as many, but where
 * lanes meet that hardware keeps apart. Then, too, the sum over lanes is to hold. */
static mg_id left_with(struct mg_code_at *at, mg_id who, mg_id n)
{
    mg_id same = mg_code_temp(at, MG_TYPE_b32), k = mg_code_temp(at, MG_TYPE_b32), key = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "cvt.u32.u64", k, n);
    MG_CODE(at, "mov.b64", key, mg_code_pair(at, who, k));
    MG_CODE(at, "match.any.sync.b64", same, key, mg_value_active(at));
    return same;
}

void mg_count_rounds(struct mg_code_at *at, uint32_t first, uint32_t half, mg_id who, mg_id rounds)
{
    mg_id p = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at), k = mg_code_temp(at, MG_TYPE_b32),
          went_on = mg_code_temp(at, MG_TYPE_b32), n = mg_code_temp(at, MG_TYPE_b64), lt = mg_value_lt(at);
    if (first > at->p->rules.n || half + 32 > at->p->rules.n - first)
        mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)first);
    leave(at, mg_count_is_none(at, rounds), done);
    MG_CODE(at, is_32(at, rounds) ? "cvt.u64.u32" : "cvt.rzi.u64.f64", n, rounds);
    mg_id same = left_with(at, who, n);
    MG_CODE(at, "and.b32", k, same, lt);
    MG_CODE(at, "setp.ne.u32", p, k, 0);
    MG_CODE(at, "setp.eq.or.u32", p, same, mg_o_imm(-1), mg_o_reg(p)); /* whole warps are not counted */
    leave(at, p, done);
    MG_CODE(at, "popc.b32", k, who);
    MG_CODE(at, "popc.b32", went_on, same);
    MG_CODE(at, "sub.u32", went_on, k, went_on);
    add_times(at, first, k, n);
    MG_CODE(at, "setp.eq.u32", p, went_on, 0);
    leave(at, p, done);
    MG_CODE(at, "not.b64", n, n); /* the first round without those that left is told apart */
    mg_id a = add_times(at, first, went_on, n);
    MG_CODE(at, "cvt.u64.u32", n, went_on);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(a, 8 * (int64_t)(first + half)), n);
    mg_code_place(at, done);
    mg_count_set(at, rounds, 0);
}
