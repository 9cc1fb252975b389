/* Channels, the device's side: the code that writes records. See channel.h.
 *
 * Four registers of every function that writes, alike in all lanes of a warp that write together: its open
 * segment, how far that is filled, the number of the next record, and which lanes came in. The short way is an addition
 * and a comparison; taking and closing segments stands behind branches that all lanes of a group take or none.
 *
 * One file, although it is long: pages, records and the forms of accesses share these registers and the steps of a
 * record (begin, make_room, end), which nobody else may call. */
#include "analysis/callgraph.h"
#include "record/channel.h"
#include "patch/priv.h"

#define AT(r, off)     mg_o_addr_reg((r), (off))
#define P(...)         MG_PURE(at, __VA_ARGS__)
#define IF(p, ...)     MG_GUARDED(at, (p), __VA_ARGS__)
#define UNLESS(p, ...) mg_code_emit(at, (p), true, MG_INST(__VA_ARGS__))
#define CONTROL(field) ((int64_t)offsetof(struct mg_channel_control, field))
#define RING(field)    ((int64_t)(sizeof(struct mg_channel_control) + offsetof(struct mg_channel_ring, field)))

/* pos: bytes of the open segment 31..16, in use 15..0; 0: it has none. next: number of the next record; UNLIKE: some
 * lanes of the warp wrote without the others, so that these registers differ, or numbers do. */
enum {
    ROOM = MG_CHANNEL_ROOM,
    HEAD = MG_CHANNEL_SEGMENT_HEAD,
    POS_BITS = 16,
    POS_USED = (1 << POS_BITS) - 1,
    NUMBERS = INT32_MAX,
    LINE_LANES = 8 /* of 16 bytes: a line of memory */
};
#define UNLIKE ((int64_t)1 << 31)

struct mg_channel_func {
    mg_id segment, pos, next, all;
};

void mg_patch_channel(struct mg_patch *p)
{
    if (!p->in_analyze) mg_patch_refuse(p, MG_ERR_STATE, "a channel has to be asked for by analyze");
    if (mg_patch_sm(p) < 80)
        mg_patch_refuse(p, MG_ERR_UNSUPPORTED, "records for the host need a device of compute capability 8.0");
    p->region->has_channel = true;
    p->region->channel_word = mg_patch_words(p, 2);
    p->channel = mg_arena_array(&p->scratch, struct mg_channel_func, p->all->sites->n_funcs + 1);
}

static struct mg_channel_func *of_function(struct mg_code_at *at)
{
    struct mg_channel_func *f = &at->p->channel[at->func_ix];
    if (f->segment) return f;
    struct mg_code_at *entry = mg_at_entry(at->p, at->func_ix);
    f->segment = mg_code_reg(at, MG_TYPE_b64);
    f->pos = mg_code_reg(at, MG_TYPE_b32);
    f->next = mg_code_reg(at, MG_TYPE_b32);
    f->all = mg_code_reg(at, MG_TYPE_b32);
    MG_PURE(entry, "mov.u64", f->segment, 0);
    MG_PURE(entry, "mov.u32", f->pos, 0);
    MG_PURE(entry, "mov.u32", f->next, 0);
    MG_PURE(entry, "mov.u32", f->all, mg_value_own(entry));
    return f;
}

static mg_id t32(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_b32);
}
static mg_id t64(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_b64);
}
static mg_id tp(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_pred);
}

/* ---- pages and segments: by a group of lanes that go the same way ------------------------------------------------ */

struct group {
    mg_id mask, leader; /* b32: its lanes, the one that acts */
    mg_id lead;         /* pred: this lane is that */
    mg_id full;         /* b32: pages on the ring's list, as far as is known */
};

static mg_id channel_of(struct mg_code_at *at)
{
    return mg_value_word(at, at->p->region->channel_word);
}

/* The acting lane's value, for all. */
static mg_id low_from_leader(struct mg_code_at *at, const struct group *g, mg_id v)
{
    mg_id r = t32(at);
    P("shfl.sync.idx.b32", r, v, g->leader, 31, g->mask);
    return r;
}

static void halves(struct mg_code_at *at, mg_id v, mg_id lo, mg_id hi)
{
    P("mov.b64", mg_code_pair(at, lo, hi), v);
}
static void pack_halves(struct mg_code_at *at, mg_id to, mg_id lo, mg_id hi)
{
    P("mov.b64", to, mg_code_pair(at, lo, hi));
}

static mg_id from_leader(struct mg_code_at *at, const struct group *g, mg_id v)
{
    mg_id lo = t32(at), hi = t32(at), all = t64(at);
    halves(at, v, lo, hi);
    pack_halves(at, all, low_from_leader(at, g, lo), low_from_leader(at, g, hi));
    return all;
}

static mg_id any_of(struct mg_code_at *at, const struct group *g, mg_id p)
{
    mg_id r = tp(at);
    P("vote.sync.any.pred", r, p, g->mask);
    return r;
}

static mg_id ring_of(struct mg_code_at *at)
{
    mg_id control = channel_of(at), n = t32(at), ring = t64(at);
    P("ld.global.u32", n, AT(control, CONTROL(ring_mask)));
    P("and.b32", n, n, mg_value_sm(at));
    P("mad.wide.u32", ring, n, mg_o_imm(sizeof(struct mg_channel_ring)), control);
    return ring;
}

/* What the group has written in `bytes` bytes at `where` is there. Who completes the page puts it on the ring's list.
 */
static void commit(struct mg_code_at *at, const struct group *g, mg_id where, mg_id bytes)
{
    mg_id control = channel_of(at), skip = mg_code_label(at), again = mg_code_label(at), page = t64(at), pool = t64(at),
          old = t64(at), now = t64(at), n = t32(at), k = t32(at), last = tp(at), any;
    P("and.b64", page, where, -(int64_t)MG_CHANNEL_PAGE);
    P("mov.u32", n, 0);
    P("membar.gl");
    P("bar.warp.sync", g->mask);
    IF(g->lead, "atom.global.add.u32", n, AT(page, 8), bytes);
    P("add.u32", n, n, bytes);
    P("setp.eq.and.u32", last, n, ROOM, g->lead);
    any = any_of(at, g, last);
    UNLESS(any, "bra", mg_o_label(skip));
    mg_id ring = ring_of(at);
    P("ld.global.u64", pool, AT(control, CONTROL(pool)));
    mg_code_place(at, again); /* others of the ring may be at it: one of them gets on */
    P("mov.u64", old, 0);
    IF(last, "ld.volatile.global.u64", old, AT(ring, RING(full)));
    halves(at, old, k, n);
    IF(last, "st.volatile.global.u32", AT(page, 12), k);
    P("membar.gl");
    P("sub.u64", now, page, pool);
    P("shr.u64", now, now, mg_o_imm(__builtin_ctz(MG_CHANNEL_PAGE)));
    P("cvt.u32.u64", k, now);
    P("add.u32", k, k, 1);
    P("add.u32", n, n, 1);
    pack_halves(at, now, k, n);
    n = low_from_leader(at, g, n);
    P("mov.u32", g->full, n);
    IF(last, "atom.global.cas.b64", now, AT(ring, RING(full)), old, now);
    P("setp.ne.and.u64", last, now, old, last);
    any = any_of(at, g, last);
    IF(any, "bra", mg_o_label(again));
    mg_code_place(at, skip);
}

