/* See tool/lanes/run.h. Both ways of a branch are counted in front of it, where the lanes that come to it stand
 * together and one vote tells of both.
 *
 *   ranked   in loops, where the lanes that come are those of a mask that stays (plan.h): the k-th of them keeps, in a
 *            register, how often k went to the side that tells. Vote, count, compare, add: nobody branches, so that the
 *            assembler may turn the branch itself into predicates, as natively
 *   now      elsewhere: unless all of a whole warp go one way, the lowest lane of a side adds to memory */
#include "tool/lanes/run.h"

enum { bins = MG_LANES_BINS };

struct ways {
    struct mg_code_at *at;
    mg_id goes; /* where not negated: to s */
    bool negated, both;
    uint32_t s, o; /* dense ids: the block that tells of the branch; the other, where `both` counted as well */
};

static struct ways ways_of(struct mg_lanes_run *r, uint32_t id)
{
    const struct mg_site_block *b = &r->s->blocks[id];
    mg_id node = mg_patch_cfg(r->p, b->func_ix)->blocks[b->block_ix].last;
    struct ways w = {.at = mg_at_before(r->p, node),
                     .s = r->s->first_block[b->func_ix] + mg_lanes_plan_of(r, id)->told_by};
    w.o = b->succs[0] == w.s ? b->succs[1] : b->succs[0];
    w.both = mg_lanes_plan_of(r, w.o)->at_branch;
    w.goes = mg_node_guard(mg_patch_module(r->p), node, &w.negated);
    if (b->succs[0] == w.s) w.negated = !w.negated;
    return w;
}

static mg_id count_lanes(struct mg_code_at *at, mg_id mask)
{
    mg_id n = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "popc.b32", n, mask);
    return n;
}

static mg_id who_goes(const struct ways *w, mg_id all)
{
    mg_id took = mg_code_temp(w->at, MG_TYPE_b32);
    MG_CODE(w->at, "vote.sync.ballot.b32", took, w->negated ? mg_o_not(w->goes) : mg_o_reg(w->goes), all);
    return took;
}

/* The register that other blocks compare their lanes with; 0: none do, or lanes are asked for there in any case. */
static mg_id mask_of(const struct mg_lanes_run *r, uint32_t id)
{
    return mg_lanes_plan_of(r, id)->steady ? 0 : r->masks[id];
}

/* The lanes of this one's side, kept where other blocks compare theirs with them. */
static mg_id side_of(struct mg_lanes_run *r, const struct ways *w, mg_id all, mg_id took)
{
    struct mg_code_at *at = w->at;
    mg_id t = mg_code_temp(at, MG_TYPE_b32), side = mg_code_temp(at, MG_TYPE_b32);
    if (w->both) {
        MG_CODE(at, "xor.b32", t, took, all);
        if (w->negated)
            MG_CODE(at, "selp.b32", side, t, took, w->goes);
        else
            MG_CODE(at, "selp.b32", side, took, t, w->goes);
    } else {
        MG_CODE(at, "mov.b32", side, took);
    }
    MG_CODE(at, "or.b32", side, side, mg_value_bit(at));
    for (int i = 0; i < 1 + w->both; i++) {
        mg_code_push_guard(at, w->goes, i ? !w->negated : w->negated);
        mg_lanes_keep(at, mask_of(r, i ? w->o : w->s), mg_o_reg(side));
        mg_code_pop_guard(at);
    }
    return side;
}

static void count_now(struct mg_lanes_run *r, const struct ways *w)
{
    struct mg_code_at *at = w->at;
    mg_id all = mg_value_active(at), took = who_goes(w, all), side = side_of(r, w, all, took),
          t = mg_code_temp(at, MG_TYPE_b32), p = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    MG_CODE(at, "add.u32", t, took, 1);
    MG_CODE(at, "setp.le.u32", p, t, 1); /* none or a whole warp */
    if (w->both) MG_CODE(at, "setp.eq.and.u32", p, all, mg_o_imm(-1), mg_o_reg(p));
    mg_lanes_jump(at, p, false, done);
    uint32_t base = w->both ? MG_MIN(r->cells[w->s], r->cells[w->o]) : r->cells[w->s];
    mg_id k = count_lanes(at, side), off = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "setp.ne.u32", p, took, all);
    if (w->both) MG_CODE(at, "setp.ne.and.u32", p, took, 0, mg_o_reg(p));
    MG_CODE(at, "selp.b32", off, mg_o_imm((int64_t)(r->cells[w->s] - base) + bins), mg_o_imm(r->cells[w->s] - base), p);
    if (w->both && w->negated)
        MG_CODE(at, "selp.b32", off, mg_o_imm(r->cells[w->o] - base), off, w->goes);
    else if (w->both)
        MG_CODE(at, "selp.b32", off, off, mg_o_imm(r->cells[w->o] - base), w->goes);
    MG_CODE(at, "add.u32", k, k, off);
    if (!w->both) mg_code_push_guard(at, w->goes, w->negated);
    mg_count_lanes(at, base, 2 * bins, k, side, false);
    if (!w->both) mg_code_pop_guard(at);
    mg_code_place(at, done);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static uint32_t ranks_of(const struct mg_lanes_run *r, uint32_t id)
{
    return r->s->first_block[r->s->blocks[id].func_ix] + mg_lanes_plan_of(r, id)->ranks;
}

