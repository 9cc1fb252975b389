/* Saved banks of bits: a function with so many branches that their bits would fill more registers than are good
 * for it counts all of them in one. Where everything counted so far lies behind for good, the register goes
 * to a word of local memory, a saved bank, and begins anew:
 *
 *     cut D    every later bit's place is dominated by D; none of an earlier bit can be reached from it
 *              st.local [saved + 4 * k], K;  K = min(K, 1) << 31;  at = 4 * (k + 1)
 *
 * At the end, if K is anything, the flush stores it where `at` says and adds bank after bank (count/flush.c). What does
 * not fit the 30 bits of its bank is counted in a byte, as without saved banks. */
#include "count/regs.h"

#include <stdlib.h>
#include <string.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)
#define FEW       (4 * MG_BANK) /* bits that registers hold well anyhow */
#define ROOM      40            /* registers more than natively, for a fuller twin */

struct banks {
    struct mg_rfunc *f;
    uint32_t *bits, n_bits; /* counters that take a bit */
};

/* The block behind whose head a bit's code stands. */
static uint32_t place_of(const struct banks *r, uint32_t counter)
{
    const struct mg_count *k = &r->f->plan->list[counter];
    return k->kind == MG_COUNT_ENTRY ? 0 : k->block;
}

static bool is_behind(const struct banks *r, uint32_t cut, uint32_t counter)
{
    return mg_dom_over(r->f->plan->dom, cut, place_of(r, counter));
}

static uint32_t count_behind(const struct banks *r, uint32_t cut)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_bits; i++) n += is_behind(r, cut, r->bits[i]);
    return n;
}

/* Can no bit that does not stand behind the cut be counted after it? */
static bool is_final(const struct banks *r, uint32_t cut)
{
    const struct mg_cfg *c = r->f->x.c;
    uint64_t *after = mg_xcalloc(mg_bits_words(c->n_blocks) + 1, sizeof *after);
    bool final = true;
    mg_put(after, cut);
    mg_graph_close(&c->succ, after, NULL);
    for (uint32_t i = 0; i < r->n_bits && final; i++)
        final = is_behind(r, cut, r->bits[i]) || !mg_has(after, place_of(r, r->bits[i]));
    free(after);
    return final;
}

static bool may_cut(const struct banks *r, uint32_t b)
{
    const struct mg_cfg *c = r->f->x.c;
    return c->reachable[b] && b != 0 && c->blocks[b].n_preds >= 2 && r->f->plan->loops->loop_of[b] == MG_NO_LOOP;
}

/* Blocks that may be cuts, outside loops, where ways join: the longest list in which each dominates the next. What ways
 * from early exits meet in, or what lies in one arm of a branch, is on no long one. */
static uint32_t list_candidates(const struct banks *r, uint32_t *out)
{
    const struct mg_cfg *c = r->f->x.c;
    const uint32_t *idom = r->f->plan->dom->idom;
    uint32_t *depth = mg_xcalloc(c->n_blocks + 1, sizeof *depth), best = MG_NO_BLOCK,
             n = 0; /* block -> candidates among it and what dominates it */
    for (uint32_t i = 0; i < c->n_blocks; i++) {
        uint32_t b = c->rpo[i];
        if (!c->reachable[b]) continue;
        depth[b] = (b && idom[b] != MG_NO_BLOCK ? depth[idom[b]] : 0) + may_cut(r, b);
        if (may_cut(r, b) && (best == MG_NO_BLOCK || depth[b] >= depth[best])) best = b;
    }
    n = best != MG_NO_BLOCK ? depth[best] : 0;
    for (uint32_t b = best, k = n; k; b = idom[b])
        if (may_cut(r, b)) out[--k] = b;
    free(depth);
    return n;
}

/* Greedy: every bank as full as it gets. */
static void choose_cuts(struct banks *r)
{
    struct mg_rfunc *f = r->f;
    uint32_t *at = mg_xcalloc(f->x.c->n_blocks + 1, sizeof *at), n = list_candidates(r, at), before = r->n_bits, k = 0;
    f->packed.cuts = mg_xcalloc(n + 1, sizeof *f->packed.cuts);
    while (k < n) {
        uint32_t best = UINT32_MAX, left = 0;
        for (uint32_t i = k; i < n; i++) {
            uint32_t behind = count_behind(r, at[i]);
            if (best != UINT32_MAX && before - behind > MG_BANK) break;
            if (behind == before || !is_final(r, at[i])) continue;
            best = i;
            left = behind;
            if (before - behind >= MG_BANK) break;
        }
        if (best == UINT32_MAX || !left) break;
        f->packed.cuts[f->packed.n_cuts++] = at[best];
        before = left;
        k = best + 1;
    }
    free(at);
}

/* Bits that registers hold well: all there may be, where the launch has room for registers (inject/nvidia/gpu_twin.c
 * tells the assembler). */
static uint32_t few_bits(const struct mg_rfunc *f)
{
    struct mg_twin *t = f->x.t;
    const struct mg_func *k = &t->m->funcs.at[t->kernel];
    bool room =
        t->must_fit && t->registers && t->most_registers >= t->registers + ROOM && !k->minnctapersm && !k->maxnreg;
    t->fitted |= room;
    return room ? MG_BANK * MG_BIT_BANKS : FEW;
}

bool mg_saved_plan(struct mg_rfunc *f, bool *taken)
{
    struct banks r = {.f = f, .bits = mg_xcalloc(f->n_measured + 1, sizeof *r.bits)};
    for (uint32_t i = 0; i < f->n_measured; i++)
        if (f->plan->list[i].width == MG_WIDTH_BIT) r.bits[r.n_bits++] = i;
    bool plain = f->redux && !f->calls.n_sources && f->n == f->n_measured;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) plain = plain && !f->live.may_leave[b];
    if (plain && r.n_bits > few_bits(f)) choose_cuts(&r);
    uint32_t *used = mg_xcalloc(f->packed.n_cuts + 2, sizeof *used);
    for (uint32_t i = 0; f->packed.n_cuts && i < r.n_bits; i++) {
        uint32_t bank = 0;
        while (bank < f->packed.n_cuts && is_behind(&r, f->packed.cuts[bank], r.bits[i])) bank++;
        if (used[bank] == MG_BANK) continue;
        taken[r.bits[i]] = true;
        f->counters[r.bits[i]].kind = MG_RC_BIT;
        f->counters[r.bits[i]].why = "at most once in an activation: a saved bank of bits";
        f->counters[r.bits[i]].slot = bank * MG_BANK + used[bank]++;
    }
    free(used);
    free(r.bits);
    return f->packed.n_cuts != 0;
}

void mg_saved_emit(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    for (uint32_t k = 0; k < f->packed.n_cuts; k++) {
        x->at = mg_block_head(x->m, &x->c->blocks[f->packed.cuts[k]]);
        EMIT("st.local.u32", mg_o_addr_reg(f->local.reg, f->packed.saved_off + 4 * (int64_t)k), f->packed.banks[0]);
        EMIT("min.u32", f->packed.banks[0], f->packed.banks[0], 1);
        EMIT("shl.b32", f->packed.banks[0], f->packed.banks[0], 31);
        EMIT("mov.u32", f->packed.saved_at, mg_o_imm(4 * ((int64_t)k + 1)));
    }
}
