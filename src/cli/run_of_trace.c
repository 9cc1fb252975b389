/* See run_of_trace.h. The analysis runs in a process of its own: what it needs in memory and time costs the program
 * nothing but processors, and a program that dies leaves what was analysed.
 *
 *   margay run ── start ──► analyst: looks for traces of the program's processes, and follows them
 *      program ends ── 'o' ──► finishes its own; 'a': and those of the run that nobody followed ── answers ──► */
#include "cli/run_of_trace.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/processor.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/run_follow.h"
#include "trace/reader.h"

enum { LOOK_MS = 50, MOST_PARENTS = 64 };

/* A tool of traces; name: of this name, NULL: any. */
static bool any_tool(const struct mg_opt_list *tools, const char *name)
{
    bool any = false;
    for (uint32_t i = 0; i < tools->n; i++) {
        const struct mg_tool *t = mg_follow_tool(tools->at[i]);
        any |= t && (!name || !strcmp(t->name, name));
    }
    return any;
}

bool mg_run_of_trace(struct mg_opt_list *tools)
{
    for (uint32_t i = 0; i < tools->n; i++)
        if (!strcmp(tools->at[i], "trace") || !strncmp(tools->at[i], "trace,", 6)) return true;
    if (!any_tool(tools, NULL)) return false;
    tools->at = mg_xrealloc(tools->at, (tools->n + 1) * sizeof *tools->at);
    tools->at[tools->n++] = any_tool(tools, "cache") ? "trace,loops=off" : "trace"; /* it wants them as they came */
    return false;
}

/* ---- the analyst ---------------------------------------------------------------------------------------------- */

struct names {
    MG_VEC(char *) at;
};
struct work {
    struct mg_follow_of of;
    bool keeps;
    uint32_t launcher; /* process */
    struct names old;  /* files of runs before */
    struct names failed;
    MG_VEC(struct mg_follow *) followed;
};

static bool has_name(const struct names *n, const char *name)
{
    for (uint32_t i = 0; i < n->at.n; i++)
        if (!strcmp(n->at.at[i], name)) return true;
    return false;
}

/* fn for each trace file of the profile: <pid>.mgt, <pid>-2.mgt. */
static void each_file(struct work *w, void (*fn)(struct work *w, const char *path, uint32_t pid))
{
    char path[PATH_MAX];
    struct dirent *e;
    int n = snprintf(path, sizeof path, "%s/trace", w->of.dir);
    DIR *d = n < (int)sizeof path ? opendir(path) : NULL;
    while (d && (e = readdir(d))) {
        char *end;
        unsigned long pid = strtoul(e->d_name, &end, 10);
        size_t length = strlen(e->d_name);
        if (!pid || pid > INT32_MAX || (*end != '.' && *end != '-') || length < 4 ||
            strcmp(e->d_name + length - 4, ".mgt") || n + 1 + length >= sizeof path)
            continue;
        snprintf(path + n, sizeof path - (size_t)n, "/%s", e->d_name);
        fn(w, path, (uint32_t)pid);
    }
    if (d) closedir(d);
}

static void note_old(struct work *w, const char *path, uint32_t pid)
{
    (void)pid;
    *mg_vec_push(&w->old.at) = mg_xstrdup(path);
}

static bool is_of_launcher(const struct work *w, uint32_t pid)
{
    for (int i = 0; i < MOST_PARENTS && pid > 1; i++)
        if ((pid = mg_process_parent(pid)) == w->launcher) return true;
    return false;
}

static bool is_followed(const struct work *w, const char *path)
{
    for (uint32_t i = 0; i < w->followed.n; i++)
        if (!strcmp(mg_follow_path(w->followed.at[i]), path)) return true;
    return false;
}

static void fail(struct work *w, const char *path, struct mg_diag *d)
{
    mg_cli_fail(d, 0);
    fprintf(stderr, "margay: %s stays, and is not analysed\n", path);
    *mg_vec_push(&w->failed.at) = mg_xstrdup(path);
}

