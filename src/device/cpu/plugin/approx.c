/* The approx family in line, with AVX2 or AVX-512: the bits of device/emu/mufu.h and alu_approx.h, in vectors and in
 * scalars. Tables are permuted with AVX-512, loaded lane by lane with AVX2. And rounding that is not to nearest, the
 * smaller and the greater of two, with AVX-512. Other CPUs call the emulator's functions.
 *
 * mufu.h computes t = (c0 << A) + c1 * x + (c2 * square << C) + bias. Where it cuts t >> S, only the carry of the
 * last three counts below 2^13: with x = 2^13 * high + low,
 *     t >> 13 = (c0 << A - 13) + c1 * high + ((c1 * low + (c2 * square << C) + bias) >> 13),
 * where no term has more than 31 bits. Where it needs the leading 24 bits of t, wherever these are, t is a double, as
 * there. */
#include "device/cpu/plugin/emit.h"

#include <stdio.h>

#include "device/emu/alu_form.h"
#include "device/emu/mufu.h"

#define B e->b

static bool is_vector(val x)
{
    return LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind;
}
/* v in every lane that x has */
static val like(struct emit *e, val x, uint32_t v)
{
    return emit_int(e, EMU_W, v, is_vector(x));
}
static val flike(struct emit *e, val x, double v)
{
    val c = LLVMConstReal(e->t.f32, v);
    return is_vector(x) ? emit_splat(e, c) : c;
}
static val dlike(struct emit *e, val x, double v)
{
    val c = LLVMConstReal(e->t.f64, v);
    return is_vector(x) ? emit_splat(e, c) : c;
}
static val and32(struct emit *e, val x, uint32_t m)
{
    return LLVMBuildAnd(B, x, like(e, x, m), "");
}
static val shr(struct emit *e, val x, uint32_t n)
{
    return LLVMBuildLShr(B, x, like(e, x, n), "");
}
static val shl(struct emit *e, val x, uint32_t n)
{
    return n ? LLVMBuildShl(B, x, like(e, x, n), "") : x;
}
static val pick(struct emit *e, LLVMIntPredicate p, val a, uint32_t b, val yes, val no)
{
    return LLVMBuildSelect(B, LLVMBuildICmp(B, p, a, like(e, a, b), ""), yes, no, "");
}
static val as_float(struct emit *e, val x)
{
    return LLVMBuildBitCast(B, x, is_vector(x) ? e->t.vf32 : e->t.f32, "");
}
static val as_bits(struct emit *e, val x)
{
    return LLVMBuildBitCast(B, x, is_vector(x) ? e->t.v32 : e->t.i32, "");
}
static val to_double(struct emit *e, val x) /* of a signed integer */
{
    return LLVMBuildSIToFP(B, x, is_vector(x) ? e->t.vf64 : e->t.f64, "");
}
static val fma_of(struct emit *e, val x, val y, val z)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    val args[3] = {x, y, z};
    return emit_intrinsic(e, "llvm.fma", &t, 1, args, 3);
}

/* n lanes from the n * h-th on */
static val part_of(struct emit *e, val v, unsigned n, unsigned h)
{
    val at[16];
    for (unsigned i = 0; i < n; i++) at[i] = LLVMConstInt(e->t.i32, i + n * h, 0);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, n), "");
}
static val joined(struct emit *e, val lo, val hi)
{
    val at[32];
    unsigned n = 2 * LLVMGetVectorSize(LLVMTypeOf(lo));
    for (unsigned i = 0; i < n; i++) at[i] = LLVMConstInt(e->t.i32, i, 0);
    return LLVMBuildShuffleVector(B, lo, hi, LLVMConstVector(at, n), "");
}

/* ---- rounding ------------------------------------------------------------------------------------------ */

static val doubled(struct emit *e, val x)
{
    return LLVMBuildFPExt(B, x, is_vector(x) ? e->t.vf64 : e->t.f64, "");
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

static val signs(struct emit *e, val x)
{
    val high = LLVMBuildLShr(B, LLVMBuildBitCast(B, x, is_vector(x) ? e->t.v64 : e->t.i64, ""),
                             emit_int(e, EMU_D, 32, is_vector(x)), "");
    return and32(e, LLVMBuildTrunc(B, high, is_vector(x) ? e->t.v32 : e->t.i32, ""), 0x80000000);
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
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned k = 0; k < n; k++) args[k] = part_of(e, x[k], 16, h);
        args[n] = LLVMConstInt(e->t.i32, 8 | mode, 0);
        half[h] = emit_intrinsic(e, name, NULL, 0, args, n + 1);
    }
    return joined(e, half[0], half[1]);
}

