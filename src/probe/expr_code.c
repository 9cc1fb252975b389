/* Values and expressions of one-liners as PTX. Arithmetic is pure and runs in all lanes; only what has
 * an effect is guarded (expr_place.c). */
#include "probe/expr_code.h"

#include <string.h>

static struct mg_expr_val in_reg(mg_id r, bool warp)
{
    return (struct mg_expr_val){.kind = MG_VAL_REG, .warp = warp, .reg = r};
}

static mg_id temp64(struct mg_expr_here *h)
{
    return mg_code_temp(h->at, MG_TYPE_b64);
}

static mg_id widen32(struct mg_code_at *at, mg_id r)
{
    mg_id w = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "cvt.u64.u32", w, r);
    return w;
}

/* ---- operands of the instruction ------------------------------------------------------------------- */

/* Which operand holds `value`, and its type; false: none does. */
static bool find_value(struct mg_expr_here *h, bool old, struct mg_opnd *o, enum mg_type *type, bool *is_result)
{
    struct mg_module *m = mg_patch_module(h->p);
    const struct mg_node *n = &m->nodes.at[h->spot->node];
    const struct mg_form *f = mg_node_form(m, n);
    uint32_t ix = 0;
    bool atom = f->op == MG_OP_atom, store = f->op == MG_OP_st || f->op == MG_OP_red;
    if (old && !atom) return false;
    *is_result = !store && (!atom || old);
    if (*is_result && (f->op_flags & (MG_OPF_NO_DST | MG_OPF_ENDS_BLOCK))) return false;
    if (store || (atom && !old)) {
        while (ix < n->n_opnds && m->opnds.at[n->opnd + ix].kind != MG_OPND_addr) ix++;
        ix++;
    }
    if (ix >= n->n_opnds) return false;
    *o = m->opnds.at[n->opnd + ix];
    if (o->kind == MG_OPND_vec || o->kind == MG_OPND_pair) *o = m->opnds.at[o->id]; /* the first element */
    if (o->kind != MG_OPND_reg && o->kind != MG_OPND_imm && o->kind != MG_OPND_f32 && o->kind != MG_OPND_f64)
        return false;
    if (o->kind == MG_OPND_reg && (o->sub || o->val)) return false;
    bool access = f->op == MG_OP_ld || f->op == MG_OP_ldu || store || atom;
    *type = !f->n_types ? MG_TYPE_none : (enum mg_type)f->types[access ? f->n_types - 1 : 0];
    if (o->kind == MG_OPND_reg && (mg_type_bits((enum mg_type)m->regs.at[o->id].type) > 64 || m->regs.at[o->id].vec))
        return false;
    return true;
}

static bool is_float(enum mg_type t)
{
    return t == MG_TYPE_f32 || t == MG_TYPE_f64 || t == MG_TYPE_f16;
}

/* A register of the application, as 64 bits: of narrower ones as the type says. */
static struct mg_expr_val widen(struct mg_expr_here *h, struct mg_code_at *at, mg_id reg, enum mg_type type,
                                bool access)
{
    struct mg_module *m = mg_patch_module(h->p);
    unsigned bits = mg_type_bits((enum mg_type)m->regs.at[reg].type), want = access ? mg_type_bits(type) : bits;
    mg_id w = mg_value_wide(at, mg_o_reg(reg));
    bool is_signed = mg_type_kind(type) == MG_TK_SINT;
    if (bits == 1) want = 64;
    if (bits < want) want = bits;
    if (want < 64 && (is_signed || want < bits)) {
        mg_id r = mg_code_temp(at, MG_TYPE_b64);
        MG_CODE(at, "shl.b64", r, w, mg_o_imm(64 - want));
        MG_CODE(at, is_signed ? "shr.s64" : "shr.u64", r, r, mg_o_imm(64 - want));
        w = r;
    }
    return in_reg(w, false);
}

static struct mg_expr_val float_value(struct mg_expr_here *h, struct mg_code_at *at, mg_id reg, enum mg_type type,
                                      bool nan)
{
    mg_id w = mg_code_temp(at, nan ? MG_TYPE_pred : MG_TYPE_b64);
    (void)h;
    if (nan) {
        mg_id x = reg;
        if (type == MG_TYPE_f16) { /* older devices compare no half numbers */
            x = mg_code_temp(at, MG_TYPE_b32);
            MG_CODE(at, "cvt.f32.f16", x, reg);
        }
        MG_CODE(at, type == MG_TYPE_f64 ? "setp.nan.f64" : "setp.nan.f32", w, x, x);
        return (struct mg_expr_val){.kind = MG_VAL_PRED, .reg = w};
    }
    MG_CODE(at,
            type == MG_TYPE_f64   ? "cvt.rzi.s64.f64"
            : type == MG_TYPE_f32 ? "cvt.rzi.s64.f32"
                                  : "cvt.rzi.s64.f16",
            w, reg);
    return in_reg(w, false);
}