static void add_one(struct mg_code_at *at, const struct mg_lanes_went *w)
{
    if (w->packed)
        MG_CODE(at, "add.u32", w->reg, w->reg, mg_o_imm((int64_t)1 << w->shift));
    else
        mg_count_add(at, w->reg);
}

/* Of n lanes k went to the side that tells, so often; the other one's cells hold what is to be added to the block's. */
static void add_went(struct mg_lanes_run *r, struct mg_code_at *at, const struct ways *w, mg_id n, mg_id k, mg_id times)
{
    mg_id split = mg_code_temp(at, MG_TYPE_pred), ix = mg_code_temp(at, MG_TYPE_b32),
          less = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "setp.lt.u32", split, k, n);
    MG_CODE(at, "selp.b32", ix, mg_o_imm(bins), 0, split);
    MG_CODE(at, "add.u32", ix, ix, k);
    mg_cell_update_at(at, r->cells[w->s], 2 * bins, ix, mg_o_reg(mg_count_times(at, times, k)), MG_ALONE);
    if (!w->both) return;
    MG_CODE(at, "sub.u32", ix, n, k);
    mg_cell_update_at(at, r->cells[w->o], bins, ix, mg_o_reg(mg_count_times(at, times, ix)), MG_ALONE);
    MG_CODE(at, "neg.s64", less, mg_count_times(at, times, n));
    mg_cell_update_at(at, r->cells[w->o], bins, n, mg_o_reg(less), MG_ALONE);
}

/* How many lanes of the mask are up to this one. */
static mg_id rank_in(struct mg_code_at *at, mg_id mask)
{
    mg_id rank = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "and.b32", rank, mask, mg_value_lt(at));
    MG_CODE(at, "popc.b32", rank, rank);
    MG_CODE(at, "add.u32", rank, rank, 1);
    return rank;
}

/* Other lanes come to the branch than have ranks: what they do is told at once. The lanes here. */
static mg_id count_others(struct mg_lanes_run *r, uint32_t id, const struct ways *w, mg_id all, mg_id took)
{
    struct mg_code_at *at = w->at;
    mg_id zero = mg_code_temp(at, MG_TYPE_b32), k = count_lanes(at, took), own = mg_value_own_of(at, all);
    MG_CODE(at, "xor.b32", zero, own, all); /* so that ptxas does not take k for one number of all lanes */
    MG_CODE(at, "or.b32", k, k, zero);
    mg_id here = mg_lanes_difference(r, at, r->cells[id], r->ranks[ranks_of(r, id)].who), rank = rank_in(at, here),
          other = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at), one = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "setp.ne.u32", other, rank, k);
    mg_code_push_guard(at, other, false);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    MG_CODE(at, "mov.u32", one, 1);
    add_went(r, at, w, count_lanes(at, here), rank, one);
    mg_code_place(at, done);
    return here;
}

static void count_ranked(struct mg_lanes_run *r, uint32_t id, const struct ways *w)
{
    struct mg_code_at *at = w->at;
    const struct mg_lanes_block *x = mg_lanes_plan_of(r, id);
    const struct mg_lanes_ranks *ranks = &r->ranks[ranks_of(r, id)];
    bool keeps = mask_of(r, w->s) || (w->both && mask_of(r, w->o)), elsewhere = x->as != MG_NO_BLOCK;
    if (elsewhere && !keeps) return;
    mg_id all = mg_value_active(at), took = who_goes(w, all), mine = mg_code_temp(at, MG_TYPE_pred),
          same = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    if (keeps) side_of(r, w, all, took);
    if (elsewhere) return;
    MG_CODE(at, "setp.eq.u32", mine, count_lanes(at, took), ranks->rank);
    if (x->checked) {
        MG_CODE(at, "setp.eq.u32", same, all, ranks->who);
        MG_CODE(at, "vote.sync.all.pred", same, same, all);
        MG_CODE(at, "and.pred", mine, mine, same);
    }
    mg_code_push_guard(at, mine, false);
    add_one(at, &r->went[id]);
    mg_code_pop_guard(at);
    if (!x->checked) return;
    mg_lanes_keep(at, r->masks[id], mg_o_reg(ranks->who));
    mg_lanes_jump(at, same, false, done);
    mg_lanes_keep(at, r->masks[id], mg_o_reg(count_others(r, id, w, all, took)));
    mg_code_place(at, done);
}

