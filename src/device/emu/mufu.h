/* The multi-function unit of NVIDIA GPUs, bit for bit: what MUFU.RCP, RSQ, SQRT, EX2, LG2, SIN, COS
 * and TANH give for any float. alu_approx.h builds PTX's approx family on top, as ptxas does.
 *
 * The unit cuts the significand into a table index and a 17-bit rest x and computes
 *     t = (c0 << A) + c1 * x + (c2 * square(x) << C) + bias
 * in integers, where square() drops the low bits of each partial product; the result is t without
 * its low bits, not rounded. (Shape: Oberman and Siu, ARITH 2005; the same constants serve from the
 * G80 on, as the nouveau project's envytools found.) Subnormal operands and results are zeros of
 * their sign (not for TANH). Here t is computed in double, where every step is exact: the same bits
 * on each CPU and vector ISA, and branch-free so that lane loops vectorise.
 *
 * Values are raw floats (uint32_t). Self-contained but for the bit casts of alu_priv.h.
 */
/* clang-format off */
#ifndef MG_DEVICE_EMU_MUFU_H
#define MG_DEVICE_EMU_MUFU_H

#include "device/emu/alu_priv.h"

extern const int32_t mg_mufu_rcp[3][128], mg_mufu_rsq[3][128], mg_mufu_sqrt[3][128];
extern const int32_t mg_mufu_ex2[3][64], mg_mufu_lg2[3][64], mg_mufu_sin[3][64], mg_mufu_tanh[3][51];

#define MUFU_INF 0x7f800000u
#define MUFU_ONE 0x800000u /* the significand 1.0 */

/* x * x / 2^19 for x < 2^17, each partial product cut: those of bits i and j with i + j >= 18 count. With x = 2^9 * high + low
 * these are all of high's own, none of low's, and twice those of high and low that reach 2^9. */
static inline uint32_t mufu_square(uint32_t x)
{
    uint32_t high = x >> 9, sum = 0;
#define PART(i) sum += (x & 1u << (i)) ? high >> (9 - (i)) : 0;
    PART(2) PART(3) PART(4) PART(5) PART(6) PART(7) PART(8)
#undef PART
    return (high * high >> 1) + sum;
}
/* (c0 << A) + c1 * x + (c2 * square << C) + bias; below 2^50 and exact. wide: 2^A, twice: 2^C. */
static inline double mufu_sum(int32_t c0, int32_t c1, int32_t c2, uint32_t x, uint32_t square, double wide, double twice, double bias)
{
    double linear = (double)c1 * (double)(int32_t)x, quadratic = (double)c2 * (double)(int32_t)square * twice;
    return (double)c0 * wide + bias + (linear + quadratic);
}
/* floor(t) >> shift for 0 <= t < 2^52 that is an integer */
static inline uint32_t mufu_cut(double t, unsigned shift)
{
    return (uint32_t)(bits64(t + 0x1p52) >> shift);
}
/* t * scale cut to 24 bits; t >= 0 and an integer */
static inline uint32_t mufu_cut_float(double t, double scale)
{
    return bits32((float)(float64(bits64(t) & ~0x1fffffffull) * scale));
}

