/* Errors with a place. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"

const char *mg_err_text(enum mg_err err)
{
    static const char *const text[] = {
#define ERR(name, text) text,
#include "base/errors.def"
#undef ERR
    };
    _Static_assert(MG_COUNT_OF(text) == MG_ERR_COUNT, "one text per error");
    return err < MG_ERR_COUNT ? text[err] : "unknown error";
}

void mg_diag_release(struct mg_diag *d)
{
    for (uint32_t i = 0; i < d->n_items; i++) {
        free(d->items[i].file);
        free(d->items[i].text);
        free(d->items[i].hint);
    }
    free(d->items);
    *d = (struct mg_diag)MG_DIAG_INIT;
}

static void add_message(struct mg_diag *d, enum mg_severity sev, const char *file, uint32_t line, uint32_t col,
                        const char *hint, const char *fmt, va_list ap)
{
    if (sev == MG_SEV_ERROR) d->n_errors++;
    if (sev == MG_SEV_WARNING) d->n_warnings++;
    if (d->n_items >= (d->max_items ? d->max_items : 100)) return;
    if (d->n_items == d->cap) {
        d->cap = d->cap ? d->cap * 2 : 4;
        d->items = mg_xrealloc(d->items, d->cap * sizeof *d->items);
    }
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_vprintf(&text, fmt, ap);
    d->items[d->n_items++] = (struct mg_diag_item){.severity = sev,
                                                   .line = line,
                                                   .col = col,
                                                   .file = file ? mg_xstrdup(file) : NULL,
                                                   .text = mg_buf_take(&text),
                                                   .hint = hint ? mg_xstrdup(hint) : NULL};
}

enum mg_err mg_diag_add(struct mg_diag *d, enum mg_err err, enum mg_severity sev, const char *file, uint32_t line,
                        uint32_t col, const char *hint, const char *fmt, ...)
{
    va_list ap;
    if (!d) return err;
    va_start(ap, fmt);
    add_message(d, sev, file, line, col, hint, fmt, ap);
    va_end(ap);
    return err;
}

enum mg_err mg_diag_err(struct mg_diag *d, enum mg_err err, const char *fmt, ...)
{
    va_list ap;
    if (!d) return err;
    va_start(ap, fmt);
    add_message(d, MG_SEV_ERROR, NULL, 0, 0, NULL, fmt, ap);
    va_end(ap);
    return err;
}

void mg_diag_print(const struct mg_diag *d, struct mg_buf *out)
{
    static const char *const word[] = {"note", "warning", "error"};
    for (uint32_t i = 0; i < d->n_items; i++) {
        const struct mg_diag_item *it = &d->items[i];
        if (it->file) mg_buf_printf(out, "%s:", it->file);
        if (it->line) mg_buf_printf(out, "%u:%u:", it->line, it->col);
        if (it->file || it->line) mg_buf_addc(out, ' ');
        mg_buf_printf(out, "%s: %s\n", word[it->severity], it->text);
        if (it->hint) mg_buf_printf(out, "  hint: %s\n", it->hint);
    }
    uint32_t hidden = d->n_errors + d->n_warnings > d->n_items ? d->n_errors + d->n_warnings - d->n_items : 0;
    if (hidden) mg_buf_printf(out, "%u more not shown\n", hidden);
}

const char *mg_diag_first(const struct mg_diag *d, enum mg_err err)
{
    for (uint32_t i = 0; d && i < d->n_items; i++)
        if (d->items[i].severity == MG_SEV_ERROR) return d->items[i].text;
    return mg_err_text(err);
}
