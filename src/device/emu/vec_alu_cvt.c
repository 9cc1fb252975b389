/* cvt between the types programs convert often. Built once per vector ISA.
 *
 * All other pairs, saturation between integers included, go to cvt_any in alu_rare.c, which works
 * one lane at a time in integer arithmetic; the tests hold the two against each other.
 * Float to integer clamps to the range of the destination. NaN: 0 from f32 to 32 bits, else the top
 * bit alone, as PTX defines.
 */
/* clang-format off */
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

#define LOOP1(name, TD, TA, expr)                                                          \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        TD *d = AT(TD, o->d);                                                              \
        const TA *a = AT(TA, o->s[0]);                                                     \
        ALU_RUN(TD, , expr)                                                                \
    }
#define LOOP1_DIR(name, TD, TA, expr)                                                      \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        TD *d = AT(TD, o->d);                                                              \
        const TA *a = AT(TA, o->s[0]);                                                     \
        unsigned csr = begin_rounding(o->imm);                                             \
        ALU_RUN(TD, , expr)                                                                \
        end_rounding(csr);                                                                 \
    }

/* Integers: the source's sign decides how it widens, the destination's width what is kept. */
#define EACH_SRC(M, D) M(D, u8) M(D, s8) M(D, u16) M(D, s16) M(D, u32) M(D, s32) M(D, u64) M(D, s64)
#define EACH_PAIR(M) EACH_SRC(M, u8) EACH_SRC(M, u16) EACH_SRC(M, u32) EACH_SRC(M, u64)
#define INT_INT(D, S) LOOP1(cvt_##D##_##S, l_##D, l_##S, (u_##D)(v_##S)a[i])
EACH_PAIR(INT_INT)

/* Integer to float. Adding +0.0 turns a -0 that some vector sequences give for 0 when rounding
 * down into the +0 it must be. */