/* Vectors with AVX-512: -0 lies below 0, a number wins over a quiet NaN. */
val emit_smaller_or_greater(struct emit *e, bool greater, const val *x)
{
    val half[2];
    for (unsigned h = 0; h < 2; h++) {
        val args[6] = {part_of(e, x[0], 16, h),
                       part_of(e, x[1], 16, h),
                       LLVMConstInt(e->t.i32, 4 | greater, 0), /* the sign is the result's */
                       LLVMGetPoison(LLVMVectorType(e->t.f32, 16)),
                       LLVMConstInt(LLVMInt16TypeInContext(e->c), 0xffff, 0),
                       LLVMConstInt(e->t.i32, 4, 0)}; /* MXCSR as it is */
        half[h] = emit_intrinsic(e, "llvm.x86.avx512.mask.range.ps.512", NULL, 0, args, 6);
    }
    return joined(e, half[0], half[1]);
}

/* ---- MUFU ------------------------------------------------------------------------------------------------ */

/* A function's table in mufu_tables.c, and how its sum is made. */
struct table {
    const char *name;
    const int32_t *row[3];
    unsigned n;             /* columns */
    unsigned a, c, bias, s; /* as in the head */
};
#define TABLE(name, n, a, c, bias, s)                                                                                  \
    {                                                                                                                  \
#name, {mg_mufu_##name[0], mg_mufu_##name[1], mg_mufu_##name[2] }, n, a, c, bias, s                            \
    }
static const struct table t_rcp = TABLE(rcp, 128, 13, 0, 0x7e7, 15), t_rsq = TABLE(rsq, 128, 14, 2, 0x3fff, 16),
                          t_sqrt = TABLE(sqrt, 128, 15, 1, 0x7fff, 17), t_ex2 = TABLE(ex2, 64, 13, 0, 0x17e2, 15),
                          t_lg2 = TABLE(lg2, 64, 12, 1, 0x345, 0), t_sin = TABLE(sin, 64, 11, 0, 0, 0),
                          t_tanh = TABLE(tanh, 51, 15, 0, 0, 0);

/* The words in memory. */
static val table_in_memory(struct emit *e, const char *name, unsigned row, const uint32_t *words, unsigned n)
{
    char id[32];
    snprintf(id, sizeof id, "mufu.%s.%u", name, row);
    val g = LLVMGetNamedGlobal(e->m, id), c[128];
    if (g) return g;
    for (unsigned i = 0; i < n; i++) c[i] = LLVMConstInt(e->t.i32, words[i], 0);
    g = LLVMAddGlobal(e->m, LLVMArrayType2(e->t.i32, n), id);
    LLVMSetInitializer(g, LLVMConstArray2(e->t.i32, c, n));
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    return g;
}

static val gathered(struct emit *e, val table, val k)
{
    val quarter[4];
    for (unsigned q = 0; q < 4; q++) {
        LLVMTypeRef v8 = LLVMVectorType(e->t.i32, 8);
        val args[5] = {LLVMGetUndef(v8), table, part_of(e, k, 8, q), LLVMConstAllOnes(v8), LLVMConstInt(e->t.i8, 4, 0)};
        quarter[q] = emit_intrinsic(e, "llvm.x86.avx2.gather.d.d.256", NULL, 0, args, 5);
    }
    return joined(e, joined(e, quarter[0], quarter[1]), joined(e, quarter[2], quarter[3]));
}

