/* See spin.h. */
#include "analysis/spin.h"

#include <stdlib.h>

/* div.approx and div.full, rcp.approx and so on are instructions; integers of 32 bits are not taken for safe. */
static bool is_subroutine(const struct mg_module *m, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(m, n);
    switch (f->op) {
    case MG_OP_call:
        return true;
    case MG_OP_div:
    case MG_OP_rem:
    case MG_OP_sqrt:
    case MG_OP_rcp:
    case MG_OP_rsqrt:
        return !mg_form_has(f, MG_MOD_approx) && !mg_form_has(f, MG_MOD_full);
    default:
        return false;
    }
}

static bool has_subroutine(const struct mg_cfg *c, uint32_t b)
{
    for (mg_id id = c->blocks[b].first;; id = c->m->nodes.at[id].next) {
        const struct mg_node *n = &c->m->nodes.at[id];
        if (n->kind == MG_NODE_inst && is_subroutine(c->m, n)) return true;
        if (id == c->blocks[b].last) return false;
    }
}

static bool counts_up(const struct mg_ivs *v, uint32_t loop)
{
    if (v->trips[loop] == MG_TRIPS_ANY) return false;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->list[i].loop == loop && !v->list[i].down) return true;
    return false;
}

bool *mg_loops_may_spin(const struct mg_cfg *c, const struct mg_loops *l, const struct mg_ivs *v)
{
    bool *may = mg_xcalloc(l->n_loops + 1, sizeof *may);
    bool none = true;
    for (uint32_t b = 0; b < c->n_blocks && none; b++) none = !has_subroutine(c, b);
    for (uint32_t k = 0; k < l->n_loops; k++) /* outer ones come first */
        may[k] = !none || l->loops[k].n_headers != 1 || !counts_up(v, k) ||
                 (l->loops[k].parent != MG_NO_LOOP && may[l->loops[k].parent]);
    return may;
}
