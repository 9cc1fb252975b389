/* The twin of a kernel: parse, find the sites (once per kernel and image), clone, instrument, verify,
 * keep (once per set of tools), then load it through the driver and fill its symbol table (once per instance).
 *
 *   app's PTX ── mg_ptx_parse ── mg_twin_new ── tool ── mg_module_verify ─┬─────────────────► module (our own driver)
 *                                                                         └─ mg_ptx_print ──► text (NVIDIA's)
 *   module or text ── backend's load ──► twin; symbols[i] = address in the app's own image
 *
 * A failure at any step leaves a reason and the kernel runs native from then on. */
#include "inject/twin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/await.h"
#include "base/io.h"
#include "inject/backend.h"
#include "inject/findings.h"
#include "inject/hooks.h"
#include "inject/images.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/select.h"
#include "inject/session.h"
#include "inject/tools.h"
#include "insert/plant.h"
#include "pass/stress.h"
#include "ptx/ptx.h"
#include "tool/instrument.h"

#define GPU_COPIES 256u /* of cells, at most: multiprocessors share them out */

static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER; /* texts, and loading: one twin at a time */

/* detail: what the reason's %s stands for, or, with MG_REASON_detail, all of it. */
static bool fail(enum mg_state *state, char **reason, enum mg_reason code, const char *detail)
{
    char text[600];
    snprintf(text, sizeof text, code == MG_REASON_detail ? "%s" : mg_reason_text(code), detail);
    *reason = strdup(text);
    __atomic_store_n(state, MG_STATE_FAILED, __ATOMIC_RELEASE);
    return false;
}

/* ---- where the kernel is ---------------------------------------------------------------------------------- */

/* Our own driver has parsed the text already: its module serves here, too. */
static void share_module(struct mg_img *im, struct mg_inst *i)
{
    struct mg_ptx *p = im->n_ptx == 1 && !im->linked ? &im->ptx[0] : NULL;
    uint64_t start = mg_now_ns();
    const struct mg_module *m = p && !p->parsed ? mg_session.backend->module(i->handle) : NULL;
    if (m && !strcmp(m->id, p->id)) {
        p->m = mg_module_hold(m);
        p->parsed = true;
        mg_session.ns.parse += mg_now_ns() - start;
    }
}

/* Finds the kernel's definition: in the driver's linked module when the image was made of parts, else
 * in the text that the device takes. */
static bool find_kernel(struct mg_inst *i)
{
    struct mg_code *c = i->code;
    struct mg_img *im = c->im;
    if (c->kernel) return true;
    share_module(im, i);
    for (uint32_t k = 0; k < im->n_ptx && !c->kernel; k++) {
        struct mg_ptx *p = mg_img_parsed(im, k);
        mg_id f = p->m ? mg_module_find_func(p->m, c->name) : 0;
        if (f && p->m->funcs.at[f].defined) {
            c->ptx = p;
            c->m = p->m;
            c->kernel = f;
        }
    }
    if (im->linked || !im->n_ptx) {
        const struct mg_module *m = mg_session.backend->module(i->handle);
        if (!m && im->n_ptx > 1) m = mg_img_linked(im);
        mg_id f = m ? mg_module_find_func(m, c->name) : 0;
        if (f) {
            c->m = m;
            c->kernel = f;
        }
    }
    if (c->kernel) c->ptx_sm = (uint16_t)c->m->sm;
    if (c->kernel) return true;
    for (uint32_t k = 0; k < im->n_ptx; k++)
        if (im->ptx[k].why) return fail(&c->state, &c->reason, MG_REASON_detail, im->ptx[k].why);
    c->no_ptx = true;
    return fail(&c->state, &c->reason, im->why ? im->why : MG_REASON_no_ptx_kernel, NULL);
}

/* ---- the text ------------------------------------------------------------------------------------------------ */

/* Inserted nodes get the line of the application's PTX in front of them: messages about the twin name what the user
 * wrote. */
static void place_lines(const struct mg_twin *t)
{
    for (uint32_t f = 0; f < t->n_funcs; f++) {
        const struct mg_func *fn = &t->m->funcs.at[t->funcs[f]];
        uint32_t last = fn->line;
        MG_EACH_NODE(t->m, fn, a)
        {
            struct mg_node *n = &t->m->nodes.at[a];
            last = n->line ? n->line : last;
            n->line = last;
        }
    }
}

/* A twin keeps the ids of its module, so its arrays are as long. Whoever decodes it makes tables of that length: too
 * long where the kernel is a small part of a large module. */
