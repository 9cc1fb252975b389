/* Dense numbers of streams, contexts, graphs and captures (streams.c). */
#ifndef MG_INJECT_STREAMS_H
#define MG_INJECT_STREAMS_H

#include <stdbool.h>

#include "abi/cu.h"

/* 0: the default stream. Of CU_PER_THREAD_STREAM: one number for each thread and current context. */
uint64_t mg_stream_number(cu_stream s);
uint64_t mg_ctx_number(void *ctx);
/* The same for what has a number by now; UINT32_MAX: it has none. */
uint32_t mg_stream_find(cu_stream s);
uint32_t mg_ctx_find(void *ctx);
uint64_t mg_graph_number(void *graph);   /* of a graph or its executable, from 1 */
uint64_t mg_capture_number(cu_stream s); /* of the capture that the stream is in, from 1 */

/* The stream that a call means that was given s. */
static inline cu_stream mg_stream_of(cu_stream s, bool per_thread)
{
    return s || !per_thread ? s : CU_PER_THREAD_STREAM;
}

#endif
