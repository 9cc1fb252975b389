/* Shares over time as SVG: device time above, instructions below, a line a program, its target dashed. */
#include "sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "view/chart.h"

#define STEP_NS 200000000u /* a point */
enum { LEFT = 52, WIDE = 640, HIGH = 150, TOP = 44, GAP = 40, MOST_POINTS = 640 };

struct picture {
    const struct mg_sched *s;
    const struct mg_sched_row *rows;
    uint32_t n;
    double seconds;
    bool instructions;
    struct mg_buf *out;
};

static void point(struct mg_buf *out, double x, double y)
{
    mg_buf_addc(out, ' ');
    mg_chart_number(out, x);
    mg_buf_addc(out, ',');
    mg_chart_number(out, y);
}

static void begin_line(struct mg_buf *out, const char *color, const char *more)
{
    mg_buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s points=\"", color, more);
}

static double used(const struct picture *p, const struct mg_sched_row *r, uint32_t i)
{
    return p->instructions ? (double)r->use[i].instructions : (double)r->use[i].device_ns;
}

static void draw_program(const struct picture *p, uint32_t i, double top)
{
    double shares = 0;
    const char *color = mg_chart_series_color(i);
    for (uint32_t k = 0; k < p->s->programs.n; k++) shares += p->s->programs.at[k].share;
    double target = top + HIGH - HIGH * p->s->programs.at[i].share / shares;
    if (!p->instructions) {
        begin_line(p->out, color, " stroke-dasharray=\"2 4\"");
        point(p->out, LEFT, target);
        point(p->out, LEFT + WIDE, target);
        mg_buf_adds(p->out, "\"/>\n");
    }
    begin_line(p->out, color, "");
    for (uint32_t k = 0; k < p->n; k++) {
        double all = 0, middle = ((double)p->rows[k].start_ns + (double)p->rows[k].length_ns / 2) / 1e9;
        for (uint32_t m = 0; m < p->s->programs.n; m++) all += used(p, &p->rows[k], m);
        if (all > 0)
            point(p->out, LEFT + WIDE * middle / p->seconds, top + HIGH - HIGH * used(p, &p->rows[k], i) / all);
    }
    mg_buf_adds(p->out, "\"/>\n");
}

static void draw_axes(const struct picture *p, double top, const char *title)
{
    mg_chart_label(p->out, LEFT, top - 8, "start", title);
    for (int i = 0; i <= 4; i++) {
        struct mg_buf text = MG_BUF_INIT;
        mg_buf_printf(&text, "%d %%", 25 * i);
        mg_chart_label(p->out, LEFT - 6, top + HIGH - HIGH * i / 4.0 + 4, "end", text.at);
        mg_chart_rect(p->out, LEFT, top + HIGH - HIGH * i / 4.0, WIDE, 0.5, "#999999");
        mg_buf_reset(&text);
        mg_chart_number(&text, p->seconds * i / 4);
        mg_buf_adds(&text, " s");
        mg_chart_label(p->out, LEFT + WIDE * i / 4.0, top + HIGH + 16, "middle", text.at);
        mg_buf_release(&text);
    }
}

static void draw_legend(const struct picture *p, double y)
{
    double x = LEFT;
    for (uint32_t i = 0; i < p->s->programs.n; i++) {
        const char *name = p->s->programs.at[i].name;
        mg_chart_rect(p->out, x, y, 10, 10, mg_chart_series_color(i));
        mg_chart_label(p->out, x + 14, y + 10, "start", name);
        x += 30 + 7.3 * (double)strlen(name);
    }
}

void mg_sched_picture(const struct mg_sched *s, struct mg_buf *out)
{
    struct mg_sched_row *rows;
    struct mg_sched_sample *use;
    uint64_t all_ns = s->sample_ns.n ? s->sample_ns.at[s->sample_ns.n - 1] - s->begin_ns : 0;
    uint32_t n = mg_sched_rows(s, MG_MAX(STEP_NS, all_ns / MOST_POINTS), &rows, &use);
    bool counted = false;
    struct mg_buf title = MG_BUF_INIT;
    for (uint32_t i = 0; i < s->programs.n; i++) counted |= s->programs.at[i].counted;
    struct picture p = {s, rows, n, all_ns ? (double)all_ns / 1e9 : 1, false, out};
    double high = TOP + HIGH + GAP;
    mg_buf_printf(&title, "Shares of the device, policy %s", s->policy->name);
    mg_chart_begin(out, title.at, LEFT + WIDE + 24, (counted ? 2 : 1) * high + 24);
    for (int i = 0; i < (counted ? 2 : 1); i++) {
        p.instructions = i;
        draw_axes(&p, TOP + i * high, i ? "thread instructions" : "device time (target dashed)");
        for (uint32_t k = 0; k < s->programs.n; k++) draw_program(&p, k, TOP + i * high);
    }
    draw_legend(&p, (counted ? 2 : 1) * high + 4);
    mg_chart_end(out);
    mg_buf_addc(out, '\n');
    mg_buf_release(&title);
    free(rows);
    free(use);
}
