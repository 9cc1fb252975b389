/* Stream-ordered allocation and memory pools. The address is given out at once; what is ordered is
 * the free. A pool is an account: its memory comes from and goes back to the one arena. */
#include "driver/graph.h"

#include "device/defined.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

struct CUmemPoolHandle_st {
    struct cu_pool_props props;
    uint64_t used, used_high, reserved, reserved_high, threshold;
    int reuse[3];
    uint8_t access[MG_DEVICES_MAX]; /* enum cu_access_flags of each device */
};

static struct CUmemPoolHandle_st *new_pool(const struct cu_pool_props *p)
{
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->props = *p;
    if (p->location.type == CULOC_DEVICE) pool->access[p->location.id] = CUACCESS_READWRITE;
    pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
    mg_obj_add(pool, MG_OBJ_POOL);
    return pool;
}

static struct CUmemPoolHandle_st *standard_pool(cu_device dev)
{
    struct mg_ordinal *o = &mg_drv.ordinals[dev];
    mg_lock();
    if (!o->standard_pool) {
        struct cu_pool_props p = {.alloc_type = 1, .location = {CULOC_DEVICE, dev}};
        o->standard_pool = new_pool(&p);
        if (!o->pool) o->pool = o->standard_pool;
    }
    mg_unlock();
    return o->standard_pool;
}

void mg_pool_note(struct CUmemPoolHandle_st *pool, int64_t bytes)
{
    if (!mg_obj_is(pool, MG_OBJ_POOL)) return;
    pool->used = (uint64_t)((int64_t)pool->used + bytes);
    pool->used_high = MG_MAX(pool->used_high, pool->used);
    enum { STEP = 32 << 20 }; /* what is kept grows in steps and shrinks to the threshold at the next free */
    uint64_t need = (pool->used + STEP - 1) / STEP * STEP;
    if (need > pool->reserved)
        pool->reserved = need;
    else if (bytes < 0)
        pool->reserved = MG_MAX(need, MG_MIN(pool->reserved, pool->threshold));
    pool->reserved_high = MG_MAX(pool->reserved_high, pool->reserved);
}

/* ---- allocation ---------------------------------------------------------------------------------------- */

static cu_result capture_alloc(struct CUstream_st *s, cu_ptr *out, size_t bytes)
{
    struct cu_alloc_node *params = calloc(1, sizeof *params);
    struct mg_graph_mem *mem = params ? mg_graph_mem_again(s->tips.at, s->tips.n, bytes) : NULL;
    if (params && !mem) mem = mg_graph_mem_new(s->ctx, s->ctx->device, bytes);
    if (!mem) {
        free(params);
        return CUE_OUT_OF_MEMORY;
    }
    params->props = (struct cu_pool_props){.alloc_type = 1, .location = {CULOC_DEVICE, s->ctx->device}};
    params->bytes = bytes;
    params->ptr = *out = mem->base;
    struct mg_work op = {.kind = MG_OPK_ALLOC, .u.mem = {mem->base, NULL, bytes, params}};
    cu_result r = mg_stream_do(s, &op, MG_ASYNC);
    if (r) {
        mg_lock();
        mg_graph_mem_unref(mem);
        mg_unlock();
    }
    return r;
}

static cu_result alloc_async(cu_ptr *out, size_t bytes, cu_pool pool, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    CHECK(out);
    if (!pool) pool = mg_drv.ordinals[s->ctx->device].pool;
    if (!pool && !(pool = standard_pool(s->ctx->device))) return CUE_OUT_OF_MEMORY;
    if (!mg_obj_is(pool, MG_OBJ_POOL)) return CUE_INVALID_VALUE;
    if (!bytes) {
        *out = 0;
        return CUE_SUCCESS;
    }
    if (s->capture) return capture_alloc(s, out, bytes);
    if (pool->props.max_bytes && pool->used + bytes > pool->props.max_bytes) return CUE_OUT_OF_MEMORY;
    bool host = pool->props.location.type != CULOC_DEVICE;
    r = mg_dalloc_new(s->ctx, bytes, 0, host ? MG_ALLOC_HOST : MG_ALLOC_DEVICE, 0, out);
    if (r) return r;
    if (!host) mg_defined_fresh(*out, bytes);
    mg_lock();
    struct mg_dalloc *a = mg_dalloc_get(*out);
    if (a) a->pool = pool;
    if (!host) mg_dalloc_move(*out, pool->props.location.id);
    mg_pool_note(pool, (int64_t)bytes);
    mg_unlock();
    return CUE_SUCCESS;
}
MG_BOTH(cuMemAllocAsync, ptsz, (cu_ptr * out, size_t bytes, cu_stream s), alloc_async(out, bytes, NULL, s, PT))

