/* Device, pinned and managed memory: allocation, what a pointer is, totals. The bytes and the table
 * that kernels are checked against are mem.h's; here is what only the driver knows of them. */
#include "driver/graph.h"

#include "device/defined.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- the driver's own record of an allocation --------------------------------------------------- */

static struct mg_map records = MG_MAP_INIT; /* base -> struct mg_dalloc *; lock held */

struct mg_dalloc *mg_dalloc_get(uint64_t base)
{
    uint64_t v;
    return mg_map_get(&records, base, &v) ? (struct mg_dalloc *)(uintptr_t)v : NULL;
}

struct mg_dalloc *mg_dalloc_add(struct CUctx_st *ctx, uint64_t base, uint32_t flags)
{
    struct mg_dalloc *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    struct mg_alloc m;
    bool counts = mg_mem_find(base, &m) && m.kind != MG_ALLOC_HOST && m.kind != MG_ALLOC_REGISTERED;
    a->ctx = ctx;
    a->device = ctx->device;
    a->bytes = counts ? m.bytes : 0;
    mg_drv.ordinals[a->device].used += a->bytes;
    a->flags = flags;
    a->preferred_id = a->prefetch_id = CUDEVICE_INVALID;
    mg_map_set(&records, base, (uintptr_t)a);
    return a;
}

void mg_dalloc_move(uint64_t base, cu_device device)
{
    struct mg_dalloc *a = mg_dalloc_get(base);
    if (!a) return;
    mg_drv.ordinals[a->device].used -= a->bytes;
    mg_drv.ordinals[device].used += a->bytes;
    a->device = device;
}

static void read_file(const char *path, char *to, size_t bytes)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(to, 1, bytes - 1, f) : 0;
    to[n] = 0;
    if (f) fclose(f);
}