/* What this lane has counted. */
static void add_ranked(struct mg_lanes_run *r, struct mg_code_at *at, uint32_t id)
{
    const struct ways w = ways_of(r, id);
    const struct mg_lanes_ranks *ranks = &r->ranks[ranks_of(r, id)];
    const struct mg_lanes_went *went = &r->went[id];
    mg_id done = mg_code_label(at), times = went->packed ? mg_code_temp(at, MG_TYPE_b32) : went->reg;
    if (went->packed) {
        MG_CODE(at, "shr.u32", times, went->reg, mg_o_imm(went->shift));
        MG_CODE(at, "and.b32", times, times, 255);
    }
    mg_code_push_guard(at, mg_count_is_none(at, times), false);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    add_went(r, at, &w, count_lanes(at, ranks->who), ranks->rank, times);
    mg_code_place(at, done);
}

void mg_lanes_ranks_add(struct mg_lanes_run *r, struct mg_code_at *at, uint32_t id)
{
    for (uint32_t b = 0; b < r->s->n_blocks; b++)
        if (r->went[b].reg && ranks_of(r, b) == id) add_ranked(r, at, b);
    for (uint32_t b = 0; b < r->s->n_blocks; b++)
        if (r->went[b].reg && ranks_of(r, b) == id && mg_lanes_plan_of(r, b)->as == MG_NO_BLOCK && !r->went[b].shift)
            mg_count_set(at, r->went[b].reg, 0);
}

void mg_lanes_ranks_set(struct mg_lanes_run *r, struct mg_code_at *at, uint32_t id, mg_id who)
{
    const struct mg_lanes_ranks *k = &r->ranks[id];
    MG_CODE(at, "mov.b32", k->who, who);
    MG_CODE(at, "mov.b32", k->rank, rank_in(at, who));
}

struct leaving {
    struct mg_lanes_run *r;
    uint32_t id;
};
static void leave(struct mg_code_at *at, void *user)
{
    const struct leaving *l = user;
    if (!mg_code_func(at)) mg_lanes_ranks_add(l->r, at, l->id);
}

/* Where a cohort begins its lanes have their ranks. */
static void begin_cohort(struct mg_lanes_run *r, uint32_t id)
{
    const struct mg_lanes_block *x = mg_lanes_plan_of(r, id);
    if (!r->ranks[id].who || x->steady) return;
    struct mg_code_at *at = x->behind ? mg_at_after(r->p, x->behind) : mg_at_block(r->p, id);
    if (!id) at = mg_at_entry(r->p, 0);
    mg_lanes_ranks_set(r, at, id, id ? mg_value_own(at) : mg_lanes_at_entry(r));
    struct leaving l = {r, id};
    mg_at_exits(r->p, 0, leave, &l);
}

/* A register for the counts of the branch, or a part of one. */
static struct mg_lanes_went begin_branch(struct mg_lanes_run *r, uint32_t id, struct mg_lanes_went *last)
{
    struct mg_code_at *at = mg_at_block(r->p, id);
    const struct mg_lanes_block *x = mg_lanes_plan_of(r, id);
    if (x->as != MG_NO_BLOCK) return r->went[r->s->first_block[r->s->blocks[id].func_ix] + x->as];
    if (!mg_lanes_plan_of(r, ranks_of(r, id))->steady) return (struct mg_lanes_went){.reg = mg_count_new(at)};
    if (last->reg && last->shift < 8 * (MG_LANES_FIELDS - 1)) {
        last->shift += 8;
    } else {
        *last = (struct mg_lanes_went){.reg = mg_code_reg(at, MG_TYPE_b32), .packed = true};
        MG_CODE(mg_at_entry(r->p, mg_code_func(at)), "mov.u32", last->reg, 0);
    }
    return *last;
}

void mg_lanes_ranks_begin(struct mg_lanes_run *r)
{
    struct mg_lanes_went *last = mg_arena_array(mg_patch_scratch(r->p), struct mg_lanes_went, r->s->n_blocks + 1);
    for (uint32_t id = 0; id < r->s->n_blocks; id++) {
        if (!mg_lanes_plan_of(r, id)->ranked) continue;
        uint32_t of = ranks_of(r, id);
        struct mg_code_at *at = mg_at_block(r->p, id);
        struct mg_lanes_ranks *k = &r->ranks[of];
        r->went[id] = begin_branch(r, id, &last[of]);
        if (k->who) continue;
        mg_id kept = mg_lanes_plan_of(r, of)->steady ? r->masks[of] : 0; /* the same */
        k->who = kept ? kept : mg_code_reg(at, MG_TYPE_b32);
        k->rank = mg_code_reg(at, MG_TYPE_b32);
        for (int i = 0; i < 2; i++) MG_CODE(mg_at_entry(r->p, mg_code_func(at)), "mov.u32", i ? k->who : k->rank, 0);
    }
    for (uint32_t id = 0; id < r->s->n_blocks; id++) begin_cohort(r, id);
}

void mg_lanes_count_sides(struct mg_lanes_run *r, uint32_t id)
{
    const struct ways w = ways_of(r, id);
    if (r->went[id].reg)
        count_ranked(r, id, &w);
    else
        count_now(r, &w);
}
