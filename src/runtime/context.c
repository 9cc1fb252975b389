/* Getting at the driver and at a context. The driver is found at the first call that needs it; a
 * thread that has no current context gets the primary context of its device, retained once per
 * process. A context that the program itself made current through the driver API is used as it is. */
#include "runtime/priv.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct mg_rt_driver mg_rt_cu;

#define MAX_DEVICES 64

static struct {
    pthread_once_t once;
    cudaError_t error;
    int device_count;
    pthread_mutex_t lock; /* primary */
    cu_ctx primary[MAX_DEVICES];
} state = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Stands for an entry that this driver does not export. */
static cu_result answer_not_supported(void)
{
    return CUE_NOT_SUPPORTED;
}

static void find_driver(void)
{
    static const struct {
        const char *name;
        void **slot;
    } entries[] = {
#define CU(name, params) {#name, (void **)(void *)&mg_rt_cu.name},
#include "runtime/driver.def"
#undef CU
    };
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *entry = lib ? dlsym(lib, entries[i].name) : NULL;
        if (!entry) entry = (void *)(uintptr_t)answer_not_supported;
        *entries[i].slot = entry;
    }
    if (!lib) {
        state.error = cudaErrorInsufficientDriver;
        return;
    }
    int version = 0;
    cu_result r = cu.cuInit(0);
    if (!r) r = cu.cuDriverGetVersion(&version);
    if (!r) r = cu.cuDeviceGetCount(&state.device_count);
    if (state.device_count > MAX_DEVICES) state.device_count = MAX_DEVICES;
    if (r == CUE_NOT_SUPPORTED)
        state.error = cudaErrorInsufficientDriver;
    else if (r)
        state.error = mg_rt_from_driver(r);
    else if (version / 1000 < MG_RT_VERSION / 1000)
        state.error = cudaErrorInsufficientDriver;
    else if (!state.device_count)
        state.error = cudaErrorNoDevice;
}

cudaError_t mg_rt_driver_ready(void)
{
    pthread_once(&state.once, find_driver);
    return state.error;
}

int mg_rt_device_count(void)
{
    return mg_rt_driver_ready() ? 0 : state.device_count;
}

cu_device mg_rt_device_handle(int ordinal)
{
    cu_device device = ordinal;
    if (cu.cuDeviceGet(&device, ordinal)) return ordinal;
    return device;
}

int mg_rt_device(void)
{
    cu_device device;
    if (!mg_rt_driver_ready() && !cu.cuCtxGetDevice(&device)) return device;
    return mg_rt_thread.device;
}

static cu_result make_primary_current(int device)
{
    pthread_mutex_lock(&state.lock);
    cu_result r = CUE_SUCCESS;
    if (!state.primary[device]) r = cu.cuDevicePrimaryCtxRetain(&state.primary[device], mg_rt_device_handle(device));
    cu_ctx ctx = state.primary[device];
    pthread_mutex_unlock(&state.lock);
    return r ? r : cu.cuCtxSetCurrent(ctx);
}

cudaError_t mg_rt_enter(void)
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return e;
    cu_ctx current = NULL;
    cu_result r = cu.cuCtxGetCurrent(&current);
    if (!r && !current) r = make_primary_current(mg_rt_thread.device);
    if (r) return mg_rt_from_driver(r);
    return mg_rt_managed_ready();
}

cudaError_t mg_rt_primary(int device, cu_ctx *ctx)
{
    if (device < 0 || device >= state.device_count) return cudaErrorInvalidDevice;
    pthread_mutex_lock(&state.lock);
    cu_result r = CUE_SUCCESS;
    if (!state.primary[device]) r = cu.cuDevicePrimaryCtxRetain(&state.primary[device], mg_rt_device_handle(device));
    *ctx = state.primary[device];
    pthread_mutex_unlock(&state.lock);
    return mg_rt_from_driver(r);
}

RT_API(cudaSetDevice, (int device))
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return mg_rt_fail(e);
    if (device < 0 || device >= state.device_count) return mg_rt_fail(cudaErrorInvalidDevice);
    mg_rt_thread.device = device;
    return mg_rt_done(make_primary_current(device));
}

RT_API(cudaInitDevice, (int device, unsigned device_flags, unsigned flags))
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return mg_rt_fail(e);
    if (flags > 1 || device < 0 || device >= state.device_count)
        return mg_rt_fail(flags > 1 ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
    if (flags & 1) {
        cu_result r = cu.cuDevicePrimaryCtxSetFlags_v2(mg_rt_device_handle(device), device_flags);
        if (r) return mg_rt_done(r);
    }
    cu_ctx ctx;
    return mg_rt_fail(mg_rt_primary(device, &ctx));
}

RT_API(cudaGetDevice, (int *device))
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return mg_rt_fail(e);
    if (!device) return mg_rt_fail(cudaErrorInvalidValue);
    *device = mg_rt_device();
    return cudaSuccess;
}

RT_API(cudaGetDeviceCount, (int *count))
{
    if (!count) return mg_rt_fail(cudaErrorInvalidValue);
    cudaError_t e = mg_rt_driver_ready();
    *count = e ? 0 : state.device_count;
    return mg_rt_fail(e);
}

RT_API(cudaSetValidDevices, (int *devices, int count))
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return mg_rt_fail(e);
    for (int i = 0; i < count; i++) {
        if (devices[i] < 0 || devices[i] >= state.device_count) return mg_rt_fail(cudaErrorInvalidDevice);
    }
    mg_rt_thread.device = count > 0 ? devices[0] : 0;
    return cudaSuccess;
}

RT_API(cudaSetDeviceFlags, (unsigned flags))
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return mg_rt_fail(e);
    return mg_rt_done(cu.cuDevicePrimaryCtxSetFlags_v2(mg_rt_device_handle(mg_rt_device()), flags));
}

RT_API(cudaGetDeviceFlags, (unsigned *flags))
{
    RT_ENTER();
    int active = 0;
    if (!flags) return mg_rt_fail(cudaErrorInvalidValue);
    return mg_rt_done(cu.cuDevicePrimaryCtxGetState(mg_rt_device_handle(mg_rt_device()), flags, &active));
}

RT_API(cudaDeviceReset, (void))
{
    cudaError_t e = mg_rt_driver_ready();
    if (e) return mg_rt_fail(e);
    int device = mg_rt_device();
    pthread_mutex_lock(&state.lock);
    cu_result r = CUE_SUCCESS;
    if (state.primary[device]) {
        r = cu.cuDevicePrimaryCtxReset_v2(mg_rt_device_handle(device));
        /* The reset leaves our retain in place: give it back, the next call retains anew. */
        cu.cuDevicePrimaryCtxRelease_v2(mg_rt_device_handle(device));
        state.primary[device] = NULL;
    }
    pthread_mutex_unlock(&state.lock);
    cu.cuCtxSetCurrent(NULL);
    mg_rt_thread.last_error = cudaSuccess;
    return mg_rt_done(r);
}

RT_API(cudaDeviceSynchronize, (void))
{
    RT_ENTER();
    return mg_rt_done(cu.cuCtxSynchronize());
}
