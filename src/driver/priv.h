/* Inside of the driver: objects behind the handles, the queue of work, and what its files share.
 *
 *   entry (cu*) -- checks handles and arguments -- struct mg_work --+-- stream idle or busy -- task -- worker -- device
 *                                                                 +-- stream capturing ---- graph node
 *
 * An op says what to do (launch, copy, fill, call back, ...); a task is one op with the tasks it
 * waits for; a graph node is one op with the nodes it depends on. A stream is little more than
 * "the task submitted last": order within it, events and the rules of the default stream are all
 * edges between tasks, fixed when they are submitted.
 *
 * One lock (mg_drv.lock) guards objects and tasks. It is never held while a kernel, a copy or a
 * function of the application runs. Global state is allowed here: the interface has no handle for it.
 */
#ifndef MG_DRIVER_PRIV_H
#define MG_DRIVER_PRIV_H

#include <pthread.h>

#include "abi/cu.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/mem.h"
#include "device/texture.h"
#include "driver/driver.h"
#include "driver/link.h"

/* ---- entries: every file ends with its table, symbol.c joins them ----------------------------- */

struct mg_entry {
    const char *name;
    void *fn;
};
#define MG_ENTRY(name)                                                                                                 \
    {                                                                                                                  \
#name, (void *)name                                                                                            \
    }
