/* See tool/lanes/plan.h. Looks at the application's code only. */
#include "tool/lanes/plan.h"

#include <stdlib.h>

enum { FEW = 6 /* blocks that ask, outside of loops: setting up words near the threads takes as long */ };

struct planner {
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_uniform *u;
    const struct mg_dom *dom;
    const struct mg_loops
        *loops; /* whose rounds may be many: NULL in functions that are called, which are entered for a few */
    struct mg_lanes_plan *l;
    const struct mg_loops *nest;
    const bool *may_leave; /* by block */
    bool gpu;              /* no other device's code, and new enough for what it takes there */
};

static bool is_bra(const struct planner *p, uint32_t b)
{
    const struct mg_node *n = &p->m->nodes.at[p->c->blocks[b].last];
    return n->guard && mg_node_form(p->m, n)->op == MG_OP_bra && p->c->blocks[b].n_succs == 2;
}

/* May other lanes stand at the block's end than entered it together? */
static bool may_gather(const struct planner *p, uint32_t b)
{
    const struct mg_block *k = &p->c->blocks[b];
    mg_id behind = p->l->blocks[b].behind;
    for (mg_id id = behind && behind != k->last ? p->m->nodes.at[behind].next : k->first;;
         id = p->m->nodes.at[id].next) {
        if (p->m->nodes.at[id].kind == MG_NODE_inst &&
            mg_node_form(p->m, &p->m->nodes.at[id])->op_flags & (MG_OPF_CONVERGENT | MG_OPF_BARRIER))
            return true;
        if (id == k->last) return false;
    }
}

/* The first block of b's class that dominates it, where it comes before b. */
static uint32_t leader_of(const struct planner *p, const struct mg_equiv *e, const uint32_t *first, uint32_t b)
{
    uint32_t f = e->class_of[b] == MG_NO_CLASS ? MG_NO_BLOCK : first[e->class_of[b]];
    return f != MG_NO_BLOCK && f != b && mg_dom_over(p->dom, f, b) ? f : MG_NO_BLOCK;
}

static void choose(struct planner *p, const struct mg_equiv *e)
{
    const struct mg_cfg *c = p->c;
    uint32_t *first = mg_xmalloc(sizeof *first * (e->n_classes + 1));
    for (uint32_t i = 0; i < e->n_classes; i++) first[i] = MG_NO_BLOCK;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        uint32_t b = c->rpo[i], of;
        struct mg_lanes_block *x = &p->l->blocks[b];
        *x = (struct mg_lanes_block){.ask = p->u->cohort[b] == 0 ? MG_LANES_ENTRY : MG_LANES_ASKS,
                                     .of = MG_NO_BLOCK,
                                     .tells = MG_NO_BLOCK,
                                     .enters = MG_NO_BLOCK,
                                     .out = MG_NO_BLOCK,
                                     .told_by = MG_NO_BLOCK};
        if (!c->reachable[b]) continue;
        if (mg_is_cta_barrier(p->m, c->blocks[b].first) && c->blocks[b].first != c->blocks[b].last)
            x->behind = c->blocks[b].first;
        of = leader_of(p, e, first, b);
        if (of != MG_NO_BLOCK) {
            bool same = p->u->cohort[b] != MG_NO_COHORT && p->u->cohort[b] == p->u->cohort[of];
            if (same || x->ask != MG_LANES_ENTRY) x->ask = same ? MG_LANES_SAME : MG_LANES_FOLLOWS, x->of = of;
        } else if (e->class_of[b] != MG_NO_CLASS && first[e->class_of[b]] == MG_NO_BLOCK) {
            first[e->class_of[b]] = b;
        }
    }
    free(first);
}

/* At the end of b stand the lanes that entered which block? MG_NO_BLOCK: the kernel. */
static uint32_t mask_of(const struct planner *p, uint32_t b)
{
    const struct mg_lanes_block *x = &p->l->blocks[b];
    if (p->u->at_end[b] == 0 || x->ask == MG_LANES_ENTRY) return MG_NO_BLOCK;
    if (x->ask != MG_LANES_SAME) return b;
    return p->l->blocks[x->of].ask == MG_LANES_ENTRY ? MG_NO_BLOCK : x->of;
}

static bool can_tell(const struct planner *p, uint32_t s)
{
    const struct mg_lanes_block *x = &p->l->blocks[s];
    return s && x->ask == MG_LANES_ASKS && x->tells == MG_NO_BLOCK;
}

