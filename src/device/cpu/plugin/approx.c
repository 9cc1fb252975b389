/* PTX's approximate functions in line, with AVX2 or AVX-512: as alu_approx.h makes them of the multi-function unit
 * (mufu.c), in vectors and in scalars. And rounding that is not to nearest, the smaller and the greater of two, with
 * AVX-512. Other CPUs call the emulator's functions.
 *
 * Where all lanes have usual operands, numbers that need no scaling and give a number, most choices fall away. As they
 * nearly always have, a function of the module makes all others. */
#include "device/cpu/plugin/emit.h"
#include "device/cpu/plugin/mufu.h"

#include <stdio.h>

#include "device/emu/alu_form.h"

#define B e->b

/* ---- rounding ------------------------------------------------------------------------------------------ */

static val doubled(struct emit *e, val x)
{
    return LLVMBuildFPExt(B, x, type_like(x, e->t.f64), "");
}

/* What a sum of two doubles leaves out: exact */
static val rest_of_sum(struct emit *e, val a, val b, val sum)
{
    val of_b = LLVMBuildFSub(B, sum, a, ""), of_a = LLVMBuildFSub(B, sum, of_b, "");
    return LLVMBuildFAdd(B, LLVMBuildFSub(B, a, of_a, ""), LLVMBuildFSub(B, b, of_b, ""), "");
}

/* Does the float lie above (below) the exact result, a double and what that leaves out? */
static val lies(struct emit *e, LLVMRealPredicate where, val f, val sum, val rest)
{
    val even = LLVMBuildFCmp(B, LLVMRealOEQ, f, sum, ""), zero = LLVMConstNull(LLVMTypeOf(sum));
    val more = LLVMBuildAnd(B, even, LLVMBuildFCmp(B, where, zero, rest, ""), "");
    return LLVMBuildOr(B, LLVMBuildFCmp(B, where, f, sum, ""), more, "");
}

static val upper_word(struct emit *e, val x)
{
    val high = LLVMBuildLShr(B, cast_to(e, x, e->t.i64), const_like(x, k64(e, 32)), "");
    return LLVMBuildTrunc(B, high, type_like(x, e->t.i32), "");
}
static val signs(struct emit *e, val x)
{
    return and32(e, upper_word(e, x), 0x80000000);
}

/* Without AVX-512. Products of floats are exact doubles; of a sum what is left out is exact, too. The nearest float is
 * the one that is asked for, or its neighbour, whose bits are one more or one less. */
static val rounded_by_hand(struct emit *e, enum mg_op op, unsigned mode, const val *x)
{
    bool adds = op == MG_OP_add || op == MG_OP_sub, product = op == MG_OP_mul, down = mode == MX_RM, up = mode == MX_RP;
    val a = doubled(e, x[0]), b = doubled(e, op == MG_OP_sub ? LLVMBuildFNeg(B, x[1], "") : x[1]);
    if (!adds) a = LLVMBuildFMul(B, a, b, "");
    if (!adds && !product) b = doubled(e, x[2]);
    val sum = product ? a : LLVMBuildFAdd(B, a, b, ""), none = LLVMConstNull(LLVMTypeOf(sum));
    val rest = product ? none : rest_of_sum(e, a, b, sum);
    val nearest = LLVMBuildFPTrunc(B, sum, LLVMTypeOf(x[0]), ""), f = doubled(e, nearest), r = as_bits(e, nearest);
    val above = lies(e, LLVMRealOGT, f, sum, rest), below = lies(e, LLVMRealOLT, f, sum, rest);
    val positive = LLVMBuildICmp(B, LLVMIntSGE, r, like(e, r, 0), ""), one = like(e, r, 1),
        less = LLVMBuildSub(B, r, one, ""), more = LLVMBuildAdd(B, r, one, "");
    if (down)
        r = LLVMBuildSelect(B, above, LLVMBuildSelect(B, positive, less, more, ""), r, "");
    else if (up)
        r = LLVMBuildSelect(B, below, LLVMBuildSelect(B, positive, more, less, ""), r, "");
    else
        r = LLVMBuildSelect(B, LLVMBuildSelect(B, positive, above, below, ""), less, r, "");
    if (!down || product) return as_float(e, r);
    val zero = LLVMBuildFCmp(B, LLVMRealOEQ, sum, none, ""); /* of unlike ones it is -0 */
    return as_float(e, LLVMBuildSelect(B, zero, LLVMBuildOr(B, signs(e, a), signs(e, b), ""), r, ""));
}

