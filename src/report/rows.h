/* Rows of a table that stand as one (rows.c). */
#ifndef MG_REPORT_ROWS_H
#define MG_REPORT_ROWS_H

#include "view/table.h"

/* What becomes of a column's numbers: they are told apart, added up, or the largest is told. */
enum mg_row_merge { MG_ROWS_APART, MG_ROWS_SUM, MG_ROWS_RANGE };
enum mg_row_merge mg_rows_merge_of(const struct mg_table_column *c);

struct mg_row_groups {
    const struct mg_one_table *table;
    uint32_t n;
    uint32_t *at, *rows; /* rows of group g: rows[at[g] .. at[g + 1]) */
};
/* In the order of the table's column, else of their first rows. The table outlives them. */
void mg_row_groups_init(struct mg_row_groups *g, const struct mg_one_table *t);
void mg_row_groups_release(struct mg_row_groups *g);
/* Of a range the largest; *least: the other end. */
struct mg_table_value mg_group_value(const struct mg_row_groups *g, uint32_t group, uint32_t column,
                                     struct mg_table_value *least);

#endif
