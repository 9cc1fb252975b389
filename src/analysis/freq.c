/* The static guess: each branch gets a probability, probabilities flow from the entry in reverse
 * postorder, and the header of a loop runs LOOP times as often as it is entered.
 *
 *   to where the program stops (brkpt, trap)     not
 *   stays in the loop                            0.9; 0.1 where lanes wait for an mbarrier, which suspends them
 *   @p bra, p = and.pred (all conditions hold)   taken is hot: the guarded body
 *   @p bra, p = or.pred (some condition fails)   taken is cold: the way around
 *   to a block that only leaves                  hot unless equal (all but one thread), cold after a bounds check
 *     or if equal,
 *                                                else hot after a test of loaded data
 *   into a loop, or around it                    into it
 *   if integers are equal                        they are not
 *   anything else                                even, leaning to the fall-through
 */
#include "analysis/freq.h"
#include "analysis/dom.h"
#include "analysis/uniform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOP       10.0
#define STAYS      0.9
#define STOPS      0.001
#define WAIT_INSTS 8 /* of a loop that does nothing but wait */
#define LANES      32.0

struct guess {
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_loops *l;
    struct mg_freq *f;
    struct mg_defs def;
    bool *loaded;  /* register depends on data in memory */
    bool *trivial; /* block that does nothing but leave */
};

/* How often a lane that is in the loop comes to its header. */
static double rounds_of(const struct guess *g, uint32_t loop)
{
    return g->f->waits[loop] ? 1 / STAYS : LOOP;
}

struct mg_defs mg_single_defs(const struct mg_cfg *c)
{
    const struct mg_module *m = c->m;
    struct mg_defs all = {0};
    mg_func_regs(m, c->func, &all.lo, &all.hi);
    all.at = mg_xcalloc(all.hi - all.lo + 1, sizeof *all.at);
    bool *many = mg_xcalloc(all.hi - all.lo + 1, sizeof *many);
    MG_EACH_NODE(m, &m->funcs.at[c->func], id)
    {
        if (m->nodes.at[id].kind != MG_NODE_inst) continue;
        mg_id d[256];
        uint32_t n = mg_node_defs(m, id, d, MG_COUNT_OF(d));
        for (uint32_t i = 0; i < n && i < MG_COUNT_OF(d); i++) {
            if (d[i] < all.lo || d[i] >= all.hi) continue;
            mg_id *at = &all.at[d[i] - all.lo];
            if (*at && *at != id) many[d[i] - all.lo] = true;
            *at = id;
        }
    }
    for (mg_id r = 0; r < all.hi - all.lo; r++)
        if (many[r]) all.at[r] = 0;
    free(many);
    return all;
}

static bool is_loaded(const struct guess *g, mg_id r)
{
    return r >= g->def.lo && r < g->def.hi && g->loaded[r - g->def.lo];
}

static void find_loaded(struct guess *g)
{
    for (unsigned round = 0; round < 3; round++) MG_EACH_NODE(g->m, &g->m->funcs.at[g->c->func], id)
        {
            const struct mg_node *n = &g->m->nodes.at[id];
            if (n->kind != MG_NODE_inst) continue;
            mg_id regs[64];
            const struct mg_form *f = mg_node_form(g->m, n);
            bool from_memory = (f->op_flags & MG_OPF_READS) && f->space != MG_SPACE_param;
            uint32_t k = mg_node_uses(g->m, id, regs, MG_COUNT_OF(regs));
            for (uint32_t i = 0; i < k && i < MG_COUNT_OF(regs); i++) from_memory |= is_loaded(g, regs[i]);
            if (!from_memory) continue;
            k = mg_node_defs(g->m, id, regs, MG_COUNT_OF(regs));
            for (uint32_t i = 0; i < k && i < MG_COUNT_OF(regs); i++)
                if (regs[i] >= g->def.lo && regs[i] < g->def.hi) g->loaded[regs[i] - g->def.lo] = true;
        }
}

static const struct mg_node *end_of(const struct guess *g, uint32_t b)
{
    return &g->m->nodes.at[g->c->blocks[b].last];
}

static unsigned end_op(const struct guess *g, uint32_t b)
{
    return mg_node_form(g->m, end_of(g, b))->op;
}

static void find_trivial(struct guess *g)
{
    for (uint32_t b = g->c->n_blocks; b-- > 0;) {
        const struct mg_block *k = &g->c->blocks[b];
        unsigned op = end_op(g, b);
        bool leaves = (op == MG_OP_ret || op == MG_OP_exit) && !end_of(g, b)->guard;
        bool passes = op == MG_OP_bra && k->n_succs == 1 && g->trivial[g->c->edges[k->succ_at]];
        g->trivial[b] = k->n_insts == 1 && (leaves || passes);
    }
}

