#include "span/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "trace/reader.h"

static const char *const kinds[] = {"call", "kernel", "copy",    "memset", "prefetch", "graph",
                                    "mark", "mpi",    "message", "memory", "inside"};
_Static_assert(MG_COUNT_OF(kinds) == MG_SPAN_KIND_COUNT, "ORDER KINDS");
static const char *const layers[] = {"driver", "runtime", "mpi", "nvtx", "mark"};
_Static_assert(MG_COUNT_OF(layers) == MG_LAYER_COUNT, "ORDER LAYERS");
static const char *const sources[] = {"none", "device", "events", "twin", "cupti", "host"};
_Static_assert(MG_COUNT_OF(sources) == MG_SOURCE_COUNT, "ORDER SOURCES");
static const char *const directions[] = {"none", "HtoD", "DtoH", "DtoD", "HtoH"};
_Static_assert(MG_COUNT_OF(directions) == MG_DIR_COUNT, "ORDER DIRECTIONS");
static const enum mg_span_kind kind_of_work[] = {MG_SPAN_KERNEL, MG_SPAN_COPY, MG_SPAN_MEMSET, MG_SPAN_PREFETCH,
                                                 MG_SPAN_GRAPH};
_Static_assert(MG_COUNT_OF(kind_of_work) == MG_WORK_COUNT, "ORDER WORKS");

/* Fields of all kinds; where each lies in a record of a file is looked up once for each kind that the files have. */
enum {
    f_end,
    f_correlation,
    f_outer,
    f_name,
    f_result,
    f_layer,
    f_class,
    f_arguments,
    f_stream,
    f_context,
    f_bytes,
    f_launch,
    f_replay,
    f_device,
    f_uncertainty,
    f_work,
    f_source,
    f_direction,
    f_payload,
    f_domain,
    f_kind,
    f_thread,
    f_mark,
    f_done,
    f_communicator,
    f_tag,
    f_peer,
    f_id,
    f_members,
    f_stack,
    f_cut,
    f_addresses,
    f_begin_address,
    f_end_address,
    f_bias,
    f_build_id,
    f_address,
    f_cta,
    f_outside,
    f_kernel,
    f_sm,
    f_lanes,
    f_warp,
    f_depth,
    f_inside,
    f_count
};
static const char *const field_names[] = {
    "end",          "correlation", "outer",          "name",        "result",  "layer",
    "class",        "arguments",   "stream",         "context",     "bytes",   "launch",
    "replay",       "device",      "uncertainty_ns", "work",        "source",  "direction",
    "payload",      "domain",      "kind",           "thread",      "mark",    "done",
    "communicator", "tag",         "peer",           "id",          "members", "stack",
    "cut",          "addresses",   "begin_address",  "end_address", "bias",    "build_id",
    "address",      "cta",         "outside_ns",     "kernel",      "sm",      "lanes",
    "warp",         "depth",       "inside"};
_Static_assert(MG_COUNT_OF(field_names) == f_count, "one name a field");
enum record_kind {
    RECORD_OTHER,
    RECORD_CALL,
    RECORD_WORK,
    RECORD_MARK,
    RECORD_THREAD,
    RECORD_MESSAGE,
    RECORD_COMMUNICATOR,
    RECORD_STACK,
    RECORD_MODULE,
    RECORD_MEMORY,
    RECORD_INSIDE,
    RECORD_KIND_COUNT
};
struct known {
    bool known;
    enum record_kind kind;
    uint32_t at[f_count];
};

struct communicator {
    uint64_t *members;
    uint32_t n;
};
struct mg_spans {
    struct mg_trace_reader *reader;
    struct mg_trace_cursor *cursor;
    struct mg_span_query q;
    MG_VEC(struct known) known;  /* by kind_ix */
    struct mg_map names;         /* hash of a text -> char *, one copy of each for the reader's life */
    struct mg_map threads;       /* pid and thread -> name */
    struct mg_map communicators; /* number -> index */
    MG_VEC(struct communicator) communicator;
    MG_VEC(char *) texts;
    struct mg_stacks stacks;
    struct mg_span span;
    uint64_t *arguments;
    uint32_t arguments_room;
};