static inline uint32_t mufu_rcp(uint32_t u)
{
    uint32_t sign = u & 0x80000000, a = u & 0x7fffffff, k = a >> 16 & 127, x = a & 0xffff;
    double t = mufu_sum(mg_mufu_rcp[0][k], mg_mufu_rcp[1][k], mg_mufu_rcp[2][k], x, mufu_square(x << 1), 0x1p13, 1.0, 0x7e7);
    uint32_t r = ((252 - (a >> 23)) << 23) + (mufu_cut(t, 15) & 0x1ffffff);
    r = (int32_t)r < (int32_t)MUFU_ONE ? 0 : r;
    r = a < MUFU_ONE ? MUFU_INF : a >= MUFU_INF ? 0 : r;
    return a > MUFU_INF ? NAN32 : r | sign;
}
/* Both roots: the index is the exponent's low bit and six bits of the significand. */
static inline uint32_t mufu_rsq(uint32_t u)
{
    uint32_t a = u & 0x7fffffff, e = (a >> 23) + 1, m = (a & 0x7fffff) | (e & 1) << 23, k = m >> 17, x = m & 0x1ffff;
    double t = mufu_sum(mg_mufu_rsq[0][k], mg_mufu_rsq[1][k], mg_mufu_rsq[2][k], x, mufu_square(x), 0x1p14, 4.0, 0x3fff);
    uint32_t cut = mufu_cut(t, 16) & 0x1ffffff;
    uint32_t r = ((189 - (e >> 1)) << 23) + (m ? cut : 2 * MUFU_ONE);
    r = a == MUFU_INF ? 0 : r;
    r = u > MUFU_INF ? NAN32 : r;
    return a < MUFU_ONE ? MUFU_INF | (u & 0x80000000) : r;
}
static inline uint32_t mufu_sqrt(uint32_t u)
{
    uint32_t a = u & 0x7fffffff, e = (a >> 23) + 1, m = (a & 0x7fffff) | (e & 1) << 23, k = m >> 17, x = m & 0x1ffff;
    double t = mufu_sum(mg_mufu_sqrt[0][k], mg_mufu_sqrt[1][k], mg_mufu_sqrt[2][k], x, mufu_square(x), 0x1p15, 2.0, 0x7fff);
    uint32_t r = ((62 + (e >> 1)) << 23) + (mufu_cut(t, 17) & 0x1ffffff);
    r = u > MUFU_INF ? NAN32 : a == MUFU_INF ? MUFU_INF : r;
    return a < MUFU_ONE ? u & 0x80000000 : r;
}
static inline uint32_t mufu_ex2(uint32_t u)
{
    uint32_t a = u & 0x7fffffff, e = a >> 23, m = (a & 0x7fffff) | MUFU_ONE;
    uint32_t left = e > 127 ? e - 127 : 0, right = e < 127 ? 127 - e : 0;
    uint32_t size = m << (left < 7 ? left : 7) >> (right < 31 ? right : 31); /* |u| with 23 fraction bits, cut */
    uint32_t value = u >> 31 ? ~size + !(size & 0x7fffff) : size;            /* below 0: one's complement */
    uint32_t f = value & 0x7fffff, k = f >> 17, x = f & 0x1ffff;
    double t = mufu_sum(mg_mufu_ex2[0][k], mg_mufu_ex2[1][k], mg_mufu_ex2[2][k], x, mufu_square(x), 0x1p13, 1.0, 0x17e2);
    uint32_t r = (value & 0xff800000) + (126u << 23) + (mufu_cut(t, 15) & 0x1ffffff);
    r = (int32_t)r < (int32_t)MUFU_ONE ? 0 : r;
    r = e >= 134 ? (u >> 31 ? 0 : MUFU_INF) : r;
    return a > MUFU_INF ? NAN32 : r;
}
static inline uint32_t mufu_lg2(uint32_t u)
{
    uint32_t a = u & 0x7fffffff, m = a & 0x7fffff, k = m >> 17, x = m & 0x1ffff;
    double t = mufu_sum(mg_mufu_lg2[0][k], mg_mufu_lg2[1][k], mg_mufu_lg2[2][k], x, mufu_square(x), 0x1p12, 2.0, 0x345);
    double part = float64(bits64(t + 0x1p52) & ~3ull) - 0x1p52; /* 36 fraction bits, here 38 */
    double whole = (double)((int32_t)(a >> 23) - 127) * 0x1p38;
    double size = whole < 0 ? -(whole + part) - 4 : whole + part; /* below 0: one's complement */
    uint32_t r = mufu_cut_float(u == 127u << 23 ? 0 : size, 0x1p-38) | (whole < 0 ? 0x80000000 : 0);
    r = u > MUFU_INF ? NAN32 : u == MUFU_INF ? MUFU_INF : r;
    return a < MUFU_ONE ? 0x80000000 | MUFU_INF : r;
}
/* sin of 2 pi turns (quarter 0) or cos (quarter 1) */
static inline uint32_t mufu_sincos(uint32_t u, uint32_t quarter)
{
    uint32_t a = u & 0x7fffffff, e = a >> 23, m = (a & 0x7fffff) | MUFU_ONE;
    uint32_t left = e > 125 ? e - 125 : 0, right = e < 125 ? 125 - e : 0;
    uint32_t q = (m << (left < 31 ? left : 31) >> (right < 31 ? right : 31)) + (quarter << 23); /* quarter turns, 23 fraction bits */
    uint32_t f = (q & MUFU_ONE ? ~q : q) & 0x7fffff, k = f >> 17, x = f & 0x1ffff;
    double t = mufu_sum(mg_mufu_sin[0][k], mg_mufu_sin[1][k], mg_mufu_sin[2][k], x, mufu_square(x), 0x1p11, 1.0, 0);
    uint32_t sign = (quarter ? 0 : u & 0x80000000) ^ (q << 7 & 0x80000000);
    return a >= MUFU_INF ? NAN32 : mufu_cut_float(t, 0x1p-37) | sign;
}
/* Pieces from exponent 119 (2^-8) to 129: below, tanh x is x, above it is 1. Of each octave:
 * first piece << 16 | low bits of the significand not used << 8 | 2^-n is the last bit of t */
