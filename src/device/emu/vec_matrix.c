/* Arithmetic of matrix instructions (matrix.h has the rules). Compiled once per vector ISA.
 *
 * Floats are split into significand (a float in [1, 2), below 1 when subnormal, signed) and exponent;
 * a product of significands is exact in f32. One vector holds 8 or 16 neighbouring columns: it takes
 * the exponents' maximum over k, then adds the products as integers in units of 2^(max - fraction).
 * Everything but the last rounding is exact, so all ISAs give the same bits.
 */
#include "device/emu/alu_half.h"
#include "device/emu/matrix.h"

#include <math.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#define INLINE static inline __attribute__((always_inline))

enum { MAX_M = 32, MAX_N = 256, NOTHING = -1000 /* exponent of zero */ };
typedef int v8i __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v8f __attribute__((vector_size(32), aligned(4), may_alias));
typedef int v16i __attribute__((vector_size(64), aligned(4), may_alias));
typedef float v16f __attribute__((vector_size(64), aligned(4), may_alias));

/* ---- elements ------------------------------------------------------------------------------ */

/* Splits one element; *special: infinity or NaN seen. e_bits + m_bits + 1 = width. */
INLINE void split(uint32_t u, int e_bits, int m_bits, float *m, int *e, uint32_t *special)
{
    uint32_t top = (1u << e_bits) - 1, ex = u >> m_bits & top, frac = u & ((1u << m_bits) - 1), sign = (u >> (e_bits + m_bits) & 1) << 31;
    int bias = (int)(top >> 1);
    float one = float32(0x3f800000u | frac << (23 - m_bits)), v = ex ? one : one - 1.0f;
    *m = float32(bits32(v) | sign);
    int real = (ex ? (int)ex : 1) - bias;
    *e = ex | frac ? real : NOTHING;
    *special |= (uint32_t)(ex == top);
}

#define SPLITTER(name, T, width_shift, EB, MB)                                                   \
    static uint32_t name(const uint8_t *raw, uint32_t n, float *m, int *e)                       \
    {                                                                                            \
        const T *x = (const T *)(const void *)raw;                                               \
        uint32_t special = 0;                                                                    \
        for (uint32_t i = 0; i < n; i++) split((uint32_t)x[i] >> (width_shift), EB, MB, &m[i], &e[i], &special); \
        return special;                                                                          \
    }
SPLITTER(split_f16, uint16_t, 0, 5, 10)
SPLITTER(split_bf16, uint16_t, 0, 8, 7)
SPLITTER(split_tf32, uint32_t, 13, 8, 10)
SPLITTER(split_e5m2, uint8_t, 0, 5, 2)

static uint32_t split_e4m3(const uint8_t *x, uint32_t n, float *m, int *e)
{
    uint32_t special = 0, ignored = 0;
    for (uint32_t i = 0; i < n; i++) {
        split(x[i], 4, 3, &m[i], &e[i], &ignored);
        special |= (x[i] & 0x7f) == 0x7f;
    }
    return special;
}

static uint32_t split_any(enum mg_type t, const uint8_t *raw, uint32_t n, float *m, int *e)
{
    switch (t) {
    case MG_TYPE_f16: return split_f16(raw, n, m, e);
    case MG_TYPE_bf16: return split_bf16(raw, n, m, e);
    case MG_TYPE_e5m2: return split_e5m2(raw, n, m, e);
    case MG_TYPE_e4m3: return split_e4m3(raw, n, m, e);
    default: return split_tf32(raw, n, m, e);
    }
}

static void widen(enum mg_type t, const uint8_t *raw, uint32_t n, int *out)
{
    switch (t) {
    case MG_TYPE_u8: for (uint32_t i = 0; i < n; i++) out[i] = raw[i]; break;
    case MG_TYPE_s8: for (uint32_t i = 0; i < n; i++) out[i] = (int8_t)raw[i]; break;
    case MG_TYPE_u4: for (uint32_t i = 0; i < n; i++) out[i] = raw[i / 2] >> 4 * (i & 1) & 15; break;
    default: for (uint32_t i = 0; i < n; i++) out[i] = (int)((uint32_t)(raw[i / 2] >> 4 * (i & 1)) << 28) >> 28; break;
    }
}

