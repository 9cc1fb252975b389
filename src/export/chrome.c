/* export chrome: the JSON of chrome://tracing, which Perfetto and speedscope read, too. Spans are `X` events, instants
 * are `i`, an arrow from a call to its work, or from a send to its receive, is a pair `s`, `f`. `ts` is in microseconds
 * after baseTimeNanoseconds, with three places: a double holds nanoseconds of 100 days exactly. Devices are processes
 * of their own to the viewer. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "export/format.h"

#define DEVICE_PID 1000000000u /* viewers' process numbers of devices: beyond those of processes */

struct chrome_frame { /* a place with all its callers; numbers begin at 1 */
    const struct mg_frame *frame;
    uint32_t caller; /* 0: none */
};
struct chrome {
    struct mg_json json;
    MG_VEC(uint32_t) seen;             /* viewers' process numbers that have a name */
    struct mg_map frame_of, frames_of; /* caller's number and place -> its number; stack -> the innermost one's */
    MG_VEC(struct chrome_frame) frames;
};

static uint32_t pid_of(const struct mg_export *x, const struct mg_track *t)
{
    const struct mg_track_key *k = &t->key;
    if (k->kind == MG_TRACK_THREAD || k->kind == MG_TRACK_RANGES) return x->tracks.processes.at[k->process].pid;
    return DEVICE_PID + k->process * 1000 + k->device;
}

/* Threads keep their number; other tracks have one that no thread has. */
static uint64_t tid_of(const struct mg_track *t)
{
    return t->key.kind == MG_TRACK_THREAD && !t->row ? t->key.thread : (1ull << 32) + t->id;
}

static void write_time(struct mg_json *j, const char *key, uint64_t ns)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    mg_json_key(j, key);
    mg_json_raw(j, text);
}

static void write_meta(struct mg_json *j, const char *what, uint32_t pid, uint64_t tid, const char *key,
                       const char *text, uint64_t number)
{
    mg_json_obj(j);
    mg_json_key_str(j, "ph", "M");
    mg_json_key_str(j, "name", what);
    mg_json_key_u64(j, "pid", pid);
    mg_json_key_u64(j, "tid", tid);
    mg_json_key(j, "args");
    mg_json_obj(j);
    if (text)
        mg_json_key_str(j, key, text);
    else
        mg_json_key_u64(j, key, number);
    mg_json_end(j, '}');
    mg_json_end(j, '}');
}

static void describe(struct mg_export *x, struct mg_track *t)
{
    struct chrome *c = x->state;
    struct mg_buf name = MG_BUF_INIT;
    uint32_t pid = pid_of(x, t), i = 0;
    while (i < c->seen.n && c->seen.at[i] != pid) i++;
    if (i == c->seen.n) {
        *mg_vec_push(&c->seen) = pid;
        if (pid >= DEVICE_PID) mg_buf_printf(&name, "device %u, ", t->key.device);
        mg_export_process_name(&x->tracks.processes.at[t->key.process], &name);
        write_meta(&c->json, "process_name", pid, 0, "name", name.at, 0);
        write_meta(&c->json, "process_sort_index", pid, 0, "sort_index", NULL,
                   2 * t->key.process + (pid >= DEVICE_PID));
    }
    mg_buf_reset(&name);
    mg_export_track_name(x, t, &name);
    write_meta(&c->json, "thread_name", pid, tid_of(t), "name", name.at, 0);
    write_meta(&c->json, "thread_sort_index", pid, tid_of(t), "sort_index", NULL, t->key.kind * 100000 + t->id);
    mg_buf_release(&name);
    t->fresh = false;
}

static void write_place(struct mg_export *x, struct mg_json *j, const struct mg_track *t)
{
    mg_json_key_u64(j, "pid", pid_of(x, t));
    mg_json_key_u64(j, "tid", tid_of(t));
}

