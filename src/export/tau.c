/* export tau: profile.N.C.T files as TAU writes them, for paraprof and pprof. N is the rank, else the process' number
 * in the order of its first span; C is 0; T counts threads in that order, then streams. Times are in microseconds. A
 * name's inclusive time counts spans that lie in one of the same name once; exclusive is less what lies directly
 * inside. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/io.h"
#include "export/format.h"
#include "tau/profile_file.h"

struct function {
    const char *name, *group;
    uint64_t calls, children, inclusive_ns, exclusive_ns;
};
struct sizes {
    const char *name;
    uint64_t n;
    double most, least, sum, squares;
};
struct profile { /* a thread or a stream */
    struct mg_track_key key;
    uint64_t top_ns, top_calls; /* of what lies in nothing else */
    MG_VEC(struct function) functions;
    MG_VEC(struct sizes) sizes; /* of copies and memsets */
};
struct open_span {
    uint64_t begin_ns, end_ns, inner_ns;
    uint32_t function;
};
struct row {
    uint32_t profile;
    bool known;
    MG_VEC(struct open_span) open;
};
struct tau {
    MG_VEC(struct profile) profiles;
    MG_VEC(struct row) rows;   /* by track */
    struct mg_map functions;   /* hash of profile and name -> function */
    MG_VEC(uint64_t) first_ns; /* by process */
    MG_VEC(uint64_t) last_ns;
};

static bool is_host(const struct mg_track_key *k)
{
    return k->kind == MG_TRACK_THREAD || k->kind == MG_TRACK_RANGES;
}

/* Rows of one stream are one thread to TAU, and its untimed work belongs to it. */
static uint32_t profile_of(struct tau *s, const struct mg_track_key *k)
{
    struct mg_track_key want = *k;
    if (want.kind == MG_TRACK_UNTIMED) want.kind = MG_TRACK_STREAM;
    for (uint32_t i = 0; i < s->profiles.n; i++) {
        const struct mg_track_key *have = &s->profiles.at[i].key;
        if (have->kind == want.kind && have->process == want.process && have->thread == want.thread &&
            have->device == want.device && have->context == want.context && have->stream == want.stream)
            return i;
    }
    *mg_vec_push(&s->profiles) = (struct profile){.key = want};
    return s->profiles.n - 1;
}

static struct row *row_of(struct tau *s, const struct mg_track *t)
{
    while (s->rows.n <= t->id) *mg_vec_push(&s->rows) = (struct row){0};
    struct row *r = &s->rows.at[t->id];
    if (!r->known) {
        r->known = true;
        r->profile = profile_of(s, &t->key);
    }
    return r;
}

static const char *group_of(const struct mg_span *p)
{
    switch (p->kind) {
    case MG_SPAN_KERNEL:
    case MG_SPAN_GRAPH:
        return "TAU_GPU";
    case MG_SPAN_COPY:
    case MG_SPAN_MEMSET:
    case MG_SPAN_PREFETCH:
        return "TAU_GPU_MEMORY_COPY";
    case MG_SPAN_MARK:
        return "TAU_USER";
    case MG_SPAN_MPI:
        return "MPI";
    default:
        return "TAU_GPU_API";
    }
}

static uint32_t function_of(struct mg_export *x, uint32_t profile, const struct mg_span *p)
{
    struct tau *s = x->state;
    struct profile *f = &s->profiles.at[profile];
    const char *name = mg_export_name(x, p), *group = group_of(p);
    uint64_t at, words[] = {profile, (uint64_t)(uintptr_t)name, (uint64_t)p->kind},
                 key = mg_hash64(words, sizeof words, 1);
    for (; mg_map_get(&s->functions, key, &at); key++)
        if (at >> 32 == profile && f->functions.at[(uint32_t)at].name == name &&
            f->functions.at[(uint32_t)at].group == group)
            return (uint32_t)at;
    mg_map_set(&s->functions, key, (uint64_t)profile << 32 | f->functions.n);
    *mg_vec_push(&f->functions) = (struct function){.name = name, .group = group};
    return f->functions.n - 1;
}

static bool is_inside_itself(const struct row *r, uint32_t function)
{
    for (uint32_t i = 0; i < r->open.n; i++)
        if (r->open.at[i].function == function) return true;
    return false;
}

