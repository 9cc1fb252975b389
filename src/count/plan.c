/* Planning: builds the graph of plan.h, prices every edge by the cheapest way to measure it, keeps a
 * spanning tree of greatest cost and orders its edges for solving. */
#include <stdlib.h>
#include <string.h>

#include "analysis/equiv.h"
#include "count/plan.h"
#include "insert/place.h"

#define CHOSEN  (UINT32_MAX - 4) /* edge.from while planning: measured, whatever the tree says */
#define FOLLOWS (UINT32_MAX / 2) /* + the edge whose measure it shares */
#define FLUSH   10.0
#define NEVER   1e300 /* what cannot be measured has to be in the tree */

struct edge {
    uint32_t a, b;
    double cost;
    struct mg_count how; /* to measure it */
    uint32_t from;       /* MG_FLOW_OPEN: may be measured; else known */
    bool dead;           /* block that no path reaches */
};

struct planner {
    const struct mg_cfg *c;
    const struct mg_count_opts *o;
    struct mg_count_plan *p;
    struct edge *edges;
    uint32_t n_edges, n_nodes;
    uint32_t *edge_of;      /* cfg edge -> edge */
    uint32_t *group;        /* union-find over nodes */
    uint32_t *exact_edge;   /* loop of known length -> its latch's edge; else an edge that is none */
    bool *joined;           /* block whose branch does as an earlier one */
    struct mg_equiv *equiv; /* these two where somebody has asked for them */
    struct mg_defs def;
};

static unsigned end_op(const struct mg_cfg *c, uint32_t b)
{
    return mg_node_form(c->m, &c->m->nodes.at[c->blocks[b].last])->op;
}

/* Lanes that leave early with nothing counted need no flush of their own. It costs them FLUSH when some
 * lane of nearly every warp takes this way while the others, in loops, count and flush later. */
static double leaving_cost(const struct planner *x, uint32_t block, uint32_t edge)
{
    const struct mg_freq *f = x->p->freq;
    bool leaves = f->trivial[x->c->edges[edge]] && x->p->loops->loop_of[block] == MG_NO_LOOP;
    if (!leaves || !x->p->loops->n_loops || !f->parts[block]) return 0;
    return x->o->measured ? MG_MIN(32 * f->edge[edge], f->block[block]) * FLUSH : f->block[block] * FLUSH;
}

/* Does the edge leave a loop for where other ways join? Lanes that end their rounds one by one then have to be gathered
 * for what stands on it, and once more behind. */
static bool ends_rounds(const struct planner *x, uint32_t block, uint32_t edge)
{
    uint32_t loop = x->p->loops->loop_of[block];
    return loop != MG_NO_LOOP && !mg_loops_contains(x->p->loops, loop, x->c->edges[edge]);
}

/* A block inside of what such a branch jumps over that branches on: what counts there is in the way as well. What that
 * costs; 0: it is none. */
static double crowding(const struct planner *x, uint32_t block)
{
    const struct mg_cfg *c = x->c;
    const struct mg_block *k = &c->blocks[block];
    if (!block || k->n_preds != 1 || k->n_succs != 2) return 0;
    uint32_t from = c->preds[k->pred_at];
    const struct mg_block *a = &c->blocks[from];
    bool inside = from + 1 == block && a->n_succs == 2 && mg_edge_jumps_over_little(c, from, c->edges[a->succ_at + 1]);
    return inside ? 2 * x->p->freq->block[from] : 0;
}

static double plain_cost(const struct planner *x, uint32_t block, uint32_t edge)
{
    const struct mg_freq *f = x->p->freq;
    const struct mg_node *end = &x->c->m->nodes.at[x->c->blocks[block].last];
    if (mg_node_form(x->c->m, end)->op == MG_OP_brx && end->guard) return NEVER;
    switch (mg_edge_place(x->c, f, block, edge)) {
    case MG_PLACE_AWAY:
        return 2 * f->edge[edge] + leaving_cost(x, block, edge);
    case MG_PLACE_FALL:
        if (x->o->measured && ends_rounds(x, block, edge)) return 3 * f->edge[edge] + leaving_cost(x, block, edge);
        return f->edge[edge] + leaving_cost(x, block, edge);
    case MG_PLACE_HEAD:
        return f->edge[edge] + leaving_cost(x, block, edge);
    case MG_PLACE_GUARD: /* it waits for the predicate */
        return leaving_cost(x, block, edge) +
               (mg_edge_jumps_over_little(x->c, block, x->c->edges[edge]) ? 1.2 : 1.5) * f->block[block];
    default:
        return f->edge[edge];
    }
}

