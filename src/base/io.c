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

/* Room for the name of the part; the file's own permissions where it is there. NULL: written as it is. */
static char *name_part(const char *path, mode_t *mode)
{
    struct stat st;
    bool there = !stat(path, &st);
    if (there && !S_ISREG(st.st_mode)) return NULL;
    char *real = there ? realpath(path, NULL) : NULL; /* a link stays one */
    const char *of = real ? real : path;
    size_t room = strlen(of) + 32;
    char *part = mg_xmalloc(room);
    snprintf(part, room, "%s.%ld.part", of, (long)getpid());
    free(real);
    *mode = there ? st.st_mode & 07777 : 0;
    return part;
}

enum mg_err mg_io_part_open(struct mg_io_part *p, const char *path, struct mg_diag *d)
{
    mode_t mode = 0;
    *p = (struct mg_io_part){.path = mg_xstrdup(path), .part = name_part(path, &mode)};
    p->file = p->part ? fopen(p->part, "we") : NULL;
    if (p->file && mode && fchmod(fileno(p->file), mode)) mode = 0; /* then those that a new file has */
    if (!p->file) {
        int why = errno;
        p->file = !p->part || !access(path, W_OK) ? fopen(path, "we") : NULL;
        if (!p->file && p->part) errno = why;
        free(p->part);
        p->part = NULL;
    }
    if (p->file) return MG_ERR_OK;
    enum mg_err err = mg_diag_err(d, MG_ERR_IO, "cannot create %s: %s", path, strerror(errno));
    free(p->path);
    *p = (struct mg_io_part){0};
    return err;
}

/* The place that the part is named after, by the same rule. */
static bool take_name(const struct mg_io_part *p)
{
    char *real = realpath(p->path, NULL);
    bool ok = !rename(p->part, real ? real : p->path);
    free(real);
    return ok;
}

enum mg_err mg_io_part_close(struct mg_io_part *p, enum mg_err err, struct mg_diag *d)
{
    if (!p->file) return err;
    bool bad = ferror(p->file) != 0;
    if (!bad) errno = 0; /* else it says why */
    if (fclose(p->file) && !bad) bad = true;
    if (!err && !bad && p->part && !take_name(p)) bad = true;
    int why = errno ? errno : EIO;
    if (!err && bad) err = mg_diag_err(d, MG_ERR_IO, "cannot write %s: %s", p->path, strerror(why));
    if (err && p->part) unlink(p->part);
    free(p->path);
    free(p->part);
    *p = (struct mg_io_part){0};
    errno = err ? why : 0;
    return err;
}

enum mg_err mg_io_write(const char *path, const void *data, size_t bytes, struct mg_diag *d)
{
    struct mg_io_part p;
    enum mg_err err = mg_io_part_open(&p, path, d);
    if (err) return err;
    errno = 0;
    if (bytes) fwrite(data, 1, bytes, p.file); /* _close asks whether it worked */
    return mg_io_part_close(&p, MG_ERR_OK, d);
}

uint64_t mg_io_written_ns(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
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
        if (n >= PATH_MAX) errno = ENAMETOOLONG;
        return n > 0 && n < PATH_MAX && (!make || make_dirs(path));
    }
    path[0] = 0;
    errno = ENOENT;
    return false;
}
