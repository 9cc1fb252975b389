/* Registers that a function may read before it writes them (unwritten.h).
 *
 *   1. uses that an unguarded definition dominates are out: nearly all of them
 *   2. liveness of the registers that are left, at the entry
 *   3. for each of those, ways from the entry with what branches and guards say of predicates */
#include "analysis/unwritten.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/dom.h"
#include "base/vec.h"

enum { MOST_IDS = 300, DEFS_KEPT = 4, FACTS = 64, MOST_STEPS = 4000 /* blocks looked at for a register */ };

struct defs {
    uint32_t block[DEFS_KEPT];
    uint32_t n;
};
struct facts {
    uint64_t yes, no;
}; /* predicates by number */
struct visit {
    uint64_t place;
    struct facts facts;
};
struct item {
    mg_id reg, node;
    uint32_t block;
    struct facts facts;
};

struct search {
    const struct mg_cfg *c;
    const struct mg_module *m;
    mg_id lo, hi; /* registers */
    struct mg_arena arena;
    uint32_t *index;     /* register - lo -> number among those in question, from 1; 0: none */
    MG_VEC(mg_id) asked; /* those in question */
    uint64_t *in;        /* [block][words]: live where it begins */
    uint32_t words;
    struct mg_map predicates; /* register -> 1 + number of its fact */
    uint32_t n_predicates;
    MG_VEC(struct item) todo;
    MG_VEC(struct visit) seen;
    uint32_t steps;
    mg_id found;
};

static void each_inst(const struct mg_cfg *c, void (*fn)(struct search *, uint32_t, mg_id), struct search *x)
{
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b]; id = c->m->nodes.at[id].next) {
            if (c->m->nodes.at[id].kind == MG_NODE_inst) fn(x, b, id);
            if (id == c->blocks[b].last) break;
        }
}

/* ---- uses that no definition dominates ------------------------------------------------------------------- */

static void find_extent(struct search *x, uint32_t block, mg_id node)
{
    mg_id ids[MOST_IDS];
    (void)block;
    for (unsigned pass = 0; pass < 2; pass++) {
        uint32_t n = pass ? mg_node_defs(x->m, node, ids, MOST_IDS) : mg_node_uses(x->m, node, ids, MOST_IDS);
        for (uint32_t i = 0; i < n && i < MOST_IDS; i++) {
            x->lo = MG_MIN(x->lo, ids[i]);
            x->hi = MG_MAX(x->hi, ids[i] + 1);
        }
    }
}

static bool is_covered(const struct defs *d, const struct mg_dom *dom, uint32_t block)
{
    for (uint32_t k = 0; k < MG_MIN(d->n, DEFS_KEPT); k++)
        if (d->block[k] != block && mg_dom_over(dom, d->block[k], block)) return true;
    return false;
}

static void note_defs(const struct mg_module *m, mg_id node, uint32_t block, struct defs *defs, mg_id lo)
{
    mg_id ids[MOST_IDS];
    uint32_t n = m->nodes.at[node].guard ? 0 : mg_node_defs(m, node, ids, MOST_IDS);
    for (uint32_t i = 0; i < n && i < MOST_IDS; i++) {
        struct defs *d = &defs[ids[i] - lo];
        if (d->n && d->block[MG_MIN(d->n, DEFS_KEPT) - 1] == block) continue;
        if (d->n < DEFS_KEPT) d->block[d->n++] = block;
    }
}

static void find_asked(struct search *x)
{
    const struct mg_cfg *c = x->c;
    struct mg_dom *dom = mg_dom_new(c);
    struct defs *defs = mg_xcalloc(x->hi - x->lo + 1, sizeof *defs);
    uint32_t *here =
        mg_xcalloc(x->hi - x->lo + 1, sizeof *here); /* 1 + the block in which an unguarded definition was met last */
    mg_id ids[MOST_IDS];
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b]; id = x->m->nodes.at[id].next) {
            if (x->m->nodes.at[id].kind == MG_NODE_inst) note_defs(x->m, id, b, defs, x->lo);
            if (id == c->blocks[b].last) break;
        }
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b]; id = x->m->nodes.at[id].next) {
            bool inst = x->m->nodes.at[id].kind == MG_NODE_inst;
            uint32_t n = inst ? mg_node_uses(x->m, id, ids, MOST_IDS) : 0;
            for (uint32_t i = 0; i < n && i < MOST_IDS; i++) {
                uint32_t r = ids[i] - x->lo;
                if (x->index[r] || here[r] == b + 1 || is_covered(&defs[r], dom, b)) continue;
                *mg_vec_push(&x->asked) = ids[i];
                x->index[r] = x->asked.n;
            }
            n = inst && !x->m->nodes.at[id].guard ? mg_node_defs(x->m, id, ids, MOST_IDS) : 0;
            for (uint32_t i = 0; i < n && i < MOST_IDS; i++) here[ids[i] - x->lo] = b + 1;
            if (id == c->blocks[b].last) break;
        }
    free(defs);
    free(here);
    mg_dom_free(dom);
}

