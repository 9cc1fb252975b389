/* Writing a trace: buffers of threads, and the thread that makes chunks of them.
 *
 *   stream ── buffer ── full ──► `full` list ──► writer thread ── pack ── chunk ── file
 *      ▲                                            │   (what lies in buffers that are not full it fetches, too)
 *      └───────────── `spare` list ◄────────────────┘
 *
 * A buffer has one producer, who publishes its fill, and one consumer, who alone moves `taken` and frees it. The lock
 * is taken when a buffer is changed, not for a record. A stream without a buffer on its way always gets one: so no
 * stream waits for what only another thread could hand over. */
#include "trace/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/thread.h"
#include "trace/out.h"
#include "trace/pack.h"

enum { BUFFER = 1 << 16, CHUNK = 1 << 20, MEMORY = 16 << 20, FLUSH_MS = 250, EVERY = 16 };

struct buffer {
    struct buffer *next;
    struct mg_trace_stream *stream;
    _Atomic uint32_t fill; /* the producer's: whole records up to here */
    uint32_t taken;        /* the consumer's */
    uint32_t cap;
    bool last; /* of its stream, which ends with it */
    uint8_t data[];
};

struct mg_trace_stream {
    struct mg_trace_writer *w;
    struct mg_trace_stream *next;
    struct buffer *b;        /* changed under the lock by the producer */
    uint32_t fill, reserved; /* the producer's */
    enum mg_trace_policy policy;
    uint32_t turn; /* of sampling */
    uint32_t number, tid, name;
    uint32_t outstanding; /* under the lock: full buffers that are not written yet */
    _Atomic bool dead;    /* the trace has ended, or a fork came between */
    _Atomic uint64_t dropped, skipped, lost;
    uint64_t told_dropped, told_skipped; /* the consumer's: of these, what chunks say already */
};

struct mg_trace_writer {
    pthread_mutex_t lock;
    pthread_cond_t work, freed, flushed;
    pthread_t thread;
    pthread_key_t key;
    struct mg_trace_opts opts;
    struct mg_trace_kinds kinds;
    struct mg_trace_names names;
    struct mg_trace_stream *streams;
    uint32_t n_streams;
    struct buffer *full, **full_tail, *spare;
    size_t bytes;           /* of all buffers */
    uint64_t asked, served; /* flushes */
    bool ending, ended;
    _Atomic bool forked, stopped;
    struct mg_trace_counts gone; /* of streams that are no more, and the file's */
    /* the writer thread's */
    struct mg_trace_out out;
    struct mg_trace_pack pack;
    uint64_t new_dropped, new_skipped; /* since the last chunk */
    _Atomic uint64_t lost;             /* by this thread */
};

/* ---- producers ----------------------------------------------------------------------------------------- */

static void retire(struct mg_trace_stream *s, bool last)
{
    struct mg_trace_writer *w = s->w;
    struct buffer *b = s->b;
    b->last = last;
    b->next = NULL;
    *w->full_tail = b;
    w->full_tail = &b->next;
    s->outstanding++;
    s->b = NULL;
    pthread_cond_signal(&w->work);
}

static struct buffer *new_buffer(struct mg_trace_stream *s, uint32_t cap)
{
    struct mg_trace_writer *w = s->w;
    struct buffer *b = cap == BUFFER ? w->spare : NULL;
    if (b) {
        w->spare = b->next;
    } else {
        if (!(b = malloc(sizeof *b + cap))) return NULL;
        w->bytes += sizeof *b + cap;
        b->cap = cap;
    }
    b->next = NULL;
    b->stream = s;
    b->taken = 0;
    b->last = false;
    atomic_store_explicit(&b->fill, 0, memory_order_relaxed);
    return b;
}

/* May the stream have one more buffer now? */
static bool may_grow(const struct mg_trace_stream *s, uint32_t cap)
{
    const struct mg_trace_writer *w = s->w;
    return !s->outstanding || (cap == BUFFER && w->spare) || w->bytes + cap <= w->opts.memory_bytes;
}

