/* Accesses as packs of items: see access_code.h. Every length and number of a pack is checked when it is read. */
#include "trace/access_code.h"

#include <string.h>

enum item { ITEM_LOOP, ITEM_WARP, ITEM_BASE, ITEM_RUN, ITEM_MASKED, ITEM_STRIDED, ITEM_LIST, ITEM_SPARSE };
enum unit { UNIT_ELEMENTS16, UNIT_ELEMENTS32, UNIT_BYTES32, UNIT_BYTES64, UNIT_COUNT };
enum {
    ROWS_FIRST = UNIT_COUNT,
    ROWS_COUNT = 8
}; /* units of rows: of 2 lanes and stride 0, of 2 and stride 1, of 4 ... */
enum { KIND_BITS = 3, SITE_BITS = 11, STRIDE_BITS = 8, LANE_BITS = 5, WARP_BITS = 5, CTA_BITS = 23 };
_Static_assert(KIND_BITS + SITE_BITS + STRIDE_BITS + 2 * LANE_BITS == 32, "the first word of an item");
_Static_assert(KIND_BITS + WARP_BITS + 1 + CTA_BITS == 32, "the first word of WARP");
_Static_assert(MG_PACK_MOST_SITES < 1 << SITE_BITS, "sites");
static const uint8_t unit_bytes[UNIT_COUNT] = {2, 4, 4, 8};

static bool fits(int64_t v, unsigned bits)
{
    return v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1);
}
/* The low bits of a word as a signed number. */
static int32_t signed_of(uint32_t v, unsigned bits)
{
    return (int32_t)(v << (32 - bits)) >> (32 - bits);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void put32(struct mg_packer *p, uint32_t v)
{
    memcpy(p->at + p->n, &v, sizeof v);
    p->n += sizeof v;
}

static void put64(struct mg_packer *p, uint64_t v)
{
    memcpy(p->at + p->n, &v, sizeof v);
    p->n += sizeof v;
}

static void put_warp(struct mg_packer *p, const struct mg_packed_access *a)
{
    int64_t distance = (int64_t)(a->cta - p->cta);
    bool far = !fits(distance, CTA_BITS);
    if (p->begun && a->cta == p->cta && a->warp == p->warp && a->number == p->next) return;
    put32(p, ITEM_WARP | a->warp << KIND_BITS | (uint32_t)far << (KIND_BITS + WARP_BITS) |
                 (far ? 0 : (uint32_t)distance << (KIND_BITS + WARP_BITS + 1)));
    put32(p, a->number);
    if (far) put64(p, a->cta);
    p->begun = true;
    p->cta = a->cta;
    p->warp = a->warp;
}

/* The distance of an address from the one before, in elements; where there is none, the address goes in front. */
static uint32_t distance_to(struct mg_packer *p, uint64_t address, uint32_t bytes)
{
    int64_t distance = (int64_t)(address - p->before), elements = bytes ? distance / (int64_t)bytes : 0;
    if (!bytes) return 0;
    p->before = address;
    if (elements * (int64_t)bytes == distance && fits(elements, 32)) return (uint32_t)elements;
    put32(p, ITEM_BASE | (uint32_t)(address >> 32) << KIND_BITS);
    put32(p, (uint32_t)address);
    return 0;
}

static void put_head(struct mg_packer *p, enum item kind, const struct mg_packed_access *a, uint32_t third,
                     uint32_t first, uint32_t lanes, uint32_t distance)
{
    put32(p, kind | a->site << KIND_BITS | (third & 0xff) << (KIND_BITS + SITE_BITS) |
                 first << (KIND_BITS + SITE_BITS + STRIDE_BITS) | (lanes - 1) << (32 - LANE_BITS));
    put32(p, distance);
    p->next = a->number + 1;
}

struct lanes {
    uint32_t first, n;
    bool adjacent;
};
static struct lanes lanes_of(uint32_t mask)
{
    uint32_t first = (uint32_t)__builtin_ctz(mask), row = mask >> first;
    uint32_t n = 0;
    for (uint32_t m = row; m; m &= m - 1) n++;
    return (struct lanes){first, n, !(row & (row + 1))};
}

/* Have the addresses one stride over the lanes' numbers? It fits 32 bits then. */
static bool stride_of(const struct mg_packed_access *a, const struct lanes *l, int64_t *stride)
{
    uint32_t rest = a->mask & (a->mask - 1), second = rest ? (uint32_t)__builtin_ctz(rest) : l->first;
    int64_t between = (int64_t)(a->address[second] - a->address[l->first]), gap = (int64_t)second - l->first;
    *stride = gap ? between / gap : 0;
    if (*stride * gap != between || !fits(*stride, 32)) return false;
    for (; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (a->address[lane] != a->address[l->first] + (uint64_t)(*stride * (int64_t)(lane - l->first))) return false;
    }
    return true;
}

static enum unit unit_of(const struct mg_packed_access *a, uint64_t first)
{
    bool elements = true, fits16 = true, fits32 = true, fits_bytes = true;
    for (uint32_t m = a->mask; m; m &= m - 1) {
        int64_t d = (int64_t)(a->address[__builtin_ctz(m)] - first), e = d / (int64_t)a->bytes;
        elements &= e * (int64_t)a->bytes == d;
        fits16 &= fits(e, 16);
        fits32 &= fits(e, 32);
        fits_bytes &= fits(d, 32);
    }
    if (elements && fits16) return UNIT_ELEMENTS16;
    if (elements && fits32) return UNIT_ELEMENTS32;
    return fits_bytes ? UNIT_BYTES32 : UNIT_BYTES64;
}

/* Lanes in rows, as a unit of rows has them. */
static uint32_t row_lanes(uint32_t unit)
{
    return 2u << (unit - ROWS_FIRST) / 2;
}
static int64_t row_stride(uint32_t unit, uint32_t bytes)
{
    return (unit - ROWS_FIRST) & 1 ? (int64_t)bytes : 0;
}

/* The address of a lane, counted from the first one's. */
static uint64_t in_rows(uint32_t lane, uint32_t first, uint32_t width, int64_t stride, int64_t pitch)
{
    return (uint64_t)(stride * ((int64_t)(lane % width) - (int64_t)(first % width)) +
                      pitch * (int64_t)(lane / width - first / width));
}

static bool is_in_rows(const struct mg_packed_access *a, uint32_t first, uint32_t unit, int64_t *pitch)
{
    const uint32_t width = row_lanes(unit), rest = a->mask & (a->mask - 1);
    const int64_t stride = row_stride(unit, a->bytes);
    bool known = false;
    *pitch = 0;
    for (uint32_t m = rest; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m), rows = lane / width - first / width;
        uint64_t from = a->address[lane] - a->address[first];
        if (rows && !known) {
            int64_t left = (int64_t)(from - in_rows(lane, first, width, stride, 0));
            *pitch = left / (int64_t)rows;
            known = true;
            if (*pitch * (int64_t)rows != left || !fits(*pitch, 32)) return false;
        }
        if (from != in_rows(lane, first, width, stride, *pitch)) return false;
    }
    return true;
}

