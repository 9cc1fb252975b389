/* The table builder that a tool's `profile` fills. What cannot be shown (a value without a table) is
 * dropped; a row takes at most one value a column. */
#include "view/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *keep(struct mg_table *t, const char *s)
{
    return s ? mg_arena_strndup(&t->arena, s, strlen(s)) : NULL;
}

static struct mg_one_table *last(struct mg_table *t)
{
    return t->tables.n ? &t->tables.at[t->tables.n - 1] : NULL;
}

void mg_table_begin(struct mg_table *t, const char *name, const char *title)
{
    *mg_vec_push(&t->tables) = (struct mg_one_table){
        .name = keep(t, name), .title = keep(t, title ? title : name), .empty = keep(t, "nothing was counted")};
}

void mg_table_column(struct mg_table *t, const char *name, enum mg_column_kind kind, const char *unit)
{
    struct mg_one_table *o = last(t);
    if (o && !o->n_rows) *mg_vec_push(&o->columns) = (struct mg_table_column){keep(t, name), keep(t, unit), kind};
}

void mg_table_columns(struct mg_table *t, const struct mg_column *columns, uint32_t n)
{
    struct mg_one_table *o = last(t);
    for (uint32_t i = 0; i < n; i++) {
        mg_table_column(t, columns[i].name, columns[i].kind, columns[i].unit);
        if (o && o->columns.n) o->columns.at[o->columns.n - 1].detail = columns[i].detail;
    }
}

/* Fills the row up: every row but the last has a value for each column. */
static void fill_row(struct mg_one_table *o)
{
    while (o->values.n < o->n_rows * o->columns.n)
        *mg_vec_push(&o->values) = (struct mg_table_value){.kind = MG_TV_NULL};
}

void mg_table_row(struct mg_table *t)
{
    struct mg_one_table *o = last(t);
    if (!o) return;
    fill_row(o);
    o->n_rows++;
}

static void put(struct mg_table *t, struct mg_table_value v)
{
    struct mg_one_table *o = last(t);
    if (o && o->values.n < o->n_rows * o->columns.n) *mg_vec_push(&o->values) = v;
}

void mg_table_text(struct mg_table *t, const char *v)
{
    put(t, v ? (struct mg_table_value){.kind = MG_TV_TEXT, .text = keep(t, v)}
             : (struct mg_table_value){.kind = MG_TV_NULL});
}

void mg_table_buffer(struct mg_table *t, const struct mg_buffer_name *name)
{
    put(t, name ? (struct mg_table_value){.kind = MG_TV_TEXT,
                                          .text = keep(t, name->text),
                                          .brief = keep(t, name->brief),
                                          .u = name->bytes}
                : (struct mg_table_value){.kind = MG_TV_NULL});
}

void mg_table_u64(struct mg_table *t, uint64_t v)
{
    put(t, (struct mg_table_value){.kind = MG_TV_U64, .u = v});
}
void mg_table_null(struct mg_table *t)
{
    put(t, (struct mg_table_value){.kind = MG_TV_NULL});
}

void mg_table_f64(struct mg_table *t, double v)
{
    put(t, v == v ? (struct mg_table_value){.kind = MG_TV_F64, .f = v} : (struct mg_table_value){.kind = MG_TV_NULL});
}

void mg_table_place(struct mg_table *t, const struct mg_result_site *s)
{
    struct mg_table_value v = {.kind = MG_TV_PLACE, .ptx_line = s->ptx_line, .block = s->block};
    if (s->file)
        v.text = keep(t, s->file), v.u = s->line;
    else
        v.u = s->ptx_line;
    if (s->file || s->ptx_line)
        put(t, v);
    else
        mg_table_null(t);
}

struct mg_table_value mg_table_value(const struct mg_one_table *t, uint32_t place, uint32_t column)
{
    size_t at = (size_t)(t->order ? t->order[place] : place) * t->columns.n + column;
    return at < t->values.n ? t->values.at[at] : (struct mg_table_value){.kind = MG_TV_NULL};
}

