/* Texels: one element of an array as four 32-bit values. Private to tex_*.c. */
#ifndef MG_DEVICE_EMU_TEX_TEXEL_H
#define MG_DEVICE_EMU_TEX_TEXEL_H

#include <string.h>

#include "device/emu/alu_half.h"
#include "device/emu/tex.h"

static inline uint32_t tex_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

static inline uint32_t tex_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Integers as [0, 1] or [-1, 1], correctly rounded; the least signed value counts as -1. */
static inline float tex_unorm(uint32_t v, float most)
{
    return (float)v / most;
}
static inline float tex_snorm(int32_t v, float most)
{
    float f = (float)v / most;
    return f < -1.0f ? -1.0f : f;
}

/* One channel as its bits are fetched: integers extended to 32 bits, floats as they are, half as float. */
static inline uint32_t tex_raw(enum mg_texel_kind kind, const uint8_t *p)
{
    switch (kind) {
    case MG_TEXEL_U8:
        return *p;
    case MG_TEXEL_S8:
        return (uint32_t)(int8_t)*p;
    case MG_TEXEL_U16:
        return tex_u16(p);
    case MG_TEXEL_S16:
        return (uint32_t)(int16_t)tex_u16(p);
    case MG_TEXEL_F16:
        return bits32(half_to_float(tex_u16(p)));
    default:
        return tex_u32(p);
    }
}

/* The same as float where integers are read so. */
static inline uint32_t tex_as_float(enum mg_texel_kind kind, uint32_t raw)
{
    switch (kind) {
    case MG_TEXEL_U8:
        return bits32(tex_unorm(raw, 255.0f));
    case MG_TEXEL_S8:
        return bits32(tex_snorm((int32_t)raw, 127.0f));
    case MG_TEXEL_U16:
        return bits32(tex_unorm(raw, 65535.0f));
    case MG_TEXEL_S16:
        return bits32(tex_snorm((int32_t)raw, 32767.0f));
    default:
        return raw;
    }
}

float mg_tex_srgb(uint32_t v); /* tex_blend.c: 0 .. 255 to linear light */

/* The weighted sum of n texels' raw values of one channel; weights are in 1/256. Floats are added up
 * in groups of that many first. */
enum tex_blend {
    TEX_BLEND_F32,
    TEX_BLEND_F16,
    TEX_BLEND_SRGB /* floats */,
    TEX_BLEND_U8,
    TEX_BLEND_S8,
    TEX_BLEND_U16,
    TEX_BLEND_S16
};
uint32_t mg_tex_blend(enum tex_blend how, const uint32_t *v, const int32_t *w, uint32_t n, uint32_t group);

enum { TEX_FAR = 1 << 22 };   /* texels; no coordinate counts as farther away */
#define TEX_OUTSIDE INT32_MIN /* index of a texel that is the border */
int32_t mg_tex_wrap(int32_t i, uint32_t n, enum mg_tex_address mode);
enum mg_tex_address mg_tex_mode(const struct mg_texture *t, uint32_t axis); /* that applies */
uint32_t mg_tex_border(const struct mg_texture *t, uint32_t channel);       /* as a raw value */
enum tex_blend mg_tex_blend_of(const struct mg_texture *t);

/* vec_tex.c, per vector ISA: dims counts coordinates; slice may be NULL. Not for sRGB. */
struct tex_vec_ops {
    void (*fetch)(const struct mg_texture *t, uint32_t dims, const uint32_t *const c[3], const int32_t *slice,
                  uint32_t *const out[4], uint32_t mask);
    /* Texels of device memory by number; false, and nothing is written: some lie behind the end of the allocation. */
    bool (*fetch_linear)(const struct mg_texture *t, const uint32_t *c, uint32_t *const out[4], uint32_t mask);
};
extern const struct tex_vec_ops mg_tex_vec_base, mg_tex_vec_avx2, mg_tex_vec_avx512;

#endif
