#include "span/tau_events.h"

#include <stdlib.h>
#include <string.h>

#include "abi/cu.h"
#include "base/hash.h"
#include "base/map.h"
#include "span/origins.h"

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY */
#define NONE      MG_SPAN_NONE

/* A kernel that has begun. asked: the first call that asked while it was unfinished, 0: none. */
struct running {
    uint32_t event;
    uint64_t call_ns, end_ns, asked_ns;
};
/* Kernels of one event that have ended and are not delivered: sums of times after base_ns. */
struct ended {
    uint32_t event;
    uint64_t n, n_asked, call_sum, asked_sum;
};
struct stream {
    uint32_t process;
    uint64_t context, number, base_ns;
    MG_VEC(struct running) running;
    MG_VEC(struct ended) ended;
};
/* A call that asked whether work is done: of a stream, or (stream NONE) of a context, or (both NONE, as in traces of
 * older versions) of everything: it is delivered early rather than never.
 * Numbers of streams are unique in a process but for 0: every context has a default stream.
 * before_ns: of what was launched by then. done: it was told so. */
struct question {
    bool done;
    uint32_t process;
    uint64_t context, stream, begin_ns, end_ns, before_ns;
};
struct recorded { /* the last record of an event */
    uint64_t context, stream, ns;
};
struct thread_count {
    uint32_t process, n;
};
struct state {
    struct mg_tau_events *out;
    struct mg_origins launches;
    struct mg_map events, streams, recorded, threads;
    struct mg_map ranges;   /* their names */
    struct mg_map poll_map; /* polls since the last launch: the first of each kind serves for all */
    MG_VEC(struct recorded) recorded_at;
    MG_VEC(struct stream) streams_at;
    MG_VEC(struct question) open;  /* that have not returned yet */
    MG_VEC(struct question) polls; /* by begin: those told that work is not done */
    MG_VEC(struct thread_count) n_threads;
};

static uint64_t key_of(uint32_t process, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t words[] = {process, a, b, c};
    return mg_hash64(words, sizeof words, 1) | 1;
}

/* ---- threads, calls, ranges ------------------------------------------------------------------------------ */

static uint32_t thread_number(struct state *s, uint32_t process, uint32_t thread)
{
    uint64_t v, key = key_of(process, thread, 1, 0);
    if (mg_map_get(&s->threads, key, &v)) return (uint32_t)v;
    uint32_t i = 0;
    while (i < s->n_threads.n && s->n_threads.at[i].process != process) i++;
    if (i == s->n_threads.n) *mg_vec_push(&s->n_threads) = (struct thread_count){process, 0};
    mg_map_set(&s->threads, key, s->n_threads.at[i].n);
    return s->n_threads.at[i].n++;
}

static const char *context_of(const struct state *s, const struct mg_span *p)
{
    uint64_t name;
    bool known = p->range && mg_map_get(&s->ranges, mg_origin_key(p->process, p->range), &name);
    return known ? (const char *)(uintptr_t)name : MG_TAU_TOP;
}

/* ---- streams --------------------------------------------------------------------------------------------- */

static uint32_t stream_of(struct state *s, const struct mg_span *p)
{
    uint64_t v, key = key_of(p->process, p->context, p->stream, 2);
    if (mg_map_get(&s->streams, key, &v)) return (uint32_t)v;
    mg_map_set(&s->streams, key, s->streams_at.n);
    *mg_vec_push(&s->streams_at) = (struct stream){.process = p->process, .context = p->context, .number = p->stream};
    return s->streams_at.n - 1;
}

static void deliver(struct state *s, uint32_t event, uint64_t n, uint64_t wait_ns, uint64_t finalize_ns)
{
    struct mg_tau_event *e = &s->out->at.at[event];
    e->delivered += n;
    e->wait_ns += wait_ns;
    e->finalize_ns += finalize_ns;
}

static void keep_ended(struct stream *t, const struct running *r)
{
    uint32_t i = 0;
    while (i < t->ended.n && t->ended.at[i].event != r->event) i++;
    if (i == t->ended.n) *mg_vec_push(&t->ended) = (struct ended){.event = r->event};
    struct ended *e = &t->ended.at[i];
    if (t->ended.n == 1 && !e->n) t->base_ns = r->call_ns; /* the first since the last delivery */
    e->n++;
    e->call_sum += r->call_ns - MG_MIN(t->base_ns, r->call_ns);
    e->n_asked += r->asked_ns != 0;
    e->asked_sum += r->asked_ns ? r->asked_ns - MG_MIN(t->base_ns, r->asked_ns) : 0;
}

static void move_ended(struct stream *t, uint64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->running.n; i++)
        if (t->running.at[i].end_ns <= now_ns)
            keep_ended(t, &t->running.at[i]);
        else
            t->running.at[kept++] = t->running.at[i];
    t->running.n = kept;
}

