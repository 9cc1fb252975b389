/* Fetches: tex, tex.level, tex.grad, tld4 (tex.h).
 *
 * A coordinate becomes texel indices and a weight of 8 fraction bits per axis; the weighted sum of
 * the 2, 4 or 8 texels is the result. docs/arithmetic.md says what of this is documented and what
 * was seen on an H200.
 */
#include "device/emu/tex_texel.h"

#include <math.h>
#include <stdatomic.h>

#define OUTSIDE TEX_OUTSIDE

struct axis { /* where a coordinate falls */
    int32_t i[2];
    uint32_t w; /* weight of i[1] in 1/256, 0: i[0] alone */
};

struct sampler { /* what a fetch needs of a level, looked up once per call */
    const struct mg_texture *t;
    const struct mg_tex_level *l;
    bool filter; /* linear */
    uint32_t dims;
};

/* ---- coordinates ----------------------------------------------------------------------------------- */

int32_t mg_tex_wrap(int32_t i, uint32_t n, enum mg_tex_address mode)
{
    int32_t size = (int32_t)n, m;
    if ((uint32_t)i < n) return i;
    switch (mode) {
    case MG_TEX_WRAP:
        m = i % size;
        return m < 0 ? m + size : m;
    case MG_TEX_MIRROR:
        m = i % (2 * size);
        if (m < 0) m += 2 * size;
        return m < size ? m : 2 * size - 1 - m;
    case MG_TEX_BORDER:
        return OUTSIDE;
    default:
        return i < 0 ? 0 : size - 1;
    }
}

enum mg_tex_address mg_tex_mode(const struct mg_texture *t, uint32_t axis)
{
    enum mg_tex_address m = t->address[axis];
    return !t->normalised && (m == MG_TEX_WRAP || m == MG_TEX_MIRROR) ? MG_TEX_CLAMP : m;
}

/* A coordinate in texels with 8 fraction bits, or as a whole number of texels (bits 0). Normalised
 * ones are cut to 21 fraction bits before they are multiplied by the size. */
static int64_t in_texels(const struct sampler *s, enum mg_tex_address mode, float c, uint32_t n, bool half_up, int bits)
{
    double x = bits32(c) & 0x7f800000 ? (double)c : 0; /* subnormal numbers count as zero */
    if (x != x) x = 0;
    if (mode == MG_TEX_WRAP || mode == MG_TEX_MIRROR) { /* periods of 1 and of 2 */
        x = isinf(c) ? 0 : mode == MG_TEX_WRAP ? x - floor(x) : x - 2 * floor(0.5 * x);
    }
    if (s->t->normalised) x = floor(fmin(fmax(x, -TEX_FAR), TEX_FAR) * 0x1p21) * 0x1p-21 * n;
    x = fmin(fmax(x, -TEX_FAR), TEX_FAR);
    return (int64_t)floor(x * (double)(1 << bits) + (half_up ? 0.5 : 0));
}

static struct axis locate(const struct sampler *s, uint32_t k, float c, uint32_t n, int32_t offset)
{
    enum mg_tex_address mode = mg_tex_mode(s->t, k);
    struct axis a = {{0, 0}, 0};
    if (!s->filter) {
        a.i[0] = mg_tex_wrap((int32_t)in_texels(s, mode, c, n, false, 0) + offset, n, mode);
        return a;
    }
    int64_t f = in_texels(s, mode, c, n, true, 8) - 128;
    int32_t i = (int32_t)(f >> 8) + offset;
    a.w = (uint32_t)(f & 255);
    a.i[0] = mg_tex_wrap(i, n, mode);
    a.i[1] = mg_tex_wrap(i + 1, n, mode);
    if (a.i[0] == a.i[1]) a.w = 0; /* seen in the rounding of weights in 3D */
    return a;
}

/* ---- texels ------------------------------------------------------------------------------------------ */

