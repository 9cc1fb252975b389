#include "analysis/poly.h"

#include <string.h>

#include "base/hash.h"

#define MOST_DEPTH 100u

static struct mg_poly of_value(struct mg_polys *p, uint32_t v, unsigned depth);

/* ---- arithmetic -------------------------------------------------------------------------------------- */

static struct mg_poly constant(int64_t k)
{
    struct mg_poly r = {0};
    if (k) r.t[r.n++] = (struct mg_poly_term){.k = k};
    return r;
}

static struct mg_poly factor(uint32_t f)
{
    return (struct mg_poly){1, {{1, 1, {f}}}};
}
static struct mg_poly any(void)
{
    return factor(MG_POLY_ANY);
}
static bool has(const struct mg_poly *a, uint32_t f);
static bool is_any(const struct mg_poly *a)
{
    return has(a, MG_POLY_ANY);
}

static int compare(const struct mg_poly_term *a, const struct mg_poly_term *b)
{
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    return memcmp(a->f, b->f, a->n * sizeof *a->f);
}

static bool add_term(struct mg_poly *r, struct mg_poly_term t)
{
    uint32_t i = 0;
    while (i < r->n && compare(&r->t[i], &t) < 0) i++;
    if (i < r->n && !compare(&r->t[i], &t)) {
        r->t[i].k += t.k;
        if (!r->t[i].k) memmove(&r->t[i], &r->t[i + 1], (--r->n - i) * sizeof t);
        return true;
    }
    if (r->n == MG_POLY_TERMS) return false;
    memmove(&r->t[i + 1], &r->t[i], (r->n++ - i) * sizeof t);
    r->t[i] = t;
    return true;
}

/* a + k * b */
static struct mg_poly add_scaled(const struct mg_poly *a, const struct mg_poly *b, int64_t k)
{
    struct mg_poly r = *a;
    for (uint32_t i = 0; i < b->n; i++) {
        struct mg_poly_term t = b->t[i];
        t.k *= k;
        if (!add_term(&r, t)) return any();
    }
    return r;
}

static bool multiply_terms(const struct mg_poly_term *a, const struct mg_poly_term *b, struct mg_poly_term *out)
{
    uint32_t i = 0, j = 0;
    *out = (struct mg_poly_term){.k = (int64_t)((uint64_t)a->k * (uint64_t)b->k)};
    if (a->n + b->n > MG_POLY_FACTORS) return false;
    while (i < a->n || j < b->n)
        out->f[out->n++] = j == b->n || (i < a->n && a->f[i] <= b->f[j]) ? a->f[i++] : b->f[j++];
    return true;
}

static struct mg_poly multiply(const struct mg_poly *a, const struct mg_poly *b)
{
    struct mg_poly r = {0};
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++) {
            struct mg_poly_term t;
            if (!multiply_terms(&a->t[i], &b->t[j], &t) || !add_term(&r, t)) return any();
        }
    return r;
}

static bool is_constant(const struct mg_poly *a, int64_t *k)
{
    *k = a->n ? a->t[0].k : 0;
    return !a->n || (a->n == 1 && !a->t[0].n);
}

static bool has(const struct mg_poly *a, uint32_t f)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < a->t[i].n; j++)
            if (a->t[i].f[j] == f || (!(f & 0xffffff) && MG_POLY_KIND(a->t[i].f[j]) == f)) return true;
    return false;
}

/* The same in all threads and rounds. */
static bool is_same(const struct mg_poly *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < a->t[i].n; j++) {
            uint32_t kind = MG_POLY_KIND(a->t[i].f[j]);
            if (kind == MG_POLY_TID || kind == MG_POLY_CTAID || kind == MG_POLY_ROUND || kind == MG_POLY_PHI ||
                kind == MG_POLY_ANY)
                return false;
        }
    return true;
}

/* ---- values ------------------------------------------------------------------------------------------- */

static struct mg_poly of_place(const struct mg_opnd *o)
{
    uint32_t axis = (uint32_t)o->sub - 1;
    if (o->id == MG_SREG_WARP_SZ) return constant(32);
    if (axis > 2) return any();
    switch (o->id) {
    case MG_SREG_tid:
        return factor(MG_POLY_TID + axis);
    case MG_SREG_ctaid:
        return factor(MG_POLY_CTAID + axis);
    case MG_SREG_ntid:
        return factor(MG_POLY_NTID + axis);
    case MG_SREG_nctaid:
        return factor(MG_POLY_NCTAID + axis);
    default:
        return any();
    }
}

