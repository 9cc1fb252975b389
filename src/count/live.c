/* Scheme register: which counters may have counted where, and zeroes that no register has to hold in loops. */
#include "count/storage/storage.h"

#include <stdlib.h>

#define EMIT(...)    EMIT_AT(x, __VA_ARGS__)
#define MOST_RENEWED 64 /* counters of a function whose zeroes are renewed behind loops */

static void note(struct mg_rfunc *f, uint32_t block, uint32_t counter)
{
    f->live.sets[block][counter / 64] |= 1ull << counter % 64;
}

static void note_rim(struct mg_rfunc *f, uint32_t loop, uint32_t counter)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++) /* from the loop's entry on: the register holds what is taken off */
        if (mg_loops_contains(f->plan->loops, loop, b)) note(f, b, counter);
}

/* Behind a call, what it sends back. */
static void note_sources(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (uint32_t i = 0; f->calls.n_sources && !f->calls.settles && mg_direct_callee(c->m, c->blocks[b].last) &&
                             i < f->calls.n_sources;
             i++)
            note(f, b, f->n - f->calls.n_sources + i);
}

void mg_rc_find_live(struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    f->live.n_words = (f->n + 63) / 64 + 1;
    f->live.sets = mg_xcalloc(c->n_blocks + 1, sizeof *f->live.sets);
    uint64_t *all = mg_xcalloc((size_t)f->live.n_words * (c->n_blocks + 1), sizeof *all);
    for (uint32_t b = 0; b <= c->n_blocks; b++) f->live.sets[b] = all + (size_t)b * f->live.n_words;
    for (uint32_t i = 0; i < f->n_measured; i++) {
        const struct mg_count *k = &f->plan->list[i];
        if (mg_rc_in_memory(&f->counters[i]) && !mg_storage_of(&f->counters[i])->flush)
            continue; /* in memory since the event */
        switch (k->kind) {
        case MG_COUNT_ENTRY:
            note(f, 0, i);
            break;
        case MG_COUNT_BLOCK:
        case MG_COUNT_LEAVE:
            note(f, k->block, i);
            break;
        case MG_COUNT_EDGE:
            note(f, c->edges[k->edge], i);
            break;
        case MG_COUNT_IV:
            note_rim(f, f->plan->ivs->list[k->iv].loop, i);
            break;
        }
    }
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (f->warps.rule[b] == MG_WR_LOWEST) note(f, b, f->warps.counter[b]);
    note_sources(f);
    mg_dataflow_run(
        &(struct mg_dataflow){.g = &c->succ, .order = c->rpo, .any = true, .words = f->live.n_words, .rows = all});
}

/* Does a loop end in front of the block? */
static bool is_behind_loop(const struct mg_rfunc *f, uint32_t b)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_loops *l = f->plan->loops;
    for (uint32_t p = 0; p < c->blocks[b].n_preds; p++) {
        uint32_t from = c->preds[c->blocks[b].pred_at + p];
        if (c->reachable[from] && l->loop_of[from] != MG_NO_LOOP && !mg_loops_contains(l, l->loop_of[from], b))
            return true;
    }
    return false;
}

/* Has nothing counted in the register when a lane comes to the block's head, nor on the way to it? */
static bool is_zero_at(const struct mg_rfunc *f, uint32_t b, mg_id reg)
{
    const struct mg_cfg *c = f->x.c;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct mg_count *k = &f->plan->list[i];
        if (f->counters[i].reg != reg) continue;
        if (k->kind == MG_COUNT_EDGE && c->edges[k->edge] == b) return false;
        if (k->kind == MG_COUNT_IV && f->plan->loops->loops[f->plan->ivs->list[k->iv].loop].header == b) return false;
        for (uint32_t p = 0; p < c->blocks[b].n_preds; p++)
            if (mg_rc_in(f->live.sets[c->preds[c->blocks[b].pred_at + p]], i)) return false;
    }
    return true;
}

/* Behind loops in which a register is zero it becomes zero once more: none has to hold that zero in the loop. */
void mg_rc_renew_zeroes(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    bool plain =
        !f->calls.carried && !f->calls.n_sources && f->n == f->n_measured && !f->packed.n_cuts && f->n <= MOST_RENEWED;
    for (uint32_t b = 1; plain && b < x->c->n_blocks; b++) {
        if (!x->c->reachable[b] || !is_behind_loop(f, b)) continue;
        x->at = mg_block_head(x->m, &x->c->blocks[b]);
        for (uint32_t k = 0; k < f->packed.n_banks; k++)
            if (is_zero_at(f, b, f->packed.banks[k])) EMIT("mov.u32", f->packed.banks[k], 0);
        if (f->packed.few && is_zero_at(f, b, f->packed.few)) EMIT("mov.u32", f->packed.few, 0);
        for (uint32_t i = 0; i < f->n; i++) {
            const struct mg_rc *c = &f->counters[i];
            if (mg_storage_of(c)->packed || mg_storage_of(c)->in_memory || !is_zero_at(f, b, c->reg)) continue;
            mg_storage_of(c)->clear(f, c, false);
        }
    }
}
