/* Scheme register of the tool blocks: counts a minimal set (count/plan.h) in registers and adds it to
 * memory by one reduction a warp where a path ends (count/flush.c).
 *
 *   at most once in an activation     one bit of a packed register:   or.b32 K, K, bit
 *   in loops                          a register:                     add c, c, 1
 *   by an induction variable          nothing in the loop; at its entry  sub c, c, i;  at its exits  add c, c, i
 *   more than there are registers     a word of shared memory
 *   where that cannot be              8 bits of a register in loops, else a word of local memory
 *
 * Code stands on edges of the CFG: behind the branch for the way that falls through, in a block of its
 * own for a cold one that is taken. Counters of 32 bits only where fewer than 2^32 events are proven.
 * The kernel's entries are its threads; a function's are the entries of the blocks that call it, or
 * it counts them itself (recursion, pointers, guarded calls). In front of a call that may end the
 * lane everything is flushed and begins anew.
 *
 * Warp entries: a cohort's blocks by what its first lane alone has measured, those of the kernel's entry by thread
 * entries where warps are whole; others by the lowest active lane, as all are in functions.
 */
#include "analysis/alike.h"
#include "count/storage/storage.h"

#include <stdlib.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

#define MOST_WIDE 4 /* counters of two registers for induction variables of loops inside loops */

/* ---- who calls whom ---------------------------------------------------------------------------------- */

struct kernel {
    const struct mg_counter_opts *o;
    const struct mg_sites *s;
    struct mg_twin *t;
    struct mg_counter_layout *l;
    struct mg_rfunc *funcs;
    bool *may_exit;
    uint32_t *order;        /* callers before callees */
    struct mg_carry *carry; /* NULL: no function's counters travel */
};

/* Blocks that call function i, each once in each of its entries; false: entries do not follow from them. */
static bool find_callers(struct kernel *k, uint32_t i, const bool *taken)
{
    struct mg_rfunc *f = &k->funcs[i];
    const struct mg_module *m = k->s->cfgs[0]->m; /* the original: calls as the application has them */
    if (taken[k->s->funcs[i]]) return false;
    for (uint32_t pass = 0; pass < 2; pass++) {
        f->calls.n_callers = 0;
        for (uint32_t j = 0; j < k->s->n_funcs; j++)
            for (uint32_t b = 0; b < k->s->cfgs[j]->n_blocks; b++) {
                mg_id last = k->s->cfgs[j]->blocks[b].last;
                if (!k->s->cfgs[j]->reachable[b] || mg_direct_callee(m, last) != k->s->funcs[i]) continue;
                if (m->nodes.at[last].guard) return false;
                if (pass) f->calls.callers[f->calls.n_callers] = k->s->first_block[j] + b;
                f->calls.n_callers++;
            }
        if (!pass) f->calls.callers = mg_xcalloc(f->calls.n_callers + 1, sizeof *f->calls.callers);
    }
    return f->calls.n_callers != 0;
}

/* Kernel first; a function when all its callers are done; one in a circle of calls counts its entries. */
static void order_funcs(struct kernel *k)
{
    uint32_t n = k->s->n_funcs, done = 0;
    bool *placed = mg_xcalloc(n + 1, sizeof *placed), *taken = mg_funcs_taken(k->s->cfgs[0]->m);
    k->order = mg_xcalloc(n + 1, sizeof *k->order);
    for (uint32_t i = 1; i < n; i++) k->funcs[i].calls.counted = find_callers(k, i, taken);
    k->order[done++] = 0;
    placed[0] = true;
    while (done < n) {
        uint32_t found = UINT32_MAX, first = UINT32_MAX; /* first: of a circle, where one is known */
        for (uint32_t i = 1; i < n && found == UINT32_MAX; i++) {
            if (placed[i]) continue;
            if (first == UINT32_MAX || (k->carry && k->carry->cyclic[i] && !k->carry->cyclic[first])) first = i;
            bool ready = true;
            for (uint32_t c = 0; c < k->funcs[i].calls.n_callers && k->funcs[i].calls.counted; c++)
                ready = ready && placed[k->s->blocks[k->funcs[i].calls.callers[c]].func_ix];
            if (ready) found = i;
        }
        if (found == UINT32_MAX) k->funcs[found = first].calls.counted = false;
        placed[found] = true;
        k->order[done++] = found;
    }
    free(placed);
    free(taken);
}

