/* Calls of the emulator's functions, for operations without code and for accesses that memory.c leaves: registers that
 * the function reads go to the frame before it, those that it writes come back behind it. Operations of a warp
 * (shuffles, votes) that have code; those whose outcome depends on values: exchange.c. */
#include "device/cpu/plugin/emit.h"

#define B e->b

val emit_active_bits(struct emit *e)
{
    val a = e->in->guard ? emit_active(e) : NULL;
    return a ? LLVMBuildBitCast(B, a, e->t.i32, "") : emit_mask(e);
}

static void each_reg(struct emit *e, const struct cpu_inst *in, void (*fn)(struct emit *, uint32_t))
{
    if (in->guard) fn(e, in->guard);
    for (int k = 0; k < 4; k++)
        if (in->s[k]) fn(e, in->s[k]);
    if (in->kind == CPU_STORE || in->kind == CPU_CALL || in->kind == CPU_CTL)
        for (uint32_t k = 0; k < in->n_list; k++)
            if (in->list[k]) fn(e, in->list[k]);
}

/* A register that the call writes: its inactive lanes come back too. */
static void before_write(struct emit *e, uint32_t reg)
{
    if (!reg || (!e->f->regs[reg - 1].shape.varying && !e->in->guard)) return;
    if (e->in->guard || mg_has(e->f->blocks[e->block].keep, reg - 1)) emit_spill(e, reg);
}

static void after_write(struct emit *e, uint32_t reg)
{
    if (!reg) return;
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (r->shape.varying) {
        emit_reload(e, reg, NULL, NULL, NULL);
        return;
    }
    val m = emit_active_bits(e), lane = emit_first_lane(e, m);
    val low = emit_first_lane(e, LLVMBuildOr(B, LLVMBuildAnd(B, m, k32(e, 0xffff), ""), k32(e, 1u << 15), ""));
    val high = emit_first_lane(e, LLVMBuildOr(B, LLVMBuildAnd(B, m, k32(e, 0xffff0000), ""), k32(e, 1u << 31), ""));
    if (e->in->guard) lane = LLVMBuildAnd(B, lane, k32(e, 31), "");
    emit_reload(e, reg, lane, low, high);
}

static void each_written(struct emit *e, const struct cpu_inst *in, void (*fn)(struct emit *, uint32_t))
{
    if (in->kind == CPU_LOAD || in->kind == CPU_TEXEL || (in->kind == CPU_CALL && !in->known)) {
        for (uint32_t k = 0; k < in->n_list; k++) fn(e, in->list[k]);
        return;
    }
    if (in->kind == CPU_STORE) return;
    fn(e, in->d);
    fn(e, in->d2);
}

val emit_op_address(struct emit *e)
{
    return emit_at(e, e->arg.ops, (uint64_t)e->ix * sizeof(struct emu_op));
}

static void plain_call(struct emit *e, val mask)
{
    LLVMTypeRef args_t[3] = {e->t.ptr, e->t.ptr, e->t.i32};
    val op = emit_op_address(e), fn = LLVMBuildLoad2(B, e->t.ptr, op, ""), args[3] = {op, emit_regs(e), mask};
    emit_tell_place(e);
    LLVMBuildCall2(B, LLVMFunctionType(e->t.voidt, args_t, 3, 0), fn, args, 3, "");
}

/* The emulator's function for this operation. It applies the guard itself. */
void emit_call(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    each_reg(e, in, emit_spill);
    if (in->kind != CPU_CALL || in->known) each_written(e, in, before_write);
    plain_call(e, emit_mask(e));
    each_written(e, in, after_write);
    emit_look_up_bounds(e);
}

/* ORDER SHFL, VOTE: warpops.c */
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static bool shfl_source(unsigned mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *from)
{
    uint32_t segment = c >> 8 & 31, clamp = c & 31, max = (lane & segment) | (clamp & ~segment), min = lane & segment;
    int32_t j;
    b &= 31;
    switch (mode) {
    case SHFL_UP:
        j = (int32_t)lane - (int32_t)b;
        break;
    case SHFL_DOWN:
        j = (int32_t)(lane + b);
        break;
    case SHFL_BFLY:
        j = (int32_t)(lane ^ b);
        break;
    default:
        j = (int32_t)(min | (b & ~segment));
        break;
    }
    bool in = mode == SHFL_UP ? j >= (int32_t)max : j <= (int32_t)max;
    *from = in ? (uint32_t)j & 31 : lane;
    return in;
}

static bool constant(struct emit *e, uint32_t reg, uint32_t *v)
{
    if (!reg || !cpu_is_constant(&e->f->regs[reg - 1])) return false;
    *v = (uint32_t)e->f->regs[reg - 1].value;
    return true;
}

