/* Which piece of device work of ours an activity record of CUPTI's is. CUPTI numbers calls of the driver or the
 * runtime, and says of each its thread and time; its records of work name that number. A call of ours on that thread
 * that meets that time, and has the device do such work, is the one: ours lies inside of the runtime's, or around the
 * driver's. All may come in any order. No locks, no CUPTI here: gpu_cupti.c has both. */
#ifndef MG_INJECT_NVIDIA_CUPTI_JOIN_H
#define MG_INJECT_NVIDIA_CUPTI_JOIN_H

#include "base/map.h"
#include "base/vec.h"
#include "span/records.h"

struct mg_join_piece {                      /* a call of ours and its work */
    uint64_t begin_ns, end_ns, correlation; /* end: all ones: it has not returned */
    uint8_t work;                           /* enum mg_span_work */
    bool timed, told, over;                 /* start and stop are there; record is; nothing is awaited any more */
    uint64_t start_ns, stop_ns;             /* of the work */
    struct mg_record_work record;
};
struct mg_join_thread {
    uint32_t tid;
    MG_VEC(struct mg_join_piece *) at; /* by begin */
};
struct mg_join_call { /* of CUPTI's */
    uint64_t begin_ns, end_ns;
    uint32_t number, tid;
};
struct mg_join_activity {
    uint64_t start_ns, stop_ns, seen_ns;
    uint32_t number; /* of CUPTI's call */
    uint8_t work;
    struct mg_join_activity *next; /* of the same call; the join's own */
};
struct mg_join {
    MG_VEC(struct mg_join_thread) threads;
    MG_VEC(struct mg_join_call) calls;
    struct mg_map early;                        /* number -> activities whose call has not come */
    struct mg_map thread_of, call_of, piece_of; /* tid, number, correlation */
    void (*emit)(void *user, const struct mg_record_work *r);
    void *user;
    uint64_t odd; /* activities whose times cannot be */
};
void mg_join_begin(struct mg_join *j, uint32_t tid, uint64_t begin_ns, uint64_t correlation, enum mg_span_work work);
/* failed: no work comes. */
void mg_join_end(struct mg_join *j, uint64_t correlation, uint64_t end_ns, bool failed);
/* False: no call of that number is known. Emitted once its times are there. */
bool mg_join_work(struct mg_join *j, const struct mg_record_work *r);
void mg_join_call(struct mg_join *j, const struct mg_join_call *c);
void mg_join_activity(struct mg_join *j, const struct mg_join_activity *a);
/* From time to time: forgets what nobody will ask for. */
void mg_join_sweep(struct mg_join *j, uint64_t now_ns);
/* What has no times yet is emitted without. */
void mg_join_finish(struct mg_join *j);

#endif
