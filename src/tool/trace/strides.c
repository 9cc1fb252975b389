/* Addresses over the rounds of a loop, from the arithmetic that makes them: a register that each round steps, and what
 * is multiplied and added to it. Where all of that is exact (in the machine's integers, modulo 2^32 or 2^64, with one
 * step from 32 to 64 bits), addresses follow from the last one; else the result is only worth a try. */
#include "tool/trace/strides.h"

enum { MOST_DEPTH = 24 };

static struct mg_stride value_of(const struct mg_stride_of *f, uint32_t value, uint32_t depth);

static struct mg_stride only(enum mg_stride_how how)
{
    return (struct mg_stride){.how = how};
}

static bool goes(struct mg_stride s)
{
    return s.how > MG_STRIDE_SAME;
}

static struct mg_stride operand(const struct mg_stride_of *f, mg_id node, const struct mg_opnd *o, uint32_t depth)
{
    switch (o->kind) {
    case MG_OPND_imm:
    case MG_OPND_var:
    case MG_OPND_sreg:
        return only(MG_STRIDE_SAME);
    case MG_OPND_reg:
        return o->sub || o->val ? only(MG_STRIDE_NONE) : value_of(f, mg_ssa_read(f->ssa, node, o->id), depth);
    default:
        return only(MG_STRIDE_NONE);
    }
}

static bool is_uniform(const struct mg_stride_of *f, const struct mg_opnd *o)
{
    if (o->kind == MG_OPND_imm) return true;
    return o->kind == MG_OPND_reg && o->id >= f->u->reg_lo && o->id < f->u->reg_hi &&
           !f->u->varying[o->id - f->u->reg_lo];
}

/* Does the instruction compute whole numbers of so many bits, and nothing beside? */
static bool is_plain(const struct mg_form *form, unsigned bits)
{
    const enum mg_type type = (enum mg_type)form->types[0];
    const enum mg_type_kind kind = mg_type_kind(type);
    return form->n_types == 1 && form->n_mods == 1 && mg_type_bits(type) == bits &&
           (kind == MG_TK_UINT || kind == MG_TK_SINT || kind == MG_TK_BITS);
}

static unsigned bits_of(struct mg_stride s)
{
    return s.how == MG_STRIDE_LOW ? 32 : 64;
}

/* ---- the register that is stepped ----------------------------------------------------------------------- */

/* Is the register written once, and not in the loop? */
static bool stays(const struct mg_stride_of *f, mg_id reg)
{
    uint32_t n = 0;
    bool in = false;
    for (uint32_t i = 1; i < f->ssa->n_values; i++) {
        const struct mg_ssa_value *v = &f->ssa->values[i];
        if (v->reg != reg || v->kind == MG_SSA_entry) continue;
        n++;
        in |= v->kind != MG_SSA_def || mg_loops_contains(f->loops, f->loop, v->block);
    }
    return n == 1 && !in;
}

static bool comes_from_outside(const struct mg_stride_of *f, mg_id node, const struct mg_opnd *o)
{
    const struct mg_ssa_value *v =
        o->kind == MG_OPND_reg && !o->sub && !o->val ? &f->ssa->values[mg_ssa_read(f->ssa, node, o->id)] : NULL;
    if (o->kind == MG_OPND_imm) return true;
    return v &&
           (v->kind == MG_SSA_entry || (v->kind != MG_SSA_none && !mg_loops_contains(f->loops, f->loop, v->block)));
}

/* Adds what the instruction adds, times sign. False: lanes or rounds may add something else. */
static bool add_step(const struct mg_stride_of *f, mg_id node, const struct mg_opnd *by, int sign, struct mg_stride *s)
{
    if (!is_uniform(f, by) || !comes_from_outside(f, node, by)) return false;
    if (by->kind == MG_OPND_imm && !s->step_reg) {
        s->step += sign * (int64_t)by->val;
    } else if (by->kind == MG_OPND_reg && (s->step_reg ? s->step_reg == by->id : !s->step && stays(f, by->id))) {
        s->step += sign;
        s->step_reg = by->id;
    } else {
        s->how = MG_STRIDE_LIKELY;
    }
    return true;
}

