/* Contexts: the primary one and those an application makes, and each thread's stack of current ones. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

enum { STACK_CAP = 64 };
static _Thread_local struct CUctx_st *stack[STACK_CAP];
static _Thread_local int depth;

struct CUctx_st *mg_ctx_swap(struct CUctx_st *c)
{
    struct CUctx_st *was = depth ? stack[depth - 1] : NULL;
    if (!depth) depth = 1;
    stack[depth - 1] = c;
    if (!c && depth == 1) depth = 0;
    return was;
}

cu_result mg_enter(struct CUctx_st **ctx)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    struct CUctx_st *c = depth ? stack[depth - 1] : NULL;
    if (!c) return CUE_INVALID_CONTEXT;
    if (!mg_obj_is(c, MG_OBJ_CTX)) return CUE_CONTEXT_IS_DESTROYED;
    if (ctx) *ctx = c;
    return __atomic_load_n(&c->error, __ATOMIC_ACQUIRE);
}

struct CUctx_st *mg_ctx_new(cu_device device, uint32_t flags)
{
    struct CUctx_st *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->id = ++mg_drv.next_ctx_id;
    c->device = device;
    c->flags = flags;
    c->alive = true;
    c->api_version = 3020;
    c->limits[CULIMIT_STACK_SIZE] = 1024;
    c->limits[CULIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
    c->limits[CULIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
    c->limits[CULIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    c->limits[CULIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    c->limits[CULIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    if (mg_stream_new(c, 0, 0, &c->legacy)) {
        free(c);
        return NULL;
    }
    *mg_vec_push(&mg_drv.contexts) = c;
    mg_obj_add(c, MG_OBJ_CTX);
    return c;
}

/* Gives back everything the context owns. Lock not held; every stream is idle. */
static void clean(struct CUctx_st *ctx)
{
    while (ctx->modules.n) mg_module_close(ctx->modules.at[ctx->modules.n - 1]);
    mg_lock();
    while (ctx->streams.n > 1) mg_stream_free(ctx->streams.at[ctx->streams.n - 1]); /* [0] is the legacy stream */
    ctx->error = CUE_SUCCESS;
    ctx->peers.n = 0;
    mg_unlock();
    for (uint64_t base; (base = mg_dalloc_any_of(ctx));) mg_dalloc_free(base);
}

void mg_ctx_free(struct CUctx_st *ctx)
{
    if (!mg_obj_del(ctx, MG_OBJ_CTX)) return;
    clean(ctx);
    mg_lock();
    for (uint32_t i = 0; i < mg_drv.contexts.n; i++)
        if (mg_drv.contexts.at[i] == ctx) mg_drv.contexts.at[i] = mg_drv.contexts.at[--mg_drv.contexts.n];
    mg_stream_free(ctx->legacy);
    mg_unlock();
    mg_vec_release(&ctx->streams);
    mg_vec_release(&ctx->modules);
    mg_vec_release(&ctx->peers);
    free(ctx); /* events and graphs that outlive it only compare the pointer */
}

cu_result mg_ctx_sync(struct CUctx_st *ctx)
{
    mg_lock();
    /* Streams may come and go while we wait: start over until none has unfinished work. */
    for (uint32_t i = 0; i < ctx->streams.n; i++) {
        struct mg_task *t = ctx->streams.at[i]->tail;
        if (!t || t->done) continue;
        mg_task_ref(t);
        mg_task_await(t);
        mg_task_unref(t);
        i = (uint32_t)-1;
    }
    mg_unlock();
    mg_print_flush();
    return __atomic_load_n(&ctx->error, __ATOMIC_ACQUIRE);
}

void mg_driver_drain(uint64_t timeout_ns)
{
    if (!mg_drv.initialised) return;
    mg_tasks_drain(timeout_ns);
    mg_print_flush();
}

/* ---- primary context -------------------------------------------------------------------------- */

static cu_result cuDevicePrimaryCtxRetain(cu_ctx *out, cu_device dev)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(out);
    mg_lock();
    struct mg_ordinal *o = &mg_drv.ordinals[dev];
    if (!o->primary) {
        o->primary = mg_ctx_new(dev, o->primary_flags);
        if (o->primary) o->primary->primary = true;
    }
    *out = o->primary;
    if (*out) o->primary_refs++;
    mg_unlock();
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result drop_primary(cu_device dev, bool reset)
{
    struct mg_ordinal *o = &mg_drv.ordinals[dev];
    mg_lock();
    struct CUctx_st *gone = NULL;
    cu_result r = CUE_SUCCESS;
    if (reset) {
        gone = o->primary;
    } else if (!o->primary_refs) {
        r = CUE_INVALID_CONTEXT;
    } else if (!--o->primary_refs) {
        gone = o->primary;
    }
    mg_unlock();
    if (!gone) return r;
    mg_ctx_sync(gone);
    if (reset && o->primary_refs) { /* holders of the handle go on with an empty context */
        clean(gone);
        return r;
    }
    mg_lock();
    o->primary = NULL;
    mg_unlock();
    mg_ctx_free(gone);
    return r;
}

