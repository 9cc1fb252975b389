/* What findings must not claim, and what one change mends: tests/tool/mending.sh. */
#include <cstdio>

struct Pair { float x, y; };
struct Four { float x, y, z, w; };

__global__ void sound(float *out) /* an array of the same name as the next kernel's, without conflicts */
{
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = out[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[31 - threadIdx.y][threadIdx.x];
}

__global__ void turned(float *out)
{
    __shared__ float tile[32][32]; /* DECLARED */
    tile[threadIdx.x][threadIdx.y] = out[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    float v = tile[threadIdx.y][threadIdx.x];
    v += tile[threadIdx.x][31 - threadIdx.y];
    out[threadIdx.y * 32 + threadIdx.x] = v;
}

__global__ void narrow(float *out, int n, int rounds) /* one CTA is split by the branch, all have 16 threads */
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = out[i];
    if (i < n) {
#pragma unroll 1
        for (int k = 0; k < rounds; k++) v = v * 1.5f + k;
        v *= out[i + 1];
    }
    out[i] = v;
}

__global__ void both(const Pair *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i].x * in[i].y;
}

__global__ void one(const Four *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i].y;
}

int main()
{
    const int n = 1 << 14;
    float *data, *out;
    if (cudaMalloc(&data, 16 * n) || cudaMalloc(&out, 4 * n) || cudaMemset(data, 0, 16 * n) || cudaMemset(out, 0, 4 * n)) return 1;
    sound<<<8, dim3(32, 32)>>>(out);
    turned<<<8, dim3(32, 32)>>>(out);
    narrow<<<100, 16>>>(out, 16 * 40 + 8, 50);
    both<<<n / 256, 256>>>((const Pair *)data, out, n);
    one<<<n / 256, 256>>>((const Four *)data, out, n);
    cudaError_t e = cudaDeviceSynchronize();
    puts(cudaGetErrorString(e));
    return e != cudaSuccess;
}