/* ---- planning a function ------------------------------------------------------------------------------ */

static void find_rules(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    f->warps.rule = mg_xcalloc(c->n_blocks + 1, sizeof *f->warps.rule);
    f->warps.counter = mg_xcalloc(c->n_blocks + 1, sizeof *f->warps.counter);
    f->warps.cohorts = mg_xcalloc(c->n_blocks + 1, sizeof *f->warps.cohorts);
    if (!f->o->warps) return;
    for (uint32_t b = 0, at = f->plan->n; f->calls.carried && b < c->n_blocks; b++) {
        if (!c->reachable[b]) continue;
        f->warps.rule[b] = MG_WR_LOWEST;
        f->warps.counter[b] = at++;
    }
    if (f->calls.carried) return;
    bool leaves = false;
    for (uint32_t b = 0; b < c->n_blocks; b++) leaves |= f->live.may_leave[b];
    struct mg_equiv *e = mg_equiv_new(c, f->live.may_leave);
    struct mg_dom *post = mg_postdom_new(c);
    struct mg_uniform *u = mg_uniform_new_barriers(c, f->plan->loops, f->plan->dom, post, e);
    mg_dom_free(post);
    mg_equiv_free(e);
    bool *worth = mg_xcalloc(c->n_blocks + 1, sizeof *worth); /* cohorts with a loop */
    uint32_t n_worth = 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b] || u->cohort[b] == MG_NO_COHORT || worth[u->cohort[b]]) continue;
        bool loop = !leaves && f->plan->loops->loop_of[b] != MG_NO_LOOP && n_worth < MG_MAX_COHORTS;
        worth[u->cohort[b]] = u->cohort[b] == 0 || loop;
        n_worth += worth[u->cohort[b]];
    }
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b]) continue;
        bool cohort = u->cohort[b] != MG_NO_COHORT && worth[u->cohort[b]];
        f->warps.rule[b] = cohort && (u->cohort[b] == 0 || b != u->cohort[b]) ? MG_WR_COHORT : MG_WR_LOWEST;
        f->warps.counter[b] = cohort ? u->cohort[b] : 0;
    }
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (worth[b]) f->warps.cohorts[f->warps.n_cohorts++] = (struct mg_rcohort){.begin = b, .flag = UINT32_MAX};
    free(worth);
    mg_uniform_free(u);
}

static bool has_inner(const struct mg_count_plan *p, uint32_t loop)
{
    for (uint32_t i = 0; i < p->loops->n_loops; i++)
        if (p->loops->loops[i].parent == loop && !p->freq->waits[i]) return true;
    return false;
}

/* Tell so many induction variables in each round of a loop around theirs that two registers for each would be too much?
 */
static bool many_in_loops(const struct mg_rfunc *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->plan->n; i++) n += f->plan->list[i].kind == MG_COUNT_IV && !f->plan->list[i].one_run;
    return n > MOST_WIDE;
}

/* Three instructions and one register, or two of each? The latter only in innermost loops. */
static bool is_rare(const struct mg_rfunc *f, const struct mg_count *k)
{
    const struct mg_loops *l = f->plan->loops;
    if (k->kind == MG_COUNT_IV)
        return f->plan->ivs->list[k->iv].bits == 32 && !k->carries && !k->restores && many_in_loops(f);
    uint32_t loop = l->loop_of[k->block];
    while (k->kind == MG_COUNT_EDGE && loop != MG_NO_LOOP && !mg_loops_contains(l, loop, f->x.c->edges[k->edge]))
        loop = l->loops[loop].parent;
    return has_inner(f->plan, loop);
}

