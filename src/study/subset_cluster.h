/* Clustering of feature vectors as SimPoint 3 does it: vectors of sum 1, random projection, k-means for every number of
 * clusters, the smallest number whose BIC is near the best. Deterministic by seed, and the same whatever the order of
 * the vectors: they are sorted by what they hold before anything is drawn or added up. */
#ifndef MG_STUDY_SUBSET_CLUSTER_H
#define MG_STUDY_SUBSET_CLUSTER_H

#include "study/subset_vector.h"

struct mg_points {
    double *at;
    uint32_t n, dims;
}; /* at[n * dims]; owner: who asked for them */
struct mg_cluster_opts {
    uint32_t max_k;  /* 10 */
    uint32_t dims;   /* 15; fewer keys than that are not projected */
    uint32_t seeds;  /* 5 draws of first centres, and one of centres far apart */
    uint32_t rounds; /* 100 */
    uint64_t seed;
    double bic_share;      /* 0.9 of the way from the least BIC to the largest */
    double least_variance; /* below it points count as one: 1e-8 */
};
#define MG_CLUSTER_OPTS                                                                                                \
    {                                                                                                                  \
        .max_k = 10, .dims = 15, .seeds = 5, .rounds = 100, .seed = 1, .bic_share = .9, .least_variance = 1e-8         \
    }

struct mg_clustering { /* owner: the arena that was given */
    uint32_t k;
    uint32_t *of;      /* cluster of each point */
    uint32_t *nearest; /* of each cluster: the point nearest to its centre; of equals that of median weight, then the
                          middle one */
    double *weight;    /* of each cluster: sum of its points' weights */
    double *bic;       /* [n_bic]: of 1, 2, ... clusters */
    uint32_t n_bic;
    double distortion; /* weighted squared distances, weights of mean 1 */
};

/* Vectors scaled to sum 1 and projected. */
void mg_points_project(struct mg_points *p, const struct mg_vectors *v, uint32_t dims, uint64_t seed,
                       struct mg_arena *a);
/* Each number of clusters from 1 to max_k, the best by BIC. weights: of each point, more than 0. */
void mg_clustering_init(struct mg_clustering *c, const struct mg_points *p, const double *weights,
                        const struct mg_cluster_opts *o, struct mg_arena *a);
/* One number of clusters. */
void mg_clustering_of(struct mg_clustering *c, const struct mg_points *p, const double *weights, uint32_t k,
                      const struct mg_cluster_opts *o, struct mg_arena *a);

/* Random numbers, the same everywhere. */
static inline uint64_t mg_draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static inline double mg_draw_unit(uint64_t *state) /* 0 <= x < 1 */
{
    return (double)(mg_draw(state) >> 11) * 0x1p-53;
}
static inline uint64_t mg_draw_below(uint64_t *state, uint64_t n)
{
    return (uint64_t)((unsigned __int128)mg_draw(state) * n >> 64);
}

#endif
