/* Any bytes as a compiled probe: it is refused with a message, or its clauses are text that the language takes or refuses. */
#include <stdlib.h>

#include "fuzz.h"
#include "tool/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_probe *p = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_probe_parse((const char *)data, bytes, "fuzz", &p, &d);
    if (!err != !!p || !err != !d.n_errors) abort();
    if (p) {
        struct mg_buf text = MG_BUF_INIT;
        struct mg_expr *e = NULL;
        mg_probe_text(p, "fuzz", &text);
        if (!mg_expr_parse(text.at, text.n, "fuzz", &e, &d)) err = mg_expr_join(e, p, "fuzz", &d);
        mg_expr_free(e);
        mg_probe_free(p);
        mg_buf_release(&text);
    }
    mg_diag_release(&d);
    return 0;
}
