/* Memory of devices that calls allocate and free, on the time line. */
#ifndef MG_INJECT_MEMORY_CALLS_H
#define MG_INJECT_MEMORY_CALLS_H

#include "inject/calls.h"

struct mg_span_writer;
extern uint8_t mg_memory_calls[MG_FN_COUNT]; /* 0: the entry neither allocates nor frees */
void mg_memory_calls_find(void);             /* once */
/* Of a call that succeeded, with its arguments: what it was told to write is there. */
void mg_memory_call(struct mg_span_writer *w, const struct mg_call_frame *f, uint64_t end_ns);

#endif
