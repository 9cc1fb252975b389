/* The approx family in line, on CPUs with AVX-512: the bits of device/emu/mufu.h, whose table look-ups
 * are permutations here and whose sums stay in 32 bits; and rounding that is not to nearest. Other
 * CPUs call the emulator's functions.
 *
 * mufu.h computes t = (c0 << A) + c1 * x + (c2 * square << C) + bias and cuts t >> S. Below 2^13 only the
 * carry of the last three counts: with x = 2^13 * high + low,
 *     t >> 13 = (c0 << A - 13) + c1 * high + ((c1 * low + (c2 * square << C) + bias) >> 13),
 * where no term has more than 31 bits. */
#include "device/cpu/plugin/emit.h"

#include "device/emu/mufu.h"

#define B e->b

static val k32(struct emit *e, uint32_t v)
{
    return emit_int(e, EMU_W, v, true);
}
static val and32(struct emit *e, val x, uint32_t m)
{
    return LLVMBuildAnd(B, x, k32(e, m), "");
}
static val shr(struct emit *e, val x, uint32_t n)
{
    return LLVMBuildLShr(B, x, k32(e, n), "");
}
static val shl(struct emit *e, val x, uint32_t n)
{
    return n ? LLVMBuildShl(B, x, k32(e, n), "") : x;
}
static val pick(struct emit *e, LLVMIntPredicate p, val a, val b, val yes, val no)
{
    return LLVMBuildSelect(B, LLVMBuildICmp(B, p, a, b, ""), yes, no, "");
}
static val as_float(struct emit *e, val x)
{
    return LLVMBuildBitCast(B, x, e->t.vf32, "");
}
static val as_bits(struct emit *e, val x)
{
    return LLVMBuildBitCast(B, x, e->t.v32, "");
}
static val flit(struct emit *e, double v)
{
    return emit_splat(e, LLVMConstReal(e->t.f32, v));
}

static val half_of(struct emit *e, val v, unsigned h)
{
    val at[16];
    for (unsigned i = 0; i < 16; i++) at[i] = LLVMConstInt(e->t.i32, i + 16 * h, 0);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, 16), "");
}
static val joined(struct emit *e, val lo, val hi)
{
    val at[32];
    for (unsigned i = 0; i < 32; i++) at[i] = LLVMConstInt(e->t.i32, i, 0);
    return LLVMBuildShuffleVector(B, lo, hi, LLVMConstVector(at, 32), "");
}

/* ---- rounding ------------------------------------------------------------------------------------------ */

/* mode: MXCSR's */
val emit_rounded(struct emit *e, enum mg_op op, unsigned mode, const val *x)
{
    const char *name = op == MG_OP_add   ? "llvm.x86.avx512.add.ps.512"
                       : op == MG_OP_sub ? "llvm.x86.avx512.sub.ps.512"
                       : op == MG_OP_mul ? "llvm.x86.avx512.mul.ps.512"
                       : op == MG_OP_div ? "llvm.x86.avx512.div.ps.512"
                                         : "llvm.x86.avx512.vfmadd.ps.512";
    unsigned n = op == MG_OP_fma || op == MG_OP_mad ? 3 : 2;
    val half[2], args[4];
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned k = 0; k < n; k++) args[k] = half_of(e, x[k], h);
        args[n] = LLVMConstInt(e->t.i32, 8 | mode, 0);
        half[h] = emit_intrinsic(e, name, NULL, 0, args, n + 1);
    }
    return joined(e, half[0], half[1]);
}

/* ---- MUFU ------------------------------------------------------------------------------------------------ */

/* row[k] in each lane, k below n */
static val look_up(struct emit *e, const int32_t *row, unsigned n, val k)
{
    LLVMTypeRef v16 = LLVMVectorType(e->t.i32, 16);
    val half[2], part[8];
    for (unsigned p = 0; p < n / 16; p++) {
        val c[16];
        for (unsigned i = 0; i < 16; i++) c[i] = LLVMConstInt(e->t.i32, (uint32_t)row[16 * p + i], 0);
        part[p] = LLVMConstVector(c, 16);
    }
    for (unsigned h = 0; h < 2; h++) {
        val at = half_of(e, k, h), found[4];
        for (unsigned p = 0; p < n / 32; p++) {
            val args[3] = {part[2 * p], at, part[2 * p + 1]};
            found[p] = emit_intrinsic(e, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, args, 3);
        }
        for (unsigned m = n / 32, bit = 32; m > 1; m /= 2, bit *= 2) {
            val b[16];
            for (unsigned i = 0; i < 16; i++) b[i] = LLVMConstInt(e->t.i32, bit, 0);
            val set =
                LLVMBuildICmp(B, LLVMIntNE, LLVMBuildAnd(B, at, LLVMConstVector(b, 16), ""), LLVMConstNull(v16), "");
            for (unsigned p = 0; p < m / 2; p++) found[p] = LLVMBuildSelect(B, set, found[2 * p + 1], found[2 * p], "");
        }
        half[h] = found[0];
    }
    return joined(e, half[0], half[1]);
}