#define MUFU_OCTAVE(first, drop, n) (first) << 16 | (drop) << 8 | (n)
#define MUFU_TANH_OCTAVES                                                                          \
    MUFU_OCTAVE(0, 6, 44), MUFU_OCTAVE(1, 6, 43), MUFU_OCTAVE(2, 6, 42), MUFU_OCTAVE(3, 5, 41),    \
        MUFU_OCTAVE(5, 5, 40), MUFU_OCTAVE(7, 4, 39), MUFU_OCTAVE(11, 4, 38), MUFU_OCTAVE(15, 4, 37), \
        MUFU_OCTAVE(19, 3, 37), MUFU_OCTAVE(27, 2, 39), MUFU_OCTAVE(43, 3, 37)
static inline uint32_t mufu_tanh(uint32_t u)
{
    static const int32_t octaves[11] = {MUFU_TANH_OCTAVES};
    uint32_t a = u & 0x7fffffff, e = a >> 23, near = e < 119 ? 119 : e > 129 ? 129 : e, o = (uint32_t)octaves[near - 119];
    uint32_t m = (a & 0x7fffff) >> (o >> 8 & 255), k = (o >> 16) + (m >> 17), x = m & 0x1ffff;
    double t = mufu_sum(mg_mufu_tanh[0][k], mg_mufu_tanh[1][k], mg_mufu_tanh[2][k], x, mufu_square(x), 0x1p15, 1.0, 0);
    uint32_t r = mufu_cut_float(t, float64((uint64_t)(1023 - (o & 255)) << 52));
    r = e < 119 ? a : e > 129 ? 127u << 23 : r;
    return a > MUFU_INF ? NAN32 : r | (u & 0x80000000);
}

/* RCP64H and RSQ64H: the upper words of doubles, 20 bits of significand, cut; from the tables above. */
static inline uint32_t mufu_rcp64(uint32_t u)
{
    uint32_t sign = u & 0x80000000, a = u & 0x7fffffff, m = mufu_rcp((u & 0xfffff) << 3 | 127u << 23);
    uint32_t r = ((2046 + 1023 - 127 - (a >> 20)) << 20) - (1023u << 20) + (m >> 3);
    r = (int32_t)r < 0x100000 ? 0 : r;
    r = a < 0x100000 ? 0x7ff00000 : a >= 0x7ff00000 ? 0 : r;
    return a > 0x7ff00000 ? NAN32 : r | sign;
}
static inline uint32_t mufu_rsq64(uint32_t u)
{
    uint32_t a = u & 0x7fffffff, e = (a >> 20) + 1, m = mufu_rsq((a & 0xfffff) << 3 | (127 + (e & 1)) << 23);
    uint32_t r = ((1023 + 512 - 127 - (e >> 1)) << 20) + (m >> 3);
    r = a == 0x7ff00000 ? 0 : r;
    r = u > 0x7ff00000 ? NAN32 : r;
    return a < 0x100000 ? 0x7ff00000 | (u & 0x80000000) : r;
}

#endif
