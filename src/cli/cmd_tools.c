/* margay tools: what `-t` takes: the tools of tools.def, or those that are named, shared objects included. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/run_tools.h"
#include "tool/spec.h"

static const struct mg_opt_page page = {
    "tools", "[TOOL]... [OPTIONS]", "list the tools and their options",
    "TOOL is a name, or the path of a tool's shared object. With -v: the options with what they are when left out, what\n"
    "the tool keeps, and what it costs on a GPU (docs/measured.md: without one).\n"};

static void add_tool(struct mg_buf *out, const struct mg_tool *t, bool verbose)
{
    mg_buf_printf(out, "%-10s %s\n", t->name, t->summary ? t->summary : "");
    if (!verbose) return;
    for (const struct mg_tool_opt *o = t->opts; o && o->key; o++) {
        char given[80];
        snprintf(given, sizeof given, "%s=%s", o->key, o->value);
        mg_buf_printf(out, "    %-16s %s\n", given, o->help);
    }
    if (mg_tool_page(t)) mg_buf_printf(out, "    page: %s\n", mg_tool_page(t));
    mg_buf_printf(out, "    keeps: %s\n",
                  t->flags & MG_TOOL_OF_TRACE                  ? "what the analysis found; its trace is taken away"
                  : t->flags & (MG_TOOL_NATIVE | MG_TOOL_SPAN) ? "launches and their times alone"
                  : t->counts                                  ? "block counts of every launch"
                  : t->flags & MG_TOOL_PER_LAUNCH ? "sites and cells of every kernel, and of each of its launches"
                                                  : "sites and cells of every kernel");
    if ((t->flags & (MG_TOOL_BESIDE | MG_TOOL_OF_TRACE)) == MG_TOOL_BESIDE)
        mg_buf_adds(out, "    and a record of each call and each piece of device work\n");
    if (t->cost) mg_buf_printf(out, "    costs: %s\n", t->cost);
}

int cmd_tools(int argc, char **argv)
{
    bool verbose = false;
    struct mg_buf out = MG_BUF_INIT;
    const struct mg_tool *t;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {MG_OPT_FLAG('v', "verbose", &verbose, "with the options, keeps and costs of each"),
                                  MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    status = MG_EXIT_OK;
    for (uint32_t i = 0; !n && (t = mg_tool_at(i)); i++) add_tool(&out, t, verbose);
    if (!n)
        mg_buf_printf(&out, "%-10s %s\n", "advise",
                      "the tools that findings need, in one go: what is wrong and what fixing it could gain");
    for (int i = 0; i < n && !status; i++) {
        struct mg_tool_spec spec;
        struct mg_diag d = MG_DIAG_INIT;
        char why[100];
        if (!mg_run_tool_opens(argv[i], why)) {
            (void)mg_diag_err(&d, MG_ERR_INPUT, "tool %s cannot be opened: %s", argv[i], why);
            status = mg_cli_fail(&d, MG_EXIT_INPUT);
        } else if (mg_tool_spec_open(argv[i], &spec, &d))
            status = mg_cli_fail(&d, MG_EXIT_INPUT);
        else
            add_tool(&out, spec.tool, verbose), mg_tool_spec_close(&spec);
        mg_diag_release(&d);
    }
    if (!status) status = mg_cli_out(&out);
    mg_buf_release(&out);
    return status;
}
