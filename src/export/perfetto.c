/* export perfetto: Perfetto's own format, a sequence of TracePacket messages. Spans are slices of plain track events,
 * which every version of the viewer draws; device work is
 * a render stage instead if that is asked for. Tracks form a tree: process, its threads; process, device, streams. A
 * call that enqueued work is held back until its work is met, for its slice names the arrows that begin there
 * (arrows.h). Packets need not be in order of time: the reader sorts them, and keeps the order of what is at one time.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "export/format.h"
#include "export/inflight.h"
#include "export/proto.h"

enum { /* fields, by message */
       PACKET = 1,
       PACKET_TIME = 8,
       PACKET_TIME_CLOCK = 58,
       PACKET_CLOCKS = 6,
       PACKET_SEQUENCE = 10,
       PACKET_FLAGS = 13,
       PACKET_INTERNED = 12,
       PACKET_EVENT = 11,
       PACKET_STAGE = 53,
       PACKET_TRACK = 60,
       CLOCKS_CLOCK = 1,
       CLOCK_ID = 1,
       CLOCK_TIME = 2,
       CLOCKS_PRIMARY = 2,
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_THREAD = 4,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       PROCESS_PID = 1,
       PROCESS_NAME = 6,
       THREAD_PID = 1,
       THREAD_TID = 2,
       THREAD_NAME = 5,
       COUNTER_UNIT = 3,
       INTERNED_CATEGORIES = 1,
       INTERNED_NAMES = 2,
       INTERNED_ANNOTATIONS = 3,
       INTERNED_CONTEXTS = 23,
       INTERNED_SPECIFICATIONS = 24,
       INTERNED_ID = 1,
       INTERNED_TEXT = 2,
       CONTEXT_PID = 2,
       CONTEXT_API = 3,
       SPECIFICATION_CATEGORY = 4,
       STAGE_EVENT_ID = 1,
       STAGE_DURATION = 2,
       STAGE_CONTEXT = 5,
       STAGE_DEVICE = 11,
       STAGE_QUEUE = 13,
       STAGE_KIND = 14,
       STAGE_NAME = 20,
       STAGE_LAUNCH = 21,
       LAUNCH_ARGUMENT = 3,
       ARGUMENT_NAME = 2,
       ARGUMENT_UINT = 4,
       EVENT_CATEGORY = 3,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       EVENT_COUNTER_VALUE = 30,
       EVENT_FLOW = 47,
       EVENT_FLOW_END = 48,
       EVENT_STACK = 55,
       STACK_FRAME = 1,
       FRAME_FUNCTION = 1,
       FRAME_FILE = 2,
       FRAME_LINE = 3,
       ANNOTATION_NAME = 1,
       ANNOTATION_UINT = 3,
       ANNOTATION_INT = 4,
       ANNOTATION_TEXT = 6,
};
enum { CLOCK_OF_DAY = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_BOOT = 6 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { FLAG_FIRST = 1, FLAG_NEEDS_NAMES = 2 };
enum { UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { API_OF_CUDA = 4, CATEGORY_COMPUTE = 2 };
#define FLOWS_OF_CALL 20 /* bits of a flow's number: which piece of the call's work */

/* Numbers of tracks are unique in the file: the top byte says of what. */
#define UUID_PROCESS   0x0100000000000000u
#define UUID_DEVICE    0x0200000000000000u
#define UUID_TRACK     0x0300000000000000u
#define UUID_IN_FLIGHT 0x0400000000000000u
#define UUID_MEMORY    0x0500000000000000u

/* ORDER ANNOTATIONS */
enum annotation {
    A_CORRELATION,
    A_CLASS,
    A_LAYER,
    A_RESULT,
    A_BYTES,
    A_LAUNCH,
    A_REPLAY,
    A_SOURCE,
    A_UNCERTAINTY,
    A_DOMAIN,
    A_PAYLOAD,
    A_PEER,
    A_TAG,
    A_KERNEL,
    A_CTA,
    A_WARP,
    A_SM,
    A_LANES,
    A_COUNT
};
static const char *const annotations[] = {
    "correlation", "class",   "layer", "result", "bytes",  "launch", "replay", "source", "uncertainty_ns",
    "domain",      "payload", "peer",  "tag",    "kernel", "cta",    "warp",   "sm",     "lanes"};
_Static_assert(MG_COUNT_OF(annotations) == A_COUNT, "ORDER ANNOTATIONS");

struct perfetto {
    struct mg_buf packet, event, part, inner, interned;
    struct mg_map names;  /* address of a text -> its number in the file */
    struct mg_map stages; /* of render stages: hash of a context, a queue or a kind -> its number */
    uint64_t n_stages;
    uint64_t flows;           /* calls with arrows */
    MG_VEC(bool) processes;   /* described */
    MG_VEC(uint64_t) devices; /* process << 32 | device of each counter */
    MG_VEC(bool) memories;    /* of x->memory's devices: described */
    struct mg_inflight in_flight;
};

/* ---- packets ----------------------------------------------------------------------------------------- */

static void end_packet(struct mg_export *x, uint32_t flags)
{
    struct perfetto *s = x->state;
    mg_proto_u64(&s->packet, PACKET_SEQUENCE, 1);
    if (flags) mg_proto_u64(&s->packet, PACKET_FLAGS, flags);
    mg_proto_message(&x->buf, PACKET, &s->packet);
    mg_buf_reset(&s->packet);
    mg_export_drain(x);
}

/* Of s->event, with the names that are new. */
static void write_packet(struct mg_export *x, uint32_t field, uint64_t time_ns)
{
    struct perfetto *s = x->state;
    mg_proto_u64(&s->packet, PACKET_TIME, time_ns);
    mg_proto_u64(&s->packet, PACKET_TIME_CLOCK, CLOCK_MONOTONIC_ID);
    if (s->interned.n) mg_proto_message(&s->packet, PACKET_INTERNED, &s->interned);
    mg_proto_message(&s->packet, field, &s->event);
    mg_buf_reset(&s->interned);
    mg_buf_reset(&s->event);
    end_packet(x, FLAG_NEEDS_NAMES);
}

static void write_event(struct mg_export *x, uint64_t time_ns)
{
    write_packet(x, PACKET_EVENT, time_ns);
}

static void add_clock(struct perfetto *s, uint32_t id, uint64_t time_ns)
{
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, CLOCK_ID, id);
    mg_proto_u64(&s->inner, CLOCK_TIME, time_ns);
    mg_proto_message(&s->part, CLOCKS_CLOCK, &s->inner);
}

static void intern(struct perfetto *s, uint32_t table, uint64_t id, const char *text)
{
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, INTERNED_ID, id);
    mg_proto_text(&s->inner, INTERNED_TEXT, text);
    mg_proto_message(&s->interned, table, &s->inner);
}

