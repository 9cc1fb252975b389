/* Best grids, as text and JSON. */
#include "study/grids.h"

#include "base/json.h"

void mg_grids_text(const struct mg_grids *g, struct mg_buf *out)
{
    mg_buf_printf(out, "%-32s %-12s %6s %10s %12s %24s %12s %12s\n", "kernel", "block", "grids", "best grid",
                  "predicted", "95 % interval, us", "fewest", "predicted");
    for (uint32_t i = 0; i < g->n; i++) {
        const struct mg_grid_kernel *k = &g->kernels[i];
        struct mg_buf block = MG_BUF_INIT;
        mg_buf_printf(&block, "%ux%ux%u", k->block[0], k->block[1], k->block[2]);
        mg_buf_printf(out, "%-32.32s %-12s %6u ", k->name, block.at, k->n_points);
        mg_buf_release(&block);
        if (k->why_not)
            mg_buf_printf(out, "%s\n", k->why_not);
        else
            mg_buf_printf(out, "%10llu %9.4g us %11.4g to %9.4g %12llu %9.4g us\n", (unsigned long long)k->best,
                          k->best_ns / 1e3, k->best_ns / k->apart / 1e3, k->best_ns * k->apart / 1e3,
                          (unsigned long long)k->fewest_units, k->fewest_ns / 1e3);
    }
    mg_buf_adds(out, "\nfewest: multiprocessors on which it is within 5 % of that, each with as many CTAs\n");
}

static void add_point(struct mg_json *j, const struct mg_grid_kernel *k, const struct mg_grid_point *p)
{
    mg_json_obj(j);
    mg_json_key_u64(j, "ctas", p->ctas);
    mg_json_key_u64(j, "launches", p->launches);
    mg_json_key_f64(j, "warp_instructions", p->insts);
    mg_json_key_f64(j, "time_ns", p->time_ns);
    mg_json_key_f64_if(j, "predicted_ns", !k->why_not, mg_grid_predict(&k->model, p->ctas, k->model.units));
    mg_json_end(j, '}');
}

/* Predictions at some grids between the smallest and the largest: a sweep may be laid beside them. */
static void add_curve(struct mg_json *j, const struct mg_grid_kernel *k)
{
    uint64_t to = k->points[k->n_points - 1].ctas;
    mg_json_key(j, "curve");
    mg_json_arr(j);
    for (uint64_t g = k->points[0].ctas; !k->why_not && g <= to; g += MG_MAX(g / 8, (uint64_t)1)) {
        mg_json_obj(j);
        mg_json_key_u64(j, "ctas", g);
        mg_json_key_f64(j, "predicted_ns", mg_grid_predict(&k->model, g, k->model.units));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void add_kernel(struct mg_json *j, const struct mg_grid_kernel *k)
{
    bool said = !k->why_not;
    mg_json_obj(j);
    mg_json_key_str(j, "kernel", k->name);
    mg_json_key(j, "block");
    mg_json_arr(j);
    for (int i = 0; i < 3; i++) mg_json_u64(j, k->block[i]);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "units", k->model.units);
    mg_json_key_u64(j, "resident", k->model.resident);
    mg_json_key_str(j, "why_not", k->why_not);
    mg_json_key_u64_if(j, "best_ctas", said, k->best);
    mg_json_key_f64_if(j, "predicted_ns", said, k->best_ns);
    mg_json_key_f64_if(j, "apart", said, k->apart);
    mg_json_key_u64_if(j, "fewest_units", said, k->fewest_units);
    mg_json_key_u64_if(j, "fewest_ctas", said, k->fewest);
    mg_json_key_f64_if(j, "fewest_ns", said, k->fewest_ns);
    mg_json_key(j, "measured");
    mg_json_arr(j);
    for (uint32_t i = 0; i < k->n_points; i++) add_point(j, k, &k->points[i]);
    mg_json_end(j, ']');
    add_curve(j, k);
    mg_json_end(j, '}');
}

void mg_grids_json(const struct mg_grids *g, struct mg_buf *out)
{
    struct mg_json j;
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key(&j, "kernels");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < g->n; i++) add_kernel(&j, &g->kernels[i]);
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
}
