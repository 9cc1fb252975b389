/* Selections after other authors, written anew from what their papers say: PKA (MICRO 2021), Sieve (ISPASS 2023),
 * STEM and ROOT (MICRO 2025). docs/studies/subset.md says where a paper leaves a choice open, and what was chosen. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/subset.h"

/* ---- PKA --------------------------------------------------------------------------------------------------- */

enum { PKA_COUNTS = 10, PKA_MOST = 20 };

/* Ten of its twelve counters; coalesced global loads and stores are not in a profile of block counts. */
static void pka_counts(const struct mg_subset *s, uint32_t i, double out[PKA_COUNTS])
{
    static const enum mg_opclass classes[] = {MG_OPCLASS_GLOBAL_LOAD,  MG_OPCLASS_GLOBAL_STORE, MG_OPCLASS_LOCAL_LOAD,
                                              MG_OPCLASS_LOCAL_STORE,  MG_OPCLASS_SHARED_LOAD,  MG_OPCLASS_SHARED_STORE,
                                              MG_OPCLASS_GLOBAL_ATOMIC};
    const struct mg_interval *x = &s->v->intervals[i];
    for (uint32_t c = 0; c < MG_COUNT_OF(classes); c++) out[c] = x->ops[classes[c]];
    out[7] = x->insts;
    out[8] = isnan(x->warp_insts) ? 1 : x->insts / (32 * x->warp_insts);
    out[9] = x->ctas;
}

/* Eigenvectors of a symmetric matrix by Jacobi's rotations; values[n] and the columns of vectors. */
static void find_eigenvectors(double a[PKA_COUNTS][PKA_COUNTS], double v[PKA_COUNTS][PKA_COUNTS])
{
    for (int i = 0; i < PKA_COUNTS; i++)
        for (int j = 0; j < PKA_COUNTS; j++) v[i][j] = i == j;
    for (int sweep = 0; sweep < 100; sweep++) {
        double off = 0;
        for (int p = 0; p < PKA_COUNTS; p++)
            for (int q = p + 1; q < PKA_COUNTS; q++) {
                off += a[p][q] * a[p][q];
                if (fabs(a[p][q]) < 1e-300) continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1),
                       sn = t * c;
                for (int k = 0; k < PKA_COUNTS; k++) {
                    double x = a[k][p], y = a[k][q];
                    a[k][p] = c * x - sn * y;
                    a[k][q] = sn * x + c * y;
                }
                for (int k = 0; k < PKA_COUNTS; k++) {
                    double x = a[p][k], y = a[q][k];
                    a[p][k] = c * x - sn * y;
                    a[q][k] = sn * x + c * y;
                    x = v[k][p], y = v[k][q];
                    v[k][p] = c * x - sn * y;
                    v[k][q] = sn * x + c * y;
                }
            }
        if (off < 1e-22) return;
    }
}

/* Counts scaled to mean 0 and variance 1, turned into the components that hold 99.95 % of the variance. */
static void pka_points(const struct mg_subset *s, struct mg_points *p, struct mg_arena *a)
{
    uint32_t n = s->v->n;
    double(*x)[PKA_COUNTS] = mg_xcalloc(n, sizeof *x), mean[PKA_COUNTS] = {0}, spread[PKA_COUNTS] = {0};
    double m[PKA_COUNTS][PKA_COUNTS] = {{0}}, v[PKA_COUNTS][PKA_COUNTS], all = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        pka_counts(s, i, x[i]);
        for (int c = 0; c < PKA_COUNTS; c++) mean[c] += x[i][c] / n;
    }
    for (uint32_t i = 0; i < n; i++)
        for (int c = 0; c < PKA_COUNTS; c++) spread[c] += (x[i][c] - mean[c]) * (x[i][c] - mean[c]) / n;
    for (uint32_t i = 0; i < n; i++) {
        for (int c = 0; c < PKA_COUNTS; c++)
            x[i][c] = spread[c] > 1e-18 * mean[c] * mean[c] ? (x[i][c] - mean[c]) / sqrt(spread[c]) : 0;
        for (int c = 0; c < PKA_COUNTS; c++)
            for (int e = 0; e < PKA_COUNTS; e++) m[c][e] += x[i][c] * x[i][e] / n;
    }
    find_eigenvectors(m, v);
    int order[PKA_COUNTS];
    for (int c = 0; c < PKA_COUNTS; c++) {
        int at = c;
        for (; at && m[order[at - 1]][order[at - 1]] < m[c][c]; at--) order[at] = order[at - 1];
        order[at] = c;
        all += m[c][c];
    }
    *p = (struct mg_points){.n = n};
    while (p->dims < PKA_COUNTS && (!p->dims || kept < .9995 * all))
        kept += m[order[p->dims]][order[p->dims]], p->dims++;
    p->at = mg_arena_array(a, double, (size_t)n * p->dims);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < p->dims; c++)
            for (int e = 0; e < PKA_COUNTS; e++) p->at[(size_t)i * p->dims + c] += x[i][e] * v[e][order[c]];
    free(x);
}

