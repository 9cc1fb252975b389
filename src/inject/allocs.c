/* What --verify knows of the application's memory: its live allocations, by standing in for the calls
 * that make and free them, and whether a stream is being captured. Without --verify and
 * a GPU each of these hooks is one test and a jump.
 * Not known: memory that a graph's node allocates, and what another process shares with this one. A
 * launch that was handed a pointer to such memory is not compared (verify.c). */
#include "inject/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/search.h"
#include "inject/hooks.h"
#include "inject/session.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MG_VEC(struct mg_area) areas; /* by address */
static uint64_t n_ids;
static int n_captures, n_streams; /* streams that are captured, of areas that are noted; of all */
static bool peers;

/* ---- the list ------------------------------------------------------------------------------------- */

static uint32_t lower(uint64_t at) /* first area that begins behind `at` */
{
    uint32_t k;
    MG_FIND_FIRST(k, areas.n, areas.at[k].at <= at);
    return k;
}

static void insert(struct mg_area a)
{
    pthread_mutex_lock(&lock);
    uint32_t ix = lower(a.at);
    a.id = n_ids++;
    if (ix && areas.at[ix - 1].at == a.at) { /* freed behind our back */
        areas.at[ix - 1] = a;
    } else {
        (void)mg_vec_push(&areas);
        memmove(areas.at + ix + 1, areas.at + ix, (areas.n - 1 - ix) * sizeof a);
        areas.at[ix] = a;
    }
    pthread_mutex_unlock(&lock);
}

/* Takes out what begins in [at, at + bytes); bytes 0: at alone. *old: the last of them. */
static bool remove_area(uint64_t at, uint64_t bytes, struct mg_area *old)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (uint32_t ix = at ? lower(at - 1) : 0; ix < areas.n && areas.at[ix].at <= at + (bytes ? bytes - 1 : 0);) {
        *old = areas.at[ix];
        memmove(areas.at + ix, areas.at + ix + 1, (areas.n - ix - 1) * sizeof *areas.at);
        areas.n--;
        found = true;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool mg_area_find(uint64_t address, struct mg_area *out)
{
    pthread_mutex_lock(&lock);
    uint32_t ix = lower(address);
    bool found = ix && address - areas.at[ix - 1].at < areas.at[ix - 1].bytes;
    if (found) *out = areas.at[ix - 1];
    pthread_mutex_unlock(&lock);
    return found;
}

bool mg_area_lives(const struct mg_area *a)
{
    uint32_t ix = lower(a->at);
    return ix && areas.at[ix - 1].id == a->id;
}

struct mg_area *mg_areas_copy(uint32_t *n)
{
    pthread_mutex_lock(&lock);
    struct mg_area *a = malloc((areas.n + 1) * sizeof *a);
    *n = a ? areas.n : 0;
    if (*n) memcpy(a, areas.at, areas.n * sizeof *a);
    pthread_mutex_unlock(&lock);
    return a;
}

void mg_areas_lock(void)
{
    pthread_mutex_lock(&lock);
}
void mg_areas_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void mg_areas_forget_context(void *ctx, int device)
{
    uint32_t n = 0;
    unsigned flags;
    int active = 0;
    if (!ctx &&
        MG_REAL_AS(cuDevicePrimaryCtxGetState, cu_device, unsigned *, int *)(device, &flags, &active) == CUE_SUCCESS &&
        active)
        return; /* others hold it */
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < areas.n; i++)
        if (ctx && areas.at[i].ctx != ctx) areas.at[n++] = areas.at[i];
    areas.n = n;
    pthread_mutex_unlock(&lock);
}

bool mg_streams_capturing(void)
{
    return __atomic_load_n(&n_streams, __ATOMIC_ACQUIRE) > 0;
}
bool mg_areas_capturing(void)
{
    return __atomic_load_n(&n_captures, __ATOMIC_ACQUIRE) > 0;
}
bool mg_areas_peers(void)
{
    return __atomic_load_n(&peers, __ATOMIC_ACQUIRE);
}

/* ---- made -------------------------------------------------------------------------------------------- */