/* mode: MXCSR's */
val emit_rounded(struct emit *e, enum mg_op op, unsigned mode, const val *x)
{
    if (!emit_is(e, EMU_ISA_AVX512)) return rounded_by_hand(e, op, mode, x);
    const char *name = op == MG_OP_add   ? "llvm.x86.avx512.add.ps.512"
                       : op == MG_OP_sub ? "llvm.x86.avx512.sub.ps.512"
                       : op == MG_OP_mul ? "llvm.x86.avx512.mul.ps.512"
                       : op == MG_OP_div ? "llvm.x86.avx512.div.ps.512"
                                         : "llvm.x86.avx512.vfmadd.ps.512";
    unsigned n = op == MG_OP_fma || op == MG_OP_mad ? 3 : 2;
    val half[2], args[4], first = k32(e, 0);
    if (!is_vector(x[0])) {
        val none = LLVMGetPoison(LLVMVectorType(e->t.f32, 16));
        for (unsigned k = 0; k < n; k++) args[k] = LLVMBuildInsertElement(B, none, x[k], first, "");
        args[n] = k32(e, 8 | mode);
        return LLVMBuildExtractElement(B, emit_intrinsic(e, name, NULL, 0, args, n + 1), first, "");
    }
    unsigned halves = LLVMGetVectorSize(LLVMTypeOf(x[0])) / 16;
    for (unsigned h = 0; h < halves; h++) {
        for (unsigned k = 0; k < n; k++) args[k] = emit_lanes_from(e, x[k], 16 * h, 16);
        args[n] = LLVMConstInt(e->t.i32, 8 | mode, 0);
        half[h] = emit_intrinsic(e, name, NULL, 0, args, n + 1);
    }
    return emit_joined(e, half, halves);
}

/* Vectors with AVX-512: -0 lies below 0, a number wins over a quiet NaN. */
val emit_smaller_or_greater(struct emit *e, bool greater, const val *x)
{
    val half[2];
    for (unsigned h = 0; h < 2; h++) {
        val args[6] = {emit_lanes_from(e, x[0], 16 * h, 16),
                       emit_lanes_from(e, x[1], 16 * h, 16),
                       LLVMConstInt(e->t.i32, 4 | greater, 0), /* the sign is the result's */
                       LLVMGetPoison(LLVMVectorType(e->t.f32, 16)),
                       LLVMConstInt(LLVMInt16TypeInContext(e->c), 0xffff, 0),
                       LLVMConstInt(e->t.i32, 4, 0)}; /* MXCSR as it is */
        half[h] = emit_intrinsic(e, "llvm.x86.avx512.mask.range.ps.512", NULL, 0, args, 6);
    }
    return emit_joined(e, half, 2);
}

/* ---- numbers below 2^-126 ----------------------------------------------------------------------------------- */

/* They become zeros of their sign. */
val emit_flushed(struct emit *e, val x)
{
    val u = as_bits(e, x), zero = and32(e, u, 0x80000000);
    return as_float(e, pick(e, LLVMIntEQ, and32(e, u, MUFU_INF), 0, zero, u));
}

/* x * y + z, or x / y (z: NULL for both), where its 24 bits lie below 2^-126 whatever the exponent: a zero. Times
 * 2^24 the operation rounds there as with an unlimited exponent; what then overflows was not small. */
val emit_flushed_result(struct emit *e, enum mg_op op, val x, val y, val z)
{
    val up = flike(e, x, 0x1p24), large = LLVMBuildFMul(B, x, up, ""), r, s;
    if (op == MG_OP_fma)
        r = fma_of(e, x, y, z), s = fma_of(e, large, y, LLVMBuildFMul(B, z, up, ""));
    else if (op == MG_OP_mul)
        r = LLVMBuildFMul(B, x, y, ""), s = LLVMBuildFMul(B, large, y, "");
    else
        r = LLVMBuildFDiv(B, x, y, ""), s = LLVMBuildFDiv(B, large, y, "");
    val u = as_bits(e, r), a = and32(e, as_bits(e, s), 0x7fffffff);
    return as_float(e, pick(e, LLVMIntULT, a, 25u << 23, and32(e, u, 0x80000000), u));
}

