/* A block's count is a sum of products: conditions on its way, and rounds of the loops around it. Blocks
 * that are entered equally often share one; others follow from the edges into them. In a loop that one
 * branch leaves, tested in every round, the number of rounds follows from the register it tests. */
#include "analysis/formula.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/equiv.h"
#include "analysis/sym.h"

enum { MOST_TERMS = 8, MOST_FACTORS = 12, MOST_TEXT = 400 };
struct term {
    int64_t times;
    uint32_t n;
    mg_sym factors[MOST_FACTORS];
};
struct count {
    bool known, working, asked;
    uint32_t n;
    struct term terms[MOST_TERMS];
};

struct maker {
    const struct mg_cfg *c;
    struct mg_dom *dom;
    struct mg_loops *l;
    struct mg_equiv *q;
    struct mg_syms y;
    struct count *counts; /* by block */
    mg_sym *rounds;       /* by loop; 0: not known */
    uint32_t *test;       /* by loop: block whose branch leaves it */
};

static const struct count nothing = {.known = true}, unknown;

/* ---- conditions ----------------------------------------------------------------------------------- */

/* Holds when the edge is taken; 0: not known. */
static mg_sym condition(struct maker *k, uint32_t block, uint32_t edge)
{
    const struct mg_block *b = &k->c->blocks[block];
    const struct mg_node *end = &k->c->m->nodes.at[b->last];
    unsigned op = mg_node_form(k->c->m, end)->op;
    if (!end->guard || (op != MG_OP_bra && op != MG_OP_ret && op != MG_OP_exit))
        return b->n_succs == 1 ? mg_sym_const(&k->y, 1) : 0;
    if (b->n_succs == 2 && k->c->edges[b->succ_at] == k->c->edges[b->succ_at + 1]) return 0;
    mg_sym p = mg_sym_of(&k->y, b->last, end->guard);
    bool not_p = end->flags & MG_NF_GUARD_NOT, taken = b->n_succs == 2 && edge == b->succ_at + 1;
    if (b->n_succs == 1 && op == MG_OP_bra) return 0;
    return taken != not_p ? p : mg_sym_not(&k->y, p);
}

/* The tested register, as start + step: value in the first round; false: it is none. */
static bool read_iv(struct maker *k, mg_sym a, uint32_t loop, struct mg_sym_iv *iv, mg_sym *first, int64_t *ahead)
{
    struct mg_syms *y = &k->y;
    struct mg_sym_node n = y->at.at[a];
    int64_t off = 0;
    *ahead = 0;
    if (n.op == MG_SYM_add && y->at.at[n.b].op == MG_SYM_const)
        off = y->at.at[n.b].val, n = y->at.at[n.a];
    else if ((n.op == MG_SYM_shr && y->at.at[n.b].op == MG_SYM_const && y->at.at[n.b].val == 1) ||
             (n.op == MG_SYM_mul && y->at.at[n.b].op == MG_SYM_const && y->at.at[n.b].val == 2)) {
        *ahead = 1;
        uint8_t how = n.op == MG_SYM_shr ? MG_STEP_SHR : MG_STEP_SHL;
        n = y->at.at[n.a];
        if (n.op != MG_SYM_iv || y->ivs[n.val].how != how) return false;
    }
    if (n.op != MG_SYM_iv) return false;
    *iv = y->ivs[n.val];
    if (iv->loop != loop || iv->how == MG_STEP_NONE || (iv->how != MG_STEP_ADD && off)) return false;
    *first = mg_sym_make(y, MG_SYM_add, iv->start, mg_sym_const(y, off), 0);
    return true;
}

static mg_sym at_least_0(struct mg_syms *y, mg_sym a)
{
    return mg_sym_make(y, MG_SYM_max, a, mg_sym_const(y, 0), 0);
}
static mg_sym plus(struct mg_syms *y, mg_sym a, int64_t n)
{
    return mg_sym_make(y, MG_SYM_add, a, mg_sym_const(y, n), 0);
}

/* How many rounds from the first on, one after the other, the condition holds in. *rest: it holds not in these
 * but in all behind them. */
