/* Words in shared memory that belong to one loop: a loop of several bodies a round is not run at all where there
 * are fewer
 * rounds, and then nothing should be cleared or looked at.
 *
 *     in front of the loop   all threads zero its words;  bar.sync
 *     behind it              each warp drains them
 *
 * That takes an outermost loop to which all threads of a CTA come or none: every branch in front of it
 * depends on the launch alone. So no thread can wait there for one that waits for it. */
#include "count/regs.h"

#include <stdlib.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

#define SELDOM 0.7 /* a loop that is entered as often is better drained at the end, with all the rest */
enum { MOST_STEPS = 24 };

/* The outermost loop in which the counter's code stands; that of an induction variable stands on the rim of its own. */
static uint32_t outermost(const struct mg_rfunc *f, uint32_t counter)
{
    const struct mg_count *k = &f->plan->list[counter];
    const struct mg_loop *loops = f->plan->loops->loops;
    uint32_t loop = k->kind == MG_COUNT_IV ? f->plan->ivs->list[k->iv].loop : mg_shared_loop(f, counter);
    while (loop != MG_NO_LOOP && loops[loop].parent != MG_NO_LOOP) loop = loops[loop].parent;
    return loop;
}

/* Is the value the same in all threads of a CTA, since it follows from parameters and shape alone? */
struct asker {
    const struct mg_rfunc *f;
    struct mg_defs def;
};

static bool is_of_launch(const struct asker *a, mg_id reg, unsigned steps)
{
    const struct mg_module *m = a->f->x.m;
    mg_id node = mg_def_of(&a->def, reg);
    if (!node || !steps) return false;
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_form *fm = mg_node_form(m, n);
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    if (n->guard || fm->unknown || (fm->op_flags & (MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_BARRIER))) return false;
    switch (fm->op) {
    case MG_OP_ld:
        return fm->space == MG_SPACE_param && n->n_opnds == 2 && o[1].kind == MG_OPND_addr && o[1].sub == MG_OPND_var &&
               m->vars.at[o[1].id].is_param;
    case MG_OP_mov:
    case MG_OP_cvt:
    case MG_OP_setp:
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_mad:
    case MG_OP_neg:
    case MG_OP_not:
    case MG_OP_and:
    case MG_OP_or:
    case MG_OP_xor:
    case MG_OP_shl:
    case MG_OP_shr:
    case MG_OP_min:
    case MG_OP_max:
        break;
    default:
        return false;
    }
    if (mg_form_has(fm, MG_MOD_cc)) return false;
    for (uint32_t i = 1; i < n->n_opnds; i++) {
        bool same = o[i].kind == MG_OPND_imm;
        if (o[i].kind == MG_OPND_sreg)
            same = o[i].id == MG_SREG_ntid || o[i].id == MG_SREG_ctaid || o[i].id == MG_SREG_nctaid;
        if (o[i].kind == MG_OPND_reg || o[i].kind == MG_OPND_not || o[i].kind == MG_OPND_neg)
            same = is_of_launch(a, o[i].id, steps - 1);
        if (!same) return false;
    }
    return true;
}

/* Does the block do nothing by which threads of a CTA may part, or for which one may wait? */
static bool keeps_together(const struct asker *a, uint32_t b)
{
    const struct mg_cfg *c = a->f->x.c;
    const struct mg_module *m = a->f->x.m;
    const struct mg_block *k = &c->blocks[b];
    for (mg_id id = k->first;; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        const struct mg_form *fm = n->kind == MG_NODE_inst ? mg_node_form(m, n) : NULL;
        if (fm && (fm->unknown || fm->op == MG_OP_call || fm->op == MG_OP_brx)) return false;
        if (fm && (fm->op_flags & (MG_OPF_BARRIER | MG_OPF_CONVERGENT)) && !mg_is_cta_barrier(m, id)) return false;
        if (id == k->last) break;
    }
    return k->n_succs < 2 || is_of_launch(a, m->nodes.at[k->last].guard, MOST_STEPS);
}

