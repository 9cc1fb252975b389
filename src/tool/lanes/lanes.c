/* lanes: how many lanes of a warp are active where (channel utilisation), and which branches split warps.
 *
 *   block    lanes of its entries by active lanes, those of partial warps only (lanes.h); which blocks have to
 *            look: tool/lanes/plan.h
 *   branch   taken       threads that took it, where thread entries do not tell: a register of each thread
 *            divergent   warp executions in which some active lanes took it and some did not, where no block tells
 *
 *   guard    with guards=on, lanes of executions by how many had a true guard: the first instruction of a block
 *            under
 *            each guard, branches left out
 *
 * From cells to figures: tool/lanes/report.c. */
#include <stdlib.h>
#include <string.h>

#include "tool/lanes/lanes.h"
#include "tool/lanes/plan.h"
#include "tool/tool.h"

enum {
    bins = MG_LANES_BINS,
    MANY = 40 /* blocks where lanes may change: more, and code for when they do is called, for the assembler's sake */
};

static const struct mg_tool_opt lanes_opts[] = {
    {"branches", "on", "the branch table (on|off)"},
    {"guards", "off", "lanes whose guard is true, too, as a distribution (on|off)"},
    {"sample", "1",
     "count one of so many launches of a kernel, drawn at random, and estimate the others, with a bound"},
    {0},
};
static const struct mg_field lanes_fields[] = {
    {"branches", MG_FIELD_FLAG, offsetof(struct mg_lanes_opts, branches), 0, 0, NULL},
    {"guards", MG_FIELD_FLAG, offsetof(struct mg_lanes_opts, guards), 0, 0, NULL},
    {"sample", MG_FIELD_NUMBER, offsetof(struct mg_lanes_opts, sample), 1, 1 << 20, NULL},
    {0},
};

static enum mg_err lanes_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct mg_lanes_opts defaults = {.branches = true, .sample = 1};
    return mg_fields_parse("lanes", lanes_fields, &defaults, sizeof defaults, args, conf, d);
}

static uint32_t lanes_one_of(const void *conf)
{
    return (uint32_t)((const struct mg_lanes_opts *)conf)->sample;
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

struct run { /* of one kernel */
    struct mg_patch *p;
    const struct mg_sites *s;
    uint32_t *preds;
    struct mg_lanes_plan **plans; /* by func_ix */
    mg_id *masks;  /* by dense id: register with the lanes that entered the block last; 0: none needs it */
    mg_id *rounds; /* by dense id, of loops that count runs: how often these lanes did so in a row, less what is counted
                      (a double); 0: none */
    uint32_t *cells; /* by dense id, of blocks that a branch in front of them counts */
    bool calls;      /* functions for when lanes have changed: */
    struct mg_code_at *difference, *runs;
    mg_id here, partial; /* at the kernel's entry: its lanes; predicate: its warp had not all. 0: not asked */
    mg_id ragged;        /* predicate: CTAs have a warp that is not full. 0: not asked */
};

static struct mg_opnd real(double v)
{
    struct mg_opnd o = {.kind = MG_OPND_f64};
    memcpy(&o.val, &v, sizeof v);
    return o;
}

static void jump(struct mg_code_at *at, mg_id p, bool negated, mg_id to)
{
    mg_code_push_guard(at, p, negated);
    MG_CODE(at, "bra.uni", mg_o_label(to));
    mg_code_pop_guard(at);
}

static mg_id is_partial(struct mg_code_at *at, mg_id mask)
{
    mg_id p = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "setp.ne.u32", p, mask, mg_o_imm(0xffffffff));
    return p;
}

static mg_id lanes_at_entry(struct run *r)
{
    struct mg_code_at *entry = mg_at_entry(r->p, 0);
    if (r->here) return r->here;
    r->here = mg_code_reg(entry, MG_TYPE_b32);
    MG_CODE(entry, "mov.b32", r->here, mg_value_own(entry));
    return r->here;
}

