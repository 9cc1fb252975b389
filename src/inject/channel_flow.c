/* Channels, the way of pages: one thread carries full pages to readers, which hand them to tools.
 *
 *   done queue ── carrier ── reader of the ring ── tool.stream
 *   free queue ◄── when it is read, or copied ┘
 *
 * Nothing here waits for a kernel. A ring's pages are read in order; those behind one that is still out are held, and
 * when they are too many, handed over before it, and that is told. Rings come in shares, a share is one worker to the
 * tools and read by one reader at a time: its own, as long as no other has nothing to do, since readers are not equally
 * fast (processors that are half of a core: 2.7 to 4.7 GB/s). */
#include "inject/channel.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"
#include "base/vec.h"
#include "inject/hooks.h"
#include "inject/select.h"
#include "inject/session.h"
#include "inject/tracefile.h"
#include "tool/tool.h"

enum {
    PAGE = MG_CHANNEL_PAGE,
    HEAD = MG_CHANNEL_PAGE_HEAD,
    MOST_READERS = 16,
    SHARES_EACH = 4,
    AT_ONCE = 16 /* pieces of a share */,
    HELD_MOST = 128 /* pages of a ring */,
    HELD_PAGES = 6
};
#define IDLE_NS    2000000u
#define STALLED_NS 5000000u
#define FRESH      256u
#define LOOKS      200u /* of a reader, before it sleeps */

struct share { /* of the rings: number ix, ix + n_shares ... */
    struct reader *owner;
    MG_VEC(struct mg_chan_piece) in; /* under the owner's lock, from first on */
    uint32_t first;
    uint32_t n_in; /* atomic: of them */
    bool taken;    /* under the lock: somebody reads some of it */
};
struct reader {
    uint32_t ix;
    pthread_mutex_t lock;
    pthread_cond_t some;
    bool sleeps; /* under lock: it looks by itself until nothing has come for a while, since waking it for each page
                    takes longer than reading that */
    struct mg_chan_sums sums[MG_MAX_USES]; /* what was read since it told */
    uint32_t n_read;                       /* pieces */
    uint32_t share;                        /* whose pieces are read */
};
static struct reader readers[MOST_READERS];
static struct share shares[MOST_READERS * SHARES_EACH];
_Static_assert(MG_COUNT_OF(shares) <= MG_STREAM_MOST_WORKERS, "tools have room for them");

/* ---- readers ---------------------------------------------------------------------------------------------------- */

static void hand_over(struct reader *d, const struct mg_chan_piece *p, uint32_t from)
{
    const struct mg_use *use = &mg_session.uses[p->chan->use];
    const struct mg_stream s = {
        .worker = d->share, .n_workers = mg_chans.n_shares, .sm = p->ring, .launch = mg_chan_launch};
    struct mg_chan_sums *sum = &d->sums[p->chan->use];
    const uint64_t *words = (const uint64_t *)(p->at + from);
    const uint64_t began_ns = mg_now_ns();
    uint32_t all = p->to > from ? p->to - from : 0, open = 0, bytes = mg_channel_whole(words, all, &open);
    if (bytes) {
        mg_select_enter(p->chan->use, MG_CONTROL_STREAM);
        if (use->tool->stream)
            use->tool->stream(use->conf, &s, words, bytes);
        else
            mg_tracefile_stream(p->chan->use, &s, words, bytes);
        mg_select_leave(p->chan->use);
    }
    if (bytes < all && p->last)
        open++; /* taken, and not begun */
    else if (bytes < all)
        sum->damaged++;
    if (!sum->any) sum->first_ns = began_ns;
    sum->last_ns = mg_now_ns();
    sum->any = true;
    sum->bytes += bytes;
    sum->pages++;
    sum->lost += open;
}

