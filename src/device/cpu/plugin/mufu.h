/* Plugin, private: the multi-function unit (device/emu/mufu.h) in scalars, and in vectors of one register's lanes
 * (mufu.c), 8 with AVX2 and 16 with AVX-512, so that what they have in between stays in registers. And what approx.c
 * and mufu.c make their code of. */
#ifndef MG_DEVICE_CPU_MUFU_H
#define MG_DEVICE_CPU_MUFU_H

#include "device/cpu/plugin/emit.h"

#include "device/emu/mufu.h"

/* Of any operand, as bits */
val emit_mufu(struct emit *e, enum mg_op op, val u);
val emit_mufu_double(struct emit *e, enum mg_op op, val u); /* of upper words */

/* Of usual operands, in vectors: numbers without bits `clear`, from `from` on, n of them. make: NULL where no operands
 * are easier than others */
struct mufu_usual {
    val (*make)(struct emit *e, val u);
    uint32_t clear, from, n;
};
struct mufu_usual emit_mufu_usual(enum mg_op op);

static inline unsigned lanes_of_register(struct emit *e)
{
    return emit_is(e, EMU_ISA_AVX512) ? 16 : 8;
}

/* ---- scalars, and vectors of any number of lanes ------------------------------------------------------------- */

static inline bool is_vector(val x)
{
    return LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind;
}
/* t in every lane that x has; so is the constant `one` */
static inline LLVMTypeRef type_like(val x, LLVMTypeRef t)
{
    return is_vector(x) ? LLVMVectorType(t, LLVMGetVectorSize(LLVMTypeOf(x))) : t;
}
static inline val const_like(val x, val one)
{
    val all[EMU_LANES];
    unsigned n = is_vector(x) ? LLVMGetVectorSize(LLVMTypeOf(x)) : 0;
    for (unsigned i = 0; i < n; i++) all[i] = one;
    return n ? LLVMConstVector(all, n) : one;
}
static inline val like(struct emit *e, val x, uint32_t v)
{
    return const_like(x, k32(e, v));
}
static inline val flike(struct emit *e, val x, double v)
{
    return const_like(x, LLVMConstReal(e->t.f32, v));
}
static inline val dlike(struct emit *e, val x, double v)
{
    return const_like(x, LLVMConstReal(e->t.f64, v));
}
static inline val and32(struct emit *e, val x, uint32_t m)
{
    return LLVMBuildAnd(e->b, x, like(e, x, m), "");
}
static inline val shr(struct emit *e, val x, uint32_t n)
{
    return n ? LLVMBuildLShr(e->b, x, like(e, x, n), "") : x;
}
static inline val shl(struct emit *e, val x, uint32_t n)
{
    return n ? LLVMBuildShl(e->b, x, like(e, x, n), "") : x;
}
static inline val pick(struct emit *e, LLVMIntPredicate p, val a, uint32_t b, val yes, val no)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, p, a, like(e, a, b), ""), yes, no, "");
}
static inline val cast_to(struct emit *e, val x, LLVMTypeRef t)
{
    return LLVMBuildBitCast(e->b, x, type_like(x, t), "");
}
static inline val as_float(struct emit *e, val x)
{
    return cast_to(e, x, e->t.f32);
}
static inline val as_bits(struct emit *e, val x)
{
    return cast_to(e, x, e->t.i32);
}
static inline val fma_of(struct emit *e, val x, val y, val z)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    val args[3] = {x, y, z};
    return emit_intrinsic(e, "llvm.fma", &t, 1, args, 3);
}
static inline val masked_double(struct emit *e, val t, uint64_t mask)
{
    val bits = cast_to(e, t, e->t.i64);
    return cast_to(e, LLVMBuildAnd(e->b, bits, const_like(t, k64(e, mask)), ""), e->t.f64);
}
/* As mufu_cut_float: t * scale cut to 24 bits */
static inline val cut_float(struct emit *e, val t, val scale)
{
    val cut = LLVMBuildFMul(e->b, masked_double(e, t, ~0x1fffffffull), scale, "");
    return as_bits(e, LLVMBuildFPTrunc(e->b, cut, type_like(t, e->t.f32), ""));
}

#endif
