/* Jumps between blocks, and ways out of compiled code. docs/schedule.md: of the blocks with waiting
 * lanes the first runs next, so before a jump forward every block of the front that lies before its
 * target is looked at; a jump back never passes one. */
#include "device/cpu/plugin/emit.h"

#include "device/emu/alu_form.h"

#define B e->b

static val is_zero(struct emit *e, val v)
{
    return LLVMBuildICmp(B, LLVMIntEQ, v, k32(e, 0), "");
}
static val not_zero(struct emit *e, val v)
{
    return LLVMBuildICmp(B, LLVMIntNE, v, k32(e, 0), "");
}

/* Branches to yes when cond holds; goes on in a new block otherwise. */
static void branch_off(struct emit *e, val cond, LLVMBasicBlockRef yes)
{
    LLVMBasicBlockRef no = emit_block(e, "");
    LLVMBuildCondBr(B, cond, yes, no);
    LLVMPositionBuilderAtEnd(B, no);
}

/* The first way is the common one: registers are kept for it, and the other's code lies aside. */
void emit_usually(struct emit *e, val cond, LLVMBasicBlockRef usual, LLVMBasicBlockRef rare)
{
    LLVMMetadataRef md[3] = {LLVMMDStringInContext2(e->c, "branch_weights", 14)};
    for (unsigned k = 0; k < 2; k++) md[k + 1] = LLVMValueAsMetadata(k32(e, k ? 1 : 1000));
    LLVMSetMetadata(LLVMBuildCondBr(B, cond, usual, rare), LLVMGetMDKindIDInContext(e->c, "prof", 4),
                    LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, md, 3)));
}

/* ---- out --------------------------------------------------------------------------------------------------- */

static struct leave *leave_here(struct emit *e)
{
    struct leave *l = &e->leaves[e->block];
    if (!l->used) {
        l->used = true;
        l->bb = emit_block(e, "leave");
        l->live = mg_arena_array(&e->f->arena, uint64_t, e->f->reg_words);
        l->dirty = mg_arena_array(&e->f->arena, uint64_t, e->f->reg_words);
    }
    cpu_live_at(e->f, e->block, e->ix, e->scratch);
    for (uint32_t i = 0; i < e->f->reg_words; i++) l->live[i] |= e->scratch[i];
    cpu_dirty_at(e->f, e->whole, e->block, e->ix, e->scratch);
    for (uint32_t i = 0; i < e->f->reg_words; i++) l->dirty[i] |= e->scratch[i];
    return l;
}

static void leave_as(struct emit *e, val stop, uint32_t next)
{
    struct leave *l = leave_here(e);
    LLVMBuildStore(B, k32(e, e->ix), e->out.pc);
    LLVMBuildStore(B, emit_mask(e), e->out.mask);
    LLVMBuildStore(B, stop, e->out.stop);
    LLVMBuildStore(B, k32(e, next), e->out.next);
    LLVMBuildBr(B, l->bb);
}

void emit_leave(struct emit *e)
{
    leave_as(e, k32(e, 0), 0);
}

void emit_leave_if(struct emit *e, val cond)
{
    if (LLVMIsAConstantInt(cond) && !LLVMConstIntGetZExtValue(cond)) return;
    LLVMBasicBlockRef out = emit_block(e, "out"), on = emit_block(e, "on");
    emit_usually(e, LLVMBuildNot(B, cond, ""), on, out);
    LLVMPositionBuilderAtEnd(B, out);
    emit_leave(e);
    LLVMPositionBuilderAtEnd(B, on);
}

/* ---- jumps ------------------------------------------------------------------------------------------------- */

