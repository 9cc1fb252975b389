/* Launches (run.c, children.c): one launch, or one kernel node of a graph, from the call to its end. */
#ifndef MG_INJECT_RUN_H
#define MG_INJECT_RUN_H

#include "inject/twin.h"
#include "store/reason.h"

struct mg_shape { /* geometry of a launch */
    unsigned grid[3], block[3], cluster[3], shared_bytes;
    cu_stream stream; /* NULL: the default stream */
    bool cooperative;
    bool per_thread;   /* stream NULL is the thread's own */
    bool programmatic; /* may begin before the kernel in front of it has ended */
    bool own_event;    /* a launch attribute that records an event of the application's */
};

struct mg_run_frame { /* in flight with a frame (frames.c) */
    bool is;
    struct mg_run *next;
    uint64_t read_ns; /* when it was read last */
};

struct mg_node_runs {  /* of a graph's kernel node */
    uint64_t next;     /* how often it has run: the number of the next replay */
    uint64_t together; /* replays that have ended while others of it ran: told together */
    int failed;        /* of these one: its error */
};
/* One launch, or one kernel node of a graph that is launched many times. */
struct mg_run {
    uint32_t refs; /* a launch: 1; a node: the call that makes it, and the driver's note */
    struct mg_inst *inst;
    struct mg_body *body; /* NULL: native */
    struct mg_shape shape;
    enum mg_ran ran;
    struct mg_why reason;       /* owner of its text: the instance, or static */
    struct mg_block_mem *block; /* NULL: native */
    struct mg_block_mem room;   /* NVIDIA: what block points to */
    bool node;                  /* of a graph: recorded at every replay */
    bool child;                 /* made by a kernel */
    uint64_t graph;             /* dense number, 0: direct */
    uint64_t number;            /* of launches that were looked at, as --launches counts; of a child: of those */
    struct mg_node_runs runs;   /* of a node */
    uint32_t kernel;            /* the store's */
    uint64_t launch;            /* the store's; of a node: of the replays that run now */
    uint64_t step;              /* order that it holds in the trace of accesses (steps.h); 0: none */
    uint32_t device;
    uint64_t stream, ctx;          /* dense numbers */
    uint64_t mark;                 /* innermost range of NVTX around the call, 0: none */
    bool in_window;                /* made inside of --range */
    uint64_t correlation, call_ns; /* the call that made it, on the time line; 0: none */
    uint64_t sent_ns;              /* the driver was asked after this; 0: not known */
    struct mg_run *next;  /* a node that the driver has dropped; NVIDIA: not yet told to the store, newest first */
    bool gated;           /* it passed the gate, and its end is told there */
    uint64_t charged_ns;  /* NVIDIA: for what it was told, 0: not yet */
    bool announced, over; /* told to the store; ended already, nobody will tell */
    struct mg_found {
        uint64_t id, off, bytes;
        bool is;
    } * found; /* NVIDIA: by parameter, the allocation it points to; or NULL */
    struct mg_run_channel {
        struct mg_chan *chan;
        uint32_t number;
    } * channels;       /* by region; NULL: none */
    const char *spoilt; /* who drains: words around its counters are no longer what they were (MG_SPOILT_*) */
    struct mg_run_frame framed;
    uint64_t *values; /* argument bytes laid out as the kernel sees them, 8-byte units; or NULL */
};

/* Decides and prepares: a run with its context block, or one that stays native with the reason.
 * params/extra as the driver call takes them. NULL: out of memory. */
struct mg_run *mg_run_new(struct mg_inst *i, const struct mg_shape *s, void **params, void **extra, bool node);
struct mg_run *mg_run_native(struct mg_run *r, enum mg_reason reason); /* the same launch again, native */
void mg_run_bury(void);                                                /* runs of nodes that the driver has dropped */
void mg_run_free(struct mg_run *r);   /* of a node: when the driver has dropped it, too */
void mg_run_begin(struct mg_run *r);  /* before the driver's call: records it and leaves the note */
void mg_run_reject(struct mg_run *r); /* the driver did not take it */
struct mg_counter_launch mg_run_launch(const struct mg_shape *s);
/* NVIDIA: its end was seen; time_ns: by events, 0: not known. What it counted comes later. */
void mg_run_seen(struct mg_run *r, uint64_t time_ns);
void mg_run_ended(struct mg_run *r, const struct mg_launch_done *d,
                  uint64_t *raw); /* NVIDIA: host copy of the counters, or NULL */
void mg_run_announce(struct mg_run *r);
/* A launch that a kernel makes: as mg_run_new, told to the store; then its end. */
struct mg_run *mg_run_child(struct mg_inst *i, const struct mg_shape *s, void **extra);
void mg_run_child_ended(struct mg_run *r, const struct mg_launch_done *d);
extern const struct mg_driver_children mg_children; /* children.c */
/* Its number in a trace: children have numbers of their own. */
static inline uint64_t mg_run_traced_as(const struct mg_run *r)
{
    return r->child ? 1ull << 62 | r->number : r->number;
}
/* raw: now; before: when told last. */
void mg_run_replays(const struct mg_run *r, uint64_t n, const struct mg_launch_done *d, uint64_t *raw,
                    const uint64_t *before);
struct mg_run *mg_run_native_node(struct mg_inst *i, const struct mg_shape *s, struct mg_native native, void **params,
                                  void **extra);
void mg_run_record(struct mg_inst *i, const struct mg_shape *s, enum mg_reason reason); /* ran native, not prepared */
void mg_run_unknown(enum mg_reason reason); /* a launch of nobody knows what */

/* Parameters for the twin: those given, the context block, values of constants if it takes any. `room` is the caller's.
 */
struct mg_params {
    void **params, **extra;
    void *heap;
    uint64_t ctx;
    const uint64_t *known;
    size_t size;
    void *extra_at[5];
    void *params_at[64];
};
bool mg_params_extend(struct mg_params *p, const struct mg_run *r, void **params, void **extra);
void mg_params_release(struct mg_params *p);

#endif
