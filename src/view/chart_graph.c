/* A control-flow graph, for Graphviz or as SVG of our own: layers from top to bottom, edges as curves, edges back
 * at the right.
 *
 *   layer     longest path from a node without predecessors, over the edges that are not back
 *   lane      an edge over several layers passes through a point of its own in each between
 *   order     within a layer by the mean of the neighbours' places, swept down and up
 *   x         as near to the mean of the neighbours as the order leaves room for */
#include "view/chart.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { sweeps = 8 };
static const double font = 11, glyph = 6.7, gap = 22, layer_gap = 34;

struct place {            /* a node, or a point of a long edge */
    uint32_t layer, node; /* node UINT32_MAX: a point */
    double x, y, w, h, want;
};
struct link {
    uint32_t from, to, edge;
};
struct layout {
    MG_VEC(struct place) places; /* nodes first, with their numbers */
    MG_VEC(struct link) links;
    uint32_t *order, *first;
    uint32_t n_layers; /* places by layer: order[first[l]] .. order[first[l + 1] - 1] */
};

static void size_of(const char *text, double *w, double *h)
{
    size_t most = 0, line = 0;
    uint32_t lines = 1;
    for (; *text; text++) {
        if (*text == '\n')
            lines++, line = 0;
        else
            most = MG_MAX(most, ++line);
    }
    *w = (double)most * glyph + 14;
    *h = lines * (font + 2) + 8;
}

static uint32_t add_point(struct layout *l, uint32_t layer)
{
    *mg_vec_push(&l->places) = (struct place){.layer = layer, .node = UINT32_MAX, .w = 4};
    return l->places.n - 1;
}

static void assign_layers(struct layout *l, const struct mg_chart_node *nodes, uint32_t n,
                          const struct mg_chart_edge *edges, uint32_t n_edges)
{
    for (uint32_t i = 0; i < n; i++) {
        struct place p = {.node = i};
        size_of(nodes[i].text, &p.w, &p.h);
        *mg_vec_push(&l->places) = p;
    }
    for (bool changed = true; changed;) { /* edges point forward in the order of nodes: one round and a check */
        changed = false;
        for (uint32_t e = 0; e < n_edges; e++) {
            if (edges[e].back || edges[e].from >= edges[e].to) continue;
            uint32_t least = l->places.at[edges[e].from].layer + 1;
            if (l->places.at[edges[e].to].layer < least) l->places.at[edges[e].to].layer = least, changed = true;
        }
    }
    for (uint32_t e = 0; e < n_edges; e++) {
        if (edges[e].back || edges[e].from >= edges[e].to) continue;
        uint32_t from = edges[e].from, end = l->places.at[edges[e].to].layer;
        for (uint32_t at = l->places.at[from].layer + 1; at < end; at++) {
            uint32_t point = add_point(l, at);
            *mg_vec_push(&l->links) = (struct link){from, point, e};
            from = point;
        }
        *mg_vec_push(&l->links) = (struct link){from, edges[e].to, e};
    }
    for (uint32_t i = 0; i < l->places.n; i++) l->n_layers = MG_MAX(l->n_layers, l->places.at[i].layer + 1);
}

static void group_layers(struct layout *l)
{
    l->order = mg_xcalloc(l->places.n + 1, sizeof *l->order);
    l->first = mg_xcalloc(l->n_layers + 2, sizeof *l->first);
    for (uint32_t i = 0; i < l->places.n; i++) l->first[l->places.at[i].layer + 1]++;
    for (uint32_t k = 0; k < l->n_layers; k++) l->first[k + 1] += l->first[k];
    uint32_t *at = mg_xcalloc(l->n_layers + 1, sizeof *at);
    for (uint32_t i = 0; i < l->places.n; i++) {
        uint32_t k = l->places.at[i].layer;
        l->order[l->first[k] + at[k]++] = i;
    }
    free(at);
}

/* Where a place would like to be: the mean of those it is linked with, above (down) or below. */
static void wish(struct layout *l, bool down)
{
    double *sum = mg_xcalloc(l->places.n + 1, sizeof *sum);
    uint32_t *n = mg_xcalloc(l->places.n + 1, sizeof *n);
    for (uint32_t i = 0; i < l->links.n; i++) {
        const struct link *k = &l->links.at[i];
        uint32_t me = down ? k->to : k->from, other = down ? k->from : k->to;
        sum[me] += l->places.at[other].x, n[me]++;
    }
    for (uint32_t i = 0; i < l->places.n; i++) l->places.at[i].want = n[i] ? sum[i] / n[i] : l->places.at[i].x;
    free(sum);
    free(n);
}

