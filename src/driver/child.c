/* Launches that kernels make: from the device's kernel to the function handle that the rest of Margay
 * knows, and back. */
#include "driver/priv.h"

static struct CUfunc_st *function_of(const struct mg_dkernel *k, struct CUctx_st **ctx)
{
    struct CUfunc_st *found = NULL;
    mg_lock();
    for (uint32_t c = 0; c < mg_drv.contexts.n && !found; c++)
        for (uint32_t m = 0; m < mg_drv.contexts.at[c]->modules.n && !found; m++) {
            struct CUmod_st *mod = mg_drv.contexts.at[c]->modules.at[m];
            for (uint32_t f = 0; f < mod->funcs.n && !found; f++)
                if (mod->funcs.at[f]->dk == k) {
                    found = mod->funcs.at[f];
                    *ctx = mg_drv.contexts.at[c];
                }
        }
    mg_unlock();
    return found;
}

static void *begin(struct mg_launch *l)
{
    struct CUctx_st *ctx = NULL;
    struct CUfunc_st *f = function_of(l->kernel, &ctx);
    if (!f) return NULL;
    struct CUctx_st *was = mg_ctx_swap(ctx);
    void *token = mg_drv.config.children->begin(f, f->module->library ? (void *)f->module->library : (void *)f->module,
                                                f->name, l);
    mg_ctx_swap(was);
    return token;
}

static void end(void *token, const struct mg_launch_stats *stats, const struct mg_fault *fault)
{
    struct mg_launch_done done = {.start_ns = stats->start_ns,
                                  .end_ns = stats->end_ns,
                                  .fault = *fault,
                                  .cuda_error = mg_fault_result(fault->kind),
                                  .schedule_dependent = stats->schedule_dependent,
                                  .strays = stats->strays,
                                  .n_strays = stats->n_strays};
    mg_drv.config.children->end(token, &done);
}

const struct mg_child_hooks mg_child_hooks = {begin, end};