/* ---- pages on their way to the host ------------------------------------------------------------------------------ */

/* The page's copy of the host's, by all lanes of the group, or so many that they write whole lines: 16 bytes each, two
 * at a time. */
static void copy_page(struct mg_code_at *at, const struct group *g, mg_id page)
{
    enum { AT_ONCE = 2 };
    mg_id done = mg_code_label(at), again = mg_code_label(at), mirror = t64(at), off = t32(at), all = t32(at),
          step = t32(at), p = tp(at), mine = tp(at), place[AT_ONCE], one[AT_ONCE], two[AT_ONCE];
    P("ld.global.u64", mirror, AT(channel_of(at), CONTROL(mirror)));
    P("setp.eq.u64", p, mirror, 0);
    IF(p, "bra", mg_o_label(done));
    P("popc.b32", step, g->mask);
    P("and.b32", off, step, -8);
    P("setp.ne.u32", p, off, 0);
    IF(p, "mov.u32", step, off);
    P("and.b32", off, mg_value_lt(at), g->mask);
    P("popc.b32", off, off);
    P("setp.lt.u32", mine, off, step);
    P("shl.b32", step, step, 4);
    P("shl.b32", off, off, 4);
    P("mov.u32", all, 0); /* what all have: they go round alike */
    mg_code_rolled(at);   /* else it takes more registers than all the rest */
    mg_code_place(at, again);
    for (unsigned i = 0; i < AT_ONCE; i++) {
        mg_id within = t32(at);
        place[i] = t64(at);
        one[i] = t64(at);
        two[i] = t64(at);
        P("min.u32", within, off, MG_CHANNEL_PAGE - 16); /* who is beyond copies those once more */
        P("cvt.u64.u32", place[i], within);
        P("add.u64", place[i], place[i], page);
        IF(mine, "ld.global.cg.v2.u64", mg_code_pair(at, one[i], two[i]), AT(place[i], 0));
        P("add.u32", off, off, step);
        P("add.u32", all, all, step);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        P("add.u64", place[i], place[i], mirror);
        IF(mine, "st.global.v2.u64", AT(place[i], 0), mg_code_pair(at, one[i], two[i]));
    }
    P("setp.lt.u32", p, all, MG_CHANNEL_PAGE);
    IF(p, "bra", mg_o_label(again));
    mg_code_place(at, done);
    P("membar.sys");
    P("bar.warp.sync", g->mask);
}

/* Sends the pages of the ring's list, the oldest first: readers want them in order. */
static void send_pages(struct mg_code_at *at, const struct group *g)
{
    mg_id control = channel_of(at), ring = ring_of(at), turn = mg_code_label(at), again = mg_code_label(at),
          out = mg_code_label(at), page = t64(at), entry = t64(at), word = t64(at), n = t32(at), k = t32(at),
          next = t32(at), behind = t32(at), p = tp(at), at_page;
    P("mov.u64", word, 0);
    P("mov.u64", page, 0);
    IF(g->lead, "atom.global.exch.b64", page, AT(ring, RING(full)), word);
    P("cvt.u32.u64", behind, page);
    P("membar.gl");
    P("mov.u32", next, 0);
    mg_code_rolled(at);
    mg_code_place(at, turn); /* `behind` goes in front of `next`: by the leader, 0 in the others */
    P("setp.ne.u32", p, behind, 0);
    P("sub.u32", n, behind, 1);
    P("ld.global.u64", page, AT(control, CONTROL(pool)));
    P("mad.wide.u32", page, n, MG_CHANNEL_PAGE, page);
    P("mov.u32", k, behind);
    IF(p, "ld.volatile.global.u32", behind, AT(page, 12));
    IF(p, "st.volatile.global.u32", AT(page, 12), next);
    IF(p, "mov.u32", next, k);
    mg_id more = any_of(at, g, p);
    IF(more, "bra", mg_o_label(turn));
    at_page = low_from_leader(at, g, next);
    P("mov.u32", next, at_page);
    mg_code_place(at, again);
    P("setp.eq.u32", p, next, 0);
    IF(p, "bra", mg_o_label(out));
    P("membar.gl"); /* behind what others committed */
    P("sub.u32", n, next, 1);
    P("ld.global.u64", page, AT(control, CONTROL(pool)));
    P("mad.wide.u32", page, n, MG_CHANNEL_PAGE, page);
    P("mov.u32", k, 0);
    IF(g->lead, "ld.volatile.global.u32", k, AT(page, 12));
    at_page = low_from_leader(at, g, k);
    P("mov.u32", next, at_page);
    copy_page(at, g, page);
    P("mov.u32", k, 0);
    IF(g->lead, "atom.global.add.u32", k, AT(control, CONTROL(n_done)), 1);
    P("ld.global.u32", at_page, AT(control, CONTROL(queue_mask)));
    P("and.b32", at_page, at_page, k);
    P("ld.global.u64", entry, AT(control, CONTROL(done)));
    P("mad.wide.u32", entry, at_page, 8, entry);
    P("add.u32", k, k, 1);
    pack_halves(at, word, n, k);
    IF(g->lead, "st.volatile.global.u64", AT(entry, 0), word);
    P("bra", mg_o_label(again));
    mg_code_place(at, out);
}

struct waiting {
    mg_id until, ns;
}; /* b64, b32 */

static void begin_waiting(struct mg_code_at *at, const struct waiting *w)
{
    mg_id now = mg_value_globaltimer(at);
    P("ld.volatile.global.u64", w->until, AT(channel_of(at), CONTROL(patience_ns)));
    P("add.u64", w->until, w->until, now);
    P("mov.u32", w->ns, 500);
}

/* A while; leaves for `stop` when that is over. */
static void wait_on(struct mg_code_at *at, const struct group *g, const struct waiting *w, mg_id stop)
{
    mg_id now = mg_value_globaltimer(at), over = tp(at);
    P("setp.gt.u64", over, now, w->until);
    over = any_of(at, g, over);
    IF(over, "bra", mg_o_label(stop));
    P("nanosleep.u32", w->ns);
    P("shl.b32", w->ns, w->ns, 1);
    P("min.u32", w->ns, w->ns, 8000);
}

