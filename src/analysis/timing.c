/* Two fixpoints over the functions of a kernel: first which buffers each pointer may name (roots), then
 * what depends on timing. Both are sets of bits a value, so that joining is or. */
#include "analysis/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/callgraph.h"
#include "analysis/poly.h"

#define ROOT_ANY   (1ull << 63) /* loaded or computed: not known */
#define ROOT_IMAGE (1ull << 62) /* surfaces */
#define MOST_ROOTS 62u

struct root {
    bool is_var;
    uint32_t of;
    uint8_t space;
}; /* of: variable, or bytes into the parameters */
struct fact {
    uint64_t roots;
    bool base;
}; /* base: a pointer for sure, so what is added is an offset */
struct stored {
    bool any, mine;
    struct mg_poly_owner o;
    int64_t lo, hi;
    uint64_t taint;
}; /* into a root; mine: each by its owner alone */

struct state { /* of a function */
    mg_id func;
    const struct mg_cfg *c;
    struct mg_dom *dom, *post;
    struct mg_live *live;
    struct mg_ssa *ssa;
    struct mg_loops *l;
    struct mg_polys polys;
    struct fact *facts; /* by value */
    uint64_t *taint;    /* by value */
    uint64_t *of;       /* by block */
    uint64_t called;    /* from blocks that depend */
};
struct solver {
    const struct mg_module *m;
    struct mg_timing *t;
    struct state *states, *s;
    uint32_t n_states;
    struct fact *var_facts; /* by variable: what .param variables carry */
    uint64_t *var_taint;
    struct root roots[MOST_ROOTS];
    uint32_t n_roots;
    struct stored stored[64]; /* by root; the last two: IMAGE and ANY */
    unsigned axes;
    bool changed;
};

/* ---- roots ------------------------------------------------------------------------------------------------- */

static uint64_t root_of(struct solver *k, bool is_var, uint32_t of, uint8_t space)
{
    for (uint32_t i = 0; i < k->n_roots; i++)
        if (k->roots[i].is_var == is_var && k->roots[i].of == of) return 1ull << i;
    if (k->n_roots == MOST_ROOTS) return ROOT_ANY;
    k->roots[k->n_roots] = (struct root){is_var, of, space};
    return 1ull << k->n_roots++;
}

static struct fact add_facts(struct fact a, struct fact b)
{
    if (!a.roots || !b.roots) return a.roots ? a : b;
    if (a.base != b.base) return a.base ? a : b;
    return (struct fact){a.roots | b.roots, a.base};
}

static const struct fact unknown = {ROOT_ANY, false};

static struct fact fact_of(struct solver *k, mg_id node, const struct mg_opnd *o)
{
    switch (o->kind) {
    case MG_OPND_reg: {
        uint32_t v = mg_ssa_read(k->s->ssa, node, o->id);
        return v ? k->s->facts[v] : unknown;
    }
    case MG_OPND_var:
        return (struct fact){root_of(k, true, o->id, k->m->vars.at[o->id].space), true};
    case MG_OPND_vec:
    case MG_OPND_sym:
    case MG_OPND_sel:
    case MG_OPND_neg:
        return unknown;
    default:
        return (struct fact){0};
    }
}

static bool is_kernel_param(const struct solver *k, mg_id var)
{
    const struct mg_func *f = &k->m->funcs.at[k->states[0].func];
    return var >= f->first_param && var < f->first_param + f->n_params;
}

static struct fact loaded_fact(struct solver *k, mg_id id)
{
    const struct mg_node *n = &k->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(k->m, n);
    const struct mg_opnd *a = n->n_opnds > 1 ? &k->m->opnds.at[n->opnd + 1] : NULL;
    if (!f->n_types || mg_type_bits((enum mg_type)f->types[f->n_types - 1]) < 64 ||
        mg_type_kind((enum mg_type)f->types[f->n_types - 1]) == MG_TK_FLOAT)
        return (struct fact){0};
    if (f->space != MG_SPACE_param || !a || a->kind != MG_OPND_addr || a->sub != MG_OPND_var) return unknown;
    if (!is_kernel_param(k, a->id)) return k->var_facts[a->id];
    const struct mg_func *e = &k->m->funcs.at[k->states[0].func];
    return (struct fact){root_of(k, false,
                                 (uint32_t)(mg_func_param_offset(e, k->m->vars.at, a->id - e->first_param) + a->val),
                                 MG_SPACE_global),
                         false};
}

