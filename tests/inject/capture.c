/* What a capture has to get right, by the driver's interface: memory of every kind, variables and their addresses in
 * memory, copies and memsets in one to three dimensions, streams and events, graphs by capture and by node, pools.
 * Prints one line a part with a sum that a host loop confirms. */
#include "adder.h"

D(cuModuleGetGlobal_v2, cu_ptr *, size_t *, cu_module, const char *)
D(cuModuleUnload, cu_module)
D(cuMemHostGetDevicePointer_v2, cu_ptr *, void *, unsigned)
D(cuMemAllocPitch_v2, cu_ptr *, size_t *, size_t, size_t, unsigned)
D(cuMemcpyHtoD_v2, cu_ptr, const void *, size_t)
D(cuMemcpyDtoD_v2, cu_ptr, cu_ptr, size_t)
D(cuMemcpy2D_v2, const struct cu_memcpy2d *)
D(cuMemcpy3D_v2, const struct cu_memcpy3d *)
D(cuArray3DCreate_v2, cu_array *, const struct cu_array3d_desc *)
D(cuArrayDestroy, cu_array)
D(cuMemsetD32_v2, cu_ptr, unsigned, size_t)
D(cuMemsetD2D8_v2, cu_ptr, size_t, unsigned char, size_t, size_t)
D(cuCtxSynchronize, void)
D(cuEventCreate, cu_event *, unsigned)
D(cuEventRecord, cu_event, cu_stream)
D(cuStreamWaitEvent, cu_stream, cu_event, unsigned)
D(cuGraphExecDestroy, cu_graph_exec)
D(cuGraphGetNodes, cu_graph, cu_node *, size_t *)
D(cuGraphNodeGetType, cu_node, int *)
D(cuGraphKernelNodeGetParams_v2, cu_node, struct cu_kernel_node *)
D(cuGraphExecKernelNodeSetParams_v2, cu_graph_exec, cu_node, const struct cu_kernel_node *)

static cu_function chase;
static cu_module module;

static void say(const char *name, const unsigned *p, unsigned want)
{
    unsigned long long sum = 0;
    for (unsigned i = 0; i < N; i++) sum += p[i];
    printf("%s: %llu %s\n", name, sum, sum == (unsigned long long)want * N ? "ok" : "WRONG");
}

static void plain_memory(void)
{
    unsigned host[N];
    cu_ptr a, b;
    for (int round = 0; round < 3; round++) { /* the second round's memory was someone's before */
        OK(cuMemAlloc_v2(&a, sizeof host));
        OK(cuMemAlloc_v2(&b, sizeof host));
        OK(cuMemsetD32_v2(a, 5, N));
        run_add(a, 2, NULL);
        OK(cuMemcpyDtoD_v2(b, a, sizeof host));
        run_add(b, 1, NULL);
        OK(cuMemcpyDtoH_v2(host, b, sizeof host));
        OK(cuMemFree_v2(a));
        OK(cuMemFree_v2(b));
    }
    say("plain", host, 8);
}

static void host_memory(void)
{
    unsigned *pinned;
    cu_ptr managed, there;
    OK(cuMemAllocManaged(&managed, N * 4, CUATTACH_GLOBAL));
    OK(cuMemHostAlloc((void **)&pinned, N * 4, CUHOST_DEVICEMAP));
    OK(cuMemHostGetDevicePointer_v2(&there, pinned, 0));
    unsigned *m = (unsigned *)(uintptr_t)managed;
    for (unsigned i = 0; i < N; i++) m[i] = 10, pinned[i] = 20;
    for (int k = 0; k < 2; k++) {
        run_add(managed, 1, NULL);
        run_add(there, 1, NULL);
        OK(cuCtxSynchronize());
        for (unsigned i = 0; i < N; i++) m[i] += 100, pinned[i] += 100; /* no call: seen before the next launch */
    }
    run_add(managed, 0, NULL);
    run_add(there, 0, NULL);
    OK(cuCtxSynchronize());
    say("managed", m, 212);
    say("pinned", pinned, 222);
    OK(cuMemFree_v2(managed));
    OK(cuMemFreeHost(pinned));
}

/* The kernel follows an address that the host read of a variable and stored in memory. */
static void variables(void)
{
    cu_ptr table, cell, out;
    size_t bytes;
    unsigned value = 41, got[N];
    OK(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    OK(cuMemcpyHtoD_v2(table, &value, 4));
    OK(cuMemAlloc_v2(&cell, 8));
    OK(cuMemAlloc_v2(&out, N * 4));
    OK(cuMemcpyHtoD_v2(cell, &table, 8));
    OK(cuMemsetD32_v2(out, 0, N));
    OK(cuLaunchKernel(chase, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&cell, &out}, NULL));
    OK(cuMemcpyDtoH_v2(got, out, N * 4));
    printf("variable: %u %s\n", got[0], got[0] == 41 ? "ok" : "WRONG");
    OK(cuMemFree_v2(cell));
    OK(cuMemFree_v2(out));
}

