/* See lone_loop.h. */
#include "analysis/lone_loop.h"

/* Nothing in it that others can see or change, nor that lanes do together. */
static bool only_computes(const struct mg_cfg *c, uint32_t b)
{
    const struct mg_module *m = c->m;
    for (mg_id id = c->blocks[b].first;; id = m->nodes.at[id].next) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_inst && !(n->flags & MG_NF_META)) {
            const struct mg_form *f = mg_node_form(m, n);
            bool fixed = f->op == MG_OP_ld && (f->space == MG_SPACE_param || f->space == MG_SPACE_const);
            if (f->unknown || f->op_flags & (MG_OPF_ATOMIC | MG_OPF_CONVERGENT | MG_OPF_BARRIER | MG_OPF_WRITES) ||
                (f->op_flags & MG_OPF_READS && !fixed))
                return false;
        }
        if (id == c->blocks[b].last) return true;
    }
}

/* Takes the edge no other code on its way: it falls through, or its end has only this one. */
static bool is_free(const struct mg_cfg *c, uint32_t block, uint32_t edge)
{
    const struct mg_block *k = &c->blocks[block];
    return edge == k->succ_at || c->blocks[c->edges[edge]].n_preds == 1;
}

bool mg_lone_loop_of(const struct mg_cfg *c, const struct mg_loops *l, uint32_t b, struct mg_lone_loop *out)
{
    const struct mg_block *k = &c->blocks[b];
    const struct mg_node *end = &c->m->nodes.at[k->last];
    uint32_t n_in = 0;
    if (l->loop_of[b] == MG_NO_LOOP || l->loops[l->loop_of[b]].n_blocks != 1 || !b || k->n_succs != 2 || k->leaves ||
        !end->guard || mg_node_form(c->m, end)->op != MG_OP_bra)
        return false;
    out->out = k->succ_at + (c->edges[k->succ_at] == b);
    for (uint32_t i = 0; i < k->n_preds; i++) {
        uint32_t from = c->preds[k->pred_at + i];
        for (uint32_t s = 0; s < c->blocks[from].n_succs && from != b && c->reachable[from]; s++)
            if (c->edges[c->blocks[from].succ_at + s] == b)
                out->from = from, out->in = c->blocks[from].succ_at + s, n_in++;
    }
    uint32_t to = c->edges[out->out]; /* what comes later: lanes are in no other run of it meanwhile */
    return n_in == 1 && to != b && c->rank[to] > c->rank[b] && c->rank[out->from] < c->rank[b] &&
           c->blocks[out->from].n_succs && is_free(c, out->from, out->in) && is_free(c, b, out->out) &&
           mg_node_form(c->m, &c->m->nodes.at[c->blocks[out->from].last])->op != MG_OP_brx && only_computes(c, b);
}
