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
#define BATCH     "copies in batches (cuMemcpyBatchAsync) are not captured"
#define PEER      "copies between devices are not captured"
#define VALUES    "values written by streams (cuStreamWriteValue) are not captured"
#define FOREIGN   "memory of another process or interface is not captured"
#define OLD       "launches as of CUDA 3 (cuLaunchGrid) are not captured"
#define REFERENCE "texture and surface references are not captured"
MISSED(cuMemcpyBatchAsync_v2, BATCH)
MISSED(cuMemcpyBatchAsync_v2_ptsz, BATCH)
MISSED(cuMemcpy3DBatchAsync_v2, BATCH)
MISSED(cuMemcpy3DBatchAsync_v2_ptsz, BATCH)
MISSED(cuMemcpy3DPeer, PEER)
MISSED(cuMemcpy3DPeer_ptds, PEER)
MISSED(cuMemcpy3DPeerAsync, PEER)
MISSED(cuMemcpy3DPeerAsync_ptsz, PEER)
MISSED(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync is not captured")
MISSED(cuMemcpyHtoAAsync_v2_ptsz, "cuMemcpyHtoAAsync is not captured")
MISSED(cuStreamWriteValue32_v2, VALUES)
MISSED(cuStreamWriteValue32_v2_ptsz, VALUES)
MISSED(cuStreamWriteValue64_v2, VALUES)
MISSED(cuStreamWriteValue64_v2_ptsz, VALUES)
MISSED(cuStreamBatchMemOp_v2, VALUES)
MISSED(cuStreamBatchMemOp_v2_ptsz, VALUES)
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
