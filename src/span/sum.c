#include "span/sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cu.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/map.h"
#include "span/origins.h"

#define NO_PATH UINT32_MAX

struct path { /* of ranges inside each other, by their rows */
    uint32_t row, outer;
    bool again; /* row is further out, too */
};
struct cover { /* of time, by what is one */
    uint64_t ns, latest;
};
struct tables { /* only while spans are read */
    struct mg_map calls, work, threads, ranges, messages, paths, stacks, inside, kernels;
    MG_VEC(struct cover) kernels_at; /* by process, device and name: it ran, with its events recorded */
    struct mg_map range_paths;       /* of every range */
    MG_VEC(struct path) paths_at;
    struct mg_origins launches;
};

/* ---- times ------------------------------------------------------------------------------------------- */

/* 16 buckets for every power of two. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 16) return (uint32_t)ns;
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(ns);
    return 16 * (bits - 3) + (uint32_t)(ns >> (bits - 4) & 15);
}

static uint64_t middle_of(uint32_t bucket)
{
    if (bucket < 16) return bucket;
    uint32_t bits = bucket / 16 + 3;
    return (1ull << bits) + ((uint64_t)(bucket % 16) << (bits - 4)) + (1ull << (bits - 4)) / 2;
}

static void add_time(struct mg_sum_times *t, uint64_t ns)
{
    t->least_ns = t->n ? MG_MIN(t->least_ns, ns) : ns;
    t->most_ns = MG_MAX(t->most_ns, ns);
    t->n++;
    t->buckets[bucket_of(ns)]++;
}

uint64_t mg_sum_quantile(const struct mg_sum_times *t, double share)
{
    uint64_t below = 0, want = (uint64_t)(share * (double)t->n);
    for (uint32_t i = 0; i < MG_SUM_BUCKETS; i++) {
        below += t->buckets[i];
        if (below > want) return MG_MIN(MG_MAX(middle_of(i), t->least_ns), t->most_ns);
    }
    return t->most_ns;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static const struct mg_cu_call *driver_call(const char *name)
{
    int entry = mg_cu_entry_find(name);
    return entry < 0 ? NULL : mg_call_of_entry((uint32_t)entry);
}

static struct mg_sum_call *call_row(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    uint64_t at, key = mg_mix64((uint64_t)(uintptr_t)p->name + p->layer) | 1;
    if (mg_map_get(&t->calls, key, &at)) return &s->calls.at[at];
    const struct mg_cu_call *c = p->layer == MG_LAYER_driver ? driver_call(p->name) : NULL;
    mg_map_set(&t->calls, key, s->calls.n);
    struct mg_sum_call *r = mg_vec_push(&s->calls);
    *r = (struct mg_sum_call){.layer = p->layer,
                              .name = p->name,
                              .class_ = p->class_,
                              .waits = c ? c->waits : MG_WAITS_nothing,
                              .opencl = c ? c->opencl : ""};
    return r;
}

static struct mg_sum_stack *stack_row(struct mg_sum *s, struct tables *t, uint32_t stack, const char *name)
{
    uint64_t at, words[] = {stack, (uint64_t)(uintptr_t)name}, key = mg_hash64(words, sizeof words, 5) | 1;
    if (mg_map_get(&t->stacks, key, &at)) return &s->stacks.at[at];
    mg_map_set(&t->stacks, key, s->stacks.n);
    struct mg_sum_stack *r = mg_vec_push(&s->stacks);
    *r = (struct mg_sum_stack){.stack = stack, .name = name};
    return r;
}

static void add_stack(struct mg_sum *s, struct tables *t, const struct mg_span *p, bool waits)
{
    bool launches = p->class_ == MG_CLASS_kernel;
    s->all_launches += launches;
    if (p->stack == UINT32_MAX) return;
    struct mg_sum_stack *r = stack_row(s, t, p->stack, p->name);
    r->launches += launches;
    s->stacked_launches += launches;
    if (!waits) return;
    r->waits++;
    r->wait_ns += p->end_ns - p->begin_ns;
    s->stacked_waits++;
}

static void add_call(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    struct mg_sum_call *r = call_row(s, t, p);
    uint64_t ns = p->end_ns - p->begin_ns;
    r->count++;
    r->failed += p->result != 0;
    r->time_ns += ns;
    r->longest_ns = MG_MAX(r->longest_ns, ns);
    if (p->layer != MG_LAYER_driver) return;
    s->class_count[p->class_]++;
    s->class_time_ns[p->class_] += ns;
    s->gtpin[p->class_ == MG_CLASS_kernel ? 0 : *r->opencl ? 1 : 2]++;
    /* with pageable the call does not say which memory it was */
    bool waits = r->waits != MG_WAITS_nothing && r->waits != MG_WAITS_pageable;
    if (waits) {
        s->waits++;
        s->wait_ns += ns;
    }
    add_stack(s, t, p, waits);
    mg_origins_add(&t->launches, p);
}

