// Three graphs: made inside of the profiler's range, outside, and captured outside but instantiated inside. All are replayed inside
// and outside.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

__global__ void early(int *a)
{
    atomicAdd(a, 1);
}

__global__ void between(int *a)
{
    atomicAdd(a, 1);
}

__global__ void late(int *a)
{
    atomicAdd(a, 1);
}

static cudaGraph_t capture(void (*kernel)(int *), int *a, cudaStream_t s)
{
    cudaGraph_t g;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    kernel<<<1, 32, 0, s>>>(a);
    cudaStreamEndCapture(s, &g);
    return g;
}

static cudaGraphExec_t make(cudaGraph_t g)
{
    cudaGraphExec_t x = 0;
    cudaGraphInstantiate(&x, g, 0);
    return x;
}

int main()
{
    int *a, n;
    cudaStream_t s;
    if (cudaMalloc(&a, 4) || cudaMemset(a, 0, 4) || cudaStreamCreate(&s)) return 1;
    cudaGraph_t graph = capture(between, a, s);
    cudaGraphExec_t all[3] = {make(capture(early, a, s))};
    cudaProfilerStart();
    all[1] = make(capture(late, a, s));
    all[2] = make(graph);
    for (int i = 0; i < 9; i++) cudaGraphLaunch(all[i % 3], s);
    cudaStreamSynchronize(s);
    cudaProfilerStop();
    for (int i = 0; i < 6; i++) cudaGraphLaunch(all[i % 3], s);
    late<<<1, 32, 0, s>>>(a);
    return cudaStreamSynchronize(s) || cudaMemcpy(&n, a, 4, cudaMemcpyDeviceToHost) || n != 16 * 32;
}