/* Ends the spans of a row that have ended by now. */
static void end_until(struct tau *s, struct row *r, uint64_t time_ns)
{
    struct profile *f = &s->profiles.at[r->profile];
    while (r->open.n && r->open.at[r->open.n - 1].end_ns <= time_ns) {
        struct open_span o = r->open.at[--r->open.n];
        struct function *x = &f->functions.at[o.function];
        uint64_t ns = o.end_ns - o.begin_ns;
        x->exclusive_ns += ns - MG_MIN(ns, o.inner_ns);
        if (!is_inside_itself(r, o.function)) x->inclusive_ns += ns;
        if (r->open.n)
            r->open.at[r->open.n - 1].inner_ns += ns;
        else
            f->top_ns += ns;
    }
}

static void add_bytes(struct profile *f, const char *name, double bytes)
{
    uint32_t i = 0;
    while (i < f->sizes.n && f->sizes.at[i].name != name) i++;
    if (i == f->sizes.n) *mg_vec_push(&f->sizes) = (struct sizes){.name = name, .least = bytes};
    struct sizes *e = &f->sizes.at[i];
    e->n++;
    e->most = MG_MAX(e->most, bytes);
    e->least = MG_MIN(e->least, bytes);
    e->sum += bytes;
    e->squares += bytes * bytes;
}

static void widen(struct tau *s, uint32_t process, uint64_t begin_ns, uint64_t end_ns)
{
    while (s->first_ns.n <= process) {
        *mg_vec_push(&s->first_ns) = begin_ns;
        *mg_vec_push(&s->last_ns) = end_ns;
    }
    s->last_ns.at[process] = MG_MAX(s->last_ns.at[process], end_ns);
}

