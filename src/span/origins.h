/* The calls whose device work may still come, by the numbers by which work names them. A call that enqueues one piece
 * of work goes with it; launches of graphs and of several devices stay. Copies and failed calls are left out: they
 * enqueue no kernel. */
#ifndef MG_SPAN_ORIGINS_H
#define MG_SPAN_ORIGINS_H

#include "base/map.h"
#include "base/vec.h"
#include "span/span.h"

struct mg_origin {
    uint64_t begin_ns;
    uint32_t thread, stack; /* as of spans */
    bool many;              /* kernels */
};
struct mg_origins {
    struct mg_map by_number;
    MG_VEC(struct mg_origin) at;
    MG_VEC(uint32_t) unused;
};
/* By process and number of a call or range. */
uint64_t mg_origin_key(uint32_t process, uint64_t correlation);

void mg_origins_add(struct mg_origins *o, const struct mg_span *call);
/* Of a kernel; false: its call is not there. */
bool mg_origins_take(struct mg_origins *o, const struct mg_span *kernel, struct mg_origin *call);
void mg_origins_release(struct mg_origins *o);

#endif
