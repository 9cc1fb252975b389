/* Launches: every form becomes one kernel op, after the checks a launch call makes. Also the
 * extension of driver.h that speaks of functions: notes, twins, addresses. */
#include "driver/priv.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- notes -------------------------------------------------------------------------------------- */

static _Thread_local struct {
    mg_launch_done_fn fn;
    void *user;
    void (*drop)(void *user);
} note;

void mg_driver_note_next_node(mg_launch_done_fn fn, void *user, void (*drop)(void *user))
{
    if (note.fn && note.drop) note.drop(note.user); /* nobody took it */
    note.fn = fn;
    note.user = user;
    note.drop = drop;
}

void mg_driver_note_next_launch(mg_launch_done_fn fn, void *user)
{
    mg_driver_note_next_node(fn, user, NULL);
}

void mg_note_unref(struct mg_note_life *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) != 1) return;
    l->drop(l->user);
    free(l);
}

bool mg_note_take(struct mg_kernel_op *k)
{
    bool had = note.fn != NULL;
    if (had) {
        k->note = note.fn;
        k->note_user = note.user;
        k->life = note.drop ? malloc(sizeof *k->life) : NULL; /* without memory for it the note lives for ever */
        if (k->life)
            *k->life = (struct mg_note_life){
                .refs = 1, .drop = note.drop, .user = note.user, .lock = PTHREAD_MUTEX_INITIALIZER};
    }
    note.fn = NULL;
    return had;
}

/* ---- parameters ------------------------------------------------------------------------------------- */

static cu_result gather(struct mg_kernel_op *k, const struct mg_kernel_info *info, void **params, void **extra)
{
    k->param_bytes = info->param_bytes;
    k->params = calloc(1, info->param_bytes ? info->param_bytes : 1);
    if (!k->params) return CUE_OUT_OF_MEMORY;
    if (params) {
        for (uint32_t i = 0; i < info->n_params; i++) {
            CHECK(params[i] || !info->param_sizes[i]);
            memcpy(k->params + info->param_offsets[i], params[i], info->param_sizes[i]);
        }
        return CUE_SUCCESS;
    }
    const void *buffer = NULL;
    size_t bytes = 0;
    for (void **e = extra; e && *e != CULAUNCH_PARAM_END; e += 2) {
        if (*e == CULAUNCH_PARAM_BUFFER_POINTER)
            buffer = e[1];
        else if (*e == CULAUNCH_PARAM_BUFFER_SIZE)
            bytes = e[1] ? *(size_t *)e[1] : 0;
        else
            return CUE_INVALID_VALUE;
    }
    CHECK(!info->n_params || (buffer && bytes));
    if (buffer) memcpy(k->params, buffer, MG_MIN(bytes, info->param_bytes));
    return CUE_SUCCESS;
}

/* ---- checks ------------------------------------------------------------------------------------------ */

static cu_result read_attributes(struct mg_kernel_op *k, const struct cu_launch_config *c, struct CUfunc_st *f)
{
    const struct mg_func *fn = f->info.func;
    CHECK(!c->n_attrs || c->attrs);
    for (unsigned i = 0; i < c->n_attrs; i++) {
        const union cu_launch_value *v = &c->attrs[i].value;
        switch (c->attrs[i].id) {
        case CULAUNCH_COOPERATIVE:
            k->cooperative = v->cooperative != 0;
            break;
        case CULAUNCH_CLUSTER_DIMENSION:
            k->cluster = (struct mg_dim3){v->cluster.x, v->cluster.y, v->cluster.z};
            break;
        case CULAUNCH_PRIORITY:
            k->priority = v->priority;
            break;
        case CULAUNCH_PROGRAMMATIC_EVENT:
        case CULAUNCH_LAUNCH_COMPLETION_EVENT:
            if (v->completion_event.event) k->after_event = v->completion_event.event;
            break;
        case CULAUNCH_DEVICE_UPDATABLE_KERNEL_NODE:
            if (v->device_node.updatable) return CUE_NOT_SUPPORTED;
            break;
        default:
            break; /* hints */
        }
    }
    if (fn && fn->cluster[0]) {
        struct mg_dim3 want = {fn->cluster[0], MG_MAX(fn->cluster[1], 1), MG_MAX(fn->cluster[2], 1)};
        if (!k->cluster.x)
            k->cluster = want;
        else if (k->cluster.x != want.x || k->cluster.y != want.y || k->cluster.z != want.z)
            return CUE_INVALID_VALUE;
    }
    if (k->cluster.x == 1 && k->cluster.y == 1 && k->cluster.z == 1) k->cluster = (struct mg_dim3){0, 0, 0};
    return CUE_SUCCESS;
}

