/* Two layers twice, as a framework marks them: modules, operations with numbers behind their names. Kernels of two families. */
#include <cstdio>
#include <nvtx3/nvToolsExt.h>

template <class T> __global__ void scale(T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 2;
}
__global__ void sum(float *x, int n)
{
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i];
    x[0] = s;
}

int main()
{
    float *f;
    double *d;
    char name[80];
    cudaMalloc(&f, 4096);
    cudaMalloc(&d, 8192);
    scale<<<1, 32>>>(f, 32); /* in no range */
    for (int step = 0; step < 2; step++)
        for (int layer = 0; layer < 2; layer++) {
            snprintf(name, sizeof name, "model.layers.%d", layer);
            nvtxRangePushA(name);
            snprintf(name, sizeof name, "aten::mul, seq = %d, op_id = %d", 10 * step + layer, step);
            nvtxRangePushA(name);
            nvtxRangePushA(name); /* an operation that calls itself */
            scale<<<4, 64>>>(f, 256);
            scale<<<4, 64>>>(d, 256);
            nvtxRangePop();
            nvtxRangePop();
            if (layer) {
                nvtxRangePushA("aten::sum, op_id = 9");
                sum<<<1, 1>>>(f, 100);
                nvtxRangePop();
            }
            nvtxRangePop();
        }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
