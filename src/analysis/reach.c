/* Origins of addresses by a fixpoint over registers, without regard to flow: a register may hold what any of
 * its definitions computes, and that comes from whatever its operands come from.
 *
 *   ld.param of 8 bytes, a variable's address      an origin of its own, a bit
 *   other loads of 8 bytes, packed halves          LOST
 *   registers of less than 8 bytes, floating point, special registers, constants  none: no pointer
 *
 * A write whose address is LOST or comes from nowhere proves nothing, and so does one in a called
 * function: its parameters are not followed. */
#include "analysis/reach.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/space.h"

#define LOST        (UINT64_C(1) << 63)
#define MAX_ORIGINS 60u

struct origin {
    bool is_var;
    uint32_t id;
}; /* of a variable, or offset in the parameter block */
struct solver {
    const struct mg_module *m;
    mg_id kernel;
    uint64_t *of; /* register -> origins */
    struct origin origins[MAX_ORIGINS];
    uint32_t n;
};

static uint64_t origin(struct solver *s, bool is_var, uint32_t id)
{
    uint32_t k = 0;
    while (k < s->n && (s->origins[k].is_var != is_var || s->origins[k].id != id)) k++;
    if (k == MAX_ORIGINS) return LOST;
    if (k == s->n) s->origins[s->n++] = (struct origin){is_var, id};
    return UINT64_C(1) << k;
}

static uint64_t of_var(struct solver *s, mg_id var)
{
    const struct mg_var *v = &s->m->vars.at[var];
    if (v->func || v->space == MG_SPACE_shared || v->space == MG_SPACE_local || v->space == MG_SPACE_const) return 0;
    return v->space == MG_SPACE_global ? origin(s, true, v->def ? v->def : var) : LOST;
}

/* What a load brings. */
static uint64_t of_load(struct solver *s, const struct mg_node *n, const struct mg_form *f)
{
    enum mg_type type = f->n_types ? (enum mg_type)f->types[f->n_types - 1] : MG_TYPE_none;
    unsigned bits = type ? mg_type_bits(type) : 64;
    const struct mg_opnd *a = n->n_opnds > 1 ? &s->m->opnds.at[n->opnd + 1] : NULL;
    if (bits < 64 || mg_type_kind(type) == MG_TK_FLOAT) return 0;
    if (f->op != MG_OP_ld || f->space != MG_SPACE_param || bits > 64 || !a || a->kind != MG_OPND_addr ||
        a->sub != MG_OPND_var)
        return LOST;
    const struct mg_func *fn = &s->m->funcs.at[s->kernel];
    uint32_t ix = a->id - fn->first_param;
    if (a->id < fn->first_param || ix >= fn->n_params) return LOST;
    uint64_t set = 0, at = mg_func_param_offset(fn, s->m->vars.at, ix) + a->val;
    for (unsigned k = 0; k < (f->vec ? f->vec : 1u); k++) set |= origin(s, false, (uint32_t)at + 8 * k);
    return set;
}

static uint64_t of_opnd(struct solver *s, const struct mg_opnd *o)
{
    if (o->kind == MG_OPND_reg || o->kind == MG_OPND_neg || o->kind == MG_OPND_sel || o->kind == MG_OPND_not)
        return s->of[o->id];
    if (o->kind == MG_OPND_var) return of_var(s, o->id);
    if (o->kind == MG_OPND_vec || o->kind == MG_OPND_sym) return LOST; /* halves of a pointer, perhaps */
    return 0;
}

static bool visit(struct solver *s, mg_id id)
{
    const struct mg_node *n = &s->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(s->m, n);
    mg_id defs[256];
    uint32_t n_defs = mg_node_defs(s->m, id, defs, MG_COUNT_OF(defs));
    uint64_t set = 0;
    bool changed = false;
    if (!n_defs) return false;
    if (n_defs > MG_COUNT_OF(defs)) n_defs = MG_COUNT_OF(defs);
    if (f->op_flags & MG_OPF_READS) {
        set = of_load(s, n, f);
    } else if (f->unknown) {
        set = LOST;
    } else {
        for (uint32_t k = 1; k < n->n_opnds; k++) set |= of_opnd(s, &s->m->opnds.at[n->opnd + k]);
        if (s->m->opnds.at[n->opnd].kind != MG_OPND_reg) set |= LOST; /* several results at once */
    }
    for (uint32_t k = 0; k < n_defs; k++) {
        if (mg_type_bits((enum mg_type)s->m->regs.at[defs[k]].type) < 64) continue;
        changed |= (s->of[defs[k]] | set) != s->of[defs[k]];
        s->of[defs[k]] |= set;
    }
    return changed;
}