/* Are the warps of the kernel's entry whole? Asked once. */
static mg_id is_partial_at_entry(struct run *r)
{
    struct mg_code_at *entry = mg_at_entry(r->p, 0);
    if (r->partial) return r->partial;
    r->partial = mg_code_reg(entry, MG_TYPE_pred);
    MG_CODE(entry, "mov.pred", r->partial, is_partial(entry, lanes_at_entry(r)));
    return r->partial;
}

/* What ptxas sees to be equal in all lanes, so that it makes nothing to bring them together behind a jump by it. */
static mg_id is_ragged(struct run *r)
{
    struct mg_code_at *entry = mg_at_entry(r->p, 0);
    if (r->ragged) return r->ragged;
    mg_id n = mg_code_temp(entry, MG_TYPE_b32), m = mg_code_temp(entry, MG_TYPE_b32);
    r->ragged = mg_code_reg(entry, MG_TYPE_pred);
    MG_CODE(entry, "mov.u32", n, mg_o_sreg(MG_SREG_ntid, 1));
    for (uint8_t axis = 2; axis <= 3; axis++) {
        MG_CODE(entry, "mov.u32", m, mg_o_sreg(MG_SREG_ntid, axis));
        MG_CODE(entry, "mul.lo.u32", n, n, m);
    }
    MG_CODE(entry, "and.b32", n, n, 31);
    MG_CODE(entry, "setp.ne.u32", r->ragged, n, 0);
    return r->ragged;
}

/* of: a block, MG_NO_BLOCK: the kernel's entry. */
static mg_id mask_of(struct run *r, uint32_t func_ix, uint32_t of)
{
    return of == MG_NO_BLOCK ? lanes_at_entry(r) : r->masks[r->s->first_block[func_ix] + of];
}

static const struct mg_lanes_block *plan_of(const struct run *r, uint32_t func_ix, uint32_t block)
{
    return &r->plans[func_ix]->blocks[block];
}

static uint32_t leader_of(const struct run *r, uint32_t func_ix, uint32_t of)
{
    return plan_of(r, func_ix, of)->ask == MG_LANES_ENTRY ? MG_NO_BLOCK : of;
}

/* Registers for the lanes of blocks with which others are compared. */
static void keep_mask(struct run *r, uint32_t func_ix, uint32_t of)
{
    if (of == MG_NO_BLOCK) return;
    uint32_t id = r->s->first_block[func_ix] + of;
    if (!r->masks[id]) r->masks[id] = mg_code_reg(mg_at_block(r->p, id), MG_TYPE_b32);
}

static void keep_masks(struct run *r, uint32_t func_ix)
{
    const struct mg_lanes_plan *l = r->plans[func_ix];
    for (uint32_t b = 0; b < l->n_blocks; b++) {
        const struct mg_lanes_block *x = &l->blocks[b];
        if (x->ask == MG_LANES_FOLLOWS) keep_mask(r, func_ix, leader_of(r, func_ix, x->of));
        if (x->tells != MG_NO_BLOCK) keep_mask(r, func_ix, l->blocks[x->tells].mask);
    }
}

static mg_id n_lanes(struct mg_code_at *at, mg_id mask)
{
    mg_id n = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "popc.b32", n, mask);
    return n;
}

/* For later, in a register of the block's own (0: nobody asks). What activemask told must not be kept, nor counted by:
 * what is made of it ptxas takes for equal in all lanes that run together, also where groups have met since, and then
 * adds up one lane's for all. */
static void keep(struct mg_code_at *at, mg_id own, struct mg_opnd lanes)
{
    if (own) MG_CODE(at, "mov.b32", own, lanes);
}

/* A partial warp that is what it was a round before is counted in a register, with the others like it. Where lanes
 * have changed, and where they leave the loop, the lowest of those that there were adds them. Goes on for lanes that
 * have changed: where it is so for some of those here, the lowest of them counts in one way or the other. */
