/* Machine blocks and PTX blocks, see sass_map.h.
 *
 *   home     a PTX instruction has one where all its machine instructions lie in one block; others (copied by the assembler) say nothing
 *   depth    a block at another depth of loops was moved or unrolled: its PTX block's count is not its own
 *   merged   of several PTX blocks of one loop in a machine block (branches that became predicates) the most frequent one counts
 *   unrolled a loop unrolled k times holds its memory instructions k times: its body ran a k-th as often
 *   flow     what enters a block leaves it: an edge or block that is the only unknown one of a sum is known
 *   copies   what is left of a loop in several blocks: each PTX instruction ran in one copy or another */
#include "tool/sass_map.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"

#define NONE UINT32_MAX

struct edge { uint32_t from, to; bool known; uint64_t n; }; /* to NONE: leaves the function */
struct graph {
    uint32_t n;
    struct edge *edges; uint32_t n_edges;
    struct mg_loops *loops;
};
struct mapping {
    const struct mg_sass_func *f;
    const struct mg_result_kernel *k;
    struct mg_sass_map *m;
    struct graph ptx, sass;
    uint32_t *first;                                      /* of a machine block: its first instruction; n + 1 of them */
    const struct mg_result_site **lines; uint32_t n_lines; /* sites by PTX line */
    uint32_t *site;                                       /* of an instruction: in lines, NONE */
    uint32_t *home;                                       /* of a line: machine block, NONE: several or none */
    const char **ops;                                     /* of a line: its commonest machine opcode, NULL: none */
    uint32_t *copies;                                     /* of a line: how often that stands in its home */
    uint32_t *out_at;                                     /* of a machine block: its edges; n + 1 of them */
    bool *open, *called;                                  /* of machine blocks: it leads anywhere; others come in by calls */
};

/* ---- graphs ----------------------------------------------------------------------------------------------- */

