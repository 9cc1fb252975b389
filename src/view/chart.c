/* Bars, stacked bars, distributions, heat maps and strips as SVG. Numbers are written with one decimal
 * and a point, whatever the locale of the process. */
#include "view/chart.h"

#include <stdio.h>
#include <string.h>

static const double font = 12, glyph = 7.3; /* monospace: width of a character */

void mg_chart_text(struct mg_buf *out, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '<':
            mg_buf_adds(out, "&lt;");
            break;
        case '>':
            mg_buf_adds(out, "&gt;");
            break;
        case '&':
            mg_buf_adds(out, "&amp;");
            break;
        case '"':
            mg_buf_adds(out, "&quot;");
            break;
        default:
            if ((unsigned char)*text >= 32) mg_buf_addc(out, *text);
        }
}

void mg_chart_number(struct mg_buf *out, double v)
{
    if (!(v < 1e15 && v > -1e15)) v = 0;
    if (v < 0) mg_buf_addc(out, '-'), v = -v;
    uint64_t tenths = (uint64_t)(v * 10 + 0.5);
    mg_buf_addu(out, tenths / 10);
    if (tenths % 10) mg_buf_addc(out, '.'), mg_buf_addc(out, (char)('0' + tenths % 10));
}

void mg_chart_short(struct mg_buf *out, double v)
{
    static const char units[] = " kMGTPE";
    uint32_t at = 0;
    if (!(v > 0 && v < 1e21)) v = 0;
    while (v >= 999.95 && units[at + 1]) v /= 1000, at++;
    mg_chart_number(out, v);
    if (at) mg_buf_printf(out, " %c", units[at]);
}

static void add_attr(struct mg_buf *out, const char *name, double v)
{
    mg_buf_printf(out, " %s=\"", name);
    mg_chart_number(out, v);
    mg_buf_addc(out, '"');
}

void mg_chart_begin(struct mg_buf *out, const char *title, double width, double height)
{
    mg_buf_adds(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    add_attr(out, "width", width), add_attr(out, "height", height);
    mg_buf_adds(out, " viewBox=\"0 0 ");
    mg_chart_number(out, width), mg_buf_addc(out, ' '), mg_chart_number(out, height);
    mg_buf_adds(out, "\" font-family=\"ui-monospace, monospace\" font-size=\"12\" fill=\"currentColor\">\n<title>");
    mg_chart_text(out, title);
    mg_buf_adds(out, "</title>\n");
    mg_chart_label(out, 4, 16, "start", title);
}

void mg_chart_end(struct mg_buf *out)
{
    mg_buf_adds(out, "</svg>\n");
}

void mg_chart_rect(struct mg_buf *out, double x, double y, double w, double h, const char *color)
{
    mg_buf_adds(out, "<rect");
    add_attr(out, "x", x), add_attr(out, "y", y), add_attr(out, "width", w > 0 ? w : 0),
        add_attr(out, "height", h > 0 ? h : 0);
    mg_buf_printf(out, " fill=\"%s\"/>\n", color);
}

void mg_chart_label(struct mg_buf *out, double x, double y, const char *anchor, const char *text)
{
    mg_buf_adds(out, "<text");
    add_attr(out, "x", x), add_attr(out, "y", y);
    mg_buf_printf(out, " text-anchor=\"%s\">", anchor);
    mg_chart_text(out, text);
    mg_buf_adds(out, "</text>\n");
}

static void label_short(struct mg_buf *out, double x, double y, const char *anchor, double v, const char *unit)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_chart_short(&text, v);
    if (unit && *unit) mg_buf_printf(&text, " %s", unit);
    mg_chart_label(out, x, y, anchor, text.at);
    mg_buf_release(&text);
}

static void label_number(struct mg_buf *out, double x, double y, const char *anchor, uint64_t v)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_addu(&text, v);
    mg_chart_label(out, x, y, anchor, text.at);
    mg_buf_release(&text);
}

static double mix(double a, double b, double t)
{
    return a + (b - a) * t;
}

