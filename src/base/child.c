/* Programs that we start, see child.h. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"

bool mg_child_find(const char *name, const char *also, char *path, size_t size)
{
    const char *dirs = getenv("PATH");
    for (const char *p = dirs ? dirs : "/bin:/usr/bin"; *p;) {
        size_t n = strcspn(p, ":");
        snprintf(path, size, "%.*s/%s", (int)n, p, name);
        if (n && !access(path, X_OK)) return true;
        p += n + (p[n] == ':');
    }
    return also && snprintf(path, size, "%s/%s", also, name) < (int)size && !access(path, X_OK);
}

bool mg_child_run(char *const argv[], const char *out)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        int to = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1,
            null = out ? open("/dev/null", O_WRONLY) : -1;
        if (!out || (to >= 0 && null >= 0 && dup2(to, 1) == 1 && dup2(null, 2) == 2)) execv(argv[0], argv);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* In the child: the result behind one byte that says that fn came back. */
static void try_here(void (*fn)(void *user, struct mg_buf *out), void *user, int to)
{
    struct mg_buf text = MG_BUF_INIT;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 1);
        dup2(null, 2);
    }
    fn(user, &text);
    bool sent = write(to, "", 1) == 1;
    for (size_t at = 0; sent && at < text.n;) {
        ssize_t n = write(to, text.at + at, text.n - at);
        if (n <= 0) break;
        at += (size_t)n;
    }
    _exit(0);
}

static bool take_answer(int from, struct mg_buf *out)
{
    char block[4096];
    bool first = false;
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0 || (n < 0 && errno == EINTR);) {
        if (n < 0) continue;
        mg_buf_add(out, block + !first, (size_t)n - !first);
        first = true;
    }
    return first;
}

bool mg_child_try(void (*fn)(void *user, struct mg_buf *out), void *user, struct mg_buf *out, char why[100])
{
    int fds[2], status = 0;
    size_t was = out->n;
    if (pipe(fds)) {
        snprintf(why, 100, "no process for it: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        close(fds[0]);
        try_here(fn, user, fds[1]);
    }
    int e = errno;
    close(fds[1]);
    bool answered = pid > 0 && take_answer(fds[0], out);
    close(fds[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0)
        snprintf(why, 100, "no process for it: %s", strerror(e));
    else if (WIFSIGNALED(status))
        snprintf(why, 100, "it ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (!answered)
        snprintf(why, 100, "it ended its process with exit status %d", WEXITSTATUS(status));
    if (pid > 0 && answered && !WIFSIGNALED(status)) return true;
    out->n = was;
    return false;
}
