/* setp and set: comparisons of 32 lanes into a bit mask. Built once per vector ISA.
 *
 * The comparison itself is written on vectors as wide as the build's registers, since only that
 * gives the compilers' direct compare-to-mask code. Half-precision operands are widened to f32
 * first, which changes no comparison. Boolean operators, the second predicate and partial masks
 * are applied to the finished bit masks, in scalar code.
 */
/* clang-format off */
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

#define VEC(T, name) typedef T name __attribute__((vector_size(VEC_BYTES), may_alias))
VEC(uint32_t, vec_u32);
VEC(int32_t, vec_s32);
VEC(uint64_t, vec_u64);
VEC(int64_t, vec_s64);
VEC(float, vec_f32);
VEC(double, vec_f64);
#define N32 (VEC_BYTES / 4)
#define N64 (VEC_BYTES / 8)

static inline uint32_t gather_bits32(vec_s32 m) /* sign bits of the lanes */
{
#if VEC_BYTES == 64
    return _mm512_movepi32_mask((__m512i)m);
#elif VEC_BYTES == 32
    return (uint32_t)_mm256_movemask_ps((__m256)m);
#else
    return (uint32_t)_mm_movemask_ps((__m128)m);
#endif
}
static inline uint32_t gather_bits64(vec_s64 m)
{
#if VEC_BYTES == 64
    return _mm512_movepi64_mask((__m512i)m);
#elif VEC_BYTES == 32
    return (uint32_t)_mm256_movemask_pd((__m256d)m);
#else
    return (uint32_t)_mm_movemask_pd((__m128d)m);
#endif
}

/* Compares: one static inline function per operand kind and relation. ints: lt(x, y) etc. */
#define CMP_FN(kind, V, n, bits, load, rel, expr)                                          \
    static inline uint32_t cmp_##rel##_##kind(const struct emu_alu *o, char *regs)         \
    {                                                                                      \
        const V *a = (const V *)__builtin_assume_aligned(regs + o->s[0], 64);              \
        const V *b = (const V *)__builtin_assume_aligned(regs + o->s[1], 64);              \
        uint32_t r = 0;                                                                    \
        for (unsigned k = 0; k < 32 / (n); k++) {                                          \
            V x = load(a[k]), y = load(b[k]);                                              \
            r |= gather_bits##bits((vec_s##bits)(expr)) << (k * (n) & 31);                 \
        }                                                                                  \
        return r;                                                                          \
    }
#define AS_IS(v) (v)
#define UP16(v) ((v) << 16) /* s16 in zero-extended lanes compares like s32 shifted up */
#define INT_RELATIONS(F)                                                                   \
    F(eq, x == y) \
    F(ne, x != y) \
    F(lt, x < y) \
    F(le, x <= y) \
    F(gt, x > y) \
    F(ge, x >= y)
#define FLOAT_RELATIONS(F)                                                                 \
    F(eq, x == y) \
    F(ne, (x < y) | (x > y)) \
    F(lt, x < y) \
    F(le, x <= y) \
    F(gt, x > y) \
    F(ge, x >= y) \
    F(equ, ~((x < y) | (x > y))) \
    F(neu, x != y) \
    F(ltu, ~(x >= y)) \
    F(leu, ~(x > y)) \
    F(gtu, ~(x <= y)) \
    F(geu, ~(x < y)) \
    F(num, (x == x) & (y == y)) \
    F(nan, (x != x) | (y != y))

#define REL_U32(rel, e) CMP_FN(u32, vec_u32, N32, 32, AS_IS, rel, e)
#define REL_S32(rel, e) CMP_FN(s32, vec_s32, N32, 32, AS_IS, rel, e)
#define REL_S16(rel, e) CMP_FN(s16, vec_s32, N32, 32, UP16, rel, e)
#define REL_U64(rel, e) CMP_FN(u64, vec_u64, N64, 64, AS_IS, rel, e)
#define REL_S64(rel, e) CMP_FN(s64, vec_s64, N64, 64, AS_IS, rel, e)
#define REL_F32(rel, e) CMP_FN(f32, vec_f32, N32, 32, AS_IS, rel, e)
#define REL_FTZ(rel, e) CMP_FN(ftz, vec_f32, N32, 32, flush_vec, rel, e)
#define REL_F64(rel, e) CMP_FN(f64, vec_f64, N64, 64, AS_IS, rel, e)

static inline vec_f32 flush_vec(vec_f32 v)
{
    vec_s32 u = (vec_s32)v, subnormal = (u & 0x7f800000) == 0;
    return (vec_f32)(u & ~(subnormal & 0x7fffffff));
}
INT_RELATIONS(REL_U32)
INT_RELATIONS(REL_S32)
INT_RELATIONS(REL_S16)
INT_RELATIONS(REL_U64)
INT_RELATIONS(REL_S64)
FLOAT_RELATIONS(REL_F32)
FLOAT_RELATIONS(REL_FTZ)
FLOAT_RELATIONS(REL_F64)