static val permuted(struct emit *e, const uint32_t *words, unsigned n, val k)
{
    LLVMTypeRef v16 = LLVMVectorType(e->t.i32, 16);
    val half[2], part[8];
    for (unsigned p = 0; p < n / 16; p++) {
        val c[16];
        for (unsigned i = 0; i < 16; i++) c[i] = LLVMConstInt(e->t.i32, words[16 * p + i], 0);
        part[p] = LLVMConstVector(c, 16);
    }
    for (unsigned h = 0; h < 2; h++) {
        val at = part_of(e, k, 16, h), found[4];
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

/* words[k] in each lane, k below n */
static val look_up(struct emit *e, const char *name, unsigned row, const int32_t *from, unsigned n, val k)
{
    uint32_t words[128] = {0};
    unsigned all = n <= 32 ? 32 : n <= 64 ? 64 : 128;
    for (unsigned i = 0; i < n; i++) words[i] = (uint32_t)from[i];
    if (is_vector(k) && emit_is(e, EMU_ISA_AVX512)) return permuted(e, words, all, k);
    val table = table_in_memory(e, name, row, words, all), wide;
    if (is_vector(k)) return gathered(e, table, k);
    wide = LLVMBuildZExt(B, k, e->t.i64, "");
    return LLVMBuildLoad2(B, e->t.i32, LLVMBuildGEP2(B, e->t.i32, table, &wide, 1, ""), "");
}

/* Two words of a column, side by side in memory */
static val pairs_in_memory(struct emit *e, const char *name, const int32_t *const row[2], unsigned n)
{
    char id[32];
    snprintf(id, sizeof id, "mufu.%s.pairs", name);
    val g = LLVMGetNamedGlobal(e->m, id), c[128];
    if (g) return g;
    for (unsigned i = 0; i < n; i++) c[i] = k64(e, (uint32_t)row[0][i] | (uint64_t)(uint32_t)row[1][i] << 32);
    g = LLVMAddGlobal(e->m, LLVMArrayType2(e->t.i64, n), id);
    LLVMSetInitializer(g, LLVMConstArray2(e->t.i64, c, n));
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    return g;
}

/* Both words of each lane's column k by one load a lane, which take less time than gathers. */
static void look_up_pairs(struct emit *e, const char *name, const int32_t *const row[2], unsigned n, val k, val c[2])
{
    val table = pairs_in_memory(e, name, row, n), room = emit_room(e, 0), found[2][4];
    LLVMTypeRef four = LLVMVectorType(e->t.i64, 4), eight = LLVMVectorType(e->t.i32, 8);
    LLVMSetAlignment(LLVMBuildStore(B, k, room), 64);
    for (unsigned q = 0; q < 4; q++) {
        val part[2] = {LLVMGetPoison(four), LLVMGetPoison(four)}; /* lanes 0, 1, 4, 5; lanes 2, 3, 6, 7 */
        for (unsigned i = 0; i < 8; i++) {
            val at = LLVMBuildLoad2(B, e->t.i32, emit_lane_of(e, e->t.i32, room, k32(e, 8 * q + i)), "");
            LLVMSetVolatile(at, 1); /* taken out of the vector it is slower */
            val two = LLVMBuildLoad2(B, e->t.i64, emit_lane_of(e, e->t.i64, table, at), ""), *to = &part[i / 2 & 1];
            *to = LLVMBuildInsertElement(B, *to, two, k32(e, (i & 1) + i / 4 * 2), "");
        }
        for (unsigned w = 0; w < 2; w++) part[w] = LLVMBuildBitCast(B, part[w], eight, "");
        for (unsigned w = 0; w < 2; w++) {
            static const uint8_t from[8] = {0, 2, 8, 10, 4, 6, 12, 14};
            val pick[8];
            for (unsigned i = 0; i < 8; i++) pick[i] = k32(e, from[i] + w);
            found[w][q] = LLVMBuildShuffleVector(B, part[0], part[1], LLVMConstVector(pick, 8), "");
        }
    }
    for (unsigned w = 0; w < 2; w++)
        c[w] = joined(e, joined(e, found[w][0], found[w][1]), joined(e, found[w][2], found[w][3]));
}

/* c1 and c2 share a word where they fit: 20 and 12 bits. */
static void coefficients(struct emit *e, const struct table *t, val k, val c[3])
{
    int32_t shared[128];
    bool fit = true;
    for (unsigned i = 0; i < t->n; i++) {
        int32_t c1 = t->row[1][i], c2 = t->row[2][i];
        fit = fit && c1 >= -(1 << 19) && c1 < 1 << 19 && c2 >= -(1 << 11) && c2 < 1 << 11;
        shared[i] = (int32_t)((uint32_t)c1 << 12 | ((uint32_t)c2 & 0xfff));
    }
    const int32_t *const row[2] = {t->row[0], fit ? shared : t->row[1]};
    if (is_vector(k) && !emit_is(e, EMU_ISA_AVX512))
        look_up_pairs(e, t->name, row, t->n, k, c);
    else
        for (unsigned i = 0; i < 2; i++) c[i] = look_up(e, t->name, i, row[i], t->n, k);
    if (fit) {
        val both = c[1], n = like(e, k, 20);
        c[1] = LLVMBuildAShr(B, both, like(e, k, 12), "");
        c[2] = LLVMBuildAShr(B, LLVMBuildShl(B, both, n, ""), n, "");
    } else
        c[2] = look_up(e, t->name, 2, t->row[2], t->n, k);
}

/* The products of low words and of high words, added: words with a sign */
static val products_of_words(struct emit *e, val a, val b)
{
    bool wide = emit_is(e, EMU_ISA_AVX512);
    unsigned n = wide ? 16 : 8;
    LLVMTypeRef words = LLVMVectorType(LLVMInt16TypeInContext(e->c), 2 * n);
    val part[4];
    for (unsigned k = 0; k < 32 / n; k++) {
        val args[2] = {LLVMBuildBitCast(B, part_of(e, a, n, k), words, ""),
                       LLVMBuildBitCast(B, part_of(e, b, n, k), words, "")};
        part[k] = emit_intrinsic(e, wide ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd", NULL, 0, args, 2);
    }
    return wide ? joined(e, part[0], part[1]) : joined(e, joined(e, part[0], part[1]), joined(e, part[2], part[3]));
}

static val twice_in_words(struct emit *e, val x)
{
    return LLVMBuildOr(B, x, shl(e, x, 16), "");
}

/* For each bit i of x, 2 to 8, high >> 9 - i is added: of vectors for two bits at once, as the product of the bit with
 * high less its low 9 - i bits, 2^9 times as much. */
static val square(struct emit *e, val x)
{
    val high = shr(e, x, 9), sum = shr(e, LLVMBuildMul(B, high, high, ""), 1), zero = like(e, x, 0), all = NULL;
    for (unsigned i = 2; i <= 8 && !is_vector(x); i++)
        sum = LLVMBuildAdd(B, sum, pick(e, LLVMIntNE, and32(e, x, 1u << i), 0, shr(e, high, 9 - i), zero), "");
    if (!is_vector(x)) return sum;
    val h = twice_in_words(e, high), low = twice_in_words(e, and32(e, x, 0x1fc));
    for (unsigned i = 2; i <= 8; i += 2) {
        uint32_t keep = 0x8000 - (1u << (9 - i)), next = i < 8 ? 0x8000 - (1u << (8 - i)) : 0;
        uint32_t bits = i < 8 ? 1u << i | 2u << i << 16 : 1u << i;
        val both = products_of_words(e, and32(e, h, keep | next << 16), and32(e, low, bits));
        all = all ? LLVMBuildAdd(B, all, both, "") : both;
    }
    return LLVMBuildAdd(B, sum, shr(e, all, 9), "");
}

/* (t >> S) & 0x1ffffff */
static val sum(struct emit *e, const struct table *t, val k, val x, val sq)
{
    val c[3];
    coefficients(e, t, k, c);
    val low = LLVMBuildMul(B, c[1], and32(e, x, 0x1fff), ""), high = LLVMBuildMul(B, c[1], shr(e, x, 13), "");
    val rest =
        LLVMBuildAdd(B, LLVMBuildAdd(B, low, shl(e, LLVMBuildMul(B, c[2], sq, ""), t->c), ""), like(e, x, t->bias), "");
    val all = LLVMBuildAdd(B, shl(e, c[0], t->a - 13),
                           LLVMBuildAdd(B, high, LLVMBuildAShr(B, rest, like(e, x, 13), ""), ""), "");
    return and32(e, shr(e, all, t->s - 13), 0x1ffffff);
}

/* t as a double: every step is exact */
static val sum_double(struct emit *e, const struct table *t, val k, val x)
{
    val c[3];
    coefficients(e, t, k, c);
    val sq = to_double(e, shl(e, square(e, x), t->c));
    val wide = fma_of(e, to_double(e, c[0]), dlike(e, x, (double)(1u << t->a)), dlike(e, x, t->bias));
    return fma_of(e, to_double(e, c[1]), to_double(e, x), fma_of(e, to_double(e, c[2]), sq, wide));
}

static val masked_double(struct emit *e, val t, uint64_t mask)
{
    bool vec = is_vector(t);
    val bits = LLVMBuildBitCast(B, t, vec ? e->t.v64 : e->t.i64, "");
    bits = LLVMBuildAnd(B, bits, emit_int(e, EMU_D, mask, vec), "");
    return LLVMBuildBitCast(B, bits, vec ? e->t.vf64 : e->t.f64, "");
}
/* As mufu_cut_float: t * scale cut to 24 bits */
static val cut_float(struct emit *e, val t, val scale)
{
    val cut = LLVMBuildFMul(B, masked_double(e, t, ~0x1fffffffull), scale, "");
    return as_bits(e, LLVMBuildFPTrunc(B, cut, is_vector(t) ? e->t.vf32 : e->t.f32, ""));
}

static val rcp(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), x = and32(e, a, 0xffff), zero = like(e, u, 0);
    val t = sum(e, &t_rcp, and32(e, shr(e, a, 16), 127), x, square(e, shl(e, x, 1)));
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, like(e, u, 252), shr(e, a, 23), ""), 23), t, "");
    r = pick(e, LLVMIntSLT, r, MUFU_ONE, zero, r);
    r = pick(e, LLVMIntULT, a, MUFU_ONE, like(e, u, MUFU_INF), pick(e, LLVMIntUGE, a, MUFU_INF, zero, r));
    return pick(e, LLVMIntUGT, a, MUFU_INF, like(e, u, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
}

/* Of 1 to 2: its significand, from the 23 bits below it */
static val rcp_of_one(struct emit *e, val m)
{
    val x = and32(e, m, 0xffff), t = sum(e, &t_rcp, shr(e, m, 16), x, square(e, shl(e, x, 1)));
    return LLVMBuildAdd(B, t, like(e, m, 125u << 23), "");
}

/* mufu_rcp64 and mufu_rsq64: of upper words */
static val rcp64(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), m = shr(e, rcp_of_one(e, shl(e, and32(e, u, 0xfffff), 3)), 3),
        zero = like(e, u, 0);
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, like(e, u, 2046 - 127), shr(e, a, 20), ""), 20), m, "");
    r = pick(e, LLVMIntSLT, r, 0x100000, zero, r);
    r = pick(e, LLVMIntULT, a, 0x100000, like(e, u, 0x7ff00000), pick(e, LLVMIntUGE, a, 0x7ff00000, zero, r));
    return pick(e, LLVMIntUGT, a, 0x7ff00000, like(e, u, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
}
static val rsq(struct emit *e, val u);
static val rsq64(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), exp = LLVMBuildAdd(B, shr(e, a, 20), like(e, u, 1), "");
    val odd = LLVMBuildAdd(B, and32(e, exp, 1), like(e, u, 127), "");
    val m = rsq(e, LLVMBuildOr(B, shl(e, and32(e, a, 0xfffff), 3), shl(e, odd, 23), ""));
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, like(e, u, 1023 + 512 - 127), shr(e, exp, 1), ""), 20), shr(e, m, 3),
                         "");
    r = pick(e, LLVMIntEQ, a, 0x7ff00000, like(e, u, 0), r);
    r = pick(e, LLVMIntUGT, u, 0x7ff00000, like(e, u, NAN32), r);
    val infinite = LLVMBuildOr(B, like(e, u, 0x7ff00000), and32(e, u, 0x80000000), "");
    return pick(e, LLVMIntULT, a, 0x100000, infinite, r);
}

