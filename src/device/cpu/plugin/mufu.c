/* The bits of device/emu/mufu.h with AVX2 or AVX-512. Tables are permuted with AVX-512, loaded lane by lane with AVX2.
 *
 * mufu.h computes t = (c0 << A) + c1 * x + (c2 * square << C) + bias. Where it cuts t >> S, only the carry of the
 * last three counts below 2^13. With c1 = `near` * 2^13 + d, where d has 16 bits, and x = 2^13 * high + low,
 *     t >> 13 = (c0 << A - 13) + near * x + d * high + ((d * low + (c2 << C) * square + bias) >> 13),
 * where d and c2 << C share a word and are multiplied by low and square at once. Where it needs the leading 24 bits of
 * t, wherever these are, t is a double, as there. */
#include "device/cpu/plugin/mufu.h"

#include <stdio.h>

#include "device/emu/alu_form.h"

#define B e->b

/* A function's table in mufu_tables.c, and how its sum is made. */
struct table {
    const char *name;
    const int32_t *row[3];
    unsigned n;             /* columns */
    unsigned a, c, bias, s; /* as in the head; s: 0, the sum is a double */
    int near;
};
#define TABLE(name, n, a, c, bias, s, near)                                                                            \
    {                                                                                                                  \
        "mufu." #name, {mg_mufu_##name[0], mg_mufu_##name[1], mg_mufu_##name[2]}, n, a, c, bias, s, near               \
    }
static const struct table t_rcp = TABLE(rcp, 128, 13, 0, 0x7e7, 15, -4), t_rsq = TABLE(rsq, 128, 14, 2, 0x3fff, 16, -4),
                          t_sqrt = TABLE(sqrt, 128, 15, 1, 0x7fff, 17, 8), t_ex2 = TABLE(ex2, 64, 13, 0, 0x17e2, 15, 4),
                          t_lg2 = TABLE(lg2, 64, 12, 1, 0x345, 0, 0), t_sin = TABLE(sin, 64, 11, 0, 0, 0, 0),
                          t_tanh = TABLE(tanh, 51, 15, 0, 0, 0, 0);

static val to_double(struct emit *e, val x) /* of a signed integer */
{
    return LLVMBuildSIToFP(B, x, type_like(x, e->t.f64), "");
}

/* ---- tables ---------------------------------------------------------------------------------------------- */

static val in_memory(struct emit *e, const char *name, LLVMTypeRef t, const val *c, unsigned n)
{
    val g = LLVMGetNamedGlobal(e->m, name);
    if (g) return g;
    g = LLVMAddGlobal(e->m, LLVMArrayType2(t, n), name);
    LLVMSetInitializer(g, LLVMConstArray2(t, (val *)c, n));
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    return g;
}

/* Of 128 words, zeros behind the n-th, in 16 lanes */
static val permuted(struct emit *e, const uint32_t *words, unsigned n, val k)
{
    unsigned left = n <= 32 ? 1 : n <= 64 ? 2 : 4;
    val found[4];
    for (unsigned p = 0; p < left; p++) {
        val c[32];
        for (unsigned i = 0; i < 32; i++) c[i] = k32(e, words[32 * p + i]);
        val args[3] = {LLVMConstVector(c, 16), k, LLVMConstVector(c + 16, 16)};
        found[p] = emit_intrinsic(e, "llvm.x86.avx512.vpermi2var.d.512", NULL, 0, args, 3);
    }
    for (unsigned bit = 32; left > 1; left /= 2, bit *= 2)
        for (unsigned p = 0; p < left / 2; p++)
            found[p] = pick(e, LLVMIntNE, and32(e, k, bit), 0, found[2 * p + 1], found[2 * p]);
    return found[0];
}

