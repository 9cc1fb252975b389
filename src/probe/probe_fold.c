/* What is known of a probe's code before the kernel runs: constants, and which ways it can take. One walk
 * in reverse postorder is enough: compilers leave registers with one writer, which stands before every
 * reader, and the others (a loop's) are taken as unknown. */
#include <string.h>

#include "probe/probe.h"

static const struct mg_probe_known unknown;

static struct mg_probe_known number(uint64_t v, unsigned bits)
{
    return (struct mg_probe_known){.kind = MG_PK_NUM, .num = bits < 64 ? v & (((uint64_t)1 << bits) - 1) : v};
}

static struct mg_probe_known *reg_of(const struct mg_probe_fold *f, mg_id reg)
{
    return reg >= f->fn->reg_lo && reg < f->fn->reg_hi ? &f->regs[reg - f->fn->reg_lo] : NULL;
}

struct mg_probe_known mg_probe_operand(const struct mg_probe_fold *f, const struct mg_opnd *o, unsigned bits)
{
    const struct mg_probe_known *r;
    switch (o->kind) {
    case MG_OPND_imm:
        return number(o->val, bits);
    case MG_OPND_var:
        return (struct mg_probe_known){.kind = MG_PK_MAP, .id = o->id};
    case MG_OPND_reg:
    case MG_OPND_not:
        r = o->sub || o->val ? NULL : reg_of(f, o->id);
        if (!r || r->kind == MG_PK_NO) return unknown;
        return o->kind == MG_OPND_not ? number(!r->num, 1) : *r;
    default:
        return unknown;
    }
}

static int64_t as_signed(uint64_t v, unsigned bits)
{
    return bits < 64 ? (int64_t)(v << (64 - bits)) >> (64 - bits) : (int64_t)v;
}

static bool compare(enum mg_mod how, uint64_t a, uint64_t b, unsigned bits, bool is_signed, bool *known)
{
    int64_t x = as_signed(a, bits), y = as_signed(b, bits);
    *known = true;
    switch (how) {
    case MG_MOD_eq:
        return a == b;
    case MG_MOD_ne:
        return a != b;
    case MG_MOD_lt:
        return is_signed ? x < y : a < b;
    case MG_MOD_le:
        return is_signed ? x <= y : a <= b;
    case MG_MOD_gt:
        return is_signed ? x > y : a > b;
    case MG_MOD_ge:
        return is_signed ? x >= y : a >= b;
    case MG_MOD_lo:
        return a < b;
    case MG_MOD_ls:
        return a <= b;
    case MG_MOD_hi:
        return a > b;
    case MG_MOD_hs:
        return a >= b;
    default:
        *known = false;
        return false;
    }
}

static struct mg_probe_known fold_setp(const struct mg_form *form, const struct mg_probe_known *s, uint32_t n,
                                       unsigned bits, bool is_signed)
{
    bool known = false, r = false;
    if (n != 2 || s[0].kind != MG_PK_NUM || s[1].kind != MG_PK_NUM) return unknown;
    for (unsigned i = 0; i < form->n_mods; i++)
        if (mg_mod_class((enum mg_mod)form->mods[i]) == MG_MC_CMP)
            r = compare((enum mg_mod)form->mods[i], s[0].num, s[1].num, bits, is_signed, &known);
    return known ? number(r, 1) : unknown;
}

static struct mg_probe_known fold_bool(unsigned op, struct mg_probe_known a, struct mg_probe_known b)
{
    bool x = a.kind == MG_PK_NUM, y = b.kind == MG_PK_NUM;
    if (op == MG_OP_or && ((x && a.num) || (y && b.num))) return number(1, 1);
    if (op == MG_OP_and && ((x && !a.num) || (y && !b.num))) return number(0, 1);
    if (!x || !y) return unknown;
    return number(op == MG_OP_or ? a.num | b.num : op == MG_OP_and ? a.num & b.num : a.num ^ b.num, 1);
}

