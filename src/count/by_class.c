/* Scheme class of the tool blocks: counts at heads of blocks, without a new basic block, as few of them as need be.
 *
 * Blocks that are entered equally often (analysis/equiv.h) share a counter, which one of them, the class's
 * representative, keeps. Lanes of a cohort (analysis/uniform.h) move together, so that blocks of one class and one
 * cohort share a counter of warp entries, too, which the representative keeps where it is one of them; every other
 * block has its own. Nothing is kept in registers, and nothing is done where a thread ends.
 *
 * The code says what it counts (insert/emit.h); software devices see to the rest. On a GPU the lowest active lane adds
 * to memory at once.
 *
 * scope=cta|warp: a predicate computed at the entry guards all of it. */
#include <stdlib.h>
#include <string.h>

#include "analysis/equiv.h"
#include "analysis/uniform.h"
#include "count/schemes.h"

struct block_plan {
    uint32_t dense;    /* id among the kernel's blocks */
    uint32_t cls;      /* class of equally frequent blocks; MG_NO_CLASS: never entered */
    uint32_t warps_at; /* counter of its warp entries that it keeps; UINT32_MAX: none */
};
struct class_plan {
    uint32_t rep; /* block that counts */
    uint32_t at;  /* counter */
};

struct emitter {
    struct mg_emit x;
    const struct mg_counter_opts *o;
    struct mg_counter_layout *layout;
    struct block_plan *plans;
    struct class_plan *classes;
    bool *may_leave; /* block -> its call may end the lane */
    mg_id mine;
    mg_id base, mask, below, low, lt, always; /* on a GPU */
    bool ballot;                              /* vote.ballot stands in for activemask */
};

#define EMIT(e, ...) EMIT_AT(&(e)->x, __VA_ARGS__)

/* ---- counting -------------------------------------------------------------------------------- */

static void begin_code(struct emitter *e)
{
    struct mg_emit *x = &e->x;
    e->base = mg_emit_reg(x, "__mg_base", MG_TYPE_b64);
    EMIT(e, "ld.global.u64", e->base, mg_o_addr_reg(x->ctx, MG_CTX_COUNTERS));
    if (!e->layout->warps) return;
    e->mask = mg_emit_reg(x, "__mg_m", MG_TYPE_b32);
    e->below = mg_emit_reg(x, "__mg_t", MG_TYPE_b32);
    e->lt = mg_emit_reg(x, "__mg_lt", MG_TYPE_b32);
    e->low = mg_emit_reg(x, "__mg_p", MG_TYPE_pred);
    EMIT(e, "mov.u32", e->lt, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    if (!e->ballot) return;
    e->always = mg_emit_reg(x, "__mg_true", MG_TYPE_pred);
    EMIT(e, "setp.eq.u32", e->always, e->lt, e->lt);
}

/* Every lane adds for itself, or the lowest one for its warp. How many lanes there are is not asked: pieces of a warp
 * that meet behind the question would go on with the number of one (patch/patch.h, mg_value_own). */
static void add_to_memory(struct emitter *e, uint32_t counter, bool warps)
{
    mg_emit_guard(&e->x, 0, false);
    if (warps && e->ballot)
        EMIT(e, "vote.ballot.b32", e->mask, e->always);
    else if (warps)
        EMIT(e, "activemask.b32", e->mask);
    if (warps) {
        EMIT(e, "and.b32", e->below, e->mask, e->lt);
        EMIT(e, "setp.eq.u32", e->low, e->below, 0);
    }
    mg_emit_guard_by(&e->x, e->mine, false, warps ? e->low : 0);
    EMIT(e, "red.global.add.u64", mg_o_addr_reg(e->base, 8 * (int64_t)counter), 1);
    mg_emit_guard(&e->x, 0, false);
}

static void count(struct emitter *e, uint32_t counter, bool warps)
{
    if (!e->x.m->marked) {
        add_to_memory(e, counter, warps);
        return;
    }
    mg_emit_guard(&e->x, e->mine, false);
    mg_emit_count(&e->x, counter, mg_o_imm(1), warps);
    mg_emit_guard(&e->x, 0, false);
}

static void emit_head(struct emitter *e, uint32_t b)
{
    const struct block_plan *p = &e->plans[b];
    if (p->cls == MG_NO_CLASS) return;
    e->x.at = mg_block_head(e->x.m, &e->x.c->blocks[b]);
    if (e->classes[p->cls].rep == b) count(e, e->classes[p->cls].at, false);
    if (p->warps_at != UINT32_MAX) count(e, p->warps_at, true);
}

/* ---- planning -------------------------------------------------------------------------------- */

static void plan_classes(struct emitter *e, const struct mg_equiv *q)
{
    e->classes = mg_xcalloc(q->n_classes + 1, sizeof *e->classes);
    for (uint32_t k = 0; k < q->n_classes; k++)
        e->classes[k] = (struct class_plan){UINT32_MAX, e->layout->n_counters++};
    for (uint32_t b = e->x.c->n_blocks; b-- > 0;)
        if (q->class_of[b] != MG_NO_CLASS) e->classes[q->class_of[b]].rep = b;
}

/* The representative of a class comes before the others, so that it keeps what it shares with them. */
static void plan_warps(struct emitter *e, const struct mg_uniform *u)
{
    struct mg_map group = MG_MAP_INIT;
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        if (p->cls == MG_NO_CLASS) continue;
        uint64_t key = (uint64_t)p->cls << 32 | u->cohort[b], known;
        bool shares = u->cohort[b] != MG_NO_COHORT;
        if (shares && mg_map_get(&group, key, &known)) {
            e->layout->warps[p->dense] = (uint32_t)known;
            continue;
        }
        e->layout->warps[p->dense] = p->warps_at = e->layout->n_counters++;
        if (shares) mg_map_set(&group, key, p->warps_at);
    }
    mg_map_release(&group);
}

