/* Prints size and offsets of what crosses the runtime's interface. Built once over our declarations
 * and once (-DREAL) over NVIDIA's header where it is installed; layout.sh compares the two. */
#include <stddef.h>
#include <stdio.h>
#ifdef REAL
#include <cuda_runtime_api.h>
#else
#include "abi/cudart.h"
#endif

#define S(type)        printf("%s %zu\n", #type, sizeof(type));
#define F(type, field) printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field));
#define C(name)        printf("%s %lld\n", #name, (long long)(size_t)(name));

int main(void)
{
    S(struct cudaDeviceProp)
#define PROPERTY(field, attribute) F(struct cudaDeviceProp, field)
#include "runtime/properties.def"
    F(struct cudaDeviceProp, uuid)
    F(struct cudaDeviceProp, luid)
    F(struct cudaDeviceProp, luidDeviceNodeMask)
    F(struct cudaDeviceProp, totalGlobalMem) F(struct cudaDeviceProp, reserved) S(dim3) S(struct cudaExtent) S(
        struct cudaPos) S(struct cudaPitchedPtr) F(struct cudaPitchedPtr, pitch) F(struct cudaPitchedPtr, xsize)
        F(struct cudaPitchedPtr, ysize) S(struct cudaPointerAttributes) F(struct cudaPointerAttributes, device) F(
            struct cudaPointerAttributes,
            devicePointer) F(struct cudaPointerAttributes,
                             hostPointer) S(struct cudaMemLocation) F(struct cudaMemLocation, id)
            S(struct cudaMemcpy3DParms) F(struct cudaMemcpy3DParms, srcPos) F(struct cudaMemcpy3DParms, srcPtr) F(
                struct cudaMemcpy3DParms, dstArray) F(struct cudaMemcpy3DParms, dstPos) F(struct cudaMemcpy3DParms,
                                                                                          dstPtr)
                F(struct cudaMemcpy3DParms, extent) F(struct cudaMemcpy3DParms, kind) S(struct cudaMemcpy3DPeerParms) F(
                    struct cudaMemcpy3DPeerParms,
                    srcDevice) F(struct cudaMemcpy3DPeerParms,
                                 dstArray) F(struct cudaMemcpy3DPeerParms,
                                             dstDevice) F(struct cudaMemcpy3DPeerParms, extent)
                    S(struct cudaMemcpyAttributes) F(struct cudaMemcpyAttributes, flags) S(struct cudaMemcpy3DBatchOp) F(
                        struct cudaMemcpy3DBatchOp,
                        dst) F(struct cudaMemcpy3DBatchOp,
                               extent) S(struct cudaMemPoolProps)
                        F(struct cudaMemPoolProps, location) F(struct cudaMemPoolProps, maxSize) F(
                            struct cudaMemPoolProps,
                            usage) S(struct cudaMemAccessDesc)
                            S(struct cudaMemPoolPtrExportData) S(cudaIpcEventHandle_t) S(cudaIpcMemHandle_t) S(
                                struct cudaChannelFormatDesc) F(struct cudaChannelFormatDesc, f)
                                S(struct cudaResourceDesc) F(struct cudaResourceDesc, res.linear.desc) F(
                                    struct cudaResourceDesc,
                                    res.linear
                                        .sizeInBytes) F(struct cudaResourceDesc, res.pitch2D.width)
                                    F(struct cudaResourceDesc, res.pitch2D.pitchInBytes) F(struct cudaResourceDesc, flags) S(
                                        struct cudaResourceViewDesc) F(struct cudaResourceViewDesc,
                                                                       lastLayer) F(struct cudaResourceViewDesc, width)
                                        S(struct
                                          cudaTextureDesc) F(struct cudaTextureDesc,
                                                             filterMode) F(struct cudaTextureDesc,
                                                                           readMode) F(struct cudaTextureDesc,
                                                                                       sRGB) F(struct cudaTextureDesc,
                                                                                               borderColor) F(struct
                                                                                                              cudaTextureDesc,
                                                                                                              normalizedCoords)
                                            F(struct cudaTextureDesc, maxAnisotropy) F(struct cudaTextureDesc, mipmapFilterMode) F(
                                                struct cudaTextureDesc,
                                                mipmapLevelBias) F(struct cudaTextureDesc,
                                                                   minMipmapLevelClamp) F(struct cudaTextureDesc, disableTrilinearOptimization)
                                                F(struct cudaTextureDesc, seamlessCubemap) S(
                                                    struct
                                                    cudaArraySparseProperties) F(struct cudaArraySparseProperties,
                                                                                 miptailSize) S(struct cudaArrayMemoryRequirements)
                                                    S(struct cudaFuncAttributes) F(struct cudaFuncAttributes, maxThreadsPerBlock) F(
                                                        struct cudaFuncAttributes,
                                                        cacheModeCA) F(struct cudaFuncAttributes,
                                                                       preferredShmemCarveout) F(struct
                                                                                                 cudaFuncAttributes,
                                                                                                 requiredClusterDepth)
                                                        F(struct cudaFuncAttributes, nonPortableClusterSizeAllowed) S(cudaLaunchAttribute) F(
                                                            cudaLaunchAttribute,
                                                            val) S(cudaLaunchConfig_t) F(cudaLaunchConfig_t,
                                                                                         blockDim) F(cudaLaunchConfig_t,
                                                                                                     dynamicSmemBytes)
                                                            F(cudaLaunchConfig_t, stream) F(
                                                                cudaLaunchConfig_t,
                                                                attrs) F(cudaLaunchConfig_t,
                                                                         numAttrs) S(struct cudaKernelNodeParams)
                                                                F(struct cudaKernelNodeParams, sharedMemBytes) F(
                                                                    struct cudaKernelNodeParams,
                                                                    kernelParams) F(struct cudaKernelNodeParams, extra)
                                                                    S(struct cudaMemsetParams) F(
                                                                        struct cudaMemsetParams,
                                                                        elementSize) F(struct cudaMemsetParams,
                                                                                       height) S(struct
                                                                                                 cudaHostNodeParams)
                                                                        S(struct cudaMemAllocNodeParams) F(
                                                                            struct cudaMemAllocNodeParams,
                                                                            bytesize) F(struct cudaMemAllocNodeParams, dptr)
                                                                            S(struct cudaMemcpyNodeParams) F(
                                                                                struct cudaMemcpyNodeParams,
                                                                                copyParams) S(struct cudaConditionalNodeParams)
                                                                                F(struct cudaConditionalNodeParams, phGraph_out) S(
                                                                                    struct
                                                                                    cudaGraphNodeParams) F(struct cudaGraphNodeParams,
                                                                                                           kernel)
                                                                                    F(struct cudaGraphNodeParams, reserved2) S(
                                                                                        cudaGraphEdgeData) F(cudaGraphEdgeData,
                                                                                                             type)
                                                                                        S(cudaGraphInstantiateParams) F(
                                                                                            cudaGraphInstantiateParams,
                                                                                            result_out)
                                                                                            S(cudaGraphExecUpdateResultInfo) F(
                                                                                                cudaGraphExecUpdateResultInfo,
                                                                                                errorFromNode) C(cudaStreamLegacy)
                                                                                                C(cudaStreamPerThread) C(
                                                                                                    cudaMemcpyDefault) C(cudaMemoryTypeManaged)
                                                                                                    C(cudaMemLocationTypeHost) C(
                                                                                                        cudaChannelFormatKindNone)
                                                                                                        C(cudaResourceTypePitch2D) C(
                                                                                                            cudaGraphNodeTypeKernel)
                                                                                                            C(cudaGraphNodeTypeMemFree)
                                                                                                                C(cudaGraphNodeTypeConditional)
#define RT_ERROR(number, name, text) C(name)
#ifdef REAL
#include "runtime/errors.def"
#else
#undef C
#define C(name)
#undef RT_ERROR
#define RT_ERROR(number, name, text) printf("%s %d\n", #name, number);
#include "runtime/errors.def"
#endif
                                                                                                                    return 0;
}
