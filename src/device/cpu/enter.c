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

/* What a worker keeps for compiled code. */
struct own {
    struct cpu_call call;
    const struct emu_cta *for_cta; /* whose places the call holds */
    struct lane_state { uint32_t live, entry, pauses, at /* 1 + operation of the barrier it waits in */; int32_t budget; } warps[EMU_MAX_WARPS];
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
    return o;
}

static void places(struct cpu_call *c, const struct emu_frame *f)
{
    c->params = f->params;
    c->shared = f->shared;
    c->shared_bytes = f->shared_bytes;
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
    struct own *own = own_of(wk);
    struct cpu_call *c = own ? &own->call : NULL;
    if (!c || !take_pending(w, s, f, &f->blocks[ix - 1], c)) return false;
    const struct emu_cta *cta = w->cta;
    c->frame = frame;
    c->ops = fn->ops;
    own->for_cta = NULL;
    c->entry = ix - 1;
    c->mask = s->mask;
    c->live = w->live;
    c->budget = w->budget;
    c->pauses = w->pauses;
    c->outside = w->n_sets;
    c->warp = w->ix;
    memcpy(c->ctaid, cta->id, sizeof c->ctaid);
    places(c, frame);
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

/* ---- whole CTAs ------------------------------------------------------------------------------------------ */

/* Compiled code cannot go on: puts the CTA where the emulator would have it. Warps before `k` ran to
 * where they are, warp k stopped inside (call holds where), the others wait to run. */
static bool hand_over(struct emu_cta *c, uint64_t linear, const struct cpu_func *f, struct own *o, uint32_t k)
{
    struct cpu_call *call = &o->call;
    const struct emu_op *ops = f->fn->ops;
    if (!emu_cta_start(c, linear)) return false;
    for (uint32_t i = 0; i < c->n_warps; i++) { /* who has left, first: nobody waits for them */
        struct emu_warp *w = &c->warps[i];
        uint32_t gone = w->live & ~o->warps[i].live;
        w->budget = o->warps[i].budget;
        w->pauses = (uint8_t)o->warps[i].pauses;
        w->n_sets = 0;
        if (gone) emu_exit_lanes(w, w->root, gone);
    }
    for (uint32_t i = 0; i < c->n_warps; i++) {
        struct emu_warp *w = &c->warps[i];
        if (!w->live) continue;
        if (i == k) {
            struct emu_set s = {.frame = w->root};
            give_pending(w, &s, f, call);
            emu_set_add(w, ops + call->pc, w->root, call->mask, 0);
        } else if (o->warps[i].at) emu_bar_arrive(w, ops + o->warps[i].at - 1, w->root, w->live);
        else emu_set_add(w, ops + f->blocks[o->warps[i].entry].first, w->root, w->live, 0);
    }
    return true;
}

static int run_cta(struct emu_cta *c, uint64_t linear)
{
    struct emu_worker *wk = c->wk;
    const struct emu_launch *l = c->l;
    struct cpu_unit *u = ((struct cpu_set *)l->compiled)->units;
    cpu_code_fn code = atomic_load_explicit(&u->code, memory_order_acquire);
    struct own *o = code && u->fn == c->code->entry && c->n_peers == 1 && !c->code->alloca_bytes && !l->deadline_ns ? own_of(wk) : NULL;
    if (!o || (l->l->cancel && *l->l->cancel)) return EMU_CTA_NOT;
    const struct cpu_func *f = u->f;
    struct cpu_call *call = &o->call;
    uint32_t n = c->n_warps, waiting = 0, left = n;
    if (o->for_cta != c) {
        if (!c->warps[0].root && !emu_cta_start(c, linear)) return EMU_CTA_NOT;
        for (uint32_t k = 0; k < n; k++) c->warps[k].root->mask = 0;
        o->for_cta = c;
        call->ops = f->fn->ops;
        call->outside = 0;
        places(call, c->warps[0].root);
    }
    const struct mg_dim3 *g = &l->l->grid;
    c->linear = linear;
    call->ctaid[0] = c->id[0] = (uint32_t)(linear % g->x);
    call->ctaid[1] = c->id[1] = (uint32_t)(linear / g->x % g->y);
    call->ctaid[2] = c->id[2] = (uint32_t)(linear / g->x / g->y);
    for (uint32_t k = 0; k < n; k++) {
        struct emu_warp *w = &c->warps[k];
        uint32_t lanes = c->n_threads - k * EMU_LANES;
        w->live = lanes >= EMU_LANES ? UINT32_MAX : (1u << lanes) - 1;
        w->suspect = 0;
        w->n_sets = 0;
        o->warps[k] = (struct lane_state){w->live, f->entry, n > 1 ? EMU_LOOP_PAUSES : 0, 0, EMU_TURN_BUDGET};
        if (f->own_sregs) emu_frame_fill_sregs(w->root);
    }
    while (left) {
        for (uint32_t k = 0; k < n; k++) {
            struct lane_state *s = &o->warps[k];
            if (!s->live || s->at) continue;
            call->frame = c->warps[k].root;
            call->warp = k;
            call->entry = s->entry;
            call->mask = call->live = s->live;
            call->budget = s->budget;
            call->pauses = s->pauses;
            uint32_t how = code(call);
            s->budget = call->budget;
            if (s->live != call->live) c->warps[k].live = s->live = call->live;
            if (how == CPU_STEP) {
                const struct cpu_inst *in = &f->insts[call->pc];
                s->entry = in->ctl == EMU_CTL_LOOP ? in->target : in->fall;
                if (in->ctl == EMU_CTL_LOOP) {
                    s->pauses--;
                    continue;
                }
                s->at = call->pc + 1;
                waiting++;
            } else if (how == CPU_AT || s->live) return hand_over(c, linear, f, o, k) ? EMU_CTA_GOES_ON : EMU_CTA_NOT;
            else left--;
        }
        if (waiting && waiting == left) {
            waiting = 0;
            for (uint32_t k = 0; k < n; k++) {
                o->warps[k].at = 0;
                if (n > 1 && o->warps[k].pauses < EMU_BAR_PAUSES) o->warps[k].pauses = EMU_BAR_PAUSES;
            }
        }
    }
    return EMU_CTA_RAN;
}

void cpu_enter_free(struct emu_worker *wk) { free(wk->compiled); }

const struct emu_compiler cpu_compiler = {.begin = begin, .enter = enter, .is_entry = is_entry, .forget = cpu_tier_forget, .worker_end = cpu_enter_free, .cta = run_cta};