const char *mg_span_kind_name(enum mg_span_kind k)
{
    return kinds[k];
}
const char *mg_span_layer_name(enum mg_span_layer l)
{
    return layers[l];
}
const char *mg_span_source_name(enum mg_span_source s)
{
    return sources[s];
}
const char *mg_span_direction_name(enum mg_span_direction d)
{
    return directions[d];
}

static bool wants(const struct mg_span_query *q, enum mg_span_kind kind)
{
    return q->kinds >> kind & 1;
}

static void add_kinds_of(const struct mg_span_query *q, struct mg_buf *out)
{
    bool messages = wants(q, MG_SPAN_MESSAGE), memory = wants(q, MG_SPAN_MEMORY);
    bool alone = q->kinds && !(q->kinds & ~MG_SPANS_ON_REQUEST);
    if (!alone) mg_buf_adds(out, ",call,work,mark,thread,stack,module");
    if (messages) mg_buf_adds(out, alone ? ",message" : ",message,communicator");
    if (memory) mg_buf_adds(out, ",memory");
    if (wants(q, MG_SPAN_INSIDE)) mg_buf_adds(out, ",inside");
}

enum mg_err mg_spans_open(const char *dir, const struct mg_span_query *q, struct mg_spans **out, struct mg_diag *d)
{
    struct mg_spans *s = mg_xcalloc(1, sizeof *s);
    memcpy(&s->q, q, MG_MIN(q->size, sizeof *q));
    enum mg_err err = mg_trace_reader_open(dir, &s->reader, d);
    if (err) {
        free(s);
        return err;
    }
    struct mg_buf kinds_asked = MG_BUF_INIT;
    add_kinds_of(&s->q, &kinds_asked);
    struct mg_trace_query tq = {.size = sizeof tq, .order = MG_TRACE_BY_TIME, .kinds = kinds_asked.at + 1};
    if (s->q.from_ns || s->q.to_ns) tq.keys[MG_TRACE_KEY_TIME - 1] = (struct mg_trace_range){s->q.from_ns, s->q.to_ns};
    s->cursor = mg_trace_cursor_open(s->reader, &tq);
    mg_buf_release(&kinds_asked);
    *out = s;
    return MG_ERR_OK;
}

void mg_spans_close(struct mg_spans *s)
{
    if (!s) return;
    mg_trace_cursor_close(s->cursor);
    mg_trace_reader_free(s->reader);
    for (uint32_t i = 0; i < s->texts.n; i++) free(s->texts.at[i]);
    mg_vec_release(&s->texts);
    mg_vec_release(&s->known);
    mg_map_release(&s->names);
    mg_map_release(&s->threads);
    for (uint32_t i = 0; i < s->communicator.n; i++) free(s->communicator.at[i].members);
    mg_vec_release(&s->communicator);
    mg_map_release(&s->communicators);
    mg_stacks_release(&s->stacks);
    free(s->arguments);
    free(s);
}

static const struct known *look_up(struct mg_spans *s, const struct mg_trace_record *r)
{
    static const struct {
        const char *name;
        enum record_kind kind;
    } records[] = {{"call", RECORD_CALL},     {"work", RECORD_WORK},       {"mark", RECORD_MARK},
                   {"thread", RECORD_THREAD}, {"message", RECORD_MESSAGE}, {"communicator", RECORD_COMMUNICATOR},
                   {"stack", RECORD_STACK},   {"module", RECORD_MODULE},   {"memory", RECORD_MEMORY},
                   {"inside", RECORD_INSIDE}};
    while (s->known.n <= r->kind_ix) *mg_vec_push(&s->known) = (struct known){0};
    struct known *k = &s->known.at[r->kind_ix];
    if (k->known) return k;
    k->known = true;
    for (uint32_t i = 0; i < MG_COUNT_OF(records); i++)
        if (!strcmp(r->kind->name, records[i].name)) k->kind = records[i].kind;
    for (uint32_t i = 0; i < f_count; i++) k->at[i] = mg_trace_field_ix(r->kind, field_names[i]);
    return k;
}

static uint64_t number(const struct mg_trace_record *r, const struct known *k, int field)
{
    return mg_trace_u64(r, k->at[field]);
}

