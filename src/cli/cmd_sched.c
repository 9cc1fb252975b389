/* margay sched: runs several programs, each under margay run, whose launches pass gates that a policy opens
 * (src/sched). This process is the scheduler until the last of them has ended. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/io.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/place.h"
#include "cli/run_tools.h"
#include "sched/sched.h"
#include "tool/spec.h"

static const struct mg_opt_page page = {
    "sched", "[OPTIONS] -- [NAME:] APP [ARGS...] [-- [NAME:] APP [ARGS...]]...",
    "run several programs that share one device",
    "NAME: is a word with a colon, or a colon at its end (A: ./app); without one programs are A, B, C, ... Every "
    "program runs\n"
    "as under margay run; its profile is DIR/NAME.\n"
    "Policies: credit (device time by --share), none (what happens without), or a shared object (margay/policy.h).\n"
    "Exit status: 0 all programs ended well, 1 one did not, 2 bad usage, 3 a file cannot be written.\n"};

enum { MOST_PROGRAMS = 26, STOP_SECONDS = 5 };

struct opts {
    const char *policy, *shares, *priorities, *json, *svg, *dir, *device, *attach;
    char *attach_spec, *attach_name; /* with an absolute path; NULL: none */
    struct mg_opt_list tools;
    double seconds;
    bool quiet, verbose;
};
struct command {
    const char *name;
    char given[32];
    char **argv;
    int n;
};

/* ---- the command line ------------------------------------------------------------------------------------- */

static bool is_name(const char *word)
{
    size_t n = strlen(word);
    return n && word[n - 1] == ':' && mg_sched_is_name(word, n - 1);
}

/* -1: bad usage, said. */
static int split_commands(int n, char **argv, struct command *c)
{
    int count = 0;
    for (int at = 0; at < n || (n && at == n && !strcmp(argv[n - 1], "--"));) {
        int end = at;
        while (end < n && strcmp(argv[end], "--")) end++;
        if (count == MOST_PROGRAMS) return mg_opt_usage(&page, -1, "at most %d programs", MOST_PROGRAMS);
        struct command *k = &c[count];
        bool named = at < end && is_name(argv[at]);
        snprintf(k->given, sizeof k->given, "%.*s", named ? (int)strlen(argv[at]) - 1 : 1,
                 named ? argv[at] : (char[]){(char)('A' + count), 0});
        k->name = k->given;
        k->argv = argv + at + named;
        k->n = end - at - named;
        if (k->n < 1) return mg_opt_usage(&page, -1, "program %s has no command", k->name);
        for (int i = 0; i < count; i++)
            if (!strcmp(c[i].name, k->name)) return mg_opt_usage(&page, -1, "two programs are named %s", k->name);
        count++;
        at = end + 1;
    }
    return count ? count : mg_opt_usage(&page, -1, "needs programs to run");
}

static bool read_number(const char *text, double least, double most, double *out)
{
    bool minus = least < 0 && *text == '-';
    bool ok = mg_number_f64(text + minus, minus ? 0 : least, minus ? -least : most, out);
    if (minus && ok) *out = -*out;
    return ok;
}

/* NAME=NUMBER,...: calls set for each, which says whether the number may be. False: bad usage, said. */
static bool read_list(struct mg_sched *s, const char *text, const char *option, const char *numbers, double least,
                      double most, bool (*set)(struct mg_sched_program *, double))
{
    char *copy = strdup(text ? text : ""), *rest = text ? copy : NULL;
    bool ok = copy != NULL;
    uint32_t given = 0;
    for (char *item; ok && (item = strsep(&rest, ","));) {
        char *equals = strchr(item, '=');
        double v;
        uint32_t i = 0;
        if (equals) *equals = 0;
        while (i < s->programs.n && (!equals || strcmp(s->programs.at[i].name, item))) i++;
        ok = i < s->programs.n && !(given >> i & 1) && read_number(equals + 1, least, most, &v) &&
             set(&s->programs.at[i], v);
        given |= ok ? 1u << i : 0;
    }
    if (!ok)
        mg_opt_usage(&page, 0, "--%s wants NAME=NUMBER,... of programs that are given, each once, %s, not '%.100s'",
                     option, numbers, text);
    free(copy);
    return ok;
}

