/* Surface loads, stores and reductions (tex.h): unformatted ones address bytes of a row. */
#include "device/emu/tex_texel.h"

struct place {
    uint8_t *at;
    bool inside;
};

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* unit: bytes of x's step; bytes: of the access. */
static struct place locate(const struct mg_surf_inst *in, const struct mg_texture *t, const struct mg_surf_lanes *l,
                           uint32_t lane, uint32_t unit, uint32_t bytes)
{
    const struct mg_tex_level *v = &t->level[0];
    uint32_t dims = in->geom == MG_GEOM_1D || in->geom == MG_GEOM_A1D ? 1 : in->geom == MG_GEOM_3D ? 3 : 2;
    int64_t row = (int64_t)v->width * mg_texel_kind_bytes(t->kind) * t->channels;
    int64_t at[3] = {(int64_t)(int32_t)l->coord[0][lane] * unit, 0, 0}, n[3] = {row - bytes + 1, v->height, v->depth};
    for (uint32_t k = 1; k < dims; k++) at[k] = (int32_t)l->coord[k][lane];
    if (l->layer) at[2] = l->layer[lane]; /* a negative layer is a large one */
    bool inside = true;
    for (uint32_t k = 0; k < 3; k++) {
        if (n[k] < 1) return (struct place){NULL, false};
        inside &= at[k] >= 0 && at[k] < n[k];
        if (in->outside == MG_SURF_CLAMP) at[k] = clamped(at[k], n[k]);
    }
    if (in->outside == MG_SURF_CLAMP) inside = true;
    if (!inside) return (struct place){NULL, false};
    return (struct place){v->at + (uint64_t)at[2] * v->slice + (uint64_t)at[1] * v->row + (uint64_t)at[0], true};
}

static uint64_t value(const struct mg_surf_inst *in, const struct mg_surf_lanes *l, uint32_t k, uint32_t lane)
{
    if (!l->value[k]) return 0;
    return in->bytes == 8 ? ((const uint64_t *)l->value[k])[lane] : ((const uint32_t *)l->value[k])[lane];
}

/* ---- formatted stores: the value is converted to the surface's channels ------------------------------- */

