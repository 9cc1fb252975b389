/* The ways out of a process that run no destructor: what is finished goes to disk before each.
 *   _exit, _Exit             the profile is closed
 *   exec*                    it is closed as well; when the call comes back, recording goes on
 *   abort, a failed assert, raise and kill of the process itself with a signal that ends it
 *                            what has ended is written, with the status that the signal gives
 * An exec in a forked or vforked child is none of ours: it passes straight through, and so does every
 * call before the first CUDA call. All of these may come from a signal handler that interrupted
 * anything, so nothing here waits for long for a lock.
 *   pthread_exit by the main thread, without a GPU, where it made the first CUDA call
 *                            the process is to end with the last of the program's threads: ours do not keep it
 * Not here: signals from outside. What they leave behind is what the writer committed until then. */
#include "inject/session.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

MG_EXPORT MG_NORETURN void _exit(int status);
MG_EXPORT MG_NORETURN void _Exit(int status);
MG_EXPORT MG_NORETURN void abort(void);
MG_EXPORT MG_NORETURN void __assert_fail(const char *text, const char *file, unsigned line, const char *function);
MG_EXPORT int raise(int sig);
MG_EXPORT int kill(pid_t pid, int sig);
MG_EXPORT int execve(const char *path, char *const argv[], char *const env[]);
MG_EXPORT int execvpe(const char *file, char *const argv[], char *const env[]);
MG_EXPORT int fexecve(int fd, char *const argv[], char *const env[]);
MG_EXPORT int execv(const char *path, char *const argv[]);
MG_EXPORT int execvp(const char *file, char *const argv[]);
MG_EXPORT int execl(const char *path, const char *arg, ...);
MG_EXPORT int execlp(const char *file, const char *arg, ...);
MG_EXPORT int execle(const char *path, const char *arg, ...);

extern char **environ;

typedef int (*exec_fn)(const char *, char *const[], char *const[]);
typedef int (*fexec_fn)(int, char *const[], char *const[]);

static void *next(const char *name, const char *version)
{
    int kept = errno;
    void *f = dlvsym(RTLD_NEXT, name, version);
    errno = kept;
    return f;
}

/* ---- ends ----------------------------------------------------------------------------------------------- */

/* What a thread does last of all. It waits for the others as the process would, and ends it as the C library does. */
static void main_left(void *active)
{
    (void)active;
    if (!mg_session.active || mg_session_can(MG_BACKEND_HARDWARE)) return;
    while (mg_thread_has_others(false)) nanosleep(&(struct timespec){0, 2000000}, NULL);
    exit(0);
}

void mg_leave_watch_main(void)
{
    pthread_key_t key;
    if (gettid() == getpid() && !pthread_key_create(&key, main_left)) pthread_setspecific(key, &mg_session);
}

MG_NORETURN static void leave(int status)
{
    mg_session_exit(status);
    for (;;) syscall(SYS_exit_group, status);
}
void _exit(int status)
{
    leave(status);
}
void _Exit(int status)
{
    leave(status);
}

void abort(void)
{
    mg_session_leave(128 + SIGABRT, 0);
    void (*real)(void) = (void (*)(void))next("abort", "GLIBC_2.2.5");
    if (real) real();
    leave(128 + SIGABRT);
}

/* The C library's own calls abort from within. */
void __assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
    mg_session_leave(128 + SIGABRT, 0);
    void (*real)(const char *, const char *, unsigned, const char *) =
        (void (*)(const char *, const char *, unsigned, const char *))next("__assert_fail", "GLIBC_2.2.5");
    if (real) real(text, file, line, function);
    leave(128 + SIGABRT);
}

static bool is_fatal(int sig)
{
    struct sigaction now;
    if (sig == SIGKILL) return true;
    if (sig <= 0 || sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH || sig == SIGSTOP ||
        sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU || sigaction(sig, NULL, &now))
        return false;
    return !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
}

int raise(int sig)
{
    if (is_fatal(sig)) mg_session_leave(128 + sig, 0);
    int (*real)(int) = (int (*)(int))next("raise", "GLIBC_2.2.5");
    return real ? real(sig) : (int)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig);
}

int kill(pid_t pid, int sig)
{
    if ((pid == getpid() || pid == 0 || pid == -getpgrp()) && is_fatal(sig)) mg_session_leave(128 + sig, 0);
    return (int)syscall(SYS_kill, pid, sig);
}

/* ---- another program in this process -------------------------------------------------------------------------- */

int execve(const char *path, char *const argv[], char *const env[])
{
    mg_session_leave(-1, MG_SESSION_DRAIN_NS);
    return (int)syscall(SYS_execve, path, argv, env);
}

int execvpe(const char *file, char *const argv[], char *const env[])
{
    mg_session_leave(-1, MG_SESSION_DRAIN_NS);
    exec_fn real = (exec_fn)next("execvpe", "GLIBC_2.11");
    if (!real) return errno = ENOSYS, -1;
    return real(file, argv, env);
}

int fexecve(int fd, char *const argv[], char *const env[])
{
    mg_session_leave(-1, MG_SESSION_DRAIN_NS);
    fexec_fn real = (fexec_fn)next("fexecve", "GLIBC_2.2.5");
    if (!real) return errno = ENOSYS, -1;
    return real(fd, argv, env);
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

static size_t count_args(va_list ap)
{
    size_t n = 1;
    va_list at;
    va_copy(at, ap);
    while (va_arg(at, char *)) n++;
    va_end(at);
    return n;
}

/* arg and what ap holds up to the NULL, and the NULL; ap then stands behind it */
#define COLLECT(argv, ap, arg)                                                                                         \
    size_t n = arg ? count_args(ap) : 0;                                                                               \
    char **argv = alloca((n + 1) * sizeof *argv);                                                                      \
    memcpy(argv, &arg, sizeof *argv);                                                                                  \
    for (size_t k = 1; k <= n; k++) argv[k] = va_arg(ap, char *)

int execl(const char *path, const char *arg, ...)
{
    va_list ap;
    va_start(ap, arg);
    COLLECT(argv, ap, arg);
    va_end(ap);
    return execve(path, argv, environ);
}

int execlp(const char *file, const char *arg, ...)
{
    va_list ap;
    va_start(ap, arg);
    COLLECT(argv, ap, arg);
    va_end(ap);
    return execvpe(file, argv, environ);
}

int execle(const char *path, const char *arg, ...)
{
    va_list ap;
    va_start(ap, arg);
    COLLECT(argv, ap, arg);
    char *const *env = va_arg(ap, char *const *);
    va_end(ap);
    return execve(path, argv, env);
}
