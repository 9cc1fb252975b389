/* Tables of tools (view/table.h) as text for people and as CSV. */
#include <stdlib.h>
#include <string.h>

#include "report/priv.h"

#define GAP         2u
#define LEAST_TEXT  12u /* a column of text is not cut below that */
#define LEAST_FIRST 24u /* nor the first */

static bool is_left(enum mg_column_kind kind)
{
    return kind == MG_COL_TEXT || kind == MG_COL_PLACE;
}

static void add_bytes(struct mg_buf *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    unsigned u = 0;
    for (; bytes >= 10240 && u + 1 < MG_COUNT_OF(units); u++) bytes /= 1024;
    mg_buf_printf(out, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

static void add_number(struct mg_buf *out, const struct mg_table_value *v)
{
    if (v->kind == MG_TV_U64)
        mg_add_grouped(out, v->u);
    else
        mg_buf_printf(out, "%.4g", v->f);
}

void mg_format_value(struct mg_buf *out, const struct mg_table_value *v, enum mg_column_kind kind)
{
    double number = v->kind == MG_TV_U64 ? (double)v->u : v->f;
    mg_buf_reset(out);
    switch (v->kind) {
    case MG_TV_NULL:
        mg_buf_adds(out, "-");
        return;
    case MG_TV_TEXT:
        mg_buf_adds(out, v->text);
        return;
    case MG_TV_PLACE:
        if (v->text) mg_buf_adds(out, strrchr(v->text, '/') ? strrchr(v->text, '/') + 1 : v->text);
        if (v->text && v->u)
            mg_buf_printf(out, ":%llu", (unsigned long long)v->u);
        else if (v->text)
            mg_buf_printf(out, ", ptx:%u", v->ptx_line); /* the compiler made it: no line */
        else
            mg_buf_printf(out, "ptx:%llu", (unsigned long long)v->u);
        return;
    default:
        break;
    }
    switch (kind) {
    case MG_COL_PERCENT:
        mg_buf_printf(out, "%.1f %%", number);
        break;
    case MG_COL_BYTES:
        add_bytes(out, number);
        break;
    case MG_COL_TIME_NS:
        mg_add_time(out, (uint64_t)number);
        break;
    case MG_COL_HEX:
        mg_buf_printf(out, "0x%llx", (unsigned long long)v->u);
        break;
    case MG_COL_REAL:
        mg_buf_printf(out, "%.4g", number);
        break;
    default:
        add_number(out, v);
        break;
    }
}

static void trim(struct mg_buf *out)
{
    while (out->n && out->at[out->n - 1] == ' ') out->at[--out->n] = 0;
    mg_buf_addc(out, '\n');
}

static bool is_kernel_name(const struct mg_one_table *t, uint32_t column)
{
    return t->columns.at[column].kind == MG_COL_TEXT && !strcmp(t->columns.at[column].name, "kernel");
}

static void add_cell(struct mg_buf *out, const char *text, uint32_t width, bool left, bool name)
{
    struct mg_buf shorter = MG_BUF_INIT;
    for (uint32_t i = 0; i < GAP; i++) mg_buf_addc(out, ' ');
    if (name && strlen(text) > width) { /* by family, not by its first letters */
        mg_add_name(&shorter, text, width);
        text = shorter.at;
    }
    if (left)
        mg_add_left(out, text, width);
    else
        mg_add_right(out, text, width);
    mg_buf_release(&shorter);
}

/* Cuts columns of text, always the widest, until a row fits. The first says what a row is about and keeps more. */
static void fit(const struct mg_one_table *t, uint32_t *widths, uint32_t columns)
{
    for (;;) {
        uint32_t sum = 0, widest = UINT32_MAX;
        for (uint32_t c = 0; c < t->columns.n; c++) {
            sum += widths[c] + GAP;
            if (t->columns.at[c].kind == MG_COL_TEXT && widths[c] > (c ? LEAST_TEXT : LEAST_FIRST) &&
                (widest == UINT32_MAX || widths[c] > widths[widest]))
                widest = c;
        }
        if (sum <= columns || widest == UINT32_MAX) return;
        widths[widest]--;
    }
}

static void add_heading(const struct mg_one_table *t, const uint32_t *widths, bool color, struct mg_buf *out)
{
    if (color) mg_buf_adds(out, "\033[1m");
    for (uint32_t c = 0; c < t->columns.n; c++)
        add_cell(out, t->columns.at[c].name, widths[c], is_left(t->columns.at[c].kind), false);
    if (color) mg_buf_adds(out, "\033[0m");
    trim(out);
}

void mg_add_table(const struct mg_one_table *t, const struct mg_report_opts *o, uint32_t rows, struct mg_buf *out)
{
    uint32_t shown = rows ? MG_MIN(rows, t->n_rows) : t->n_rows;
    uint32_t *widths = mg_xcalloc(t->columns.n + 1, sizeof *widths);
    struct mg_buf cell = MG_BUF_INIT;
    if (t->title && *t->title) mg_buf_printf(out, o->color ? "\033[1m%s\033[0m\n" : "%s\n", t->title);
    for (uint32_t c = 0; c < t->columns.n; c++) {
        widths[c] = (uint32_t)strlen(t->columns.at[c].name);
        for (uint32_t r = 0; r < shown; r++) {
            struct mg_table_value v = mg_table_value(t, r, c);
            mg_format_value(&cell, &v, t->columns.at[c].kind);
            widths[c] = MG_MAX(widths[c], (uint32_t)cell.n);
        }
    }
    fit(t, widths, o->columns >= 60 ? o->columns : 120);
    if (t->columns.n && t->n_rows) add_heading(t, widths, o->color, out);
    for (uint32_t r = 0; r < shown; r++) {
        for (uint32_t c = 0; c < t->columns.n; c++) {
            struct mg_table_value v = mg_table_value(t, r, c);
            mg_format_value(&cell, &v, t->columns.at[c].kind);
            add_cell(out, cell.at, widths[c], is_left(t->columns.at[c].kind), is_kernel_name(t, c));
        }
        trim(out);
    }
    if (t->n_rows > shown) mg_buf_printf(out, "  and %u more rows (--top %u)\n", t->n_rows - shown, t->n_rows);
    if (t->columns.n && !t->n_rows) mg_buf_printf(out, "  %s\n", t->empty);
    for (uint32_t i = 0; i < t->notes.n; i++) mg_buf_printf(out, "  %s\n", t->notes.at[i]);
    mg_buf_release(&cell);
    free(widths);
}

/* ---- CSV: RFC 4180 --------------------------------------------------------------------------------- */

void mg_add_csv_name(struct mg_buf *out, const char *name)
{
    for (; *name; name++) {
        bool word = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') || *name == '_';
        if (word)
            mg_buf_addc(out, *name);
        else if (*name >= 'A' && *name <= 'Z')
            mg_buf_addc(out, (char)(*name - 'A' + 'a'));
        else if (!strcmp(name, "+-"))
            mg_buf_adds(out, "bound"), name++;
        else
            mg_buf_addc(out, '_');
    }
}

/* The id of the only kernel of that name; nothing where there are several. */
static void add_csv_id(struct mg_buf *out, const struct mg_recording *p, const char *name)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; p && name && i < p->n_kernels; i++) {
        if (strcmp(p->kernels[i].demangled, name)) continue;
        if (found != UINT32_MAX) return;
        found = i;
    }
    if (found != UINT32_MAX) mg_buf_addu(out, p->kernels[found].id);
}