static void color_between(const double stops[5][3], double share, char color[8])
{
    static const char hex[] = "0123456789abcdef";
    double s = share > 0 ? (share < 1 ? share : 1) : 0, at = s * 4;
    int i = at >= 4 ? 3 : (int)at;
    color[0] = '#';
    for (int c = 0; c < 3; c++) {
        unsigned v = (unsigned)(mix(stops[i][c], stops[i + 1][c], at - i) + 0.5);
        color[1 + 2 * c] = hex[v >> 4 & 15], color[2 + 2 * c] = hex[v & 15];
    }
    color[7] = 0;
}

void mg_chart_heat_color(double share, char color[8])
{
    static const double stops[5][3] = {{255, 250, 230}, {254, 217, 118}, {253, 141, 60}, {227, 26, 28}, {128, 0, 38}};
    color_between(stops, share, color);
}

void mg_chart_good_color(double share, char color[8])
{
    static const double stops[5][3] = {{190, 30, 45}, {214, 96, 60}, {219, 161, 58}, {138, 176, 84}, {46, 139, 87}};
    color_between(stops, share, color);
}

const char *mg_chart_series_color(uint32_t ix)
{
    static const char *const colors[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                         "#66ccee", "#aa3377", "#bbbbbb", "#117733"};
    return colors[ix % MG_COUNT_OF(colors)];
}

static double longest(const char *const *labels, uint32_t n)
{
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = MG_MAX(most, strlen(labels[i]));
    return (double)most * glyph;
}

static double largest(const double *v, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i] > most && v[i] < 1e300) most = v[i];
    return most;
}

void mg_chart_bars(struct mg_buf *out, const char *title, const struct mg_chart_bar *bars, uint32_t n)
{
    double left = 0, most = 0, row = font + 6, wide = 420, right = 0;
    for (uint32_t i = 0; i < n; i++) {
        left = MG_MAX(left, (double)strlen(bars[i].label) * glyph);
        right = MG_MAX(right, bars[i].text ? (double)strlen(bars[i].text) * glyph : 0);
        most = MG_MAX(most, bars[i].value < 1e300 ? bars[i].value : 0);
    }
    left += 16;
    mg_chart_begin(out, title, left + wide + right + 16, 30 + row * n);
    for (uint32_t i = 0; i < n; i++) {
        double y = 26 + row * i, w = most > 0 && bars[i].value > 0 ? bars[i].value / most * wide : 0;
        mg_chart_label(out, left - 6, y + font, "end", bars[i].label);
        mg_chart_rect(out, left, y + 2, w, row - 5, mg_chart_series_color(0));
        if (bars[i].text) mg_chart_label(out, left + w + 4, y + font, "start", bars[i].text);
    }
    mg_chart_end(out);
}

static double legend_width(const char *const *series, uint32_t n)
{
    double width = 0;
    for (uint32_t s = 0; s < n; s++) width += 26 + (double)strlen(series[s]) * glyph;
    return width;
}

static const char *color_of(const char *const *colors, uint32_t series)
{
    return colors ? colors[series] : mg_chart_series_color(series);
}

static void add_legend(struct mg_buf *out, double x, const char *const *series, const char *const *colors, uint32_t n)
{
    for (uint32_t s = 0; s < n; s++) {
        mg_chart_rect(out, x, 24, 10, 10, color_of(colors, s));
        mg_chart_label(out, x + 14, 33, "start", series[s]);
        x += 26 + (double)strlen(series[s]) * glyph;
    }
}

