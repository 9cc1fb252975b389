/* The file of a writer. A failed write leaves a file that ends with the last whole chunk. The application may close
 * descriptors that are not its own, and open files under their numbers: each write looks whether ours is still ours. */
#include "trace/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/io.h"

enum { MOST_ENTRIES = 1 << 18, MOST_FILES = 10000, MOST_FOLDERS = 1000 };

static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_our_file(const struct mg_trace_out *o, int fd)
{
    struct stat st;
    return fd >= 0 && !fstat(fd, &st) && st.st_dev == o->dev && st.st_ino == o->ino;
}

/* The descriptor, opened again where the application has closed it. */
static bool find_file(struct mg_trace_out *o)
{
    if (is_our_file(o, o->fd)) return true;
    o->fd = -1; /* the number may be the application's by now */
    int fd = open(o->path, O_WRONLY | O_CLOEXEC);
    if (is_our_file(o, fd)) {
        o->fd = fd;
        return true;
    }
    if (fd >= 0) close(fd);
    errno = ENOENT;
    return false;
}

static bool write_at(struct mg_trace_out *o, uint64_t at, const void *p, size_t bytes)
{
    for (const char *s = p; bytes;) {
        ssize_t put = pwrite(o->fd, s, bytes, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            if (!put) errno = ENOSPC;
            return false;
        }
        s += put;
        at += (uint64_t)put;
        bytes -= (size_t)put;
    }
    return true;
}

static bool fail(struct mg_trace_out *o, const char *what)
{
    int e = errno;
    if (o->fd >= 0 && ftruncate(o->fd, (off_t)o->at)) {
    } /* what stands behind is a torn end then */
    snprintf(o->why, sizeof o->why, "%s: %s", what, strerror(e));
    return false;
}

/* The folder may be taken away by who has emptied it (margay run -t communication): tried again then. */
static int create_once(struct mg_trace_out *o, const char *dir, uint32_t pid)
{
    char path[PATH_MAX];
    for (int i = 1; i < MOST_FILES; i++) {
        char again[16] = "";
        if (i > 1) snprintf(again, sizeof again, "-%d", i);
        int n = snprintf(path, sizeof path, "%s/trace/%u%s.mgt", dir, pid, again);
        if (n < 0 || n >= (int)sizeof path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd >= 0 && !(o->path = strdup(path))) {
            close(fd);
            errno = ENOMEM;
            return -1;
        }
        return fd;
    }
    return -1;
}

static int create(struct mg_trace_out *o, const char *dir, const char *folder)
{
    int fd = -1;
    for (int i = 0; i < MOST_FOLDERS && fd < 0; i++) {
        if (mkdir(folder, 0777) && errno != EEXIST) return -1;
        fd = create_once(o, dir, (uint32_t)getpid());
        if (fd < 0 && errno != ENOENT) return -1;
    }
    return fd;
}

/* First line of a file of the system's, "" where there is none. */
static void read_line(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    if (!f || !fgets(out, (int)room, f)) out[0] = 0;
    if (f) fclose(f);
    out[strcspn(out, "\n")] = 0;
}

static bool write_head(struct mg_trace_out *o, const struct mg_trace_opts *opts)
{
    char host[256] = "", boot[64];
    size_t bytes = sizeof(struct mg_trace_file_head) + sizeof host + sizeof boot + 32;
    for (uint32_t i = 0; i < opts->n_attributes; i++) bytes += strlen(opts->attributes[i]) + 1;
    char *head = calloc(1, bytes);
    if (!head) {
        errno = ENOMEM;
        return false;
    }
    if (gethostname(host, sizeof host - 1)) host[0] = 0;
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    size_t n = sizeof(struct mg_trace_file_head);
    n += (size_t)snprintf(head + n, bytes - n, "host=%s\nboot=%s\n", host, boot);
    for (uint32_t i = 0; i < opts->n_attributes; i++) {
        size_t more = strlen(opts->attributes[i]) + 1;
        if (n + more > MG_TRACE_MOST_ATTRIBUTES) break;
        memcpy(head + n, opts->attributes[i], more);
        for (char *c = head + n; *c; c++)
            if (*c == '\n') *c = ' ';
        head[n + more - 1] = '\n';
        n += more;
    }
    struct mg_trace_file_head h = {.version = MG_TRACE_VERSION,
                                   .head_bytes = (uint32_t)mg_trace_padded(n),
                                   .pid = (uint32_t)getpid(),
                                   .rank = opts->rank,
                                   .mono_ns = mg_now_ns(),
                                   .real_ns = real_ns(),
                                   .attribute_bytes = (uint32_t)(n - sizeof h)};
    memcpy(h.magic, MG_TRACE_MAGIC, sizeof h.magic);
    memcpy(head, &h, sizeof h);
    h.crc = mg_crc32c(0, head, h.head_bytes);
    memcpy(head, &h, sizeof h);
    bool ok = write_at(o, 0, head, h.head_bytes);
    free(head);
    o->at = h.head_bytes;
    return ok;
}

