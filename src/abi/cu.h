/* The binary interface of the CUDA 13.0 driver in our own words: numbers, structures and handle
 * types, for everything that talks to a driver (inject/), is one (driver/) or stands on one
 * (runtime/). No declaration of an entry is here: entries are reached by name (entries.def).
 *
 * The numbers and layouts are facts of the public ABI; names follow this project (cu_ for types,
 * CU<GROUP>_ for constants), so that this header and NVIDIA's can meet in one translation unit:
 * tests/unit/test_abi.c asserts every layout and number against the real header where there is one.
 */
/* clang-format off */
#ifndef MG_ABI_CU_H
#define MG_ABI_CU_H

#include <stddef.h>
#include <stdint.h>

#define MG_CUDA_VERSION 13000

/* ---- results ------------------------------------------------------------------------------- */

typedef int cu_result;
enum {
#define RESULT(name, number, text) CUE_##name = number,
#include "abi/errors.def"
#undef RESULT
};

/* ---- handles ------------------------------------------------------------------------------- */

typedef int cu_device;
typedef uint64_t cu_ptr; /* a device address */
typedef struct CUctx_st *cu_ctx;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function; /* a cu_kernel is accepted wherever one is asked for */
typedef struct CUlib_st *cu_library;
typedef struct CUkern_st *cu_kernel;
typedef struct CUarray_st *cu_array;
typedef struct CUmipmappedArray_st *cu_mipmap;
typedef struct CUtexref_st *cu_texref;
typedef struct CUsurfref_st *cu_surfref;
typedef struct CUevent_st *cu_event;
typedef struct CUstream_st *cu_stream;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphNode_st *cu_node;
typedef struct CUgraphExec_st *cu_graph_exec;
typedef struct CUmemPoolHandle_st *cu_pool;
typedef struct CUuserObject_st *cu_user_object;
typedef struct CUlinkState_st *cu_link;
typedef uint64_t cu_tex, cu_surf;     /* texture and surface objects */
typedef uint64_t cu_mem_handle;       /* physical memory of cuMemCreate */
typedef struct { unsigned char bytes[16]; } cu_uuid;

#define CU_LEGACY_STREAM ((cu_stream)(uintptr_t)1)
#define CU_PER_THREAD_STREAM ((cu_stream)(uintptr_t)2)

typedef void (*cu_host_fn)(void *user);
typedef void (*cu_stream_fn)(cu_stream stream, cu_result status, void *user);
typedef size_t (*cu_block_to_shared_fn)(int block_size);

/* ---- devices ------------------------------------------------------------------------------- */

enum cu_device_attribute {
#define ATTR(number, name) CUDEV_##name = number,
#include "abi/device_attributes.def"
#undef ATTR
    CUDEV_COUNT = 148
};
struct cu_device_props { /* cuDeviceGetProperties, deprecated */
    int max_threads_per_block, max_block[3], max_grid[3], shared_per_block, constant_bytes, warp_size, max_pitch,
        registers_per_block, clock_khz, texture_align;
};
enum cu_p2p { CUP2P_PERFORMANCE_RANK = 1, CUP2P_ACCESS = 2, CUP2P_NATIVE_ATOMIC = 3, CUP2P_ARRAY_ACCESS = 4, CUP2P_PARTIAL_ATOMIC = 5 };

/* ---- contexts ------------------------------------------------------------------------------ */

