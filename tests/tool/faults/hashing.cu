/* Divergence: words of different lengths, in any order or ordered by length. */
#include <algorithm>

#include "common.h"

__global__ void hash_words(const int *length, const int *seed, unsigned *hash, int words)
{
    int w = blockIdx.x * 64 + threadIdx.x;
    if (w >= words) return;
    unsigned h = seed[w];
    int letters = length[w];
#pragma unroll 1
    for (int at = 0; at < letters; at++) /* FAULT */
        h = (h ^ (at * 31u + 7u)) * 16777619u;
    hash[w] = h;
}

int main(int argc, char **argv)
{
    const int n = 64 * 150;
    bool fault = is_fault(argc, argv);
    std::vector<int> length(n), seed(n);
    std::vector<unsigned> out(n), sum(1);
    for (int i = 0; i < n; i++) length[i] = 2 + mix(i * 3) % 60;
    if (!fault) std::sort(length.begin(), length.end());
    if (!fault) /* long and short words in every CTA: 64 words are two warps */
        for (int i = 0; i < n / 64; i += 2)
            for (int k = 0; k < 32; k++) std::swap(length[i * 64 + k], length[n - 64 * (i + 1) + k]);
    for (int i = 0; i < n; i++) seed[i] = 5;
    unsigned *hash = to_device(out);
    hash_words<<<n / 64, 64>>>(to_device(length), to_device(seed), hash, n);
    CHECK(cudaDeviceSynchronize());
    for (unsigned h : from_device(hash, n)) sum[0] += h;
    print_sum(sum);
}
