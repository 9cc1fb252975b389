/* One thread makes graphs of what it has a stream capture, and launches them, while others launch, wait, and make and
 * destroy arrays with surfaces: neither may spoil the other's work. Results are compared with the host's. */
#include <pthread.h>

#include "adder.h"

D(cuArray3DCreate_v2, cu_array *, const struct cu_array3d_desc *)
D(cuArrayDestroy, cu_array)
D(cuSurfObjectCreate, cu_surf *, const struct cu_resource_desc *)
D(cuSurfObjectDestroy, cu_surf)
D(cuGraphExecDestroy, cu_graph_exec)
D(cuGraphDestroy, cu_graph)
D(cuMemcpyHtoD_v2, cu_ptr, const void *, size_t)

enum { THREADS = 4, ROUNDS = 60 };
static cu_ctx context;
static void by_graph(cu_ptr p, cu_stream s)
{
    cu_graph g;
    cu_graph_exec x;
    OK(cuStreamBeginCapture_v2(s, CUCAPTURE_THREAD_LOCAL));
    run_add(p, 1, s);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}

static void with_surface(cu_ptr p, cu_stream s)
{
    cu_array a;
    cu_surf surface;
    OK(cuArray3DCreate_v2(&a, &(struct cu_array3d_desc){64, 64, 0, CUAD_UINT32, 1, CUARRAY_SURFACE}));
    OK(cuSurfObjectCreate(&surface, &(struct cu_resource_desc){.type = CURES_ARRAY, .res.array.array = a}));
    run_add(p, 1, s);
    OK(cuStreamSynchronize(s));
    OK(cuSurfObjectDestroy(surface));
    OK(cuArrayDestroy(a));
}

static void *work(void *number)
{
    unsigned back[N], zeros[N] = {0}, wrong = 0;
    cu_ptr p;
    cu_stream s;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&s, CUSTREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&p, sizeof zeros));
    OK(cuMemcpyHtoD_v2(p, zeros, sizeof zeros));
    for (int k = 0; k < ROUNDS; k++) (number ? with_surface : by_graph)(p, s);
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    for (int i = 0; i < N; i++) wrong += back[i] != ROUNDS;
    printf("thread: %s\n", wrong ? "WRONG" : "ok");
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    cu_device d;
    if (argc < 2) return 2;
    OK(cuInit(0));
    OK(cuDeviceGet(&d, 0));
    OK(cuDevicePrimaryCtxRetain(&context, d));
    OK(cuCtxSetCurrent(context));
    load_here(argv[1]);
    for (uintptr_t k = 0; k < THREADS; k++) pthread_create(&thread[k], NULL, work, (void *)k);
    for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
    return 0;
}