static bool put_rows(struct mg_packer *p, const struct mg_packed_access *a, const struct lanes *l)
{
    int64_t pitch;
    for (uint32_t unit = ROWS_FIRST + ROWS_COUNT; unit-- > ROWS_FIRST;) {
        if (!is_in_rows(a, l->first, unit, &pitch)) continue;
        uint32_t distance = distance_to(p, a->address[l->first], a->bytes);
        put_head(p, l->adjacent ? ITEM_LIST : ITEM_SPARSE, a, unit, l->first, l->n, distance);
        if (!l->adjacent) put32(p, a->mask);
        put32(p, (uint32_t)pitch);
        return true;
    }
    return false;
}

static void put_list(struct mg_packer *p, const struct mg_packed_access *a, const struct lanes *l)
{
    if (put_rows(p, a, l)) return;
    const uint64_t first = a->address[l->first];
    enum unit unit = unit_of(a, first);
    uint32_t distance = distance_to(p, first, a->bytes), start;
    put_head(p, l->adjacent ? ITEM_LIST : ITEM_SPARSE, a, unit, l->first, l->n, distance);
    if (!l->adjacent) put32(p, a->mask);
    start = p->n;
    for (uint32_t m = a->mask & (a->mask - 1); m; m &= m - 1) {
        int64_t d = (int64_t)(a->address[__builtin_ctz(m)] - first);
        if (unit == UNIT_ELEMENTS16 || unit == UNIT_ELEMENTS32) d /= (int64_t)a->bytes;
        memcpy(p->at + p->n, &d, unit_bytes[unit]); /* little-endian: the low bytes */
        p->n += unit_bytes[unit];
    }
    while ((p->n - start) % 4) p->at[p->n++] = 0;
}