/* b is given by columns: [n][k] to [k][n] */
#define TRANSPOSE(name, T)                                                                       \
    static void name(const uint8_t *raw, uint8_t *out, uint32_t n, uint32_t k)                   \
    {                                                                                            \
        const T *x = (const T *)(const void *)raw;                                               \
        T *y = (T *)(void *)out;                                                                 \
        for (uint32_t j = 0; j < n; j += 8)                                                      \
            for (uint32_t i = 0; i < k; i++)                                                     \
                for (uint32_t q = 0; q < 8; q++) y[i * n + j + q] = x[(j + q) * k + i];          \
    }
TRANSPOSE(transpose_8, uint8_t)
TRANSPOSE(transpose_16, uint16_t)
TRANSPOSE(transpose_32, uint32_t)

/* ---- accumulators ----------------------------------------------------------------------------- */

/* Fragment of C or D to and from rows of 32-bit values. */
static void load_c(const struct emu_matrix *x, const char *regs, uint32_t *c)
{
    const uint32_t *reg = x->reg + x->n_a + x->n_b, mt = x->m / 8u, n = x->n;
    for (uint32_t t = 0; t < mt * (n / 8u); t++) {
        uint32_t *to = c + t % mt * 8 * n + t / mt * 8;
        if (mg_type_bits((enum mg_type)x->c) == 16) {
            const uint16_t *s = (const uint16_t *)(const void *)(regs + reg[t]);
            for (int r = 0; r < 8; r++)
                for (int q = 0; q < 8; q++) to[(uint32_t)r * n + (uint32_t)q] = bits32(half_to_float(s[8 * r + q]));
            continue;
        }
        const lane32 *even = (const lane32 *)(const void *)(regs + reg[2 * t]), *odd = (const lane32 *)(const void *)(regs + reg[2 * t + 1]);
        for (int r = 0; r < 8; r++)
            for (int q = 0; q < 4; q++) {
                to[(uint32_t)r * n + 2u * (uint32_t)q] = even[4 * r + q];
                to[(uint32_t)r * n + 2u * (uint32_t)q + 1] = odd[4 * r + q];
            }
    }
}

static void store_d(const struct emu_matrix *x, char *regs, const uint32_t *d)
{
    const uint32_t *reg = x->reg + x->n_a + x->n_b + x->n_c, mt = x->m / 8u, n = x->n;
    for (uint32_t t = 0; t < mt * (n / 8u); t++) {
        const uint32_t *from = d + t % mt * 8 * n + t / mt * 8;
        if (mg_type_bits((enum mg_type)x->d) == 16) {
            uint16_t *to = (uint16_t *)(void *)(regs + reg[t]);
            for (int r = 0; r < 8; r++)
                for (int q = 0; q < 8; q++) to[8 * r + q] = (uint16_t)from[(uint32_t)r * n + (uint32_t)q];
            continue;
        }
        lane32 *even = (lane32 *)(void *)(regs + reg[2 * t]), *odd = (lane32 *)(void *)(regs + reg[2 * t + 1]);
        for (int r = 0; r < 8; r++)
            for (int q = 0; q < 4; q++) {
                even[4 * r + q] = from[(uint32_t)r * n + 2u * (uint32_t)q];
                odd[4 * r + q] = from[(uint32_t)r * n + 2u * (uint32_t)q + 1];
            }
    }
}

/* ---- floats ----------------------------------------------------------------------------------- */

INLINE v16i max16(v16i a, v16i b)
{
#if defined(__AVX512F__)
    return (v16i)_mm512_max_epi32((__m512i)a, (__m512i)b);
#else
    v16i m = a > b;
    return (a & m) | (b & ~m);
#endif
}
INLINE v8i max8(v8i a, v8i b)
{
#if defined(__AVX2__)
    return (v8i)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    v8i m = a > b;
    return (a & m) | (b & ~m);
#endif
}

