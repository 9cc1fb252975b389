/* Modules and libraries: a module is one instance of a PTX image in one context, with its own
 * variables; a library is an image that gets an instance in each context that uses it. Kernels of
 * a library (CUkernel) stand for a function of every such instance. */
#include "driver/priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "pass/pass.h"
#include "ptx/ptx.h"

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)

/* ---- JIT options ------------------------------------------------------------------------------- */

void mg_jit_read(struct mg_jit *j, unsigned n, const int *options, void **values)
{
    memset(j, 0, sizeof *j);
    for (unsigned i = 0; i < n; i++) {
        switch (options[i]) {
        case CUJIT_ERROR_LOG_BUFFER:
            j->error_log = values[i];
            break;
        case CUJIT_INFO_LOG_BUFFER:
            j->info_log = values[i];
            break;
        case CUJIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            j->error_bytes = (unsigned)(uintptr_t)values[i], j->error_size = (unsigned *)&values[i];
            break;
        case CUJIT_INFO_LOG_BUFFER_SIZE_BYTES:
            j->info_bytes = (unsigned)(uintptr_t)values[i], j->info_size = (unsigned *)&values[i];
            break;
        case CUJIT_WALL_TIME:
            j->wall = (float *)&values[i];
            break;
        case CUJIT_MAX_REGISTERS:
            j->max_registers = (int)(uintptr_t)values[i];
            break;
        default:
            break;
        }
    }
}

/* The log and its length go back the way the application asked for them. */
void mg_jit_write(const struct mg_jit *j, const struct mg_diag *d)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_diag_print(d, &b);
    size_t n = b.at ? b.n : 0;
    if (j->error_log && j->error_bytes) {
        size_t m = MG_MIN(n, j->error_bytes - 1);
        if (m) memcpy(j->error_log, b.at, m);
        j->error_log[m] = 0;
        if (j->error_size) *j->error_size = (unsigned)m;
    }
    if (j->info_log && j->info_bytes) {
        j->info_log[0] = 0;
        if (j->info_size) *j->info_size = 0;
    }
    if (j->wall) *j->wall = 0;
    mg_buf_release(&b);
}

/* ---- instances ------------------------------------------------------------------------------------- */

/* Of libraries: one instance a context, whoever asks first; none goes while another one is made after it. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void free_func(struct CUfunc_st *f)
{
    mg_obj_del(f, MG_OBJ_FUNC);
    free(f->legacy.params);
    free(f->name);
    free(f);
}

static uint32_t recorded_registers(const struct mg_image_facts *facts, const char *name)
{
    for (uint32_t i = 0; facts && i < facts->n; i++)
        if (!strcmp(facts->at[i].name, name)) return facts->at[i].registers;
    return 0;
}

static struct CUfunc_st *new_func(struct CUmod_st *m, const char *name)
{
    struct mg_dkernel *dk = mg_drv.ops->kernel(m->dmod, name);
    struct CUfunc_st *f = dk ? calloc(1, sizeof *f) : NULL;
    if (!f || !(f->name = strdup(name))) {
        free(f);
        return NULL;
    }
    f->module = m;
    f->dk = dk;
    mg_drv.ops->kernel_info(dk, &f->info);
    f->recorded_registers = recorded_registers(m->facts, name);
    f->attrs[CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    mg_obj_add(f, MG_OBJ_FUNC);
    return f;
}

/* What a pointer into a variable answers about its device. */
static void tag_variables(const struct CUmod_st *m, bool shared)
{
    for (uint32_t i = 1; i < m->ir->vars.n; i++) {
        const struct mg_var *v = &m->ir->vars.at[i];
        uint64_t at, bytes;
        if ((v->space != MG_SPACE_global && v->space != MG_SPACE_const) || (shared && v->managed)) continue;
        if (!mg_drv.ops->global(m->dmod, mg_name(m->ir, v->name), &at, &bytes))
            mg_mem_set_tag(at, (uint32_t)m->ctx->device);
    }
}

