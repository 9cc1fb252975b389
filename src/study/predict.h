/* A launch's time from counts that are the same on every device (`margay study predict`): a sum of terms, each a count
 * times a cost that is not negative, fitted so that relative errors are small. Costs belong to the device whose times
 * were fitted; counts may come from any. Beside it a plain roofline: the slower of instructions and bytes at the best
 * rates that were seen. */
#ifndef MG_STUDY_PREDICT_H
#define MG_STUDY_PREDICT_H

#include "base/json.h"
#include "study/subset_program.h"

enum mg_term {                 /* ORDER TERMS */
               MG_TERM_LAUNCH, /* 1 */
               MG_TERM_DEPTH,  /* instructions of a warp in the mean: what one thread does one after the other */
               MG_TERM_SIMPLE, /* from here warp instructions by class, of the busiest multiprocessor */
               MG_TERM_FLOAT,
               MG_TERM_DOUBLE,
               MG_TERM_SPECIAL,
               MG_TERM_MATRIX,
               MG_TERM_SHARED,
               MG_TERM_MEMORY,
               MG_TERM_ATOMIC,
               MG_TERM_BARRIER,
               MG_TERM_BYTES, /* of global and local memory */
               MG_TERM_COUNT
};
extern const char *const mg_term_names[MG_TERM_COUNT];

/* Squares and products of terms by time, so that every launch asks for 1: the sum of costs times terms is to be its
 * time. Least squares with costs >= 0. */
struct mg_normal {
    double a[MG_TERM_COUNT][MG_TERM_COUNT], b[MG_TERM_COUNT];
};
void mg_normal_add(struct mg_normal *m, const double *terms, double time, double weight);
void mg_normal_solve(const struct mg_normal *m, double *cost);

struct mg_fitted {
    double cost_ns[MG_TERM_COUNT];
    bool seen[MG_TERM_COUNT]; /* some launch has it */
};
struct mg_roofline {
    double insts_per_ns, bytes_per_ns;
};

/* One program: launches with counts and a time. */
struct mg_known_program {
    const char *dir, *kind, *device; /* what the times are of: "nvidia", "cpu", "emu", and its name; NULL: not known */
    bool native;                     /* no kernel was instrumented when they were taken */
    double (*terms)[MG_TERM_COUNT];  /* of each launch */
    double *time_ns;
    uint64_t n, n_left_out; /* launches; those without counts or a time */
};
/* Times of the run `timed`; units: multiprocessors that share a launch's CTAs, 0: the device's. Owner: the arena. */
enum mg_err mg_known_program_init(struct mg_known_program *k, const struct mg_subset_program *s,
                                  const struct mg_subset_program *timed, uint32_t units, struct mg_arena *a,
                                  struct mg_diag *d) MG_MUST_CHECK;
/* Fails where the times are not all of one kind of device. */
enum mg_err mg_known_programs_check(const struct mg_known_program *k, uint32_t n, struct mg_diag *d) MG_MUST_CHECK;

/* From all programs but `without` (UINT32_MAX: from all); each has the same weight. */
void mg_fitted_init(struct mg_fitted *f, const struct mg_known_program *k, uint32_t n, uint32_t without);
void mg_roofline_init(struct mg_roofline *r, const struct mg_known_program *k, uint32_t n, uint32_t without);

struct mg_predicted {
    double measured_ns, predicted_ns, error_pct; /* of the program's kernel time */
    double off;                                  /* how many times too long or too short: 1 is exact */
    double launch_error_pct;                     /* median of its launches */
};
struct mg_predicted mg_fitted_predict(const struct mg_fitted *f, const struct mg_known_program *k);
/* The term's name where only the program that was left out of the fit has it: its cost counts as 0; else NULL. */
const char *mg_fitted_lacks(const struct mg_fitted *f, const struct mg_known_program *k, enum mg_term t);
struct mg_predicted mg_roofline_predict(const struct mg_roofline *r, const struct mg_known_program *k);

/* Each program predicted by a fit on all others, and the costs of a fit on all. */
void mg_prediction_text(const struct mg_known_program *k, uint32_t n, struct mg_buf *out);
void mg_prediction_json(const struct mg_known_program *k, uint32_t n, struct mg_buf *out);

#endif
