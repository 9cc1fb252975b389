/* One SQLite database being written, used by one thread only (the writer, or the launcher). */
#ifndef MG_STORE_DB_H
#define MG_STORE_DB_H

#include "base/diag.h"
#include "store/queue.h"

enum mg_stmt { /* ORDER STMT: texts in db.c */
               MG_STMT_process,
               MG_STMT_exit,
               MG_STMT_kernel,
               MG_STMT_kernel_found,
               MG_STMT_block,
               MG_STMT_module,
               MG_STMT_launch,
               MG_STMT_drop,
               MG_STMT_done,
               MG_STMT_unknown,
               MG_STMT_tool,
               MG_STMT_run,
               MG_STMT_use,
               MG_STMT_region,
               MG_STMT_site,
               MG_STMT_cells,
               MG_STMT_entries,
               MG_STMT_launch_cells,
               MG_STMT_not_written,
               MG_STMT_COUNT
};

/* Values that the statement takes. */
uint32_t mg_stmt_cells(uint32_t stmt);

struct sqlite3;
struct sqlite3_stmt;
#define MG_DB_MAX_FILES 8
struct mg_db {
    char path[4096];
    struct sqlite3 *sql;
    struct sqlite3_stmt *stmts[MG_STMT_COUNT];
    struct {
        int fd;
        uint64_t dev, ino;
    } files[MG_DB_MAX_FILES]; /* what SQLite holds open */
    uint32_t n_files;
    void *spare; /* room on the disk for the last words of a process */
};

/* Makes dir and its parents when absent. */
enum mg_err mg_db_make_dir(const char *dir, struct mg_diag *d);
/* Claims DIR/profile.db, else DIR/profile-<pid>.db: exclusive creation, never another's file. */
enum mg_err mg_db_claim(struct mg_db *db, const char *dir, uint32_t pid, struct mg_diag *d);
/* Opens (or makes) the database at path and its tables. */
enum mg_err mg_db_open(struct mg_db *db, const char *path, struct mg_diag *d);
/* Writes rows in one transaction. When the application closed SQLite's files behind its back, they are
 * opened again first; MG_ERR_STATE when that fails. */
enum mg_err mg_db_write(struct mg_db *db, const struct mg_row *rows, struct mg_diag *d);
/* Room for a small transaction on a disk that is full: gives up the spare, and empties the log where that is possible.
 */
void mg_db_make_room(struct mg_db *db);
/* In a forked child, which may outlive the writer and would hold its locks. */
void mg_db_forked(struct mg_db *db);
/* last: the database becomes one plain file when nobody else has it open. */
void mg_db_close(struct mg_db *db, bool last);

#endif