uint32_t mg_tex_border(const struct mg_texture *t, uint32_t k)
{
    float b = t->border[k], most;
    switch ((enum mg_texel_kind)t->kind) {
    case MG_TEXEL_U8:
        most = 255.0f;
        break;
    case MG_TEXEL_U16:
        most = 65535.0f;
        break;
    case MG_TEXEL_S8:
        most = 127.0f;
        break;
    case MG_TEXEL_S16:
        most = 32767.0f;
        break;
    default:
        return bits32(b);
    }
    float least = t->kind == MG_TEXEL_U8 || t->kind == MG_TEXEL_U16 ? 0.0f : -1.0f;
    b = b > least ? b < 1.0f ? b : 1.0f : least;
    return (uint32_t)(int32_t)rintf(b * most);
}

static void texel(const struct sampler *s, int32_t x, int32_t y, int32_t z, uint32_t out[4])
{
    const struct mg_texture *t = s->t;
    memset(out, 0, 4 * sizeof *out);
    if (x == OUTSIDE || y == OUTSIDE || z == OUTSIDE) {
        for (uint32_t k = 0; k < t->channels; k++) out[k] = mg_tex_border(t, k);
        return;
    }
    uint32_t bytes = mg_texel_kind_bytes(t->kind);
    const uint8_t *p =
        s->l->at + (uint64_t)z * s->l->slice + (uint64_t)y * s->l->row + (uint64_t)x * bytes * t->channels;
    for (uint32_t k = 0; k < t->channels; k++) out[k] = tex_raw(t->kind, p + k * bytes);
}

static bool is_srgb(const struct mg_texture *t, uint32_t channel)
{
    return t->srgb && t->as_float && t->kind == MG_TEXEL_U8 && channel < 3;
}

/* Raw values as the instruction's results. */
static void converted(const struct mg_texture *t, uint32_t v[4])
{
    if (!t->as_float) return;
    for (uint32_t k = 0; k < t->channels; k++)
        v[k] = is_srgb(t, k) ? bits32(mg_tex_srgb(v[k])) : tex_as_float(t->kind, v[k]);
}

/* ---- taps: the texels that a filtered fetch adds up ---------------------------------------------------- */

struct taps {
    uint32_t n, group;
    int32_t w[16];
    uint32_t v[4][16]; /* by channel; groups are added up by themselves first */
};

static void tap(struct taps *p, const struct sampler *s, int32_t x, int32_t y, int32_t z, int32_t w)
{
    uint32_t v[4];
    texel(s, x, y, z, v);
    for (int k = 0; k < 4; k++) p->v[k][p->n] = v[k];
    p->w[p->n++] = w;
}

/* The part of `total`, in 256ths, that falls on the upper of two neighbours. */
static int32_t share(int32_t total, uint32_t w)
{
    return (int32_t)((uint32_t)total * w + 128) >> 8;
}

/* A row's or a square's texels that share `total`. */
static void tap_square(struct taps *p, const struct sampler *s, const struct axis a[3], int32_t z, int32_t total)
{
    int32_t right = share(total, a[0].w), left = total - right;
    p->group = 4;
    if (s->dims == 1 && mg_tex_mode(s->t, 1) != MG_TEX_BORDER) {
        p->group = 2;
        tap(p, s, a[0].i[0], 0, z, left);
        tap(p, s, a[0].i[1], 0, z, right);
        return;
    }
    int32_t right_down = share(right, a[1].w), left_up = share(left, 256 - a[1].w);
    tap(p, s, a[0].i[0], a[1].i[0], z, left_up);
    tap(p, s, a[0].i[1], a[1].i[0], z, right - right_down);
    tap(p, s, a[0].i[0], a[1].i[1], z, left - left_up);
    tap(p, s, a[0].i[1], a[1].i[1], z, right_down);
}