/* Is the value the loop's phi with something added that is the same in all lanes and rounds? */
static bool find_step(const struct mg_stride_of *f, uint32_t value, uint32_t phi, struct mg_stride *s)
{
    const unsigned bits = mg_type_bits((enum mg_type)f->m->regs.at[f->ssa->values[phi].reg].type);
    for (uint32_t depth = 0; depth < MOST_DEPTH && value != phi; depth++) {
        const struct mg_ssa_value *v = &f->ssa->values[value];
        if (v->kind != MG_SSA_def || v->prev || !mg_loops_contains(f->loops, f->loop, v->block)) return false;
        const struct mg_node *n = &f->m->nodes.at[v->node];
        const struct mg_form *form = mg_node_form(f->m, n);
        const struct mg_opnd *o = &f->m->opnds.at[n->opnd];
        uint32_t k = 1;
        if (form->op != MG_OP_mov || n->n_opnds != 2) {
            if ((form->op != MG_OP_add && form->op != MG_OP_sub) || n->n_opnds != 3 || !is_plain(form, bits))
                return false;
            if (form->op == MG_OP_add && comes_from_outside(f, v->node, &o[1])) k = 2;
            if (!add_step(f, v->node, &o[3 - k], form->op == MG_OP_sub ? -1 : 1, s)) return false;
        }
        if (o[k].kind != MG_OPND_reg || o[k].sub || o[k].val) return false;
        value = mg_ssa_read(f->ssa, v->node, o[k].id);
    }
    return value == phi;
}

