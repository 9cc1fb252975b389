/* Small functions of a twin, put where they are called. The counters that travel with a call
 * (count/carry.c) then stay in registers, and what the call itself cost is gone.
 *
 *     st.param.f32 [param0], %f1;                     mov.f32 P, %f1;
 *     call (ret0), f, (param0, %c);          ──►      mov.b32 Q, %c;   body of f: ld.param of its parameters and
 *                                            st.param
 *     ld.param.f32 %f2, [ret0];                       of its result become moves, ret a branch behind it;
 *       mov.f32 %f2, R;
 *
 * After all tools: what they put into f comes along. Only what passes in pieces of 32 and 64 bits that
 * both sides name alike, leaves (after those they call were put into them) of few instructions, and
 * functions without variables of their own. A function that nobody calls any more goes. */
#include <stdlib.h>
#include <string.h>

#include "analysis/contract.h"
#include "analysis/loop.h"
#include "base/buf.h"
#include "pass/priv.h"

enum { MOST_PIECES = 32 };
/* A twin's, and those of a device whose compiler is ours. keeps: m->fused says which products sums take in, so that
 * nothing depends on who stands beside whom. */
struct limits {
    uint32_t insts, growth;
    bool keeps;
};
static const struct limits twins = {120, 600, false};

struct piece {
    mg_id var;
    uint32_t off, bits;
    mg_id reg;
}; /* of a parameter or result of the callee */
struct site {
    struct mg_module *m;
    const struct limits *l;
    mg_id func, callee, node; /* node: the call, in func */
    struct piece pieces[MOST_PIECES];
    uint32_t n;
    struct {
        mg_id outside, formal;
    } vars[MOST_PIECES];
    uint32_t n_vars; /* variables of the call */
    struct {
        mg_id reg, formal;
        bool back;
    } regs[MOST_PIECES];
    uint32_t n_regs; /* registers of the call */
};

/* ---- what can be put in place ------------------------------------------------------------------------ */

static bool is_run(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_vec || o->kind == MG_OPND_list || o->kind == MG_OPND_tensor || o->kind == MG_OPND_pair;
}

static bool names_var(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_var || (o->kind == MG_OPND_addr && o->sub == MG_OPND_var);
}

/* The variable that a plain load or store of parameter space names with `bits` bits at `off`; 0: it is none. */
static mg_id plain_access(const struct mg_module *m, const struct mg_node *n, bool *store, uint32_t *off,
                          uint32_t *bits)
{
    if (n->kind != MG_NODE_inst || n->guard) return 0;
    const struct mg_form *f = mg_node_form(m, n);
    *store = f->op == MG_OP_st;
    if ((f->op != MG_OP_ld && f->op != MG_OP_st) || !mg_form_has(f, MG_MOD_param) || f->vec || f->n_types != 1 ||
        n->n_opnds != 2)
        return 0;
    const struct mg_opnd *at = &m->opnds.at[n->opnd + (*store ? 0 : 1)], *value = &m->opnds.at[n->opnd + *store];
    *off = (uint32_t)at->val;
    *bits = mg_type_bits((enum mg_type)f->types[0]);
    if (value->kind == MG_OPND_reg && mg_type_bits((enum mg_type)m->regs.at[value->id].type) != *bits) return 0;
    return at->kind == MG_OPND_addr && at->sub == MG_OPND_var && (*bits == 32 || *bits == 64) ? at->id : 0;
}

static bool mentions(const struct mg_module *m, mg_id first, uint32_t n, mg_id lo, mg_id hi)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_opnd *o = &m->opnds.at[first + i];
        if (is_run(o) ? mentions(m, o->id, o->n, lo, hi) : names_var(o) && o->id >= lo && o->id < hi) return true;
    }
    return false;
}

/* Do lanes look at others there, or wait for them? In a call those of other calls are elsewhere. */
static bool meets_others(unsigned op)
{
    switch (op) {
    case MG_OP_bar:
    case MG_OP_barrier:
    case MG_OP_shfl:
    case MG_OP_vote:
    case MG_OP_match:
    case MG_OP_redux:
    case MG_OP_elect:
    case MG_OP_activemask:
        return true;
    default:
        return false;
    }
}

