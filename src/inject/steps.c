#include "inject/steps.h"

#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/streams.h"
#include "inject/tracefile.h"
#include "trace/writer.h"

bool mg_steps_on;
uint8_t mg_steps_rows[MG_FN_COUNT];
static uint64_t next_order;
static struct {
    bool on;
    pthread_mutex_t lock;
    uint64_t first;        /* order of the first in the list: those before it are over */
    MG_VEC(uint32_t) held; /* how often each is */
    uint32_t done;         /* of the list, from its beginning on */
} orders = {.lock = PTHREAD_MUTEX_INITIALIZER, .first = 1};

/* ---- which calls ------------------------------------------------------------------------------------------ */

enum form {
    FORM_MADE,    /* args[dst]: where the address of what was made is put; args[size]: bytes */
    FORM_PITCHED, /* the same; args[1]: where the pitch is put; args[size]: height */
    FORM_PLAIN,   /* args[dst], args[src], args[size] times unit; -1: none */
    FORM_FILL2D,  /* args[dst], args[1]: pitch, args[3]: width times unit, args[4]: height */
    FORM_COPY2D,
    FORM_COPY3D, /* args[0]: cu_memcpy2d, cu_memcpy3d */
    FORM_BATCH,  /* args[0], [1], [2]: lists of addresses and sizes, args[3]: how many */
};
struct row {
    const char *name;
    uint8_t kind, form;
    int8_t dst, src, size, stream;
    uint8_t unit;
    uint16_t flags;
};
#define MADE(name, stream, flags)                                                                                      \
    {                                                                                                                  \
#name, MG_STEP_ALLOC, FORM_MADE, 0, -1, 1, stream, 1, flags                                                    \
    }
#define FREED(name, size, stream)                                                                                      \
    {                                                                                                                  \
#name, MG_STEP_FREE, FORM_PLAIN, 0, -1, size, stream, 1, 0                                                     \
    }
#define COPY(name, dst, src, size, stream, flags)                                                                      \
    {                                                                                                                  \
#name, MG_STEP_COPY, FORM_PLAIN, dst, src, size, stream, 1, flags                                              \
    }
#define COPY_AS(name, form, stream)                                                                                    \
    {                                                                                                                  \
#name, MG_STEP_COPY, form, -1, -1, -1, stream, 1, 0                                                            \
    }
#define SET(name, stream, unit)                                                                                        \
    {                                                                                                                  \
#name, MG_STEP_MEMSET, FORM_PLAIN, 0, -1, 2, stream, unit, 0                                                   \
    }
#define SET2D(name, stream, unit)                                                                                      \
    {                                                                                                                  \
#name, MG_STEP_MEMSET, FORM_FILL2D, 0, -1, -1, stream, unit, 0                                                 \
    }
enum {
    HOST = MG_STEP_HOST_MEMORY,
    MANAGED = MG_STEP_MANAGED,
    FROM = MG_STEP_FROM_HOST,
    TO = MG_STEP_TO_HOST,
    ARRAY = MG_STEP_ARRAY
};

