/* Machine blocks and PTX blocks, see sass_map.h.
 *
 *   home     a PTX instruction has one where all its machine instructions lie in one block; others (copied by the
 *            assembler) say nothing
 *   depth    a block at another depth of loops was moved or unrolled: its PTX block's count is not its own
 *   pinned   a memory instruction that no predicate guards runs as often as its block
 *   merged   without one, of several PTX blocks of one loop in a machine block (branches that became predicates)
 *            the most frequent one counts
 *   unrolled a loop unrolled k times holds its memory instructions k times: its body ran a k-th as often
 *   flow     what enters a block leaves it: an edge or block that is the only unknown one of a sum is known
 *   copies   what is left of a loop in several blocks: each PTX instruction ran in one copy or another */
#include "tool/opcodes/sass_map.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"
#include "base/vec.h"
#include "base/search.h"

#define NONE UINT32_MAX

struct edge {
    uint32_t from, to;
    bool known;
    uint64_t n;
}; /* to NONE: leaves the function */
struct graph {
    uint32_t n;
    struct edge *edges;
    uint32_t n_edges;
    struct mg_arena arena;
    struct mg_graph ways; /* the edges that stay in the function */
    struct mg_loops *loops;
};
struct mapping {
    const struct mg_sass_func *f;
    const struct mg_result_kernel *k;
    struct mg_sass_map *m;
    struct graph ptx, sass;
    uint32_t *first; /* of a machine block: its first instruction; n + 1 of them */
    const struct mg_result_site **lines;
    uint32_t n_lines;      /* sites by PTX line */
    uint32_t *site, *next; /* of an instruction: in lines, NONE; the next one of that line, NONE */
    uint32_t *head;        /* of a line: its first instruction, NONE */
    uint32_t *home;        /* of a line: machine block, NONE: several or none */
    const char **ops;      /* of a line: its commonest machine opcode, NULL: none */
    uint32_t *copies;      /* of a line: how often that stands in its home */
    uint32_t *out_at;      /* of a machine block: its edges; n + 1 of them */
    bool *open, *called;   /* of machine blocks: it leads anywhere; others come in by calls */
};

/* ---- graphs ----------------------------------------------------------------------------------------------- */

static void find_loops(struct graph *g)
{
    uint32_t *from = mg_xmalloc(sizeof *from * (g->n_edges + 1)), *to = mg_xmalloc(sizeof *to * (g->n_edges + 1)),
             n = 0;
    for (uint32_t e = 0; e < g->n_edges; e++)
        if (g->edges[e].to != NONE) from[n] = g->edges[e].from, to[n++] = g->edges[e].to;
    g->ways = mg_graph_of_pairs(&g->arena, g->n, from, to, n);
    struct mg_graph back = mg_graph_reversed(&g->arena, &g->ways);
    bool *reachable = mg_xmalloc(g->n + 1);
    memset(reachable, true, g->n); /* callees begin anywhere */
    g->loops = mg_loops_of(&g->ways, &back, reachable);
    free(reachable);
    free(from);
    free(to);
}

static void add_edge(struct graph *g, uint32_t from, uint32_t to)
{
    for (uint32_t e = g->n_edges; e-- > 0 && g->edges[e].from == from;)
        if (g->edges[e].to == to) return;
    g->edges[g->n_edges++] = (struct edge){.from = from, .to = to};
}

static void make_ptx_graph(struct mapping *x)
{
    struct graph *g = &x->ptx;
    uint32_t room = 0;
    g->n = x->k->n_blocks;
    for (uint32_t b = 0; b < g->n; b++) room += x->k->blocks[b].n_succs;
    g->edges = mg_xcalloc(room + 1, sizeof *g->edges);
    for (uint32_t b = 0; b < g->n; b++)
        for (uint32_t i = 0; i < x->k->blocks[b].n_succs; i++)
            if (x->k->blocks[b].succs[i] < g->n) add_edge(g, b, x->k->blocks[b].succs[i]);
    find_loops(g);
}

