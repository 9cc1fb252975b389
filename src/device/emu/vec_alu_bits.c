/* Bit fields, counts, permutations, three-input logic, funnel shifts, dot products, packed 16-bit
 * integers, carry chains. Built once per vector ISA.
 *
 * Counts and reversals use plain arithmetic (SWAR, the exponent of a double) instead of the CPU's
 * scalar instructions, since that vectorises everywhere.
 */
/* clang-format off */
#include "device/emu/alu_priv.h"

#define W_(n) AT(lane32, o->s[n])
#define SET1 uint32_t x = a[i]
#define SET2 SET1; uint32_t y = b[i]
#define SET3 SET2; uint32_t z = c[i]
#define W1(name, expr)                                                                     \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane32 *d = AT(lane32, o->d);                                                      \
        const lane32 *a = W_(0);                                                           \
        ALU_RUN(lane32, SET1, expr)                                                        \
    }
#define W2(name, expr)                                                                     \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane32 *d = AT(lane32, o->d);                                                      \
        const lane32 *a = W_(0), *b = W_(1);                                               \
        ALU_RUN(lane32, SET2, expr)                                                        \
    }
#define W3(name, expr)                                                                     \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane32 *d = AT(lane32, o->d);                                                      \
        const lane32 *a = W_(0), *b = W_(1), *c = W_(2);                                   \
        ALU_RUN(lane32, SET3, expr)                                                        \
    }

/* Bit fields. 32-bit forms take positions and lengths modulo 256, as PTX says; for 64-bit forms the
 * assembler's code, seen on an H200, clamps the whole operand. */
