/* Twins on a real GPU: machine code for their text, addresses in the application's image, and the rule
 * that says which launches need the native code's occupancy.
 *
 * Function addresses. In a program compiled as a whole the value of a function's address is an offset
 * into a table that every module has for itself (8, 16, ... on an H200): no driver call tells it. It is
 * read where the application's own image holds it, in a variable that is initialised with the
 * function: a table, a vtable. A function whose value is held nowhere is not known, and a kernel that
 * needs it runs native. An unknown callee can be called from no module but its own, so the twin does
 * not try: with every function known that a pointer can hold, there is none. */
#include "inject/nvidia/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/io.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/tools.h"
#include "inject/twin.h"
#include "isa/resident.h"
#include "pass/pass.h"

#define WAIT_SAME_NS  500000000u /* for work of the launch's own stream, which the launch waits for anyhow */
#define WAIT_OTHER_NS 1000000u
#define MANY_LOADS    32
#define LARGE         (256u << 10)  /* bytes of text: the assembler takes a second and more */
#define CALLED        "__mg_called" /* what functions begin with that twins call (patch/called.c) */
#define MOST          255u          /* registers of a thread */
#define FEW_REGISTERS 32            /* the assembler never tries to have fewer */

struct mg_gpu_body *mg_gpu_body_get(struct mg_body *b)
{
    if (__atomic_load_n(&b->gpu, __ATOMIC_ACQUIRE)) return b->gpu;
    struct mg_nv_ctx *x = mg_nv_ctx_current();
    struct mg_gpu_body *g = x ? calloc(1, sizeof *g) : NULL;
    if (!g) return NULL;
    g->x = x;
    pthread_mutex_init(&g->compiling, NULL);
    g->early = b->variant->text && strstr(b->variant->text, "griddepcontrol.launch_dependents");
    pthread_mutex_lock(&mg_session.lock);
    if (b->gpu)
        free(g);
    else
        __atomic_store_n(&b->gpu, g, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mg_session.lock);
    return b->gpu;
}

/* ---- addresses ---------------------------------------------------------------------------------------------- */

bool mg_gpu_global(void *function, const char *name, uint64_t *address)
{
    cu_module m = NULL;
    cu_ptr at = 0;
    size_t bytes;
    if (MG_REAL_AS(cuFuncGetModule, cu_module *, cu_function)(&m, function) != CUE_SUCCESS ||
        MG_REAL_AS(cuModuleGetGlobal_v2, cu_ptr *, size_t *, cu_module, const char *)(&at, &bytes, m, name) !=
            CUE_SUCCESS)
        return false;
    *address = at;
    mg_host_variable(at, bytes);
    return true;
}

/* Byte offset of the address of `name` in the variable's initialiser, or -1. Initialisers that nest
 * their braces leave holes, so those are not read. */
static int64_t offset_in(const struct mg_module *m, const struct mg_var *v, const char *name)
{
    uint64_t at = 0, bytes = mg_type_bits((enum mg_type)v->type) / 8;
    unsigned depth = 0;
    for (uint32_t k = 0; k < v->n_inits; k++) {
        const struct mg_init *in = &m->inits.at[v->first_init + k];
        if (in->kind == MG_INIT_open) {
            depth++;
        } else if (in->kind == MG_INIT_close) {
            depth--;
        } else {
            if (depth > 1) return -1;
            if (in->kind == MG_INIT_sym && in->is_func && bytes == 8 && !in->val &&
                !strcmp(mg_name(m, m->funcs.at[in->id].name), name))
                return (int64_t)at;
            at += bytes;
        }
    }
    return -1;
}

uint64_t mg_gpu_function_address(struct mg_body *b, const char *name)
{
    const struct mg_module *m = b->inst->code->m;
    struct mg_gpu_body *g = mg_gpu_body_get(b);
    uint64_t value = 0, at;
    for (mg_id v = 1; g && v < m->vars.n && !value; v++) {
        const struct mg_var *var = &m->vars.at[v];
        if ((var->space != MG_SPACE_global && var->space != MG_SPACE_const) || var->func || !var->n_inits) continue;
        int64_t off = offset_in(m, var, name);
        if (off >= 0 && mg_gpu_global(b->inst->function, mg_name(m, var->name), &at) &&
            !mg_nv_read(g->x, &value, at + (uint64_t)off, 8))
            value = 0;
    }
    return value;
}