static cu_result alloc_from(cu_ptr *out, size_t bytes, cu_pool pool, cu_stream s, int pt)
{
    CHECK(pool);
    return alloc_async(out, bytes, pool, s, pt);
}
MG_BOTH(cuMemAllocFromPoolAsync, ptsz, (cu_ptr * out, size_t bytes, cu_pool pool, cu_stream s),
        alloc_from(out, bytes, pool, s, PT))

static cu_result free_async(cu_ptr p, cu_stream h, int pt)
{
    struct CUstream_st *s;
    cu_result r = mg_stream_get(h, pt, &s);
    if (r) return r;
    if (!p) return CUE_SUCCESS;
    mg_lock();
    struct mg_dalloc *a = mg_dalloc_get(p);
    struct mg_graph_mem *g = mg_graph_mem_of(p);
    bool ok = a && !a->freeing;
    if (ok && g && !s->capture) { /* left behind by a graph's launch: the address stays the graph's */
        ok = g->live;
        g->live = false;
        mg_unlock();
        return ok ? CUE_SUCCESS : CUE_INVALID_VALUE;
    }
    if (ok && !g) a->freeing = true;
    mg_unlock();
    CHECK(ok);
    struct mg_work op = {.kind = MG_OPK_FREE, .u.mem = {.ptr = p}};
    return mg_stream_do(s, &op, MG_SOON);
}
MG_BOTH(cuMemFreeAsync, ptsz, (cu_ptr p, cu_stream s), free_async(p, s, PT))

/* ---- pools --------------------------------------------------------------------------------------------- */

static cu_result check_pool(cu_pool p)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(mg_obj_is(p, MG_OBJ_POOL));
    return CUE_SUCCESS;
}

static cu_result cuMemPoolCreate(cu_pool *out, const struct cu_pool_props *p)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out && p && p->alloc_type == 1);
    if (p->handle_types) {
        mg_say("memory pools shared with other processes are not supported");
        return CUE_NOT_SUPPORTED;
    }
    cu_result r = mg_location_check(&p->location);
    if (r) return r;
    *out = new_pool(p);
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}