/* Insertion sort by wish: stable, layers are short. */
static void sort_layer(struct layout *l, uint32_t k)
{
    for (uint32_t i = l->first[k] + 1; i < l->first[k + 1]; i++)
        for (uint32_t j = i; j > l->first[k] && l->places.at[l->order[j]].want < l->places.at[l->order[j - 1]].want;
             j--) {
            uint32_t t = l->order[j];
            l->order[j] = l->order[j - 1], l->order[j - 1] = t;
        }
}

/* Puts a layer's places at their wishes, pushed apart; then moves all by the mean error. */
static void place_layer(struct layout *l, uint32_t k)
{
    double edge = -1e9, error = 0;
    uint32_t n = l->first[k + 1] - l->first[k];
    for (uint32_t i = l->first[k]; i < l->first[k + 1]; i++) {
        struct place *p = &l->places.at[l->order[i]];
        p->x = MG_MAX(p->want, edge + p->w / 2);
        edge = p->x + p->w / 2 + gap;
        error += p->x - p->want;
    }
    for (uint32_t i = l->first[k]; i < l->first[k + 1]; i++) l->places.at[l->order[i]].x -= error / n;
}

static void place_layers(struct layout *l)
{
    for (uint32_t k = 0; k < l->n_layers; k++) place_layer(l, k);
    for (uint32_t s = 0; s < sweeps; s++)
        for (uint32_t i = 0; i < l->n_layers; i++) {
            bool down = s % 2 == 0;
            uint32_t k = down ? i : l->n_layers - 1 - i;
            wish(l, down);
            sort_layer(l, k);
            place_layer(l, k);
        }
}

static double stack_layers(struct layout *l)
{
    double y = 34;
    for (uint32_t k = 0; k < l->n_layers; k++) {
        double high = 0;
        for (uint32_t i = l->first[k]; i < l->first[k + 1]; i++) high = MG_MAX(high, l->places.at[l->order[i]].h);
        for (uint32_t i = l->first[k]; i < l->first[k + 1]; i++) l->places.at[l->order[i]].y = y + high / 2;
        y += high + layer_gap;
    }
    return y;
}

static void add_xy(struct mg_buf *out, double x, double y)
{
    mg_chart_number(out, x), mg_buf_addc(out, ' '), mg_chart_number(out, y), mg_buf_addc(out, ' ');
}

static void draw_link(struct mg_buf *out, const struct place *a, const struct place *b)
{
    double y0 = a->y + a->h / 2, y1 = b->y - b->h / 2, mid = (y0 + y1) / 2;
    mg_buf_adds(out, "<path d=\"M");
    add_xy(out, a->x, y0);
    mg_buf_addc(out, 'C'), add_xy(out, a->x, mid), add_xy(out, b->x, mid), add_xy(out, b->x, y1);
    mg_buf_printf(out, "\"%s/>\n", b->node == UINT32_MAX ? "" : " marker-end=\"url(#mg-tip)\"");
}

static void draw_back(struct mg_buf *out, const struct place *a, const struct place *b, double side)
{
    mg_buf_adds(out, "<path stroke-dasharray=\"5 3\" d=\"M");
    double from = a->y + a->h / 4, to = b->y - b->h / 4; /* apart where a block leads to itself */
    add_xy(out, a->x + a->w / 2, from);
    mg_buf_addc(out, 'C'), add_xy(out, side, from), add_xy(out, side, to), add_xy(out, b->x + b->w / 2, to);
    mg_buf_adds(out, "\" marker-end=\"url(#mg-tip)\"/>\n");
}

