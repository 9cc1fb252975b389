/* memory: addresses in shared memory that follow from the thread's number in its row of the CTA alone, up to something
 * that is the same for all of a warp: what 32 lanes ask for is known when the twin is made, if it is so for every warp
 * of a row. Lanes are numbered as their threads are wherever a warp lies in one row: rows of a multiple of 32 threads,
 * or one row.
 *
 * Values are followed through their definitions: constants, %tid.x, %laneid, sums, products, shifts and masks of these,
 * beside parameters, numbers of CTAs and whatever else has one value in a row. */
#include <string.h>

#include "analysis/ssa.h"
#include "tool/memory/memory.h"

enum { THREADS = 1024, LANES = 32 };
enum state { UNSEEN, BAD, GOOD };

/* of each thread of a row, modulo 2^32, less something that is the same in all of them (`plus`). flat: the same c in
 * all of them */
struct mg_memory_value {
    enum state state;
    bool plus, flat;
    uint32_t c, *f;
};

struct walk {
    struct mg_patch *p;
    struct mg_arena *a;
    const struct mg_ssa *ssa;
    const struct mg_module *m;
    struct mg_memory_value *known;
    unsigned depth;
};

static const struct mg_memory_value *value_of(struct walk *w, uint32_t value);

static const struct mg_memory_value bad = {.state = BAD}, unknown = {.state = GOOD, .plus = true, .flat = true};

static struct mg_memory_value flat(uint64_t c)
{
    return (struct mg_memory_value){.state = GOOD, .flat = true, .c = (uint32_t)c};
}

static uint32_t at(const struct mg_memory_value *v, uint32_t t)
{
    return v->flat ? v->c : v->f[t];
}

static struct mg_memory_value sreg_of(struct walk *w, const struct mg_opnd *o)
{
    uint32_t mask = UINT32_MAX;
    switch (o->id) {
    case MG_SREG_tid:
        if (o->sub != 1) return unknown; /* one row */
        break;
    case MG_SREG_laneid:
        mask = LANES - 1;
        break;
    case MG_SREG_ntid:
    case MG_SREG_ctaid:
    case MG_SREG_nctaid:
        return unknown;
    default:
        return bad;
    }
    struct mg_memory_value v = {.state = GOOD, .f = mg_arena_array(w->a, uint32_t, THREADS)};
    for (uint32_t t = 0; t < THREADS; t++) v.f[t] = t & mask;
    return v;
}

static struct mg_memory_value operand_of(struct walk *w, mg_id node, const struct mg_opnd *o)
{
    switch (o->kind) {
    case MG_OPND_imm:
        return flat(o->val);
    case MG_OPND_var:
        return unknown; /* an address */
    case MG_OPND_sreg:
        return sreg_of(w, o);
    case MG_OPND_reg:
        return o->sub ? bad : *value_of(w, mg_ssa_read(w->ssa, node, o->id));
    default:
        return bad;
    }
}

enum how { ADD, SUB, MUL, AND, OR, XOR, SHL, SHR, SAR };

static uint32_t apply(enum how how, uint32_t a, uint32_t b)
{
    switch (how) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case SHL:
        return b < 32 ? a << b : 0;
    case SHR:
        return b < 32 ? a >> b : 0;
    default:
        return (uint32_t)((int32_t)a >> MG_MIN(b, 31u));
    }
}

static struct mg_memory_value combine_values(struct walk *w, enum how how, const struct mg_memory_value *a,
                                             const struct mg_memory_value *b)
{
    if (a->state != GOOD || b->state != GOOD) return bad;
    struct mg_memory_value v = {.state = GOOD, .plus = a->plus || b->plus, .flat = a->flat && b->flat};
    if (v.plus && v.flat) return unknown; /* whatever it is */
    if (how == MUL && v.plus && !((!b->plus && b->flat) || (!a->plus && a->flat))) return bad;
    if (how == SHL && (b->plus || (v.plus && !b->flat))) return bad;
    if (how > MUL && how != SHL && v.plus) return bad;
    if (v.flat) return flat(apply(how, a->c, b->c));
    v.f = mg_arena_array(w->a, uint32_t, THREADS);
    for (uint32_t t = 0; t < THREADS; t++) v.f[t] = apply(how, at(a, t), at(b, t));
    return v;
}

