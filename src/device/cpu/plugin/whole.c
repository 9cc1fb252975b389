/* Code for whole CTAs, many in one call: region after region (device/cpu/region.c), in each a loop over
 * the warps. Blocks that several regions reach are emitted once for each. Between regions registers of
 * the CTA are scalars, those of a warp lie in its frame. What cannot go on like that (warps at
 * different stops, an operation for the emulator) returns, and enter.c puts the CTA together. */
#include "device/cpu/plugin/emit.h"
#include "device/cpu/plugin/jit.h"

#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#define B e->b

struct whole {
    const struct cpu_start *s;                 /* the region being emitted */
    uint64_t *after;                           /* registers that count at one of its stops */
    val common, turns, number, id[3], grid[3]; /* allocas but grid; common: where warps of this round have stopped */
    struct reg_var *old, *now; /* allocas: registers of the CTA, in warp 0, when the round began and where it stops */
    LLVMBasicBlockRef *round;  /* by start */
    LLVMBasicBlockRef over;    /* the CTA has ended */
    LLVMBasicBlockRef row;     /* so has the grid's row */
    LLVMBasicBlockRef head;    /* of fused regions (fuse.c): where the loop over warps begins */
};

static val load32(struct emit *e, val at)
{
    return LLVMBuildLoad2(B, e->t.i32, at, "");
}
static val is_zero(struct emit *e, val v)
{
    return LLVMBuildICmp(B, LLVMIntEQ, v, k32(e, 0), "");
}

val emit_ctaid(struct emit *e, unsigned comp)
{
    return load32(e, e->whole->id[comp]);
}
void emit_tell_place(struct emit *e)
{
    if (!e->whole) return;
    val place = emit_field(e, e->t.ptr, offsetof(struct cpu_call, place));
    for (unsigned k = 0; k < 3; k++) LLVMBuildStore(B, emit_ctaid(e, k), emit_at(e, place, 4 * k));
}

uint32_t emit_region(struct emit *e)
{
    return (uint32_t)(e->whole->s - e->f->region.starts);
}
val emit_warp_number(struct emit *e)
{
    if (e->f->region.n_warps == 1) return LLVMBuildLoad2(B, e->t.i64, e->whole->number, "");
    return LLVMBuildZExt(B, e->warp, e->t.i64, "");
}
val emit_turns(struct emit *e)
{
    return load32(e, e->whole->turns);
}

static unsigned parts(const struct cpu_reg *r)
{
    return r->shape.halves ? 2 : 1;
}

/* Do warps come to this start while lanes wait elsewhere? */
static bool parted(const struct emit *e, uint32_t block)
{
    return e->f->region.paused[block] && e->f->region.splits;
}

bool emit_never_all(struct emit *e)
{
    return e->f->region.n_warps == 1 && e->f->region.tail;
}

/* The lanes that the running warp begins with. */
static val all_lanes(struct emit *e)
{
    uint32_t last = e->f->region.n_warps - 1;
    val tail = k32(e, cpu_lanes_of(&e->f->region, last));
    if (!last || !e->f->region.tail) return tail;
    return LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntEQ, e->warp, k32(e, last), ""), tail, k32(e, UINT32_MAX), "");
}

static bool counts(const struct emit *e, uint32_t block, uint32_t r)
{
    const struct cpu_block *b = &e->f->blocks[block];
    return mg_has(b->live, r) || (parted(e, block) && mg_has(b->keep, r));
}

/* What the register differs by between the running warp and warp 0. */
static val ahead(struct emit *e, const struct cpu_reg *r)
{
    LLVMTypeRef t = emit_type(e, (enum emu_class)r->cls, false);
    if (!r->step) return NULL;
    val w = r->cls == EMU_D ? LLVMBuildZExt(B, e->warp, e->t.i64, "") : e->warp;
    return LLVMBuildMul(B, w, LLVMConstInt(t, (uint64_t)r->step, 0), "");
}

static val as64(struct emit *e, val v)
{
    return LLVMTypeOf(v) == e->t.i64 ? v : LLVMBuildZExt(B, v, e->t.i64, "");
}

/* Is the region behind a warp's stop its own next one (fuse.c)? Then registers stay where they are. */
static bool goes_on(const struct emit *e)
{
    return e->whole->s->goes_on;
}
static bool follows(const struct emit *e)
{
    const struct cpu_start *s = e->whole->s;
    return s > e->f->region.starts && s[-1].goes_on;
}

