/* Five kernels of seed 700703 on one x86-64 core, by someone who saw neither the generator nor its C. */

/* ---- k37: 1024 x 1024 five-point sum, zero outside ---- */
static void t37(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    for (int x = 0; x < 1024; x++) { /* first and last row */
        const float *restrict c = a + 1023 * 1024;
        out[x] = (a[x] + (x > 0 ? a[x - 1] : 0) + (x < 1023 ? a[x + 1] : 0) + a[1024 + x]) * 0.1f;
        out[1023 * 1024 + x] = (c[x] + (x > 0 ? c[x - 1] : 0) + (x < 1023 ? c[x + 1] : 0) + c[x - 1024]) * 0.1f;
    }
    for (int y = 1; y < 1023; y++) {
        const float *restrict c = a + y * 1024;
        float *restrict o = out + y * 1024;
#pragma omp simd
        for (int x = 0; x < 1024; x++) o[x] = (c[x] + ((c[x - 1] + c[x + 1]) + (c[x - 1024] + c[x + 1024]))) * 0.1f;
        o[0] =
            (c[0] + c[1] + (c[-1024] + c[1024])) * 0.1f; /* the two ends again, without the neighbour that is outside */
        o[1023] = (c[1023] + c[1022] + (c[-1] + c[2047])) * 0.1f;
    }
}

/* ---- k26: 256 sums of 4096 ---- */
static void t26(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    for (int g = 0; g < 256; g++) {
        const float *restrict r = a + g * 4096;
        float s[4][16]; /* 64 sums, whatever the vector width: keeps the rounding error small */
        for (int j = 0; j < 16; j++) s[0][j] = s[1][j] = s[2][j] = s[3][j] = 0;
        for (int i = 0; i < 1024; i += 16)
#pragma omp simd
            for (int j = 0; j < 16; j++) {
                s[0][j] += r[i + j];
                s[1][j] += r[i + j + 1024];
                s[2][j] += r[i + j + 2048];
                s[3][j] += r[i + j + 3072];
            }
        for (int j = 0; j < 16; j++) s[0][j] = (s[0][j] + s[1][j]) + (s[2][j] + s[3][j]);
        for (int d = 8; d > 0; d >>= 1)
            for (int j = 0; j < d; j++) s[0][j] += s[0][j + d];
        out[g] = s[0][0];
    }
}

/* ---- k51: inclusive scan of each 128 ----
   w4[i] = a[i-3..i] and w16[i] = sum of a[i-15..i] by unaligned loads of a temporary (zero before the block);
   then out[i] = w16[i] + out[i-16], whole vectors at a time: no shuffles. */
enum { NB51 = 4 };
static void t51(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    float w[NB51][16 + 128] __attribute__((aligned(64)));
    for (int k = 0; k < NB51; k++)
        for (int i = 0; i < 16; i++) w[k][i] = 0;
    for (int g = 0; g < 8192; g += NB51) {
        for (int k = 0; k < NB51; k++) {
            const float *restrict r = a + (g + k) * 128;
            float *restrict q = w[k] + 16;
            float h[32];
            for (int i = 0; i < 16; i++) h[i] = 0;
            for (int i = 0; i < 16; i++) h[16 + i] = r[i];
#pragma omp simd
            for (int i = 16; i < 128; i++) q[i] = (r[i] + r[i - 1]) + (r[i - 2] + r[i - 3]);
#pragma omp simd
            for (int i = 0; i < 16; i++) q[i] = (h[16 + i] + h[15 + i]) + (h[14 + i] + h[13 + i]);
        }
        for (int k = 0; k < NB51; k++) {
            const float *restrict q = w[k] + 16;
            float *restrict o = out + (g + k) * 128;
            float s[16];
            for (int i = 0; i < 16; i++) s[i] = 0;
            for (int j = 0; j < 128; j += 16) {
#pragma omp simd
                for (int i = 0; i < 16; i++) {
                    s[i] += (q[j + i] + q[j + i - 4]) + (q[j + i - 8] + q[j + i - 12]);
                    o[j + i] = s[i];
                }
            }
        }
    }
}

