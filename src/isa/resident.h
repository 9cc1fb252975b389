/* How many CTAs a multiprocessor takes at once: the limits of a compute capability, as the CUDA programming guide's
 * table has them. */
#ifndef MG_ISA_RESIDENT_H
#define MG_ISA_RESIDENT_H

#include <stdint.h>

struct mg_sm_limits {
    uint32_t sm, warps, ctas, shared_bytes;
};
/* A capability that is missing is taken as the next lower one. */
const struct mg_sm_limits *mg_sm_limits(uint32_t sm);
/* At least 1. registers: of a thread, 0: not known; *limit: what limits it. */
uint32_t mg_resident_ctas(const struct mg_sm_limits *of, uint32_t warps, uint32_t registers, uint64_t shared_bytes,
                          const char **limit);

#endif
