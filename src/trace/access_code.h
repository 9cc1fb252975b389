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
 * Strides and distances are signed, in elements (what a lane accesses). The distance is that of the first lane's
 * address from the first lane's of the item before, whatever warp that was of. Units of lists: 16 bits in
 *   elements, 32
 * bits in elements, 32 bits in bytes, 64 bits in bytes; padded to 4 bytes. An item's access has the number behind
 *   that
 * of the item before. Sites of 0 bytes (barriers) have no address and leave what distances count from. */
#ifndef MG_TRACE_ACCESS_CODE_H
#define MG_TRACE_ACCESS_CODE_H

#include "base/compiler.h"

enum { MG_PACK_MOST_SITES = 2047, MG_PACK_MOST_ITEM = 16 + 8 + 12 + 31 * 8 /* bytes that one access takes at most */ };

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
};
static inline void mg_packer_init(struct mg_packer *p, void *at, uint32_t room)
{
    *p = (struct mg_packer){.at = (uint8_t *)at, .room = room};
}
/* False: there is no room for it; nothing was added. mask is not 0. */
bool mg_packer_add(struct mg_packer *p, const struct mg_packed_access *a);
/* The same of adjacent lanes whose addresses have one stride, in bytes, which is as many elements as 8 bits hold. */
bool mg_packer_add_run(struct mg_packer *p, const struct mg_packed_access *a, int32_t stride);

struct mg_unpacker {
    const uint8_t *at;
    uint32_t n, i;
    uint64_t before, cta;
    uint32_t warp, next;
    bool begun, damaged;
};
static inline void mg_unpacker_init(struct mg_unpacker *u, const void *at, uint32_t bytes)
{
    *u = (struct mg_unpacker){.at = (const uint8_t *)at, .n = bytes};
}
/* bytes: of sites 0 to n - 1. False: the end, or the pack is damaged from here on. Addresses of lanes that are not in
 * the mask are 0. */
bool mg_unpacker_next(struct mg_unpacker *u, const uint32_t *bytes, uint32_t n, struct mg_packed_access *out);

#endif