/* What the viewer calls BOOTTIME is taken to be MONOTONIC: a trace does not know how long its host has slept. */
static void write_head(struct mg_export *x)
{
    struct perfetto *s = x->state;
    add_clock(s, CLOCK_MONOTONIC_ID, x->base_ns);
    add_clock(s, CLOCK_BOOT, x->base_ns);
    add_clock(s, CLOCK_OF_DAY, x->base_unix_ns);
    mg_proto_u64(&s->part, CLOCKS_PRIMARY, CLOCK_BOOT);
    mg_proto_message(&s->packet, PACKET_CLOCKS, &s->part);
    mg_buf_reset(&s->part);
    for (uint32_t i = 0; i < MG_SPAN_KIND_COUNT; i++)
        intern(s, INTERNED_CATEGORIES, i + 1, i == MG_SPAN_CALL ? "api" : mg_span_kind_name(i));
    for (uint32_t i = 0; i < A_COUNT; i++) intern(s, INTERNED_ANNOTATIONS, i + 1, annotations[i]);
    mg_proto_message(&s->packet, PACKET_INTERNED, &s->interned);
    mg_buf_reset(&s->interned);
    end_packet(x, FLAG_FIRST);
}

/* ---- tracks ------------------------------------------------------------------------------------------ */

static void end_track(struct mg_export *x)
{
    struct perfetto *s = x->state;
    mg_proto_message(&s->packet, PACKET_TRACK, &s->part);
    mg_buf_reset(&s->part);
    end_packet(x, 0);
}