#define MG_ENTRY2(name, suffix)                                                                                        \
    {#name, (void *)name},                                                                                             \
    {                                                                                                                  \
#name "_" #suffix, (void *)name##_##suffix                                                                     \
    }
/* An entry and its twin on the per-thread default stream; `call` uses PT. */
#define MG_BOTH(name, suffix, params, call)                                                                            \
    static cu_result name params                                                                                       \
    {                                                                                                                  \
        enum { PT = 0 };                                                                                               \
        return call;                                                                                                   \
    }                                                                                                                  \
    static cu_result name##_##suffix params                                                                            \
    {                                                                                                                  \
        enum { PT = 1 };                                                                                               \
        return call;                                                                                                   \
    }

/* ---- handles: valid while registered; a stale or made-up one is an error, never a crash ------- */

enum mg_obj_kind {
    MG_OBJ_none,
    MG_OBJ_CTX,
    MG_OBJ_MODULE,
    MG_OBJ_FUNC,
    MG_OBJ_LIBRARY,
    MG_OBJ_KERNEL,
    MG_OBJ_STREAM,
    MG_OBJ_EVENT,
    MG_OBJ_ARRAY,
    MG_OBJ_MIPMAP,
    MG_OBJ_GRAPH,
    MG_OBJ_NODE,
    MG_OBJ_EXEC,
    MG_OBJ_POOL,
    MG_OBJ_LINK,
    MG_OBJ_USER,
    MG_OBJ_TEXREF,
    MG_OBJ_SURFREF,
    MG_OBJ_TEX,
    MG_OBJ_SURF,
    MG_OBJ_PHYSICAL,
    MG_OBJ_KIND_COUNT
};
void mg_obj_add(const void *handle, enum mg_obj_kind kind);
bool mg_obj_del(const void *handle, enum mg_obj_kind kind); /* false: was not registered as that */
bool mg_obj_is(const void *handle, enum mg_obj_kind kind);

/* ---- ops ------------------------------------------------------------------------------------ */

enum mg_work_kind {
    MG_OPK_EMPTY,
    MG_OPK_KERNEL,
    MG_OPK_COPY,
    MG_OPK_FILL,
    MG_OPK_HOST,
    MG_OPK_CALLBACK,
    MG_OPK_RECORD,
    MG_OPK_WAIT,
    MG_OPK_MEMOPS,
    MG_OPK_ALLOC,
    MG_OPK_FREE,
    MG_OPK_CHILD,
    MG_OPK_COND,
    MG_OPK_COUNT
};
struct mg_note_life {
    _Atomic uint32_t refs;
    pthread_mutex_t lock; /* of `running`: who runs it now; held while its note is called */
    uint32_t running;
    void (*drop)(void *user);
    void *user;
}; /* of a node's note: one reference an op */
struct mg_kernel_op {
    struct CUfunc_st *func;
    struct CUkern_st *kernel; /* when the handle given was one */
    struct mg_dim3 grid, block, cluster;
    uint32_t shared_bytes;
    bool cooperative;
    int priority;
    uint32_t param_bytes;
    uint8_t *params;                /* malloc'd; owner: the op */
    struct CUevent_st *after_event; /* launch attribute: recorded behind the launch */
    mg_launch_done_fn note;
    void *note_user;
    struct mg_note_life *life; /* NULL: the note is for one launch */
};
struct mg_copy_op { /* depth slices of height rows of width bytes */
    uint8_t *dst;
    const uint8_t *src;
    size_t dst_pitch, dst_slice, src_pitch, src_slice, width, height, depth;
    bool from_array, to_array; /* by byte offset */
    void *staged;              /* snapshot of a pageable source, malloc'd; owner: the op */
    struct cu_memcpy3d raw;    /* as given, for cuGraphMemcpyNodeGetParams */
};
struct mg_fill_op {
    uint8_t *dst;
    size_t pitch;
    uint32_t value, element_bytes;
    size_t width, height; /* elements, rows */
};
struct mg_memops_op {
    uint32_t n;
    union cu_memop_params *at; /* malloc'd; owner: the op */
};
struct mg_work {
    enum mg_work_kind kind;
    union {
        struct mg_kernel_op kernel;
        struct mg_copy_op copy;
        struct mg_fill_op fill;
        struct cu_host_node host;
        struct {
            cu_stream_fn fn;
            cu_stream stream;
            void *user;
        } callback;
        struct {
            struct CUevent_st *event;
        } event;
        struct mg_memops_op memops;
        struct {
            uint64_t ptr;
            struct CUmemPoolHandle_st *pool;
            size_t bytes;
            struct cu_alloc_node *params;
        } mem;
        struct {
            struct CUgraph_st *graph;
        } child;
        struct mg_cond *cond; /* one reference; graph_cond.c */
    } u;
};
bool mg_work_clone(struct mg_work *out, const struct mg_work *op); /* false: out of memory */
void mg_work_release(struct mg_work *op);
void mg_work_run(struct CUctx_st *ctx, const struct mg_work *op, const struct mg_work_mark *m, uint64_t *start_ns,
                 uint64_t *end_ns); /* no lock held */
/* watch.c: what follows the work that this thread enqueues now; no lock held. */
struct mg_work_mark mg_watch_mark(struct CUstream_st *s, bool graph);
void mg_watch_replayed(const struct mg_work_mark *m);
void mg_watch_ended(const struct mg_work *op, const struct mg_work_mark *m, uint64_t start_ns, uint64_t end_ns);

/* ---- tasks (task.c): all with mg_drv.lock held unless said otherwise --------------------------- */

struct mg_task {
    uint32_t refs, n_deps;
    bool done, queued;
    struct CUctx_st *ctx;
    struct CUstream_st *stream; /* only compared, never followed */
    struct mg_work op;
    struct mg_work_mark mark;
    uint64_t start_ns, end_ns;
    MG_VEC(struct mg_task *) after; /* tasks that wait for this one; each holds no reference */
    struct mg_task *next;           /* in the ready queue */
};
/* Takes over what op owns. One reference: the caller's. NULL: out of memory (op is released). */
struct mg_task *mg_task_new(struct CUctx_st *ctx, struct mg_work *op);
void mg_task_unref(struct mg_task *t);
static inline struct mg_task *mg_task_ref(struct mg_task *t)
{
    t->refs++;
    return t;
}
void mg_task_wait_for(struct mg_task *t, struct mg_task *dep); /* before submit; dep may be NULL */
void mg_task_submit(struct mg_task *t);
extern _Thread_local bool mg_task_is_worker; /* this thread is one of the queue's */
void mg_task_submit_here(struct mg_task *t); /* runs it on this thread as soon as it may: drops and retakes the lock */
void mg_task_await(struct mg_task *t);       /* drops and retakes the lock */
void mg_tasks_drain(uint64_t timeout_ns);    /* lock not held: until no task is left */

/* ---- context, stream, event -------------------------------------------------------------------- */

struct CUctx_st {
    uint32_t id, flags;
    cu_device device;
    MG_VEC(uint32_t) peers; /* ids of the contexts whose memory it was given access to */
    bool primary, alive;
    int api_version;
    cu_result error; /* sticky: set by the first fault */
    struct CUstream_st *legacy;
    MG_VEC(struct CUstream_st *) streams; /* every stream, legacy first; destroyed ones until their work is done */
    MG_VEC(struct CUmod_st *) modules;
    size_t limits[CULIMIT_COUNT];
    int cache_config, shared_config;
    uint32_t n_captures; /* blocking streams of this context that capture */
};
struct CUstream_st {
    struct CUctx_st *ctx;
    uint64_t id;
    uint32_t flags;
    int priority;
    bool destroyed, per_thread;
    struct mg_task *tail;                 /* submitted last; NULL or done: idle */
    struct mg_capture *capture;           /* capture.c; NULL: not capturing */
    MG_VEC(struct CUgraphNode_st *) tips; /* of the capture: what the next captured op depends on */
    union cu_launch_value attrs[CULAUNCH_COUNT];
};
struct CUevent_st {
    struct CUctx_st *ctx;
    cu_device device;
    uint32_t flags;
    struct mg_task *task;                     /* the record, NULL: never recorded */
    uint64_t capture_id;                      /* of the capture it was recorded in last, 0: recorded outside of any */
    MG_VEC(struct CUgraphNode_st *) captured; /* the nodes it stands for there */
};

/* ---- modules ------------------------------------------------------------------------------- */

struct CUfunc_st {
    struct CUmod_st *module;
    struct mg_dkernel *dk;
    struct mg_kernel_info info;
    struct CUkern_st *kernel;    /* set when reached through a library */
    char *name;                  /* owner: this */
    uint32_t recorded_registers; /* from the embedded cubin, 0: not known */
    struct CUfunc_st *native;    /* of an instrumented twin: whose limits count */
    bool prepared, refusal_said;
    int attrs[CUFUNC_COUNT]; /* the settable ones */
    int cache_config;
    struct {
        int block[3];
        uint32_t shared, bytes;
        uint8_t *params;
    } legacy; /* cuFuncSetBlockShape, cuParamSet* */
};
struct CUmod_st {
    struct CUctx_st *ctx;
    struct CUlib_st *library; /* NULL: loaded by itself */
    struct mg_dmod *dmod;
    const struct mg_module *ir;
    struct mg_image_facts *facts;
    MG_VEC(struct CUfunc_st *) funcs; /* in text order of the entries */
    MG_VEC(struct CUtexref_st *) texrefs;
    MG_VEC(struct CUsurfref_st *) surfrefs;
};
struct CUkern_st {
    struct CUlib_st *library;
    char *name; /* owner: this */
    int attrs[CUFUNC_COUNT];
    int cache_config;
};
struct CUlib_st {
    char *text; /* PTX, owner: this */
    size_t bytes;
    struct mg_module *parsed; /* until the first context takes it */
    struct mg_image_facts *facts;
    MG_VEC(struct CUkern_st *) kernels;
    MG_VEC(struct CUmod_st *) modules; /* one a context, loaded when first needed */
};
/* What an image says of its kernels beside the PTX: registers of the sm_90 machine code. Shared. */
struct mg_image_facts {
    uint32_t refs;
    uint32_t n;
    struct mg_image_fact {
        char *name;
        uint32_t registers;
    } * at;
    int max_registers; /* -maxrregcount of the build, 0: none */
};

/* One of the devices that the program finds. All run on one opened device: workers and memory are shared. */
struct mg_ordinal {
    struct CUctx_st *primary;
    uint32_t primary_refs, primary_flags;
    uint64_t used;                                   /* bytes of its live allocations */
    uint64_t created;                                /* atomic: bytes of cuMemCreate, mapped or not */
    struct CUmemPoolHandle_st *standard_pool, *pool; /* pool: what cuMemAllocAsync takes from */
};

/* ---- global state ------------------------------------------------------------------------------ */

struct mg_driver_state {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* some task has ended */
    struct mg_driver_config config;
    bool initialised, forked; /* forked: a child of the process that initialised it */
    volatile bool cancel;
    const struct mg_device_ops *ops;
    struct mg_device *device;
    int attrs[CUDEV_COUNT];
    bool attr_known[CUDEV_COUNT];
    const char *name;
    uint64_t memory_bytes;
    struct mg_ordinal ordinals[MG_DEVICES_MAX];
    int n_devices;
    uint8_t places[MG_DEVICES_MAX]; /* which of --devices each ordinal is */
    uint32_t next_ctx_id;
    uint64_t next_stream_id;
    MG_VEC(struct CUctx_st *) contexts;
};
extern struct mg_driver_state mg_drv;

static inline void mg_lock(void)
{
    pthread_mutex_lock(&mg_drv.lock);
}
static inline void mg_unlock(void)
{
    pthread_mutex_unlock(&mg_drv.lock);
}
void mg_say(const char *fmt, ...) MG_PRINTF(1, 2); /* one line for the user */
void mg_say_of_kernel(const char *text);           /* "kernel K: ..." with K as in the source */
void mg_print_flush(void);                         /* output of kernels so far to the application's stdout */

/* Initialised, a current context, not broken: else the error. *ctx may be NULL. */
cu_result mg_enter(struct CUctx_st **ctx);
struct CUctx_st *
mg_ctx_swap(struct CUctx_st *c); /* of a thread of ours: makes c current, gives back what was; NULL: none */
extern const struct mg_child_hooks mg_child_hooks;    /* child.c */
cu_result mg_ctx_sync(struct CUctx_st *ctx);          /* waits for everything submitted so far; its sticky error */
cu_result mg_ctx_check_capture(struct CUctx_st *ctx); /* error when a call that would wait is not allowed now */
struct CUctx_st *mg_ctx_new(cu_device device, uint32_t flags); /* lock held; NULL: out of memory */
void mg_ctx_free(struct CUctx_st *ctx);                        /* lock not held, every stream idle */
enum { MG_PRIORITY_GREATEST = -5 };                            /* what sm_90 answers; the least is 0 */
cu_result mg_properties_load(const char *as, const char *path);
/* Which devices the program sees, of so many (0: one, whatever its environment hides). An error is said. */
cu_result mg_devices_choose(uint32_t given);
cu_result mg_device_check(cu_device dev);                 /* initialised, and there is this device: else the error */
cu_result mg_location_check(const struct cu_location *l); /* a device that there is, or no device */

/* Handle to stream: NULL is the legacy or (pt) the per-thread default stream of the current context. */
cu_result mg_stream_get(cu_stream h, int pt, struct CUstream_st **out);
cu_result mg_stream_new(struct CUctx_st *ctx, uint32_t flags, int priority, struct CUstream_st **out);
void mg_stream_free(struct CUstream_st *s); /* lock held; work is done */
enum mg_how {
    MG_ASYNC,
    MG_SYNC /* returns when it has run */,
    MG_SOON /* small: may run on this thread when nothing precedes it */
};
/* Queues an op on a stream, or adds it to the graph that the stream captures. Takes over what op owns, also on error.
 */
cu_result mg_stream_do(struct CUstream_st *s, struct mg_work *op, enum mg_how how);
/* The same for a task that the caller has made: adds the edges of stream order. Lock held. */
void mg_stream_order(struct CUstream_st *s, struct mg_task *t);

/* capture.c, lock held */
cu_result mg_capture_add(struct CUstream_st *s, struct mg_work *op); /* takes over op */
cu_result mg_capture_break(struct CUstream_st *s,
                           cu_result why);           /* the capture is invalid from now on; gives back why */
cu_result mg_capture_implicit(struct CUctx_st *ctx); /* the legacy stream was used while a blocking stream captures */
void mg_capture_drop(struct CUstream_st *s);         /* its stream is going away */
void mg_cond_ref(struct mg_cond *c);
void mg_cond_unref(struct mg_cond *c);
void mg_cond_run(struct CUctx_st *ctx, const struct mg_cond *c, const struct mg_work_mark *m);
cu_result mg_memops_check(unsigned n, const union cu_memop_params *ops);
cu_result mg_capture_record(struct CUstream_st *s, struct CUevent_st *e, bool external);
cu_result mg_capture_wait(struct CUstream_st *s, struct CUevent_st *e, bool external);
cu_result
mg_capture_unsafe(struct CUctx_st *ctx); /* lock not held: a call that is not allowed while a capture forbids it */
void mg_event_set(struct CUevent_st *e, struct mg_task *t);
cu_result mg_event_record(struct CUevent_st *e, struct CUstream_st *s); /* lock not held */

/* ---- memory ------------------------------------------------------------------------------------ */

#define MG_ACCESSED_BY_CPU (1u << 31)
struct mg_dalloc { /* what the driver knows of an allocation beside mem.h's table */
    struct CUctx_st *ctx;
    cu_device device; /* where it lies */
    uint64_t bytes;   /* that count as used memory of that device */
    uint32_t flags;   /* of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged */
    bool freeing;     /* a stream-ordered free is on its way */
    bool graph;       /* address of a graph's allocation node */
    struct CUmemPoolHandle_st *pool;
    int preferred_type, preferred_id, prefetch_type, prefetch_id;
    bool read_mostly, sync_memops;
    uint32_t accessed_by; /* bits: devices, MG_ACCESSED_BY_CPU */
};
struct mg_dalloc *mg_dalloc_get(uint64_t base); /* lock held; NULL: none of ours */
uint64_t mg_machine_memory(void);               /* bytes of memory and swap */
void mg_memory_refused(uint64_t bytes); /* told once, where the device would have had it and the machine has not */
bool mg_device_has_room(cu_device dev, uint64_t bytes); /* whatever the other devices have */
cu_result mg_dalloc_new(struct CUctx_st *ctx, uint64_t bytes, uint64_t align, enum mg_alloc_kind kind, uint32_t flags,
                        uint64_t *out);
bool mg_dalloc_free(uint64_t base);                   /* any thread, no lock held */
uint64_t mg_dalloc_any_of(struct CUctx_st *ctx);      /* base of some allocation of a context, 0: none left */
void mg_dalloc_move(uint64_t base, cu_device device); /* lock held: it lies on this device */
struct mg_dalloc *mg_dalloc_add(struct CUctx_st *ctx, uint64_t base, uint32_t flags); /* lock held */
void mg_dalloc_forget(uint64_t base);                                                 /* lock not held */
bool mg_ptr_is_device_only(uint64_t p);            /* memory that the host is not meant to touch */
bool mg_ptr_on_device(uint64_t p, uint64_t bytes); /* wholly inside one live allocation that kernels can reach */
bool mg_ptr_pageable(uint64_t p);                  /* plain host memory */
void mg_pool_note(struct CUmemPoolHandle_st *pool, int64_t bytes); /* lock held: used memory changes */

struct CUarray_st { /* rows one after another; not memory that kernels reach by address */
    struct cu_array3d_desc desc;
    uint32_t element_bytes;
    struct mg_texels *texels;
    uint8_t *data; /* texels->at */
    size_t pitch, bytes;
    struct CUmipmappedArray_st *mipmap; /* owner of a level */
};
struct CUmipmappedArray_st {
    struct cu_array3d_desc desc;
    unsigned n_levels;
    struct CUarray_st *levels[32];
};

uint32_t mg_format_bytes(int format); /* of one channel; 0: not supported */

/* ---- functions --------------------------------------------------------------------------------- */

/* CUfunction or CUkernel to the function of the current context. */
cu_result mg_func_get(const void *handle, struct CUfunc_st **out, struct CUkern_st **kernel);
cu_result mg_kernel_func(struct CUkern_st *k, struct CUctx_st *ctx, struct CUfunc_st **out);
cu_result mg_library_module(struct CUlib_st *lib, struct CUctx_st *ctx, struct CUmod_st **out);
/* same: an instance of the same text in another context, whose managed variables this one has, too; or NULL. */
cu_result mg_module_open(struct CUctx_st *ctx, struct mg_module *ir, struct mg_image_facts *facts,
                         const struct CUmod_st *same, struct CUmod_st **out, struct mg_diag *d);
void mg_module_close(struct CUmod_st *m);
struct CUfunc_st *mg_module_func(const struct CUmod_st *m, const char *name); /* NULL: none */
uint32_t mg_func_registers(const struct CUfunc_st *f);
int mg_func_max_threads(const struct CUfunc_st *f);
int mg_func_max_dynamic(const struct CUfunc_st *f);
bool mg_note_take(struct mg_kernel_op *k); /* the thread's pending note; false: none */
void mg_note_unref(struct mg_note_life *l);
cu_result mg_fault_result(enum mg_fault_kind k);
void mg_module_refs_free(struct CUmod_st *m); /* texture and surface references */
void mg_copy_run(const struct mg_copy_op *c);
cu_result mg_copy_make(struct mg_work *op, const struct cu_memcpy3d *c); /* checks addresses */
cu_result mg_fill_make(struct mg_work *op, uint64_t dst, size_t pitch, uint32_t value, uint32_t element, size_t width,
                       size_t height);
int mg_occupancy(const struct CUfunc_st *f, int block_size, size_t dyn_shared);
/* Fills a kernel op from launch arguments: checks everything a launch call checks. */
cu_result mg_kernel_op_make(struct mg_work *op, const void *handle, const struct cu_launch_config *c, void **params,
                            void **extra);

/* ---- images (load.c) ------------------------------------------------------------------------- */

/* PTX of an image as a device of this compute capability would take it; several relocatable ones
 * are linked. *text is malloc'd. `bytes` 0: the size is in the image's own header. */
cu_result mg_image_text(const void *image, size_t bytes, const char *file, char **text, size_t *n,
                        struct mg_image_facts **facts, struct mg_diag *d);
void mg_image_facts_unref(struct mg_image_facts *f);
struct mg_jit { /* the options of a load that mean something here, and where its logs go */
    char *error_log, *info_log;
    size_t error_bytes, info_bytes;
    unsigned *error_size, *info_size;
    float *wall;
    int max_registers;
};
void mg_jit_read(struct mg_jit *j, unsigned n, const int *options, void **values);
void mg_jit_write(const struct mg_jit *j, const struct mg_diag *d);

#endif