/* Is the body one that can be copied? n: its instructions. */
static bool is_leaf(const struct mg_module *m, mg_id func, const struct limits *l, uint32_t *n)
{
    const struct mg_func *f = &m->funcs.at[func];
    *n = 0;
    if (f->kind != MG_FUNC_func || f->noreturn || f->stays || f->n_rets > 1 || !f->first_node) return false;
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        switch (x->kind) {
        case MG_NODE_target:
        case MG_NODE_raw:
            return false;
        case MG_NODE_decl:
            if (m->decls.at[x->ref].space != MG_SPACE_reg || m->decls.at[x->ref].vec) return false;
            break;
        case MG_NODE_inst: {
            unsigned op = mg_node_form(m, x)->op;
            if (!op || op == MG_OP_call || op == MG_OP_brx || op == MG_OP_alloca || ++*n > l->insts) return false;
            if (l->keeps && x->flags & MG_NF_META) return false; /* what tools inserted stays as it is */
            if (l->keeps ? meets_others(op) : mg_contract_is_quotient(mg_node_form(m, x), x)) /* see find_parted */
                return false;
            break;
        }
        default:
            break;
        }
    }
    return true;
}

static struct piece *piece_of(struct site *s, mg_id var, uint32_t off, uint32_t bits)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->pieces[i].var == var && s->pieces[i].off == off && s->pieces[i].bits == bits) return &s->pieces[i];
    return NULL;
}

static bool add_piece(struct site *s, mg_id var, uint32_t off, uint32_t bits)
{
    if (piece_of(s, var, off, bits)) return true;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->pieces[i].var == var && off < s->pieces[i].off + s->pieces[i].bits / 8 &&
            s->pieces[i].off < off + bits / 8)
            return false;
    if (s->n == MOST_PIECES) return false;
    s->pieces[s->n++] = (struct piece){.var = var, .off = off, .bits = bits};
    return true;
}

/* Parameters and result of the callee, piece by piece. */
static bool find_pieces(struct site *s)
{
    const struct mg_module *m = s->m;
    const struct mg_func *f = &m->funcs.at[s->callee];
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        bool store;
        uint32_t off, bits;
        if (x->kind != MG_NODE_inst) continue;
        bool in = mentions(m, x->opnd, x->n_opnds, f->first_param, f->first_param + f->n_params);
        bool out = f->n_rets && mentions(m, x->opnd, x->n_opnds, f->first_ret, f->first_ret + f->n_rets);
        if (!in && !out) continue;
        mg_id var = plain_access(m, x, &store, &off, &bits);
        if (!var || store != out || !add_piece(s, var, off, bits)) return false;
    }
    return true;
}

static bool match(struct site *s, const struct mg_opnd *o, mg_id formal, bool back)
{
    if (o->kind == MG_OPND_var && !o->val && s->n_vars < MOST_PIECES) {
        s->vars[s->n_vars].outside = o->id;
        s->vars[s->n_vars++].formal = formal;
        return true;
    }
    if (o->kind != MG_OPND_reg || o->sub || s->n_regs == MOST_PIECES) return false;
    s->regs[s->n_regs].reg = o->id;
    s->regs[s->n_regs].back = back;
    s->regs[s->n_regs++].formal = formal;
    return true;
}

static bool match_list(struct site *s, uint32_t at, mg_id first, uint32_t n, bool back)
{
    const struct mg_module *m = s->m;
    if (at == MG_NO_OPND) return n == 0;
    struct mg_opnd list = m->opnds.at[m->nodes.at[s->node].opnd + at];
    if (list.kind != MG_OPND_list || list.n != n) return false;
    for (uint32_t i = 0; i < n; i++)
        if (m->vars.at[first + i].is_reg_param || !match(s, &m->opnds.at[list.id + i], first + i, back)) return false;
    return true;
}

static mg_id formal_of(const struct site *s, mg_id var)
{
    for (uint32_t i = 0; i < s->n_vars; i++)
        if (s->vars[i].outside == var) return s->vars[i].formal;
    return 0;
}

/* Around the call its variables are named by plain stores and loads of whole pieces alone. */
static bool has_plain_sides(const struct site *s)
{
    const struct mg_module *m = s->m;
    MG_EACH_NODE(m, &m->funcs.at[s->func], id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        bool store, any = false;
        uint32_t off, bits;
        if (x->kind != MG_NODE_inst || id == s->node) continue;
        for (uint32_t i = 0; i < s->n_vars && !any; i++)
            any = mentions(m, x->opnd, x->n_opnds, s->vars[i].outside, s->vars[i].outside + 1);
        if (!any) continue;
        mg_id var = plain_access(m, x, &store, &off, &bits), formal = var ? formal_of(s, var) : 0;
        if (!formal) return false;
        for (uint32_t i = 0; i < s->n; i++) { /* a piece that the callee leaves alone may be anything */
            const struct piece *p = &s->pieces[i];
            if (p->var == formal && off < p->off + p->bits / 8 && p->off < off + bits / 8 &&
                (p->off != off || p->bits != bits))
                return false;
        }
        if (store == (m->vars.at[formal].is_ret != 0)) return false;
    }
    for (uint32_t i = 0; i < s->n_regs; i++)
        for (uint32_t k = 0; k < s->n; k++)
            if (s->pieces[k].var == s->regs[i].formal &&
                (s->pieces[k].off || s->pieces[k].bits != mg_type_bits((enum mg_type)m->regs.at[s->regs[i].reg].type)))
                return false;
    return true;
}