/* "name:  N kB" of /proc/meminfo, in bytes. */
static uint64_t meminfo(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

/* What this machine, or the control group that the process is in, has to hold pages. */
uint64_t mg_machine_memory(void)
{
    char text[8192], group[64];
    read_file("/proc/meminfo", text, sizeof text);
    read_file("/sys/fs/cgroup/memory.max", group, sizeof group);
    uint64_t memory = meminfo(text, "MemTotal:"), most = strtoull(group, NULL, 10); /* 0: "max", or no group */
    if (!memory) return UINT64_MAX;
    return (most ? MG_MIN(memory, most) : memory) + meminfo(text, "SwapTotal:");
}

void mg_memory_refused(uint64_t bytes)
{
    static _Atomic bool told;
    uint64_t live, limit;
    mg_mem_totals(&live, &limit);
    uint64_t device = mg_drv.memory_bytes * (unsigned)mg_drv.n_devices;
    if (limit >= device || live + bytes > device || atomic_exchange(&told, true)) return;
    mg_say(
        "an allocation of %llu bytes, beside %llu, is refused: this machine has %llu bytes of memory and swap (margay run --overcommit allows it)",
        (unsigned long long)bytes, (unsigned long long)live, (unsigned long long)limit);
}

bool mg_device_has_room(cu_device dev, uint64_t bytes)
{
    const struct mg_ordinal *o = &mg_drv.ordinals[dev];
    uint64_t used = __atomic_load_n(&o->created, __ATOMIC_RELAXED) +
                    (mg_drv.n_devices > 1 ? __atomic_load_n(&o->used, __ATOMIC_RELAXED) : 0);
    return used <= mg_drv.memory_bytes && bytes <= mg_drv.memory_bytes - used;
}

cu_result mg_dalloc_new(struct CUctx_st *ctx, uint64_t bytes, uint64_t align, enum mg_alloc_kind kind, uint32_t flags,
                        uint64_t *out)
{
    if (kind == MG_ALLOC_DEVICE && !mg_device_has_room(ctx->device, bytes)) return CUE_OUT_OF_MEMORY;
    uint64_t base = mg_mem_alloc(bytes, MG_MAX(align, 512), kind);
    if (!base) {
        mg_memory_refused(bytes);
        return CUE_OUT_OF_MEMORY;
    }
    mg_lock();
    struct mg_dalloc *a = mg_dalloc_add(ctx, base, flags);
    mg_unlock();
    if (!a) {
        mg_mem_free(base);
        return CUE_OUT_OF_MEMORY;
    }
    *out = base;
    return CUE_SUCCESS;
}

void mg_dalloc_forget(uint64_t base)
{
    mg_lock();
    struct mg_dalloc *a = mg_dalloc_get(base);
    if (a) {
        struct mg_alloc m;
        if (a->pool && mg_mem_find(base, &m)) mg_pool_note(a->pool, -(int64_t)m.bytes);
        mg_drv.ordinals[a->device].used -= a->bytes;
        mg_map_del(&records, base);
        free(a);
    }
    mg_unlock();
}

bool mg_dalloc_free(uint64_t base)
{
    struct mg_alloc m;
    if (!mg_mem_find(base, &m) || m.base != base) return false;
    mg_dalloc_forget(base);
    return m.kind == MG_ALLOC_REGISTERED || m.kind == MG_ALLOC_VMM ? mg_mem_unregister(base) : mg_mem_free(base);
}

uint64_t mg_dalloc_any_of(struct CUctx_st *ctx)
{
    uint64_t base = 0, k, v;
    mg_lock();
    for (uint32_t i = 0; !base && mg_map_next(&records, &i, &k, &v);)
        if (((struct mg_dalloc *)(uintptr_t)v)->ctx == ctx) base = k;
    mg_unlock();
    return base;
}

bool mg_ptr_on_device(uint64_t p, uint64_t bytes)
{
    struct mg_alloc a;
    return mg_mem_find(p, &a) && bytes <= a.base + a.bytes - p;
}

bool mg_ptr_is_device_only(uint64_t p)
{
    struct mg_alloc a;
    return mg_mem_find(p, &a) && (a.kind == MG_ALLOC_DEVICE || a.kind == MG_ALLOC_GLOBAL || a.kind == MG_ALLOC_CONST ||
                                  a.kind == MG_ALLOC_VMM);
}

bool mg_ptr_pageable(uint64_t p)
{
    struct mg_alloc a;
    return !mg_mem_find(p, &a);
}

bool mg_driver_allocation(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes)
{
    struct mg_alloc a;
    if (!mg_mem_find(address, &a) || a.kind == MG_ALLOC_RUNTIME) return false;
    *id = a.id;
    *offset = address - a.base;
    *bytes = a.bytes;
    return true;
}

/* ---- allocation ------------------------------------------------------------------------------------ */

static cu_result allocate(cu_ptr *out, size_t bytes, enum mg_alloc_kind kind, uint32_t flags)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(out && bytes);
    r = mg_capture_unsafe(ctx);
    if (!r) r = mg_dalloc_new(ctx, bytes, 0, kind, flags, out);
    if (!r && kind == MG_ALLOC_DEVICE) mg_defined_fresh(*out, bytes);
    return r;
}

static cu_result cuMemAlloc_v2(cu_ptr *out, size_t bytes)
{
    return allocate(out, bytes, MG_ALLOC_DEVICE, 0);
}

static cu_result cuMemAllocPitch_v2(cu_ptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    CHECK(out && pitch && width && height && (element == 4 || element == 8 || element == 16));
    *pitch = (width + 511) & ~(size_t)511;
    return cuMemAlloc_v2(out, *pitch * height);
}

/* Frees wait for everything the context was given, as the real driver does: no kernel loses memory under it. */
static cu_result free_base(cu_ptr p)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r == CUE_NOT_INITIALIZED || r == CUE_INVALID_CONTEXT) return r;
    if (!p) return r;
    struct mg_alloc a;
    CHECK(mg_mem_find(p, &a) && a.base == p);
    mg_lock();
    struct mg_dalloc *d = mg_dalloc_get(p);
    bool ours = d && !d->freeing;
    struct mg_graph_mem *g = mg_graph_mem_of(p);
    if (ours) ctx = d->ctx;
    if (g) {
        ours = g->live;
        g->live = false;
    }
    mg_unlock();
    CHECK(ours);
    if (g) return r; /* left behind by a graph's launch: the address stays the graph's */
    if (mg_obj_is(ctx, MG_OBJ_CTX)) {
        cu_result c = mg_capture_unsafe(ctx);
        if (c) return c;
        mg_ctx_sync(ctx);
    }
    CHECK(mg_dalloc_free(p));
    return r;
}

