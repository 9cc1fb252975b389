/* Integer arithmetic, logic, shifts, moves and selects, lane by lane. Built once per vector ISA.
 *
 * One line per operation and type in the lists below makes a function and its table row. In an
 * expression x, y, z are the source values as the instruction sees them (16-bit ones sign- or
 * zero-extended), X, Y, Z the same as unsigned numbers wide enough to wrap.
 */
/* clang-format off */
#include "device/emu/alu_priv.h"

#define X ((m_t)x)
#define Y ((m_t)y)
#define Z ((m_t)z)

/*   name      op     type  modifiers  expression */
#define UNARY_LIST(F, T)                                                                   \
    F(not_##T, not, T, 0, ~X)
#define UNARY_INT_LIST(F, T)                                                               \
    F(neg_##T, neg, T, 0, 0 - X)                                                           \
    F(abs_##T, abs, T, 0, x < 0 ? 0 - X : X)
#define LOGIC_LIST(F, T)                                                                   \
    F(and_##T, and, T, 0, X & Y)                                                           \
    F(or_##T, or, T, 0, X | Y)                                                             \
    F(xor_##T, xor, T, 0, X ^ Y)
#define BINARY_LIST(F, T)                                                                  \
    F(add_##T, add, T, 0, X + Y)                                                           \
    F(sub_##T, sub, T, 0, X - Y)                                                           \
    F(mullo_##T, mul, T, K_LO, X *Y)                                                       \
    F(mulhi_##T, mul, T, K_HI, MUL_HI(T, x, y))                                            \
    F(min_##T, min, T, 0, x < y ? X : Y)                                                   \
    F(max_##T, max, T, 0, x > y ? X : Y)
#define TERNARY_LIST(F, T)                                                                 \
    F(madlo_##T, mad, T, K_LO, X *Y + Z)                                                   \
    F(madhi_##T, mad, T, K_HI, MUL_HI(T, x, y) + Z)

/* Products twice as wide */
typedef uint32_t p_u16;
typedef int32_t p_s16;
typedef uint64_t p_u32;
typedef int64_t p_s32;
typedef unsigned __int128 p_u64;
typedef __int128 p_s64;
#define MUL_HI(T, a, b) ((m_t)(((p_##T)(a) * (p_##T)(b)) >> (8 * sizeof(v_##T))))

#define SETUP1(T)                                                                          \
    typedef m_##T m_t;                                                                     \
    v_##T x = (v_##T)a[i];                                                                 \
    (void)x, (void)(m_t)0
#define SETUP2(T)                                                                          \
    SETUP1(T);                                                                             \
    v_##T y = (v_##T)b[i];                                                                 \
    (void)y
#define SETUP3(T)                                                                          \
    SETUP2(T);                                                                             \
    v_##T z = (v_##T)c[i];                                                                 \
    (void)z

#define DEFINE1(name, op, T, key, expr)                                                    \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        l_##T *d = AT(l_##T, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]);                                               \
        ALU_RUN(l_##T, SETUP1(T), (u_##T)(expr))                                           \
    }
#define DEFINE2(name, op, T, key, expr)                                                    \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        l_##T *d = AT(l_##T, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]), *b = AT(l_##T, o->s[1]);                      \
        ALU_RUN(l_##T, SETUP2(T), (u_##T)(expr))                                           \
    }
#define DEFINE3(name, op, T, key, expr)                                                    \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        l_##T *d = AT(l_##T, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]), *b = AT(l_##T, o->s[1]), *c = AT(l_##T, o->s[2]); \
        ALU_RUN(l_##T, SETUP3(T), (u_##T)(expr))                                           \
    }

#define EACH_INT(M, F) M(F, u16) M(F, s16) M(F, u32) M(F, s32) M(F, u64) M(F, s64)
#define EACH_SIGNED(M, F) M(F, s16) M(F, s32) M(F, s64)
#define EACH_BITS(M, F) M(F, b16) M(F, b32) M(F, b64)

EACH_BITS(UNARY_LIST, DEFINE1)
EACH_SIGNED(UNARY_INT_LIST, DEFINE1)
EACH_BITS(LOGIC_LIST, DEFINE2)
EACH_INT(BINARY_LIST, DEFINE2)
EACH_INT(TERNARY_LIST, DEFINE3)

/* 32-bit forms of their own */
static inline int32_t saturate32(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
static inline uint32_t low24u(uint32_t v) { return v & 0xffffff; }
static inline int32_t low24s(uint32_t v) { return (int32_t)(v << 8) >> 8; }
#define MUL24U(a, b) ((uint64_t)low24u(a) * low24u(b))
#define MUL24S(a, b) ((int64_t)low24s((uint32_t)(a)) * low24s((uint32_t)(b)))

#define MORE2_LIST(F)                                                                      \
    F(addsat_s32, add, s32, K_SAT, saturate32((int64_t)x + y))                             \
    F(subsat_s32, sub, s32, K_SAT, saturate32((int64_t)x - y))                             \
    F(mul24lo_u32, mul24, u32, K_LO, MUL24U(x, y))                                         \
    F(mul24lo_s32, mul24, s32, K_LO, MUL24S(x, y))                                         \
    F(mul24hi_u32, mul24, u32, K_HI, MUL24U(x, y) >> 16)                                   \
    F(mul24hi_s32, mul24, s32, K_HI, MUL24S(x, y) >> 16)
#define MORE3_LIST(F)                                                                      \
    F(madhisat_s32, mad, s32, K_HI | K_SAT, saturate32((int64_t)MUL_HI_S32(x, y) + z))     \
    F(mad24lo_u32, mad24, u32, K_LO, MUL24U(x, y) + z)                                     \
    F(mad24lo_s32, mad24, s32, K_LO, MUL24S(x, y) + z)                                     \
    F(mad24hi_u32, mad24, u32, K_HI, (MUL24U(x, y) >> 16) + z)                             \
    F(mad24hi_s32, mad24, s32, K_HI, (MUL24S(x, y) >> 16) + z)                             \
    F(mad24hisat_s32, mad24, s32, K_HI | K_SAT, saturate32((MUL24S(x, y) >> 16) + z))
#define MUL_HI_S32(a, b) ((int32_t)(((int64_t)(a) * (b)) >> 32))
MORE2_LIST(DEFINE2)
MORE3_LIST(DEFINE3)

#define SAD_LIST(F, T) F(sad_##T, sad, T, 0, Z + (x < y ? Y - X : X - Y))
EACH_INT(SAD_LIST, DEFINE3)
#define CNOT_LIST(F, T) F(cnot_##T, cnot, T, 0, x == 0)
EACH_BITS(CNOT_LIST, DEFINE1)

/* Division. Quotients of 32-bit numbers are exact after truncating the double one; by zero the
 * hardware's result (seen on an H200) is all ones, for both. */
#define DIV_LIST(F)                                                                        \
    F(div_u16, div, u16, 0, y ? x / (y | !y) : 0xffff)                                     \
    F(div_s16, div, s16, 0, y ? x / (y | !y) : -1)                                         \
    F(div_u32, div, u32, 0, y ? (uint32_t)((double)x / (double)(y | !y)) : ALU_FULL)       \
    F(div_s32, div, s32, 0, y ? (uint32_t)(int64_t)((double)x / (double)(y | !y)) : ALU_FULL) \
    F(rem_u16, rem, u16, 0, y ? x % (y | !y) : 0xffff)                                      \
    F(rem_s16, rem, s16, 0, y ? x % (y | !y) : -1)                                      \
    F(rem_u32, rem, u32, 0, y ? X - Y * (uint32_t)((double)x / (double)(y | !y)) : ALU_FULL)      \
    F(rem_s32, rem, s32, 0, y ? X - Y * (uint32_t)(int64_t)((double)x / (double)(y | !y)) : ALU_FULL)
DIV_LIST(DEFINE2)

#define DIV64(name, op, T, key, expr)                                                     \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        l_##T *d = AT(l_##T, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]), *b = AT(l_##T, o->s[1]);                      \
        ALU_EACH(i)                                                                        \
        {                                                                                  \
            v_##T x = (v_##T)a[i], y = (v_##T)b[i];                                        \
            d[i] = (u_##T)(expr);                                                          \
        }                                                                                  \
    }
#define DIV64_LIST(F)                                                                      \
    F(div_u64, div, u64, 0, y ? x / y : ~0ull)                                             \
    F(div_s64, div, s64, 0, y == 0 ? ~0ull : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y)) \
    F(rem_u64, rem, u64, 0, y ? x % y : ~0ull)                                                 \
    F(rem_s64, rem, s64, 0, y == 0 ? ~0ull : y == -1 ? 0 : (uint64_t)(x % y))
DIV64_LIST(DIV64)

/* Products into the next width */
#define WIDE_SETUP(T)                                                                      \
    v_##T x = (v_##T)a[i], y = (v_##T)b[i]
#define WIDE(T, D)                                                                         \
    static void mulwide_##T(ALU_ARGS)                                                      \
    {                                                                                      \
        l_##D *d = AT(l_##D, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]), *b = AT(l_##T, o->s[1]);                      \
        ALU_RUN(l_##D, WIDE_SETUP(T), (p_##T)x * y)                                        \
    }                                                                                      \
    static void madwide_##T(ALU_ARGS)                                                      \
    {                                                                                      \
        l_##D *d = AT(l_##D, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]), *b = AT(l_##T, o->s[1]);                      \
        const l_##D *c = AT(l_##D, o->s[2]);                                               \
        ALU_RUN(l_##D, WIDE_SETUP(T), (u_##D)((p_##T)x * y) + c[i])                        \
    }
#define WIDE_LIST(F) F(u16, u32) F(s16, s32) F(u32, u64) F(s32, s64)
WIDE_LIST(WIDE)

/* Shifts: amounts are 32 bits wide, at or over the width they clamp. */
#define SHIFT_LIST(F)                                                                      \
    F(shl_b16, shl, b16, s < 16 ? (uint32_t)x << (s & 15) : 0)                             \
    F(shl_b32, shl, b32, s < 32 ? x << (s & 31) : 0)                                       \
    F(shl_b64, shl, b64, s < 64 ? x << (s & 63) : 0)                                       \
    F(shr_b16, shr, b16, s < 16 ? (uint32_t)x >> (s & 15) : 0)                             \
    F(shr_b32, shr, b32, s < 32 ? x >> (s & 31) : 0)                                       \
    F(shr_b64, shr, b64, s < 64 ? x >> (s & 63) : 0)                                       \
    F(shr_u16, shr, u16, s < 16 ? (uint32_t)x >> (s & 15) : 0)                             \
    F(shr_u32, shr, u32, s < 32 ? x >> (s & 31) : 0)                                       \
    F(shr_u64, shr, u64, s < 64 ? x >> (s & 63) : 0)                                       \
    F(shr_s16, shr, s16, (int32_t)x >> (s < 16 ? s : 15))                                  \
    F(shr_s32, shr, s32, x >> (s < 32 ? s : 31))                                           \
    F(shr_s64, shr, s64, x >> (s < 64 ? s : 63))
#define SHIFT_SETUP(T)                                                                     \
    v_##T x = (v_##T)a[i];                                                                 \
    uint32_t s = b[i]
#define SHIFT(name, op, T, expr)                                                           \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        l_##T *d = AT(l_##T, o->d);                                                        \
        const l_##T *a = AT(l_##T, o->s[0]);                                               \
        const lane32 *b = AT(lane32, o->s[1]);                                             \
        ALU_RUN(l_##T, SHIFT_SETUP(T), (u_##T)(expr))                                      \
    }
SHIFT_LIST(SHIFT)

/* Moves */
static void mov_w(ALU_ARGS)
{
    lane32 *d = AT(lane32, o->d);
    const lane32 *a = AT(lane32, o->s[0]);
    ALU_RUN(lane32, , a[i])
}
static void mov_d(ALU_ARGS)
{
    lane64 *d = AT(lane64, o->d);
    const lane64 *a = AT(lane64, o->s[0]);
    ALU_RUN(lane64, , a[i])
}
static void mov_q(ALU_ARGS)
{
    ALU_EACH(i) memcpy(regs + o->d + 16 * i, regs + o->s[0] + 16 * i, 16);
}
static void mov_p(ALU_ARGS)
{
    write_pred(regs, o->d, mask, PRED(o->s[0]));
}

#define SRC_W(n) AT(lane32, o->s[n])
/* Selection by predicate or by the sign of c */
static void selp_w(ALU_ARGS)
{
    lane32 *d = AT(lane32, o->d);
    const lane32 *a = SRC_W(0), *b = SRC_W(1);
    uint32_t p = PRED(o->s[2]);
    ALU_RUN(lane32, uint32_t x = a[i]; uint32_t y = b[i], (p & lane_bit[i]) ? x : y)
}
static void selp_d(ALU_ARGS)
{
    lane64 *d = AT(lane64, o->d);
    const lane64 *a = AT(lane64, o->s[0]), *b = AT(lane64, o->s[1]);
    uint64_t p = PRED(o->s[2]);
    ALU_RUN(lane64, uint64_t x = a[i]; uint64_t y = b[i], (p & lane_bit_d[i]) ? x : y)
}
#define SLCT_LIST(F)                                                                       \
    F(slct_w_s32, 32, lane32, (int32_t)c[i] >= 0)                                          \
    F(slct_d_s32, 64, lane32, (int32_t)c[i] >= 0)                                          \
    F(slct_w_f32, 32, lanef, c[i] >= 0.0f)                                                 \
    F(slct_d_f32, 64, lanef, c[i] >= 0.0f)                                                 \
    F(slct_w_ftz, 32, lanef, flush32(c[i]) >= 0.0f)                                        \
    F(slct_d_ftz, 64, lanef, flush32(c[i]) >= 0.0f)
#define SLCT(name, D, C, cond)                                                             \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane##D *d = AT(lane##D, o->d);                                                    \
        const lane##D *a = AT(lane##D, o->s[0]), *b = AT(lane##D, o->s[1]);                \
        const C *c = AT(C, o->s[2]);                                                       \
        ALU_RUN(lane##D, lane##D x = a[i]; lane##D y = b[i], (cond) ? x : y)                                           \
    }
SLCT_LIST(SLCT)

/* Predicates: masks */
static void and_p(ALU_ARGS) { write_pred(regs, o->d, mask, PRED(o->s[0]) & PRED(o->s[1])); }
static void or_p(ALU_ARGS) { write_pred(regs, o->d, mask, PRED(o->s[0]) | PRED(o->s[1])); }
static void xor_p(ALU_ARGS) { write_pred(regs, o->d, mask, PRED(o->s[0]) ^ PRED(o->s[1])); }
static void not_p(ALU_ARGS) { write_pred(regs, o->d, mask, ~PRED(o->s[0])); }

#define R_(o_, t_, k_, f_) .op = MG_OP_##o_, .t = {T_(t_)}, .dt = T_(t_), .key = (k_), .fn = (f_)
#define ROW1(name, op, T, key, expr) {R_(op, T, key, name), .st = {T_(T)}},
#define ROW2(name, op, T, key, expr) {R_(op, T, key, name), .st = {T_(T), T_(T)}},
#define ROW3(name, op, T, key, expr) {R_(op, T, key, name), .st = {T_(T), T_(T), T_(T)}},
#define ROW_SHIFT(name, op, T, expr) {R_(op, T, 0, name), .st = {T_(T), T_u32}},
#define T_u32 MG_TYPE_u32
#define ROW_WIDE(T, D)                                                                     \
    {.op = MG_OP_mul, .t = {T_(T)}, .dt = T_(D), .key = K_WIDE, .fn = mulwide_##T, .st = {T_(T), T_(T)}}, \
    {.op = MG_OP_mad, .t = {T_(T)}, .dt = T_(D), .key = K_WIDE, .fn = madwide_##T, .st = {T_(T), T_(T), T_(D)}},
#define ROW_MOV(t_, f_) {R_(mov, t_, 0, f_), .st = {T_(t_)}},
#define ROW_SELP(t_, f_) {R_(selp, t_, 0, f_), .st = {T_(t_), T_(t_), T_(pred)}},
#define ROW_SLCT1(t_, c_, k_, f_)                                                          \
    {.op = MG_OP_slct, .t = {T_(t_), T_(c_)}, .dt = T_(t_), .key = (k_), .fn = (f_), .st = {T_(t_), T_(t_), T_(c_)}},
#define ROW_SLCT(t_, w)                                                                    \
    ROW_SLCT1(t_, s32, 0, slct_##w##_s32) ROW_SLCT1(t_, f32, 0, slct_##w##_f32) ROW_SLCT1(t_, f32, K_FTZ, slct_##w##_ftz)

static const struct alu_row rows[] = {
    EACH_BITS(UNARY_LIST, ROW1)
    EACH_SIGNED(UNARY_INT_LIST, ROW1)
    EACH_BITS(LOGIC_LIST, ROW2)
    EACH_INT(BINARY_LIST, ROW2)
    EACH_INT(TERNARY_LIST, ROW3)
    MORE2_LIST(ROW2)
    MORE3_LIST(ROW3)
    EACH_INT(SAD_LIST, ROW3)
    EACH_BITS(CNOT_LIST, ROW1)
    DIV_LIST(ROW2)
    DIV64_LIST(ROW2)
    WIDE_LIST(ROW_WIDE)
    SHIFT_LIST(ROW_SHIFT)
    ROW_MOV(b16, mov_w) ROW_MOV(u16, mov_w) ROW_MOV(s16, mov_w) ROW_MOV(f16, mov_w) ROW_MOV(bf16, mov_w)
    ROW_MOV(b8, mov_w) ROW_MOV(u8, mov_w) ROW_MOV(s8, mov_w)
    ROW_MOV(b32, mov_w) ROW_MOV(u32, mov_w) ROW_MOV(s32, mov_w) ROW_MOV(f32, mov_w)
    ROW_MOV(f16x2, mov_w) ROW_MOV(bf16x2, mov_w)
    ROW_MOV(b64, mov_d) ROW_MOV(u64, mov_d) ROW_MOV(s64, mov_d) ROW_MOV(f64, mov_d)
    ROW_MOV(b128, mov_q) ROW_MOV(pred, mov_p)
    ROW_SELP(b16, selp_w) ROW_SELP(u16, selp_w) ROW_SELP(s16, selp_w) ROW_SELP(f16, selp_w)
    ROW_SELP(bf16, selp_w)
    ROW_SELP(b32, selp_w) ROW_SELP(u32, selp_w) ROW_SELP(s32, selp_w) ROW_SELP(f32, selp_w)
    ROW_SELP(b64, selp_d) ROW_SELP(u64, selp_d) ROW_SELP(s64, selp_d) ROW_SELP(f64, selp_d)
    ROW_SLCT(b16, w) ROW_SLCT(u16, w) ROW_SLCT(s16, w)
    ROW_SLCT(b32, w) ROW_SLCT(u32, w) ROW_SLCT(s32, w) ROW_SLCT(f32, w)
    ROW_SLCT(b64, d) ROW_SLCT(u64, d) ROW_SLCT(s64, d) ROW_SLCT(f64, d)
    {R_(and, pred, 0, and_p), .st = {T_(pred), T_(pred)}},
    {R_(or, pred, 0, or_p), .st = {T_(pred), T_(pred)}},
    {R_(xor, pred, 0, xor_p), .st = {T_(pred), T_(pred)}},
    {R_(not, pred, 0, not_p), .st = {T_(pred)}},
};
const struct alu_table ALU_TABLE(alu_int) = {rows, MG_COUNT_OF(rows)};
