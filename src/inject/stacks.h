/* The host's call stacks of launches and waits (timeline, stacks=on). */
#ifndef MG_INJECT_STACKS_H
#define MG_INJECT_STACKS_H

#include "base/compiler.h"

struct mg_span_writer;
bool mg_stacks_begin(void); /* finds the unwinder; false: there is none, and a line said so */
/* Of this thread, from the call on that returns to `caller`; its number in the file, 0: it is not there. */
uint64_t mg_stacks_take(struct mg_span_writer *w, const void *caller);

#endif
