/* driver: graphs by node and by capture, against the fake device. add and mul do not commute, so
 * results tell the order in which nodes ran. */
#include "test.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver_calls.h"

struct add_args {
    cu_ptr p;
    uint32_t n, by;
};

static cu_node kernel_node(cu_graph g, cu_module m, const char *name, struct add_args *a, const cu_node *deps, size_t n)
{
    cu_node out = NULL;
    void *params[] = {&a->p, &a->n, &a->by};
    struct cu_kernel_node k = {.func = func(m, name),
                               .grid_x = 1,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = 1,
                               .block_y = 1,
                               .block_z = 1,
                               .params = params};
    MG_CHECK_EQ(CALL(cuGraphAddKernelNode_v2)(&out, g, deps, n, &k), 0);
    return out;
}

static uint32_t value(cu_ptr p)
{
    return *(uint32_t *)(uintptr_t)p;
}

MG_TEST(driver_graph_runs_in_order_of_edges)
{
    start_driver();
    cu_module m = load_fake();
    cu_graph g = NULL;
    cu_graph_exec x = NULL;
    cu_ptr p = zeroed(4);
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    struct add_args add5 = {p, 1, 5}, mul3 = {p, 1, 3};
    cu_node b = kernel_node(g, m, "mul", &mul3, NULL, 0); /* made first, runs second */
    cu_node a = kernel_node(g, m, "add", &add5, NULL, 0);
    MG_CHECK_EQ(CALL(cuGraphAddDependencies)(g, &a, &b, (size_t)1), 0);
    MG_CHECK_EQ(CALL(cuGraphAddDependencies)(g, &b, &a, (size_t)1), CUE_INVALID_VALUE); /* a cycle */
    uint32_t got = 0;
    struct cu_memcpy3d c = {.src_type = CUMEM_DEVICE,
                            .src_device = p,
                            .dst_type = CUMEM_HOST,
                            .dst_host = &got,
                            .width = 4,
                            .height = 1,
                            .depth = 1};
    cu_node copy;
    MG_CHECK_EQ(CALL(cuGraphAddMemcpyNode)(&copy, g, &b, (size_t)1, &c, (cu_ctx)NULL), 0);
    size_t n = 0;
    MG_CHECK_EQ(CALL(cuGraphGetNodes)(g, (cu_node *)NULL, &n), 0);
    MG_CHECK_EQ(n, 3);
    cu_node root[2];
    n = 2;
    MG_CHECK_EQ(CALL(cuGraphGetRootNodes)(g, root, &n), 0);
    MG_CHECK(n == 1 && root[0] == a);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    for (uint32_t i = 1, want = 0; i <= 3; i++) {
        want = (want + 5) * 3;
        MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), 0);
        MG_CHECK_EQ(CALL(cuStreamSynchronize)((cu_stream)NULL), 0);
        MG_CHECK_EQ(got, want);
    }
    /* one entry changed, one switched off; the graph itself stays as it was */
    struct add_args add1 = {p, 1, 1};
    void *params[] = {&add1.p, &add1.n, &add1.by};
    struct cu_kernel_node k = {.func = func(m, "add"),
                               .grid_x = 1,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = 1,
                               .block_y = 1,
                               .block_z = 1,
                               .params = params};
    MG_CHECK_EQ(CALL(cuGraphExecKernelNodeSetParams_v2)(x, a, &k), 0);
    MG_CHECK_EQ(CALL(cuGraphNodeSetEnabled)(x, b, 0u), 0);
    uint32_t before = value(p);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), 0);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    MG_CHECK_EQ(got, before + 1);
    struct cu_kernel_node read;
    MG_CHECK_EQ(CALL(cuGraphKernelNodeGetParams_v2)(a, &read), 0);
    MG_CHECK_EQ(*(uint32_t *)read.params[2], 5);
    MG_CHECK_EQ(CALL(cuGraphExecDestroy)(x), 0);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(g), 0);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(g), CUE_INVALID_VALUE);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_graph_children_and_clones)
{
    start_driver();
    cu_module m = load_fake();
    cu_graph g, child, clone;
    cu_graph_exec x;
    cu_ptr p = zeroed(4);
    struct add_args add2 = {p, 1, 2}, mul10 = {p, 1, 10}, add1 = {p, 1, 1};
    MG_CHECK_EQ(CALL(cuGraphCreate)(&child, 0u), 0);
    cu_node c1 = kernel_node(child, m, "add", &add2, NULL, 0);
    kernel_node(child, m, "mul", &mul10, &c1, 1);
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    cu_node first = kernel_node(g, m, "add", &add1, NULL, 0), inner, last;
    MG_CHECK_EQ(CALL(cuGraphAddChildGraphNode)(&inner, g, &first, (size_t)1, child), 0);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(child), 0); /* the node has its own copy */
    last = kernel_node(g, m, "add", &add1, &inner, 1);
    MG_CHECK_EQ(CALL(cuGraphClone)(&clone, g), 0);
    cu_node found = NULL;
    MG_CHECK_EQ(CALL(cuGraphNodeFindInClone)(&found, last, clone), 0);
    MG_CHECK(found && found != last);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(g), 0);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, clone, 0ull), 0);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(clone), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), 0);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    MG_CHECK_EQ(value(p), (31 + 1 + 2) * 10 + 1);
    CALL(cuGraphExecDestroy)(x);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