/* Copies of pages: their memory is used again, since getting and returning it is slow beside a GPU's driver. */
static struct mg_chan_copy {
    struct mg_chan_copy *next;
} * spare;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static struct mg_chan_copy *new_copy(void)
{
    pthread_mutex_lock(&spare_lock);
    struct mg_chan_copy *c = spare;
    if (c) spare = c->next;
    pthread_mutex_unlock(&spare_lock);
    return c ? c : malloc(PAGE);
}

static void give_back(struct mg_chan *c, uint32_t page)
{
    if (c->io->in_place)
        memset(c->mirror + (size_t)page * PAGE, 0, PAGE); /* what a fault leaves unwritten is no segment of before */
    mg_chan_give(c, page);
}

static void let_go(const struct mg_chan_piece *p)
{
    if (p->page != UINT32_MAX) give_back(p->chan, p->page);
    if (p->copy) {
        pthread_mutex_lock(&spare_lock);
        p->copy->next = spare;
        spare = p->copy;
        pthread_mutex_unlock(&spare_lock);
    }
}

static void deliver(struct reader *d, struct mg_chan_reading *r, const struct mg_chan_piece *p)
{
    hand_over(d, p, p->number == r->number ? r->from : (uint32_t)HEAD);
    if (p->to == PAGE) {
        r->number = p->number + 1;
        r->from = HEAD;
    } else {
        r->number = p->number;
        r->from = p->to;
    }
    __atomic_store_n(&r->read, mg_chan_place(r->number, r->from), __ATOMIC_RELEASE);
    let_go(p);
    d->n_read++;
}

/* Some are held as they are; the others as copies, so that nobody waits for their pages. */
static void hold(struct mg_chan_reading *r, struct mg_chan_piece p)
{
    struct mg_chan_copy *copy = p.copy || r->held.n < HELD_PAGES ? NULL : new_copy();
    if (copy) {
        memcpy(copy, p.at, p.to);
        let_go(&p);
        p.copy = copy;
        p.at = (const uint8_t *)copy;
        p.page = UINT32_MAX;
    }
    uint32_t at = r->held.n;
    mg_vec_push(&r->held);
    for (; at && (int32_t)(r->held.at[at - 1].number - p.number) > 0; at--) r->held.at[at] = r->held.at[at - 1];
    r->held.at[at] = p;
}

/* The first n were delivered. */
static void drop_held(struct mg_chan_reading *r, uint32_t n)
{
    r->held.n -= n;
    if (n) memmove(r->held.at, r->held.at + n, r->held.n * sizeof *r->held.at);
}

static void read_piece(struct reader *d, const struct mg_chan_piece *p)
{
    struct mg_chan_reading *r = &p->chan->rings[p->ring];
    int32_t ahead = (int32_t)(p->number - r->number);
    if (ahead < 0) { /* others went first */
        struct mg_chan_reading late = {.number = p->number,
                                       .from = p->number == r->left && r->left_from ? r->left_from : (uint32_t)HEAD};
        deliver(d, &late, p);
        return;
    }
    if (ahead && !p->last) {
        hold(r, *p);
    } else {
        uint32_t n = 0;
        while (n < r->held.n && (int32_t)(r->held.at[n].number - p->number) < 0) deliver(d, r, &r->held.at[n++]);
        deliver(d, r, p);
        drop_held(r, n);
    }
    uint32_t n = 0;
    while (n < r->held.n && (r->held.at[n].number == r->number || r->held.n - n > HELD_MOST)) {
        d->sums[p->chan->use].late += r->held.at[n].number - r->number;
        if (r->held.at[n].number != r->number) __atomic_store_n(&mg_chans.jumped, true, __ATOMIC_RELEASE);
        if (r->held.at[n].number != r->number && r->from > HEAD) {
            r->left = r->number;
            r->left_from = r->from;
        }
        deliver(d, r, &r->held.at[n++]);
    }
    drop_held(r, n);
}

