/* Rectangles, volumes and arrays. The runtime's copies become the driver's CUDA_MEMCPY2D and 3D
 * forms. Units: bytes along x wherever only pointers take part; where an array does, the width and
 * the array's own x offset of the 3D form count its elements, as the runtime's reference has it. */
#include "runtime/priv.h"

/* ---- rectangles ---- */

struct side { /* one end of a 2D copy */
    const void *ptr;
    cudaArray_const_t array; /* or this, with x in bytes and y in rows */
    size_t pitch, x, y;
};

static int memory_type(int kind, bool source)
{
    if (kind == cudaMemcpyDefault) return CUMEM_UNIFIED;
    bool host = source ? kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
                       : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
    return host ? CUMEM_HOST : CUMEM_DEVICE;
}

static cudaError_t copy_rectangle(struct side dst, struct side src, size_t width, size_t height, int kind,
                                  cudaStream_t stream, bool async)
{
    RT_ENTER();
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return mg_rt_fail(cudaErrorInvalidMemcpyDirection);
    if (!width || !height) return cudaSuccess;
    if (height == 1) { /* no second row: the pitch does not matter, 0 is common */
        if (dst.pitch < width) dst.pitch = width;
        if (src.pitch < width) src.pitch = width;
    }
    if ((!dst.array && dst.pitch < width) || (!src.array && src.pitch < width))
        return mg_rt_fail(cudaErrorInvalidPitchValue);
    struct cu_memcpy2d c = {.src_x = src.x,
                            .src_y = src.y,
                            .dst_x = dst.x,
                            .dst_y = dst.y,
                            .src_pitch = src.pitch,
                            .dst_pitch = dst.pitch,
                            .width = width,
                            .height = height};
    c.src_type = src.array ? CUMEM_ARRAY : memory_type(kind, true);
    c.dst_type = dst.array ? CUMEM_ARRAY : memory_type(kind, false);
    c.src_array = (cu_array)(uintptr_t)src.array;
    c.dst_array = (cu_array)(uintptr_t)dst.array;
    if (c.src_type == CUMEM_HOST)
        c.src_host = src.ptr;
    else
        c.src_device = (cu_ptr)(uintptr_t)src.ptr;
    if (c.dst_type == CUMEM_HOST)
        c.dst_host = (void *)(uintptr_t)dst.ptr;
    else
        c.dst_device = (cu_ptr)(uintptr_t)dst.ptr;
    if (!async && !stream) return mg_rt_done(cu.cuMemcpy2DUnaligned_v2(&c));
    cu_result r = cu.cuMemcpy2DAsync_v2(&c, stream);
    if (!r && !async) r = cu.cuStreamSynchronize(stream);
    return mg_rt_done(r);
}

#define PLANE(p, bytes)                                                                                                \
    (struct side)                                                                                                      \
    {                                                                                                                  \
        .ptr = (p), .pitch = (bytes)                                                                                   \
    }
#define IN_ARRAY(a, at_x, at_y)                                                                                        \
    (struct side)                                                                                                      \
    {                                                                                                                  \
        .array = (a), .x = (at_x), .y = (at_y)                                                                         \
    }

