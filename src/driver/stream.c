/* Streams: order within one, the rules of the default streams, and the calls on them.
 *
 * The legacy default stream of a context waits for every blocking stream and every blocking stream
 * waits for it; streams made non-blocking take no part. A per-thread default stream is a blocking
 * stream that belongs to one thread.
 */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- order ---------------------------------------------------------------------------------- */

void mg_stream_order(struct CUstream_st *s, struct mg_task *t)
{
    struct CUctx_st *ctx = s->ctx;
    mg_task_wait_for(t, s->tail);
    if (s == ctx->legacy) {
        for (uint32_t i = 1; i < ctx->streams.n; i++) {
            struct CUstream_st *o = ctx->streams.at[i];
            if (o->flags & CUSTREAM_NON_BLOCKING) continue;
            mg_task_wait_for(t, o->tail);
        }
    } else if (!(s->flags & CUSTREAM_NON_BLOCKING)) {
        mg_task_wait_for(t, ctx->legacy->tail);
    }
    mg_task_unref(s->tail);
    s->tail = mg_task_ref(t);
    t->stream = s;
}

/* Streams destroyed with work left are kept for the order's sake until it has ended. */
static void sweep(struct CUctx_st *ctx)
{
    for (uint32_t i = 1; i < ctx->streams.n; i++) {
        struct CUstream_st *s = ctx->streams.at[i];
        if (s->destroyed && (!s->tail || s->tail->done)) {
            mg_stream_free(s);
            i--;
        }
    }
}

cu_result mg_stream_do(struct CUstream_st *s, struct mg_work *op, enum mg_how how)
{
    struct mg_work_mark mark = mg_watch_mark(s, false);
    mg_lock();
    if (s->capture) {
        cu_result r = how == MG_SYNC ? CUE_STREAM_CAPTURE_UNSUPPORTED : mg_capture_add(s, op);
        if (how == MG_SYNC) mg_work_release(op);
        mg_unlock();
        return r;
    }
    if (s == s->ctx->legacy && s->ctx->n_captures) {
        mg_work_release(op);
        cu_result r = mg_capture_implicit(s->ctx);
        mg_unlock();
        return r;
    }
    struct mg_task *t = mg_task_new(s->ctx, op);
    if (!t) {
        mg_unlock();
        return CUE_OUT_OF_MEMORY;
    }
    t->mark = mark;
    mg_stream_order(s, t);
    if (how == MG_SYNC || (how == MG_SOON && t->n_deps == 1))
        mg_task_submit_here(t);
    else
        mg_task_submit(t);
    mg_task_unref(t);
    cu_result r = how == MG_SYNC ? s->ctx->error : CUE_SUCCESS;
    mg_unlock();
    if (how == MG_SYNC) mg_print_flush();
    return r;
}

/* ---- making and finding ------------------------------------------------------------------------- */

cu_result mg_stream_new(struct CUctx_st *ctx, uint32_t flags, int priority, struct CUstream_st **out)
{
    struct CUstream_st *s = calloc(1, sizeof *s);
    if (!s) return CUE_OUT_OF_MEMORY;
    s->ctx = ctx;
    s->id = ++mg_drv.next_stream_id;
    s->flags = flags;
    s->priority = priority;
    s->attrs[CULAUNCH_SYNCHRONIZATION_POLICY].sync_policy = 1;
    *mg_vec_push(&ctx->streams) = s;
    mg_obj_add(s, MG_OBJ_STREAM);
    *out = s;
    return CUE_SUCCESS;
}

void mg_stream_free(struct CUstream_st *s)
{
    struct CUctx_st *ctx = s->ctx;
    mg_obj_del(s, MG_OBJ_STREAM);
    if (s->capture) mg_capture_drop(s);
    for (uint32_t i = 0; i < ctx->streams.n; i++) {
        if (ctx->streams.at[i] != s) continue;
        memmove(ctx->streams.at + i, ctx->streams.at + i + 1, (ctx->streams.n - i - 1) * sizeof *ctx->streams.at);
        ctx->streams.n--;
        break;
    }
    mg_task_unref(s->tail);
    mg_vec_release(&s->tips);
    free(s);
}

/* One per thread and context; goes with the context (a thread that ends leaves its stream behind, idle). */
static cu_result per_thread(struct CUctx_st *ctx, struct CUstream_st **out)
{
    static _Thread_local struct {
        struct CUctx_st *ctx;
        uint32_t id;
        struct CUstream_st *s;
    } mine[4];
    static _Thread_local unsigned next;
    for (unsigned i = 0; i < MG_COUNT_OF(mine); i++) {
        if (mine[i].ctx == ctx && mine[i].id == ctx->id && mg_obj_is(mine[i].s, MG_OBJ_STREAM)) {
            *out = mine[i].s;
            return CUE_SUCCESS;
        }
    }
    mg_lock();
    cu_result r = mg_stream_new(ctx, 0, 0, out);
    if (!r) (*out)->per_thread = true;
    mg_unlock();
    if (r) return r;
    unsigned slot = next++ % MG_COUNT_OF(mine);
    mine[slot].ctx = ctx;
    mine[slot].id = ctx->id;
    mine[slot].s = *out;
    return CUE_SUCCESS;
}

