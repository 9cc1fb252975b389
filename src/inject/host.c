/* What a tool may ask of the process (tool/host.h): live allocations, modules, their variables and
 * kernels. Nothing is kept for that: lists that other files have anyhow are walked. */
#include "tool/host.h"

#include <stdlib.h>

#include "base/vec.h"
#include "device/mem.h"
#include "inject/backend.h"
#include "inject/hooks.h"
#include "inject/images.h"
#include "inject/session.h"
#include "inject/timeline.h"
#include "inject/tools.h"
#include "inject/tracefile.h"
#include "inject/verify.h"
#include "ptx/ptx.h"

struct walk {
    void (*fn)(const struct mg_host_allocation *a, void *user);
    void *user;
};

static void give_own(void *user, const struct mg_alloc *a)
{
    static const enum mg_host_kind kinds[] = {
        [MG_ALLOC_DEVICE] = MG_HOST_DEVICE,     [MG_ALLOC_HOST] = MG_HOST_PINNED,
        [MG_ALLOC_REGISTERED] = MG_HOST_PINNED, [MG_ALLOC_MANAGED] = MG_HOST_MANAGED,
        [MG_ALLOC_GLOBAL] = MG_HOST_VARIABLE,   [MG_ALLOC_CONST] = MG_HOST_VARIABLE,
        [MG_ALLOC_HEAP] = MG_HOST_DEVICE,       [MG_ALLOC_VMM] = MG_HOST_DEVICE,
    };
    struct walk *w = user;
    if (a->kind != MG_ALLOC_RUNTIME)
        w->fn(&(struct mg_host_allocation){a->base, a->bytes, a->id, kinds[a->kind]}, w->user);
}

/* ---- variables of modules, on a GPU: those that somebody asked the driver for ---------------------------- */

static pthread_mutex_t variables_lock = PTHREAD_MUTEX_INITIALIZER;
static MG_VEC(struct mg_host_allocation) variables;

void mg_host_variable(uint64_t at, uint64_t bytes)
{
    uint32_t k = 0;
    if (!at || !bytes || mg_session_can(MG_BACKEND_ALLOCATIONS)) return;
    pthread_mutex_lock(&variables_lock);
    while (k < variables.n && variables.at[k].address != at) k++;
    if (k == variables.n) (void)mg_vec_push(&variables);
    variables.at[k] = (struct mg_host_allocation){at, bytes, UINT64_MAX, MG_HOST_VARIABLE};
    pthread_mutex_unlock(&variables_lock);
}

static cu_result found(cu_result rc, const cu_ptr *at, const size_t *bytes)
{
    if (rc == CUE_SUCCESS && !mg_inside && at && bytes) mg_host_variable(*at, *bytes);
    return rc;
}

MG_HOOK(cuModuleGetGlobal_v2, cu_ptr *at, size_t *bytes, cu_module m, const char *name)
{
    size_t own;
    bytes = bytes ? bytes : &own;
    return found(MG_REAL(cuModuleGetGlobal_v2)(at, bytes, m, name), at, bytes);
}

MG_HOOK(cuLibraryGetGlobal, cu_ptr *at, size_t *bytes, cu_library lib, const char *name)
{
    size_t own;
    bytes = bytes ? bytes : &own;
    return found(MG_REAL(cuLibraryGetGlobal)(at, bytes, lib, name), at, bytes);
}

static void allocations(void (*fn)(const struct mg_host_allocation *a, void *user), void *user)
{
    if (mg_session_can(MG_BACKEND_ALLOCATIONS)) {
        mg_mem_each(give_own, &(struct walk){fn, user});
        return;
    }
    static const enum mg_host_kind kinds[] = {
        [MG_AREA_DEVICE] = MG_HOST_DEVICE, [MG_AREA_HOST] = MG_HOST_PINNED, [MG_AREA_MANAGED] = MG_HOST_MANAGED};
    uint32_t n = 0;
    struct mg_area *all = mg_areas_copy(&n);
    for (uint32_t i = 0; all && i < n; i++)
        fn(&(struct mg_host_allocation){all[i].at, all[i].bytes, all[i].id, kinds[all[i].kind]}, user);
    free(all);
    pthread_mutex_lock(&variables_lock);
    for (uint32_t i = 0; i < variables.n; i++) fn(&variables.at[i], user);
    pthread_mutex_unlock(&variables_lock);
}

static void modules(void (*fn)(const struct mg_host_module *m, void *user), void *user)
{
    mg_img_each_ptx(fn, user);
}

struct symbols {
    void (*fn)(const struct mg_host_symbol *s, void *user);
    void *user;
};

static void give_symbols(const struct mg_host_module *ptx, void *user)
{
    struct symbols *w = user;
    struct mg_module *m = NULL; /* a copy of our own: the session's belongs to who makes twins */
    if (mg_ptx_parse(ptx->ptx, ptx->bytes, NULL, &m, NULL)) m = NULL;
    for (mg_id v = 1; m && v < m->vars.n; v++) {
        const struct mg_var *var = &m->vars.at[v];
        if (!var->func && (var->space == MG_SPACE_global || var->space == MG_SPACE_const))
            w->fn(&(struct mg_host_symbol){ptx->id, mg_name(m, var->name), mg_var_bytes(var),
                                           var->space == MG_SPACE_const, false},
                  w->user);
    }
    for (mg_id f = 1; m && f < m->funcs.n; f++)
        if (m->funcs.at[f].kind == MG_FUNC_entry && m->funcs.at[f].defined)
            w->fn(&(struct mg_host_symbol){ptx->id, mg_name(m, m->funcs.at[f].name), 0, false, true}, w->user);
    if (m) mg_module_free(m);
}

static void symbols(void (*fn)(const struct mg_host_symbol *s, void *user), void *user)
{
    mg_img_each_ptx(give_symbols, &(struct symbols){fn, user});
}

static void result(const char *tool, const char *key, const char *json)
{
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) mg_store_tool_json(mg_session.store, tool, key, json);
    pthread_rwlock_unlock(&mg_session.closing);
}

static struct mg_trace_writer *trace(void)
{
    return mg_tracefile_writer((struct mg_trace_opts){0});
}

const struct mg_tool_host *mg_tools_host(void)
{
    static struct mg_tool_host host;
    host = (struct mg_tool_host){.size = sizeof host,
                                 .device_kind = mg_session.backend->kind(&mg_session.config),
                                 .sm = mg_session.sm,
                                 .timeline = mg_timeline.on,
                                 .folder = mg_session.config.dir,
                                 .allocations = allocations,
                                 .objects = mg_objects_each,
                                 .modules = modules,
                                 .symbols = symbols,
                                 .say = mg_session_say_line,
                                 .result = result,
                                 .trace = trace};
    return &host;
}
