/* Extents of address space: balanced trees (treaps) by key, and what is free of a range, by address (to join
 * neighbours) and by size (best fit). Nothing is locked: mem.c does that. */
#ifndef MG_DEVICE_EXTENTS_H
#define MG_DEVICE_EXTENTS_H

#include "device/mem.h"

#define MG_EXTENT_GRANULE 256u /* extents are multiples of it */

struct mg_extent { /* of one tree; a free extent is in two of them */
    struct mg_extent *child[2];
    uint64_t key, key2;
    uint32_t priority;
    uint32_t zone;         /* live allocations: bytes of red zone before and behind */
    uint64_t span;         /* bytes, a multiple of MG_EXTENT_GRANULE */
    struct mg_alloc alloc; /* live allocations */
};
struct mg_extent *mg_extent_new(uint64_t key, uint64_t key2, uint64_t span); /* NULL: no memory */
struct mg_extent *mg_extent_insert(struct mg_extent *root, struct mg_extent *n);
struct mg_extent *mg_extent_removed(struct mg_extent *root, uint64_t key, uint64_t key2,
                                    struct mg_extent **out);                   /* the root without it */
struct mg_extent *mg_extent_at_or_below(struct mg_extent *root, uint64_t key); /* greatest with key <= key */
struct mg_extent *mg_extent_at_or_above(struct mg_extent *root, uint64_t key,
                                        uint64_t key2); /* smallest with (key, key2) >= given */

struct mg_extents {
    struct mg_extent *by_address, *by_size;
};
bool mg_extent_give(struct mg_extents *x, uint64_t base, uint64_t span);
/* span bytes of which the one `ahead` of the first is aligned; 0: there is no such extent. */
uint64_t mg_extent_take(struct mg_extents *x, uint64_t span, uint64_t align, uint64_t ahead);

#endif
