/* margay diff --html: the verdict, metrics, lines with their source before and after, and kernels, as one page that
 * needs nothing beside it and no script. A side's source is shown where the file was not written after its profile
 * began. */
#include "report/compare_page.h"

#include <math.h>
#include <string.h>

#include "base/version.h"
#include "report/priv.h"
#include "view/chart.h"

enum { MOST_LINES = 500, MOST_KERNELS = 500 };

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\"><title>Margay: before and after</title><style>\n"
    ":root{color-scheme:light dark;--paper:#fff;--raised:#f6f7f9;--ink:#1b1f24;--dim:#626b77;--line:#dfe3e8;--good:#13703f;--bad:#b3121d;"
    "--goodbg:#e2f4e8;--badbg:#fbe0e0}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14171b;--raised:#1c2026;--ink:#e4e7eb;--dim:#98a2ae;--line:#323942;--good:#6fd394;"
    "--bad:#ff8085;--goodbg:#15301f;--badbg:#3f1a1c}}\n"
    "body{margin:0 auto;max-width:86rem;padding:1rem 1.25rem 4rem;background:var(--paper);color:var(--ink);"
    "font:14px/1.45 system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\n"
    "h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.8rem 0 .6rem}code{font-family:ui-monospace,\"DejaVu Sans Mono\",monospace;"
    "font-size:.92em;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".verdict{padding:.7rem 1rem;border-radius:6px;background:var(--raised);font-size:1.15rem;margin:1rem 0}\n"
    ".verdict.better{background:var(--goodbg)}.verdict.worse{background:var(--badbg)}.verdict p{margin:.2rem 0;font-size:.9rem}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);"
    "text-align:right;vertical-align:top;font-variant-numeric:tabular-nums}\n"
    "th{color:var(--dim);font-weight:600;white-space:nowrap}.l{text-align:left}td.l{min-width:10rem}td.l>code{display:inline-block;max-height:6em;overflow-y:auto}td.n,td.n code{white-space:nowrap}.dim{color:var(--dim)}"
    ".better{color:var(--good)}.worse{color:var(--bad)}.verdict.better,.verdict.worse{color:inherit}\n"
    ".bar{display:inline-block;width:6rem;height:.55rem;position:relative;background:linear-gradient(var(--line),var(--line)) center/1px 100% no-repeat}\n"
    ".bar i{position:absolute;top:0;bottom:0;background:var(--dim)}tr.better .bar i{background:var(--good)}tr.worse .bar i{background:var(--bad)}\n"
    "tr.better,tr.worse{color:inherit}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.6rem 0}dt{color:var(--dim)}dd{margin:0;"
    "overflow-wrap:anywhere}.src{display:block}.src b{font-weight:600;color:var(--dim);margin-right:.4rem}\n"
    "@media(max-width:45rem){body{padding:.6rem .6rem 3rem}th,td{padding:.2rem .3rem}td.l{min-width:6rem}.bar{width:2.5rem}}\n"
    "@media print{body{max-width:none;padding:0}tr{break-inside:avoid}}\n"
    "</style></head><body><main>\n<p class=\"dim\">Margay</p><h1>Before and after</h1>\n";

/* ---- the two profiles ------------------------------------------------------------------------------------------ */

static void add_side(struct mg_buf *out, const char *label, const struct mg_recording *p)
{
    const char *const *argv;
    uint32_t argc;
    int exit_code;
    mg_report_command(p, &argv, &argc, &exit_code);
    mg_buf_printf(out, "<dt>%s</dt><dd><code>", label);
    for (uint32_t i = 0; i < argc; i++) {
        if (i) mg_buf_addc(out, ' ');
        mg_chart_text(out, argv[i]);
    }
    mg_buf_adds(out, "</code> <span class=\"dim\">");
    mg_chart_text(out, p->dir);
    if (p->n_processes) {
        const struct mg_pprocess *s = &p->processes[0];
        const char *software = !mg_has_host_times(p)           ? ""
                               : strcmp(s->device_kind, "emu") ? "the CPU as an "
                                                               : "the emulator as an ";
        mg_buf_printf(out, ", on %s", software);
        mg_chart_text(out, s->device_name ? s->device_name : "?");
        mg_buf_adds(out, ", tools: ");
        mg_chart_text(out, s->tools ? s->tools : "?");
    }
    mg_buf_adds(out, "</span></dd>\n");
}

/* ---- numbers ------------------------------------------------------------------------------------------------- */