cu_result mg_stream_get(cu_stream h, int pt, struct CUstream_st **out)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    if (h == CU_LEGACY_STREAM || (!h && !pt)) {
        *out = ctx->legacy;
    } else if (h == CU_PER_THREAD_STREAM || !h) {
        return per_thread(ctx, out);
    } else {
        if (!mg_obj_is(h, MG_OBJ_STREAM)) return CUE_INVALID_HANDLE;
        *out = h;
        return h->ctx->error;
    }
    return CUE_SUCCESS;
}

static cu_result cuStreamCreateWithPriority(cu_stream *out, unsigned flags, int priority)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(out && flags <= CUSTREAM_NON_BLOCKING);
    priority = MG_MIN(MG_MAX(priority, MG_PRIORITY_GREATEST), 0);
    mg_lock();
    sweep(ctx);
    r = mg_stream_new(ctx, flags, priority, out);
    mg_unlock();
    return r;
}

static cu_result cuStreamCreate(cu_stream *out, unsigned flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

static cu_result cuStreamDestroy_v2(cu_stream s)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r == CUE_NOT_INITIALIZED) return r;
    if (s == CU_LEGACY_STREAM || s == CU_PER_THREAD_STREAM || !mg_obj_is(s, MG_OBJ_STREAM)) return CUE_INVALID_HANDLE;
    mg_lock();
    if (s == s->ctx->legacy || s->destroyed) {
        mg_unlock();
        return CUE_INVALID_HANDLE;
    }
    ctx = s->ctx;
    if (s->capture) mg_capture_drop(s);
    mg_obj_del(s, MG_OBJ_STREAM);
    s->destroyed = true;
    sweep(ctx);
    r = ctx->error;
    mg_unlock();
    return r;
}
static cu_result cuStreamDestroy(cu_stream s)
{
    return cuStreamDestroy_v2(s);
}

/* ---- waiting ------------------------------------------------------------------------------------ */

static cu_result stream_sync(cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) {
        mg_print_flush();
        return r;
    }
    mg_lock();
    if (s->capture) {
        r = mg_capture_break(s, CUE_STREAM_CAPTURE_UNSUPPORTED);
        mg_unlock();
        return r;
    }
    struct CUctx_st *ctx = s->ctx;
    if (s == ctx->legacy && ctx->n_captures) {
        r = mg_capture_implicit(ctx);
        mg_unlock();
        return r;
    }
    if (s == ctx->legacy) { /* everything blocking before now, whether or not the legacy stream has work itself */
        struct mg_work none = {.kind = MG_OPK_EMPTY};
        struct mg_task *t = mg_task_new(ctx, &none);
        if (t) {
            mg_stream_order(s, t);
            mg_task_submit_here(t);
            mg_task_unref(t);
        }
    } else if (s->tail && !s->tail->done) {
        struct mg_task *t = mg_task_ref(s->tail);
        mg_task_await(t);
        mg_task_unref(t);
    }
    r = ctx->error;
    mg_unlock();
    mg_print_flush();
    return r;
}
MG_BOTH(cuStreamSynchronize, ptsz, (cu_stream s), stream_sync(s, PT))

static cu_result stream_query(cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    mg_lock();
    if (s->capture) {
        r = mg_capture_break(s, CUE_STREAM_CAPTURE_UNSUPPORTED);
        mg_unlock();
        return r;
    }
    bool busy = s->tail && !s->tail->done;
    if (s == s->ctx->legacy)
        for (uint32_t i = 1; i < s->ctx->streams.n && !busy; i++) {
            struct CUstream_st *o = s->ctx->streams.at[i];
            busy = !(o->flags & CUSTREAM_NON_BLOCKING) && o->tail && !o->tail->done;
        }
    r = s->ctx->error ? s->ctx->error : busy ? CUE_NOT_READY : CUE_SUCCESS;
    mg_unlock();
    if (!busy) mg_print_flush();
    return r;
}
MG_BOTH(cuStreamQuery, ptsz, (cu_stream s), stream_query(s, PT))

/* ---- functions of the application ---------------------------------------------------------------- */

