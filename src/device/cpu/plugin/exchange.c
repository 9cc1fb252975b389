/* Operations of a warp whose outcome depends on values: match.all, redux, and
 * shuffles from lanes that are known only when they run (those that are known
 * before: call.c). The bits of device/emu/warpops.c. */
#include "device/cpu/plugin/emit.h"

#include <stdio.h>

#define B e->b

/* ORDER SHFL, MATCH, REDUX: warpops.c */
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum { MATCH_ANY, MATCH_ALL };
enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

val emit_first_lane(struct emit *e, val mask)
{
    val args[2] = {mask, LLVMConstInt(e->t.i1, !e->in->guard, 0)};
    return emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2);
}

val emit_of_first(struct emit *e, val vec, val mask, val *differ)
{
    val lane = LLVMBuildAnd(B, emit_first_lane(e, mask), k32(e, 31), ""),
        one = LLVMBuildExtractElement(B, vec, lane, "");
    val others = LLVMBuildBitCast(B, LLVMBuildICmp(B, LLVMIntNE, vec, emit_splat(e, one), ""), e->t.i32, "");
    *differ = LLVMBuildICmp(B, LLVMIntNE, LLVMBuildAnd(B, others, mask, ""), k32(e, 0), "");
    return one;
}

/* The same in all lanes that take part. */
static void set_equal(struct emit *e, uint32_t reg, val v)
{
    if (!reg) return;
    const struct cpu_inst *in = e->in;
    const struct cpu_reg *d = &e->f->regs[reg - 1];
    if (d->shape.varying)
        emit_set_vec(e, reg, emit_splat(e, v), in->guard ? emit_active(e) : NULL);
    else
        for (int h = 0; h < (d->shape.halves ? 2 : 1); h++)
            emit_set_scalar(e, reg, h, v, in->guard ? emit_guard_scalar(e) : NULL);
}

static bool match(struct emit *e, val active)
{
    const struct cpu_inst *in = e->in;
    val differ;
    if (in->sub != EMU_SYNC_MATCH || in->mode != MATCH_ALL || !in->s[0]) return false;
    emit_of_first(e, emit_vec(e, in->s[0], false), active, &differ);
    set_equal(e, in->d, LLVMBuildSelect(B, differ, k32(e, 0), active, ""));
    set_equal(e, in->d2, LLVMBuildNot(B, differ, ""));
    return true;
}

static bool reduced(struct emit *e, val active)
{
    const struct cpu_inst *in = e->in;
    bool sign = in->type == MG_TYPE_s32;
    if (in->sub != EMU_SYNC_REDUX || !in->s[0] || !in->d || in->type == MG_TYPE_f32) return false;
    const char *const names[] = {"add", sign ? "smin" : "umin", sign ? "smax" : "umax", "and", "or", "xor"};
    const uint32_t idle[] = {0, sign ? INT32_MAX : UINT32_MAX, sign ? 0x80000000 : 0, UINT32_MAX, 0, 0};
    char name[40];
    if (in->mode >= MG_COUNT_OF(names)) return false;
    snprintf(name, sizeof name, "llvm.vector.reduce.%s", names[in->mode]);
    val v = LLVMBuildSelect(B, emit_lanes_of(e, active), emit_vec(e, in->s[0], false),
                            emit_int(e, EMU_W, idle[in->mode], true), "");
    set_equal(e, in->d, emit_intrinsic(e, name, &e->t.v32, 1, &v, 1));
    return true;
}

/* ---- shuffles ---------------------------------------------------------------------------------------------------- */

static val w32(struct emit *e, uint32_t v)
{
    return emit_int(e, EMU_W, v, true);
}
static val masked(struct emit *e, val v, uint32_t bits)
{
    return LLVMBuildAnd(B, v, w32(e, bits), "");
}

/* As emu_shfl_source, of all lanes */
static val sources(struct emit *e, val b, val c, val *inside)
{
    unsigned mode = e->in->mode;
    val lane = emit_iota(e, e->t.i32, 1), segment = masked(e, LLVMBuildLShr(B, c, w32(e, 8), ""), 31);
    val low = LLVMBuildAnd(B, lane, segment, ""), clamp = masked(e, c, 31);
    val most = LLVMBuildOr(B, low, LLVMBuildAnd(B, clamp, LLVMBuildNot(B, segment, ""), ""), ""), from;
    b = masked(e, b, 31);
    if (mode == SHFL_UP)
        from = LLVMBuildSub(B, lane, b, "");
    else if (mode == SHFL_DOWN)
        from = LLVMBuildAdd(B, lane, b, "");
    else if (mode == SHFL_BFLY)
        from = LLVMBuildXor(B, lane, b, "");
    else
        from = LLVMBuildOr(B, low, LLVMBuildAnd(B, b, LLVMBuildNot(B, segment, ""), ""), "");
    *inside = LLVMBuildICmp(B, mode == SHFL_UP ? LLVMIntSGE : LLVMIntSLE, from, most, "");
    return LLVMBuildSelect(B, *inside, masked(e, from, 31), lane, "");
}

static val half_of(struct emit *e, val v, unsigned h)
{
    val pick[16];
    for (unsigned i = 0; i < 16; i++) pick[i] = k32(e, i + 16 * h);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, 16), "");
}

static val permuted(struct emit *e, val v, val from)
{
    val half[2], pick[32];
    for (unsigned h = 0; h < 2; h++) {
        val args[3] = {half_of(e, v, 0), half_of(e, from, h), half_of(e, v, 1)};
        half[h] = emit_intrinsic(e, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, args, 3);
    }
    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i);
    return LLVMBuildShuffleVector(B, half[0], half[1], LLVMConstVector(pick, 32), "");
}

static bool shuffle(struct emit *e, val active)
{
    const struct cpu_inst *in = e->in;
    bool lazy = in->d && e->f->regs[in->d - 1].lazy;
    if (in->sub != EMU_SYNC_SHFL || !emit_is(e, EMU_ISA_AVX512) || !in->s[0] || !in->s[1] || !in->s[2]) return false;
    if ((in->d && !e->f->regs[in->d - 1].shape.varying) || (in->d2 && !e->f->regs[in->d2 - 1].shape.varying))
        return false;
    val inside, v = emit_vec(e, in->s[0], lazy),
                from = sources(e, emit_vec(e, in->s[1], false), emit_vec(e, in->s[2], false), &inside);
    val there = masked(e, LLVMBuildLShr(B, emit_splat(e, active), from, ""), 1); /* else undefined in PTX: its own */
    from = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntNE, there, w32(e, 0), ""), from, emit_iota(e, e->t.i32, 1), "");
    val guard = in->guard ? emit_active(e) : NULL, out = permuted(e, v, from);
    if (in->d) emit_set_vec(e, in->d, out, guard);
    if (in->d2) emit_set_vec(e, in->d2, inside, guard);
    return true;
}

bool emit_exchange(struct emit *e, val active)
{
    return match(e, active) || reduced(e, active) || shuffle(e, active);
}