static void plan_blocks(struct emitter *e, const struct mg_sites *s, uint32_t zero_at)
{
    const struct mg_cfg *c = e->x.c;
    struct mg_equiv *q = mg_equiv_new(c, e->may_leave);
    plan_classes(e, q);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        *p = (struct block_plan){s->first_block[e->x.ix] + b, q->class_of[b], UINT32_MAX};
        e->layout->threads[p->dense] = p->cls == MG_NO_CLASS ? zero_at : e->classes[p->cls].at;
        if (e->layout->warps) e->layout->warps[p->dense] = zero_at;
    }
    if (e->layout->warps) {
        struct mg_loops *l = mg_loops_new(c);
        struct mg_uniform *u = mg_uniform_new(c, l);
        plan_warps(e, u);
        mg_uniform_free(u);
        mg_loops_free(l);
    }
    mg_equiv_free(q);
}

/* ---- the function ---------------------------------------------------------------------------- */

static void instrument_func(struct emitter *e, const struct mg_sites *s, uint32_t zero_at)
{
    const struct mg_cfg *c = e->x.c;
    e->plans = mg_xcalloc(c->n_blocks + 1, sizeof *e->plans);
    e->may_leave = mg_xcalloc(c->n_blocks + 1, sizeof *e->may_leave);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        mg_id last = c->blocks[b].last;
        e->may_leave[b] = mg_node_form(e->x.m, &e->x.m->nodes.at[last])->op == MG_OP_call &&
                          mg_callee_may_exit(e->x.m, e->x.may_exit, last);
    }
    plan_blocks(e, s, zero_at);
    e->x.at = e->x.t->entry_at[e->x.ix];
    e->mine = mg_count_mine(&e->x, e->o);
    if (!e->x.m->marked) begin_code(e);
    for (uint32_t b = 0; b < c->n_blocks; b++) emit_head(e, b);
    free(e->classes);
    free(e->plans);
    free(e->may_leave);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static uint32_t begin_layout(struct mg_counter_layout *l, const struct mg_sites *s, bool warps, bool others)
{
    uint32_t n = s->n_blocks;
    *l = (struct mg_counter_layout){.n_blocks = n,
                                    .n_copies = 1,
                                    .counter_words = 1,
                                    .other_at = UINT32_MAX,
                                    .threads = mg_xcalloc(n + 1, sizeof *l->threads)};
    if (warps) l->warps = mg_xcalloc(n + 1, sizeof *l->warps);
    uint32_t zero_at = l->n_counters++; /* nothing adds to it: for blocks no path reaches */
    if (others) l->other_at = l->n_counters++;
    return zero_at;
}

enum mg_err mg_count_by_class(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                              struct mg_counter_layout *l, struct mg_diag *d)
{
    bool ballot = false, warps = o->warps && (t->m->marked || mg_choose_mask(t->m, &ballot));
    (void)d;
    uint32_t zero_at = begin_layout(l, s, warps, t->n_native_calls != 0);
    bool *may_exit = mg_funcs_may_exit(t->m, t);
    for (uint32_t i = 0; i < t->n_funcs; i++) {
        struct emitter e = {.o = o,
                            .layout = l,
                            .x = {.t = t,
                                  .m = t->m,
                                  .c = s->cfgs[i],
                                  .ix = i,
                                  .func = t->funcs[i],
                                  .ctx = t->ctx_reg[i],
                                  .may_exit = may_exit},
                            .ballot = ballot};
        instrument_func(&e, s, zero_at);
    }
    mg_count_others(t, l);
    free(may_exit);
    return MG_ERR_OK;
}