static void count_repeats(struct run *r, uint32_t id, struct mg_code_at *at, uint32_t cell, mg_id here, mg_id before,
                          mg_id done)
{
    struct mg_patch *p = r->p;
    const struct mg_site_block *b = &r->s->blocks[id];
    const struct mg_loops *l = mg_patch_loops(p, b->func_ix);
    uint32_t first = r->s->first_block[b->func_ix], loop = l->loop_of[b->block_ix];
    mg_id who = mg_code_reg(at, MG_TYPE_b32), rounds = mg_code_reg(at, MG_TYPE_b64),
          same = mg_code_temp(at, MG_TYPE_pred), changed = mg_code_label(at);
    MG_CODE(mg_at_entry(p, b->func_ix), "mov.b32", who, 0);
    MG_CODE(mg_at_entry(p, b->func_ix), "mov.f64", rounds, real(0));
    MG_CODE(at, "setp.eq.u32", same, here, who);
    MG_CODE(at, "setp.eq.and.u32", same, here, before, mg_o_reg(same));
    mg_code_push_guard(at, same, true);
    MG_CODE(at, "bra", mg_o_label(changed));
    mg_code_pop_guard(at);
    MG_CODE(at, "add.f64", rounds, rounds, real(1));
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_place(at, changed);
    mg_count_run(at, cell, who, rounds);
    MG_CODE(at, "mov.b32", who, here);
    MG_CODE(at, "mov.f64", rounds, real(0));
    for (uint32_t x = 0; x < r->plans[b->func_ix]->n_blocks; x++)
        for (uint32_t i = 0; i < r->s->blocks[first + x].n_succs && mg_loops_contains(l, loop, x); i++) {
            if (mg_loops_contains(l, loop, r->s->blocks[first + x].succs[i] - first)) continue;
            struct mg_code_at *out = mg_at_edge(p, first + x, i);
            mg_count_run(out, cell, who, rounds);
            MG_CODE(out, "mov.f64", rounds, real(0));
        }
}

static void count_partial(struct run *r, const struct mg_site_block *b, const struct mg_lanes_block *x,
                          struct mg_code_at *at, uint32_t cell, mg_id here)
{
    mg_id k = n_lanes(at, here);
    if (x->tells == MG_NO_BLOCK) {
        mg_count_lanes(at, cell, bins, k, here, true);
        return;
    }
    mg_id before = mask_of(r, b->func_ix, plan_of(r, b->func_ix, x->tells)->mask),
          split = mg_code_temp(at, MG_TYPE_pred), half = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "setp.ne.u32", split, here, before);
    if (x->enters != MG_NO_BLOCK) MG_CODE(at, "setp.ne.and.u32", split, before, 0, split);
    MG_CODE(at, "selp.b32", half, mg_o_imm(bins), 0, split);
    MG_CODE(at, "add.u32", k, k, half);
    mg_count_lanes(at, cell, 2 * bins, k, here, true);
}

/* A partial warp's lanes are counted. Where the block tells of a branch, in the second half when it has just been
 * split. In functions that are called the lanes are known on one way less: what lives there is saved over calls. */
static void count_asked(struct run *r, uint32_t id, const struct mg_lanes_block *x, struct mg_code_at *at,
                        uint32_t cell, mg_id own)
{
    const struct mg_site_block *b = &r->s->blocks[id];
    mg_id all = mg_value_active(at), done = mg_code_label(at), partial = is_partial(at, all),
          here = b->func_ix ? 0 : mg_value_own_of(at, all);
    jump(at, partial, true, done);
    if (b->func_ix) here = mg_value_own_of(at, all);
    if (x->repeats)
        count_repeats(r, id, at, cell, here, mask_of(r, b->func_ix, plan_of(r, b->func_ix, x->tells)->mask), done);
    count_partial(r, b, x, at, cell, here);
    if (b->func_ix) keep(at, own, mg_o_reg(here));
    mg_code_place(at, done);
    if (b->func_ix) {
        mg_code_push_guard(at, partial, true);
        keep(at, own, mg_o_imm(-1));
        mg_code_pop_guard(at);
    } else {
        keep(at, own, mg_o_reg(here));
    }
}

