/* Scheme register where lanes leave: what the flush there need not ask, and what stands in front of it.
 * Guesses by frequencies of blocks; they change no count. */
#include "analysis/dom.h"
#include "count/regs.h"

#define EMIT(...)  EMIT_AT(x, __VA_ARGS__)
#define ASK        4    /* instructions that ask whether anything was counted */
#define FLUSH      40   /* and those of a flush, with three more for each counter that has a register */
#define MOST_WORDS 12   /* a flush of more, or of saved banks, has enough to do: asking is nothing beside it */
#define NO_ROUND   0.05 /* of those that come to a loop's guard */
#define RARE_INSTS 6

/* Is the branch at the block's end on a parameter, compared with a number? */
static bool asks_parameter(const struct mg_rfunc *f, const struct mg_defs *d, uint32_t b)
{
    const struct mg_module *m = f->x.m;
    mg_id regs[8], def = mg_def_of(d, m->nodes.at[f->x.c->blocks[b].last].guard);
    uint32_t n = def ? mg_node_uses(m, def, regs, MG_COUNT_OF(regs)) : 0;
    bool all = n > 0 && n <= MG_COUNT_OF(regs);
    for (uint32_t i = 0; all && i < n; i++) {
        mg_id from = mg_def_of(d, regs[i]);
        const struct mg_form *form = from ? mg_node_form(m, &m->nodes.at[from]) : NULL;
        all = form && form->op == MG_OP_ld && form->space == MG_SPACE_param;
    }
    return all;
}

/* Does falling through at the block's end lead to a loop, which its branch jumps over? Compilers ask so whether there
 * is any round; where a parameter tells, there nearly always is. */
static bool guards_loop(const struct mg_rfunc *f, const struct mg_defs *d, uint32_t b)
{
    const struct mg_block *k = &f->x.c->blocks[b];
    const struct mg_loops *l = f->plan->loops;
    if (k->n_succs != 2) return false;
    for (uint32_t i = 0; i < l->n_loops; i++)
        if (!mg_loops_contains(l, i, b) && mg_dom_over(f->plan->dom, f->x.c->edges[k->succ_at], l->loops[i].header) &&
            !mg_dom_over(f->plan->dom, f->x.c->edges[k->succ_at + 1], l->loops[i].header))
            return asks_parameter(f, d, b);
    return false;
}

/* What is expected of lanes that come to the ends of blocks: their number, and that of those which have counted
 * nothing; each loop once around. */
static void find_zero(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_freq *q = f->plan->freq;
    uint32_t n_edges = 0;
    struct mg_defs d = mg_single_defs(c);
    for (uint32_t b = 0; b < c->n_blocks; b++) n_edges += c->blocks[b].n_succs;
    bool *at_block = mg_xcalloc(c->n_blocks + 1, sizeof *at_block),
         *on_edge = mg_xcalloc((size_t)n_edges + 1, sizeof *on_edge);
    for (uint32_t i = 0; i < f->n_measured; i++) {
        const struct mg_count *k = &f->plan->list[i];
        if (k->kind == MG_COUNT_ENTRY)
            at_block[0] = true;
        else if (k->kind == MG_COUNT_BLOCK || (k->kind == MG_COUNT_LEAVE && !c->blocks[k->block].n_succs))
            at_block[k->block] = true;
        else if (k->kind == MG_COUNT_EDGE)
            on_edge[k->edge] = true;
        else if (k->kind == MG_COUNT_IV && !k->less_one && !k->n_ifs)
            at_block[f->plan->loops->loops[f->plan->ivs->list[k->iv].loop].header] = true;
    }
    f->live.lanes = mg_xcalloc(c->n_blocks + 1, sizeof *f->live.lanes);
    f->live.zero = mg_xcalloc(c->n_blocks + 1, sizeof *f->live.zero);
    f->live.lanes[0] = f->live.zero[0] = 1;
    for (uint32_t i = 0; i < c->n_blocks && c->reachable[c->rpo[i]]; i++) {
        uint32_t b = c->rpo[i];
        const struct mg_block *k = &c->blocks[b];
        double on = 1, over = guards_loop(f, &d, b) ? NO_ROUND : 1;
        if (at_block[b]) f->live.zero[b] = 0;
        for (uint32_t s = 0; s < k->n_succs; s++)
            if (c->rpo_ix[c->edges[k->succ_at + s]] <= i) on -= q->share[k->succ_at + s];
        for (uint32_t s = 0; s < k->n_succs; s++) {
            uint32_t e = k->succ_at + s, to = c->edges[e];
            if (c->rpo_ix[to] <= i || on <= 0) continue;
            double share = over == 1 ? q->share[e] / on : s ? MG_MIN(over, q->share[e]) : MG_MAX(1 - over, q->share[e]);
            f->live.lanes[to] += f->live.lanes[b] * share;
            if (!on_edge[e]) f->live.zero[to] += f->live.zero[b] * share;
        }
    }
    free(d.at);
    free(at_block);
    free(on_edge);
}

bool mg_leave_may_be_zero(struct mg_rfunc *f, uint32_t b)
{
    if (f->n_words > MOST_WORDS || f->calls.n_sources || f->packed.n_cuts) return true;
    if (!f->live.lanes) find_zero(f);
    return f->live.zero[b] * (FLUSH + 3 * (f->n_words + f->packed.n_banks)) >= f->live.lanes[b] * ASK;
}

void mg_leave_keep_rare(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    const struct mg_cfg *c = x->c;
    const struct mg_block *k = &c->blocks[b];
    if (!f->sync || k->n_succs != 1 || k->n_preds != 1 || k->n_insts < RARE_INSTS ||
        f->plan->loops->loop_of[b] != MG_NO_LOOP)
        return;
    uint32_t to = c->edges[k->succ_at], from = c->preds[k->pred_at];
    const struct mg_block *p = &c->blocks[from];
    bool over = p->n_succs == 2 && c->edges[p->succ_at] == b && c->edges[p->succ_at + 1] == to;
    if (!over || !f->plan->freq->trivial[to] || f->plan->freq->block[b] > 0.5 * f->plan->freq->block[from]) return;
    x->at = mg_block_head(x->m, k); /* behind the block's stores it would wait for them */
    mg_emit_guard(x, 0, false);
    EMIT("fence.acq_rel.cta");
}