static void tap_level(struct taps *p, const struct sampler *s, const float c[3], int32_t slice, const int32_t offset[3],
                      int32_t total)
{
    uint32_t n[3] = {s->l->width, s->l->height, s->l->depth};
    struct axis a[3] = {{{0, 0}, 0}, {{0, 0}, 0}, {{slice, slice}, 0}};
    for (uint32_t k = 0; k < s->dims; k++) a[k] = locate(s, k, c[k], n[k], offset[k]);
    if (s->dims == 1 && mg_tex_mode(s->t, 1) == MG_TEX_BORDER)
        a[1] = locate(s, 1, 0, 1, 0); /* y is 0 there: half border */
    if (!s->filter) {
        p->group = 1;
        tap(p, s, a[0].i[0], a[1].i[0], a[2].i[0], total);
        return;
    }
    int32_t behind = share(total, a[2].w);
    tap_square(p, s, a, a[2].i[0], total - behind);
    if (behind) tap_square(p, s, a, a[2].i[1], behind);
}

enum tex_blend mg_tex_blend_of(const struct mg_texture *t)
{
    switch ((enum mg_texel_kind)t->kind) {
    case MG_TEXEL_U8:
        return TEX_BLEND_U8;
    case MG_TEXEL_S8:
        return TEX_BLEND_S8;
    case MG_TEXEL_U16:
        return TEX_BLEND_U16;
    case MG_TEXEL_S16:
        return TEX_BLEND_S16;
    case MG_TEXEL_F16:
        return TEX_BLEND_F16;
    default:
        return TEX_BLEND_F32;
    }
}

static void blended(const struct mg_texture *t, struct taps *p, uint32_t out[4])
{
    memset(out, 0, 4 * sizeof *out);
    for (uint32_t k = 0; k < t->channels; k++) {
        bool srgb = is_srgb(t, k);
        for (uint32_t i = 0; srgb && i < p->n; i++) p->v[k][i] = bits32(mg_tex_srgb(p->v[k][i]));
        out[k] = mg_tex_blend(srgb ? TEX_BLEND_SRGB : mg_tex_blend_of(t), p->v[k], p->w, p->n, p->group);
    }
}

/* Integers and floats that are not filtered. */
static void nearest(const struct sampler *s, const float c[3], int32_t slice, const int32_t offset[3], uint32_t out[4])
{
    uint32_t n[3] = {s->l->width, s->l->height, s->l->depth};
    int32_t at[3] = {0, 0, slice};
    struct sampler point = *s;
    point.filter = false;
    for (uint32_t k = 0; k < s->dims; k++) at[k] = locate(&point, k, c[k], n[k], offset[k]).i[0];
    texel(&point, at[0], at[1], at[2], out);
    converted(s->t, out);
}

/* Cube: the face that the vector points at and the place on it. */
static uint32_t cube_face(const float c[3], float st[2])
{
    float x = c[0], y = c[1], z = c[2], ax = fabsf(x), ay = fabsf(y), az = fabsf(z), sc, tc, m;
    uint32_t face;
    if (az >= ax && az >= ay) {
        face = 4 + (z < 0);
        m = az, sc = z < 0 ? -x : x, tc = -y;
    } else if (ay >= ax) {
        face = 2 + (y < 0);
        m = ay, sc = x, tc = y < 0 ? -z : z;
    } else {
        face = x < 0;
        m = ax, sc = x < 0 ? z : -z, tc = -y;
    }
    st[0] = (sc / m + 1.0f) * 0.5f;
    st[1] = (tc / m + 1.0f) * 0.5f;
    return face;
}

static void gather(const struct sampler *s, const float c[3], int32_t slice, const int32_t offset[3],
                   uint32_t component, uint32_t out[4])
{
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    struct sampler linear = *s;
    linear.filter = true;
    struct axis x = locate(&linear, 0, c[0], s->l->width, offset[0]),
                y = locate(&linear, 1, c[1], s->l->height, offset[1]);
    for (int k = 0; k < 4; k++) {
        uint32_t v[4];
        texel(s, x.i[order[k][0]], y.i[order[k][1]], slice, v);
        converted(s->t, v);
        out[k] = v[component];
    }
}

/* ---- levels of mipmaps ----------------------------------------------------------------------------------- */

