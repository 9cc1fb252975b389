/* Memory that kernels and the host share words in. */
#include "inject/nvidia/nv_priv.h"

#include <string.h>

void mg_nv_enter(struct mg_nv_ctx *x)
{
    if (!x->error) mg_nv.cuCtxSetCurrent(x->ctx);
}

uint64_t mg_nv_memory(struct mg_nv_ctx *x, size_t bytes)
{
    int mode = mg_nv_relax();
    uint64_t at = mg_nv_take(x, MG_NV_DEVICE, bytes);
    mg_nv_unrelax(mode);
    return at;
}

void *mg_nv_host_memory(struct mg_nv_ctx *x, size_t bytes)
{
    int mode = mg_nv_relax();
    uint64_t at = mg_nv_take(x, MG_NV_HOST, bytes);
    mg_nv_unrelax(mode);
    return (void *)(uintptr_t)at;
}

bool mg_nv_write(struct mg_nv_ctx *x, uint64_t to, const void *data, size_t bytes)
{
    int mode = mg_nv_relax();
    pthread_mutex_lock(&x->copying);
    bool ok = !x->error && mg_nv_staging(x, bytes);
    if (ok) {
        memcpy(x->staging, data, bytes);
        ok = mg_nv.cuMemcpyHtoDAsync_v2(to, x->staging, bytes, x->copy) == CUE_SUCCESS && mg_nv_copies_wait(x);
    }
    pthread_mutex_unlock(&x->copying);
    mg_nv_unrelax(mode);
    return ok;
}

uint32_t mg_nv_warps(const struct mg_nv_ctx *x, uint32_t *multiprocessors)
{
    int sms = 0, threads = 0;
    mg_nv.cuDeviceGetAttribute(&sms, 16 /* MULTIPROCESSOR_COUNT */, x->device);
    mg_nv.cuDeviceGetAttribute(&threads, 39 /* MAX_THREADS_PER_MULTIPROCESSOR */, x->device);
    *multiprocessors = (uint32_t)sms;
    return (uint32_t)(sms * (threads / 32));
}