static void find_waits(struct guess *g)
{
    const struct mg_cfg *c = g->c;
    uint32_t *insts = mg_xcalloc(g->l->n_loops + 1, sizeof *insts);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t loop = g->l->loop_of[b];
        for (mg_id id = c->blocks[b].first; id; id = id == c->blocks[b].last ? 0 : g->m->nodes.at[id].next) {
            if (g->m->nodes.at[id].kind != MG_NODE_inst) continue;
            const struct mg_form *f = mg_node_form(g->m, &g->m->nodes.at[id]);
            g->f->stops[b] |= (f->op == MG_OP_brkpt || f->op == MG_OP_trap) && !g->m->nodes.at[id].guard;
            if (loop == MG_NO_LOOP) continue;
            insts[loop]++;
            g->f->waits[loop] |=
                f->op == MG_OP_mbarrier && (mg_form_has(f, MG_MOD_try_wait) || mg_form_has(f, MG_MOD_test_wait));
        }
    }
    for (uint32_t k = 0; k < g->l->n_loops; k++) g->f->waits[k] &= insts[k] <= WAIT_INSTS;
    for (uint32_t k = 0; k < g->l->n_loops; k++)
        if (g->l->loops[k].parent != MG_NO_LOOP) g->f->waits[g->l->loops[k].parent] = false;
    free(insts);
}

/* What the guard of a branch is made of: +1 conjunction, -1 disjunction, 0 neither. */
static int shape_of(const struct guess *g, const struct mg_node *branch)
{
    mg_id def = mg_def_of(&g->def, branch->guard);
    if (!def) return 0;
    const struct mg_form *f = mg_node_form(g->m, &g->m->nodes.at[def]);
    int shape = f->op == MG_OP_and || mg_form_has(f, MG_MOD_and) ? 1
                : f->op == MG_OP_or || mg_form_has(f, MG_MOD_or) ? -1
                                                                 : 0;
    return branch->flags & MG_NF_GUARD_NOT ? -shape : shape;
}

int mg_branch_equality(const struct mg_module *m, const struct mg_defs *d, const struct mg_node *branch)
{
    mg_id def = mg_def_of(d, branch->guard);
    if (!def) return 0;
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[def]);
    if (f->op != MG_OP_setp || mg_type_kind((enum mg_type)f->types[0]) == MG_TK_FLOAT) return 0;
    int sense = mg_form_has(f, MG_MOD_eq) ? 1 : mg_form_has(f, MG_MOD_ne) ? -1 : 0;
    return branch->flags & MG_NF_GUARD_NOT ? -sense : sense;
}

/* A loop begins there, or right behind it. */
static bool enters_loop(const struct guess *g, uint32_t from, uint32_t b)
{
    for (unsigned steps = 0; steps < 2 && b != MG_NO_BLOCK; steps++) {
        uint32_t loop = g->l->loop_of[b];
        if (loop != MG_NO_LOOP && g->l->loops[loop].header == b && !mg_loops_contains(g->l, loop, from)) return true;
        const struct mg_block *k = &g->c->blocks[b];
        b = k->n_succs == 1 ? g->c->edges[k->succ_at] : MG_NO_BLOCK;
    }
    return false;
}

static bool stays(const struct guess *g, uint32_t from, uint32_t to)
{
    return g->l->loop_of[from] != MG_NO_LOOP && mg_loops_contains(g->l, g->l->loop_of[from], to);
}

/* Probability that the guarded branch at the end of b is taken. other: where it goes when not. */
static double taken_share(const struct guess *g, uint32_t b, uint32_t taken, uint32_t other)
{
    const struct mg_node *n = end_of(g, b);
    bool stop = taken != MG_NO_BLOCK && g->f->stops[taken];
    if (stop != g->f->stops[other]) return stop ? STOPS : 1 - STOPS;
    if (g->l->loop_of[b] != MG_NO_LOOP) {
        bool stay = taken != MG_NO_BLOCK && stays(g, b, taken), stay_other = stays(g, b, other);
        if (stay != stay_other) return stay != g->f->waits[g->l->loop_of[b]] ? STAYS : 1 - STAYS;
    }
    bool out = taken == MG_NO_BLOCK || g->trivial[taken], out_other = g->trivial[other];
    if (out != out_other) {
        int if_equal = out ? mg_branch_equality(g->m, &g->def, n) : -mg_branch_equality(g->m, &g->def, n);
        double leave = if_equal < 0 || (is_loaded(g, n->guard) && !if_equal) ? 0.9 : 0.1;
        return out ? leave : 1 - leave;
    }
    int shape = shape_of(g, n);
    if (shape) return shape > 0 ? 0.9 : 0.1;
    bool loop = taken != MG_NO_BLOCK && enters_loop(g, b, taken), loop_other = enters_loop(g, b, other);
    if (loop != loop_other) return loop ? 0.85 : 0.15;
    int equal = mg_branch_equality(g->m, &g->def, n);
    return equal > 0 ? 0.3 : equal < 0 ? 0.7 : 0.45;
}