/* Puts a buffer with room for so many bytes in place; false: the record is counted as dropped or lost. */
static MG_NOINLINE bool change_buffer(struct mg_trace_stream *s, uint32_t need)
{
    struct mg_trace_writer *w = s->w;
    uint32_t cap = MG_MAX(need, (uint32_t)BUFFER);
    if (atomic_load_explicit(&w->forked, memory_order_relaxed)) return false;
    pthread_mutex_lock(&w->lock);
    while (s->policy == MG_TRACE_BLOCK && !w->stopped && !w->ending && !may_grow(s, cap)) {
        pthread_cond_signal(&w->work);
        pthread_cond_wait(&w->freed, &w->lock);
    }
    bool over = w->stopped || w->ending;
    if (!over && may_grow(s, cap)) {
        struct buffer *b = new_buffer(s, cap);
        if (b) {
            if (s->b) retire(s, false);
            s->b = b;
            s->fill = 0;
            pthread_mutex_unlock(&w->lock);
            return true;
        }
    }
    bool late = w->ending && !w->stopped; /* the process ends while the thread goes on: nobody waits for its record */
    pthread_mutex_unlock(&w->lock);
    if (!late) atomic_fetch_add_explicit(over ? &s->lost : &s->dropped, 1, memory_order_relaxed);
    return false;
}

/* Is the record one that sampling leaves out? */
static bool is_skipped(struct mg_trace_stream *s, uint32_t kind)
{
    const struct mg_trace_writer *w = s->w;
    if (!(w->kinds.at[kind]->kind.flags & MG_TRACE_SAMPLED) || s->turn++ % w->opts.every == 0) return false;
    atomic_fetch_add_explicit(&s->skipped, 1, memory_order_relaxed);
    return true;
}

void *mg_trace_reserve(struct mg_trace_stream *s, uint32_t kind, uint32_t bytes)
{
    uint32_t word = mg_trace_word(kind, bytes), need = (uint32_t)sizeof word + bytes;
    if (!s || atomic_load_explicit(&s->dead, memory_order_relaxed)) return NULL;
    struct mg_trace_writer *w = s->w;
    if (MG_UNLIKELY(!kind || kind > w->kinds.n || bytes > MG_TRACE_MOST_BYTES ||
                    atomic_load_explicit(&w->stopped, memory_order_relaxed))) {
        atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
        return NULL;
    }
    if (MG_UNLIKELY(s->policy == MG_TRACE_SAMPLE) && is_skipped(s, kind)) return NULL;
    if (MG_UNLIKELY(!s->b || s->b->cap - s->fill < need) && !change_buffer(s, need)) return NULL;
    uint8_t *at = s->b->data + s->fill;
    memcpy(at, &word, sizeof word);
    s->reserved = need;
    return at + sizeof word;
}

void mg_trace_commit(struct mg_trace_stream *s)
{
    s->fill += s->reserved;
    s->reserved = 0;
    atomic_store_explicit(&s->b->fill, s->fill, memory_order_release);
}

bool mg_trace_put(struct mg_trace_stream *s, uint32_t kind, const void *fixed, uint32_t fixed_bytes, const void *tail,
                  uint32_t tail_bytes)
{
    uint8_t *at = mg_trace_reserve(s, kind, fixed_bytes + tail_bytes);
    if (!at) return false;
    memcpy(at, fixed, fixed_bytes);
    if (tail_bytes) memcpy(at + fixed_bytes, tail, tail_bytes);
    mg_trace_commit(s);
    return true;
}

static struct mg_trace_stream *add_stream(struct mg_trace_writer *w, const char *name, uint32_t tid)
{
    if (w->forked) return NULL;
    struct mg_trace_stream *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->w = w;
    s->name = mg_trace_name(w, name);
    s->tid = tid;
    s->policy = w->opts.policy;
    pthread_mutex_lock(&w->lock);
    s->number = w->n_streams++;
    s->dead = w->ended;
    s->next = w->streams;
    w->streams = s;
    pthread_mutex_unlock(&w->lock);
    return s;
}

struct mg_trace_stream *mg_trace_stream_open(struct mg_trace_writer *w, const char *name)
{
    return add_stream(w, name, 0);
}

void mg_trace_stream_policy(struct mg_trace_stream *s, enum mg_trace_policy policy)
{
    s->policy = policy;
}

