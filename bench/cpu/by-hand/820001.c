/* Five kernels of seed 820001 on one x86-64 core, by someone who saw neither the generator nor its C. */

// The three steps folded into one: v = 0.99^3 b + 0.5 (1 + 0.99 + 0.99^2) a, one simd loop.
static void t8(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    (void)n;
    (void)ix;
#pragma omp simd
    for (int i = 0; i < 65536; i++) out[i] = b[i] * 0.970299f + a[i] * 1.48505f;
}

// Each block's 2048 words are read once into 64 running maxima (a temporary array kept in registers), which are then
// folded by halves.
static void t14(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    (void)n;
    (void)b;
    (void)ix;
    for (int g = 0; g < 512; g++) {
        const float *restrict p = a + g * 2048;
        float m[64];
#pragma omp simd
        for (int j = 0; j < 64; j++) m[j] = p[j];
        for (int k = 64; k < 2048; k += 64)
#pragma omp simd
            for (int j = 0; j < 64; j++) m[j] = m[j] > p[k + j] ? m[j] : p[k + j];
        for (int d = 32; d > 0; d >>= 1)
            for (int j = 0; j < d; j++) m[j] = m[j] > m[j + d] ? m[j] : m[j + d];
        out[g] = m[0];
    }
}

// Whole aligned rows of 1024 in one simd loop; the two edge words of each row, which the kernel leaves, are kept and
// put back.
static void t34(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    (void)n;
    (void)b;
    (void)ix;
    for (int y = 1; y < 1023; y++) {
        const float *restrict p = a + y * 1024;
        float *restrict o = out + y * 1024;
        float e0 = o[0], e1 = o[1023];
#pragma omp simd
        for (int x = 0; x < 1024; x++) o[x] = (p[x] + p[x - 1] + p[x + 1] + p[x - 1024] + p[x + 1024]) * 0.2f;
        o[0] = e0;
        o[1023] = e1;
    }
}

// One row of 1024 in pieces of 64: the sum of the seven words across goes to a small temporary array, then the six
// words above and below are added.
static inline void t82_row(const float *restrict p, float *restrict h, float *restrict o)
{
    for (int c = 0; c < 1024; c += 64) {
#pragma omp simd
        for (int x = c; x < c + 64; x++)
            h[x - c] = ((p[x - 3] + p[x - 2]) + (p[x - 1] + p[x])) + ((p[x + 1] + p[x + 2]) + p[x + 3]);
#pragma omp simd
        for (int x = c; x < c + 64; x++)
            o[x] =
                (h[x - c] + ((p[x - 1024] + p[x + 1024]) + (p[x - 2048] + p[x + 2048])) + (p[x - 3072] + p[x + 3072])) *
                0.2f;
    }
}

// Whole aligned rows through t82_row; the six edge words of each row, which the kernel leaves, are kept and put back.
static void t82(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    (void)n;
    (void)b;
    (void)ix;
    float h[64];
    for (int y = 3; y < 1021; y++) {
        float *restrict o = out + y * 1024;
        float e[6] = {o[0], o[1], o[2], o[1021], o[1022], o[1023]};
        t82_row(a + y * 1024, h, o);
        o[0] = e[0];
        o[1] = e[1];
        o[2] = e[2];
        o[1021] = e[3];
        o[1022] = e[4];
        o[1023] = e[5];
    }
}

// Each block of 256 is one simd inclusive scan (gcc makes it of in-register shifts and adds, with a running carry).
static void t87(int n, const float *restrict a, const float *restrict b, const int *restrict ix, float *restrict out)
{
    (void)n;
    (void)b;
    (void)ix;
    for (int c = 0; c < 4096; c++) {
        const float *restrict p = a + c * 256;
        float *restrict o = out + c * 256;
        float s = 0;
#pragma omp simd reduction(inscan, + : s)
        for (int i = 0; i < 256; i++) {
            s += p[i];
#pragma omp scan inclusive(s)
            o[i] = s;
        }
    }
}
