/* memory: how far apart the addresses of neighbouring lanes are likely to be, by what they are made of. Whoever asks
 * what they are looks there first; so nothing depends on it that is not asked. Lanes that came different ways are taken
 * to have made as many rounds, and what is loaded from one address to be one number. */
#include "analysis/affine.h"
#include "analysis/ssa.h"
#include "tool/memory/memory.h"

enum { MOST_PASSES = 16, ROW = 32 };

struct strides {
    const struct mg_ssa *s;
    const struct mg_module *m;
    struct mg_affine *of;
    bool in_rows, is_kernel;
};

static const struct mg_affine varies = {.is = MG_AFFINE_VARIES}, uniform = {.is = MG_AFFINE_STEP};

static struct mg_affine of_sreg(const struct strides *w, const struct mg_opnd *o)
{
    switch (o->id) {
    case MG_SREG_laneid:
        return mg_affine_step(1);
    case MG_SREG_tid:
        return o->sub == 1 ? mg_affine_step(1) : w->in_rows ? uniform : varies;
    case MG_SREG_ntid:
    case MG_SREG_ctaid:
    case MG_SREG_nctaid:
    case MG_SREG_warpid:
    case MG_SREG_smid:
        return uniform;
    default:
        return varies;
    }
}

static struct mg_affine of_operand(const struct strides *w, mg_id node, const struct mg_opnd *o)
{
    switch (o->kind) {
    case MG_OPND_imm:
    case MG_OPND_var:
        return uniform;
    case MG_OPND_sreg:
        return of_sreg(w, o);
    case MG_OPND_reg:
        return w->of[mg_ssa_read(w->s, node, o->id)];
    default:
        return varies;
    }
}

/* Of what has the same in all lanes if all that it reads has; NONE: that is not known yet. */
static struct mg_affine of_any(const struct strides *w, mg_id node)
{
    mg_id ids[16];
    const struct mg_node *k = &w->m->nodes.at[node];
    uint32_t n = mg_node_uses(w->m, node, ids, MG_COUNT_OF(ids));
    struct mg_affine all = uniform;
    for (uint32_t i = 0; i < k->n_opnds; i++)
        if (w->m->opnds.at[k->opnd + i].kind == MG_OPND_sreg)
            all = mg_affine_join(all, of_sreg(w, &w->m->opnds.at[k->opnd + i]));
    if (n > MG_COUNT_OF(ids)) return varies;
    for (uint32_t i = 0; i < n; i++) {
        struct mg_affine a = w->of[mg_ssa_read(w->s, node, ids[i])];
        if (a.is == MG_AFFINE_NONE) return a;
        all = mg_affine_join(all, a);
    }
    return mg_affine_is_uniform(all) ? all : varies;
}

/* The number of a warp, by that of a thread. */
static bool is_warp(const struct strides *w, mg_id node, const struct mg_form *f)
{
    const struct mg_node *n = &w->m->nodes.at[node];
    const struct mg_opnd *o = &w->m->opnds.at[n->opnd];
    if (n->n_opnds != 3 || o[2].kind != MG_OPND_imm) return false;
    struct mg_affine a = of_operand(w, node, &o[1]);
    return a.is == MG_AFFINE_STEP && a.step == 1 &&
           (f->op == MG_OP_shr ? o[2].val >= 5 : f->op == MG_OP_and && !(o[2].val & (ROW - 1)));
}

static struct mg_affine of_integers(const struct strides *w, mg_id node, const struct mg_form *f)
{
    const struct mg_node *n = &w->m->nodes.at[node];
    struct mg_affine s[3] = {uniform, uniform, uniform};
    int64_t numbers[3];
    const int64_t *constant[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i + 1 < n->n_opnds; i++) {
        const struct mg_opnd *o = &w->m->opnds.at[n->opnd + 1 + i];
        s[i] = of_operand(w, node, o);
        numbers[i] = (int64_t)o->val;
        if (o->kind == MG_OPND_imm) constant[i] = &numbers[i];
    }
    enum mg_affine_part part = mg_form_has(f, MG_MOD_hi)                               ? MG_AFFINE_HIGH
                               : !mg_form_has(f, MG_MOD_wide)                          ? MG_AFFINE_LOW
                               : mg_type_kind((enum mg_type)f->types[0]) == MG_TK_SINT ? MG_AFFINE_WIDE_SIGNED
                                                                                       : MG_AFFINE_WIDE_UNSIGNED;
    return mg_affine_of(f->op == MG_OP_cvta ? MG_OP_mov : (enum mg_op)f->op, part, s, constant);
}

static bool is_integer(const struct mg_module *m, const struct mg_node *n, const struct mg_form *f)
{
    for (uint32_t i = 0; i < f->n_types; i++)
        if (mg_type_kind((enum mg_type)f->types[i]) == MG_TK_FLOAT) return false;
    return n->n_opnds >= 2 && n->n_opnds <= 4 && m->opnds.at[n->opnd].kind == MG_OPND_reg && !f->vec;
}

static struct mg_affine made_by(const struct strides *w, mg_id node)
{
    const struct mg_node *n = &w->m->nodes.at[node];
    const struct mg_form *f = mg_node_form(w->m, n);
    switch (f->op) {
    case MG_OP_atom:
    case MG_OP_call:
        return varies;
    case MG_OP_vote:
    case MG_OP_redux:
    case MG_OP_activemask:
        return uniform; /* of those that run together */
    case MG_OP_ld:
        if (f->space == MG_SPACE_local || (f->space == MG_SPACE_param && !w->is_kernel)) return varies;
        return of_any(w, node);
    case MG_OP_mov:
    case MG_OP_cvt:
    case MG_OP_cvta:
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_neg:
    case MG_OP_mul:
    case MG_OP_mad:
    case MG_OP_shl:
        return is_integer(w->m, n, f) ? of_integers(w, node, f) : of_any(w, node);
    default:
        return is_warp(w, node, f) ? uniform : of_any(w, node);
    }
}

static struct mg_affine of_value(const struct strides *w, uint32_t value)
{
    const struct mg_ssa_value *v = &w->s->values[value];
    struct mg_affine a = {MG_AFFINE_NONE, 0};
    switch (v->kind) {
    case MG_SSA_phi:
        for (uint32_t i = 0; i < v->n_args; i++)
            if (w->s->args[v->args_at + i]) a = mg_affine_join(a, w->of[w->s->args[v->args_at + i]]);
        return a;
    case MG_SSA_def:
        a = made_by(w, v->node);
        return v->prev ? mg_affine_join(a, w->of[v->prev]) : a;
    default:
        return w->is_kernel ? uniform : varies;
    }
}

const struct mg_affine *mg_memory_strides(struct mg_patch *p, uint32_t func_ix, bool in_rows)
{
    const struct mg_ssa *s = mg_patch_ssa(p, func_ix);
    struct strides w = {.s = s,
                        .m = s->c->m,
                        .of = mg_arena_array(mg_patch_scratch(p), struct mg_affine, s->n_values),
                        .in_rows = in_rows,
                        .is_kernel = !func_ix};
    bool changed = true;
    w.of[0] = varies;
    for (unsigned pass = 0; changed && pass < MOST_PASSES; pass++) {
        changed = false;
        for (uint32_t v = 1; v < s->n_values; v++) {
            if (w.of[v].is == MG_AFFINE_VARIES) continue;
            struct mg_affine a = mg_affine_join(w.of[v], of_value(&w, v));
            changed |= a.is != w.of[v].is || a.step != w.of[v].step;
            w.of[v] = a;
        }
    }
    return w.of;
}
