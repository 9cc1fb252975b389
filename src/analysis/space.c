/* Address spaces by a fixpoint over SSA values and, between functions, over .param variables.
 *
 * A fact is a set of spaces and how sure it is that the value is a pointer at all:
 *   NUMBER  an integer: {}              UNKNOWN  loaded or computed: any window
 *   HANDED  a kernel parameter          POINTER  the address of a variable, or made by cvta
 * In an addition a POINTER is the base and the other operand its offset; a HANDED value may be either,
 * so beside an UNKNOWN one nothing is known. At a join (phi, selp,
 * several calls) sets unite. Calls pass facts through the .param variables they name, in both
 * directions, so the module settles as a whole; a function whose address is taken gets UNKNOWN.
 */
#include "analysis/space.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/callgraph.h"
#include "analysis/ssa.h"

enum sureness { NUMBER, UNKNOWN, HANDED, POINTER };
struct fact {
    uint16_t set;
    uint8_t sure;
    uint8_t seen;
}; /* seen 0: nothing arrived yet */

struct func_state {
    mg_id func;
    struct mg_cfg *cfg;
    struct mg_dom *dom;
    struct mg_live *live;
    struct mg_ssa *ssa;
    struct fact *values;
};
struct solver {
    const struct mg_module *m;
    struct fact *vars; /* by var id: what .param variables carry */
    struct func_state *f;
    bool changed;
};

static const struct fact number = {0, NUMBER, 1}, unknown = {MG_SPACE_WINDOWS, UNKNOWN, 1};

static struct fact pointer_to(unsigned space)
{
    return (struct fact){(uint16_t)MG_SPACE_BIT(space), POINTER, 1};
}

static struct fact join_facts(struct fact a, struct fact b)
{
    if (!a.seen) return b;
    if (!b.seen) return a;
    if (!a.set) return b; /* null and other constants */
    if (!b.set) return a;
    return (struct fact){a.set | b.set, MG_MIN(a.sure, b.sure), 1};
}

static struct fact add_facts(struct fact a, struct fact b)
{
    if (!a.seen || !b.seen) return (struct fact){0};
    if (a.sure == NUMBER || b.sure == NUMBER || ((a.sure == POINTER) != (b.sure == POINTER)))
        return a.sure > b.sure ? a : b;
    return (struct fact){a.set | b.set, MG_MIN(a.sure, b.sure), 1};
}

static struct fact reg_fact(const struct solver *s, mg_id node, mg_id reg)
{
    uint32_t v = mg_ssa_read(s->f->ssa, node, reg);
    return v ? s->f->values[v] : unknown;
}

static struct fact opnd_fact(const struct solver *s, mg_id node, const struct mg_opnd *o)
{
    switch (o->kind) {
    case MG_OPND_reg:
        return reg_fact(s, node, o->id);
    case MG_OPND_var:
        return s->m->vars.at[o->id].space ? pointer_to(s->m->vars.at[o->id].space) : unknown;
    case MG_OPND_vec:
    case MG_OPND_sym:
    case MG_OPND_sel:
    case MG_OPND_neg:
        return unknown;
    default:
        return number;
    }
}

static void flow_to_var(struct solver *s, mg_id var, struct fact f)
{
    struct fact now = join_facts(s->vars[var], f);
    if (!memcmp(&now, &s->vars[var], sizeof now)) return;
    s->vars[var] = now;
    s->changed = true;
}

static struct fact loaded(const struct solver *s, const struct mg_node *n, const struct mg_form *f)
{
    const struct mg_opnd *a = n->n_opnds > 1 ? &s->m->opnds.at[n->opnd + 1] : NULL;
    unsigned bits = f->n_types ? mg_type_bits((enum mg_type)f->types[f->n_types - 1]) : 0;
    if (bits < 64) return number; /* an index; a 32-bit address of a window is generic only after cvta */
    if (f->space != MG_SPACE_param || !a || a->kind != MG_OPND_addr || a->sub != MG_OPND_var) return unknown;
    const struct mg_var *v = &s->m->vars.at[a->id];
    const struct mg_func *fn = &s->m->funcs.at[s->f->func];
    if (!v->is_param || fn->kind != MG_FUNC_entry) return s->vars[a->id];
    if (v->is_ptr && v->ptr_space) return pointer_to(v->ptr_space);
    return (struct fact){MG_SPACE_BIT(MG_SPACE_global), HANDED, 1};
}