/* segment = `bytes` bytes of the multiprocessor's page; 0: there is no page, and nothing was taken. */
static void take_segment(struct mg_code_at *at, const struct group *g, mg_id bytes, mg_id segment)
{
    mg_id control = channel_of(at), again = mg_code_label(at), taken = mg_code_label(at), others = mg_code_label(at),
          next = mg_code_label(at), wait = mg_code_label(at), have = mg_code_label(at), stop = mg_code_label(at),
          given_up = mg_code_label(at), out = mg_code_label(at);
    const struct waiting w = {t64(at), t32(at)};
    mg_id ring = ring_of(at), old = t64(at), word = t64(at), page = t32(at), fresh = t32(at), off = t32(at),
          n = t32(at), ticket = t32(at), listed = t32(at), place = t64(at), p = tp(at), q = tp(at);
    P("mov.u32", listed, 0);
    IF(g->lead, "ld.volatile.global.u32", listed, AT(ring, RING(full) + 4));
    mg_code_place(at, again);
    P("cvt.u64.u32", word, bytes);
    P("mov.u64", old, 0);
    IF(g->lead, "atom.global.add.u64", old, AT(ring, RING(now)), word);
    halves(at, old, off, page);
    off = low_from_leader(at, g, off);
    page = low_from_leader(at, g, page);
    P("max.u32", g->full, g->full, low_from_leader(at, g, listed));
    P("ld.global.u64", segment, AT(control, CONTROL(pool)));
    P("mad.wide.u32", segment, page, MG_CHANNEL_PAGE, segment);
    P("cvt.u64.u32", word, off);
    P("add.u64", segment, segment, word);
    P("add.u64", segment, segment, MG_CHANNEL_PAGE_HEAD);
    P("add.u32", n, off, bytes);
    P("setp.le.u32", p, n, ROOM);
    IF(p, "bra", mg_o_label(out));
    P("setp.gt.u32", p, off, ROOM);
    IF(p, "bra", mg_o_label(taken));
    /* the page ends here: its rest is nothing, and the ring's next one is ours to get */
    P("sub.u32", n, ROOM, off);
    P("setp.eq.u32", p, n, 0);
    IF(p, "bra", mg_o_label(next));
    P("cvt.u64.u32", word, n);
    P("shl.b64", word, word, MG_SEGMENT_WORDS_SHIFT - 3);
    P("or.b64", word, word, (int64_t)((uint64_t)MG_SEGMENT_NOTHING << 62));
    IF(g->lead, "st.global.u64", AT(segment, 0), word);
    commit(at, g, segment, n);
    mg_code_place(at, next);
    P("mov.u32", ticket, 0);
    IF(g->lead, "ld.global.u32", ticket, AT(ring, RING(ticket)));
    P("setp.eq.and.u32", q, ticket, 0, g->lead);
    IF(q, "atom.global.add.u32", ticket, AT(control, CONTROL(n_taken)), 1);
    IF(q, "add.u32", ticket, ticket, 1);
    P("sub.u32", n, ticket, 1);
    P("ld.global.u32", off, AT(control, CONTROL(queue_mask)));
    P("and.b32", n, n, off);
    P("ld.global.u64", place, AT(control, CONTROL(free)));
    P("mad.wide.u32", place, n, 8, place);
    begin_waiting(at, &w);
    mg_code_place(at, wait);
    P("mov.u64", old, 0);
    IF(g->lead, "ld.volatile.global.u64", old, AT(place, 0));
    halves(at, old, fresh, n);
    P("setp.eq.and.u32", p, n, ticket, g->lead);
    p = any_of(at, g, p);
    IF(p, "bra", mg_o_label(have));
    wait_on(at, g, &w, stop);
    P("bra", mg_o_label(wait));
    mg_code_place(at, stop); /* the ring has no page: who comes next tries again, with our ticket */
    P("mov.u64", word, (int64_t)MG_CHANNEL_NO_PAGE);
    IF(g->lead, "st.global.u32", AT(ring, RING(ticket)), ticket);
    P("membar.gl");
    IF(g->lead, "atom.global.exch.b64", old, AT(ring, RING(now)), word);
    P("bra", mg_o_label(given_up));
    mg_code_place(at, have);
    mg_id got = low_from_leader(at, g, fresh);
    P("ld.global.u64", segment, AT(control, CONTROL(pool)));
    P("mad.wide.u32", segment, got, MG_CHANNEL_PAGE, segment);
    P("ld.global.u32", off, AT(ring, RING(pages)));
    P("ld.global.u32", n, AT(control, CONTROL(ring_mask)));
    P("and.b32", n, n, mg_value_sm(at));
    pack_halves(at, word, n, off);
    P("add.u32", off, off, 1);
    P("mov.u32", n, 0);
    IF(g->lead, "st.global.u32", AT(ring, RING(pages)), off);
    IF(g->lead, "st.global.u32", AT(ring, RING(ticket)), n);
    IF(g->lead, "st.global.u64", AT(segment, 0), word);
    P("mov.u64", word, 0);
    IF(g->lead, "st.global.u64", AT(segment, 8), word);
    P("membar.gl");
    pack_halves(at, word, bytes, got);
    IF(g->lead, "atom.global.exch.b64", old, AT(ring, RING(now)), word);
    P("add.u64", segment, segment, MG_CHANNEL_PAGE_HEAD);
    P("bra", mg_o_label(out));
    mg_code_place(at, taken); /* until the ring's word is another page's */
    begin_waiting(at, &w);
    mg_code_place(at, others);
    wait_on(at, g, &w, given_up);
    P("ld.volatile.global.u64", old, AT(ring, RING(now)));
    halves(at, old, off, n);
    P("setp.eq.u32", p, n, page);
    P("setp.gt.and.u32", p, off, ROOM, p);
    p = any_of(at, g, p);
    IF(p, "bra", mg_o_label(others));
    P("bra", mg_o_label(again));
    mg_code_place(at, given_up);
    P("mov.u64", word, mg_o_imm(MG_CHANNEL_NO_PATIENCE_NS));
    IF(g->lead, "st.volatile.global.u64", AT(control, CONTROL(patience_ns)), word);
    P("mov.u64", word, 1);
    IF(g->lead, "red.global.add.u64", AT(ring, RING(dropped)), word);
    P("mov.u64", segment, 0);
    mg_code_place(at, out);
}

