/* The option parser and the help texts that its tables give. */
#include "cli/opt.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/number.h"

static const struct mg_opt *find_letter(const struct mg_opt *opts, char c)
{
    for (; opts->kind; opts++)
        if (opts->letter == c) return opts;
    return NULL;
}

static const struct mg_opt *find_name(const struct mg_opt *opts, const char *name, size_t n)
{
    for (; opts->kind; opts++)
        if (opts->name && strlen(opts->name) == n && !memcmp(opts->name, name, n)) return opts;
    return NULL;
}

int mg_opt_usage(const struct mg_opt_page *page, int status, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "margay %s: ", page->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (see `margay help %s`)\n", page->name);
    return status;
}

/* True when `value` is one of "a|b|c". */
static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = choices; *at;) {
        size_t len = strcspn(at, "|");
        if (len == n && !memcmp(at, value, n)) return true;
        at += len + (at[len] == '|');
    }
    return false;
}

/* False when the value does not fit the option. */
static bool store_value(const struct mg_opt *o, const char *value)
{
    switch (o->kind) {
    case MG_OPT_KIND_str:
        *(const char **)o->to = value;
        return true;
    case MG_OPT_KIND_choice:
        if (!is_choice(o->arg, value)) return false;
        *(const char **)o->to = value;
        return true;
    case MG_OPT_KIND_list: {
        struct mg_opt_list *list = o->to;
        list->at = mg_xrealloc(list->at, (list->n + 1) * sizeof *list->at);
        list->at[list->n++] = value;
        return true;
    }
    case MG_OPT_KIND_u64:
    case MG_OPT_KIND_size:
        return mg_number_u64(value, o->kind == MG_OPT_KIND_size, (uint64_t)o->least, (uint64_t)o->most, o->to);
    case MG_OPT_KIND_f64:
        return mg_number_f64(value, o->least, o->most, o->to);
    case MG_OPT_KIND_end:
    case MG_OPT_KIND_flag:
        break;
    }
    return false;
}

/* "--top wants a whole number from 1 to 9, not 'x'"; returns 0. */
static int refuse(const struct mg_opt_page *page, const struct mg_opt *o, const char *word, const char *value)
{
    struct mg_buf want = MG_BUF_INIT;
    if (o->kind == MG_OPT_KIND_f64)
        mg_number_print_f64(o->least, o->most, &want);
    else if (o->kind == MG_OPT_KIND_choice)
        mg_buf_adds(&want, o->arg);
    else
        mg_number_print_u64((uint64_t)o->least, (uint64_t)o->most, &want);
    mg_opt_usage(page, 0, "%s wants %s%s, not '%.200s'", word, want.at,
                 o->kind == MG_OPT_KIND_size ? ", or a size such as 64k" : "", value);
    mg_buf_release(&want);
    return 0;
}

/* One option word (and its value); returns how many argv entries were used, 0 on a usage error. */
static int parse_option(const struct mg_opt_page *page, const struct mg_opt *opts, int argc, char **argv, int i)
{
    const char *word = argv[i];
    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");
        const struct mg_opt *o = find_name(opts, word + 2, n);
        const char *value = word[2 + n] ? word + 3 + n : NULL;
        if (!o) return mg_opt_usage(page, 0, "no option --%.*s", (int)n, word + 2);
        if (o->kind == MG_OPT_KIND_flag) {
            if (value) return mg_opt_usage(page, 0, "--%s takes no value", o->name);
            *(bool *)o->to = true;
            return 1;
        }
        if (!value && i + 1 >= argc) return mg_opt_usage(page, 0, "--%s needs %s", o->name, o->arg);
        if (!store_value(o, value ? value : argv[i + 1])) {
            char name[64];
            snprintf(name, sizeof name, "--%s", o->name);
            return refuse(page, o, name, value ? value : argv[i + 1]);
        }
        return value ? 1 : 2;
    }
    for (const char *c = word + 1; *c; c++) {
        const struct mg_opt *o = find_letter(opts, *c);
        if (!o) return mg_opt_usage(page, 0, "no option -%c", *c);
        if (o->kind == MG_OPT_KIND_flag) {
            *(bool *)o->to = true;
            continue;
        }
        const char *value = c[1] ? c + 1 : i + 1 < argc ? argv[i + 1] : NULL;
        if (!value) return mg_opt_usage(page, 0, "-%c needs %s", *c, o->arg);
        if (!store_value(o, value)) return refuse(page, o, (char[]){'-', *c, 0}, value);
        return c[1] ? 1 : 2;
    }
    return 1;
}

