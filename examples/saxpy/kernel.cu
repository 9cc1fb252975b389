/* Streaming: y = a*x + y, one element a thread. */
#include "../common/device.h"

KERNEL(saxpy)(int n, float a, const float *x, float *y)
{
    int i = CTA_X * NTID_X + TID_X;
    if (i < n) y[i] = a * x[i] + y[i];
}