/* May it write global memory? *at: the address, NULL when there is no plain one. */
static bool writes(const struct mg_module *m, const struct mg_spaces *spaces, mg_id id, const struct mg_opnd **at)
{
    const struct mg_node *n = &m->nodes.at[id];
    const struct mg_form *f = mg_node_form(m, n);
    const char *text = mg_name(m, f->text);
    *at = NULL;
    if (f->unknown) return true;
    if (f->op == MG_OP_cp) return strstr(text, ".bulk") && strstr(text, ".global.shared");
    if (!(f->op_flags & MG_OPF_WRITES) || f->op == MG_OP_mbarrier || f->op == MG_OP_stmatrix) return false;
    if (f->op == MG_OP_st || f->op == MG_OP_atom || f->op == MG_OP_red) {
        if (!(mg_spaces_of(spaces, id) & MG_SPACE_BIT(MG_SPACE_global))) return false;
        for (uint32_t k = 0; k < n->n_opnds && !*at; k++)
            if (m->opnds.at[n->opnd + k].kind == MG_OPND_addr) *at = &m->opnds.at[n->opnd + k];
    }
    return true;
}

static uint64_t of_address(struct solver *s, const struct mg_opnd *at)
{
    if (!at) return LOST;
    if (at->sub == MG_OPND_reg) return s->of[at->id];
    return at->sub == MG_OPND_var ? of_var(s, at->id) : LOST;
}

/* All origins of addresses that the function writes to. */
static uint64_t written(struct solver *s, const struct mg_spaces *spaces, mg_id func)
{
    uint64_t all = 0;
    const struct mg_opnd *at;
    MG_EACH_NODE(s->m, &s->m->funcs.at[func], id)
    {
        if (s->m->nodes.at[id].kind != MG_NODE_inst || !writes(s->m, spaces, id, &at)) continue;
        uint64_t set = func == s->kernel ? of_address(s, at) : LOST;
        all |= set ? set : LOST;
    }
    return all;
}

static bool fill(struct mg_reach *r, const struct solver *s, uint64_t all)
{
    r->everything = all & LOST || s->m->address_size != 64;
    r->params = calloc(s->n + 1, sizeof *r->params);
    r->vars = calloc(s->n + 1, sizeof *r->vars);
    for (uint32_t k = 0; r->params && r->vars && k < s->n; k++) {
        if (!(all >> k & 1)) continue;
        if (s->origins[k].is_var)
            r->vars[r->n_vars++] = s->origins[k].id;
        else
            r->params[r->n_params++] = s->origins[k].id;
    }
    return r->params && r->vars;
}

struct mg_reach *mg_reach_new(const struct mg_module *m, mg_id kernel)
{
    struct solver s = {.m = m, .kernel = kernel, .of = calloc(m->regs.n + 1, sizeof *s.of)};
    struct mg_reach *r = calloc(1, sizeof *r);
    struct mg_spaces *spaces = mg_spaces_new(m);
    struct mg_callgraph *g = mg_callgraph_new(m, kernel);
    bool ok = s.of && r && spaces && g;
    for (bool changed = ok; changed;) {
        changed = false;
        MG_EACH_NODE(m, &m->funcs.at[kernel], id)
        if (m->nodes.at[id].kind == MG_NODE_inst) changed |= visit(&s, id);
    }
    uint64_t all = 0;
    for (uint32_t k = 0; ok && k < g->n_funcs; k++) all |= written(&s, spaces, g->funcs[k]);
    ok = ok && fill(r, &s, all);
    free(s.of);
    if (spaces) mg_spaces_free(spaces);
    if (g) mg_callgraph_free(g);
    if (!ok) {
        mg_reach_free(r);
        return NULL;
    }
    return r;
}

void mg_reach_free(struct mg_reach *r)
{
    if (!r) return;
    free(r->params);
    free(r->vars);
    free(r);
}