/* A jump back costs budget; when it is used up the emulator makes the warp give way. */
static void pay(struct emit *e, uint32_t target)
{
    if (target > e->block || (e->in->ctl == EMU_CTL_BRA && e->in->sub))
        return; /* a loop of inserted code costs nothing */
    val budget = LLVMBuildLoad2(B, e->t.i32, e->budget, ""), cost = k32(e, 1), at = NULL;
    if (e->f->suspects) {
        val w = LLVMBuildLoad2(B, e->t.ptr, emit_at(e, emit_frame(e), offsetof(struct emu_frame, w)), "");
        at = emit_at(e, w, offsetof(struct emu_warp, suspect));
        val s = LLVMBuildICmp(B, LLVMIntNE, LLVMBuildLoad2(B, e->t.i8, at, ""), LLVMConstInt(e->t.i8, 0, 0), "");
        cost = LLVMBuildSelect(B, s, k32(e, EMU_SPIN_COST), cost, "");
    }
    val left = LLVMBuildSub(B, budget, cost, "");
    emit_leave_if(e, LLVMBuildICmp(B, LLVMIntSLE, left, k32(e, 0), ""));
    LLVMBuildStore(B, left, e->budget);
    if (at) LLVMBuildStore(B, LLVMConstInt(e->t.i8, 0, 0), at);
}

/* The lanes of mask go to block t; ends the LLVM block. */
static void go(struct emit *e, uint32_t t, val mask)
{
    if (e->known[e->block].yes) {
        bool waits;
        LLVMBasicBlockRef next = emit_known_target(e, t, &waits);
        if (waits) LLVMBuildStore(B, LLVMBuildOr(B, LLVMBuildLoad2(B, e->t.i32, e->pend[t], ""), mask, ""), e->pend[t]);
        LLVMBuildStore(B, waits ? k32(e, 0) : mask, e->cur);
        LLVMBuildBr(B, next);
        return;
    }
    if (e->version == FULL) {
        LLVMBuildBr(B, emit_target(e, FULL, t));
        return;
    }
    for (uint32_t x = e->block + 1; x < t; x++) {
        if (!mg_has(e->f->blocks[e->block].front, x) || !e->pend[x] || !e->pend[t]) continue;
        LLVMBasicBlockRef first = emit_block(e, "first"), next = emit_block(e, "");
        LLVMBuildCondBr(B, not_zero(e, LLVMBuildLoad2(B, e->t.i32, e->pend[x], "")), first, next);
        LLVMPositionBuilderAtEnd(B, first);
        LLVMBuildStore(B, LLVMBuildOr(B, LLVMBuildLoad2(B, e->t.i32, e->pend[t], ""), mask, ""), e->pend[t]);
        LLVMBuildStore(B, k32(e, 0), e->cur);
        LLVMBuildBr(B, emit_target(e, PART, x));
        LLVMPositionBuilderAtEnd(B, next);
    }
    LLVMBuildStore(B, mask, e->cur);
    LLVMBuildBr(B, emit_target(e, PART, t));
}

static void jump(struct emit *e, uint32_t t, val mask)
{
    pay(e, t);
    go(e, t, mask);
}

/* Nobody goes on from here: the first pending block. */
static void next_pending(struct emit *e)
{
    const struct known *k = &e->known[e->block];
    if (k->yes && k->next[0] != UINT32_MAX) {
        LLVMBuildBr(B, emit_known_block(e, k->next[0]));
        return;
    }
    for (uint32_t x = 0; x < e->f->n_blocks && e->version == PART; x++) {
        if (!mg_has(e->f->blocks[e->block].front, x) || !e->pend[x] || k->yes) continue;
        LLVMBasicBlockRef take = emit_block(e, "take");
        branch_off(e, is_zero(e, LLVMBuildLoad2(B, e->t.i32, e->pend[x], "")), take);
        /* pending: go there; nothing waits before it */
        LLVMBuildStore(B, k32(e, 0), e->cur);
        LLVMBuildBr(B, emit_target(e, PART, x));
        LLVMPositionBuilderAtEnd(B, take);
    }
    if (e->whole) {
        emit_ended(e);
        return;
    }
    emit_set_state(e, offsetof(struct cpu_warp, live), LLVMBuildLoad2(B, e->t.i32, e->live, ""));
    emit_set_state(e, offsetof(struct cpu_warp, budget), LLVMBuildLoad2(B, e->t.i32, e->budget, ""));
    LLVMBuildBr(B, e->out.done);
}