static double edge_cost(const struct planner *x, uint32_t block, uint32_t edge)
{
    double cost = plain_cost(x, block, edge), crowded = crowding(x, block);
    if (mg_edge_place(x->c, x->p->freq, block, edge) == MG_PLACE_HEAD)
        crowded = MG_MAX(crowded, crowding(x, x->c->edges[edge]));
    return MG_MAX(cost, crowded);
}

/* ---- how wide a counter has to be ------------------------------------------------------------------- */

/* Innermost loop around both blocks. */
static uint32_t common_loop(const struct planner *x, uint32_t a, uint32_t b)
{
    uint32_t loop = x->p->loops->loop_of[a];
    while (loop != MG_NO_LOOP && !mg_loops_contains(x->p->loops, loop, b)) loop = x->p->loops->loops[loop].parent;
    return loop;
}

/* Of something that happens at most once in a round of `loop`. */
static enum mg_count_width width_in(const struct mg_count_plan *p, uint32_t loop, bool latch)
{
    const struct mg_loops *l = p->loops;
    const struct mg_ivs *v = p->ivs;
    unsigned bits;
    bool below;
    if (loop == MG_NO_LOOP) return MG_WIDTH_BIT;
    if (latch && l->loops[loop].parent == MG_NO_LOOP && v->trips[loop] != MG_TRIPS_ANY) return MG_WIDTH_32;
    return mg_ivs_most(v, l, loop, &bits, &below) && bits + !below <= 32 ? MG_WIDTH_32 : MG_WIDTH_64;
}

/* Does that happen at most MG_COUNT_FEW times, since the loops around it are rests of others? */
static bool is_few(const struct mg_count_plan *p, uint32_t loop)
{
    unsigned bits;
    bool below;
    return mg_ivs_most(p->ivs, p->loops, loop, &bits, &below) && below && bits <= 2;
}

enum mg_count_width mg_count_block_width(const struct mg_count_plan *p, uint32_t block)
{
    return width_in(p, p->loops->loop_of[block], false);
}

/* ---- the graph -------------------------------------------------------------------------------------- */

static struct edge *add_edge(struct planner *x, uint32_t a, uint32_t b, struct mg_count how, double cost)
{
    struct edge *e = &x->edges[x->n_edges++];
    how.events = cost;
    if (how.width == MG_WIDTH_64) cost *= x->o->wide_is_one ? 1.01 : 1.8; /* two instructions */
    *e = (struct edge){.a = a, .b = b, .cost = cost, .how = how, .from = MG_FLOW_OPEN};
    return e;
}

static bool leaves_in_call(const struct planner *x, uint32_t b)
{
    return x->o->may_leave && x->o->may_leave[b];
}

static void build_graph(struct planner *x)
{
    const struct mg_cfg *c = x->c;
    const struct mg_freq *f = x->p->freq;
    uint32_t n = c->n_blocks, end = 2 * n;
    for (uint32_t b = 0; b < n; b++) {
        struct mg_count how = {.kind = MG_COUNT_BLOCK,
                               .block = b,
                               .width = width_in(x->p, x->p->loops->loop_of[b], false),
                               .few = is_few(x->p, x->p->loops->loop_of[b])};
        add_edge(x, 2 * b, 2 * b + 1, how, MG_MAX(f->block[b], crowding(x, b)))->dead = !c->reachable[b];
    }
    struct edge *entry =
        add_edge(x, end, 0, (struct mg_count){.kind = MG_COUNT_ENTRY}, f->block[0] > 0 ? f->block[0] : 1);
    if (x->o->entries_known) entry->from = MG_FLOW_ENTRIES;
    for (uint32_t b = 0; b < n; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b]) continue;
        for (uint32_t s = 0; s < k->n_succs; s++) {
            uint32_t id = k->succ_at + s, to = c->edges[id], loop = common_loop(x, b, to);
            bool latch = loop != MG_NO_LOOP && x->p->loops->loops[loop].header == to && x->p->ivs->latch[loop] == b;
            struct mg_count how = {.kind = MG_COUNT_EDGE,
                                   .block = b,
                                   .edge = id,
                                   .width = width_in(x->p, loop, latch),
                                   .few = is_few(x->p, loop)};
            x->edge_of[id] = x->n_edges;
            add_edge(x, 2 * b + 1, 2 * to, how, edge_cost(x, b, id));
        }
        bool in_call = leaves_in_call(x, b);
        if (!k->leaves && !in_call) continue;
        bool cannot = in_call || end_op(c, b) == MG_OP_brx;
        double cost = cannot ? NEVER : k->n_succs ? f->block[b] : f->leave[b];
        struct edge *e = add_edge(x, 2 * b + 1, end, (struct mg_count){.kind = MG_COUNT_LEAVE, .block = b}, cost);
        if (!in_call && end_op(c, b) == MG_OP_trap) e->from = MG_FLOW_ZERO;
    }
}