enum cu_ctx_flags {
    CUCTX_SCHED_AUTO = 0, CUCTX_SCHED_SPIN = 1, CUCTX_SCHED_YIELD = 2, CUCTX_SCHED_BLOCKING = 4, CUCTX_SCHED_MASK = 7,
    CUCTX_MAP_HOST = 8, CUCTX_LMEM_RESIZE = 0x10, CUCTX_COREDUMP = 0x20, CUCTX_USER_COREDUMP = 0x40,
    CUCTX_SYNC_MEMOPS = 0x80, CUCTX_FLAGS_MASK = 0xff
};
enum cu_limit {
    CULIMIT_STACK_SIZE, CULIMIT_PRINTF_FIFO_SIZE, CULIMIT_MALLOC_HEAP_SIZE, CULIMIT_DEV_RUNTIME_SYNC_DEPTH,
    CULIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, CULIMIT_MAX_L2_FETCH_GRANULARITY, CULIMIT_PERSISTING_L2_CACHE_SIZE,
    CULIMIT_SHMEM_SIZE, CULIMIT_CIG_ENABLED, CULIMIT_CIG_SHMEM_FALLBACK, CULIMIT_COUNT
};
enum cu_cache { CUCACHE_NONE, CUCACHE_SHARED, CUCACHE_L1, CUCACHE_EQUAL };
struct cu_affinity { int type; union { unsigned sm_count; } param; };
struct cu_ctx_params { struct cu_affinity *affinity; int n_affinity; void *cig; };

/* ---- functions ----------------------------------------------------------------------------- */

enum cu_function_attribute {
    CUFUNC_MAX_THREADS_PER_BLOCK, CUFUNC_SHARED_SIZE_BYTES, CUFUNC_CONST_SIZE_BYTES, CUFUNC_LOCAL_SIZE_BYTES,
    CUFUNC_NUM_REGS, CUFUNC_PTX_VERSION, CUFUNC_BINARY_VERSION, CUFUNC_CACHE_MODE_CA,
    CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT, CUFUNC_CLUSTER_SIZE_MUST_BE_SET,
    CUFUNC_REQUIRED_CLUSTER_WIDTH, CUFUNC_REQUIRED_CLUSTER_HEIGHT, CUFUNC_REQUIRED_CLUSTER_DEPTH,
    CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CUFUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE, CUFUNC_COUNT
};
enum { CUOCC_DISABLE_CACHING_OVERRIDE = 1 };

/* ---- launches ------------------------------------------------------------------------------ */

#define CULAUNCH_PARAM_END ((void *)0)
#define CULAUNCH_PARAM_BUFFER_POINTER ((void *)(uintptr_t)1)
#define CULAUNCH_PARAM_BUFFER_SIZE ((void *)(uintptr_t)2)

enum cu_launch_attribute_id {
    CULAUNCH_IGNORE, CULAUNCH_ACCESS_POLICY_WINDOW, CULAUNCH_COOPERATIVE, CULAUNCH_SYNCHRONIZATION_POLICY,
    CULAUNCH_CLUSTER_DIMENSION, CULAUNCH_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CULAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, CULAUNCH_PROGRAMMATIC_EVENT, CULAUNCH_PRIORITY,
    CULAUNCH_MEM_SYNC_DOMAIN_MAP, CULAUNCH_MEM_SYNC_DOMAIN, CULAUNCH_PREFERRED_CLUSTER_DIMENSION,
    CULAUNCH_LAUNCH_COMPLETION_EVENT, CULAUNCH_DEVICE_UPDATABLE_KERNEL_NODE,
    CULAUNCH_PREFERRED_SHARED_MEMORY_CARVEOUT, CULAUNCH_NVLINK_UTIL_CENTRIC_SCHEDULING = 16, CULAUNCH_COUNT
};
struct cu_access_window { void *base; size_t bytes; float hit_ratio; int hit, miss; };
union cu_launch_value {
    char pad[64];
    struct cu_access_window window;
    int cooperative, sync_policy, cluster_policy, serialization, priority, mem_sync_domain;
    struct { unsigned x, y, z; } cluster;
    struct { cu_event event; int flags, at_block_start; } programmatic_event;
    struct { cu_event event; int flags; } completion_event;
    struct { unsigned char default_, remote; } domain_map;
    struct { int updatable; void *node; } device_node;
    unsigned carveout, nvlink;
};
struct cu_launch_attribute { int id; char pad[4]; union cu_launch_value value; };
struct cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    cu_stream stream;
    struct cu_launch_attribute *attrs;
    unsigned n_attrs;
};
struct cu_multi_launch { /* cuLaunchCooperativeKernelMultiDevice */
    cu_function function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    cu_stream stream;
    void **params;
};

/* ---- modules, JIT options -------------------------------------------------------------------- */

