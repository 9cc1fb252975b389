/* Channels: records that kernels hand to the host while they run. This file and channel_code.c are the
 * device's side, channel_read.c reads what came; who owns the memory and the threads is inject/channel.c.
 *
 *   lanes of a warp ── lowest active lane ── its segment (4 KiB) ── full ──► chunk of a ring ── full ──► host
 *
 * A segment belongs to one lane: the one that leads when a record is written. Divergent groups of a warp
 * have different leaders, hence different segments, and never touch each other's. A lane that leaves (or
 * calls a function) puts its open segment into a stack of its multiprocessor's ring, where the next one takes it up.
 * Segments are taken from a ring by one compare-and-swap; a chunk whose segments are all closed is handed
 * to the host by one word in host memory, and given out again by the host, whichever of the ring's chunks it
 * is: an open segment keeps its own chunk from the host, no other.
 *
 * Why nothing blocks for ever: the host never waits for the device. A writer that finds no room closes what lies
 * in the ring's stack, one in each round; after MG_CHANNEL_ROUNDS of them (some seconds) it drops its record and counts
 * it, and the others wait only a few rounds from then on, as they do at once where the user wants that. So a lane that holds a segment and itself waits for the
 * writer, in a loop of the program's own (at barriers nobody holds one), can cost records, and that is told, but never the program's progress.
 *
 * Order: what a lane wrote as leader comes in order. Records that lanes took part in carry, implicitly, a sequence number of the warp: one more than the
 * highest that any of the lanes has seen. It is written only where it does not follow from the record before.
 *
 * Words of a segment, 64 bits each: one that says how it stands (mg_channel_used), its position, then records.
 *   63..60 kind
 *   WARP     59..48 0, 47..16 launch, 15..5 warp in its CTA, 4..0 lane; then the CTA, then the number of the next record
 *   NUMBER   31..0 number of the next record
 *   others   59..49 site, 48..0 address of the lowest lane (accesses)
 *   FULL     all 32 lanes, each behind the other: 8 bytes
 *   UNIT     the same of the lanes in the mask that follows;  SAME: all at one address; mask follows
 *   NEAR     mask, then a signed 32-bit distance from the lowest lane's address for each lane, padded to 8 bytes
 *   FAR      mask, then an address for each lane
 *   LANES    48..32 words a lane, 31..0 mask; then the words, lane by lane
 *   ONCE     48..32 words, 31..0 mask; then the words, given by the lowest lane
 */
#ifndef MG_TOOL_CHANNEL_H
#define MG_TOOL_CHANNEL_H

#include "tool/patch.h"

enum {
    MG_CHANNEL_SEGMENT = 4096,
    MG_CHANNEL_CHUNKS = 8,          /* of a ring at most */
    MG_CHANNEL_HEAD = 128,          /* bytes of the control block in front of its rings' words */
    MG_CHANNEL_RING = 128,          /* bytes of a ring's words */
    MG_CHANNEL_MOST_SITES = 2047,
    MG_CHANNEL_MOST_WORDS = 8,      /* of a lane */
    MG_CHANNEL_ROUNDS = 1 << 22,
    MG_CHANNEL_FEW_ROUNDS = 32,
};

/* Words of a ring. Positions count bytes from 0 on; chunk L of them lies in the ring's memory where
 * map[L % MG_CHANNEL_CHUNKS] says. */
struct mg_channel_ring {
    uint64_t head;                  /* position of the next segment */
    uint64_t limit;                 /* the host's: positions below may be taken */
    uint64_t dropped;               /* records */
    uint64_t stack;                 /* open segments that no lane holds: number of changes, then the first's address >> 12 */
    uint64_t closed[MG_CHANNEL_CHUNKS]; /* by chunk of the memory: bytes of closed segments, from the beginning */
    uint32_t map[MG_CHANNEL_CHUNKS];    /* the host's */
};
_Static_assert(sizeof(struct mg_channel_ring) == MG_CHANNEL_RING, "one line of memory");
/* The control block, in device memory; then the rings' words. */
struct mg_channel_control {
    uint64_t data;                  /* of ring 0; ring r is at data + (r << ring_shift) */
    uint64_t full;                  /* in host memory: by ring and chunk, `closed` when that filled it */
    uint32_t ring_mask, ring_shift, chunk_shift, chunk_mask;
    uint32_t rounds;                /* of waiting, before a record is dropped */
};
static inline uint64_t mg_channel_ring_at(uint32_t ring) { return MG_CHANNEL_HEAD + (uint64_t)ring * MG_CHANNEL_RING; }
/* The first word of a segment: bytes in use when it is closed, 0 while a lane holds it; in a stack: this bit, bytes in use and
 * the next one's address >> 12. */