static cu_result cuDevicePrimaryCtxRelease_v2(cu_device dev)
{
    cu_result r = mg_device_check(dev);
    return r ? r : drop_primary(dev, false);
}
static cu_result cuDevicePrimaryCtxRelease(cu_device dev)
{
    return cuDevicePrimaryCtxRelease_v2(dev);
}
static cu_result cuDevicePrimaryCtxReset_v2(cu_device dev)
{
    cu_result r = mg_device_check(dev);
    return r ? r : drop_primary(dev, true);
}
static cu_result cuDevicePrimaryCtxReset(cu_device dev)
{
    return cuDevicePrimaryCtxReset_v2(dev);
}

static cu_result cuDevicePrimaryCtxSetFlags_v2(cu_device dev, unsigned flags)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(!(flags & ~(unsigned)CUCTX_FLAGS_MASK));
    mg_lock();
    struct mg_ordinal *o = &mg_drv.ordinals[dev];
    o->primary_flags = flags;
    if (o->primary) o->primary->flags = flags;
    mg_unlock();
    return CUE_SUCCESS;
}
static cu_result cuDevicePrimaryCtxSetFlags(cu_device dev, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

static cu_result cuDevicePrimaryCtxGetState(cu_device dev, unsigned *flags, int *active)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(flags && active);
    mg_lock();
    const struct mg_ordinal *o = &mg_drv.ordinals[dev];
    *active = o->primary != NULL;
    *flags = o->primary ? o->primary->flags : o->primary_flags;
    mg_unlock();
    return CUE_SUCCESS;
}

/* ---- contexts of the application ---------------------------------------------------------------- */

static cu_result push(struct CUctx_st *c)
{
    if (depth == STACK_CAP) return CUE_OUT_OF_MEMORY;
    stack[depth++] = c;
    return CUE_SUCCESS;
}

static cu_result create(cu_ctx *out, unsigned flags, cu_device dev, int version)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(out && !(flags & ~(unsigned)CUCTX_FLAGS_MASK));
    mg_lock();
    struct CUctx_st *c = mg_ctx_new(dev, flags);
    if (c) c->api_version = version;
    mg_unlock();
    if (!c) return CUE_OUT_OF_MEMORY;
    *out = c;
    return push(c);
}

static cu_result cuCtxCreate(cu_ctx *out, unsigned flags, cu_device dev)
{
    return create(out, flags, dev, 3010);
}
static cu_result cuCtxCreate_v2(cu_ctx *out, unsigned flags, cu_device dev)
{
    return create(out, flags, dev, 3020);
}
static cu_result cuCtxCreate_v3(cu_ctx *out, struct cu_affinity *affinity, int n, unsigned flags, cu_device dev)
{
    (void)affinity;
    return n ? CUE_UNSUPPORTED_EXEC_AFFINITY : create(out, flags, dev, 3020);
}
static cu_result cuCtxCreate_v4(cu_ctx *out, struct cu_ctx_params *params, unsigned flags, cu_device dev)
{
    if (params && params->n_affinity) return CUE_UNSUPPORTED_EXEC_AFFINITY;
    if (params && params->cig) return CUE_NOT_SUPPORTED;
    return create(out, flags, dev, 3020);
}

static cu_result cuCtxDestroy_v2(cu_ctx ctx)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    if (!mg_obj_is(ctx, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    CHECK(!ctx->primary);
    mg_ctx_sync(ctx);
    if (depth && stack[depth - 1] == ctx) depth--;
    mg_ctx_free(ctx);
    return CUE_SUCCESS;
}
static cu_result cuCtxDestroy(cu_ctx ctx)
{
    return cuCtxDestroy_v2(ctx);
}

static cu_result cuCtxPushCurrent_v2(cu_ctx ctx)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    return mg_obj_is(ctx, MG_OBJ_CTX) ? push(ctx) : CUE_INVALID_CONTEXT;
}
static cu_result cuCtxPushCurrent(cu_ctx ctx)
{
    return cuCtxPushCurrent_v2(ctx);
}

