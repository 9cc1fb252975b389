/* The databases of a profile directory, for readers. */
#ifndef MG_STORE_FILES_H
#define MG_STORE_FILES_H

#include "base/arena.h"
#include "base/diag.h"

struct mg_dbfile {
    const char *path; /* owner: the arena given */
    int32_t rank;     /* of its process, -1 none */
    uint64_t start;   /* unix ns */
    bool first;       /* profile.db */
};
/* In the order in which they are joined: by rank, profile.db first, by start. A directory without
 * any is an error. *out is malloc'd. */
enum mg_err mg_dbfiles_list(const char *dir, struct mg_arena *arena, struct mg_dbfile **out, uint32_t *n,
                            struct mg_diag *d) MG_MUST_CHECK;

struct sqlite3;
#define MG_FILE_TMP 64
/* Opens for reading. tmp: where a copy was made, to be given to mg_dbfile_done after sqlite3_close. */
enum mg_err mg_dbfile_open(struct sqlite3 **sql, const char *path, char tmp[MG_FILE_TMP],
                           struct mg_diag *d) MG_MUST_CHECK;
void mg_dbfile_done(const char *tmp);

#endif
