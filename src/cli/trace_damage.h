/* What is damaged in trace files, said on stderr: for every command that reads them. */
#ifndef MG_CLI_TRACE_DAMAGE_H
#define MG_CLI_TRACE_DAMAGE_H

#include "store/store.h"
#include "trace/reader.h"

/* A line for each file whose head, or bytes that belong to no chunk, are lost; not for the end of one that still grows.
 * 0, or MG_EXIT_INPUT. */
int mg_trace_say_lost(const struct mg_trace_reader *r);
/* The same of a profile directory; one without traces has no damage. A torn end that a killed process left is said, and
 * no error. */
int mg_trace_say_lost_of(const char *dir, const struct mg_recording *p);

#endif
