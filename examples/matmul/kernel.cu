/* Tiled matrix product: 16 x 16 tiles of both factors in shared memory, n a multiple of 16. */
#include "../common/device.h"

KERNEL(matmul)(int n, const float *a, const float *b, float *c)
{
    __shared__ float as[16][16], bs[16][16];
    int tx = TID_X, ty = TID_Y, row = CTA_Y * 16 + ty, col = CTA_X * 16 + tx;
    float sum = 0;
    for (int tile = 0; tile < n / 16; tile++) {
        as[ty][tx] = a[row * n + tile * 16 + tx];
        bs[ty][tx] = b[(tile * 16 + ty) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