static cu_result cuMemFree_v2(cu_ptr p)
{
    struct mg_alloc a;
    if (p && mg_mem_find(p, &a) && (a.kind == MG_ALLOC_HOST || a.kind == MG_ALLOC_REGISTERED || a.kind == MG_ALLOC_VMM))
        return CUE_INVALID_VALUE;
    return free_base(p);
}

static cu_result cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    cu_ptr p = 0;
    CHECK(out && flags <= 7);
    if (!bytes) {
        *out = NULL;
        return mg_enter(NULL);
    }
    cu_result r = allocate(&p, bytes, MG_ALLOC_HOST, flags);
    if (!r) *out = (void *)(uintptr_t)p;
    return r;
}

static cu_result cuMemAllocHost_v2(void **out, size_t bytes)
{
    return cuMemHostAlloc(out, bytes, 0);
}
static cu_result cuMemAllocHost(void **out, unsigned bytes)
{
    return cuMemHostAlloc(out, bytes, 0);
}

static cu_result cuMemFreeHost(void *p)
{
    struct mg_alloc a;
    if (!p) return mg_enter(NULL);
    if (!mg_mem_find((uintptr_t)p, &a) || a.kind != MG_ALLOC_HOST) {
        cu_result r = mg_enter(NULL);
        return r ? r : CUE_INVALID_VALUE;
    }
    return free_base((uintptr_t)p);
}

static cu_result cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(p && bytes && flags <= 15);
    if (flags & CUREG_IOMEMORY) return CUE_NOT_SUPPORTED;
    struct mg_alloc a, below, above;
    if (mg_mem_find((uintptr_t)p, &a)) return CUE_HOST_MEMORY_ALREADY_REGISTERED;
    if (mg_mem_nearest((uintptr_t)p, &below, &above) && above.bytes && above.base > (uintptr_t)p &&
        above.base < (uintptr_t)p + bytes)
        return CUE_HOST_MEMORY_ALREADY_REGISTERED;
    if (!mg_mem_register((uintptr_t)p, bytes)) return CUE_HOST_MEMORY_ALREADY_REGISTERED;
    mg_lock();
    bool ok = mg_dalloc_add(ctx, (uintptr_t)p, flags) != NULL;
    mg_unlock();
    if (ok) return CUE_SUCCESS;
    mg_mem_unregister((uintptr_t)p);
    return CUE_OUT_OF_MEMORY;
}
static cu_result cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
    return cuMemHostRegister_v2(p, bytes, flags);
}

static cu_result cuMemHostUnregister(void *p)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    struct mg_alloc a;
    CHECK(p);
    if (!mg_mem_find((uintptr_t)p, &a) || a.kind != MG_ALLOC_REGISTERED || a.base != (uintptr_t)p)
        return CUE_HOST_MEMORY_NOT_REGISTERED;
    mg_ctx_sync(ctx);
    return mg_dalloc_free((uintptr_t)p) ? CUE_SUCCESS : CUE_HOST_MEMORY_NOT_REGISTERED;
}

static bool is_host(const struct mg_alloc *a)
{
    return a->kind == MG_ALLOC_HOST || a->kind == MG_ALLOC_REGISTERED;
}

static cu_result cuMemHostGetDevicePointer_v2(cu_ptr *out, void *p, unsigned flags)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    struct mg_alloc a;
    CHECK(out && !flags && mg_mem_find((uintptr_t)p, &a) && (is_host(&a) || a.kind == MG_ALLOC_MANAGED));
    *out = (uintptr_t)p;
    return CUE_SUCCESS;
}

static cu_result cuMemHostGetFlags(unsigned *flags, void *p)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    struct mg_alloc a;
    CHECK(flags && mg_mem_find((uintptr_t)p, &a) && is_host(&a));
    mg_lock();
    struct mg_dalloc *d = mg_dalloc_get(a.base);
    *flags = (d ? d->flags : 0) | CUHOST_DEVICEMAP;
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuMemAllocManaged(cu_ptr *out, size_t bytes, unsigned flags)
{
    CHECK(flags == CUATTACH_GLOBAL || flags == CUATTACH_HOST);
    return allocate(out, bytes, MG_ALLOC_MANAGED, flags);
}

static cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(free_bytes && total);
    uint64_t live, limit, held = 600u << 20; /* what a real context takes for itself */
    mg_mem_totals(&live, &limit);
    mg_lock();
    for (int i = 0; i < mg_drv.n_devices; i++)
        if (i != ctx->device) live -= MG_MIN(live, mg_drv.ordinals[i].used);
    mg_unlock();
    live += __atomic_load_n(&mg_drv.ordinals[ctx->device].created, __ATOMIC_RELAXED);
    *total = mg_drv.memory_bytes;
    *free_bytes = *total > live + held ? *total - live - held : 0;
    return CUE_SUCCESS;
}

static cu_result cuMemGetAddressRange_v2(cu_ptr *base, size_t *bytes, cu_ptr p)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    struct mg_alloc a;
    if (!mg_mem_find(p, &a)) return CUE_NOT_FOUND;
    if (base) *base = a.base;
    if (bytes) *bytes = a.bytes;
    return CUE_SUCCESS;
}

/* ---- what a pointer is ----------------------------------------------------------------------------- */

static cu_result pointer_attribute(void *out, int attr, cu_ptr p)
{
    struct mg_alloc a;
    bool found = mg_mem_find(p, &a) && a.kind != MG_ALLOC_RUNTIME && a.kind != MG_ALLOC_HEAP;
    if (!found) return CUE_INVALID_VALUE;
    struct mg_dalloc copy = {0};
    mg_lock();
    struct mg_dalloc *d = mg_dalloc_get(a.base);
    if (d) copy = *d;
    mg_unlock();
    bool host = is_host(&a),
         managed = a.kind == MG_ALLOC_MANAGED || (a.kind == MG_ALLOC_GLOBAL && copy.flags == CUATTACH_GLOBAL && d);
    switch (attr) {
    case CUPTR_CONTEXT:
        *(cu_ctx *)out = copy.ctx;
        return CUE_SUCCESS;
    case CUPTR_MEMORY_TYPE:
        *(unsigned *)out = host ? CUMEM_HOST : CUMEM_DEVICE;
        return CUE_SUCCESS;
    case CUPTR_DEVICE_POINTER:
        *(cu_ptr *)out = p;
        return CUE_SUCCESS;
    case CUPTR_HOST_POINTER:
        if (!host && !managed) return CUE_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)p;
        return CUE_SUCCESS;
    case CUPTR_SYNC_MEMOPS:
        *(int *)out = copy.sync_memops;
        return CUE_SUCCESS;
    case CUPTR_BUFFER_ID:
        *(uint64_t *)out = a.id;
        return CUE_SUCCESS;
    case CUPTR_IS_MANAGED:
        *(int *)out = managed;
        return CUE_SUCCESS;
    case CUPTR_DEVICE_ORDINAL:
        *(int *)out = d ? copy.device : (int)a.tag;
        return CUE_SUCCESS;
    case CUPTR_IS_LEGACY_IPC_CAPABLE:
        *(int *)out = 0;
        return CUE_SUCCESS;
    case CUPTR_RANGE_START_ADDR:
    case CUPTR_MAPPING_BASE_ADDR:
        *(cu_ptr *)out = a.base;
        return CUE_SUCCESS;
    case CUPTR_RANGE_SIZE:
    case CUPTR_MAPPING_SIZE:
        *(size_t *)out = a.bytes;
        return CUE_SUCCESS;
    case CUPTR_MAPPED:
        *(int *)out = 1;
        return CUE_SUCCESS;
    case CUPTR_ALLOWED_HANDLE_TYPES:
        *(uint64_t *)out = 0;
        return CUE_SUCCESS;
    case CUPTR_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(int *)out = 0;
        return CUE_SUCCESS;
    case CUPTR_ACCESS_FLAGS:
        *(unsigned *)out = CUACCESS_READWRITE;
        return CUE_SUCCESS;
    case CUPTR_MEMPOOL_HANDLE:
        *(cu_pool *)out = copy.pool;
        return CUE_SUCCESS;
    case CUPTR_MEMORY_BLOCK_ID:
        *(uint64_t *)out = a.id;
        return CUE_SUCCESS;
    case CUPTR_IS_HW_DECOMPRESS_CAPABLE:
        *(int *)out = 0;
        return CUE_SUCCESS;
    default:
        return CUE_INVALID_VALUE;
    }
}