/* Forms of these names for a stream of each thread (_ptds, _ptsz) are the same calls. stream -1: the default one. */
static const struct row rows[] = {
    {0},
    MADE(cuMemAlloc_v2, -1, 0),
    MADE(cuMemAllocManaged, -1, MANAGED),
    MADE(cuMemHostAlloc, -1, HOST),
    MADE(cuMemAllocHost_v2, -1, HOST),
    MADE(cuMemAllocAsync, 2, 0),
    MADE(cuMemAllocFromPoolAsync, 3, 0),
    {"cuMemAllocPitch_v2", MG_STEP_ALLOC, FORM_PITCHED, 0, -1, 3, -1, 1, 0},
    {"cuMemHostRegister_v2", MG_STEP_ALLOC, FORM_PLAIN, 0, -1, 1, -1, 1, HOST},
    {"cuMemMap", MG_STEP_ALLOC, FORM_PLAIN, 0, -1, 1, -1, 1, 0},
    FREED(cuMemFree_v2, -1, -1),
    FREED(cuMemFreeAsync, -1, 1),
    FREED(cuMemFreeHost, -1, -1),
    FREED(cuMemHostUnregister, -1, -1),
    FREED(cuMemUnmap, 1, -1),
    COPY(cuMemcpy, 0, 1, 2, -1, 0),
    COPY(cuMemcpyAsync, 0, 1, 2, 3, 0),
    COPY(cuMemcpyHtoD_v2, 0, 1, 2, -1, FROM),
    COPY(cuMemcpyHtoDAsync_v2, 0, 1, 2, 3, FROM),
    COPY(cuMemcpyDtoH_v2, 0, 1, 2, -1, TO),
    COPY(cuMemcpyDtoHAsync_v2, 0, 1, 2, 3, TO),
    COPY(cuMemcpyDtoD_v2, 0, 1, 2, -1, 0),
    COPY(cuMemcpyDtoDAsync_v2, 0, 1, 2, 3, 0),
    COPY(cuMemcpyPeer, 0, 2, 4, -1, 0),
    COPY(cuMemcpyPeerAsync, 0, 2, 4, 5, 0),
    COPY(cuMemcpyHtoA_v2, -1, 2, 3, -1, FROM | ARRAY),
    COPY(cuMemcpyHtoAAsync_v2, -1, 2, 3, 4, FROM | ARRAY),
    COPY(cuMemcpyAtoH_v2, 0, -1, 3, -1, TO | ARRAY),
    COPY(cuMemcpyAtoHAsync_v2, 0, -1, 3, 4, TO | ARRAY),
    COPY(cuMemcpyDtoA_v2, -1, 2, 3, -1, ARRAY),
    COPY(cuMemcpyAtoD_v2, 0, -1, 3, -1, ARRAY),
    COPY(cuMemcpyAtoA_v2, -1, -1, 4, -1, ARRAY),
    COPY_AS(cuMemcpy2D_v2, FORM_COPY2D, -1),
    COPY_AS(cuMemcpy2DUnaligned_v2, FORM_COPY2D, -1),
    COPY_AS(cuMemcpy2DAsync_v2, FORM_COPY2D, 1),
    COPY_AS(cuMemcpy3D_v2, FORM_COPY3D, -1),
    COPY_AS(cuMemcpy3DAsync_v2, FORM_COPY3D, 1),
    COPY_AS(cuMemcpy3DPeer, FORM_COPY3D, -1),
    COPY_AS(cuMemcpy3DPeerAsync, FORM_COPY3D, 1),
    COPY_AS(cuMemcpyBatchAsync, FORM_BATCH, 8),
    COPY_AS(cuMemcpyBatchAsync_v2, FORM_BATCH, 7),
    SET(cuMemsetD8_v2, -1, 1),
    SET(cuMemsetD8Async, 3, 1),
    SET(cuMemsetD16_v2, -1, 2),
    SET(cuMemsetD16Async, 3, 2),
    SET(cuMemsetD32_v2, -1, 4),
    SET(cuMemsetD32Async, 3, 4),
    SET2D(cuMemsetD2D8_v2, -1, 1),
    SET2D(cuMemsetD2D8Async, 5, 1),
    SET2D(cuMemsetD2D16_v2, -1, 2),
    SET2D(cuMemsetD2D16Async, 5, 2),
    SET2D(cuMemsetD2D32_v2, -1, 4),
    SET2D(cuMemsetD2D32Async, 5, 4),
};
_Static_assert(MG_COUNT_OF(rows) < 256, "rows are numbered by a byte");

static bool is_row(const char *row, const char *entry)
{
    size_t n = strlen(row);
    return !strncmp(row, entry, n) && (!entry[n] || !strcmp(entry + n, "_ptds") || !strcmp(entry + n, "_ptsz"));
}