static void describe_process(struct mg_export *x, uint32_t ix)
{
    struct perfetto *s = x->state;
    while (s->processes.n <= ix) *mg_vec_push(&s->processes) = false;
    if (s->processes.at[ix]) return;
    s->processes.at[ix] = true;
    const struct mg_track_process *p = &x->tracks.processes.at[ix];
    struct mg_buf name = MG_BUF_INIT;
    mg_export_process_name(p, &name);
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, PROCESS_PID, p->pid);
    mg_proto_text(&s->inner, PROCESS_NAME, name.at);
    mg_proto_u64(&s->part, TRACK_UUID, UUID_PROCESS + ix);
    mg_proto_message(&s->part, TRACK_PROCESS, &s->inner);
    end_track(x);
    mg_buf_release(&name);
}

static void describe_counter(struct mg_export *x, uint64_t kind, uint64_t key, const char *name, uint32_t unit)
{
    struct perfetto *s = x->state;
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, COUNTER_UNIT, unit);
    mg_proto_u64(&s->part, TRACK_UUID, kind + key);
    mg_proto_u64(&s->part, TRACK_PARENT, UUID_DEVICE + key);
    mg_proto_text(&s->part, TRACK_NAME, name);
    mg_proto_message(&s->part, TRACK_COUNTER, &s->inner);
    end_track(x);
}

/* The device of a process as a track without slices, and the counter below it; its index. */
static uint32_t describe_device(struct mg_export *x, uint32_t process, uint32_t device)
{
    struct perfetto *s = x->state;
    uint64_t key = (uint64_t)process << 32 | device;
    for (uint32_t i = 0; i < s->devices.n; i++)
        if (s->devices.at[i] == key) return i;
    *mg_vec_push(&s->devices) = key;
    describe_process(x, process);
    char name[32];
    snprintf(name, sizeof name, "device %u", device);
    mg_proto_u64(&s->part, TRACK_UUID, UUID_DEVICE + key);
    mg_proto_u64(&s->part, TRACK_PARENT, UUID_PROCESS + process);
    mg_proto_text(&s->part, TRACK_NAME, name);
    end_track(x);
    describe_counter(x, UUID_IN_FLIGHT, key, "launches in flight", UNIT_COUNT);
    return s->devices.n - 1;
}

static void describe(struct mg_export *x, struct mg_track *t)
{
    struct perfetto *s = x->state;
    const struct mg_track_key *k = &t->key;
    bool host = k->kind == MG_TRACK_THREAD || k->kind == MG_TRACK_RANGES;
    struct mg_buf name = MG_BUF_INIT;
    t->fresh = false;
    describe_process(x, k->process);
    if (!host) describe_device(x, k->process, k->device);
    mg_export_track_name(x, t, &name);
    mg_proto_u64(&s->part, TRACK_UUID, UUID_TRACK + t->id);
    mg_proto_u64(&s->part, TRACK_PARENT,
                 host ? UUID_PROCESS + k->process : UUID_DEVICE + ((uint64_t)k->process << 32 | k->device));
    if (k->kind == MG_TRACK_THREAD && !t->row) {
        mg_buf_reset(&s->inner);
        mg_proto_u64(&s->inner, THREAD_PID, x->tracks.processes.at[k->process].pid);
        mg_proto_u64(&s->inner, THREAD_TID, k->thread);
        mg_proto_text(&s->inner, THREAD_NAME, name.at);
        mg_proto_message(&s->part, TRACK_THREAD, &s->inner);
    } else {
        mg_proto_text(&s->part, TRACK_NAME, name.at);
    }
    end_track(x);
    mg_buf_release(&name);
}

/* ---- slices -------------------------------------------------------------------------------------------- */

static uint64_t number_name(struct perfetto *s, const char *name)
{
    uint64_t id, key = (uint64_t)(uintptr_t)name;
    if (mg_map_get(&s->names, key, &id)) return id;
    id = s->names.n + 1u;
    mg_map_set(&s->names, key, id);
    intern(s, INTERNED_NAMES, id, name);
    return id;
}

