/* Readers: the trace files of a directory, in the order of their process numbers; clocks of other hosts are set to the
 * first file's; verification. */
#include "trace/reader.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/load.h"

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

static int compare_paths(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return strverscmp(x, y); /* 9.mgt before 10.mgt */
}

struct paths {
    MG_VEC(char *) at;
};

static void list_files(const char *folder, struct paths *out)
{
    char path[PATH_MAX];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n > 0 && n < (int)sizeof path && ends_with(e->d_name, ".mgt")) *mg_vec_push(&out->at) = mg_xstrdup(path);
    }
    if (dir) closedir(dir);
    if (out->at.n) qsort(out->at.at, out->at.n, sizeof *out->at.at, compare_paths);
}

const char *mg_trace_attribute(const struct mg_trace_file *f, const char *key, size_t *bytes)
{
    size_t n = strlen(key);
    for (const char *at = f->attributes; *at;) {
        size_t line = strcspn(at, "\n");
        if (line > n && at[n] == '=' && !memcmp(at, key, n)) {
            *bytes = line - n - 1;
            return at + n + 1;
        }
        at += line + (at[line] == '\n');
    }
    *bytes = 0;
    return NULL;
}

/* No time is moved before 0 or beyond what 64 bits hold: order stays. */
static int64_t bounded(uint64_t time_ns, __int128 shift)
{
    __int128 moved = time_ns + shift;
    if (moved < 0) moved = 0;
    if (moved > UINT64_MAX) moved = UINT64_MAX;
    return (int64_t)((uint64_t)moved - time_ns);
}

int64_t mg_trace_shift(const struct mg_trace_file *f, uint64_t time_ns)
{
    const struct mg_trace_clock *c = &f->clock;
    if (f->clock_source != MG_TRACE_MESSAGES) return bounded(time_ns, f->shift_ns);
    if (c->n < 2) return bounded(time_ns, c->offset_ns[0]);
    __int128 run = (__int128)time_ns - c->at_ns[0], rise = (__int128)c->offset_ns[1] - c->offset_ns[0];
    return bounded(time_ns, c->offset_ns[0] + run * rise / ((__int128)c->at_ns[1] - c->at_ns[0]));
}

/* <pid>.clock beside <pid>.mgt: lines of time, offset and uncertainty; the first and the last count that a clock may
 * have: it neither stands still nor goes back. */
static void read_clock(struct mg_trace_file *f)
{
    enum { MOST_DRIFT = 1000 /* nothing runs faster or slower by 1/1000 */ };
    char path[PATH_MAX];
    struct mg_trace_clock *c = &f->clock;
    uint64_t at, uncertainty;
    int64_t offset;
    if (snprintf(path, sizeof path, "%.*s.clock", (int)(strlen(f->path) - strlen(".mgt")), f->path) >= (int)sizeof path)
        return;
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%" SCNu64 " %" SCNd64 " %" SCNu64, &at, &offset, &uncertainty) == 3) {
        unsigned ix = c->n && at > c->at_ns[0];
        if ((c->n && !ix) || uncertainty > INT64_MAX) continue;
        __int128 off = (__int128)offset - c->offset_ns[0];
        uint64_t run = at - c->at_ns[0];
        if (off < 0) off = -off;
        if (ix && (off > (__int128)(run / MOST_DRIFT) + uncertainty + c->uncertainty_ns[0] || off > run / 2)) continue;
        c->at_ns[ix] = at;
        c->offset_ns[ix] = offset;
        c->uncertainty_ns[ix] = uncertainty;
        c->n = ix + 1;
    }
    if (file) fclose(file);
}

static bool same_boot(const struct mg_trace_file *f, const struct mg_trace_file *g)
{
    size_t a, b;
    const char *x = mg_trace_attribute(f, "boot", &a), *y = mg_trace_attribute(g, "boot", &b);
    return !x || !y || (a == b && !memcmp(x, y, a));
}

/* Is it of rank 0's host, whose clock the others' were compared with? */
static bool is_reference(const struct mg_trace_file *f)
{
    return f->clock.n && !f->clock.uncertainty_ns[0];
}

/* Times of a host or boot of its own are moved by what was measured, else by what lies between the two monotonic
 * clocks as the real ones tell. */
static void align_clocks(struct mg_trace_reader *r)
{
    const struct mg_trace_file *base = NULL;
    for (uint32_t i = 0; i < r->files.n; i++) {
        struct mg_trace_file *f = &r->files.at[i]->file;
        if (f->bad_header) continue;
        read_clock(f);
        if (!base || (is_reference(f) && !is_reference(base))) base = f;
    }
    bool measured = base && is_reference(base);
    for (uint32_t i = 0; i < r->files.n; i++) {
        struct mg_trace_file *f = &r->files.at[i]->file;
        if (f->bad_header || same_boot(f, base)) continue;
        f->clock_source = measured && f->clock.n ? MG_TRACE_MESSAGES : MG_TRACE_TIME_OF_DAY;
        f->shift_ns = (int64_t)((f->start_real_ns - f->start_mono_ns) - (base->start_real_ns - base->start_mono_ns));
    }
}

