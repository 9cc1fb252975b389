/* Runs one warp until its lanes have exited, wait, or must give way.
 *
 * The running set is (pc, frame, mask, turn) in local variables; all other lanes are in w->sets.
 * `front` is the least operation at which ready lanes of the same activation and turn stand: a
 * jump to or past it means the other lanes are due (or to be joined), every other jump costs one
 * compare. Operations lie in rank order, so a jump backwards is a back-edge.
 */
#include "device/emu/defined.h"

#include <string.h>

static const struct emu_op *frontier(const struct emu_warp *w, const struct emu_frame *f, uint32_t turn)
{
    const struct emu_op *least = (const struct emu_op *)UINTPTR_MAX;
    for (uint32_t i = 0; i < w->n_sets; i++) {
        const struct emu_set *s = &w->sets[i];
        if (s->state == EMU_READY && s->frame == f && s->turn == turn && s->pc < least) least = s->pc;
    }
    return least;
}

static uint32_t guard_mask(const struct emu_op *op, const char *regs, uint32_t mask)
{
    return op->guard ? mask & (*(const uint32_t *)(regs + op->guard) ^ op->guard_flip) : mask;
}

/* Copies one parameter between two activations; local memory of a thread or a register. */
static void copy_arg(const struct emu_arg *a, struct emu_frame *from, struct emu_frame *to, uint32_t mask)
{
    EMU_FOR_LANES(i, mask)
    {
        uint64_t v[2] = {0, 0};
        const char *src;
        char *dst;
        uint32_t bytes = a->bytes;
        if (a->from_reg) {
            if (a->from_class == EMU_W)
                v[0] = ((const uint32_t *)(from->regs + a->from))[i];
            else if (a->from_class == EMU_D)
                v[0] = ((const uint64_t *)(from->regs + a->from))[i];
            else if (a->from_class == EMU_Q)
                memcpy(v, from->regs + a->from + 16 * i, 16);
            else
                v[0] = *(const uint32_t *)(from->regs + a->from) >> i & 1;
            src = (const char *)v;
        } else
            src = (const char *)(from->local_va + from->local_stride * i + from->local_at + a->from);
        if (a->to_reg) {
            if (src != (const char *)v) memcpy(v, src, bytes < 16 ? bytes : 16);
            if (a->to_class == EMU_W)
                ((uint32_t *)(to->regs + a->to))[i] = (uint32_t)v[0];
            else if (a->to_class == EMU_D)
                ((uint64_t *)(to->regs + a->to))[i] = v[0];
            else if (a->to_class == EMU_Q)
                memcpy(to->regs + a->to + 16 * i, v, 16);
            else if (v[0])
                *(uint32_t *)(to->regs + a->to) |= 1u << i;
            else
                *(uint32_t *)(to->regs + a->to) &= ~(1u << i);
            continue;
        }
        dst = (char *)(to->local_va + to->local_stride * i + to->local_at + a->to);
        memcpy(dst, src, src == (const char *)v && bytes > 16 ? 16 : bytes);
    }
}

/* Arguments of an indirect call are matched with the callee's parameters one by one. */
static void copy_actuals(const struct emu_call *call, const struct emu_func *fn, bool in, struct emu_frame *from,
                         struct emu_frame *to, uint32_t mask)
{
    uint32_t n = in ? MG_MIN(call->n_in, fn->n_params) : MG_MIN(call->n_out, fn->n_rets);
    for (uint32_t k = 0; k < n; k++) {
        struct emu_arg a = in ? call->actual_in[k] : fn->rets[k];
        const struct emu_arg *other = in ? &fn->params[k] : &call->actual_out[k];
        a.to_reg = other->to_reg;
        a.to_class = other->to_class;
        a.to = other->to;
        a.bytes = MG_MIN(a.bytes, other->bytes);
        if (MG_UNLIKELY(from->shade != NULL)) emu_defined_arg(&a, from, to, mask);
        copy_arg(&a, from, to, mask);
    }
}

static void enter(struct emu_frame *f, struct emu_frame *to, const struct emu_op *op, uint32_t mask)
{
    const struct emu_call *call = op->ext;
    copy_actuals(call, to->fn, true, f, to, mask);
}

/* Lanes leave an activation by ret: results go to the caller's variables. */
static void leave_frame(struct emu_warp *w, struct emu_frame *f, uint32_t mask, uint32_t turn)
{
    struct emu_frame *p = f->parent;
    if (f->fn->stack_slot) emu_stack_leave(f, mask);
    copy_actuals(f->call->ext, f->fn, false, f, p, mask);
    emu_set_add(w, f->call->fall, p, mask, turn);
    f->mask &= ~mask;
    if (!f->mask) emu_frame_drop(f);
}

void emu_exit_lanes(struct emu_warp *w, struct emu_frame *f, uint32_t mask)
{
    while (f) {
        struct emu_frame *p = f->parent;
        f->mask &= ~mask;
        if (!f->mask && p) emu_frame_drop(f);
        f = p;
    }
    emu_lanes_exit(w, mask);
}

