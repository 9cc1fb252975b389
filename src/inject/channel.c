/* Channels, the host's side: memory for the records of launches, and the threads that read them while
 * kernels run. The words are those of tool/channel.h.
 *
 *   launch ── take ─► channel of a tool ◄── give ── launch has ended
 *   reader: a chunk is full? ─► tool.stream; grant it again
 *           no launch uses it any more? ─► read what is left, open segments too, make it new
 *
 * Each reader has rings of its own, so what a warp wrote stays in order. Nothing here waits for a kernel, and a
 * kernel that waits for room waits for a reader only. A channel that is being read to its end is not given
 * out; another is made, up to MOST of a tool. Kernels and the host address one memory: software devices only. */
#include "inject/priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "tool/channel.h"

enum {
    MOST = 4, READERS = 6, SEGMENT = MG_CHANNEL_SEGMENT,
    RINGS = 8, CHUNKS = MG_CHANNEL_CHUNKS, CHUNK = 1 << 16, RING_BYTES = CHUNKS * CHUNK,
    HELD_MOST = 64 << 20, /* bytes of a ring */
};

struct mg_chan_chunk {
    uint64_t from;                   /* its first position */
    uint32_t phys;                   /* where in the ring's memory */
    uint8_t *held;                   /* what was in it, when it was full before one that stands in front of it */
};
struct mg_chan {
    struct mg_chan *next;
    uint32_t use;                    /* of the session */
    struct mg_channel_control *control;
    uint8_t *data;
    uint64_t *full;
    uint32_t active;                 /* launches; under `lock` like the next two */
    bool dirty, closing;
    struct mg_chan_ring {
        pthread_mutex_t lock;
        uint32_t granted;            /* chunks of positions so far */
        MG_VEC(struct mg_chan_chunk) out; /* granted and not handed over yet, in order */
        uint64_t held;               /* bytes of theirs that are copies */
        uint64_t uses[CHUNKS];       /* by place in memory: times it was granted */
    } rings[RINGS];
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

struct reader { uint32_t ix; };

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

static uint8_t *chunk_at(const struct mg_chan *c, uint32_t ring, uint32_t phys) { return c->data + (size_t)ring * RING_BYTES + (size_t)phys * CHUNK; }
static struct mg_channel_ring *ring_of(const struct mg_chan *c, uint32_t ring) { return (struct mg_channel_ring *)((char *)c->control + mg_channel_ring_at(ring)); }

static bool is_full(const struct mg_chan *c, uint32_t ring, uint32_t phys)
{
    return __atomic_load_n(&c->full[ring * CHUNKS + phys], __ATOMIC_ACQUIRE) == c->rings[ring].uses[phys] * CHUNK;
}

/* The ring may write to this chunk again. */
static void grant(struct mg_chan *c, uint32_t ring, uint32_t phys)
{
    struct mg_chan_ring *r = &c->rings[ring];
    struct mg_channel_ring *w = ring_of(c, ring);
    *mg_vec_push(&r->out) = (struct mg_chan_chunk){.from = (uint64_t)r->granted * CHUNK, .phys = phys};
    r->uses[phys]++;
    __atomic_store_n(&w->map[r->granted++ % CHUNKS], phys, __ATOMIC_RELEASE);
    __atomic_store_n(&w->limit, (uint64_t)r->granted * CHUNK, __ATOMIC_RELEASE);
}

static void hand_over_chunk(struct reader *d, struct mg_chan *c, const uint8_t *from)
{
    for (uint32_t at = 0; at < CHUNK; at += SEGMENT)
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
        r->held -= CHUNK;
    }
    r->out.n -= n;
    if (n)
        memmove(r->out.at, r->out.at + n, r->out.n * sizeof *r->out.at);
}

/* Full chunks of a ring: read, and granted again. They are handed over in order, since what a warp wrote
 * before stands in an earlier one. */
static bool pump(struct reader *d, struct mg_chan *c, uint32_t ring)
{
    struct mg_chan_ring *r = &c->rings[ring];
    uint64_t full[CHUNKS]; /* their first positions */
    uint32_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->out.n; i++)
        if (!r->out.at[i].held && is_full(c, ring, r->out.at[i].phys))
            full[n++] = r->out.at[i].from;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = 0;
        while (r->out.at[at].from != full[i])
            at++;
        uint32_t phys = r->out.at[at].phys;
        const uint8_t *from = chunk_at(c, ring, phys);
        if (!at) {
            hand_over_chunk(d, c, from);
            r->out.n--;
            memmove(r->out.at, r->out.at + 1, r->out.n * sizeof *r->out.at);
            hand_over_held(d, c, ring);
        } else {
            if (r->held + CHUNK > HELD_MOST || !(r->out.at[at].held = malloc(CHUNK)))
                continue; /* it stays where it is, and the ring has one less */
            memcpy(r->out.at[at].held, from, CHUNK);
            r->held += CHUNK;
        }
        grant(c, ring, phys);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

