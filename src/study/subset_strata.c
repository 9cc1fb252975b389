/* Our own selection: strata by kernel, block shape and instruction counts; samples drawn at random in each, sized by
 * cost-weighted Neyman allocation from what is known without a time; the total by ratio to exact counts
 * (subset_estimate.h).
 *
 * The first launch of a kernel in a process is often slow (code is loaded, caches are cold) and stands for itself
 * alone. Times of the selecting run are used when asked for alone: strata also part where times per instruction do,
 * totals are by ratio to these times instead of counts, and of many samples that one is taken which projects them best.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "study/subset.h"

/* What is taken for the spread of times that counts do not explain: of equal launches, and as a part of that of counts.
 */
#define SPREAD_OF_EQUALS .04
#define PART_OF_COUNTS   .35
#define WIDEST           1.5  /* largest by smallest instruction count of a stratum */
#define SMALL_SHARE      1e-3 /* of all instructions: a stratum below it is not split, and one sample is enough */
#define THRESHOLD_PCT    2.
#define DRAWS            64 /* of which the best is taken, where times may be looked at */

struct member {
    uint32_t ix;
    double value, insts;
};
struct builder {
    struct mg_subset *s;
    uint32_t next;
    bool use_times;
};

static int by_value(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

static void close_stratum(struct builder *b, const struct member *m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) b->s->stratum[m[i].ix] = b->next;
    b->next++;
}

/* Where to part sorted values so that squares within are least; *part: what is left of them. */
static uint32_t best_cut(const struct member *m, uint32_t n, double *part)
{
    double sum = 0, squares = 0, left = 0, best = INFINITY;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += m[i].value;
        squares += m[i].value * m[i].value;
    }
    for (uint32_t i = 1; i < n; i++) {
        left += m[i - 1].value;
        double within = squares - left * left / i - (sum - left) * (sum - left) / (n - i);
        if (m[i].value > m[i - 1].value && within < best) best = within, at = i;
    }
    double whole = squares - sum * sum / n;
    *part = whole > 0 ? fmax(best, 0) / whole : 1;
    return at;
}

/* By time per instruction, where two or more ways to run lie far apart. */
static void split_by_time(struct builder *b, struct member *m, uint32_t n)
{
    double part;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_interval *x = &b->s->v->intervals[m[i].ix];
        m[i].value = x->time_ns / x->insts;
    }
    qsort(m, n, sizeof *m, by_value);
    uint32_t at = n >= 16 ? best_cut(m, n, &part) : 0;
    if (!at || part > .2 || m[n - 1].value < 1.2 * m[0].value) {
        close_stratum(b, m, n);
        return;
    }
    split_by_time(b, m, at);
    split_by_time(b, m + at, n - at);
}

/* By instructions; m is sorted by them. */
static void split_by_size(struct builder *b, struct member *m, uint32_t n)
{
    double part, insts = 0;
    for (uint32_t i = 0; i < n; i++) insts += m[i].insts;
    bool wide = m[n - 1].insts > WIDEST * m[0].insts && insts > SMALL_SHARE * b->s->v->insts;
    uint32_t at = wide ? best_cut(m, n, &part) : 0;
    if (at) {
        split_by_size(b, m, at);
        split_by_size(b, m + at, n - at);
    } else if (b->use_times) {
        split_by_time(b, m, n);
    } else {
        close_stratum(b, m, n);
    }
}

/* Launches of one kernel and block shape. */
static void add_group(struct builder *b, struct member *m, uint32_t n)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < n; i++)
        if (m[i].ix < m[first].ix) first = i;
    if (n > 2) { /* by itself, in a stratum of one */
        struct member x = m[first];
        memmove(m + first, m + first + 1, (n - first - 1) * sizeof *m);
        close_stratum(b, &x, 1);
        n--;
    }
    split_by_size(b, m, n);
}

static void build(struct builder *b)
{
    struct mg_subset *s = b->s;
    uint32_t *order = mg_subset_order(s);
    struct member *m = mg_xcalloc(s->v->n, sizeof *m);
    s->stratum = mg_arena_array(&s->arena, uint32_t, s->v->n);
    for (uint32_t i = 0; i < s->v->n;) {
        uint32_t n = 0;
        const struct mg_interval *first = &s->v->intervals[order[i]];
        for (; i < s->v->n; i++) {
            const struct mg_interval *x = &s->v->intervals[order[i]];
            if (x->kernel_key != first->kernel_key || x->shape_key != first->shape_key) break;
            m[n++] = (struct member){order[i], x->insts, x->insts};
        }
        add_group(b, m, n);
    }
    s->n_strata = s->clusters = b->next;
    free(order);
    free(m);
}

/* Sizes, counts, and the spread that is expected of times. */
struct sizes {
    double *n, *mean, *sigma;
    uint32_t *least, *size;
};