static cu_result host_func(cu_stream h, cu_host_fn fn, void *user, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(fn);
    struct mg_work op = {.kind = MG_OPK_HOST, .u.host = {fn, user}};
    return mg_stream_do(s, &op, MG_ASYNC);
}
MG_BOTH(cuLaunchHostFunc, ptsz, (cu_stream s, cu_host_fn fn, void *user), host_func(s, fn, user, PT))

static cu_result add_callback(cu_stream h, cu_stream_fn fn, void *user, unsigned flags, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(fn && !flags);
    mg_lock();
    r = s->capture ? mg_capture_break(s, CUE_STREAM_CAPTURE_UNSUPPORTED) : CUE_SUCCESS;
    mg_unlock();
    if (r) return r;
    struct mg_work op = {.kind = MG_OPK_CALLBACK, .u.callback = {fn, h, user}};
    return mg_stream_do(s, &op, MG_ASYNC);
}
MG_BOTH(cuStreamAddCallback, ptsz, (cu_stream s, cu_stream_fn fn, void *user, unsigned flags),
        add_callback(s, fn, user, flags, PT))

/* ---- stream memory operations ------------------------------------------------------------------- */

static cu_result memops(cu_stream h, unsigned n, const union cu_memop_params *ops, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(ops && n && n <= 256);
    r = mg_memops_check(n, ops);
    if (r) return r;
    struct mg_work op = {.kind = MG_OPK_MEMOPS, .u.memops = {n, malloc(n * sizeof *ops)}};
    if (!op.u.memops.at) return CUE_OUT_OF_MEMORY;
    memcpy(op.u.memops.at, ops, n * sizeof *ops);
    return mg_stream_do(s, &op, MG_ASYNC);
}

cu_result mg_memops_check(unsigned n, const union cu_memop_params *ops)
{
    for (unsigned i = 0; i < n; i++) {
        int k = ops[i].operation;
        if (k == CUMEMOP_BARRIER || k == CUMEMOP_FLUSH) continue;
        CHECK(k >= CUMEMOP_WAIT32 && k <= CUMEMOP_WRITE64);
        unsigned bytes = k == CUMEMOP_WAIT32 || k == CUMEMOP_WRITE32 ? 4 : 8;
        CHECK(ops[i].value.address % bytes == 0 && mg_ptr_on_device(ops[i].value.address, bytes));
    }
    return CUE_SUCCESS;
}

static cu_result memop(cu_stream h, int operation, cu_ptr address, uint64_t value, unsigned flags, int pt)
{
    union cu_memop_params p = {.pad = {0}};
    p.value.operation = operation;
    p.value.address = address;
    p.value.value.v64 = value;
    p.value.flags = flags;
    return memops(h, 1, &p, pt);
}

MG_BOTH(cuStreamWaitValue32_v2, ptsz, (cu_stream s, cu_ptr a, uint32_t v, unsigned f),
        memop(s, CUMEMOP_WAIT32, a, v, f, PT))
MG_BOTH(cuStreamWaitValue64_v2, ptsz, (cu_stream s, cu_ptr a, uint64_t v, unsigned f),
        memop(s, CUMEMOP_WAIT64, a, v, f, PT))
MG_BOTH(cuStreamWriteValue32_v2, ptsz, (cu_stream s, cu_ptr a, uint32_t v, unsigned f),
        memop(s, CUMEMOP_WRITE32, a, v, f, PT))
MG_BOTH(cuStreamWriteValue64_v2, ptsz, (cu_stream s, cu_ptr a, uint64_t v, unsigned f),
        memop(s, CUMEMOP_WRITE64, a, v, f, PT))
MG_BOTH(cuStreamBatchMemOp_v2, ptsz, (cu_stream s, unsigned n, union cu_memop_params *ops, unsigned f),
        ((void)f, memops(s, n, ops, PT)))

/* ---- what a stream is --------------------------------------------------------------------------------- */

static cu_result stream_priority(cu_stream h, int *priority, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(priority);
    *priority = s->priority;
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamGetPriority, ptsz, (cu_stream s, int *priority), stream_priority(s, priority, PT))

static cu_result stream_flags(cu_stream h, unsigned *flags, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(flags);
    *flags = s->flags;
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamGetFlags, ptsz, (cu_stream s, unsigned *flags), stream_flags(s, flags, PT))

static cu_result stream_id(cu_stream h, unsigned long long *id, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(id);
    *id = s->id;
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamGetId, ptsz, (cu_stream s, unsigned long long *id), stream_id(s, id, PT))

static cu_result stream_device(cu_stream h, cu_device *dev, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(dev);
    *dev = s->ctx->device;
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamGetDevice, ptsz, (cu_stream s, cu_device *dev), stream_device(s, dev, PT))

