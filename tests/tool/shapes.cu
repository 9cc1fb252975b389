/* Kernels whose CTAs differ in a known way, and kernels whose bytes caches serve or not. Usage: shapes KERNEL CTAS */
#include <cstdio>
#include <cstdlib>
#include <cstring>

__device__ unsigned work(unsigned rounds)
{
    unsigned v = threadIdx.x;
#pragma unroll 1
    for (unsigned i = 0; i < rounds; i++) v = v * 5 + i;
    return v;
}
__global__ void rising(unsigned *o) { o[threadIdx.x] = work(20 * (blockIdx.x + 1)); }
__global__ void falling(unsigned *o) { o[threadIdx.x] = work(20 * (gridDim.x - blockIdx.x)); }
/* CTA (5,1,0) of a grid of two rows, and its neighbour half as long */
__global__ void one(unsigned *o) { o[threadIdx.x] = work(blockIdx.y == 1 && blockIdx.x == 5 ? 4000 : 10); }
__global__ void every_third(unsigned *o) { o[threadIdx.x] = work(blockIdx.x % 3 ? 10 : 1000); }
__global__ void first(unsigned *o) { o[threadIdx.x] = work(blockIdx.x ? 50 : 400); }
__global__ void even(unsigned *o) { o[threadIdx.x] = work(300); }
/* Every CTA reads the same 64 KiB, or each its own. */
__global__ void cached(unsigned *o, const uint4 *in)
{
    unsigned v = 0;
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) v += in[i].x ^ in[i].w;
    o[threadIdx.x] = v;
}
__global__ void streamed(unsigned *o, const uint4 *in)
{
    unsigned v = 0;
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) v += in[blockIdx.x * 4096 + i].x ^ in[blockIdx.x * 4096 + i].w;
    o[threadIdx.x] = v;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    int n = atoi(argv[2]);
    const char *k = argv[1];
    unsigned *o;
    uint4 *in;
    size_t bytes = !strcmp(k, "streamed") ? (size_t)n << 16 : 65536;
    if (cudaMalloc(&o, 4096) || cudaMalloc(&in, bytes) || cudaMemset(in, 1, bytes)) return 1;
    if (!strcmp(k, "rising")) rising<<<n, 32>>>(o);
    if (!strcmp(k, "falling")) falling<<<n, 32>>>(o);
    if (!strcmp(k, "one")) one<<<dim3(n / 2, 2), 32>>>(o);
    if (!strcmp(k, "every_third")) every_third<<<n, 32>>>(o);
    cudaFuncSetAttribute(first, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000); /* two CTAs a multiprocessor */
    if (!strcmp(k, "first")) first<<<n, 64, 100000>>>(o);
    if (!strcmp(k, "even")) even<<<n, 32>>>(o);
    if (!strcmp(k, "cached")) cached<<<n, 128>>>(o, in);
    if (!strcmp(k, "streamed")) streamed<<<n, 128>>>(o, in);
    return cudaDeviceSynchronize() != cudaSuccess;
}
