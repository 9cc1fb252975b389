/* The launch entries. Each describes itself as a struct mg_call; mg_launch() decides, sends the twin with
 * one more parameter or the kernel itself, and returns what the driver returned. A twin that the
 * driver rejects is followed by the kernel itself, so that the application sees its own error or none. */
#include "inject/launch.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "inject/device_clock.h"
#include "inject/gate.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/select.h"
#include "inject/session.h"
#include "inject/steps.h"
#include "inject/streams.h"
#include "inject/timeline.h"
#include "inject/verify.h"
#include "inject/waits.h"

#define REPEAT_TURN  4u  /* --repeat: runs of one code in a row */
#define REPEAT_LEAST 12u /* runs of either code, if as many are wanted; more while they have taken less than */
#define REPEAT_NS    100000000u

static cu_stream stream_of(const struct mg_call *c)
{
    return c->shape.stream || !c->shape.per_thread ? c->shape.stream : CU_PER_THREAD_STREAM;
}

static bool is_capturing(const struct mg_call *c)
{
    int status = CUCAPTURE_NONE;
    cu_stream s = stream_of(c);
    return MG_REAL_AS(cuStreamIsCapturing, cu_stream, int *)(s, &status) == CUE_SUCCESS && status == CUCAPTURE_ACTIVE;
}

/* For the trace of accesses: taken now, since the run may be over when the driver's call returns. NULL: not wanted, or
 * a node, which is told when it runs. */
static const char *begin_step(struct mg_run *r, struct mg_step_record *out)
{
    if (!mg_steps_on || r->node) return NULL;
    mg_steps_describe(r, out);
    return r->inst->code->name;
}

/* The run, and its hold on the order, may be gone. */
static void end_step(const struct mg_step_record *step, const char *name, cu_result rc)
{
    if (!name) return;
    if (rc == CUE_SUCCESS) mg_steps_put(step, name);
    mg_steps_over(step->order);
}

static cu_result send_twin(const struct mg_call *c, struct mg_run *r)
{
    struct mg_params p;
    if (!mg_params_extend(&p, r, c->params, c->extra)) return CUE_OUT_OF_MEMORY;
    struct mg_step_record step;
    const char *name = begin_step(r, &step);
    mg_run_begin(r);
    if ((mg_timeline.on && mg_timeline.work) || mg_device_clock_is_read(r))
        r->sent_ns = mg_now_ns(); /* later than the call by what made the twin */
    cu_result rc = mg_session.backend->send(c, r, p.params, p.extra);
    mg_params_release(&p);
    end_step(&step, name, rc);
    return rc;
}

static cu_result send_native(const struct mg_call *c, struct mg_run *r)
{
    struct mg_step_record step;
    const char *name = begin_step(r, &step);
    mg_run_begin(r);
    cu_result rc = mg_session.backend->send(c, r, c->params, c->extra);
    if (rc != CUE_SUCCESS) {
        mg_run_reject(r);
        mg_run_free(r);
    }
    end_step(&step, name, rc);
    return rc;
}

static cu_result send_instrumented(const struct mg_call *c, struct mg_run *r)
{
    cu_result rc = send_twin(c, r);
    if (rc != CUE_SUCCESS) {
        mg_run_reject(r);
        rc = send_native(c, mg_run_native(r, MG_REASON_driver_rejects));
    }
    return rc;
}

/* --repeat: both codes on the memory that the launch found, in turns of some runs each: the first of a turn finds the
 * instructions of the other code in the caches, the others their own, as a program's further launches do. The runs are
 * launches of the profile like any other; what stands in front of each keeps what the host needs to send it out of its
 * time. */
