/* The approx family: the definition of its bits, shared by the emulator's lane loops and, through
 * the scalar functions of approx.c, by the CPU device.
 *
 * Everything is +, -, *, / and square root of IEEE float and double without contraction, plus
 * integer operations, in a fixed order: the same bits on every CPU and vector ISA, and branch-free
 * so that loops over lanes vectorise. Polynomials are evaluated in double, so results are within
 * 0.51 ulp of the exact value (rcp, sqrt: correctly rounded; rsqrt: 1.5 ulp; tanh: 0.6 ulp): inside
 * every bound of the PTX ISA. sin and cos lose accuracy as |x| grows past 2^20, as PTX allows.
 */
#ifndef MG_DEVICE_EMU_ALU_APPROX_H
#define MG_DEVICE_EMU_ALU_APPROX_H

#include "device/emu/alu_priv.h"

#define ROUND_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */

/* 2^f for |f| <= 0.5, relative error below 2^-31 */
static inline double ex2_poly(double f)
{
    double p = 1.3215486790144309e-06; /* ln2^k / k! */
    p = p * f + 1.525273380405984e-05;
    p = p * f + 1.540353039338161e-04;
    p = p * f + 1.3333558146428443e-03;
    p = p * f + 9.6181291076284772e-03;
    p = p * f + 5.5504108664821580e-02;
    p = p * f + 2.4022650695910071e-01;
    p = p * f + 6.9314718055994531e-01;
    return p * f + 1.0;
}
/* 2^t for |t| below 1000, as a double */
static inline double ex2_double(double t)
{
    double shifted = t + ROUND_MAGIC, n = shifted - ROUND_MAGIC;
    double scale = float64((bits64(shifted) + 1023) << 52); /* low bits of shifted: n */
    return ex2_poly(t - n) * scale;
}
static inline float ex2_approx(float x)
{
    float c = x < 160.0f ? x : 160.0f; /* NaN too */
    c = c > -180.0f ? c : -180.0f;
    float r = (float)ex2_double((double)c);
    return x == x ? r : float32(NAN32);
}

static inline float lg2_approx(float x)
{
    uint64_t u = bits64((double)x) & INT64_MAX; /* every float but 0 is a normal double */
    /* mantissa in [sqrt(1/2), sqrt 2), exponent to fit */
    uint64_t up = u + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
    int64_t e = (int64_t)(up >> 52) - 1023;
    double m = float64((up & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull);
    double s = (m - 1.0) / (m + 1.0), q = s * s;
    double p = 0.22195308321368668; /* 2 / (13 ln 2), then 11, 9, ... */
    p = p * q + 0.2623081892525388;
    p = p * q + 0.3205988979753252;
    p = p * q + 0.4121985831111324;
    p = p * q + 0.57707801635558536;
    p = p * q + 0.9617966939259756;
    p = p * q + 2.8853900817779268;
    float r = (float)(p * s + (double)(int32_t)e);
    float top = x < float32(0x7f800000) ? r : x; /* inf, NaN */
    float low = x > 0.0f ? top : float32(x == 0.0f ? 0xff800000u : NAN32);
    return low == low ? low : float32(NAN32);
}

/* sin or cos of x: turns reduced to an eighth around the nearest quarter */
static inline float sincos_approx(float x, uint64_t quarter)
{
    double turns = (double)x * 0.15915494309189535; /* 1 / (2 pi) */
    double big = float64(bits64(turns) & INT64_MAX);
    turns = big < 2251799813685248.0 ? turns : 0.0; /* past 2^51 turns nothing is left; inf below */
    double whole = (turns + ROUND_MAGIC) - ROUND_MAGIC;
    double t = (turns - whole) * 4.0, shifted = t + ROUND_MAGIC;
    double f = t - (shifted - ROUND_MAGIC), q = f * f;
    uint64_t k = bits64(shifted) + quarter; /* quarters, in the low bits */
    double s = -3.5988432352120853e-06; /* sin(f pi/2): (pi/2)^n / n!, alternating */
    s = s * q + 1.6044118478735982e-04;
    s = s * q - 4.6817541353186881e-03;
    s = s * q + 7.9692626246167046e-02;
    s = s * q - 6.4596409750624625e-01;
    s = (s * q + 1.5707963267948966) * f;
    double c = -2.5202042373060605e-05;
    c = c * q + 9.1926027483942658e-04;
    c = c * q - 2.0863480763352961e-02;
    c = c * q + 2.5366950790104802e-01;
    c = c * q - 1.2337005501361698;
    c = c * q + 1.0;
    double r = (k & 1) ? c : s;
    r = float64(bits64(r) ^ (k & 2) << 62);
    float size = float32(bits32(x) & 0x7fffffff);
    return size < float32(0x7f800000) ? (float)r : float32(NAN32);
}
static inline float sin_approx(float x)
{
    float r = sincos_approx(x, 0);
    return x == 0.0f ? x : r; /* keeps -0 */
}
static inline float cos_approx(float x)
{
    return sincos_approx(x, 1);
}
static inline float tanh_approx(float x)
{
    float size = float32(bits32(x) & 0x7fffffff), c = size < 20.0f ? size : 20.0f;
    double e = ex2_double((double)c * 2.8853900817779268); /* exp(2|x|) */
    double r = (e - 1.0) / (e + 1.0), d = (double)c;
    double tiny = d - d * d * d * 0.33333333333333333;
    float t = (float)(size < 0.000244140625f ? tiny : r);
    t = float32(bits32(t) | (bits32(x) & 0x80000000));
    return x == x ? t : float32(NAN32);
}
static inline float rcp_approx(float x)
{
    return canon32(1.0f / x);
}
static inline float sqrt_approx(float x)
{
    return canon32(__builtin_sqrtf(x));
}
static inline float rsqrt_approx(float x)
{
    return canon32(1.0f / __builtin_sqrtf(x));
}
static inline float div_approx(float x, float y) /* x * (1 / y): the reciprocal of a huge y is 0 */
{
    float size = float32(bits32(y) & 0x7fffffff), zero = float32(bits32(y) & 0x80000000);
    float product = x * zero, quotient = x / y;
    return canon32(size > 0x1p126f ? product : quotient);
}
/* Gross forms: the high words only, 20 bits of mantissa; subnormals are zeros. */
static inline double high_word(double x)
{
    uint64_t u = bits64(x);
    return float64((u & 0x7ff0000000000000ull) ? u & 0xffffffff00000000ull : u & 1ull << 63);
}
static inline double rcp_gross(double x)
{
    double y = high_word(x), r = high_word(1.0 / y);
    return x == x ? r : float64(0x7fffffff00000000ull);
}
static inline double rsqrt_gross(double x)
{
    double y = high_word(x), r = high_word(1.0 / __builtin_sqrt(y));
    return r == r ? r : float64(0x7fffffff00000000ull);
}

#endif
