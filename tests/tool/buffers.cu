// Which buffer an access is of, where its index comes from memory or from another argument: bytes need no scaling, so
// that the index is added as it is.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void mark(unsigned char *out, const unsigned char *flags, const int *ids, int from,
                     unsigned char *const *lists)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int id = ids[t];                // BUFFER 2
    unsigned char seen = flags[id]; // BUFFER 1
    out[t + from] = seen;           // BUFFER 0
    lists[t % 2][t] = seen;         // LISTS
}

__global__ void swapped(float *to, const float *from)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    to[t] = from[t] + 1; // BUFFER swapped
}

int main()
{
    unsigned char *out, *flags, *list, **lists, *pair[2];
    int *ids, from[256];
    for (int i = 0; i < 256; i++) from[i] = 255 - i;
    cudaMalloc(&out, 700);
    cudaMalloc(&flags, 400);
    cudaMalloc(&ids, sizeof from);
    cudaMalloc(&list, 600);
    cudaMalloc(&lists, sizeof pair);
    pair[0] = list, pair[1] = list + 256;
    cudaMemset(flags, 1, 400);
    cudaMemcpy(ids, from, sizeof from, cudaMemcpyHostToDevice);
    cudaMemcpy(lists, pair, sizeof pair, cudaMemcpyHostToDevice);
    mark<<<2, 128>>>(out, flags, ids, 7, lists);
    float *a, *b;
    cudaMalloc(&a, 1280);
    cudaMalloc(&b, 1536);
    cudaMemset(a, 0, 1280);
    for (int i = 0; i < 3; i++) swapped<<<2, 128>>>(i % 2 ? a : b, i % 2 ? b : a);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