/* ---- device work ------------------------------------------------------------------------------------------ */

static struct mg_sum_work *work_row(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    uint64_t at,
        words[] = {p->kind, (uint64_t)(uintptr_t)p->name, p->direction, p->process, p->device, p->context, p->stream};
    uint64_t key = mg_hash64(words, sizeof words, 1) | 1;
    if (mg_map_get(&t->work, key, &at)) return &s->work.at[at];
    mg_map_set(&t->work, key, s->work.n);
    struct mg_sum_work *r = mg_vec_push(&s->work);
    *r = (struct mg_sum_work){.kind = p->kind,
                              .name = p->name,
                              .direction = p->direction,
                              .rank = p->rank,
                              .process = p->process,
                              .device = p->device,
                              .context = p->context,
                              .stream = p->stream};
    return r;
}

static struct mg_sum_device *device_row(struct mg_sum *s, const struct mg_span *p)
{
    for (uint32_t i = 0; i < s->devices.n; i++)
        if (s->devices.at[i].process == p->process && s->devices.at[i].device == p->device) return &s->devices.at[i];
    struct mg_sum_device *d = mg_vec_push(&s->devices);
    *d = (struct mg_sum_device){.rank = p->rank, .process = p->process, .device = p->device, .first_ns = p->begin_ns};
    return d;
}

/* Spans come by their begins, so what has begun so far covers everything up to the latest end without a gap from now
 * on. */
static void sweep(struct mg_sum_device *d, const struct mg_span *p)
{
    uint64_t b = p->begin_ns, e = p->end_ns, latest = d->latest;
    uint64_t busy_from = MG_MAX(b, latest);
    if (e > busy_from) d->busy_ns += e - busy_from;
    uint64_t from = MG_MAX(b, d->counted), to = MG_MIN(e, latest);
    if (to > from) {
        d->overlap_ns += to - from;
        d->counted = to;
    }
    d->latest = MG_MAX(latest, e);
    d->last_ns = MG_MAX(d->last_ns, e);
    bool copy = p->kind == MG_SPAN_COPY;
    if (!copy && p->kind != MG_SPAN_KERNEL) return;
    from = MG_MAX(b, d->counted_of);
    to = MG_MIN(e, d->ends_of[!copy]);
    if (to > from) {
        d->copy_overlap_ns += to - from;
        d->counted_of = to;
    }
    d->ends_of[copy] = MG_MAX(d->ends_of[copy], e);
}

static void add_to_call(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    struct mg_origin call;
    bool timed = p->source != MG_SOURCE_none, kernel = p->kind == MG_SPAN_KERNEL;
    if ((!kernel && p->kind != MG_SPAN_GRAPH) || !mg_origins_take(&t->launches, p, &call)) return;
    if (kernel && timed && p->replay == MG_SPAN_NONE && p->begin_ns >= call.begin_ns)
        add_time(&s->latency, p->begin_ns - call.begin_ns);
    if (call.stack == UINT32_MAX) return;
    struct mg_sum_stack *r = stack_row(s, t, call.stack, p->name);
    r->kernels += kernel;
    if (timed) r->device_ns += p->end_ns - p->begin_ns;
}

static void add_work(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    struct mg_sum_work *r = work_row(s, t, p);
    r->count++;
    if (p->bytes != MG_SPAN_NONE) {
        r->bytes += p->bytes;
        r->has_bytes = true;
    }
    s->launches += p->kind == MG_SPAN_KERNEL;
    add_to_call(s, t, p);
    if (p->source == MG_SOURCE_none) {
        r->untimed++;
        s->untimed++;
        return;
    }
    r->time_ns += p->end_ns - p->begin_ns;
    r->uncertainty_ns = MG_MAX(r->uncertainty_ns, p->uncertainty_ns);
    r->unstated += p->source == MG_SOURCE_cupti;
    sweep(device_row(s, p), p);
}

/* ---- ranges ------------------------------------------------------------------------------------------------ */

