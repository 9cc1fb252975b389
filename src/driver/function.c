/* Functions and kernels: attributes, parameters, and occupancy by the published rules of sm_90. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- numbers of a function -------------------------------------------------------------------------- */

uint32_t mg_func_registers(const struct CUfunc_st *f)
{
    uint32_t n = f->recorded_registers ? f->recorded_registers : f->info.registers;
    if (!f->recorded_registers) {
        /* The estimate keeps within what ptxas would have been told to keep within. */
        uint32_t most = 255, threads = f->info.max_threads;
        const struct mg_func *fn = f->info.func;
        if (f->module->facts && f->module->facts->max_registers)
            most = MG_MIN(most, (uint32_t)f->module->facts->max_registers);
        if (fn && fn->maxnreg) most = MG_MIN(most, fn->maxnreg);
        if (fn && threads && (fn->maxntid[0] || fn->reqntid[0])) {
            uint32_t ctas = fn->minnctapersm ? fn->minnctapersm : 1, warps = (threads + 31) / 32 * ctas;
            most = MG_MIN(most, MG_MAX(65536u / (warps * 32) & ~7u, 16u));
        } else {
            most = MG_MIN(most, 64u); /* without bounds a block of 1024 must always be launchable */
        }
        n = MG_MIN(MG_MAX(n, 8u), most);
    }
    return n;
}

int mg_func_max_threads(const struct CUfunc_st *f)
{
    uint32_t n = f->info.max_threads ? f->info.max_threads : 1024, regs = mg_func_registers(f);
    if (f->info.func && (f->info.func->maxntid[0] || f->info.func->reqntid[0])) return (int)n;
    uint32_t warp_regs = (regs * 32 + 255) & ~255u, warps = 65536u / (warp_regs ? warp_regs : 256) / 4 * 4;
    return (int)MG_MIN(n, MG_MAX(warps, 4u) * 32);
}

static const int *setting(const struct CUfunc_st *f, const struct CUkern_st *k, int attr)
{
    return k ? &k->attrs[attr] : &f->attrs[attr];
}

static cu_result get(int *value, int attr, const struct CUfunc_st *f, const struct CUkern_st *k)
{
    const struct mg_module *ir = f->module->ir;
    const struct mg_func *fn = f->info.func;
    switch (attr) {
    case CUFUNC_MAX_THREADS_PER_BLOCK:
        *value = mg_func_max_threads(f);
        break;
    case CUFUNC_SHARED_SIZE_BYTES:
        *value = (int)f->info.static_shared_bytes;
        break;
    case CUFUNC_CONST_SIZE_BYTES:
        *value = (int)f->info.const_bytes;
        break;
    case CUFUNC_LOCAL_SIZE_BYTES:
        *value = (int)f->info.local_bytes;
        break;
    case CUFUNC_NUM_REGS:
        *value = (int)mg_func_registers(f);
        break;
    case CUFUNC_PTX_VERSION:
        *value = ir->sm;
        break;
    case CUFUNC_BINARY_VERSION:
        *value = mg_drv.attrs[CUDEV_COMPUTE_CAPABILITY_MAJOR] * 10 + mg_drv.attrs[CUDEV_COMPUTE_CAPABILITY_MINOR];
        break;
    case CUFUNC_CACHE_MODE_CA:
        *value = 0;
        break;
    case CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
        int set = *setting(f, k, attr),
            plain = mg_drv.attrs[CUDEV_MAX_SHARED_MEMORY_PER_BLOCK] - (int)f->info.static_shared_bytes;
        *value = set ? set : MG_MAX(plain, 0);
        break;
    }
    case CUFUNC_CLUSTER_SIZE_MUST_BE_SET:
        *value = 0;
        break;
    case CUFUNC_REQUIRED_CLUSTER_WIDTH:
        *value = fn && fn->cluster[0] ? (int)fn->cluster[0] : *setting(f, k, attr);
        break;
    case CUFUNC_REQUIRED_CLUSTER_HEIGHT:
        *value = fn && fn->cluster[0] ? (int)fn->cluster[1] : *setting(f, k, attr);
        break;
    case CUFUNC_REQUIRED_CLUSTER_DEPTH:
        *value = fn && fn->cluster[0] ? (int)fn->cluster[2] : *setting(f, k, attr);
        break;
    case CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CUFUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = *setting(f, k, attr);
        break;
    default:
        return CUE_INVALID_VALUE;
    }
    return CUE_SUCCESS;
}

int mg_func_max_dynamic(const struct CUfunc_st *f)
{
    int value = 0;
    get(&value, CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, f, f->kernel);
    return value;
}

