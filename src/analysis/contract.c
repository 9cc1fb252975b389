/* Contraction of products and sums, as ptxas does it: PTX leaves `mul` and `add`/`sub` without a
 * rounding modifier open to it, and nvcc counts on it (`a * b - c` comes as mul and sub). Which pairs
 * become one fma decides bits of the result, so the choice is ptxas 13.0's, seen on an H200:
 *   - both unrounded, of one type and one `.ftz`, in one basic block (a f32 product by a constant: in
 *     any block), the product unguarded; what ptxas expands into code with branches ends a block, a
 *     branch to where nobody else comes does not;
 *   - `mov` and `neg` between them make no difference;
 *   - div.approx and div.full are products with a reciprocal, and with a constant divisor products
 *     with the constant's reciprocal, rounded to nearest;
 *   - a f32 or f64 product of known numbers is computed, and rounded, when the code is made: none of these;
 *   - every use of the product is such a sum, and every one of them takes it;
 *   - of two products a sum takes the first one that may be taken.
 * Half precision, packed or not, goes by the same rules. Not done: PTX 1.x (where mad is no fma). */
#include "analysis/contract.h"

#include <string.h>

#include "base/number.h"

struct product {
    mg_id node, reg, factors[2];
    uint32_t block;
    bool constant, lost;
};
struct sum {
    mg_id node;
    uint32_t block, terms[2]; /* products + 1; 0: none */
    bool negative[2];
    int taken; /* term; -1: none */
};
#define NEGATIVE ((uint64_t)1 << 32)
struct fusion {
    const struct mg_module *m;
    const struct mg_cfg *cfg;
    struct mg_map by_reg; /* -> product + 1, NEGATIVE; copies of a product, too */
    struct mg_map defs;   /* of registers: how many << 32 | node of the last */
    MG_VEC(struct product) products;
    MG_VEC(struct sum) sums;
};

static bool unrounded(const struct mg_form *f, const struct mg_node *n)
{
    if (f->n_types != 1 || f->rounding || n->n_opnds != 3) return false;
    switch (f->types[0]) {
    case MG_TYPE_f32:
    case MG_TYPE_f64:
    case MG_TYPE_f16:
    case MG_TYPE_f16x2:
    case MG_TYPE_bf16:
    case MG_TYPE_bf16x2:
        return true;
    default:
        return false;
    }
}

bool mg_contract_is_product(const struct mg_form *f, const struct mg_node *n)
{
    return f->op == MG_OP_mul && unrounded(f, n);
}

bool mg_contract_is_quotient(const struct mg_form *f, const struct mg_node *n)
{
    return f->op == MG_OP_div && f->n_types == 1 && f->types[0] == MG_TYPE_f32 && n->n_opnds == 3 &&
           (mg_form_has(f, MG_MOD_approx) || mg_form_has(f, MG_MOD_full));
}
static bool is_literal(const struct mg_opnd *o)
{
    return o->kind == MG_OPND_f32 || o->kind == MG_OPND_f64;
}
uint32_t mg_contract_reciprocal(const struct mg_module *m, const struct mg_opnd *divisor)
{
    float c;
    uint32_t bits = (uint32_t)divisor->val;
    if (!is_literal(divisor)) return 0;
    if (divisor->kind == MG_OPND_f32) {
        memcpy(&c, &bits, 4);
    } else {
        double x;
        memcpy(&x, &divisor->val, 8);
        c = (float)(divisor->sub == 1 ? mg_number_plain(mg_name(m, divisor->id), NULL) : x);
    }
    float size = c < 0 ? -c : c;
    if (!(size >= 0x1p-126f && size <= 0x1p126f)) return 0;
    c = 1.0f / c;
    memcpy(&bits, &c, 4);
    return bits;
}
const struct mg_opnd *mg_contract_moved(const struct mg_module *m, mg_id func, const struct mg_opnd *o)
{
    const struct mg_opnd *from = o;
    mg_id ids[16];
    for (mg_id id = o->kind == MG_OPND_reg ? m->funcs.at[func].first_node : 0; id; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        uint32_t n_defs = n->kind == MG_NODE_inst ? mg_node_defs(m, id, ids, 16) : 0;
        for (uint32_t i = 0; i < n_defs && i < 16; i++) {
            if (ids[i] != o->id) continue;
            if (from != o || n->guard || mg_node_form(m, n)->op != MG_OP_mov) return o;
            from = &m->opnds.at[n->opnd + 1];
        }
    }
    return from;
}

