/* Fetches of the common kinds, 32 lanes at a time: one level, float coordinates, no gather; texels of device memory by
 * number. The same results as the lane-by-lane code of tex_fetch.c and tex_blend.c, which says why. */
#include "device/emu/tex_texel.h"

#include <math.h>
#include <stdatomic.h>

#define LANES   32
#define EACH(l) for (uint32_t l = 0; l < LANES; l++)

struct axis {
    int32_t i[2][LANES], w[LANES];
    uint32_t outside[2]; /* lanes whose texel is the border */
};
struct taps { /* by tap, then by lane */
    uint32_t n, group;
    uint64_t at[8][LANES];
    int32_t w[8][LANES];
    uint32_t outside[8];
};

/* ---- coordinates ----------------------------------------------------------------------------------- */

static void texels_of(const struct mg_texture *t, enum mg_tex_address mode, const uint32_t *c, uint32_t n, double *x)
{
    const double far = TEX_FAR;
    EACH(l)
    {
        double v = (double)float32(c[l] & 0x7f800000 ? c[l] : 0);
        x[l] = v == v ? v : 0;
    }
    if (mode == MG_TEX_WRAP) EACH(l)
        {
            double f = x[l] - floor(x[l]);
            x[l] = f == f ? f : 0;
        }
    if (mode == MG_TEX_MIRROR) EACH(l)
        {
            double f = x[l] - 2 * floor(0.5 * x[l]);
            x[l] = f == f ? f : 0;
        }
    EACH(l) x[l] = x[l] < -far ? -far : x[l] > far ? far : x[l];
    if (!t->normalised) return;
    EACH(l)
    {
        double v = floor(x[l] * 0x1p21) * 0x1p-21 * n;
        x[l] = v < -far ? -far : v > far ? far : v;
    }
}

static void wrap(int32_t *i, uint32_t n, enum mg_tex_address mode, uint32_t *outside)
{
    int32_t size = (int32_t)n;
    *outside = 0;
    if (mode == MG_TEX_CLAMP) {
        EACH(l) i[l] = i[l] < 0 ? 0 : i[l] >= size ? size - 1 : i[l];
        return;
    }
    if (mode == MG_TEX_BORDER) EACH(l) *outside |= (uint32_t)((uint32_t)i[l] >= n) << l;
    EACH(l) i[l] = mode == MG_TEX_BORDER ? (uint32_t)i[l] < n ? i[l] : 0 : mg_tex_wrap(i[l], n, mode);
}

static void locate(const struct mg_texture *t, uint32_t k, const uint32_t *c, uint32_t n, bool filter, struct axis *a)
{
    enum mg_tex_address mode = mg_tex_mode(t, k);
    double x[LANES];
    texels_of(t, mode, c, n, x);
    if (!filter) {
        EACH(l) a->i[0][l] = (int32_t)floor(x[l]);
        wrap(a->i[0], n, mode, &a->outside[0]);
        return;
    }
    EACH(l)
    {
        int32_t f = (int32_t)floor(x[l] * 256 + 0.5) - 128;
        a->w[l] = f & 255;
        a->i[0][l] = f >> 8;
        a->i[1][l] = (f >> 8) + 1;
    }
    wrap(a->i[0], n, mode, &a->outside[0]);
    wrap(a->i[1], n, mode, &a->outside[1]);
    EACH(l)
    {
        bool both = a->outside[0] & a->outside[1] & 1u << l, one = (a->outside[0] | a->outside[1]) & 1u << l;
        a->w[l] = both || (!one && a->i[0][l] == a->i[1][l]) ? 0 : a->w[l];
    }
}

/* ---- taps --------------------------------------------------------------------------------------------- */

static void tap(struct taps *p, const struct mg_texture *t, const struct axis a[3], uint32_t x, uint32_t y, uint32_t z,
                const int32_t *w)
{
    const struct mg_tex_level *v = &t->level[0];
    uint32_t k = p->n++, bytes = mg_texel_kind_bytes(t->kind) * t->channels;
    EACH(l)
    p->at[k][l] = (uint64_t)(uint32_t)a[2].i[z][l] * v->slice + (uint64_t)(uint32_t)a[1].i[y][l] * v->row +
                  (uint64_t)(uint32_t)a[0].i[x][l] * bytes;
    memcpy(p->w[k], w, sizeof p->w[k]);
    p->outside[k] = a[0].outside[x] | a[1].outside[y] | a[2].outside[z];
}