/* words[k] in each lane, k below n */
static val look_up(struct emit *e, const char *name, const int32_t *from, unsigned n, val k)
{
    uint32_t words[128] = {0};
    val c[128];
    for (unsigned i = 0; i < n; i++) words[i] = (uint32_t)from[i], c[i] = k32(e, words[i]);
    if (is_vector(k) && emit_is(e, EMU_ISA_AVX512)) return permuted(e, words, n, k);
    val table = in_memory(e, name, e->t.i32, c, n);
    if (!is_vector(k)) return LLVMBuildLoad2(B, e->t.i32, emit_lane_of(e, e->t.i32, table, k), "");
    LLVMTypeRef v8 = LLVMTypeOf(k);
    val args[5] = {LLVMGetUndef(v8), table, k, LLVMConstAllOnes(v8), LLVMConstInt(e->t.i8, 4, 0)};
    return emit_intrinsic(e, "llvm.x86.avx2.gather.d.d.256", NULL, 0, args, 5);
}

/* Both words of each lane's column k. With AVX2 by one load a lane, which takes less time than gathers. */
static void look_up_pairs(struct emit *e, const char *name, uint32_t rows[2][128], unsigned n, val k, val found[2])
{
    val c[128];
    if (is_vector(k) && emit_is(e, EMU_ISA_AVX512)) {
        for (unsigned w = 0; w < 2; w++) found[w] = permuted(e, rows[w], n, k);
        return;
    }
    for (unsigned i = 0; i < n; i++) c[i] = k64(e, rows[0][i] | (uint64_t)rows[1][i] << 32);
    val table = in_memory(e, name, e->t.i64, c, n);
    if (!is_vector(k)) {
        val both = LLVMBuildLoad2(B, e->t.i64, emit_lane_of(e, e->t.i64, table, k), "");
        found[0] = LLVMBuildTrunc(B, both, e->t.i32, "");
        found[1] = LLVMBuildTrunc(B, LLVMBuildLShr(B, both, k64(e, 32), ""), e->t.i32, "");
        return;
    }
    LLVMTypeRef four = LLVMVectorType(e->t.f64, 4);
    val room = emit_room(e, 0), part[2] = {LLVMGetPoison(four), LLVMGetPoison(four)}; /* lanes 0, 1, 4, 5; the others */
    LLVMSetAlignment(LLVMBuildStore(B, k, room), 32);
    for (unsigned i = 0; i < 8; i++) {
        val at = LLVMBuildLoad2(B, e->t.i32, emit_lane_of(e, e->t.i32, room, k32(e, i)), "");
        LLVMSetVolatile(at, 1); /* taken out of the vector it is slower */
        val two = LLVMBuildLoad2(B, e->t.f64, emit_lane_of(e, e->t.f64, table, at), ""), *to = &part[i / 2 & 1];
        *to = LLVMBuildInsertElement(B, *to, two, k32(e, (i & 1) + i / 4 * 2), "");
    }
    for (unsigned w = 0; w < 2; w++) part[w] = LLVMBuildBitCast(B, part[w], LLVMTypeOf(k), "");
    for (unsigned w = 0; w < 2; w++) {
        val pick[8];
        for (unsigned i = 0; i < 8; i++)
            pick[i] = k32(e, w + 2 * (i & 1) + 8 * (i / 2 & 1) + 4 * (i / 4)); /* as the processor shuffles */
        found[w] = LLVMBuildShuffleVector(B, part[0], part[1], LLVMConstVector(pick, 8), "");
    }
}

/* ---- the sum ------------------------------------------------------------------------------------------------- */

/* Products of words (of bytes, the first's without a sign) that lie in one double word (word), added */
static val products(struct emit *e, bool of_bytes, val a, val b)
{
    unsigned n = 4 * lanes_of_register(e);
    LLVMTypeRef t = of_bytes ? LLVMVectorType(e->t.i8, n) : LLVMVectorType(e->t.i16, n / 2);
    val args[2] = {LLVMBuildBitCast(B, a, t, ""), LLVMBuildBitCast(B, b, t, "")};
    const char *name = emit_is(e, EMU_ISA_AVX512)
                           ? of_bytes ? "llvm.x86.avx512.pmaddubs.w.512" : "llvm.x86.avx512.pmaddw.d.512"
                       : of_bytes ? "llvm.x86.avx2.pmadd.ub.sw"
                                  : "llvm.x86.avx2.pmadd.wd";
    return LLVMBuildBitCast(B, emit_intrinsic(e, name, NULL, 0, args, 2), LLVMTypeOf(a), "");
}