void mg_add_table_csv(const struct mg_recording *p, const struct mg_one_table *t, struct mg_buf *out)
{
    for (uint32_t c = 0; c < t->columns.n; c++) {
        if (c) mg_buf_addc(out, ',');
        mg_add_csv_name(out, t->columns.at[c].name);
        if (is_kernel_name(t, c)) mg_buf_adds(out, ",kernel_name");
    }
    mg_buf_adds(out, "\r\n");
    for (uint32_t r = 0; r < t->n_rows; r++) {
        for (uint32_t c = 0; c < t->columns.n; c++) {
            struct mg_table_value v = mg_table_value(t, r, c);
            struct mg_buf place = MG_BUF_INIT;
            if (c) mg_buf_addc(out, ',');
            if (is_kernel_name(t, c)) {
                add_csv_id(out, p, v.kind == MG_TV_TEXT ? v.text : NULL);
                mg_buf_addc(out, ',');
            }
            if (v.kind == MG_TV_TEXT)
                mg_add_csv_text(out, v.text);
            else if (v.kind == MG_TV_U64 && t->columns.at[c].kind == MG_COL_HEX)
                mg_buf_printf(out, "0x%llx", (unsigned long long)v.u);
            else if (v.kind == MG_TV_U64)
                mg_buf_addu(out, v.u);
            else if (v.kind == MG_TV_F64)
                mg_buf_printf(out, "%.17g", v.f);
            else if (v.kind == MG_TV_PLACE)
                mg_buf_printf(&place, "%s:%llu", v.text && v.u ? v.text : "ptx",
                              (unsigned long long)(v.text && !v.u ? v.ptx_line : v.u)); /* no line: the compiler's */
            if (place.n) mg_add_csv_text(out, place.at);
            mg_buf_release(&place);
        }
        mg_buf_adds(out, "\r\n");
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------ */

static void write_value(struct mg_json *j, const struct mg_table_value *v)
{
    if (v->kind == MG_TV_U64)
        mg_json_u64(j, v->u);
    else if (v->kind == MG_TV_F64)
        mg_json_f64(j, v->f);
    else if (v->kind == MG_TV_TEXT)
        mg_json_str(j, v->text);
    else
        mg_json_null(j);
}

void mg_write_table(struct mg_json *j, const struct mg_one_table *t)
{
    mg_json_key(j, t->name);
    mg_json_arr(j);
    for (uint32_t r = 0; r < t->n_rows; r++) {
        mg_json_obj(j);
        for (uint32_t c = 0; c < t->columns.n; c++) {
            struct mg_table_value v = mg_table_value(t, r, c);
            struct mg_buf name = MG_BUF_INIT;
            mg_add_csv_name(&name, t->columns.at[c].name);
            if (t->columns.at[c].kind == MG_COL_TIME_NS) mg_buf_adds(&name, "_ns");
            mg_json_key(j, name.at);
            write_value(j, &v);
            mg_buf_release(&name);
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}
