/* Kernel nodes of graphs, added or changed explicitly (captured ones come through launch.c): the
 * node gets the twin with one more parameter and a note that is called at every replay; what is read
 * back names the application's own function again. */
#include "inject/verify.h"

#include <stdlib.h>
#include <string.h>

#include "inject/backend.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/streams.h"
#include "inject/tools.h"
#include "inject/twin.h"

/* ---- from the application's node to the twin's ------------------------------------------------------------- */

struct node_work { /* the parameters to send, and what stands behind them */
    struct cu_kernel_node p;
    struct mg_params room;
    struct mg_run *run;
};

static void *handle_of(const struct cu_kernel_node *p, bool is_v2)
{
    return p->func ? (void *)p->func : is_v2 ? (void *)p->kernel : NULL;
}

static void describe(struct mg_shape *s, const struct cu_kernel_node *p)
{
    *s = (struct mg_shape){
        .grid = {p->grid_x, p->grid_y, p->grid_z},
        .block = {p->block_x, p->block_y, p->block_z},
        .shared_bytes = p->shared_bytes,
    };
}

/* w->p is what to send: the twin when there is one, else what was given. */
static void prepare(struct node_work *w, const struct cu_kernel_node *given, bool is_v2, void *graph)
{
    struct mg_shape shape;
    memset(w, 0, sizeof *w);
    memcpy(&w->p, given, is_v2 ? sizeof *given : CU_KERNEL_NODE_V1_BYTES);
    struct mg_inst *i = mg_session.active && !mg_session_is_short() && handle_of(&w->p, is_v2)
                            ? mg_kernel_get(handle_of(&w->p, is_v2))
                            : NULL;
    if (!i) return;
    describe(&shape, &w->p);
    w->run = mg_run_new(i, &shape, w->p.params, w->p.extra, true);
    if (!w->run) return;
    w->run->graph = mg_graph_number(graph);
    if (w->run->block && mg_session.config.verify) mg_verify_skip(MG_REASON_skip_node);
    if (w->run->block && mg_params_extend(&w->room, w->run, w->p.params, w->p.extra)) {
        w->p.func = w->run->body->twin;
        w->p.kernel = NULL;
        w->p.params = w->room.params;
        w->p.extra = w->room.extra;
    } else if (w->run->block) {
        mg_run_native(w->run, MG_REASON_no_memory);
    }
    mg_run_begin(w->run);
}

/* The driver did not take the twin: the same node as it was given, once more. False: nothing to try. */
static bool retry_native(struct node_work *w, cu_result rc, const struct cu_kernel_node *given, bool is_v2)
{
    if (rc == CUE_SUCCESS || !w->run || !w->run->block) return false;
    memcpy(&w->p, given, is_v2 ? sizeof *given : CU_KERNEL_NODE_V1_BYTES);
    mg_run_native(w->run, MG_REASON_driver_rejects_node);
    mg_run_begin(w->run);
    return true;
}

/* x, node: of an executable graph whose node was changed; else NULL. */
static cu_result finish(struct node_work *w, cu_result rc, cu_graph_exec x, cu_node node)
{
    mg_params_release(&w->room);
    if (w->run && rc == CUE_SUCCESS)
        mg_session.backend->node_taken(w->run, x, node);
    else if (w->run)
        mg_run_free(w->run);
    return rc;
}

/* SEND is an expression of `p`, a pointer to the kernel node parameters to pass on. */
#define THROUGH_TWIN(given, is_v2, graph, SEND) THROUGH_TWIN_OF(given, is_v2, graph, NULL, NULL, SEND)
#define THROUGH_TWIN_OF(given, is_v2, graph, x, node, SEND)                                                            \
    struct node_work w;                                                                                                \
    if (!(given) || !mg_session.active || mg_inside) {                                                                 \
        const struct cu_kernel_node *p = (given);                                                                      \
        return SEND;                                                                                                   \
    }                                                                                                                  \
    mg_inside++;                                                                                                       \
    prepare(&w, given, is_v2, graph);                                                                                  \
    const struct cu_kernel_node *p = &w.p;                                                                             \
    cu_result rc = SEND;                                                                                               \
    if (retry_native(&w, rc, given, is_v2)) rc = SEND;                                                                 \
    mg_inside--;                                                                                                       \
    return finish(&w, rc, x, node)

MG_HOOK(cuGraphAddKernelNode, cu_node *node, cu_graph g, const cu_node *deps, size_t n,
        const struct cu_kernel_node *given)
{
    THROUGH_TWIN(given, false, g, MG_REAL(cuGraphAddKernelNode)(node, g, deps, n, p));
}
MG_HOOK(cuGraphAddKernelNode_v2, cu_node *node, cu_graph g, const cu_node *deps, size_t n,
        const struct cu_kernel_node *given)
{
    THROUGH_TWIN(given, true, g, MG_REAL(cuGraphAddKernelNode_v2)(node, g, deps, n, p));
}
MG_HOOK(cuGraphKernelNodeSetParams, cu_node node, const struct cu_kernel_node *given)
{
    THROUGH_TWIN(given, false, node, MG_REAL(cuGraphKernelNodeSetParams)(node, p));
}
MG_HOOK(cuGraphKernelNodeSetParams_v2, cu_node node, const struct cu_kernel_node *given)
{
    THROUGH_TWIN(given, true, node, MG_REAL(cuGraphKernelNodeSetParams_v2)(node, p));
}
MG_HOOK(cuGraphExecKernelNodeSetParams, cu_graph_exec x, cu_node node, const struct cu_kernel_node *given)
{
    THROUGH_TWIN_OF(given, false, x, x, node, MG_REAL(cuGraphExecKernelNodeSetParams)(x, node, p));
}
MG_HOOK(cuGraphExecKernelNodeSetParams_v2, cu_graph_exec x, cu_node node, const struct cu_kernel_node *given)
{
    THROUGH_TWIN_OF(given, true, x, x, node, MG_REAL(cuGraphExecKernelNodeSetParams_v2)(x, node, p));
}

