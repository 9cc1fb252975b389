/* Divergence: two kinds of particles that take different ways, mixed or one behind the other. */
#include "common.h"

__device__ unsigned slow_decay(unsigned v)
{
#pragma unroll 1
    for (int k = 0; k < 40; k++) v = v * 1103515245u + 12345u + (v >> 7);
    return v;
}

__device__ unsigned fast_decay(unsigned v)
{
#pragma unroll 1
    for (int k = 0; k < 40; k++) v = (v ^ v << 5) + k * (v >> 3);
    return v;
}

__global__ void decay_step(const unsigned *species, const unsigned *state, unsigned *next, int n)
{
    int p = threadIdx.x + blockIdx.x * blockDim.x;
    if (p >= n) return;
    unsigned kind = species[p], v = state[p];
    if (kind) /* FAULT */
        v = slow_decay(v);
    else
        v = fast_decay(v);
    next[p] = v;
}

int main(int argc, char **argv)
{
    const int n = 30000;
    bool fault = is_fault(argc, argv);
    std::vector<unsigned> kind(n), state(n), out(n);
    for (int i = 0; i < n; i++) kind[i] = fault ? mix(i) & 1 : i >= n / 2 - 16 && i < n - 16;
    for (int i = 0; i < n; i++) state[i] = i;
    unsigned *next = to_device(out);
    decay_step<<<(n + 319) / 320, 320>>>(to_device(kind), to_device(state), next, n);
    CHECK(cudaDeviceSynchronize());
    out = from_device(next, n);
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        unsigned v = i;
        for (int k = 0; k < 40; k++) v = kind[i] ? v * 1103515245u + 12345u + (v >> 7) : (v ^ v << 5) + k * (v >> 3);
        wrong += v != out[i];
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
