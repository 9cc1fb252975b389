#include "inject/timeline.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/calls.h"
#include "base/demangle.h"
#include "base/hash.h"
#include "base/io.h"
#include "inject/device_clock.h"
#include "inject/kernels.h"
#include "inject/memory_calls.h"
#include "inject/nvidia/gpu_cupti.h"
#include "inject/range.h"
#include "inject/run.h"
#include "inject/stacks.h"
#include "inject/steps.h"
#include "inject/streams.h"
#include "inject/tools.h"
#include "inject/tracefile.h"
#include "patch/launch.h"
#include "record/event.h"
#include "span/writer.h"
#include "tool/timeline.h"

#define FLUSH_MS      500u
#define EARLY         256u /* calls and marks that are kept until the profile is open; of calls that may matter more: */
#define EARLY_RECORDS 65536u

struct mg_timeline mg_timeline;

static struct mg_span_writer *writer;                    /* NULL: not open (yet) */
static uint32_t names[MG_FN_COUNT];                      /* of entries in the file; 0: not told yet */
static bool stacked[MG_FN_COUNT];                        /* entries that launch or wait */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of early calls and of opening */
static struct early {
    struct mg_call_frame f;
    cu_result result;
    uint64_t end_ns;
} * early;
static uint32_t n_early, early_room, n_lost; /* lost: there was no room */
static __thread uint64_t last_done;          /* the call that completed this thread's last message, early */
static struct early_mark {
    struct mg_record_mark m;
    char *name, *domain;
    pid_t pid;
    uint32_t thread;
} * early_marks; /* under the lock */
static uint32_t n_early_marks;
static struct early_record { /* of a library in front of another one */
    struct early_record *next;
    enum mg_link_record kind;
    uint32_t n;
    union {
        struct mg_record_message message;
        struct mg_record_communicator communicator;
        struct mg_record_clock clock;
    };
    uint64_t words[];
} * early_records, **early_records_end = &early_records; /* under the lock, as the lost ones */
static uint32_t n_early_records, n_lost_records;
static bool over;

/* NULL: it is not open yet, or not any more. It is never freed: a thread may be inside of a call when the process ends.
 */
static struct mg_span_writer *open_now(void)
{
    return __atomic_load_n(&over, __ATOMIC_ACQUIRE) ? NULL : __atomic_load_n(&writer, __ATOMIC_ACQUIRE);
}

/* ---- begin and end ------------------------------------------------------------------------------------- */

void mg_timeline_prepare(void)
{
    memset(mg_timeline.wanted, 1, sizeof mg_timeline.wanted);
    mg_memory_calls_find();
    mg_timeline.arguments = mg_timeline.on = true;
}

static const struct mg_timeline_conf *find_conf(void)
{
    extern const struct mg_tool mg_tool_timeline;
    for (uint32_t u = 0; u < mg_session.n_uses; u++)
        if (mg_session.uses[u].tool == &mg_tool_timeline) return mg_session.uses[u].conf;
    return NULL;
}

static void choose(const struct mg_timeline_conf *c)
{
    for (uint32_t i = 0; i < MG_FN_COUNT; i++)
        mg_timeline.wanted[i] = c->calls && (!c->classes || c->classes >> mg_call_of_entry(i)->class_ & 1) &&
                                (!*c->name || mg_name_matches(c->name, mg_cu_entries[i].name));
    mg_calls_choose(mg_timeline.wanted);
    for (uint32_t i = 0; i < MG_FN_COUNT; i++) {
        const struct mg_cu_call *call = mg_call_of_entry(i);
        stacked[i] = call->class_ == MG_CLASS_kernel || call->waits != MG_WAITS_nothing;
    }
    mg_timeline.arguments = c->arguments;
    mg_timeline.work = c->work;
    mg_timeline.untimed = c->times == MG_TIMES_OFF;
    mg_timeline.sample = (uint32_t)c->sample;
    mg_timeline.twin = c->times == MG_TIMES_TWIN;
    mg_timeline.runtime = c->runtime != MG_RUNTIME_OFF;
    mg_timeline.pairs = c->work && mg_session_can(MG_BACKEND_HARDWARE) && !mg_session.cannot;
}