static struct fact transfer(struct solver *k, mg_id id)
{
    const struct mg_node *n = &k->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(k->m, n);
    const struct mg_opnd *o = &k->m->opnds.at[n->opnd];
    uint32_t c = n->n_opnds;
    struct fact r = {0};
    switch (f->op) {
    case MG_OP_cvta:
        r = c > 1 ? fact_of(k, id, &o[1]) : unknown;
        r.base = r.roots != 0;
        return r.roots ? r : unknown;
    case MG_OP_mov:
    case MG_OP_cvt:
        return c > 1 ? fact_of(k, id, &o[1]) : unknown;
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_or:
    case MG_OP_and:
    case MG_OP_xor:
        return c > 2 ? add_facts(fact_of(k, id, &o[1]), fact_of(k, id, &o[2])) : unknown;
    case MG_OP_mad:
        return c > 3 ? fact_of(k, id, &o[3]) : unknown;
    case MG_OP_selp:
    case MG_OP_min:
    case MG_OP_max:
    case MG_OP_slct:
        if (c < 3) return unknown;
        r = fact_of(k, id, &o[1]);
        struct fact z = fact_of(k, id, &o[2]);
        return (struct fact){r.roots | z.roots, r.base && z.base};
    case MG_OP_ld:
        return loaded_fact(k, id);
    case MG_OP_mapa:
        return c > 1 ? fact_of(k, id, &o[1]) : unknown;
    case MG_OP_atom:
    case MG_OP_shfl:
    case MG_OP_tex:
    case MG_OP_prmt:
    case MG_OP_lop3:
        return unknown;
    default:
        return r; /* a number */
    }
}

static void set_fact(struct solver *k, uint32_t v, struct fact f)
{
    struct fact *to = &k->s->facts[v];
    if (!(f.roots & ~to->roots) && (to->base || !f.base)) return;
    to->roots |= f.roots;
    to->base |= f.base;
    k->changed = true;
}

/* A value of less than 64 bits is an address of shared or local memory at most. */
static bool holds_pointer(const struct solver *k, uint32_t v)
{
    unsigned bits = mg_type_bits((enum mg_type)k->m->regs.at[k->s->ssa->values[v].reg].type);
    return bits == 32 || bits == 64;
}

/* ---- what both fixpoints do with calls and .param variables -------------------------------------------------- */

typedef void (*flow_fn)(struct solver *k, mg_id to, mg_id node, const struct mg_opnd *from);

static void facts_to_var(struct solver *k, mg_id to, mg_id node, const struct mg_opnd *from)
{
    struct fact f = {0}, *now = &k->var_facts[to];
    if (from->kind == MG_OPND_var)
        f = k->var_facts[from->id];
    else if (from->kind == MG_OPND_vec)
        f = unknown;
    else
        f = fact_of(k, node, from);
    if (!(f.roots & ~now->roots)) return;
    now->roots |= f.roots;
    now->base |= f.base;
    k->changed = true;
}

static uint64_t taint_of(const struct solver *k, mg_id node, const struct mg_opnd *o);

static void taint_to_var(struct solver *k, mg_id to, mg_id node, const struct mg_opnd *from)
{
    uint64_t t = from->kind == MG_OPND_var ? k->var_taint[from->id] : taint_of(k, node, from);
    if (!(t & ~k->var_taint[to])) return;
    k->var_taint[to] |= t;
    k->changed = true;
}

static void flow_into(struct solver *k, mg_id node, const struct mg_call *call, struct state *to, flow_fn flow)
{
    const struct mg_module *m = k->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_func *f = &m->funcs.at[to->func];
    if (call->args != MG_NO_OPND) {
        const struct mg_opnd *list = &m->opnds.at[n->opnd + call->args];
        for (uint32_t i = 0; i < list->n && i < f->n_params; i++)
            flow(k, f->first_param + i, node, &m->opnds.at[list->id + i]);
    }
    if (call->rets == MG_NO_OPND) return;
    const struct mg_opnd *list = &m->opnds.at[n->opnd + call->rets];
    for (uint32_t i = 0; i < list->n && i < f->n_rets; i++) {
        struct mg_opnd from = mg_o_var(f->first_ret + i);
        if (m->opnds.at[list->id + i].kind == MG_OPND_var) flow(k, m->opnds.at[list->id + i].id, node, &from);
    }
}