/* Byte n of each word in all four */
static val byte_of(struct emit *e, val x, unsigned n)
{
    LLVMTypeRef t = LLVMVectorType(e->t.i8, 4 * lanes_of_register(e));
    val pick[64];
    for (unsigned i = 0; i < LLVMGetVectorSize(t); i++) pick[i] = k32(e, (i & ~3u) + n);
    val r = LLVMBuildShuffleVector(B, LLVMBuildBitCast(B, x, t, ""), LLVMGetPoison(t),
                                   LLVMConstVector(pick, LLVMGetVectorSize(t)), "");
    return LLVMBuildBitCast(B, r, LLVMTypeOf(x), "");
}

/* mufu_square(y >> 6), where bits above these 17 do not matter. In vectors, with half = high >> 1 and b its lowest bit
 * all is 2^6 times as much: 128 * half * half, 128 * b * half, and for bits i from 2 to 8 half without its low 8 - i
 * bits times 2^i-2; the last eight are products of bytes. */
static val square(struct emit *e, val y)
{
    if (!is_vector(y)) {
        val high = and32(e, shr(e, y, 15), 255), sum = shr(e, LLVMBuildMul(B, high, high, ""), 1), zero = like(e, y, 0);
        for (unsigned i = 2; i <= 8; i++)
            sum = LLVMBuildAdd(B, sum, pick(e, LLVMIntNE, and32(e, y, 64u << i), 0, shr(e, high, 9 - i), zero), "");
        return sum;
    }
    val low = byte_of(e, y, 1), half = byte_of(e, y, 2);
    val some = products(e, true, and32(e, low, 0x08102040), and32(e, half, 0x787c7e7f)),
        others = products(e, true, and32(e, low, 0x80010204), and32(e, half, 0x7f406070)), one = and32(e, half, 0x7f),
        own = products(e, false, one, one);
    LLVMTypeRef words = LLVMVectorType(e->t.i16, 2 * lanes_of_register(e));
    val all = LLVMBuildAdd(B, LLVMBuildBitCast(B, some, words, ""), LLVMBuildBitCast(B, others, words, ""), "");
    all = products(e, false, LLVMBuildBitCast(B, all, LLVMTypeOf(y), ""), like(e, y, 0x10001));
    return LLVMBuildAdd(B, shr(e, all, 6), shl(e, own, 1), "");
}

/* As `products` of words; a scalar's */
static val product_of_halves(struct emit *e, val a, val b)
{
    if (is_vector(a)) return products(e, false, a, b);
    val sixteen = like(e, a, 16), low[2] = {a, b}, high[2] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        high[i] = LLVMBuildAShr(B, high[i], sixteen, "");
        low[i] = LLVMBuildAShr(B, shl(e, low[i], 16), sixteen, "");
    }
    return LLVMBuildAdd(B, LLVMBuildMul(B, low[0], low[1], ""), LLVMBuildMul(B, high[0], high[1], ""), "");
}

/* t >> S; y: x << 6 where x is that of the square */
static val sum(struct emit *e, const struct table *t, val k, val x, val y)
{
    uint32_t rows[2][128] = {{0}};
    val c[2];
    for (unsigned i = 0; i < t->n; i++) {
        int32_t d = t->row[1][i] - t->near * (1 << 13), c2 = t->row[2][i] * (1 << t->c);
        rows[0][i] = (uint32_t)t->row[0][i] << (t->a - 13);
        rows[1][i] = ((uint32_t)d & 0xffff) | (uint32_t)c2 << 16;
    }
    look_up_pairs(e, t->name, rows, t->n, k, c);
    val both = LLVMBuildOr(B, and32(e, x, 0x1fff), shl(e, square(e, y), 16), "");
    val low = LLVMBuildAdd(B, product_of_halves(e, c[1], both), like(e, x, t->bias), ""),
        high = product_of_halves(e, c[1], shr(e, x, 13)), near = LLVMBuildMul(B, x, like(e, x, (uint32_t)t->near), "");
    val all = LLVMBuildAdd(B, LLVMBuildAdd(B, c[0], near, ""), high, "");
    all = LLVMBuildAdd(B, all, LLVMBuildAShr(B, low, like(e, x, 13), ""), "");
    return shr(e, all, t->s - 13);
}

