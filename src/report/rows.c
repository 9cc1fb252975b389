/* Rows of a tool's table that a reader sees as one, in the text and on the page: instructions of one line that differ
 * in numbers alone, as those of an unrolled loop do, and rows that are alike in all. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "report/rows.h"

enum mg_row_merge mg_rows_merge_of(const struct mg_table_column *c)
{
    /* Numbers that say which one it is. */
    static const char *const names[] = {"device", "context", "stream", "block",     "launch", "static", "instructions",
                                        "cta",    "sm",      "warp",   "registers", "bits",   "blocks"};
    if (c->kind == MG_COL_TEXT || c->kind == MG_COL_PLACE || c->kind == MG_COL_HEX) return MG_ROWS_APART;
    for (size_t i = 0; i < MG_COUNT_OF(names); i++)
        if (!strcmp(c->name, names[i])) return MG_ROWS_APART;
    bool sums =
        c->kind == MG_COL_COUNT || c->kind == MG_COL_BYTES || c->kind == MG_COL_TIME_NS || !strcmp(c->name, "cycles");
    return sums ? MG_ROWS_SUM : MG_ROWS_RANGE;
}

/* Is the row of an instruction whose line is known? Others are alike in all, or stand alone. */
static bool is_of_line(const struct mg_one_table *t, uint32_t row)
{
    bool instruction = false, line = false;
    for (uint32_t c = 0; c < t->columns.n; c++) {
        struct mg_table_value v = mg_table_value(t, row, c);
        instruction = instruction || !strcmp(t->columns.at[c].name, "instruction");
        line = line || (v.kind == MG_TV_PLACE && v.text && v.u);
    }
    return instruction && line;
}

static bool same_value(const struct mg_table_value *x, const struct mg_table_value *y)
{
    if (x->kind != y->kind || x->u != y->u || x->f != y->f) return false;
    if (x->kind == MG_TV_PLACE && !x->u && x->ptx_line != y->ptx_line) return false; /* no line of the source */
    return x->text == y->text || (x->text && y->text && !strcmp(x->text, y->text));
}

static bool are_one(const struct mg_one_table *t, uint32_t a, uint32_t b)
{
    bool of_line = is_of_line(t, a);
    for (uint32_t c = 0; c < t->columns.n; c++) {
        struct mg_table_value x = mg_table_value(t, a, c), y = mg_table_value(t, b, c);
        if (!(of_line && mg_rows_merge_of(&t->columns.at[c])) && !same_value(&x, &y)) return false;
    }
    return true;
}

/* Of what are_one() compares in any case. */
static uint64_t key_of_row(const struct mg_one_table *t, uint32_t row)
{
    uint64_t key = 1;
    for (uint32_t c = 0; c < t->columns.n; c++) {
        struct mg_table_value v = mg_table_value(t, row, c);
        if (mg_rows_merge_of(&t->columns.at[c])) continue;
        key = mg_hash64(&v.u, sizeof v.u, key);
        if (v.text) key = mg_hash64(v.text, strlen(v.text), key);
    }
    return key;
}

static bool is_less(const struct mg_table_value *x, const struct mg_table_value *y)
{
    return x->u < y->u || x->f < y->f;
}

struct mg_table_value mg_group_value(const struct mg_row_groups *g, uint32_t group, uint32_t column,
                                     struct mg_table_value *least)
{
    const struct mg_one_table *t = g->table;
    enum mg_row_merge how = mg_rows_merge_of(&t->columns.at[column]);
    struct mg_table_value all = mg_table_value(t, g->rows[g->at[group]], column);
    *least = all;
    for (uint32_t i = g->at[group] + 1; how && i < g->at[group + 1]; i++) {
        struct mg_table_value v = mg_table_value(t, g->rows[i], column);
        if (v.kind == MG_TV_NULL) continue;
        if (all.kind == MG_TV_NULL)
            all = *least = v;
        else if (how == MG_ROWS_SUM)
            all.u += v.u, all.f += v.f;
        else if (is_less(&all, &v))
            all = v;
        else if (is_less(&v, least))
            *least = v;
    }
    if (how == MG_ROWS_SUM) *least = all;
    return all;
}