/* ---- branches ------------------------------------------------------------------------------------------ */

static bool is_fork(const struct planner *x, uint32_t b)
{
    const struct mg_node *end = &x->c->m->nodes.at[x->c->blocks[b].last];
    return x->c->reachable[b] && end->guard && x->c->blocks[b].n_succs == 2 && !x->c->blocks[b].leaves &&
           mg_node_form(x->c->m, end)->op == MG_OP_bra;
}

/* The edge taken when the branch's predicate has the value. */
static uint32_t way(const struct planner *x, uint32_t b, bool value)
{
    const struct mg_node *end = &x->c->m->nodes.at[x->c->blocks[b].last];
    bool taken = value != ((end->flags & MG_NF_GUARD_NOT) != 0);
    return x->edge_of[x->c->blocks[b].succ_at + taken];
}

/* Classes of blocks, and what writes registers. */
static void ask(struct planner *x)
{
    if (x->equiv) return;
    x->def = mg_single_defs(x->c);
    x->equiv = mg_equiv_new(x->c, x->o->may_leave);
}

/* ---- induction variables ------------------------------------------------------------------------------ */

/* Cost of code on every way into the loop and out of it; NEVER where some way cannot hold code. */
static double rim_cost(const struct planner *x, uint32_t loop)
{
    const struct mg_cfg *c = x->c;
    const struct mg_loops *l = x->p->loops;
    double sum = 0;
    if (l->loops[loop].header == 0 || l->loops[loop].n_headers != 1) return NEVER;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        if (!c->reachable[b]) continue;
        bool inside = mg_loops_contains(l, loop, b);
        if (inside && (leaves_in_call(x, b) || (x->o->calls_back && x->o->calls_back[b]))) return NEVER;
        if (inside && k->leaves && end_op(c, b) != MG_OP_trap)
            sum += k->n_succs ? x->p->freq->block[b] : x->p->freq->leave[b];
        for (uint32_t s = 0; s < k->n_succs; s++) {
            uint32_t to = c->edges[k->succ_at + s];
            bool enters = !inside && to == l->loops[loop].header, exits = inside && !mg_loops_contains(l, loop, to);
            if (enters || exits) sum += edge_cost(x, b, k->succ_at + s);
        }
    }
    return sum;
}

static void offer_iv(struct planner *x, uint32_t i, double rim)
{
    const struct mg_iv *v = &x->p->ivs->list[i];
    const struct mg_loops *l = x->p->loops;
    uint32_t latch = x->p->ivs->latch[v->loop];
    enum mg_trips trips = (enum mg_trips)x->p->ivs->trips[v->loop];
    struct mg_count how = {.kind = MG_COUNT_IV,
                           .iv = i,
                           .width = MG_WIDTH_64,
                           .one_run = l->loops[v->loop].parent == MG_NO_LOOP,
                           .block = v->block};
    uint32_t target = v->block; /* the edge that it measures: the block's own */
    bool fits = trips != MG_TRIPS_ANY && x->p->ivs->trip_bits[v->loop] <= 32 - v->shift &&
                (trips == MG_TRIPS_BELOW || v->last != MG_IV_MAYBE);
    how.carries = v->bits == 32 && !fits;
    if (how.carries && (!v->step || x->p->ivs->carry_used)) return;
    if (v->bits == 32 && fits) {
        how.less_one = trips != MG_TRIPS_BELOW && v->last == MG_IV_ALWAYS;
        if (how.one_run) how.width = MG_WIDTH_32;
        if (how.less_one) {
            if (latch == MG_NO_BLOCK) return;
            const struct mg_block *k = &x->c->blocks[latch];
            for (uint32_t s = 0; s < k->n_succs; s++)
                if (x->c->edges[k->succ_at + s] == l->loops[v->loop].header) target = x->edge_of[k->succ_at + s];
        }
    }
    how.few = !how.carries && is_few(x->p, v->loop);
    double cost = rim * (how.one_run ? 1.0 : 1.5) + how.carries * x->p->freq->block[v->block] + 1e-3 * (v->shift != 0) +
                  1e-4 * (v->bits == 64);
    if (cost >= x->edges[target].cost) return;
    how.events = rim;
    x->edges[target].how = how;
    x->edges[target].cost = cost;
}

