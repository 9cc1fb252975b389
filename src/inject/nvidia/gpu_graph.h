/* Graphs on a real GPU, as gpu_graph.c (what runs, and what it counted) and gpu_graph_steps.c (what the trace of
 * accesses is told of it) know them. */
#ifndef MG_INJECT_NVIDIA_GPU_GRAPH_H
#define MG_INJECT_NVIDIA_GPU_GRAPH_H

#include "base/vec.h"
#include "inject/nvidia/gpu.h"
#include "inject/run.h"
#include "inject/steps.h"

struct mg_graph_node {  /* a kernel node as it was made */
    struct mg_run *run; /* NULL slot: native */
    struct mg_nv_slot *slot;
    uint64_t launched, ended, told;
    uint64_t *before;           /* the counters when last told */
    struct mg_graph_node *next; /* in `ready` */
    bool queued;
    bool in_graph, stays; /* its graph is there; others may refer to it, unseen */
    uint32_t lists;       /* executables that run it */
    /* For the trace of accesses: where and in which step it was launched last, in which it was given a number, which.
     */
    uint64_t at, order, numbered, number;
    bool mixed; /* since it was over last, several streams have launched it */
};
struct mg_graph_entry {
    cu_node handle, first; /* first: of the graph that was instantiated, where another updated the executable */
    struct mg_graph_node *node;
    bool disabled;
};
struct mg_graph_copy { /* or memset, for the trace of accesses */
    cu_node handle, first;
    uint32_t before; /* entries that run before it */
    bool disabled;
    struct mg_step_record step;
};
struct mg_graph_list { /* what one executable graph runs; never changed while shared */
    uint32_t refs;
    enum mg_reason unknown; /* why some of it cannot be counted */
    MG_VEC(struct mg_graph_entry) entries;
    MG_VEC(struct mg_graph_copy) copies;
};

/* The nodes of g in an order that respects its edges, to be freed; of those that are ready at once the first made
 * first, as our own driver runs them. NULL: none. */
cu_node *mg_gpu_graph_order(cu_graph g, size_t *n);
/* A copy or memset of a graph, as the next of l. */
void mg_gpu_graph_copy(struct mg_graph_list *l, cu_node node, int type);

/* What one launch of an executable is in the trace. */
struct mg_graph_replay {
    uint64_t number;                /* of the node's replays */
    uint64_t with;                  /* not own: the step that has its accesses, 0: this one */
    uint64_t before, before_number; /* own: the node's `numbered` and `number` until then */
    bool own;                       /* what it writes is told from other replays' */
};
struct mg_graph_replays {
    struct mg_graph_list *list;
    cu_stream handle;
    bool per_thread, gated;
    uint64_t stream, at, order;
    uint32_t holders;            /* who tells of it, and its end; under the lock of lists */
    struct mg_graph_replay of[]; /* by entry */
};
/* Its nodes count the launch already. new: without the lock of lists, as `number` and `tell`. meet: do other streams
 * still run some of it, as far as is known? begin: before the driver's call, both under that lock; alone: nobody
 * else is between here and `send`. tell: behind the call; fail: the driver did not take it; over: it has ended. */
struct mg_graph_replays *mg_gpu_replays_new(struct mg_graph_list *l, cu_stream s, bool per_thread);
bool mg_gpu_replays_meet(const struct mg_graph_replays *r);
void mg_gpu_replays_begin(struct mg_graph_replays *r, bool alone);
void mg_gpu_replays_number(struct mg_graph_replays *r);
void mg_gpu_replays_tell(const struct mg_graph_replays *r);
void mg_gpu_replays_fail(struct mg_graph_replays *r);
void mg_gpu_replays_over(const struct mg_graph_replays *r);

#endif
