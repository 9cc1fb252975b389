/* Backward bit-vector liveness over the blocks of a CFG. A guarded write does not end a value's
 * life: lanes whose guard is false keep the old one. */
#include "analysis/live.h"

#include <stdlib.h>
#include <string.h>

#define MAX_REGS 300 /* of one instruction */

static void find_extent(struct mg_live *l, const struct mg_cfg *c)
{
    const struct mg_module *m = c->m;
    mg_id ids[MAX_REGS];
    l->reg_lo = UINT32_MAX;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (mg_id id = c->blocks[b].first;; id = m->nodes.at[id].next) {
            if (m->nodes.at[id].kind == MG_NODE_inst) {
                uint32_t n = mg_node_uses(m, id, ids, MAX_REGS);
                for (uint32_t pass = 0; pass < 2; pass++) {
                    for (uint32_t i = 0; i < n && i < MAX_REGS; i++) {
                        l->reg_lo = MG_MIN(l->reg_lo, ids[i]);
                        l->reg_hi = MG_MAX(l->reg_hi, ids[i] + 1);
                    }
                    if (!pass) n = mg_node_defs(m, id, ids, MAX_REGS);
                }
            }
            if (id == c->blocks[b].last) break;
        }
    if (l->reg_lo == UINT32_MAX) l->reg_lo = l->reg_hi = 0;
}

struct code {
    const struct mg_live *l;
    const struct mg_cfg *c;
};

static void block_effects(void *user, uint32_t b, struct mg_effects *e)
{
    const struct code *k = user;
    const struct mg_module *m = k->c->m;
    mg_id ids[MAX_REGS];
    for (mg_id id = k->c->blocks[b].first;; id = m->nodes.at[id].next) {
        const struct mg_node *node = &m->nodes.at[id];
        if (node->kind == MG_NODE_inst) {
            uint32_t n = mg_node_uses(m, id, ids, MAX_REGS);
            for (uint32_t i = 0; i < n && i < MAX_REGS; i++) mg_effect_use(e, ids[i] - k->l->reg_lo);
            n = mg_node_defs(m, id, ids, MAX_REGS);
            for (uint32_t i = 0; i < n && i < MAX_REGS && !node->guard; i++) mg_effect_def(e, ids[i] - k->l->reg_lo);
        }
        if (id == k->c->blocks[b].last) break;
    }
}

struct mg_live *mg_live_new(const struct mg_cfg *c)
{
    struct mg_live *l = mg_xcalloc(1, sizeof *l);
    l->n_blocks = c->n_blocks;
    find_extent(l, c);
    l->n_words = (l->reg_hi - l->reg_lo + 63) / 64;
    size_t words = (size_t)l->n_words * c->n_blocks + 1;
    l->in = mg_arena_array(&l->arena, uint64_t, words);
    l->out = mg_arena_array(&l->arena, uint64_t, words);
    uint32_t *back = mg_xmalloc(sizeof *back * (c->n_blocks + 1));
    for (uint32_t i = 0; i < c->n_blocks; i++) back[i] = c->rpo[c->n_blocks - 1 - i];
    struct code k = {l, c};
    mg_liveness_run(&(struct mg_liveness){.pred = &c->pred,
                                          .order = back,
                                          .words = l->n_words,
                                          .effects = block_effects,
                                          .user = &k,
                                          .in = l->in,
                                          .out = l->out});
    free(back);
    return l;
}

void mg_live_free(struct mg_live *l)
{
    if (!l) return;
    mg_arena_release(&l->arena);
    free(l);
}

/* ---- pressure -------------------------------------------------------------------------------- */

static uint32_t cells(const struct mg_module *m, mg_id reg)
{
    const struct mg_reg *r = &m->regs.at[reg];
    if (r->type == MG_TYPE_pred) return 0;
    return (mg_type_bits((enum mg_type)r->type) + 31) / 32 * (r->vec ? r->vec : 1u);
}

uint32_t mg_live_pressure(const struct mg_live *l, const struct mg_cfg *c)
{
    const struct mg_module *m = c->m;
    uint32_t most = 0;
    uint64_t *row = mg_xmalloc(sizeof *row * (l->n_words + 1));
    mg_id ids[MAX_REGS];
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        uint32_t now = 0;
        memcpy(row, l->out + (size_t)b * l->n_words, sizeof *row * l->n_words);
        for (uint32_t i = 0; i < l->reg_hi - l->reg_lo; i++)
            if (row[i / 64] >> i % 64 & 1) now += cells(m, l->reg_lo + i);
        most = MG_MAX(most, now);
        for (mg_id id = c->blocks[b].last;; id = m->nodes.at[id].prev) {
            const struct mg_node *node = &m->nodes.at[id];
            if (node->kind == MG_NODE_inst) {
                uint32_t n = mg_node_defs(m, id, ids, MAX_REGS);
                for (uint32_t i = 0; i < n && i < MAX_REGS; i++) {
                    uint32_t bit = ids[i] - l->reg_lo;
                    bool live = row[bit / 64] >> bit % 64 & 1;
                    if (!live)
                        most = MG_MAX(most, now + cells(m, ids[i])); /* a dead result needs a place, too */
                    else if (!node->guard)
                        now -= cells(m, ids[i]);
                    if (!node->guard) row[bit / 64] &= ~(1ull << bit % 64);
                }
                n = mg_node_uses(m, id, ids, MAX_REGS);
                for (uint32_t i = 0; i < n && i < MAX_REGS; i++) {
                    uint32_t bit = ids[i] - l->reg_lo;
                    if (row[bit / 64] >> bit % 64 & 1) continue;
                    row[bit / 64] |= 1ull << bit % 64;
                    now += cells(m, ids[i]);
                }
                most = MG_MAX(most, now);
            }
            if (id == c->blocks[b].first) break;
        }
    }
    free(row);
    return most;
}