static cu_result cuCtxPopCurrent_v2(cu_ctx *out)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    if (!depth) return CUE_INVALID_CONTEXT;
    depth--;
    if (out) *out = stack[depth];
    return CUE_SUCCESS;
}
static cu_result cuCtxPopCurrent(cu_ctx *out)
{
    return cuCtxPopCurrent_v2(out);
}

static cu_result cuCtxSetCurrent(cu_ctx ctx)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    if (!ctx) {
        if (depth) depth--;
        return CUE_SUCCESS;
    }
    if (!mg_obj_is(ctx, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    if (!depth) return push(ctx);
    stack[depth - 1] = ctx;
    return CUE_SUCCESS;
}

static cu_result cuCtxGetCurrent(cu_ctx *out)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out);
    *out = depth ? stack[depth - 1] : NULL;
    return CUE_SUCCESS;
}

static cu_result cuCtxAttach(cu_ctx *out, unsigned flags)
{
    (void)flags;
    return cuCtxGetCurrent(out);
}
static cu_result cuCtxDetach(cu_ctx ctx)
{
    return mg_obj_is(ctx, MG_OBJ_CTX) ? CUE_SUCCESS : CUE_INVALID_CONTEXT;
}

/* NULL means the current one (CUDA 13's forms with a context). */
static cu_result named(cu_ctx h, struct CUctx_st **out)
{
    if (!h) return mg_enter(out);
    if (!mg_obj_is(h, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    *out = h;
    return h->error;
}

static cu_result cuCtxGetDevice_v2(cu_device *dev, cu_ctx ctx)
{
    struct CUctx_st *c;
    cu_result r = named(ctx, &c);
    if (r == CUE_INVALID_CONTEXT || r == CUE_NOT_INITIALIZED) return r;
    CHECK(dev);
    *dev = c->device;
    return CUE_SUCCESS;
}
static cu_result cuCtxGetDevice(cu_device *dev)
{
    return cuCtxGetDevice_v2(dev, NULL);
}

static cu_result cuCtxGetFlags(unsigned *flags)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(flags);
    *flags = c->flags;
    return CUE_SUCCESS;
}

static cu_result cuCtxSetFlags(unsigned flags)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(!(flags & ~(unsigned)CUCTX_FLAGS_MASK));
    c->flags = flags;
    return CUE_SUCCESS;
}

static cu_result cuCtxGetId(cu_ctx ctx, unsigned long long *id)
{
    struct CUctx_st *c;
    cu_result r = named(ctx, &c);
    if (r) return r;
    CHECK(id);
    *id = c->id;
    return CUE_SUCCESS;
}

static cu_result cuCtxGetApiVersion(cu_ctx ctx, unsigned *version)
{
    struct CUctx_st *c;
    cu_result r = named(ctx, &c);
    if (r) return r;
    CHECK(version);
    *version = (unsigned)c->api_version;
    return CUE_SUCCESS;
}

static cu_result cuCtxSynchronize_v2(cu_ctx ctx)
{
    struct CUctx_st *c;
    cu_result r = named(ctx, &c);
    if (r) {
        mg_print_flush();
        return r;
    }
    r = mg_ctx_check_capture(c);
    return r ? r : mg_ctx_sync(c);
}
static cu_result cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}

static cu_result cuCtxSetLimit(int limit, size_t value)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(limit >= 0 && limit < CULIMIT_COUNT);
    if (limit >= CULIMIT_SHMEM_SIZE) return CUE_UNSUPPORTED_LIMIT;
    size_t least = limit == CULIMIT_MALLOC_HEAP_SIZE ? 4u << 20 : limit == CULIMIT_PRINTF_FIFO_SIZE ? 1u << 12 : 0;
    if (limit == CULIMIT_STACK_SIZE) value = (value + 15) & ~(size_t)15;
    c->limits[limit] = MG_MAX(value, least);
    return CUE_SUCCESS;
}

static cu_result cuCtxGetLimit(size_t *value, int limit)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(value && limit >= 0 && limit < CULIMIT_COUNT);
    if (limit >= CULIMIT_SHMEM_SIZE) return CUE_UNSUPPORTED_LIMIT;
    *value = c->limits[limit];
    return CUE_SUCCESS;
}

static cu_result cuCtxGetCacheConfig(int *config)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(config);
    *config = c->cache_config;
    return CUE_SUCCESS;
}

static cu_result cuCtxSetCacheConfig(int config)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(config >= 0 && config <= CUCACHE_EQUAL);
    c->cache_config = config;
    return CUE_SUCCESS;
}

static cu_result cuCtxGetSharedMemConfig(int *config)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(config);
    *config = c->shared_config ? c->shared_config : 1;
    return CUE_SUCCESS;
}

