/* Blocks of a kernel whose execution counts may depend on timing: a branch that controls them rests, by data or
 * control, on
 *   the result of an atomic operation or of waiting for an mbarrier
 *   a clock, %smid, %warpid, a performance counter
 *   a load from global memory that this kernel also stores to, unless load and stores are all of the thread's own
 *   element (poly.h)
 * and on what is computed from these, by way of registers, memory of any space and calls.
 *
 * Which pointers name the same memory: two of the kernel's parameters do when a launch's arguments point
 * into one allocation, which the reader of the result knows (`pairs`); a parameter and a variable do not, a
 * pointer loaded from memory may name whatever it is not known to leave alone. Shared memory between
 * barriers is taken for deterministic: that it is raced on is `--check`'s to find.
 * What earlier launches left in memory is not followed. */
#ifndef MG_ANALYSIS_TIMING_H
#define MG_ANALYSIS_TIMING_H

#include "analysis/analysis.h"

#define MG_TIMING_ALWAYS 1ull
#define MG_TIMING_PAIRS  62u
struct mg_timing_pair {
    uint32_t a, b;
}; /* bytes into the parameter block, a < b */
struct mg_timing {
    struct mg_arena arena;
    uint64_t **of; /* [func][block]: 0: does not depend; MG_TIMING_ALWAYS; bit 1 + i: when pairs[i] point into one
                      allocation */
    struct mg_timing_pair pairs[MG_TIMING_PAIRS];
    uint32_t n_pairs;
};
/* Of the functions that a kernel reaches, itself the first (mg_callgraph.funcs), and their CFGs. */
struct mg_timing *mg_timing_new(const struct mg_module *m, const mg_id *funcs, struct mg_cfg *const *cfgs,
                                uint32_t n_funcs);
void mg_timing_free(struct mg_timing *t);
/* "" does not depend; "*" always; "0,16 8,16": when one of these pairs does. Owner: the arena. */
const char *mg_timing_text(const struct mg_timing *t, uint64_t of, struct mg_arena *arena);

#endif
