/* Channels: records that kernels hand to the host while they run. This file and channel_code.c are the
 * device's side, channel_read.c reads what came; who owns the memory and the threads is inject/channel.c.
 *
 *   lanes of a record ── segment ── page of the multiprocessor ── full ──► done queue ── host ──► free queue ─┐
 *                                        ▲────────────────────────────────────────────────────────────────────┘
 *
 * A page is 64 KiB of a pool. Each ring (one a multiprocessor) has one page at a time: a segment is taken from it by
 * one addition to the ring's word, and who finds the page full gets the next one from the free queue. Every byte
 * taken is committed, by one addition to the page's count, when what is in it is written; the last one puts the page
 * on the ring's list of full ones. Groups that have done their record or leave the kernel send what is there, where
 * they are eight lanes or more (fewer write to the host's memory in pieces too small for the link) or there is much;
 * what stays there the host reads when no kernel runs. They copy the page to the host, where that has a memory of
 * its own, and put it into the done queue: no call to a driver is needed while kernels run, which might wait for
 * them. Entry k of a queue holds k + 1 in its upper half, so neither side asks for the other's index.
 *
 * A segment has one writer at a time: where all lanes that came into the function write (most of the time) it is the
 * warp's, stays open and is filled record by record, by an addition in registers. Where fewer do, the record gets a
 * segment of its own, closed at once, so divergent groups of a warp never meet. All lanes of a group go the same way
 * everywhere: conditions are votes, what only the lowest lane does is predicated, and no lane is left behind. A
 * group knows itself by a mask of each lane's own (mg_value_own): what an assembler takes for equal in all lanes
 * that run together it adds once for all groups that come by at once, and a segment was taken in one size and filled
 * in another.
 *
 * Why nothing blocks for ever: a warp holds one page at most (the one of its open segment, or one that it has just
 * completed), and the pool has more pages than warps can be resident and rings may list, so some page can always be
 * filled, and the host never waits for a kernel. Should it not come to take pages at all, a writer drops its record
 * and counts it after some seconds (or at once, where the user wants that), and from then on nobody waits until all
 * is read.
 *
 * Order: in the order of a ring's pages, and within a page, lie the segments of each warp in the order of their
 * records. An open segment is not continued once some of its warp's lanes wrote elsewhere. Numbers: of a record, one
 * more than the highest that any of its lanes took part in; records of one segment follow each other.
 *
 * Words of a page, 64 bits each: ring 31..0 and which of the ring's pages 63..32; bytes committed 31..0, and while
 * it waits to be sent the next one that does plus 1 63..32; then segments:
 *   63..62 2, 61..52 words that it has, 51..42 words in use (0: still open), 41..37 lane, 36..32 warp in its CTA,
 *     31..0 launch
 *   63..33 number of its first record, 32..0 CTA;    then records
 *   63..62 3, 61..52 words: nothing, up to the page's end
 * and of a record:
 *   63..60 kind, 59..49 site, 48..0 address of the lowest lane (accesses)
 *   FULL     all 32 lanes, each behind the other: 8 bytes
 *   UNIT     the same of the lanes in the mask that follows;  SAME: all at one address; mask follows
 *   NEAR     mask, then a signed 32-bit distance from the lowest lane's address for each lane, padded to 8 bytes
 *   FAR      mask, then an address for each lane
 *   ROWS     mask, then 63..32 the distance from a row of lanes to the next one, signed, 4 lanes side by side in a row
 *            (else all of it at one address), 3..0 lanes of a row as a power of two
 *   LANES    48..32 words a lane, 31..0 mask; then the words, lane by lane
 *   ONCE     48..32 words, 31..0 mask; then the words, given by the lowest lane
 *   GROUP    49 a loop, 48..32 words, 31..0 mask: records of the same lanes one behind the other, each as above but
 *            without a mask. A loop: first a word, how many rounds of them there were; and behind the first word of
 *            each access its stride, what its addresses grow by from one round to the next
 *   SIDE     a group of FULL records, of sites that follow each other: behind the first record 3..0 how many they are,
 *            33..4 and 63..34 how far the second and the third are from the first, in units of 4 bytes, signed; in the
 *            next words 29..0 and 59..30 the same of two more
 */
#ifndef MG_RECORD_CHANNEL_H
#define MG_RECORD_CHANNEL_H

#include "count/counters.h"
#include "patch/patch.h"

