/* The warp operations of kernels.cu as COX (CuPBoP, its successor) turns them into code for a CPU, written anew by the
 * rules of its passes: the block's size and number are thread-local variables that the runtime sets, and loops read
 * them; a block is a loop over its warps, cut at barriers of the block, in it one over 32 lanes, cut at barriers of the
 * warp; a loop of the kernel that holds such barriers stays around the loops over lanes, and goes on as its first lane
 * says; what lives across a cut is an array with an element for each thread, that loop's counter included; shared
 * memory is thread-local; a shuffle is a store to a thread-local array of 32 integers, a barrier of the warp, and a
 * load with the index modulo 32; a vote is a store of 8 bits to a thread-local array of 32, a barrier of the warp, and
 * a function that each lane calls on that array, made of vector instructions (a ballot, which CuPBoP has not, is done
 * in the same way); here it may be put in line; the compiler's -O3 does the rest. Built by gcc and, where it is there,
 * by clang: COX uses LLVM. docs/history/2026-11.md has the times of what CuPBoP itself emits. */
#include "native.h"

#include <stdbool.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define CAT2(a, b) a##_##b
#define CAT(a, b)  CAT2(a, b)

static _Thread_local float shared[8];

static int bits_of(float v)
{
    union {
        float f;
        int i;
    } u = {v};
    return u.i;
}
static float float_of(int bits)
{
    union {
        int i;
        float f;
    } u = {bits};
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
            if (thread[w * 32 + l] == 0)
                out[cox_place.block] =
                    shared[0] + shared[1] + shared[2] + shared[3] + shared[4] + shared[5] + shared[6] + shared[7];
}

void CAT(cox_sum, VARIANT)(const void *restrict in, void *restrict result, void *restrict more_result)
{
    const float *x = in;
    float *out = result;
    (void)more_result;
    int size = cox_place.size, thread[size], i[size], d[size];
    bool more[size];
    float v[size];
    for (int w = 0; w < cox_place.size / 32; w++) {
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l, t = at % cox_place.size_x;
            thread[at] = t;
            i[at] = cox_place.block * cox_place.size_x + t;
            v[at] = x[i[at]];
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
            if ((thread[at] & 31) == 0) out[i[at] >> 5] = v[at];
        }
    }
}

void CAT(cox_scan, VARIANT)(const void *restrict in, void *restrict result, void *restrict more_result)
{
    const unsigned *x = in;
    unsigned *out = result;
    (void)more_result;
    int size = cox_place.size, thread[size], i[size], d[size];
    bool more[size];
    unsigned v[size];
    for (int w = 0; w < cox_place.size / 32; w++) {
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l, t = at % cox_place.size_x;
            thread[at] = t;
            i[at] = cox_place.block * cox_place.size_x + t;
            v[at] = x[i[at]];
            d[at] = 1;
        }
        for (;;) {
            for (int l = 0; l < 32; l++) more[w * 32 + l] = d[w * 32 + l] < 32;
            if (!more[w * 32]) break;
            for (int l = 0; l < 32; l++) cox_warp[l] = (int)v[w * 32 + l];
            for (int l = 0; l < 32; l++) {
                int at = w * 32 + l;
                unsigned u = (unsigned)cox_warp[(l - d[at]) & 31]; /* CuPBoP: % 32, which reads in front of the array */
                if ((thread[at] & 31) >= d[at]) v[at] += u;
                d[at] <<= 1;
            }
        }
        for (int l = 0; l < 32; l++) out[i[w * 32 + l]] = v[w * 32 + l];
    }
}

static _Thread_local _Alignas(32) signed char votes[32];
static unsigned ballot(void) /* who has stored anything */
{
#if defined(__AVX2__)
    return ~(unsigned)_mm256_movemask_epi8(
        _mm256_cmpeq_epi8(_mm256_load_si256((const void *)votes), _mm256_setzero_si256()));
#else
    unsigned m = 0;
    for (int l = 0; l < 32; l++) m |= (unsigned)(votes[l] != 0) << l;
    return m;
#endif
}

void CAT(cox_vote, VARIANT)(const void *restrict in, void *restrict result, void *restrict more_result)
{
    const float *x = in;
    unsigned *out = result;
    (void)more_result;
    int size = cox_place.size, thread[size], i[size];
    float v[size];
    bool all[size], any[size];
    for (int w = 0; w < cox_place.size / 32; w++) {
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l, t = at % cox_place.size_x;
            thread[at] = t;
            i[at] = cox_place.block * cox_place.size_x + t;
            v[at] = x[i[at]];
        }
        for (int l = 0; l < 32; l++) votes[l] = !(v[w * 32 + l] > 0.52f);
        for (int l = 0; l < 32; l++) all[w * 32 + l] = !ballot();
        for (int l = 0; l < 32; l++) votes[l] = v[w * 32 + l] > 1.48f;
        for (int l = 0; l < 32; l++) any[w * 32 + l] = ballot() != 0;
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l;
            if ((thread[at] & 31) == 0) out[i[at] >> 5] = all[at] + 2u * any[at];
        }
    }
}

void CAT(cox_compact, VARIANT)(const void *restrict in, void *restrict result, void *restrict more_result)
{
    const float *x = in;
    float *out = result;
    unsigned *kept = more_result;
    int size = cox_place.size, i[size], lane[size];
    float v[size];
    unsigned keep[size];
    for (int w = 0; w < cox_place.size / 32; w++) {
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l, t = at % cox_place.size_x;
            i[at] = cox_place.block * cox_place.size_x + t;
            lane[at] = t & 31;
            v[at] = x[i[at]];
        }
        for (int l = 0; l < 32; l++) votes[l] = v[w * 32 + l] > 1.0f;
        for (int l = 0; l < 32; l++) keep[w * 32 + l] = ballot();
        for (int l = 0; l < 32; l++) {
            int at = w * 32 + l;
            if (v[at] > 1.0f) out[i[at] - lane[at] + __builtin_popcount(keep[at] & ((1u << lane[at]) - 1))] = v[at];
            if (lane[at] == 0) kept[i[at] >> 5] = (unsigned)__builtin_popcount(keep[at]);
        }
    }
}