/* Lanes of one warp that part here: some leave, others go on and count. */
static bool parts_by_data(const struct guess *g, uint32_t b)
{
    const struct mg_node *n = end_of(g, b);
    return n->guard && is_loaded(g, n->guard);
}

static void guess_shares(struct guess *g, uint32_t b, double *leave)
{
    const struct mg_block *k = &g->c->blocks[b];
    double *share = g->f->share + k->succ_at;
    unsigned op = end_op(g, b);
    const struct mg_node *n = end_of(g, b);
    *leave = 0;
    if (op == MG_OP_trap || op == MG_OP_ret || op == MG_OP_exit) {
        double out = op == MG_OP_trap ? 0 : k->n_succs ? taken_share(g, b, MG_NO_BLOCK, g->c->edges[k->succ_at]) : 1;
        *leave = out;
        if (k->n_succs) share[0] = 1 - out;
        return;
    }
    if (!k->n_succs) {
        *leave = k->leaves;
        return;
    }
    if (op == MG_OP_bra && n->guard && k->n_succs == 2) {
        share[1] = taken_share(g, b, g->c->edges[k->succ_at + 1], g->c->edges[k->succ_at]);
        share[0] = 1 - share[1];
        return;
    }
    for (uint32_t i = 0; i < k->n_succs; i++) share[i] = (k->leaves ? 0.9 : 1.0) / k->n_succs;
    if (k->leaves) *leave = 0.1;
}

static void spread(struct guess *g)
{
    const struct mg_cfg *c = g->c;
    struct mg_freq *f = g->f;
    f->block[0] = 1;
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        uint32_t b = c->rpo[i], loop = g->l->loop_of[b];
        if (!c->reachable[b]) break;
        if (loop != MG_NO_LOOP && g->l->loops[loop].header == b) f->block[b] *= rounds_of(g, loop);
        if (f->block[b] > 1e12) f->block[b] = 1e12;
        const struct mg_block *k = &c->blocks[b];
        f->leave[b] *= f->block[b];
        for (uint32_t s = 0; s < k->n_succs; s++) {
            uint32_t to = c->edges[k->succ_at + s];
            f->edge[k->succ_at + s] = f->block[b] * f->share[k->succ_at + s];
            if (c->rpo_ix[to] > i) f->block[to] += f->edge[k->succ_at + s];
        }
    }
}

/* Edges from measured blocks: the only way out of one or into the other; what the block's other way
 * leaves; else the guess. */
static void take_measured(struct guess *g, const uint64_t *measured)
{
    const struct mg_cfg *c = g->c;
    struct mg_freq *f = g->f;
    for (uint32_t b = 0; b < c->n_blocks; b++) f->block[b] = (double)measured[b];
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        const struct mg_block *k = &c->blocks[b];
        double rest = f->block[b];
        uint32_t open = 0;
        for (uint32_t s = 0; s < k->n_succs; s++) {
            const struct mg_block *to = &c->blocks[c->edges[k->succ_at + s]];
            bool known = to->n_preds == 1 && c->edges[k->succ_at + s] != 0;
            f->edge[k->succ_at + s] = known ? (double)measured[c->edges[k->succ_at + s]] : -1;
            if (known)
                rest -= f->edge[k->succ_at + s];
            else
                open++;
        }
        if (rest < 0) rest = 0;
        double out = k->leaves ? (k->n_succs ? (open ? f->leave[b] * rest : rest) : rest) : 0;
        if (end_op(g, b) == MG_OP_trap) out = 0;
        f->leave[b] = out;
        double shares = 0;
        for (uint32_t s = 0; s < k->n_succs; s++)
            if (f->edge[k->succ_at + s] < 0) shares += f->share[k->succ_at + s];
        for (uint32_t s = 0; s < k->n_succs; s++) {
            double *e = &f->edge[k->succ_at + s];
            uint32_t to = c->edges[k->succ_at + s];
            if (*e < 0)
                *e = MG_MIN((rest - out) * (shares > 0 ? f->share[k->succ_at + s] / shares : 0), (double)measured[to]);
            f->share[k->succ_at + s] = f->block[b] > 0 ? *e / f->block[b] : 0;
        }
    }
}

/* From executions by threads to what they cost: a warp pays for a block once however few of its lanes are there. Counts
 * become lanes that are paid for: at a branch on which lanes may differ a way costs as if each of them chose by itself;
 * where all come back together they are as many as where they parted. */