enum {
    MG_CHANNEL_PAGE = 1 << 16, /* pages lie at multiples of it */
    MG_CHANNEL_PAGE_HEAD = 16,
    MG_CHANNEL_ROOM = MG_CHANNEL_PAGE - MG_CHANNEL_PAGE_HEAD,
    MG_CHANNEL_SEGMENT_HEAD = 16,
    MG_CHANNEL_OPEN_MOST = 1024, /* bytes of records in a segment that is filled one by one */
    MG_CHANNEL_MOST_SITES = 2047,
    MG_CHANNEL_MOST_WORDS = 8, /* of a lane */
    MG_CHANNEL_LISTED = 8,     /* full pages that a ring may list until groups of few lanes send them, too */
};

#define MG_CHANNEL_PATIENCE_NS     5000000000u
#define MG_CHANNEL_OWN_PATIENCE_NS 60000000000u /* of our own devices, whose threads share processors with readers */
#define MG_CHANNEL_NO_PATIENCE_NS  20000u
/* Words of a ring: a line of memory of its own. */
struct mg_channel_ring {
    uint64_t now;     /* page 63..32 and bytes taken of its room; more than it has: somebody gets the next one */
    uint32_t pages;   /* that it has had */
    uint32_t ticket;  /* its place in the free queue plus 1, of a wait that was given up; 0: none */
    uint64_t dropped; /* records */
    uint64_t
        full; /* pages to be sent: how many 63..32, and the last one that was put there plus 1: the others behind it */
    uint64_t pad[12];
};
_Static_assert(sizeof(struct mg_channel_ring) == 128, "a line of memory");
#define MG_CHANNEL_NO_PAGE ((uint64_t)UINT32_MAX << 32 | MG_CHANNEL_ROOM)

/* The control block, in device memory; then the rings. */
struct mg_channel_control {
    uint64_t pool;       /* page 0 */
    uint64_t free, done; /* the queues, in the host's memory */
    uint64_t
        mirror; /* what to add to an address in the pool for the host's copy of it; 0: the host has the pool itself */
    uint64_t patience_ns;           /* how long to wait before a record is dropped */
    uint32_t queue_mask, ring_mask; /* powers of two, less 1 */
    uint32_t pad[20];
    uint32_t n_taken, n_done; /* entries of the queues that kernels have taken and written */
    uint32_t pad2[30];
};
_Static_assert(sizeof(struct mg_channel_control) == 256, "lines of memory: what is read, and what is added to");
static inline uint64_t mg_channel_ring_at(uint32_t ring)
{
    return sizeof(struct mg_channel_control) + (uint64_t)ring * sizeof(struct mg_channel_ring);
}
/* Entry k of a queue, and whether that is in it. */
static inline uint64_t mg_channel_entry(uint32_t k, uint32_t page)
{
    return (uint64_t)(k + 1) << 32 | page;
}
static inline bool mg_channel_entry_is(uint64_t entry, uint32_t k)
{
    return (uint32_t)(entry >> 32) == k + 1;
}

/* The first word of a segment. */
enum {
    MG_SEGMENT_OPENED = 2,
    MG_SEGMENT_NOTHING = 3,
    MG_SEGMENT_WORDS_SHIFT = 52,
    MG_SEGMENT_USED_SHIFT = 42,
    MG_SEGMENT_LANE_SHIFT = 37,
    MG_SEGMENT_WARP_SHIFT = 32,
    MG_SEGMENT_CTA_BITS = 33
};
/* The first word of a record. */
enum { MG_RECORD_KIND_SHIFT = 60, MG_RECORD_SITE_SHIFT = 49, MG_RECORD_WORDS_SHIFT = 32 };
#define MG_RECORD_ADDRESS (((uint64_t)1 << MG_RECORD_SITE_SHIFT) - 1)

enum mg_record_kind {
    MG_RECORD_NONE,
    MG_RECORD_FULL,
    MG_RECORD_UNIT,
    MG_RECORD_SAME,
    MG_RECORD_NEAR,
    MG_RECORD_FAR,
    MG_RECORD_LANES,
    MG_RECORD_ONCE,
    MG_RECORD_GROUP, /* in pages alone: who reads gets what is in it */
    MG_RECORD_ROWS,
    MG_RECORD_SIDE /* as GROUP */
};
static inline bool mg_record_is_access(enum mg_record_kind k)
{
    return (k >= MG_RECORD_FULL && k <= MG_RECORD_FAR) || k == MG_RECORD_ROWS;
}

/* ---- in a tool ---------------------------------------------------------------------------------------- */

/* In analyze: the kernel gets a channel. Where the user wants samples (mg_tools_opts.channel_every), each n-th
 * record of a warp is written. */
