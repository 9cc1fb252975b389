#include "analysis/sym.h"

#include <stdlib.h>

#include "base/hash.h"

#define MOST_NODES 20000u
#define MOST_DEPTH 200u
#define WORKING    UINT32_MAX

static const struct mg_sym_node *node_of(const struct mg_syms *y, mg_sym a)
{
    return &y->at.at[a];
}
static bool is_const(const struct mg_syms *y, mg_sym a)
{
    return node_of(y, a)->op == MG_SYM_const;
}

void mg_syms_release(struct mg_syms *y)
{
    mg_vec_release(&y->at);
    mg_map_release(&y->known);
    free(y->memo);
    free(y->ivs);
}

/* ---- making ---------------------------------------------------------------------------------------- */

static bool has_operands(enum mg_sym_op op)
{
    return op >= MG_SYM_add;
}
static bool commutes(enum mg_sym_op op)
{
    return op == MG_SYM_add || op == MG_SYM_mul || op == MG_SYM_and || op == MG_SYM_min || op == MG_SYM_max ||
           op == MG_SYM_eq || op == MG_SYM_ne || op == MG_SYM_both || op == MG_SYM_either;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t bits_of(int64_t a)
{
    int64_t n = 0;
    for (; a > 0; a >>= 1) n++;
    return n;
}

static bool fold(enum mg_sym_op op, int64_t a, int64_t b, int64_t *out)
{
    if ((op == MG_SYM_div || op == MG_SYM_rem || op == MG_SYM_ceil) && b <= 0) return false;
    if ((op == MG_SYM_shl || op == MG_SYM_shr) && (b < 0 || b > 40 || a < 0)) return false;
    switch (op) {
    case MG_SYM_add:
        *out = a + b;
        return true;
    case MG_SYM_sub:
        *out = a - b;
        return true;
    case MG_SYM_mul:
        *out = (int64_t)((uint64_t)a * (uint64_t)b);
        return true;
    case MG_SYM_div:
        *out = floor_div(a, b);
        return true;
    case MG_SYM_rem:
        *out = a - floor_div(a, b) * b;
        return true;
    case MG_SYM_ceil:
        *out = -floor_div(-a, b);
        return true;
    case MG_SYM_shl:
        *out = (int64_t)((uint64_t)a << b);
        return true;
    case MG_SYM_shr:
        *out = a >> b;
        return true;
    case MG_SYM_and:
        *out = a & b;
        return true;
    case MG_SYM_min:
        *out = a < b ? a : b;
        return true;
    case MG_SYM_max:
        *out = a > b ? a : b;
        return true;
    case MG_SYM_bits:
        *out = bits_of(a);
        return true;
    case MG_SYM_lt:
        *out = a < b;
        return true;
    case MG_SYM_le:
        *out = a <= b;
        return true;
    case MG_SYM_eq:
        *out = a == b;
        return true;
    case MG_SYM_ne:
        *out = a != b;
        return true;
    case MG_SYM_both:
        *out = a && b;
        return true;
    case MG_SYM_either:
        *out = a || b;
        return true;
    default:
        return false;
    }
}

static mg_sym intern(struct mg_syms *y, struct mg_sym_node n)
{
    uint64_t key = mg_hash64(&(uint64_t[]){n.op, (uint64_t)n.a << 32 | n.b, (uint64_t)n.val}, 24, 0), at;
    if (mg_map_get(&y->known, key, &at)) return (mg_sym)at;
    if (y->at.n > MOST_NODES) return 0;
    n.axes = node_of(y, n.a)->axes | node_of(y, n.b)->axes;
    n.varies = node_of(y, n.a)->varies || node_of(y, n.b)->varies || n.op == MG_SYM_iv;
    if (n.op == MG_SYM_place && n.val < MG_SYM_NTID) n.axes = (uint8_t)(1u << n.val % 3);
    mg_map_set(&y->known, key, y->at.n);
    *mg_vec_push(&y->at) = n;
    return y->at.n - 1;
}

mg_sym mg_sym_const(struct mg_syms *y, int64_t v)
{
    return intern(y, (struct mg_sym_node){.op = MG_SYM_const, .val = v});
}

mg_sym mg_sym_make(struct mg_syms *y, enum mg_sym_op op, mg_sym a, mg_sym b, int64_t val)
{
    int64_t folded;
    if (!has_operands(op)) return intern(y, (struct mg_sym_node){.op = (uint8_t)op, .val = val});
    bool unary = op == MG_SYM_bits || op == MG_SYM_rounds;
    if (!a || (!b && !unary)) return 0;
    if (commutes(op) && (is_const(y, a) || (a > b && !is_const(y, b)))) { /* constants stand right */
        mg_sym t = a;
        a = b;
        b = t;
    }
    const struct mg_sym_node *x = node_of(y, a), *z = node_of(y, b);
    bool number = !unary && z->op == MG_SYM_const;
    if (op != MG_SYM_rounds && x->op == MG_SYM_const && (unary || number) && fold(op, x->val, z->val, &folded))
        return mg_sym_const(y, folded);
    if (number && op == MG_SYM_sub) return mg_sym_make(y, MG_SYM_add, a, mg_sym_const(y, -z->val), 0);
    if (number && op == MG_SYM_shl && z->val >= 0 && z->val < 40)
        return mg_sym_make(y, MG_SYM_mul, a, mg_sym_const(y, (int64_t)1 << z->val), 0);
    if (number && z->val == 0 && (op == MG_SYM_add || op == MG_SYM_shr)) return a;
    if (number && z->val == 1 && (op == MG_SYM_mul || op == MG_SYM_div || op == MG_SYM_ceil)) return a;
    if (number && z->val == 0 && op == MG_SYM_mul) return b;
    if (number && op == MG_SYM_add && x->op == MG_SYM_add && is_const(y, x->b))
        return mg_sym_make(y, MG_SYM_add, x->a, mg_sym_const(y, node_of(y, x->b)->val + z->val), 0);
    if (number && op == MG_SYM_mul && x->op == MG_SYM_mul && is_const(y, x->b))
        return mg_sym_make(y, MG_SYM_mul, x->a, mg_sym_const(y, node_of(y, x->b)->val * z->val), 0);
    if (op == MG_SYM_sub && a == b) return mg_sym_const(y, 0);
    return intern(y, (struct mg_sym_node){.op = (uint8_t)op, .a = a, .b = b, .val = val});
}

mg_sym mg_sym_not(struct mg_syms *y, mg_sym a)
{
    struct mg_sym_node n = *node_of(y, a);
    switch (n.op) {
    case MG_SYM_const:
        return mg_sym_const(y, !n.val);
    case MG_SYM_lt:
        return mg_sym_make(y, MG_SYM_le, n.b, n.a, 0);
    case MG_SYM_le:
        return mg_sym_make(y, MG_SYM_lt, n.b, n.a, 0);
    case MG_SYM_eq:
        return mg_sym_make(y, MG_SYM_ne, n.a, n.b, 0);
    case MG_SYM_ne:
        return mg_sym_make(y, MG_SYM_eq, n.a, n.b, 0);
    case MG_SYM_both:
        return mg_sym_make(y, MG_SYM_either, mg_sym_not(y, n.a), mg_sym_not(y, n.b), 0);
    case MG_SYM_either:
        return mg_sym_make(y, MG_SYM_both, mg_sym_not(y, n.a), mg_sym_not(y, n.b), 0);
    default:
        return 0;
    }
}

/* ---- what registers hold ------------------------------------------------------------------------------ */

static mg_sym of_value(struct mg_syms *y, uint32_t v, unsigned depth);

static mg_sym of_place(struct mg_syms *y, const struct mg_opnd *o)
{
    int64_t axis = o->sub - 1;
    if (axis < 0 || axis > 2) return 0;
    switch (o->id) {
    case MG_SREG_tid:
        return mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_TID + axis);
    case MG_SREG_ctaid:
        return mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_CTAID + axis);
    case MG_SREG_ntid:
        return mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_NTID + axis);
    case MG_SREG_nctaid:
        return mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_NCTAID + axis);
    default:
        return 0;
    }
}