uint64_t mg_gpu_table(struct mg_body *b, const uint64_t *values, uint32_t n)
{
    struct mg_gpu_body *g = mg_gpu_body_get(b);
    return g ? mg_nv_upload(g->x, values, n * sizeof *values) : 0;
}

/* ---- loading ------------------------------------------------------------------------------------------------- */

static const char *text_of(const struct mg_body *b)
{
    return b->gpu->text ? b->gpu->text : b->variant->text;
}

static unsigned attribute(int what, unsigned otherwise)
{
    cu_device dev = 0;
    int v = 0;
    MG_REAL_AS(cuCtxGetDevice, cu_device *)(&dev);
    if (MG_REAL_AS(cuDeviceGetAttribute, int *, int, cu_device)(&v, what, dev) != CUE_SUCCESS || v <= 0)
        return otherwise;
    return (unsigned)v;
}

/* Threads of a CTA by the kernel's launch bounds. A kernel with any ignores a register cap: there how many CTAs must
 * fit says how many registers there may be. 0: it has none, or says that itself; body: where its own begins. */
static unsigned bound_of(const char *text, const char **body)
{
    const char *entry = strstr(text, ".entry"), *bound = NULL;
    *body = entry ? strchr(entry, '{') : NULL;
    if (!*body) return 0;
    for (const char *at = entry; (at = strchr(at, '.')) && at < *body; at++) {
        if (!strncmp(at, ".minnctapersm", 13)) return 0;
        if (!strncmp(at, ".maxntid", 8) || !strncmp(at, ".reqntid", 8)) bound = at + 8;
    }
    unsigned long threads = bound ? 1 : 0;
    for (unsigned n = 0; bound && n < 3; n++) {
        char *end;
        threads *= strtoul(bound, &end, 10);
        end += strspn(end, " \t\r\n");
        if (*end != ',') break;
        bound = end + 1;
    }
    return (unsigned)threads;
}

/* The twin's text with so many CTAs in its bounds, to be freed; NULL: it has none. */
static char *bounded(const struct mg_body *b, unsigned ctas)
{
    const char *text = b->variant->text, *body;
    if (!bound_of(text, &body)) return NULL;
    struct mg_buf text_now = MG_BUF_INIT;
    mg_buf_add(&text_now, text, (size_t)(body - text));
    mg_buf_printf(&text_now, ".minnctapersm %u\n%s", ctas, body);
    return mg_buf_take(&text_now);
}

/* The twin's text with so many registers at most, to be freed, where it says itself how many there may be: that counts
 * for more than what the compiler is told. NULL: it does not say. */
static char *fewer(const struct mg_body *b, unsigned cap)
{
    const char *text = b->variant->text, *body, *at, *entry = strstr(text, ".entry");
    bound_of(text, &body);
    at = entry ? strstr(entry, ".maxnreg") : NULL;
    if (!at || !body || at > body) return NULL;
    char *end;
    unsigned long now = strtoul(at + strlen(".maxnreg"), &end, 10);
    struct mg_buf text_now = MG_BUF_INIT;
    mg_buf_add(&text_now, text, (size_t)(at - text));
    mg_buf_printf(&text_now, ".maxnreg %lu%s", MG_MIN(now, (unsigned long)cap), end);
    return mg_buf_take(&text_now);
}

static bool is_large(const struct mg_body *b)
{
    return strlen(b->variant->text) > LARGE;
}

/* Is the text large for its calls of functions of ours, and takes the assembler seconds? It is the same for every
 * launch then, so that it can be there before the first. */
static bool is_vast(const struct mg_body *b)
{
    return is_large(b) && strstr(b->variant->text, CALLED);
}

bool mg_gpu_is_for_any(struct mg_body *b)
{
    return is_vast(b);
}

