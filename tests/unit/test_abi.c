/* abi: our own declarations against NVIDIA's header where one is installed, and the tables. */
#include "test.h"

#include <stddef.h>

#include "abi/cu.h"

#if defined __has_include
#if __has_include(<cuda.h>)
#define HAVE_CUDA_H 1
#elif __has_include("/usr/local/cuda/include/cuda.h")
#define HAVE_CUDA_H 2
#endif
#endif

#ifdef HAVE_CUDA_H
#if HAVE_CUDA_H == 2
#include "/usr/local/cuda/include/cuda.h"
#else
#include <cuda.h>
#endif
#endif

#if defined HAVE_CUDA_H && CUDA_VERSION == MG_CUDA_VERSION
#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME(ours, a, theirs, b)                                                                                       \
    _Static_assert(offsetof(ours, a) == offsetof(theirs, b), #theirs "." #b);                                          \
    _Static_assert(sizeof(((ours *)0)->a) == sizeof(((theirs *)0)->b), #theirs "." #b)
#define EQ(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)

EQ(CUE_SUCCESS, CUDA_SUCCESS);
#define CUDA_ERROR_SUCCESS         CUDA_SUCCESS
#define RESULT(name, number, text) _Static_assert(number == CUDA_ERROR_##name, #name);
#include "abi/errors.def"
#undef RESULT
#define ATTR(number, name) _Static_assert(number == CU_DEVICE_ATTRIBUTE_##name, #name);
#include "abi/device_attributes.def"
#undef ATTR
EQ(CUDEV_COUNT, CU_DEVICE_ATTRIBUTE_MAX);
EQ(CULIMIT_COUNT, CU_LIMIT_MAX);
EQ(CULIMIT_SHMEM_SIZE, CU_LIMIT_SHMEM_SIZE);
EQ(CUFUNC_COUNT, CU_FUNC_ATTRIBUTE_MAX);
EQ(CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EQ(CULAUNCH_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
EQ(CULAUNCH_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
EQ(CULAUNCH_NVLINK_UTIL_CENTRIC_SCHEDULING, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
EQ(CUJIT_COUNT, CU_JIT_NUM_OPTIONS);
EQ(CUJIT_GLOBAL_SYMBOL_COUNT, CU_JIT_GLOBAL_SYMBOL_COUNT);
EQ(CUJIT_MIN_CTA_PER_SM, CU_JIT_MIN_CTA_PER_SM);
EQ(CUJITIN_NVVM, CU_JIT_INPUT_NVVM);
EQ(CUPTR_IS_HW_DECOMPRESS_CAPABLE, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE);
EQ(CUPTR_MEMPOOL_HANDLE, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
EQ(CURANGE_LAST_PREFETCH_LOCATION_ID, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID);
EQ(CUADVISE_UNSET_ACCESSED_BY, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
EQ(CULOC_HOST_NUMA_CURRENT, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
EQ(CUPOOL_USED_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
EQ(CUAD_FLOAT, CU_AD_FORMAT_FLOAT);
EQ(CUAD_HALF, CU_AD_FORMAT_HALF);
EQ(CURES_PITCH2D, CU_RESOURCE_TYPE_PITCH2D);
EQ(CUADDR_BORDER, CU_TR_ADDRESS_MODE_BORDER);
EQ(CUFILTER_LINEAR, CU_TR_FILTER_MODE_LINEAR);
EQ(CUWAIT_NOR, CU_STREAM_WAIT_VALUE_NOR);
EQ(CUMEMOP_BARRIER, CU_STREAM_MEM_OP_BARRIER);
EQ(CUMEMOP_WRITE64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
EQ(CUNODE_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL);
EQ(CUUPDATE_ATTRIBUTES, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
EQ(CUINST_NODE_PRIORITY, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
EQ(CULIB_BINARY_IS_PRESERVED, CU_LIBRARY_BINARY_IS_PRESERVED);
EQ(CULOAD_LAZY, CU_MODULE_LAZY_LOADING);

SAME_SIZE(cu_result, CUresult);
SAME_SIZE(cu_uuid, CUuuid);
SAME_SIZE(struct cu_device_props, CUdevprop);
SAME_SIZE(struct cu_affinity, CUexecAffinityParam);
SAME_SIZE(struct cu_ctx_params, CUctxCreateParams);
SAME_SIZE(struct cu_access_window, CUaccessPolicyWindow);
SAME_SIZE(union cu_launch_value, CUlaunchAttributeValue);
SAME(union cu_launch_value, programmatic_event.at_block_start, CUlaunchAttributeValue,
     programmaticEvent.triggerAtBlockStart);
SAME_SIZE(struct cu_launch_attribute, CUlaunchAttribute);
SAME(struct cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(struct cu_launch_config, CUlaunchConfig);
SAME(struct cu_launch_config, stream, CUlaunchConfig, hStream);
SAME(struct cu_launch_config, n_attrs, CUlaunchConfig, numAttrs);
SAME_SIZE(struct cu_multi_launch, CUDA_LAUNCH_PARAMS);
SAME_SIZE(struct cu_memcpy2d, CUDA_MEMCPY2D);
SAME(struct cu_memcpy2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME(struct cu_memcpy2d, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(struct cu_memcpy3d, CUDA_MEMCPY3D);
SAME_SIZE(struct cu_memcpy3d, CUDA_MEMCPY3D_PEER);
SAME(struct cu_memcpy3d, src_ctx, CUDA_MEMCPY3D_PEER, srcContext);
SAME(struct cu_memcpy3d, dst_pitch, CUDA_MEMCPY3D, dstPitch);
SAME_SIZE(struct cu_copy_attributes, CUmemcpyAttributes);
SAME_SIZE(struct cu_copy_operand, CUmemcpy3DOperand);
SAME_SIZE(struct cu_copy3d_batch, CUDA_MEMCPY3D_BATCH_OP);
SAME_SIZE(struct cu_alloc_prop, CUmemAllocationProp);
SAME_SIZE(struct cu_access, CUmemAccessDesc);
SAME_SIZE(struct cu_pool_props, CUmemPoolProps);
SAME(struct cu_pool_props, usage, CUmemPoolProps, usage);
SAME_SIZE(struct cu_array_desc, CUDA_ARRAY_DESCRIPTOR);
SAME_SIZE(struct cu_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR);
SAME_SIZE(struct cu_array_memory, CUDA_ARRAY_MEMORY_REQUIREMENTS);
SAME_SIZE(struct cu_resource_desc, CUDA_RESOURCE_DESC);
SAME(struct cu_resource_desc, res.pitch2d.pitch, CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
SAME_SIZE(struct cu_texture_desc, CUDA_TEXTURE_DESC);
SAME(struct cu_texture_desc, border, CUDA_TEXTURE_DESC, borderColor);
SAME_SIZE(struct cu_view_desc, CUDA_RESOURCE_VIEW_DESC);
SAME_SIZE(union cu_memop_params, CUstreamBatchMemOpParams);
SAME(union cu_memop_params, value.value, CUstreamBatchMemOpParams, writeValue.value64);
SAME(union cu_memop_params, value.flags, CUstreamBatchMemOpParams, waitValue.flags);
SAME_SIZE(struct cu_kernel_node, CUDA_KERNEL_NODE_PARAMS);
SAME(struct cu_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
EQ(CU_KERNEL_NODE_V1_BYTES, sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
SAME_SIZE(struct cu_memcpy_node, CUDA_MEMCPY_NODE_PARAMS);
SAME_SIZE(struct cu_memset_node, CUDA_MEMSET_NODE_PARAMS_v2);
EQ(CU_MEMSET_NODE_V1_BYTES, sizeof(CUDA_MEMSET_NODE_PARAMS));
SAME_SIZE(struct cu_host_node, CUDA_HOST_NODE_PARAMS);
SAME_SIZE(struct cu_memop_node, CUDA_BATCH_MEM_OP_NODE_PARAMS);
SAME_SIZE(struct cu_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS);
SAME(struct cu_alloc_node, ptr, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME_SIZE(struct cu_child_node, CUDA_CHILD_GRAPH_NODE_PARAMS);
SAME_SIZE(struct cu_edge_data, CUgraphEdgeData);
SAME_SIZE(struct cu_node_params, CUgraphNodeParams);
SAME(struct cu_node_params, u.kernel, CUgraphNodeParams, kernel);
SAME_SIZE(struct cu_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME(struct cu_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
SAME_SIZE(struct cu_update_info, CUgraphExecUpdateResultInfo);
#endif

MG_TEST(abi_entries_are_sorted_and_found)
{
    MG_CHECK_EQ(mg_cu_entry_count, 637);
    for (uint32_t i = 0; i < mg_cu_entry_count; i++) {
        if (i) MG_CHECK(strcmp(mg_cu_entries[i - 1].name, mg_cu_entries[i].name) < 0);
        MG_CHECK_EQ(mg_cu_entry_find(mg_cu_entries[i].name), i);
    }
    MG_CHECK_EQ(mg_cu_entry_find("cuNoSuchEntry"), -1);
}

MG_TEST(abi_entry_by_version_and_flags)
{
    static const struct {
        const char *base;
        int version;
        uint64_t flags;
        const char *want;
        int status;
    } rows[] = {
        {"cuMemAlloc", 2000, 0, "cuMemAlloc", 0},
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2", 0},
        {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2", 0},
        {"cuCtxGetDevice", 12000, 0, "cuCtxGetDevice", 0},
        {"cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2", 0},
        {"cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz", 0},
        {"cuLaunchKernel", 12000, 1, "cuLaunchKernel", 0},
        {"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds", 0},
        {"cuInit", 13000, 2, "cuInit", 0}, /* no per-thread twin: the plain one */
        {"cuLibraryLoadData", 11000, 0, NULL, CUPROC_VERSION_TOO_LOW},
        {"cuNothing", 13000, 0, NULL, CUPROC_NOT_FOUND},
        {"cuMem", 13000, 0, NULL, CUPROC_NOT_FOUND},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = -1, ix = mg_cu_entry_resolve(rows[i].base, rows[i].version, rows[i].flags, &status);
        MG_CHECK_EQ(status, rows[i].status);
        if (rows[i].want)
            MG_CHECK_STR(ix < 0 ? NULL : mg_cu_entries[ix].name, rows[i].want);
        else
            MG_CHECK_EQ(ix, -1);
    }
}

MG_TEST(abi_results_have_names_and_texts)
{
    MG_CHECK_STR(mg_cu_result_name(0), "CUDA_SUCCESS");
    MG_CHECK_STR(mg_cu_result_name(700), "CUDA_ERROR_ILLEGAL_ADDRESS");
    MG_CHECK_STR(mg_cu_result_text(2), "out of memory");
    MG_CHECK(!mg_cu_result_name(12345));
    MG_CHECK(!mg_cu_result_text(-1));
}