/* One row of NB columns: sum[j] in units of 2^unit[j]. Groups of 8 products stay within 32 bits. */
#define DOT(NB)                                                                                  \
    INLINE void dot##NB(const float *am, const int *ae, const float *bm, const int *be, uint32_t ldb, uint32_t k, const uint32_t *c, int fraction, double *out) \
    {                                                                                            \
        typedef v##NB##i vi;                                                                     \
        typedef v##NB##f vf;                                                                     \
        vi cb = *(const vi *)(const void *)c, ex = cb >> 23 & 255, sub = ex == 0, zero = (cb & 0x7fffffff) == 0; \
        vf one = (vf)((cb & (int)0x80000000) | 0x3f800000), cm = (vf)((cb & (int)0x807fffff) | 0x3f800000); \
        cm = (vf)(((vi)(cm - one) & sub) | ((vi)cm & ~sub));                                     \
        vi ce = ((ex - 127 - sub) & ~zero) | (NOTHING & zero), top = max##NB(ce, ce - ce - 126); \
        for (uint32_t i = 0; i < k; i++) top = max##NB(top, *(const vi *)(const void *)(be + i * ldb) + ae[i]); \
        vi base = fraction + 127 - top, least = base - base + 97, acc, high = base - base, low = high; \
        vf scale = (vf)(max##NB(ce + base, least) << 23);                                        \
        acc = __builtin_convertvector(cm * scale, vi);                                           \
        for (uint32_t i = 0; i < k; i++) {                                                       \
            vi s = max##NB(*(const vi *)(const void *)(be + i * ldb) + (base + ae[i]), least);   \
            vf p = *(const vf *)(const void *)(bm + i * ldb) * am[i];                            \
            acc += __builtin_convertvector(p * (vf)(s << 23), vi);                               \
            if ((i & 7) == 7) {                                                                  \
                high += acc >> 16;                                                               \
                low += acc & 0xffff;                                                             \
                acc = acc - acc;                                                                 \
            }                                                                                    \
        }                                                                                        \
        high += acc >> 16;                                                                       \
        low += acc & 0xffff;                                                                     \
        int32_t hi[NB], lo[NB], to[NB];                                                          \
        memcpy(hi, &high, sizeof hi);                                                            \
        memcpy(lo, &low, sizeof lo);                                                             \
        memcpy(to, &top, sizeof to);                                                             \
        for (int j = 0; j < NB; j++)                                                             \
            out[j] = ((double)hi[j] * 65536.0 + (double)lo[j]) * float64((uint64_t)(int64_t)(to[j] - fraction + 1023) << 52); \
    }
DOT(8)
DOT(16)

/* Towards zero; what is too large becomes infinite all the same. */
static void cut_f32(const double *s, uint32_t *d, uint32_t n, uint32_t keep)
{
    unsigned csr = begin_rounding(MX_RZ);
    for (uint32_t i = 0; i < n; i++) {
        float f = (float)s[i];
        uint32_t u = bits32(f) & keep, inf = bits32(f) >> 31 << 31 | 0x7f800000u;
        double size = float64(bits64(s[i]) & INT64_MAX);
        d[i] = size >= 0x1p128 ? inf : u;
    }
    end_rounding(csr);
}

/* Infinities and NaN make their results what the exact sum is. */
static void patch_special(const struct emu_matrix *x, const uint8_t *a, const uint8_t *b, const uint32_t *c, uint32_t *d)
{
    uint32_t bits = mg_type_bits((enum mg_type)x->a), row = emu_matrix_row_bytes(x);
    bool half = mg_type_bits((enum mg_type)x->d) == 16;
    for (uint32_t i = 0; i < x->m; i++)
        for (uint32_t j = 0; j < x->n; j++) {
            double s = float32(c[i * x->n + j]);
            for (uint32_t k = 0; k < x->k; k++) {
                uint32_t u = 0, v = 0;
                memcpy(&u, a + i * row + k * bits / 8, bits / 8);
                memcpy(&v, b + j * row + k * bits / 8, bits / 8);
                double p = emu_matrix_value((enum mg_type)x->a, u) * emu_matrix_value((enum mg_type)x->b, v);
                s += x->flags & EMU_MF_NEG_A && x->flags & EMU_MF_NEG_B ? p : x->flags & (EMU_MF_NEG_A | EMU_MF_NEG_B) ? -p : p;
            }
            if (s != s) d[i * x->n + j] = half ? 0x7fff : 0x7fffffff;
            else if (isinf(s)) d[i * x->n + j] = (half ? 0x7c00u : 0x7f800000u) | (s < 0 ? half ? 0x8000u : 0x80000000u : 0);
        }
}

static void negate(float *m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) m[i] = float32(bits32(m[i]) ^ 0x80000000u);
}