static uint32_t n_defs(const struct fusion *z, mg_id reg)
{
    uint64_t defs = 0;
    mg_map_get(&z->defs, reg, &defs);
    return (uint32_t)(defs >> 32);
}

/* Of operations that compute a number from others: does the assembler do it where it knows these? */
static bool is_computed(const struct mg_form *f)
{
    switch (f->op) {
    case MG_OP_mov:
    case MG_OP_neg:
    case MG_OP_abs:
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_cvt:
    case MG_OP_min:
    case MG_OP_max:
    case MG_OP_and:
    case MG_OP_or:
    case MG_OP_xor:
    case MG_OP_shl:
    case MG_OP_shr:
    case MG_OP_mul24:
    case MG_OP_bfe:
    case MG_OP_popc:
    case MG_OP_setp:
    case MG_OP_selp:
    case MG_OP_set:
    case MG_OP_slct:
        return true;
    case MG_OP_mad:
        return mg_type_kind((enum mg_type)f->types[0]) != MG_TK_FLOAT;
    case MG_OP_rcp:
    case MG_OP_sqrt:
    case MG_OP_rsqrt:
    case MG_OP_ex2:
    case MG_OP_lg2:
    case MG_OP_sin:
    case MG_OP_cos:
        return mg_form_has(f, MG_MOD_approx) && f->types[0] == MG_TYPE_f32;
    default:
        return false;
    }
}

/* Does the assembler know the number? */
static bool is_known(const struct fusion *z, const struct mg_opnd *o, int depth)
{
    const struct mg_module *m = z->m;
    uint64_t defs = 0;
    if (is_literal(o) || o->kind == MG_OPND_imm) return true;
    if (o->kind != MG_OPND_reg || o->sub || !depth || !mg_map_get(&z->defs, o->id, &defs) || defs >> 32 != 1)
        return false;
    const struct mg_node *n = &m->nodes.at[(mg_id)defs];
    bool known = !n->guard && is_computed(mg_node_form(m, n));
    for (uint32_t i = 1; i < n->n_opnds; i++) known = known && is_known(z, &m->opnds.at[n->opnd + i], depth - 1);
    return known;
}

/* Does the code for it have branches? */
bool mg_contract_ends_block(const struct mg_form *f, const struct mg_node *n)
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

/* A register with what a product is, or its negative; 0: it is none. */
static uint64_t copied(struct fusion *z, const struct mg_form *f, const struct mg_node *n)
{
    const struct mg_opnd *o = &z->m->opnds.at[n->opnd];
    uint64_t of = 0;
    if ((f->op != MG_OP_mov && f->op != MG_OP_neg) || f->n_types != 1 || n->n_opnds != 2 || n->guard ||
        o[0].kind != MG_OPND_reg || o[1].kind != MG_OPND_reg || o[0].sub || o[1].sub ||
        !mg_map_get(&z->by_reg, o[1].id, &of))
        return 0;
    const struct mg_form *pf = mg_node_form(z->m, &z->m->nodes.at[z->products.at[(uint32_t)of - 1].node]);
    if (f->op == MG_OP_mov)
        return mg_type_bits((enum mg_type)f->types[0]) == mg_type_bits((enum mg_type)pf->types[0]) ? of : 0;
    return f->types[0] == pf->types[0] && mg_form_has(f, MG_MOD_ftz) <= mg_form_has(pf, MG_MOD_ftz) ? of ^ NEGATIVE : 0;
}

