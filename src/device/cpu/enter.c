/* Warps go from the emulator into compiled code and back. */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

static void sync_exec(const struct emu_op *op, char *regs, uint32_t mask)
{
    struct emu_part part = {op, regs, mask};
    emu_sync_exec(&part, 1, mask);
}

static const struct cpu_host host = {sync_exec};

static void begin(struct emu_launch *l)
{
    const uint32_t dims[3] = {l->l->block.x, l->l->block.y, l->l->block.z};
    if (l->observe || (uint64_t)l->l->cluster.x * l->l->cluster.y * l->l->cluster.z > 1) return;
    l->compiled = cpu_tier_set(l->dev, l->code, dims);
}

static struct cpu_unit *unit_of(const struct emu_launch *l, const struct emu_func *fn)
{
    struct cpu_set *s = l->compiled;
    for (uint32_t i = 0; i < s->n_units; i++)
        if (s->units[i].fn == fn) return &s->units[i];
    return NULL;
}

static bool is_entry(const struct emu_launch *l, const struct emu_op *op, const struct emu_func *fn)
{
    struct cpu_unit *u = unit_of(l, fn);
    if (!u || !atomic_load_explicit(&u->code, memory_order_acquire)) return false;
    uint32_t b = u->f->block_of[op - fn->ops];
    return b && u->f->blocks[b - 1].entry;
}

/* Takes the other lanes of the activation along; false when some stand where compiled code cannot
 * have them wait. */
static bool take_pending(struct emu_warp *w, const struct emu_set *s, const struct cpu_func *f, const struct cpu_block *b, struct cpu_call *c)
{
    uint32_t n = w->n_sets;
    for (uint32_t i = 0; i < n; i++) {
        const struct emu_set *o = &w->sets[i];
        if (o->frame != s->frame) continue;
        uint32_t x = f->block_of[o->pc - f->fn->ops];
        if (o->state != EMU_READY || o->turn != s->turn || !x || !mg_has(b->front, x - 1)) return false;
    }
    for (uint32_t k = 0; k < f->block_words; k++)
        for (uint64_t m = b->front[k]; m; m &= m - 1) c->masks[64 * k + (uint32_t)__builtin_ctzll(m)] = 0;
    for (uint32_t i = 0; i < w->n_sets;) {
        const struct emu_set *o = &w->sets[i];
        if (o->frame != s->frame) {
            i++;
            continue;
        }
        c->masks[f->block_of[o->pc - f->fn->ops] - 1] |= o->mask;
        w->sets[i] = w->sets[--w->n_sets];
    }
    return true;
}

static void give_pending(struct emu_warp *w, const struct emu_set *s, const struct cpu_func *f, struct cpu_call *c)
{
    const uint64_t *front = f->blocks[c->block].front;
    for (uint32_t k = 0; k < f->block_words; k++)
        for (uint64_t m = front[k]; m; m &= m - 1) {
            uint32_t x = 64 * k + (uint32_t)__builtin_ctzll(m);
            if (c->masks[x]) emu_set_add(w, f->fn->ops + f->blocks[x].first, s->frame, c->masks[x], s->turn);
        }
}

static bool enter(struct emu_warp *w, struct emu_set *s, bool *again)
{
    struct emu_worker *wk = w->wk;
    struct emu_frame *frame = s->frame;
    const struct emu_func *fn = frame->fn;
    struct cpu_unit *u = unit_of(wk->l, fn);
    cpu_code_fn code = u ? atomic_load_explicit(&u->code, memory_order_acquire) : NULL;
    if (!code) return false;
    const struct cpu_func *f = u->f;
    uint32_t ix = f->block_of[s->pc - fn->ops];
    if (!ix || !f->blocks[ix - 1].entry || (w->suspect && !f->suspects)) return false;
    struct cpu_call *c = wk->compiled;
    if (!c) {
        c = wk->compiled = calloc(1, sizeof *c);
        if (!c) return false;
        const struct mg_dim3 *g = &wk->l->l->grid;
        c->host = &host;
        c->nctaid[0] = g->x;
        c->nctaid[1] = g->y;
        c->nctaid[2] = g->z;
    }
    if (!take_pending(w, s, f, &f->blocks[ix - 1], c)) return false;
    const struct emu_cta *cta = w->cta;
    c->frame = frame;
    c->ops = fn->ops;
    c->ranges = wk->ranges;
    c->entry = ix - 1;
    c->mask = s->mask;
    c->live = w->live;
    c->budget = w->budget;
    c->pauses = w->pauses;
    c->outside = w->n_sets;
    c->warp = w->ix;
    memcpy(c->ctaid, cta->id, sizeof c->ctaid);
    c->params = frame->params;
    c->shared = frame->shared;
    c->shared_bytes = frame->shared_bytes;
    c->local_va = frame->local_va;
    c->local_stride = frame->local_stride;
    c->local_bytes = frame->local_bytes;
    c->local_at = frame->local_at;
    uint32_t how = code(c);
    w->budget = c->budget;
    uint32_t gone = w->live & ~c->live;
    if (how != CPU_DONE) give_pending(w, s, f, c);
    if (gone) emu_exit_lanes(w, frame, gone);
    *again = how != CPU_DONE;
    if (*again) {
        s->pc = fn->ops + c->pc;
        s->mask = c->mask;
    }
    return true;
}

void cpu_enter_free(struct emu_worker *wk) { free(wk->compiled); }

const struct emu_compiler cpu_compiler = {.begin = begin, .enter = enter, .is_entry = is_entry, .forget = cpu_tier_forget, .worker_end = cpu_enter_free};