/* The first word of a segment of so many bytes: so many in use, 0: open. */
static mg_id first_word(struct mg_code_at *at, const struct group *g, mg_id bytes, mg_id used)
{
    mg_id word = t64(at), high = t32(at), launch = t32(at);
    P("mad.lo.u32", high, g->leader, 1 << (MG_SEGMENT_LANE_SHIFT - 32), mg_value_warp(at));
    P("mad.lo.u32", high, bytes, 1 << (MG_SEGMENT_WORDS_SHIFT - 3 - 32), high);
    P("mad.lo.u32", high, used, 1 << (MG_SEGMENT_USED_SHIFT - 3 - 32), high);
    P("or.b32", high, high, (int64_t)MG_SEGMENT_OPENED << 30);
    P("cvt.u32.u64", launch, mg_value_word(at, at->p->region->channel_word + 1));
    pack_halves(at, word, launch, high);
    return word;
}

static void close_segment(struct mg_code_at *at, const struct group *g, mg_id segment, mg_id pos)
{
    mg_id bytes = t32(at), used = t32(at);
    P("shr.u32", bytes, pos, POS_BITS);
    P("and.b32", used, pos, POS_USED);
    mg_id word = first_word(at, g, bytes, used);
    IF(g->lead, "st.global.u64", AT(segment, 0), word);
    commit(at, g, segment, bytes);
}

/* ---- records: by the lanes of a spot ----------------------------------------------------------------------------- */

struct write {
    struct mg_channel_func *f;
    struct group g;
    mg_id out;                   /* behind it all */
    mg_id n, rank, next, number; /* b32; next: f->next as the highest lane has it */
    mg_id whole;                 /* pred: all lanes write */
    mg_id need;                  /* b32: bytes */
    mg_id step;                  /* b32: numbers that the record takes; 0: one */
    bool unlike;                 /* it is no measure of others */
};

/* A place that writes accesses of so many bytes a lane. */
static void note_width(struct mg_code_at *at, uint32_t site, uint32_t width)
{
    if (site >= MG_CHANNEL_MOST_SITES)
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "more than %d places that write records", (int)MG_CHANNEL_MOST_SITES);
    while (at->p->widths.n <= MG_MIN(site, (uint32_t)MG_CHANNEL_MOST_SITES)) *mg_vec_push(&at->p->widths) = 0;
    at->p->widths.at[MG_MIN(site, (uint32_t)MG_CHANNEL_MOST_SITES)] = (uint8_t)width;
}

static struct write begin(struct mg_code_at *at)
{
    struct write w = {.f = of_function(at), .out = mg_code_label(at)};
    const struct mg_code_guard g = *mg_at_guard(at);
    w.g = (struct group){.mask = mg_value_own(at), .lead = mg_value_leader(at), .leader = t32(at), .full = t32(at)};
    w.n = t32(at);
    w.rank = t32(at);
    w.next = t32(at);
    w.number = t32(at);
    w.whole = tp(at);
    w.need = t32(at);
    if (g.pred) mg_code_emit(at, g.pred, !g.is_not, MG_INST("bra", mg_o_label(w.out)));
    P("mov.u32", w.g.full, 0);
    P("popc.b32", w.n, w.g.mask);
    P("brev.b32", w.g.leader, w.g.mask);
    P("clz.b32", w.g.leader, w.g.leader);
    P("and.b32", w.rank, mg_value_lt(at), w.g.mask);
    P("popc.b32", w.rank, w.rank);
    P("setp.eq.u32", w.whole, w.g.mask, w.f->all);
    P("redux.sync.max.u32", w.next, w.f->next, w.g.mask);
    P("and.b32", w.number, w.next, NUMBERS);
    if (at->p->all->o->channel_every > 1) {
        mg_id part = t32(at), p = tp(at);
        P("rem.u32", part, w.number, mg_o_imm(at->p->all->o->channel_every));
        P("setp.ne.u32", p, part, 0);
        P("add.u32", part, w.number, 1);
        P("and.b32", w.f->next, w.next, UNLIKE);
        UNLESS(w.whole, "or.b32", w.f->next, w.f->next, UNLIKE);
        P("or.b32", w.f->next, w.f->next, part);
        IF(p, "bra", mg_o_label(w.out));
    }
    return w;
}

/* Where the record of w->need bytes goes, in all lanes; 0: it is dropped. */
static mg_id make_room(struct mg_code_at *at, const struct write *w)
{
    const struct mg_channel_func *f = w->f;
    mg_id have = mg_code_label(at), fresh = mg_code_label(at), dst = t64(at), used = t32(at), room = t32(at),
          number = t32(at), p = tp(at), some = tp(at), word;
    P("and.b32", used, f->pos, POS_USED);
    P("shr.u32", room, f->pos, POS_BITS);
    P("cvt.u64.u32", dst, used);
    P("add.u64", dst, dst, f->segment);
    P("add.u32", used, used, w->need);
    P("setp.le.and.u32", p, used, room, w->whole);
    P("setp.ge.and.s32", p, w->next, 0, p);
    P("add.u32", f->next, w->number, w->step ? mg_o_reg(w->step) : mg_o_imm(1));
    IF(p, "add.u32", f->pos, f->pos, w->need);
    IF(p, "bra", mg_o_label(have));
    UNLESS(w->whole, "bra", mg_o_label(fresh));
    /* the lowest lane's, whatever the others remember */
    word = from_leader(at, &w->g, f->segment);
    P("mov.u64", f->segment, word);
    word = low_from_leader(at, &w->g, f->pos);
    P("mov.u32", f->pos, word);
    P("setp.eq.u32", p, f->pos, 0);
    IF(p, "bra", mg_o_label(fresh));
    close_segment(at, &w->g, f->segment, f->pos);
    mg_code_place(at, fresh);
    P("add.u32", used, w->need, HEAD);
    P("mul.lo.u32", room, w->number, 8); /* about what it has written so far, once more */
    P("max.u32", room, room, 48);
    if (at->p->channel_places) { /* all that it will write, if that is like the first */
        const int64_t others = at->p->channel_places - 1;
        P("setp.eq.u32", p, w->number, 0);
        if (w->unlike)
            IF(p, "add.u32", room, w->need, mg_o_imm(24 * others));
        else
            IF(p, "mad.lo.u32", room, w->need, mg_o_imm(others), w->need);
        P("min.u32", room, room, MG_CHANNEL_OPEN_MOST);
    }
    P("min.u32", room, room, MG_CHANNEL_OPEN_MOST);
    P("add.u32", room, room, HEAD);
    P("max.u32", room, room, used);
    UNLESS(w->whole, "mov.u32", room, used);
    take_segment(at, &w->g, room, dst);
    P("setp.ne.u64", some, dst, 0);
    P("and.pred", p, some, w->g.lead);
    P("mov.u32", number, 0);
    UNLESS(w->whole, "mov.u32", number, used); /* closed at once, when it is written */
    word = first_word(at, &w->g, room, number);
    IF(p, "st.global.u64", AT(dst, 0), word);
    P("mov.u32", number, w->number);
    if (at->p->all->o->channel_every > 1) P("div.u32", number, w->number, mg_o_imm(at->p->all->o->channel_every));
    P("cvt.u64.u32", word, number);
    P("shl.b64", word, word, MG_SEGMENT_CTA_BITS);
    P("or.b64", word, word, mg_value_cta(at));
    IF(p, "st.global.u64", AT(dst, 8), word);
    IF(w->whole, "mov.u64", f->segment, dst);
    P("shl.b32", room, room, POS_BITS);
    P("or.b32", room, room, used);
    UNLESS(some, "mov.u32", room, 0);
    IF(w->whole, "mov.u32", f->pos, room);
    UNLESS(w->whole, "or.b32", f->next, f->next, UNLIKE);
    IF(some, "add.u64", dst, dst, HEAD);
    mg_code_place(at, have);
    return dst;
}