/* ---- branches that no round changes -------------------------------------------------------------------- */

/* Has the register one value at block b as long as the loop runs: written in front of it, or in it from such values? */
static bool is_steady(const struct planner *x, uint32_t loop, uint32_t b, mg_id reg, unsigned depth)
{
    const struct mg_module *m = x->c->m;
    mg_id def = mg_def_of(&x->def, reg), uses[16];
    uint32_t at = def ? mg_cfg_block_of(x->c, def) : MG_NO_BLOCK;
    if (at == MG_NO_BLOCK) return false;
    if (!mg_loops_contains(x->p->loops, loop, at)) return true;
    if (!mg_dom_over(x->p->dom, at, b)) return false;
    const struct mg_node *n = &m->nodes.at[def];
    const struct mg_form *f = mg_node_form(m, n);
    bool plain = f->op == MG_OP_setp || f->op == MG_OP_and || f->op == MG_OP_or || f->op == MG_OP_not;
    if (!depth || !plain || n->guard) return false;
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        enum mg_opnd_kind kind = m->opnds.at[n->opnd + i].kind;
        if (kind != MG_OPND_reg && kind != MG_OPND_imm && kind != MG_OPND_not) return false;
    }
    uint32_t k = mg_node_uses(m, def, uses, MG_COUNT_OF(uses));
    for (uint32_t i = 0; i < k; i++)
        if (i >= MG_COUNT_OF(uses) || !is_steady(x, loop, b, uses[i], depth - 1)) return false;
    return true;
}

/* Adds what has to hold for block b to run in a round in which the variable steps; false: not known. */
static bool find_ifs(const struct planner *x, const struct mg_iv *v, uint32_t b, struct mg_count *how)
{
    const struct mg_cfg *c = x->c;
    while (x->equiv->class_of[b] != x->equiv->class_of[v->block]) {
        const struct mg_block *k = &c->blocks[b];
        uint32_t from = k->n_preds == 1 && b ? c->preds[k->pred_at] : MG_NO_BLOCK, up = x->p->dom->idom[b];
        if (k->n_preds > 1) { /* ways join: where they parted */
            while (up != MG_NO_BLOCK && x->equiv->class_of[up] != x->equiv->class_of[b]) up = x->p->dom->idom[up];
            if (up == MG_NO_BLOCK || x->p->loops->loop_of[up] != v->loop) return false;
            b = up;
            continue;
        }
        if (from == MG_NO_BLOCK || x->p->loops->loop_of[from] != v->loop || !is_fork(x, from) ||
            how->n_ifs == MG_COUNT_IFS)
            return false;
        const struct mg_node *end = &c->m->nodes.at[c->blocks[from].last];
        const uint32_t *to = &c->edges[c->blocks[from].succ_at];
        if (to[0] == to[1] || !is_steady(x, v->loop, from, end->guard, 3)) return false;
        bool taken = to[1] == b;
        how->ifs[how->n_ifs++] = (struct mg_count_if){end->guard, taken == ((end->flags & MG_NF_GUARD_NOT) != 0)};
        b = from;
    }
    return true;
}

static bool tells_all(const struct planner *x, const struct mg_iv *v)
{
    enum mg_trips trips = (enum mg_trips)x->p->ivs->trips[v->loop];
    return v->bits == 64 || (trips != MG_TRIPS_ANY && x->p->ivs->trip_bits[v->loop] <= 32 - v->shift &&
                             (trips == MG_TRIPS_BELOW || v->last != MG_IV_MAYBE));
}

