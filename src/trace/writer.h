/* Writing a trace: one writer a process, any number of threads.
 *
 *   static const struct mg_trace_field fields[] = {
 *       {"begin", MG_TRACE_time, MG_TRACE_KEY_TIME}, {"end", MG_TRACE_time, MG_TRACE_KEY_TIME}, {"call",
 * MG_TRACE_name}}; static const struct mg_trace_kind call_kind = MG_TRACE_KIND("call", fields); struct call { uint64_t
 * begin, end; uint32_t call; } __attribute__((packed));
 *
 *   struct mg_trace_opts o = {.size = sizeof o, .dir = dir, .rank = -1};
 *   struct mg_trace_writer *w;
 *   if (mg_trace_open(&o, &w, &diag)) ...;
 *   uint32_t kind = mg_trace_kind_add(w, &call_kind);
 *   uint32_t launch = mg_trace_name(w, "cuLaunchKernel");
 *   mg_trace_put(mg_trace_thread(w), kind, &(struct call){t0, t1, launch}, sizeof(struct call), NULL, 0);
 *   mg_trace_close(w);
 *
 * A record costs its thread a copy into the thread's own buffer; full buffers go to the writer thread, which also
 * fetches what lies in the others every flush_ms. Memory is bounded: what a thread does when all buffers are full is
 * the policy. Errors of the file stop the trace with one line (say) and never the caller: what is on disk stays, and
 * what comes later is counted as lost. Nothing here aborts when memory is out. */
#ifndef MG_TRACE_WRITER_H
#define MG_TRACE_WRITER_H

#include "base/diag.h"
#include "trace/trace.h"

struct mg_trace_writer;
struct mg_trace_stream; /* records in their order: of one thread, of one device queue */

enum mg_trace_policy {
    MG_TRACE_BLOCK,  /* the thread waits for a buffer */
    MG_TRACE_DROP,   /* its record is dropped and counted */
    MG_TRACE_SAMPLE, /* of kinds flagged so, each every-th record of a stream is written; then as DROP */
};

struct mg_trace_opts {
    size_t size;     /* sizeof this struct */
    const char *dir; /* profile directory; the file is made in DIR/trace */
    int32_t rank;    /* of the process in a parallel program, -1 none */
    const char *const *attributes;
    uint32_t n_attributes; /* "key=value": what the process is; host and boot are added */
    enum mg_trace_policy policy;
    uint32_t every;      /* of MG_TRACE_SAMPLE; 0: 16 */
    size_t memory_bytes; /* of buffers; 0: 16 MiB */
    uint32_t flush_ms;   /* 0: 250 */
    void (*say)(void *user, const char *line);
    void *say_user; /* called on the writer thread; NULL: nobody is told */
};
/* Makes the file and starts the writer thread. */
enum mg_err mg_trace_open(const struct mg_trace_opts *o, struct mg_trace_writer **out, struct mg_diag *d) MG_MUST_CHECK;
/* Writes what is left, the index and the end. Streams stay valid: what their threads put later is counted as lost. */
void mg_trace_end(struct mg_trace_writer *w);
/* The same, and frees everything: no stream may be in use. NULL is allowed. */
void mg_trace_close(struct mg_trace_writer *w);
/* Blocks until what was put before the call is on its way to disk, for timeout_ms at most. False: it took longer. */
bool mg_trace_flush(struct mg_trace_writer *w, uint32_t timeout_ms);
/* The same without waiting: asks, and later: is it done? */
uint64_t mg_trace_flush_ask(struct mg_trace_writer *w);
bool mg_trace_flush_done(struct mg_trace_writer *w, uint64_t asked);
/* In a forked child: the writer belongs to the parent; its calls do nothing from here on. */
void mg_trace_forked(struct mg_trace_writer *w);
const char *mg_trace_path(const struct mg_trace_writer *w);

/* Number of a kind, for mg_trace_put; the same for an equal description. 0: the description is wrong, or too many. k
 * and what it points to are copied. */
uint32_t mg_trace_kind_add(struct mg_trace_writer *w, const struct mg_trace_kind *k);
/* Number of a text; equal texts have one number. Takes a lock: keep the number. 0: the empty text, or no memory left.
 */
uint32_t mg_trace_name(struct mg_trace_writer *w, const char *text);

/* The calling thread's stream, made at its first call; it ends with the thread. NULL: no memory, or a forked child. */
struct mg_trace_stream *mg_trace_thread(struct mg_trace_writer *w);
/* A stream of another kind: used by one thread at a time. */
struct mg_trace_stream *mg_trace_stream_open(struct mg_trace_writer *w, const char *name);
void mg_trace_stream_close(struct mg_trace_stream *s);
/* In place of the writer's policy. */
void mg_trace_stream_policy(struct mg_trace_stream *s, enum mg_trace_policy policy);

/* Adds a record: the fields of fixed size as they lie in a struct without gaps, then the last field. s NULL: false.
 * False: it is not in the trace (and counted, if s is not NULL). */
bool mg_trace_put(struct mg_trace_stream *s, uint32_t kind, const void *fixed, uint32_t fixed_bytes, const void *tail,
                  uint32_t tail_bytes);
/* The same in place: NULL or room for so many bytes, which must be filled before commit. */
void *mg_trace_reserve(struct mg_trace_stream *s, uint32_t kind, uint32_t bytes);
void mg_trace_commit(struct mg_trace_stream *s);

struct mg_trace_counts {
    uint64_t written; /* records in the file */
    uint64_t dropped; /* no buffer was free */
    uint64_t skipped; /* by sampling */
    uint64_t lost;    /* the file could not be written, or the record was not one of its kind */
    bool stopped;     /* by an error */
};
void mg_trace_counts(struct mg_trace_writer *w, struct mg_trace_counts *out);

#endif