/* What the instruction computes, from what its operands are. */
static struct fact transfer(const struct solver *s, mg_id id)
{
    const struct mg_node *n = &s->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(s->m, n);
    const struct mg_opnd *o = &s->m->opnds.at[n->opnd];
    uint32_t k = n->n_opnds;
    switch (f->op) {
    case MG_OP_cvta:
        return f->space && k > 1 ? pointer_to(f->space) : unknown;
    case MG_OP_mov:
        return k == 2 && o[0].kind == MG_OPND_reg ? opnd_fact(s, id, &o[1]) : unknown;
    case MG_OP_cvt: /* of a 32-bit shared or local address, or of an index */
    case MG_OP_neg:
    case MG_OP_not:
    case MG_OP_abs:
        return k > 1 ? opnd_fact(s, id, &o[1]) : unknown;
    case MG_OP_add:
    case MG_OP_or:
    case MG_OP_xor:
        return k > 2 ? add_facts(opnd_fact(s, id, &o[1]), opnd_fact(s, id, &o[2])) : unknown;
    case MG_OP_sub: {
        if (k < 3) return unknown;
        struct fact a = opnd_fact(s, id, &o[1]), b = opnd_fact(s, id, &o[2]);
        if (a.seen && b.seen && a.sure == POINTER && b.sure == POINTER) return number; /* a distance */
        return add_facts(a, b);
    }
    case MG_OP_and: { /* rounding down */
        if (k < 3) return unknown;
        return add_facts(opnd_fact(s, id, &o[1]), opnd_fact(s, id, &o[2]));
    }
    case MG_OP_mad: {
        if (k < 4) return unknown;
        return add_facts(number, opnd_fact(s, id, &o[3]));
    }
    case MG_OP_mul:
    case MG_OP_shl:
    case MG_OP_shr:
    case MG_OP_div:
    case MG_OP_rem:
    case MG_OP_popc:
    case MG_OP_clz:
    case MG_OP_bfe:
    case MG_OP_mul24:
    case MG_OP_mad24:
        return number;
    case MG_OP_selp:
    case MG_OP_min:
    case MG_OP_max:
    case MG_OP_slct:
        return k > 2 ? join_facts(opnd_fact(s, id, &o[1]), opnd_fact(s, id, &o[2])) : unknown;
    case MG_OP_ld:
        return loaded(s, n, f);
    case MG_OP_mapa:
        return pointer_to(MG_SPACE_shared);
    case MG_OP_alloca:
    case MG_OP_stacksave:
        return pointer_to(MG_SPACE_local);
    default:
        return unknown;
    }
}

static void set_value(struct solver *s, uint32_t v, struct fact f)
{
    struct fact now = join_facts(s->f->values[v], f);
    if (!memcmp(&now, &s->f->values[v], sizeof now)) return;
    s->f->values[v] = now;
    s->changed = true;
}

static mg_id list_var(const struct mg_module *m, const struct mg_node *n, uint32_t list, uint32_t i)
{
    if (list == MG_NO_OPND || i >= m->opnds.at[n->opnd + list].n) return 0;
    const struct mg_opnd *o = &m->opnds.at[m->opnds.at[n->opnd + list].id + i];
    return o->kind == MG_OPND_var ? o->id : 0;
}

static struct fact list_fact(const struct solver *s, mg_id node, uint32_t list, uint32_t i)
{
    const struct mg_node *n = &s->m->nodes.at[node];
    const struct mg_opnd *o = &s->m->opnds.at[s->m->opnds.at[n->opnd + list].id + i];
    return o->kind == MG_OPND_var ? s->vars[o->id] : opnd_fact(s, node, o);
}

