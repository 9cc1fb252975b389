/* Allocations of every kind, what a pointer is, advice and prefetching, IPC. */
#include "runtime/priv.h"

#include <string.h>

static cu_ptr device_address(const void *p)
{
    return (cu_ptr)(uintptr_t)p;
}

RT_API(cudaMalloc, (void **p, size_t bytes))
{
    cu_ptr a = 0;
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    *p = NULL;
    if (!bytes) return cudaSuccess;
    cudaError_t e = mg_rt_done(cu.cuMemAlloc_v2(&a, bytes));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}

RT_API(cudaMallocManaged, (void **p, size_t bytes, unsigned flags))
{
    cu_ptr a = 0;
    RT_ENTER();
    if (!p || !bytes) return mg_rt_fail(cudaErrorInvalidValue);
    cudaError_t e = mg_rt_done(cu.cuMemAllocManaged(&a, bytes, flags));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}

RT_API(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height))
{
    cu_ptr a = 0;
    RT_ENTER();
    if (!p || !pitch) return mg_rt_fail(cudaErrorInvalidValue);
    *p = NULL;
    *pitch = 0;
    if (!width || !height) return cudaSuccess;
    cudaError_t e = mg_rt_done(cu.cuMemAllocPitch_v2(&a, pitch, width, height, 4));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}

RT_API(cudaMalloc3D, (struct cudaPitchedPtr * p, struct cudaExtent extent))
{
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    *p = (struct cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    return cudaMallocPitch(&p->ptr, &p->pitch, extent.width, extent.height * extent.depth);
}

RT_API(cudaFree, (void *p))
{
    RT_ENTER();
    return p ? mg_rt_done(cu.cuMemFree_v2(device_address(p))) : cudaSuccess;
}

RT_API(cudaHostAlloc, (void **p, size_t bytes, unsigned flags))
{
    RT_ENTER();
    if (!p) return mg_rt_fail(cudaErrorInvalidValue);
    *p = NULL;
    if (!bytes) return cudaSuccess;
    return mg_rt_done(cu.cuMemHostAlloc(p, bytes, flags)); /* the runtime's flags are the driver's */
}

RT_API(cudaMallocHost, (void **p, size_t bytes))
{
    return cudaHostAlloc(p, bytes, 0);
}

RT_API(cudaFreeHost, (void *p))
{
    RT_ENTER();
    return p ? mg_rt_done(cu.cuMemFreeHost(p)) : cudaSuccess;
}

RT_API(cudaHostRegister, (void *p, size_t bytes, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemHostRegister_v2(p, bytes, flags));
}

RT_API(cudaHostUnregister, (void *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemHostUnregister(p));
}

RT_API(cudaHostGetDevicePointer, (void **device, void *p, unsigned flags))
{
    cu_ptr a = 0;
    RT_ENTER();
    if (!device) return mg_rt_fail(cudaErrorInvalidValue);
    cudaError_t e = mg_rt_done(cu.cuMemHostGetDevicePointer_v2(&a, p, flags));
    if (!e) *device = (void *)(uintptr_t)a;
    return e;
}

RT_API(cudaHostGetFlags, (unsigned *flags, void *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemHostGetFlags(flags, p));
}

RT_API(cudaMemGetInfo, (size_t * free_bytes, size_t *total))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemGetInfo_v2(free_bytes, total));
}

/* An address the driver does not know is ordinary host memory: no error since CUDA 11. */
RT_API(cudaPointerGetAttributes, (struct cudaPointerAttributes * attr, const void *p))
{
    int type = 0, managed = 0, device = 0;
    cu_ptr a = device_address(p), on_device = 0;
    void *on_host = NULL;
    RT_ENTER();
    if (!attr) return mg_rt_fail(cudaErrorInvalidValue);
    *attr = (struct cudaPointerAttributes){
        .type = cudaMemoryTypeUnregistered, .device = -2, .hostPointer = (void *)(uintptr_t)a};
    if (cu.cuPointerGetAttribute(&type, CUPTR_MEMORY_TYPE, a)) return cudaSuccess;
    cu.cuPointerGetAttribute(&managed, CUPTR_IS_MANAGED, a);
    cu.cuPointerGetAttribute(&device, CUPTR_DEVICE_ORDINAL, a);
    if (cu.cuPointerGetAttribute(&on_device, CUPTR_DEVICE_POINTER, a)) on_device = 0;
    if (cu.cuPointerGetAttribute(&on_host, CUPTR_HOST_POINTER, a)) on_host = NULL;
    attr->type = managed ? cudaMemoryTypeManaged : type == CUMEM_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attr->device = device;
    attr->devicePointer = (void *)(uintptr_t)on_device;
    attr->hostPointer = attr->type == cudaMemoryTypeDevice ? NULL : on_host;
    return cudaSuccess;
}

