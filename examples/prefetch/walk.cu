// Few threads that walk through much memory, one word after another: their time is that of memory's latency.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void walk(const unsigned *in, unsigned *out, int rounds)
{
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x, s = 1;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) s = s * 1664525u + in[(size_t)i * all + me];
    out[me] = s;
}

// walk [ROUNDS] [LAUNCHES]
int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 4096, launches = argc > 2 ? atoi(argv[2]) : 40, threads = 132 * 64;
    unsigned *in, *out, *got = new unsigned[threads], bad = 0;
    cudaMalloc(&in, sizeof(unsigned) * (size_t)rounds * threads);
    cudaMalloc(&out, sizeof(unsigned) * threads);
    cudaMemset(in, 0, sizeof(unsigned) * (size_t)rounds * threads);
    for (int k = 0; k < launches; k++) walk<<<132, 64>>>(in, out, rounds);
    cudaMemcpy(got, out, sizeof(unsigned) * threads, cudaMemcpyDeviceToHost);
    unsigned want = 1;
    for (int i = 0; i < rounds; i++) want *= 1664525u;
    for (int i = 0; i < threads; i++) bad += got[i] != want;
    printf("walk: %s\n", bad ? "WRONG" : "PASSED");
    return bad != 0;
}
