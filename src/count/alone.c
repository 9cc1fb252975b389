/* Scheme register, kernels that are one lane's work: nearly every block stands behind a branch on `tid.x == n`, and
 * is entered once. Each event of such a block is an addition to memory there and then:
 *
 *     entry         base = this multiprocessor's copy of the counters;  one = 1
 *     event         red.global.add [base + 8 * slot], one
 *     at the end    in front of the common last block: what loops have counted and callees sent back, lane by lane
 *
 * One lane alone has no sums to take and nobody to wait for. Where a kernel has neither warp operations nor anything
 * behind the place where that lane meets the others, ptxas puts no convergence barrier at any of its branches; a
 * flush there has it put two instructions at nearly each (rod_myocyte on an H200: docs/history/2026-11.md). That
 * lanes are alone is a guess of cost, on which no count depends. */
#include "analysis/dom.h"
#include "count/storage/storage.h"

#include <stdlib.h>

#define EMIT(...)   EMIT_AT(x, __VA_ARGS__)
#define ALONE_FROM  32 /* counters: of fewer the flush is cheap */
#define MOST_BESIDE 4  /* counters of other lanes */

static bool is_tid_x(const struct mg_module *m, const struct mg_defs *d, const struct mg_opnd *o)
{
    if (o->kind == MG_OPND_reg) {
        const struct mg_node *n = &m->nodes.at[mg_def_of(d, o->id)];
        if (!mg_def_of(d, o->id) || n->guard || mg_node_form(m, n)->op != MG_OP_mov || n->n_opnds != 2) return false;
        o = &m->opnds.at[n->opnd + 1];
    }
    return o->kind == MG_OPND_sreg && o->id == MG_SREG_tid && o->sub == 1;
}

/* The way out of the block that only lanes of one tid.x take, as an index of its edges; UINT32_MAX: none. */
static uint32_t lone_way(const struct mg_cfg *c, const struct mg_defs *d, uint32_t b)
{
    const struct mg_module *m = c->m;
    const struct mg_block *k = &c->blocks[b];
    const struct mg_node *end = &m->nodes.at[k->last], *set = &m->nodes.at[mg_def_of(d, end->guard)];
    int equal = k->n_succs == 2 && end->guard ? mg_branch_equality(m, d, end) : 0;
    if (!equal || set->n_opnds != 3 || set->guard) return UINT32_MAX;
    const struct mg_opnd *o = &m->opnds.at[set->opnd];
    if (!(is_tid_x(m, d, &o[1]) && o[2].kind == MG_OPND_imm) && !(is_tid_x(m, d, &o[2]) && o[1].kind == MG_OPND_imm))
        return UINT32_MAX;
    return k->succ_at + (equal > 0); /* the first is the way that falls through */
}

static void find_lone_blocks(const struct mg_rfunc *f, bool *lone)
{
    const struct mg_cfg *c = f->x.c;
    struct mg_defs d = mg_single_defs(c);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t way = c->reachable[b] ? lone_way(c, &d, b) : UINT32_MAX;
        if (way == UINT32_MAX || c->blocks[c->edges[way]].n_preds != 1) continue;
        for (uint32_t k = 0; k < c->n_blocks; k++)
            lone[k] = lone[k] || (c->reachable[k] && mg_dom_over(f->plan->dom, c->edges[way], k));
    }
    free(d.at);
}

static bool only_leaves(const struct mg_cfg *c, uint32_t b)
{
    unsigned op = mg_node_form(c->m, &c->m->nodes.at[c->blocks[b].last])->op;
    return c->blocks[b].n_insts == 1 && !c->blocks[b].n_succs && (op == MG_OP_ret || op == MG_OP_exit);
}

/* Do all lone blocks lead to such, or to a block that only leaves? And does nobody else call, or leave where something
 * has to be added? */
static bool ends_alone(const struct mg_rfunc *f, const bool *lone)
{
    const struct mg_cfg *c = f->x.c;
    bool good = true;
    for (uint32_t b = 0; b < c->n_blocks && good; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b] || only_leaves(c, b)) continue;
        good = !k->leaves && !f->live.may_leave[b] && (lone[b] || !mg_direct_callee(c->m, k->last));
        for (uint32_t s = 0; lone[b] && s < k->n_succs; s++) {
            uint32_t to = c->edges[k->succ_at + s];
            good = good && (lone[to] || only_leaves(c, to));
        }
    }
    return good;
}

/* Does all of the counter's code stand in lone blocks? */
static bool is_lone(const struct mg_rfunc *f, const bool *lone, const struct mg_count *k)
{
    if (k->kind == MG_COUNT_IV) return lone[f->plan->loops->loops[f->plan->ivs->list[k->iv].loop].header];
    return lone[k->block] || (k->kind == MG_COUNT_EDGE && lone[f->x.c->edges[k->edge]]);
}

