/* Pass regs: out of SSA, with as few registers as it takes. Registers that a move joins become one where
 * they never hold two values at once; then each type's are coloured in the order in which they are
 * written (greedy; for code in SSA form that order follows the dominator tree, so few are wasted). Moves
 * that pass ssa made and that have become idle go; the application's own stay. */
#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"
#include "pass/rename.h"

enum { MOST_NODE_REGS = 300, MOST_REGS = 12000 /* a function with more keeps its registers */ };

struct alloc {
    struct mg_module *m;
    mg_id func;
    const struct mg_cfg *c;
    const struct mg_live *l;
    bool *pinned;
    uint32_t n, words;
    uint64_t *rows;             /* [n][words]: do two registers hold values at once? */
    uint32_t *rep;              /* register -> the one that stands for it */
    uint32_t *color;            /* of a representative, from 1; 0: none yet */
    mg_id first[MG_TYPE_COUNT]; /* register of colour 1 */
};

static uint64_t *row(const struct alloc *x, uint32_t i)
{
    return x->rows + (size_t)i * x->words;
}
static bool bit(const uint64_t *r, uint32_t i)
{
    return r[i / 64] >> i % 64 & 1;
}
static void set(uint64_t *r, uint32_t i)
{
    r[i / 64] |= 1ull << i % 64;
}

static uint32_t rep_of(struct alloc *x, uint32_t i)
{
    while (x->rep[i] != i) i = x->rep[i] = x->rep[x->rep[i]];
    return i;
}

/* A move between two registers of one type, of which we may make one. */
static bool is_move(const struct alloc *x, mg_id node, uint32_t *d, uint32_t *s)
{
    const struct mg_module *m = x->m;
    const struct mg_node *n = &m->nodes.at[node];
    if (n->kind != MG_NODE_inst || n->guard || n->n_opnds != 2 || mg_node_form(m, n)->op != MG_OP_mov) return false;
    const struct mg_opnd *o = &m->opnds.at[n->opnd];
    if (o[0].kind != MG_OPND_reg || o[1].kind != MG_OPND_reg || o[0].sub || o[1].sub || o[1].val) return false;
    *d = o[0].id - x->l->reg_lo;
    *s = o[1].id - x->l->reg_lo;
    return !x->pinned[*d] && !x->pinned[*s] && m->regs.at[o[0].id].type == m->regs.at[o[1].id].type;
}

/* d is written while these are wanted; `but` holds the same value. */
static void meet(struct alloc *x, uint32_t d, const uint64_t *live, uint32_t but)
{
    if (x->pinned[d]) return;
    for (uint32_t w = 0; w < x->words; w++) {
        uint64_t all = live[w];
        if (but / 64 == w) all &= ~(1ull << but % 64);
        row(x, d)[w] |= all;
        for (; all; all &= all - 1) set(row(x, w * 64 + (uint32_t)__builtin_ctzll(all)), d);
    }
}

/* Where a register is written, it meets all whose values are wanted behind that; of a move, not its source. */
static void find_meetings(struct alloc *x)
{
    uint64_t *live = mg_xmalloc(sizeof *live * (x->words + 1));
    mg_id ids[MOST_NODE_REGS];
    for (uint32_t b = 0; b < x->c->n_blocks; b++) {
        const struct mg_block *k = &x->c->blocks[b];
        memcpy(live, x->l->out + (size_t)b * x->words, sizeof *live * x->words);
        for (mg_id id = k->last;; id = x->m->nodes.at[id].prev) {
            const struct mg_node *n = &x->m->nodes.at[id];
            if (n->kind == MG_NODE_inst) {
                uint32_t d, s, but = is_move(x, id, &d, &s) ? s : UINT32_MAX,
                               n_defs = mg_node_defs(x->m, id, ids, MOST_NODE_REGS);
                for (uint32_t i = 0; i < n_defs; i++)
                    set(live, ids[i] - x->l->reg_lo); /* written together, they meet */
                for (uint32_t i = 0; i < n_defs; i++) meet(x, ids[i] - x->l->reg_lo, live, but);
                for (uint32_t i = 0; i < n_defs && !n->guard; i++)
                    live[(ids[i] - x->l->reg_lo) / 64] &= ~(1ull << (ids[i] - x->l->reg_lo) % 64);
                uint32_t n_uses = mg_node_uses(x->m, id, ids, MOST_NODE_REGS);
                for (uint32_t i = 0; i < n_uses; i++) set(live, ids[i] - x->l->reg_lo);
            }
            if (id == k->first) break;
        }
    }
    for (uint32_t i = 0; i < x->n; i++) row(x, i)[i / 64] &= ~(1ull << i % 64);
    free(live);
}

static void coalesce(struct alloc *x, uint32_t a, uint32_t b)
{
    a = rep_of(x, a);
    b = rep_of(x, b);
    if (a == b || bit(row(x, a), b)) return;
    x->rep[b] = a;
    for (uint32_t w = 0; w < x->words; w++) {
        for (uint64_t rest = row(x, b)[w]; rest; rest &= rest - 1)
            set(row(x, w * 64 + (uint32_t)__builtin_ctzll(rest)), a);
        row(x, a)[w] |= row(x, b)[w];
    }
}

