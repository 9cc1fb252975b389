/* Tables that tools fill (view/result.h) as they lie in memory: report/ makes text and CSV of them.
 * Not for tools. */
#ifndef MG_VIEW_TABLE_H
#define MG_VIEW_TABLE_H

#include "base/vec.h"
#include "view/result.h"

struct mg_table_value { /* text: owner is the arena */
    enum { MG_TV_NULL, MG_TV_TEXT, MG_TV_U64, MG_TV_F64, MG_TV_PLACE } kind;
    const char *text;  /* TEXT; PLACE: the file, NULL: a line of the PTX */
    const char *brief; /* TEXT of a buffer: the same in few words, with its bytes in u; else NULL */
    uint64_t u;        /* U64; PLACE: the line */
    double f;
    uint32_t ptx_line, block; /* PLACE: where the site stands in the PTX; ptx_line 0: the kernel as a whole */
};
struct mg_table_column {
    const char *name, *unit;
    enum mg_column_kind kind;
    bool detail;
};
struct mg_table_chart {
    const char *name, *title, *svg;
    size_t n;
    const char *dot; /* for Graphviz, NULL: no graph */
};
struct mg_one_table {
    const char *name, *title;
    const char *empty; /* what to say of a table without rows */
    MG_VEC(struct mg_table_column) columns;
    MG_VEC(struct mg_table_value) values; /* row by row; the last row may be short */
    uint32_t n_rows;
    uint32_t *order; /* row at each place, NULL: as they came */
    uint32_t by;     /* column that the order is of */
    MG_VEC(const char *) notes;
    MG_VEC(struct mg_table_chart) charts;
};
struct mg_table { /* all tables of one tool */
    struct mg_arena arena;
    MG_VEC(struct mg_one_table) tables;
};
void mg_table_release(struct mg_table *t);
/* A missing value at the end of a row reads as null. */
struct mg_table_value mg_table_value(const struct mg_one_table *t, uint32_t place, uint32_t column);

#endif