/* Lanes have changed: those that there were have their rounds counted by the lowest of them, in cells from 0 on, and
 * where there were any, those here are a split. The lanes here. */
static mg_id end_run(struct mg_code_at *at, uint32_t cell, mg_id own, mg_id rounds, mg_id active)
{
    mg_id here = active ? mg_value_own_of(at, active) : mg_value_own(at), split = mg_code_temp(at, MG_TYPE_pred),
          k = mg_code_temp(at, MG_TYPE_b32);
    mg_count_run(at, cell, own, rounds);
    MG_CODE(at, "setp.ne.u32", split, own, 0);
    MG_CODE(at, "popc.b32", k, here);
    mg_code_push_guard(at, split, false);
    mg_count_lanes(at, cell + bins, bins, k, here, false);
    mg_code_pop_guard(at);
    return here;
}

static mg_id call_end_run(struct run *r, struct mg_code_at *at, uint32_t cell, mg_id own, mg_id rounds)
{
    struct mg_code_at *f = r->runs;
    if (!f) {
        f = r->runs = mg_at_called(r->p, true);
        mg_id was = mg_called_param(f, MG_TYPE_b32), n = mg_called_param(f, MG_TYPE_b64);
        mg_called_cells(f);
        mg_called_return(f, end_run(f, 0, was, n, 0));
    }
    mg_id here = mg_code_temp(at, MG_TYPE_b32);
    mg_code_call(at, f, here, (const mg_id[]){own, rounds, mg_cell_place(at, cell)});
    return here;
}

/* A loop by itself: lanes seldom change from round to round, so that rounds with the same ones are counted in a
 * register. Where they change, and where they leave the loop, the lowest of those that there were counts their rounds.
 * The round that a split begins with goes into the second half at once. */
static void count_runs(struct run *r, uint32_t id, struct mg_code_at *at, uint32_t cell, mg_id own)
{
    mg_id *rounds = &r->rounds[id], done = mg_code_label(at), as_one = mg_code_temp(at, MG_TYPE_pred),
          split = mg_code_temp(at, MG_TYPE_pred);
    const struct mg_site_block *b = &r->s->blocks[id];
    struct mg_code_at *entry = mg_at_entry(r->p, b->func_ix);
    *rounds = mg_code_reg(at, MG_TYPE_b64);
    MG_CODE(entry, "mov.f64", *rounds, real(0));
    mg_id all = mg_value_active(at);
    MG_CODE(at, "add.f64", *rounds, *rounds, real(1));
    MG_CODE(at, "setp.eq.u32", as_one, all, own);
    MG_CODE(at, "vote.sync.all.pred", as_one, as_one, all);
    jump(at, as_one, false, done);
    MG_CODE(at, "add.f64", *rounds, *rounds, real(-1));
    mg_id here = r->calls ? call_end_run(r, at, cell, own, *rounds) : end_run(at, cell, own, *rounds, all);
    MG_CODE(at, "setp.ne.u32", split, own, 0);
    MG_CODE(at, "selp.f64", *rounds, real(0), real(1), split);
    MG_CODE(at, "mov.b32", own, here);
    mg_code_place(at, done);
    for (uint32_t i = 0; i < b->n_succs; i++) {
        struct mg_code_at *out = b->succs[i] != id ? mg_at_edge(r->p, id, i) : NULL;
        if (!out) continue;
        mg_count_run(out, cell, own, *rounds);
        MG_CODE(out, "mov.f64", *rounds, real(0));
    }
}

/* For behind a loop. All that is new in it is the lanes here; since it also depends on what it was ptxas does not put
 * off what makes it differ by lane. */
