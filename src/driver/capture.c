/* Stream capture: while a stream captures, what is submitted to it becomes nodes of a graph. Each
 * capturing stream has tips, the nodes its next op depends on; events carry tips from stream to
 * stream and pull other streams into the capture.
 *
 * A capture that was misused is invalid: everything on its streams fails until it is ended. The
 * calls that may not be made meanwhile, by which thread, follow the capture's mode.
 */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

struct mg_capture {
    uint64_t id;
    struct CUgraph_st *graph;
    bool own_graph; /* made by cuStreamBeginCapture, not given */
    bool invalid;
    int mode;
    pthread_t thread;
    struct CUstream_st *origin;
    MG_VEC(struct CUstream_st *) streams;
    MG_VEC(struct CUgraphNode_st *) left; /* tips of streams destroyed meanwhile: to be joined like the others' */
};
static MG_VEC(struct mg_capture *) captures;
static uint64_t next_id;
static _Thread_local int thread_mode = CUCAPTURE_GLOBAL;

static struct mg_capture *by_id(uint64_t id)
{
    for (uint32_t i = 0; i < captures.n; i++)
        if (captures.at[i]->id == id) return captures.at[i];
    return NULL;
}

static void join_capture(struct mg_capture *c, struct CUstream_st *s)
{
    s->capture = c;
    s->tips.n = 0;
    *mg_vec_push(&c->streams) = s;
    if (!(s->flags & CUSTREAM_NON_BLOCKING)) s->ctx->n_captures++;
}

static void leave(struct CUstream_st *s)
{
    s->capture = NULL;
    s->tips.n = 0;
    if (!(s->flags & CUSTREAM_NON_BLOCKING)) s->ctx->n_captures--;
}

static void add_tip(struct CUstream_st *s, struct CUgraphNode_st *n)
{
    for (uint32_t i = 0; i < s->tips.n; i++)
        if (s->tips.at[i] == n) return;
    *mg_vec_push(&s->tips) = n;
}

static void end(struct mg_capture *c, bool keep_graph)
{
    for (uint32_t i = 0; i < c->streams.n; i++) leave(c->streams.at[i]);
    for (uint32_t i = 0; i < captures.n; i++)
        if (captures.at[i] == c) captures.at[i] = captures.at[--captures.n];
    if (!keep_graph && c->own_graph) mg_graph_free(c->graph);
    mg_vec_release(&c->streams);
    mg_vec_release(&c->left);
    free(c);
}

/* ---- what other files ask --------------------------------------------------------------------------- */

cu_result mg_capture_break(struct CUstream_st *s, cu_result why)
{
    cu_result r = s->capture->invalid ? CUE_STREAM_CAPTURE_INVALIDATED : why;
    s->capture->invalid = true;
    return r;
}

cu_result mg_capture_implicit(struct CUctx_st *ctx)
{
    for (uint32_t i = 0; i < ctx->streams.n; i++) {
        struct CUstream_st *s = ctx->streams.at[i];
        if (s->capture && !(s->flags & CUSTREAM_NON_BLOCKING)) s->capture->invalid = true;
    }
    return CUE_STREAM_CAPTURE_IMPLICIT;
}

void mg_capture_drop(struct CUstream_st *s)
{
    struct mg_capture *c = s->capture;
    if (c->origin == s) {
        end(c, false);
        return;
    }
    for (uint32_t i = 0; i < s->tips.n; i++) *mg_vec_push(&c->left) = s->tips.at[i];
    for (uint32_t i = 0; i < c->streams.n; i++)
        if (c->streams.at[i] == s) c->streams.at[i] = c->streams.at[--c->streams.n];
    leave(s);
}

cu_result mg_ctx_check_capture(struct CUctx_st *ctx)
{
    cu_result r = CUE_SUCCESS;
    mg_lock();
    for (uint32_t i = 0; i < captures.n; i++)
        if (captures.at[i]->origin->ctx == ctx) {
            captures.at[i]->invalid = true;
            r = CUE_STREAM_CAPTURE_UNSUPPORTED;
        }
    mg_unlock();
    return r;
}

