// Two graphs, one instantiated inside of the profiler's range and one outside; both are replayed inside and outside.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

__global__ void early(int *a)
{
    atomicAdd(a, 1);
}

__global__ void late(int *a)
{
    atomicAdd(a, 1);
}

static cudaGraphExec_t make(void (*kernel)(int *), int *a, cudaStream_t s)
{
    cudaGraph_t g;
    cudaGraphExec_t x = 0;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    kernel<<<1, 32, 0, s>>>(a);
    cudaStreamEndCapture(s, &g);
    cudaGraphInstantiate(&x, g, 0);
    return x;
}

int main()
{
    int *a, n;
    cudaStream_t s;
    if (cudaMalloc(&a, 4) || cudaMemset(a, 0, 4) || cudaStreamCreate(&s)) return 1;
    cudaGraphExec_t before = make(early, a, s);
    cudaProfilerStart();
    cudaGraphExec_t inside = make(late, a, s);
    for (int i = 0; i < 3; i++) cudaGraphLaunch(before, s), cudaGraphLaunch(inside, s);
    cudaStreamSynchronize(s);
    cudaProfilerStop();
    for (int i = 0; i < 2; i++) cudaGraphLaunch(before, s), cudaGraphLaunch(inside, s);
    late<<<1, 32, 0, s>>>(a);
    return cudaStreamSynchronize(s) || cudaMemcpy(&n, a, 4, cudaMemcpyDeviceToHost) || n != 11 * 32;
}
