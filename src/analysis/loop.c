/* Loops by nested strongly connected components; see loop.h. */
#include "analysis/loop.h"

#include <stdlib.h>
#include <string.h>

struct nest {
    const struct mg_graph *succ, *pred;
    const bool *reachable;
    struct mg_loops *l;
    MG_VEC(struct mg_loop) loops;
    /* Tarjan's algorithm, restricted to the blocks of one region */
    uint32_t *region; /* block -> number of the region it is searched in, 0: none */
    uint32_t *index, *low, *stack, *frames, *next;
    bool *on_stack, *is_header;
    uint32_t n_stack, counter;
    MG_VEC(uint32_t) blocks; /* blocks of the components found, run after run */
    struct task {
        uint32_t at, n, loop;
    } * tasks;
    uint32_t n_tasks, cap_tasks, n_regions;
};

static void add_task(struct nest *s, uint32_t at, uint32_t n, uint32_t loop)
{
    if (s->n_tasks == s->cap_tasks) {
        s->cap_tasks = s->cap_tasks ? s->cap_tasks * 2 : 16;
        s->tasks = mg_xrealloc(s->tasks, sizeof *s->tasks * s->cap_tasks);
    }
    s->tasks[s->n_tasks++] = (struct task){at, n, loop};
}

/* A component that is a loop: note it, and look inside later. */
static void add_loop(struct nest *s, uint32_t parent, const uint32_t *blocks, uint32_t n)
{
    uint32_t ix = s->loops.n, at = s->blocks.n;
    struct mg_loop lp = {.header = UINT32_MAX,
                         .parent = parent,
                         .n_blocks = n,
                         .depth = parent == MG_NO_LOOP ? 1 : s->loops.at[parent].depth + 1};
    for (uint32_t i = 0; i < n; i++) {
        *mg_vec_push(&s->blocks) = blocks[i];
        s->l->loop_of[blocks[i]] = ix;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool entered = blocks[i] == 0;
        MG_EACH_EDGE(s->pred, blocks[i], e)
        entered |= s->l->loop_of[s->pred->to[e]] != ix && s->reachable[s->pred->to[e]];
        if (!entered) continue;
        s->is_header[blocks[i]] = true;
        lp.header = MG_MIN(lp.header, blocks[i]);
        lp.n_headers++;
    }
    *mg_vec_push(&s->loops) = lp;
    if (n > 1) add_task(s, at, n, ix);
}

static bool has_self_edge(const struct nest *s, uint32_t b)
{
    MG_EACH_EDGE(s->succ, b, e)
    if (s->succ->to[e] == b) return !s->is_header[b];
    return false;
}

/* Components of region r reached from `root`. Edges to headers of enclosing loops do not count. */
static void search(struct nest *s, uint32_t r, uint32_t parent, uint32_t root)
{
    uint32_t depth = 0;
    s->frames[depth++] = root;
    s->index[root] = s->low[root] = s->counter++;
    s->next[root] = 0;
    s->stack[s->n_stack++] = root;
    s->on_stack[root] = true;
    while (depth) {
        uint32_t b = s->frames[depth - 1];
        if (s->next[b] < mg_graph_degree(s->succ, b)) {
            uint32_t to = s->succ->to[s->succ->at[b] + s->next[b]++];
            if (s->region[to] != r || s->is_header[to]) continue;
            if (s->index[to] == UINT32_MAX) {
                s->index[to] = s->low[to] = s->counter++;
                s->next[to] = 0;
                s->stack[s->n_stack++] = to;
                s->on_stack[to] = true;
                s->frames[depth++] = to;
            } else if (s->on_stack[to]) {
                s->low[b] = MG_MIN(s->low[b], s->index[to]);
            }
            continue;
        }
        depth--;
        if (depth) s->low[s->frames[depth - 1]] = MG_MIN(s->low[s->frames[depth - 1]], s->low[b]);
        if (s->low[b] != s->index[b]) continue;
        uint32_t from = s->n_stack;
        while (s->stack[--from] != b) s->on_stack[s->stack[from]] = false;
        s->on_stack[b] = false;
        uint32_t n = s->n_stack - from;
        s->n_stack = from;
        if (n > 1 || has_self_edge(s, b)) add_loop(s, parent, s->stack + from, n);
    }
}

