/* f16, f16x2, bf16 and bf16x2 arithmetic. Built once per vector ISA.
 *
 * Every operation is computed so that one rounding remains: sums and products of f16 and sums of
 * bf16 in float (24 bits are at least twice 11 plus 2: the second rounding is harmless), products
 * of bf16 in double, every fma with a sticky last bit. ex2 and tanh cut the float's result. NaN results are 0x7fff.
 */
/* clang-format off */
#include "device/emu/alu_approx.h"
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

#define F(v) half_to_float(v)
#define B(v) bf16_to_float(v)
typedef uint32_t h16; /* 16 bits, zero-extended */

/* x * y + z of f16 values: the product is exact in float, so is the error of the sum, which makes the
 * last bit sticky. */
static inline float fma_odd_f16(h16 x, h16 y, h16 z)
{
    float p = F(x) * F(y), c = F(z), s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
    uint32_t u = bits32(s), away = (e < 0.0f) != (s < 0.0f), odd = e != 0.0f ? (u - away) | 1 : u;
    return e == e ? float32(odd) : s;
}
static inline h16 bf16_of_double(double x) { return float_to_bf16(double_to_float_odd(x)); }

static inline h16 add_f16(h16 x, h16 y) { return float_to_half(F(x) + F(y)); }
static inline h16 sub_f16(h16 x, h16 y) { return float_to_half(F(x) - F(y)); }
static inline h16 mul_f16(h16 x, h16 y) { return float_to_half(F(x) * F(y)); }
static inline h16 fma_f16(h16 x, h16 y, h16 z) { return float_to_half(fma_odd_f16(x, y, z)); }
static inline h16 add_bf16(h16 x, h16 y) { return float_to_bf16(B(x) + B(y)); }
static inline h16 sub_bf16(h16 x, h16 y) { return float_to_bf16(B(x) - B(y)); }
static inline h16 mul_bf16(h16 x, h16 y) { return bf16_of_double((double)B(x) * (double)B(y)); }
static inline h16 fma_bf16(h16 x, h16 y, h16 z) { return bf16_of_double(fma_odd(B(x), B(y), B(z))); }

/* .ftz: what rounds, to 11 bits whatever the exponent, to less than 2^-14 is zero */
static inline h16 flushed(float x)
{
    h16 sign = bits32(x) >> 16 & 0x8000;
    return float32(bits32(x) & 0x7fffffff) < 0x1p-14f - 0x1p-26f ? sign : float_to_half(x);
}
static inline h16 add_f16z(h16 x, h16 y) { return flushed(F(x) + F(y)); }
static inline h16 sub_f16z(h16 x, h16 y) { return flushed(F(x) - F(y)); }
static inline h16 mul_f16z(h16 x, h16 y) { return flushed(F(x) * F(y)); }
static inline h16 fma_f16z(h16 x, h16 y, h16 z) { return flushed(fma_odd_f16(x, y, z)); }

/* What is done to a result: nothing, .ftz, .sat, .relu */
static inline h16 post_n(h16 r) { return r; }
static inline h16 post_z(h16 r) { return flush16(r); }
static inline h16 sat_f16(h16 r) { return r > 0x7c00 ? 0 : r > 0x3c00 ? 0x3c00 : r; } /* negative, NaN: 0 */
static inline h16 relu(h16 r) { return r & 0x8000 ? 0 : r; } /* a NaN is 0x7fff here */

#define LOW(v) ((v) & 0xffff)
#define HIGH(v) ((v) >> 16)
#define ZL(v) flush16(LOW(v))
#define ZH(v) flush16(HIGH(v))
#define SET1 uint32_t x = a[i]
#define SET2 SET1; uint32_t y = b[i]
#define SET3 SET2; uint32_t z = c[i]
#define LANES(name, pointers, setup, expr)                                                 \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane32 *d = AT(lane32, o->d);                                                      \
        pointers;                                                                          \
        ALU_RUN_SPLIT(lane32, setup, expr)                                                       \
    }
#define P1 const lane32 *a = AT(lane32, o->s[0])
#define P2 P1; const lane32 *b = AT(lane32, o->s[1])
#define P3 P2; const lane32 *c = AT(lane32, o->s[2])

/* op: function of 16-bit values; pre: L or Z, flushing; post: applied to the result. Defines the
 * scalar form NAME and the packed form NAME_x2. */
