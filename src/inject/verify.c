/* --verify: does the twin leave the same bytes behind as the application's own code? At a launch, with
 * everything else at rest:
 *
 *   save ── native ── keep what changed ── restore ── native ── note what is not repeatable ── restore ── twin ──
 * compare
 *
 * at the same addresses. Saved is all memory that a store can reach: allocations (allocs.c) and variables of
 * the kernel's module to which the addresses that it writes lead back (analysis/reach), or all of them
 * where that cannot be told. Memory that the host shares (pinned, managed) is only
 * watched: when the first native run has changed it, that run was the launch, nothing is run again.
 * The same when the run does not end while we wait: it may wait for what its caller does next.
 * Where the twin differs, two more native runs tell whether those bytes are repeatable at all.
 * Not compared, by name: kernels that print, allocate, write surfaces; captures and nodes of graphs;
 * what was handed a pointer to memory that is not known. Such launches run instrumented as ever. */
#include "inject/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/reach.h"
#include "base/json.h"
#include "base/vec.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"

#define CUDEV_PAGEABLE_MEMORY_ACCESS 88
#define MORE_RUNS                    2

struct area { /* one allocation or variable while a launch is verified */
    struct mg_area a;
    bool variable; /* of the module: not in the list of allocations */
    bool dirty;    /* some run has changed it */
    char *before;
    char *native;      /* what the first run left; NULL: the same as before */
    char *twin;        /* what the twin left, where that differs */
    uint8_t *unstable; /* a bit for every byte in which native runs differ; NULL: none */
};
struct mg_verify {
    struct area *areas;
    uint32_t n;
    uint64_t bytes; /* of those that are compared */
    char *now;      /* room for the largest */
    const struct mg_code *code;
    uint64_t number; /* of the launch */
    bool shared;     /* an argument points to memory that the host shares */
};

struct refusal {
    enum mg_reason why;
    uint64_t n;
};
static struct {
    pthread_mutex_t launching; /* one launch at a time */
    pthread_mutex_t lock;      /* what follows */
    uint64_t launches, bytes, excluded, differences;
    MG_VEC(struct refusal) refused;
    char *first; /* the first difference, as JSON */
} all = {.launching = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

void mg_verify_enter(void)
{
    pthread_mutex_lock(&all.launching);
}
void mg_verify_leave(void)
{
    pthread_mutex_unlock(&all.launching);
}

void mg_verify_skip(enum mg_reason why)
{
    pthread_mutex_lock(&all.lock);
    uint32_t k = 0;
    while (k < all.refused.n && all.refused.at[k].why != why) k++;
    if (k == all.refused.n) *mg_vec_push(&all.refused) = (struct refusal){why, 0};
    all.refused.at[k].n++;
    pthread_mutex_unlock(&all.lock);
}

/* ---- what is not compared ------------------------------------------------------------------------------- */

static bool heap_used; /* a kernel that allocates was met: others may write what it made, which we cannot save */

/* What the text of the kernel says against running it three times. */
static enum mg_reason scan_code(const struct mg_code *c)
{
    const struct mg_module *m = c->m;
    enum mg_reason why = MG_REASON_none;
    for (uint32_t f = 0; f < c->sites->n_funcs; f++) MG_EACH_NODE(m, &m->funcs.at[c->sites->funcs[f]], id)
        {
            const struct mg_node *n = &m->nodes.at[id];
            if (n->kind != MG_NODE_inst) continue;
            const char *op = mg_name(m, mg_node_form(m, n)->text);
            if (!strncmp(op, "sust", 4) || !strncmp(op, "sured", 5)) why = MG_REASON_skip_surfaces;
            if (!strncmp(op, "multimem", 8)) why = MG_REASON_skip_multimem;
            for (uint32_t k = 0; k < n->n_opnds && !strncmp(op, "call", 4); k++) {
                const struct mg_opnd *o = &m->opnds.at[n->opnd + k];
                const char *name = o->kind == MG_OPND_func ? mg_name(m, m->funcs.at[o->id].name) : "";
                if (!strcmp(name, "vprintf")) why = MG_REASON_skip_prints;
                if (!strcmp(name, "malloc") || !strcmp(name, "free")) heap_used = true;
            }
        }
    return why;
}

/* Could the kernel reach what lies there, though it is no allocation that we know? */
static bool is_strange(uint64_t p)
{
    unsigned type;
    int pageable = 0;
    unsigned char present;
    if (p >> 32 == 0 || p >> 47) return false;
    if (MG_REAL_AS(cuPointerGetAttribute, void *, int, cu_ptr)(&type, CUPTR_MEMORY_TYPE, p) == CUE_SUCCESS) return true;
    MG_REAL_AS(cuDeviceGetAttribute, int *, int, cu_device)(&pageable, CUDEV_PAGEABLE_MEMORY_ACCESS, 0);
    return pageable && !mincore((void *)(uintptr_t)(p & ~UINT64_C(4095)), 4096, &present);
}

static bool holds(const struct mg_verify *v, uint64_t p)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (p - v->areas[i].a.at < v->areas[i].a.bytes) return true;
    return false;
}