static void add_seven(void *user)
{
    *(uint32_t *)user += 7;
}

MG_TEST(driver_capture_follows_events_across_streams)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream a, b;
    cu_event fork, joined;
    cu_graph g = NULL;
    cu_graph_exec x;
    int status = -1;
    cu_ptr p = zeroed(8);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&a, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&b, 1u), 0);
    MG_CHECK_EQ(CALL(cuEventCreate)(&fork, 2u), 0);
    MG_CHECK_EQ(CALL(cuEventCreate)(&joined, 2u), 0);
    uint32_t host = 0;
    int before = fake_launches;
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, (int)CUCAPTURE_GLOBAL), 0);
    launch_by(m, "add", a, p, 1, 1);
    MG_CHECK_EQ(CALL(cuEventRecord)(fork, a), 0);
    MG_CHECK_EQ(CALL(cuStreamWaitEvent)(b, fork, 0u), 0);
    MG_CHECK_EQ(CALL(cuStreamIsCapturing)(b, &status), 0);
    MG_CHECK_EQ(status, CUCAPTURE_ACTIVE);
    launch_by(m, "add", b, p + 4, 1, 20);
    launch_by(m, "mul", a, p, 1, 3);
    MG_CHECK_EQ(CALL(cuLaunchHostFunc)(b, add_seven, &host), 0);
    MG_CHECK_EQ(CALL(cuEventRecord)(joined, b), 0);
    MG_CHECK_EQ(CALL(cuStreamWaitEvent)(a, joined, 0u), 0);
    MG_CHECK_EQ(CALL(cuStreamDestroy_v2)(b), 0); /* joined already: the capture goes on */
    launch_by(m, "mul", a, p, 2, 2);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&b, 1u), 0);
    MG_CHECK_EQ(fake_launches, before); /* nothing ran */
    MG_CHECK_EQ(CALL(cuStreamIsCapturing)(b, &status), 0);
    MG_CHECK_EQ(status, CUCAPTURE_NONE);
    size_t n = 0;
    MG_CHECK_EQ(CALL(cuGraphGetNodes)(g, (cu_node *)NULL, &n), 0);
    MG_CHECK_EQ(n, 5);
    MG_CHECK_EQ(CALL(cuGraphGetEdges)(g, (cu_node *)NULL, (cu_node *)NULL, &n), 0);
    MG_CHECK_EQ(n, 5); /* add-mul, add-add, add-host, mul-last, host-last */
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, b), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(b), 0);
    MG_CHECK_EQ(value(p), 6);
    MG_CHECK_EQ(value(p + 4), 40);
    MG_CHECK_EQ(host, 7);
    CALL(cuGraphExecDestroy)(x), CALL(cuGraphDestroy)(g);
    CALL(cuEventDestroy_v2)(fork), CALL(cuEventDestroy_v2)(joined);
    CALL(cuStreamDestroy_v2)(a), CALL(cuStreamDestroy_v2)(b);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_capture_errors)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream a, b;
    cu_event e;
    cu_graph g = NULL;
    cu_ptr p = zeroed(8), q = 0;
    MG_CHECK_EQ(CALL(cuStreamCreate)(&a, 0u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&b, 1u), 0);
    MG_CHECK_EQ(CALL(cuEventCreate)(&e, 2u), 0);
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)((cu_stream)NULL, 0), CUE_STREAM_CAPTURE_UNSUPPORTED);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), CUE_ILLEGAL_STATE);
    /* unjoined work */
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, 0), 0);
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, 0), CUE_ILLEGAL_STATE);
    launch_by(m, "add", a, p, 1, 1);
    MG_CHECK_EQ(CALL(cuEventRecord)(e, a), 0);
    MG_CHECK_EQ(CALL(cuEventQuery)(e), CUE_CAPTURED_EVENT);
    MG_CHECK_EQ(CALL(cuStreamWaitEvent)(b, e, 0u), 0);
    launch_by(m, "add", b, p, 1, 1);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), CUE_STREAM_CAPTURE_UNJOINED);
    MG_CHECK(!g);
    /* waiting for a stream that captures */
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, 0), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(a), CUE_STREAM_CAPTURE_UNSUPPORTED);
    void *params[] = {&p, &p, &p};
    MG_CHECK_EQ(CALL(cuLaunchKernel)(func(m, "add"), 1u, 1u, 1u, 1u, 1u, 1u, 0u, a, params, (void **)NULL),
                CUE_STREAM_CAPTURE_INVALIDATED);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), CUE_STREAM_CAPTURE_INVALIDATED);
    /* the legacy stream while a blocking stream captures */
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, 0), 0);
    MG_CHECK_EQ(CALL(cuMemcpyDtoH_v2)(&q, p, (size_t)4), CUE_STREAM_CAPTURE_IMPLICIT);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), CUE_STREAM_CAPTURE_INVALIDATED);
    /* allocation: forbidden in global mode, allowed in a relaxed capture */
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, 0), 0);
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&q, (size_t)4), CUE_STREAM_CAPTURE_UNSUPPORTED);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), CUE_STREAM_CAPTURE_INVALIDATED);
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, (int)CUCAPTURE_RELAXED), 0);
    MG_CHECK_EQ(CALL(cuMemAlloc_v2)(&q, (size_t)4), 0);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), 0);
    MG_CHECK(g != NULL);
    CALL(cuGraphDestroy)(g);
    CALL(cuMemFree_v2)(q);
    /* an event from outside */
    MG_CHECK_EQ(CALL(cuEventRecord)(e, b), 0);
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(a, 0), 0);
    MG_CHECK_EQ(CALL(cuStreamWaitEvent)(a, e, 0u), CUE_STREAM_CAPTURE_ISOLATION);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(a, &g), CUE_STREAM_CAPTURE_INVALIDATED);
    MG_CHECK_EQ(CALL(cuCtxSynchronize)(), 0);
    CALL(cuEventDestroy_v2)(e);
    CALL(cuStreamDestroy_v2)(a), CALL(cuStreamDestroy_v2)(b);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_graph_update)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream s;
    cu_graph g[3];
    cu_graph_exec x;
    cu_ptr p = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    for (uint32_t i = 0; i < 3; i++) {
        MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(s, 0), 0);
        launch_by(m, "add", s, p, 1, i + 1);
        if (i == 2) launch_by(m, "add", s, p, 1, 1);
        MG_CHECK_EQ(CALL(cuStreamEndCapture)(s, &g[i]), 0);
    }
    struct cu_update_info info;
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g[0], 0ull), 0);
    MG_CHECK_EQ(CALL(cuGraphExecUpdate_v2)(x, g[1], &info), 0);
    MG_CHECK_EQ(CALL(cuGraphExecUpdate_v2)(x, g[2], &info), CUE_GRAPH_EXEC_UPDATE_FAILURE);
    MG_CHECK_EQ(info.result, CUUPDATE_TOPOLOGY);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(value(p), 2);
    for (uint32_t i = 0; i < 3; i++) CALL(cuGraphDestroy)(g[i]);
    CALL(cuGraphExecDestroy)(x);
    CALL(cuStreamDestroy_v2)(s);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_graph_memory_nodes)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream s;
    cu_graph g;
    cu_graph_exec x;
    cu_ptr q = 0, out = zeroed(4);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(s, 0), 0);
    MG_CHECK_EQ(CALL(cuMemAllocAsync)(&q, (size_t)64, s), 0);
    MG_CHECK_EQ(CALL(cuMemsetD32Async)(q, 5u, (size_t)16, s), 0);
    launch_by(m, "add", s, q, 16, 4);
    MG_CHECK_EQ(CALL(cuMemcpyDtoDAsync_v2)(out, q + 60, (size_t)4, s), 0);
    MG_CHECK_EQ(CALL(cuMemFreeAsync)(q, s), 0);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(s, &g), 0);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(g), 0);
    for (int i = 0; i < 3; i++) MG_CHECK_EQ(CALL(cuGraphLaunch)(x, s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(value(out), 9);
    MG_CHECK_EQ(CALL(cuGraphExecDestroy)(x), 0);
    MG_CHECK_EQ(CALL(cuMemcpyDtoH_v2)(&g, q, (size_t)4),
                CUE_INVALID_VALUE); /* went with the last graph that named it */
    CALL(cuStreamDestroy_v2)(s);
    CALL(cuMemFree_v2)(out);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_pool_counts_what_is_used)
{
    start_driver();
    cu_pool pool;
    cu_ptr a, b;
    cu_stream s;
    uint64_t used = 1, high = 0;
    struct cu_pool_props props = {.alloc_type = 1, .location = {CULOC_DEVICE, 0}};
    MG_CHECK_EQ(CALL(cuMemPoolCreate)(&pool, &props), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    MG_CHECK_EQ(CALL(cuMemAllocFromPoolAsync)(&a, (size_t)1000, pool, s), 0);
    MG_CHECK_EQ(CALL(cuMemAllocFromPoolAsync)(&b, (size_t)24, pool, s), 0);
    MG_CHECK_EQ(CALL(cuMemFreeAsync)(a, s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(CALL(cuMemPoolGetAttribute)(pool, (int)CUPOOL_USED_CURRENT, &used), 0);
    MG_CHECK_EQ(CALL(cuMemPoolGetAttribute)(pool, (int)CUPOOL_USED_HIGH, &high), 0);
    MG_CHECK_EQ(used, 24);
    MG_CHECK_EQ(high, 1024);
    MG_CHECK_EQ(CALL(cuMemFreeAsync)(a, s), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(b), 0);
    MG_CHECK_EQ(CALL(cuMemPoolDestroy)(pool), 0);
    CALL(cuStreamDestroy_v2)(s);
}

static int destroyed;
static void destroy(void *p)
{
    destroyed += *(int *)p;
}

MG_TEST(driver_user_objects_live_as_long_as_graphs)
{
    start_driver();
    cu_graph g;
    cu_graph_exec x;
    cu_user_object u;
    int one = 1;
    destroyed = 0;
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    MG_CHECK_EQ(CALL(cuUserObjectCreate)(&u, &one, destroy, 1u, 1u), 0);
    MG_CHECK_EQ(CALL(cuGraphRetainUserObject)(g, u, 1u, 1u), 0);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    MG_CHECK_EQ(CALL(cuGraphDestroy)(g), 0);
    MG_CHECK_EQ(destroyed, 0);
    MG_CHECK_EQ(CALL(cuGraphExecDestroy)(x), 0);
    MG_CHECK_EQ(destroyed, 1);
}

static int n_noted;
static void take_note(void *user, const struct mg_launch_done *done)
{
    (void)done;
    __atomic_add_fetch(&n_noted, *(int *)user, __ATOMIC_RELAXED); /* branches of a graph run at the same time */
}

MG_TEST(driver_graph_replays_call_the_note)
{
    start_driver();
    cu_module m = load_fake();
    cu_stream s;
    cu_graph g;
    cu_graph_exec x;
    cu_ptr p = zeroed(4);
    int one = 1;
    n_noted = 0;
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamBeginCapture_v2)(s, 0), 0);
    mg_driver_note_next_launch(take_note, &one);
    launch_by(m, "add", s, p, 1, 1);
    launch_by(m, "add", s, p, 1, 1);
    MG_CHECK_EQ(CALL(cuStreamEndCapture)(s, &g), 0);
    struct add_args a = {p, 1, 1};
    mg_driver_note_next_launch(take_note, &one);
    cu_node n = kernel_node(g, m, "add", &a, NULL, 0);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    for (int i = 0; i < 4; i++) MG_CHECK_EQ(CALL(cuGraphLaunch)(x, s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(n_noted, 8);
    void *params[] = {&a.p, &a.n, &a.by};
    struct cu_kernel_node k = {.func = func(m, "add"),
                               .grid_x = 1,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = 1,
                               .block_y = 1,
                               .block_z = 1,
                               .params = params};
    MG_CHECK_EQ(CALL(cuGraphExecKernelNodeSetParams_v2)(x, n, &k), 0); /* without a note: none from now on */
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(n_noted, 9);
    CALL(cuGraphExecDestroy)(x), CALL(cuGraphDestroy)(g);
    CALL(cuStreamDestroy_v2)(s);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}

MG_TEST(driver_graph_uses_freed_addresses_again)
{
    start_driver();
    cu_graph g;
    cu_graph_exec x;
    cu_node a, free_a, b, c;
    struct cu_alloc_node want = {.props = {.alloc_type = 1, .location = {CULOC_DEVICE, 0}}, .bytes = 4096},
                         again = want, beside = want, other = want;
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    MG_CHECK_EQ(CALL(cuGraphAddMemAllocNode)(&a, g, (cu_node *)NULL, (size_t)0, &want), 0);
    MG_CHECK_EQ(CALL(cuGraphAddMemFreeNode)(&free_a, g, &a, (size_t)1, want.ptr), 0);
    MG_CHECK_EQ(CALL(cuGraphAddMemAllocNode)(&c, g, &a, (size_t)1, &beside), 0); /* while a is held */
    MG_CHECK(beside.ptr != want.ptr);
    MG_CHECK_EQ(CALL(cuGraphAddMemAllocNode)(&b, g, &free_a, (size_t)1, &again), 0);
    MG_CHECK_EQ(again.ptr, want.ptr);
    MG_CHECK_EQ(CALL(cuGraphAddMemAllocNode)(&c, g, &free_a, (size_t)1, &other), 0); /* b has it now */
    MG_CHECK(other.ptr != want.ptr);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), CUE_INVALID_VALUE); /* b was left behind */
    MG_CHECK_EQ(CALL(cuMemFree_v2)(again.ptr), 0);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(beside.ptr), 0);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(other.ptr), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x, (cu_stream)NULL), 0);
    CALL(cuGraphExecDestroy)(x), CALL(cuGraphDestroy)(g);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void pass_gate(void *user)
{
    (void)user;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static uint64_t graph_bytes(int attr)
{
    uint64_t v = 0;
    MG_CHECK_EQ(CALL(cuDeviceGetGraphMemAttribute)((cu_device)0, attr, &v), 0);
    return v;
}

/* Allocates, runs a host function, frees (or does not). */
static cu_graph_exec holder(uint64_t bytes, bool frees, cu_ptr *at)
{
    cu_graph g;
    cu_graph_exec x = NULL;
    cu_node a, h, f;
    struct cu_alloc_node want = {.props = {.alloc_type = 1, .location = {CULOC_DEVICE, 0}}, .bytes = bytes};
    struct cu_host_node host = {.fn = pass_gate};
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    MG_CHECK_EQ(CALL(cuGraphAddMemAllocNode)(&a, g, (cu_node *)NULL, (size_t)0, &want), 0);
    MG_CHECK_EQ(CALL(cuGraphAddHostNode)(&h, g, &a, (size_t)1, &host), 0);
    if (frees) MG_CHECK_EQ(CALL(cuGraphAddMemFreeNode)(&f, g, &h, (size_t)1, want.ptr), 0);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    CALL(cuGraphDestroy)(g);
    *at = want.ptr;
    return x;
}

MG_TEST(driver_graph_memory_is_counted_as_physical_memory)
{
    enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };
    const uint64_t MB = 1 << 20;
    start_driver();
    cu_stream s, t;
    cu_ptr p[4];
    uint64_t zero = 0, one = 1;
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    MG_CHECK_EQ(CALL(cuStreamCreate)(&t, 1u), 0);
    cu_graph_exec x[4] = {holder(4 * MB, true, &p[0]), holder(4 * MB, true, &p[1]), holder(3 * MB, true, &p[2]),
                          holder(MB, false, &p[3])};
    MG_CHECK_EQ(CALL(cuDeviceGraphMemTrim)((cu_device)0), 0);
    MG_CHECK_EQ(graph_bytes(USED), 0); /* nothing was launched */
    pthread_mutex_lock(&gate);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x[0], s), 0);
    MG_CHECK_EQ(graph_bytes(USED), 4 * MB);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x[0], s), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x[1], s), 0); /* behind the others: the same memory */
    MG_CHECK_EQ(graph_bytes(USED), 4 * MB);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x[2], t), 0); /* beside them: its own, in pages of 2 MB */
    MG_CHECK_EQ(graph_bytes(USED), 8 * MB);
    MG_CHECK_EQ(CALL(cuDeviceGraphMemTrim)((cu_device)0), 0); /* all of it is busy */
    MG_CHECK_EQ(graph_bytes(RESERVED), 8 * MB);
    pthread_mutex_unlock(&gate);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(t), 0);
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x[1], t), 0); /* memory of a graph that has ended serves any stream */
    MG_CHECK_EQ(CALL(cuGraphLaunch)(x[3], s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    MG_CHECK_EQ(CALL(cuStreamSynchronize)(t), 0);
    MG_CHECK_EQ(graph_bytes(USED), 8 * MB);
    MG_CHECK_EQ(CALL(cuDeviceGraphMemTrim)((cu_device)0), 0); /* x[3] has not freed its */
    MG_CHECK_EQ(graph_bytes(USED), 4 * MB);
    MG_CHECK_EQ(CALL(cuMemFree_v2)(p[3]), 0);
    MG_CHECK_EQ(graph_bytes(USED), 4 * MB);
    MG_CHECK_EQ(CALL(cuDeviceGraphMemTrim)((cu_device)0), 0);
    MG_CHECK_EQ(graph_bytes(USED), 0);
    MG_CHECK(graph_bytes(USED_HIGH) >= 8 * MB && graph_bytes(RESERVED_HIGH) >= 8 * MB);
    MG_CHECK_EQ(CALL(cuDeviceSetGraphMemAttribute)((cu_device)0, (int)USED_HIGH, &one), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuDeviceSetGraphMemAttribute)((cu_device)0, (int)USED, &zero), CUE_INVALID_VALUE);
    MG_CHECK_EQ(CALL(cuDeviceSetGraphMemAttribute)((cu_device)0, (int)USED_HIGH, &zero), 0);
    MG_CHECK_EQ(graph_bytes(USED_HIGH), 0);
    MG_CHECK(graph_bytes(RESERVED_HIGH) >= 8 * MB);
    for (int i = 0; i < 4; i++) CALL(cuGraphExecDestroy)(x[i]);
    CALL(cuStreamDestroy_v2)(s), CALL(cuStreamDestroy_v2)(t);
}

