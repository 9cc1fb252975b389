/* margay study overview: profiles of several programs in, tables and pictures over all of them out. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "cli/pictures.h"
#include "cli/study.h"
#include "cli/study_runs.h"
#include "report/overview/overview.h"

static const struct mg_opt_page page = {
    "study overview", "[NAME=]DIR[,DIR...]... [OPTIONS]", "several programs at once, as the papers show theirs",
    "Each operand is one program with its profiles, one for each run: NAME=DIR,DIR,... or a folder that holds them. A "
    "table\nis of the programs with a profile that has it: counts (-t blocks), overhead (-t TOOL --repeat N, or runs with\n"
    "-t timeline and with -t TOOL), calls (-t timeline), classes and widths (-t opcodes), bytes (-t memory), load (-t\n"
    "ctas -t clock), steps (--stats). docs/howto-overview.md has the definitions.\n"};

struct overview_cli {
    struct mg_overview *o;
    char *domains; /* the file's text; NULL: none */
    struct mg_arena arena;
};

/* "GLOB<tab>DOMAIN" a line, the first that matches; # begins a comment. */
static const char *domain_of(struct overview_cli *c, const char *name)
{
    for (const char *line = c->domains; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\t\n"), m = 0;
        const char *domain = line + n + strspn(line + n, "\t");
        m = strcspn(domain, "\t\r\n");
        if (*line == '#' || line[n] != '\t' || !m) continue;
        if (!fnmatch(mg_arena_strndup(&c->arena, line, n), name, 0)) return mg_arena_strndup(&c->arena, domain, m);
    }
    return NULL;
}

typedef MG_VEC(const char *) dir_list;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A profile, or all profiles in a folder. */
static enum mg_err add_dirs(struct overview_cli *c, dir_list *list, const char *dir, struct mg_diag *d)
{
    uint32_t from = list->n;
    DIR *folder = mg_is_profile(dir) ? NULL : opendir(dir);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        const char *path = mg_arena_printf(&c->arena, "%s/%s", dir, e->d_name);
        if (*e->d_name != '.' && mg_is_profile(path)) *mg_vec_push(list) = path;
    }
    if (folder) closedir(folder);
    if (list->n > from)
        qsort(list->at + from, list->n - from, sizeof *list->at, by_name);
    else if (folder)
        return mg_diag_err(d, MG_ERR_INPUT, "%s: neither a profile nor a folder of profiles", dir);
    else
        *mg_vec_push(list) = mg_arena_strndup(&c->arena, dir, strlen(dir));
    return MG_ERR_OK;
}

/* The name in front of =, else the folder's. */
static const char *name_of(struct overview_cli *c, char **operand)
{
    char *parted = strchr(*operand, '=');
    if (parted && access(*operand, F_OK)) {
        const char *name = mg_arena_strndup(&c->arena, *operand, (size_t)(parted - *operand));
        *operand = parted + 1;
        return name;
    }
    size_t n = strcspn(*operand, ",");
    while (n > 1 && (*operand)[n - 1] == '/') n--;
    const char *first = mg_arena_strndup(&c->arena, *operand, n), *slash = strrchr(first, '/');
    return slash && slash[1] ? slash + 1 : first;
}

static enum mg_err add_program(struct overview_cli *c, char *operand, struct mg_diag *d)
{
    const char *name = name_of(c, &operand);
    dir_list list = {0};
    enum mg_err err = MG_ERR_OK;
    char *dir;
    for (const char *at = operand; !err && (dir = mg_study_next_dir(&at, operand));) {
        err = add_dirs(c, &list, dir, d);
        free(dir);
    }
    if (!err && (!list.n || !*name)) err = mg_diag_err(d, MG_ERR_INPUT, "an empty name of a program or directory");
    if (!err) err = mg_overview_add(c->o, name, domain_of(c, name), list.at, list.n, d);
    mg_vec_release(&list);
    return err;
}

static enum mg_err write_pictures(const struct mg_overview *o, const char *table, const char *dir, struct mg_diag *d)
{
    struct mg_pictures pictures = mg_pictures_begin(dir, d);
    if (!pictures.err) mg_overview_charts(o, table, mg_pictures_write, &pictures);
    return pictures.err;
}

int study_overview(int argc, char **argv)
{
    struct overview_cli c = {0};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    enum mg_err err = MG_ERR_OK;
    const char *domains = NULL, *table = NULL, *svg = NULL;
    bool json = false, csv = false;
    int status = MG_EXIT_USAGE;
    size_t bytes;
    const struct mg_opt opts[] = {
        MG_OPT_STR(0, "domains", &domains, "FILE", "GLOB and domain a line, a tab between: programs by domain"),
        MG_OPT_STR(
            0, "table", &table, "NAME",
            "this one alone: programs, totals, calls, overhead, slowdown, metrics, classes, widths, bytes, load, "
            "steps"),
        MG_OPT_FLAG(0, "json", &json, "as JSON"),
        MG_OPT_FLAG(0, "csv", &csv, "one table as CSV (programs)"),
        MG_OPT_STR(0, "svg", &svg, "DIR", "the pictures, as DIR/NAME.svg"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (!n) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs the profiles of a program");
    if (json && csv) return mg_opt_usage(&page, MG_EXIT_USAGE, "--json and --csv exclude each other");
    c.o = mg_overview_new();
    if (table && !mg_overview_has_table(c.o, table)) {
        mg_overview_free(c.o);
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no table %.100s", table);
    }
    if (domains) err = mg_io_read(domains, &c.domains, &bytes, &d);
    for (int i = 0; i < n && !err; i++) err = add_program(&c, argv[i], &d);
    if (!err && svg) err = write_pictures(c.o, table, svg, &d);
    if (!err && json)
        mg_overview_json(c.o, table, &out);
    else if (!err && csv)
        mg_overview_csv(c.o, table ? table : "programs", &out);
    else if (!err)
        mg_overview_text(c.o, table, mg_cli_columns(), isatty(1) && !getenv("NO_COLOR"), &out);
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    mg_overview_free(c.o);
    free(c.domains);
    mg_arena_release(&c.arena);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