static int64_t truncated(double v)
{
    return v != v ? 0 : v >= 9223372036854775807.0 ? INT64_MAX : v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
}

static struct mg_expr_val constant_value(const struct mg_opnd *o, enum mg_expr_value what, enum mg_type type)
{
    int64_t bits = (int64_t)o->val;
    double v = 0;
    float single;
    bool fp = o->kind == MG_OPND_f32 || o->kind == MG_OPND_f64;
    if (o->kind == MG_OPND_f32) {
        uint32_t low = (uint32_t)o->val;
        memcpy(&single, &low, 4);
        v = (double)single;
    } else if (o->kind == MG_OPND_f64) {
        memcpy(&v, &o->val, 8);
        if (type == MG_TYPE_f32) { /* a decimal literal */
            uint32_t low;
            single = (float)v;
            memcpy(&low, &single, 4);
            bits = low;
        }
    } else if (mg_type_bits(type) < 64 && mg_type_kind(type) != MG_TK_SINT && mg_type_bits(type)) {
        bits &= (int64_t)(((uint64_t)1 << mg_type_bits(type)) - 1);
    }
    if (what == MG_EV_nan) return mg_expr_imm(fp && v != v);
    return mg_expr_imm(fp && what == MG_EV_value ? truncated(v) : bits);
}

static struct mg_expr_val operand_value(struct mg_expr_here *h, enum mg_expr_value what)
{
    struct mg_opnd o;
    enum mg_type type;
    bool is_result;
    struct mg_expr_val none = {0};
    if (!find_value(h, what == MG_EV_old, &o, &type, &is_result)) return none;
    if (is_result && !h->after) return none;
    if (o.kind != MG_OPND_reg) return constant_value(&o, what, type);
    struct mg_module *m = mg_patch_module(h->p);
    struct mg_code_at *at = is_result ? h->at : h->before;
    unsigned op = mg_node_form(m, &m->nodes.at[h->spot->node])->op,
             have = mg_type_bits((enum mg_type)m->regs.at[o.id].type);
    bool access = op == MG_OP_ld || op == MG_OP_ldu || op == MG_OP_st || op == MG_OP_atom || op == MG_OP_red;
    bool fp = is_float(type) && have == mg_type_bits(type);
    if (what == MG_EV_nan && !fp) return mg_expr_imm(0);
    return fp && what != MG_EV_bits ? float_value(h, at, o.id, type, what == MG_EV_nan)
                                    : widen(h, at, o.id, type, access);
}

/* What was computed in front of the instruction and is read behind it. */
static struct mg_expr_val carry(struct mg_expr_here *h, struct mg_expr_val v)
{
    if (h->before == h->at || (v.kind != MG_VAL_REG && v.kind != MG_VAL_PRED)) return v;
    mg_id r = mg_code_reg(h->before, v.kind == MG_VAL_PRED ? MG_TYPE_pred : MG_TYPE_b64);
    MG_CODE(h->before, v.kind == MG_VAL_PRED ? "mov.pred" : "mov.b64", r, v.reg);
    v.reg = r;
    return v;
}

static struct mg_expr_val carried_operand(struct mg_expr_here *h, enum mg_expr_value v);

static enum mg_mod atom_of(const struct mg_form *f)
{
    static const enum mg_mod known[] = {MG_MOD_add, MG_MOD_min, MG_MOD_max, MG_MOD_and,
                                        MG_MOD_or,  MG_MOD_xor, MG_MOD_exch};
    enum mg_type t = f->n_types ? (enum mg_type)f->types[f->n_types - 1] : MG_TYPE_none;
    if (f->op != MG_OP_atom || (mg_type_bits(t) != 32 && mg_type_bits(t) != 64) || mg_type_kind(t) == MG_TK_FLOAT ||
        mg_type_kind(t) == MG_TK_PACKED)
        return MG_MOD_none;
    for (unsigned i = 0; i < MG_COUNT_OF(known); i++)
        if (mg_form_has(f, known[i])) return known[i];
    return MG_MOD_none;
}

