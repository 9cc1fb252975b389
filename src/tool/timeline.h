/* Options of the tool timeline: read where calls and device work are recorded (inject/timeline.c). */
#ifndef MG_TOOL_TIMELINE_H
#define MG_TOOL_TIMELINE_H

#include "base/compiler.h"

enum mg_timeline_runtime { MG_RUNTIME_AUTO, MG_RUNTIME_ON, MG_RUNTIME_OFF };
enum mg_timeline_times { MG_TIMES_EVENTS, MG_TIMES_OFF, MG_TIMES_TWIN };
struct mg_timeline_conf {
    bool calls, arguments, work;
    bool tau;            /* reports show profile objects of TAUcuda */
    uint32_t runtime;    /* enum mg_timeline_runtime */
    uint32_t times;      /* enum mg_timeline_times */
    uint32_t source;     /* 1: on a GPU CUPTI times device work */
    uint32_t clocks;     /* 1: of other hosts by messages of MPI (inject/mpi/clocks.c) */
    uint64_t sample;     /* with events: each so manyth launch is timed */
    uint64_t stacks;     /* each so manyth launch or wait with the host's call stack, 0: none */
    uint64_t memory_mib; /* of buffers */
    uint32_t full;       /* what a thread does that finds no buffer: 0 drops its record, 1 waits */
    uint32_t classes;    /* bits 1 << enum mg_call_class; 0: all */
    char name[128];      /* glob of calls; "": all */
};
extern const char *const mg_timeline_classes[]; /* ends with NULL */

#endif
