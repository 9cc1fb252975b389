/* SQLite, for the writer: claiming a file, statements, one transaction a batch.
 *
 * In somebody else's process two things need care. SQLite's file descriptors are moved out of the
 * way (an application sees the numbers it would see without us), and before every transaction they
 * are checked to be still ours: a program that closes every descriptor and opens its own must never
 * find our pages in its files. When they are not, the database is opened afresh. */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "store/locks.h"
#include "store/priv.h"

#define MOST_PATH 440 /* SQLite's 512, less the longest name that we give, and "-journal" */

static const char *const texts[] = {
    /* ORDER STMT: each '?' takes a value of its own */
    [MG_STMT_process] = "INSERT INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?,NULL,0,?,?,?)",
    [MG_STMT_exit] = "UPDATE process SET exit=?, closed=?",
    [MG_STMT_kernel] = "INSERT INTO kernel VALUES(?,?,?,?,?,?,?,?,?)",
    [MG_STMT_kernel_found] =
        "UPDATE kernel SET module=?2, regs_instrumented=?3, has_sites=?4, built_unix_ns=?5 WHERE id=?1",
    [MG_STMT_block] = "INSERT INTO block VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [MG_STMT_module] = "INSERT OR IGNORE INTO module VALUES(?,?,?)",
    [MG_STMT_launch] =
        "INSERT INTO launch(id,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,cluster_x,cluster_y,cluster_z,"
        "static_shared,dyn_shared,device,stream,ctx,graph,ran,reason,cooperative,tools,args)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [MG_STMT_drop] = "DELETE FROM launch WHERE id=?",
    [MG_STMT_done] =
        "UPDATE launch SET complete=?2, why=?3, start_ns=?4, time_ns=?5, replays=?6, threads=?7, warps=?8, schedule_dependent=?9 WHERE id=?1",
    [MG_STMT_unknown] = "INSERT INTO unknown VALUES(?,?,?)",
    [MG_STMT_tool] = "INSERT OR REPLACE INTO tool VALUES(?,?,?,?)",
    [MG_STMT_run] = "INSERT OR REPLACE INTO run VALUES(?,?,?,?)",
    [MG_STMT_use] = "INSERT INTO use VALUES(?,?,?,?)",
    [MG_STMT_region] = "INSERT INTO region VALUES(?,?,?,?,?,?,?)",
    [MG_STMT_site] = "INSERT INTO site VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [MG_STMT_cells] = "INSERT OR REPLACE INTO cells VALUES(?,?,?,?)",
    [MG_STMT_entries] = "INSERT OR REPLACE INTO entries VALUES(?,?,?,?,?,?)",
    [MG_STMT_launch_cells] = "INSERT INTO launch_cells VALUES(?,?,?)",
    [MG_STMT_not_written] = "UPDATE unknown SET n=? WHERE what='" MG_STORE_NOT_WRITTEN "'",
};
_Static_assert(MG_COUNT_OF(texts) == MG_STMT_COUNT, "ORDER STMT");

uint32_t mg_stmt_cells(uint32_t stmt)
{
    uint32_t n = 0;
    for (const char *c = texts[stmt]; *c; c++) n += *c == '?';
    return n;
}

/* ---- SQLite's open, ours: high descriptors, noted in the database being opened ---------------- */

static _Thread_local struct mg_db *opening;

static int open_high(const char *path, int flags, int mode)
{
    struct rlimit lim;
    struct stat st;
    int fd = open(path, flags | O_CLOEXEC, mode);
    if (fd < 0 || !opening) return fd;
    long from = !getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_cur < 1024 ? (long)lim.rlim_cur / 2 : 512;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, (int)from);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    struct mg_db *db = opening;
    if (db->n_files < MG_DB_MAX_FILES && !fstat(fd, &st)) {
        db->files[db->n_files].fd = fd;
        db->files[db->n_files].dev = st.st_dev;
        db->files[db->n_files++].ino = st.st_ino;
    }
    return fd;
}

static int close_noted(int fd)
{
    for (uint32_t i = 0; opening && i < opening->n_files; i++)
        if (opening->files[i].fd == fd) opening->files[i] = opening->files[--opening->n_files];
    return close(fd);
}

static void prepare_sqlite(void)
{
    mg_locks_prepare();
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    if (!vfs || vfs->iVersion < 3) return;
    vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_high);
    vfs->xSetSystemCall(vfs, "close", (sqlite3_syscall_ptr)close_noted);
}