static void write_span(struct mg_export *x, const struct mg_span *p)
{
    struct tau *s = x->state;
    if (mg_export_is_instant(p)) return; /* a profile has no moments */
    struct mg_track *t = mg_tracks_find(&x->tracks, p, p->end_ns);
    struct row *r = row_of(s, t);
    widen(s, t->key.process, p->begin_ns, p->end_ns);
    end_until(s, r, p->begin_ns);
    struct profile *f = &s->profiles.at[r->profile];
    uint32_t function = function_of(x, r->profile, p);
    if (r->open.n)
        f->functions.at[r->open.at[r->open.n - 1].function].children++;
    else
        f->top_calls++;
    f->functions.at[function].calls++;
    *mg_vec_push(&r->open) = (struct open_span){p->begin_ns, p->end_ns, 0, function};
    if (mg_export_is_work(p) && p->bytes != MG_SPAN_NONE) add_bytes(f, p->name, (double)p->bytes);
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static void fill_functions(const struct tau *s, const struct profile *p, struct tau_file *f)
{
    double whole = (double)(s->last_ns.at[p->key.process] - s->first_ns.at[p->key.process]) * 1e-3;
    f->functions = mg_xcalloc(p->functions.n + 1u, sizeof *f->functions);
    double rest = whole - (double)p->top_ns * 1e-3; /* rows of a stream run at once: it may be used up */
    f->functions[f->n_functions++] = (struct tau_function){
        .name = ".TAU application",
        .group = "TAU_DEFAULT",
        .calls = 1,
        .children = p->top_calls,
        .exclusive_us = rest > 0 ? rest : 0,
        .inclusive_us = whole,
    };
    for (uint32_t i = 0; i < p->functions.n; i++) {
        const struct function *x = &p->functions.at[i];
        f->functions[f->n_functions++] = (struct tau_function){
            .name = x->name,
            .group = x->group,
            .calls = x->calls,
            .children = x->children,
            .exclusive_us = (double)x->exclusive_ns * 1e-3,
            .inclusive_us = (double)x->inclusive_ns * 1e-3,
        };
    }
}

static void fill_sizes(const struct profile *p, struct tau_file *f, struct mg_arena *a)
{
    f->events = mg_xcalloc(p->sizes.n + 1u, sizeof *f->events);
    for (uint32_t i = 0; i < p->sizes.n; i++) {
        const struct sizes *e = &p->sizes.at[i];
        f->events[f->n_events++] = (struct tau_user_event){
            .name = mg_arena_printf(a, "Bytes %s", e->name),
            .n = e->n,
            .most = e->most,
            .least = e->least,
            .mean = e->sum / (double)e->n,
            .sum_of_squares = e->squares,
        };
    }
}

static uint32_t node_of(const struct mg_export *x, uint32_t process)
{
    int64_t rank = x->tracks.processes.at[process].rank;
    return rank >= 0 ? (uint32_t)rank : process;
}

/* Processes of one rank, a program and its children, are threads of one node. */
static uint32_t first_of_node(const struct mg_export *x, uint32_t process)
{
    uint32_t i = 0;
    while (node_of(x, i) != node_of(x, process)) i++;
    return i;
}

static enum mg_err write_profile(struct mg_export *x, const struct profile *p, uint32_t thread, struct mg_diag *d)
{
    const struct mg_track_process *process = &x->tracks.processes.at[p->key.process];
    struct tau_file f = {.node = node_of(x, p->key.process), .thread = thread};
    struct mg_arena a = MG_ARENA_INIT;
    struct mg_buf text = MG_BUF_INIT, path = MG_BUF_INIT;
    struct mg_track track = {.key = p->key};
    mg_export_track_name(x, &track, &text);
    const struct tau_metadata metadata[] = {
        {"Metric Name", "TIME"},
        {"pid", mg_arena_printf(&a, "%u", process->pid)},
        {"Thread", mg_arena_printf(&a, "%s", text.at)},
        {"CUDA Device", mg_arena_printf(&a, "%u", p->key.device)},
        {"CUDA Context", mg_arena_printf(&a, "%llu", (unsigned long long)p->key.context)},
        {"CUDA Stream", mg_arena_printf(&a, "%llu", (unsigned long long)p->key.stream)}};
    f.metadata = (struct tau_metadata *)metadata;
    f.n_metadata = is_host(&p->key) ? 3 : MG_COUNT_OF(metadata);
    fill_functions(x->state, p, &f);
    fill_sizes(p, &f, &a);
    mg_buf_reset(&text);
    tau_file_print(&f, &text);
    mg_buf_printf(&path, "%s/profile.%u.%u.%u", x->path, f.node, f.context, f.thread);
    enum mg_err err = mg_io_write(path.at, text.at, text.n, d);
    free(f.functions);
    free(f.events);
    mg_buf_release(&text);
    mg_buf_release(&path);
    mg_arena_release(&a);
    return err;
}

static enum mg_err open_tau(struct mg_export *x, struct mg_diag *d)
{
    struct mg_buf pattern = MG_BUF_INIT;
    glob_t found;
    mg_buf_printf(&pattern, "%s/profile.*.*.*", x->path);
    bool taken = !glob(pattern.at, 0, NULL, &found);
    if (taken) globfree(&found);
    mg_buf_release(&pattern);
    if (taken) /* tools add up all that lies there */
        return mg_diag_err(d, MG_ERR_INPUT, "%s holds TAU profiles already: name another folder", x->path);
    x->state = mg_xcalloc(1, sizeof(struct tau));
    return MG_ERR_OK;
}

static enum mg_err close_tau(struct mg_export *x, struct mg_diag *d)
{
    struct tau *s = x->state;
    enum mg_err err = MG_ERR_OK;
    for (uint32_t i = 0; i < s->rows.n; i++)
        if (s->rows.at[i].known) end_until(s, &s->rows.at[i], UINT64_MAX);
    uint32_t *threads = mg_xcalloc(x->tracks.processes.n + 1u, sizeof *threads); /* of the first process of a node */
    for (int host = 1; host >= 0; host--)
        for (uint32_t i = 0; i < s->profiles.n && !err; i++) {
            const struct profile *p = &s->profiles.at[i];
            if (is_host(&p->key) == host) err = write_profile(x, p, threads[first_of_node(x, p->key.process)]++, d);
        }
    free(threads);
    return err;
}

static void release(struct mg_export *x)
{
    struct tau *s = x->state;
    if (!s) return;
    for (uint32_t i = 0; i < s->profiles.n; i++) {
        mg_vec_release(&s->profiles.at[i].functions);
        mg_vec_release(&s->profiles.at[i].sizes);
    }
    for (uint32_t i = 0; i < s->rows.n; i++) mg_vec_release(&s->rows.at[i].open);
    mg_vec_release(&s->profiles);
    mg_vec_release(&s->rows);
    mg_vec_release(&s->first_ns);
    mg_vec_release(&s->last_ns);
    mg_map_release(&s->functions);
    free(s);
}

const struct mg_export_format mg_export_tau = {
    .name = "tau",
    .summary = "the time line summed up in TAU's profile files",
    .open = open_tau,
    .span = write_span,
    .close = close_tau,
    .release = release,
};