static struct mg_probe_known fold_numbers(const struct mg_form *form, const struct mg_probe_known *s, uint32_t n,
                                          unsigned bits, bool is_signed)
{
    uint64_t a = s[0].num, b = n > 1 ? s[1].num : 0;
    int64_t x = as_signed(a, bits), y = as_signed(b, bits);
    for (uint32_t i = 0; i < n; i++)
        if (s[i].kind != MG_PK_NUM) return unknown;
    switch (form->op) {
    case MG_OP_add:
        return number(a + b, bits);
    case MG_OP_sub:
        return number(a - b, bits);
    case MG_OP_mul:
        if (mg_form_has(form, MG_MOD_wide) && bits == 32) return number(is_signed ? (uint64_t)(x * y) : a * b, 64);
        return mg_form_has(form, MG_MOD_lo) ? number(a * b, bits) : unknown;
    case MG_OP_and:
        return number(a & b, bits);
    case MG_OP_or:
        return number(a | b, bits);
    case MG_OP_xor:
        return number(a ^ b, bits);
    case MG_OP_not:
        return number(~a, bits);
    case MG_OP_neg:
        return number(0 - a, bits);
    case MG_OP_shl:
        return number(b >= bits ? 0 : a << b, bits);
    case MG_OP_shr:
        return number(is_signed ? (uint64_t)(x >> MG_MIN(b, bits - 1)) : b >= bits ? 0 : a >> b, bits);
    case MG_OP_min:
        return number(is_signed ? (uint64_t)MG_MIN(x, y) : MG_MIN(a, b), bits);
    case MG_OP_max:
        return number(is_signed ? (uint64_t)MG_MAX(x, y) : MG_MAX(a, b), bits);
    default:
        return unknown;
    }
}

static struct mg_probe_known fold_inst(struct mg_probe_fold *f, const struct mg_node *n, const struct mg_form *form)
{
    const struct mg_module *m = f->p->m;
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    enum mg_type type = form->n_types ? (enum mg_type)form->types[0] : MG_TYPE_none;
    unsigned bits = mg_type_bits(type), k = mg_type_kind(type);
    struct mg_probe_known s[3] = {{0}};
    uint32_t n_src = MG_MIN(n->n_opnds - 1u, 3u);
    if (n->guard || !bits || bits > 64) return unknown;
    if (form->op == MG_OP_cvta) return mg_probe_operand(f, &o[1], 64);
    if (form->op == MG_OP_cvt) { /* between integers */
        enum mg_type from = form->n_types > 1 ? (enum mg_type)form->types[1] : type;
        unsigned from_bits = mg_type_bits(from), from_kind = mg_type_kind(from);
        struct mg_probe_known v = mg_probe_operand(f, &o[1], from_bits);
        if (v.kind != MG_PK_NUM || form->n_types < 2 || mg_form_has(form, MG_MOD_sat) || from_kind == MG_TK_FLOAT ||
            k == MG_TK_FLOAT || from_bits > 64)
            return unknown;
        return number(from_kind == MG_TK_SINT ? (uint64_t)as_signed(v.num, from_bits) : v.num, bits);
    }
    for (uint32_t i = 0; i < n_src; i++)
        s[i] = mg_probe_operand(f, &o[i + 1],
                                i == 2 && form->op == MG_OP_selp                               ? 1
                                : (i == 1 && (form->op == MG_OP_shl || form->op == MG_OP_shr)) ? 32
                                                                                               : bits);
    if (form->op == MG_OP_mov) return s[0];
    if (k == MG_TK_FLOAT || k == MG_TK_PACKED) return unknown;
    if (form->op == MG_OP_selp) return s[2].kind == MG_PK_NUM ? s[s[2].num ? 0 : 1] : unknown;
    if (form->op == MG_OP_setp) return fold_setp(form, s, n_src, bits, k == MG_TK_SINT);
    if (k == MG_TK_PRED)
        return form->op == MG_OP_not ? (s[0].kind == MG_PK_NUM ? number(!s[0].num, 1) : unknown)
                                     : fold_bool(form->op, s[0], s[1]);
    return n_src <= 2 ? fold_numbers(form, s, n_src, bits, k == MG_TK_SINT) : unknown;
}

/* The list of a call that stands in front of its function (returned) or behind it. */
static const struct mg_opnd *call_list(const struct mg_module *m, mg_id call, bool returned)
{
    const struct mg_node *n = &m->nodes.at[call];
    bool behind = false;
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        if (o->kind == MG_OPND_func)
            behind = true;
        else if (o->kind == MG_OPND_list && behind != returned)
            return o;
    }
    return NULL;
}

