// A kernel stores managed memory, the host changes it, the next kernel reads it; an array is filled by a copy.
#include <cuda_runtime.h>

template <typename T> __global__ void fill(T *m)
{
    m[threadIdx.x] = threadIdx.x;
}

__global__ void twice(int *m)
{
    m[threadIdx.x] *= 2;
}

int main()
{
    int *m, host[64] = {0};
    cudaArray_t array;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<int>();
    if (cudaMallocManaged(&m, 256) || cudaMallocArray(&array, &d, 8, 8)) return 1;
    if (cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 8, cudaMemcpyHostToDevice)) return 1;
    fill<int><<<1, 64>>>(m);
    cudaDeviceSynchronize();
    m[5] = 7;
    twice<<<1, 64>>>(m);
    return cudaDeviceSynchronize() || m[5] != 14 || m[6] != 12;
}