static void call_indirect(struct emu_warp *w, struct emu_frame *f, const struct emu_op *op, uint32_t mask,
                          uint32_t turn)
{
    const struct emu_call *call = op->ext;
    const uint64_t *target = (const uint64_t *)(f->regs + call->target);
    for (uint32_t left = mask; left;) {
        uint64_t t = target[emu_first(left)];
        uint32_t group = 0;
        EMU_FOR_LANES(i, left) group |= (uint32_t)(target[i] == t) << i;
        left &= ~group;
        struct mg_dmod *mod;
        mg_id id;
        if (!emu_function_at(w->wk->dev, t, &mod, &id))
            emu_fault(f, op, MG_FAULT_BAD_CALL, emu_first(group), t, 0, "call of 0x%llx, where no function is",
                      (unsigned long long)t);
        struct mg_fault refused = {0};
        struct emu_func *fn = emu_code_func(w->wk->l->code, mod, id, &refused);
        if (!fn) emu_fault(f, op, refused.kind, emu_first(group), t, 0, "%s", refused.text);
        struct emu_frame *to = emu_frame_push(w, fn, f, op, group);
        enter(f, to, op, group);
        emu_set_add(w, fn->entry, to, group, turn);
    }
}

static void branch_indexed(struct emu_warp *w, struct emu_frame *f, const struct emu_op *op, uint32_t mask,
                           uint32_t turn)
{
    const uint32_t *ix = (const uint32_t *)(f->regs + op->a.s[0]);
    const struct emu_op *const *table = op->ext;
    EMU_FOR_LANES(i, mask)
    {
        if (ix[i] >= op->a.imm)
            emu_fault(f, op, MG_FAULT_TRAP, (int)i, 0, 0, "branch index %u is not in the table of %u", ix[i],
                      op->a.imm);
        emu_set_add(w, table[ix[i]], f, 1u << i, turn);
    }
}

