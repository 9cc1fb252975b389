/* Channels, the host's side: reading a segment. See channel.h for its words. Every length is checked: what
 * a kernel of the application has overwritten is told, not followed. */
#include "tool/channel.h"

#include <string.h>

static uint32_t count(uint32_t mask) { return (uint32_t)__builtin_popcount(mask); }

/* Words behind the record's first; UINT32_MAX: no such record. */
static uint32_t words_behind(uint64_t head, uint64_t second, bool has_second)
{
    uint32_t n = count((uint32_t)second), k = (uint32_t)(head >> 32 & 0xffff);
    switch (head >> 60) {
    case MG_RECORD_WARP: return 2;
    case MG_RECORD_NUMBER:
    case MG_RECORD_FULL: return 0;
    case MG_RECORD_UNIT:
    case MG_RECORD_SAME: return 1;
    case MG_RECORD_NEAR: return has_second ? 1 + (n + 1) / 2 : UINT32_MAX;
    case MG_RECORD_FAR: return has_second ? 1 + n : UINT32_MAX;
    case MG_RECORD_LANES: return k && k <= MG_CHANNEL_MOST_WORDS ? k * count((uint32_t)head) : UINT32_MAX;
    case MG_RECORD_ONCE: return k <= MG_CHANNEL_MOST_WORDS ? k : UINT32_MAX;
    default: return UINT32_MAX;
    }
}

void mg_record_addresses(const struct mg_record *r, uint64_t address[32])
{
    uint32_t rank = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(r->mask >> lane & 1)) continue;
        int32_t near;
        switch (r->kind) {
        case MG_RECORD_SAME: address[lane] = r->first; break;
        case MG_RECORD_NEAR:
            memcpy(&near, (const char *)r->words + 4 * (size_t)rank, sizeof near);
            address[lane] = r->first + (uint64_t)(int64_t)near;
            break;
        case MG_RECORD_FAR: address[lane] = r->words[rank]; break;
        default: address[lane] = r->first + (uint64_t)rank * r->width; break;
        }
        rank++;
    }
}

bool mg_channel_read(const uint64_t *segment, uint32_t bytes, mg_channel_widths_fn widths, void *widths_user,
                     void (*fn)(void *user, const struct mg_record *r), void *user)
{
    struct mg_record r = {.n_words = 0};
    const uint8_t *width = NULL;
    uint32_t n_sites = 0, n = MG_MIN(bytes, (uint32_t)MG_CHANNEL_SEGMENT) / 8;
    for (uint32_t i = 2; i < n;) {
        uint64_t head = segment[i];
        uint32_t behind = words_behind(head, i + 1 < n ? segment[i + 1] : 0, i + 1 < n);
        if (behind == UINT32_MAX || i + 1 + behind > n) return false;
        const uint64_t *w = segment + i + 1;
        i += 1 + behind;
        r.kind = (enum mg_record_kind)(head >> 60);
        if (r.kind == MG_RECORD_WARP) {
            r.launch = (uint32_t)(head >> 16);
            width = widths(widths_user, r.launch, &n_sites);
            r.warp = (uint32_t)(head >> 5 & 0x7ff);
            r.cta = w[0];
            r.number = (uint32_t)w[1];
            continue;
        }
        if (r.kind == MG_RECORD_NUMBER) {
            r.number = (uint32_t)head;
            continue;
        }
        r.site = (uint32_t)(head >> 49 & 0x7ff);
        if (!width || r.site >= n_sites) return false;
        if (r.kind <= MG_RECORD_FAR) {
            r.first = head & 0x1ffffffffffff;
            r.width = width[r.site];
            r.mask = r.kind == MG_RECORD_FULL ? UINT32_MAX : (uint32_t)w[0];
            r.n_words = 0;
            r.words = w + 1;
        } else {
            r.mask = (uint32_t)head;
            r.n_words = (uint32_t)(head >> 32 & 0xffff);
            r.words = w;
        }
        fn(user, &r);
        r.number++;
    }
    return true;
}

static const uint8_t *widths_of(void *user, uint32_t launch, uint32_t *n)
{
    const struct mg_stream *s = user;
    const struct mg_stream_launch *l = s->launch(s, launch);
    *n = l ? l->n_widths : 0;
    return l ? l->widths : NULL;
}

bool mg_stream_read(const struct mg_stream *s, const uint64_t *segment, uint32_t bytes, void (*fn)(void *user, const struct mg_record *r), void *user)
{
    return mg_channel_read(segment, bytes, widths_of, (void *)(uintptr_t)s, fn, user);
}
