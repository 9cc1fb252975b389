/* The time in which a device worked at all, of kernels that may run at once: each new span counts for what no span in
 * front of it has covered. Told in any order; what lies further back than some hundred spans is forgotten. */
#ifndef MG_INJECT_COVERED_H
#define MG_INJECT_COVERED_H

#include "base/compiler.h"

enum { MG_COVERED_SPANS = 256 };
struct mg_covered { /* zeroed: nothing is covered */
    uint32_t n;
    struct mg_covered_span {
        uint64_t begin, end;
    } at[MG_COVERED_SPANS]; /* apart from one another, in order of time */
};
/* How much of it is new. */
uint64_t mg_covered_add(struct mg_covered *c, uint64_t begin, uint64_t end);

#endif