static void add_value(struct mg_buf *out, bool has, double v)
{
    mg_buf_adds(out, "<td class=\"n\">");
    if (!has)
        mg_buf_adds(out, "–");
    else if (v >= 0 && v < 9e15 && (v == floor(v) || v >= 1000))
        mg_add_grouped(out, (uint64_t)(v + .5));
    else
        mg_buf_printf(out, "%.4g", v);
    mg_buf_adds(out, "</td>");
}

/* "+12.3 %"; from ten times on "15 times as much". */
static void add_change(struct mg_buf *out, double pct, int digits)
{
    if (pct >= 900 && pct < 9e15) {
        mg_add_grouped(out, (uint64_t)(pct / 100 + 1.5));
        mg_buf_adds(out, "&nbsp;times as much");
    } else {
        mg_buf_printf(out, "%+.*f&nbsp;%%", digits, pct);
    }
}

static void add_interval(struct mg_buf *out, double low, double high)
{
    mg_buf_adds(out, "<p>From ");
    add_change(out, low, 2);
    mg_buf_adds(out, " to ");
    add_change(out, high, 2);
}

static void add_pct(struct mg_buf *out, const bool has[2], double pct)
{
    bool both = has[0] && has[1];
    mg_buf_adds(out, "<td class=\"n\">");
    if (!both)
        mg_buf_adds(out, has[0] ? "only before" : "only after");
    else if (isinf(pct))
        mg_buf_adds(out, "from 0");
    else if (pct == 0)
        mg_buf_adds(out, "equal");
    else
        add_change(out, pct, fabs(pct) < 9.95 ? 2 : 1);
    double half = both ? fmin(50, isinf(pct) ? 50 : fabs(pct) / 2) : 0;
    mg_buf_printf(out, "</td><td><span class=\"bar\"><i style=\"left:%.1f%%;width:%.1f%%\"></i></span></td>",
                  pct < 0 ? 50 - half : 50, half);
}

static void add_model(const struct mg_comparison *c, struct mg_buf *out)
{
    if (mg_is_certain(c))
        mg_buf_adds(out, "<p>Whatever");
    else
        add_interval(out, c->low_pct, c->high_pct), mg_buf_adds(out, " by what");
    mg_buf_adds(out, " the model of work does not know (docs/findings.md). Counts are exact.</p>");
    if (c->counted[0] < c->launches[0] || c->counted[1] < c->launches[1])
        mg_buf_printf(
            out,
            "<p>Launches with counts: %.0f of %.0f before, %.0f of %.0f after; the others are taken to be like "
            "those of their kernel.</p>",
            c->counted[0], c->launches[0], c->counted[1], c->launches[1]);
    if (c->by_timing)
        mg_buf_adds(out, "<p>Most of it is of kernels whose counts may depend on timing: two runs of one build differ, "
                         "too. Compare several of each.</p>");
    else if (c->verdict == MG_VERDICT_UNCLEAR) {
        mg_buf_adds(out, "<p>It hinges on ");
        mg_add_hinge(c, out);
        mg_buf_adds(out, ".</p>");
    }
}

static void add_verdict(const struct mg_comparison *c, struct mg_buf *out)
{
    const char *is = c->by ? mg_verdict_names[c->verdict] : "none";
    if (c->apart) mg_buf_adds(out, "<p>No kernel is in both profiles: the totals of two programs are compared.</p>");
    mg_buf_printf(out, "<div class=\"verdict %s\" id=\"verdict\"><strong>%s</strong>", c->by ? is : "", is);
    if (!c->by) mg_buf_printf(out, ": neither time nor work was measured in both%s", c->uncounted ? ": " : "");
    if (!c->by && c->uncounted) mg_chart_text(out, c->uncounted);
    if (c->by) mg_buf_printf(out, ": %s ", c->by == MG_JUDGED_BY_TIME ? "kernel time" : "the kernels’ work as counted");
    if (c->by) add_change(out, c->change_pct, 2);
    if (c->by == MG_JUDGED_BY_WORK)
        add_model(c, out);
    else if (c->has_interval)
        add_interval(out, c->low_pct, c->high_pct), mg_buf_adds(out, " (95 %).</p>");
    else if (c->by)
        mg_buf_adds(out, "<p>No interval: a kernel was timed once.</p>");
    if (c->reason != UINT32_MAX) {
        mg_buf_adds(out, "<p>Changed most: <code>");
        mg_chart_text(out, c->metrics.at[c->reason].name);
        mg_buf_adds(out, "</code>");
        if (c->verdict == MG_VERDICT_UNCLEAR && c->against != UINT32_MAX) {
            mg_buf_adds(out, ", the other way <code>");
            mg_chart_text(out, c->metrics.at[c->against].name);
            mg_buf_adds(out, "</code>");
        }
        mg_buf_adds(out, "</p>");
    }
    if (c->arguments[0]) {
        mg_buf_adds(out, "<p>The programs were given other arguments: before <code>");
        mg_chart_text(out, c->arguments[0]);
        mg_buf_adds(out, "</code>, after <code>");
        mg_chart_text(out, c->arguments[1]);
        mg_buf_adds(out, "</code></p>");
    }
    mg_buf_adds(out, "</div>\n");
}