/* The block from which s is entered when the branch at the end of b leads back to it; MG_NO_BLOCK: there are more, or
 * an odd one. */
static uint32_t other_way_in(const struct planner *p, uint32_t s, uint32_t b)
{
    const uint32_t *preds = &p->c->preds[p->c->blocks[s].pred_at];
    if (p->c->blocks[s].n_preds != 2 || !mg_dom_over(p->dom, s, b)) return MG_NO_BLOCK;
    uint32_t q = preds[0] == b ? preds[1] : preds[0];
    bool table = mg_node_form(p->m, &p->m->nodes.at[p->c->blocks[q].last])->op == MG_OP_brx;
    return q == b || table || mg_dom_over(p->dom, s, q) ? MG_NO_BLOCK : q;
}

/* A loop by itself around which there is no other: inner ones mostly have few rounds, and beginning and ending a run
 * takes as long as four. */
static bool is_long(const struct planner *p, uint32_t b)
{
    return p->loops && p->loops->loop_of[b] != MG_NO_LOOP && p->loops->loops[p->loops->loop_of[b]].parent == MG_NO_LOOP;
}

/* s: the head of a loop of several blocks. Do lanes leave it by its edges alone? */
static bool may_repeat(const struct planner *p, uint32_t s)
{
    if (!p->gpu || !is_long(p, s)) return false;
    for (uint32_t x = 0; x < p->c->n_blocks; x++)
        if (mg_loops_contains(p->nest, p->nest->loop_of[s], x) &&
            (p->c->blocks[x].leaves || p->may_leave[x] ||
             mg_node_form(p->m, &p->m->nodes.at[p->c->blocks[x].last])->op == MG_OP_brx))
            return false;
    return p->nest->loops[p->nest->loop_of[s]].n_headers == 1;
}

/* A loop by itself, s: how its rounds are counted. Inner loops of kernels mostly have few, which costs less one by one.
 */
static void choose_rounds(struct planner *p, uint32_t s)
{
    struct mg_lanes_block *x = &p->l->blocks[s];
    const uint32_t *to = &p->c->edges[p->c->blocks[s].succ_at];
    uint32_t out = to[0] == s ? to[1] : to[0];
    x->runs = is_long(p, s) && !p->gpu;
    if (p->gpu && out != s && (!p->loops || is_long(p, s))) x->out = out;
}

static bool leads_back(const struct planner *p, uint32_t b)
{
    for (uint32_t i = 0; i < p->c->blocks[b].n_succs; i++)
        if (p->c->rank[p->c->edges[p->c->blocks[b].succ_at + i]] <= p->c->rank[b]) return true;
    return false;
}

/* Do lanes that take this way of the branch at the end of b go on before any come to the branch again? Then they are
 * those of one round. */
static bool goes_at_once(const struct planner *p, uint32_t b, uint32_t s)
{
    for (uint32_t l = p->nest->loop_of[b]; l != MG_NO_LOOP; l = p->nest->loops[l].parent)
        for (uint32_t x = 0; x < p->c->n_blocks; x++)
            if (mg_loops_contains(p->nest, l, x) && leads_back(p, x) && p->c->rank[x] <= p->c->rank[s]) return false;
    return true;
}

static bool may_be_counted(const struct planner *p, uint32_t s)
{
    const struct mg_lanes_block *x = &p->l->blocks[s];
    return s && x->ask == MG_LANES_ASKS && p->c->blocks[s].n_preds == 1 && !x->behind && x->out == MG_NO_BLOCK;
}

/* Two ways are cheaper counted at once, and one where lanes are those of the kernel's entry: mostly all of a warp,
 * which mostly go the same way. */
static void choose_sides(struct planner *p, uint32_t b)
{
    struct mg_lanes_block *x = &p->l->blocks[b];
    const uint32_t *to = &p->c->edges[p->c->blocks[b].succ_at];
    uint32_t s = x->told_by, o = to[0] == s ? to[1] : to[0];
    if (!p->gpu || s == MG_NO_BLOCK || !may_be_counted(p, s)) return;
    if (p->l->busy && p->nest->loop_of[b] == MG_NO_LOOP) return; /* words near the threads are cheaper */
    bool both = may_be_counted(p, o) && p->l->blocks[o].tells == MG_NO_BLOCK && goes_at_once(p, b, o);
    if (!both && (p->u->at_end[b] != 0 || p->nest->loop_of[b] == MG_NO_LOOP)) return;
    x->sides = p->l->blocks[s].at_branch = true;
    p->l->blocks[o].at_branch = both;
}