bool mg_timeline_wants_runtime(struct mg_runtime_function *f)
{
    if (!mg_timeline.on) return false;
    if (!f->class_known) {
        f->class_ = (uint8_t)mg_runtime_class(f->name);
        __atomic_store_n(&f->class_known, true, __ATOMIC_RELEASE);
    }
    if (!writer) /* the options are not known yet */
        return true;
    if (!f->wanted) {
        const struct mg_timeline_conf *c = find_conf();
        bool fits = c && c->calls && (!c->classes || c->classes >> f->class_ & 1) &&
                    (!*c->name || mg_name_matches(c->name, f->name));
        f->wanted = fits && (mg_timeline.runtime || f->layer) ? 1 : 2;
    }
    return f->wanted == 1;
}

/* By its number, so that a program that repeats itself is not always met at the same place. */
uint64_t mg_timeline_stack(const struct mg_call_frame *f)
{
    struct mg_span_writer *w = stacked[f->entry] ? open_now() : NULL;
    if (!w || (mg_timeline.stacks > 1 && mg_mix64(f->correlation) % mg_timeline.stacks)) return 0;
    return mg_stacks_take(w, f->caller);
}

static void write_work(void *user, const struct mg_record_work *r)
{
    struct mg_span_writer *w = open_now();
    (void)user;
    if (w) mg_span_put_work(w, r);
}

/* CUPTI calls the driver while it begins, and so us: the session has begun by then. */
void mg_timeline_begin_source(void)
{
    static bool begun;
    if (!mg_timeline.wants_cupti || __atomic_exchange_n(&begun, true, __ATOMIC_RELAXED)) return;
    if (!mg_session_can(MG_BACKEND_HARDWARE))
        mg_session_say("source=cupti: this device is no GPU: its own times are exact");
    else if (mg_timeline.pairs)
        mg_timeline.cupti = mg_cupti_begin(write_work);
}

static bool open_writer(const struct mg_timeline_conf *c)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_trace_writer *trace = mg_tracefile_writer((struct mg_trace_opts){
        .memory_bytes = (size_t)c->memory_mib << 20, .policy = c->full ? MG_TRACE_BLOCK : MG_TRACE_DROP});
    struct mg_span_writer_opts o = {.size = sizeof o, .trace = trace};
    struct mg_span_writer *w = NULL;
    enum mg_err err = trace ? mg_span_writer_open(&o, &w, &d) : MG_ERR_IO;
    if (err)
        mg_session_error("the time line is not recorded: %s", mg_diag_first(&d, err));
    else
        __atomic_store_n(&writer, w, __ATOMIC_RELEASE);
    mg_diag_release(&d);
    return !err;
}

/* A file's records name the thread that puts them: marks of other threads are lost, and what a parent process marked.
 */
static void write_early_marks(struct mg_span_writer *w)
{
    pthread_mutex_lock(&lock);
    struct early_mark *kept = early_marks;
    uint32_t n = n_early_marks;
    early_marks = NULL;
    n_early_marks = 0;
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; kept && i < n; i++) {
        if (w && kept[i].pid == getpid() && kept[i].thread == (uint32_t)gettid())
            mg_timeline_mark(&kept[i].m, kept[i].name, kept[i].domain);
        free(kept[i].name);
        free(kept[i].domain);
    }
    free(kept);
}

static void write_record(struct mg_span_writer *w, enum mg_link_record kind, const void *record, const uint64_t *words,
                         uint32_t n)
{
    if (kind == MG_LINK_MESSAGE)
        mg_span_put_message(w, record);
    else if (kind == MG_LINK_CLOCK)
        mg_span_put_clock(w, record);
    else
        mg_span_put_communicator(w, record, words, n);
}

