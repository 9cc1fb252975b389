/* Kernels at several grids: their points, the model of each, and what it says is best. */
#include "study/grids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"
#include "isa/resident.h"
#include "study/predict.h"

enum { LEAST_GRIDS = 4, MOST_TRIED = 20000 };
#define SAME    .02 /* counts may be off a line, or differ at one grid, by so much */
#define NEAR    1.01
#define WITHIN  1.05
#define TOO_FAR 3. /* a model that may be so many times off says nothing */

/* ---- points ------------------------------------------------------------------------------------------------- */

struct sample {
    uint32_t kernel;
    uint64_t ctas;
    double insts, time_ns;
};
struct collected {
    MG_VEC(struct sample) samples;
    MG_VEC(struct mg_grid_kernel) kernels;
};

static uint32_t resident_ctas(const struct mg_plaunch *l, const struct mg_pkernel *k, uint32_t sm, uint32_t warps)
{
    const char *limit;
    return mg_resident_ctas(mg_sm_limits(sm), warps, k->regs_native > 0 ? (uint32_t)k->regs_native : 0,
                            (uint64_t)l->static_shared_bytes + l->dyn_shared_bytes, &limit);
}

static uint32_t kernel_of(struct collected *c, const struct mg_subset_program *s, const struct mg_plaunch *l,
                          const struct mg_pprocess *timed, uint32_t units)
{
    uint64_t key = s->kernels[l->kernel].key;
    for (uint32_t i = 0; i < c->kernels.n; i++)
        if (c->kernels.at[i].key == key && !memcmp(c->kernels.at[i].block, l->block, sizeof l->block)) return i;
    const struct mg_pkernel *k = &s->p->kernels[l->kernel];
    bool gpu = timed->device_kind && !strcmp(timed->device_kind, "nvidia");
    uint32_t warps = MG_MAX((l->block[0] * l->block[1] * l->block[2] + 31) / 32, 1u);
    struct mg_grid_kernel *new = mg_vec_push(&c->kernels);
    *new = (struct mg_grid_kernel){.name = k->demangled, .key = key, .first = l};
    memcpy(new->block, l->block, sizeof l->block);
    new->model.warps = warps;
    new->model.units = units ? units : timed->sms;
    new->model.resident = gpu ? resident_ctas(l, k, timed->sm, warps) : 1;
    return c->kernels.n - 1;
}

/* The first argument, from 1, that is no pointer and has other bytes; 0: none. */
static uint32_t differing_argument(const struct mg_plaunch *a, const struct mg_plaunch *b)
{
    for (uint32_t i = 0; i < MG_MIN(a->n_args, b->n_args); i++) {
        const struct mg_store_arg *x = &a->args[i], *y = &b->args[i];
        if (x->kind == MG_ARG_POINTER && y->kind == MG_ARG_POINTER) continue;
        if (x->bytes != y->bytes || memcmp(x->value, y->value, x->bytes) != 0) return i + 1;
    }
    return 0;
}

