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
    bool in_graph, stays;             /* its graph is there; others may refer to it, unseen */
    uint32_t lists;                   /* executables that run it */
    uint64_t stream, order, numbered; /* for the trace of accesses: of its last replay, and of the last with a number */
};
struct mg_graph_entry {
    cu_node handle;
    struct mg_graph_node *node;
    bool disabled;
};
struct mg_graph_copy { /* or memset, for the trace of accesses */
    cu_node handle;
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
    uint64_t number; /* of the node's replays */
    uint64_t with;   /* not own: the step that has its accesses, 0: this one */
    bool own;        /* what it writes is told from other replays' */
};
struct mg_graph_replays {
    struct mg_graph_list *list;
    uint64_t stream, order;
    bool gated;
    uint32_t holders;            /* who tells of it, and its end; under the lock of lists */
    struct mg_graph_replay of[]; /* by entry */
};
/* Its nodes count the launch already. meet: do other streams still run some of it, as far as is known? begin: before
 * the driver's call, both under the lock of lists; number: without it; tell: behind the call; over: it has ended. */
bool mg_gpu_replays_meet(const struct mg_graph_list *l, uint64_t stream);
struct mg_graph_replays *mg_gpu_replays_begin(struct mg_graph_list *l, uint64_t stream, uint64_t order);
void mg_gpu_replays_number(struct mg_graph_replays *r, cu_stream s, bool per_thread);
void mg_gpu_replays_tell(const struct mg_graph_replays *r);
void mg_gpu_replays_over(const struct mg_graph_replays *r);

#endif
