/* margay ctl: switches the instrumentation of running programs on and off, and tells how far they are.
 * A process that runs under Margay maps DIR/ctl.<pid> (include/margay/control.h); PID may be that
 * process or one of its ancestors, `margay run` itself included. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/processor.h"
#include "base/number.h"
#include "cli/cli.h"
#include "margay/control.h"
#include "sched/sched.h"

static const struct mg_opt_page page_help = {
    "ctl", "PID on|off|status\nPID tool NAME on|off\nPID adopt SOCKET [SHARE [NAME]]\nPID drop",
    "switch instrumentation of a running program",
    "PID is the program's process, or a parent of it such as `margay run`: all its processes are switched. It takes\n"
    "effect at the next launch; graphs that were instantiated keep the code they were made with. Launches while it is\n"
    "off run native, with the reason \"switched off\".\n"
    "`tool NAME off` leaves one tool out from the next launch on, `tool NAME[,k=v...] on` brings it back, or adds one\n"
    "that was not given with -t; NAME is what -t takes. A tool that is to be added is opened at the next launch.\n"
    "`adopt` puts the program's launches under a margay sched that runs: SOCKET is DIR/sched.sock of its directory, SHARE\n"
    "a number as in --share (1), NAME what it is called there (PID). `drop` lets it run free again.\n"};

#define WAIT_MS 2000 /* for an answer: a program that launches nothing gives none */

static bool is_below(long pid, long root)
{
    for (int depth = 0; pid > 1 && depth < 256; depth++, pid = mg_process_parent((uint32_t)pid))
        if (pid == root) return true;
    return pid == root;
}

static void print_status(long pid, const struct mg_control_page *p)
{
    uint64_t seen = MG_MAX(p->launches, p->taken); /* nobody selects where there is no tool */
    printf("%ld: %s, %llu launches seen, %llu selected", pid, p->on ? "on" : "off", (unsigned long long)seen,
           (unsigned long long)p->selected);
    for (uint32_t t = 0; t < p->n_tools && t < MG_CONTROL_TOOLS; t++)
        printf("%s %.63s%s", t ? "," : "; tools", p->tools[t], p->tools_off >> t & 1 ? " (off)" : "");
    putchar('\n');
}

/* Who asked for a tool waits a little for what became of it. */
static bool switch_tool(long pid, struct mg_control_page *p, const char *tool, bool on)
{
    uint32_t asked = p->asked;
    if (mg_control_tool_in(p, tool, on)) {
        fprintf(stderr,
                on ? "margay ctl: %ld is about to add another tool: try again\n" : "margay ctl: %ld has no tool %s\n",
                pid, tool);
        return false;
    }
    if (__atomic_load_n(&p->asked, __ATOMIC_ACQUIRE) == asked) return true;
    for (int ms = 0; ms < WAIT_MS && __atomic_load_n(&p->answered, __ATOMIC_ACQUIRE) != p->asked; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (__atomic_load_n(&p->answered, __ATOMIC_ACQUIRE) != p->asked) {
        fprintf(stderr, "margay ctl: %ld adds %s at its next launch\n", pid, tool);
        return true;
    }
    if (p->answer[0]) fprintf(stderr, "margay ctl: %ld: %.199s\n", pid, p->answer);
    return !p->answer[0];
}

struct order {
    const char *what, *tool;
    bool on, failed;
    const char *socket, *name; /* adopt */
    double share;
};

/* Asks the scheduler, which maps the page itself. */
static void adopt(long pid, struct order *o)
{
    char request[256], answer[PATH_MAX + 100];
    snprintf(request, sizeof request, "adopt %ld %.17g %.63s", pid, o->share, o->name);
    if (mg_sched_ask(o->socket, request, answer, sizeof answer)) return;
    fprintf(stderr, "margay ctl: %s", answer);
    o->failed = true;
}

static void drop(struct mg_control_page *p)
{
    __atomic_store_n(&p->gate.dropped, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&p->gate.daemon, 0, __ATOMIC_SEQ_CST); /* who waits looks within 20 ms */
}

static bool act(long pid, struct order *o)
{
    struct mg_control_page *p = mg_sched_page(pid, NULL, 0);
    if (!p) return false;
    if ((long)p->pid != pid) { /* a child that has its parent's page and makes no CUDA call */
        mg_sched_page_free(p);
        return false;
    }
    if (o->tool)
        o->failed |= !switch_tool(pid, p, o->tool, o->on);
    else if (!strcmp(o->what, "adopt"))
        adopt(pid, o);
    else if (!strcmp(o->what, "drop"))
        drop(p);
    else if (strcmp(o->what, "status"))
        __atomic_store_n(&p->on, o->on, __ATOMIC_RELEASE);
    print_status(pid, p);
    mg_sched_page_free(p);
    return true;
}

/* Paths are the caller's, not the program's. */
static char *absolute(const char *tool)
{
    size_t n = strcspn(tool, ",");
    char *name = strndup(tool, n),
         *path = name && (strchr(name, '/') || strstr(name, ".so")) ? realpath(name, NULL) : NULL, *full = NULL;
    if (!path || asprintf(&full, "%s%s", path, tool + n) < 0) full = strdup(tool);
    free(name);
    free(path);
    return full;
}

static bool read_order(int n, char **argv, struct order *o)
{
    bool tool = n == 4 && !strcmp(argv[1], "tool");
    if (n >= 3 && n <= 5 && !strcmp(argv[1], "adopt")) {
        *o = (struct order){.what = argv[1], .socket = argv[2], .share = 1, .name = argv[n == 5 ? 4 : 0]};
        return mg_sched_is_name(o->name, strlen(o->name)) && (n == 3 || mg_number_f64(argv[3], 1e-6, 1e9, &o->share));
    }
    if (n != 2 && !tool) return false;
    o->what = tool ? argv[3] : argv[1];
    o->tool = tool ? absolute(argv[2]) : NULL;
    o->on = !strcmp(o->what, "on");
    return o->on || !strcmp(o->what, "off") || (!tool && (!strcmp(o->what, "status") || !strcmp(o->what, "drop")));
}

int cmd_ctl(int argc, char **argv)
{
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {MG_OPT_END};
    int n = mg_opt_parse(&page_help, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    struct order o = {0};
    uint64_t number = 0;
    if (n && !mg_number_u64(argv[0], false, 1, INT32_MAX, &number))
        return mg_opt_usage(&page_help, MG_EXIT_USAGE, "PID is a whole number from 1 to %d, not '%.200s'", INT32_MAX,
                            argv[0]);
    long root = (long)number;
    if (n < 2 || !read_order(n, argv, &o))
        return mg_opt_usage(
            &page_help, MG_EXIT_USAGE,
            "takes a process and what to do: PID on|off|status|drop, PID tool NAME on|off, or PID adopt SOCKET [SHARE [NAME]]");
    bool any = false;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]) && is_below(atol(e->d_name), root)) any |= act(atol(e->d_name), &o);
    if (d) closedir(d);
    free((void *)(uintptr_t)o.tool);
    if (any) return fflush(stdout) || o.failed ? MG_EXIT_INPUT : MG_EXIT_OK;
    if (kill((pid_t)root, 0) && errno == ESRCH)
        fprintf(stderr, "margay ctl: there is no process %ld\n", root);
    else
        fprintf(stderr, "margay ctl: process %ld does not run under margay, or has made no CUDA call yet\n", root);
    return MG_EXIT_INPUT;
}
