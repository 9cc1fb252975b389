/* Intervals of a program (GT-Pin's table II) and their feature vectors (its table III and ours).
 *
 * A vector is a sparse list of keys and values. A key is a hash of what it names: kernels by name and module, so that
 * vectors of two runs and of any order of launches can be compared. Every value is weighted by instructions. */
#ifndef MG_STUDY_SUBSET_VECTOR_H
#define MG_STUDY_SUBSET_VECTOR_H

#include "base/buf.h"
#include "base/diag.h"
#include "base/vec.h"
#include "study/subset_program.h"

enum mg_interval_kind { MG_INTERVAL_LAUNCH, MG_INTERVAL_SYNC, MG_INTERVAL_INSTRUCTIONS, MG_INTERVAL_COUNT };
extern const char *const mg_interval_names[MG_INTERVAL_COUNT];
struct mg_interval {
    uint64_t first, last;        /* launches of the program, both inclusive; those without counts are no members */
    uint64_t member, n_launches; /* where its members begin in the set's list, and how many they are */
    double insts;                /* thread instructions; of a vector file: the sum of its values */
    double time_ns;              /* NAN: some launch was not timed */
    double ctas, warp_insts;
    double ops[MG_OPCLASS_COUNT];
    uint64_t kernel_key, shape_key; /* of the first launch: its kernel, its block */
    uint32_t kernel;
};

enum mg_feature_kind { /* ORDER FEATURES: the first ten are GT-Pin's */
                       MG_FEATURE_KN,
                       MG_FEATURE_KN_ARGS,
                       MG_FEATURE_KN_GWS,
                       MG_FEATURE_KN_ARGS_GWS,
                       MG_FEATURE_KN_RW,
                       MG_FEATURE_BB,
                       MG_FEATURE_BB_R,
                       MG_FEATURE_BB_W,
                       MG_FEATURE_BB_R_W,
                       MG_FEATURE_BB_RW,
                       MG_FEATURE_BB_AND_BYTES, /* ours from here: bytes in dimensions of their own */
                       MG_FEATURE_BB_AND_WARPS,
                       MG_FEATURE_OPS,
                       MG_FEATURE_COUNT
};
enum { MG_FEATURE_GTPIN = 10 };
struct mg_feature {
    const char *name, *text;
};
extern const struct mg_feature mg_features[MG_FEATURE_COUNT];
int mg_feature_find(const char *name); /* -1: none */

struct mg_vector {
    uint64_t *keys;
    double *values;
    uint32_t n;
    double sum;
}; /* by key; owner: the set's arena */
struct mg_vectors {
    struct mg_arena arena;
    struct mg_interval *intervals;
    struct mg_vector *vectors; /* of each interval */
    uint32_t n;
    uint64_t *members;     /* launches of the program, interval by interval */
    double insts, time_ns; /* sums; time_ns NAN: not all timed */
    double *run_times;     /* [n_runs] of each interval: its time in each recorded run; NULL: not all timed */
    uint32_t n_runs;
    bool least; /* an interval's time is the least of them, not the median */
    uint64_t n_launches;
};

struct mg_feature_value {
    uint64_t key;
    double value;
};
struct mg_feature_values {
    MG_VEC(struct mg_feature_value) list;
};
/* Entries of one key are added up. The list is empty then. */
void mg_vector_store(struct mg_vectors *v, struct mg_feature_values *e, struct mg_vector *out);

/* Needs synchronising calls for MG_INTERVAL_SYNC: an error without them. Those of MG_INTERVAL_INSTRUCTIONS use them
 * where they are known. */
enum mg_err mg_vectors_init(struct mg_vectors *v, const struct mg_subset_program *s, enum mg_interval_kind kind,
                            enum mg_feature_kind feature, double interval_insts, struct mg_diag *d) MG_MUST_CHECK;
void mg_vectors_release(struct mg_vectors *v);

/* SimPoint's frequency vectors: a line "T:key:count :key:count ..." each. Keys are numbered from 1. */
void mg_vectors_print(const struct mg_vectors *v, struct mg_buf *out);
enum mg_err mg_vectors_parse(struct mg_vectors *v, const char *text, size_t bytes, const char *path,
                             struct mg_diag *d) MG_MUST_CHECK;
/* One row an interval: geometry, instructions by class, bytes, divergence, time. */
void mg_vectors_print_csv(const struct mg_vectors *v, const struct mg_subset_program *s, struct mg_buf *out);

#endif