/* What a variable tells of rounds for which more holds, or only this. */
static struct mg_count rounds_of(const struct planner *x, uint32_t i, double rim)
{
    const struct mg_iv *v = &x->p->ivs->list[i];
    bool one_run = x->p->loops->loops[v->loop].parent == MG_NO_LOOP,
         less_one = v->bits == 32 && x->p->ivs->trips[v->loop] != MG_TRIPS_BELOW && v->last == MG_IV_ALWAYS;
    struct mg_count how = {.kind = MG_COUNT_IV,
                           .iv = i,
                           .block = v->block,
                           .one_run = one_run,
                           .less_one = less_one,
                           .restores = less_one,
                           .events = rim};
    how.width = v->bits == 32 && one_run && !less_one ? MG_WIDTH_32 : MG_WIDTH_64;
    return how;
}

/* Ways of branches inside the variable's loop that go one way in all its rounds: what the variable tells, or nothing.
 * Returns what that saves; only with `take` it is offered. */
static double offer_steady(struct planner *x, uint32_t i, double rim, bool take)
{
    const struct mg_cfg *c = x->c;
    const struct mg_iv *v = &x->p->ivs->list[i];
    double cost =
        rim *
        (x->p->loops->loops[v->loop].parent == MG_NO_LOOP
             ? 0.5
             : 0.8); /* the entry is for all of them; what stands in loops costs each warp of which a lane comes by */
    double saved = 0;
    if (!tells_all(x, v)) return 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (x->p->loops->loop_of[b] != v->loop || !is_fork(x, b)) continue;
        ask(x);
        const struct mg_node *end = &c->m->nodes.at[c->blocks[b].last];
        struct mg_count how = rounds_of(x, i, rim);
        if (!is_steady(x, v->loop, b, end->guard, 3) || !find_ifs(x, v, b, &how) || how.n_ifs == MG_COUNT_IFS) continue;
        bool value =
            x->edges[way(x, b, true)].cost > x->edges[way(x, b, false)].cost; /* of the dearer way; the other follows */
        struct edge *e = &x->edges[way(x, b, value)];
        if (cost >= e->cost || c->edges[c->blocks[b].succ_at] == c->edges[c->blocks[b].succ_at + 1]) continue;
        saved += e->cost - cost;
        if (!take) continue;
        how.ifs[how.n_ifs++] = (struct mg_count_if){end->guard, !value};
        e->how = how;
        e->cost = cost;
    }
    for (uint32_t k = 0; take && saved > 0 && k < x->n_edges;
         k++) { /* what it tells without a condition rather than an event in the loop */
        struct edge *e = &x->edges[k];
        if (e->how.kind == MG_COUNT_IV && e->how.iv == i && !e->how.n_ifs) e->cost = MG_MIN(e->cost, cost);
    }
    return saved;
}

/* Loops without such a variable: is it worth to step one for their rounds? */
static void offer_own(struct planner *x, uint32_t loop)
{
    struct mg_ivs *v = x->p->ivs;
    uint32_t header = x->p->loops->loops[loop].header, i = v->n;
    if (v->trips[loop] == MG_TRIPS_ANY || v->exact[loop]) return;
    for (uint32_t k = 0; k < v->n; k++)
        if (v->list[k].loop == loop && tells_all(x, &v->list[k])) return;
    double rim = rim_cost(x, loop), round = x->p->freq->block[header];
    if (rim >= NEVER) return;
    v->list = mg_xrealloc(v->list, sizeof *v->list * (i + 1));
    v->list[i] = (struct mg_iv){.loop = loop, .block = header, .bits = 32, .last = MG_IV_ALWAYS, .own = true};
    v->n++;
    if (offer_steady(x, i, rim, false) <= 1.5 * round) {
        v->n--;
        return;
    }
    x->edges[header].how = rounds_of(x, i, rim);
    x->edges[header].cost = rim;
    offer_steady(x, i, rim, true);
}

static void offer_ivs(struct planner *x)
{
    uint32_t loop = MG_NO_LOOP;
    double rim = NEVER;
    for (uint32_t i = 0; i < x->p->ivs->n; i++) {
        if (x->p->ivs->list[i].loop != loop) rim = rim_cost(x, loop = x->p->ivs->list[i].loop);
        if (rim >= NEVER) continue;
        offer_iv(x, i, rim);
        if (!x->o->no_ifs) offer_steady(x, i, rim, true);
    }
    for (uint32_t l = 0; !x->o->no_ifs && l < x->p->loops->n_loops; l++) offer_own(x, l);
}