static mg_sym holds_for(struct maker *k, mg_sym condition, uint32_t loop, bool *rest)
{
    struct mg_syms *y = &k->y;
    struct mg_sym_node n = y->at.at[condition];
    struct mg_sym_iv iv;
    mg_sym first;
    int64_t ahead;
    *rest = false;
    bool left = (n.op == MG_SYM_lt || n.op == MG_SYM_le || n.op == MG_SYM_ne) && !y->at.at[n.b].varies &&
                read_iv(k, n.a, loop, &iv, &first, &ahead);
    bool right = !left && (n.op == MG_SYM_lt || n.op == MG_SYM_le || n.op == MG_SYM_ne) && !y->at.at[n.a].varies &&
                 read_iv(k, n.b, loop, &iv, &first, &ahead);
    if (!left && !right) return 0;
    mg_sym bound = left ? n.b : n.a;
    bool below = left; /* the register stays below the bound */
    if (n.op == MG_SYM_ne) {
        if (iv.how == MG_STEP_ADD) {
            mg_sym way =
                iv.by > 0 ? mg_sym_make(y, MG_SYM_sub, bound, first, 0) : mg_sym_make(y, MG_SYM_sub, first, bound, 0);
            return mg_sym_make(y, MG_SYM_div, way, mg_sym_const(y, iv.by > 0 ? iv.by : -iv.by), 0);
        }
        if (iv.how != MG_STEP_SHR || y->at.at[bound].op != MG_SYM_const || y->at.at[bound].val) return 0;
        below = false; /* not 0: above it */
    }
    if (n.op == MG_SYM_le) bound = plus(y, bound, below ? 1 : -1); /* r <= b is r < b + 1, b <= r is b - 1 < r */
    switch (iv.how) {
    case MG_STEP_ADD:
        *rest = below != (iv.by > 0);
        if (*rest) bound = plus(y, bound, below ? -1 : 1); /* the rounds before: b - 1 < r, or r < b + 1 */
        return iv.by > 0 ? at_least_0(y, mg_sym_make(y, MG_SYM_ceil, mg_sym_make(y, MG_SYM_sub, bound, first, 0),
                                                     mg_sym_const(y, iv.by), 0))
                         : at_least_0(y, mg_sym_make(y, MG_SYM_ceil, mg_sym_make(y, MG_SYM_sub, first, bound, 0),
                                                     mg_sym_const(y, -iv.by), 0));
    case MG_STEP_SHR: /* first >> (k + ahead) > bound: first // (bound + 1) has more bits than that */
        if (below) return 0;
        return at_least_0(
            y, plus(y, mg_sym_make(y, MG_SYM_bits, mg_sym_make(y, MG_SYM_div, iv.start, plus(y, bound, 1), 0), 0, 0),
                    -ahead));
    case MG_STEP_SHL: /* first << (k + ahead) <= bound - 1 */
        if (!below) return 0;
        return at_least_0(
            y, plus(y, mg_sym_make(y, MG_SYM_bits, mg_sym_make(y, MG_SYM_div, plus(y, bound, -1), iv.start, 0), 0, 0),
                    -ahead));
    default:
        return 0;
    }
}

/* ---- loops ---------------------------------------------------------------------------------------- */

static bool every_round(const struct maker *k, uint32_t loop, uint32_t b)
{
    const struct mg_block *h = &k->c->blocks[k->l->loops[loop].header];
    for (uint32_t i = 0; i < h->n_preds; i++) {
        uint32_t p = k->c->preds[h->pred_at + i];
        if (mg_loops_contains(k->l, loop, p) && !mg_dom_over(k->dom, b, p)) return false;
    }
    return k->l->loop_of[b] == loop;
}