static bool is_sparse(const struct mg_twin *t)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < t->n_funcs; f++) MG_EACH_NODE(t->m, &t->m->funcs.at[t->funcs[f]], a)
    n++;
    return t->m->nodes.n > 2 * n + 1000;
}

/* The module of the text alone, with the lines of the twin: both bodies hold the same nodes in the same order. */
static struct mg_module *read_back(const struct mg_twin *t)
{
    struct mg_buf text = MG_BUF_INIT;
    struct mg_module *m = NULL;
    mg_ptx_print(t->m, &text);
    if (mg_ptx_parse(text.at, text.n, NULL, &m, NULL)) m = NULL;
    mg_buf_release(&text);
    for (uint32_t f = 0; m && f < t->n_funcs; f++) {
        const struct mg_func *ours = &t->m->funcs.at[t->funcs[f]];
        mg_id theirs = mg_module_find_func(m, mg_name(t->m, ours->name)),
              b = theirs ? m->funcs.at[theirs].first_node : 0;
        MG_EACH_NODE(t->m, ours, a)
        {
            if (!b) break;
            m->nodes.at[b].line = t->m->nodes.at[a].line;
            b = m->nodes.at[b].next;
        }
    }
    return m;
}

/* What the backend loads: the module itself, or its text. */
static bool keep_code(struct mg_variant *v, struct mg_twin *t)
{
    struct mg_buf text = MG_BUF_INIT;
    bool takes_ir = mg_session_can(MG_BACKEND_TAKES_IR);
    if (!takes_ir || mg_session.config.dump) {
        mg_ptx_print(t->m, &text);
        v->text = mg_buf_take(&text);
    }
    if (takes_ir) {
        place_lines(t);
        if (is_sparse(t) && (v->ir = read_back(t))) return true;
        mg_module_finish(t->m);
        v->ir = t->m;
        t->m = NULL;
    }
    return v->ir || v->text;
}

static bool keep_symbols(struct mg_variant *c, const struct mg_twin *t)
{
    c->symbols = calloc(t->n_symbols + 1, sizeof *c->symbols);
    for (uint32_t k = 0; c->symbols && k < t->n_symbols; k++) {
        c->symbols[k] = (struct mg_twin_symbol){.name = strdup(t->symbols[k].name), .is_func = t->symbols[k].is_func};
        if (!c->symbols[k].name) return false;
        c->n_symbols++;
    }
    return c->symbols != NULL;
}

static bool instrument(struct mg_variant *v, struct mg_twin *t, struct mg_diag *d)
{
    struct mg_session *s = &mg_session;
    uint64_t start = mg_now_ns();
    struct mg_use uses[MG_MAX_USES];
    struct mg_tool_use given[MG_MAX_USES];
    uint32_t n = mg_tools_list(v->set, uses, v->uses);
    for (uint32_t k = 0; k < n; k++) given[k] = (struct mg_tool_use){uses[k].tool, uses[k].conf};
    bool gpu = mg_session_can(MG_BACKEND_HARDWARE);
    t->m->marked = !gpu;
    const char *channel = s->config.channel;
    const struct mg_tools_opts opts = {
        .size = sizeof opts,
        .sm = s->sm,
        .max_copies = gpu ? GPU_COPIES : 1,
        .reduce = gpu,
        .channel_every = channel && !strncmp(channel, "1/", 2) ? (uint32_t)strtoul(channel + 2, NULL, 10) : 0};
    for (uint32_t k = 0; k < n; k++) mg_select_enter(v->uses[k], MG_CONTROL_INSTRUMENT);
    enum mg_err err = mg_tools_instrument(given, n, v->code->sites, t, &opts, &v->layout, d);
    for (uint32_t k = 0; k < n; k++) mg_select_leave(v->uses[k]);
    if (err) return fail(&v->state, &v->reason, MG_REASON_tool_cannot, mg_diag_first(d, err));
    if (s->config.stress) mg_stress(t->m);
    if (s->config.plant) mg_plant(t->m, t->kernel);
    err = mg_module_verify(t->m, d);
    if (err) return fail(&v->state, &v->reason, MG_REASON_bad_twin, mg_diag_first(d, err));
    s->ns.instrument += mg_now_ns() - start;
    start = mg_now_ns();
    v->ctx_offset = t->ctx_offset;
    v->known = t->known; /* ours now */
    t->known = NULL;
    v->n_known = t->n_known;
    v->known_bytes = t->known_bytes;
    v->known_offset = t->known_offset;
    v->known_values = t->known_values;
    if (!keep_symbols(v, t) || !keep_code(v, t)) return fail(&v->state, &v->reason, MG_REASON_no_memory, NULL);
    s->ns.print += mg_now_ns() - start;
    return true;
}

