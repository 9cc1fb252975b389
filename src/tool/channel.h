/* Channels: records that kernels hand to the host while they run. This file and channel_code.c are the
 * device's side, channel_read.c reads what came; who owns the memory and the threads is inject/channel.c.
 *
 *   lanes of a warp ── lowest active lane ── its segment (4 KiB) ── full ──► chunk of a ring ── full ──► host
 *
 * A segment belongs to one lane: the one that leads when a record is written. Divergent groups of a warp
 * have different leaders, hence different segments, and never touch each other's. A lane that leaves (or
 * calls a function) puts its open segment into a slot of its multiprocessor, where the next one takes it up.
 * Segments are taken from a ring by one compare-and-swap; a chunk whose segments are all closed is handed
 * to the host by one word in host memory. Where a ring is full the writer waits for the host, or drops the
 * record and counts it: the host never waits for the device, so neither can block the other.
 *
 * Order: records that lanes took part in carry, implicitly, a sequence number of the warp: one more than the
 * highest that any of the lanes has seen. It is written only where it does not follow from the record before.
 *
 * Words of a segment, 64 bits each: bytes in use (0 while open), then records.
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
};

/* The control block, in device memory; then for each ring `head, limit, dropped, unused, closed[8]` (the limit
 * is the host's), then the slots. */
struct mg_channel_control {
    uint64_t data;                  /* of ring 0; ring r is at data + (r << ring_shift) */
    uint64_t full;                  /* in host memory: by ring and chunk, bytes closed in it so far when that filled it */
    uint32_t ring_mask, ring_shift, chunk_shift, chunk_mask;
    uint32_t slot_mask;             /* slots - 1; that of a warp: (multiprocessor * 64 + %warpid) & slot_mask */
    uint32_t drops;                 /* 1: writers that find no room drop their record */
};
static inline uint64_t mg_channel_ring_at(uint32_t ring) { return MG_CHANNEL_HEAD + (uint64_t)ring * MG_CHANNEL_RING; }
static inline uint64_t mg_channel_slots_at(uint32_t n_rings) { return mg_channel_ring_at(n_rings); }

enum mg_record_kind { MG_RECORD_NONE, MG_RECORD_WARP, MG_RECORD_NUMBER, MG_RECORD_FULL, MG_RECORD_UNIT, MG_RECORD_SAME, MG_RECORD_NEAR, MG_RECORD_FAR, MG_RECORD_LANES, MG_RECORD_ONCE };

/* ---- in a tool ---------------------------------------------------------------------------------------- */

/* In analyze: the kernel gets a channel. every: of a warp's records only each n-th is written; 0, 1: all. */
void mg_patch_channel(struct mg_patch *p, uint32_t every);
/* Records of the lanes at the spot. site: a number of the tool's own, from 0; MG_CHANNEL_MOST_SITES of them. */
void mg_channel_access(struct mg_code_at *at, uint32_t site, mg_id node); /* addresses of an access of so many bytes a lane */
void mg_channel_lanes(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n); /* b64 registers, each lane its own */
void mg_channel_once(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n);

/* ---- reading -------------------------------------------------------------------------------------------- */

struct mg_record {
    enum mg_record_kind kind;       /* what it was written as; accesses are FULL to FAR */
    uint32_t site, launch, warp, mask, number;
    uint64_t cta;
    uint32_t n_words;               /* LANES: of a lane, ONCE */
    uint64_t address[32];           /* accesses: by lane; of lanes in the mask */
    const uint64_t *words;          /* LANES: n_words for each lane in the mask, lowest first; ONCE: n_words */
};
/* Reads one segment: `bytes` of it are in use, its first word included. width[site]: bytes of a lane's access
 * (n_sites of them). False: it is damaged; what came before was given to fn. */
bool mg_channel_read(const uint64_t *segment, uint32_t bytes, const uint8_t *width, uint32_t n_sites,
                     void (*fn)(void *user, const struct mg_record *r), void *user);

#endif
