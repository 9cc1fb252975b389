/* What passes that rename registers have in common. */
#include "pass/rename.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_REGS = 300 }; /* of one instruction */

const char *mg_mov_form(enum mg_type type)
{
    switch (mg_type_bits(type)) {
    case 1:
        return "mov.pred";
    case 16:
        return "mov.b16";
    case 32:
        return "mov.b32";
    default:
        return "mov.b64";
    }
}

bool *mg_regs_pinned(const struct mg_module *m, mg_id func, const struct mg_live *l)
{
    bool *pinned = mg_xcalloc(l->reg_hi - l->reg_lo + 1, sizeof *pinned);
    mg_id ids[2 * MOST_REGS];
    for (mg_id r = l->reg_lo; r < l->reg_hi; r++) {
        const struct mg_reg *reg = &m->regs.at[r];
        unsigned bits = mg_type_bits((enum mg_type)reg->type);
        pinned[r - l->reg_lo] =
            reg->vec || reg->func != func || !reg->decl || (bits != 1 && bits != 16 && bits != 32 && bits != 64);
    }
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        unsigned op = mg_node_form(m, n)->op;
        if (op && op != MG_OP_wgmma && op != MG_OP_tcgen05) continue;
        uint32_t k = mg_node_uses(m, id, ids, MOST_REGS);
        k = MG_MIN(k, (uint32_t)MOST_REGS);
        uint32_t d = mg_node_defs(m, id, ids + k, MOST_REGS);
        for (uint32_t i = 0; i < k + MG_MIN(d, (uint32_t)MOST_REGS); i++)
            if (ids[i] >= l->reg_lo && ids[i] < l->reg_hi) pinned[ids[i] - l->reg_lo] = true;
    }
    return pinned;
}

void mg_regs_undeclare(struct mg_module *m, mg_id func)
{
    bool *used = mg_xcalloc(m->regs.n, sizeof *used);
    mg_id ids[2 * MOST_REGS];
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        uint32_t k = mg_node_uses(m, id, ids, MOST_REGS);
        k = MG_MIN(k, (uint32_t)MOST_REGS);
        uint32_t d = mg_node_defs(m, id, ids + k, MOST_REGS);
        for (uint32_t i = 0; i < k + MG_MIN(d, (uint32_t)MOST_REGS); i++) used[ids[i]] = true;
    }
    mg_id next;
    for (mg_id id = m->funcs.at[func].first_node; id; id = next) {
        const struct mg_node *n = &m->nodes.at[id];
        next = n->next;
        if (n->kind != MG_NODE_decl || m->decls.at[n->ref].space != MG_SPACE_reg) continue;
        const struct mg_decl *d = &m->decls.at[n->ref];
        bool any = false;
        for (uint32_t i = 0; i < d->n; i++) any |= used[d->first + i];
        if (!any) mg_node_remove(m, func, id);
    }
    free(used);
}