/* ---- loops of known length ---------------------------------------------------------------------------- */

/* Their latch need not be measured. They must keep the rest of the graph connected inside: checked
 * once the tree is there. */
static void mark_exact(struct planner *x)
{
    const struct mg_loops *l = x->p->loops;
    for (uint32_t i = 0; i < l->n_loops; i++) {
        uint32_t latch = x->p->ivs->latch[i];
        if (!x->p->ivs->exact[i] || latch == MG_NO_BLOCK || l->loops[i].header == 0) continue;
        const struct mg_block *k = &x->c->blocks[latch];
        for (uint32_t s = 0; s < k->n_succs; s++)
            if (x->c->edges[k->succ_at + s] == l->loops[i].header) {
                x->exact_edge[i] = x->edge_of[k->succ_at + s];
                x->edges[x->exact_edge[i]].from = MG_FLOW_LOOP;
            }
    }
}

/* Is the way through the tree from one end of the latch's edge to the other inside the loop? Then
 * nothing outside depends on it. */
static bool stays_inside(const struct planner *x, const bool *tree, uint32_t loop)
{
    const struct mg_loops *l = x->p->loops;
    const struct edge *e = &x->edges[x->exact_edge[loop]];
    uint32_t *group = mg_xmalloc(sizeof *group * (x->n_nodes + 1));
    for (uint32_t i = 0; i < x->n_nodes; i++) group[i] = i;
    for (uint32_t i = 0; i < x->n_edges; i++) {
        uint32_t a = x->edges[i].a, b = x->edges[i].b;
        if (!tree[i] || a / 2 >= x->c->n_blocks || b / 2 >= x->c->n_blocks || !mg_loops_contains(l, loop, a / 2) ||
            !mg_loops_contains(l, loop, b / 2))
            continue;
        while (group[a] != a) a = group[a] = group[group[a]];
        while (group[b] != b) b = group[b] = group[group[b]];
        group[a] = b;
    }
    uint32_t a = e->a, b = e->b;
    while (group[a] != a) a = group[a];
    while (group[b] != b) b = group[b];
    free(group);
    return a == b;
}

static int by_depth(const void *a, const void *b)
{
    const struct mg_flow_loop *x = a, *y = b;
    return x->depth != y->depth ? (x->depth < y->depth ? -1 : 1) : x->latch < y->latch ? -1 : x->latch > y->latch;
}

static void keep_loops(struct planner *x)
{
    struct mg_flow *f = &x->p->flow;
    const struct mg_loops *l = x->p->loops;
    const struct mg_cfg *c = x->c;
    uint32_t n = 0;
    f->loops = mg_xcalloc(l->n_loops + 1, sizeof *f->loops);
    f->entries = mg_xcalloc(x->n_edges + 1, sizeof *f->entries);
    for (uint32_t i = 0; i < l->n_loops; i++) {
        if (x->edges[x->exact_edge[i]].from != MG_FLOW_LOOP) continue;
        uint32_t h = l->loops[i].header;
        struct mg_flow_loop *to = &f->loops[f->n_loops++];
        *to = (struct mg_flow_loop){
            .latch = x->exact_edge[i], .entry_at = n, .depth = l->loops[i].depth, .times = x->p->ivs->exact[i] - 1};
        for (uint32_t p = 0; p < c->blocks[h].n_preds; p++) {
            uint32_t from = c->preds[c->blocks[h].pred_at + p];
            if (mg_loops_contains(l, i, from) || !c->reachable[from]) continue;
            for (uint32_t s = 0; s < c->blocks[from].n_succs; s++)
                if (c->edges[c->blocks[from].succ_at + s] == h)
                    f->entries[n++] = x->edge_of[c->blocks[from].succ_at + s];
        }
        to->n_entries = n - to->entry_at;
    }
    if (f->n_loops) qsort(f->loops, f->n_loops, sizeof *f->loops, by_depth);
}

/* ---- branches that agree ------------------------------------------------------------------------------ */

