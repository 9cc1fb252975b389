#include "base/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define MAGIC_BYTES 8
#define HEAD_BYTES  (MAGIC_BYTES + 32)

/* Why is nothing kept there? error: of errno. */
static void explain(const char *path, int error, char *text, size_t bytes)
{
    if (*path)
        snprintf(text, bytes, "nothing can be kept for later runs: %s: %s", path, strerror(error));
    else
        snprintf(text, bytes, "nothing can be kept for later runs: set MARGAY_CACHE or HOME");
}

static void (*_Atomic listener)(const char *line);

void mg_cache_hear(void (*tell)(const char *line))
{
    listener = tell;
}

static void fail(const char *path, int error)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char text[PATH_MAX + 200];
    void (*tell)(const char *line) = listener;
    if (!tell || atomic_flag_test_and_set(&told)) return;
    explain(path, error, text, sizeof text);
    tell(text);
}

static bool find_path(const char *part, const uint8_t hash[32], bool make, char *path)
{
    if (!mg_io_cache_dir(part, path, make)) return false;
    size_t n = strlen(path);
    errno = ENAMETOOLONG;
    if (n + 66 > PATH_MAX) return false;
    path[n] = '/';
    mg_sha256_hex(hash, 32, path + n + 1);
    return true;
}

bool mg_cache_path(const char *part, const uint8_t hash[32], bool make, char *path)
{
    bool ok = find_path(part, hash, make, path);
    if (!ok && make) fail(path, errno);
    return ok;
}

void *mg_cache_read(const char *path, const char *magic, size_t *bytes)
{
    char *data;
    size_t n;
    uint8_t h[32];
    if (mg_io_read(path, &data, &n, NULL) != MG_ERR_OK) return NULL;
    bool ok = n > HEAD_BYTES && !memcmp(data, magic, MAGIC_BYTES);
    if (ok) {
        mg_sha256_of(data + HEAD_BYTES, n - HEAD_BYTES, h);
        ok = !memcmp(data + MAGIC_BYTES, h, sizeof h);
    }
    if (!ok) {
        free(data);
        return NULL;
    }
    memmove(data, data + HEAD_BYTES, n - HEAD_BYTES);
    *bytes = n - HEAD_BYTES;
    return data;
}

static bool write_all(int fd, const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, (const char *)data + at, bytes - at);
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

/* 0, or the error. */
static int write_file(const char *path, const char *magic, const void *data, size_t bytes)
{
    static _Atomic unsigned turn; /* threads of a process may write the same one */
    char temp[PATH_MAX + 40];
    uint8_t h[32];
    snprintf(temp, sizeof temp, "%s.%ld.%u", path, (long)getpid(), turn++);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    mg_sha256_of(data, bytes, h);
    bool ok = write_all(fd, magic, MAGIC_BYTES) && write_all(fd, h, sizeof h) && write_all(fd, data, bytes);
    int error = ok ? 0 : errno;
    if (close(fd) && !error) error = errno;
    if (!error && rename(temp, path)) error = errno;
    if (error) unlink(temp);
    return error;
}

void mg_cache_write(const char *path, const char *magic, const void *data, size_t bytes)
{
    int error = write_file(path, magic, data, bytes);
    if (error) fail(path, error);
}

bool mg_cache_try(char *text, size_t bytes)
{
    static const char page[4096];
    char path[PATH_MAX];
    uint8_t hash[32];
    mg_sha256_of(page, sizeof page, hash);
    int error = find_path("cpu", hash, true, path) ? write_file(path, "margaydr", page, sizeof page) : errno;
    if (error) {
        explain(path, error, text, bytes);
        return false;
    }
    unlink(path);
    *strrchr(path, '/') = 0;
    *strrchr(path, '/') = 0;
    snprintf(text, bytes, "%s", path);
    return true;
}
