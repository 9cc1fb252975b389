#include "inject/twin_clock.h"

#define DRIFT      9000 /* one nanosecond in so many: 111 ppm, some more than clocks drift */
#define PICK_UP_NS 4000 /* from the call to the begin of its kernel on an idle GPU, about */

/* A bound as it holds at another time. */
static int64_t aged(uint64_t from, uint64_t to)
{
    return (int64_t)(((to > from ? to - from : from - to) + DRIFT - 1) / DRIFT);
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void mg_twin_clock_add(struct mg_twin_clock *c, uint64_t begin, uint64_t end, uint64_t called_ns, uint64_t seen_ns)
{
    c->tick_ns = greatest_divisor(greatest_divisor(c->tick_ns, begin), end);
    int64_t low = (int64_t)(called_ns - begin), high = (int64_t)(seen_ns - end);
    if (called_ns && (!c->has_low || low >= c->low - aged(c->low_at, begin))) {
        c->low = low;
        c->low_at = begin;
        c->has_low = true;
    }
    if (!c->has_high || high <= c->high + aged(c->high_at, end)) {
        c->high = high;
        c->high_at = end;
        c->has_high = true;
    }
}

/* A reading lies up to a tick before its time: so far may the lower bound be too high, and the reading itself off. The
 * quickest launch is as much slower than its bound as launches are; an end is seen when somebody looks. */
int64_t mg_twin_clock_offset(const struct mg_twin_clock *c, uint64_t at, uint64_t *uncertainty_ns)
{
    int64_t low = c->low - aged(c->low_at, at) - (int64_t)c->tick_ns, high = c->high + aged(c->high_at, at);
    if (!c->has_low || !c->has_high || high < low) { /* one side is not known, or the clocks run apart faster */
        *uncertainty_ns = UINT32_MAX;
        return c->has_high ? high : low;
    }
    int64_t offset = MG_MIN(low + (high - low) / 2, low + (int64_t)c->tick_ns + PICK_UP_NS);
    *uncertainty_ns = (uint64_t)(high - offset) + 1 + c->tick_ns;
    return offset;
}