static cu_result set(int attr, int value, struct CUfunc_st *f, struct CUkern_st *k)
{
    switch (attr) {
    case CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        CHECK(value >= 0 &&
              value + (int)f->info.static_shared_bytes <= mg_drv.attrs[CUDEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]);
        break;
    case CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        CHECK(value >= -1 && value <= 100);
        break;
    case CUFUNC_REQUIRED_CLUSTER_WIDTH:
    case CUFUNC_REQUIRED_CLUSTER_HEIGHT:
    case CUFUNC_REQUIRED_CLUSTER_DEPTH:
        if (f->info.func && f->info.func->cluster[0]) return CUE_NOT_PERMITTED;
        CHECK(value >= 0);
        break;
    case CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        CHECK(value == 0 || value == 1);
        break;
    case CUFUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        CHECK(value >= 0 && value <= 2);
        break;
    default:
        return CUE_INVALID_VALUE;
    }
    /* A kernel and its function of this context are two names of one thing. */
    if (!k) k = f->kernel;
    if (k) k->attrs[attr] = value;
    f->attrs[attr] = value;
    return CUE_SUCCESS;
}

static cu_result cuFuncGetAttribute(int *value, int attr, cu_function h)
{
    struct CUfunc_st *f;
    struct CUkern_st *k;
    cu_result r = mg_func_get(h, &f, &k);
    if (r) return r;
    CHECK(value);
    return get(value, attr, f, k ? k : f->kernel);
}

static cu_result cuFuncSetAttribute(cu_function h, int attr, int value)
{
    struct CUfunc_st *f;
    struct CUkern_st *k;
    cu_result r = mg_func_get(h, &f, &k);
    return r ? r : set(attr, value, f, k);
}

static cu_result cuKernelGetAttribute(int *value, int attr, cu_kernel h, cu_device dev)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    return cuFuncGetAttribute(value, attr, (cu_function)(void *)h);
}

static cu_result cuKernelSetAttribute(int attr, int value, cu_kernel h, cu_device dev)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    return cuFuncSetAttribute((cu_function)(void *)h, attr, value);
}

static cu_result cuFuncSetCacheConfig(cu_function h, int config)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(config >= 0 && config <= CUCACHE_EQUAL);
    f->cache_config = config;
    return CUE_SUCCESS;
}
static cu_result cuKernelSetCacheConfig(cu_kernel h, int config, cu_device dev)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    return cuFuncSetCacheConfig((cu_function)(void *)h, config);
}
static cu_result cuFuncSetSharedMemConfig(cu_function h, int config)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(config >= 0 && config <= 2);
    return CUE_SUCCESS; /* the bank size is fixed since sm_50 */
}

static cu_result cuFuncGetModule(cu_module *out, cu_function h)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(out);
    *out = f->module;
    return CUE_SUCCESS;
}

static cu_result cuFuncGetName(const char **out, cu_function h)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(out);
    *out = f->name;
    return CUE_SUCCESS;
}

static cu_result cuFuncGetParamInfo(cu_function h, size_t ix, size_t *offset, size_t *bytes)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(offset && ix < f->info.n_params);
    *offset = f->info.param_offsets[ix];
    if (bytes) *bytes = f->info.param_sizes[ix];
    return CUE_SUCCESS;
}
static cu_result cuKernelGetParamInfo(cu_kernel h, size_t ix, size_t *offset, size_t *bytes)
{
    return cuFuncGetParamInfo((cu_function)(void *)h, ix, offset, bytes);
}

static cu_result cuFuncIsLoaded(int *state, cu_function h)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(state);
    *state = 1;
    return CUE_SUCCESS;
}
static cu_result cuFuncLoad(cu_function h)
{
    struct CUfunc_st *f;
    return mg_func_get(h, &f, NULL);
}

/* ---- occupancy ----------------------------------------------------------------------------------------- */

/* Blocks of an SM at a time: bounded by warps, by block slots, by registers (given out per warp in
 * units of 256, warps in fours) and by shared memory (units of 128 bytes and 1 KB a block for the system). */