static bool is_whole(const struct mg_form *f, enum mg_type t)
{
    unsigned bits = mg_type_bits(t);
    return (bits == 32 || bits == 64) && mg_type_kind(t) != MG_TK_FLOAT && !f->vec && !mg_form_has(f, MG_MOD_sat) &&
           !mg_form_has(f, MG_MOD_cc) && !mg_form_has(f, MG_MOD_hi);
}

static struct mg_memory_value made_by(struct walk *w, mg_id node)
{
    const struct mg_node *n = &w->m->nodes.at[node];
    const struct mg_form *f = mg_node_form(w->m, n);
    const struct mg_opnd *o = &w->m->opnds.at[n->opnd];
    enum mg_type t = f->n_types ? (enum mg_type)f->types[f->n_types - 1] : MG_TYPE_none;
    if (n->guard || !f->n_types || !is_whole(f, t) || !is_whole(f, (enum mg_type)f->types[0])) return bad;
    if (f->op == MG_OP_ld)
        return f->space == MG_SPACE_param && n->n_opnds == 2 && o[1].kind == MG_OPND_addr && o[1].sub == MG_OPND_var &&
                       w->m->vars.at[o[1].id].is_param
                   ? unknown
                   : bad;
    struct mg_memory_value a = n->n_opnds > 1 ? operand_of(w, node, &o[1]) : bad,
                           b = n->n_opnds > 2 ? operand_of(w, node, &o[2]) : flat(0), product;
    bool wide = mg_type_bits(t) == 64 && !mg_form_has(f, MG_MOD_wide);
    switch (f->op) {
    case MG_OP_mov:
    case MG_OP_cvt:
        return n->n_opnds == 2 ? a : bad; /* their lower halves are equal */
    case MG_OP_add:
        return combine_values(w, ADD, &a, &b);
    case MG_OP_sub:
        return combine_values(w, SUB, &a, &b);
    case MG_OP_mul:
        return combine_values(w, MUL, &a, &b);
    case MG_OP_mad: {
        struct mg_memory_value c = operand_of(w, node, &o[3]);
        product = combine_values(w, MUL, &a, &b);
        return combine_values(w, ADD, &product, &c);
    }
    case MG_OP_and:
        return combine_values(w, AND, &a, &b);
    case MG_OP_or:
        return combine_values(w, OR, &a, &b);
    case MG_OP_xor:
        return combine_values(w, XOR, &a, &b);
    case MG_OP_shl:
        return combine_values(w, SHL, &a, &b);
    case MG_OP_shr:
        return wide ? bad : combine_values(w, t == MG_TYPE_s32 ? SAR : SHR, &a, &b);
    case MG_OP_not: {
        const struct mg_memory_value all = flat(UINT32_MAX);
        return combine_values(w, XOR, &a, &all);
    }
    case MG_OP_neg: {
        const struct mg_memory_value zero = flat(0);
        return combine_values(w, SUB, &zero, &a);
    }
    default:
        return bad;
    }
}

static const struct mg_memory_value *value_of(struct walk *w, uint32_t value)
{
    struct mg_memory_value *k = &w->known[value];
    if (!value || w->depth > 200) return &bad;
    if (k->state != UNSEEN) return k;
    const struct mg_ssa_value *v = &w->ssa->values[value];
    k->state = BAD;
    if (v->kind != MG_SSA_def) return k;
    w->depth++;
    *k = made_by(w, v->node);
    w->depth--;
    return k;
}

/* ---- what a warp asks for ---------------------------------------------------------------------------------------- */

