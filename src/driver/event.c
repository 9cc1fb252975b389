/* Events: a record is a task that does nothing but note the time; an event names its last record. */
#include "driver/priv.h"

#include <stdlib.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

static cu_result cuEventCreate(cu_event *out, unsigned flags)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(out && flags <= 7);
    CHECK(!(flags & CUEVENT_INTERPROCESS) || (flags & CUEVENT_DISABLE_TIMING));
    struct CUevent_st *e = calloc(1, sizeof *e);
    if (!e) return CUE_OUT_OF_MEMORY;
    e->ctx = ctx;
    e->device = ctx->device;
    e->flags = flags;
    mg_obj_add(e, MG_OBJ_EVENT);
    *out = e;
    return CUE_SUCCESS;
}

static cu_result cuEventDestroy_v2(cu_event e)
{
    cu_result r = mg_enter(NULL);
    if (r == CUE_NOT_INITIALIZED) return r;
    if (!mg_obj_del(e, MG_OBJ_EVENT)) return CUE_INVALID_HANDLE;
    mg_lock();
    mg_task_unref(e->task); /* waits already queued hold on to the task, not to the event */
    mg_unlock();
    mg_vec_release(&e->captured);
    free(e);
    return CUE_SUCCESS;
}
static cu_result cuEventDestroy(cu_event e)
{
    return cuEventDestroy_v2(e);
}

/* Lock held. What an event record in a stream or graph does: the event now stands for t. */
void mg_event_set(struct CUevent_st *e, struct mg_task *t)
{
    mg_task_unref(e->task);
    e->task = mg_task_ref(t);
    e->capture_id = 0;
    e->captured.n = 0;
}

static cu_result record(cu_event e, cu_stream h, unsigned flags, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(flags <= CUEVENT_EXTERNAL);
    if (!mg_obj_is(e, MG_OBJ_EVENT) || e->ctx != s->ctx) return CUE_INVALID_HANDLE;
    mg_lock();
    if (s->capture) {
        r = mg_capture_record(s, e, flags == CUEVENT_EXTERNAL);
    } else if (s == s->ctx->legacy && s->ctx->n_captures) {
        r = mg_capture_implicit(s->ctx);
    } else {
        struct mg_work op = {.kind = MG_OPK_RECORD};
        struct mg_task *t = mg_task_new(s->ctx, &op);
        if (t) {
            mg_stream_order(s, t);
            mg_event_set(e, t);
            mg_task_submit(t);
            mg_task_unref(t);
        } else {
            r = CUE_OUT_OF_MEMORY;
        }
    }
    mg_unlock();
    return r;
}
cu_result mg_event_record(struct CUevent_st *e, struct CUstream_st *s)
{
    return record(e, s == s->ctx->legacy ? NULL : s, 0, 0);
}

MG_BOTH(cuEventRecord, ptsz, (cu_event e, cu_stream s), record(e, s, 0, PT))
MG_BOTH(cuEventRecordWithFlags, ptsz, (cu_event e, cu_stream s, unsigned flags), record(e, s, flags, PT))

static cu_result wait_event(cu_stream h, cu_event e, unsigned flags, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(flags <= CUEVENT_EXTERNAL);
    if (!mg_obj_is(e, MG_OBJ_EVENT)) return CUE_INVALID_HANDLE;
    mg_lock();
    if (s->capture || e->capture_id) {
        r = mg_capture_wait(s, e, flags == CUEVENT_EXTERNAL);
    } else if (s == s->ctx->legacy && s->ctx->n_captures) {
        r = mg_capture_implicit(s->ctx);
    } else if (e->task && !e->task->done) {
        struct mg_work op = {.kind = MG_OPK_WAIT};
        struct mg_task *t = mg_task_new(s->ctx, &op);
        if (t) {
            mg_task_wait_for(t, e->task);
            mg_stream_order(s, t);
            mg_task_submit(t);
            mg_task_unref(t);
        } else {
            r = CUE_OUT_OF_MEMORY;
        }
    }
    mg_unlock();
    return r;
}
MG_BOTH(cuStreamWaitEvent, ptsz, (cu_stream s, cu_event e, unsigned flags), wait_event(s, e, flags, PT))

