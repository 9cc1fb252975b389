/* Four performance problems, each on a line of its own that the right tool has to name first.
 * Usage: planted memory|lanes|clock|shared */
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { N = 1 << 14 };

__global__ void uncoalesced(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = in[i];
    float b = in[(i * 33) % n]; /* PLANTED memory */
    out[i] = a + b;
}

__global__ void divergent(const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i], sum = 0;
    for (int k = 0; k < 8; k++) sum += v ^ k;
    for (int k = 0; k < v; k++) sum = sum * 3 + (sum >> 2); /* PLANTED lanes */
    out[i] = sum;
}

__global__ void imbalanced(int *out, int rounds) /* PLANTED clock */
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i;
    int n = blockIdx.x % 16 ? rounds : rounds * 40;
    for (int k = 0; k < n; k++) v = v * 1664525 + 1013904223;
    out[i] = v;
}

__global__ void balanced(int *out, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i;
    for (int k = 0; k < rounds; k++) v = v * 1664525 + 1013904223;
    out[i] = v;
}

__global__ void conflicts(const float *in, float *out)
{
    __shared__ float tile[32][32];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    tile[y][x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = tile[x][y]; /* PLANTED shared */
}

static void check(cudaError_t e)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "planted: %s\n", cudaGetErrorString(e));
    exit(1);
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    float *in, *out;
    int *numbers, *host = (int *)malloc(N * sizeof *host);
    check(cudaMalloc(&in, N * sizeof *in));
    check(cudaMalloc(&out, N * sizeof *out));
    check(cudaMalloc(&numbers, N * sizeof *numbers));
    check(cudaMemset(in, 0, N * sizeof *in));
    for (int i = 0; i < N; i++) host[i] = i % 32 ? 1 : 64;
    check(cudaMemcpy(numbers, host, N * sizeof *host, cudaMemcpyHostToDevice));
    balanced<<<N / 128, 128>>>((int *)out, 10);
    if (!strcmp(which, "memory")) uncoalesced<<<N / 128, 128>>>(in, out, N);
    if (!strcmp(which, "lanes")) divergent<<<N / 128, 128>>>(numbers, (int *)out);
    if (!strcmp(which, "clock")) imbalanced<<<N / 128, 128>>>((int *)out, 10000); /* longer than `balanced` even where one of its CTAs stood still for a while */
    if (!strcmp(which, "shared")) conflicts<<<N / 1024, 1024>>>(in, out);
    check(cudaDeviceSynchronize());
    return 0;
}