static void tell_sums(struct reader *d)
{
    pthread_mutex_lock(&mg_chans.lock);
    for (uint32_t u = 0; u < MG_MAX_USES; u++) {
        struct mg_chan_sums *from = &d->sums[u], *to = &mg_chans.sums[u];
        if (!from->any) continue;
        to->any = true;
        to->bytes += from->bytes;
        to->pages += from->pages;
        to->lost += from->lost;
        to->damaged += from->damaged;
        to->late += from->late;
        to->first_ns = to->first_ns ? MG_MIN(to->first_ns, from->first_ns) : from->first_ns;
        to->last_ns = MG_MAX(to->last_ns, from->last_ns);
        memset(from, 0, sizeof *from);
    }
    __atomic_sub_fetch(&mg_chans.n_pieces, d->n_read, __ATOMIC_RELEASE);
    d->n_read = 0;
    pthread_cond_broadcast(&mg_chans.changed);
    pthread_mutex_unlock(&mg_chans.lock);
}

/* The fullest of the shares from, from + step ... of which nobody reads; NULL: none has anything. */
static struct share *fullest(uint32_t from, uint32_t step)
{
    struct share *best = NULL;
    uint32_t most = 0, n_shares = __atomic_load_n(&mg_chans.n_shares, __ATOMIC_ACQUIRE);
    for (uint32_t k = from; k < n_shares; k += step) {
        uint32_t n = __atomic_load_n(&shares[k].n_in, __ATOMIC_RELAXED);
        if (n > most && !__atomic_load_n(&shares[k].taken, __ATOMIC_RELAXED)) {
            most = n;
            best = &shares[k];
        }
    }
    return best;
}