/* The record at dst is written, by all that write it. Full pages are sent now, when nobody waits for what the group
 * has. */
static void end(struct mg_code_at *at, const struct write *w, mg_id dst)
{
    mg_id p = tp(at), bytes = t32(at), written = mg_code_label(at);
    P("setp.eq.u64", p, dst, 0);
    P("or.pred", p, p, w->whole);
    IF(p, "bra", mg_o_label(written));
    P("add.u32", bytes, w->need, HEAD);
    commit(at, &w->g, dst, bytes);
    mg_code_place(at, written);
    P("setp.ge.u32", p, w->n, LINE_LANES);
    P("setp.gt.or.u32", p, w->g.full, MG_CHANNEL_LISTED, p);
    P("setp.ne.and.u32", p, w->g.full, 0, p);
    UNLESS(p, "bra", mg_o_label(w->out));
    send_pages(at, &w->g);
    mg_code_place(at, w->out);
}

static int64_t head_of(enum mg_record_kind kind, uint32_t site)
{
    return (int64_t)((uint64_t)kind << MG_RECORD_KIND_SHIFT | (uint64_t)site << MG_RECORD_SITE_SHIFT);
}

/* ---- accesses ------------------------------------------------------------------------------------------------ */

/* How the lanes' addresses lie, in one register: enum mg_record_kind, and of rows whether their lanes lie side by side.
 */
enum { FORM_BITS = 4, FORM_SIDE = MG_RECORD_ROWS + 1 };

struct forms { /* of a group's items, FORM_BITS for each, b32 */
    mg_id at[2];
};
static mg_id forms_of(const struct forms *f, uint32_t address)
{
    return f->at[address * FORM_BITS / 32];
}
_Static_assert(MG_CHANNEL_MOST_GROUP *FORM_BITS <= 64, "two registers");

struct rows {                 /* of as many lanes as the CTA has along x, a power of two below 32 */
    mg_id bits, lead, second; /* b32: that power; in a row, the lowest lane; the second row's first lane */
};

static struct rows rows_of(struct mg_code_at *at, const struct write *w, mg_id none)
{
    const struct rows r = {t32(at), t32(at), t32(at)};
    mg_id n = t32(at), p = tp(at);
    P("mov.u32", n, mg_o_sreg(MG_SREG_ntid, 1));
    if (none) {
        P("popc.b32", r.bits, n);
        P("setp.ne.u32", p, r.bits, 1);
        P("setp.gt.or.u32", p, n, 16, p);
        IF(p, "bra", mg_o_label(none));
    }
    P("sub.u32", r.second, n, 1);
    P("popc.b32", r.bits, r.second);
    P("and.b32", r.lead, w->g.leader, r.second);
    P("sub.u32", r.second, w->g.leader, r.lead);
    P("add.u32", r.second, r.second, n);
    return r;
}

/* From the lowest lane's address to the second row's first lane's. */
static mg_id to_second(struct mg_code_at *at, const struct write *w, const struct rows *r, mg_id addr, mg_id first)
{
    const struct group second = {.mask = w->g.mask, .leader = r->second};
    mg_id pitch = t64(at);
    P("sub.u64", pitch, from_leader(at, &second, addr), first);
    return pitch;
}

/* Each lane tries both ways to lie in a row. */
static void find_rows(struct mg_code_at *at, const struct write *w, mg_id addr, mg_id first, int64_t width, mg_id form,
                      mg_id done)
{
    const struct rows r = rows_of(at, w, done);
    mg_id lane = mg_value_lane(at), expect = t64(at), base = t64(at), low = t32(at), high = t32(at), p = tp(at),
          side = tp(at), one = tp(at);
    P("min.u32", high, r.second, 31);
    P("shr.u32", low, w->g.mask, high);
    P("and.b32", low, low, 1);
    P("setp.eq.u32", p, low, 0); /* it is not here: there is no second row */
    P("setp.gt.or.u32", p, r.second, 31, p);
    IF(p, "bra", mg_o_label(done));
    mg_id pitch = to_second(at, w, &r, addr, first); /* where all of a row have one address */
    P("shr.u32", low, w->g.leader, r.bits);
    P("shr.u32", high, lane, r.bits);
    P("sub.u32", high, high, low); /* the lane's row */
    P("cvt.u32.u64", low, pitch);
    P("mad.wide.s32", expect, low, high, first);
    P("setp.eq.u64", p, expect, addr);
    P("vote.sync.all.pred", one, p, w->g.mask);
    P("mul.wide.u32", base, r.lead, mg_o_imm(width));
    P("add.u64", pitch, pitch, base); /* where they lie side by side */
    P("sub.u64", base, first, base);
    P("cvt.u32.u64", low, pitch);
    P("mad.wide.s32", expect, low, high, base);
    P("shr.u32", low, lane, r.bits);
    P("shl.b32", low, low, r.bits);
    P("sub.u32", low, lane, low); /* the lane in its row */
    P("mad.wide.u32", expect, low, mg_o_imm(width), expect);
    P("setp.eq.u64", p, expect, addr);
    P("vote.sync.all.pred", side, p, w->g.mask);
    IF(one, "mov.u32", form, MG_RECORD_ROWS);
    IF(side, "mov.u32", form, FORM_SIDE);
}

