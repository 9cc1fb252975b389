/* Folded stacks for flame graphs (folded.c). */
#ifndef MG_REPORT_FOLDED_H
#define MG_REPORT_FOLDED_H

#include "report/report.h"

void mg_report_folded(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);

#endif