/* The loop, once plain and once watched (witness, event stream). */
static inline __attribute__((always_inline)) enum emu_stop run(struct emu_warp *w, const bool watched,
                                                               const bool compiled, const bool apart)
{
    struct emu_worker *wk = w->wk;
    struct emu_set cur;
    const struct emu_op *pc, *op, *front, *to;
    struct emu_frame *f;
    char *regs;
    uint32_t mask, turn, taken;
    uint64_t warp_insts = 0, thread_insts = 0;
    enum emu_stop stop;

pick:
    if (!emu_set_pick(w, &cur)) {
        stop = w->live ? EMU_STOP_WAIT : EMU_STOP_DONE;
        goto out;
    }
    turn = w->n_sets ? cur.turn : 0;
    if (compiled) {
        bool again;
        cur.turn = turn;
        if (wk->dev->compiler->enter(w, &cur, &again) && !again) goto pick;
    }
    pc = cur.pc;
    f = cur.frame;
    mask = cur.mask;
    regs = f->regs;
    front = frontier(w, f, turn);

go:
    for (;;) {
        op = pc;
        warp_insts += op->insts;
        thread_insts += (uint64_t)op->insts * emu_popc(mask);
        if (watched) {
            for (const struct emu_op *end = op + op->run; op != end; op++) emu_observe(w, op, regs, mask);
        } else {
            for (const struct emu_op *end = op + op->run; op != end; op++) op->a.fn(&op->a, regs, mask);
        }
        switch ((enum emu_ctl)op->ctl) {
        case EMU_CTL_BRA:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            to = op->target;
            if (taken == mask) break;
            to = op->fall;
            if (!taken) break;
            { /* both ways: the lower rank goes on */
                const struct emu_op *other = op->target;
                uint32_t rest = mask & ~taken;
                if (other == to) break;
                if (other < to) {
                    const struct emu_op *t = other;
                    other = to;
                    to = t;
                    mask = taken;
                    taken = rest;
                } else
                    mask = rest;
                emu_set_add(w, other, f, taken, turn);
                if (other < front) front = other;
            }
            break;
        case EMU_CTL_NEXT:
            to = op->target;
            break;
        case EMU_CTL_LOOP:
            to = op->target;
            if (!w->pauses) break;
            w->pauses--;
            emu_set_add(w, to, f, mask, turn);
            w->spun = 0;
            stop = EMU_STOP_YIELD;
            goto out;
        case EMU_CTL_BRX:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            if (mask & ~taken) emu_set_add(w, op->fall, f, mask & ~taken, turn);
            branch_indexed(w, f, op, taken, turn);
            if (w->budget-- <= 0) goto give_way_parked;
            goto pick;
        case EMU_CTL_CALL:
        case EMU_CTL_CALLI:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            to = op->fall;
            if (!taken) break;
            if (mask & ~taken) emu_set_add(w, op->fall, f, mask & ~taken, turn);
            if (op->ctl == EMU_CTL_CALLI) {
                call_indirect(w, f, op, taken, turn);
                goto pick;
            } else {
                struct emu_func *fn = ((const struct emu_call *)op->ext)->callee;
                struct emu_frame *g = emu_frame_push(w, fn, f, op, taken);
                enter(f, g, op, taken);
                if (compiled && wk->dev->compiler->is_entry(wk->l, fn->entry, fn)) {
                    emu_set_add(w, fn->entry, g, taken, turn);
                    goto pick;
                }
                f = g;
                regs = f->regs;
                mask = taken;
                pc = fn->entry;
                front = (const struct emu_op *)UINTPTR_MAX;
                continue;
            }
        case EMU_CTL_BUILTIN:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            if (taken) emu_builtin_run(f, op, taken);
            to = op->fall;
            break;
        case EMU_CTL_RET:
        case EMU_CTL_EXIT:
            taken = guard_mask(op, regs, mask);
            if (watched && op->node) emu_observe_ctl(w, op, regs, mask, taken);
            to = op->fall;
            if (!taken) break;
            if (mask & ~taken) emu_set_add(w, op->fall, f, mask & ~taken, turn);
            if (op->ctl == EMU_CTL_RET && f->parent)
                leave_frame(w, f, taken, turn);
            else
                emu_exit_lanes(w, f, taken);
            goto pick;
        case EMU_CTL_TRAP:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            to = op->fall;
            if (!taken) break;
            emu_fault(f, op, MG_FAULT_TRAP, emu_first(taken), 0, 0, "trap");
        case EMU_CTL_BAR:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            if (mask & ~taken) emu_set_add(w, op + 1, f, mask & ~taken, turn);
            if (taken) emu_bar_arrive(w, op, f, taken);
            goto pick;
        case EMU_CTL_SYNC:
            taken = guard_mask(op, regs, mask);
            if (watched) emu_observe_ctl(w, op, regs, mask, taken);
            pc = op + 1;
            if (compiled && wk->dev->compiler->is_entry(wk->l, pc, f->fn)) {
                uint32_t on = taken ? emu_sync_arrive(w, op, f, taken, turn) : 0;
                if (on | (mask & ~taken)) emu_set_add(w, pc, f, on | (mask & ~taken), turn);
                goto pick;
            }
            if (taken) {
                uint32_t on = emu_sync_arrive(w, op, f, taken, turn);
                if (on != taken) {
                    if (on | (mask & ~taken)) emu_set_add(w, pc, f, on | (mask & ~taken), turn);
                    goto pick;
                }
            }
            continue;
        default:
            mg_unreachable();
        }
        /* jump */
        if (to <= op && (apart || !(op->ctl == EMU_CTL_BRA && op->sub))) {
            w->budget -= w->suspect ? EMU_SPIN_COST : 1;
            if (MG_UNLIKELY(w->budget <= 0)) goto give_way;
            w->suspect = 0;
        }
        if (compiled && wk->dev->compiler->is_entry(wk->l, to, f->fn)) {
            emu_set_add(w, to, f, mask, turn);
            goto pick;
        }
        if (MG_UNLIKELY(to >= front)) break;
        if (apart && !(emu_chance(w) & 3)) break;
        pc = to;
    }
    if (to == front) { /* join without going through the list when that is all there is to do */
        for (uint32_t i = 0; i < w->n_sets; i++) {
            struct emu_set *s = &w->sets[i];
            if (s->state != EMU_READY || s->pc != to || s->frame != f || s->turn != turn) continue;
            mask |= s->mask;
            *s = w->sets[--w->n_sets];
            break;
        }
        pc = to;
        front = frontier(w, f, turn);
        if (!w->n_sets) turn = 0;
        goto go;
    }
    emu_set_add(w, to, f, mask, turn);
    goto pick;

give_way:
    for (uint32_t i = 0; i < w->n_sets; i++) wk->rotated |= w->sets[i].state == EMU_READY;
    emu_set_add(w, to, f, mask, turn + 1);
give_way_parked:
    w->spun = w->suspect;
    w->suspect = 0;
    w->budget = EMU_TURN_BUDGET;
    stop = EMU_STOP_YIELD;
out:
    wk->warp_insts += warp_insts;
    wk->thread_insts += thread_insts;
    return stop;
}

static MG_NOINLINE enum emu_stop run_watched(struct emu_warp *w)
{
    return run(w, true, false, false);
}
static MG_NOINLINE enum emu_stop run_plain(struct emu_warp *w)
{
    return run(w, false, false, false);
}

/* The plain run, where compiled code takes over at its entries. */
static MG_NOINLINE enum emu_stop run_tiered(struct emu_warp *w)
{
    return run(w, false, true, false);
}

/* MARGAY_APART: at any jump other lanes may come first. */
static MG_NOINLINE enum emu_stop run_apart(struct emu_warp *w)
{
    return run(w, false, false, true);
}

enum emu_stop emu_warp_run(struct emu_warp *w)
{
    const struct emu_launch *l = w->wk->l;
    return l->observe ? run_watched(w) : l->compiled ? run_tiered(w) : w->chance ? run_apart(w) : run_plain(w);
}
