/* margay top: a running program's kernels, as they run. Launches come from the query library
 * (include/margay/profile.h); the screen is ncurses', or plain text where stdout is no terminal. */
#include <limits.h>
#include <locale.h>
#define NCURSES_NOMACROS
#include <ncurses.h>
#undef ERR /* diag.h takes that name */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "margay/profile.h"

static const struct mg_opt_page page_help = {
    "top", "[OPTIONS] [PID|DIR]", "show a running program's kernels as they run",
    "PID is a program that runs under Margay; DIR its profile directory. Without either, the newest profile here.\n"
    "A row is a kernel: launches and their rate, instructions of threads per second, time on the device per second. What was\n"
    "not measured is shown as -. Keys: t, i, l sort by time, instructions, launches; q ends.\n"};

struct row {
    char *name, *shown;
    uint64_t sums[3], before[3]; /* by enum column */
    bool measured[3];
};
enum column { LAUNCHES, INSTRUCTIONS, TIME_NS };
struct process {
    uint32_t pid;
    uint64_t launches, before;
};
struct node {
    uint64_t replays, instructions, time_ns;
}; /* of a graph: sums so far */
struct view {
    MG_VEC(struct row) rows;
    MG_VEC(struct process) processes;
    MG_VEC(struct node) nodes;
    struct mg_map node_of; /* pid and launch -> its place */
    enum column order;
    uint64_t shown_ns;
};

/* ---- what is told ------------------------------------------------------------------------------------ */

static struct row *row_of(struct view *v, const char *name)
{
    for (uint32_t i = 0; i < v->rows.n; i++)
        if (!strcmp(v->rows.at[i].name, name)) return &v->rows.at[i];
    struct row *r = mg_vec_push(&v->rows);
    *r = (struct row){.name = strdup(name), .shown = mg_demangle(name)};
    if (!r->shown) r->shown = strdup(name);
    return r;
}

static struct process *process_of(struct view *v, uint32_t pid)
{
    for (uint32_t i = 0; i < v->processes.n; i++)
        if (v->processes.at[i].pid == pid) return &v->processes.at[i];
    struct process *p = mg_vec_push(&v->processes);
    *p = (struct process){.pid = pid};
    return p;
}

/* A graph's node is told with its sums so far: what is new of it. */
static struct node what_is_new(struct view *v, const struct mg_profile_launch *l)
{
    struct node now = {l->replay ? l->replay : 1, l->thread_instructions, l->time_ns};
    uint64_t key = (uint64_t)l->pid << 40 | l->id, at;
    if (!l->replay) return now;
    if (!mg_map_get(&v->node_of, key, &at)) {
        mg_map_set(&v->node_of, key, v->nodes.n);
        *mg_vec_push(&v->nodes) = now;
        return now;
    }
    struct node *old = &v->nodes.at[at], fresh = {now.replays - old->replays, UINT64_MAX, UINT64_MAX};
    if (now.instructions != UINT64_MAX)
        fresh.instructions = now.instructions - (old->instructions == UINT64_MAX ? 0 : old->instructions);
    if (now.time_ns != UINT64_MAX) fresh.time_ns = now.time_ns - (old->time_ns == UINT64_MAX ? 0 : old->time_ns);
    *old = now;
    return fresh;
}

static void add_value(struct row *r, enum column c, uint64_t value)
{
    if (value == UINT64_MAX) return;
    r->sums[c] += value;
    r->measured[c] = true;
}

static void add_launch(void *user, const struct mg_profile_launch *l)
{
    struct view *v = user;
    struct node fresh = what_is_new(v, l);
    struct row *r = row_of(v, l->kernel);
    add_value(r, LAUNCHES, fresh.replays);
    add_value(r, INSTRUCTIONS, fresh.instructions);
    add_value(r, TIME_NS, fresh.time_ns);
    process_of(v, l->pid)->launches += fresh.replays;
}

/* ---- what is shown ------------------------------------------------------------------------------------- */

static const struct view *sorted;
static int by_order(const void *a, const void *b)
{
    const struct row *x = &sorted->rows.at[*(const uint32_t *)a], *y = &sorted->rows.at[*(const uint32_t *)b];
    static const enum column orders[][3] = {
        {LAUNCHES, TIME_NS, INSTRUCTIONS}, {INSTRUCTIONS, TIME_NS, LAUNCHES}, {TIME_NS, INSTRUCTIONS, LAUNCHES}};
    for (int i = 0; i < 3; i++) {
        enum column c = orders[sorted->order][i];
        if (x->sums[c] != y->sums[c]) return x->sums[c] < y->sums[c] ? 1 : -1;
    }
    return strcmp(x->name, y->name);
}