/* The assembler fuses it with sums of any block. */
static bool is_by_constant(const struct mg_module *m, mg_id func, mg_id product)
{
    const struct mg_node *n = &m->nodes.at[product];
    const struct mg_form *f = mg_node_form(m, n);
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    return f->types[0] == MG_TYPE_f32 &&
           (mg_contract_moved(m, func, &o[2])->kind != MG_OPND_reg ||
            (f->op == MG_OP_mul && mg_contract_moved(m, func, &o[1])->kind != MG_OPND_reg));
}

/* Products and quotients of the caller's that go into the call or into a sum behind it: natively the call keeps them
 * apart, in its place the assembler may make one operation of both. True: there are quotients among them, which cannot
 * say that they are rounded. */
static bool find_parted(const struct site *s, struct mg_map *parted)
{
    const struct mg_module *m = s->m;
    struct mg_map before = MG_MAP_INIT;
    bool behind = false, quotients = false, store;
    uint32_t off, bits;
    MG_EACH_NODE(m, &m->funcs.at[s->func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        behind |= id == s->node;
        if (n->kind != MG_NODE_inst || n->flags & MG_NF_META) continue;
        const struct mg_form *f = mg_node_form(m, n);
        if (!behind && (mg_contract_is_quotient(f, n) || mg_contract_is_product(f, n))) {
            mg_map_set(&before, m->opnds.at[n->opnd].id, id);
        } else if (behind ? f->op == MG_OP_add || f->op == MG_OP_sub || f->op == MG_OP_call
                          : plain_access(m, n, &store, &off, &bits) && store) {
            mg_id ids[64];
            uint32_t n_ids = mg_node_uses(m, id, ids, 64);
            uint64_t product;
            for (uint32_t i = 0; i < n_ids && i < 64; i++) {
                if (!mg_map_get(&before, ids[i], &product) ||
                    (behind && id != s->node && is_by_constant(m, s->func, (mg_id)product)))
                    continue;
                mg_map_set(parted, ids[i], 1);
                quotients |= mg_node_form(m, &m->nodes.at[product])->op == MG_OP_div;
            }
        }
    }
    mg_map_release(&before);
    return quotients;
}

static bool can_inline(struct site *s)
{
    const struct mg_module *m = s->m;
    const struct mg_node *x = &m->nodes.at[s->node];
    const struct mg_func *f = &m->funcs.at[s->callee];
    struct mg_call c;
    if (x->guard) return false;
    mg_call_read(m, s->node, &c);
    struct mg_map parted = MG_MAP_INIT;
    if (s->l->keeps && x->flags & MG_NF_META) return false;
    bool can = (s->l->keeps || !find_parted(s, &parted)) && match_list(s, c.args, f->first_param, f->n_params, false) &&
               match_list(s, c.rets, f->first_ret, f->n_rets, true) && find_pieces(s) && has_plain_sides(s);
    mg_map_release(&parted);
    return can;
}

/* ---- putting it there ------------------------------------------------------------------------------------ */

static mg_id reg_of(struct site *s, mg_id formal, uint32_t off, uint32_t bits)
{
    struct piece *p = piece_of(s, formal, off, bits);
    if (p && !p->reg) p->reg = mg_module_add_reg(s->m, s->func, "__mg_p", bits == 64 ? MG_TYPE_b64 : MG_TYPE_b32);
    return p ? p->reg : 0;
}

/* A plain access becomes a move. */
static void move_to(struct mg_module *m, mg_id node, mg_id reg, bool store)
{
    char form[16] = "mov.";
    enum mg_type type = (enum mg_type)mg_node_form(m, &m->nodes.at[node])->types[0];
    strcat(form, mg_type_name(type));
    mg_id id = mg_form_intern(m, form, strlen(form));
    m->nodes.at[node].ref = id;
    m->opnds.at[m->nodes.at[node].opnd + (store ? 0 : 1)] = mg_o_reg(reg);
}

/* A load or store of a piece becomes a move; of one that only one side names, nothing. */
static bool make_move(struct site *s, mg_id node, mg_id formal, bool store, uint32_t off, uint32_t bits)
{
    struct mg_module *m = s->m;
    mg_id reg = reg_of(s, formal, off, bits);
    if (reg) move_to(m, node, reg, store);
    return reg;
}

struct copy {
    struct site *s;
    struct mg_map regs, labels, nodes;
};

static mg_id reg_copy(mg_id reg, void *user)
{
    struct copy *c = user;
    struct mg_module *m = c->s->m;
    uint64_t to;
    if (m->regs.at[reg].func != c->s->callee) return reg;
    if (!mg_map_get(&c->regs, reg, &to))
        mg_map_set(&c->regs, reg, to = mg_module_add_reg(m, c->s->func, "__mg_i", (enum mg_type)m->regs.at[reg].type));
    return (mg_id)to;
}

static mg_id label_copy(struct copy *c, mg_id label)
{
    struct mg_module *m = c->s->m;
    uint64_t to;
    if (!mg_map_get(&c->labels, label, &to)) {
        to = mg_module_add_label(m, c->s->func, "$__mg_inline");
        m->labels.at[to].targeted = m->labels.at[label].targeted;
        mg_map_set(&c->labels, label, to);
    }
    return (mg_id)to;
}

static mg_id copy_run(struct copy *c, mg_id first, uint32_t n)
{
    struct mg_module *m = c->s->m;
    mg_id at = mg_opnd_alloc(m, n);
    for (uint32_t i = 0; i < n; i++) {
        struct mg_opnd o = m->opnds.at[first + i];
        if (is_run(&o)) o.id = copy_run(c, o.id, o.n);
        if (o.kind == MG_OPND_label) o.id = label_copy(c, o.id);
        m->opnds.at[at + i] = o;
    }
    return at;
}

static void copy_node(struct copy *c, mg_id node, mg_id at, mg_id end)
{
    struct site *s = c->s;
    struct mg_module *m = s->m;
    struct mg_node x = m->nodes.at[node];
    const struct mg_reg_renamer rename = {reg_copy, reg_copy, c};
    bool store;
    uint32_t off, bits;
    if (x.kind == MG_NODE_decl) return; /* registers are declared as they are met */
    mg_id to = mg_node_new_kind(m, (enum mg_node_kind)x.kind, x.kind == MG_NODE_label ? label_copy(c, x.ref) : x.ref);
    struct mg_node *n = &m->nodes.at[to];
    n->flags = x.flags;
    n->guard = x.guard;
    n->line = x.line;
    n->origin = x.origin;
    mg_map_set(&c->nodes, node, to);
    if (x.kind == MG_NODE_inst) {
        mg_id first = copy_run(c, x.opnd, x.n_opnds);
        m->nodes.at[to].opnd = first;
        m->nodes.at[to].n_opnds = x.n_opnds;
        mg_id var = plain_access(m, &m->nodes.at[to], &store, &off, &bits);
        mg_node_rename(m, to, &rename);
        if (var && m->vars.at[var].func == s->callee) make_move(s, to, var, store, off, bits);
        if (mg_node_form(m, &m->nodes.at[to])->op == MG_OP_ret) {
            mg_id form = mg_form_intern(m, "bra", 3), target = mg_opnd_alloc(m, 1);
            m->opnds.at[target] = mg_o_label(end);
            m->nodes.at[to].ref = form;
            m->nodes.at[to].opnd = target;
            m->nodes.at[to].n_opnds = 1;
        }
    }
    mg_node_insert_before(m, s->func, at, to);
}

/* Does the node move a register to where the call takes it, or its result from? */
static bool is_passed(const struct site *s, const struct mg_node *n, mg_id *reg)
{
    if (n->kind != MG_NODE_inst || mg_node_form(s->m, n)->op != MG_OP_mov) return false;
    const struct mg_opnd *o = &s->m->opnds.at[n->opnd];
    for (uint32_t i = 0; i < s->n; i++)
        if (o[0].kind == MG_OPND_reg && o[1].kind == MG_OPND_reg && o[0].id == s->pieces[i].reg) {
            *reg = o[1].id;
            return true;
        }
    return false;
}

/* Products that the call kept apart from a sum say that they are rounded: those in `passed`, and what it gives back. */
static void round_passed(struct site *s, struct mg_map *passed)
{
    struct mg_module *m = s->m;
    mg_id reg;
    MG_EACH_NODE(m, &m->funcs.at[s->func], id)
    {
        if (is_passed(s, &m->nodes.at[id], &reg)) mg_map_set(passed, reg, 1);
    }
    MG_EACH_NODE(m, &m->funcs.at[s->func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (!passed->n || n->kind != MG_NODE_inst || !mg_contract_is_product(mg_node_form(m, n), n) ||
            !mg_map_get(passed, m->opnds.at[n->opnd].id, NULL))
            continue;
        struct mg_buf form = MG_BUF_INIT;
        mg_buf_printf(&form, "mul.rn%s", mg_name(m, mg_node_form(m, n)->text) + strlen("mul"));
        mg_id rounded = mg_form_intern(m, form.at, form.n);
        m->nodes.at[id].ref = rounded;
        mg_buf_release(&form);
    }
}

/* The copies' sums take in the copies' products. */
static void copy_contractions(struct copy *c)
{
    struct mg_module *m = c->s->m;
    uint64_t packed, sum, product;
    MG_EACH_NODE(m, &m->funcs.at[c->s->callee], id)
    {
        if (!mg_map_get(m->fused, id, &packed)) continue;
        struct mg_contraction taken = mg_contraction_unpack(packed);
        if (!mg_map_get(&c->nodes, id, &sum) || !mg_map_get(&c->nodes, taken.product, &product)) abort();
        taken.product = (mg_id)product;
        mg_map_set(m->fused, sum, mg_contraction_pack(taken));
    }
}

/* Stores in front of the call and loads behind it. */
static void replace_sides(struct site *s)
{
    struct mg_module *m = s->m;
    mg_id next;
    for (mg_id id = m->funcs.at[s->func].first_node; id; id = next) {
        bool store;
        uint32_t off, bits;
        next = m->nodes.at[id].next;
        mg_id var = plain_access(m, &m->nodes.at[id], &store, &off, &bits), formal = var ? formal_of(s, var) : 0;
        if (formal && !make_move(s, id, formal, store, off, bits)) mg_node_remove(m, s->func, id);
        if (m->nodes.at[id].kind == MG_NODE_decl && m->decls.at[m->nodes.at[id].ref].n == 1 &&
            m->decls.at[m->nodes.at[id].ref].space == MG_SPACE_param &&
            formal_of(s, m->decls.at[m->nodes.at[id].ref].first))
            mg_node_remove(m, s->func, id);
    }
}

static void put_in_place(struct site *s)
{
    struct mg_module *m = s->m;
    struct copy c = {.s = s, .regs = MG_MAP_INIT, .labels = MG_MAP_INIT, .nodes = MG_MAP_INIT};
    struct mg_map parted = MG_MAP_INIT;
    mg_id end = mg_module_add_label(m, s->func, "$__mg_inlined"), after = m->nodes.at[s->node].next;
    m->labels.at[end].targeted = 1;
    if (!s->l->keeps) find_parted(s, &parted);
    replace_sides(s);
    for (uint32_t i = 0; i < s->n_regs; i++) {
        uint32_t bits = mg_type_bits((enum mg_type)m->regs.at[s->regs[i].reg].type);
        mg_id reg = reg_of(s, s->regs[i].formal, 0, bits);
        const char *form = bits == 64 ? "mov.b64" : "mov.b32";
        if (reg && s->regs[i].back)
            MG_INSERT(m, s->func, after, form, s->regs[i].reg, reg);
        else if (reg)
            MG_INSERT(m, s->func, s->node, form, reg, s->regs[i].reg);
    }
    for (mg_id id = m->funcs.at[s->callee].first_node, next; id; id = next) {
        next = m->nodes.at[id].next;
        copy_node(&c, id, s->node, end);
    }
    mg_id there = mg_node_new_kind(m, MG_NODE_label, end);
    if (s->l->keeps) m->nodes.at[there].flags = m->nodes.at[s->node].flags; /* a block of the program's */
    mg_node_insert_before(m, s->func, s->node, there);
    mg_node_remove(m, s->func, s->node);
    if (s->l->keeps)
        copy_contractions(&c);
    else
        round_passed(s, &parted);
    mg_map_release(&parted);
    mg_map_release(&c.regs);
    mg_map_release(&c.labels);
    mg_map_release(&c.nodes);
}

/* ---- the functions ------------------------------------------------------------------------------------------- */

/* Where node `id` is a call that can be. */
static bool inline_call(struct mg_module *m, mg_id func, mg_id id, const struct limits *l, const bool *taken,
                        uint32_t *growth)
{
    struct mg_call c;
    uint32_t n;
    if (m->nodes.at[id].kind != MG_NODE_inst || mg_node_form(m, &m->nodes.at[id])->op != MG_OP_call) return false;
    mg_call_read(m, id, &c);
    mg_id body = c.func ? mg_func_body(m, c.func) : 0;
    if (!body || body == func || taken[body] || !is_leaf(m, body, l, &n) || *growth + n > l->growth) return false;
    struct site s = {.m = m, .l = l, .func = func, .callee = body, .node = id};
    if (!can_inline(&s)) return false;
    put_in_place(&s);
    *growth += n;
    return true;
}

static bool inline_calls(struct mg_module *m, mg_id func, const struct limits *l, const bool *taken, uint32_t *growth)
{
    bool any = false;
    for (mg_id id = m->funcs.at[func].first_node, next; id; id = next) {
        next = m->nodes.at[id].next;
        any |= inline_call(m, func, id, l, taken, growth);
    }
    return any;
}

static bool is_called(const struct mg_twin *t, mg_id body)
{
    const struct mg_module *m = t->m;
    for (uint32_t i = 0; i < t->n_funcs; i++) MG_EACH_NODE(m, &m->funcs.at[t->funcs[i]], id)
        {
            struct mg_call c;
            if (m->nodes.at[id].kind != MG_NODE_inst || mg_node_form(m, &m->nodes.at[id])->op != MG_OP_call) continue;
            mg_call_read(m, id, &c);
            if (c.func && mg_func_body(m, c.func) == body) return true;
        }
    return false;
}

static void drop_func(struct mg_module *m, mg_id body)
{
    uint32_t n = 1;
    for (uint32_t i = 1; i < m->items.n; i++)
        if (m->items.at[i].kind != MG_ITEM_func || mg_func_body(m, m->items.at[i].id) != body)
            m->items.at[n++] = m->items.at[i];
    m->items.n = n;
}

void mg_twin_inline(struct mg_twin *t)
{
    uint32_t growth = 0;
    if (t->n_funcs < 2) return;
    bool *taken = mg_funcs_taken(t->m);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = t->n_funcs; i-- > 0;) again |= inline_calls(t->m, t->funcs[i], &twins, taken, &growth);
    }
    for (uint32_t i = 1; i < t->n_funcs; i++)
        if (!taken[t->funcs[i]] && !is_called(t, t->funcs[i])) drop_func(t->m, t->funcs[i]);
    free(taken);
}

