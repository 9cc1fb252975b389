/* k-means over projected vectors, and the BIC that chooses how many clusters. Equal points are one point of their
 * joint weight: programs repeat themselves, and k-means then costs what their distinct launches cost. */
#include "study/subset_cluster.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/order.h"

/* ---- projection ---------------------------------------------------------------------------------------- */

/* The distinct keys when there are no more than most; else most + 1. */
static uint32_t distinct_keys(const struct mg_vectors *v, uint32_t most, uint64_t *keys)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t j = 0; j < v->vectors[i].n; j++) {
            uint32_t at = 0;
            while (at < n && keys[at] != v->vectors[i].keys[j]) at++;
            if (at < n) continue;
            if (n == most) return most + 1;
            keys[n++] = v->vectors[i].keys[j];
        }
    qsort(keys, n, sizeof *keys, mg_by_u64);
    return n;
}

void mg_points_project(struct mg_points *p, const struct mg_vectors *v, uint32_t dims, uint64_t seed,
                       struct mg_arena *a)
{
    uint64_t *keys = mg_arena_array(a, uint64_t, dims + 1);
    uint32_t n_keys = distinct_keys(v, dims, keys);
    bool plain = n_keys <= dims;
    *p = (struct mg_points){.n = v->n, .dims = plain ? n_keys : dims};
    p->at = mg_arena_array(a, double, (size_t)p->n * p->dims + 1);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct mg_vector *x = &v->vectors[i];
        double *to = p->at + (size_t)i * p->dims;
        for (uint32_t j = 0; j < x->n; j++) {
            double share = x->values[j] / x->sum;
            uint64_t state = mg_mix64(x->keys[j] + seed * 0x9e3779b97f4a7c15u);
            if (plain)
                to[(const uint64_t *)bsearch(&x->keys[j], keys, n_keys, sizeof *keys, mg_by_u64) - keys] = share;
            else
                for (uint32_t c = 0; c < dims; c++) to[c] += share * (2 * mg_draw_unit(&state) - 1);
        }
    }
}

/* ---- points in an order of their own -------------------------------------------------------------------- */

struct distinct { /* equal points */
    const double *at;
    double weight;       /* sum, weights of mean 1 */
    uint32_t n, typical; /* how many; of those of median weight the middle one in the order of launches */
};
struct work {
    struct distinct *points;
    uint32_t n, dims;
    double n_points;  /* all, equal ones one by one */
    uint32_t *member; /* point -> distinct */
    const struct mg_cluster_opts *o;
    double *centres, *weights; /* of the run under way: [k * dims], [k] */
    uint32_t *of;
};

struct sortable {
    const double *at;
    double weight;
    uint32_t dims, ix;
};

static int by_place(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    for (uint32_t c = 0; c < x->dims; c++)
        if (x->at[c] != y->at[c]) return x->at[c] < y->at[c] ? -1 : 1;
    if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

static void find_distinct(struct work *w, const struct mg_points *p, const double *weights, struct mg_arena *a)
{
    struct sortable *s = mg_xcalloc(p->n, sizeof *s);
    double sum = 0;
    for (uint32_t i = 0; i < p->n; i++) s[i] = (struct sortable){p->at + (size_t)i * p->dims, weights[i], p->dims, i};
    qsort(s, p->n, sizeof *s, by_place);
    for (uint32_t i = 0; i < p->n; i++) sum += s[i].weight;
    w->points = mg_arena_array(a, struct distinct, p->n);
    w->member = mg_arena_array(a, uint32_t, p->n);
    w->dims = p->dims;
    w->n_points = p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        bool same = w->n && !memcmp(w->points[w->n - 1].at, s[i].at, p->dims * sizeof *s[i].at);
        if (!same) w->points[w->n++] = (struct distinct){.at = s[i].at};
        struct distinct *x = &w->points[w->n - 1];
        x->weight += s[i].weight * p->n / sum;
        x->n++;
        w->member[s[i].ix] = w->n - 1;
    }
    for (uint32_t i = 0, at = 0; i < w->n; at += w->points[i++].n) {
        uint32_t first = at + w->points[i].n / 2, last = first;
        while (first > at && s[first - 1].weight == s[last].weight) first--;
        while (last + 1 < at + w->points[i].n && s[last + 1].weight == s[first].weight) last++;
        w->points[i].typical = s[first + (last - first) / 2].ix;
    }
    free(s);
}

/* ---- k-means ---------------------------------------------------------------------------------------------- */

static double distance(const double *a, const double *b, uint32_t dims)
{
    double sum = 0;
    for (uint32_t c = 0; c < dims; c++) sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sum;
}