static struct mg_expr_val new_value(struct mg_expr_here *h)
{
    struct mg_module *m = mg_patch_module(h->p);
    const struct mg_form f = *mg_node_form(m, &m->nodes.at[h->spot->node]);
    enum mg_type t = (enum mg_type)f.types[f.n_types - 1];
    bool is_signed = mg_type_kind(t) == MG_TK_SINT;
    enum mg_mod how = atom_of(&f);
    struct mg_expr_val b = carried_operand(h, MG_EV_value), old = mg_expr_value_at(h, MG_EV_old);
    if (how == MG_MOD_exch) return b;
    const char *form = how == MG_MOD_add   ? "add.u64"
                       : how == MG_MOD_and ? "and.b64"
                       : how == MG_MOD_or  ? "or.b64"
                       : how == MG_MOD_xor ? "xor.b64"
                       : how == MG_MOD_min ? (is_signed ? "min.s64" : "min.u64")
                       : is_signed         ? "max.s64"
                                           : "max.u64";
    mg_id r = temp64(h);
    MG_CODE(h->at, form, r, mg_expr_reg(h, old), mg_expr_opnd(h, b));
    if (mg_type_bits(t) == 32) { /* it wraps around at 32 bits */
        MG_CODE(h->at, "shl.b64", r, r, 32);
        MG_CODE(h->at, is_signed ? "shr.s64" : "shr.u64", r, r, 32);
    }
    return in_reg(r, false);
}

/* ---- values of the place ------------------------------------------------------------------------------ */

static struct mg_expr_val special(struct mg_expr_here *h, enum mg_expr_value v)
{
    static const enum mg_sreg of[] = {MG_SREG_tid, MG_SREG_ntid, MG_SREG_ctaid, MG_SREG_nctaid};
    unsigned ix = (unsigned)v - MG_EV_tid_x;
    mg_id r = mg_code_temp(h->at, MG_TYPE_b32);
    MG_CODE(h->at, "mov.u32", r, mg_o_sreg(of[ix / 3], (uint8_t)(ix % 3 + 1)));
    return in_reg(widen32(h->at, r), ix >= 3);
}
_Static_assert(MG_EV_tid_x + 11 == MG_EV_nctaid_z, "special() counts on the order of expr_values.def");

static struct mg_expr_val guard_value(struct mg_expr_here *h)
{
    struct mg_module *m = mg_patch_module(h->p);
    bool is_not;
    mg_id g = mg_node_guard(m, h->spot->node, &is_not);
    if (!g || !h->spot->site->issued) return mg_expr_imm(1);
    mg_id r = mg_code_temp(h->before, MG_TYPE_b64);
    MG_CODE(h->before, "selp.b64", r, mg_o_imm(!is_not), mg_o_imm(is_not), g);
    return carry(h, in_reg(r, false));
}

/* An operand or a result of the instruction, readable at the clause's place. */
static struct mg_expr_val carried_operand(struct mg_expr_here *h, enum mg_expr_value v)
{
    struct mg_opnd o;
    enum mg_type type;
    bool is_result = false, is_old = v == MG_EV_old;
    if (h->has[v]) return h->values[v];
    struct mg_expr_val got = operand_value(h, v);
    return find_value(h, is_old, &o, &type, &is_result) && !is_result ? carry(h, got) : got;
}

