#include "base/cache.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define MAGIC_BYTES 8
#define HEAD_BYTES  (MAGIC_BYTES + 32)

bool mg_cache_path(const char *part, const uint8_t hash[32], bool make, char *path)
{
    if (!mg_io_cache_dir(part, path, make)) return false;
    size_t n = strlen(path);
    if (n + 66 > PATH_MAX) return false;
    path[n] = '/';
    mg_sha256_hex(hash, 32, path + n + 1);
    return true;
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
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

void mg_cache_write(const char *path, const char *magic, const void *data, size_t bytes)
{
    static _Atomic unsigned turn; /* threads of a process may write the same one */
    char temp[PATH_MAX + 40];
    uint8_t h[32];
    snprintf(temp, sizeof temp, "%s.%ld.%u", path, (long)getpid(), turn++);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return;
    mg_sha256_of(data, bytes, h);
    bool ok = write_all(fd, magic, MAGIC_BYTES) && write_all(fd, h, sizeof h) && write_all(fd, data, bytes);
    ok &= !close(fd);
    if (!ok || rename(temp, path)) unlink(temp);
}