static void flow_call(struct solver *s, mg_id node)
{
    const struct mg_module *m = s->m;
    const struct mg_node *n = &m->nodes.at[node];
    struct mg_call call;
    mg_call_read(m, node, &call);
    mg_id body = call.func ? mg_func_body(m, call.func) : 0;
    const struct mg_func *f = body ? &m->funcs.at[body] : NULL;
    if (f && call.args != MG_NO_OPND)
        for (uint32_t i = 0; i < m->opnds.at[n->opnd + call.args].n && i < f->n_params; i++)
            flow_to_var(s, f->first_param + i, list_fact(s, node, call.args, i));
    bool is_malloc = call.func && !strcmp(mg_name(m, m->funcs.at[call.func].name), "malloc");
    if (call.rets == MG_NO_OPND) return;
    for (uint32_t i = 0; i < m->opnds.at[n->opnd + call.rets].n; i++) {
        bool shown = f && i < f->n_rets && !m->vars.at[f->first_ret + i].is_reg_param;
        struct fact r = shown ? s->vars[f->first_ret + i] : is_malloc ? pointer_to(MG_SPACE_global) : unknown;
        mg_id var = list_var(m, n, call.rets, i);
        const struct mg_opnd *o = &m->opnds.at[m->opnds.at[n->opnd + call.rets].id + i];
        if (var)
            flow_to_var(s, var, r);
        else if (o->kind == MG_OPND_reg && mg_ssa_write(s->f->ssa, node, o->id))
            set_value(s, mg_ssa_write(s->f->ssa, node, o->id), r);
    }
}

static void visit(struct solver *s, mg_id id)
{
    const struct mg_node *n = &s->m->nodes.at[id];
    if (n->kind != MG_NODE_inst) return;
    const struct mg_form *f = mg_node_form(s->m, n);
    if (f->op == MG_OP_call) {
        flow_call(s, id);
        return;
    }
    if (f->op == MG_OP_st && f->space == MG_SPACE_param && n->n_opnds > 1) {
        const struct mg_opnd *to = &s->m->opnds.at[n->opnd], *from = to + 1;
        if (to->kind == MG_OPND_addr && to->sub == MG_OPND_var) flow_to_var(s, to->id, opnd_fact(s, id, from));
        return;
    }
    mg_id defs[64];
    uint32_t n_defs = mg_node_defs(s->m, id, defs, 64);
    if (!n_defs) return;
    struct fact r = n_defs > 1 ? unknown : transfer(s, id);
    for (uint32_t i = 0; i < n_defs && i < 64; i++) {
        uint32_t v = mg_ssa_write(s->f->ssa, id, defs[i]);
        if (!v) continue;
        struct fact x = r;
        if (x.sure == UNKNOWN && mg_type_bits((enum mg_type)s->m->regs.at[defs[i]].type) < 64) x = number;
        if (s->f->ssa->values[v].prev) x = join_facts(x, s->f->values[s->f->ssa->values[v].prev]);
        set_value(s, v, x);
    }
}

static void run_func(struct solver *s)
{
    const struct mg_cfg *c = s->f->cfg;
    const struct mg_ssa *ssa = s->f->ssa;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        uint32_t b = c->rpo[i];
        if (!c->reachable[b]) continue;
        for (uint32_t p = ssa->phis_at[b]; p < ssa->phis_at[b + 1]; p++) {
            const struct mg_ssa_value *v = &ssa->values[ssa->phis[p]];
            for (uint32_t a = 0; a < v->n_args; a++)
                if (ssa->args[v->args_at + a]) set_value(s, ssa->phis[p], s->f->values[ssa->args[v->args_at + a]]);
        }
        for (mg_id id = c->blocks[b].first;; id = s->m->nodes.at[id].next) {
            visit(s, id);
            if (id == c->blocks[b].last) break;
        }
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static bool touches_memory(const struct mg_form *f)
{
    if (f->op == MG_OP_prefetch || f->op == MG_OP_discard || f->op == MG_OP_applypriority) return true;
    if (f->op == MG_OP_tex || f->op == MG_OP_tld4 || f->op == MG_OP_suld || f->op == MG_OP_sust || f->op == MG_OP_sured)
        return false;
    return f->op_flags & (MG_OPF_READS | MG_OPF_WRITES);
}

static void classify(struct solver *s, struct mg_spaces *out, mg_id id)
{
    const struct mg_node *n = &s->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(s->m, n);
    if (n->kind != MG_NODE_inst || !touches_memory(f)) return;
    if (f->space) { /* copies name two: where from and where to */
        for (unsigned i = 0; i < f->n_mods; i++)
            if (mg_mod_class((enum mg_mod)f->mods[i]) == MG_MC_SPACE)
                out->of_node[id] |= (uint16_t)MG_SPACE_BIT(mg_mod_space((enum mg_mod)f->mods[i]));
        return;
    }
    struct fact at = unknown;
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &s->m->opnds.at[n->opnd + i];
        if (o->kind != MG_OPND_addr) continue;
        if (o->sub == MG_OPND_reg)
            at = reg_fact(s, id, o->id);
        else if (o->sub == MG_OPND_var && s->m->vars.at[o->id].space)
            at = pointer_to(s->m->vars.at[o->id].space);
        break;
    }
    unsigned set = at.seen ? at.set & MG_SPACE_WINDOWS : 0;
    out->of_node[id] = (uint16_t)(set ? set : MG_SPACE_WINDOWS);
    out->n_generic++;
    out->n_resolved += mg_spaces_one(out->of_node[id]) != MG_SPACE_generic;
}