static struct mg_expr_val make_value(struct mg_expr_here *h, enum mg_expr_value v)
{
    struct mg_code_at *at = h->at;
    const struct mg_expr_const c = h->spot->env.values[v];
    bool warp = mg_expr_value_flags(v) & MG_EVF_WARP;
    if (c.known && !c.is_str) return mg_expr_imm(c.num);
    switch (v) {
    case MG_EV_addr:
        return carry(h, in_reg(mg_value_address(h->before, h->spot->node), false));
    case MG_EV_alloc:
    case MG_EV_offset:
        mg_expr_find_allocation(h);
        return h->values[v];
    case MG_EV_value:
    case MG_EV_bits:
    case MG_EV_nan:
    case MG_EV_old:
        return carried_operand(h, v);
    case MG_EV_new:
        return new_value(h);
    case MG_EV_guard:
        return guard_value(h);
    case MG_EV_active:
        return in_reg(widen32(at, mg_value_active(at)), warp);
    case MG_EV_lanes:
        return in_reg(widen32(at, mg_value_n_active(at)), warp);
    case MG_EV_leader:
        return (struct mg_expr_val){.kind = MG_VAL_PRED, .reg = mg_value_leader(at)};
    case MG_EV_lane:
        return in_reg(widen32(at, mg_value_lane(at)), warp);
    case MG_EV_warp:
        return in_reg(widen32(at, mg_value_warp(at)), warp);
    case MG_EV_tid:
        return in_reg(widen32(at, mg_value_tid(at)), warp);
    case MG_EV_cta:
        return in_reg(mg_value_cta(at), warp);
    case MG_EV_sm:
        return in_reg(widen32(at, mg_value_sm(at)), warp);
    case MG_EV_clock:
        return in_reg(mg_value_clock(at), warp);
    case MG_EV_time:
        return in_reg(mg_value_globaltimer(at), warp);
    case MG_EV_launch:
        return in_reg(mg_value_word(at, 0), warp);
    default:
        return v >= MG_EV_tid_x ? special(h, v) : mg_expr_imm(0);
    }
}

struct mg_expr_val mg_expr_value_at(struct mg_expr_here *h, enum mg_expr_value v)
{
    if (!h->has[v]) h->values[v] = make_value(h, v);
    h->has[v] = true;
    return h->values[v];
}

/* ---- where code goes ---------------------------------------------------------------------------------------- */

static bool is_overwritten(const struct mg_module *m, mg_id node, mg_id reg)
{
    mg_id defs[64];
    uint32_t n = mg_node_defs(m, node, defs, 64);
    for (uint32_t i = 0; i < n && i < 64; i++)
        if (defs[i] == reg) return true;
    return false;
}

bool mg_expr_here_init(struct mg_expr_here *h, struct mg_patch *p, const struct mg_expr_spot *spot)
{
    struct mg_module *m = mg_patch_module(p);
    static const enum mg_expr_value of_inst[] = {MG_EV_value, MG_EV_bits, MG_EV_nan, MG_EV_old};
    bool wants_result = false;
    struct mg_opnd o;
    enum mg_type type;
    *h = (struct mg_expr_here){.p = p, .spot = spot};
    if (!spot->node) return true; /* `at` is the caller's to set */
    for (unsigned i = 0; i < MG_COUNT_OF(of_inst); i++) {
        bool is_result;
        if (!spot->clause->uses[of_inst[i]]) continue;
        if (!find_value(h, of_inst[i] == MG_EV_old, &o, &type, &is_result)) return false;
        wants_result |= is_result;
    }
    if (spot->clause->uses[MG_EV_new]) {
        bool is_result;
        if (!atom_of(mg_node_form(m, &m->nodes.at[spot->node])) || !find_value(h, true, &o, &type, &is_result))
            return false;
        wants_result = true;
    }
    bool ends = mg_node_form(m, &m->nodes.at[spot->node])->op_flags & MG_OPF_ENDS_BLOCK;
    h->after = spot->site->position == MG_EP_AFTER || (spot->site->position == MG_EP_AUTO && wants_result);
    if ((h->after && ends) || (wants_result && !h->after) || (wants_result && spot->clause->skips)) return false;
    h->before = mg_at_before(p, spot->node);
    h->at = h->after ? mg_at_after(p, spot->node) : h->before;
    if (spot->site->issued) return true;
    h->guard = mg_node_guard(m, spot->node, &h->guard_not);
    if (h->guard && h->after && is_overwritten(m, spot->node, h->guard))
        h->guard = carry(h, (struct mg_expr_val){.kind = MG_VAL_PRED, .reg = h->guard}).reg;
    return true;
}

/* ---- expressions ------------------------------------------------------------------------------------------------ */

mg_id mg_expr_reg(struct mg_expr_here *h, struct mg_expr_val v)
{
    if (v.kind == MG_VAL_REG) return v.reg;
    mg_id r = temp64(h);
    if (v.kind == MG_VAL_PRED)
        MG_CODE(h->at, "selp.b64", r, 1, 0, v.reg);
    else
        MG_CODE(h->at, "mov.u64", r, mg_o_imm(v.num));
    return r;
}

struct mg_opnd mg_expr_opnd(struct mg_expr_here *h, struct mg_expr_val v)
{
    return v.kind == MG_VAL_IMM ? mg_o_imm(v.num) : mg_o_reg(mg_expr_reg(h, v));
}