/* Does the register count behind the region that a warp goes on to? */
static bool counts_later(const struct emit *e, uint32_t r)
{
    return counts(e, e->whole->s[1].stop / 2 - 1, r);
}

/* ---- stops -------------------------------------------------------------------------------------------------- */

static void save_masks(struct emit *e)
{
    for (uint32_t x = 0; x < e->f->n_blocks && e->version == PART && !e->f->region.masks_settled; x++)
        if (mg_has(e->f->blocks[e->block].front, x) && e->pend[x])
            LLVMBuildStore(B, load32(e, e->pend[x]), emit_at(e, emit_masks(e), 4 * x));
}

static void dirty_here(struct emit *e)
{
    cpu_dirty_at(e->f, e->whole, e->block, e->ix, e->scratch);
}

bool emit_unsaved(struct emit *e, uint32_t r)
{
    return e->f->regs[r].cta || mg_has(e->whole->s->constant, r);
}

/* The warp's whole state in memory; `first` is the next to run. */
static void pass(struct emit *e, uint32_t next, val at, val pauses, val first)
{
    struct cpu_func *f = e->f;
    dirty_here(e);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if ((mg_has(f->blocks[next].live, r) || mg_has(f->blocks[next].keep, r)) &&
            (mg_has(e->scratch, r) || emit_unsaved(e, r)))
            emit_save(e, r + 1);
    save_masks(e);
    emit_set_state(e, offsetof(struct cpu_warp, mask), emit_mask(e));
    emit_set_state(e, offsetof(struct cpu_warp, entry), k32(e, next));
    emit_set_state(e, offsetof(struct cpu_warp, at), at);
    emit_set_state(e, offsetof(struct cpu_warp, pauses), pauses);
    LLVMBuildStore(B, k32(e, e->ix), e->out.pc);
    LLVMBuildStore(B, emit_mask(e), e->out.mask);
    LLVMBuildStore(B, k32(e, 3), e->out.stop);
    LLVMBuildStore(B, first, e->out.next);
    LLVMBuildBr(B, e->out.tail);
}

static void pass_stop(struct emit *e, bool barrier, uint32_t next)
{
    val turns = emit_turns(e);
    pass(e, next, k32(e, barrier ? e->ix + 1 : 0), barrier ? turns : LLVMBuildSub(B, turns, k32(e, 1), ""),
         LLVMBuildAdd(B, e->warp, k32(e, 1), ""));
}

void emit_pass_on(struct emit *e, uint32_t next)
{
    pass(e, next, k32(e, 0), emit_turns(e), e->warp);
}

/* What the CTA has for registers is told by the first warp that comes to the stop: the others have the same. */
static void tell_common(struct emit *e, uint32_t next, val id)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    LLVMBasicBlockRef on = NULL;
    if (f->region.n_warps > 1) {
        LLVMBasicBlockRef first = emit_block(e, "first");
        on = emit_block(e, "told");
        LLVMBuildCondBr(B, is_zero(e, load32(e, w->common)), first, on);
        LLVMPositionBuilderAtEnd(B, first);
    }
    LLVMBuildStore(B, id, w->common);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (!reg->cta || !counts(e, next, r)) continue;
        val step = ahead(e, reg);
        for (unsigned h = 0; h < parts(reg); h++) {
            val v = emit_scalar(e, r + 1, (int)h, false);
            LLVMBuildStore(B, step ? LLVMBuildSub(B, v, step, "") : v, w->now[r].at[h]);
        }
    }
    if (!on) return;
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
}

