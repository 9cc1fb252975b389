/* Kernel launches, kernel attributes and occupancy. nvcc's <<<...>>> pushes a configuration, calls
 * the kernel's host stub, and the stub pops it and launches. */
#include "runtime/priv.h"

#include <string.h>

/* ---- the configuration stack ---- */

RT_VISIBLE unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);
RT_VISIBLE unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
    struct mg_rt_thread *t = &mg_rt_thread;
    if (t->depth == sizeof t->calls / sizeof *t->calls) return 1; /* the stub is not called then */
    t->calls[t->depth++] = (struct mg_rt_call){grid, block, shared_bytes, stream};
    return 0;
}

RT_API(__cudaPopCallConfiguration, (dim3 * grid, dim3 *block, size_t *shared_bytes, void *stream))
{
    struct mg_rt_thread *t = &mg_rt_thread;
    if (!t->depth) return mg_rt_fail(cudaErrorMissingConfiguration);
    struct mg_rt_call *call = &t->calls[--t->depth];
    *grid = call->grid;
    *block = call->block;
    *shared_bytes = call->shared_bytes;
    *(cudaStream_t *)stream = call->stream;
    return cudaSuccess;
}

/* ---- launches ---- */

static bool shape_fits(dim3 grid, dim3 block)
{
    int device = mg_rt_device();
    const unsigned *b = &block.x, *g = &grid.x;
    for (int i = 0; i < 3; i++) { /* X, Y, Z lie together in both groups of attributes */
        if (b[i] > (unsigned)mg_rt_device_attribute(CUDEV_MAX_BLOCK_DIM_X + i, device)) return false;
        if (g[i] > (unsigned)mg_rt_device_attribute(CUDEV_MAX_GRID_DIM_X + i, device)) return false;
    }
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    return threads <= (unsigned)mg_rt_device_attribute(CUDEV_MAX_THREADS_PER_BLOCK, device);
}

/* The driver calls any bad argument invalid; the runtime's own name for a bad shape is its own. */
static cudaError_t launched(cu_result r, dim3 grid, dim3 block)
{
    if (r == CUE_INVALID_VALUE && !shape_fits(grid, block)) return mg_rt_fail(cudaErrorInvalidConfiguration);
    return mg_rt_done(r);
}

static cudaError_t prepare(const void *func, dim3 grid, dim3 block, cu_function *f)
{
    cudaError_t e = mg_rt_enter();
    if (!e) e = mg_rt_kernel(func, f);
    if (e) return e;
    bool empty = !grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z;
    return empty ? cudaErrorInvalidConfiguration : cudaSuccess;
}

RT_API(cudaLaunchKernel,
       (const void *func, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream))
{
    cu_function f = NULL;
    cudaError_t e = prepare(func, grid, block, &f);
    if (e) return mg_rt_fail(e);
    cu_result r = cu.cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_bytes,
                                    stream, args, NULL);
    return launched(r, grid, block);
}
RT_API_PTSZ(cudaLaunchKernel,
            (const void *func, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream),
            (func, grid, block, args, shared_bytes, RT_PT(stream)))

RT_API(__cudaLaunchKernel,
       (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream))
{
    return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}
RT_API_PTSZ(__cudaLaunchKernel,
            (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream),
            (kernel, grid, block, args, shared_bytes, RT_PT(stream)))

RT_API(cudaLaunchCooperativeKernel,
       (const void *func, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream))
{
    cu_function f = NULL;
    cudaError_t e = prepare(func, grid, block, &f);
    if (e) return mg_rt_fail(e);
    cu_result r = cu.cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                               (unsigned)shared_bytes, stream, args);
    return launched(r, grid, block);
}
RT_API_PTSZ(cudaLaunchCooperativeKernel,
            (const void *func, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream),
            (func, grid, block, args, shared_bytes, RT_PT(stream)))

static struct cu_launch_config driver_config(const cudaLaunchConfig_t *c)
{
    _Static_assert(sizeof(cudaLaunchAttribute) == sizeof(struct cu_launch_attribute), "passed on as they are");
    return (struct cu_launch_config){
        .grid_x = c->gridDim.x,
        .grid_y = c->gridDim.y,
        .grid_z = c->gridDim.z,
        .block_x = c->blockDim.x,
        .block_y = c->blockDim.y,
        .block_z = c->blockDim.z,
        .shared_bytes = (unsigned)c->dynamicSmemBytes,
        .stream = c->stream,
        .attrs = (struct cu_launch_attribute *)(void *)c->attrs,
        .n_attrs = c->numAttrs,
    };
}