static void deliver_ended(struct state *s, struct stream *t, uint64_t now_ns)
{
    uint64_t now = now_ns - MG_MIN(t->base_ns, now_ns);
    for (uint32_t i = 0; i < t->ended.n; i++) {
        const struct ended *e = &t->ended.at[i];
        deliver(s, e->event, e->n, e->n_asked * now - e->asked_sum, e->n * now - e->call_sum);
    }
    t->ended.n = 0;
}

/* ---- questions ------------------------------------------------------------------------------------------- */

static bool is_asked(const struct question *q, const struct stream *t)
{
    if (q->process != t->process) return false;
    if (q->stream != NONE && q->stream) return q->stream == t->number;
    return (q->stream == NONE || !t->number) && (q->context == NONE || q->context == t->context);
}

/* A kernel that is unfinished when it is asked for. True: it is delivered. */
static bool ask(struct state *s, const struct question *q, struct running *r)
{
    if (r->call_ns > q->before_ns) return false;
    if (!r->asked_ns) r->asked_ns = q->begin_ns;
    if (!q->done || r->end_ns > q->end_ns) return false;
    deliver(s, r->event, 1, q->end_ns - r->asked_ns, q->end_ns - r->call_ns);
    return true;
}

static void ask_stream(struct state *s, const struct question *q, struct stream *t)
{
    move_ended(t, q->begin_ns);
    if (q->done) deliver_ended(s, t, q->end_ns);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->running.n; i++)
        if (!ask(s, q, &t->running.at[i])) t->running.at[kept++] = t->running.at[i];
    t->running.n = kept;
}

static void add_question(struct state *s, const struct question *q)
{
    for (uint32_t i = 0; i < s->streams_at.n; i++)
        if (is_asked(q, &s->streams_at.at[i])) ask_stream(s, q, &s->streams_at.at[i]);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->open.n; i++)
        if (s->open.at[i].end_ns > q->begin_ns) s->open.at[kept++] = s->open.at[i];
    s->open.n = kept;
    *mg_vec_push(&s->open) = *q;
    uint64_t words[] = {q->process, q->context, q->stream, q->before_ns == q->begin_ns ? 0 : q->before_ns};
    uint64_t key = mg_hash64(words, sizeof words, 1);
    if (q->done || mg_map_get(&s->poll_map, key, NULL)) return;
    mg_map_set(&s->poll_map, key, 1);
    *mg_vec_push(&s->polls) = *q;
}

/* Asks for a kernel that has just begun: first the polls since it was launched, then what waits. True: it is delivered.
 */
static bool ask_new(struct state *s, const struct stream *t, uint64_t now_ns, struct running *r)
{
    uint32_t first = 0, end = s->polls.n;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (s->polls.at[middle].begin_ns < r->call_ns)
            first = middle + 1;
        else
            end = middle;
    }
    for (; first < s->polls.n && !r->asked_ns; first++)
        if (is_asked(&s->polls.at[first], t)) ask(s, &s->polls.at[first], r);
    for (uint32_t i = 0; i < s->open.n; i++)
        if (is_asked(&s->open.at[i], t) && s->open.at[i].end_ns > now_ns && ask(s, &s->open.at[i], r)) return true;
    return false;
}

static void add_record(struct state *s, const struct mg_span *p)
{
    uint64_t v, key = key_of(p->process, p->arguments[0], 4, 0);
    if (!mg_map_get(&s->recorded, key, &v)) {
        mg_map_set(&s->recorded, key, v = s->recorded_at.n);
        *mg_vec_push(&s->recorded_at) = (struct recorded){0};
    }
    s->recorded_at.at[v] = (struct recorded){p->context, p->stream, p->begin_ns};
}

/* Whom the call asks; false: nobody. */
static bool read_question(struct state *s, const struct mg_span *p, const struct mg_cu_call *c, struct question *q)
{
    *q = (struct question){.done = !p->result,
                           .process = p->process,
                           .context = p->context,
                           .stream = p->stream,
                           .begin_ns = p->begin_ns,
                           .end_ns = p->end_ns,
                           .before_ns = p->begin_ns};
    bool query = !strcmp(c->base, "cuStreamQuery"), event_query = !strcmp(c->base, "cuEventQuery");
    if (p->result && !((query || event_query) && p->result == NOT_READY)) return false;
    bool about_event = c->waits == MG_WAITS_event || event_query;
    if (about_event) {
        uint64_t v;
        if (!p->n_arguments || !mg_map_get(&s->recorded, key_of(p->process, p->arguments[0], 4, 0), &v)) return false;
        const struct recorded *r = &s->recorded_at.at[v];
        q->context = r->context;
        q->stream = r->stream;
        q->before_ns = r->ns;
    }
    if (c->waits == MG_WAITS_context) return true;
    bool about_stream = about_event || query || c->waits == MG_WAITS_stream || c->waits == MG_WAITS_copy;
    return about_stream && (q->stream != NONE || q->context == NONE); /* a stream without a number has no work */
}