static void draw_node(struct mg_buf *out, const struct mg_chart_node *node, const struct place *p)
{
    char color[8];
    mg_chart_heat_color(node->heat, color);
    mg_buf_printf(out, "<g fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\">", color, node->marked ? "#4477aa" : "#444",
                  node->marked ? "3" : "1");
    mg_chart_rect(out, p->x - p->w / 2, p->y - p->h / 2, p->w, p->h, color);
    mg_buf_printf(out, "</g><g fill=\"%s\">\n", node->heat > 0.6 ? "#fff" : "#000");
    double y = p->y - p->h / 2 + font + 3;
    struct mg_buf line = MG_BUF_INIT;
    for (const char *t = node->text; *t;) {
        size_t n = strcspn(t, "\n");
        mg_buf_reset(&line);
        mg_buf_add(&line, t, n);
        if (n) mg_chart_label(out, p->x - p->w / 2 + 7, y, "start", line.at);
        y += font + 2;
        t += n + (t[n] == '\n');
    }
    mg_buf_release(&line);
    mg_buf_adds(out, "</g>\n");
}

void mg_chart_graph(struct mg_buf *out, const char *title, const struct mg_chart_node *nodes, uint32_t n,
                    const struct mg_chart_edge *edges, uint32_t n_edges)
{
    struct layout l = {0};
    double left = 1e9, right = -1e9;
    assign_layers(&l, nodes, n, edges, n_edges);
    group_layers(&l);
    place_layers(&l);
    double high = stack_layers(&l);
    for (uint32_t i = 0; i < l.places.n; i++) {
        struct place *p = &l.places.at[i];
        left = MG_MIN(left, p->x - p->w / 2), right = MG_MAX(right, p->x + p->w / 2);
    }
    for (uint32_t i = 0; i < l.places.n; i++) l.places.at[i].x += 12 - left;
    right += 12 - left;
    mg_chart_begin(out, title, MG_MAX(n ? right + 70 : 0, (double)strlen(title) * 7.3 + 12), high);
    mg_buf_adds(
        out,
        "<defs><marker id=\"mg-tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
        "<path d=\"M0 0 8 4 0 8z\" fill=\"#777\"/></marker></defs>\n<g fill=\"none\" stroke=\"#777\">\n");
    for (uint32_t i = 0; i < l.links.n; i++)
        draw_link(out, &l.places.at[l.links.at[i].from], &l.places.at[l.links.at[i].to]);
    for (uint32_t e = 0; e < n_edges; e++)
        if (edges[e].back || edges[e].from >= edges[e].to)
            draw_back(out, &l.places.at[edges[e].from], &l.places.at[edges[e].to], right + 50);
    mg_buf_adds(out, "</g>\n<g font-size=\"11\">\n");
    for (uint32_t i = 0; i < n; i++) draw_node(out, &nodes[i], &l.places.at[i]);
    mg_buf_adds(out, "</g>\n");
    mg_chart_end(out);
    mg_vec_release(&l.places);
    mg_vec_release(&l.links);
    free(l.order);
    free(l.first);
}

/* ---- Graphviz ---------------------------------------------------------------------------------------------- */

/* A quoted string; lines end left-aligned. */
static void add_quoted(struct mg_buf *out, const char *s)
{
    mg_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') mg_buf_addc(out, '\\');
        if (*s == '\n')
            mg_buf_adds(out, "\\l");
        else
            mg_buf_addc(out, *s);
    }
    mg_buf_addc(out, '"');
}

void mg_chart_dot(struct mg_buf *out, const char *title, const struct mg_chart_node *nodes, uint32_t n,
                  const struct mg_chart_edge *edges, uint32_t n_edges)
{
    mg_buf_adds(out, "digraph ");
    add_quoted(out, title);
    mg_buf_adds(out, " {\n  label=");
    add_quoted(out, title);
    mg_buf_adds(out, " labelloc=t;\n  node [shape=box style=filled fontname=monospace];\n");
    for (uint32_t i = 0; i < n; i++) {
        char color[8];
        struct mg_buf text = MG_BUF_INIT;
        mg_chart_heat_color(nodes[i].heat, color);
        mg_buf_printf(&text, "%s\n", nodes[i].text);
        mg_buf_printf(out, "  n%u [fillcolor=\"%s\" fontcolor=%s%s label=", i, color,
                      nodes[i].heat > 0.6 ? "white" : "black", nodes[i].marked ? " color=\"#4477aa\" penwidth=3" : "");
        add_quoted(out, text.at);
        mg_buf_adds(out, "];\n");
        mg_buf_release(&text);
    }
    for (uint32_t e = 0; e < n_edges; e++)
        mg_buf_printf(out, "  n%u -> n%u%s;\n", edges[e].from, edges[e].to, edges[e].back ? " [style=dashed]" : "");
    mg_buf_adds(out, "}\n");
}