/* A number in five places: 999, 1.2k, 34M, 5.6G. */
static void print_short(double v, struct mg_buf *out)
{
    static const char units[] = " kMGTPE";
    int u = 0;
    for (; v >= 999.5 && units[u + 1]; u++) v /= 1000;
    if (u && v < 9.95)
        mg_buf_printf(out, "%7.1f%c", v, units[u]);
    else
        mg_buf_printf(out, "%7.0f%c", v, units[u]);
}

static void print_cell(const struct row *r, enum column c, double per_second, bool rate, struct mg_buf *out)
{
    if (!r->measured[c] || (rate && !per_second))
        mg_buf_adds(out, "       - "); /* the first view has no rates */
    else
        print_short(rate ? (double)(r->sums[c] - r->before[c]) * per_second : (double)r->sums[c], out),
            mg_buf_addc(out, ' ');
}

static void print_view(struct view *v, uint32_t lines, uint32_t columns, struct mg_buf *out)
{
    uint64_t now = mg_now_ns();
    double per_second = v->shown_ns ? 1e9 / (double)(now - v->shown_ns) : 0;
    for (uint32_t i = 0; i < v->processes.n && lines > 4; i++, lines--) {
        struct process *p = &v->processes.at[i];
        mg_buf_printf(out, "process %u: %llu launches", p->pid, (unsigned long long)p->launches);
        if (per_second > 0)
            mg_buf_adds(out, ", "), print_short((double)(p->launches - p->before) * per_second, out),
                mg_buf_adds(out, "/s");
        mg_buf_addc(out, '\n');
        p->before = p->launches;
    }
    mg_buf_adds(out, "launches      /s    insts  insts/s  time/s   share  kernel\n");
    uint32_t *order = malloc((v->rows.n + 1u) * sizeof *order);
    uint64_t time_ns = 0, instructions = 0;
    for (uint32_t i = 0; order && i < v->rows.n; i++) {
        order[i] = i;
        time_ns += v->rows.at[i].sums[TIME_NS];
        instructions += v->rows.at[i].sums[INSTRUCTIONS];
    }
    sorted = v;
    if (order && v->rows.n) qsort(order, v->rows.n, sizeof *order, by_order);
    for (uint32_t i = 0; order && i < v->rows.n && i + 2 < lines; i++) {
        const struct row *r = &v->rows.at[order[i]];
        size_t from = out->n;
        print_cell(r, LAUNCHES, per_second, false, out);
        print_cell(r, LAUNCHES, per_second, true, out);
        print_cell(r, INSTRUCTIONS, per_second, false, out);
        print_cell(r, INSTRUCTIONS, per_second, true, out);
        if (r->measured[TIME_NS] && per_second > 0)
            mg_buf_printf(out, "%5.0f ms ", (double)(r->sums[TIME_NS] - r->before[TIME_NS]) * per_second / 1e6);
        else
            mg_buf_adds(out, "      - ");
        double share = time_ns        ? (double)r->sums[TIME_NS] / (double)time_ns
                       : instructions ? (double)r->sums[INSTRUCTIONS] / (double)instructions
                                      : 0;
        mg_buf_printf(out, "%5.1f %%  %s", 100 * share, r->shown);
        if (columns && out->n - from > columns) out->at[out->n = from + columns] = 0;
        mg_buf_addc(out, '\n');
    }
    free(order);
    for (uint32_t i = 0; i < v->rows.n; i++)
        memcpy(v->rows.at[i].before, v->rows.at[i].sums, sizeof v->rows.at[i].before);
    v->shown_ns = now;
}

/* Until the time is up, or all has ended: false. */
static bool gather(struct mg_profile *p, double seconds)
{
    uint64_t until = mg_now_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t now; (now = mg_now_ns()) < until;)
        if (mg_profile_wait(p, (int)((until - now) / 1000000) + 1) < 0) return false;
    return true;
}

static void show_text(struct mg_profile *p, struct view *v, double seconds, uint64_t rounds)
{
    bool more = true;
    for (uint64_t i = 0; more && (!rounds || i < rounds); i++) {
        struct mg_buf out = MG_BUF_INIT;
        more = gather(p, seconds);
        if (i) mg_buf_addc(&out, '\n');
        print_view(v, UINT32_MAX, 0, &out);
        mg_cli_out(&out);
        mg_buf_release(&out);
    }
}

