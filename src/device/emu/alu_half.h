/* Conversions between the half formats and float, branch-free so that lane loops vectorise, with
 * integer and plain float arithmetic only: the same bits on every ISA. */
#ifndef MG_DEVICE_EMU_ALU_HALF_H
#define MG_DEVICE_EMU_ALU_HALF_H

#include "device/emu/alu_priv.h"

#define NAN16 0x7fffu

static inline uint32_t flush16(uint32_t h)
{
    return (h & 0x7c00) ? h : h & 0x8000;
}
static inline float half_to_float(uint32_t h) /* exact; NaN payloads move up unchanged */
{
    uint32_t m = (h & 0x7fff) << 13, exponent = m & 0x0f800000;
    uint32_t normal = m + (112u << 23);
    uint32_t special = normal + (112u << 23);
    float subnormal = float32(m + (113u << 23)) - float32(113u << 23);
    uint32_t r = exponent == 0x0f800000 ? special : exponent ? normal : bits32(subnormal);
    return float32(r | (h & 0x8000) << 16);
}
static inline uint32_t float_to_half(float x) /* to nearest even; NaN becomes 0x7fff */
{
    uint32_t u = bits32(x), sign = u >> 16 & 0x8000, m = u & 0x7fffffff;
    uint32_t subnormal = bits32(float32(m) + 0.5f) - bits32(0.5f);
    uint32_t normal = (m + 0xc8000fffu + (m >> 13 & 1)) >> 13;
    uint32_t r = m < 113u << 23 ? subnormal : m < 143u << 23 ? normal : 0x7c00;
    return m > 0x7f800000 ? NAN16 : r | sign;
}
static inline uint32_t float_cut_half(float x) /* toward zero, but past the largest number infinity */
{
    uint32_t u = bits32(x), sign = u >> 16 & 0x8000, m = u & 0x7fffffff;
    uint32_t subnormal = (uint32_t)(int32_t)(float32(m < 113u << 23 ? m : 0) * 0x1p24f);
    uint32_t normal = (m - (112u << 23)) >> 13;
    uint32_t r = m < 113u << 23 ? subnormal : m < 143u << 23 ? normal : 0x7c00;
    return m > 0x7f800000 ? NAN16 : r | sign;
}
static inline float bf16_to_float(uint32_t h)
{
    return float32(h << 16);
}
static inline uint32_t float_to_bf16(float x)
{
    uint32_t u = bits32(x), m = u & 0x7fffffff;
    return m > 0x7f800000 ? NAN16 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
/* To float with the last bit sticky: a second rounding to a narrower format is then correct. */
static inline float double_to_float_odd(double x)
{
    float f = (float)x;
    double back = (double)f, size = float64(bits64(x) & INT64_MAX), back_size = float64(bits64(back) & INT64_MAX);
    uint32_t u = bits32(f) - (back_size > size);
    return float32(back != x ? u | 1 : u);
}
/* x * y + z of floats in double, the last bit sticky: exact products, one error-free sum. */
static inline double fma_odd(float x, float y, float z)
{
    double p = (double)x * (double)y, c = (double)z;
    double s = p + c, t = s - p, e = (p - (s - t)) + (c - t); /* TwoSum */
    uint64_t u = bits64(s);
    uint64_t away = (uint64_t)((e < 0) != (s < 0)); /* |s| is larger than the exact sum */
    uint64_t odd = e != 0 ? (u - away) | 1 : u;
    return e == e ? float64(odd) : s; /* infinities and NaN have no error term */
}

#endif