/* Work space of a product; on the stack of the worker. */
struct space {
    float am[MAX_M * EMU_MAX_K_BYTES / 2];
    int ae[MAX_M * EMU_MAX_K_BYTES / 2];
    float bm[MAX_N * EMU_MAX_K_BYTES / 2];
    int be[MAX_N * EMU_MAX_K_BYTES / 2];
    uint8_t bt[MAX_N * EMU_MAX_K_BYTES];
    uint32_t c[MAX_M * MAX_N];
    double sum[MAX_M * MAX_N];
};

static void product_float(const struct emu_matrix *x, const uint8_t *a, const uint8_t *b, struct space *w)
{
    uint32_t m = x->m, n = x->n, k = x->k, bits = mg_type_bits((enum mg_type)x->a);
    uint32_t special = split_any((enum mg_type)x->a, a, m * k, w->am, w->ae);
    if (bits == 8) transpose_8(b, w->bt, n, k);
    else if (bits == 16) transpose_16(b, w->bt, n, k);
    else transpose_32(b, w->bt, n, k);
    special |= split_any((enum mg_type)x->b, w->bt, n * k, w->bm, w->be);
    if (x->flags & EMU_MF_NEG_A) negate(w->am, m * k);
    if (x->flags & EMU_MF_NEG_B) negate(w->bm, n * k);
    for (uint32_t i = 0; i < m; i++) {
        uint32_t j = 0;
        for (; j + 16 <= n; j += 16) dot16(w->am + i * k, w->ae + i * k, w->bm + j, w->be + j, n, k, w->c + i * n + j, x->fraction, w->sum + i * n + j);
        for (; j < n; j += 8) dot8(w->am + i * k, w->ae + i * k, w->bm + j, w->be + j, n, k, w->c + i * n + j, x->fraction, w->sum + i * n + j);
    }
    uint32_t odd = 0;
    for (uint32_t i = 0; i < m * n; i++) odd |= (w->c[i] & 0x7f800000) == 0x7f800000;
    uint32_t *d = (uint32_t *)(void *)w->bm; /* no longer needed */
    if (mg_type_bits((enum mg_type)x->d) == 16)
        for (uint32_t i = 0; i < m * n; i++) d[i] = float_to_half(double_to_float_odd(w->sum[i]));
    else cut_f32(w->sum, d, m * n, x->flags & EMU_MF_E8M13 ? ~0x3ffu : ~0u);
    if (special | odd) patch_special(x, a, b, w->c, d);
    memcpy(w->c, d, m * n * sizeof *d);
}

/* ---- integers --------------------------------------------------------------------------------- */

static void product_int(const struct emu_matrix *x, const uint8_t *a, const uint8_t *b, struct space *w)
{
    uint32_t m = x->m, n = x->n, k = x->k;
    int *bt = w->be, *ai = w->ae, *flat = (int *)(void *)w->bm;
    widen((enum mg_type)x->a, a, m * k, ai);
    widen((enum mg_type)x->b, b, n * k, flat);
    transpose_32((const uint8_t *)flat, (uint8_t *)bt, n, k);
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < n; j += 8) {
            v8i acc = {0};
            for (uint32_t q = 0; q < k; q++) acc += *(const v8i *)(const void *)(bt + q * n + j) * ai[i * k + q];
            uint32_t *c = w->c + i * n + j;
            int32_t s[8];
            memcpy(s, &acc, sizeof s);
            for (int l = 0; l < 8; l++) {
                int64_t r = (int64_t)(int32_t)c[l] + s[l];
                if (x->flags & EMU_MF_SAT) r = r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r;
                c[l] = (uint32_t)r;
            }
        }
}