static void find_rounds(struct maker *k, uint32_t loop)
{
    uint32_t n = 0, stay = 0;
    bool rest;
    if (k->l->loops[loop].n_headers != 1) return;
    for (uint32_t b = 0; b < k->c->n_blocks; b++) {
        const struct mg_block *x = &k->c->blocks[b];
        if (!mg_loops_contains(k->l, loop, b)) continue;
        unsigned op = mg_node_form(k->c->m, &k->c->m->nodes.at[x->last])->op;
        n += 2 * (x->leaves && op != MG_OP_trap);
        for (uint32_t s = 0; s < x->n_succs; s++) {
            if (mg_loops_contains(k->l, loop, k->c->edges[x->succ_at + s])) continue;
            k->test[loop] = b;
            stay = x->succ_at + 1 - s;
            n += x->n_succs == 2 ? 1 : 2;
        }
    }
    if (n != 1 || !every_round(k, loop, k->test[loop])) return;
    mg_sym go_on = holds_for(k, condition(k, k->test[loop], stay), loop, &rest);
    if (!rest) k->rounds[loop] = mg_sym_make(&k->y, MG_SYM_rounds, plus(&k->y, go_on, 1), 0, loop);
}

/* ---- counts ---------------------------------------------------------------------------------------- */

static const struct count *count_of(struct maker *k, uint32_t b);

static struct count add_counts(const struct count *a, const struct count *b, int64_t times)
{
    struct count r = *a;
    if (!a->known || !b->known || a->n + b->n > MOST_TERMS) return unknown;
    for (uint32_t i = 0; i < b->n; i++) {
        struct term t = b->terms[i];
        uint32_t at = 0;
        t.times *= times;
        while (at < r.n && (r.terms[at].n != t.n || memcmp(r.terms[at].factors, t.factors, t.n * sizeof *t.factors)))
            at++;
        if (at == r.n)
            r.terms[r.n++] = t;
        else
            r.terms[at].times += t.times;
        if (at < r.n && !r.terms[at].times) r.terms[at] = r.terms[--r.n];
    }
    return r;
}

static struct count times_factor(struct maker *k, struct count c, mg_sym f)
{
    const struct mg_sym_node *n = &k->y.at.at[f];
    if (!f || n->varies) return unknown;
    if (n->op == MG_SYM_const && n->val == 1) return c;
    if (n->op == MG_SYM_const && n->val == 0) return nothing;
    for (uint32_t i = 0; c.known && i < c.n; i++) {
        struct term *t = &c.terms[i];
        bool had = false;
        for (uint32_t q = 0; q < t->n && n->op >= MG_SYM_lt && n->op <= MG_SYM_ne; q++) had |= t->factors[q] == f;
        if (had) continue;
        if (t->n == MOST_FACTORS) return unknown;
        uint32_t at = t->n++;
        for (; at && t->factors[at - 1] > f; at--) t->factors[at] = t->factors[at - 1];
        t->factors[at] = f;
    }
    return c;
}

/* Replaces the rounds of the loop in every term. */
static struct count with_rounds(struct maker *k, struct count c, uint32_t loop, mg_sym rounds)
{
    struct count r = nothing;
    for (uint32_t i = 0; c.known && i < c.n; i++) {
        struct count one = {.known = true, .n = 1, .terms = {{.times = c.terms[i].times}}};
        bool found = false;
        for (uint32_t q = 0; q < c.terms[i].n; q++) {
            const struct mg_sym_node *n = &k->y.at.at[c.terms[i].factors[q]];
            bool is = n->op == MG_SYM_rounds && (uint32_t)n->val == loop;
            one = times_factor(k, one, is ? rounds : c.terms[i].factors[q]);
            found |= is;
        }
        if (!found || !rounds) return unknown;
        r = add_counts(&r, &one, 1);
    }
    return c.known ? r : unknown;
}

static mg_sym rounds_of(const struct maker *k, const struct count *c, uint32_t loop)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t q = 0; q < c->terms[i].n; q++) {
            const struct mg_sym_node *n = &k->y.at.at[c->terms[i].factors[q]];
            if (n->op == MG_SYM_rounds && (uint32_t)n->val == loop) return n->a;
        }
    return 0;
}