/* What callees send back, in the registers in which it comes. */
static void add_sources(const struct kernel *k, struct mg_rfunc *f)
{
    for (uint32_t i = 0; i < f->calls.n_sources; i++) {
        const struct mg_rsource *from = &f->calls.sources[i];
        struct mg_rc *c = &f->counters[f->n - f->calls.n_sources + i];
        *c = k->funcs[from->func].counters[from->counter];
        c->reg = k->carry->regs[(size_t)f->x.ix * k->carry->n_cells + c->cell];
    }
}

/* ---- what CTA 0 counts for all ---------------------------------------------------------------------------- */

static bool enters_alike(const struct mg_rfunc *f, const struct mg_alike *a, uint32_t loop)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_block *h = &c->blocks[f->plan->loops->loops[loop].header];
    for (uint32_t i = 0; i < h->n_preds; i++) {
        uint32_t p = c->preds[h->pred_at + i];
        if (c->reachable[p] && !mg_loops_contains(f->plan->loops, loop, p) && !mg_alike_end(a, c, p)) return false;
    }
    return true;
}

static bool is_alike(const struct mg_rfunc *f, const struct mg_alike *a, uint32_t counter)
{
    const struct mg_count *k = &f->plan->list[counter];
    const struct mg_rc *c = &f->counters[counter];
    if (!mg_storage_of(c)->alike || c->guarded) return false;
    bool alike = true;
    switch (k->kind) {
    case MG_COUNT_ENTRY:
        return false;
    case MG_COUNT_BLOCK:
        return a->block[k->block];
    case MG_COUNT_EDGE:
    case MG_COUNT_LEAVE:
        return mg_alike_end(a, f->x.c, k->block);
    case MG_COUNT_IV:
        for (uint32_t i = 0; i < k->n_ifs; i++) alike = alike && mg_alike_reg(a, k->ifs[i].pred);
        return alike && a->block[f->plan->ivs->list[k->iv].block] && enters_alike(f, a, f->plan->ivs->list[k->iv].loop);
    }
    return false;
}

/* Counters that every CTA's threads count alike reach memory from CTA 0 alone, whose share is multiplied where counts
 * are read: where all of them are like that, since asking for the CTA costs as many instructions as are saved
 * otherwise. */
static bool all_alike(const struct mg_rfunc *f)
{
    bool all = !f->x.ix && f->o->scope == MG_COUNT_FULL && !f->o->warps && !f->warps.n_cohorts && !f->packed.n_cuts &&
               !f->calls.n_sources && f->n_measured;
    struct mg_alike *a = all ? mg_alike_new(f->x.c, f->live.may_leave) : NULL;
    for (uint32_t i = 0; all && i < f->n_measured; i++) all = is_alike(f, a, i);
    mg_alike_free(a);
    return all;
}

static void plan_counters(const struct kernel *kernel, struct mg_rfunc *f)
{
    const struct mg_count_plan *p = f->plan;
    const struct mg_carry *y = kernel->carry;
    uint32_t n_lowest = 0;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) n_lowest += f->warps.rule[b] == MG_WR_LOWEST;
    f->n_measured = p->n;
    f->n = p->n + n_lowest + f->calls.n_sources;
    free(f->counters); /* of a function that carry.c tried first */
    f->counters = mg_xcalloc(f->n + 1, sizeof *f->counters);
    struct mg_wanted *all = mg_xcalloc(f->n + 1, sizeof *all);
    for (uint32_t i = 0; i < p->n; i++)
        all[i] = (struct mg_wanted){.width = p->list[i].width,
                                    .rare = is_rare(f, &p->list[i]),
                                    .events = p->list[i].events,
                                    .counter = i,
                                    .loop = p->list[i].kind == MG_COUNT_IV ? MG_NO_LOOP : mg_shared_loop(f, i)};
    uint32_t at = p->n;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) {
        if (f->warps.rule[b] != MG_WR_LOWEST) continue;
        for (uint32_t k = 0; k < f->warps.n_cohorts; k++)
            if (f->warps.cohorts[k].begin == b) f->warps.cohorts[k].flag = at;
        f->warps.counter[b] = at;
        all[at] = (struct mg_wanted){.width = mg_count_block_width(p, b),
                                     .rare = has_inner(p, p->loops->loop_of[b]),
                                     .events = p->freq->block[b],
                                     .counter = at,
                                     .loop = p->loops->loop_of[b]};
        at++;
    }
    if (f->calls.n_sources) add_sources(kernel, f);
    mg_rc_assign_kinds(f, all);
    free(all);
    f->alike = all_alike(f);
    mg_rc_assign_registers(f, y ? y->regs[(size_t)f->x.ix * y->n_cells] : 0);
}

