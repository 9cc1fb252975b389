/* Reuse distances: how many other lines were accessed since a line's last access. A fully associative cache with LRU
 * replacement of more lines than that still holds it: one pass answers for all sizes.
 *
 * Lines have four sectors of 32 bytes that are fetched alone. A sector is there if the line stayed since the sector's
 * own last access: its distance is the largest one that the line had since then. */
#ifndef MG_STUDY_REUSE_H
#define MG_STUDY_REUSE_H

#include "base/map.h"
#include "base/vec.h"

enum { MG_REUSE_SECTORS = 4 };
#define MG_REUSE_FIRST UINT32_MAX       /* never accessed before */
#define MG_REUSE_LOST  (UINT32_MAX - 1) /* accessed before, and invalid since */

struct mg_reuse_line {
    uint64_t number;
    uint32_t time, epoch, most[MG_REUSE_SECTORS];
};
struct mg_reuse {
    struct mg_map at; /* line number to its index */
    MG_VEC(struct mg_reuse_line) lines;
    uint32_t *tree;  /* Fenwick tree over times: 1 where a line's last access stands */
    uint32_t *owner; /* by time: index of that line + 1 */
    uint32_t cap, now;
    uint32_t epoch;             /* how often all lines became invalid */
    uint32_t *direct, n_direct; /* by line number, in place of `at`: index + 1; see mg_reuse_reset_numbered */
};
void mg_reuse_release(struct mg_reuse *r);
void mg_reuse_reset(struct mg_reuse *r); /* empty, keeps memory */
/* Empty, for lines whose numbers are all below n: no search for them. */
void mg_reuse_reset_numbered(struct mg_reuse *r, uint32_t n);
/* No line is valid any more: sectors accessed so far are lost until they are accessed anew. */
void mg_reuse_invalidate(struct mg_reuse *r);
/* One access to a line: the distance of each sector in the mask. Returns the line's own distance. */
uint32_t mg_reuse_access(struct mg_reuse *r, uint64_t line, unsigned sectors, uint32_t distance[MG_REUSE_SECTORS]);
/* The line accessed last: how many others were accessed for the first time before it was. */
static inline uint32_t mg_reuse_newest(const struct mg_reuse *r)
{
    return r->owner[r->now - 1] - 1;
}

#endif