/* A flow's end binds to the slice around its time on its track. */
static void write_arrow(struct mg_export *x, struct mg_json *j, const struct mg_track *head, uint64_t head_ns,
                        const struct mg_arrow_call *call)
{
    const struct mg_track *tracks[2] = {x->tracks.at.at[call->track], head};
    uint64_t times[2] = {call->begin_ns, head_ns};
    for (int i = 0; i < 2; i++) {
        mg_json_obj(j);
        mg_json_key_str(j, "ph", i ? "f" : "s");
        if (i) mg_json_key_str(j, "bp", "e");
        mg_json_key_str(j, "cat", "launch");
        mg_json_key_str(j, "name", "launch");
        mg_json_key_u64(j, "id", x->result.arrows + 1);
        write_place(x, j, tracks[i]);
        write_time(j, "ts", times[i] - x->base_ns);
        mg_json_end(j, '}');
    }
    x->result.arrows++;
}

/* Begins where the message was posted, ends where it was received. */
static void write_message(struct mg_export *x, struct mg_json *j, const struct mg_track *t, const struct mg_span *p,
                          const struct mg_message_end *e)
{
    char id[32];
    if (!e->arrow || !(e->received ? e->completes : e->posts)) return;
    snprintf(id, sizeof id, "m%" PRIu64, e->arrow);
    mg_json_obj(j);
    mg_json_key_str(j, "ph", e->received ? "f" : "s");
    if (e->received) mg_json_key_str(j, "bp", "e");
    mg_json_key_str(j, "cat", "message");
    mg_json_key_str(j, "name", "message");
    mg_json_key_str(j, "id", id);
    write_place(x, j, t);
    write_time(j, "ts", (e->received ? MG_MAX(p->end_ns, p->begin_ns + 1) - 1 : p->begin_ns) - x->base_ns);
    mg_json_key(j, "args");
    mg_json_obj(j);
    mg_json_key(j, "peer");
    mg_json_i64(j, e->peer);
    mg_json_key(j, "tag");
    mg_json_i64(j, e->tag);
    if (e->bytes != MG_SPAN_NONE) mg_json_key_u64(j, "bytes", e->bytes);
    mg_json_end(j, '}');
    mg_json_end(j, '}');
}

static void write_work_args(struct mg_json *j, const struct mg_span *p)
{
    mg_json_key_u64(j, "device", p->device);
    mg_json_key_u64(j, "context", p->context);
    mg_json_key_u64(j, "stream", p->stream);
    if (p->bytes != MG_SPAN_NONE) mg_json_key_u64(j, "bytes", p->bytes);
    if (p->launch != MG_SPAN_NONE) mg_json_key_u64(j, "launch", p->launch);
    if (p->replay != MG_SPAN_NONE) mg_json_key_u64(j, "replay", p->replay);
    mg_json_key_str(j, "source", mg_span_source_name(p->source));
    if (mg_export_has_uncertainty(p)) mg_json_key_u64(j, "uncertainty_ns", p->uncertainty_ns);
}

static void write_inside_args(struct mg_json *j, const struct mg_span *p)
{
    mg_json_key_str(j, "kernel", p->kernel);
    mg_json_key_u64_if(j, "launch", p->launch != MG_SPAN_NONE, p->launch);
    if (p->replay != MG_SPAN_NONE) mg_json_key_u64(j, "replay", p->replay);
    mg_json_key_u64(j, "cta", p->cta);
    mg_json_key_u64(j, "warp", p->warp);
    mg_json_key_u64(j, "sm", p->sm);
    mg_json_key_u64(j, "lanes", p->lanes);
    mg_json_key_u64_if(j, "uncertainty_ns", mg_export_has_uncertainty(p), p->uncertainty_ns);
}

/* Where the program made the call: viewers that do not read "stackFrames" show it. */
static void write_site(struct mg_export *x, struct mg_json *j, const struct mg_span *p)
{
    static const struct mg_map none;
    if (p->stack == UINT32_MAX) return;
    uint32_t n, at = mg_stacks_site(mg_spans_stacks(x->spans), p->stack, &none);
    mg_buf_reset(&x->text);
    mg_frame_print(&mg_stacks_frames(mg_spans_stacks(x->spans), p->stack, &n)[at], &x->text);
    mg_json_key_str(j, "site", x->text.at);
}

