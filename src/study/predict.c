/* Terms of a launch, a fit by least squares of relative errors with costs >= 0, and what it predicts. */
#include "study/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "study/subset_estimate.h"

const char *const mg_term_names[MG_TERM_COUNT] = {/* ORDER TERMS */
                                                  "launch", "depth",  "simple", "float",  "double",  "special",
                                                  "matrix", "shared", "memory", "atomic", "barrier", "bytes"};

const char *const mg_predictor_names[MG_PREDICTOR_COUNT] = {/* ORDER PREDICTORS */
                                                            "model", "roofline", "carried", "scaled", "ratio"};

static enum mg_term term_of(enum mg_opclass c)
{
    switch (c) {
    case MG_OPCLASS_FLOAT:
        return MG_TERM_FLOAT;
    case MG_OPCLASS_DOUBLE:
        return MG_TERM_DOUBLE;
    case MG_OPCLASS_SPECIAL:
        return MG_TERM_SPECIAL;
    case MG_OPCLASS_MATRIX:
        return MG_TERM_MATRIX;
    case MG_OPCLASS_BARRIER:
        return MG_TERM_BARRIER;
    case MG_OPCLASS_SHARED_LOAD:
    case MG_OPCLASS_SHARED_STORE:
        return MG_TERM_SHARED;
    case MG_OPCLASS_GLOBAL_LOAD:
    case MG_OPCLASS_GLOBAL_STORE:
    case MG_OPCLASS_LOCAL_LOAD:
    case MG_OPCLASS_LOCAL_STORE:
    case MG_OPCLASS_TEXTURE:
        return MG_TERM_MEMORY;
    case MG_OPCLASS_GLOBAL_ATOMIC:
    case MG_OPCLASS_SHARED_ATOMIC:
        return MG_TERM_ATOMIC;
    default:
        return MG_TERM_SIMPLE;
    }
}

/* The part of a launch that its busiest multiprocessor has, when CTAs are dealt out evenly. */
static double busiest_part(const struct mg_plaunch *l, uint32_t units)
{
    double ctas = mg_launch_ctas(l);
    return ceil(ctas / units) / ctas;
}

static void find_terms(const struct mg_subset_program *s, const struct mg_subset_launch *x, uint32_t units, double *out)
{
    const struct mg_pkernel *k = &s->p->kernels[x->l->kernel];
    double warps = mg_launch_ctas(x->l) * ceil((double)x->l->block[0] * x->l->block[1] * x->l->block[2] / 32);
    double part = busiest_part(x->l, units), all = 0;
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        double n = x->l->warps ? (double)x->l->warps[b] : (double)x->l->threads[b] / 32;
        for (int c = 0; c < MG_OPCLASS_COUNT; c++) {
            double insts = n * s->kernels[x->l->kernel].blocks[b].ops[c];
            out[term_of((enum mg_opclass)c)] += part * insts;
            all += insts;
        }
    }
    out[MG_TERM_LAUNCH] = 1;
    out[MG_TERM_DEPTH] = all / warps;
    out[MG_TERM_BYTES] = x->read_bytes + x->written_bytes;
}

static double all_insts(const double *terms)
{
    double sum = 0;
    for (int p = MG_TERM_SIMPLE; p < MG_TERM_BYTES; p++) sum += terms[p];
    return sum;
}

static void note_best(struct mg_roofline *best, const double *terms, double time_ns)
{
    best->insts_per_ns = fmax(best->insts_per_ns, all_insts(terms) / time_ns);
    best->bytes_per_ns = fmax(best->bytes_per_ns, terms[MG_TERM_BYTES] / time_ns);
}

