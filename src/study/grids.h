/* How many CTAs and how many multiprocessors a kernel is best run on (`margay study predict --grids`), from its counts
 * and times at four grids or more. It is for kernels whose work does not depend on the grid: each thread takes its part
 * of it in a loop. A launch's time is taken as what limits it: a floor (the launch, memory), the longest chain of
 * instructions one after the other, the instructions of the busiest multiprocessor, its CTAs. */
#ifndef MG_STUDY_GRIDS_H
#define MG_STUDY_GRIDS_H

#include "study/subset_program.h"

enum mg_grid_term {                  /* ORDER GRID TERMS */
                    MG_GRID_FLOOR,   /* 1 */
                    MG_GRID_CHAIN,   /* instructions of a warp, times how many CTAs one place has in turn */
                    MG_GRID_BUSIEST, /* warp instructions of the busiest multiprocessor */
                    MG_GRID_CTAS,    /* its CTAs */
                    MG_GRID_TERM_COUNT
};

struct mg_grid_point { /* all launches of a kernel with so many CTAs */
    uint64_t ctas, launches;
    double insts, time_ns; /* warp instructions of one launch; the median time */
    double least_insts, most_insts;
};
struct mg_grid_model {
    double power;                    /* of the norm that joins the terms: 1 their sum, large the largest */
    double cost[MG_GRID_TERM_COUNT]; /* of a term's power */
    double insts, insts_each;        /* of a launch, whatever its grid; of each CTA */
    uint32_t warps, units, resident; /* of a CTA; multiprocessors; CTAs that fit on one */
};
struct mg_grid_kernel {
    const char *name;
    uint64_t key;
    uint32_t block[3];
    const struct mg_plaunch *first; /* its first launch */
    uint32_t differing;             /* 1 + the first argument whose value a later launch has not; 0: none */
    struct mg_grid_point *points;   /* by grid */
    uint32_t n_points;
    struct mg_grid_model model;
    const char *why_not;              /* nothing is said of it; else: */
    uint64_t best, fewest_units;      /* CTAs; multiprocessors on which it is within 5 % of the best, */
    uint64_t fewest;                  /* with so many CTAs */
    double best_ns, fewest_ns, apart; /* predicted; a time lies within this factor of the prediction, 95 times in 100 */
};
struct mg_grids {
    struct mg_grid_kernel *kernels; /* in order of first launches */
    uint32_t n;
};
/* Launches of all programs with the times of timed[i]; units 0: the device's multiprocessors. Owner: the arena. */
enum mg_err mg_grids_init(struct mg_grids *g, struct mg_subset_program *const *counts,
                          struct mg_subset_program *const *timed, uint32_t n, uint32_t units, struct mg_arena *a,
                          struct mg_diag *d) MG_MUST_CHECK;
/* Of a launch of so many CTAs on so many multiprocessors. */
double mg_grid_predict(const struct mg_grid_model *m, uint64_t ctas, uint32_t units);

void mg_grids_text(const struct mg_grids *g, struct mg_buf *out);
void mg_grids_json(const struct mg_grids *g, struct mg_buf *out);

#endif
