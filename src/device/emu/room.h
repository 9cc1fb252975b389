/* Memory of CTAs that a worker keeps from one launch to the next. Given back to the C library by a thread of ours it
 * would be unmapped at once, and mapped and cleared again in the next launch: longer than a short one takes. */
#ifndef MG_DEVICE_EMU_ROOM_H
#define MG_DEVICE_EMU_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct emu_block;
enum { EMU_ROOM_SIZES = 4 };
struct emu_room { /* of one worker at a time */
    struct {
        size_t each;
        struct emu_block *first;
    } of[EMU_ROOM_SIZES];
    size_t bytes;
    unsigned turn;
};

void *emu_room_take(struct emu_room *r,
                    size_t bytes);        /* on a cache line's boundary, not cleared; NULL: host memory ran out */
uint64_t emu_room_was(const void *block); /* just taken: what it was when it was given back */
void emu_room_give(struct emu_room *r, void *block, size_t bytes, uint64_t was); /* 0: of no matter */
void emu_room_release(struct emu_room *r);

#endif
