/* A native fault in shared memory stays one. Words of ours that a kernel's text declares first lie in front of its own
 * variables, which move by S whole kilobytes: an access that goes astray below them, and faults natively, would find
 * these words. So an address of the program's that is not known to lie above gets what it is natively:
 *
 *     entry      w = offset of the first of ours;   end = w is where shared memory begins ? w + S : 0
 *     access     t = (a + offset) & 0xffffff (of a generic address: its place in the window);   a' = t < end ? a - S :
 * a
 *
 * Behind the program's variables nothing changes: the end of what a CTA has moves along. No branch, so that no basic
 * block ends. Accesses by one register in a straight line share a test, of the lowest of them that no guard spares.
 *
 * Not done where the assembler puts ours elsewhere (variables of module scope, which several functions name; texts that
 * are linked), nor for bulk copies, and not in functions that stay called. */

#include "analysis/space.h"
#include "pass/priv.h"

enum {
    WINDOW = 0xffffff,     /* of an address: the place in the CTA's window; above stands its rank in the cluster */
    BUT_RANK = 0xf0ffffff, /* devices of ours keep ours apart, high up */
    RESERVED = 1024,       /* where shared memory begins since sm_90 */
    FAR = 512,             /* nodes to look ahead for more accesses by the same register */
    DEEP = 16,
    MOST_DEFS = 16
};
#define UNKNOWN UINT64_MAX
#define SURE    ((uint64_t)1 << 31)

struct window {
    struct mg_module *m;
    mg_id func;
    struct mg_map defs; /* register -> how many << 32 | node of the last */
    struct mg_spaces *spaces;
    mg_id ours;     /* the first of ours in the text */
    uint64_t bytes; /* of all of ours */
    mg_id end, wide_end, test, in;
};

/* ---- what is known of an address --------------------------------------------------------------------------------- */

struct bound {
    bool based;    /* a variable's address is part of it */
    uint64_t most; /* beyond that; UNKNOWN */
};

static struct bound of_reg(const struct window *w, mg_id reg, int depth);
static struct bound of_opnd(const struct window *w, const struct mg_opnd *o, int depth)
{
    switch (o->kind) {
    case MG_OPND_imm:
        return (struct bound){false, o->val < SURE ? o->val : UNKNOWN};
    case MG_OPND_var:
        return (struct bound){w->m->vars.at[o->id].space == MG_SPACE_shared, o->val < SURE ? o->val : UNKNOWN};
    case MG_OPND_sreg:
        switch (o->id) {
        case MG_SREG_tid:
        case MG_SREG_ntid:
        case MG_SREG_warpid:
        case MG_SREG_nwarpid:
            return (struct bound){false, 2048};
        case MG_SREG_laneid:
            return (struct bound){false, 31};
        default:
            return (struct bound){false, UNKNOWN};
        }
    case MG_OPND_reg:
        return o->sub || o->val ? (struct bound){false, UNKNOWN} : of_reg(w, o->id, depth);
    default:
        return (struct bound){false, UNKNOWN};
    }
}

static struct bound sum_of(struct bound a, struct bound b)
{
    bool known = a.most < SURE && b.most < SURE && a.most + b.most < SURE && !(a.based && b.based);
    return known ? (struct bound){a.based || b.based, a.most + b.most} : (struct bound){false, UNKNOWN};
}
static struct bound product_of(struct bound a, struct bound b)
{
    bool known = !a.based && !b.based && a.most < SURE && b.most < SURE && a.most * b.most < SURE;
    return (struct bound){false, known ? a.most * b.most : UNKNOWN};
}
static struct bound either_of(struct bound a, struct bound b)
{
    return a.based == b.based && a.most < SURE && b.most < SURE ? (struct bound){a.based, MG_MAX(a.most, b.most)}
                                                                : (struct bound){false, UNKNOWN};
}

static bool are_words(const struct mg_form *f)
{
    for (unsigned i = 0; i < f->n_types; i++)
        if (mg_type_bits((enum mg_type)f->types[i]) < 32 || mg_type_kind((enum mg_type)f->types[i]) == MG_TK_FLOAT)
            return false;
    return f->op != MG_OP_ld;
}
/* Of a load or a conversion that fills up with zeros. */
static struct bound narrow(const struct mg_form *f)
{
    enum mg_type from = (enum mg_type)f->types[f->n_types ? f->n_types - 1 : 0];
    bool fills =
        (f->op == MG_OP_ld && !f->vec) || (f->op == MG_OP_cvt && mg_type_bits((enum mg_type)f->types[0]) >= 32 &&
                                           mg_type_kind((enum mg_type)f->types[0]) != MG_TK_FLOAT);
    if (!fills || mg_type_kind(from) == MG_TK_SINT || mg_type_kind(from) == MG_TK_FLOAT || mg_type_bits(from) > 16)
        return (struct bound){false, UNKNOWN};
    return (struct bound){false, (1ull << mg_type_bits(from)) - 1};
}