static void make_sass_graph(struct mapping *x)
{
    const struct mg_sass_func *f = x->f;
    struct graph *g = &x->sass;
    bool *leader = mg_xcalloc(f->n_insts + 1, 1);
    uint32_t n_targets = 0;
    for (uint32_t i = 0; i < f->n_insts; i++) {
        leader[i] |= !i;
        for (uint32_t t = 0; t < f->insts[i].n_targets; t++)
            leader[f->targets[f->insts[i].targets + t]] = true, n_targets++;
        if (mg_sass_flow_of(&f->insts[i]) != MG_SASS_ON) leader[i + 1] = true;
    }
    x->first = mg_xcalloc(f->n_insts + 2, sizeof *x->first);
    for (uint32_t i = 0; i < f->n_insts; i++) {
        if (leader[i]) x->first[g->n++] = i;
        x->m->block_of[i] = g->n - 1;
    }
    x->first[g->n] = f->n_insts;
    g->edges = mg_xcalloc(2 * (size_t)g->n + n_targets + 1, sizeof *g->edges);
    x->open = mg_xcalloc(g->n + 1, 1);
    x->called = mg_xcalloc(g->n + 1, 1);
    x->out_at = mg_xcalloc(g->n + 2, sizeof *x->out_at);
    for (uint32_t i = 0; i < f->n_insts; i++)
        for (uint32_t t = 0; t < f->insts[i].n_targets && mg_sass_flow_of(&f->insts[i]) == MG_SASS_ON; t++)
            x->called[x->m->block_of[f->targets[f->insts[i].targets + t]]] = true;
    for (uint32_t b = 0; b < g->n; b++) {
        const struct mg_sass_inst *last = &f->insts[x->first[b + 1] - 1];
        enum mg_sass_flow flow = mg_sass_flow_of(last);
        x->out_at[b] = g->n_edges;
        for (uint32_t t = 0; t < last->n_targets && flow == MG_SASS_BRANCH; t++)
            add_edge(g, b, x->m->block_of[f->targets[last->targets + t]]);
        if (flow == MG_SASS_LEAVE || (flow == MG_SASS_ON && b + 1 == g->n)) add_edge(g, b, NONE);
        if (flow == MG_SASS_ANYWHERE) x->open[b] = true;
        if ((flow == MG_SASS_ON || last->guarded) && b + 1 < g->n) add_edge(g, b, b + 1);
    }
    x->out_at[g->n] = g->n_edges;
    free(leader);
    find_loops(g);
}

/* ---- by line and shape --------------------------------------------------------------------------------------- */

static int by_line(const void *a, const void *b)
{
    uint32_t x = (*(const struct mg_result_site *const *)a)->ptx_line,
             y = (*(const struct mg_result_site *const *)b)->ptx_line;
    return (x > y) - (x < y);
}

static uint32_t find_line(const struct mapping *x, uint32_t line)
{
    uint32_t k;
    MG_FIND_FIRST(k, x->n_lines, x->lines[k]->ptx_line < line);
    return line && k < x->n_lines && x->lines[k]->ptx_line == line ? k : NONE;
}

/* Instructions of which the assembler makes one each. */
static bool is_anchor(const char *op)
{
    static const char *const ops[] = {"ld.",  "st.",  "atom.", "red.", "bar",        "shfl.",        "vote.",
                                      "ex2.", "lg2.", "sin.",  "cos.", "rcp.approx", "rsqrt.approx", "tex."};
    for (uint32_t i = 0; i < MG_COUNT_OF(ops); i++)
        if (!strncmp(op, ops[i], strlen(ops[i]))) return strncmp(op, "ld.param", 8) != 0;
    return false;
}

/* The machine instruction that an anchor becomes: what else has its line prepares operands. */
static bool is_made_of_anchor(const char *op)
{
    static const char *const ops[] = {"LD", "ST", "ATOM", "RED", "BAR", "SHFL", "VOTE", "MUFU", "TEX", "TLD"};
    for (uint32_t i = 0; i < MG_COUNT_OF(ops); i++)
        if (!strncmp(op, ops[i], strlen(ops[i]))) return strncmp(op, "LDC", 3) != 0;
    return false;
}

