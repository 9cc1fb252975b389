/* The trace file of the process: records of tools that have no reader of their own (record/record.h). */
#ifndef MG_INJECT_TRACED_H
#define MG_INJECT_TRACED_H

#include "record/record.h"

/* Segments of a channel of session use `use`: their records go to the file. By several threads; a worker by one at a time. */
void mg_traced_stream(uint32_t use, const struct mg_stream *s, const uint64_t *segments, uint32_t bytes);
void mg_traced_end(void);     /* behind the last segment, before the store is closed */
void mg_traced_leave(void);   /* the process may end: what was put is written, within a second */
void mg_traced_forked(void);  /* in a child */

#endif
