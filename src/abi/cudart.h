/* Types and constants of the CUDA 13 runtime's binary interface, in our own declarations: what
 * src/runtime (our libcudart.so.13) receives from and hands to programs built by nvcc or clang.
 * No NVIDIA header is needed; tests/runtime/layout.c asserts every size and offset against the
 * real header where one is installed. Enumerations that cross the interface are plain int here
 * (same size); only the values the runtime acts on have names. Entry points are not declared
 * here: src/runtime/exports.def lists them and each is declared where it is defined. */
#ifndef MG_ABI_CUDART_H
#define MG_ABI_CUDART_H

#include <stddef.h>
#include <stdint.h>

/* ---- errors (the numbers of the driver's results since CUDA 10.1, plus the runtime's own) ---- */
typedef int cudaError_t;
enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorCudartUnloading = 4,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidPitchValue = 12,
    cudaErrorInvalidSymbol = 13,
    cudaErrorInvalidHostPointer = 16,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidTexture = 18,
    cudaErrorInvalidTextureBinding = 19,
    cudaErrorInvalidChannelDescriptor = 20,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorMissingConfiguration = 52,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidKernelImage = 200,
    cudaErrorDeviceUninitialized = 201,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorSymbolNotFound = 500,
    cudaErrorNotReady = 600,
    cudaErrorSetOnActiveProcess = 708,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999,
};

/* ---- handles ---- */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUlib_st *cudaLibrary_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUuserObject_st *cudaUserObject_t;
typedef struct CUexternalSemaphore_st *cudaExternalSemaphore_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef const struct cudaMipmappedArray *cudaMipmappedArray_const_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef unsigned long long cudaGraphConditionalHandle;
typedef void (*cudaHostFn_t)(void *user);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *user);

#define cudaStreamLegacy    ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

/* ---- geometry ---- */
typedef struct mg_cudart_dim3 {
    unsigned x, y, z;
} dim3;
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize; /* bytes a row; logical width and height */
};

/* ---- memory ---- */
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged,
};
struct cudaPointerAttributes {
    int type, device; /* enum cudaMemoryType */
    void *devicePointer, *hostPointer;
    long reserved[8];
};
struct cudaMemLocation {
    int type, id; /* 0 none, 1 device, 2 host, 3 NUMA node, 4 current NUMA node */
};
enum { cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2 };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2 };
struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    int kind;
};
struct cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    int dstDevice;
    struct cudaExtent extent;
};
struct cudaMemcpyAttributes {
    int srcAccessOrder;
    struct cudaMemLocation srcLocHint, dstLocHint;
    unsigned flags;
};
struct cudaMemcpy3DOperand {
    int type; /* 1 pointer, 2 array */
    union {
        struct {
            void *ptr;
            size_t rowLength, layerHeight;
            struct cudaMemLocation locHint;
        } ptr;
        struct {
            cudaArray_t array;
            struct {
                size_t x, y, z;
            } offset;
        } array;
    } op;
};
struct cudaMemcpy3DBatchOp {
    struct cudaMemcpy3DOperand src, dst;
    struct cudaExtent extent;
    int srcAccessOrder;
    unsigned flags;
};
struct cudaMemPoolProps {
    int allocType, handleTypes;
    struct cudaMemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
struct cudaMemAccessDesc {
    struct cudaMemLocation location;
    int flags;
};
struct cudaMemPoolPtrExportData {
    unsigned char reserved[64];
};
typedef struct {
    char reserved[64];
} cudaIpcEventHandle_t, cudaIpcMemHandle_t;

/* ---- arrays, textures, surfaces ---- */
enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned,
    cudaChannelFormatKindUnsigned,
    cudaChannelFormatKindFloat,
    cudaChannelFormatKindNone,
};
struct cudaChannelFormatDesc {
    int x, y, z, w; /* bits of each channel */
    int f;          /* enum cudaChannelFormatKind */
};
enum cudaResourceType {
    cudaResourceTypeArray,
    cudaResourceTypeMipmappedArray,
    cudaResourceTypeLinear,
    cudaResourceTypePitch2D,
};
struct cudaResourceDesc {
    int resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            cudaMipmappedArray_t mipmap;
        } mipmap;
        struct {
            void *devPtr;
            struct cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            struct cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        int reserved[32];
    } res;
    unsigned flags;
};
struct cudaResourceViewDesc {
    int format;
    size_t width, height, depth;
    unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
    unsigned reserved[16];
};
struct cudaTextureDesc {
    int addressMode[3];
    int filterMode;
    int readMode; /* 0 as stored, 1 normalised to a float */
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    int seamlessCubemap;
};
struct cudaArraySparseProperties {
    unsigned tileWidth, tileHeight, tileDepth;
    unsigned miptailFirstLevel;
    unsigned long long miptailSize;
    unsigned flags;
    unsigned reserved[4];
};
struct cudaArrayMemoryRequirements {
    size_t size, alignment;
    unsigned reserved[4];
};

/* ---- devices ---- */
typedef struct {
    char bytes[16];
} cudaUUID_t;
struct cudaDeviceProp { /* CUDA 13: without clockRate and its like, which 12 still had */
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory;
    int maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture2DMipmap[2];
    int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3];
    int maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2];
    int maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
    int globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported, pageableMemoryAccess, concurrentManagedAccess;
    int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers, deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported;
    int reserved[56];
};

/* ---- kernels ---- */
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
    int reserved[16];
};
typedef union {
    char pad[64];
    int cooperative;
    unsigned clusterDim[3];
    unsigned word[16];
} cudaLaunchAttributeValue;
typedef struct {
    int id; /* same numbers as the driver's */
    char pad[4];
    cudaLaunchAttributeValue val;
} cudaLaunchAttribute;
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;

/* ---- graphs ---- */
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};
struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
};
struct cudaMemAllocNodeParams {
    struct cudaMemPoolProps poolProps;
    const struct cudaMemAccessDesc *accessDescs;
    size_t accessDescCount, bytesize;
    void *dptr;
};
struct cudaMemcpyNodeParams {
    int flags;
    int reserved[3];
    struct cudaMemcpy3DParms copyParams;
};
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    int type;
    unsigned size;
    cudaGraph_t *phGraph_out;
};
struct cudaGraphNodeParams {
    int type; /* same numbers as the driver's node types */
    int reserved0[3];
    union {
        long long reserved1[29];
        struct cudaKernelNodeParams kernel;
        struct cudaMemcpyNodeParams memcpy;
        struct cudaMemsetParams memset;
        struct cudaHostNodeParams host;
        struct {
            cudaGraph_t graph;
            int ownership;
        } graph;
        cudaEvent_t event;
        struct cudaMemAllocNodeParams alloc;
        void *free;
        struct cudaConditionalNodeParams conditional;
    };
    long long reserved2;
};
enum {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeGraph = 4,
    cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6,
    cudaGraphNodeTypeEventRecord = 7,
    cudaGraphNodeTypeMemAlloc = 10,
    cudaGraphNodeTypeMemFree = 11,
    cudaGraphNodeTypeConditional = 13,
};
typedef struct {
    unsigned char from_port, to_port, type, reserved[5];
} cudaGraphEdgeData;
typedef struct {
    unsigned long long flags;
    cudaStream_t uploadStream;
    cudaGraphNode_t errNode_out;
    int result_out;
} cudaGraphInstantiateParams;
typedef struct {
    int result;
    cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

#endif
