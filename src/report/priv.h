/* Inside report/. */
#ifndef MG_REPORT_PRIV_H
#define MG_REPORT_PRIV_H

#include "base/json.h"
#include "report/report.h"

/* "tools": {...}: every tool that the run named or that left a result, sorted by name. */
void mg_report_tools_json(struct mg_json *j, const struct mg_profile *p, const struct mg_report_opts *o);
/* True when text is exactly one JSON value. */
bool mg_json_valid(const char *text);

/* "1,234,567" */
void mg_add_grouped(struct mg_buf *out, uint64_t v);
/* The coverage line and the reasons, in words. */
void mg_add_coverage(const struct mg_profile *p, struct mg_buf *out, uint32_t max_rows);

#endif