static float lod_of_gradients(const struct mg_texture *t, uint32_t dims, const struct mg_tex_lanes *l, uint32_t lane)
{
    const struct mg_tex_level *base = &t->level[0];
    const float n[3] = {(float)base->width, (float)base->height, (float)base->depth};
    float most = 0;
    for (uint32_t side = 0; side < 2; side++) {
        float sum = 0;
        for (uint32_t k = 0; k < dims; k++) {
            float d = float32(l->extra[3 * side + k][lane]) * (t->normalised ? n[k] : 1.0f);
            sum += d * d;
        }
        most = fmaxf(most, sum);
    }
    return 0.5f * log2f(most);
}

/* The bias is for levels that the instruction asks for. */
static float lod_of(const struct mg_tex_inst *in, const struct sampler *s, const struct mg_tex_lanes *l, uint32_t lane)
{
    const struct mg_texture *t = s->t;
    float most = (float)(t->n_levels - 1), lod = 0;
    if (in->op == MG_TEXOP_LEVEL) lod = float32(l->extra[0][lane]) + t->bias;
    if (in->op == MG_TEXOP_GRAD) lod = ceilf(lod_of_gradients(t, s->dims, l, lane) * 256.0f) * 0x1p-8f + t->bias;
    lod = lod > t->min_lod ? lod : t->min_lod;
    lod = lod < t->max_lod ? lod : t->max_lod;
    return lod > 0 ? lod < most ? lod : most : 0;
}

static void at_levels(const struct mg_tex_inst *in, struct sampler *s, float lod, const float c[3], int32_t slice,
                      const int32_t offset[3], uint32_t out[4])
{
    const struct mg_texture *t = s->t;
    uint32_t f = (uint32_t)(lod * 256.0f), w = t->mip_linear ? f & 255 : 0,
             level = t->mip_linear ? f >> 8 : (uint32_t)(lod + 0.5f);
    bool integer = !t->as_float && t->kind != MG_TEXEL_F32 && t->kind != MG_TEXEL_F16;
    s->l = &t->level[level];
    if (in->op == MG_TEXOP_GATHER) {
        gather(s, c, slice, offset, in->component, out);
    } else if (integer || (!s->filter && !w)) {
        nearest(s, c, slice, offset, out);
    } else {
        struct taps p;
        p.n = 0;
        tap_level(&p, s, c, slice, offset, 256 - (int32_t)w);
        if (w) {
            s->l = &t->level[level + 1];
            tap_level(&p, s, c, slice, offset, (int32_t)w);
        }
        blended(t, &p, out);
    }
}

/* ---- integer coordinates ----------------------------------------------------------------------------------- */

/* Outside is 0 whatever the address mode; with a level in the instruction it is the edge. */
static void integer_fetch(const struct mg_tex_inst *in, const struct sampler *s, const int32_t c[3], int64_t slice,
                          const int32_t offset[3], uint32_t out[4])
{
    const struct mg_texture *t = s->t;
    int64_t n[3] = {s->l->width, s->l->height, s->l->depth}, at[3] = {0, 0, slice};
    bool inside =
        !(t->shape == MG_TEX_ARRAY && in->geom == MG_GEOM_1D && in->op == MG_TEXOP_TEX); /* for device memory alone */
    for (uint32_t k = 0; k < 3; k++) {
        if (k < s->dims) at[k] = (int64_t)c[k] + offset[k];
        inside &= at[k] >= 0 && at[k] < n[k];
        at[k] = at[k] < 0 ? 0 : at[k] >= n[k] ? n[k] - 1 : at[k];
    }
    if (!inside && in->op != MG_TEXOP_LEVEL) {
        memset(out, 0, 4 * sizeof *out);
        return;
    }
    texel(s, (int32_t)at[0], (int32_t)at[1], (int32_t)at[2], out);
    converted(t, out);
}

/* ---- a warp -------------------------------------------------------------------------------------------------- */

static void put(const struct mg_tex_inst *in, const struct mg_tex_lanes *l, uint32_t lane, const uint32_t v[4])
{
    if (in->out == MG_TEXOUT_F16X2) {
        for (int k = 0; k < 2; k++)
            if (l->out[k])
                l->out[k][lane] = float_to_half(float32(v[2 * k])) | float_to_half(float32(v[2 * k + 1])) << 16;
        return;
    }
    for (int k = 0; k < 4; k++)
        if (l->out[k]) l->out[k][lane] = in->out == MG_TEXOUT_F16 ? float_to_half(float32(v[k])) : v[k];
}