static struct count filter(struct maker *k, const struct count *c, uint32_t loop, mg_sym cond)
{
    struct mg_syms *y = &k->y;
    struct mg_sym_node n = y->at.at[cond];
    uint32_t of;
    bool rest;
    if (!cond || !c->known) return unknown;
    if (n.op == MG_SYM_both) {
        struct count half = filter(k, c, loop, n.a);
        return filter(k, &half, loop, n.b);
    }
    if (n.op == MG_SYM_either) {
        struct count others = filter(k, c, loop, mg_sym_not(y, cond));
        return add_counts(c, &others, -1);
    }
    if (!n.varies) return times_factor(k, *c, cond);
    if (!mg_sym_loop(y, cond, &of) || of != loop) return unknown;
    mg_sym rounds = rounds_of(k, c, loop), hold = holds_for(k, cond, loop, &rest),
           some = mg_sym_make(y, MG_SYM_min, rounds, hold, 0);
    if (n.op == MG_SYM_ne || n.op == MG_SYM_eq) return unknown; /* one round among many: nothing behind it */
    return with_rounds(k, *c, loop, rest ? mg_sym_make(y, MG_SYM_sub, rounds, some, 0) : some);
}

static struct count along(struct maker *k, uint32_t block, uint32_t edge)
{
    const struct count *c = count_of(k, block);
    uint32_t loop = k->l->loop_of[block];
    if (!c->known) return unknown;
    bool tests = loop != MG_NO_LOOP && k->rounds[loop] && k->test[loop] == block;
    if (!tests) return filter(k, c, loop, condition(k, block, edge));
    mg_sym rounds = rounds_of(k, c, loop);
    if (!mg_loops_contains(k->l, loop, k->c->edges[edge]))
        return with_rounds(k, *c, loop, rounds ? mg_sym_const(&k->y, 1) : 0);
    return with_rounds(k, *c, loop, rounds ? mg_sym_make(&k->y, MG_SYM_rounds, plus(&k->y, rounds, -1), 0, loop) : 0);
}

static struct count from_edges(struct maker *k, uint32_t b, uint32_t outside_of)
{
    const struct mg_block *x = &k->c->blocks[b];
    struct count sum = nothing;
    if (b == 0) sum = (struct count){.known = true, .n = 1, .terms = {{.times = 1}}};
    for (uint32_t i = 0; i < x->n_preds && sum.known; i++) {
        uint32_t p = k->c->preds[x->pred_at + i];
        bool seen = false;
        for (uint32_t q = 0; q < i; q++) seen |= k->c->preds[x->pred_at + q] == p;
        if (seen || !k->c->reachable[p] || (outside_of != MG_NO_LOOP && mg_loops_contains(k->l, outside_of, p)))
            continue;
        for (uint32_t s = 0; s < k->c->blocks[p].n_succs && sum.known; s++) {
            if (k->c->edges[k->c->blocks[p].succ_at + s] != b) continue;
            struct count one = along(k, p, k->c->blocks[p].succ_at + s);
            sum = add_counts(&sum, &one, 1);
        }
    }
    return sum;
}

static const struct count *count_of(struct maker *k, uint32_t b)
{
    struct count *c = &k->counts[b];
    if (c->asked) return c->working ? &unknown : c;
    c->asked = c->working = true;
    uint32_t loop = k->l->loop_of[b], first = b;
    bool header = loop != MG_NO_LOOP && k->l->loops[loop].header == b;
    for (uint32_t i = 0; i < k->c->n_blocks; i++) { /* equal counts: the one that stands over the others */
        bool equal = k->q->class_of[i] == k->q->class_of[b] && mg_dom_over(k->dom, i, first);
        if (equal && k->l->loop_of[i] == loop)
            first = i;
        else if (equal && !header && first == b)
            first = i;
    }
    struct count r;
    if (first != b) {
        r = *count_of(k, first);
    } else if (header) {
        r = from_edges(k, b, loop);
        r = k->rounds[loop] ? times_factor(k, r, k->rounds[loop]) : unknown;
    } else {
        r = from_edges(k, b, MG_NO_LOOP);
    }
    r.asked = true;
    r.working = false;
    *c = r;
    return c;
}

/* ---- over all threads --------------------------------------------------------------------------------- */

/* Conditions along one axis on a position whose values are 0, 1, ... each equally often. */
struct range {
    mg_sym position, whole, each, low, high;
    bool other;
};

