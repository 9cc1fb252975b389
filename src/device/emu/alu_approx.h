/* The approx family: MUFU instructions (mufu.h) with the scaling ptxas puts around them for sm_90,
 * so results have the bits of an H200. Shared by the emulator's lane loops and, through the scalar
 * functions of approx.c, by the CPU device.
 *
 * name_n is the plain form, name_z the .ftz form; callers flush operands and results of the latter.
 * Branch-free, the same bits on every CPU and vector ISA; default rounding is expected.
 */
#ifndef MG_DEVICE_EMU_ALU_APPROX_H
#define MG_DEVICE_EMU_ALU_APPROX_H

#include "device/emu/alu_half.h"
#include "device/emu/mufu.h"

#define MUFU(fn, x) float32(mufu_##fn(bits32(x)))

static inline float size32(float x)
{
    return float32(bits32(x) & 0x7fffffff);
}
/* mul.ftz.f32 of operands that are not subnormal: what 24 bits leave below 2^-126 is zero */
static inline float mul_z(float x, float y)
{
    double p = (double)x * (double)y, size = float64(bits64(p) & INT64_MAX);
    float r = (float)p;
    return canon32(size < 0x1p-126 - 0x1p-151 ? float32(bits32(r) & 0x80000000) : r);
}

static inline float ex2_z(float x)
{
    return MUFU(ex2, x);
}
static inline float lg2_z(float x)
{
    return MUFU(lg2, x);
}
static inline float rcp_z(float x)
{
    return MUFU(rcp, x);
}
static inline float rsqrt_z(float x)
{
    return MUFU(rsq, x);
}
static inline float sqrt_z(float x)
{
    return MUFU(sqrt, x);
}
static inline float tanh_n(float x)
{
    return MUFU(tanh, x);
}

static inline float ex2_n(float x)
{
    float scale = x < -126.0f ? 0.5f : 1.0f, r = MUFU(ex2, x * scale), square = r * r;
    return x < -126.0f ? square : r;
}
static inline float lg2_n(float x)
{
    bool small = size32(x) < 0x1p-126f;
    float r = MUFU(lg2, x * (small ? 0x1p24f : 1.0f));
    return small ? r - 24.0f : r;
}
static inline float rcp_n(float x)
{
    float size = size32(x), scale = size < 0x1p-126f ? 0x1p24f : size > 0x1p126f ? 0.25f : 1.0f;
    return canon32(MUFU(rcp, x * scale) * scale);
}
static inline float rsqrt_n(float x)
{
    bool small = size32(x) < 0x1p-126f;
    return canon32(MUFU(rsq, x * (small ? 0x1p24f : 1.0f)) * (small ? 0x1p12f : 1.0f));
}
static inline float sqrt_n(float x)
{
    bool small = size32(x) < 0x1p-126f;
    return canon32(MUFU(sqrt, x * (small ? 0x1p24f : 1.0f)) * (small ? 0x1p-12f : 1.0f));
}
/* x / (2 pi), cut to 24 bits: what MUFU.SIN and COS take; subnormal ones are as good as zero to them */
static inline float turns(float x)
{
    return (float)float64(bits64((double)x * 0x1.45f306p-3) & ~0x1fffffffull);
}
static inline float sin_n(float x)
{
    return float32(mufu_sincos(bits32(turns(x)), 0));
}
static inline float cos_n(float x)
{
    return float32(mufu_sincos(bits32(turns(x)), 1));
}
static inline float sin_z(float x)
{
    return sin_n(x);
}
static inline float cos_z(float x)
{
    return cos_n(x);
}
static inline float tanh_z(float x)
{
    return tanh_n(x);
}

static inline float div_approx_n(float x, float y)
{
    float scale = size32(y) < 0x1p-126f ? 0x1p24f : 1.0f;
    return canon32(x * scale * MUFU(rcp, y * scale));
}
static inline float div_approx_z(float x, float y)
{
    return mul_z(x, MUFU(rcp, y));
}
static inline float div_full_n(float x, float y)
{
    float size = size32(y), scale = size < 0x1p-126f ? 0x1p24f : size > 0x1p126f ? 0.25f : 1.0f;
    return canon32(x * scale * MUFU(rcp, y * scale));
}
static inline float div_full_z(float x, float y)
{
    float scale = size32(y) > 0x1p126f ? 0.25f : 1.0f;
    return mul_z(mul_z(x, scale), MUFU(rcp, y * scale));
}

/* x / y + z where ptxas contracts them: the product of x and the reciprocal is not rounded. */
static inline float sum_n(float x, float y, float z)
{
    return canon32((float)fma_odd(x, y, z));
}
static inline float sum_z(float x, float y, float z)
{
    double exact = fma_odd(x, y, z), size = float64(bits64(exact) & INT64_MAX);
    float r = (float)exact;
    return canon32(size < 0x1p-126 - 0x1p-151 ? float32(bits32(r) & 0x80000000) : r);
}
static inline float div_approx_add_n(float x, float y, float z)
{
    float scale = size32(y) < 0x1p-126f ? 0x1p24f : 1.0f;
    return sum_n(x * scale, MUFU(rcp, y * scale), z);
}
static inline float div_approx_add_z(float x, float y, float z)
{
    return sum_z(x, MUFU(rcp, y), z);
}
static inline float div_full_add_n(float x, float y, float z)
{
    float size = size32(y), scale = size < 0x1p-126f ? 0x1p24f : size > 0x1p126f ? 0.25f : 1.0f;
    return sum_n(x * scale, MUFU(rcp, y * scale), z);
}
static inline float div_full_add_z(float x, float y, float z)
{
    float scale = size32(y) > 0x1p126f ? 0.25f : 1.0f;
    return sum_z(mul_z(x, scale), MUFU(rcp, y * scale), z);
}

/* Gross forms: upper words only */
static inline double rcp_gross(double x)
{
    return float64((uint64_t)mufu_rcp64((uint32_t)(bits64(x) >> 32)) << 32);
}
static inline double rsqrt_gross(double x)
{
    return float64((uint64_t)mufu_rsq64((uint32_t)(bits64(x) >> 32)) << 32);
}

/* rsqrt.approx.f64: one step of refinement, subnormals scaled. NaN: any. */
static inline double rsqrt_f64(double x)
{
    bool small = x < 0x1p-1022;
    double v = x * (small ? 0x1p54 : 1.0), y = rsqrt_gross(v);
    double e = __builtin_fma(v, -(y * y), 1.0);
    double r = __builtin_fma(__builtin_fma(e, 0.375, 0.5), y * e, y) * (small ? 0x1p27 : 1.0);
    r = bits64(x) == 0x7ff0000000000000ull ? 0.0 : r;
    double low = x == 0.0 ? float64((bits64(x) & 1ull << 63) | 0x7ff0000000000000ull) : float64(NAN64);
    return x > 0.0 ? r : low;
}

#endif
