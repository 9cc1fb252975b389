/* Errors with a place: every interface that reads input returns enum mg_err and appends to a
 * struct mg_diag (NULL allowed). Libraries never print; cli/ prints what was collected. */
#ifndef MG_BASE_DIAG_H
#define MG_BASE_DIAG_H

#include "base/compiler.h"

enum mg_err {
#define ERR(name, text) MG_ERR_##name,
#include "base/errors.def"
#undef ERR
    MG_ERR_COUNT
};

enum mg_severity { MG_SEV_NOTE, MG_SEV_WARNING, MG_SEV_ERROR };

struct mg_diag_item {
    enum mg_severity severity;
    uint32_t line, col; /* 1-based, 0 = none */
    char *file;         /* may be NULL; owner: the diag */
    char *text;         /* one line, no newline */
    char *hint;         /* may be NULL */
};

struct mg_diag {
    struct mg_diag_item *items;
    uint32_t n_items, cap;
    uint32_t n_errors, n_warnings;
    uint32_t max_items; /* 0 = 100; further ones are counted, not kept */
};

#define MG_DIAG_INIT                                                                                                   \
    {                                                                                                                  \
        0                                                                                                              \
    }
const char *mg_err_text(enum mg_err err);
void mg_diag_release(struct mg_diag *d);
/* Appends and returns err, so that `return mg_diag_add(...)` reads well. d may be NULL. */
enum mg_err mg_diag_add(struct mg_diag *d, enum mg_err err, enum mg_severity sev, const char *file, uint32_t line,
                        uint32_t col, const char *hint, const char *fmt, ...) MG_PRINTF(8, 9);
/* Place-less error. */
enum mg_err mg_diag_err(struct mg_diag *d, enum mg_err err, const char *fmt, ...) MG_PRINTF(3, 4);
struct mg_buf;
/* "file:line:col: error: text\n  hint: ...\n" for every item. */
void mg_diag_print(const struct mg_diag *d, struct mg_buf *out);
/* Text of the first error, or of err when there is none; owner: d. */
const char *mg_diag_first(const struct mg_diag *d, enum mg_err err);

#endif