#define MG_CHANNEL_OPEN (1ull << 63)
#define MG_CHANNEL_USED_SHIFT 40
#define MG_CHANNEL_LINK_BITS 37
#define MG_CHANNEL_LINK ((1ull << MG_CHANNEL_LINK_BITS) - 1)
/* Bytes that hold records now; 0: not known. */
static inline uint32_t mg_channel_used(uint64_t first_word)
{
    return (uint32_t)(first_word & MG_CHANNEL_OPEN ? first_word >> MG_CHANNEL_USED_SHIFT & (MG_CHANNEL_SEGMENT - 1) : first_word <= MG_CHANNEL_SEGMENT ? first_word : 0);
}

enum mg_record_kind { MG_RECORD_NONE, MG_RECORD_WARP, MG_RECORD_NUMBER, MG_RECORD_FULL, MG_RECORD_UNIT, MG_RECORD_SAME, MG_RECORD_NEAR, MG_RECORD_FAR, MG_RECORD_LANES, MG_RECORD_ONCE };

/* ---- in a tool ---------------------------------------------------------------------------------------- */

/* In analyze: the kernel gets a channel. Where the user wants samples (mg_tools_opts.channel_every), each n-th
 * record of a warp is written. */
void mg_patch_channel(struct mg_patch *p);
/* Records of the lanes at the spot. site: a number of the tool's own, from 0; MG_CHANNEL_MOST_SITES of them.
 * Where it is that of a site of mg_patch_site, in their order, the reader knows what it was. */
void mg_channel_access(struct mg_code_at *at, uint32_t site, mg_id node); /* addresses of an access of so many bytes a lane */
void mg_channel_lanes(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n); /* b64 registers, each lane its own */
void mg_channel_once(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n);

/* ---- reading -------------------------------------------------------------------------------------------- */

struct mg_record {
    enum mg_record_kind kind;       /* what it was written as; accesses are FULL to FAR */
    uint32_t site, launch, warp, mask, number;
    uint64_t cta;
    uint32_t width;                 /* accesses: bytes of a lane's */
    uint64_t first;                 /* accesses: address of the lowest lane */
    uint32_t n_words;               /* LANES: of a lane, ONCE */
    const uint64_t *words;          /* LANES: n_words for each lane in the mask, lowest first; ONCE: n_words */
};
/* Accesses: by lane, of lanes in the mask. */
void mg_record_addresses(const struct mg_record *r, uint64_t address[32]);
/* Bytes of a lane's access by site of a launch's kernel, *n of them; NULL: no such launch. */
typedef const uint8_t *(*mg_channel_widths_fn)(void *user, uint32_t launch, uint32_t *n);
/* Reads one segment: `bytes` of it are in use, its first word included. False: it is damaged; what came
 * before was given to fn. */
bool mg_channel_read(const uint64_t *segment, uint32_t bytes, mg_channel_widths_fn widths, void *widths_user,
                     void (*fn)(void *user, const struct mg_record *r), void *user);

/* ---- a tool that reads: tool.stream is called with each segment, on several threads at once; what one warp
 * wrote comes in order, on one thread. ---------------------------------------------------------------------- */

struct mg_stream_launch { /* lives until tool.end */
    const char *kernel;
    uint64_t id;                    /* number of the launch in its process */
    struct mg_counter_launch shape;
    const struct mg_layout_site *sites; uint32_t n_sites; /* those of mg_patch_site */
    const uint8_t *widths; uint32_t n_widths;
};
struct mg_stream {
    uint32_t worker, n_workers;     /* which thread of the reader's */
    const struct mg_stream_launch *(*launch)(const struct mg_stream *s, uint32_t number); /* of a record; NULL: none such */
};
/* The records of a segment that tool.stream got. */
bool mg_stream_read(const struct mg_stream *s, const uint64_t *segment, uint32_t bytes, void (*fn)(void *user, const struct mg_record *r), void *user);

#endif
