/* Base events: recorded again and again on a stream of ours, so that distances of events from the newest stay short.
 * Of a few tries the one counts whose place the host knows best. */
#include "inject/nvidia/nv_priv.h"

#include "base/io.h"

#define GOOD_NS           3000u /* the host knows the base to half of this: no further try */
#define PATIENCE_NS       200000u
#define FIRST_PATIENCE_NS 50000000u /* without a base no launch has a time; the thread that drains can wait */

struct attempt {
    cu_event event;
    uint64_t early_ns, late_ns;
};

static bool record_base(struct mg_nv_bases *b, struct attempt *a, uint64_t patience_ns)
{
    a->early_ns = mg_now_ns();
    if (mg_nv.cuEventRecord(a->event, b->stream) != CUE_SUCCESS) return false;
    for (;;) {
        cu_result rc = mg_nv.cuEventQuery(a->event);
        a->late_ns = mg_now_ns();
        if (rc == CUE_SUCCESS) return true;
        if (rc != CUE_NOT_READY || a->late_ns - a->early_ns > patience_ns) return false;
    }
}

static bool elapsed(double *ns, cu_event from, cu_event to)
{
    float ms = 0;
    if (mg_nv.cuEventElapsedTime(&ms, from, to) != CUE_SUCCESS) return false;
    *ns = (double)ms * 1e6;
    return true;
}

static void refresh(struct mg_nv_bases *b, uint64_t patience_ns)
{
    struct mg_clock *c = &b->clock;
    struct attempt best = {0};
    uint32_t best_ix = 0;
    double since = 0;
    if (!mg_clock_is_due(c, mg_now_ns())) return;
    for (uint32_t i = 1; i <= MG_NV_BASE_TRIES; i++) {
        struct attempt a = {.event = b->events[i]};
        if (!record_base(b, &a, patience_ns)) break;
        if (!best_ix || a.late_ns - a.early_ns < best.late_ns - best.early_ns) best = a, best_ix = i;
        if (best.late_ns - best.early_ns <= GOOD_NS) break;
    }
    if (!best_ix || (c->n && !elapsed(&since, b->events[0], best.event))) return;
    b->events[best_ix] = b->events[0];
    b->events[0] = best.event;
    mg_clock_add(c, mg_clock_newest(c) + since, best.early_ns, best.late_ns);
}

void mg_nv_bases_refresh(struct mg_nv_bases *b)
{
    refresh(b, b->clock.n ? PATIENCE_NS : FIRST_PATIENCE_NS);
}

bool mg_nv_bases_init(struct mg_nv_bases *b)
{
    bool ok = mg_nv.cuStreamCreate(&b->stream, CUSTREAM_NON_BLOCKING) == CUE_SUCCESS;
    for (uint32_t i = 0; i <= MG_NV_BASE_TRIES && ok; i++)
        ok = mg_nv.cuEventCreate(&b->events[i], CUEVENT_DEFAULT) == CUE_SUCCESS;
    if (ok) refresh(b, PATIENCE_NS);
    return ok;
}

bool mg_nv_bases_place(const struct mg_nv_bases *b, cu_event begin, cu_event end, uint64_t call_ns, uint64_t seen_ns,
                       struct mg_clock_span *span)
{
    double length, from_base;
    if (!b->clock.n || !elapsed(&length, begin, end) || !elapsed(&from_base, b->events[0], end)) return false;
    *span = mg_clock_place(&b->clock, from_base, length, call_ns, seen_ns);
    return true;
}
