/* host.h over the CUDA runtime API; what nvcc-built examples link. */
#include "host.h"

static void ok(cudaError_t r, const char *what)
{
    if (!r) return;
    fprintf(stderr, "%s: error %d: %s\n", what, (int)r, cudaGetErrorString(r));
    exit(1);
}

void *dev_alloc(size_t bytes)
{
    void *p = NULL;
    ok(cudaMalloc(&p, bytes), "cudaMalloc");
    return p;
}

void dev_free(void *p)
{
    ok(cudaFree(p), "cudaFree");
}

void dev_put(void *dev, const void *host, size_t bytes)
{
    ok(cudaMemcpy(dev, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void dev_get(void *host, const void *dev, size_t bytes)
{
    ok(cudaMemcpy(host, dev, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void dev_zero(void *dev, size_t bytes)
{
    ok(cudaMemset(dev, 0, bytes), "cudaMemset");
}

void dev_launch(kernel_t k, struct shape grid, struct shape block, unsigned shared_bytes, void **args)
{
    ok(cudaLaunchKernel(k, dim3(grid.x, grid.y), dim3(block.x, block.y), args, shared_bytes, 0),
       "cudaLaunchKernel");
    ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
