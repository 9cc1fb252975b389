/* Any bytes as a disassembler's text: what is found stays inside itself. */
#include <stdlib.h>

#include "fuzz.h"
#include "image/sass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_sass *s = mg_sass_parse((const char *)data, bytes);
    for (uint32_t f = 0; f < s->n_funcs; f++)
        for (uint32_t i = 0; i < s->funcs[f].n_insts; i++) {
            const struct mg_sass_inst *n = &s->funcs[f].insts[i];
            if (!n->op || !*n->op || (i && n->addr <= n[-1].addr)) abort();
            if (mg_sass_flow_of(n) == MG_SASS_BRANCH && !n->n_targets) abort();
            for (uint32_t t = 0; t < n->n_targets; t++)
                if (s->funcs[f].targets[n->targets + t] >= s->funcs[f].n_insts) abort();
        }
    mg_sass_free(s);
    return 0;
}
