/* Terms of a launch, a fit by least squares of relative errors with costs >= 0, and what it predicts. */
#include "study/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"

const char *const mg_term_names[MG_TERM_COUNT] = {/* ORDER TERMS */
                                                  "launch", "depth",  "simple", "float",  "double",  "special",
                                                  "matrix", "shared", "memory", "atomic", "barrier", "bytes"};

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

enum mg_err mg_known_program_init(struct mg_known_program *k, const struct mg_subset_program *s,
                                  const struct mg_subset_program *timed, uint32_t units, struct mg_arena *a,
                                  struct mg_diag *d)
{
    const struct mg_pprocess *p = timed->p->n_processes ? timed->p->processes : NULL;
    *k = (struct mg_known_program){.dir = s->dir, .native = timed->native_times};
    if (p && p->device_kind) k->kind = mg_arena_strndup(a, p->device_kind, strlen(p->device_kind));
    if (p && p->device_name) k->device = mg_arena_strndup(a, p->device_name, strlen(p->device_name));
    if (!units) units = k->kind && !strcmp(k->kind, "nvidia") && p->sms ? p->sms : 1;
    k->terms = mg_arena_zalloc(a, s->n_launches * sizeof *k->terms + 1);
    k->time_ns = mg_arena_array(a, double, s->n_launches + 1);
    for (uint64_t i = 0; i < s->n_launches; i++) {
        const struct mg_subset_launch *x = &s->launches[i];
        double time_ns = timed->launches[i].time_ns;
        if (isnan(x->insts) || !(time_ns > 0)) continue;
        find_terms(s, x, units, k->terms[k->n]);
        k->time_ns[k->n++] = time_ns;
    }
    k->n_left_out = s->n_launches - k->n;
    if (k->n) return MG_ERR_OK;
    return mg_diag_err(d, MG_ERR_INPUT, "%s: no launch has both counts and a time", s->dir);
}

enum mg_err mg_known_programs_check(const struct mg_known_program *k, uint32_t n, struct mg_diag *d)
{
    for (uint32_t i = 1; i < n; i++)
        if (k[i].kind && k[0].kind && strcmp(k[i].kind, k[0].kind) != 0)
            return mg_diag_err(d, MG_ERR_INPUT,
                               "times are of two devices, which have costs of their own: %s of %s, %s of %s", k[0].dir,
                               k[0].kind, k[i].dir, k[i].kind);
    return MG_ERR_OK;
}

/* ---- the fit ------------------------------------------------------------------------------------------------ */

void mg_normal_add(struct mg_normal *m, const double *terms, double time, double weight)
{
    for (int p = 0; p < MG_TERM_COUNT; p++) {
        double x = terms[p] / time;
        m->b[p] += x * weight;
        for (int q = 0; q < MG_TERM_COUNT; q++) m->a[p][q] += x * terms[q] / time * weight;
    }
}

static void add_program(struct mg_normal *m, const struct mg_known_program *k)
{
    for (uint64_t i = 0; i < k->n; i++) mg_normal_add(m, k->terms[i], k->time_ns[i], 1 / (double)k->n);
}

/* One cost after the other until none moves; the problem is convex. */
void mg_normal_solve(const struct mg_normal *m, double *cost)
{
    for (int p = 0; p < MG_TERM_COUNT; p++) cost[p] = 0;
    for (int round = 0; round < 200000; round++) {
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

void mg_fitted_init(struct mg_fitted *f, const struct mg_known_program *k, uint32_t n, uint32_t without)
{
    struct mg_normal m = {0};
    *f = (struct mg_fitted){0};
    for (uint32_t i = 0; i < n; i++)
        if (i != without) add_program(&m, &k[i]);
    for (int p = 0; p < MG_TERM_COUNT; p++) f->seen[p] = m.a[p][p] > 0;
    mg_normal_solve(&m, f->cost_ns);
}

static double all_insts(const double *terms)
{
    double sum = 0;
    for (int p = MG_TERM_SIMPLE; p < MG_TERM_BYTES; p++) sum += terms[p];
    return sum;
}

void mg_roofline_init(struct mg_roofline *r, const struct mg_known_program *k, uint32_t n, uint32_t without)
{
    *r = (struct mg_roofline){0};
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t j = 0; i != without && j < k[i].n; j++) {
            r->insts_per_ns = fmax(r->insts_per_ns, all_insts(k[i].terms[j]) / k[i].time_ns[j]);
            r->bytes_per_ns = fmax(r->bytes_per_ns, k[i].terms[j][MG_TERM_BYTES] / k[i].time_ns[j]);
        }
}

/* ---- predicting --------------------------------------------------------------------------------------------- */

static double fitted_time(const void *model, const double *terms)
{
    const struct mg_fitted *f = model;
    double sum = 0;
    for (int p = 0; p < MG_TERM_COUNT; p++) sum += f->cost_ns[p] * terms[p];
    return sum;
}

static double roofline_time(const void *model, const double *terms)
{
    const struct mg_roofline *r = model;
    double insts = r->insts_per_ns > 0 ? all_insts(terms) / r->insts_per_ns : 0;
    return fmax(insts, r->bytes_per_ns > 0 ? terms[MG_TERM_BYTES] / r->bytes_per_ns : 0);
}

static struct mg_predicted predict(const struct mg_known_program *k, const void *model,
                                   double (*time)(const void *model, const double *terms))
{
    struct mg_predicted out = {0};
    double *errors = mg_xcalloc(k->n, sizeof *errors);
    for (uint64_t i = 0; i < k->n; i++) {
        double t = time(model, k->terms[i]);
        out.measured_ns += k->time_ns[i];
        out.predicted_ns += t;
        errors[i] = 100 * fabs(t - k->time_ns[i]) / k->time_ns[i];
    }
    qsort(errors, k->n, sizeof *errors, mg_by_double);
    out.launch_error_pct = (errors[(k->n - 1) / 2] + errors[k->n / 2]) / 2;
    out.error_pct = 100 * fabs(out.predicted_ns - out.measured_ns) / out.measured_ns;
    double ratio = out.predicted_ns / out.measured_ns;
    out.off = ratio < 1 ? 1 / ratio : ratio;
    free(errors);
    return out;
}

struct mg_predicted mg_fitted_predict(const struct mg_fitted *f, const struct mg_known_program *k)
{
    return predict(k, f, fitted_time);
}

const char *mg_fitted_lacks(const struct mg_fitted *f, const struct mg_known_program *k, enum mg_term t)
{
    for (uint64_t i = 0; i < k->n && !f->seen[t]; i++)
        if (k->terms[i][t] > 0) return mg_term_names[t];
    return NULL;
}

struct mg_predicted mg_roofline_predict(const struct mg_roofline *r, const struct mg_known_program *k)
{
    return predict(k, r, roofline_time);
}