mg_id mg_expr_pred(struct mg_expr_here *h, struct mg_expr_val v)
{
    if (v.kind == MG_VAL_PRED) return v.reg;
    mg_id p = mg_code_temp(h->at, MG_TYPE_pred);
    MG_CODE(h->at, "setp.ne.s64", p, mg_expr_reg(h, v), 0);
    return p;
}

static struct mg_expr_val as_pred(mg_id p, bool warp)
{
    return (struct mg_expr_val){.kind = MG_VAL_PRED, .warp = warp, .reg = p};
}

/* x / y and x % y: by 0 gives 0, as before the kernel runs (mg_expr_eval). */
static struct mg_expr_val divide(struct mg_expr_here *h, unsigned op, struct mg_expr_val a, struct mg_expr_val b)
{
    mg_id r = temp64(h);
    bool warp = a.warp && b.warp;
    if (b.kind == MG_VAL_IMM && b.num && b.num != -1) {
        MG_CODE(h->at, op == MG_EO_DIV ? "div.s64" : "rem.s64", r, mg_expr_reg(h, a), mg_o_imm(b.num));
        return in_reg(r, warp);
    }
    mg_id zero = mg_code_temp(h->at, MG_TYPE_pred), minus = mg_code_temp(h->at, MG_TYPE_pred), by = temp64(h),
          neg = temp64(h);
    mg_id x = mg_expr_reg(h, a), y = mg_expr_reg(h, b);
    MG_CODE(h->at, "setp.eq.s64", zero, y, 0);
    MG_CODE(h->at, "setp.eq.s64", minus, y, -1);
    MG_CODE(h->at, "selp.b64", by, 1, y, zero);
    MG_CODE(h->at, "selp.b64", by, 1, by, minus); /* the lowest number by -1 is out of range */
    MG_CODE(h->at, op == MG_EO_DIV ? "div.s64" : "rem.s64", r, x, by);
    if (op == MG_EO_DIV) {
        MG_CODE(h->at, "neg.s64", neg, x);
        MG_CODE(h->at, "selp.b64", r, neg, r, minus);
    }
    MG_CODE(h->at, "selp.b64", r, 0, r, zero);
    return in_reg(r, warp);
}

static struct mg_expr_val shift(struct mg_expr_here *h, unsigned op, struct mg_expr_val a, struct mg_expr_val b)
{
    mg_id r = temp64(h), by = mg_code_temp(h->at, MG_TYPE_b32), x = mg_expr_reg(h, a);
    mg_id wide = temp64(h);
    MG_CODE(h->at, "min.u64", wide, mg_expr_reg(h, b), 64);
    MG_CODE(h->at, "cvt.u32.u64", by, wide);
    MG_CODE(h->at, op == MG_EO_SHL ? "shl.b64" : "shr.s64", r, x, by);
    return in_reg(r, a.warp && b.warp);
}

static struct mg_expr_val choose(struct mg_expr_here *h, const struct mg_expr_node *n)
{
    struct mg_expr_const c = mg_expr_eval(n->args[0], &h->spot->env);
    if (c.known) return mg_expr_code(h, n->args[c.num ? 1 : 2]);
    struct mg_expr_val cond = mg_expr_code(h, n->args[0]), a = mg_expr_code(h, n->args[1]),
                       b = mg_expr_code(h, n->args[2]);
    mg_id r = temp64(h), p = mg_expr_pred(h, cond);
    MG_CODE(h->at, "selp.b64", r, mg_expr_reg(h, a), mg_expr_reg(h, b), p);
    return in_reg(r, cond.warp && a.warp && b.warp);
}