static void find_loops(struct graph *g)
{
    struct mg_cfg c = {.n_blocks = g->n};
    c.blocks = mg_xcalloc(g->n + 1, sizeof *c.blocks);
    c.edges = mg_xcalloc(g->n_edges + 1, sizeof *c.edges);
    c.preds = mg_xcalloc(g->n_edges + 1, sizeof *c.preds);
    c.reachable = mg_xcalloc(g->n + 1, sizeof *c.reachable);
    uint32_t *stack = mg_xcalloc(g->n + 1, sizeof *stack), depth = 0, at = 0, pred_at = 0;
    for (uint32_t e = 0; e < g->n_edges; e++)
        if (g->edges[e].to != NONE) c.blocks[g->edges[e].from].n_succs++, c.blocks[g->edges[e].to].n_preds++;
    for (uint32_t b = 0; b < g->n; b++) {
        c.blocks[b].succ_at = at, c.blocks[b].pred_at = pred_at;
        at += c.blocks[b].n_succs, pred_at += c.blocks[b].n_preds;
        c.blocks[b].n_succs = c.blocks[b].n_preds = 0;
    }
    for (uint32_t e = 0; e < g->n_edges; e++) {
        const struct edge *x = &g->edges[e];
        if (x->to == NONE) continue;
        c.edges[c.blocks[x->from].succ_at + c.blocks[x->from].n_succs++] = x->to;
        c.preds[c.blocks[x->to].pred_at + c.blocks[x->to].n_preds++] = x->from;
    }
    for (uint32_t root = 0; root < g->n; root++) { /* callees begin anywhere */
        if (c.reachable[root]) continue;
        c.reachable[root] = true;
        for (stack[depth++] = root; depth;) {
            const struct mg_block *b = &c.blocks[stack[--depth]];
            for (uint32_t i = 0; i < b->n_succs; i++) {
                uint32_t to = c.edges[b->succ_at + i];
                if (c.reachable[to]) continue;
                c.reachable[to] = true;
                stack[depth++] = to;
            }
        }
    }
    g->loops = mg_loops_new(&c);
    free(c.blocks);
    free(c.edges);
    free(c.preds);
    free(c.reachable);
    free(stack);
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
        for (uint32_t t = 0; t < f->insts[i].n_targets; t++) leader[f->targets[f->insts[i].targets + t]] = true, n_targets++;
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
        for (uint32_t t = 0; t < f->insts[i].n_targets && mg_sass_flow_of(&f->insts[i]) == MG_SASS_ON; t++) x->called[x->m->block_of[f->targets[f->insts[i].targets + t]]] = true;
    for (uint32_t b = 0; b < g->n; b++) {
        const struct mg_sass_inst *last = &f->insts[x->first[b + 1] - 1];
        enum mg_sass_flow flow = mg_sass_flow_of(last);
        x->out_at[b] = g->n_edges;
        for (uint32_t t = 0; t < last->n_targets && flow == MG_SASS_BRANCH; t++) add_edge(g, b, x->m->block_of[f->targets[last->targets + t]]);
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
    uint32_t x = (*(const struct mg_result_site *const *)a)->ptx_line, y = (*(const struct mg_result_site *const *)b)->ptx_line;
    return (x > y) - (x < y);
}

static uint32_t find_line(const struct mapping *x, uint32_t line)
{
    uint32_t low = 0, high = x->n_lines;
    while (line && low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (x->lines[mid]->ptx_line == line) return mid;
        if (x->lines[mid]->ptx_line < line) low = mid + 1;
        else high = mid;
    }
    return NONE;
}

static uint32_t copies_of(const struct mapping *x, uint32_t block, uint32_t line)
{
    uint32_t n = 0;
    for (uint32_t i = x->first[block]; i < x->first[block + 1]; i++) n += x->site[i] == line && !strcmp(x->f->insts[i].op, x->ops[line]);
    return n;
}

/* The machine opcode that a line became most often: what else has its number may come from anywhere. */
static void find_ops(struct mapping *x)
{
    uint32_t *most = mg_xcalloc(x->n_lines + 1, sizeof *most);
    x->ops = mg_xcalloc(x->n_lines + 1, sizeof *x->ops);
    for (uint32_t i = 0; i < x->f->n_insts; i++) {
        uint32_t n = 0, line = x->site[i];
        if (line == NONE) continue;
        for (uint32_t j = i; j < x->f->n_insts; j++) n += x->site[j] == line && !strcmp(x->f->insts[j].op, x->f->insts[i].op);
        if (n > most[line]) most[line] = n, x->ops[line] = x->f->insts[i].op;
    }
    free(most);
}

static void find_homes(struct mapping *x)
{
    x->lines = mg_xcalloc(x->k->n_sites + 1, sizeof *x->lines);
    for (uint32_t i = 0; i < x->k->n_sites; i++)
        if (x->k->sites[i].kind == MG_SITE_INST && x->k->sites[i].ptx_line && x->k->sites[i].block < x->k->n_blocks) x->lines[x->n_lines++] = &x->k->sites[i];
    if (x->n_lines) qsort(x->lines, x->n_lines, sizeof *x->lines, by_line);
    x->site = mg_xcalloc(x->f->n_insts + 1, sizeof *x->site);
    x->home = mg_xcalloc(x->n_lines + 1, sizeof *x->home);
    x->copies = mg_xcalloc(x->n_lines + 1, sizeof *x->copies);
    bool *seen = mg_xcalloc(x->n_lines + 1, 1);
    for (uint32_t i = 0; i < x->n_lines; i++) x->home[i] = NONE;
    for (uint32_t i = 0; i < x->f->n_insts; i++) {
        uint32_t line = x->site[i] = find_line(x, x->f->insts[i].line), block = x->m->block_of[i];
        if (line == NONE) continue;
        x->m->has_lines = true;
        x->home[line] = seen[line] && x->home[line] != block ? NONE : block;
        seen[line] = true;
    }
    find_ops(x);
    for (uint32_t i = 0; i < x->n_lines; i++)
        if (x->home[i] != NONE) x->copies[i] = copies_of(x, x->home[i], i);
    free(seen);
}

/* Instructions of which the assembler makes one each. */
static bool is_anchor(const char *op)
{
    static const char *const ops[] = {"ld.", "st.", "atom.", "red.", "bar", "shfl.", "vote.", "ex2.", "lg2.", "sin.", "cos.", "rcp.approx", "rsqrt.approx", "tex."};
    for (uint32_t i = 0; i < MG_COUNT_OF(ops); i++)
        if (!strncmp(op, ops[i], strlen(ops[i]))) return strncmp(op, "ld.param", 8) != 0;
    return false;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* How often the PTX block's instructions stand in the machine block that is their home: the fewest of those that become one
 * each, else the median. */
static uint32_t unrolled(const struct mapping *x, uint32_t block, uint32_t ptx)
{
    uint32_t *all = mg_xcalloc(x->n_lines + 1, sizeof *all), n = 0, anchors = 0;
    for (uint32_t i = 0; i < x->n_lines; i++) {
        if (x->home[i] != block || x->lines[i]->block != ptx) continue;
        if (is_anchor(x->lines[i]->op)) anchors = anchors ? MG_MIN(anchors, x->copies[i]) : x->copies[i];
        all[n++] = x->copies[i];
    }
    qsort(all, n, sizeof *all, by_value);
    uint32_t median = n ? all[n / 2] : 1;
    free(all);
    return anchors ? anchors : median;
}

static uint32_t loop_of(const struct graph *g, uint32_t block) { return g->loops->loop_of[block]; }

static void map_by_lines(struct mapping *x)
{
    uint32_t *votes = mg_xcalloc(x->k->n_blocks + 1, sizeof *votes);
    for (uint32_t b = 0; b < x->sass.n; b++) {
        uint32_t best = NONE, depth = mg_loops_depth(x->sass.loops, b);
        memset(votes, 0, x->k->n_blocks * sizeof *votes);
        for (uint32_t i = 0; i < x->n_lines; i++) {
            uint32_t p = x->lines[i]->block;
            if (x->home[i] != b || mg_loops_depth(x->ptx.loops, p) != depth) continue;
            if (votes[p]++ + 1 > (best == NONE ? 0 : votes[best])) best = p;
        }
        if (best == NONE) continue;
        uint32_t loop = loop_of(&x->ptx, best);
        for (uint32_t p = 0; p < x->k->n_blocks; p++)
            if (votes[p] && loop_of(&x->ptx, p) == loop && x->k->threads[p] > x->k->threads[best]) best = p;
        uint32_t times = unrolled(x, b, best);
        if (!times || x->k->threads[best] % times) continue;
        x->m->mapped[b] = true;
        x->m->entered[b] = x->k->threads[best] / times;
    }
    free(votes);
}

/* ---- by flow ------------------------------------------------------------------------------------------------------ */

/* The edges on one side of a block and the block itself: if one of them is unknown, it is the difference. */
static bool balance(struct mapping *x, uint32_t b, const uint32_t *edges, uint32_t n)
{
    struct mg_sass_map *m = x->m;
    struct edge *unknown = NULL;
    uint64_t sum = 0;
    uint32_t n_unknown = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct edge *e = &x->sass.edges[edges[i]];
        if (e->known) sum += e->n;
        else n_unknown++, unknown = e;
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
    uint32_t *stack = mg_xcalloc(x->sass.n + 1, sizeof *stack), depth = 0;
    bool *reached = mg_xcalloc(x->sass.n + 1, 1), anywhere = false;
    for (uint32_t b = 0; b < x->sass.n; b++) {
        anywhere |= x->open[b];
        if (b && !x->called[b]) continue;
        reached[b] = true;
        stack[depth++] = b;
    }
    while (depth) {
        uint32_t b = stack[--depth];
        for (uint32_t e = x->out_at[b]; e < x->out_at[b + 1]; e++) {
            uint32_t to = x->sass.edges[e].to;
            if (to == NONE || reached[to]) continue;
            reached[to] = true;
            stack[depth++] = to;
        }
    }
    for (uint32_t b = 0; b < x->sass.n && !anywhere; b++) x->m->mapped[b] |= !reached[b];
    free(stack);
    free(reached);
}

static void map_by_flow(struct mapping *x)
{
    const struct graph *g = &x->sass;
    uint32_t *out = mg_xcalloc(g->n_edges + 1, sizeof *out), *in = mg_xcalloc(g->n_edges + 1, sizeof *in), *in_at = mg_xcalloc(g->n + 2, sizeof *in_at);
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

/* ---- copies -------------------------------------------------------------------------------------------------------- */

/* Of an opcode that a line became: how often in one block, and the first place of all. Under a predicate it is issued for
 * threads that the PTX's count does not hold. */
static uint32_t count_in(const struct mapping *x, uint32_t block, uint32_t line, const char *op, uint32_t *first, bool *guarded)
{
    uint32_t n = 0;
    for (uint32_t i = x->first[block + 1]; i-- > x->first[block];)
        if (x->site[i] == line && !strcmp(x->f->insts[i].op, op)) n++, *first = i, *guarded |= x->f->insts[i].guarded;
    return n;
}

/* An instruction of the PTX block that every round needs: the control of a loop that is unrolled stands there once. */
static bool is_work(const struct mapping *x, uint32_t line, uint32_t ptx)
{
    const char *op = x->lines[line]->op;
    return x->lines[line]->block == ptx && strncmp(op, "setp", 4) && strncmp(op, "bra", 3);
}

/* Machine blocks without a count that hold a good part of a PTX block, with how often each holds it: 0 elsewhere. */
static uint32_t find_copies(const struct mapping *x, uint32_t ptx, uint32_t *times)
{
    uint32_t *all = mg_xcalloc(x->n_lines + 1, sizeof *all), found = 0, n_lines = 0;
    for (uint32_t i = 0; i < x->n_lines; i++) n_lines += is_work(x, i, ptx);
    for (uint32_t b = 0; b < x->sass.n; b++) {
        uint32_t n = 0;
        bool anchor = false;
        times[b] = 0;
        for (uint32_t i = 0; i < x->n_lines && !x->m->mapped[b]; i++) {
            uint32_t copies = is_work(x, i, ptx) ? copies_of(x, b, i) : 0;
            if (copies) all[n++] = copies;
            anchor |= copies && is_anchor(x->lines[i]->op);
        }
        if (!n || (!anchor && 3 * n < n_lines)) continue;
        qsort(all, n, sizeof *all, by_value);
        times[b] = all[n / 2];
        found += mg_loops_depth(x->sass.loops, b) == mg_loops_depth(x->ptx.loops, ptx);
    }
    free(all);
    return found;
}

/* The executions of a line by one of its opcodes: what the PTX counted, less those in blocks that have a count. False: the
 * copies are not alike. */
static bool share_out(struct mapping *x, uint32_t line, const char *op, const uint32_t *times)
{
    uint64_t all = x->k->threads[x->lines[line]->block], done = 0;
    uint32_t each = 0, first = NONE, at = 0;
    for (uint32_t b = 0; b < x->sass.n; b++) {
        bool guarded = false;
        uint32_t n = count_in(x, b, line, op, &at, &guarded);
        if (guarded) return false;
        if (x->m->mapped[b]) {
            done += n * x->m->entered[b];
            continue;
        }
        if ((n && !times[b]) || n % MG_MAX(times[b], 1u)) return false;
        if (times[b]) {
            if (!n || (each && each != n / times[b])) return false;
            each = n / times[b];
            first = MG_MIN(first, at);
        }
    }
    if (first == NONE || done > all * each) return false;
    x->m->threads[first] = all * each - done;
    return true;
}

static void map_copies(struct mapping *x)
{
    uint32_t *times = mg_xcalloc(x->sass.n + 1, sizeof *times);
    for (uint32_t p = 0; p < x->k->n_blocks; p++) {
        bool any = false;
        for (uint32_t i = 0; i < x->f->n_insts && !any; i++) any = x->site[i] != NONE && x->lines[x->site[i]]->block == p && !x->m->mapped[x->m->block_of[i]];
        if (!any || !find_copies(x, p, times)) continue;
        for (uint32_t i = 0; i < x->f->n_insts; i++) {
            uint32_t line = x->site[i];
            if (line == NONE || x->lines[line]->block != p || x->m->mapped[x->m->block_of[i]] || x->m->known[i] || !share_out(x, line, x->f->insts[i].op, times)) continue;
            for (uint32_t j = i; j < x->f->n_insts; j++)
                x->m->known[j] |= x->site[j] == line && !x->m->mapped[x->m->block_of[j]] && !strcmp(x->f->insts[j].op, x->f->insts[i].op);
        }
    }
    free(times);
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
        find_homes(&x);
        map_by_lines(&x);
        map_unreached(&x);
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
    free(x.ptx.edges);
    free(x.sass.edges);
    free(x.first);
    free(x.lines);
    free(x.site);
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
