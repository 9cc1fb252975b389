/* Scheme register: warp entries. A cohort's blocks have those that its first lanes have measured; blocks of functions
 * whose counters travel are counted in shared memory. Of the others each has a counter of its own:
 *
 *     lowest    activemask m;  the lowest lane of m counts one. A loop of one block may do so behind it (rounds.c)
 *     voted     in front of the branch that alone leads there, if the kernel's own cohort stands at it: does any lane
 *               go there; the first lane counts
 *     lacks     activemask m;  m is not whole: its lowest lane adds 32 - popc(m) to memory. Warp entries are 32nd
 *               parts of that and of the thread entries: a warp that is whole counts nothing, and has nothing to flush
 *
 * Which of lowest and lacks is a guess of cost: whether warps come to the block whole. In loops the former: even one
 * warp of many that has to go to memory round after round is what all others wait for. */
#include "analysis/dom.h"
#include "analysis/equiv.h"
#include "analysis/parted.h"
#include "count/storage/storage.h"

#include <stdlib.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)
#define WARP      32

/* ---- rules ---------------------------------------------------------------------------------------------- */

static void plan_near(struct mg_rfunc *f, struct mg_rfunc *kernel)
{
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) {
        if (!f->x.c->reachable[b]) continue;
        f->warps.rule[b] = MG_WR_LOWEST;
        f->warps.counter[b] = kernel->shared.n_near++;
    }
}

/* Cohorts that are worth it: the kernel's own, and those with a loop. By the block with which they begin; to be freed.
 */
static bool *choose_cohorts(const struct mg_rfunc *f, const struct mg_uniform *u)
{
    const struct mg_cfg *c = f->x.c;
    bool leaves = false, *worth = mg_xcalloc(c->n_blocks + 1, sizeof *worth);
    uint32_t n_worth = 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) leaves |= f->live.may_leave[b];
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b] || u->cohort[b] == MG_NO_COHORT || worth[u->cohort[b]]) continue;
        bool loop = !leaves && f->plan->loops->loop_of[b] != MG_NO_LOOP && n_worth < MG_MAX_COHORTS;
        worth[u->cohort[b]] = u->cohort[b] == 0 || loop;
        n_worth += worth[u->cohort[b]];
    }
    return worth;
}

/* With barriers of the CTA, which bring the kernel's own cohort together again: a block that begins with one is entered
 * when it is over. Other cohorts as they are without. */
static struct mg_uniform *cohorts_of(const struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    struct mg_uniform *u = mg_uniform_new(c, f->plan->loops), *met;
    if (f->x.ix) return u;
    struct mg_equiv *e = mg_equiv_new(c, f->live.may_leave);
    struct mg_dom *post = mg_postdom_new(c);
    met = mg_uniform_new_barriers(c, f->plan->loops, f->plan->dom, post, e);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (u->cohort[b] == MG_NO_COHORT && met->cohort[b] == 0) u->cohort[b] = 0;
        if (u->at_end[b] == MG_NO_COHORT && met->at_end[b] == 0) u->at_end[b] = 0;
    }
    mg_uniform_free(met);
    mg_dom_free(post);
    mg_equiv_free(e);
    return u;
}

/* Does only a branch of the kernel's own cohort lead there, and do its lanes wait for no others on the way? */
static bool is_voted(const struct mg_rfunc *f, const struct mg_uniform *u, uint32_t b)
{
    const struct mg_cfg *c = f->x.c;
    if (f->x.ix || !f->redux || f->o->scope != MG_COUNT_FULL || f->warps.ballot || c->blocks[b].n_preds != 1 || !b)
        return false;
    uint32_t a = c->preds[c->blocks[b].pred_at];
    const struct mg_block *k = &c->blocks[a];
    const struct mg_node *end = &c->m->nodes.at[k->last];
    if (a == b || u->at_end[a] != 0 || k->n_succs != 2 || k->leaves || !end->guard ||
        mg_node_form(c->m, end)->op != MG_OP_bra)
        return false;
    uint32_t other = c->edges[k->succ_at + (c->edges[k->succ_at] == b)];
    return other != b && c->rank[b] < c->rank[other];
}

