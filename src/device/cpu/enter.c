/* Warps go from the emulator into compiled code and back. */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "device/emu/room.h"
#include "device/mem.h"

static void sync_exec(const struct emu_op *op, char *regs, uint32_t mask)
{
    struct emu_part part = {op, regs, mask};
    emu_sync_exec(&part, 1, mask);
}

static const struct cpu_host host = {sync_exec, mg_now_ns};

static void begin(struct emu_launch *l)
{
    if (l->observe || l->dev->opts.check || (uint64_t)l->l->cluster.x * l->l->cluster.y * l->l->cluster.z > 1) return;
    l->compiled = cpu_tier_begin(l);
}

static void end(struct emu_launch *l)
{
    if (l->compiled) cpu_tier_end(l);
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

#define LARGE_LINEAR (16u << 10)

/* What a worker keeps for compiled code. */
struct own {
    struct cpu_call call;
    const struct emu_cta *for_cta; /* whose places the call holds */
    uint64_t (*linear)[2];
    uint32_t cap;             /* linear registers of each warp; twice more for those of the CTA */
    uint64_t linear_of;       /* whose they are: the complement of emu_func.number, which is a frame's */
    uint32_t *masks, n_masks; /* and its pending lanes, by block */
    const struct cpu_set *set;
    uint64_t **counts; /* by unit: what inserted code has counted (tally.c); NULL: nothing yet */
};

static struct own *own_of(struct emu_worker *wk)
{
    struct own *o = wk->compiled;
    if (o) return o;
    o = wk->compiled = calloc(1, sizeof *o);
    if (!o) return NULL;
    const struct mg_dim3 *g = &wk->l->l->grid;
    o->call.host = &host;
    o->call.nctaid[0] = g->x;
    o->call.nctaid[1] = g->y;
    o->call.nctaid[2] = g->z;
    o->call.ranges = wk->ranges;
    o->set = wk->l->compiled;
    o->counts = calloc(o->set->n_units, sizeof *o->counts);
    return o;
}

/* Room for what the unit counts; false: there is none. */
static bool can_count(struct own *o, const struct cpu_unit *u, uint64_t **counts)
{
    uint64_t **own = o->counts ? &o->counts[u - o->set->units] : NULL;
    size_t bytes = (u->f->tally.n_counts * sizeof **own + 63) / 64 * 64;
    if (own && !*own && bytes && (*own = aligned_alloc(64, bytes))) memset(*own, 0, bytes);
    *counts = own ? *own : NULL;
    return *counts || !bytes;
}

static void give_linear(struct emu_worker *wk, struct own *o)
{
    emu_room_give(wk->room, o->linear, o->cap * sizeof *o->linear, o->linear_of);
    o->linear = NULL;
}

/* Many linear registers are not cleared where they were the function's in a launch before, as large frames are not. */
static void take_linear(struct emu_worker *wk, struct own *o, const struct emu_func *fn, uint32_t n)
{
    size_t bytes = n * sizeof *o->linear;
    give_linear(wk, o);
    o->cap = n;
    o->linear_of = ~fn->number;
    o->linear = emu_room_take(wk->room, bytes);
    if (o->linear && (bytes < LARGE_LINEAR || emu_room_was(o->linear) != o->linear_of)) memset(o->linear, 0, bytes);
    o->for_cta = NULL;
}

static bool make_room(struct emu_worker *wk, struct own *o, const struct cpu_func *f, uint32_t warps)
{
    if (f->n_linear * (warps + 2) > o->cap) take_linear(wk, o, f->fn, f->n_linear * (warps + 2));
    if (f->n_blocks * warps > o->n_masks) {
        free(o->masks);
        o->n_masks = f->n_blocks * warps;
        o->masks = calloc(o->n_masks, sizeof *o->masks);
        o->for_cta = NULL;
    }
    if ((o->linear || !o->cap) && o->masks) return true;
    o->cap = o->n_masks = 0;
    return false;
}

/* What a linear register with these bases is, lane by lane: as words or double words. */
#define DEFINE_LINE(name, T)                                                                                           \
    static void name(const struct cpu_func *f, struct cpu_shape s, uint64_t base, uint64_t second, T *to)              \
    {                                                                                                                  \
        T step = (T)s.stride, low = (T)base, high = s.halves ? (T)second : low + 16 * step, off = 0;                   \
        for (uint32_t i = 0; i < 16; i++, off += step) to[i] = low + off, to[16 + i] = high + off;                     \
        if (s.tile)                                                                                                    \
            for (uint32_t i = 0; i < EMU_LANES; i++) to[i] += (T)f->tiles[s.tile - 1][i];                              \
    }
DEFINE_LINE(line_w, uint32_t)
DEFINE_LINE(line_d, uint64_t)
#undef DEFINE_LINE

/* Linear registers of the set, from their bases into the frame. */
static void expand(const struct cpu_func *f, const uint64_t *set, struct emu_frame *frame, uint64_t (*linear)[2])
{
    for (uint32_t k = 0; k < f->reg_words; k++)
        for (uint64_t m = set[k]; m; m &= m - 1) {
            const struct cpu_reg *r = &f->regs[64 * k + (uint32_t)__builtin_ctzll(m)];
            if (!r->linear) continue;
            const uint64_t *base = linear[r->linear - 1];
            void *to = frame->regs + r->off;
            if (r->cls == EMU_P)
                *(uint32_t *)to = base[0] & 1 ? UINT32_MAX : 0;
            else if (r->cls == EMU_W)
                line_w(f, r->shape, base[0], base[1], to);
            else
                line_d(f, r->shape, base[0], base[1], to);
        }
}

/* All bits of lane i: does it count? */
static void lane_masks(uint32_t lanes, uint32_t *masks)
{
#define FOUR(i) 1u << (i), 2u << (i), 4u << (i), 8u << (i)
    static const uint32_t bit[EMU_LANES] = {FOUR(0),  FOUR(4),  FOUR(8),  FOUR(12),
                                            FOUR(16), FOUR(20), FOUR(24), FOUR(28)};
#undef FOUR
    for (uint32_t i = 0; i < EMU_LANES; i++) masks[i] = (lanes & bit[i]) == bit[i] ? UINT32_MAX : 0;
}

/* The base of a linear register whose value counts in these lanes; false: they do not lie on one line. */
static bool find_base(const struct cpu_func *f, const struct cpu_reg *r, const char *at, uint32_t lanes, uint64_t *base)
{
    uint32_t first = lanes ? (uint32_t)emu_first(lanes) : 0, counts[EMU_LANES];
    uint64_t bad = 0;
    if (r->cls == EMU_P) {
        uint32_t bits = *(const uint32_t *)(const void *)at;
        *base = bits >> first & 1;
        return !((bits ^ -(uint32_t)*base) & lanes);
    }
    lane_masks(lanes, counts);
    if (r->cls == EMU_W) {
        const uint32_t *v = (const uint32_t *)(const void *)at;
        uint32_t off[EMU_LANES], differ = 0;
        line_w(f, r->shape, 0, 0, off);
        const uint32_t from = v[first] - off[first];
        for (uint32_t i = 0; i < EMU_LANES; i++) differ |= (v[i] - off[i] - from) & counts[i];
        *base = from;
        bad = differ;
    } else {
        const uint64_t *v = (const uint64_t *)(const void *)at;
        uint64_t off[EMU_LANES];
        line_d(f, r->shape, 0, 0, off);
        *base = v[first] - off[first];
        for (uint32_t i = 0; i < EMU_LANES; i++) bad |= (v[i] - off[i] - *base) & (uint64_t)(int64_t)(int32_t)counts[i];
    }
    return !bad && (!r->shape.aligned || !(*base & 31) || !lanes);
}

/* The way back. Compiled code counts on lanes that wait for one another (shape.c); lanes that the emulator
 * let run apart, over turns or .sync operations, may meet again with values that do not fit: false. */
static bool compress(const struct cpu_func *f, const struct cpu_block *b, const struct cpu_warp *w)
{
    for (uint32_t k = 0; k < f->reg_words; k++)
        for (uint64_t m = b->live[k] | b->keep[k]; m; m &= m - 1) {
            uint32_t ix = 64 * k + (uint32_t)__builtin_ctzll(m), of = mg_has(b->live, ix) ? w->mask : 0;
            const struct cpu_reg *r = &f->regs[ix];
            if (!r->linear) continue;
            for (uint32_t j = 0; j < f->block_words; j++)
                for (uint64_t x = b->front[j]; x; x &= x - 1) {
                    uint32_t blk = 64 * j + (uint32_t)__builtin_ctzll(x);
                    if (w->masks[blk] && mg_has(f->blocks[blk].live, ix)) of |= w->masks[blk];
                }
            const char *s = w->frame->regs + r->off;
            for (uint32_t h = 0; h < (r->shape.halves ? 2 : 1); h++)
                if (!find_base(f, r, s, r->shape.halves ? of & (h ? 0xffff0000 : 0xffff) : of,
                               &w->linear[r->linear - 1][h]))
                    return false;
        }
    return true;
}

static void places(struct cpu_call *c, const struct emu_frame *f)
{
    c->params = f->params;
    c->shared = f->shared;
    c->shared_bytes = f->shared_bytes;
}

/* Takes the other lanes of the activation along; false when some stand where compiled code cannot
 * have them wait. */
static bool take_pending(struct emu_warp *w, const struct emu_set *s, const struct cpu_func *f,
                         const struct cpu_block *b, uint32_t *masks)
{
    uint32_t n = w->n_sets;
    for (uint32_t i = 0; i < n; i++) {
        const struct emu_set *o = &w->sets[i];
        if (o->frame != s->frame) continue;
        uint32_t x = f->block_of[o->pc - f->fn->ops];
        if (o->state != EMU_READY || o->turn != s->turn || !x || !mg_has(b->front, x - 1)) return false;
    }
    for (uint32_t i = 0; i < w->n_sets;) {
        const struct emu_set *o = &w->sets[i];
        if (o->frame != s->frame) {
            i++;
            continue;
        }
        masks[f->block_of[o->pc - f->fn->ops] - 1] |= o->mask;
        w->sets[i] = w->sets[--w->n_sets];
    }
    return true;
}

/* Pending lanes of a front become sets again. */
static void give_pending(struct emu_warp *w, struct emu_frame *frame, uint32_t turn, const struct cpu_func *f,
                         const uint64_t *front, uint32_t *masks)
{
    for (uint32_t k = 0; k < f->block_words; k++)
        for (uint64_t m = front[k]; m; m &= m - 1) {
            uint32_t x = 64 * k + (uint32_t)__builtin_ctzll(m);
            if (masks[x]) emu_set_add(w, f->fn->ops + f->blocks[x].first, frame, masks[x], turn);
            masks[x] = 0;
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
    struct own *own = own_of(wk);
    struct cpu_call *c = own ? &own->call : NULL;
    uint64_t *counts;
    if (!c || !can_count(own, u, &counts) || !make_room(wk, own, f, 1) ||
        !take_pending(w, s, f, &f->blocks[ix - 1], own->masks))
        return false;
    const struct emu_cta *cta = w->cta;
    struct cpu_warp *me = &c->warps[w->ix];
    *me = (struct cpu_warp){frame, own->linear, own->masks, ix - 1, s->mask, w->live, 0, w->pauses, w->budget};
    own->for_cta = NULL;
    c->ops = fn->ops;
    mg_mem_arena(c->arena);
    c->alone = 1;
    c->outside = w->n_sets;
    c->warp = w->ix;
    c->n_warps = w->ix + 1;
    memcpy(c->ctaid, cta->id, sizeof c->ctaid);
    places(c, frame);
    if (!compress(f, &f->blocks[ix - 1], me)) {
        give_pending(w, frame, s->turn, f, f->blocks[ix - 1].front, own->masks);
        return false;
    }
    uint32_t how = code(c, counts);
    w->budget = me->budget;
    uint32_t gone = w->live & ~me->live;
    if (how == CPU_AT) {
        expand(f, f->blocks[c->block].saved, frame, me->linear);
        give_pending(w, frame, s->turn, f, f->blocks[c->block].front, me->masks);
        s->pc = fn->ops + c->pc;
        s->mask = c->mask;
    }
    if (gone) emu_exit_lanes(w, frame, gone);
    *again = how == CPU_AT;
    return true;
}

/* ---- whole CTAs ------------------------------------------------------------------------------------------ */

/* Compiled code cannot go on: puts the CTA where the emulator would have it. Warp k stopped inside (call
 * holds where; none: past the last), the others ended, wait at a barrier or are to go on at an entry. */
static bool hand_over(struct emu_cta *c, uint64_t number, const struct cpu_func *f, struct cpu_call *call, uint32_t k)
{
    const struct emu_op *ops = f->fn->ops;
    uint8_t suspect[EMU_MAX_WARPS];
    for (uint32_t i = 0; i < c->n_warps; i++) suspect[i] = c->warps[i].suspect;
    if (!emu_cta_start(c, number)) return false;
    for (uint32_t i = 0; i < c->n_warps; i++) { /* who has left, first: nobody waits for them */
        struct emu_warp *w = &c->warps[i];
        uint32_t gone = w->live & ~call->warps[i].live;
        w->budget = call->warps[i].budget;
        w->suspect = suspect[i];
        w->pauses = (uint8_t)call->warps[i].pauses;
        w->n_sets = 0;
        if (gone) emu_exit_lanes(w, w->root, gone);
    }
    for (uint32_t i = 0; i < c->n_warps; i++) {
        struct emu_warp *w = &c->warps[i];
        if (!w->live) continue;
        expand(f, i == k ? f->blocks[call->block].saved : f->blocks[call->warps[i].entry].live, w->root,
               call->warps[i].linear);
        if (i != k) expand(f, f->blocks[call->warps[i].entry].keep, w->root, call->warps[i].linear);
        if (i == k) {
            give_pending(w, w->root, 0, f, f->blocks[call->block].front, call->warps[i].masks);
            emu_set_add(w, ops + call->pc, w->root, call->mask, 0);
        } else if (call->warps[i].at)
            emu_bar_arrive(w, ops + call->warps[i].at - 1, w->root, w->live);
        else {
            give_pending(w, w->root, 0, f, f->blocks[call->warps[i].entry].front, call->warps[i].masks);
            emu_set_add(w, ops + f->blocks[call->warps[i].entry].first, w->root, call->warps[i].mask, 0);
        }
    }
    return true;
}

/* Warps all begin at the kernel's entry. */
static void begin_warps(struct emu_cta *c, const struct cpu_func *f, struct cpu_call *call)
{
    for (uint32_t k = 0; k < c->n_warps; k++) {
        struct emu_warp *w = &c->warps[k];
        struct cpu_warp *s = &call->warps[k];
        uint32_t lanes = c->n_threads - k * EMU_LANES;
        s->live = s->mask = w->live = lanes >= EMU_LANES ? UINT32_MAX : (1u << lanes) - 1;
        s->entry = f->entry;
        s->at = 0;
        s->pauses = c->n_warps > 1 ? EMU_LOOP_PAUSES : 0;
        s->budget = EMU_TURN_BUDGET;
        w->suspect = 0;
        w->n_sets = 0;
        if (f->region.own_sregs) emu_frame_fill_sregs(w->root);
    }
}

static void pass_barrier(struct cpu_call *call, uint32_t n)
{
    uint32_t pauses = EMU_LOOP_PAUSES;
    for (uint32_t k = 0; k < n; k++)
        if (call->warps[k].live) pauses = MG_MIN(pauses, call->warps[k].pauses);
    if (n > 1) pauses = MG_MAX(pauses, EMU_BAR_PAUSES);
    for (uint32_t k = 0; k < n; k++) call->warps[k].at = 0, call->warps[k].pauses = pauses;
}

/* Do all warps have of the CTA's register what whole-CTA code takes it for? */
static bool is_common(const struct cpu_reg *reg, const struct cpu_call *call, uint32_t n)
{
    uint64_t bits = reg->cls == EMU_P ? 1 : reg->cls == EMU_W ? UINT32_MAX : UINT64_MAX;
    for (uint32_t h = 0; h < (reg->shape.halves ? 2 : 1); h++) {
        uint64_t first = call->warps[0].linear[reg->linear - 1][h];
        call->uniform[0][reg->linear - 1][h] = first;
        for (uint32_t k = 1; k < n; k++)
            if ((call->warps[k].linear[reg->linear - 1][h] - first - (uint64_t)reg->step * k) & bits) return false;
    }
    return true;
}

/* All warps are behind a barrier: 1 + the start from which whole-CTA code can go on; 0: from none. */
static uint32_t resumes_at(const struct cpu_func *f, struct cpu_call *call, uint32_t n)
{
    uint32_t block = call->warps[0].entry, start = f->region.start_of[block];
    if (!f->region.resumes || !start || f->region.paused[block]) return 0;
    for (uint32_t k = 0; k < n; k++) {
        const struct cpu_warp *w = &call->warps[k];
        if (w->entry != block || w->live != cpu_lanes_of(&f->region, k) || w->mask != w->live) return 0;
    }
    for (uint32_t k = 0; k < f->reg_words; k++)
        for (uint64_t m = f->blocks[block].live[k]; m; m &= m - 1) {
            const struct cpu_reg *reg = &f->regs[64 * k + (uint32_t)__builtin_ctzll(m)];
            if (reg->cta && !is_common(reg, call, n)) return 0;
        }
    call->turns = call->warps[0].pauses;
    return start;
}

/* Goes on warp by warp from warp `first` of this round. resume: only until whole-CTA code can, at call->resume. */
static int run_rounds(struct emu_cta *c, const struct cpu_func *f, cpu_code_fn code, struct cpu_call *call,
                      uint64_t *counts, uint32_t first, bool resume)
{
    uint32_t n = c->n_warps;
    for (;;) {
        call->warp = first;
        if (first < n && code(call, counts) == CPU_AT)
            return hand_over(c, c->linear, f, call, call->warp) ? EMU_CTA_GOES_ON : EMU_CTA_NOT;
        uint32_t ready = n, alive = n;
        for (uint32_t k = n; k-- > 0;) {
            if (!call->warps[k].live) continue;
            alive = k;
            if (!call->warps[k].at) ready = k;
        }
        if (alive == n) return EMU_CTA_RAN;
        first = ready;
        if (ready < n) continue;
        pass_barrier(call, n); /* all that live have come to it */
        first = alive;
        if (resume && (call->resume = resumes_at(f, call, n))) return EMU_CTA_RAN;
    }
}

/* Vectors that whole-CTA code knows where the region begins, into the frame. */
static void fill_constants(const struct cpu_func *f, const struct cpu_start *s, struct emu_frame *frame)
{
    for (uint32_t k = 0; k < f->reg_words; k++)
        for (uint64_t m = s->constant[k]; m; m &= m - 1) {
            const uint32_t r = 64 * k + (uint32_t)__builtin_ctzll(m);
            char *d = frame->regs + f->regs[r].off;
            if (f->regs[r].cls == EMU_P) *(uint32_t *)d = s->value[r] & 1 ? UINT32_MAX : 0;
            for (uint32_t i = 0; i < EMU_LANES && f->regs[r].cls != EMU_P; i++) {
                if (f->regs[r].cls == EMU_W)
                    ((uint32_t *)d)[i] = (uint32_t)s->value[r];
                else
                    ((uint64_t *)d)[i] = s->value[r];
            }
        }
}

/* The CTA's registers that count at the block's begin, to warp k. */
static void spread_registers(const struct cpu_func *f, const struct cpu_block *b, uint64_t (*from)[2], uint32_t k,
                             uint64_t (*to)[2])
{
    for (uint32_t i = 0; i < f->reg_words; i++)
        for (uint64_t m = b->live[i] | b->keep[i]; m; m &= m - 1) {
            const struct cpu_reg *r = &f->regs[64 * i + (uint32_t)__builtin_ctzll(m)];
            for (int h = 0; h < 2 && r->cta; h++)
                to[r->linear - 1][h] = from[r->linear - 1][h] + (uint64_t)(r->step * (int64_t)k);
        }
}

/* Whole-CTA code has returned in the middle of one: what it kept for all warps becomes each one's. Warp call->own
 * wrote its state itself, but not where it stopped when it stands inside. */
static void spread(struct emu_cta *c, const struct cpu_func *f, struct cpu_call *call, uint64_t *counts, bool inside)
{
    uint32_t own = call->own, next = call->common / 2 - 1;
    bool barrier = call->common & 1, first = call->start == f->entry;
    if (inside) {
        call->warps[own].at = 0;
        call->warps[own].pauses = call->turns;
    }
    for (uint32_t k = 0; k < c->n_warps; k++) {
        struct cpu_warp *s = &call->warps[k];
        bool came = k < own;
        uint32_t block = came ? next : call->start;
        if (k == own) continue;
        if (came && !call->common)
            s->live = 0;
        else if (!f->region.lossy || (!came && first))
            s->live = cpu_lanes_of(&f->region, k);
        if (!s->live) continue;
        if (!f->region.loops || (!came && first)) s->budget = EMU_TURN_BUDGET;
        if (!f->region.splits || !f->region.paused[block]) s->mask = s->live;
        s->entry = block;
        s->at = came && barrier ? f->blocks[block].first : 0; /* 1 + the barrier's operation */
        s->pauses = call->turns - (came && !barrier);
        fill_constants(f, &f->region.starts[f->region.start_of[block] - 1], s->frame);
        spread_registers(f, &f->blocks[block], call->uniform[came], k, s->linear);
    }
    cpu_tally_leave(f, call, counts);
}

static void place(struct emu_cta *c, uint64_t linear, struct cpu_call *call)
{
    const struct mg_dim3 *g = &c->l->l->grid;
    c->linear = linear;
    bool first_row = linear < g->x;
    call->ctaid[0] = c->id[0] = (uint32_t)(first_row ? linear : linear % g->x);
    call->ctaid[1] = c->id[1] = first_row ? 0 : (uint32_t)(linear / g->x % g->y);
    call->ctaid[2] = c->id[2] = first_row ? 0 : (uint32_t)(linear / g->x / g->y);
}

/* Whole-CTA code for CTAs *at .. end - 1. */
static int run_whole(struct emu_cta *c, const struct cpu_unit *u, cpu_code_fn whole, struct cpu_call *call,
                     uint64_t *counts, uint64_t *at, uint64_t end)
{
    const struct cpu_func *f = u->f;
    call->resume = 0;
    while (*at < end) {
        place(c, *at, call);
        if (!call->resume) begin_warps(c, f, call);
        call->number = *at;
        call->number_end = f->region.own_sregs || f->suspects ? *at + 1 : end;
        uint32_t how = whole(call, counts);
        call->resume = 0;
        *at = call->number;
        if (how == CPU_DONE) continue;
        c->linear = *at;
        spread(c, f, call, counts, how == CPU_AT);
        if (how == CPU_AT) return hand_over(c, *at, f, call, call->warp) ? EMU_CTA_GOES_ON : EMU_CTA_NOT;
        cpu_code_fn code = atomic_load_explicit(&u->code, memory_order_acquire);
        if (!code) return hand_over(c, *at, f, call, c->n_warps) ? EMU_CTA_GOES_ON : EMU_CTA_NOT;
        int r = run_rounds(c, f, code, call, counts, call->warp, true);
        if (r != EMU_CTA_RAN) return r;
        if (!call->resume) ++*at;
    }
    return EMU_CTA_RAN;
}

static int run_ctas(struct emu_cta *c, uint64_t *at, uint64_t end)
{
    struct emu_worker *wk = c->wk;
    const struct emu_launch *l = c->l;
    struct cpu_unit *u = ((struct cpu_set *)l->compiled)->units;
    cpu_code_fn code = atomic_load_explicit(&u->code, memory_order_acquire),
                whole = atomic_load_explicit(&u->whole, memory_order_acquire);
    bool can = (code || whole) && u->fn == c->code->entry && c->n_peers == 1 && !c->code->alloca_bytes &&
               (!l->deadline_ns || mg_now_ns() < l->deadline_ns);
    struct own *o = can ? own_of(wk) : NULL;
    uint64_t *counts;
    if (!o || !can_count(o, u, &counts) || !make_room(wk, o, u->f, c->n_warps) || (l->l->cancel && *l->l->cancel))
        return EMU_CTA_NOT;
    const struct cpu_func *f = u->f;
    struct cpu_call *call = &o->call;
    uint32_t n = c->n_warps;
    if (o->for_cta != c) {
        if (!c->warps[0].root && !emu_cta_start(c, *at)) return EMU_CTA_NOT;
        for (uint32_t k = 0; k < n; k++) {
            c->warps[k].root->mask = 0;
            call->warps[k].frame = c->warps[k].root;
            call->warps[k].linear = o->linear + (size_t)k * f->n_linear;
            call->warps[k].masks = o->masks + (size_t)k * f->n_blocks;
        }
        for (uint32_t k = 0; k < 2; k++) call->uniform[k] = o->linear + (size_t)(n + k) * f->n_linear;
        o->for_cta = c;
        call->ops = f->fn->ops;
        mg_mem_arena(call->arena);
        call->outside = call->alone = 0;
        call->n_warps = n;
        call->place = c->id;
        places(call, c->warps[0].root);
    }
    if (whole) return run_whole(c, u, whole, call, counts, at, end);
    if (!code) return EMU_CTA_NOT;
    for (; *at < end; ++*at) {
        place(c, *at, call);
        begin_warps(c, f, call);
        int how = run_rounds(c, f, code, call, counts, 0, false);
        if (how != EMU_CTA_RAN) return how;
        if (l->l->cancel && *l->l->cancel && *at + 1 < end) {
            ++*at;
            return EMU_CTA_NOT;
        }
    }
    return EMU_CTA_RAN;
}

void cpu_enter_free(struct emu_worker *wk)
{
    struct own *o = wk->compiled;
    for (uint32_t k = 0; o && o->counts && k < o->set->n_units; k++) {
        if (o->counts[k]) cpu_tally_flush(o->set->units[k].f, o->counts[k], wk);
        free(o->counts[k]);
    }
    if (o) {
        give_linear(wk, o);
        free(o->counts);
        free(o->masks);
    }
    free(o);
}

const struct emu_compiler cpu_compiler = {.begin = begin,
                                          .end = end,
                                          .enter = enter,
                                          .is_entry = is_entry,
                                          .forget = cpu_tier_forget,
                                          .worker_end = cpu_enter_free,
                                          .cta = run_ctas};
