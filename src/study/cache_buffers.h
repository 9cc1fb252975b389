/* Which buffer an address of the trace lies in: the live allocations, in the order of the host's steps. What lies in
 * none (variables, memory from before the trace) is told apart by what its instruction says of the place. */
#ifndef MG_STUDY_CACHE_BUFFERS_H
#define MG_STUDY_CACHE_BUFFERS_H

#include "base/map.h"
#include "study/cache.h"

struct mg_cache_live {
    uint64_t first, end;
    uint32_t row; /* of the result; UINT32_MAX: nobody accessed it yet */
    uint64_t number;
    const char *call; /* owner: the trace */
};
struct mg_cache_buffers {
    MG_VEC(struct mg_cache_live) live; /* by address */
    uint64_t n_allocations;
    uint32_t last;      /* in live: where the last address was */
    struct mg_map told; /* row and instruction: they are among the pairs */
    uint64_t last_told;
    MG_VEC(uint64_t) pairs; /* of these two, by first access */
};
void mg_cache_buffers_release(struct mg_cache_buffers *b);
/* An allocation or a free; nothing else. */
void mg_cache_buffers_step(struct mg_cache_buffers *b, const struct mg_trace_step *s);
/* The row of r->buffers for an address that the site accesses. */
uint32_t mg_cache_buffers_find(struct mg_cache_buffers *b, struct mg_cache_result *r, uint64_t address, uint32_t site);
/* Names the rows as their instructions' buffers are called, and sorts them: allocations by number, then what is in none
 * by name. */
void mg_cache_buffers_finish(const struct mg_cache_buffers *b, struct mg_cache_result *r);

#endif
