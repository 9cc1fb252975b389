/* Textures and surfaces: fetches against a recording of an H200 (tests/exec/tex/h200.txt), surfaces
 * against closed forms, the table of handles. */
#include <stdlib.h>

#include "device/emu/tex.h"
#include "device/mem.h"
#include "test.h"

/* The recorder's operations, in its order. */
static const struct mg_tex_inst insts[] = {
    {.geom = MG_GEOM_1D},
    {.geom = MG_GEOM_2D},
    {.geom = MG_GEOM_3D},
    {.geom = MG_GEOM_A1D},
    {.geom = MG_GEOM_A2D},
    {.geom = MG_GEOM_CUBE},
    {.geom = MG_GEOM_ACUBE},
    {.geom = MG_GEOM_1D, .int_coords = true},
    {.geom = MG_GEOM_2D, .int_coords = true},
    {.geom = MG_GEOM_3D, .int_coords = true},
    {.geom = MG_GEOM_A1D, .int_coords = true},
    {.geom = MG_GEOM_A2D, .int_coords = true},
    {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_1D},
    {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_2D},
    {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_3D},
    {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_A2D},
    {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_CUBE},
    {.op = MG_TEXOP_GRAD, .geom = MG_GEOM_1D},
    {.op = MG_TEXOP_GRAD, .geom = MG_GEOM_2D},
    {.op = MG_TEXOP_GRAD, .geom = MG_GEOM_3D},
    {.op = MG_TEXOP_GATHER, .geom = MG_GEOM_2D, .component = 0},
    {.op = MG_TEXOP_GATHER, .geom = MG_GEOM_2D, .component = 1},
    {.op = MG_TEXOP_GATHER, .geom = MG_GEOM_2D, .component = 2},
    {.op = MG_TEXOP_GATHER, .geom = MG_GEOM_2D, .component = 3},
    {.op = MG_TEXOP_GATHER, .geom = MG_GEOM_A2D},
    {.op = MG_TEXOP_GATHER, .geom = MG_GEOM_CUBE},
    {.geom = MG_GEOM_2D, .out = MG_TEXOUT_F16},
    {.geom = MG_GEOM_2D, .out = MG_TEXOUT_F16X2},
    {.geom = MG_GEOM_1D, .out = MG_TEXOUT_F16, .int_coords = true},
    {.geom = MG_GEOM_2D},
    {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_2D, .int_coords = true},
};

struct record {
    char name[32];
    struct mg_texture t;
    struct mg_tex_inst in;
    uint8_t *texels;
    bool used;
};

static enum mg_texel_kind kind_of(int bits, int kind) /* kind: cudaChannelFormatKind, signed, unsigned, float */
{
    if (bits == 8) return kind ? MG_TEXEL_U8 : MG_TEXEL_S8;
    if (bits == 16) return kind == 2 ? MG_TEXEL_F16 : kind ? MG_TEXEL_U16 : MG_TEXEL_S16;
    return kind == 2 ? MG_TEXEL_F32 : kind ? MG_TEXEL_U32 : MG_TEXEL_S32;
}

static bool read_texture(struct record *r, const char *line)
{
    int op, bits, channels, kind, w, h, d, flags, mode, linear, norm, as_float, srgb, seamless;
    unsigned border[4];
    if (sscanf(line, "tex %31s %d %d %d %d %d %d %d %d %d %d %d %d %d %d %x %x %x %x", r->name, &op, &bits, &channels,
               &kind, &w, &h, &d, &flags, &mode, &linear, &norm, &as_float, &srgb, &seamless, &border[0], &border[1],
               &border[2], &border[3]) != 19)
        return false;
    r->in = insts[op];
    r->t = (struct mg_texture){.layered = flags & 1,
                               .cube = flags & 4,
                               .kind = kind_of(bits, kind),
                               .channels = (uint8_t)channels,
                               .linear = linear,
                               .normalised = norm,
                               .as_float = as_float,
                               .srgb = srgb,
                               .seamless = seamless,
                               .n_levels = 1};
    r->t.dims = d && !(flags & 5) ? 3 : h ? 2 : 1;
    for (int k = 0; k < 3; k++) r->t.address[k] = (uint8_t)mode;
    memcpy(r->t.border, border, sizeof border);
    uint32_t row = (uint32_t)w * mg_texel_kind_bytes(r->t.kind) * r->t.channels, rows = h ? (uint32_t)h : 1;
    r->t.level[0] = (struct mg_tex_level){.at = r->texels,
                                          .width = (uint32_t)w,
                                          .height = rows,
                                          .depth = d ? (uint32_t)d : 1,
                                          .row = row,
                                          .slice = (uint64_t)row * rows};
    return true;
}

