/* reduce_shfl of kernels.cu as COX (CuPBoP, its successor) turns it into code for a CPU, written anew by the rules of its passes:
 *   the block's size and number are thread-local variables that the runtime sets, and loops read them;
 *   a block is a loop over its warps, cut at barriers of the block, in it one over 32 lanes, cut at barriers of the warp; a loop of the
 *   kernel that holds such barriers stays around the loops over lanes, and goes on as its first lane says;
 *   what lives across a cut is an array with an element for each thread, that loop's counter included; shared memory is thread-local;
 *   a shuffle is a store to a thread-local array of 32 integers, a barrier of the warp, and a load with the index modulo 32;
 *   the compiler's -O3 does the rest.
 * Built by gcc and, where it is there, by clang: COX uses LLVM. docs/measured.md has the times of what CuPBoP itself emits. */
#include "native.h"

#include <stdbool.h>

#define CAT2(a, b) a##_##b
#define CAT(a, b) CAT2(a, b)

static _Thread_local float shared[8];

static int bits_of(float v)
{
    union { float f; int i; } u = {v};
    return u.i;
}
static float float_of(int bits)
{
    union { int i; float f; } u = {bits};
    return u.f;
}

void CAT(cox_block, VARIANT)(int n, const float *restrict x, float *restrict out)
{
    int size = cox_place.size, thread[size], d[size];
    bool more[size];
    float v[size];
    for (int w = 0; w < cox_place.size / 32; w++) {
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l, t = at % cox_place.size_x, i = cox_place.block * 512 + t;
            thread[at] = t;
            v[at] = (i < n ? x[i] : 0) + (i + 256 < n ? x[i + 256] : 0);
            d[at] = 16;
        }
        for (;;) {
            for (int l = 0; l < 32; l++) more[w * 32 + l] = d[w * 32 + l] > 0;
            if (!more[w * 32]) break;
            for (int l = 0; l < 32; l++) cox_warp[l] = bits_of(v[w * 32 + l]);
            for (int l = 0; l < 32; l++) {
                int at = w * 32 + l;
                v[at] += float_of(cox_warp[(l ^ d[at]) % 32]);
                d[at] >>= 1;
            }
        }
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l;
            if ((thread[at] & 31) == 0) shared[thread[at] >> 5] = v[at];
        }
    }
    for (int w = 0; w < cox_place.size / 32; w++)
        for (int l = 0; l < 32; l++)
            if (thread[w * 32 + l] == 0) out[cox_place.block] = shared[0] + shared[1] + shared[2] + shared[3] + shared[4] + shared[5] + shared[6] + shared[7];
}