static bool keep_early_record(enum mg_link_record kind, const void *record, const uint64_t *words, uint32_t n)
{
    static const size_t sizes[] = {sizeof(struct mg_record_message), sizeof(struct mg_record_communicator),
                                   sizeof(struct mg_record_clock)};
    _Static_assert(MG_COUNT_OF(sizes) == MG_LINK_COUNT, "one a kind");
    pthread_mutex_lock(&lock);
    bool keep = !writer && mg_timeline.on;
    struct early_record *e = NULL;
    if (keep && n_early_records < EARLY_RECORDS && (e = calloc(1, sizeof *e + n * sizeof *words))) {
        e->kind = kind;
        e->n = n;
        memcpy(&e->message, record, sizes[kind]);
        if (n) memcpy(e->words, words, n * sizeof *words);
        *early_records_end = e;
        early_records_end = &e->next;
        n_early_records++;
        if (kind == MG_LINK_MESSAGE) last_done = e->message.done;
    }
    n_lost_records += keep && !e;
    pthread_mutex_unlock(&lock);
    return keep;
}

static void write_early_records(struct mg_span_writer *w)
{
    pthread_mutex_lock(&lock);
    struct early_record *e = early_records;
    early_records = NULL;
    early_records_end = &early_records;
    uint32_t lost = n_lost_records;
    pthread_mutex_unlock(&lock);
    for (struct early_record *next; e; e = next) {
        next = e->next;
        if (w) write_record(w, e->kind, &e->message, e->words, e->n);
        free(e);
    }
    if (w && lost)
        mg_session_say("the time line lacks %u messages of MPI from before the first call of CUDA: arrows between "
                       "sends and receives may join wrong ends",
                       lost);
}

void mg_timeline_link(enum mg_link_record kind, const void *record, const uint64_t *words, uint32_t n)
{
    struct mg_span_writer *w = open_now();
    if (!w && (over || keep_early_record(kind, record, words, n) || !(w = open_now()))) return;
    write_record(w, kind, record, words, n);
}

static int find_mpi(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    unsigned *found = user;
    (void)size;
    if (base && (!strncmp(base, "/libmpi.so.", 11) || !strncmp(base, "/libmpich.so.", 13))) *found |= 1;
    if (base && !strcmp(base, "/libmargay-mpi.so")) *found |= 2;
    return 0;
}

/* `margay run` looks at the program that it starts, not at what that one starts. */
static void tell_of_mpi(void)
{
    unsigned found = 0;
    dl_iterate_phdr(find_mpi, &found);
    if (found == 1 && mg_session.rank <= 0)
        mg_session_say("calls of MPI are not on the time line: let margay run start the program itself, not a script");
}

void mg_timeline_begin(void)
{
    const struct mg_timeline_conf *c = mg_timeline.on ? find_conf() : NULL;
    if (!c) {
        mg_timeline.on = false;
        write_early_marks(NULL);
        write_early_records(NULL);
        return;
    }
    choose(c);
    pthread_mutex_lock(&lock);
    bool ok = open_writer(c);
    struct early *kept = early;
    uint32_t n = n_early;
    early = NULL;
    if (!ok) mg_timeline.on = false;
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; ok && i < n; i++)
        if (kept[i].f.function || mg_timeline.wanted[kept[i].f.entry])
            mg_timeline_call(&kept[i].f, kept[i].result, kept[i].end_ns);
    free(kept);
    write_early_marks(ok ? open_now() : NULL);
    write_early_records(ok ? open_now() : NULL);
    if (ok && c->calls) tell_of_mpi();
    mg_timeline.wants_cupti = ok && c->source && c->work;
    if (ok && c->calls && c->stacks && mg_stacks_begin()) mg_timeline.stacks = (uint32_t)c->stacks;
    if (n_lost)
        mg_session_say(
            "the time line lacks %u calls that were made before the first one of CUDA's that opens the profile",
            n_lost);
}

void mg_timeline_end(void)
{
    struct mg_span_writer *w = writer;
    if (!w) return;
    mg_timeline.on = mg_timeline.pairs = false;
    if (mg_timeline.cupti) mg_cupti_end();
    __atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
    mg_span_writer_flush(w, 10000);
    uint64_t lost = mg_span_writer_lost(w);
    if (lost)
        mg_session_error(
            "the time line lacks %llu records: its buffers were full (-t timeline,memory=MiB or full=wait)",
            (unsigned long long)lost);
    writer = NULL; /* it stays: a thread may be inside a call, and what that puts is lost */
}

void mg_timeline_flush(void)
{
    if (writer && !over) mg_span_writer_flush(writer, FLUSH_MS);
}