#define DEFINE1(name, op, pre, post)                                                       \
    LANES(name, P1, SET1, post(op(pre##L(x))))                                             \
    LANES(name##_x2, P1, SET1, post(op(pre##L(x))) | post(op(pre##H(x))) << 16)
#define DEFINE2(name, op, pre, post)                                                       \
    LANES(name, P2, SET2, post(op(pre##L(x), pre##L(y))))                                  \
    LANES(name##_x2, P2, SET2, post(op(pre##L(x), pre##L(y))) | post(op(pre##H(x), pre##H(y))) << 16)
#define DEFINE3(name, op, pre, post)                                                       \
    LANES(name, P3, SET3, post(op(pre##L(x), pre##L(y), pre##L(z))))                       \
    LANES(name##_x2, P3, SET3, post(op(pre##L(x), pre##L(y), pre##L(z))) | post(op(pre##H(x), pre##H(y), pre##H(z))) << 16)
#define KL LOW
#define KH HIGH

/* min and max on bits: order as sign-magnitude integers, which puts -0 below +0 */
static inline int32_t order16(h16 v) { return v & 0x8000 ? -(int32_t)(v & 0x7fff) - 1 : (int32_t)v; }
static inline bool nan_f16(h16 v) { return (v & 0x7fff) > 0x7c00; }
static inline bool nan_bf16(h16 v) { return (v & 0x7fff) > 0x7f80; }
#define MINMAX(T)                                                                          \
    static inline h16 number_##T(h16 r, h16 x, h16 y)                                      \
    {                                                                                      \
        h16 one = nan_##T(x) ? y : r;                                                      \
        one = nan_##T(y) ? x : one;                                                        \
        return nan_##T(one) ? NAN16 : one;                                                 \
    }                                                                                      \
    static inline h16 either_##T(h16 r, h16 x, h16 y) { return nan_##T(x) || nan_##T(y) ? NAN16 : r; } \
    static inline h16 signed_##T(h16 r, h16 x, h16 y) { return r == NAN16 ? r : (r & 0x7fff) | ((x ^ y) & 0x8000); } \
    static inline h16 min_##T(h16 x, h16 y) { return number_##T(order16(x) < order16(y) ? x : y, x, y); } \
    static inline h16 max_##T(h16 x, h16 y) { return number_##T(order16(x) > order16(y) ? x : y, x, y); } \
    static inline h16 minnan_##T(h16 x, h16 y) { return either_##T(order16(x) < order16(y) ? x : y, x, y); } \
    static inline h16 maxnan_##T(h16 x, h16 y) { return either_##T(order16(x) > order16(y) ? x : y, x, y); } \
    static inline h16 minxs_##T(h16 x, h16 y) { return signed_##T(min_##T(x & 0x7fff, y & 0x7fff), x, y); } \
    static inline h16 maxxs_##T(h16 x, h16 y) { return signed_##T(max_##T(x & 0x7fff, y & 0x7fff), x, y); } \
    static inline h16 minnanxs_##T(h16 x, h16 y) { return signed_##T(minnan_##T(x & 0x7fff, y & 0x7fff), x, y); } \
    static inline h16 maxnanxs_##T(h16 x, h16 y) { return signed_##T(maxnan_##T(x & 0x7fff, y & 0x7fff), x, y); }
MINMAX(f16)
MINMAX(bf16)

static inline h16 neg_f16(h16 v) { return nan_f16(v) ? NAN16 : v ^ 0x8000; }
static inline h16 abs_f16(h16 v) { return nan_f16(v) ? NAN16 : v & 0x7fff; }
static inline h16 neg_bf16(h16 v) { return nan_bf16(v) ? NAN16 : v ^ 0x8000; }
static inline h16 abs_bf16(h16 v) { return nan_bf16(v) ? NAN16 : v & 0x7fff; }
static inline h16 ex2_f16(h16 v) { return float_cut_half(ex2_z(F(v))); }
static inline h16 tanh_f16(h16 v) { return float_cut_half(tanh_n(F(v))); }
static inline h16 ex2_bf16(h16 v) { return bits32(ex2_z(B(v))) >> 16; }
static inline h16 tanh_bf16(h16 v) { return bits32(tanh_n(B(v))) >> 16; }
static inline h16 post_bz(h16 r) { return r & 0x7f80 ? r : r & 0x8000; }

/*    sources  name        op    type  key              function, flush, result */
#define MINMAX_LIST(M, T)                                                                  \
    M(2, h_min_##T, min, T, 0, min_##T, K, post_n) \
    M(2, h_max_##T, max, T, 0, max_##T, K, post_n) \
    M(2, h_minn_##T, min, T, K_NAN, minnan_##T, K, post_n) \
    M(2, h_maxn_##T, max, T, K_NAN, maxnan_##T, K, post_n) \
    M(2, h_minx_##T, min, T, K_XORSIGN | K_ABS, minxs_##T, K, post_n)                      \
    M(2, h_maxx_##T, max, T, K_XORSIGN | K_ABS, maxxs_##T, K, post_n)                      \
    M(2, h_minnx_##T, min, T, K_NAN | K_XORSIGN | K_ABS, minnanxs_##T, K, post_n)          \
    M(2, h_maxnx_##T, max, T, K_NAN | K_XORSIGN | K_ABS, maxnanxs_##T, K, post_n)          \
    M(1, h_neg_##T, neg, T, 0, neg_##T, K, post_n) \
    M(1, h_abs_##T, abs, T, 0, abs_##T, K, post_n)
#define ARITH_LIST(M, op, T, key)                                                          \
    M(2, h_##op##_##T, op, T, key, op##_##T, K, post_n) \
    M(2, h_##op##z_##T, op, T, (key) | K_FTZ, op##_##T##z, Z, post_n) \
    M(2, h_##op##s_##T, op, T, (key) | K_SAT, op##_##T, K, sat_##T)                        \
    M(2, h_##op##zs_##T, op, T, (key) | K_FTZ | K_SAT, op##_##T##z, Z, sat_##T)
#define HALF_LIST(M)                                                                       \
    ARITH_LIST(M, add, f16, K_RN) ARITH_LIST(M, sub, f16, K_RN) ARITH_LIST(M, mul, f16, K_RN) \
    M(3, h_fma_f16, fma, f16, K_RN, fma_f16, K, post_n) \
    M(3, h_fmaz_f16, fma, f16, K_RN | K_FTZ, fma_f16z, Z, post_n) \
    M(3, h_fmas_f16, fma, f16, K_RN | K_SAT, fma_f16, K, sat_f16)                          \
    M(3, h_fmazs_f16, fma, f16, K_RN | K_FTZ | K_SAT, fma_f16z, Z, sat_f16)               \
    M(3, h_fmar_f16, fma, f16, K_RN | K_RELU, fma_f16, K, relu)                            \
    M(3, h_fmazr_f16, fma, f16, K_RN | K_FTZ | K_RELU, fma_f16z, Z, relu)                 \
    MINMAX_LIST(M, f16)                                                                    \
    M(2, h_minz_f16, min, f16, K_FTZ, min_f16, Z, post_n) \
    M(2, h_maxz_f16, max, f16, K_FTZ, max_f16, Z, post_n) \
    M(2, h_minzn_f16, min, f16, K_FTZ | K_NAN, minnan_f16, Z, post_n)                      \
    M(2, h_maxzn_f16, max, f16, K_FTZ | K_NAN, maxnan_f16, Z, post_n)                      \
    M(2, h_minzx_f16, min, f16, K_FTZ | K_XORSIGN | K_ABS, minxs_f16, Z, post_n)           \
    M(2, h_maxzx_f16, max, f16, K_FTZ | K_XORSIGN | K_ABS, maxxs_f16, Z, post_n)           \
    M(2, h_minznx_f16, min, f16, K_FTZ | K_NAN | K_XORSIGN | K_ABS, minnanxs_f16, Z, post_n) \
    M(2, h_maxznx_f16, max, f16, K_FTZ | K_NAN | K_XORSIGN | K_ABS, maxnanxs_f16, Z, post_n) \
    M(1, h_negz_f16, neg, f16, K_FTZ, neg_f16, Z, post_n) \
    M(1, h_absz_f16, abs, f16, K_FTZ, abs_f16, Z, post_n) \
    M(1, h_ex2_f16, ex2, f16, K_APPROX, ex2_f16, K, post_n) \
    M(1, h_ex2z_f16, ex2, f16, K_APPROX | K_FTZ, ex2_f16, Z, post_z) \
    M(1, h_tanh_f16, tanh, f16, K_APPROX, tanh_f16, K, post_n)                             \
    M(2, h_add_bf16, add, bf16, K_RN, add_bf16, K, post_n) \
    M(2, h_sub_bf16, sub, bf16, K_RN, sub_bf16, K, post_n) \
    M(2, h_mul_bf16, mul, bf16, K_RN, mul_bf16, K, post_n)                                 \
    M(3, h_fma_bf16, fma, bf16, K_RN, fma_bf16, K, post_n) \
    M(3, h_fmar_bf16, fma, bf16, K_RN | K_RELU, fma_bf16, K, relu) \
    MINMAX_LIST(M, bf16)                                                                   \
    M(1, h_ex2_bf16, ex2, bf16, K_APPROX | K_FTZ, ex2_bf16, K, post_bz)                    \
    M(1, h_tanh_bf16, tanh, bf16, K_APPROX, tanh_bf16, K, post_n)

#define M_DEFINE(n, name, op, T, key, fn, pre, post) DEFINE##n(name, fn, pre, post)
HALF_LIST(M_DEFINE)

/* f32 arithmetic with a half-precision operand is not here: PTX has none before 8.6. */
#define S1_(T) T_(T)
#define S2_(T) T_(T), T_(T)
#define S3_(T) T_(T), T_(T), T_(T)
#define M_ROW(n, name, o_, T, k_, fn_, pre, post)                                          \
    {.op = MG_OP_##o_, .t = {T_(T)}, .dt = T_(T), .st = {S##n##_(T)}, .key = (k_), .fn = name}, \
    {.op = MG_OP_##o_, .t = {T_(T##x2)}, .dt = T_(T##x2), .st = {S##n##_(T##x2)}, .key = (k_), .fn = name##_x2},
static const struct alu_row rows[] = {HALF_LIST(M_ROW)};
const struct alu_table ALU_TABLE(alu_half) = {rows, MG_COUNT_OF(rows)};
