/* Tables of tools (view/table.h) as text for people and as CSV. */
#include <stdlib.h>
#include <string.h>

#include "report/priv.h"
#include "report/rows.h"

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
    for (; bytes >= (u ? 1024 : 10240) && u + 1 < MG_COUNT_OF(units); u++) bytes /= 1024; /* few bytes all */
    mg_buf_printf(out, !u ? "%.0f %s" : bytes < 10 ? "%.2f %s" : "%.1f %s", bytes, units[u]);
}

/* Four digits; of a thousand and more all in front of the point, as counts are written. */
static void add_real(struct mg_buf *out, double v)
{
    if (v >= 999.95 && v < 1e18)
        mg_add_grouped(out, (uint64_t)(v + .5));
    else
        mg_buf_printf(out, "%.4g", v);
}

static void add_number(struct mg_buf *out, const struct mg_table_value *v)
{
    if (v->kind == MG_TV_U64)
        mg_add_grouped(out, v->u);
    else
        add_real(out, v->f);
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
        add_real(out, number);
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

static uint32_t sum_of(const struct mg_one_table *t, const uint32_t *widths)
{
    uint32_t sum = 0;
    for (uint32_t c = 0; c < t->columns.n; c++) sum += widths[c] ? widths[c] + GAP : 0;
    return sum;
}

/* Cuts columns of text, always the widest, until a row fits. The first says what a row is about and keeps more. */
static void fit(const struct mg_one_table *t, uint32_t *widths, uint32_t columns)
{
    for (;;) {
        uint32_t widest = UINT32_MAX;
        for (uint32_t c = 0; c < t->columns.n; c++) {
            if (t->columns.at[c].kind == MG_COL_TEXT && widths[c] > (c ? LEAST_TEXT : LEAST_FIRST) &&
                (widest == UINT32_MAX || widths[c] > widths[widest]))
                widest = c;
        }
        if (sum_of(t, widths) <= columns || widest == UINT32_MAX) return;
        widths[widest]--;
    }
}

/* How much of a heading stands in its next line: as many words as fit, one at least. */
static size_t next_words(const char *name, uint32_t width)
{
    size_t all = strlen(name), n = strcspn(name, " ");
    if (all <= width) return all;
    while (name[n] && n + 1 + strcspn(name + n + 1, " ") <= width) n += 1 + strcspn(name + n + 1, " ");
    return n;
}

/* Headings in as many lines as the widths ask for. */
static void add_heading(const struct mg_one_table *t, const uint32_t *widths, bool color, struct mg_buf *out)
{
    const char **rest = mg_xcalloc(t->columns.n + 1, sizeof *rest);
    struct mg_buf words = MG_BUF_INIT;
    bool more = true;
    for (uint32_t c = 0; c < t->columns.n; c++) rest[c] = t->columns.at[c].name;
    while (more) {
        more = false;
        if (color) mg_buf_adds(out, "\033[1m");
        for (uint32_t c = 0; c < t->columns.n; c++) {
            if (!widths[c]) continue;
            size_t n = next_words(rest[c], widths[c]);
            mg_buf_reset(&words);
            mg_buf_add(&words, rest[c], n);
            add_cell(out, words.at, widths[c], is_left(t->columns.at[c].kind), false);
            rest[c] += n + (rest[c][n] == ' ');
            more = more || *rest[c];
        }
        if (color) mg_buf_adds(out, "\033[0m");
        trim(out);
    }
    mg_buf_release(&words);
    free(rest);
}

static void format_cell(const struct mg_row_groups *g, const struct mg_report_opts *o, uint32_t group, uint32_t column,
                        struct mg_buf *cell)
{
    struct mg_table_value least, v = mg_group_value(g, group, column, &least);
    enum mg_column_kind kind = g->table->columns.at[column].kind;
    if (v.kind == MG_TV_TEXT && o->short_names && is_kernel_name(g->table, column)) {
        mg_buf_reset(cell);
        mg_add_short_name(cell, v.text);
        return;
    }
    if (v.kind == MG_TV_TEXT && v.brief) {
        mg_buf_reset(cell);
        mg_buf_adds(cell, v.brief);
        if (v.u) mg_buf_adds(cell, ", "), add_bytes(cell, (double)v.u);
        return;
    }
    mg_format_value(cell, &v, kind);
    if (least.u == v.u && !(least.f < v.f)) return;
    struct mg_buf from = MG_BUF_INIT;
    mg_format_value(&from, &least, kind);
    if (strcmp(from.at, cell->at)) {
        mg_buf_adds(&from, " .. ");
        mg_buf_adds(&from, cell->at);
        mg_buf_reset(cell);
        mg_buf_adds(cell, from.at);
    }
    mg_buf_release(&from);
}

/* A column in which no row has a value, or that names the only kernel, is left out. */
static bool is_shown(const struct mg_one_table *t, const struct mg_report_opts *o, uint32_t column)
{
    if (o->one_kernel && is_kernel_name(t, column)) return false;
    if (!t->n_rows) return true;
    for (uint32_t r = 0; r < t->n_rows; r++)
        if (mg_table_value(t, r, column).kind != MG_TV_NULL) return true;
    return false;
}

static uint32_t longest_word(const char *name)
{
    size_t longest = 1;
    for (const char *at = name; *at; at += strcspn(at, " "), at += *at == ' ')
        longest = MG_MAX(longest, strcspn(at, " "));
    return (uint32_t)longest;
}

/* Widths of the columns that are shown, of the first n groups; 0: left out. broken: headings may have several lines. */
static void measure(const struct mg_row_groups *g, const struct mg_report_opts *o, uint32_t n, bool broken,
                    uint32_t *widths)
{
    const struct mg_one_table *t = g->table;
    struct mg_buf cell = MG_BUF_INIT;
    for (uint32_t c = 0; c < t->columns.n; c++) {
        const char *name = t->columns.at[c].name;
        if (!is_shown(t, o, c)) continue;
        widths[c] = broken ? longest_word(name) : MG_MAX((uint32_t)strlen(name), 1u);
        for (uint32_t i = 0; i < n; i++) {
            format_cell(g, o, i, c, &cell);
            widths[c] = MG_MAX(widths[c], (uint32_t)cell.n);
        }
    }
    mg_buf_release(&cell);
}

/* Widths that have room in so many columns: names of kernels are cut, then headings broken, then details left out. */
static void find_room(const struct mg_row_groups *g, const struct mg_report_opts *o, uint32_t n, uint32_t columns,
                      uint32_t *widths)
{
    const struct mg_one_table *t = g->table;
    for (int broken = 0; broken < 2; broken++) {
        measure(g, o, n, broken, widths);
        fit(t, widths, columns);
        if (sum_of(t, widths) <= columns) return;
    }
    measure(g, o, n, true, widths);
    for (uint32_t c = 0; c < t->columns.n; c++)
        if (t->columns.at[c].detail) widths[c] = 0;
    fit(t, widths, columns);
}

static void tell_left_out(const struct mg_one_table *t, const struct mg_report_opts *o, const uint32_t *widths,
                          struct mg_buf *out)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < t->columns.n; c++)
        if (!widths[c] && t->columns.at[c].detail && is_shown(t, o, c))
            mg_buf_printf(out, "%s%s", n++ ? "; " : "  no room for: ", t->columns.at[c].name);
    if (n) mg_buf_adds(out, " (--csv, --json)\n");
}

