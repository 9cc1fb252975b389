/* Figures of a time line, summed up in one pass over its spans: memory grows with names, streams, devices, marked
 * ranges and launches whose kernel has not been met. */
#ifndef MG_SPAN_SUM_H
#define MG_SPAN_SUM_H

#include "base/vec.h"
#include "span/memory.h"
#include "span/span.h"

struct mg_sum_call { /* by layer and name */
    enum mg_span_layer layer;
    const char *name;
    enum mg_call_class class_;
    enum mg_call_waits waits;
    const char *opencl; /* GT-Pin's synchronisation call that it stands for; "": none */
    uint64_t count, failed, time_ns, longest_ns;
};
struct mg_sum_work { /* by kind, name, direction, device, context and stream */
    enum mg_span_kind kind;
    const char *name;
    enum mg_span_direction direction;
    int32_t rank; /* -1: none */
    uint32_t process, device;
    uint64_t context, stream;
    uint64_t count, time_ns, bytes, untimed, uncertainty_ns; /* the largest; NONE: of one it is not known */
    uint64_t unstated;                                       /* times without an uncertainty: of CUPTI */
    bool has_bytes;
};
struct mg_sum_device { /* by process and device: one GPU of two processes is two of these */
    int32_t rank;
    uint32_t process, device;
    uint64_t first_ns, last_ns;                       /* begin of the first, end of the last work */
    uint64_t busy_ns;                                 /* at least one piece of work ran */
    uint64_t overlap_ns;                              /* at least two did */
    uint64_t copy_overlap_ns;                         /* a copy ran beside a kernel */
    uint64_t latest, counted, ends_of[2], counted_of; /* of the sweep */
};
struct mg_sum_range { /* marked ranges by name and domain */
    const char *name, *domain;
    enum mg_span_layer layer;
    uint64_t count, time_ns;         /* of the host */
    uint64_t launches, own_launches; /* kernels that were enqueued inside; of them in no range further inside */
    uint64_t device_ns;              /* their time */
};
struct mg_sum_message { /* messages of MPI by sender and receiver, counted where they are sent */
    int32_t from, to;   /* ranks; to -1: not known */
    uint64_t count, bytes;
};
struct mg_sum_inside { /* what kernels began and ended, by process, device, kernel and name */
    const char *name, *kernel;
    int32_t rank;
    uint32_t process, device;
    uint64_t count, time_ns, longest_ns, uncertainty_ns; /* the largest, as above */
    uint64_t covered_ns;                                 /* at least one warp was inside */
    uint64_t kernel_ns; /* launches of the kernel whose events are recorded ran, on this device; 0: they have no time */
    uint64_t compared;  /* whose kernel has a time of the same source */
    uint64_t outside;   /* of these: lie outside of their kernel's span, by more than both may be off */
    uint64_t
        kernel_covered_ns; /* of that, at least one warp was inside; less than covered_ns where launches have none */
    uint64_t latest[2];    /* of the sweep */
};
struct mg_sum_stack { /* by stack and what its last call did: calls, and kernels that they launched */
    uint32_t stack;
    const char *name; /* of the call or kernel */
    uint64_t launches, waits, wait_ns, device_ns, kernels;
};
struct mg_sum_site { /* places of the program that launch or wait */
    const struct mg_frame *frame;
    uint64_t launches, waits, wait_ns, device_ns, kernels;
};
#define MG_SUM_BUCKETS 1024
struct mg_sum_times {
    uint64_t n, least_ns, most_ns;
    uint32_t buckets[MG_SUM_BUCKETS];
};
struct mg_sum {
    struct mg_spans *spans; /* owner of all names */
    uint64_t events, dropped;
    uint64_t first_ns, last_ns;
    MG_VEC(struct mg_sum_call) calls; /* most time first */
    MG_VEC(struct mg_sum_work) work;  /* by rank, process, device, context, stream */
    MG_VEC(struct mg_sum_device) devices;
    MG_VEC(struct mg_sum_range) ranges;     /* in the order in which they were met */
    MG_VEC(struct mg_sum_message) messages; /* by ranks */
    struct mg_memory memory;
    MG_VEC(struct mg_sum_inside) inside;                    /* by process, device, kernel, most time first */
    MG_VEC(struct mg_sum_stack) stacks;                     /* in the order in which they were met */
    MG_VEC(struct mg_sum_site) sites;                       /* most time that waits first, then launches */
    uint64_t stacked_launches, all_launches, stacked_waits; /* calls with a stack; that launch */
    uint64_t class_count[MG_CLASS_COUNT], class_time_ns[MG_CLASS_COUNT]; /* of the driver's calls */
    uint64_t gtpin[3];           /* driver's calls: kernel, synchronisation (GT-Pin's seven), other */
    uint64_t wait_ns, waits;     /* host time in calls that wait */
    struct mg_sum_times latency; /* from the begin of a launching call to the begin of its kernel */
    uint64_t launches, untimed;  /* kernels; work without a time */
    uint32_t kernels;            /* names */
    uint32_t threads, processes;
    uint64_t marks;
};
/* Reads DIR. MG_ERR_OK with events 0: there is no time line. */
enum mg_err mg_sum_init(struct mg_sum *s, const char *dir, struct mg_diag *d) MG_MUST_CHECK;
void mg_sum_release(struct mg_sum *s);
/* The time below which this share of all lies, to 1/32 of its value. */
uint64_t mg_sum_quantile(const struct mg_sum_times *t, double share);

#endif
