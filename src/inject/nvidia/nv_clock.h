/* Places moments of a device's clock on the host's clock (CLOCK_MONOTONIC).
 *
 * The driver tells no device time, only the distance of two events, as a float in milliseconds: exact to 15 ns over
 * a quarter of a second, to 62 us over a thousand. So a base event is recorded again and again; its place on the
 * device's clock is the sum of the distances so far, and the host reads its own clock before it records the base and
 * after it sees it complete. A line through the latest of these anchors maps device time to host time. It follows
 * the drift of the two oscillators. A step of the device's clock begins a new line of the same slope.
 *
 *   host     early ───── late        early ───── late          span: end from the nearest base, start = end -
 *            length,
 *   device         base k                  base k + 1                clamped into [call, completion seen]
 *
 * Knows neither events nor the driver: nv_track.c feeds it, tests/unit/test_clock.c simulates ten hours. */
#ifndef MG_INJECT_NVIDIA_NV_CLOCK_H
#define MG_INJECT_NVIDIA_NV_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define MG_CLOCK_ANCHORS       32u
#define MG_CLOCK_RESOLUTION_NS 500u /* of an event, as the driver documents it */

struct mg_clock_anchor {
    double device_ns;
    uint64_t early_ns, late_ns;
};
struct mg_clock {
    struct mg_clock_anchor at[MG_CLOCK_ANCHORS]; /* a ring, of the current line alone */
    uint32_t n, newest;
    double slope;         /* host ns per device ns */
    double slope_span_ns; /* the slope was measured over so long; 0: assumed to be 1 */
    double slope_error;
    double device_ns; /* a point of the line: this device time is host time host_ns + fraction_ns */
    uint64_t host_ns;
    double fraction_ns;
    double error_ns; /* of the line at that point */
    uint32_t steps;  /* of the device's clock, that were seen */
};
struct mg_clock_span {
    uint64_t start_ns, length_ns, uncertainty_ns;
};

/* A base at this device time was recorded after early_ns and seen complete at late_ns. */
void mg_clock_add(struct mg_clock *c, double device_ns, uint64_t early_ns, uint64_t late_ns);
double mg_clock_newest(const struct mg_clock *c); /* device time of the last base; 0: none yet */
/* Is another base due? More often at first, until the slope is known. */
bool mg_clock_is_due(const struct mg_clock *c, uint64_t now_ns);
/* Work that ended from_base_ns after the newest base (before: negative) and took length_ns, both of the device's
 * clock; the host called at call_ns and saw the end at seen_ns. Needs a base. */
struct mg_clock_span mg_clock_place(const struct mg_clock *c, double from_base_ns, double length_ns, uint64_t call_ns,
                                    uint64_t seen_ns);

#endif
