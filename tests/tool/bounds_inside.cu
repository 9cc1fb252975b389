// Memory that the host does not know of, or another CTA's: bounds must leave every access as it is. KIND: 0 the grid's barrier,
// 1 what kernels allocate, 2 shared memory of another CTA of the cluster, 3 what a graph allocates, used outside of it. Prints what it
// computed.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

#if KIND == 0
__global__ void run(unsigned *part, unsigned *sum)
{
    part[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
    cg::this_grid().sync();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    sum[i] = part[i] + part[(i + blockDim.x) % n];
    cg::this_grid().sync();
    if (!i)
        for (unsigned k = 1; k < n; k++) sum[0] += sum[k];
}

#elif KIND == 1
__global__ void run(unsigned *part, unsigned *sum)
{
    unsigned *own = (unsigned *)malloc(4 * sizeof *own), all = 0;
    for (int k = 0; k < 4; k++) own[k] = threadIdx.x * k + blockIdx.x;
    for (int k = 0; k < 4; k++) all += own[k];
    free(own);
    atomicAdd(sum, all);
}

#elif KIND == 3
__global__ void run(unsigned *part, unsigned *sum)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    part[i] = 3 * i;
    atomicAdd(sum, part[i]);
}
#else
__global__ void __cluster_dims__(2, 1, 1) run(unsigned *part, unsigned *sum)
{
    __shared__ unsigned own[64];
    own[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
    cg::this_cluster().sync();
    unsigned at = (unsigned)__cvta_generic_to_shared(own + threadIdx.x), there, v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(cg::this_cluster().block_rank() ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there));
    atomicAdd(sum, v);
    cg::this_cluster().sync();
}

#endif

int main()
{
    unsigned *part, *sum, got = 0;
    cudaMalloc(&part, 4 * 64 * sizeof *part), cudaMalloc(&sum, 4 * 64 * sizeof *sum), cudaMemset(sum, 0, 4 * 64 * sizeof *sum);
    void *args[] = {&part, &sum};
    if (KIND == 3) {
        cudaGraph_t g;
        cudaGraphExec_t x;
        cudaGraphNode_t node;
        cudaMemAllocNodeParams a = {};
        a.poolProps.allocType = cudaMemAllocationTypePinned, a.poolProps.location.type = cudaMemLocationTypeDevice, a.bytesize = 4096;
        cudaGraphCreate(&g, 0), cudaGraphAddMemAllocNode(&node, g, NULL, 0, &a);
        cudaGraphInstantiate(&x, g, 0), cudaGraphLaunch(x, 0);
        part = (unsigned *)a.dptr;
    }
    if (KIND == 0)
        cudaLaunchCooperativeKernel((void *)run, dim3(4), dim3(64), args, 0, 0);
    else
        run<<<4, 64>>>(part, sum);
    cudaError_t e = cudaDeviceSynchronize();
    cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost);
    printf("%u %s\n", got, cudaGetErrorString(e));
}