static void remember(struct mg_code_at *at, mg_id who)
{
    mg_id bit = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "and.b32", bit, who, mg_value_bit(at));
    MG_CODE(at, "or.b32", who, bit, mg_value_active(at));
}

/* Each lane counts its rounds, and knows with whom it made the last one. */
static void count_late(struct run *r, uint32_t id, const struct mg_lanes_block *x, struct mg_code_at *at, uint32_t cell)
{
    struct mg_patch *p = r->p;
    uint32_t func_ix = r->s->blocks[id].func_ix;
    mg_id behind = plan_of(r, func_ix, x->out)->behind, rounds = mg_code_reg(at, MG_TYPE_b64), who = r->masks[id];
    struct mg_code_at *entry = mg_at_entry(p, func_ix);
    MG_CODE(entry, "mov.f64", rounds, real(0));
    MG_CODE(entry, "mov.b32", who, 0);
    MG_CODE(at, "add.f64", rounds, rounds, real(1));
    remember(at, who);
    mg_count_rounds(behind ? mg_at_after(p, behind) : mg_at_block(p, r->s->first_block[func_ix] + x->out), cell, bins,
                    who, rounds);
}

/* Other lanes than there: those here are counted, and those there are taken off by the lowest of them. The lanes here.
 */
static mg_id count_both(struct mg_code_at *at, uint32_t cell, mg_id there)
{
    mg_id here = mg_value_own(at), below = mg_code_temp(at, MG_TYPE_b32), lowest = mg_code_temp(at, MG_TYPE_pred);
    mg_count_lanes(at, cell, bins, n_lanes(at, here), here, false);
    mg_id k = n_lanes(at, there), less = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "cvt.u64.u32", less, k);
    MG_CODE(at, "neg.s64", less, less);
    MG_CODE(at, "mov.u32", below, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    MG_CODE(at, "and.b32", below, below, there);
    MG_CODE(at, "setp.eq.u32", lowest, below, 0);
    mg_code_push_guard(at, lowest, false);
    mg_cell_update_at(at, cell, bins, k, mg_o_reg(less), MG_ALONE);
    mg_code_pop_guard(at);
    return here;
}

static mg_id call_both(struct run *r, struct mg_code_at *at, uint32_t cell, mg_id there)
{
    struct mg_code_at *f = r->difference;
    if (!f) {
        f = r->difference = mg_at_called(r->p, true);
        mg_id were = mg_called_param(f, MG_TYPE_b32);
        mg_called_cells(f);
        mg_called_return(f, count_both(f, 0, were));
    }
    mg_id here = mg_code_temp(at, MG_TYPE_b32);
    mg_code_call(at, f, here, (const mg_id[]){there, mg_cell_place(at, cell)});
    return here;
}

/* Lanes are counted only where not all that are here were together in the block that this one follows. */
static void count_difference(struct run *r, struct mg_code_at *at, uint32_t cell, mg_id own, mg_id there)
{
    mg_id done = mg_code_label(at), as_one = mg_code_temp(at, MG_TYPE_pred);
    keep(at, own, mg_o_reg(there));
    MG_CODE(at, "setp.eq.u32", as_one, mg_value_active(at), there);
    MG_CODE(at, "vote.sync.all.pred", as_one, as_one, mg_value_active(at));
    jump(at, as_one, false, done);
    mg_id here = r->calls ? call_both(r, at, cell, there) : count_both(at, cell, there);
    keep(at, own, mg_o_reg(here));
    mg_code_place(at, done);
}

static uint32_t block_site(struct mg_patch *p, uint32_t id, uint32_t n, enum mg_lanes_note kind, uint32_t of)
{
    return mg_patch_site(p, MG_SITE_BLOCK, 0, id, n, MG_MERGE_SUM, MG_LN_KINDS * of + kind);
}