/* ---- counting code ----------------------------------------------------------------------------------------- */

static void emit_measured(struct mg_rfunc *f, uint32_t i)
{
    const struct mg_count *k = &f->plan->list[i];
    switch (k->kind) {
    case MG_COUNT_ENTRY:
        mg_rc_event(f, i, (struct mg_spot){.at = f->x.t->entry_at[f->x.ix]});
        break;
    case MG_COUNT_BLOCK:
        mg_rc_event(f, i, (struct mg_spot){.at = mg_block_head(f->x.m, &f->x.c->blocks[k->block])});
        break;
    case MG_COUNT_EDGE:
        mg_rc_event(f, i, mg_place_edge(&f->place, k->block, k->edge));
        break;
    case MG_COUNT_LEAVE:
        mg_rc_event(f, i, mg_place_leave(&f->place, k->block));
        break;
    case MG_COUNT_IV:
        mg_rc_iv(f, i);
        break;
    }
}

/* At the block's head, the lowest active lane counts. */
static void emit_lowest(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    struct mg_spot s = {.at = mg_block_head(x->m, &x->c->blocks[b]), .guard = f->warps.low};
    x->at = s.at;
    if (f->warps.ballot)
        EMIT("vote.ballot.b32", f->warps.mask, f->warps.always);
    else
        EMIT("activemask.b32", f->warps.mask);
    EMIT("and.b32", f->warps.below, f->warps.mask, f->warps.lt);
    EMIT("setp.eq.u32", f->warps.low, f->warps.below, 0);
    mg_rc_event(f, f->warps.counter[b], s);
}

static bool counts_lowest(const struct mg_rfunc *f)
{
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++)
        if (f->warps.rule[b] == MG_WR_LOWEST) return true;
    return false;
}