void mg_alone_plan(struct mg_rfunc *f)
{
    const struct mg_count_plan *p = f->plan;
    const struct mg_cfg *c = f->x.c;
    if (f->x.ix || f->o->scope != MG_COUNT_FULL || f->o->warps || p->n < ALONE_FROM) return;
    bool *lone = mg_xcalloc(c->n_blocks + 1, sizeof *lone), good = true;
    uint32_t n = 0, beside = 0;
    find_lone_blocks(f, lone);
    for (uint32_t i = 0; i < p->n; i++) {
        bool once = p->list[i].width == MG_WIDTH_BIT, here = is_lone(f, lone, &p->list[i]);
        n += once && here;
        beside += once && !here;
        good = good && (once || here) && p->list[i].kind != MG_COUNT_ENTRY;
    }
    f->lone.is = good && n >= ALONE_FROM && beside <= MOST_BESIDE && ends_alone(f, lone);
    free(lone);
}

void mg_alone_begin(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    mg_id one = mg_rc_t32(f, 5);
    f->lone.base = mg_emit_reg(x, "__mg_base", MG_TYPE_b64);
    f->lone.one = mg_emit_reg(x, "__mg_one", MG_TYPE_b64);
    mg_rc_address(f, f->lone.base);
    mg_rc_one(f, one); /* lest ptxas set two registers to it at each event */
    EMIT("cvt.u64.u32", f->lone.one, one);
}

static const char *alone_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    const struct mg_rfunc *f = k->f;
    if (w->width == MG_WIDTH_BIT) return f->lone.is ? "the kernel is one lane's work" : NULL;
    bool full = k->shares && k->cells + k->need > k->most && mg_shared_takes(f, w->counter);
    return full && !f->shared.all && !k->in_loops && mg_kinds_waits_on(f, w->counter)
               ? "rounds of a wait for a barrier, hardly ever run"
               : NULL;
}

static void alone_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)k, (void)w;
} /* places are given out at the end */

static void alone_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    if (f->lone.is)
        EMIT("red.global.add.u64", mg_o_addr_reg(f->lone.base, 8 * (int64_t)c->slot), f->lone.one);
    else
        EMIT("red.global.add.u64", mg_o_addr_reg(x->ctx, MG_CTX_BYTES + 8 * ((int64_t)f->at + c->slot)),
             1); /* hardly ever run */
}

const struct mg_storage mg_storage_alone = {
    .name = "alone", .in_memory = true, .holds = alone_holds, .take = alone_take, .event = alone_event};

static bool is_empty(const struct mg_rfunc *f, const uint64_t *set)
{
    for (uint32_t w = 0; w < f->live.n_words; w++)
        if (set[w]) return false;
    return true;
}

/* Fields of callees without a question whether they are 0: a branch more costs the lane more than the addition. */
static void add_unasked(struct mg_rfunc *f, const struct mg_rc *c, mg_id guard)
{
    struct mg_emit *x = &f->x;
    mg_id field = mg_rc_t32(f, 7), wide = mg_rc_t64(f, 0);
    EMIT("bfe.u32", field, c->reg, mg_o_imm(c->bit), mg_o_imm(c->width));
    EMIT("cvt.u64.u32", wide, field);
    mg_emit_guard(x, guard, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(f->lone.base, 8 * (int64_t)c->slot), wide);
    mg_emit_guard(x, 0, false);
}

void mg_alone_end(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    const struct mg_cfg *c = x->c;
    for (uint32_t i = 0; only_leaves(c, b) && i < c->blocks[b].n_preds; i++) {
        uint32_t from = c->preds[c->blocks[b].pred_at + i];
        if (!c->reachable[from] || is_empty(f, f->live.sets[from])) continue;
        for (uint32_t s = 0; s < c->blocks[from].n_succs; s++) {
            uint32_t edge = c->blocks[from].succ_at + s;
            if (c->edges[edge] != b) continue;
            struct mg_spot to = mg_place_edge(&f->place, from, edge);
            mg_id guard = to.guard ? mg_rc_tp(f, 3) : 0;
            x->at = to.at;
            if (guard) EMIT(to.guard_not ? "not.pred" : "mov.pred", guard, to.guard);
            mg_emit_guard(x, guard, false);
            mg_rc_unreal(f, f->live.sets[from]);
            mg_emit_guard(x, 0, false);
            for (uint32_t k = 0; k < f->n; k++) {
                if (!mg_rc_in(f->live.sets[from], k)) continue;
                if (f->counters[k].kind == MG_RC_FIELD)
                    add_unasked(f, &f->counters[k], guard);
                else
                    mg_rc_add_lane(f, &f->counters[k], f->lone.base, guard);
            }
        }
    }
}
