/* Tables of a tool for the page. Kernels are ids where the text names one, places carry their PTX line
 * and block, so that the page can lead from a row to the kernel, the block and the line. */
#include <string.h>

#include "report/page.h"
#include "report/rows.h"

enum { ROWS_AT_MOST = 5000 };

static const char *kind_name(enum mg_column_kind kind)
{
    static const char *const names[] = {[MG_COL_TEXT] = "text",  [MG_COL_COUNT] = "count", [MG_COL_PERCENT] = "percent",
                                        [MG_COL_REAL] = "real",  [MG_COL_BYTES] = "bytes", [MG_COL_CYCLES] = "cycles",
                                        [MG_COL_TIME_NS] = "ns", [MG_COL_HEX] = "hex",     [MG_COL_PLACE] = "place"};
    return kind < MG_COUNT_OF(names) && names[kind] ? names[kind] : "text";
}

/* [file or null, line, PTX line, block] */
static void write_place(struct mg_json *j, const struct mg_table_value *v)
{
    mg_json_arr(j);
    mg_json_str(j, v->text);
    mg_json_u64(j, v->text ? v->u : 0);
    mg_json_u64(j, v->text ? v->ptx_line : v->u);
    mg_json_u64(j, v->block);
    mg_json_end(j, ']');
}

static void write_value(const struct mg_page *g, struct mg_json *j, const struct mg_table_value *v, bool names_kernel)
{
    uint32_t kernel = names_kernel && v->kind == MG_TV_TEXT ? mg_page_kernel(g, v->text) : UINT32_MAX;
    if (kernel != UINT32_MAX)
        mg_json_u64(j, kernel);
    else if (v->kind == MG_TV_TEXT)
        mg_json_str(j, v->text);
    else if (v->kind == MG_TV_U64)
        mg_json_u64(j, v->u);
    else if (v->kind == MG_TV_F64)
        mg_json_f64(j, v->f);
    else if (v->kind == MG_TV_PLACE)
        write_place(j, v);
    else
        mg_json_null(j);
}

/* What becomes of a column's numbers where rows stand as one. */
static const char *merge_name(const struct mg_table_column *c)
{
    static const char *const names[] = {[MG_ROWS_SUM] = "sum", [MG_ROWS_RANGE] = "range"};
    return names[mg_rows_merge_of(c)];
}

static void write_columns(struct mg_json *j, const struct mg_one_table *t)
{
    mg_json_key(j, "columns");
    mg_json_arr(j);
    for (uint32_t c = 0; c < t->columns.n; c++) {
        const struct mg_table_column *col = &t->columns.at[c];
        bool kernel = col->kind == MG_COL_TEXT && !strcmp(col->name, "kernel");
        mg_json_arr(j);
        mg_json_str(j, col->name);
        mg_json_str(j, kernel ? "kernel" : kind_name(col->kind));
        mg_json_str(j, col->unit);
        mg_json_str(j, merge_name(col));
        mg_json_end(j, ']');
    }
    mg_json_end(j, ']');
}

/* Those that stand as one follow one another; "together": [where they begin, how many]. */
static void write_rows(const struct mg_page *g, struct mg_json *j, const struct mg_row_groups *groups, uint32_t shown)
{
    const struct mg_one_table *t = groups->table;
    mg_json_key(j, "rows");
    mg_json_arr(j);
    for (uint32_t r = 0; r < shown; r++) {
        mg_json_arr(j);
        for (uint32_t c = 0; c < t->columns.n; c++) {
            struct mg_table_value v = mg_table_value(t, groups->rows[r], c);
            write_value(g, j, &v, t->columns.at[c].kind == MG_COL_TEXT && !strcmp(t->columns.at[c].name, "kernel"));
        }
        mg_json_end(j, ']');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "together");
    mg_json_arr(j);
    for (uint32_t i = 0; i < groups->n && groups->at[i] < shown; i++) {
        uint32_t n = MG_MIN(groups->at[i + 1], shown) - groups->at[i];
        if (n < 2) continue;
        mg_json_arr(j);
        mg_json_u64(j, groups->at[i]);
        mg_json_u64(j, n);
        mg_json_end(j, ']');
    }
    mg_json_end(j, ']');
}

static void write_table(const struct mg_page *g, struct mg_json *j, const struct mg_one_table *t)
{
    uint32_t shown = MG_MIN(t->n_rows, (uint32_t)ROWS_AT_MOST);
    struct mg_row_groups groups;
    mg_json_obj(j);
    mg_json_key_str(j, "name", t->name);
    mg_json_key_str(j, "title", t->title);
    mg_json_key_str(j, "empty", t->empty);
    write_columns(j, t);
    mg_row_groups_init(&groups, t);
    write_rows(g, j, &groups, t->columns.n ? shown : 0);
    mg_row_groups_release(&groups);
    mg_json_key_u64(j, "left_out", t->n_rows - shown);
    mg_json_key(j, "notes");
    mg_json_arr(j);
    for (uint32_t i = 0; i < t->notes.n; i++) mg_json_str(j, t->notes.at[i]);
    mg_json_end(j, ']');
    mg_json_key(j, "charts");
    mg_json_arr(j);
    for (uint32_t i = 0; i < t->charts.n; i++) {
        mg_json_obj(j);
        mg_json_key_str(j, "name", t->charts.at[i].name);
        mg_json_key_str(j, "title", t->charts.at[i].title);
        mg_json_key_str(j, "svg", t->charts.at[i].svg);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

void mg_page_tables(const struct mg_page *g, uint32_t use, struct mg_json *j)
{
    struct mg_table t = {0};
    struct mg_buf unused = MG_BUF_INIT;
    struct mg_json result;
    mg_json_init(&result, &unused, 0);
    mg_json_obj(&result);
    mg_tool_tell(g->p, use, &g->o, &t, &result);
    mg_json_obj(j);
    mg_json_key_str(j, "tool", g->p->uses[use].name);
    mg_json_key_str(j, "options", g->p->uses[use].args);
    mg_json_key(j, "tables");
    mg_json_arr(j);
    for (uint32_t i = 0; i < t.tables.n; i++) write_table(g, j, &t.tables.at[i]);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_table_release(&t);
    mg_buf_release(&unused);
}