static struct mg_stride phi_of(const struct mg_stride_of *f, uint32_t value)
{
    const struct mg_ssa_value *v = &f->ssa->values[value];
    const struct mg_block *b = &f->c->blocks[v->block];
    const unsigned bits = mg_type_bits((enum mg_type)f->m->regs.at[v->reg].type);
    struct mg_stride all = only(MG_STRIDE_NONE);
    if (v->block != f->loops->loops[f->loop].header) return all;
    for (uint32_t i = 0; i < v->n_args && i < b->n_preds; i++) {
        struct mg_stride one = only(bits == 32 ? MG_STRIDE_LOW : bits == 64 ? MG_STRIDE_WHOLE : MG_STRIDE_LIKELY);
        if (!mg_loops_contains(f->loops, f->loop, f->c->preds[b->pred_at + i])) continue;
        if (!find_step(f, f->ssa->args[v->args_at + i], value, &one)) return only(MG_STRIDE_NONE);
        bool other = all.how && (one.step != all.step || one.step_reg != all.step_reg);
        if (other) one.how = MG_STRIDE_LIKELY;
        all = all.how == MG_STRIDE_LIKELY ? all : one;
    }
    return all;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------- */

static struct mg_stride scaled(struct mg_stride s, int64_t by)
{
    int64_t *factor = s.how == MG_STRIDE_WIDENED ? &s.scale : &s.step;
    *factor = (int64_t)((uint64_t)*factor * (uint64_t)by);
    return s;
}

/* A value of 32 bits becomes one of 64, by the instruction that reads it in operand o. */
static struct mg_stride widened(struct mg_stride s, mg_id node, const struct mg_opnd *o, enum mg_type from, int64_t by)
{
    if (s.how != MG_STRIDE_LOW || mg_type_bits(from) != 32 || o->kind != MG_OPND_reg || by != (int32_t)by || by < 0)
        return only(MG_STRIDE_LIKELY);
    s.how = MG_STRIDE_WIDENED;
    s.scale = by;
    s.is_signed = mg_type_kind(from) == MG_TK_SINT;
    s.narrow = o->id;
    s.widens = node;
    return s;
}

/* The product of o[0] and o[1] of mul and mad; one of them goes, the other one stays. */
static struct mg_stride product(const struct mg_stride_of *f, mg_id node, const struct mg_form *form,
                                const struct mg_opnd *o, const struct mg_stride *k)
{
    const int g = goes(k[0]) ? 0 : 1;
    if (goes(k[1 - g]) || !is_uniform(f, &o[1 - g])) return only(MG_STRIDE_NONE);
    const enum mg_type type = (enum mg_type)form->types[0];
    if (o[1 - g].kind != MG_OPND_imm || form->n_mods != 2) return only(MG_STRIDE_LIKELY);
    if (mg_form_has(form, MG_MOD_wide)) return widened(k[g], node, &o[g], type, (int64_t)o[1 - g].val);
    if (!mg_form_has(form, MG_MOD_lo) || mg_type_bits(type) != bits_of(k[g])) return only(MG_STRIDE_LIKELY);
    return scaled(k[g], (int64_t)o[1 - g].val);
}

static struct mg_stride converted(const struct mg_form *form, mg_id node, const struct mg_opnd *o, struct mg_stride s)
{
    if (form->n_mods != 2 || form->n_types != 2 || mg_type_bits((enum mg_type)form->types[0]) != 64)
        return only(MG_STRIDE_LIKELY);
    return mg_type_bits((enum mg_type)form->types[1]) == 64 ? s : widened(s, node, o, (enum mg_type)form->types[1], 1);
}

static struct mg_stride arithmetic(const struct mg_stride_of *f, mg_id node, const struct mg_form *form,
                                   const struct mg_opnd *o, const struct mg_stride *k)
{
    const struct mg_stride one = goes(k[0]) ? k[0] : k[1];
    const bool both = goes(k[0]) && goes(k[1]), exact = is_plain(form, bits_of(one)) && !both;
    switch (form->op) {
    case MG_OP_mov:
        return exact ? one : only(MG_STRIDE_LIKELY);
    case MG_OP_add:
        return exact ? one : only(MG_STRIDE_LIKELY);
    case MG_OP_sub:
        return exact && goes(k[0]) ? one : only(MG_STRIDE_LIKELY);
    case MG_OP_cvta:
    case MG_OP_neg:
    case MG_OP_or: /* of bits that are 0 */
        return only(MG_STRIDE_LIKELY);
    case MG_OP_cvt:
        return converted(form, node, o, k[0]);
    case MG_OP_shl:
        if (goes(k[1]) || !is_uniform(f, &o[1])) return only(MG_STRIDE_NONE);
        return exact && o[1].kind == MG_OPND_imm && o[1].val < 31 ? scaled(one, (int64_t)1 << o[1].val)
                                                                  : only(MG_STRIDE_LIKELY);
    case MG_OP_mul:
        return product(f, node, form, o, k);
    case MG_OP_mad: {
        if (goes(k[0]) || goes(k[1])) {
            struct mg_stride p = product(f, node, form, o, k);
            return !goes(k[2]) || p.how == MG_STRIDE_NONE ? p : only(MG_STRIDE_LIKELY);
        }
        unsigned bits = mg_type_bits((enum mg_type)form->types[0]) * (mg_form_has(form, MG_MOD_wide) ? 2 : 1);
        return form->n_mods == 2 && bits == bits_of(k[2]) ? k[2] : only(MG_STRIDE_LIKELY);
    }
    default:
        return only(MG_STRIDE_NONE);
    }
}

static struct mg_stride def_of(const struct mg_stride_of *f, mg_id node, uint32_t depth)
{
    const struct mg_node *n = &f->m->nodes.at[node];
    const struct mg_form *form = mg_node_form(f->m, n);
    const struct mg_opnd *o = &f->m->opnds.at[n->opnd] + 1;
    struct mg_stride k[3] = {only(MG_STRIDE_SAME), only(MG_STRIDE_SAME), only(MG_STRIDE_SAME)};
    bool same = true;
    if (n->guard || form->unknown || n->n_opnds < 2 || n->n_opnds > 4) return only(MG_STRIDE_NONE);
    if (form->op == MG_OP_ld) return only(form->space == MG_SPACE_param ? MG_STRIDE_SAME : MG_STRIDE_NONE);
    if (form->op_flags &
        (MG_OPF_READS | MG_OPF_WRITES | MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_HIDDEN | MG_OPF_NO_DST))
        return only(MG_STRIDE_NONE);
    for (uint32_t i = 0; i + 1 < n->n_opnds; i++) {
        k[i] = operand(f, node, &o[i], depth);
        if (k[i].how == MG_STRIDE_NONE) return k[i];
        same &= !goes(k[i]);
    }
    return same ? only(MG_STRIDE_SAME) : arithmetic(f, node, form, o, k);
}

static struct mg_stride value_of(const struct mg_stride_of *f, uint32_t value, uint32_t depth)
{
    const struct mg_ssa_value *v = &f->ssa->values[value];
    if (!value || !depth) return only(MG_STRIDE_NONE);
    if (v->kind == MG_SSA_entry || !mg_loops_contains(f->loops, f->loop, v->block)) return only(MG_STRIDE_SAME);
    if (v->kind == MG_SSA_phi) return phi_of(f, value);
    return v->kind == MG_SSA_def && !v->prev ? def_of(f, v->node, depth - 1) : only(MG_STRIDE_NONE);
}

struct mg_stride mg_stride_of(const struct mg_stride_of *f, mg_id node, const struct mg_opnd *address)
{
    struct mg_stride s = only(MG_STRIDE_NONE);
    if (address->kind != MG_OPND_addr || address->n & 7) return s;
    if (address->sub == MG_OPND_var) s.how = MG_STRIDE_SAME;
    if (address->sub == MG_OPND_reg && address->id < f->m->regs.n)
        s = value_of(f, mg_ssa_read(f->ssa, node, address->id), MOST_DEPTH);
    if (s.how == MG_STRIDE_SAME) s.how = MG_STRIDE_WHOLE; /* by 0 */
    if (s.how == MG_STRIDE_LOW) s.how = MG_STRIDE_LIKELY; /* an address of 32 bits */
    return s;
}