/* what: a row stands for. */
static void begin_table(struct mg_buf *out, const char *id, const char *title, const char *what, const char *last)
{
    mg_buf_printf(
        out,
        "<h2>%s</h2><div class=\"scroll\"><table id=\"%s\"><thead><tr><th class=\"l\">%s</th><th>before</th><th>after</th>"
        "<th>change</th><th></th>%s</tr></thead><tbody>\n",
        title, id, what, last);
}

static void end_table(struct mg_buf *out, uint32_t more)
{
    mg_buf_adds(out, "</tbody></table></div>\n");
    if (more) mg_buf_printf(out, "<p class=\"dim\">and %u more (margay diff --json has all)</p>\n", more);
}

static void add_metrics(const struct mg_comparison *c, bool judged, struct mg_buf *out)
{
    begin_table(out, judged ? "metrics" : "others",
                judged ? "Metrics" : "Figures of which neither more nor less is better", "metric",
                judged ? "<th></th>" : "");
    for (uint32_t i = 0; i < c->metrics.n; i++) {
        const struct mg_metric *m = &c->metrics.at[i];
        const char *is = mg_metric_judged(c, m);
        if (judged != (m->better != 0) || !(m->of.has[0] || m->of.has[1])) continue;
        mg_buf_printf(out, "<tr class=\"%s\"><td class=\"l\"><code>", is);
        mg_chart_text(out, m->name);
        mg_buf_adds(out, "</code></td>");
        add_value(out, m->of.has[0], m->of.v[0]);
        add_value(out, m->of.has[1], m->of.v[1]);
        add_pct(out, m->of.has, mg_compared_pct(&m->of));
        if (judged) mg_buf_printf(out, "<td class=\"l %s\">%s</td>", is, is);
        mg_buf_adds(out, "</tr>\n");
    }
    end_table(out, 0);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static bool matters(const struct mg_comparison *c, const struct mg_metric_line *l)
{
    return l->weight >= .001 && c->metrics.at[l->metric].better;
}

/* The path of the profile whose last part is `file`; NULL: none or several, or its lines may not be those that ran. */
static const char *path_of(struct mg_sources *s, const struct mg_recording *p, const char *file)
{
    const char *found = NULL;
    for (uint32_t k = 0; k < p->n_kernels && file; k++)
        for (uint32_t b = 0; b < p->kernels[k].n_blocks; b++) {
            const char *path = p->kernels[k].blocks[b].file, *slash = path ? strrchr(path, '/') : NULL;
            if (!path || strcmp(slash ? slash + 1 : path, file) || (found && !strcmp(found, path))) continue;
            if (found) return NULL;
            found = path;
        }
    return found && !mg_sources_doubt(s, found) ? found : NULL;
}

static void add_source(struct mg_buf *out, const char *label, const struct mg_buf *text)
{
    if (!text->n) return;
    mg_buf_adds(out, "<span class=\"src\">");
    if (label) mg_buf_printf(out, "<b>%s</b>", label);
    mg_buf_adds(out, "<code>");
    mg_chart_text(out, text->at);
    mg_buf_adds(out, "</code></span>");
}

/* What a line says before and after, once where that is the same. */
static void add_sources(struct mg_buf *out, struct mg_sources *const s[2], const struct mg_recording *const sides[2],
                        const struct mg_metric_line *l)
{
    struct mg_buf text[2] = {MG_BUF_INIT, MG_BUF_INIT};
    for (int side = 0; side < 2; side++) {
        size_t n = 0;
        const char *at =
            l->line[side] ? mg_sources_line(s[side], path_of(s[side], sides[side], l->file), l->line[side], &n) : NULL;
        if (at) mg_buf_add(&text[side], at, n);
    }
    bool same = text[0].n && text[1].n && !strcmp(text[0].at, text[1].at);
    add_source(out, same ? NULL : "before", &text[0]);
    if (!same) add_source(out, "after", &text[1]);
    mg_buf_release(&text[0]);
    mg_buf_release(&text[1]);
}

/* Whether a row above, up to the nth line, has shown what this line says. */
static bool is_shown(const struct mg_comparison *c, uint32_t n)
{
    const struct mg_metric_line *l = &c->lines.at[n];
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_metric_line *x = &c->lines.at[i];
        if (matters(c, x) && x->file && l->file && !strcmp(x->file, l->file) && x->line[0] == l->line[0] &&
            x->line[1] == l->line[1])
            return true;
    }
    return false;
}