/* ---- the generic calls: only kernel nodes are looked into --------------------------------------------------- */

static struct cu_node_params *with_kernel(struct cu_node_params *room, const struct cu_node_params *given,
                                          const struct cu_kernel_node *p)
{
    *room = *given;
    room->u.kernel = *p;
    return room;
}
static const struct cu_kernel_node *kernel_in(const struct cu_node_params *given)
{
    return given && given->type == CUNODE_KERNEL ? &given->u.kernel : NULL;
}

static void child_stays(const struct cu_node_params *given)
{
    if (given && given->type == CUNODE_GRAPH && mg_session.backend)
        mg_session.backend->graph_stays(given->u.graph.graph);
}

/* Memory that a graph allocates has its place from when the node is made, and kernels outside of the graph may use it.
 */
static cu_result allocates(cu_result rc, const struct cu_alloc_node *given)
{
    if (given && rc == CUE_SUCCESS && !mg_inside) mg_host_variable(given->ptr, given->bytes);
    return rc;
}
static cu_result node_made(cu_result rc, const struct cu_node_params *given)
{
    return allocates(rc, given && given->type == CUNODE_MEM_ALLOC ? &given->u.alloc : NULL);
}

MG_HOOK(cuGraphAddMemAllocNode, cu_node *node, cu_graph g, const cu_node *deps, size_t n, struct cu_alloc_node *given)
{
    return allocates(MG_REAL(cuGraphAddMemAllocNode)(node, g, deps, n, given), given);
}
MG_HOOK(cuGraphAddNode, cu_node *node, cu_graph g, const cu_node *deps, size_t n, struct cu_node_params *given)
{
    if (!kernel_in(given)) {
        child_stays(given);
        return node_made(MG_REAL(cuGraphAddNode)(node, g, deps, n, given), given);
    }
    struct cu_node_params room;
    THROUGH_TWIN(kernel_in(given), true, g, MG_REAL(cuGraphAddNode)(node, g, deps, n, with_kernel(&room, given, p)));
}
MG_HOOK(cuGraphAddNode_v2, cu_node *node, cu_graph g, const cu_node *deps, const struct cu_edge_data *edges, size_t n,
        struct cu_node_params *given)
{
    if (!kernel_in(given)) {
        child_stays(given);
        return node_made(MG_REAL(cuGraphAddNode_v2)(node, g, deps, edges, n, given), given);
    }
    struct cu_node_params room;
    THROUGH_TWIN(kernel_in(given), true, g,
                 MG_REAL(cuGraphAddNode_v2)(node, g, deps, edges, n, with_kernel(&room, given, p)));
}
MG_HOOK(cuGraphNodeSetParams, cu_node node, struct cu_node_params *given)
{
    if (!kernel_in(given)) {
        child_stays(given);
        return MG_REAL(cuGraphNodeSetParams)(node, given);
    }
    struct cu_node_params room;
    THROUGH_TWIN(kernel_in(given), true, node, MG_REAL(cuGraphNodeSetParams)(node, with_kernel(&room, given, p)));
}
MG_HOOK(cuGraphExecNodeSetParams, cu_graph_exec x, cu_node node, struct cu_node_params *given)
{
    if (!kernel_in(given)) {
        child_stays(given);
        cu_result rc = MG_REAL(cuGraphExecNodeSetParams)(x, node, given);
        if (rc == CUE_SUCCESS && given && mg_session.backend) mg_session.backend->node_changed(x, node, given);
        return rc;
    }
    struct cu_node_params room;
    THROUGH_TWIN_OF(kernel_in(given), true, x, x, node,
                    MG_REAL(cuGraphExecNodeSetParams)(x, node, with_kernel(&room, given, p)));
}

/* ---- reading back: the twin's name becomes the application's, the extra parameter is simply behind ------------- */

static cu_result read_back(cu_result rc, struct cu_kernel_node *p, bool is_v2)
{
    struct mg_body *b = rc == CUE_SUCCESS && p && mg_session.active ? mg_kernel_of_twin(p->func) : NULL;
    if (b) /* the function, also of what the application named by its cu_kernel: a runtime knows no other */
        p->func = b->inst->function;
    if (b && is_v2) /* both, as the driver tells them */
        p->kernel = b->inst->kernel;
    return rc;
}
MG_HOOK(cuGraphKernelNodeGetParams, cu_node node, struct cu_kernel_node *p)
{
    return read_back(MG_REAL(cuGraphKernelNodeGetParams)(node, p), p, false);
}
MG_HOOK(cuGraphKernelNodeGetParams_v2, cu_node node, struct cu_kernel_node *p)
{
    return read_back(MG_REAL(cuGraphKernelNodeGetParams_v2)(node, p), p, true);
}