/* Branches on one predicate, which is written in one place, in blocks that run equally often, one
 * after the other: each goes where the first has gone, so one edge measures all. */
static void join_branches(struct planner *x)
{
    const struct mg_cfg *c = x->c;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!is_fork(x, b)) continue;
        mg_id p = c->m->nodes.at[c->blocks[b].last].guard;
        ask(x);
        if (!mg_def_of(&x->def, p) || x->joined[b]) continue;
        uint32_t best = UINT32_MAX, n = 1;
        for (uint32_t k = 0; k < 2; k++)
            if (best == UINT32_MAX || x->edges[way(x, b, k)].cost < x->edges[best].cost) best = way(x, b, k);
        bool value = best == way(x, b, true);
        for (uint32_t i = b + 1; i < c->n_blocks; i++) {
            if (!is_fork(x, i) || x->edges[way(x, i, value)].from != MG_FLOW_OPEN ||
                c->m->nodes.at[c->blocks[i].last].guard != p || x->equiv->class_of[i] != x->equiv->class_of[b] ||
                !mg_dom_over(x->p->dom, b, i))
                continue;
            x->joined[i] = true;
            x->edges[way(x, i, value)].from = FOLLOWS + best;
            n++;
        }
        if (n > 1 && x->edges[best].from == MG_FLOW_OPEN) x->edges[best].from = CHOSEN;
    }
}

/* ---- the tree --------------------------------------------------------------------------------------- */

static uint32_t group_of(uint32_t *group, uint32_t n)
{
    while (group[n] != n) n = group[n] = group[group[n]];
    return n;
}

struct ranked {
    double cost;
    uint32_t edge;
};

static int by_cost(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static void span(struct planner *x, bool *tree)
{
    struct ranked *order = mg_xmalloc(sizeof *order * (x->n_edges + 1));
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_nodes; i++) x->group[i] = i;
    memset(tree, 0, x->n_edges);
    for (uint32_t i = 0; i < x->n_edges; i++)
        if (!x->edges[i].dead && x->edges[i].from == MG_FLOW_OPEN) order[n++] = (struct ranked){x->edges[i].cost, i};
    qsort(order, n, sizeof *order, by_cost);
    for (uint32_t i = 0; i < n; i++) {
        struct edge *e = &x->edges[order[i].edge];
        uint32_t a = group_of(x->group, e->a), b = group_of(x->group, e->b);
        tree[order[i].edge] = a != b;
        x->group[a] = b;
    }
    free(order);
}

/* What is known some other way closes no cycle into the tree: it stays out of it. */
static void choose(struct planner *x)
{
    bool *tree = mg_xcalloc(x->n_edges + 1, sizeof *tree);
    for (bool again = true; again;) {
        again = false;
        span(x, tree);
        for (uint32_t i = 0; i < x->p->loops->n_loops; i++) {
            struct edge *e = &x->edges[x->exact_edge[i]];
            if (e->from != MG_FLOW_LOOP || stays_inside(x, tree, i)) continue;
            e->from = MG_FLOW_OPEN;
            again = true;
        }
    }
    x->p->list = mg_xcalloc(x->n_edges + 1, sizeof *x->p->list);
    for (uint32_t i = 0; i < x->n_edges; i++) {
        struct edge *e = &x->edges[i];
        if (e->dead || tree[i] || (e->from != MG_FLOW_OPEN && e->from != CHOSEN)) continue;
        x->p->fails |= e->cost >= NEVER;
        e->from = x->p->n;
        x->p->list[x->p->n++] = e->how;
    }
    for (uint32_t i = 0; i < x->n_edges; i++)
        if (x->edges[i].from >= FOLLOWS && x->edges[i].from < CHOSEN)
            x->edges[i].from = x->edges[x->edges[i].from - FOLLOWS].from;
    free(tree);
}