void mg_steps_prepare(void)
{
    mg_steps_on = true;
    for (uint32_t i = 0; i < MG_FN_COUNT; i++)
        for (uint32_t k = 1; k < MG_COUNT_OF(rows); k++)
            if (is_row(rows[k].name, mg_cu_entries[i].name)) mg_steps_rows[i] = (uint8_t)k;
}

void mg_steps_end(void)
{
    mg_steps_on = orders.on = false;
}

/* ---- orders ----------------------------------------------------------------------------------------------- */

enum { DONE_MOST = 1 << 16 };

void mg_steps_follow(void)
{
    orders.on = mg_steps_on;
}

bool mg_steps_followed(void)
{
    return orders.on && mg_steps_on;
}

static uint64_t next_held(uint8_t times)
{
    if (!mg_steps_on) return 0;
    if (!orders.on) return __atomic_add_fetch(&next_order, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&orders.lock);
    uint64_t order = ++next_order;
    *mg_vec_push(&orders.held) = times;
    pthread_mutex_unlock(&orders.lock);
    return order;
}

uint64_t mg_steps_order(void)
{
    return next_held(0);
}

uint64_t mg_steps_take(void)
{
    return next_held(1);
}

void mg_steps_hold(uint64_t order)
{
    if (!orders.on || !order) return;
    pthread_mutex_lock(&orders.lock);
    orders.held.at[order - orders.first]++;
    pthread_mutex_unlock(&orders.lock);
}

void mg_steps_over(uint64_t order)
{
    if (!orders.on || !order) return;
    pthread_mutex_lock(&orders.lock);
    orders.held.at[order - orders.first]--;
    pthread_mutex_unlock(&orders.lock);
}

uint64_t mg_steps_whole(uint64_t *begun)
{
    pthread_mutex_lock(&orders.lock);
    while (orders.done < orders.held.n && !orders.held.at[orders.done]) orders.done++;
    uint64_t whole = orders.first + orders.done - 1;
    if (orders.done > DONE_MOST && orders.done > orders.held.n / 2) {
        orders.held.n -= orders.done;
        memmove(orders.held.at, orders.held.at + orders.done, orders.held.n * sizeof *orders.held.at);
        orders.first += orders.done;
        orders.done = 0;
    }
    *begun = next_order;
    pthread_mutex_unlock(&orders.lock);
    return whole;
}

/* ---- into the file ------------------------------------------------------------------------------------------ */