static void follow(struct work *w, const char *path, uint32_t pid)
{
    struct mg_follow *f;
    struct mg_diag d = MG_DIAG_INIT;
    if (has_name(&w->old, path) || has_name(&w->failed, path) || is_followed(w, path)) return;
    enum mg_err err = mg_follow_open(path, pid, &w->of, &f, &d);
    if (!err)
        *mg_vec_push(&w->followed) = f;
    else if (err != MG_ERR_NOT_FOUND) /* it may come to be */
        fail(w, path, &d);
    mg_diag_release(&d);
}

static void follow_own(struct work *w, const char *path, uint32_t pid)
{
    if (is_of_launcher(w, pid)) follow(w, path, pid);
}

/* Closes a file's follower, whose result is there or cannot be. */
static void leave(struct work *w, uint32_t ix)
{
    mg_follow_close(w->followed.at[ix]);
    w->followed.at[ix] = w->followed.at[--w->followed.n];
}

/* False: nothing of the file is analysed, and it is whole. */
static bool go(struct work *w, struct mg_follow *f, bool ended)
{
    struct mg_diag d = MG_DIAG_INIT;
    bool ok = !mg_follow_go(f, ended, &d);
    if (!ok && (ok = mg_follow_stop(f))) {
        mg_cli_fail(&d, 0);
        fprintf(stderr, "margay: %s is analysed up to there\n", mg_follow_path(f));
    } else if (!ok) {
        fail(w, mg_follow_path(f), &d);
    }
    mg_diag_release(&d);
    return ok;
}

static void go_on(struct work *w)
{
    for (uint32_t i = w->followed.n; i-- > 0;)
        if (!go(w, w->followed.at[i], false)) leave(w, i);
}

/* ---- the program has ended --------------------------------------------------------------------------------------- */

/* Are there records beside those of tool trace: of the time line, of another tool? */
static bool holds_others(const char *path)
{
    struct mg_trace_query q = {.size = sizeof q};
    struct mg_trace_reader *r;
    struct mg_diag d = MG_DIAG_INIT;
    const struct mg_trace_record *rec;
    bool any = false;
    if (!mg_trace_reader_open(path, &r, &d)) {
        struct mg_trace_cursor *c = mg_trace_cursor_open(r, &q);
        while (!any && (rec = mg_trace_next(c))) any = strncmp(rec->kind->name, "trace.", 6) != 0;
        mg_trace_cursor_close(c);
        mg_trace_reader_free(r);
    }
    mg_diag_release(&d);
    return any;
}

static void finish(struct work *w, struct mg_follow *f, const struct mg_recording *p, const struct mg_pprocess *q)
{
    struct mg_diag d = MG_DIAG_INIT;
    if (!go(w, f, true)) return;
    enum mg_err err = mg_follow_store(f, p, q->path, &d);
    if (err && mg_follow_stop(f)) {
        mg_cli_fail(&d, 0);
        fprintf(stderr, "margay: what %s held is lost\n", mg_follow_path(f));
    } else if (err) {
        fail(w, mg_follow_path(f), &d);
    } else if (!w->keeps && (w->of.frees || !holds_others(mg_follow_path(f)))) {
        unlink(mg_follow_path(f));
    }
    mg_diag_release(&d);
}

/* Every file that is followed, now that the program has ended. */
static void finish_all(struct work *w)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p = NULL;
    if (!w->followed.n) return;
    if (mg_recording_open_run(w->of.dir, w->of.run, &p, &d)) mg_cli_fail(&d, 0);
    mg_diag_release(&d);
    while (w->followed.n) {
        struct mg_follow *f = w->followed.at[0];
        const struct mg_pprocess *q = NULL;
        for (uint32_t i = 0; p && i < p->n_processes; i++)
            if (p->processes[i].pid == mg_follow_pid(f)) q = &p->processes[i];
        if (q && !q->closed && mg_process_is_alive(q->pid)) {
            fprintf(stderr, "margay: process %u still runs: %s stays, and is not analysed\n", q->pid,
                    mg_follow_path(f));
            *mg_vec_push(&w->failed.at) = mg_xstrdup(mg_follow_path(f));
        } else if (q) {
            finish(w, f, p, q);
        } else if (!p) {
            fprintf(stderr, "margay: %s is not analysed\n", mg_follow_path(f));
        }
        leave(w, 0);
    }
    mg_recording_free(p);
}

