/* Predictions with each program left out of the fit, as text and JSON. */
#include <math.h>
#include <stdlib.h>

#include "study/predict.h"

/* Of one predictor over all programs. Geometric means: of errors, those below 0.01 % taken as that, of how many times
 * predictions are off, of intervals. */
struct means {
    double error, off, apart; /* apart: NAN where no interval is known */
    uint32_t held;            /* programs whose time lies within its interval */
};

static bool holds(const struct mg_predicted *x)
{
    return x->off <= x->apart;
}

static struct means means_of(const struct mg_prediction *p, uint32_t n, enum mg_predictor by)
{
    struct means m = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_predicted *x = &p[i].by[by];
        m.error += log(fmax(x->error_pct, .01)) / n;
        m.off += log(x->off) / n;
        m.apart += log(x->apart) / n;
        m.held += holds(x);
    }
    return (struct means){exp(m.error), exp(m.off), exp(m.apart), m.held};
}

static uint32_t predictors_of(const struct mg_known_program *k)
{
    return k->here ? MG_PREDICTOR_COUNT : MG_BY_ROOFLINE + 1;
}

/* What a reader of the table has to know of one program. */
static void add_notes(const struct mg_known_program *k, const struct mg_fitted *f, struct mg_buf *out)
{
    const char *sep = "";
    if (k->n_left_out)
        mg_buf_printf(out, "%s: %llu launches are left out: they have no counts or no time\n", k->dir,
                      (unsigned long long)k->n_left_out);
    if (!k->native)
        mg_buf_printf(out, "%s: its times are of instrumented kernels: COUNTS=TIMES takes native ones\n", k->dir);
    for (int t = 0; t < MG_TERM_COUNT; t++) {
        const char *name = mg_fitted_lacks(f, k, (enum mg_term)t);
        if (!name) continue;
        if (!*sep) mg_buf_printf(out, "%s: no other program has ", k->dir);
        mg_buf_printf(out, "%s%s", sep, name);
        sep = ", ";
    }
    if (*sep) mg_buf_adds(out, ": that costs nothing in its prediction\n");
}

static void add_programs(const struct mg_known_program *k, const struct mg_prediction *p, uint32_t n,
                         struct mg_buf *out)
{
    mg_buf_printf(out, "each program predicted from the %u other%s\n\n%-40s %10s %10s %10s %12s %12s %10s %12s\n",
                  n - 1, n == 2 ? "" : "s", "program", "launches", "times off", "error %", "a launch %",
                  "roofline:", "error %", "a launch %");
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_predicted *m = &p[i].by[MG_BY_MODEL], *r = &p[i].by[MG_BY_ROOFLINE];
        mg_buf_printf(out, "%-40.40s %10llu %10.4g %10.4g %12.4g %12.4g %10.4g %12.4g\n", k[i].dir,
                      (unsigned long long)k[i].n, m->off, m->error_pct, m->launch_error_pct, r->off, r->error_pct,
                      r->launch_error_pct);
    }
    struct means m = means_of(p, n, MG_BY_MODEL), r = means_of(p, n, MG_BY_ROOFLINE);
    mg_buf_printf(out, "%-40s %10s %10.4g %10.4g %12s %12.4g %10.4g\n\n", "geometric mean", "", m.off, m.error, "",
                  r.off, r.error);
}

/* What the device at hand tells of the other: how many times off, by each predictor. */
static void add_across(const struct mg_known_program *k, const struct mg_prediction *p, uint32_t n, struct mg_buf *out)
{
    mg_buf_printf(out, "from times on a device %s to times on a device %s, times off\n\n%-40s",
                  k->here->kind ? k->here->kind : "?", k->kind ? k->kind : "?", "program");
    for (int by = 0; by < MG_PREDICTOR_COUNT; by++) mg_buf_printf(out, " %10s", mg_predictor_names[by]);
    for (uint32_t i = 0; i < n; i++) {
        mg_buf_printf(out, "\n%-40.40s", k[i].dir);
        for (int by = 0; by < MG_PREDICTOR_COUNT; by++) mg_buf_printf(out, " %10.4g", p[i].by[by].off);
    }
    mg_buf_printf(out, "\n%-40s", "geometric mean");
    for (int by = 0; by < MG_PREDICTOR_COUNT; by++)
        mg_buf_printf(out, " %10.4g", means_of(p, n, (enum mg_predictor)by).off);
    mg_buf_adds(out, "\n\n");
}

static void add_intervals(const struct mg_known_program *k, const struct mg_prediction *p, uint32_t n,
                          struct mg_buf *out)
{
    for (uint32_t by = 0; by < predictors_of(k); by++) {
        struct means m = means_of(p, n, (enum mg_predictor)by);
        mg_buf_printf(out,
                      "%s: the time lies within a factor of %.3g, 95 times in 100 (geometric mean); it did for "
                      "%u of %u programs\n",
                      mg_predictor_names[by], m.apart, m.held, n);
    }
    mg_buf_addc(out, '\n');
}