static double number_of(const struct mg_row_groups *g, uint32_t group, uint32_t column)
{
    struct mg_table_value least, v = mg_group_value(g, group, column, &least);
    return v.kind == MG_TV_U64 ? (double)v.u : v.kind == MG_TV_F64 ? v.f : -1;
}

struct place {
    double by;
    uint32_t group;
};

static int by_number(const void *x, const void *y)
{
    const struct place *a = x, *b = y;
    if (a->by != b->by) return a->by > b->by ? -1 : 1;
    return (a->group > b->group) - (a->group < b->group);
}

/* In order of the table's column: a sum may be more than a row before it. */
static void sort_groups(struct mg_row_groups *g)
{
    const struct mg_one_table *t = g->table;
    if (!t->order || !mg_rows_merge_of(&t->columns.at[t->by])) return;
    struct place *p = mg_xcalloc(g->n + 1, sizeof *p);
    struct mg_row_groups old = *g;
    g->at = mg_xcalloc(g->n + 1, sizeof *g->at);
    g->rows = mg_xcalloc(t->n_rows + 1, sizeof *g->rows);
    for (uint32_t i = 0; i < g->n; i++) p[i] = (struct place){number_of(&old, i, t->by), i};
    if (g->n) qsort(p, g->n, sizeof *p, by_number);
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t from = old.at[p[i].group], n = old.at[p[i].group + 1] - from;
        memcpy(g->rows + g->at[i], old.rows + from, n * sizeof *g->rows);
        g->at[i + 1] = g->at[i] + n;
    }
    mg_row_groups_release(&old);
    free(p);
}

/* Group of each row, in the order of their first rows. */
static uint32_t number_groups(const struct mg_one_table *t, uint32_t *of_row)
{
    struct mg_map last = MG_MAP_INIT;                             /* key -> first row of the last group, + 1 */
    uint32_t *before = mg_xcalloc(t->n_rows + 1, sizeof *before); /* another group of that key: first row, + 1 */
    uint32_t n = 0;
    for (uint32_t r = 0; r < t->n_rows; r++) {
        uint64_t key = key_of_row(t, r), found = 0;
        mg_map_get(&last, key, &found);
        uint32_t first = (uint32_t)found;
        for (int tries = 0; first && !are_one(t, first - 1, r); tries++) first = tries < 16 ? before[first - 1] : 0;
        of_row[r] = first ? of_row[first - 1] : n++;
        if (first) continue;
        before[r] = (uint32_t)found;
        mg_map_set(&last, key, r + 1);
    }
    mg_map_release(&last);
    free(before);
    return n;
}

void mg_row_groups_init(struct mg_row_groups *g, const struct mg_one_table *t)
{
    uint32_t *of_row = mg_xcalloc(t->n_rows + 1, sizeof *of_row);
    *g = (struct mg_row_groups){.table = t};
    g->n = number_groups(t, of_row);
    g->at = mg_xcalloc(g->n + 2, sizeof *g->at);
    g->rows = mg_xcalloc(t->n_rows + 1, sizeof *g->rows);
    for (uint32_t r = 0; r < t->n_rows; r++) g->at[of_row[r] + 2]++;
    for (uint32_t i = 0; i < g->n; i++) g->at[i + 2] += g->at[i + 1];
    for (uint32_t r = 0; r < t->n_rows; r++) g->rows[g->at[of_row[r] + 1]++] = r;
    free(of_row);
    sort_groups(g);
}

void mg_row_groups_release(struct mg_row_groups *g)
{
    free(g->at);
    free(g->rows);
    *g = (struct mg_row_groups){0};
}
