/* Sums that take a product in (analysis/contract.h says which). The product is still computed: counts and traces see
 * every instruction of the text. */
#include <stdio.h>
#include <string.h>

#include "analysis/contract.h"
#include "device/emu/decode.h"

void dec_find_fusions(struct decoder *d)
{
    if (!d->mod->dev->opts.no_contract && !d->m->fused) mg_contract_find(d->m, d->cfg, &d->fused);
}

static void find_alu(struct decoder *d, const char *op, const char *rest, const char *type, uint32_t n_opnds,
                     struct emu_alu_desc *a)
{
    char text[40];
    struct mg_form f = {0};
    int n = snprintf(text, sizeof text, "%s%s.%s", op, rest, type);
    mg_form_parse(&f, text, (size_t)n);
    if (!emu_alu_find(&f, n_opnds, d->m->sm, false, d->isa, a)) dec_refuse(d, "unsupported instruction");
}

static uint32_t negated(struct decoder *d, uint32_t s, enum emu_class c, const char *type)
{
    struct emu_alu_desc a = {0};
    find_alu(d, "neg", "", type, 2, &a);
    uint32_t at = dec_slot(d, c);
    struct emu_op *op = dec_emit(d, a.opcode);
    op->a.d = at;
    op->a.s[0] = s;
    return at;
}

/* A quotient by a constant is a product. */
static bool divided_by_constant(struct decoder *d, mg_id node)
{
    const struct mg_node *n = &d->m->nodes.at[node];
    const struct mg_form *f = mg_node_form(d->m, n);
    const struct mg_opnd *o = &d->m->opnds.at[n->opnd];
    uint32_t by = mg_contract_is_quotient(f, n) && o[0].kind == MG_OPND_reg ? mg_contract_reciprocal(d->m, &o[2]) : 0;
    struct emu_alu_desc a = {0};
    if (!by) return false;
    find_alu(d, "mul.rn", mg_form_has(f, MG_MOD_ftz) ? ".ftz" : "", "f32", 3, &a);
    uint32_t s = dec_src(d, &o[1], a.src[0], a.src_type[0]), c = dec_const(d, EMU_W, by);
    struct emu_op *op = dec_emit_inst(d, a.opcode, EMU_CTL_NONE);
    op->a.d = dec_reg(d, &o[0]);
    op->a.s[0] = s;
    op->a.s[1] = c;
    op->a.imm = a.imm;
    return true;
}

bool dec_fused(struct decoder *d, mg_id node)
{
    uint64_t packed;
    const struct mg_map *fused = d->m->fused && !d->mod->dev->opts.no_contract ? d->m->fused : &d->fused;
    if (!mg_map_get(fused, node, &packed)) return divided_by_constant(d, node);
    const struct mg_contraction c = mg_contraction_unpack(packed);
    const struct mg_node *sum = &d->m->nodes.at[node], *product = &d->m->nodes.at[c.product];
    const struct mg_form *f = mg_node_form(d->m, sum);
    const struct mg_opnd *o = &d->m->opnds.at[sum->opnd], *po = &d->m->opnds.at[product->opnd];
    bool is_sub = f->op == MG_OP_sub, sat = mg_form_has(f, MG_MOD_sat), ftz = mg_form_has(f, MG_MOD_ftz);
    const char *type = mg_type_name(f->types[0]);
    struct emu_alu_desc a = {0};
    if (o[0].kind != MG_OPND_reg) return false;
    const struct mg_form *pf = mg_node_form(d->m, product);
    uint32_t by = pf->op == MG_OP_div ? mg_contract_reciprocal(d->m, &po[2]) : 0;
    const char *op_name = pf->op == MG_OP_mul || by      ? "fma.rn"
                          : mg_form_has(pf, MG_MOD_full) ? "div.full"
                                                         : "div.approx";
    find_alu(d, op_name, ftz ? sat ? ".ftz.sat" : ".ftz" : sat ? ".sat" : "", type, 4, &a);
    uint32_t s[3] = {dec_src(d, &po[1], a.src[0], a.src_type[0]),
                     by ? dec_const(d, EMU_W, by) : dec_src(d, &po[2], a.src[1], a.src_type[1]),
                     dec_src(d, &o[c.second ? 1 : 2], a.src[2], a.src_type[2])};
    if (c.negative != (is_sub && c.second)) s[0] = negated(d, s[0], a.src[0], type);
    if (is_sub && !c.second) s[2] = negated(d, s[2], a.src[2], type);
    struct emu_op *op = dec_emit_inst(d, a.opcode, EMU_CTL_NONE);
    op->a.d = dec_reg(d, &o[0]);
    memcpy(op->a.s, s, sizeof s);
    op->a.imm = a.imm;
    op->a.cc = d->fn->cc;
    return true;
}