void mg_patch_channel(struct mg_patch *p);
/* Records of the lanes at the spot. site: a number of the tool's own, from 0; MG_CHANNEL_MOST_SITES of them.
 * Where it is that of a site of mg_patch_site, in their order, the reader knows what it was. */
void mg_channel_access(struct mg_code_at *at, uint32_t site,
                       mg_id node); /* addresses of an access of so many bytes a lane */
void mg_channel_lanes(struct mg_code_at *at, uint32_t site, const mg_id *words,
                      uint32_t n); /* b64 registers, each lane its own */
void mg_channel_once(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n);
/* One record for several things that the lanes at the spot have done one behind the other, at most
 * MG_CHANNEL_MOST_GROUP. rounds (b32, the same in all lanes, not 0):
 * they have done all of it so often, and from round to round each address grew by its stride; 0: once. */
enum { MG_CHANNEL_MOST_GROUP = 15, MG_CHANNEL_MOST_SIDE = 8 /* in a record of kind SIDE */ };
struct mg_channel_item {
    uint32_t site, width; /* bytes of a lane's access */
    mg_id address,
        stride; /* b64: each lane's, of the first round; the same in all lanes, with rounds. 0: it has none */
};
void mg_channel_group(struct mg_code_at *at, const struct mg_channel_item *items, uint32_t n, mg_id rounds);
/* How many places there are that write, where a warp comes to each of them once at most; 0, before: more often. */
void mg_channel_expect(struct mg_patch *p, uint32_t places);
bool mg_channel_is_whole(const struct mg_patch *p); /* each record is written: no samples of them */

/* ---- reading -------------------------------------------------------------------------------------------- */

struct mg_record {
    enum mg_record_kind kind; /* what it was written as; accesses: mg_record_is_access */
    uint32_t site, launch, warp, mask, number;
    uint32_t n_lanes; /* in the mask */
    uint64_t cta;
    uint32_t width;        /* accesses: bytes of a lane's */
    uint64_t first;        /* accesses: address of the lowest lane */
    uint32_t n_words;      /* LANES: of a lane, ONCE */
    const uint64_t *words; /* LANES: n_words for each lane in the mask, lowest first; ONCE: n_words */
    /* A record of a loop stands for `rounds`, and is one of `items` in each: its number grows by `items` from round to
     * round, its addresses by `stride`. Else rounds is 1. */
    uint32_t rounds, item, items;
    int64_t stride;
};
/* Accesses: by lane, of lanes in the mask. */
void mg_record_addresses(const struct mg_record *r, uint64_t address[32]);
/* Bytes of a lane's access by site of a launch's kernel, *n of them; NULL: no such launch. */
typedef const uint8_t *(*mg_channel_widths_fn)(void *user, uint32_t launch, uint32_t *n);
/* Reads the segments in so many bytes of a page, those that are closed. False: they are damaged; what came before was
 * given to fn. */
bool mg_channel_read(const uint64_t *segments, uint32_t bytes, mg_channel_widths_fn widths, void *widths_user,
                     void (*fn)(void *user, const struct mg_record *r), void *user);
/* How many of these bytes are segments; *open: those of them that nobody closed. */
uint32_t mg_channel_whole(const uint64_t *segments, uint32_t bytes, uint32_t *open);

/* ---- a tool that reads: tool.stream is called with segments, on several threads at once; what one warp
 * wrote comes in order, to one worker. A worker is called by one thread at a time, not always the same. ------------ */

enum { MG_STREAM_MOST_WORKERS = 64 };

struct mg_record_type;    /* record.h */
struct mg_stream_launch { /* lives until tool.end */
    const char *kernel;
    uint64_t id, replay; /* number of the launch in its process; which run of a graph's node, else 0 */
    struct mg_counter_launch shape;
    const struct mg_layout_site *sites;
    uint32_t n_sites; /* those of mg_patch_site */
    const uint8_t *widths;
    uint32_t n_widths;
    const struct mg_record_type *const *kinds;
    uint32_t n_kinds; /* by site: record.h */
};
struct mg_stream {
    uint32_t worker, n_workers; /* what a tool keeps by worker nobody else is at */
    uint32_t sm;                /* multiprocessor that wrote these segments */
    const struct mg_stream_launch *(*launch)(const struct mg_stream *s,
                                             uint32_t number); /* of a record; NULL: none such */
};
/* The records of segments that tool.stream got. */
bool mg_stream_read(const struct mg_stream *s, const uint64_t *segments, uint32_t bytes,
                    void (*fn)(void *user, const struct mg_record *r), void *user);

#endif
