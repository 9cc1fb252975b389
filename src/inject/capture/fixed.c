/* On a GPU: the captured program's device memory, at addresses that are free in other processes. Each context has a
 * range, from MG_CAP_ARENA on; memory is mapped into it in pieces, and allocations are parts of these. What is freed is
 * given out again, pieces stay until the context ends. Our own driver needs none of this: it begins its arena there. */
#include "inject/capture/capture.h"

#include <string.h>

#include "device/extents.h"
#include "inject/session.h"
#include "inject/verify.h"

enum { ALIGN = 512, PIECE = 32 << 20, MOST_CONTEXTS = 16, MOST_DEVICES = 32 };
#define GONE           UINT32_MAX /* the number of no context */
#define ARENA_BYTES    (UINT64_C(1) << 38)
#define RESERVED_APART (UINT64_C(1) << 30)
_Static_assert(MOST_CONTEXTS *ARENA_BYTES <= MG_CAP_ARENA_BYTES, "capture/format.h");

struct piece {
    uint64_t at, bytes;
};
static struct arena {
    uint32_t context; /* 0: of none; GONE: of one that is no more */
    bool tried, there;
    cu_device device;
    size_t granule;
    uint64_t base, top; /* nothing is mapped from top on */
    MG_VEC(struct piece) pieces;
    struct mg_extents free;
    uint32_t peers; /* devices that kernels reach it from, a bit each */
} arenas[MOST_CONTEXTS];
static uint32_t open_to;           /* devices that some pool is open to: here all memory is, then */
static struct mg_map sizes, spans; /* address -> bytes asked for, bytes taken; all under the capture's lock */

/* Without a context a driver may keep what is mapped: then it is given back when there is one. */
static void give_back(struct arena *a)
{
    for (; a->pieces.n; a->pieces.n--) {
        const struct piece *p = &a->pieces.at[a->pieces.n - 1];
        if (MG_REAL_AS(cuMemUnmap, cu_ptr, size_t)(p->at, p->bytes) != CUE_SUCCESS) return;
    }
    if (a->there && MG_REAL_AS(cuMemAddressFree, cu_ptr, size_t)(a->base, ARENA_BYTES) != CUE_SUCCESS) return;
    mg_vec_release(&a->pieces);
    *a = (struct arena){0};
}

static struct arena *arena_of(uint32_t context)
{
    for (uint32_t pass = 0; context && pass < 2; pass++) /* its own, or one that is free */
        for (uint32_t k = 0; k < MOST_CONTEXTS; k++)
            if (arenas[k].context == (pass ? 0 : context)) {
                arenas[k].context = context;
                arenas[k].base = MG_CAP_ARENA + k * ARENA_BYTES;
                return &arenas[k];
            }
    return NULL;
}

static bool reserve(struct arena *a)
{
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, a->device}};
    cu_ptr got = 0;
    cu_result rc =
        MG_REAL_AS(cuMemGetAllocationGranularity, size_t *, const struct cu_alloc_prop *, int)(&a->granule, &prop, 0);
    if (rc == CUE_SUCCESS)
        rc = MG_REAL_AS(cuMemAddressReserve, cu_ptr *, size_t, size_t, cu_ptr,
                        unsigned long long)(&got, ARENA_BYTES, a->granule, a->base, 0);
    if (rc == CUE_SUCCESS && got != a->base) MG_REAL_AS(cuMemAddressFree, cu_ptr, size_t)(got, ARENA_BYTES);
    if (rc != CUE_SUCCESS || got != a->base)
        mg_session_say(
            "device memory stays where the driver puts it: the addresses from 0x%llx on are not free; a replay may not find its own free",
            (unsigned long long)a->base);
    a->top = a->base;
    return rc == CUE_SUCCESS && got == a->base;
}

/* Where device memory is to be had in the current context; NULL: from the driver. */
static struct arena *arena_here(void)
{
    if (!mg_capture.hardware || mg_areas_capturing()) return NULL;
    uint32_t context = mg_cap_context();
    for (uint32_t k = 0; k < MOST_CONTEXTS; k++)
        if (arenas[k].context == GONE) give_back(&arenas[k]);
    struct arena *a = arena_of(context);
    if (a && !a->tried) {
        a->tried = true;
        a->there = MG_REAL_AS(cuCtxGetDevice, cu_device *)(&a->device) == CUE_SUCCESS && reserve(a);
    }
    return a && a->there ? a : NULL;
}

static bool give_access(cu_device device, uint64_t at, uint64_t bytes)
{
    struct cu_access access = {{CULOC_DEVICE, device}, CUACCESS_READWRITE};
    return bytes == 0 || MG_REAL_AS(cuMemSetAccess, cu_ptr, size_t, const struct cu_access *,
                                    size_t)(at, bytes, &access, 1) == CUE_SUCCESS;
}

