/* Pictures that a report draws, one file each. */
#ifndef MG_CLI_PICTURES_H
#define MG_CLI_PICTURES_H

#include "base/diag.h"

struct mg_pictures {
    const char *dir;
    struct mg_diag *d;
    enum mg_err err; /* of the first file that could not be written */
};
/* Makes the folder. */
struct mg_pictures mg_pictures_begin(const char *dir, struct mg_diag *d);
/* A mg_report_chart_fn; user: struct mg_pictures. */
void mg_pictures_write(const char *name, const char *svg, const char *dot, void *user);

#endif