static void count_block(struct run *r, uint32_t id)
{
    struct mg_patch *p = r->p;
    const struct mg_site_block *b = &r->s->blocks[id];
    const struct mg_lanes_block *x = plan_of(r, b->func_ix, b->block_ix);
    uint32_t first = r->s->first_block[b->func_ix];
    if (x->ask == MG_LANES_SAME) {
        block_site(p, id, 0, MG_LN_SAME, first + x->of);
        return;
    }
    struct mg_code_at *at = x->behind ? mg_at_after(p, x->behind) : mg_at_block(p, id);
    if (x->ask == MG_LANES_FOLLOWS) {
        count_difference(r, at, block_site(p, id, bins, MG_LN_FOLLOWS, first + x->of), r->masks[id],
                         mask_of(r, b->func_ix, leader_of(r, b->func_ix, x->of)));
    } else if (x->ask == MG_LANES_ENTRY) {
        uint32_t cell = block_site(p, id, bins, MG_LN_OWN, 0);
        mg_id done = mg_code_label(at);
        jump(at, r->plans[0]->asks_often ? is_ragged(r) : is_partial_at_entry(r), true, done);
        mg_id here = lanes_at_entry(r), k = n_lanes(at, here);
        mg_code_push_guard(at, is_partial_at_entry(r), false);
        mg_count_lanes(at, cell, bins, k, here, false);
        mg_code_pop_guard(at);
        mg_code_place(at, done);
    } else {
        bool tells = x->tells != MG_NO_BLOCK;
        uint32_t cell =
            block_site(p, id, tells ? 2 * bins : bins, tells ? MG_LN_TELLS : MG_LN_OWN, tells ? first + x->tells : 0);
        r->cells[id] = cell;
        if (x->at_branch)
            return;
        else if (x->out != MG_NO_BLOCK)
            count_late(r, id, x, at, cell);
        else if (x->runs)
            count_runs(r, id, at, cell, r->masks[id]);
        else
            count_asked(r, id, x, at, cell, r->masks[id]);
        if (x->enters == MG_NO_BLOCK || x->out != MG_NO_BLOCK) return;
        const struct mg_site_block *q = &r->s->blocks[first + x->enters];
        for (uint32_t i = 0; i < q->n_succs; i++) {
            struct mg_code_at *in = q->succs[i] == id ? mg_at_edge(p, first + x->enters, i) : NULL;
            if (in) MG_CODE(in, "mov.b32", mask_of(r, b->func_ix, plan_of(r, b->func_ix, x->tells)->mask), 0);
        }
    }
}