static void check_lane(const struct record *r, const char *line, unsigned *checked)
{
    uint32_t in[4], want[4], coord[4][32] = {{0}}, got[4][32] = {{0}};
    if (sscanf(line, "at %x %x %x %x %x %x %x %x", &in[0], &in[1], &in[2], &in[3], &want[0], &want[1], &want[2],
               &want[3]) != 8)
        return;
    unsigned lane = *checked % 32;
    struct mg_tex_lanes l = {.out = {got[0], got[1], got[2], got[3]}};
    for (int k = 0; k < 4; k++) coord[k][lane] = in[k];
    for (int k = 0; k < 3; k++) l.coord[k] = coord[k];
    if (r->in.geom == MG_GEOM_A1D || r->in.geom == MG_GEOM_A2D || r->in.geom == MG_GEOM_ACUBE) l.layer = coord[3];
    if (r->in.op == MG_TEXOP_LEVEL) l.extra[0] = coord[3];
    MG_CHECK_EQ(mg_tex_fetch(&r->in, &r->t, &l, 1u << lane), -1);
    for (int k = 0; k < 4; k++)
        if (got[k][lane] != want[k])
            mg_test_fail(__FILE__, __LINE__, "%s at %08x %08x %08x %08x: element %d is %08x, the H200 gave %08x",
                         r->name, in[0], in[1], in[2], in[3], k, got[k][lane], want[k]);
    ++*checked;
}

MG_TEST(tex_fetches_are_bit_equal_to_an_h200)
{
    enum { LINE = 40000 };
    static uint8_t texels[16384];
    static char line[LINE];
    struct record r = {.texels = texels};
    unsigned checked = 0;
    FILE *f = fopen("tests/exec/tex/h200.txt", "r");
    if (!f) {
        mg_test_fail(__FILE__, __LINE__, "tests/exec/tex/h200.txt cannot be read (run from the root)");
        return;
    }
    while (fgets(line, LINE, f)) {
        if (!strncmp(line, "tex ", 4)) MG_CHECK(read_texture(&r, line));
        if (!strncmp(line, "at ", 3)) check_lane(&r, line, &checked);
        if (strncmp(line, "data ", 5)) continue;
        for (unsigned i = 0, b; i < sizeof texels && sscanf(line + 5 + 2 * i, "%2x", &b) == 1; i++)
            texels[i] = (uint8_t)b;
    }
    fclose(f);
    MG_CHECK(checked > 4000);
}

/* ---- mipmaps: constant levels ------------------------------------------------------------------- */

MG_TEST(tex_levels_of_a_mipmap)
{
    float values[4][16];
    struct mg_texture t = {
        .dims = 2, .kind = MG_TEXEL_F32, .channels = 1, .normalised = true, .n_levels = 3, .max_lod = 10};
    for (uint32_t i = 0; i < 3; i++) {
        for (int k = 0; k < 16; k++) values[i][k] = 100.0f * (float)i;
        t.level[i] = (struct mg_tex_level){
            .at = (uint8_t *)values[i], .width = 4u >> i, .height = 4u >> i, .depth = 1, .row = 16u >> i, .slice = 64};
    }
    const float lods[] = {-3, 0, 0.4f, 0.5f, 1, 1.25f, 1.75f, 2, 9}, point[] = {0, 0, 0, 100, 100, 100, 200, 200, 200},
                linear[] = {0, 0, 39.84375f, 50, 100, 125, 175, 200, 200};
    for (int mode = 0; mode < 2; mode++) {
        uint32_t c[32], lod[32], out[32];
        t.mip_linear = mode;
        for (int i = 0; i < 9; i++) {
            float half = 0.5f;
            memcpy(&c[i], &half, 4);
            memcpy(&lod[i], &lods[i], 4);
        }
        struct mg_tex_inst in = {.op = MG_TEXOP_LEVEL, .geom = MG_GEOM_2D};
        struct mg_tex_lanes l = {.coord = {c, c}, .extra = {lod}, .out = {out}};
        mg_tex_fetch(&in, &t, &l, 0x1ff);
        for (int i = 0; i < 9; i++) {
            float got;
            memcpy(&got, &out[i], 4);
            if (got != (mode ? linear : point)[i])
                mg_test_fail(__FILE__, __LINE__, "lod %g, mode %d: %g", (double)lods[i], mode, (double)got);
        }
    }
}

