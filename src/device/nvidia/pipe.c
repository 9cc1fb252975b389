/* Copies to the host while kernels run, for a thread of ours: streams of its own, so that one copy begins
 * while another ends, and marks behind what was started. */
#include "device/nvidia/priv.h"

#include <stdlib.h>
#include <string.h>

#define HOST_PORTABLE_MAPPED 3u /* CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP */

enum { STREAMS = 2 };

struct mg_nv_pipe {
    struct mg_nv_ctx *x;
    cu_stream to_host[STREAMS], to_device;
    cu_event marks[];
};

void mg_nv_enter(struct mg_nv_ctx *x)
{
    if (!x->error)
        mg_nv.cuCtxSetCurrent(x->ctx);
}

struct mg_nv_pipe *mg_nv_pipe_new(struct mg_nv_ctx *x, uint32_t n)
{
    struct mg_nv_pipe *p = calloc(1, sizeof *p + n * sizeof *p->marks);
    int mode = mg_nv_relax();
    int least = 0, greatest = 0; /* what the application's streams wait for must not stand in front of ours */
    bool ok = p && mg_nv.cuCtxGetStreamPriorityRange(&least, &greatest) == CUE_SUCCESS &&
              mg_nv.cuStreamCreateWithPriority(&p->to_device, CUSTREAM_NON_BLOCKING, greatest) == CUE_SUCCESS;
    for (uint32_t i = 0; ok && i < STREAMS; i++)
        ok = mg_nv.cuStreamCreateWithPriority(&p->to_host[i], CUSTREAM_NON_BLOCKING, greatest) == CUE_SUCCESS;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = mg_nv.cuEventCreate(&p->marks[i], CUEVENT_DISABLE_TIMING) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    if (!ok) { /* what the driver gave stays */
        free(p);
        return NULL;
    }
    p->x = x;
    return p;
}

bool mg_nv_pipe_send(struct mg_nv_pipe *p, uint64_t to, const void *from, size_t bytes)
{
    int mode = mg_nv_relax();
    bool ok = !p->x->error && mg_nv.cuMemcpyHtoDAsync_v2(to, from, bytes, p->to_device) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
}

bool mg_nv_pipe_start(struct mg_nv_pipe *p, uint32_t mark, void *to, uint64_t from, size_t bytes)
{
    int mode = mg_nv_relax();
    bool ok = !p->x->error && mg_nv.cuMemcpyDtoHAsync_v2(to, from, bytes, p->to_host[mark % STREAMS]) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
}

bool mg_nv_pipe_mark(struct mg_nv_pipe *p, uint32_t mark)
{
    int mode = mg_nv_relax();
    bool ok = !p->x->error && mg_nv.cuEventRecord(p->marks[mark], p->to_host[mark % STREAMS]) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
}

int mg_nv_pipe_over(struct mg_nv_pipe *p, uint32_t mark)
{
    cu_result rc = CUE_UNKNOWN;
    int mode = mg_nv_relax();
    if (!p->x->error)
        rc = mg_nv.cuEventQuery(p->marks[mark]);
    mg_nv_unrelax(mode);
    return rc == CUE_SUCCESS ? 1 : rc == CUE_NOT_READY ? 0 : -1;
}

uint64_t mg_nv_memory(struct mg_nv_ctx *x, size_t bytes)
{
    cu_ptr at = 0;
    int mode = mg_nv_relax();
    bool ok = !x->error && mg_nv.cuMemAlloc_v2(&at, bytes) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok ? at : 0;
}

void *mg_nv_host_memory(struct mg_nv_ctx *x, size_t bytes)
{
    void *at = NULL;
    int mode = mg_nv_relax();
    bool ok = !x->error && mg_nv.cuMemHostAlloc(&at, bytes, HOST_PORTABLE_MAPPED) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok ? at : NULL;
}

bool mg_nv_write(struct mg_nv_ctx *x, uint64_t to, const void *data, size_t bytes)
{
    int mode = mg_nv_relax();
    pthread_mutex_lock(&x->copying);
    bool ok = !x->error && mg_nv_staging(x, bytes);
    if (ok) {
        memcpy(x->staging, data, bytes);
        ok = mg_nv.cuMemcpyHtoDAsync_v2(to, x->staging, bytes, x->copy) == CUE_SUCCESS && mg_nv_copies_wait(x);
    }
    pthread_mutex_unlock(&x->copying);
    mg_nv_unrelax(mode);
    return ok;
}

uint32_t mg_nv_warps(const struct mg_nv_ctx *x, uint32_t *multiprocessors)
{
    int sms = 0, threads = 0;
    mg_nv.cuDeviceGetAttribute(&sms, 16 /* MULTIPROCESSOR_COUNT */, x->device);
    mg_nv.cuDeviceGetAttribute(&threads, 39 /* MAX_THREADS_PER_MULTIPROCESSOR */, x->device);
    *multiprocessors = (uint32_t)sms;
    return (uint32_t)(sms * (threads / 32));
}
