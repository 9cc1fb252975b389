/* A profile as one self-contained page: no script, nothing fetched, light and dark by the reader's setting.
 *
 *   page = head, kernels, one section for each tool (its tables, each with its pictures behind it), coverage
 *
 * A section is an element with an id and a place in the list at the top: another kind of section is one more
 * function in mg_report_html. */
#include <stdlib.h>
#include <string.h>

#include "report/priv.h"
#include "view/chart.h"

enum { rows_at_most = 400, kernels_at_most = 60 };

static const char style[] =
    "<style>:root{color-scheme:light dark;--line:#8884;--dim:#888}"
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:84rem;padding:0 1rem}"
    "h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}h3{font-size:1rem;margin-bottom:.3rem}"
    "nav a{margin-right:1rem}pre{white-space:pre-wrap;color:var(--dim)}.scroll{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th{font-weight:600}.l{text-align:left}td.l{max-width:34rem;overflow:hidden;text-overflow:ellipsis}"
    "figure{margin:1rem 0;overflow-x:auto}.note{color:var(--dim);font-size:.87rem}</style>\n";

static bool is_left(enum mg_column_kind kind) { return kind == MG_COL_TEXT || kind == MG_COL_PLACE; }

static void add_cell(struct mg_buf *out, const char *tag, bool left, const char *text)
{
    mg_buf_printf(out, left ? "<%s class=\"l\">" : "<%s>", tag);
    mg_chart_text(out, text);
    mg_buf_printf(out, "</%s>", tag);
}

static void add_table(const struct mg_one_table *t, struct mg_buf *out)
{
    uint32_t shown = MG_MIN(t->n_rows, (uint32_t)rows_at_most);
    struct mg_buf cell = MG_BUF_INIT;
    if (t->title && *t->title) mg_buf_adds(out, "<h3>"), mg_chart_text(out, t->title), mg_buf_adds(out, "</h3>\n");
    if (t->columns.n && t->n_rows) {
        mg_buf_adds(out, "<div class=\"scroll\"><table><thead><tr>");
        for (uint32_t c = 0; c < t->columns.n; c++) {
            const struct mg_table_column *col = &t->columns.at[c];
            mg_buf_reset(&cell);
            mg_buf_printf(&cell, col->unit ? "%s, %s" : "%s", col->name, col->unit ? col->unit : "");
            add_cell(out, "th", is_left(col->kind), cell.at);
        }
        mg_buf_adds(out, "</tr></thead><tbody>\n");
        for (uint32_t r = 0; r < shown; r++) {
            mg_buf_adds(out, "<tr>");
            for (uint32_t c = 0; c < t->columns.n; c++) {
                struct mg_table_value v = mg_table_value(t, r, c);
                mg_format_value(&cell, &v, t->columns.at[c].kind);
                add_cell(out, "td", is_left(t->columns.at[c].kind), cell.at);
            }
            mg_buf_adds(out, "</tr>\n");
        }
        mg_buf_adds(out, "</tbody></table></div>\n");
    } else if (t->columns.n) {
        mg_buf_printf(out, "<p class=\"note\">%s</p>\n", t->empty);
    }
    if (t->n_rows > shown) mg_buf_printf(out, "<p class=\"note\">and %u more rows (margay report --csv --table %s has all)</p>\n", t->n_rows - shown, t->name);
    for (uint32_t i = 0; i < t->notes.n; i++) mg_buf_adds(out, "<p class=\"note\">"), mg_chart_text(out, t->notes.at[i]), mg_buf_adds(out, "</p>\n");
    for (uint32_t i = 0; i < t->charts.n; i++) mg_buf_adds(out, "<figure>"), mg_buf_add(out, t->charts.at[i].svg, t->charts.at[i].n), mg_buf_adds(out, "</figure>\n");
    mg_buf_release(&cell);
}