enum mg_err mg_trace_out_open(struct mg_trace_out *o, const struct mg_trace_opts *opts, struct mg_diag *d)
{
    char folder[PATH_MAX];
    struct stat st;
    *o = (struct mg_trace_out){.fd = -1};
    int n = snprintf(folder, sizeof folder, "%s/trace", opts->dir);
    if (n < 0 || n >= (int)sizeof folder) return mg_diag_err(d, MG_ERR_LIMIT, "%s: the path is too long", opts->dir);
    if (mkdir(opts->dir, 0777) && errno != EEXIST)
        return mg_diag_err(d, MG_ERR_IO, "cannot make %s: %s", opts->dir, strerror(errno));
    o->fd = create(o, opts->dir, folder);
    if (o->fd < 0) return mg_diag_err(d, MG_ERR_IO, "cannot create a trace in %s: %s", folder, strerror(errno));
    if (!fstat(o->fd, &st)) {
        o->dev = st.st_dev;
        o->ino = st.st_ino;
        if (write_head(o, opts)) return MG_ERR_OK;
    }
    enum mg_err err = mg_diag_err(d, MG_ERR_IO, "cannot write %s: %s", o->path, strerror(errno));
    unlink(o->path);
    mg_trace_out_release(o);
    return err;
}

static void add_entry(struct mg_trace_out *o, const struct mg_trace_chunk_head *h)
{
    if (o->no_index) return;
    if (o->n_entries == o->cap_entries) {
        uint64_t cap = o->cap_entries ? 2 * o->cap_entries : 64;
        struct mg_trace_entry *more = cap <= MOST_ENTRIES ? realloc(o->entries, cap * sizeof *more) : NULL;
        if (!more) {
            o->no_index = true;
            return;
        }
        o->entries = more;
        o->cap_entries = cap;
    }
    struct mg_trace_entry *e = &o->entries[o->n_entries++];
    *e = (struct mg_trace_entry){.at = o->at, .packed_bytes = h->packed_bytes, .n_records = h->n_records};
    memcpy(e->keys, h->keys, sizeof e->keys);
}

bool mg_trace_out_chunk(struct mg_trace_out *o, struct mg_trace_chunk_head *h, const void *stored)
{
    size_t bytes = mg_trace_padded(h->packed_bytes);
    if (o->why[0]) return false;
    h->magic = MG_TRACE_CHUNK_MAGIC;
    h->version = MG_TRACE_VERSION;
    h->number = o->chunks;
    h->payload_crc = mg_crc32c(0, stored, bytes);
    mg_trace_chunk_head_seal(h);
    if (!find_file(o) || !write_at(o, o->at, h, sizeof *h) || !write_at(o, o->at + sizeof *h, stored, bytes))
        return fail(o, o->path);
    add_entry(o, h);
    o->at += sizeof *h + bytes;
    o->chunks++;
    o->records += h->n_records;
    o->raw_bytes += h->raw_bytes;
    o->dropped += h->dropped;
    o->skipped += h->skipped;
    return true;
}

void mg_trace_out_end(struct mg_trace_out *o, uint64_t lost)
{
    uint64_t at = o->at;
    size_t bytes = o->n_entries * sizeof *o->entries;
    if (!find_file(o)) return;
    struct mg_trace_end e = {.magic = MG_TRACE_END_MAGIC,
                             .version = MG_TRACE_VERSION,
                             .index_at = at,
                             .chunks = o->chunks,
                             .records = o->records,
                             .raw_bytes = o->raw_bytes,
                             .dropped = o->dropped,
                             .skipped = o->skipped,
                             .lost = lost,
                             .mono_ns = mg_now_ns(),
                             .real_ns = real_ns()};
    if (o->no_index) {
        e.index_at = 0;
    } else {
        struct mg_trace_index_head h = {.magic = MG_TRACE_INDEX_MAGIC,
                                        .version = MG_TRACE_VERSION,
                                        .n = o->n_entries,
                                        .entries_crc = mg_crc32c(0, o->entries, bytes)};
        h.crc = mg_crc32c(0, &h, offsetof(struct mg_trace_index_head, crc));
        if (!write_at(o, at, &h, sizeof h) || !write_at(o, at + sizeof h, o->entries, bytes)) goto failed;
        at += sizeof h + bytes;
    }
    e.crc = mg_crc32c(0, &e, offsetof(struct mg_trace_end, crc));
    if (write_at(o, at, &e, sizeof e)) return;
failed:
    fail(o, o->path);
}

void mg_trace_out_release(struct mg_trace_out *o)
{
    if (is_our_file(o, o->fd)) close(o->fd);
    free(o->path);
    free(o->entries);
    *o = (struct mg_trace_out){.fd = -1};
}