/* ---- advice ---- */

static struct cu_location driver_location(struct cudaMemLocation l)
{
    return (struct cu_location){l.type, l.id};
}

RT_API(cudaMemAdvise, (const void *p, size_t bytes, int advice, struct cudaMemLocation location))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemAdvise_v2(device_address(p), bytes, advice, driver_location(location)));
}

RT_API(cudaMemPrefetchAsync,
       (const void *p, size_t bytes, struct cudaMemLocation location, unsigned flags, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPrefetchAsync_v2(device_address(p), bytes, driver_location(location), flags, stream));
}
RT_API_PTSZ(cudaMemPrefetchAsync,
            (const void *p, size_t bytes, struct cudaMemLocation location, unsigned flags, cudaStream_t stream),
            (p, bytes, location, flags, RT_PT(stream)))

_Static_assert(sizeof(void *) == sizeof(cu_ptr) && sizeof(struct cudaMemLocation) == sizeof(struct cu_location),
               "arrays of both are passed on as they are");

RT_API(cudaMemPrefetchBatchAsync, (void **p, size_t *bytes, size_t count, struct cudaMemLocation *locations,
                                   size_t *index, size_t n, unsigned long long flags, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemPrefetchBatchAsync((cu_ptr *)(void *)p, bytes, count,
                                                 (struct cu_location *)(void *)locations, index, n, flags, stream));
}
RT_API_PTSZ(cudaMemPrefetchBatchAsync,
            (void **p, size_t *bytes, size_t count, struct cudaMemLocation *locations, size_t *index, size_t n,
             unsigned long long flags, cudaStream_t stream),
            (p, bytes, count, locations, index, n, flags, RT_PT(stream)))

RT_API(cudaMemDiscardBatchAsync, (void **p, size_t *bytes, size_t count, unsigned long long flags, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemDiscardBatchAsync((cu_ptr *)(void *)p, bytes, count, flags, stream));
}
RT_API_PTSZ(cudaMemDiscardBatchAsync,
            (void **p, size_t *bytes, size_t count, unsigned long long flags, cudaStream_t stream),
            (p, bytes, count, flags, RT_PT(stream)))

RT_API(cudaMemDiscardAndPrefetchBatchAsync, (void **p, size_t *bytes, size_t count, struct cudaMemLocation *locations,
                                             size_t *index, size_t n, unsigned long long flags, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemDiscardAndPrefetchBatchAsync(
        (cu_ptr *)(void *)p, bytes, count, (struct cu_location *)(void *)locations, index, n, flags, stream));
}
RT_API_PTSZ(cudaMemDiscardAndPrefetchBatchAsync,
            (void **p, size_t *bytes, size_t count, struct cudaMemLocation *locations, size_t *index, size_t n,
             unsigned long long flags, cudaStream_t stream),
            (p, bytes, count, locations, index, n, flags, RT_PT(stream)))

RT_API(cudaMemRangeGetAttribute, (void *data, size_t data_bytes, int attribute, const void *p, size_t bytes))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemRangeGetAttribute(data, data_bytes, attribute, device_address(p), bytes));
}

RT_API(cudaMemRangeGetAttributes,
       (void **data, size_t *data_bytes, int *attributes, size_t n, const void *p, size_t bytes))
{
    RT_ENTER();
    return mg_rt_done(cu.cuMemRangeGetAttributes(data, data_bytes, attributes, n, device_address(p), bytes));
}

/* ---- other processes: the driver refuses or not ---- */

RT_API(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuIpcGetMemHandle(handle, device_address(p)));
}

RT_API(cudaIpcOpenMemHandle, (void **p, cudaIpcMemHandle_t handle, unsigned flags))
{
    cu_ptr a = 0;
    RT_ENTER();
    cudaError_t e = mg_rt_done(cu.cuIpcOpenMemHandle_v2(&a, handle, flags));
    if (!e) *p = (void *)(uintptr_t)a;
    return e;
}

RT_API(cudaIpcCloseMemHandle, (void *p))
{
    RT_ENTER();
    return mg_rt_done(cu.cuIpcCloseMemHandle(device_address(p)));
}

RT_API(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event))
{
    RT_ENTER();
    return mg_rt_done(cu.cuIpcGetEventHandle(handle, event));
}

RT_API(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle))
{
    RT_ENTER();
    return mg_rt_done(cu.cuIpcOpenEventHandle(event, handle));
}