static bool narrow(struct mg_syms *y, struct range *r, mg_sym factor)
{
    const struct mg_sym_node n = y->at.at[factor];
    if (n.op != MG_SYM_lt && n.op != MG_SYM_le && n.op != MG_SYM_eq) return false;
    for (unsigned side = 0; side < 2; side++) {
        mg_sym at = side ? n.b : n.a, bound = side ? n.a : n.b;
        struct mg_sym_node p = y->at.at[at];
        int64_t off = 0;
        if (at != r->position && p.op == MG_SYM_add && p.a == r->position && y->at.at[p.b].op == MG_SYM_const)
            off = y->at.at[p.b].val, at = p.a;
        if (at != r->position || y->at.at[bound].axes) continue;
        mg_sym low = 0, high = 0;
        if (!side || n.op == MG_SYM_eq) high = plus(y, bound, (n.op != MG_SYM_lt) - off);
        if (side || n.op == MG_SYM_eq) low = plus(y, bound, (n.op == MG_SYM_lt) - off);
        if (high) r->high = r->high ? mg_sym_make(y, MG_SYM_min, r->high, high, 0) : high;
        if (low) r->low = r->low ? mg_sym_make(y, MG_SYM_max, r->low, low, 0) : low;
        return true;
    }
    return false;
}

/* Threads along the axis for which all conditions hold; 0: not of that kind. */
static mg_sym count_axis(struct mg_syms *y, unsigned axis, const mg_sym *factors, uint32_t n)
{
    mg_sym tid = mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_TID + axis),
           cta = mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_CTAID + axis);
    mg_sym ntid = mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_NTID + axis),
           ncta = mg_sym_make(y, MG_SYM_place, 0, 0, MG_SYM_NCTAID + axis);
    mg_sym all = mg_sym_make(y, MG_SYM_threads, 0, 0, axis), one = mg_sym_const(y, 1);
    struct range ways[] = {{.position = mg_sym_make(y, MG_SYM_add, mg_sym_make(y, MG_SYM_mul, cta, ntid, 0), tid, 0),
                            .whole = all,
                            .each = one},
                           {.position = tid, .whole = ntid, .each = ncta},
                           {.position = cta, .whole = ncta, .each = ntid}};
    for (unsigned w = 0; w < MG_COUNT_OF(ways); w++) {
        struct range *r = &ways[w];
        bool fits = true;
        for (uint32_t i = 0; i < n && fits; i++) fits = narrow(y, r, factors[i]);
        if (!fits) continue;
        mg_sym high = r->high ? mg_sym_make(y, MG_SYM_min, r->high, r->whole, 0) : r->whole;
        mg_sym low = r->low ? at_least_0(y, r->low) : mg_sym_const(y, 0);
        return mg_sym_make(y, MG_SYM_mul, at_least_0(y, mg_sym_make(y, MG_SYM_sub, high, low, 0)), r->each, 0);
    }
    return 0;
}

static void print_factor(struct mg_syms *y, mg_sym f, struct mg_buf *out)
{
    uint8_t op = y->at.at[f].op;
    if (op == MG_SYM_rounds) op = y->at.at[f = y->at.at[f].a].op;
    bool brackets = op != MG_SYM_const && op != MG_SYM_arg && op != MG_SYM_place && op != MG_SYM_threads &&
                    op != MG_SYM_min && op != MG_SYM_max && op != MG_SYM_ceil && op != MG_SYM_bits && op != MG_SYM_mul;
    if (out->n && out->at[out->n - 1] != '(' && out->at[out->n - 1] != ' ') mg_buf_adds(out, " * ");
    if (brackets) mg_buf_addc(out, '(');
    mg_sym_print(y, f, out);
    if (brackets) mg_buf_addc(out, ')');
}

