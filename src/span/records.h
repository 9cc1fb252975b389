/* The time line's records as they stand in trace files: what the application writes and the reader of spans reads.
 * Times are CLOCK_MONOTONIC. A field is only ever added; readers go by names. */
#ifndef MG_SPAN_RECORDS_H
#define MG_SPAN_RECORDS_H

#include "base/compiler.h"
#include "trace/trace.h"

enum mg_span_layer { /* ORDER LAYERS */ MG_LAYER_driver,
                     MG_LAYER_runtime,
                     MG_LAYER_mpi,
                     MG_LAYER_nvtx,
                     MG_LAYER_mark,
                     MG_LAYER_COUNT };
enum mg_span_work { /* ORDER WORKS */ MG_WORK_kernel,
                    MG_WORK_copy,
                    MG_WORK_memset,
                    MG_WORK_prefetch,
                    MG_WORK_graph,
                    MG_WORK_COUNT };
/* Where the times of device work come from. none: it was not timed; its times are those of its call. */
enum mg_span_source { /* ORDER SOURCES */ MG_SOURCE_none,
                      MG_SOURCE_device,
                      MG_SOURCE_events,
                      MG_SOURCE_twin,
                      MG_SOURCE_cupti,
                      MG_SOURCE_host,
                      MG_SOURCE_COUNT };
enum mg_span_direction { /* ORDER DIRECTIONS */ MG_DIR_none,
                         MG_DIR_HtoD,
                         MG_DIR_DtoH,
                         MG_DIR_DtoD,
                         MG_DIR_HtoH,
                         MG_DIR_COUNT };

#define MG_PACKED __attribute__((packed))
struct mg_record_call {                      /* a call of an API; behind it its arguments, 64-bit words */
    uint64_t begin, end, correlation, outer; /* outer: the call inside which it was made, 0: none */
    uint32_t name;
    int32_t result;
    uint32_t stream, context; /* as of work, of calls that ask or wait and of cuEventRecord; all ones: none */
    uint64_t stack;           /* the host's where it was made, 0: not taken */
    uint8_t layer, class_;
} MG_PACKED;
struct mg_record_work {                                                       /* work of a device */
    uint64_t begin, end, correlation, stream, context, bytes, launch, replay; /* the last three: all ones: none */
    uint64_t mark; /* the innermost range open on the thread of the call, 0: none */
    uint32_t name, device, uncertainty_ns;
    uint8_t work, source, direction;
    uint8_t inside; /* 1: a kernel, and what it begins and ends is recorded */
} MG_PACKED;
struct mg_record_mark {                        /* a range or an instant (begin = end) that the program marked */
    uint64_t begin, end, payload, correlation; /* correlation: a number of its own */
    uint64_t outer;                            /* of the range in which it was begun on its thread, 0: none */
    uint32_t name, domain, end_thread;
    uint8_t layer, kind; /* kind: 0 push and pop, 1 start and end, 2 instant */
} MG_PACKED;
struct mg_record_inside {                              /* something that a kernel began and ended */
    uint64_t begin, end, launch, replay, cta;          /* launch, replay: as of its kernel's work */
    uint64_t correlation, context, stream, outside_ns; /* outside_ns: how far it lies outside of its kernel's span,
                                                          beyond what either may be off; all ones: that has no time */
    uint32_t name, kernel, device, sm, lanes, uncertainty_ns;
    uint8_t warp, depth, source; /* depth: how many of these lie around it, 255: or more */
} MG_PACKED;
struct mg_record_thread { /* a thread's name */
    uint64_t time;
    uint32_t thread, name;
} MG_PACKED;
struct mg_record_stack { /* of the host; behind it addresses inside of its calls, the innermost first */
    uint64_t time, id;   /* id: made of the addresses, so that equal stacks are told once */
    uint8_t cut;         /* 1: there are more frames */
} MG_PACKED;
struct mg_record_module {            /* code that a file brought, from this time on */
    uint64_t time, begin, end, bias; /* address less bias: as in the file */
    uint32_t name, build_id;         /* path, "": what was there is gone; hexadecimal */
} MG_PACKED;
struct mg_record_memory {                       /* of a device, allocated or freed by a call */
    uint64_t time, correlation, address, bytes; /* address: or a handle; bytes: all ones: freed */
    uint32_t device;                            /* then not told */
} MG_PACKED;
enum mg_message_kind { MG_MESSAGE_SENT, MG_MESSAGE_RECEIVED };
struct mg_record_message { /* one end of a message of MPI, of a process of the rank */
    uint64_t time;         /* 1 ns before the call that posted it: in order of time it stands in front of that call */
    uint64_t correlation, done; /* of the calls that posted and that completed it; 0: not on the time line, not known */
    uint64_t communicator;      /* the same number in all processes; 0: MPI_COMM_WORLD */
    uint64_t bytes;
    int64_t tag;
    uint32_t peer; /* rank of MPI_COMM_WORLD; all ones: no process, or not known */
    uint8_t kind;
} MG_PACKED;
struct mg_record_communicator { /* behind it its members, ranks of MPI_COMM_WORLD */
    uint64_t time, id, parent;  /* parent: all ones: not known */
} MG_PACKED;
struct mg_record_clock { /* not a record of the file: a line of <pid>.clock (docs/format-trace.md) */
    uint64_t time;
    int64_t offset_ns; /* of rank 0's clock to this one at that time */
    uint64_t uncertainty_ns;
};
#define MG_MPI_WORLD 0u /* the number of MPI_COMM_WORLD */
/* Arguments of a call of MPI; all ones: none, or not known. The peer or root is a rank of MPI_COMM_WORLD. */
enum mg_mpi_argument { MG_MPI_PEER, MG_MPI_TAG, MG_MPI_BYTES, MG_MPI_COMMUNICATOR };
enum mg_mark_kind { MG_MARK_PUSHED, MG_MARK_STARTED, MG_MARK_INSTANT };

extern const struct mg_trace_kind mg_record_call_kind, mg_record_work_kind, mg_record_mark_kind, mg_record_inside_kind,
    mg_record_thread_kind, mg_record_message_kind, mg_record_communicator_kind, mg_record_stack_kind,
    mg_record_module_kind, mg_record_memory_kind;

#endif
