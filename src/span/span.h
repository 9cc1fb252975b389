/* Reading the time line: the spans of a profile directory, of all its processes, merged by time.
 *
 *   struct mg_spans *s;
 *   struct mg_span_query q = {.size = sizeof q};
 *   if (mg_spans_open(dir, &q, &s, &diag)) ...;
 *   const struct mg_span *span;
 *   while ((span = mg_spans_next(s))) ...;
 *   mg_spans_close(s);
 *
 * Memory does not grow with the number of spans. Spans come in order of begin_ns. */
#ifndef MG_SPAN_SPAN_H
#define MG_SPAN_SPAN_H

#include "abi/calls.h"
#include "base/diag.h"
#include "span/records.h"
#include "span/stacks.h"
#include "trace/reader.h"

#define MG_SPAN_NONE UINT64_MAX

enum mg_span_kind { /* ORDER KINDS */
                    MG_SPAN_CALL,
                    MG_SPAN_KERNEL,
                    MG_SPAN_COPY,
                    MG_SPAN_MEMSET,
                    MG_SPAN_PREFETCH,
                    MG_SPAN_GRAPH,
                    MG_SPAN_MARK,
                    MG_SPAN_MPI,
                    MG_SPAN_MESSAGE, /* one end of a message of MPI, in front of its calls; only if asked for */
                    MG_SPAN_MEMORY,  /* memory of a device, allocated or freed; only if asked for */
                    MG_SPAN_INSIDE,  /* what a kernel began and ended, by some lanes of a warp; only if asked for */
                    MG_SPAN_KIND_COUNT
};
struct mg_span {
    enum mg_span_kind kind;
    const char *name;          /* of a call, kernel or mark; of a copy its direction; "memset" */
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC of the first file's host */
    uint32_t process;          /* pid */
    int32_t rank;              /* -1: none */
    uint32_t thread;           /* of calls and marks; 0: none */
    uint32_t device;           /* of work */
    uint64_t context, stream;  /* dense numbers, 0 is the default stream; of calls what they ask for, or NONE */
    uint64_t bytes;            /* MG_SPAN_NONE: not known, or of a kernel */
    uint64_t correlation; /* of a call: its number in the process; of work: of the call that enqueued it; 0: none */
    uint64_t outer;       /* of a call or mark: the one inside which it was begun, 0: none */
    uint64_t range;       /* of work: correlation of the innermost range around its call, 0: none */
    enum mg_span_direction direction;
    uint64_t launch,
        replay; /* of a kernel: number in the profile; of a graph's node: which replay; MG_SPAN_NONE: none */
    enum mg_call_class class_; /* of calls */
    enum mg_span_layer layer;  /* of calls and marks */
    int32_t result;            /* of calls */
    const uint64_t *arguments; /* of calls, words; see calls.def */
    uint32_t n_arguments;
    uint32_t stack;             /* of calls: index into mg_spans_stacks; all ones: none */
    enum mg_span_source source; /* none: its times are its call's */
    uint64_t uncertainty_ns;    /* NONE: not known */
    const char *domain;         /* of marks; "": none */
    enum mg_mark_kind mark;
    uint64_t payload;
    /* Of memory: payload is its address or handle, bytes its size, NONE: it is freed (and the device is not told). */
    /* Of an end of a message: correlation and outer are the calls that posted and completed it, bytes its size. */
    bool received;
    int32_t peer; /* rank; -1: no process, or not known */
    int64_t tag;
    uint64_t communicator;
    /* Of what a kernel began and ended, whose device, context, stream, launch, replay and correlation are the kernel's;
     * payload: ns outside of the kernel's span, beyond what both may be off, NONE: that has no time. */
    const char *kernel;
    bool inside; /* of a kernel: there are such, if it began any */
    uint64_t cta;
    uint32_t sm, warp, lanes, depth; /* depth: how many of these lie around it */
};
/* Kinds that a query without kinds leaves out. */
#define MG_SPANS_ON_REQUEST (1u << MG_SPAN_MESSAGE | 1u << MG_SPAN_MEMORY | 1u << MG_SPAN_INSIDE)

struct mg_span_query {
    size_t size;             /* sizeof this struct */
    uint32_t kinds;          /* bits 1 << enum mg_span_kind; 0: all but those on request */
    uint64_t from_ns, to_ns; /* that overlap this time; both 0: all */
};
struct mg_spans;
enum mg_err mg_spans_open(const char *dir, const struct mg_span_query *q, struct mg_spans **out,
                          struct mg_diag *d) MG_MUST_CHECK;
void mg_spans_close(struct mg_spans *s);
const struct mg_span *mg_spans_next(struct mg_spans *s); /* NULL: the end; lives until the next call */

/* Chunks of records that were left out since they are damaged, and the first one's cause. */
uint64_t mg_spans_damaged(const struct mg_spans *s, const char **why);

/* What the files say of themselves. */
struct mg_span_process {
    uint32_t pid;
    int32_t rank;
    uint64_t start_ns, end_ns, start_unix_ns, dropped, records;
    enum mg_trace_clock_source clock;
    uint64_t clock_uncertainty_ns; /* NONE: not known */
    double clock_drift_ppm;        /* of this clock against the base's; 0: not known */
    bool closed;
};
uint32_t mg_spans_n_processes(const struct mg_spans *s);
struct mg_span_process mg_spans_process(const struct mg_spans *s, uint32_t ix);
/* A thread's name; NULL: it was not given one, or the span that names it has not been met yet. */
const char *mg_spans_thread_name(const struct mg_spans *s, uint32_t pid, uint32_t thread);

/* The host's call stacks that were met so far. */
struct mg_stacks *mg_spans_stacks(struct mg_spans *s);

/* The members of a communicator by its number, as ranks of the world (all ones: none of them); NULL: not known, or not
 * met yet. */
const uint64_t *mg_spans_communicator(const struct mg_spans *s, uint64_t id, uint32_t *n);

const char *mg_span_kind_name(enum mg_span_kind k); /* "call" "kernel" "copy" ... */
const char *mg_span_layer_name(enum mg_span_layer l);
const char *mg_span_source_name(enum mg_span_source s);
const char *mg_span_direction_name(enum mg_span_direction d);

#endif