cu_result mg_capture_unsafe(struct CUctx_st *ctx)
{
    (void)ctx;
    if (thread_mode == CUCAPTURE_RELAXED || !__atomic_load_n(&captures.n, __ATOMIC_RELAXED)) return CUE_SUCCESS;
    cu_result r = CUE_SUCCESS;
    mg_lock();
    for (uint32_t i = 0; i < captures.n; i++) {
        struct mg_capture *c = captures.at[i];
        bool mine = pthread_equal(c->thread, pthread_self());
        if (c->mode == CUCAPTURE_RELAXED) continue;
        if (!mine && (c->mode != CUCAPTURE_GLOBAL || thread_mode != CUCAPTURE_GLOBAL)) continue;
        c->invalid = true;
        r = CUE_STREAM_CAPTURE_UNSUPPORTED;
    }
    mg_unlock();
    return r;
}

/* ORDER OPK: the node an op becomes */
static const int node_types[MG_OPK_COUNT] = {
    [MG_OPK_EMPTY] = CUNODE_EMPTY,     [MG_OPK_KERNEL] = CUNODE_KERNEL,       [MG_OPK_COPY] = CUNODE_MEMCPY,
    [MG_OPK_FILL] = CUNODE_MEMSET,     [MG_OPK_HOST] = CUNODE_HOST,           [MG_OPK_RECORD] = CUNODE_EVENT_RECORD,
    [MG_OPK_WAIT] = CUNODE_WAIT_EVENT, [MG_OPK_MEMOPS] = CUNODE_BATCH_MEM_OP, [MG_OPK_ALLOC] = CUNODE_MEM_ALLOC,
    [MG_OPK_FREE] = CUNODE_MEM_FREE,   [MG_OPK_CHILD] = CUNODE_GRAPH,
};

