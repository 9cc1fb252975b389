/* Joining profiles: every process keeps its own database, copied under a new name. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/db.h"
#include "store/files.h"
#include "store/priv.h"

static enum mg_err set_rank(sqlite3 *sql, uint32_t rank)
{
    char text[120];
    snprintf(text, sizeof text, "PRAGMA journal_mode=DELETE; UPDATE process SET rank=%u WHERE rank<0", rank);
    return sqlite3_exec(sql, text, NULL, NULL, NULL) == SQLITE_OK ? MG_ERR_OK : MG_ERR_IO;
}

static enum mg_err copy_database(const char *from, const char *to, bool ranked, uint32_t rank, struct mg_diag *d)
{
    sqlite3 *in = NULL, *out = NULL;
    char tmp[MG_FILE_TMP];
    enum mg_err err = mg_dbfile_open(&in, from, tmp, d);
    if (err) return err;
    char *beside = !strncmp(to, "file:", 5) ? sqlite3_mprintf("./%s", to) : NULL; /* a directory of that name, no URI */
    int rc = sqlite3_open_v2(beside ? beside : to, &out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    sqlite3_backup *copy = rc == SQLITE_OK ? sqlite3_backup_init(out, "main", in, "main") : NULL;
    if (copy) {
        sqlite3_backup_step(copy, -1);
        rc = sqlite3_backup_finish(copy);
    }
    if (!copy || rc != SQLITE_OK)
        err = mg_diag_err(d, MG_ERR_IO, "cannot copy %s to %s: %s", from, to, sqlite3_errmsg(out));
    else if (ranked && set_rank(out, rank))
        err = mg_diag_err(d, MG_ERR_INPUT, "%s is damaged: %s", from, sqlite3_errmsg(out));
    sqlite3_free(beside);
    sqlite3_close(out);
    sqlite3_close(in);
    mg_dbfile_done(tmp);
    return err;
}

/* A target that holds a profile already would mix runs: refused. */
static enum mg_err check_target(const char *to, struct mg_diag *d)
{
    struct mg_arena arena = MG_ARENA_INIT;
    struct mg_dbfile *files = NULL;
    uint32_t n = 0;
    enum mg_err err = mg_db_make_dir(to, d);
    if (!err && !mg_dbfiles_list(to, &arena, &files, &n, NULL))
        err = mg_diag_err(d, MG_ERR_INPUT, "%s holds a profile already", to);
    free(files);
    mg_arena_release(&arena);
    return err;
}

enum mg_err mg_recording_merge(const char *to, const char *const *dirs, uint32_t n, struct mg_diag *d)
{
    struct mg_arena arena = MG_ARENA_INIT;
    struct mg_recording *check;
    uint32_t processes = 0, runs = 0;
    enum mg_err err = MG_ERR_OK;
    for (uint32_t i = 0; i < n && !err; i++) { /* all are readable before anything is written */
        err = mg_recording_open(dirs[i], &check, d);
        if (!err && check->n_damaged) err = mg_diag_err(d, MG_ERR_INPUT, "%s", check->damaged[0]);
        mg_recording_free(check);
    }
    if (!err) err = check_target(to, d);
    for (uint32_t i = 0; i < n && !err; i++) {
        struct mg_dbfile *files = NULL;
        uint32_t n_files = 0;
        err = mg_dbfiles_list(dirs[i], &arena, &files, &n_files, d);
        for (uint32_t k = 0; k < n_files && !err; k++) {
            const char *name = strrchr(files[k].path, '/') + 1;
            char *path = !strncmp(name, "run-", 4) ? mg_arena_printf(&arena, "%s/run-%05u.db", to, runs++)
                         : processes++             ? mg_arena_printf(&arena, "%s/profile-%05u.db", to, processes - 1)
                                                   : mg_arena_printf(&arena, "%s/profile.db", to);
            err = copy_database(files[k].path, path, n > 1 && strncmp(name, "run-", 4), i, d);
        }
        free(files);
    }
    mg_arena_release(&arena);
    return err;
}
