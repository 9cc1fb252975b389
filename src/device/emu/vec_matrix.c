/* Arithmetic of matrix instructions (matrix.h has the rules). Compiled once per vector ISA.
 *
 * A tile of 8 rows by 16 bytes is taken apart into quads: 8 rows by 4 elements, one of each 32-bit
 * word. An 8 x 8 tile of results is two registers, even and odd columns, both 8 rows by 4; so in a
 * vector every four lanes are a row of results, and for one k it needs that row's element of A four
 * times and the same four elements of B in every row. The order of k is of no importance.
 * Floats are split into significand (a float in [1, 2), below 1 when subnormal, signed) and exponent;
 * a product of significands is exact in f32. The exponents' maximum is taken over k, then products
 * are added as integers in units of 2^(max - fraction). All but the last rounding is exact, so all ISAs give the
 * same bits. Where all elements are small whole numbers nothing is cut off and sums in f32 are exact:
 * the same results for a quarter of the work, and programs that check themselves like such input.
 */
#include "device/emu/alu_half.h"
#include "device/emu/matrix.h"

#include <math.h>

#pragma GCC diagnostic ignored "-Wpsabi"
#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
enum {
    NV = 32 / LANES, /* vectors of a register */
    MAX_MT = 4,
    MAX_K = 128,
    NOTHING = -1000, /* exponent of zero */
};
typedef int vi __attribute__((vector_size(4 * LANES), may_alias));
typedef float vf __attribute__((vector_size(4 * LANES), may_alias));
#define ZERO                                                                                                           \
    (vi)                                                                                                               \
    {                                                                                                                  \
        0                                                                                                              \
    }
#define LOAD_I(p)   (((const vi *)__builtin_assume_aligned((p), 4 * LANES))[0])
#define STORE(p, v) (((vi *)__builtin_assume_aligned((p), 4 * LANES))[0] = (vi)(v))

INLINE vi greater(vi a, vi b)
{
#if defined(__AVX512F__)
    return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    vi m = a > b;
    return (a & m) | (b & ~m);
#endif
}

/* ---- elements ------------------------------------------------------------------------------ */

/* Quad h of a tile: bits [h * bits, (h + 1) * bits) of every word. */
INLINE void quad(const uint8_t *tile, unsigned bits, unsigned h, uint32_t *out)
{
    const lane32 *x = (const lane32 *)(const void *)tile;
    uint32_t keep = bits == 32 ? ~0u : (1u << bits) - 1;
    for (int i = 0; i < 32; i++) out[i] = x[i] >> (h * bits & 31) & keep;
}

/* Splits an element; *special: infinity or NaN seen. e_bits + m_bits + 1 = width. */
INLINE void split(uint32_t u, int e_bits, int m_bits, float *m, int *e, uint32_t *special)
{
    uint32_t top = (1u << e_bits) - 1, ex = u >> m_bits & top, frac = u & ((1u << m_bits) - 1),
             sign = (u >> (e_bits + m_bits) & 1) << 31;
    int bias = (int)(top >> 1);
    float one = float32(0x3f800000u | frac << (23 - m_bits)), v = ex ? one : one - 1.0f;
    *m = float32(bits32(v) | sign);
    int real = (ex ? (int)ex : 1) - bias;
    *e = ex | frac ? real : NOTHING;
    *special |= (uint32_t)(ex == top);
}

static uint32_t split_quad(enum mg_type t, const uint32_t *x, bool negate, float *m, int *e)
{
    uint32_t special = 0, ignored = 0;
    switch (t) {
    case MG_TYPE_f16:
        for (int i = 0; i < 32; i++) split(x[i], 5, 10, &m[i], &e[i], &special);
        break;
    case MG_TYPE_bf16:
        for (int i = 0; i < 32; i++) split(x[i], 8, 7, &m[i], &e[i], &special);
        break;
    case MG_TYPE_e5m2:
        for (int i = 0; i < 32; i++) split(x[i], 5, 2, &m[i], &e[i], &special);
        break;
    case MG_TYPE_e4m3:
        for (int i = 0; i < 32; i++) split(x[i], 4, 3, &m[i], &e[i], &ignored);
        for (int i = 0; i < 32; i++) special |= (x[i] & 0x7f) == 0x7f;
        break;
    default:
        for (int i = 0; i < 32; i++) split(x[i] >> 13, 8, 10, &m[i], &e[i], &special);
        break;
    }
    for (int i = 0; negate && i < 32; i++) m[i] = float32(bits32(m[i]) ^ 0x80000000u);
    return special;
}

