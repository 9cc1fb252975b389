/* What TAUcuda would have measured around every launch of a program that does not use it (docs/tau-cuda.md), from the
 * spans of its time line, in one pass. Memory grows with names, streams, marked ranges, polls between launches, running
 * kernels, and launches whose kernel has not been met.
 *
 *   event       the kernel's name; context: the innermost range around the launch, else TAU's top-level timer
 *   inclusive   the kernel's time on the device; it is exclusive, too, for kernels hold no blocks
 *   wait        from the begin of the first call that asked for the kernel while it was unfinished, to the delivery
 *   finalize    from the begin of the launching call to the delivery
 *   delivery    the end of the first call that waited for the kernel, or asked and was told that it is done
 *
 * Calls that ask say of which stream and context. A wait for an event delivers what has ended by then in the event's
 * stream; a copy that waits, what has ended in the default stream of its context or thread. */
#ifndef MG_SPAN_TAU_EVENTS_H
#define MG_SPAN_TAU_EVENTS_H

#include "base/vec.h"
#include "span/span.h"

#define MG_TAU_TOP ".TAU application"

struct mg_tau_event {
    const char *name, *context;
    uint32_t process, device, thread; /* thread: number in the order of first calls of the process */
    uint64_t context_ix, stream;      /* of CUDA */
    uint64_t calls, untimed;
    uint64_t delivered;                          /* calls whose completion the program asked for */
    uint64_t inclusive_ns, wait_ns, finalize_ns; /* the last two of delivered ones */
};
struct mg_tau_events {
    MG_VEC(struct mg_tau_event) at;
    struct mg_spans *spans; /* owner of names */
};
enum mg_err mg_tau_events_init(struct mg_tau_events *e, const char *dir, struct mg_diag *d) MG_MUST_CHECK;
void mg_tau_events_release(struct mg_tau_events *e);

#endif
