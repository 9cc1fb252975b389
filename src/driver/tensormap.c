/* Tensor maps, and how many clusters fit: what programs for sm_90 ask the driver beside launches.
 * The checks are those of the driver's manual; the map's bytes are ours (device/tensormap.h). */
#include "driver/priv.h"

#include <string.h>

#include "device/tensormap.h"

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

static uint32_t span_of(int swizzle)
{
    return swizzle == MG_TMAP_NO_SWIZZLE   ? UINT32_MAX
           : swizzle == MG_TMAP_SWIZZLE_32 ? 32
           : swizzle == MG_TMAP_SWIZZLE_64 ? 64
                                           : 128;
}

static cu_result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                                        const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                                        int interleave, int swizzle, int l2, int fill)
{
    uint32_t elem = type >= 0 ? mg_tmap_type_bytes((unsigned)type) : 0, align = interleave == 2 ? 32 : 16;
    CHECK(map && !((uintptr_t)map & 63) && elem && rank >= 1 && rank <= MG_TMAP_DIMS && dims && box && steps &&
          (rank == 1 || strides));
    CHECK(interleave >= 0 && interleave <= 2 && swizzle >= 0 && swizzle < MG_TMAP_SWIZZLE_COUNT && l2 >= 0 && l2 <= 3 &&
          fill >= 0 && fill <= 1);
    CHECK(!((uintptr_t)address & (align - 1)) && (!interleave || rank >= 3) &&
          (interleave != 2 || swizzle == MG_TMAP_SWIZZLE_32));
    CHECK(!fill || type >= MG_TMAP_F16);
    struct mg_tmap t = {.magic = MG_TMAP_MAGIC,
                        .type = (uint8_t)type,
                        .rank = (uint8_t)rank,
                        .interleave = (uint8_t)interleave,
                        .swizzle = (uint8_t)swizzle,
                        .l2 = (uint8_t)l2,
                        .nan_fill = (uint8_t)fill,
                        .address = (uint64_t)address};
    for (uint32_t i = 0; i < rank; i++) {
        CHECK(dims[i] && dims[i] <= 1ull << 32 && box[i] && box[i] <= 256 && steps[i] && steps[i] <= 8);
        t.last[i] = (uint32_t)(dims[i] - 1);
        t.box[i] = (uint16_t)box[i];
        t.step[i] = (uint8_t)steps[i];
        if (!i) continue;
        CHECK(!(strides[i - 1] & (align - 1)) && strides[i - 1] < 1ull << 40);
        t.strides[i - 1] = strides[i - 1];
    }
    uint32_t inner = mg_tmap_count(&t, 0) * elem;
    CHECK(interleave || (inner % 16 == 0 && inner <= span_of(swizzle)));
    memcpy(map, &t, sizeof t);
    return CUE_SUCCESS;
}

static cu_result cuTensorMapReplaceAddress(void *map, void *address)
{
    struct mg_tmap *t = map;
    CHECK(t && !((uintptr_t)map & 63) && t->magic == MG_TMAP_MAGIC &&
          !((uintptr_t)address & (t->interleave == 2 ? 31 : 15)));
    t->address = (uint64_t)address;
    return CUE_SUCCESS;
}

static cu_result refuse_im2col(const char *name)
{
    static bool said;
    if (!said) mg_say("%s: tensor copies other than tiles (im2col) are not supported on this device", name);
    said = true;
    return CUE_NOT_SUPPORTED;
}
static cu_result cuTensorMapEncodeIm2col(void)
{
    return refuse_im2col("cuTensorMapEncodeIm2col");
}
static cu_result cuTensorMapEncodeIm2colWide(void)
{
    return refuse_im2col("cuTensorMapEncodeIm2colWide");
}

/* ---- clusters ---------------------------------------------------------------------------------------- */

/* A cluster stays within one group of SMs. An sm_90 device of 132 SMs has eight, two of 18 and six of 16. */
static int clusters_that_fit(int ctas_per_sm, unsigned size)
{
    unsigned sms = (unsigned)mg_drv.attrs[CUDEV_MULTIPROCESSOR_COUNT], group = sms / 16 * 2, n = 0;
    for (unsigned i = 0; i < 8; i++) {
        unsigned own = MG_MIN(group, sms - MG_MIN(sms, i * group));
        if (sms == 132) own = i < 2 ? 18 : 16;
        n += own * (unsigned)ctas_per_sm / size;
    }
    return (int)n;
}

static unsigned cluster_size(const struct CUfunc_st *f, const struct cu_launch_config *c)
{
    const struct mg_func *fn = f->info.func;
    unsigned n = 1;
    for (unsigned i = 0; i < c->n_attrs; i++)
        if (c->attrs[i].id == CULAUNCH_CLUSTER_DIMENSION)
            n = c->attrs[i].value.cluster.x * c->attrs[i].value.cluster.y * c->attrs[i].value.cluster.z;
    if (fn && fn->cluster[0]) n = fn->cluster[0] * MG_MAX(fn->cluster[1], 1) * MG_MAX(fn->cluster[2], 1);
    return n;
}

static cu_result cuOccupancyMaxActiveClusters(int *clusters, cu_function h, const struct cu_launch_config *c)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(clusters && c && (!c->n_attrs || c->attrs));
    unsigned n = cluster_size(f, c);
    if (!n || n > (f->attrs[CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] ? 16u : 8u)) return CUE_INVALID_CLUSTER_SIZE;
    *clusters = clusters_that_fit(mg_occupancy(f, (int)(c->block_x * c->block_y * c->block_z), c->shared_bytes), n);
    return CUE_SUCCESS;
}

static cu_result cuOccupancyMaxPotentialClusterSize(int *size, cu_function h, const struct cu_launch_config *c)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(size && c);
    int each = mg_occupancy(f, (int)(c->block_x * c->block_y * c->block_z), c->shared_bytes);
    *size = f->attrs[CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] ? 16 : 8;
    while (*size > 1 && !clusters_that_fit(each, (unsigned)*size)) *size /= 2;
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_tensormap[] = {
    MG_ENTRY(cuTensorMapEncodeTiled),
    MG_ENTRY(cuTensorMapReplaceAddress),
    MG_ENTRY(cuTensorMapEncodeIm2col),
    MG_ENTRY(cuTensorMapEncodeIm2colWide),
    MG_ENTRY(cuOccupancyMaxActiveClusters),
    MG_ENTRY(cuOccupancyMaxPotentialClusterSize),
    {0},
};