/* Every function that the call may enter; taint: of the block it stands in. */
static void flow_call(struct solver *k, mg_id node, flow_fn flow, uint64_t taint)
{
    struct mg_call call;
    mg_call_read(k->m, node, &call);
    for (uint32_t i = 0; i < k->n_states; i++) {
        struct state *to = &k->states[i];
        if ((call.indirect && !i) || !mg_call_enters(k->m, node, to->func, NULL)) continue;
        flow_into(k, node, &call, to, flow);
        if (taint & ~to->called) {
            to->called |= taint;
            k->changed = true;
        }
    }
}

static bool stores_param(const struct solver *k, mg_id id)
{
    const struct mg_node *n = &k->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(k->m, n);
    const struct mg_opnd *to = n->n_opnds > 1 ? &k->m->opnds.at[n->opnd] : NULL;
    return f->op == MG_OP_st && f->space == MG_SPACE_param && to && to->kind == MG_OPND_addr && to->sub == MG_OPND_var;
}

static void facts_of_node(struct solver *k, mg_id id)
{
    const struct mg_form *f = mg_node_form(k->m, &k->m->nodes.at[id]);
    const struct mg_opnd *o = &k->m->opnds.at[k->m->nodes.at[id].opnd];
    mg_id defs[64];
    if (f->op == MG_OP_call) flow_call(k, id, facts_to_var, 0);
    if (stores_param(k, id)) facts_to_var(k, o[0].id, id, &o[1]);
    uint32_t n = mg_node_defs(k->m, id, defs, 64);
    for (uint32_t i = 0; i < n && i < 64; i++) {
        uint32_t v = mg_ssa_write(k->s->ssa, id, defs[i]);
        if (!v || !holds_pointer(k, v)) continue;
        set_fact(k, v, n > 1 ? (f->op == MG_OP_ld ? loaded_fact(k, id) : unknown) : transfer(k, id));
        if (k->s->ssa->values[v].prev) set_fact(k, v, k->s->facts[k->s->ssa->values[v].prev]);
    }
}

static void each_node(struct solver *k, void (*fn)(struct solver *k, mg_id id))
{
    for (uint32_t i = 0; i < k->s->c->n_blocks; i++) {
        const struct mg_block *b = &k->s->c->blocks[k->s->c->rpo[i]];
        if (!k->s->c->reachable[k->s->c->rpo[i]]) continue;
        for (mg_id id = b->first;; id = k->m->nodes.at[id].next) {
            if (k->m->nodes.at[id].kind == MG_NODE_inst) fn(k, id);
            if (id == b->last) break;
        }
    }
}

static void find_facts(struct solver *k)
{
    for (uint32_t i = 0; i < k->n_states; i++) {
        k->s = &k->states[i];
        each_node(k, facts_of_node);
        for (uint32_t v = 1; v < k->s->ssa->n_values; v++) {
            const struct mg_ssa_value *x = &k->s->ssa->values[v];
            for (uint32_t a = 0; x->kind == MG_SSA_phi && a < x->n_args; a++)
                set_fact(k, v, k->s->facts[k->s->ssa->args[x->args_at + a]]);
        }
    }
}

/* ---- accesses -------------------------------------------------------------------------------------------------- */

struct access {
    const struct mg_opnd *at;
    bool reads, writes;
    uint64_t roots;
    uint8_t space;
    uint32_t bytes;
};

static uint64_t address_roots(struct solver *k, mg_id node, const struct mg_opnd *o)
{
    if (o->sub == MG_OPND_var) return root_of(k, true, o->id, k->m->vars.at[o->id].space);
    uint32_t v = o->sub == MG_OPND_reg ? mg_ssa_read(k->s->ssa, node, o->id) : 0;
    uint64_t r = v ? k->s->facts[v].roots : 0;
    return r ? r : ROOT_ANY;
}

/* Roots that memory of the space can have. */
static uint64_t roots_in(const struct solver *k, uint64_t roots, uint8_t space)
{
    if (space == MG_SPACE_generic) return roots;
    for (uint32_t i = 0; i < k->n_roots; i++)
        if (k->roots[i].space != space) roots &= ~(1ull << i);
    return roots ? roots : ROOT_ANY;
}