static void dump_text(const struct mg_variant *v)
{
    char path[4400];
    if (!mg_session.config.dump || !mg_session.config.dir) return;
    snprintf(path, sizeof path, "%s/%.200s.ptx", mg_session.config.dir, v->code->name);
    if (mg_io_write(path, v->text, strlen(v->text), NULL)) mg_session_say("%s cannot be written", path);
}

/* Sites and reasons are the kernel's own, whatever tools it runs with. */
static bool examine_kernel(struct mg_inst *i)
{
    struct mg_code *c = i->code;
    if (c->state != MG_STATE_NEW) return c->state == MG_STATE_READY;
    if (!find_kernel(i)) return false;
    uint64_t start = mg_now_ns();
    struct mg_sites *sites = mg_sites_new(c->m, c->kernel);
    c->awaits = mg_session_can(MG_BACKEND_HARDWARE) && mg_kernel_may_await(c->m, c->kernel);
    mg_session.ns.analyse += mg_now_ns() - start;
    if (!sites) return fail(&c->state, &c->reason, MG_REASON_no_memory, NULL);
    __atomic_store_n(&c->sites, sites, __ATOMIC_RELEASE);
    c->state = MG_STATE_READY;
    mg_unwritten_look(c);
    return true;
}

static unsigned twin_flags(struct mg_variant *v)
{
    struct mg_use uses[MG_MAX_USES];
    uint32_t n = mg_tools_list(v->set, uses, v->uses);
    unsigned flags = mg_session_can(MG_BACKEND_HARDWARE) ? MG_TWIN_CONSTANTS | MG_TWIN_ADDRESSES : MG_TWIN_LAUNCHES;
    for (uint32_t k = 0; k < n; k++) flags = mg_tool_twin_flags(uses[k].tool, flags);
    return flags;
}

/* For the launch that the body knows; or for any, whatever its geometry is. */
static bool write_text(struct mg_body *b, bool for_any)
{
    struct mg_code *c = b->inst->code;
    struct mg_variant *v = b->variant;
    uint64_t start = mg_now_ns();
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_twin *t = NULL;
    enum mg_err err = mg_twin_new_as(c->m, c->kernel, twin_flags(v), &t, &d);
    bool ok = !err && t;
    if (ok) {
        t->ctas = b->ctas;
        t->registers = (uint32_t)b->inst->regs_native;
        t->threads = for_any ? 0 : b->threads;
        t->most_registers = for_any ? 0 : b->most_registers;
        t->must_fit = !for_any && b->must_fit;
    }
    if (ok) mg_session.backend->adapt(t);
    mg_session.ns.instrument += mg_now_ns() - start;
    if (!ok) {
        fail(&v->state, &v->reason, MG_REASON_detail, mg_diag_first(&d, err));
        c->launches = mg_kernel_launches(c->m, c->kernel);
    } else
        ok = instrument(v, t, &d);
    v->fitted = ok && t->fitted, v->fewer = ok ? t->fewer : 0;
    if (t) mg_twin_free(t);
    mg_diag_release(&d);
    return ok;
}

static bool make_text(struct mg_body *b)
{
    struct mg_code *c = b->inst->code;
    struct mg_variant *v = b->variant;
    if (v->state != MG_STATE_NEW) return v->state == MG_STATE_READY;
    if (!mg_session_has_memory(MG_TWIN_BYTES(c->ptx ? c->ptx->bytes : 0)))
        return fail(&v->state, &v->reason, MG_REASON_no_memory, NULL);
    if (!examine_kernel(b->inst))
        return fail(&v->state, &v->reason, MG_REASON_detail,
                    c->reason ? c->reason : mg_reason_text(MG_REASON_no_memory));
    bool ok = write_text(b, false);
    if (ok && v->fitted && mg_session.backend->is_for_any(b)) {
        mg_variant_clear(v);
        ok = write_text(b, true);
    }
    mg_session.n_twins += ok;
    if (ok) {
        v->state = MG_STATE_READY;
        dump_text(v);
    }
    return ok;
}

/* ---- a text ahead of the kernel's first launch ---------------------------------------------------------------- */

struct ahead {
    struct mg_body body; /* first */
    struct mg_inst inst;
    struct mg_code code;
    struct mg_variant variant;
};

static unsigned n_launching; /* launches that want the lock, which goes to them first; atomic */

