/* How accesses of warps are stored in a trace: the one rule, both ways. A pack is a row of items, 4-byte words:
 *
 *   WARP     kind 3, warp 5, far 1, distance of the CTA from the one before 23, signed; number 32; far: the CTA 64
 *   BASE     kind 3, 29 and 32 bits of an address: what the next distance counts from
 *   RUN      kind 3, site 11, stride 8, first lane 5, lanes - 1 5; distance 32            adjacent lanes, one
 *            stride
 *   MASKED   the same, and a mask 32                                                      any lanes, one stride
 *   STRIDED  the same, and the stride 32, in bytes
 *   LIST     RUN with the unit in the place of the stride; then for each lane but the first its distance from that
 *   SPARSE   LIST, and a mask 32 in front of the distances
 *   rows     LIST or SPARSE with one distance: that of a row of 2, 4, 8 or 16 lanes from the row before, in bytes;
 * within a row the stride is 0 or 1 element. Units from 4 on: which (CTAs whose rows are shorter than a warp)
 *
 *   LOOP     kind 3, accesses 29; rounds 32; of each access its stride 64; then the items of these accesses, with BASE
 *            in front where needed: what a warp does in the first round, in order. In the next ones it does the same,
 * each address larger by the access's stride, bytes modulo 2^64; numbers go on. What distances count from after it is
 *            as after the first round. At most MG_PACK_MOST_LOOP accesses a round, 2^16 in all, 2^20 of a pack
 *
 * Strides and distances are signed, in elements (what a lane accesses). The distance is that of the first lane's
 * address from the first lane's of the item before, whatever warp that was of. Units of lists: 16 bits in elements,
 * 32 bits in elements, 32 bits in bytes, 64 bits in bytes; padded to 4 bytes. An item's access has the number behind
 * that of the item before. Sites of 0 bytes (barriers) have no address and leave what distances count from. */
#ifndef MG_TRACE_ACCESS_CODE_H
#define MG_TRACE_ACCESS_CODE_H

#include "base/compiler.h"

enum {
    MG_PACK_MOST_SITES = 2047,
    MG_PACK_MOST_ITEM = 16 + 8 + 12 + 31 * 8, /* bytes that one access takes at most */
    MG_PACK_MOST_LOOP = 16,                   /* accesses of a round */
    MG_PACK_MOST_ROUNDS = 1 << 16,            /* accesses of a loop */
    MG_PACK_MOST_LOOPS = 1 << 20,             /* of all loops of a pack: bounds what a few hostile bytes make */
    MG_PACK_LOOP_ROOM = 16 + 8 + MG_PACK_MOST_LOOP * (8 + MG_PACK_MOST_ITEM)
};

struct mg_packed_access {
    uint64_t cta;
    uint32_t warp, number, site, bytes; /* bytes: of a lane's access, 0: no address */
    uint32_t mask;
    uint64_t address[32]; /* by lane, of those in the mask */
};
struct mg_packer {
    uint8_t *at;
    uint32_t n, room; /* owner: the caller */
    uint64_t before, cta;
    uint32_t warp, next; /* number that follows */
    bool begun;
    struct {
        uint32_t n, added, all, strides;
    } loop; /* that is being written: accesses of a round, of these there, of all rounds; where the strides stand */
};
static inline void mg_packer_init(struct mg_packer *p, void *at, uint32_t room)
{
    *p = (struct mg_packer){.at = (uint8_t *)at, .room = room};
}
/* False: there is no room for it; nothing was added. mask is not 0. */
bool mg_packer_add(struct mg_packer *p, const struct mg_packed_access *a);
/* The same of adjacent lanes whose addresses have one stride, in bytes, which is as many elements as 8 bits hold. */
bool mg_packer_add_run(struct mg_packer *p, const struct mg_packed_access *a, int32_t stride);

/* A loop of n accesses and so many rounds begins: they are added next, as the first round has them, of one warp and
 * numbers that follow each other, each with its stride. False: there is no room. */
bool mg_packer_begin_loop(struct mg_packer *p, const struct mg_packed_access *first, uint32_t n, uint32_t rounds);
void mg_packer_add_to_loop(struct mg_packer *p, const struct mg_packed_access *a, int64_t stride);

struct mg_unpacker {
    const uint8_t *at;
    uint32_t n, i;
    uint64_t before, cta;
    uint32_t warp, next;
    bool begun, damaged;
    struct { /* what is left of the loop that is being read */
        uint32_t n, rounds, round, access, strides /* where they stand */, start;
        uint64_t before; /* at its start */
    } loop;
    uint64_t in_loops; /* accesses of all of them */
};
static inline void mg_unpacker_init(struct mg_unpacker *u, const void *at, uint32_t bytes)
{
    *u = (struct mg_unpacker){.at = (const uint8_t *)at, .n = bytes};
}
/* bytes: of sites 0 to n - 1. False: the end, or the pack is damaged from here on. Addresses of lanes that are not in
 * the mask are 0. */
bool mg_unpacker_next(struct mg_unpacker *u, const uint32_t *bytes, uint32_t n, struct mg_packed_access *out);

#endif