/* Does what is written lead back to these bytes of the parameters? */
static bool reaches(const struct mg_reach *reach, uint32_t offset)
{
    bool found = !reach || reach->everything;
    for (uint32_t k = 0; !found && k < reach->n_params; k++) found = reach->params[k] == offset;
    return found;
}

static enum mg_reason check_arguments(struct mg_verify *v, const struct mg_run *r)
{
    const struct mg_inst *i = r->inst;
    struct mg_area a;
    uint64_t p;
    for (uint32_t k = 0; r->values && k < i->n_params; k++)
        for (uint32_t at = i->param_offsets[k]; at % 8 == 0 && at + 8 <= i->param_offsets[k] + i->param_sizes[k];
             at += 8) {
            memcpy(&p, (const char *)r->values + at, 8);
            if (mg_area_find(p, &a))
                v->shared |= a.kind != MG_AREA_DEVICE;
            else if (!holds(v, p) && reaches(i->code->reach, at) && is_strange(p))
                return MG_REASON_skip_strange;
        }
    return MG_REASON_none;
}

static enum mg_reason why_not(const struct mg_run *r)
{
    struct mg_code *c = r->inst->code;
    if (!c->verify_known) {
        c->verify_why = scan_code(c);
        c->reach = mg_reach_new(c->m, c->kernel);
        c->verify_known = true;
    }
    if (r->node) return MG_REASON_skip_captured;
    if (c->verify_why) return c->verify_why;
    if (heap_used) return MG_REASON_skip_heap;
    if (mg_areas_capturing()) return MG_REASON_skip_capturing;
    if (mg_areas_peers()) return MG_REASON_skip_peers;
    return mg_settle_is_stuck() ? MG_REASON_skip_busy : MG_REASON_none;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static uint64_t available(void)
{
    char line[128];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu kB", &kb) != 1) {
    }
    if (f) fclose(f);
    return kb << 10;
}

static bool writes_variable(const struct mg_reach *reach, mg_id var)
{
    bool found = !reach || reach->everything;
    for (uint32_t k = 0; !found && k < reach->n_vars; k++) found = reach->vars[k] == var;
    return found;
}

static void add_variables(struct mg_verify *v, const struct mg_inst *i)
{
    const struct mg_module *m = i->code->m;
    for (mg_id k = 1; k < m->vars.n; k++) {
        const struct mg_var *var = &m->vars.at[k];
        uint64_t at;
        if (var->func || !writes_variable(i->code->reach, k) || var->space != MG_SPACE_global || !mg_var_bytes(var) ||
            !mg_session.backend->global(i->function, mg_name(m, var->name), &at))
            continue;
        v->areas[v->n++] = (struct area){
            .a = {.at = at, .bytes = mg_var_bytes(var), .kind = var->managed ? MG_AREA_MANAGED : MG_AREA_DEVICE},
            .variable = true};
    }
}

static int by_address(const void *a, const void *b)
{
    const struct area *x = a, *y = b;
    return x->a.at < y->a.at ? -1 : x->a.at > y->a.at;
}