static mg_sym of_operand(struct mg_syms *y, mg_id node, uint32_t i, unsigned depth)
{
    const struct mg_module *m = y->c->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    if (i >= n->n_opnds) return 0;
    const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
    switch (o->kind) {
    case MG_OPND_reg:
        return o->sub || o->val ? 0 : of_value(y, mg_ssa_read(y->ssa, node, o->id), depth);
    case MG_OPND_not:
        return mg_sym_not(y, of_value(y, mg_ssa_read(y->ssa, node, o->id), depth));
    case MG_OPND_imm:
        return mg_sym_const(y, f->n_types && mg_type_bits((enum mg_type)f->types[0]) == 32 ? (int32_t)(uint32_t)o->val
                                                                                           : (int64_t)o->val);
    case MG_OPND_sreg:
        return of_place(y, o);
    default:
        return 0;
    }
}

static mg_sym of_compare(struct mg_syms *y, mg_id node, const struct mg_form *f, unsigned depth)
{
    mg_sym a = of_operand(y, node, 1, depth), b = of_operand(y, node, 2, depth), r = 0;
    enum mg_type_kind kind = mg_type_kind((enum mg_type)f->types[0]);
    if (kind == MG_TK_FLOAT || kind == MG_TK_PACKED) return 0;
    for (unsigned i = 0; i < f->n_mods && !r; i++) switch (f->mods[i]) {
        case MG_MOD_lt:
        case MG_MOD_lo:
            r = mg_sym_make(y, MG_SYM_lt, a, b, 0);
            break;
        case MG_MOD_le:
        case MG_MOD_ls:
            r = mg_sym_make(y, MG_SYM_le, a, b, 0);
            break;
        case MG_MOD_gt:
        case MG_MOD_hi:
            r = mg_sym_make(y, MG_SYM_lt, b, a, 0);
            break;
        case MG_MOD_ge:
        case MG_MOD_hs:
            r = mg_sym_make(y, MG_SYM_le, b, a, 0);
            break;
        case MG_MOD_eq:
            r = mg_sym_make(y, MG_SYM_eq, a, b, 0);
            break;
        case MG_MOD_ne:
            r = mg_sym_make(y, MG_SYM_ne, a, b, 0);
            break;
        default:
            break;
        }
    if (y->c->m->nodes.at[node].n_opnds < 4) return r;
    mg_sym p = of_operand(y, node, 3, depth);
    if (mg_form_has(f, MG_MOD_and)) return mg_sym_make(y, MG_SYM_both, r, p, 0);
    return mg_form_has(f, MG_MOD_or) ? mg_sym_make(y, MG_SYM_either, r, p, 0) : 0;
}

