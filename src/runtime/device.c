/* Device queries, properties, limits and peers. All of it is what the driver answers. */
#include "runtime/priv.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int mg_rt_device_attribute(int attribute, int ordinal)
{
    int value = 0;
    return cu.cuDeviceGetAttribute(&value, attribute, mg_rt_device_handle(ordinal)) ? 0 : value;
}

static cudaError_t check_device(int device)
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return e;
    return device < 0 || device >= mg_rt_device_count() ? cudaErrorInvalidDevice : cudaSuccess;
}

RT_API(cudaDeviceGetAttribute, (int *value, int attribute, int device))
{
    cudaError_t e = value ? check_device(device) : cudaErrorInvalidValue;
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuDeviceGetAttribute(value, attribute, mg_rt_device_handle(device)));
}

RT_API(cudaGetDeviceProperties, (struct cudaDeviceProp * p, int device))
{
    cudaError_t e = p ? check_device(device) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    memset(p, 0, sizeof *p);
    cu_device d = mg_rt_device_handle(device);
    cu_uuid uuid = {{0}};
    int value;
    cu_result r = cu.cuDeviceGetName(p->name, sizeof p->name, d);
    if (!r) r = cu.cuDeviceTotalMem_v2(&p->totalGlobalMem, d);
    if (r) return mg_rt_done(r);
    if (!cu.cuDeviceGetUuid_v2(&uuid, d)) memcpy(&p->uuid, &uuid, sizeof p->uuid);
#define PROPERTY(field, attribute)                                                                                     \
    if (!cu.cuDeviceGetAttribute(&value, CUDEV_##attribute, d)) p->field = (__typeof__(p->field))value;
#include "runtime/properties.def"
#undef PROPERTY
    return cudaSuccess;
}

/* Points for every wish that a device meets, as the reference describes it: the most wins. */
RT_API(cudaChooseDevice, (int *device, const struct cudaDeviceProp *wish))
{
    int best = -1;
    cudaError_t e = device && wish ? mg_rt_driver_ready() : cudaErrorInvalidValue;
    for (int i = 0; !e && i < mg_rt_device_count(); i++) {
        struct cudaDeviceProp p;
        e = cudaGetDeviceProperties(&p, i);
        int points = (p.major >= wish->major) + (p.multiProcessorCount >= wish->multiProcessorCount) +
                     (p.totalGlobalMem >= wish->totalGlobalMem) + (p.sharedMemPerBlock >= wish->sharedMemPerBlock);
        if (points > best) best = points, *device = i;
    }
    return mg_rt_fail(e);
}

RT_API(cudaDriverGetVersion, (int *version))
{
    if (!version) return mg_rt_fail(cudaErrorInvalidValue);
    if (mg_rt_driver_ready() == cudaErrorInsufficientDriver) { /* no driver at all: 0, no error */
        *version = 0;
        return cudaSuccess;
    }
    return mg_rt_done(cu.cuDriverGetVersion(version));
}

RT_API(cudaRuntimeGetVersion, (int *version))
{
    if (!version) return mg_rt_fail(cudaErrorInvalidValue);
    *version = MG_RT_VERSION;
    return cudaSuccess;
}

RT_API(cudaDeviceGetPCIBusId, (char *id, int bytes, int device))
{
    cudaError_t e = check_device(device);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuDeviceGetPCIBusId(id, bytes, mg_rt_device_handle(device)));
}

RT_API(cudaDeviceGetByPCIBusId, (int *device, const char *id))
{
    cudaError_t e = mg_rt_driver_ready();
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuDeviceGetByPCIBusId(device, id));
}

/* ---- settings of the current context ---- */