/* ---- PTX's forms: the scaling of alu_approx.h ------------------------------------------------------------------ */

static val times(struct emit *e, val bits, val scale)
{
    return as_bits(e, LLVMBuildFMul(B, as_float(e, bits), scale, ""));
}
static val is_small(struct emit *e, val x) /* below 2^-126 */
{
    return LLVMBuildICmp(B, LLVMIntULT, and32(e, x, 0x7fffffff), like(e, x, MUFU_ONE), "");
}

/* x / (2 pi), cut to 24 bits */
static val turns(struct emit *e, val x)
{
    if (is_vector(x) && emit_is(e, EMU_ISA_AVX512)) {
        val two[2] = {as_float(e, x), flike(e, x, 0x1.45f306p-3)};
        return as_bits(e, emit_rounded(e, MG_OP_mul, MX_RZ, two));
    }
    return cut_float(e, LLVMBuildFMul(B, doubled(e, as_float(e, x)), dlike(e, x, 0x1.45f306p-3), ""), dlike(e, x, 1));
}

static val scaled_ex2(struct emit *e, val x)
{
    val low = LLVMBuildFCmp(B, LLVMRealOLT, as_float(e, x), flike(e, x, -126), ""),
        r = as_float(
            e, emit_mufu(e, MG_OP_ex2, times(e, x, LLVMBuildSelect(B, low, flike(e, x, 0.5), flike(e, x, 1), ""))));
    return as_bits(e, LLVMBuildSelect(B, low, LLVMBuildFMul(B, r, r, ""), r, ""));
}
static val scaled_lg2(struct emit *e, val x)
{
    val small = is_small(e, x),
        r = as_float(e, emit_mufu(e, MG_OP_lg2,
                                  times(e, x, LLVMBuildSelect(B, small, flike(e, x, 0x1p24), flike(e, x, 1), ""))));
    return as_bits(e, LLVMBuildSelect(B, small, LLVMBuildFSub(B, r, flike(e, x, 24), ""), r, ""));
}
/* By what the operand of MUFU.RCP is multiplied; full: huge operands, too */
static val rcp_scale(struct emit *e, val x, bool full, bool ftz)
{
    val scale = flike(e, x, 1), a = and32(e, x, 0x7fffffff);
    if (!ftz) scale = LLVMBuildSelect(B, is_small(e, x), flike(e, x, 0x1p24), scale, "");
    if (!full) return scale;
    val large = LLVMBuildAnd(B, LLVMBuildICmp(B, LLVMIntUGT, a, like(e, x, 253u << 23), ""),
                             LLVMBuildICmp(B, LLVMIntULE, a, like(e, x, MUFU_INF), ""), "");
    return LLVMBuildSelect(B, large, flike(e, x, 0.25), scale, "");
}

/* how: K_FTZ, K_FULL; MG_OP_div: the reciprocal for a quotient, whose dividend is scaled */
static val any(struct emit *e, enum mg_op op, unsigned how, val x)
{
    bool ftz = how & K_FTZ, is_rcp = op == MG_OP_rcp;
    if (op == MG_OP_div) return emit_mufu(e, MG_OP_rcp, times(e, x, rcp_scale(e, x, how & K_FULL, ftz)));
    if (op == MG_OP_sin || op == MG_OP_cos) return emit_mufu(e, op, turns(e, x));
    if (op == MG_OP_tanh) return emit_mufu(e, op, ftz ? as_bits(e, emit_flushed(e, as_float(e, x))) : x);
    if (ftz) return emit_mufu(e, op, x);
    if (op == MG_OP_ex2) return scaled_ex2(e, x);
    if (op == MG_OP_lg2) return scaled_lg2(e, x);
    val small = is_small(e, x), one = flike(e, x, 1), down = flike(e, x, op == MG_OP_sqrt ? 0x1p-12 : 0x1p12),
        up = is_rcp ? rcp_scale(e, x, true, false) : LLVMBuildSelect(B, small, flike(e, x, 0x1p24), one, "");
    down = is_rcp ? up : LLVMBuildSelect(B, small, down, one, "");
    return times(e, emit_mufu(e, op, times(e, x, up)), down);
}

