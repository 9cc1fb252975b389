/* Arrays, mipmaps, texture and surface objects: channel descriptions become the driver's formats. */
#include "runtime/priv.h"

#include <string.h>

/* ---- formats ---- */

static const struct format_row {
    int format, kind, bits;
} formats[] = {
    {CUAD_UINT8, cudaChannelFormatKindUnsigned, 8},   {CUAD_UINT16, cudaChannelFormatKindUnsigned, 16},
    {CUAD_UINT32, cudaChannelFormatKindUnsigned, 32}, {CUAD_SINT8, cudaChannelFormatKindSigned, 8},
    {CUAD_SINT16, cudaChannelFormatKindSigned, 16},   {CUAD_SINT32, cudaChannelFormatKindSigned, 32},
    {CUAD_HALF, cudaChannelFormatKindFloat, 16},      {CUAD_FLOAT, cudaChannelFormatKindFloat, 32},
};

size_t mg_rt_element_bytes(int format, unsigned channels)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].format == format) return (size_t)formats[i].bits / 8 * channels;
    }
    return 1;
}

/* 1, 2 or 4 channels of one width; the packed and normalised kinds are not known here. */
static cudaError_t to_format(const struct cudaChannelFormatDesc *d, int *format, unsigned *channels)
{
    const int bits[4] = {d->x, d->y, d->z, d->w};
    unsigned n = 0;
    while (n < 4 && bits[n] > 0) n++;
    for (unsigned i = 0; i < 4; i++) {
        if (bits[i] != (i < n ? bits[0] : 0)) return cudaErrorInvalidChannelDescriptor;
    }
    if (!n || n == 3) return cudaErrorInvalidChannelDescriptor;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].kind != d->f || formats[i].bits != bits[0]) continue;
        *format = formats[i].format;
        *channels = n;
        return cudaSuccess;
    }
    return cudaErrorInvalidChannelDescriptor;
}

static struct cudaChannelFormatDesc from_format(int format, unsigned channels)
{
    struct cudaChannelFormatDesc d = {.f = cudaChannelFormatKindNone};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].format != format) continue;
        int bits = formats[i].bits;
        d = (struct cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                                           channels > 3 ? bits : 0, formats[i].kind};
    }
    return d;
}

RT_VISIBLE struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int f);
RT_VISIBLE struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int f)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

/* ---- arrays ---- */

static cudaError_t describe_array(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags,
                                  struct cu_array3d_desc *d)
{
    *d =
        (struct cu_array3d_desc){.width = extent.width, .height = extent.height, .depth = extent.depth, .flags = flags};
    return to_format(desc, &d->format, &d->channels); /* the runtime's flags are the driver's */
}

RT_API(cudaMalloc3DArray,
       (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags))
{
    struct cu_array3d_desc d;
    RT_ENTER();
    cudaError_t e = array && desc ? describe_array(desc, extent, flags, &d) : cudaErrorInvalidValue;
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuArray3DCreate_v2((cu_array *)(void *)array, &d));
}

RT_API(cudaMallocArray,
       (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned flags))
{
    return cudaMalloc3DArray(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

RT_API(cudaFreeArray, (cudaArray_t array))
{
    RT_ENTER();
    return array ? mg_rt_done(cu.cuArrayDestroy((cu_array)(void *)array)) : cudaSuccess;
}

RT_API(cudaMallocMipmappedArray, (cudaMipmappedArray_t * mipmap, const struct cudaChannelFormatDesc *desc,
                                  struct cudaExtent extent, unsigned levels, unsigned flags))
{
    struct cu_array3d_desc d;
    RT_ENTER();
    cudaError_t e = mipmap && desc ? describe_array(desc, extent, flags, &d) : cudaErrorInvalidValue;
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuMipmappedArrayCreate((cu_mipmap *)(void *)mipmap, &d, levels));
}

RT_API(cudaFreeMipmappedArray, (cudaMipmappedArray_t mipmap))
{
    RT_ENTER();
    return mipmap ? mg_rt_done(cu.cuMipmappedArrayDestroy((cu_mipmap)(void *)mipmap)) : cudaSuccess;
}

RT_API(cudaGetMipmappedArrayLevel, (cudaArray_t * array, cudaMipmappedArray_const_t mipmap, unsigned level))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMipmappedArrayGetLevel((cu_array *)(void *)array, (cu_mipmap)(uintptr_t)mipmap, level));
}

RT_API(cudaArrayGetInfo,
       (struct cudaChannelFormatDesc * desc, struct cudaExtent *extent, unsigned *flags, cudaArray_t array))
{
    struct cu_array3d_desc d;
    RT_ENTER();
    cu_result r = cu.cuArray3DGetDescriptor_v2(&d, (cu_array)(void *)array);
    if (r) return mg_rt_done(r);
    if (desc) *desc = from_format(d.format, d.channels);
    if (extent) *extent = (struct cudaExtent){d.width, d.height, d.depth};
    if (flags) *flags = d.flags;
    return cudaSuccess;
}

