/* Writing the time line: the records of records.h into the process' trace file. Any thread may put records; what a
 * thread does when all buffers are full is the writer's policy. */
#ifndef MG_SPAN_WRITER_H
#define MG_SPAN_WRITER_H

#include "base/diag.h"
#include "span/records.h"

struct mg_span_writer;
struct mg_trace_writer;
struct mg_span_writer_opts {
    size_t size;                   /* sizeof this struct */
    struct mg_trace_writer *trace; /* of the process; NULL: one of its own, as follows */
    const char *dir;               /* profile directory */
    int32_t rank;                  /* of the process, -1: none */
    size_t memory_bytes;           /* of buffers */
    bool wait;                     /* a thread that finds no buffer waits; else its record is dropped and counted */
    void (*say)(const char *line);
};
enum mg_err mg_span_writer_open(const struct mg_span_writer_opts *o, struct mg_span_writer **out,
                                struct mg_diag *d) MG_MUST_CHECK;
uint64_t mg_span_writer_lost(struct mg_span_writer *w); /* records that are not in the file */
bool mg_span_writer_flush(struct mg_span_writer *w, uint32_t timeout_ms);
void mg_span_writer_close(struct mg_span_writer *w);

/* The number of a text in the file, for the records' names. Takes a lock: keep it. */
uint32_t mg_span_name(struct mg_span_writer *w, const char *text);
void mg_span_put_call(struct mg_span_writer *w, const struct mg_record_call *r, const uint64_t *arguments, uint32_t n);
void mg_span_put_work(struct mg_span_writer *w, const struct mg_record_work *r);
void mg_span_put_mark(struct mg_span_writer *w, const struct mg_record_mark *r);
void mg_span_put_inside(struct mg_span_writer *w, const struct mg_record_inside *r);
void mg_span_put_thread(struct mg_span_writer *w, const struct mg_record_thread *r);
void mg_span_put_message(struct mg_span_writer *w, const struct mg_record_message *r);
void mg_span_put_memory(struct mg_span_writer *w, const struct mg_record_memory *r);
void mg_span_put_clock(struct mg_span_writer *w, const struct mg_record_clock *r);
void mg_span_put_communicator(struct mg_span_writer *w, const struct mg_record_communicator *r, const uint64_t *members,
                              uint32_t n);
/* False: it is not in the file. */
bool mg_span_put_stack(struct mg_span_writer *w, const struct mg_record_stack *r, const uint64_t *addresses,
                       uint32_t n);
bool mg_span_put_module(struct mg_span_writer *w, const struct mg_record_module *r);

#endif