/* Some pieces of a share, in order; whoever has them reads them before anybody gets more. */
static uint32_t take_some(struct share *s, struct mg_chan_piece *to)
{
    uint32_t n = 0;
    pthread_mutex_lock(&s->owner->lock);
    if (!s->taken) {
        n = MG_MIN(s->in.n - s->first, (uint32_t)AT_ONCE);
        if (n) memcpy(to, s->in.at + s->first, n * sizeof *to);
        s->first += n;
        if (s->first == s->in.n) s->first = s->in.n = 0;
        __atomic_store_n(&s->n_in, s->in.n - s->first, __ATOMIC_RELAXED);
        __atomic_store_n(&s->taken, n != 0, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&s->owner->lock);
    return n;
}

static void leave_share(struct share *s)
{
    pthread_mutex_lock(&s->owner->lock);
    __atomic_store_n(&s->taken, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&s->owner->lock);
}

/* Sleeps until something comes for it, unless that is there. */
static void sleep_on(struct reader *d)
{
    pthread_mutex_lock(&d->lock);
    d->sleeps = true;
    while (d->sleeps && !fullest(d->ix, mg_chans.n_readers)) pthread_cond_wait(&d->some, &d->lock);
    d->sleeps = false;
    pthread_mutex_unlock(&d->lock);
}

static void *read_pages(void *arg)
{
    struct reader *d = arg;
    struct mg_chan_piece mine[AT_ONCE];
    unsigned looks = 0;
    mg_thread_name("margay reader");
    mg_inside++;
    for (;;) {
        struct share *s = fullest(d->ix, mg_chans.n_readers);
        if (!s) s = fullest(0, 1); /* another's */
        uint32_t n = s ? take_some(s, mine) : 0;
        if (!n) {
            if (++looks < LOOKS)
                nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
            else
                sleep_on(d);
            looks %= LOOKS;
            continue;
        }
        looks = 0;
        d->share = (uint32_t)(s - shares);
        for (uint32_t i = 0; i < n; i++) read_piece(d, &mine[i]);
        leave_share(s);
        tell_sums(d);
    }
    return NULL;
}

static void push(struct mg_chan_piece p)
{
    const uint64_t head = *(const uint64_t *)p.at;
    p.ring = (uint32_t)head & (p.chan->n_rings - 1);
    p.number = (uint32_t)(head >> 32);
    struct share *s = &shares[p.ring % mg_chans.n_shares];
    struct reader *d = s->owner;
    __atomic_add_fetch(&mg_chans.n_pieces, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&d->lock);
    if (s->first > s->in.n / 2) { /* most were taken */
        memmove(s->in.at, s->in.at + s->first, (s->in.n - s->first) * sizeof *s->in.at);
        s->in.n -= s->first;
        s->first = 0;
    }
    *mg_vec_push(&s->in) = p;
    __atomic_store_n(&s->n_in, s->in.n - s->first, __ATOMIC_RELAXED);
    if (d->sleeps) {
        d->sleeps = false;
        pthread_cond_signal(&d->some);
    }
    pthread_mutex_unlock(&d->lock);
}

/* ---- the carrier ------------------------------------------------------------------------------------------------- */

static void lose(struct mg_chan *c)
{
    pthread_mutex_lock(&mg_chans.lock);
    if (!c->gone) {
        mg_chans.sums[c->use].any = true;
        mg_chans.sums[c->use].lost++;
    }
    c->gone = true;
    pthread_mutex_unlock(&mg_chans.lock);
}

static bool next_done(struct mg_chan *c, uint32_t *page)
{
    uint64_t e = __atomic_load_n(&c->done[c->n_done & (c->queue - 1)], __ATOMIC_ACQUIRE);
    if (!mg_channel_entry_is(e, c->n_done) || (uint32_t)e >= c->n_pages) return false;
    *page = (uint32_t)e;
    c->pages[*page].back = true;
    c->n_done++;
    return true;
}

/* Where the pool takes memory only as it is used, more pages are given only when warps hold all there are, and wait for
 * one. */
static void help_waiting(struct mg_chan *c, bool any)
{
    uint32_t given = __atomic_load_n(&c->n_given, __ATOMIC_RELAXED);
    uint32_t taken =
        __atomic_load_n(&((const struct mg_channel_control *)(uintptr_t)c->control)->n_taken, __ATOMIC_RELAXED);
    if (any || given != c->seen || (int32_t)(taken - given) < 0) {
        c->seen = given;
        c->seen_ns = mg_now_ns();
    } else if (mg_now_ns() - c->seen_ns > STALLED_NS) {
        mg_chan_give_fresh(c, FRESH);
    }
}

/* Full pages go to the readers. True: there were some. */
static bool carry(struct mg_chan *c)
{
    bool any = false;
    uint32_t pages[AT_ONCE], n;
    do {
        for (n = 0; n < AT_ONCE && !c->gone && next_done(c, &pages[n]); n++)
            __builtin_prefetch(c->mirror +
                               (size_t)pages[n] * PAGE); /* who looks at one head after the other waits for each */
        for (uint32_t i = 0; i < n; i++)
            push((struct mg_chan_piece){
                .chan = c, .at = c->mirror + (size_t)pages[i] * PAGE, .to = PAGE, .page = pages[i]});
        any |= n != 0;
    } while (n == AT_ONCE);
    if (c->io->in_place) help_waiting(c, any);
    return any;
}

/* ---- what lies in pages that are not full, when no launch writes ------------------------------------------------- */

bool mg_chan_tell_page(struct mg_chan *c, uint32_t page, uint32_t to, bool fetched, bool last)
{
    struct mg_chan_copy *copy = new_copy();
    if (!copy) return false;
    if (fetched)
        memcpy(copy, c->mirror + (size_t)page * PAGE, to); /* kernels may soon send the page there */
    else if (!c->io->read(c->where, copy, c->pool + (uint64_t)page * PAGE, to))
        return false;
    bool whole = (uint32_t)((const uint64_t *)(const void *)copy)[1] == MG_CHANNEL_ROOM;
    push((struct mg_chan_piece){
        .chan = c, .at = (const uint8_t *)copy, .to = to, .last = last && !whole, .page = UINT32_MAX, .copy = copy});
    return true;
}

/* Pages that a kernel took and completed, but nobody sent, or will not complete, since a fault ended it. */
static bool tell_taken(struct mg_chan *c, const struct mg_channel_control *k, const struct mg_channel_ring *rings)
{
    bool ok = true;
    for (uint32_t page = 0; ok && page < c->n_fresh; page++) { /* of those that were ever given */
        bool out = !c->pages[page].back && (int32_t)(c->pages[page].at - k->n_taken) < 0;
        for (uint32_t r = 0; r < c->n_rings && out; r++)
            out = mg_chan_page_of(&rings[r]) != page && (!rings[r].ticket || c->pages[page].at != rings[r].ticket - 1);
        if (!out) continue;
        ok = mg_chan_tell_page(c, page, PAGE, false, true);
        c->pages[page].back = true;
        give_back(c, page);
    }
    const uint64_t none = 0; /* of them on a list */
    for (uint32_t r = 0; r < c->n_rings && ok; r++)
        ok = !rings[r].full ||
             c->io->write(c->where, c->control + mg_channel_ring_at(r) + offsetof(struct mg_channel_ring, full), &none,
                          sizeof none);
    return ok;
}

/* In the page that a ring fills is what was not told yet. */
static bool has_news(const struct mg_chan *c, const struct mg_channel_ring *rings, uint32_t r)
{
    return mg_chan_page_of(&rings[r]) < c->n_pages &&
           (c->told[r].number != rings[r].pages || c->told[r].to < HEAD + (uint32_t)rings[r].now);
}

static bool tell_rest(struct mg_chan *c, bool writing)
{
    const size_t bytes = mg_channel_ring_at(c->n_rings);
    struct mg_channel_control *k = malloc(bytes);
    bool ok = k && c->io->read(c->where, k, c->control, bytes);
    for (uint32_t i = 0; ok && !c->gone && (int32_t)(k->n_done - c->n_done) > 0 && i < 200000; i++)
        if (!carry(c)) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    const struct mg_channel_ring *rings = (const struct mg_channel_ring *)(k + 1);
    uint32_t out = 0;
    uint64_t dropped = 0;
    for (uint32_t r = 0; ok && r < c->n_rings; r++) {
        out += (mg_chan_page_of(&rings[r]) != UINT32_MAX) + (rings[r].ticket != 0);
        dropped += rings[r].dropped;
    }
    ok = ok && !c->gone;
    if (ok && k->n_taken - k->n_done != out && !writing) ok = tell_taken(c, k, rings);
    bool fetched = !writing && c->io->begin_read; /* one after the other each would be waited for */
    for (uint32_t r = 0; ok && fetched && r < c->n_rings; r++)
        if (has_news(c, rings, r))
            ok =
                c->io->begin_read(c->where, c->mirror + (size_t)mg_chan_page_of(&rings[r]) * PAGE,
                                  c->pool + (uint64_t)mg_chan_page_of(&rings[r]) * PAGE, HEAD + (uint32_t)rings[r].now);
    if (fetched) ok = c->io->end_reads(c->where) && ok;
    for (uint32_t r = 0; ok && r < c->n_rings; r++) {
        if (!has_news(c, rings, r)) continue;
        uint32_t to = HEAD + (uint32_t)rings[r].now;
        ok = mg_chan_tell_page(c, mg_chan_page_of(&rings[r]), to, fetched, true);
        c->told[r].number = rings[r].pages;
        c->told[r].to = to;
    }
    uint64_t patience = mg_chan_patience();
    if (ok && k->patience_ns != patience) /* somebody waited in vain */
        ok = c->io->write(c->where, c->control + offsetof(struct mg_channel_control, patience_ns), &patience,
                          sizeof patience);
    free(k);
    if (ok && dropped != c->dropped) {
        pthread_mutex_lock(&mg_chans.lock);
        mg_chans.sums[c->use].any = true;
        mg_chans.sums[c->use].dropped += dropped - c->dropped;
        pthread_mutex_unlock(&mg_chans.lock);
        c->dropped = dropped;
    }
    return ok;
}

/* Kernels may be. What graphs hold runs now and then: when memory is about to go, those that rest count as ended. */
static bool is_written(const struct mg_chan *c) /* under the lock */
{
    if (!c->active || mg_chans.ending) return false;
    return !(c->wanted && c->active == c->nodes && c->io->is_quiet && c->io->is_quiet(c->where));
}

/* True: something was there to be done. */
static bool finish(struct mg_chan *c)
{
    pthread_mutex_lock(&mg_chans.lock);
    bool now =
        c->dirty && !c->gone && (c->wanted || mg_chans.ending || (!c->active && mg_now_ns() - c->idle_ns > IDLE_NS));
    bool writing = is_written(c);
    if (now) {
        c->closing = true;
        c->dirty = writing;
    }
    pthread_mutex_unlock(&mg_chans.lock);
    if (!now) return false;
    bool ok = tell_rest(c, writing);
    if (!ok) lose(c);
    pthread_mutex_lock(&mg_chans.lock);
    c->closing = c->wanted = false;
    pthread_cond_broadcast(&mg_chans.changed);
    pthread_mutex_unlock(&mg_chans.lock);
    return true;
}

static bool is_quiet(void) /* under the lock */
{
    for (struct mg_chan *c = mg_chans.first; c; c = c->next)
        if (!c->gone && (c->dirty || (c->active && !mg_chans.ending))) return false;
    return true;
}

static void *carry_pages(void *arg)
{
    uint32_t idle = 0;
    (void)arg;
    mg_inside++;
    for (;;) {
        bool any = false;
        for (struct mg_chan *c = __atomic_load_n(&mg_chans.first, __ATOMIC_ACQUIRE); c; c = c->next) {
            pthread_mutex_lock(&c->carrying);
            if (!c->gone && c->io->enter) c->io->enter(c->where);
            any |= carry(c);
            any |= finish(c);
            pthread_mutex_unlock(&c->carrying);
        }
        mg_chan_mark();
        idle = any ? 0 : idle + 1;
        if (idle > 20) nanosleep(&(struct timespec){.tv_nsec = idle > 2000 ? 200000 : 20000}, NULL);
        if (idle > 200) {
            pthread_mutex_lock(&mg_chans.lock);
            if (is_quiet() && !mg_chan_has_mark()) {
                pthread_cond_wait(&mg_chans.changed, &mg_chans.lock);
                idle = 0;
            }
            pthread_mutex_unlock(&mg_chans.lock);
        }
    }
    return NULL;
}

bool mg_chan_start(void)
{
    static bool carries;
    uint32_t cpus = mg_thread_cpus(), n = mg_session.backend->channel->in_place ? cpus / 4 : cpus * 7 / 8;
    n = MG_MIN(MG_MAX(n, 1u), (uint32_t)MOST_READERS);
    while (!mg_chans.n_shares &&
           mg_chans.n_readers < n) { /* they begin when there are shares, and read all of these, be they fewer */
        struct reader *d = &readers[mg_chans.n_readers];
        d->ix = mg_chans.n_readers;
        pthread_mutex_init(&d->lock, NULL);
        pthread_cond_init(&d->some, NULL);
        if (!mg_thread_start(read_pages, d, 0, NULL)) break;
        mg_chans.n_readers++;
    }
    uint32_t n_shares = mg_session.backend->channel->in_place ? mg_chans.n_readers : mg_chans.n_readers * SHARES_EACH;
    for (uint32_t k = 0; k < n_shares; k++) shares[k].owner = &readers[k % mg_chans.n_readers];
    __atomic_store_n(&mg_chans.n_shares, n_shares, __ATOMIC_RELEASE);
    return mg_chans.n_readers && (carries || (carries = mg_thread_start(carry_pages, NULL, 0, NULL)));
}