enum cu_jit_option {
    CUJIT_MAX_REGISTERS, CUJIT_THREADS_PER_BLOCK, CUJIT_WALL_TIME, CUJIT_INFO_LOG_BUFFER,
    CUJIT_INFO_LOG_BUFFER_SIZE_BYTES, CUJIT_ERROR_LOG_BUFFER, CUJIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    CUJIT_OPTIMIZATION_LEVEL, CUJIT_TARGET_FROM_CUCONTEXT, CUJIT_TARGET, CUJIT_FALLBACK_STRATEGY,
    CUJIT_GENERATE_DEBUG_INFO, CUJIT_LOG_VERBOSE, CUJIT_GENERATE_LINE_INFO, CUJIT_CACHE_MODE, CUJIT_NEW_SM3X_OPT,
    CUJIT_FAST_COMPILE, CUJIT_GLOBAL_SYMBOL_NAMES, CUJIT_GLOBAL_SYMBOL_ADDRESSES, CUJIT_GLOBAL_SYMBOL_COUNT,
    CUJIT_LTO, CUJIT_FTZ, CUJIT_PREC_DIV, CUJIT_PREC_SQRT, CUJIT_FMA, CUJIT_REFERENCED_KERNEL_NAMES,
    CUJIT_REFERENCED_KERNEL_COUNT, CUJIT_REFERENCED_VARIABLE_NAMES, CUJIT_REFERENCED_VARIABLE_COUNT,
    CUJIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES, CUJIT_POSITION_INDEPENDENT_CODE, CUJIT_MIN_CTA_PER_SM,
    CUJIT_MAX_THREADS_PER_BLOCK, CUJIT_OVERRIDE_DIRECTIVE_VALUES, CUJIT_SPLIT_COMPILE, CUJIT_COUNT
};
enum cu_jit_input { CUJITIN_CUBIN, CUJITIN_PTX, CUJITIN_FATBINARY, CUJITIN_OBJECT, CUJITIN_LIBRARY, CUJITIN_NVVM };
enum cu_library_option { CULIB_HOST_TABLE, CULIB_BINARY_IS_PRESERVED };
enum cu_loading_mode { CULOAD_EAGER = 1, CULOAD_LAZY = 2 };

/* ---- memory -------------------------------------------------------------------------------- */

enum cu_memory_type { CUMEM_HOST = 1, CUMEM_DEVICE = 2, CUMEM_ARRAY = 3, CUMEM_UNIFIED = 4 };
enum { CUATTACH_GLOBAL = 1, CUATTACH_HOST = 2, CUATTACH_SINGLE = 4 };
enum { CUHOST_PORTABLE = 1, CUHOST_DEVICEMAP = 2, CUHOST_WRITECOMBINED = 4 };
enum { CUREG_PORTABLE = 1, CUREG_DEVICEMAP = 2, CUREG_IOMEMORY = 4, CUREG_READ_ONLY = 8 };
enum cu_pointer_attribute {
    CUPTR_CONTEXT = 1, CUPTR_MEMORY_TYPE, CUPTR_DEVICE_POINTER, CUPTR_HOST_POINTER, CUPTR_P2P_TOKENS,
    CUPTR_SYNC_MEMOPS, CUPTR_BUFFER_ID, CUPTR_IS_MANAGED, CUPTR_DEVICE_ORDINAL, CUPTR_IS_LEGACY_IPC_CAPABLE,
    CUPTR_RANGE_START_ADDR, CUPTR_RANGE_SIZE, CUPTR_MAPPED, CUPTR_ALLOWED_HANDLE_TYPES, CUPTR_IS_GPU_DIRECT_RDMA_CAPABLE,
    CUPTR_ACCESS_FLAGS, CUPTR_MEMPOOL_HANDLE, CUPTR_MAPPING_SIZE, CUPTR_MAPPING_BASE_ADDR, CUPTR_MEMORY_BLOCK_ID,
    CUPTR_IS_HW_DECOMPRESS_CAPABLE, CUPTR_COUNT
};
enum cu_advice { CUADVISE_SET_READ_MOSTLY = 1, CUADVISE_UNSET_READ_MOSTLY, CUADVISE_SET_PREFERRED, CUADVISE_UNSET_PREFERRED, CUADVISE_SET_ACCESSED_BY, CUADVISE_UNSET_ACCESSED_BY };
enum cu_range_attribute {
    CURANGE_READ_MOSTLY = 1, CURANGE_PREFERRED_LOCATION, CURANGE_ACCESSED_BY, CURANGE_LAST_PREFETCH_LOCATION,
    CURANGE_PREFERRED_LOCATION_TYPE, CURANGE_PREFERRED_LOCATION_ID, CURANGE_LAST_PREFETCH_LOCATION_TYPE,
    CURANGE_LAST_PREFETCH_LOCATION_ID
};
#define CUDEVICE_CPU (-1)
#define CUDEVICE_INVALID (-2)
enum cu_location_type { CULOC_INVALID, CULOC_DEVICE, CULOC_HOST, CULOC_HOST_NUMA, CULOC_HOST_NUMA_CURRENT };
struct cu_location { int type, id; };

