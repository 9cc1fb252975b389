/* CUDA arrays and mipmapped arrays: rows of elements in memory of the driver's own, reached by
 * copies, textures and surfaces, never by address. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 1 << 17, MOST_DEPTH = 1 << 14 };
#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

uint32_t mg_format_bytes(int format)
{
    switch (format) {
    case CUAD_UINT8:
    case CUAD_SINT8:
        return 1;
    case CUAD_UINT16:
    case CUAD_SINT16:
    case CUAD_HALF:
        return 2;
    case CUAD_UINT32:
    case CUAD_SINT32:
    case CUAD_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static cu_result check_desc(const struct cu_array3d_desc *d)
{
    if (!mg_format_bytes(d->format)) { /* block-compressed, planar and depth formats */
        mg_say("array format %#x is not supported", (unsigned)d->format);
        return CUE_NOT_SUPPORTED;
    }
    CHECK(d->width <= MOST_SIDE && d->height <= MOST_SIDE && d->depth <= MOST_DEPTH);
    CHECK(d->width && (d->channels == 1 || d->channels == 2 || d->channels == 4));
    if (d->flags & (CUARRAY_SPARSE | CUARRAY_DEFERRED)) {
        mg_say("sparse arrays are not supported");
        return CUE_NOT_SUPPORTED;
    }
    CHECK(!(d->depth && !d->height && !(d->flags & CUARRAY_LAYERED))); /* 1D layered arrays have no height */
    if (d->flags & CUARRAY_CUBEMAP) CHECK(d->width == d->height && d->depth && d->depth % 6 == 0);
    return CUE_SUCCESS;
}

static struct CUarray_st *new_array(const struct cu_array3d_desc *d)
{
    struct CUarray_st *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->desc = *d;
    a->element_bytes = mg_format_bytes(d->format) * d->channels;
    a->pitch = d->width * a->element_bytes;
    a->bytes = a->pitch * MG_MAX(d->height, 1) * MG_MAX(d->depth, 1);
    a->texels = mg_texels_new(a->bytes);
    if (!a->texels) {
        free(a);
        return NULL;
    }
    a->data = a->texels->at;
    mg_obj_add(a, MG_OBJ_ARRAY);
    return a;
}

static void free_array(struct CUarray_st *a)
{
    mg_obj_del(a, MG_OBJ_ARRAY);
    mg_texels_unref(a->texels); /* texture objects may still hold it */
    free(a);
}

static cu_result cuArray3DCreate_v2(cu_array *out, const struct cu_array3d_desc *d)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(out && d);
    r = check_desc(d);
    if (!r) r = mg_capture_unsafe(ctx);
    if (r) return r;
    *out = new_array(d);
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result cuArrayCreate_v2(cu_array *out, const struct cu_array_desc *d)
{
    CHECK(d);
    struct cu_array3d_desc d3 = {d->width, d->height, 0, d->format, d->channels, 0};
    return cuArray3DCreate_v2(out, &d3);
}

static cu_result check_array(cu_array a)
{
    cu_result r = mg_enter(NULL);
    return r ? r : mg_obj_is(a, MG_OBJ_ARRAY) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
}

static cu_result cuArrayDestroy(cu_array a)
{
    struct CUctx_st *ctx;
    cu_result r = check_array(a);
    if (r) return r;
    CHECK(!a->mipmap);
    mg_enter(&ctx);
    mg_ctx_sync(ctx);
    free_array(a);
    return CUE_SUCCESS;
}

static cu_result cuArray3DGetDescriptor_v2(struct cu_array3d_desc *out, cu_array a)
{
    cu_result r = check_array(a);
    if (r) return r;
    CHECK(out);
    *out = a->desc;
    return CUE_SUCCESS;
}

static cu_result cuArrayGetDescriptor_v2(struct cu_array_desc *out, cu_array a)
{
    cu_result r = check_array(a);
    if (r) return r;
    CHECK(out);
    *out = (struct cu_array_desc){a->desc.width, a->desc.height, a->desc.format, a->desc.channels};
    return CUE_SUCCESS;
}

static cu_result cuArrayGetMemoryRequirements(struct cu_array_memory *out, cu_array a, cu_device dev)
{
    cu_result r = check_array(a);
    if (r) return r;
    if ((r = mg_device_check(dev))) return r;
    CHECK(out);
    *out = (struct cu_array_memory){.bytes = a->bytes, .align = 512};
    return CUE_SUCCESS;
}