/* ---- liveness of these ------------------------------------------------------------------------------------ */

static void find_live(struct search *x)
{
    const struct mg_cfg *c = x->c;
    x->words = mg_bits_words(x->asked.n);
    size_t size = (size_t)x->words * c->n_blocks + 1;
    x->in = mg_arena_array(&x->arena, uint64_t, size);
    uint64_t *use = mg_arena_array(&x->arena, uint64_t, size), *def = mg_arena_array(&x->arena, uint64_t, size);
    mg_id ids[MOST_IDS];
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first; c->reachable[b]; id = x->m->nodes.at[id].next) {
            uint64_t *u = use + (size_t)b * x->words, *d = def + (size_t)b * x->words;
            bool inst = x->m->nodes.at[id].kind == MG_NODE_inst;
            uint32_t n = inst ? mg_node_uses(x->m, id, ids, MOST_IDS) : 0, k;
            for (uint32_t i = 0; i < n && i < MOST_IDS; i++)
                if ((k = x->index[ids[i] - x->lo]) && !mg_has(d, k - 1)) mg_put(u, k - 1);
            n = inst && !x->m->nodes.at[id].guard ? mg_node_defs(x->m, id, ids, MOST_IDS) : 0;
            for (uint32_t i = 0; i < n && i < MOST_IDS; i++)
                if ((k = x->index[ids[i] - x->lo])) mg_put(d, k - 1);
            if (id == c->blocks[b].last) break;
        }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = c->n_blocks; i-- > 0;) {
            uint32_t b = c->rpo[i];
            const struct mg_block *k = &c->blocks[b];
            uint64_t *in = x->in + (size_t)b * x->words;
            for (uint32_t w = 0; w < x->words; w++) {
                uint64_t out = 0, was = in[w];
                for (uint32_t e = 0; e < k->n_succs; e++) out |= x->in[(size_t)c->edges[k->succ_at + e] * x->words + w];
                in[w] = use[(size_t)b * x->words + w] | (out & ~def[(size_t)b * x->words + w]);
                changed |= in[w] != was;
            }
        }
    }
}

static bool is_live(const struct search *x, uint32_t block, mg_id reg)
{
    uint32_t k = x->index[reg - x->lo];
    return k && mg_has(x->in + (size_t)block * x->words, k - 1);
}

/* ---- ways --------------------------------------------------------------------------------------------------- */

/* Guards, each with a number: all while there are few of them, else those met first. */
static void number_guard(struct search *x, uint32_t block, mg_id node)
{
    mg_id g = x->m->nodes.at[node].guard;
    (void)block;
    if (!g || x->n_predicates == FACTS || mg_map_get(&x->predicates, g, NULL)) return;
    mg_map_set(&x->predicates, g, ++x->n_predicates);
}

static uint64_t fact_of(const struct search *x, mg_id reg)
{
    uint64_t n;
    return mg_map_get(&x->predicates, reg, &n) ? 1ull << (n - 1) : 0;
}

/* Adds that the guard of a node holds, or does not. False: it contradicts what is known. */
static bool assume(const struct search *x, const struct mg_node *n, bool holds, struct facts *f)
{
    uint64_t bit = n->guard ? fact_of(x, n->guard) : 0;
    bool yes = holds != !!(n->flags & MG_NF_GUARD_NOT);
    if (!n->guard) return holds;
    if ((yes ? f->no : f->yes) & bit) return false;
    if (yes)
        f->yes |= bit;
    else
        f->no |= bit;
    return true;
}

static bool names(const mg_id *ids, uint32_t n, mg_id reg)
{
    for (uint32_t i = 0; i < n && i < MOST_IDS; i++)
        if (ids[i] == reg) return true;
    return false;
}

/* A result that is what the register is: of a move; of selp, when it may be chosen. 0: a use of its own. */
static mg_id handed_on(const struct search *x, const struct mg_node *n, mg_id reg, const struct facts *f)
{
    const struct mg_form *form = mg_node_form(x->m, n);
    const struct mg_opnd *o = &x->m->opnds.at[n->opnd];
    if (n->guard == reg || o[0].kind != MG_OPND_reg || o[0].sub) return 0;
    if (form->op == MG_OP_mov && n->n_opnds == 2 && o[1].kind == MG_OPND_reg && !o[1].sub) return o[0].id;
    if (form->op != MG_OP_selp || n->n_opnds != 4 || o[3].kind != MG_OPND_reg || o[3].id == reg) return 0;
    uint64_t bit = fact_of(x, o[3].id);
    bool first = o[1].kind == MG_OPND_reg && o[1].id == reg, second = o[2].kind == MG_OPND_reg && o[2].id == reg;
    if ((first && !second && f->no & bit) || (second && !first && f->yes & bit)) return reg; /* not this one: goes on */
    return o[0].id;
}