/* How many instructions the function has; calls: is there a call? */
static uint32_t count_insts(const struct mg_module *m, mg_id func, bool *calls)
{
    uint32_t n = 0;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        if (m->nodes.at[id].kind != MG_NODE_inst) continue;
        *calls |= mg_node_form(m, &m->nodes.at[id])->op == MG_OP_call;
        n++;
    }
    return n;
}

/* Calls in inner loops first: there is not room for all. */
static void inline_inner_first(struct mg_module *m, mg_id func, const struct limits *l, const bool *taken)
{
    enum { DEEPEST = 4 };
    MG_VEC(mg_id) calls[DEEPEST + 1] = {0};
    uint32_t growth = 0;
    struct mg_cfg *cfg = mg_cfg_new(m, func);
    struct mg_loops *loops = cfg ? mg_loops_new(cfg) : NULL;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        uint32_t b = loops && x->kind == MG_NODE_inst ? mg_cfg_block_of(cfg, id) : MG_NO_BLOCK;
        if (b == MG_NO_BLOCK || mg_node_form(m, x)->op != MG_OP_call) continue;
        *mg_vec_push(&calls[MG_MIN(mg_loops_depth(loops, b), (uint32_t)DEEPEST)]) = id;
    }
    mg_loops_free(loops);
    mg_cfg_free(cfg);
    for (int d = DEEPEST; d >= 0; d--) {
        for (uint32_t i = 0; i < calls[d].n; i++) inline_call(m, func, calls[d].at[i], l, taken, &growth);
        mg_vec_release(&calls[d]);
    }
}

