/* The thesis' figures 6.1 to 6.9 as SVG, and a page that holds them with the text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "study/comm_print.h"
#include "view/chart.h"

enum { MOST_COLUMNS = 64, HEAT = 200 /* CTAs of the density, as in the thesis */, LABEL = 24 };

static void volumes(const struct mg_comm_study *s, struct mg_buf *out)
{
    const struct mg_comm_volume *t = &s->m->total, *u = &s->m->used;
    static const char *const rows[] = {"loads", "stores", "atomics"}, *const series[] = {"communicates", "does not"};
    double values[] = {(double)u->load,   (double)(t->load - u->load),
                       (double)u->store,  (double)(t->store - u->store),
                       (double)u->atomic, (double)(t->atomic - u->atomic)};
    mg_chart_stacked(out, "6.1 volume, and what of it communicates", rows, 3, series, NULL, 2, values, "bytes");
}

/* Bins as columns; of more than fit, in equal numbers of bins a column. cumulative: shares up to the column's end. */
static void draw_bins(struct mg_buf *out, const char *title, const char *axis, const char *unit, const mg_comm_bins *b,
                      bool cumulative)
{
    uint32_t n = MG_MIN(b->n, (uint32_t)MOST_COLUMNS), step = n ? (b->n + n - 1) / n : 1;
    double values[MOST_COLUMNS] = {0}, all = 0, sum = 0;
    char text[MOST_COLUMNS][LABEL];
    const char *marks[MOST_COLUMNS];
    n = n ? (b->n + step - 1) / step : 0;
    for (uint32_t i = 0; i < b->n; i++) all += (double)b->at[i].count;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t last = MG_MIN(b->n, (i + 1) * step) - 1;
        for (uint32_t k = i * step; k <= last; k++) values[i] += (double)b->at[k].count;
        sum += values[i];
        if (cumulative) values[i] = all > 0 ? 100 * sum / all : 0;
        snprintf(text[i], LABEL, "%" PRIu64, b->at[last].value);
        marks[i] = n <= 16 || i % (n / 8) == 0 ? text[i] : NULL;
    }
    if (n) mg_chart_distribution(out, title, axis, unit, values, n, 0, marks);
}

static void sizes(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_bins(out, "6.2 transfer sizes, cumulative", "bytes of a transfer", "% of transfers", &s->m->sizes, true);
}

static void degrees(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_bins(out, "6.3 in-degree", "sources", "entities", &s->m->in_degree, false);
}

static void out_degrees(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_bins(out, "6.3 out-degree", "targets", "entities", &s->m->out_degree, false);
}

static void bisection(const struct mg_comm_study *s, struct mg_buf *out)
{
    static const char *const names[] = {"x", "y", "z"};
    struct mg_chart_bar bars[3];
    char text[3][LABEL];
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) {
        const struct mg_comm_side *b = &s->m->bisection[i];
        if (!b->is_known) continue;
        snprintf(text[n], LABEL, "%.1f %%", s->m->bytes ? 100.0 * (double)b->bytes / (double)s->m->bytes : 0);
        bars[n] = (struct mg_chart_bar){names[i], (double)b->bytes, text[n]};
        n++;
    }
    if (n) mg_chart_bars(out, "6.4 bytes between the halves of the grid", bars, n);
}

static void draw_gaps(struct mg_buf *out, const char *title, const mg_comm_gaps *g)
{
    mg_comm_bins b = {0};
    for (uint32_t i = 0; i < g->n; i++) *mg_vec_push(&b) = (struct mg_comm_bin){g->at[i].bytes, g->at[i].count};
    draw_bins(out, title, "bytes", "gaps", &b, false);
    mg_vec_release(&b);
}

static void load_strides(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_gaps(out, "6.5 stride of loads that communicate", &s->r->load_gaps);
}

static void store_strides(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_gaps(out, "6.5 stride of stores that communicate", &s->r->store_gaps);
}

static void density(const struct mg_comm_study *s, struct mg_buf *out)
{
    uint32_t n = MG_MIN(s->m->density_ctas, (uint32_t)HEAT);
    if (!n) return;
    double *values = mg_xcalloc((size_t)n * n, sizeof *values);
    char(*text)[LABEL] = mg_xcalloc(n, sizeof *text);
    const char **labels = mg_xcalloc(n, sizeof *labels);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text[i], LABEL, "%lu", (unsigned long)i);
        labels[i] = i % ((n + 15) / 16) ? "" : text[i];
    }
    for (uint32_t i = 0; i < s->m->density.n; i++) {
        const struct mg_comm_cell *c = &s->m->density.at[i];
        if (c->source < n && c->target < n) values[(size_t)c->target * n + c->source] = (double)c->reads;
    }
    mg_chart_heat(out, "6.6 density: reads, by CTA that wrote (across) and CTA that reads (down)", labels, n, n,
                  "CTA that wrote", values);
    free(values);
    free(text);
    free(labels);
}

