/* margay probe: probes in C without running anything: compiled, checked, and written where they can be
 * carried to a machine that has no compiler. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "cli/cli.h"
#include "cli/probe_compile.h"
#include "probe/probe.h"

static const struct mg_opt_page page = {
    "probe", "compile FILE.c [OPTIONS]\nshow FILE.c|FILE.ptx", "compile probes in C",
    "compile writes FILE.ptx, which `margay run --probe FILE.ptx` takes on machines without a compiler.\n"
    "show prints the clauses and maps that the probe declares.\n"
    "Exit status: 0 ok; 1 the probe is refused, the message names file and line; 2 usage; 3 input.\n"};

static int compile(const char *file, const char *out, const char *with)
{
    struct mg_buf ptx = MG_BUF_INIT, name = MG_BUF_INIT;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_probe *p = NULL;
    size_t n = strlen(file);
    mg_buf_printf(&name, "%.*s.ptx", (int)(n > 2 && !strcmp(file + n - 2, ".c") ? n - 2 : n), file);
    enum mg_err err = mg_probe_compile(file, with, &ptx, &d);
    int status = err == MG_ERR_INPUT ? MG_EXIT_FINDING : MG_EXIT_INPUT;
    if (!err && (err = mg_probe_parse(ptx.at, ptx.n, file, &p, &d))) status = MG_EXIT_FINDING;
    if (!err) err = mg_io_write(out ? out : name.at, ptx.at, ptx.n, &d);
    status = err ? mg_cli_fail(&d, status) : MG_EXIT_OK;
    mg_probe_free(p);
    mg_buf_release(&ptx);
    mg_buf_release(&name);
    mg_diag_release(&d);
    return status;
}

static int show(const char *file)
{
    struct mg_buf text = MG_BUF_INIT;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_probe_program(file, &text, &d);
    int status =
        err ? mg_cli_fail(&d, err == MG_ERR_INPUT || err == MG_ERR_UNSUPPORTED ? MG_EXIT_FINDING : MG_EXIT_INPUT)
            : mg_cli_out(&text);
    mg_buf_release(&text);
    mg_diag_release(&d);
    return status;
}

int cmd_probe(int argc, char **argv)
{
    const char *out = NULL, *with = NULL;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_STR('o', "output", &out, "FILE.ptx", "where to write it"),
        MG_OPT_CHOICE(0, "with", &with, "clang|nvrtc", "which compiler; otherwise clang where it is there, else NVRTC"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n == 2 && !strcmp(argv[0], "compile")) return compile(argv[1], out, with);
    if (n == 2 && !strcmp(argv[0], "show") && !out && !with) return show(argv[1]);
    return mg_opt_usage(&page, MG_EXIT_USAGE, "takes compile FILE.c, or show FILE");
}
