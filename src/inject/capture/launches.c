/* Launches, and the points where the program waits for them. */
#include "inject/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "inject/kernels.h"
#include "inject/session.h"
#include "inject/streams.h"

bool mg_cap_is_capturing(cu_stream s, bool per_thread)
{
    int status = CUCAPTURE_NONE;
    return MG_REAL_AS(cuStreamIsCapturing, cu_stream, int *)(STREAM_OF(s, per_thread), &status) == CUE_SUCCESS &&
           status != CUCAPTURE_NONE;
}

/* The arguments as the kernel sees them, as in run.c. */
static uint64_t *read_args(const struct mg_inst *i, void **params, void **extra)
{
    uint64_t *args = calloc(i->param_bytes / 8 + 1, 8);
    const void *from = NULL;
    size_t bytes = 0;
    for (uint32_t k = 0; args && params && k < i->n_params; k++)
        if (params[k]) memcpy((char *)args + i->param_offsets[k], params[k], i->param_sizes[k]);
    for (void **e = extra; args && !params && e && *e != CULAUNCH_PARAM_END; e += 2) {
        if (*e == CULAUNCH_PARAM_BUFFER_POINTER)
            from = e[1];
        else if (*e == CULAUNCH_PARAM_BUFFER_SIZE && e[1])
            bytes = *(const size_t *)e[1];
    }
    if (from) memcpy(args, from, MG_MIN(bytes, (size_t)i->param_bytes));
    return args;
}

bool mg_cap_launch_read(struct mg_cap_launch_in *l, void *function, const struct mg_shape *s, void **params,
                        void **extra)
{
    struct mg_inst *i;
    *l = (struct mg_cap_launch_in){.shape = *s, .stream = mg_stream_number(s->stream), .why = mg_capture.sticky};
    l->kernel = mg_cap_kernel_of(function, &i);
    if (!l->kernel || !(l->args = read_args(i, params, extra))) return false;
    l->arg_bytes = i->param_bytes;
    if (s->own_event) l->why = mg_capture_miss("events that a launch itself records are not captured", false);
    return true;
}

void mg_cap_launch_before(const struct mg_cap_launch_in *l)
{
    for (uint32_t k = 0; k < l->arg_bytes / 8; k++) {
        struct mg_cap_area *a = mg_cap_area_find(l->args[k]);
        if (a) mg_cap_area_tell(a);
    }
    mg_shared_before();
}

void mg_cap_launch_put(const struct mg_cap_launch_in *l)
{
    const struct mg_shape *s = &l->shape;
    uint64_t w[MG_CAP_L_COUNT] = {[MG_CAP_L_NUMBER] = mg_capture.n_launches++,
                                  [MG_CAP_L_KERNEL] = l->kernel,
                                  [MG_CAP_L_SHARED] = s->shared_bytes,
                                  [MG_CAP_L_FLAGS] = (s->cooperative ? MG_CAP_COOPERATIVE : 0) |
                                                     (s->programmatic ? MG_CAP_PROGRAMMATIC : 0),
                                  [MG_CAP_L_STREAM] = l->stream,
                                  [MG_CAP_L_GRAPH] = l->graph,
                                  [MG_CAP_L_WHY] = l->why};
    for (int k = 0; k < 3; k++) {
        w[MG_CAP_L_GRID + k] = s->grid[k];
        w[MG_CAP_L_BLOCK + k] = s->block[k];
        w[MG_CAP_L_CLUSTER + k] = s->cluster[k];
    }
    mg_capture_put(MG_CAP_launch, w, MG_CAP_L_COUNT, l->args, l->arg_bytes);
}

/* ---- entries ------------------------------------------------------------------------------------------------ */

struct call { /* what differs between the entries */
    void *f;
    struct mg_shape shape;
    void **params, **extra;
    const struct cu_launch_config *config;
    cu_result (*send)(const struct call *c);
};

static cu_result launch(const struct call *c)
{
    struct mg_cap_launch_in l = {0};
    if (!mg_capture_looks() || mg_cap_is_capturing(c->shape.stream, c->shape.per_thread)) return c->send(c);
    mg_capture_lock();
    mg_check_stream(STREAM_OF(c->shape.stream, c->shape.per_thread));
    bool known = mg_cap_launch_read(&l, c->f, &c->shape, c->params, c->extra);
    if (known) mg_cap_launch_before(&l);
    mg_inside--; /* the hook looks at it as at every launch */
    cu_result rc = c->send(c);
    mg_inside++;
    if (rc == CUE_SUCCESS && known) {
        mg_cap_launch_put(&l);
        mg_check_launch(l.args, l.arg_bytes);
    } else if (rc == CUE_SUCCESS) {
        mg_capture_miss("a launch of a kernel that was not seen to be loaded is not captured", true);
    }
    free(l.args);
    mg_capture_unlock();
    return rc;
}

#define GEOMETRY unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared
#define SHAPE(pt, coop)                                                                                                \
    {                                                                                                                  \
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared, .stream = stream, .per_thread = pt,       \
        .cooperative = coop                                                                                            \
    }