/* On a GPU the list also gives pointer arguments their place in the profile; our own driver tells that. */
bool mg_areas_on(void)
{
    return mg_session.config.verify || (mg_session.active && !mg_session_can(MG_BACKEND_ALLOCATIONS));
}
static bool looks(cu_result rc)
{
    return rc == CUE_SUCCESS && !mg_inside && mg_areas_on();
}

static cu_result made_as(cu_result rc, const void *at, uint64_t bytes, enum mg_area_kind kind, bool mapped)
{
    uint64_t base;
    if (!looks(rc) || !at || !bytes) return rc;
    memcpy(&base, at, sizeof base);
    cu_ctx ctx = NULL;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx);
    insert((struct mg_area){.at = base, .bytes = bytes, .ctx = ctx, .kind = kind, .mapped = mapped});
    return rc;
}
static cu_result made(cu_result rc, const void *at, uint64_t bytes, enum mg_area_kind kind)
{
    return made_as(rc, at, bytes, kind, false);
}

MG_HOOK(cuMemAlloc_v2, cu_ptr *p, size_t bytes)
{
    return made(MG_REAL(cuMemAlloc_v2)(p, bytes), p, bytes, MG_AREA_DEVICE);
}
MG_HOOK(cuMemAllocPitch_v2, cu_ptr *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
    cu_result rc = MG_REAL(cuMemAllocPitch_v2)(p, pitch, width, height, element);
    return made(rc, p, rc == CUE_SUCCESS ? *pitch * height : 0, MG_AREA_DEVICE);
}
MG_HOOK(cuMemAllocManaged, cu_ptr *p, size_t bytes, unsigned flags)
{
    return made(MG_REAL(cuMemAllocManaged)(p, bytes, flags), p, bytes, MG_AREA_MANAGED);
}
MG_HOOK(cuMemHostAlloc, void **p, size_t bytes, unsigned flags)
{
    return made(MG_REAL(cuMemHostAlloc)(p, bytes, flags), p, bytes, MG_AREA_HOST);
}
MG_HOOK(cuMemAllocHost_v2, void **p, size_t bytes)
{
    return made(MG_REAL(cuMemAllocHost_v2)(p, bytes), p, bytes, MG_AREA_HOST);
}
MG_HOOK(cuMemHostRegister_v2, void *p, size_t bytes, unsigned flags)
{
    return made(MG_REAL(cuMemHostRegister_v2)(p, bytes, flags), &p, bytes, MG_AREA_HOST);
}
MG_HOOK(cuMemMap, cu_ptr p, size_t bytes, size_t offset, cu_mem_handle h, unsigned long long flags)
{
    return made_as(MG_REAL(cuMemMap)(p, bytes, offset, h, flags), &p, bytes, MG_AREA_DEVICE, true);
}
/* Inside a capture the memory is the graph's, and there only while that runs. */
static cu_result made_async(cu_result rc, const cu_ptr *p, size_t bytes)
{
    return mg_areas_capturing() ? rc : made(rc, p, bytes, MG_AREA_DEVICE);
}
#define ASYNC(name)                                                                                                    \
    MG_HOOK(name, cu_ptr *p, size_t bytes, cu_stream s)                                                                \
    {                                                                                                                  \
        return made_async(MG_REAL(name)(p, bytes, s), p, bytes);                                                       \
    }
ASYNC(cuMemAllocAsync)
ASYNC(cuMemAllocAsync_ptsz)
#define FROM_POOL(name)                                                                                                \
    MG_HOOK(name, cu_ptr *p, size_t bytes, cu_pool pool, cu_stream s)                                                  \
    {                                                                                                                  \
        return made_async(MG_REAL(name)(p, bytes, pool, s), p, bytes);                                                 \
    }
FROM_POOL(cuMemAllocFromPoolAsync)
FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

/* ---- freed: taken out first, since the address may be given out again at once ---------------------------- */

#define FREED(at, bytes, CALL)                                                                                         \
    struct mg_area old;                                                                                                \
    bool known = !mg_inside && mg_areas_on() && remove_area((uint64_t)(uintptr_t)(at), bytes, &old);                   \
    cu_result rc = CALL;                                                                                               \
    if (rc != CUE_SUCCESS && known) insert(old);                                                                       \
    return rc