/* The first interval of each cluster, as often as the cluster has members; the error of the time so projected. */
static double pka_error(const struct mg_subset *s, const struct mg_clustering *k, struct mg_pick *picks)
{
    double projected = 0;
    for (uint32_t j = 0; j < k->k; j++) picks[j] = (struct mg_pick){UINT32_MAX, 0};
    for (uint32_t i = 0; i < s->v->n; i++) {
        struct mg_pick *x = &picks[k->of[i]];
        if (x->interval == UINT32_MAX) x->interval = i;
        x->times++;
    }
    for (uint32_t j = 0; j < k->k; j++) projected += picks[j].times * s->v->intervals[picks[j].interval].time_ns;
    return 100 * fabs(projected - s->v->time_ns) / s->v->time_ns;
}

enum mg_err mg_select_pka(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    struct mg_cluster_opts c = MG_CLUSTER_OPTS;
    struct mg_pick picks[PKA_MOST], best[PKA_MOST];
    struct mg_points p;
    double target = o->threshold_pct > 0 ? o->threshold_pct : 5, least = INFINITY;
    double *ones = mg_arena_array(&s->arena, double, s->v->n);
    (void)d;
    c.seed = o->seed;
    for (uint32_t i = 0; i < s->v->n; i++) ones[i] = 1;
    pka_points(s, &p, &s->arena);
    for (uint32_t k = 1; k <= PKA_MOST && k <= s->v->n && least > target; k++) {
        struct mg_clustering x;
        mg_clustering_of(&x, &p, ones, k, &c, &s->arena);
        double error = pka_error(s, &x, picks);
        if (error >= least) continue;
        least = error;
        s->clusters = x.k;
        s->label = x.of;
        memcpy(best, picks, sizeof best);
    }
    for (uint32_t j = 0; j < s->clusters; j++) mg_subset_pick(s, best[j].interval, best[j].times);
    s->per_launch = true;
    return MG_ERR_OK;
}

/* ---- Sieve --------------------------------------------------------------------------------------------------- */

/* Of the launches with the commonest CTA size, the first; it stands for the stratum's instructions. */
static void sieve_pick(struct mg_subset *s, const uint32_t *at, uint32_t n)
{
    uint32_t best = 0, most = 0;
    double insts = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0, first = at[i];
        insts += s->v->intervals[at[i]].insts;
        for (uint32_t j = 0; j < n; j++)
            if (s->v->intervals[at[j]].shape_key == s->v->intervals[at[i]].shape_key)
                same++, first = MG_MIN(first, at[j]);
        if (same > most || (same == most && first < best)) most = same, best = first;
        if (2 * same >= n && i == 0) { /* no other is commoner */
            for (uint32_t j = 1; j < n; j++) insts += s->v->intervals[at[j]].insts;
            break;
        }
    }
    mg_subset_pick(s, best, insts / s->v->intervals[best].insts);
    s->clusters++;
}

/* Density of instruction counts at x: a normal kernel of Silverman's width. */
static double density(const double *values, uint32_t n, double width, double x)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        double z = (values[i] - x) / width;
        if (fabs(z) < 8) sum += exp(-z * z / 2);
    }
    return sum;
}

/* Parts the sorted counts where their density is least between two peaks. */
static void sieve_split(struct mg_subset *s, const uint32_t *at, uint32_t n, double spread)
{
    enum { STEPS = 200 };
    double *x = mg_xcalloc(n, sizeof *x), d[STEPS + 1];
    for (uint32_t i = 0; i < n; i++) x[i] = s->v->intervals[at[i]].insts;
    double quartiles = x[3 * (uint64_t)n / 4] - x[n / 4],
           scale = quartiles > 0 ? fmin(spread, quartiles / 1.34) : spread;
    double width = .9 * scale * pow(n, -.2), low = x[0], step = (x[n - 1] - x[0]) / STEPS;
    for (int i = 0; i <= STEPS; i++) d[i] = density(x, n, width, low + i * step);
    uint32_t from = 0;
    for (int i = 1, falls = 0; i <= STEPS; i++) {
        if (d[i] < d[i - 1])
            falls = 1;
        else if (d[i] > d[i - 1] && falls) { /* i - 1 is least */
            uint32_t to = from;
            while (to < n && x[to] <= low + (i - 1) * step) to++;
            if (to > from) sieve_pick(s, at + from, to - from);
            from = to;
            falls = 0;
        }
    }
    if (from < n) sieve_pick(s, at + from, n - from);
    free(x);
}

struct sized {
    double insts;
    uint32_t ix;
};

static int by_insts(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->insts != y->insts) return x->insts < y->insts ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

