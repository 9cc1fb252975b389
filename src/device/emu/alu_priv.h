/* Shared by alu*.c and vec_alu*.c only: the lane loops, small exact helpers. What a form is: alu_form.h.
 *
 * A vec_*.c file is built once per vector ISA, with EMU_SUF defined on the command line;
 * ALU_TABLE(x) gives each build's table its own name (x_base, x_avx2, x_avx512).
 * Loops run over all 32 lanes; where the mask is not full the old value is blended back in, which
 * costs less than a branch per lane and lets the compiler vectorise both versions.
 */
#ifndef MG_DEVICE_EMU_ALU_PRIV_H
#define MG_DEVICE_EMU_ALU_PRIV_H

#include "device/emu/alu_form.h"

#include <immintrin.h>
#include <string.h>

#ifndef EMU_SUF
#define EMU_SUF _base
#endif
#define ALU_CAT2(a, b)  a##b
#define ALU_CAT(a, b)   ALU_CAT2(a, b)
#define ALU_TABLE(name) ALU_CAT(name, EMU_SUF)

/* Register lanes. Loads of one type may follow stores of another. */
#define MAY_ALIAS __attribute__((may_alias))
typedef uint32_t MAY_ALIAS lane32;
typedef uint64_t MAY_ALIAS lane64;
typedef float MAY_ALIAS lanef;
typedef double MAY_ALIAS laned;
#define AT(T, off) ((T *)__builtin_assume_aligned(regs + (off), 64))
#define PRED(off)  (*(lane32 *)(regs + (off)))

#define ALU_FULL 0xffffffffu
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that stays scalar is slower, not wrong */
#define ALU_LOOP _Pragma("clang loop vectorize(assume_safety) interleave(disable)") for (int i = 0; i < 32; i++)
#else
#define ALU_LOOP _Pragma("GCC ivdep") for (int i = 0; i < 32; i++)
#endif
#define ALU_ARGS const struct emu_alu *o, char *regs, uint32_t mask

#define B4(n) 1u << (n), 2u << (n), 4u << (n), 8u << (n)
static const uint32_t lane_bit[32]
    __attribute__((aligned(64), unused)) = {B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28)};
static const uint64_t lane_bit_d[32]
    __attribute__((aligned(64), unused)) = {B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28)};
#undef B4

/* The body STORE of a loop once for a full mask, once with blending. d, i and r are in scope. */
#define ALU_RUN(TD, SETUP, EXPR)                                                                                       \
    if (MG_LIKELY(mask == ALU_FULL)) {                                                                                 \
        ALU_LOOP                                                                                                       \
        {                                                                                                              \
            SETUP;                                                                                                     \
            d[i] = (TD)(EXPR);                                                                                         \
        }                                                                                                              \
    } else if (sizeof(TD) == 8) {                                                                                      \
        uint64_t wide_mask = mask;                                                                                     \
        ALU_LOOP                                                                                                       \
        {                                                                                                              \
            SETUP;                                                                                                     \
            TD r_ = (TD)(EXPR);                                                                                        \
            d[i] = (wide_mask & lane_bit_d[i]) ? r_ : d[i];                                                            \
        }                                                                                                              \
    } else {                                                                                                           \
        ALU_LOOP                                                                                                       \
        {                                                                                                              \
            SETUP;                                                                                                     \
            TD r_ = (TD)(EXPR);                                                                                        \
            d[i] = (mask & lane_bit[i]) ? r_ : d[i];                                                                   \
        }                                                                                                              \
    }
/* The same for long expressions of 32-bit lanes: blending in a loop of its own, or the compiler makes
 * the whole expression conditional. */
#define ALU_RUN_SPLIT(TD, SETUP, EXPR)                                                                                 \
    if (MG_LIKELY(mask == ALU_FULL)) {                                                                                 \
        ALU_LOOP                                                                                                       \
        {                                                                                                              \
            SETUP;                                                                                                     \
            d[i] = (TD)(EXPR);                                                                                         \
        }                                                                                                              \
    } else {                                                                                                           \
        TD all_[32] __attribute__((aligned(64)));                                                                      \
        ALU_LOOP                                                                                                       \
        {                                                                                                              \
            SETUP;                                                                                                     \
            all_[i] = (TD)(EXPR);                                                                                      \
        }                                                                                                              \
        __asm__ volatile("" : : "r"(all_) : "memory");                                                                 \
        ALU_LOOP d[i] = (mask & lane_bit[i]) ? all_[i] : d[i];                                                         \
    }