void mg_chart_grouped(struct mg_buf *out, const char *title, const char *const *labels, uint32_t n,
                      const char *const *series, uint32_t n_series, const double *values, double mark)
{
    double left = longest(labels, n) + 16, bar = font - 1, row = bar * n_series + 8, wide = 420;
    double most = MG_MAX(largest(values, (size_t)n * n_series), mark);
    mg_chart_begin(out, title, left + MG_MAX(wide + 9 * glyph, legend_width(series, n_series)) + 16, 48 + row * n);
    add_legend(out, left, series, NULL, n_series);
    for (uint32_t i = 0; i < n; i++) {
        double y = 42 + row * i;
        mg_chart_label(out, left - 6, y + (row + font) / 2 - 5, "end", labels[i]);
        for (uint32_t s = 0; s < n_series; s++, y += bar) {
            double v = values[(size_t)i * n_series + s];
            char text[24];
            if (!(v >= 0) || v > 1e300) continue;
            mg_chart_rect(out, left, y, most > 0 ? v / most * wide : 0, bar - 1, mg_chart_series_color(s));
            snprintf(text, sizeof text, "%.3g", v);
            mg_chart_label(out, left + (most > 0 ? v / most * wide : 0) + 4, y + bar - 2, "start", text);
        }
    }
    if (mark > 0 && most > 0) mg_chart_rect(out, left + mark / most * wide, 40, 1, row * n, "#8888");
    mg_chart_end(out);
}

void mg_chart_stacked(struct mg_buf *out, const char *title, const char *const *labels, uint32_t n,
                      const char *const *series, const char *const *colors, uint32_t n_series, const double *values,
                      const char *unit)
{
    double left = longest(labels, n) + 16, row = font + 6, wide = 500;
    double right = unit ? (double)(strlen(unit) + 8) * glyph : 0;
    mg_chart_begin(out, title, left + MG_MAX(wide + right, legend_width(series, n_series)) + 16, 66 + row * n);
    add_legend(out, left, series, colors, n_series);
    for (uint32_t i = 0; i < n; i++) {
        double y = 42 + row * i, x = left, sum = 0;
        for (uint32_t s = 0; s < n_series; s++) sum += values[(size_t)i * n_series + s];
        mg_chart_label(out, left - 6, y + font, "end", labels[i]);
        for (uint32_t s = 0; s < n_series && sum > 0; s++) {
            double w = values[(size_t)i * n_series + s] / sum * wide;
            if (w > 0) mg_chart_rect(out, x, y + 2, w, row - 5, color_of(colors, s));
            x += w;
        }
        if (unit) label_short(out, left + wide + 6, y + font, "start", sum, unit);
    }
    for (uint32_t i = 0; i <= 4; i++) label_short(out, left + wide * i / 4, 56 + row * n, "middle", 25 * i, "%");
    mg_chart_end(out);
}

static const double over = 40; /* room above bars, for the title and their counts */

/* Lines across at nothing, half and all of `most`, with their values. */
static void add_levels(struct mg_buf *out, double left, double wide, double high, double most, const char *unit)
{
    for (uint32_t i = 0; i <= 2; i++) {
        double y = over + high - high * i / 2;
        label_short(out, left - 6, y + 4, "end", most * i / 2, i == 2 ? unit : NULL);
        mg_chart_rect(out, left, y, wide, 0.5, "#8888");
    }
}

/* Above bars how much they stand for: of those whose texts would lie over each other, that of the largest. */
static void add_counts(struct mg_buf *out, const double *values, uint32_t n, double left, double column, double high)
{
    double most = largest(values, n), width = 8 * glyph;
    for (uint32_t i = 0; i < n && most > 0; i++) {
        uint32_t near = (uint32_t)(width / column) + 1;
        bool first = values[i] > 0;
        for (uint32_t j = i > near ? i - near : 0; j < MG_MIN(n, i + near + 1) && first; j++)
            first = j == i || values[j] < values[i] || (j > i && values[j] <= values[i]);
        if (!first) continue;
        double h = MG_MAX(values[i] / most * high, 3.0), middle = left + column * (i + 0.5);
        label_short(out, middle, over - 3 + high - h,
                    i == 0       ? "start"
                    : i + 1 == n ? "end"
                                 : "middle",
                    values[i], NULL);
    }
}