/* One value a superstep; of more than fit, the first ones. */
static void draw_steps(const struct mg_comm_study *s, struct mg_buf *out, const char *title, const char *unit,
                       double (*value)(const struct mg_comm_study *s, uint32_t step))
{
    uint32_t n = MG_MIN(s->r->n_steps, (uint32_t)MOST_COLUMNS);
    double values[MOST_COLUMNS];
    char text[MOST_COLUMNS][LABEL];
    const char *marks[MOST_COLUMNS];
    for (uint32_t i = 0; i < n; i++) {
        values[i] = value(s, i);
        snprintf(text[i], LABEL, "%lu", (unsigned long)s->r->steps[i].superstep);
        marks[i] = n <= 16 || i % (n / 8) == 0 ? text[i] : NULL;
    }
    if (n) mg_chart_distribution(out, title, "superstep", unit, values, n, 0, marks);
}

static double step_loads(const struct mg_comm_study *s, uint32_t step)
{
    return (double)mg_comm_sum(s->r->steps[step].used, s->r->steps[step].n_ctas).load;
}

static double step_stores(const struct mg_comm_study *s, uint32_t step)
{
    return (double)mg_comm_sum(s->r->steps[step].used, s->r->steps[step].n_ctas).store;
}

static double step_mean(const struct mg_comm_study *s, uint32_t step)
{
    return s->m->steps[step].mean;
}

static void loads_by_step(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_steps(s, out, "6.7 communicated loads by superstep", "bytes", step_loads);
}

static void stores_by_step(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_steps(s, out, "6.7 communicated stores by superstep", "bytes", step_stores);
}

static void distance(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_bins(out, "6.8 bytes by supersteps between write and read", "supersteps between", "bytes", &s->m->distance,
              false);
}

static void connectivity(const struct mg_comm_study *s, struct mg_buf *out)
{
    draw_steps(s, out, "6.9 mean out-degree by superstep", "targets", step_mean);
}

static void patterns(const struct mg_comm_study *s, struct mg_buf *out)
{
    uint32_t n = MG_MIN(s->r->n_steps, 24u);
    double values[24 * MG_COMM_PATTERN_COUNT];
    char text[24][LABEL];
    const char *labels[24], *series[MG_COMM_PATTERN_COUNT];
    for (int p = 0; p < MG_COMM_PATTERN_COUNT; p++) series[p] = mg_comm_pattern_name((enum mg_comm_pattern)p);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text[i], LABEL, "%lu", (unsigned long)s->r->steps[i].superstep);
        labels[i] = text[i];
        for (uint32_t p = 0; p < MG_COMM_PATTERN_COUNT; p++)
            values[i * MG_COMM_PATTERN_COUNT + p] = (double)s->m->steps[i].pattern[p].bytes;
    }
    if (n)
        mg_chart_stacked(out, "patterns of the bytes that each superstep reads", labels, n, series, NULL,
                         MG_COMM_PATTERN_COUNT, values, "bytes");
}

static const struct figure {
    const char *name;
    void (*draw)(const struct mg_comm_study *s, struct mg_buf *out);
} figures[] = {
    {"volume", volumes},
    {"sizes", sizes},
    {"in-degree", degrees},
    {"out-degree", out_degrees},
    {"bisection", bisection},
    {"load-stride", load_strides},
    {"store-stride", store_strides},
    {"density", density},
    {"superstep-loads", loads_by_step},
    {"superstep-stores", stores_by_step},
    {"distance", distance},
    {"connectivity", connectivity},
    {"patterns", patterns},
};

const char *mg_comm_figure(const struct mg_comm_study *s, uint32_t ix, struct mg_buf *out)
{
    if (ix >= MG_COUNT_OF(figures)) return NULL;
    figures[ix].draw(s, out);
    return figures[ix].name;
}

void mg_comm_print_html(const struct mg_comm_study *s, struct mg_buf *out)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_adds(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>communication</title>\n"
                     "<style>body{font:14px "
                     "sans-serif;margin:2em;max-width:70em}svg{max-width:100%;height:auto}pre{overflow:auto}</style>"
                     "</head><body>\n<h1>Communication</h1>\n");
    for (uint32_t i = 0; i < MG_COUNT_OF(figures); i++) {
        mg_buf_adds(out, "<figure>");
        figures[i].draw(s, out);
        mg_buf_adds(out, "</figure>\n");
    }
    mg_comm_print_text(s, &text);
    mg_buf_adds(out, "<h2>Numbers</h2>\n<pre>");
    mg_chart_text(out, text.n ? text.at : "");
    mg_buf_adds(out, "</pre>\n<h2>Rules</h2>\n<ul>\n");
    for (const char *const *rule = mg_comm_rules(); *rule; rule++) {
        mg_buf_adds(out, "<li>");
        mg_chart_text(out, *rule);
        mg_buf_adds(out, "</li>\n");
    }
    mg_buf_adds(out, "</ul>\n</body></html>\n");
    mg_buf_release(&text);
}
