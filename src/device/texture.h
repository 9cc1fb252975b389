/* Textures and surfaces of the software devices: what a 64-bit handle in a kernel stands for.
 *
 *   driver ── mg_texture_add ──► table of handles ◄── mg_texture_find ── tex, tld4, txq, sust, ...
 *
 * The driver says here everything a fetch needs (texels, sizes, format, sampler); devices look
 * handles up while a kernel runs. How a fetch is computed is device/emu/tex.h. Texels of arrays are
 * counted by reference: they live as long as the array or any object made from it.
 */
#ifndef MG_DEVICE_TEXTURE_H
#define MG_DEVICE_TEXTURE_H

#include "base/compiler.h"

/* Texels of one array or of one level of a mipmapped one: no memory that kernels reach by address. */
struct mg_texels {
    _Atomic uint32_t refs;
    uint64_t bytes;
    uint8_t *at;
};
struct mg_texels *mg_texels_new(uint64_t bytes); /* zeroed; NULL: out of memory */
void mg_texels_ref(struct mg_texels *t);         /* NULL is fine */
void mg_texels_unref(struct mg_texels *t);       /* NULL is fine */

enum mg_texel_kind {
    MG_TEXEL_U8,
    MG_TEXEL_S8,
    MG_TEXEL_U16,
    MG_TEXEL_S16,
    MG_TEXEL_U32,
    MG_TEXEL_S32,
    MG_TEXEL_F16,
    MG_TEXEL_F32
};
static inline uint32_t mg_texel_kind_bytes(enum mg_texel_kind k)
{
    return k <= MG_TEXEL_S8 ? 1 : k <= MG_TEXEL_S16 || k == MG_TEXEL_F16 ? 2 : 4;
}

enum mg_tex_address { MG_TEX_WRAP, MG_TEX_CLAMP, MG_TEX_MIRROR, MG_TEX_BORDER }; /* ORDER: CUADDR_* */
enum mg_tex_shape { MG_TEX_ARRAY, MG_TEX_LINEAR /* one row of device memory, no filter */, MG_TEX_PITCH };

struct mg_tex_level {
    uint8_t *at;                   /* device memory for MG_TEX_LINEAR and MG_TEX_PITCH */
    uint32_t width, height, depth; /* at least 1; depth: slices, or layers (six a cube) */
    uint64_t row, slice;           /* bytes */
    struct mg_texels *texels;      /* owner of `at`, NULL for device memory */
};

#define MG_TEX_MAX_LEVELS 16
struct mg_texture { /* a texture or a surface object */
    bool surface;
    uint8_t shape; /* enum mg_tex_shape */
    uint8_t dims;  /* 1, 2, 3: as declared, layers not counted */
    bool layered, cube;
    uint8_t kind, channels; /* enum mg_texel_kind; 1, 2, 4 */
    uint8_t address[3];     /* enum mg_tex_address; wrap and mirror only with normalised coordinates */
    bool linear, mip_linear, normalised, as_float /* integers are read as [0, 1] or [-1, 1] */, srgb, seamless;
    float border[4], bias, min_lod, max_lod;
    uint32_t n_levels;
    struct mg_tex_level level[MG_TEX_MAX_LEVELS];
    _Atomic uint64_t checked; /* device memory: mg_mem_epoch at which it was last seen live */
    _Atomic uint64_t reach;   /* MG_TEX_LINEAR: bytes from the start that were live then; the object may claim more */
    void *owner;              /* the driver's object */
};

/* 0: out of memory or too many. Takes a reference to every level's texels. */
uint64_t mg_texture_add(const struct mg_texture *t);
bool mg_texture_remove(uint64_t handle); /* no kernel that uses it may be running */
/* NULL: no live object. Device memory that was freed since makes it none too. */
struct mg_texture *mg_texture_find(uint64_t handle);
/* The object alone, whatever became of its memory. */
struct mg_texture *mg_texture_object(uint64_t handle);

#endif
