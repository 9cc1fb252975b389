/* margay report: a profile as text, JSON or CSV on stdout, as a page or as pictures in files. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/trace_damage.h"
#include "cli/newest.h"
#include "cli/pictures.h"
#include "report/report.h"

static const struct mg_opt_page page = {
    "report", "[DIR] [OPTIONS]", "show or export a profile",
    "The text shows the hottest kernels, and of these the hottest blocks with their source lines, the\n"
    "opcodes and the share of lanes in use; it ends with the coverage line. JSON is stable and documented\n"
    "in docs/json.md: what was not measured is null there, an empty cell in CSV. --html writes one page that\n"
    "needs nothing beside it: kernels, source, blocks, tables and pictures of all tools. A\n"
    "profile may be read while its program still runs, and after it was killed. Text is as wide as the terminal,\n"
    "or as COLUMNS says; cells that do not fit are cut with `..` (COLUMNS=300 cuts few, --csv and --json none).\n"};

static bool locale_is_utf8(void)
{
    setlocale(LC_CTYPE, "");
    bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    setlocale(LC_CTYPE, "C");
    return utf8;
}

static bool any_shown(const struct mg_recording *p, const struct mg_report_opts *o)
{
    bool any = !o->kernel_glob;
    for (uint32_t i = 0; i < p->n_kernels; i++) any = any || mg_report_shows(o, &p->kernels[i]);
    return any;
}

/* ---- files ------------------------------------------------------------------------------------------ */

static enum mg_err write_files(const struct mg_recording *p, const struct mg_report_opts *o, const char *html,
                               const char *charts, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    struct mg_buf text = MG_BUF_INIT;
    if (html) {
        mg_report_html(p, o, &text);
        err = mg_io_write(html, text.at, text.n, d);
    }
    if (charts && !err) {
        struct mg_pictures pictures = mg_pictures_begin(charts, d);
        if (!pictures.err) mg_report_charts(p, o, mg_pictures_write, &pictures);
        err = pictures.err;
    }
    mg_buf_release(&text);
    return err;
}

static enum mg_report_sort find_sort(const char *name)
{
    static const char *const names[] = {"", "time", "instructions", "launches", "name"}; /* ORDER mg_report_sort */
    for (unsigned i = 1; name && i < MG_COUNT_OF(names); i++)
        if (!strcmp(name, names[i])) return (enum mg_report_sort)i;
    return MG_SORT_DEFAULT;
}

static enum mg_report_by find_group(char first)
{
    return first == 'f' ? MG_BY_FAMILY : first == 'c' ? MG_BY_CAUSE : first == 'd' ? MG_BY_DEVICE : MG_BY_RANGE;
}

/* --tool with a table's name: that table of its tool. */
static void take_table(const struct mg_recording *p, struct mg_report_opts *o)
{
    if (!o->tool || o->table || mg_report_has_tool(p, o->tool)) return;
    const char *table = o->tool, *tool;
    struct mg_report_opts all = *o;
    all.tool = NULL;
    if (!(tool = mg_report_tool_of_table(p, &all, table))) return;
    o->tool = tool;
    o->table = table;
}

/* The tool and the table that were asked for are there? */
static enum mg_err find_parts(const struct mg_recording *p, const char *dir, const struct mg_report_opts *o, bool csv,
                              struct mg_diag *d)
{
    struct mg_report_opts all = *o;
    all.tool = NULL;
    all.table = o->tool;
    bool known = !o->tool || mg_report_has_tool(p, o->tool);
    if (!known && mg_report_has_table(p, &all))
        return mg_diag_err(d, MG_ERR_INPUT, "%s is a table of the whole report: margay report --csv --table %s",
                           o->tool, o->tool);
    if (!known)
        return mg_diag_err(d, MG_ERR_INPUT,
                           "%s has neither a tool nor a table named %s (margay report --csv --table list names them)",
                           dir, o->tool);
    if (!csv || mg_report_has_table(p, o)) return MG_ERR_OK;
    all.table = NULL;
    const char *owner = o->tool ? mg_report_tool_of_table(p, &all, o->table) : NULL;
    if (owner) return mg_diag_err(d, MG_ERR_INPUT, "table %s is of tool %s, not of %s", o->table, owner, o->tool);
    return mg_diag_err(d, MG_ERR_INPUT, "%s has no table named %s (--table list names them)", dir, o->table);
}

