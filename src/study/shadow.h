/* The last writers of memory, for one worker's share of the pages (2 MiB of addresses each).
 *
 *   hash by page ── page: 16384 lines of 128 bytes ── old: cells before the launch ── 32 words or 128 bytes
 *                                                 └─ new: cells that the launch wrote, gone when it has ended
 *
 * A line has a cell for each word until something smaller is written or read, then one for each byte. A cell that
 * several units of a launch wrote has a list of them. */
#ifndef MG_STUDY_SHADOW_H
#define MG_STUDY_SHADOW_H

#include "study/comm.h"

enum {
    SHADOW_PAGE_SHIFT = 21,
    SHADOW_LINE_SHIFT = 7,
    SHADOW_LINE = 1 << SHADOW_LINE_SHIFT,
    SHADOW_LINES = 1 << (SHADOW_PAGE_SHIFT - SHADOW_LINE_SHIFT),
    SHADOW_WORDS = SHADOW_LINE / 4,
};
#define SHADOW_LIST 0x80000000u /* in a writer: the rest is an index of the list's first share */

struct share {
    uint64_t stores, atomics;
    uint32_t unit, next;
}; /* of one unit in a cell: executed bytes; next 0: the last */

struct old_cell {    /* before the launch */
    uint32_t writer; /* 0: nobody or the host; unit + 1; SHADOW_LIST */
    uint32_t stores; /* executed bytes, until somebody reads them; 0 in a list */
    uint32_t atomics : 24, width : 7,
        start : 1; /* start: a store began here; width: bytes counted for mark, by start */
    uint32_t mark; /* target that read it last + 1: entity numbers of all steps in one row */
};
struct new_cell {    /* in the launch */
    uint32_t writer; /* unit of the step + 1, 0, or SHADOW_LIST */
    uint32_t stores;
    uint32_t atomics : 24, start : 1;
    uint32_t phase, order; /* of the first write by order, as far as there is one */
    uint16_t warp;         /* that made it */
    uint8_t many_warps, many_ctas, has_store;
};
struct old_line {
    bool fine;
    struct old_cell cells[];
};
struct new_line {
    bool fine;
    struct new_cell cells[];
};
struct shadow_slot {
    struct old_line *old;
    struct new_line *now;
};
struct shadow_page {
    uint64_t number;
    uint8_t *communicates; /* a bit for each byte that was read by a later launch; NULL: none was, or nobody asks */
    struct shadow_slot slots[SHADOW_LINES];
};

struct shadow {
    struct shadow_page **pages; /* hash */
    uint32_t n_pages, cap;
    struct shadow_page *last;
    MG_VEC(uint64_t) written;                    /* addresses of lines with `now` */
    MG_VEC(struct share) old_shares, new_shares; /* index 0 is none */
    uint32_t free_share;                         /* in old_shares */
};
void shadow_release(struct shadow *s);
struct shadow_page *shadow_find(struct shadow *s, uint64_t address); /* NULL: nothing was written there */
struct shadow_page *shadow_page(struct shadow *s, uint64_t address); /* made if it is not there */
static inline struct shadow_slot *shadow_slot(struct shadow_page *p, uint64_t address)
{
    return &p->slots[address >> SHADOW_LINE_SHIFT & (SHADOW_LINES - 1)];
}
struct old_line *shadow_old(struct shadow_slot *slot, bool fine); /* made or divided */
struct new_line *shadow_new(struct shadow *s, struct shadow_slot *slot, uint64_t address, bool fine);
void shadow_divide_old(struct shadow *s, struct shadow_slot *slot);
void shadow_divide_new(struct shadow *s, struct shadow_slot *slot);
/* A cell's list gets one share more, or the share of its newest unit: units come in order. */
void shadow_add_share(struct shadow *s, struct new_cell *c, uint32_t unit, uint64_t stores, uint64_t atomics);
uint32_t shadow_keep_list(struct shadow *s, uint32_t list, uint32_t first_unit); /* new_shares to old_shares */
void shadow_drop_list(struct shadow *s, uint32_t writer);
void shadow_forget_new(struct shadow *s);
void shadow_note_read(struct shadow *s, uint64_t address, uint32_t bytes);
bool shadow_was_read(const struct shadow *s, uint64_t address);
/* Nobody has written these bytes: a copy, a memset, a free. */
void shadow_clear(struct shadow *s, uint64_t address, uint64_t bytes);
/* fn for each cell of these bytes that a unit wrote. */
void shadow_each(struct shadow *s, uint64_t address, uint64_t bytes,
                 void (*fn)(void *user, uint32_t writer, uint32_t bytes), void *user);

#endif
