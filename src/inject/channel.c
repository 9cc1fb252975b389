/* Channels, the host's side: memory for the records of launches, and the threads that read them while
 * kernels run. The words are those of tool/channel.h.
 *
 *   launch ── take ─► channel of (context, tool) ◄── give ── launch has ended
 *   reader: a chunk is full? ─► copy it ─► tool.stream; grant it again
 *           no launch uses it any more? ─► read what is left, open segments too, make it new
 *
 * Each reader has rings of its own, so what a warp wrote stays in order. Nothing here waits for a kernel, and a
 * kernel that waits for room waits for a reader only. A channel that is being read to its end is not given
 * out; another is made, up to MOST of a context and tool. */
#include "inject/priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "tool/channel.h"

enum { MOST = 4, READERS = 6, SEGMENT = MG_CHANNEL_SEGMENT, HELD_MOST = 64 << 20 /* bytes of a ring */ };

struct mg_chan_chunk {
    uint64_t from;                   /* its first position */
    uint32_t phys;                   /* where in the ring's memory */
    uint8_t *held;                   /* what was in it, when it was full before one that stands in front of it */
};
struct mg_chan {
    struct mg_chan *next;
    void *where;
    uint32_t use;                    /* of the session */
    uint32_t n_rings, chunk, n_chunks;
    uint64_t control, data;
    size_t control_bytes;
    uint64_t *full;
    uint32_t active;                 /* launches; under `lock` like the next three */
    bool dirty, closing, gone;
    struct mg_chan_ring {
        pthread_mutex_t lock;
        uint32_t granted;            /* chunks of positions so far */
        MG_VEC(struct mg_chan_chunk) out; /* granted and not handed over yet, in order */
        uint64_t held;               /* bytes of theirs on the host */
        uint32_t map[MG_CHANNEL_CHUNKS]; /* what the device's says */
        uint64_t uses[MG_CHANNEL_CHUNKS]; /* by place in memory: times it was granted */
    } *rings;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct mg_chan *channels;     /* only ever added to */
static uint32_t n_readers, n_busy;   /* launches in flight that write records */
static bool ending;                  /* launches that nobody will end keep no channel any more */
static struct { uint64_t bytes, segments, dropped, lost, damaged; bool any; } sums[MG_MAX_USES]; /* under `lock` */

/* ---- launches by their number in records --------------------------------------------------------------------- */

static pthread_rwlock_t numbering = PTHREAD_RWLOCK_INITIALIZER;
static MG_VEC(struct mg_stream_launch *) launches;

static uint32_t number_launch(const struct mg_run *r, const struct mg_region *g)
{
    struct mg_stream_launch *l = calloc(1, sizeof *l);
    if (!l)
        return UINT32_MAX;
    *l = (struct mg_stream_launch){.kernel = r->inst->code->name, .id = r->number, .shape = mg_run_launch(&r->shape),
                                   .sites = g->sites, .n_sites = g->n_sites, .widths = g->channel_widths, .n_widths = g->n_channel_widths};
    pthread_rwlock_wrlock(&numbering);
    uint32_t n = launches.n;
    *mg_vec_push(&launches) = l;
    pthread_rwlock_unlock(&numbering);
    return n;
}

static const struct mg_stream_launch *launch_of(const struct mg_stream *s, uint32_t number)
{
    (void)s;
    pthread_rwlock_rdlock(&numbering);
    const struct mg_stream_launch *l = number < launches.n ? launches.at[number] : NULL;
    pthread_rwlock_unlock(&numbering);
    return l;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

struct reader_pipe { void *where, *pipe; };
struct reader { uint32_t ix; MG_VEC(struct reader_pipe) pipes; };

static void *pipe_of(struct reader *d, const struct mg_chan *c)
{
    for (uint32_t i = 0; i < d->pipes.n; i++)
        if (d->pipes.at[i].where == c->where)
            return d->pipes.at[i].pipe;
    void *p = mg_session.backend->channel->open(c->where, MG_MAX((size_t)c->chunk, c->control_bytes));
    if (p)
        *mg_vec_push(&d->pipes) = (struct reader_pipe){c->where, p};
    return p;
}

static void count(const struct mg_chan *c, uint64_t bytes, uint64_t segments, uint64_t dropped, uint64_t lost, bool damaged)
{
    pthread_mutex_lock(&lock);
    sums[c->use].any = true;
    sums[c->use].bytes += bytes;
    sums[c->use].segments += segments;
    sums[c->use].dropped += dropped;
    sums[c->use].lost += lost;
    sums[c->use].damaged += damaged;
    pthread_mutex_unlock(&lock);
}

static void hand_over(const struct reader *d, const struct mg_chan *c, const uint64_t *segment, uint64_t bytes)
{
    const struct mg_use *use = &mg_session.uses[c->use];
    const struct mg_stream s = {.worker = d->ix, .n_workers = n_readers, .launch = launch_of};
    bool sane = bytes >= 8 && bytes <= SEGMENT && bytes % 8 == 0;
    if (sane && use->tool->stream)
        use->tool->stream(use->conf, &s, segment, (uint32_t)bytes);
    count(c, sane ? bytes : 0, 1, 0, 0, !sane);
}

static uint64_t ring_bytes(const struct mg_chan *c) { return (uint64_t)c->chunk * c->n_chunks; }
static uint64_t chunk_at(const struct mg_chan *c, uint32_t ring, uint32_t phys) { return c->data + ring * ring_bytes(c) + (uint64_t)phys * c->chunk; }

static bool is_full(const struct mg_chan *c, uint32_t ring, uint32_t phys)
{
    return __atomic_load_n(&c->full[ring * MG_CHANNEL_CHUNKS + phys], __ATOMIC_ACQUIRE) == c->rings[ring].uses[phys] * c->chunk;
}

/* The ring may write to this chunk again. */
static bool grant(struct mg_chan *c, void *pipe, uint32_t ring, uint32_t phys)
{
    struct mg_chan_ring *r = &c->rings[ring];
    uint64_t at = c->control + mg_channel_ring_at(ring);
    uint32_t which = r->granted % MG_CHANNEL_CHUNKS;
    *mg_vec_push(&r->out) = (struct mg_chan_chunk){.from = (uint64_t)r->granted * c->chunk, .phys = phys};
    r->uses[phys]++;
    r->granted++;
    r->map[which] = phys;
    uint64_t two = (uint64_t)r->map[which | 1] << 32 | r->map[which & ~1u];
    return mg_session.backend->channel->put(pipe, at + offsetof(struct mg_channel_ring, map) + 4 * (which & ~1u), two) &&
           mg_session.backend->channel->put(pipe, at + offsetof(struct mg_channel_ring, limit), (uint64_t)r->granted * c->chunk);
}

static const uint8_t *copy_chunk(const struct mg_chan *c, void *pipe, unsigned which, uint32_t ring, uint32_t phys)
{
    const struct mg_channel_io *io = mg_session.backend->channel;
    return io->start(pipe, which, chunk_at(c, ring, phys), c->chunk) ? io->wait(pipe, which) : NULL;
}

static void hand_over_chunk(struct reader *d, struct mg_chan *c, const uint8_t *from)
{
    for (uint32_t at = 0; at < c->chunk; at += SEGMENT)
        hand_over(d, c, (const uint64_t *)(from + at), *(const uint64_t *)(from + at));
}

/* The first of the ring's chunks, as long as the host has them whole. */
static void hand_over_held(struct reader *d, struct mg_chan *c, uint32_t ring)
{
    struct mg_chan_ring *r = &c->rings[ring];
    uint32_t n = 0;
    for (; n < r->out.n && r->out.at[n].held; n++) {
        hand_over_chunk(d, c, r->out.at[n].held);
        free(r->out.at[n].held);
        r->held -= c->chunk;
    }
    r->out.n -= n;
    if (n)
        memmove(r->out.at, r->out.at + n, r->out.n * sizeof *r->out.at);
}

/* Full chunks of a ring: read, and granted again. They are handed over in order, since what a warp wrote
 * before stands in an earlier one. While one is read the next is copied. */
static bool pump(struct reader *d, struct mg_chan *c, uint32_t ring)
{
    const struct mg_channel_io *io = mg_session.backend->channel;
    struct mg_chan_ring *r = &c->rings[ring];
    uint64_t full[MG_CHANNEL_CHUNKS]; /* their first positions */
    uint32_t phys[MG_CHANNEL_CHUNKS], n = 0;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->out.n; i++) {
        const struct mg_chan_chunk *k = &r->out.at[i];
        if (k->held || !is_full(c, ring, k->phys))
            continue;
        full[n] = k->from;
        phys[n++] = k->phys;
    }
    void *pipe = n ? pipe_of(d, c) : NULL;
    bool ok = pipe && io->start(pipe, 0, chunk_at(c, ring, phys[0]), c->chunk);
    for (uint32_t i = 0; ok && i < n; i++) {
        const uint8_t *from = io->wait(pipe, i & 1);
        ok = from && (i + 1 == n || io->start(pipe, (i + 1) & 1, chunk_at(c, ring, phys[i + 1]), c->chunk));
        uint32_t at = 0;
        while (ok && r->out.at[at].from != full[i])
            at++;
        if (ok && !at) {
            hand_over_chunk(d, c, from);
            r->out.n--;
            memmove(r->out.at, r->out.at + 1, r->out.n * sizeof *r->out.at);
            hand_over_held(d, c, ring);
        } else if (ok) {
            if (r->held + c->chunk > HELD_MOST || !(r->out.at[at].held = malloc(c->chunk)))
                continue; /* it stays where it is, and the ring has one less */
            memcpy(r->out.at[at].held, from, c->chunk);
            r->held += c->chunk;
        }
        ok = ok && grant(c, pipe, ring, phys[i]);
    }
    pthread_mutex_unlock(&r->lock);
    return n && ok;
}

/* What was written of a ring and not handed over, open segments as far as they are written. */
static bool read_rest(struct reader *d, struct mg_chan *c, void *pipe, uint32_t ring, const struct mg_channel_ring *words)
{
    struct mg_chan_ring *r = &c->rings[ring];
    uint64_t lost = 0;
    for (uint32_t i = 0; i < r->out.n; i++) {
        struct mg_chan_chunk *k = &r->out.at[i];
        uint64_t bytes = words->head > k->from ? MG_MIN(words->head - k->from, (uint64_t)c->chunk) : 0;
        const uint8_t *from = k->held ? k->held : bytes ? copy_chunk(c, pipe, 0, ring, k->phys) : NULL;
        if (bytes && !from)
            return false;
        for (uint64_t s = 0; s < bytes; s += SEGMENT) {
            uint32_t used = mg_channel_used(*(const uint64_t *)(from + s));
            if (!used)
                lost++; /* of a lane that a fault ended */
            else
                hand_over(d, c, (const uint64_t *)(from + s), used);
        }
        free(k->held);
    }
    r->out.n = 0;
    r->held = 0;
    count(c, 0, 0, words->dropped, lost, false);
    return true;
}

/* As it was made: every chunk granted, nothing written. */
static void image_of(struct mg_chan *c, void *control)
{
    bool drops = mg_session.config.channel && !strcmp(mg_session.config.channel, "drop");
    ((struct mg_channel_control *)control)->rounds = drops ? MG_CHANNEL_FEW_ROUNDS : MG_CHANNEL_ROUNDS;
    for (uint32_t ring = 0; ring < c->n_rings; ring++) {
        struct mg_chan_ring *r = &c->rings[ring];
        struct mg_channel_ring *w = (struct mg_channel_ring *)((char *)control + mg_channel_ring_at(ring));
        *w = (struct mg_channel_ring){.limit = ring_bytes(c)};
        r->granted = c->n_chunks;
        for (uint32_t k = 0; k < c->n_chunks; k++) {
            w->map[k] = r->map[k] = k;
            r->uses[k] = 1;
            *mg_vec_push(&r->out) = (struct mg_chan_chunk){.from = (uint64_t)k * c->chunk, .phys = k};
        }
    }
    memset(c->full, 0, sizeof *c->full * c->n_rings * MG_CHANNEL_CHUNKS);
}

static bool read_to_end(struct reader *d, struct mg_chan *c)
{
    const struct mg_channel_io *io = mg_session.backend->channel;
    void *pipe = pipe_of(d, c);
    uint64_t *copy = malloc(c->control_bytes);
    const void *from = pipe && copy && io->start(pipe, 0, c->control, c->control_bytes) ? io->wait(pipe, 0) : NULL;
    bool ok = from != NULL;
    if (ok)
        memcpy(copy, from, c->control_bytes);
    for (uint32_t r = 0; ok && r < c->n_rings; r++)
        ok = read_rest(d, c, pipe, r, (const struct mg_channel_ring *)((char *)copy + mg_channel_ring_at(r)));
    if (ok) {
        image_of(c, copy);
        ok = io->write(pipe, c->control, copy, c->control_bytes);
    }
    free(copy);
    return ok;
}

/* True: something was there to be done. */
static bool finish(struct reader *d, struct mg_chan *c)
{
    pthread_mutex_lock(&lock);
    bool now = c->dirty && !c->gone && !c->closing && (!c->active || ending);
    if (now)
        c->closing = true;
    pthread_mutex_unlock(&lock);
    if (!now)
        return false;
    for (uint32_t r = 0; r < c->n_rings; r++)
        pthread_mutex_lock(&c->rings[r].lock);
    bool ok = read_to_end(d, c);
    for (uint32_t r = 0; r < c->n_rings; r++)
        pthread_mutex_unlock(&c->rings[r].lock);
    pthread_mutex_lock(&lock);
    c->dirty = c->closing = false;
    if (!ok) {
        c->gone = true; /* its context is broken */
        sums[c->use].any = true;
        sums[c->use].lost++;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return true;
}

static void *read_channels(void *arg)
{
    struct reader *d = arg;
    uint32_t idle = 0;
    mg_inside++;
    for (;;) {
        bool any = false;
        for (struct mg_chan *c = __atomic_load_n(&channels, __ATOMIC_ACQUIRE); c; c = c->next) {
            for (uint32_t r = d->ix; !__atomic_load_n(&c->gone, __ATOMIC_ACQUIRE) && r < c->n_rings; r += n_readers)
                any |= pump(d, c, r);
            if (!d->ix)
                any |= finish(d, c);
        }
        idle = any ? 0 : idle + 1;
        if (idle > 200) {
            pthread_mutex_lock(&lock);
            bool waits = !n_busy && !ending;
            for (struct mg_chan *c = channels; c && waits && !d->ix; c = c->next)
                waits = !c->dirty || c->gone;
            if (waits)
                pthread_cond_wait(&changed, &lock);
            pthread_mutex_unlock(&lock);
            idle = 0;
        } else if (idle > 20) {
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        }
    }
    return NULL;
}

/* ---- channels ---------------------------------------------------------------------------------------------------------- */

static bool start_readers(void) /* under `lock` */
{
    if (n_readers)
        return true;
    uint32_t n = MG_MIN(MG_MAX(mg_thread_cpus() / 4, 1u), (uint32_t)READERS);
    n_readers = n;
    for (uint32_t i = 0; i < n; i++) {
        struct reader *d = calloc(1, sizeof *d);
        if (d)
            d->ix = i;
        if (d && mg_thread_start(read_channels, d, 0, NULL))
            continue;
        free(d);
        if (!i)
            n_readers = 0;
        return false;
    }
    return true;
}

static unsigned log2_of(uint64_t n) { return (unsigned)__builtin_ctzll(n); }

static struct mg_chan *new_channel(void *where, uint32_t use)
{
    const struct mg_channel_io *io = mg_session.backend->channel;
    struct mg_chan *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct mg_chan){.where = where, .use = use, .n_rings = io->n_rings, .chunk = io->chunk, .n_chunks = io->n_chunks};
    c->control_bytes = mg_channel_ring_at(c->n_rings);
    c->rings = calloc(c->n_rings, sizeof *c->rings);
    c->control = io->memory(where, c->control_bytes);
    c->data = io->memory(where, c->n_rings * ring_bytes(c) + SEGMENT);
    c->data = (c->data + SEGMENT - 1) & ~(uint64_t)(SEGMENT - 1); /* kernels rely on it */
    c->full = io->host(where, sizeof *c->full * c->n_rings * MG_CHANNEL_CHUNKS);
    uint64_t *image = calloc(1, c->control_bytes);
    bool ok = c->rings && c->control && c->data && c->full && image;
    if (ok) {
        struct mg_channel_control control = {
            .data = c->data, .full = (uintptr_t)c->full, .ring_mask = c->n_rings - 1, .ring_shift = log2_of(ring_bytes(c)),
            .chunk_shift = log2_of(c->chunk), .chunk_mask = c->n_chunks - 1,
        };
        memcpy(image, &control, sizeof control);
        image_of(c, image);
        for (uint32_t r = 0; r < c->n_rings; r++)
            pthread_mutex_init(&c->rings[r].lock, NULL);
        ok = io->fill(where, c->control, image, c->control_bytes);
    }
    free(image);
    if (ok)
        return c;
    free(c->rings);
    free(c);
    return NULL;
}

/* One of the context's for this tool, with one launch more; NULL: there is no memory for one. */
static struct mg_chan *take(void *where, uint32_t use)
{
    pthread_mutex_lock(&lock);
    for (bool made = false;;) {
        struct mg_chan *best = NULL;
        uint32_t n = 0, closing = 0;
        for (struct mg_chan *c = channels; c; c = c->next) {
            if (c->where != where || c->use != use || c->gone)
                continue;
            n++;
            closing += c->closing;
            if (!c->closing && (!best || c->active > best->active))
                best = c;
        }
        if (best) {
            best->active++;
            best->dirty = true;
            n_busy++;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
            return best;
        }
        if (n >= MOST && closing) { /* a reader is at each: it waits for nobody */
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        bool ready = !made && start_readers();
        pthread_mutex_unlock(&lock);
        struct mg_chan *c = ready ? new_channel(where, use) : NULL;
        if (!c)
            return NULL;
        made = true;
        pthread_mutex_lock(&lock);
        c->next = channels;
        __atomic_store_n(&channels, c, __ATOMIC_RELEASE);
    }
}

bool mg_channels_take(struct mg_run *r)
{
    const struct mg_variant *v = r->body->variant;
    const struct mg_channel_io *io = mg_session.backend->channel;
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        if (g->reason || !g->has_channel)
            continue;
        void *where = io ? io->where() : NULL;
        if (!r->channels)
            r->channels = calloc(v->layout.n_regions, sizeof *r->channels);
        uint32_t number = where && r->channels ? number_launch(r, g) : UINT32_MAX;
        if (number == UINT32_MAX || !(r->channels[k].chan = take(where, v->uses[k]))) {
            mg_channels_give(r);
            return false;
        }
        r->channels[k].number = number;
    }
    return true;
}

void mg_channels_words(const struct mg_run *r, uint32_t region, uint64_t *words)
{
    words[0] = r->channels[region].chan->control;
    words[1] = r->channels[region].number;
}

void mg_channels_give(struct mg_run *r)
{
    if (!r->channels)
        return;
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < r->body->variant->layout.n_regions; k++)
        if (r->channels[k].chan) {
            r->channels[k].chan->active--;
            n_busy--;
        }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(r->channels);
    r->channels = NULL;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------------ */

/* Waits until readers have all of what is there, at most so long. */
static void wait_for_readers(uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&lock);
    for (bool late = false; !late;) {
        bool left = false;
        for (struct mg_chan *c = channels; c; c = c->next)
            left |= !c->gone && (c->closing || (c->dirty && (!c->active || ending)));
        if (!left)
            break;
        pthread_cond_broadcast(&changed);
        late = pthread_cond_timedwait(&changed, &lock, &until) != 0;
    }
    pthread_mutex_unlock(&lock);
}

