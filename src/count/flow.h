/* How counts are solved for: one flow a function, in an order in which callers come before callees.
 * Filled by count/by_register.c, read by counters.c. Not for other folders. */
#ifndef MG_COUNT_FLOW_H
#define MG_COUNT_FLOW_H

#include "count/counters.h"
#include "count/plan.h"

/* Lanes that move together (analysis/uniform.h): what their first lanes alone measured gives the
 * warp entries of the cohort's blocks. Of the kernel's entry: those of warps that are not whole; other warps' entries
 * are those of their threads by 32. */
struct mg_counter_cohort {
    uint32_t at;                /* counter of its first lanes' measured[0] */
    uint32_t entries_at;        /* counter of its first lanes; UINT32_MAX: the kernel's entry */
    uint32_t *blocks, n_blocks; /* of the function */
};
struct mg_counter_flow {
    struct mg_flow flow;
    uint32_t first_block; /* dense id of the function's block 0 */
    uint32_t at;          /* counter of measured[0] */
    uint32_t n;           /* measured */
    uint32_t *slots,
        n_copies;   /* else (at unused): measured[i] is the sum of counters slots[k * n + i] over the copies k */
    bool by_launch; /* the kernel: entered once by every thread that counts */
    uint32_t
        n_alike; /* of the kernel: its counters, where CTA 0 alone has counted, as every other would have; else 0 */
    uint32_t *callers,
        n_callers;    /* else, of a function that is counted: blocks (dense) each entry of which calls it once */
    uint32_t *lowest; /* then block -> which of measured its warp entries are, UINT32_MAX: none; NULL: not counted so */
    struct mg_counter_cohort *cohorts;
    uint32_t n_cohorts;
};

#endif
