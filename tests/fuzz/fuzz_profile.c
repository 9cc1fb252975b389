/* Fuzz target: the bytes are a database in a profile directory; whatever they hold, reading it gives
 * an error or a profile, and every report of it comes out, the JSON as valid JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json_read.h"
#include "fuzz.h"
#include "scratch.h"
#include "report/annotate.h"
#include "report/folded.h"
#include "report/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_recording *p = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    struct mg_report_opts o = {.size = sizeof o, .per_launch = true};
    char db[96];
    if (!*path) prepare_folder();
    snprintf(db, sizeof db, "%s/profile.db", path);
    if (mg_io_write(db, data, bytes, NULL)) abort();
    if (!mg_recording_open(path, &p, &d)) {
        mg_report_json(p, &o, &out);
        if (!mg_json_valid(out.at)) abort();
        mg_report_text(p, &o, &out);
        mg_report_summary(p, &out);
        mg_report_csv(p, &o, &out);
        mg_report_diff(p, p, &o, &out);
        mg_report_html(p, &o, &out);
        mg_report_annotate(p, &(struct mg_annotate_opts){.ptx = true}, &out);
        mg_report_folded(p, &o, &out);
    } else if (!d.n_errors || !strstr(mg_diag_first(&d, MG_ERR_IO), path)) {
        abort(); /* an error must name the path */
    }
    mg_buf_release(&out);
    mg_recording_free(p);
    mg_diag_release(&d);
    return 0;
}