static bool run_once(const struct mg_call *c, struct mg_inst *i, struct mg_verify *v, enum mg_select_turn turn)
{
    mg_select_force(turn);
    struct mg_run *r = mg_run_new(i, &c->shape, c->params, c->extra, false);
    mg_select_force(MG_TURN_ANY);
    if (r && r->block) r->reason = mg_why_of(MG_REASON_repeat);
    bool held = r && mg_session_can(MG_BACKEND_HARDWARE) && mg_hold_begin(c->shape.stream, c->shape.per_thread);
    cu_result rc = !r ? CUE_OUT_OF_MEMORY : r->block ? send_instrumented(c, r) : send_native(c, r);
    if (held) mg_hold_end();
    return mg_verify_again(v) && rc == CUE_SUCCESS;
}

static void repeat(const struct mg_call *c, struct mg_inst *i, struct mg_verify *v)
{
    const uint32_t most = mg_session.config.repeat;
    const uint64_t start = mg_now_ns();
    for (uint32_t done = 0, now; done < most && (done < REPEAT_LEAST || mg_now_ns() - start < REPEAT_NS); done += now) {
        now = MG_MIN(most - done, REPEAT_TURN);
        for (uint32_t k = 0; k < 2 * now; k++)
            if (!run_once(c, i, v, k < now ? MG_TURN_NATIVE : MG_TURN_TWIN)) return;
    }
}

/* --verify: native runs first, and afterwards a look at what the twin wrote. */
static cu_result send_verified(const struct mg_call *c, struct mg_run *r)
{
    struct mg_verify *v;
    struct mg_inst *i = r->inst;
    enum mg_reason why;
    cu_result rc;
    if (mg_verify_begin(c, r, &v, &rc, &why)) {
        mg_run_free(r);
        if (rc == CUE_SUCCESS) mg_run_record(i, &c->shape, why);
        return rc;
    }
    if (v) repeat(c, i, v);
    rc = send_instrumented(c, r);
    if (v) mg_verify_end(v, c, rc);
    return rc;
}

cu_result mg_launch(const struct mg_call *c)
{
    if (!mg_session.active || mg_inside) return c->send(c, c->f, c->params, c->extra);
    cu_result rc;
    if (mg_session_is_short()) {
        rc = c->send(c, c->f, c->params, c->extra);
        if (rc == CUE_SUCCESS) mg_session_miss();
        return rc;
    }
    bool verify = mg_session.config.verify, capturing = is_capturing(c);
    bool gated = mg_gate_is_on() && !capturing && !verify && mg_gate_pass(); /* under no lock of ours */
    mg_inside++;
    if (verify) mg_verify_enter();
    struct mg_inst *i = mg_kernel_get(c->f);
    struct mg_run *r = i ? mg_run_new(i, &c->shape, c->params, c->extra, capturing) : NULL;
    if (r) r->gated = gated;
    if (r && r->node) r->graph = mg_capture_number(stream_of(c));
    if (!r) {
        rc = c->send(c, c->f, c->params, c->extra);
        if (rc == CUE_SUCCESS) mg_run_unknown(i ? MG_REASON_no_memory : MG_REASON_no_lookup);
    } else if (r->block) {
        rc = verify ? send_verified(c, r) : send_instrumented(c, r);
    } else {
        rc = send_native(c, r);
    }
    if (verify) mg_verify_leave();
    if (rc == CUE_SUCCESS && !capturing) mg_select_taken(), mg_waits_launched(stream_of(c));
    if (gated && (!r || rc != CUE_SUCCESS)) mg_gate_undo(rc != CUE_SUCCESS);
    mg_inside--;
    return rc;
}

/* ---- the entries --------------------------------------------------------------------------------------------- */

#define SHAPE(pt)                                                                                                      \
    {                                                                                                                  \
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared, .stream = stream, .per_thread = pt        \
    }
#define SHAPE_ARGS(s)                                                                                                  \
    (s)->grid[0], (s)->grid[1], (s)->grid[2], (s)->block[0], (s)->block[1], (s)->block[2], (s)->shared_bytes,          \
        (s)->stream
#define GEOMETRY unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared

#define LAUNCH_KERNEL(name, pt)                                                                                        \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra);                 \
    MG_HOOK(name, cu_function f, GEOMETRY, cu_stream stream, void **params, void **extra)                              \
    {                                                                                                                  \
        struct mg_call c = {.f = f, .shape = SHAPE(pt), .params = params, .extra = extra, .send = send_##name};        \
        return mg_launch(&c);                                                                                          \
    }                                                                                                                  \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra)                  \
    {                                                                                                                  \
        return MG_REAL(name)(f, SHAPE_ARGS(&c->shape), params, extra);                                                 \
    }
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define LAUNCH_COOPERATIVE(name, pt)                                                                                   \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra);                 \
    MG_HOOK(name, cu_function f, GEOMETRY, cu_stream stream, void **params)                                            \
    {                                                                                                                  \
        struct mg_call c = {.f = f, .shape = SHAPE(pt), .params = params, .send = send_##name};                        \
        c.shape.cooperative = true;                                                                                    \
        return mg_launch(&c);                                                                                          \
    }                                                                                                                  \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra)                  \
    {                                                                                                                  \
        (void)extra;                                                                                                   \
        return MG_REAL(name)(f, SHAPE_ARGS(&c->shape), params);                                                        \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

static void read_config(struct mg_shape *s, const struct cu_launch_config *c)
{
    *s = (struct mg_shape){
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .shared_bytes = c->shared_bytes,
        .stream = c->stream,
    };
    for (unsigned k = 0; c->attrs && k < c->n_attrs; k++) {
        const union cu_launch_value *v = &c->attrs[k].value;
        if (c->attrs[k].id == CULAUNCH_COOPERATIVE)
            s->cooperative = v->cooperative != 0;
        else if (c->attrs[k].id == CULAUNCH_CLUSTER_DIMENSION)
            s->cluster[0] = v->cluster.x, s->cluster[1] = v->cluster.y, s->cluster[2] = v->cluster.z;
        else if (c->attrs[k].id == CULAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION)
            s->programmatic = v->serialization != 0;
        else if (c->attrs[k].id == CULAUNCH_PROGRAMMATIC_EVENT || c->attrs[k].id == CULAUNCH_LAUNCH_COMPLETION_EVENT)
            s->own_event = true;
    }
}

#define LAUNCH_EX(name, pt)                                                                                            \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra);                 \
    MG_HOOK(name, const struct cu_launch_config *config, cu_function f, void **params, void **extra)                   \
    {                                                                                                                  \
        struct mg_call c = {.f = f, .params = params, .extra = extra, .config = config, .send = send_##name};          \
        if (config) read_config(&c.shape, config), c.shape.per_thread = pt;                                            \
        return config ? mg_launch(&c) : MG_REAL(name)(config, f, params, extra);                                       \
    }                                                                                                                  \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra)                  \
    {                                                                                                                  \
        return MG_REAL(name)(c->config, f, params, extra);                                                             \
    }
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

/* A launch on several devices: the kernels themselves run, and the profile says so. */
static void ran_native(cu_result rc, void *f, const struct mg_shape *s, enum mg_reason reason)
{
    struct mg_inst *i = rc == CUE_SUCCESS && mg_session.active && !mg_inside ? mg_kernel_get(f) : NULL;
    if (i) mg_run_record(i, s, reason);
}
MG_HOOK(cuLaunchCooperativeKernelMultiDevice, struct cu_multi_launch *list, unsigned n, unsigned flags)
{
    cu_result rc = MG_REAL(cuLaunchCooperativeKernelMultiDevice)(list, n, flags);
    for (unsigned k = 0; k < n && rc == CUE_SUCCESS; k++)
        ran_native(rc, list[k].function,
                   &(struct mg_shape){.grid = {list[k].grid_x, list[k].grid_y, list[k].grid_z},
                                      .block = {list[k].block_x, list[k].block_y, list[k].block_z},
                                      .shared_bytes = list[k].shared_bytes,
                                      .stream = list[k].stream,
                                      .cooperative = true},
                   MG_REASON_multi_device);
    return rc;
}