static val square(struct emit *e, val x)
{
    val high = shr(e, x, 9), sum = shr(e, LLVMBuildMul(B, high, high, ""), 1), zero = emit_int(e, EMU_W, 0, true);
    for (unsigned i = 2; i <= 8; i++) {
        val set = LLVMBuildICmp(B, LLVMIntNE, and32(e, x, 1u << i), zero, "");
        sum = LLVMBuildAdd(B, sum, LLVMBuildSelect(B, set, shr(e, high, 9 - i), zero, ""), "");
    }
    return sum;
}

/* (t >> S) & 0x1ffffff; A and C as shifts, x and sq as mufu_sum takes them */
static val sum(struct emit *e, const int32_t *c0, const int32_t *c1, const int32_t *c2, unsigned n, val k, val x,
               val sq, unsigned a, unsigned c, uint32_t bias, unsigned s)
{
    val slope = look_up(e, c1, n, k), low = LLVMBuildMul(B, slope, and32(e, x, 0x1fff), ""),
        high = LLVMBuildMul(B, slope, shr(e, x, 13), "");
    val rest = LLVMBuildAdd(B, LLVMBuildAdd(B, low, shl(e, LLVMBuildMul(B, look_up(e, c2, n, k), sq, ""), c), ""),
                            k32(e, bias), "");
    val t = LLVMBuildAdd(B, shl(e, look_up(e, c0, n, k), a - 13),
                         LLVMBuildAdd(B, high, LLVMBuildAShr(B, rest, k32(e, 13), ""), ""), "");
    return and32(e, shr(e, t, s - 13), 0x1ffffff);
}

#define TABLE(name, n) mg_mufu_##name[0], mg_mufu_##name[1], mg_mufu_##name[2], n

static val rcp(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), x = and32(e, a, 0xffff);
    val t = sum(e, TABLE(rcp, 128), and32(e, shr(e, a, 16), 127), x, square(e, shl(e, x, 1)), 13, 0, 0x7e7, 15);
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, k32(e, 252), shr(e, a, 23), ""), 23), t, "");
    r = pick(e, LLVMIntSLT, r, k32(e, MUFU_ONE), k32(e, 0), r);
    r = pick(e, LLVMIntULT, a, k32(e, MUFU_ONE), k32(e, MUFU_INF),
             pick(e, LLVMIntUGE, a, k32(e, MUFU_INF), k32(e, 0), r));
    return pick(e, LLVMIntUGT, a, k32(e, MUFU_INF), k32(e, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
}

/* m and e as in mufu_rsq and mufu_sqrt */
static void root(struct emit *e, val a, val *m, val *exp)
{
    *exp = LLVMBuildAdd(B, shr(e, a, 23), k32(e, 1), "");
    *m = LLVMBuildOr(B, and32(e, a, 0x7fffff), shl(e, and32(e, *exp, 1), 23), "");
}

static val rsq(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), m, exp;
    root(e, a, &m, &exp);
    val x = and32(e, m, 0x1ffff), t = sum(e, TABLE(rsq, 128), shr(e, m, 17), x, square(e, x), 14, 2, 0x3fff, 16);
    t = pick(e, LLVMIntNE, m, k32(e, 0), t, k32(e, 2 * MUFU_ONE));
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, k32(e, 189), shr(e, exp, 1), ""), 23), t, "");
    r = pick(e, LLVMIntEQ, a, k32(e, MUFU_INF), k32(e, 0), r);
    r = pick(e, LLVMIntUGT, u, k32(e, MUFU_INF), k32(e, NAN32), r);
    return pick(e, LLVMIntULT, a, k32(e, MUFU_ONE), LLVMBuildOr(B, k32(e, MUFU_INF), and32(e, u, 0x80000000), ""), r);
}

