/* Totals from a sample: what all members of a population would have counted, from those that were, with a
 * bound. The mean of a stratum (members that are alike from outside) stands for those of it that were not counted;
 * where a stratum was never counted, or once only, counts are taken as proportional to the members' size
 * instead. Bounds are those of sampling at random from a finite population (Cochran, Sampling Techniques,
 * 3rd ed., chapters 5 and 6), 95 %, with Student's t for the fewest degrees of freedom of any stratum. They speak
 * of members drawn at random. */
#ifndef MG_BASE_ESTIMATE_H
#define MG_BASE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

enum mg_sample_method {
    MG_SAMPLE_GEOMETRY,
    MG_SAMPLE_THREADS
}; /* by strata; by size: for launches, that is what these are */
struct mg_estimate {
    double value, bound;
};                 /* bound < 0: not known */
struct mg_member { /* those of one stratum stand together */
    uint32_t stratum;
    bool counted;
    double times;       /* so many members as one */
    double size, count; /* of one; count: where counted */
};
extern const double mg_student_t95[30]; /* two-sided 95 % quantiles of Student's t, from one degree of freedom on */
enum mg_sample_method mg_estimate_method(const struct mg_member *m, uint64_t n);
struct mg_estimate mg_estimate_total(const struct mg_member *m, uint64_t n, enum mg_sample_method method);

#endif