/* Marks what the arguments lead to; memory that is mapped piece by piece goes on in the next piece. */
static bool *mark(const struct mg_run *r, const struct mg_area *list, uint32_t n)
{
    const struct mg_reach *reach = r->inst->code->reach;
    bool any = !reach || reach->everything || !r->values, *marks = calloc(n + 1, sizeof *marks);
    uint64_t p;
    for (uint32_t k = 0; marks && k < n; k++) {
        marks[k] = any;
        for (uint32_t i = 0; !any && i < reach->n_params; i++)
            if (reach->params[i] + 8 <= r->inst->param_bytes) {
                memcpy(&p, (const char *)r->values + reach->params[i], 8);
                marks[k] |= p - list[k].at < list[k].bytes;
            }
    }
    for (uint32_t k = 1; marks && k < n; k++)
        marks[k] |=
            marks[k - 1] && list[k].mapped && list[k - 1].mapped && list[k - 1].at + list[k - 1].bytes == list[k].at;
    for (uint32_t k = n; marks && k-- > 1;)
        marks[k - 1] |=
            marks[k] && list[k].mapped && list[k - 1].mapped && list[k - 1].at + list[k - 1].bytes == list[k].at;
    return marks;
}

/* Why it ran once, as why it is not compared. */
static enum mg_reason skip_of(enum mg_reason once)
{
    switch (once) {
    case MG_REASON_verify_waits:
        return MG_REASON_skip_waits;
    case MG_REASON_verify_failed:
        return MG_REASON_skip_native_failed;
    case MG_REASON_verify_shared:
        return MG_REASON_skip_shared;
    default:
        return MG_REASON_skip_result;
    }
}

/* All that the kernel may write. NULL: *why. */
static struct mg_verify *collect(const struct mg_run *r, enum mg_reason *why)
{
    uint32_t n;
    uint64_t sum = 0, largest = 0;
    cu_ctx ctx = NULL;
    struct mg_verify *v = calloc(1, sizeof *v);
    struct mg_area *list = mg_areas_copy(&n);
    bool *marks = list ? mark(r, list, n) : NULL;
    *why = MG_REASON_no_memory;
    if (!v || !marks || !(v->areas = calloc(n + r->inst->code->m->vars.n + 1, sizeof *v->areas))) {
        free(v);
        free(list);
        free(marks);
        return NULL;
    }
    v->code = r->inst->code;
    v->number = r->number;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&ctx);
    for (uint32_t k = 0; k < n; k++)
        if (marks[k] && (list[k].kind != MG_AREA_DEVICE || list[k].ctx == ctx)) v->areas[v->n++].a = list[k];
    free(list);
    free(marks);
    add_variables(v, r->inst);
    qsort(v->areas, v->n, sizeof *v->areas, by_address);
    for (uint32_t k = 0; k < v->n; k++) {
        sum += v->areas[k].a.bytes;
        largest = MG_MAX(largest, v->areas[k].a.bytes);
        v->bytes += v->areas[k].a.kind == MG_AREA_DEVICE ? v->areas[k].a.bytes : 0;
    }
    if (2 * sum + 2 * largest > available())
        *why = MG_REASON_skip_host_full;
    else if ((v->now = malloc(largest + 1)))
        *why = check_arguments(v, r);
    return v;
}

static void release(struct mg_verify *v)
{
    for (uint32_t i = 0; v && i < v->n; i++) {
        free(v->areas[i].before);
        free(v->areas[i].native);
        free(v->areas[i].twin);
        free(v->areas[i].unstable);
    }
    if (v) {
        free(v->areas);
        free(v->now);
    }
    free(v);
}

/* Both under the lock of the list: false when it was freed meanwhile, or the driver does not answer. */
static bool read_area(const struct area *x, void *to)
{
    if (!x->variable && !mg_area_lives(&x->a)) return false;
    if (x->a.kind == MG_AREA_DEVICE)
        return MG_REAL_AS(cuMemcpyDtoH_v2, void *, cu_ptr, size_t)(to, x->a.at, x->a.bytes) == CUE_SUCCESS;
    memcpy(to, (const void *)(uintptr_t)x->a.at, x->a.bytes);
    return true;
}