/* Some programs read beyond their buffers, where a driver has other memory mapped: so a piece has a margin behind it,
 * and the first one in front, too. */
static bool map_piece(struct arena *a, uint64_t bytes)
{
    uint64_t margin = (MG_CAP_MARGIN + a->granule - 1) / a->granule * a->granule, front = a->pieces.n ? 0 : margin;
    uint64_t all = front + bytes + margin;
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, a->device}};
    cu_mem_handle h;
    if (all > a->base + ARENA_BYTES - a->top ||
        MG_REAL_AS(cuMemCreate, cu_mem_handle *, size_t, const struct cu_alloc_prop *,
                   unsigned long long)(&h, all, &prop, 0) != CUE_SUCCESS)
        return false;
    bool ok = MG_REAL_AS(cuMemMap, cu_ptr, size_t, size_t, cu_mem_handle, unsigned long long)(a->top, all, 0, h, 0) ==
                  CUE_SUCCESS &&
              give_access(a->device, a->top, all) && mg_extent_give(&a->free, a->top + front, bytes);
    MG_REAL_AS(cuMemRelease, cu_mem_handle)(h); /* the mapping keeps it */
    for (cu_device d = 0; ok && d < MOST_DEVICES; d++)
        if ((a->peers | open_to) >> d & 1) give_access(d, a->top, all);
    if (!ok) return false;
    *mg_vec_push(&a->pieces) = (struct piece){a->top, all};
    a->top += all;
    return true;
}

bool mg_fixed_alloc(cu_ptr *out, size_t bytes, cu_result *rc)
{
    uint64_t span = (bytes + ALIGN - 1) / ALIGN * ALIGN, at; /* of such spans every place is aligned */
    if (!out || !bytes || bytes > ARENA_BYTES) return false;
    mg_capture_lock();
    struct arena *a = arena_here();
    if (a) {
        uint64_t piece = (span + a->granule - 1) / a->granule * a->granule;
        at = mg_extent_take(&a->free, span, MG_EXTENT_GRANULE, 0);
        if (!at && (map_piece(a, MG_MAX(piece, (uint64_t)PIECE)) || map_piece(a, piece)))
            at = mg_extent_take(&a->free, span, MG_EXTENT_GRANULE, 0);
        *rc = at ? MG_REAL_AS(cuMemsetD8_v2, cu_ptr, unsigned char, size_t)(at, 0, span)
                 : CUE_OUT_OF_MEMORY; /* as a replay finds it */
        if (at) {
            MG_REAL_AS(cuStreamSynchronize, cu_stream)(NULL);
            mg_map_set(&sizes, at, bytes);
            mg_map_set(&spans, at, span);
            *out = at;
        }
    }
    mg_capture_unlock();
    return a != NULL;
}

bool mg_fixed_has(cu_ptr p)
{
    uint64_t k = (p - MG_CAP_ARENA) / ARENA_BYTES;
    return k < MOST_CONTEXTS && arenas[k].there;
}

/* Nothing that the program sent before uses it when it is given out again. */
cu_result mg_fixed_free(cu_ptr p)
{
    uint64_t span, bytes;
    mg_capture_lock();
    bool is = mg_map_get(&spans, p, &span) && mg_map_get(&sizes, p, &bytes);
    if (is) {
        MG_REAL_AS(cuCtxSynchronize, void)();
        mg_map_del(&spans, p);
        mg_map_del(&sizes, p);
        mg_extent_give(&arenas[(p - MG_CAP_ARENA) / ARENA_BYTES].free, p, span);
    }
    mg_capture_unlock();
    return is ? CUE_SUCCESS : CUE_INVALID_VALUE;
}

/* The context is about to go, or has gone: drivers may take such memory with it, and may not. */
void mg_fixed_ends(uint32_t context)
{
    struct arena *a = NULL;
    uint64_t at, span;
    for (uint32_t k = 0; k < MOST_CONTEXTS && context && !mg_capture.lame; k++)
        if (arenas[k].context == context) a = &arenas[k];
    if (!a) return;
    for (uint32_t i = 0; mg_map_next(&spans, &i, &at, &span);)
        if (at - a->base < ARENA_BYTES && mg_map_del(&sizes, at)) mg_extent_give(&a->free, at, span);
    if (a->top > a->base) mg_extent_take(&a->free, a->top - a->base, MG_EXTENT_GRANULE, 0); /* all of it: it goes */
    a->context = GONE;
    give_back(a);
}

