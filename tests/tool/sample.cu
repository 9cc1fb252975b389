// Launches of two kernels: `same` does the same each time, `varies` splits its warps for a number of rounds that a generator draws for each launch.
__global__ void same(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i;
    if (i % 3) // SAME
        for (int k = 0; k < i % 5; k++) v = v * 1664525 + 1013904223;
    out[i] = v;
}

__global__ void varies(int *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i;
    for (int k = 0; k < rounds; k++)
        if (i & 1 << k % 5) v = v * 1664525 + 1013904223; // VARIES
        else v ^= k;
    out[i] += v;
}

int main()
{
    int *out;
    unsigned x = 7;
    if (cudaMalloc(&out, 4096)) return 1;
    for (int k = 0; k < 400; k++) {
        same<<<4, 96>>>(out);
        varies<<<2, 64>>>(out, 1 + (x >> 16) % 40);
        x = x * 1103515245 + 12345;
    }
    return cudaDeviceSynchronize() != cudaSuccess;
}