/* The machine opcode that a line became most often: what else has its number may come from anywhere. */
static void find_ops(struct mapping *x)
{
    x->ops = mg_xcalloc(x->n_lines + 1, sizeof *x->ops);
    for (uint32_t line = 0; line < x->n_lines; line++) {
        uint32_t most = 0, looked_at = 0;
        bool anchor = is_anchor(x->lines[line]->op);
        for (uint32_t i = x->head[line]; i != NONE && looked_at < 64; i = x->next[i], looked_at++) {
            uint32_t n = anchor && is_made_of_anchor(x->f->insts[i].op) ? x->f->n_insts : 0;
            for (uint32_t j = i; j != NONE; j = x->next[j]) n += !strcmp(x->f->insts[j].op, x->f->insts[i].op);
            if (n > most) most = n, x->ops[line] = x->f->insts[i].op;
        }
    }
}

static void find_homes(struct mapping *x)
{
    x->lines = mg_xcalloc(x->k->n_sites + 1, sizeof *x->lines);
    for (uint32_t i = 0; i < x->k->n_sites; i++)
        if (x->k->sites[i].kind == MG_SITE_INST && x->k->sites[i].ptx_line && x->k->sites[i].block < x->k->n_blocks)
            x->lines[x->n_lines++] = &x->k->sites[i];
    if (x->n_lines) qsort(x->lines, x->n_lines, sizeof *x->lines, by_line);
    x->site = mg_xcalloc(x->f->n_insts + 1, sizeof *x->site);
    x->home = mg_xcalloc(x->n_lines + 1, sizeof *x->home);
    x->copies = mg_xcalloc(x->n_lines + 1, sizeof *x->copies);
    x->next = mg_xcalloc(x->f->n_insts + 1, sizeof *x->next);
    x->head = mg_xcalloc(x->n_lines + 1, sizeof *x->head);
    for (uint32_t i = 0; i < x->n_lines; i++) x->home[i] = x->head[i] = NONE;
    for (uint32_t i = x->f->n_insts; i-- > 0;) {
        uint32_t line = x->site[i] = x->m->mapped[x->m->block_of[i]]
                                         ? NONE
                                         : find_line(x, x->f->insts[i].line); /* what fills up has the last one's */
        if (line == NONE) continue;
        x->m->has_lines = true;
        x->next[i] = x->head[line];
        x->head[line] = i;
    }
    find_ops(x);
    for (uint32_t line = 0; line < x->n_lines; line++)
        for (uint32_t i = x->head[line]; i != NONE; i = x->next[i]) {
            if (strcmp(x->f->insts[i].op, x->ops[line])) continue;
            x->home[line] = !x->copies[line] || x->home[line] == x->m->block_of[i] ? x->m->block_of[i] : NONE;
            x->copies[line]++;
        }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* How often the PTX block's instructions stand in the machine block that is their home, 0: hard to tell. Without
 * instructions that become one each, all must agree: a line may well become two moves. */
static uint32_t unrolled(const struct mapping *x, uint32_t block, uint32_t ptx)
{
    uint32_t *all = mg_xcalloc(x->n_lines + 1, sizeof *all), n = 0, anchors = 0, times = 1;
    for (uint32_t i = 0; i < x->n_lines; i++) {
        if (x->home[i] != block || x->lines[i]->block != ptx) continue;
        if (is_anchor(x->lines[i]->op)) anchors = anchors ? MG_MIN(anchors, x->copies[i]) : x->copies[i];
        all[n++] = x->copies[i];
    }
    qsort(all, n, sizeof *all, by_value);
    if (anchors)
        times = anchors;
    else if (n && all[n / 2] > 1)
        times = n > 1 && all[0] == all[n - 1] ? all[0] : 0;
    free(all);
    return mg_loops_depth(x->ptx.loops, ptx) ? times : 1;
}

static uint32_t loop_of(const struct graph *g, uint32_t block)
{
    return g->loops->loop_of[block];
}

/* A block runs as often as an instruction in it that no predicate guards and that is made once of one PTX instruction.
 * NONE: there is no such, or two disagree. */
static uint32_t pinned_by(const struct mapping *x, uint32_t b)
{
    uint32_t pin = NONE;
    for (uint32_t i = x->first[b]; i < x->first[b + 1]; i++) {
        uint32_t line = x->site[i];
        if (line == NONE || x->home[line] != b || x->f->insts[i].guarded || !is_anchor(x->lines[line]->op) ||
            strcmp(x->f->insts[i].op, x->ops[line]))
            continue;
        uint32_t p = x->lines[line]->block;
        if (mg_loops_depth(x->ptx.loops, p) != mg_loops_depth(x->sass.loops, b)) continue;
        if (pin != NONE && x->k->threads[pin] != x->k->threads[p]) return NONE;
        pin = p;
    }
    return pin;
}

/* A loop that is tested before each round: in machine code the test stands behind the round, once less. */
static bool tests_first(const struct mapping *x, uint32_t ptx)
{
    uint32_t loop = loop_of(&x->ptx, ptx);
    if (loop == MG_NO_LOOP || x->ptx.loops->loops[loop].header != ptx) return false;
    for (uint32_t i = 0; i < x->k->blocks[ptx].n_succs; i++) {
        uint32_t to = x->k->blocks[ptx].succs[i];
        if (to < x->k->n_blocks && !mg_loops_contains(x->ptx.loops, loop, to)) return true;
    }
    return false;
}

/* Of the PTX blocks with instructions in the machine block, at its depth: that of most of them, or, of the same loop,
 * one that runs more often. Ends say nothing: branches to them become ends of their own. */
static uint32_t chosen_by_votes(const struct mapping *x, uint32_t b, uint32_t *votes)
{
    uint32_t best = NONE, depth = mg_loops_depth(x->sass.loops, b), n = 0;
    memset(votes, 0, x->k->n_blocks * sizeof *votes);
    for (uint32_t i = 0; i < x->n_lines; i++) {
        uint32_t p = x->lines[i]->block;
        if (x->home[i] != b || mg_loops_depth(x->ptx.loops, p) != depth || !strncmp(x->lines[i]->op, "ret", 3) ||
            !strncmp(x->lines[i]->op, "exit", 4))
            continue;
        if (votes[p]++ + 1 > (best == NONE ? 0 : votes[best])) best = p;
    }
    if (best == NONE) return NONE;
    uint32_t loop = loop_of(&x->ptx, best);
    for (uint32_t p = 0; p < x->k->n_blocks; p++) {
        if (!votes[p] || loop_of(&x->ptx, p) != loop) continue;
        n++;
        if (x->k->threads[p] > x->k->threads[best]) best = p;
    }
    for (uint32_t i = x->first[b]; i < x->first[b + 1]; i++) /* also elsewhere: a round was taken out of the loop */
        if (x->site[i] != NONE && x->lines[x->site[i]]->block == best && x->home[x->site[i]] == NONE &&
            is_anchor(x->lines[x->site[i]]->op))
            return NONE;
    return n > 1 && tests_first(x, best) ? NONE : best;
}

static void map_by_lines(struct mapping *x)
{
    uint32_t *votes = mg_xcalloc(x->k->n_blocks + 1, sizeof *votes);
    for (uint32_t b = 0; b < x->sass.n; b++) {
        if (x->m->mapped[b]) continue; /* nobody comes there */
        uint32_t best = pinned_by(x, b);
        if (best == NONE) best = chosen_by_votes(x, b, votes);
        uint32_t times = best == NONE ? 0 : unrolled(x, b, best);
        if (!times || x->k->threads[best] % times) continue;
        x->m->mapped[b] = true;
        x->m->entered[b] = x->k->threads[best] / times;
    }
    free(votes);
}

/* ---- by flow ----------------------------------------------------------------------------------------------------- */

/* The edges on one side of a block and the block itself: if one of them is unknown, it is the difference. */
static bool balance(struct mapping *x, uint32_t b, const uint32_t *edges, uint32_t n)
{
    struct mg_sass_map *m = x->m;
    struct edge *unknown = NULL;
    uint64_t sum = 0;
    uint32_t n_unknown = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct edge *e = &x->sass.edges[edges[i]];
        if (e->known)
            sum += e->n;
        else
            n_unknown++, unknown = e;
    }
    if (!n_unknown && n && !m->mapped[b]) {
        m->entered[b] = sum;
        return m->mapped[b] = true;
    }
    if (n_unknown != 1 || !m->mapped[b] || m->entered[b] < sum) return false;
    unknown->n = m->entered[b] - sum;
    return unknown->known = true;
}