#define SENT(s)                                                                                                        \
    (s)->grid[0], (s)->grid[1], (s)->grid[2], (s)->block[0], (s)->block[1], (s)->block[2], (s)->shared_bytes,          \
        (s)->stream

#define LAUNCH(name, pt)                                                                                               \
    static cu_result send_##name(const struct call *c);                                                                \
    MG_CAPTURE(name, cu_function f, GEOMETRY, cu_stream stream, void **params, void **extra)                           \
    {                                                                                                                  \
        return launch(                                                                                                 \
            &(struct call){.f = f, .shape = SHAPE(pt, false), .params = params, .extra = extra, .send = send_##name}); \
    }                                                                                                                  \
    static cu_result send_##name(const struct call *c)                                                                 \
    {                                                                                                                  \
        return NEXT(name)(c->f, SENT(&c->shape), c->params, c->extra);                                                 \
    }
LAUNCH(cuLaunchKernel, false)
LAUNCH(cuLaunchKernel_ptsz, true)

#define LAUNCH_COOPERATIVE(name, pt)                                                                                   \
    static cu_result send_##name(const struct call *c);                                                                \
    MG_CAPTURE(name, cu_function f, GEOMETRY, cu_stream stream, void **params)                                         \
    {                                                                                                                  \
        return launch(&(struct call){.f = f, .shape = SHAPE(pt, true), .params = params, .send = send_##name});        \
    }                                                                                                                  \
    static cu_result send_##name(const struct call *c)                                                                 \
    {                                                                                                                  \
        return NEXT(name)(c->f, SENT(&c->shape), c->params);                                                           \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

static void read_config(struct mg_shape *s, const struct cu_launch_config *c, bool per_thread)
{
    *s = (struct mg_shape){.grid = {c->grid_x, c->grid_y, c->grid_z},
                           .block = {c->block_x, c->block_y, c->block_z},
                           .shared_bytes = c->shared_bytes,
                           .stream = c->stream,
                           .per_thread = per_thread};
    for (unsigned k = 0; c->attrs && k < c->n_attrs; k++) {
        const union cu_launch_value *v = &c->attrs[k].value;
        switch (c->attrs[k].id) {
        case CULAUNCH_COOPERATIVE:
            s->cooperative = v->cooperative != 0;
            break;
        case CULAUNCH_CLUSTER_DIMENSION:
            s->cluster[0] = v->cluster.x, s->cluster[1] = v->cluster.y, s->cluster[2] = v->cluster.z;
            break;
        case CULAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION:
            s->programmatic = v->serialization != 0;
            break;
        case CULAUNCH_PROGRAMMATIC_EVENT:
        case CULAUNCH_LAUNCH_COMPLETION_EVENT:
            s->own_event = true;
            break;
        default:
            break; /* they change times, not results */
        }
    }
}
#define LAUNCH_EX(name, pt)                                                                                            \
    static cu_result send_##name(const struct call *c);                                                                \
    MG_CAPTURE(name, const struct cu_launch_config *config, cu_function f, void **params, void **extra)                \
    {                                                                                                                  \
        struct call c = {.f = f, .params = params, .extra = extra, .config = config, .send = send_##name};             \
        if (!config) return send_##name(&c);                                                                           \
        read_config(&c.shape, config, pt);                                                                             \
        return launch(&c);                                                                                             \
    }                                                                                                                  \
    static cu_result send_##name(const struct call *c)                                                                 \
    {                                                                                                                  \
        return NEXT(name)(c->config, c->f, c->params, c->extra);                                                       \
    }
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

/* ---- waits ------------------------------------------------------------------------------------------------------ */

static cu_result waited(cu_result rc)
{
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        mg_check_sync();
        mg_capture_unlock();
    }
    return rc;
}
MG_CAPTURE(cuCtxSynchronize, void)
{
    return waited(NEXT(cuCtxSynchronize)());
}
MG_CAPTURE(cuStreamSynchronize, cu_stream s)
{
    return waited(NEXT(cuStreamSynchronize)(s));
}
MG_CAPTURE(cuStreamSynchronize_ptsz, cu_stream s)
{
    return waited(NEXT(cuStreamSynchronize_ptsz)(s));
}
MG_CAPTURE(cuEventSynchronize, cu_event e)
{
    return waited(NEXT(cuEventSynchronize)(e));
}
/* Its handle may not be asked any more. */
static void stream_ends(cu_stream s)
{
    if (!mg_capture_looks()) return;
    mg_capture_lock();
    mg_capture.uses_streams |= s == mg_capture.stream;
    mg_capture_unlock();
}
MG_CAPTURE(cuStreamDestroy, cu_stream s)
{
    stream_ends(s);
    return NEXT(cuStreamDestroy)(s);
}
MG_CAPTURE(cuStreamDestroy_v2, cu_stream s)
{
    stream_ends(s);
    return NEXT(cuStreamDestroy_v2)(s);
}
