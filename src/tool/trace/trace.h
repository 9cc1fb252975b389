/* Tool trace, inside: what is to be recorded (trace.c), and what arrives (stream.c). */
#ifndef MG_TOOL_TRACE_TRACE_H
#define MG_TOOL_TRACE_TRACE_H

#include <pthread.h>

#include "base/vec.h"
#include "record/channel.h"
#include "trace/access_records.h"

/* What a site's note holds: its kind, whether it is a bulk copy, and the instruction's number in the kernel. A bulk
 * copy is recorded as the accesses of 16 bytes of which it consists. */
enum { MG_TRACE_NOTE_KIND = 7, MG_TRACE_NOTE_BULK = 8, MG_TRACE_NOTE_SHIFT = 4, MG_TRACE_BULK_BYTES = 16 };
enum { MG_TRACE_CELL_LANES, MG_TRACE_CELL_SUM, MG_TRACE_N_CELLS }; /* of a site, when the option sum is on */

struct mg_trace_limits { /* what is selected: all of it has to hold */
    uint64_t cta_first, cta_last;
    char *file;
    uint32_t line_first, line_last; /* file NULL: any; line_last 0: any line */
    uint64_t buffer;                /* id of an allocation; UINT64_MAX: any */
    uint32_t one_of;                /* CTAs: those of one number of so many; 1: all */
    bool barriers, sum, instructions, loops;
};
struct mg_trace_sums { /* of a launch */
    uint64_t launch, replays, incomplete /* of these: a fault ended them, and what they counted is not all */, records,
        lanes, received_lanes, barriers, unseen, blocks, instructions, in_loops, bytes, address_sum, counted_sum;
};
struct mg_trace_conf {
    struct mg_trace_limits limits;
    const struct mg_tool_host *host;
    bool left_told;
    pthread_mutex_t lock;                  /* of what follows */
    MG_VEC(struct mg_trace_sums) launches; /* by launch */
    struct mg_trace_part *parts[MG_STREAM_MOST_WORKERS];
    struct mg_trace_place *places;
    uint32_t n_places, step_kinds[3]; /* numbers of the kinds: site, pack, left */
    uint64_t missed;                  /* accesses that are not in the file */
};

void mg_trace_stream(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes);
void mg_trace_finalize(struct mg_trace_conf *c, uint64_t launch, uint64_t replays, bool complete, const uint64_t *cells,
                       uint32_t n);
void mg_trace_end_stream(struct mg_trace_conf *c); /* tells the sums */
void mg_trace_free_stream(struct mg_trace_conf *c);

#endif
