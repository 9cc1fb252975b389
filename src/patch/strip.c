/* What is known of a whole warp: strips and tallies. Near the threads where that is wanted and can be
 * (patch/shared.c);
 * else threads keep it in registers until they leave, each for itself, whoever else is there then.
 *
 *   strip    up to 32 cells side by side, one in each lane. Adding costs two instructions
 *   tally  how often each of up to 32 numbers was told, of which all lanes here know the same one
 *
 * Where code runs once, or where another function may end the thread, they go to memory at once. */
#include "patch/priv.h"

enum {
    MOST_REGISTERS =
        12 /* of 32 bits, of one function: with 40, kernels with barriers in short loops took twice as long */
};

uint32_t mg_patch_strip(struct mg_patch *p, uint32_t first, uint32_t n)
{
    if (n > 32 || first > p->rules.n || n > p->rules.n - first)
        mg_patch_refuse(p, MG_ERR_STATE, "a strip of cells that were not reserved");
    *mg_vec_push(&p->strips) = (struct mg_patch_strip){
        .first = first, .n = n, .regs = mg_arena_array(&p->scratch, mg_id, p->all->sites->n_funcs)};
    return (uint32_t)p->strips.n - 1;
}

void mg_strip_ones(struct mg_patch *p, uint32_t ix)
{
    p->strips.at[ix].ones = true;
}

bool mg_patch_ends_elsewhere(struct mg_patch *p, uint32_t func_ix)
{
    const struct mg_cfg *c = mg_patch_cfg(p, func_ix);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (mg_patch_may_leave(p, func_ix, b)) return true;
        if (func_ix && mg_node_form(p->all->m, &p->all->m->nodes.at[c->blocks[b].last])->op == MG_OP_exit) return true;
    }
    return false;
}

/* Adds a lane's part to its cell in memory, where it is not 0. */
static void add_now(struct mg_code_at *at, uint32_t first, mg_id v)
{
    mg_id some = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "setp.ne.u64", some, v, 0);
    mg_code_push_guard(at, some, false);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(mg_value_strip(at), 8 * (int64_t)first), v);
    mg_code_pop_guard(at);
}

static bool is_narrow(const struct mg_code_at *at, mg_id r)
{
    return mg_type_bits((enum mg_type)mg_at_module(at)->regs.at[r].type) == 32;
}

static void flush(struct mg_code_at *at, void *user)
{
    const struct mg_patch_strip *strip = user;
    mg_id r = strip->regs[at->func_ix], wide = r;
    if (!r) return;
    if (is_narrow(at, r)) {
        wide = mg_code_temp(at, MG_TYPE_b64);
        MG_PURE(at, "cvt.u64.u32", wide, r);
    }
    add_now(at, strip->first, wide);
}

static bool may_keep(struct mg_code_at *at, uint32_t registers)
{
    struct mg_patch_own *own = &at->p->own[at->func_ix];
    if (own->n_strip_regs + registers > MG_MAX(mg_patch_room(at->p) / 4, (uint32_t)MOST_REGISTERS) ||
        !mg_at_repeats(at) || mg_patch_ends_elsewhere(at->p, at->func_ix))
        return false;
    own->n_strip_regs += registers;
    return true;
}

/* Does what adds 1 at most fit 32 bits? */
static bool fits_32(const struct mg_code_at *at)
{
    return mg_sum_most(at, mg_o_imm(1)) < (uint64_t)1 << 32;
}

static mg_id register_of(struct mg_code_at *at, struct mg_patch_strip *strip)
{
    struct mg_patch *p = at->p;
    mg_id *r = &strip->regs[at->func_ix];
    bool narrow = strip->ones && fits_32(at);
    if (*r || !may_keep(at, narrow ? 1 : 2)) return *r;
    *r = mg_code_reg(at, narrow ? MG_TYPE_b32 : MG_TYPE_b64);
    MG_PURE(mg_at_entry(p, at->func_ix), narrow ? "mov.u32" : "mov.u64", *r, 0);
    mg_at_exits(p, at->func_ix, flush,
                mg_arena_copy(&p->scratch, strip, sizeof *strip)); /* strips move, their registers do not */
    return *r;
}

void mg_strip_add(struct mg_code_at *at, uint32_t ix, mg_id v)
{
    struct mg_patch_strip *strip = &at->p->strips.at[ix];
    if (mg_near_strip(at, strip->first, strip->n, v)) return;
    mg_id wide = mg_code_temp(at, MG_TYPE_b64), r = register_of(at, strip);
    if (r && is_narrow(at, r)) {
        MG_CODE(at, "add.u32", r, r, v);
        return;
    }
    MG_PURE(at, "cvt.u64.u32", wide, v);
    if (r)
        MG_CODE(at, "add.u64", r, r, wide);
    else
        add_now(at, strip->first, wide);
}

