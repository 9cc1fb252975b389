/* Stream-ordered allocation and memory pools: the driver's, with the same structures. */
#include "runtime/priv.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(struct cu_pool_props) &&
                   sizeof(struct cudaMemAccessDesc) == sizeof(struct cu_access),
               "passed on as they are");

RT_API(cudaMallocAsync, (void **p, size_t bytes, cudaStream_t stream))
{
    cu_ptr a = 0;
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    *p = NULL;
    if (!bytes) return cudaSuccess;
    cudaError_t e = mg_rt_done(cu.cuMemAllocAsync(&a, bytes, stream));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}
RT_API_PTSZ(cudaMallocAsync, (void **p, size_t bytes, cudaStream_t stream), (p, bytes, RT_PT(stream)))

RT_API(cudaMallocFromPoolAsync, (void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))
{
    cu_ptr a = 0;
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    *p = NULL;
    if (!bytes) return cudaSuccess;
    cudaError_t e = mg_rt_done(cu.cuMemAllocFromPoolAsync(&a, bytes, pool, stream));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}
RT_API_PTSZ(cudaMallocFromPoolAsync, (void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
            (p, bytes, pool, RT_PT(stream)))

RT_API(cudaFreeAsync, (void *p, cudaStream_t stream))
{
    RT_ENTER();
    return p ? mg_rt_done(cu.cuMemFreeAsync((cu_ptr)(uintptr_t)p, stream)) : cudaSuccess;
}
RT_API_PTSZ(cudaFreeAsync, (void *p, cudaStream_t stream), (p, RT_PT(stream)))

RT_API(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *props))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolCreate(pool, (const struct cu_pool_props *)(const void *)props));
}
RT_API(cudaMemPoolDestroy, (cudaMemPool_t pool))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolDestroy(pool));
}
RT_API(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolTrimTo(pool, keep));
}
RT_API(cudaMemPoolSetAttribute, (cudaMemPool_t pool, int attribute, void *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolSetAttribute(pool, attribute, value));
}
RT_API(cudaMemPoolGetAttribute, (cudaMemPool_t pool, int attribute, void *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolGetAttribute(pool, attribute, value));
}
RT_API(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolSetAccess(pool, (const struct cu_access *)(const void *)access, n));
}
RT_API(cudaMemPoolGetAccess, (int *flags, cudaMemPool_t pool, struct cudaMemLocation *location))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolGetAccess(flags, pool, (struct cu_location *)(void *)location));
}
RT_API(cudaMemPoolExportToShareableHandle, (void *handle, cudaMemPool_t pool, int type, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolExportToShareableHandle(handle, pool, type, flags));
}
RT_API(cudaMemPoolImportFromShareableHandle, (cudaMemPool_t * pool, void *handle, int type, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolImportFromShareableHandle(pool, handle, type, flags));
}
RT_API(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData * data, void *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPoolExportPointer(data, (cu_ptr)(uintptr_t)p));
}
RT_API(cudaMemPoolImportPointer, (void **p, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data))
{
    cu_ptr a = 0;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuMemPoolImportPointer(&a, pool, data));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}

/* ---- the pools of a device or a place ---- */

RT_API(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuDeviceGetDefaultMemPool(pool, mg_rt_device_handle(device)));
}
RT_API(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuDeviceGetMemPool(pool, mg_rt_device_handle(device)));
}
RT_API(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool))
{
    RT_ENTER();
    return mg_rt_done(cu.cuDeviceSetMemPool(mg_rt_device_handle(device), pool));
}
RT_API(cudaMemGetDefaultMemPool, (cudaMemPool_t * pool, struct cudaMemLocation *location, int type))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemGetDefaultMemPool(pool, (struct cu_location *)(void *)location, type));
}
RT_API(cudaMemGetMemPool, (cudaMemPool_t * pool, struct cudaMemLocation *location, int type))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemGetMemPool(pool, (struct cu_location *)(void *)location, type));
}
RT_API(cudaMemSetMemPool, (struct cudaMemLocation * location, int type, cudaMemPool_t pool))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemSetMemPool((struct cu_location *)(void *)location, type, pool));
}
RT_API(cudaDeviceGraphMemTrim, (int device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuDeviceGraphMemTrim(mg_rt_device_handle(device)));
}
RT_API(cudaDeviceGetGraphMemAttribute, (int device, int attribute, void *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuDeviceGetGraphMemAttribute(mg_rt_device_handle(device), attribute, value));
}
RT_API(cudaDeviceSetGraphMemAttribute, (int device, int attribute, void *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuDeviceSetGraphMemAttribute(mg_rt_device_handle(device), attribute, value));
}