static void push(struct search *x, struct item i)
{
    *mg_vec_push(&x->todo) = i;
}

/* Was this place reached with no more facts? */
static bool was_seen(struct search *x, mg_id reg, mg_id node, struct facts f)
{
    uint64_t place = (uint64_t)reg << 32 | node;
    for (uint32_t i = 0; i < x->seen.n; i++) {
        const struct visit *v = &x->seen.at[i];
        if (v->place == place && !(v->facts.yes & ~f.yes) && !(v->facts.no & ~f.no)) return true;
    }
    *mg_vec_push(&x->seen) = (struct visit){place, f};
    return false;
}

static void leave(struct search *x, const struct item *at, mg_id last)
{
    const struct mg_cfg *c = x->c;
    const struct mg_block *b = &c->blocks[at->block];
    const struct mg_node *n = &x->m->nodes.at[last];
    bool branches = mg_node_form(x->m, n)->op == MG_OP_bra && n->guard;
    for (uint32_t e = 0; e < b->n_succs; e++) {
        uint32_t to = c->edges[b->succ_at + e];
        struct facts f = at->facts;
        bool falls = branches && b->n_succs == 2 && e == 0;
        if (branches && b->n_succs == 2 && !assume(x, n, !falls, &f)) continue;
        if (is_live(x, to, at->reg) || !x->index[at->reg - x->lo])
            push(x, (struct item){at->reg, c->blocks[to].first, to, f});
    }
}

/* From an instruction to the end of its block. */
static void follow(struct search *x, struct item at)
{
    const struct mg_block *b = &x->c->blocks[at.block];
    mg_id ids[MOST_IDS];
    for (mg_id id = at.node; id && !x->found; id = x->m->nodes.at[id].next) {
        const struct mg_node *n = &x->m->nodes.at[id];
        struct facts run = at.facts;
        if (n->kind == MG_NODE_inst && (!n->guard || n->guard == at.reg || assume(x, n, true, &run))) {
            uint32_t k = mg_node_uses(x->m, id, ids, MOST_IDS);
            if (names(ids, k, at.reg)) {
                mg_id to = handed_on(x, n, at.reg, &run);
                if (!to)
                    x->found = id;
                else if (to != at.reg && id != b->last)
                    push(x, (struct item){to, n->next, at.block, run});
                else if (to != at.reg)
                    leave(x, &(struct item){to, id, at.block, run}, id);
            }
            k = mg_node_defs(x->m, id, ids, MOST_IDS);
            if (names(ids, k, at.reg) && !x->found) {
                if (!n->guard || !assume(x, n, false, &at.facts))
                    return; /* where the guard does not hold it stays as it is */
            }
            for (uint32_t i = 0; i < k && i < MOST_IDS; i++) {
                uint64_t bit = fact_of(x, ids[i]);
                at.facts.yes &= ~bit;
                at.facts.no &= ~bit;
            }
        }
        if (id == b->last) {
            if (!x->found) leave(x, &at, id);
            return;
        }
    }
}

/* False: too many ways. */
static bool is_read(struct search *x, mg_id reg)
{
    x->todo.n = x->seen.n = x->steps = 0;
    x->found = 0;
    push(x, (struct item){reg, x->c->blocks[0].first, 0, {0, 0}});
    while (x->todo.n && !x->found) {
        struct item at = x->todo.at[--x->todo.n];
        if (was_seen(x, at.reg, at.node, at.facts)) continue;
        if (++x->steps > MOST_STEPS) return false;
        follow(x, at);
    }
    return true;
}

struct mg_unwritten *mg_unwritten_new(const struct mg_cfg *c)
{
    struct mg_unwritten *u = mg_xcalloc(1, sizeof *u);
    struct search x = {.c = c, .m = c->m, .lo = UINT32_MAX};
    if (c->n_blocks) each_inst(c, find_extent, &x);
    if (x.lo == UINT32_MAX) return u;
    x.index = mg_arena_array(&x.arena, uint32_t, x.hi - x.lo + 1);
    find_asked(&x);
    if (x.asked.n) find_live(&x);
    for (uint32_t i = 0; i < x.asked.n; i++) {
        mg_id reg = x.asked.at[i];
        if (!is_live(&x, 0, reg)) continue;
        if (!x.n_predicates) each_inst(c, number_guard, &x);
        if (!u->at) u->at = mg_xcalloc(x.asked.n, sizeof *u->at);
        if (!is_read(&x, reg))
            u->n_given_up++;
        else if (x.found)
            u->at[u->n++] = (struct mg_unwritten_use){reg, x.found};
    }
    mg_map_release(&x.predicates);
    mg_vec_release(&x.asked);
    mg_vec_release(&x.todo);
    mg_vec_release(&x.seen);
    mg_arena_release(&x.arena);
    return u;
}

void mg_unwritten_free(struct mg_unwritten *u)
{
    if (!u) return;
    free(u->at);
    free(u);
}