/* t as a double: every step is exact. c1 and c2 share a word where they fit: 20 and 12 bits. */
static val sum_double(struct emit *e, const struct table *t, val k, val x)
{
    uint32_t rows[2][128] = {{0}};
    val c[3];
    bool fit = true;
    for (unsigned i = 0; i < t->n; i++) {
        int32_t c1 = t->row[1][i], c2 = t->row[2][i];
        fit = fit && c1 >= -(1 << 19) && c1 < 1 << 19 && c2 >= -(1 << 11) && c2 < 1 << 11;
        rows[0][i] = (uint32_t)t->row[0][i];
        rows[1][i] = (uint32_t)c1 << 12 | ((uint32_t)c2 & 0xfff);
    }
    for (unsigned i = 0; i < t->n && !fit; i++) rows[1][i] = (uint32_t)t->row[1][i];
    look_up_pairs(e, t->name, rows, t->n, k, c);
    if (fit) {
        val twenty = like(e, k, 20), twelve = like(e, k, 12);
        c[2] = LLVMBuildAShr(B, LLVMBuildShl(B, c[1], twenty, ""), twenty, "");
        c[1] = LLVMBuildAShr(B, c[1], twelve, "");
    } else
        c[2] = look_up(e, "mufu.c2", t->row[2], t->n, k);
    val sq = to_double(e, shl(e, square(e, shl(e, x, 6)), t->c));
    val wide = fma_of(e, to_double(e, c[0]), dlike(e, x, (double)(1u << t->a)), dlike(e, x, t->bias));
    return fma_of(e, to_double(e, c[1]), to_double(e, x), fma_of(e, to_double(e, c[2]), sq, wide));
}

/* ---- of usual operands, in scalars, too ------------------------------------------------------------------------ */

/* Of exponents 1 to 252 */
static val usual_rcp(struct emit *e, val u)
{
    val t = sum(e, &t_rcp, and32(e, shr(e, u, 16), 127), and32(e, u, 0xffff), shl(e, u, 7));
    val r = LLVMBuildSub(B, LLVMBuildAdd(B, t, like(e, u, 252u << 23), ""), and32(e, u, 0x7f800000), "");
    return LLVMBuildOr(B, r, and32(e, u, 0x80000000), "");
}

/* Both roots are of positive numbers from 2^-126 on. The exponent that belongs to index and x is one more, `up` has it
 * above 24 bits of both. */
static val up_one(struct emit *e, val u)
{
    return LLVMBuildAdd(B, u, like(e, u, MUFU_ONE), "");
}
static val usual_rsq(struct emit *e, val u)
{
    val up = up_one(e, u), t = sum(e, &t_rsq, and32(e, shr(e, up, 17), 127), and32(e, u, 0x1ffff), shl(e, u, 6));
    val r = LLVMBuildSub(B, LLVMBuildAdd(B, t, like(e, u, 189u << 23), ""), and32(e, shr(e, up, 1), 0x7f800000), "");
    val even = LLVMBuildICmp(B, LLVMIntEQ, and32(e, up, 0xffffff), like(e, u, 0), ""); /* 2, not what is less by 1 */
    return LLVMBuildSub(B, r, LLVMBuildSExt(B, even, LLVMTypeOf(u), ""), "");
}
static val usual_sqrt(struct emit *e, val u)
{
    val up = up_one(e, u), t = sum(e, &t_sqrt, and32(e, shr(e, up, 17), 127), and32(e, u, 0x1ffff), shl(e, u, 6));
    return LLVMBuildAdd(B, LLVMBuildAdd(B, t, like(e, u, 62u << 23), ""), and32(e, shr(e, up, 1), 0x7f800000), "");
}