/* Functions stay of a size that a compiler takes seconds for. Those far beyond it are compiled where one lane alone
 * runs most of them (device/cpu/lone.c), which takes little time. */
static struct limits limits_of(uint32_t insts)
{
    enum { MOST_INSTS = 300, USUAL = 1200, HUGE = 5000, MOST_HUGE = 7000, HUGE_GROWTH = 6000 };
    uint32_t growth = insts >= HUGE && insts <= MOST_HUGE ? HUGE_GROWTH : insts < USUAL ? USUAL - insts : 0;
    return (struct limits){MOST_INSTS, growth, true};
}

/* ---- functions of arithmetic alone ------------------------------------------------------------------------- */

/* Registers and constants; two halves of 64 bits */
static bool has_plain_operands(const struct mg_module *m, const struct mg_node *x, bool move)
{
    for (uint32_t i = 0; i < x->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[x->opnd + i];
        bool reg = (o->kind == MG_OPND_reg && !o->sub && !o->val) || o->kind == MG_OPND_not,
             constant = o->kind == MG_OPND_imm || o->kind == MG_OPND_f32 || o->kind == MG_OPND_f64;
        if (!reg && !constant && !(move && o->kind == MG_OPND_vec && o->n == 2)) return false;
    }
    return true;
}

/* Does the operation read and write registers alone, in a form that compilers of ours have code for? */
static bool is_arithmetic(const struct mg_module *m, const struct mg_node *x)
{
    const struct mg_form *f = mg_node_form(m, x);
    bool real = false, move = f->op == MG_OP_mov && f->types[0] == MG_TYPE_b64;
    if (f->unknown || f->vec || mg_form_has(f, MG_MOD_cc) || mg_form_has(f, MG_MOD_sat) ||
        !has_plain_operands(m, x, move))
        return false;
    for (unsigned k = 0; k < f->n_types; k++) {
        enum mg_type t = (enum mg_type)f->types[k];
        unsigned bits = mg_type_bits(t), kind = mg_type_kind(t);
        if (kind == MG_TK_FLOAT ? t != MG_TYPE_f32 && t != MG_TYPE_f64 : kind > MG_TK_PRED) return false;
        if (bits != 32 && bits != 64 && kind != MG_TK_PRED) return false;
        real |= kind == MG_TK_FLOAT;
    }
    switch (f->op) {
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_mad:
    case MG_OP_fma:
    case MG_OP_div:
    case MG_OP_rcp:
    case MG_OP_sqrt:
        if (!real) return !mg_form_has(f, MG_MOD_hi);
        if (f->types[0] == MG_TYPE_f64 && f->op == MG_OP_rcp && mg_form_has(f, MG_MOD_approx)) return true;
        return !mg_form_has(f, MG_MOD_approx) && !mg_form_has(f, MG_MOD_full) &&
               (!f->rounding || f->rounding == MG_MOD_rn);
    case MG_OP_min:
    case MG_OP_max:
    case MG_OP_neg:
    case MG_OP_abs:
        return f->n_mods == f->n_types;
    case MG_OP_mov:
    case MG_OP_and:
    case MG_OP_or:
    case MG_OP_xor:
    case MG_OP_not:
    case MG_OP_shl:
    case MG_OP_shr:
    case MG_OP_selp:
    case MG_OP_setp:
    case MG_OP_cvt:
        return true;
    default:
        return false;
    }
}