/* Takes a stream out of the list and keeps what it counted. Under the lock. */
static void remove_stream(struct mg_trace_writer *w, struct mg_trace_stream *s)
{
    struct mg_trace_stream **at = &w->streams;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    w->gone.dropped += s->dropped;
    w->gone.skipped += s->skipped;
    w->gone.lost += s->lost;
    w->new_dropped += s->dropped - s->told_dropped;
    w->new_skipped += s->skipped - s->told_skipped;
    free(s);
}

void mg_trace_stream_close(struct mg_trace_stream *s)
{
    struct mg_trace_writer *w = s ? s->w : NULL;
    if (!w || w->forked) return;
    pthread_mutex_lock(&w->lock);
    if (!s->b && !w->ended) s->b = new_buffer(s, BUFFER); /* an empty one, which says that it ends */
    if (s->b && !w->ended)
        retire(s, true);
    else
        atomic_store(&s->dead, true); /* the end of the trace frees it */
    pthread_mutex_unlock(&w->lock);
}

static void end_thread_stream(void *stream)
{
    mg_trace_stream_close(stream);
}

struct mg_trace_stream *mg_trace_thread(struct mg_trace_writer *w)
{
    struct mg_trace_stream *s = pthread_getspecific(w->key);
    if (MG_LIKELY(s)) return s;
    if (w->forked || !(s = add_stream(w, "thread", (uint32_t)gettid()))) return NULL;
    if (!pthread_setspecific(w->key, s)) return s;
    mg_trace_stream_close(s);
    return NULL;
}

uint32_t mg_trace_kind_add(struct mg_trace_writer *w, const struct mg_trace_kind *k)
{
    return w->forked ? 0 : mg_trace_kinds_add(&w->kinds, k);
}

uint32_t mg_trace_name(struct mg_trace_writer *w, const char *text)
{
    return w->forked ? 0 : mg_trace_names_add(&w->names, text);
}

/* ---- the writer thread --------------------------------------------------------------------------------- */

static void stop(struct mg_trace_writer *w, uint64_t more_lost)
{
    char line[512], launch[64] = "";
    const struct mg_trace_out *o = &w->out;
    uint64_t last = 0;
    bool some = false;
    for (uint64_t i = 0; i < o->n_entries; i++) {
        const struct mg_trace_range *r = &o->entries[i].keys[MG_TRACE_KEY_LAUNCH - 1];
        if (r->first > r->last) continue;
        last = MG_MAX(last, r->last);
        some = true;
    }
    if (some) snprintf(launch, sizeof launch, ", up to launch %llu", (unsigned long long)last);
    snprintf(line, sizeof line, "the trace stops: cannot write %s; %llu records are kept%s", o->why,
             (unsigned long long)o->records, launch);
    w->lost += more_lost;
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stopped, true);
    pthread_cond_broadcast(&w->freed);
    pthread_mutex_unlock(&w->lock);
    if (w->opts.say) w->opts.say(w->opts.say_user, line);
}

static void end_chunk(struct mg_trace_writer *w)
{
    struct mg_trace_chunk_head h;
    const void *stored;
    if (!w->pack.n_records) return;
    bool ok = mg_trace_pack_end(&w->pack, &h, &stored);
    h.dropped = w->new_dropped;
    h.skipped = w->new_skipped;
    if (!ok || w->stopped) {
        w->lost += h.n_records;
        return;
    }
    if (!mg_trace_out_chunk(&w->out, &h, stored)) {
        stop(w, h.n_records);
        return;
    }
    w->new_dropped = w->new_skipped = 0;
}

/* What is in a buffer and was not fetched before. */
static void fetch(struct mg_trace_writer *w, struct mg_trace_stream *s, struct buffer *b)
{
    uint32_t fill = atomic_load_explicit(&b->fill, memory_order_acquire);
    uint64_t dropped = s->dropped, skipped = s->skipped;
    w->new_dropped += dropped - s->told_dropped;
    w->new_skipped += skipped - s->told_skipped;
    s->told_dropped = dropped;
    s->told_skipped = skipped;
    if (fill == b->taken) return;
    w->lost += mg_trace_pack_add(&w->pack, s->number, s->tid, s->name, b->data + b->taken, fill - b->taken);
    b->taken = fill;
    if (w->pack.n >= CHUNK) end_chunk(w);
}

