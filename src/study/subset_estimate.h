/* A population in strata, some of it sampled: the total of what only the sample knows, with a 95 % interval.
 *
 * In a stratum the total is N times the mean where sizes are equal, else by ratio to the sizes, which are known of all;
 * by regression on them where the sample is large and its sizes spread. All of these are sums of sampled values times a
 * number, so a selection is a list of members and numbers. The interval is a bootstrap within strata (Rao and Wu's
 * rescaling, which is right for small samples and for those that are much of their stratum), widened by Student's t for
 * the degrees of freedom after Satterthwaite. A stratum with one sampled member of several takes the relative spread
 * of the others. */
#ifndef MG_STUDY_SUBSET_ESTIMATE_H
#define MG_STUDY_SUBSET_ESTIMATE_H

#include "base/compiler.h"

enum mg_estimator { MG_ESTIMATE_SIZE, MG_ESTIMATE_MEAN, MG_ESTIMATE_RATIO }; /* by sizes as above; by one way always */
struct mg_stratified {
    uint32_t n, n_strata;
    const uint32_t *stratum; /* of each member; each stratum has a sampled one */
    const double *size;      /* of each member, more than 0 */
    const bool *sampled;
    enum mg_estimator estimator;
};
/* Draws size[h] members of each stratum. order: of the members, NULL: as they stand. spread: one of each of size[h]
 * equal pieces of the stratum in that order, so that what drifts in time is met evenly; else each set alike. */
struct mg_design {
    const uint32_t *stratum, *size, *order;
    uint32_t n, n_strata;
    bool spread;
};
void mg_design_draw(const struct mg_design *g, uint64_t seed, bool *sampled);

/* How many times each sampled member stands in the total; 0 for those not sampled. */
void mg_stratified_times(const struct mg_stratified *s, double *times);
/* The total, where sizes are what the values would be but for noise: ratios that lie more than two standard deviations
 * from their middle count as so far away. Members that stand for themselves alone count as they are. */
double mg_stratified_robust(const struct mg_stratified *s, const double *values);

struct mg_total {
    double value, low, high;
}; /* low and high NAN: not known */
/* values: of sampled members; others are not read. */
struct mg_total mg_stratified_total(const struct mg_stratified *s, const double *values, uint64_t seed);

double mg_stratified_value(const struct mg_stratified *s, const double *values); /* the total alone */
/* Median distance of sampled values from what their strata say, as a part of the values; 0: no stratum tells it. */
double mg_stratified_scatter(const struct mg_stratified *s, const double *values);

/* Sample sizes that give a relative error of epsilon (95 %) at the least cost, a member of stratum h costing mean[h]
 * (Neyman, weighted by cost). At least least[h], at most n[h]. */
void mg_neyman_sizes(uint32_t n_strata, const double *n, const double *mean, const double *sigma, double epsilon,
                     const uint32_t *least, uint32_t *out);

double mg_student_t(double degrees); /* of 95 %, two-sided */

#endif