/* The accesses of an instruction, at most two; parameters, constants and read-only loads are none. */
static uint32_t accesses_of(struct solver *k, mg_id id, struct access out[2])
{
    const struct mg_node *n = &k->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(k->m, n);
    unsigned flags = f->op_flags;
    uint32_t count = 0;
    if (f->op == MG_OP_suld || f->op == MG_OP_sust || f->op == MG_OP_sured) {
        out[0] = (struct access){NULL, f->op != MG_OP_sust, f->op != MG_OP_suld, ROOT_IMAGE, MG_SPACE_tex, 0};
        return 1;
    }
    if (f->op == MG_OP_wmma)
        flags |= (unsigned)(mg_form_has(f, MG_MOD_load) ? MG_OPF_READS : 0) |
                 (unsigned)(mg_form_has(f, MG_MOD_store) ? MG_OPF_WRITES : 0);
    if (!(flags & (MG_OPF_READS | MG_OPF_WRITES)) || f->space == MG_SPACE_param || f->space == MG_SPACE_const ||
        f->op == MG_OP_tex || f->op == MG_OP_tld4 || f->op == MG_OP_ldu)
        return 0;
    if (f->op == MG_OP_ld && mg_form_has(f, MG_MOD_nc)) return 0;
    uint32_t bytes = f->n_types ? mg_type_bits((enum mg_type)f->types[f->n_types - 1]) / 8 * (f->vec ? f->vec : 1u) : 0;
    for (uint32_t i = 0; i < n->n_opnds && count < 2; i++) {
        const struct mg_opnd *o = &k->m->opnds.at[n->opnd + i];
        if (o->kind != MG_OPND_addr) continue;
        bool copy = f->op == MG_OP_cp;
        uint8_t space = copy ? MG_SPACE_generic : f->space;
        out[count] = (struct access){o,
                                     copy ? count == 1 : (flags & MG_OPF_READS) != 0,
                                     copy ? count == 0 : (flags & MG_OPF_WRITES) != 0,
                                     0,
                                     space,
                                     copy ? 0 : bytes};
        out[count].roots = roots_in(k, address_roots(k, id, o), space);
        count++;
    }
    return count;
}

static bool is_global(const struct solver *k, uint32_t root)
{
    return root >= k->n_roots || k->roots[root].space == MG_SPACE_global;
}

static void note_store(struct solver *k, mg_id id)
{
    struct access a[2];
    uint32_t n = accesses_of(k, id, a);
    for (uint32_t i = 0; i < n; i++) {
        if (!a[i].writes) continue;
        struct mg_poly_owner o = {0};
        if (a[i].at && k->s == k->states && a[i].bytes) {
            struct mg_poly p = mg_poly_address(&k->s->polys, id, a[i].at);
            o = mg_poly_owner(&p, k->axes);
        }
        for (uint32_t r = 0; r < 64; r++) {
            struct stored *to = &k->stored[r];
            if (!(a[i].roots >> r & 1)) continue;
            if (!to->any)
                *to = (struct stored){.any = true, .mine = o.own, .o = o, .lo = o.at, .hi = o.at + a[i].bytes};
            if (!o.own || o.key != to->o.key) to->mine = false;
            to->o.stride = MG_MIN(to->o.stride, o.stride);
            to->lo = MG_MIN(to->lo, o.at);
            to->hi = MG_MAX(to->hi, o.at + (int64_t)a[i].bytes);
        }
    }
}

/* ---- taint ------------------------------------------------------------------------------------------------------- */

static bool tells_time(unsigned s)
{
    return s == MG_SREG_smid || s == MG_SREG_warpid || (s >= MG_SREG_clock && s <= MG_SREG_pm7_64) ||
           (s >= MG_SREG_globaltimer && s <= MG_SREG_globaltimer_hi);
}

static uint64_t taint_of(const struct solver *k, mg_id node, const struct mg_opnd *o)
{
    uint64_t t = 0;
    switch (o->kind) {
    case MG_OPND_reg:
    case MG_OPND_not:
    case MG_OPND_neg:
    case MG_OPND_sel:
        return k->s->taint[mg_ssa_read(k->s->ssa, node, o->id)];
    case MG_OPND_addr:
        return o->sub == MG_OPND_reg ? k->s->taint[mg_ssa_read(k->s->ssa, node, o->id)] : 0;
    case MG_OPND_sreg:
        return tells_time(o->id) ? MG_TIMING_ALWAYS : 0;
    case MG_OPND_vec:
    case MG_OPND_list:
    case MG_OPND_tensor:
    case MG_OPND_pair:
        for (uint32_t i = 0; i < o->n; i++) t |= taint_of(k, node, &k->m->opnds.at[o->id + i]);
        return t;
    default:
        return 0;
    }
}

