/* Fields of 8 bits, added to memory before one is full: the test, and what runs when it holds.
 *
 * Of those that travel with calls (count/carry.c) each is looked at. In a function that may call itself what runs
 * stands in a function of its own, which is called: what it keeps for itself would else be saved by every activation.
 * Elsewhere it stands behind the body.
 *
 * Of a function's own (storage/few.c) the rounds of the loops are counted in which they stand: what is in a loop, and
 * in none inside it, happens at most once between two entries of its header. */
#include "count/regs.h"

#include <stdio.h>
#include <string.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

/* Does this counter stand for a register of fields? One does for each. */
static bool is_first(const struct mg_rfunc *f, uint32_t i)
{
    return f->counters[i].kind == MG_RC_FIELD && !f->counters[i].bit;
}

/* Fields of the first n counters, register by register, field by field in a loop: rarely run, and in few registers. at:
 * the counter of slot 0; mine: a predicate that tells who counts, or 0. */
static void add_fields(struct mg_rfunc *f, mg_id ctx, uint32_t n, uint32_t at, mg_id mine)
{
    struct mg_emit *x = &f->x;
    mg_id base = mg_rc_t64(f, 3), wide = mg_rc_t64(f, 0), p = mg_rc_tp(f, 1), v = mg_rc_t32(f, 5),
          left = mg_rc_t32(f, 9);
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_rc *c = &f->counters[i];
        if (!is_first(f, i)) continue;
        mg_id again = mg_rc_label(f);
        EMIT("add.u64", base, ctx, mg_o_imm(MG_CTX_BYTES + 8 * ((int64_t)at + c->slot)));
        EMIT("mov.b32", left, c->reg);
        mg_rc_put_label(f, again);
        mg_node_insert_before(x->m, x->func, x->at,
                              mg_node_new_kind(x->m, MG_NODE_pragma, mg_intern_adds(&x->m->names, "nounroll")));
        EMIT("and.b32", v, left, 255);
        EMIT("setp.ne.u32", p, v, 0);
        if (mine) EMIT("and.pred", p, p, mine);
        EMIT("cvt.u64.u32", wide, v);
        mg_emit_guard(x, p, false);
        EMIT("red.global.add.u64", mg_o_addr_reg(base, 0), wide);
        mg_emit_guard(x, 0, false);
        EMIT("shr.u32", left, left, 8);
        EMIT("add.u64", base, base, 8);
        EMIT("setp.ne.u32", p, left, 0);
        mg_rc_branch(f, p, false, again);
    }
}

/* What first lanes of cohorts have counted goes to the cohorts' counters, too. */
static void empty_fields(struct mg_rfunc *f, mg_id ctx, uint32_t n)
{
    struct mg_emit *x = &f->x;
    mg_id mine = mg_count_mine(x, f->o);
    for (uint32_t k = 0; k < f->warps.n_cohorts; k++) {
        mg_id lead = mg_rc_lead(f, &f->warps.cohorts[k]), skip = mg_rc_label(f);
        mg_rc_branch(f, lead, true, skip);
        add_fields(f, ctx, n, f->warps.cohorts[k].at, mine);
        mg_rc_put_label(f, skip);
    }
    add_fields(f, ctx, n, f->at, mine);
    for (uint32_t i = 0; i < n; i++)
        if (is_first(f, i)) EMIT("mov.u32", f->counters[i].reg, 0);
}

