/* Kernels: from the handle of a launch to the instance that may run in its place.
 *
 *   handle ──► struct mg_name { image, kernel name } ── + current context ──► struct mg_inst ──► struct mg_code
 *                                                        + set of tools ──► struct mg_body { twin } ──► struct
 * mg_variant { its text }
 *
 * A twin's text is made once per kernel, image and set of tools (twin.c), loaded once per instance. An instance
 * has its own table of symbol addresses, since every instance of a module has its own variables.
 * Codes live until the process ends, with their number in the store; an instance until its module is unloaded and
 * its last launch has ended. Texts and what was made of them go with the last of both (mg_kernel_spend). */
#include "inject/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reach.h"
#include "base/map.h"
#include "base/vec.h"
#include "inject/backend.h"
#include "inject/hooks.h"
#include "inject/images.h"
#include "inject/session.h"
#include "inject/streams.h"
#include "inject/tools.h"
#include "inject/twin.h"

struct mg_name { /* what a handle stands for; owner: the map */
    struct mg_img *im;
    struct mg_code *code;
    bool is_kernel;
    void *kernel;                   /* of a library, that this function stands for in one context; NULL: of none */
    MG_VEC(struct mg_inst *) insts; /* one a context */
};
static struct mg_map codes; /* every struct mg_code as key; under the session's lock */
static struct mg_map names; /* handle -> struct mg_name; under the session's lock */

static struct mg_name *name_get(void *handle) /* under the lock */
{
    uint64_t v;
    return mg_map_get(&names, (uint64_t)(uintptr_t)handle, &v) ? (struct mg_name *)(uintptr_t)v : NULL;
}

/* What stays of a kernel until the process ends lies by itself: between what is freed with its module it would keep
 * whole pages. */
static void *keep(size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct mg_arena kept;
    pthread_mutex_lock(&lock);
    void *p = mg_arena_try(&kept, bytes);
    pthread_mutex_unlock(&lock);
    return p ? memset(p, 0, bytes) : NULL;
}

static struct mg_code *code_get(struct mg_img *im, const char *name) /* under the lock */
{
    im = im->first ? im->first : im;
    for (struct mg_code *c = im->codes; c; c = c->next)
        if (!strcmp(c->name, name)) return c;
    size_t bytes = strlen(name) + 1;
    struct mg_code *c = keep(sizeof *c + bytes);
    if (!c) return NULL;
    c->name = memcpy(c + 1, name, bytes);
    c->im = im;
    c->store_id = UINT32_MAX;
    c->next = im->codes;
    im->codes = c;
    mg_map_set(&codes, (uint64_t)(uintptr_t)c, 1);
    return c;
}

static struct mg_code_use *find_use(const struct mg_code *c, uint32_t use)
{
    struct mg_code_use *u = __atomic_load_n(&c->uses, __ATOMIC_ACQUIRE);
    while (u && u->use != use) u = u->next;
    return u;
}