static mg_sym of_parameter(struct mg_syms *y, mg_id node)
{
    const struct mg_module *m = y->c->m;
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[node].opnd + 1];
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[node]);
    const struct mg_func *k = &m->funcs.at[y->c->func];
    if (!mg_form_has(f, MG_MOD_param) || o->kind != MG_OPND_addr || o->sub != MG_OPND_var || o->val || f->vec) return 0;
    if (o->id < k->first_param || o->id >= k->first_param + k->n_params) return 0;
    const struct mg_var *v = &m->vars.at[o->id];
    if (v->n_dims || mg_var_bytes(v) * 8 != mg_type_bits((enum mg_type)f->types[0]) ||
        mg_type_kind((enum mg_type)f->types[0]) == MG_TK_FLOAT)
        return 0;
    return mg_sym_make(y, MG_SYM_arg, 0, 0, o->id - k->first_param);
}

static mg_sym of_instruction(struct mg_syms *y, mg_id node, unsigned depth)
{
    const struct mg_module *m = y->c->m;
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[node]);
    enum mg_type_kind kind = f->n_types ? mg_type_kind((enum mg_type)f->types[0]) : MG_TK_UINT;
    bool predicate = f->n_types && f->types[0] == MG_TYPE_pred;
    if (kind == MG_TK_FLOAT || kind == MG_TK_PACKED) return 0;
