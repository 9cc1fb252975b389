/* Dense numbers for streams and contexts, so that a profile names them alike in every run: 0 is the
 * default one, others count up in the order in which launches first used them. */
#include "inject/streams.h"

#include "base/hash.h"
#include "base/map.h"
#include "inject/channels.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/session.h"
#include "inject/verify.h"

static struct mg_map streams, contexts; /* under the session's lock */
static uint64_t n_streams, n_contexts;

static uint64_t number_of(struct mg_map *map, uint64_t *next, void *handle, uint64_t first)
{
    uint64_t n, key = (uint64_t)(uintptr_t)handle;
    pthread_mutex_lock(&mg_session.lock);
    if (!mg_map_get(map, key, &n)) {
        n = first + (*next)++;
        mg_map_set(map, key, n);
    }
    pthread_mutex_unlock(&mg_session.lock);
    return n;
}

/* A stream's key. Per-thread default streams share a handle: theirs is odd, which no handle is. */
static void *key_of(cu_stream s)
{
    static uint64_t n_threads;
    static __thread uint64_t thread;
    if (s != CU_PER_THREAD_STREAM) return s;
    void *ctx = NULL;
    MG_REAL_AS(cuCtxGetCurrent, void **)(&ctx);
    if (!thread) thread = __atomic_add_fetch(&n_threads, 1, __ATOMIC_RELAXED);
    return (void *)(uintptr_t)(mg_mix64((uint64_t)(uintptr_t)ctx ^ thread << 48) | 1);
}

uint64_t mg_stream_number(cu_stream s)
{
    return !s || s == CU_LEGACY_STREAM ? 0 : number_of(&streams, &n_streams, key_of(s), 1);
}

static uint32_t find(const struct mg_map *map, void *key)
{
    uint64_t n;
    pthread_mutex_lock(&mg_session.lock);
    bool found = mg_map_get(map, (uint64_t)(uintptr_t)key, &n) && n < UINT32_MAX;
    pthread_mutex_unlock(&mg_session.lock);
    return found ? (uint32_t)n : UINT32_MAX;
}

uint32_t mg_stream_find(cu_stream s)
{
    return !s || s == CU_LEGACY_STREAM ? 0 : find(&streams, key_of(s));
}

uint32_t mg_ctx_find(void *ctx)
{
    return ctx ? find(&contexts, ctx) : UINT32_MAX;
}

uint64_t mg_ctx_number(void *ctx)
{
    return number_of(&contexts, &n_contexts, ctx, 0);
}

static uint64_t n_graphs; /* graphs made by hand and captured ones share the numbers */

uint64_t mg_graph_number(void *graph)
{
    static struct mg_map graphs;
    return graph ? number_of(&graphs, &n_graphs, graph, 1) : 0;
}

uint64_t mg_capture_number(cu_stream s)
{
    static struct mg_map captures;
    int status;
    uint64_t id = 0;
    if (MG_REAL_AS(cuStreamGetCaptureInfo, cu_stream, int *, uint64_t *)(s, &status, &id) != CUE_SUCCESS) return 1;
    return number_of(&captures, &n_graphs, (void *)(uintptr_t)id, 1);
}

static void forget(struct mg_map *map, void *handle)
{
    pthread_mutex_lock(&mg_session.lock);
    mg_map_del(map, (uint64_t)(uintptr_t)handle);
    pthread_mutex_unlock(&mg_session.lock);
}

MG_HOOK(cuStreamDestroy_v2, cu_stream s)
{
    forget(&streams, s);
    return MG_REAL(cuStreamDestroy_v2)(s);
}
MG_HOOK(cuStreamDestroy, cu_stream s)
{
    forget(&streams, s);
    return MG_REAL(cuStreamDestroy)(s);
}
/* Twins loaded in a context die with it, and so do the witness's counts. */
static void context_ends(void *ctx, int device)
{
    if (mg_session.active && mg_session.config.witness) mg_witness_end();
    if (mg_session.active)
        mg_session.backend->context_ends(ctx, device);
    else
        mg_session.generation++;
    if (mg_session.active) mg_channels_context_ends(ctx, device);
}
static cu_result context_ended(cu_result rc, void *ctx, int device, bool surely)
{
    if (rc == CUE_SUCCESS && mg_session.active) mg_session.backend->context_ended(ctx, device, surely);
    if (rc == CUE_SUCCESS && mg_areas_on()) mg_areas_forget_context(ctx, device);
    return rc;
}

MG_HOOK(cuCtxDestroy_v2, cu_ctx c)
{
    forget(&contexts, c);
    context_ends(c, -1);
    return context_ended(MG_REAL(cuCtxDestroy_v2)(c), c, -1, true);
}
MG_HOOK(cuCtxDestroy, cu_ctx c)
{
    forget(&contexts, c);
    context_ends(c, -1);
    return context_ended(MG_REAL(cuCtxDestroy)(c), c, -1, true);
}
/* How often the primary contexts are held: the last release ends one, and on a GPU alone that waits. */
static int holders[64];

MG_HOOK(cuDevicePrimaryCtxRetain, cu_ctx *c, cu_device d)
{
    cu_result rc = MG_REAL(cuDevicePrimaryCtxRetain)(c, d);
    if (rc == CUE_SUCCESS && d >= 0 && d < (int)MG_COUNT_OF(holders))
        __atomic_add_fetch(&holders[d], 1, __ATOMIC_RELAXED);
    return rc;
}
static bool is_last(cu_device d)
{
    return d < 0 || d >= (int)MG_COUNT_OF(holders) || __atomic_sub_fetch(&holders[d], 1, __ATOMIC_RELAXED) <= 0;
}

#define PRIMARY(name, surely)                                                                                          \
    MG_HOOK(name, cu_device d)                                                                                         \
    {                                                                                                                  \
        bool ends = (surely) || is_last(d);                                                                            \
        if (ends || !mg_session.active || mg_session_can(MG_BACKEND_ENDS_AT_RELEASE)) context_ends(NULL, d);           \
        return context_ended(MG_REAL(name)(d), NULL, d, surely);                                                       \
    }
PRIMARY(cuDevicePrimaryCtxReset, true)
PRIMARY(cuDevicePrimaryCtxReset_v2, true)
PRIMARY(cuDevicePrimaryCtxRelease, false)
PRIMARY(cuDevicePrimaryCtxRelease_v2, false)