/* ---- k46: 96^3 seven-point, inner points only; the border of out is left as it was ---- */
#define P46(x)                                                                                                         \
    ((((c[x] + (c[(x) + 1] + c[(x)-1])) + (c[(x) + 96] + c[(x)-96])) + (c[(x) + 9216] + c[(x)-9216])) * 0.14f)
static void t46(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    for (int z = 1; z < 95; z++)
        for (int y = 1; y < 95; y++) {
            const float *restrict c = a + (z * 96 + y) * 96;
            float *restrict o = out + (z * 96 + y) * 96;
#pragma omp simd
            for (int x = 1; x < 81; x++) o[x] = P46(x);
#pragma omp simd
            for (int x = 79; x < 95; x++) o[x] = P46(x); /* overlaps by two: no scalar remainder */
        }
}

/* ---- k47: softmax of 512 rows of 1024 ---- */
static inline float exp47(float x) /* x <= 0; relative error below 1e-4 */
{
    float t = x * 1.44269504f;
    unsigned ti, ri, pi;
    memcpy(&ti, &t, 4);
    ti = ti < 0xc2fc0000u ? ti : 0xc2fc0000u; /* t = max(t, -126), as bits: t is not positive */
    memcpy(&t, &ti, 4);
    float r = t + 12582912.0f; /* nearest whole number in the low bits */
    float f = t - (r - 12582912.0f);
    float p = 0.05517162f;
    p = p * f + 0.24261112f;
    p = p * f + 0.69326099f;
    p = p * f + 0.99992807f;
    memcpy(&ri, &r, 4);
    memcpy(&pi, &p, 4);
    pi += ri << 23;
    memcpy(&p, &pi, 4);
    return p;
}
/* Three rows at once, so that memory and arithmetic overlap: the exponentials of row g, the maximum of row g + 1, the
 * products of row g - 1. */
enum { W47 = 16 };
static inline float max47(float *restrict m)
{
    for (int d = W47 / 2; d > 0; d >>= 1)
#pragma omp simd
        for (int j = 0; j < d; j++) m[j] = m[j + d] > m[j] ? m[j + d] : m[j];
    return m[0];
}
static void t47(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    float e[2][1024] __attribute__((aligned(64)));
    float m[W47], s[W47], q = 0, mm;
    for (int j = 0; j < W47; j++) m[j] = a[j];
    for (int i = W47; i < 1024; i += W47)
        for (int j = 0; j < W47; j++) m[j] = a[i + j] > m[j] ? a[i + j] : m[j];
    mm = max47(m);
    for (int i = 0; i < 1024; i++) e[1][i] = 0;
    for (int g = 0; g < 512; g++) {
        const float *restrict r = a + g * 1024, *restrict rn = a + (g < 511 ? g + 1 : g) * 1024;
        float *restrict o = out + (g > 0 ? g - 1 : g) * 1024; /* for g = 0: zeros, overwritten at g = 1 */
        float *restrict ec = e[g & 1];
        const float *restrict ep = e[~g & 1];
        for (int j = 0; j < W47; j++) m[j] = rn[j];
        for (int j = 0; j < W47; j++) s[j] = 0;
        for (int i = 0; i < 1024; i += W47)
#pragma omp simd
            for (int j = 0; j < W47; j++) {
                float v = rn[i + j], u = exp47(r[i + j] - mm);
                ec[i + j] = u;
                s[j] += u;
                m[j] = v > m[j] ? v : m[j];
                o[i + j] = ep[i + j] * q;
            }
        for (int d = W47 / 2; d > 1; d >>= 1)
            for (int j = 0; j < d; j++) s[j] += s[j + d];
        q = 1.0f / (s[0] + s[1]);
        mm = max47(m);
    }
    for (int i = 0; i < 1024; i++) out[511 * 1024 + i] = e[1][i] * q;
}