/* All 32 lanes, from places known now: one permutation. */
static bool shuffle(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    uint32_t b, c, from;
    val pick[32], good[32];
    if (in->sub != EMU_SYNC_SHFL || e->version != FULL || in->guard || !constant(e, in->s[1], &b) ||
        !constant(e, in->s[2], &c) || !in->s[0])
        return false;
    for (uint32_t i = 0; i < 32; i++) {
        good[i] = LLVMConstInt(e->t.i1, shfl_source(in->mode, i, b, c, &from), 0);
        pick[i] = k32(e, from);
    }
    val v = emit_vec(e, in->s[0], in->d && e->f->regs[in->d - 1].lazy);
    v = LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, 32), "");
    if (in->d) emit_set_vec(e, in->d, v, NULL);
    if (in->d2) emit_set_vec(e, in->d2, LLVMConstVector(good, 32), NULL);
    return true;
}

static bool vote(struct emit *e, val active)
{
    const struct cpu_inst *in = e->in;
    if (in->sub != EMU_SYNC_VOTE || !in->d || !in->s[0]) return false;
    val p = LLVMBuildBitCast(B, emit_vec(e, in->s[0], true), e->t.i32, ""), r;
    if (in->imm) p = LLVMBuildNot(B, p, "");
    p = LLVMBuildAnd(B, p, active, "");
    val all = LLVMBuildICmp(B, LLVMIntEQ, p, active, ""), any = LLVMBuildICmp(B, LLVMIntNE, p, k32(e, 0), "");
    r = in->mode == VOTE_BALLOT ? p
        : in->mode == VOTE_ALL  ? all
        : in->mode == VOTE_ANY  ? any
                                : LLVMBuildOr(B, all, LLVMBuildNot(B, any, ""), "");
    const struct cpu_reg *d = &e->f->regs[in->d - 1];
    if (d->shape.varying)
        emit_set_vec(e, in->d, emit_splat(e, r), in->guard ? emit_active(e) : NULL);
    else
        for (int h = 0; h < (d->shape.halves ? 2 : 1); h++)
            emit_set_scalar(e, in->d, h, r, in->guard ? emit_guard_scalar(e) : NULL);
    return true;
}

/* Whom the active lanes name, in a register of their own; lanes that name
 * others are the emulator's. */
static val named_by_all(struct emit *e, uint32_t reg, val active)
{
    val differ, members = emit_of_first(e, emit_vec(e, reg, false), active, &differ);
    emit_leave_if(e, differ);
    return members;
}

/* Of struct cpu_host. */
static val host_function(struct emit *e, size_t at)
{
    val host = emit_field(e, e->t.ptr, offsetof(struct cpu_call, host));
    return LLVMBuildLoad2(B, e->t.ptr, emit_at(e, host, (uint32_t)at), "");
}

void emit_sync(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    val active = emit_active_bits(e), members = NULL;
    uint32_t mreg = in->n_list ? in->list[0] : 0;
    LLVMBasicBlockRef run = NULL, next = NULL;
    if (in->guard) { /* nobody: nothing to do */
        run = emit_block(e, "sync");
        next = emit_block(e, "synced");
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, active, k32(e, 0), ""), run, next);
        LLVMPositionBuilderAtEnd(B, run);
    }
    if (!mreg) {
        emit_leave_if(e, LLVMConstInt(e->t.i1, 1, 0));
    } else {
        members = e->f->regs[mreg - 1].shape.varying ? named_by_all(e, mreg, active) : emit_scalar(e, mreg, 0, false);
        val missing = LLVMBuildAnd(B, members, LLVMBuildLoad2(B, e->t.i32, e->live, ""), "");
        missing = LLVMBuildAnd(B, missing, LLVMBuildNot(B, active, ""), "");
        missing = LLVMBuildOr(B, missing, e->arg.outside, "");
        emit_leave_if(e, LLVMBuildICmp(B, LLVMIntNE, missing, k32(e, 0), ""));
    }
    if (shuffle(e) || vote(e, active) || emit_exchange(e, active)) {
        if (run) {
            LLVMBuildBr(B, next);
            LLVMPositionBuilderAtEnd(B, next);
        }
        return;
    }
    each_reg(e, in, emit_spill);
    each_written(e, in, before_write);
    val fn = host_function(e, offsetof(struct cpu_host, sync));
    LLVMTypeRef args_t[3] = {e->t.ptr, e->t.ptr, e->t.i32};
    val args[3] = {emit_op_address(e), emit_regs(e), active};
    emit_tell_place(e);
    LLVMBuildCall2(B, LLVMFunctionType(e->t.voidt, args_t, 3, 0), fn, args, 3, "");
    each_written(e, in, after_write);
    if (run) {
        LLVMBuildBr(B, next);
        LLVMPositionBuilderAtEnd(B, next);
    }
}

val emit_clock(struct emit *e)
{
    return LLVMBuildCall2(B, LLVMFunctionType(e->t.i64, NULL, 0, 0), host_function(e, offsetof(struct cpu_host, clock)),
                          NULL, 0, "");
}

LLVMBasicBlockRef emit_call_unless(struct emit *e, val ok)
{
    LLVMBasicBlockRef fast = emit_block(e, "own"), slow = emit_block(e, "elsewhere"), next = emit_block(e, "done");
    val cached = e->lanes;
    emit_usually(e, ok, fast, slow);
    LLVMPositionBuilderAtEnd(B, slow);
    e->lanes = NULL;
    emit_call(e);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, fast);
    e->lanes = cached;
    return next;
}