struct mg_code_use *mg_code_use(struct mg_code *c, uint32_t use)
{
    struct mg_code_use *u = find_use(c, use), *made = u ? NULL : keep(sizeof *made);
    if (!made) return u;
    made->use = use;
    made->next = __atomic_load_n(&c->uses, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&c->uses, &made->next, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        if ((u = find_use(c, use))) /* somebody else's; ours stays unused */
            return u;
    return made;
}

void mg_variant_clear(struct mg_variant *v)
{
    for (uint32_t k = 0; k < v->n_symbols; k++) free((char *)(uintptr_t)v->symbols[k].name);
    free(v->symbols);
    free(v->known);
    mg_module_free(v->ir);
    free(v->text);
    mg_layout_release(&v->layout);
    v->symbols = NULL;
    v->n_symbols = 0;
    v->known = NULL;
    v->ir = NULL;
    v->text = NULL;
    v->layout = (struct mg_layout){0};
}

static void free_variant(struct mg_variant *v)
{
    mg_variant_clear(v);
    free(v->reason);
    free(v);
}

void mg_kernel_spend(struct mg_code *c)
{
    while (c->variants) {
        struct mg_variant *v = c->variants;
        c->variants = v->next;
        free_variant(v);
    }
    mg_sites_free(c->sites);
    mg_reach_free(c->reach);
    free(c->reason);
    c->sites = NULL;
    c->reach = NULL;
    c->reason = NULL;
    c->m = NULL;
    c->kernel = 0;
    c->state = MG_STATE_NEW;
    c->launches = c->no_ptx = c->verify_known = false;
}

static void name_set(void *handle, struct mg_img *im, struct mg_code *code, bool is_kernel) /* under the lock */
{
    struct mg_name *n = name_get(handle);
    if (n && n->code == code) return;
    if (!n) n = calloc(1, sizeof *n);
    if (!n) return;
    n->im = im;
    n->code = code;
    n->is_kernel = is_kernel;
    n->kernel = is_kernel ? handle : NULL;
    n->insts.n = 0;
    mg_map_set(&names, (uint64_t)(uintptr_t)handle, (uint64_t)(uintptr_t)n);
}

void mg_kernel_note(void *handle, struct mg_img *im, const char *name, bool is_kernel)
{
    pthread_mutex_lock(&mg_session.lock);
    struct mg_code *code = code_get(im, name);
    if (code) name_set(handle, im, code, is_kernel);
    pthread_mutex_unlock(&mg_session.lock);
}

void mg_kernel_alias(void *function, void *kernel)
{
    pthread_mutex_lock(&mg_session.lock);
    struct mg_name *n = name_get(kernel);
    if (n && function != kernel) {
        name_set(function, n->im, n->code, false);
        struct mg_name *f = name_get(function);
        if (f && n->is_kernel) f->kernel = kernel;
    }
    pthread_mutex_unlock(&mg_session.lock);
}

/* The image goes away: its handles may be given out again for something else. */
void mg_kernel_forget(struct mg_img *im)
{
    uint64_t key, v;
    MG_VEC(uint64_t) dead = {0};
    void *any = NULL;
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; mg_map_next(&names, &i, &key, &v);) {
        struct mg_name *n = (struct mg_name *)(uintptr_t)v;
        if (n->im != im) continue;
        *mg_vec_push(&dead) = key;
        if (n->insts.n) any = (void *)(uintptr_t)key;
    }
    pthread_mutex_unlock(&mg_session.lock);
    if (any && mg_session.config.witness) mg_witness_collect(im, any);
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; i < dead.n; i++) {
        struct mg_name *n = name_get((void *)(uintptr_t)dead.at[i]);
        mg_map_del(&names, dead.at[i]);
        for (uint32_t k = 0; n && k < n->insts.n; k++) mg_leftover_add(n->insts.at[k]);
        if (n) {
            mg_vec_release(&n->insts);
            free(n);
        }
    }
    pthread_mutex_unlock(&mg_session.lock);
    mg_vec_release(&dead);
}

/* A handle that no lookup of ours has seen: the driver knows its name and its module. */
static bool ask_driver(void *handle)
{
    const char *name = NULL;
    cu_module m = NULL;
    cu_library l = NULL;
    if (MG_REAL_AS(cuKernelGetLibrary, cu_library *, cu_kernel)(&l, handle) == CUE_SUCCESS &&
        MG_REAL_AS(cuKernelGetName, const char **, cu_kernel)(&name, handle) == CUE_SUCCESS && mg_img_of(l)) {
        mg_kernel_note(handle, mg_img_of(l), name, true);
        return true;
    }
    if (MG_REAL_AS(cuFuncGetModule, cu_module *, cu_function)(&m, handle) == CUE_SUCCESS &&
        MG_REAL_AS(cuFuncGetName, const char **, cu_function)(&name, handle) == CUE_SUCCESS && mg_img_of(m)) {
        mg_kernel_note(handle, mg_img_of(m), name, false);
        return true;
    }
    return false;
}

static struct mg_inst *inst_new(struct mg_name *n, void *handle, void *ctx)
{
    struct mg_inst *i = calloc(1, sizeof *i);
    if (!i) return NULL;
    *i = (struct mg_inst){.code = n->code,
                          .handle = handle,
                          .ctx = ctx,
                          .is_kernel = n->is_kernel,
                          .kernel = n->kernel,
                          .describing = PTHREAD_MUTEX_INITIALIZER,
                          .generation = mg_session.generation};
    i->code->im->refs++;
    *mg_vec_push(&n->insts) = i;
    return i;
}

