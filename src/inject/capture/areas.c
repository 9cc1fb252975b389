/* Memory that kernels reach: what was allocated where. Every allocation and release of the program's comes by here. */
#include "inject/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "inject/session.h"
#include "inject/verify.h"
#include "base/search.h"

/* ---- the list ------------------------------------------------------------------------------------------ */

static uint32_t place_of(uint64_t at) /* of the first area that begins at it or above */
{
    uint32_t k;
    MG_FIND_FIRST(k, mg_capture.areas.n, mg_capture.areas.at[k].at < at);
    return k;
}

struct mg_cap_area *mg_cap_area_find(uint64_t p)
{
    uint32_t k = place_of(p);
    if (k < mg_capture.areas.n && mg_capture.areas.at[k].at == p) return &mg_capture.areas.at[k];
    return k && p - mg_capture.areas.at[k - 1].at < mg_capture.areas.at[k - 1].bytes ? &mg_capture.areas.at[k - 1]
                                                                                     : NULL;
}

struct mg_cap_area *mg_cap_area_add(uint64_t at, uint64_t bytes, enum mg_cap_memory kind)
{
    uint32_t k = place_of(at);
    mg_vec_push(&mg_capture.areas);
    struct mg_cap_area *a = &mg_capture.areas.at[k];
    memmove(a + 1, a, (mg_capture.areas.n - 1 - k) * sizeof *a);
    *a = (struct mg_cap_area){
        .at = at, .bytes = bytes, .kind = kind, .checked = mg_capture.n_launches, .context = mg_cap_context()};
    return a;
}

static void remove_area(struct mg_cap_area *a)
{
    uint32_t k = (uint32_t)(a - mg_capture.areas.at);
    if (a->told && !a->stays) PUT(MG_CAP_free, a->at);
    free(a->known);
    memmove(a, a + 1, (--mg_capture.areas.n - k) * sizeof *a);
}

void mg_cap_area_tell(struct mg_cap_area *a)
{
    if (a->told) return;
    a->told = true;
    PUT(MG_CAP_alloc, a->at, a->bytes, a->kind);
    if (a->kind != MG_CAP_DEVICE) {
        a->known = calloc(a->bytes / MG_CAP_CHUNK + 1, sizeof *a->known);
        mg_capture.shares = true;
    }
}

enum mg_cap_place mg_cap_place_of(uint64_t p)
{
    const struct mg_cap_area *a = mg_cap_area_find(p);
    return !a || !a->told ? MG_PLACE_HOST : a->kind == MG_CAP_DEVICE ? MG_PLACE_DEVICE : MG_PLACE_SHARED;
}

bool mg_cap_read(const struct mg_cap_area *a, uint64_t off, void *to, uint64_t bytes)
{
    if (!mg_capture.hardware || a->kind != MG_CAP_DEVICE)
        memcpy(to, (const char *)(uintptr_t)a->at + off, bytes);
    else
        return MG_REAL_AS(cuMemcpyDtoH_v2, void *, cu_ptr, size_t)(to, a->at + off, bytes) == CUE_SUCCESS;
    return true;
}

void mg_cap_areas_unload(uint32_t load, bool there)
{
    for (uint32_t k = mg_capture.areas.n; k-- > 0;) {
        if (mg_capture.areas.at[k].load != load) continue;
        if (there) mg_check_area(&mg_capture.areas.at[k], true);
        remove_area(&mg_capture.areas.at[k]);
    }
}

/* The context is gone, and everything in it. The program's own memory stays. */
void mg_cap_areas_drop(uint32_t context)
{
    for (uint32_t k = mg_capture.areas.n; k-- > 0;) {
        struct mg_cap_area *a = &mg_capture.areas.at[k];
        if (a->context == context && (a->kind != MG_CAP_HOST || !a->registered)) remove_area(a);
    }
}

void mg_cap_freed(uint64_t p)
{
    struct mg_cap_area *a = mg_cap_area_find(p);
    if (!a || a->at != p) return;
    if (a->told && !mg_capture.told_graph && mg_check_wait(true)) mg_check_area(a, true);
    a = mg_cap_area_find(p); /* waiting may have let another thread in */
    if (a && a->at == p) remove_area(a);
}

/* ---- entries ------------------------------------------------------------------------------------------------ */

static cu_result made(cu_result rc, uint64_t at, uint64_t bytes, enum mg_cap_memory kind, bool registered)
{
    if (rc != CUE_SUCCESS || !mg_capture_looks() || !at || !bytes ||
        mg_areas_capturing()) /* in a capture: a node of the graph */
        return rc;
    mg_capture_lock();
    struct mg_cap_area *a = mg_cap_area_add(at, bytes, kind);
    a->registered = registered;
    if (kind != MG_CAP_HOST) mg_cap_area_tell(a);
    mg_capture_unlock();
    return rc;
}