static void lock_for_launch(void)
{
    __atomic_add_fetch(&n_launching, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&building);
    __atomic_sub_fetch(&n_launching, 1, __ATOMIC_RELAXED);
}

static void lock_behind_launches(void)
{
    while (__atomic_load_n(&n_launching, __ATOMIC_RELAXED)) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    pthread_mutex_lock(&building);
}

struct mg_body *mg_twin_ahead(struct mg_img *im, uint32_t text, mg_id kernel, uint32_t set, uint32_t registers)
{
    struct ahead *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    struct mg_ptx *p = &im->ptx[text];
    a->code = (struct mg_code){.im = im, .ptx = p, .m = p->m, .kernel = kernel, .state = MG_STATE_READY};
    a->code.name = (char *)(uintptr_t)mg_name(p->m, p->m->funcs.at[kernel].name);
    a->inst = (struct mg_inst){.code = &a->code, .regs_native = (int32_t)registers};
    a->variant = (struct mg_variant){.code = &a->code, .set = set};
    a->body = (struct mg_body){.inst = &a->inst, .variant = &a->variant};
    lock_behind_launches();
    bool ok = mg_session_has_memory(MG_TWIN_BYTES(p->bytes)) && (a->code.sites = mg_sites_new(p->m, kernel)) != NULL;
    a->code.awaits = ok && mg_kernel_may_await(p->m, kernel);
    ok = ok && write_text(&a->body, true) && !a->variant.fitted;
    pthread_mutex_unlock(&building);
    if (ok) return &a->body;
    mg_twin_ahead_free(&a->body);
    return NULL;
}

void mg_twin_ahead_free(struct mg_body *b)
{
    struct ahead *a = (struct ahead *)b;
    mg_variant_clear(&a->variant);
    free(a->variant.reason);
    free(a->code.reason);
    mg_sites_free(a->code.sites);
    free(a);
}

const struct mg_module *mg_twin_parsed(struct mg_img *im, uint32_t text)
{
    lock_behind_launches();
    const struct mg_module *m = mg_img_parsed(im, text)->m;
    pthread_mutex_unlock(&building);
    return m;
}

/* ---- the body: a variant in a context ---------------------------------------------------------------------------- */

static struct mg_variant *variant_get(struct mg_code *c, uint32_t set) /* under the session's lock */
{
    struct mg_variant *v = c->variants;
    while (v && v->set != set) v = v->next;
    if (!v && (v = calloc(1, sizeof *v))) {
        *v = (struct mg_variant){.next = c->variants, .code = c, .set = set};
        c->variants = v;
    }
    return v;
}

