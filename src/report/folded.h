/* Folded stacks for flame graphs (folded.c). */
#ifndef MG_REPORT_FOLDED_H
#define MG_REPORT_FOLDED_H

#include "report/report.h"

void mg_report_folded(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
/* The host's stacks of a time line: what launched, what waited, what had the device work. */
enum mg_folded_host { MG_FOLDED_LAUNCHES, MG_FOLDED_WAIT, MG_FOLDED_DEVICE, MG_FOLDED_HOST_COUNT };
extern const char *const mg_folded_host_names[]; /* ends with NULL */
enum mg_err mg_report_folded_host(const char *dir, enum mg_folded_host what, struct mg_buf *out,
                                  struct mg_diag *d) MG_MUST_CHECK;

#endif