/* The only instruction that defines the register that an operand is; NULL: none such. */
static const struct mg_node *def_of(const struct window *w, const struct mg_opnd *o)
{
    uint64_t defs = 0;
    bool one = o->kind == MG_OPND_reg && !o->sub && !o->val && mg_map_get(&w->defs, o->id, &defs) && defs >> 32 == 1;
    return one && !w->m->nodes.at[(mg_id)defs].guard ? &w->m->nodes.at[(mg_id)defs] : NULL;
}

/* Is b some of the bits of x, and a = x, or x times a number: a - b is not below 0? What a is at most is known. */
static bool is_part(const struct window *w, const struct mg_opnd *a, const struct mg_opnd *b)
{
    const struct mg_node *part = def_of(w, b), *times = def_of(w, a);
    if (!part || mg_node_form(w->m, part)->op != MG_OP_and) return false;
    for (uint32_t i = 1; i <= 2; i++) {
        const struct mg_opnd *x = &w->m->opnds.at[part->opnd + i];
        if (x->kind != MG_OPND_reg || x->sub || x->val || !def_of(w, x)) continue;
        if (a->id == x->id) return true;
        const struct mg_form *f = times ? mg_node_form(w->m, times) : NULL;
        const struct mg_opnd *o = times ? &w->m->opnds.at[times->opnd] : NULL;
        bool same = f && are_words(f) && o[1].kind == MG_OPND_reg && !o[1].sub && !o[1].val && o[1].id == x->id;
        if (same && f->op == MG_OP_shl) return true;
        if (same && f->op == MG_OP_mul && !mg_form_has(f, MG_MOD_hi) && o[2].kind == MG_OPND_imm && o[2].val)
            return true;
    }
    return false;
}

static struct bound of_reg(const struct window *w, mg_id reg, int depth)
{
    const struct bound unknown = {false, UNKNOWN};
    uint64_t defs = 0;
    if (!depth || !mg_map_get(&w->defs, reg, &defs) || defs >> 32 != 1) return unknown;
    const struct mg_node *n = &w->m->nodes.at[(mg_id)defs];
    const struct mg_form *f = mg_node_form(w->m, n);
    const struct mg_opnd *o = &w->m->opnds.at[n->opnd];
    const enum mg_type type = (enum mg_type)f->types[0];
    struct bound s[3] = {unknown, unknown, unknown};
    for (uint32_t i = 1; i < n->n_opnds && i < 4; i++) s[i - 1] = of_opnd(w, &o[i], depth - 1);
    if (!are_words(f)) return narrow(f);
    switch (f->op) {
    case MG_OP_mov:
    case MG_OP_cvta:
    case MG_OP_cvt:
        return n->n_opnds == 2 ? s[0] : unknown;
    case MG_OP_add:
        return sum_of(s[0], s[1]);
    case MG_OP_sub:
        return s[0].most < SURE && !s[0].based && is_part(w, &o[1], &o[2]) ? s[0] : unknown;
    case MG_OP_mul:
        return mg_form_has(f, MG_MOD_hi) ? unknown : product_of(s[0], s[1]);
    case MG_OP_mad:
        return mg_form_has(f, MG_MOD_hi) ? unknown : sum_of(product_of(s[0], s[1]), s[2]);
    case MG_OP_shl:
        return o[2].kind == MG_OPND_imm && o[2].val < 31 ? product_of(s[0], (struct bound){false, 1ull << o[2].val})
                                                         : unknown;
    case MG_OP_shr:
        if (o[2].kind == MG_OPND_imm && o[2].val && o[2].val < 32 && mg_type_bits(type) == 32 &&
            mg_type_kind(type) != MG_TK_SINT && s[0].most == UNKNOWN)
            return (struct bound){false, UINT32_MAX >> o[2].val};
        return s[0].based ? unknown : s[0];
    case MG_OP_rem:
        if (s[0].most == UNKNOWN && mg_type_kind(type) == MG_TK_UINT && !s[1].based) return s[1];
        return s[0].based || s[1].most == UNKNOWN ? unknown : s[0];
    case MG_OP_div:
        return s[0].based || s[1].most == UNKNOWN ? unknown : s[0];
    case MG_OP_and:
        return s[0].based || s[1].based ? unknown : (struct bound){false, MG_MIN(s[0].most, s[1].most)};
    case MG_OP_or: /* no more than the sum */
        return s[0].based || s[1].based ? unknown : sum_of(s[0], s[1]);
    case MG_OP_selp:
        return either_of(s[0], s[1]);
    default:
        return unknown;
    }
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/* The address of an access that may be one of shared memory by a register; NULL: it is none. */
static struct mg_opnd *address_of(const struct window *w, mg_id node, bool *generic, bool *maybe)
{
    const struct mg_node *n = &w->m->nodes.at[node];
    if (n->kind != MG_NODE_inst || n->flags & MG_NF_META) return NULL;
    const struct mg_form *f = mg_node_form(w->m, n);
    switch (f->op) {
    case MG_OP_ld:
    case MG_OP_ldu:
    case MG_OP_st:
    case MG_OP_atom:
    case MG_OP_red:
    case MG_OP_ldmatrix:
    case MG_OP_stmatrix:
        break;
    default:
        return NULL;
    }
    *generic = f->space == MG_SPACE_generic;
    unsigned set = mg_spaces_of(w->spaces, node);
    if (*generic ? !(set & MG_SPACE_BIT(MG_SPACE_shared)) : f->space != MG_SPACE_shared) return NULL;
    *maybe = *generic && set != MG_SPACE_BIT(MG_SPACE_shared);
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        struct mg_opnd *o = &w->m->opnds.at[n->opnd + i];
        if (o->kind == MG_OPND_addr) return o->sub == MG_OPND_reg && !(o->n & 7) ? o : NULL;
    }
    return NULL;
}