/* Instructions of a function that has nothing but arithmetic and branches forward, and one end, the last instruction.
 * 0: it is no such function. */
static uint32_t count_arithmetic(const struct mg_module *m, mg_id func, const struct limits *l)
{
    const struct mg_func *f = &m->funcs.at[func];
    uint32_t n;
    bool ended = false, store, ok = f->n_rets == 1 && f->n_params && is_leaf(m, func, l, &n);
    struct mg_map passed = MG_MAP_INIT; /* labels */
    MG_EACH_NODE(m, f, id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        uint32_t off, bits;
        if (!ok) break;
        if (x->kind == MG_NODE_label) mg_map_set(&passed, x->ref, 1);
        if (x->kind != MG_NODE_inst) continue;
        const struct mg_form *form = mg_node_form(m, x);
        ok = !ended;
        if (form->op == MG_OP_ret) {
            ended = true;
            ok &= !x->guard;
        } else if (form->op == MG_OP_bra)
            ok &= m->opnds.at[x->opnd].kind == MG_OPND_label && !mg_map_get(&passed, m->opnds.at[x->opnd].id, NULL);
        else if (!plain_access(m, x, &store, &off, &bits))
            ok &= is_arithmetic(m, x);
    }
    mg_map_release(&passed);
    return ok && ended ? n : 0;
}

