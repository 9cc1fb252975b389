// rows: each lane of a warp reads a row of 64 words. same: each CTA reads the same 8 words.
#include <cstdlib>
#include <cstring>

__global__ void rows(const unsigned *in, unsigned *out)
{
    unsigned sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; k++) sum += in[threadIdx.x * 64 + k];
    out[threadIdx.x] = sum;
}

__global__ void same(const unsigned *in, unsigned *out)
{
    if (threadIdx.x < 8) out[blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x];
}

int main(int argc, char **argv)
{
    unsigned *in, *out;
    if (argc < 3 || cudaMalloc(&in, 32 * 256) || cudaMalloc(&out, 4096)) return 1;
    cudaMemset(in, 0, 32 * 256);
    if (!strcmp(argv[1], "rows"))
        rows<<<atoi(argv[2]), 32>>>(in, out);
    else
        same<<<atoi(argv[2]), 32>>>(in, out);
    return cudaDeviceSynchronize() != cudaSuccess;
}
