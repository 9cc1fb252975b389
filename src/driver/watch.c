/* What somebody outside is told of the work that streams and graphs do (struct mg_driver_watch). */
#include "driver/priv.h"

struct mg_work_mark mg_watch_mark(struct CUstream_st *s, bool graph)
{
    struct mg_work_mark m = {.replay = graph ? 0 : UINT64_MAX, .device = (uint32_t)s->ctx->device};
    const struct mg_driver_watch *w = mg_drv.config.watch;
    void *handle = s == s->ctx->legacy ? NULL : s->per_thread ? CU_PER_THREAD_STREAM : s;
    if (w) w->enqueued(s->ctx, handle, &m);
    return m;
}

static bool is_on_device(const void *p, bool array)
{
    struct mg_alloc a;
    if (array) return true;
    if (!mg_mem_find((uintptr_t)p, &a)) return false;
    return a.kind != MG_ALLOC_HOST && a.kind != MG_ALLOC_REGISTERED;
}

static enum mg_work_direction direction(const struct mg_copy_op *c)
{
    bool from = is_on_device(c->src, c->from_array || c->raw.src_type == CUMEM_ARRAY);
    bool to = is_on_device(c->dst, c->to_array || c->raw.dst_type == CUMEM_ARRAY);
    return from ? (to ? MG_DEVICE_TO_DEVICE : MG_DEVICE_TO_HOST) : to ? MG_HOST_TO_DEVICE : MG_HOST_TO_HOST;
}

void mg_watch_replayed(const struct mg_work_mark *m)
{
    if (mg_drv.config.watch && mg_drv.config.watch->replayed) mg_drv.config.watch->replayed(m);
}

void mg_watch_ended(const struct mg_work *op, const struct mg_work_mark *m, uint64_t start_ns, uint64_t end_ns)
{
    const struct mg_driver_watch *w = mg_drv.config.watch;
    struct mg_work_span s = {.start_ns = start_ns, .end_ns = end_ns};
    if (!w || !w->ended) return;
    if (op->kind == MG_OPK_COPY) {
        const struct mg_copy_op *c = &op->u.copy;
        s.copy = true;
        s.direction = direction(c);
        s.bytes = c->width * c->height * c->depth;
        s.width = c->width;
        s.height = c->height;
        s.depth = c->depth;
        s.array = c->from_array || c->to_array;
        s.dst = c->to_array ? 0 : (uintptr_t)c->dst;
        s.src = c->from_array ? 0 : (uintptr_t)c->src;
        s.dst_pitch = c->dst_pitch;
        s.src_pitch = c->src_pitch;
        s.dst_slice = c->dst_slice;
        s.src_slice = c->src_slice;
    } else if (op->kind == MG_OPK_FILL) {
        const struct mg_fill_op *f = &op->u.fill;
        s.bytes = f->width * f->element_bytes * f->height;
        s.width = f->width * f->element_bytes;
        s.height = f->height;
        s.depth = 1;
        s.dst = (uintptr_t)f->dst;
        s.dst_pitch = f->pitch;
    } else {
        return;
    }
    w->ended(m, &s);
}
