/* The few calls of the CUDA driver that the TAUcuda library makes, found at run time. */
#ifndef MG_TAU_DRIVER_H
#define MG_TAU_DRIVER_H

#include "abi/cu.h"
#include "base/compiler.h"

#define TAU_DRIVER_CALLS(X)                                                                                            \
    X(cuInit, (unsigned flags))                                                                                        \
    X(cuCtxGetCurrent, (cu_ctx * ctx))                                                                                 \
    X(cuCtxSetCurrent, (cu_ctx ctx))                                                                                   \
    X(cuCtxGetDevice, (cu_device * device))                                                                            \
    X(cuDeviceGet, (cu_device * device, int ordinal))                                                                  \
    X(cuDevicePrimaryCtxRetain, (cu_ctx * ctx, cu_device device))                                                      \
    X(cuStreamGetCtx, (cu_stream stream, cu_ctx * ctx))                                                                \
    X(cuStreamIsCapturing, (cu_stream stream, int *status))                                                            \
    X(cuEventCreate, (cu_event * event, unsigned flags))                                                               \
    X(cuEventDestroy_v2, (cu_event event))                                                                             \
    X(cuEventRecord, (cu_event event, cu_stream stream))                                                               \
    X(cuEventQuery, (cu_event event))                                                                                  \
    X(cuEventSynchronize, (cu_event event))                                                                            \
    X(cuEventElapsedTime, (float *ms, cu_event from, cu_event to))                                                     \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))

struct tau_driver {
#define X(name, args) cu_result(*name) args;
    TAU_DRIVER_CALLS(X)
#undef X
};
/* NULL: there is no driver, or it lacks a call. */
const struct tau_driver *tau_driver(void);

#endif