static void choose_teller(struct planner *p, uint32_t b)
{
    const struct mg_block *k = &p->c->blocks[b];
    struct mg_lanes_block *x = &p->l->blocks[b];
    if (p->u->at_end[b] != 0 && may_gather(p, b)) return;
    x->mask = mask_of(p, b);
    for (unsigned i = 0; i < 4 && x->told_by == MG_NO_BLOCK; i++) {
        uint32_t s = p->c->edges[k->succ_at + i % 2], other = p->c->edges[k->succ_at + (i + 1) % 2], q = MG_NO_BLOCK;
        if (!can_tell(p, s) || p->c->rank[s] >= p->c->rank[other])
            continue; /* who goes first waits for nobody: lanes of one round alone */
        if (i < 2 ? s == b || p->c->blocks[s].n_preds != 1
                  : x->mask == MG_NO_BLOCK || (q = other_way_in(p, s, b)) == MG_NO_BLOCK)
            continue;
        p->l->blocks[s].tells = b;
        p->l->blocks[s].enters = q;
        if (s == b)
            choose_rounds(p, b);
        else
            p->l->blocks[s].repeats = q != MG_NO_BLOCK && may_repeat(p, s);
        x->told_by = s;
    }
}

static void look_at_branches(struct planner *p)
{
    for (uint32_t i = 0; i < p->c->n_blocks; i++) {
        uint32_t b = p->c->rpo[i];
        struct mg_lanes_block *x = &p->l->blocks[b];
        mg_id guard = p->m->nodes.at[p->c->blocks[b].last].guard;
        if (!is_bra(p, b)) continue;
        x->varies = p->u->at_end[b] == MG_NO_COHORT || guard < p->u->reg_lo || guard >= p->u->reg_hi ||
                    p->u->varying[guard - p->u->reg_lo];
        if (x->varies && p->c->reachable[b]) choose_teller(p, b);
    }
}

static bool asks_often(const struct planner *p)
{
    for (uint32_t b = 0; b < p->c->n_blocks; b++)
        if (p->l->blocks[b].ask == MG_LANES_ENTRY && p->c->reachable[b] && p->nest->loop_of[b] != MG_NO_LOOP)
            return true;
    return false;
}

static bool is_busy(const struct planner *p)
{
    uint32_t asks = 0;
    for (uint32_t b = 0; b < p->c->n_blocks; b++)
        asks += p->l->blocks[b].ask == MG_LANES_ASKS && p->c->reachable[b] && p->nest->loop_of[b] == MG_NO_LOOP;
    return asks >= FEW;
}

struct mg_lanes_plan *mg_lanes_plan_new(struct mg_patch *patch, uint32_t func_ix)
{
    struct planner p = {.c = mg_patch_cfg(patch, func_ix),
                        .dom = mg_patch_dom(patch, func_ix),
                        .loops = func_ix ? NULL : mg_patch_loops(patch, func_ix),
                        .gpu = !mg_patch_module(patch)->marked && mg_patch_module(patch)->sm >= 80,
                        .l = mg_xcalloc(1, sizeof *p.l)};
    p.nest = mg_patch_loops(patch, func_ix);
    bool *may_leave = mg_xcalloc(p.c->n_blocks + 1, 1);
    for (uint32_t b = 0; b < p.c->n_blocks; b++) may_leave[b] = mg_patch_may_leave(patch, func_ix, b);
    struct mg_equiv *e = mg_equiv_new(p.c, may_leave);
    p.may_leave = may_leave;
    p.m = p.c->m;
    p.l->n_blocks = p.c->n_blocks;
    p.l->blocks = mg_xcalloc(p.c->n_blocks + 1, sizeof *p.l->blocks);
    p.l->post = mg_postdom_new(p.c);
    struct mg_uniform *u = mg_uniform_new_barriers(p.c, mg_patch_loops(patch, func_ix), p.dom, p.l->post,
                                                   e); /* functions have no cohorts */
    p.u = u;
    choose(&p, e);
    look_at_branches(&p);
    p.l->busy = !func_ix && is_busy(&p);
    p.l->asks_often = !func_ix && asks_often(&p);
    for (uint32_t b = 0; b < p.c->n_blocks; b++) choose_sides(&p, b);
    mg_uniform_free(u);
    mg_equiv_free(e);
    free(may_leave);
    return p.l;
}

void mg_lanes_plan_free(struct mg_lanes_plan *l)
{
    if (!l) return;
    mg_dom_free(l->post);
    free(l->blocks);
    free(l);
}
