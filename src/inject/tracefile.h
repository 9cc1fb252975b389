/* The trace file of the process: what follows its calls writes to it, and the records of tools that have no reader of
 * their own (record/record.h) go there. */
#ifndef MG_INJECT_TRACEFILE_H
#define MG_INJECT_TRACEFILE_H

#include "record/record.h"
#include "trace/writer.h"

/* Opened by who asks first, with these options but for dir, rank and say. NULL: there is none, which was said. It stays
 * until the process ends. */
struct mg_trace_writer *mg_tracefile_writer(struct mg_trace_opts wants);
/* Segments of a channel of session use `use`: their records go to the file. By several threads; a worker by one at a
 * time. */
void mg_tracefile_stream(uint32_t use, const struct mg_stream *s, const uint64_t *segments, uint32_t bytes);
/* The bounded records of a launch that has ended (record.h): its frame, and as it was when it was read last, or NULL.
 */
struct mg_region;
void mg_tracefile_frame(uint32_t use, const char *kernel, uint64_t launch, const struct mg_region *g,
                        const uint64_t *words, const uint64_t *before);
void mg_tracefile_end(void);    /* behind the last record, before the store is closed: later ones are lost */
void mg_tracefile_leave(void);  /* the process may end: what was put is written, within a second */
void mg_tracefile_forked(void); /* in a child */

#endif