static bool files_are_ours(const struct mg_db *db)
{
    for (uint32_t i = 0; i < db->n_files; i++) {
        struct stat st;
        if (fstat(db->files[i].fd, &st) || st.st_dev != db->files[i].dev || st.st_ino != db->files[i].ino) return false;
    }
    return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* What a directory that is there is unfit for: the root is nobody's profile, and SQLite takes no longer names. */
static enum mg_err check_dir(const char *dir, struct mg_diag *d)
{
    char full[PATH_MAX];
    if (!realpath(dir, full))
        return mg_diag_err(d, MG_ERR_IO, "cannot make the directory %s: %s", dir, strerror(errno));
    if (!strcmp(full, "/"))
        return mg_diag_err(d, MG_ERR_IO, "%s is the root directory: a profile needs a directory of its own", dir);
    if (strlen(full) > MOST_PATH)
        return mg_diag_err(
            d, MG_ERR_IO,
            "cannot make a profile in %s: its whole path has %zu bytes, more than the %d that a database can be in",
            dir, strlen(full), MOST_PATH);
    return MG_ERR_OK;
}

enum mg_err mg_db_make_dir(const char *dir, struct mg_diag *d)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s", dir);
    if (n <= 0 || (size_t)n >= sizeof path)
        return mg_diag_err(d, MG_ERR_IO, "cannot make the directory '%s': %s", dir,
                           n ? strerror(ENAMETOOLONG) : strerror(ENOENT));
    int parent = 0; /* why the last of the parents could not be made */
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(path, 0777) && errno != ENOENT) parent = errno;
        *at = '/';
    }
    struct stat st;
    if (!mkdir(path, 0777)) return check_dir(path, d);
    int e = errno == ENOENT && parent && parent != EEXIST ? parent : errno;
    if (!stat(path, &st)) {
        if (S_ISDIR(st.st_mode)) return check_dir(path, d);
        e = ENOTDIR;
    }
    return mg_diag_err(d, MG_ERR_IO, "cannot make the directory %s: %s", dir,
                       !lstat(path, &st) && S_ISLNK(st.st_mode) ? "it is a symbolic link that leads nowhere"
                                                                : strerror(e));
}

static enum mg_err sql_error(struct mg_db *db, int rc, const char *doing, struct mg_diag *d)
{
    int code = db->sql ? sqlite3_extended_errcode(db->sql) : SQLITE_NOMEM;
    int e = db->sql ? sqlite3_system_errno(db->sql) : 0;
    const char *text = (code & 255) == SQLITE_FULL ? "no space left"
                       : db->sql                   ? sqlite3_errmsg(db->sql)
                                                   : "out of memory";
    if (((code & 255) == SQLITE_IOERR || (code & 255) == SQLITE_CANTOPEN) && e) text = strerror(e);
    if ((code & 255) == SQLITE_CANTOPEN) { /* SQLite tries again for reading, which hides the cause */
        char dir[sizeof db->path];
        snprintf(dir, sizeof dir, "%s", db->path);
        char *slash = strrchr(dir, '/');
        if (slash) *slash = 0;
        if (slash && access(*dir ? dir : "/", W_OK)) text = strerror(errno);
    }
    if ((code & 255) == SQLITE_IOERR && mg_locks_missing()) text = "its file system has no file locks";
    if (code == SQLITE_OK && rc != SQLITE_OK) text = sqlite3_errstr(rc); /* it did not come to SQLite */
    return mg_diag_err(d, MG_ERR_IO, "cannot %s %s: %s", doing, db->path, text);
}

enum mg_err mg_db_open(struct mg_db *db, const char *path, struct mg_diag *d)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_sqlite);
    *db = (struct mg_db){0};
    snprintf(db->path, sizeof db->path, "%s", path);
    opening = db;
    bool scheme = !strncmp(path, "file:", 5); /* a directory of that name, no URI */
    char beside[sizeof db->path + 2];
    snprintf(beside, sizeof beside, "./%s", db->path);
    int rc = sqlite3_open_v2(scheme ? beside : path, &db->sql,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, "unix");
    if (rc == SQLITE_OK) {
        char pragmas[200];
        sqlite3_busy_timeout(db->sql, 5000);
        /* What a killed process wrote is the kernel's to keep; waiting for the disk, some 30 times a run,
         * would only help against a power failure, and cost more than many a program takes. Pages: 512 KB in the
         * application, not 2 MB; rows come in order of their keys. */
        rc = sqlite3_exec(
            db->sql,
            "PRAGMA synchronous=OFF; PRAGMA journal_mode=WAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-512", NULL,
            NULL, NULL);
        snprintf(pragmas, sizeof pragmas, "BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d;",
                 MG_STORE_APP_ID, MG_STORE_VERSION);
        if (rc == SQLITE_OK) rc = sqlite3_exec(db->sql, pragmas, NULL, NULL, NULL);
    }
    bool present = rc == SQLITE_OK && sqlite3_table_column_metadata(db->sql, NULL, "process", NULL, NULL, NULL, NULL,
                                                                    NULL, NULL) == SQLITE_OK;
    if (rc == SQLITE_OK && !present) rc = sqlite3_exec(db->sql, mg_store_schema, NULL, NULL, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_exec(db->sql, "COMMIT", NULL, NULL, NULL);
    for (int i = 0; rc == SQLITE_OK && i < MG_STMT_COUNT; i++)
        rc = sqlite3_prepare_v3(db->sql, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &db->stmts[i], NULL);
    if (rc != SQLITE_OK) {
        struct stat st;
        enum mg_err err = sql_error(db, rc, "create", d);
        mg_db_close(db, false);
        bool made = mg_locks_missing() && !lstat(path, &st) && S_ISREG(st.st_mode) && !st.st_size;
        if (made) unlink(path); /* an empty one says that a disk was full */
        return err;
    }
    opening = NULL;
    return MG_ERR_OK;
}