/* A function that gets the context's address and the registers of f's fields, and adds these to memory. */
static mg_id make_spill(struct mg_rfunc *f)
{
    struct mg_module *m = f->x.m;
    char name[32];
    mg_id func = m->funcs.n;
    snprintf(name, sizeof name, "__mg_spill%u", (unsigned)func);
    *mg_vec_push(&m->funcs) = (struct mg_func){
        .name = mg_intern_adds(&m->names, name), .kind = MG_FUNC_func, .defined = 1, .def = func, .stays = 1};
    mg_module_add_item(m, (struct mg_item){.kind = MG_ITEM_func, .id = func});
    struct mg_rfunc g = {.x = f->x, .o = f->o, .layout = f->layout, .at = f->at, .n_measured = f->n_measured};
    struct mg_emit *x = &g.x;
    mg_id ctx;
    x->func = func;
    x->at = 0;
    x->both = 0;
    g.counters = mg_xcalloc(f->n_measured + 1, sizeof *g.counters);
    memcpy(g.counters, f->counters, f->n_measured * sizeof *g.counters);
    mg_id at = mg_func_add_param(m, func, mg_intern_adds(&m->names, "__mg_at"), MG_TYPE_b64);
    EMIT("ld.param.b64", ctx = mg_emit_reg(x, "__mg_ctxp", MG_TYPE_b64), mg_o_addr_var(at, 0));
    for (uint32_t i = 0; i < f->n_measured; i++) {
        if (!is_first(f, i)) continue;
        snprintf(name, sizeof name, "__mg_in%u", (unsigned)m->vars.n);
        mg_id param = mg_func_add_param(m, func, mg_intern_adds(&m->names, name), MG_TYPE_b32);
        g.counters[i].reg = mg_emit_reg(x, "__mg_c", MG_TYPE_b32);
        EMIT("ld.param.b32", g.counters[i].reg, mg_o_addr_var(param, 0));
    }
    add_fields(&g, ctx, g.n_measured, g.at, mg_count_mine(x, g.o));
    mg_insert(m, func, 0, "ret", NULL, 0);
    free(g.counters);
    return func;
}

static void call_spill(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    uint32_t n = 0;
    if (!f->calls.spill) f->calls.spill = make_spill(f);
    mg_id args = mg_opnd_alloc(x->m, f->n_measured + 1);
    x->m->opnds.at[args + n++] = mg_o_reg(x->ctx);
    for (uint32_t i = 0; i < f->n_measured; i++)
        if (is_first(f, i)) x->m->opnds.at[args + n++] = mg_o_reg(f->counters[i].reg);
    EMIT("call", mg_o_func(f->calls.spill), ((struct mg_opnd){.kind = MG_OPND_list, .n = (uint16_t)n, .id = args}));
    for (uint32_t i = 0; i < f->n_measured; i++)
        if (is_first(f, i)) EMIT("mov.u32", f->counters[i].reg, 0);
}

void mg_rc_spill_fields(struct mg_rfunc *f, struct mg_carry *y)
{
    struct mg_emit *x = &f->x;
    mg_id full = mg_rc_t32(f, 5), p = mg_rc_tp(f, 1);
    bool any = false;
    for (uint32_t i = 0; i < f->n_measured; i++) {
        if (!is_first(f, i)) continue;
        if (any)
            EMIT("or.b32", full, full, f->counters[i].reg);
        else
            EMIT("mov.b32", full, f->counters[i].reg);
        any = true;
    }
    if (!any) return;
    EMIT("and.b32", full, full, mg_o_imm(0x80808080));
    EMIT("setp.ne.u32", p, full, 0);
    struct mg_apart a = mg_rc_begin_apart(f, p);
    if (y->cyclic[x->ix])
        call_spill(f);
    else
        empty_fields(f, x->ctx, f->n_measured);
    mg_rc_end_apart(f, a);
}

/* ---- a function's own ---------------------------------------------------------------------------------- */

#define MOST_ROUNDS 250

void mg_rc_fields_rounds(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    const struct mg_loops *l = f->plan->loops;
    if (!f->packed.n_fields) return;
    mg_id p = mg_rc_tp(f, 1), rounds = mg_emit_reg(x, "__mg_r", MG_TYPE_u32);
    x->at = x->t->entry_at[x->ix];
    EMIT("mov.u32", rounds, 0);
    for (uint32_t k = 0; k < l->n_loops; k++) {
        if (!f->packed.in_loop[k]) continue;
        x->at = mg_block_head(x->m, &x->c->blocks[l->loops[k].header]);
        EMIT("add.u32", rounds, rounds, 1);
        EMIT("setp.ge.u32", p, rounds, MOST_ROUNDS);
        struct mg_apart a = mg_rc_begin_apart(f, p);
        empty_fields(f, x->ctx, f->n - f->calls.n_sources);
        EMIT("mov.u32", rounds, 0);
        mg_rc_end_apart(f, a);
    }
}