/* Nobody comes to a block that nothing leads to: what fills up the code behind its end. */
static void map_unreached(struct mapping *x)
{
    uint64_t *reached = mg_xcalloc(mg_bits_words(x->sass.n) + 1, sizeof *reached);
    bool anywhere = false;
    for (uint32_t b = 0; b < x->sass.n; b++) {
        anywhere |= x->open[b];
        if (!b || x->called[b]) mg_put(reached, b);
    }
    mg_graph_close(&x->sass.ways, reached, NULL);
    for (uint32_t b = 0; b < x->sass.n && !anywhere; b++) x->m->mapped[b] = !mg_has(reached, b);
    free(reached);
}

static void map_by_flow(struct mapping *x)
{
    const struct graph *g = &x->sass;
    uint32_t *out = mg_xcalloc(g->n_edges + 1, sizeof *out), *in = mg_xcalloc(g->n_edges + 1, sizeof *in),
             *in_at = mg_xcalloc(g->n + 2, sizeof *in_at);
    for (uint32_t e = 0; e < g->n_edges; e++) {
        out[e] = e;
        if (g->edges[e].to != NONE) in_at[g->edges[e].to + 1]++;
    }
    for (uint32_t b = 0; b < g->n; b++) in_at[b + 1] += in_at[b];
    for (uint32_t b = 0, at = 0; b < g->n; b++)
        for (uint32_t e = 0; at < in_at[b + 1] && e < g->n_edges; e++)
            if (g->edges[e].to == b) in[at++] = e;
    for (uint32_t p = 0; p < x->k->n_blocks && g->n && !x->m->mapped[0]; p++) {
        if (strcmp(x->k->blocks[p].function, x->f->name)) continue;
        x->m->mapped[0] = true;
        x->m->entered[0] = x->k->threads[p];
        break;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < g->n; b++) {
            if (b && !x->called[b]) changed = balance(x, b, in + in_at[b], in_at[b + 1] - in_at[b]) || changed;
            if (!x->open[b]) changed = balance(x, b, out + x->out_at[b], x->out_at[b + 1] - x->out_at[b]) || changed;
        }
    }
    free(out);
    free(in);
    free(in_at);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* An instruction of the PTX block that every round needs: the control of a loop that is unrolled stands there once. */