mg_id mg_probe_param_var(const struct mg_module *m, mg_id call, uint32_t ix)
{
    const struct mg_opnd *list = call_list(m, call, ix == UINT32_MAX);
    if (ix == UINT32_MAX) ix = 0; /* what it returns */
    if (!list || ix >= list->n || m->opnds.at[list->id + ix].kind != MG_OPND_var) return 0;
    return m->opnds.at[list->id + ix].id;
}

struct mg_probe_known mg_probe_param(const struct mg_probe_fold *f, mg_id call, uint32_t ix)
{
    mg_id var = mg_probe_param_var(f->p->m, call, ix);
    return var >= f->var_lo && var < f->var_hi ? f->params[var - f->var_lo] : unknown;
}

static void walk_block(struct mg_probe_fold *f, uint32_t b)
{
    const struct mg_module *m = f->p->m;
    const struct mg_block *blk = &f->fn->cfg->blocks[b];
    for (mg_id id = blk->first;; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_inst) {
            const struct mg_form *form = mg_node_form(m, n);
            const struct mg_opnd *o = &m->opnds.at[n->opnd];
            if (form->op == MG_OP_call) {
                mg_id var = mg_probe_param_var(m, id, UINT32_MAX);
                if (var) f->params[var - f->var_lo] = f->result ? f->result(f->user, id) : unknown;
            } else if (form->op == MG_OP_st && n->n_opnds == 2) {
                if (o[0].id >= f->var_lo && o[0].id < f->var_hi)
                    f->params[o[0].id - f->var_lo] = mg_probe_operand(f, &o[1], 64);
            } else if (n->n_opnds && o[0].kind == MG_OPND_reg && !(form->op_flags & MG_OPF_NO_DST)) {
                struct mg_probe_known *r = reg_of(f, o[0].id), v = unknown;
                if (form->op == MG_OP_ld)
                    v = o[1].id >= f->var_lo && o[1].id < f->var_hi ? f->params[o[1].id - f->var_lo] : unknown;
                else if (n->n_opnds > 1)
                    v = fold_inst(f, n, form);
                if (r) *r = f->fn->n_defs[o[0].id - f->fn->reg_lo] == 1 ? v : unknown;
            }
        }
        if (id == blk->last) break;
    }
}

bool mg_probe_may_go(const struct mg_probe_fold *f, uint32_t block, uint32_t n)
{
    const struct mg_module *m = f->p->m;
    const struct mg_block *b = &f->fn->cfg->blocks[block];
    const struct mg_node *last = &m->nodes.at[b->last];
    if (mg_node_form(m, last)->op != MG_OP_bra || !last->guard || b->n_succs < 2) return true;
    struct mg_probe_known g = mg_probe_operand(f, &(struct mg_opnd){.kind = MG_OPND_reg, .id = last->guard}, 1);
    if (g.kind != MG_PK_NUM) return true;
    bool taken = !g.num == !!(last->flags & MG_NF_GUARD_NOT);
    return taken == (n == 1); /* fall-through first */
}

void mg_probe_fold_run(struct mg_probe_fold *f, bool all, struct mg_arena *scratch)
{
    const struct mg_cfg *c = f->fn->cfg;
    f->regs = mg_arena_array(scratch, struct mg_probe_known, f->fn->reg_hi - f->fn->reg_lo + 1);
    f->var_lo = 1;
    f->var_hi = f->p->m->vars.n;
    f->params = mg_arena_array(scratch, struct mg_probe_known, f->var_hi);
    f->reached = mg_arena_array(scratch, bool, c->n_blocks + 1);
    if (c->n_blocks) f->reached[0] = true;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        uint32_t b = c->rpo[i];
        f->reached[b] |= all;
        if (!f->reached[b]) continue;
        walk_block(f, b);
        for (uint32_t s = 0; s < c->blocks[b].n_succs; s++)
            if (mg_probe_may_go(f, b, s)) f->reached[c->edges[c->blocks[b].succ_at + s]] = true;
    }
}