static void begin_event(struct mg_export *x, uint32_t type, uint32_t track, enum mg_span_kind kind, const char *name)
{
    struct perfetto *s = x->state;
    uint64_t id = number_name(s, name);
    mg_proto_u64(&s->event, EVENT_TYPE, type);
    mg_proto_u64(&s->event, EVENT_TRACK, UUID_TRACK + track);
    mg_proto_u64(&s->event, EVENT_CATEGORY, (uint64_t)kind + 1);
    mg_proto_u64(&s->event, EVENT_NAME, id);
}

static void write_end(struct mg_export *x, uint32_t track, uint64_t time_ns)
{
    struct perfetto *s = x->state;
    mg_proto_u64(&s->event, EVENT_TYPE, TYPE_END);
    mg_proto_u64(&s->event, EVENT_TRACK, UUID_TRACK + track);
    write_event(x, time_ns);
}

static void annotate(struct perfetto *s, enum annotation a, uint64_t v)
{
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, ANNOTATION_NAME, a + 1u);
    mg_proto_u64(&s->inner, ANNOTATION_UINT, v);
    mg_proto_message(&s->event, EVENT_ANNOTATION, &s->inner);
}

static void annotate_text(struct perfetto *s, enum annotation a, const char *text)
{
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, ANNOTATION_NAME, a + 1u);
    mg_proto_text(&s->inner, ANNOTATION_TEXT, text);
    mg_proto_message(&s->event, EVENT_ANNOTATION, &s->inner);
}

static void annotate_call(struct perfetto *s, uint64_t correlation, enum mg_call_class class_, enum mg_span_layer layer,
                          int32_t result)
{
    annotate(s, A_CORRELATION, correlation);
    annotate_text(s, A_CLASS, mg_call_class_name(class_));
    annotate_text(s, A_LAYER, mg_span_layer_name(layer));
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, ANNOTATION_NAME, A_RESULT + 1u);
    mg_proto_i64(&s->inner, ANNOTATION_INT, result);
    mg_proto_message(&s->event, EVENT_ANNOTATION, &s->inner);
}

static void annotate_work(struct perfetto *s, const struct mg_span *p)
{
    if (p->correlation) annotate(s, A_CORRELATION, p->correlation);
    if (p->bytes != MG_SPAN_NONE) annotate(s, A_BYTES, p->bytes);
    if (p->launch != MG_SPAN_NONE) annotate(s, A_LAUNCH, p->launch);
    if (p->replay != MG_SPAN_NONE) annotate(s, A_REPLAY, p->replay);
    annotate_text(s, A_SOURCE, mg_span_source_name(p->source));
    if (mg_export_has_uncertainty(p)) annotate(s, A_UNCERTAINTY, p->uncertainty_ns);
}

static void annotate_inside(struct perfetto *s, const struct mg_span *p)
{
    annotate_text(s, A_KERNEL, p->kernel);
    if (p->launch != MG_SPAN_NONE) annotate(s, A_LAUNCH, p->launch);
    if (p->replay != MG_SPAN_NONE) annotate(s, A_REPLAY, p->replay);
    annotate(s, A_CTA, p->cta);
    annotate(s, A_WARP, p->warp);
    annotate(s, A_SM, p->sm);
    annotate(s, A_LANES, p->lanes);
    if (mg_export_has_uncertainty(p)) annotate(s, A_UNCERTAINTY, p->uncertainty_ns);
}

/* The outermost frame first. */
static void add_stack(struct mg_export *x, uint32_t stack)
{
    struct perfetto *s = x->state;
    uint32_t n = 0;
    if (stack == UINT32_MAX) return;
    const struct mg_frame *f = mg_stacks_frames(mg_spans_stacks(x->spans), stack, &n);
    for (uint32_t i = n; i-- > 0;) {
        mg_buf_reset(&x->text);
        mg_frame_print(&f[i], &x->text);
        mg_buf_reset(&s->inner);
        mg_proto_text(&s->inner, FRAME_FUNCTION, x->text.at);
        if (f[i].symbol->file) {
            mg_proto_text(&s->inner, FRAME_FILE, f[i].symbol->file);
            mg_proto_u64(&s->inner, FRAME_LINE, f[i].symbol->line);
        }
        mg_proto_message(&s->part, STACK_FRAME, &s->inner);
    }
    mg_proto_message(&s->event, EVENT_STACK, &s->part);
    mg_buf_reset(&s->part);
}

