/* Events inside kernels for the time line: nested ones, lanes that end apart, two streams at once, replays of a graph. */
#include <cstdio>
#include <cstring>
#include <margay/event.h>

enum { CTAS = 4, THREADS = 64, ROUNDS = 5, REPLAYS = 4 };

__global__ void nest(int *out)
{
    int sum = 0;
    out += blockIdx.x * THREADS;
    mg_event_begin(outer);
    for (int k = 0; k < ROUNDS; k++) {
        mg_event_begin(inner);
        sum += out[threadIdx.x] + k;
        __syncthreads();
        mg_event_end(inner);
    }
    mg_event_end(outer);
    out[threadIdx.x] = sum;
}

/* Odd lanes end first: the even ones have a loop yet. */
__global__ void part(int *out)
{
    int sum = 1;
    mg_event_begin(half);
    if (threadIdx.x & 1) {
        mg_event_end(half);
    } else {
        for (int k = 0; k < (out[threadIdx.x] & 3) + 3; k++) sum = sum * 3 + k;
        mg_event_end(half);
    }
    out[threadIdx.x] += sum;
}

int main()
{
    int *buffers[2], host[CTAS * THREADS];
    unsigned total = 0;
    cudaStream_t streams[2];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    for (int i = 0; i < 2; i++) {
        cudaMalloc(&buffers[i], sizeof host);
        cudaMemset(buffers[i], 0, sizeof host);
        cudaStreamCreate(&streams[i]);
    }
    for (int i = 0; i < 6; i++) nest<<<CTAS, THREADS, 0, streams[i & 1]>>>(buffers[i & 1]);
    cudaDeviceSynchronize(); /* code of a kernel that was not met before is loaded when no other stream is busy */
    part<<<1, THREADS, 0, streams[0]>>>(buffers[0]);
    cudaDeviceSynchronize();
    cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeGlobal);
    nest<<<CTAS, THREADS, 0, streams[1]>>>(buffers[1]);
    part<<<1, THREADS, 0, streams[1]>>>(buffers[1]);
    cudaStreamEndCapture(streams[1], &graph);
    cudaGraphInstantiate(&exec, graph, NULL, NULL, 0);
    for (int i = 0; i < REPLAYS; i++) cudaGraphLaunch(exec, streams[1]);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    for (int i = 0; i < 2; i++) {
        cudaMemcpy(host, buffers[i], sizeof host, cudaMemcpyDeviceToHost);
        for (int k = 0; k < CTAS * THREADS; k++) total = total * 31 + (unsigned)host[k];
    }
    printf("%u\n", total);
    return 0;
}