/* Does each parameter, and the result, pass as one piece? */
static bool passes_whole(const struct site *s)
{
    const struct mg_func *f = &s->m->funcs.at[s->callee];
    bool ok = s->n == f->n_params + f->n_rets;
    for (uint32_t k = 0; k < s->n && ok; k++) {
        const struct mg_var *v = &s->m->vars.at[s->pieces[k].var];
        ok = !s->pieces[k].off && mg_var_bytes(v) * 8 == s->pieces[k].bits && !v->n_dims && !v->vec;
    }
    return ok;
}

/* Registers instead of variables, for the parameters and results of every name that the function has. */
static void name_registers(struct mg_module *m, mg_id body)
{
    for (mg_id g = 1; g < m->funcs.n; g++) {
        if (mg_func_body(m, g) != body) continue;
        struct mg_func f = m->funcs.at[g];
        for (uint32_t k = 0; k < f.n_params + f.n_rets; k++) {
            mg_id id = k < f.n_params ? f.first_param + k : f.first_ret + (k - f.n_params);
            mg_id reg = mg_module_add_reg(m, g, "__mg_a", (enum mg_type)m->vars.at[id].type);
            struct mg_var *v = &m->vars.at[id];
            v->is_reg_param = 1;
            v->space = MG_SPACE_reg;
            v->reg = reg;
        }
    }
    MG_EACH_NODE(m, &m->funcs.at[body], id)
    {
        bool store;
        uint32_t off, bits;
        mg_id var = plain_access(m, &m->nodes.at[id], &store, &off, &bits);
        if (var) move_to(m, id, m->vars.at[var].reg, store);
    }
}

