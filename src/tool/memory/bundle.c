/* memory: accesses to shared memory by the same lanes at once whose addresses are apart by what is the same in all of
 * them, or is likely to be: s[i], s[i + stride], t[i]. They ask for the same patterns and passes, so that one is looked
 * at for all, once it is known that all lanes' addresses are as far apart (one match, or none where that is a
 * constant).
 *
 * An address is taken apart into multiples of values that are likely to be the same in all lanes, a constant, and what
 * is left, its core. All of that in 32 bits, which is all there is of an address in shared memory. */
#include "analysis/loop.h"
#include "analysis/ssa.h"
#include "tool/memory/code.h"

enum { MOST_DEPTH = 16 };

struct walk {
    const struct mg_ssa *s;
    const struct mg_module *m;
    const struct mg_affine *of;
    struct mg_memory_form *f;
};

static bool add_term(struct mg_memory_form *f, uint32_t value, uint32_t times)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->terms[i].value == value) {
            f->terms[i].times += times;
            return true;
        }
    if (f->n == MG_COUNT_OF(f->terms)) return false;
    f->terms[f->n++] = (struct mg_memory_term){value, times};
    return true;
}

/* Is the operand the same in all lanes? Then it has been added, so many times. */
static bool is_apart(struct walk *w, mg_id node, const struct mg_opnd *o, uint32_t times)
{
    if (o->kind == MG_OPND_imm || o->kind == MG_OPND_var) return true;
    if (o->kind != MG_OPND_reg || o->sub || o->val) return false;
    uint32_t v = mg_ssa_read(w->s, node, o->id);
    return v && mg_affine_is_uniform(w->of[v]) && add_term(w->f, v, times);
}

static bool is_number(const struct mg_module *m, const struct mg_node *n, const struct mg_form *f)
{
    for (uint32_t i = 0; i < f->n_types; i++) {
        unsigned bits = mg_type_bits((enum mg_type)f->types[i]);
        if ((bits != 32 && bits != 64) || mg_type_kind((enum mg_type)f->types[i]) == MG_TK_FLOAT) return false;
    }
    return f->n_types && !n->guard && !f->vec && !mg_form_has(f, MG_MOD_sat) && !mg_form_has(f, MG_MOD_cc) &&
           !mg_form_has(f, MG_MOD_hi) && m->opnds.at[n->opnd].kind == MG_OPND_reg;
}

/* One step back: which operand the core is in, having added what is beside it; 0: it is this. */
static uint32_t step_back(struct walk *w, mg_id node, uint32_t *scale)
{
    const struct mg_node *n = &w->m->nodes.at[node];
    const struct mg_form *f = mg_node_form(w->m, n);
    const struct mg_opnd *o = &w->m->opnds.at[n->opnd];
    if (!is_number(w->m, n, f)) return 0;
    switch (f->op) {
    case MG_OP_mov:
    case MG_OP_cvt:
        return n->n_opnds == 2 ? 1 : 0;
    case MG_OP_add:
        return is_apart(w, node, &o[2], *scale) ? 1 : is_apart(w, node, &o[1], *scale) ? 2 : 0;
    case MG_OP_sub:
        return is_apart(w, node, &o[2], 0 - *scale) ? 1 : 0;
    case MG_OP_shl:
        if (o[2].kind != MG_OPND_imm || o[2].val > 31) return 0;
        *scale <<= o[2].val;
        return 1;
    case MG_OP_mul:
    case MG_OP_mad:
        if (o[2].kind != MG_OPND_imm || (f->op == MG_OP_mad && !is_apart(w, node, &o[3], *scale))) return 0;
        *scale *= (uint32_t)o[2].val;
        return 1;
    default:
        return 0;
    }
}

struct mg_memory_form mg_memory_form_of(const struct mg_ssa *s, const struct mg_affine *strides, uint32_t value)
{
    struct mg_memory_form f = {.core = value, .scale = 1};
    struct walk w = {s, s->c->m, strides, &f};
    for (unsigned depth = 0; depth < MOST_DEPTH && s->values[f.core].kind == MG_SSA_def; depth++) {
        const struct mg_memory_form was = f;
        mg_id node = s->values[f.core].node;
        uint32_t k = step_back(&w, node, &f.scale);
        const struct mg_opnd *o = &w.m->opnds.at[w.m->nodes.at[node].opnd + k];
        uint32_t from = k && o->kind == MG_OPND_reg && !o->sub && !o->val ? mg_ssa_read(s, node, o->id) : 0;
        if (!from) return was;
        f.core = from;
    }
    return f;
}

