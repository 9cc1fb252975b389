/* Marks in the trace of accesses for who reads it while the process runs (margay run -t communication): up to which
 * step all is in the file. The carrier makes them, now and then, in turns of three:
 *
 *   look    steps up to X are over: their launches have ended, so what these wrote lies in front of where rings are now
 *   read    until readers are there; what lies in a page that is not full is read once all that was taken of it is
 *           written
 *   write   what readers put goes to the file, and then the mark
 *
 * Nothing waits for a kernel, and no launch for a mark. */
#include <stdlib.h>

#include "base/io.h"
#include "inject/channel.h"
#include "inject/session.h"
#include "inject/steps.h"
#include "inject/tracefile.h"

enum { HEAD = MG_CHANNEL_PAGE_HEAD };
#define EVERY_NS 50000000u

static struct {
    enum { LOOK, READ, WRITE } turn;
    uint64_t told, order; /* the last mark's step, the next one's */
    uint64_t looked_ns;
    uint64_t asked; /* for what readers put */
} mark;

/* Words that kernels change meanwhile, one after the other. */
static bool read_words(const struct mg_chan *c, void *to, uint64_t at, size_t bytes)
{
    if (!c->io->in_place) return c->io->read(c->where, to, at, bytes);
    const uint64_t *from = (const uint64_t *)(uintptr_t)at;
    for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)to)[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    return true;
}

/* Under `carrying`. Where the rings are now, to be freed; NULL: they cannot be read. */
static struct mg_channel_ring *read_rings(const struct mg_chan *c)
{
    struct mg_channel_ring *rings = malloc(c->n_rings * sizeof *rings);
    if (rings && read_words(c, rings, c->control + mg_channel_ring_at(0), c->n_rings * sizeof *rings)) return rings;
    free(rings);
    return NULL;
}

static bool look_at(struct mg_chan *c)
{
    struct mg_channel_ring *rings = read_rings(c);
    if (rings && !c->until) c->until = calloc(c->n_rings, sizeof *c->until);
    bool ok = rings && c->until;
    for (uint32_t r = 0; ok && r < c->n_rings; r++)
        c->until[r] = mg_chan_page_of(&rings[r]) == UINT32_MAX
                          ? mg_chan_place(rings[r].pages, HEAD)
                          : mg_chan_place(rings[r].pages - 1, HEAD + (uint32_t)rings[r].now);
    free(rings);
    return ok;
}

/* What a ring's page has, unless somebody is still writing: of the two counts the one that grows later is read first.
 */
static void tell_ring(struct mg_chan *c, uint32_t r, const struct mg_channel_ring *before)
{
    uint32_t page = mg_chan_page_of(before);
    uint64_t head[HEAD / 8];
    struct mg_channel_ring now;
    if (page >= c->n_pages || !read_words(c, head, c->pool + (uint64_t)page * MG_CHANNEL_PAGE, sizeof head) ||
        !read_words(c, &now, c->control + mg_channel_ring_at(r), sizeof now))
        return;
    uint32_t to = HEAD + (uint32_t)now.now;
    if (mg_chan_page_of(&now) != page || now.pages != before->pages || (uint32_t)head[1] != (uint32_t)now.now) return;
    if (c->told[r].number == now.pages && c->told[r].to >= to) return;
    if (!mg_chan_tell_page(c, page, to, false, false)) return;
    c->told[r].number = now.pages;
    c->told[r].to = to;
}

/* Under `carrying`. Have readers all of it? What they could have, they get. */
static bool is_read(struct mg_chan *c)
{
    uint32_t late = 0, first = 0;
    for (uint32_t r = c->until ? c->n_rings : 0; r-- > 0;) {
        if (__atomic_load_n(&c->rings[r].read, __ATOMIC_ACQUIRE) >= c->until[r]) continue;
        late++;
        first = r;
    }
    struct mg_channel_ring *rings = late ? read_rings(c) : NULL;
    for (uint32_t r = first; rings && r < c->n_rings; r++)
        if (__atomic_load_n(&c->rings[r].read, __ATOMIC_ACQUIRE) < c->until[r]) tell_ring(c, r, &rings[r]);
    free(rings);
    return !late;
}

/* Of all channels that are there; what a channel held that is gone nobody gets. */
static bool all(bool (*is_so)(struct mg_chan *c))
{
    bool so = true;
    for (struct mg_chan *c = __atomic_load_n(&mg_chans.first, __ATOMIC_ACQUIRE); c; c = c->next) {
        pthread_mutex_lock(&c->carrying);
        if (!c->gone && c->io->enter) c->io->enter(c->where);
        if (!c->gone) so &= is_so(c);
        pthread_mutex_unlock(&c->carrying);
    }
    return so;
}

static void put_mark(struct mg_trace_writer *w)
{
    uint64_t begun;
    mg_steps_whole(&begun);
    const struct mg_whole_record r = {.time = mg_now_ns(), .order = mark.order, .begun = begun};
    mg_trace_put(mg_trace_thread(w), mg_trace_kind_add(w, &mg_whole_record_kind), &r, sizeof r, NULL, 0);
    mark.told = mark.order;
}

void mg_chan_mark(void)
{
    uint64_t now, begun;
    if (!mg_steps_followed() || __atomic_load_n(&mg_chans.jumped, __ATOMIC_ACQUIRE)) return;
    if ((now = mg_now_ns()) - mark.looked_ns < (mark.turn == LOOK ? EVERY_NS : EVERY_NS / 25)) return;
    mark.looked_ns = now;
    if (mark.turn == LOOK) {
        mark.order = mg_steps_whole(&begun);
        if (mark.order > mark.told && all(look_at)) mark.turn = READ;
        return;
    }
    struct mg_trace_writer *w = mg_tracefile_writer((struct mg_trace_opts){0});
    if (!w) return;
    if (mark.turn == READ && all(is_read)) {
        mark.asked = mg_trace_flush_ask(w);
        mark.turn = WRITE;
    } else if (mark.turn == WRITE && mg_trace_flush_done(w, mark.asked)) {
        put_mark(w);
        mark.turn = LOOK;
    }
}

bool mg_chan_has_mark(void)
{
    return mg_steps_followed() && mark.turn != LOOK;
}