/* A call that was held back, with the arrows that begin in it. */
static void write_held(struct mg_export *x, const struct mg_arrow_call *c)
{
    struct perfetto *s = x->state;
    begin_event(x, TYPE_BEGIN, c->track, MG_SPAN_CALL, c->name);
    annotate_call(s, c->correlation, c->class_, MG_LAYER_driver, c->result);
    add_stack(x, c->stack);
    for (uint32_t i = 0; i < c->n_work; i++) mg_proto_fixed64(&s->event, EVENT_FLOW, (c->flow << FLOWS_OF_CALL) + i);
    write_event(x, c->begin_ns);
    write_end(x, c->track, MG_MAX(c->end_ns, c->begin_ns + 1));
}

/* What a call of MPI says of itself, and the arrows of its messages: they begin where a message was posted and end
 * where it was received. The top bit sets their numbers apart. */
static void annotate_mpi(struct mg_export *x, const struct mg_span *p)
{
    struct perfetto *s = x->state;
    static const struct {
        enum mg_mpi_argument argument;
        enum annotation annotation;
    } arguments[] = {{MG_MPI_PEER, A_PEER}, {MG_MPI_TAG, A_TAG}, {MG_MPI_BYTES, A_BYTES}};
    for (size_t i = 0; i < MG_COUNT_OF(arguments); i++) {
        uint64_t v = p->n_arguments > arguments[i].argument ? p->arguments[arguments[i].argument] : MG_SPAN_NONE;
        if (v != MG_SPAN_NONE) annotate(s, arguments[i].annotation, v);
    }
    for (uint32_t i = 0, n = mg_export_messages(x, p); i < n; i++) {
        const struct mg_message_end *e = &x->messages.taken.at[i];
        if (e->arrow && (e->received ? e->completes : e->posts))
            mg_proto_fixed64(&s->event, e->received ? EVENT_FLOW_END : EVENT_FLOW, 1ull << 63 | e->arrow);
    }
}

static void write_counter(struct mg_export *x, uint64_t track, uint64_t time_ns, int64_t value)
{
    struct perfetto *s = x->state;
    mg_proto_u64(&s->event, EVENT_TYPE, TYPE_COUNTER);
    mg_proto_u64(&s->event, EVENT_TRACK, track);
    mg_proto_i64(&s->event, EVENT_COUNTER_VALUE, value);
    write_event(x, time_ns);
}

static void write_counters(struct mg_export *x, bool all)
{
    struct perfetto *s = x->state;
    uint64_t time_ns;
    uint32_t counter;
    int64_t value;
    while (mg_inflight_next(&s->in_flight, all, &time_ns, &counter, &value)) {
        write_counter(x, UUID_IN_FLIGHT + s->devices.at[counter], time_ns, value);
    }
}

static void write_memory(struct mg_export *x, const struct mg_span *p, uint32_t device)
{
    struct perfetto *s = x->state;
    if (device == UINT32_MAX) return;
    const struct mg_memory_device *m = &x->memory.devices.at[device];
    uint32_t process = mg_tracks_process(&x->tracks, p);
    uint64_t key = (uint64_t)process << 32 | m->device;
    describe_device(x, process, m->device);
    while (s->memories.n <= device) *mg_vec_push(&s->memories) = false;
    if (!s->memories.at[device]) describe_counter(x, UUID_MEMORY, key, "memory in use", UNIT_BYTES);
    s->memories.at[device] = true;
    write_counter(x, UUID_MEMORY + key, p->begin_ns, (int64_t)m->in_use);
}

/* ---- render stages: device work as the viewer's group of GPUs has it, without arrows ------------------------- */

static bool is_new_stage(struct perfetto *s, const uint64_t words[4], uint64_t *id)
{
    uint64_t key = mg_hash64(words, 4 * sizeof *words, 9);
    if (mg_map_get(&s->stages, key, id)) return false;
    mg_map_set(&s->stages, key, *id = s->stages.n + 1u);
    return true;
}

static uint64_t number_specification(struct mg_export *x, const uint64_t words[4], const char *name)
{
    struct perfetto *s = x->state;
    uint64_t id;
    if (!is_new_stage(s, words, &id)) return id;
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, INTERNED_ID, id);
    mg_proto_text(&s->inner, INTERNED_TEXT, name);
    mg_proto_u64(&s->inner, SPECIFICATION_CATEGORY, CATEGORY_COMPUTE);
    mg_proto_message(&s->interned, INTERNED_SPECIFICATIONS, &s->inner);
    return id;
}