int cmd_report(int argc, char **argv)
{
    struct mg_report_opts o = {.size = sizeof o};
    bool json = false, csv = false;
    const char *html = NULL, *charts = NULL;
    const char *sort = NULL, *by = NULL;
    struct mg_opt_list tools = {0};
    char newest[PATH_MAX];
    uint64_t top = 0;
    int status = MG_EXIT_USAGE, failed = 0;
    const struct mg_opt opts[] = {
        MG_OPT_FLAG(0, "json", &json, "everything, as JSON"),
        MG_OPT_FLAG(0, "csv", &csv, "one table, as CSV"),
        MG_OPT_STR(
            0, "table", &o.table, "NAME",
            "which table --csv prints: kernels, blocks, opcodes, launches, findings, or one of a tool; list: which there are (blocks; launches with --per-launch)"),
        MG_OPT_STR(0, "html", &html, "FILE", "one self-contained page to work in: kernels, source, blocks, tools"),
        MG_OPT_STR(0, "charts", &charts, "DIR", "the tools' pictures, as DIR/NAME.svg; graphs as DIR/NAME.dot, too"),
        MG_OPT_FLAG(0, "per-launch", &o.per_launch, "with the counts and arguments of every launch"),
        MG_OPT_STR(0, "kernel", &o.kernel_glob, "GLOB", "only kernels whose name matches, mangled or not"),
        MG_OPT_LIST(0, "tool", &tools, "NAME",
                    "only the result of this tool, or this table of one; advise: only the findings"),
        MG_OPT_CHOICE(0, "sort", &sort, "time|instructions|launches|name",
                      "order of kernels (by time where a GPU measured it, else by instructions)"),
        MG_OPT_CHOICE(0, "by", &by, "family|cause|range|device",
                      "launches in groups: kernels of one name, why they were not instrumented, ranges of NVTX around "
                      "them (-t timeline), devices"),
        MG_OPT_U64(0, "top", &top, 1, UINT32_MAX, "N", "kernels, blocks and opcodes to show"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    const char *second = tools.n > 1 ? tools.at[1] : NULL;
    o.tool = tools.n ? tools.at[0] : NULL;
    free(tools.at);
    if (n < 0) return status;
    if (n > 1) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes one profile directory");
    if (second)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--tool takes one tool or table: '%.200s' is one too many", second);
    if (n && mg_means_newest(argv[0])) n = 0;
    if (!n && !mg_newest_profile(0, newest))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "needs a profile directory: there is none here");
    const char *dir = n ? argv[0] : newest;
    if (json && csv) return mg_opt_usage(&page, MG_EXIT_USAGE, "--json and --csv exclude each other");
    if ((html || charts) && (json || csv))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--html and --charts write files: they go without --json and --csv");
    if (by && (html || charts || o.table || o.tool || o.per_launch || sort))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "--by goes with --json, --csv, --kernel and --top");
    if (o.table && !csv) return mg_opt_usage(&page, MG_EXIT_USAGE, "--table needs --csv");
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p;
    struct mg_buf out = MG_BUF_INIT;
    enum mg_err err = mg_recording_open(dir, &p, &d);
    if (!err && !html && !charts && !json) take_table(p, &o);
    if (err) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else if (find_parts(p, dir, &o, csv, &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else {
        o.top = (uint32_t)top;
        o.sort = find_sort(sort);
        o.columns = mg_cli_columns();
        o.color = isatty(1) && !getenv("NO_COLOR");
        o.ascii = !locale_is_utf8();
        if (by) {
            enum mg_report_by group = find_group(*by);
            enum mg_report_form form = json ? MG_FORM_JSON : csv ? MG_FORM_CSV : MG_FORM_TEXT;
            if (mg_report_groups(p, &o, group, form, &out, &d)) failed = mg_cli_fail(&d, MG_EXIT_INPUT);
        } else if (html || charts)
            status = write_files(p, &o, html, charts, &d) ? mg_cli_fail(&d, MG_EXIT_INPUT) : 0;
        else if (json)
            mg_report_json(p, &o, &out);
        else if (csv)
            mg_report_csv(p, &o, &out);
        else
            mg_report_text(p, &o, &out);
        if (!html && !charts) status = mg_cli_out(&out);
        if (failed) status = failed;
        if (!any_shown(p, &o))
            fprintf(stderr, "margay: --kernel %s matches none of the %u kernels of %s\n", o.kernel_glob, p->n_kernels,
                    dir);
        status = mg_cli_damaged(p, "the report is of the other processes", status);
        if (mg_trace_say_lost_of(dir, p)) status = MG_EXIT_INPUT;
    }
    mg_buf_release(&out);
    mg_recording_free(p);
    mg_diag_release(&d);
    return status;
}