void mg_steps_put(const struct mg_step_record *s, const char *name)
{
    struct mg_trace_writer *w = mg_steps_on ? mg_tracefile_writer((struct mg_trace_opts){0}) : NULL;
    if (!w) return;
    struct mg_step_record r = *s;
    struct mg_trace_stream *stream = mg_trace_thread(w);
    r.name = mg_trace_name(w, name);
    mg_trace_stream_policy(stream, MG_TRACE_BLOCK);
    mg_trace_put(stream, mg_trace_kind_add(w, &mg_step_record_kind), &r, sizeof r, NULL, 0);
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static void set_rows(struct mg_step_record *s, uint64_t width, uint64_t height, uint64_t depth)
{
    s->width = width;
    s->height = height;
    s->depth = depth;
    s->bytes = width * height * depth;
}

static uint64_t side_of(int type, const void *host, uint64_t device, uint64_t offset, unsigned host_flag,
                        struct mg_step_record *s)
{
    s->flags |= type == CUMEM_HOST ? host_flag : type == CUMEM_ARRAY ? MG_STEP_ARRAY : 0;
    if (type == CUMEM_ARRAY) return 0;
    return (type == CUMEM_HOST ? (uint64_t)(uintptr_t)host : device) + offset;
}

static void set_copy2d(struct mg_step_record *s, const struct cu_memcpy2d *c)
{
    s->src = side_of(c->src_type, c->src_host, c->src_device, c->src_y * c->src_pitch + c->src_x, MG_STEP_FROM_HOST, s);
    s->dst = side_of(c->dst_type, c->dst_host, c->dst_device, c->dst_y * c->dst_pitch + c->dst_x, MG_STEP_TO_HOST, s);
    s->src_pitch = c->src_pitch ? c->src_pitch : c->width;
    s->dst_pitch = c->dst_pitch ? c->dst_pitch : c->width;
    set_rows(s, c->width, c->height, 1);
}

static void set_copy3d(struct mg_step_record *s, const struct cu_memcpy3d *c)
{
    s->src_pitch = c->src_pitch ? c->src_pitch : c->width;
    s->dst_pitch = c->dst_pitch ? c->dst_pitch : c->width;
    s->src_slice = s->src_pitch * (c->src_height ? c->src_height : c->height);
    s->dst_slice = s->dst_pitch * (c->dst_height ? c->dst_height : c->height);
    s->src = side_of(c->src_type, c->src_host, c->src_device,
                     c->src_z * s->src_slice + c->src_y * s->src_pitch + c->src_x, MG_STEP_FROM_HOST, s);
    s->dst = side_of(c->dst_type, c->dst_host, c->dst_device,
                     c->dst_z * s->dst_slice + c->dst_y * s->dst_pitch + c->dst_x, MG_STEP_TO_HOST, s);
    set_rows(s, c->width, c->height, c->depth);
}

/* What the address that a call was given holds, now that it has returned. */
static uint64_t word_at(uint64_t address)
{
    uint64_t v = 0;
    if (address) memcpy(&v, (const void *)(uintptr_t)address, sizeof v);
    return v;
}

static uint64_t argument(const struct mg_call_frame *f, int8_t k)
{
    return k < 0 ? 0 : f->args[k];
}

static bool set_memory(struct mg_step_record *s, const struct row *row, const struct mg_call_frame *f)
{
    s->dst = argument(f, row->dst);
    s->src = argument(f, row->src);
    set_rows(s, argument(f, row->size) * row->unit, 1, 1);
    switch ((enum form)row->form) {
    case FORM_MADE:
        s->dst = word_at(s->dst);
        return s->dst != 0;
    case FORM_PITCHED:
        s->dst = word_at(s->dst);
        set_rows(s, word_at(f->args[1]) * f->args[row->size], 1, 1);
        return s->dst != 0;
    case FORM_FILL2D:
        set_rows(s, f->args[3] * row->unit, f->args[4], 1);
        s->dst_pitch = f->args[1];
        return true;
    case FORM_COPY2D:
        set_copy2d(s, (const struct cu_memcpy2d *)(uintptr_t)f->args[0]);
        return true;
    case FORM_COPY3D:
        set_copy3d(s, (const struct cu_memcpy3d *)(uintptr_t)f->args[0]);
        return true;
    case FORM_BATCH:
    case FORM_PLAIN:
        break;
    }
    return row->kind != MG_STEP_FREE || s->dst;
}

static void put_batch(struct mg_step_record *s, const struct row *row, const struct mg_call_frame *f)
{
    const uint64_t *dst = (const uint64_t *)(uintptr_t)f->args[0], *src = (const uint64_t *)(uintptr_t)f->args[1];
    const size_t *bytes = (const size_t *)(uintptr_t)f->args[2];
    for (uint64_t i = 0; dst && src && bytes && i < f->args[3]; i++) {
        s->dst = dst[i];
        s->src = src[i];
        uint64_t more = i ? mg_steps_take() : 0;
        if (i) s->order = more;
        set_rows(s, bytes[i], 1, 1);
        mg_steps_put(s, row->name);
        mg_steps_over(more);
    }
}

static bool is_per_thread(uint32_t entry)
{
    const char *name = mg_cu_entries[entry].name;
    size_t n = strlen(name);
    return n > 5 && (!strcmp(name + n - 5, "_ptds") || !strcmp(name + n - 5, "_ptsz"));
}

static bool is_recorded_by_graph(cu_stream s)
{
    int status = CUCAPTURE_NONE;
    return MG_REAL_AS(cuStreamIsCapturing, cu_stream, int *)(s, &status) == CUE_SUCCESS && status == CUCAPTURE_ACTIVE;
}

static void tell_call(const struct mg_call_frame *f)
{
    const struct row *row = &rows[mg_steps_rows[f->entry]];
    const uint64_t made = row->kind == MG_STEP_ALLOC ? mg_steps_take() : 0;
    mg_inside++;
    cu_stream stream = (cu_stream)(uintptr_t)argument(f, row->stream);
    cu_ctx ctx = NULL;
    cu_device device = 0;
    if (!stream && is_per_thread(f->entry)) stream = CU_PER_THREAD_STREAM;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx);
    if (ctx) MG_REAL_AS(cuCtxGetDevice, cu_device *)(&device);
    struct mg_step_record s = {
        .time = mg_now_ns(),
        .order = made ? made : f->order,
        .context = ctx ? mg_ctx_number(ctx) : 0,
        .stream = mg_stream_number(stream),
        .launch = UINT64_MAX,
        .device = (uint32_t)device,
        .thread = (uint32_t)gettid(),
        .flags = row->flags,
        .kind = row->kind,
    };
    if (row->stream >= 0 && is_recorded_by_graph(stream)) s.flags |= MG_STEP_GRAPH;
    if (row->form == FORM_BATCH)
        put_batch(&s, row, f);
    else if (set_memory(&s, row, f))
        mg_steps_put(&s, row->name);
    mg_steps_over(made);
    mg_inside--;
}