void mg_timeline_forked(void)
{
    mg_timeline.on = mg_timeline.pairs = mg_timeline.cupti = mg_timeline.wants_cupti = false;
    writer = NULL; /* the parent's */
}

/* ---- records --------------------------------------------------------------------------------------------- */

static uint32_t name_of(struct mg_span_writer *w, uint32_t entry)
{
    uint32_t n = __atomic_load_n(&names[entry], __ATOMIC_RELAXED);
    if (!n) {
        n = mg_span_name(w, mg_cu_entries[entry].name);
        __atomic_store_n(&names[entry], n, __ATOMIC_RELAXED);
    }
    return n;
}

static uint32_t name_of_function(struct mg_span_writer *w, struct mg_runtime_function *f)
{
    uint32_t n = __atomic_load_n(&f->number, __ATOMIC_RELAXED);
    if (!n) {
        n = mg_span_name(w, f->name);
        __atomic_store_n(&f->number, n, __ATOMIC_RELAXED);
    }
    return n;
}

/* Programs ask thousands of times whether a message has come: what was told "no" goes first. */
static bool is_needed(const struct mg_call_frame *f)
{
    bool asks = f->function && f->layer == MG_LAYER_mpi &&
                (strstr(f->function->name, "Test") || !strcmp(f->function->name, "MPI_Iprobe"));
    return !asks || last_done == f->correlation;
}

/* Room for one more; false: there is none. */
static bool grow_early(uint32_t most)
{
    if (n_early < early_room) return n_early < most;
    uint32_t room = early_room ? 2 * early_room : EARLY;
    struct early *more = n_early < most ? realloc(early, room * sizeof *early) : NULL;
    if (!more) return false;
    early = more;
    early_room = room;
    return true;
}

/* Before the profile is open. False: it is by now. */
static bool keep_early(const struct mg_call_frame *f, cu_result result, uint64_t end_ns)
{
    pthread_mutex_lock(&lock);
    bool keep = !writer && mg_timeline.on;
    if (keep && grow_early(is_needed(f) ? EARLY_RECORDS : EARLY))
        early[n_early++] = (struct early){*f, result, end_ns};
    else if (keep)
        n_lost++;
    pthread_mutex_unlock(&lock);
    return keep;
}

void mg_timeline_call(const struct mg_call_frame *f, cu_result result, uint64_t end_ns)
{
    if (writer && !f->function && !mg_timeline.wanted[f->entry])
        return; /* it began before the tool's options were known */
    struct mg_span_writer *w = open_now();
    if (!w && (over || keep_early(f, result, end_ns) || !(w = open_now()))) return;
    struct mg_record_call r = {
        .begin = f->begin_ns,
        .end = end_ns,
        .correlation = f->correlation,
        .outer = f->outer ? f->outer->correlation : 0,
        .name = f->function ? name_of_function(w, f->function) : name_of(w, f->entry),
        .result = result,
        .stream = f->stream,
        .context = f->context,
        .stack = f->stack,
        .layer = f->function ? f->layer : MG_LAYER_driver,
        .class_ = f->function ? f->class_ : (uint8_t)mg_call_of_entry(f->entry)->class_,
    };
    mg_span_put_call(w, &r, f->args, f->n_args);
    if (!f->function && !result && mg_memory_calls[f->entry] && f->n_args) mg_memory_call(w, f, end_ns);
}

void mg_timeline_work(struct mg_record_work *r, const char *name)
{
    struct mg_span_writer *w = mg_timeline.work ? open_now() : NULL;
    if (!w) return;
    r->name = name ? mg_span_name(w, name) : 0;
    if (!mg_timeline.cupti || !mg_cupti_work(r)) mg_span_put_work(w, r);
}

/* Before the profile is open. */
static void keep_early_mark(const struct mg_record_mark *m, const char *name, const char *domain)
{
    pthread_mutex_lock(&lock);
    if (!writer && !early_marks) early_marks = calloc(EARLY, sizeof *early_marks);
    if (!writer && early_marks && n_early_marks < EARLY) {
        struct early_mark e = {*m, strdup(name), domain ? strdup(domain) : NULL, getpid(), (uint32_t)gettid()};
        if (e.name && (e.domain || !domain))
            early_marks[n_early_marks++] = e;
        else
            free(e.name);
    }
    pthread_mutex_unlock(&lock);
}