cu_result mg_module_open(struct CUctx_st *ctx, struct mg_module *ir, struct mg_image_facts *facts,
                         const struct CUmod_st *same, struct CUmod_st **out, struct mg_diag *d)
{
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (!m) {
        mg_module_free(ir);
        return CUE_OUT_OF_MEMORY;
    }
    enum mg_err e = mg_drv.ops->module_load(mg_drv.device, ir, &m->dmod, d);
    if (e) {
        free(m);
        return e == MG_ERR_NO_MEMORY     ? CUE_OUT_OF_MEMORY
               : e == MG_ERR_UNSUPPORTED ? CUE_NOT_SUPPORTED
                                         : CUE_INVALID_PTX;
    }
    if (same && mg_drv.ops->module_share) mg_drv.ops->module_share(m->dmod, same->dmod);
    m->ctx = ctx;
    m->ir = mg_drv.ops->module_ir(m->dmod);
    m->facts = facts;
    if (facts) __atomic_add_fetch(&facts->refs, 1, __ATOMIC_ACQ_REL);
    for (uint32_t i = 1; i < m->ir->funcs.n; i++) {
        const struct mg_func *f = &m->ir->funcs.at[i];
        if (f->kind != MG_FUNC_entry || !f->defined) continue;
        struct CUfunc_st *fn = new_func(m, mg_name(m->ir, f->name));
        if (fn) *mg_vec_push(&m->funcs) = fn;
    }
    if (ctx->device) tag_variables(m, same != NULL);
    mg_lock();
    *mg_vec_push(&ctx->modules) = m;
    mg_unlock();
    mg_obj_add(m, MG_OBJ_MODULE);
    *out = m;
    return CUE_SUCCESS;
}

void mg_module_close(struct CUmod_st *m)
{
    const struct CUlib_st *library = m->library;
    mg_obj_del(m, MG_OBJ_MODULE);
    if (library) pthread_mutex_lock(&loading);
    mg_lock();
    struct CUctx_st *ctx = m->ctx;
    for (uint32_t i = 0; i < ctx->modules.n; i++)
        if (ctx->modules.at[i] == m) ctx->modules.at[i] = ctx->modules.at[--ctx->modules.n];
    if (m->library)
        for (uint32_t i = 0; i < m->library->modules.n; i++)
            if (m->library->modules.at[i] == m)
                m->library->modules.at[i] = m->library->modules.at[--m->library->modules.n];
    mg_unlock();
    for (uint32_t i = 0; i < m->funcs.n; i++) free_func(m->funcs.at[i]);
    mg_vec_release(&m->funcs);
    mg_module_refs_free(m);
    mg_drv.ops->module_unload(m->dmod);
    if (library) pthread_mutex_unlock(&loading);
    mg_image_facts_unref(m->facts);
    free(m);
}

/* ---- loading --------------------------------------------------------------------------------------- */

static cu_result parse(const char *text, size_t n, const char *file, struct mg_module **ir, struct mg_diag *d)
{
    enum mg_err e = mg_ptx_parse(text, n, file, ir, d);
    if (!e && (*ir)->address_size == 32) {
        mg_module_free(*ir);
        *ir = NULL;
        e = mg_diag_err(d, MG_ERR_UNSUPPORTED, "32-bit addresses are not supported by any device since CUDA 9");
    }
    if (!e && mg_drv.ops->likes_inlined && mg_drv.ops->likes_inlined(mg_drv.device))
        mg_module_inline(*ir, mg_drv.ops->calls_arithmetic(mg_drv.device));
    return !e ? CUE_SUCCESS : e == MG_ERR_NO_MEMORY ? CUE_OUT_OF_MEMORY : CUE_INVALID_PTX;
}

static void say_why(cu_result r, const struct mg_diag *d)
{
    if (!r) return;
    for (uint32_t i = 0; i < d->n_items; i++) {
        const struct mg_diag_item *it = &d->items[i];
        if (it->severity != MG_SEV_ERROR) continue;
        if (it->line)
            mg_say("module not loaded: %s:%u:%u: %s", it->file ? it->file : "PTX", it->line, it->col, it->text);
        else
            mg_say("module not loaded: %s", it->text);
        return;
    }
    mg_say("module not loaded: %s", mg_cu_result_text(r));
}