INLINE uint32_t not_whole(float x, float most)
{
    float r = (x + 0x1.8p23f) - 0x1.8p23f, size = float32(bits32(x) & 0x7fffffff);
    return (uint32_t)(r != x) | (uint32_t) !(size <= most);
}

/* Elements as floats; what comes back says whether some are no small whole numbers. */
static uint32_t whole_quad(enum mg_type t, const uint32_t *x, bool negate, float *out)
{
    uint32_t bad = 0;
    if (t == MG_TYPE_f16)
        for (int i = 0; i < 32; i++) out[i] = half_to_float(x[i]);
    else if (t == MG_TYPE_bf16)
        for (int i = 0; i < 32; i++) out[i] = bf16_to_float(x[i]);
    else
        for (int i = 0; i < 32; i++) out[i] = float32(x[i] & 0xffffe000);
    for (int i = 0; i < 32; i++) bad |= not_whole(out[i], 256.0f);
    for (int i = 0; negate && i < 32; i++) out[i] = float32(bits32(out[i]) ^ 0x80000000u);
    return bad;
}

static void widen_quad(enum mg_type t, const uint32_t *x, int *out)
{
    if (t == MG_TYPE_s8)
        for (int i = 0; i < 32; i++) out[i] = (int)(x[i] << 24) >> 24;
    else if (t == MG_TYPE_s4)
        for (int i = 0; i < 32; i++) out[i] = (int)(x[i] << 28) >> 28;
    else
        for (int i = 0; i < 32; i++) out[i] = (int)x[i];
}

/* ---- operands in place --------------------------------------------------------------------- */

/* Element k of each row, four times: [4][32] from a quad. */
#if defined(__AVX512F__)
#define SPREAD(v, k) (vi) _mm512_shuffle_epi32((__m512i)(v), (k)*0x55)
#elif defined(__AVX2__)
#define SPREAD(v, k) (vi) _mm256_shuffle_epi32((__m256i)(v), (k)*0x55)
#else
#define SPREAD(v, k) (vi) _mm_shuffle_epi32((__m128i)(v), (k)*0x55)
#endif
INLINE void spread_a(const void *from, void *to)
{
    for (int v = 0; v < NV; v++) {
        vi x = LOAD_I((const lane32 *)from + v * LANES);
        lane32 *d = (lane32 *)to + v * LANES;
        STORE(d, SPREAD(x, 0));
        STORE(d + 32, SPREAD(x, 1));
        STORE(d + 64, SPREAD(x, 2));
        STORE(d + 96, SPREAD(x, 3));
    }
}

/* Four columns of one parity for each k, in every row of a vector: [4][2][LANES]. Rows of the quad
 * are columns: even and odd ones are transposed, 4 by 4. */
INLINE void every_row(void *to, __m128 x)
{
    for (int i = 0; i < LANES; i += 4) _mm_store_ps((float *)to + i, x);
}
INLINE void spread_b(const void *from, void *to)
{
    const float *s = from;
    float *d = to;
    for (int p = 0; p < 2; p++) {
        __m128 r0 = _mm_load_ps(s + 4 * p), r1 = _mm_load_ps(s + 4 * p + 8), r2 = _mm_load_ps(s + 4 * p + 16),
               r3 = _mm_load_ps(s + 4 * p + 24);
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
        every_row(d + (0 + p) * LANES, r0);
        every_row(d + (2 + p) * LANES, r1);
        every_row(d + (4 + p) * LANES, r2);
        every_row(d + (6 + p) * LANES, r3);
    }
}

