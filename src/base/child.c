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
        int to = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1, null = out ? open("/dev/null", O_WRONLY) : -1;
        if (!out || (to >= 0 && null >= 0 && dup2(to, 1) == 1 && dup2(null, 2) == 2)) execv(argv[0], argv);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}
