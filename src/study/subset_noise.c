/* Runs that might have been, and how much noisier a run is than the recorded ones. */
#include "study/subset_noise.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/order.h"
#include "study/subset_cluster.h"

enum { DRAWS = 400, PIECES = 16 };

double mg_join_times(double *times, uint32_t n, bool least)
{
    for (uint32_t i = 0; i < n; i++)
        if (isnan(times[i])) return NAN;
    if (n > 1) qsort(times, n, sizeof *times, mg_by_double);
    return least ? times[0] : (times[(n - 1) / 2] + times[n / 2]) / 2;
}

/* Of every member its value as joined from the runs `which`. */
static void join(const struct mg_recorded *runs, const uint32_t *which, uint32_t n, double *out)
{
    double times[MG_JOINED_MOST];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < runs->joined; k++)
            times[k] = runs->values[(uint64_t)i * runs->stride + which[k] * runs->step];
        out[i] = mg_join_times(times, runs->joined, runs->least);
    }
}

/* Members of each stratum, one after the other: those of h from first[h] to first[h + 1]. */
struct members {
    uint32_t *first, *at;
};
static struct members list_members(const struct mg_design *g)
{
    struct members m = {mg_xcalloc(g->n_strata + 2, sizeof(uint32_t)), mg_xcalloc(g->n + 1, sizeof(uint32_t))};
    for (uint32_t i = 0; i < g->n; i++) m.first[g->stratum[i] + 2]++;
    for (uint32_t h = 0; h < g->n_strata; h++) m.first[h + 2] += m.first[h + 1];
    for (uint32_t i = 0; i < g->n; i++) m.at[m.first[g->stratum[i] + 1]++] = i;
    return m;
}

/* Values per size move within each stratum, PIECES of it at a time. */
static void move(const struct mg_design *g, const struct members *m, const double *size, const double *from, double *to,
                 uint64_t *state)
{
    for (uint32_t h = 0; h < g->n_strata; h++) {
        const uint32_t *at = m->at + m->first[h];
        uint32_t n = m->first[h + 1] - m->first[h], length = (n + PIECES - 1) / PIECES, source = 0;
        for (uint32_t i = 0; i < n; i++) {
            source = i % length ? (source + 1) % n : (uint32_t)mg_draw_below(state, n);
            to[at[i]] = from[at[source]] * size[at[i]] / size[at[source]];
        }
    }
}

struct mg_errors mg_design_errors(const struct mg_design *g, const double *size, const struct mg_recorded *runs,
                                  enum mg_estimator e, uint64_t seed)
{
    double errors[DRAWS], *whole = mg_xcalloc(g->n + 1, sizeof *whole), *values = mg_xcalloc(g->n + 1, sizeof *values);
    bool *sampled = mg_xcalloc(g->n + 1, sizeof *sampled);
    struct members m = list_members(g);
    struct mg_stratified s = {g->n, g->n_strata, g->stratum, size, sampled, e};
    uint64_t state = mg_mix64(seed + 99);
    for (uint32_t r = 0; r < DRAWS; r++) {
        uint32_t which[MG_JOINED_MOST];
        double truth = 0;
        for (uint32_t k = 0; k < runs->joined; k++) which[k] = (uint32_t)mg_draw_below(&state, runs->n_runs);
        join(runs, which, g->n, whole);
        move(g, &m, size, whole, values, &state);
        for (uint32_t i = 0; i < g->n; i++) truth += values[i];
        mg_design_draw(g, mg_mix64(seed + r) + 1, sampled);
        errors[r] = truth / mg_stratified_value(&s, values) - 1;
    }
    qsort(errors, DRAWS, sizeof *errors, mg_by_double);
    free(whole);
    free(values);
    free(sampled);
    free(m.first);
    free(m.at);
    return (struct mg_errors){errors[DRAWS / 40 - 1], errors[DRAWS - DRAWS / 40]};
}

double mg_scatter_ratio(const struct mg_stratified *s, const double *values, const struct mg_recorded *runs)
{
    double *of = mg_xcalloc(s->n + 1, sizeof *of), most = 0;
    for (uint32_t r = 0; r < runs->n_runs; r++) {
        uint32_t which[MG_JOINED_MOST];
        for (uint32_t k = 0; k < runs->joined; k++) which[k] = (r + k) % runs->n_runs;
        join(runs, which, s->n, of);
        most = fmax(most, mg_stratified_scatter(s, of));
    }
    free(of);
    double scatter = mg_stratified_scatter(s, values);
    return scatter > 0 && most > 0 ? scatter / most : NAN;
}
