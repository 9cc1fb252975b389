/* margay: the commands, listed once. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/version.h"
#include "cli/cli.h"
#include "cli/docs.h"
#include "report/advice/advice.h"
#include "store/store.h"
#include "tool/tool.h"

struct mg_cmd {
    const char *name;
    int (*fn)(int argc, char **argv);
    const char *help;
    bool starts; /* programs of others, which get the signals as they are */
};
static const struct mg_cmd cmds[] = {
    /* the only list of commands */
    {"run", cmd_run, "run a program under a tool", true},
    {"ctl", cmd_ctl, "switch instrumentation of a running program", false},
    {"sched", cmd_sched, "run several programs that share one device", true},
    {"top", cmd_top, "show a running program's kernels as they run", false},
    {"report", cmd_report, "show or export a profile", false},
    {"annotate", cmd_annotate, "show source lines with what they cost", false},
    {"export", cmd_export, "write a profile in the form of another program", false},
    {"diff", cmd_diff, "compare two profiles", false},
    {"merge", cmd_merge, "join profiles into one", false},
    {"capture", cmd_capture, "record a program's work on the device", true},
    {"replay", cmd_replay, "run it again without the program", true},
    {"trace", cmd_trace, "show and check the trace files of a profile", false},
    {"study", cmd_study, "study runs: who communicates with whom, which launches stand for all, what time they take",
     false},
    {"tools", cmd_tools, "list the tools and their options", false},
    {"doctor", cmd_doctor, "say what works here and what does not", false},
    {"probe", cmd_probe, "compile probes written in C", false},
    {"ptx", cmd_ptx, "check, print, analyse PTX without a device", false},
};

int mg_cli_fail(const struct mg_diag *d, int status)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_diag_print(d, &text);
    for (const char *at = text.n ? text.at : ""; *at;) {
        size_t n = strcspn(at, "\n");
        fprintf(stderr, "margay: %.*s\n", (int)n, at);
        at += n + (at[n] == '\n');
    }
    mg_buf_release(&text);
    return status;
}

int mg_cli_out(const struct mg_buf *text)
{
    if (text->n && fwrite(text->at, 1, text->n, stdout) != text->n) goto failed;
    if (!fflush(stdout)) return MG_EXIT_OK;
failed:
    perror("margay: cannot write the output");
    return MG_EXIT_INPUT;
}

uint32_t mg_cli_columns(void)
{
    struct winsize w;
    const char *env = getenv("COLUMNS");
    if (!isatty(1)) return env ? (uint32_t)strtoul(env, NULL, 10) : 0;
    return ioctl(1, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

int mg_cli_damaged(const struct mg_recording *p, const char *rest, int status)
{
    for (uint32_t i = 0; i < p->n_damaged; i++)
        fprintf(stderr, "margay: %s%s%s\n", p->damaged[i], p->n_processes ? "; " : "", p->n_processes ? rest : "");
    return p->n_damaged ? MG_EXIT_INPUT : status;
}

static void print_commands(FILE *to)
{
    fputs("margay: runs unmodified CUDA programs with probes inside their kernels\n\n"
          "  margay COMMAND [OPTIONS]      margay help COMMAND, TOOL or RULE      margay --version\n\n",
          to);
    for (size_t i = 0; i < MG_COUNT_OF(cmds); i++) fprintf(to, "  %-8s %s\n", cmds[i].name, cmds[i].help);
    fputs(
        "\nmargay run -- ./app ARGS             counts what every block of every kernel does, on a GPU or without one\n"
        "margay run -t advise -- ./app ARGS   says what to fix, where, and what that could gain\n"
        "margay help findings                 the rules of the findings; margay help docs: pages to read here\n",
        to);
}

static const struct mg_cmd *find(const char *name)
{
    for (size_t i = 0; i < MG_COUNT_OF(cmds); i++)
        if (!strcmp(cmds[i].name, name)) return &cmds[i];
    return NULL;
}

/* Help about a rule of findings, or about all. */
static bool print_rule(const char *name)
{
    struct mg_buf text = MG_BUF_INIT;
    bool is = mg_advice_help(name, &text);
    if (is && strcmp(name, "advise") && strcmp(name, "findings")) {
        mg_doc_rule(name, &text);
        mg_buf_adds(&text, "    how a gain is computed: margay help docs/findings.md\n");
    }
    if (is) fputs(text.at, stdout);
    mg_buf_release(&text);
    return is;
}

/* A document, or with "docs" the list of them. */
static bool print_doc(const char *name)
{
    struct mg_buf text = MG_BUF_INIT;
    bool all = !strcmp(name, "docs") || !strcmp(name, "docs/");
    const char *doc = all ? NULL : mg_doc_find(name);
    if (all) mg_doc_list(&text);
    if (doc || all) fputs(doc ? doc : text.at, stdout);
    mg_buf_release(&text);
    return doc || all;
}

/* Output that nobody could read is no success. */
static int flushed(int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    if (!failed || status) return status;
    perror("margay: cannot write the output");
    return MG_EXIT_INPUT;
}

int main(int argc, char **argv)
{
    char *help[] = {NULL, "--help", NULL, NULL};
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    if (argc && !strcmp(slash ? slash + 1 : argv[0], "ptxas")) return cmd_ptxas(argc, argv);
    if (argc < 2) {
        print_commands(stderr);
        return MG_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
        puts("margay " MG_VERSION);
        return flushed(MG_EXIT_OK);
    }
    bool asks = !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
    if (asks && argc == 2) {
        print_commands(stdout);
        return flushed(MG_EXIT_OK);
    }
    const int most = asks && argc > 2 && !strcmp(argv[2], "study") ? 4 : 3; /* `help study subset`, as its pages say */
    if (asks && argc > most) {
        fprintf(stderr, "margay: help takes one name: '%s' is one too many\n", argv[most]);
        return MG_EXIT_USAGE;
    }
    const struct mg_cmd *c = find(argv[asks ? 2 : 1]);
    if (!c && asks && mg_tool_find(argv[2])) {
        char *tool[] = {"tools", "-v", argv[2], NULL};
        return flushed(cmd_tools(3, tool));
    }
    if (!c && asks && (print_rule(argv[2]) || print_doc(argv[2]))) return flushed(MG_EXIT_OK);
    if (!c) {
        fprintf(stderr, "margay: no command%s '%s' (see `margay help`)\n", asks ? ", tool, rule or document" : "",
                argv[asks ? 2 : 1]);
        return MG_EXIT_USAGE;
    }
    if (!c->starts) signal(SIGXFSZ, SIG_IGN); /* a file over the limit fails a write, and its part is taken away */
    if (!asks) return flushed(c->fn(argc - 1, argv + 1));
    help[0] = argv[2];
    if (argc == 4) help[1] = argv[3], help[2] = "--help";
    return flushed(c->fn(argc - 1, help));
}
