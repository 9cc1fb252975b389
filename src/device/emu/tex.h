/* Texture and surface instructions: one function call per warp instruction, over 32 lanes.
 *
 * Operands are 32-lane arrays of 32-bit registers (f16 and f16x2 values, like all narrow ones, in
 * their low bits), as in the emulator's register file (alu.h); whatever else runs PTX can spill to
 * such arrays and call the same functions: they are the definition of the results. Rounding and
 * filtering follow what an H200 was seen to do (docs/arithmetic.md).
 */
#ifndef MG_DEVICE_EMU_TEX_H
#define MG_DEVICE_EMU_TEX_H

#include "device/texture.h"

enum mg_tex_geom { MG_GEOM_1D, MG_GEOM_2D, MG_GEOM_3D, MG_GEOM_A1D, MG_GEOM_A2D, MG_GEOM_CUBE, MG_GEOM_ACUBE };
enum mg_tex_op { MG_TEXOP_TEX, MG_TEXOP_LEVEL, MG_TEXOP_GRAD, MG_TEXOP_GATHER };
enum mg_tex_out { MG_TEXOUT_32, MG_TEXOUT_F16, MG_TEXOUT_F16X2 };

struct mg_tex_inst {
    uint8_t op, geom, out; /* enums above */
    bool int_coords;       /* .s32 coordinates: texels, never filtered */
    bool has_offset;       /* offset vector in texels */
    uint8_t component;     /* of MG_TEXOP_GATHER: 0 .. 3 */
};
/* Operands, each const uint32_t[32] or NULL:
 *   coord[0..3]  as written without layer; layer beside it
 *   extra        MG_TEXOP_LEVEL: [0] the level (float, or integer with int_coords);
 *                MG_TEXOP_GRAD: [0..2] d/dx, [3..5] d/dy
 *   offset[0..2] with has_offset
 *   out[0..3]    NULL: not wanted */
struct mg_tex_lanes {
    const uint32_t *coord[3], *layer, *extra[6], *offset[3];
    uint32_t *out[4];
};
/* -1, or the lane that reads texels of an object's device memory behind the end of the allocation. */
int mg_tex_fetch(const struct mg_tex_inst *in, const struct mg_texture *t, const struct mg_tex_lanes *l, uint32_t mask);

enum mg_tex_query {
    MG_TEXQ_WIDTH,
    MG_TEXQ_HEIGHT,
    MG_TEXQ_DEPTH,
    MG_TEXQ_CHANNEL_TYPE,
    MG_TEXQ_CHANNEL_ORDER,
    MG_TEXQ_NORMALISED,
    MG_TEXQ_ARRAY_SIZE,
    MG_TEXQ_LEVELS,
    MG_TEXQ_SAMPLES,
    MG_TEXQ_LAYOUT
};
uint32_t mg_tex_query(const struct mg_texture *t, enum mg_tex_query q, uint32_t level);

/* ---- surfaces: x counts bytes with .b, elements with .p ---------------------------------------- */

enum mg_surf_op { MG_SURFOP_LOAD, MG_SURFOP_STORE, MG_SURFOP_STORE_FORMAT, MG_SURFOP_REDUCE };
enum mg_surf_outside { MG_SURF_TRAP, MG_SURF_CLAMP, MG_SURF_ZERO };
enum mg_surf_red { MG_SURFRED_ADD, MG_SURFRED_MIN, MG_SURFRED_MAX, MG_SURFRED_AND, MG_SURFRED_OR };
struct mg_surf_inst {
    uint8_t op, geom, outside;  /* enums; geom 1D .. A2D */
    uint8_t red;                /* enum mg_surf_red */
    bool red_signed, formatted; /* formatted: x counts elements */
    uint8_t bytes, vec;         /* of one element of the register vector; elements */
};
struct mg_surf_lanes {
    const uint32_t *coord[3], *layer;
    void *value[4]; /* uint32_t[32], uint64_t[32] for 8-byte elements; read or written */
};
/* -1, or the lane whose access is outside (MG_SURF_TRAP) or misaligned (*misaligned). */
int mg_surf_access(const struct mg_surf_inst *in, const struct mg_texture *t, const struct mg_surf_lanes *l,
                   uint32_t mask, bool *misaligned);

#endif