static uint64_t pair_of(struct solver *k, uint32_t x, uint32_t y)
{
    struct mg_timing *t = k->t;
    uint32_t a = MG_MIN(k->roots[x].of, k->roots[y].of), b = MG_MAX(k->roots[x].of, k->roots[y].of);
    for (uint32_t i = 0; i < t->n_pairs; i++)
        if (t->pairs[i].a == a && t->pairs[i].b == b) return 2ull << i;
    if (t->n_pairs == MG_TIMING_PAIRS) return MG_TIMING_ALWAYS;
    t->pairs[t->n_pairs] = (struct mg_timing_pair){a, b};
    return 2ull << t->n_pairs++;
}

/* Load and stores of one root. */
static uint64_t source_of(struct solver *k, mg_id id, const struct access *a, uint32_t root)
{
    const struct stored *s = &k->stored[root];
    if (!s->mine || !a->at || k->s != k->states) return MG_TIMING_ALWAYS;
    struct mg_poly p = mg_poly_address(&k->s->polys, id, a->at);
    struct mg_poly_owner o = mg_poly_owner(&p, k->axes);
    int64_t lo = MG_MIN(s->lo, o.at), hi = MG_MAX(s->hi, o.at + (int64_t)a->bytes);
    return o.own && o.key == s->o.key && (uint64_t)(hi - lo) <= s->o.stride ? s->taint : MG_TIMING_ALWAYS;
}

static uint64_t taint_from(struct solver *k, mg_id id, const struct access *a)
{
    uint64_t t = 0;
    for (uint32_t r = 0; r < 64; r++) {
        if (!(a->roots >> r & 1)) continue;
        for (uint32_t w = 0; w < 64; w++) {
            const struct stored *s = &k->stored[w];
            bool known = r < k->n_roots && w < k->n_roots;
            if (!s->any || (r != w && (r == 62 || w == 62))) continue;
            if (r == w)
                t |= is_global(k, r) ? source_of(k, id, a, r) : s->taint;
            else if (!known)
                t |= a->space == MG_SPACE_shared || a->space == MG_SPACE_local || (r < k->n_roots && !is_global(k, r))
                         ? s->taint
                     : is_global(k, w) ? MG_TIMING_ALWAYS
                                       : s->taint;
            else if (!k->roots[r].is_var && !k->roots[w].is_var)
                t |= pair_of(k, r, w);
        }
    }
    return t;
}

static uint64_t block_taint(const struct solver *k, mg_id id)
{
    return k->s->of[mg_cfg_block_of(k->s->c, id)];
}

static void taint_stores(struct solver *k, mg_id id, const struct access *a, uint64_t t)
{
    t |= block_taint(k, id);
    for (uint32_t r = 0; r < 64; r++)
        if (a->roots >> r & 1 && t & ~k->stored[r].taint) {
            k->stored[r].taint |= t;
            k->changed = true;
        }
}

static void taint_value(struct solver *k, uint32_t v, uint64_t t)
{
    if (!v || !(t & ~k->s->taint[v])) return;
    k->s->taint[v] |= t;
    k->changed = true;
}

static void taint_node(struct solver *k, mg_id id)
{
    const struct mg_node *n = &k->m->nodes.at[id];
    const struct mg_form *f = mg_node_form(k->m, n);
    const struct mg_opnd *o = &k->m->opnds.at[n->opnd];
    uint64_t t = n->guard ? k->s->taint[mg_ssa_read(k->s->ssa, id, n->guard)] : 0;
    struct access a[2];
    mg_id defs[64];
    if (f->op == MG_OP_call) flow_call(k, id, taint_to_var, block_taint(k, id) | t);
    if (stores_param(k, id)) taint_to_var(k, o[0].id, id, &o[1]);
    for (uint32_t i = 0; i < n->n_opnds; i++) t |= taint_of(k, id, &o[i]);
    if (f->op == MG_OP_ld && f->space == MG_SPACE_param && o[1].kind == MG_OPND_addr && o[1].sub == MG_OPND_var)
        t |= k->var_taint[o[1].id];
    bool waits = f->op == MG_OP_mbarrier || f->op == MG_OP_clusterlaunchcontrol,
         atomic = f->op_flags & MG_OPF_ATOMIC || waits;
    uint32_t n_access = accesses_of(k, id, a);
    uint64_t loaded = f->op == MG_OP_atom || waits ? MG_TIMING_ALWAYS : 0;
    for (uint32_t i = 0; i < n_access && !atomic; i++)
        if (a[i].reads) loaded |= taint_from(k, id, &a[i]);
    for (uint32_t i = 0; i < n_access; i++)
        if (a[i].writes) taint_stores(k, id, &a[i], atomic ? t : t | loaded);
    t |= loaded;
    uint32_t n_defs = mg_node_defs(k->m, id, defs, 64);
    for (uint32_t i = 0; i < n_defs && i < 64; i++) {
        uint32_t v = mg_ssa_write(k->s->ssa, id, defs[i]);
        taint_value(k, v, t | (v ? k->s->taint[k->s->ssa->values[v].prev] : 0));
    }
}