static void freed(uint64_t p)
{
    if (!mg_capture_looks() || !p || mg_areas_capturing()) return;
    mg_capture_lock();
    mg_cap_freed(p);
    mg_capture_unlock();
}

static bool gives_back(cu_ptr p)
{
    return !mg_inside && mg_capture.wanted && mg_fixed_has(p);
}

MG_CAPTURE(cuMemAlloc_v2, cu_ptr *p, size_t bytes)
{
    cu_result rc;
    if (!mg_capture_looks() || !mg_fixed_alloc(p, bytes, &rc)) rc = NEXT(cuMemAlloc_v2)(p, bytes);
    return made(rc, rc ? 0 : *p, bytes, MG_CAP_DEVICE, false);
}
MG_CAPTURE(cuMemAllocPitch_v2, cu_ptr *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
    cu_result rc;
    size_t row = (width + 511) & ~(size_t)511;
    bool plain = pitch && width && height && (element == 4 || element == 8 || element == 16);
    if (plain && mg_capture_looks() && mg_fixed_alloc(p, row * height, &rc))
        *pitch = row;
    else
        rc = NEXT(cuMemAllocPitch_v2)(p, pitch, width, height, element);
    return made(rc, rc ? 0 : *p, rc ? 0 : *pitch * height, MG_CAP_DEVICE, false);
}
MG_CAPTURE(cuMemAllocManaged, cu_ptr *p, size_t bytes, unsigned flags)
{
    cu_result rc = NEXT(cuMemAllocManaged)(p, bytes, flags);
    return made(rc, rc ? 0 : *p, bytes, MG_CAP_MANAGED, false);
}
MG_CAPTURE(cuMemHostAlloc, void **p, size_t bytes, unsigned flags)
{
    cu_result rc = NEXT(cuMemHostAlloc)(p, bytes, flags);
    return made(rc, rc ? 0 : (uintptr_t)*p, bytes, MG_CAP_HOST, false);
}
MG_CAPTURE(cuMemAllocHost_v2, void **p, size_t bytes)
{
    cu_result rc = NEXT(cuMemAllocHost_v2)(p, bytes);
    return made(rc, rc ? 0 : (uintptr_t)*p, bytes, MG_CAP_HOST, false);
}
#define REGISTER(name)                                                                                                 \
    MG_CAPTURE(name, void *p, size_t bytes, unsigned flags)                                                            \
    {                                                                                                                  \
        return made(NEXT(name)(p, bytes, flags), (uintptr_t)p, bytes, MG_CAP_HOST, true);                              \
    }
REGISTER(cuMemHostRegister)
REGISTER(cuMemHostRegister_v2)
MG_CAPTURE(cuMemHostGetDevicePointer_v2, cu_ptr *out, void *p, unsigned flags)
{
    cu_result rc = NEXT(cuMemHostGetDevicePointer_v2)(out, p, flags);
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        struct mg_cap_area *a = mg_cap_area_find((uintptr_t)p);
        if (a && *out == (uintptr_t)p)
            mg_cap_area_tell(a);
        else if (a)
            mg_capture_miss("memory of the host that kernels see at another address is not captured", true);
        mg_capture_unlock();
    }
    return rc;
}

/* Pools: what is freed in stream order may be given out again at once, so it is compared and forgotten before the call.
 */
#define ALLOC_ASYNC(name)                                                                                              \
    MG_CAPTURE(name, cu_ptr *p, size_t bytes, cu_stream s)                                                             \
    {                                                                                                                  \
        cu_result rc;                                                                                                  \
        if (!mg_capture_looks() || !mg_fixed_alloc(p, bytes, &rc)) rc = NEXT(name)(p, bytes, s);                       \
        return made(rc, rc ? 0 : *p, bytes, MG_CAP_DEVICE, false);                                                     \
    }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)
#define ALLOC_POOL(name)                                                                                               \
    MG_CAPTURE(name, cu_ptr *p, size_t bytes, cu_pool pool, cu_stream s)                                               \
    {                                                                                                                  \
        cu_result rc;                                                                                                  \
        if (!mg_capture_looks() || !mg_fixed_alloc(p, bytes, &rc)) rc = NEXT(name)(p, bytes, pool, s);                 \
        return made(rc, rc ? 0 : *p, bytes, MG_CAP_DEVICE, false);                                                     \
    }
