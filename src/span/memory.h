/* How much device memory a program has allocated, from what its calls told: allocations by address or handle, by
 * process. What a context takes along when it is destroyed counts until the end. */
#ifndef MG_SPAN_MEMORY_H
#define MG_SPAN_MEMORY_H

#include "base/map.h"
#include "base/vec.h"
#include "span/span.h"

struct mg_memory_device { /* of a process */
    int32_t rank;
    uint32_t process, device;
    uint64_t in_use, most, allocations, frees; /* bytes; the most at one time */
};
struct mg_memory_block {
    uint64_t bytes;
    uint32_t device; /* index into the devices */
};
struct mg_memory {
    MG_VEC(struct mg_memory_device) devices; /* in the order in which they were met */
    MG_VEC(struct mg_memory_block) blocks;
    MG_VEC(uint32_t) unused; /* blocks */
    struct mg_map by_address;
};
void mg_memory_release(struct mg_memory *m);
/* A span of MG_SPAN_MEMORY; the index of its device, UINT32_MAX: what is freed is not known. */
uint32_t mg_memory_add(struct mg_memory *m, const struct mg_span *p);

#endif
