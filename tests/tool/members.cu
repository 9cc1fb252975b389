// Structs of which one member is read, or all: bytes that come for nothing, or passes through L1 alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

struct Long {
    float x, y, z, w, vx, vy, vz, m;
};
struct Short {
    float x, y, z, w;
};

__global__ void one(const Long *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[i].m; // ONE
}
__global__ void all(const Long *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Long p = a[i];                                              // ALL
    b[i] = p.x * p.vx + p.y * p.vy + p.z * p.vz + p.w * p.m; // and here
}
__global__ void few(const Short *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Short p = a[i]; // FEW
    b[i] = p.x * p.y + p.z * p.w;
}
// A struct of FLOATS of which two are read, wherever they lie; and one of 48 bytes of which the first half is.
struct Drawn {
    float m[FLOATS];
};
struct Half {
    double a, b, c, d, e, f;
};
__global__ void drawn(const Drawn *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[i].m[FIRST] + a[i].m[SECOND]; // DRAWN
}
__global__ void half(const Half *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = (float)(a[i].a + a[i].b + a[i].c); // HALF
}
__global__ void rows(const float *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    const int together = ROUNDS;
#pragma unroll together
    for (int k = 0; k < 8; k++) sum += a[i * 8 + k]; // ROWS
    b[i] = sum;
}
__global__ void whole(const float *__restrict__ a, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += a[i * 8 + k];
    b[i] = sum;
}
// Rows of two arrays, 64 bytes a row. As many warps as a multiprocessor has room for bring more lines than its L1 has.
__global__ void pair(const float *__restrict__ a, const float *__restrict__ more, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 16; k++) sum += a[i * 16 + k] * more[i * 16 + k]; // PAIR
    b[i] = sum;
}
__global__ void both(const float *__restrict__ a, const float *__restrict__ more, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) sum += a[i * 16 + k] * more[i * 16 + k];
    b[i] = sum;
}

int main(int argc, char **argv) {
    int ctas = argc > 2 ? atoi(argv[2]) : 1;
    void *a;
    float *b;
    cudaMalloc(&a, ctas * 256 * 128);
    cudaMalloc(&b, ctas * 256 * sizeof(float));
    cudaMemset(a, 0, ctas * 256 * 128);
    if (!strcmp(argv[1], "one")) one<<<ctas, 256>>>((Long *)a, b);
    if (!strcmp(argv[1], "all")) all<<<ctas, 256>>>((Long *)a, b);
    if (!strcmp(argv[1], "few")) few<<<ctas, 256>>>((Short *)a, b);
    if (!strcmp(argv[1], "drawn")) drawn<<<ctas, 256>>>((Drawn *)a, b);
    if (!strcmp(argv[1], "half")) half<<<ctas, 256>>>((Half *)a, b);
    if (!strcmp(argv[1], "rows")) rows<<<ctas, 256>>>((float *)a, b);
    if (!strcmp(argv[1], "whole")) whole<<<ctas, 256>>>((float *)a, b);
    if (!strcmp(argv[1], "pair")) pair<<<ctas, 256>>>((float *)a, (float *)a + ctas * 256 * 16, b);
    if (!strcmp(argv[1], "both")) both<<<ctas, 256>>>((float *)a, (float *)a + ctas * 256 * 16, b);
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