/* ---- surfaces ---------------------------------------------------------------------------------------- */

enum { W = 8, H = 3 };
static struct mg_texture surface(void *at, enum mg_texel_kind kind, uint32_t channels)
{
    uint32_t row = W * mg_texel_kind_bytes(kind) * channels;
    return (struct mg_texture){
        .surface = true,
        .dims = 2,
        .kind = (uint8_t)kind,
        .channels = (uint8_t)channels,
        .n_levels = 1,
        .level = {{.at = at, .width = W, .height = H, .depth = 1, .row = row, .slice = row * H}}};
}

MG_TEST(surface_loads_outside_clamp_or_give_zero)
{
    uint32_t data[H][W], x[32], y[32], out[32];
    for (uint32_t i = 0; i < W * H; i++) data[i / W][i % W] = 1000 + i;
    struct mg_texture t = surface(data, MG_TEXEL_U32, 1);
    const int at[6][2] = {{0, 0}, {4 * 5, 2}, {-8, 1}, {4 * 40, 1}, {4 * 3, -7}, {4 * 3, 9}};
    for (int i = 0; i < 6; i++) x[i] = (uint32_t)at[i][0], y[i] = (uint32_t)at[i][1];
    struct mg_surf_inst in = {.op = MG_SURFOP_LOAD, .geom = MG_GEOM_2D, .outside = MG_SURF_CLAMP, .bytes = 4, .vec = 1};
    struct mg_surf_lanes l = {.coord = {x, y}, .value = {out}};
    bool misaligned = false;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, 0x3f, &misaligned), -1);
    const uint32_t clamped[] = {1000, 1021, 1008, 1015, 1003, 1019}, zero[] = {1000, 1021, 0, 0, 0, 0};
    for (int i = 0; i < 6; i++) MG_CHECK_EQ(out[i], clamped[i]);
    in.outside = MG_SURF_ZERO;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, 0x3f, &misaligned), -1);
    for (int i = 0; i < 6; i++) MG_CHECK_EQ(out[i], zero[i]);
    in.outside = MG_SURF_TRAP;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, 0x3f, &misaligned), 2);
    x[0] = 2;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, 1, &misaligned), 0);
    MG_CHECK(misaligned);
}

