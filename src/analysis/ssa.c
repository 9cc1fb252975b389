/* SSA construction: phis on iterated dominance frontiers where a register is live, then one walk
 * over the dominator tree that names every read and write (Cytron and others 1991). */
#include "analysis/ssa.h"

#include <stdlib.h>
#include <string.h>

#define MAX_REGS 300

struct maker {
    struct mg_ssa *s;
    const struct mg_cfg *c;
    const struct mg_module *m;
    const struct mg_dom *d;
    const struct mg_live *l;
    MG_VEC(struct mg_ssa_value) values;
    MG_VEC(uint32_t) args;
    MG_VEC(uint32_t) reads, writes;
    uint32_t *current; /* register - reg_lo -> value in force, 0: entry value not made yet */
    uint32_t *entry;   /* register - reg_lo -> its entry value */
    struct undo {
        uint32_t reg, value;
    } * undo;
    uint32_t n_undo, cap_undo;
    uint32_t *undo_at; /* by block: n_undo before it was named */
};

static uint32_t add_value(struct maker *k, struct mg_ssa_value v)
{
    *mg_vec_push(&k->values) = v;
    return k->values.n - 1;
}

/* ---- phis ------------------------------------------------------------------------------------ */

struct phi_site {
    uint32_t block;
    mg_id reg;
};

static int by_block(const void *a, const void *b)
{
    const struct phi_site *x = a, *y = b;
    if (x->block != y->block) return x->block < y->block ? -1 : 1;
    return x->reg < y->reg ? -1 : x->reg > y->reg;
}

static int by_reg(const void *a, const void *b)
{
    const struct phi_site *x = a, *y = b;
    if (x->reg != y->reg) return x->reg < y->reg ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

static void place_phis(struct maker *k)
{
    const struct mg_cfg *c = k->c;
    struct mg_frontier *f = mg_frontier_new(c, k->d);
    MG_VEC(struct phi_site) defs = {0};
    mg_id ids[MAX_REGS];
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (!c->reachable[b]) continue;
        for (mg_id id = c->blocks[b].first;; id = k->m->nodes.at[id].next) {
            uint32_t n = mg_node_defs(k->m, id, ids, MAX_REGS);
            for (uint32_t i = 0; i < n && i < MAX_REGS; i++) *mg_vec_push(&defs) = (struct phi_site){b, ids[i]};
            if (id == c->blocks[b].last) break;
        }
    }
    if (defs.n) qsort(defs.at, defs.n, sizeof *defs.at, by_reg);
    MG_VEC(struct phi_site) phis = {0};
    uint32_t *mark = mg_xcalloc(c->n_blocks + 1, sizeof *mark),
             *todo = mg_xmalloc(sizeof *todo * (c->n_blocks + 1) * 2), stamp = 0;
    uint32_t *has = mg_xcalloc(c->n_blocks + 1, sizeof *has);
    for (uint32_t i = 0; i < defs.n;) {
        mg_id reg = defs.at[i].reg;
        uint32_t n_todo = 0;
        stamp++;
        for (; i < defs.n && defs.at[i].reg == reg; i++)
            if (mark[defs.at[i].block] != stamp) mark[todo[n_todo++] = defs.at[i].block] = stamp;
        while (n_todo) {
            uint32_t b = todo[--n_todo];
            for (uint32_t q = f->at[b]; q < f->at[b + 1]; q++) {
                uint32_t to = f->list[q];
                if (has[to] == stamp || !mg_live_in(k->l, to, reg)) continue;
                has[to] = stamp;
                *mg_vec_push(&phis) = (struct phi_site){to, reg};
                if (mark[to] != stamp) mark[todo[n_todo++] = to] = stamp;
            }
        }
    }
    if (phis.n) qsort(phis.at, phis.n, sizeof *phis.at, by_block);
    struct mg_ssa *s = k->s;
    s->phis_at = mg_arena_array(&s->arena, uint32_t, c->n_blocks + 2);
    s->phis = mg_arena_array(&s->arena, uint32_t, phis.n + 1);
    for (uint32_t b = 0, p = 0; b < c->n_blocks; b++) {
        s->phis_at[b] = p;
        for (; p < phis.n && phis.at[p].block == b; p++) {
            struct mg_ssa_value v = {.kind = MG_SSA_phi,
                                     .reg = phis.at[p].reg,
                                     .block = b,
                                     .args_at = k->args.n,
                                     .n_args = c->blocks[b].n_preds};
            for (uint32_t i = 0; i < v.n_args; i++) *mg_vec_push(&k->args) = 0;
            s->phis[p] = add_value(k, v);
        }
    }
    s->phis_at[c->n_blocks] = phis.n;
    free(mark);
    free(todo);
    free(has);
    mg_vec_release(&defs);
    mg_vec_release(&phis);
    mg_frontier_free(f);
}

/* ---- renaming -------------------------------------------------------------------------------- */

static uint32_t value_now(struct maker *k, mg_id reg)
{
    uint32_t i = reg - k->l->reg_lo;
    if (k->current[i]) return k->current[i];
    if (!k->entry[i]) k->entry[i] = add_value(k, (struct mg_ssa_value){.kind = MG_SSA_entry, .reg = reg});
    return k->entry[i];
}