/* Which value a phi takes is decided where its predecessors were. */
static void taint_phis(struct solver *k)
{
    const struct mg_ssa *ssa = k->s->ssa;
    const struct mg_cfg *c = k->s->c;
    for (uint32_t v = 1; v < ssa->n_values; v++) {
        const struct mg_ssa_value *x = &ssa->values[v];
        const struct mg_block *b = &c->blocks[x->block];
        uint64_t t = 0;
        bool differs = false;
        if (x->kind != MG_SSA_phi) continue;
        for (uint32_t i = 0; i < x->n_args; i++) {
            t |= k->s->taint[ssa->args[x->args_at + i]];
            differs |= ssa->args[x->args_at + i] != ssa->args[x->args_at];
        }
        for (uint32_t i = 0; differs && i < x->n_args; i++) {
            uint32_t p = c->preds[b->pred_at + i];
            const struct mg_node *end = &k->m->nodes.at[c->blocks[p].last];
            t |= k->s->of[p];
            if (c->blocks[p].n_succs > 1 && end->guard)
                t |= k->s->taint[mg_ssa_read(ssa, c->blocks[p].last, end->guard)];
        }
        taint_value(k, v, t);
    }
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static bool decides(const struct solver *k, const struct mg_cfg *c, uint32_t b)
{
    const struct mg_node *n = &k->m->nodes.at[c->blocks[b].last];
    return n->kind == MG_NODE_inst && mg_node_form(k->m, n)->op_flags & MG_OPF_ENDS_BLOCK &&
           (n->guard || c->blocks[b].n_succs > 1);
}

struct controlled { /* rows of blocks */
    uint64_t *passed, *reached;
};

/* The blocks that the branch of p decides about: those that each way on passes up to where ways meet; of a way that
 * never leaves, whatever it reaches. */
static void find_controlled(const struct state *s, uint32_t p, const struct controlled *x)
{
    const struct mg_cfg *c = s->c;
    uint32_t stop = s->post->idom[p], words = mg_bits_words(c->n_blocks);
    bool ends = s->post->pre[p] != 0;
    memset(x->passed, 0, words * sizeof *x->passed);
    memset(x->reached, 0, words * sizeof *x->reached);
    MG_EACH_EDGE(&c->succ, p, e)
    {
        uint32_t b = c->succ.to[e];
        if (ends && s->post->pre[b])
            for (; b != stop && b < c->n_blocks; b = s->post->idom[b]) mg_put(x->passed, b);
        else if (!mg_has(x->passed, b))
            mg_put(x->reached, b);
    }
    mg_graph_close(&c->succ, x->reached, x->passed);
}

static void spread_to(struct solver *k, uint32_t b, uint64_t taint)
{
    k->changed |= (taint & ~k->s->of[b]) != 0;
    k->s->of[b] |= taint;
}

static void taint_blocks(struct solver *k)
{
    const struct mg_cfg *c = k->s->c;
    uint32_t words = mg_bits_words(c->n_blocks);
    struct controlled x = {.passed = mg_xcalloc(2 * words + 1, sizeof *x.passed)};
    x.reached = x.passed + words;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        spread_to(k, b, k->s->called);
        if (!c->reachable[b] || !decides(k, c, b)) continue;
        const struct mg_node *n = &k->m->nodes.at[c->blocks[b].last];
        uint64_t taint =
            k->s->of[b] | (n->guard ? k->s->taint[mg_ssa_read(k->s->ssa, c->blocks[b].last, n->guard)] : 0);
        if (mg_node_form(k->m, n)->op == MG_OP_brx)
            for (uint32_t i = 0; i < n->n_opnds; i++)
                taint |= taint_of(k, c->blocks[b].last, &k->m->opnds.at[n->opnd + i]);
        if (!taint) continue;
        find_controlled(k->s, b, &x);
        for (uint32_t to = 0; to < c->n_blocks; to++)
            if (mg_has(x.passed, to) || mg_has(x.reached, to)) spread_to(k, to, taint);
    }
    free(x.passed);
}

