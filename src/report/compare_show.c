/* A comparison of metrics as text and JSON. */
#include <math.h>

#include "report/compare.h"
#include "report/priv.h"

enum { MOST_METRICS = 24 };

static void add_pct(struct mg_buf *out, const struct mg_compared *x)
{
    double pct = mg_compared_pct(x);
    if (!x->has[0] || !x->has[1])
        mg_buf_printf(out, "%12s", "only one");
    else if (isinf(pct))
        mg_buf_printf(out, "%12s", "from 0");
    else if (pct == 0)
        mg_buf_printf(out, "%12s", "equal");
    else
        mg_buf_printf(out, "%+10.*f %%", fabs(pct) < 9.95 ? 2 : 1, pct);
}

static void add_value(struct mg_buf *out, bool has, double v)
{
    struct mg_buf cell = MG_BUF_INIT;
    if (!has)
        mg_buf_addc(&cell, '-');
    else if (v >= 0 && v < 9e15 && (v == floor(v) || v >= 1e4))
        mg_add_grouped(&cell, (uint64_t)(v + .5));
    else
        mg_buf_printf(&cell, "%.4g", v);
    mg_buf_addc(out, ' ');
    mg_add_right(out, cell.at, 20);
    mg_buf_release(&cell);
}

/* "memory.sectors -11.9 %" */
static void add_named(const struct mg_metric *m, struct mg_buf *out)
{
    double pct = mg_compared_pct(&m->of);
    mg_buf_adds(out, m->name);
    if (m->of.has[0] && m->of.has[1] && !isinf(pct)) mg_buf_printf(out, " %+.1f %%", pct);
}

void mg_add_hinge(const struct mg_comparison *c, struct mg_buf *out)
{
    mg_buf_adds(out, c->hinge);
    if (c->hinges_on_waits)
        mg_buf_printf(out,
                      "; if no warp waited, as in launches that fill the device: %+.2f %%; a larger input, or times on "
                      "a GPU (-t span), can tell",
                      c->full_pct);
    else
        mg_buf_adds(out, "; times on a GPU (-t span) can tell");
}

static void add_verdict(const struct mg_comparison *c, struct mg_buf *out)
{
    const char *what = c->by == MG_JUDGED_BY_TIME ? "kernel time" : "the kernels' work as counted";
    if (c->by == MG_JUDGED_NOT) {
        mg_buf_printf(out, "verdict: none: neither time nor work was measured in both%s%s\n", c->uncounted ? ": " : "",
                      c->uncounted ? c->uncounted : "");
        return;
    }
    mg_buf_printf(out, "verdict: %s: %s %+.2f %%", mg_verdict_names[c->verdict], what, c->change_pct);
    if (mg_is_certain(c))
        mg_buf_adds(out, ", whatever");
    else if (c->has_interval)
        mg_buf_printf(out, ", from %+.2f to %+.2f %%", c->low_pct, c->high_pct);
    else
        mg_buf_adds(out, ", no interval: a kernel was timed once");
    if (c->by == MG_JUDGED_BY_WORK)
        mg_buf_printf(out, "%s the model does not know (docs/findings.md)\n", mg_is_certain(c) ? "" : " by what");
    else
        mg_buf_adds(out, c->has_interval ? " (95 %)\n" : "\n");
    if (c->by_timing)
        mg_buf_adds(out, "most of it is of kernels whose counts may depend on timing: two runs of one build differ, "
                         "too; compare several of each\n");
    else if (c->verdict == MG_VERDICT_UNCLEAR) {
        mg_buf_adds(out, "it hinges on ");
        mg_add_hinge(c, out);
        mg_buf_addc(out, '\n');
    }
    if (c->counted[0] < c->launches[0] || c->counted[1] < c->launches[1])
        mg_buf_printf(out,
                      "launches with counts: %.0f of %.0f before, %.0f of %.0f after; the others are taken to be like "
                      "those of their kernel\n",
                      c->counted[0], c->launches[0], c->counted[1], c->launches[1]);
    if (c->reason == UINT32_MAX) return;
    mg_buf_adds(out, "changed most: ");
    add_named(&c->metrics.at[c->reason], out);
    if (c->verdict == MG_VERDICT_UNCLEAR && c->against != UINT32_MAX) {
        mg_buf_adds(out, ", the other way ");
        add_named(&c->metrics.at[c->against], out);
    }
    mg_buf_addc(out, '\n');
}

static void add_line_place(const struct mg_metric_line *l, struct mg_buf *out)
{
    if (l->line[0] == l->line[1])
        mg_buf_printf(out, "%s:%u", l->file ? l->file : "ptx", l->line[0]);
    else if (!l->line[0])
        mg_buf_printf(out, "%s:new %u", l->file ? l->file : "ptx", l->line[1]);
    else if (!l->line[1])
        mg_buf_printf(out, "%s:%u gone", l->file ? l->file : "ptx", l->line[0]);
    else
        mg_buf_printf(out, "%s:%u -> %u", l->file ? l->file : "ptx", l->line[0], l->line[1]);
}