static void add_lines(const struct mg_row_groups *g, const struct mg_report_opts *o, uint32_t n, struct mg_buf *out)
{
    const struct mg_one_table *t = g->table;
    uint32_t columns = o->columns >= 60 ? o->columns : 120, *widths = mg_xcalloc(t->columns.n + 1, sizeof *widths);
    struct mg_buf cell = MG_BUF_INIT;
    uint32_t times = 1, room = 0; /* of "  x 12" */
    for (uint32_t i = 0; i < n; i++) times = MG_MAX(times, g->at[i + 1] - g->at[i]);
    for (uint32_t v = times; times > 1 && v; v /= 10) room++;
    find_room(g, o, n, times > 1 ? columns - 4 - room : columns, widths);
    if (t->columns.n && t->n_rows) add_heading(t, widths, o->color, out);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rows = g->at[i + 1] - g->at[i];
        for (uint32_t c = 0; c < t->columns.n; c++) {
            if (!widths[c]) continue;
            format_cell(g, o, i, c, &cell);
            add_cell(out, cell.at, widths[c], is_left(t->columns.at[c].kind), is_kernel_name(t, c));
        }
        if (rows > 1) mg_buf_printf(out, "  x %u", rows);
        trim(out);
    }
    if (times > 1)
        mg_buf_adds(out, "  x N: N rows of this line as one: counts are their sum, of others the range is told\n");
    tell_left_out(t, o, widths, out);
    mg_buf_release(&cell);
    free(widths);
}

void mg_add_table(const struct mg_one_table *t, const struct mg_report_opts *o, uint32_t rows, struct mg_buf *out)
{
    struct mg_row_groups g;
    mg_row_groups_init(&g, t);
    uint32_t n = MG_MIN(rows ? rows : UINT32_MAX, g.n), end = g.at[n];
    if (t->title && *t->title) mg_buf_printf(out, o->color ? "\033[1m%s\033[0m\n" : "%s\n", t->title);
    add_lines(&g, o, n, out);
    if (t->n_rows > end) mg_buf_printf(out, "  and %u more rows (--top %u)\n", t->n_rows - end, t->n_rows);
    if (t->columns.n && !t->n_rows) mg_buf_printf(out, "  %s\n", t->empty);
    for (uint32_t i = 0; i < t->notes.n; i++) mg_buf_printf(out, "  %s\n", t->notes.at[i]);
    mg_row_groups_release(&g);
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