static val bits(struct emit *e, val lanes)
{
    return LLVMBuildBitCast(B, lanes, e->t.i32, "");
}

/* Goes on in the partial version with some lanes only. */
static void split(struct emit *e, uint32_t t, val mask, uint32_t other, val rest)
{
    int version = e->version;
    pay(e, t);
    if (rest)
        LLVMBuildStore(
            B, version == PART ? LLVMBuildOr(B, LLVMBuildLoad2(B, e->t.i32, e->pend[other], ""), rest, "") : rest,
            e->pend[other]);
    if (version == FULL) {
        LLVMBuildStore(B, mask, e->cur);
        LLVMBuildBr(B, emit_target(e, PART, t));
        return;
    }
    go(e, t, mask);
}

/* The comparison that the guard of the branch at the end of the block comes from: of a 32-bit register that
 * grows from lane to lane with one that is equal in all; NULL: none. */
static const struct cpu_inst *compared(struct emit *e)
{
    const struct cpu_func *f = e->f;
    const struct cpu_inst *br = e->in, *found = NULL;
    uint32_t i = e->ix;
    while (!found && i-- > f->blocks[e->block].first) {
        const struct cpu_inst *in = &f->insts[i];
        if (in->d == br->guard || in->d2 == br->guard)
            found = in;
        else if (in->kind == CPU_CALL || in->kind == CPU_CTL)
            return NULL;
    }
    if (!found || found->kind != CPU_ALU || found->op != MG_OP_setp || found->d != br->guard || found->guard ||
        found->imm & 3 || !found->s[0] || !found->s[1])
        return NULL;
    if (found->t[0] != MG_TYPE_s32 && found->t[0] != MG_TYPE_u32) return NULL;
    for (uint32_t k = i + 1; k < e->ix; k++)
        for (int s = 0; s < 2; s++)
            if (f->insts[k].d == found->s[s] || f->insts[k].d2 == found->s[s] || f->insts[k].n_list) return NULL;
    const struct cpu_reg *a = &f->regs[found->s[0] - 1], *b = &f->regs[found->s[1] - 1];
    bool flat = cpu_is_constant(b) || (b->cls == EMU_W && cpu_is_uniform(b->shape));
    return flat && !cpu_is_constant(a) && a->cls == EMU_W && !a->shape.varying && !a->shape.halves && a->shape.stride
               ? found
               : NULL;
}

/* Branches on what the first and the last lane say, where all say the same. */
static void branch_whole(struct emit *e, LLVMBasicBlockRef all, LLVMBasicBlockRef none)
{
    const struct cpu_inst *in = compared(e);
    if (!in || e->version != FULL) return;
    bool sign = in->t[0] == MG_TYPE_s32;
    int32_t stride = e->f->regs[in->s[0] - 1].shape.stride;
    unsigned sub = (in->key & K_SUB) >> K_SUB_SHIFT;
    val from = emit_scalar(e, in->s[0], 0, true), to = emit_scalar(e, in->s[1], 0, true);
    val first = sign ? LLVMBuildSExt(B, from, e->t.i64, "") : LLVMBuildZExt(B, from, e->t.i64, ""),
        limit = sign ? LLVMBuildSExt(B, to, e->t.i64, "") : LLVMBuildZExt(B, to, e->t.i64, "");
    val last = LLVMBuildAdd(B, first, LLVMConstInt(e->t.i64, (uint64_t)(31 * (int64_t)stride), 0), ""),
        cut = LLVMBuildTrunc(B, last, e->t.i32, "");
    val fits = LLVMBuildICmp(B, LLVMIntEQ, last,
                             sign ? LLVMBuildSExt(B, cut, e->t.i64, "") : LLVMBuildZExt(B, cut, e->t.i64, ""), "");
    val low = stride > 0 ? first : last, high = stride > 0 ? last : first, yes, no;
    switch (sub) {
    case CMP_lt:
        yes = LLVMBuildICmp(B, LLVMIntSLT, high, limit, ""), no = LLVMBuildICmp(B, LLVMIntSGE, low, limit, "");
        break;
    case CMP_le:
        yes = LLVMBuildICmp(B, LLVMIntSLE, high, limit, ""), no = LLVMBuildICmp(B, LLVMIntSGT, low, limit, "");
        break;
    case CMP_gt:
        yes = LLVMBuildICmp(B, LLVMIntSGT, low, limit, ""), no = LLVMBuildICmp(B, LLVMIntSLE, high, limit, "");
        break;
    case CMP_ge:
        yes = LLVMBuildICmp(B, LLVMIntSGE, low, limit, ""), no = LLVMBuildICmp(B, LLVMIntSLT, high, limit, "");
        break;
    case CMP_eq:
    case CMP_ne:
        yes = LLVMConstInt(e->t.i1, 0, 0);
        no = LLVMBuildOr(B, LLVMBuildICmp(B, LLVMIntSLT, limit, low, ""), LLVMBuildICmp(B, LLVMIntSGT, limit, high, ""),
                         "");
        if (sub == CMP_ne) yes = no, no = LLVMConstInt(e->t.i1, 0, 0);
        break;
    default:
        return;
    }
    if (e->in->guard_not) {
        val swap = yes;
        yes = no;
        no = swap;
    }
    branch_off(e, LLVMBuildAnd(B, fits, yes, ""), all);
    branch_off(e, LLVMBuildAnd(B, fits, no, ""), none);
}

