/* Accesses of a block whose addresses are one register's value plus constants: what holds for the lanes'
 * addresses in one of them holds in all, so that tools can look once. */
#include "patch/priv.h"

enum { MOST_OPEN = 32 /* of a block at once: more are groups of their own */, MOST_APART = 1 << 16 };

struct open_group {
    uint32_t at;
    unsigned kind; /* of the base */
    uint32_t base, guard;
    bool guard_not;
    uint32_t bytes;
};

/* Back over additions of constants, to what the value counts from. */
static uint32_t find_origin(struct mg_patch *p, uint32_t func_ix, uint32_t value, int64_t *off)
{
    const struct mg_module *m = p->all->m;
    const struct mg_ssa *s = mg_patch_ssa(p, func_ix);
    for (;;) {
        const struct mg_ssa_value *v = &s->values[value];
        const struct mg_form *f =
            v->kind == MG_SSA_def && !m->nodes.at[v->node].guard ? mg_node_form(m, &m->nodes.at[v->node]) : NULL;
        if (!f || f->op != MG_OP_add || mg_form_has(f, MG_MOD_sat) || mg_form_has(f, MG_MOD_cc)) return value;
        const struct mg_opnd *o = &m->opnds.at[m->nodes.at[v->node].opnd];
        if (m->nodes.at[v->node].n_opnds != 3 || o[1].kind != MG_OPND_reg || o[1].sub || o[2].kind != MG_OPND_imm ||
            mg_type_kind((enum mg_type)m->regs.at[v->reg].type) == MG_TK_FLOAT)
            return value;
        uint32_t from = mg_ssa_read(s, v->node, o[1].id);
        if (!from) return value;
        *off += (int64_t)o[2].val;
        value = from;
    }
}

/* What the address counts from: an SSA value or a variable, and a constant. */
static bool find_base(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a,
                      struct open_group *g, int64_t *off)
{
    const struct mg_module *m = p->all->m;
    const struct mg_node *n = &m->nodes.at[i->node];
    const struct mg_opnd *o = &m->opnds.at[n->opnd + a->addr];
    if (o->kind != MG_OPND_addr || (o->sub != MG_OPND_reg && o->sub != MG_OPND_var)) return false;
    *off = (int64_t)o->val;
    g->kind = o->sub;
    g->base = o->sub == MG_OPND_var ? o->id : mg_ssa_read(mg_patch_ssa(p, i->func_ix), i->node, o->id);
    if (o->sub == MG_OPND_reg && g->base) g->base = find_origin(p, i->func_ix, g->base, off);
    if (o->sub == MG_OPND_reg && o->id >= p->all->app->regs.n)
        g->kind = MG_OPND_none, g->base = o->id; /* the twin's: where a table of constants begins */
    g->guard = n->guard ? mg_ssa_read(mg_patch_ssa(p, i->func_ix), i->node, n->guard) : 0;
    g->guard_not = n->guard && n->flags & MG_NF_GUARD_NOT;
    return g->base && !n->guard == !g->guard && !(o->n & 7);
}

static bool parts_lanes(const struct mg_module *m, mg_id node)
{
    return mg_node_form(m, &m->nodes.at[node])->op_flags & (MG_OPF_CONVERGENT | MG_OPF_BARRIER);
}

uint32_t mg_patch_groups(struct mg_patch *p, bool one_width, const struct mg_access_group **groups,
                         const uint32_t **group_of)
{
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), n_groups = 0, n_open = 0, window = 0;
    struct mg_access_group *list = mg_arena_array(&p->scratch, struct mg_access_group, n + 1);
    uint32_t *of = mg_arena_array(&p->scratch, uint32_t, n + 1);
    struct open_group open[MOST_OPEN];
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        struct open_group g = {.at = n_groups};
        int64_t off = 0;
        of[i] = UINT32_MAX;
        bool parts = parts_lanes(p->all->m, insts[i].node); /* beyond it other lanes may be together */
        if (parts || (i && insts[i].id != insts[i - 1].id)) n_open = 0, window++;
        if (!mg_access_of(p->all->m, insts[i].node, &a)) continue;
        g.bytes = (uint32_t)a.bytes * a.vec;
        bool based = a.space != MG_SPACE_generic && !a.is_async && find_base(p, &insts[i], &a, &g, &off);
        uint32_t k = 0;
        while (based && k < n_open &&
               (open[k].kind != g.kind || open[k].base != g.base || open[k].guard != g.guard ||
                open[k].guard_not != g.guard_not || list[open[k].at].space != a.space ||
                (one_width && open[k].bytes != g.bytes)))
            k++;
        int64_t end = off + g.bytes;
        struct mg_access_group *l = based && k < n_open ? &list[open[k].at] : NULL;
        if (l && MG_MAX(l->end, end) - MG_MIN(l->low, off) <= MOST_APART) {
            of[i] = open[k].at;
            l->low = MG_MIN(l->low, off);
            l->end = MG_MAX(l->end, end);
            l->n++;
            continue;
        }
        of[i] = n_groups;
        list[n_groups++] = (struct mg_access_group){.first = insts[i].node,
                                                    .space = a.space,
                                                    .base = based && g.kind == MG_OPND_reg ? g.base : 0,
                                                    .from = off,
                                                    .low = off,
                                                    .end = end,
                                                    .n = 1,
                                                    .window = window,
                                                    .guard = g.guard,
                                                    .guard_not = g.guard_not};
        if (l)
            open[k].at = g.at;
        else if (based && n_open < MOST_OPEN)
            open[n_open++] = g;
    }
    *groups = list;
    *group_of = of;
    return n_groups;
}