void emit_stop(struct emit *e, bool barrier, uint32_t next)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    val id = k32(e, CPU_STOP(next, barrier));
    if (w->s->fused && e->version == PART) { /* all lanes come to it */
        LLVMBuildUnreachable(B);
        return;
    }
    if (barrier && e->version == PART) {
        emit_leave_if(e, LLVMBuildICmp(B, LLVMIntNE, load32(e, e->live), emit_mask(e), ""));
        if (!f->region.tail) {
            pass_stop(e, barrier, next);
            return;
        }
    }
    if (w->s->n_stops > 1) {
        LLVMBasicBlockRef same = emit_block(e, "same"), differs = emit_block(e, "differs");
        val c = load32(e, w->common);
        emit_usually(e, LLVMBuildOr(B, is_zero(e, c), LLVMBuildICmp(B, LLVMIntEQ, c, id, ""), ""), same, differs);
        LLVMPositionBuilderAtEnd(B, differs);
        pass_stop(e, barrier, next);
        LLVMPositionBuilderAtEnd(B, same);
    }
    if (!goes_on(e)) tell_common(e, next, id);
    dirty_here(e);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (counts(e, next, r) && !f->regs[r].cta && (!goes_on(e) || counts_later(e, r)) &&
            (mg_has(e->scratch, r) || emit_unsaved(e, r)) &&
            !mg_has(f->region.starts[f->region.start_of[next] - 1].constant, r))
            emit_save(e, r + 1);
    if (parted(e, next)) {
        save_masks(e);
        emit_set_state(e, offsetof(struct cpu_warp, mask), emit_mask(e));
    }
    if (f->region.lossy) emit_set_state(e, offsetof(struct cpu_warp, live), load32(e, e->live));
    if (f->region.loops) emit_set_state(e, offsetof(struct cpu_warp, budget), load32(e, e->budget));
    LLVMBuildBr(B, e->out.done);
}

void emit_ended(struct emit *e)
{
    if (e->f->region.lossy) emit_set_state(e, offsetof(struct cpu_warp, live), k32(e, 0));
    LLVMBuildBr(B, e->out.done);
}

void emit_idle(struct emit *e, int side)
{
    if (e->whole && e->version == FULL && mg_has(e->whole->s->idle[side], e->block))
        LLVMBuildStore(B, k32(e, e->f->region.n_warps - 1), e->at_warp);
}

/* Out of the function, with what the CTA has for registers. */
static void tail(struct emit *e)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    val uniform[2];
    LLVMPositionBuilderAtEnd(B, e->out.tail);
    if (w->s->fused) { /* nothing can fault */
        LLVMBuildUnreachable(B);
        return;
    }
    emit_tell_place(e);
    emit_set_state(e, offsetof(struct cpu_warp, live), load32(e, e->live));
    emit_set_state(e, offsetof(struct cpu_warp, budget), load32(e, e->budget));
    val inside = is_zero(e, load32(e, e->out.stop));
    emit_set_field(e, offsetof(struct cpu_call, mask), load32(e, e->out.mask));
    emit_set_field(e, offsetof(struct cpu_call, block), load32(e, e->out.from));
    emit_set_field(e, offsetof(struct cpu_call, warp), LLVMBuildSelect(B, inside, e->warp, load32(e, e->out.next), ""));
    emit_set_field(e, offsetof(struct cpu_call, own), e->warp);
    emit_set_field(e, offsetof(struct cpu_call, start), k32(e, w->s->block));
    emit_set_field(e, offsetof(struct cpu_call, common), load32(e, w->common));
    emit_set_field(e, offsetof(struct cpu_call, turns), emit_turns(e));
    emit_set_field(e, offsetof(struct cpu_call, number), LLVMBuildLoad2(B, e->t.i64, w->number, ""));
    for (unsigned k = 0; k < 3; k++) emit_set_field(e, offsetof(struct cpu_call, ctaid) + 4 * k, emit_ctaid(e, k));
    for (unsigned k = 0; k < 2; k++) uniform[k] = emit_field(e, e->t.ptr, offsetof(struct cpu_call, uniform) + 8 * k);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (!reg->cta) continue;
        bool before = counts(e, w->s->block, r), after = mg_has(w->after, r);
        for (unsigned h = 0; h < parts(reg); h++) {
            uint64_t at = (uint64_t)(reg->linear - 1) * 16 + 8 * h;
            LLVMTypeRef t = emit_type(e, (enum emu_class)reg->cls, false);
            if (before)
                LLVMBuildStore(B, as64(e, LLVMBuildLoad2(B, t, w->old[r].at[h], "")), emit_at(e, uniform[0], at));
            if (after)
                LLVMBuildStore(B, as64(e, LLVMBuildLoad2(B, t, w->now[r].at[h], "")), emit_at(e, uniform[1], at));
        }
    }
    LLVMBuildRet(B, LLVMBuildSelect(B, inside, k32(e, CPU_AT), k32(e, CPU_SOME), ""));
}

