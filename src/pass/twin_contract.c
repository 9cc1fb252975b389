/* Products and sums that the assembler makes one fma of in the native kernel, and would not in the twin, since inserted
 * code with branches lies between them: the twin says fma itself, so that it computes the same bits. */
#include <stdio.h>

#include "analysis/contract.h"
#include "pass/pass.h"

/* In one basic block of the kernel's: does inserted code between them end one of the assembler's? A tool may have
 * guarded the kernel's own accesses, too. */
static bool is_split(const struct mg_module *m, mg_id product, mg_id sum)
{
    bool split = false;
    for (mg_id id = m->nodes.at[product].next; id; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        bool ours = n->flags & MG_NF_META;
        if (id == sum) return split;
        if (n->kind == MG_NODE_label && !ours) return false;
        split |= n->kind == MG_NODE_label;
        if (n->kind != MG_NODE_inst) continue;
        const struct mg_form *f = mg_node_form(m, n);
        if (!ours && f->op_flags & MG_OPF_ENDS_BLOCK) return false;
        split |= (ours && f->op_flags & (MG_OPF_ENDS_BLOCK | MG_OPF_BARRIER)) || mg_contract_ends_block(f, n);
    }
    return false;
}

static struct mg_opnd negated(struct mg_twin *t, mg_id func, mg_id at, struct mg_opnd o, enum mg_type type)
{
    char form[16];
    struct mg_opnd r = mg_o_reg(mg_module_add_reg(t->m, func, "__mg_neg", type));
    snprintf(form, sizeof form, "neg.%s", mg_type_name(type));
    mg_node_insert_before(t->m, func, at, mg_node_new(t->m, form, (struct mg_opnd[]){r, o}, 2));
    return r;
}

static void say_fma(struct mg_twin *t, mg_id func, mg_id sum, mg_id product)
{
    struct mg_module *m = t->m;
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[sum]);
    enum mg_type type = (enum mg_type)f->types[0];
    bool sub = f->op == MG_OP_sub;
    char form[32];
    int n = snprintf(form, sizeof form, "fma.rn%s%s.%s", mg_form_has(f, MG_MOD_ftz) ? ".ftz" : "",
                     mg_form_has(f, MG_MOD_sat) ? ".sat" : "", mg_type_name(type));
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[sum].opnd], *p = &m->opnds.at[m->nodes.at[product].opnd];
    bool second = o[1].kind != MG_OPND_reg || o[1].id != p[0].id;
    struct mg_opnd to[4] = {o[0], p[1], p[2], o[second ? 1 : 2]};
    if (sub && second)
        to[1] = negated(t, func, sum, to[1], type);
    else if (sub)
        to[3] = negated(t, func, sum, to[3], type);
    mg_id at = mg_opnd_alloc(m, 4);
    for (uint32_t k = 0; k < 4; k++) m->opnds.at[at + k] = to[k];
    m->nodes.at[sum].ref = mg_form_intern(m, form, (size_t)n);
    m->nodes.at[sum].opnd = at;
    m->nodes.at[sum].n_opnds = 4;
}

void mg_twin_contract(struct mg_twin *t)
{
    struct mg_module *m = t->m;
    for (uint32_t f = 0; f < t->n_funcs && m->fused->n; f++)
        for (mg_id id = m->funcs.at[t->funcs[f]].first_node; id; id = m->nodes.at[id].next) {
            uint64_t product;
            if (mg_map_get(m->fused, id, &product) && mg_node_form(m, &m->nodes.at[product])->op == MG_OP_mul &&
                is_split(m, (mg_id)product, id))
                say_fma(t, t->funcs[f], id, (mg_id)product);
        }
}