static void one_lane(const struct mg_tex_inst *in, const struct mg_texture *t, const struct mg_tex_lanes *l,
                     uint32_t lane, uint32_t v[4])
{
    struct sampler s = {.t = t,
                        .l = &t->level[0],
                        .filter = t->linear,
                        .dims = in->geom == MG_GEOM_1D || in->geom == MG_GEOM_A1D ? 1
                                : in->geom == MG_GEOM_3D                          ? 3
                                                                                  : 2};
    int32_t offset[3] = {0, 0, 0}, slice = 0, layers = (int32_t)s.l->depth;
    if (in->has_offset)
        for (uint32_t k = 0; k < s.dims; k++) offset[k] = (int32_t)l->offset[k][lane];
    if (in->geom == MG_GEOM_ACUBE) layers /= 6;
    if (l->layer) slice = (int32_t)MG_MIN(l->layer[lane], (uint32_t)(layers ? layers - 1 : 0));
    if (in->int_coords) {
        int32_t at[3];
        for (uint32_t k = 0; k < s.dims; k++) at[k] = (int32_t)l->coord[k][lane];
        if (in->op == MG_TEXOP_LEVEL) s.l = &t->level[MG_MIN(l->extra[0][lane], t->n_levels - 1)];
        integer_fetch(in, &s, at, l->layer ? (int64_t)(int32_t)l->layer[lane] : 0, offset, v);
        return;
    }
    if (t->shape == MG_TEX_LINEAR) { /* device memory is read with integer coordinates alone */
        memset(v, 0, 4 * sizeof *v);
        return;
    }
    float c[3];
    for (uint32_t k = 0; k < 3; k++) c[k] = l->coord[k] ? float32(l->coord[k][lane]) : 0.0f;
    if (in->geom == MG_GEOM_CUBE || in->geom == MG_GEOM_ACUBE)
        slice = MG_MIN(slice * 6 + (int32_t)cube_face(c, c), (int32_t)s.l->depth - 1);
    at_levels(in, &s, t->n_levels > 1 ? lod_of(in, &s, l, lane) : 0, c, slice, offset, v);
}

static bool behind_end(const struct mg_tex_inst *in, const struct mg_texture *t, const struct mg_tex_lanes *l,
                       uint32_t lane)
{
    if (t->shape != MG_TEX_LINEAR || !in->int_coords) return false;
    int64_t i = (int64_t)(int32_t)l->coord[0][lane] + (in->has_offset ? (int32_t)l->offset[0][lane] : 0);
    uint64_t bytes = mg_texel_kind_bytes(t->kind) * t->channels;
    return i >= 0 && i < t->level[0].width &&
           ((uint64_t)i + 1) * bytes > atomic_load_explicit(&t->reach, memory_order_relaxed);
}

static const struct tex_vec_ops *vec_ops(void)
{
    static _Atomic(const struct tex_vec_ops *) known;
    const struct tex_vec_ops *v = atomic_load_explicit(&known, memory_order_relaxed);
    if (v) return v;
    enum emu_isa isa = emu_isa_best();
    v = isa == EMU_ISA_AVX512 ? &mg_tex_vec_avx512 : isa == EMU_ISA_AVX2 ? &mg_tex_vec_avx2 : &mg_tex_vec_base;
    atomic_store_explicit(&known, v, memory_order_relaxed);
    return v;
}

static bool fetch_linear(const struct mg_tex_inst *in, const struct mg_texture *t, const struct mg_tex_lanes *l,
                         uint32_t mask)
{
    if (t->shape != MG_TEX_LINEAR || t->srgb || in->geom != MG_GEOM_1D || in->op != MG_TEXOP_TEX || in->has_offset ||
        in->out != MG_TEXOUT_32)
        return false;
    return vec_ops()->fetch_linear(t, l->coord[0], l->out, mask);
}