static void begin_section(struct mg_buf *out, const char *id, const char *title)
{
    mg_buf_adds(out, "<section id=\""), mg_chart_text(out, id), mg_buf_adds(out, "\"><h2>"), mg_chart_text(out, title), mg_buf_adds(out, "</h2>\n");
}

/* ---- what is on the page -------------------------------------------------------------------------------- */

static bool shows_tool(const struct mg_profile *p, const struct mg_report_opts *o, uint32_t use)
{
    return !o->tool || !strcmp(o->tool, p->uses[use].name);
}

static void add_head(const struct mg_profile *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    const char *const *argv;
    uint32_t argc;
    int exit_code;
    struct mg_buf command = MG_BUF_INIT;
    mg_report_command(p, &argv, &argc, &exit_code);
    for (uint32_t i = 0; i < argc; i++) mg_buf_printf(&command, i ? " %s" : "%s", argv[i]);
    mg_buf_addc(&command, 0);
    mg_buf_adds(out, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>");
    mg_chart_text(out, command.at);
    mg_buf_adds(out, "</title>\n");
    mg_buf_adds(out, style);
    mg_buf_adds(out, "</head><body><h1>");
    mg_chart_text(out, command.at);
    mg_buf_adds(out, "</h1>\n<p>");
    for (uint32_t i = 0; i < p->n_processes && i < 1; i++) {
        const struct mg_pprocess *q = &p->processes[i];
        mg_chart_text(out, q->device_kind ? q->device_kind : "");
        if (q->device_name) mg_buf_adds(out, ": "), mg_chart_text(out, q->device_name);
        mg_buf_printf(out, ", %u multiprocessors", q->sms);
    }
    if (exit_code >= 0) mg_buf_printf(out, "; exit status %d", exit_code);
    mg_buf_adds(out, "</p>\n<nav><a href=\"#kernels\">kernels</a>");
    for (uint32_t u = 0; u < p->n_uses; u++) {
        if (!shows_tool(p, o, u)) continue;
        mg_buf_adds(out, "<a href=\"#tool-"), mg_chart_text(out, p->uses[u].name), mg_buf_adds(out, "\">"), mg_chart_text(out, p->uses[u].name), mg_buf_adds(out, "</a>");
    }
    mg_buf_adds(out, "<a href=\"#coverage\">coverage</a></nav>\n");
    mg_buf_release(&command);
}

static void put_count(struct mg_table *t, bool has, uint64_t v)
{
    if (has) mg_table_u64(t, v);
    else mg_table_null(t);
}

static void add_kernels(const struct mg_profile *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    struct mg_table t = {0};
    uint32_t n, shown;
    struct mg_hot_kernel *hot = mg_hot_kernels(p, o, &n);
    struct mg_chart_bar *bars = mg_xcalloc(n + 1, sizeof *bars);
    struct mg_buf svg = MG_BUF_INIT;
    uint64_t all = 0;
    bool measured = false;
    shown = MG_MIN(n, (uint32_t)kernels_at_most);
    for (uint32_t i = 0; i < n; i++) all += hot[i].s.thread_insts, measured = measured || hot[i].s.measured;
    begin_section(out, "kernels", "Kernels");
    mg_table_begin(&t, "kernels", NULL);
    mg_table_column(&t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(&t, "launches", MG_COL_COUNT, NULL);
    mg_table_column(&t, "thread instructions", MG_COL_COUNT, NULL);
    mg_table_column(&t, "share", MG_COL_PERCENT, NULL);
    mg_table_column(&t, "warp instructions", MG_COL_COUNT, NULL);
    mg_table_column(&t, "time", MG_COL_TIME_NS, NULL);
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_kernel_sums *s = &hot[i].s;
        mg_table_row(&t);
        mg_table_text(&t, hot[i].k->demangled);
        mg_table_u64(&t, hot[i].k->launches);
        put_count(&t, s->measured, s->thread_insts);
        if (s->measured && all) mg_table_f64(&t, 100 * (double)s->thread_insts / (double)all);
        else mg_table_null(&t);
        put_count(&t, s->has_warps, s->warp_insts);
        put_count(&t, hot[i].k->time_ns > 0, hot[i].k->time_ns);
        bars[i] = (struct mg_chart_bar){.label = hot[i].k->demangled, .value = (double)s->thread_insts};
    }
    if (measured && shown > 1) mg_chart_bars(&svg, "Thread instructions by kernel", bars, shown);
    if (svg.n) mg_table_chart(&t, "kernels", "Thread instructions by kernel", svg.at, svg.n);
    for (uint32_t i = 0; i < t.tables.n; i++) {
        t.tables.at[i].title = NULL;
        add_table(&t.tables.at[i], out);
    }
    mg_buf_adds(out, "</section>\n");
    free(bars);
    mg_buf_release(&svg);
    mg_table_release(&t);
    mg_hot_release(hot, n);
}

/* Calls fn with the tables of each tool that is shown. */
static void each_tool(const struct mg_profile *p, const struct mg_report_opts *o, void (*fn)(const struct mg_puse *u, const struct mg_table *t, void *user), void *user)
{
    for (uint32_t u = 0; u < p->n_uses; u++) {
        struct mg_table t = {0};
        struct mg_buf text = MG_BUF_INIT;
        struct mg_json j;
        if (!shows_tool(p, o, u)) continue;
        mg_json_init(&j, &text, 0);
        mg_json_obj(&j);
        mg_tool_tell(p, u, o, &t, &j);
        fn(&p->uses[u], &t, user);
        mg_table_release(&t);
        mg_buf_release(&text);
    }
}

static void add_tool(const struct mg_puse *u, const struct mg_table *t, void *user)
{
    struct mg_buf *out = user, id = MG_BUF_INIT;
    mg_buf_printf(&id, "tool-%s", u->name);
    begin_section(out, id.at, u->name);
    if (u->args && *u->args) mg_buf_adds(out, "<p class=\"note\">options: "), mg_chart_text(out, u->args), mg_buf_adds(out, "</p>\n");
    for (uint32_t i = 0; i < t->tables.n; i++) add_table(&t->tables.at[i], out);
    mg_buf_adds(out, "</section>\n");
    mg_buf_release(&id);
}

void mg_report_html(const struct mg_profile *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    struct mg_buf coverage = MG_BUF_INIT;
    if (!o) o = &defaults;
    add_head(p, o, out);
    add_kernels(p, o, out);
    each_tool(p, o, add_tool, out);
    begin_section(out, "coverage", "Coverage");
    mg_add_left_alone(p, &coverage, UINT32_MAX);
    mg_add_coverage(p, &coverage, UINT32_MAX);
    mg_buf_adds(out, "<pre>");
    for (char *line = coverage.at, *end; line && *line; line = end) {
        end = line + strcspn(line, "\n");
        char newline = *end;
        *end = 0;
        mg_chart_text(out, line);
        mg_buf_addc(out, '\n');
        if (newline) end++;
    }
    mg_buf_adds(out, "</pre></section></body></html>\n");
    mg_buf_release(&coverage);
}

/* ---- pictures alone -------------------------------------------------------------------------------------- */

struct keeping { mg_report_chart_fn fn; void *user; };

static void keep_charts(const struct mg_puse *u, const struct mg_table *t, void *user)
{
    const struct keeping *k = user;
    (void)u;
    for (uint32_t i = 0; i < t->tables.n; i++)
        for (uint32_t c = 0; c < t->tables.at[i].charts.n; c++) k->fn(t->tables.at[i].charts.at[c].name, t->tables.at[i].charts.at[c].svg, t->tables.at[i].charts.at[c].dot, k->user);
}

void mg_report_charts(const struct mg_profile *p, const struct mg_report_opts *o, mg_report_chart_fn fn, void *user)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    struct keeping k = {fn, user};
    each_tool(p, o ? o : &defaults, keep_charts, &k);
}