struct work {                                 /* on the stack of the worker; of A all, of B and C one tile of columns */
    _Alignas(64) float aw[MAX_MT][MAX_K][32]; /* whole numbers; integers lie here, too */
    _Alignas(64) float am[MAX_MT][MAX_K / 2][32];
    _Alignas(64) int ae[MAX_MT][MAX_K / 2][32];
    _Alignas(64) float bw[MAX_K][2][LANES];
    _Alignas(64) float bm[MAX_K / 2][2][LANES];
    _Alignas(64) int be[MAX_K / 2][2][LANES];
    _Alignas(64) uint32_t c[MAX_MT * 64]; /* by row tile: even columns, odd columns, 32 lanes each */
    _Alignas(64) uint32_t d[MAX_MT * 64];
    _Alignas(64) double sum[MAX_MT * 64];
    bool have_split;
    uint32_t a_special;
};

/* ---- floats ----------------------------------------------------------------------------------- */

struct row {
    vi top, base, acc, high, low;
};

INLINE vi term(vf p, vi shift)
{
    return __builtin_convertvector(p * (vf)(greater(shift, ZERO + 97) << 23), vi);
}

/* Splits the addends and starts the search for the largest exponent with them. */
INLINE void open_row(struct row *r, const uint32_t *c, vf *cm, vi *ce)
{
    vi cb = LOAD_I(c), ex = cb >> 23 & 255, sub = ex == 0, zero = (cb & 0x7fffffff) == 0;
    vf one = (vf)((cb & (int)0x80000000) | 0x3f800000), m = (vf)((cb & (int)0x807fffff) | 0x3f800000);
    *cm = (vf)(((vi)(m - one) & sub) | ((vi)m & ~sub));
    *ce = ((ex - 127 - sub) & ~zero) | (NOTHING & zero);
    r->top = greater(*ce, ZERO - 126);
}

INLINE void start_sum(struct row *r, vf cm, vi ce, int fraction)
{
    r->base = fraction + 127 - r->top;
    r->acc = term(cm, ce + r->base);
    r->high = r->low = ZERO;
}

INLINE void carry(struct row *r)
{
    r->high += r->acc >> 16;
    r->low += r->acc & 0xffff;
    r->acc = ZERO;
}

INLINE void close_row(const struct row *r, int fraction, double *out)
{
    int32_t hi[LANES], lo[LANES], to[LANES];
    memcpy(hi, &r->high, sizeof hi);
    memcpy(lo, &r->low, sizeof lo);
    memcpy(to, &r->top, sizeof to);
    for (int j = 0; j < LANES; j++)
        out[j] =
            ((double)hi[j] * 65536.0 + (double)lo[j]) * float64((uint64_t)(int64_t)(to[j] - fraction + 1023) << 52);
}

/* Even and odd columns of vector v of the row tile t. Groups of 8 products stay within 32 bits. */
INLINE void dot(struct work *w, uint32_t t, int v, uint32_t k, int fraction)
{
    struct row r, s;
    vf rm, sm;
    vi re, se;
    open_row(&r, w->c + 64 * t + v * LANES, &rm, &re);
    open_row(&s, w->c + 64 * t + 32 + v * LANES, &sm, &se);
    for (uint32_t i = 0; i < k; i += 4)
        for (uint32_t u = 0; u < 4; u++) {
            vi e = LOAD_I(w->ae[t][i + u] + v * LANES);
            r.top = greater(r.top, e + LOAD_I(w->be[i + u][0]));
            s.top = greater(s.top, e + LOAD_I(w->be[i + u][1]));
        }
    start_sum(&r, rm, re, fraction);
    start_sum(&s, sm, se, fraction);
    for (uint32_t i = 0; i < k; i += 4) {
        for (uint32_t u = 0; u < 4; u++) {
            vi e = LOAD_I(w->ae[t][i + u] + v * LANES);
            vf m = (vf)LOAD_I(w->am[t][i + u] + v * LANES);
            r.acc += term(m * (vf)LOAD_I(w->bm[i + u][0]), e + LOAD_I(w->be[i + u][0]) + r.base);
            s.acc += term(m * (vf)LOAD_I(w->bm[i + u][1]), e + LOAD_I(w->be[i + u][1]) + s.base);
        }
        if (i & 4) carry(&r), carry(&s);
    }
    carry(&r);
    carry(&s);
    close_row(&r, fraction, w->sum + 64 * t + v * LANES);
    close_row(&s, fraction, w->sum + 64 * t + 32 + v * LANES);
}

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