enum mg_err mg_trace_reader_open(const char *path, struct mg_trace_reader **out, struct mg_diag *d)
{
    struct paths paths = {0};
    struct stat st;
    enum mg_err err = MG_ERR_OK;
    *out = NULL;
    if (stat(path, &st)) return mg_diag_err(d, MG_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        *mg_vec_push(&paths.at) = mg_xstrdup(path);
    } else {
        char folder[PATH_MAX];
        int n = snprintf(folder, sizeof folder, "%s/trace", path);
        list_files(n > 0 && n < (int)sizeof folder && is_folder(folder) ? folder : path, &paths);
    }
    struct mg_trace_reader *r = mg_xcalloc(1, sizeof *r);
    for (uint32_t i = 0; i < paths.at.n; i++) {
        struct mg_trace_loaded *f;
        enum mg_err e = mg_trace_load(paths.at.at[i], &f, d);
        if (e)
            err = e;
        else
            *mg_vec_push(&r->files) = f;
        free(paths.at.at[i]);
    }
    if (!paths.at.n)
        err = mg_diag_err(d, MG_ERR_INPUT, "there is no trace in %s: margay run -t trace or -t timeline writes one",
                          path);
    mg_vec_release(&paths.at);
    if (!r->files.n) {
        mg_trace_reader_free(r);
        return err;
    }
    align_clocks(r);
    *out = r;
    return MG_ERR_OK;
}

enum mg_err mg_trace_reader_follow(const char *path, struct mg_trace_reader **out, struct mg_diag *d)
{
    struct mg_trace_loaded *f;
    enum mg_err err = mg_trace_load_growing(path, &f, d);
    *out = NULL;
    if (err) return err;
    *out = mg_xcalloc(1, sizeof **out);
    *mg_vec_push(&(*out)->files) = f;
    return MG_ERR_OK;
}

void mg_trace_reader_free(struct mg_trace_reader *r)
{
    if (!r) return;
    for (uint32_t i = 0; i < r->files.n; i++) mg_trace_loaded_free(r->files.at[i]);
    mg_vec_release(&r->files);
    mg_trace_seens_release(&r->kinds);
    free(r);
}

uint32_t mg_trace_n_files(const struct mg_trace_reader *r)
{
    return r->files.n;
}

const struct mg_trace_file *mg_trace_file(const struct mg_trace_reader *r, uint32_t ix)
{
    return &r->files.at[ix]->file;
}

/* ---- verification -------------------------------------------------------------------------------------- */

static enum mg_err verify_file(struct mg_trace_reader *r, const struct mg_trace_loaded *f, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    uint64_t next = f->n_entries ? f->entries[0].at : f->index_at, number = 0, dropped = 0, skipped = 0, raw = 0;
    if (f->file.bad_header && f->file.bytes)
        err = mg_diag_err(d, MG_ERR_INPUT, "%s: the file's head is damaged", f->path);
    if (f->file.damaged_bytes)
        err = mg_diag_err(d, MG_ERR_INPUT, "%s: %llu bytes belong to no chunk: %s", f->path,
                          (unsigned long long)f->file.damaged_bytes, "torn or damaged");
    if (!f->file.closed) err = mg_diag_err(d, MG_ERR_INPUT, "%s: it was not closed: no index at its end", f->path);
    for (uint64_t i = 0; i < f->n_entries; i++) {
        const char *why;
        struct mg_trace_chunk *c = mg_trace_chunk_read(&r->kinds, f, i, MG_TRACE_STRICT, &why);
        if (!c) {
            err = mg_diag_err(d, MG_ERR_INPUT, "%s: chunk %llu at byte %llu: %s", f->path, (unsigned long long)i,
                              (unsigned long long)f->entries[i].at, why);
        } else {
            if (c->head.number != number || f->entries[i].at != next)
                err = mg_diag_err(
                    d, MG_ERR_INPUT, "%s: chunk %llu at byte %llu: its number is %llu, chunks are missing", f->path,
                    (unsigned long long)i, (unsigned long long)f->entries[i].at, (unsigned long long)c->head.number);
            number = c->head.number;
            dropped += c->head.dropped;
            skipped += c->head.skipped;
            raw += c->head.raw_bytes;
        }
        next = f->entries[i].at + mg_trace_stored(f->entries[i].packed_bytes);
        number++;
        mg_trace_chunk_free(c);
    }
    if (!err && f->file.closed && (raw != f->file.raw_bytes || dropped > f->file.dropped || skipped > f->file.skipped))
        err = mg_diag_err(d, MG_ERR_INPUT, "%s: the sums at its end are not those of its chunks", f->path);
    return err;
}

enum mg_err mg_trace_verify(struct mg_trace_reader *r, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    for (uint32_t i = 0; i < r->files.n; i++) {
        enum mg_err e = verify_file(r, r->files.at[i], d);
        if (e) err = e;
    }
    return err;
}