static void show_screen(struct mg_profile *p, struct view *v, double seconds, uint64_t rounds)
{
    setlocale(LC_CTYPE, "");
    if (!newterm(NULL, stdout, stdin)) {
        show_text(p, v, seconds, rounds);
        return;
    }
    cbreak(), noecho(), nodelay(stdscr, TRUE), curs_set(0);
    bool more = true, quit = false;
    for (uint64_t i = 0; !quit && (!rounds || i < rounds); i++) {
        struct mg_buf out = MG_BUF_INIT;
        if (!i) more = gather(p, 0.2);
        print_view(v, (uint32_t)LINES - 1, (uint32_t)COLS, &out);
        erase();
        mvaddstr(0, 0, out.at);
        mvaddstr(LINES - 1, 0,
                 more ? "t i l: sort by time, instructions, launches   q: end" : "the program has ended   q: end");
        refresh();
        mg_buf_release(&out);
        uint64_t until = mg_now_ns() + (uint64_t)(seconds * 1e9);
        for (bool sorted_anew = false;
             !quit && !sorted_anew && mg_now_ns() < until;) { /* a key is answered within 50 ms */
            if (more)
                more = gather(p, 0.05);
            else
                napms(50);
            int key = getch();
            quit = key == 'q';
            sorted_anew = key == 't' || key == 'i' || key == 'l' || key == KEY_RESIZE;
            v->order = key == 't' ? TIME_NS : key == 'i' ? INSTRUCTIONS : key == 'l' ? LAUNCHES : v->order;
        }
    }
    endwin();
}

/* ---- which profile ------------------------------------------------------------------------------------------ */

/* MARGAY_DIR of a process' environment. */
static bool dir_of_process(const char *pid, char *dir, size_t room)
{
    char path[64];
    char *data;
    size_t bytes;
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    if (mg_io_read(path, &data, &bytes, NULL)) return false;
    bool found = false;
    for (const char *at = data; at < data + bytes && !found; at += strlen(at) + 1)
        if ((found = !strncmp(at, "MARGAY_DIR=", 11))) snprintf(dir, room, "%s", at + 11);
    free(data);
    return found;
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

int cmd_top(int argc, char **argv)
{
    double seconds = 1;
    uint64_t rounds = 0;
    const char *sort = "time";
    bool text = false;
    const struct mg_opt opts[] = {
        MG_OPT_F64('d', "delay", &seconds, 0.05, 3600, "S", "seconds between two views"),
        MG_OPT_U64('n', "rounds", &rounds, 1, 1e9, "N", "end after so many views"),
        MG_OPT_CHOICE('s', "sort", &sort, "time|instructions|launches", "order of the kernels"),
        MG_OPT_FLAG('b', "batch", &text, "plain text, also on a terminal"), MG_OPT_END};
    int status = MG_EXIT_USAGE, n = mg_opt_parse(&page_help, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    char dir[PATH_MAX], error[400];
    if (n > 1) return mg_opt_usage(&page_help, MG_EXIT_USAGE, "one PID or DIR");
    if (n && is_number(argv[0]) && access(argv[0], F_OK)) {
        if (!dir_of_process(argv[0], dir, sizeof dir))
            return fprintf(stderr, "margay: process %s does not run under Margay\n", argv[0]), MG_EXIT_INPUT;
    } else if (n) {
        snprintf(dir, sizeof dir, "%s", argv[0]);
    } else if (!mg_newest_profile(0, dir)) {
        return fprintf(stderr, "margay: no profile is here: name one, or a process\n"), MG_EXIT_INPUT;
    }
    struct mg_profile *p = mg_profile_open(dir, error, sizeof error);
    if (!p) return fprintf(stderr, "margay: %s\n", error), MG_EXIT_INPUT;
    struct view v = {.order = !strcmp(sort, "time") ? TIME_NS : !strcmp(sort, "launches") ? LAUNCHES : INSTRUCTIONS};
    mg_profile_subscribe(p, add_launch, &v);
    if (text || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        show_text(p, &v, seconds, rounds);
    else
        show_screen(p, &v, seconds, rounds);
    mg_profile_close(p);
    for (uint32_t i = 0; i < v.rows.n; i++) free(v.rows.at[i].name), free(v.rows.at[i].shown);
    mg_vec_release(&v.rows), mg_vec_release(&v.processes), mg_vec_release(&v.nodes), mg_map_release(&v.node_of);
    return MG_EXIT_OK;
}