static bool is_above(const struct window *w, const struct mg_opnd *o)
{
    struct bound b = of_reg(w, o->id, DEEP);
    return b.based && b.most < SURE && (int64_t)o->val >= 0 && o->val < SURE;
}

static bool ends_line(const struct mg_module *m, const struct mg_node *n)
{
    return n->kind == MG_NODE_label ||
           (n->kind == MG_NODE_inst && mg_node_form(m, n)->op_flags & (MG_OPF_ENDS_BLOCK | MG_OPF_BARRIER));
}

static bool defines(const struct mg_module *m, mg_id node, mg_id reg)
{
    mg_id ids[MOST_DEFS];
    uint32_t n = m->nodes.at[node].kind == MG_NODE_inst ? mg_node_defs(m, node, ids, MOST_DEFS) : 0;
    for (uint32_t i = 0; i < n && i < MOST_DEFS; i++)
        if (ids[i] == reg) return true;
    return false;
}

/* Calls `see` for the accesses by the register from `first` on in its straight line. */
static void each_of_line(struct window *w, mg_id first, mg_id reg, bool generic,
                         void (*see)(struct window *w, mg_id node, struct mg_opnd *o, void *user), void *user)
{
    struct mg_module *m = w->m;
    uint32_t n = 0;
    for (mg_id id = first; id && n < FAR; id = m->nodes.at[id].next, n++) {
        bool is_generic, maybe;
        if (ends_line(m, &m->nodes.at[id])) return;
        struct mg_opnd *o = address_of(w, id, &is_generic, &maybe);
        if (o && o->id == reg && is_generic == generic) see(w, id, o, user);
        if (defines(m, id, reg)) return;
    }
}

struct line {
    int64_t low; /* of the addresses' offsets: all from here on share the test */
    mg_id only;  /* not 0: of this access alone */
    mg_id reg;   /* that replaces the base */
};
static void find_lowest(struct window *w, mg_id node, struct mg_opnd *o, void *user)
{
    struct line *l = user;
    if (!w->m->nodes.at[node].guard && (int64_t)o->val < l->low) l->low = (int64_t)o->val;
}
static void replace(struct window *w, mg_id node, struct mg_opnd *o, void *user)
{
    const struct line *l = user;
    (void)w;
    if (l->only ? node == l->only : (int64_t)o->val >= l->low) o->id = l->reg;
}

#define PUT(form, ...) MG_INSERT(m, w->func, at, form, __VA_ARGS__)

static void put_test(struct window *w, mg_id at, bool generic, bool maybe, const struct mg_opnd address, struct line *l)
{
    struct mg_module *m = w->m;
    bool wide = mg_type_bits((enum mg_type)m->regs.at[address.id].type) == 64;
    l->reg = mg_module_add_reg(m, w->func, "__mg_window", wide ? MG_TYPE_b64 : MG_TYPE_b32);
    mg_id from = address.id;
    if (generic) PUT(wide ? "cvta.to.shared.u64" : "cvta.to.shared.u32", l->reg, from), from = l->reg;
    if (l->low) PUT(wide ? "add.s64" : "add.s32", l->reg, from, mg_o_imm(l->low)), from = l->reg;
    PUT(wide ? "and.b64" : "and.b32", l->reg, from, WINDOW);
    PUT(wide ? "setp.lt.u64" : "setp.lt.u32", w->test, l->reg, wide ? w->wide_end : w->end);
    if (maybe) {
        PUT("isspacep.shared", w->in, address.id);
        PUT("and.pred", w->test, w->test, w->in);
    }
    PUT(wide ? "mov.b64" : "mov.b32", l->reg, address.id);
    mg_id sub = PUT(wide ? "sub.s64" : "sub.s32", mg_o_reg(l->reg), mg_o_reg(address.id), mg_o_imm((int64_t)w->bytes));
    m->nodes.at[sub].guard = w->test;
}