static void set_now(struct maker *k, mg_id reg, uint32_t value)
{
    uint32_t i = reg - k->l->reg_lo;
    if (k->n_undo == k->cap_undo) {
        k->cap_undo = k->cap_undo ? k->cap_undo * 2 : 256;
        k->undo = mg_xrealloc(k->undo, sizeof *k->undo * k->cap_undo);
    }
    k->undo[k->n_undo++] = (struct undo){i, k->current[i]};
    k->current[i] = value;
}

static void name_block(struct maker *k, uint32_t b)
{
    const struct mg_cfg *c = k->c;
    const struct mg_block *blk = &c->blocks[b];
    mg_id ids[MAX_REGS];
    for (uint32_t p = k->s->phis_at[b]; p < k->s->phis_at[b + 1]; p++)
        set_now(k, k->values.at[k->s->phis[p]].reg, k->s->phis[p]);
    for (mg_id id = blk->first;; id = k->m->nodes.at[id].next) {
        const struct mg_node *node = &k->m->nodes.at[id];
        if (node->kind == MG_NODE_inst) {
            uint32_t n = mg_node_uses(k->m, id, ids, MAX_REGS);
            k->s->reads_at[id - c->node_lo] = k->reads.n + 1;
            for (uint32_t i = 0; i < n && i < MAX_REGS; i++) {
                uint32_t v = value_now(k, ids[i]);
                *mg_vec_push(&k->reads) = v;
            }
            n = mg_node_defs(k->m, id, ids, MAX_REGS);
            k->s->writes_at[id - c->node_lo] = k->writes.n + 1;
            for (uint32_t i = 0; i < n && i < MAX_REGS; i++) {
                struct mg_ssa_value v = {.kind = MG_SSA_def, .reg = ids[i], .block = b, .node = id};
                if (node->guard) v.prev = value_now(k, ids[i]);
                uint32_t x = add_value(k, v);
                *mg_vec_push(&k->writes) = x;
                set_now(k, ids[i], x);
            }
        }
        if (id == blk->last) break;
    }
    for (uint32_t e = 0; e < blk->n_succs; e++) {
        uint32_t to = c->edges[blk->succ_at + e], ix = 0;
        while (c->preds[c->blocks[to].pred_at + ix] != b) ix++;
        for (uint32_t p = k->s->phis_at[to]; p < k->s->phis_at[to + 1]; p++) {
            uint32_t v = value_now(k, k->values.at[k->s->phis[p]].reg);
            k->args.at[k->values.at[k->s->phis[p]].args_at + ix] = v;
        }
    }
}

static void enter_block(void *user, uint32_t b)
{
    struct maker *k = user;
    k->undo_at[b] = k->n_undo;
    name_block(k, b);
}

static void leave_block(void *user, uint32_t b)
{
    struct maker *k = user;
    while (k->n_undo > k->undo_at[b]) {
        struct undo u = k->undo[--k->n_undo];
        k->current[u.reg] = u.value;
    }
}

static void rename_all(struct maker *k)
{
    uint32_t n = k->c->n_blocks;
    uint64_t *seen = mg_xcalloc(mg_bits_words(n) + 1, sizeof *seen);
    k->undo_at = mg_xcalloc(n + 1, sizeof *k->undo_at);
    if (n) mg_graph_walk(&k->d->kids, 0, seen, &(struct mg_graph_visit){enter_block, leave_block, k});
    free(k->undo_at);
    free(seen);
}

/* ---- def-use --------------------------------------------------------------------------------- */

static void link_uses(struct mg_ssa *s, uint32_t n_reads)
{
    uint32_t total = 0;
    for (int fill = 0; fill < 2; fill++) {
        if (fill) {
            s->uses = mg_arena_array(&s->arena, struct mg_ssa_use, total + 1);
            for (uint32_t v = 1, at = 0; v < s->n_values; v++) {
                s->values[v].uses_at = at;
                at += s->values[v].n_uses;
                s->values[v].n_uses = 0;
            }
        }
        for (mg_id id = s->c->node_lo; id < s->c->node_hi; id++) {
            uint32_t at = s->reads_at[id - s->c->node_lo];
            if (!at) continue;
            mg_id ids[MAX_REGS];
            uint32_t n = MG_MIN(mg_node_uses(s->c->m, id, ids, MAX_REGS), (uint32_t)MAX_REGS);
            mg_assert(at - 1 + n <= n_reads);
            for (uint32_t i = 0; i < n; i++) {
                struct mg_ssa_value *v = &s->values[s->reads[at - 1 + i]];
                if (fill) s->uses[v->uses_at + v->n_uses] = (struct mg_ssa_use){id, 0};
                v->n_uses++;
                total++;
            }
        }
        for (uint32_t x = 1; x < s->n_values; x++) {
            for (uint32_t i = 0; i <= s->values[x].n_args; i++) {
                uint32_t from = i < s->values[x].n_args ? s->args[s->values[x].args_at + i] : s->values[x].prev;
                if (!from) continue;
                struct mg_ssa_value *v = &s->values[from];
                if (fill) s->uses[v->uses_at + v->n_uses] = (struct mg_ssa_use){0, x};
                v->n_uses++;
                total++;
            }
        }
    }
}

