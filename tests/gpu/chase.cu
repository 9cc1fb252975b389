// A pointer chase: one thread follows pointers, one to a line of 128 bytes, through a buffer of argv[1] KiB in random order. A step is one load
// and nothing else: each loaded value is the address of the next. Prints what a step takes by the program's own clock.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

static __device__ void follow(void *&at)
{
    asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
}

__global__ void chase(void *at, int steps, void **out, long long *cycles)
{
    for (int i = 0; i < steps; i++) follow(at); // what fits into a cache is there afterwards
    long long begin = clock64();
#pragma unroll 16
    for (int i = 0; i < steps; i++) follow(at); // TIMED
    *cycles = clock64() - begin;
    *out = at;
}

int main(int argc, char **argv)
{
    size_t kib = argc > 1 ? strtoul(argv[1], nullptr, 10) : 16, n = kib * 8;
    int steps = n < 20000 ? (int)n : 20000;
    std::mt19937 random(1);
    std::vector<size_t> order(n);
    for (size_t i = 0; i < n; i++) order[i] = i;
    std::shuffle(order.begin() + 1, order.end(), random);
    char *data;
    void **out;
    long long *cycles, took;
    if (cudaMalloc(&data, n * 128) || cudaMalloc(&out, 8) || cudaMalloc(&cycles, 8)) return 1;
    std::vector<char *> lines(n * 16);
    for (size_t i = 0; i < n; i++) lines[order[i] * 16] = data + order[(i + 1) % n] * 128;
    cudaMemcpy(data, lines.data(), n * 128, cudaMemcpyHostToDevice);
    chase<<<1, 1>>>(data, steps, out, cycles);
    if (cudaMemcpy(&took, cycles, 8, cudaMemcpyDeviceToHost)) return 1;
    printf("%zu KiB: %.1f cycles a step\n", kib, (double)took / steps);
}
