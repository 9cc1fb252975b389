/* Finding and opening the databases of a profile directory without changing it: live, left by a killed
 * process (SQLite recovers its log without our help), or where nothing can be written. */
#include "store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/vec.h"
#include "store/locks.h"

/* ---- opening without changing anything ------------------------------------------------------------ */

static bool open_uri(sqlite3 **sql, const char *path, const char *query)
{
    struct mg_buf uri = MG_BUF_INIT;
    mg_buf_adds(&uri,
                *path == '/' ? "file://" : "file:"); /* an empty host, or //dir/x would be file x of the host dir */
    for (const char *c = path; *c; c++)
        if (strchr("%?#", *c))
            mg_buf_printf(&uri, "%%%02x", *c);
        else
            mg_buf_addc(&uri, *c);
    mg_buf_adds(&uri, query);
    mg_locks_prepare();
    int rc = sqlite3_open_v2(uri.at, sql, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    mg_buf_release(&uri);
    sqlite3_busy_timeout(*sql, 5000);
    if (rc == SQLITE_OK) rc = sqlite3_exec(*sql, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    return rc == SQLITE_OK || (rc & 255) == SQLITE_CORRUPT || (rc & 255) == SQLITE_NOTADB;
}

static bool copy_file(const char *from, const char *to)
{
    char *data;
    size_t bytes;
    if (mg_io_read(from, &data, &bytes, NULL)) return false;
    bool ok = !mg_io_write(to, data, bytes, NULL);
    free(data);
    return ok;
}

/* A log that cannot be read where it lies (read-only directory): database and log are copied. */
static bool open_copy(sqlite3 **sql, const char *path, char tmp[MG_FILE_TMP])
{
    char from[4200], to[128];
    snprintf(tmp, MG_FILE_TMP, "/tmp/margay-read-XXXXXX");
    if (!mkdtemp(tmp)) {
        tmp[0] = 0;
        return false;
    }
    snprintf(from, sizeof from, "%s-wal", path);
    snprintf(to, sizeof to, "%s/p.db-wal", tmp);
    copy_file(from, to);
    snprintf(to, sizeof to, "%s/p.db", tmp);
    return copy_file(path, to) && open_uri(sql, to, "");
}

void mg_dbfile_done(const char *tmp)
{
    char path[128];
    static const char *const names[] = {"p.db", "p.db-wal", "p.db-shm"};
    for (size_t i = 0; *tmp && i < MG_COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "%s/%s", tmp, names[i]);
        unlink(path);
    }
    if (*tmp) rmdir(tmp);
}

enum mg_err mg_dbfile_open(sqlite3 **sql, const char *path, char tmp[MG_FILE_TMP], struct mg_diag *d)
{
    char wal[4200];
    struct stat st;
    FILE *f = fopen(path, "rb");
    *tmp = 0;
    *sql = NULL;
    if (!f) return mg_diag_err(d, MG_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    fclose(f);
    if (open_uri(sql, path, "")) return MG_ERR_OK;
    snprintf(wal, sizeof wal, "%s-wal", path);
    bool has_log = !stat(wal, &st) && st.st_size;
    sqlite3_close(*sql);
    *sql = NULL;
    if (has_log ? open_copy(sql, path, tmp) : open_uri(sql, path, "?immutable=1")) return MG_ERR_OK;
    enum mg_err err =
        mg_diag_err(d, MG_ERR_IO, "cannot read %s: %s", path, *sql ? sqlite3_errmsg(*sql) : "no copy could be made");
    sqlite3_close(*sql);
    *sql = NULL;
    mg_dbfile_done(tmp);
    return err;
}

/* ---- the directory ------------------------------------------------------------------------------- */

static bool is_database_name(const char *name)
{
    return !strcmp(name, "profile.db") || !fnmatch("profile-*.db", name, 0) || !fnmatch("run-*.db", name, 0);
}

static int by_order(const void *a, const void *b)
{
    const struct mg_dbfile *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->first != y->first) return x->first ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Rank and start of a process, for the order of reading; what cannot be read is reported later. */
static void peek(struct mg_dbfile *f)
{
    sqlite3 *sql;
    sqlite3_stmt *st = NULL;
    char tmp[MG_FILE_TMP];
    if (mg_dbfile_open(&sql, f->path, tmp, NULL)) return;
    if (sqlite3_prepare_v2(sql, "SELECT rank, start_unix_ns FROM process", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW) {
        f->rank = sqlite3_column_int(st, 0);
        f->start = (uint64_t)sqlite3_column_int64(st, 1);
    }
    sqlite3_finalize(st);
    sqlite3_close(sql);
    mg_dbfile_done(tmp);
}

enum mg_err mg_dbfiles_list(const char *dir, struct mg_arena *arena, struct mg_dbfile **out, uint32_t *n,
                            struct mg_diag *diag)
{
    MG_VEC(struct mg_dbfile) v = {0};
    DIR *d = opendir(dir);
    if (!d) return mg_diag_err(diag, MG_ERR_INPUT, "cannot read the profile %s: %s", dir, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        if (!is_database_name(e->d_name)) continue;
        struct mg_dbfile f = {.path = mg_arena_printf(arena, "%s/%s", dir, e->d_name),
                              .rank = -1,
                              .first = !strcmp(e->d_name, "profile.db")};
        *mg_vec_push(&v) = f;
    }
    closedir(d);
    if (!v.n) return mg_diag_err(diag, MG_ERR_INPUT, "%s is no profile directory: there is no profile.db in it", dir);
    for (uint32_t i = 0; v.n > 1 && i < v.n; i++) peek(&v.at[i]);
    qsort(v.at, v.n, sizeof *v.at, by_order);
    *out = v.at;
    *n = v.n;
    return MG_ERR_OK;
}
