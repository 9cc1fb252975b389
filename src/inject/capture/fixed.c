/* On a GPU: the captured program's device memory, at addresses that are free in other processes. The range from
 * MG_CAP_ARENA on is reserved once; memory is mapped into it in pieces, and allocations are parts of these. What is
 * freed is given out again, pieces stay until the process ends. Our own driver needs none of this: it begins its arena
 * there. */
#include "inject/capture/capture.h"

#include <string.h>

#include "device/extents.h"
#include "inject/session.h"
#include "inject/verify.h"

enum { ALIGN = 512, PIECE = 32 << 20 };
#define ARENA_BYTES    (UINT64_C(1) << 38)
#define RESERVED_APART (UINT64_C(1) << 30)

static struct {
    bool tried, there;
    int device;
    size_t granule;
    uint64_t top; /* nothing is mapped from here on */
    struct mg_extents free;
    struct mg_map sizes, spans; /* address -> bytes asked for, bytes taken */
} arena;                        /* under the capture's lock */

static bool reserve(void)
{
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, 0}};
    cu_ptr got = 0;
    MG_REAL_AS(cuCtxGetDevice, cu_device *)(&arena.device);
    prop.location.id = arena.device;
    cu_result rc = MG_REAL_AS(cuMemGetAllocationGranularity, size_t *, const struct cu_alloc_prop *,
                              int)(&arena.granule, &prop, 0);
    if (rc == CUE_SUCCESS)
        rc = MG_REAL_AS(cuMemAddressReserve, cu_ptr *, size_t, size_t, cu_ptr,
                        unsigned long long)(&got, ARENA_BYTES, arena.granule, MG_CAP_ARENA, 0);
    if (rc == CUE_SUCCESS && got != MG_CAP_ARENA) MG_REAL_AS(cuMemAddressFree, cu_ptr, size_t)(got, ARENA_BYTES);
    if (rc != CUE_SUCCESS || got != MG_CAP_ARENA)
        mg_session_say(
            "device memory stays where the driver puts it: the addresses from 0x%llx on are not free; a replay may not find its own free",
            (unsigned long long)MG_CAP_ARENA);
    arena.top = got;
    return rc == CUE_SUCCESS && got == MG_CAP_ARENA;
}

/* Is device memory to be had from here, in the current context? */
static bool serves(void)
{
    cu_device device = -1;
    if (!mg_capture.hardware || mg_areas_capturing()) return false;
    if (!arena.tried) {
        arena.tried = true;
        arena.there = reserve();
    }
    MG_REAL_AS(cuCtxGetDevice, cu_device *)(&device);
    if (arena.there && device != arena.device) mg_capture_miss("memory of a second device is not captured", true);
    return arena.there && device == arena.device;
}

static bool map_piece(uint64_t bytes)
{
    struct cu_alloc_prop prop = {.type = 1, .location = {CULOC_DEVICE, arena.device}};
    struct cu_access access = {prop.location, CUACCESS_READWRITE};
    cu_mem_handle h;
    if (bytes > MG_CAP_ARENA + ARENA_BYTES - arena.top ||
        MG_REAL_AS(cuMemCreate, cu_mem_handle *, size_t, const struct cu_alloc_prop *,
                   unsigned long long)(&h, bytes, &prop, 0) != CUE_SUCCESS)
        return false;
    bool ok = MG_REAL_AS(cuMemMap, cu_ptr, size_t, size_t, cu_mem_handle, unsigned long long)(arena.top, bytes, 0, h,
                                                                                              0) == CUE_SUCCESS &&
              MG_REAL_AS(cuMemSetAccess, cu_ptr, size_t, const struct cu_access *, size_t)(arena.top, bytes, &access,
                                                                                           1) == CUE_SUCCESS &&
              mg_extent_give(&arena.free, arena.top, bytes);
    MG_REAL_AS(cuMemRelease, cu_mem_handle)(h); /* the mapping keeps it */
    arena.top += ok ? bytes : 0;
    return ok;
}

bool mg_fixed_alloc(cu_ptr *out, size_t bytes, cu_result *rc)
{
    uint64_t span = (bytes + ALIGN - 1) / ALIGN * ALIGN, at;
    if (!out || !bytes || bytes > ARENA_BYTES) return false;
    mg_capture_lock();
    bool here = serves();
    if (here) {
        uint64_t piece = (span + arena.granule - 1) / arena.granule * arena.granule;
        at = mg_extent_take(&arena.free, span, ALIGN, 0);
        if (!at && (map_piece(MG_MAX(piece, (uint64_t)PIECE)) || map_piece(piece)))
            at = mg_extent_take(&arena.free, span, ALIGN, 0);
        *rc = at ? MG_REAL_AS(cuMemsetD8_v2, cu_ptr, unsigned char, size_t)(at, 0, span)
                 : CUE_OUT_OF_MEMORY; /* as a replay finds it */
        if (at) {
            MG_REAL_AS(cuStreamSynchronize, cu_stream)(NULL);
            mg_map_set(&arena.sizes, at, bytes);
            mg_map_set(&arena.spans, at, span);
            *out = at;
        }
    }
    mg_capture_unlock();
    return here;
}

bool mg_fixed_has(cu_ptr p)
{
    return arena.there && p - MG_CAP_ARENA < ARENA_BYTES;
}

/* Nothing that the program sent before uses it when it is given out again. */
cu_result mg_fixed_free(cu_ptr p)
{
    uint64_t span, bytes;
    mg_capture_lock();
    bool is = mg_map_get(&arena.spans, p, &span) && mg_map_get(&arena.sizes, p, &bytes);
    if (is) {
        MG_REAL_AS(cuCtxSynchronize, void)();
        mg_map_del(&arena.spans, p);
        mg_map_del(&arena.sizes, p);
        mg_extent_give(&arena.free, p, span);
    }
    mg_capture_unlock();
    return is ? CUE_SUCCESS : CUE_INVALID_VALUE;
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
