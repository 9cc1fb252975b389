/* margay export: a profile in the form of another program. A form is one row of `forms`. */
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "report/folded.h"

static const struct mg_opt_page page = {
    "export", "FORM [DIR] -o FILE [OPTIONS]", "write a profile in the form of another program",
    "folded: stacks for flame graphs (flamegraph.pl, speedscope, inferno): kernel, device function, source line, with thread\n"
    "instructions. Without DIR the newest profile here; without -o to stdout.\n"};

static const struct form {
    const char *name;
    void (*write)(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
} forms[] = {
    {"folded", mg_report_folded},
};

static const struct form *find_form(const char *name)
{
    for (size_t i = 0; i < MG_COUNT_OF(forms); i++)
        if (!strcmp(forms[i].name, name)) return &forms[i];
    return NULL;
}

int cmd_export(int argc, char **argv)
{
    struct mg_report_opts o = {.size = sizeof o};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p = NULL;
    struct mg_buf out = MG_BUF_INIT;
    const char *file = NULL;
    char newest[PATH_MAX];
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_STR('o', "output", &file, "FILE", "write it there"),
        MG_OPT_STR(0, "kernel", &o.kernel_glob, "GLOB", "only kernels whose name matches"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    const struct form *form = n ? find_form(argv[0]) : NULL;
    if (!form) return mg_opt_usage(&page, MG_EXIT_USAGE, n ? "no form %.100s: there is folded" : "needs a form: folded", n ? argv[0] : "");
    if (n > 2) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes a form and one profile directory");
    if (n < 2 && !mg_newest_profile(0, newest)) return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no profile here: name its directory");
    if (mg_recording_open(n == 2 ? argv[1] : newest, &p, &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else {
        form->write(p, &o, &out);
        if (!file) status = mg_cli_out(&out);
        else status = mg_io_write(file, out.n ? out.at : "", out.n, &d) ? mg_cli_fail(&d, MG_EXIT_INPUT) : MG_EXIT_OK;
    }
    mg_buf_release(&out);
    mg_recording_free(p);
    mg_diag_release(&d);
    return status;
}