void mg_prediction_text(const struct mg_known_program *k, uint32_t n, struct mg_buf *out)
{
    struct mg_fitted f = {0};
    struct mg_prediction *p = mg_predict_each(k, n);
    struct mg_buf notes = MG_BUF_INIT;
    mg_fitted_init(&f, k, n, (struct mg_left_out){UINT32_MAX, UINT32_MAX}, false);
    add_programs(k, p, n, out);
    if (k->here) add_across(k, p, n, out);
    if (n > 2) add_intervals(k, p, n, out);
    for (uint32_t i = 0; i < n; i++) add_notes(&k[i], &p[i].fit, &notes);
    if (notes.at && *notes.at) mg_buf_printf(out, "%s\n", notes.at);
    mg_buf_printf(out, "%-10s cost in ns, from all programs\n", "term");
    for (int t = 0; t < MG_TERM_COUNT; t++)
        if (f.seen[t]) mg_buf_printf(out, "%-10s %.6g\n", mg_term_names[t], f.cost_ns[t]);
    mg_buf_release(&notes);
    free(p);
}

static void add_predicted(struct mg_json *j, const char *key, const struct mg_predicted *x)
{
    mg_json_key(j, key);
    mg_json_obj(j);
    mg_json_key_f64(j, "predicted_ns", x->predicted_ns);
    mg_json_key_f64(j, "off", x->off);
    mg_json_key_f64(j, "error_pct", x->error_pct);
    mg_json_key_f64(j, "launch_error_pct", x->launch_error_pct);
    mg_json_key_f64_if(j, "apart", !isnan(x->apart), x->apart);
    if (isnan(x->apart))
        mg_json_key_str(j, "holds", NULL);
    else
        mg_json_key_bool(j, "holds", holds(x));
    mg_json_end(j, '}');
}

static void add_program(struct mg_json *j, const struct mg_known_program *k, const struct mg_prediction *p)
{
    mg_json_obj(j);
    mg_json_key_str(j, "dir", k->dir);
    mg_json_key_str(j, "device", k->device);
    mg_json_key_u64(j, "launches", k->n);
    mg_json_key_u64(j, "launches_left_out", k->n_left_out);
    mg_json_key_str(j, "times", k->native ? "native" : "instrumented");
    mg_json_key(j, "lacks");
    mg_json_arr(j);
    for (int t = 0; t < MG_TERM_COUNT; t++) {
        const char *name = mg_fitted_lacks(&p->fit, k, (enum mg_term)t);
        if (name) mg_json_str(j, name);
    }
    mg_json_end(j, ']');
    mg_json_key_f64(j, "measured_ns", k->sum_ns);
    mg_json_key_str(j, "here_device", k->here ? k->here->device : NULL);
    mg_json_key_f64_if(j, "here_ns", k->here, k->here ? k->here->sum_ns : 0);
    for (uint32_t by = 0; by < predictors_of(k); by++) add_predicted(j, mg_predictor_names[by], &p->by[by]);
    mg_json_end(j, '}');
}

static void add_means(struct mg_json *j, const struct mg_known_program *k, const struct mg_prediction *p, uint32_t n)
{
    mg_json_key(j, "predictors");
    mg_json_arr(j);
    for (uint32_t by = 0; by < predictors_of(k); by++) {
        struct means m = means_of(p, n, (enum mg_predictor)by);
        mg_json_obj(j);
        mg_json_key_str(j, "predictor", mg_predictor_names[by]);
        mg_json_key_f64(j, "off", m.off);
        mg_json_key_f64(j, "error_pct", m.error);
        mg_json_key_f64_if(j, "apart", n > 2, m.apart);
        mg_json_key_u64_if(j, "held", n > 2, m.held);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

void mg_prediction_json(const struct mg_known_program *k, uint32_t n, struct mg_buf *out)
{
    struct mg_json j;
    struct mg_fitted f = {0};
    struct mg_prediction *p = mg_predict_each(k, n);
    mg_fitted_init(&f, k, n, (struct mg_left_out){UINT32_MAX, UINT32_MAX}, false);
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "programs");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < n; i++) add_program(&j, &k[i], &p[i]);
    mg_json_end(&j, ']');
    struct means model = means_of(p, n, MG_BY_MODEL), roofline = means_of(p, n, MG_BY_ROOFLINE);
    mg_json_key_f64(&j, "off", model.off);
    mg_json_key_f64(&j, "roofline_off", roofline.off);
    mg_json_key_f64(&j, "error_pct", model.error);
    mg_json_key_f64(&j, "roofline_error_pct", roofline.error);
    add_means(&j, k, p, n);
    mg_json_key(&j, "costs");
    mg_json_arr(&j);
    for (int t = 0; t < MG_TERM_COUNT; t++) {
        mg_json_obj(&j);
        mg_json_key_str(&j, "term", mg_term_names[t]);
        mg_json_key_f64_if(&j, "ns", f.seen[t], f.cost_ns[t]);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
    free(p);
}