/* Half precision: widened copies, then the f32 comparison. */
typedef uint32_t compare_fn(const struct emu_alu *o, char *regs);
static MG_INLINE uint32_t compare_widened(const struct emu_alu *o, const char *regs, compare_fn *cmp, unsigned shift, int kind)
{
    static const struct emu_alu places = {.s = {0, 128}};
    lanef wide[64] __attribute__((aligned(64)));
    for (unsigned s = 0; s < 2; s++) {
        const lane32 *a = AT(const lane32, o->s[s]);
        lanef *w = wide + 32 * s;
        if (kind == 0) {
            ALU_LOOP w[i] = half_to_float((a[i] >> shift) & 0xffff);
        } else if (kind == 1) {
            ALU_LOOP w[i] = half_to_float(flush16((a[i] >> shift) & 0xffff));
        } else {
            ALU_LOOP w[i] = float32(((a[i] >> shift) & 0xffff) << 16);
        }
    }
    return cmp(&places, (char *)wide);
}
#define REL_HALF(rel, e)                                                                   \
    static inline uint32_t cmp_##rel##_f16(const struct emu_alu *o, char *regs)            \
    {                                                                                      \
        return compare_widened(o, regs, cmp_##rel##_f32, 0, 0);                            \
    }                                                                                      \
    static inline uint32_t cmp_##rel##_f16ftz(const struct emu_alu *o, char *regs)         \
    {                                                                                      \
        return compare_widened(o, regs, cmp_##rel##_f32, 0, 1);                            \
    }                                                                                      \
    static inline uint32_t cmp_##rel##_bf16(const struct emu_alu *o, char *regs)           \
    {                                                                                      \
        return compare_widened(o, regs, cmp_##rel##_f32, 0, 2);                            \
    }
FLOAT_RELATIONS(REL_HALF)

/* imm: bits 0-1 boolean operator, bit 2.. what set writes for true */
enum { SET_ONES, SET_F32, SET_F16, SET_BF16, SET_B16 };
static inline uint32_t combine(uint32_t imm, uint32_t m, uint32_t c)
{
    switch (imm & 3) {
    case K_AND >> K_BOOL_SHIFT: return m & c;
    case K_OR >> K_BOOL_SHIFT: return m | c;
    case K_XOR >> K_BOOL_SHIFT: return m ^ c;
    default: return m;
    }
}
static MG_INLINE void finish_setp(const struct emu_alu *o, char *regs, uint32_t mask, uint32_t m)
{
    if (MG_LIKELY(!(o->imm | o->d2))) {
        write_pred(regs, o->d, mask, m);
        return;
    }
    uint32_t c = o->imm ? PRED(o->s[2]) : 0;
    write_pred(regs, o->d, mask, combine(o->imm, m, c));
    if (o->d2) write_pred(regs, o->d2, mask, combine(o->imm, ~m, c));
}
static MG_INLINE void finish_set(const struct emu_alu *o, char *regs, uint32_t mask, uint32_t m)
{
    static const uint32_t truth[] = {0xffffffff, 0x3f800000, 0x3c00, 0x3f80, 0xffff};
    uint32_t t = truth[o->imm >> 2];
    lane32 *d = AT(lane32, o->d);
    if (o->imm & 3) m = combine(o->imm, m, PRED(o->s[2]));
    ALU_RUN(lane32, , (m & lane_bit[i]) ? t : 0)
}

#define ENTRY(kind, rel)                                                                   \
    static void setp_##rel##_##kind(ALU_ARGS)                                              \
    {                                                                                      \
        finish_setp(o, regs, mask, cmp_##rel##_##kind(o, regs));                           \
    }                                                                                      \
    static void set_##rel##_##kind(ALU_ARGS)                                               \
    {                                                                                      \
        finish_set(o, regs, mask, cmp_##rel##_##kind(o, regs));                            \
    }
#define E_U32(rel, e) ENTRY(u32, rel)
#define E_S32(rel, e) ENTRY(s32, rel)
#define E_S16(rel, e) ENTRY(s16, rel)
#define E_U64(rel, e) ENTRY(u64, rel)
#define E_S64(rel, e) ENTRY(s64, rel)
#define E_F32(rel, e) ENTRY(f32, rel)
#define E_FTZ(rel, e) ENTRY(ftz, rel)
#define E_F64(rel, e) ENTRY(f64, rel)
#define E_F16(rel, e) ENTRY(f16, rel)
#define E_F16Z(rel, e) ENTRY(f16ftz, rel)
#define E_BF16(rel, e) ENTRY(bf16, rel)
INT_RELATIONS(E_U32)
INT_RELATIONS(E_S32)
INT_RELATIONS(E_S16)
INT_RELATIONS(E_U64)
INT_RELATIONS(E_S64)
FLOAT_RELATIONS(E_F32)
FLOAT_RELATIONS(E_FTZ)
FLOAT_RELATIONS(E_F64)
FLOAT_RELATIONS(E_F16)
FLOAT_RELATIONS(E_F16Z)
FLOAT_RELATIONS(E_BF16)

/* f16x2 and bf16x2: setp gives a predicate per half, set a pair of values */
#define PAIR_ENTRY(rel, kind, k)                                                           \
    static void setp_##rel##_##kind(ALU_ARGS)                                              \
    {                                                                                      \
        uint32_t c = o->imm & 3 ? PRED(o->s[2]) : 0;                                       \
        uint32_t lo = combine(o->imm, compare_widened(o, regs, cmp_##rel##_f32, 0, k), c); \
        uint32_t hi = combine(o->imm, compare_widened(o, regs, cmp_##rel##_f32, 16, k), c); \
        write_pred(regs, o->d, mask, lo);                                                  \
        if (o->d2) write_pred(regs, o->d2, mask, hi);                                      \
    }                                                                                      \
    static void set_##rel##_##kind(ALU_ARGS)                                               \
    {                                                                                      \
        set_pair(o, regs, mask, compare_widened(o, regs, cmp_##rel##_f32, 0, k),           \
                 compare_widened(o, regs, cmp_##rel##_f32, 16, k));                        \
    }
static void set_pair(const struct emu_alu *o, char *regs, uint32_t mask, uint32_t lo, uint32_t hi)
{
    static const uint32_t truth[] = {0xffff, 0xffff, 0x3c00, 0x3f80, 0xffff};
    uint32_t t = truth[o->imm >> 2];
    lane32 *d = AT(lane32, o->d);
    if (o->imm & 3) {
        lo = combine(o->imm, lo, PRED(o->s[2]));
        hi = combine(o->imm, hi, PRED(o->s[2]));
    }
    ALU_RUN(lane32, , ((lo & lane_bit[i]) ? t : 0) | ((hi & lane_bit[i]) ? t << 16 : 0))
}
#define P_F16(rel, e) PAIR_ENTRY(rel, f16x2, 0)
#define P_F16Z(rel, e) PAIR_ENTRY(rel, f16x2ftz, 1)
#define P_BF16(rel, e) PAIR_ENTRY(rel, bf16x2, 2)
FLOAT_RELATIONS(P_F16)
FLOAT_RELATIONS(P_F16Z)
FLOAT_RELATIONS(P_BF16)

/* Rows: alu.c takes the boolean operator out of the key and puts it into imm, see find_compare. */
#define ROWS(rel, t_, k_, kind)                                                            \
    {.op = MG_OP_setp, .t = {T_(t_)}, .dt = T_(pred), .d2t = T_(pred), .st = {T_(t_), T_(t_)}, \
     .key = (k_) | CMP_##rel << K_SUB_SHIFT, .fn = setp_##rel##_##kind},                   \
    {.op = MG_OP_set, .t = {T_(none), T_(t_)}, .dt = T_(b32), .st = {T_(t_), T_(t_)},      \
     .key = (k_) | CMP_##rel << K_SUB_SHIFT, .fn = set_##rel##_##kind},
#define R_B16(rel, e) ROWS(rel, b16, 0, u32)
#define R_B32(rel, e) ROWS(rel, b32, 0, u32)
#define R_B64(rel, e) ROWS(rel, b64, 0, u64)
#define R_U16(rel, e) ROWS(rel, u16, 0, u32)
#define R_S16(rel, e) ROWS(rel, s16, 0, s16)
#define R_U32(rel, e) ROWS(rel, u32, 0, u32)
#define R_S32(rel, e) ROWS(rel, s32, 0, s32)
#define R_U64(rel, e) ROWS(rel, u64, 0, u64)
#define R_S64(rel, e) ROWS(rel, s64, 0, s64)
#define R_F32(rel, e) ROWS(rel, f32, 0, f32)
#define R_FTZ(rel, e) ROWS(rel, f32, K_FTZ, ftz)
#define R_F64(rel, e) ROWS(rel, f64, 0, f64)
#define R_F16(rel, e) ROWS(rel, f16, 0, f16)
#define R_F16Z(rel, e) ROWS(rel, f16, K_FTZ, f16ftz)
#define R_BF16(rel, e) ROWS(rel, bf16, 0, bf16)
#define R_F16X2(rel, e) ROWS(rel, f16x2, 0, f16x2)
#define R_F16X2Z(rel, e) ROWS(rel, f16x2, K_FTZ, f16x2ftz)
#define R_BF16X2(rel, e) ROWS(rel, bf16x2, 0, bf16x2)

static const struct alu_row rows[] = {
    INT_RELATIONS(R_B16) INT_RELATIONS(R_B32) INT_RELATIONS(R_B64)
    INT_RELATIONS(R_U16) INT_RELATIONS(R_S16) INT_RELATIONS(R_U32)
    INT_RELATIONS(R_S32) INT_RELATIONS(R_U64) INT_RELATIONS(R_S64)
    FLOAT_RELATIONS(R_F32) FLOAT_RELATIONS(R_FTZ) FLOAT_RELATIONS(R_F64)
    FLOAT_RELATIONS(R_F16) FLOAT_RELATIONS(R_F16Z) FLOAT_RELATIONS(R_BF16)
    FLOAT_RELATIONS(R_F16X2) FLOAT_RELATIONS(R_F16X2Z) FLOAT_RELATIONS(R_BF16X2)
};
const struct alu_table ALU_TABLE(alu_cmp) = {rows, MG_COUNT_OF(rows)};