/* Passes beyond the first of each group of lanes. */
static uint32_t conflicts_of(const uint32_t *a, uint32_t bytes)
{
    uint32_t groups = bytes > 8 ? 4 : bytes > 4 ? 2 : 1, n = LANES / groups, total = 0;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t most = 0;
        for (uint32_t i = g * n; i < (g + 1) * n; i++) {
            uint32_t words = 0;
            for (uint32_t k = g * n; k < (g + 1) * n; k++) {
                uint32_t d = (a[k] - a[i]) / bytes;
                bool before = false;
                if ((int32_t)(a[k] - a[i]) < 0) d = 0u - (a[i] - a[k]) / bytes;
                if (d % n) continue;
                for (uint32_t j = g * n; j < k && !before; j++) before = a[j] == a[k];
                words += !before;
            }
            most = MG_MAX(most, words);
        }
        total += most - 1;
    }
    return total;
}

static uint32_t pattern_of(const uint32_t *a, uint32_t bytes)
{
    int32_t step = (int32_t)(a[1] - a[0]), size = step < 0 ? -step : step;
    for (uint32_t l = 2; l < LANES; l++)
        if ((int32_t)(a[l] - a[l - 1]) != step) return MG_MC_IRREGULAR;
    return !step                    ? MG_MC_SAME
           : step == (int32_t)bytes ? MG_MC_UNIT
           : size <= 32             ? MG_MC_STRIDE_32
           : size <= 128            ? MG_MC_STRIDE_128
                                    : MG_MC_STRIDE_MORE;
}

/* Lanes ask for one bank when and only when their numbers differ by a multiple of this; 0: no such number. */
static uint32_t period_of(const uint32_t *a, uint32_t bytes)
{
    if (bytes != 4) return 0;
    for (uint32_t p = 1; p < LANES; p *= 2) {
        bool all = true;
        for (uint32_t i = 0; i < LANES && all; i++)
            for (uint32_t k = 0; k < i && all; k++) all = ((a[i] - a[k]) % 128 == 0) == ((i - k) % p == 0);
        if (all) return p;
    }
    return 0;
}

static bool measure_pattern(const uint32_t *a, uint32_t bytes, struct mg_memory_fixed *x)
{
    *x = (struct mg_memory_fixed){.ascends = 1};
    for (uint32_t l = 1; l < LANES; l++) {
        int32_t step = (int32_t)(a[l] - a[l - 1]);
        if (step % (int32_t)bytes || step > 1 << 16 || step < -(1 << 16)) return false;
        if (step < (int32_t)bytes) x->ascends = 0;
        if (step != (int32_t)bytes) x->breaks |= 1u << l;
    }
    x->pattern = pattern_of(a, bytes);
    x->conflicts = conflicts_of(a, bytes);
    x->period = x->conflicts ? period_of(a, bytes) : 0;
    return true;
}

bool mg_memory_fix(struct mg_patch *p, struct mg_memory_value **known, uint32_t value, uint32_t bytes,
                   struct mg_memory_fixed *x)
{
    const struct mg_ssa *ssa = mg_patch_ssa(p, 0);
    if (bytes < 4 || bytes > 16 || bytes & (bytes - 1)) return false;
    if (!*known) *known = mg_arena_array(mg_patch_scratch(p), struct mg_memory_value, ssa->n_values);
    struct walk w = {.p = p, .a = mg_patch_scratch(p), .ssa = ssa, .m = ssa->c->m, .known = *known};
    const struct mg_memory_value *v = value_of(&w, value);
    if (v->state != GOOD || v->flat) return false;
    if (!measure_pattern(v->f, bytes, x)) return false;
    for (uint32_t t = LANES; t < THREADS; t += LANES) {
        struct mg_memory_fixed y;
        uint32_t l = 1;
        while (l < LANES && v->f[t + l] - v->f[t] == v->f[l] - v->f[0]) l++;
        if (l < LANES && (!measure_pattern(v->f + t, bytes, &y) || memcmp(x, &y, sizeof y))) return false;
    }
    return true;
}
