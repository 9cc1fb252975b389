/* Imbalance: a CTA for each row of a triangle, or for a long row together with a short one. */
#include "common.h"

enum { ROWS = 1000, EACH = 64 };

__device__ float sum_row(const float *values, int row)
{
    float sum = 0;
#pragma unroll 1
    for (int j = threadIdx.x; j < (row + 1) * EACH; j += 64) /* FAULT */
        sum += values[j];
    return sum;
}

__global__ void sum_rows(const float *values, float *sums)
{
    float sum = sum_row(values, blockIdx.x);
    sums[blockIdx.x * 64 + threadIdx.x] = sum;
}

__global__ void sum_pairs(const float *values, float *sums)
{
    for (int k = 0; k < 2; k++) {
        int row = k ? ROWS - 1 - blockIdx.x : blockIdx.x;
        sums[row * 64 + threadIdx.x] = sum_row(values, row);
    }
}

int main(int argc, char **argv)
{
    std::vector<float> v(ROWS * EACH), s(ROWS * 64);
    for (size_t i = 0; i < v.size(); i++) v[i] = mix(i) % 8;
    float *sums = to_device(s);
    if (is_fault(argc, argv)) sum_rows<<<ROWS, 64>>>(to_device(v), sums);
    else sum_pairs<<<ROWS / 2, 64>>>(to_device(v), sums);
    CHECK(cudaDeviceSynchronize());
    print_sum(from_device(sums, s.size()));
}
