/* Any bytes as a one-liner: it parses or is refused with a message and a place. */
#include <stdlib.h>

#include "fuzz.h"
#include "probe/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_expr *e = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_expr_parse((const char *)data, bytes, "-e", &e, &d);
    if (!err != !!e || !err != !d.n_errors) abort();
    for (uint32_t i = 0; i < d.n_items; i++)
        if (!d.items[i].line || !d.items[i].col) abort();
    for (uint32_t i = 0; e && i < e->n_maps; i++)
        if (mg_expr_map_cells(&e->maps[i]) > MG_EXPR_BUCKETS || e->maps[i].n_keys > MG_EXPR_KEYS) abort();
    mg_expr_free(e);
    mg_diag_release(&d);
    return 0;
}