static cu_result cuMemPoolDestroy(cu_pool p)
{
    cu_result r = check_pool(p);
    if (r) return r;
    for (int i = 0; i < mg_drv.n_devices; i++) CHECK(p != mg_drv.ordinals[i].standard_pool);
    mg_obj_del(p, MG_OBJ_POOL);
    for (int i = 0; i < mg_drv.n_devices; i++)
        if (mg_drv.ordinals[i].pool == p) mg_drv.ordinals[i].pool = standard_pool(i);
    mg_lock();
    if (!p->used) free(p); /* else allocations still name it: kept, unusable */
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuMemPoolTrimTo(cu_pool p, size_t keep)
{
    cu_result r = check_pool(p);
    if (r) return r;
    mg_lock();
    p->reserved = MG_MAX(p->used, MG_MIN(p->reserved, keep));
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuMemPoolSetAttribute(cu_pool p, int attr, void *value)
{
    cu_result r = check_pool(p);
    if (r) return r;
    CHECK(value);
    mg_lock();
    switch (attr) {
    case CUPOOL_REUSE_FOLLOW_EVENT:
    case CUPOOL_REUSE_OPPORTUNISTIC:
    case CUPOOL_REUSE_INTERNAL:
        p->reuse[attr - 1] = *(int *)value != 0;
        break;
    case CUPOOL_RELEASE_THRESHOLD:
        p->threshold = *(uint64_t *)value;
        break;
    case CUPOOL_RESERVED_HIGH:
    case CUPOOL_USED_HIGH:
        if (*(uint64_t *)value)
            r = CUE_INVALID_VALUE; /* only a reset to zero */
        else if (attr == CUPOOL_USED_HIGH)
            p->used_high = p->used;
        else
            p->reserved_high = p->reserved;
        break;
    default:
        r = CUE_INVALID_VALUE;
    }
    mg_unlock();
    return r;
}

static cu_result cuMemPoolGetAttribute(cu_pool p, int attr, void *value)
{
    cu_result r = check_pool(p);
    if (r) return r;
    CHECK(value);
    mg_lock();
    switch (attr) {
    case CUPOOL_REUSE_FOLLOW_EVENT:
    case CUPOOL_REUSE_OPPORTUNISTIC:
    case CUPOOL_REUSE_INTERNAL:
        *(int *)value = p->reuse[attr - 1];
        break;
    case CUPOOL_RELEASE_THRESHOLD:
        *(uint64_t *)value = p->threshold;
        break;
    case CUPOOL_RESERVED_CURRENT:
        *(uint64_t *)value = p->reserved;
        break;
    case CUPOOL_RESERVED_HIGH:
        *(uint64_t *)value = p->reserved_high;
        break;
    case CUPOOL_USED_CURRENT:
        *(uint64_t *)value = p->used;
        break;
    case CUPOOL_USED_HIGH:
        *(uint64_t *)value = p->used_high;
        break;
    default:
        r = CUE_INVALID_VALUE;
    }
    mg_unlock();
    return r;
}

static cu_result cuMemPoolSetAccess(cu_pool p, const struct cu_access *map, size_t n)
{
    cu_result r = check_pool(p);
    if (r) return r;
    CHECK(map || !n);
    for (size_t i = 0; i < n; i++) {
        if ((r = mg_location_check(&map[i].location))) return r;
        bool own = p->props.location.type == CULOC_DEVICE && map[i].location.id == p->props.location.id;
        CHECK(map[i].location.type != CULOC_DEVICE || !own ||
              map[i].flags == CUACCESS_READWRITE); /* its own keeps it */
    }
    for (size_t i = 0; i < n; i++)
        if (map[i].location.type == CULOC_DEVICE) p->access[map[i].location.id] = (uint8_t)map[i].flags;
    return CUE_SUCCESS;
}

static cu_result cuMemPoolGetAccess(int *flags, cu_pool p, const struct cu_location *l)
{
    cu_result r = check_pool(p);
    if (r) return r;
    CHECK(flags && l);
    if ((r = mg_location_check(l))) return r;
    *flags = l->type == CULOC_DEVICE ? p->access[l->id] : CUACCESS_NONE;
    return CUE_SUCCESS;
}

static cu_result cuDeviceGetDefaultMemPool(cu_pool *out, cu_device dev)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(out);
    *out = standard_pool(dev);
    return *out ? CUE_SUCCESS : CUE_OUT_OF_MEMORY;
}
static cu_result cuDeviceGetMemPool(cu_pool *out, cu_device dev)
{
    cu_result r = cuDeviceGetDefaultMemPool(out, dev);
    if (!r) *out = mg_drv.ordinals[dev].pool;
    return r;
}
static cu_result cuDeviceSetMemPool(cu_device dev, cu_pool p)
{
    cu_result r = check_pool(p);
    if (!r) r = mg_device_check(dev);
    if (r) return r;
    CHECK(p->props.location.type == CULOC_DEVICE && p->props.location.id == dev);
    mg_drv.ordinals[dev].pool = p;
    return CUE_SUCCESS;
}
static cu_result cuMemGetDefaultMemPool(cu_pool *out, const struct cu_location *l, int type)
{
    CHECK(l && type == 1);
    if (l->type != CULOC_DEVICE) return CUE_NOT_SUPPORTED;
    return cuDeviceGetDefaultMemPool(out, l->id);
}
static cu_result cuMemGetMemPool(cu_pool *out, const struct cu_location *l, int type)
{
    CHECK(l && type == 1);
    if (l->type != CULOC_DEVICE) return CUE_NOT_SUPPORTED;
    return cuDeviceGetMemPool(out, l->id);
}
static cu_result cuMemSetMemPool(const struct cu_location *l, int type, cu_pool p)
{
    CHECK(l && type == 1);
    if (l->type != CULOC_DEVICE) return CUE_NOT_SUPPORTED;
    return cuDeviceSetMemPool(l->id, p);
}

const struct mg_entry mg_entries_pool[] = {
    MG_ENTRY2(cuMemAllocAsync, ptsz),
    MG_ENTRY2(cuMemAllocFromPoolAsync, ptsz),
    MG_ENTRY2(cuMemFreeAsync, ptsz),
    MG_ENTRY(cuMemPoolCreate),
    MG_ENTRY(cuMemPoolDestroy),
    MG_ENTRY(cuMemPoolTrimTo),
    MG_ENTRY(cuMemPoolSetAttribute),
    MG_ENTRY(cuMemPoolGetAttribute),
    MG_ENTRY(cuMemPoolSetAccess),
    MG_ENTRY(cuMemPoolGetAccess),
    MG_ENTRY(cuDeviceGetDefaultMemPool),
    MG_ENTRY(cuDeviceGetMemPool),
    MG_ENTRY(cuDeviceSetMemPool),
    MG_ENTRY(cuMemGetDefaultMemPool),
    MG_ENTRY(cuMemGetMemPool),
    MG_ENTRY(cuMemSetMemPool),
    {0},
};
