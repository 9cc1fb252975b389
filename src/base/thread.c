/* Starting threads of our own, see thread.h. */
#include "base/thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Those of ours that have begun and not ended, and the process that they are of: a fork has none of them. */
static _Atomic int alive;
static _Atomic pid_t of_process;

struct start {
    void *(*fn)(void *);
    void *arg;
};

static void *run(void *p)
{
    struct start s = *(struct start *)p;
    free(p);
    void *result = s.fn(s.arg);
    alive--;
    return result;
}

static int own_threads(void)
{
    return of_process == getpid() ? alive : 0;
}

/* What a thread does itself: blocked, such a signal ends the process without asking its handler. */
static const int its_own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

bool mg_thread_start(void *(*fn)(void *), void *arg, size_t stack_bytes, pthread_t *joinable)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t every, before;
    sigfillset(&every);
    for (unsigned i = 0; i < MG_COUNT_OF(its_own); i++) sigdelset(&every, its_own[i]);
    pthread_attr_init(&attr);
    if (!joinable) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack_bytes) pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    struct start *s = malloc(sizeof *s);
    if (s) *s = (struct start){fn, arg};
    if (of_process != getpid()) {
        alive = 0;
        of_process = getpid();
    }
    alive++;
    bool ok = s && !pthread_create(joinable ? joinable : &thread, &attr, run, s);
    if (!ok) {
        alive--;
        free(s);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return ok;
}

void mg_thread_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

static bool read_name(const char *task, char name[16])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, 15);
    if (fd >= 0) close(fd);
    name[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* CUDA's own: they store nothing of the program's. Threads of the program bear its name, unless it gives them others.
 */
static int driver_threads(void)
{
    char program[16], name[16], id[24];
    int n = 0;
    snprintf(id, sizeof id, "%d", (int)getpid());
    if (!read_name(id, program)) return 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' && read_name(e->d_name, name) && strcmp(name, program) &&
             (!strncmp(name, "cuda-EvtHandlr", 14) || !strncmp(name, "cuda0000", 8));
    if (d) closedir(d);
    return n;
}

bool mg_thread_has_others(bool cuda)
{
    static _Thread_local int last_tasks, last_own; /* when the driver's were counted */
    static _Thread_local bool others;
    struct stat st;
    if (stat("/proc/self/task", &st)) return true;
    int tasks = (int)st.st_nlink - 2, own = own_threads();
    if (!cuda || tasks <= 1 + own) return tasks > 1 + own;
    if (tasks != last_tasks || own != last_own) {
        others = tasks > 1 + own + driver_threads();
        last_tasks = tasks;
        last_own = own;
    }
    return others;
}

uint64_t mg_thread_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

unsigned mg_thread_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}