struct cu_memcpy2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    cu_ptr src_device;
    cu_array src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    cu_ptr dst_device;
    cu_array dst_array;
    size_t dst_pitch;
    size_t width, height; /* width in bytes */
};
struct cu_memcpy3d { /* also CUDA_MEMCPY3D_PEER: there the reserved words are the contexts */
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    cu_ptr src_device;
    cu_array src_array;
    void *src_ctx;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    cu_ptr dst_device;
    cu_array dst_array;
    void *dst_ctx;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
};
struct cu_copy_attributes { int src_order; struct cu_location src_hint, dst_hint; unsigned flags; };
struct cu_copy_operand {
    int type; /* 1 pointer, 2 array */
    union {
        struct { cu_ptr ptr; size_t row_length, layer_height; struct cu_location hint; } ptr;
        struct { cu_array array; size_t x, y, z; } array;
    } op;
};
struct cu_copy3d_batch { struct cu_copy_operand src, dst; size_t width, height, depth; int src_order; unsigned flags; };

struct cu_alloc_prop {
    int type, handle_types;
    struct cu_location location;
    void *win32;
    struct { unsigned char compression, rdma; unsigned short usage; unsigned char reserved[4]; } flags;
};
struct cu_access { struct cu_location location; int flags; };
enum { CUACCESS_NONE = 0, CUACCESS_READ = 1, CUACCESS_READWRITE = 3 };
struct cu_pool_props { int alloc_type, handle_types; struct cu_location location; void *win32; size_t max_bytes; unsigned short usage; unsigned char reserved[54]; };
enum cu_pool_attribute {
    CUPOOL_REUSE_FOLLOW_EVENT = 1, CUPOOL_REUSE_OPPORTUNISTIC, CUPOOL_REUSE_INTERNAL, CUPOOL_RELEASE_THRESHOLD,
    CUPOOL_RESERVED_CURRENT, CUPOOL_RESERVED_HIGH, CUPOOL_USED_CURRENT, CUPOOL_USED_HIGH
};

/* ---- arrays, textures, surfaces --------------------------------------------------------------- */