static cu_result load_module(cu_module *out, const void *image, size_t bytes, const char *file, unsigned n_options,
                             const int *options, void **values)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    CHECK(out && image && (!n_options || (options && values)));
    r = mg_capture_unsafe(ctx);
    if (r) return r;
    struct mg_jit j;
    mg_jit_read(&j, n_options, options, values);
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_image_facts *facts = NULL;
    struct mg_module *ir = NULL;
    char *text = NULL;
    size_t n;
    r = mg_image_text(image, bytes, file, &text, &n, &facts, &d);
    if (!r && facts && j.max_registers) facts->max_registers = j.max_registers;
    if (!r) r = parse(text, n, file, &ir, &d);
    if (!r) r = mg_module_open(ctx, ir, facts, NULL, out, &d);
    mg_jit_write(&j, &d);
    say_why(r, &d);
    mg_diag_release(&d);
    mg_image_facts_unref(facts);
    free(text);
    return r;
}

static cu_result cuModuleLoadData(cu_module *out, const void *image)
{
    return load_module(out, image, 0, NULL, 0, NULL, NULL);
}
static cu_result cuModuleLoadDataEx(cu_module *out, const void *image, unsigned n, int *options, void **values)
{
    return load_module(out, image, 0, NULL, n, options, values);
}
static cu_result cuModuleLoadFatBinary(cu_module *out, const void *image)
{
    return load_module(out, image, 0, NULL, 0, NULL, NULL);
}

static cu_result cuModuleLoad(cu_module *out, const char *path)
{
    cu_result r = mg_enter(NULL);
    if (r) return r;
    CHECK(out && path);
    char *data = NULL;
    size_t bytes;
    if (mg_io_read(path, &data, &bytes, NULL)) return CUE_FILE_NOT_FOUND;
    r = bytes ? load_module(out, data, bytes, path, 0, NULL, NULL) : CUE_INVALID_IMAGE;
    free(data);
    return r;
}

static cu_result cuModuleUnload(cu_module m)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r == CUE_NOT_INITIALIZED) return r;
    if (!mg_obj_is(m, MG_OBJ_MODULE)) return CUE_INVALID_HANDLE;
    if (m->library) return CUE_NOT_PERMITTED;
    mg_ctx_sync(m->ctx);
    mg_module_close(m);
    return r;
}

static cu_result cuModuleGetLoadingMode(int *mode)
{
    CHECK(mode);
    const char *e = getenv("CUDA_MODULE_LOADING");
    *mode = e && !strcmp(e, "EAGER") ? CULOAD_EAGER : CULOAD_LAZY;
    return CUE_SUCCESS;
}

/* ---- looking into a module -------------------------------------------------------------------------- */

struct CUfunc_st *mg_module_func(const struct CUmod_st *m, const char *name)
{
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!strcmp(m->funcs.at[i]->name, name)) return m->funcs.at[i];
    return NULL;
}

static cu_result check_module(cu_module m)
{
    cu_result r = mg_enter(NULL);
    return r ? r : mg_obj_is(m, MG_OBJ_MODULE) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
}

static cu_result cuModuleGetFunction(cu_function *out, cu_module m, const char *name)
{
    cu_result r = check_module(m);
    if (r) return r;
    CHECK(out && name);
    *out = mg_module_func(m, name);
    return *out ? CUE_SUCCESS : CUE_NOT_FOUND;
}

static cu_result cuModuleGetFunctionCount(unsigned *n, cu_module m)
{
    cu_result r = check_module(m);
    if (r) return r;
    CHECK(n);
    *n = m->funcs.n;
    return CUE_SUCCESS;
}

static cu_result cuModuleEnumerateFunctions(cu_function *out, unsigned n, cu_module m)
{
    cu_result r = check_module(m);
    if (r) return r;
    CHECK(out);
    for (unsigned i = 0; i < n && i < m->funcs.n; i++) out[i] = m->funcs.at[i];
    return CUE_SUCCESS;
}