int mg_occupancy(const struct CUfunc_st *f, int block_size, size_t dyn_shared)
{
    const int *a = mg_drv.attrs;
    int warps = (block_size + 31) / 32, most = a[CUDEV_MAX_THREADS_PER_MULTIPROCESSOR] / 32 / warps;
    most = MG_MIN(most, a[CUDEV_MAX_BLOCKS_PER_MULTIPROCESSOR]);
    int warp_regs = ((int)mg_func_registers(f) * 32 + 255) & ~255;
    if (warp_regs) {
        int fit =
            a[CUDEV_MAX_REGISTERS_PER_BLOCK] / warp_regs / 4 * 4; /* one allocation never passes a quarter's share */
        if (warps > fit) return 0;
        most = MG_MIN(most, a[CUDEV_MAX_REGISTERS_PER_MULTIPROCESSOR] / warp_regs / 4 * 4 / warps);
    }
    uint64_t shared = f->info.static_shared_bytes + dyn_shared;
    if (shared > (uint64_t)a[CUDEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]) return 0;
    shared = (shared + 1024 + 127) & ~(uint64_t)127;
    return MG_MIN(most, (int)((uint64_t)a[CUDEV_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] / shared));
}

static cu_result max_blocks(int *blocks, cu_function h, int block_size, size_t shared, unsigned flags)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(blocks && block_size > 0 && flags <= CUOCC_DISABLE_CACHING_OVERRIDE);
    *blocks = block_size > mg_func_max_threads(f) || shared > (size_t)mg_func_max_dynamic(f)
                  ? 0
                  : mg_occupancy(f, block_size, shared);
    return CUE_SUCCESS;
}
static cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cu_function h, int block_size, size_t shared)
{
    return max_blocks(blocks, h, block_size, shared, 0);
}
static cu_result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, cu_function h, int block_size,
                                                                      size_t shared, unsigned flags)
{
    return max_blocks(blocks, h, block_size, shared, flags);
}

/* Of all block sizes the one that keeps most threads on an SM, the largest of equals. */
static cu_result best_block(int *min_grid, int *block, cu_function h, cu_block_to_shared_fn fn, size_t shared,
                            int limit, unsigned flags)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(min_grid && block && flags <= CUOCC_DISABLE_CACHING_OVERRIDE);
    int most = mg_func_max_threads(f), best = 0, best_threads = 0, best_blocks = 0;
    if (limit > 0) most = MG_MIN(most, limit);
    for (int size = (most + 31) / 32 * 32; size > 0; size -= 32) {
        int try = MG_MIN(size, most), n = mg_occupancy(f, try, fn ? fn(try) : shared);
        if (n * try > best_threads) {
            best = try;
            best_blocks = n;
            best_threads = n * try;
        }
        if (best_threads >= mg_drv.attrs[CUDEV_MAX_THREADS_PER_MULTIPROCESSOR]) break;
    }
    *block = best;
    *min_grid = best_blocks * mg_drv.attrs[CUDEV_MULTIPROCESSOR_COUNT];
    return CUE_SUCCESS;
}
static cu_result cuOccupancyMaxPotentialBlockSize(int *grid, int *block, cu_function h, cu_block_to_shared_fn fn,
                                                  size_t shared, int limit)
{
    return best_block(grid, block, h, fn, shared, limit, 0);
}
static cu_result cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, cu_function h,
                                                           cu_block_to_shared_fn fn, size_t shared, int limit,
                                                           unsigned flags)
{
    return best_block(grid, block, h, fn, shared, limit, flags);
}

static cu_result cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, cu_function h, int blocks, int block_size)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(bytes && blocks > 0 && block_size > 0);
    CHECK(mg_occupancy(f, block_size, 0) >= blocks);
    size_t each = (size_t)(mg_drv.attrs[CUDEV_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] / blocks / 128 * 128),
           held = 1024 + f->info.static_shared_bytes;
    size_t most = (size_t)mg_drv.attrs[CUDEV_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] - f->info.static_shared_bytes;
    *bytes = each > held ? MG_MIN(each - held, most) : 0;
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_function[] = {
    MG_ENTRY(cuFuncGetAttribute),
    MG_ENTRY(cuFuncSetAttribute),
    MG_ENTRY(cuKernelGetAttribute),
    MG_ENTRY(cuKernelSetAttribute),
    MG_ENTRY(cuFuncSetCacheConfig),
    MG_ENTRY(cuKernelSetCacheConfig),
    MG_ENTRY(cuFuncSetSharedMemConfig),
    MG_ENTRY(cuFuncGetModule),
    MG_ENTRY(cuFuncGetName),
    MG_ENTRY(cuFuncGetParamInfo),
    MG_ENTRY(cuKernelGetParamInfo),
    MG_ENTRY(cuFuncIsLoaded),
    MG_ENTRY(cuFuncLoad),
    MG_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    MG_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    MG_ENTRY(cuOccupancyMaxPotentialBlockSize),
    MG_ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags),
    MG_ENTRY(cuOccupancyAvailableDynamicSMemPerBlock),
    {0},
};