struct mg_body *mg_kernel_body(struct mg_inst *i, uint32_t set)
{
    struct mg_body *b = __atomic_load_n(&i->bodies, __ATOMIC_ACQUIRE);
    while (b && b->variant->set != set) b = b->next;
    if (b) return b; /* the warm way takes no lock */
    pthread_mutex_lock(&mg_session.lock);
    for (b = i->bodies; b && b->variant->set != set;) b = b->next;
    struct mg_variant *v = b ? b->variant : variant_get(i->code, set);
    if (v && !b && (b = calloc(1, sizeof *b))) {
        *b = (struct mg_body){.next = i->bodies, .inst = i, .variant = v};
        __atomic_store_n(&i->bodies, b, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mg_session.lock);
    return b;
}

static bool fill_symbols(struct mg_body *b)
{
    const struct mg_variant *c = b->variant;
    const struct mg_backend *of = mg_session.backend;
    if (!c->n_symbols) return true;
    uint64_t *values = calloc(c->n_symbols, sizeof *values);
    for (uint32_t k = 0; values && k < c->n_symbols; k++) {
        const struct mg_twin_symbol *s = &c->symbols[k];
        bool ok = s->is_func ? (values[k] = of->function_address(b, s->name)) != 0
                             : of->global(b->inst->function, s->name, &values[k]);
        if (!ok) {
            free(values);
            return fail(&b->state, &b->reason, MG_REASON_no_address, s->name);
        }
    }
    if (values) b->symbols = of->table(b, values, c->n_symbols);
    free(values);
    return b->symbols || fail(&b->state, &b->reason, MG_REASON_no_room_symbols, NULL);
}

static void copy_attribute(void *from, void *to, int attribute)
{
    int v;
    if (MG_REAL_AS(cuFuncGetAttribute, int *, int, cu_function)(&v, attribute, from) == CUE_SUCCESS && v > 0)
        MG_REAL_AS(cuFuncSetAttribute, cu_function, int, int)(to, attribute, v);
}

void mg_twin_settings(struct mg_inst *i, void *twin)
{
    copy_attribute(i->function, twin, CUFUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    copy_attribute(i->function, twin, CUFUNC_PREFERRED_SHARED_MEMORY_CARVEOUT);
    copy_attribute(i->function, twin, CUFUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    copy_attribute(i->function, twin, CUFUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
}

uint64_t mg_jit_spent(uint64_t ns)
{
    static __thread uint64_t here;
    __atomic_fetch_add(&mg_session.ns.jit, ns, __ATOMIC_RELAXED);
    return here += ns;
}

static bool load(struct mg_body *b)
{
    void *f = NULL;
    char why[500] = "";
    if (!fill_symbols(b)) return false;
    if (b->variant->known_bytes && !mg_session.backend->known(b))
        return fail(&b->state, &b->reason, MG_REASON_no_constants, NULL);
    uint64_t start = mg_now_ns(), jit = mg_jit_spent(0);
    bool ok = mg_session.backend->load(b, &f, why, sizeof why);
    mg_session.ns.load += mg_now_ns() - start - (mg_jit_spent(0) - jit);
    if (!ok) return fail(&b->state, &b->reason, MG_REASON_detail, why);
    mg_twin_settings(b->inst, f);
    b->twin = f;
    mg_kernel_add_twin(b);
    return true;
}

/* One attempt; the state stays NEW when the twin may not be loaded now. */
static void make(struct mg_body *b, const struct mg_shape *s)
{
    if (!make_text(b))
        fail(&b->state, &b->reason, MG_REASON_detail,
             b->variant->reason ? b->variant->reason : mg_reason_text(MG_REASON_no_memory));
    else if (!mg_session.backend->may_load(b, s))
        return;
    else if (load(b))
        __atomic_store_n(&b->state, MG_STATE_READY, __ATOMIC_RELEASE);
    if (b->state == MG_STATE_FAILED && mg_session.config.verbose)
        mg_session_say("%s runs native: %s", b->inst->code->name, b->reason);
}

void mg_kernel_prepare(struct mg_body *b)
{
    lock_for_launch();
    bool ok = b->state == MG_STATE_NEW && make_text(b);
    pthread_mutex_unlock(&building);
    if (ok) mg_session.backend->compile(b);
}

/* For what geometry the twin is made: that of the launch that asks, until it is there. */
static void ask_for(struct mg_body *b, const struct mg_shape *s)
{
    bool must_fit = false;
    uint32_t most = mg_session.backend->most_registers(b->inst, s, &must_fit);
    lock_for_launch();
    if (b->state == MG_STATE_NEW) {
        b->threads = s->block[0] * s->block[1] * s->block[2];
        b->ctas = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2];
        __atomic_store_n(&b->most_registers, most, __ATOMIC_RELAXED); /* another thread may be compiling for its own */
        __atomic_store_n(&b->must_fit, must_fit, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&building);
}

int mg_capture_relax(void)
{
    return mg_cu_relax_captures(MG_REAL_AS(cuThreadExchangeStreamCaptureMode, int *));
}

void mg_capture_unrelax(int before)
{
    mg_cu_restore_captures(MG_REAL_AS(cuThreadExchangeStreamCaptureMode, int *), before);
}

bool mg_kernel_twin(struct mg_body *b, const struct mg_shape *s)
{
    if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == MG_STATE_NEW) {
        int mode = mg_capture_relax();
        mg_session.backend->ahead(b);
        ask_for(b, s);
        mg_kernel_prepare(b); /* other threads make other twins meanwhile */
        lock_for_launch();
        if (b->state == MG_STATE_NEW) make(b, s);
        pthread_mutex_unlock(&building);
        mg_capture_unrelax(mode);
    }
    return __atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == MG_STATE_READY;
}

static bool has_word(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%";
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !strchr(letters, at[-1])) && (!at[n] || !strchr(letters, at[n]))) return true;
    return false;
}

void mg_kernel_find(struct mg_inst *i)
{
    lock_for_launch();
    if (i->code->state == MG_STATE_NEW && !i->code->ptx && !i->code->located) {
        i->code->located = true;
        struct mg_img *im = i->code->im;
        for (uint32_t k = 0; k < im->n_ptx && !i->code->ptx; k++)
            if (im->n_ptx == 1 || has_word(im->ptx[k].text, i->code->name)) i->code->ptx = &im->ptx[k];
    }
    pthread_mutex_unlock(&building);
}