static cu_result module_global(struct CUmod_st *m, const char *name, cu_ptr *ptr, size_t *bytes)
{
    uint64_t p, n;
    if (mg_drv.ops->global(m->dmod, name, &p, &n)) return CUE_NOT_FOUND;
    if (ptr) *ptr = p;
    if (bytes) *bytes = n;
    return CUE_SUCCESS;
}

static cu_result cuModuleGetGlobal_v2(cu_ptr *ptr, size_t *bytes, cu_module m, const char *name)
{
    cu_result r = check_module(m);
    if (r) return r;
    CHECK(name);
    return module_global(m, name, ptr, bytes);
}

/* ---- libraries ---------------------------------------------------------------------------------------- */

static void free_library(struct CUlib_st *lib)
{
    for (uint32_t i = 0; i < lib->kernels.n; i++) {
        mg_obj_del(lib->kernels.at[i], MG_OBJ_KERNEL);
        free(lib->kernels.at[i]->name);
        free(lib->kernels.at[i]);
    }
    mg_vec_release(&lib->kernels);
    mg_vec_release(&lib->modules);
    if (lib->parsed) mg_module_free(lib->parsed);
    mg_image_facts_unref(lib->facts);
    free(lib->text);
    free(lib);
}

static bool list_kernels(struct CUlib_st *lib)
{
    for (uint32_t i = 1; i < lib->parsed->funcs.n; i++) {
        const struct mg_func *f = &lib->parsed->funcs.at[i];
        if (f->kind != MG_FUNC_entry || !f->defined) continue;
        struct CUkern_st *k = calloc(1, sizeof *k);
        if (!k || !(k->name = strdup(mg_name(lib->parsed, f->name)))) {
            free(k);
            return false;
        }
        k->library = lib;
        k->attrs[CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
        *mg_vec_push(&lib->kernels) = k;
        mg_obj_add(k, MG_OBJ_KERNEL);
    }
    return true;
}

static cu_result load_library(cu_library *out, const void *image, size_t bytes, const char *file, const int *options,
                              void **values, unsigned n_options)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    CHECK(out && image && (!n_options || (options && values)));
    struct CUlib_st *lib = calloc(1, sizeof *lib);
    if (!lib) return CUE_OUT_OF_MEMORY;
    struct mg_jit j;
    mg_jit_read(&j, n_options, options, values);
    struct mg_diag d = MG_DIAG_INIT;
    cu_result r = mg_image_text(image, bytes, file, &lib->text, &lib->bytes, &lib->facts, &d);
    if (!r && lib->facts && j.max_registers) lib->facts->max_registers = j.max_registers;
    if (!r) r = parse(lib->text, lib->bytes, file, &lib->parsed, &d);
    if (!r && !list_kernels(lib)) r = CUE_OUT_OF_MEMORY;
    mg_jit_write(&j, &d);
    say_why(r, &d);
    mg_diag_release(&d);
    if (r) {
        free_library(lib);
        return r;
    }
    mg_obj_add(lib, MG_OBJ_LIBRARY);
    *out = lib;
    return CUE_SUCCESS;
}

static cu_result cuLibraryLoadData(cu_library *out, const void *image, int *jit, void **jit_values, unsigned n_jit,
                                   int *options, void **values, unsigned n)
{
    (void)options, (void)values, (void)n; /* the image is copied: preserved or not makes no difference */
    return load_library(out, image, 0, NULL, jit, jit_values, n_jit);
}

static cu_result cuLibraryLoadFromFile(cu_library *out, const char *path, int *jit, void **jit_values, unsigned n_jit,
                                       int *options, void **values, unsigned n)
{
    (void)options, (void)values, (void)n;
    CHECK(out && path);
    char *data = NULL;
    size_t bytes;
    if (mg_io_read(path, &data, &bytes, NULL)) return CUE_FILE_NOT_FOUND;
    cu_result r = bytes ? load_library(out, data, bytes, path, jit, jit_values, n_jit) : CUE_INVALID_IMAGE;
    free(data);
    return r;
}