static void add_place(struct mg_buf *out, const struct mg_metric_line *l)
{
    mg_chart_text(out, l->file ? l->file : "ptx");
    if (l->line[0] == l->line[1])
        mg_buf_printf(out, ":%u", l->line[0]);
    else if (!l->line[0])
        mg_buf_printf(out, ": new %u", l->line[1]);
    else if (!l->line[1])
        mg_buf_printf(out, ":%u gone", l->line[0]);
    else
        mg_buf_printf(out, ":%u → %u", l->line[0], l->line[1]);
}

static void add_lines(const struct mg_comparison *c, const struct mg_recording *const sides[2], struct mg_buf *out)
{
    struct mg_sources *s[2] = {mg_sources_new(sides[0]), mg_sources_new(sides[1])};
    uint32_t n = 0;
    begin_table(out, "lines", "Lines that changed", "line", "<th class=\"l\">metric</th><th class=\"l\">function</th>");
    for (uint32_t i = 0; i < c->lines.n; i++) {
        const struct mg_metric_line *l = &c->lines.at[i];
        const struct mg_metric *m = &c->metrics.at[l->metric];
        if (!matters(c, l) || ++n > MOST_LINES) continue;
        struct mg_compared of = l->of; /* a line that is not there counts 0 */
        of.has[0] = of.has[1] = true;
        mg_buf_printf(out, "<tr class=\"%s\"><td class=\"l\">", mg_compared_judged(&of, m->better));
        add_place(out, l);
        if (!is_shown(c, i)) add_sources(out, s, sides, l);
        mg_buf_adds(out, "</td>");
        add_value(out, l->of.has[0], l->of.v[0]);
        add_value(out, l->of.has[1], l->of.v[1]);
        add_pct(out, l->of.has, mg_compared_pct(&l->of));
        mg_buf_adds(out, "<td class=\"l n\"><code>");
        mg_chart_text(out, m->name);
        mg_buf_adds(out, "</code></td><td class=\"l\"><code>");
        mg_chart_text(out, l->function);
        mg_buf_adds(out, "</code></td></tr>\n");
    }
    end_table(out, n > MOST_LINES ? n - MOST_LINES : 0);
    if (!n) mg_buf_adds(out, "<p class=\"dim\">No line changed by a part of its metric that matters.</p>\n");
    mg_sources_free(s[0]);
    mg_sources_free(s[1]);
}

static void add_kernels(const struct mg_compare_kernel *kernels, uint32_t n, struct mg_buf *out)
{
    begin_table(out, "kernels", "Kernels, by thread instructions", "kernel", "<th>launches before</th><th>after</th>");
    for (uint32_t i = 0; i < n && i < MOST_KERNELS; i++) {
        const struct mg_compare_kernel *k = &kernels[i];
        mg_buf_adds(out, "<tr><td class=\"l\"><code>");
        mg_chart_text(out, k->name);
        mg_buf_printf(out, "</code>%s</td>",
                      k->timing ? " <span class=\"dim\">differs only in blocks whose counts may depend on timing</span>"
                                : "");
        for (int side = 0; side < 2; side++) add_value(out, k->has[side] && k->measured[side], (double)k->insts[side]);
        add_pct(out, k->has, k->pct);
        for (int side = 0; side < 2; side++) add_value(out, k->has[side], (double)k->launches[side]);
        mg_buf_adds(out, "</tr>\n");
    }
    end_table(out, n > MOST_KERNELS ? n - MOST_KERNELS : 0);
}

void mg_add_comparison_page(const struct mg_comparison *c, const struct mg_recording *before,
                            const struct mg_recording *after, const struct mg_compare_kernel *kernels, uint32_t n,
                            struct mg_buf *out)
{
    const struct mg_recording *const sides[2] = {before, after};
    mg_buf_adds(out, head);
    mg_buf_adds(out, "<dl>");
    add_side(out, "before", before);
    add_side(out, "after", after);
    mg_buf_adds(out, "</dl>\n");
    add_verdict(c, out);
    add_metrics(c, true, out);
    add_lines(c, sides, out);
    add_kernels(kernels, n, out);
    add_metrics(c, false, out);
    mg_buf_adds(out, "<p class=\"dim\">Margay " MG_VERSION "</p></main></body></html>\n");
}
