/* Files of a reader: head, end, index. The index is made from the chunks' heads where it is missing, as in a file that
 * is still written or whose writer was killed; what belongs to no chunk is counted as damaged. */
#include "trace/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/hash.h"

enum { MOST_SEEN = 1 << 16 };

bool mg_trace_read_at(int fd, uint64_t at, void *out, size_t bytes)
{
    for (char *to = out; bytes;) {
        ssize_t got = pread(fd, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        at += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

/* The description of a kind, owned; what is equal up to the number is one. */
static struct mg_trace_seen *copy_seen(const uint8_t *described, size_t bytes)
{
    struct mg_trace_seen *s = mg_xcalloc(1, sizeof *s);
    size_t at = mg_trace_padded(bytes);
    uint32_t number;
    s->described = mg_xcalloc(1, at + MG_TRACE_MOST_FIELDS * sizeof(struct mg_trace_field));
    s->n_described = bytes;
    memcpy(s->described, described, bytes);
    struct mg_trace_field *fields = (struct mg_trace_field *)(void *)(s->described + at);
    if (mg_trace_undescribe(s->described, bytes, &number, &s->kind, fields) && mg_trace_layout(&s->kind, &s->layout))
        return s;
    free(s->described);
    free(s);
    return NULL;
}

const struct mg_trace_seen *mg_trace_seens_add(struct mg_trace_seens *t, const uint8_t *described, size_t most,
                                               size_t *bytes, uint32_t *number)
{
    struct mg_trace_field fields[MG_TRACE_MOST_FIELDS];
    struct mg_trace_kind kind;
    size_t n = mg_trace_undescribe(described, most, number, &kind, fields);
    uint64_t ix;
    if (!n) return NULL;
    *bytes = n;
    uint64_t hash = mg_hash64(described + 4, n - 4, 0);
    for (; mg_map_get(&t->by_hash, hash, &ix); hash++) {
        const struct mg_trace_seen *s = t->at.at[ix];
        if (s->n_described == n && !memcmp(s->described + 4, described + 4, n - 4)) return s;
    }
    struct mg_trace_seen *s = t->at.n < MOST_SEEN ? copy_seen(described, n) : NULL;
    if (!s) return NULL;
    s->ix = t->at.n;
    mg_map_set(&t->by_hash, hash, s->ix);
    *mg_vec_push(&t->at) = s;
    return s;
}

void mg_trace_seens_release(struct mg_trace_seens *t)
{
    for (uint32_t i = 0; i < t->at.n; i++) {
        free(t->at.at[i]->described);
        free(t->at.at[i]);
    }
    mg_vec_release(&t->at);
    mg_map_release(&t->by_hash);
}

/* ---- head and end -------------------------------------------------------------------------------------- */

/* <pid>.mgt, <pid>-2.mgt: all that is known of a file whose head is damaged. 0: another name. */
static uint32_t pid_of_name(const char *path)
{
    const char *base = strrchr(path, '/');
    char *end;
    unsigned long pid = strtoul(base ? base + 1 : path, &end, 10);
    return (*end == '.' || *end == '-') && pid <= INT32_MAX ? (uint32_t)pid : 0;
}

static enum mg_err read_head(int fd, struct mg_trace_loaded *f, uint64_t *chunks_at, struct mg_diag *d)
{
    struct mg_trace_file_head h;
    f->file.bad_header = true;
    f->file.rank = -1;
    f->file.pid = pid_of_name(f->path);
    *chunks_at = 0;
    if (!mg_trace_read_at(fd, 0, &h, sizeof h) || memcmp(h.magic, MG_TRACE_MAGIC, sizeof h.magic)) return MG_ERR_OK;
    if (h.head_bytes < sizeof h || h.head_bytes % 8 || h.attribute_bytes > MG_TRACE_MOST_ATTRIBUTES ||
        h.head_bytes != mg_trace_padded(sizeof h + h.attribute_bytes))
        return MG_ERR_OK;
    char *all = mg_xcalloc(1, h.head_bytes + 1);
    if (mg_trace_read_at(fd, 0, all, h.head_bytes)) {
        struct mg_trace_file_head zero = h;
        zero.crc = 0;
        memcpy(all, &zero, sizeof zero);
        f->file.bad_header = h.crc != mg_crc32c(0, all, h.head_bytes);
    }
    if (f->file.bad_header) {
        free(all);
        return MG_ERR_OK;
    }
    if (h.version > MG_TRACE_VERSION) {
        free(all);
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "%s is a trace of version %u; this program reads up to version %d",
                           f->path, h.version, MG_TRACE_VERSION);
    }
    memmove(all, all + sizeof h, h.attribute_bytes);
    all[h.attribute_bytes] = 0;
    f->attributes = all;
    f->file.version = h.version;
    f->file.pid = h.pid;
    f->file.rank = h.rank;
    f->file.start_mono_ns = h.mono_ns;
    f->file.start_real_ns = h.real_ns;
    *chunks_at = h.head_bytes;
    return MG_ERR_OK;
}

static bool read_end(int fd, uint64_t bytes, struct mg_trace_end *e)
{
    return bytes >= sizeof *e && mg_trace_read_at(fd, bytes - sizeof *e, e, sizeof *e) &&
           e->magic == MG_TRACE_END_MAGIC && e->version <= MG_TRACE_VERSION &&
           e->crc == mg_crc32c(0, e, offsetof(struct mg_trace_end, crc));
}

/* The index that the end points to; false: it is not there, or not whole. */
static bool read_index(int fd, struct mg_trace_loaded *f, uint64_t chunks_at, uint64_t end_at,
                       const struct mg_trace_end *e)
{
    struct mg_trace_index_head h;
    uint64_t at = e->index_at, next = chunks_at;
    if (at < chunks_at || at > end_at || end_at - at < sizeof h || !mg_trace_read_at(fd, at, &h, sizeof h))
        return false;
    if (h.magic != MG_TRACE_INDEX_MAGIC || h.crc != mg_crc32c(0, &h, offsetof(struct mg_trace_index_head, crc)))
        return false;
    uint64_t bytes = end_at - at - sizeof h;
    if (h.n != bytes / sizeof *f->entries || bytes % sizeof *f->entries || h.n != e->chunks) return false;
    f->entries = mg_xmalloc(bytes + 1);
    f->n_entries = h.n;
    bool ok =
        mg_trace_read_at(fd, at + sizeof h, f->entries, bytes) && h.entries_crc == mg_crc32c(0, f->entries, bytes);
    for (uint64_t i = 0; ok && i < h.n; i++) {
        ok = f->entries[i].at == next && f->entries[i].packed_bytes <= 2u * MG_TRACE_MOST_CHUNK;
        next += mg_trace_stored(f->entries[i].packed_bytes);
    }
    if (ok && next == at) return true;
    free(f->entries);
    f->entries = NULL;
    f->n_entries = 0;
    return false;
}

/* ---- making the index ---------------------------------------------------------------------------------- */

static bool read_chunk_head(int fd, uint64_t at, uint64_t end, struct mg_trace_chunk_head *h)
{
    return end - at >= sizeof *h && mg_trace_read_at(fd, at, h, sizeof *h) && mg_trace_chunk_head_ok(h) &&
           mg_trace_stored(h->packed_bytes) <= end - at;
}

/* The next place from `at` on where a whole chunk begins, or end. */
static uint64_t next_chunk(int fd, uint64_t at, uint64_t end, struct mg_trace_chunk_head *h)
{
    uint32_t words[8192];
    for (at = mg_trace_padded(at); at < end; at += sizeof words) {
        size_t bytes = (size_t)MG_MIN(end - at, sizeof words) & ~7ull;
        if (!bytes || !mg_trace_read_at(fd, at, words, bytes)) return end;
        for (size_t i = 0; i < bytes / 4; i += 2)
            if (words[i] == MG_TRACE_CHUNK_MAGIC && read_chunk_head(fd, at + 4 * i, end, h)) return at + 4 * i;
    }
    return end;
}

/* Adds the chunks from next_at on. Where one does not begin, a growing file is at its end, for now; another one is
 * damaged. */
static void scan(int fd, struct mg_trace_loaded *f, uint64_t end)
{
    struct mg_trace_chunk_head h;
    while (f->next_at < end) {
        uint64_t at = f->next_at;
        if (!read_chunk_head(fd, at, end, &h)) {
            if (f->growing) return;
            f->next_at = next_chunk(fd, at + 1, end, &h);
            f->file.damaged_bytes += f->next_at - at;
            continue;
        }
        struct mg_trace_entry e = {.at = at, .packed_bytes = h.packed_bytes, .n_records = h.n_records};
        memcpy(e.keys, h.keys, sizeof e.keys);
        f->repeated |= h.number < f->next_number;
        f->next_number = h.number + 1;
        if (f->n_entries == f->room) {
            f->room = MG_MAX(2 * f->room, (uint64_t)64);
            f->entries = mg_xrealloc(f->entries, f->room * sizeof *f->entries);
        }
        f->entries[f->n_entries++] = e;
        f->next_at += mg_trace_stored(h.packed_bytes);
        f->file.raw_bytes += h.raw_bytes;
        f->file.dropped += h.dropped;
        f->file.skipped += h.skipped;
    }
}

static void sum_up(struct mg_trace_loaded *f)
{
    mg_trace_range_none(f->file.keys);
    f->file.chunks = f->n_entries;
    f->file.records = 0;
    for (uint64_t i = 0; i < f->n_entries; i++) {
        f->file.records += f->entries[i].n_records;
        for (int k = 0; k < MG_TRACE_INDEXED; k++) {
            f->file.keys[k].first = MG_MIN(f->file.keys[k].first, f->entries[i].keys[k].first);
            f->file.keys[k].last = MG_MAX(f->file.keys[k].last, f->entries[i].keys[k].last);
        }
    }
}

static enum mg_err load(int fd, struct mg_trace_loaded *f, struct mg_diag *d)
{
    struct stat st;
    struct mg_trace_end e;
    uint64_t at;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) return mg_diag_err(d, MG_ERR_IO, "%s is no file", f->path);
    f->file.bytes = (uint64_t)st.st_size;
    enum mg_err err = read_head(fd, f, &at, d);
    if (err) return err;
    uint64_t end = f->file.bytes;
    bool closed = read_end(fd, end, &e);
    if (closed) {
        end -= sizeof e;
        f->file.end_mono_ns = e.mono_ns;
        f->file.lost = e.lost;
    }
    if (closed && !f->file.bad_header && read_index(fd, f, at, end, &e)) {
        f->index_at = e.index_at;
        f->file.closed = true;
        f->file.raw_bytes = e.raw_bytes;
        f->file.dropped = e.dropped;
        f->file.skipped = e.skipped;
    } else {
        f->next_at = at;
        scan(fd, f, end);
        f->index_at = end;
        f->file.closed = closed && !e.index_at; /* too many chunks for an index */
        if (closed) {
            f->file.dropped = MG_MAX(f->file.dropped, e.dropped);
            f->file.skipped = MG_MAX(f->file.skipped, e.skipped);
        }
    }
    sum_up(f);
    if (f->file.bytes && f->file.bad_header && !f->n_entries)
        return mg_diag_err(d, MG_ERR_INPUT, "%s is no trace, or damaged from its head on", f->path);
    return MG_ERR_OK;
}

/* ---- a file that is still written ---------------------------------------------------------------------- */

static enum mg_err load_head(int fd, struct mg_trace_loaded *f, struct mg_diag *d)
{
    enum mg_err err = read_head(fd, f, &f->next_at, d);
    f->growing = true;
    if (!err && f->file.bad_header) err = mg_diag_err(d, MG_ERR_NOT_FOUND, "%s has no head yet", f->path);
    return err;
}

void mg_trace_grow(struct mg_trace_loaded *f, bool ended)
{
    struct mg_trace_end e;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (bytes >= 0) {
        uint64_t end = f->file.bytes = (uint64_t)bytes;
        bool closed = ended && read_end(fd, end, &e);
        f->growing = !ended;
        if (closed) end = e.index_at ? MG_MIN(e.index_at, end) : end - sizeof e;
        scan(fd, f, end);
        f->file.closed = closed;
        f->file.dropped = closed ? MG_MAX(f->file.dropped, e.dropped) : f->file.dropped;
        f->file.skipped = closed ? MG_MAX(f->file.skipped, e.skipped) : f->file.skipped;
        f->file.lost = closed ? e.lost : 0;
    }
    if (fd >= 0) close(fd);
}

void mg_trace_forget(struct mg_trace_loaded *f, uint64_t n)
{
    f->n_entries -= n;
    if (n) memmove(f->entries, f->entries + n, f->n_entries * sizeof *f->entries);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static enum mg_err load_by(const char *path, enum mg_err (*fn)(int fd, struct mg_trace_loaded *f, struct mg_diag *d),
                           struct mg_trace_loaded **out, struct mg_diag *d)
{
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return mg_diag_err(d, MG_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    struct mg_trace_loaded *f = mg_xcalloc(1, sizeof *f);
    f->path = mg_xstrdup(path);
    enum mg_err err = fn(fd, f, d);
    close(fd);
    f->file.path = f->path;
    f->file.attributes = f->attributes ? f->attributes : "";
    *out = f;
    if (!err) return MG_ERR_OK;
    mg_trace_loaded_free(f);
    *out = NULL;
    return err;
}

enum mg_err mg_trace_load(const char *path, struct mg_trace_loaded **out, struct mg_diag *d)
{
    return load_by(path, load, out, d);
}

enum mg_err mg_trace_load_growing(const char *path, struct mg_trace_loaded **out, struct mg_diag *d)
{
    return load_by(path, load_head, out, d);
}

void mg_trace_loaded_free(struct mg_trace_loaded *f)
{
    if (!f) return;
    free(f->path);
    free(f->attributes);
    free(f->entries);
    free(f);
}
