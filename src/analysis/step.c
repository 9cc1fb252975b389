/* A value at a loop's header steps by what a round adds to it: from the header on, a chain of sums with constants leads
 * to what comes back. All else follows by the arithmetic of affine.h, where what the loop does not change steps by 0.
 */
#include "analysis/step.h"

enum { MOST_STEPS = 64 /* instructions looked at for one value */ };

struct walk {
    const struct mg_ssa *s;
    const struct mg_loops *l;
    uint32_t loop;
    int left;
};

static struct mg_affine of_value(struct walk *w, uint32_t value);

static bool is_register(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_reg && !o->sub && !o->val;
}

/* The instruction, if it makes the value of integers for every lane; NULL: it does not. */
static const struct mg_node *sum_at(const struct walk *w, uint32_t value)
{
    const struct mg_ssa_value *v = &w->s->values[value];
    const struct mg_module *m = w->s->c->m;
    const struct mg_node *n = v->kind == MG_SSA_def ? &m->nodes.at[v->node] : NULL;
    if (!n || n->guard || n->n_opnds < 2) return NULL;
    const struct mg_form *f = mg_node_form(m, n);
    for (uint32_t i = 0; i < f->n_types; i++) {
        enum mg_type_kind kind = mg_type_kind((enum mg_type)f->types[i]);
        if (kind == MG_TK_FLOAT || kind == MG_TK_PACKED) return NULL;
    }
    return n;
}

/* Is the value the phi's and constants? What they add up to. */
static bool find_sum(struct walk *w, uint32_t value, uint32_t phi, int64_t *sum)
{
    const struct mg_module *m = w->s->c->m;
    for (*sum = 0; value != phi;) {
        const struct mg_node *n = value && --w->left >= 0 ? sum_at(w, value) : NULL;
        if (!n) return false;
        const struct mg_opnd *o = &m->opnds.at[n->opnd];
        enum mg_op op = (enum mg_op)mg_node_form(m, n)->op;
        bool adds = (op == MG_OP_add || op == MG_OP_sub) && n->n_opnds == 3;
        uint32_t by = op == MG_OP_add && o[1].kind == MG_OPND_imm ? 1 : 2, of = 3 - by;
        if (adds && o[by].kind == MG_OPND_imm)
            *sum += op == MG_OP_sub ? -(int64_t)o[by].val : (int64_t)o[by].val;
        else if (op != MG_OP_mov || n->n_opnds != 2)
            return false;
        if (!is_register(&o[adds ? of : 1])) return false;
        value = mg_ssa_read(w->s, w->s->values[value].node, o[adds ? of : 1].id);
    }
    return true;
}

/* At the loop's header: what all ways back to it add. */
static struct mg_affine of_phi(struct walk *w, uint32_t value)
{
    const struct mg_ssa_value *v = &w->s->values[value];
    const struct mg_cfg *c = w->s->c;
    const struct mg_loop *loop = &w->l->loops[w->loop];
    struct mg_affine step = {0};
    if (v->block != loop->header || loop->n_headers > 1) return mg_affine_varies();
    for (uint32_t i = 0; i < v->n_args; i++) {
        int64_t sum;
        if (!mg_loops_contains(w->l, w->loop, c->preds[c->blocks[v->block].pred_at + i])) continue;
        if (!find_sum(w, w->s->args[v->args_at + i], value, &sum)) return mg_affine_varies();
        step = mg_affine_join(step, mg_affine_step(sum));
    }
    return step;
}

static enum mg_affine_part part_of(const struct mg_form *f)
{
    if (mg_form_has(f, MG_MOD_hi)) return MG_AFFINE_HIGH;
    if (!mg_form_has(f, MG_MOD_wide)) return MG_AFFINE_LOW;
    return mg_type_kind((enum mg_type)f->types[0]) == MG_TK_SINT ? MG_AFFINE_WIDE_SIGNED : MG_AFFINE_WIDE_UNSIGNED;
}

static struct mg_affine of_instruction(struct walk *w, uint32_t value)
{
    const struct mg_module *m = w->s->c->m;
    const struct mg_node *n = sum_at(w, value);
    struct mg_affine s[3] = {mg_affine_step(0), mg_affine_step(0), mg_affine_step(0)};
    int64_t numbers[3];
    const int64_t *constant[3] = {NULL, NULL, NULL};
    if (!n || n->n_opnds > 4) return mg_affine_varies();
    const struct mg_form *f = mg_node_form(m, n);
    for (uint32_t i = 0; i + 1 < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + 1 + i];
        numbers[i] = (int64_t)o->val;
        if (o->kind == MG_OPND_imm)
            constant[i] = &numbers[i];
        else
            s[i] =
                is_register(o) ? of_value(w, mg_ssa_read(w->s, w->s->values[value].node, o->id)) : mg_affine_varies();
    }
    return mg_affine_of(f->op == MG_OP_cvta ? MG_OP_mov : (enum mg_op)f->op, part_of(f), s, constant);
}

static struct mg_affine of_value(struct walk *w, uint32_t value)
{
    if (!value || --w->left < 0) return mg_affine_varies();
    if (mg_ssa_is_fixed(w->s, w->l, w->loop, value)) return mg_affine_step(0);
    return w->s->values[value].kind == MG_SSA_phi ? of_phi(w, value) : of_instruction(w, value);
}

struct mg_affine mg_step_of(const struct mg_ssa *s, const struct mg_loops *l, uint32_t loop, mg_id node, mg_id reg)
{
    struct walk w = {s, l, loop, MOST_STEPS};
    return of_value(&w, mg_ssa_read(s, node, reg));
}
