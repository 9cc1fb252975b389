// What tool trace has to tell of: generic pointers into two spaces, atomics, barriers, two streams, copies, a graph that
// runs three times. Every number is known by closed form (trace.sh).
#include <cstdio>
#include <cuda_runtime.h>

enum { N = 256, CTAS = 4 };

__device__ __noinline__ void put(int *p, int v)
{
    *p = v;
}

// Even lanes write to shared, odd ones to global memory, through one generic store.
__global__ void generic(int *out)
{
    __shared__ int s[N];
    int t = threadIdx.x, i = blockIdx.x * N + t;
    put(t & 1 ? out + i : s + t, i);
    __syncthreads();
    if (!(t & 1)) out[i] = s[t];
}

__global__ void add(int *sum, const int *in)
{
    atomicAdd(sum + threadIdx.x % 8, in[blockIdx.x * N + threadIdx.x]);
}

__global__ void scale(int *a, int k)
{
    int i = blockIdx.x * N + threadIdx.x;
    a[i] *= k;
}

int main()
{
    int *a, *b, *sum, host[8], total = 0;
    cudaStream_t one, two;
    cudaMalloc(&a, CTAS * N * sizeof *a);
    cudaMalloc(&b, CTAS * N * sizeof *b);
    cudaMalloc(&sum, 8 * sizeof *sum);
    cudaStreamCreate(&one);
    cudaStreamCreate(&two);
    generic<<<CTAS, N>>>(a);
    cudaDeviceSynchronize();
    cudaMemcpyAsync(b, a, CTAS * N * sizeof *b, cudaMemcpyDeviceToDevice, one);
    cudaMemsetAsync(sum, 0, 8 * sizeof *sum, one);
    add<<<CTAS, N, 0, one>>>(sum, b);
    scale<<<CTAS, N, 0, two>>>(a, 2);
    cudaDeviceSynchronize();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
    cudaMemcpyAsync(a, b, CTAS * N * sizeof *a, cudaMemcpyDeviceToDevice, one);
    scale<<<CTAS, N, 0, one>>>(a, 3);
    cudaStreamEndCapture(one, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 3; i++) cudaGraphLaunch(exec, one);
    cudaStreamSynchronize(one);
    cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 8; i++) total += host[i];
    cudaFree(a);
    cudaFree(b);
    printf("%d %s\n", total, cudaGetErrorString(cudaGetLastError()));
    return total != CTAS * N * (CTAS * N - 1) / 2;
}