RT_API(cudaGetChannelDesc, (struct cudaChannelFormatDesc * desc, cudaArray_const_t array))
{
    return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)(uintptr_t)array);
}

RT_API(cudaArrayGetPlane, (cudaArray_t * plane, cudaArray_t array, unsigned index))
{
    RT_ENTER();
    return mg_rt_done(cu.cuArrayGetPlane((cu_array *)(void *)plane, (cu_array)(void *)array, index));
}

_Static_assert(sizeof(struct cudaArrayMemoryRequirements) == sizeof(struct cu_array_memory), "passed on as it is");

RT_API(cudaArrayGetMemoryRequirements, (struct cudaArrayMemoryRequirements * memory, cudaArray_t array, int device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuArrayGetMemoryRequirements((struct cu_array_memory *)(void *)memory, (cu_array)(void *)array,
                                                      mg_rt_device_handle(device)));
}

RT_API(cudaMipmappedArrayGetMemoryRequirements,
       (struct cudaArrayMemoryRequirements * memory, cudaMipmappedArray_t mipmap, int device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMipmappedArrayGetMemoryRequirements((struct cu_array_memory *)(void *)memory,
                                                               (cu_mipmap)(void *)mipmap, mg_rt_device_handle(device)));
}

RT_API(cudaArrayGetSparseProperties, (struct cudaArraySparseProperties * properties, cudaArray_t array))
{
    RT_ENTER();
    return mg_rt_done(cu.cuArrayGetSparseProperties(properties, (cu_array)(void *)array));
}

RT_API(cudaMipmappedArrayGetSparseProperties,
       (struct cudaArraySparseProperties * properties, cudaMipmappedArray_t mipmap))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMipmappedArrayGetSparseProperties(properties, (cu_mipmap)(void *)mipmap));
}

RT_API(cudaDeviceGetTexture1DLinearMaxWidth, (size_t * width, const struct cudaChannelFormatDesc *desc, int device))
{
    int format;
    unsigned channels;
    RT_ENTER();
    cudaError_t e = width && desc ? to_format(desc, &format, &channels) : cudaErrorInvalidValue;
    return e ? mg_rt_fail(e)
             : mg_rt_done(cu.cuDeviceGetTexture1DLinearMaxWidth(width, format, channels, mg_rt_device_handle(device)));
}

/* ---- texture and surface objects ---- */

static cudaError_t to_resource(const struct cudaResourceDesc *r, struct cu_resource_desc *d)
{
    *d = (struct cu_resource_desc){.type = r->resType, .flags = r->flags};
    switch (r->resType) {
    case cudaResourceTypeArray:
        d->res.array.array = (cu_array)(void *)r->res.array.array;
        return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
        d->res.mipmap.mipmap = (cu_mipmap)(void *)r->res.mipmap.mipmap;
        return cudaSuccess;
    case cudaResourceTypeLinear:
        d->res.linear.ptr = (cu_ptr)(uintptr_t)r->res.linear.devPtr;
        d->res.linear.bytes = r->res.linear.sizeInBytes;
        return to_format(&r->res.linear.desc, &d->res.linear.format, &d->res.linear.channels);
    case cudaResourceTypePitch2D:
        d->res.pitch2d.ptr = (cu_ptr)(uintptr_t)r->res.pitch2D.devPtr;
        d->res.pitch2d.width = r->res.pitch2D.width;
        d->res.pitch2d.height = r->res.pitch2D.height;
        d->res.pitch2d.pitch = r->res.pitch2D.pitchInBytes;
        return to_format(&r->res.pitch2D.desc, &d->res.pitch2d.format, &d->res.pitch2d.channels);
    default:
        return cudaErrorInvalidValue;
    }
}

static void from_resource(const struct cu_resource_desc *d, struct cudaResourceDesc *r)
{
    memset(r, 0, sizeof *r);
    r->resType = d->type;
    r->flags = d->flags;
    if (d->type == CURES_ARRAY) {
        r->res.array.array = (cudaArray_t)(void *)d->res.array.array;
    } else if (d->type == CURES_MIPMAP) {
        r->res.mipmap.mipmap = (cudaMipmappedArray_t)(void *)d->res.mipmap.mipmap;
    } else if (d->type == CURES_LINEAR) {
        r->res.linear.devPtr = (void *)(uintptr_t)d->res.linear.ptr;
        r->res.linear.desc = from_format(d->res.linear.format, d->res.linear.channels);
        r->res.linear.sizeInBytes = d->res.linear.bytes;
    } else {
        r->res.pitch2D.devPtr = (void *)(uintptr_t)d->res.pitch2d.ptr;
        r->res.pitch2D.desc = from_format(d->res.pitch2d.format, d->res.pitch2d.channels);
        r->res.pitch2D.width = d->res.pitch2d.width;
        r->res.pitch2D.height = d->res.pitch2d.height;
        r->res.pitch2D.pitchInBytes = d->res.pitch2d.pitch;
    }
}

