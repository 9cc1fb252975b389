// What nvcc's own stubs and headers make of runtime calls: run over the fake driver by stubs.sh.
#include <cstdio>
#include <cstdlib>

extern "C" cudaError_t cudaGLSetGLDevice(int);

__managed__ int managed = 5;
__constant__ float constants[4];
__device__ int variable;
__global__ void kernel(int n, float *p)
{
    if (n) p[threadIdx.x] = constants[0] + managed + variable;
}
template <class T> __global__ void of_type(T v)
{
    variable = (int)v;
}

#define MUST(x) ((x) ? (void)0 : (printf("not so, line %d: %s\n", __LINE__, #x), exit(1)))
#define OK(x) MUST((x) == cudaSuccess)

int main()
{
    float *p, h[4] = {1, 2, 3, 4};
    int three = 3;
    managed = 7; // before any runtime call: the stub initialises the module
    MUST(managed == 7);
    OK(cudaMalloc(&p, 400));
    kernel<<<2, 100, 16>>>(7, p);
    of_type<double><<<dim3(1, 2, 3), 1>>>(2.0);
    cudaLaunchConfig_t config = {dim3(3), dim3(4)};
    OK(cudaLaunchKernelEx(&config, kernel, 8, p));
    OK(cudaMemcpyToSymbol(constants, h, sizeof h));
    OK(cudaMemcpyToSymbol(variable, &three, sizeof three));
    OK(cudaMemcpyToSymbol(managed, &three, sizeof three));
    MUST(managed == 3);
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, kernel));
    MUST(a.numRegs == 104 && a.sharedSizeBytes == 101 && a.nonPortableClusterSizeAllowed == 114);
    cudaDeviceProp d; // the fake's attributes are their numbers plus 1000
    OK(cudaGetDeviceProperties(&d, 0));
    MUST(d.multiProcessorCount == 1000 + cudaDevAttrMultiProcessorCount && d.maxTexture3D[2] == 1000 + cudaDevAttrMaxTexture3DDepth);
    MUST(d.maxSurface2DLayered[1] == 1000 + cudaDevAttrMaxSurface2DLayeredHeight && d.hostNumaId == 1000 + cudaDevAttrHostNumaId);
    MUST(d.sharedMemPerBlockOptin == 1000 + cudaDevAttrMaxSharedMemoryPerBlockOptin && d.maxGridSize[1] == 1000 + cudaDevAttrMaxGridDimY);
    MUST(d.gpuPciSubsystemID == 1000 + cudaDevAttrGpuPciSubsystemId && d.totalGlobalMem == (size_t)5 << 30);
    MUST(d.reservedSharedMemPerBlock == 1000 + cudaDevAttrReservedSharedMemoryPerBlock && d.maxTexture1DLayered[1] == 1000 + cudaDevAttrMaxTexture1DLayeredLayers);
    cudaGraph_t graph;
    cudaGraphNode_t node;
    void *args[2] = {&three, &p};
    cudaKernelNodeParams params = {(void *)kernel, dim3(1), dim3(32), 0, args, 0};
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddKernelNode(&node, graph, 0, 0, &params));
    cudaKernelNodeParams back;
    OK(cudaGraphKernelNodeGetParams(node, &back));
    MUST(back.func == (void *)kernel && back.blockDim.x == 32 && back.kernelParams == args);
    cudaFunction_t function;
    OK(cudaGetFuncBySymbol(&function, (const void *)kernel));
    MUST((void *)function != (void *)kernel);
    params.func = (void *)main;
    MUST(cudaGraphAddKernelNode(&node, graph, 0, 0, &params) == cudaErrorInvalidDeviceFunction);
    MUST(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
    MUST(cudaGLSetGLDevice(0) == cudaErrorNotSupported && cudaGLSetGLDevice(0) == cudaErrorNotSupported);
    puts("stubs ok");
    return 0;
}