RT_API(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args))
{
    cu_function f = NULL;
    if (!config) return mg_rt_fail(cudaErrorInvalidValue);
    cudaError_t e = prepare(func, config->gridDim, config->blockDim, &f);
    if (e) return mg_rt_fail(e);
    struct cu_launch_config c = driver_config(config);
    return launched(cu.cuLaunchKernelEx(&c, f, args, NULL), config->gridDim, config->blockDim);
}
RT_API(cudaLaunchKernelExC_ptsz, (const cudaLaunchConfig_t *config, const void *func, void **args))
{
    if (!config) return mg_rt_fail(cudaErrorInvalidValue);
    cudaLaunchConfig_t c = *config;
    c.stream = RT_PT(c.stream);
    return cudaLaunchKernelExC(&c, func, args);
}

RT_API(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *user))
{
    RT_ENTER();
    return mg_rt_done(cu.cuLaunchHostFunc(stream, fn, user));
}
RT_API_PTSZ(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *user), (RT_PT(stream), fn, user))

/* ---- attributes ---- */

RT_API(cudaFuncGetAttributes, (struct cudaFuncAttributes * attr, const void *func))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = attr ? mg_rt_kernel(func, &f) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    int value[CUFUNC_COUNT] = {0};
    for (int i = 0; i < CUFUNC_COUNT; i++) {
        cu_result r = cu.cuFuncGetAttribute(&value[i], i, f);
        if (r && i <= CUFUNC_BINARY_VERSION) return mg_rt_done(r);
    }
    *attr = (struct cudaFuncAttributes){
        .sharedSizeBytes = (size_t)value[CUFUNC_SHARED_SIZE_BYTES],
        .constSizeBytes = (size_t)value[CUFUNC_CONST_SIZE_BYTES],
        .localSizeBytes = (size_t)value[CUFUNC_LOCAL_SIZE_BYTES],
        .maxThreadsPerBlock = value[CUFUNC_MAX_THREADS_PER_BLOCK],
        .numRegs = value[CUFUNC_NUM_REGS],
        .ptxVersion = value[CUFUNC_PTX_VERSION],
        .binaryVersion = value[CUFUNC_BINARY_VERSION],
        .cacheModeCA = value[CUFUNC_CACHE_MODE_CA],
        .maxDynamicSharedSizeBytes = value[CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES],
        .preferredShmemCarveout = value[CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT],
        .clusterDimMustBeSet = value[CUFUNC_CLUSTER_SIZE_MUST_BE_SET],
        .requiredClusterWidth = value[CUFUNC_REQUIRED_CLUSTER_WIDTH],
        .requiredClusterHeight = value[CUFUNC_REQUIRED_CLUSTER_HEIGHT],
        .requiredClusterDepth = value[CUFUNC_REQUIRED_CLUSTER_DEPTH],
        .clusterSchedulingPolicyPreference = value[CUFUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE],
        .nonPortableClusterSizeAllowed = value[CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED],
    };
    return cudaSuccess;
}

RT_API(cudaFuncSetAttribute, (const void *func, int attribute, int value))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = mg_rt_kernel(func, &f);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuFuncSetAttribute(f, attribute, value));
}

RT_API(cudaKernelSetAttributeForDevice, (cudaKernel_t kernel, int attribute, int value, int device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuKernelSetAttribute(attribute, value, kernel, mg_rt_device_handle(device)));
}

RT_API(cudaFuncSetCacheConfig, (const void *func, int config))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = mg_rt_kernel(func, &f);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuFuncSetCacheConfig(f, config));
}

RT_API(cudaFuncSetSharedMemConfig, (const void *func, int config))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = mg_rt_kernel(func, &f);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuFuncSetSharedMemConfig(f, config));
}

RT_API(cudaFuncGetParamInfo, (const void *func, size_t index, size_t *offset, size_t *bytes))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = mg_rt_kernel(func, &f);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuFuncGetParamInfo(f, index, offset, bytes));
}

/* ---- occupancy ---- */

RT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, const void *func, int block, size_t shared_bytes, unsigned flags))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = mg_rt_kernel(func, &f);
    if (e) return mg_rt_fail(e);
    return mg_rt_done(cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, block, shared_bytes, flags));
}

RT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *func, int block, size_t shared_bytes))
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, block, shared_bytes, 0);
}

RT_API(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, const void *func, int blocks, int block))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = mg_rt_kernel(func, &f);
    return e ? mg_rt_fail(e) : mg_rt_done(cu.cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, block));
}

RT_API(cudaOccupancyMaxActiveClusters, (int *clusters, const void *func, const cudaLaunchConfig_t *config))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = config ? mg_rt_kernel(func, &f) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    struct cu_launch_config c = driver_config(config);
    return mg_rt_done(cu.cuOccupancyMaxActiveClusters(clusters, f, &c));
}

RT_API(cudaOccupancyMaxPotentialClusterSize, (int *size, const void *func, const cudaLaunchConfig_t *config))
{
    RT_ENTER();
    cu_function f = NULL;
    cudaError_t e = config ? mg_rt_kernel(func, &f) : cudaErrorInvalidValue;
    if (e) return mg_rt_fail(e);
    struct cu_launch_config c = driver_config(config);
    return mg_rt_done(cu.cuOccupancyMaxPotentialClusterSize(size, f, &c));
}
