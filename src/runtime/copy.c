/* Linear copies, fills and copies to and from symbols. The kind of a copy says which side is the
 * host's; the driver checks the addresses. 2D, 3D and array copies are in copy3d.c. */
#include "runtime/priv.h"

static cu_ptr device_address(const void *p)
{
    return (cu_ptr)(uintptr_t)p;
}

cudaError_t mg_rt_copy(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream, bool async)
{
    cu_ptr to = device_address(dst), from = device_address(src);
    cu_result r;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return mg_rt_fail(cudaErrorInvalidMemcpyDirection);
    if (!bytes) return cudaSuccess;
    if (!dst || !src) return mg_rt_fail(cudaErrorInvalidValue);
    if (async) {
        if (kind == cudaMemcpyHostToDevice)
            r = cu.cuMemcpyHtoDAsync_v2(to, src, bytes, stream);
        else if (kind == cudaMemcpyDeviceToHost)
            r = cu.cuMemcpyDtoHAsync_v2(dst, from, bytes, stream);
        else if (kind == cudaMemcpyDeviceToDevice)
            r = cu.cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
        else
            r = cu.cuMemcpyAsync(to, from, bytes, stream);
    } else if (stream) { /* waits, ordered on the per-thread stream */
        cudaError_t e = mg_rt_copy(dst, src, bytes, kind, stream, true);
        return e ? e : mg_rt_done(cu.cuStreamSynchronize(stream));
    } else {
        if (kind == cudaMemcpyHostToDevice)
            r = cu.cuMemcpyHtoD_v2(to, src, bytes);
        else if (kind == cudaMemcpyDeviceToHost)
            r = cu.cuMemcpyDtoH_v2(dst, from, bytes);
        else if (kind == cudaMemcpyDeviceToDevice)
            r = cu.cuMemcpyDtoD_v2(to, from, bytes);
        else
            r = cu.cuMemcpy(to, from, bytes);
    }
    return mg_rt_done(r);
}

RT_API(cudaMemcpy, (void *dst, const void *src, size_t bytes, int kind))
{
    RT_ENTER();
    return mg_rt_copy(dst, src, bytes, kind, NULL, false);
}
RT_API(cudaMemcpy_ptds, (void *dst, const void *src, size_t bytes, int kind))
{
    RT_ENTER();
    return mg_rt_copy(dst, src, bytes, kind, cudaStreamPerThread, false);
}