static void emit_entry(struct mg_carry *y, struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    x->at = x->t->entry_at[x->ix];
    if (f->calls.carried)
        mg_carry_enter(y, f);
    else
        mg_rc_clear(f, NULL);
    if (f->lone.is) mg_alone_begin(f);
    if (!counts_lowest(f)) return;
    f->warps.mask = mg_emit_reg(x, "__mg_m", MG_TYPE_b32);
    f->warps.below = mg_emit_reg(x, "__mg_t", MG_TYPE_b32);
    f->warps.lt = mg_emit_reg(x, "__mg_lt", MG_TYPE_b32);
    f->warps.low = mg_emit_reg(x, "__mg_low", MG_TYPE_pred);
    EMIT("mov.u32", f->warps.lt, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    if (!f->warps.ballot) return;
    f->warps.always = mg_emit_reg(x, "__mg_true", MG_TYPE_pred);
    EMIT("setp.eq.u32", f->warps.always, f->warps.lt, f->warps.lt);
}

static void emit_end(struct mg_carry *y, struct mg_rfunc *f, uint32_t b)
{
    struct mg_module *m = f->x.m;
    mg_id last = f->x.c->blocks[b].last;
    const struct mg_node *n = &m->nodes.at[last];
    unsigned op = mg_node_form(m, n)->op;
    f->x.at = last;
    if (f->calls.carried) {
        if (op == MG_OP_ret) mg_carry_return(y, f, last);
    } else if (f->lone.is) {
        mg_alone_end(f, b);
    } else if (op == MG_OP_ret || op == MG_OP_exit) {
        mg_rc_flush(f, f->live.sets[b], n->guard, n->guard && (n->flags & MG_NF_GUARD_NOT), mg_leave_may_be_zero(f, b));
    } else if (f->live.may_leave[b]) {
        mg_rc_flush_lanes(f, f->live.sets[b]);
        mg_rc_clear(f, f->live.sets[b]);
    }
}

static void emit_func(struct mg_carry *y, struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    const struct mg_cfg *c = x->c;
    emit_entry(y, f);
    mg_id ret = mg_body_close(x->t, x->ix, c); /* blocks of their own come behind the body */
    x->at = x->t->entry_at[x->ix] ? x->t->entry_at[x->ix] : ret;
    mg_shared_clear(f);
    mg_saved_emit(f);
    mg_rc_renew_zeroes(f);
    for (uint32_t i = 0; i < f->plan->n; i++) emit_measured(f, i);
    mg_loop_words_emit(f);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (f->warps.rule[b] == MG_WR_LOWEST) emit_lowest(f, b);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->reachable[b]) emit_end(y, f, b);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->reachable[b] && !x->ix && f->n_measured && !f->lone.is) mg_leave_keep_rare(f, b);
    x->at = ret;
    if (ret && f->calls.carried)
        mg_carry_return(y, f, ret);
    else if (ret)
        mg_rc_flush(f, NULL, 0, false, true);
    if (f->calls.carried) mg_carry_check(y, f);
    mg_shared_rounds(f);
    mg_rc_fields_rounds(f);
}

/* ---- the kernel ------------------------------------------------------------------------------------------- */

static bool plan_func(struct kernel *k, uint32_t i, const uint64_t *measured)
{
    struct mg_rfunc *f = &k->funcs[i];
    const struct mg_cfg *c = k->s->cfgs[i];
    f->o = k->o;
    f->layout = k->l;
    f->x = (struct mg_emit){.t = k->t,
                            .m = k->t->m,
                            .c = c,
                            .ix = i,
                            .func = k->t->funcs[i],
                            .ctx = k->t->ctx_reg[i],
                            .may_exit = k->may_exit};
    f->live.may_leave = mg_xcalloc(c->n_blocks + 1, sizeof *f->live.may_leave);
    f->sync = f->x.m->sm >= 70;
    f->redux = f->x.m->sm >= 80;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        mg_id last = c->blocks[b].last;
        f->live.may_leave[b] = mg_node_form(f->x.m, &f->x.m->nodes.at[last])->op == MG_OP_call &&
                               mg_callee_may_exit(f->x.m, k->may_exit, last);
    }
    f->calls.back = mg_carry_cycles(k->carry, i);
    struct mg_count_opts o = {.wide_is_one = mg_rc_reals_are_fast(k->o->sm),
                              .entries_known = i == 0 || f->calls.counted,
                              .may_leave = f->live.may_leave,
                              .calls_back = f->calls.back,
                              .measured = measured ? measured + k->s->first_block[i] : NULL};
    f->plan = mg_count_plan_new(c, &o);
    if (mg_rc_goes_to_shared(f)) { /* where conditions behind loops cost more than events in rare blocks */
        mg_count_plan_free(f->plan);
        o.no_ifs = true;
        f->plan = mg_count_plan_new(c, &o);
    }
    f->place = (struct mg_placer){.m = f->x.m, .func = f->x.func, .c = c, .f = f->plan->freq};
    return !f->plan->fails;
}