static void read_call(struct state *s, const struct mg_span *p)
{
    int entry = mg_cu_entry_find(p->name);
    const struct mg_cu_call *c = entry < 0 ? NULL : mg_call_of_entry((uint32_t)entry);
    struct question q;
    if (!c) return;
    bool records = !strcmp(c->base, "cuEventRecord") || !strcmp(c->base, "cuEventRecordWithFlags");
    if (records && p->n_arguments && !p->result) add_record(s, p);
    if (read_question(s, p, c, &q)) add_question(s, &q);
}

/* ---- spans ------------------------------------------------------------------------------------------------- */

static void add_call(struct state *s, const struct mg_span *p)
{
    thread_number(s, p->process, p->thread);
    if (p->layer != MG_LAYER_driver) return;
    mg_origins_add(&s->launches, p);
    if (p->class_ == MG_CLASS_kernel) mg_map_release(&s->poll_map);
    read_call(s, p);
}

static uint32_t event_of(struct state *s, const struct mg_span *p, uint32_t thread)
{
    const char *context = context_of(s, p);
    uint64_t v, words[] = {(uint64_t)(uintptr_t)p->name,
                           (uint64_t)(uintptr_t)context,
                           p->process,
                           p->device,
                           thread,
                           p->context,
                           p->stream};
    uint64_t key = mg_hash64(words, sizeof words, 1) | 1;
    if (mg_map_get(&s->events, key, &v)) return (uint32_t)v;
    mg_map_set(&s->events, key, s->out->at.n);
    *mg_vec_push(&s->out->at) = (struct mg_tau_event){.name = p->name,
                                                      .context = context,
                                                      .process = p->process,
                                                      .device = p->device,
                                                      .thread = thread,
                                                      .context_ix = p->context,
                                                      .stream = p->stream};
    return s->out->at.n - 1;
}

static void add_kernel(struct state *s, const struct mg_span *p)
{
    struct mg_origin call = {.begin_ns = p->begin_ns};
    bool known = mg_origins_take(&s->launches, p, &call);
    uint32_t event = event_of(s, p, known ? thread_number(s, p->process, call.thread) : 0);
    struct mg_tau_event *e = &s->out->at.at[event];
    e->calls++;
    if (p->source == MG_SOURCE_none) {
        e->untimed++;
        return;
    }
    e->inclusive_ns += p->end_ns - p->begin_ns;
    uint32_t stream = stream_of(s, p); /* streams_at may move */
    struct stream *t = &s->streams_at.at[stream];
    struct running r = {.event = event, .call_ns = call.begin_ns, .end_ns = p->end_ns};
    move_ended(t, p->begin_ns);
    if (!ask_new(s, t, p->begin_ns, &r)) *mg_vec_push(&t->running) = r;
}

static int by_place(const void *a, const void *b)
{
    const struct mg_tau_event *x = a, *y = b;
    const uint64_t keys[][2] = {{x->process, y->process},
                                {x->thread, y->thread},
                                {x->device, y->device},
                                {x->context_ix, y->context_ix},
                                {x->stream, y->stream}};
    for (size_t i = 0; i < MG_COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1]) return keys[i][0] < keys[i][1] ? -1 : 1;
    int c = strcmp(x->context, y->context);
    return c ? c : strcmp(x->name, y->name);
}

static void release_state(struct state *s)
{
    struct mg_map *maps[] = {&s->events, &s->streams, &s->recorded, &s->threads, &s->ranges, &s->poll_map};
    for (size_t i = 0; i < MG_COUNT_OF(maps); i++) mg_map_release(maps[i]);
    for (uint32_t i = 0; i < s->streams_at.n; i++) {
        mg_vec_release(&s->streams_at.at[i].running);
        mg_vec_release(&s->streams_at.at[i].ended);
    }
    mg_vec_release(&s->streams_at);
    mg_vec_release(&s->recorded_at);
    mg_vec_release(&s->open);
    mg_vec_release(&s->n_threads);
    mg_vec_release(&s->polls);
    mg_origins_release(&s->launches);
}

enum mg_err mg_tau_events_init(struct mg_tau_events *e, const char *dir, struct mg_diag *d)
{
    *e = (struct mg_tau_events){0};
    struct mg_span_query q = {.size = sizeof q};
    enum mg_err err = mg_spans_open(dir, &q, &e->spans, d);
    if (err) return err;
    struct state s = {.out = e};
    for (const struct mg_span *p; (p = mg_spans_next(e->spans));)
        if (p->kind == MG_SPAN_CALL || p->kind == MG_SPAN_MPI)
            add_call(&s, p);
        else if (p->kind == MG_SPAN_MARK)
            mg_map_set(&s.ranges, mg_origin_key(p->process, p->correlation), (uintptr_t)p->name);
        else if (p->kind == MG_SPAN_KERNEL)
            add_kernel(&s, p);
    release_state(&s);
    if (e->at.n) qsort(e->at.at, e->at.n, sizeof *e->at.at, by_place);
    return MG_ERR_OK;
}

void mg_tau_events_release(struct mg_tau_events *e)
{
    mg_vec_release(&e->at);
    mg_spans_close(e->spans);
    *e = (struct mg_tau_events){0};
}
