/* Imbalance: a CTA for each bucket, of which a few are full; or the same items in buckets of equal size. */
#include "common.h"

enum { BUCKETS = 300, ITEMS = 300 * 400 };

__global__ void relax(const int *start, const unsigned *items, unsigned *result)
{
    unsigned acc = threadIdx.x;
    int from = start[blockIdx.x], to = start[blockIdx.x + 1];
    for (int round = 0; round < 2; round++) {
#pragma unroll 1
        for (int i = from; i < to; i++) /* FAULT */
            acc = acc * 9 + items[i];
        __syncthreads();
    }
    result[blockIdx.x * 96 + threadIdx.x] = acc;
}

int main(int argc, char **argv)
{
    bool fault = is_fault(argc, argv);
    std::vector<int> start(BUCKETS + 1);
    std::vector<unsigned> items(ITEMS), out(BUCKETS * 96);
    for (int i = 0; i < ITEMS; i++) items[i] = mix(i) % 100;
    for (int b = 0; b < BUCKETS; b++) { /* three buckets hold half of the items */
        int heavy = b == 40 || b == 170 || b == 171, size = fault ? heavy ? ITEMS / 6 : ITEMS / 2 / (BUCKETS - 3) : ITEMS / BUCKETS;
        start[b + 1] = start[b] + size;
    }
    unsigned *result = to_device(out);
    relax<<<BUCKETS, 96>>>(to_device(start), to_device(items), result);
    CHECK(cudaDeviceSynchronize());
    out = from_device(result, out.size());
    int wrong = 0;
    for (int b = 0; b < BUCKETS; b++) {
        unsigned acc = 5;
        for (int r = 0; r < 2; r++)
            for (int i = start[b]; i < start[b + 1]; i++) acc = acc * 9 + items[i];
        wrong += acc != out[b * 96 + 5];
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
