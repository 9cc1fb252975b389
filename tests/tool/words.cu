/* What findings say of a kernel: `words BUFFERS|PASSES|STRAIGHT|ROWS|SOUND|CTAS N`; tests/tool/words.sh has the expected values. */
#include <cstdio>
#include <cstring>
#include <cstdlib>

/* One line, two buffers: `small` is read in order, `wide` by steps of 128 bytes. */
__global__ void buffers(float *out, const float *small, const float *wide)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = small[i] * wide[i * 32]; /* BUFFERS */
}

/* Lanes read 16 bytes each from rows of 128 bytes: all lanes of a request fall on four banks. */
__global__ void passes(float4 *out, int rounds)
{
    __shared__ float4 tile[32 * 8];
    for (int i = threadIdx.x; i < 32 * 8; i += 32) tile[i] = make_float4(i, 1, 2, 3);
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int r = 0; r < rounds; r++) {
        float4 v = tile[threadIdx.x * 8 + r % 8]; /* PASSES */
        sum.x += v.x * r, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[threadIdx.x] = sum;
}

/* One CTA, of an odd number, has all the work. */
__global__ void ctas(int *out)
{
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < (blockIdx.x == 37 ? 20000 : 2); i++) sum = sum * 5 + i; /* CTAS */
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* 128 loads of eight passes each, with rows of 32 bytes, in straight code: without line information each gains little. */
__global__ void straight(float *out)
{
    __shared__ float tile[32 * 8 * 16];
    for (int i = threadIdx.x; i < 32 * 8 * 16; i += 32) tile[i] = i;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 128; i++) sum = sum * .5f + tile[threadIdx.x * 8 + i * 29];
    out[threadIdx.x] = sum;
}

/* CTAs of 4 x 64 threads: a request is of eight rows of the matrix. */
__global__ void rows(float *out, const float *in)
{
    int at = (blockIdx.y * blockDim.y + threadIdx.y) * 512 + blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[at]; /* ROWS */
}

/* Nothing to mend, and about as long for bytes as for instructions. */
__global__ void sound(float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i;
#pragma unroll
    for (int r = 0; r < 15; r++) x = x * x + .5f;
    out[i] = x;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 1;
    char *memory;
    if (argc < 2 || cudaMalloc(&memory, 64 << 20) || cudaMemset(memory, 0, 64 << 20)) return 1;
    float *out = (float *)memory, *small, *wide;
    if (cudaMalloc(&small, 32 * 1024 * 4) || cudaMalloc(&wide, 32 * 1024 * 128)) return 1;
    if (!strcmp(argv[1], "BUFFERS")) buffers<<<128, 256>>>(out, small, wide);
    if (!strcmp(argv[1], "PASSES")) passes<<<1, 32>>>((float4 *)memory, 256);
    if (!strcmp(argv[1], "STRAIGHT")) straight<<<1, 32>>>(out);
    if (!strcmp(argv[1], "ROWS")) rows<<<dim3(128, 4), dim3(4, 64)>>>(out, wide);
    if (!strcmp(argv[1], "SOUND")) sound<<<132 * 8, 256>>>(out);
    if (!strcmp(argv[1], "CTAS")) ctas<<<n, 32>>>((int *)memory);
    return cudaDeviceSynchronize() != cudaSuccess;
}