static int attribute_of(void *function, int attribute, int otherwise)
{
    int v = otherwise;
    if (MG_REAL_AS(cuFuncGetAttribute, int *, int, cu_function)(&v, attribute, function) != CUE_SUCCESS)
        return otherwise;
    return v;
}

/* The function behind a kernel handle, in this context: what queries take everywhere. */
static void find_function(struct mg_inst *i)
{
    cu_function f = NULL;
    i->function = i->handle;
    if (!i->is_kernel) return;
    int mode = mg_capture_relax();
    if (MG_REAL_AS(cuKernelGetFunction, cu_function *, cu_kernel)(&f, i->handle) == CUE_SUCCESS && f) {
        i->function = f;
        mg_kernel_alias(f, i->handle); /* graphs name it so */
    }
    mg_capture_unrelax(mode);
}

/* Layout of the parameter block, as the driver tells it. */
static void read_params(struct mg_inst *i)
{
    cu_result (*info)(void *, size_t, size_t *, size_t *) =
        i->is_kernel ? MG_REAL_AS(cuKernelGetParamInfo, void *, size_t, size_t *, size_t *)
                     : MG_REAL_AS(cuFuncGetParamInfo, void *, size_t, size_t *, size_t *);
    size_t offset, bytes;
    uint32_t n = 0;
    while (n < 4096 && info(i->handle, n, &offset, &bytes) == CUE_SUCCESS) n++;
    uint32_t *at = calloc(2 * (size_t)n + 1, sizeof *at);
    if (!at) return;
    i->param_offsets = at;
    i->param_sizes = at + n;
    for (uint32_t k = 0; k < n && info(i->handle, k, &offset, &bytes) == CUE_SUCCESS; k++) {
        at[k] = (uint32_t)offset;
        at[n + k] = (uint32_t)bytes;
        i->param_bytes = MG_MAX(i->param_bytes, (uint32_t)(offset + bytes));
        i->n_params = k + 1;
    }
}

/* What the driver says of the instance, asked once: whoever launches it reads that without a lock, so that nobody
 * may write it a second time. */
static void describe(struct mg_inst *i)
{
    pthread_mutex_lock(
        &i->describing); /* its own: the driver may wait here for work in flight, and that for other launches */
    if (!i->described) {
        cu_device device = 0;
        MG_REAL_AS(cuCtxGetDevice, cu_device *)(&device);
        i->device = (uint32_t)device;
        i->ctx_number = mg_ctx_number(i->ctx);
        find_function(i);
        i->static_shared = (uint32_t)attribute_of(i->function, CUFUNC_SHARED_SIZE_BYTES, 0);
        read_params(i);
        i->regs_native = attribute_of(i->function, CUFUNC_NUM_REGS, 0);
        __atomic_store_n(&i->described, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&i->describing);
}

struct mg_inst *mg_kernel_get(void *handle)
{
    struct mg_inst *found = NULL;
    cu_ctx ctx = NULL;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx);
    for (int attempt = 0; attempt < 2 && !found; attempt++) {
        pthread_mutex_lock(&mg_session.lock);
        struct mg_name *n = name_get(handle);
        for (uint32_t i = 0; n && i < n->insts.n && !found; i++)
            if ((!n->is_kernel || n->insts.at[i]->ctx == ctx) && n->insts.at[i]->generation == mg_session.generation)
                found = n->insts.at[i];
        if (n && !found) found = inst_new(n, handle, ctx);
        pthread_mutex_unlock(&mg_session.lock);
        if (n || !ask_driver(handle)) break;
    }
    if (found && !__atomic_load_n(&found->described, __ATOMIC_ACQUIRE)) describe(found);
    return found;
}

static struct mg_map twins; /* function -> struct mg_body; under the session's lock */

void mg_kernel_add_twin(struct mg_body *b)
{
    pthread_mutex_lock(&mg_session.lock);
    mg_map_set(&twins, (uint64_t)(uintptr_t)b->twin, (uint64_t)(uintptr_t)b);
    pthread_mutex_unlock(&mg_session.lock);
}

void mg_kernel_drop_twin(struct mg_body *b)
{
    uint64_t key = (uint64_t)(uintptr_t)b->twin, v;
    pthread_mutex_lock(&mg_session.lock);
    if (mg_map_get(&twins, key, &v) && v == (uint64_t)(uintptr_t)b) /* the driver may have given the handle out again */
        mg_map_del(&twins, key);
    b->twin = NULL;
    pthread_mutex_unlock(&mg_session.lock);
}