/* ---- regions -------------------------------------------------------------------------------------------------- */

/* The running warp begins at the region's start. */
static void begin(struct emit *e)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    uint32_t s = w->s->block;
    bool first = w->s == f->region.starts, apart = parted(e, s); /* a kernel's entry is no loop's */
    e->in = NULL;
    if (follows(e)) {
        emit_clear_place(e);
        LLVMBuildStore(B, k32(e, UINT32_MAX), e->cur);
        LLVMBuildBr(B, emit_target(e, FULL, s));
        return;
    }
    emit_place(e);
    emit_clear(e);
    if (first || !f->region.lossy) {
        LLVMBuildStore(B, all_lanes(e), e->live);
    } else {
        LLVMBasicBlockRef here = emit_block(e, "alive");
        val live = emit_state(e, e->t.i32, offsetof(struct cpu_warp, live));
        LLVMBuildStore(B, live, e->live);
        LLVMBuildCondBr(B, is_zero(e, live), e->out.done, here);
        LLVMPositionBuilderAtEnd(B, here);
    }
    LLVMBuildStore(B,
                   first || !f->region.loops ? k32(e, EMU_TURN_BUDGET)
                                             : emit_state(e, e->t.i32, offsetof(struct cpu_warp, budget)),
                   e->budget);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (!counts(e, s, r)) continue;
        if (mg_has(w->s->constant, r)) {
            LLVMBuildStore(B, emit_int(e, (enum emu_class)reg->cls, w->s->value[r], true), e->vars[r].at[0]);
            continue;
        }
        if (!reg->cta) {
            emit_restore(e, r + 1);
            continue;
        }
        val step = ahead(e, reg);
        for (unsigned h = 0; h < parts(reg); h++) {
            val v = LLVMBuildLoad2(B, emit_type(e, (enum emu_class)reg->cls, false), w->old[r].at[h], "");
            LLVMBuildStore(B, step ? LLVMBuildAdd(B, v, step, "") : v, e->vars[r].at[h]);
        }
    }
    if (!apart && !f->region.tail) {
        LLVMBuildStore(B, k32(e, UINT32_MAX), e->cur);
        LLVMBuildBr(B, emit_target(e, FULL, s));
        return;
    }
    for (uint32_t x = 0; apart && x < f->n_blocks && !f->region.masks_settled; x++)
        if (mg_has(f->blocks[s].front, x) && e->pend[x]) {
            LLVMBuildStore(B, load32(e, emit_at(e, emit_masks(e), 4 * x)), e->pend[x]);
            LLVMBuildStore(B, k32(e, 0), emit_at(e, emit_masks(e), 4 * x));
        }
    val mask = !apart ? load32(e, e->live) : emit_state(e, e->t.i32, offsetof(struct cpu_warp, mask));
    LLVMBuildStore(B, mask, e->cur);
    if (emit_never_all(e)) {
        LLVMBuildBr(B, emit_target(e, PART, s));
        return;
    }
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, mask, k32(e, UINT32_MAX), ""), emit_target(e, FULL, s),
                    emit_target(e, PART, s));
}

/* All warps have come to stop `id`: the next region. */
static void go_on(struct emit *e, uint32_t id)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    bool barrier = id & 1;
    uint32_t next = id / 2 - 1;
    val turns = emit_turns(e);
    if (f->region.n_warps > 1 && !barrier) turns = LLVMBuildSub(B, turns, k32(e, 1), "");
    if (f->region.n_warps > 1 && barrier)
        turns = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntULT, turns, k32(e, EMU_BAR_PAUSES), ""),
                                k32(e, EMU_BAR_PAUSES), turns, "");
    LLVMBuildStore(B, turns, w->turns);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        if (!f->regs[r].cta || !counts(e, next, r)) continue;
        for (unsigned h = 0; h < parts(&f->regs[r]); h++)
            LLVMBuildStore(B,
                           LLVMBuildLoad2(B, emit_type(e, (enum emu_class)f->regs[r].cls, false), w->now[r].at[h], ""),
                           w->old[r].at[h]);
    }
    LLVMBuildBr(B, w->round[f->region.start_of[next] - 1]);
}