#define A of_operand(y, node, 1, depth)
#define B of_operand(y, node, 2, depth)
    switch (f->op) {
    case MG_OP_ld:
        return of_parameter(y, node);
    case MG_OP_mov:
        return A;
    case MG_OP_cvt:
    case MG_OP_cvta:
        return f->n_types > 1 && mg_type_kind((enum mg_type)f->types[1]) == MG_TK_FLOAT ? 0 : A;
    case MG_OP_add:
        return f->n_mods > 1 ? 0 : mg_sym_make(y, MG_SYM_add, A, B, 0);
    case MG_OP_sub:
        return f->n_mods > 1 ? 0 : mg_sym_make(y, MG_SYM_sub, A, B, 0);
    case MG_OP_neg:
        return mg_sym_make(y, MG_SYM_sub, mg_sym_const(y, 0), A, 0);
    case MG_OP_mul:
        return mg_form_has(f, MG_MOD_hi) ? 0 : mg_sym_make(y, MG_SYM_mul, A, B, 0);
    case MG_OP_mad:
        return mg_form_has(f, MG_MOD_hi)
                   ? 0
                   : mg_sym_make(y, MG_SYM_add, mg_sym_make(y, MG_SYM_mul, A, B, 0), of_operand(y, node, 3, depth), 0);
    case MG_OP_div:
        return kind == MG_TK_SINT ? 0 : mg_sym_make(y, MG_SYM_div, A, B, 0);
    case MG_OP_rem:
        return kind == MG_TK_SINT ? 0 : mg_sym_make(y, MG_SYM_rem, A, B, 0);
    case MG_OP_shl:
        return mg_sym_make(y, MG_SYM_shl, A, B, 0);
    case MG_OP_shr:
        return mg_sym_make(y, MG_SYM_shr, A, B, 0);
    case MG_OP_min:
        return mg_sym_make(y, MG_SYM_min, A, B, 0);
    case MG_OP_max:
        return mg_sym_make(y, MG_SYM_max, A, B, 0);
    case MG_OP_and:
        return mg_sym_make(y, predicate ? MG_SYM_both : MG_SYM_and, A, B, 0);
    case MG_OP_or:
        return predicate ? mg_sym_make(y, MG_SYM_either, A, B, 0) : 0;
    case MG_OP_not:
        return predicate ? mg_sym_not(y, A) : 0;
    case MG_OP_setp:
        return m->opnds.at[m->nodes.at[node].opnd].kind == MG_OPND_reg ? of_compare(y, node, f, depth) : 0;
    default:
        return 0;
    }
#undef A
#undef B
}

/* A phi at a loop's header whose value of the next round is its own, stepped; else what all its values agree on. */
static mg_sym of_phi(struct mg_syms *y, uint32_t v, unsigned depth)
{
    const struct mg_ssa_value *p = &y->ssa->values[v];
    const struct mg_block *k = &y->c->blocks[p->block];
    uint32_t loop = y->l->loop_of[p->block];
    bool header = loop != MG_NO_LOOP && y->l->loops[loop].header == p->block && y->l->loops[loop].n_headers == 1;
    mg_sym start = 0, next = 0, self = mg_sym_make(y, MG_SYM_iv, 0, 0, v);
    bool started = false, stepped = false;
    if (header) y->memo[v] = self + 1; /* until it is known; without a step nothing that rests on it counts */
    for (uint32_t i = 0; i < p->n_args; i++) {
        uint32_t arg = y->ssa->args[p->args_at + i];
        if (!arg) continue;
        bool inside = header && mg_loops_contains(y->l, loop, y->c->preds[k->pred_at + i]);
        mg_sym a = of_value(y, arg, depth), *to = inside ? &next : &start;
        bool *had = inside ? &stepped : &started;
        if (!a || (*had && *to != a)) return 0;
        *to = a;
        *had = true;
    }
    if (!header || next == self) return start;
    struct mg_sym_node n = *node_of(y, next);
    struct mg_sym_iv iv = {.start = start, .loop = loop};
    if (!start || n.a != self || !is_const(y, n.b)) return 0;
    iv.by = node_of(y, n.b)->val;
    iv.how = n.op == MG_SYM_add                 ? MG_STEP_ADD
             : n.op == MG_SYM_mul && iv.by == 2 ? MG_STEP_SHL
             : n.op == MG_SYM_shr && iv.by == 1 ? MG_STEP_SHR
                                                : MG_STEP_NONE;
    y->ivs[v] = iv;
    return iv.how == MG_STEP_NONE || node_of(y, start)->varies ? 0 : self;
}

/* memo: 0 not asked yet, WORKING, else one more than the node. */
static mg_sym of_value(struct mg_syms *y, uint32_t v, unsigned depth)
{
    const struct mg_ssa_value *s = &y->ssa->values[v];
    if (!v || depth > MOST_DEPTH) return 0;
    if (y->memo[v]) return y->memo[v] == WORKING ? 0 : y->memo[v] - 1;
    mg_sym r = 0;
    y->memo[v] = WORKING;
    if (s->kind == MG_SSA_phi)
        r = of_phi(y, v, depth + 1);
    else if (s->kind == MG_SSA_def && !s->prev)
        r = of_instruction(y, s->node, depth + 1);
    y->memo[v] = r + 1;
    return r;
}