static void open_func(struct func_state *f, const struct mg_module *m, mg_id func)
{
    f->func = func;
    f->cfg = mg_cfg_new(m, func);
    f->dom = mg_dom_new(f->cfg);
    f->live = mg_live_new(f->cfg);
    f->ssa = mg_ssa_new(f->cfg, f->dom, f->live);
    f->values = mg_xcalloc(f->ssa->n_values, sizeof *f->values);
    for (uint32_t v = 1; v < f->ssa->n_values; v++)
        if (f->ssa->values[v].kind == MG_SSA_entry) f->values[v] = unknown;
}

static void close_func(struct func_state *f)
{
    free(f->values);
    mg_ssa_free(f->ssa);
    mg_live_free(f->live);
    mg_dom_free(f->dom);
    mg_cfg_free(f->cfg);
}

/* Who may be called by someone this module does not show: parameters can be anything. */
static void open_params(struct solver *s)
{
    const struct mg_module *m = s->m;
    bool *taken = mg_funcs_taken(m);
    for (mg_id f = 1; f < m->funcs.n; f++) {
        const struct mg_func *fn = &m->funcs.at[f];
        bool exported = fn->link == MG_LINK_visible || fn->link == MG_LINK_weak;
        if (fn->kind != MG_FUNC_func || !fn->defined || !(taken[f] || exported)) continue;
        for (uint32_t i = 0; i < fn->n_params; i++) s->vars[fn->first_param + i] = unknown;
    }
    free(taken);
}

static void solve_spaces(struct solver *s, struct func_state *funcs, uint32_t n)
{
    do {
        s->changed = false;
        for (uint32_t i = 0; i < n; i++) {
            s->f = &funcs[i];
            run_func(s);
        }
    } while (s->changed);
}

struct mg_spaces *mg_spaces_new(const struct mg_module *m)
{
    struct mg_spaces *out = mg_xcalloc(1, sizeof *out);
    out->n_nodes = m->nodes.n;
    out->of_node = mg_xcalloc(m->nodes.n, sizeof *out->of_node);
    struct solver s = {.m = m, .vars = mg_xcalloc(m->vars.n, sizeof *s.vars)};
    struct func_state *funcs = mg_xcalloc(m->funcs.n, sizeof *funcs);
    uint32_t n = 0;
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (m->funcs.at[f].defined && m->funcs.at[f].kind != MG_FUNC_proto) open_func(&funcs[n++], m, f);
    open_params(&s);
    solve_spaces(&s, funcs, n);
    /* what nobody was seen to store (by address, say) may be anything */
    for (mg_id v = 1; v < m->vars.n; v++)
        if (!s.vars[v].seen) s.vars[v] = unknown;
    solve_spaces(&s, funcs, n);
    for (uint32_t i = 0; i < n; i++) {
        s.f = &funcs[i];
        for (uint32_t b = 0; b < s.f->cfg->n_blocks; b++)
            for (mg_id id = s.f->cfg->blocks[b].first;; id = m->nodes.at[id].next) {
                classify(&s, out, id);
                if (id == s.f->cfg->blocks[b].last) break;
            }
        close_func(s.f);
    }
    free(funcs);
    free(s.vars);
    return out;
}

void mg_spaces_free(struct mg_spaces *s)
{
    if (!s) return;
    free(s->of_node);
    free(s);
}