static void expect_spread(const struct mg_subset *s, struct sizes *z)
{
    double *squares = mg_xcalloc(s->n_strata, sizeof *squares);
    for (uint32_t i = 0; i < s->v->n; i++) {
        const struct mg_interval *x = &s->v->intervals[i];
        uint32_t h = s->stratum[i];
        z->n[h]++;
        z->mean[h] += x->insts;
        squares[h] += x->insts * x->insts;
    }
    for (uint32_t h = 0; h < s->n_strata; h++) {
        double share = z->mean[h] / s->v->insts, n = z->n[h];
        z->mean[h] /= n;
        double counts = fmax(squares[h] / n - z->mean[h] * z->mean[h], 0) / (z->mean[h] * z->mean[h]);
        double spread = SPREAD_OF_EQUALS * SPREAD_OF_EQUALS + PART_OF_COUNTS * PART_OF_COUNTS * counts;
        z->sigma[h] = z->mean[h] * sqrt(spread);
        z->least[h] = share < SMALL_SHARE ? 1 : 2;
    }
    free(squares);
}

/* The threshold that comes nearest to so many samples, from below. */
static double threshold_for(const struct sizes *z, uint32_t n_strata, uint32_t n)
{
    double low = 1e-6, high = 10;
    for (int i = 0; i < 60; i++) {
        double middle = sqrt(low * high);
        uint64_t sum = 0;
        mg_neyman_sizes(n_strata, z->n, z->mean, z->sigma, middle, z->least, z->size);
        for (uint32_t h = 0; h < n_strata; h++) sum += z->size[h];
        if (sum > n)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Of each interval its time as joined from every other recorded run, from the first or the second one on. */
static double *join_half(struct mg_subset *s, uint32_t first)
{
    const struct mg_vectors *v = s->v;
    double *out = mg_arena_array(&s->arena, double, v->n), *times = mg_xcalloc(v->n_runs, sizeof *times);
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t n = 0;
        for (uint32_t r = first; r < v->n_runs; r += 2) times[n++] = v->run_times[(size_t)i * v->n_runs + r];
        out[i] = fmax(mg_join_times(times, n, v->least), 1);
    }
    free(times);
    return out;
}

/* How far a sample's total lies from the true one. */
static double miss(const struct mg_subset *s, const bool *sampled, const double *size, const double *values,
                   enum mg_estimator e)
{
    struct mg_stratified st = {s->v->n, s->n_strata, s->stratum, size, sampled, e};
    double sum = 0;
    for (uint32_t i = 0; i < s->v->n; i++) sum += values[i];
    return fabs(mg_stratified_value(&st, values) / sum - 1);
}

/* The seed of the sample that projects best: recorded times from counts, and half of the recorded runs from the others.
 */
static uint64_t best_seed(struct mg_subset *s, uint64_t seed)
{
    const struct mg_vectors *v = s->v;
    struct mg_design g = {s->stratum, s->size, NULL, v->n, s->n_strata, s->spread};
    bool *sampled = mg_xcalloc(v->n, sizeof *sampled);
    double *insts = mg_xcalloc(v->n, sizeof *insts), *times = mg_xcalloc(v->n, sizeof *times), least = INFINITY;
    double *other = NULL;
    uint64_t best = seed;
    if (v->run_times && v->n_runs > 1) s->half = join_half(s, 0), other = join_half(s, 1);
    for (uint32_t i = 0; i < v->n; i++) insts[i] = v->intervals[i].insts, times[i] = v->intervals[i].time_ns;
    for (uint64_t k = 0; k < DRAWS; k++) {
        uint64_t with = mg_mix64(seed + k);
        mg_design_draw(&g, with, sampled);
        double far = miss(s, sampled, insts, times, MG_ESTIMATE_SIZE);
        if (other) far += miss(s, sampled, s->half, other, MG_ESTIMATE_RATIO);
        if (far < least) least = far, best = with;
    }
    free(sampled);
    free(insts);
    free(times);
    return best;
}

enum mg_err mg_select_strata(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    struct builder b = {.s = s, .use_times = o->use_times};
    double epsilon = (o->threshold_pct > 0 ? o->threshold_pct : THRESHOLD_PCT) / 100;
    if (o->use_times && isnan(s->v->time_ns))
        return mg_diag_err(d, MG_ERR_INPUT, "--use-times: not every launch of the first profile was timed");
    build(&b);
    uint32_t n = s->n_strata;
    struct sizes z = {mg_arena_array(&s->arena, double, n), mg_arena_array(&s->arena, double, n),
                      mg_arena_array(&s->arena, double, n), mg_arena_array(&s->arena, uint32_t, n),
                      mg_arena_array(&s->arena, uint32_t, n)};
    expect_spread(s, &z);
    if (o->n) epsilon = threshold_for(&z, n, o->n);
    mg_neyman_sizes(n, z.n, z.mean, z.sigma, epsilon, z.least, z.size);
    s->size = z.size;
    s->spread = true;
    s->by_times = o->use_times;
    if (o->use_times) s->estimator = MG_ESTIMATE_RATIO;
    mg_subset_draw(s, o->use_times ? best_seed(s, o->seed) : o->seed);
    mg_subset_pick_sampled(s);
    s->per_launch = true;
    return MG_ERR_OK;
}
