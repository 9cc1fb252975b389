/* A launch's time from counts that are the same on every device (`margay study predict`): a sum of terms, each a count
 * times a cost that is not negative, fitted so that relative errors are small. Costs belong to the device whose times
 * were fitted; counts may come from any. Beside it a plain roofline: the slower of instructions and bytes at the best
 * rates that were seen. With times of two devices: how well those of the one, at hand, tell those of the other. */
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

/* Launches of equal terms, as one: what they weigh in a fit, all of a program 1. */
struct mg_known_row {
    double terms[MG_TERM_COUNT], weight, log_ns; /* log_ns: the mean of the logarithms of their times */
};

/* One program: launches with counts and a time. */
struct mg_known_program {
    const char *dir, *kind, *device; /* what the times are of: "nvidia", "cpu", "emu", and its name; NULL: not known */
    bool native;                     /* no kernel was instrumented when they were taken */
    double (*terms)[MG_TERM_COUNT];  /* of each launch */
    double *time_ns;
    uint64_t n, n_left_out; /* launches; those without counts or a time */
    double sum_ns, sum_terms[MG_TERM_COUNT];
    struct mg_known_row *rows; /* what it adds to a fit */
    uint64_t n_rows;
    struct mg_roofline best;             /* rates that its launches reached */
    const struct mg_known_program *here; /* the same launches on the device at hand (--across); NULL: not asked for */
};
/* Of its launches: terms and times are there. Owner: the arena. */
void mg_known_rows_init(struct mg_known_program *k, struct mg_arena *a);
/* What a program is made of: its counts, the run whose times are its own, and NULL or another run of the same launches:
 * those without a time in it are left out, too. */
struct mg_known_runs {
    const struct mg_subset_program *counts, *timed, *other;
};
/* units: multiprocessors that share a launch's CTAs, 0: the device's. Owner: the arena. */
enum mg_err mg_known_program_init(struct mg_known_program *k, const struct mg_known_runs *r, uint32_t units,
                                  struct mg_arena *a, struct mg_diag *d) MG_MUST_CHECK;
/* Fails where the times are not all of one kind of device, or those of `here` are not. */
enum mg_err mg_known_programs_check(const struct mg_known_program *k, uint32_t n, struct mg_diag *d) MG_MUST_CHECK;

/* From all programs but these two (UINT32_MAX: none), or from their times `here`; each has the same weight. It
 * begins at f: costs of 0, or those of other programs. */
struct mg_left_out {
    uint32_t one, other;
};
void mg_fitted_init(struct mg_fitted *f, const struct mg_known_program *k, uint32_t n, struct mg_left_out without,
                    bool here);
double mg_fitted_time(const struct mg_fitted *f, const double *terms);
/* The term's name where only the program that was left out of the fit has it: its cost counts as 0; else NULL. */
const char *mg_fitted_lacks(const struct mg_fitted *f, const struct mg_known_program *k, enum mg_term t);

enum mg_predictor { /* ORDER PREDICTORS */
                    MG_BY_MODEL,
                    MG_BY_ROOFLINE,
                    MG_BY_CARRIED, /* by costs of the device at hand, times one factor of the others */
                    MG_BY_SCALED,  /* its own time there, times one factor */
                    MG_BY_RATIO,   /* its own time there, times the ratio of what both devices' costs say */
                    MG_PREDICTOR_COUNT
};
extern const char *const mg_predictor_names[MG_PREDICTOR_COUNT];

struct mg_predicted {
    double predicted_ns, error_pct; /* of the program's kernel time */
    double off;                     /* how many times too long or too short: 1 is exact */
    double launch_error_pct;        /* median of its launches */
    double apart;                   /* the time lies within this factor, 95 times in 100; NAN: not known */
};
struct mg_prediction { /* of one program, from the others */
    struct mg_predicted by[MG_PREDICTOR_COUNT];
    struct mg_fitted fit;
};
/* Of all n programs, each from the others; `apart` comes from how far off the others are when each of them is left out,
 * too. The last three predictors need `here`. To be freed. */
struct mg_prediction *mg_predict_each(const struct mg_known_program *k, uint32_t n);

/* Each program predicted by a fit on all others, and the costs of a fit on all. */
void mg_prediction_text(const struct mg_known_program *k, uint32_t n, struct mg_buf *out);
void mg_prediction_json(const struct mg_known_program *k, uint32_t n, struct mg_buf *out);

#endif