enum cu_array_format {
    CUAD_UINT8 = 1, CUAD_UINT16 = 2, CUAD_UINT32 = 3, CUAD_SINT8 = 8, CUAD_SINT16 = 9, CUAD_SINT32 = 10,
    CUAD_HALF = 16, CUAD_FLOAT = 32
};
enum {
    CUARRAY_LAYERED = 1, CUARRAY_SURFACE = 2, CUARRAY_CUBEMAP = 4, CUARRAY_GATHER = 8, CUARRAY_DEPTH = 16,
    CUARRAY_COLOR = 32, CUARRAY_SPARSE = 64, CUARRAY_DEFERRED = 128
};
struct cu_array_desc { size_t width, height; int format; unsigned channels; };
struct cu_array3d_desc { size_t width, height, depth; int format; unsigned channels, flags; };
struct cu_array_memory { size_t bytes, align; unsigned reserved[4]; };
enum cu_resource_type { CURES_ARRAY, CURES_MIPMAP, CURES_LINEAR, CURES_PITCH2D };
struct cu_resource_desc {
    int type;
    union {
        struct { cu_array array; } array;
        struct { cu_mipmap mipmap; } mipmap;
        struct { cu_ptr ptr; int format; unsigned channels; size_t bytes; } linear;
        struct { cu_ptr ptr; int format; unsigned channels; size_t width, height, pitch; } pitch2d;
        struct { int reserved[32]; } reserved;
    } res;
    unsigned flags;
};
enum cu_address_mode { CUADDR_WRAP, CUADDR_CLAMP, CUADDR_MIRROR, CUADDR_BORDER };
enum cu_filter_mode { CUFILTER_POINT, CUFILTER_LINEAR };
enum { CUTEX_READ_AS_INTEGER = 1, CUTEX_NORMALIZED = 2, CUTEX_SRGB = 0x10, CUTEX_NO_TRILINEAR_OPT = 0x20, CUTEX_SEAMLESS_CUBEMAP = 0x40 };
struct cu_texture_desc {
    int address[3], filter;
    unsigned flags, max_anisotropy;
    int mipmap_filter;
    float mipmap_bias, min_clamp, max_clamp, border[4];
    int reserved[12];
};
struct cu_view_desc { int format; size_t width, height, depth; unsigned first_level, last_level, first_layer, last_layer, reserved[16]; };

/* ---- streams and events ----------------------------------------------------------------------- */

enum { CUSTREAM_DEFAULT = 0, CUSTREAM_NON_BLOCKING = 1 };
enum { CUEVENT_DEFAULT = 0, CUEVENT_BLOCKING_SYNC = 1, CUEVENT_DISABLE_TIMING = 2, CUEVENT_INTERPROCESS = 4 };
enum { CUEVENT_EXTERNAL = 1 }; /* flag of record and wait */
enum { CUWAIT_GEQ = 0, CUWAIT_EQ = 1, CUWAIT_AND = 2, CUWAIT_NOR = 3, CUWAIT_FLUSH = 1 << 30 };
enum cu_memop { CUMEMOP_WAIT32 = 1, CUMEMOP_WRITE32 = 2, CUMEMOP_FLUSH = 3, CUMEMOP_WAIT64 = 4, CUMEMOP_WRITE64 = 5, CUMEMOP_BARRIER = 6 };
union cu_memop_params {
    int operation;
    struct { int operation; cu_ptr address; union { uint32_t v32; uint64_t v64; } value; unsigned flags; cu_ptr alias; } value;
    struct { int operation; unsigned flags; } other;
    uint64_t pad[6];
};
enum cu_capture_status { CUCAPTURE_NONE, CUCAPTURE_ACTIVE, CUCAPTURE_INVALIDATED };
enum cu_capture_mode { CUCAPTURE_GLOBAL, CUCAPTURE_THREAD_LOCAL, CUCAPTURE_RELAXED };

/* ---- graphs -------------------------------------------------------------------------------- */