_Static_assert(sizeof(struct cudaResourceViewDesc) == sizeof(struct cu_view_desc), "passed on as it is");

RT_API(cudaCreateTextureObject, (cudaTextureObject_t * object, const struct cudaResourceDesc *res,
                                 const struct cudaTextureDesc *tex, const struct cudaResourceViewDesc *view))
{
    struct cu_resource_desc r;
    cu_tex made = 0;
    RT_ENTER();
    cudaError_t e = object && res && tex ? to_resource(res, &r) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    struct cu_texture_desc t = {
        .filter = tex->filterMode,
        .max_anisotropy = tex->maxAnisotropy,
        .mipmap_filter = tex->mipmapFilterMode,
        .mipmap_bias = tex->mipmapLevelBias,
        .min_clamp = tex->minMipmapLevelClamp,
        .max_clamp = tex->maxMipmapLevelClamp,
        .flags = (tex->readMode ? 0u : CUTEX_READ_AS_INTEGER) | (tex->normalizedCoords ? CUTEX_NORMALIZED : 0u) |
                 (tex->sRGB ? CUTEX_SRGB : 0u) | (tex->disableTrilinearOptimization ? CUTEX_NO_TRILINEAR_OPT : 0u) |
                 (tex->seamlessCubemap ? CUTEX_SEAMLESS_CUBEMAP : 0u),
    };
    memcpy(t.address, tex->addressMode, sizeof t.address);
    memcpy(t.border, tex->borderColor, sizeof t.border);
    e = mg_rt_done(cu.cuTexObjectCreate(&made, &r, &t, (const struct cu_view_desc *)(const void *)view));
    if (!e) *object = made;
    return e;
}

RT_API(cudaDestroyTextureObject, (cudaTextureObject_t object))
{
    RT_ENTER();
    return object ? mg_rt_done(cu.cuTexObjectDestroy(object)) : cudaSuccess;
}

RT_API(cudaGetTextureObjectResourceDesc, (struct cudaResourceDesc * res, cudaTextureObject_t object))
{
    struct cu_resource_desc r;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuTexObjectGetResourceDesc(&r, object));
    if (!e) from_resource(&r, res);
    return e;
}

RT_API(cudaGetTextureObjectTextureDesc, (struct cudaTextureDesc * tex, cudaTextureObject_t object))
{
    struct cu_texture_desc t;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuTexObjectGetTextureDesc(&t, object));
    if (e) return e;
    *tex = (struct cudaTextureDesc){
        .filterMode = t.filter,
        .readMode = !(t.flags & CUTEX_READ_AS_INTEGER),
        .sRGB = !!(t.flags & CUTEX_SRGB),
        .normalizedCoords = !!(t.flags & CUTEX_NORMALIZED),
        .maxAnisotropy = t.max_anisotropy,
        .mipmapFilterMode = t.mipmap_filter,
        .mipmapLevelBias = t.mipmap_bias,
        .minMipmapLevelClamp = t.min_clamp,
        .maxMipmapLevelClamp = t.max_clamp,
        .disableTrilinearOptimization = !!(t.flags & CUTEX_NO_TRILINEAR_OPT),
        .seamlessCubemap = !!(t.flags & CUTEX_SEAMLESS_CUBEMAP),
    };
    memcpy(tex->addressMode, t.address, sizeof tex->addressMode);
    memcpy(tex->borderColor, t.border, sizeof tex->borderColor);
    return cudaSuccess;
}

RT_API(cudaGetTextureObjectResourceViewDesc, (struct cudaResourceViewDesc * view, cudaTextureObject_t object))
{
    RT_ENTER();
    return mg_rt_done(cu.cuTexObjectGetResourceViewDesc((struct cu_view_desc *)(void *)view, object));
}

RT_API(cudaCreateSurfaceObject, (cudaSurfaceObject_t * object, const struct cudaResourceDesc *res))
{
    struct cu_resource_desc r;
    cu_surf made = 0;
    RT_ENTER();
    cudaError_t e = object && res ? to_resource(res, &r) : cudaErrorInvalidValue;
    if (!e) e = mg_rt_from_driver(cu.cuSurfObjectCreate(&made, &r));
    if (!e) *object = made;
    return mg_rt_fail(e);
}

RT_API(cudaDestroySurfaceObject, (cudaSurfaceObject_t object))
{
    RT_ENTER();
    return object ? mg_rt_done(cu.cuSurfObjectDestroy(object)) : cudaSuccess;
}

RT_API(cudaGetSurfaceObjectResourceDesc, (struct cudaResourceDesc * res, cudaSurfaceObject_t object))
{
    struct cu_resource_desc r;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuSurfObjectGetResourceDesc(&r, object));
    if (!e) from_resource(&r, res);
    return e;
}
