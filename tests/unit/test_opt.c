/* Option tables: every way of writing an option, every way of writing it wrong. */
#include "cli/opt.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

struct values {
    bool quiet, json;
    const char *dir, *mode;
    struct mg_opt_list tools;
    uint64_t top, ring;
    double pct;
};
static const struct mg_opt_page page = {"cmd", "DIR [OPTIONS]\nOTHER", "does things", "More.\n"};
static int status, n_left;
static char *left[16];
static char words[256];

/* Parses "a b c"; stdout and stderr go nowhere. */
static struct values parse(const char *line, unsigned flags)
{
    struct values v = {0};
    const struct mg_opt opts[] = {MG_OPT_FLAG('q', "quiet", &v.quiet, "no summary"),
                                  MG_OPT_FLAG(0, "json", &v.json, "as JSON"),
                                  MG_OPT_STR('o', "output", &v.dir, "DIR", "there"),
                                  MG_OPT_LIST('t', "tool", &v.tools, "TOOL", "with it"),
                                  MG_OPT_U64(0, "top", &v.top, 0, 1e6, "N", "how many"),
                                  MG_OPT_SIZE('r', "ring", &v.ring, 0, 1e12, "SIZE", "bytes"),
                                  MG_OPT_F64(0, "pct", &v.pct, 0, 100, "PCT", "limit"),
                                  MG_OPT_CHOICE('m', "mode", &v.mode, "fast|slow", "how"),
                                  MG_OPT_END};
    int argc = 0, keep1 = dup(1), keep2 = dup(2), null = open("/dev/null", O_WRONLY);
    snprintf(words, sizeof words, "cmd %s", line);
    for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) left[argc++] = w;
    left[argc] = NULL;
    status = 2;
    fflush(stdout);
    dup2(null, 1), dup2(null, 2);
    n_left = mg_opt_parse(&page, opts, flags, argc, left, &status);
    fflush(stdout);
    dup2(keep1, 1), dup2(keep2, 2);
    close(keep1), close(keep2), close(null);
    return v;
}

MG_TEST(opt_forms)
{
    struct values v = parse("-q dir --json -o out --top 7 -r64k --pct=2.5 -m slow", 0);
    MG_CHECK(v.quiet && v.json && v.top == 7 && v.ring == 65536 && v.pct == 2.5);
    MG_CHECK_STR(v.dir, "out");
    MG_CHECK_STR(v.mode, "slow");
    MG_CHECK_EQ(n_left, 1);
    MG_CHECK_STR(left[0], "dir");
    v = parse("-qoout a -- -q --nothing", 0);
    MG_CHECK(v.quiet && n_left == 3);
    MG_CHECK_STR(v.dir, "out");
    MG_CHECK_STR(left[2], "--nothing");
    v = parse("-t a --tool=b,x=1 -tc", 0);
    MG_CHECK_EQ(v.tools.n, 3);
    MG_CHECK_STR(v.tools.at[1], "b,x=1");
    free(v.tools.at);
    v = parse("-q app -o x --json", MG_OPT_STOP_AT_FIRST);
    MG_CHECK(v.quiet && !v.dir && !v.json && n_left == 4);
    MG_CHECK_STR(left[1], "-o");
    parse("- x", 0); /* a lone dash is an operand */
    MG_CHECK_EQ(n_left, 2);
}

MG_TEST(opt_usage_errors)
{
    static const char *const bad[] = {"--nothing",
                                      "-x",
                                      "-o",
                                      "--output",
                                      "--top x",
                                      "--top -1",
                                      "--top 99999999999999999999",
                                      "--quiet=1",
                                      "-m medium",
                                      "--pct 3x",
                                      "--pct=",
                                      "-r 5q",
                                      "-r 99999999999G",
                                      "--to 3",
                                      "--jso",
                                      "--top 1000001",
                                      "--top +1",
                                      "--top 0x",
                                      "--top 1e3",
                                      "--pct nan",
                                      "--pct inf",
                                      "--pct -1",
                                      "--pct 100.1",
                                      "--pct 1e999",
                                      "--pct 0x10",
                                      "-r 2000G"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parse(bad[i], 0);
        if (n_left != -1 || status != 2) mg_test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
    }
}

/* Leading zeros are decimal: a user who writes 010 does not mean 8. */
MG_TEST(opt_number_forms)
{
    MG_CHECK_EQ(parse("--top 010", 0).top, 10);
    MG_CHECK_EQ(parse("--top 0x10", 0).top, 16);
    MG_CHECK_EQ(parse("--top 1000000", 0).top, 1000000);
    MG_CHECK(parse("--pct .5", 0).pct == 0.5 && parse("--pct 1e2", 0).pct == 100);
}

MG_TEST(opt_help_forms)
{
    bool flag;
    const struct mg_opt opts[] = {MG_OPT_FLAG('q', "quiet", &flag, "no summary"), MG_OPT_END};
    struct mg_buf out = MG_BUF_INIT;
    mg_opt_print(&page, opts, MG_OPT_HELP, &out);
    MG_CHECK(strstr(out.at, "  margay cmd DIR [OPTIONS]\n  margay cmd OTHER\n") && strstr(out.at, "-q, --quiet") &&
             strstr(out.at, "More."));
    mg_buf_reset(&out);
    mg_opt_print(&page, opts, MG_OPT_MAN, &out);
    MG_CHECK(strstr(out.at, ".SH OPTIONS\n.TP\n\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nno summary\n"));
    mg_buf_reset(&out);
    mg_opt_print(&page, opts, MG_OPT_WORDS, &out);
    MG_CHECK_STR(out.at, "-q --quiet \t\tno summary\n");
    mg_buf_release(&out);
    parse("--help", 0);
    MG_CHECK(n_left == -1 && status == 0);
    parse("x -h", 0);
    MG_CHECK(n_left == -1 && status == 0);
}
