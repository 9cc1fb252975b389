/* Predictions with each program left out of the fit, as text and JSON. */
#include <math.h>

#include "study/predict.h"

struct pair {
    struct mg_predicted model, roofline;
};

static struct pair predict_left_out(const struct mg_known_program *k, uint32_t n, uint32_t i)
{
    struct mg_fitted f;
    struct mg_roofline r;
    mg_fitted_init(&f, k, n, i);
    mg_roofline_init(&r, k, n, i);
    return (struct pair){mg_fitted_predict(&f, &k[i]), mg_roofline_predict(&r, &k[i])};
}

/* The geometric mean of errors, those below 0.01 % taken as that. */
static double add_error(double sum, double error, uint32_t n)
{
    return sum + log(fmax(error, .01)) / n;
}

void mg_prediction_text(const struct mg_known_program *k, uint32_t n, struct mg_buf *out)
{
    struct mg_fitted f;
    double model = 0, roofline = 0;
    mg_fitted_init(&f, k, n, UINT32_MAX);
    mg_buf_printf(out, "each program predicted from the %u others\n\n%-40s %10s %12s %12s %14s %14s\n", n - 1,
                  "program", "launches", "error %", "a launch %", "roofline %", "a launch %");
    for (uint32_t i = 0; i < n; i++) {
        struct pair x = predict_left_out(k, n, i);
        model = add_error(model, x.model.error_pct, n);
        roofline = add_error(roofline, x.roofline.error_pct, n);
        mg_buf_printf(out, "%-40.40s %10llu %12.4g %12.4g %14.4g %14.4g\n", k[i].dir, (unsigned long long)k[i].n,
                      x.model.error_pct, x.model.launch_error_pct, x.roofline.error_pct, x.roofline.launch_error_pct);
    }
    mg_buf_printf(out, "%-40s %10s %12.4g %12s %14.4g\n\n%-10s cost in ns, from all programs\n", "geometric mean", "",
                  exp(model), "", exp(roofline), "term");
    for (int p = 0; p < MG_TERM_COUNT; p++)
        if (f.seen[p]) mg_buf_printf(out, "%-10s %.6g\n", mg_term_names[p], f.cost_ns[p]);
}

static void add_predicted(struct mg_json *j, const char *key, const struct mg_predicted *x)
{
    mg_json_key(j, key);
    mg_json_obj(j);
    mg_json_key_f64(j, "predicted_ns", x->predicted_ns);
    mg_json_key_f64(j, "error_pct", x->error_pct);
    mg_json_key_f64(j, "launch_error_pct", x->launch_error_pct);
    mg_json_end(j, '}');
}

void mg_prediction_json(const struct mg_known_program *k, uint32_t n, struct mg_buf *out)
{
    struct mg_json j;
    struct mg_fitted f;
    double model = 0, roofline = 0;
    mg_fitted_init(&f, k, n, UINT32_MAX);
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "programs");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < n; i++) {
        struct pair x = predict_left_out(k, n, i);
        model = add_error(model, x.model.error_pct, n);
        roofline = add_error(roofline, x.roofline.error_pct, n);
        mg_json_obj(&j);
        mg_json_key_str(&j, "dir", k[i].dir);
        mg_json_key_str(&j, "device", k[i].device);
        mg_json_key_u64(&j, "launches", k[i].n);
        mg_json_key_f64(&j, "measured_ns", x.model.measured_ns);
        add_predicted(&j, "model", &x.model);
        add_predicted(&j, "roofline", &x.roofline);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_key_f64(&j, "error_pct", exp(model));
    mg_json_key_f64(&j, "roofline_error_pct", exp(roofline));
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
