/* Estimators over strata and their bootstrap. */
#include "study/subset_estimate.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/estimate.h"
#include "base/hash.h"
#include "base/order.h"
#include "study/subset_cluster.h"

enum { REPLICATES = 1000, LEAST_FOR_A_LINE = 5 };
#define SPREAD_FOR_A_LINE .05
#define Z95               1.959964
#define FAR_OUT           2.     /* standard deviations */
#define NORMAL            1.4826 /* a standard deviation, in median distances from the middle */

/* ---- one stratum ------------------------------------------------------------------------------------------ */

enum rule { BY_ALL, BY_MEAN, BY_RATIO, BY_LINE };
struct stratum {
    double N, X;        /* members, their sizes */
    double n, x, xx;    /* sampled ones: how many, sum of sizes, of squares */
    double least, most; /* sizes of all */
    double y, xy;       /* sampled values */
    enum rule rule;
    double ee;       /* sum of squared residuals */
    double variance; /* of the stratum's total */
    double free;     /* degrees of freedom of ee */
};

static enum rule rule_of(const struct stratum *h, enum mg_estimator e)
{
    if (h->n == h->N) return BY_ALL;
    if (e == MG_ESTIMATE_MEAN || h->most <= h->least * (1 + 1e-9)) return BY_MEAN;
    if (e == MG_ESTIMATE_RATIO) return BY_RATIO;
    double mean = h->x / h->n, spread = sqrt(fmax(h->xx / h->n - mean * mean, 0)) / mean;
    return h->n >= LEAST_FOR_A_LINE && spread >= SPREAD_FOR_A_LINE ? BY_LINE : BY_RATIO;
}

/* How often a sampled member of this size stands in the total. */
static double times_of(const struct stratum *h, double size)
{
    double mean = h->x / h->n, sxx = h->xx - h->x * mean;
    switch (h->rule) {
    case BY_ALL:
        return 1;
    case BY_MEAN:
        return h->N / h->n;
    case BY_RATIO:
        return h->X / h->x;
    case BY_LINE:
        return h->N / h->n + (h->X - h->N * mean) * (size - mean) / sxx;
    }
    return 0;
}

static struct stratum *sum_up(const struct mg_stratified *s, const double *values)
{
    struct stratum *all = mg_xcalloc(s->n_strata, sizeof *all);
    for (uint32_t i = 0; i < s->n; i++) {
        struct stratum *h = &all[s->stratum[i]];
        double x = s->size[i], y = s->sampled[i] && values ? values[i] : 0;
        h->least = h->N ? fmin(h->least, x) : x;
        h->most = fmax(h->most, x);
        h->N++;
        h->X += x;
        if (!s->sampled[i]) continue;
        h->n++;
        h->x += x;
        h->xx += x * x;
        h->y += y;
        h->xy += x * y;
    }
    for (uint32_t k = 0; k < s->n_strata; k++) {
        mg_assert(all[k].n > 0);
        all[k].rule = rule_of(&all[k], s->estimator);
    }
    for (uint32_t i = 0; i < s->n; i++) { /* a line that would take a member away from the total is none */
        struct stratum *h = &all[s->stratum[i]];
        if (s->sampled[i] && h->rule == BY_LINE && times_of(h, s->size[i]) <= 0) h->rule = BY_RATIO;
    }
    return all;
}

void mg_stratified_times(const struct mg_stratified *s, double *times)
{
    struct stratum *all = sum_up(s, NULL);
    for (uint32_t i = 0; i < s->n; i++) times[i] = s->sampled[i] ? times_of(&all[s->stratum[i]], s->size[i]) : 0;
    free(all);
}

/* ---- ratios without what lies far out --------------------------------------------------------------------------- */

struct weighed {
    double ratio, weight;
};

static int by_ratio(const void *a, const void *b)
{
    double x = ((const struct weighed *)a)->ratio, y = ((const struct weighed *)b)->ratio;
    return x < y ? -1 : x > y;
}

static double weighed_median(struct weighed *w, uint32_t n)
{
    double all = 0, below = 0;
    qsort(w, n, sizeof *w, by_ratio);
    for (uint32_t i = 0; i < n; i++) all += w[i].weight;
    for (uint32_t i = 0; i < n; i++)
        if ((below += w[i].weight) >= all / 2) return w[i].ratio;
    return 0;
}