static cu_result cuLibraryUnload(cu_library lib)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    if (!mg_obj_del(lib, MG_OBJ_LIBRARY)) return CUE_INVALID_HANDLE;
    while (lib->modules.n) {
        mg_ctx_sync(lib->modules.at[0]->ctx);
        mg_module_close(lib->modules.at[0]);
    }
    free_library(lib);
    return CUE_SUCCESS;
}

cu_result mg_library_module(struct CUlib_st *lib, struct CUctx_st *ctx, struct CUmod_st **out)
{
    cu_result r = CUE_SUCCESS;
    struct CUmod_st *found = NULL;
    pthread_mutex_lock(&loading);
    mg_lock();
    for (uint32_t i = 0; i < lib->modules.n && !found; i++)
        if (lib->modules.at[i]->ctx == ctx) found = lib->modules.at[i];
    mg_unlock();
    if (!found) {
        struct mg_diag d = MG_DIAG_INIT;
        struct mg_module *ir = lib->parsed;
        lib->parsed = NULL;
        if (!ir) r = parse(lib->text, lib->bytes, NULL, &ir, &d);
        const struct CUmod_st *same = lib->modules.n ? lib->modules.at[0] : NULL;
        if (!r) r = mg_module_open(ctx, ir, lib->facts, same, &found, &d);
        if (!r) {
            found->library = lib;
            for (uint32_t i = 0; i < found->funcs.n; i++)
                for (uint32_t k = 0; k < lib->kernels.n; k++)
                    if (!strcmp(lib->kernels.at[k]->name, found->funcs.at[i]->name))
                        found->funcs.at[i]->kernel = lib->kernels.at[k];
            mg_lock();
            *mg_vec_push(&lib->modules) = found;
            mg_unlock();
        }
        say_why(r, &d);
        mg_diag_release(&d);
    }
    pthread_mutex_unlock(&loading);
    *out = found;
    return r;
}

cu_result mg_kernel_func(struct CUkern_st *k, struct CUctx_st *ctx, struct CUfunc_st **out)
{
    struct CUmod_st *m;
    cu_result r = mg_library_module(k->library, ctx, &m);
    if (r) return r;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (m->funcs.at[i]->kernel == k) {
            *out = m->funcs.at[i];
            return CUE_SUCCESS;
        }
    return CUE_NOT_FOUND;
}

cu_result mg_func_get(const void *handle, struct CUfunc_st **out, struct CUkern_st **kernel)
{
    struct CUctx_st *ctx;
    cu_result r = mg_enter(&ctx);
    if (r) return r;
    if (kernel) *kernel = NULL;
    if (mg_obj_is(handle, MG_OBJ_FUNC)) {
        *out = (struct CUfunc_st *)(uintptr_t)handle;
        return CUE_SUCCESS;
    }
    if (!mg_obj_is(handle, MG_OBJ_KERNEL)) return CUE_INVALID_HANDLE;
    struct CUkern_st *k = (struct CUkern_st *)(uintptr_t)handle;
    if (kernel) *kernel = k;
    return mg_kernel_func(k, ctx, out);
}

static cu_result check_library(cu_library lib)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    return mg_obj_is(lib, MG_OBJ_LIBRARY) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
}

static cu_result cuLibraryGetKernel(cu_kernel *out, cu_library lib, const char *name)
{
    cu_result r = check_library(lib);
    if (r) return r;
    CHECK(out && name);
    for (uint32_t i = 0; i < lib->kernels.n; i++)
        if (!strcmp(lib->kernels.at[i]->name, name)) {
            *out = lib->kernels.at[i];
            return CUE_SUCCESS;
        }
    return CUE_NOT_FOUND;
}

static cu_result cuLibraryGetKernelCount(unsigned *n, cu_library lib)
{
    cu_result r = check_library(lib);
    if (r) return r;
    CHECK(n);
    *n = lib->kernels.n;
    return CUE_SUCCESS;
}