static uint32_t element(const uint8_t *const *tiles, uint32_t step, uint32_t row, uint32_t k, uint32_t bits)
{
    uint32_t at = k * bits / 8, u = 0;
    memcpy(&u, tiles[at / 16 * step] + row * 16 + at % 16, bits / 8);
    return u;
}

/* Infinities and NaN make their results what the exact sum is. */
static void patch_special(const struct emu_matrix *x, const uint8_t *const *a, const uint8_t *const *b, struct work *w)
{
    uint32_t mt = x->m / 8u, bits = mg_type_bits((enum mg_type)x->a);
    bool half = mg_type_bits((enum mg_type)x->d) == 16;
    for (uint32_t i = 0; i < x->m; i++)
        for (uint32_t j = 0; j < 8; j++) {
            uint32_t at = i / 8 * 64 + (j & 1) * 32 + i % 8 * 4 + j / 2, *d = &w->d[at];
            double s = float32(w->c[at]);
            for (uint32_t k = 0; k < x->k; k++) {
                double p = emu_matrix_value((enum mg_type)x->a, element(a + i / 8, mt, i % 8, k, bits)) *
                           emu_matrix_value((enum mg_type)x->b, element(b, 1, j, k, bits));
                s += x->flags & EMU_MF_NEG_A && x->flags & EMU_MF_NEG_B ? p
                     : x->flags & (EMU_MF_NEG_A | EMU_MF_NEG_B)         ? -p
                                                                        : p;
            }
            if (s != s)
                *d = half ? 0x7fff : 0x7fffffff;
            else if (isinf(s))
                *d = (half ? 0x7c00u : 0x7f800000u) | (s < 0 ? half ? 0x8000u : 0x80000000u : 0);
        }
}

static uint32_t split_a(const struct emu_matrix *x, const uint8_t *const *a, struct work *w)
{
    uint32_t mt = x->m / 8u, bits = mg_type_bits((enum mg_type)x->a), per = 32 / bits, quads = x->k / 4u, special = 0;
    for (uint32_t t = 0; t < mt; t++)
        for (uint32_t q = 0; q < quads; q++) {
            _Alignas(64) uint32_t x4[32];
            _Alignas(64) float m[32];
            _Alignas(64) int e[32];
            quad(a[t + q / per * mt], bits, q % per, x4);
            special |= split_quad((enum mg_type)x->a, x4, x->flags & EMU_MF_NEG_A, m, e);
            spread_a(m, w->am[t][4 * q]);
            spread_a(e, w->ae[t][4 * q]);
        }
    return special;
}