static void remove_folder(const struct work *w)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/trace", w->of.dir) < (int)sizeof path) rmdir(path); /* if nothing is in it */
}

static volatile sig_atomic_t given_up;
#define GIVE_UP SIGUSR1 /* from margay run; once more: it is killed */

static void give_up(int sig)
{
    (void)sig;
    given_up = true;
}

static void set_signals(void (*handler)(int))
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction to = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < MG_COUNT_OF(signals); i++) sigaction(signals[i], &to, NULL);
}

static int analyse(struct work *w, int told)
{
    struct pollfd p = {.fd = told, .events = POLLIN};
    for (char what = 0;;) {
        int some = poll(&p, 1, LOOK_MS);
        bool gone = some > 0 && read(told, &what, 1) != 1; /* margay run: it was killed, or needs us no more */
        each_file(w, what == 'a' ? follow : follow_own);
        if (some <= 0) {
            go_on(w);
            continue;
        }
        finish_all(w);
        remove_folder(w);
        if (gone) return 0;
        if (write(told, &what, 1) != 1) return 1;
    }
}

static void run_analyst(struct work *w, int told)
{
    set_signals(SIG_IGN); /* to the program; we wait for its end */
    sigaction(GIVE_UP, &(struct sigaction){.sa_handler = give_up, .sa_flags = (int)SA_RESETHAND | SA_RESTART}, NULL);
    signal(SIGPIPE, SIG_IGN);
    _exit(analyse(w, told));
}

/* ---- margay run's side ------------------------------------------------------------------------------------------- */

struct mg_analyst {
    pid_t pid;
    int tell;
    bool well, frees;
    const char *dir;
};

/* Nothing but these tools and trace: no other records are in the files. */
static bool are_alone(const struct mg_opt_list *tools)
{
    for (uint32_t i = 0; i < tools->n; i++)
        if (!mg_follow_tool(tools->at[i]) && strcmp(tools->at[i], "trace")) return false;
    return true;
}

struct mg_analyst *mg_analyst_start(const char *dir, uint64_t run, const struct mg_opt_list *tools, bool keeps)
{
    int fds[2] = {-1, -1};
    struct work w = {
        .of = {.dir = dir, .run = run, .tools = tools, .frees = !keeps && are_alone(tools), .given_up = &given_up},
        .keeps = keeps,
        .launcher = (uint32_t)getpid()};
    if (!any_tool(tools, NULL)) return NULL;
    struct mg_analyst *a = mg_xcalloc(1, sizeof *a);
    each_file(&w, note_old);
    fflush(NULL);
    a->well = !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
    a->pid = a->well ? fork() : -1;
    if (a->pid == 0) {
        close(fds[0]);
        run_analyst(&w, fds[1]);
    }
    if (a->well) close(fds[1]);
    a->tell = fds[0];
    a->dir = dir;
    a->frees = w.of.frees;
    for (uint32_t i = 0; i < w.old.at.n; i++) free(w.old.at.at[i]);
    mg_vec_release(&w.old.at);
    if (a->pid > 0) return a;
    fprintf(stderr, "margay: the analysis of the trace cannot be started: %s\n", strerror(errno));
    if (a->well) close(a->tell);
    free(a);
    return NULL;
}

static volatile sig_atomic_t analyst_pid;

static void interrupt(int sig)
{
    (void)sig;
    if (analyst_pid > 0) kill((pid_t)analyst_pid, GIVE_UP);
}

void mg_analyst_finish(struct mg_analyst *a, bool all)
{
    char what = all ? 'a' : 'o';
    if (!a || !a->well) return;
    analyst_pid = a->pid;
    set_signals(interrupt);
    a->well = send(a->tell, &what, 1, MSG_NOSIGNAL) == 1;
    while (a->well && read(a->tell, &what, 1) != 1) a->well = errno == EINTR;
    if (!a->well)
        fprintf(stderr,
                a->frees
                    ? "margay: the analysis of the trace was killed, and its results are lost; %s/trace has what it "
                      "had not analysed\n"
                    : "margay: the analysis of the trace was killed; %s/trace stays\n",
                a->dir);
    analyst_pid = 0;
}

void mg_analyst_free(struct mg_analyst *a)
{
    if (!a) return;
    close(a->tell);
    while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    free(a);
}