static bool is_work(const struct mapping *x, uint32_t line)
{
    const char *op = x->lines[line]->op;
    return strncmp(op, "setp", 4) && strncmp(op, "bra", 3);
}

struct holding {
    uint32_t block, line, copies;
};
struct copies {                       /* of one PTX block: machine blocks that hold a good part of it */
    MG_VEC(struct holding) all;       /* by block */
    MG_VEC(uint32_t) blocks, settled; /* without a count, and with one */
    uint32_t *times, *count; /* of a machine block: how often it holds the PTX block, 0: it does not; scratch, all 0 */
};

static int by_block(const void *a, const void *b)
{
    const struct holding *x = a, *y = b;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    return (x->copies > y->copies) - (x->copies < y->copies);
}

/* False: none of them lies at the PTX block's depth of loops. */
static bool find_copies(const struct mapping *x, uint32_t ptx, const uint32_t *lines, uint32_t n_lines,
                        struct copies *c)
{
    uint32_t n_work = 0, depth = mg_loops_depth(x->ptx.loops, ptx);
    bool found = false;
    c->all.n = c->blocks.n = c->settled.n = 0;
    for (uint32_t l = 0; l < n_lines; l++) {
        uint32_t line = lines[l], from = c->all.n;
        if (!is_work(x, line)) continue;
        n_work++;
        for (uint32_t i = x->head[line]; i != NONE;
             i = x->next[i]) { /* in the order of the code: a block's stand together */
            uint32_t b = x->m->block_of[i];
            if (strcmp(x->f->insts[i].op, x->ops[line])) continue;
            if (c->all.n == from || c->all.at[c->all.n - 1].block != b)
                *mg_vec_push(&c->all) = (struct holding){b, line, 0};
            c->all.at[c->all.n - 1].copies++;
        }
    }
    if (c->all.n) qsort(c->all.at, c->all.n, sizeof *c->all.at, by_block);
    for (uint32_t i = 0, end; i < c->all.n; i = end) {
        uint32_t b = c->all.at[i].block;
        bool anchor = false;
        for (end = i; end < c->all.n && c->all.at[end].block == b; end++)
            anchor |= is_anchor(x->lines[c->all.at[end].line]->op);
        if (!anchor && 3 * (end - i) < n_work) continue;
        c->times[b] = c->all.at[i + (end - i) / 2].copies;
        if (x->m->mapped[b])
            *mg_vec_push(&c->settled) = b;
        else
            *mg_vec_push(&c->blocks) = b, found |= mg_loops_depth(x->sass.loops, b) == depth;
    }
    return found;
}