/* ---- room for the last words ------------------------------------------------------------------- */

#define SPARE_BYTES 65536u
enum { SPARE_MOST = 2 }; /* so often, where there is room */

/* Blocks of the disk that belong to us until somebody has to be told that it is full: a file without a name
 * that nothing but a mapping holds, so that no descriptor of the application's can be ours. */
static void *keep_spare(const char *path)
{
    char name[sizeof((struct mg_db *)0)->path + 8];
    snprintf(name, sizeof name, "%s-spare", path);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return NULL;
    unlink(name);
    void *p = MAP_FAILED;
    for (unsigned n = SPARE_MOST; n && p == MAP_FAILED;
         n--) /* the mapping is as long as the most; its end may have no blocks */
        if (!posix_fallocate(fd, 0, n * SPARE_BYTES))
            p = mmap(NULL, SPARE_MOST * SPARE_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) return NULL;
    madvise(p, SPARE_MOST * SPARE_BYTES, MADV_DONTFORK);
    return p;
}

static void give_spare(struct mg_db *db)
{
    if (db->spare) munmap(db->spare, SPARE_MOST * SPARE_BYTES);
    db->spare = NULL;
}

void mg_db_make_room(struct mg_db *db)
{
    give_spare(db);
    if (!db->sql || !files_are_ours(db)) return;
    opening = db;
    sqlite3_exec(db->sql, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    opening = NULL;
}

enum mg_err mg_db_claim(struct mg_db *db, const char *dir, uint32_t pid, struct mg_diag *d)
{
    char path[4096];
    enum mg_err err = mg_db_make_dir(dir, d);
    for (int attempt = 0; !err; attempt++) {
        int n = attempt == 0   ? snprintf(path, sizeof path, "%s/profile.db", dir)
                : attempt == 1 ? snprintf(path, sizeof path, "%s/profile-%u.db", dir, pid)
                               : snprintf(path, sizeof path, "%s/profile-%u-%d.db", dir, pid, attempt);
        if ((size_t)n + 8 >= sizeof path)
            return mg_diag_err(d, MG_ERR_IO, "cannot create %s/profile.db: %s", dir, strerror(ENAMETOOLONG));
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
            void *spare = keep_spare(path);
            err = mg_db_open(db, path, d);
            db->spare = spare;
            if (err) give_spare(db);
            return err;
        }
        if (errno != EEXIST || attempt == 10000)
            err = mg_diag_err(d, MG_ERR_IO, "cannot create %s: %s", path, strerror(errno));
    }
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

enum { LARGE = 1 << 20 /* bytes: speed matters more than size */ };

static int bind_compressed(sqlite3_stmt *st, int ix, const void *p, size_t bytes)
{
    size_t cap = ZSTD_compressBound(bytes);
    void *out = malloc(cap);
    size_t n = out ? ZSTD_compress(out, cap, p, bytes, bytes > LARGE ? 1 : 3) : 0;
    if (!out || ZSTD_isError(n)) {
        free(out);
        return SQLITE_NOMEM;
    }
    return sqlite3_bind_blob64(st, ix, out, n, free);
}

static int write_row(struct mg_db *db, const struct mg_row *r)
{
    sqlite3_stmt *st = db->stmts[r->stmt];
    int rc = SQLITE_OK;
    for (uint32_t i = 0; i < r->n && rc == SQLITE_OK; i++) {
        const struct mg_cell *c = &r->cells[i];
        const char *at = r->data + c->i;
        int ix = (int)i + 1;
        switch (c->kind) {
        case MG_CELL_null:
            rc = sqlite3_bind_null(st, ix);
            break;
        case MG_CELL_int:
            rc = sqlite3_bind_int64(st, ix, c->i);
            break;
        case MG_CELL_text:
            rc = sqlite3_bind_text64(st, ix, at, c->bytes, SQLITE_STATIC, SQLITE_UTF8);
            break;
        case MG_CELL_blob:
            rc = sqlite3_bind_blob64(st, ix, at, c->bytes, SQLITE_STATIC);
            break;
        case MG_CELL_zstd:
            rc = bind_compressed(st, ix, at, c->bytes);
            break;
        }
    }
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    int reset = sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return rc == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : rc;
}

static bool copy_file(const char *from, const char *to)
{
    char block[16384];
    ssize_t n = -1, put = 0;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    while (in >= 0 && out >= 0 && put >= 0 && (n = read(in, block, sizeof block)) > 0)
        for (ssize_t at = 0; at < n; at += put)
            if ((put = write(out, block + at, (size_t)(n - at))) < 0) break;
    int e = errno;
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    errno = e;
    return !n && put >= 0;
}

/* Until the process ends no other file gets this one's inode number: a mapping holds it, which no
 * program closes. The file's descriptor; -1: it cannot be held. */
static int keep_inode(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0) != MAP_FAILED) return fd;
    close(fd);
    return -1;
}

