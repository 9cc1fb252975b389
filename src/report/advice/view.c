/* A function of a module as rules look at it: its loops, and where its values come from. Sites come function by
 * function, so that one is kept. */
#include "report/advice/view.h"

mg_id node_at(const struct mg_module *m, mg_id first, uint32_t ptx_line)
{
    for (mg_id id = first; id; id = m->nodes.at[id].next)
        if (m->nodes.at[id].kind == MG_NODE_inst && m->nodes.at[id].line == ptx_line) return id;
    return 0;
}

mg_id view_function(struct view *v, const struct mg_module *m, const char *function)
{
    mg_id func = m ? mg_module_find_func(m, function) : 0;
    if (!func || !m->funcs.at[func].defined || !m->funcs.at[func].first_node) return 0;
    if (v->m != m || v->func != func) {
        view_release(v);
        *v = (struct view){.m = m, .func = func, .cfg = mg_cfg_new(m, func)};
        v->loops = mg_loops_new(v->cfg);
    }
    return m->funcs.at[func].first_node;
}

const struct mg_ssa *ssa_of(struct view *v)
{
    if (v->ssa) return v->ssa;
    v->dom = mg_dom_new(v->cfg);
    v->live = mg_live_new(v->cfg);
    v->ssa = mg_ssa_new(v->cfg, v->dom, v->live);
    return v->ssa;
}

uint32_t loop_at(const struct view *v, mg_id node)
{
    uint32_t block = mg_cfg_block_of(v->cfg, node);
    return block == MG_NO_BLOCK ? MG_NO_LOOP : v->loops->loop_of[block];
}

void view_release(struct view *v)
{
    if (!v->cfg) return;
    mg_loops_free(v->loops);
    mg_ssa_free(v->ssa);
    mg_live_free(v->live);
    mg_dom_free(v->dom);
    mg_cfg_free(v->cfg);
    *v = (struct view){0};
}
