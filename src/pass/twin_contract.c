/* Products and sums that the assembler makes one fma of in the native kernel, and would not in the twin, since inserted
 * code with branches lies between them: the twin says fma itself, so that it computes the same bits. A loop that is not
 * to be unrolled stays one: in unrolled rounds the assembler knows more numbers, and rounds their products. */
#include <stdio.h>
#include <string.h>

#include "analysis/contract.h"
#include "pass/pass.h"

/* In what is one block to the assembler: does inserted code between them end it? A tool may have guarded the kernel's
 * own accesses, too. */
static bool is_split(const struct mg_module *m, mg_id product, mg_id sum)
{
    for (mg_id id = m->nodes.at[product].next; id && id != sum; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        bool ours = n->flags & MG_NF_META;
        if (n->kind == MG_NODE_label && ours) return true;
        if (n->kind != MG_NODE_inst) continue;
        const struct mg_form *f = mg_node_form(m, n);
        if ((ours && f->op_flags & (MG_OPF_ENDS_BLOCK | MG_OPF_BARRIER)) || mg_contract_ends_block(f, n)) return true;
    }
    return false;
}

static enum mg_type bits_of(enum mg_type t)
{
    return mg_type_bits(t) == 16 ? MG_TYPE_b16 : t == MG_TYPE_f16x2 || t == MG_TYPE_bf16x2 ? MG_TYPE_b32 : t;
}

/* A new register of what the operation makes of its operands, in front of `at`. */
static struct mg_opnd computed(struct mg_twin *t, mg_id func, mg_id at, const char *form, enum mg_type type,
                               const struct mg_opnd *from, uint32_t n)
{
    struct mg_opnd o[4] = {mg_o_reg(mg_module_add_reg(t->m, func, "__mg_fused", bits_of(type)))};
    for (uint32_t i = 0; i < n; i++) o[1 + i] = from[i];
    mg_node_insert_before(t->m, func, at, mg_node_new(t->m, form, o, 1 + n));
    return o[0];
}

static struct mg_opnd scaled(struct mg_twin *t, mg_id func, mg_id at, struct mg_opnd scale, const char *compare,
                             float than, float by, struct mg_opnd size)
{
    struct mg_opnd p = computed(t, func, at, compare, MG_TYPE_pred, (struct mg_opnd[]){size, mg_o_f32(than)}, 2);
    return computed(t, func, at, "selp.f32", MG_TYPE_f32, (struct mg_opnd[]){mg_o_f32(by), scale, p}, 3);
}

/* div.approx and div.full as the assembler makes them, but for the last product: the factors of that. */
static void take_quotient_apart(struct mg_twin *t, mg_id func, mg_id at, const struct mg_form *f,
                                struct mg_opnd factors[2])
{
    bool ftz = mg_form_has(f, MG_MOD_ftz), full = mg_form_has(f, MG_MOD_full);
    if (full || !ftz) {
        struct mg_opnd size = computed(t, func, at, "abs.f32", MG_TYPE_f32, &factors[1], 1), scale = mg_o_f32(1);
        if (!ftz) scale = scaled(t, func, at, scale, "setp.lt.f32", 0x1p-126f, 0x1p24f, size);
        if (full) scale = scaled(t, func, at, scale, "setp.gt.f32", 0x1p126f, 0.25f, size);
        for (int k = 0; k < 2; k++)
            factors[k] = computed(t, func, at, ftz ? "mul.rn.ftz.f32" : "mul.rn.f32", MG_TYPE_f32,
                                  (struct mg_opnd[]){factors[k], scale}, 2);
    }
    factors[1] = computed(t, func, at, "rcp.approx.ftz.f32", MG_TYPE_f32, &factors[1], 1);
}

static void say_fma(struct mg_twin *t, mg_id func, mg_id sum, struct mg_contraction c)
{
    struct mg_module *m = t->m;
    const struct mg_form f = *mg_node_form(m, &m->nodes.at[sum]), pf = *mg_node_form(m, &m->nodes.at[c.product]);
    enum mg_type type = (enum mg_type)f.types[0];
    char form[32], neg[16];
    int n = snprintf(form, sizeof form, "fma.rn%s%s.%s", mg_form_has(&f, MG_MOD_ftz) ? ".ftz" : "",
                     mg_form_has(&f, MG_MOD_sat) ? ".sat" : "", mg_type_name(type));
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[sum].opnd], *p = &m->opnds.at[m->nodes.at[c.product].opnd];
    bool is_sub = f.op == MG_OP_sub;
    struct mg_opnd to[4] = {o[0], p[1], p[2], o[c.second ? 1 : 2]};
    if (pf.op == MG_OP_div) take_quotient_apart(t, func, sum, &pf, &to[1]);
    snprintf(neg, sizeof neg, "neg.%s", mg_type_name(type));
    if (c.negative != (is_sub && c.second)) to[1] = computed(t, func, sum, neg, type, &to[1], 1);
    if (is_sub && !c.second) to[3] = computed(t, func, sum, neg, type, &to[3], 1);
    mg_id at = mg_opnd_alloc(m, 4);
    for (uint32_t k = 0; k < 4; k++) m->opnds.at[at + k] = to[k];
    m->nodes.at[sum].ref = mg_form_intern(m, form, (size_t)n);
    m->nodes.at[sum].opnd = at;
    m->nodes.at[sum].n_opnds = 4;
}

/* The assembler fuses quotients by constants wherever they are. */
static bool is_by_constant(const struct mg_module *m, mg_id func, mg_id product)
{
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[product].opnd];
    return mg_node_form(m, &m->nodes.at[product])->op == MG_OP_div &&
           mg_contract_reciprocal(m, mg_contract_moved(m, func, &o[2]));
}

/* The program's label in front of the node, nothing but inserted code between; 0: there is none. */
static mg_id label_before(const struct mg_module *m, mg_id node)
{
    for (mg_id id = m->nodes.at[node].prev; id; id = m->nodes.at[id].prev) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->flags & MG_NF_META || n->kind == MG_NODE_loc || n->kind == MG_NODE_pragma) continue;
        return n->kind == MG_NODE_label ? id : 0;
    }
    return 0;
}

/* What tools insert at a loop's head stands in front of its pragma, and has branches: the assembler looks for the
 * pragma where the loop begins. */
static void keep_rolled(struct mg_module *m, mg_id func)
{
    for (mg_id id = m->funcs.at[func].first_node, next; id; id = next) {
        const struct mg_node *n = &m->nodes.at[id];
        next = n->next;
        if (n->kind != MG_NODE_pragma || n->flags & MG_NF_META || strcmp(mg_name(m, n->ref), "nounroll")) continue;
        mg_id label = label_before(m, id);
        if (!label || n->prev == label) continue;
        mg_node_remove(m, func, id);
        mg_node_insert_after(m, func, label, id);
    }
}

void mg_twin_contract(struct mg_twin *t)
{
    struct mg_module *m = t->m;
    for (uint32_t f = 0; f < t->n_funcs; f++) keep_rolled(m, t->funcs[f]);
    for (uint32_t f = 0; f < t->n_funcs && m->fused->n; f++)
        for (mg_id id = m->funcs.at[t->funcs[f]].first_node; id; id = m->nodes.at[id].next) {
            uint64_t packed;
            if (!mg_map_get(m->fused, id, &packed)) continue;
            const struct mg_contraction c = mg_contraction_unpack(packed);
            if (!c.apart && !is_by_constant(m, t->funcs[f], c.product) && is_split(m, c.product, id))
                say_fma(t, t->funcs[f], id, c);
        }
}
