/* Streams, events and stream capture. */
#include "runtime/priv.h"

#include <stdlib.h>

RT_API(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamCreate(stream, flags));
}
RT_API(cudaStreamCreate, (cudaStream_t * stream))
{
    return cudaStreamCreateWithFlags(stream, 0);
}
RT_API(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamCreateWithPriority(stream, flags, priority));
}
RT_API(cudaStreamDestroy, (cudaStream_t stream))
{
    RT_ENTER();
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
        return mg_rt_fail(cudaErrorInvalidResourceHandle);
    return mg_rt_done(cu.cuStreamDestroy_v2(stream));
}

RT_API(cudaStreamSynchronize, (cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamSynchronize(stream));
}
RT_API_PTSZ(cudaStreamSynchronize, (cudaStream_t stream), (RT_PT(stream)))

RT_API(cudaStreamQuery, (cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamQuery(stream));
}
RT_API_PTSZ(cudaStreamQuery, (cudaStream_t stream), (RT_PT(stream)))

RT_API(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamWaitEvent(stream, event, flags));
}
RT_API_PTSZ(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
            (RT_PT(stream), event, flags))

/* The runtime's callback gets a cudaError_t, the driver's a result. */
struct callback {
    cudaStreamCallback_t fn;
    void *user;
};

static void run_callback(cu_stream stream, cu_result r, void *user)
{
    struct callback c = *(struct callback *)user;
    free(user);
    c.fn(stream, mg_rt_from_driver(r), c.user);
}

RT_API(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t fn, void *user, unsigned flags))
{
    RT_ENTER();
    struct callback *c = fn ? malloc(sizeof *c) : NULL;
    if (!c) return mg_rt_fail(fn ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
    *c = (struct callback){fn, user};
    cu_result r = cu.cuStreamAddCallback(stream, run_callback, c, flags);
    if (r) free(c);
    return mg_rt_done(r);
}
RT_API_PTSZ(cudaStreamAddCallback, (cudaStream_t stream, cudaStreamCallback_t fn, void *user, unsigned flags),
            (RT_PT(stream), fn, user, flags))

RT_API(cudaStreamAttachMemAsync, (cudaStream_t stream, void *p, size_t bytes, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamAttachMemAsync(stream, (cu_ptr)(uintptr_t)p, bytes, flags));
}
RT_API_PTSZ(cudaStreamAttachMemAsync, (cudaStream_t stream, void *p, size_t bytes, unsigned flags),
            (RT_PT(stream), p, bytes, flags))

RT_API(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamGetFlags(stream, flags));
}
RT_API_PTSZ(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), (RT_PT(stream), flags))

RT_API(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamGetId(stream, id));
}
RT_API_PTSZ(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (RT_PT(stream), id))

RT_API(cudaStreamGetPriority, (cudaStream_t stream, int *priority))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamGetPriority(stream, priority));
}
RT_API_PTSZ(cudaStreamGetPriority, (cudaStream_t stream, int *priority), (RT_PT(stream), priority))

RT_API(cudaStreamGetDevice, (cudaStream_t stream, int *device))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamGetDevice(stream, device));
}
RT_API_PTSZ(cudaStreamGetDevice, (cudaStream_t stream, int *device), (RT_PT(stream), device))

RT_API(cudaStreamCopyAttributes, (cudaStream_t dst, cudaStream_t src))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamCopyAttributes(dst, src));
}
RT_API_PTSZ(cudaStreamCopyAttributes, (cudaStream_t dst, cudaStream_t src), (RT_PT(dst), RT_PT(src)))

_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(union cu_launch_value), "passed on as it is");

RT_API(cudaStreamGetAttribute, (cudaStream_t stream, int id, cudaLaunchAttributeValue *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamGetAttribute(stream, id, (union cu_launch_value *)(void *)value));
}
RT_API_PTSZ(cudaStreamGetAttribute, (cudaStream_t stream, int id, cudaLaunchAttributeValue *value),
            (RT_PT(stream), id, value))

RT_API(cudaStreamSetAttribute, (cudaStream_t stream, int id, const cudaLaunchAttributeValue *value))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamSetAttribute(stream, id, (const union cu_launch_value *)(const void *)value));
}
RT_API_PTSZ(cudaStreamSetAttribute, (cudaStream_t stream, int id, const cudaLaunchAttributeValue *value),
            (RT_PT(stream), id, value))

/* ---- capture ---- */

RT_API(cudaStreamBeginCapture, (cudaStream_t stream, int mode))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamBeginCapture_v2(stream, mode));
}
RT_API_PTSZ(cudaStreamBeginCapture, (cudaStream_t stream, int mode), (RT_PT(stream), mode))

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(struct cu_edge_data), "passed on as they are");

RT_API(cudaStreamBeginCaptureToGraph, (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
                                       const cudaGraphEdgeData *edges, size_t n, int mode))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamBeginCaptureToGraph(stream, graph, nodes,
                                                     (const struct cu_edge_data *)(const void *)edges, n, mode));
}
RT_API_PTSZ(cudaStreamBeginCaptureToGraph,
            (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges,
             size_t n, int mode),
            (RT_PT(stream), graph, nodes, edges, n, mode))

RT_API(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamEndCapture(stream, graph));
}
RT_API_PTSZ(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (RT_PT(stream), graph))

RT_API(cudaStreamIsCapturing, (cudaStream_t stream, int *status))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamIsCapturing(stream, status));
}
RT_API_PTSZ(cudaStreamIsCapturing, (cudaStream_t stream, int *status), (RT_PT(stream), status))

RT_API(cudaStreamGetCaptureInfo, (cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                  const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *n))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamGetCaptureInfo_v3(stream, status, id, graph, (const cu_node **)(void *)nodes,
                                                   (const struct cu_edge_data **)(void *)edges, n));
}
RT_API_PTSZ(cudaStreamGetCaptureInfo,
            (cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
             const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *n),
            (RT_PT(stream), status, id, graph, nodes, edges, n))

RT_API(cudaStreamUpdateCaptureDependencies,
       (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t n, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuStreamUpdateCaptureDependencies_v2(
        stream, nodes, (const struct cu_edge_data *)(const void *)edges, n, flags));
}
RT_API_PTSZ(cudaStreamUpdateCaptureDependencies,
            (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t n, unsigned flags),
            (RT_PT(stream), nodes, edges, n, flags))

RT_API(cudaThreadExchangeStreamCaptureMode, (int *mode))
{
    RT_ENTER();
    return mg_rt_done(cu.cuThreadExchangeStreamCaptureMode(mode));
}

/* ---- events ---- */

RT_API(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventCreate(event, flags));
}
RT_API(cudaEventCreate, (cudaEvent_t * event))
{
    return cudaEventCreateWithFlags(event, 0);
}
RT_API(cudaEventDestroy, (cudaEvent_t event))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventDestroy_v2(event));
}
RT_API(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventRecord(event, stream));
}
RT_API_PTSZ(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, RT_PT(stream)))
RT_API(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventRecordWithFlags(event, stream, flags));
}
RT_API_PTSZ(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
            (event, RT_PT(stream), flags))
RT_API(cudaEventQuery, (cudaEvent_t event))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventQuery(event));
}
RT_API(cudaEventSynchronize, (cudaEvent_t event))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventSynchronize(event));
}
RT_API(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end))
{
    RT_ENTER();
    return mg_rt_done(cu.cuEventElapsedTime(ms, start, end));
}