void mg_strip_mark(struct mg_code_at *at, uint32_t ix, mg_id p)
{
    struct mg_patch_strip *strip = &at->p->strips.at[ix];
    mg_id one = mg_code_temp(at, MG_TYPE_b32);
    if (mg_near_is(at) || register_of(at, strip)) {
        MG_PURE(at, "selp.u32", one, 1, 0, p);
        mg_strip_add(at, ix, one);
        return;
    }
    mg_code_push_guard(at, p, false);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(mg_value_strip(at), 8 * (int64_t)strip->first), 1);
    mg_code_pop_guard(at);
}

struct kept {
    uint32_t func_ix, first;
    mg_id v, times;
};

static void flush_kept(struct mg_code_at *at, void *user)
{
    const struct kept *k = user;
    if (at->func_ix != k->func_ix) return;
    mg_id v = mg_code_temp(at, MG_TYPE_b32), sum = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "and.b32", v, k->v, 255);
    if (is_narrow(at, k->times)) {
        MG_PURE(at, "mul.wide.u32", sum, v, k->times);
    } else {
        MG_PURE(at, "cvt.u64.u32", sum, v);
        MG_PURE(at, "mul.lo.u64", sum, sum, k->times);
    }
    add_now(at, k->first, sum);
}

bool mg_strip_add_kept(struct mg_code_at *at, uint32_t ix, mg_id v)
{
    struct mg_patch *p = at->p;
    bool is32 = fits_32(at);
    if (!may_keep(at, is32 ? 1 : 2)) return false;
    const struct kept k = {.func_ix = at->func_ix,
                           .first = p->strips.at[ix].first,
                           .v = v,
                           .times = mg_code_reg(at, is32 ? MG_TYPE_b32 : MG_TYPE_b64)};
    MG_PURE(mg_at_entry(p, at->func_ix), is32 ? "mov.u32" : "mov.u64", k.times, 0);
    mg_at_exits(p, at->func_ix, flush_kept, mg_arena_copy(&p->scratch, &k, sizeof k));
    MG_CODE(at, is32 ? "add.u32" : "add.u64", k.times, k.times, 1);
    return true;
}

bool mg_strip_goes_anywhere(struct mg_code_at *at)
{
    return mg_near_is(at);
}

void mg_strip_add_at(struct mg_code_at *at, uint32_t ix, mg_id k, mg_id v)
{
    const struct mg_patch_strip *strip = &at->p->strips.at[ix];
    if (mg_near_strip_at(at, strip->first, strip->n, k, v)) return;
    mg_id some = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "setp.ne.u32", some, v, 0);
    mg_code_push_guard(at, some, false);
    mg_cell_update_at(at, strip->first, strip->n, k, mg_o_reg(v), MG_EACH);
    mg_code_pop_guard(at);
}

/* v, which ptxas must not take for equal in all lanes that run together: it adds once then for several that each add
 * their own. */
static struct mg_opnd hidden(struct mg_code_at *at, struct mg_opnd v)
{
    if (v.kind != MG_OPND_reg || mg_type_bits((enum mg_type)mg_at_module(at)->regs.at[v.id].type) != 32) return v;
    mg_id r = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "xor.b32", r, mg_value_own(at), mg_value_active(at)); /* 0 */
    MG_PURE(at, "or.b32", r, r, v);
    return mg_o_reg(r);
}

void mg_strip_put(struct mg_code_at *at, uint32_t ix, uint32_t k, struct mg_opnd v, mg_id one)
{
    const struct mg_patch_strip *strip = &at->p->strips.at[ix];
    if (k >= strip->n)
        mg_patch_refuse(at->p, MG_ERR_STATE, "a strip of %u cells has no cell %u", (unsigned)strip->n, (unsigned)k);
    else if (mg_near_cell(at, strip->first + k, v = hidden(at, v), one))
        return;
    mg_code_push_guard(at, one, false);
    mg_cell_update(at, strip->first + k, v, MG_ALONE);
    mg_code_pop_guard(at);
}

/* ---- in functions of ours ---------------------------------------------------------------------------------------- */

mg_id mg_strip_place(struct mg_code_at *at, uint32_t ix)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "add.u64", r, mg_value_strip(at), mg_o_imm(8 * (int64_t)at->p->strips.at[ix].first));
    return r;
}

