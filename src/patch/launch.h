/* What the code that runs beside a launch on the host is given: the launch, and the list its kernel wrote. */
#ifndef MG_PATCH_LAUNCH_H
#define MG_PATCH_LAUNCH_H

#include "count/counters.h"

struct mg_region; /* patch/layout.h: sites and tables of a tool in a kernel */

struct mg_tool_launch { /* what a tool may know of one launch */
    const char *kernel;
    uint64_t id;     /* number of the launch in its process; 0 of one that a kernel made */
    uint64_t traced; /* the same in traces (trace/access.h), where those have numbers of their own */
    struct mg_counter_launch shape;
    const void *args;
    uint32_t args_bytes; /* as the kernel sees them; NULL: not known */
    bool complete;       /* finalize */
    bool node;           /* of a graph: replayed as often as the program likes, later than this is asked */
};
struct mg_inside { /* something that a kernel began and ended */
    const char *name;
    uint64_t begin, end; /* %globaltimer */
    uint64_t cta;
    uint32_t warp, sm, lanes, depth; /* depth: how many of these lie around it */
};
struct mg_tool_list { /* the list of a launch (mg_patch_list), as its kernel left it or as it is so far */
    const uint64_t *words;
    uint32_t n;
    const uint64_t *
        before; /* what read got when it was called last for the same memory (replays of graphs); NULL: it began as 0 */
    const struct mg_region *region;
    bool running; /* the kernel still writes; nothing may be added then */
    /* An entry, or more for one, of a table that has none on the device. */
    void (*add)(const struct mg_tool_list *l, uint32_t table, const uint64_t *keys, const uint64_t *cells);
    /* To the time line; NULL: the launch is not on it. First the earliest and latest %globaltimer that its records
     * have, by which the device's clock is placed on the host's. */
    void (*clock)(const struct mg_tool_list *l, uint64_t first, uint64_t last);
    void (*inside)(const struct mg_tool_list *l, const struct mg_inside *s);
    void *user;
};

#endif
