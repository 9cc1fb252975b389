/* margay trace print: the records, and the accesses that packs of tool trace hold, one a line. */
#ifndef MG_CLI_TRACE_PRINT_H
#define MG_CLI_TRACE_PRINT_H

#include "trace/reader.h"

/* As cursors are asked for, with kind "trace.access" for what "trace.accesses" holds; `top`: so many at most. */
int mg_trace_print_all(struct mg_trace_reader *r, const struct mg_trace_query *q, bool json, uint64_t top);
/* Chunks that the cursor left out, on stderr: 0, or MG_EXIT_INPUT. */
int mg_trace_say_damage(const struct mg_trace_cursor *c);

#endif