/* The dividend of what MG_OP_div makes: floats; ftz operands are flushed. */
static val scaled(struct emit *e, unsigned how, val x, val divisor)
{
    val scale = rcp_scale(e, divisor, how & K_FULL, how & K_FTZ);
    if (!(how & K_FTZ)) return LLVMBuildFMul(B, x, scale, "");
    return how & K_FULL ? emit_flushed_result(e, MG_OP_mul, x, scale, NULL) : x;
}

/* The gross forms (.ftz) are functions of the upper word. A NaN: any where it is not gross. */
static val any_double(struct emit *e, enum mg_op op, bool ftz, val x)
{
    LLVMTypeRef bits = LLVMTypeOf(x);
    val half = const_like(x, k64(e, 32)), v = cast_to(e, x, e->t.f64), zero = dlike(e, x, 0), wide = v;
    val small = LLVMBuildFCmp(B, LLVMRealOLT, v, dlike(e, x, 0x1p-1022), "");
    if (!ftz) wide = LLVMBuildFMul(B, v, LLVMBuildSelect(B, small, dlike(e, x, 0x1p54), dlike(e, x, 1), ""), "");
    val u = LLVMBuildShl(B, LLVMBuildZExt(B, emit_mufu_double(e, op, upper_word(e, wide)), bits, ""), half, "");
    if (ftz) return u;
    val y = cast_to(e, u, e->t.f64), one = dlike(e, x, 1); /* as rsqrt_f64 */
    val rest = fma_of(e, wide, LLVMBuildFNeg(B, LLVMBuildFMul(B, y, y, ""), ""), one);
    val r = fma_of(e, fma_of(e, rest, dlike(e, x, 0.375), dlike(e, x, 0.5)), LLVMBuildFMul(B, y, rest, ""), y);
    r = cast_to(e, LLVMBuildFMul(B, r, LLVMBuildSelect(B, small, dlike(e, x, 0x1p27), one, ""), ""), e->t.i64);
    val inf = const_like(x, k64(e, 0x7ff0000000000000)), sign = const_like(x, k64(e, 1ull << 63));
    r = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntEQ, x, inf, ""), LLVMConstNull(bits), r, "");
    val low = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOEQ, v, zero, ""),
                              LLVMBuildOr(B, LLVMBuildAnd(B, x, sign, ""), inf, ""), const_like(x, k64(e, NAN64)), "");
    return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, v, zero, ""), r, low, "");
}

/* ---- a warp's: one register's lanes after the other -------------------------------------------------------------- */

/* make: NULL, `any` of op */
static val by_register(struct emit *e, val (*make)(struct emit *, val), enum mg_op op, unsigned how, val x)
{
    unsigned n = lanes_of_register(e);
    bool wide = LLVMGetElementType(LLVMTypeOf(x)) == e->t.i64;
    val rows[4];
    for (unsigned k = 0; k < EMU_LANES / n; k++) {
        val of = emit_lanes_from(e, x, k * n, n);
        rows[k] = make ? make(e, of) : wide ? any_double(e, op, how & K_FTZ, of) : any(e, op, how, of);
    }
    return emit_joined(e, rows, EMU_LANES / n);
}

/* Of f64, as bits */
val emit_approx_double(struct emit *e, enum mg_op op, bool ftz, val x)
{
    return is_vector(x) ? by_register(e, NULL, op, ftz ? K_FTZ : 0, x) : any_double(e, op, ftz, x);
}

