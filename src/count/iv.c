/* Counting in scheme register by induction variables: what the loop's own register had when the loop was entered
 * is taken off what it has where the loop is left; inside, nothing is counted. */
#include "count/storage/storage.h"

#include <string.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

static mg_id iv_temp(struct mg_rfunc *f, unsigned bits)
{
    return mg_emit_reg(&f->x, "__mg_v", bits == 64 ? MG_TYPE_u64 : MG_TYPE_u32);
}

static bool is_direct(const struct mg_rfunc *f, uint32_t i)
{
    const struct mg_count *k = &f->plan->list[i];
    return k->one_run && !k->carries && !k->n_ifs && !k->restores && !f->calls.adds &&
           f->counters[i].kind == (f->plan->ivs->list[k->iv].bits == 64 ? MG_RC_64 : MG_RC_32);
}

/* Fields of a packed register take what the induction variable has off and on again as they stand: the rest of that is
 * beyond them both times, or gone. */
static bool is_packed(const struct mg_rfunc *f, uint32_t i)
{
    const struct mg_count *k = &f->plan->list[i];
    return f->counters[i].kind == MG_RC_FEW && k->one_run && !k->n_ifs && !k->restores && !k->less_one &&
           !f->plan->ivs->list[k->iv].shift;
}

/* Where the loop is entered. */
static void iv_enter(struct mg_rfunc *f, uint32_t i, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    struct mg_rc *c = &f->counters[i];
    const struct mg_iv *v = &f->plan->ivs->list[f->plan->list[i].iv];
    x->at = s.at;
    mg_emit_guard(x, s.guard, s.guard_not);
    if (is_direct(f, i)) {
        const char *form = v->bits == 64 ? (v->down ? "add.u64" : "sub.u64") : v->down ? "add.u32" : "sub.u32";
        EMIT(form, c->reg, c->reg, v->reg);
    } else if (is_packed(f, i)) {
        mg_few_add(f, i, v->reg, v->bits == 64, !v->down);
    } else {
        if (!c->from) c->from = iv_temp(f, v->bits);
        EMIT(v->bits == 64 ? "mov.b64" : "mov.b32", c->from, v->reg);
        if (f->plan->list[i].carries) EMIT("mov.b32", c->high, 0);
    }
    mg_emit_guard(x, 0, false);
}

/* The spot, for lanes in which the counter's conditions hold. */
static struct mg_spot only_ifs(struct mg_rfunc *f, const struct mg_count *k, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    mg_id all = mg_emit_reg(x, "__mg_if", MG_TYPE_pred);
    mg_emit_guard(x, 0, false);
    if (s.guard) EMIT(s.guard_not ? "not.pred" : "mov.pred", all, s.guard);
    for (uint32_t i = 0; i < k->n_ifs; i++) {
        struct mg_opnd p = k->ifs[i].is_not ? mg_o_not(k->ifs[i].pred) : mg_o_reg(k->ifs[i].pred);
        if (i || s.guard)
            EMIT("and.pred", all, all, p);
        else
            EMIT(k->ifs[i].is_not ? "not.pred" : "mov.pred", all, k->ifs[i].pred);
    }
    s.guard = all;
    s.guard_not = false;
    return s;
}