static void run_region(struct nest *s, const uint32_t *blocks, uint32_t n, uint32_t parent)
{
    uint32_t r = ++s->n_regions;
    for (uint32_t i = 0; i < n; i++) {
        s->region[blocks[i]] = r;
        s->index[blocks[i]] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->index[blocks[i]] == UINT32_MAX) search(s, r, parent, blocks[i]);
}

static bool may_loop(const struct mg_graph *g)
{
    for (uint32_t x = 0; x < g->n; x++) MG_EACH_EDGE(g, x, e)
    if (g->to[e] <= x) return true;
    return false;
}

struct mg_loops *mg_loops_new(const struct mg_cfg *c)
{
    return mg_loops_of(&c->succ, &c->pred, c->reachable);
}

struct mg_loops *mg_loops_of(const struct mg_graph *succ, const struct mg_graph *pred, const bool *reachable)
{
    struct mg_loops *l = mg_xcalloc(1, sizeof *l);
    uint32_t n = succ->n;
    l->n_blocks = n;
    l->loop_of = mg_arena_alloc(&l->arena, sizeof(uint32_t) * (n + 1));
    memset(l->loop_of, 0xff, sizeof(uint32_t) * (n + 1));
    if (!may_loop(succ)) return l;
    struct nest s = {.succ = succ, .pred = pred, .reachable = reachable, .l = l};
    uint32_t *words = mg_xcalloc((size_t)n * 7 + 7, sizeof *words);
    bool *flags = mg_xcalloc((size_t)n * 2 + 2, sizeof *flags);
    s.region = words;
    s.index = words + n;
    s.low = words + 2 * (size_t)n;
    s.stack = words + 3 * (size_t)n;
    s.frames = words + 4 * (size_t)n;
    s.next = words + 5 * (size_t)n;
    s.on_stack = flags;
    s.is_header = flags + n;
    uint32_t *all = words + 6 * (size_t)n, n_all = 0;
    for (uint32_t i = 0; i < n; i++)
        if (reachable[i]) all[n_all++] = i;
    run_region(&s, all, n_all, MG_NO_LOOP);
    for (uint32_t t = 0; t < s.n_tasks; t++) {
        struct task task = s.tasks[t];
        uint32_t *inside = mg_arena_copy(&l->arena, s.blocks.at + task.at, sizeof *inside * task.n);
        run_region(&s, inside, task.n, task.loop);
    }
    l->n_loops = s.loops.n;
    l->loops = mg_arena_copy(&l->arena, s.loops.at ? (void *)s.loops.at : (void *)&s, sizeof *l->loops * s.loops.n);
    mg_vec_release(&s.loops);
    mg_vec_release(&s.blocks);
    free(s.tasks);
    free(words);
    free(flags);
    return l;
}

void mg_loops_free(struct mg_loops *l)
{
    if (!l) return;
    mg_arena_release(&l->arena);
    free(l);
}

bool mg_loops_contains(const struct mg_loops *l, uint32_t loop, uint32_t block)
{
    uint32_t x = l->loop_of[block];
    while (x != MG_NO_LOOP && x != loop) x = l->loops[x].parent;
    return x == loop && loop != MG_NO_LOOP;
}

uint32_t mg_loops_common_depth(const struct mg_loops *l, uint32_t a, uint32_t b)
{
    uint32_t x = l->loop_of[a], y = l->loop_of[b];
    while (x != y) {
        uint32_t dx = x == MG_NO_LOOP ? 0 : l->loops[x].depth, dy = y == MG_NO_LOOP ? 0 : l->loops[y].depth;
        if (dx >= dy)
            x = l->loops[x].parent;
        else
            y = l->loops[y].parent;
    }
    return x == MG_NO_LOOP ? 0 : l->loops[x].depth;
}