static void branch(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    uint32_t t = in->target, f = in->fall;
    if (!in->guard || t == f) {
        jump(e, t, emit_mask(e));
        return;
    }
    if (cpu_uniform_guard(e->f, in)) {
        LLVMBasicBlockRef yes = emit_block(e, "taken");
        branch_off(e, emit_guard_scalar(e), yes);
        jump(e, f, emit_mask(e));
        LLVMPositionBuilderAtEnd(B, yes);
        jump(e, t, emit_mask(e));
        return;
    }
    const struct known *k = &e->known[e->block];
    if (k->yes && (!k->taken || k->taken == k->mask)) {
        jump(e, k->taken ? t : f, emit_mask(e));
        return;
    }
    if (k->yes) {
        val taken = k32(e, k->taken), rest = k32(e, k->mask & ~k->taken);
        t < f ? split(e, t, taken, f, rest) : split(e, f, rest, t, taken);
        return;
    }
    LLVMBasicBlockRef all = emit_block(e, "all"), none = emit_block(e, "none");
    branch_whole(e, all, none);
    val m = emit_mask(e), taken = bits(e, emit_active(e));
    branch_off(e, is_zero(e, taken), none);
    branch_off(e, LLVMBuildICmp(B, LLVMIntEQ, taken, m, ""), all);
    if (e->version == FULL && e->whole && e->f->blocks[e->block].part) taken = k32(e, e->f->blocks[e->block].part);
    val rest = LLVMBuildXor(B, m, taken, "");
    if (t < f)
        split(e, t, taken, f, rest);
    else
        split(e, f, rest, t, taken);
    LLVMPositionBuilderAtEnd(B, all);
    emit_idle(e, 0);
    jump(e, t, m);
    LLVMPositionBuilderAtEnd(B, none);
    emit_idle(e, 1);
    jump(e, f, m);
}

