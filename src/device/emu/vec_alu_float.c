/* f32 and f64 arithmetic in every rounding, with .ftz and .sat, and the approx family. Built once
 * per vector ISA; the results have the same bits on each.
 *
 * NaN: an f32 operation that has a NaN result gives 0x7fffffff, as NVIDIA's hardware does; f64 see
 * nan2. Directed roundings run the same loops with MXCSR changed around them. Where the build
 * has no fma instruction, f32 uses an error-free sum in double and f64 the C library's fma().
 * PTX 1.x: mad.f32 without rounding truncates the product to 24 bits (sm_1x only).
 */
/* clang-format off */
#include "device/emu/alu_approx.h"
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

#include <math.h>

/* f64 on an H200: a NaN operand's payload survives, quietened: of two the second's (div: the first's),
 * of three b's, then c's; numbers make 0xfff8000000000000. */
static inline double quiet(double x)
{
    return float64(bits64(x) | QUIET64);
}
static inline double nan1(double r, double x)
{
    double n = x == x ? float64(NAN64) : quiet(x);
    return r == r ? r : n;
}
static inline double nan2(double r, double x, double y) /* y before x */
{
    double n = x == x ? float64(NAN64) : quiet(x);
    n = y == y ? n : quiet(y);
    return r == r ? r : n;
}
static inline double nan3(double r, double x, double y, double z)
{
    double n = x == x ? float64(NAN64) : quiet(x);
    n = z == z ? n : quiet(z);
    n = y == y ? n : quiet(y);
    return r == r ? r : n;
}

/* Variants: n plain, z .ftz, s .sat, zs both. The rounded operations get .ftz from MXCSR (their imm),
 * the others flush their sources and result. */
#define PRE_n(v) (v)
#define PRE_z(v) flush32(v)
#define POST_n(v) canon32(v)
#define POST_z(v) flush32(canon32(v))
#define POST_s(v) sat32(v)
#define KEY_n 0
#define KEY_z K_FTZ

#define SETUP1(PRE) float x = PRE(a[i])
#define SETUP2(PRE) float x = PRE(a[i]); float y = PRE(b[i])
#define SETUP3(PRE) float x = PRE(a[i]); float y = PRE(b[i]); float z = PRE(c[i])
#define A32 const lanef *a = AT(lanef, o->s[0])
#define B32 const lanef *b = AT(lanef, o->s[1])
#define C32 const lanef *c = AT(lanef, o->s[2])
#define D32 lanef *d = AT(lanef, o->d)

/* One function rounding to nearest and one for directed roundings and .ftz (imm: MXCSR mode). */
#define DEFINE_ROUNDED(name, pointers, setup, expr, TD)                                    \
    static void name##_rn(ALU_ARGS)                                                        \
    {                                                                                      \
        pointers;                                                                          \
        ALU_RUN(TD, setup, expr)                                                           \
    }                                                                                      \
    static void name##_dir(ALU_ARGS)                                                       \
    {                                                                                      \
        pointers;                                                                          \
        unsigned csr = begin_rounding(o->imm);                                             \
        ALU_RUN(TD, setup, expr)                                                           \
        end_rounding(csr);                                                                 \
    }
#define DEFINE_F1(op, v, expr) DEFINE_ROUNDED(op##_f32_##v, D32; A32, SETUP1(), POST_##v(expr), lanef)
#define DEFINE_F2(op, v, expr) DEFINE_ROUNDED(op##_f32_##v, D32; A32; B32, SETUP2(), POST_##v(expr), lanef)
#define EACH_SAT(M, op, expr) M(op, n, expr) M(op, s, expr)

EACH_SAT(DEFINE_F2, add, x + y)
EACH_SAT(DEFINE_F2, sub, x - y)
EACH_SAT(DEFINE_F2, mul, x *y)
DEFINE_F2(div, n, x / y)
DEFINE_F1(rcp, n, 1.0f / x)
DEFINE_F1(sqrt, n, __builtin_sqrtf(x))