void mg_steps_call(const struct mg_call_frame *f, cu_result result)
{
    if (result == CUE_SUCCESS && mg_session.active) tell_call(f);
    mg_steps_over(f->order);
}

/* ---- launches ------------------------------------------------------------------------------------------------- */

static void describe(const struct mg_run *r, uint64_t order, struct mg_step_record *out)
{
    const struct mg_shape *s = &r->shape;
    *out = (struct mg_step_record){
        .time = mg_now_ns(),
        .order = order,
        .context = r->ctx,
        .stream = r->stream,
        .launch = mg_run_traced_as(r),
        .graph = r->graph == MG_GRAPH_DEVICE ? 0 : r->graph,
        .device = r->device,
        .thread = (uint32_t)gettid(),
        .shared = s->shared_bytes,
        .flags = (r->block ? MG_STEP_TRACED : 0u) | (s->cooperative ? MG_STEP_COOPERATIVE : 0u) |
                 (s->programmatic ? MG_STEP_PROGRAMMATIC : 0u) | (r->node ? MG_STEP_GRAPH : 0u) |
                 (r->child ? MG_STEP_CHILD : 0u),
        .kind = MG_STEP_LAUNCH,
    };
    memcpy(out->grid, s->grid, sizeof out->grid);
    memcpy(out->block, s->block, sizeof out->block);
    memcpy(out->cluster, s->cluster, sizeof out->cluster);
}

void mg_steps_describe(struct mg_run *r, struct mg_step_record *out)
{
    describe(r, mg_steps_take(), out);
    if (r->block) mg_steps_hold(r->step = out->order); /* its accesses come later */
}

void mg_steps_node(const struct mg_run *r, const struct mg_launch_done *d, uint64_t replay, bool own)
{
    struct mg_step_record s;
    if (!mg_steps_on) return;
    bool marked = d && d->mark.order;
    describe(r, marked ? d->mark.order : mg_steps_order(), &s);
    if (marked) s.stream = d->mark.stream;
    s.replay = replay;
    if (!own) {
        s.flags |= MG_STEP_TOGETHER;
        s.flags &= ~(uint32_t)MG_STEP_TRACED;
    }
    mg_steps_put(&s, r->inst->code->name);
}

static unsigned side_flags(const struct mg_work_span *w)
{
    return (w->direction == MG_HOST_TO_DEVICE || w->direction == MG_HOST_TO_HOST ? MG_STEP_FROM_HOST : 0u) |
           (w->direction == MG_DEVICE_TO_HOST || w->direction == MG_HOST_TO_HOST ? MG_STEP_TO_HOST : 0u);
}

