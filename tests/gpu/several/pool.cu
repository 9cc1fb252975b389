// A kernel of the second GPU reads stream-ordered memory of the first one, whose pool is open to it. Prints the sum, or
// what failed.
#include <cstdio>
#include <cstring>

#define DO(call)                                                                                                       \
    if (cudaError_t e = (call)) return printf("%s: %s\n", #call, cudaGetErrorString(e)), 1

static __global__ void add(const int *from, unsigned long long *sum, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(sum, (unsigned long long)from[i]);
}

int main()
{
    enum { N = 100000 };
    static int numbers[N];
    int *from, can = 0;
    unsigned long long *sum, result;
    cudaMemPool_t pool;
    cudaMemAccessDesc open;
    for (int i = 0; i < N; i++) numbers[i] = i;
    DO(cudaDeviceCanAccessPeer(&can, 1, 0));
    if (!can) return puts("GPUs that do not reach each other's memory"), 77;
    DO(cudaDeviceGetDefaultMemPool(&pool, 0));
    DO(cudaMallocAsync(&from, sizeof numbers, cudaStreamPerThread));
    DO(cudaMemcpyAsync(from, numbers, sizeof numbers, cudaMemcpyHostToDevice, cudaStreamPerThread));
    DO(cudaStreamSynchronize(cudaStreamPerThread));
    memset(&open, 0, sizeof open);
    open.location.type = cudaMemLocationTypeDevice;
    open.location.id = 1;
    open.flags = cudaMemAccessFlagsProtReadWrite;
    DO(cudaMemPoolSetAccess(pool, &open, 1));
    DO(cudaSetDevice(1));
    DO(cudaMalloc(&sum, sizeof *sum));
    DO(cudaMemset(sum, 0, sizeof *sum));
    add<<<1, 256>>>(from, sum, N);
    DO(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
    printf("%llu\n", result);
    return result != (unsigned long long)N * (N - 1) / 2;
}
