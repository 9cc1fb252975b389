/* Predictions with each program left out of the fit, as text and JSON. */
#include <math.h>

#include "study/predict.h"

struct pair {
    struct mg_predicted model, roofline;
    struct mg_fitted fit;
};

static struct pair predict_left_out(const struct mg_known_program *k, uint32_t n, uint32_t i)
{
    struct pair x;
    struct mg_roofline r;
    mg_fitted_init(&x.fit, k, n, i);
    mg_roofline_init(&r, k, n, i);
    x.model = mg_fitted_predict(&x.fit, &k[i]);
    x.roofline = mg_roofline_predict(&r, &k[i]);
    return x;
}

/* Geometric means: of errors, those below 0.01 % taken as that, and of how many times predictions are off. */
struct means {
    double error, off;
};
static void add_to(struct means *m, const struct mg_predicted *x, uint32_t n)
{
    m->error += log(fmax(x->error_pct, .01)) / n;
    m->off += log(x->off) / n;
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

void mg_prediction_text(const struct mg_known_program *k, uint32_t n, struct mg_buf *out)
{
    struct mg_fitted f;
    struct means model = {0}, roofline = {0};
    struct mg_buf notes = MG_BUF_INIT;
    mg_fitted_init(&f, k, n, UINT32_MAX);
    mg_buf_printf(out, "each program predicted from the %u other%s\n\n%-40s %10s %10s %10s %12s %12s %10s %12s\n",
                  n - 1, n == 2 ? "" : "s", "program", "launches", "times off", "error %", "a launch %",
                  "roofline:", "error %", "a launch %");
    for (uint32_t i = 0; i < n; i++) {
        struct pair x = predict_left_out(k, n, i);
        add_to(&model, &x.model, n);
        add_to(&roofline, &x.roofline, n);
        mg_buf_printf(out, "%-40.40s %10llu %10.4g %10.4g %12.4g %12.4g %10.4g %12.4g\n", k[i].dir,
                      (unsigned long long)k[i].n, x.model.off, x.model.error_pct, x.model.launch_error_pct,
                      x.roofline.off, x.roofline.error_pct, x.roofline.launch_error_pct);
        add_notes(&k[i], &x.fit, &notes);
    }
    mg_buf_printf(out, "%-40s %10s %10.4g %10.4g %12s %12.4g %10.4g\n\n", "geometric mean", "", exp(model.off),
                  exp(model.error), "", exp(roofline.off), exp(roofline.error));
    if (notes.at && *notes.at) mg_buf_printf(out, "%s\n", notes.at);
    mg_buf_printf(out, "%-10s cost in ns, from all programs\n", "term");
    for (int p = 0; p < MG_TERM_COUNT; p++)
        if (f.seen[p]) mg_buf_printf(out, "%-10s %.6g\n", mg_term_names[p], f.cost_ns[p]);
    mg_buf_release(&notes);
}

static void add_predicted(struct mg_json *j, const char *key, const struct mg_predicted *x)
{
    mg_json_key(j, key);
    mg_json_obj(j);
    mg_json_key_f64(j, "predicted_ns", x->predicted_ns);
    mg_json_key_f64(j, "off", x->off);
    mg_json_key_f64(j, "error_pct", x->error_pct);
    mg_json_key_f64(j, "launch_error_pct", x->launch_error_pct);
    mg_json_end(j, '}');
}

void mg_prediction_json(const struct mg_known_program *k, uint32_t n, struct mg_buf *out)
{
    struct mg_json j;
    struct mg_fitted f;
    struct means model = {0}, roofline = {0};
    mg_fitted_init(&f, k, n, UINT32_MAX);
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "programs");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < n; i++) {
        struct pair x = predict_left_out(k, n, i);
        add_to(&model, &x.model, n);
        add_to(&roofline, &x.roofline, n);
        mg_json_obj(&j);
        mg_json_key_str(&j, "dir", k[i].dir);
        mg_json_key_str(&j, "device", k[i].device);
        mg_json_key_u64(&j, "launches", k[i].n);
        mg_json_key_u64(&j, "launches_left_out", k[i].n_left_out);
        mg_json_key_str(&j, "times", k[i].native ? "native" : "instrumented");
        mg_json_key(&j, "lacks");
        mg_json_arr(&j);
        for (int t = 0; t < MG_TERM_COUNT; t++) {
            const char *name = mg_fitted_lacks(&x.fit, &k[i], (enum mg_term)t);
            if (name) mg_json_str(&j, name);
        }
        mg_json_end(&j, ']');
        mg_json_key_f64(&j, "measured_ns", x.model.measured_ns);
        add_predicted(&j, "model", &x.model);
        add_predicted(&j, "roofline", &x.roofline);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_key_f64(&j, "off", exp(model.off));
    mg_json_key_f64(&j, "roofline_off", exp(roofline.off));
    mg_json_key_f64(&j, "error_pct", exp(model.error));
    mg_json_key_f64(&j, "roofline_error_pct", exp(roofline.error));
    mg_json_key(&j, "costs");
    mg_json_arr(&j);
    for (int p = 0; p < MG_TERM_COUNT; p++) {
        mg_json_obj(&j);
        mg_json_key_str(&j, "term", mg_term_names[p]);
        mg_json_key_f64_if(&j, "ns", f.seen[p], f.cost_ns[p]);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}