/* What of the terms of `a` there is not in `b`. */
static struct mg_memory_form less(const struct mg_memory_form *a, const struct mg_memory_form *b)
{
    struct mg_memory_form d = {0};
    for (uint32_t i = 0; i < a->n; i++) add_term(&d, a->terms[i].value, a->terms[i].times);
    for (uint32_t i = 0; i < b->n; i++) add_term(&d, b->terms[i].value, 0 - b->terms[i].times);
    struct mg_memory_form left = {0};
    for (uint32_t i = 0; i < d.n; i++)
        if (d.terms[i].times) left.terms[left.n++] = d.terms[i];
    return left;
}

/* Is each term of the one so many times that of the other? */
static bool is_multiple(const struct mg_memory_form *d, const struct mg_memory_form *of)
{
    if (!of->n || d->n != of->n || d->terms[0].times % of->terms[0].times) return false;
    uint32_t by = d->terms[0].times / of->terms[0].times;
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t k = 0;
        while (k < of->n && of->terms[k].value != d->terms[i].value) k++;
        if (k == of->n || of->terms[k].times * by != d->terms[i].times) return false;
    }
    return true;
}

uint32_t mg_memory_to_ask(const struct mg_memory_form *forms, uint32_t n, uint32_t *which)
{
    struct mg_memory_form d[MG_MEMORY_BUNDLED];
    uint32_t n_asked = 0;
    for (uint32_t i = 0; i < n; i++) d[i] = less(&forms[i], &forms[0]);
    for (uint32_t i = 0; i < n; i++) {
        bool told = !d[i].n;
        for (uint32_t k = 0; k < n && !told; k++) /* by one that it is a multiple of, itself not told by it */
            told = k != i && is_multiple(&d[i], &d[k]) && (k < i || !is_multiple(&d[k], &d[i]));
        if (!told) which[n_asked++] = i;
    }
    return n_asked;
}

void mg_memory_ask_apart(struct mg_memory_request *q, const mg_id *addr, uint32_t n, mg_id slow)
{
    mg_id all = 0;
    for (uint32_t i = 1; i < n; i++) {
        mg_id d = reg32(q), a = reg32(q), b = reg32(q), any = reg32(q), p = pred(q);
        EMIT("cvt.u32.u64", a, addr[i]);
        EMIT("cvt.u32.u64", b, addr[0]);
        EMIT("sub.u32", d, a, b);
        EMIT("match.all.sync.b32", pair_of(q, MG_OPND_pair, any, p), d, mask_of(q));
        if (all) EMIT("and.pred", p, p, all);
        all = p;
    }
    if (all) jump(q, all, true, slow);
}

/* One after the other, by the same code. */
void mg_memory_count_each(struct mg_memory_request *qs, uint32_t n)
{
    struct mg_memory_request one = qs[0], *q = &one;
    if (q->called) {
        for (uint32_t i = 0; i < n; i++) mg_memory_count_as_any(&qs[i], true);
        return;
    }
    mg_id i = reg32(q), p = pred(q), apart = reg64(q), again = mg_code_label(q->at);
    EMIT("mov.u32", i, 0);
    mg_code_rolled(q->at);
    mg_code_place(q->at, again);
    q->addr = reg64(q), q->place = reg64(q);
    EMIT("mov.b64", q->addr, qs[0].addr);
    EMIT("mov.u64", apart, 0);
    for (uint32_t k = 1; k < n; k++) {
        EMIT("setp.eq.u32", p, i, I(k));
        EMIT("selp.b64", q->addr, qs[k].addr, q->addr, p);
        EMIT("selp.b64", apart, I(8 * ((int64_t)qs[k].cell - qs[0].cell)), apart, p);
    }
    EMIT("add.s64", q->place, mg_strip_place(q->at, q->strip), apart);
    mg_memory_count_here(q, NULL);
    EMIT("add.u32", i, i, 1);
    EMIT("setp.lt.u32", p, i, I(n));
    jump(q, p, false, again);
}