void mg_timeline_mark(struct mg_record_mark *m, const char *name, const char *domain)
{
    struct mg_span_writer *w = open_now();
    if (!w && !over) keep_early_mark(m, name, domain);
    if (!w) return;
    m->name = mg_span_name(w, name);
    m->domain = domain && *domain ? mg_span_name(w, domain) : 0;
    mg_span_put_mark(w, m);
}

void mg_timeline_thread(uint32_t thread, const char *name)
{
    struct mg_span_writer *w = open_now();
    if (!w) return;
    struct mg_record_thread r = {.time = mg_now_ns(), .thread = thread, .name = mg_span_name(w, name)};
    mg_span_put_thread(w, &r);
}

/* ---- device work -------------------------------------------------------------------------------------------- */

/* Times that nobody measured are those of the call. */
static void set_times(struct mg_record_work *w, uint64_t start_ns, uint64_t end_ns, uint64_t call_ns)
{
    bool timed = end_ns > start_ns;
    w->begin = timed ? start_ns : call_ns;
    w->end = timed ? end_ns : call_ns;
    if (!timed) w->source = MG_SOURCE_none;
}

/* A graph's node belongs to the window of the launch of its graph; on a GPU nobody knows which that was. */
static bool is_in_window(const struct mg_run *r, const struct mg_launch_done *d)
{
    if (!r->node) return r->in_window;
    return mg_session_can(MG_BACKEND_HARDWARE) || !d || !d->mark.skip;
}

/* Software devices' clock is the host's. */
void mg_timeline_place(struct mg_timeline_kernel *k, const struct mg_run *r, uint64_t first, uint64_t last)
{
    if (k->placed || !mg_session_can(MG_BACKEND_HARDWARE)) return;
    k->offset = mg_device_clock_offset(r, first, last, &k->uncertainty);
    k->placed = true;
}

static void set_twin_times(struct mg_timeline_kernel *k, const struct mg_run *r, uint64_t begin, uint64_t end)
{
    mg_timeline_place(k, r, begin, end);
    if (!r->node && r->call_ns && begin + k->offset < r->call_ns) /* within the uncertainty */
        k->offset = r->call_ns - begin;
    k->w.begin = begin + k->offset;
    k->w.end = MG_MAX(end, begin + 1) + k->offset;
    k->w.source = MG_SOURCE_twin;
    k->w.uncertainty_ns = (uint32_t)MG_MIN(k->uncertainty, UINT32_MAX);
}

static bool records_events(const struct mg_run *r, const uint64_t *raw)
{
    const struct mg_layout *l = raw && r->body ? &r->body->variant->layout : NULL;
    bool any = false;
    for (uint32_t k = 0; l && k < l->n_regions; k++) any |= mg_events_are_inside(&l->regions[k]);
    return any;
}

bool mg_timeline_kernel(const struct mg_run *r, uint64_t launch, const struct mg_launch_done *d, const uint64_t *raw,
                        struct mg_timeline_kernel *k)
{
    if (!mg_timeline.on || !mg_timeline.work || !is_in_window(r, d)) return false;
    bool own = !mg_session_can(MG_BACKEND_HARDWARE);
    struct mg_record_work w = {
        .correlation = r->correlation,
        .stream = r->stream,
        .context = r->ctx,
        .bytes = UINT64_MAX,
        .launch = launch,
        .replay = UINT64_MAX,
        .mark = r->mark,
        .device = r->device,
        .work = MG_WORK_kernel,
        .inside = records_events(r, raw),
        .source = own ? MG_SOURCE_device : MG_SOURCE_events,
        .uncertainty_ns = d ? (uint32_t)d->uncertainty_ns : 0,
    };
    if (d && own && r->node) { /* enqueued by the launch of a graph */
        w.correlation = d->mark.correlation;
        w.stream = d->mark.stream;
        w.context = d->mark.ctx;
        w.replay = d->mark.replay;
        w.mark = d->mark.range;
    }
    set_times(&w, d ? d->start_ns : 0, d ? d->end_ns : 0, r->call_ns ? r->call_ns : mg_now_ns());
    uint64_t begin, end;
    *k = (struct mg_timeline_kernel){.w = w};
    if (mg_device_clock_read(r, raw, &begin, &end)) set_twin_times(k, r, begin, end);
    struct mg_record_work as_told = k->w; /* CUPTI may have its own times */
    mg_timeline_work(&as_told, r->inst->code->name);
    k->w.name = as_told.name;
    return true;
}

