/* Calls that change what kernels see in ways that no operation of a capture holds: passed on as they are; every launch
 * behind one is named with it and refused at replay. Their arguments are words: more are passed on than some have,
 * which the calling convention allows. */
#include "inject/capture/capture.h"

typedef uint64_t w;
#define MISSED(name, why)                                                                                              \
    MG_CAPTURE(name, w a, w b, w c, w d, w e, w f, w g, w h, w i, w j, w k, w l)                                       \
    {                                                                                                                  \
        cu_result rc = NEXT(name)(a, b, c, d, e, f, g, h, i, j, k, l);                                                 \
        if (rc == CUE_SUCCESS && mg_capture_looks()) {                                                                 \
            mg_capture_lock();                                                                                         \
            mg_capture_miss(why, true);                                                                                \
            mg_capture_unlock();                                                                                       \
        }                                                                                                              \
        return rc;                                                                                                     \
    }
#define BATCH     "copies in three dimensions in batches (cuMemcpy3DBatchAsync) are not captured"
#define VALUES    "values written by graphs (cuGraphAddBatchMemOpNode) are not captured"
#define SPARSE    "sparse arrays (cuMemMapArrayAsync) are not captured"
#define UNPACKED  "memory that the driver unpacks (cuMemBatchDecompressAsync) is not captured"
#define MULTICAST "memory of several devices at one address (cuMulticastBindMem) is not captured"
#define NARROW    "calls as of CUDA 3, with addresses of 32 bits, are not captured"
#define FOREIGN   "memory of another process or interface is not captured"
#define OLD       "launches as of CUDA 3 (cuLaunchGrid) are not captured"
#define REFERENCE "texture and surface references are not captured"
MISSED(cuMemcpy3DBatchAsync_v2, BATCH)
MISSED(cuMemcpy3DBatchAsync_v2_ptsz, BATCH)
MISSED(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync is not captured")
MISSED(cuMemcpyHtoAAsync_v2_ptsz, "cuMemcpyHtoAAsync is not captured")
MISSED(cuIpcOpenMemHandle_v2, FOREIGN)
MISSED(cuImportExternalMemory, FOREIGN)
MISSED(cuMemImportFromShareableHandle, FOREIGN)
MISSED(cuMemPoolImportPointer, FOREIGN)
MISSED(cuLaunchCooperativeKernelMultiDevice, "launches on several devices are not captured")
MISSED(cuLaunchGrid, OLD)
MISSED(cuLaunchGridAsync, OLD)
MISSED(cuLaunch, OLD)
MISSED(cuTexRefSetArray, REFERENCE)
MISSED(cuTexRefSetAddress_v2, REFERENCE)
MISSED(cuTexRefSetAddress2D_v3, REFERENCE)
MISSED(cuTexRefSetMipmappedArray, REFERENCE)
MISSED(cuSurfRefSetArray, REFERENCE)
MISSED(cuGraphExecBatchMemOpNodeSetParams, VALUES)
MISSED(cuMemcpy3DBatchAsync, BATCH)
MISSED(cuMemcpy3DBatchAsync_ptsz, BATCH)
MISSED(cuMemMapArrayAsync, SPARSE)
MISSED(cuMemMapArrayAsync_ptsz, SPARSE)
MISSED(cuMemBatchDecompressAsync, UNPACKED)
MISSED(cuMemBatchDecompressAsync_ptsz, UNPACKED)
MISSED(cuMulticastBindMem, MULTICAST)
MISSED(cuMulticastBindAddr, MULTICAST)
MISSED(cuIpcOpenMemHandle, FOREIGN)
MISSED(cuGraphicsMapResources, FOREIGN)
MISSED(cuGraphicsMapResources_ptsz, FOREIGN)
MISSED(cuTexRefSetAddress, REFERENCE)
MISSED(cuTexRefSetAddress2D, REFERENCE)
MISSED(cuTexRefSetAddress2D_v2, REFERENCE)
MISSED(cuArray3DCreate, NARROW)
MISSED(cuArrayCreate, NARROW)
MISSED(cuMemAlloc, NARROW)
MISSED(cuMemAllocHost, NARROW)
MISSED(cuMemAllocPitch, NARROW)
MISSED(cuMemFree, NARROW)
MISSED(cuMemcpy2D, NARROW)
MISSED(cuMemcpy2DAsync, NARROW)
MISSED(cuMemcpy2DUnaligned, NARROW)
MISSED(cuMemcpy3D, NARROW)
MISSED(cuMemcpy3DAsync, NARROW)
MISSED(cuMemcpyAtoA, NARROW)
MISSED(cuMemcpyAtoD, NARROW)
MISSED(cuMemcpyDtoA, NARROW)
MISSED(cuMemcpyDtoD, NARROW)
MISSED(cuMemcpyDtoDAsync, NARROW)
MISSED(cuMemcpyHtoA, NARROW)
MISSED(cuMemcpyHtoAAsync, NARROW)
MISSED(cuMemcpyHtoD, NARROW)
MISSED(cuMemcpyHtoDAsync, NARROW)
MISSED(cuMemsetD8, NARROW)
MISSED(cuMemsetD16, NARROW)
MISSED(cuMemsetD32, NARROW)
MISSED(cuMemsetD2D8, NARROW)
MISSED(cuMemsetD2D16, NARROW)
MISSED(cuMemsetD2D32, NARROW)
MISSED(cuMemHostGetDevicePointer, NARROW)
MISSED(cuModuleGetGlobal, NARROW)
MISSED(cuCtxDetach, "contexts that are detached (cuCtxDetach) are not captured")