static void write_args(struct mg_export *x, struct mg_json *j, const struct mg_span *p)
{
    mg_json_key(j, "args");
    mg_json_obj(j);
    if (p->correlation) mg_json_key_u64(j, "correlation", p->correlation);
    if (mg_export_is_work(p)) {
        write_work_args(j, p);
    } else if (p->kind == MG_SPAN_INSIDE) {
        write_inside_args(j, p);
    } else if (p->kind == MG_SPAN_MARK) {
        mg_json_key_str(j, "domain", p->domain);
        mg_json_key_u64(j, "payload", p->payload);
    } else {
        mg_json_key_str(j, "layer", mg_span_layer_name(p->layer));
        mg_json_key_str(j, "class", mg_call_class_name(p->class_));
        mg_json_key(j, "result");
        mg_json_i64(j, p->result);
        write_site(x, j, p);
    }
    mg_json_end(j, '}');
}

/* The number of a stack's innermost frame in "stackFrames". */
static uint32_t number_stack(struct mg_export *x, uint32_t stack)
{
    struct chrome *c = x->state;
    uint64_t v;
    if (mg_map_get(&c->frames_of, stack + 1ull, &v)) return (uint32_t)v;
    uint32_t n, caller = 0;
    const struct mg_frame *f = mg_stacks_frames(mg_spans_stacks(x->spans), stack, &n);
    while (n-- > 0) {
        uint64_t words[] = {caller, (uint64_t)(uintptr_t)f[n].path, f[n].address},
                 key = mg_hash64(words, sizeof words, 1);
        if (!mg_map_get(&c->frame_of, key, &v)) {
            *mg_vec_push(&c->frames) = (struct chrome_frame){&f[n], caller};
            mg_map_set(&c->frame_of, key, v = c->frames.n);
        }
        caller = (uint32_t)v;
    }
    mg_map_set(&c->frames_of, stack + 1ull, caller);
    return caller;
}

static void write_frames(struct mg_export *x)
{
    struct chrome *c = x->state;
    char number[16];
    mg_json_key(&c->json, "stackFrames");
    mg_json_obj(&c->json);
    for (uint32_t i = 0; i < c->frames.n; i++) {
        const struct mg_frame *f = c->frames.at[i].frame;
        snprintf(number, sizeof number, "%u", i + 1);
        mg_json_key(&c->json, number);
        mg_json_obj(&c->json);
        mg_buf_reset(&x->text);
        mg_frame_print(f, &x->text);
        mg_json_key_str(&c->json, "name", x->text.at);
        mg_json_key_str(&c->json, "category", f->path ? f->path : "");
        if (f->symbol->file) mg_json_key_str(&c->json, "file", f->symbol->file);
        if (f->symbol->file) mg_json_key_u64(&c->json, "line", f->symbol->line);
        snprintf(number, sizeof number, "%u", c->frames.at[i].caller);
        if (c->frames.at[i].caller) mg_json_key_str(&c->json, "parent", number);
        mg_json_end(&c->json, '}');
    }
    mg_json_end(&c->json, '}');
}

