/* Source lines with what they cost, as text (annotate.c). */
#ifndef MG_REPORT_ANNOTATE_H
#define MG_REPORT_ANNOTATE_H

#include "report/report.h"

struct mg_annotate_opts {
    const char *what;            /* a file of the profile, else a pattern for functions; NULL: everything */
    const char *file, *function; /* found out from `what` */
    const char *kernel_glob;     /* NULL: all */
    bool ptx, sass, color;
};
/* false: nothing to show: no such file or function, or no line information. */
bool mg_report_annotate(const struct mg_recording *p, const struct mg_annotate_opts *o, struct mg_buf *out);

#endif