MG_TEST(surface_stores_convert_and_reduce)
{
    uint16_t half[H][W] = {{0}};
    uint8_t bytes[H][W][2] = {{{0}}};
    uint32_t words[H][W] = {{0}}, x[32], y[32] = {0}, v[2][32];
    const float floats[] = {1, 0.99999f, 65520, -1e10f}; /* cut, not rounded; no infinity from a number */
    const uint16_t halves[] = {0x3c00, 0x3bff, 0x7bff, 0xfbff};
    bool misaligned = false;
    for (uint32_t i = 0; i < 32; i++) x[i] = i % W;
    memcpy(v[0], floats, sizeof floats);
    struct mg_texture t = surface(half, MG_TEXEL_F16, 1);
    struct mg_surf_inst in = {.op = MG_SURFOP_STORE_FORMAT,
                              .geom = MG_GEOM_2D,
                              .outside = MG_SURF_TRAP,
                              .formatted = true,
                              .bytes = 4,
                              .vec = 1};
    struct mg_surf_lanes l = {.coord = {x, y}, .value = {v[0], v[1]}};
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, 0xf, &misaligned), -1);
    for (int i = 0; i < 4; i++) MG_CHECK_EQ(half[0][i], halves[i]);

    t = surface(bytes, MG_TEXEL_U8, 2);
    in.vec = 2;
    for (uint32_t i = 0; i < 4; i++) v[0][i] = 100 * i, v[1][i] = 7;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, 0xf, &misaligned), -1);
    for (uint32_t i = 0; i < 4; i++) {
        MG_CHECK_EQ(bytes[0][i][0], i == 3 ? 255 : 100 * i);
        MG_CHECK_EQ(bytes[0][i][1], 7);
    }

    t = surface(words, MG_TEXEL_U32, 1);
    in = (struct mg_surf_inst){.op = MG_SURFOP_REDUCE, .geom = MG_GEOM_2D, .red = MG_SURFRED_ADD, .bytes = 4, .vec = 1};
    for (uint32_t i = 0; i < 32; i++) x[i] = 4 * (i % 4), v[0][i] = i;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, UINT32_MAX, &misaligned), -1);
    for (uint32_t k = 0; k < 4; k++) MG_CHECK_EQ(words[0][k], 8 * k + 4 * 28); /* k + (k + 4) + ... + (k + 28) */
    in.red = MG_SURFRED_MIN;
    in.red_signed = true;
    for (uint32_t i = 0; i < 32; i++) v[0][i] = 5 - i;
    MG_CHECK_EQ(mg_surf_access(&in, &t, &l, UINT32_MAX, &misaligned), -1);
    for (uint32_t k = 0; k < 4; k++) MG_CHECK_EQ((int32_t)words[0][k], 5 - (28 + (int)k));
}

/* ---- handles ------------------------------------------------------------------------------------------- */

MG_TEST(texture_handles)
{
    struct mg_texels *x = mg_texels_new(64);
    struct mg_texture t = {.dims = 1,
                           .kind = MG_TEXEL_F32,
                           .channels = 1,
                           .n_levels = 1,
                           .level = {{.at = x->at, .texels = x, .width = 16, .height = 1, .depth = 1}}};
    uint64_t a = mg_texture_add(&t), b = mg_texture_add(&t);
    MG_CHECK(a && b && a != b);
    MG_CHECK_EQ(x->refs, 3);
    MG_CHECK(mg_texture_find(a) && !mg_texture_find(0) && !mg_texture_find(UINT64_MAX));
    MG_CHECK(mg_texture_remove(a) && !mg_texture_remove(a) && !mg_texture_find(a));
    MG_CHECK(mg_texture_remove(b));
    MG_CHECK_EQ(x->refs, 1);
    mg_texels_unref(x);

    uint64_t p = mg_mem_alloc(1024, 0, MG_ALLOC_DEVICE);
    struct mg_texture linear = {.shape = MG_TEX_LINEAR,
                                .dims = 1,
                                .kind = MG_TEXEL_F32,
                                .channels = 1,
                                .n_levels = 1,
                                .level = {{.at = (uint8_t *)p, .width = 512, .height = 1, .depth = 1}}};
    uint64_t c = mg_texture_add(&linear);
    uint32_t at[32] = {255, 256}, out[32];
    struct mg_tex_inst in = {.geom = MG_GEOM_1D, .int_coords = true};
    struct mg_tex_lanes l = {.coord = {at}, .out = {out}};
    MG_CHECK(mg_texture_find(c));
    MG_CHECK_EQ(mg_tex_fetch(&in, mg_texture_find(c), &l, 1), -1);
    MG_CHECK_EQ(mg_tex_fetch(&in, mg_texture_find(c), &l, 3), 1); /* claims more than the allocation holds */
    mg_mem_free(p);
    MG_CHECK(!mg_texture_find(c) && mg_texture_object(c));
    mg_texture_remove(c);
}

