/* Costs >= 0 that make sums of costs times terms times of launches: least squares of relative errors for one kernel's
 * grids, of logarithms for programs. With relative errors half is as far off as one and a half, so a fit of programs
 * that differ by factors would say too little; a logarithm takes half and twice as equally far off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/predict.h"

enum { STEPS = 40, ROUNDS = 2000 };
#define FAR 1e3 /* a step takes a prediction that is further off as so far off */

void mg_normal_add(struct mg_normal *m, const double *terms, double time, double weight)
{
    for (int p = 0; p < MG_TERM_COUNT; p++) {
        double x = terms[p] / time;
        m->b[p] += x * weight;
        for (int q = 0; q < MG_TERM_COUNT; q++) m->a[p][q] += x * terms[q] / time * weight;
    }
}

/* One cost after the other until none moves; the problem is convex. */
static void descend(const struct mg_normal *m, double *cost, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        double moved = 0;
        for (int p = 0; p < MG_TERM_COUNT; p++) {
            if (m->a[p][p] <= 0) continue;
            double rest = m->b[p];
            for (int q = 0; q < MG_TERM_COUNT; q++)
                if (q != p) rest -= m->a[p][q] * cost[q];
            double now = fmax(rest / m->a[p][p], 0);
            moved = fmax(moved, fabs(now - cost[p]) * sqrt(m->a[p][p]));
            cost[p] = now;
        }
        if (moved < 1e-12) return;
    }
}

void mg_normal_solve(const struct mg_normal *m, double *cost)
{
    for (int p = 0; p < MG_TERM_COUNT; p++) cost[p] = 0;
    descend(m, cost, 200000);
}

/* ---- of programs ------------------------------------------------------------------------------------------------ */

static int by_terms(const void *a, const void *b)
{
    return memcmp(((const struct mg_known_row *)a)->terms, ((const struct mg_known_row *)b)->terms,
                  sizeof((const struct mg_known_row *)a)->terms);
}

void mg_known_rows_init(struct mg_known_program *k, struct mg_arena *a)
{
    k->rows = mg_arena_zalloc(a, k->n * sizeof *k->rows + 1);
    for (uint64_t i = 0; i < k->n; i++) {
        memcpy(k->rows[i].terms, k->terms[i], sizeof k->rows[i].terms);
        k->rows[i].weight = 1 / (double)k->n;
        k->rows[i].log_ns = log(k->time_ns[i]);
    }
    if (k->n) qsort(k->rows, k->n, sizeof *k->rows, by_terms);
    for (uint64_t i = 0, end; i < k->n; i = end) {
        struct mg_known_row sum = k->rows[i];
        sum.weight = sum.log_ns = 0;
        for (end = i; end < k->n && !by_terms(&sum, &k->rows[end]); end++) {
            sum.weight += k->rows[end].weight;
            sum.log_ns += k->rows[end].weight * k->rows[end].log_ns;
        }
        sum.log_ns /= sum.weight;
        k->rows[k->n_rows++] = sum;
    }
}

double mg_fitted_time(const struct mg_fitted *f, const double *terms)
{
    double sum = 0;
    for (int p = 0; p < MG_TERM_COUNT; p++) sum += f->cost_ns[p] * terms[p];
    return sum;
}

struct fit {
    const struct mg_known_program *const *k;
    uint32_t n;
};

static double distance(const struct mg_fitted *f, const struct mg_known_row *r)
{
    return log(fmax(mg_fitted_time(f, r->terms), 1e-300)) - r->log_ns;
}

static double squares(const struct fit *x, const struct mg_fitted *f)
{
    double sum = 0;
    for (uint32_t i = 0; i < x->n; i++)
        for (uint64_t j = 0; j < x->k[i]->n_rows; j++) {
            double far = distance(f, &x->k[i]->rows[j]);
            sum += x->k[i]->rows[j].weight * far * far;
        }
    return sum;
}

/* Around f each logarithm is taken as a line in the costs. */
static void linearize(const struct fit *x, const struct mg_fitted *f, struct mg_normal *m)
{
    *m = (struct mg_normal){0};
    for (uint32_t i = 0; i < x->n; i++)
        for (uint64_t j = 0; j < x->k[i]->n_rows; j++) {
            const struct mg_known_row *r = &x->k[i]->rows[j];
            double far = fmin(fmax(distance(f, r), -log(FAR)), log(FAR));
            double ns = exp(r->log_ns + far), target = 1 - far;
            for (int p = 0; p < MG_TERM_COUNT; p++) {
                double t = r->terms[p] / ns * r->weight;
                m->b[p] += t * target;
                for (int q = 0; q < MG_TERM_COUNT; q++) m->a[p][q] += t * r->terms[q] / ns;
            }
        }
}

/* A step towards what the lines say, as long as it is one downwards. False: there is none. */
static bool step(const struct fit *x, struct mg_fitted *f, double *now)
{
    struct mg_normal m;
    struct mg_fitted to = *f, tried = *f;
    linearize(x, f, &m);
    descend(&m, to.cost_ns, ROUNDS);
    for (double part = 1; part > 1e-3; part /= 2) {
        for (int p = 0; p < MG_TERM_COUNT; p++)
            tried.cost_ns[p] = f->cost_ns[p] + part * (to.cost_ns[p] - f->cost_ns[p]);
        double then = squares(x, &tried);
        if (then >= *now) continue;
        bool more = then < *now * (1 - 1e-7);
        *f = tried;
        *now = then;
        return more;
    }
    return false;
}

/* What these programs have; without costs to begin at, those of small relative errors. */
static void start(const struct fit *x, struct mg_fitted *f)
{
    struct mg_normal m = {0};
    bool empty = true;
    for (uint32_t i = 0; i < x->n; i++)
        for (uint64_t j = 0; j < x->k[i]->n_rows; j++) {
            const struct mg_known_row *r = &x->k[i]->rows[j];
            mg_normal_add(&m, r->terms, exp(r->log_ns), r->weight);
        }
    for (int p = 0; p < MG_TERM_COUNT; p++) {
        f->seen[p] = m.a[p][p] > 0;
        if (!f->seen[p]) f->cost_ns[p] = 0;
        empty = empty && !f->cost_ns[p];
    }
    if (empty) descend(&m, f->cost_ns, ROUNDS);
}

void mg_fitted_init(struct mg_fitted *f, const struct mg_known_program *k, uint32_t n, struct mg_left_out without,
                    bool here)
{
    const struct mg_known_program **of = mg_xcalloc(n + 1, sizeof(const struct mg_known_program *));
    struct fit x = {of, 0};
    for (uint32_t i = 0; i < n; i++)
        if (i != without.one && i != without.other) of[x.n++] = here ? k[i].here : &k[i];
    start(&x, f);
    double now = squares(&x, f);
    for (int i = 0; i < STEPS && step(&x, f, &now); i++) {
    }
    free(of);
}