static void find_products(struct fusion *z, mg_id node, uint32_t block)
{
    const struct mg_module *m = z->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    uint64_t of = copied(z, f, n);
    if (of && !mg_map_get(&z->by_reg, o[0].id, NULL)) mg_map_set(&z->by_reg, o[0].id, of);
    bool quotient = mg_contract_is_quotient(f, n);
    if (!(quotient || mg_contract_is_product(f, n)) || n->guard || mg_form_has(f, MG_MOD_sat) ||
        o[0].kind != MG_OPND_reg)
        return;
    struct product *p = mg_vec_push(&z->products);
    *p = (struct product){.node = node, .reg = o[0].id, .block = block};
    p->constant =
        quotient ? mg_contract_reciprocal(z->m, &o[2]) != 0 : o[1].kind != MG_OPND_reg || o[2].kind != MG_OPND_reg;
    mg_map_set(&z->by_reg, p->reg, z->products.n);
    for (int k = 0; k < 2; k++)
        if (o[1 + k].kind == MG_OPND_reg) p->factors[k] = o[1 + k].id;
}

/* Are the factors at the sum what they were at the product? */
static bool unchanged(struct fusion *z, const struct product *p, mg_id sum)
{
    const struct mg_module *m = z->m;
    for (int k = 0; k < 2; k++) {
        if (!p->factors[k] || n_defs(z, p->factors[k]) < 2) continue;
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
    const struct mg_module *m = z->m;
    mg_id factor = p->factors[0] ? p->factors[0] : p->factors[1], at = p->node;
    if (p->block != block) /* cheap enough to be computed again where it is used */
        return p->constant && mg_node_form(m, &m->nodes.at[p->node])->types[0] == MG_TYPE_f32 && n_defs(z, factor) < 2;
    while (at && at != sum) at = m->nodes.at[at].next;
    return at == sum && unchanged(z, p, sum);
}

/* Every use of a product is either a term of a sum, or the product is lost. */
static void look_at_uses(struct fusion *z, mg_id node, uint32_t block)
{
    const struct mg_module *m = z->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    mg_id ids[64];
    uint32_t n_ids = mg_node_uses(m, node, ids, 64);
    bool is_sum = (f->op == MG_OP_add || f->op == MG_OP_sub) && unrounded(f, n);
    struct sum s = {.node = node, .block = block, .taken = -1};
    uint64_t of = copied(z, f, n), known;
    if (of && mg_map_get(&z->by_reg, m->opnds.at[n->opnd].id, &known) && of == known) return;
    for (uint32_t i = 0; i < n_ids && i < 64; i++) {
        uint64_t ix;
        if (!mg_map_get(&z->by_reg, ids[i], &ix)) continue;
        struct product *p = &z->products.at[(uint32_t)ix - 1];
        const struct mg_form *pf = mg_node_form(m, &m->nodes.at[p->node]);
        const struct mg_opnd *o = &m->opnds.at[n->opnd];
        bool first = is_sum && o[1].kind == MG_OPND_reg && o[1].id == ids[i];
        bool second = is_sum && o[2].kind == MG_OPND_reg && o[2].id == ids[i];
        if (first == second || pf->types[0] != f->types[0] ||
            mg_form_has(pf, MG_MOD_ftz) != mg_form_has(f, MG_MOD_ftz) || !reaches(z, p, node, block))
            p->lost = true;
        else {
            s.terms[second] = (uint32_t)ix;
            s.negative[second] = (ix & NEGATIVE) != 0;
        }
    }
    if (s.terms[0] || s.terms[1]) *mg_vec_push(&z->sums) = s;
}

static void choose(struct fusion *z)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < z->sums.n; i++) {
            struct sum *s = &z->sums.at[i];
            s->taken = -1;
            for (int k = 0; k < 2; k++) {
                struct product *p = s->terms[k] ? &z->products.at[s->terms[k] - 1] : NULL;
                if (!p || p->lost) continue;
                if (s->taken < 0)
                    s->taken = k;
                else
                    again |= p->lost = true;
            }
        }
    }
}

