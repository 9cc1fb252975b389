/* Options as data: one table per command is parser, --help, manual synopsis and completion.
 *
 *   const struct mg_opt opts[] = {
 *       MG_OPT_STR('o', "output", &o.dir, "DIR", "write the profile there"),
 *       MG_OPT_FLAG('q', "quiet", &o.quiet, "no summary"),
 *       MG_OPT_END };
 *   static const struct mg_opt_page page = { "run", "[OPTIONS] -- APP [ARGS...]", "run a program under a tool", more };
 *   int n = mg_opt_parse(&page, opts, MG_OPT_STOP_AT_FIRST, argc, argv, &status);
 *   if (n < 0) return status;               --help was printed (0) or the usage is wrong (2 or what status held)
 *   argv[0..n-1] are the operands.
 *
 * Accepts -x, -xVALUE, -x VALUE, --name, --name=VALUE, --name VALUE, bundled flags (-qv), "--".
 * Does not: abbreviate long names, read the environment, or know any command.
 */
#ifndef MG_CLI_OPT_H
#define MG_CLI_OPT_H

#include "base/buf.h"

enum mg_opt_kind {
    MG_OPT_KIND_end,
    MG_OPT_KIND_flag,
    MG_OPT_KIND_str,
    MG_OPT_KIND_list,
    MG_OPT_KIND_u64,
    MG_OPT_KIND_size,
    MG_OPT_KIND_f64,
    MG_OPT_KIND_choice
};
struct mg_opt {
    enum mg_opt_kind kind;
    char letter;        /* 0: none */
    const char *name;   /* long name without dashes */
    void *to;           /* bool, const char *, struct mg_opt_list, uint64_t or double, as the kind says */
    const char *arg;    /* name of the value in help; for a choice "a|b|c" */
    const char *help;   /* one line, no full stop */
    double least, most; /* of a number; what lies outside is a usage error */
};
struct mg_opt_list {
    const char **at;
    uint32_t n;
}; /* values in order, borrowed from argv; release with free(at) */

#define MG_OPT_FLAG(l, n, p, h)                                                                                        \
    {                                                                                                                  \
        MG_OPT_KIND_flag, l, n, (bool *)(p), NULL, h, 0, 0                                                             \
    }
#define MG_OPT_STR(l, n, p, a, h)                                                                                      \
    {                                                                                                                  \
        MG_OPT_KIND_str, l, n, (const char **)(p), a, h, 0, 0                                                          \
    }
#define MG_OPT_LIST(l, n, p, a, h)                                                                                     \
    {                                                                                                                  \
        MG_OPT_KIND_list, l, n, (struct mg_opt_list *)(p), a, h, 0, 0                                                  \
    } /* may be repeated */
#define MG_OPT_U64(l, n, p, least, most, a, h)                                                                         \
    {                                                                                                                  \
        MG_OPT_KIND_u64, l, n, (uint64_t *)(p), a, h, least, most                                                      \
    } /* bounds below 2^53 */
#define MG_OPT_SIZE(l, n, p, least, most, a, h)                                                                        \
    {                                                                                                                  \
        MG_OPT_KIND_size, l, n, (uint64_t *)(p), a, h, least, most                                                     \
    } /* 64, 4k, 16M, 1G */
#define MG_OPT_F64(l, n, p, least, most, a, h)                                                                         \
    {                                                                                                                  \
        MG_OPT_KIND_f64, l, n, (double *)(p), a, h, least, most                                                        \
    }
#define MG_OPT_CHOICE(l, n, p, a, h)                                                                                   \
    {                                                                                                                  \
        MG_OPT_KIND_choice, l, n, (const char **)(p), a, h, 0, 0                                                       \
    }
/* Those of every command that runs a program. */
#define MG_OPT_DEVICE(p)                                                                                               \
    MG_OPT_CHOICE(0, "device", p, "auto|nvidia|cpu|emu", "where the kernels run (auto: a GPU, else cpu, else emu)")
#define MG_OPT_PROPERTIES(p) MG_OPT_STR(0, "as", p, "PROPERTIES", "device whose properties cpu and emu answer (h200)")
#define MG_OPT_QUIET(p)      MG_OPT_FLAG('q', "quiet", p, "say nothing but errors")
#define MG_OPT_END                                                                                                     \
    {                                                                                                                  \
        MG_OPT_KIND_end, 0, NULL, NULL, NULL, NULL, 0, 0                                                               \
    }

struct mg_opt_page {
    const char *name;  /* command */
    const char *args;  /* synopsis behind the name; several forms: one a line */
    const char *about; /* one line, no full stop */
    const char *more;  /* text below the options, or NULL */
};
enum mg_opt_flags {
    MG_OPT_STOP_AT_FIRST = 1, /* the first operand ends the options: what follows belongs to it */
};
/* Moves the operands to argv[0..] and returns their number. argv[0] on entry is the command. Returns
 * -1 when the caller must leave: *status then is 0 (help was printed) or usage_status with one line
 * on stderr. Set *status to the usage status before the call (2, or 120 for run). */
int mg_opt_parse(const struct mg_opt_page *page, const struct mg_opt *opts, unsigned flags, int argc, char **argv,
                 int *status);
/* One line "margay CMD: TEXT" and "see `margay help CMD`" on stderr; returns status. */
int mg_opt_usage(const struct mg_opt_page *page, int status, const char *fmt, ...) MG_PRINTF(3, 4);

enum mg_opt_form {
    MG_OPT_HELP,
    MG_OPT_MAN,
    MG_OPT_WORDS
}; /* --help, --help=man (roff), --help=words (completion: "-o|--output DIR help") */
void mg_opt_print(const struct mg_opt_page *page, const struct mg_opt *opts, enum mg_opt_form form, struct mg_buf *out);

#endif
