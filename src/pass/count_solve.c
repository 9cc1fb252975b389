/* Solving: each step gives the one open edge of a node what the node's other edges leave. */
#include "pass/count.h"

#include <stdlib.h>

void mg_flow_solve(const struct mg_flow *f, uint64_t entries, const uint64_t *measured, uint64_t *blocks)
{
    uint64_t *value = mg_xcalloc(f->n_edges + 1, sizeof *value);
    uint64_t *excess = mg_xcalloc(f->n_nodes + 1, sizeof *excess); /* in less out, of known edges */
    for (uint32_t i = 0; i < f->n_edges; i++) {
        const struct mg_flow_edge *e = &f->edges[i];
        if (e->a == e->b || e->from == MG_FLOW_OPEN || e->from == MG_FLOW_ZERO) continue;
        value[i] = e->from == MG_FLOW_ENTRIES ? entries : measured[e->from];
        excess[e->b] += value[i];
        excess[e->a] -= value[i];
    }
    for (uint32_t i = 0; i < f->n_steps; i++) {
        uint32_t id = f->steps[i].edge, x = f->steps[i].node;
        const struct mg_flow_edge *e = &f->edges[id];
        value[id] = e->a == x ? excess[x] : -excess[x];
        excess[e->b] += value[id];
        excess[e->a] -= value[id];
    }
    for (uint32_t b = 0; b < f->n_blocks; b++) blocks[b] = value[b];
    free(value);
    free(excess);
}

void mg_flow_release(struct mg_flow *f)
{
    free(f->edges);
    free(f->steps);
    *f = (struct mg_flow){0};
}