/* Does the block only go on with the one before it? */
static bool continues(const struct mg_cfg *cfg, uint32_t b)
{
    const struct mg_block *at = &cfg->blocks[b];
    return b && at->n_preds == 1 && cfg->preds[at->pred_at] == b - 1 && at[-1].n_succs == 1 && !at[-1].leaves;
}

static void each_inst(struct fusion *z, void (*fn)(struct fusion *, mg_id, uint32_t))
{
    const struct mg_module *m = z->m;
    const struct mg_cfg *cfg = z->cfg;
    uint32_t block = 0;
    for (uint32_t b = 0; b < cfg->n_blocks; b++) {
        block += !continues(cfg, b);
        for (mg_id id = cfg->blocks[b].first; id; id = m->nodes.at[id].next) {
            const struct mg_node *n = &m->nodes.at[id];
            if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) {
                fn(z, id, block);
                block += mg_contract_ends_block(mg_node_form(m, n), n);
            }
            if (id == cfg->blocks[b].last) break;
        }
    }
}

static void count_defs(struct fusion *z, mg_id node, uint32_t block)
{
    (void)block;
    mg_id ids[16];
    uint32_t n = mg_node_defs(z->m, node, ids, 16);
    for (uint32_t i = 0; i < n && i < 16; i++) {
        uint64_t defs = n_defs(z, ids[i]) + 1, ix;
        mg_map_set(&z->defs, ids[i], defs << 32 | node);
        if (defs > 1 && mg_map_get(&z->by_reg, ids[i], &ix)) z->products.at[(uint32_t)ix - 1].lost = true;
    }
}

/* The assembler computes these itself, each by itself. Half precision it leaves to the kernel. */
static void lose_known(struct fusion *z)
{
    for (uint32_t i = 0; i < z->products.n; i++) {
        struct product *p = &z->products.at[i];
        const struct mg_node *n = &z->m->nodes.at[p->node];
        const struct mg_opnd *o = &z->m->opnds.at[n->opnd];
        enum mg_type type = (enum mg_type)mg_node_form(z->m, n)->types[0];
        if (type == MG_TYPE_f32 || type == MG_TYPE_f64) p->lost |= is_known(z, &o[1], 8) && is_known(z, &o[2], 8);
    }
}

void mg_contract_find(const struct mg_module *m, const struct mg_cfg *cfg, struct mg_map *sums)
{
    struct fusion z = {.m = m, .cfg = cfg};
    if (m->sm < 20) return;
    each_inst(&z, find_products);
    if (z.products.n) {
        each_inst(&z, count_defs);
        lose_known(&z);
        each_inst(&z, look_at_uses);
        choose(&z);
        for (uint32_t i = 0; i < z.sums.n; i++) {
            const struct sum *s = &z.sums.at[i];
            if (s->taken < 0) continue;
            const struct product *p = &z.products.at[s->terms[s->taken] - 1];
            mg_map_set(sums, s->node,
                       mg_contraction_pack((struct mg_contraction){.product = p->node,
                                                                   .second = s->taken == 1,
                                                                   .negative = s->negative[s->taken],
                                                                   .apart = p->block != s->block}));
        }
    }
    mg_map_release(&z.by_reg);
    mg_map_release(&z.defs);
    mg_vec_release(&z.products);
    mg_vec_release(&z.sums);
}

static bool has_product(const struct mg_module *m, const struct mg_func *f)
{
    for (mg_id id = f->first_node; id; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        const struct mg_form *form = mg_node_form(m, n);
        if (mg_contract_is_quotient(form, n) || mg_contract_is_product(form, n)) return true;
    }
    return false;
}

void mg_contract_keep(struct mg_module *m)
{
    m->fused = mg_xcalloc(1, sizeof *m->fused);
    for (mg_id f = 1; f < m->funcs.n; f++) {
        if (!has_product(m, &m->funcs.at[f])) continue;
        struct mg_cfg *cfg = mg_cfg_new(m, f);
        if (cfg) mg_contract_find(m, cfg, m->fused);
        mg_cfg_free(cfg);
    }
}
