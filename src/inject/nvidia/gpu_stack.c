/* The stack of threads on a real GPU. How deep a kernel's calls go is not known where they recurse or go
 * through pointers: each thread gets what the context's limit says then, and a twin's frames, which keep
 * counters across calls, are larger than the native ones. So the limit behind the application's back is
 * a multiple of what it set, from the first such twin on; what it reads back is what it set. */
#include "inject/nvidia/gpu.h"

#include "base/map.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/session.h"

#define TIMES 4u
#define LEAST 1024u /* the driver's own default */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mg_map widened; /* context -> what the application believes the limit to be */

MG_HOOK(cuCtxSetLimit, int what, size_t value);
MG_HOOK(cuCtxGetLimit, size_t *value, int what);

static uint64_t current_ctx(void)
{
    cu_ctx ctx = NULL;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx);
    return (uint64_t)(uintptr_t)ctx;
}

static bool believed(uint64_t ctx, uint64_t *value)
{
    pthread_mutex_lock(&lock);
    bool ok = mg_map_get(&widened, ctx, value);
    pthread_mutex_unlock(&lock);
    return ok;
}
static void believe(uint64_t ctx, uint64_t value)
{
    pthread_mutex_lock(&lock);
    mg_map_set(&widened, ctx, value);
    pthread_mutex_unlock(&lock);
}

void mg_gpu_widen_stack(const struct mg_inst *i)
{
    struct mg_callgraph *g = mg_callgraph_new(i->code->m, i->code->kernel);
    bool deep = g->has_recursion || g->has_indirect;
    uint64_t ctx = current_ctx(), was;
    size_t bytes = 0;
    mg_callgraph_free(g);
    if (!deep || believed(ctx, &was) || MG_REAL(cuCtxGetLimit)(&bytes, CULIMIT_STACK_SIZE) != CUE_SUCCESS) return;
    if (MG_REAL(cuCtxSetLimit)(CULIMIT_STACK_SIZE, TIMES * MG_MAX(bytes, (size_t)LEAST)) == CUE_SUCCESS)
        believe(ctx, bytes);
}

void mg_gpu_forget_stack(void *ctx)
{
    pthread_mutex_lock(&lock);
    mg_map_del(&widened, (uint64_t)(uintptr_t)ctx);
    pthread_mutex_unlock(&lock);
}

cu_result mg_hook_cuCtxSetLimit(int what, size_t value)
{
    uint64_t was, ctx = what == CULIMIT_STACK_SIZE && mg_session.active && !mg_inside ? current_ctx() : 0;
    if (!ctx || !believed(ctx, &was)) return MG_REAL(cuCtxSetLimit)(what, value);
    cu_result rc = MG_REAL(cuCtxSetLimit)(what, TIMES * MG_MAX(value, (size_t)LEAST));
    if (rc != CUE_SUCCESS) /* so much is not there, but what was asked for may be */
        rc = MG_REAL(cuCtxSetLimit)(what, value);
    if (rc == CUE_SUCCESS) believe(ctx, value);
    return rc;
}

cu_result mg_hook_cuCtxGetLimit(size_t *value, int what)
{
    uint64_t was;
    cu_result rc = MG_REAL(cuCtxGetLimit)(value, what);
    if (rc == CUE_SUCCESS && what == CULIMIT_STACK_SIZE && mg_session.active && !mg_inside &&
        believed(current_ctx(), &was))
        *value = (size_t)was;
    return rc;
}
