/* Solving: each step gives the one open edge of a node what the node's other edges leave. Edges outside
 * a loop do not depend on how often its latch is taken, so loops of known length are filled in from
 * the outside in: one solution for each depth of them. */
#include "count/plan.h"

#include <stdlib.h>
#include <string.h>

struct solver {
    const struct mg_flow *f;
    uint64_t *value, *excess, *latch;
};

static uint64_t known(const struct solver *s, uint32_t i, uint64_t entries, const uint64_t *measured)
{
    const struct mg_flow_edge *e = &s->f->edges[i];
    switch (e->from) {
    case MG_FLOW_OPEN:
    case MG_FLOW_ZERO:
        return 0;
    case MG_FLOW_ENTRIES:
        return entries;
    case MG_FLOW_LOOP:
        return s->latch[i];
    default:
        return measured[e->from];
    }
}

static void solve_once(struct solver *s, uint64_t entries, const uint64_t *measured)
{
    const struct mg_flow *f = s->f;
    memset(s->excess, 0, sizeof *s->excess * f->n_nodes); /* in less out, of known edges */
    for (uint32_t i = 0; i < f->n_edges; i++) {
        const struct mg_flow_edge *e = &f->edges[i];
        if (e->a == e->b) continue;
        s->value[i] = known(s, i, entries, measured);
        s->excess[e->b] += s->value[i];
        s->excess[e->a] -= s->value[i];
    }
    for (uint32_t i = 0; i < f->n_steps; i++) {
        uint32_t id = f->steps[i].edge, x = f->steps[i].node;
        const struct mg_flow_edge *e = &f->edges[id];
        s->value[id] = e->a == x ? s->excess[x] : -s->excess[x];
        s->excess[e->b] += s->value[id];
        s->excess[e->a] -= s->value[id];
    }
}

bool mg_flow_solve(const struct mg_flow *f, uint64_t entries, const uint64_t *measured, uint64_t *blocks)
{
    struct solver s = {.f = f,
                       .value = mg_xcalloc(f->n_edges + 1, sizeof *s.value),
                       .excess = mg_xcalloc(f->n_nodes + 1, sizeof *s.excess),
                       .latch = mg_xcalloc(f->n_edges + 1, sizeof *s.latch)};
    solve_once(&s, entries, measured);
    for (uint32_t i = 0; i < f->n_loops;) {
        uint32_t depth = f->loops[i].depth;
        for (; i < f->n_loops && f->loops[i].depth == depth; i++) {
            const struct mg_flow_loop *l = &f->loops[i];
            uint64_t times = 0;
            for (uint32_t k = 0; k < l->n_entries; k++) times += s.value[f->entries[l->entry_at + k]];
            s.latch[l->latch] = times * l->times;
        }
        solve_once(&s, entries, measured);
    }
    bool good = true;
    for (uint32_t i = 0; i < f->n_edges; i++) good &= !(s.value[i] >> 63);
    for (uint32_t b = 0; b < f->n_blocks; b++) blocks[b] = s.value[b];
    free(s.value);
    free(s.excess);
    free(s.latch);
    return good;
}

void mg_flow_release(struct mg_flow *f)
{
    free(f->edges);
    free(f->steps);
    free(f->loops);
    free(f->entries);
    *f = (struct mg_flow){0};
}
