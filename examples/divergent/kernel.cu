/* Divergent loop: thread i runs the Collatz sequence of i + 1 until it reaches 1, so every lane of
 * a warp leaves the loop at another time. */
#include "../common/device.h"

KERNEL(collatz)(int n, int *steps)
{
    int i = CTA_X * NTID_X + TID_X;
    if (i >= n) return;
    unsigned v = (unsigned)i + 1;
    int count = 0;
    while (v != 1) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        count++;
    }
    steps[i] = count;
}