static inline uint32_t bfe_u32(uint32_t x, uint32_t pos, uint32_t len)
{
    uint32_t t = pos < 32 ? x >> (pos & 31) : 0, cut = len < 32 ? (1u << (len & 31)) - 1 : ALU_FULL;
    return t & cut;
}
static inline uint32_t bfe_s32(uint32_t x, uint32_t pos, uint32_t len)
{
    int32_t t = (int32_t)x >> (pos < 32 ? pos : 31);
    uint32_t up = 32 - len; /* len 1 .. 31 */
    uint32_t narrow = (uint32_t)((int32_t)((uint32_t)t << (up & 31)) >> (up & 31));
    return len == 0 ? 0 : len < 32 ? narrow : (uint32_t)t;
}
static inline uint64_t bfe_u64(uint64_t x, uint32_t pos, uint32_t len)
{
    uint64_t t = pos < 64 ? x >> (pos & 63) : 0, cut = len < 64 ? (1ull << (len & 63)) - 1 : ~0ull;
    return t & cut;
}
static inline uint64_t bfe_s64(uint64_t x, uint32_t pos, uint32_t len)
{
    int64_t t = (int64_t)x >> (pos < 64 ? pos : 63);
    uint32_t up = 64 - len;
    uint64_t narrow = (uint64_t)((int64_t)((uint64_t)t << (up & 63)) >> (up & 63));
    return len == 0 ? 0 : len < 64 ? narrow : (uint64_t)t;
}
static inline uint32_t bfi_b32(uint32_t x, uint32_t y, uint32_t pos, uint32_t len)
{
    uint32_t cut = len < 32 ? (1u << (len & 31)) - 1 : ALU_FULL, up = pos & 31;
    uint32_t r = (y & ~(cut << up)) | (x & cut) << up;
    return pos < 32 ? r : y;
}
static inline uint64_t bfi_b64(uint64_t x, uint64_t y, uint32_t pos, uint32_t len)
{
    uint64_t cut = len < 64 ? (1ull << (len & 63)) - 1 : ~0ull;
    uint32_t up = pos & 63;
    uint64_t r = (y & ~(cut << up)) | (x & cut) << up;
    return pos < 64 ? r : y;
}
W3(op_bfe_u32, bfe_u32(x, y & 255, z & 255))
W3(op_bfe_s32, bfe_s32(x, y & 255, z & 255))
#define BFE64(T)                                                                           \
    static void op_bfe_##T(ALU_ARGS)                                                       \
    {                                                                                      \
        lane64 *d = AT(lane64, o->d);                                                      \
        const lane64 *a = AT(lane64, o->s[0]);                                             \
        const lane32 *b = W_(1), *c = W_(2);                                               \
        ALU_RUN(lane64, , bfe_##T(a[i], b[i], c[i]))                             \
    }
BFE64(u64)
BFE64(s64)
#define BFI(T, L, cut)                                                                          \
    static void op_bfi_##T(ALU_ARGS)                                                       \
    {                                                                                      \
        L *d = AT(L, o->d);                                                                \
        const L *a = AT(L, o->s[0]), *b = AT(L, o->s[1]);                                  \
        const lane32 *c = W_(2), *e = W_(3);                                               \
        ALU_RUN(L, , bfi_##T(a[i], b[i], c[i] & (cut), e[i] & (cut)))                       \
    }
BFI(b32, lane32, 255)
BFI(b64, lane64, ALU_FULL)

static inline uint32_t bmsk(uint32_t x, uint32_t y, bool clamp)
{
    uint32_t from = x & 31, len = y & 31, sum = from + len;
    bool over = sum >= 32 || (clamp && (x >= 32 || y >= 32));
    uint32_t low = clamp && x >= 32 ? 0 : ALU_FULL << from, high = over ? 0 : ALU_FULL << (sum & 31);
    return low & ~(!over && len == 0 ? ALU_FULL : high);
}
W2(bmsk_clamp, bmsk(x, y, true))
W2(bmsk_wrap, bmsk(x, y, false))
static inline uint32_t szext(uint32_t x, uint32_t y, bool clamp, bool is_signed)
{
    uint32_t len = y & 31, r = is_signed ? bfe_s32(x, 0, len) : bfe_u32(x, 0, len);
    return clamp && y >= 32 ? x : r;
}
W2(szext_clamp_u32, szext(x, y, true, false))
W2(szext_clamp_s32, szext(x, y, true, true))
W2(szext_wrap_u32, szext(x, y, false, false))
W2(szext_wrap_s32, szext(x, y, false, true))

/* Counts */
static inline uint32_t popc32(uint32_t x)
{
    x = x - (x >> 1 & 0x55555555);
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    x += x >> 8;
    return (x + (x >> 16)) & 63;
}
static inline uint32_t top_bit(uint32_t x) /* index of the highest one; ~0 for 0 */
{
    uint32_t e = (uint32_t)(bits64((double)x) >> 52);
    return x ? e - 1023 : ALU_FULL;
}
static inline uint32_t top_bit64(uint64_t x)
{
    uint32_t h = (uint32_t)(x >> 32), r = top_bit(h ? h : (uint32_t)x);
    return h ? r + 32 : r;
}
static inline uint32_t brev32(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    x = (x >> 8 & 0x00ff00ff) | (x & 0x00ff00ff) << 8;
    return x >> 16 | x << 16;
}
W1(op_popc_b32, popc32(x))
W1(op_clz_b32, 31 - top_bit(x))
W1(op_brev_b32, brev32(x))
W1(op_bfind_u32, top_bit(x))
W1(op_bfind_s32, top_bit(x ^ (uint32_t)((int32_t)x >> 31)))
static inline uint32_t shift_amount(uint32_t top, uint32_t msb)
{
    return top == ALU_FULL ? top : msb - top;
}
W1(op_bfindsh_u32, shift_amount(top_bit(x), 31))
W1(op_bfindsh_s32, shift_amount(top_bit(x ^ (uint32_t)((int32_t)x >> 31)), 31))
#define D_TO_W(name, expr)                                                                 \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        lane32 *d = AT(lane32, o->d);                                                      \
        const lane64 *a = AT(lane64, o->s[0]);                                             \
        ALU_RUN(lane32, uint64_t x = a[i], expr)                                           \
    }
D_TO_W(op_popc_b64, popc32((uint32_t)x) + popc32((uint32_t)(x >> 32)))
D_TO_W(op_clz_b64, 63 - top_bit64(x))
D_TO_W(op_bfind_u64, top_bit64(x))
D_TO_W(op_bfind_s64, top_bit64(x ^ (uint64_t)((int64_t)x >> 63)))
D_TO_W(op_bfindsh_u64, shift_amount(top_bit64(x), 63))
D_TO_W(op_bfindsh_s64, shift_amount(top_bit64(x ^ (uint64_t)((int64_t)x >> 63)), 63))
static void op_brev_b64(ALU_ARGS)
{
    lane64 *d = AT(lane64, o->d);
    const lane64 *a = AT(lane64, o->s[0]);
    ALU_RUN(lane64, uint64_t x = a[i], (uint64_t)brev32((uint32_t)x) << 32 | brev32((uint32_t)(x >> 32)))
}

/* lop3: h_k is what c gives for each value of (a, b): 0, c, ~c or all ones = (c & m_k) ^ n_k */
static void lop3(char *regs, const struct emu_alu *o, uint32_t mask, lane32 *d)
{
    const lane32 *a = W_(0), *b = W_(1), *c = W_(2);
    uint32_t n[4], m[4];
    for (unsigned k = 0; k < 4; k++) {
        uint32_t pair = o->imm >> 2 * k & 3;
        n[k] = 0 - (pair & 1);
        m[k] = 0 - ((pair ^ pair >> 1) & 1);
    }
    uint32_t n0 = n[0], n1 = n[1], n2 = n[2], n3 = n[3], m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3];
    ALU_RUN(lane32, SET3,
            (x & ((y & ((z & m3) ^ n3)) | (~y & ((z & m2) ^ n2)))) | (~x & ((y & ((z & m1) ^ n1)) | (~y & ((z & m0) ^ n0)))))
}
static void op_lop3(ALU_ARGS)
{
    lop3(regs, o, mask, AT(lane32, o->d));
}
/* lop3.BoolOp d|p, a, b, c, lut, q: imm bit 8 and up = operator */
static void op_lop3_bool(ALU_ARGS)
{
    lane32 out[32] __attribute__((aligned(64))) = {0};
    uint32_t q = PRED(o->s[3]), p = 0;
    lane32 *d = AT(lane32, o->d);
    lop3(regs, o, ALU_FULL, out);
    for (unsigned i = 0; i < 32; i++) p |= (uint32_t)(out[i] != 0) << i;
    ALU_RUN(lane32, , out[i])
    if (o->d2) write_pred(regs, o->d2, mask, o->imm >> 8 == 1 ? p & q : o->imm >> 8 == 2 ? p | q : p ^ q);
}