double mg_stratified_robust(const struct mg_stratified *s, const double *values)
{
    double *times = mg_xcalloc(s->n, sizeof *times), total = 0;
    struct weighed *w = mg_xcalloc(s->n, sizeof *w);
    uint32_t n = 0;
    mg_stratified_times(s, times);
    for (uint32_t i = 0; i < s->n; i++)
        if (times[i] > 1) w[n++] = (struct weighed){values[i] / s->size[i], times[i] * s->size[i]};
    double middle = weighed_median(w, n);
    for (uint32_t i = 0; i < n; i++) w[i].ratio = fabs(w[i].ratio - middle);
    double far = FAR_OUT * NORMAL * weighed_median(w, n);
    for (uint32_t i = 0; i < s->n; i++) {
        double ratio = values[i] / s->size[i];
        if (times[i] > 1) ratio = fmin(fmax(ratio, middle - far), middle + far);
        total += times[i] > 0 ? times[i] * s->size[i] * ratio : 0;
    }
    free(times);
    free(w);
    return total;
}

/* ---- drawing ------------------------------------------------------------------------------------------------- */

struct drawing {
    double left, needed, N, seen;
}; /* of a stratum; spread: of the piece under way */

void mg_design_draw(const struct mg_design *g, uint64_t seed, bool *sampled)
{
    struct drawing *all = mg_xcalloc(g->n_strata, sizeof *all);
    uint64_t state = mg_mix64(seed + 5);
    for (uint32_t i = 0; i < g->n; i++) all[g->stratum[i]].N++;
    for (uint32_t h = 0; h < g->n_strata && !g->spread; h++) all[h].left = all[h].N, all[h].needed = g->size[h];
    for (uint32_t i = 0; i < g->n; i++) { /* each with the chance of what is still needed among what is left */
        uint32_t ix = g->order ? g->order[i] : i;
        struct drawing *x = &all[g->stratum[ix]];
        double pieces = g->size[g->stratum[ix]];
        if (g->spread && x->left < 1) { /* piece p is from p N / pieces to (p + 1) N / pieces */
            double p = floor(x->seen * pieces / x->N + 1e-9);
            x->left = ceil((p + 1) * x->N / pieces - 1e-9) - x->seen;
            x->needed = 1;
        }
        sampled[ix] = mg_draw_unit(&state) * x->left < x->needed;
        x->needed -= sampled[ix];
        x->left--;
        x->seen++;
    }
    free(all);
}

/* ---- the interval --------------------------------------------------------------------------------------------- */

static double residual(const struct stratum *h, double size, double value)
{
    double mean = h->x / h->n, sxx = h->xx - h->x * mean, slope;
    switch (h->rule) {
    case BY_ALL:
        return 0;
    case BY_MEAN:
        return value - h->y / h->n;
    case BY_RATIO:
        return value - h->y / h->x * size;
    case BY_LINE:
        slope = (h->xy - h->y * mean) / sxx;
        return value - h->y / h->n - slope * (size - mean);
    }
    return 0;
}

/* Residuals and variances; the relative spread that strata with one sampled member take is that of the others. */
static bool find_variances(const struct mg_stratified *s, const double *values, struct stratum *all)
{
    double relative = 0, free_in_all = 0;
    bool known = true;
    for (uint32_t i = 0; i < s->n; i++) {
        struct stratum *h = &all[s->stratum[i]];
        double e = s->sampled[i] ? residual(h, s->size[i], values[i]) : 0;
        h->ee += e * e;
    }
    for (uint32_t k = 0; k < s->n_strata; k++) {
        struct stratum *h = &all[k];
        h->free = h->rule == BY_ALL ? 0 : h->n - (h->rule == BY_LINE ? 2 : 1);
        if (h->free <= 0) continue;
        h->variance = h->N * h->N * (1 - h->n / h->N) * h->ee / h->free / h->n;
        double mean = h->y / h->n;
        if (mean > 0) {
            relative += h->ee / (mean * mean);
            free_in_all += h->free;
        }
    }
    for (uint32_t k = 0; k < s->n_strata; k++) {
        struct stratum *h = &all[k];
        if (h->rule == BY_ALL || h->free > 0) continue;
        if (free_in_all <= 0)
            known = false;
        else
            h->variance =
                h->N * h->N * (1 - h->n / h->N) * relative / free_in_all * (h->y / h->n) * (h->y / h->n) / h->n;
    }
    return known;
}

static double degrees_of(const struct stratum *all, uint32_t n)
{
    double sum = 0, squares = 0, free_in_all = 0;
    for (uint32_t k = 0; k < n; k++) free_in_all += all[k].free > 0 ? all[k].free : 0;
    for (uint32_t k = 0; k < n; k++) {
        double f = all[k].free > 0 ? all[k].free : fmax(free_in_all, 1);
        sum += all[k].variance;
        squares += all[k].variance * all[k].variance / f;
    }
    return squares > 0 ? sum * sum / squares : INFINITY;
}

