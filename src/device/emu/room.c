/* Blocks by their size, of the sizes given back last (room.h). */
#include "device/emu/room.h"

#include <stdlib.h>

#define MOST_BYTES (8u << 20) /* that lie idle */

struct emu_block {
    struct emu_block *next;
    uint64_t was;
};

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

void *emu_room_take(struct emu_room *r, size_t bytes)
{
    bytes = rounded(bytes);
    for (unsigned k = 0; k < EMU_ROOM_SIZES; k++) {
        struct emu_block *b = r->of[k].first;
        if (r->of[k].each != bytes || !b) continue;
        r->of[k].first = b->next;
        r->bytes -= bytes;
        return b;
    }
    struct emu_block *b = aligned_alloc(64, bytes);
    if (b) b->was = 0;
    return b;
}

uint64_t emu_room_was(const void *block)
{
    return ((const struct emu_block *)block)->was;
}

static void empty(struct emu_room *r, unsigned k)
{
    for (struct emu_block *b; (b = r->of[k].first);) {
        r->of[k].first = b->next;
        r->bytes -= r->of[k].each;
        free(b);
    }
    r->of[k].each = 0;
}

void emu_room_give(struct emu_room *r, void *block, size_t bytes, uint64_t was)
{
    unsigned k = 0;
    struct emu_block *b = block;
    bytes = rounded(bytes);
    if (!b) return;
    while (k < EMU_ROOM_SIZES && r->of[k].each != bytes) k++;
    if (k == EMU_ROOM_SIZES) empty(r, k = r->turn++ % EMU_ROOM_SIZES);
    for (unsigned i = 0; i < EMU_ROOM_SIZES && r->bytes + bytes > MOST_BYTES; i++)
        if (i != k) empty(r, i);
    if (r->bytes + bytes > MOST_BYTES) {
        free(b);
        return;
    }
    r->of[k].each = bytes;
    b->next = r->of[k].first;
    b->was = was;
    r->of[k].first = b;
    r->bytes += bytes;
}

void emu_room_release(struct emu_room *r)
{
    for (unsigned k = 0; k < EMU_ROOM_SIZES; k++) empty(r, k);
}