static void square(struct taps *p, const struct mg_texture *t, uint32_t dims, const struct axis a[3], uint32_t z,
                   const int32_t *total)
{
    int32_t left[LANES], right[LANES], w[4][LANES];
    EACH(l)
    {
        right[l] = (total[l] * a[0].w[l] + 128) >> 8;
        left[l] = total[l] - right[l];
    }
    if (dims == 1) {
        tap(p, t, a, 0, 0, z, left);
        tap(p, t, a, 1, 0, z, right);
        return;
    }
    EACH(l)
    {
        w[3][l] = (right[l] * a[1].w[l] + 128) >> 8;
        w[0][l] = (left[l] * (256 - a[1].w[l]) + 128) >> 8;
        w[1][l] = right[l] - w[3][l];
        w[2][l] = left[l] - w[0][l];
    }
    for (uint32_t k = 0; k < 4; k++) tap(p, t, a, k & 1, k >> 1, z, w[k]);
}

/* ---- texels --------------------------------------------------------------------------------------------- */

/* An element of 1 to 16 bytes as up to four words. */
static void load(const uint8_t *base, const uint64_t *at, uint32_t bytes, uint32_t word[4][LANES])
{
    switch (bytes) {
    case 1:
        EACH(l) word[0][l] = base[at[l]];
        break;
    case 2:
        EACH(l) word[0][l] = tex_u16(base + at[l]);
        break;
    case 4:
        EACH(l) word[0][l] = tex_u32(base + at[l]);
        break;
    case 8:
        EACH(l)
        {
            word[0][l] = tex_u32(base + at[l]);
            word[1][l] = tex_u32(base + at[l] + 4);
        }
        break;
    default:
        EACH(l) for (uint32_t k = 0; k < 4; k++) word[k][l] = tex_u32(base + at[l] + 4 * k);
    }
}

static void channel(enum mg_texel_kind kind, uint32_t word[4][LANES], uint32_t k, uint32_t *v)
{
    const uint32_t *half = word[k / 2];
    switch (kind) {
    case MG_TEXEL_U8:
        EACH(l) v[l] = word[0][l] >> 8 * k & 255;
        break;
    case MG_TEXEL_S8:
        EACH(l) v[l] = (uint32_t)(int8_t)(word[0][l] >> 8 * k);
        break;
    case MG_TEXEL_U16:
        EACH(l) v[l] = half[l] >> 16 * (k & 1) & 65535;
        break;
    case MG_TEXEL_S16:
        EACH(l) v[l] = (uint32_t)(int16_t)(half[l] >> 16 * (k & 1));
        break;
    case MG_TEXEL_F16:
        EACH(l) v[l] = bits32(half_to_float(half[l] >> 16 * (k & 1) & 65535));
        break;
    default:
        memcpy(v, word[k], LANES * sizeof *v);
    }
}