/* Who takes which way of a branch is told in front of it, for both at once. They are the block's lanes, all of them. */
static void count_sides(struct run *r, uint32_t id)
{
    const struct mg_site_block *b = &r->s->blocks[id];
    const struct mg_lanes_block *x = plan_of(r, b->func_ix, b->block_ix);
    const struct mg_cfg *c = mg_patch_cfg(r->p, b->func_ix);
    mg_id node = c->blocks[b->block_ix].last;
    struct mg_code_at *at = mg_at_before(r->p, node);
    uint32_t first = r->s->first_block[b->func_ix], s = first + x->told_by,
             o = b->succs[0] == s ? b->succs[1] : b->succs[0];
    bool both = plan_of(r, b->func_ix, o - first)->at_branch, negated = false;
    mg_id goes = mg_node_guard(mg_patch_module(r->p), node, &negated); /* to s, where not negated */
    if (b->succs[0] == s) negated = !negated;
    mg_id took = mg_code_temp(at, MG_TYPE_b32), t = mg_code_temp(at, MG_TYPE_b32), side = mg_code_temp(at, MG_TYPE_b32),
          p = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    mg_id all = mg_value_active(at);
    MG_CODE(at, "vote.sync.ballot.b32", took, negated ? mg_o_not(goes) : mg_o_reg(goes), all);
    if (both) {
        MG_CODE(at, "xor.b32", t, took, all);
        if (negated)
            MG_CODE(at, "selp.b32", side, t, took, goes);
        else
            MG_CODE(at, "selp.b32", side, took, t, goes);
    } else {
        MG_CODE(at, "mov.b32", side, took);
    }
    MG_CODE(at, "or.b32", side, side, mg_value_bit(at));
    for (int i = 0; i < 1 + both; i++) {
        mg_code_push_guard(at, goes, i ? !negated : negated);
        keep(at, r->masks[i ? o : s], mg_o_reg(side));
        mg_code_pop_guard(at);
    }
    MG_CODE(at, "add.u32", t, took, 1);
    MG_CODE(at, "setp.le.u32", p, t, 1); /* none or a whole warp */
    if (both) MG_CODE(at, "setp.eq.and.u32", p, all, mg_o_imm(-1), mg_o_reg(p));
    jump(at, p, false, done);
    uint32_t base = both ? MG_MIN(r->cells[s], r->cells[o]) : r->cells[s];
    mg_id k = n_lanes(at, side), off = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "setp.ne.u32", p, took, all);
    if (both) MG_CODE(at, "setp.ne.and.u32", p, took, 0, mg_o_reg(p));
    MG_CODE(at, "selp.b32", off, mg_o_imm((int64_t)(r->cells[s] - base) + bins), mg_o_imm(r->cells[s] - base), p);
    if (both && negated)
        MG_CODE(at, "selp.b32", off, mg_o_imm(r->cells[o] - base), off, goes);
    else if (both)
        MG_CODE(at, "selp.b32", off, off, mg_o_imm(r->cells[o] - base), goes);
    MG_CODE(at, "add.u32", k, k, off);
    if (!both) mg_code_push_guard(at, goes, negated);
    mg_count_lanes(at, base, 2 * bins, k, side, false);
    if (!both) mg_code_pop_guard(at);
    mg_code_place(at, done);
}

static void count_divergence(struct mg_code_at *at, uint32_t cell, mg_id guard)
{
    mg_id as_one = mg_code_temp(at, MG_TYPE_pred), done = mg_code_label(at);
    MG_CODE(at, "vote.sync.uni.pred", as_one, guard, mg_value_active(at));
    jump(at, as_one, false, done);
    mg_id first = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "mov.u32", first, 0);
    mg_tally_add(at, cell + MG_LC_DIVERGENT, 1, first);
    mg_code_place(at, done);
}

static void count_branch(struct run *r, const struct mg_patch_inst *i, mg_id guard, bool negated)
{
    struct mg_patch *p = r->p;
    const struct mg_lanes_block *x = plan_of(r, i->func_ix, i->block);
    uint32_t join = r->plans[i->func_ix]->post->idom[i->block];
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, MG_LC_COUNT, MG_MERGE_SUM,
                                  join >= MG_DOM_ROOT ? 0 : r->s->first_block[i->func_ix] + join + 1);
    struct mg_code_at *at = mg_at_before(p, i->node);
    struct mg_kit_taken t;
    if (x->varies && x->told_by == MG_NO_BLOCK) count_divergence(at, cell, guard);
    if (mg_kit_taken(r->s->blocks, r->preds, r->s->n_blocks, i->id, false, &t)) return;
    mg_code_push_guard(at, guard, negated);
    mg_sum_add(at, mg_patch_sum(p, cell + MG_LC_TAKEN), mg_o_imm(1));
    mg_code_pop_guard(at);
}

enum { GUARDS = 16 /* of a block known at once: of more, one is counted again */ };
struct guard {
    mg_id pred;
    bool negated;
};

static void forget_written(const struct mg_module *m, mg_id node, struct guard *known, uint32_t *n)
{
    for (uint32_t i = *n; i-- > 0;)
        if (mg_kit_writes(m, node, known[i].pred)) known[i] = known[--*n];
}