/* Before anything is started. False: bad usage, said. */
static bool check_tools(struct opts *o)
{
    bool native;
    char *list = NULL;
    unsigned flags = 0;
    struct mg_buf spec = MG_BUF_INIT;
    struct mg_opt_list given = {mg_xcalloc(o->tools.n + 1, sizeof *given.at), o->tools.n};
    for (uint32_t i = 0; i < given.n; i++) given.at[i] = o->tools.at[i];
    mg_run_expand(&given);
    bool ok = !mg_run_tools(&page, &given, "blocks", &native, &list);
    if (ok && o->attach) ok = !mg_run_tool(&page, "--attach", o->attach, &spec, &flags, &o->attach_name);
    if (ok && flags & MG_TOOL_NATIVE) {
        mg_opt_usage(&page, 0, "--attach %s: this tool puts nothing into kernels", o->attach);
        ok = false;
    }
    const char *at = spec.at;
    if (ok && o->attach) o->attach_spec = mg_tool_spec_next(&at);
    free(given.at);
    free(list);
    mg_buf_release(&spec);
    return ok;
}

static bool set_share(struct mg_sched_program *p, double v)
{
    p->share = v;
    return true;
}
static bool set_priority(struct mg_sched_program *p, double v)
{
    p->priority = (int32_t)v;
    return p->priority == v;
}

/* ---- programs ---------------------------------------------------------------------------------------------- */

static void signal_all(const struct mg_sched *s, int sig)
{
    for (uint32_t i = 0; i < s->programs.n; i++)
        if (s->programs.at[i].pid > 0) kill(-s->programs.at[i].pid, sig);
}

/* A policy that never returns would keep the scheduler from looking: it is given up then. */
static volatile sig_atomic_t stopped;
static void note_stop(int sig)
{
    stopped = sig;
    alarm(STOP_SECONDS);
}

static const struct mg_sched *scheduled; /* whose programs are to be ended */
static void give_up(int sig)
{
    static const char why[] = "margay: the policy does not return: the programs are killed\n";
    (void)sig;
    ssize_t said = write(STDERR_FILENO, why, sizeof why - 1);
    signal_all(scheduled, SIGKILL);
    _exit(said < 0 ? MG_EXIT_INPUT : MG_EXIT_FINDING);
}

static void exec_program(const struct opts *o, const struct command *c, const char *dir)
{
    MG_VEC(const char *) argv = {0};
    char self[PATH_MAX], scheduler[24];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    snprintf(scheduler, sizeof scheduler, "%d", (int)getppid());
    setenv(mg_env_name(MG_ENV_SCHEDULER), scheduler, 1);
    *mg_vec_push(&argv) = self;
    *mg_vec_push(&argv) = "run";
    if (!o->verbose) *mg_vec_push(&argv) = "-q";
    *mg_vec_push(&argv) = "-o";
    *mg_vec_push(&argv) = dir;
    if (o->device) {
        *mg_vec_push(&argv) = "--device";
        *mg_vec_push(&argv) = o->device;
    }
    for (uint32_t i = 0; i < o->tools.n; i++) {
        *mg_vec_push(&argv) = "-t";
        *mg_vec_push(&argv) = o->tools.at[i];
    }
    *mg_vec_push(&argv) = "--";
    for (int i = 0; i < c->n; i++) *mg_vec_push(&argv) = c->argv[i];
    *mg_vec_push(&argv) = NULL;
    setpgid(0, 0); /* a signal reaches all that it started */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    execv(self, (char *const *)(uintptr_t)argv.at);
    _exit(127);
}

static bool start_program(const struct opts *o, const struct command *c, struct mg_sched_program *p)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) exec_program(o, c, p->dir);
    if (pid > 0) setpgid(pid, pid);
    p->pid = pid;
    return pid > 0;
}