/* What was written of a ring and not handed over, open segments as far as they are written. */
static void read_rest(struct reader *d, struct mg_chan *c, uint32_t ring)
{
    struct mg_chan_ring *r = &c->rings[ring];
    const struct mg_channel_ring *w = ring_of(c, ring);
    uint64_t lost = 0;
    for (uint32_t i = 0; i < r->out.n; i++) {
        struct mg_chan_chunk *k = &r->out.at[i];
        uint64_t bytes = w->head > k->from ? MG_MIN(w->head - k->from, (uint64_t)CHUNK) : 0;
        const uint8_t *from = k->held ? k->held : chunk_at(c, ring, k->phys);
        for (uint64_t s = 0; s < bytes; s += SEGMENT) {
            uint32_t used = mg_channel_used(*(const uint64_t *)(from + s));
            if (!used)
                lost++; /* of a lane that a fault ended */
            else
                hand_over(d, c, (const uint64_t *)(from + s), used);
        }
        free(k->held);
    }
    count(c, 0, 0, w->dropped, lost, false);
}

/* Every chunk granted, nothing written. */
static void make_new(struct mg_chan *c)
{
    bool drops = mg_session.config.channel && !strcmp(mg_session.config.channel, "drop");
    c->control->rounds = drops ? MG_CHANNEL_FEW_ROUNDS : MG_CHANNEL_ROUNDS;
    memset(c->full, 0, sizeof *c->full * RINGS * CHUNKS);
    for (uint32_t ring = 0; ring < RINGS; ring++) {
        struct mg_chan_ring *r = &c->rings[ring];
        *ring_of(c, ring) = (struct mg_channel_ring){.limit = 0};
        memset(r->uses, 0, sizeof r->uses);
        r->granted = r->out.n = 0;
        r->held = 0;
        for (uint32_t k = 0; k < CHUNKS; k++)
            grant(c, ring, k);
    }
}

/* True: something was there to be done. */
static bool finish(struct reader *d, struct mg_chan *c)
{
    pthread_mutex_lock(&lock);
    bool now = c->dirty && !c->closing && (!c->active || ending);
    if (now)
        c->closing = true;
    pthread_mutex_unlock(&lock);
    if (!now)
        return false;
    for (uint32_t r = 0; r < RINGS; r++)
        pthread_mutex_lock(&c->rings[r].lock);
    for (uint32_t r = 0; r < RINGS; r++)
        read_rest(d, c, r);
    make_new(c);
    for (uint32_t r = 0; r < RINGS; r++)
        pthread_mutex_unlock(&c->rings[r].lock);
    pthread_mutex_lock(&lock);
    c->dirty = c->closing = false;
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
            for (uint32_t r = d->ix; r < RINGS; r += n_readers)
                any |= pump(d, c, r);
            if (!d->ix)
                any |= finish(d, c);
        }
        idle = any ? 0 : idle + 1;
        if (idle > 200) {
            pthread_mutex_lock(&lock);
            bool waits = !n_busy && !ending;
            for (struct mg_chan *c = channels; c && waits && !d->ix; c = c->next)
                waits = !c->dirty;
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
        n_readers = i; /* these have all rings */
        return i;
    }
    return true;
}

static struct mg_chan *new_channel(uint32_t use)
{
    const size_t rings = (size_t)RINGS * RING_BYTES, control = mg_channel_ring_at(RINGS), full = sizeof(uint64_t) * RINGS * CHUNKS;
    struct mg_chan *c = calloc(1, sizeof *c);
    uint64_t block = c ? mg_session.backend->alloc(rings + SEGMENT + control + full) : 0;
    if (!block) {
        free(c);
        return NULL;
    }
    c->use = use;
    c->data = (uint8_t *)(uintptr_t)((block + SEGMENT - 1) & ~(uint64_t)(SEGMENT - 1)); /* kernels rely on it */
    c->control = (struct mg_channel_control *)(c->data + rings);
    c->full = (uint64_t *)(c->data + rings + control);
    *c->control = (struct mg_channel_control){
        .data = (uintptr_t)c->data, .full = (uintptr_t)c->full, .ring_mask = RINGS - 1, .ring_shift = (uint32_t)__builtin_ctz(RING_BYTES),
        .chunk_shift = (uint32_t)__builtin_ctz(CHUNK), .chunk_mask = CHUNKS - 1,
    };
    for (uint32_t r = 0; r < RINGS; r++)
        pthread_mutex_init(&c->rings[r].lock, NULL);
    make_new(c);
    return c;
}

/* One of this tool's, with one launch more; NULL: there is no memory for one. */
static struct mg_chan *take(uint32_t use)
{
    pthread_mutex_lock(&lock);
    for (bool made = false;;) {
        struct mg_chan *best = NULL;
        uint32_t n = 0, closing = 0;
        for (struct mg_chan *c = channels; c; c = c->next) {
            if (c->use != use)
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
        struct mg_chan *c = ready ? new_channel(use) : NULL;
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
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *g = &v->layout.regions[k];
        if (g->reason || !g->has_channel)
            continue;
        if (!r->channels)
            r->channels = calloc(v->layout.n_regions, sizeof *r->channels);
        uint32_t number = mg_session.backend->has_channels && r->channels ? number_launch(r, g) : UINT32_MAX;
        if (number == UINT32_MAX || !(r->channels[k].chan = take(v->uses[k]))) {
            mg_channels_give(r);
            return false;
        }
        r->channels[k].number = number;
    }
    return true;
}

void mg_channels_words(const struct mg_run *r, uint32_t region, uint64_t *words)
{
    words[0] = (uintptr_t)r->channels[region].chan->control;
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
            left |= c->closing || (c->dirty && (!c->active || ending));
        if (!left)
            break;
        pthread_cond_broadcast(&changed);
        late = pthread_cond_timedwait(&changed, &lock, &until) != 0;
    }
    pthread_mutex_unlock(&lock);
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