static void count_guards(struct run *r, const struct mg_patch_inst *insts, uint32_t n)
{
    const struct mg_module *m = mg_patch_module(r->p);
    struct guard known[GUARDS];
    uint32_t n_known = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct guard g = {0};
        uint32_t k = 0;
        if (i && insts[i].id != insts[i - 1].id) n_known = 0;
        g.pred = mg_node_guard(m, insts[i].node, &g.negated);
        while (k < n_known && (known[k].pred != g.pred || known[k].negated != g.negated)) k++;
        if (g.pred && k == n_known && mg_node_form(m, &m->nodes.at[insts[i].node])->op != MG_OP_bra) {
            uint32_t cell = mg_patch_site(r->p, MG_SITE_INST, insts[i].node, insts[i].id, bins, MG_MERGE_SUM, 0);
            struct mg_code_at *at = mg_at_before(r->p, insts[i].node);
            mg_code_push_guard(at, g.pred, g.negated);
            mg_count_lanes(at, cell, bins, mg_value_n_active(at), mg_value_own(at), true);
            mg_code_pop_guard(at);
            if (n_known < GUARDS) known[n_known++] = g;
        }
        forget_written(m, insts[i].node, known, &n_known);
    }
}

static enum mg_err lanes_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_want_blocks(p);
    mg_patch_keep_lanes(p);
    return MG_ERR_OK;
}

static void make_plans(struct run *r)
{
    r->plans = mg_arena_array(mg_patch_scratch(r->p), struct mg_lanes_plan *, r->s->n_funcs);
    r->masks = mg_arena_array(mg_patch_scratch(r->p), mg_id, r->s->n_blocks + 1);
    r->rounds = mg_arena_array(mg_patch_scratch(r->p), mg_id, r->s->n_blocks + 1);
    r->cells = mg_arena_array(mg_patch_scratch(r->p), uint32_t, r->s->n_blocks + 1);
    for (uint32_t f = 0; f < r->s->n_funcs; f++) {
        r->plans[f] = mg_lanes_plan_new(r->p, f);
        keep_masks(r, f);
    }
}

static bool has_many_changes(const struct run *r)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < r->s->n_funcs; f++)
        for (uint32_t b = 0; b < r->plans[f]->n_blocks; b++)
            n += plan_of(r, f, b)->ask == MG_LANES_FOLLOWS || plan_of(r, f, b)->runs;
    return n > MANY && !mg_patch_module(r->p)->marked;
}

static enum mg_err lanes_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_lanes_opts *c = conf;
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    struct run r = {.p = p, .s = mg_patch_sites(p)};
    (void)d;
    r.preds = mg_kit_preds(r.s->blocks, r.s->n_blocks);
    make_plans(&r);
    if (r.plans[0]->busy) mg_patch_near(p);
    r.calls = has_many_changes(&r);
    for (uint32_t id = 0; id < r.s->n_blocks; id++) count_block(&r, id);
    for (uint32_t id = 0; id < r.s->n_blocks; id++)
        if (plan_of(&r, r.s->blocks[id].func_ix, r.s->blocks[id].block_ix)->sides) count_sides(&r, id);
    for (uint32_t i = 0; i < n && c->branches; i++) {
        const struct mg_module *m = mg_patch_module(p);
        bool negated = false;
        mg_id guard = mg_node_guard(m, insts[i].node, &negated);
        if (guard && mg_node_form(m, &m->nodes.at[insts[i].node])->op == MG_OP_bra)
            count_branch(&r, &insts[i], guard, negated);
    }
    if (c->guards) count_guards(&r, insts, n);
    for (uint32_t f = 0; f < r.s->n_funcs; f++) mg_lanes_plan_free(r.plans[f]);
    free(r.preds);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_lanes;
const struct mg_tool mg_tool_lanes = {
    .name = "lanes",
    .summary = "active lanes by block as a distribution; branches that split warps, by what they cost",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.48 (docs/measured.md)",
    .opts = lanes_opts,
    .configure = lanes_configure,
    .release = free,
    .one_of = lanes_one_of,
    .analyze = lanes_analyze,
    .instrument = lanes_instrument,
    .profile = mg_lanes_profile,
    .flags = MG_TOOL_NO_LOADS,
};
