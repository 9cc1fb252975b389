/* Stream capture. */
#include "driver/priv.h"

cu_result mg_ctx_check_capture(struct CUctx_st *ctx)
{
    return ctx->n_captures ? CUE_STREAM_CAPTURE_UNSUPPORTED : CUE_SUCCESS;
}
cu_result mg_capture_unsafe(struct CUctx_st *ctx) { (void)ctx; return CUE_SUCCESS; }
cu_result mg_capture_add(struct CUstream_st *s, struct mg_work *op) { (void)s; mg_work_release(op); return CUE_NOT_SUPPORTED; }
cu_result mg_capture_break(struct CUstream_st *s, cu_result why) { (void)s; return why; }
cu_result mg_capture_implicit(struct CUctx_st *ctx) { (void)ctx; return CUE_STREAM_CAPTURE_IMPLICIT; }
void mg_capture_drop(struct CUstream_st *s) { (void)s; }
cu_result mg_capture_record(struct CUstream_st *s, struct CUevent_st *e, bool external) { (void)s, (void)e, (void)external; return CUE_NOT_SUPPORTED; }
cu_result mg_capture_wait(struct CUstream_st *s, struct CUevent_st *e, bool external) { (void)s, (void)e, (void)external; return CUE_NOT_SUPPORTED; }
void mg_pool_note(struct CUmemPoolHandle_st *pool, int64_t bytes) { (void)pool, (void)bytes; }
void mg_module_refs_free(struct CUmod_st *m) { (void)m; }