/* Where it is left: rounds since, less one where that measures the latch's edge. */
static void iv_leave(struct mg_rfunc *f, uint32_t i, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    struct mg_rc *c = &f->counters[i];
    const struct mg_count *k = &f->plan->list[i];
    const struct mg_iv *v = &f->plan->ivs->list[k->iv];
    bool wide = v->bits == 64, direct = is_direct(f, i);
    const char *add = wide ? "add.u64" : "add.u32", *sub = wide ? "sub.u64" : "sub.u32";
    mg_id d = direct ? c->reg : 0;
    x->at = s.at;
    mg_emit_guard(x, s.guard, s.guard_not);
    if (is_packed(f, i)) {
        mg_few_add(f, i, v->reg, wide, v->down);
        mg_emit_guard(x, 0, false);
        return;
    }
    if (k->carries) { /* the register and its carries are one of 64 bits */
        mg_id high = iv_temp(f, 64), from = iv_temp(f, 64);
        wide = true;
        d = iv_temp(f, 64);
        EMIT("cvt.u64.u32", d, v->reg);
        EMIT("cvt.u64.u32", high, c->high);
        EMIT("shl.b64", high, high, 32);
        EMIT("or.b64", d, d, high);
        EMIT("cvt.u64.u32", from, c->from);
        if (v->down)
            EMIT("sub.u64", d, from, d);
        else
            EMIT("sub.u64", d, d, from);
    } else if (direct) {
        EMIT(v->down ? sub : add, d, d, v->reg);
    } else {
        d = iv_temp(f, v->bits);
        if (v->down)
            EMIT(sub, d, c->from, v->reg);
        else
            EMIT(sub, d, v->reg, c->from);
    }
    if (k->less_one) EMIT(sub, d, d, (int64_t)1 << v->shift);
    if (v->shift) EMIT(wide ? "shr.u64" : "shr.u32", d, d, mg_o_imm(v->shift));
    if (k->restores) {
        mg_id all = iv_temp(f, 64);
        EMIT("cvt.u64.u32", all, d);
        EMIT("add.u64", d = all, all, 1);
        wide = true;
    }
    if (k->n_ifs) {
        s = only_ifs(f, k, s);
        mg_emit_guard(x, s.guard, s.guard_not);
    }
    if (!direct) mg_storage_of(c)->add(f, i, d, wide, s);
    mg_emit_guard(x, 0, false);
}

/* Makes the application's step set the carry flag and counts it. */
static void count_carries(struct mg_rfunc *f, uint32_t i)
{
    struct mg_emit *x = &f->x;
    struct mg_rc *c = &f->counters[i];
    mg_id step = f->plan->ivs->list[f->plan->list[i].iv].step;
    bool adds = mg_node_form(x->m, &x->m->nodes.at[step])->op == MG_OP_add;
    int64_t by = (int32_t)(uint32_t)x->m->opnds.at[x->m->nodes.at[step].opnd + 2].val;
    const char *form = adds ? "add.cc.u32" : "sub.cc.u32";
    if (!c->high) c->high = iv_temp(f, 32);
    mg_id id = mg_form_intern(x->m, form, strlen(form));
    x->m->nodes.at[step].ref = id;
    x->at = x->m->nodes.at[step].next;
    EMIT(adds ? "addc.u32" : "subc.u32", c->high, c->high, mg_o_imm(by < 0 ? -1 : 0));
}

/* A register that steps in every round. */
static void step_own(struct mg_rfunc *f, struct mg_iv *v)
{
    struct mg_emit *x = &f->x;
    v->reg = mg_emit_reg(x, "__mg_own", MG_TYPE_u32);
    x->at = x->t->entry_at[x->ix];
    EMIT("mov.u32", v->reg, 0);
    x->at = mg_block_head(x->m, &x->c->blocks[v->block]);
    EMIT("add.u32", v->reg, v->reg, 1);
}

void mg_rc_iv(struct mg_rfunc *f, uint32_t i)
{
    const struct mg_cfg *c = f->x.c;
    struct mg_iv *v = &f->plan->ivs->list[f->plan->list[i].iv];
    if (v->own && !v->reg) step_own(f, v);
    if (f->plan->list[i].carries) count_carries(f, i);
    const struct mg_loops *l = f->plan->loops;
    uint32_t loop = f->plan->ivs->list[f->plan->list[i].iv].loop;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b]) continue;
        bool inside = mg_loops_contains(l, loop, b);
        unsigned op = mg_node_form(f->x.m, &f->x.m->nodes.at[k->last])->op;
        if (inside && k->leaves && op != MG_OP_trap) iv_leave(f, i, mg_place_leave(&f->place, b));
        for (uint32_t s = 0; s < k->n_succs; s++) {
            uint32_t to = c->edges[k->succ_at + s];
            if (!inside && to == l->loops[loop].header)
                iv_enter(f, i, mg_place_edge(&f->place, b, k->succ_at + s));
            else if (inside && !mg_loops_contains(l, loop, to))
                iv_leave(f, i, mg_place_edge(&f->place, b, k->succ_at + s));
        }
    }
}