void mg_channels_context_ends(void *ctx, int device)
{
    const struct mg_channel_io *io = mg_session.backend->channel;
    if (!channels || !io)
        return;
    wait_for_readers(2000000000u);
    for (struct mg_chan *c = channels; c; c = c->next) {
        if (!io->is_of(c->where, ctx, device))
            continue;
        for (uint32_t r = 0; r < c->n_rings; r++)
            pthread_mutex_lock(&c->rings[r].lock);
        pthread_mutex_lock(&lock);
        __atomic_store_n(&c->gone, true, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
        for (uint32_t r = 0; r < c->n_rings; r++)
            pthread_mutex_unlock(&c->rings[r].lock);
    }
}

void mg_channels_end(void)
{
    if (!channels)
        return;
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_mutex_unlock(&lock);
    wait_for_readers(5000000000u);
    for (uint32_t u = 0; u < mg_session.n_uses; u++) {
        struct mg_buf b = MG_BUF_INIT;
        struct mg_json j;
        if (!sums[u].any)
            continue;
        mg_json_init(&j, &b, 0);
        mg_json_obj(&j);
        mg_json_key_str(&j, "policy", mg_session.config.channel ? mg_session.config.channel : "block");
        mg_json_key_u64(&j, "bytes", sums[u].bytes);
        mg_json_key_u64(&j, "segments", sums[u].segments);
        mg_json_key_u64(&j, "dropped_records", sums[u].dropped);
        mg_json_key_u64(&j, "lost_segments", sums[u].lost);
        mg_json_key_u64(&j, "damaged_segments", sums[u].damaged);
        mg_json_end(&j, '}');
        mg_store_tool_json(mg_session.store, mg_session.uses[u].name, "channel", b.at);
        mg_buf_release(&b);
        if (sums[u].dropped || sums[u].lost || sums[u].damaged)
            mg_session_say("%s: %llu records dropped, %llu segments lost, %llu damaged", mg_session.uses[u].name, (unsigned long long)sums[u].dropped,
                           (unsigned long long)sums[u].lost, (unsigned long long)sums[u].damaged);
    }
}
