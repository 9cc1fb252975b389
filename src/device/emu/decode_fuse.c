/* Contraction of products and sums, as ptxas does it: PTX leaves `mul` and `add`/`sub` without a
 * rounding modifier open to it, and nvcc counts on it (`a * b - c` comes as mul and sub). Which pairs
 * become one fma decides bits of the result, so the choice is ptxas 13.0's, seen on an H200:
 *   - both unrounded, of one type and one `.ftz`, in one basic block (a f32 product by a constant: in
 *     any block), the product unguarded; what ptxas expands into code with branches ends a block;
 *   - div.approx and div.full are products with a reciprocal, and with a constant divisor products
 *     with the constant's reciprocal, rounded to nearest;
 *   - every use of the product is such a sum, and every one of them takes it;
 *   - of two products a sum takes the first one that may be taken.
 * The product is still computed: counts and traces see every instruction of the text. Not done: half
 * precision, PTX 1.x (where mad is no fma). */
#include "device/emu/decode.h"

#include <stdio.h>
#include <string.h>

struct product {
    mg_id node, reg, factors[2];
    uint32_t block;
    bool constant, lost;
};
struct sum {
    mg_id node;
    uint32_t terms[2], taken;
}; /* products + 1; 0: none */
struct fusion {
    struct decoder *d;
    struct mg_map by_reg; /* -> product + 1 */
    struct mg_map n_defs; /* of products and their factors */
    MG_VEC(struct product) products;
    MG_VEC(struct sum) sums;
};

static bool unrounded(const struct mg_form *f, const struct mg_node *n)
{
    return f->n_types == 1 && (f->types[0] == MG_TYPE_f32 || f->types[0] == MG_TYPE_f64) && !f->rounding &&
           n->n_opnds == 3;
}

static bool is_quotient(const struct mg_form *f, const struct mg_node *n)
{
    return f->op == MG_OP_div && f->n_types == 1 && f->types[0] == MG_TYPE_f32 && n->n_opnds == 3 &&
           (mg_form_has(f, MG_MOD_approx) || mg_form_has(f, MG_MOD_full));
}
static bool is_literal(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_f32 || o->kind == MG_OPND_f64;
}
/* Of a constant divisor; 0 where ptxas does not take the reciprocal */
static uint32_t reciprocal(struct decoder *d, const struct mg_opnd *divisor)
{
    if (!is_literal(divisor)) return 0;
    uint32_t bits = (uint32_t)dec_imm(d, divisor, MG_TYPE_f32);
    float c;
    memcpy(&c, &bits, 4);
    float size = c < 0 ? -c : c;
    if (!(size >= 0x1p-126f && size <= 0x1p126f)) return 0;
    c = 1.0f / c;
    memcpy(&bits, &c, 4);
    return bits;
}
/* Does the code for it have branches? */
static bool ends_block(const struct mg_form *f, const struct mg_node *n)
{
    enum mg_type t = (enum mg_type)f->types[0];
    switch (f->op) {
    case MG_OP_div:
    case MG_OP_rem:
        return mg_type_kind(t) == MG_TK_FLOAT ? f->rounding != 0 : t != MG_TYPE_u32;
    case MG_OP_rcp:
    case MG_OP_sqrt:
        return f->rounding != 0;
    case MG_OP_rsqrt:
        return t == MG_TYPE_f64 && !mg_form_has(f, MG_MOD_ftz);
    case MG_OP_membar:
    case MG_OP_fence:
        return true;
    case MG_OP_ld:
    case MG_OP_st:
    case MG_OP_atom:
    case MG_OP_red:
    case MG_OP_trap:
        return n->guard != 0;
    default:
        return false;
    }
}

