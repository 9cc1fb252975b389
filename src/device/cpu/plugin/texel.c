/* Texels of device memory by their number (CPU_TEXEL): loads of words. What the emulator's function found when it did
 * the operation last says where an object's texels begin, which object, and how many there are (struct emu_range). All
 * else is its to do: other objects, lanes that ask for different ones, what lies outside, where texels are 0 or the
 * access faults. */
#include "device/cpu/plugin/emit.h"

#define B e->b

struct texels {
    val at, n; /* i32 */
    val known; /* is the object the one that was found? */
};

static struct texels find_texels(struct emit *e)
{
    struct texels t;
    val lo, hi, handle = emit_scalar(e, e->in->s[1], 0, false);
    emit_bounds(e, e->in, &lo, &hi);
    t.at = LLVMBuildIntToPtr(B, lo, e->t.ptr, "");
    t.n = LLVMBuildTrunc(B, hi, e->t.i32, "");
    t.known = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildLShr(B, hi, k64(e, 32), ""), handle, "");
    return t;
}

static val element(struct emit *e, const struct texels *t, val number)
{
    number =
        LLVMBuildZExt(B, number, LLVMGetTypeKind(LLVMTypeOf(number)) == LLVMVectorTypeKind ? e->t.v64 : e->t.i64, "");
    return LLVMBuildGEP2(B, e->t.i32, t->at, &number, 1, "");
}

static val load(struct emit *e, LLVMTypeRef type, val p)
{
    val v = emit_program(e, LLVMBuildLoad2(B, type, p, ""));
    LLVMSetAlignment(v, 1);
    return v;
}

/* So many lanes in a row: all lie inside, idle ones, too. */
static val row_inside(struct emit *e, const struct texels *t, val first, unsigned lanes)
{
    val args[2] = {t->n, k32(e, lanes - 1)};
    return LLVMBuildICmp(B, LLVMIntULT, first, emit_intrinsic(e, "llvm.usub.sat", &e->t.i32, 1, args, 2), "");
}

static val each_inside(struct emit *e, const struct texels *t, val numbers)
{
    val bad = LLVMBuildICmp(B, LLVMIntUGE, numbers, emit_splat(e, t->n), ""), lanes = emit_lanes(e);
    if (lanes) bad = LLVMBuildAnd(B, bad, lanes, "");
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i32, ""), k32(e, 0), "");
}

static val gathered(struct emit *e, const struct texels *t, val numbers)
{
    LLVMTypeRef types[2] = {e->t.v32, LLVMVectorType(e->t.ptr, 32)};
    val lanes = emit_lanes(e), args[4] = {element(e, t, numbers), k32(e, 4),
                                          lanes ? lanes : emit_int(e, EMU_P, 1, true), LLVMGetPoison(e->t.v32)};
    return emit_masked(e, "llvm.masked.gather", types, args, 1);
}

/* Channels behind the first are 0. */
static void set_channels(struct emit *e, val words)
{
    for (uint32_t k = 0; k < e->in->n_list; k++)
        if (e->in->list[k]) emit_set_vec(e, e->in->list[k], k ? LLVMConstNull(e->t.v32) : words, NULL);
}

void emit_texel(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct cpu_shape s = e->f->regs[in->s[0] - 1].shape;
    bool flat = cpu_is_uniform(s), row = !s.varying && !s.halves && !s.tile && s.stride == 1;
    if (in->guard || !cpu_is_uniform(e->f->regs[in->s[1] - 1].shape) || (!flat && !row && !emit_is(e, EMU_ISA_AVX2))) {
        emit_call(e);
        return;
    }
    struct texels t = find_texels(e);
    val first = flat || row ? emit_scalar(e, in->s[0], 0, false) : NULL,
        all = first ? NULL : emit_vec(e, in->s[0], false),
        ok = first ? row_inside(e, &t, first, flat ? 1 : EMU_LANES) : each_inside(e, &t, all);
    val cached = e->lanes;
    LLVMBasicBlockRef next = emit_call_unless(e, LLVMBuildAnd(B, t.known, ok, ""));
    set_channels(e, flat  ? emit_splat(e, load(e, e->t.i32, element(e, &t, first)))
                    : row ? load(e, e->t.v32, element(e, &t, first))
                          : gathered(e, &t, all));
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    e->lanes = cached;
}
