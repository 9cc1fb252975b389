/* Copies, memsets, prefetches and launches of graphs on a real GPU, for the time line: a pair of events around the
 * call, on the call's own stream, never while that is captured. Kernels have theirs in gpu_run.c. */
#include "inject/nvidia/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "abi/calls.h"
#include "inject/streams.h"
#include "inject/timeline.h"

struct mg_gpu_work {
    struct mg_nv_launch launch;
    bool follows; /* the pair is there */
    uint64_t call_ns;
    struct mg_record_work record;
};

static bool has_stream(const struct mg_cu_call *c)
{
    return strstr(c->base, "Async") || !strcmp(c->base, "cuGraphLaunch");
}

static bool is_captured(cu_stream s)
{
    int status = CUCAPTURE_NONE;
    return MG_REAL_AS(cuStreamIsCapturing, cu_stream, int *)(s, &status) != CUE_SUCCESS || status != CUCAPTURE_NONE;
}

static bool is_on_device(uint64_t address)
{
    unsigned type = CUMEM_HOST;
    cu_result rc = MG_REAL_AS(cuPointerGetAttribute, void *, int, cu_ptr)(&type, CUPTR_MEMORY_TYPE, address);
    return rc == CUE_SUCCESS && type == CUMEM_DEVICE;
}

static enum mg_span_direction direction(bool from, bool to)
{
    return from ? (to ? MG_DIR_DtoD : MG_DIR_DtoH) : to ? MG_DIR_HtoD : MG_DIR_HtoH;
}

static bool side(int type, uint64_t unified)
{
    return type == CUMEM_DEVICE || type == CUMEM_ARRAY || (type == CUMEM_UNIFIED && is_on_device(unified));
}

/* The call has returned: what it was given may be read as the driver has read it. */
static void describe_size(struct mg_record_work *r, const struct mg_call_work *w, const uint64_t *args)
{
    if (w->size >= 0) {
        r->bytes = args[w->size] * (w->times >= 0 ? args[w->times] : 1) * w->unit;
        return;
    }
    r->bytes = UINT64_MAX;
    if (w->unit == 2) {
        const struct cu_memcpy2d *c = (const struct cu_memcpy2d *)(uintptr_t)args[0];
        r->bytes = c->width * c->height;
        r->direction = direction(side(c->src_type, c->src_device), side(c->dst_type, c->dst_device));
    } else if (w->unit == 3) {
        const struct cu_memcpy3d *c = (const struct cu_memcpy3d *)(uintptr_t)args[0];
        r->bytes = c->width * c->height * c->depth;
        if (!r->direction) r->direction = direction(side(c->src_type, c->src_device), side(c->dst_type, c->dst_device));
    }
}

static void describe(struct mg_record_work *r, const struct mg_call_work *w, const uint64_t *args)
{
    static const uint8_t works[] = {[MG_DOES_copy] = MG_WORK_copy,
                                    [MG_DOES_memset] = MG_WORK_memset,
                                    [MG_DOES_prefetch] = MG_WORK_prefetch,
                                    [MG_DOES_graph] = MG_WORK_graph};
    static const uint8_t moves[] = {[MG_MOVES_none] = MG_DIR_none,
                                    [MG_MOVES_HtoD] = MG_DIR_HtoD,
                                    [MG_MOVES_DtoH] = MG_DIR_DtoH,
                                    [MG_MOVES_DtoD] = MG_DIR_DtoD};
    r->work = works[w->does];
    r->direction = moves[w->moves];
    describe_size(r, w, args);
    if (w->does == MG_DOES_copy && !r->direction && w->size >= 0)
        r->direction = direction(is_on_device(args[1]), is_on_device(args[0]));
}

static bool needs_events(uint32_t entry)
{
    enum mg_call_does does = mg_call_work(entry)->does;
    return !mg_timeline.untimed && !(mg_timeline.cupti && (does == MG_DOES_copy || does == MG_DOES_memset));
}

struct mg_gpu_work *mg_gpu_work_begin(const struct mg_call_frame *f)
{
    const struct mg_cu_call *c = mg_call_of_entry(f->entry);
    bool per_thread = mg_cu_entries[f->entry].per_thread;
    cu_stream s = has_stream(c) && f->n_args ? (cu_stream)(uintptr_t)f->args[f->n_args - 1] : NULL;
    if (!mg_session.active || is_captured(s || !per_thread ? s : CU_PER_THREAD_STREAM)) return NULL;
    struct mg_gpu_work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    mg_inside++;
    w->launch = (struct mg_nv_launch){
        .stream = s, .per_thread = per_thread, .plain = true, .may_time = true, .wants_time = true, .only_timed = true};
    if (needs_events(f->entry)) w->follows = mg_nv_launch_begin(&w->launch);
    w->call_ns = f->begin_ns;
    mg_inside--;
    return w;
}

static void done(void *user, const struct mg_nv_done *d)
{
    struct mg_gpu_work *w = user;
    struct mg_record_work *r = &w->record;
    if (d->timed) {
        r->begin = d->start_ns;
        r->end = d->start_ns + MG_MAX(d->time_ns, 1);
        r->uncertainty_ns = (uint32_t)MG_MIN(d->uncertainty_ns, UINT32_MAX);
        r->source = MG_SOURCE_events;
    }
    mg_timeline_work(r, NULL);
    free(w);
}

void mg_gpu_work_end(struct mg_call_frame *f, cu_result result)
{
    struct mg_gpu_work *w = f->work;
    struct mg_record_work *r = &w->record;
    void *ctx = NULL;
    cu_device device = 0;
    mg_inside++;
    if (result == CUE_SUCCESS) {
        MG_REAL_AS(cuCtxGetCurrent, void **)(&ctx);
        MG_REAL_AS(cuCtxGetDevice, cu_device *)(&device);
        *r = (struct mg_record_work){
            .begin = w->call_ns,
            .end = w->call_ns,
            .correlation = mg_calls_correlation(),
            .stream = mg_stream_number(mg_stream_of(w->launch.stream, w->launch.per_thread)),
            .context = mg_ctx_number(ctx),
            .launch = UINT64_MAX,
            .replay = UINT64_MAX,
            .mark = mg_nvtx_range(),
            .device = (uint32_t)device,
            .source = MG_SOURCE_none,
        };
        describe(r, mg_call_work(f->entry), f->args);
    }
    if (w->follows) {
        bool taken = result == CUE_SUCCESS;
        mg_nv_launch_end(&w->launch, taken, NULL, done, w);
        w = taken ? NULL : w;
    } else if (result == CUE_SUCCESS) {
        mg_timeline_work(r, NULL); /* nobody could time it */
    }
    free(w);
    mg_inside--;
}
