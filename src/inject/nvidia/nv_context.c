/* The driver's entries, contexts, and copies of our own: a context is met at its first launch and gets
 * a non-blocking stream, which waits for nothing that the application does. */
#include "inject/nvidia/nv_priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"

struct mg_nv_state mg_nv = {.lock = PTHREAD_MUTEX_INITIALIZER, .draining = PTHREAD_MUTEX_INITIALIZER};

const char *mg_nv_open(const struct mg_nv_config *c)
{
    const char *missing = NULL;
    mg_nv.config = *c;
#define CALL(name, ...)                                                                                                \
    if (!(*(void **)&mg_nv.name = c->symbol(#name))) missing = #name;
    MG_NV_CALLS(CALL)
#undef CALL
#define CALL(name, ...) *(void **)&mg_nv.name = c->symbol(#name);
    MG_NV_MORE_CALLS(CALL)
#undef CALL
    return missing;
}

int mg_nv_relax(void)
{
    return mg_cu_relax_captures(mg_nv.cuThreadExchangeStreamCaptureMode);
}

void mg_nv_unrelax(int before)
{
    mg_cu_restore_captures(mg_nv.cuThreadExchangeStreamCaptureMode, before);
}

/* ---- copies ---------------------------------------------------------------------------------------- */

bool mg_nv_copies_wait(struct mg_nv_ctx *x)
{
    cu_result rc = mg_nv.cuEventRecord(x->copied, x->copy);
    for (uint32_t k = 0; rc == CUE_SUCCESS; k++) {
        rc = mg_nv.cuEventQuery(x->copied);
        if (rc != CUE_NOT_READY) break;
        rc = CUE_SUCCESS;
        if (k > 8) nanosleep(&(struct timespec){.tv_nsec = k > 100 ? 200000 : 10000}, NULL);
    }
    return rc == CUE_SUCCESS;
}

/* Pinned memory is never given back (that would wait for all work): each time twice as much. */
bool mg_nv_staging(struct mg_nv_ctx *x, size_t bytes)
{
    if (bytes <= x->staging_bytes) return true;
    size_t want = MG_MAX(bytes, MG_MAX(2 * x->staging_bytes, (size_t)1 << 20));
    uint64_t more = mg_nv_take(x, MG_NV_HOST, want);
    if (!more) return false;
    x->staging = (void *)(uintptr_t)more;
    x->staging_bytes = want;
    return true;
}

/* A piece that was given back and is not much too large; 0: none. */
static uint64_t take_piece(struct mg_nv_ctx *x, size_t bytes)
{
    uint64_t at = 0;
    pthread_mutex_lock(&x->copying);
    for (uint32_t i = 0; i < x->pieces.n && !at; i++) {
        struct mg_nv_piece p = x->pieces.at[i];
        if (p.bytes < bytes || p.bytes > 4 * bytes) continue;
        x->pieces.at[i] = x->pieces.at[--x->pieces.n];
        at = p.at;
    }
    pthread_mutex_unlock(&x->copying);
    return at;
}

void mg_nv_give_back(struct mg_nv_ctx *x, uint64_t at, size_t bytes)
{
    pthread_mutex_lock(&x->copying);
    *mg_vec_push(&x->pieces) = (struct mg_nv_piece){at, bytes};
    pthread_mutex_unlock(&x->copying);
}

uint64_t mg_nv_upload(struct mg_nv_ctx *x, const void *data, size_t bytes)
{
    int mode = mg_nv_relax();
    uint64_t at = take_piece(x, bytes);
    if (!at) at = mg_nv_take(x, MG_NV_DEVICE, bytes);
    pthread_mutex_lock(&x->copying);
    bool ok = at && mg_nv_staging(x, bytes);
    if (ok) {
        memcpy(x->staging, data, bytes);
        ok = mg_nv.cuMemcpyHtoDAsync_v2(at, x->staging, bytes, x->copy) == CUE_SUCCESS && mg_nv_copies_wait(x);
    }
    pthread_mutex_unlock(&x->copying);
    mg_nv_unrelax(mode);
    return ok ? at : 0;
}

bool mg_nv_read(struct mg_nv_ctx *x, void *to, uint64_t from, size_t bytes)
{
    int mode = mg_nv_relax();
    pthread_mutex_lock(&x->copying);
    bool ok = mg_nv_staging(x, bytes) && mg_nv.cuMemcpyDtoHAsync_v2(x->staging, from, bytes, x->copy) == CUE_SUCCESS &&
              mg_nv_copies_wait(x);
    if (ok) memcpy(to, x->staging, bytes);
    pthread_mutex_unlock(&x->copying);
    mg_nv_unrelax(mode);
    return ok;
}

bool mg_nv_begin_read(struct mg_nv_ctx *x, void *to, uint64_t from, size_t bytes)
{
    int mode = mg_nv_relax();
    bool ok = mg_nv.cuMemcpyDtoHAsync_v2(to, from, bytes, x->copy) == CUE_SUCCESS;
    mg_nv_unrelax(mode);
    return ok;
}

bool mg_nv_end_reads(struct mg_nv_ctx *x)
{
    int mode = mg_nv_relax();
    pthread_mutex_lock(&x->copying);
    bool ok = mg_nv_copies_wait(x);
    pthread_mutex_unlock(&x->copying);
    mg_nv_unrelax(mode);
    return ok;
}

/* ---- contexts --------------------------------------------------------------------------------------- */

static bool prepare(struct mg_nv_ctx *x)
{
    int mode = mg_nv_relax();
    bool ok = mg_nv.cuStreamCreate(&x->copy, CUSTREAM_NON_BLOCKING) == CUE_SUCCESS &&
              mg_nv.cuEventCreate(&x->copied, CUEVENT_DISABLE_TIMING) == CUE_SUCCESS && mg_nv_bases_init(&x->bases);
    cu_ctx primary = NULL;
    ok = ok && mg_nv.cuCtxGetDevice(&x->device) == CUE_SUCCESS;
    if (ok && mg_nv_ctx_is_active(x->device) && mg_nv.cuDevicePrimaryCtxRetain(&primary, x->device) == CUE_SUCCESS)
        mg_nv.cuDevicePrimaryCtxRelease_v2(x->device); /* only its handle was asked for */
    x->primary = primary == x->ctx;
    mg_nv_unrelax(mode);
    return ok;
}

static struct mg_nv_ctx *find(cu_ctx ctx) /* under the lock */
{
    struct mg_nv_ctx *x = mg_nv.contexts;
    while (x && (x->ctx != ctx || x->error == CUE_CONTEXT_IS_DESTROYED)) x = x->next;
    return x;
}

struct mg_nv_ctx *mg_nv_ctx_current(void)
{
    cu_ctx ctx = NULL;
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    if (mg_nv.cuCtxGetCurrent(&ctx) != CUE_SUCCESS || !ctx) return NULL;
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_ctx *x = find(ctx);
    pthread_mutex_unlock(&mg_nv.lock);
    if (x) return x->error ? NULL : x;
    pthread_mutex_lock(&making);
    pthread_mutex_lock(&mg_nv.lock);
    x = find(ctx);
    pthread_mutex_unlock(&mg_nv.lock);
    if (!x && (x = calloc(1, sizeof *x))) {
        x->ctx = ctx;
        pthread_mutex_init(&x->copying, NULL);
        pthread_mutex_init(&x->growing, NULL);
        if (!prepare(x)) x->error = CUE_UNKNOWN; /* tried once */
        pthread_mutex_lock(&mg_nv.lock);
        x->next = mg_nv.contexts;
        mg_nv.contexts = x;
        pthread_mutex_unlock(&mg_nv.lock);
    }
    pthread_mutex_unlock(&making);
    return x && !x->error ? x : NULL;
}

bool mg_nv_ctx_is(const struct mg_nv_ctx *x, cu_ctx ctx)
{
    return x->ctx == ctx;
}

bool mg_nv_ctx_is_broken(const struct mg_nv_ctx *x)
{
    return x->error != CUE_SUCCESS;
}

bool mg_nv_ctx_is_active(cu_device device)
{
    unsigned flags;
    int active = 0;
    return mg_nv.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUE_SUCCESS && active;
}

cu_ctx mg_nv_ctx_primary(cu_device device)
{
    cu_ctx found = NULL;
    pthread_mutex_lock(&mg_nv.lock);
    for (struct mg_nv_ctx *x = mg_nv.contexts; x && !found; x = x->next)
        if (x->primary && x->device == device && x->error != CUE_CONTEXT_IS_DESTROYED) found = x->ctx;
    pthread_mutex_unlock(&mg_nv.lock);
    return found;
}

void mg_nv_look_at_all(struct mg_nv_ctx *x)
{
    cu_ctx was;
    pthread_mutex_lock(&x->copying);
    if (!x->error && mg_nv.cuCtxPushCurrent_v2(x->ctx) == CUE_SUCCESS) {
        mg_nv_look_around(x, true);
        mg_nv.cuCtxPopCurrent_v2(&was);
    }
    pthread_mutex_unlock(&x->copying);
}

void mg_nv_ctx_ends(cu_ctx ctx, uint64_t timeout_ns)
{
    uint64_t end = mg_now_ns() + timeout_ns;
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_ctx *x = find(ctx);
    pthread_mutex_unlock(&mg_nv.lock);
    while (x && !mg_nv_drain_pass(x) && mg_now_ns() < end) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    if (x) mg_nv_look_at_all(x);
}

bool mg_nv_ctx_is_quiet(const struct mg_nv_ctx *x)
{
    return !__atomic_load_n(&x->pending, __ATOMIC_ACQUIRE);
}

void mg_nv_ctx_gone(cu_ctx ctx)
{
    pthread_mutex_lock(&mg_nv.draining);
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_ctx *x = find(ctx);
    if (x) x->error = CUE_CONTEXT_IS_DESTROYED;
    pthread_mutex_unlock(&mg_nv.lock);
    pthread_mutex_unlock(&mg_nv.draining);
    if (x) {
        mg_nv_drain_pass(x); /* the rest is told that it is lost */
        mg_nv_apart_gone(x);
    }
}