/* Between the degrees of the table, too. */
double mg_student_t(double degrees)
{
    const double *t = mg_student_t95;
    if (!(degrees < 30)) {
        double z = Z95;
        return degrees < 1e9 ? z + (z * z * z + z) / (4 * degrees) : z;
    }
    if (degrees <= 1) return t[0];
    uint32_t below = (uint32_t)degrees;
    double part = (1 / (double)below - 1 / degrees) * below * (below + 1); /* between neighbours in 1 / degrees */
    return t[below - 1] + part * (t[below] - t[below - 1]);
}

/* A draw of the error of one stratum's total, from its residuals e[n]. */
static double draw_error(const struct stratum *h, const double *e, uint64_t *state)
{
    if (h->free <= 0) { /* its variance is that of others: two draws make a normal one */
        double r = sqrt(-2 * log(1 - mg_draw_unit(state)));
        return sqrt(h->variance) * r * cos(2 * M_PI * mg_draw_unit(state));
    }
    uint32_t n = (uint32_t)h->n;
    double sum = 0, scale = h->N * sqrt((1 - h->n / h->N) * (h->n - 1) / h->free);
    for (uint32_t k = 1; k < n; k++) sum += e[mg_draw_below(state, n)];
    return scale * sum / (n - 1);
}

struct mg_total mg_stratified_total(const struct mg_stratified *s, const double *values, uint64_t seed)
{
    struct mg_total total = {0, NAN, NAN};
    struct stratum *all = sum_up(s, values);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->sampled[i]) total.value += times_of(&all[s->stratum[i]], s->size[i]) * values[i];
    if (find_variances(s, values, all)) {
        uint32_t *first = mg_xcalloc(s->n_strata + 1, sizeof *first), *at = mg_xcalloc(s->n_strata + 1, sizeof *at);
        double *errors = mg_xcalloc(REPLICATES, sizeof *errors), *e = mg_xcalloc(s->n + 1, sizeof *e);
        for (uint32_t k = 0; k < s->n_strata; k++) at[k + 1] = first[k + 1] = first[k] + (uint32_t)all[k].n;
        for (uint32_t k = 0; k < s->n_strata; k++) at[k] = first[k];
        for (uint32_t i = 0; i < s->n; i++)
            if (s->sampled[i]) e[at[s->stratum[i]]++] = residual(&all[s->stratum[i]], s->size[i], values[i]);
        uint64_t state = mg_mix64(seed + 77);
        for (uint32_t r = 0; r < REPLICATES; r++)
            for (uint32_t k = 0; k < s->n_strata; k++)
                if (all[k].rule != BY_ALL) errors[r] += draw_error(&all[k], e + first[k], &state);
        qsort(errors, REPLICATES, sizeof *errors, mg_by_double);
        double wider = mg_student_t(degrees_of(all, s->n_strata)) / Z95;
        total.low = total.value - wider * errors[REPLICATES - REPLICATES / 40 - 1];
        total.high = total.value - wider * errors[REPLICATES / 40];
        free(first);
        free(at);
        free(errors);
        free(e);
    }
    free(all);
    return total;
}

double mg_stratified_value(const struct mg_stratified *s, const double *values)
{
    double total = 0;
    struct stratum *all = sum_up(s, values);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->sampled[i]) total += times_of(&all[s->stratum[i]], s->size[i]) * values[i];
    free(all);
    return total;
}

double mg_stratified_scatter(const struct mg_stratified *s, const double *values)
{
    double *parts = mg_xcalloc(s->n + 1, sizeof *parts), middle = 0;
    uint32_t n = 0;
    struct stratum *all = sum_up(s, values);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct stratum *h = &all[s->stratum[i]];
        if (s->sampled[i] && h->rule != BY_ALL && h->n >= 2 && values[i] > 0)
            parts[n++] = fabs(residual(h, s->size[i], values[i])) / values[i];
    }
    qsort(parts, n, sizeof *parts, mg_by_double);
    if (n) middle = (parts[(n - 1) / 2] + parts[n / 2]) / 2;
    free(all);
    free(parts);
    return middle;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

void mg_neyman_sizes(uint32_t n_strata, const double *n, const double *mean, const double *sigma, double epsilon,
                     const uint32_t *least, uint32_t *out)
{
    double sum = 0, total = 0;
    for (uint32_t h = 0; h < n_strata; h++) {
        sum += n[h] * sigma[h] * sqrt(mean[h]);
        total += n[h] * mean[h];
    }
    double bound = epsilon / Z95 * total;
    for (uint32_t h = 0; h < n_strata; h++) {
        double size = ceil(n[h] * sigma[h] / sqrt(mean[h]) * sum / (bound * bound) - 1e-9);
        out[h] = (uint32_t)fmin(fmax(size, least[h]), n[h]);
    }
}