static void find_taint(struct solver *k)
{
    for (uint32_t i = 0; i < k->n_states; i++) {
        k->s = &k->states[i];
        k->s->taint[0] = 0;
        each_node(k, taint_node);
        taint_phis(k);
        taint_blocks(k);
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void open_state(struct state *s, mg_id func, const struct mg_cfg *c, uint64_t *of)
{
    *s = (struct state){.func = func,
                        .c = c,
                        .dom = mg_dom_new(c),
                        .post = mg_postdom_new(c),
                        .live = mg_live_new(c),
                        .l = mg_loops_new(c),
                        .of = of};
    s->ssa = mg_ssa_new(c, s->dom, s->live);
    s->facts = mg_xcalloc(s->ssa->n_values + 1, sizeof *s->facts);
    s->taint = mg_xcalloc(s->ssa->n_values + 1, sizeof *s->taint);
    mg_polys_init(&s->polys, c, s->ssa, s->l);
}

static void close_state(struct state *s)
{
    mg_polys_release(&s->polys);
    mg_ssa_free(s->ssa);
    mg_loops_free(s->l);
    mg_live_free(s->live);
    mg_dom_free(s->post);
    mg_dom_free(s->dom);
    free(s->facts);
    free(s->taint);
}

/* Axes along which the kernel tells threads or CTAs apart. */
static void find_axes(struct solver *k, mg_id id)
{
    const struct mg_node *n = &k->m->nodes.at[id];
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &k->m->opnds.at[n->opnd + i];
        if (o->kind == MG_OPND_sreg && (o->id == MG_SREG_tid || o->id == MG_SREG_ctaid) && o->sub)
            k->axes |= 1u << (o->sub - 1);
    }
}

struct mg_timing *mg_timing_new(const struct mg_module *m, const mg_id *funcs, struct mg_cfg *const *cfgs,
                                uint32_t n_funcs)
{
    struct mg_timing *t = mg_xcalloc(1, sizeof *t);
    struct solver k = {.m = m, .t = t, .n_states = n_funcs, .states = mg_xcalloc(n_funcs + 1, sizeof *k.states)};
    k.var_facts = mg_xcalloc(m->vars.n + 1, sizeof *k.var_facts);
    k.var_taint = mg_xcalloc(m->vars.n + 1, sizeof *k.var_taint);
    t->of = mg_arena_array(&t->arena, uint64_t *, n_funcs + 1);
    for (uint32_t i = 0; i < n_funcs; i++) {
        t->of[i] = mg_arena_array(&t->arena, uint64_t, cfgs[i]->n_blocks + 1);
        open_state(&k.states[i], funcs[i], cfgs[i], t->of[i]);
    }
    do {
        k.changed = false;
        find_facts(&k);
    } while (k.changed);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n_funcs; i++) {
            k.s = &k.states[i];
            each_node(&k, pass ? note_store : find_axes);
        }
    do {
        k.changed = false;
        find_taint(&k);
    } while (k.changed);
    for (uint32_t i = 0; i < n_funcs; i++) close_state(&k.states[i]);
    free(k.states);
    free(k.var_facts);
    free(k.var_taint);
    return t;
}

void mg_timing_free(struct mg_timing *t)
{
    if (!t) return;
    mg_arena_release(&t->arena);
    free(t);
}

const char *mg_timing_text(const struct mg_timing *t, uint64_t of, struct mg_arena *arena)
{
    char text[MG_TIMING_PAIRS * 24];
    size_t n = 0;
    if (!of) return "";
    if (of & MG_TIMING_ALWAYS) return "*";
    for (uint32_t i = 0; i < t->n_pairs; i++)
        if (of >> (i + 1) & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, n ? " %u,%u" : "%u,%u", t->pairs[i].a, t->pairs[i].b);
    return mg_arena_strndup(arena, text, n);
}
