/* Graphs inside the driver: nodes are ops with edges; an executable graph is a flat list of ops in
 * an order that respects the edges, child graphs expanded. Everything here is guarded by mg_drv.lock. */
#ifndef MG_DRIVER_GRAPH_H
#define MG_DRIVER_GRAPH_H

#include "driver/priv.h"

struct mg_graph_mem { /* memory of an allocation node: at one address as long as a graph names it */
    uint32_t refs;
    cu_device device;
    uint64_t base, bytes;
    bool live; /* allocated by a launch and not freed since */
};

struct CUgraphNode_st {
    struct CUgraph_st *graph;
    uint64_t id;       /* unique in the process; a clone has its own */
    uint64_t clone_of; /* id of the node it was cloned from, 0: none */
    int type;          /* enum cu_node_type */
    struct CUctx_st *ctx;
    struct mg_work op; /* event nodes: u.event; child nodes: u.child, the graph is owned */
    struct mg_graph_mem *mem;
    MG_VEC(struct CUgraphNode_st *) deps;
    MG_VEC(struct CUgraphNode_st *) dependents;
    void **param_ptrs;            /* what cuGraphKernelNodeGetParams hands out; owner: the node */
    union cu_launch_value *attrs; /* kernel node attributes that were set, [CULAUNCH_COUNT] or NULL */
    uint32_t mark;
};
/* What a conditional node does. In a graph it owns the graphs of its bodies; in an executable one, where
 * launches share it, they are flat lists of ops that run one after the other. */
struct mg_exec_node;
struct mg_cond {
    _Atomic uint32_t refs;
    uint64_t handle; /* address of a struct mg_cond_value */
    int type;        /* enum cu_cond_type */
    unsigned n;
    struct CUgraph_st **graphs;
    struct mg_exec_nodes *bodies;
    uint64_t *resets;
    uint32_t n_resets; /* handles that get their initial value: what a launch begins with */
};
struct mg_graph_user {
    struct CUuserObject_st *object;
    uint32_t count;
};
struct CUgraph_st {
    MG_VEC(struct CUgraphNode_st *) nodes; /* in order of creation */
    MG_VEC(struct mg_graph_user) users;
    MG_VEC(uint64_t) handles;      /* of conditional nodes, made for this graph */
    struct CUgraphNode_st *parent; /* the child node that owns it; NULL: the application does */
    uint64_t id;
};
struct mg_exec_node {
    uint64_t node_id; /* of the graph node it comes from */
    int type;
    struct CUctx_st *ctx;
    struct mg_work op;
    struct mg_graph_mem *mem;
    bool disabled;
    MG_VEC(uint32_t) deps; /* earlier entries */
    uint32_t owner;        /* entry of the child node it was expanded from + 1, 0: top level */
};
struct mg_exec_nodes {
    struct mg_exec_node *at;
    uint32_t n;
};
struct CUgraphExec_st {
    MG_VEC(struct mg_exec_node) nodes;
    MG_VEC(struct mg_graph_user) users;
    uint64_t flags;
    struct mg_cond *reset; /* NULL: no conditional node wants it */
    uint64_t launches;
    struct mg_task *last; /* launches of one executable graph follow each other */
};
struct CUuserObject_st {
    uint64_t refs;
    cu_host_fn destroy;
    void *ptr;
};

/* graph_cond.c; lock held. NULL: out of memory. */
struct mg_cond *mg_cond_new(const struct cu_conditional_node *p);
struct mg_cond *mg_cond_clone(const struct mg_cond *c);              /* with graphs of its own */
struct mg_cond *mg_cond_compile(struct mg_cond *c);                  /* for an executable graph */
struct mg_cond *mg_cond_reset(const struct CUgraph_st *g, bool *ok); /* NULL and ok: nothing to reset */
void mg_cond_drop_graphs(struct mg_cond *c);
bool mg_graph_flatten(struct mg_exec_nodes *out, const struct CUgraph_st *g);
void mg_exec_nodes_free(struct mg_exec_nodes *n); /* lock not needed: no memory nodes */

struct CUgraph_st *mg_graph_new(void);
void mg_graph_free(struct CUgraph_st *g); /* lock held; frees owned children */
/* Takes over op, also on error (NULL: out of memory). Edges from deps. */
struct CUgraphNode_st *mg_graph_add(struct CUgraph_st *g, int type, struct CUctx_st *ctx, struct mg_work *op,
                                    struct CUgraphNode_st *const *deps, size_t n_deps);
bool mg_graph_link(struct CUgraphNode_st *from, struct CUgraphNode_st *to); /* false: would close a cycle */
struct CUgraph_st *mg_graph_clone(const struct CUgraph_st *g);
void mg_graph_user_drop(struct mg_graph_user *at, uint32_t n); /* lock held; destroyers run later, without it */
struct mg_graph_mem *mg_graph_mem_new(struct CUctx_st *ctx, cu_device device, uint64_t bytes); /* lock not held */
/* Memory of these many bytes that nodes before a new one have allocated and freed, if any, with a
 * reference for the new node: an address is used again within a graph. Lock not held. */
struct mg_graph_mem *mg_graph_mem_again(struct CUgraphNode_st *const *deps, size_t n_deps, uint64_t bytes);
/* Physical memory for the allocations of a launch that ends with the task. Lock held. */
void mg_graph_mem_launch(const struct CUgraphExec_st *x, const struct CUstream_st *s, struct mg_task *end);
void mg_graph_mem_unref(struct mg_graph_mem *m);     /* lock held */
struct mg_graph_mem *mg_graph_mem_of(uint64_t base); /* lock held; NULL: no graph's address */
/* Type and op of a node from its parameters in the driver's general form. *op is owned by the caller.
 * *mem going in: memory for an allocation node to take, or NULL. Lock not held. */
cu_result mg_node_make(const struct cu_node_params *p, struct mg_work *op, struct CUctx_st **ctx,
                       struct mg_graph_mem **mem, struct CUgraph_st **child);
bool mg_graph_is(const struct CUgraph_st *g);
void mg_graph_run_destroyers(void); /* lock not held */

#endif