void mg_syms_init(struct mg_syms *y, const struct mg_cfg *c, const struct mg_ssa *ssa, const struct mg_loops *l)
{
    *y = (struct mg_syms){.c = c, .ssa = ssa, .l = l, .known = MG_MAP_INIT};
    *mg_vec_push(&y->at) = (struct mg_sym_node){.op = MG_SYM_none};
    y->memo = mg_xcalloc(ssa->n_values + 1, sizeof *y->memo);
    y->ivs = mg_xcalloc(ssa->n_values + 1, sizeof *y->ivs);
    for (uint32_t i = 0; i < l->n_loops; i++) /* phis before what is made of them, those of outer loops first */
        for (uint32_t k = ssa->phis_at[l->loops[i].header]; k < ssa->phis_at[l->loops[i].header + 1]; k++)
            (void)of_value(y, ssa->phis[k], 0);
}

mg_sym mg_sym_of(struct mg_syms *y, mg_id node, mg_id reg)
{
    return of_value(y, mg_ssa_read(y->ssa, node, reg), 0);
}

bool mg_sym_loop(const struct mg_syms *y, mg_sym a, uint32_t *loop)
{
    const struct mg_sym_node *n = node_of(y, a);
    uint32_t one = MG_NO_LOOP, other = MG_NO_LOOP;
    *loop = MG_NO_LOOP;
    if (!n->varies) return true;
    if (n->op == MG_SYM_iv) {
        *loop = y->ivs[n->val].loop;
        return y->ivs[n->val].how != MG_STEP_NONE;
    }
    if (!mg_sym_loop(y, n->a, &one) || !mg_sym_loop(y, n->b, &other)) return false;
    *loop = one == MG_NO_LOOP ? other : one;
    return one == MG_NO_LOOP || other == MG_NO_LOOP || one == other;
}

/* ---- printing -------------------------------------------------------------------------------------------- */

static const char *const infix[] = {
    [MG_SYM_add] = " + ",    [MG_SYM_sub] = " - ",    [MG_SYM_mul] = " * ",  [MG_SYM_div] = " // ",
    [MG_SYM_rem] = " % ",    [MG_SYM_shl] = " << ",   [MG_SYM_shr] = " >> ", [MG_SYM_and] = " & ",
    [MG_SYM_lt] = " < ",     [MG_SYM_le] = " <= ",    [MG_SYM_eq] = " == ",  [MG_SYM_ne] = " != ",
    [MG_SYM_both] = " and ", [MG_SYM_either] = " or "};

static void print_inner(const struct mg_syms *y, mg_sym a, struct mg_buf *out)
{
    enum mg_sym_op op = (enum mg_sym_op)node_of(y, a)->op;
    bool brackets = op < MG_COUNT_OF(infix) && infix[op];
    if (brackets) mg_buf_addc(out, '(');
    mg_sym_print(y, a, out);
    if (brackets) mg_buf_addc(out, ')');
}

void mg_sym_print(const struct mg_syms *y, mg_sym a, struct mg_buf *out)
{
    static const char *const places[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
    static const char *const calls[] = {
        [MG_SYM_min] = "min", [MG_SYM_max] = "max", [MG_SYM_ceil] = "ceil", [MG_SYM_bits] = "bits"};
    const struct mg_sym_node *n = node_of(y, a);
    switch (n->op) {
    case MG_SYM_none:
        mg_buf_addc(out, '?');
        return;
    case MG_SYM_const:
        mg_buf_printf(out, "%lld", (long long)n->val);
        return;
    case MG_SYM_arg:
        mg_buf_printf(out, "arg%lld", (long long)n->val);
        return;
    case MG_SYM_place:
        mg_buf_printf(out, "%s.%c", places[n->val / 3], (char)('x' + n->val % 3));
        return;
    case MG_SYM_threads:
        mg_buf_printf(out, "threads.%c", (char)('x' + n->val));
        return;
    case MG_SYM_iv:
        mg_buf_adds(out, "round");
        return;
    case MG_SYM_rounds:
        mg_sym_print(y, n->a, out);
        return;
    case MG_SYM_min:
    case MG_SYM_max:
    case MG_SYM_ceil:
    case MG_SYM_bits:
        mg_buf_printf(out, "%s(", calls[n->op]);
        mg_sym_print(y, n->a, out);
        if (n->op != MG_SYM_bits) {
            mg_buf_adds(out, ", ");
            mg_sym_print(y, n->b, out);
        }
        mg_buf_addc(out, ')');
        return;
    default:
        print_inner(y, n->a, out);
        mg_buf_adds(out, infix[n->op]);
        print_inner(y, n->b, out);
    }
}