#ifdef __FMA__
#define DEFINE_F3(op, v, expr) DEFINE_ROUNDED(op##_f32_##v, D32; A32; B32; C32, SETUP3(), POST_##v(__builtin_fmaf(x, y, z)), lanef)
#else
#define DEFINE_F3(op, v, expr)                                                             \
    static void op##_f32_##v##_rn(ALU_ARGS)                                                \
    {                                                                                      \
        D32;                                                                               \
        A32;                                                                               \
        B32;                                                                               \
        C32;                                                                               \
        ALU_RUN(lanef, SETUP3(), POST_##v((float)fma_odd(x, y, z)))                        \
    }                                                                                      \
    static void op##_f32_##v##_dir(ALU_ARGS)                                               \
    {                                                                                      \
        double wide[32];                                                                   \
        D32;                                                                               \
        exact_fma(o, regs, wide);                                                          \
        round_wide(wide, o->imm);                                                          \
        ALU_RUN(lanef, , POST_##v((float)wide[i]))                                         \
    }
/* A zero sum of opposite parts is -0 when rounding down. */
static inline double fma_odd_directed(float x, float y, float z, uint32_t mode)
{
    double p = (double)x * (double)y, s = fma_odd(x, y, z);
    bool opposite = (bits64(p) ^ bits64((double)z)) >> 63;
    return mode == MX_RM && s == 0.0 && p + (double)z == 0.0 && opposite ? -0.0 : s;
}
static MG_NOINLINE void exact_fma(const struct emu_alu *o, char *regs, double *wide)
{
    A32;
    B32;
    C32;
    if (o->imm & MX_FTZ) {
        ALU_LOOP wide[i] = fma_odd_directed(flush32(a[i]), flush32(b[i]), flush32(c[i]), o->imm & 3);
    } else {
        ALU_LOOP wide[i] = fma_odd_directed(a[i], b[i], c[i], o->imm & 3);
    }
}
static MG_NOINLINE void round_wide(double *wide, uint32_t mode) /* to float values */
{
    unsigned csr = begin_rounding(mode);
    for (int i = 0; i < 32; i++) wide[i] = (double)(float)wide[i];
    end_rounding(csr);
}
#endif
EACH_SAT(DEFINE_F3, fma, 0)

/* sm_1x: the exact product is cut to 24 bits, then added. */
static inline float mad_truncated(float x, float y, float z)
{
    double p = float64(bits64((double)x * (double)y) & ~0x1fffffffull), c = (double)z;
    double s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
    uint64_t u = bits64(s), odd = e != 0 ? (u - ((e < 0) != (s < 0))) | 1 : u;
    return (float)(e == e ? float64(odd) : s);
}
#define DEFINE_MAD1(op, v)                                                           \
    static void op##_f32_##v(ALU_ARGS)                                                     \
    {                                                                                      \
        D32;                                                                               \
        A32;                                                                               \
        B32;                                                                               \
        C32;                                                                               \
        ALU_RUN(lanef, SETUP3(flush32), flush32(POST_##v(mad_truncated(x, y, z))))         \
    }
DEFINE_MAD1(mad1, n)
DEFINE_MAD1(mad1, s)

/* f64 */
#define A64 const laned *a = AT(laned, o->s[0])
#define B64 const laned *b = AT(laned, o->s[1])
#define C64 const laned *c = AT(laned, o->s[2])
#define D64 laned *d = AT(laned, o->d)
#define SETUP1D double x = a[i]
#define SETUP2D double x = a[i]; double y = b[i]
DEFINE_ROUNDED(add_f64, D64; A64; B64, SETUP2D, nan2(x + y, x, y), laned)
DEFINE_ROUNDED(sub_f64, D64; A64; B64, SETUP2D, nan2(x - y, x, y), laned)
DEFINE_ROUNDED(mul_f64, D64; A64; B64, SETUP2D, nan2(x *y, x, y), laned)
DEFINE_ROUNDED(div_f64, D64; A64; B64, SETUP2D, nan2(x / y, y, x), laned)
DEFINE_ROUNDED(rcp_f64, D64; A64, SETUP1D, nan1(1.0 / x, x), laned)
DEFINE_ROUNDED(sqrt_f64, D64; A64, SETUP1D, nan1(__builtin_sqrt(x), x), laned)
#ifdef __FMA__
#define SETUP3D double x = a[i]; double y = b[i]; double z = c[i]
DEFINE_ROUNDED(fma_f64, D64; A64; B64; C64, SETUP3D, nan3(__builtin_fma(x, y, z), x, y, z), laned)
#else
static void fma_f64_rn(ALU_ARGS)
{
    D64;
    A64;
    B64;
    C64;
    ALU_EACH(i) d[i] = nan3(fma(a[i], b[i], c[i]), a[i], b[i], c[i]);
}
static void fma_f64_dir(ALU_ARGS)
{
    unsigned csr = begin_rounding(o->imm);
    fma_f64_rn(o, regs, mask);
    end_rounding(csr);
}
#endif

/* min and max: a NaN loses against a number, .NaN: wins; -0 is below +0. */
#define BIT_OR(x, y) float32(bits32(x) | bits32(y))
#define BIT_AND(x, y) float32(bits32(x) & bits32(y))
#define CLEAR(x) float32(bits32(x) & 0x7fffffff)
static inline float min32(float x, float y)
{
    float r = x < y ? x : y < x ? y : BIT_OR(x, y);
    r = x == x ? r : y;
    return canon32(y == y ? r : x);
}
static inline float max32(float x, float y)
{
    float r = x > y ? x : y > x ? y : BIT_AND(x, y);
    r = x == x ? r : y;
    return canon32(y == y ? r : x);
}
static inline float or_nan(float r, float x, float y)
{
    return x == x && y == y ? r : float32(NAN32);
}
static inline float xor_sign(float r, float x, float y)
{
    uint32_t s = (bits32(x) ^ bits32(y)) & 0x80000000;
    return r == r ? float32((bits32(r) & 0x7fffffff) | s) : r;
}
static inline double min64(double x, double y)
{
    double r = x < y ? x : y < x ? y : float64(bits64(x) | bits64(y));
    r = y == y ? r : x;
    r = x == x ? r : y;
    return r == r ? r : quiet(r);
}
static inline double max64(double x, double y)
{
    double r = x > y ? x : y > x ? y : float64(bits64(x) & bits64(y));
    r = y == y ? r : x;
    r = x == x ? r : y;
    return r == r ? r : quiet(r);
}

/* What needs no rounding mode:
 *      name          op       key            value */
#define SIMPLE2_LIST(F, v)                                                                 \
    F(min_##v, min, KEY_##v, v, min32(x, y))                                               \
    F(max_##v, max, KEY_##v, v, max32(x, y))                                               \
    F(minnan_##v, min, KEY_##v | K_NAN, v, or_nan(min32(x, y), x, y))                      \
    F(maxnan_##v, max, KEY_##v | K_NAN, v, or_nan(max32(x, y), x, y))                      \
    F(minxs_##v, min, KEY_##v | K_XORSIGN | K_ABS, v, xor_sign(min32(CLEAR(x), CLEAR(y)), x, y)) \
    F(maxxs_##v, max, KEY_##v | K_XORSIGN | K_ABS, v, xor_sign(max32(CLEAR(x), CLEAR(y)), x, y)) \
    F(minnanxs_##v, min, KEY_##v | K_NAN | K_XORSIGN | K_ABS, v, xor_sign(or_nan(min32(CLEAR(x), CLEAR(y)), x, y), x, y)) \
    F(maxnanxs_##v, max, KEY_##v | K_NAN | K_XORSIGN | K_ABS, v, xor_sign(or_nan(max32(CLEAR(x), CLEAR(y)), x, y), x, y))
#define APPROX2_LIST(F, v)                                                                 \
    F(divfull_##v, div, KEY_##v | K_FULL, v, div_full_##v(x, y))                           \
    F(divapprox_##v, div, KEY_##v | K_APPROX, v, div_approx_##v(x, y))
/* three operands: not PTX, but what decode_fuse.c makes of a quotient and a sum */
#define APPROX3_LIST(F, v)                                                                 \
    F(divfulladd_##v, div, KEY_##v | K_FULL, v, POST_##v(div_full_add_##v(x, y, z)))       \
    F(divapproxadd_##v, div, KEY_##v | K_APPROX, v, POST_##v(div_approx_add_##v(x, y, z))) \
    F(divfulladd_##v##_s, div, KEY_##v | K_FULL | K_SAT, v, sat32(div_full_add_##v(x, y, z))) \
    F(divapproxadd_##v##_s, div, KEY_##v | K_APPROX | K_SAT, v, sat32(div_approx_add_##v(x, y, z)))
#define APPROX1_LIST(F, v)                                                                 \
    F(ex2_##v, ex2, KEY_##v | K_APPROX, v, ex2_##v(x))    \
    F(lg2_##v, lg2, KEY_##v | K_APPROX, v, lg2_##v(x))    \
    F(sin_##v, sin, KEY_##v | K_APPROX, v, sin_##v(x))    \
    F(cos_##v, cos, KEY_##v | K_APPROX, v, cos_##v(x))    \
    F(rcpa_##v, rcp, KEY_##v | K_APPROX, v, rcp_##v(x))    \
    F(sqrta_##v, sqrt, KEY_##v | K_APPROX, v, sqrt_##v(x))    \
    F(rsqrt_##v, rsqrt, KEY_##v | K_APPROX, v, rsqrt_##v(x))    \
    F(tanh_##v, tanh, KEY_##v | K_APPROX, v, tanh_##v(x))
#define DEFINE_APPROX1(name, op, key, v, expr)                                             \
    static void name##_f32(ALU_ARGS)                                                       \
    {                                                                                      \
        D32;                                                                               \
        A32;                                                                               \
        ALU_RUN_SPLIT(lanef, SETUP1(PRE_##v), POST_##v(expr))                              \
    }
#define DEFINE_APPROX2(name, op, key, v, expr)                                             \
    static void name##_f32(ALU_ARGS)                                                       \
    {                                                                                      \
        D32;                                                                               \
        A32;                                                                               \
        B32;                                                                               \
        ALU_RUN_SPLIT(lanef, SETUP2(PRE_##v), POST_##v(expr))                              \
    }
#define DEFINE_SIMPLE2(name, op, key, v, expr)                                             \
    static void name##_f32(ALU_ARGS)                                                       \
    {                                                                                      \
        D32;                                                                               \
        A32;                                                                               \
        B32;                                                                               \
        ALU_RUN(lanef, SETUP2(PRE_##v), POST_##v(expr))                                    \
    }
#define DEFINE_APPROX3(name, op, key, v, expr)                                             \
    static void name##_f32(ALU_ARGS)                                                       \
    {                                                                                      \
        D32;                                                                               \
        A32;                                                                               \
        B32;                                                                               \
        C32;                                                                               \
        ALU_RUN_SPLIT(lanef, SETUP3(PRE_##v), expr)                                        \
    }
SIMPLE2_LIST(DEFINE_SIMPLE2, n)
SIMPLE2_LIST(DEFINE_SIMPLE2, z)
APPROX1_LIST(DEFINE_APPROX1, n)
APPROX1_LIST(DEFINE_APPROX1, z)
APPROX2_LIST(DEFINE_APPROX2, n)
APPROX2_LIST(DEFINE_APPROX2, z)
APPROX3_LIST(DEFINE_APPROX3, n)
APPROX3_LIST(DEFINE_APPROX3, z)

#define SIMPLE64_LIST(F)                                                                   \
    F(min_d, min, 0, SETUP2D, min64(x, y))                                                 \
    F(max_d, max, 0, SETUP2D, max64(x, y))                                                 \
    F(copysign_d, copysign, 0, SETUP2D, float64((bits64(x) & 1ull << 63) | (bits64(y) & INT64_MAX)))
#define SIMPLE64_1_LIST(F)                                                                 \
    F(rsqrt_d, rsqrt, K_APPROX, SETUP1D, nan1(rsqrt_f64(x), x))                 \
    F(rsqrtz_d, rsqrt, K_APPROX | K_FTZ, SETUP1D, rsqrt_gross(x))                          \
    F(rcpz_d, rcp, K_APPROX | K_FTZ, SETUP1D, rcp_gross(x))
#define DEFINE_SIMPLE64(name, op, key, setup, expr)                                        \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        D64;                                                                               \
        A64;                                                                               \
        B64;                                                                               \
        ALU_RUN(laned, setup, expr)                                                        \
    }
#define DEFINE_SIMPLE64_1(name, op, key, setup, expr)                                      \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        D64;                                                                               \
        A64;                                                                               \
        ALU_RUN(laned, setup, expr)                                                        \
    }
SIMPLE64_LIST(DEFINE_SIMPLE64)
SIMPLE64_1_LIST(DEFINE_SIMPLE64_1)

/* Sign operations, on the bits; NaN as arithmetic gives it */
#define SIGN_LIST(F)                                                                       \
    F(abs_f32, abs, f32, 0, lane32, canon_bits(a[i] & 0x7fffffff))                         \
    F(neg_f32, neg, f32, 0, lane32, canon_bits(a[i] ^ 0x80000000))                         \
    F(abs_f32z, abs, f32, K_FTZ, lane32, canon_bits(flush_bits(a[i]) & 0x7fffffff))                    \
    F(neg_f32z, neg, f32, K_FTZ, lane32, canon_bits(flush_bits(a[i]) ^ 0x80000000))                    \
    F(abs_f64, abs, f64, 0, lane64, or_nan64(a[i] & INT64_MAX, a[i]))                                      \
    F(neg_f64, neg, f64, 0, lane64, or_nan64(a[i] ^ 1ull << 63, a[i]))
static inline uint32_t canon_bits(uint32_t u)
{
    return (u & 0x7fffffff) > 0x7f800000 ? NAN32 : u;
}
static inline uint64_t or_nan64(uint64_t r, uint64_t u)
{
    return (u & INT64_MAX) > 0x7ff0000000000000 ? u | QUIET64 : r;
}
static inline uint32_t flush_bits(uint32_t u)
{
    return bits32(flush32(float32(u)));
}
#define DEFINE_SIGN(name, op, T, key, L, expr)                                             \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        L *d = AT(L, o->d);                                                                \
        const L *a = AT(L, o->s[0]);                                                       \
        ALU_RUN(L, , expr)                                                                 \
    }
SIGN_LIST(DEFINE_SIGN)
static void copysign_f32(ALU_ARGS)
{
    lane32 *d = AT(lane32, o->d);
    const lane32 *a = AT(lane32, o->s[0]), *b = AT(lane32, o->s[1]);
    ALU_RUN(lane32, , (a[i] & 0x80000000) | (b[i] & 0x7fffffff))
}

#define S1_(T) T_(T)
#define S2_(T) T_(T), T_(T)
#define S3_(T) T_(T), T_(T), T_(T)
#define ROW_(o_, T, k_, f_, n_, i_) {.op = MG_OP_##o_, .t = {T_(T)}, .dt = T_(T), .st = {S##n_##_(T)}, .key = (k_), .fn = f_, .imm = (i_)},
#define ROUNDED(op, T, key, name, n)                                                       \
    ROW_(op, T, (key) | K_RN, name##_rn, n, 0)                                             \
    ROW_(op, T, (key) | K_RZ, name##_dir, n, MX_RZ)                                        \
    ROW_(op, T, (key) | K_RM, name##_dir, n, MX_RM)                                        \
    ROW_(op, T, (key) | K_RP, name##_dir, n, MX_RP)
#define ROUNDED_Z(op, key, name, n)                                                        \
    ROUNDED(op, f32, key, name, n)                                                         \
    ROW_(op, f32, (key) | K_FTZ | K_RN, name##_dir, n, MX_FTZ | MX_RN)                     \
    ROW_(op, f32, (key) | K_FTZ | K_RZ, name##_dir, n, MX_FTZ | MX_RZ)                     \
    ROW_(op, f32, (key) | K_FTZ | K_RM, name##_dir, n, MX_FTZ | MX_RM)                     \
    ROW_(op, f32, (key) | K_FTZ | K_RP, name##_dir, n, MX_FTZ | MX_RP)
#define ROUNDED_ZS(op, name, n) ROUNDED_Z(op, 0, name##_n, n) ROUNDED_Z(op, K_SAT, name##_s, n)
#define ROW_APPROX1(name, op, key, v, expr) ROW_(op, f32, key, name##_f32, 1, 0)
#define ROW_APPROX3(name, op, key, v, expr) ROW_(op, f32, key, name##_f32, 3, 0)
#define ROW_SIMPLE2(name, op, key, v, expr) ROW_(op, f32, key, name##_f32, 2, 0)
#define ROW_SIMPLE64(name, op, key, setup, expr) ROW_(op, f64, key, name, 2, 0)
#define ROW_SIMPLE64_1(name, op, key, setup, expr) ROW_(op, f64, key, name, 1, 0)
#define ROW_SIGN(name, op, T, key, L, expr) ROW_(op, T, key, name, 1, 0)

static const struct alu_row rows[] = {
    ROUNDED_ZS(add, add_f32, 2) ROUNDED_ZS(sub, sub_f32, 2) ROUNDED_ZS(mul, mul_f32, 2)
    ROUNDED_ZS(fma, fma_f32, 3) ROUNDED_ZS(mad, fma_f32, 3)
    ROUNDED_Z(div, 0, div_f32_n, 2) ROUNDED_Z(rcp, 0, rcp_f32_n, 1) ROUNDED_Z(sqrt, 0, sqrt_f32_n, 1)
    ROW_(mad, f32, K_FTZ, mad1_f32_n, 3, 0) ROW_(mad, f32, K_FTZ | K_SAT, mad1_f32_s, 3, 0)
    ROUNDED(add, f64, 0, add_f64, 2) ROUNDED(sub, f64, 0, sub_f64, 2) ROUNDED(mul, f64, 0, mul_f64, 2)
    ROUNDED(div, f64, 0, div_f64, 2) ROUNDED(rcp, f64, 0, rcp_f64, 1) ROUNDED(sqrt, f64, 0, sqrt_f64, 1)
    ROUNDED(fma, f64, 0, fma_f64, 3) ROUNDED(mad, f64, 0, fma_f64, 3)
    SIMPLE2_LIST(ROW_SIMPLE2, n) SIMPLE2_LIST(ROW_SIMPLE2, z)
    APPROX3_LIST(ROW_APPROX3, n) APPROX3_LIST(ROW_APPROX3, z)
    APPROX2_LIST(ROW_SIMPLE2, n) APPROX2_LIST(ROW_SIMPLE2, z) APPROX1_LIST(ROW_APPROX1, n) APPROX1_LIST(ROW_APPROX1, z)
    SIMPLE64_LIST(ROW_SIMPLE64) SIMPLE64_1_LIST(ROW_SIMPLE64_1)
    SIGN_LIST(ROW_SIGN)
    ROW_(copysign, f32, 0, copysign_f32, 2, 0)
};
const struct alu_table ALU_TABLE(alu_float) = {rows, MG_COUNT_OF(rows)};
