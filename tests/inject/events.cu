/* A program with markers of its own: nested, in a loop whose rounds differ by lane, one end without a begin, one begin
 * without an end. With an argument, one long kernel that ends when the host says so. */
#include <cstdio>
#ifdef PLAIN
#define mg_event_begin(name) ((void)0)
#define mg_event_end(name) ((void)0)
#else
#include <margay/event.h>
#endif

__constant__ float scale = 1;

__global__ void work(float *out, const float *in, int n)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    mg_event_begin(all);
    mg_event_begin(load);
    tile[threadIdx.x] = i < n ? in[i] : 0;
    mg_event_end(load);
    __syncthreads();
    mg_event_begin(sum);
    for (int k = 0; k < (threadIdx.x & 1 ? 20 : 10); k++) {
        mg_event_begin(round);
        s += tile[(threadIdx.x + k) & 255] * k;
        mg_event_end(round);
    }
    mg_event_end(sum);
    if (threadIdx.x == 3) mg_event_end(stray);
    if (threadIdx.x == 4) mg_event_begin(open);
    mg_event_end(all);
    if (i < n) out[i] = s * scale;
}

__global__ void spin(volatile int *go)
{
    while (!*go) {
        mg_event_begin(turn);
        mg_event_end(turn);
    }
}

int main(int argc, char **)
{
    float *in, *out, host[1000];
    int *go;
    for (int i = 0; i < 1000; i++) host[i] = (float)(i % 7);
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    if (argc > 1) { /* until a line comes */
        cudaHostAlloc(&go, sizeof *go, cudaHostAllocMapped);
        *go = 0;
        spin<<<2, 32>>>(go);
        cudaStreamQuery(0);
        puts("runs");
        fflush(stdout);
        getchar();
        *(volatile int *)go = 1;
    } else {
        for (int i = 0; i < 3; i++) work<<<4, 256>>>(out, in, 1000);
    }
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    double sum = 0;
    for (int i = 0; i < 1000; i++) sum += host[i];
    printf("%.1f\n", argc > 1 ? 0 : sum);
    return 0;
}
