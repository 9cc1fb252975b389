/* A device's %globaltimer on the host's clock, from launches alone: a kernel begins after its call began and has ended
 * when the host knows it. Each launch bounds the distance of the clocks from both sides; the closest bounds count, and
 * lose 111 ns with every millisecond, for clocks drift by up to 100 ppm against one another. */
#ifndef MG_INJECT_TWIN_CLOCK_H
#define MG_INJECT_TWIN_CLOCK_H

#include "base/compiler.h"

struct mg_twin_clock {        /* zeroed: nothing is known */
    int64_t low, high;        /* host less device */
    uint64_t low_at, high_at; /* device time of each */
    bool has_low, has_high;
    uint64_t tick_ns; /* greatest step by which all readings so far can be told */
};
/* A kernel that began and ended at these readings of the device. called_ns: host time before which it did not begin, 0:
 * not known; seen_ns: by which it had ended. */
void mg_twin_clock_add(struct mg_twin_clock *c, uint64_t begin, uint64_t end, uint64_t called_ns, uint64_t seen_ns);
/* Host less device at a reading; uncertainty_ns: how far off it may be, the clock's tick included. */
int64_t mg_twin_clock_offset(const struct mg_twin_clock *c, uint64_t at, uint64_t *uncertainty_ns);

#endif
