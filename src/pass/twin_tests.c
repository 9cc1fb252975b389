/* Tests of single bits in front of votes, as in the search for equal values bit by bit:
 *
 *     and.b32 t, v, 4;  setp.ne.u32 p, t, 0;  vote.sync.ballot.b32 t, p, -1;
 *
 * The assembler moves seven bits of v to the seven predicates in one step. Behind code of ours that waits for the lanes
 * of a warp, on a way that not all lanes take, it needs one of them itself and gives up (C7600, ptxas 13.0; a
 * `bar.warp.sync` there in a program's own code does the same). So what such tests compare with is a 0 that it does not
 * know: bit 0 of the context's address. */
#include "pass/priv.h"

enum { NEAR = 4 /* nodes between test and vote */ };

/* The predicate that all lanes vote by; 0: it is no such node. */
static mg_id vote_by(const struct mg_module *m, mg_id node)
{
    const struct mg_node *n = &m->nodes.at[node];
    if (n->kind != MG_NODE_inst || n->flags & MG_NF_META) return 0;
    const struct mg_form *f = mg_node_form(m, n);
    const struct mg_opnd *by = n->n_opnds > 1 ? &m->opnds.at[n->opnd + 1] : NULL;
    return f->op == MG_OP_vote && mg_form_has(f, MG_MOD_sync) && by && by->kind == MG_OPND_reg ? by->id : 0;
}

/* The 0 that the predicate was compared with in front of the vote; NULL: not seen. */
static struct mg_opnd *zero_of(struct mg_module *m, mg_id vote, mg_id pred)
{
    mg_id at = m->nodes.at[vote].prev;
    for (unsigned k = 0; at && k < NEAR; k++, at = m->nodes.at[at].prev) {
        const struct mg_node *n = &m->nodes.at[at];
        if (n->kind != MG_NODE_inst || n->n_opnds != 3) continue;
        const struct mg_form *f = mg_node_form(m, n);
        struct mg_opnd *o = &m->opnds.at[n->opnd];
        if (f->op != MG_OP_setp || o->kind != MG_OPND_reg || o->id != pred) continue;
        return mg_type_bits((enum mg_type)f->types[0]) == 32 && o[2].kind == MG_OPND_imm && !o[2].val ? &o[2] : NULL;
    }
    return NULL;
}

/* At the function's entry. */
static mg_id make_zero(struct mg_twin *t, uint32_t ix)
{
    struct mg_module *m = t->m;
    mg_id func = t->funcs[ix], at = t->entry_at[ix], zero = mg_module_add_reg(m, func, "__mg_zero", MG_TYPE_b32);
    MG_INSERT(m, func, at, "cvt.u32.u64", zero, t->ctx_reg[ix]);
    MG_INSERT(m, func, at, "and.b32", zero, zero, 1);
    return zero;
}

void mg_twin_hide_zeros(struct mg_twin *t)
{
    struct mg_module *m = t->m;
    for (uint32_t ix = 0; ix < t->n_funcs; ix++) {
        mg_id zero = 0;
        MG_EACH_NODE(m, &m->funcs.at[t->funcs[ix]], id)
        {
            mg_id pred = vote_by(m, id);
            struct mg_opnd *o = pred ? zero_of(m, id, pred) : NULL;
            if (!o) continue;
            size_t place = (size_t)(o - m->opnds.at); /* operands move */
            if (!zero) zero = make_zero(t, ix);
            m->opnds.at[place] = mg_o_reg(zero);
        }
    }
}