/* Towards zero; what is too large becomes the largest number. */
static uint16_t half_cut(float x)
{
    uint32_t h = float_to_half(x);
    if ((bits32(x) & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits32(x) >> 16 & 0x8000) | 0x7c00 | (uint16_t)(bits32(x) >> 13 & 0x3ff);
    if ((bits32(x) & 0x7fffffff) == 0x7f800000) return (uint16_t)h;
    float back = half_to_float(h);
    if ((bits32(back) & 0x7fffffff) > (bits32(x) & 0x7fffffff)) h--;
    return (uint16_t)h;
}

static void put_channel(uint8_t *p, enum mg_texel_kind kind, uint32_t v)
{
    uint16_t h = (uint16_t)v;
    switch (kind) {
    case MG_TEXEL_U8:
        *p = (uint8_t)MG_MIN(v, 255u);
        break;
    case MG_TEXEL_S8:
        *p = (uint8_t)MG_MIN(MG_MAX((int32_t)v, -128), 127);
        break;
    case MG_TEXEL_U16:
        h = (uint16_t)MG_MIN(v, 65535u);
        break;
    case MG_TEXEL_S16:
        h = (uint16_t)MG_MIN(MG_MAX((int32_t)v, -32768), 32767);
        break;
    case MG_TEXEL_F16:
        h = half_cut(float32(v));
        break;
    default:
        memcpy(p, &v, 4);
        return;
    }
    if (kind > MG_TEXEL_S8) memcpy(p, &h, 2);
}

/* ---- reductions --------------------------------------------------------------------------------------------- */

#define REDUCE(T, U, p, x)                                                                                             \
    do {                                                                                                               \
        T *q_ = (T *)(void *)(p), old_ = __atomic_load_n(q_, __ATOMIC_RELAXED), new_;                                  \
        do {                                                                                                           \
            switch ((enum mg_surf_red)in->red) {                                                                       \
            case MG_SURFRED_ADD:                                                                                       \
                new_ = (T)((U)old_ + (U)(x));                                                                          \
                break;                                                                                                 \
            case MG_SURFRED_MIN:                                                                                       \
                new_ = old_ < (T)(x) ? old_ : (T)(x);                                                                  \
                break;                                                                                                 \
            case MG_SURFRED_MAX:                                                                                       \
                new_ = old_ > (T)(x) ? old_ : (T)(x);                                                                  \
                break;                                                                                                 \
            case MG_SURFRED_AND:                                                                                       \
                new_ = old_ & (T)(x);                                                                                  \
                break;                                                                                                 \
            default:                                                                                                   \
                new_ = old_ | (T)(x);                                                                                  \
                break;                                                                                                 \
            }                                                                                                          \
        } while (!__atomic_compare_exchange_n(q_, &old_, new_, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));            \
    } while (0)

static void reduce(const struct mg_surf_inst *in, bool is_signed, uint8_t *p, uint64_t x)
{
    if (in->bytes == 8) {
        if (is_signed)
            REDUCE(int64_t, uint64_t, p, x);
        else
            REDUCE(uint64_t, uint64_t, p, x);
    } else if (is_signed)
        REDUCE(int32_t, uint32_t, p, (uint32_t)x);
    else
        REDUCE(uint32_t, uint32_t, p, (uint32_t)x);
}

/* ---- one lane ------------------------------------------------------------------------------------------------- */

static void access_lane(const struct mg_surf_inst *in, const struct mg_texture *t, const struct mg_surf_lanes *l,
                        uint32_t lane, struct place to)
{
    uint32_t unit = mg_texel_kind_bytes(t->kind);
    switch ((enum mg_surf_op)in->op) {
    case MG_SURFOP_LOAD:
        for (uint32_t k = 0; k < in->vec; k++) {
            uint64_t v = 0;
            if (to.inside) memcpy(&v, to.at + k * in->bytes, in->bytes);
            if (!l->value[k]) continue;
            if (in->bytes == 8)
                ((uint64_t *)l->value[k])[lane] = v;
            else
                ((uint32_t *)l->value[k])[lane] = (uint32_t)v;
        }
        break;
    case MG_SURFOP_STORE:
        for (uint32_t k = 0; k < in->vec && to.inside; k++) {
            uint64_t v = value(in, l, k, lane);
            memcpy(to.at + k * in->bytes, &v, in->bytes);
        }
        break;
    case MG_SURFOP_STORE_FORMAT:
        for (uint32_t k = 0; k < t->channels && to.inside; k++)
            put_channel(to.at + k * unit, t->kind, k < in->vec ? (uint32_t)value(in, l, k, lane) : 0);
        break;
    default:
        if (to.inside)
            reduce(in, in->formatted ? t->kind == MG_TEXEL_S32 : in->red_signed, to.at, value(in, l, 0, lane));
    }
}

int mg_surf_access(const struct mg_surf_inst *in, const struct mg_texture *t, const struct mg_surf_lanes *l,
                   uint32_t mask, bool *misaligned)
{
    uint32_t element = mg_texel_kind_bytes(t->kind) * t->channels;
    uint32_t unit = in->formatted ? element : 1,
             bytes = in->op == MG_SURFOP_STORE_FORMAT ? element : (uint32_t)in->bytes * in->vec;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        struct place to = locate(in, t, l, lane, unit, bytes);
        if (!to.inside && in->outside == MG_SURF_TRAP) return (int)lane;
        if (to.inside && !in->formatted && l->coord[0][lane] % bytes) {
            *misaligned = true;
            return (int)lane;
        }
        access_lane(in, t, l, lane, to);
    }
    return -1;
}
