// What a finding claims against what its twin needs less: a walk whose lanes part, and one CTA that is longer.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

// 10 to 40 steps through a table; which thread goes how far is all that differs: by lane, or by warp
__global__ void parted(int *out, const int *next) {
    int t = threadIdx.x, at = t;
#pragma unroll 1
    for (int k = t % 32 / 8 * 10 + 9; k >= 0; k--) at = next[at]; // PLANTED parted
    out[blockIdx.x * blockDim.x + t] = at;
}
__global__ void sorted(int *out, const int *next) {
    int t = threadIdx.x, at = t;
#pragma unroll 1
    for (int k = t / 32 * 10 + 9; k >= 0; k--) at = next[at]; // SOUND
    out[blockIdx.x * blockDim.x + t] = at;
}

// of the CTAs the last one does twice the work
__global__ void uneven(int *out, int rounds) {
    int sum = 0;
    rounds *= 1 + (blockIdx.x == gridDim.x - 1);
#pragma unroll 1
    for (int k = 0; k < rounds; k++) sum = sum * 3 + k; // PLANTED uneven
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// too short to launch; its stores touch twice the sectors that they fill
__global__ void tiny(int *out, int n) {
    int sum = n;
#pragma unroll 1
    for (int k = 0; k < n; k++) sum = sum * 3 + k;
    for (int k = 0; k < 3; k++) out[threadIdx.x * 2 + k] = sum + k; // PLANTED tiny
}

int main(int argc, char **argv) {
    int *out, *next, from[1024];
    bool walks = argc > 1 && !strcmp(argv[1], "walks");
    for (int i = 0; i < 1024; i++) from[i] = (i + 32) % 1024;
    cudaMalloc(&out, 6336 * 64 * 4);
    cudaMalloc(&next, sizeof from);
    cudaMemcpy(next, from, sizeof from, cudaMemcpyHostToDevice);
    if (walks) {
        parted<<<132, 128>>>(out, next);
        sorted<<<132, 128>>>(out, next);
    } else if (argc > 1 && !strcmp(argv[1], "tiny")) {
        for (int i = 0; i < 150; i++) tiny<<<1, 32>>>(out, 300);
    } else if (argc > 1 && !strcmp(argv[1], "tail")) { // a wave and a half of CTAs that mostly wait
        cudaFuncSetAttribute(uneven, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000); // two CTAs a multiprocessor
        uneven<<<396, 64, 100000>>>(out, 200);
        if (argc > 2) uneven<<<330, 64, 100000>>>(out, 200); // one and a quarter
    } else {
        uneven<<<157, 64>>>(out, 1000);
    }
    puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
