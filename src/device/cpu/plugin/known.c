/* A CTA of one warp knows its thread numbers when code is made: where all branches that part lanes go by these, which
 * lanes come to a block is known, and which block is next. Found by going through a region as the warp will
 * (docs/schedule.md; control.c makes the same of masks that are looked at while they run). */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 512 };

struct walk {
    struct emit *e;
    uint32_t *pend; /* by block: who waits where when it begins, by block */
    uint32_t *cur;
    uint32_t *todo, n_todo;
    uint32_t *now; /* who waits where at the end of the block that is looked at */
};

static uint32_t *row(const struct walk *w, uint32_t b)
{
    return w->pend + (size_t)b * w->e->f->n_blocks;
}

/* false: others have come here otherwise. */
static bool arrive(struct walk *w, uint32_t b, uint32_t cur)
{
    struct known *k = &w->e->known[b];
    size_t bytes = w->e->f->n_blocks * sizeof *w->pend;
    if (k->yes) return w->cur[b] == cur && !memcmp(row(w, b), w->now, bytes);
    k->yes = true;
    w->cur[b] = cur;
    memcpy(row(w, b), w->now, bytes);
    k->mask = cur | row(w, b)[b];
    w->todo[w->n_todo++] = b;
    return k->mask;
}

static bool go(struct walk *w, uint32_t b, unsigned way, uint32_t to, uint32_t mask)
{
    struct known *k = &w->e->known[b];
    uint32_t x = b + 1;
    while (x < to && !w->now[x]) x++;
    bool waits = x < to; /* somebody who comes first */
    k->to[way] = to;
    k->next[way] = waits ? x : to;
    uint32_t before = w->now[to];
    if (waits) w->now[to] |= mask;
    bool ok = to < w->e->f->n_blocks && arrive(w, k->next[way], waits ? 0 : mask);
    w->now[to] = before;
    return ok;
}

static bool part(struct walk *w, uint32_t b, uint32_t mask)
{
    const struct cpu_inst *in = &w->e->f->insts[w->e->f->blocks[b].end - 1];
    uint32_t t = in->target, f = in->fall, taken;
    struct known *k = &w->e->known[b];
    if (!cpu_branch_lanes(w->e->f, b, 0, &taken)) return false;
    k->taken = taken &= mask;
    if (!taken) return go(w, b, 0, f, mask);
    if (taken == mask) return go(w, b, 0, t, mask);
    w->now[MG_MAX(t, f)] |= t < f ? mask & ~taken : taken;
    return go(w, b, 0, MG_MIN(t, f), t < f ? taken : mask & ~taken);
}

static bool ends(struct walk *w, uint32_t b)
{
    struct known *k = &w->e->known[b];
    uint32_t x = 0;
    while (x < w->e->f->n_blocks && !w->now[x]) x++;
    k->next[0] = x < w->e->f->n_blocks ? x : UINT32_MAX;
    return k->next[0] == UINT32_MAX || arrive(w, x, 0);
}

static bool step(struct walk *w, uint32_t b)
{
    struct cpu_func *f = w->e->f;
    const struct cpu_inst *in = &f->insts[f->blocks[b].end - 1];
    uint32_t mask = w->e->known[b].mask;
    if (f->serial_of[b]) return false;
    memcpy(w->now, row(w, b), f->n_blocks * sizeof *w->now);
    w->now[b] = 0;
    if (in->kind != CPU_CTL || (in->ctl == EMU_CTL_SYNC && cpu_sync_has_code(in->sub))) return go(w, b, 0, b + 1, mask);
    switch ((enum emu_ctl)in->ctl) {
    case EMU_CTL_BAR:
        return true;
    case EMU_CTL_NEXT:
    case EMU_CTL_LOOP:
        return go(w, b, 0, in->target, mask);
    case EMU_CTL_BRA:
        if (!in->guard || in->target == in->fall) return go(w, b, 0, in->target, mask);
        if (!cpu_uniform_guard(f, in)) return part(w, b, mask);
        return go(w, b, 0, in->target, mask) && go(w, b, 1, in->fall, mask);
    case EMU_CTL_RET:
    case EMU_CTL_EXIT:
        return !in->guard && ends(w, b);
    default:
        return false;
    }
}

/* Of the region from `start` on, which the warp begins with the lanes of `mask`, nobody waiting. */
void emit_find_known(struct emit *e, uint32_t start, uint32_t mask)
{
    uint32_t n = e->f->n_blocks;
    memset(e->known, 0, n * sizeof *e->known);
    if (n > MOST_BLOCKS || !e->whole || e->f->region.n_warps > 1) return;
    struct walk w = {.e = e, .pend = mg_xcalloc((size_t)n * n + 3 * n, sizeof *w.pend)};
    w.cur = w.pend + (size_t)n * n, w.todo = w.cur + n, w.now = w.todo + n;
    bool ok = arrive(&w, start, mask);
    while (ok && w.n_todo) ok = step(&w, w.todo[--w.n_todo]);
    if (!ok) memset(e->known, 0, n * sizeof *e->known);
    free(w.pend);
}

/* The lanes that come to the block which is being made, as far as they are known and not all; 0: no */
uint32_t emit_known_lanes(const struct emit *e)
{
    return e->version == PART && e->known[e->block].yes ? e->known[e->block].mask : 0;
}

LLVMBasicBlockRef emit_known_block(struct emit *e, uint32_t b)
{
    return emit_target(e, e->known[b].mask == UINT32_MAX ? FULL : PART, b);
}

/* Where the warp goes that would go to block `to`, lanes that wait before it first. */
LLVMBasicBlockRef emit_known_target(struct emit *e, uint32_t to, bool *waits)
{
    const struct known *k = &e->known[e->block];
    uint32_t next = k->next[k->to[0] != to];
    *waits = next != to;
    return emit_known_block(e, next);
}
