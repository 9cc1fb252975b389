/* Several programs on one page: what the papers behind Margay show of theirs, as tables and pictures of ours.
 *
 *   profiles of a program ─► gather.c, cost.c ─► its figures ─► tables.c ─► text, CSV, JSON, SVG (show.c)
 *
 * docs/howto-overview.md says which profiles a table needs and how each figure is computed. Nothing is measured here,
 * and a program without the profile that a table needs has no row there: the table's notes count such programs. */
#ifndef MG_REPORT_OVERVIEW_OVERVIEW_H
#define MG_REPORT_OVERVIEW_OVERVIEW_H

#include "report/report.h"

struct mg_overview;
struct mg_overview *mg_overview_new(void);
void mg_overview_free(struct mg_overview *o);
/* A program and its profiles: each is one run, under other tools or none. domain NULL: not told. */
enum mg_err mg_overview_add(struct mg_overview *o, const char *name, const char *domain, const char *const *dirs,
                            uint32_t n, struct mg_diag *d) MG_MUST_CHECK;

/* table: only the one of that name, NULL: all. A table to which no profile gives a row is one line of text, and empty
 * in JSON. */
bool mg_overview_has_table(const struct mg_overview *o, const char *table);
void mg_overview_text(const struct mg_overview *o, const char *table, uint32_t columns, bool color, struct mg_buf *out);
void mg_overview_csv(const struct mg_overview *o, const char *table, struct mg_buf *out);
void mg_overview_json(const struct mg_overview *o, const char *table, struct mg_buf *out);
void mg_overview_charts(const struct mg_overview *o, const char *table, mg_report_chart_fn fn, void *user);

#endif