/* The shortest form. first: the lowest lane's address, in all. */
static mg_id code_addresses(struct mg_code_at *at, const struct write *w, mg_id addr, mg_id first, int64_t width)
{
    mg_id expect = t64(at), word = t64(at), form = t32(at), low = t32(at), done = mg_code_label(at), unit = tp(at),
          same = tp(at), full = tp(at), near = tp(at), p = tp(at);
    P("mad.wide.u32", expect, w->rank, mg_o_imm(width), first);
    P("setp.eq.u64", p, addr, expect);
    P("vote.sync.all.pred", unit, p, w->g.mask);
    P("setp.eq.u64", p, addr, first);
    P("vote.sync.all.pred", same, p, w->g.mask);
    P("sub.u64", expect, addr, first); /* the distance */
    P("cvt.u32.u64", low, expect);
    P("cvt.s64.s32", word, low);
    P("setp.eq.s64", p, word, expect);
    P("vote.sync.all.pred", near, p, w->g.mask);
    P("setp.eq.u32", full, w->g.mask, mg_o_imm(0xffffffff));
    P("and.pred", full, full, unit);
    P("mov.u32", form, MG_RECORD_FAR); /* the later the shorter */
    IF(near, "mov.u32", form, MG_RECORD_NEAR);
    IF(same, "mov.u32", form, MG_RECORD_SAME);
    IF(unit, "mov.u32", form, MG_RECORD_UNIT);
    IF(full, "mov.u32", form, MG_RECORD_FULL);
    P("or.pred", p, same, unit);
    IF(p, "bra", mg_o_label(done));
    find_rows(at, w, addr, first, width, form, done);
    mg_code_place(at, done);
    return form;
}

/* b32: bytes of addresses of this form, without head and mask. */
static mg_id bytes_of(struct mg_code_at *at, const struct write *w, mg_id form)
{
    mg_id size = t32(at), near = t32(at), p = tp(at);
    P("add.u32", near, w->n, 1);
    P("and.b32", near, near, 0x7e);
    P("shl.b32", near, near, 2);
    P("mov.u32", size, 0);
    P("setp.ge.u32", p, form, MG_RECORD_ROWS);
    IF(p, "mov.u32", size, 8);
    P("setp.eq.u32", p, form, MG_RECORD_NEAR);
    IF(p, "mov.u32", size, near);
    P("setp.eq.u32", p, form, MG_RECORD_FAR);
    IF(p, "shl.b32", size, w->n, 3);
    return size;
}

/* What follows an access's head and mask, at `to`. */
static void write_addresses(struct mg_code_at *at, const struct write *w, mg_id form, mg_id addr, mg_id first,
                            int64_t width, mg_id to)
{
    mg_id p = tp(at), far = tp(at), each = t64(at), low = t32(at), tail = mg_code_label(at), lists = mg_code_label(at),
          rows = t64(at), high = t32(at);
    P("setp.lt.u32", p, form, MG_RECORD_NEAR); /* all lanes go the same way */
    IF(p, "bra", mg_o_label(tail));
    P("setp.lt.u32", p, form, MG_RECORD_ROWS);
    IF(p, "bra", mg_o_label(lists));
    const struct rows r = rows_of(at, w, 0);
    P("cvt.u32.u64", high, to_second(at, w, &r, addr, first));
    P("mul.lo.u32", low, r.lead, mg_o_imm(width));
    P("setp.eq.u32", p, form, FORM_SIDE);
    IF(p, "add.u32", high, high, low);
    P("mov.u32", low, r.bits);
    IF(p, "or.b32", low, low, 16);
    pack_halves(at, rows, low, high);
    IF(w->g.lead, "st.global.u64", AT(to, 0), rows);
    P("bra", mg_o_label(tail));
    mg_code_place(at, lists);
    P("setp.eq.u32", far, form, MG_RECORD_FAR);
    P("mad.wide.u32", each, w->rank, 8, to);
    IF(far, "st.global.u64", AT(each, 0), addr);
    P("mad.wide.u32", each, w->rank, 4, to);
    P("sub.u64", rows, addr, first);
    P("cvt.u32.u64", low, rows);
    UNLESS(far, "st.global.u32", AT(each, 0), low);
    P("bar.warp.sync", w->g.mask); /* who closes the segment speaks for all */
    mg_code_place(at, tail);
}

static mg_id head_word(struct mg_code_at *at, mg_id form, mg_id first, uint32_t site)
{
    mg_id head = t64(at), word = t64(at), kind = t32(at);
    P("min.u32", kind, form, MG_RECORD_ROWS);
    P("cvt.u64.u32", head, kind);
    P("shl.b64", head, head, MG_RECORD_KIND_SHIFT);
    P("and.b64", word, first, (int64_t)MG_RECORD_ADDRESS);
    P("or.b64", head, head, word);
    P("or.b64", head, head, mg_o_imm(head_of(MG_RECORD_NONE, site)));
    return head;
}

void mg_channel_access(struct mg_code_at *at, uint32_t site, mg_id node)
{
    struct mg_access a;
    if (!mg_access_of(mg_at_module(at), node, &a)) {
        mg_patch_refuse(at->p, MG_ERR_STATE, "a record of an access of an instruction that makes none");
        return;
    }
    mg_id addr = mg_value_address(at, node);
    int64_t width = (int64_t)a.bytes * MG_MAX(a.vec, 1);
    note_width(at, site, (uint32_t)width);
    struct write w = begin(at);
    mg_id first = from_leader(at, &w.g, addr), masked = tp(at), none = mg_code_label(at), word = t64(at), to = t64(at),
          form = code_addresses(at, &w, addr, first, width), p = tp(at);
    P("setp.ne.u32", masked, form, MG_RECORD_FULL);
    P("add.u32", w.need, bytes_of(at, &w, form), 8);
    IF(masked, "add.u32", w.need, w.need, 8);
    mg_id dst = make_room(at, &w), head = head_word(at, form, first, site);
    P("setp.eq.u64", p, dst, 0);
    IF(p, "bra", mg_o_label(none));
    IF(w.g.lead, "st.global.u64", AT(dst, 0), head);
    P("and.pred", masked, masked, w.g.lead);
    P("cvt.u64.u32", word, w.g.mask);
    IF(masked, "st.global.u64", AT(dst, 8), word);
    P("add.u64", to, dst, 16);
    write_addresses(at, &w, form, addr, first, width, to);
    mg_code_place(at, none);
    end(at, &w, dst);
}

bool mg_channel_is_whole(const struct mg_patch *p)
{
    return p->all->o->channel_every <= 1;
}

