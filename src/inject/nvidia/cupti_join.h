/* Which piece of device work of ours an activity record of CUPTI's is. CUPTI numbers calls of the driver; a callback
 * inside of our call says which number that is, and records of work name it. A call comes before its work's record and
 * its activity, these two in any order. No locks, no CUPTI here: gpu_cupti.c has both. */
#ifndef MG_INJECT_NVIDIA_CUPTI_JOIN_H
#define MG_INJECT_NVIDIA_CUPTI_JOIN_H

#include "base/map.h"
#include "base/vec.h"
#include "span/records.h"

struct mg_join_call {
    uint64_t begin_ns, correlation; /* of ours */
    uint32_t number;                /* CUPTI's */
    uint8_t work;                   /* enum mg_span_work */
    bool failed;                    /* told before, and no work comes */
};
struct mg_join_activity {
    uint64_t start_ns, stop_ns, seen_ns;
    uint32_t number;
    uint8_t work;
};
struct mg_join {
    struct mg_map piece_of, correlation_of; /* correlation -> struct piece *, number -> correlation */
    void (*emit)(void *user, const struct mg_record_work *r);
    void *user;
    uint64_t odd; /* activities whose times cannot be */
};
void mg_join_call(struct mg_join *j, const struct mg_join_call *c);
/* False: no call of that number is known. Emitted once its times are there. */
bool mg_join_work(struct mg_join *j, const struct mg_record_work *r);
void mg_join_activity(struct mg_join *j, const struct mg_join_activity *a);
/* From time to time: forgets what nobody will ask for. */
void mg_join_sweep(struct mg_join *j, uint64_t now_ns);
/* What has no times yet is emitted without. */
void mg_join_finish(struct mg_join *j);

#endif
