/* Histogram of 64 bins: counts in shared memory, then one atomic addition a bin and CTA. */
#include "../common/device.h"

KERNEL(histogram)(int n, const unsigned char *data, int *bins)
{
    __shared__ int s[64];
    if (TID_X < 64) s[TID_X] = 0;
    __syncthreads();
    for (int i = CTA_X * NTID_X + TID_X; i < n; i += 16 * 256) atomicAdd(&s[data[i] & 63], 1);
    __syncthreads();
    if (TID_X < 64) atomicAdd(&bins[TID_X], s[TID_X]);
}