/* For what does not vectorise anyway: active lanes only. */
#define ALU_EACH(i) for (uint32_t left_ = mask, i; left_ && (i = (uint32_t)__builtin_ctz(left_), 1); left_ &= left_ - 1)

static inline void write_pred(char *regs, uint32_t off, uint32_t mask, uint32_t value)
{
    lane32 *p = (lane32 *)(regs + off);
    *p = (*p & ~mask) | (value & mask);
}

/* Value types: v_T as the instruction sees it, u_T its bits, l_T the register lane, m_T wide enough
 * and unsigned for wrapping arithmetic. */
typedef uint8_t v_u8, u_u8, v_b8, u_b8, u_s8;
typedef int8_t v_s8;
typedef uint16_t v_u16, u_u16, v_b16, u_b16, u_s16;
typedef int16_t v_s16;
typedef uint32_t v_u32, u_u32, v_b32, u_b32, u_s32;
typedef int32_t v_s32;
typedef uint64_t v_u64, u_u64, v_b64, u_b64, u_s64;
typedef int64_t v_s64;
typedef lane32 l_u8, l_s8, l_b8, l_u16, l_s16, l_b16, l_u32, l_s32, l_b32;
typedef lane64 l_u64, l_s64, l_b64;
typedef uint32_t m_u8, m_s8, m_b8, m_u16, m_s16, m_b16, m_u32, m_s32, m_b32;
typedef uint64_t m_u64, m_s64, m_b64;

/* Floats as bits */
static inline uint32_t bits32(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
static inline float float32(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static inline uint64_t bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}
static inline double float64(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

static inline float flush32(float x) /* subnormal: zero of the same sign */
{
    uint32_t u = bits32(x);
    return float32((u & 0x7f800000) ? u : u & 0x80000000);
}
static inline float canon32(float x)
{
    return x == x ? x : float32(NAN32);
}
static inline float sat32(float x) /* NaN: +0 */
{
    float top = x < 1.0f ? x : 1.0f;
    return x > 0.0f ? top : 0.0f;
}
static inline double sat64(double x)
{
    double top = x < 1.0 ? x : 1.0;
    return x > 0.0 ? top : 0.0;
}

/* Directed rounding and .ftz: MXCSR is changed for one loop. The compiler does not know that arithmetic
 * depends on it; the barriers pin the loads and stores around, hence what lies between. The CPU
 * flushes a result that is below the normal range after rounding to full precision, and so does an
 * H200: a product that only subnormal rounding lifts to 2^-126 is zero on both. */
static inline unsigned begin_rounding(unsigned mode)
{
    unsigned old = _mm_getcsr();
    _mm_setcsr((old & ~0xe040u) | (mode & 3) << 13 | (mode & MX_FTZ ? 0x8040 : 0));
    __asm__ volatile("" ::: "memory");
    return old;
}
static inline void end_rounding(unsigned old)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(old);
}

/* A vector of the build's widest registers, for what loops do not express well. */
#if defined(__AVX512F__)
#define VEC_BYTES 64
#elif defined(__AVX2__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif

/* Tables of the files; alu.c searches them. */
#define ALU_TABLES(X) X(alu_int) X(alu_cmp) X(alu_float) X(alu_cvt) X(alu_bits) X(alu_half) X(alu_x2)
#define X(t)          extern const struct alu_table t##_base, t##_avx2, t##_avx512;
ALU_TABLES(X)
#undef X
extern const struct alu_table alu_rare; /* alu_rare.c, built once */

/* Forms whose functions take their variant from imm instead of having a row each. n_src: source
 * operands in the text. */
bool alu_cvt_any(const struct mg_form *f, unsigned n_src, uint32_t key, struct emu_alu_desc *out);
bool alu_cvt_small(const struct mg_form *f, unsigned n_src, struct emu_alu_desc *out); /* knows its modifiers itself */
bool alu_video_find(const struct mg_form *f, unsigned n_src, uint32_t key, struct emu_alu_desc *out);

#endif