/* How far a span lies outside of another one, beyond what both may be off. */
static uint64_t outside(const struct mg_record_inside *s, const struct mg_record_work *of)
{
    if (of->source == MG_SOURCE_none || mg_timeline.cupti) return UINT64_MAX;
    uint64_t before = of->begin > s->begin ? of->begin - s->begin : 0, behind = s->end > of->end ? s->end - of->end : 0,
             most = MG_MAX(before, behind), within = (uint64_t)of->uncertainty_ns + s->uncertainty_ns;
    return most > within ? most - within : 0;
}

void mg_timeline_inside(const struct mg_timeline_kernel *k, const struct mg_inside *s)
{
    struct mg_span_writer *w = open_now();
    if (!w) return;
    struct mg_record_inside r = {
        .begin = s->begin + k->offset,
        .end = s->end + k->offset,
        .launch = k->w.launch,
        .replay = k->w.replay,
        .cta = s->cta,
        .correlation = k->w.correlation,
        .context = k->w.context,
        .stream = k->w.stream,
        .name = mg_span_name(w, s->name),
        .kernel = k->w.name,
        .device = k->w.device,
        .sm = s->sm,
        .lanes = s->lanes,
        .uncertainty_ns = (uint32_t)MG_MIN(k->uncertainty, UINT32_MAX),
        .warp = (uint8_t)s->warp,
        .depth = (uint8_t)MG_MIN(s->depth, UINT8_MAX),
        .source = mg_session_can(MG_BACKEND_HARDWARE) ? MG_SOURCE_twin : MG_SOURCE_device,
    };
    r.outside_ns = outside(&r, &k->w);
    mg_span_put_inside(w, &r);
}

static void enqueued(void *ctx, void *stream, struct mg_work_mark *m)
{
    bool on = mg_steps_on || (mg_timeline.on && mg_timeline.work);
    if (!mg_session.active || (!on && m->replay == UINT64_MAX)) return;
    m->stream = mg_stream_number(stream); /* that of a graph's kernels, too */
    if (!on) return;
    m->order = m->replay == UINT64_MAX ? mg_steps_order() : mg_steps_take();
    m->skip = !mg_window_is_open();
    m->range = mg_nvtx_range();
    m->correlation = mg_calls_correlation();
    m->ctx = mg_ctx_number(ctx);
}

static void replayed(const struct mg_work_mark *m)
{
    mg_steps_over(m->order);
}

static void ended(const struct mg_work_mark *m, const struct mg_work_span *s)
{
    static const enum mg_span_direction directions[] = {
        [MG_HOST_TO_DEVICE] = MG_DIR_HtoD,
        [MG_DEVICE_TO_HOST] = MG_DIR_DtoH,
        [MG_DEVICE_TO_DEVICE] = MG_DIR_DtoD,
        [MG_HOST_TO_HOST] = MG_DIR_HtoH,
    };
    mg_steps_work(m, s);
    if (!mg_timeline.on || !mg_timeline.work || m->skip) return;
    struct mg_record_work w = {
        .begin = s->start_ns,
        .end = s->end_ns > s->start_ns ? s->end_ns : s->start_ns + 1,
        .correlation = m->correlation,
        .stream = m->stream,
        .context = m->ctx,
        .bytes = s->bytes,
        .launch = UINT64_MAX,
        .replay = m->replay,
        .mark = m->range,
        .device = m->device,
        .work = s->copy ? MG_WORK_copy : MG_WORK_memset,
        .source = MG_SOURCE_device,
        .direction = s->copy ? directions[s->direction] : MG_DIR_none,
    };
    mg_timeline_work(&w, NULL);
}

const struct mg_driver_watch mg_timeline_watch = {.enqueued = enqueued, .ended = ended, .replayed = replayed},
                             mg_graphs_watch = {.enqueued = enqueued};