/* Where a function's counters arrive: in the arrays of those that add them to memory. */
static void place_copies(struct kernel *k, uint32_t i, struct mg_counter_flow *out)
{
    struct mg_rfunc *f = &k->funcs[i];
    out->slots = mg_xcalloc((size_t)k->s->n_funcs * f->n_measured + 1, sizeof *out->slots);
    for (uint32_t r = 0; r < k->s->n_funcs; r++) {
        const struct mg_rfunc *to = &k->funcs[r];
        bool any = false;
        for (uint32_t q = 0; q < to->calls.n_sources; q++) {
            if (to->calls.sources[q].func != i) continue;
            uint32_t slot = to->counters[to->n - to->calls.n_sources + q].slot, counter = to->calls.sources[q].counter;
            out->slots[out->n_copies * f->n_measured + counter] = to->at + slot;
            if (!out->n_copies) f->counters[counter].slot = slot; /* what fills up goes there at once */
            any = true;
        }
        if (any && !out->n_copies++) f->at = to->at;
    }
}

/* Counters of the function in the launch's array, and how its blocks follow from them. */
static void place_counters(struct kernel *k, uint32_t i, struct mg_counter_flow *out)
{
    struct mg_rfunc *f = &k->funcs[i];
    struct mg_counter_layout *l = k->l;
    *out = (struct mg_counter_flow){
        .first_block = k->s->first_block[i], .at = f->at, .n = f->n_measured, .by_launch = i == 0};
    out->flow = f->plan->flow;
    f->plan->flow = (struct mg_flow){0};
    for (uint32_t e = 0; !f->calls.carried && e < out->flow.n_edges; e++) /* measured numbers become slots */
        if (out->flow.edges[e].from < MG_FLOW_LOOP) out->flow.edges[e].from = f->counters[out->flow.edges[e].from].slot;
    if (f->calls.counted) {
        out->callers = f->calls.callers;
        out->n_callers = f->calls.n_callers;
        f->calls.callers = NULL;
    }
    out->n_alike = f->alike ? mg_rc_slots(f) : 0;
    if (f->calls.carried) place_copies(k, i, out);
    out->cohorts = mg_xcalloc(f->warps.n_cohorts + 1, sizeof *out->cohorts);
    out->n_cohorts = f->warps.n_cohorts;
    for (uint32_t q = 0; q < f->warps.n_cohorts; q++) {
        struct mg_counter_cohort *to = &out->cohorts[q];
        struct mg_rcohort *from = &f->warps.cohorts[q];
        to->at = from->at = l->n_counters;
        l->n_counters += mg_rc_slots(f);
        to->entries_at = from->flag == UINT32_MAX ? UINT32_MAX : f->at + f->counters[from->flag].slot;
        to->blocks = mg_xcalloc(f->x.c->n_blocks + 1, sizeof *to->blocks);
        for (uint32_t b = 0; b < f->x.c->n_blocks; b++)
            if (f->warps.rule[b] == MG_WR_COHORT && f->warps.counter[b] == from->begin) to->blocks[to->n_blocks++] = b;
    }
    for (uint32_t b = 0; l->warps && b < f->x.c->n_blocks; b++) {
        bool own = f->warps.rule[b] == MG_WR_LOWEST && !f->calls.carried;
        l->warps[k->s->first_block[i] + b] = own ? f->at + f->counters[f->warps.counter[b]].slot : UINT32_MAX;
    }
    if (!l->warps || !f->calls.carried) return;
    out->lowest = mg_xcalloc(f->x.c->n_blocks + 1, sizeof *out->lowest);
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++)
        out->lowest[b] = f->warps.rule[b] == MG_WR_LOWEST ? f->warps.counter[b] : UINT32_MAX;
}

static void release_func(struct mg_rfunc *f)
{
    if (f->live.sets) free(f->live.sets[0]);
    free(f->live.sets);
    free(f->live.lanes);
    free(f->live.zero);
    free(f->counters);
    free(f->packed.banks);
    free(f->packed.cuts);
    free(f->packed.in_loop);
    free(f->shared.ranges);
    free(f->warps.rule);
    free(f->warps.counter);
    free(f->warps.cohorts);
    free(f->live.may_leave);
    free(f->calls.back);
    free(f->calls.sources);
    free(f->calls.callers);
    mg_placer_release(&f->place);
    mg_count_plan_free(f->plan);
}