enum cu_node_type {
    CUNODE_KERNEL, CUNODE_MEMCPY, CUNODE_MEMSET, CUNODE_HOST, CUNODE_GRAPH, CUNODE_EMPTY, CUNODE_WAIT_EVENT,
    CUNODE_EVENT_RECORD, CUNODE_EXT_SEMAS_SIGNAL, CUNODE_EXT_SEMAS_WAIT, CUNODE_MEM_ALLOC, CUNODE_MEM_FREE,
    CUNODE_BATCH_MEM_OP, CUNODE_CONDITIONAL, CUNODE_COUNT
};
struct cu_kernel_node { /* version 1 ends before `kernel` */
    cu_function func;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void **params, **extra;
    cu_kernel kernel;
    cu_ctx ctx;
};
#define CU_KERNEL_NODE_V1_BYTES 56
struct cu_memcpy_node { int flags, reserved; cu_ctx ctx; struct cu_memcpy3d copy; };
struct cu_memset_node { cu_ptr dst; size_t pitch; unsigned value, element_bytes; size_t width, height; cu_ctx ctx; /* not in version 1 */ };
#define CU_MEMSET_NODE_V1_BYTES 40
struct cu_host_node { cu_host_fn fn; void *user; };
struct cu_memop_node { cu_ctx ctx; unsigned count; union cu_memop_params *params; unsigned flags; };
struct cu_alloc_node { struct cu_pool_props props; const struct cu_access *access; size_t n_access, bytes; cu_ptr ptr; };
struct cu_child_node { cu_graph graph; int ownership; };
struct cu_edge_data { unsigned char from_port, to_port, type, reserved[5]; };
enum cu_cond_type { CUCOND_IF, CUCOND_WHILE, CUCOND_SWITCH };
enum { CUCOND_ASSIGN_DEFAULT = 1 };
struct cu_conditional_node { uint64_t handle; int type; unsigned count; cu_graph *bodies; cu_ctx ctx; };
struct cu_node_params {
    int type, reserved0[3];
    union {
        long long reserved1[29];
        struct cu_kernel_node kernel;
        struct cu_memcpy_node memcpy;
        struct cu_memset_node memset;
        struct cu_host_node host;
        struct cu_child_node graph;
        struct { cu_event event; } event; /* record and wait */
        struct cu_alloc_node alloc;
        struct { cu_ptr ptr; } free;
        struct cu_memop_node memop;
        struct cu_conditional_node conditional;
    } u;
    long long reserved2;
};
struct cu_instantiate_params { uint64_t flags; cu_stream upload; cu_node error_node; int result; };
enum { CUINST_AUTO_FREE = 1, CUINST_UPLOAD = 2, CUINST_DEVICE_LAUNCH = 4, CUINST_NODE_PRIORITY = 8 };
enum cu_instantiate_result { CUINSTRES_SUCCESS, CUINSTRES_ERROR, CUINSTRES_INVALID_STRUCTURE, CUINSTRES_NODE_NOT_SUPPORTED, CUINSTRES_MULTIPLE_CTXS };
enum cu_update_result {
    CUUPDATE_SUCCESS, CUUPDATE_ERROR, CUUPDATE_TOPOLOGY, CUUPDATE_NODE_TYPE, CUUPDATE_FUNCTION, CUUPDATE_PARAMETERS,
    CUUPDATE_NOT_SUPPORTED, CUUPDATE_UNSUPPORTED_FUNCTION, CUUPDATE_ATTRIBUTES
};
struct cu_update_info { int result; cu_node error_node, error_from; };

/* ---- entries by name ---------------------------------------------------------------------------- */

enum { CUPROC_DEFAULT = 0, CUPROC_LEGACY_STREAM = 1, CUPROC_PER_THREAD_STREAM = 2 };
enum cu_proc_status { CUPROC_OK, CUPROC_NOT_FOUND, CUPROC_VERSION_TOO_LOW };
struct mg_cu_entry { /* entries.def */
    const char *name, *base;
    uint32_t since;
    uint8_t per_thread;
};
extern const struct mg_cu_entry mg_cu_entries[];
extern const uint32_t mg_cu_entry_count;
/* Index of an exported name in mg_cu_entries, or -1. */
struct cu_memcpy3d mg_cu_copy_of_2d(const struct cu_memcpy2d *c);
/* Between these two the calling thread's calls do not disturb a capture, its own or another's. exchange:
 * cuThreadExchangeStreamCaptureMode; -1: it failed, and there is nothing to undo. */
typedef cu_result (*mg_cu_exchange_fn)(int *mode);
int mg_cu_relax_captures(mg_cu_exchange_fn exchange);
void mg_cu_restore_captures(mg_cu_exchange_fn exchange, int before);
int mg_cu_entry_find(const char *name);
/* Index of what cuGetProcAddress answers to (base, version, flags), or -1 with *status saying why. */
int mg_cu_entry_resolve(const char *base, int version, uint64_t flags, int *status);
/* "CUDA_ERROR_INVALID_VALUE" and "invalid argument"; NULL for a number that is none. */
const char *mg_cu_result_name(cu_result r);
const char *mg_cu_result_text(cu_result r);

#endif
