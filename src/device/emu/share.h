/* Which CTAs of a launch a worker begins next.
 *
 * Where there is compiled code, each worker begins every launch with the same part of the grid, so that its core's
 * caches hold what that part touches from the launch before; then it helps where most is left. In every part CTAs begin
 * in order. Once a CTA had to be suspended because it only waits, the kernel's CTAs begin in the order of the grid. */
#ifndef MG_DEVICE_EMU_SHARE_H
#define MG_DEVICE_EMU_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct emu_launch;
struct emu_share {
    uint64_t first, at, end, size, least, since;
}; /* CTAs that a worker took at once; how many it would take, and at least; when it took them */

MG_MUST_CHECK bool emu_spans_init(struct emu_launch *l, bool one); /* one: in the order of the grid from the start */
void emu_spans_release(struct emu_launch *l);
bool emu_spans_left(const struct emu_launch *l);
uint64_t emu_spans_lowest(const struct emu_launch *l); /* the first that has not begun; UINT64_MAX: all have */
uint32_t emu_span_claim(struct emu_launch *l,
                        uint32_t like); /* the part a worker begins with: that one, or the next that nobody has */
bool emu_share_take(struct emu_launch *l, uint32_t home, struct emu_share *s); /* false: none is left */

#endif
