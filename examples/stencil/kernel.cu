/* Five-point stencil on an n x n grid; the border keeps its values. */
#include "../common/device.h"

KERNEL(stencil)(int n, const float *in, float *out)
{
    int x = CTA_X * NTID_X + TID_X, y = CTA_Y * NTID_Y + TID_Y;
    if (x >= n || y >= n) return;
    int i = y * n + x;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1) out[i] = in[i];
    else out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}