RT_API(cudaDeviceGetLimit, (size_t * value, int limit))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxGetLimit(value, limit));
}
RT_API(cudaDeviceSetLimit, (int limit, size_t value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxSetLimit(limit, value));
}
RT_API(cudaDeviceGetCacheConfig, (int *config))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxGetCacheConfig(config));
}
RT_API(cudaDeviceSetCacheConfig, (int config))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxSetCacheConfig(config));
}
RT_API(cudaDeviceGetSharedMemConfig, (int *config))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxGetSharedMemConfig(config));
}
RT_API(cudaDeviceSetSharedMemConfig, (int config))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxSetSharedMemConfig(config));
}
RT_API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxGetStreamPriorityRange(least, greatest));
}
RT_API(cudaCtxResetPersistingL2Cache, (void))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxResetPersistingL2Cache());
}
RT_API(cudaDeviceFlushGPUDirectRDMAWrites, (int target, int scope))
{
    RT_ENTER();
    return mg_rt_done(cu.cuFlushGPUDirectRDMAWrites(target, scope));
}
RT_API(cudaProfilerStart, (void))
{
    RT_ENTER();
    return mg_rt_done(cu.cuProfilerStart());
}
RT_API(cudaProfilerStop, (void))
{
    RT_ENTER();
    return mg_rt_done(cu.cuProfilerStop());
}

/* ---- peers ---- */

RT_API(cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
    cudaError_t e = check_device(device);
    if (!e) e = check_device(peer);
    if (e) return mg_rt_fail(e);
    return mg_rt_done(cu.cuDeviceCanAccessPeer(can, mg_rt_device_handle(device), mg_rt_device_handle(peer)));
}

RT_API(cudaDeviceGetP2PAttribute, (int *value, int attribute, int from, int to))
{
    cudaError_t e = check_device(from);
    if (!e) e = check_device(to);
    if (e) return mg_rt_fail(e);
    return mg_rt_done(cu.cuDeviceGetP2PAttribute(value, attribute, mg_rt_device_handle(from), mg_rt_device_handle(to)));
}

RT_API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags))
{
    RT_ENTER();
    cu_ctx ctx;
    cudaError_t e = peer == mg_rt_device() ? cudaErrorInvalidDevice : mg_rt_primary(peer, &ctx);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuCtxEnablePeerAccess(ctx, flags));
}

RT_API(cudaDeviceDisablePeerAccess, (int peer))
{
    RT_ENTER();
    cu_ctx ctx;
    cudaError_t e = mg_rt_primary(peer, &ctx);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuCtxDisablePeerAccess(ctx));
}

/* ---- entries of the driver ---- */

static cudaError_t driver_entry(const char *name, void **fn, unsigned version, unsigned long long flags, int *status)
{
    int found = CUPROC_NOT_FOUND;
    cudaError_t e = name && *name && fn ? mg_rt_driver_ready() : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    *fn = NULL;
    cu_result r = cu.cuGetProcAddress_v2(name, fn, (int)version, flags, &found);
    if (status) *status = found;
    if (r == CUE_NOT_FOUND) return status ? cudaSuccess : mg_rt_fail(cudaErrorSymbolNotFound);
    return mg_rt_done(r);
}

RT_API(cudaGetDriverEntryPointByVersion,
       (const char *name, void **fn, unsigned version, unsigned long long flags, int *status))
{
    return driver_entry(name, fn, version, flags, status);
}
RT_API(cudaGetDriverEntryPointByVersion_ptsz,
       (const char *name, void **fn, unsigned version, unsigned long long flags, int *status))
{
    return driver_entry(name, fn, version, flags ? flags : CUPROC_PER_THREAD_STREAM, status);
}
RT_API(cudaGetDriverEntryPoint, (const char *name, void **fn, unsigned long long flags, int *status))
{
    return driver_entry(name, fn, MG_RT_VERSION, flags, status);
}
RT_API(cudaGetDriverEntryPoint_ptsz, (const char *name, void **fn, unsigned long long flags, int *status))
{
    return driver_entry(name, fn, MG_RT_VERSION, flags ? flags : CUPROC_PER_THREAD_STREAM, status);
}