void mg_add_comparison(const struct mg_comparison *c, uint32_t most, struct mg_buf *out)
{
    uint32_t shown = 0, changed = 0;
    add_verdict(c, out);
    if (c->apart) mg_buf_adds(out, "no kernel is in both profiles: the totals of two programs are compared\n");
    if (c->arguments[0])
        mg_buf_printf(out, "the programs were given other arguments: before \"%s\", after \"%s\"\n", c->arguments[0],
                      c->arguments[1]);
    mg_buf_printf(out, "\n%12s %20s %20s  %-7s metric\n", "change", "before", "after", "");
    for (uint32_t i = 0; i < c->metrics.n; i++) {
        const struct mg_metric *m = &c->metrics.at[i];
        if (!m->better || (!m->of.has[0] && !m->of.has[1])) continue; /* JSON has all */
        if (++shown > MOST_METRICS) continue;
        add_pct(out, &m->of);
        add_value(out, m->of.has[0], m->of.v[0]);
        add_value(out, m->of.has[1], m->of.v[1]);
        mg_buf_printf(out, "  %-7s %s\n", mg_metric_judged(c, m), m->name);
    }
    if (shown > MOST_METRICS) mg_buf_printf(out, "  and %u more metrics (--json)\n", shown - MOST_METRICS);
    for (uint32_t i = 0; i < c->lines.n && !c->apart; i++) {
        const struct mg_metric_line *l = &c->lines.at[i];
        if (l->weight < .001 || !c->metrics.at[l->metric].better) continue;
        if (!changed++) mg_buf_printf(out, "\n%12s %20s %20s  by line\n", "change", "before", "after");
        if (changed > most) continue;
        add_pct(out, &l->of);
        add_value(out, l->of.has[0], l->of.v[0]);
        add_value(out, l->of.has[1], l->of.v[1]);
        mg_buf_printf(out, "  %s  ", c->metrics.at[l->metric].name);
        add_line_place(l, out);
        mg_buf_printf(out, "  %s\n", l->function);
    }
    if (changed > most) mg_buf_printf(out, "  and %u more lines that changed (--top %u)\n", changed - most, changed);
}

/* ---- JSON --------------------------------------------------------------------------------------------------- */

static void number(struct mg_json *j, bool has, double v)
{
    if (!has || !isfinite(v))
        mg_json_null(j);
    else if (v >= 0 && v < 9e15 && v == floor(v))
        mg_json_u64(j, (uint64_t)v);
    else
        mg_json_f64(j, v);
}

static void write_compared(struct mg_json *j, const struct mg_compared *x)
{
    bool both = x->has[0] && x->has[1];
    mg_json_key(j, "before");
    number(j, x->has[0], x->v[0]);
    mg_json_key(j, "after");
    number(j, x->has[1], x->v[1]);
    mg_json_key_f64_if(j, "change_pct", both && isfinite(mg_compared_pct(x)), mg_compared_pct(x));
}

void mg_write_comparison(const struct mg_comparison *c, struct mg_json *j)
{
    mg_json_key(j, "verdict");
    mg_json_obj(j);
    mg_json_key_str(j, "is", c->by ? mg_verdict_names[c->verdict] : NULL);
    mg_json_key_str(j, "by", c->by == MG_JUDGED_BY_TIME ? "time" : c->by ? "work" : NULL);
    mg_json_key(j, "change_pct");
    number(j, c->by != MG_JUDGED_NOT, c->change_pct);
    mg_json_key(j, "interval_pct");
    mg_json_arr(j);
    number(j, c->has_interval, c->low_pct);
    number(j, c->has_interval, c->high_pct);
    mg_json_end(j, ']');
    mg_json_key(j, "full_device_pct");
    number(j, c->by == MG_JUDGED_BY_WORK, c->full_pct);
    mg_json_key_str(j, "hinge", c->hinge);
    mg_json_key_str(j, "uncounted", c->uncounted);
    mg_json_key_str(j, "reason", c->reason != UINT32_MAX ? c->metrics.at[c->reason].name : NULL);
    mg_json_key_bool(j, "timing_dependent", c->by_timing);
    mg_json_key(j, "launches_counted");
    mg_json_arr(j);
    for (int i = 0; c->by == MG_JUDGED_BY_WORK && i < 2; i++) mg_json_f64(j, c->counted[i] / fmax(c->launches[i], 1));
    mg_json_end(j, ']');
    mg_json_key_str(j, "against", c->against != UINT32_MAX ? c->metrics.at[c->against].name : NULL);
    mg_json_end(j, '}');
    mg_json_key_bool(j, "common_kernels", !c->apart);
    mg_json_key(j, "other_arguments");
    mg_json_arr(j);
    for (int i = 0; c->arguments[0] && i < 2; i++) mg_json_str(j, c->arguments[i]);
    mg_json_end(j, ']');
    mg_json_key(j, "metrics");
    mg_json_arr(j);
    for (uint32_t i = 0; i < c->metrics.n; i++) {
        const struct mg_metric *m = &c->metrics.at[i];
        const char *judged = mg_metric_judged(c, m);
        if (!m->of.has[0] && !m->of.has[1]) continue;
        mg_json_obj(j);
        mg_json_key_str(j, "name", m->name);
        write_compared(j, &m->of);
        mg_json_key_str(j, "is", *judged ? judged : NULL);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "lines");
    mg_json_arr(j);
    for (uint32_t i = 0; i < c->lines.n; i++) {
        const struct mg_metric_line *l = &c->lines.at[i];
        if (l->weight <= 0) continue;
        mg_json_obj(j);
        mg_json_key_str(j, "metric", c->metrics.at[l->metric].name);
        mg_json_key_str(j, "function", l->function);
        mg_json_key_str(j, "file", l->file);
        mg_json_key_u64_if(j, "line_before", l->line[0] != 0, l->line[0]);
        mg_json_key_u64_if(j, "line_after", l->line[1] != 0, l->line[1]);
        write_compared(j, &l->of);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}
