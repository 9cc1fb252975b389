/* margay ctl: switches the instrumentation of running programs on and off, and tells how far they are.
 * A process that runs under Margay maps DIR/ctl.<pid> (include/margay/control.h); PID may be that
 * process or one of its ancestors, `margay run` itself included. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "margay/control.h"

static const struct mg_opt_page page_help = {
    "ctl", "PID on|off|status", "switch instrumentation of a running program",
    "PID is the program's process, or a parent of it such as `margay run`: all its processes are switched. It takes\n"
    "effect at the next launch; graphs that were instantiated keep the code they were made with. Launches while it is\n"
    "off run native, with the reason \"switched off\".\n"};

static long parent_of(long pid)
{
    char path[64], text[512];
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && sscanf(end, ") %*c %ld", &parent) == 1 ? parent : 0;
}

static struct mg_control_page *open_page(long pid)
{
    char path[64], line[PATH_MAX + 256];
    void *p = MAP_FAILED;
    snprintf(path, sizeof path, "/proc/%ld/maps", pid);
    FILE *f = fopen(path, "re");
    while (f && p == MAP_FAILED && fgets(line, sizeof line, f)) {
        const char *name = strrchr(line, '/');
        if (!name || strncmp(name, "/ctl.", 5)) continue;
        line[strcspn(line, "\n")] = 0;
        int fd = open(strchr(line, '/'), O_RDWR | O_CLOEXEC);
        if (fd < 0) continue;
        p = mmap(NULL, sizeof(struct mg_control_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (p != MAP_FAILED && ((struct mg_control_page *)p)->magic != MG_CONTROL_MAGIC) {
            munmap(p, sizeof(struct mg_control_page));
            p = MAP_FAILED;
        }
    }
    if (f) fclose(f);
    return p == MAP_FAILED ? NULL : p;
}

static bool is_below(long pid, long root)
{
    for (int depth = 0; pid > 1 && depth < 256; depth++, pid = parent_of(pid))
        if (pid == root) return true;
    return pid == root;
}

static bool act(long pid, const char *what)
{
    struct mg_control_page *p = open_page(pid);
    if (!p) return false;
    if (strcmp(what, "status")) __atomic_store_n(&p->on, !strcmp(what, "on"), __ATOMIC_RELEASE);
    printf("%ld: %s, %llu launches seen, %llu selected\n", pid, p->on ? "on" : "off", (unsigned long long)p->launches,
           (unsigned long long)p->selected);
    munmap(p, sizeof *p);
    return true;
}

int cmd_ctl(int argc, char **argv)
{
    int status = MG_EXIT_USAGE;
    char *end;
    const struct mg_opt opts[] = {MG_OPT_END};
    int n = mg_opt_parse(&page_help, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    long root = n == 2 ? strtol(argv[0], &end, 10) : 0;
    if (n != 2 || root <= 0 || *end || (strcmp(argv[1], "on") && strcmp(argv[1], "off") && strcmp(argv[1], "status")))
        return mg_opt_usage(&page_help, MG_EXIT_USAGE, "takes a process and what to do: PID on|off|status");
    bool any = false;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]) && is_below(atol(e->d_name), root)) any |= act(atol(e->d_name), argv[1]);
    if (d) closedir(d);
    if (any) return fflush(stdout) ? MG_EXIT_INPUT : MG_EXIT_OK;
    if (kill((pid_t)root, 0) && errno == ESRCH)
        fprintf(stderr, "margay ctl: there is no process %ld\n", root);
    else
        fprintf(stderr, "margay ctl: process %ld does not run under margay, or has made no CUDA call yet\n", root);
    return MG_EXIT_INPUT;
}
