/* Dense numbers of streams, contexts, graphs and captures (streams.c). */
#ifndef MG_INJECT_STREAMS_H
#define MG_INJECT_STREAMS_H

#include "abi/cu.h"

uint64_t mg_stream_number(cu_stream s); /* 0 = default stream */
uint64_t mg_ctx_number(void *ctx);
uint64_t mg_graph_number(void *graph);   /* of a graph or its executable, from 1 */
uint64_t mg_capture_number(cu_stream s); /* of the capture that the stream is in, from 1 */

#endif
