/* How many launches are in flight on each device: kernels whose call has begun and that have not ended. Kernels are met
 * when they begin, so what a call adds is known late: changes wait in a bounded heap and leave it in order of time. */
#ifndef MG_EXPORT_INFLIGHT_H
#define MG_EXPORT_INFLIGHT_H

#include "base/vec.h"

#define MG_INFLIGHT_MOST 65536u /* changes that wait */

struct mg_inflight_change {
    uint64_t time_ns;
    uint32_t counter;
    int32_t by;
};
struct mg_inflight {
    MG_VEC(struct mg_inflight_change) heap; /* earliest first */
    MG_VEC(int64_t) values;                 /* by counter */
    uint64_t last_ns;                       /* of the last change that left */
};
void mg_inflight_release(struct mg_inflight *f);
/* What comes later than MG_INFLIGHT_MOST changes after its time counts from the last one on. */
void mg_inflight_add(struct mg_inflight *f, uint32_t counter, uint64_t time_ns, int32_t by);
/* The earliest change, if too many wait or `all`: the counter and its value from then on. */
bool mg_inflight_next(struct mg_inflight *f, bool all, uint64_t *time_ns, uint32_t *counter, int64_t *value);

#endif