#define INT_FLOAT(D, F, S)                                                                 \
    LOOP1(cvt_##D##_##S##_rn, F, l_##S, (v_##S)a[i])                                       \
    LOOP1_DIR(cvt_##D##_##S##_dir, F, l_##S, positive_zero_##D((v_##S)a[i]))
static inline float positive_zero_f32(float x)
{
    return x == 0.0f ? 0.0f : x;
}
static inline double positive_zero_f64(double x)
{
    return x == 0.0 ? 0.0 : x;
}
#define INT_F32(D, S) INT_FLOAT(f32, lanef, S)
#define INT_F64(D, S) INT_FLOAT(f64, laned, S)
EACH_SRC(INT_F32, f32)
EACH_SRC(INT_F64, f64)

/* Rounding to an integral float; the sign is always that of x, zeros included. */
static inline float with_sign32(float r, float x)
{
    return float32((bits32(r) & 0x7fffffff) | (bits32(x) & 0x80000000));
}
static inline float round_rni32(float x)
{
    float m = with_sign32(0x1p23f, x), size = float32(bits32(x) & 0x7fffffff), r = (x + m) - m;
    return with_sign32(size < 0x1p23f ? r : x, x);
}
static inline float round_rmi32(float x)
{
    float r = round_rni32(x);
    return with_sign32(r > x ? r - 1.0f : r, x);
}
static inline float round_rpi32(float x)
{
    float r = round_rni32(x);
    return with_sign32(r < x ? r + 1.0f : r, x);
}
static inline float round_rzi32(float x)
{
    float size = float32(bits32(x) & 0x7fffffff), r = round_rni32(size);
    return with_sign32(r > size ? r - 1.0f : r, x);
}
static inline double with_sign64(double r, double x)
{
    return float64((bits64(r) & INT64_MAX) | (bits64(x) & 1ull << 63));
}
static inline double round_rni64(double x)
{
    double m = with_sign64(0x1p52, x), size = float64(bits64(x) & INT64_MAX), r = (x + m) - m;
    return with_sign64(size < 0x1p52 ? r : x, x);
}
static inline double round_rmi64(double x)
{
    double r = round_rni64(x);
    return with_sign64(r > x ? r - 1.0 : r, x);
}
static inline double round_rpi64(double x)
{
    double r = round_rni64(x);
    return with_sign64(r < x ? r + 1.0 : r, x);
}
static inline double round_rzi64(double x)
{
    double size = float64(bits64(x) & INT64_MAX), r = round_rni64(size);
    return with_sign64(r > size ? r - 1.0 : r, x);
}

/* Float to integer: LOW and TOP are the range, TOP the largest float below 2^n, LIMIT 2^n itself. */
#define F2I(name, I, F, LOW, TOP, LIMIT, MOST, NANV)                                            \
    static inline I name(F x)                                                              \
    {                                                                                      \
        F c = x > (LOW) ? x : (LOW);                                                       \
        c = c < (TOP) ? c : (TOP);                                                         \
        I r = (I)c;                                                                        \
        r = x >= (LIMIT) ? (MOST) : r;                                                     \
        return x == x ? r : (I)(NANV);                                                     \
    }
F2I(f32_s32, int32_t, float, -0x1p31f, 2147483520.0f, 0x1p31f, INT32_MAX, 0)
F2I(f32_u32, uint32_t, float, 0.0f, 4294967040.0f, 0x1p32f, UINT32_MAX, 0)
F2I(f32_s64, int64_t, float, -0x1p63f, 9223371487098961920.0f, 0x1p63f, INT64_MAX, INT64_MIN)
F2I(f32_u64, uint64_t, float, 0.0f, 18446742974197923840.0f, 0x1p64f, UINT64_MAX, 1ull << 63)
F2I(f64_s32, int32_t, double, -0x1p31, 2147483647.0, 2147483647.0, INT32_MAX, INT32_MIN)
F2I(f64_u32, uint32_t, double, 0.0, 4294967295.0, 4294967295.0, UINT32_MAX, 1u << 31)
F2I(f64_s64, int64_t, double, -0x1p63, 9223372036854774784.0, 0x1p63, INT64_MAX, INT64_MIN)
F2I(f64_u64, uint64_t, double, 0.0, 18446744073709549568.0, 0x1p64, UINT64_MAX, 1ull << 63)

#define F2I_LIST(M, D)                                                                     \
    M(D, f32, lanef, rni, round_rni32) \
    M(D, f32, lanef, rmi, round_rmi32) \
    M(D, f32, lanef, rpi, round_rpi32) \
    M(D, f32, lanef, rzi, ) \
    M(D, f64, laned, rni, round_rni64) \
    M(D, f64, laned, rmi, round_rmi64) \
    M(D, f64, laned, rpi, round_rpi64) \
    M(D, f64, laned, rzi, )
#define FLOAT_INT(D, S, L, mode, round) LOOP1(cvt_##D##_##S##_##mode, l_##D, L, (u_##D)S##_##D(round(a[i])))
#define EACH_F2I(M) F2I_LIST(M, s32) F2I_LIST(M, u32) F2I_LIST(M, s64) F2I_LIST(M, u64)
EACH_F2I(FLOAT_INT)
/* With .ftz a subnormal is 0 before it is rounded: differs only towards an infinity. */
#define FLOAT_INT_Z(D, S, L, mode, round) LOOP1(cvt_##D##_##S##_##mode##_z, l_##D, L, (u_##D)S##_##D(round(flush32(a[i]))))
#define F2I_Z_LIST(M, D)                                                                   \
    M(D, f32, lanef, rni, round_rni32) \
    M(D, f32, lanef, rmi, round_rmi32) \
    M(D, f32, lanef, rpi, round_rpi32) \
    M(D, f32, lanef, rzi, )
#define EACH_F2I_Z(M) F2I_Z_LIST(M, s32) F2I_Z_LIST(M, u32) F2I_Z_LIST(M, s64) F2I_Z_LIST(M, u64)
EACH_F2I_Z(FLOAT_INT_Z)

/* Float to float. NaN: to and from f64 the payload's upper bits survive, quietened; a bf16 is only
 * shifted; otherwise the canonical one. */
static inline double quiet64(double r, double x)
{
    return x == x ? r : float64(bits64(x) | QUIET64);
}
static inline double widen(float x) /* written out so that no compiler can fold a NaN otherwise */
{
    double r = (double)x;
    uint64_t u = bits32(x), nan = (u & 0x80000000) << 32 | 0x7ff8000000000000ull | (u & 0x7fffff) << 29;
    return x == x ? r : float64(nan);
}
static inline float narrow(double x)
{
    float r = (float)x;
    uint64_t u = bits64(x);
    uint32_t nan = (uint32_t)(u >> 32 & 0x80000000) | 0x7fc00000 | (uint32_t)(u >> 29 & 0x7fffff);
    return x == x ? r : float32(nan);
}
#define FF_LIST(M) /* name, types, key, register lanes, expression */                      \
    M(cvt_f64_f32, f64, f32, 0, laned, lanef, widen(a[i]))                      \
    M(cvt_f64_f32_z, f64, f32, K_FTZ, laned, lanef, widen(canon32(flush32(a[i]))))       \
    M(cvt_f32_f64, f32, f64, K_RN, lanef, laned, narrow(a[i]))                     \
    M(cvt_f32_f32, f32, f32, 0, lanef, lanef, a[i])                                        \
    M(cvt_f32_f32_z, f32, f32, K_FTZ, lanef, lanef, canon32(flush32(a[i])))                    \
    M(cvt_f32_f32_s, f32, f32, K_SAT, lanef, lanef, sat32(a[i]))                           \
    M(cvt_f32_f32_zs, f32, f32, K_FTZ | K_SAT, lanef, lanef, sat32(flush32(a[i])))         \
    M(cvt_f64_f64, f64, f64, 0, laned, laned, a[i])                                        \
    M(cvt_f64_f64_s, f64, f64, K_SAT, laned, laned, sat64(a[i]))                           \
    M(cvt_f32_rni, f32, f32, K_RNI, lanef, lanef, canon32(round_rni32(a[i])))              \
    M(cvt_f32_rzi, f32, f32, K_RZI, lanef, lanef, canon32(round_rzi32(a[i])))              \
    M(cvt_f32_rmi, f32, f32, K_RMI, lanef, lanef, canon32(round_rmi32(a[i])))              \
    M(cvt_f32_rpi, f32, f32, K_RPI, lanef, lanef, canon32(round_rpi32(a[i])))              \
    M(cvt_f32_rni_z, f32, f32, K_RNI | K_FTZ, lanef, lanef, canon32(round_rni32(flush32(a[i])))) \
    M(cvt_f32_rzi_z, f32, f32, K_RZI | K_FTZ, lanef, lanef, canon32(round_rzi32(flush32(a[i])))) \
    M(cvt_f32_rmi_z, f32, f32, K_RMI | K_FTZ, lanef, lanef, canon32(round_rmi32(flush32(a[i])))) \
    M(cvt_f32_rpi_z, f32, f32, K_RPI | K_FTZ, lanef, lanef, canon32(round_rpi32(flush32(a[i])))) \
    M(cvt_f64_rni, f64, f64, K_RNI, laned, laned, quiet64(round_rni64(a[i]), a[i]))             \
    M(cvt_f64_rzi, f64, f64, K_RZI, laned, laned, quiet64(round_rzi64(a[i]), a[i]))             \
    M(cvt_f64_rmi, f64, f64, K_RMI, laned, laned, quiet64(round_rmi64(a[i]), a[i]))             \
    M(cvt_f64_rpi, f64, f64, K_RPI, laned, laned, quiet64(round_rpi64(a[i]), a[i]))             \
    M(cvt_f32_f16, f32, f16, 0, lanef, lane32, canon32(half_to_float(a[i] & 0xffff)))      \
    M(cvt_f32_bf16, f32, bf16, 0, lanef, lane32, bf16_to_float(a[i] & 0xffff))    \
    M(cvt_f16_f32, f16, f32, K_RN, lane32, lanef, float_to_half(a[i]))                     \
    M(cvt_bf16_f32, bf16, f32, K_RN, lane32, lanef, float_to_bf16(a[i]))
#define FLOAT_FLOAT(name, D, S, key, LD, LS, expr) LOOP1(name, LD, LS, expr)
FF_LIST(FLOAT_FLOAT)
LOOP1_DIR(cvt_f32_f64_dir, lanef, laned, narrow(a[i]))
LOOP1_DIR(cvt_f32_f64_sat, lanef, laned, sat32((float)a[i]))

/* Two floats into a packed pair: d = {a in the upper half, b in the lower} */
#define LOOP2(name, expr)                                                                  \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane32 *d = AT(lane32, o->d);                                                      \
        const lanef *a = AT(lanef, o->s[0]), *b = AT(lanef, o->s[1]);                      \
        ALU_RUN(lane32, , expr)                                                            \
    }
LOOP2(cvt_f16x2, float_to_half(a[i]) << 16 | float_to_half(b[i]))
LOOP2(cvt_bf16x2, float_to_bf16(a[i]) << 16 | float_to_bf16(b[i]))

#define ROW_(D, S, k_, f_, i_) {.op = MG_OP_cvt, .t = {T_(D), T_(S)}, .dt = T_(D), .st = {T_(S)}, .key = (k_), .fn = f_, .imm = (i_)},
#define ROW_INT_U8(D, S) ROW_(u8, S, 0, cvt_u8_##S, 0) ROW_(s8, S, 0, cvt_u8_##S, 0)
#define ROW_INT_U16(D, S) ROW_(u16, S, 0, cvt_u16_##S, 0) ROW_(s16, S, 0, cvt_u16_##S, 0)
#define ROW_INT_U32(D, S) ROW_(u32, S, 0, cvt_u32_##S, 0) ROW_(s32, S, 0, cvt_u32_##S, 0)
#define ROW_INT_U64(D, S) ROW_(u64, S, 0, cvt_u64_##S, 0) ROW_(s64, S, 0, cvt_u64_##S, 0)
#define ROW_INT_FLOAT(D, S)                                                                \
    ROW_(D, S, K_RN, cvt_##D##_##S##_rn, 0) ROW_(D, S, K_RZ, cvt_##D##_##S##_dir, MX_RZ)   \
    ROW_(D, S, K_RM, cvt_##D##_##S##_dir, MX_RM) ROW_(D, S, K_RP, cvt_##D##_##S##_dir, MX_RP)
#define MODE_rni K_RNI
#define MODE_rzi K_RZI
#define MODE_rmi K_RMI
#define MODE_rpi K_RPI
/* .sat changes nothing: the conversion clamps anyway */
#define ROW_FLOAT_INT(D, S, L, mode, round)                                                \
    ROW_(D, S, MODE_##mode, cvt_##D##_##S##_##mode, 0) ROW_(D, S, MODE_##mode | K_SAT, cvt_##D##_##S##_##mode, 0)
#define ROW_FLOAT_INT_Z(D, S, L, mode, round)                                              \
    ROW_(D, S, MODE_##mode | K_FTZ, cvt_##D##_##S##_##mode##_z, 0)                         \
    ROW_(D, S, MODE_##mode | K_FTZ | K_SAT, cvt_##D##_##S##_##mode##_z, 0)
#define ROW_FF(name, D, S, key, LD, LS, expr) ROW_(D, S, key, name, 0)
#define ROW_PAIR(D, f_) {.op = MG_OP_cvt, .t = {T_(D), T_(f32)}, .dt = T_(D), .st = {T_(f32), T_(f32)}, .key = K_RN, .fn = f_},

#define NARROW_ROWS(k_, mx)                                                                \
    ROW_(f32, f64, k_, cvt_f32_f64_dir, mx) ROW_(f32, f64, (k_) | K_FTZ, cvt_f32_f64_dir, MX_FTZ | (mx)) \
    ROW_(f32, f64, (k_) | K_SAT, cvt_f32_f64_sat, mx) ROW_(f32, f64, (k_) | K_FTZ | K_SAT, cvt_f32_f64_sat, MX_FTZ | (mx))

static const struct alu_row rows[] = {
    EACH_SRC(ROW_INT_U8, u8) EACH_SRC(ROW_INT_U16, u16) EACH_SRC(ROW_INT_U32, u32) EACH_SRC(ROW_INT_U64, u64)
    EACH_SRC(ROW_INT_FLOAT, f32) EACH_SRC(ROW_INT_FLOAT, f64)
    EACH_F2I(ROW_FLOAT_INT) EACH_F2I_Z(ROW_FLOAT_INT_Z)
    FF_LIST(ROW_FF)
    NARROW_ROWS(K_RN, MX_RN) NARROW_ROWS(K_RZ, MX_RZ) NARROW_ROWS(K_RM, MX_RM) NARROW_ROWS(K_RP, MX_RP)
    ROW_PAIR(f16x2, cvt_f16x2) ROW_PAIR(bf16x2, cvt_bf16x2)
};
const struct alu_table ALU_TABLE(alu_cvt) = {rows, MG_COUNT_OF(rows)};