enum mg_err mg_known_program_init(struct mg_known_program *k, const struct mg_known_runs *r, uint32_t units,
                                  struct mg_arena *a, struct mg_diag *d)
{
    const struct mg_subset_program *s = r->counts;
    const struct mg_pprocess *p = r->timed->p->n_processes ? r->timed->p->processes : NULL;
    *k = (struct mg_known_program){.dir = s->dir, .native = r->timed->native_times};
    if (p && p->device_kind) k->kind = mg_arena_strndup(a, p->device_kind, strlen(p->device_kind));
    if (p && p->device_name) k->device = mg_arena_strndup(a, p->device_name, strlen(p->device_name));
    if (!units) units = k->kind && !strcmp(k->kind, "nvidia") && p->sms ? p->sms : 1;
    k->terms = mg_arena_zalloc(a, s->n_launches * sizeof *k->terms + 1);
    k->time_ns = mg_arena_array(a, double, s->n_launches + 1);
    for (uint64_t i = 0; i < s->n_launches; i++) {
        const struct mg_subset_launch *x = &s->launches[i];
        double time_ns = r->timed->launches[i].time_ns;
        if (isnan(x->insts) || !(time_ns > 0) || (r->other && !(r->other->launches[i].time_ns > 0))) continue;
        find_terms(s, x, units, k->terms[k->n]);
        note_best(&k->best, k->terms[k->n], time_ns);
        for (int t = 0; t < MG_TERM_COUNT; t++) k->sum_terms[t] += k->terms[k->n][t];
        k->sum_ns += time_ns;
        k->time_ns[k->n++] = time_ns;
    }
    k->n_left_out = s->n_launches - k->n;
    mg_known_rows_init(k, a);
    if (k->n) return MG_ERR_OK;
    return mg_diag_err(d, MG_ERR_INPUT,
                       r->other ? "%s: no launch has counts and a time on both devices"
                                : "%s: no launch has both counts and a time",
                       s->dir);
}

static enum mg_err check_kinds(const struct mg_known_program *x, const struct mg_known_program *first,
                               struct mg_diag *d)
{
    if (!x->kind || !first->kind || !strcmp(x->kind, first->kind)) return MG_ERR_OK;
    return mg_diag_err(d, MG_ERR_INPUT, "times are of two devices, which have costs of their own: %s of %s, %s of %s",
                       first->dir, first->kind, x->dir, x->kind);
}

enum mg_err mg_known_programs_check(const struct mg_known_program *k, uint32_t n, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    for (uint32_t i = 1; i < n && !err; i++) {
        err = check_kinds(&k[i], &k[0], d);
        if (!err && k[i].here && k[0].here) err = check_kinds(k[i].here, k[0].here, d);
    }
    return err;
}

static bool is_out(struct mg_left_out without, uint32_t i)
{
    return i == without.one || i == without.other;
}

const char *mg_fitted_lacks(const struct mg_fitted *f, const struct mg_known_program *k, enum mg_term t)
{
    for (uint64_t i = 0; i < k->n && !f->seen[t]; i++)
        if (k->terms[i][t] > 0) return mg_term_names[t];
    return NULL;
}

/* ---- predicting --------------------------------------------------------------------------------------------- */

struct learnt { /* from some programs */
    struct mg_fitted there, here;
    struct mg_roofline roofline;
    double by_time,
        by_costs; /* the times there, by the times at hand and by what the costs at hand say: geometric means */
};

static double roofline_time(const struct mg_roofline *r, const double *terms)
{
    double insts = r->insts_per_ns > 0 ? all_insts(terms) / r->insts_per_ns : 0;
    return fmax(insts, r->bytes_per_ns > 0 ? terms[MG_TERM_BYTES] / r->bytes_per_ns : 0);
}

static void learn_factors(struct learnt *l, const struct mg_known_program *k, uint32_t n, struct mg_left_out without)
{
    double by_time = 0, by_costs = 0, of = 0;
    for (uint32_t i = 0; i < n; i++) {
        double costs = is_out(without, i) ? 0 : mg_fitted_time(&l->here, k[i].here->sum_terms);
        if (!(costs > 0)) continue;
        by_time += log(k[i].sum_ns / k[i].here->sum_ns);
        by_costs += log(k[i].sum_ns / costs);
        of++;
    }
    l->by_time = exp(by_time / of);
    l->by_costs = exp(by_costs / of);
}

/* Its fits begin at those of l. */
static void learn(struct learnt *l, const struct mg_known_program *k, uint32_t n, struct mg_left_out without)
{
    *l = (struct learnt){.there = l->there, .here = l->here};
    mg_fitted_init(&l->there, k, n, without, false);
    for (uint32_t i = 0; i < n; i++) {
        if (is_out(without, i)) continue;
        l->roofline.insts_per_ns = fmax(l->roofline.insts_per_ns, k[i].best.insts_per_ns);
        l->roofline.bytes_per_ns = fmax(l->roofline.bytes_per_ns, k[i].best.bytes_per_ns);
    }
    if (!k->here) return;
    mg_fitted_init(&l->here, k, n, without, true);
    learn_factors(l, k, n, without);
}