/* One tile of columns: b are its tiles in the order of k. */
static void columns_float(const struct emu_matrix *x, const uint8_t *const *a, const uint8_t *const *b, struct work *w,
                          uint32_t bad)
{
    uint32_t mt = x->m / 8u, k = x->k, bits = mg_type_bits((enum mg_type)x->b), per = 32 / bits, quads = k / 4,
             special = 0, odd = 0;
    bool half = mg_type_bits((enum mg_type)x->d) == 16;
    _Alignas(64) uint32_t x4[32];
    _Alignas(64) float m[32];
    _Alignas(64) int e[32];
    for (uint32_t q = 0; !bad && q < quads; q++) {
        quad(b[q / per], bits, q % per, x4);
        bad |= whole_quad((enum mg_type)x->b, x4, x->flags & EMU_MF_NEG_B, m);
        spread_b(m, w->bw[4 * q]);
    }
    for (uint32_t t = 0; !bad && t < mt; t++)
        for (uint32_t i = 0; i < 64; i++) bad |= not_whole(float32(w->c[64 * t + i]), 0x1p23f);
    if (!bad) {
        for (uint32_t t = 0; t < mt; t++)
            for (int v = 0; v < NV; v++) {
                vf even = (vf)ZERO, uneven = (vf)ZERO;
                for (uint32_t i = 0; i < k; i += 4)
                    for (uint32_t u = 0; u < 4; u++) {
                        vf y = (vf)LOAD_I(w->aw[t][i + u] + v * LANES);
                        even += y * (vf)LOAD_I(w->bw[i + u][0]);
                        uneven += y * (vf)LOAD_I(w->bw[i + u][1]);
                    }
                STORE(w->d + 64 * t + v * LANES, even + (vf)LOAD_I(w->c + 64 * t + v * LANES) + 0.0f);
                STORE(w->d + 64 * t + 32 + v * LANES, uneven + (vf)LOAD_I(w->c + 64 * t + 32 + v * LANES) + 0.0f);
            }
        for (uint32_t i = 0; half && i < 64 * mt; i++) w->d[i] = float_to_half(float32(w->d[i]));
        return;
    }
    if (!w->have_split) w->a_special = split_a(x, a, w);
    w->have_split = true;
    for (uint32_t q = 0; q < quads; q++) {
        quad(b[q / per], bits, q % per, x4);
        special |= split_quad((enum mg_type)x->b, x4, x->flags & EMU_MF_NEG_B, m, e);
        spread_b(m, w->bm[4 * q]);
        spread_b(e, w->be[4 * q]);
    }
    for (uint32_t t = 0; t < mt; t++)
        for (int v = 0; v < NV; v++) dot(w, t, v, k, x->fraction);
    for (uint32_t i = 0; i < 64 * mt; i++) odd |= (w->c[i] & 0x7f800000) == 0x7f800000;
    if (half)
        for (uint32_t i = 0; i < 64 * mt; i++) w->d[i] = float_to_half(double_to_float_odd(w->sum[i]));
    else
        cut_f32(w->sum, w->d, 64 * mt, x->flags & EMU_MF_E8M13 ? ~0x3ffu : ~0u);
    if (special | odd | w->a_special) patch_special(x, a, b, w);
}

/* ---- integers --------------------------------------------------------------------------------- */

static void columns_int(const struct emu_matrix *x, const uint8_t *const *b, struct work *w)
{
    uint32_t mt = x->m / 8u, k = x->k, bits = mg_type_bits((enum mg_type)x->b), per = 32 / bits;
    _Alignas(64) uint32_t x4[32];
    _Alignas(64) int y[32];
    for (uint32_t q = 0; q < k / 4; q++) {
        quad(b[q / per], bits, q % per, x4);
        widen_quad((enum mg_type)x->b, x4, y);
        spread_b(y, w->bw[4 * q]);
    }
    for (uint32_t t = 0; t < mt; t++)
        for (int v = 0; v < NV; v++) {
            vi even = ZERO, uneven = ZERO;
            for (uint32_t i = 0; i < k; i += 4)
                for (uint32_t u = 0; u < 4; u++) {
                    vi s = LOAD_I(w->aw[t][i + u] + v * LANES);
                    even += s * LOAD_I(w->bw[i + u][0]);
                    uneven += s * LOAD_I(w->bw[i + u][1]);
                }
            STORE(w->d + 64 * t + v * LANES, even);
            STORE(w->d + 64 * t + 32 + v * LANES, uneven);
        }
    for (uint32_t i = 0; i < 64 * mt; i++) {
        int64_t s = (int64_t)(int32_t)w->c[i] + (int32_t)w->d[i];
        if (x->flags & EMU_MF_SAT) s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
        w->d[i] = (uint32_t)s;
    }
}

static void columns_bits(const struct emu_matrix *x, const uint8_t *const *a, const uint8_t *const *b, struct work *w)
{
    uint32_t mt = x->m / 8u, words = x->k / 32u;
    for (uint32_t i = 0; i < x->m; i++)
        for (uint32_t j = 0; j < 8; j++) {
            uint32_t at = i / 8 * 64 + (j & 1) * 32 + i % 8 * 4 + j / 2, sum = w->c[at];
            for (uint32_t q = 0; q < words; q++) {
                uint32_t u = element(a + i / 8, mt, i % 8, q, 32), v = element(b, 1, j, q, 32);
                sum += (uint32_t)__builtin_popcount(x->flags & EMU_MF_AND ? u & v : u ^ v);
            }
            w->d[at] = sum;
        }
}

/* ---- all ---------------------------------------------------------------------------------------- */