static struct mg_poly of_operand(struct mg_polys *p, mg_id node, uint32_t i, unsigned depth)
{
    const struct mg_module *m = p->c->m;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *f = mg_node_form(m, n);
    if (i >= n->n_opnds) return any();
    const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
    switch (o->kind) {
    case MG_OPND_reg:
        return o->sub || o->val ? any() : of_value(p, mg_ssa_read(p->ssa, node, o->id), depth);
    case MG_OPND_imm:
        return constant(f->n_types && mg_type_bits((enum mg_type)f->types[0]) == 32 ? (int32_t)(uint32_t)o->val
                                                                                    : (int64_t)o->val);
    case MG_OPND_sreg:
        return of_place(o);
    case MG_OPND_var: {
        struct mg_poly v = factor(MG_POLY_VAR + (o->id & 0xffffff)), k = constant((int64_t)o->val);
        return add_scaled(&v, &k, 1);
    }
    default:
        return any();
    }
}

static struct mg_poly of_parameter(struct mg_polys *p, mg_id node)
{
    const struct mg_module *m = p->c->m;
    const struct mg_opnd *o = &m->opnds.at[m->nodes.at[node].opnd + 1];
    const struct mg_func *k = &m->funcs.at[p->c->func];
    if (k->kind != MG_FUNC_entry || o->kind != MG_OPND_addr || o->sub != MG_OPND_var || o->id < k->first_param ||
        o->id >= k->first_param + k->n_params)
        return any();
    return factor(MG_POLY_ARG +
                  (uint32_t)((mg_func_param_offset(k, m->vars.at, o->id - k->first_param) + o->val) & 0xffffff));
}

/* Bits that a has free below its least step hold b. */
static bool apart(const struct mg_poly *a, const struct mg_poly *b)
{
    int64_t k, bits = 0;
    if (!is_constant(b, &k) || k < 0) return false;
    for (uint32_t i = 0; i < a->n; i++) bits |= a->t[i].k;
    return a->n && k < (bits & -bits);
}

static struct mg_poly of_instruction(struct mg_polys *p, uint32_t v, mg_id node, unsigned depth)
{
    const struct mg_module *m = p->c->m;
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[node]);
    enum mg_type_kind kind = f->n_types ? mg_type_kind((enum mg_type)f->types[0]) : MG_TK_UINT;
    int64_t k;
    if (kind == MG_TK_FLOAT || kind == MG_TK_PACKED) return any();
    if (f->op == MG_OP_ld) return f->space == MG_SPACE_param && !f->vec ? of_parameter(p, node) : any();
    bool hi = mg_form_has(f, MG_MOD_hi);
    struct mg_poly a = of_operand(p, node, 1, depth), b = {0};
    switch (f->op) {
    case MG_OP_mov:
    case MG_OP_cvta:
        return a;
    case MG_OP_cvt:
        return f->n_types > 1 && mg_type_kind((enum mg_type)f->types[1]) == MG_TK_FLOAT ? any() : a;
    case MG_OP_neg:
        return add_scaled(&b, &a, -1);
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_mad:
    case MG_OP_shl:
    case MG_OP_or:
        break;
    case MG_OP_shr:
    case MG_OP_div:
    case MG_OP_rem:
    case MG_OP_and:
    case MG_OP_min:
    case MG_OP_max:
        b = of_operand(p, node, 2, depth);
        return is_same(&a) && is_same(&b) ? factor(MG_POLY_SAME + (v & 0xffffff)) : any();
    default:
        return any();
    }
    b = of_operand(p, node, 2, depth);
    if (is_any(&a) || is_any(&b) || hi) return any();
    switch (f->op) {
    case MG_OP_add:
        return add_scaled(&a, &b, 1);
    case MG_OP_sub:
        return add_scaled(&a, &b, -1);
    case MG_OP_mul:
        return multiply(&a, &b);
    case MG_OP_or:
        return apart(&a, &b) ? add_scaled(&a, &b, 1) : apart(&b, &a) ? add_scaled(&b, &a, 1) : any();
    case MG_OP_shl:
        if (!is_constant(&b, &k) || k < 0 || k > 40) return any();
        b = constant((int64_t)1 << k);
        return multiply(&a, &b);
    default: { /* mad */
        struct mg_poly c = of_operand(p, node, 3, depth), ab = multiply(&a, &b);
        return add_scaled(&ab, &c, 1);
    }
    }
}

