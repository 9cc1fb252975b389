/* Copies to the host while kernels run, for a thread of ours: a stream of its own and two buffers, so that
 * one is filled while the other is read. What is put is ordered behind the copies started before it. */
#include "device/nvidia/priv.h"

#include <stdlib.h>
#include <string.h>

#define HOST_PORTABLE_MAPPED 3u /* CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP */
#define PUTS 1024u              /* words on their way at most: far more than copies in flight */

struct mg_nv_pipe {
    struct mg_nv_ctx *x;
    cu_stream stream;
    cu_event done[2];
    void *buffer[2];
    uint64_t *words;
    uint32_t n_words;
};

static int enter(const struct mg_nv_ctx *x)
{
    mg_nv.cuCtxSetCurrent(x->ctx); /* the thread is ours */
    return mg_nv_relax();
}

struct mg_nv_pipe *mg_nv_pipe_new(struct mg_nv_ctx *x, size_t bytes)
{
    struct mg_nv_pipe *p = calloc(1, sizeof *p);
    void *at[3] = {0};
    int mode = enter(x);
    bool ok = p && mg_nv.cuStreamCreate(&p->stream, CUSTREAM_NON_BLOCKING) == CUE_SUCCESS;
    for (unsigned i = 0; ok && i < 3; i++) ok = mg_nv.cuMemHostAlloc(&at[i], i < 2 ? bytes : PUTS * sizeof(uint64_t), 0) == CUE_SUCCESS;
    for (unsigned i = 0; ok && i < 2; i++) ok = mg_nv.cuEventCreate(&p->done[i], CUEVENT_DISABLE_TIMING) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    if (!ok) {
        free(p); /* what the driver gave stays: freeing it would wait for the application's work */
        return NULL;
    }
    p->x = x;
    p->buffer[0] = at[0];
    p->buffer[1] = at[1];
    p->words = at[2];
    return p;
}

bool mg_nv_pipe_start(struct mg_nv_pipe *p, unsigned which, uint64_t from, size_t bytes)
{
    int mode = enter(p->x);
    bool ok = !p->x->error && mg_nv.cuMemcpyDtoHAsync_v2(p->buffer[which], from, bytes, p->stream) == CUE_SUCCESS &&
              mg_nv.cuEventRecord(p->done[which], p->stream) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
}

const void *mg_nv_pipe_wait(struct mg_nv_pipe *p, unsigned which)
{
    int mode = enter(p->x);
    bool ok = !p->x->error && mg_nv.cuEventSynchronize(p->done[which]) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok ? p->buffer[which] : NULL;
}

bool mg_nv_pipe_put(struct mg_nv_pipe *p, uint64_t to, uint64_t word)
{
    int mode = enter(p->x);
    uint64_t *from = &p->words[p->n_words++ % PUTS];
    *from = word;
    bool ok = !p->x->error && mg_nv.cuMemcpyHtoDAsync_v2(to, from, sizeof word, p->stream) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
}

bool mg_nv_pipe_write(struct mg_nv_pipe *p, uint64_t to, const void *data, size_t bytes)
{
    int mode = enter(p->x);
    memcpy(p->buffer[0], data, bytes);
    bool ok = !p->x->error && mg_nv.cuMemcpyHtoDAsync_v2(to, p->buffer[0], bytes, p->stream) == CUE_SUCCESS &&
              mg_nv.cuEventRecord(p->done[0], p->stream) == CUE_SUCCESS && mg_nv.cuEventSynchronize(p->done[0]) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
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
    if (ok) memset(at, 0, bytes);
    return ok ? at : NULL;
}