static void load_c(const struct emu_matrix *x, const char *regs, uint32_t first, struct work *w, bool zero)
{
    const uint32_t *reg = x->reg + x->n_a + x->n_b;
    bool half = mg_type_bits((enum mg_type)x->c) == 16;
    for (uint32_t t = 0; t < x->m / 8u; t++) {
        if (zero)
            memset(w->c + 64 * t, 0, 256);
        else if (half) {
            const lane32 *s = (const lane32 *)(const void *)(regs + reg[first + t]);
            for (int i = 0; i < 32; i++) w->c[64 * t + (uint32_t)i] = bits32(half_to_float(s[i] & 0xffff));
            for (int i = 0; i < 32; i++) w->c[64 * t + 32 + (uint32_t)i] = bits32(half_to_float(s[i] >> 16));
        } else {
            memcpy(w->c + 64 * t, regs + reg[2 * (first + t)], 128);
            memcpy(w->c + 64 * t + 32, regs + reg[2 * (first + t) + 1], 128);
        }
    }
}

static void store_d(const struct emu_matrix *x, char *regs, uint32_t first, const struct work *w)
{
    const uint32_t *reg = x->reg + x->n_a + x->n_b + x->n_c;
    bool half = mg_type_bits((enum mg_type)x->d) == 16;
    for (uint32_t t = 0; t < x->m / 8u; t++) {
        if (half) {
            lane32 *d = (lane32 *)(void *)(regs + reg[first + t]);
            for (int i = 0; i < 32; i++) d[i] = w->d[64 * t + (uint32_t)i] | w->d[64 * t + 32 + (uint32_t)i] << 16;
        } else {
            memcpy(regs + reg[2 * (first + t)], w->d + 64 * t, 128);
            memcpy(regs + reg[2 * (first + t) + 1], w->d + 64 * t + 32, 128);
        }
    }
}

/* Registers of D may be among those of A and B: where there is more than one tile of columns, results
 * are written when all tiles have been read. */
static void product(const struct emu_matrix *x, const uint8_t *const *a, const uint8_t *const *b, char *regs,
                    bool zero_c)
{
    struct work w;
    uint32_t mt = x->m / 8u, nt = x->n / 8u, bits = mg_type_bits((enum mg_type)x->a), kt = x->k * bits / 128,
             per = 32 / (bits ? bits : 1), bad = bits == 8;
    bool is_float = mg_type_kind((enum mg_type)x->a) == MG_TK_FLOAT;
    _Alignas(64) uint32_t x4[32];
    _Alignas(64) float y[32];
    w.have_split = false;
    for (uint32_t t = 0; t < mt && x->a != MG_TYPE_b1; t++)
        for (uint32_t q = 0; q < x->k / 4u && !(is_float && bad); q++) {
            quad(a[t + q / per * mt], bits, q % per, x4);
            if (is_float)
                bad |= whole_quad((enum mg_type)x->a, x4, x->flags & EMU_MF_NEG_A, y);
            else
                widen_quad((enum mg_type)x->a, x4, (int *)(void *)y);
            spread_a(y, w.aw[t][4 * q]);
        }
    struct emu_matrix late = *x;
    _Alignas(64) char held[MAX_MT * 4 * 256]; /* D of up to 4 tiles of columns */
    uint32_t slots[MAX_MT * 8], n_regs = mt * nt * (mg_type_bits((enum mg_type)x->d) == 16 ? 1 : 2);
    bool hold = x->n_a + x->n_b && nt > 1 && n_regs <= MG_COUNT_OF(slots);
    if (hold) {
        late.n_a = late.n_b = late.n_c = 0;
        late.reg = slots;
        for (uint32_t i = 0; i < n_regs; i++) slots[i] = i * 128;
    }
    for (uint32_t n = 0; n < nt; n++) {
        load_c(x, regs, n * mt, &w, zero_c);
        if (x->a == MG_TYPE_b1)
            columns_bits(x, a, b + n * kt, &w);
        else if (is_float)
            columns_float(x, a, b + n * kt, &w, bad);
        else
            columns_int(x, b + n * kt, &w);
        store_d(&late, hold ? held : regs, n * mt, &w);
    }
    for (uint32_t i = 0; hold && i < n_regs; i++)
        memcpy(regs + x->reg[x->n_a + x->n_b + x->n_c + i], held + slots[i], 128);
}