static void exits(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (e->pure.here) {
        emit_pure_end(e);
        return;
    }
    val m = emit_mask(e), taken = in->guard ? bits(e, emit_active(e)) : m;
    if (!e->f->is_kernel) { /* activations are the emulator's */
        if (!in->guard) {
            emit_leave(e);
            return;
        }
        emit_leave_if(e, not_zero(e, taken));
        go(e, in->fall, m);
        return;
    }
    if (in->guard) {
        LLVMBasicBlockRef none = emit_block(e, "none"), some = emit_block(e, "some");
        LLVMBuildCondBr(B, is_zero(e, taken), none, some);
        LLVMPositionBuilderAtEnd(B, none);
        go(e, in->fall, m);
        LLVMPositionBuilderAtEnd(B, some);
    }
    emit_leave_if(e, not_zero(e, e->arg.outside));
    LLVMBuildStore(B, LLVMBuildAnd(B, LLVMBuildLoad2(B, e->t.i32, e->live, ""), LLVMBuildNot(B, taken, ""), ""),
                   e->live);
    if (in->guard) {
        LLVMBasicBlockRef gone = emit_block(e, "gone");
        val rest = LLVMBuildAnd(B, m, LLVMBuildNot(B, taken, ""), "");
        branch_off(e, is_zero(e, rest), gone);
        if (e->version == FULL) {
            LLVMBuildStore(B, rest, e->cur);
            LLVMBuildBr(B, emit_target(e, PART, in->fall));
        } else
            go(e, in->fall, rest);
        LLVMPositionBuilderAtEnd(B, gone);
    }
    next_pending(e);
}

/* Stops at a barrier (1; the emulator sees to it when not all live lanes are here) or a pause (2). */
static void step(struct emit *e, uint32_t kind, uint32_t next)
{
    val other = e->arg.alone;
    if (kind == 1)
        other = LLVMBuildOr(B, other, LLVMBuildXor(B, LLVMBuildLoad2(B, e->t.i32, e->live, ""), emit_mask(e), ""), "");
    leave_as(e, LLVMBuildSelect(B, is_zero(e, other), k32(e, kind), k32(e, 0), ""), next);
}

static void barrier(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (!cpu_plain_barrier(e->f, in))
        emit_leave(e);
    else if (e->whole)
        emit_stop(e, true, in->fall);
    else
        step(e, 1, in->fall);
}

static void enter_loop(struct emit *e)
{
    if (e->whole && !cpu_stop_of(e->f, e->block)) { /* nobody to wait for */
        jump(e, e->in->target, emit_mask(e));
        return;
    }
    if (e->whole) {
        LLVMBasicBlockRef none = emit_block(e, "none");
        branch_off(e, is_zero(e, emit_turns(e)), none);
        emit_stop(e, false, e->in->target);
        LLVMPositionBuilderAtEnd(B, none);
        emit_pass_on(e, e->in->target);
        return;
    }
    LLVMBasicBlockRef pause = emit_block(e, "pause"); /* when there are pauses left */
    branch_off(e, not_zero(e, emit_state(e, e->t.i32, offsetof(struct cpu_warp, pauses))), pause);
    LLVMBasicBlockRef on = LLVMGetInsertBlock(B);
    LLVMPositionBuilderAtEnd(B, pause);
    step(e, 2, e->in->target);
    LLVMPositionBuilderAtEnd(B, on);
    jump(e, e->in->target, emit_mask(e));
}

/* The operation that ends the block. */
void emit_end(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (e->version == LANE) {
        emit_lane_end(e);
        return;
    }
    if (in->kind != CPU_CTL || (in->ctl == EMU_CTL_SYNC && cpu_sync_has_code(in->sub))) {
        go(e, e->block + 1, emit_mask(e));
        return;
    }
    switch ((enum emu_ctl)in->ctl) {
    case EMU_CTL_NEXT:
        jump(e, in->target, emit_mask(e));
        break;
    case EMU_CTL_LOOP:
        enter_loop(e);
        break;
    case EMU_CTL_BRA:
        branch(e);
        break;
    case EMU_CTL_RET:
    case EMU_CTL_EXIT:
        exits(e);
        break;
    case EMU_CTL_TRAP:
    case EMU_CTL_CALL:
    case EMU_CTL_CALLI:
    case EMU_CTL_BUILTIN:
        if (!in->guard) {
            emit_leave(e);
            break;
        }
        emit_leave_if(e, not_zero(e, bits(e, emit_active(e))));
        go(e, in->fall, emit_mask(e));
        break;
    case EMU_CTL_BAR:
        barrier(e);
        break;
    default:
        emit_leave(e);
        break; /* branch tables, .sync operations without code */
    }
}