/* How many programs run, guests included. */
static uint32_t reap(struct mg_sched *s, bool guests)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < s->programs.n; i++) {
        struct mg_sched_program *p = &s->programs.at[i];
        int status;
        if (p->pid > 0 && waitpid(p->pid, &status, WNOHANG) == p->pid) {
            p->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            p->pid = 0;
        }
        running += p->pid > 0 || (guests && p->adopted && p->members.n);
    }
    return running;
}

static void schedule(struct mg_sched *s, double seconds)
{
    uint64_t begun = mg_now_ns(), end = seconds > 0 ? begun + (uint64_t)(seconds * 1e9) : UINT64_MAX, asked = 0,
             reaped = 0;
    for (uint64_t now = begun;; now = mg_now_ns()) {
        uint64_t sleep_ns = mg_sched_step(s, now);
        if (stopped) alarm(0);
        if (now - reaped >= 20000000u) {
            reaped = now;
            if (!reap(s, !asked)) break; /* who is asked to end lets its guests go */
        }
        if (!asked && (stopped || now >= end)) {
            mg_sched_scan(s, now); /* who took us for dead is taken again while he lives */
            asked = now;
            signal_all(s, stopped ? stopped : SIGTERM);
        } else if (asked && now - asked > STOP_SECONDS * 1000000000ull) {
            signal_all(s, SIGKILL);
            asked = now;
        }
        mg_sched_sleep(s, sleep_ns);
    }
    mg_sched_let_go(s); /* what comes now takes longer than a guest waits for a sign of life */
    for (uint32_t i = 0; i < s->programs.n; i++) mg_sched_count(&s->programs.at[i], true);
    mg_sched_adjust(s, mg_now_ns());
    mg_sched_sample(s, mg_now_ns());
}

/* ---- what came of it ------------------------------------------------------------------------------------------ */

static bool write_file(const char *path, void (*print)(const struct mg_sched *, struct mg_buf *),
                       const struct mg_sched *s)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    if (!path) return true;
    print(s, &out);
    enum mg_err err = mg_io_write(path, out.at, out.n, &d);
    if (err) mg_cli_fail(&d, MG_EXIT_INPUT);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return !err;
}

static void print_summary(const struct mg_sched *s)
{
    double device = 0, shares = 0;
    for (uint32_t i = 0; i < s->programs.n; i++) {
        device += (double)s->programs.at[i].use.device_ns;
        shares += s->programs.at[i].share;
    }
    fprintf(stderr,
            "margay: policy %s; share of the whole run's device time, target, device time, launches, longest kernel\n",
            s->policy->name);
    for (uint32_t i = 0; i < s->programs.n; i++) {
        const struct mg_sched_program *p = &s->programs.at[i];
        fprintf(stderr, "  %-8s %5.1f %%  %5.1f %%  %8.3f s  %9llu  %8.3f ms", p->name,
                device > 0 ? 100 * (double)p->use.device_ns / device : 0, 100 * p->share / shares,
                (double)p->use.device_ns / 1e9, (unsigned long long)p->use.launches, (double)p->use.longest_ns / 1e6);
        if (p->use.forced)
            fprintf(stderr, "  (%llu passed though the gate was shut)", (unsigned long long)p->use.forced);
        if (p->lapses) fprintf(stderr, "  (%llu times without the scheduler)", (unsigned long long)p->lapses);
        if (p->attached) fprintf(stderr, "  (%s %llu times)", s->attach_name, (unsigned long long)p->attached);
        if (p->attach_error) fprintf(stderr, "  (%s: %s)", s->attach_name, p->attach_error);
        fputc('\n', stderr);
    }
}

static int run_all(struct mg_sched *s, const struct opts *o, const struct command *c, int n)
{
    bool ok = true;
    struct sigaction stop = {.sa_handler = note_stop};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    scheduled = s;
    signal(SIGALRM, give_up);
    for (int i = 0; i < n; i++) ok &= start_program(o, &c[i], &s->programs.at[i]);
    schedule(s, o->seconds);
    signal(SIGALRM, SIG_IGN);
    mg_sched_deafen(s);
    if (!o->quiet) print_summary(s);
    bool written = write_file(o->json, mg_sched_json, s) && write_file(o->svg, mg_sched_picture, s);
    for (int i = 0; i < n; i++)
        ok &= s->programs.at[i].status == 0 || (o->seconds > 0 && s->programs.at[i].status == 128 + SIGTERM);
    return !written ? MG_EXIT_INPUT : ok ? MG_EXIT_OK : MG_EXIT_FINDING;
}