static void count_paid(struct guess *g)
{
    const struct mg_cfg *c = g->c;
    struct mg_freq *f = g->f;
    struct mg_dom *d = mg_dom_new(c);
    struct mg_uniform *u = mg_uniform_new(c, g->l);
    double *threads = mg_xcalloc(c->n_blocks + 1, sizeof *threads), *paid = f->block,
           *in = mg_xcalloc(c->n_blocks + 1, sizeof *in), *entries = mg_xcalloc(c->n_blocks + 1, sizeof *entries);
    for (uint32_t b = 0; b < c->n_blocks; b++) threads[b] = f->block[b];
    in[0] = entries[0] = threads[0];
    for (uint32_t i = 0; i < c->n_blocks && c->reachable[c->rpo[i]]; i++) {
        uint32_t b = c->rpo[i], up = d->idom[b], loop = g->l->loop_of[b];
        const struct mg_block *k = &c->blocks[b];
        mg_id p = end_of(g, b)->guard;
        bool differs = p >= u->reg_lo && p < u->reg_hi && u->varying[p - u->reg_lo];
        bool begins = loop != MG_NO_LOOP && g->l->loops[loop].header == b && entries[b] > 0;
        paid[b] = begins ? in[b] * (threads[b] / entries[b]) : in[b];
        while (up < c->n_blocks && g->l->loop_of[up] != loop)
            up = d->idom[up]; /* behind loops, what was in front of them */
        if (up < c->n_blocks && threads[up] == threads[b]) paid[b] = paid[up];
        paid[b] = MG_MAX(threads[b], MG_MIN(paid[b], LANES * threads[b]));
        double lanes = paid[b] > 0 ? LANES * threads[b] / paid[b] : 0;
        for (uint32_t s = 0; s < k->n_succs; s++) {
            double *e = &f->edge[k->succ_at + s], share = f->share[k->succ_at + s], taken = *e;
            uint32_t to = c->edges[k->succ_at + s];
            if (differs && share > 0 && share < 1)
                *e = MG_MAX(taken, MG_MIN(paid[b] * (1 - pow(1 - share, lanes)), LANES * taken));
            else
                *e = paid[b] * share;
            if (loop != MG_NO_LOOP && !mg_loops_contains(g->l, loop, to))
                *e = MG_MAX(taken, MG_MIN(*e, in[g->l->loops[loop].header])); /* lanes are gathered */
            if (c->rpo_ix[to] <= i) continue;
            in[to] += *e;
            entries[to] += taken;
        }
    }
    free(threads);
    free(in);
    free(entries);
    mg_uniform_free(u);
    mg_dom_free(d);
}

struct mg_freq *mg_freq_new(const struct mg_cfg *c, const struct mg_loops *l, const uint64_t *measured)
{
    struct mg_freq *f = mg_xcalloc(1, sizeof *f);
    uint32_t n_edges = 0;
    for (uint32_t b = 0; b < c->n_blocks; b++) n_edges += c->blocks[b].n_succs;
    f->block = mg_arena_array(&f->arena, double, c->n_blocks + 1);
    f->leave = mg_arena_array(&f->arena, double, c->n_blocks + 1);
    f->edge = mg_arena_array(&f->arena, double, n_edges + 1);
    f->parts = mg_arena_array(&f->arena, bool, c->n_blocks + 1);
    f->trivial = mg_arena_array(&f->arena, bool, c->n_blocks + 1);
    f->stops = mg_arena_array(&f->arena, bool, c->n_blocks + 1);
    f->waits = mg_arena_array(&f->arena, bool, l->n_loops + 1);
    f->share = mg_arena_array(&f->arena, double, n_edges + 1);
    if (!c->n_blocks) return f;
    struct guess g = {.c = c, .m = c->m, .l = l, .f = f};
    g.def = mg_single_defs(c);
    g.loaded = mg_xcalloc(g.def.hi - g.def.lo + 1, sizeof *g.loaded);
    g.trivial = mg_xcalloc(c->n_blocks + 1, sizeof *g.trivial);
    find_loaded(&g);
    find_trivial(&g);
    find_waits(&g);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        guess_shares(&g, b, &f->leave[b]);
        f->parts[b] = parts_by_data(&g, b);
    }
    for (uint32_t b = 0; b < c->n_blocks; b++) f->trivial[b] = g.trivial[b];
    if (measured) {
        take_measured(&g, measured);
        count_paid(&g);
    } else {
        spread(&g);
    }
    free(g.def.at);
    free(g.loaded);
    free(g.trivial);
    return f;
}

void mg_freq_free(struct mg_freq *f)
{
    if (!f) return;
    mg_arena_release(&f->arena);
    free(f);
}
