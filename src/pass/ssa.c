/* Pass ssa: every register is written at one place (Cytron and others 1991). PTX has no phis, so each is
 * written as moves through a register of its own, which alone is written more than once: at the end of
 * every predecessor, and from there at the block's head. No edge has to be split, and neither the order
 * of the moves nor a value that lives on behind the block matters (Boissinot and others 2009, method I).
 *
 *     L1: ... mov t, a;  bra L3          L2: ... mov t, b;         L3: mov x, t; ... x ...
 *
 * A write under a guard goes to a copy of the value before it: mov new, old; @p op new, ...
 * Pass regs takes the moves out again. */
#include <stdlib.h>
#include <string.h>

#include "analysis/ssa.h"
#include "pass/rename.h"

struct into {
    struct mg_module *m;
    mg_id func;
    const struct mg_cfg *c;
    const struct mg_ssa *s;
    const struct mg_live *l;
    bool *pinned;
    mg_id *reg; /* of each value */
    mg_id *phi; /* of each phi: what its moves go through */
    mg_id node; /* being renamed */
};

static void move(struct into *x, mg_id to, mg_id from, mg_id at, bool behind)
{
    if (to == from) return;
    const struct mg_opnd o[] = {mg_o_reg(to), mg_o_reg(from)};
    mg_id id = mg_node_new(x->m, mg_mov_form((enum mg_type)x->m->regs.at[to].type), o, 2);
    x->m->nodes.at[id].flags = 0; /* part of the program from now on, and known to pass regs by its origin */
    x->m->nodes.at[id].origin = at;
    x->m->nodes.at[id].line = x->m->nodes.at[at].line;
    if (behind)
        mg_node_insert_after(x->m, x->func, at, id);
    else
        mg_node_insert_before(x->m, x->func, at, id);
}

static bool is_pinned(const struct into *x, mg_id reg)
{
    return x->pinned[reg - x->l->reg_lo];
}

/* Registers for all values, those of one type under one name. */
static void name_values(struct into *x)
{
    const struct mg_ssa *s = x->s;
    uint32_t need[MG_TYPE_COUNT] = {0};
    mg_id next[MG_TYPE_COUNT] = {0};
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t v = 1; v < s->n_values; v++) {
            const struct mg_ssa_value *value = &s->values[v];
            unsigned type = x->m->regs.at[value->reg].type;
            bool own = value->kind != MG_SSA_entry && !is_pinned(x, value->reg), phi = own && value->kind == MG_SSA_phi;
            if (!pass) {
                need[type] += own + phi;
                continue;
            }
            x->reg[v] = own ? next[type]++ : value->reg;
            x->phi[v] = phi ? next[type]++ : 0;
        }
        for (unsigned t = 0; t < MG_TYPE_COUNT && !pass; t++)
            if (need[t])
                next[t] = mg_module_add_regs(x->m, x->func, t == MG_TYPE_pred ? "%sp" : "%s", (enum mg_type)t, need[t]);
    }
}

static mg_id use(mg_id reg, void *user)
{
    const struct into *x = user;
    uint32_t v = mg_ssa_read(x->s, x->node, reg);
    return v ? x->reg[v] : reg;
}

static mg_id def(mg_id reg, void *user)
{
    const struct into *x = user;
    uint32_t v = mg_ssa_write(x->s, x->node, reg);
    return v ? x->reg[v] : reg;
}

/* A pragma stays with what it belongs to. */
static mg_id front(const struct into *x, mg_id at)
{
    while (x->m->nodes.at[at].prev && x->m->nodes.at[x->m->nodes.at[at].prev].kind == MG_NODE_pragma)
        at = x->m->nodes.at[at].prev;
    return at;
}

static void rename_block(struct into *x, uint32_t block)
{
    const struct mg_reg_renamer r = {use, def, x};
    const struct mg_block *k = &x->c->blocks[block];
    for (mg_id id = k->first;; id = x->m->nodes.at[id].next) {
        const struct mg_node n = x->m->nodes.at[id];
        if (n.kind == MG_NODE_inst && mg_cfg_block_of(x->c, id) == block) {
            x->node = id;
            uint32_t at = x->s->writes_at[id - x->c->node_lo], end = x->s->writes_at[id - x->c->node_lo + 1];
            for (uint32_t i = at; i < end; i++) {
                const struct mg_ssa_value *v = &x->s->values[x->s->writes[i]];
                if (v->prev) move(x, x->reg[x->s->writes[i]], x->reg[v->prev], front(x, id), false);
            }
            mg_node_rename(x->m, id, &r);
        }
        if (id == k->last) break;
    }
}

static void move_phis(struct into *x, uint32_t block)
{
    const struct mg_ssa *s = x->s;
    const struct mg_block *k = &x->c->blocks[block];
    for (uint32_t i = s->phis_at[block]; i < s->phis_at[block + 1]; i++) {
        const struct mg_ssa_value *v = &s->values[s->phis[i]];
        if (!x->phi[s->phis[i]]) continue;
        move(x, x->reg[s->phis[i]], x->phi[s->phis[i]], front(x, k->first), false);
        for (uint32_t p = 0; p < v->n_args; p++) {
            uint32_t arg = s->args[v->args_at + p], from = x->c->preds[k->pred_at + p];
            mg_id last = x->c->blocks[from].last;
            const struct mg_form *f = mg_node_form(x->m, &x->m->nodes.at[last]);
            bool before = f->op_flags & MG_OPF_ENDS_BLOCK && f->op != MG_OP_call;
            if (arg) move(x, x->phi[s->phis[i]], x->reg[arg], last, !before);
        }
    }
}

static enum mg_err run(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    (void)user, (void)block;
    struct into x = {.m = mg_pass_module(c),
                     .func = func,
                     .c = mg_pass_cfg(c, func),
                     .s = mg_pass_ssa(c, func),
                     .l = mg_pass_live(c, func)};
    if (!x.c->n_blocks) return MG_ERR_OK;
    x.pinned = mg_regs_pinned(x.m, func, x.l);
    x.reg = mg_xcalloc(x.s->n_values + 1, sizeof *x.reg);
    x.phi = mg_xcalloc(x.s->n_values + 1, sizeof *x.phi);
    name_values(&x);
    for (uint32_t b = 0; b < x.c->n_blocks; b++)
        if (x.c->reachable[b]) rename_block(&x, b);
    for (uint32_t b = 0; b < x.c->n_blocks; b++)
        if (x.c->reachable[b]) move_phis(&x, b);
    mg_regs_undeclare(x.m, func);
    free(x.pinned);
    free(x.reg);
    free(x.phi);
    return MG_ERR_OK;
}

extern const struct mg_pass mg_pass_into_ssa;
const struct mg_pass mg_pass_into_ssa = {
    .name = "ssa",
    .summary = "write every register at one place; phis become moves",
    .scope = MG_SCOPE_KERNEL,
    .needs = MG_AN_CFG | MG_AN_DOM | MG_AN_LIVE | MG_AN_SSA,
    .run = run,
};