static uint32_t range_row(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    uint64_t at, words[] = {(uint64_t)(uintptr_t)p->name, (uint64_t)(uintptr_t)p->domain, p->layer};
    uint64_t key = mg_hash64(words, sizeof words, 3) | 1;
    if (mg_map_get(&t->ranges, key, &at)) return (uint32_t)at;
    mg_map_set(&t->ranges, key, s->ranges.n);
    *mg_vec_push(&s->ranges) = (struct mg_sum_range){.name = p->name, .domain = p->domain, .layer = p->layer};
    return s->ranges.n - 1;
}

static uint32_t range_path(const struct tables *t, uint32_t process, uint64_t correlation)
{
    uint64_t path;
    return mg_map_get(&t->range_paths, mg_origin_key(process, correlation), &path) ? (uint32_t)path : NO_PATH;
}

static uint32_t path_of(struct tables *t, uint32_t row, uint32_t outer)
{
    uint64_t at, key = (uint64_t)outer << 32 | row;
    if (mg_map_get(&t->paths, key, &at)) return (uint32_t)at;
    struct path p = {.row = row, .outer = outer};
    for (uint32_t i = outer; i != NO_PATH && !p.again; i = t->paths_at.at[i].outer)
        p.again = t->paths_at.at[i].row == row;
    mg_map_set(&t->paths, key, t->paths_at.n);
    *mg_vec_push(&t->paths_at) = p;
    return t->paths_at.n - 1;
}

static void add_range(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    s->marks++;
    if (p->mark == MG_MARK_INSTANT) return;
    uint32_t row = range_row(s, t, p);
    s->ranges.at[row].count++;
    s->ranges.at[row].time_ns += p->end_ns - p->begin_ns;
    uint32_t path = path_of(t, row, p->outer ? range_path(t, p->process, p->outer) : NO_PATH);
    mg_map_set(&t->range_paths, mg_origin_key(p->process, p->correlation), path);
}

static void add_to_ranges(struct mg_sum *s, const struct tables *t, const struct mg_span *p)
{
    uint32_t path = p->range ? range_path(t, p->process, p->range) : NO_PATH;
    if (path == NO_PATH) return;
    s->ranges.at[t->paths_at.at[path].row].own_launches++;
    for (; path != NO_PATH; path = t->paths_at.at[path].outer) {
        struct mg_sum_range *r = &s->ranges.at[t->paths_at.at[path].row];
        if (t->paths_at.at[path].again) continue;
        r->launches++;
        if (p->source != MG_SOURCE_none) r->device_ns += p->end_ns - p->begin_ns;
    }
}

/* ---- inside kernels ---------------------------------------------------------------------------------------- */

static uint64_t kernel_key(const struct mg_span *p, const char *kernel)
{
    uint64_t words[] = {(uint64_t)p->process << 32 | p->device, (uint64_t)(uintptr_t)kernel};
    return mg_hash64(words, sizeof words, 6) | 1;
}

/* Spans come by their begins. How much is new. */
static uint64_t cover(uint64_t *latest, const struct mg_span *p)
{
    uint64_t from = MG_MAX(p->begin_ns, *latest);
    *latest = MG_MAX(*latest, p->end_ns);
    return p->end_ns > from ? p->end_ns - from : 0;
}

static void add_kernel(struct tables *t, const struct mg_span *p)
{
    uint64_t at, key = kernel_key(p, p->name);
    if (p->source == MG_SOURCE_none || !p->inside) return;
    if (!mg_map_get(&t->kernels, key, &at)) {
        mg_map_set(&t->kernels, key, at = t->kernels_at.n);
        *mg_vec_push(&t->kernels_at) = (struct cover){0};
    }
    struct cover *c = &t->kernels_at.at[at];
    c->ns += cover(&c->latest, p);
}

static void add_inside(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    uint64_t at, words[] = {(uint64_t)p->process << 32 | p->device, (uint64_t)(uintptr_t)p->kernel,
                            (uint64_t)(uintptr_t)p->name};
    uint64_t key = mg_hash64(words, sizeof words, 7) | 1;
    if (!mg_map_get(&t->inside, key, &at)) {
        mg_map_set(&t->inside, key, at = s->inside.n);
        *mg_vec_push(&s->inside) = (struct mg_sum_inside){
            .name = p->name, .kernel = p->kernel, .rank = p->rank, .process = p->process, .device = p->device};
    }
    struct mg_sum_inside *r = &s->inside.at[at];
    uint64_t ns = p->end_ns - p->begin_ns;
    r->count++;
    r->time_ns += ns;
    r->longest_ns = MG_MAX(r->longest_ns, ns);
    r->uncertainty_ns = MG_MAX(r->uncertainty_ns, p->uncertainty_ns);
    r->covered_ns += cover(&r->latest[0], p);
    if (p->payload != MG_SPAN_NONE) r->kernel_covered_ns += cover(&r->latest[1], p);
    r->compared += p->payload != MG_SPAN_NONE;
    r->outside += p->payload && p->payload != MG_SPAN_NONE;
}