static void add_far(struct mg_code_at *at, mg_id place, struct mg_opnd v, mg_id some)
{
    mg_id wide = mg_code_temp(at, MG_TYPE_b64);
    if (v.kind == MG_OPND_reg)
        MG_PURE(at, "cvt.u64.u32", wide, v);
    else
        MG_PURE(at, "mov.u64", wide, v);
    MG_GUARDED(at, some, "red.global.add.u64", mg_o_addr_reg(place, 0), wide);
}

void mg_place_add(struct mg_code_at *at, mg_id place, mg_id v)
{
    mg_id some = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "setp.ne.u32", some, v, 0);
    add_far(at, place, mg_o_reg(v), some);
}

void mg_place_put_each(struct mg_code_at *at, mg_id place, struct mg_opnd k, struct mg_opnd v, mg_id some)
{
    mg_id apart = mg_code_temp(at, MG_TYPE_b32), to = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "sub.u32", apart, k, mg_value_lane(at));
    MG_PURE(at, "mad.wide.s32", to, apart, 8, place);
    add_far(at, to, v, some);
}

void mg_place_put(struct mg_code_at *at, mg_id place, struct mg_opnd k, struct mg_opnd v, mg_id one)
{
    mg_place_put_each(at, place, k, hidden(at, v), one);
}

/* ---- tallies --------------------------------------------------------------------------------------------------- */

/* Number k of up to 32 is kept by lane k where that is here, else by lane 31 - k. Lanes that are all there up to some
 * one (a bound that is not a multiple of 32) always have the first, those from some one on the second. */
struct tally {
    uint32_t func_ix, first;
    mg_id up, down;
};

static void end_tally(struct mg_code_at *at, void *user)
{
    const struct tally *y = user;
    if (at->func_ix != y->func_ix) return;
    mg_id a = mg_code_temp(at, MG_TYPE_b64), some = mg_code_temp(at, MG_TYPE_pred), base = mg_value_base(at);
    add_now(at, y->first, y->up);
    MG_PURE(at, "sub.u64", a, base, mg_value_strip(at));
    MG_PURE(at, "add.u64", a, a, base);
    MG_PURE(at, "setp.ne.u64", some, y->down, 0);
    mg_code_push_guard(at, some, false);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(a, 8 * ((int64_t)y->first + 31)), y->down);
    mg_code_pop_guard(at);
}

/* Adds 1 where this lane is the one; jumps to `done` when that one is here. */
static void keep(struct mg_code_at *at, mg_id kept, mg_id by, mg_id here, mg_id done)
{
    mg_id mine = mg_code_temp(at, MG_TYPE_pred), bit = mg_code_temp(at, MG_TYPE_b32),
          is_here = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "shr.u32", bit, here, by);
    MG_PURE(at, "and.b32", bit, bit, 1);
    MG_PURE(at, "setp.ne.u32", is_here, bit, 0);
    MG_PURE(at, "setp.eq.and.u32", mine, by, mg_value_lane(at), is_here);
    MG_GUARDED(at, mine, "add.u64", kept, kept, 1);
    MG_GUARDED(at, is_here, "bra.uni", mg_o_label(done));
}

void mg_tally_add(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k)
{
    struct mg_patch *p = at->p;
    if (n > 32 || first > p->rules.n || n > p->rules.n - first)
        mg_patch_refuse(p, MG_ERR_STATE, "a tally of cells that were not reserved");
    if (mg_near_tally(at, first, n, k)) return;
    if (!may_keep(at, 4)) {
        mg_cell_update_at(at, first, n, k, mg_o_imm(1), MG_ONCE);
        return;
    }
    struct mg_code_at *entry = mg_at_entry(p, at->func_ix);
    struct tally y = {.func_ix = at->func_ix,
                      .first = first,
                      .up = mg_code_reg(at, MG_TYPE_b64),
                      .down = mg_code_reg(at, MG_TYPE_b64)};
    mg_id here = mg_value_own(at), by = mg_code_temp(at, MG_TYPE_b32), done = mg_code_label(at);
    MG_PURE(entry, "mov.u64", y.up, 0);
    MG_PURE(entry, "mov.u64", y.down, 0);
    mg_at_exits(p, at->func_ix, end_tally, mg_arena_copy(&p->scratch, &y, sizeof y));
    keep(at, y.up, k, here, done);
    MG_PURE(at, "sub.u32", by, 31, k);
    keep(at, y.down, by, here, done);
    mg_cell_update_at(at, first, n, k, mg_o_imm(1), MG_ONCE);
    mg_code_place(at, done);
}
