#include "span/writer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/writer.h"

struct mg_span_writer {
    struct mg_trace_writer *trace;
    bool owns;
    uint32_t call, work, mark, inside, thread, message, communicator, stack, module, memory; /* kinds in the file */
    void (*say)(const char *line);
};

static void say(void *user, const char *line)
{
    const struct mg_span_writer *w = user;
    if (w->say) w->say(line);
}

enum mg_err mg_span_writer_open(const struct mg_span_writer_opts *o, struct mg_span_writer **out, struct mg_diag *d)
{
    struct mg_span_writer *w = calloc(1, sizeof *w);
    if (!w) return mg_diag_err(d, MG_ERR_IO, "out of memory");
    w->say = o->say;
    struct mg_trace_opts to = {
        .size = sizeof to,
        .dir = o->dir,
        .rank = o->rank,
        .policy = o->wait ? MG_TRACE_BLOCK : MG_TRACE_DROP,
        .memory_bytes = o->memory_bytes,
        .say = say,
        .say_user = w,
    };
    w->trace = o->trace;
    w->owns = !o->trace;
    enum mg_err err = w->owns ? mg_trace_open(&to, &w->trace, d) : MG_ERR_OK;
    if (err) {
        free(w);
        return err;
    }
    w->call = mg_trace_kind_add(w->trace, &mg_record_call_kind);
    w->work = mg_trace_kind_add(w->trace, &mg_record_work_kind);
    w->mark = mg_trace_kind_add(w->trace, &mg_record_mark_kind);
    w->inside = mg_trace_kind_add(w->trace, &mg_record_inside_kind);
    w->thread = mg_trace_kind_add(w->trace, &mg_record_thread_kind);
    w->message = mg_trace_kind_add(w->trace, &mg_record_message_kind);
    w->communicator = mg_trace_kind_add(w->trace, &mg_record_communicator_kind);
    w->stack = mg_trace_kind_add(w->trace, &mg_record_stack_kind);
    w->memory = mg_trace_kind_add(w->trace, &mg_record_memory_kind);
    w->module = mg_trace_kind_add(w->trace, &mg_record_module_kind);
    *out = w;
    return MG_ERR_OK;
}

uint64_t mg_span_writer_lost(struct mg_span_writer *w)
{
    struct mg_trace_counts n;
    mg_trace_counts(w->trace, &n);
    return n.dropped + n.lost;
}

bool mg_span_writer_flush(struct mg_span_writer *w, uint32_t timeout_ms)
{
    return mg_trace_flush(w->trace, timeout_ms);
}

void mg_span_writer_close(struct mg_span_writer *w)
{
    if (w->owns) mg_trace_close(w->trace);
    free(w);
}

uint32_t mg_span_name(struct mg_span_writer *w, const char *text)
{
    return mg_trace_name(w->trace, text);
}

void mg_span_put_call(struct mg_span_writer *w, const struct mg_record_call *r, const uint64_t *arguments, uint32_t n)
{
    mg_trace_put(mg_trace_thread(w->trace), w->call, r, sizeof *r, arguments, n * (uint32_t)sizeof *arguments);
}

void mg_span_put_work(struct mg_span_writer *w, const struct mg_record_work *r)
{
    mg_trace_put(mg_trace_thread(w->trace), w->work, r, sizeof *r, NULL, 0);
}

void mg_span_put_mark(struct mg_span_writer *w, const struct mg_record_mark *r)
{
    mg_trace_put(mg_trace_thread(w->trace), w->mark, r, sizeof *r, NULL, 0);
}

void mg_span_put_inside(struct mg_span_writer *w, const struct mg_record_inside *r)
{
    mg_trace_put(mg_trace_thread(w->trace), w->inside, r, sizeof *r, NULL, 0);
}

void mg_span_put_thread(struct mg_span_writer *w, const struct mg_record_thread *r)
{
    mg_trace_put(mg_trace_thread(w->trace), w->thread, r, sizeof *r, NULL, 0);
}

void mg_span_put_message(struct mg_span_writer *w, const struct mg_record_message *r)
{
    mg_trace_put(mg_trace_thread(w->trace), w->message, r, sizeof *r, NULL, 0);
}

/* Readers need it before the first record: it has a file of its own. */
void mg_span_put_clock(struct mg_span_writer *w, const struct mg_record_clock *r)
{
    char path[PATH_MAX], line[96];
    const char *trace = mg_trace_path(w->trace);
    int n = snprintf(path, sizeof path, "%.*s.clock", (int)(strlen(trace) - strlen(".mgt")), trace);
    int fd = n > 0 && n < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    n = snprintf(line, sizeof line, "%" PRIu64 " %" PRId64 " %" PRIu64 "\n", r->time, r->offset_ns, r->uncertainty_ns);
    if ((fd < 0 || write(fd, line, (size_t)n) != n) && w->say)
        w->say("the clock of this host is not kept: its times go by the time of day");
    if (fd >= 0) close(fd);
}

void mg_span_put_communicator(struct mg_span_writer *w, const struct mg_record_communicator *r, const uint64_t *members,
                              uint32_t n)
{
    mg_trace_put(mg_trace_thread(w->trace), w->communicator, r, sizeof *r, members, n * (uint32_t)sizeof *members);
}

bool mg_span_put_stack(struct mg_span_writer *w, const struct mg_record_stack *r, const uint64_t *addresses, uint32_t n)
{
    return mg_trace_put(mg_trace_thread(w->trace), w->stack, r, sizeof *r, addresses, n * (uint32_t)sizeof *addresses);
}

bool mg_span_put_module(struct mg_span_writer *w, const struct mg_record_module *r)
{
    return mg_trace_put(mg_trace_thread(w->trace), w->module, r, sizeof *r, NULL, 0);
}

void mg_span_put_memory(struct mg_span_writer *w, const struct mg_record_memory *r)
{
    mg_trace_put(mg_trace_thread(w->trace), w->memory, r, sizeof *r, NULL, 0);
}