static uint32_t nearest_centre(const struct work *w, const double *at, uint32_t k, double *d)
{
    uint32_t best = 0;
    *d = DBL_MAX;
    for (uint32_t j = 0; j < k; j++) {
        double x = distance(at, w->centres + (size_t)j * w->dims, w->dims);
        if (x < *d) *d = x, best = j;
    }
    return best;
}

static void set_centre(struct work *w, uint32_t j, const double *at)
{
    memcpy(w->centres + (size_t)j * w->dims, at, w->dims * sizeof *at);
}

/* k different points, drawn. */
static void draw_centres(struct work *w, uint32_t k, uint64_t *state)
{
    uint32_t *order = mg_xcalloc(w->n, sizeof *order);
    for (uint32_t i = 0; i < w->n; i++) order[i] = i;
    for (uint32_t j = 0; j < k; j++) {
        uint32_t at = j + (uint32_t)mg_draw_below(state, w->n - j), x = order[at];
        order[at] = order[j];
        order[j] = x;
        set_centre(w, j, w->points[x].at);
    }
    free(order);
}

/* Each farthest from those before it; the first is the heaviest point. */
static void spread_centres(struct work *w, uint32_t k)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->points[i].weight > w->points[first].weight) first = i;
    set_centre(w, 0, w->points[first].at);
    for (uint32_t j = 1; j < k; j++) {
        double far = -1, d;
        uint32_t best = 0;
        for (uint32_t i = 0; i < w->n; i++) {
            nearest_centre(w, w->points[i].at, j, &d);
            if (d > far) far = d, best = i;
        }
        set_centre(w, j, w->points[best].at);
    }
}

static bool assign(struct work *w, uint32_t k)
{
    bool changed = false;
    double d;
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t j = nearest_centre(w, w->points[i].at, k, &d);
        changed |= w->of[i] != j;
        w->of[i] = j;
    }
    return changed;
}

static void move_centres(struct work *w, uint32_t k)
{
    memset(w->centres, 0, (size_t)k * w->dims * sizeof *w->centres);
    memset(w->weights, 0, k * sizeof *w->weights);
    for (uint32_t i = 0; i < w->n; i++) {
        double *to = w->centres + (size_t)w->of[i] * w->dims;
        for (uint32_t c = 0; c < w->dims; c++) to[c] += w->points[i].weight * w->points[i].at[c];
        w->weights[w->of[i]] += w->points[i].weight;
    }
    for (uint32_t j = 0; j < k; j++)
        for (uint32_t c = 0; w->weights[j] > 0 && c < w->dims; c++)
            w->centres[(size_t)j * w->dims + c] /= w->weights[j];
}

/* A centre without points goes to the point that is farthest from its own. */
static bool fill_empty(struct work *w, uint32_t k)
{
    bool filled = false;
    for (uint32_t j = 0; j < k; j++) {
        double far = 0;
        uint32_t best = UINT32_MAX;
        if (w->weights[j] > 0) continue;
        for (uint32_t i = 0; i < w->n; i++) {
            double d = distance(w->points[i].at, w->centres + (size_t)w->of[i] * w->dims, w->dims);
            if (d > far) far = d, best = i;
        }
        if (best == UINT32_MAX) continue;
        set_centre(w, j, w->points[best].at);
        w->weights[j] = w->points[best].weight;
        w->of[best] = j;
        filled = true;
    }
    return filled;
}

/* Ends with every point at its nearest centre, or after so many rounds; the sum of weighted squared distances. */
static double run_kmeans(struct work *w, uint32_t k)
{
    double sum = 0;
    memset(w->of, 0xff, w->n * sizeof *w->of);
    for (uint32_t round = 0; round < w->o->rounds; round++) {
        if (!assign(w, k)) break;
        move_centres(w, k);
        if (fill_empty(w, k)) move_centres(w, k);
    }
    for (uint32_t i = 0; i < w->n; i++)
        sum += w->points[i].weight * distance(w->points[i].at, w->centres + (size_t)w->of[i] * w->dims, w->dims);
    return sum;
}

/* SimPoint's BIC for intervals of any length; a variance below least_variance counts as that. */
static double bic_of(const struct work *w, uint32_t k, double distortion)
{
    double n = w->n_points, d = w->dims, sum = 0, weight = 0;
    double variance = fmax(distortion / (d * n), w->o->least_variance);
    for (uint32_t j = 0; j < k; j++) {
        weight += w->weights[j];
        if (w->weights[j] > 0) sum += w->weights[j] * log(w->weights[j]);
    }
    double likelihood = n * (-d / 2 * (log(2 * M_PI * variance) + 1) - log(weight) + sum / weight);
    return likelihood - log(n) / 2 * ((k - 1) + k * d + 1);
}

