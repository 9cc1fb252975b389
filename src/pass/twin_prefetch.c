/* Tables of constants that a GPU's twin reads at moving places, in loops. A constant bank fetches what comes next by
 * itself; the first-level cache, through which the twin reads, takes one sector of 32 bytes at each miss, and with few
 * warps on a multiprocessor every round waits for one. So each CTA asks for the whole table when it begins:
 *
 *     for (at = 32 * linear thread; at < bytes; at += 32 * threads)  cp.async.ca.shared.global [a word], [table + at],
 * 4
 *
 * which waits for nothing and leaves the sector in the cache (prefetch.global.L1 does not: docs/history/2026-11.md).
 * Not where the CTA has dynamic shared memory, which would move. */
#include <stdio.h>

#include "analysis/loop.h"
#include "pass/priv.h"

enum { WORD = 4, SECTOR_BITS = 5, LEAST_BYTES = 256, MOST_BYTES = 65536, MOST_VARS = 4 };

/* A table of the module's whose address the instruction takes; 0: none. */
static mg_id taken_table(const struct mg_module *m, const struct mg_node *n)
{
    for (uint32_t i = 0; i < n->n_opnds; i++) {
        const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
        if (o->kind != MG_OPND_var) continue;
        const struct mg_var *v = &m->vars.at[o->id];
        uint64_t bytes = mg_var_bytes(v);
        if (v->space == MG_SPACE_const && !v->func && !v->count && mg_var_align(v) >= WORD && bytes >= LEAST_BYTES &&
            bytes <= MOST_BYTES)
            return v->def ? v->def : o->id;
    }
    return 0;
}

/* A load of a constant through a register. */
static bool moves(const struct mg_module *m, const struct mg_node *n)
{
    return mg_is_constant_load(m, n) && m->opnds.at[n->opnd + 1].sub == MG_OPND_reg;
}

#define EMIT(...) MG_INSERT(m, func, at, __VA_ARGS__)

static void emit_prefetch(struct mg_twin_func *f, const mg_id *vars, uint32_t n_vars)
{
    struct mg_module *m = f->b->m;
    mg_id func = f->func, at = f->b->t->entry_at[f->ix], bases[MOST_VARS];
    for (uint32_t i = 0; i < n_vars; i++) bases[i] = mg_twin_symbol_reg(f, mg_twin_symbol_of_var(f->b, vars[i]));
    mg_id scratch = mg_module_add_shared(m, func, "__mg_fetched", MG_TYPE_b32, 0, 0);
    mg_id thread = mg_module_add_reg(m, func, "__mg_a", MG_TYPE_b32),
          threads = mg_module_add_reg(m, func, "__mg_b", MG_TYPE_b32),
          t = mg_module_add_reg(m, func, "__mg_x", MG_TYPE_b32);
    mg_id off = mg_module_add_reg(m, func, "__mg_o", MG_TYPE_b32),
          p = mg_module_add_reg(m, func, "__mg_p", MG_TYPE_pred),
          from = mg_module_add_reg(m, func, "__mg_f", MG_TYPE_b64);
    EMIT("mov.u32", thread, mg_o_sreg(MG_SREG_tid, 3));
    EMIT("mov.u32", threads, mg_o_sreg(MG_SREG_ntid, 3));
    for (uint8_t axis = 3; axis-- > 1;) {
        EMIT("mov.u32", t, mg_o_sreg(MG_SREG_ntid, axis));
        EMIT("mul.lo.u32", threads, threads, t);
        EMIT("mul.lo.u32", thread, thread, t);
        EMIT("mov.u32", t, mg_o_sreg(MG_SREG_tid, axis));
        EMIT("add.u32", thread, thread, t);
    }
    EMIT("shl.b32", threads, threads, SECTOR_BITS);
    EMIT("mov.u32", t, mg_o_var(scratch));
    for (uint32_t i = 0; i < n_vars; i++) {
        mg_id again = mg_module_add_label(m, func, "$__mg_fetch"), done = mg_module_add_label(m, func, "$__mg_fetch");
        m->labels.at[again].targeted = m->labels.at[done].targeted = 1;
        EMIT("shl.b32", off, thread, SECTOR_BITS);
        mg_node_insert_before(m, func, at, mg_node_new_kind(m, MG_NODE_label, again));
        EMIT("setp.gt.u32", p, off, (int64_t)mg_var_bytes(&m->vars.at[vars[i]]) - WORD);
        mg_id over = EMIT("bra", mg_o_label(done));
        m->nodes.at[over].guard = p;
        EMIT("cvt.u64.u32", from, off);
        EMIT("add.u64", from, from, bases[i]);
        EMIT("cp.async.ca.shared.global", mg_o_addr_reg(t, 0), mg_o_addr_reg(from, 0), WORD);
        EMIT("add.u32", off, off, threads);
        EMIT("bra", mg_o_label(again));
        mg_node_insert_before(m, func, at, mg_node_new_kind(m, MG_NODE_label, done));
    }
}

bool mg_twin_reads_tables_in_loops(const struct mg_module *m, mg_id func)
{
    bool any = false, loops = false;
    MG_EACH_NODE(m, &m->funcs.at[func], id) any |= m->nodes.at[id].kind == MG_NODE_inst && moves(m, &m->nodes.at[id]);
    if (!any) return false;
    struct mg_cfg *c = mg_cfg_new(m, func);
    struct mg_loops *l = mg_loops_new(c);
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        if (x->kind != MG_NODE_inst || (x->flags & MG_NF_META) || !moves(m, x)) continue;
        uint32_t b = mg_cfg_block_of(c, id);
        loops |= b < c->n_blocks && l->loop_of[b] != MG_NO_LOOP;
    }
    mg_loops_free(l);
    mg_cfg_free(c);
    return loops;
}

void mg_twin_prefetch_constants(struct mg_twin_func *f)
{
    struct mg_module *m = f->b->m;
    mg_id vars[MOST_VARS];
    uint32_t n = 0;
    bool dynamic;
    (void)mg_twin_shared_bytes(m, &dynamic);
    if (dynamic || m->sm < 80 || m->version_major < 7 || !mg_twin_reads_tables_in_loops(m, f->func)) return;
    MG_EACH_NODE(m, &m->funcs.at[f->func], id)
    {
        const struct mg_node *x = &m->nodes.at[id];
        if (x->kind != MG_NODE_inst || (x->flags & MG_NF_META)) continue;
        mg_id var = taken_table(m, x);
        bool known = !var;
        for (uint32_t i = 0; i < n; i++) known |= vars[i] == var;
        if (!known && n < MOST_VARS) vars[n++] = var;
    }
    if (n) emit_prefetch(f, vars, n);
}
