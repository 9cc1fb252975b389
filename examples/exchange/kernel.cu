/* Exchanges between CTAs over launches. Each CTA owns a chunk of one value a thread. */
#include "../common/device.h"

#define OWN (CTA_X * NTID_X + TID_X)

/* From the next CTA, the last one's next is the first. */
KERNEL(ring)(int p, const int *in, int *out)
{
    out[OWN] = in[(CTA_X + 1) % p * NTID_X + TID_X] + 1;
}

/* From itself, and a value each from the neighbours. */
KERNEL(halo)(int p, const int *in, int *out)
{
    int v = in[OWN];
    if (TID_X == 0 && CTA_X > 0) v += in[OWN - 1];
    if (TID_X == NTID_X - 1 && CTA_X < p - 1) v += in[OWN + 1];
    out[OWN] = v;
}

/* In place: CTAs `apart` from another one take the sum of both. */
KERNEL(tree)(int p, int apart, int *values)
{
    if (CTA_X % (2 * apart) == 0 && CTA_X + apart < p) values[OWN] += values[OWN + apart * NTID_X];
}

/* A grid of q by q CTAs: (x, y) from (y, x). */
KERNEL(transpose)(int q, const int *in, int *out)
{
    out[(CTA_Y * q + CTA_X) * NTID_X + TID_X] = in[(CTA_X * q + CTA_Y) * NTID_X + TID_X] + 1;
}

/* Everybody from everybody, all of it. */
KERNEL(broadcast)(int p, const int *in, int *out)
{
    int v = 0;
    for (int i = 0; i < p; i++) v += in[i * NTID_X + TID_X] >> 3;
    out[OWN] = v;
}

/* Everybody from everybody, a value for each. p is no more than the threads. */
KERNEL(personal)(int p, const int *in, int *out)
{
    if (TID_X < p) out[OWN] = in[TID_X * NTID_X + CTA_X] + 1;
}

/* CTA 0 writes what all read: piece by piece (step NTID_X), or the same for all (step 0). */
KERNEL(root)(int p, int seed, int *out)
{
    for (int i = 0; i < p && CTA_X == 0; i++) out[i * NTID_X + TID_X] = seed + i;
}
KERNEL(spread)(int p, int step, const int *in, int *out)
{
    out[OWN] = in[CTA_X * step + TID_X];
}

/* All write, CTA 0 reads. */
KERNEL(fill)(int p, int seed, int *out)
{
    out[OWN] = seed + CTA_X;
}
KERNEL(gather)(int p, const int *in, int *out)
{
    int v = 0;
    for (int i = 0; i < p && CTA_X == 0; i++) v += in[i * NTID_X + TID_X];
    if (CTA_X == 0) out[TID_X] = v;
}

/* All add to the same values. */
KERNEL(add)(int p, int seed, int *out)
{
    atomicAdd(&out[TID_X], seed + CTA_X);
}
