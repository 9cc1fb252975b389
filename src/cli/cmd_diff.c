/* margay diff: two profiles side by side; with --fail-over a difference is a finding. */
#include <stdio.h>

#include "cli/cli.h"
#include "report/report.h"

static const struct mg_opt_page page = {
    "diff", "DIR1 DIR2 [OPTIONS]", "compare two profiles",
    "Kernels are paired by module and name, else by name. The exit status is 1 when --fail-over was given\n"
    "and some kernel's thread instructions differ by more, or it is in one profile only. `--fail-over 0`\n"
    "demands equal counts. Blocks whose counts may depend on timing (`timing_dependent`) are listed apart\n"
    "and never fail.\n"};

/* What the comparison cannot speak of; true: something is missing. */
static bool say_missing(const char *dir, const struct mg_recording *p)
{
    struct mg_coverage c;
    mg_coverage_init(&c, p);
    unsigned long long n = c.not_written + c.no_end;
    bool missing = n || c.empty;
    if (missing) fprintf(stderr, "margay: %s: %llu launches have no counts because recording stopped or their end is not there; the comparison is of the others\n", dir, n);
    mg_coverage_release(&c);
    return missing;
}

static bool shows_none(const struct mg_recording *p, const struct mg_report_opts *o)
{
    bool none = o->kernel_glob != NULL;
    for (uint32_t i = 0; i < p->n_kernels; i++) none = none && !mg_report_shows(o, &p->kernels[i]);
    return none;
}

int cmd_diff(int argc, char **argv)
{
    struct mg_report_opts o = {.size = sizeof o};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p[2] = {NULL, NULL};
    struct mg_buf out = MG_BUF_INIT;
    double fail_over = -1;
    uint64_t top = 0;
    bool json = false;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_F64(0, "fail-over", &fail_over, 0, 1e9, "PCT", "exit 1 when a kernel differs by more than so many per cent"),
        MG_OPT_FLAG(0, "json", &json, "as JSON, every kernel and every block that differs"),
        MG_OPT_STR(0, "kernel", &o.kernel_glob, "GLOB", "only kernels whose name matches"),
        MG_OPT_U64(0, "top", &top, 1, UINT32_MAX, "N", "kernels to show (20)"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n != 2) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs two profile directories");
    o.top = (uint32_t)top;
    if (mg_recording_open(argv[0], &p[0], &d) || mg_recording_open(argv[1], &p[1], &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else {
        double worst = json ? mg_report_diff_json(p[0], p[1], &o, fail_over, &out) : mg_report_diff(p[0], p[1], &o, &out);
        status = mg_cli_out(&out);
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t i = 0; i < p[k]->n_damaged; i++) {
                fprintf(stderr, "margay: %s; the comparison is of the other processes\n", p[k]->damaged[i]);
                status = MG_EXIT_INPUT;
            }
        bool missing = say_missing(argv[0], p[0]) | say_missing(argv[1], p[1]);
        if (shows_none(p[0], &o) && shows_none(p[1], &o)) {
            fprintf(stderr, "margay: --kernel %s matches no kernel of %s or %s\n", o.kernel_glob, argv[0], argv[1]);
            missing = true;
        }
        if (!status && fail_over >= 0 && missing) status = MG_EXIT_INPUT; /* no gate passes on what was not compared */
        if (!status && fail_over >= 0 && worst > fail_over) status = MG_EXIT_FINDING;
    }
    mg_buf_release(&out);
    mg_recording_free(p[0]);
    mg_recording_free(p[1]);
    mg_diag_release(&d);
    return status;
}