static void pass_in_registers(struct site *s)
{
    struct mg_module *m = s->m;
    struct mg_call c;
    replace_sides(s);
    mg_call_read(m, s->node, &c);
    for (int side = 0; side < 2; side++) {
        struct mg_opnd list = m->opnds.at[m->nodes.at[s->node].opnd + (side ? c.rets : c.args)];
        for (uint32_t k = 0; k < list.n; k++) {
            struct mg_opnd o = m->opnds.at[list.id + k];
            mg_id formal = o.kind == MG_OPND_var ? formal_of(s, o.id) : 0;
            if (!formal) continue;
            uint32_t bits = (uint32_t)mg_var_bytes(&m->vars.at[formal]) * 8;
            mg_id reg = reg_of(s, formal, 0, bits);
            m->opnds.at[list.id + k] = mg_o_reg(reg);
        }
    }
}

/* Larger functions of arithmetic alone that are called from several places stay, and take registers: compilers of ours
 * make a function of them, too (device/cpu/pure.c). */
static void keep_arithmetic(struct mg_module *m, const bool *taken)
{
    enum { LEAST_INSTS = 80, MOST_INSTS = 1000, LEAST_CALLS = 2 };
    static const struct limits l = {MOST_INSTS, 0, true};
    for (mg_id body = 1; body < m->funcs.n; body++) {
        if (taken[body] || count_arithmetic(m, body, &l) < LEAST_INSTS) continue;
        MG_VEC(struct site) sites = {0};
        bool all = true;
        for (mg_id f = 1; f < m->funcs.n; f++) MG_EACH_NODE(m, &m->funcs.at[f], id)
            {
                struct mg_call c;
                if (m->nodes.at[id].kind != MG_NODE_inst || mg_node_form(m, &m->nodes.at[id])->op != MG_OP_call)
                    continue;
                mg_call_read(m, id, &c);
                if (!c.func || mg_func_body(m, c.func) != body) continue;
                struct site s = {.m = m, .l = &l, .func = f, .callee = body, .node = id};
                all = all && can_inline(&s) && passes_whole(&s);
                *mg_vec_push(&sites) = s;
            }
        if (all && sites.n >= LEAST_CALLS) {
            for (uint32_t k = 0; k < sites.n; k++) pass_in_registers(&sites.at[k]);
            name_registers(m, body);
        }
        mg_vec_release(&sites);
    }
}

void mg_module_inline(struct mg_module *m, bool calls_arithmetic)
{
    bool *taken = NULL;
    for (mg_id f = 1; f < m->funcs.n; f++) {
        bool calls = false;
        uint32_t n = m->funcs.at[f].first_node ? count_insts(m, f, &calls) : 0;
        if (!calls) continue;
        if (!m->fused) mg_contract_keep(m);
        if (!taken) {
            taken = mg_funcs_taken(m);
            if (calls_arithmetic) keep_arithmetic(m, taken);
        }
        const struct limits l = limits_of(n);
        inline_inner_first(m, f, &l, taken);
    }
    free(taken);
}