enum mg_err mg_select_sieve(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    uint32_t *order = mg_subset_order(s), *at = mg_xcalloc(s->v->n, sizeof *at);
    struct sized *x = mg_xcalloc(s->v->n, sizeof *x);
    (void)o;
    (void)d;
    for (uint32_t i = 0; i < s->v->n;) {
        uint64_t key = s->v->intervals[order[i]].kernel_key;
        uint32_t n = 0;
        double sum = 0, squares = 0;
        for (; i < s->v->n && s->v->intervals[order[i]].kernel_key == key; i++)
            x[n++] = (struct sized){s->v->intervals[order[i]].insts, order[i]};
        qsort(x, n, sizeof *x, by_insts);
        for (uint32_t j = 0; j < n; j++) {
            at[j] = x[j].ix;
            sum += x[j].insts;
            squares += x[j].insts * x[j].insts;
        }
        double mean = sum / n, spread = sqrt(fmax(squares / n - mean * mean, 0));
        if (x[0].insts == x[n - 1].insts) {
            mg_subset_pick(s, at[0], n);
            s->clusters++;
        } else if (spread < .4 * mean) {
            sieve_pick(s, at, n);
        } else {
            sieve_split(s, at, n, spread);
        }
    }
    free(order);
    free(at);
    free(x);
    return MG_ERR_OK;
}

/* ---- STEM and ROOT --------------------------------------------------------------------------------------------- */

struct timed {
    double time;
    uint32_t ix;
};
struct root {
    struct mg_subset *s;
    double epsilon;
    uint32_t next;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

/* What sampling this part alone to the bound would cost: n mu. */
static double cost_of(const struct timed *t, uint32_t n, double epsilon)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += t[i].time;
        squares += t[i].time * t[i].time;
    }
    double mean = sum / n, variance = fmax(squares / n - mean * mean, 0);
    double size = ceil(1.96 * 1.96 * variance / (epsilon * epsilon * mean * mean));
    return fmin(fmax(size, 1), n) * mean;
}

/* ROOT: 2-means on time, for as long as the parts cost less than the whole. */
static void root_split(struct root *r, struct timed *t, uint32_t n)
{
    double sum = 0, left = 0, best = -1;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) sum += t[i].time;
    for (uint32_t i = 1; i < n; i++) {
        left += t[i - 1].time;
        double between = left * left / i + (sum - left) * (sum - left) / (n - i);
        if (t[i].time > t[i - 1].time && between > best) best = between, at = i;
    }
    if (at && cost_of(t, at, r->epsilon) + cost_of(t + at, n - at, r->epsilon) < cost_of(t, n, r->epsilon)) {
        root_split(r, t, at);
        root_split(r, t + at, n - at);
        return;
    }
    for (uint32_t i = 0; i < n; i++) r->s->stratum[t[i].ix] = r->next;
    r->next++;
}

static void stem_sizes(struct mg_subset *s, double epsilon, uint32_t *size)
{
    double *n = mg_xcalloc(s->n_strata, sizeof *n), *mean = mg_xcalloc(s->n_strata, sizeof *mean);
    double *sigma = mg_xcalloc(s->n_strata, sizeof *sigma);
    uint32_t *least = mg_xcalloc(s->n_strata, sizeof *least);
    for (uint32_t i = 0; i < s->v->n; i++) {
        double t = s->v->intervals[i].time_ns;
        n[s->stratum[i]]++;
        mean[s->stratum[i]] += t;
        sigma[s->stratum[i]] += t * t;
    }
    for (uint32_t h = 0; h < s->n_strata; h++) {
        mean[h] /= n[h];
        sigma[h] = sqrt(fmax(sigma[h] / n[h] - mean[h] * mean[h], 0));
        least[h] = 1;
    }
    mg_neyman_sizes(s->n_strata, n, mean, sigma, epsilon, least, size);
    free(n);
    free(mean);
    free(sigma);
    free(least);
}

enum mg_err mg_select_stem(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    uint32_t *order = mg_subset_order(s);
    struct timed *t = mg_xcalloc(s->v->n, sizeof *t);
    struct root r = {.s = s, .epsilon = (o->threshold_pct > 0 ? o->threshold_pct : 5) / 100};
    (void)d;
    s->stratum = mg_arena_array(&s->arena, uint32_t, s->v->n);
    for (uint32_t i = 0; i < s->v->n;) {
        uint64_t key = s->v->intervals[order[i]].kernel_key;
        uint32_t n = 0;
        for (; i < s->v->n && s->v->intervals[order[i]].kernel_key == key; i++)
            t[n++] = (struct timed){s->v->intervals[order[i]].time_ns, order[i]};
        qsort(t, n, sizeof *t, by_time);
        root_split(&r, t, n);
    }
    free(order);
    free(t);
    s->n_strata = s->clusters = r.next;
    s->size = mg_arena_array(&s->arena, uint32_t, s->n_strata);
    stem_sizes(s, r.epsilon, s->size);
    s->estimator = MG_ESTIMATE_MEAN;
    mg_subset_draw(s, o->seed);
    mg_subset_pick_sampled(s);
    s->per_launch = true;
    return MG_ERR_OK;
}
