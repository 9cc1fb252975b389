/* margay trace convert: the accesses of a trace in the formats of other programs, and back. */
#ifndef MG_CLI_TRACE_CONVERT_H
#define MG_CLI_TRACE_CONVERT_H

#include "trace/reader.h"

struct mg_convert_wish {
    const char *from, *to, *out;
    struct mg_trace_range launches;
    uint64_t pid;                /* 0: the only process */
    uint64_t l1_bytes, l2_bytes; /* of the model that simulators of DRAM get the misses of */
};
int mg_trace_convert(const char *path, const struct mg_convert_wish *w);

#endif