struct mg_ssa *mg_ssa_new(const struct mg_cfg *c, const struct mg_dom *d, const struct mg_live *l)
{
    struct mg_ssa *s = mg_xcalloc(1, sizeof *s);
    struct maker k = {.s = s, .c = c, .m = c->m, .d = d, .l = l};
    s->c = c;
    uint32_t n_nodes = c->node_hi - c->node_lo, n_regs = l->reg_hi - l->reg_lo;
    s->reads_at = mg_arena_array(&s->arena, uint32_t, n_nodes + 1);
    s->writes_at = mg_arena_array(&s->arena, uint32_t, n_nodes + 1);
    k.current = mg_xcalloc(n_regs + 1, sizeof *k.current);
    k.entry = mg_xcalloc(n_regs + 1, sizeof *k.entry);
    add_value(&k, (struct mg_ssa_value){0});
    place_phis(&k);
    rename_all(&k);
    s->n_values = k.values.n;
    s->values = mg_arena_copy(&s->arena, k.values.at, sizeof *s->values * k.values.n);
    s->args = mg_arena_array(&s->arena, uint32_t, k.args.n + 1);
    s->reads = mg_arena_array(&s->arena, uint32_t, k.reads.n + 1);
    s->writes = mg_arena_array(&s->arena, uint32_t, k.writes.n + 1);
    if (k.args.n) memcpy(s->args, k.args.at, sizeof *s->args * k.args.n);
    if (k.reads.n) memcpy(s->reads, k.reads.at, sizeof *s->reads * k.reads.n);
    if (k.writes.n) memcpy(s->writes, k.writes.at, sizeof *s->writes * k.writes.n);
    link_uses(s, k.reads.n);
    mg_vec_release(&k.values);
    mg_vec_release(&k.args);
    mg_vec_release(&k.reads);
    mg_vec_release(&k.writes);
    free(k.current);
    free(k.entry);
    free(k.undo);
    return s;
}

void mg_ssa_free(struct mg_ssa *s)
{
    if (!s) return;
    mg_arena_release(&s->arena);
    free(s);
}

uint32_t mg_ssa_read(const struct mg_ssa *s, mg_id node, mg_id reg)
{
    mg_id ids[MAX_REGS];
    if (node < s->c->node_lo || node >= s->c->node_hi || !s->reads_at[node - s->c->node_lo]) return 0;
    uint32_t n = mg_node_uses(s->c->m, node, ids, MAX_REGS);
    for (uint32_t i = 0; i < n && i < MAX_REGS; i++)
        if (ids[i] == reg) return s->reads[s->reads_at[node - s->c->node_lo] - 1 + i];
    return 0;
}

uint32_t mg_ssa_write(const struct mg_ssa *s, mg_id node, mg_id reg)
{
    mg_id ids[MAX_REGS];
    if (node < s->c->node_lo || node >= s->c->node_hi || !s->writes_at[node - s->c->node_lo]) return 0;
    uint32_t n = mg_node_defs(s->c->m, node, ids, MAX_REGS);
    for (uint32_t i = 0; i < n && i < MAX_REGS; i++)
        if (ids[i] == reg) return s->writes[s->writes_at[node - s->c->node_lo] - 1 + i];
    return 0;
}

/* ---- what a loop does not change ---------------------------------------------------------------- */

enum { MOST_STEPS = 64 /* instructions looked at for one value */ };

static bool is_fixed(const struct mg_ssa *s, const struct mg_loops *l, uint32_t loop, uint32_t value, int *steps)
{
    const struct mg_module *m = s->c->m;
    const struct mg_ssa_value *v = &s->values[value];
    mg_id reads[16];
    if (!value || --*steps < 0) return false;
    if (v->kind == MG_SSA_entry || !mg_loops_contains(l, loop, v->block)) return true;
    if (v->kind != MG_SSA_def || m->nodes.at[v->node].guard) return false;
    const struct mg_form *f = mg_node_form(m, &m->nodes.at[v->node]);
    bool reads_memory = f->op_flags & (MG_OPF_READS | MG_OPF_ATOMIC) && f->space != MG_SPACE_param;
    if (reads_memory || f->op_flags & (MG_OPF_CONVERGENT | MG_OPF_ENDS_BLOCK)) return false;
    uint32_t n = mg_node_uses(m, v->node, reads, MG_COUNT_OF(reads));
    for (uint32_t i = 0; i < n && i < MG_COUNT_OF(reads); i++)
        if (!is_fixed(s, l, loop, mg_ssa_read(s, v->node, reads[i]), steps)) return false;
    return n && n <= MG_COUNT_OF(reads);
}

bool mg_ssa_is_fixed(const struct mg_ssa *s, const struct mg_loops *l, uint32_t loop, uint32_t value)
{
    int steps = MOST_STEPS;
    return is_fixed(s, l, loop, value, &steps);
}