/* The executions of a line by the opcode of its instruction `first`: what the PTX counted, less those in blocks that
 * have a count. Under a predicate an instruction is issued for threads that the PTX's count does not hold. */
static void share_out(struct mapping *x, uint32_t line, uint32_t first, struct copies *c)
{
    uint64_t all = x->k->threads[x->lines[line]->block], done = 0;
    uint32_t each = 0, holds = NONE;
    bool alike = true;
    const char *op = x->f->insts[first].op;
    for (uint32_t i = x->head[line]; i != NONE; i = x->next[i]) {
        uint32_t b = x->m->block_of[i];
        if (strcmp(x->f->insts[i].op, op)) continue;
        alike &= !x->f->insts[i].guarded && c->times[b];
        c->count[b]++;
        if (!x->m->mapped[b]) holds = MG_MIN(holds, i);
    }
    for (uint32_t i = 0; i < c->blocks.n; i++) {
        uint32_t b = c->blocks.at[i], n = c->count[b] / c->times[b];
        alike &= n && n * c->times[b] == c->count[b] && (!each || each == n);
        each = n;
    }
    for (uint32_t i = 0; i < c->settled.n; i++) { /* rounds that ran there, whether they needed this opcode or not */
        uint32_t b = c->settled.at[i];
        alike &= !c->count[b] || c->count[b] == each * c->times[b];
        done += x->m->entered[b] * c->times[b] * each;
    }
    for (uint32_t i = x->head[line]; i != NONE; i = x->next[i]) c->count[x->m->block_of[i]] = 0;
    if (!alike || holds == NONE || done > all * each) return;
    x->m->threads[holds] = all * each - done;
    for (uint32_t i = x->head[line]; i != NONE; i = x->next[i])
        x->m->known[i] |= !x->m->mapped[x->m->block_of[i]] && !strcmp(x->f->insts[i].op, op);
}

static int by_ptx_block(const void *a, const void *b, void *x)
{
    const struct mg_result_site *const *lines = x;
    uint32_t p = lines[*(const uint32_t *)a]->block, q = lines[*(const uint32_t *)b]->block;
    return (p > q) - (p < q);
}

