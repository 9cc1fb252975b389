/* What a GPU asks of a twin before tools insert code.
 *
 * Lanes of a warp that are apart come together in front of a barrier of the whole CTA.
 * `barrier.sync` may be reached by lanes that are apart, and the assembler's code for that does not hold on an H200: a
 * part of the warp that arrives before the rest may run on (docs/nvidia.md, "Warps that are apart"). Natively lanes are
 * seldom apart there, since the assembler sees where they meet again; with inserted code in between it sees less.
 *
 * `bar.warp.sync` with all lanes waits for nobody whom the barrier does not wait for: for a lane that has not ended, at
 * whatever barrier of all threads. A barrier with a number of threads is some threads' own and stays as it is. */
#include "pass/pass.h"

static bool is_of_all(const struct mg_module *m, const struct mg_node *n)
{
    const struct mg_form *f = mg_node_form(m, n);
    return n->kind == MG_NODE_inst && f->op == MG_OP_barrier && mg_form_has(f, MG_MOD_sync) && n->n_opnds == 1 &&
           !mg_form_has(f, MG_MOD_aligned) && !mg_form_has(f, MG_MOD_cluster);
}

static void gather_lanes(struct mg_twin *t)
{
    struct mg_module *m = t->m;
    for (uint32_t f = 0; f < t->n_funcs; f++)
        for (mg_id id = m->funcs.at[t->funcs[f]].first_node; id; id = m->nodes.at[id].next) {
            if (m->nodes.at[id].kind != MG_NODE_inst || !is_of_all(m, &m->nodes.at[id])) continue;
            mg_id sync = mg_node_new(m, MG_INST("bar.warp.sync", mg_o_imm(UINT32_MAX)));
            m->nodes.at[sync].guard = m->nodes.at[id].guard;
            m->nodes.at[sync].flags |= m->nodes.at[id].flags & MG_NF_GUARD_NOT;
            mg_node_insert_before(m, t->funcs[f], id, sync);
        }
}

static void trap_native_calls(struct mg_twin *t)
{
    struct mg_module *m = t->m;
    for (uint32_t k = 0; k < t->n_native_calls; k++) {
        mg_id form = mg_form_intern(m, "trap", 4);
        struct mg_node *n = &m->nodes.at[t->native_calls[k]];
        n->ref = form;
        n->n_opnds = 0;
    }
    t->n_native_calls = 0;
}

void mg_twin_for_gpu(struct mg_twin *t)
{
    trap_native_calls(t);
    mg_twin_align_shared(t->m);
    gather_lanes(t);
}
