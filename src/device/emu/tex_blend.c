/* The filter's arithmetic: a weighted sum of texels as the H200's texture unit computes it, found
 * from recordings (docs/arithmetic.md). Weights are whole 256ths and add up to 256. */
#include "device/emu/tex_texel.h"

#include <math.h>

/* Numbers are cut to a common grid, 2^-guard of the largest one's exponent, where their sum is exact.
 * Subnormal numbers count as zero. */
static double sum_floats(const uint32_t *v, const int32_t *w, uint32_t n, int guard)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = w[i] ? v[i] & 0x7f800000 : 0;
        most = e > most ? e : most;
    }
    if (!most) return 0;
    /* 2^(guard - exponent) and back; as double, since floats of any size come here */
    double up = float64((uint64_t)(1023 + guard + 127 - (int)(most >> 23)) << 52), sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (v[i] & 0x7f800000) sum += (double)(w[i] * (int64_t)((double)float32(v[i]) * up));
    return sum / up;
}

/* The sum of the groups' sums, rounded to `bits` bits, halves away from zero. */
static float blend_floats(const uint32_t *v, const int32_t *w, uint32_t n, uint32_t group, int guard, int bits)
{
    float special = 0;
    bool has_special = false;
    uint32_t sign = 0x80000000, any = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!w[i]) continue;
        sign &= v[i];
        any |= v[i] & 0x7f800000;
        if ((v[i] & 0x7f800000) != 0x7f800000) continue;
        special = has_special ? special + float32(v[i]) : float32(v[i]);
        has_special = true;
    }
    if (has_special) return special != special ? float32(0x7fffffff) : special;
    if (!any) return float32(sign);
    double sum = 0;
    for (uint32_t i = 0; i < n; i += group) sum += sum_floats(v + i, w + i, group, guard);
    uint64_t size = bits64(fabs(sum)), drop = 52 - (uint64_t)(bits - 1); /* bits of the fraction that go */
    if (float64(size) * 0x1p-8 < 0x1p-126) return sum < 0 ? -0.0f : 0.0f;
    float r = (float)(float64((size + (1ull << (drop - 1))) & ~((1ull << drop) - 1)) * 0x1p-8);
    return sum < 0 ? -r : r;
}

uint32_t mg_tex_blend(enum tex_blend how, const uint32_t *v, const int32_t *w, uint32_t n, uint32_t group)
{
    int64_t sum = 0;
    switch (how) {
    case TEX_BLEND_F32:
        return bits32(blend_floats(v, w, n, group, 27, 24));
    case TEX_BLEND_F16:
        return bits32(blend_floats(v, w, n, group, 14, 11));
    case TEX_BLEND_SRGB:
        return bits32(blend_floats(v, w, n, group, 7, 11));
    case TEX_BLEND_S8: /* 32767 / 127, three more bits */
        for (uint32_t i = 0; i < n; i++) sum += w[i] * ((int64_t)(int32_t)v[i] * 258 * 8 + ((int32_t)v[i] * 8 >> 7));
        return bits32(tex_snorm((int32_t)((sum + 1024) >> 11), 32767.0f));
    case TEX_BLEND_S16:
        for (uint32_t i = 0; i < n; i++) sum += w[i] * (int64_t)(int32_t)v[i];
        return bits32(tex_snorm((int32_t)((sum + 128) >> 8), 32767.0f));
    default:
        for (uint32_t i = 0; i < n; i++) sum += w[i] * (int64_t)v[i];
        if (how == TEX_BLEND_U8) sum *= 257;
        return bits32(tex_unorm((uint32_t)((sum + 128) >> 8), 65535.0f));
    }
}

/* Eight bits of precision, and no step below 2^-14. */
float mg_tex_srgb(uint32_t v)
{
    static const uint16_t table[256] = {
        0,     5,     10,    15,    20,    25,    30,    35,    40,    45,    50,    55,    60,    66,    72,    78,
        85,    92,    99,    107,   115,   123,   131,   140,   150,   159,   169,   180,   190,   201,   213,   224,
        236,   250,   262,   276,   290,   304,   318,   332,   348,   364,   380,   396,   412,   430,   448,   466,
        484,   504,   524,   544,   564,   584,   604,   624,   648,   672,   692,   716,   740,   764,   788,   816,
        840,   864,   896,   920,   944,   976,   1000,  1032,  1064,  1088,  1120,  1152,  1184,  1216,  1248,  1280,
        1312,  1352,  1384,  1416,  1456,  1488,  1528,  1560,  1600,  1640,  1672,  1712,  1752,  1792,  1832,  1872,
        1920,  1952,  2000,  2048,  2080,  2128,  2176,  2224,  2272,  2320,  2368,  2416,  2464,  2512,  2560,  2608,
        2656,  2704,  2752,  2816,  2864,  2912,  2976,  3024,  3072,  3136,  3184,  3248,  3296,  3360,  3424,  3472,
        3536,  3600,  3664,  3712,  3776,  3840,  3904,  3968,  4032,  4096,  4160,  4224,  4288,  4352,  4416,  4512,
        4576,  4640,  4704,  4768,  4864,  4928,  4992,  5056,  5152,  5216,  5280,  5376,  5440,  5536,  5600,  5696,
        5760,  5824,  5920,  6016,  6080,  6176,  6240,  6336,  6400,  6496,  6592,  6688,  6752,  6848,  6944,  7008,
        7104,  7200,  7296,  7392,  7488,  7584,  7680,  7744,  7872,  7936,  8064,  8128,  8256,  8320,  8448,  8512,
        8640,  8768,  8832,  8960,  9024,  9152,  9280,  9344,  9472,  9600,  9664,  9792,  9920,  9984,  10112, 10240,
        10304, 10432, 10560, 10688, 10816, 10880, 11008, 11136, 11264, 11392, 11456, 11584, 11712, 11840, 11968, 12096,
        12224, 12352, 12480, 12608, 12736, 12864, 12992, 13120, 13248, 13376, 13504, 13632, 13760, 13888, 14016, 14144,
        14272, 14400, 14528, 14656, 14848, 14976, 15104, 15232, 15360, 15488, 15616, 15744, 16000, 16128, 16256, 16384,
    };
    return (float)table[v & 255] * 0x1p-14f;
}