static void round_over(struct emit *e)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    val sw = NULL;
    if (w->s->n_stops > 1) {
        sw = LLVMBuildSwitch(B, load32(e, w->common), w->over, w->s->n_stops);
    } else if (w->s->n_stops) {
        LLVMBasicBlockRef next = emit_block(e, "next");
        LLVMBuildCondBr(B, is_zero(e, load32(e, w->common)), w->over, next);
        LLVMPositionBuilderAtEnd(B, next);
        go_on(e, w->s->stop);
    } else
        LLVMBuildBr(B, w->over);
    for (uint32_t id = 2; sw && id < CPU_STOP(f->n_blocks, 0); id++) {
        bool possible = false;
        for (uint32_t b = 0; b < f->n_blocks && !possible; b++)
            possible = mg_has(w->s->reach, b) && cpu_stop_of(f, b) == id;
        if (!possible) continue;
        LLVMBasicBlockRef next = emit_block(e, "next");
        LLVMAddCase(sw, k32(e, id), next);
        LLVMPositionBuilderAtEnd(B, next);
        go_on(e, id);
    }
}

/* The loop over warps that the branch closes: LLVM is to make as many copies of it. */
static void unroll(struct emit *e, val branch)
{
    static const char full[] = "llvm.loop.unroll.full", loop[] = "llvm.loop";
    LLVMMetadataRef text = LLVMMDStringInContext2(e->c, full, sizeof full - 1),
                    parts[2] = {LLVMTemporaryMDNode(e->c, NULL, 0), LLVMMDNodeInContext2(e->c, &text, 1)},
                    id = LLVMMDNodeInContext2(e->c, parts, 2);
    LLVMMetadataReplaceAllUsesWith(parts[0], id); /* a loop's name begins with itself */
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->c, loop, sizeof loop - 1), LLVMMetadataAsValue(e->c, id));
}

/* Is it worth as many copies? What all warps keep from region to region is to have room in registers. */
static bool is_short(const struct emit *e)
{
    const struct cpu_func *f = e->f;
    enum { MOST_OPS = 1024, FEW_WARPS = 4, MOST_WARPS = 8 };
    bool keeps_few = f->isa >= EMU_ISA_AVX512 || f->region.n_starts <= 2;
    return !e->room.apart && f->region.n_warps <= (keeps_few ? MOST_WARPS : FEW_WARPS) &&
           f->region.n_ops * f->region.n_warps <= MOST_OPS;
}

/* The next warp begins at the loop's head; behind the last one comes `end`. */
static void next_warp(struct emit *e, LLVMBasicBlockRef end)
{
    const struct whole *w = e->whole;
    val at = load32(e, e->at_warp), /* not e->warp: emit_idle */
        k = w->s->down ? LLVMBuildNSWSub(B, at, k32(e, 1), "") : LLVMBuildAdd(B, at, k32(e, 1), ""),
        more = w->s->down ? LLVMBuildICmp(B, LLVMIntNE, at, k32(e, 0), "")
                          : LLVMBuildICmp(B, LLVMIntULT, k, k32(e, e->f->region.n_warps), "");
    LLVMBuildStore(B, k, e->at_warp);
    val branch = LLVMBuildCondBr(B, more, w->head, end);
    if (is_short(e)) unroll(e, branch);
}

/* All warps have come through the region, and through those that it is fused with. */
static void count_rounds(struct emit *e)
{
    const struct cpu_start *last = e->whole->s;
    while (follows(e)) e->whole->s--;
    for (; e->whole->s < last; e->whole->s++) emit_count_round(e);
    emit_count_round(e);
}