static double predicted_time(const struct learnt *l, enum mg_predictor by, const struct mg_known_program *k, uint64_t i)
{
    double here;
    switch (by) {
    case MG_BY_MODEL:
        return mg_fitted_time(&l->there, k->terms[i]);
    case MG_BY_ROOFLINE:
        return roofline_time(&l->roofline, k->terms[i]);
    case MG_BY_CARRIED:
        return l->by_costs * mg_fitted_time(&l->here, k->here->terms[i]);
    case MG_BY_SCALED:
        return l->by_time * k->here->time_ns[i];
    case MG_BY_RATIO:
        here = mg_fitted_time(&l->here, k->here->terms[i]);
        return k->here->time_ns[i] * (here > 0 ? mg_fitted_time(&l->there, k->terms[i]) / here : l->by_time);
    default:
        return NAN;
    }
}

static double predicted_sum(const struct learnt *l, enum mg_predictor by, const struct mg_known_program *k)
{
    double sum = 0;
    for (uint64_t i = 0; i < k->n; i++) sum += predicted_time(l, by, k, i);
    return sum;
}

static void predict(struct mg_predicted *out, const struct learnt *l, enum mg_predictor by,
                    const struct mg_known_program *k)
{
    double *errors = mg_xcalloc(k->n, sizeof *errors);
    *out = (struct mg_predicted){.apart = NAN};
    for (uint64_t i = 0; i < k->n; i++) {
        double t = predicted_time(l, by, k, i);
        out->predicted_ns += t;
        errors[i] = 100 * fabs(t - k->time_ns[i]) / k->time_ns[i];
    }
    qsort(errors, k->n, sizeof *errors, mg_by_double);
    out->launch_error_pct = (errors[(k->n - 1) / 2] + errors[k->n / 2]) / 2;
    out->error_pct = 100 * fabs(out->predicted_ns - k->sum_ns) / k->sum_ns;
    double ratio = out->predicted_ns / k->sum_ns;
    out->off = ratio < 1 ? 1 / ratio : ratio;
    free(errors);
}

/* Squares of logarithms of how far off each other program is, predicted without it and without the one in question. */
static void add_squares(double (*squares)[MG_PREDICTOR_COUNT], const struct mg_known_program *k, uint32_t n, uint32_t i,
                        uint32_t j, struct learnt l)
{
    learn(&l, k, n, (struct mg_left_out){i, j});
    for (int by = 0; by < MG_PREDICTOR_COUNT; by++) {
        double a = log(predicted_sum(&l, (enum mg_predictor)by, &k[i]) / k[i].sum_ns),
               b = log(predicted_sum(&l, (enum mg_predictor)by, &k[j]) / k[j].sum_ns);
        squares[i][by] += b * b;
        squares[j][by] += a * a;
        if (by == MG_BY_ROOFLINE && !k->here) return;
    }
}

struct mg_prediction *mg_predict_each(const struct mg_known_program *k, uint32_t n)
{
    struct mg_prediction *out = mg_xcalloc(n, sizeof *out);
    double(*squares)[MG_PREDICTOR_COUNT] = mg_xcalloc(n, sizeof *squares);
    int predictors = k->here ? MG_PREDICTOR_COUNT : MG_BY_ROOFLINE + 1;
    for (uint32_t i = 0; i < n; i++) {
        struct learnt l = {0};
        learn(&l, k, n, (struct mg_left_out){i, UINT32_MAX});
        for (uint32_t j = i + 1; n > 2 && j < n; j++) add_squares(squares, k, n, i, j, l);
        out[i].fit = l.there;
        for (int by = 0; by < predictors; by++) {
            predict(&out[i].by[by], &l, (enum mg_predictor)by, &k[i]);
        }
    }
    for (uint32_t i = 0; n > 2 && i < n; i++)
        for (int by = 0; by < predictors; by++)
            out[i].by[by].apart = exp(mg_student_t(n - 1) * sqrt(squares[i][by] / (n - 1)));
    free(squares);
    return out;
}