/* Of a number with 23 bits behind the point, as its whole part and these */
static val ex2_of(struct emit *e, val whole, val f)
{
    val t = sum(e, &t_ex2, shr(e, f, 17), and32(e, f, 0x1ffff), shl(e, f, 6));
    return LLVMBuildAdd(B, LLVMBuildAdd(B, whole, like(e, f, 126u << 23), ""), t, "");
}
/* Vectors of -126 to 126, these left out. Below 0 the fixed-point number is a one's complement, unless it is whole: its
 * bits behind the point are less by one, if any is set. */
static val usual_ex2(struct emit *e, val u)
{
    bool wide = emit_is(e, EMU_ISA_AVX512);
    val cut[4] = {LLVMBuildFMul(B, as_float(e, u), flike(e, u, 0x1p23), ""), like(e, u, 0), LLVMConstAllOnes(e->t.i16),
                  k32(e, 4)}; /* MXCSR as it is */
    val v = wide ? emit_intrinsic(e, "llvm.x86.avx512.mask.cvttps2dq.512", NULL, 0, cut, 4)
                 : emit_intrinsic(e, "llvm.x86.avx.cvtt.ps2dq.256", NULL, 0, cut, 1);
    val part = and32(e, v, 0x7fffff), whole = LLVMBuildSub(B, v, part, "");
    LLVMTypeRef t = LLVMTypeOf(v);
    val two[2] = {LLVMBuildAdd(B, part, LLVMBuildAShr(B, v, like(e, v, 31), ""), ""), like(e, v, 0)};
    return ex2_of(e, whole, emit_intrinsic(e, "llvm.smax", &t, 1, two, 2));
}

struct mufu_usual emit_mufu_usual(enum mg_op op)
{
    switch (op) {
    case MG_OP_ex2:
        return (struct mufu_usual){usual_ex2, 0x80000000, 0, 0x42fc0000};
    case MG_OP_rcp:
        return (struct mufu_usual){usual_rcp, 0x80000000, MUFU_ONE, 252 * MUFU_ONE};
    case MG_OP_rsqrt:
        return (struct mufu_usual){usual_rsq, 0, MUFU_ONE, 254 * MUFU_ONE};
    case MG_OP_sqrt:
        return (struct mufu_usual){usual_sqrt, 0, MUFU_ONE, 254 * MUFU_ONE};
    default:
        return (struct mufu_usual){0};
    }
}

/* ---- of any operand ---------------------------------------------------------------------------------------------- */

static val rcp(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), zero = like(e, u, 0);
    val r = usual_rcp(e, a);
    r = pick(e, LLVMIntULT, a, MUFU_ONE, like(e, u, MUFU_INF), pick(e, LLVMIntSLT, r, MUFU_ONE, zero, r));
    return pick(e, LLVMIntUGT, a, MUFU_INF, like(e, u, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
}

static val rsq(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), r = pick(e, LLVMIntEQ, a, MUFU_INF, like(e, u, 0), usual_rsq(e, a));
    r = pick(e, LLVMIntUGT, u, MUFU_INF, like(e, u, NAN32), r);
    val infinite = LLVMBuildOr(B, like(e, u, MUFU_INF), and32(e, u, 0x80000000), "");
    return pick(e, LLVMIntULT, a, MUFU_ONE, infinite, r);
}

static val root(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), inf = like(e, u, MUFU_INF);
    val r = pick(e, LLVMIntUGT, u, MUFU_INF, like(e, u, NAN32), pick(e, LLVMIntEQ, a, MUFU_INF, inf, usual_sqrt(e, a)));
    return pick(e, LLVMIntULT, a, MUFU_ONE, and32(e, u, 0x80000000), r);
}