void mg_warps_plan(struct mg_rfunc *f, struct mg_rfunc *kernel)
{
    const struct mg_cfg *c = f->x.c;
    f->warps.rule = mg_xcalloc(c->n_blocks + 1, sizeof *f->warps.rule);
    f->warps.counter = mg_xcalloc(c->n_blocks + 1, sizeof *f->warps.counter);
    f->warps.cohorts = mg_xcalloc(c->n_blocks + 1, sizeof *f->warps.cohorts);
    if (!f->o->warps) return;
    if (f->calls.carried) {
        plan_near(f, kernel);
        return;
    }
    struct mg_uniform *u = cohorts_of(f);
    bool lacks = !f->x.ix && f->redux && f->o->scope == MG_COUNT_FULL && !f->lone.is, *worth = choose_cohorts(f, u),
         *parted = lacks ? mg_parted_new(c, u) : NULL;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b]) continue;
        bool cohort = u->cohort[b] != MG_NO_COHORT && worth[u->cohort[b]];
        bool whole = lacks && !parted[b] && f->plan->loops->loop_of[b] == MG_NO_LOOP;
        f->warps.rule[b] = cohort && (u->cohort[b] == 0 || b != u->cohort[b]) ? MG_WR_COHORT
                           : cohort                                           ? MG_WR_LOWEST
                           : whole                                            ? MG_WR_LACKS
                           : is_voted(f, u, b)                                ? MG_WR_VOTED
                                                                              : MG_WR_LOWEST;
        f->warps.counter[b] = cohort ? u->cohort[b] : 0;
    }
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (worth[b]) f->warps.cohorts[f->warps.n_cohorts++] = (struct mg_rcohort){.begin = b, .flag = UINT32_MAX};
    free(parted);
    free(worth);
    mg_uniform_free(u);
}

/* ---- code ------------------------------------------------------------------------------------------------ */

void mg_warps_begin(struct mg_rfunc *f, const struct mg_rfunc *kernel)
{
    struct mg_emit *x = &f->x;
    bool any = false;
    for (uint32_t b = 0; b < x->c->n_blocks; b++) any = any || mg_warps_counted(f, b);
    if (!any) return;
    f->warps.mask = mg_emit_reg(x, "__mg_m", MG_TYPE_b32);
    f->warps.below = mg_emit_reg(x, "__mg_t", MG_TYPE_b32);
    f->warps.lt = mg_emit_reg(x, "__mg_lt", MG_TYPE_b32);
    f->warps.eq = mg_emit_reg(x, "__mg_eq", MG_TYPE_b32);
    f->warps.low = mg_emit_reg(x, "__mg_low", MG_TYPE_pred);
    EMIT("mov.u32", f->warps.lt, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("mov.u32", f->warps.eq, mg_o_sreg(MG_SREG_lanemask_eq, 0));
    f->warps.first = mg_emit_reg(x, "__mg_first", MG_TYPE_pred);
    EMIT("setp.eq.u32", f->warps.first, f->warps.eq, 1);
    if (f->calls.carried) {
        f->warps.own = mg_emit_reg(x, "__mg_own", MG_TYPE_b32);
        mg_shared_near_own(f, kernel, f->warps.own);
    }
    if (!f->warps.ballot) return;
    f->warps.always = mg_emit_reg(x, "__mg_true", MG_TYPE_pred);
    EMIT("setp.eq.u32", f->warps.always, f->warps.lt, f->warps.lt);
}

static void ask_mask(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    if (f->warps.ballot)
        EMIT("vote.ballot.b32", f->warps.mask, f->warps.always);
    else
        EMIT("activemask.b32", f->warps.mask);
}

static void emit_near(struct mg_rfunc *f, const struct mg_rfunc *kernel, uint32_t b)
{
    struct mg_rrange all = {.loop = UINT32_MAX, .first = f->warps.counter[0]};
    for (uint32_t i = 0; i < f->x.c->n_blocks; i++) all.n += mg_warps_counted(f, i);
    if (f->plan->loops->loop_of[b] != MG_NO_LOOP)
        mg_shared_near_often(f, kernel, f->warps.counter[b], f->warps.low);
    else if (b)
        mg_shared_near(f, kernel, f->warps.counter[b], f->warps.low);
    else
        mg_shared_near_entry(f, kernel, all, f->warps.counter[0], f->warps.low);
}

/* At the block's head, the lowest active lane counts. */
static void emit_lowest(struct mg_rfunc *f, const struct mg_rfunc *kernel, uint32_t b)
{
    struct mg_emit *x = &f->x;
    struct mg_spot s = {.at = mg_block_head(x->m, &x->c->blocks[b]), .guard = f->warps.low};
    x->at = s.at;
    ask_mask(f);
    EMIT("and.b32", f->warps.below, f->warps.mask, f->warps.lt);
    EMIT("setp.eq.u32", f->warps.low, f->warps.below, 0);
    if (f->calls.carried)
        emit_near(f, kernel, b);
    else
        mg_rc_event(f, f->warps.counter[b], s);
}

/* Does the block wait for global memory, and for nobody? */
static bool only_loads(const struct mg_rfunc *f, uint32_t b)
{
    const struct mg_module *m = f->x.m;
    const struct mg_block *k = &f->x.c->blocks[b];
    bool loads = false;
    for (mg_id id = k->first;; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) {
            const struct mg_form *form = mg_node_form(m, n);
            if (form->op_flags & (MG_OPF_CONVERGENT | MG_OPF_BARRIER)) return false;
            loads = loads || (form->op_flags & MG_OPF_READS &&
                              (form->space == MG_SPACE_global || form->space == MG_SPACE_generic));
        }
        if (id == k->last) return loads;
    }
}