static uint64_t number_context(struct mg_export *x, const struct mg_span *p, uint32_t process)
{
    struct perfetto *s = x->state;
    uint64_t id, words[4] = {1, process, p->context};
    if (!is_new_stage(s, words, &id)) return id;
    mg_buf_reset(&s->inner);
    mg_proto_u64(&s->inner, INTERNED_ID, id);
    mg_proto_u64(&s->inner, CONTEXT_PID, p->process);
    mg_proto_u64(&s->inner, CONTEXT_API, API_OF_CUDA);
    mg_proto_message(&s->interned, INTERNED_CONTEXTS, &s->inner);
    return id;
}

static uint64_t number_queue(struct mg_export *x, const struct mg_span *p, uint32_t process)
{
    uint64_t words[4] = {2, (uint64_t)process << 32 | p->device, p->context, p->stream};
    mg_buf_reset(&x->text);
    mg_export_process_name(&x->tracks.processes.at[process], &x->text);
    mg_buf_printf(&x->text, ", device %u, ", p->device);
    if (p->context) mg_buf_printf(&x->text, "context %llu, ", (unsigned long long)p->context);
    mg_buf_printf(&x->text, "stream %llu", (unsigned long long)p->stream);
    return number_specification(x, words, x->text.at);
}

static void add_launch_argument(struct perfetto *s, struct mg_buf *launch, const char *name, uint64_t v)
{
    mg_buf_reset(&s->inner);
    mg_proto_text(&s->inner, ARGUMENT_NAME, name);
    mg_proto_u64(&s->inner, ARGUMENT_UINT, v);
    mg_proto_message(launch, LAUNCH_ARGUMENT, &s->inner);
}

static void write_stage(struct mg_export *x, const struct mg_span *p, uint64_t end_ns)
{
    struct perfetto *s = x->state;
    uint32_t process = mg_tracks_process(&x->tracks, p);
    uint64_t kind[4] = {3, p->kind}, kind_id = number_specification(x, kind, mg_span_kind_name(p->kind));
    uint64_t context = number_context(x, p, process), queue = number_queue(x, p, process);
    mg_proto_u64(&s->event, STAGE_EVENT_ID, ++s->n_stages);
    mg_proto_u64(&s->event, STAGE_DURATION, end_ns - p->begin_ns);
    mg_proto_u64(&s->event, STAGE_CONTEXT, context);
    mg_proto_u64(&s->event, STAGE_DEVICE, p->device);
    mg_proto_u64(&s->event, STAGE_QUEUE, queue);
    mg_proto_u64(&s->event, STAGE_KIND, kind_id);
    mg_proto_u64(&s->event, STAGE_NAME, number_name(s, mg_export_name(x, p)));
    add_launch_argument(s, &s->part, "device", p->device);
    add_launch_argument(s, &s->part, "stream", p->stream);
    add_launch_argument(s, &s->part, "correlation", p->correlation);
    if (p->bytes != MG_SPAN_NONE) add_launch_argument(s, &s->part, "bytes", p->bytes);
    mg_proto_message(&s->event, STAGE_LAUNCH, &s->part);
    mg_buf_reset(&s->part);
    write_packet(x, PACKET_STAGE, p->begin_ns);
}

static void count_in_flight(struct mg_export *x, uint32_t process, const struct mg_span *p, uint64_t end_ns,
                            const struct mg_arrow_call *call)
{
    struct perfetto *s = x->state;
    if (p->kind != MG_SPAN_KERNEL || !mg_export_is_timed(p)) return;
    uint32_t counter = describe_device(x, process, p->device);
    mg_inflight_add(&s->in_flight, counter, call ? call->begin_ns : p->begin_ns, 1);
    mg_inflight_add(&s->in_flight, counter, end_ns, -1);
}