/* ---- f64 -------------------------------------------------------------------------------------- */

/* Per 8 x 8 tile even columns are one register, odd ones the other; lane = 4 row + column / 2. One k
 * after the other, fused. */
#if defined(__AVX2__)
typedef __m256d v4d;
#define FMA4(a, b, c) _mm256_fmadd_pd(a, b, c)
#define LOAD4(p)      _mm256_load_pd(p)
#define STORE4(p, v)                                                                                                   \
    _mm256_store_pd(p, _mm256_blendv_pd(v, _mm256_castsi256_pd(_mm256_set1_epi64x((long long)NAN64)),                  \
                                        _mm256_cmp_pd(v, v, _CMP_UNORD_Q)))
#define SPREAD4(v, k) _mm256_permute4x64_pd(v, (k)*0x55)
#else
typedef struct {
    double at[4];
} v4d;
INLINE v4d FMA4(v4d a, v4d b, v4d c)
{
    for (int i = 0; i < 4; i++) c.at[i] = fma(a.at[i], b.at[i], c.at[i]);
    return c;
}
INLINE v4d LOAD4(const double *p)
{
    v4d v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void STORE4(double *p, v4d v)
{
    for (int i = 0; i < 4; i++) p[i] = v.at[i] == v.at[i] ? v.at[i] : float64(NAN64);
}
#define SPREAD4(v, k)                                                                                                  \
    (v4d)                                                                                                              \
    {                                                                                                                  \
        {                                                                                                              \
            (v).at[k], (v).at[k], (v).at[k], (v).at[k]                                                                 \
        }                                                                                                              \
    }
#endif

static void product_f64(const struct emu_matrix *x, char *regs)
{
    const uint32_t *ra = x->reg, *rb = ra + x->n_a, *rc = rb + x->n_b, *rd = rc + x->n_c;
    uint32_t mt = x->m / 8u, kt = x->k / 4u;
    _Alignas(32) double b[16][2][4]; /* k, parity, column / 2 */
    for (uint32_t q = 0; q < kt; q++) {
        const double *s = (const double *)(const void *)(regs + rb[q]); /* [column][k] */
        for (uint32_t p = 0; p < 2; p++)
            for (uint32_t k = 0; k < 4; k++)
                for (uint32_t j = 0; j < 4; j++) b[4 * q + k][p][j] = s[(2 * j + p) * 4 + k];
    }
    _Alignas(32) double held[4][32]; /* where a later tile may still read what an earlier one would overwrite */
    for (uint32_t t = 0; t < mt; t++) {
        double *d0 = mt > 1 ? held[2 * t] : (double *)(void *)(regs + rd[2 * t]),
               *d1 = mt > 1 ? held[2 * t + 1] : (double *)(void *)(regs + rd[2 * t + 1]);
        const double *c0 = (const double *)(const void *)(regs + rc[2 * t]),
                     *c1 = (const double *)(const void *)(regs + rc[2 * t + 1]);
        for (uint32_t r = 0; r < 8; r++) {
            v4d even = LOAD4(c0 + 4 * r), odd = LOAD4(c1 + 4 * r);
            for (uint32_t q = 0; q < kt; q++) {
                v4d a = LOAD4((const double *)(const void *)(regs + ra[t + mt * q]) + 4 * r);
#define STEP(k)                                                                                                        \
    even = FMA4(SPREAD4(a, k), LOAD4(b[4 * q + (k)][0]), even), odd = FMA4(SPREAD4(a, k), LOAD4(b[4 * q + (k)][1]), odd)
                STEP(0), STEP(1), STEP(2), STEP(3);
            }
            STORE4(d0 + 4 * r, even);
            STORE4(d1 + 4 * r, odd);
        }
    }
    for (uint32_t t = 0; mt > 1 && t < 2 * mt; t++) memcpy(regs + rd[t], held[t], sizeof held[t]);
}

const struct emu_matrix_ops ALU_TABLE(emu_matrix) = {.product = product, .product_f64 = product_f64};