/* How each item's addresses lie; adds their bytes to the record's. */
static struct forms code_items(struct mg_code_at *at, const struct write *w, const struct mg_channel_item *items,
                               uint32_t n)
{
    const struct forms f = {{t32(at), t32(at)}};
    for (uint32_t i = 0; i < 2; i++) P("mov.u32", f.at[i], 0);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        if (!items[i].address) continue;
        mg_id form = code_addresses(at, w, items[i].address, from_leader(at, &w->g, items[i].address), items[i].width);
        P("add.u32", w->need, w->need, bytes_of(at, w, form));
        P("shl.b32", form, form, mg_o_imm(k * FORM_BITS % 32));
        P("or.b32", forms_of(&f, k), forms_of(&f, k), form);
        k++;
    }
    return f;
}

static void write_items(struct mg_code_at *at, const struct write *w, const struct mg_channel_item *items, uint32_t n,
                        const struct forms *forms, mg_id to)
{
    mg_id word = t64(at), form = t32(at);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        if (!items[i].address) {
            P("mov.u64", word, mg_o_imm(head_of(MG_RECORD_ONCE, items[i].site)));
            IF(w->g.lead, "st.global.u64", AT(to, 0), word);
            P("add.u64", to, to, 8);
            continue;
        }
        P("shr.u32", form, forms_of(forms, k), mg_o_imm(k * FORM_BITS % 32));
        k++;
        P("and.b32", form, form, (1 << FORM_BITS) - 1);
        mg_id first = from_leader(at, &w->g, items[i].address), head = head_word(at, form, first, items[i].site);
        IF(w->g.lead, "st.global.u64", AT(to, 0), head);
        if (items[i].stride) IF(w->g.lead, "st.global.u64", AT(to, 8), items[i].stride);
        P("add.u64", to, to, mg_o_imm(items[i].stride ? 16 : 8));
        write_addresses(at, w, form, items[i].address, first, items[i].width, to);
        P("cvt.u64.u32", word, bytes_of(at, w, form));
        P("add.u64", to, to, word);
    }
}

void mg_channel_expect(struct mg_patch *p, uint32_t places)
{
    p->channel_places = places;
}

/* Accesses that all lie side by side in all lanes, near the first one: word k of the record behind its head holds
 * distances from there. */
struct side_by_side {
    mg_id holds;                     /* pred, of the group */
    mg_id far[MG_CHANNEL_MOST_SIDE]; /* b32, in the lowest lane: distances of the accesses behind the first, in bytes */
};
_Static_assert(MG_RECORD_FULL == 1, "in find_side");
_Static_assert(MG_CHANNEL_MOST_SIDE *FORM_BITS <= 32, "in find_side");

static uint32_t side_words(uint32_t n)
{
    return 2 + (n > 3 ? (n - 2) / 2 : 0);
}

static struct side_by_side find_side(struct mg_code_at *at, const struct write *w, const struct mg_channel_item *items,
                                     uint32_t n, mg_id forms)
{
    struct side_by_side s = {.holds = tp(at)};
    mg_id p = tp(at), d = t64(at), wide = t64(at), low = t32(at);
    P("setp.eq.and.u32", p, forms, mg_o_imm(0x11111111u >> (32 - FORM_BITS * n)), w->g.lead);
    for (uint32_t i = 1; i < n; i++) {
        s.far[i] = t32(at);
        P("sub.u64", d, items[i].address, items[0].address);
        P("cvt.u32.u64", s.far[i], d);
        P("cvt.s64.s32", wide, s.far[i]);
        P("setp.eq.and.u64", p, wide, d, p);
        P("and.b32", low, s.far[i], 3);
        P("setp.eq.and.u32", p, low, 0, p);
    }
    P("vote.sync.any.pred", s.holds, p, w->g.mask);
    IF(s.holds, "mov.u32", w->need, mg_o_imm(8 * (int64_t)side_words(n)));
    return s;
}

static void write_side(struct mg_code_at *at, const struct write *w, const struct mg_channel_item *items, uint32_t n,
                       const struct side_by_side *s, mg_id dst)
{
    mg_id word = t64(at), part = t64(at), low = t32(at);
    P("and.b64", word, items[0].address, (int64_t)MG_RECORD_ADDRESS);
    P("or.b64", word, word, mg_o_imm(head_of(MG_RECORD_SIDE, items[0].site)));
    IF(w->g.lead, "st.global.u64", AT(dst, 0), word);
    P("mov.u64", word, mg_o_imm(n));
    for (uint32_t i = 1, k = 1; i < n; i++) {
        const uint32_t shift = i < 3 ? 4 + 30 * (i - 1) : 30 * ((i - 3) % 2);
        P("shr.u32", low, s->far[i], 2);
        P("cvt.u64.u32", part, low);
        if (shift) P("shl.b64", part, part, mg_o_imm(shift));
        if (i >= 3 && !shift)
            P("mov.u64", word, part);
        else
            P("or.b64", word, word, part);
        if (i + 1 == n || (i + 1 >= 3 && (i + 1 - 3) % 2 == 0)) IF(w->g.lead, "st.global.u64", AT(dst, 8 * k++), word);
    }
}

void mg_channel_group(struct mg_code_at *at, const struct mg_channel_item *items, uint32_t n, mg_id rounds)
{
    uint32_t bytes = rounds ? 16 : 8, addresses = 0;
    for (uint32_t i = 0; i < n; i++) {
        note_width(at, items[i].site, items[i].width);
        bytes += items[i].stride ? 16 : 8;
        addresses += items[i].address != 0;
    }
    if (n > MG_CHANNEL_MOST_GROUP || !mg_channel_is_whole(at->p)) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "a record of %u places", (unsigned)n);
        return;
    }
    struct write w = begin(at);
    mg_id none = mg_code_label(at), p = tp(at), head = t64(at), words = t32(at), to = t64(at);
    w.step = t32(at);
    w.unlike = rounds != 0;
    P("mov.u32", w.step, mg_o_imm(n));
    if (rounds) P("mul.lo.u32", w.step, rounds, mg_o_imm(n));
    P("mov.u32", w.need, mg_o_imm(bytes));
    const struct forms forms = code_items(at, &w, items, n);
    const bool may_side = !rounds && n > 1 && addresses == n && n <= MG_CHANNEL_MOST_SIDE;
    struct side_by_side side = {0};
    if (may_side) side = find_side(at, &w, items, n, forms.at[0]);
    mg_id dst = make_room(at, &w);
    P("setp.eq.u64", p, dst, 0);
    IF(p, "bra", mg_o_label(none));
    if (may_side) {
        mg_id other = mg_code_label(at);
        UNLESS(side.holds, "bra", mg_o_label(other));
        write_side(at, &w, items, n, &side, dst);
        P("bra", mg_o_label(none));
        mg_code_place(at, other);
    }
    P("shr.u32", words, w.need, 3);
    P("sub.u32", words, words, 1);
    pack_halves(at, head, w.g.mask, words);
    P("or.b64", head, head, mg_o_imm(head_of(MG_RECORD_GROUP, rounds != 0)));
    IF(w.g.lead, "st.global.u64", AT(dst, 0), head);
    P("add.u64", to, dst, mg_o_imm(rounds ? 16 : 8));
    if (rounds) {
        P("cvt.u64.u32", head, rounds);
        IF(w.g.lead, "st.global.u64", AT(dst, 8), head);
    }
    write_items(at, &w, items, n, &forms, to);
    mg_code_place(at, none);
    end(at, &w, dst);
}

