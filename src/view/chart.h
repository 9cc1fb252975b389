/* Pictures as SVG text, shared by all tools: bars, stacked bars, distributions, a heat map, a strip of
 * values (one cell for each multiprocessor) and a control-flow graph. Self-contained and deterministic:
 * no script, no font, no file beside it; colours of text follow the page (`currentColor`).
 *
 * Appends one <svg> element to `out`. Text is escaped here. Values that are not finite count as 0. */
#ifndef MG_VIEW_CHART_H
#define MG_VIEW_CHART_H

#include "base/buf.h"
#include "base/compiler.h"

/* "#rrggbb" of a share from 0 (pale) to 1 (dark red). */
void mg_chart_heat_color(double share, char color[8]);
/* "#rrggbb" of how good a share is: 0 red, 1 green. */
void mg_chart_good_color(double share, char color[8]);
/* Colour of the ix-th series. */
const char *mg_chart_series_color(uint32_t ix);

struct mg_chart_bar {
    const char *label;
    double value;
    const char *text; /* at its end; NULL: none */
};
/* Horizontal bars, scaled to the largest value. */
void mg_chart_bars(struct mg_buf *out, const char *title, const struct mg_chart_bar *bars, uint32_t n);
/* For each label a bar of each series: values[label * n_series + s], none where it is NaN; written at its end, with a
 * line at `mark` (0: none). */
void mg_chart_grouped(struct mg_buf *out, const char *title, const char *const *labels, uint32_t n,
                      const char *const *series, uint32_t n_series, const double *values, double mark);
/* One row of 100 % for each label, divided by series: values[row * n_series + s], its sum in `unit` behind it. A row of
 * zeroes is empty. colors: of the series, NULL: the usual ones. */
void mg_chart_stacked(struct mg_buf *out, const char *title, const char *const *labels, uint32_t n,
                      const char *const *series, const char *const *colors, uint32_t n_series, const double *values,
                      const char *unit);
/* Columns of `unit` over an axis: values[i] stands at first + i, or at marks[i] (NULL: no text). */
void mg_chart_distribution(struct mg_buf *out, const char *title, const char *axis, const char *unit,
                           const double *values, uint32_t n, uint32_t first, const char *const *marks);
/* rows x cols cells coloured by share of the largest. col_labels may be NULL. */
void mg_chart_heat(struct mg_buf *out, const char *title, const char *const *row_labels, uint32_t rows, uint32_t cols,
                   const char *axis, const double *values);
/* Columns of shares 0..1, green where all is used, red where little is, with their mean as a line: figure 6 of the
 * Ocelot paper. */
void mg_chart_strip(struct mg_buf *out, const char *title, const char *axis, const double *shares, uint32_t n);

/* ---- graphs (chart_graph.c) --------------------------------------------------------------------------- */
struct mg_chart_node {
    const char *text; /* lines separated by \n */
    double heat;      /* 0..1 */
    bool marked;      /* in the region called out */
};
struct mg_chart_edge {
    uint32_t from, to;
    bool back; /* drawn at the side, upwards */
};
/* Layers from top to bottom; nodes are given in an order in which every edge but the back ones points to a later node.
 */
void mg_chart_graph(struct mg_buf *out, const char *title, const struct mg_chart_node *nodes, uint32_t n,
                    const struct mg_chart_edge *edges, uint32_t n_edges);
/* The same for Graphviz: `dot -Tsvg`. */
void mg_chart_dot(struct mg_buf *out, const char *title, const struct mg_chart_node *nodes, uint32_t n,
                  const struct mg_chart_edge *edges, uint32_t n_edges);

/* ---- for those who draw -------------------------------------------------------------------------------- */
void mg_chart_text(struct mg_buf *out, const char *text); /* with <, >, &, " escaped */
void mg_chart_number(struct mg_buf *out, double v);       /* at most one decimal */
void mg_chart_short(struct mg_buf *out, double v);        /* 950, 1.2 k, 34.5 M */
void mg_chart_begin(struct mg_buf *out, const char *title, double width,
                    double height); /* the title is written at the top */
void mg_chart_end(struct mg_buf *out);
void mg_chart_rect(struct mg_buf *out, double x, double y, double w, double h, const char *color);
void mg_chart_label(struct mg_buf *out, double x, double y, const char *anchor,
                    const char *text); /* anchor: start, middle, end */

#endif
