/* Tree reduction in shared memory: each CTA of 256 threads sums 256 integers. */
#include "../common/device.h"

KERNEL(reduce)(int n, const int *in, int *out)
{
    __shared__ int s[256];
    int t = TID_X, i = CTA_X * 256 + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) out[CTA_X] = s[0];
}