/* The best of several runs for k; its result is in w. */
static double best_of(struct work *w, uint32_t k, double *distortion)
{
    size_t bytes = (size_t)k * w->dims * sizeof(double);
    double best = -INFINITY;
    double *centres = mg_xmalloc(bytes + 1), *weights = mg_xmalloc(k * sizeof *weights);
    uint32_t *of = mg_xmalloc(w->n * sizeof *of), runs = k == 1 || k == w->n ? 1 : w->o->seeds + 1;
    for (uint32_t s = 0; s < runs; s++) {
        uint64_t state = mg_mix64(w->o->seed * 1000003u + (uint64_t)k * 1009u + s);
        if (s + 1 < runs)
            draw_centres(w, k, &state);
        else
            spread_centres(w, k);
        double sum = run_kmeans(w, k), bic = bic_of(w, k, sum);
        if (bic <= best) continue;
        best = bic;
        *distortion = sum;
        memcpy(centres, w->centres, bytes);
        memcpy(weights, w->weights, k * sizeof *weights);
        memcpy(of, w->of, w->n * sizeof *of);
    }
    memcpy(w->centres, centres, bytes);
    memcpy(w->weights, weights, k * sizeof *weights);
    memcpy(w->of, of, w->n * sizeof *of);
    free(centres);
    free(weights);
    free(of);
    return best;
}

/* ---- results ------------------------------------------------------------------------------------------------ */

static void init_work(struct work *w, const struct mg_points *p, const double *weights, const struct mg_cluster_opts *o,
                      uint32_t max_k, struct mg_arena *scratch)
{
    *w = (struct work){.o = o};
    find_distinct(w, p, weights, scratch);
    w->centres = mg_arena_array(scratch, double, (size_t)max_k * p->dims + 1);
    w->weights = mg_arena_array(scratch, double, max_k);
    w->of = mg_arena_array(scratch, uint32_t, w->n);
}

static void keep(struct mg_clustering *c, const struct work *w, const struct mg_points *p, const double *weights,
                 uint32_t k, double distortion, struct mg_arena *a)
{
    double *nearest = mg_arena_array(a, double, k);
    c->k = 0;
    c->distortion = distortion;
    c->of = mg_arena_array(a, uint32_t, p->n);
    c->nearest = mg_arena_array(a, uint32_t, k);
    c->weight = mg_arena_array(a, double, k);
    uint32_t *renamed = mg_arena_array(a, uint32_t, k);
    memset(renamed, 0xff, k * sizeof *renamed);
    for (uint32_t i = 0; i < p->n; i++) { /* clusters in order of their first launch; empty ones are none */
        uint32_t x = w->member[i], old = w->of[x];
        double d = distance(w->points[x].at, w->centres + (size_t)old * w->dims, w->dims);
        if (renamed[old] == UINT32_MAX) {
            renamed[old] = c->k++;
            nearest[renamed[old]] = DBL_MAX;
        }
        uint32_t j = c->of[i] = renamed[old];
        c->weight[j] += weights[i];
        if (d < nearest[j]) nearest[j] = d, c->nearest[j] = w->points[x].typical;
    }
}

void mg_clustering_init(struct mg_clustering *c, const struct mg_points *p, const double *weights,
                        const struct mg_cluster_opts *o, struct mg_arena *a)
{
    struct mg_arena scratch = MG_ARENA_INIT;
    struct work w;
    double least = INFINITY, most = -INFINITY, distortion = 0;
    *c = (struct mg_clustering){0};
    init_work(&w, p, weights, o, o->max_k, &scratch);
    uint32_t max_k = MG_MIN(o->max_k, w.n);
    c->bic = mg_arena_array(a, double, max_k);
    c->n_bic = max_k;
    for (uint32_t k = 1; k <= max_k; k++) {
        c->bic[k - 1] = best_of(&w, k, &distortion);
        least = fmin(least, c->bic[k - 1]);
        most = fmax(most, c->bic[k - 1]);
    }
    uint32_t k = 1;
    while (k < max_k && c->bic[k - 1] < least + o->bic_share * (most - least)) k++;
    best_of(&w, k, &distortion);
    keep(c, &w, p, weights, k, distortion, a);
    mg_arena_release(&scratch);
}

void mg_clustering_of(struct mg_clustering *c, const struct mg_points *p, const double *weights, uint32_t k,
                      const struct mg_cluster_opts *o, struct mg_arena *a)
{
    struct mg_arena scratch = MG_ARENA_INIT;
    struct work w;
    double distortion = 0;
    *c = (struct mg_clustering){0};
    init_work(&w, p, weights, o, k, &scratch);
    k = MG_MIN(k, w.n);
    c->bic = mg_arena_array(a, double, 1);
    c->n_bic = 1;
    c->bic[0] = best_of(&w, k, &distortion);
    keep(c, &w, p, weights, k, distortion, a);
    mg_arena_release(&scratch);
}