static struct mg_expr_val code_op(struct mg_expr_here *h, const struct mg_expr_node *n)
{
    static const char *const forms[] = {
        [MG_EO_OR_ELSE] = "or.pred", [MG_EO_AND_ALSO] = "and.pred", [MG_EO_OR] = "or.b64",
        [MG_EO_XOR] = "xor.b64",     [MG_EO_AND] = "and.b64",       [MG_EO_EQ] = "setp.eq.s64",
        [MG_EO_NE] = "setp.ne.s64",  [MG_EO_LT] = "setp.lt.s64",    [MG_EO_LE] = "setp.le.s64",
        [MG_EO_GT] = "setp.gt.s64",  [MG_EO_GE] = "setp.ge.s64",    [MG_EO_ADD] = "add.s64",
        [MG_EO_SUB] = "sub.s64",     [MG_EO_MUL] = "mul.lo.s64",    [MG_EO_NEG] = "neg.s64",
        [MG_EO_NOT] = "not.pred",    [MG_EO_INV] = "not.b64"};
    if (n->op == MG_EO_CHOOSE) return choose(h, n);
    struct mg_expr_val a = mg_expr_code(h, n->args[0]), b = n->n_args > 1 ? mg_expr_code(h, n->args[1]) : a;
    bool warp = a.warp && b.warp, pred = n->op == MG_EO_OR_ELSE || n->op == MG_EO_AND_ALSO || n->op == MG_EO_NOT;
    if (n->op == MG_EO_DIV || n->op == MG_EO_REM) return divide(h, n->op, a, b);
    if (n->op == MG_EO_SHL || n->op == MG_EO_SHR) return shift(h, n->op, a, b);
    if (pred) {
        mg_id p = mg_code_temp(h->at, MG_TYPE_pred), x = mg_expr_pred(h, a);
        if (n->n_args == 1)
            MG_CODE(h->at, forms[n->op], p, x);
        else
            MG_CODE(h->at, forms[n->op], p, x, mg_expr_pred(h, b));
        return as_pred(p, warp);
    }
    if (n->op >= MG_EO_EQ && n->op <= MG_EO_GE) {
        mg_id p = mg_code_temp(h->at, MG_TYPE_pred);
        MG_CODE(h->at, forms[n->op], p, mg_expr_reg(h, a), mg_expr_opnd(h, b));
        return as_pred(p, warp);
    }
    mg_id r = temp64(h), x = mg_expr_reg(h, a);
    if (n->n_args == 1)
        MG_CODE(h->at, forms[n->op], r, x);
    else
        MG_CODE(h->at, forms[n->op], r, x, mg_expr_opnd(h, b));
    return in_reg(r, warp);
}

static struct mg_expr_val code_func(struct mg_expr_here *h, const struct mg_expr_node *n)
{
    struct mg_expr_val a = mg_expr_code(h, n->args[0]), b = n->n_args > 1 ? mg_expr_code(h, n->args[1]) : a;
    mg_id r = temp64(h), x = mg_expr_reg(h, a), small;
    switch (n->op) {
    case MG_EF_popc:
        small = mg_code_temp(h->at, MG_TYPE_b32);
        MG_CODE(h->at, "popc.b64", small, x);
        MG_CODE(h->at, "cvt.u64.u32", r, small);
        break;
    case MG_EF_log2: { /* of 0 and less: 0 */
        mg_id y = temp64(h);
        small = mg_code_temp(h->at, MG_TYPE_b32);
        MG_CODE(h->at, "max.s64", y, x, 1);
        MG_CODE(h->at, "clz.b64", small, y);
        MG_CODE(h->at, "sub.s32", small, 63, small);
        MG_CODE(h->at, "cvt.u64.u32", r, small);
        break;
    }
    case MG_EF_abs:
        MG_CODE(h->at, "abs.s64", r, x);
        break;
    default:
        MG_CODE(h->at, n->op == MG_EF_min ? "min.s64" : "max.s64", r, x, mg_expr_opnd(h, b));
    }
    return in_reg(r, a.warp && b.warp);
}

struct mg_expr_val mg_expr_code(struct mg_expr_here *h, const struct mg_expr_node *n)
{
    struct mg_expr_const c = mg_expr_eval(n, &h->spot->env);
    if (c.known) return mg_expr_imm(c.is_str ? 0 : c.num);
    switch (n->kind) {
    case MG_EK_VALUE:
        return mg_expr_value_at(h, (enum mg_expr_value)n->value);
    case MG_EK_ARG:
        return in_reg(mg_value_param(h->at, (uint32_t)n->num), true);
    case MG_EK_VAR: {
        mg_id r = temp64(h); /* a copy: it may be set again before this is used */
        MG_CODE(h->at, "mov.b64", r, h->vars[n->num]);
        return in_reg(r, false);
    }
    case MG_EK_INPUT:
        return n->num < h->n_inputs ? h->inputs[n->num] : mg_expr_imm(0);
    case MG_EK_OP:
        return code_op(h, n);
    case MG_EK_FUNC:
        return code_func(h, n);
    default:
        return mg_expr_imm(0);
    }
}