/* Moves of inner loops first. */
static void join_moves(struct alloc *x, const struct mg_loops *l)
{
    uint32_t deepest = 0;
    for (uint32_t b = 0; b < x->c->n_blocks; b++) deepest = MG_MAX(deepest, mg_loops_depth(l, b));
    for (uint32_t depth = deepest + 1; depth-- > 0;)
        for (uint32_t b = 0; b < x->c->n_blocks; b++) {
            const struct mg_block *k = &x->c->blocks[b];
            if (mg_loops_depth(l, b) != depth) continue;
            for (mg_id id = k->first;; id = x->m->nodes.at[id].next) {
                uint32_t d, s;
                if (is_move(x, id, &d, &s)) coalesce(x, d, s);
                if (id == k->last) break;
            }
        }
}

/* ---- colours ------------------------------------------------------------------------------------------ */

static unsigned type_of(const struct alloc *x, uint32_t i)
{
    return x->m->regs.at[x->l->reg_lo + i].type;
}

/* The lowest colour of its type that nothing it meets has. */
static void color_one(struct alloc *x, uint32_t i, uint32_t n_colors[MG_TYPE_COUNT])
{
    uint32_t r = rep_of(x, i), k = 0;
    unsigned type = type_of(x, r);
    if (x->color[r] || x->pinned[r]) return;
    bool *taken = mg_xcalloc(n_colors[type] + 2, sizeof *taken);
    for (uint32_t w = 0; w < x->words; w++)
        for (uint64_t rest = row(x, r)[w]; rest; rest &= rest - 1) {
            uint32_t other = rep_of(x, w * 64 + (uint32_t)__builtin_ctzll(rest));
            if (type_of(x, other) == type) taken[x->color[other]] = true;
        }
    for (k = 1; taken[k];) k++;
    n_colors[type] = MG_MAX(n_colors[type], k);
    x->color[r] = k;
    free(taken);
}

static void color_all(struct alloc *x)
{
    uint32_t n_colors[MG_TYPE_COUNT] = {0};
    mg_id ids[MOST_NODE_REGS];
    for (uint32_t i = 0; i < x->c->n_blocks; i++) {
        const struct mg_block *k = &x->c->blocks[x->c->rpo[i]];
        for (mg_id id = k->first;; id = x->m->nodes.at[id].next) {
            uint32_t n = mg_node_defs(x->m, id, ids, MOST_NODE_REGS);
            for (uint32_t d = 0; d < n; d++) color_one(x, ids[d] - x->l->reg_lo, n_colors);
            if (id == k->last) break;
        }
    }
    for (uint32_t b = 0; b < x->c->n_blocks; b++) /* read without ever being written */
        for (mg_id id = x->c->blocks[b].first;; id = x->m->nodes.at[id].next) {
            uint32_t n = mg_node_uses(x->m, id, ids, MOST_NODE_REGS);
            for (uint32_t d = 0; d < n; d++) color_one(x, ids[d] - x->l->reg_lo, n_colors);
            if (id == x->c->blocks[b].last) break;
        }
    for (unsigned t = 0; t < MG_TYPE_COUNT; t++)
        if (n_colors[t])
            x->first[t] =
                mg_module_add_regs(x->m, x->func, t == MG_TYPE_pred ? "%mp" : "%m", (enum mg_type)t, n_colors[t]);
}

static mg_id renamed(mg_id reg, void *user)
{
    struct alloc *x = user;
    if (reg < x->l->reg_lo || reg >= x->l->reg_hi || x->pinned[reg - x->l->reg_lo]) return reg;
    uint32_t r = rep_of(x, reg - x->l->reg_lo);
    return x->color[r] ? x->first[type_of(x, r)] + x->color[r] - 1 : reg;
}

static void rewrite(struct alloc *x)
{
    const struct mg_reg_renamer r = {renamed, renamed, x};
    mg_id next;
    for (mg_id id = x->m->funcs.at[x->func].first_node; id; id = next) {
        uint32_t d, s;
        next = x->m->nodes.at[id].next;
        bool idle = x->m->nodes.at[id].origin && is_move(x, id, &d, &s) && rep_of(x, d) == rep_of(x, s);
        mg_node_rename(x->m, id, &r);
        if (idle) mg_node_remove(x->m, x->func, id);
    }
    mg_regs_undeclare(x->m, x->func);
}

static enum mg_err run(struct mg_pass_ctx *c, void *user, mg_id func, uint32_t block)
{
    (void)user, (void)block;
    struct alloc x = {.m = mg_pass_module(c), .func = func, .c = mg_pass_cfg(c, func), .l = mg_pass_live(c, func)};
    x.n = x.l->reg_hi - x.l->reg_lo;
    x.words = x.l->n_words;
    if (!x.c->n_blocks || !x.n || x.n > MOST_REGS) return MG_ERR_OK;
    x.pinned = mg_regs_pinned(x.m, func, x.l);
    x.rows = mg_xcalloc((size_t)x.n * x.words + 1, sizeof *x.rows);
    x.rep = mg_xcalloc(x.n, sizeof *x.rep);
    x.color = mg_xcalloc(x.n, sizeof *x.color);
    for (uint32_t i = 0; i < x.n; i++) x.rep[i] = i;
    find_meetings(&x);
    join_moves(&x, mg_pass_loops(c, func));
    color_all(&x);
    rewrite(&x);
    free(x.pinned);
    free(x.rows);
    free(x.rep);
    free(x.color);
    return MG_ERR_OK;
}

extern const struct mg_pass mg_pass_regs;
const struct mg_pass mg_pass_regs = {
    .name = "regs",
    .summary = "take out idle moves and use as few registers as it takes",
    .scope = MG_SCOPE_KERNEL,
    .needs = MG_AN_CFG | MG_AN_LIVE | MG_AN_LOOP,
    .run = run,
};