static val root_of(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), m, exp;
    root(e, a, &m, &exp);
    val x = and32(e, m, 0x1ffff), t = sum(e, TABLE(sqrt, 128), shr(e, m, 17), x, square(e, x), 15, 1, 0x7fff, 17);
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildAdd(B, k32(e, 62), shr(e, exp, 1), ""), 23), t, "");
    r = pick(e, LLVMIntUGT, u, k32(e, MUFU_INF), k32(e, NAN32),
             pick(e, LLVMIntEQ, a, k32(e, MUFU_INF), k32(e, MUFU_INF), r));
    return pick(e, LLVMIntULT, a, k32(e, MUFU_ONE), and32(e, u, 0x80000000), r);
}

static val ex2(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), exp = shr(e, a, 23),
        m = LLVMBuildOr(B, and32(e, a, 0x7fffff), k32(e, MUFU_ONE), ""), zero = k32(e, 0);
    val over = LLVMBuildSub(B, exp, k32(e, 127), ""), under = LLVMBuildSub(B, k32(e, 127), exp, "");
    val left = pick(e, LLVMIntSGT, over, zero, pick(e, LLVMIntSLT, over, k32(e, 7), over, k32(e, 7)), zero);
    val right = pick(e, LLVMIntSGT, under, zero, pick(e, LLVMIntSLT, under, k32(e, 31), under, k32(e, 31)), zero);
    val size = LLVMBuildLShr(B, LLVMBuildShl(B, m, left, ""), right, "");
    val whole = LLVMBuildZExt(B, LLVMBuildICmp(B, LLVMIntEQ, and32(e, size, 0x7fffff), zero, ""), e->t.v32, "");
    val value = pick(e, LLVMIntSLT, u, zero, LLVMBuildAdd(B, LLVMBuildNot(B, size, ""), whole, ""), size);
    val f = and32(e, value, 0x7fffff), x = and32(e, f, 0x1ffff),
        t = sum(e, TABLE(ex2, 64), shr(e, f, 17), x, square(e, x), 13, 0, 0x17e2, 15);
    val r = LLVMBuildAdd(B, LLVMBuildAdd(B, and32(e, value, 0xff800000), k32(e, 126u << 23), ""), t, "");
    r = pick(e, LLVMIntSLT, r, k32(e, MUFU_ONE), zero, r);
    r = pick(e, LLVMIntUGE, exp, k32(e, 134), pick(e, LLVMIntSLT, u, zero, zero, k32(e, MUFU_INF)), r);
    return pick(e, LLVMIntUGT, a, k32(e, MUFU_INF), k32(e, NAN32), r);
}

/* ---- PTX's forms: the scaling of alu_approx.h ------------------------------------------------------------------ */

static val times(struct emit *e, val bits, val scale)
{
    return as_bits(e, LLVMBuildFMul(B, as_float(e, bits), scale, ""));
}

/* x: <32 x i32>; ftz operands need no flushing, subnormal ones are zeros to MUFU. */
val emit_approx(struct emit *e, enum mg_op op, bool ftz, val x)
{
    val (*fn)(struct emit *, val) = op == MG_OP_ex2 ? ex2 : op == MG_OP_rcp ? rcp : op == MG_OP_sqrt ? root_of : rsq;
    if (ftz) return fn(e, x);
    val a = and32(e, x, 0x7fffffff), one = flit(e, 1);
    if (op == MG_OP_ex2) {
        val low = LLVMBuildFCmp(B, LLVMRealOLT, as_float(e, x), flit(e, -126), ""),
            r = as_float(e, ex2(e, times(e, x, LLVMBuildSelect(B, low, flit(e, 0.5), one, ""))));
        return as_bits(e, LLVMBuildSelect(B, low, LLVMBuildFMul(B, r, r, ""), r, ""));
    }
    val small = LLVMBuildICmp(B, LLVMIntULT, a, k32(e, MUFU_ONE), ""),
        up = LLVMBuildSelect(B, small, flit(e, 0x1p24), one, ""), down;
    if (op == MG_OP_rcp) {
        val large = LLVMBuildAnd(B, LLVMBuildICmp(B, LLVMIntUGT, a, k32(e, 253u << 23), ""),
                                 LLVMBuildICmp(B, LLVMIntULE, a, k32(e, MUFU_INF), ""), "");
        down = up = LLVMBuildSelect(B, large, flit(e, 0.25), up, "");
    } else
        down = LLVMBuildSelect(B, small, flit(e, op == MG_OP_sqrt ? 0x1p-12 : 0x1p12), one, "");
    return times(e, fn(e, times(e, x, up)), down);
}