/* At a loop's header: PHI, with its start and step asked for later; elsewhere what all ways agree on. */
static struct mg_poly of_phi(struct mg_polys *p, uint32_t v, unsigned depth)
{
    const struct mg_ssa_value *x = &p->ssa->values[v];
    uint32_t loop = p->l->loop_of[x->block];
    if (loop != MG_NO_LOOP && p->l->loops[loop].header == x->block && p->l->loops[loop].n_headers == 1)
        return factor(MG_POLY_PHI + (v & 0xffffff));
    struct mg_poly same = {0};
    bool had = false;
    for (uint32_t i = 0; i < x->n_args; i++) {
        uint32_t arg = p->ssa->args[x->args_at + i];
        if (!arg) continue;
        struct mg_poly a = of_value(p, arg, depth);
        if (had && (a.n != same.n || memcmp(a.t, same.t, a.n * sizeof *a.t))) return any();
        same = a;
        had = true;
    }
    return had ? same : any();
}

static struct mg_poly of_value(struct mg_polys *p, uint32_t v, unsigned depth)
{
    const struct mg_ssa_value *s = &p->ssa->values[v];
    if (!v || depth > MOST_DEPTH) return any();
    if (p->memo[v]) return *p->memo[v];
    struct mg_poly r = any();
    p->memo[v] = mg_arena_new(&p->arena, struct mg_poly); /* asked for again inside: ANY */
    *p->memo[v] = r;
    if (s->kind == MG_SSA_phi)
        r = of_phi(p, v, depth + 1);
    else if (s->kind == MG_SSA_def && !s->prev)
        r = of_instruction(p, v, s->node, depth + 1);
    *p->memo[v] = r;
    return r;
}

static struct mg_poly expand(struct mg_polys *p, const struct mg_poly *a, unsigned depth);

/* Where the phi begins and what each round adds to it. */
static const struct mg_poly_step *step_of(struct mg_polys *p, uint32_t v, unsigned depth)
{
    const struct mg_ssa_value *x = &p->ssa->values[v];
    const struct mg_block *k = &p->c->blocks[x->block];
    uint32_t loop = p->l->loop_of[x->block];
    if (!p->steps[v]) p->steps[v] = mg_arena_new(&p->arena, struct mg_poly_step);
    struct mg_poly_step *s = p->steps[v];
    if (s->asked) return s;
    s->asked = true;
    bool had[2] = {false, false};
    struct mg_poly self = factor(MG_POLY_PHI + (v & 0xffffff)), of[2] = {{0}, {0}};
    for (uint32_t i = 0; i < x->n_args; i++) {
        uint32_t arg = p->ssa->args[x->args_at + i];
        if (!arg) continue;
        bool inside = mg_loops_contains(p->l, loop, p->c->preds[k->pred_at + i]);
        struct mg_poly a = of_value(p, arg, 0);
        if (inside) a = add_scaled(&a, &self, -1);
        if (had[inside] && (a.n != of[inside].n || memcmp(a.t, of[inside].t, a.n * sizeof *a.t))) return s;
        of[inside] = a;
        had[inside] = true;
    }
    if (!had[0] || !had[1]) return s;
    s->start = expand(p, &of[0], depth);
    s->step = expand(p, &of[1], depth);
    s->known = is_same(&s->step) && !is_any(&s->start) && !has(&s->start, MG_POLY_PHI);
    return s;
}

/* Phis give way to start + round * step. */
static struct mg_poly expand(struct mg_polys *p, const struct mg_poly *a, unsigned depth)
{
    struct mg_poly r = {0};
    if (!has(a, MG_POLY_PHI)) return *a;
    if (depth > 8) return any();
    for (uint32_t i = 0; i < a->n; i++) {
        struct mg_poly product = constant(a->t[i].k);
        for (uint32_t j = 0; j < a->t[i].n; j++) {
            uint32_t f = a->t[i].f[j];
            struct mg_poly x = factor(f);
            if (MG_POLY_KIND(f) == MG_POLY_PHI) {
                const struct mg_poly_step *s = step_of(p, f & 0xffffff, depth + 1);
                if (!s->known) return any();
                struct mg_poly round = factor(MG_POLY_ROUND + p->l->loop_of[p->ssa->values[f & 0xffffff].block]);
                round = multiply(&round, &s->step);
                x = add_scaled(&s->start, &round, 1);
            }
            product = multiply(&product, &x);
        }
        r = add_scaled(&r, &product, 1);
    }
    return r;
}

void mg_polys_init(struct mg_polys *p, const struct mg_cfg *c, const struct mg_ssa *ssa, const struct mg_loops *l)
{
    *p = (struct mg_polys){.c = c, .ssa = ssa, .l = l};
    p->memo = mg_arena_array(&p->arena, struct mg_poly *, ssa->n_values + 1);
    p->steps = mg_arena_array(&p->arena, struct mg_poly_step *, ssa->n_values + 1);
}

void mg_polys_release(struct mg_polys *p)
{
    mg_arena_release(&p->arena);
}