static bool save(struct mg_verify *v)
{
    bool ok = true;
    mg_areas_lock();
    for (uint32_t i = 0; i < v->n && ok; i++)
        ok = (v->areas[i].before = malloc(v->areas[i].a.bytes)) && read_area(&v->areas[i], v->areas[i].before);
    mg_areas_unlock();
    return ok;
}

static void restore(struct mg_verify *v)
{
    mg_areas_lock();
    for (uint32_t i = 0; i < v->n; i++) {
        const struct area *x = &v->areas[i];
        if (x->dirty && (x->variable || mg_area_lives(&x->a)))
            MG_REAL_AS(cuMemcpyHtoD_v2, cu_ptr, const void *, size_t)(x->a.at, x->before, x->a.bytes);
    }
    mg_areas_unlock();
}

/* Has the run changed memory that the host shares? */
static bool host_changed(struct mg_verify *v)
{
    bool changed = false;
    mg_areas_lock();
    for (uint32_t i = 0; i < v->n && !changed; i++) {
        const struct area *x = &v->areas[i];
        changed = x->a.kind != MG_AREA_DEVICE && (!read_area(x, v->now) || memcmp(v->now, x->before, x->a.bytes));
    }
    mg_areas_unlock();
    return changed;
}

/* ---- what each run left behind ---------------------------------------------------------------------------------- */

typedef bool (*look_fn)(struct area *x, const char *now);

static bool each_device_area(struct mg_verify *v, look_fn fn)
{
    bool ok = true;
    mg_areas_lock();
    for (uint32_t i = 0; i < v->n && ok; i++) {
        struct area *x = &v->areas[i];
        if (x->a.kind != MG_AREA_DEVICE) continue;
        if (!(ok = read_area(x, v->now))) break;
        x->dirty |= memcmp(v->now, x->before, x->a.bytes) != 0;
        ok = fn(x, v->now);
    }
    mg_areas_unlock();
    return ok;
}

static bool copy(char **to, const char *from, uint64_t bytes)
{
    free(*to);
    if ((*to = malloc(bytes))) memcpy(*to, from, bytes);
    return *to != NULL;
}

static const char *native_of(const struct area *x)
{
    return x->native ? x->native : x->before;
}

static bool keep_native(struct area *x, const char *now)
{
    return !x->dirty || copy(&x->native, now, x->a.bytes);
}

static bool note_unstable(struct area *x, const char *now)
{
    const char *native = native_of(x);
    if (!memcmp(now, native, x->a.bytes)) return true;
    if (!x->unstable && !(x->unstable = calloc(x->a.bytes / 8 + 1, 1))) return false;
    for (uint64_t k = 0; k < x->a.bytes; k++)
        if (now[k] != native[k]) x->unstable[k / 8] |= (uint8_t)(1u << k % 8);
    return true;
}

static bool keep_twin(struct area *x, const char *now)
{
    return !memcmp(now, native_of(x), x->a.bytes) || copy(&x->twin, now, x->a.bytes);
}

static bool is_unstable(const struct area *x, uint64_t k)
{
    return x->unstable && x->unstable[k / 8] >> k % 8 & 1;
}

struct difference {
    const struct area *area;
    uint64_t at, bytes;
}; /* the first, and how many there are */