static bool ask(const struct mg_rfunc *f, uint32_t loop)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_loops *l = f->plan->loops;
    uint32_t header = l->loops[loop].header, n_in = 0;
    if (!header || l->loops[loop].n_headers != 1) return false;
    uint64_t *leads = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *leads);
    bool good = true;
    mg_cfg_find_reaching(c, header, leads);
    struct asker a = {.f = f, .def = mg_single_defs(c)};
    for (uint32_t b = 0; good && b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        bool inside = mg_loops_contains(l, loop, b);
        if (!c->reachable[b]) continue;
        if (inside) {
            good = !k->leaves && mg_node_form(c->m, &c->m->nodes.at[k->last])->op != MG_OP_brx;
        } else if (mg_has(leads, b)) {
            good = keeps_together(&a, b);
            for (uint32_t s = 0; s < k->n_succs; s++) {
                if (c->edges[k->succ_at + s] != header) continue;
                enum mg_edge_place place = mg_edge_place(c, f->plan->freq, b, k->succ_at + s);
                good = good && !n_in++ && (place == MG_PLACE_END || place == MG_PLACE_FALL) &&
                       f->plan->freq->edge[k->succ_at + s] < SELDOM * f->plan->freq->block[0];
            }
        }
    }
    free(a.def.at);
    free(leads);
    return good && n_in == 1;
}

bool mg_loop_words_may(const struct mg_rfunc *f, uint32_t counter, bool *asked)
{
    uint32_t loop = outermost(f, counter);
    if (loop == MG_NO_LOOP) return false;
    asked[loop] = asked[loop] || ask(f, loop);
    return asked[loop];
}

void mg_loop_words_place(struct mg_rfunc *f, uint32_t slot)
{
    const struct mg_loops *l = f->plan->loops;
    f->shared.ranges = mg_xcalloc(l->n_loops + 1, sizeof *f->shared.ranges);
    f->shared.n = 0;
    for (uint32_t loop = 0; loop < l->n_loops; loop++) {
        struct mg_rrange r = {.loop = loop, .first = (f->shared.n + 31) / 32 * 32};
        for (uint32_t i = 0; i < f->n_measured; i++)
            if (f->counters[i].kind == MG_RC_SHARED && outermost(f, i) == loop)
                f->counters[i].slot = slot + r.first + r.n++;
        if (!r.n) continue;
        f->shared.ranges[f->shared.n_ranges++] = r;
        f->shared.n = r.first + r.n;
    }
}

struct mg_rrange mg_loop_words_of(const struct mg_rfunc *f, uint32_t loop)
{
    while (f->plan->loops->loops[loop].parent != MG_NO_LOOP) loop = f->plan->loops->loops[loop].parent;
    for (uint32_t i = 0; i < f->shared.n_ranges; i++)
        if (f->shared.ranges[i].loop == loop) return f->shared.ranges[i];
    return (struct mg_rrange){.loop = loop};
}

/* Behind the loop: out of the way. */
static void emit_drain(struct mg_rfunc *f, struct mg_rrange r, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    mg_id p = mg_rc_tp(f, 0);
    x->at = s.at;
    if (!s.guard)
        EMIT("setp.eq.u32", p, 0, 0);
    else
        EMIT(s.guard_not ? "not.pred" : "mov.pred", p, s.guard);
    struct mg_apart a = mg_rc_begin_apart(f, p);
    mg_rc_drain_range(f, r);
    mg_rc_end_apart(f, a);
}

void mg_loop_words_emit(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_loops *l = f->plan->loops;
    for (uint32_t i = 0; i < f->shared.n_ranges; i++) {
        struct mg_rrange r = f->shared.ranges[i];
        for (uint32_t b = 0; b < c->n_blocks; b++) {
            const struct mg_block *k = &c->blocks[b];
            bool inside = mg_loops_contains(l, r.loop, b);
            for (uint32_t s = 0; c->reachable[b] && s < k->n_succs; s++) {
                uint32_t to = c->edges[k->succ_at + s];
                if (inside && !mg_loops_contains(l, r.loop, to)) {
                    emit_drain(f, r, mg_place_edge(&f->place, b, k->succ_at + s));
                } else if (!inside && to == l->loops[r.loop].header) {
                    f->x.at = mg_place_edge(&f->place, b, k->succ_at + s).at;
                    mg_shared_clear_range(f, r);
                }
            }
        }
    }
}
