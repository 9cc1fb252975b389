/* Inclusive and exclusive times of blocks on one stream, from the order and the distances of their begin and end
 * events.
 *
 * Blocks are begun and ended in any order; every begin and end takes the stream's next position. A block's exclusive
 * time is its inclusive time less the union of the blocks that lie inside, that is, between its positions. Blocks are
 * closed in the order of their ends. A block that closes hands its interval to the youngest open block that is older:
 *
 *     A (   B (   )B   C (   D (   )C   )D   )A        B, C and D lie inside A; C and D overlap, neither lies in the
 * other
 */
#ifndef MG_TAU_NEST_H
#define MG_TAU_NEST_H

#include "base/vec.h"

struct tau_interval {
    uint64_t begin, end;     /* positions */
    double begin_us, len_us; /* begin_us: from the begin of the group's first block */
    double covered_us;       /* less than len_us where several blocks with gaps between them are one entry */
};
struct tau_nested {
    uint64_t begin, end; /* positions; end 0: not ended */
    void *begin_event, *end_event;
    bool placed; /* begin_us is known */
    double begin_us;
    struct tau_intervals {
        struct tau_interval *at;
        uint32_t n, cap;
    } inside;          /* by position, apart from one another */
    uint64_t fence;    /* where an older block last ended inside of this one: no entry spans that position */
    uint32_t children; /* blocks that lie directly inside */
    double inclusive_us, exclusive_us; /* once closed */
};
/* Microseconds between two events that have completed. */
typedef double (*tau_elapsed_fn)(void *user, void *from, void *to);

/* live: the n blocks that are not closed, in the order of their begins; live[at] ended before all others that ended,
 * and its end event has completed. Sets its times and hands its interval on. The caller then removes it. */
void tau_nest_close(struct tau_nested *const *live, uint32_t n, uint32_t at, tau_elapsed_fn elapsed, void *user);
void tau_nested_release(struct tau_nested *b);

#endif