static void write_span(struct mg_export *x, const struct mg_span *p)
{
    struct chrome *c = x->state;
    struct mg_json *j = &c->json;
    uint64_t end_ns = MG_MAX(p->end_ns, p->begin_ns + 1); /* viewers drop slices without length */
    struct mg_track *t = mg_tracks_find(&x->tracks, p, end_ns);
    struct mg_arrow_call gone, *call;
    bool instant = mg_export_is_instant(p);
    if (t->fresh) describe(x, t);
    mg_json_obj(j);
    mg_json_key_str(j, "ph", instant ? "i" : "X");
    mg_json_key_str(j, "cat", p->kind == MG_SPAN_CALL ? "api" : mg_span_kind_name(p->kind));
    mg_json_key(j, "name");
    mg_json_str(j, mg_export_name(x, p));
    write_place(x, j, t);
    write_time(j, "ts", p->begin_ns - x->base_ns);
    if (instant)
        mg_json_key_str(j, "s", "t");
    else
        write_time(j, "dur", end_ns - p->begin_ns);
    if (p->stack != UINT32_MAX) mg_json_key_u64(j, "sf", number_stack(x, p->stack));
    write_args(x, j, p);
    mg_json_end(j, '}');
    mg_buf_addc(&x->buf, '\n');
    for (uint32_t i = 0, n = mg_export_messages(x, p); i < n; i++) write_message(x, j, t, p, &x->messages.taken.at[i]);
    mg_arrows_add(&x->arrows, t->key.process, p, t->id, &gone);
    if (!mg_export_is_work(p)) return;
    if ((call = mg_arrows_call(&x->arrows, t->key.process, p)))
        write_arrow(x, j, t, p->begin_ns, call);
    else
        x->result.lost_arrows++;
}

/* A counter of the process, for its device has no name yet. */
static void write_memory(struct mg_export *x, const struct mg_span *p, uint32_t device)
{
    struct chrome *c = x->state;
    char name[40];
    if (device == UINT32_MAX) return;
    const struct mg_memory_device *m = &x->memory.devices.at[device];
    snprintf(name, sizeof name, "memory in use, device %u", m->device);
    mg_json_obj(&c->json);
    mg_json_key_str(&c->json, "ph", "C");
    mg_json_key_str(&c->json, "name", name);
    mg_json_key_u64(&c->json, "pid", p->process);
    write_time(&c->json, "ts", p->begin_ns - x->base_ns);
    mg_json_key(&c->json, "args");
    mg_json_obj(&c->json);
    mg_json_key_u64(&c->json, "bytes", m->in_use);
    mg_json_end(&c->json, '}');
    mg_json_end(&c->json, '}');
}

static enum mg_err open_chrome(struct mg_export *x, struct mg_diag *d)
{
    (void)d;
    struct chrome *c = x->state = mg_xcalloc(1, sizeof *c);
    mg_json_init(&c->json, &x->buf, 0);
    mg_json_obj(&c->json);
    mg_json_key_str(&c->json, "displayTimeUnit", "ns");
    mg_json_key_u64(&c->json, "baseTimeNanoseconds", x->base_unix_ns);
    mg_json_key(&c->json, "otherData");
    mg_json_obj(&c->json);
    mg_json_key_str(&c->json, "writer", "margay");
    mg_json_key_str(&c->json, "clock", "monotonic_ns");
    mg_json_key_u64(&c->json, "base_ns", x->base_ns);
    mg_json_end(&c->json, '}');
    mg_json_key(&c->json, "traceEvents");
    mg_json_arr(&c->json);
    return MG_ERR_OK;
}

static enum mg_err close_chrome(struct mg_export *x, struct mg_diag *d)
{
    (void)d;
    mg_export_name_threads(x, describe);
    struct chrome *c = x->state;
    mg_json_end(&c->json, ']');
    if (c->frames.n) write_frames(x);
    mg_json_end(&c->json, '}');
    mg_buf_addc(&x->buf, '\n');
    return MG_ERR_OK;
}

static void release(struct mg_export *x)
{
    struct chrome *c = x->state;
    if (!c) return;
    mg_vec_release(&c->seen);
    mg_vec_release(&c->frames);
    mg_map_release(&c->frame_of);
    mg_map_release(&c->frames_of);
    free(c);
}

const struct mg_export_format mg_export_chrome = {
    .name = "chrome",
    .summary = "the time line as JSON for chrome://tracing, Perfetto and speedscope",
    .file = "trace.json",
    .messages = true,
    .inside = true,
    .memory = write_memory,
    .open = open_chrome,
    .span = write_span,
    .close = close_chrome,
    .release = release,
};
