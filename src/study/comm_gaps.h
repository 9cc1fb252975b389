/* Strides of communication: the distances between neighbours in the sorted set of addresses that a CTA reads (or
 * writes) in a launch. Sets are kept as runs: so many addresses, one step apart. */
#ifndef MG_STUDY_COMM_GAPS_H
#define MG_STUDY_COMM_GAPS_H

#include "base/map.h"
#include "study/comm.h"

struct gap_run {
    uint64_t first;
    uint32_t step, n;
};
struct gap_runs {
    struct gap_run *at;
    uint32_t n, cap;
};
struct gap_span {
    struct gap_run run;
    uint32_t cta, step;
}; /* of a launch */
struct gap_spans {
    struct gap_span *at;
    uint32_t n, cap;
};
struct gap_store {
    struct gap_run run;
    uint32_t unit;
}; /* unit: of all launches */
struct gap_stores {
    struct gap_store *at;
    uint32_t n, cap;
};

void gap_runs_add(struct gap_runs *r, uint64_t address, uint32_t step, uint32_t n); /* on one page */
/* Sorts, drops doubles, appends to out, empties r. */
void gap_runs_close(struct gap_runs *r, uint32_t cta, uint32_t step, struct gap_spans *out);
void gap_stores_add(struct gap_stores *s, uint32_t unit, uint64_t address);
/* Adds the gaps of spans, whose runs of one owner do not repeat an address, to counts by size. Empties spans. */
void gap_count_spans(struct gap_spans *s, struct mg_map *out);
void gap_count_stores(struct gap_stores *s, struct mg_map *out);
void gap_list(const struct mg_map *counts, mg_comm_gaps *out); /* by size */

#endif