/* ---- order -------------------------------------------------------------------------------------- */

struct sorted {
    struct mg_table_value v;
    uint32_t row;
};

static double number(const struct mg_table_value *v)
{
    return v->kind == MG_TV_F64 ? v->f : (double)v->u;
}

/* Numbers, largest first; then text in its order; what is null last. */
static int by_value(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int rank_x = x->v.kind == MG_TV_NULL ? 2 : x->v.kind == MG_TV_TEXT || x->v.kind == MG_TV_PLACE;
    int rank_y = y->v.kind == MG_TV_NULL ? 2 : y->v.kind == MG_TV_TEXT || y->v.kind == MG_TV_PLACE;
    if (rank_x != rank_y) return rank_x - rank_y;
    if (rank_x == 1) {
        int c = strcmp(x->v.text ? x->v.text : "", y->v.text ? y->v.text : "");
        if (!c && x->v.u != y->v.u) c = x->v.u < y->v.u ? -1 : 1;
        if (c) return c;
    } else if (rank_x == 0) {
        if (x->v.kind == MG_TV_U64 && y->v.kind == MG_TV_U64) {
            if (x->v.u != y->v.u) return x->v.u > y->v.u ? -1 : 1;
        } else if (number(&x->v) != number(&y->v)) {
            return number(&x->v) > number(&y->v) ? -1 : 1;
        }
    }
    return x->row < y->row ? -1 : 1;
}

void mg_table_sort(struct mg_table *t, uint32_t column)
{
    struct mg_one_table *o = last(t);
    if (!o || column >= o->columns.n || !o->n_rows) return;
    fill_row(o);
    struct sorted *s = mg_xcalloc(o->n_rows, sizeof *s);
    uint32_t *order = mg_arena_array(&t->arena, uint32_t, o->n_rows);
    o->order = NULL;
    for (uint32_t r = 0; r < o->n_rows; r++) s[r] = (struct sorted){mg_table_value(o, r, column), r};
    qsort(s, o->n_rows, sizeof *s, by_value);
    for (uint32_t r = 0; r < o->n_rows; r++) order[r] = s[r].row;
    o->order = order;
    o->by = column;
    free(s);
}

void mg_table_empty(struct mg_table *t, const char *text)
{
    last(t)->empty = keep(t, text);
}

void mg_table_note(struct mg_table *t, const char *fmt, ...)
{
    if (!t->tables.n) mg_table_begin(t, "", ""); /* a note alone */
    char text[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    *mg_vec_push(&last(t)->notes) = keep(t, text);
}

void mg_table_note_first(struct mg_table *t, const char *fmt, ...)
{
    if (!t->tables.n) mg_table_begin(t, "", "");
    va_list ap;
    char line[4000];
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    *mg_vec_push(&t->tables.at[0].notes) = keep(t, line);
}

void mg_table_chart(struct mg_table *t, const char *name, const char *title, const char *svg, size_t n)
{
    if (!t->tables.n) mg_table_begin(t, "", "");
    *mg_vec_push(&last(t)->charts) =
        (struct mg_table_chart){keep(t, name), keep(t, title), mg_arena_strndup(&t->arena, svg, n), n, NULL};
}

void mg_table_chart_dot(struct mg_table *t, const char *dot)
{
    struct mg_one_table *l = last(t);
    if (l->charts.n) l->charts.at[l->charts.n - 1].dot = keep(t, dot);
}

void mg_table_release(struct mg_table *t)
{
    for (uint32_t i = 0; i < t->tables.n; i++) {
        mg_vec_release(&t->tables.at[i].columns);
        mg_vec_release(&t->tables.at[i].values);
        mg_vec_release(&t->tables.at[i].notes);
        mg_vec_release(&t->tables.at[i].charts);
    }
    mg_vec_release(&t->tables);
    mg_arena_release(&t->arena);
    *t = (struct mg_table){0};
}