/* m and e as in mufu_rsq and mufu_sqrt */
static void root(struct emit *e, val a, val *m, val *exp)
{
    *exp = LLVMBuildAdd(B, shr(e, a, 23), like(e, a, 1), "");
    *m = LLVMBuildOr(B, and32(e, a, 0x7fffff), shl(e, and32(e, *exp, 1), 23), "");
}

static val rsq(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), m, exp;
    root(e, a, &m, &exp);
    val x = and32(e, m, 0x1ffff), t = sum(e, &t_rsq, shr(e, m, 17), x, square(e, x));
    t = pick(e, LLVMIntNE, m, 0, t, like(e, u, 2 * MUFU_ONE));
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildSub(B, like(e, u, 189), shr(e, exp, 1), ""), 23), t, "");
    r = pick(e, LLVMIntEQ, a, MUFU_INF, like(e, u, 0), r);
    r = pick(e, LLVMIntUGT, u, MUFU_INF, like(e, u, NAN32), r);
    val infinite = LLVMBuildOr(B, like(e, u, MUFU_INF), and32(e, u, 0x80000000), "");
    return pick(e, LLVMIntULT, a, MUFU_ONE, infinite, r);
}

static val root_of(struct emit *e, val u)
{
    val a = and32(e, u, 0x7fffffff), m, exp, inf = like(e, u, MUFU_INF);
    root(e, a, &m, &exp);
    val x = and32(e, m, 0x1ffff), t = sum(e, &t_sqrt, shr(e, m, 17), x, square(e, x));
    val r = LLVMBuildAdd(B, shl(e, LLVMBuildAdd(B, like(e, u, 62), shr(e, exp, 1), ""), 23), t, "");
    r = pick(e, LLVMIntUGT, u, MUFU_INF, like(e, u, NAN32), pick(e, LLVMIntEQ, a, MUFU_INF, inf, r));
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
    val f = and32(e, value, 0x7fffff), x = and32(e, f, 0x1ffff), t = sum(e, &t_ex2, shr(e, f, 17), x, square(e, x));
    val r = LLVMBuildAdd(B, LLVMBuildAdd(B, and32(e, value, 0xff800000), like(e, u, 126u << 23), ""), t, "");
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
        o = look_up(e, "octaves", 0, octaves, MG_COUNT_OF(octaves), near);
    val m = LLVMBuildLShr(B, and32(e, a, 0x7fffff), and32(e, shr(e, o, 8), 255), "");
    val k = LLVMBuildAdd(B, shr(e, o, 16), shr(e, m, 17), ""), x = and32(e, m, 0x1ffff),
        t = sum_double(e, &t_tanh, k, x);
    bool vec = is_vector(u);
    val last = LLVMBuildSub(B, like(e, u, 1023), and32(e, o, 255), "");
    last = LLVMBuildShl(B, LLVMBuildZExt(B, last, vec ? e->t.v64 : e->t.i64, ""), emit_int(e, EMU_D, 52, vec), "");
    val r = cut_float(e, t, LLVMBuildBitCast(B, last, vec ? e->t.vf64 : e->t.f64, ""));
    r = pick(e, LLVMIntULT, exp, 119, a, pick(e, LLVMIntUGT, exp, 129, like(e, u, 127u << 23), r));
    return pick(e, LLVMIntUGT, a, MUFU_INF, like(e, u, NAN32), LLVMBuildOr(B, r, and32(e, u, 0x80000000), ""));
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
    val wide = LLVMBuildFPExt(B, as_float(e, x), is_vector(x) ? e->t.vf64 : e->t.f64, "");
    return cut_float(e, LLVMBuildFMul(B, wide, dlike(e, x, 0x1.45f306p-3), ""), dlike(e, x, 1));
}