static cu_result check(const struct mg_kernel_op *k, const struct CUfunc_st *f)
{
    const int *a = mg_drv.attrs;
    CHECK(k->grid.x && k->grid.y && k->grid.z && k->block.x && k->block.y && k->block.z);
    CHECK(k->grid.x <= (unsigned)a[CUDEV_MAX_GRID_DIM_X] && k->grid.y <= (unsigned)a[CUDEV_MAX_GRID_DIM_Y] &&
          k->grid.z <= (unsigned)a[CUDEV_MAX_GRID_DIM_Z]);
    CHECK(k->block.x <= (unsigned)a[CUDEV_MAX_BLOCK_DIM_X] && k->block.y <= (unsigned)a[CUDEV_MAX_BLOCK_DIM_Y] &&
          k->block.z <= (unsigned)a[CUDEV_MAX_BLOCK_DIM_Z]);
    uint64_t threads = (uint64_t)k->block.x * k->block.y * k->block.z;
    CHECK(threads <= (unsigned)a[CUDEV_MAX_THREADS_PER_BLOCK]);
    const struct mg_func *fn = f->info.func;
    if (fn && fn->reqntid[0])
        CHECK(k->block.x == fn->reqntid[0] && k->block.y == MG_MAX(fn->reqntid[1], 1) &&
              k->block.z == MG_MAX(fn->reqntid[2], 1));
    if (threads > (uint64_t)mg_func_max_threads(f)) return CUE_LAUNCH_OUT_OF_RESOURCES;
    int dynamic = mg_func_max_dynamic(f);
    CHECK(k->shared_bytes <= (unsigned)MG_MAX(dynamic, 0));
    if (k->cluster.x) {
        uint64_t n = (uint64_t)k->cluster.x * k->cluster.y * k->cluster.z;
        if (!n || n > 16 || k->grid.x % k->cluster.x || k->grid.y % k->cluster.y || k->grid.z % k->cluster.z)
            return CUE_INVALID_CLUSTER_SIZE;
        if (n > 8 && !f->attrs[CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED]) return CUE_INVALID_CLUSTER_SIZE;
    }
    if (k->cooperative) {
        uint64_t fit =
            (uint64_t)mg_occupancy(f, (int)threads, k->shared_bytes) * (unsigned)a[CUDEV_MULTIPROCESSOR_COUNT];
        if ((uint64_t)k->grid.x * k->grid.y * k->grid.z > fit) return CUE_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    return CUE_SUCCESS;
}

/* Decoding now rather than on the first run lets a launch be refused where it is made. */
static cu_result prepare(struct CUfunc_st *f)
{
    if (!mg_drv.ops->prepare || __atomic_load_n(&f->prepared, __ATOMIC_ACQUIRE)) return CUE_SUCCESS;
    struct mg_fault fault = {0};
    if (!mg_drv.ops->prepare(f->dk, &fault)) {
        __atomic_store_n(&f->prepared, true, __ATOMIC_RELEASE);
        return CUE_SUCCESS;
    }
    bool said = __atomic_exchange_n(&f->refusal_said, true, __ATOMIC_RELAXED);
    if (!said && !f->native && fault.text[0])
        mg_say_of_kernel(fault.text); /* a twin's kernel itself follows and says it */
    cu_result r = mg_fault_result(fault.kind);
    return r ? r : CUE_NOT_SUPPORTED;
}

cu_result mg_kernel_op_make(struct mg_work *op, const void *handle, const struct cu_launch_config *c, void **params,
                            void **extra)
{
    struct CUfunc_st *f;
    struct CUkern_st *kernel;
    cu_result r = mg_func_get(handle, &f, &kernel);
    if (r) return r;
    CHECK(!(params && extra));
    *op = (struct mg_work){.kind = MG_OPK_KERNEL};
    struct mg_kernel_op *k = &op->u.kernel;
    k->func = f;
    k->kernel = kernel;
    k->grid = (struct mg_dim3){c->grid_x, c->grid_y, c->grid_z};
    k->block = (struct mg_dim3){c->block_x, c->block_y, c->block_z};
    k->shared_bytes = c->shared_bytes;
    r = read_attributes(k, c, f);
    if (!r) r = check(k, f->native ? f->native : f);
    if (!r) r = prepare(f);
    if (!r) r = gather(k, &f->info, params, extra);
    if (r) mg_work_release(op);
    return r;
}

/* ---- the calls ------------------------------------------------------------------------------------------ */

/* A function runs in its own context alone; a twin counts as the kernel it stands for. */
static bool is_elsewhere(const struct CUfunc_st *f, const struct CUstream_st *s)
{
    return (f->native ? f->native : f)->module->ctx != s->ctx;
}

static cu_result launch(const void *f, const struct cu_launch_config *c, void **params, void **extra, bool cooperative,
                        int pt)
{
    struct mg_work op = {0};
    struct CUstream_st *s;
    cu_result r = mg_stream_get(c->stream, pt, &s);
    if (!r) r = mg_kernel_op_make(&op, f, c, params, extra);
    if (!r && is_elsewhere(op.u.kernel.func, s)) {
        mg_work_release(&op);
        r = CUE_INVALID_HANDLE;
    }
    if (!r && cooperative && !op.u.kernel.cooperative) {
        op.u.kernel.cooperative = true;
        r = check(&op.u.kernel, op.u.kernel.func->native ? op.u.kernel.func->native : op.u.kernel.func);
        if (r) mg_work_release(&op);
    }
    if (r) {
        mg_driver_note_next_launch(NULL, NULL);
        return r;
    }
    struct CUevent_st *event = op.u.kernel.after_event;
    mg_note_take(&op.u.kernel);
    mg_print_flush();
    r = mg_stream_do(s, &op, MG_ASYNC);
    if (!r && event) r = mg_event_record(event, s);
    return r;
}

static cu_result launch_plain(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, cu_stream s, void **params, void **extra, bool cooperative,
                              int pt)
{
    struct cu_launch_config c = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
    return launch(f, &c, params, extra, cooperative, pt);
}
MG_BOTH(cuLaunchKernel, ptsz,
        (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
         cu_stream s, void **params, void **extra),
        launch_plain(f, gx, gy, gz, bx, by, bz, shared, s, params, extra, false, PT))
MG_BOTH(cuLaunchCooperativeKernel, ptsz,
        (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
         cu_stream s, void **params),
        launch_plain(f, gx, gy, gz, bx, by, bz, shared, s, params, NULL, true, PT))

static cu_result launch_ex(const struct cu_launch_config *c, cu_function f, void **params, void **extra, int pt)
{
    CHECK(c);
    return launch(f, c, params, extra, false, pt);
}
MG_BOTH(cuLaunchKernelEx, ptsz, (const struct cu_launch_config *c, cu_function f, void **params, void **extra),
        launch_ex(c, f, params, extra, PT))

static cu_result cuLaunchCooperativeKernelMultiDevice(struct cu_multi_launch *list, unsigned n, unsigned flags)
{
    CHECK(list && n && (int)n <= mg_drv.n_devices && flags <= 3);
    if (n > 1) {
        mg_say("cuLaunchCooperativeKernelMultiDevice on %u devices is not supported", n);
        return CUE_NOT_SUPPORTED;
    }
    return launch_plain(list->function, list->grid_x, list->grid_y, list->grid_z, list->block_x, list->block_y,
                        list->block_z, list->shared_bytes, list->stream, list->params, NULL, true, 0);
}

/* ---- launches of CUDA 3 and before -------------------------------------------------------------------- */

static cu_result cuFuncSetBlockShape(cu_function h, int x, int y, int z)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(x > 0 && y > 0 && z > 0);
    f->legacy.block[0] = x, f->legacy.block[1] = y, f->legacy.block[2] = z;
    return CUE_SUCCESS;
}

