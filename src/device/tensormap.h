/* Tensor maps (CUtensorMap): what cuTensorMapEncodeTiled writes and a software device's tensor
 * copies read. The 128 bytes are opaque to programs; this layout is ours. */
#ifndef MG_DEVICE_TENSORMAP_H
#define MG_DEVICE_TENSORMAP_H

#include "base/compiler.h"

enum { MG_TMAP_DIMS = 5, MG_TMAP_BYTES = 128 };
/* ORDER TENSORMAP: the numbers of CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle */
enum mg_tmap_type {
    MG_TMAP_U8,
    MG_TMAP_U16,
    MG_TMAP_U32,
    MG_TMAP_S32,
    MG_TMAP_U64,
    MG_TMAP_S64,
    MG_TMAP_F16,
    MG_TMAP_F32,
    MG_TMAP_F64,
    MG_TMAP_BF16,
    MG_TMAP_F32_FTZ,
    MG_TMAP_TF32,
    MG_TMAP_TF32_FTZ,
    MG_TMAP_TYPE_COUNT
};
enum mg_tmap_swizzle {
    MG_TMAP_NO_SWIZZLE,
    MG_TMAP_SWIZZLE_32,
    MG_TMAP_SWIZZLE_64,
    MG_TMAP_SWIZZLE_128,
    MG_TMAP_SWIZZLE_128_ATOM_32,
    MG_TMAP_SWIZZLE_128_ATOM_32_FLIP,
    MG_TMAP_SWIZZLE_128_ATOM_64,
    MG_TMAP_SWIZZLE_COUNT
};
#define MG_TMAP_MAGIC 0x70616d54u

struct mg_tmap {
    uint32_t magic;
    uint8_t type, rank, interleave /* 0 none, 1: 16 bytes, 2: 32 bytes */, swizzle, l2,
        nan_fill /* beyond the tensor: NaN instead of 0 */, pad[2];
    uint64_t address;
    uint64_t strides[MG_TMAP_DIMS - 1]; /* bytes, of dimensions 1.. */
    uint32_t last[MG_TMAP_DIMS];        /* size - 1 */
    uint16_t box[MG_TMAP_DIMS];         /* elements along each dimension of the tensor, before traversal strides */
    uint8_t step[MG_TMAP_DIMS];         /* traversal strides */
    uint8_t rest[31];
};
_Static_assert(sizeof(struct mg_tmap) == MG_TMAP_BYTES, "a CUtensorMap has 128 bytes");

static inline uint32_t mg_tmap_type_bytes(unsigned type)
{
    static const uint8_t bytes[MG_TMAP_TYPE_COUNT] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < MG_TMAP_TYPE_COUNT ? bytes[type] : 0;
}
/* Elements of a box along dimension d as they lie in shared memory. */
static inline uint32_t mg_tmap_count(const struct mg_tmap *t, unsigned d)
{
    return ((uint32_t)t->box[d] + t->step[d] - 1) / t->step[d];
}

/* Byte address in shared memory to where the swizzle puts it. */
static inline uint64_t mg_tmap_swizzle(unsigned mode, uint64_t a)
{
    switch (mode) {
    case MG_TMAP_SWIZZLE_32:
        return a ^ (a >> 3 & 0x10);
    case MG_TMAP_SWIZZLE_64:
        return a ^ (a >> 3 & 0x30);
    case MG_TMAP_SWIZZLE_128:
        return a ^ (a >> 3 & 0x70);
    case MG_TMAP_SWIZZLE_128_ATOM_32:
        return a ^ (a >> 3 & 0x60);
    case MG_TMAP_SWIZZLE_128_ATOM_32_FLIP:
        return a ^ (a >> 3 & 0x60) ^ (a >> 4 & 8);
    case MG_TMAP_SWIZZLE_128_ATOM_64:
        return a ^ (a >> 3 & 0x40);
    default:
        return a;
    }
}

#endif
