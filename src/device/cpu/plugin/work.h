/* Plugin, private: one computation of arithmetic.def being turned into LLVM IR, for vectors or for scalars. */
#ifndef MG_DEVICE_CPU_WORK_H
#define MG_DEVICE_CPU_WORK_H

#include "device/cpu/plugin/emit.h"

#include "device/emu/alu_form.h"

static inline unsigned bits_of(unsigned t)
{
    switch (t) {
    case MG_TYPE_u8:
    case MG_TYPE_s8:
    case MG_TYPE_b8:
        return 8;
    case MG_TYPE_u16:
    case MG_TYPE_s16:
    case MG_TYPE_b16:
        return 16;
    case MG_TYPE_u64:
    case MG_TYPE_s64:
    case MG_TYPE_b64:
    case MG_TYPE_f64:
        return 64;
    default:
        return 32;
    }
}
static inline bool is_signed(unsigned t)
{
    return t == MG_TYPE_s8 || t == MG_TYPE_s16 || t == MG_TYPE_s32 || t == MG_TYPE_s64;
}
static inline bool is_float(unsigned t)
{
    return t == MG_TYPE_f32 || t == MG_TYPE_f64;
}

/* One computation: its operands, vectors or scalars. */
struct work {
    struct emit *e;
    const struct cpu_inst *in;
    bool vec;
    val x[4];
    bool other; /* the second predicate of setp */
};

static inline val lit(struct work *w, enum emu_class c, uint64_t v)
{
    return emit_int(w->e, c, v, w->vec);
}
static inline LLVMTypeRef type(struct work *w, enum emu_class c)
{
    return emit_type(w->e, c, w->vec);
}
static inline LLVMTypeRef ftype(struct work *w, bool wide)
{
    return wide ? w->vec ? w->e->t.vf64 : w->e->t.f64 : w->vec ? w->e->t.vf32 : w->e->t.f32;
}
static inline val as_float(struct work *w, val v, bool wide)
{
    return LLVMBuildBitCast(w->e->b, v, ftype(w, wide), "");
}
static inline val as_bits(struct work *w, val v, bool wide)
{
    return LLVMBuildBitCast(w->e->b, v, type(w, wide ? EMU_D : EMU_W), "");
}
static inline val flit(struct work *w, bool wide, double v)
{
    val s = LLVMConstReal(wide ? w->e->t.f64 : w->e->t.f32, v);
    return w->vec ? emit_splat(w->e, s) : s;
}

/* The operand's value as its type has it, in a lane of its class. */
static inline val widened(struct work *w, val x, unsigned t)
{
    unsigned n = bits_of(t);
    if (n >= 32) return x;
    if (is_signed(t))
        return LLVMBuildAShr(w->e->b, LLVMBuildShl(w->e->b, x, lit(w, EMU_W, 32 - n), ""), lit(w, EMU_W, 32 - n), "");
    return LLVMBuildAnd(w->e->b, x, lit(w, EMU_W, (1u << n) - 1), "");
}

static inline val to64(struct work *w, val x, bool sign)
{
    return sign ? LLVMBuildSExt(w->e->b, x, type(w, EMU_D), "") : LLVMBuildZExt(w->e->b, x, type(w, EMU_D), "");
}
static inline val ordered(struct work *w, val x)
{
    return LLVMBuildFCmp(w->e->b, LLVMRealORD, x, x, "");
}
val emit_one_nan(struct work *w, val bits,
                 bool wide); /* a NaN as an operation gives it: f32 has one, f64 keeps the operand's */
val emit_saturated(struct work *w, val r, bool wide);
/* See emit.h; x: as the operation's type has it */
void emit_begin_nans(struct work *w, struct nan_case *c, val x);
bool emit_later(struct work *w, val result); /* ... is not needed here: nans.c sees to the result */

#define ARITH(opcode, forms, code) val code_##code(struct work *w);
#include "device/cpu/arithmetic.def"

#endif
