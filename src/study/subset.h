/* Which launches of a program stand for all of it (`margay study subset`), and how well they do.
 *
 *   program --intervals, features--> vectors --method--> picks --times of this or another run--> error, interval
 *
 * A selection is a list of intervals, each with the number of times that it stands in the program: the projected time
 * is the sum of times * time. Representation ratios are times * instructions / all instructions. */
#ifndef MG_STUDY_SUBSET_H
#define MG_STUDY_SUBSET_H

#include "base/json.h"
#include "study/subset_cluster.h"
#include "study/subset_noise.h"

struct mg_pick {
    uint32_t interval;
    double times;
};

struct mg_subset_opts {
    size_t size;
    const char *method; /* NULL: simpoint */
    enum mg_interval_kind interval;
    enum mg_feature_kind feature;
    double interval_insts; /* 0: 100 M */
    uint32_t max_clusters; /* 0: 10 */
    uint32_t n;            /* intervals to select, where the method does not decide; 0: max_clusters */
    uint64_t seed;
    double threshold_pct; /* 0: the method's own */
    bool use_times;       /* margay: times of the selecting run decide, too */
};

struct mg_subset {
    struct mg_arena arena;
    const struct mg_vectors *v;
    const char *method;
    bool has_features;     /* the method looks at them */
    struct mg_pick *picks; /* in order of intervals */
    uint32_t n_picks, clusters;
    bool per_launch;   /* projects sums of times; else seconds per instruction (equation 1) */
    uint32_t *stratum; /* of each interval; NULL: the method has no interval of confidence */
    struct mg_errors
        *of_design;      /* what recorded runs say of those that are joined of so many: the last that was asked */
    uint32_t *of_joined; /* 0: none was asked */
    bool *sampled;
    uint32_t n_strata;
    uint32_t *size; /* of each stratum: sampled ones */
    enum mg_estimator estimator;
    bool by_times; /* the estimator's sizes are times of the selecting run, not instructions */
    double *half;  /* by_times: of each interval its time as every other recorded run has it; NULL: one was recorded */
    bool spread;   /* samples are spread over the order of launches */
    double *bic;   /* simpoint; [n_bic] */
    uint32_t n_bic;
    uint32_t *label; /* cluster of each interval; NULL: no method of clusters */
    uint64_t seed;
};

struct mg_method {
    const char *name, *text;
    bool needs_times, has_features;
    enum mg_err (*select)(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
};
extern const struct mg_method mg_methods[];
extern const uint32_t mg_n_methods;
const struct mg_method *mg_method_find(const char *name);

/* v outlives the selection. */
enum mg_err mg_subset_init(struct mg_subset *s, const struct mg_vectors *v, const struct mg_subset_opts *o,
                           struct mg_diag *d) MG_MUST_CHECK;
void mg_subset_release(struct mg_subset *s);

struct mg_speedup {
    double instructions, launches, time;
}; /* time NAN: not timed */
struct mg_speedup mg_subset_speedup(const struct mg_subset *s);
double mg_pick_weight(const struct mg_subset *s, const struct mg_pick *p); /* representation ratio */

/* The same intervals in another run of the same sequence of launches, or in this one. */
struct mg_judged {
    double measured_ns, projected_ns, error_pct, low_pct, high_pct;
    double scatter_ratio; /* of the selected intervals, by that of the noisiest recorded run (mg_scatter_ratio) */
};                        /* NAN: not known */
struct mg_judged mg_subset_judge(const struct mg_subset *s, const struct mg_subset_program *run);

/* ---- for methods ------------------------------------------------------------------------------------------ */
void mg_subset_pick(struct mg_subset *s, uint32_t interval, double times);
/* Sampled members drawn from the strata, s->size[h] of each; in an order that does not depend on that of launches
 * unless s->spread. */
void mg_subset_draw(struct mg_subset *s, uint64_t seed);
/* Picks and times from s->stratum and s->sampled. */
void mg_subset_pick_sampled(struct mg_subset *s);
/* Intervals in order of kernel, block, instructions, grid, place: the same for every order of launches but for equals.
 */
uint32_t *mg_subset_order(const struct mg_subset *s);

enum mg_err mg_select_simpoint(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_pka(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_sieve(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_stem(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_strata(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_random(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_systematic(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_first(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);
enum mg_err mg_select_name(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d);

/* ---- all combinations, thresholds, Pareto front (GT-Pin's figures 5 to 7) ------------------------------------ */
struct mg_combination {
    enum mg_interval_kind interval;
    enum mg_feature_kind feature;
    uint32_t clusters, intervals;
    struct mg_speedup speedup;
    double error_pct, held_out_pct; /* NAN: not measured */
    bool pareto;         /* no other has a smaller error without less speed-up, or the reverse; of equals the first */
    const char *why_not; /* NULL; else why it could not be tried */
};
struct mg_exploration {
    struct mg_combination all[MG_INTERVAL_COUNT * MG_FEATURE_COUNT];
    uint32_t n;
};
/* judges[n]: runs whose mean error is held_out_pct. Ours beyond GT-Pin's ten features are tried with ours. */
enum mg_err mg_exploration_init(struct mg_exploration *x, const struct mg_subset_program *s,
                                struct mg_subset_program *const *judges, uint32_t n, const struct mg_subset_opts *o,
                                bool ours, struct mg_diag *d) MG_MUST_CHECK;
/* The smallest selection whose error is at most pct, by error measured on the selecting run; pct < 0: the least error.
 * NULL: there is none. */
const struct mg_combination *mg_exploration_best(const struct mg_exploration *x, double pct);

#endif