static val scaled_ex2(struct emit *e, val x)
{
    val low = LLVMBuildFCmp(B, LLVMRealOLT, as_float(e, x), flike(e, x, -126), ""),
        r = as_float(e, ex2(e, times(e, x, LLVMBuildSelect(B, low, flike(e, x, 0.5), flike(e, x, 1), ""))));
    return as_bits(e, LLVMBuildSelect(B, low, LLVMBuildFMul(B, r, r, ""), r, ""));
}
static val scaled_lg2(struct emit *e, val x)
{
    val small = is_small(e, x),
        r = as_float(e, lg2(e, times(e, x, LLVMBuildSelect(B, small, flike(e, x, 0x1p24), flike(e, x, 1), ""))));
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

/* x: operand as bits; ftz operands need no flushing, subnormal ones are zeros to MUFU. */
val emit_approx(struct emit *e, enum mg_op op, bool ftz, val x)
{
    val one = flike(e, x, 1), up, down;
    switch (op) {
    case MG_OP_ex2:
        return ftz ? ex2(e, x) : scaled_ex2(e, x);
    case MG_OP_lg2:
        return ftz ? lg2(e, x) : scaled_lg2(e, x);
    case MG_OP_sin:
    case MG_OP_cos:
        return sincos(e, turns(e, x), op == MG_OP_cos);
    case MG_OP_tanh:
        return tanh_of(e, ftz ? as_bits(e, emit_flushed(e, as_float(e, x))) : x);
    case MG_OP_rcp:
        if (ftz) return rcp(e, x);
        up = rcp_scale(e, x, true, false);
        return times(e, rcp(e, times(e, x, up)), up);
    default: {
        val (*fn)(struct emit *, val) = op == MG_OP_sqrt ? root_of : rsq;
        if (ftz) return fn(e, x);
        val small = is_small(e, x);
        up = LLVMBuildSelect(B, small, flike(e, x, 0x1p24), one, "");
        down = LLVMBuildSelect(B, small, flike(e, x, op == MG_OP_sqrt ? 0x1p-12 : 0x1p12), one, "");
        return times(e, fn(e, times(e, x, up)), down);
    }
    }
}

/* Of f64, as bits: the gross forms (.ftz) are functions of the upper word. A NaN: any where it is not gross. */
val emit_approx_double(struct emit *e, enum mg_op op, bool ftz, val x)
{
    bool vec = is_vector(x);
    LLVMTypeRef word = vec ? e->t.v32 : e->t.i32, real = vec ? e->t.vf64 : e->t.f64, bits = vec ? e->t.v64 : e->t.i64;
    val half = emit_int(e, EMU_D, 32, vec), v = LLVMBuildBitCast(B, x, real, ""), zero = dlike(e, x, 0), wide = v;
    val small = LLVMBuildFCmp(B, LLVMRealOLT, v, dlike(e, x, 0x1p-1022), "");
    if (!ftz) wide = LLVMBuildFMul(B, v, LLVMBuildSelect(B, small, dlike(e, x, 0x1p54), dlike(e, x, 1), ""), "");
    val u = LLVMBuildTrunc(B, LLVMBuildLShr(B, LLVMBuildBitCast(B, wide, bits, ""), half, ""), word, "");
    u = op == MG_OP_rcp ? rcp64(e, u) : rsq64(e, u);
    u = LLVMBuildShl(B, LLVMBuildZExt(B, u, bits, ""), half, "");
    if (ftz) return u;
    val y = LLVMBuildBitCast(B, u, real, ""), one = dlike(e, x, 1); /* as rsqrt_f64 */
    val rest = fma_of(e, wide, LLVMBuildFNeg(B, LLVMBuildFMul(B, y, y, ""), ""), one);
    val r = fma_of(e, fma_of(e, rest, dlike(e, x, 0.375), dlike(e, x, 0.5)), LLVMBuildFMul(B, y, rest, ""), y);
    r = LLVMBuildFMul(B, r, LLVMBuildSelect(B, small, dlike(e, x, 0x1p27), one, ""), "");
    r = LLVMBuildBitCast(B, r, bits, "");
    val inf = emit_int(e, EMU_D, 0x7ff0000000000000, vec), sign = emit_int(e, EMU_D, 1ull << 63, vec);
    r = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntEQ, x, inf, ""), emit_int(e, EMU_D, 0, vec), r, "");
    val low =
        LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOEQ, v, zero, ""),
                        LLVMBuildOr(B, LLVMBuildAnd(B, x, sign, ""), inf, ""), emit_int(e, EMU_D, NAN64, vec), "");
    return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, v, zero, ""), r, low, "");
}

/* div.approx and div.full, with a third operand the sum that decode_fuse.c makes of one: floats; ftz operands are
 * flushed. The product (or sum) that is left to do: its operands take the places of x. */
void emit_approx_quotient(struct emit *e, bool full, bool ftz, val *x)
{
    val y = as_bits(e, x[1]), scale = rcp_scale(e, y, full, ftz);
    x[1] = as_float(e, rcp(e, times(e, y, scale)));
    if (!ftz)
        x[0] = LLVMBuildFMul(B, x[0], scale, "");
    else if (full)
        x[0] = emit_flushed_result(e, MG_OP_mul, x[0], scale, NULL);
}