static cu_result enter_event(cu_event e)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    if (!mg_obj_is(e, MG_OBJ_EVENT)) return CUE_INVALID_HANDLE;
    return CUE_SUCCESS;
}

static cu_result cuEventQuery(cu_event e)
{
    cu_result r = enter_event(e);
    if (r) return r;
    mg_lock();
    if (e->capture_id)
        r = CUE_CAPTURED_EVENT;
    else if (e->task && !e->task->done)
        r = CUE_NOT_READY;
    else if (e->task)
        r = e->ctx->error;
    mg_unlock();
    return r;
}

static cu_result cuEventSynchronize(cu_event e)
{
    cu_result r = enter_event(e);
    if (r) return r;
    mg_lock();
    if (e->capture_id) {
        r = CUE_CAPTURED_EVENT;
    } else if (e->task) {
        struct mg_task *t = mg_task_ref(e->task);
        mg_task_await(t);
        mg_task_unref(t);
        r = mg_obj_is(e->ctx, MG_OBJ_CTX) ? e->ctx->error : CUE_SUCCESS;
    }
    mg_unlock();
    mg_print_flush();
    return r;
}

static cu_result cuEventElapsedTime(float *ms, cu_event a, cu_event b)
{
    cu_result r = enter_event(a);
    if (!r) r = enter_event(b);
    if (r) return r;
    CHECK(ms);
    if ((a->flags | b->flags) & CUEVENT_DISABLE_TIMING || a->device != b->device) return CUE_INVALID_HANDLE;
    mg_lock();
    if (!a->task || !b->task)
        r = CUE_INVALID_HANDLE;
    else if (!a->task->done || !b->task->done)
        r = CUE_NOT_READY;
    else
        *ms = (float)((double)((int64_t)(b->task->end_ns - a->task->end_ns)) * 1e-6);
    mg_unlock();
    return r;
}
static cu_result cuEventElapsedTime_v2(float *ms, cu_event a, cu_event b)
{
    return cuEventElapsedTime(ms, a, b);
}

static cu_result cuCtxRecordEvent(cu_ctx ctx, cu_event e)
{
    if (!mg_obj_is(ctx, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    if (!mg_obj_is(e, MG_OBJ_EVENT) || e->ctx != ctx) return CUE_INVALID_HANDLE;
    mg_lock();
    struct mg_work op = {.kind = MG_OPK_RECORD};
    struct mg_task *t = mg_task_new(ctx, &op);
    if (t) {
        for (uint32_t i = 0; i < ctx->streams.n; i++) mg_task_wait_for(t, ctx->streams.at[i]->tail);
        mg_event_set(e, t);
        mg_task_submit(t);
        mg_task_unref(t);
    }
    mg_unlock();
    return t ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result cuCtxWaitEvent(cu_ctx ctx, cu_event e)
{
    if (!mg_obj_is(ctx, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    if (!mg_obj_is(e, MG_OBJ_EVENT)) return CUE_INVALID_HANDLE;
    cu_result r = CUE_SUCCESS;
    mg_lock();
    for (uint32_t i = 0; e->task && i < ctx->streams.n && !r; i++) {
        struct mg_work op = {.kind = MG_OPK_WAIT};
        struct mg_task *t = mg_task_new(ctx, &op);
        if (!t) {
            r = CUE_OUT_OF_MEMORY;
            break;
        }
        mg_task_wait_for(t, e->task);
        mg_stream_order(ctx->streams.at[i], t);
        mg_task_submit(t);
        mg_task_unref(t);
    }
    mg_unlock();
    return r;
}

const struct mg_entry mg_entries_event[] = {
    MG_ENTRY(cuEventCreate),
    MG_ENTRY(cuEventDestroy),
    MG_ENTRY(cuEventDestroy_v2),
    MG_ENTRY2(cuEventRecord, ptsz),
    MG_ENTRY2(cuEventRecordWithFlags, ptsz),
    MG_ENTRY2(cuStreamWaitEvent, ptsz),
    MG_ENTRY(cuEventQuery),
    MG_ENTRY(cuEventSynchronize),
    MG_ENTRY(cuEventElapsedTime),
    MG_ENTRY(cuEventElapsedTime_v2),
    MG_ENTRY(cuCtxRecordEvent),
    MG_ENTRY(cuCtxWaitEvent),
    {0},
};