static void find_products(struct fusion *z, mg_id node, uint32_t block)
{
    const struct mg_module *m = z->d->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    bool quotient = is_quotient(f, n);
    if (!(quotient || (f->op == MG_OP_mul && unrounded(f, n))) || n->guard || mg_form_has(f, MG_MOD_sat) ||
        o[0].kind != MG_OPND_reg)
        return;
    struct product *p = mg_vec_push(&z->products);
    *p = (struct product){.node = node, .reg = o[0].id, .block = block};
    p->constant = quotient ? reciprocal(z->d, &o[2]) != 0 : o[1].kind != MG_OPND_reg || o[2].kind != MG_OPND_reg;
    mg_map_set(&z->by_reg, p->reg, z->products.n);
    mg_map_set(&z->n_defs, p->reg, 0);
    for (int k = 0; k < 2; k++) {
        if (o[1 + k].kind != MG_OPND_reg) continue;
        p->factors[k] = o[1 + k].id;
        if (!mg_map_get(&z->n_defs, p->factors[k], NULL)) mg_map_set(&z->n_defs, p->factors[k], 0);
    }
}

/* Are the factors at the sum what they were at the product? */
static bool unchanged(struct fusion *z, const struct product *p, mg_id sum)
{
    const struct mg_module *m = z->d->m;
    for (int k = 0; k < 2; k++) {
        uint64_t defs = 0;
        if (!p->factors[k] || (mg_map_get(&z->n_defs, p->factors[k], &defs) && defs < 2)) continue;
        for (mg_id id = p->node; id != sum; id = m->nodes.at[id].next) {
            mg_id ids[16];
            uint32_t n = m->nodes.at[id].kind == MG_NODE_inst ? mg_node_defs(m, id, ids, 16) : 0;
            for (uint32_t i = 0; i < n && i < 16; i++)
                if (ids[i] == p->factors[k]) return false;
        }
    }
    return true;
}

/* Does the sum see the product that was computed last? */
static bool reaches(struct fusion *z, const struct product *p, mg_id sum, uint32_t block)
{
    const struct mg_module *m = z->d->m;
    mg_id factor = p->factors[0] ? p->factors[0] : p->factors[1], at = p->node;
    uint64_t defs = 0;
    if (p->block != block) /* cheap enough to be computed again where it is used */
        return p->constant && mg_node_form(m, &m->nodes.at[p->node])->types[0] == MG_TYPE_f32 &&
               mg_map_get(&z->n_defs, factor, &defs) && defs < 2;
    while (at && at != sum) at = m->nodes.at[at].next;
    return at == sum && unchanged(z, p, sum);
}

/* Every use of a product is either a term of a sum, or the product is lost. */
static void look_at_uses(struct fusion *z, mg_id node, uint32_t block)
{
    const struct mg_module *m = z->d->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    mg_id ids[64];
    uint32_t n_ids = mg_node_uses(m, node, ids, 64);
    bool is_sum = (f->op == MG_OP_add || f->op == MG_OP_sub) && unrounded(f, n);
    struct sum s = {.node = node};
    for (uint32_t i = 0; i < n_ids && i < 64; i++) {
        uint64_t ix;
        if (!mg_map_get(&z->by_reg, ids[i], &ix)) continue;
        struct product *p = &z->products.at[ix - 1];
        const struct mg_form *pf = mg_node_form(m, &m->nodes.at[p->node]);
        const struct mg_opnd *o = &m->opnds.at[n->opnd];
        bool first = is_sum && o[1].kind == MG_OPND_reg && o[1].id == p->reg;
        bool second = is_sum && o[2].kind == MG_OPND_reg && o[2].id == p->reg;
        if (first == second || pf->types[0] != f->types[0] ||
            mg_form_has(pf, MG_MOD_ftz) != mg_form_has(f, MG_MOD_ftz) || !reaches(z, p, node, block))
            p->lost = true;
        else
            s.terms[second] = (uint32_t)ix;
    }
    if (s.terms[0] || s.terms[1]) *mg_vec_push(&z->sums) = s;
}

static void choose(struct fusion *z)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < z->sums.n; i++) {
            struct sum *s = &z->sums.at[i];
            s->taken = 0;
            for (int k = 0; k < 2; k++) {
                struct product *p = s->terms[k] ? &z->products.at[s->terms[k] - 1] : NULL;
                if (!p || p->lost) continue;
                if (!s->taken)
                    s->taken = s->terms[k];
                else
                    again |= p->lost = true;
            }
        }
    }
}