static uint64_t number_or_none(const struct mg_trace_record *r, const struct known *k, int field)
{
    return mg_trace_is_null(r, k->at[field]) ? MG_SPAN_NONE : mg_trace_u64(r, k->at[field]);
}

/* A number below `most`, 0 for one that this version does not know. */
static uint32_t word(const struct mg_trace_record *r, const struct known *k, int field, uint32_t most)
{
    uint64_t v = number(r, k, field);
    return v < most ? (uint32_t)v : 0;
}

/* Texts live as long as the reader: there are as many as names, not as spans. */
static const char *text(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k, int field)
{
    uint32_t bytes = 0;
    const char *at = mg_trace_text(r, k->at[field], &bytes);
    uint64_t v, key = at && bytes ? mg_hash64(at, bytes, 1) | 1 : 0;
    if (!key) return "";
    for (; mg_map_get(&s->names, key, &v); key += 2) {
        const char *have = (const char *)(uintptr_t)v;
        if (strlen(have) == bytes && !memcmp(have, at, bytes)) return have;
    }
    char *copy = mg_xmalloc(bytes + 1);
    memcpy(copy, at, bytes);
    copy[bytes] = 0;
    *mg_vec_push(&s->texts) = copy;
    mg_map_set(&s->names, key, (uint64_t)(uintptr_t)copy);
    return copy;
}

static void read_arguments(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    uint32_t bytes = 0;
    const char *at = mg_trace_text(r, k->at[f_arguments], &bytes);
    uint32_t n = at ? bytes / 8 : 0;
    if (n > s->arguments_room) {
        s->arguments_room = n;
        s->arguments = mg_xrealloc(s->arguments, n * sizeof *s->arguments);
    }
    if (n) memcpy(s->arguments, at, n * sizeof *s->arguments);
    s->span.arguments = s->arguments;
    s->span.n_arguments = n;
}

static void read_call(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    struct mg_span *p = &s->span;
    p->layer = word(r, k, f_layer, MG_LAYER_COUNT);
    p->kind = p->layer == MG_LAYER_mpi ? MG_SPAN_MPI : MG_SPAN_CALL;
    p->class_ = word(r, k, f_class, MG_CLASS_COUNT);
    p->outer = number(r, k, f_outer);
    p->result = (int32_t)number(r, k, f_result);
    p->stream = number_or_none(r, k, f_stream);
    p->context = number_or_none(r, k, f_context);
    p->thread = r->tid;
    p->source = MG_SOURCE_host;
    p->stack = mg_stacks_find(&s->stacks, p->process, number(r, k, f_stack));
    p->name = text(s, r, k, f_name);
    read_arguments(s, r, k);
    if (p->kind == MG_SPAN_MPI && p->n_arguments > MG_MPI_BYTES) p->bytes = p->arguments[MG_MPI_BYTES];
}

static void read_work(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    struct mg_span *p = &s->span;
    p->kind = kind_of_work[word(r, k, f_work, MG_WORK_COUNT)];
    p->stream = number(r, k, f_stream);
    p->context = number(r, k, f_context);
    p->device = (uint32_t)number(r, k, f_device);
    p->bytes = number_or_none(r, k, f_bytes);
    p->launch = number_or_none(r, k, f_launch);
    p->replay = number_or_none(r, k, f_replay);
    p->source = word(r, k, f_source, MG_SOURCE_COUNT);
    p->direction = word(r, k, f_direction, MG_DIR_COUNT);
    p->uncertainty_ns = number_or_none(r, k, f_uncertainty);
    p->range = number(r, k, f_mark);
    p->inside = number(r, k, f_inside) != 0;
    p->name = text(s, r, k, f_name);
    if (!*p->name)
        p->name = p->kind == MG_SPAN_COPY ? mg_span_direction_name(p->direction) : mg_span_kind_name(p->kind);
}

static void read_mark(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    struct mg_span *p = &s->span;
    p->kind = MG_SPAN_MARK;
    p->layer = word(r, k, f_layer, MG_LAYER_COUNT);
    p->mark = word(r, k, f_kind, 3);
    p->payload = number(r, k, f_payload);
    p->outer = number(r, k, f_outer);
    p->thread = r->tid;
    p->source = MG_SOURCE_host;
    p->name = text(s, r, k, f_name);
    p->domain = text(s, r, k, f_domain);
}

