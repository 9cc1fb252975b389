/* Whole files, and the clock. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"

#include "base/arena.h"

enum mg_err mg_io_read(const char *path, char **data, size_t *bytes, struct mg_diag *d)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return mg_diag_err(d, MG_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    size_t n = 0, cap = 1 << 16;
    struct stat st;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode)) cap = (size_t)st.st_size + 1;
    char *p = mg_xmalloc(cap + 1);
    for (;;) {
        if (n == cap) p = mg_xrealloc(p, (cap *= 2) + 1);
        ssize_t got = read(fd, p + n, cap - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            int e = errno;
            free(p);
            close(fd);
            return mg_diag_err(d, MG_ERR_IO, "cannot read %s: %s", path, strerror(e));
        }
        if (!got) break;
        n += (size_t)got;
    }
    close(fd);
    p[n] = 0;
    *data = p;
    *bytes = n;
    return MG_ERR_OK;
}

enum mg_err mg_io_write(const char *path, const void *data, size_t bytes, struct mg_diag *d)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return mg_diag_err(d, MG_ERR_IO, "cannot create %s: %s", path, strerror(errno));
    for (const char *p = data; bytes;) {
        ssize_t put = write(fd, p, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            int e = errno;
            close(fd);
            return mg_diag_err(d, MG_ERR_IO, "cannot write %s: %s", path, strerror(e));
        }
        p += put;
        bytes -= (size_t)put;
    }
    if (close(fd)) return mg_diag_err(d, MG_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    return MG_ERR_OK;
}

uint64_t mg_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* mkdir -p */
static bool make_dirs(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        bool ok = !mkdir(path, 0777) || errno == EEXIST;
        *at = '/';
        if (!ok) return false;
    }
    return !mkdir(path, 0777) || errno == EEXIST;
}

bool mg_io_cache_dir(const char *part, char *path, bool make)
{
    const struct {
        const char *variable, *below;
    } places[] = {{mg_env_name(MG_ENV_CACHE), ""}, {"XDG_CACHE_HOME", "/margay"}, {"HOME", "/.cache/margay"}};
    for (size_t i = 0; i < MG_COUNT_OF(places); i++) {
        const char *root = getenv(places[i].variable);
        if (!root || root[0] != '/') continue;
        int n = snprintf(path, PATH_MAX, "%s%s/%s", root, places[i].below, part);
        return n > 0 && n < PATH_MAX && (!make || make_dirs(path));
    }
    return false;
}