static void as_float(enum mg_texel_kind kind, uint32_t *v)
{
    switch (kind) {
    case MG_TEXEL_U8:
        EACH(l) v[l] = bits32(tex_unorm(v[l], 255.0f));
        break;
    case MG_TEXEL_S8:
        EACH(l) v[l] = bits32(tex_snorm((int32_t)v[l], 127.0f));
        break;
    case MG_TEXEL_U16:
        EACH(l) v[l] = bits32(tex_unorm(v[l], 65535.0f));
        break;
    case MG_TEXEL_S16:
        EACH(l) v[l] = bits32(tex_snorm((int32_t)v[l], 32767.0f));
        break;
    default:
        break;
    }
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

static void blend_integers(enum tex_blend how, const struct taps *p, uint32_t v[8][LANES], uint32_t *out)
{
    int32_t sum[LANES] = {0};
    for (uint32_t k = 0; k < p->n; k++) EACH(l) sum[l] += p->w[k][l] * (int32_t)v[k][l];
    if (how == TEX_BLEND_U8)
        EACH(l) out[l] = bits32(tex_unorm((uint32_t)(sum[l] * 257 + 128) >> 8, 65535.0f));
    else if (how == TEX_BLEND_U16)
        EACH(l) out[l] = bits32(tex_unorm((uint32_t)(sum[l] + 128) >> 8, 65535.0f));
    else
        EACH(l) out[l] = bits32(tex_snorm((sum[l] + 128) >> 8, 32767.0f));
}

static void blend_floats(enum tex_blend how, const struct taps *p, uint32_t v[8][LANES], int guard, int bits,
                         uint32_t *out)
{
    double sum[LANES] = {0};
    uint32_t special = 0, sign[LANES], any[LANES] = {0};
    memset(sign, 0x80, sizeof sign);
    for (uint32_t first = 0; first < p->n; first += p->group) {
        uint32_t most[LANES] = {0}, inf[LANES] = {0};
        double part[LANES] = {0}, up[LANES];
        for (uint32_t k = first; k < first + p->group; k++) EACH(l)
            {
                uint32_t e = p->w[k][l] ? v[k][l] & 0x7f800000 : 0;
                most[l] = e > most[l] ? e : most[l];
                inf[l] |= e == 0x7f800000;
                sign[l] &= p->w[k][l] ? v[k][l] : 0x80000000;
            }
        EACH(l)
        {
            special |= inf[l] << l;
            any[l] |= most[l];
            up[l] = float64((uint64_t)(uint32_t)(1023 + 127 + guard - (int)(most[l] >> 23)) << 52);
        }
        for (uint32_t k = first; k < first + p->group; k++) EACH(l)
            {
                bool counts = p->w[k][l] && v[k][l] & 0x7f800000;
                part[l] += (double)p->w[k][l] * trunc((double)float32(counts ? v[k][l] : 0) * up[l]);
            }
        EACH(l) sum[l] += most[l] ? part[l] / up[l] : 0;
    }
    uint64_t half = 1ull << (52 - bits), keep = ~(2 * half - 1);
    EACH(l)
    {
        uint64_t size = bits64(sum[l]) & INT64_MAX;
        uint32_t minus = (uint32_t)(bits64(sum[l]) >> 32) & 0x80000000;
        uint32_t r = bits32((float)(float64((size + half) & keep) * 0x1p-8)) | minus;
        r = float64(size) * 0x1p-8 < 0x1p-126 ? minus : r;
        out[l] = any[l] ? r : sign[l] & 0x80000000;
    }
    for (; special; special &= special - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(special), tv[8];
        int32_t tw[8];
        for (uint32_t k = 0; k < p->n; k++) tv[k] = v[k][l], tw[k] = p->w[k][l];
        out[l] = mg_tex_blend(how, tv, tw, p->n, p->group);
    }
}

static void blend(enum tex_blend how, const struct taps *p, uint32_t v[8][LANES], uint32_t *out)
{
    if (how == TEX_BLEND_F32)
        blend_floats(how, p, v, 27, 24, out);
    else if (how == TEX_BLEND_F16)
        blend_floats(how, p, v, 14, 11, out);
    else if (how != TEX_BLEND_S8)
        blend_integers(how, p, v, out);
    else
        EACH(l)
        {
            uint32_t tv[8];
            int32_t tw[8];
            for (uint32_t k = 0; k < p->n; k++) tv[k] = v[k][l], tw[k] = p->w[k][l];
            out[l] = mg_tex_blend(how, tv, tw, p->n, p->group);
        }
}

/* ---- a warp ------------------------------------------------------------------------------------------------- */

static void put(uint32_t *out, const uint32_t *result, uint32_t mask)
{
    if (mask == UINT32_MAX)
        memcpy(out, result, LANES * sizeof *out);
    else
        EACH(l) out[l] = mask & 1u << l ? result[l] : out[l];
}

static void ALU_TABLE(fetch)(const struct mg_texture *t, uint32_t dims, const uint32_t *const c[3],
                             const int32_t *slice, uint32_t *const out[4], uint32_t mask)
{
    static const uint32_t zero[LANES];
    const struct mg_tex_level *v = &t->level[0];
    const uint32_t n[3] = {v->width, v->height, v->depth}, bytes = mg_texel_kind_bytes(t->kind) * t->channels;
    bool integer = !t->as_float && t->kind != MG_TEXEL_F32 && t->kind != MG_TEXEL_F16, filter = t->linear && !integer;
    struct axis a[3];
    struct taps p;
    int32_t total[LANES], behind[LANES], front[LANES];
    uint32_t word[8][4][LANES], raw[8][LANES], result[LANES];
    for (uint32_t k = 0; k < 3; k++) {
        a[k].outside[0] = a[k].outside[1] = 0;
        memset(a[k].i[0], 0, sizeof a[k].i[0]);
    }
    if (slice) memcpy(a[2].i[0], slice, sizeof a[2].i[0]);
    for (uint32_t k = 0; k < dims; k++) locate(t, k, c[k], n[k], filter, &a[k]);
    p.n = 0;
    p.group = dims == 1 ? 2 : 4;
    EACH(l) total[l] = 256;
    if (!filter) {
        p.group = 1;
        tap(&p, t, a, 0, 0, 0, total);
    } else if (dims == 3) {
        EACH(l)
        {
            behind[l] = a[2].w[l];
            front[l] = 256 - behind[l];
        }
        square(&p, t, 2, a, 0, front);
        square(&p, t, 2, a, 1, behind);
    } else {
        if (dims == 1 && mg_tex_mode(t, 1) == MG_TEX_BORDER) { /* y is 0 there: half border */
            locate(t, 1, zero, 1, true, &a[1]);
            p.group = 4;
        }
        square(&p, t, p.group / 2, a, 0, total);
    }
    for (uint32_t k = 0; k < p.n; k++) load(v->at, p.at[k], bytes, word[k]);
    for (uint32_t k = 0; k < 4; k++) {
        if (!out[k]) continue;
        if (k >= t->channels)
            memset(result, 0, sizeof result);
        else {
            uint32_t border = 0;
            for (uint32_t i = 0; i < p.n; i++) border |= p.outside[i];
            if (border) border = mg_tex_border(t, k);
            for (uint32_t i = 0; i < p.n; i++) {
                channel(t->kind, word[i], k, raw[i]);
                if (p.outside[i]) EACH(l) raw[i][l] = p.outside[i] & 1u << l ? border : raw[i][l];
            }
            if (filter)
                blend(mg_tex_blend_of(t), &p, raw, result);
            else {
                if (t->as_float) as_float(t->kind, raw[0]);
                memcpy(result, raw[0], sizeof result);
            }
        }
        put(out[k], result, mask);
    }
}

static bool ALU_TABLE(fetch_linear)(const struct mg_texture *t, const uint32_t *c, uint32_t *const out[4],
                                    uint32_t mask)
{
    const uint32_t bytes = mg_texel_kind_bytes(t->kind) * t->channels, width = MG_MIN(t->level[0].width, 1u << 31);
    const uint64_t live = atomic_load_explicit(&t->reach, memory_order_relaxed) / bytes;
    const uint32_t end = (uint32_t)MG_MIN(live, (uint64_t)width);
    uint32_t behind = 0, inside[LANES], word[4][LANES], result[LANES];
    uint64_t at[LANES];
    uint32_t apart = 0;
    EACH(l) apart |= c[l] ^ (c[0] + l);
    if (!apart && bytes == 4 && c[31] >= 31 && c[31] < end) { /* a row of words */
        memset(inside, 0xff, sizeof inside);
        memcpy(word[0], t->level[0].at + (uint64_t)c[0] * bytes, sizeof word[0]);
    } else {
        EACH(l) behind |= (uint32_t)(c[l] < width && c[l] >= end) << l;
        if (!end || behind & mask) return false;
        EACH(l) inside[l] = c[l] < end ? UINT32_MAX : 0;
        EACH(l) at[l] = (uint64_t)(c[l] & inside[l]) * bytes;
        load(t->level[0].at, at, bytes, word);
    }
    for (uint32_t k = 0; k < 4; k++) {
        if (!out[k]) continue;
        memset(result, 0, sizeof result);
        if (k < t->channels) channel(t->kind, word, k, result);
        if (k < t->channels && t->as_float) as_float(t->kind, result);
        EACH(l) result[l] &= inside[l];
        put(out[k], result, mask);
    }
    return true;
}

const struct tex_vec_ops ALU_TABLE(mg_tex_vec) = {.fetch = ALU_TABLE(fetch), .fetch_linear = ALU_TABLE(fetch_linear)};