bool mg_packer_add_run(struct mg_packer *p, const struct mg_packed_access *a, int32_t stride)
{
    if (p->room - p->n < MG_PACK_MOST_ITEM) return false;
    put_warp(p, a);
    struct lanes l = lanes_of(a->mask);
    uint32_t distance = distance_to(p, a->address[l.first], a->bytes);
    put_head(p, ITEM_RUN, a, (uint32_t)(a->bytes ? stride / (int32_t)a->bytes : 0), l.first, l.n, distance);
    return true;
}

bool mg_packer_add(struct mg_packer *p, const struct mg_packed_access *a)
{
    if (p->room - p->n < MG_PACK_MOST_ITEM) return false;
    put_warp(p, a);
    struct lanes l = lanes_of(a->mask);
    int64_t stride = 0;
    if (a->bytes && !stride_of(a, &l, &stride)) {
        put_list(p, a, &l);
        return true;
    }
    int64_t elements = a->bytes ? stride / (int64_t)a->bytes : 0;
    bool small = elements * (int64_t)a->bytes == stride && fits(elements, STRIDE_BITS);
    enum item kind = !small ? ITEM_STRIDED : l.adjacent ? ITEM_RUN : ITEM_MASKED;
    uint32_t distance = distance_to(p, a->address[l.first], a->bytes);
    put_head(p, kind, a, small ? (uint32_t)elements : 0, l.first, l.n, distance);
    if (kind != ITEM_RUN) put32(p, a->mask);
    if (kind == ITEM_STRIDED) put32(p, (uint32_t)stride);
    return true;
}

bool mg_packer_begin_loop(struct mg_packer *p, const struct mg_packed_access *first, uint32_t n, uint32_t rounds)
{
    if (p->room - p->n < MG_PACK_LOOP_ROOM) return false;
    put_warp(p, first);
    p->next = first->number;
    put32(p, ITEM_LOOP | n << KIND_BITS);
    put32(p, rounds);
    p->loop.n = n;
    p->loop.all = n * rounds;
    p->loop.added = 0;
    p->loop.strides = p->n;
    for (uint32_t i = 0; i < n; i++) put64(p, 0);
    return true;
}

