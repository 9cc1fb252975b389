/* See parted.h. */
#include "analysis/parted.h"

#include <stdlib.h>

#include "analysis/dom.h"
#include "analysis/freq.h"

#define STEPS 6 /* from a thread's place to what is made of it */
#define DEPTH 8 /* of conditions made of others */

struct whole { /* what is known of a function */
    const struct mg_cfg *c;
    const struct mg_uniform *u;
    struct mg_defs def;
};

/* Is the register made of the thread's place and of parameters alone, so that neighbours have values in order? */
static bool is_place(const struct whole *w, mg_id reg, unsigned steps)
{
    const struct mg_module *m = w->c->m;
    mg_id def = mg_def_of(&w->def, reg);
    if (reg >= w->u->reg_lo && reg < w->u->reg_hi && !w->u->varying[reg - w->u->reg_lo]) return true;
    if (!def || !steps) return false;
    const struct mg_node *n = &m->nodes.at[def];
    const struct mg_form *form = mg_node_form(m, n);
    bool linear = form->op == MG_OP_mov || form->op == MG_OP_cvt || form->op == MG_OP_add || form->op == MG_OP_sub ||
                  form->op == MG_OP_mad || form->op == MG_OP_mul || form->op == MG_OP_shl;
    bool place = linear && !n->guard;
    for (uint32_t i = 1; i < n->n_opnds && place; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        if (o->kind == MG_OPND_reg)
            place = is_place(w, o->id, steps - 1);
        else
            place = o->kind == MG_OPND_imm || (o->kind == MG_OPND_sreg && o->id != MG_SREG_laneid);
    }
    return place;
}

/* Does the branch at the block's end compare by order what follows from the thread's place? Such a branch parts one
 * warp of many. */
static bool parts_few(const struct whole *w, mg_id guard, unsigned depth)
{
    const struct mg_module *m = w->c->m;
    if (guard >= w->u->reg_lo && guard < w->u->reg_hi && !w->u->varying[guard - w->u->reg_lo]) return true;
    mg_id def = mg_def_of(&w->def, guard), regs[8];
    if (!def || m->nodes.at[def].guard) return false;
    const struct mg_form *form = mg_node_form(m, &m->nodes.at[def]);
    uint32_t n = mg_node_uses(m, def, regs, MG_COUNT_OF(regs));
    bool joins = form->op == MG_OP_and || form->op == MG_OP_or || form->op == MG_OP_not;
    bool orders = form->op == MG_OP_setp && form->n_types && mg_type_kind(form->types[0]) != MG_TK_FLOAT &&
                  !mg_form_has(form, MG_MOD_eq) && !mg_form_has(form, MG_MOD_ne);
    if (n > MG_COUNT_OF(regs) || !depth || (!joins && !orders)) return false;
    bool few = n > 0;
    for (uint32_t i = 0; i < n && few; i++)
        few = joins || m->regs.at[regs[i]].type == MG_TYPE_pred ? parts_few(w, regs[i], depth - 1)
                                                                : is_place(w, regs[i], STEPS);
    return few;
}

static bool is_fork(const struct mg_cfg *c, uint32_t b)
{
    return c->reachable[b] && c->blocks[b].n_succs > 1;
}

bool *mg_parted_new(const struct mg_cfg *c, const struct mg_uniform *u)
{
    struct whole w = {.c = c, .u = u, .def = mg_single_defs(c)};
    struct mg_dom *post = mg_postdom_new(c);
    bool *parted = mg_xcalloc(c->n_blocks + 1, sizeof *parted), *parts = mg_xcalloc(c->n_blocks + 1, sizeof *parts);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        parts[b] = is_fork(c, b) && !parts_few(&w, c->m->nodes.at[c->blocks[b].last].guard, DEPTH);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            uint32_t b = c->rpo[i];
            if (!is_fork(c, b) || (!parts[b] && !parted[b])) continue;
            for (uint32_t s = 0; s < c->blocks[b].n_succs; s++) /* what its way decides on */
                for (uint32_t to = c->edges[c->blocks[b].succ_at + s]; to < c->n_blocks && to != post->idom[b];
                     to = post->idom[to])
                    if (!parted[to]) parted[to] = again = true;
        }
    }
    mg_dom_free(post);
    free(w.def.at);
    free(parts);
    return parted;
}