cu_result mg_capture_add(struct CUstream_st *s, struct mg_work *op)
{
    struct mg_capture *c = s->capture;
    if (c->invalid || op->kind == MG_OPK_CALLBACK) {
        mg_work_release(op);
        return c->invalid ? CUE_STREAM_CAPTURE_INVALIDATED : mg_capture_break(s, CUE_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (op->kind == MG_OPK_EMPTY) return CUE_SUCCESS; /* nothing to do is no node */
    struct mg_graph_mem *mem =
        op->kind == MG_OPK_ALLOC || op->kind == MG_OPK_FREE ? mg_graph_mem_of(op->u.mem.ptr) : NULL;
    struct CUgraphNode_st *n = mg_graph_add(c->graph, node_types[op->kind], s->ctx, op, s->tips.at, s->tips.n);
    if (!n) return CUE_OUT_OF_MEMORY;
    n->mem = mem;
    if (mem && op->kind == MG_OPK_FREE) mem->refs++; /* an allocation's own reference came with it */
    s->tips.n = 0;
    add_tip(s, n);
    return CUE_SUCCESS;
}

static cu_result add_event_node(struct CUstream_st *s, enum mg_work_kind kind, struct CUevent_st *e)
{
    struct mg_work op = {.kind = kind, .u.event = {e}};
    return mg_capture_add(s, &op);
}

cu_result mg_capture_record(struct CUstream_st *s, struct CUevent_st *e, bool external)
{
    if (s->capture->invalid) return CUE_STREAM_CAPTURE_INVALIDATED;
    if (external) return add_event_node(s, MG_OPK_RECORD, e);
    e->capture_id = s->capture->id;
    e->captured.n = 0;
    for (uint32_t i = 0; i < s->tips.n; i++) *mg_vec_push(&e->captured) = s->tips.at[i];
    return CUE_SUCCESS;
}

cu_result mg_capture_wait(struct CUstream_st *s, struct CUevent_st *e, bool external)
{
    if (external && s->capture) return add_event_node(s, MG_OPK_WAIT, e);
    if (!e->capture_id) /* an event from outside would tie the graph to work that is not in it */
        return e->task ? mg_capture_break(s, CUE_STREAM_CAPTURE_ISOLATION) : CUE_SUCCESS;
    struct mg_capture *c = by_id(e->capture_id);
    if (!c) return s->capture ? mg_capture_break(s, CUE_STREAM_CAPTURE_ISOLATION) : CUE_CAPTURED_EVENT;
    if (c->invalid) return CUE_STREAM_CAPTURE_INVALIDATED;
    if (s->capture && s->capture != c) {
        c->invalid = true;
        return mg_capture_break(s, CUE_STREAM_CAPTURE_MERGE);
    }
    if (!s->capture) {
        if (s == s->ctx->legacy) {
            c->invalid = true;
            return CUE_STREAM_CAPTURE_IMPLICIT;
        }
        join_capture(c, s);
    }
    for (uint32_t i = 0; i < e->captured.n; i++) add_tip(s, e->captured.at[i]);
    return CUE_SUCCESS;
}

/* ---- beginning and ending ------------------------------------------------------------------------------ */

static cu_result begin(cu_stream h, cu_graph graph, const cu_node *deps, size_t n, int mode, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(mode >= CUCAPTURE_GLOBAL && mode <= CUCAPTURE_RELAXED && (!n || deps));
    if (s == s->ctx->legacy) return CUE_STREAM_CAPTURE_UNSUPPORTED;
    CHECK(!graph || mg_graph_is(graph));
    for (size_t i = 0; i < n; i++) CHECK(mg_obj_is(deps[i], MG_OBJ_NODE) && deps[i]->graph == graph);
    struct mg_capture *c = calloc(1, sizeof *c);
    if (!c) return CUE_OUT_OF_MEMORY;
    mg_lock();
    c->graph = graph ? graph : mg_graph_new();
    c->own_graph = !graph;
    if (s->capture)
        r = CUE_ILLEGAL_STATE;
    else if (!c->graph)
        r = CUE_OUT_OF_MEMORY;
    if (r) {
        if (c->own_graph) mg_graph_free(c->graph);
        free(c);
    } else {
        c->id = ++next_id;
        c->mode = mode;
        c->thread = pthread_self();
        c->origin = s;
        *mg_vec_push(&captures) = c;
        join_capture(c, s);
        for (size_t i = 0; i < n; i++) add_tip(s, deps[i]);
    }
    mg_unlock();
    return r;
}
MG_BOTH(cuStreamBeginCapture_v2, ptsz, (cu_stream s, int mode), begin(s, NULL, NULL, 0, mode, PT))
MG_BOTH(cuStreamBeginCapture, ptsz, (cu_stream s), begin(s, NULL, NULL, 0, CUCAPTURE_GLOBAL, PT))

static cu_result begin_to_graph(cu_stream s, cu_graph g, const cu_node *deps, size_t n, int mode, int pt)
{
    CHECK(g);
    return begin(s, g, deps, n, mode, pt);
}
MG_BOTH(cuStreamBeginCaptureToGraph, ptsz,
        (cu_stream s, cu_graph g, const cu_node *deps, const struct cu_edge_data *data, size_t n, int mode),
        ((void)data, begin_to_graph(s, g, deps, n, mode, PT)))

/* Every other stream's last work must lead to the origin's. */
static bool all_joined(const struct mg_capture *c)
{
    struct mg_map seen = MG_MAP_INIT;
    MG_VEC(struct CUgraphNode_st *) todo = {0};
    for (uint32_t i = 0; i < c->origin->tips.n; i++) *mg_vec_push(&todo) = c->origin->tips.at[i];
    while (todo.n) {
        struct CUgraphNode_st *n = todo.at[--todo.n];
        if (mg_map_get(&seen, (uintptr_t)n, NULL)) continue;
        mg_map_set(&seen, (uintptr_t)n, 1);
        for (uint32_t i = 0; i < n->deps.n; i++) *mg_vec_push(&todo) = n->deps.at[i];
    }
    bool ok = true;
    for (uint32_t i = 0; i < c->left.n; i++) ok = ok && mg_map_get(&seen, (uintptr_t)c->left.at[i], NULL);
    for (uint32_t i = 0; i < c->streams.n; i++)
        for (uint32_t k = 0; k < c->streams.at[i]->tips.n; k++)
            ok = ok && mg_map_get(&seen, (uintptr_t)c->streams.at[i]->tips.at[k], NULL);
    mg_vec_release(&todo);
    mg_map_release(&seen);
    return ok;
}

static cu_result end_capture(cu_stream h, cu_graph *out, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    if (out) *out = NULL;
    mg_lock();
    struct mg_capture *c = s->capture;
    if (!c) {
        mg_unlock();
        return CUE_ILLEGAL_STATE;
    }
    if (!out && c->own_graph) { /* only a capture into a graph that the application has needs none */
        mg_unlock();
        return CUE_INVALID_VALUE;
    }
    if (c->origin != s) {
        r = mg_capture_break(s, CUE_STREAM_CAPTURE_UNMATCHED);
        mg_unlock();
        return r;
    }
    if (c->mode != CUCAPTURE_RELAXED && !pthread_equal(c->thread, pthread_self())) {
        mg_unlock();
        return CUE_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (c->invalid)
        r = CUE_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(c))
        r = CUE_STREAM_CAPTURE_UNJOINED;
    else if (out)
        *out = c->graph;
    end(c, !r);
    mg_unlock();
    mg_graph_run_destroyers();
    return r;
}
MG_BOTH(cuStreamEndCapture, ptsz, (cu_stream s, cu_graph *out), end_capture(s, out, PT))

/* ---- asking ------------------------------------------------------------------------------------------------ */

static cu_result info(cu_stream h, int *status, uint64_t *id, cu_graph *graph, const cu_node **deps, size_t *n, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(status);
    mg_lock();
    struct mg_capture *c = s->capture;
    if (s == s->ctx->legacy && s->ctx->n_captures) r = CUE_STREAM_CAPTURE_IMPLICIT;
    *status = !c ? CUCAPTURE_NONE : c->invalid ? CUCAPTURE_INVALIDATED : CUCAPTURE_ACTIVE;
    if (c && !c->invalid) {
        if (id) *id = c->id;
        if (graph) *graph = c->graph;
        if (deps) *deps = s->tips.at;
        if (n) *n = s->tips.n;
    }
    mg_unlock();
    return r;
}
MG_BOTH(cuStreamIsCapturing, ptsz, (cu_stream s, int *status), info(s, status, NULL, NULL, NULL, NULL, PT))
MG_BOTH(cuStreamGetCaptureInfo, ptsz, (cu_stream s, int *status, uint64_t *id),
        info(s, status, id, NULL, NULL, NULL, PT))
MG_BOTH(cuStreamGetCaptureInfo_v2, ptsz,
        (cu_stream s, int *status, uint64_t *id, cu_graph *g, const cu_node **deps, size_t *n),
        info(s, status, id, g, deps, n, PT))

static cu_result info3(cu_stream s, int *status, uint64_t *id, cu_graph *g, const cu_node **deps,
                       const struct cu_edge_data **data, size_t *n, int pt)
{
    if (data) *data = NULL;
    return info(s, status, id, g, deps, n, pt);
}
MG_BOTH(cuStreamGetCaptureInfo_v3, ptsz,
        (cu_stream s, int *status, uint64_t *id, cu_graph *g, const cu_node **deps, const struct cu_edge_data **data,
         size_t *n),
        info3(s, status, id, g, deps, data, n, PT))

static cu_result update_deps(cu_stream h, cu_node *deps, size_t n, unsigned flags, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK((!n || deps) && flags <= 1);
    mg_lock();
    struct mg_capture *c = s->capture;
    if (!c)
        r = CUE_ILLEGAL_STATE;
    else if (c->invalid)
        r = CUE_STREAM_CAPTURE_INVALIDATED;
    for (size_t i = 0; !r && i < n; i++)
        if (!mg_obj_is(deps[i], MG_OBJ_NODE) || deps[i]->graph != c->graph) r = CUE_INVALID_VALUE;
    if (!r) {
        if (flags == 1) s->tips.n = 0; /* set, else add */
        for (size_t i = 0; i < n; i++) add_tip(s, deps[i]);
    }
    mg_unlock();
    return r;
}
MG_BOTH(cuStreamUpdateCaptureDependencies, ptsz, (cu_stream s, cu_node *deps, size_t n, unsigned flags),
        update_deps(s, deps, n, flags, PT))
MG_BOTH(cuStreamUpdateCaptureDependencies_v2, ptsz,
        (cu_stream s, cu_node *deps, const struct cu_edge_data *data, size_t n, unsigned flags),
        ((void)data, update_deps(s, deps, n, flags, PT)))

static cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    CHECK(mode && *mode >= CUCAPTURE_GLOBAL && *mode <= CUCAPTURE_RELAXED);
    int was = thread_mode;
    thread_mode = *mode;
    *mode = was;
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_capture[] = {
    MG_ENTRY2(cuStreamBeginCapture, ptsz),
    MG_ENTRY2(cuStreamBeginCapture_v2, ptsz),
    MG_ENTRY2(cuStreamBeginCaptureToGraph, ptsz),
    MG_ENTRY2(cuStreamEndCapture, ptsz),
    MG_ENTRY2(cuStreamIsCapturing, ptsz),
    MG_ENTRY2(cuStreamGetCaptureInfo, ptsz),
    MG_ENTRY2(cuStreamGetCaptureInfo_v2, ptsz),
    MG_ENTRY2(cuStreamGetCaptureInfo_v3, ptsz),
    MG_ENTRY2(cuStreamUpdateCaptureDependencies, ptsz),
    MG_ENTRY2(cuStreamUpdateCaptureDependencies_v2, ptsz),
    MG_ENTRY(cuThreadExchangeStreamCaptureMode),
    {0},
};