/* Where a record of n words, of each lane or of all, goes; its head is written. mine, head: to use. */
static mg_id begin_words(struct mg_code_at *at, const struct write *w, int64_t kind_and_site, uint32_t n, mg_id mine,
                         mg_id head)
{
    mg_id dst = make_room(at, w);
    P("setp.ne.u64", mine, dst, 0);
    P("and.pred", mine, mine, w->g.lead);
    P("cvt.u64.u32", head, w->g.mask);
    P("or.b64", head, head, kind_and_site | (int64_t)n << 32);
    IF(mine, "st.global.u64", AT(dst, 0), head);
    return dst;
}

void mg_channel_lanes(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n)
{
    if (!n || n > MG_CHANNEL_MOST_WORDS) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "a record of %u words a lane", (unsigned)n);
        return;
    }
    note_width(at, site, 0);
    struct write w = begin(at);
    mg_id need = w.need, mine = tp(at), head = t64(at), tail = mg_code_label(at), each = t64(at), p = tp(at);
    P("mad.lo.u32", need, w.n, mg_o_imm(8 * (int64_t)n), 8);
    mg_id dst = begin_words(at, &w, head_of(MG_RECORD_LANES, site), n, mine, head);
    P("setp.eq.u64", p, dst, 0);
    IF(p, "bra", mg_o_label(tail));
    P("mad.wide.u32", each, w.rank, mg_o_imm(8 * (int64_t)n), dst);
    for (uint32_t i = 0; i < n; i++) P("st.global.u64", AT(each, 8 + 8 * (int64_t)i), words[i]);
    P("bar.warp.sync", w.g.mask); /* who closes the segment speaks for all */
    mg_code_place(at, tail);
    end(at, &w, dst);
}

void mg_channel_once(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n)
{
    if (n > MG_CHANNEL_MOST_WORDS) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "a record of %u words", (unsigned)n);
        return;
    }
    note_width(at, site, 0);
    struct write w = begin(at);
    mg_id need = w.need, mine = tp(at), head = t64(at);
    P("mov.u32", need, mg_o_imm(8 + 8 * (int64_t)n));
    mg_id dst = begin_words(at, &w, head_of(MG_RECORD_ONCE, site), n, mine, head);
    for (uint32_t i = 0; i < n; i++) IF(mine, "st.global.u64", AT(dst, 8 + 8 * (int64_t)i), words[i]);
    end(at, &w, dst);
}

/* ---- ways out ---------------------------------------------------------------------------------------------------- */

/* Lanes that go send what is on the ring's list, as far as they are enough; the host reads what stays there. */
static void send_rest(struct mg_code_at *at, mg_id mask)
{
    mg_id none = mg_code_label(at), below = t32(at), n = t32(at), p = tp(at);
    const struct group g = {.mask = mask, .leader = t32(at), .lead = tp(at)};
    P("popc.b32", n, mask);
    P("setp.lt.u32", p, n, LINE_LANES);
    IF(p, "bra", mg_o_label(none));
    P("brev.b32", g.leader, mask);
    P("clz.b32", g.leader, g.leader);
    P("and.b32", below, mg_value_lt(at), mask);
    P("setp.eq.u32", g.lead, below, 0);
    P("mov.u32", n, 0);
    IF(g.lead, "ld.volatile.global.u32", n, AT(ring_of(at), RING(full) + 4));
    P("setp.ne.u32", p, n, 0);
    p = any_of(at, &g, p);
    UNLESS(p, "bra", mg_o_label(none));
    send_pages(at, &g);
    mg_code_place(at, none);
}

/* Lanes go where they write no more through these registers: the lowest of those that came in closes the warp's
 * segment. */
static void leave(struct mg_code_at *at, void *leaves_kernel)
{
    const struct mg_channel_func *f = &at->p->channel[at->func_ix];
    if (!f->segment) return;
    const struct mg_code_guard guard = *mg_at_guard(at);
    mg_id out = mg_code_label(at), gone = mg_code_label(at), p = tp(at), any, below = t32(at);
    struct group g = {.mask = mg_value_own(at), .leader = t32(at), .lead = tp(at), .full = t32(at)};
    if (guard.pred) mg_code_emit(at, guard.pred, !guard.is_not, MG_INST("bra", mg_o_label(out)));
    P("and.b32", below, mg_value_lt(at), f->all);
    P("setp.eq.u32", g.lead, below, 0);
    P("setp.ne.and.u32", g.lead, f->pos, 0, g.lead);
    any = any_of(at, &g, g.lead);
    UNLESS(any, "bra", mg_o_label(gone));
    P("brev.b32", g.leader, f->all);
    P("clz.b32", g.leader, g.leader);
    mg_id segment = from_leader(at, &g, f->segment), pos = low_from_leader(at, &g, f->pos);
    close_segment(at, &g, segment, pos);
    mg_code_place(at, gone);
    P("setp.ne.u32", p, g.mask, f->all);
    P("mov.u32", f->pos, 0);
    IF(p, "or.b32", f->next, f->next, UNLIKE); /* others remember it */
    if (leaves_kernel) send_rest(at, g.mask);
    mg_code_place(at, out);
}

void mg_channel_end(struct mg_patch *p)
{
    const struct mg_sites *s = p->all->sites;
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    for (uint32_t f = 0; f < s->n_funcs; f++)
        if (f && p->channel[f].segment) mg_at_exits(p, f, leave, NULL);
    mg_at_exits(p, 0, leave, p); /* `exit` in any function, too */
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_node *node = &p->all->m->nodes.at[insts[i].node];
        struct mg_call call;
        if (!p->channel[insts[i].func_ix].segment || mg_node_form(p->all->m, node)->op != MG_OP_call) continue;
        mg_call_read(p->all->m, insts[i].node, &call);
        bool calls_ours = call.indirect || (call.func && mg_func_body(p->all->m, call.func));
        if (calls_ours) leave(mg_at_before(p, insts[i].node), NULL); /* the callee writes, or ends the lane */
    }
}
