/* margay report: a profile as text, JSON or CSV on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/report.h"

static const struct mg_opt_page page = {
    "report", "DIR [OPTIONS]", "show or export a profile",
    "The text shows the hottest kernels and blocks first. JSON is stable and documented in docs/json.md;\n"
    "what was not measured is null there. A profile may be read while its program still runs.\n"};

static uint32_t terminal_columns(void)
{
    struct winsize w;
    const char *env = getenv("COLUMNS");
    if (!isatty(1)) return env ? (uint32_t)strtoul(env, NULL, 10) : 0;
    return ioctl(1, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

int cmd_report(int argc, char **argv)
{
    struct mg_report_opts o = {.size = sizeof o};
    bool json = false;
    uint64_t top = 0;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_FLAG(0, "json", &json, "everything, as JSON"),
        MG_OPT_FLAG(0, "per-launch", &o.per_launch, "with the counts and arguments of every launch"),
        MG_OPT_STR(0, "kernel", &o.kernel_glob, "GLOB", "only kernels of this name"),
        MG_OPT_STR(0, "tool", &o.tool, "NAME", "only the result of this tool"),
        MG_OPT_U64(0, "top", &top, "N", "kernels and blocks to show (10)"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n != 1) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs one profile directory");
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_profile *p;
    struct mg_buf out = MG_BUF_INIT;
    if (mg_profile_open(argv[0], &p, &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else {
        o.top = top > UINT32_MAX ? UINT32_MAX : (uint32_t)top;
        o.columns = terminal_columns();
        if (json) mg_report_json(p, &o, &out);
        else mg_report_summary(p, &out);
        status = mg_cli_out(&out);
    }
    mg_buf_release(&out);
    mg_profile_free(p);
    mg_diag_release(&d);
    return status;
}
