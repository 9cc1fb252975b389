/* A selection as text, JSON and files. */
#ifndef MG_STUDY_SUBSET_REPORT_H
#define MG_STUDY_SUBSET_REPORT_H

#include "study/subset.h"

struct mg_subset_view {
    const struct mg_subset *s;
    const struct mg_subset_program *program; /* NULL: of a vector file */
    struct mg_subset_program *const *judges; /* runs that did not take part in the selection */
    uint32_t n_judges;
    enum mg_interval_kind interval;
    enum mg_feature_kind feature;
};
void mg_subset_json(const struct mg_subset_view *w, struct mg_buf *out);
void mg_subset_text(const struct mg_subset_view *w, struct mg_buf *out);
void mg_exploration_json(const struct mg_exploration *x, struct mg_buf *out);
void mg_exploration_text(const struct mg_exploration *x, struct mg_buf *out);

/* SimPoint's files: "interval cluster", "weight cluster", and the cluster of each interval. */
void mg_subset_simpoints(const struct mg_subset *s, struct mg_buf *out);
void mg_subset_weights(const struct mg_subset *s, struct mg_buf *out);
bool mg_subset_labels(const struct mg_subset *s, struct mg_buf *out); /* false: the method has no clusters */
/* For tracers of simulators: numbers of launches, counted from 1 in their process, and how often each stands. */
void mg_subset_launches(const struct mg_subset_view *w, struct mg_buf *out);

/* A simulator's results of the selected launches, as CSV with a column "launch", extrapolated to the program. */
enum mg_err mg_subset_project(const struct mg_subset_view *w, const char *text, size_t bytes, const char *path,
                              bool json, struct mg_buf *out, struct mg_diag *d) MG_MUST_CHECK;

#endif