/* max(0, x), at most top */
static val clamped(struct emit *e, val x, uint32_t top)
{
    val zero = like(e, x, 0);
    return pick(e, LLVMIntSGT, x, 0, pick(e, LLVMIntSLT, x, top, x, like(e, x, top)), zero);
}
/* The significand, moved so that its point stands where exponent `at` has it; all but `left` bits above are lost */
static val fixed_point(struct emit *e, val a, uint32_t at, uint32_t left)
{
    val exp = shr(e, a, 23), m = LLVMBuildOr(B, and32(e, a, 0x7fffff), like(e, a, MUFU_ONE), "");
    val over = clamped(e, LLVMBuildSub(B, exp, like(e, a, at), ""), left),
        under = clamped(e, LLVMBuildSub(B, like(e, a, at), exp, ""), 31);
    return LLVMBuildLShr(B, LLVMBuildShl(B, m, over, ""), under, "");
}

static val ex2(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), zero = like(e, u, 0), size = fixed_point(e, a, 127, 7);
    val whole = pick(e, LLVMIntEQ, and32(e, size, 0x7fffff), 0, like(e, u, 1), zero);
    val value = pick(e, LLVMIntSLT, u, 0, LLVMBuildAdd(B, LLVMBuildNot(B, size, ""), whole, ""), size);
    val r = ex2_of(e, and32(e, value, 0xff800000), and32(e, value, 0x7fffff));
    r = pick(e, LLVMIntSLT, r, MUFU_ONE, zero, r);
    r = pick(e, LLVMIntUGE, a, 134u << 23, pick(e, LLVMIntSLT, u, 0, zero, like(e, u, MUFU_INF)), r);
    return pick(e, LLVMIntUGT, a, MUFU_INF, like(e, u, NAN32), r);
}

static val lg2(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), m = and32(e, a, 0x7fffff);
    val t = sum_double(e, &t_lg2, shr(e, m, 17), and32(e, m, 0x1ffff)), one = dlike(e, u, 0x1p52);
    val part = LLVMBuildFSub(B, masked_double(e, LLVMBuildFAdd(B, t, one, ""), ~3ull), one, "");
    val exp = LLVMBuildSub(B, shr(e, a, 23), like(e, u, 127), "");
    val below = LLVMBuildICmp(B, LLVMIntSLT, exp, like(e, u, 0), "");
    val size = fma_of(e, to_double(e, exp), dlike(e, u, 0x1p38), part);
    size = LLVMBuildSelect(B, below, LLVMBuildFSub(B, dlike(e, u, -4), size, ""), size, "");
    val r = cut_float(e, pick(e, LLVMIntEQ, u, 127u << 23, dlike(e, u, 0), size), dlike(e, u, 0x1p-38));
    r = LLVMBuildOr(B, r, LLVMBuildSelect(B, below, like(e, u, 0x80000000), like(e, u, 0), ""), "");
    r = pick(e, LLVMIntUGT, u, MUFU_INF, like(e, u, NAN32), pick(e, LLVMIntEQ, u, MUFU_INF, like(e, u, MUFU_INF), r));
    return pick(e, LLVMIntULT, a, MUFU_ONE, like(e, u, 0x80000000 | MUFU_INF), r);
}

static val sincos(struct emit *e, val u, bool quarter)
{
    val a = and32(e, u, 0x7fffffff), q = fixed_point(e, a, 125, 31);
    if (quarter) q = LLVMBuildAdd(B, q, like(e, u, 1u << 23), "");
    val f = and32(e, pick(e, LLVMIntNE, and32(e, q, MUFU_ONE), 0, LLVMBuildNot(B, q, ""), q), 0x7fffff);
    val t = sum_double(e, &t_sin, shr(e, f, 17), and32(e, f, 0x1ffff)), sign = and32(e, shl(e, q, 7), 0x80000000);
    if (!quarter) sign = LLVMBuildXor(B, sign, and32(e, u, 0x80000000), "");
    val r = LLVMBuildOr(B, cut_float(e, t, dlike(e, u, 0x1p-37)), sign, "");
    return pick(e, LLVMIntUGE, a, MUFU_INF, like(e, u, NAN32), r);
}