static int by_kernel(const void *a, const void *b)
{
    const struct mg_sum_inside *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    int c = strcmp(x->kernel, y->kernel);
    if (c) return c;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void end_inside(struct mg_sum *s, const struct tables *t)
{
    for (uint32_t i = 0; i < s->inside.n; i++) {
        struct mg_sum_inside *r = &s->inside.at[i];
        const struct mg_span of = {.process = r->process, .device = r->device};
        uint64_t at;
        if (mg_map_get(&t->kernels, kernel_key(&of, r->kernel), &at)) r->kernel_ns = t->kernels_at.at[at].ns;
    }
    if (s->inside.n) qsort(s->inside.at, s->inside.n, sizeof *s->inside.at, by_kernel);
}

/* ---- messages ---------------------------------------------------------------------------------------------- */

static void add_message(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    int32_t to = p->peer;
    if (p->received || !p->correlation) return;
    uint64_t at, words[] = {(uint32_t)p->rank, (uint32_t)to};
    uint64_t key = mg_hash64(words, sizeof words, 4) | 1;
    if (!mg_map_get(&t->messages, key, &at)) {
        mg_map_set(&t->messages, key, at = s->messages.n);
        *mg_vec_push(&s->messages) = (struct mg_sum_message){.from = p->rank, .to = to};
    }
    s->messages.at[at].count++;
    s->messages.at[at].bytes += p->bytes == MG_SPAN_NONE ? 0 : p->bytes;
}

static int by_ranks(const void *a, const void *b)
{
    const struct mg_sum_message *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct mg_sum_call *x = a, *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? 1 : -1;
    return x->layer != y->layer ? (int)x->layer - (int)y->layer : strcmp(x->name, y->name);
}

static int by_place(const void *a, const void *b)
{
    const struct mg_sum_work *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->context != y->context) return x->context < y->context ? -1 : 1;
    if (x->stream != y->stream) return x->stream < y->stream ? -1 : 1;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static int by_device(const void *a, const void *b)
{
    const struct mg_sum_device *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    return x->device < y->device ? -1 : x->device > y->device;
}

static void count_names(struct mg_sum *s)
{
    struct mg_map seen = MG_MAP_INIT;
    uint64_t v;
    for (uint32_t i = 0; i < s->work.n; i++)
        if (s->work.at[i].kind == MG_SPAN_KERNEL && !mg_map_get(&seen, (uint64_t)(uintptr_t)s->work.at[i].name, &v)) {
            mg_map_set(&seen, (uint64_t)(uintptr_t)s->work.at[i].name, 1);
            s->kernels++;
        }
    mg_map_release(&seen);
}

static int by_wait(const void *a, const void *b)
{
    const struct mg_sum_site *x = a, *y = b;
    if (x->wait_ns != y->wait_ns) return x->wait_ns < y->wait_ns ? 1 : -1;
    return x->launches != y->launches ? (x->launches < y->launches ? 1 : -1) : 0;
}

/* Places of one function and line are one. */
static bool is_same_place(const struct mg_frame *a, const struct mg_frame *b)
{
    const struct mg_symbol *x = a->symbol, *y = b->symbol;
    if (!a->path || !b->path) return !a->path && !b->path;
    if (strcmp(a->path, b->path)) return false;
    if (!x->function || !y->function || !x->file || !y->file) return a->address == b->address;
    return x->line == y->line && !strcmp(x->function, y->function) && !strcmp(x->file, y->file);
}

/* Of the stacks: their names are looked up now, for kernels' stubs are known by the kernels' names. */
static void find_sites(struct mg_sum *s)
{
    struct mg_stacks *stacks = mg_spans_stacks(s->spans);
    struct mg_map kernels = MG_MAP_INIT;
    for (uint32_t i = 0; s->stacks.n && i < s->work.n; i++)
        if (s->work.at[i].kind == MG_SPAN_KERNEL) mg_map_set(&kernels, mg_stack_name_key(s->work.at[i].name), 1);
    for (uint32_t i = 0; i < s->stacks.n; i++) {
        const struct mg_sum_stack *k = &s->stacks.at[i];
        uint32_t n, at = 0, inner = mg_stacks_site(stacks, k->stack, &kernels);
        const struct mg_frame *f = &mg_stacks_frames(stacks, k->stack, &n)[inner];
        while (at < s->sites.n && !is_same_place(s->sites.at[at].frame, f)) at++;
        if (at == s->sites.n) *mg_vec_push(&s->sites) = (struct mg_sum_site){.frame = f};
        struct mg_sum_site *r = &s->sites.at[at];
        r->launches += k->launches;
        r->waits += k->waits;
        r->wait_ns += k->wait_ns;
        r->device_ns += k->device_ns;
        r->kernels += k->kernels;
    }
    if (s->sites.n) qsort(s->sites.at, s->sites.n, sizeof *s->sites.at, by_wait);
    mg_map_release(&kernels);
}

static void add_span(struct mg_sum *s, struct tables *t, const struct mg_span *p)
{
    uint64_t v, thread = (uint64_t)p->process << 32 | p->thread;
    if (p->kind == MG_SPAN_MESSAGE) {
        add_message(s, t, p);
        return;
    }
    if (p->kind == MG_SPAN_MEMORY) {
        mg_memory_add(&s->memory, p);
        return;
    }
    if (p->kind == MG_SPAN_INSIDE) {
        add_inside(s, t, p);
        return;
    }
    if (!s->events || p->begin_ns < s->first_ns) s->first_ns = p->begin_ns;
    s->last_ns = MG_MAX(s->last_ns, p->end_ns);
    s->events++;
    if (p->thread && !mg_map_get(&t->threads, thread, &v)) {
        mg_map_set(&t->threads, thread, 1);
        s->threads++;
    }
    if (p->kind == MG_SPAN_CALL || p->kind == MG_SPAN_MPI)
        add_call(s, t, p);
    else if (p->kind == MG_SPAN_MARK)
        add_range(s, t, p);
    else
        add_work(s, t, p);
    if (p->kind != MG_SPAN_KERNEL) return;
    add_to_ranges(s, t, p);
    add_kernel(t, p);
}

enum mg_err mg_sum_init(struct mg_sum *s, const char *dir, struct mg_diag *d)
{
    memset(s, 0, sizeof *s);
    struct mg_span_query q = {.size = sizeof q, .kinds = UINT32_MAX};
    enum mg_err err = mg_spans_open(dir, &q, &s->spans, d);
    if (err) return err;
    struct tables t = {0};
    for (const struct mg_span *p; (p = mg_spans_next(s->spans));) add_span(s, &t, p);
    s->processes = mg_spans_n_processes(s->spans);
    for (uint32_t i = 0; i < s->processes; i++) s->dropped += mg_spans_process(s->spans, i).dropped;
    if (s->calls.n) qsort(s->calls.at, s->calls.n, sizeof *s->calls.at, by_time);
    if (s->work.n) qsort(s->work.at, s->work.n, sizeof *s->work.at, by_place);
    if (s->devices.n) qsort(s->devices.at, s->devices.n, sizeof *s->devices.at, by_device);
    if (s->messages.n) qsort(s->messages.at, s->messages.n, sizeof *s->messages.at, by_ranks);
    end_inside(s, &t);
    count_names(s);
    find_sites(s);
    struct mg_map *maps[] = {&t.calls, &t.work,        &t.threads, &t.ranges, &t.messages,
                             &t.paths, &t.range_paths, &t.stacks,  &t.inside, &t.kernels};
    for (size_t i = 0; i < MG_COUNT_OF(maps); i++) mg_map_release(maps[i]);
    mg_vec_release(&t.paths_at);
    mg_vec_release(&t.kernels_at);
    mg_origins_release(&t.launches);
    return MG_ERR_OK;
}

void mg_sum_release(struct mg_sum *s)
{
    mg_spans_close(s->spans);
    mg_vec_release(&s->calls);
    mg_vec_release(&s->work);
    mg_vec_release(&s->devices);
    mg_vec_release(&s->ranges);
    mg_vec_release(&s->messages);
    mg_vec_release(&s->inside);
    mg_memory_release(&s->memory);
    mg_vec_release(&s->stacks);
    mg_vec_release(&s->sites);
    memset(s, 0, sizeof *s);
}