static void put_end(struct window *w)
{
    struct mg_module *m = w->m;
    mg_id at = m->funcs.at[w->func].first_node;
    while (at && m->nodes.at[at].kind != MG_NODE_inst) at = m->nodes.at[at].next;
    mg_id begin = mg_module_add_reg(m, w->func, "__mg_begin", MG_TYPE_pred);
    PUT("mov.u32", w->end, mg_o_var(w->ours));
    PUT("and.b32", w->end, w->end, mg_o_imm(BUT_RANK));
    PUT("setp.eq.u32", begin, w->end, 0);
    if (m->sm >= 90) PUT("setp.eq.or.u32", begin, w->end, RESERVED, begin);
    PUT("add.u32", w->end, w->end, (int64_t)w->bytes);
    PUT("selp.b32", w->end, w->end, 0, begin);
    PUT("cvt.u64.u32", w->wide_end, w->end);
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static void count_defs(struct window *w)
{
    struct mg_module *m = w->m;
    MG_EACH_NODE(m, &m->funcs.at[w->func], id)
    {
        mg_id ids[MOST_DEFS];
        uint32_t n = m->nodes.at[id].kind == MG_NODE_inst ? mg_node_defs(m, id, ids, MOST_DEFS) : 0;
        for (uint32_t i = 0; i < n && i < MOST_DEFS; i++) {
            uint64_t defs = 0;
            mg_map_get(&w->defs, ids[i], &defs);
            mg_map_set(&w->defs, ids[i], ((defs >> 32) + 1) << 32 | id);
        }
    }
}

/* Are there variables of ours in the kernel's own text, and of its own anywhere? */
static bool finds_both(struct window *w)
{
    struct mg_module *m = w->m;
    bool theirs = false;
    for (mg_id k = 1; k < m->vars.n; k++) {
        const struct mg_var *v = &m->vars.at[k];
        if (v->space != MG_SPACE_shared || v->is_param || (v->func && !m->funcs.at[v->func].first_node)) continue;
        if (!v->is_added)
            theirs = true;
        else if (v->func == w->func)
            w->bytes += mg_var_bytes(v);
    }
    MG_EACH_NODE(m, &m->funcs.at[w->func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_decl || m->decls.at[n->ref].space != MG_SPACE_shared) continue;
        w->ours = m->decls.at[n->ref].first;
        return theirs && m->vars.at[w->ours].is_added; /* the first one */
    }
    return false;
}

void mg_twin_keep_window(struct mg_twin *t)
{
    struct window w = {.m = t->m, .func = t->kernel};
    if (!finds_both(&w)) return;
    w.spaces = mg_spaces_new(t->m);
    count_defs(&w);
    for (mg_id id = t->m->funcs.at[w.func].first_node; id; id = t->m->nodes.at[id].next) {
        bool generic, maybe;
        const struct mg_opnd *o = address_of(&w, id, &generic, &maybe);
        if (!o || !mg_map_get(&w.defs, o->id, NULL) || is_above(&w, o)) continue;
        if (!w.end) {
            w.end = mg_module_add_reg(t->m, w.func, "__mg_end", MG_TYPE_b32);
            w.wide_end = mg_module_add_reg(t->m, w.func, "__mg_wide_end", MG_TYPE_b64);
            w.test = mg_module_add_reg(t->m, w.func, "__mg_below", MG_TYPE_pred);
            w.in = mg_module_add_reg(t->m, w.func, "__mg_inside", MG_TYPE_pred);
        }
        const struct mg_opnd address = *o;
        struct line l = {.low = INT64_MAX};
        each_of_line(&w, id, address.id, generic, find_lowest, &l);
        if (l.low > (int64_t)address.val) l.low = (int64_t)address.val, l.only = id; /* a guard may spare it */
        put_test(&w, id, generic, maybe, address, &l);
        each_of_line(&w, id, address.id, generic, replace, &l);
    }
    if (w.end) put_end(&w);
    mg_spaces_free(w.spaces);
    mg_map_release(&w.defs);
}