int mg_opt_parse(const struct mg_opt_page *page, const struct mg_opt *opts, unsigned flags, int argc, char **argv,
                 int *status)
{
    int n = 0, i = 1;
    for (; i < argc;) {
        const char *word = argv[i];
        if (word[0] != '-' || !word[1]) {
            if (flags & MG_OPT_STOP_AT_FIRST) break;
            argv[n++] = argv[i++];
            continue;
        }
        if (!strcmp(word, "--")) {
            i++;
            break;
        }
        if ((!strcmp(word, "-h") && !find_letter(opts, 'h')) || !strncmp(word, "--help", 6)) {
            struct mg_buf out = MG_BUF_INIT;
            mg_opt_print(page, opts,
                         !strcmp(word, "--help=man")     ? MG_OPT_MAN
                         : !strcmp(word, "--help=words") ? MG_OPT_WORDS
                                                         : MG_OPT_HELP,
                         &out);
            if (out.n) fwrite(out.at, 1, out.n, stdout);
            mg_buf_release(&out);
            *status = 0;
            return -1;
        }
        int used = parse_option(page, opts, argc, argv, i);
        if (!used) return -1;
        i += used;
    }
    while (i < argc) argv[n++] = argv[i++];
    argv[n] = NULL;
    return n;
}

static void print_synopsis(const struct mg_opt_page *page, struct mg_buf *out, const char *before, const char *after)
{
    for (const char *at = page->args; at;) {
        size_t n = strcspn(at, "\n");
        mg_buf_printf(out, "%smargay %s%s%.*s%s", before, page->name, n ? " " : "", (int)n, at, after);
        at = at[n] ? at + n + 1 : NULL;
    }
}

static void print_help(const struct mg_opt_page *page, const struct mg_opt *opts, struct mg_buf *out)
{
    mg_buf_printf(out, "margay %s: %s\n\n", page->name, page->about);
    print_synopsis(page, out, "  ", "\n");
    if (opts->kind) mg_buf_addc(out, '\n');
    for (const struct mg_opt *o = opts; o->kind; o++) {
        size_t from = out->n;
        mg_buf_adds(out, o->letter ? "  -" : "     ");
        if (o->letter)
            mg_buf_printf(out, "%c%s", o->letter, o->name ? ", " : "  ");
        else
            mg_buf_addc(out, ' ');
        if (o->name) mg_buf_printf(out, "--%s", o->name);
        if (o->kind != MG_OPT_KIND_flag) mg_buf_printf(out, " %s", o->arg);
        if (out->n - from > 28) {
            mg_buf_addc(out, '\n');
            from = out->n;
        }
        while (out->n - from < 30) mg_buf_addc(out, ' ');
        mg_buf_printf(out, "%s%s\n", o->help, o->kind == MG_OPT_KIND_list ? " (may be repeated)" : "");
    }
    if (page->more) mg_buf_printf(out, "\n%s", page->more);
}

/* Roff needs its minus signs and leading dots escaped. */
static void add_roff(struct mg_buf *out, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\'')) mg_buf_adds(out, "\\&");
        if (*text == '-')
            mg_buf_adds(out, "\\-");
        else if (*text == '\\')
            mg_buf_adds(out, "\\e");
        else
            mg_buf_addc(out, *text);
        start = *text == '\n';
    }
}

static void print_man(const struct mg_opt_page *page, const struct mg_opt *opts, struct mg_buf *out)
{
    mg_buf_printf(out, ".SH NAME\nmargay\\-%s \\- ", page->name);
    add_roff(out, page->about);
    mg_buf_adds(out, "\n.SH SYNOPSIS\n.nf\n");
    struct mg_buf text = MG_BUF_INIT;
    print_synopsis(page, &text, "", "\n");
    add_roff(out, text.at);
    mg_buf_release(&text);
    mg_buf_adds(out, ".fi\n");
    if (opts->kind) mg_buf_adds(out, ".SH OPTIONS\n");
    for (const struct mg_opt *o = opts; o->kind; o++) {
        mg_buf_adds(out, ".TP\n");
        if (o->letter) mg_buf_printf(out, "\\fB\\-%c\\fR%s", o->letter, o->name ? ", " : "");
        if (o->name) {
            mg_buf_adds(out, "\\fB\\-\\-");
            add_roff(out, o->name);
            mg_buf_adds(out, "\\fR");
        }
        if (o->kind != MG_OPT_KIND_flag) {
            mg_buf_adds(out, " \\fI");
            add_roff(out, o->arg);
            mg_buf_adds(out, "\\fR");
        }
        mg_buf_addc(out, '\n');
        add_roff(out, o->help);
        mg_buf_adds(out, o->kind == MG_OPT_KIND_list ? " (may be repeated)\n" : "\n");
    }
    if (page->more) {
        mg_buf_adds(out, ".SH NOTES\n.nf\n");
        add_roff(out, page->more);
        mg_buf_adds(out, ".fi\n");
    }
}

void mg_opt_print(const struct mg_opt_page *page, const struct mg_opt *opts, enum mg_opt_form form, struct mg_buf *out)
{
    if (form == MG_OPT_HELP)
        print_help(page, opts, out);
    else if (form == MG_OPT_MAN)
        print_man(page, opts, out);
    else
        for (const struct mg_opt *o = opts; o->kind; o++) {
            if (o->letter) mg_buf_printf(out, "-%c ", o->letter);
            if (o->name) mg_buf_printf(out, "--%s ", o->name);
            mg_buf_printf(out, "\t%s\t%s\n", o->arg ? o->arg : "", o->help);
        }
}