static cu_result cuFuncSetSharedSize(cu_function h, unsigned bytes)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    f->legacy.shared = bytes;
    return CUE_SUCCESS;
}

static cu_result cuParamSetSize(cu_function h, unsigned bytes)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(bytes <= f->info.param_bytes);
    return CUE_SUCCESS;
}

static cu_result cuParamSetv(cu_function h, int offset, void *value, unsigned bytes)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(value && offset >= 0 && (unsigned)offset <= f->info.param_bytes &&
          bytes <= f->info.param_bytes - (unsigned)offset);
    if (!f->legacy.params && !(f->legacy.params = calloc(1, f->info.param_bytes ? f->info.param_bytes : 1)))
        return CUE_OUT_OF_MEMORY;
    memcpy(f->legacy.params + offset, value, bytes);
    return CUE_SUCCESS;
}
static cu_result cuParamSeti(cu_function h, int offset, unsigned value)
{
    return cuParamSetv(h, offset, &value, 4);
}
static cu_result cuParamSetf(cu_function h, int offset, float value)
{
    return cuParamSetv(h, offset, &value, 4);
}

static cu_result cuLaunchGridAsync(cu_function h, int width, int height, cu_stream s)
{
    struct CUfunc_st *f;
    cu_result r = mg_func_get(h, &f, NULL);
    if (r) return r;
    CHECK(width > 0 && height > 0 && f->legacy.block[0]);
    size_t bytes = f->info.param_bytes;
    uint8_t none = 0;
    void *extra[] = {CULAUNCH_PARAM_BUFFER_POINTER, f->legacy.params ? f->legacy.params : &none,
                     CULAUNCH_PARAM_BUFFER_SIZE, &bytes, CULAUNCH_PARAM_END};
    CHECK(f->legacy.params || !bytes);
    return launch_plain(h, (unsigned)width, (unsigned)height, 1, (unsigned)f->legacy.block[0],
                        (unsigned)f->legacy.block[1], (unsigned)f->legacy.block[2], f->legacy.shared, s, NULL, extra,
                        false, 0);
}
static cu_result cuLaunchGrid(cu_function h, int width, int height)
{
    return cuLaunchGridAsync(h, width, height, NULL);
}
static cu_result cuLaunch(cu_function h)
{
    return cuLaunchGridAsync(h, 1, 1, NULL);
}

