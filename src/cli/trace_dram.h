/* margay trace convert for simulators of DRAM: the misses of the cache model (study/cache.h), one a line. */
#ifndef MG_CLI_TRACE_DRAM_H
#define MG_CLI_TRACE_DRAM_H

#include "cli/trace_convert.h"

struct mg_dram_format {
    const char *name, *what;
};
const struct mg_dram_format *mg_dram_format_at(uint32_t ix); /* NULL past the last */
const struct mg_dram_format *mg_dram_format_find(const char *name);
/* Exit status; what is wrong was said. */
int mg_trace_convert_dram(struct mg_trace_reader *r, uint32_t file, const struct mg_dram_format *f,
                          const struct mg_convert_wish *w, struct mg_diag *d);

#endif
