/* Channels, the host's side: reading segments. See channel.h for their words. Every length is checked: what
 * a kernel of the application has overwritten is told, not followed. */
#include "record/channel.h"

#include <string.h>

/* The compiler's own is a call where the processor need not have the instruction. */
static uint32_t count(uint32_t mask)
{
    mask -= mask >> 1 & 0x55555555;
    mask = (mask & 0x33333333) + (mask >> 2 & 0x33333333);
    return ((mask + (mask >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

/* Words behind the record's first, n its lanes; UINT32_MAX: no such record. */
static uint32_t words_behind(uint64_t head, uint32_t n, bool has_second)
{
    uint32_t k = (uint32_t)(head >> 32 & 0xffff);
    switch (head >> 60) {
    case MG_RECORD_FULL:
        return 0;
    case MG_RECORD_UNIT:
    case MG_RECORD_SAME:
        return 1;
    case MG_RECORD_NEAR:
        return has_second ? 1 + (n + 1) / 2 : UINT32_MAX;
    case MG_RECORD_FAR:
        return has_second ? 1 + n : UINT32_MAX;
    case MG_RECORD_ROWS:
        return 2;
    case MG_RECORD_GROUP:
        return k;
    case MG_RECORD_SIDE:
        return has_second ? 1 : UINT32_MAX; /* and more, as that word says */
    case MG_RECORD_LANES:
        return k && k <= MG_CHANNEL_MOST_WORDS ? k * n : UINT32_MAX;
    case MG_RECORD_ONCE:
        return k <= MG_CHANNEL_MOST_WORDS + 1 ? k : UINT32_MAX; /* in a frame the clock stands in front of the values */
    default:
        return UINT32_MAX;
    }
}

/* The address of a lane of a record in rows. */
static uint64_t in_rows(const struct mg_record *r, uint32_t lane)
{
    uint32_t first = (uint32_t)__builtin_ctz(r->mask), bits = (uint32_t)(r->words[0] & 15), within = (1u << bits) - 1;
    int64_t pitch = (int64_t)r->words[0] >> 32, width = r->words[0] >> 4 & 1 ? (int64_t)r->width : 0;
    return r->first + (uint64_t)(pitch * ((int64_t)(lane >> bits) - (int64_t)(first >> bits)) +
                                 width * ((int64_t)(lane & within) - (int64_t)(first & within)));
}

void mg_record_addresses(const struct mg_record *r, uint64_t address[32])
{
    uint32_t rank = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(r->mask >> lane & 1)) continue;
        int32_t near;
        switch (r->kind) {
        case MG_RECORD_SAME:
            address[lane] = r->first;
            break;
        case MG_RECORD_NEAR:
            memcpy(&near, (const char *)r->words + 4 * (size_t)rank, sizeof near);
            address[lane] = r->first + (uint64_t)(int64_t)near;
            break;
        case MG_RECORD_FAR:
            address[lane] = r->words[rank];
            break;
        case MG_RECORD_ROWS:
            address[lane] = in_rows(r, lane);
            break;
        default:
            address[lane] = r->first + (uint64_t)rank * r->width;
            break;
        }
        rank++;
    }
}

struct reader {
    mg_channel_widths_fn widths;
    void *widths_user;
    void (*fn)(void *user, const struct mg_record *r);
    void *user;
    bool knows; /* the launch: who is asked may have to lock, and most segments are of the same */
    uint32_t launch, n_sites;
    const uint8_t *width;
};

/* The words of a group at w, n of them: its records, each of all rounds. False: they are damaged. */
static bool read_group(const struct reader *c, struct mg_record *r, const uint64_t *w, uint32_t n, bool loop)
{
    uint32_t starts[MG_CHANNEL_MOST_GROUP], i = loop, items = 0;
    const uint32_t number = r->number;
    if (n < i) return false;
    r->rounds = loop ? (uint32_t)w[0] : 1;
    for (; i < n; items++) {
        uint64_t kind = w[i] >> MG_RECORD_KIND_SHIFT;
        bool access = mg_record_is_access((enum mg_record_kind)kind);
        uint32_t behind = access ? words_behind(w[i], r->n_lanes, true) : 1;
        if (items == MG_CHANNEL_MOST_GROUP || behind == UINT32_MAX || (!access && kind != MG_RECORD_ONCE)) return false;
        starts[items] = i;
        i += 1 + (access && loop) + (kind == MG_RECORD_FULL ? 0 : behind - 1);
    }
    if (i != n || !r->rounds) return false;
    r->items = items;
    for (r->item = 0; r->item < items; r->item++, r->number++) {
        const uint64_t *at = w + starts[r->item];
        r->kind = (enum mg_record_kind)(*at >> MG_RECORD_KIND_SHIFT);
        bool access = mg_record_is_access(r->kind);
        r->site = (uint32_t)(*at >> MG_RECORD_SITE_SHIFT & MG_CHANNEL_MOST_SITES);
        if (r->site >= c->n_sites) return false;
        r->first = access ? *at & MG_RECORD_ADDRESS : 0;
        r->width = c->width[r->site];
        r->stride = access && loop ? (int64_t)at[1] : 0;
        r->words = at + 1 + (access && loop);
        c->fn(c->user, r);
    }
    r->number = number + items * r->rounds;
    r->rounds = 1;
    return true;
}

/* A group of accesses that lie side by side, from words w on, of which n are left; how many words, 0: it is damaged. */
static uint32_t read_side(const struct reader *c, struct mg_record *r, uint64_t head, const uint64_t *w, uint32_t n)
{
    const uint32_t items = (uint32_t)(w[0] & 15), words = items > 3 ? 1 + (items - 2) / 2 : 1;
    if (items < 2 || items > MG_CHANNEL_MOST_SIDE || words > n || r->site + items > c->n_sites) return 0;
    const uint64_t first = head & MG_RECORD_ADDRESS;
    r->kind = MG_RECORD_FULL;
    r->items = items;
    for (r->item = 0; r->item < items; r->item++, r->site++, r->number++) {
        const uint32_t i = r->item;
        uint64_t far = !i ? 0 : i < 3 ? w[0] >> (4 + 30 * (i - 1)) : w[(i - 1) / 2] >> 30 * ((i - 3) % 2);
        r->first = first + (uint64_t)((int64_t)(far << 34) >> 32);
        r->width = c->width[r->site];
        c->fn(c->user, r);
    }
    return words;
}

/* The records behind a segment's two words, up to word n. */
static bool read_records(struct reader *c, const uint64_t *segment, uint32_t n)
{
    struct mg_record r = {.launch = (uint32_t)segment[0],
                          .warp = (uint32_t)(segment[0] >> MG_SEGMENT_WARP_SHIFT & 31),
                          .cta = segment[1] & ((1ull << MG_SEGMENT_CTA_BITS) - 1),
                          .number = (uint32_t)(segment[1] >> MG_SEGMENT_CTA_BITS),
                          .rounds = 1};
    if (!c->knows || c->launch != r.launch) {
        c->knows = true;
        c->launch = r.launch;
        c->width = c->widths(c->widths_user, r.launch, &c->n_sites);
    }
    const uint8_t *width = c->width;
    for (uint32_t i = MG_CHANNEL_SEGMENT_HEAD / 8; i < n;) {
        uint64_t head = segment[i];
        bool has_second = i + 1 < n;
        r.kind = (enum mg_record_kind)(head >> MG_RECORD_KIND_SHIFT);
        bool access = mg_record_is_access(r.kind);
        r.mask = r.kind == MG_RECORD_FULL || r.kind == MG_RECORD_SIDE ? UINT32_MAX
                 : !access                                            ? (uint32_t)head
                 : has_second                                         ? (uint32_t)segment[i + 1]
                                                                      : 0;
        r.n_lanes = count(r.mask);
        uint32_t behind = words_behind(head, r.n_lanes, has_second);
        if (behind == UINT32_MAX || i + 1 + behind > n || !width) return false;
        const uint64_t *w = segment + i + 1;
        i += 1 + behind;
        r.site = (uint32_t)(head >> MG_RECORD_SITE_SHIFT & MG_CHANNEL_MOST_SITES);
        r.n_words = 0;
        if (r.kind == MG_RECORD_GROUP) {
            if (!r.mask || !read_group(c, &r, w, behind, r.site & 1)) return false;
            continue;
        }
        if (r.kind == MG_RECORD_SIDE) {
            uint32_t words = read_side(c, &r, head, w, n - (i - behind));
            if (!words) return false;
            i += words - behind;
            continue;
        }
        if (r.site >= c->n_sites) return false;
        r.items = 1;
        r.item = 0;
        if (access) {
            r.first = head & MG_RECORD_ADDRESS;
            r.width = width[r.site];
            r.words = w + 1;
        } else {
            r.n_words = (uint32_t)(head >> MG_RECORD_WORDS_SHIFT & 0xffff);
            r.words = w;
        }
        c->fn(c->user, &r);
        r.number++;
    }
    return true;
}

/* Words of the segment, of n that are left; 0: it is none. */
static uint32_t words_of(uint64_t head, uint32_t n)
{
    uint32_t words = (uint32_t)(head >> MG_SEGMENT_WORDS_SHIFT & 0x3ff);
    return head >> 62 < MG_SEGMENT_OPENED || words > n ? 0 : words;
}
static uint32_t used_of(uint64_t head)
{
    return head >> 62 == MG_SEGMENT_OPENED ? (uint32_t)(head >> MG_SEGMENT_USED_SHIFT & 0x3ff) : 0;
}

bool mg_channel_read(const uint64_t *segments, uint32_t bytes, mg_channel_widths_fn widths, void *widths_user,
                     void (*fn)(void *user, const struct mg_record *r), void *user)
{
    struct reader c = {.widths = widths, .widths_user = widths_user, .fn = fn, .user = user};
    for (uint32_t i = 0, n = bytes / 8, words; i < n; i += words) {
        uint32_t used = used_of(segments[i]);
        words = words_of(segments[i], n - i);
        if (!words || used > words ||
            (used && (used < MG_CHANNEL_SEGMENT_HEAD / 8 || !read_records(&c, segments + i, used))))
            return false;
    }
    return true;
}

uint32_t mg_channel_whole(const uint64_t *segments, uint32_t bytes, uint32_t *open)
{
    /* Memory that a device wrote: who goes from head to head waits at each of them. Fetched in pieces of one size: a
     * loop that ends elsewhere for each segment is a jump that the processor foretells wrongly. */
    enum { AHEAD = 4096 / 8, LINE = 64 / 8, FETCH = 2048 / 8 };
    uint32_t i = 0, n = bytes / 8, fetched = 0;
    for (uint32_t words; i < n && (words = words_of(segments[i], n - i)); i += words) {
        for (; fetched < MG_MIN(i + AHEAD, n); fetched += FETCH)
            for (uint32_t k = 0; k < FETCH; k += LINE) __builtin_prefetch(&segments[fetched + k], 0, 2);
        if (segments[i] >> 62 == MG_SEGMENT_OPENED && !used_of(segments[i])) ++*open;
    }
    return 8 * i;
}

static const uint8_t *widths_of(void *user, uint32_t launch, uint32_t *n)
{
    const struct mg_stream *s = user;
    const struct mg_stream_launch *l = s->launch(s, launch);
    *n = l ? l->n_widths : 0;
    return l ? l->widths : NULL;
}

bool mg_stream_read(const struct mg_stream *s, const uint64_t *segments, uint32_t bytes,
                    void (*fn)(void *user, const struct mg_record *r), void *user)
{
    return mg_channel_read(segments, bytes, widths_of, (void *)(uintptr_t)s, fn, user);
}