static cu_result cuCtxSetSharedMemConfig(int config)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(config >= 0 && config <= 2);
    c->shared_config = config ? 1 : 0; /* the bank size is fixed since sm_50 */
    return CUE_SUCCESS;
}

static cu_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    if (least) *least = 0;
    if (greatest) *greatest = MG_PRIORITY_GREATEST;
    return CUE_SUCCESS;
}

static cu_result cuCtxResetPersistingL2Cache(void)
{
    return mg_enter(NULL);
}

static cu_result cuCtxGetExecAffinity(struct cu_affinity *out, int type)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out && !type);
    return CUE_UNSUPPORTED_EXEC_AFFINITY;
}

/* Lock held. Where the peer stands among those that c has access to; their number: it does not. */
static uint32_t find_peer(const struct CUctx_st *c, const struct CUctx_st *peer)
{
    uint32_t i = 0;
    while (i < c->peers.n && c->peers.at[i] != peer->id) i++;
    return i;
}

static cu_result cuCtxEnablePeerAccess(cu_ctx peer, unsigned flags)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    CHECK(!flags);
    if (!mg_obj_is(peer, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    if (peer->device == c->device) return CUE_PEER_ACCESS_UNSUPPORTED; /* also of the context itself */
    mg_lock();
    if (find_peer(c, peer) < c->peers.n)
        r = CUE_PEER_ACCESS_ALREADY_ENABLED;
    else
        *mg_vec_push(&c->peers) = peer->id;
    mg_unlock();
    return r;
}

static cu_result cuCtxDisablePeerAccess(cu_ctx peer)
{
    struct CUctx_st *c;
    cu_result r = mg_enter(&c);
    if (r) return r;
    if (!mg_obj_is(peer, MG_OBJ_CTX)) return CUE_INVALID_CONTEXT;
    mg_lock();
    uint32_t at = find_peer(c, peer);
    if (at == c->peers.n)
        r = CUE_PEER_ACCESS_NOT_ENABLED;
    else
        c->peers.at[at] = c->peers.at[--c->peers.n];
    mg_unlock();
    return r;
}

const struct mg_entry mg_entries_context[] = {
    MG_ENTRY(cuDevicePrimaryCtxRetain),
    MG_ENTRY(cuDevicePrimaryCtxRelease),
    MG_ENTRY(cuDevicePrimaryCtxRelease_v2),
    MG_ENTRY(cuDevicePrimaryCtxReset),
    MG_ENTRY(cuDevicePrimaryCtxReset_v2),
    MG_ENTRY(cuDevicePrimaryCtxSetFlags),
    MG_ENTRY(cuDevicePrimaryCtxSetFlags_v2),
    MG_ENTRY(cuDevicePrimaryCtxGetState),
    MG_ENTRY(cuCtxCreate),
    MG_ENTRY(cuCtxCreate_v2),
    MG_ENTRY(cuCtxCreate_v3),
    MG_ENTRY(cuCtxCreate_v4),
    MG_ENTRY(cuCtxDestroy),
    MG_ENTRY(cuCtxDestroy_v2),
    MG_ENTRY(cuCtxPushCurrent),
    MG_ENTRY(cuCtxPushCurrent_v2),
    MG_ENTRY(cuCtxPopCurrent),
    MG_ENTRY(cuCtxPopCurrent_v2),
    MG_ENTRY(cuCtxSetCurrent),
    MG_ENTRY(cuCtxGetCurrent),
    MG_ENTRY(cuCtxAttach),
    MG_ENTRY(cuCtxDetach),
    MG_ENTRY(cuCtxGetDevice),
    MG_ENTRY(cuCtxGetDevice_v2),
    MG_ENTRY(cuCtxGetFlags),
    MG_ENTRY(cuCtxSetFlags),
    MG_ENTRY(cuCtxGetId),
    MG_ENTRY(cuCtxGetApiVersion),
    MG_ENTRY(cuCtxSynchronize),
    MG_ENTRY(cuCtxSynchronize_v2),
    MG_ENTRY(cuCtxSetLimit),
    MG_ENTRY(cuCtxGetLimit),
    MG_ENTRY(cuCtxGetCacheConfig),
    MG_ENTRY(cuCtxSetCacheConfig),
    MG_ENTRY(cuCtxGetSharedMemConfig),
    MG_ENTRY(cuCtxSetSharedMemConfig),
    MG_ENTRY(cuCtxGetStreamPriorityRange),
    MG_ENTRY(cuCtxResetPersistingL2Cache),
    MG_ENTRY(cuCtxGetExecAffinity),
    MG_ENTRY(cuCtxEnablePeerAccess),
    MG_ENTRY(cuCtxDisablePeerAccess),
    {0},
};