struct mg_poly mg_poly_address(struct mg_polys *p, mg_id node, const struct mg_opnd *o)
{
    struct mg_poly base = any(), off = constant((int64_t)o->val);
    if (p->ssa->n_values > 0xffffff || o->n & 7) return base;
    if (o->sub == MG_OPND_reg)
        base = of_value(p, mg_ssa_read(p->ssa, node, o->id), 0);
    else if (o->sub == MG_OPND_var)
        base = factor(MG_POLY_VAR + (o->id & 0xffffff));
    base = expand(p, &base, 0);
    return add_scaled(&base, &off, 1);
}

/* ---- whose element --------------------------------------------------------------------------------------- */

struct shares { /* what multiplies each of a thread's coordinates; k 0: nothing does */
    struct mg_poly_term of[2][3];
};

/* Takes the coordinate out of the term; false: there are two of them, or one that is not known. */
static bool share_of(const struct mg_poly_term *t, int *which, uint32_t *axis, bool *round, struct mg_poly_term *rest)
{
    *which = -1;
    *round = false;
    *rest = (struct mg_poly_term){.k = t->k};
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t kind = MG_POLY_KIND(t->f[i]);
        if (kind == MG_POLY_ANY || kind == MG_POLY_PHI) return false;
        if (kind == MG_POLY_TID || kind == MG_POLY_CTAID) {
            if (*which >= 0 || *round) return false;
            *which = kind == MG_POLY_CTAID;
            *axis = t->f[i] & 0xffffff;
        } else if (kind == MG_POLY_ROUND) {
            if (*which >= 0 || *round) return false;
            *round = true;
        } else
            rest->f[rest->n++] = t->f[i];
    }
    return true;
}

/* Can steps of s from the elements that are c apart come to a neighbour's? Lengths that the program names
 * are taken to be as long as what lies in them. */
static bool meets(const struct mg_poly_term *s, const struct mg_poly_term *c)
{
    int64_t x = s->k < 0 ? -s->k : s->k, y = c->k < 0 ? -c->k : c->k;
    if (s->n != c->n) return false;
    if (s->n) return !memcmp(s->f, c->f, s->n * sizeof *s->f) && x % y == 0;
    return x >= y && x < 32 * y;
}

static bool rounds_meet(const struct mg_poly *p, const struct shares *h)
{
    for (uint32_t i = 0; i < p->n; i++) {
        int which;
        uint32_t axis;
        bool round;
        struct mg_poly_term rest;
        if (!share_of(&p->t[i], &which, &axis, &round, &rest) || !round) continue;
        for (int w = 0; w < 2; w++)
            for (uint32_t a = 0; a < 3; a++)
                if (h->of[w][a].k && meets(&rest, &h->of[w][a])) return true;
    }
    return false;
}

/* Threads and CTAs along each axis that matters have elements of their own. */
static bool covers(const struct shares *h, unsigned axes, uint64_t *stride)
{
    *stride = UINT64_MAX;
    for (uint32_t a = 0; a < 3; a++) {
        const struct mg_poly_term *t = &h->of[0][a], *c = &h->of[1][a];
        if (!(axes >> a & 1)) continue;
        if (!t->k || !c->k) return false;
        if (c->n == t->n && (c->k < 0 ? -c->k : c->k) < 2 * (t->k < 0 ? -t->k : t->k)) return false; /* CTAs overlap */
        if (!t->n) *stride = MG_MIN(*stride, (uint64_t)(t->k < 0 ? -t->k : t->k));
    }
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t b = a + 1; b < 3; b++)
            if (h->of[0][a].k && h->of[0][b].k && !compare(&h->of[0][a], &h->of[0][b]) &&
                h->of[0][a].k == h->of[0][b].k)
                return false; /* diagonals */
    return true;
}

struct mg_poly_owner mg_poly_owner(const struct mg_poly *p, unsigned axes)
{
    struct mg_poly_owner o = {.key = 1};
    struct shares h = {{{{0}}}};
    for (uint32_t i = 0; i < p->n; i++) {
        int which;
        uint32_t axis;
        bool round;
        struct mg_poly_term rest;
        if (!p->t[i].n) {
            o.at = p->t[i].k;
            continue;
        }
        if (!share_of(&p->t[i], &which, &axis, &round, &rest)) return o;
        if (which >= 0) {
            if (h.of[which][axis].k) return o; /* two shares of one coordinate */
            h.of[which][axis] = rest;
        }
        if (!round) o.key = mg_hash64(&p->t[i], sizeof p->t[i].k + (1 + p->t[i].n) * sizeof *p->t[i].f, o.key);
    }
    o.own = covers(&h, axes | 1, &o.stride) && !rounds_meet(p, &h);
    return o;
}