static void give_back(struct mg_trace_writer *w, struct buffer *b)
{
    struct mg_trace_stream *s = b->stream;
    bool last = b->last;
    pthread_mutex_lock(&w->lock);
    s->outstanding--;
    if (b->cap == BUFFER && w->bytes <= w->opts.memory_bytes) {
        b->next = w->spare;
        w->spare = b;
    } else {
        w->bytes -= sizeof *b + b->cap;
        free(b);
    }
    if (last) remove_stream(w, s);
    pthread_cond_broadcast(&w->freed);
    pthread_mutex_unlock(&w->lock);
}

struct partial {
    struct mg_trace_stream *stream;
    struct buffer *b;
};

/* Buffers that are being filled, as they are now; under the lock. Only this thread frees streams and buffers. */
static struct partial *list_partials(struct mg_trace_writer *w, uint32_t *n)
{
    uint32_t most = 0;
    *n = 0;
    for (const struct mg_trace_stream *s = w->streams; s; s = s->next) most++;
    struct partial *p = malloc((most + 1) * sizeof *p);
    for (struct mg_trace_stream *s = w->streams; p && s; s = s->next)
        if (s->b) p[(*n)++] = (struct partial){s, s->b};
    return p;
}

static struct timespec after_ms(uint32_t ms)
{
    uint64_t ns = mg_now_ns() + ms * 1000000ull;
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

static void publish_counts(struct mg_trace_writer *w)
{
    w->gone.written = w->out.records;
}

static void *run_writer(void *arg)
{
    struct mg_trace_writer *w = arg;
    mg_thread_name("margay trace");
    struct timespec tick = after_ms(w->opts.flush_ms);
    bool ending = false;
    while (!ending) {
        bool due = false;
        pthread_mutex_lock(&w->lock);
        while (!w->full && !w->ending && w->asked == w->served && !due)
            due = pthread_cond_timedwait(&w->work, &w->lock, &tick) == ETIMEDOUT;
        ending = w->ending;
        uint64_t asked = w->asked;
        struct buffer *full = w->full;
        uint32_t n = 0;
        if (asked != w->served || ending) due = true;
        struct partial *partials = due ? list_partials(w, &n) : NULL;
        w->full = NULL;
        w->full_tail = &w->full;
        pthread_mutex_unlock(&w->lock);
        while (full) {
            struct buffer *b = full;
            full = b->next;
            fetch(w, b->stream, b);
            give_back(w, b);
        }
        for (uint32_t i = 0; i < n; i++) fetch(w, partials[i].stream, partials[i].b);
        free(partials);
        if (due) {
            end_chunk(w);
            tick = after_ms(w->opts.flush_ms);
        }
        pthread_mutex_lock(&w->lock);
        publish_counts(w);
        w->served = asked;
        pthread_cond_broadcast(&w->flushed);
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static void free_buffers(struct buffer *b)
{
    while (b) {
        struct buffer *next = b->next;
        free(b);
        b = next;
    }
}

static void free_writer(struct mg_trace_writer *w)
{
    for (struct mg_trace_stream *s = w->streams, *next; s; s = next) {
        next = s->next;
        free(s->b);
        free(s);
    }
    free_buffers(w->full);
    free_buffers(w->spare);
    mg_trace_kinds_release(&w->kinds);
    mg_trace_names_release(&w->names);
    mg_trace_pack_release(&w->pack);
    mg_trace_out_release(&w->out);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->freed);
    pthread_cond_destroy(&w->flushed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void init_locks(struct mg_trace_writer *w)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, &attr);
    pthread_cond_init(&w->freed, &attr);
    pthread_cond_init(&w->flushed, &attr);
    pthread_condattr_destroy(&attr);
}

enum mg_err mg_trace_open(const struct mg_trace_opts *o, struct mg_trace_writer **out, struct mg_diag *d)
{
    struct mg_trace_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w) return mg_diag_err(d, MG_ERR_NO_MEMORY, "no memory for a trace");
    memcpy(&w->opts, o, MG_MIN(o->size, sizeof *o));
    if (!w->opts.memory_bytes) w->opts.memory_bytes = MEMORY;
    if (!w->opts.flush_ms) w->opts.flush_ms = FLUSH_MS;
    if (!w->opts.every) w->opts.every = EVERY;
    w->full_tail = &w->full;
    w->out.fd = -1;
    init_locks(w);
    mg_trace_names_init(&w->names);
    enum mg_err err = MG_ERR_NO_MEMORY;
    if (!mg_trace_kinds_init(&w->kinds) || !mg_trace_pack_init(&w->pack, &w->kinds, &w->names)) {
        mg_diag_err(d, err, "no memory for a trace");
        goto failed;
    }
    err = mg_trace_out_open(&w->out, o, d);
    if (err) goto failed;
    w->opts.dir = NULL; /* the caller's texts are not kept */
    w->opts.attributes = NULL;
    if (pthread_key_create(&w->key, end_thread_stream)) {
        err = mg_diag_err(d, MG_ERR_LIMIT, "no key for the threads of a trace");
        goto failed;
    }
    if (mg_thread_start(run_writer, w, 0, &w->thread)) {
        *out = w;
        return MG_ERR_OK;
    }
    pthread_key_delete(w->key);
    err = mg_diag_err(d, MG_ERR_LIMIT, "no thread to write a trace");
failed:
    free_writer(w);
    return err;
}

uint64_t mg_trace_flush_ask(struct mg_trace_writer *w)
{
    pthread_mutex_lock(&w->lock);
    uint64_t mine = ++w->asked;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    return mine;
}

bool mg_trace_flush_done(struct mg_trace_writer *w, uint64_t asked)
{
    pthread_mutex_lock(&w->lock);
    bool done = w->served >= asked || w->ended;
    pthread_mutex_unlock(&w->lock);
    return done;
}

bool mg_trace_flush(struct mg_trace_writer *w, uint32_t timeout_ms)
{
    if (!w || w->forked) return true;
    struct timespec until = after_ms(timeout_ms);
    uint64_t mine = mg_trace_flush_ask(w);
    pthread_mutex_lock(&w->lock);
    int rc = 0;
    while (w->served < mine && !w->ended && !rc) rc = pthread_cond_timedwait(&w->flushed, &w->lock, &until);
    pthread_mutex_unlock(&w->lock);
    return !rc;
}

void mg_trace_end(struct mg_trace_writer *w)
{
    if (!w || w->forked || w->ended) return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_signal(&w->work);
    pthread_cond_broadcast(&w->freed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_lock(&w->lock);
    w->ended = true;
    uint64_t lost = w->lost + w->gone.lost;
    w->out.dropped += w->new_dropped;
    w->out.skipped += w->new_skipped;
    for (struct mg_trace_stream *s = w->streams; s; s = s->next) {
        atomic_store(&s->dead, true);
        lost += s->lost;
        w->out.dropped += s->dropped - s->told_dropped;
        w->out.skipped += s->skipped - s->told_skipped;
    }
    pthread_cond_broadcast(&w->flushed);
    pthread_mutex_unlock(&w->lock);
    mg_trace_out_end(&w->out, lost);
}

void mg_trace_close(struct mg_trace_writer *w)
{
    if (!w || w->forked) return;
    mg_trace_end(w);
    pthread_key_delete(w->key);
    free_writer(w);
}

void mg_trace_forked(struct mg_trace_writer *w)
{
    if (!w) return;
    atomic_store(&w->forked, true);
    for (struct mg_trace_stream *s = w->streams; s; s = s->next) atomic_store(&s->dead, true);
}

const char *mg_trace_path(const struct mg_trace_writer *w)
{
    return w->out.path;
}

void mg_trace_counts(struct mg_trace_writer *w, struct mg_trace_counts *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->gone;
    out->lost += w->lost;
    out->stopped = w->stopped;
    for (const struct mg_trace_stream *s = w->streams; s; s = s->next) {
        out->dropped += s->dropped;
        out->skipped += s->skipped;
        out->lost += s->lost;
    }
    pthread_mutex_unlock(&w->lock);
}