/* What vec_tex.c does: false for the rest. */
static bool fetch_together(const struct mg_tex_inst *in, const struct mg_texture *t, const struct mg_tex_lanes *l,
                           uint32_t mask)
{
    if (in->int_coords) return fetch_linear(in, t, l, mask);
    if (in->has_offset || in->op == MG_TEXOP_GATHER || in->out != MG_TEXOUT_32) return false;
    if (t->n_levels > 1 || t->srgb || t->shape == MG_TEX_LINEAR) return false;
    bool cube = in->geom == MG_GEOM_CUBE || in->geom == MG_GEOM_ACUBE;
    uint32_t dims = in->geom == MG_GEOM_1D || in->geom == MG_GEOM_A1D ? 1
                    : in->geom == MG_GEOM_3D                          ? 3
                                                                      : 2,
             layers = t->level[0].depth, st[2][32];
    if (in->geom == MG_GEOM_ACUBE) layers /= 6;
    int32_t slice[32] = {0};
    const uint32_t *c[3] = {l->coord[0], l->coord[1], l->coord[2]};
    if (l->layer)
        for (uint32_t i = 0; i < 32; i++) slice[i] = (int32_t)MG_MIN(l->layer[i], layers ? layers - 1 : 0);
    if (cube) {
        if (layers < (in->geom == MG_GEOM_CUBE ? 6u : 1u)) return false;
        memset(st, 0, sizeof st);
        for (uint32_t m = mask; m; m &= m - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(m);
            float v[3] = {float32(c[0][i]), float32(c[1][i]), float32(c[2][i])}, on_face[2];
            slice[i] = slice[i] * 6 + (int32_t)cube_face(v, on_face);
            for (int k = 0; k < 2; k++) st[k][i] = bits32(on_face[k]);
        }
        for (uint32_t i = 0; i < 32; i++)
            if (!(mask & 1u << i)) slice[i] = 0;
        c[0] = st[0];
        c[1] = st[1];
    }
    vec_ops()->fetch(t, dims, c, slice, l->out, mask);
    return true;
}

int mg_tex_fetch(const struct mg_tex_inst *in, const struct mg_texture *t, const struct mg_tex_lanes *l, uint32_t mask)
{
    if (fetch_together(in, t, l, mask)) return -1;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m), v[4];
        if (behind_end(in, t, l, lane)) return (int)lane;
        one_lane(in, t, l, lane, v);
        put(in, l, lane, v);
    }
    return -1;
}

/* ---- queries --------------------------------------------------------------------------------------------------- */

uint32_t mg_tex_query(const struct mg_texture *t, enum mg_tex_query q, uint32_t level)
{
    const struct mg_tex_level *l = &t->level[MG_MIN(level, t->n_levels - 1)];
    static const uint32_t unorm[] = {0x10d2, 0x10d0, 0x10d3, 0x10d1, 0x10dc, 0x10d9, 0x10dd, 0x10de};
    static const uint32_t plain[] = {0x10da, 0x10d7, 0x10db, 0x10d8, 0x10dc, 0x10d9, 0x10dd, 0x10de};
    switch (q) {
    case MG_TEXQ_WIDTH:
        return l->width;
    case MG_TEXQ_HEIGHT:
        return t->dims > 1 ? l->height : 0;
    case MG_TEXQ_DEPTH:
        return t->dims > 2 ? l->depth : 0;
    case MG_TEXQ_CHANNEL_TYPE:
        return t->as_float ? unorm[t->kind] : plain[t->kind];
    case MG_TEXQ_CHANNEL_ORDER:
        return t->channels == 1 ? 0x10b0 : t->channels == 2 ? 0x10b2 : 0x10b5;
    case MG_TEXQ_NORMALISED:
        return t->normalised;
    case MG_TEXQ_ARRAY_SIZE:
        return t->layered ? t->cube ? l->depth / 6 : l->depth : 0;
    case MG_TEXQ_LEVELS:
        return t->n_levels;
    case MG_TEXQ_SAMPLES:
        return 1;
    default:
        return 0;
    }
}