static cu_result cuLibraryEnumerateKernels(cu_kernel *out, unsigned n, cu_library lib)
{
    cu_result r = check_library(lib);
    if (r) return r;
    CHECK(out);
    for (unsigned i = 0; i < n && i < lib->kernels.n; i++) out[i] = lib->kernels.at[i];
    return CUE_SUCCESS;
}

static cu_result current_instance(cu_library lib, struct CUmod_st **m)
{
    struct CUctx_st *ctx;
    cu_result r = check_library(lib);
    if (!r) r = mg_enter(&ctx);
    return r ? r : mg_library_module(lib, ctx, m);
}

static cu_result cuLibraryGetModule(cu_module *out, cu_library lib)
{
    CHECK(out);
    return current_instance(lib, out);
}

static cu_result cuLibraryGetGlobal(cu_ptr *ptr, size_t *bytes, cu_library lib, const char *name)
{
    struct CUmod_st *m;
    CHECK(name);
    cu_result r = current_instance(lib, &m);
    return r ? r : module_global(m, name, ptr, bytes);
}

static cu_result cuLibraryGetManaged(cu_ptr *ptr, size_t *bytes, cu_library lib, const char *name)
{
    struct CUmod_st *m;
    CHECK(name);
    cu_result r = current_instance(lib, &m);
    if (r) return r;
    mg_id v = mg_module_find_var(m->ir, name);
    if (!v || !m->ir->vars.at[v].managed) return CUE_NOT_FOUND;
    return module_global(m, name, ptr, bytes);
}

static cu_result cuLibraryGetUnifiedFunction(void **fn, cu_library lib, const char *name)
{
    (void)name;
    cu_result r = check_library(lib);
    if (r) return r;
    CHECK(fn);
    return CUE_NOT_FOUND; /* host functions callable from both sides: no image has any here */
}

static cu_result check_kernel(cu_kernel k)
{
    if (!mg_drv.initialised) return CUE_NOT_INITIALIZED;
    return mg_obj_is(k, MG_OBJ_KERNEL) ? CUE_SUCCESS : CUE_INVALID_HANDLE;
}

static cu_result cuKernelGetFunction(cu_function *out, cu_kernel k)
{
    struct CUctx_st *ctx;
    cu_result r = check_kernel(k);
    if (!r) r = mg_enter(&ctx);
    if (r) return r;
    CHECK(out);
    return mg_kernel_func(k, ctx, out);
}

static cu_result cuKernelGetLibrary(cu_library *out, cu_kernel k)
{
    cu_result r = check_kernel(k);
    if (r) return r;
    CHECK(out);
    *out = k->library;
    return CUE_SUCCESS;
}

static cu_result cuKernelGetName(const char **out, cu_kernel k)
{
    cu_result r = check_kernel(k);
    if (r) return r;
    CHECK(out);
    *out = k->name;
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_module[] = {
    MG_ENTRY(cuModuleLoad),
    MG_ENTRY(cuModuleLoadData),
    MG_ENTRY(cuModuleLoadDataEx),
    MG_ENTRY(cuModuleLoadFatBinary),
    MG_ENTRY(cuModuleUnload),
    MG_ENTRY(cuModuleGetLoadingMode),
    MG_ENTRY(cuModuleGetFunction),
    MG_ENTRY(cuModuleGetFunctionCount),
    MG_ENTRY(cuModuleEnumerateFunctions),
    MG_ENTRY(cuModuleGetGlobal_v2),
    MG_ENTRY(cuLibraryLoadData),
    MG_ENTRY(cuLibraryLoadFromFile),
    MG_ENTRY(cuLibraryUnload),
    MG_ENTRY(cuLibraryGetKernel),
    MG_ENTRY(cuLibraryGetKernelCount),
    MG_ENTRY(cuLibraryEnumerateKernels),
    MG_ENTRY(cuLibraryGetModule),
    MG_ENTRY(cuLibraryGetGlobal),
    MG_ENTRY(cuLibraryGetManaged),
    MG_ENTRY(cuLibraryGetUnifiedFunction),
    MG_ENTRY(cuKernelGetFunction),
    MG_ENTRY(cuKernelGetLibrary),
    MG_ENTRY(cuKernelGetName),
    {0},
};
