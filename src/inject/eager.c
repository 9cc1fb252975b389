/* --eager: the twins of all selected kernels when their module is loaded, instead of each at its first
 * launch. Texts are made one after the other, which is quick; the driver compiles them on as many threads
 * as there are processors, which is what takes long; loading, which waits for all work, comes last. */
#include "inject/images.h"

#include "base/thread.h"
#include "base/vec.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/tools.h"
#include "inject/twin.h"

#define THREADS_MAX 16u

struct crew { /* one module's kernels; lives on the stack of who loads it */
    struct mg_body **at;
    uint32_t n, next;
    cu_ctx ctx;
};

static void compile_some(struct crew *c)
{
    uint32_t k;
    while ((k = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED)) < c->n) mg_kernel_prepare(c->at[k]);
}

static void *help(void *arg)
{
    struct crew *c = arg;
    mg_inside++;
    mg_capture_relax();
    if (MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(c->ctx) == CUE_SUCCESS) compile_some(c);
    return NULL;
}

static void compile_all(struct crew *c)
{
    pthread_t helpers[THREADS_MAX];
    uint32_t n = 0, want = MG_MIN(MG_MIN(mg_thread_cpus(), THREADS_MAX), c->n);
    while (n + 1 < want && mg_thread_start(help, c, 0, &helpers[n])) n++;
    compile_some(c);
    for (uint32_t k = 0; k < n; k++) pthread_join(helpers[k], NULL);
}

void mg_eager_load(void *handle, struct mg_img *im, bool library)
{
    struct crew c = {0};
    MG_VEC(struct mg_body *) all = {0};
    uint32_t set = mg_tools_active(NULL);
    if (!set || MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&c.ctx) != CUE_SUCCESS || !c.ctx)
        return; /* a library, before there is a context: at the first launch then */
    for (uint32_t k = 0; k < im->n_ptx; k++) {
        const struct mg_module *m = mg_img_parsed(im, k)->m;
        for (mg_id f = 1; m && f < m->funcs.n; f++) {
            void *h = NULL;
            const char *name = mg_name(m, m->funcs.at[f].name);
            if (m->funcs.at[f].kind != MG_FUNC_entry || !m->funcs.at[f].defined ||
                !mg_kernel_matches(mg_session.config.kernel_glob, name))
                continue;
            int entry = library ? MG_FN_cuLibraryGetKernel : MG_FN_cuModuleGetFunction;
            if (((cu_result(*)(void **, void *, const char *))mg_slots[entry])(&h, handle, name) != CUE_SUCCESS)
                continue;
            mg_kernel_note(h, im, name, library);
            struct mg_inst *i = mg_kernel_get(h);
            struct mg_body *b = i ? mg_kernel_body(i, set) : NULL;
            if (b) *mg_vec_push(&all) = b;
        }
    }
    c.at = all.at;
    c.n = all.n;
    if (mg_session_can(MG_BACKEND_COMPILES_APART)) compile_all(&c);
    for (uint32_t k = 0; k < all.n; k++) mg_kernel_twin(all.at[k], &(struct mg_shape){.block = {1, 1, 1}});
    mg_vec_release(&all);
}