RT_API(cudaMemcpy2D, (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind))
{
    return copy_rectangle(PLANE(dst, dpitch), PLANE(src, spitch), width, height, kind, NULL, false);
}
RT_API(cudaMemcpy2D_ptds,
       (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind))
{
    return copy_rectangle(PLANE(dst, dpitch), PLANE(src, spitch), width, height, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpy2DAsync, (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                           int kind, cudaStream_t stream))
{
    return copy_rectangle(PLANE(dst, dpitch), PLANE(src, spitch), width, height, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpy2DAsync,
            (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind,
             cudaStream_t stream),
            (dst, dpitch, src, spitch, width, height, kind, RT_PT(stream)))

RT_API(cudaMemcpy2DToArray,
       (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width, size_t height, int kind))
{
    return copy_rectangle(IN_ARRAY(dst, x, y), PLANE(src, spitch), width, height, kind, NULL, false);
}
RT_API(cudaMemcpy2DToArray_ptds,
       (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width, size_t height, int kind))
{
    return copy_rectangle(IN_ARRAY(dst, x, y), PLANE(src, spitch), width, height, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpy2DToArrayAsync, (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
                                  size_t height, int kind, cudaStream_t stream))
{
    return copy_rectangle(IN_ARRAY(dst, x, y), PLANE(src, spitch), width, height, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpy2DToArrayAsync,
            (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width, size_t height, int kind,
             cudaStream_t stream),
            (dst, x, y, src, spitch, width, height, kind, RT_PT(stream)))

RT_API(cudaMemcpy2DFromArray,
       (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width, size_t height, int kind))
{
    return copy_rectangle(PLANE(dst, dpitch), IN_ARRAY(src, x, y), width, height, kind, NULL, false);
}
RT_API(cudaMemcpy2DFromArray_ptds,
       (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width, size_t height, int kind))
{
    return copy_rectangle(PLANE(dst, dpitch), IN_ARRAY(src, x, y), width, height, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpy2DFromArrayAsync, (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
                                    size_t height, int kind, cudaStream_t stream))
{
    return copy_rectangle(PLANE(dst, dpitch), IN_ARRAY(src, x, y), width, height, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpy2DFromArrayAsync,
            (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width, size_t height, int kind,
             cudaStream_t stream),
            (dst, dpitch, src, x, y, width, height, kind, RT_PT(stream)))

RT_API(cudaMemcpy2DArrayToArray, (cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy,
                                  size_t width, size_t height, int kind))
{
    return copy_rectangle(IN_ARRAY(dst, dx, dy), IN_ARRAY(src, sx, sy), width, height, kind, NULL, false);
}
RT_API(cudaMemcpy2DArrayToArray_ptds, (cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx,
                                       size_t sy, size_t width, size_t height, int kind))
{
    return copy_rectangle(IN_ARRAY(dst, dx, dy), IN_ARRAY(src, sx, sy), width, height, kind, cudaStreamPerThread,
                          false);
}

/* ---- a run of bytes through an array's rows ---- */

static cudaError_t array_row_bytes(cudaArray_const_t array, size_t *bytes)
{
    struct cu_array3d_desc d;
    RT_ENTER();
    cu_result r = array ? cu.cuArray3DGetDescriptor_v2(&d, (cu_array)(uintptr_t)array) : CUE_INVALID_VALUE;
    if (r) return mg_rt_done(r);
    *bytes = d.width * mg_rt_element_bytes(d.format, d.channels);
    return cudaSuccess;
}

/* Row by row from (x, y): the first row may begin, the last may end inside. */
static cudaError_t copy_run(cudaArray_const_t array, size_t x, size_t y, const char *linear, size_t bytes,
                            bool to_array, int kind, cudaStream_t stream, bool async)
{
    size_t row, done = 0;
    cudaError_t e = array_row_bytes(array, &row);
    while (!e && done < bytes) {
        size_t width = row - x < bytes - done ? row - x : bytes - done, height = 1;
        if (!x && bytes - done >= row) width = row, height = (bytes - done) / row;
        struct side in = IN_ARRAY(array, x, y), out = PLANE(linear + done, width);
        e = to_array ? copy_rectangle(in, out, width, height, kind, stream, async)
                     : copy_rectangle(out, in, width, height, kind, stream, async);
        done += width * height;
        x = 0;
        y += height;
    }
    return e;
}

RT_API(cudaMemcpyToArray, (cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes, int kind))
{
    return copy_run(dst, x, y, src, bytes, true, kind, NULL, false);
}
RT_API(cudaMemcpyToArray_ptds, (cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes, int kind))
{
    return copy_run(dst, x, y, src, bytes, true, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpyToArrayAsync,
       (cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes, int kind, cudaStream_t stream))
{
    return copy_run(dst, x, y, src, bytes, true, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpyToArrayAsync,
            (cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes, int kind, cudaStream_t stream),
            (dst, x, y, src, bytes, kind, RT_PT(stream)))
RT_API(cudaMemcpyFromArray, (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes, int kind))
{
    return copy_run(src, x, y, dst, bytes, false, kind, NULL, false);
}
RT_API(cudaMemcpyFromArray_ptds, (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes, int kind))
{
    return copy_run(src, x, y, dst, bytes, false, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpyFromArrayAsync,
       (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes, int kind, cudaStream_t stream))
{
    return copy_run(src, x, y, dst, bytes, false, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpyFromArrayAsync,
            (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes, int kind, cudaStream_t stream),
            (dst, src, x, y, bytes, kind, RT_PT(stream)))

static cudaError_t array_to_array(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy,
                                  size_t bytes, int kind, cudaStream_t stream)
{
    size_t dst_row, src_row;
    cudaError_t e = array_row_bytes(dst, &dst_row);
    if (!e) e = array_row_bytes(src, &src_row);
    while (!e && bytes) {
        size_t n = bytes < dst_row - dx ? bytes : dst_row - dx;
        if (n > src_row - sx) n = src_row - sx;
        e = copy_rectangle(IN_ARRAY(dst, dx, dy), IN_ARRAY(src, sx, sy), n, 1, kind, stream, false);
        bytes -= n;
        if ((dx += n) == dst_row) dx = 0, dy++;
        if ((sx += n) == src_row) sx = 0, sy++;
    }
    return e;
}
RT_API(cudaMemcpyArrayToArray,
       (cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy, size_t bytes, int kind))
{
    return array_to_array(dst, dx, dy, src, sx, sy, bytes, kind, NULL);
}
RT_API(cudaMemcpyArrayToArray_ptds,
       (cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy, size_t bytes, int kind))
{
    return array_to_array(dst, dx, dy, src, sx, sy, bytes, kind, cudaStreamPerThread);
}

/* ---- volumes ---- */

static cudaError_t array_element(cudaArray_t array, size_t *bytes)
{
    struct cu_array3d_desc d;
    cu_result r = cu.cuArray3DGetDescriptor_v2(&d, (cu_array)(void *)array);
    if (!r) *bytes = mg_rt_element_bytes(d.format, d.channels);
    return mg_rt_from_driver(r);
}

cudaError_t mg_rt_volume(const struct cudaMemcpy3DParms *p, struct cu_memcpy3d *c)
{
    size_t src_element = 1, dst_element = 1;
    cudaError_t e = cudaSuccess;
    if (p->kind < cudaMemcpyHostToHost || p->kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    if (!p->srcArray == !p->srcPtr.ptr || !p->dstArray == !p->dstPtr.ptr)
        return cudaErrorInvalidValue; /* one of each */
    if (p->srcArray) e = array_element(p->srcArray, &src_element);
    if (!e && p->dstArray) e = array_element(p->dstArray, &dst_element);
    if (e) return e;
    if (p->srcArray && p->dstArray && src_element != dst_element) return cudaErrorInvalidValue;
    *c = (struct cu_memcpy3d){
        .src_x = p->srcPos.x * src_element,
        .src_y = p->srcPos.y,
        .src_z = p->srcPos.z,
        .dst_x = p->dstPos.x * dst_element,
        .dst_y = p->dstPos.y,
        .dst_z = p->dstPos.z,
        .src_pitch = p->srcPtr.pitch,
        .src_height = p->srcPtr.ysize,
        .dst_pitch = p->dstPtr.pitch,
        .dst_height = p->dstPtr.ysize,
        .width = p->extent.width * (p->srcArray ? src_element : dst_element),
        .height = p->extent.height,
        .depth = p->extent.depth,
    };
    c->src_type = p->srcArray ? CUMEM_ARRAY : memory_type(p->kind, true);
    c->dst_type = p->dstArray ? CUMEM_ARRAY : memory_type(p->kind, false);
    c->src_array = (cu_array)(void *)p->srcArray;
    c->dst_array = (cu_array)(void *)p->dstArray;
    if (c->src_type == CUMEM_HOST)
        c->src_host = p->srcPtr.ptr;
    else
        c->src_device = (cu_ptr)(uintptr_t)p->srcPtr.ptr;
    if (c->dst_type == CUMEM_HOST)
        c->dst_host = p->dstPtr.ptr;
    else
        c->dst_device = (cu_ptr)(uintptr_t)p->dstPtr.ptr;
    return cudaSuccess;
}

void mg_rt_volume_back(const struct cu_memcpy3d *c, struct cudaMemcpy3DParms *p)
{
    size_t src_element = 1, dst_element = 1;
    if (c->src_type == CUMEM_ARRAY) array_element((cudaArray_t)(void *)c->src_array, &src_element);
    if (c->dst_type == CUMEM_ARRAY) array_element((cudaArray_t)(void *)c->dst_array, &dst_element);
    *p = (struct cudaMemcpy3DParms){
        .srcArray = c->src_type == CUMEM_ARRAY ? (cudaArray_t)(void *)c->src_array : NULL,
        .dstArray = c->dst_type == CUMEM_ARRAY ? (cudaArray_t)(void *)c->dst_array : NULL,
        .srcPos = {c->src_x / src_element, c->src_y, c->src_z},
        .dstPos = {c->dst_x / dst_element, c->dst_y, c->dst_z},
        .extent = {c->width / (c->src_type == CUMEM_ARRAY ? src_element : dst_element), c->height, c->depth},
    };
    if (!p->srcArray) {
        void *ptr = c->src_type == CUMEM_HOST ? (void *)(uintptr_t)c->src_host : (void *)(uintptr_t)c->src_device;
        p->srcPtr = (struct cudaPitchedPtr){ptr, c->src_pitch, c->width, c->src_height};
    }
    if (!p->dstArray) {
        void *ptr = c->dst_type == CUMEM_HOST ? c->dst_host : (void *)(uintptr_t)c->dst_device;
        p->dstPtr = (struct cudaPitchedPtr){ptr, c->dst_pitch, c->width, c->dst_height};
    }
    if (c->src_type == CUMEM_UNIFIED || c->dst_type == CUMEM_UNIFIED)
        p->kind = cudaMemcpyDefault;
    else
        p->kind = c->src_type == CUMEM_HOST ? c->dst_type == CUMEM_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice
                  : c->dst_type == CUMEM_HOST ? cudaMemcpyDeviceToHost
                                              : cudaMemcpyDeviceToDevice;
}

static cudaError_t copy_volume(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool async)
{
    struct cu_memcpy3d c;
    RT_ENTER();
    cudaError_t e = p ? mg_rt_volume(p, &c) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    if (!c.width || !c.height || !c.depth) return cudaSuccess;
    if (!async && !stream) return mg_rt_done(cu.cuMemcpy3D_v2(&c));
    cu_result r = cu.cuMemcpy3DAsync_v2(&c, stream);
    if (!r && !async) r = cu.cuStreamSynchronize(stream);
    return mg_rt_done(r);
}

RT_API(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p))
{
    return copy_volume(p, NULL, false);
}
RT_API(cudaMemcpy3D_ptds, (const struct cudaMemcpy3DParms *p))
{
    return copy_volume(p, cudaStreamPerThread, false);
}
RT_API(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream))
{
    return copy_volume(p, stream, true);
}
RT_API_PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream), (p, RT_PT(stream)))

/* ---- between devices ---- */

RT_API(cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t bytes))
{
    cu_ctx to, from;
    RT_ENTER();
    cudaError_t e = mg_rt_primary(dst_device, &to);
    if (!e) e = mg_rt_primary(src_device, &from);
    if (e || !bytes) return mg_rt_fail(e);
    return mg_rt_done(cu.cuMemcpyPeer((cu_ptr)(uintptr_t)dst, to, (cu_ptr)(uintptr_t)src, from, bytes));
}

RT_API(cudaMemcpyPeerAsync,
       (void *dst, int dst_device, const void *src, int src_device, size_t bytes, cudaStream_t stream))
{
    cu_ctx to, from;
    RT_ENTER();
    cudaError_t e = mg_rt_primary(dst_device, &to);
    if (!e) e = mg_rt_primary(src_device, &from);
    if (e || !bytes) return mg_rt_fail(e);
    return mg_rt_done(cu.cuMemcpyPeerAsync((cu_ptr)(uintptr_t)dst, to, (cu_ptr)(uintptr_t)src, from, bytes, stream));
}

static cudaError_t peer_volume(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool async)
{
    struct cu_memcpy3d c;
    cu_ctx to, from;
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    struct cudaMemcpy3DParms plain = {p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                                      p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
    cudaError_t e = mg_rt_volume(&plain, &c);
    if (!e) e = mg_rt_primary(p->dstDevice, &to);
    if (!e) e = mg_rt_primary(p->srcDevice, &from);
    if (e) return mg_rt_fail(e);
    c.dst_ctx = to;
    c.src_ctx = from;
    return mg_rt_done(async ? cu.cuMemcpy3DPeerAsync(&c, stream) : cu.cuMemcpy3DPeer(&c));
}
RT_API(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *p))
{
    return peer_volume(p, NULL, false);
}
RT_API(cudaMemcpy3DPeer_ptds, (const struct cudaMemcpy3DPeerParms *p))
{
    return peer_volume(p, cudaStreamPerThread, true);
}
RT_API(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream))
{
    return peer_volume(p, stream, true);
}
RT_API_PTSZ(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream), (p, RT_PT(stream)))

/* ---- many at once: the driver's structures have the same layout ---- */

_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(struct cu_copy_attributes) &&
                   sizeof(struct cudaMemcpy3DBatchOp) == sizeof(struct cu_copy3d_batch),
               "passed on as they are");

RT_API(cudaMemcpyBatchAsync, (void *const *dsts, const void *const *srcs, const size_t *bytes, size_t count,
                              struct cudaMemcpyAttributes *attrs, size_t *index, size_t n, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemcpyBatchAsync_v2((cu_ptr *)(uintptr_t)dsts, (cu_ptr *)(uintptr_t)srcs,
                                               (size_t *)(uintptr_t)bytes, count,
                                               (struct cu_copy_attributes *)(void *)attrs, index, n, stream));
}
RT_API_PTSZ(cudaMemcpyBatchAsync,
            (void *const *dsts, const void *const *srcs, const size_t *bytes, size_t count,
             struct cudaMemcpyAttributes *attrs, size_t *index, size_t n, cudaStream_t stream),
            (dsts, srcs, bytes, count, attrs, index, n, RT_PT(stream)))

RT_API(cudaMemcpy3DBatchAsync,
       (size_t count, struct cudaMemcpy3DBatchOp *ops, unsigned long long flags, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemcpy3DBatchAsync_v2(count, (struct cu_copy3d_batch *)(void *)ops, flags, stream));
}
RT_API_PTSZ(cudaMemcpy3DBatchAsync,
            (size_t count, struct cudaMemcpy3DBatchOp *ops, unsigned long long flags, cudaStream_t stream),
            (count, ops, flags, RT_PT(stream)))