static void product_bits(const struct emu_matrix *x, const uint8_t *a, const uint8_t *b, struct space *w)
{
    uint32_t row = x->k / 8u;
    for (uint32_t i = 0; i < x->m; i++)
        for (uint32_t j = 0; j < x->n; j++) {
            uint32_t sum = 0;
            for (uint32_t q = 0; q < row; q += 8) {
                uint64_t u, v;
                memcpy(&u, a + i * row + q, 8);
                memcpy(&v, b + j * row + q, 8);
                sum += (uint32_t)__builtin_popcountll(x->flags & EMU_MF_AND ? u & v : u ^ v);
            }
            w->c[i * x->n + j] += sum;
        }
}

static void product(const struct emu_matrix *x, const uint8_t *a, const uint8_t *b, char *regs, bool zero_c)
{
    struct space w;
    if (zero_c) memset(w.c, 0, (size_t)x->m * x->n * sizeof *w.c);
    else load_c(x, regs, w.c);
    if (x->a == MG_TYPE_b1) product_bits(x, a, b, &w);
    else if (mg_type_kind((enum mg_type)x->a) == MG_TK_FLOAT) product_float(x, a, b, &w);
    else product_int(x, a, b, &w);
    store_d(x, regs, w.c);
}

/* ---- f64 -------------------------------------------------------------------------------------- */

#if defined(__FMA__)
#define FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA(a, b, c) fma(a, b, c)
#endif

/* Per 8 x 8 tile: even columns are one register, odd ones the other; lane = 4 row + column / 2. */
static void product_f64(const struct emu_matrix *x, char *regs)
{
    const uint32_t *ra = x->reg, *rb = ra + x->n_a, *rc = rb + x->n_b, *rd = rc + x->n_c;
    uint32_t mt = x->m / 8u, kt = x->k / 4u;
    double even[16][8], odd[16][8];
    for (uint32_t q = 0; q < kt; q++) {
        const double *b = (const double *)(const void *)(regs + rb[q]); /* [column][k] */
        for (uint32_t k = 0; k < 4; k++)
            for (uint32_t j = 0; j < 8; j++) even[4 * q + k][j] = b[(2 * (j & 3)) * 4 + k], odd[4 * q + k][j] = b[(2 * (j & 3) + 1) * 4 + k];
    }
    double held[4][32]; /* where a later tile may still read what an earlier one would overwrite */
    for (uint32_t t = 0; t < mt; t++) {
        double *d0 = mt > 1 ? held[2 * t] : (double *)(void *)(regs + rd[2 * t]), *d1 = mt > 1 ? held[2 * t + 1] : (double *)(void *)(regs + rd[2 * t + 1]);
        const double *c0 = (const double *)(const void *)(regs + rc[2 * t]), *c1 = (const double *)(const void *)(regs + rc[2 * t + 1]);
        for (uint32_t r = 0; r < 8; r += 2) { /* two rows are 8 lanes */
            double s0[8], s1[8];
            memcpy(s0, c0 + 4 * r, sizeof s0);
            memcpy(s1, c1 + 4 * r, sizeof s1);
            for (uint32_t k = 0; k < x->k; k++) {
                const double *a = (const double *)(const void *)(regs + ra[t + mt * (k / 4)]) + 4 * r + k % 4;
                double y[8];
                for (int j = 0; j < 4; j++) y[j] = a[0];
                for (int j = 4; j < 8; j++) y[j] = a[4];
                for (int j = 0; j < 8; j++) s0[j] = FMA(y[j], even[k][j], s0[j]);
                for (int j = 0; j < 8; j++) s1[j] = FMA(y[j], odd[k][j], s1[j]);
            }
            for (int j = 0; j < 8; j++) d0[4 * r + (uint32_t)j] = s0[j] == s0[j] ? s0[j] : float64(NAN64);
            for (int j = 0; j < 8; j++) d1[4 * r + (uint32_t)j] = s1[j] == s1[j] ? s1[j] : float64(NAN64);
        }
    }
    for (uint32_t t = 0; mt > 1 && t < 2 * mt; t++) memcpy(regs + rd[t], held[t], sizeof held[t]);
}

const struct emu_matrix_ops ALU_TABLE(emu_matrix) = {.product = product, .product_f64 = product_f64};