static void add_arrow(struct mg_export *x, const struct mg_track *t, const struct mg_span *p, uint64_t end_ns)
{
    struct perfetto *s = x->state;
    struct mg_arrow_call *call = mg_arrows_call(&x->arrows, t->key.process, p);
    if (call && call->n_work <= 1u << FLOWS_OF_CALL) {
        if (!call->flow) call->flow = ++s->flows;
        mg_proto_fixed64(&s->event, EVENT_FLOW_END, (call->flow << FLOWS_OF_CALL) + call->n_work - 1);
        x->result.arrows++;
    } else {
        x->result.lost_arrows++;
    }
    count_in_flight(x, t->key.process, p, end_ns, call);
}

/* Render stages have no arrows: the call is written without. */
static void write_as_stage(struct mg_export *x, const struct mg_span *p, uint64_t end_ns)
{
    uint32_t process = mg_tracks_process(&x->tracks, p);
    struct mg_arrow_call *call = mg_arrows_call(&x->arrows, process, p);
    describe_process(x, process);
    write_stage(x, p, end_ns);
    count_in_flight(x, process, p, end_ns, call);
    if (call) call->n_work--;
    write_counters(x, false);
}

static void write_span(struct mg_export *x, const struct mg_span *p)
{
    struct perfetto *s = x->state;
    uint64_t end_ns = MG_MAX(p->end_ns, p->begin_ns + 1);
    if (x->o->stages && mg_export_is_work(p) && mg_export_is_timed(p)) {
        write_as_stage(x, p, end_ns);
        return;
    }
    struct mg_track *t = mg_tracks_find(&x->tracks, p, end_ns);
    struct mg_arrow_call gone;
    bool instant = mg_export_is_instant(p);
    if (t->fresh) describe(x, t);
    if (mg_arrows_add(&x->arrows, t->key.process, p, t->id, &gone)) {
        if (gone.key) write_held(x, &gone);
        return;
    }
    begin_event(x, instant ? TYPE_INSTANT : TYPE_BEGIN, t->id, p->kind, mg_export_name(x, p));
    if (mg_export_is_work(p)) {
        annotate_work(s, p);
        add_arrow(x, t, p, end_ns);
    } else if (p->kind == MG_SPAN_INSIDE) {
        annotate_inside(s, p);
    } else if (p->kind == MG_SPAN_MARK) {
        annotate(s, A_CORRELATION, p->correlation);
        if (*p->domain) annotate_text(s, A_DOMAIN, p->domain);
        annotate(s, A_PAYLOAD, p->payload);
    } else {
        annotate_call(s, p->correlation, p->class_, p->layer, p->result);
        add_stack(x, p->stack);
        if (p->kind == MG_SPAN_MPI) annotate_mpi(x, p);
    }
    write_event(x, p->begin_ns);
    if (!instant) write_end(x, t->id, end_ns);
    write_counters(x, false);
}

static enum mg_err open_perfetto(struct mg_export *x, struct mg_diag *d)
{
    (void)d;
    x->state = mg_xcalloc(1, sizeof(struct perfetto));
    write_head(x);
    return MG_ERR_OK;
}

static enum mg_err close_perfetto(struct mg_export *x, struct mg_diag *d)
{
    (void)d;
    mg_export_name_threads(x, describe);
    struct mg_arrow_call held;
    while (mg_arrows_next(&x->arrows, &held)) write_held(x, &held);
    write_counters(x, true);
    return MG_ERR_OK;
}

static void release(struct mg_export *x)
{
    struct perfetto *s = x->state;
    if (!s) return;
    struct mg_buf *bufs[] = {&s->packet, &s->event, &s->part, &s->inner, &s->interned};
    for (size_t i = 0; i < MG_COUNT_OF(bufs); i++) mg_buf_release(bufs[i]);
    mg_map_release(&s->names);
    mg_map_release(&s->stages);
    mg_vec_release(&s->processes);
    mg_vec_release(&s->devices);
    mg_vec_release(&s->memories);
    mg_inflight_release(&s->in_flight);
    free(s);
}

const struct mg_export_format mg_export_perfetto = {
    .name = "perfetto",
    .summary = "the time line as Perfetto's own format",
    .file = "trace.perfetto-trace",
    .messages = true,
    .inside = true,
    .memory = write_memory,
    .open = open_perfetto,
    .span = write_span,
    .close = close_perfetto,
    .release = release,
};