static bool region(struct emit *e, uint32_t which)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    LLVMBasicBlockRef warp = emit_block(e, "warp"), end;
    w->s = &f->region.starts[which];
    memset(e->serial.loops, 0, f->n_serials * sizeof *e->serial.loops);
    for (int v = 0; v < VERSIONS; v++) {
        memset(e->bb[v], 0, f->n_blocks * sizeof *e->bb[v]);
        memset(e->built[v], 0, f->n_blocks);
    }
    memset(e->leaves, 0, f->n_blocks * sizeof *e->leaves);
    memset(e->known, 0, f->n_blocks * sizeof *e->known);
    if (!parted(e, w->s->block) && (!which || !f->region.lossy))
        emit_find_known(e, w->s->block, cpu_lanes_of(&f->region, 0));
    memset(w->after, 0, f->reg_words * sizeof *w->after);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        uint32_t id = mg_has(w->s->reach, b) ? cpu_stop_of(f, b) : 0;
        for (uint32_t r = 0; id && r < f->n_regs; r++)
            if (counts(e, id / 2 - 1, r)) mg_put(w->after, r);
    }
    e->out.done = emit_block(e, "done");
    e->out.tail = emit_block(e, "tail");
    if (follows(e)) {
        LLVMBuildBr(B, warp); /* from where the region before is done */
        LLVMPositionBuilderAtEnd(B, w->round[which]);
        LLVMBuildUnreachable(B);
    } else {
        LLVMPositionBuilderAtEnd(B, w->round[which]);
        LLVMBuildStore(B, k32(e, 0), w->common);
        LLVMBuildStore(B, k32(e, w->s->down ? f->region.n_warps - 1 : 0), e->at_warp);
        LLVMBuildBr(B, warp);
        w->head = warp;
    }
    LLVMPositionBuilderAtEnd(B, warp);
    begin(e);
    if (!emit_bodies(e)) return false;
    emit_leave_blocks(e);
    tail(e);
    LLVMPositionBuilderAtEnd(B, e->out.done);
    if (goes_on(e)) return true;
    end = emit_block(e, "end");
    if (f->region.n_warps > 1)
        next_warp(e, end);
    else
        LLVMBuildBr(B, end);
    LLVMPositionBuilderAtEnd(B, end);
    count_rounds(e);
    round_over(e);
    return true;
}

/* ---- CTAs -------------------------------------------------------------------------------------------------------- */

static void prologue(struct emit *e)
{
    struct whole *w = e->whole;
    struct cpu_func *f = e->f;
    emit_state_vars(e);
    emit_keep_bounds(e);
    w->common = LLVMBuildAlloca(B, e->t.i32, "");
    w->turns = LLVMBuildAlloca(B, e->t.i32, "");
    w->number = LLVMBuildAlloca(B, e->t.i64, "");
    for (unsigned k = 0; k < 3; k++) {
        w->id[k] = LLVMBuildAlloca(B, e->t.i32, "");
        w->grid[k] = emit_field(e, e->t.i32, offsetof(struct cpu_call, nctaid) + 4 * k);
        LLVMBuildStore(B, emit_field(e, e->t.i32, offsetof(struct cpu_call, ctaid) + 4 * k), w->id[k]);
    }
    for (uint32_t r = 0; r < f->n_regs; r++)
        for (unsigned h = 0; f->regs[r].cta && h < parts(&f->regs[r]); h++) {
            LLVMTypeRef t = emit_type(e, (enum emu_class)f->regs[r].cls, false);
            w->old[r].at[h] = LLVMBuildAlloca(B, t, "");
            w->now[r].at[h] = LLVMBuildAlloca(B, t, "");
        }
    LLVMBuildStore(B, emit_field(e, e->t.i64, offsetof(struct cpu_call, number)), w->number);
}

static void clear_registers(struct emit *e)
{
    struct whole *w = e->whole;
    for (uint32_t r = 0; r < e->f->n_regs; r++)
        for (int h = 0; h < 2; h++)
            if (w->old[r].at[h]) {
                LLVMBuildStore(B, LLVMConstNull(LLVMGetAllocatedType(w->old[r].at[h])), w->old[r].at[h]);
                LLVMBuildStore(B, LLVMConstNull(LLVMGetAllocatedType(w->old[r].at[h])), w->now[r].at[h]);
            }
}