static val all_usual(struct emit *e, const struct mufu_usual *f, val x)
{
    val active = emit_active(e), most = NULL, off = x;
    if (f->clear) off = and32(e, off, ~f->clear);
    if (f->from) off = LLVMBuildSub(B, off, like(e, x, f->from), "");
    if (active) off = LLVMBuildSelect(B, active, off, LLVMConstNull(e->t.v32), "");
    unsigned n = lanes_of_register(e);
    for (unsigned k = 0; k < EMU_LANES; k += n) {
        val two[2] = {most, emit_lanes_from(e, off, k, n)};
        LLVMTypeRef t = LLVMTypeOf(two[1]);
        most = most ? emit_intrinsic(e, "llvm.umax", &t, 1, two, 2) : two[1];
    }
    val bad = LLVMBuildICmp(B, LLVMIntUGE, most, like(e, most, f->n), "");
    LLVMTypeRef bits = LLVMIntTypeInContext(e->c, n);
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, bits, ""), LLVMConstNull(bits), "");
}

static val call_any(struct emit *e, enum mg_op op, unsigned how, val x)
{
    char name[32];
    snprintf(name, sizeof name, "approx.%u.%u", op, how);
    val fn = LLVMGetNamedFunction(e->m, name);
    if (!fn) {
        fn = LLVMAddFunction(e->m, name, LLVMFunctionType(e->t.v32, &e->t.v32, 1, 0));
        LLVMSetLinkage(fn, LLVMInternalLinkage);
        struct emit inner = *e;
        inner.fn = fn;
        inner.room = (struct emit_room){0};
        inner.b = LLVMCreateBuilderInContext(e->c);
        LLVMPositionBuilderAtEnd(inner.b, LLVMAppendBasicBlockInContext(e->c, fn, "entry"));
        LLVMBuildRet(inner.b, by_register(&inner, NULL, op, how, LLVMGetParam(fn, 0)));
        LLVMDisposeBuilder(inner.b);
    }
    return LLVMBuildCall2(B, LLVMGlobalGetValueType(fn), fn, &x, 1, "");
}

/* With a dividend, floats, which is scaled, for MG_OP_div; else NULL */
static val approximated(struct emit *e, enum mg_op op, unsigned how, val x, val *dividend)
{
    struct mufu_usual f = emit_mufu_usual(op == MG_OP_div ? MG_OP_rcp : op);
    if (!is_vector(x) || !f.make) {
        if (dividend) *dividend = scaled(e, how, *dividend, x);
        return is_vector(x) ? by_register(e, NULL, op, how, x) : any(e, op, how, x);
    }
    LLVMBasicBlockRef usual = emit_block(e, "usual"), other = emit_block(e, "any"), on = emit_block(e, "made"), end[2];
    val r[2], of[2] = {NULL};
    emit_usually(e, all_usual(e, &f, x), usual, other);
    for (unsigned way = 0; way < 2; way++) {
        LLVMPositionBuilderAtEnd(B, way ? other : usual);
        if (dividend) of[way] = way ? scaled(e, how, *dividend, x) : *dividend;
        r[way] = way ? call_any(e, op, how, x) : by_register(e, f.make, op, how, x);
        end[way] = LLVMGetInsertBlock(B);
        LLVMBuildBr(B, on);
    }
    LLVMPositionBuilderAtEnd(B, on);
    val both = LLVMBuildPhi(B, LLVMTypeOf(x), "");
    LLVMAddIncoming(both, r, end, 2);
    if (!dividend) return both;
    *dividend = LLVMBuildPhi(B, LLVMTypeOf(of[0]), "");
    LLVMAddIncoming(*dividend, of, end, 2);
    return both;
}

/* x: operand as bits; ftz operands need no flushing, subnormal ones are zeros to MUFU. */
val emit_approx(struct emit *e, enum mg_op op, bool ftz, val x)
{
    return approximated(e, op, ftz ? K_FTZ : 0, x, NULL);
}

/* div.approx and div.full, with a third operand the sum that decode_fuse.c makes of one: floats; ftz operands are
 * flushed. The product (or sum) that is left to do: its operands take the places of x. */
void emit_approx_quotient(struct emit *e, bool full, bool ftz, val *x)
{
    x[1] = as_float(e, approximated(e, MG_OP_div, (ftz ? K_FTZ : 0) | (full ? K_FULL : 0), as_bits(e, x[1]), &x[0]));
}
