/* What recorded runs say of one that was not recorded.
 *
 * Times of launches differ from run to run, and rare launches are far slower than their equals. A small sample holds
 * none of these, so its own spread says nothing of them; recorded runs, in which every launch was timed, do. A run that
 * might have been is put together from them: of each member the time in a recorded run, moved to other members of its
 * stratum in pieces, since slow launches come in bursts and there may be more or fewer of them. */
#ifndef MG_STUDY_SUBSET_NOISE_H
#define MG_STUDY_SUBSET_NOISE_H

#include "study/subset_estimate.h"

enum { MG_JOINED_MOST = 1000 };

/* Of n times of one launch the least or the median; their order changes. NAN: one is not known. */
double mg_join_times(double *times, uint32_t n, bool least);

/* Of member i and run r values[i * stride + r * step]. A value of the run that is judged is joined from so many runs.
 */
struct mg_recorded {
    const double *values;
    uint32_t n_runs, stride, step, joined;
    bool least;
};

/* How far totals of samples drawn by the design lie from the true one, as true / estimated - 1, in 95 of 100 runs that
 * might have been. */
struct mg_errors {
    double low, high;
};
struct mg_errors mg_design_errors(const struct mg_design *g, const double *size, const struct mg_recorded *runs,
                                  enum mg_estimator e, uint64_t seed);

/* The scatter of a run's sampled values (mg_stratified_scatter) by that of the same members in the recorded run that
 * has most of it: above 1 the run is noisier than all of these. NAN: one has none. */
double mg_scatter_ratio(const struct mg_stratified *s, const double *values, const struct mg_recorded *runs);

#endif
