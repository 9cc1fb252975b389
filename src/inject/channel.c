/* Channels, the host's side: memory for the records of launches, and what is told of them at the end. The words are
 * those of record/channel.h; the threads that carry and read pages are channel_flow.c's.
 *
 *   launch ── take ─► channel of a tool, in the launch's memory ◄── give ── launch has ended
 *   no launch uses it any more, for a while, or somebody asks ─► what lies in pages that are not full is read, too
 *
 * A channel stays as it is between launches: they go on in the pages that others began. */
#include "inject/channel.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/vec.h"
#include "inject/channels.h"
#include "inject/hooks.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/twin.h"

enum { IN_PLACE_PAGES = 256 };

struct mg_chans mg_chans = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- launches by their number in records --------------------------------------------------------------------- */

static pthread_rwlock_t numbering = PTHREAD_RWLOCK_INITIALIZER;
static MG_VEC(struct mg_stream_launch *) launches;

static uint32_t number_launch(const struct mg_run *r, uint64_t replay, const struct mg_region *g)
{
    struct mg_stream_launch *l = calloc(1, sizeof *l);
    if (!l) return UINT32_MAX;
    *l = (struct mg_stream_launch){.kernel = r->inst->code->name,
                                   .id = mg_run_traced_as(r),
                                   .replay = replay,
                                   .shape = mg_run_launch(&r->shape),
                                   .sites = g->sites,
                                   .n_sites = g->n_sites,
                                   .widths = g->channel_widths,
                                   .n_widths = g->n_channel_widths,
                                   .kinds = g->record_types,
                                   .n_kinds = g->n_record_types};
    pthread_rwlock_wrlock(&numbering);
    uint32_t n = launches.n;
    *mg_vec_push(&launches) = l;
    pthread_rwlock_unlock(&numbering);
    return n;
}

const struct mg_stream_launch *mg_chan_launch(const struct mg_stream *s, uint32_t number)
{
    (void)s;
    pthread_rwlock_rdlock(&numbering);
    const struct mg_stream_launch *l = number < launches.n ? launches.at[number] : NULL;
    pthread_rwlock_unlock(&numbering);
    return l;
}

/* ---- channels ---------------------------------------------------------------------------------------------------- */

uint64_t mg_chan_patience(void)
{
    bool drops = mg_session.config.channel && !strcmp(mg_session.config.channel, "drop");
    if (drops) return MG_CHANNEL_NO_PATIENCE_NS;
    return mg_session.backend->channel->in_place ? MG_CHANNEL_OWN_PATIENCE_NS : MG_CHANNEL_PATIENCE_NS;
}

void mg_chan_give(struct mg_chan *c, uint32_t page)
{
    uint32_t k = __atomic_fetch_add(&c->n_given, 1, __ATOMIC_RELAXED);
    c->pages[page].at = k;
    c->pages[page].back = false;
    __atomic_store_n(&c->free[k & (c->queue - 1)], mg_channel_entry(k, page), __ATOMIC_RELEASE);
}

void mg_chan_give_fresh(struct mg_chan *c, uint32_t n)
{
    for (; n && c->n_fresh < c->n_pages; n--) mg_chan_give(c, c->n_fresh++);
}

static bool make_rings(struct mg_chan *c)
{
    const size_t bytes = mg_channel_ring_at(c->n_rings);
    struct mg_channel_control *k = calloc(1, bytes);
    c->control = c->io->memory(c->where, bytes);
    c->rings = calloc(c->n_rings, sizeof *c->rings);
    c->told = calloc(c->n_rings, sizeof *c->told);
    bool ok = k && c->control && c->rings && c->told;
    if (ok) {
        *k = (struct mg_channel_control){.pool = c->pool,
                                         .free = (uintptr_t)c->free,
                                         .done = (uintptr_t)c->done,
                                         .queue_mask = c->queue - 1,
                                         .ring_mask = c->n_rings - 1,
                                         .mirror = (uintptr_t)c->mirror - c->pool,
                                         .patience_ns = mg_chan_patience()};
        for (uint32_t r = 0; r < c->n_rings; r++) {
            ((struct mg_channel_ring *)(k + 1))[r].now = MG_CHANNEL_NO_PAGE;
            c->rings[r].read = c->rings[r].from = MG_CHANNEL_PAGE_HEAD;
        }
        ok = c->io->write(c->where, c->control, k, bytes);
    }
    free(k);
    return ok;
}