/* As the driver does it for memory of its own: the current device reaches all of the peer's. */
MG_CAPTURE(cuCtxEnablePeerAccess, cu_ctx peer, unsigned flags)
{
    cu_result rc = NEXT(cuCtxEnablePeerAccess)(peer, flags);
    cu_device device = -1;
    if (rc != CUE_SUCCESS || !mg_capture_looks() || !mg_capture.hardware) return rc;
    mg_capture_lock();
    mg_capture.of = peer;
    struct arena *a = arena_of(mg_cap_context());
    mg_capture.of = NULL;
    MG_REAL_AS(cuCtxGetDevice, cu_device *)(&device);
    if (a && device >= 0 && device < MOST_DEVICES) {
        a->peers |= 1u << device;
        if (a->there) give_access(device, a->base, a->top - a->base);
    }
    mg_capture_unlock();
    return rc;
}

/* Which context's memory a pool would have given is not kept. */
MG_CAPTURE(cuMemPoolSetAccess, cu_pool pool, const struct cu_access *map, size_t n)
{
    cu_result rc = NEXT(cuMemPoolSetAccess)(pool, map, n);
    if (rc != CUE_SUCCESS || !mg_capture_looks() || !mg_capture.hardware) return rc;
    mg_capture_lock();
    for (size_t i = 0; i < n; i++) {
        cu_device d = map[i].location.id;
        if (map[i].location.type != CULOC_DEVICE || map[i].flags == CUACCESS_NONE || d < 0 || d >= MOST_DEVICES)
            continue;
        open_to |= 1u << d;
        for (uint32_t k = 0; k < MOST_CONTEXTS; k++)
            if (arenas[k].there) give_access(d, arenas[k].base, arenas[k].top - arenas[k].base);
    }
    mg_capture_unlock();
    return rc;
}

bool mg_fixed_range(cu_ptr p, cu_ptr *base, size_t *bytes)
{
    mg_capture_lock();
    const struct mg_cap_area *a = mg_fixed_has(p) ? mg_cap_area_find(p) : NULL;
    bool is = a != NULL;
    if (is) {
        *base = a->at;
        *bytes = a->bytes;
    }
    mg_capture_unlock();
    return is;
}

/* Where the program leaves the place to the driver, addresses that are free in other processes, on any device. The
 * distance lets an H200's driver look at where they are asked for. */
MG_CAPTURE(cuMemAddressReserve, cu_ptr *out, size_t bytes, size_t align, cu_ptr hint, unsigned long long flags)
{
    static uint64_t next = MG_CAP_RESERVED;
    if (hint || !mg_capture_looks() || bytes > ARENA_BYTES || align > RESERVED_APART)
        return NEXT(cuMemAddressReserve)(out, bytes, align, hint, flags);
    mg_capture_lock();
    hint = next;
    next += (bytes + RESERVED_APART - 1) / RESERVED_APART * RESERVED_APART;
    mg_capture_unlock();
    return NEXT(cuMemAddressReserve)(out, bytes, align, hint, flags);
}

/* ---- what the program asks of an address: its allocation, not the piece that it lies in ------------------------- */

MG_CAPTURE(cuMemGetAddressRange_v2, cu_ptr *base, size_t *bytes, cu_ptr p)
{
    cu_ptr at;
    size_t n;
    if (!mg_capture_looks() || !mg_fixed_range(p, &at, &n)) return NEXT(cuMemGetAddressRange_v2)(base, bytes, p);
    if (base) *base = at;
    if (bytes) *bytes = n;
    return CUE_SUCCESS;
}

static bool own_attribute(void *out, int attribute, cu_ptr p)
{
    cu_ptr at;
    size_t n;
    if ((attribute != CUPTR_RANGE_START_ADDR && attribute != CUPTR_RANGE_SIZE && attribute != CUPTR_BUFFER_ID) ||
        !out || !mg_fixed_range(p, &at, &n))
        return false;
    uint64_t v = attribute == CUPTR_RANGE_SIZE ? n : at; /* an allocation's address is as good a number as any */
    memcpy(out, &v, sizeof v);
    return true;
}
MG_CAPTURE(cuPointerGetAttribute, void *out, int attribute, cu_ptr p)
{
    return mg_capture_looks() && own_attribute(out, attribute, p) ? CUE_SUCCESS
                                                                  : NEXT(cuPointerGetAttribute)(out, attribute, p);
}
MG_CAPTURE(cuPointerGetAttributes, unsigned n, int *attributes, void **out, cu_ptr p)
{
    cu_result rc = NEXT(cuPointerGetAttributes)(n, attributes, out, p);
    for (unsigned k = 0; rc == CUE_SUCCESS && mg_capture_looks() && k < n; k++) own_attribute(out[k], attributes[k], p);
    return rc;
}