static bool takes_addresses(const struct mg_body *b)
{
    for (uint32_t k = 0; k < b->variant->n_symbols; k++)
        if (b->variant->symbols[k].is_func) return true;
    return false;
}

/* Is the text worth being compiled as a whole, which the driver does while it loads it? Else it is compiled to be
 * linked, which waits for nothing and is kept by us. Functions need it: see the head. Exact divisions and roots, and
 * integer ones of 64 bits, are subroutines of the assembler's, called as functions are in code that is to be linked, at
 * the cost of registers and of what could overlap; addresses in shared memory are not known there; and fewer loads are
 * under way at once. But while the driver compiles as a whole nobody else comes to do anything, for seconds where the
 * text is large (docs/nvidia.md). */
static bool is_whole(const struct mg_body *b)
{
    const char *text = b->variant->text;
    static const char *const parts[] = {
        ".func",   ".shared", "div.r",   "rcp.r",  "sqrt.r", "rsqrt.approx.f64", "rsqrt.approx.ftz.f64",
        "div.u64", "div.s64", "rem.u64", "rem.s64"};
    unsigned n = 0;
    if (is_large(b) && !takes_addresses(b)) return false;
    for (unsigned k = 0; k < MG_COUNT_OF(parts); k++)
        if (strstr(text, parts[k])) return true;
    for (const char *at = text; n < MANY_LOADS && (at = strstr(at, "ld.global")); at++) n++;
    return n == MANY_LOADS;
}

static struct mg_nv_jit options_of(const struct mg_body *b)
{
    unsigned cap = b->inst->code->ptx ? b->inst->code->ptx->max_registers : 0;
    if (b->gpu->cap && (!cap || b->gpu->cap < cap)) cap = b->gpu->cap;
    return (struct mg_nv_jit){.max_registers = cap, .opt_level = -1, .whole = is_whole(b)};
}

/* How many CTAs of the native code a multiprocessor takes, as far as its PTX and its registers tell. 0: not known. */
static unsigned native_ctas(const struct mg_body *b, unsigned threads)
{
    const struct mg_code *c = b->inst->code;
    uint64_t shared = 0;
    const char *limit;
    if (!threads || b->inst->regs_native <= 0) return 0;
    for (mg_id v = 1; v < c->m->vars.n; v++) {
        const struct mg_var *var = &c->m->vars.at[v];
        if (var->space != MG_SPACE_shared || (var->func && var->func != c->kernel)) continue;
        uint64_t align = MG_MAX(mg_var_align(var), 1u);
        shared = (shared + align - 1) / align * align + mg_var_bytes(var);
    }
    return mg_resident_ctas(mg_sm_limits(mg_session.sm), (threads + 31) / 32, (uint32_t)b->inst->regs_native, shared,
                            &limit);
}

/* One that is made for any launch: as many CTAs as natively, where one may wait for another. False: for how many
 * threads is not known. */
static bool fit_any(struct mg_body *b)
{
    struct mg_gpu_body *g = b->gpu;
    const char *body;
    if (!b->inst->code->awaits) return true;
    unsigned ctas = native_ctas(b, bound_of(b->variant->text, &body));
    if (ctas) g->text = bounded(b, ctas);
    return ctas != 0;
}

/* A large text is told at once what would else be seen when it is there, and have it made once more: how many registers
 * leave room for all CTAs of the launch that it is made for, if that may need them. */