/* DIR, with room for every program's profile, and the socket. */
static bool make_places(struct mg_sched *s, const struct opts *o, struct mg_diag *d)
{
    char dir[PATH_MAX], path[PATH_MAX + 64];
    if ((mkdir(o->dir, 0777) && errno != EEXIST) || !realpath(o->dir, dir)) {
        mg_diag_err(d, MG_ERR_IO, "%s: %s", o->dir, strerror(errno));
        return false;
    }
    for (uint32_t i = 0; i < s->programs.n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, s->programs.at[i].name);
        s->programs.at[i].dir = strdup(path);
    }
    snprintf(path, sizeof path, "%s/sched.sock", o->dir);
    return mg_sched_listen(s, path, d);
}

int cmd_sched(int argc, char **argv)
{
    char dir[64];
    struct opts o = {.policy = "credit"};
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_STR(0, "policy", &o.policy, "credit|none|FILE.so", "who may launch when (credit)"),
        MG_OPT_STR(0, "share", &o.shares, "A=50,B=50", "shares of device time (equal); who is not named has 1"),
        MG_OPT_STR(0, "priority", &o.priorities, "A=1", "who waits with a higher priority goes first (0)"),
        MG_OPT_STR(0, "json", &o.json, "FILE", "write shares by second, device time and instructions there"),
        MG_OPT_STR(0, "svg", &o.svg, "FILE", "draw the shares over time there"),
        MG_OPT_STR('o', "output", &o.dir, "DIR", "write the programs' profiles below it (margay-sched-PID)"),
        MG_OPT_LIST('t', "tool", &o.tools, "TOOL[,k=v...]", "what to measure in the programs, as margay run (blocks)"),
        MG_OPT_STR(0, "attach", &o.attach, "TOOL", "switch this tool on in a program while it exceeds its share"),
        MG_OPT_DEVICE(&o.device),
        MG_OPT_F64(0, "seconds", &o.seconds, 0, 1e6, "S", "end the programs after S seconds (0, never)"),
        MG_OPT_QUIET(&o.quiet),
        MG_OPT_FLAG('v', "verbose", &o.verbose, "with the summary of each program's run"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, MG_OPT_STOP_AT_FIRST, argc, argv, &status);
    if (n < 0) return status;
    struct command commands[MOST_PROGRAMS];
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_sched s;
    n = split_commands(n, argv, commands);
    const struct mg_policy *policy = n > 0 ? mg_sched_policy(o.policy, &d) : NULL;
    snprintf(dir, sizeof dir, "margay-sched-%d", (int)getpid());
    o.dir = o.dir ? o.dir : dir;
    mg_sched_init(&s, policy);
    for (int i = 0; i < n && policy; i++) mg_sched_add(&s, commands[i].name, NULL, 1);
    if (n < 0 || !policy)
        status = n < 0 ? MG_EXIT_USAGE : mg_cli_fail(&d, MG_EXIT_USAGE);
    else if (!check_tools(&o) || !read_list(&s, o.shares, "share", "from 1e-6 to 1e9", 1e-6, 1e9, set_share) ||
             !read_list(&s, o.priorities, "priority", "whole, from -1000 to 1000", -1000, 1000, set_priority))
        status = MG_EXIT_USAGE;
    else if (!make_places(&s, &o, &d))
        status = mg_cli_fail(&d, MG_EXIT_INPUT);
    else
        s.attach = o.attach_spec, s.attach_name = o.attach_name, status = run_all(&s, &o, commands, n);
    mg_sched_release(&s);
    mg_diag_release(&d);
    free(o.tools.at);
    free(o.attach_spec);
    free(o.attach_name);
    return status;
}