/* What a channel's bits mean, straight from the definitions: halves are 1.0 to 2.0. */
static uint32_t channel_of(enum mg_texel_kind kind, bool as_float, const uint8_t *p)
{
    float v = 0;
    uint32_t bits, narrow = (uint32_t)p[0] | (uint32_t)p[1] << 8;
    switch (kind) {
    case MG_TEXEL_U8:
        if (!as_float) return p[0];
        v = (float)p[0] / 255.0f;
        break;
    case MG_TEXEL_S8:
        if (!as_float) return (uint32_t)(int32_t)(int8_t)p[0];
        v = p[0] == 128 ? -1.0f : (float)(int8_t)p[0] / 127.0f;
        break;
    case MG_TEXEL_U16:
        if (!as_float) return narrow;
        v = (float)narrow / 65535.0f;
        break;
    case MG_TEXEL_S16:
        if (!as_float) return (uint32_t)(int32_t)(int16_t)narrow;
        v = narrow == 32768 ? -1.0f : (float)(int16_t)narrow / 32767.0f;
        break;
    case MG_TEXEL_F16:
        return 0x3f800000 | (narrow & 1023) << 13;
    default:
        return narrow | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static void check_linear(const uint8_t *memory, enum mg_texel_kind kind, uint32_t channels, bool as_float)
{
    const uint32_t bytes = mg_texel_kind_bytes(kind), width = 61, untouched = 0xabcdef01;
    struct mg_texture t = {.shape = MG_TEX_LINEAR,
                           .dims = 1,
                           .kind = (uint8_t)kind,
                           .channels = (uint8_t)channels,
                           .as_float = as_float,
                           .n_levels = 1,
                           .level = {{.at = (uint8_t *)(uintptr_t)memory, .width = width, .height = 1, .depth = 1}}};
    static const uint32_t masks[] = {UINT32_MAX, 0x0f0f1235, 1, UINT32_MAX, 0x7fffffff, UINT32_MAX};
    const struct mg_tex_inst in = {.geom = MG_GEOM_1D, .int_coords = true};
    uint64_t handle = mg_texture_add(&t);
    for (uint32_t m = 0; m < MG_COUNT_OF(masks); m++) {
        uint32_t out[4][32], first[32] = {0, width - 1, width, UINT32_MAX, 1u << 31, (1u << 31) - 1};
        for (uint32_t i = 6; i < 32; i++) first[i] = (i * 37 + m) % (width + 3);
        for (uint32_t i = 0; m > 2 && i < 32; i++) first[i] = m * 29 - 100 + i; /* rows: -13.., 16.., 45.. */
        memcpy(out[0], first, sizeof first); /* the result takes the coordinate's place */
        for (uint32_t i = 0; i < 96; i++) out[1 + i / 32][i % 32] = untouched;
        struct mg_tex_lanes l = {.coord = {out[0]}, .out = {out[0], out[1], out[2], out[3]}};
        MG_CHECK_EQ(mg_tex_fetch(&in, mg_texture_find(handle), &l, masks[m]), -1);
        for (uint32_t i = 0; i < 128; i++) {
            uint32_t k = i / 32, lane = i % 32, want = k ? untouched : first[lane];
            if (masks[m] & 1u << lane)
                want = k < channels && first[lane] < width
                           ? channel_of(kind, as_float, memory + (first[lane] * channels + k) * bytes)
                           : 0;
            MG_CHECK_EQ(out[k][lane], want);
        }
    }
    mg_texture_remove(handle);
}

MG_TEST(tex_texels_of_device_memory_by_number)
{
    uint64_t p = mg_mem_alloc(1024, 0, MG_ALLOC_DEVICE);
    uint8_t *memory = (uint8_t *)(uintptr_t)p; /* the texture's 61 elements of up to 16 bytes end before it does */
    for (uint32_t kind = MG_TEXEL_U8; kind <= MG_TEXEL_F32; kind++) {
        for (uint32_t i = 0; i < 1024; i++) memory[i] = (uint8_t)(i * 151 + (i >> 3) + 128);
        for (uint32_t i = 1; kind == MG_TEXEL_F16 && i < 1024; i += 2) memory[i] = 0x3c | (memory[i] & 3);
        for (uint32_t channels = 1; channels <= 4; channels *= 2)
            for (int as_float = 0; as_float < (kind <= MG_TEXEL_S16 ? 2 : 1); as_float++)
                check_linear(memory, (enum mg_texel_kind)kind, channels, as_float);
    }
    mg_mem_free(p);
}