static cu_result stream_ctx(cu_stream h, cu_ctx *ctx, void **green, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(ctx);
    *ctx = s->ctx;
    if (green) *green = NULL;
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamGetCtx, ptsz, (cu_stream s, cu_ctx *ctx), stream_ctx(s, ctx, NULL, PT))
MG_BOTH(cuStreamGetCtx_v2, ptsz, (cu_stream s, cu_ctx *ctx, void **green), stream_ctx(s, ctx, green, PT))

static cu_result stream_attr(cu_stream h, int id, union cu_launch_value *get, const union cu_launch_value *set, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK((get || set) &&
          (id == CULAUNCH_ACCESS_POLICY_WINDOW || id == CULAUNCH_SYNCHRONIZATION_POLICY || id == CULAUNCH_PRIORITY ||
           id == CULAUNCH_MEM_SYNC_DOMAIN_MAP || id == CULAUNCH_MEM_SYNC_DOMAIN));
    mg_lock();
    if (set) s->attrs[id] = *set;
    if (set && id == CULAUNCH_PRIORITY) s->priority = MG_MIN(MG_MAX(set->priority, MG_PRIORITY_GREATEST), 0);
    if (get) *get = s->attrs[id];
    if (get && id == CULAUNCH_PRIORITY) get->priority = s->priority;
    mg_unlock();
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamGetAttribute, ptsz, (cu_stream s, int id, union cu_launch_value *v), stream_attr(s, id, v, NULL, PT))
MG_BOTH(cuStreamSetAttribute, ptsz, (cu_stream s, int id, const union cu_launch_value *v),
        stream_attr(s, id, NULL, v, PT))

static cu_result copy_attrs(cu_stream dst, cu_stream src, int pt)
{
    struct CUstream_st *d, *s;
    cu_result r = mg_stream_get(dst, pt, &d);
    if (!r) r = mg_stream_get(src, pt, &s);
    if (r) return r;
    mg_lock();
    memcpy(d->attrs, s->attrs, sizeof d->attrs);
    mg_unlock();
    return CUE_SUCCESS;
}
MG_BOTH(cuStreamCopyAttributes, ptsz, (cu_stream dst, cu_stream src), copy_attrs(dst, src, PT))

static cu_result attach_mem(cu_stream h, cu_ptr p, size_t bytes, unsigned flags, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    (void)bytes;
    struct mg_alloc a;
    CHECK(flags == CUATTACH_GLOBAL || flags == CUATTACH_HOST || flags == CUATTACH_SINGLE);
    CHECK(mg_mem_find(p, &a) ? a.kind == MG_ALLOC_MANAGED || a.kind == MG_ALLOC_GLOBAL : true);
    struct mg_work op = {.kind = MG_OPK_EMPTY}; /* managed memory is reachable from everywhere at any time */
    return mg_stream_do(s, &op, MG_ASYNC);
}
MG_BOTH(cuStreamAttachMemAsync, ptsz, (cu_stream s, cu_ptr p, size_t bytes, unsigned flags),
        attach_mem(s, p, bytes, flags, PT))

const struct mg_entry mg_entries_stream[] = {
    MG_ENTRY(cuStreamCreate),
    MG_ENTRY(cuStreamCreateWithPriority),
    MG_ENTRY(cuStreamDestroy),
    MG_ENTRY(cuStreamDestroy_v2),
    MG_ENTRY2(cuStreamSynchronize, ptsz),
    MG_ENTRY2(cuStreamQuery, ptsz),
    MG_ENTRY2(cuLaunchHostFunc, ptsz),
    MG_ENTRY2(cuStreamAddCallback, ptsz),
    MG_ENTRY2(cuStreamWaitValue32_v2, ptsz),
    MG_ENTRY2(cuStreamWaitValue64_v2, ptsz),
    MG_ENTRY2(cuStreamWriteValue32_v2, ptsz),
    MG_ENTRY2(cuStreamWriteValue64_v2, ptsz),
    MG_ENTRY2(cuStreamBatchMemOp_v2, ptsz),
    MG_ENTRY2(cuStreamGetPriority, ptsz),
    MG_ENTRY2(cuStreamGetFlags, ptsz),
    MG_ENTRY2(cuStreamGetId, ptsz),
    MG_ENTRY2(cuStreamGetDevice, ptsz),
    MG_ENTRY2(cuStreamGetCtx, ptsz),
    MG_ENTRY2(cuStreamGetCtx_v2, ptsz),
    MG_ENTRY2(cuStreamGetAttribute, ptsz),
    MG_ENTRY2(cuStreamSetAttribute, ptsz),
    MG_ENTRY2(cuStreamCopyAttributes, ptsz),
    MG_ENTRY2(cuStreamAttachMemAsync, ptsz),
    {0},
};