/* The descriptors' numbers are free or the program's own by now. SQLite would go on using them for
 * this inode whatever we open, so the database gets another: a copy takes its name. The log beside
 * it fits the copy as it fitted the original. The old connection is abandoned as it stands; the copy
 * made the next time must not get its inode's number. */
static enum mg_err reopen(struct mg_db *db, struct mg_diag *d)
{
    char path[sizeof db->path], beside[sizeof db->path + 8];
    snprintf(path, sizeof path, "%s", db->path);
    snprintf(beside, sizeof beside, "%s-shm", path);
    unlink(beside);
    snprintf(beside, sizeof beside, "%s-moved", path);
    int old = keep_inode(path);
    bool moved = old >= 0 && copy_file(path, beside) && !rename(beside, path);
    int e = errno;
    if (moved) (void)!ftruncate(old, 0);
    if (old >= 0) close(old);
    if (!moved) {
        unlink(beside);
        return mg_diag_err(d, MG_ERR_STATE,
                           "the program closed the file descriptors of %s, which cannot be opened again: %s", path,
                           strerror(e));
    }
    void *spare = db->spare;
    enum mg_err err = mg_db_open(db, path, d);
    db->spare = spare;
    return err;
}

static enum mg_err write_once(struct mg_db *db, const struct mg_row *rows, struct mg_diag *d)
{
    opening = db;
    int rc = sqlite3_exec(db->sql, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (; rows && rc == SQLITE_OK; rows = rows->next) rc = write_row(db, rows);
    if (rc == SQLITE_OK) rc = sqlite3_exec(db->sql, "COMMIT", NULL, NULL, NULL);
    enum mg_err err = MG_ERR_OK;
    if (rc != SQLITE_OK) {
        err = sql_error(db, rc, "write", d);
        sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    }
    opening = NULL;
    return err;
}

enum mg_err mg_db_write(struct mg_db *db, const struct mg_row *rows, struct mg_diag *d)
{
    struct mg_diag first = MG_DIAG_INIT;
    enum mg_err err = files_are_ours(db) ? write_once(db, rows, &first) : MG_ERR_STATE;
    if (err && !files_are_ours(db)) { /* now, or while it was written */
        err = reopen(db, d);
        if (!err) err = write_once(db, rows, d);
    } else if (err) {
        (void)mg_diag_err(d, err, "%s", mg_diag_first(&first, err));
    }
    mg_diag_release(&first);
    return err;
}

void mg_db_forked(struct mg_db *db)
{
    if (!db->sql || !files_are_ours(db)) return;
    for (uint32_t i = 0; i < db->n_files; i++) close(db->files[i].fd);
}

void mg_db_close(struct mg_db *db, bool last)
{
    give_spare(db);
    if (!db->sql || !files_are_ours(db)) return; /* closing would close the program's files */
    opening = db;
    for (int i = 0; i < MG_STMT_COUNT; i++) sqlite3_finalize(db->stmts[i]);
    if (last) {
        sqlite3_busy_timeout(db->sql, 0);
        sqlite3_exec(db->sql, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    }
    sqlite3_close(db->sql);
    db->sql = NULL;
    opening = NULL;
}
