/* margay study: what follows from the records and counts of a run. A study is one row of `studies`. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/study.h"

static const struct study {
    const char *name;
    int (*fn)(int argc, char **argv);
} studies[] = {
    {"communication", study_communication},
    {"subset", study_subset},
    {"ctas", study_ctas},
    {"cache", study_cache},
    {"predict", study_predict},
    {"overview", study_overview},
};

int cmd_study(int argc, char **argv)
{
    static const struct mg_opt_page page = {
        "study", "communication|subset|ctas|cache|predict|overview DIR... [OPTIONS]",
        "study a run: who communicates with whom, which launches stand for it",
        "communication   from a trace (run -t trace): which CTA reads what another one wrote, in how many bytes\n"
        "subset          from counts and times (run -t blocks, -t timeline): which launches stand for the program, "
        "with "
        "which error\n"
        "ctas            from counts of CTAs (run -t ctas): which CTAs stand for a long launch, with which error\n"
        "cache           from a trace: what caches of any size would hold\n"
        "predict         from counts and times of several programs: a launch's time, with its error\n"
        "overview        several programs at once: work, overhead, instruction mix, imbalance, as the papers show theirs\n\n"
        "margay study NAME --help has the options of each.\n"};
    const struct mg_opt opts[] = {MG_OPT_END};
    int status = MG_EXIT_USAGE;
    for (size_t i = 0; argc > 1 && i < MG_COUNT_OF(studies); i++)
        if (!strcmp(studies[i].name, argv[1])) return studies[i].fn(argc - 1, argv + 1);
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    return mg_opt_usage(&page, MG_EXIT_USAGE, n ? "no study %.100s" : "needs the name of a study", n ? argv[0] : "");
}