static enum mg_err collect(struct collected *c, const struct mg_subset_program *s,
                           const struct mg_subset_program *timed, uint32_t units, struct mg_diag *d)
{
    const struct mg_pprocess *p = timed->p->n_processes ? timed->p->processes : NULL;
    if (!units && (!p || !p->device_kind || strcmp(p->device_kind, "nvidia") != 0 || !p->sms))
        return mg_diag_err(d, MG_ERR_INPUT,
                           "%s: --units says how many multiprocessors share its CTAs; on the CPU device, workers do",
                           timed->dir);
    for (uint64_t i = 0; i < s->n_launches; i++) {
        const struct mg_subset_launch *x = &s->launches[i];
        double insts =
            isnan(x->warp_insts) ? x->insts / 32 : x->warp_insts; /* full warps, where they were not counted */
        if (isnan(insts) || !(timed->launches[i].time_ns > 0)) continue;
        uint32_t kernel = kernel_of(c, s, x->l, p, units);
        struct mg_grid_kernel *k = &c->kernels.at[kernel];
        if (!k->differing) k->differing = differing_argument(k->first, x->l);
        *mg_vec_push(&c->samples) =
            (struct sample){kernel, (uint64_t)mg_launch_ctas(x->l), insts, timed->launches[i].time_ns};
    }
    return MG_ERR_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
    if (x->ctas != y->ctas) return x->ctas < y->ctas ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Samples lie by kernel, grid and time: each run of one grid is a point. */
static void make_points(struct collected *c, struct mg_arena *a)
{
    const struct sample *s = c->samples.at;
    for (uint32_t i = 0, n; i < c->samples.n; i += n) {
        struct mg_grid_kernel *k = &c->kernels.at[s[i].kernel];
        if (!k->points) k->points = mg_arena_zalloc(a, (c->samples.n - i) * sizeof *k->points);
        struct mg_grid_point *p = &k->points[k->n_points++];
        *p = (struct mg_grid_point){.ctas = s[i].ctas, .least_insts = s[i].insts, .most_insts = s[i].insts};
        for (n = 0; i + n < c->samples.n && s[i + n].kernel == s[i].kernel && s[i + n].ctas == p->ctas; n++) {
            p->least_insts = fmin(p->least_insts, s[i + n].insts);
            p->most_insts = fmax(p->most_insts, s[i + n].insts);
            p->insts += s[i + n].insts;
        }
        p->launches = n;
        p->insts /= n;
        p->time_ns = (s[i + (n - 1) / 2].time_ns + s[i + n / 2].time_ns) / 2;
    }
}

/* ---- the model ---------------------------------------------------------------------------------------------- */

static double up(uint64_t n, uint64_t by)
{
    return (double)((n + by - 1) / by);
}

static void find_terms(const struct mg_grid_model *m, uint64_t ctas, uint32_t units, double *out)
{
    double insts = m->insts + m->insts_each * (double)ctas;
    out[MG_GRID_FLOOR] = 1;
    out[MG_GRID_CHAIN] = insts / (double)(ctas * m->warps) * up(ctas, (uint64_t)units * m->resident);
    out[MG_GRID_BUSIEST] = insts / (double)ctas * up(ctas, units);
    out[MG_GRID_CTAS] = up(ctas, units);
    for (int t = 0; t < MG_GRID_TERM_COUNT; t++) out[t] = pow(out[t], m->power);
}

double mg_grid_predict(const struct mg_grid_model *m, uint64_t ctas, uint32_t units)
{
    double terms[MG_TERM_COUNT] = {0}, sum = 0;
    find_terms(m, ctas, units, terms);
    for (int t = 0; t < MG_GRID_TERM_COUNT; t++) sum += m->cost[t] * terms[t];
    return pow(sum, 1 / m->power);
}

static void fit(struct mg_grid_model *m, const struct mg_grid_kernel *k, uint32_t without)
{
    _Static_assert((int)MG_GRID_TERM_COUNT <= (int)MG_TERM_COUNT, "the same solver");
    struct mg_normal n = {0};
    double cost[MG_TERM_COUNT];
    for (uint32_t i = 0; i < k->n_points; i++) {
        double terms[MG_TERM_COUNT] = {0};
        if (i == without) continue;
        find_terms(m, k->points[i].ctas, m->units, terms);
        mg_normal_add(&n, terms, pow(k->points[i].time_ns, m->power), 1);
    }
    mg_normal_solve(&n, cost);
    memcpy(m->cost, cost, sizeof m->cost);
}

/* How far off, in the square mean of logarithms, is each grid between the others when it is left out? */
static double left_out(struct mg_grid_model m, const struct mg_grid_kernel *k)
{
    double sum = 0;
    for (uint32_t i = 1; i + 1 < k->n_points; i++) {
        fit(&m, k, i);
        double off = log(mg_grid_predict(&m, k->points[i].ctas, m.units) / k->points[i].time_ns);
        sum += off * off;
    }
    return sqrt(sum / (k->n_points - 2));
}

/* Instructions as a line over the grid, by least squares of relative errors. */
static void fit_insts(struct mg_grid_kernel *k)
{
    struct mg_normal n = {0};
    double cost[MG_TERM_COUNT];
    for (uint32_t i = 0; i < k->n_points; i++) {
        double terms[MG_TERM_COUNT] = {1, (double)k->points[i].ctas};
        mg_normal_add(&n, terms, k->points[i].insts, 1);
    }
    mg_normal_solve(&n, cost);
    k->model.insts = cost[0];
    k->model.insts_each = cost[1];
}

/* NULL: counts say that its work is the same at every grid. */
static const char *check_insts(const struct mg_grid_kernel *k, struct mg_arena *a)
{
    const struct mg_grid_point *first = &k->points[0];
    if (k->n_points < LEAST_GRIDS)
        return mg_arena_printf(a, "it ran at %u grid%s: %d or more are needed", k->n_points,
                               k->n_points == 1 ? "" : "s", LEAST_GRIDS);
    for (uint32_t i = 0; i < k->n_points; i++)
        if (k->points[i].most_insts > k->points[i].least_insts * (1 + SAME))
            return mg_arena_printf(a, "launches of %llu CTAs do different work: %.3g to %.3g warp instructions",
                                   (unsigned long long)k->points[i].ctas, k->points[i].least_insts,
                                   k->points[i].most_insts);
    if (k->model.insts < k->model.insts_each * (double)first->ctas)
        return "its work grows with its grid: the grid is the size of the problem";
    double grown = k->points[k->n_points - 1].insts / first->insts;
    if (k->differing && fabs(grown - 1) > SAME)
        return mg_arena_printf(a,
                               "arg %u differs between launches, and so do instructions, %.3g times over its grids:"
                               " it may be another problem",
                               k->differing - 1, fmax(grown, 1 / grown));
    for (uint32_t i = 0; i < k->n_points; i++) {
        const struct mg_grid_point *p = &k->points[i];
        double off = (k->model.insts + k->model.insts_each * (double)p->ctas) / p->insts - 1;
        if (fabs(off) > SAME)
            return mg_arena_printf(a, "its instructions follow no line over its grid: %.3g %% off at %llu CTAs",
                                   100 * off, (unsigned long long)p->ctas);
    }
    return NULL;
}

/* ---- what is best ------------------------------------------------------------------------------------------- */

/* Between the smallest and the largest grid that were run: the smallest that is nearly as good as the best. */
static void find_best(struct mg_grid_kernel *k)
{
    uint64_t from = k->points[0].ctas, to = k->points[k->n_points - 1].ctas;
    uint64_t step = (to - from) / MOST_TRIED > 1 ? k->model.units : 1;
    double least = INFINITY;
    for (uint64_t g = from; g <= to; g += step) least = fmin(least, mg_grid_predict(&k->model, g, k->model.units));
    for (k->best = from; k->best <= to; k->best += step) {
        k->best_ns = mg_grid_predict(&k->model, k->best, k->model.units);
        if (k->best_ns <= least * NEAR) break;
    }
    uint64_t each = (uint64_t)up(k->best, k->model.units);
    k->fewest_units = MG_MIN(k->model.units, k->best);
    k->fewest = k->best;
    k->fewest_ns = k->best_ns;
    for (uint32_t n = 1; n < k->fewest_units; n++) {
        double ns = n * each < from ? INFINITY : mg_grid_predict(&k->model, n * each, n);
        if (ns > k->best_ns * WITHIN) continue;
        k->fewest_units = n;
        k->fewest = n * each;
        k->fewest_ns = ns;
    }
}

static void study(struct mg_grid_kernel *k, struct mg_arena *a)
{
    static const double powers[] = {1, 2, 4, 8};
    static const double student[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23}; /* 95 %, 1 to 10 */
    struct mg_grid_model tried = k->model;
    double off = INFINITY;
    fit_insts(k);
    if ((k->why_not = check_insts(k, a))) return;
    tried.insts = k->model.insts;
    tried.insts_each = k->model.insts_each;
    for (size_t i = 0; i < MG_COUNT_OF(powers); i++) {
        tried.power = powers[i];
        double now = left_out(tried, k);
        if (now >= off) continue;
        off = now;
        k->model = tried;
    }
    fit(&k->model, k, UINT32_MAX);
    k->apart = exp(off * student[MG_MIN(k->n_points - 2, (uint32_t)MG_COUNT_OF(student)) - 1]);
    if (k->apart > TOO_FAR)
        k->why_not = mg_arena_printf(
            a, "its times do not follow its counts: a grid that is left out is predicted up to %.3g times off",
            k->apart);
    else
        find_best(k);
}

enum mg_err mg_grids_init(struct mg_grids *g, struct mg_subset_program *const *counts,
                          struct mg_subset_program *const *timed, uint32_t n, uint32_t units, struct mg_arena *a,
                          struct mg_diag *d)
{
    struct collected c = {0};
    enum mg_err err = MG_ERR_OK;
    for (uint32_t i = 0; i < n && !err; i++) err = collect(&c, counts[i], timed[i], units, d);
    if (!err && !c.samples.n)
        err = mg_diag_err(d, MG_ERR_INPUT, "%s: no launch has both counts and a time", counts[0]->dir);
    if (!err) {
        qsort(c.samples.at, c.samples.n, sizeof *c.samples.at, by_place);
        make_points(&c, a);
        for (uint32_t i = 0; i < c.kernels.n; i++) study(&c.kernels.at[i], a);
        g->n = c.kernels.n;
        g->kernels = mg_arena_array(a, struct mg_grid_kernel, g->n);
        memcpy(g->kernels, c.kernels.at, g->n * sizeof *g->kernels);
    }
    mg_vec_release(&c.samples);
    mg_vec_release(&c.kernels);
    return err;
}