static val tanh_of(struct emit *e, val u)
{
    static const int32_t octaves[] = {MUFU_TANH_OCTAVES};
    val a = and32(e, u, 0x7fffffff), exp = shr(e, a, 23);
    val near = clamped(e, LLVMBuildSub(B, exp, like(e, u, 119), ""), 10),
        o = look_up(e, "mufu.octaves", octaves, MG_COUNT_OF(octaves), near);
    val m = LLVMBuildLShr(B, and32(e, a, 0x7fffff), and32(e, shr(e, o, 8), 255), "");
    val k = LLVMBuildAdd(B, shr(e, o, 16), shr(e, m, 17), ""), x = and32(e, m, 0x1ffff),
        t = sum_double(e, &t_tanh, k, x);
    val last = LLVMBuildSub(B, like(e, u, 1023), and32(e, o, 255), "");
    last = LLVMBuildShl(B, LLVMBuildZExt(B, last, type_like(u, e->t.i64), ""), const_like(u, k64(e, 52)), "");
    val r = cut_float(e, t, cast_to(e, last, e->t.f64));
    r = pick(e, LLVMIntULT, exp, 119, a, pick(e, LLVMIntUGT, exp, 129, like(e, u, 127u << 23), r));
    return pick(e, LLVMIntUGT, a, MUFU_INF, like(e, u, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
}

val emit_mufu(struct emit *e, enum mg_op op, val u)
{
    switch (op) {
    case MG_OP_rcp:
        return rcp(e, u);
    case MG_OP_rsqrt:
        return rsq(e, u);
    case MG_OP_sqrt:
        return root(e, u);
    case MG_OP_ex2:
        return ex2(e, u);
    case MG_OP_lg2:
        return lg2(e, u);
    case MG_OP_tanh:
        return tanh_of(e, u);
    default:
        return sincos(e, u, op == MG_OP_cos);
    }
}

/* ---- mufu_rcp64 and mufu_rsq64 --------------------------------------------------------------------------------- */

static val rcp64(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), one = LLVMBuildOr(B, shl(e, and32(e, u, 0xfffff), 3), like(e, u, 127u << 23), ""),
        m = shr(e, usual_rcp(e, one), 3), zero = like(e, u, 0);
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, like(e, u, 2046 - 127), shr(e, a, 20), ""), 20), m, "");
    r = pick(e, LLVMIntSLT, r, 0x100000, zero, r);
    r = pick(e, LLVMIntULT, a, 0x100000, like(e, u, 0x7ff00000), pick(e, LLVMIntUGE, a, 0x7ff00000, zero, r));
    return pick(e, LLVMIntUGT, a, 0x7ff00000, like(e, u, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
}
static val rsq64(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), exp = LLVMBuildAdd(B, shr(e, a, 20), like(e, u, 1), "");
    val odd = LLVMBuildAdd(B, and32(e, exp, 1), like(e, u, 127), "");
    val m = usual_rsq(e, LLVMBuildOr(B, shl(e, and32(e, a, 0xfffff), 3), shl(e, odd, 23), ""));
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, like(e, u, 1023 + 512 - 127), shr(e, exp, 1), ""), 20), shr(e, m, 3),
                         "");
    r = pick(e, LLVMIntEQ, a, 0x7ff00000, like(e, u, 0), r);
    r = pick(e, LLVMIntUGT, u, 0x7ff00000, like(e, u, NAN32), r);
    val infinite = LLVMBuildOr(B, like(e, u, 0x7ff00000), and32(e, u, 0x80000000), "");
    return pick(e, LLVMIntULT, a, 0x100000, infinite, r);
}

val emit_mufu_double(struct emit *e, enum mg_op op, val u)
{
    return op == MG_OP_rcp ? rcp64(e, u) : rsq64(e, u);
}