/* Without memory it is none, once and for all: what was had stays, since on a GPU giving it back waits for all work. */
static struct mg_chan *new_channel(void *where, uint32_t use)
{
    struct mg_chan *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (struct mg_chan){.io = mg_session.backend->channel, .where = where, .use = use, .queue = 1};
    pthread_mutex_init(&c->carrying, NULL);
    c->io->size(where, &c->n_rings, &c->n_pages);
    while (c->queue < c->n_pages) c->queue *= 2;
    uint64_t pool = c->io->memory(where, ((size_t)c->n_pages + 1) * MG_CHANNEL_PAGE);
    c->pool = (pool + MG_CHANNEL_PAGE - 1) & ~(uint64_t)(MG_CHANNEL_PAGE - 1); /* kernels rely on it */
    c->mirror = !pool             ? NULL
                : c->io->in_place ? (uint8_t *)(uintptr_t)c->pool
                                  : c->io->host(where, (size_t)c->n_pages * MG_CHANNEL_PAGE);
    uint64_t *queues = c->mirror ? c->io->host(where, 2 * (size_t)c->queue * sizeof *queues) : NULL;
    c->pages = calloc(c->n_pages, sizeof *c->pages);
    if (queues) {
        memset(queues, 0, 2 * (size_t)c->queue * sizeof *queues);
        c->free = queues;
        c->done = queues + c->queue;
    }
    if (!queues || !c->pages || !make_rings(c)) {
        c->none = c->gone = true;
        return c;
    }
    mg_chan_give_fresh(c, c->io->in_place ? IN_PLACE_PAGES : c->n_pages);
    return c;
}

static bool is_of(const struct mg_chan *c, void *ctx, int device)
{
    return c->io->is_of && c->io->is_of(c->where, ctx, device);
}

/* Waits until readers have all of what is there, at most so long: of all channels, or a context's that ends. */
static void wait_for_readers(uint64_t timeout_ns, bool all, void *ctx, int device)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&mg_chans.lock);
    for (struct mg_chan *c = mg_chans.first; c; c = c->next)
        if (all || is_of(c, ctx, device)) c->wanted = c->dirty;
    for (bool late = false; !late;) {
        bool left = __atomic_load_n(&mg_chans.n_pieces, __ATOMIC_ACQUIRE) > 0;
        for (struct mg_chan *c = mg_chans.first; c; c = c->next) left |= !c->gone && (c->wanted || c->closing);
        if (!left) break;
        pthread_cond_broadcast(&mg_chans.changed);
        late = pthread_cond_timedwait(&mg_chans.changed, &mg_chans.lock, &until) != 0;
    }
    pthread_mutex_unlock(&mg_chans.lock);
}

/* The driver's own way out of the process may come before the session's end, and takes the memory along; that of the
 * software devices stays. */
static void at_exit(void)
{
    if ((uint32_t)getpid() != mg_session.pid || !mg_session.store || !mg_session_can(MG_BACKEND_HARDWARE)) return;
    mg_inside++;
    mg_session.backend->drain(MG_SESSION_DRAIN_NS);
    wait_for_readers(5000000000u, true, NULL, 0);
    mg_inside--;
}