void mg_steps_work(const struct mg_work_mark *m, const struct mg_work_span *w)
{
    struct mg_step_record s = {
        .time = mg_now_ns(),
        .order = m->order,
        .context = m->ctx,
        .stream = m->stream,
        .launch = UINT64_MAX,
        .replay = m->replay,
        .dst = w->dst,
        .src = w->src,
        .dst_pitch = w->dst_pitch,
        .src_pitch = w->src_pitch,
        .dst_slice = w->dst_slice,
        .src_slice = w->src_slice,
        .flags = (w->array ? MG_STEP_ARRAY : 0u) | side_flags(w),
        .kind = w->copy ? MG_STEP_COPY : MG_STEP_MEMSET,
    };
    if (!mg_steps_on || m->replay == UINT64_MAX || !m->order) return; /* else its call was told */
    set_rows(&s, w->width, w->height, w->depth);
    mg_steps_put(&s, "graph");
}

/* Memory that nodes of graphs allocate: the driver knows an address of it only while it is there. */
struct reserved {
    uint64_t at, bytes;
};
static pthread_mutex_t reserving = PTHREAD_MUTEX_INITIALIZER;
static MG_VEC(struct reserved) reserved;

static bool is_reserved(uint64_t at) /* under the lock */
{
    for (uint32_t i = 0; i < reserved.n; i++)
        if (at - reserved.at[i].at < reserved.at[i].bytes) return true;
    return false;
}

void mg_steps_alloc_node(uint64_t at, uint64_t bytes)
{
    pthread_mutex_lock(&reserving);
    if (bytes && !(is_reserved(at) && is_reserved(at + bytes - 1)))
        *mg_vec_push(&reserved) = (struct reserved){at, bytes};
    pthread_mutex_unlock(&reserving);
}

/* A pinned address counts as either the host's or a device's where a copy names it; what is not known is the host's. */
static int type_at(int given, cu_ptr at)
{
    unsigned found = 0;
    cu_result rc = MG_REAL_AS(cuPointerGetAttribute, void *, int, cu_ptr)(&found, CUPTR_MEMORY_TYPE, at);
    if (rc == CUE_SUCCESS) return found == CUMEM_HOST ? CUMEM_HOST : CUMEM_DEVICE;
    pthread_mutex_lock(&reserving);
    bool device = given == CUMEM_DEVICE || is_reserved(at);
    pthread_mutex_unlock(&reserving);
    return device ? CUMEM_DEVICE : CUMEM_HOST;
}

void mg_steps_copy_node(const struct cu_memcpy3d *given, struct mg_step_record *out)
{
    struct cu_memcpy3d c = *given;
    *out = (struct mg_step_record){.launch = UINT64_MAX, .kind = MG_STEP_COPY};
    if (c.src_type == CUMEM_UNIFIED || c.src_type == CUMEM_DEVICE) {
        c.src_type = type_at(c.src_type, c.src_device);
        c.src_host = (const void *)(uintptr_t)c.src_device;
    }
    if (c.dst_type == CUMEM_UNIFIED || c.dst_type == CUMEM_DEVICE) {
        c.dst_type = type_at(c.dst_type, c.dst_device);
        c.dst_host = (void *)(uintptr_t)c.dst_device;
    }
    set_copy3d(out, &c);
}

void mg_steps_memset_node(const struct cu_memset_node *m, struct mg_step_record *out)
{
    *out = (struct mg_step_record){.launch = UINT64_MAX, .kind = MG_STEP_MEMSET, .dst = m->dst, .dst_pitch = m->pitch};
    set_rows(out, m->width * m->element_bytes, m->height, 1);
}

void mg_steps_put_node(const struct mg_step_record *s, uint64_t order, uint64_t ctx, uint64_t stream)
{
    struct mg_step_record r = *s;
    r.time = mg_now_ns();
    r.order = order;
    r.context = ctx;
    r.stream = stream;
    mg_steps_put(&r, "graph");
}