static void boxes(void)
{
    cu_ptr rows;
    cu_array array;
    size_t pitch;
    unsigned host[N];
    for (unsigned i = 0; i < N; i++) host[i] = 3;
    OK(cuMemAllocPitch_v2(&rows, &pitch, 400, 10, 4)); /* N words in 10 rows */
    OK(cuMemsetD2D8_v2(rows, pitch, 0, 400, 10));
    OK(cuMemcpy2D_v2(&(struct cu_memcpy2d){.src_type = CUMEM_HOST,
                                           .src_host = host,
                                           .src_pitch = 400,
                                           .dst_type = CUMEM_DEVICE,
                                           .dst_device = rows,
                                           .dst_pitch = pitch,
                                           .width = 400,
                                           .height = 10}));
    OK(cuArray3DCreate_v2(&array, &(struct cu_array3d_desc){100, 10, 0, CUAD_UINT32, 1, 0}));
    OK(cuMemcpy3D_v2(&(struct cu_memcpy3d){.src_type = CUMEM_DEVICE,
                                           .src_device = rows,
                                           .src_pitch = pitch,
                                           .src_height = 10,
                                           .dst_type = CUMEM_ARRAY,
                                           .dst_array = array,
                                           .width = 400,
                                           .height = 10,
                                           .depth = 1}));
    cu_ptr flat;
    OK(cuMemAlloc_v2(&flat, N * 4));
    OK(cuMemcpy3D_v2(&(struct cu_memcpy3d){.src_type = CUMEM_ARRAY,
                                           .src_array = array,
                                           .dst_type = CUMEM_DEVICE,
                                           .dst_device = flat,
                                           .dst_pitch = 400,
                                           .dst_height = 10,
                                           .width = 400,
                                           .height = 10,
                                           .depth = 1}));
    run_add(flat, 4, NULL);
    OK(cuMemcpyDtoH_v2(host, flat, N * 4));
    say("boxes", host, 7);
    OK(cuMemFree_v2(rows));
    OK(cuMemFree_v2(flat));
    OK(cuArrayDestroy(array));
}

static void streams(void)
{
    cu_stream s[2];
    cu_event e;
    cu_ptr p;
    unsigned host[N], back[N];
    for (unsigned i = 0; i < N; i++) host[i] = 1;
    OK(cuStreamCreate(&s[0], CUSTREAM_NON_BLOCKING));
    OK(cuStreamCreate(&s[1], CUSTREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CUEVENT_DISABLE_TIMING));
    OK(cuMemAllocAsync(&p, N * 4, s[0]));
    OK(cuMemcpyHtoDAsync_v2(p, host, N * 4, s[0]));
    for (int k = 0; k < 4; k++) {
        run_add(p, 1, s[k % 2]);
        OK(cuEventRecord(e, s[k % 2]));
        OK(cuStreamWaitEvent(s[1 - k % 2], e, 0));
    }
    OK(cuMemcpyDtoHAsync_v2(back, p, N * 4, s[0]));
    OK(cuMemFreeAsync(p, s[0]));
    OK(cuStreamSynchronize(s[0]));
    say("streams", back, 5);
}

static void graphs(void)
{
    cu_stream s;
    cu_graph g;
    cu_graph_exec x;
    cu_ptr p;
    unsigned host[N], back[N], two = 2, n = N;
    for (unsigned i = 0; i < N; i++) host[i] = 0;
    OK(cuMemAlloc_v2(&p, N * 4));
    OK(cuStreamCreate(&s, CUSTREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(s, CUCAPTURE_THREAD_LOCAL));
    OK(cuMemcpyHtoDAsync_v2(p, host, N * 4, s));
    run_add(p, 1, s);
    run_add(p, 10, s);
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    cu_node nodes[8];
    size_t count = 8;
    int type;
    OK(cuGraphGetNodes(g, nodes, &count));
    for (size_t k = 0; k < count; k++) {
        struct cu_kernel_node params;
        OK(cuGraphNodeGetType(nodes[k], &type));
        if (type != CUNODE_KERNEL) continue;
        OK(cuGraphKernelNodeGetParams_v2(nodes[k], &params));
        if (*(unsigned *)params.params[1] != 10) continue;
        params.params = (void *[]){&p, &two, &n};
        params.extra = NULL;
        OK(cuGraphExecKernelNodeSetParams_v2(x, nodes[k], &params)); /* + 10 becomes + 2 */
    }
    for (unsigned i = 0; i < N; i++) host[i] = 100; /* copied anew by the next launch */
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, N * 4));
    say("graphs", back, 103);
    OK(cuGraphExecDestroy(x));
    OK(cuMemFree_v2(p));
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    module = load(argv[1]);
    OK(cuModuleGetFunction(&chase, module, "chase"));
    plain_memory();
    if (argc < 3) /* "device": memory of the device alone */
        host_memory();
    variables();
    boxes();
    streams();
    graphs();
    OK(cuModuleUnload(module));
    return 0;
}