void mg_chart_distribution(struct mg_buf *out, const char *title, const char *axis, const char *unit,
                           const double *values, uint32_t n, uint32_t first, const char *const *marks)
{
    double column = n > 64 ? 6 : n > 16 ? 14 : 28, high = 110, most = largest(values, n), wide = column * n;
    double left = (double)((unit ? strlen(unit) : 0) + strlen("999.9 k ")) * glyph + 12; /* add_levels() keeps 6 free */
    uint32_t step = n > 64 ? 16 : n > 16 ? 4 : 1;
    mg_chart_begin(out, title, MG_MAX(left + wide, (double)strlen(title) * glyph) + 24, over + high + 36);
    add_levels(out, left, wide, high, most, unit);
    for (uint32_t i = 0; i < n; i++) {
        double h = most > 0 && values[i] > 0 ? values[i] / most * high : 0, middle = left + column * (i + 0.5);
        if (h > 0 && h < 3) h = 3; /* what is there is seen */
        mg_chart_rect(out, left + 1 + column * i, over + high - h, column - 2, h, mg_chart_series_color(0));
        if (marks && marks[i])
            mg_chart_label(out, i ? middle : left, over + high + 14, i ? "middle" : "start", marks[i]);
        if (!marks && i % step == 0) label_number(out, middle, over + high + 14, "middle", (uint64_t)first + i);
    }
    add_counts(out, values, n, left, column, high);
    mg_chart_label(out, left, over + high + 30, "start", axis);
    mg_chart_end(out);
}

void mg_chart_heat(struct mg_buf *out, const char *title, const char *const *row_labels, uint32_t rows, uint32_t cols,
                   const char *axis, const double *values)
{
    double left = longest(row_labels, rows) + 16, cell = cols > 64 ? 6 : 12, row = font + 3,
           most = largest(values, (size_t)rows * cols);
    mg_chart_begin(out, title, left + MG_MAX(cell * cols, (double)strlen(axis) * glyph) + 16, 60 + row * rows);
    for (uint32_t r = 0; r < rows; r++) {
        mg_chart_label(out, left - 6, 24 + row * r + font - 1, "end", row_labels[r]);
        for (uint32_t c = 0; c < cols; c++) {
            char color[8];
            double v = values[(size_t)r * cols + c];
            mg_chart_heat_color(most > 0 ? v / most : 0, color);
            mg_chart_rect(out, left + cell * c, 24 + row * r, cell - 1, row - 1, v > 0 ? color : "#8882");
        }
    }
    for (uint32_t c = 0; c<cols; c += cols> 64 ? 16 : 8)
        label_number(out, left + cell * (c + 0.5), 36 + row * rows, "middle", c);
    mg_chart_label(out, left, 50 + row * rows, "start", axis);
    mg_chart_end(out);
}

void mg_chart_strip(struct mg_buf *out, const char *title, const char *axis, const double *shares, uint32_t n)
{
    double column = n > 64 ? 5 : 12, high = 120, sum = 0, left = 52, wide = column * n;
    mg_chart_begin(out, title, left + MG_MAX(wide, (double)strlen(title) * glyph) + 16, high + 62);
    for (uint32_t i = 0; i <= 4; i++) {
        double y = 26 + high - high * i / 4;
        label_short(out, left - 6, y + 4, "end", 25 * i, "%");
        mg_chart_rect(out, left, y, wide, 0.5, "#8888");
    }
    for (uint32_t i = 0; i < n; i++) {
        double v = shares[i] > 0 ? (shares[i] < 1 ? shares[i] : 1) : 0;
        char color[8];
        mg_chart_good_color(v, color);
        mg_chart_rect(out, left + column * i, 26 + high * (1 - v), column - 1, high * v, color);
        sum += v;
        if (i % (n > 64 ? 16 : 4) == 0) label_number(out, left + column * (i + 0.5), high + 40, "middle", i);
    }
    if (n) mg_chart_rect(out, left, 25.5 + high * (1 - sum / n), wide, 1, "#4477aa");
    mg_chart_label(out, left, high + 56, "start", axis);
    mg_chart_end(out);
}
