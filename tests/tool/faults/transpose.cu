/* Bank conflicts: a tile of shared memory that is written by rows and read by columns, without and with padding. */
#include "common.h"

enum { EDGE = 32, SIDE = 512 };

template <int PITCH> __global__ void turn(const float *from, float *to)
{
    __shared__ float tile[EDGE][PITCH];
    int x = blockIdx.x * EDGE + threadIdx.x, y = blockIdx.y * EDGE + threadIdx.y;
    for (int k = 0; k < EDGE; k += 8)
        tile[threadIdx.y + k][threadIdx.x] = from[(y + k) * SIDE + x];
    __syncthreads();
    x = blockIdx.y * EDGE + threadIdx.x;
    y = blockIdx.x * EDGE + threadIdx.y;
    for (int k = 0; k < EDGE; k += 8) {
        float v = tile[threadIdx.x][threadIdx.y + k]; /* FAULT */
        to[(y + k) * SIDE + x] = v;
    }
}

int main(int argc, char **argv)
{
    std::vector<float> a(SIDE * SIDE), b(SIDE * SIDE);
    for (size_t i = 0; i < a.size(); i++) a[i] = mix(i) % 1024;
    float *from = to_device(a), *to = to_device(b);
    dim3 grid(SIDE / EDGE, SIDE / EDGE), block(EDGE, 8);
    if (is_fault(argc, argv)) turn<EDGE><<<grid, block>>>(from, to);
    else turn<EDGE + 1><<<grid, block>>>(from, to);
    CHECK(cudaDeviceSynchronize());
    print_sum(from_device(to, a.size()));
}