static void map_copies(struct mapping *x)
{
    struct copies c = {.times = mg_xcalloc(x->sass.n + 1, sizeof *c.times),
                       .count = mg_xcalloc(x->sass.n + 1, sizeof *c.count)};
    uint32_t *order = mg_xcalloc(x->n_lines + 1, sizeof *order);
    for (uint32_t i = 0; i < x->n_lines; i++) order[i] = i;
    qsort_r(order, x->n_lines, sizeof *order, by_ptx_block, (void *)(uintptr_t)x->lines);
    for (uint32_t at = 0, end; at < x->n_lines; at = end) {
        uint32_t ptx = x->lines[order[at]]->block;
        for (end = at; end < x->n_lines && x->lines[order[end]]->block == ptx; end++) continue;
        if (find_copies(x, ptx, order + at, end - at, &c))
            for (uint32_t l = at; l < end; l++)
                for (uint32_t i = x->head[order[l]]; i != NONE; i = x->next[i])
                    if (!x->m->mapped[x->m->block_of[i]] && !x->m->known[i]) share_out(x, order[l], i, &c);
        for (uint32_t i = 0; i < c.blocks.n; i++) c.times[c.blocks.at[i]] = 0;
        for (uint32_t i = 0; i < c.settled.n; i++) c.times[c.settled.at[i]] = 0;
    }
    mg_vec_release(&c.all);
    mg_vec_release(&c.blocks);
    mg_vec_release(&c.settled);
    free(c.times);
    free(c.count);
    free(order);
}

struct mg_sass_map *mg_sass_map_new(const struct mg_sass_func *f, const struct mg_result_kernel *k)
{
    struct mapping x = {.f = f, .k = k, .m = mg_xcalloc(1, sizeof *x.m)};
    x.m->block_of = mg_xcalloc(f->n_insts + 1, sizeof *x.m->block_of);
    make_sass_graph(&x);
    x.m->n_blocks = x.sass.n;
    x.m->mapped = mg_xcalloc(x.sass.n + 1, sizeof *x.m->mapped);
    x.m->entered = mg_xcalloc(x.sass.n + 1, sizeof *x.m->entered);
    x.m->known = mg_xcalloc(f->n_insts + 1, 1);
    x.m->threads = mg_xcalloc(f->n_insts + 1, sizeof *x.m->threads);
    if (k->threads && k->n_blocks) {
        make_ptx_graph(&x);
        map_unreached(&x);
        find_homes(&x);
        map_by_lines(&x);
        map_by_flow(&x);
        map_copies(&x);
    }
    x.m->seen = mg_xcalloc(k->n_blocks + 1, 1);
    for (uint32_t i = 0; i < f->n_insts; i++) {
        uint32_t b = x.m->block_of[i];
        if (x.m->mapped[b]) x.m->known[i] = true, x.m->threads[i] = x.m->entered[b];
        x.m->known_insts += x.m->known[i];
        if (x.site && x.site[i] != NONE && x.m->known[i]) x.m->seen[x.lines[x.site[i]]->block] = true;
    }
    for (uint32_t b = 0; b < x.sass.n; b++) x.m->mapped_blocks += x.m->mapped[b];
    mg_loops_free(x.ptx.loops);
    mg_loops_free(x.sass.loops);
    mg_arena_release(&x.ptx.arena);
    mg_arena_release(&x.sass.arena);
    free(x.ptx.edges);
    free(x.sass.edges);
    free(x.first);
    free(x.lines);
    free(x.site);
    free(x.next);
    free(x.head);
    free(x.home);
    free(x.copies);
    free(x.ops);
    free(x.open);
    free(x.called);
    free(x.out_at);
    return x.m;
}

void mg_sass_map_free(struct mg_sass_map *m)
{
    if (!m) return;
    free(m->block_of);
    free(m->mapped);
    free(m->entered);
    free(m->known);
    free(m->threads);
    free(m->seen);
    free(m);
}