static void read_nothing(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    (void)s, (void)r, (void)k;
}

static void read_thread(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    uint64_t key = (uint64_t)r->file->pid << 32 | (uint32_t)number(r, k, f_thread);
    mg_map_set(&s->threads, key, (uint64_t)(uintptr_t)text(s, r, k, f_name));
}

static void read_message(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    struct mg_span *p = &s->span;
    uint64_t peer = number_or_none(r, k, f_peer);
    p->kind = MG_SPAN_MESSAGE;
    p->layer = MG_LAYER_mpi;
    p->end_ns = p->begin_ns;
    p->source = MG_SOURCE_host;
    p->outer = number(r, k, f_done);
    p->received = number(r, k, f_kind) == MG_MESSAGE_RECEIVED;
    p->name = p->received ? "received" : "sent";
    p->bytes = number_or_none(r, k, f_bytes);
    p->communicator = number(r, k, f_communicator);
    p->tag = (int64_t)number(r, k, f_tag);
    p->peer = peer > INT32_MAX ? -1 : (int32_t)peer;
}

static void read_memory(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    struct mg_span *p = &s->span;
    p->kind = MG_SPAN_MEMORY;
    p->end_ns = p->begin_ns;
    p->source = MG_SOURCE_host;
    p->payload = number(r, k, f_address);
    p->bytes = number_or_none(r, k, f_bytes);
    p->device = (uint32_t)number(r, k, f_device);
    p->name = p->bytes == MG_SPAN_NONE ? "freed" : "allocated";
}

static void read_inside(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    struct mg_span *p = &s->span;
    p->kind = MG_SPAN_INSIDE;
    p->device = (uint32_t)number(r, k, f_device);
    p->context = number(r, k, f_context);
    p->stream = number(r, k, f_stream);
    p->launch = number_or_none(r, k, f_launch);
    p->replay = number_or_none(r, k, f_replay);
    p->source = word(r, k, f_source, MG_SOURCE_COUNT);
    p->uncertainty_ns = number_or_none(r, k, f_uncertainty);
    p->payload = number_or_none(r, k, f_outside);
    p->name = text(s, r, k, f_name);
    p->kernel = text(s, r, k, f_kernel);
    p->cta = number(r, k, f_cta);
    p->sm = (uint32_t)number(r, k, f_sm);
    p->warp = (uint32_t)number(r, k, f_warp);
    p->lanes = (uint32_t)number(r, k, f_lanes);
    p->depth = (uint32_t)number(r, k, f_depth);
}

/* All of its members tell of it; the first is kept. */
static void read_communicator(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    uint64_t id = number(r, k, f_id), v;
    uint32_t bytes = 0;
    const char *at = mg_trace_text(r, k->at[f_members], &bytes);
    if (!at || bytes < 8 || mg_map_get(&s->communicators, id, &v)) return;
    struct communicator c = {mg_xmalloc(bytes), bytes / 8};
    memcpy(c.members, at, c.n * sizeof *c.members);
    mg_map_set(&s->communicators, id, s->communicator.n);
    *mg_vec_push(&s->communicator) = c;
}

static void read_stack(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    uint32_t bytes = 0;
    const char *at = mg_trace_text(r, k->at[f_addresses], &bytes);
    if (!at || bytes < 8) return;
    uint64_t *addresses = mg_xmalloc(bytes);
    memcpy(addresses, at, bytes);
    mg_stacks_add(&s->stacks, r->file->pid, number(r, k, f_id), addresses, bytes / 8, number(r, k, f_cut));
    free(addresses);
}

static void read_module(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k)
{
    const char *path = text(s, r, k, f_name);
    struct mg_stack_module m = {
        .process = r->file->pid,
        .file = *path ? mg_symbols_file(&s->stacks.symbols, path, text(s, r, k, f_build_id), r->file->start_real_ns)
                      : UINT32_MAX,
        .begin = number(r, k, f_begin_address),
        .end = number(r, k, f_end_address),
        .bias = number(r, k, f_bias),
    };
    mg_stacks_add_module(&s->stacks, &m);
}

struct mg_stacks *mg_spans_stacks(struct mg_spans *s)
{
    return &s->stacks;
}