MG_HOOK(cuMemFree_v2, cu_ptr p)
{
    FREED(p, 0, MG_REAL(cuMemFree_v2)(p));
}
MG_HOOK(cuMemFreeAsync, cu_ptr p, cu_stream s)
{
    FREED(p, 0, MG_REAL(cuMemFreeAsync)(p, s));
}
MG_HOOK(cuMemFreeAsync_ptsz, cu_ptr p, cu_stream s)
{
    FREED(p, 0, MG_REAL(cuMemFreeAsync_ptsz)(p, s));
}
MG_HOOK(cuMemFreeHost, void *p)
{
    FREED(p, 0, MG_REAL(cuMemFreeHost)(p));
}
MG_HOOK(cuMemHostUnregister, void *p)
{
    FREED(p, 0, MG_REAL(cuMemHostUnregister)(p));
}
MG_HOOK(cuMemUnmap, cu_ptr p, size_t bytes)
{
    FREED(p, bytes, MG_REAL(cuMemUnmap)(p, bytes));
}

/* ---- captures, peers ------------------------------------------------------------------------------------------ */

static cu_result captures(cu_result rc, int by)
{
    if (looks(rc)) __atomic_fetch_add(&n_captures, by, __ATOMIC_ACQ_REL);
    if (rc == CUE_SUCCESS && !mg_inside) __atomic_fetch_add(&n_streams, by, __ATOMIC_ACQ_REL);
    return rc;
}
/* Nobody begins while somebody waits for a context. */
static pthread_mutex_t begins = PTHREAD_MUTEX_INITIALIZER;

void mg_streams_hold(void)
{
    pthread_mutex_lock(&begins);
}
void mg_streams_let(void)
{
    pthread_mutex_unlock(&begins);
}
static bool begin(void)
{
    if (!mg_inside) mg_streams_hold();
    return !mg_inside;
}
static cu_result begun(bool held, cu_result rc)
{
    captures(rc, 1);
    if (held) mg_streams_let();
    return rc;
}
MG_HOOK(cuStreamBeginCapture_v2, cu_stream s, int mode)
{
    bool held = begin();
    return begun(held, MG_REAL(cuStreamBeginCapture_v2)(s, mode));
}
MG_HOOK(cuStreamBeginCapture_v2_ptsz, cu_stream s, int mode)
{
    bool held = begin();
    return begun(held, MG_REAL(cuStreamBeginCapture_v2_ptsz)(s, mode));
}
#define TO_GRAPH(name)                                                                                                 \
    MG_HOOK(name, cu_stream s, cu_graph g, const cu_node *deps, const struct cu_edge_data *data, size_t n, int mode)   \
    {                                                                                                                  \
        bool held = begin();                                                                                           \
        return begun(held, MG_REAL(name)(s, g, deps, data, n, mode));                                                  \
    }
TO_GRAPH(cuStreamBeginCaptureToGraph)
TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)
/* A capture that was spoiled ends with an error, and has ended all the same. */
static cu_result capture_ends(cu_result rc)
{
    if (rc != CUE_SUCCESS && rc != CUE_STREAM_CAPTURE_INVALIDATED && rc != CUE_STREAM_CAPTURE_UNJOINED) return rc;
    captures(CUE_SUCCESS, -1);
    return rc;
}
MG_HOOK(cuStreamEndCapture, cu_stream s, cu_graph *g)
{
    return capture_ends(MG_REAL(cuStreamEndCapture)(s, g));
}
MG_HOOK(cuStreamEndCapture_ptsz, cu_stream s, cu_graph *g)
{
    return capture_ends(MG_REAL(cuStreamEndCapture_ptsz)(s, g));
}

MG_HOOK(cuCtxEnablePeerAccess, cu_ctx ctx, unsigned flags)
{
    cu_result rc = MG_REAL(cuCtxEnablePeerAccess)(ctx, flags);
    if (looks(rc)) __atomic_store_n(&peers, true, __ATOMIC_RELEASE);
    return rc;
}