/* Open edges, leaves of the tree first. */
static void order_steps(struct planner *x)
{
    struct mg_flow *f = &x->p->flow;
    uint32_t *at = mg_xcalloc(x->n_nodes + 2, sizeof *at), *list = mg_xcalloc(2 * (size_t)x->n_edges + 1, sizeof *list);
    uint32_t *order = mg_xcalloc(x->n_nodes + 1, sizeof *order), *parent = mg_xcalloc(x->n_nodes + 1, sizeof *parent),
             n = 0;
    bool *seen = mg_xcalloc(x->n_nodes + 1, sizeof *seen);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < x->n_edges; i++) {
            const struct mg_flow_edge *e = &f->edges[i];
            if (e->a == e->b || e->from != MG_FLOW_OPEN) continue;
            if (pass)
                list[at[e->a]++] = i, list[at[e->b]++] = i;
            else
                at[e->a + 1]++, at[e->b + 1]++;
        }
        if (!pass)
            for (uint32_t i = 0; i < x->n_nodes; i++) at[i + 1] += at[i];
    }
    for (uint32_t i = x->n_nodes; i > 0; i--) at[i] = at[i - 1];
    at[0] = 0;
    f->steps = mg_xcalloc(x->n_nodes + 1, sizeof *f->steps);
    for (uint32_t root = x->n_nodes; root-- > 0;) { /* END first: the tree that holds it has it as root */
        if (seen[root]) continue;
        seen[root] = true;
        parent[root] = UINT32_MAX;
        uint32_t from = n;
        order[n++] = root;
        for (uint32_t i = from; i < n; i++)
            for (uint32_t k = at[order[i]]; k < at[order[i] + 1]; k++) {
                const struct mg_flow_edge *e = &f->edges[list[k]];
                uint32_t y = e->a == order[i] ? e->b : e->a;
                if (seen[y]) continue;
                seen[y] = true;
                parent[y] = list[k];
                order[n++] = y;
            }
    }
    while (n-- > 0)
        if (parent[order[n]] != UINT32_MAX) f->steps[f->n_steps++] = (struct mg_flow_step){parent[order[n]], order[n]};
    free(at);
    free(list);
    free(order);
    free(parent);
    free(seen);
}

static void keep_flow(struct planner *x)
{
    struct mg_flow *f = &x->p->flow;
    f->n_blocks = x->c->n_blocks;
    f->n_nodes = x->n_nodes;
    f->n_edges = x->n_edges;
    f->edges = mg_xcalloc(x->n_edges + 1, sizeof *f->edges);
    for (uint32_t i = 0; i < x->n_edges; i++) {
        const struct edge *e = &x->edges[i];
        f->edges[i] = (struct mg_flow_edge){e->a, e->dead ? e->a : e->b, e->dead ? MG_FLOW_ZERO : e->from};
    }
    order_steps(x);
    keep_loops(x);
}

struct mg_count_plan *mg_count_plan_new(const struct mg_cfg *c, const struct mg_count_opts *o)
{
    struct mg_count_plan *p = mg_xcalloc(1, sizeof *p);
    p->loops = mg_loops_new(c);
    p->dom = mg_dom_new(c);
    p->ivs = mg_ivs_new(c, p->dom, p->loops);
    p->freq = mg_freq_new(c, p->loops, o->measured);
    if (!c->n_blocks) return p;
    uint32_t n_cfg = 0, cap;
    for (uint32_t b = 0; b < c->n_blocks; b++) n_cfg += c->blocks[b].n_succs;
    cap = 2 * c->n_blocks + n_cfg + 2;
    struct planner x = {.c = c, .o = o, .p = p, .n_nodes = 2 * c->n_blocks + 1};
    x.edges = mg_xcalloc(cap, sizeof *x.edges);
    x.edge_of = mg_xcalloc(n_cfg + 1, sizeof *x.edge_of);
    x.group = mg_xcalloc(x.n_nodes + 1, sizeof *x.group);
    x.joined = mg_xcalloc(c->n_blocks + 1, sizeof *x.joined);
    x.exact_edge = mg_xcalloc(p->loops->n_loops + 1, sizeof *x.exact_edge);
    build_graph(&x);
    offer_ivs(&x);
    mark_exact(&x);
    join_branches(&x);
    choose(&x);
    keep_flow(&x);
    free(x.edges);
    free(x.edge_of);
    free(x.group);
    free(x.joined);
    free(x.exact_edge);
    free(x.def.at);
    mg_equiv_free(x.equiv);
    return p;
}

void mg_count_plan_free(struct mg_count_plan *p)
{
    if (!p) return;
    mg_flow_release(&p->flow);
    mg_ivs_free(p->ivs);
    mg_freq_free(p->freq);
    mg_dom_free(p->dom);
    mg_loops_free(p->loops);
    free(p->list);
    free(p);
}