/* Goes to where a CTA's warps, which had come to different stops, have met again behind a barrier. */
static void resume(struct emit *e, LLVMBasicBlockRef begin_cta)
{
    struct whole *w = e->whole;
    const struct cpu_func *f = e->f;
    val uniform = emit_field(e, e->t.ptr, offsetof(struct cpu_call, uniform)),
        turns = emit_field(e, e->t.i32, offsetof(struct cpu_call, turns)),
        sw = LLVMBuildSwitch(B, emit_field(e, e->t.i32, offsetof(struct cpu_call, resume)), begin_cta,
                             f->region.n_starts);
    for (uint32_t s = 1; s < f->region.n_starts; s++) {
        if (f->region.paused[f->region.starts[s].block]) continue;
        LLVMBasicBlockRef bb = emit_block(e, "resume");
        LLVMAddCase(sw, k32(e, 1 + s), bb);
        LLVMPositionBuilderAtEnd(B, bb);
        clear_registers(e);
        LLVMBuildStore(B, turns, w->turns);
        for (uint32_t r = 0; r < f->n_regs; r++)
            for (unsigned h = 0; w->old[r].at[h] && counts(e, f->region.starts[s].block, r) && h < parts(&f->regs[r]);
                 h++) {
                LLVMTypeRef t = emit_type(e, (enum emu_class)f->regs[r].cls, false);
                val v = LLVMBuildLoad2(B, e->t.i64, emit_at(e, uniform, (uint64_t)(f->regs[r].linear - 1) * 16 + 8 * h),
                                       "");
                LLVMBuildStore(B, t == e->t.i64 ? v : LLVMBuildTrunc(B, v, t, ""), w->old[r].at[h]);
            }
        LLVMBuildBr(B, w->round[s]);
    }
}

static void each_cta(struct emit *e)
{
    struct whole *w = e->whole;
    val end = emit_field(e, e->t.i64, offsetof(struct cpu_call, number_end));
    LLVMBasicBlockRef begin_cta = emit_block(e, "cta"), next = emit_block(e, "next"), out = emit_block(e, "out"),
                      carry[3];
    if (e->f->region.resumes)
        resume(e, begin_cta);
    else
        LLVMBuildBr(B, begin_cta);
    LLVMPositionBuilderAtEnd(B, begin_cta);
    LLVMBuildStore(B, k32(e, e->f->region.n_warps > 1 ? EMU_LOOP_PAUSES : 0), w->turns);
    clear_registers(e);
    LLVMBuildBr(B, w->round[0]);
    LLVMPositionBuilderAtEnd(B, w->over);
    val n = LLVMBuildAdd(B, LLVMBuildLoad2(B, e->t.i64, w->number, ""), LLVMConstInt(e->t.i64, 1, 0), "");
    LLVMBuildStore(B, n, w->number);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, n, end, ""), next, out);
    LLVMPositionBuilderAtEnd(B, out);
    emit_set_field(e, offsetof(struct cpu_call, number), n);
    LLVMBuildRet(B, k32(e, CPU_DONE));
    LLVMPositionBuilderAtEnd(B, next);
    for (unsigned k = 0; k < 3; k++) { /* the next place in the grid, x first */
        val x = LLVMBuildAdd(B, emit_ctaid(e, k), k32(e, 1), "");
        LLVMBuildStore(B, x, w->id[k]);
        if (k == 2) break;
        carry[k] = emit_block(e, "row");
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, x, w->grid[k], ""), begin_cta, carry[k]);
        LLVMPositionBuilderAtEnd(B, carry[k]);
        if (!k) w->row = carry[k];
        LLVMBuildStore(B, k32(e, 0), w->id[k]);
    }
    LLVMBuildBr(B, begin_cta);
}

bool mg_emit_whole(LLVMModuleRef m, struct cpu_func *f, const char *name)
{
    struct whole wh = {0};
    struct emit em = {.f = f, .whole = &wh}, *e = &em;
    wh.after = calloc(f->reg_words, sizeof *wh.after);
    wh.old = calloc(f->n_regs + 1, sizeof *wh.old);
    wh.now = calloc(f->n_regs + 1, sizeof *wh.now);
    wh.round = calloc(f->region.n_starts + 1, sizeof *wh.round);
    bool ok = emit_begin(e, m, f, name) && wh.after && wh.old && wh.now && wh.round;
    if (ok) {
        prologue(e);
        emit_walk_new(e);
        for (uint32_t i = 0; i < f->region.n_starts; i++) wh.round[i] = emit_block(e, "round");
        wh.over = emit_block(e, "over");
        each_cta(e);
        for (uint32_t i = 0; i < f->region.n_starts && ok; i++) ok = region(e, i);
        for (uint32_t i = 1, head = 1; i < f->region.n_starts && ok; i++) {
            if (!f->region.starts[i - 1].goes_on) head = i;
            emit_ahead_start(e, i, wh.round[head]);
        }
        if (ok) emit_walk_row(e, wh.row);
    }
    emit_finish(e);
    free(wh.after);
    free(wh.old);
    free(wh.now);
    free(wh.round);
    return ok;
}