const uint64_t *mg_spans_communicator(const struct mg_spans *s, uint64_t id, uint32_t *n)
{
    uint64_t v;
    if (!mg_map_get(&s->communicators, id, &v)) return NULL;
    *n = s->communicator.at[v].n;
    return s->communicator.at[v].members;
}

static bool is_asked_for(const struct mg_spans *s)
{
    const struct mg_span_query *q = &s->q;
    const struct mg_span *p = &s->span;
    if (!((q->kinds ? q->kinds : ~MG_SPANS_ON_REQUEST) >> p->kind & 1)) return false;
    return !(q->from_ns || q->to_ns) || (p->end_ns >= q->from_ns && p->begin_ns <= q->to_ns);
}

typedef void read_fn(struct mg_spans *s, const struct mg_trace_record *r, const struct known *k);
static read_fn *const beside[RECORD_KIND_COUNT] = {
    [RECORD_OTHER] = read_nothing, [RECORD_THREAD] = read_thread, [RECORD_COMMUNICATOR] = read_communicator,
    [RECORD_STACK] = read_stack,   [RECORD_MODULE] = read_module,
};
static read_fn *const spans[RECORD_KIND_COUNT] = {
    [RECORD_CALL] = read_call,       [RECORD_WORK] = read_work,     [RECORD_MARK] = read_mark,
    [RECORD_MESSAGE] = read_message, [RECORD_MEMORY] = read_memory, [RECORD_INSIDE] = read_inside,
};

const struct mg_span *mg_spans_next(struct mg_spans *s)
{
    const struct mg_trace_record *r;
    while ((r = mg_trace_next(s->cursor))) {
        const struct known *k = look_up(s, r);
        if (beside[k->kind]) {
            beside[k->kind](s, r, k);
            continue;
        }
        s->span = (struct mg_span){
            .process = r->file->pid,
            .rank = r->file->rank,
            .begin_ns = r->time, /* what records are ordered by, whatever a damaged file calls it */
            .end_ns = number(r, k, f_end),
            .correlation = number(r, k, f_correlation),
            .bytes = MG_SPAN_NONE,
            .launch = MG_SPAN_NONE,
            .replay = MG_SPAN_NONE,
            .stack = UINT32_MAX,
            .domain = "",
            .kernel = "",
        };
        s->span.end_ns = MG_MAX(s->span.end_ns, s->span.begin_ns);
        spans[k->kind](s, r, k);
        if (is_asked_for(s)) return &s->span;
    }
    return NULL;
}

uint64_t mg_spans_damaged(const struct mg_spans *s, const char **why)
{
    return mg_trace_damaged(s->cursor, why);
}

uint32_t mg_spans_n_processes(const struct mg_spans *s)
{
    return mg_trace_n_files(s->reader);
}

struct mg_span_process mg_spans_process(const struct mg_spans *s, uint32_t ix)
{
    const struct mg_trace_file *f = mg_trace_file(s->reader, ix);
    const struct mg_trace_clock *c = &f->clock;
    bool measured = f->clock_source == MG_TRACE_MESSAGES;
    return (struct mg_span_process){
        .pid = f->pid,
        .rank = f->rank,
        .start_ns = f->start_mono_ns,
        .end_ns = f->end_mono_ns,
        .start_unix_ns = f->start_real_ns,
        .dropped = f->dropped,
        .records = f->records,
        .closed = f->closed,
        .clock = f->clock_source,
        .clock_uncertainty_ns = measured ? MG_MAX(c->uncertainty_ns[0], c->uncertainty_ns[1])
                                : f->clock_source == MG_TRACE_SAME_CLOCK ? 0
                                                                         : MG_SPAN_NONE,
        .clock_drift_ppm = measured && c->n > 1 ? -1e6 * ((double)c->offset_ns[1] - (double)c->offset_ns[0]) /
                                                      (double)(c->at_ns[1] - c->at_ns[0])
                                                : 0,
    };
}

const char *mg_spans_thread_name(const struct mg_spans *s, uint32_t pid, uint32_t thread)
{
    uint64_t v;
    return mg_map_get(&s->threads, (uint64_t)pid << 32 | thread, &v) ? (const char *)(uintptr_t)v : NULL;
}