/* ---- what inject asks of functions --------------------------------------------------------------------- */

static struct CUfunc_st *func_of(void *handle)
{
    struct CUfunc_st *f = NULL;
    if (mg_obj_is(handle, MG_OBJ_FUNC)) return handle;
    return mg_func_get(handle, &f, NULL) ? NULL : f;
}

struct mg_dkernel *mg_driver_kernel(void *function)
{
    struct CUfunc_st *f = func_of(function);
    return f ? f->dk : NULL;
}

const struct mg_module *mg_driver_module(void *function)
{
    struct CUfunc_st *f = func_of(function);
    return f && !f->module->ir->fused ? f->module->ir : NULL; /* not where functions were put in place (parse) */
}

bool mg_driver_registers_estimated(void *function)
{
    struct CUfunc_st *f = func_of(function);
    return f && !f->recorded_registers;
}

uint64_t mg_driver_function_address(void *function, const char *name)
{
    struct CUfunc_st *f = func_of(function);
    return f ? mg_drv.ops->function_address(f->module->dmod, name) : 0;
}

bool mg_driver_global_address(void *function, const char *name, uint64_t *address, uint64_t *bytes)
{
    struct CUfunc_st *f = func_of(function);
    return f && !mg_drv.ops->global(f->module->dmod, name, address, bytes);
}

void mg_driver_positions(void *function,
                         void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps), void *user)
{
    struct CUfunc_st *f = func_of(function);
    if (f && mg_drv.ops->positions) mg_drv.ops->positions(f->module->dmod, fn, user);
}

cu_result mg_driver_twin_open(struct mg_module *ir, const char *name, void *native, void **twin)
{
    struct CUctx_st *ctx;
    struct CUmod_st *m;
    struct mg_diag d = MG_DIAG_INIT;
    cu_result r = mg_enter(&ctx);
    if (r)
        mg_module_free(ir);
    else
        r = mg_module_open(ctx, ir, NULL, NULL, &m, &d);
    if (!r && !(*twin = mg_module_func(m, name))) {
        mg_module_close(m);
        r = CUE_NOT_FOUND;
    }
    if (!r) ((struct CUfunc_st *)*twin)->native = func_of(native);
    mg_diag_release(&d);
    return r;
}

static bool is_idle(const struct CUctx_st *ctx) /* lock held */
{
    for (uint32_t i = 0; i < ctx->streams.n; i++)
        if (ctx->streams.at[i]->tail && !ctx->streams.at[i]->tail->done) return false;
    return true;
}

bool mg_driver_twin_close(void *twin)
{
    if (!mg_obj_is(twin, MG_OBJ_FUNC)) return true; /* its context has died */
    struct CUmod_st *m = ((struct CUfunc_st *)twin)->module;
    mg_lock();
    bool idle = is_idle(m->ctx);
    mg_unlock();
    if (idle) mg_module_close(m);
    return idle;
}

const struct mg_entry mg_entries_launch[] = {
    MG_ENTRY2(cuLaunchKernel, ptsz),
    MG_ENTRY2(cuLaunchCooperativeKernel, ptsz),
    MG_ENTRY2(cuLaunchKernelEx, ptsz),
    MG_ENTRY(cuLaunchCooperativeKernelMultiDevice),
    MG_ENTRY(cuFuncSetBlockShape),
    MG_ENTRY(cuFuncSetSharedSize),
    MG_ENTRY(cuParamSetSize),
    MG_ENTRY(cuParamSetv),
    MG_ENTRY(cuParamSeti),
    MG_ENTRY(cuParamSetf),
    MG_ENTRY(cuLaunch),
    MG_ENTRY(cuLaunchGrid),
    MG_ENTRY(cuLaunchGridAsync),
    {0},
};