/* prmt */
static inline uint32_t byte_at(uint32_t x, uint32_t y, uint32_t nibble)
{
    uint32_t v = ((nibble & 4) ? y : x) >> ((nibble & 3) * 8) & 255;
    uint32_t sign = (v & 128) ? 255 : 0;
    return (nibble & 8) ? sign : v;
}
static inline uint32_t prmt(uint32_t x, uint32_t y, uint32_t sel)
{
    return byte_at(x, y, sel) | byte_at(x, y, sel >> 4) << 8 | byte_at(x, y, sel >> 8) << 16 | byte_at(x, y, sel >> 12) << 24;
}
static void prmt_mode(ALU_ARGS) /* imm = mode - 1; the selector's low two bits choose a pattern */
{
    static const uint16_t patterns[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    ALU_EACH(i) AT(lane32, o->d)[i] = prmt(W_(0)[i], W_(1)[i], patterns[o->imm][W_(2)[i] & 3]);
}
W3(op_prmt, prmt(x, y, z))

/* Funnel shifts of y:x */
#define BOTH ((uint64_t)y << 32 | x)
W3(shf_l_wrap, (uint32_t)((BOTH << (z & 31)) >> 32))
W3(shf_r_wrap, (uint32_t)(BOTH >> (z & 31)))
W3(shf_l_clamp, (uint32_t)((BOTH << (z < 32 ? z : 32)) >> 32))
W3(shf_r_clamp, (uint32_t)(BOTH >> (z < 32 ? z : 32)))

/* Dot products */
#define BYTE_u(v, k) ((int32_t)((v) >> 8 * (k) & 255))
#define BYTE_s(v, k) ((int32_t)(int8_t)((v) >> 8 * (k)))
#define HALF_u(v, k) ((int32_t)((v) >> 16 * (k) & 0xffff))
#define HALF_s(v, k) ((int32_t)(int16_t)((v) >> 16 * (k)))
#define DP4(A, B, k) (uint32_t)(BYTE_##A(x, k) * BYTE_##B(y, k))
#define DP2(A, B, k, h) (uint32_t)(HALF_##A(x, k) * BYTE_##B(y, (k) + (h)))
#define DOT(A, B)                                                                          \
    W3(dp4a_##A##B, DP4(A, B, 0) + DP4(A, B, 1) + DP4(A, B, 2) + DP4(A, B, 3) + z)         \
    W3(dp2alo_##A##B, DP2(A, B, 0, 0) + DP2(A, B, 1, 0) + z)                               \
    W3(dp2ahi_##A##B, DP2(A, B, 0, 2) + DP2(A, B, 1, 2) + z)
DOT(u, u)
DOT(u, s)
DOT(s, u)
DOT(s, s)

/* Packed 16-bit integers */
#define LOW(v) ((v) & 0xffff)
#define MINS(p, q) ((int16_t)(p) < (int16_t)(q) ? LOW(p) : LOW(q))
#define MAXS(p, q) ((int16_t)(p) > (int16_t)(q) ? LOW(p) : LOW(q))
#define MINU(p, q) (LOW(p) < LOW(q) ? LOW(p) : LOW(q))
#define MAXU(p, q) (LOW(p) > LOW(q) ? LOW(p) : LOW(q))
#define RELU(v) ((int16_t)(v) < 0 ? 0u : (v))
#define BOTH_HALVES(op) ((uint32_t)op(x, y) | (uint32_t)op(x >> 16, y >> 16) << 16)
#define MINS_RELU(p, q) RELU(MINS(p, q))
#define MAXS_RELU(p, q) RELU(MAXS(p, q))
W2(add_x2, LOW(x + y) | ((x & 0xffff0000) + (y & 0xffff0000)))
W2(min_s16x2, BOTH_HALVES(MINS))
W2(max_s16x2, BOTH_HALVES(MAXS))
W2(min_u16x2, BOTH_HALVES(MINU))
W2(max_u16x2, BOTH_HALVES(MAXU))
W2(minrelu_s16x2, BOTH_HALVES(MINS_RELU))
W2(maxrelu_s16x2, BOTH_HALVES(MAXS_RELU))
static inline uint32_t relu32(int32_t v) { return v < 0 ? 0 : (uint32_t)v; }
W2(minrelu_s32, relu32((int32_t)x < (int32_t)y ? (int32_t)x : (int32_t)y))
W2(maxrelu_s32, relu32((int32_t)x > (int32_t)y ? (int32_t)x : (int32_t)y))

/* Carry chains: cc holds a carry bit per lane. imm: bit 0 reads it, bit 1 writes it, bit 2 subtracts. */
enum { CC_IN = 1, CC_OUT = 2, CC_SUB = 4 };
#define CARRY(name, L, T, product)                                                         \
    static void name(ALU_ARGS)                                                             \
    {                                                                                      \
        L *d = AT(L, o->d);                                                                \
        uint32_t in = o->imm & CC_IN ? PRED(o->cc) : 0, out = 0;                           \
        ALU_EACH(i)                                                                        \
        {                                                                                  \
            T x = (T)AT(L, o->s[0])[i], y = (T)AT(L, o->s[1])[i];                          \
            product;                                                                       \
            T k = (T)(in >> i & 1), t = o->imm & CC_SUB ? x - y : x + y;                   \
            T r = o->imm & CC_SUB ? t - k : t + k;                                         \
            bool carry = o->imm & CC_SUB ? x < y || t < k : t < x || r < t;                \
            out |= (uint32_t)carry << i;                                                   \
            d[i] = r;                                                                      \
        }                                                                                  \
        if (o->imm & CC_OUT) write_pred(regs, o->cc, mask, out);                           \
    }
#define PRODUCT(T, expr)                                                                   \
    T z = (T)AT(T##_lane, o->s[2])[i];                                                     \
    x = (T)(expr);                                                                         \
    y = z
typedef lane32 uint32_t_lane;
typedef lane64 uint64_t_lane;
CARRY(carry_32, lane32, uint32_t, )
CARRY(carry_64, lane64, uint64_t, )
CARRY(carry_mad_lo32, lane32, uint32_t, PRODUCT(uint32_t, x * y))
CARRY(carry_mad_lo64, lane64, uint64_t, PRODUCT(uint64_t, x * y))
CARRY(carry_mad_hiu32, lane32, uint32_t, PRODUCT(uint32_t, ((uint64_t)x * y) >> 32))
CARRY(carry_mad_his32, lane32, uint32_t, PRODUCT(uint32_t, ((int64_t)(int32_t)x * (int32_t)y) >> 32))
CARRY(carry_mad_hiu64, lane64, uint64_t, PRODUCT(uint64_t, ((unsigned __int128)x * y) >> 64))
CARRY(carry_mad_his64, lane64, uint64_t, PRODUCT(uint64_t, ((__int128)(int64_t)x * (int64_t)y) >> 64))

#define R_(o_, t_, k_, f_) .op = MG_OP_##o_, .t = {T_(t_)}, .dt = T_(t_), .key = (k_), .fn = (f_)
#define T_u32 MG_TYPE_u32
#define ROW1(op, t, key, fn) {R_(op, t, key, fn), .st = {T_(t)}},
#define ROW2(op, t, key, fn) {R_(op, t, key, fn), .st = {T_(t), T_(t)}},
#define ROW3(op, t, key, fn) {R_(op, t, key, fn), .st = {T_(t), T_(t), T_(t)}},
#define ROW_BFE(t) {R_(bfe, t, 0, op_bfe_##t), .st = {T_(t), T_u32, T_u32}},
#define ROW_BFI(t) {R_(bfi, t, 0, op_bfi_##t), .st = {T_(t), T_(t), T_u32, T_u32}},
#define ROW_COUNT(op_, t_, key_, fn_) {.op = MG_OP_##op_, .t = {T_(t_)}, .dt = T_u32, .st = {T_(t_)}, .key = (key_), .fn = fn_},
#define ROW_PRMT(n) {R_(prmt, b32, (n) << K_SUB_SHIFT, prmt_mode), .st = {T_(b32), T_(b32), T_(b32)}, .imm = (n) - 1},
#define ROW_DOT(A, B, TA, TB)                                                              \
    {.op = MG_OP_dp4a, .t = {T_(TA), T_(TB)}, .dt = T_u32, .st = {T_(TA), T_(TB), T_u32}, .fn = dp4a_##A##B}, \
    {.op = MG_OP_dp2a, .t = {T_(TA), T_(TB)}, .dt = T_u32, .st = {T_(TA), T_(TB), T_u32}, .key = K_LO, .fn = dp2alo_##A##B}, \
    {.op = MG_OP_dp2a, .t = {T_(TA), T_(TB)}, .dt = T_u32, .st = {T_(TA), T_(TB), T_u32}, .key = K_HI, .fn = dp2ahi_##A##B},
#define ROW_CC2(op_, t_, key_, imm_, fn_) {R_(op_, t_, key_, fn_), .st = {T_(t_), T_(t_)}, .uses_cc = 1, .imm = (imm_)},
#define ROW_CC3(op_, t_, key_, imm_, fn_) {R_(op_, t_, key_, fn_), .st = {T_(t_), T_(t_), T_(t_)}, .uses_cc = 1, .imm = (imm_)},
#define ROWS_CC(t, n, s)                                                                   \
    ROW_CC2(add, t, K_CC, CC_OUT, carry_##n) ROW_CC2(addc, t, 0, CC_IN, carry_##n)         \
    ROW_CC2(addc, t, K_CC, CC_IN | CC_OUT, carry_##n) ROW_CC2(sub, t, K_CC, CC_OUT | CC_SUB, carry_##n) \
    ROW_CC2(subc, t, 0, CC_IN | CC_SUB, carry_##n) ROW_CC2(subc, t, K_CC, CC_IN | CC_OUT | CC_SUB, carry_##n) \
    ROW_CC3(mad, t, K_LO | K_CC, CC_OUT, carry_mad_lo##n) ROW_CC3(madc, t, K_LO, CC_IN, carry_mad_lo##n) \
    ROW_CC3(madc, t, K_LO | K_CC, CC_IN | CC_OUT, carry_mad_lo##n)                         \
    ROW_CC3(mad, t, K_HI | K_CC, CC_OUT, carry_mad_hi##s##n) ROW_CC3(madc, t, K_HI, CC_IN, carry_mad_hi##s##n) \
    ROW_CC3(madc, t, K_HI | K_CC, CC_IN | CC_OUT, carry_mad_hi##s##n)

static const struct alu_row rows[] = {
    ROW_BFE(u32) ROW_BFE(s32) ROW_BFE(u64) ROW_BFE(s64) ROW_BFI(b32) ROW_BFI(b64)
    ROW2(bmsk, b32, K_CLAMP, bmsk_clamp) ROW2(bmsk, b32, K_WRAP, bmsk_wrap)
    ROW2(szext, u32, K_CLAMP, szext_clamp_u32) ROW2(szext, s32, K_CLAMP, szext_clamp_s32)
    ROW2(szext, u32, K_WRAP, szext_wrap_u32) ROW2(szext, s32, K_WRAP, szext_wrap_s32)
    ROW_COUNT(popc, b32, 0, op_popc_b32) ROW_COUNT(popc, b64, 0, op_popc_b64)
    ROW_COUNT(clz, b32, 0, op_clz_b32) ROW_COUNT(clz, b64, 0, op_clz_b64)
    ROW_COUNT(bfind, u32, 0, op_bfind_u32) ROW_COUNT(bfind, s32, 0, op_bfind_s32)
    ROW_COUNT(bfind, u64, 0, op_bfind_u64) ROW_COUNT(bfind, s64, 0, op_bfind_s64)
    ROW_COUNT(bfind, u32, K_SHIFTAMT, op_bfindsh_u32) ROW_COUNT(bfind, s32, K_SHIFTAMT, op_bfindsh_s32)
    ROW_COUNT(bfind, u64, K_SHIFTAMT, op_bfindsh_u64) ROW_COUNT(bfind, s64, K_SHIFTAMT, op_bfindsh_s64)
    ROW1(brev, b32, 0, op_brev_b32) ROW1(brev, b64, 0, op_brev_b64)
    {R_(lop3, b32, 0, op_lop3), .st = {T_(b32), T_(b32), T_(b32)}, .sets_imm = 4},
    {R_(lop3, b32, K_AND, op_lop3_bool), .d2t = T_(pred), .st = {T_(b32), T_(b32), T_(b32), T_(pred)}, .sets_imm = 4, .imm = 1 << 8},
    {R_(lop3, b32, K_OR, op_lop3_bool), .d2t = T_(pred), .st = {T_(b32), T_(b32), T_(b32), T_(pred)}, .sets_imm = 4, .imm = 2 << 8},
    {R_(lop3, b32, K_XOR, op_lop3_bool), .d2t = T_(pred), .st = {T_(b32), T_(b32), T_(b32), T_(pred)}, .sets_imm = 4, .imm = 3 << 8},
    ROW3(prmt, b32, 0, op_prmt)
    ROW_PRMT(1) ROW_PRMT(2) ROW_PRMT(3) ROW_PRMT(4) ROW_PRMT(5) ROW_PRMT(6)
    ROW3(shf, b32, K_L | K_WRAP, shf_l_wrap) ROW3(shf, b32, K_R | K_WRAP, shf_r_wrap)
    ROW3(shf, b32, K_L | K_CLAMP, shf_l_clamp) ROW3(shf, b32, K_R | K_CLAMP, shf_r_clamp)
    ROW_DOT(u, u, u32, u32) ROW_DOT(u, s, u32, s32) ROW_DOT(s, u, s32, u32) ROW_DOT(s, s, s32, s32)
    ROW2(add, u16x2, 0, add_x2) ROW2(add, s16x2, 0, add_x2)
    ROW2(min, s16x2, 0, min_s16x2) ROW2(max, s16x2, 0, max_s16x2) ROW2(min, u16x2, 0, min_u16x2)
    ROW2(max, u16x2, 0, max_u16x2) ROW2(min, s16x2, K_RELU, minrelu_s16x2) ROW2(max, s16x2, K_RELU, maxrelu_s16x2)
    ROW2(min, s32, K_RELU, minrelu_s32) ROW2(max, s32, K_RELU, maxrelu_s32)
    ROWS_CC(u32, 32, u) ROWS_CC(s32, 32, s) ROWS_CC(b32, 32, u) ROWS_CC(u64, 64, u) ROWS_CC(s64, 64, s)
};
const struct alu_table ALU_TABLE(alu_bits) = {rows, MG_COUNT_OF(rows)};