static void print_term(struct mg_syms *y, const struct term *t, struct mg_buf *out)
{
    mg_sym by_axis[3][MOST_FACTORS], counts[3];
    uint32_t n[3] = {0};
    bool closed = true;
    for (uint32_t i = 0; i < t->n; i++) {
        uint8_t axes = y->at.at[t->factors[i]].axes;
        if (!axes) continue;
        unsigned axis = axes == 1 ? 0 : axes == 2 ? 1 : 2;
        closed = closed && !(axes & (axes - 1));
        by_axis[axis][n[axis]++] = t->factors[i];
    }
    for (unsigned a = 0; a < 3 && closed; a++) {
        counts[a] = n[a] ? count_axis(y, a, by_axis[a], n[a]) : mg_sym_make(y, MG_SYM_threads, 0, 0, a);
        closed = counts[a] != 0;
    }
    if (t->times != 1) mg_buf_printf(out, "%lld", (long long)t->times);
    for (uint32_t i = 0; i < t->n; i++)
        if (!y->at.at[t->factors[i]].axes) print_factor(y, t->factors[i], out);
    if (closed && !n[0] && !n[1] && !n[2]) {
        mg_buf_adds(out, out->n && out->at[out->n - 1] != ' ' ? " * threads" : "threads");
        return;
    }
    for (unsigned a = 0; a < 3 && closed; a++) print_factor(y, counts[a], out);
    if (closed) return;
    mg_buf_adds(out, out->n && out->at[out->n - 1] != ' ' ? " * S(" : "S(");
    for (uint32_t i = 0; i < t->n; i++)
        if (y->at.at[t->factors[i]].axes) print_factor(y, t->factors[i], out);
    mg_buf_addc(out, ')');
}

static char *print_count(struct maker *k, const struct count *c)
{
    struct mg_buf out = MG_BUF_INIT;
    if (!c->n) mg_buf_addc(&out, '0');
    for (uint32_t i = 0; i < c->n; i++) {
        struct term t = c->terms[i];
        if (i) mg_buf_adds(&out, t.times < 0 ? " - " : " + ");
        if (i && t.times < 0) t.times = -t.times;
        print_term(&k->y, &t, &out);
    }
    if (out.n <= MOST_TEXT) return mg_buf_take(&out);
    mg_buf_release(&out);
    return NULL;
}

/* ---- a kernel ---------------------------------------------------------------------------------------- */

static bool may_end_elsewhere(const struct mg_module *m, mg_id kernel)
{
    for (mg_id f = 1; f < m->funcs.n; f++) MG_EACH_NODE(m, &m->funcs.at[f], id)
    if (f != kernel && m->nodes.at[id].kind == MG_NODE_inst && mg_node_form(m, &m->nodes.at[id])->op == MG_OP_exit &&
        m->funcs.at[f].kind == MG_FUNC_func)
        return true;
    return false;
}

struct mg_formulas *mg_formulas_new(const struct mg_cfg *c)
{
    struct mg_formulas *f = mg_xcalloc(1, sizeof *f);
    f->n_blocks = c->n_blocks;
    f->text = mg_xcalloc(c->n_blocks + 1, sizeof *f->text);
    if (!c->n_blocks || may_end_elsewhere(c->m, c->func)) return f;
    struct maker k = {.c = c, .dom = mg_dom_new(c), .l = mg_loops_new(c), .q = mg_equiv_new(c, NULL)};
    struct mg_live *live = mg_live_new(c);
    struct mg_ssa *ssa = mg_ssa_new(c, k.dom, live);
    mg_syms_init(&k.y, c, ssa, k.l);
    k.counts = mg_xcalloc(c->n_blocks, sizeof *k.counts);
    k.rounds = mg_xcalloc(k.l->n_loops + 1, sizeof *k.rounds);
    k.test = mg_xcalloc(k.l->n_loops + 1, sizeof *k.test);
    for (uint32_t i = 0; i < k.l->n_loops; i++) find_rounds(&k, i);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct count *n = c->reachable[b] ? count_of(&k, b) : &nothing;
        if (n->known) f->text[b] = print_count(&k, n);
        f->n_known += f->text[b] != NULL;
    }
    mg_syms_release(&k.y);
    mg_ssa_free(ssa);
    mg_live_free(live);
    mg_equiv_free(k.q);
    mg_loops_free(k.l);
    mg_dom_free(k.dom);
    free(k.counts);
    free(k.rounds);
    free(k.test);
    return f;
}

void mg_formulas_free(struct mg_formulas *f)
{
    if (!f) return;
    for (uint32_t b = 0; b < f->n_blocks; b++) free(f->text[b]);
    free(f->text);
    free(f);
}
