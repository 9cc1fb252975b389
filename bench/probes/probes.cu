/* probes [KIND]: one kernel, with a probe written into its source by hand; KIND 0: without. Prints the
 * fastest of its launches in microseconds. bench/probes/run puts the same probes in by one-liners and
 * compares: what Margay inserts against what a person would write. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { N = 1 << 22, ROUNDS = 64, LAUNCHES = 12 };
typedef unsigned long long u64;

__device__ void flush(u64 *cell, u64 v)
{
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(cell, v);
}

template <int KIND> __global__ void work(const float *x, float *y, u64 *cells)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    u64 c = 0;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
        const float *p = &x[(i + r * 4099u) & (N - 1)];
        float v = *p;
        unsigned bits = __float_as_uint(v);
        if (KIND == 1) c += ((u64)p & 128) != 0;
        if (KIND == 2) c += bits & 255;
        if (KIND == 3) c++;
        if (KIND == 4) atomicAdd(&cells[bits ? 33 - __clz(bits) : 1], 1ull);
        if (KIND == 5) atomicMax(&cells[0], (u64)bits);
        if (KIND == 6) c += threadIdx.x % 32 == __ffs(__activemask()) - 1;
        if (KIND == 7) atomicAdd(&cells[threadIdx.x % 32], 1ull);
        if (v > 0.5f) s += v * 1.5f;
        else s -= v;
    }
    y[i] = s;
    if (KIND == 1 || KIND == 2 || KIND == 6) flush(&cells[0], c);
    if (KIND == 3) atomicAdd(&cells[c ? 65 - __clzll(c) : 1], 1ull);
}

typedef void (*kernel)(const float *, float *, u64 *);

int main(int argc, char **argv)
{
    static const kernel of[] = {work<0>, work<1>, work<2>, work<3>, work<4>, work<5>, work<6>, work<7>};
    int kind = argc > 1 ? atoi(argv[1]) : 0;
    float *x, *y, *h = (float *)malloc(N * sizeof *h), best = 1e30f;
    u64 *cells, sum = 0, got[80];
    for (int i = 0; i < N; i++) h[i] = (float)(i * 2654435761u >> 8) / (1 << 24);
    cudaMalloc(&x, N * sizeof *x);
    cudaMalloc(&y, N * sizeof *y);
    cudaMalloc(&cells, sizeof got);
    cudaMemcpy(x, h, N * sizeof *x, cudaMemcpyHostToDevice);
    cudaMemset(cells, 0, sizeof got);
    cudaEvent_t from, to;
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    for (int i = 0; i < LAUNCHES; i++) {
        float ms;
        cudaEventRecord(from);
        of[kind]<<<N / 256, 256>>>(x, y, cells);
        cudaEventRecord(to);
        if (cudaEventSynchronize(to)) return 1;
        cudaEventElapsedTime(&ms, from, to);
        if (ms < best) best = ms;
    }
    cudaMemcpy(got, cells, sizeof got, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 80; i++) sum += got[i];
    printf("%.1f %llu\n", 1e3 * best, sum / LAUNCHES);
    return 0;
}