struct mg_body *mg_kernel_of_twin(void *function)
{
    uint64_t v = 0;
    pthread_mutex_lock(&mg_session.lock);
    mg_map_get(&twins, (uint64_t)(uintptr_t)function, &v);
    pthread_mutex_unlock(&mg_session.lock);
    return (struct mg_body *)(uintptr_t)v;
}

/* Calls fn for every twin that exists of what a handle names. */
void mg_kernel_each_twin(void *handle, void (*fn)(void *twin, void *user), void *user)
{
    MG_VEC(void *) list = {0};
    pthread_mutex_lock(&mg_session.lock);
    struct mg_name *n = name_get(handle);
    for (uint32_t i = 0; n && i < n->insts.n; i++)
        for (const struct mg_body *b = n->insts.at[i]->bodies; b; b = b->next)
            if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == MG_STATE_READY) *mg_vec_push(&list) = b->twin;
    pthread_mutex_unlock(&mg_session.lock);
    for (uint32_t i = 0; i < list.n; i++) fn(list.at[i], user);
    mg_vec_release(&list);
}

/* ---- the store's view ----------------------------------------------------------------------------------- */

/* Does the store lack something of the kernel? Asked without a lock. */
bool mg_code_is_news(const struct mg_code *c)
{
    return __atomic_load_n(&c->store_id, __ATOMIC_ACQUIRE) == UINT32_MAX ||
           (__atomic_load_n(&c->sites, __ATOMIC_ACQUIRE) && !__atomic_load_n(&c->sites_stored, __ATOMIC_ACQUIRE));
}

/* Tells the store about the kernel on its first launch; its sites are known when a tool needed them. */
uint32_t mg_kernel_store_id(struct mg_inst *i, struct mg_body *b)
{
    struct mg_code *c = i->code;
    bool news = mg_code_is_news(c);
    int32_t regs_twin = news && b && b->twin ? attribute_of(b->twin, CUFUNC_NUM_REGS, -1) : -1;
    bool estimated = mg_session.backend->registers_estimated(i->handle);
    pthread_mutex_lock(&mg_session.lock);
    if (mg_code_is_news(c)) {
        struct mg_store_kernel k = {
            .name = c->name,
            .module = c->ptx ? c->ptx->id : "",
            .regs_native = i->regs_native,
            .regs_instrumented = regs_twin,
            .regs_estimated = estimated,
            .built_unix_ns = c->ptx ? c->ptx->built_unix_ns : 0,
            .sites = __atomic_load_n(&c->sites, __ATOMIC_ACQUIRE),
        };
        if (c->ptx && !c->ptx->stored) {
            mg_store_module(mg_session.store, c->ptx->id, c->ptx->text, c->ptx->bytes);
            c->ptx->stored = true;
        }
        if (c->store_id == UINT32_MAX)
            __atomic_store_n(&c->store_id, mg_store_kernel(mg_session.store, &k), __ATOMIC_RELEASE);
        else
            mg_store_kernel_found(mg_session.store, c->store_id, &k);
        __atomic_store_n(&c->sites_stored, k.sites != NULL, __ATOMIC_RELEASE);
    }
    if (b && b->variant->state == MG_STATE_READY && !b->variant->told) mg_tools_tell(b->variant);
    pthread_mutex_unlock(&mg_session.lock);
    return c->store_id;
}

uint64_t mg_kernel_executed(uint64_t *ended, uint64_t *timed)
{
    uint64_t key, v;
    double ns = 0;
    *ended = *timed = 0;
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; mg_map_next(&codes, &i, &key, &v);) {
        const struct mg_code *c = (const struct mg_code *)(uintptr_t)key;
        *ended += c->n_ended;
        *timed += c->n_timed;
        if (c->n_timed) ns += (double)c->timed_ns / (double)c->n_timed * (double)c->n_ended;
    }
    pthread_mutex_unlock(&mg_session.lock);
    return (uint64_t)ns;
}