RT_API(cudaMemcpyAsync, (void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_copy(dst, src, bytes, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpyAsync, (void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream),
            (dst, src, bytes, kind, RT_PT(stream)))

/* ---- symbols ---- */

/* The part [offset, offset + bytes) of a symbol. */
static cudaError_t symbol_part(const void *symbol, size_t bytes, size_t offset, char **at)
{
    struct mg_rt_variable v;
    cudaError_t e = mg_rt_variable(symbol, &v);
    if (e) return mg_rt_fail(e);
    if (offset > v.bytes || bytes > v.bytes - offset) return mg_rt_fail(cudaErrorInvalidValue);
    *at = (char *)(uintptr_t)v.address + offset;
    return cudaSuccess;
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
                             cudaStream_t stream, bool async)
{
    char *at;
    RT_ENTER();
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
        return mg_rt_fail(cudaErrorInvalidMemcpyDirection);
    cudaError_t e = symbol_part(symbol, bytes, offset, &at);
    return e ? e : mg_rt_copy(at, src, bytes, kind, stream, async);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t bytes, size_t offset, int kind,
                               cudaStream_t stream, bool async)
{
    char *at;
    RT_ENTER();
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
        return mg_rt_fail(cudaErrorInvalidMemcpyDirection);
    cudaError_t e = symbol_part(symbol, bytes, offset, &at);
    return e ? e : mg_rt_copy(dst, at, bytes, kind, stream, async);
}

RT_API(cudaMemcpyToSymbol, (const void *symbol, const void *src, size_t bytes, size_t offset, int kind))
{
    return to_symbol(symbol, src, bytes, offset, kind, NULL, false);
}
RT_API(cudaMemcpyToSymbol_ptds, (const void *symbol, const void *src, size_t bytes, size_t offset, int kind))
{
    return to_symbol(symbol, src, bytes, offset, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpyFromSymbol, (void *dst, const void *symbol, size_t bytes, size_t offset, int kind))
{
    return from_symbol(dst, symbol, bytes, offset, kind, NULL, false);
}
RT_API(cudaMemcpyFromSymbol_ptds, (void *dst, const void *symbol, size_t bytes, size_t offset, int kind))
{
    return from_symbol(dst, symbol, bytes, offset, kind, cudaStreamPerThread, false);
}
RT_API(cudaMemcpyToSymbolAsync,
       (const void *symbol, const void *src, size_t bytes, size_t offset, int kind, cudaStream_t stream))
{
    return to_symbol(symbol, src, bytes, offset, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpyToSymbolAsync,
            (const void *symbol, const void *src, size_t bytes, size_t offset, int kind, cudaStream_t stream),
            (symbol, src, bytes, offset, kind, RT_PT(stream)))
RT_API(cudaMemcpyFromSymbolAsync,
       (void *dst, const void *symbol, size_t bytes, size_t offset, int kind, cudaStream_t stream))
{
    return from_symbol(dst, symbol, bytes, offset, kind, stream, true);
}
RT_API_PTSZ(cudaMemcpyFromSymbolAsync,
            (void *dst, const void *symbol, size_t bytes, size_t offset, int kind, cudaStream_t stream),
            (dst, symbol, bytes, offset, kind, RT_PT(stream)))

RT_API(cudaGetSymbolAddress, (void **address, const void *symbol))
{
    RT_ENTER();
    struct mg_rt_variable v;
    cudaError_t e = address ? mg_rt_variable(symbol, &v) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    *address = (void *)(uintptr_t)v.address;
    return cudaSuccess;
}

RT_API(cudaGetSymbolSize, (size_t * bytes, const void *symbol))
{
    RT_ENTER();
    struct mg_rt_variable v;
    cudaError_t e = bytes ? mg_rt_variable(symbol, &v) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    *bytes = v.bytes;
    return cudaSuccess;
}

/* ---- fills ---- */

RT_API(cudaMemset, (void *p, int value, size_t bytes))
{
    RT_ENTER();
    if (!bytes) return cudaSuccess;
    return mg_rt_done(cu.cuMemsetD8_v2(device_address(p), (unsigned char)value, bytes));
}

RT_API(cudaMemsetAsync, (void *p, int value, size_t bytes, cudaStream_t stream))
{
    RT_ENTER();
    if (!bytes) return cudaSuccess;
    return mg_rt_done(cu.cuMemsetD8Async(device_address(p), (unsigned char)value, bytes, stream));
}
RT_API_PTSZ(cudaMemsetAsync, (void *p, int value, size_t bytes, cudaStream_t stream), (p, value, bytes, RT_PT(stream)))
RT_API(cudaMemset_ptds, (void *p, int value, size_t bytes))
{
    return cudaMemsetAsync(p, value, bytes, cudaStreamPerThread);
}

RT_API(cudaMemset2D, (void *p, size_t pitch, int value, size_t width, size_t height))
{
    RT_ENTER();
    if (!width || !height) return cudaSuccess;
    return mg_rt_done(cu.cuMemsetD2D8_v2(device_address(p), pitch, (unsigned char)value, width, height));
}

RT_API(cudaMemset2DAsync, (void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream))
{
    RT_ENTER();
    if (!width || !height) return cudaSuccess;
    return mg_rt_done(cu.cuMemsetD2D8Async(device_address(p), pitch, (unsigned char)value, width, height, stream));
}
RT_API_PTSZ(cudaMemset2DAsync, (void *p, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
            (p, pitch, value, width, height, RT_PT(stream)))
RT_API(cudaMemset2D_ptds, (void *p, size_t pitch, int value, size_t width, size_t height))
{
    return cudaMemset2DAsync(p, pitch, value, width, height, cudaStreamPerThread);
}

/* Slices of a pitched volume lie ysize rows apart; whole slices are one rectangle. */
static cudaError_t fill_volume(struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream,
                               bool async)
{
    bool whole = extent.height == p.ysize;
    size_t slices = whole ? 1 : extent.depth, rows = whole ? extent.height * extent.depth : extent.height;
    cudaError_t e = cudaSuccess;
    if (!extent.width || !extent.height || !extent.depth) return cudaSuccess;
    for (size_t z = 0; !e && z < slices; z++) {
        char *at = (char *)p.ptr + z * p.pitch * p.ysize;
        if (async)
            e = cudaMemset2DAsync(at, p.pitch, value, extent.width, rows, stream);
        else
            e = cudaMemset2D(at, p.pitch, value, extent.width, rows);
    }
    return e;
}

RT_API(cudaMemset3D, (struct cudaPitchedPtr p, int value, struct cudaExtent extent))
{
    return fill_volume(p, value, extent, NULL, false);
}
RT_API(cudaMemset3D_ptds, (struct cudaPitchedPtr p, int value, struct cudaExtent extent))
{
    return fill_volume(p, value, extent, cudaStreamPerThread, true);
}
RT_API(cudaMemset3DAsync, (struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream))
{
    return fill_volume(p, value, extent, stream, true);
}
RT_API_PTSZ(cudaMemset3DAsync, (struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream),
            (p, value, extent, RT_PT(stream)))