static struct difference compare(const struct mg_verify *v)
{
    struct difference d = {0};
    for (uint32_t i = 0; i < v->n; i++) {
        const struct area *x = &v->areas[i];
        for (uint64_t k = 0; x->twin && k < x->a.bytes; k++) {
            if (x->twin[k] == native_of(x)[k] || is_unstable(x, k)) continue;
            if (!d.bytes++) d.area = x, d.at = k;
        }
    }
    return d;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static void write_all(struct mg_store *store) /* under the lock */
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "launches", all.launches);
    mg_json_key_u64(&j, "bytes", all.bytes);
    mg_json_key_u64(&j, "excluded_bytes", all.excluded);
    mg_json_key_u64(&j, "differences", all.differences);
    mg_json_key(&j, "first");
    mg_json_raw(&j, all.first ? all.first : "null");
    mg_json_key(&j, "not_compared");
    mg_json_arr(&j);
    for (uint32_t k = 0; k < all.refused.n; k++) {
        mg_json_obj(&j);
        mg_json_key(&j, "reason");
        mg_json_str(&j, mg_reason_text(all.refused.at[k].why));
        mg_json_key_u64(&j, "launches", all.refused.at[k].n);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_store_tool_json(store, "margay", "verify", b.at);
    mg_buf_release(&b);
}

void mg_verify_tell(void)
{
    pthread_mutex_lock(&all.lock);
    write_all(mg_session.store);
    pthread_mutex_unlock(&all.lock);
}

static bool uses_atomics(const struct mg_code *c)
{
    for (uint32_t f = 0; f < c->sites->n_funcs; f++) MG_EACH_NODE(c->m, &c->m->funcs.at[c->sites->funcs[f]], id)
        {
            const struct mg_node *n = &c->m->nodes.at[id];
            if (n->kind == MG_NODE_inst && mg_node_form(c->m, n)->op == MG_OP_atom) return true;
        }
    return false;
}

/* at: NULL when the twin failed with `error`. */
static char *describe(const struct mg_verify *v, const struct difference *at, const char *error)
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    char address[24];
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    mg_json_key(&j, "kernel");
    mg_json_str(&j, v->code->name);
    mg_json_key_u64(&j, "launch", v->number);
    if (at) {
        const struct mg_area *a = &at->area->a;
        uint64_t where = a->at + at->at, id = a->id, offset = at->at, bytes;
        bool known = !at->area->variable;
        if (mg_session_can(MG_BACKEND_ALLOCATIONS)) known = mg_session.backend->allocation(where, &id, &offset, &bytes);
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)where);
        mg_json_key(&j, "address");
        mg_json_str(&j, address);
        mg_json_key(&j, "allocation");
        if (known)
            mg_json_u64(&j, id);
        else
            mg_json_null(&j);
        mg_json_key_u64(&j, "offset", offset);
        mg_json_key_u64(&j, "native", (unsigned char)native_of(at->area)[at->at]);
        mg_json_key_u64(&j, "instrumented", (unsigned char)at->area->twin[at->at]);
        mg_json_key_u64(&j, "bytes", at->bytes);
    }
    mg_json_key(&j, "atomics"); /* whose results are used: in which order threads come may show */
    mg_json_bool(&j, uses_atomics(v->code));
    mg_json_key(&j, "error");
    mg_json_str(&j, error);
    mg_json_end(&j, '}');
    return mg_buf_take(&b);
}

static void record(const struct mg_verify *v, const struct difference *d, const char *error)
{
    uint64_t excluded = 0;
    for (uint32_t i = 0; i < v->n; i++)
        for (uint64_t k = 0; v->areas[i].unstable && k < v->areas[i].a.bytes / 8 + 1; k++)
            excluded += (uint64_t)__builtin_popcount(v->areas[i].unstable[k]);
    bool differs = error || d->bytes;
    pthread_mutex_lock(&all.lock);
    all.launches++;
    all.bytes += v->bytes;
    all.excluded += excluded;
    all.differences += differs;
    bool news = differs && !all.first;
    if (news) all.first = describe(v, error ? NULL : d, error);
    pthread_rwlock_rdlock(&mg_session.closing);
    if (news && mg_session.store) /* at once: the program may not live to its end */
        write_all(mg_session.store);
    pthread_rwlock_unlock(&mg_session.closing);
    pthread_mutex_unlock(&all.lock);
}

/* ---- one launch -------------------------------------------------------------------------------------------------- */

static const char *error_text(cu_result rc)
{
    const char *name = mg_cu_result_name(rc);
    return name ? name : "an unknown error";
}