static void emit_kernel(struct kernel *k)
{
    struct mg_counter_layout *l = k->l;
    bool ballot;
    if (!k->o->warps || !mg_choose_mask(k->t->m, &ballot)) ballot = false;
    l->flows = mg_xcalloc(k->s->n_funcs + 1, sizeof *l->flows);
    mg_alone_plan(&k->funcs[0]);
    if (k->carry) mg_carry_assign(k->carry, k->funcs, k->order);
    for (uint32_t n = 0; n < k->s->n_funcs; n++) find_rules(&k->funcs[n]);
    for (uint32_t n = 0; n < k->s->n_funcs; n++) {
        struct mg_rfunc *f = &k->funcs[k->order[n]];
        f->warps.ballot = ballot;
        mg_carry_receive(k->carry, k->funcs, k->order[n]);
        if (f->calls.carried) continue;
        plan_counters(k, f);
        mg_rc_find_live(f);
        f->shared.arrives = mg_rc_all_drain(f);
        f->at = l->n_counters;
        l->n_counters += mg_rc_slots(f);
    }
    for (uint32_t n = 0; n < k->s->n_funcs; n++) place_counters(k, k->order[n], &l->flows[l->n_flows++]);
    l->copy_words = (l->n_counters + 15) / 16 * 16;
    for (uint32_t i = 0; i < k->s->n_funcs; i++)
        if (k->s->cfgs[i]->n_blocks) emit_func(k->carry, &k->funcs[i]);
    for (uint32_t i = 0; k->carry && i < k->s->n_funcs; i++) mg_carry_calls(k->carry, k->funcs, i);
    mg_count_others(k->t, l);
}

enum mg_err mg_count_by_register(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                                 struct mg_counter_layout *l, struct mg_buf *plan, struct mg_diag *d)
{
    struct kernel k = {.o = o, .s = s, .t = t, .l = l};
    struct mg_counter_opts no_warps = *o;
    bool ballot;
    if (o->warps && !mg_choose_mask(t->m, &ballot)) {
        no_warps.warps = false;
        k.o = &no_warps;
    }
    *l = (struct mg_counter_layout){
        .n_blocks = s->n_blocks, .n_copies = o->shards, .counter_words = 1, .other_at = UINT32_MAX};
    if (t->n_native_calls) l->other_at = l->n_counters++;
    mg_raise_target(t->m, o->sm);
    k.funcs = mg_xcalloc(s->n_funcs + 1, sizeof *k.funcs);
    k.may_exit = mg_funcs_may_exit(t->m, t);
    k.carry = mg_carry_new(s, t, k.may_exit);
    order_funcs(&k);
    uint64_t *measured = mg_count_weights_of(o->weights, s->kernel, s->n_blocks);
    bool ok = true;
    for (uint32_t i = 0; i < s->n_funcs; i++) ok = plan_func(&k, i, measured) && ok;
    if (ok) {
        if (k.o->warps) l->warps = mg_xcalloc(s->n_blocks + 1, sizeof *l->warps);
        emit_kernel(&k);
    }
    for (uint32_t i = 0; ok && plan && i < s->n_funcs; i++)
        if (s->cfgs[i]->n_blocks) mg_count_dump(&k.funcs[i], mg_name(t->m, t->m->funcs.at[t->funcs[i]].name), plan);
    for (uint32_t i = 0; i < s->n_funcs; i++) release_func(&k.funcs[i]);
    free(measured);
    free(k.funcs);
    free(k.may_exit);
    free(k.order);
    mg_carry_free(k.carry);
    if (ok) return MG_ERR_OK;
    mg_counter_layout_release(l);
    enum mg_err err = mg_count_by_class(o, s, t, l, d);
    if (plan && !err) mg_count_dump_layout(s, l, plan);
    return err; /* a branch through a table with a guard: nothing can be put on its ways */
}