static cu_result cuPointerGetAttribute(void *out, int attr, cu_ptr p)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out);
    return pointer_attribute(out, attr, p);
}

/* Unlike the single form this one answers for unknown pointers too: with zeros. */
static cu_result cuPointerGetAttributes(unsigned n, int *attrs, void **out, cu_ptr p)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(n && attrs && out);
    static const uint8_t size[CUPTR_COUNT] = {
        [CUPTR_CONTEXT] = 8,
        [CUPTR_MEMORY_TYPE] = 4,
        [CUPTR_DEVICE_POINTER] = 8,
        [CUPTR_HOST_POINTER] = 8,
        [CUPTR_P2P_TOKENS] = 16,
        [CUPTR_SYNC_MEMOPS] = 4,
        [CUPTR_BUFFER_ID] = 8,
        [CUPTR_IS_MANAGED] = 4,
        [CUPTR_DEVICE_ORDINAL] = 4,
        [CUPTR_IS_LEGACY_IPC_CAPABLE] = 4,
        [CUPTR_RANGE_START_ADDR] = 8,
        [CUPTR_RANGE_SIZE] = 8,
        [CUPTR_MAPPED] = 4,
        [CUPTR_ALLOWED_HANDLE_TYPES] = 8,
        [CUPTR_IS_GPU_DIRECT_RDMA_CAPABLE] = 4,
        [CUPTR_ACCESS_FLAGS] = 4,
        [CUPTR_MEMPOOL_HANDLE] = 8,
        [CUPTR_MAPPING_SIZE] = 8,
        [CUPTR_MAPPING_BASE_ADDR] = 8,
        [CUPTR_MEMORY_BLOCK_ID] = 8,
        [CUPTR_IS_HW_DECOMPRESS_CAPABLE] = 4,
    };
    for (unsigned i = 0; i < n; i++) {
        CHECK(attrs[i] > 0 && attrs[i] < CUPTR_COUNT && out[i]);
        if (!pointer_attribute(out[i], attrs[i], p)) continue;
        memset(out[i], 0, size[attrs[i]]);
        if (attrs[i] == CUPTR_DEVICE_ORDINAL) *(int *)out[i] = CUDEVICE_INVALID;
        if (attrs[i] == CUPTR_HOST_POINTER && mg_ptr_pageable(p)) *(void **)out[i] = (void *)(uintptr_t)p;
    }
    return CUE_SUCCESS;
}

static cu_result cuPointerSetAttribute(const void *value, int attr, cu_ptr p)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    struct mg_alloc a;
    CHECK(value && attr == CUPTR_SYNC_MEMOPS && mg_mem_find(p, &a));
    mg_lock();
    struct mg_dalloc *d = mg_dalloc_get(a.base);
    if (d) d->sync_memops = *(const int *)value != 0;
    mg_unlock();
    return d ? CUE_SUCCESS : CUE_INVALID_VALUE;
}

const struct mg_entry mg_entries_memory[] = {
    MG_ENTRY(cuMemAlloc_v2),
    MG_ENTRY(cuMemAllocPitch_v2),
    MG_ENTRY(cuMemFree_v2),
    MG_ENTRY(cuMemHostAlloc),
    MG_ENTRY(cuMemAllocHost),
    MG_ENTRY(cuMemAllocHost_v2),
    MG_ENTRY(cuMemFreeHost),
    MG_ENTRY(cuMemHostRegister),
    MG_ENTRY(cuMemHostRegister_v2),
    MG_ENTRY(cuMemHostUnregister),
    MG_ENTRY(cuMemHostGetDevicePointer_v2),
    MG_ENTRY(cuMemHostGetFlags),
    MG_ENTRY(cuMemAllocManaged),
    MG_ENTRY(cuMemGetInfo_v2),
    MG_ENTRY(cuMemGetAddressRange_v2),
    MG_ENTRY(cuPointerGetAttribute),
    MG_ENTRY(cuPointerGetAttributes),
    MG_ENTRY(cuPointerSetAttribute),
    {0},
};
