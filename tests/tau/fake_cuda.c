/* A CUDA driver with a clock of its own, for the TAUcuda library: work is so many microseconds of a stream's time, an
 * event takes the stream's time at which it is recorded. An event answers "not ready" as often as fake_slow says. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "abi/cu.h"
#include "fake_cuda.h"

#define API __attribute__((visibility("default")))
struct CUctx_st {
    int device;
    double default_us;
};
struct CUstream_st {
    cu_ctx ctx;
    double now_us;
    bool capturing, destroyed;
};
struct CUevent_st {
    double at_us;
    int asked;
    bool recorded;
};

static struct CUctx_st contexts[2] = {{0, 0}, {1, 0}};
static __thread cu_ctx current;
int fake_slow, fake_waits, fake_events;

cu_stream fake_stream(void)
{
    cu_stream s = calloc(1, sizeof *s);
    s->ctx = current ? current : &contexts[0];
    return s;
}
void fake_device(int device)
{
    current = &contexts[device];
}
void fake_work(cu_stream s, double us)
{
    *(s ? &s->now_us : &(current ? current : contexts)->default_us) += us;
}
void fake_capture(cu_stream s, int on)
{
    s->capturing = on;
}
void fake_destroy(cu_stream s)
{
    s->destroyed = true;
}

API cu_result cuInit(unsigned flags)
{
    return flags ? CUE_INVALID_VALUE : CUE_SUCCESS;
}
API cu_result cuCtxGetCurrent(cu_ctx *ctx)
{
    return *ctx = current, CUE_SUCCESS;
}
API cu_result cuCtxSetCurrent(cu_ctx ctx)
{
    return current = ctx, CUE_SUCCESS;
}
API cu_result cuCtxGetDevice(cu_device *device)
{
    return *device = current->device, CUE_SUCCESS;
}
API cu_result cuDeviceGet(cu_device *device, int ordinal)
{
    return *device = ordinal, CUE_SUCCESS;
}
API cu_result cuDevicePrimaryCtxRetain(cu_ctx *ctx, cu_device device)
{
    return *ctx = &contexts[device], CUE_SUCCESS;
}
API cu_result cuStreamGetCtx(cu_stream s, cu_ctx *ctx)
{
    return s->destroyed ? CUE_INVALID_HANDLE : (*ctx = s->ctx, CUE_SUCCESS);
}
API cu_result cuStreamIsCapturing(cu_stream s, int *status)
{
    return *status = s && s->capturing, CUE_SUCCESS;
}
API cu_result cuEventCreate(cu_event *event, unsigned flags)
{
    (void)flags;
    fake_events++;
    return *event = calloc(1, sizeof **event), CUE_SUCCESS;
}
API cu_result cuEventDestroy_v2(cu_event event)
{
    return fake_events--, free(event), CUE_SUCCESS;
}
API cu_result cuEventRecord(cu_event event, cu_stream s)
{
    *event = (struct CUevent_st){s ? s->now_us : current->default_us, 0, true};
    return CUE_SUCCESS;
}
API cu_result cuEventQuery(cu_event event)
{
    return event->asked++ < fake_slow ? CUE_NOT_READY : CUE_SUCCESS;
}
API cu_result cuEventSynchronize(cu_event event)
{
    return fake_waits++, event->asked = fake_slow, CUE_SUCCESS;
}
API cu_result cuEventElapsedTime(float *ms, cu_event from, cu_event to)
{
    if (!from->recorded || !to->recorded) return CUE_INVALID_HANDLE;
    return *ms = (float)((to->at_us - from->at_us) / 1000), CUE_SUCCESS;
}
API cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int now;
    int before = now;
    now = *mode;
    return *mode = before, CUE_SUCCESS;
}