static int n_dropped;
static void note_dropped(void *user)
{
    n_dropped += *(int *)user;
}

MG_TEST(driver_graph_drops_a_note_when_nothing_can_call_it)
{
    start_driver();
    cu_module m = load_fake();
    cu_graph g, copy;
    cu_graph_exec x;
    cu_stream s;
    cu_ptr p = zeroed(4);
    int one = 1, ten = 10, hundred = 100;
    struct add_args a = {p, 1, 1};
    void *params[] = {&a.p, &a.n, &a.by};
    struct cu_kernel_node k = {.func = func(m, "add"),
                               .grid_x = 1,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = 1,
                               .block_y = 1,
                               .block_z = 1,
                               .params = params};
    n_noted = n_dropped = 0;
    MG_CHECK_EQ(CALL(cuStreamCreate)(&s, 1u), 0);
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    mg_driver_note_next_node(take_note, &one, note_dropped);
    cu_node n = kernel_node(g, m, "add", &a, NULL, 0);
    MG_CHECK_EQ(CALL(cuGraphClone)(&copy, g), 0);
    MG_CHECK_EQ(CALL(cuGraphInstantiateWithFlags)(&x, g, 0ull), 0);
    for (int i = 0; i < 3; i++) {
        mg_driver_note_next_node(take_note, &ten, note_dropped);
        MG_CHECK_EQ(CALL(cuGraphExecKernelNodeSetParams_v2)(x, n, &k), 0);
        MG_CHECK_EQ(CALL(cuGraphLaunch)(x, s), 0);
        MG_CHECK_EQ(CALL(cuStreamSynchronize)(s), 0);
    }
    MG_CHECK_EQ(n_noted, 3 * 10);
    MG_CHECK_EQ(n_dropped, 2 * 10); /* the last one is the executable graph's, the first the node's */
    CALL(cuGraphExecDestroy)(x);
    mg_driver_note_next_node(take_note, &hundred, note_dropped); /* nobody takes it */
    mg_driver_note_next_launch(NULL, NULL);
    MG_CHECK_EQ(n_dropped, 3 * 10 + 100);
    CALL(cuGraphDestroy)(g);
    MG_CHECK_EQ(n_dropped, 3 * 10 + 100); /* the copy has it still */
    CALL(cuGraphDestroy)(copy);
    MG_CHECK_EQ(n_dropped, 3 * 10 + 100 + 1);
    k.grid_x = 0; /* not a node: dropped at once */
    MG_CHECK_EQ(CALL(cuGraphCreate)(&g, 0u), 0);
    mg_driver_note_next_node(take_note, &one, note_dropped);
    MG_CHECK(CALL(cuGraphAddKernelNode_v2)(&n, g, (cu_node *)NULL, (size_t)0, &k) != 0);
    MG_CHECK_EQ(n_dropped, 3 * 10 + 100 + 2);
    CALL(cuGraphDestroy)(g);
    CALL(cuStreamDestroy_v2)(s);
    CALL(cuMemFree_v2)(p);
    CALL(cuModuleUnload)(m);
}