void mg_packer_add_to_loop(struct mg_packer *p, const struct mg_packed_access *a, int64_t stride)
{
    memcpy(p->at + p->loop.strides + 8 * (size_t)p->loop.added++, &stride, sizeof stride);
    mg_packer_add(p, a); /* there is room */
    if (p->loop.added == p->loop.n) p->next = a->number + 1 + p->loop.all - p->loop.n;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool has(const struct mg_unpacker *u, uint32_t bytes)
{
    return u->n - u->i >= bytes;
}

static uint32_t get32(struct mg_unpacker *u)
{
    uint32_t v;
    memcpy(&v, u->at + u->i, sizeof v);
    u->i += sizeof v;
    return v;
}

static bool get_warp(struct mg_unpacker *u, uint32_t head)
{
    bool far = head >> (KIND_BITS + WARP_BITS) & 1;
    if (!has(u, far ? 12 : 4)) return false;
    u->warp = head >> KIND_BITS & ((1 << WARP_BITS) - 1);
    u->next = get32(u);
    u->begun = true;
    if (far) {
        memcpy(&u->cta, u->at + u->i, sizeof u->cta);
        u->i += sizeof u->cta;
    } else {
        u->cta += (uint64_t)(int64_t)signed_of(head >> (KIND_BITS + WARP_BITS + 1), CTA_BITS);
    }
    return true;
}

/* Lanes outside of the mask have no address. */
static void keep_lanes(struct mg_packed_access *a)
{
    if (a->mask == UINT32_MAX) return;
    for (uint32_t l = 0; l < 32; l++) a->address[l] &= -(uint64_t)(a->mask >> l & 1);
}

static bool get_rows(struct mg_unpacker *u, struct mg_packed_access *a, uint32_t unit, uint64_t first)
{
    if (unit >= ROWS_FIRST + ROWS_COUNT || !has(u, 4)) return false;
    const int64_t pitch = (int32_t)get32(u), stride = row_stride(unit, a->bytes);
    const uint32_t lane = (uint32_t)__builtin_ctz(a->mask), width = row_lanes(unit);
    uint64_t row = first - in_rows(lane, 0, width, stride, pitch);
    for (uint32_t l = 0; l < 32; l += width, row += (uint64_t)pitch)
        for (uint32_t i = 0; i < width; i += 2) { /* widths are even */
            a->address[l + i] = row + (uint64_t)stride * i;
            a->address[l + i + 1] = row + (uint64_t)stride * (i + 1);
        }
    keep_lanes(a);
    return true;
}

/* The distance at `at`, in bytes. The unit is a constant where this is called. */
static MG_INLINE uint64_t distance_at(const uint8_t *at, enum unit unit, uint32_t bytes)
{
    int64_t d64;
    int32_t d32;
    int16_t d16;
    switch (unit) {
    case UNIT_ELEMENTS16:
        memcpy(&d16, at, sizeof d16);
        return (uint64_t)(d16 * (int64_t)bytes);
    case UNIT_ELEMENTS32:
        memcpy(&d32, at, sizeof d32);
        return (uint64_t)(d32 * (int64_t)bytes);
    case UNIT_BYTES32:
        memcpy(&d32, at, sizeof d32);
        return (uint64_t)(int64_t)d32;
    default:
        memcpy(&d64, at, sizeof d64);
        return (uint64_t)d64;
    }
}

static MG_INLINE void read_list(const uint8_t *at, struct mg_packed_access *a, enum unit unit, uint64_t first)
{
    const uint32_t rest = a->mask & (a->mask - 1), lane = (uint32_t)__builtin_ctz(a->mask), step = unit_bytes[unit];
    if (a->mask >> lane == (uint32_t)(UINT32_MAX >> lane)) { /* all from the first on */
        for (uint32_t l = lane + 1; l < 32; l++, at += step) a->address[l] = first + distance_at(at, unit, a->bytes);
        return;
    }
    for (uint32_t m = rest; m; m &= m - 1, at += step)
        a->address[__builtin_ctz(m)] = first + distance_at(at, unit, a->bytes);
}

static bool get_list(struct mg_unpacker *u, struct mg_packed_access *a, uint32_t unit, uint64_t first)
{
    uint32_t n = 0;
    if (unit >= ROWS_FIRST) return get_rows(u, a, unit, first);
    for (uint32_t m = a->mask & (a->mask - 1); m; m &= m - 1) n++;
    const uint32_t size = (n * unit_bytes[unit] + 3) & ~3u;
    if (!a->bytes || !has(u, size)) return false;
    const uint8_t *at = u->at + u->i;
    if (a->mask != UINT32_MAX) memset(a->address, 0, sizeof a->address);
    a->address[__builtin_ctz(a->mask)] = first;
    switch ((enum unit)unit) {
    case UNIT_ELEMENTS16:
        read_list(at, a, UNIT_ELEMENTS16, first);
        break;
    case UNIT_ELEMENTS32:
        read_list(at, a, UNIT_ELEMENTS32, first);
        break;
    case UNIT_BYTES32:
        read_list(at, a, UNIT_BYTES32, first);
        break;
    default:
        read_list(at, a, UNIT_BYTES64, first);
    }
    u->i += size;
    return true;
}

/* Addresses of `lanes` lanes with one stride, from `lane` on; the others have none. */
static void put_run(struct mg_packed_access *a, uint32_t lane, uint32_t lanes, uint64_t first, int64_t stride)
{
    if (lanes == 32) {
        for (uint32_t l = 0; l < 32; l++, first += (uint64_t)stride) a->address[l] = first;
        return;
    }
    if (lane) memset(a->address, 0, lane * sizeof *a->address);
    for (uint32_t l = lane; l < lane + lanes; l++, first += (uint64_t)stride) a->address[l] = first;
    if (lane + lanes < 32) memset(a->address + lane + lanes, 0, (32 - lane - lanes) * sizeof *a->address);
}

/* The same of any lanes. */
static void put_masked(struct mg_packed_access *a, uint32_t lane, uint64_t first, int64_t stride)
{
    uint64_t at = first - (uint64_t)stride * lane;
    for (uint32_t l = 0; l < 32; l++, at += (uint64_t)stride) a->address[l] = at;
    keep_lanes(a);
}

static bool get_access(struct mg_unpacker *u, uint32_t head, const uint32_t *bytes, uint32_t n_sites,
                       struct mg_packed_access *a)
{
    enum item kind = (enum item)(head & ((1 << KIND_BITS) - 1));
    uint32_t third = head >> (KIND_BITS + SITE_BITS) & 0xff, lane = head >> (KIND_BITS + SITE_BITS + STRIDE_BITS) & 31;
    uint32_t lanes = (head >> (32 - LANE_BITS)) + 1;
    bool masked = kind == ITEM_MASKED || kind == ITEM_STRIDED || kind == ITEM_SPARSE;
    if (!u->begun || !has(u, masked ? 8 : 4)) return false;
    a->cta = u->cta;
    a->warp = u->warp;
    a->number = u->next++;
    a->site = head >> KIND_BITS & MG_PACK_MOST_SITES;
    if (a->site >= n_sites) return false;
    a->bytes = bytes[a->site];
    const int64_t distance = (int32_t)get32(u) * (int64_t)a->bytes;
    if (!masked && lane + lanes > 32) return false;
    a->mask = masked ? get32(u) : (uint32_t)((1ull << lanes) - 1) << lane;
    if (!a->mask || (uint32_t)__builtin_ctz(a->mask) != lane) return false;
    if (!a->bytes) memset(a->address, 0, sizeof a->address);
    if (!a->bytes) return kind == ITEM_RUN || kind == ITEM_MASKED;
    uint64_t first = u->before + (uint64_t)distance;
    int64_t stride = signed_of(third, STRIDE_BITS) * (int64_t)a->bytes;
    u->before = first;
    if (kind == ITEM_RUN) {
        put_run(a, lane, lanes, first, stride);
        return true;
    }
    if (kind == ITEM_LIST || kind == ITEM_SPARSE) return get_list(u, a, third, first);
    if (kind == ITEM_STRIDED) {
        if (!has(u, 4)) return false;
        stride = (int32_t)get32(u);
    }
    put_masked(a, lane, first, stride);
    return true;
}

static bool begin_loop(struct mg_unpacker *u, uint32_t head)
{
    uint64_t n = head >> KIND_BITS, rounds = get32(u);
    if (!u->begun || !n || n > MG_PACK_MOST_LOOP || !rounds || n * rounds > MG_PACK_MOST_ROUNDS ||
        !has(u, 8 * (uint32_t)n))
        return false;
    u->in_loops += n * rounds;
    u->loop.n = (uint32_t)n;
    u->loop.rounds = (uint32_t)rounds;
    u->loop.round = u->loop.access = 0;
    u->loop.strides = u->i;
    u->loop.start = u->i += 8 * (uint32_t)n;
    u->loop.before = u->before;
    return u->in_loops <= MG_PACK_MOST_LOOPS;
}

/* An access of a loop was read, as of its first round. */
static void go_round(struct mg_unpacker *u, struct mg_packed_access *a)
{
    uint64_t stride, on;
    memcpy(&stride, u->at + u->loop.strides + 8 * (size_t)u->loop.access, sizeof stride);
    on = a->bytes ? stride * u->loop.round : 0;
    for (uint32_t l = 0; on && l < 32; l++) a->address[l] += on & -(uint64_t)(a->mask >> l & 1);
    if (++u->loop.access < u->loop.n) return;
    u->loop.access = 0;
    if (++u->loop.round < u->loop.rounds) {
        u->i = u->loop.start;
        u->before = u->loop.before;
    } else {
        u->loop.n = 0;
    }
}

bool mg_unpacker_next(struct mg_unpacker *u, const uint32_t *bytes, uint32_t n, struct mg_packed_access *out)
{
    while (!u->damaged && u->i < u->n) {
        bool ok = has(u, 8);
        uint32_t head = ok ? get32(u) : 0;
        enum item kind = (enum item)(head & ((1 << KIND_BITS) - 1));
        switch (kind) {
        case ITEM_WARP:
            ok = ok && !u->loop.n && get_warp(u, head);
            break;
        case ITEM_BASE:
            if (ok) u->before = (uint64_t)(head >> KIND_BITS) << 32 | get32(u);
            break;
        case ITEM_LOOP:
            ok = ok && !u->loop.n && begin_loop(u, head);
            break;
        default:
            if (ok && get_access(u, head, bytes, n, out)) {
                if (u->loop.n) go_round(u, out);
                return true;
            }
            ok = false;
        }
        u->damaged = !ok;
    }
    u->damaged |= u->loop.n != 0; /* it ends within a round */
    return false;
}