/* Warps that are not whole add what they lack. Where the block loads from global memory, who is there is asked for at
 * its head and looked at at its end: lest the loads wait for the answer. What activemask told must not be kept, nor
 * counted by (flush.c). */
static void emit_lacks(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[f->warps.counter[b]];
    mg_id own = mg_rc_t32(f, 9), base = mg_rc_t64(f, 1), wide = mg_rc_t64(f, 2), lack = mg_rc_t32(f, 6);
    x->at = mg_block_head(x->m, &x->c->blocks[b]);
    ask_mask(f);
    EMIT("or.b32", own, f->warps.mask, f->warps.eq);
    if (only_loads(f, b)) x->at = mg_in_front_of(x->m, x->c->blocks[b].last);
    EMIT("setp.ne.u32", f->warps.low, own, -1);
    struct mg_apart a = mg_rc_begin_apart(f, f->warps.low);
    EMIT("popc.b32", lack, own);
    EMIT("sub.u32", lack, WARP, lack);
    EMIT("cvt.u64.u32", wide, lack);
    EMIT("and.b32", f->warps.below, own, f->warps.lt);
    EMIT("setp.eq.u32", f->warps.low, f->warps.below, 0);
    mg_rc_address(f, base);
    mg_emit_guard(x, f->warps.low, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(base, 8 * (int64_t)c->slot), wide);
    mg_emit_guard(x, 0, false);
    mg_rc_end_apart(f, a);
}

/* In front of the branch, where the warp is as it was at the kernel's entry: the assembler may still make guarded
 * instructions of the block. */
static void emit_voted(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    uint32_t from = x->c->preds[x->c->blocks[b].pred_at];
    const struct mg_block *k = &x->c->blocks[from];
    const struct mg_node *end = &x->m->nodes.at[k->last];
    bool not_taken = x->c->edges[k->succ_at] == b, holds = not_taken == ((end->flags & MG_NF_GUARD_NOT) != 0);
    mg_id guard = end->guard;
    struct mg_spot s = {.at = mg_in_front_of(x->m, k->last), .guard = f->warps.low};
    x->at = s.at;
    ask_mask(f);
    EMIT("vote.sync.any.pred", f->warps.low, holds ? mg_o_reg(guard) : mg_o_not(guard), f->warps.mask);
    EMIT("and.pred", f->warps.low, f->warps.low, f->warps.first);
    mg_rc_event(f, f->warps.counter[b], s);
}

void mg_warps_emit(struct mg_rfunc *f, const struct mg_rfunc *kernel)
{
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) {
        if (f->warps.rule[b] == MG_WR_LACKS) emit_lacks(f, b);
        if (f->warps.rule[b] == MG_WR_VOTED) emit_voted(f, b);
        if (f->warps.rule[b] == MG_WR_LOWEST && !mg_rounds_emit(f, b)) emit_lowest(f, kernel, b);
    }
}