ALLOC_POOL(cuMemAllocFromPoolAsync)
ALLOC_POOL(cuMemAllocFromPoolAsync_ptsz)
MG_CAPTURE(cuMemFreeAsync, cu_ptr p, cu_stream s)
{
    freed(p);
    return gives_back(p) ? mg_fixed_free(p) : NEXT(cuMemFreeAsync)(p, s);
}
MG_CAPTURE(cuMemFreeAsync_ptsz, cu_ptr p, cu_stream s)
{
    freed(p);
    return gives_back(p) ? mg_fixed_free(p) : NEXT(cuMemFreeAsync_ptsz)(p, s);
}
MG_CAPTURE(cuMemFree_v2, cu_ptr p)
{
    freed(p);
    return gives_back(p) ? mg_fixed_free(p) : NEXT(cuMemFree_v2)(p);
}
MG_CAPTURE(cuMemFreeHost, void *p)
{
    freed((uintptr_t)p);
    return NEXT(cuMemFreeHost)(p);
}
MG_CAPTURE(cuMemHostUnregister, void *p)
{
    freed((uintptr_t)p);
    return NEXT(cuMemHostUnregister)(p);
}

/* Memory that the program maps itself: fresh with every mapping, as the capture sees it. */
MG_CAPTURE(cuMemMap, cu_ptr p, size_t bytes, size_t offset, cu_mem_handle h, unsigned long long flags)
{
    static struct mg_map seen;
    cu_result rc = NEXT(cuMemMap)(p, bytes, offset, h, flags);
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        if (mg_map_get(&seen, h, NULL)) mg_capture_miss("physical memory that is mapped twice is not captured", true);
        mg_map_set(&seen, h, 1);
        mg_capture_unlock();
    }
    return made(rc, p, bytes, MG_CAP_DEVICE, false);
}
MG_CAPTURE(cuMemUnmap, cu_ptr p, size_t bytes)
{
    if (mg_capture_looks()) {
        mg_capture_lock();
        for (uint64_t at = p; at < p + bytes;) {
            struct mg_cap_area *a = mg_cap_area_find(at);
            uint64_t n = a ? a->bytes : 0;
            if (!n) break;
            mg_cap_freed(at);
            at += n;
        }
        mg_capture_unlock();
    }
    return NEXT(cuMemUnmap)(p, bytes);
}

static void all_ends(uint32_t context, bool primary)
{
    mg_capture.uses_streams = true; /* one of its streams may not be asked any more */
    mg_cap_objects_end(context);
    mg_cap_modules_end(context);
    mg_cap_areas_drop(context);
    mg_fixed_ends(context);
    mg_cap_context_ends(context, primary);
}

static void check_all(uint32_t context)
{
    if (context && mg_check_wait(true))
        for (uint32_t i = 0; i < mg_capture.areas.n; i++)
            if (mg_capture.areas.at[i].context == context) mg_check_area(&mg_capture.areas.at[i], true);
}

/* Ends of contexts: what is left in them is compared as it is now. */
static void context_ends(cu_ctx c, bool primary)
{
    if (!mg_capture_looks()) return;
    mg_capture_lock();
    check_all(mg_cap_context_of(c));
    all_ends(mg_cap_context_of(c), primary);
    mg_capture_unlock();
}
#define DESTROY(name)                                                                                                  \
    MG_CAPTURE(name, cu_ctx c)                                                                                         \
    {                                                                                                                  \
        context_ends(c, false);                                                                                        \
        return NEXT(name)(c);                                                                                          \
    }
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)
#define RESET(name)                                                                                                    \
    MG_CAPTURE(name, cu_device d)                                                                                      \
    {                                                                                                                  \
        context_ends(mg_cap_context_primary(d), true);                                                                 \
        return NEXT(name)(d);                                                                                          \
    }
RESET(cuDevicePrimaryCtxReset)
RESET(cuDevicePrimaryCtxReset_v2)
/* Whether it goes is known only afterwards. */
static cu_ctx before_release(cu_device d)
{
    cu_ctx c = mg_capture_looks() ? mg_cap_context_primary(d) : NULL;
    if (!c) return NULL;
    mg_capture_lock();
    check_all(mg_cap_context_of(c));
    mg_capture_unlock();
    return c;
}
static cu_result released(cu_result rc, cu_device d, cu_ctx was)
{
    if (rc == CUE_SUCCESS && was && !mg_cap_context_primary(d)) {
        mg_capture_lock();
        all_ends(mg_cap_context_of(was), true);
        mg_capture_unlock();
    }
    return rc;
}
#define RELEASE(name)                                                                                                  \
    MG_CAPTURE(name, cu_device d)                                                                                      \
    {                                                                                                                  \
        cu_ctx was = before_release(d);                                                                                \
        return released(NEXT(name)(d), d, was);                                                                        \
    }
RELEASE(cuDevicePrimaryCtxRelease)
RELEASE(cuDevicePrimaryCtxRelease_v2)