/* The channel of this tool there, with one launch more; NULL: there is no memory for one. */
static struct mg_chan *acquire_channel(void *where, uint32_t use, bool node)
{
    pthread_mutex_lock(&mg_chans.lock);
    for (;;) {
        struct mg_chan *c = mg_chans.first;
        while (c && (c->use != use || c->where != where || (c->gone && !c->none))) c = c->next;
        if (c && c->none) break;
        if (c && c->closing) { /* its carrier waits for nobody */
            pthread_cond_wait(&mg_chans.changed, &mg_chans.lock);
            continue;
        }
        if (c) {
            c->active++;
            c->nodes += node;
            c->dirty = true;
            pthread_cond_broadcast(&mg_chans.changed);
            pthread_mutex_unlock(&mg_chans.lock);
            return c;
        }
        if (!mg_chan_start() ||
            !(c = new_channel(where, use))) /* under the lock: there is one for all threads that launch */
            break;
        if (!mg_chans.first) atexit(at_exit);
        c->next = mg_chans.first;
        __atomic_store_n(&mg_chans.first, c, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mg_chans.lock);
    return NULL;
}

enum mg_reason mg_channels_take(struct mg_run *r)
{
    const struct mg_variant *v = r->body->variant;
    const uint32_t *g = r->shape.grid;
    for (uint32_t k = 0; k < v->layout.n_regions; k++) {
        const struct mg_region *region = &v->layout.regions[k];
        if (region->reason || !region->has_channel) continue;
        if ((uint64_t)g[0] * g[1] > (1ull << MG_SEGMENT_CTA_BITS) / MG_MAX(g[2], 1u)) return MG_REASON_large_grid;
        void *where = mg_session.backend->channel->where();
        if (!r->channels) r->channels = calloc(v->layout.n_regions, sizeof *r->channels);
        uint32_t number = where && r->channels ? number_launch(r, r->runs.next, region) : UINT32_MAX;
        if (number == UINT32_MAX || !(r->channels[k].chan = acquire_channel(where, v->uses[k], r->node))) {
            mg_channels_give(r);
            return MG_REASON_no_room_records;
        }
        r->channels[k].number = number;
    }
    return MG_REASON_none;
}

void mg_channels_words(const struct mg_run *r, uint32_t region, uint64_t *words)
{
    words[0] = r->channels[region].chan->control;
    words[1] = r->channels[region].number;
}

static bool put_own(void *user, uint64_t offset, uint32_t number)
{
    const uint64_t word = number;
    mg_session.backend->write(user, offset, &word, 1);
    return true;
}

bool mg_channels_replay(const struct mg_run *r, uint64_t replay, mg_channel_put put, void *user)
{
    const struct mg_layout *l = r->channels ? &r->body->variant->layout : NULL;
    bool ok = true;
    for (uint32_t k = 0; l && k < l->n_regions; k++) {
        const struct mg_region *g = &l->regions[k];
        uint32_t number = r->channels[k].chan ? number_launch(r, replay, g) : UINT32_MAX;
        if (number == UINT32_MAX) {
            ok &= !r->channels[k].chan;
            continue;
        }
        pthread_mutex_lock(&mg_chans.lock);
        r->channels[k].chan->dirty = true;
        pthread_mutex_unlock(&mg_chans.lock);
        const uint64_t offset = MG_CTX_WORDS + 8 * (g->first_word + g->channel_word + 1); /* behind the control's */
        ok &= put ? put(user, offset, number) : put_own((struct mg_run *)(uintptr_t)r, offset, number);
    }
    return ok;
}

void mg_channels_give(struct mg_run *r)
{
    if (!r->channels) return;
    pthread_mutex_lock(&mg_chans.lock);
    for (uint32_t k = 0; k < r->body->variant->layout.n_regions; k++) {
        struct mg_chan *c = r->channels[k].chan;
        if (!c) continue;
        c->nodes -= r->node;
        if (!--c->active) c->idle_ns = mg_now_ns();
    }
    pthread_cond_broadcast(&mg_chans.changed);
    pthread_mutex_unlock(&mg_chans.lock);
    free(r->channels);
    r->channels = NULL;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

void mg_channels_context_ends(void *ctx, int device)
{
    if (!mg_chans.first) return;
    wait_for_readers(2000000000u, false, ctx, device);
    for (struct mg_chan *c = __atomic_load_n(&mg_chans.first, __ATOMIC_ACQUIRE); c; c = c->next) {
        if (!is_of(c, ctx, device)) continue;
        pthread_mutex_lock(&c->carrying);
        pthread_mutex_lock(&mg_chans.lock);
        c->gone = true;
        pthread_mutex_unlock(&mg_chans.lock);
        pthread_mutex_unlock(&c->carrying);
    }
}

void mg_channels_end(void)
{
    if (!mg_chans.first) return;
    pthread_mutex_lock(&mg_chans.lock);
    mg_chans.ending = true;
    pthread_mutex_unlock(&mg_chans.lock);
    wait_for_readers(5000000000u, true, NULL, 0);
    for (uint32_t u = 0; u < mg_session.n_uses; u++) {
        struct mg_buf b = MG_BUF_INIT;
        struct mg_json j;
        const struct mg_chan_sums *sum = &mg_chans.sums[u];
        if (!sum->any) continue;
        mg_json_init(&j, &b, 0);
        mg_json_obj(&j);
        mg_json_key_str(&j, "policy", mg_session.config.channel ? mg_session.config.channel : "block");
        mg_json_key_u64(&j, "bytes", sum->bytes);
        mg_json_key_u64(&j, "pages", sum->pages);
        mg_json_key_u64(&j, "dropped_records", sum->dropped);
        mg_json_key_u64(&j, "lost_segments", sum->lost);
        mg_json_key_u64(&j, "damaged_pages", sum->damaged);
        mg_json_key_u64(&j, "late_pages", sum->late);
        mg_json_key_u64(&j, "read_ns",
                        sum->last_ns - sum->first_ns); /* from the first page's beginning to the last's end */
        mg_json_end(&j, '}');
        mg_store_tool_json(mg_session.store, mg_session.uses[u].name, "channel", b.at);
        mg_buf_release(&b);
        if (sum->dropped || sum->lost || sum->damaged || sum->late)
            mg_session_error("%s: %llu records dropped, %llu segments lost, %llu pages damaged, %llu out of order",
                             mg_session.uses[u].name, (unsigned long long)sum->dropped, (unsigned long long)sum->lost,
                             (unsigned long long)sum->damaged, (unsigned long long)sum->late);
    }
}