void mg_kernel_tell_other_calls(void)
{
    uint64_t key, v;
    struct mg_buf json = MG_BUF_INIT;
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; mg_map_next(&codes, &i, &key, &v);) {
        const struct mg_code *c = (const struct mg_code *)(uintptr_t)key;
        if (c->other_calls)
            mg_buf_printf(&json, "%s\"%s\": %llu", json.n ? ", " : "{", c->name, (unsigned long long)c->other_calls);
    }
    pthread_mutex_unlock(&mg_session.lock);
    if (json.n) {
        mg_buf_addc(&json, '}');
        mg_store_tool_json(mg_session.store, "margay", "uninstrumented_callees", json.at);
    }
    mg_buf_release(&json);
}

void mg_kernel_tell_other_ptx(void)
{
    uint64_t key, v;
    struct mg_buf json = MG_BUF_INIT;
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; mg_map_next(&codes, &i, &key, &v);) {
        const struct mg_code *c = (const struct mg_code *)(uintptr_t)key;
        if (c->native_sm && c->ptx_sm && c->native_sm != c->ptx_sm)
            mg_buf_printf(&json, "%s{\"kernel\": \"%s\", \"ptx\": %u, \"code\": %u}", json.n ? ", " : "[", c->name,
                          (unsigned)c->ptx_sm, (unsigned)c->native_sm);
    }
    pthread_mutex_unlock(&mg_session.lock);
    if (json.n) {
        mg_buf_addc(&json, ']');
        mg_store_tool_json(mg_session.store, "margay", "virtual_architecture", json.at);
    }
    mg_buf_release(&json);
}

/* ---- the witness ------------------------------------------------------------------------------------------ */

/* Counts per text position taken by the emulator without any CFG or probe (config.witness): stored
 * as tool "positions", one entry a module: [{"function", "positions": [[ptx_line, threads, warps], ...]}]. */
struct witness {
    struct mg_buf out;
    const struct mg_module *m;
    mg_id func;
};
static void add_position(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps)
{
    struct witness *w = user;
    if (func != w->func) {
        mg_buf_printf(&w->out, "%s{\"function\": \"%s\", \"positions\": [", w->func ? "]}, " : "",
                      mg_name(w->m, w->m->funcs.at[func].name));
        w->func = func;
    } else {
        mg_buf_adds(&w->out, ", ");
    }
    mg_buf_printf(&w->out, "[%u, %llu, %llu]", w->m->nodes.at[node].line, (unsigned long long)threads,
                  (unsigned long long)warps);
}

/* im->seen keeps two handles of one instance from counting twice: the generation that was read. */
void mg_witness_collect(struct mg_img *im, void *function)
{
    const struct mg_backend *b = mg_session.backend;
    static uint32_t n_collected;
    if (im->seen == mg_session.generation + 1) return;
    struct witness w = {.out = MG_BUF_INIT, .m = b->module(function)};
    if (!w.m) return;
    im->seen = mg_session.generation + 1;
    mg_buf_adds(&w.out, "{\"modules\": ["); /* several texts when the driver linked them */
    for (uint32_t k = 0; k < im->n_ptx; k++) mg_buf_printf(&w.out, "%s\"%s\"", k ? ", " : "", im->ptx[k].id);
    mg_buf_adds(&w.out, "], \"functions\": [");
    b->positions(function, add_position, &w);
    mg_buf_printf(&w.out, "%s]}", w.func ? "]}" : "");
    char key[24];
    snprintf(key, sizeof key, "module%u", n_collected++);
    char *json = mg_buf_take(&w.out);
    if (json) mg_store_tool_json(mg_session.store, "positions", key, json);
    free(json);
}

void mg_witness_end(void)
{
    uint64_t key, v;
    struct pair {
        struct mg_img *im;
        void *function;
    };
    MG_VEC(struct pair) left = {0};
    pthread_mutex_lock(&mg_session.lock);
    for (uint32_t i = 0; mg_map_next(&names, &i, &key, &v);) {
        struct mg_name *n = (struct mg_name *)(uintptr_t)v;
        if (n->insts.n && n->insts.at[n->insts.n - 1]->generation == mg_session.generation)
            *mg_vec_push(&left) = (struct pair){n->im, (void *)(uintptr_t)key};
    }
    pthread_mutex_unlock(&mg_session.lock);
    for (uint32_t i = 0; i < left.n; i++) mg_witness_collect(left.at[i].im, left.at[i].function);
    mg_vec_release(&left);
}