static void fit_at_once(struct mg_body *b)
{
    struct mg_gpu_body *g = b->gpu;
    unsigned regs = attribute(CUDEV_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
             most = __atomic_load_n(&b->most_registers, __ATOMIC_RELAXED), ctas;
    const char *body;
    if (is_vast(b) && fit_any(b)) return;
    if (!is_large(b) || !__atomic_load_n(&b->must_fit, __ATOMIC_RELAXED) || !most || most >= MOST || g->cap) return;
    g->cap = most;
    g->text = fewer(b, most);
    unsigned bound = g->text ? 0 : bound_of(b->variant->text, &body);
    if (!bound) return;
    ctas = MG_MAX(regs / (most * bound), 1u);
    if (regs / (ctas * bound) / 8 * 8 > most) ctas++;
    g->text = bounded(b, ctas);
}

bool mg_gpu_text_ahead(struct mg_body *b, char **text, struct mg_nv_jit *j)
{
    struct mg_gpu_body g = {0};
    b->gpu = &g;
    bool ok = !is_vast(b) || fit_any(b);
    *j = options_of(b);
    *text = g.text ? g.text : strdup(b->variant->text);
    b->gpu = NULL;
    if (ok && !j->whole && *text) return true;
    free(*text);
    return false;
}

/* That takes long and waits for nothing; threads that launch other kernels do so at the same time. */
void mg_gpu_compile(struct mg_body *b)
{
    struct mg_gpu_body *g = mg_gpu_body_get(b);
    if (!g) return; /* load() says what is wrong */
    pthread_mutex_lock(&g->compiling);
    if (!g->compiled) {
        fit_at_once(b);
        struct mg_nv_jit j = options_of(b);
        size_t bytes = strlen(text_of(b));
        uint64_t start = mg_gpu_assembly_begin(bytes);
        g->rc = mg_nv_compile(text_of(b), bytes, &j, &g->code, &g->code_bytes, g->why, sizeof g->why);
        g->compiled = true;
        mg_gpu_assembly_end(bytes, start);
        if (!j.whole) mg_gpu_assembly_say(b->inst->code->name, bytes, start, "linked, or waited for");
    }
    pthread_mutex_unlock(&g->compiling);
}

/* Machine code is made first. Loading it waits for all work of the context, so it is put off while
 * another stream is busy; work of the launch's own stream is waited for, within reason. */
bool mg_gpu_may_load(struct mg_body *b, const struct mg_shape *s)
{
    struct mg_gpu_body *g = mg_gpu_body_get(b);
    if (!g) return true; /* load() says what is wrong */
    mg_gpu_compile(b);
    for (uint64_t start = mg_now_ns();;) {
        struct mg_nv_busy busy = mg_nv_is_busy(g->x, s->stream, s->per_thread);
        uint64_t waited = mg_now_ns() - start;
        if (!busy.same && !busy.other) return true;
        if ((busy.other && waited > WAIT_OTHER_NS) || waited > WAIT_SAME_NS) return false;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

/* Loads machine code, of the text if there is none. */
static cu_result load_code(struct mg_body *b, const char *text, const void *code, const struct mg_nv_jit *j,
                           cu_function *f, char *why, size_t room)
{
    struct mg_gpu_body *g = b->gpu;
    cu_module m = NULL;
    size_t bytes = code ? 0 : strlen(text); /* the driver compiles it while loading */
    uint64_t start = code ? 0 : mg_gpu_assembly_begin(bytes);
    cu_result rc = mg_nv_load(text, code, j, &m, why, room);
    if (!code) mg_gpu_assembly_end(bytes, start);
    if (!code) mg_gpu_assembly_say(b->inst->code->name, bytes, start, "compiled as a whole while it is loaded");
    if (rc == CUE_SUCCESS && (rc = MG_REAL_AS(cuModuleGetFunction, cu_function *, cu_module,
                                              const char *)(f, m, b->inst->code->name)) != CUE_SUCCESS)
        snprintf(why, room, "the instrumented code has no such kernel");
    if (m && g->n_modules < MG_COUNT_OF(g->modules)) g->modules[g->n_modules++] = m;
    return rc;
}

static int attribute_of(cu_function f, int what)
{
    int v = 0;
    return MG_REAL_AS(cuFuncGetAttribute, int *, int, cu_function)(&v, what, f) == CUE_SUCCESS ? v : 0;
}

/* The assembler keeps registers few, so that many warps fit. A twin that has no more of them than the native code has
 * lost loads under way, or spills, for its counters. Where all CTAs of the launch that it is made for run at once and
 * leave room for more registers, it is made once more, told so. */
static void widen(struct mg_body *b, cu_function *f)
{
    static const unsigned sizes[] = {255, 168, 128, 96, 80,
                                     64,  56,  48,  40}; /* few, so that launches of like sizes share machine code */
    struct mg_gpu_body *g = b->gpu;
    struct mg_nv_jit j = options_of(b);
    unsigned most = 0, regs = attribute(CUDEV_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536), bound;
    int native = b->inst->regs_native;
    const char *text = b->variant->text, *body;
    for (unsigned k = 0; k < MG_COUNT_OF(sizes) && !most; k++)
        if (sizes[k] <= b->most_registers) most = sizes[k];
    if (!b->must_fit || is_large(b) || native < FEW_REGISTERS || most <= (unsigned)native || j.max_registers ||
        attribute_of(*f, CUFUNC_NUM_REGS) > native)
        return;
    if ((bound = bound_of(text, &body)) != 0)
        text = bounded(b, MG_MAX((regs + most * bound - 1) / (most * bound), 1u));
    else if (!strstr(text, ".minnctapersm") && !strstr(text, ".maxnreg"))
        j.max_registers = most;
    else
        return;
    cu_function wide = NULL;
    void *code = NULL;
    size_t bytes;
    char why[400];
    uint64_t start = mg_gpu_assembly_begin(strlen(text));
    cu_result rc = mg_nv_compile(text, strlen(text), &j, &code, &bytes, why, sizeof why);
    mg_gpu_assembly_end(strlen(text), start);
    if (rc == CUE_SUCCESS && load_code(b, text, code, &j, &wide, why, sizeof why) == CUE_SUCCESS) {
        g->narrow = *f;
        *f = wide;
    }
    free(code);
    if (text != b->variant->text) free((char *)(uintptr_t)text);
}

bool mg_gpu_load(struct mg_body *b, void **twin, char *why, size_t room)
{
    struct mg_gpu_body *g = b->gpu;
    cu_function f = NULL;
    if (!g || g->rc != CUE_SUCCESS) {
        snprintf(why, room, "%s", g ? g->why : "out of memory");
        return false;
    }
    struct mg_nv_jit j = options_of(b);
    mg_gpu_widen_stack(b->inst);
    pthread_mutex_lock(&g->compiling); /* others that want the twin may still come to compile it */
    void *code = g->code;
    g->code = NULL;
    pthread_mutex_unlock(&g->compiling);
    cu_result rc = load_code(b, text_of(b), code, &j, &f, why, room);
    int sm = attribute_of(b->inst->function, CUFUNC_PTX_VERSION);
    if (sm) b->inst->code->native_sm = (uint16_t)sm;
    free(code);
    if (rc == CUE_SUCCESS && !g->cap) widen(b, &f);
    *twin = f;
    return rc == CUE_SUCCESS;
}

static void free_body(struct mg_body *b)
{
    struct mg_gpu_body *g = b->gpu;
    mg_gpu_known_forget(b);
    pthread_mutex_destroy(&g->compiling);
    free(g->code);
    free(g->text);
    free(g);
    b->gpu = NULL;
    b->symbols = 0;
}

/* Everything that only this instance used. A node of a graph keeps it for ever, counts not handed over keep
 * it a while, and so does work in flight, for which unloading would wait. */
bool mg_gpu_unload(struct mg_body *b)
{
    struct mg_gpu_body *g = b->gpu;
    cu_ctx was;
    if (!g) return true;
    if (mg_nv_ctx_is_broken(g->x)) { /* all else is gone with its context */
        free_body(b);
        return true;
    }
    bool ok = !__atomic_load_n(&b->n_nodes, __ATOMIC_ACQUIRE);
    for (struct mg_nv_slots *s = g->slots; s && ok; s = mg_nv_slots_link(s)) ok = mg_nv_slots_are_free(s);
    if (!ok || MG_REAL_AS(cuCtxPushCurrent_v2, cu_ctx)(b->inst->ctx) != CUE_SUCCESS) return false;
    ok = mg_nv_ctx_is_idle(g->x);
    for (uint32_t k = 0; k < g->n_modules && ok; k++) MG_REAL_AS(cuModuleUnload, cu_module)(g->modules[k]);
    MG_REAL_AS(cuCtxPopCurrent_v2, cu_ctx *)(&was);
    if (!ok) return false;
    while (g->slots) {
        struct mg_nv_slots *s = g->slots;
        g->slots = mg_nv_slots_link(s);
        mg_nv_slots_free(s);
    }
    mg_gpu_known_release(b);
    if (b->symbols) mg_nv_give_back(g->x, b->symbols, b->variant->n_symbols * sizeof(uint64_t));
    free_body(b);
    return true;
}

/* ---- does this launch need the native code's occupancy? -------------------------------------------------------- */

static int ctas_of(void *function, unsigned threads, unsigned shared_bytes)
{
    int n = 0;
    if (MG_REAL_AS(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *, cu_function, int,
                   size_t)(&n, function, (int)threads, shared_bytes) != CUE_SUCCESS)
        return 0;
    return n;
}

static const struct mg_gpu_fit *fit_of(struct mg_body *b, const struct mg_shape *s, struct mg_gpu_fit *room)
{
    struct mg_gpu_body *g = b->gpu;
    unsigned threads = s->block[0] * s->block[1] * s->block[2];
    uint32_t n = __atomic_load_n(&g->n_fits, __ATOMIC_ACQUIRE);
    for (uint32_t k = 0; k < n; k++)
        if (g->fits[k].threads == threads && g->fits[k].shared_bytes == s->shared_bytes) return &g->fits[k];
    *room = (struct mg_gpu_fit){threads, s->shared_bytes, ctas_of(b->inst->function, threads, s->shared_bytes),
                                ctas_of(b->twin, threads, s->shared_bytes)};
    pthread_mutex_lock(&mg_session.lock);
    if (g->n_fits < MG_COUNT_OF(g->fits)) {
        g->fits[g->n_fits] = *room;
        __atomic_store_n(&g->n_fits, g->n_fits + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mg_session.lock);
    return room;
}

/* Does the launch natively run all its CTAs at once, so that something may depend on that? */
static bool is_wave(uint64_t ctas, int native)
{
    return ctas <= attribute(CUDEV_MULTIPROCESSOR_COUNT, 1) * (uint64_t)native;
}

uint32_t mg_gpu_most_registers(const struct mg_inst *i, const struct mg_shape *s, bool *must)
{
    uint64_t ctas = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2], sms = attribute(CUDEV_MULTIPROCESSOR_COUNT, 1);
    uint64_t warps = (s->block[0] * s->block[1] * s->block[2] + 31) / 32;
    int native = ctas_of(i->function, s->block[0] * s->block[1] * s->block[2], s->shared_bytes);
    if (!ctas || !warps || native < 1) return 0;
    *must = is_wave(ctas, native);
    uint64_t at_once = MG_MIN((ctas + sms - 1) / sms, (uint64_t)native);
    return (uint32_t)(attribute(CUDEV_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536) / (at_once * warps * 32) / 8 * 8);
}

/* Fewer CTAs than the native code has are fine only while nothing can depend on them all being there. */
static bool fits(const struct mg_gpu_fit *f, const struct mg_shape *s)
{
    if (f->twin >= f->native) return true;
    if (f->twin == 0) return false;
    uint64_t ctas = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2];
    uint64_t sms = attribute(CUDEV_MULTIPROCESSOR_COUNT, 1);
    if (s->cluster[0] * s->cluster[1] * s->cluster[2] > 1) return false;
    return !(s->cooperative || is_wave(ctas, f->native)) || ctas <= sms * (uint64_t)f->twin;
}

/* Would fewer of its CTAs run at once than natively? */
static bool is_starved(const struct mg_gpu_fit *f, const struct mg_shape *s)
{
    return f->twin < f->native && (uint64_t)s->grid[0] * s->grid[1] * s->grid[2] >
                                      attribute(CUDEV_MULTIPROCESSOR_COUNT, 1) * (uint64_t)f->twin;
}

static pthread_mutex_t again = PTHREAD_MUTEX_INITIALIZER; /* another twin in its place */

static void replace(struct mg_body *b, void *twin)
{
    mg_twin_settings(b->inst, twin);
    b->twin = twin;
    mg_kernel_add_twin(b);
    __atomic_store_n(&b->gpu->n_fits, 0, __ATOMIC_RELEASE);
}

/* The twin as it is without more registers than the assembler likes: it is there already. */
static void narrow(struct mg_body *b)
{
    pthread_mutex_lock(&again);
    void *twin = b->gpu->narrow;
    if (twin) replace(b, twin);
    b->gpu->narrow = NULL;
    pthread_mutex_unlock(&again);
}

/* As many registers as the native number of CTAs leaves. */
static unsigned cap_of(const struct mg_gpu_fit *f)
{
    unsigned threads = (f->threads + 31) / 32 * 32, regs = attribute(CUDEV_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536);
    return regs / (threads * (unsigned)MG_MAX(f->native, 1)) / 8 * 8;
}

/* Once more with so many registers at most. */
static bool load_capped(struct mg_body *b, const struct mg_shape *s, const struct mg_gpu_fit *f, unsigned cap,
                        bool *done)
{
    struct mg_gpu_body *g = b->gpu;
    void *twin = NULL;
    char why[400];
    bool ok = false;
    pthread_mutex_lock(&again);
    if (!*done && cap >= 16) {
        pthread_mutex_lock(&g->compiling);
        g->cap = cap;
        g->compiled = false;
        free(g->text); /* of fit_at_once */
        g->text = fewer(b, cap);
        if (!g->text) g->text = bounded(b, (unsigned)f->native);
        pthread_mutex_unlock(&g->compiling);
        int mode = mg_capture_relax();
        ok = mg_gpu_may_load(b, s);
        if (ok) {
            *done = true;
            ok = mg_gpu_load(b, &twin, why, sizeof why);
        }
        if (ok) replace(b, twin);
        mg_capture_unrelax(mode);
    }
    pthread_mutex_unlock(&again);
    return ok;
}

/* Is it worth the assembler's time to have more CTAs fit: are registers what they lack, not shared memory? */
static bool may_cap(const struct mg_body *b, const struct mg_shape *s, const struct mg_gpu_fit *f)
{
    const char *limit;
    uint64_t shared = (uint64_t)attribute_of(b->twin, CUFUNC_SHARED_SIZE_BYTES) + s->shared_bytes;
    if (is_vast(b) && !b->inst->code->awaits) return false;
    return mg_resident_ctas(mg_sm_limits(mg_session.sm), (f->threads + 31) / 32, 0, shared, &limit) >=
           (unsigned)f->native;
}

/* The text has registers for the launch that it was made for, which ran all CTAs at once: with fewer for one that
 * lacks room. That is tried once. */
static bool tighten(struct mg_body *b, const struct mg_shape *s, const struct mg_gpu_fit *f)
{
    struct mg_gpu_body *g = b->gpu;
    if (!b->variant->fewer || g->tightened || g->cap || !is_starved(f, s) || !may_cap(b, s, f)) return false;
    bool ok = load_capped(b, s, f, b->variant->fewer, &g->tightened);
    g->tightened = true;
    return ok;
}

/* Does nothing depend on how many of its CTAs run at once? */
static bool waits_for_none(const struct mg_body *b, const struct mg_shape *s)
{
    return !b->inst->code->awaits && !s->cooperative && s->cluster[0] * s->cluster[1] * s->cluster[2] <= 1;
}

enum mg_reason mg_gpu_why_not(struct mg_body *b, const struct mg_shape *s)
{
    struct mg_gpu_fit room;
    for (int attempt = 0; attempt < 2; attempt++) {
        const struct mg_gpu_fit *f = fit_of(b, s, &room);
        if (b->gpu->narrow && (is_starved(f, s) || !fits(f, s))) {
            narrow(b);
            f = fit_of(b, s, &room);
        }
        if (tighten(b, s, f)) f = fit_of(b, s, &room);
        if (fits(f, s)) return MG_REASON_none;
        if (f->native == 0) return MG_REASON_none; /* the driver will say what is wrong with the launch */
        if (attempt || !may_cap(b, s, f) || !load_capped(b, s, f, cap_of(f), &b->gpu->capped)) {
            if (!f->twin) return MG_REASON_too_many_registers;
            return waits_for_none(b, s) ? MG_REASON_none : MG_REASON_must_fit;
        }
    }
    return MG_REASON_none;
}
