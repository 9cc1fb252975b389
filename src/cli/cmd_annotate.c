/* margay annotate: source lines with what they cost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/newest.h"
#include "report/annotate.h"

static const struct mg_opt_page page = {
    "annotate", "[DIR] [FILE|FUNCTION] [OPTIONS]", "show source lines with what they cost",
    "FILE is a source file of the profile, by its name or the end of its path; FUNCTION a pattern for kernels and device\n"
    "functions. Without either all files are shown, the costliest first; without DIR the newest profile here.\n"};

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int cmd_annotate(int argc, char **argv)
{
    struct mg_annotate_opts o = {0};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p = NULL;
    struct mg_buf out = MG_BUF_INIT;
    char newest[PATH_MAX];
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_FLAG(0, "ptx", &o.ptx, "the PTX that each line became below it, with how often threads executed it"),
        MG_OPT_FLAG(0, "sass", &o.sass,
                    "the machine instructions too, where a run with -t opcodes,level=sass mapped them"),
        MG_OPT_STR(0, "kernel", &o.kernel_glob, "GLOB", "only what kernels cost whose name matches"), MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n > 2) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes one profile directory and one file or function");
    if (n && mg_means_newest(argv[0])) argv++, n--;
    bool named = n == 2 || (n == 1 && mg_is_profile(argv[0]));
    if (n == 1 && !named && is_folder(argv[0])) {
        fprintf(stderr, "margay: %s is a directory without a profile\n", argv[0]);
        return MG_EXIT_INPUT;
    }
    if (n > (int)named) o.what = argv[n - 1];
    if (n == 1 && !named && strchr(argv[0], '/') && access(argv[0], F_OK) && !mg_newest_profile(0, newest)) {
        fprintf(stderr, "margay: %s: there is no such directory or file, and no profile here\n", argv[0]);
        return MG_EXIT_INPUT;
    }
    if (!named && !mg_newest_profile(0, newest))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no profile here: name its directory");
    o.color = isatty(1) && !getenv("NO_COLOR");
    if (mg_recording_open(named ? argv[0] : newest, &p, &d)) {
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    } else if (!mg_report_annotate(p, &o, &out)) {
        if (o.what)
            fprintf(stderr, "margay: %s names no file and no function with line information in %s\n", o.what, p->dir);
        else if (!p->n_kernels)
            fprintf(stderr, "margay: no kernel ran in %s: there is nothing to annotate\n", p->dir);
        else
            fprintf(stderr, "margay: no kernel of %s has line information: build with -lineinfo\n", p->dir);
        status = MG_EXIT_INPUT;
    } else {
        status = mg_cli_out(&out);
    }
    if (p) status = mg_cli_damaged(p, "the counts are of the other processes", status);
    mg_buf_release(&out);
    mg_recording_free(p);
    mg_diag_release(&d);
    return status;
}
