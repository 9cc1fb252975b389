/* The file that a writer makes: head, chunks, index, end. Used by the writer thread alone. */
#ifndef MG_TRACE_OUT_H
#define MG_TRACE_OUT_H

#include <sys/types.h>

#include "trace/format.h"
#include "trace/writer.h"

struct mg_trace_out {
    int fd;
    dev_t dev;
    ino_t ino;
    char *path;
    uint64_t at; /* where the next chunk goes */
    uint64_t chunks, records, raw_bytes, dropped, skipped;
    struct mg_trace_entry *entries;
    uint64_t n_entries, cap_entries;
    bool no_index; /* too many chunks: readers make it themselves */
    char why[256]; /* it cannot be written any more; "": it can */
};
/* Makes DIR/trace/<pid>.mgt, or <pid>-2.mgt where that is there, and writes the head. */
enum mg_err mg_trace_out_open(struct mg_trace_out *o, const struct mg_trace_opts *opts, struct mg_diag *d);
/* Fills in number and checksums. False: `why` says why, and the file ends with the chunk before. */
bool mg_trace_out_chunk(struct mg_trace_out *o, struct mg_trace_chunk_head *h, const void *stored);
void mg_trace_out_end(struct mg_trace_out *o, uint64_t lost);
void mg_trace_out_release(struct mg_trace_out *o);

#endif