/* Did a native run tell that its result may depend on how long it was let run (docs/schedule.md)? Static, since
 * a run that we stopped waiting for tells it later. */
static bool dependent;

static void native_ended(void *user, const struct mg_launch_done *d)
{
    (void)user;
    if (d->schedule_dependent) __atomic_store_n(&dependent, true, __ATOMIC_RELEASE);
}

/* The application's own code, to its end. False: stop here. */
static bool run_native(const struct mg_verify *v, const struct mg_call *c, cu_result *rc, enum mg_reason *why)
{
    cu_result end = CUE_SUCCESS;
    if (mg_session_can(MG_BACKEND_TELLS_ENDS)) mg_session.backend->note(native_ended, NULL);
    *rc = c->send(c, c->f, c->params, c->extra);
    if (*rc != CUE_SUCCESS) return false;
    if (!mg_settle(&end, v->shared))
        *why = MG_REASON_verify_waits;
    else if (end != CUE_SUCCESS)
        *why = MG_REASON_verify_failed;
    return !*why;
}

static bool native_runs(struct mg_verify *v, const struct mg_call *c, cu_result *rc, enum mg_reason *why)
{
    __atomic_store_n(&dependent, false, __ATOMIC_RELEASE);
    if (!run_native(v, c, rc, why)) return false;
    *why = MG_REASON_verify_shared;
    if (host_changed(v)) return false;
    *why = MG_REASON_verify_unread;
    if (!each_device_area(v, keep_native)) return false;
    *why = MG_REASON_none;
    restore(v);
    if (!run_native(v, c, rc, why)) return false;
    *why = MG_REASON_verify_unread;
    if (!each_device_area(v, note_unstable)) return false;
    *why = MG_REASON_none;
    restore(v);
    return true;
}

bool mg_verify_begin(const struct mg_call *c, const struct mg_run *r, struct mg_verify **out, cu_result *rc,
                     enum mg_reason *why)
{
    cu_result before = CUE_SUCCESS;
    enum mg_reason skip = why_not(r);
    *out = NULL;
    *why = MG_REASON_none;
    if (!skip && !mg_settle(&before, false)) skip = MG_REASON_skip_busy;
    if (!skip && before != CUE_SUCCESS) skip = MG_REASON_skip_failed;
    struct mg_verify *v = skip ? NULL : collect(r, &skip);
    if (!skip && !save(v)) skip = MG_REASON_skip_unread;
    if (skip) {
        release(v);
        mg_verify_skip(skip);
        return false;
    }
    if (!native_runs(v, c, rc, why)) {
        if (*why) mg_verify_skip(skip_of(*why));
        release(v);
        return true;
    }
    *out = v;
    return false;
}

bool mg_verify_again(struct mg_verify *v)
{
    cu_result end = CUE_SUCCESS;
    if (!mg_settle(&end, false) || end != CUE_SUCCESS) return false;
    restore(v);
    return true;
}

void mg_verify_end(struct mg_verify *v, const struct mg_call *c, cu_result rc)
{
    struct difference d = {0};
    enum mg_reason why = MG_REASON_none;
    const char *error = NULL;
    cu_result end = CUE_SUCCESS;
    bool ok = rc == CUE_SUCCESS && mg_settle(&end, false);
    if (!ok)
        mg_verify_skip(rc == CUE_SUCCESS ? MG_REASON_skip_endless : MG_REASON_skip_refused);
    else if (end != CUE_SUCCESS)
        error = error_text(end);
    else if (!(ok = each_device_area(v, keep_twin)))
        mg_verify_skip(MG_REASON_skip_unread);
    else
        d = compare(v);
    for (int k = 0; ok && d.bytes && k < MORE_RUNS; k++) { /* the last of them leaves a native result behind */
        restore(v);
        ok = run_native(v, c, &rc, &why) && each_device_area(v, note_unstable);
        d = compare(v);
    }
    if (ok && d.bytes && __atomic_load_n(&dependent, __ATOMIC_ACQUIRE))
        mg_verify_skip(MG_REASON_skip_schedule);
    else if (ok)
        record(v, &d, error);
    release(v);
}