static cu_result cuArrayGetPlane(cu_array *out, cu_array a, unsigned plane)
{
    (void)out, (void)plane;
    cu_result r = check_array(a);
    return r ? r : CUE_INVALID_VALUE; /* no planar format exists here */
}

static cu_result cuArrayGetSparseProperties(void *out, cu_array a)
{
    (void)out;
    cu_result r = check_array(a);
    return r ? r : CUE_INVALID_VALUE;
}

/* ---- mipmaps --------------------------------------------------------------------------------------- */

static void free_mipmap(struct CUmipmappedArray_st *m)
{
    mg_obj_del(m, MG_OBJ_MIPMAP);
    for (unsigned i = 0; i < m->n_levels; i++)
        if (m->levels[i]) free_array(m->levels[i]);
    free(m);
}

static cu_result cuMipmappedArrayCreate(cu_mipmap *out, const struct cu_array3d_desc *d, unsigned levels)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out && d && levels);
    r = check_desc(d);
    if (r) return r;
    unsigned most = 1;
    bool layered = d->flags & (CUARRAY_LAYERED | CUARRAY_CUBEMAP);
    for (size_t n = MG_MAX(MG_MAX(d->width, d->height), layered ? 0 : d->depth); n > 1; n >>= 1) most++;
    struct CUmipmappedArray_st *m = calloc(1, sizeof *m);
    if (!m) return CUE_OUT_OF_MEMORY;
    m->desc = *d;
    m->n_levels = MG_MIN(MG_MIN(levels, most), 32u);
    mg_obj_add(m, MG_OBJ_MIPMAP);
    for (unsigned i = 0; i < m->n_levels; i++) {
        struct cu_array3d_desc l = *d;
        l.width = MG_MAX(d->width >> i, 1);
        l.height = d->height ? MG_MAX(d->height >> i, 1) : 0;
        if (!layered) l.depth = d->depth ? MG_MAX(d->depth >> i, 1) : 0;
        m->levels[i] = new_array(&l);
        if (!m->levels[i]) {
            free_mipmap(m);
            return CUE_OUT_OF_MEMORY;
        }
        m->levels[i]->mipmap = m;
    }
    *out = m;
    return CUE_SUCCESS;
}

static cu_result check_mipmap(cu_mipmap m)
{
    cu_result r = mg_enter(NULL);
    return r ? r : mg_obj_is(m, MG_OBJ_MIPMAP) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
}

static cu_result cuMipmappedArrayGetLevel(cu_array *out, cu_mipmap m, unsigned level)
{
    cu_result r = check_mipmap(m);
    if (r) return r;
    CHECK(out && level < m->n_levels);
    *out = m->levels[level];
    return CUE_SUCCESS;
}

static cu_result cuMipmappedArrayDestroy(cu_mipmap m)
{
    struct CUctx_st *ctx;
    cu_result r = check_mipmap(m);
    if (r) return r;
    mg_enter(&ctx);
    mg_ctx_sync(ctx);
    free_mipmap(m);
    return CUE_SUCCESS;
}

static cu_result cuMipmappedArrayGetMemoryRequirements(struct cu_array_memory *out, cu_mipmap m, cu_device dev)
{
    cu_result r = check_mipmap(m);
    if (r) return r;
    if ((r = mg_device_check(dev))) return r;
    CHECK(out);
    *out = (struct cu_array_memory){.align = 512};
    for (unsigned i = 0; i < m->n_levels; i++) out->bytes += m->levels[i]->bytes;
    return CUE_SUCCESS;
}

static cu_result cuMipmappedArrayGetSparseProperties(void *out, cu_mipmap m)
{
    (void)out;
    cu_result r = check_mipmap(m);
    return r ? r : CUE_INVALID_VALUE;
}

const struct mg_entry mg_entries_array[] = {
    MG_ENTRY(cuArrayCreate_v2),
    MG_ENTRY(cuArray3DCreate_v2),
    MG_ENTRY(cuArrayDestroy),
    MG_ENTRY(cuArrayGetDescriptor_v2),
    MG_ENTRY(cuArray3DGetDescriptor_v2),
    MG_ENTRY(cuArrayGetMemoryRequirements),
    MG_ENTRY(cuArrayGetPlane),
    MG_ENTRY(cuArrayGetSparseProperties),
    MG_ENTRY(cuMipmappedArrayCreate),
    MG_ENTRY(cuMipmappedArrayGetLevel),
    MG_ENTRY(cuMipmappedArrayDestroy),
    MG_ENTRY(cuMipmappedArrayGetMemoryRequirements),
    MG_ENTRY(cuMipmappedArrayGetSparseProperties),
    {0},
};
