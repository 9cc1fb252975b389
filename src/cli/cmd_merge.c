/* margay merge: the databases of several profiles in one directory, ranks kept or given. */
#include <stdio.h>

#include "cli/cli.h"
#include "store/store.h"

static const struct mg_opt_page page = {
    "merge", "-o DIR DIR...", "join profiles into one",
    "Every process stays a database of its own, so nothing is lost and `report` joins them as it joins the\n"
    "processes of one run: kernels by module and name. Processes without a rank get the number of their\n"
    "profile on the command line. DIR must be absent or empty; the sources are not changed.\n"};

int cmd_merge(int argc, char **argv)
{
    const char *to = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {MG_OPT_STR('o', "output", &to, "DIR", "the profile to make"), MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (!to) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs -o DIR");
    if (n < 1) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs profile directories");
    status = mg_recording_merge(to, (const char *const *)argv, (uint32_t)n, &d) ? mg_cli_fail(&d, MG_EXIT_INPUT)
                                                                                : MG_EXIT_OK;
    mg_diag_release(&d);
    return status;
}