static void each_inst(struct fusion *z, void (*fn)(struct fusion *, mg_id, uint32_t))
{
    const struct mg_module *m = z->d->m;
    const struct mg_cfg *cfg = z->d->cfg;
    uint32_t block = 0;
    for (uint32_t b = 0; b < cfg->n_blocks; b++, block++)
        for (mg_id id = cfg->blocks[b].first; id; id = m->nodes.at[id].next) {
            const struct mg_node *n = &m->nodes.at[id];
            if (n->kind == MG_NODE_inst) {
                fn(z, id, block);
                block += ends_block(mg_node_form(m, n), n);
            }
            if (id == cfg->blocks[b].last) break;
        }
}

static void count_defs(struct fusion *z, mg_id node, uint32_t block)
{
    (void)block;
    mg_id ids[16];
    uint32_t n = mg_node_defs(z->d->m, node, ids, 16);
    for (uint32_t i = 0; i < n && i < 16; i++) {
        uint64_t defs, ix;
        if (!mg_map_get(&z->n_defs, ids[i], &defs)) continue;
        mg_map_set(&z->n_defs, ids[i], ++defs);
        if (defs > 1 && mg_map_get(&z->by_reg, ids[i], &ix)) z->products.at[ix - 1].lost = true;
    }
}

void dec_find_fusions(struct decoder *d)
{
    struct fusion z = {.d = d};
    if (d->m->sm < 20 || d->mod->dev->opts.no_contract) return;
    each_inst(&z, find_products);
    if (z.products.n) {
        each_inst(&z, count_defs);
        each_inst(&z, look_at_uses);
        choose(&z);
        for (uint32_t i = 0; i < z.sums.n; i++)
            if (z.sums.at[i].taken)
                mg_map_set(&d->fused, z.sums.at[i].node, z.products.at[z.sums.at[i].taken - 1].node);
    }
    mg_map_release(&z.by_reg);
    mg_map_release(&z.n_defs);
    mg_vec_release(&z.products);
    mg_vec_release(&z.sums);
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
    uint32_t by = is_quotient(f, n) && o[0].kind == MG_OPND_reg ? reciprocal(d, &o[2]) : 0;
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
    uint64_t mul;
    if (!mg_map_get(&d->fused, node, &mul)) return divided_by_constant(d, node);
    const struct mg_node *sum = &d->m->nodes.at[node], *product = &d->m->nodes.at[mul];
    const struct mg_form *f = mg_node_form(d->m, sum);
    const struct mg_opnd *o = &d->m->opnds.at[sum->opnd], *po = &d->m->opnds.at[product->opnd];
    bool second = o[1].kind != MG_OPND_reg || o[1].id != po[0].id, sat = mg_form_has(f, MG_MOD_sat),
         ftz = mg_form_has(f, MG_MOD_ftz);
    const char *type = mg_type_name(f->types[0]);
    struct emu_alu_desc a = {0};
    if (o[0].kind != MG_OPND_reg) return false;
    const struct mg_form *pf = mg_node_form(d->m, product);
    uint32_t by = pf->op == MG_OP_div ? reciprocal(d, &po[2]) : 0;
    const char *op_name = pf->op == MG_OP_mul || by      ? "fma.rn"
                          : mg_form_has(pf, MG_MOD_full) ? "div.full"
                                                         : "div.approx";
    find_alu(d, op_name, ftz ? sat ? ".ftz.sat" : ".ftz" : sat ? ".sat" : "", type, 4, &a);
    uint32_t s[3] = {dec_src(d, &po[1], a.src[0], a.src_type[0]),
                     by ? dec_const(d, EMU_W, by) : dec_src(d, &po[2], a.src[1], a.src_type[1]),
                     dec_src(d, &o[second ? 1 : 2], a.src[2], a.src_type[2])};
    if (f->op == MG_OP_sub) {
        int k = second ? 0 : 2;
        s[k] = negated(d, s[k], a.src[k], type);
    }
    struct emu_op *op = dec_emit_inst(d, a.opcode, EMU_CTL_NONE);
    op->a.d = dec_reg(d, &o[0]);
    memcpy(op->a.s, s, sizeof s);
    op->a.imm = a.imm;
    op->a.cc = d->fn->cc;
    return true;
}
