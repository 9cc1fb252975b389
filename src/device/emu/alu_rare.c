/* Forms programs seldom run, one active lane at a time: every cvt that vec_alu_cvt.c has no loop
 * for, cvt.pack, testp, fns. Built once, in integer arithmetic that needs no rounding mode.
 */
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

/* ---- conversion of any pair ---------------------------------------------------------------- */

struct number { /* sign and magnitude; value = mant * 2^exp, more than 0 only when CLASS_FINITE */
    bool negative;
    uint8_t class;
    uint64_t mant;
    int exp;
};
enum { CLASS_FINITE, CLASS_INF, CLASS_NAN };
struct format {
    uint8_t mant_bits, exp_bits; /* stored mantissa */
};
static const struct format half_format = {10, 5}, bf16_format = {7, 8}, float_format = {23, 8},
                           double_format = {52, 11};
static const struct format *format_of(enum mg_type t)
{
    return t == MG_TYPE_f16    ? &half_format
           : t == MG_TYPE_bf16 ? &bf16_format
           : t == MG_TYPE_f32  ? &float_format
           : t == MG_TYPE_f64  ? &double_format
                               : NULL;
}

static struct number unpack(uint64_t bits, const struct format *f)
{
    int top = (1 << f->exp_bits) - 1, e = (int)(bits >> f->mant_bits) & top, bias = top >> 1;
    struct number n = {.negative = bits >> (f->mant_bits + f->exp_bits) & 1,
                       .mant = bits & ((1ull << f->mant_bits) - 1)};
    n.class = e != top ? CLASS_FINITE : n.mant ? CLASS_NAN : CLASS_INF;
    if (e) n.mant |= 1ull << f->mant_bits;
    n.exp = (e ? e : 1) - bias - f->mant_bits;
    return n;
}

/* Drops the low n bits; what they held decides with the mode whether 1 is added. */
static uint64_t round_shift(uint64_t mant, int n, bool negative, uint32_t mode)
{
    if (n <= 0) return mant;
    uint64_t kept = n < 64 ? mant >> n : 0, rest = n < 64 ? mant & ((1ull << n) - 1) : mant;
    uint64_t half = n <= 64 ? 1ull << (n - 1) : 0; /* n > 64: below one half */
    if (!rest) return kept;
    bool up;
    switch (mode) {
    case K_RZ:
    case K_RZI:
        up = false;
        break;
    case K_RM:
    case K_RMI:
        up = negative;
        break;
    case K_RP:
    case K_RPI:
        up = !negative;
        break;
    default:
        up = n <= 64 && (rest > half || (rest == half && (kept & 1)));
    }
    return kept + up;
}

static uint64_t pack(struct number n, const struct format *f, uint32_t mode)
{
    uint64_t top = (1ull << f->exp_bits) - 1, inf = top << f->mant_bits,
             sign = (uint64_t)n.negative << (f->mant_bits + f->exp_bits);
    int bias = (int)(top >> 1);
    if (n.class == CLASS_NAN) return (1ull << (f->mant_bits + f->exp_bits)) - 1;
    if (n.class == CLASS_INF) return inf | sign;
    if (!n.mant) return sign;
    int width = 64 - __builtin_clzll(n.mant);
    int lowest = 1 - bias - f->mant_bits;        /* exponent of a subnormal's last bit */
    int last = n.exp + width - 1 - f->mant_bits; /* of this number's, if normal */
    if (last < lowest) last = lowest;
    uint64_t m = last >= n.exp ? round_shift(n.mant, last - n.exp, n.negative, mode) : n.mant << (n.exp - last);
    if (m >> (f->mant_bits + 1)) m >>= 1, last++;
    uint64_t e = m >> f->mant_bits ? (uint64_t)(last + f->mant_bits + bias) : 0;
    if (e >= top) { /* overflow: to infinity or to the largest number */
        bool away = mode == K_RN || mode == 0 || (mode == K_RP && !n.negative) || (mode == K_RM && n.negative);
        return (away ? inf : inf - 1) | sign;
    }
    return (m & ((1ull << f->mant_bits) - 1)) | e << f->mant_bits | sign;
}

/* To an integer of `bits` bits, clamped */
static uint64_t to_integer(struct number n, unsigned bits, bool is_signed, uint32_t mode, uint64_t nan)
{
    uint64_t most = ~0ull >> (64 - bits + is_signed), least = is_signed ? 1ull << (bits - 1) : 0; /* magnitudes */
    if (n.class == CLASS_NAN) return nan;
    uint64_t limit = n.negative ? least : most, m = n.mant;
    if (n.class == CLASS_INF || (m && n.exp > 63))
        m = limit;
    else if (n.exp > 0)
        m = m >> (64 - n.exp) ? limit : m << n.exp;
    else
        m = round_shift(m, -n.exp, n.negative, mode);
    if (m > limit) m = limit;
    return n.negative ? 0 - m : m;
}

static struct number integral(struct number n, uint32_t mode)
{
    if (n.class == CLASS_FINITE && n.exp < 0) {
        n.mant = round_shift(n.mant, -n.exp, n.negative, mode);
        n.exp = 0;
    }
    return n;
}
static struct number saturated(struct number n) /* to [0, 1]; NaN: 0 */
{
    struct number zero = {0}, one = {.mant = 1};
    if (n.class == CLASS_NAN || n.negative || !n.mant) return n.class == CLASS_INF && !n.negative ? one : zero;
    int width = 64 - __builtin_clzll(n.mant);
    return n.class == CLASS_INF || n.exp + width > 0 ? one : n;
}

/* imm: destination type | source type << 8 | key of rounding, .ftz, .sat << 16 | .relu << 28 */
#define CVT_RELU (1u << 28)
static uint64_t convert(uint64_t x, uint32_t imm)
{
    enum mg_type dt = (enum mg_type)(imm & 255), st = (enum mg_type)(imm >> 8 & 255);
    uint32_t key = imm >> 16 & 0xfff, mode = key & K_ROUND;
    const struct format *df = format_of(dt), *sf = format_of(st);
    unsigned bits = mg_type_bits(dt), sbits = mg_type_bits(st);
    bool d_signed = mg_type_kind(dt) == MG_TK_SINT, s_signed = mg_type_kind(st) == MG_TK_SINT;
    struct number n;
    if (sf) {
        n = unpack(x & (~0ull >> (64 - sbits)), sf);
        if ((key & K_FTZ) && st == MG_TYPE_f32 && dt != MG_TYPE_f16 && !(x & 0x7f800000)) n.mant = 0;
    } else {
        n = (struct number){.mant = x << (64 - sbits) >> (64 - sbits)};
        if (s_signed && x >> (sbits - 1) & 1) {
            n.negative = true;
            n.mant = (0 - (x | (~0ull << (sbits - 1)))) & ~0ull;
        }
    }
    if (df && sf && n.class == CLASS_NAN && !(key & K_SAT) && (dt == MG_TYPE_f64 || st == MG_TYPE_f64)) {
        /* with f64 on either side the payload's upper bits survive, quietened */
        uint64_t payload = df->mant_bits > sf->mant_bits ? n.mant << (df->mant_bits - sf->mant_bits)
                                                         : n.mant >> (sf->mant_bits - df->mant_bits);
        uint64_t field = (1ull << df->mant_bits) - 1, quiet = 1ull << (df->mant_bits - 1);
        return (uint64_t)n.negative << (bits - 1) | ((1ull << df->exp_bits) - 1) << df->mant_bits | (payload & field) |
               quiet;
    }
    if (!df) {
        uint64_t nan = sf && (st == MG_TYPE_f64 || bits == 64) ? 1ull << (bits - 1) : 0;
        uint64_t v = sf || (key & K_SAT) ? to_integer(n, bits, d_signed, mode, nan) : n.negative ? 0 - n.mant : n.mant;
        return v & (~0ull >> (64 - bits));
    }
    if (mode >= K_RNI) n = integral(n, mode);
    if (key & K_SAT) n = saturated(n);
    if ((imm & CVT_RELU) && n.negative && n.class != CLASS_NAN) n = (struct number){0};
    uint64_t r = pack(n, df, mode >= K_RNI ? 0 : mode);
    if ((key & K_FTZ) && dt == MG_TYPE_f32 && !(r & 0x7f800000)) r &= 0x80000000;
    return r;
}
static inline uint64_t load(const char *regs, uint32_t off, bool wide, unsigned i)
{
    return wide ? AT(const lane64, off)[i] : AT(const lane32, off)[i];
}
void emu_cvt_any(ALU_ARGS)
{
    bool dw = mg_type_bits((enum mg_type)(o->imm & 255)) == 64,
         sw = mg_type_bits((enum mg_type)(o->imm >> 8 & 255)) == 64;
    ALU_EACH(i)
    {
        uint64_t r = convert(load(regs, o->s[0], sw, i), o->imm);
        if (dw)
            AT(lane64, o->d)[i] = r;
        else
            AT(lane32, o->d)[i] = (uint32_t)r;
    }
}
void emu_cvt_pair(ALU_ARGS) /* two f32 into f16x2 or bf16x2: imm names the half type */
{
    ALU_EACH(i)
    {
        uint64_t hi = convert(AT(lane32, o->s[0])[i], o->imm), lo = convert(AT(lane32, o->s[1])[i], o->imm);
        AT(lane32, o->d)[i] = (uint32_t)(hi << 16 | lo);
    }
}
bool alu_cvt_any(const struct mg_form *f, unsigned n_src, uint32_t key, struct emu_alu_desc *out)
{
    enum mg_type dt = (enum mg_type)f->types[0], st = (enum mg_type)f->types[1];
    bool pair = dt == MG_TYPE_f16x2 || dt == MG_TYPE_bf16x2;
    enum mg_type part = dt == MG_TYPE_f16x2 ? MG_TYPE_f16 : dt == MG_TYPE_bf16x2 ? MG_TYPE_bf16 : dt;
    const struct format *df = format_of(part), *sf = format_of(st);
    bool d_int = mg_type_kind(part) == MG_TK_UINT || mg_type_kind(part) == MG_TK_SINT;
    bool s_int = mg_type_kind(st) == MG_TK_UINT || mg_type_kind(st) == MG_TK_SINT;
    if (f->n_types != 2 || n_src != (pair ? 2u : 1u) || (pair && st != MG_TYPE_f32)) return false;
    if (!(df || (d_int && mg_type_bits(dt) >= 8)) || !(sf || (s_int && mg_type_bits(st) >= 8))) return false;
    if (key & ~(uint32_t)(K_ROUND | K_FTZ | K_SAT | K_RELU)) return false;
    bool wide = mg_type_bits(dt) == 64, s_wide = mg_type_bits(st) == 64;
    *out = (struct emu_alu_desc){.opcode = pair ? EMU_OP_cvt_pair : EMU_OP_cvt_any,
                                 .d = wide ? EMU_D : EMU_W,
                                 .n_src = (uint8_t)n_src,
                                 .imm = (uint32_t)part | (uint32_t)st << 8 | (key & 0xfff) << 16 |
                                        (key & K_RELU ? CVT_RELU : 0)};
    for (unsigned i = 0; i < n_src; i++) {
        out->src[i] = s_wide ? EMU_D : EMU_W;
        out->src_type[i] = (uint8_t)st;
    }
    return true;
}

/* cvt.pack.sat: imm = bits of a part | signed << 8 | has c << 9 */
static uint32_t clamp_part(int32_t v, unsigned bits, bool is_signed)
{
    int64_t most = (1ll << (bits - is_signed)) - 1, least = is_signed ? -most - 1 : 0;
    int64_t r = v > most ? most : v < least ? least : v;
    return (uint32_t)r & (uint32_t)((1ull << bits) - 1);
}
static void cvt_pack(ALU_ARGS)
{
    unsigned bits = o->imm & 255;
    bool is_signed = o->imm >> 8 & 1, has_c = o->imm >> 9;
    ALU_EACH(i)
    {
        uint32_t a = clamp_part((int32_t)AT(lane32, o->s[0])[i], bits, is_signed),
                 b = clamp_part((int32_t)AT(lane32, o->s[1])[i], bits, is_signed);
        uint32_t c = has_c ? AT(lane32, o->s[2])[i] << (2 * bits) : 0;
        AT(lane32, o->d)[i] = c | a << bits | b;
    }
}

/* ---- testp, fns ---------------------------------------------------------------------------- */

static bool tested(struct number n, bool normal, uint32_t what)
{
    switch (what) {
    case 1:
        return n.class == CLASS_FINITE;
    case 2:
        return n.class == CLASS_INF;
    case 3:
        return n.class != CLASS_NAN;
    case 4:
        return n.class == CLASS_NAN;
    case 5:
        return n.class == CLASS_FINITE && (normal || !n.mant); /* zeros count as normal */
    default:
        return n.class == CLASS_FINITE && !normal && n.mant;
    }
}
static void testp(ALU_ARGS) /* imm: what | f64 << 8 */
{
    uint32_t r = 0;
    ALU_EACH(i)
    {
        bool wide = o->imm >> 8;
        uint64_t x = load(regs, o->s[0], wide, i);
        bool normal = x & (wide ? 0x7ffull << 52 : 0x7f800000ull);
        r |= (uint32_t)tested(unpack(x, wide ? &double_format : &float_format), normal, o->imm & 255) << i;
    }
    write_pred(regs, o->d, mask, r);
}

static uint32_t nth_set(uint32_t bits, uint32_t base, int32_t offset)
{
    if (base > 31) return ALU_FULL;
    if (offset == 0) return bits >> base & 1 ? base : ALU_FULL;
    int step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset;
    if (left < 0) return ALU_FULL;
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if ((bits >> at & 1) && --left == 0) return (uint32_t)at;
    return ALU_FULL;
}
static void fns(ALU_ARGS)
{
    ALU_EACH(i)
    AT(lane32, o->d)[i] = nth_set(AT(lane32, o->s[0])[i], AT(lane32, o->s[1])[i], (int32_t)AT(lane32, o->s[2])[i]);
}

#define T_u32 MG_TYPE_u32
#define T_s32 MG_TYPE_s32
#define ROW_TESTP(n)                                                                                                   \
    {.op = MG_OP_testp,                                                                                                \
     .t = {T_(f32)},                                                                                                   \
     .dt = T_(pred),                                                                                                   \
     .st = {T_(f32)},                                                                                                  \
     .key = (n) << K_SUB_SHIFT,                                                                                        \
     .imm = (n),                                                                                                       \
     .fn = testp},                                                                                                     \
        {.op = MG_OP_testp,                                                                                            \
         .t = {T_(f64)},                                                                                               \
         .dt = T_(pred),                                                                                               \
         .st = {T_(f64)},                                                                                              \
         .key = (n) << K_SUB_SHIFT,                                                                                    \
         .imm = (n) | 256,                                                                                             \
         .fn = testp},
#define ROW_PACK2(T, bits, is_signed)                                                                                  \
    {.op = MG_OP_cvt,                                                                                                  \
     .t = {T_(T), T_s32},                                                                                              \
     .dt = T_u32,                                                                                                      \
     .st = {T_s32, T_s32},                                                                                             \
     .key = K_PACK | K_SAT,                                                                                            \
     .imm = (bits) | (is_signed) << 8,                                                                                 \
     .fn = cvt_pack},
#define ROW_PACK3(T, bits, is_signed)                                                                                  \
    {.op = MG_OP_cvt,                                                                                                  \
     .t = {T_(T), T_s32, T_(b32)},                                                                                     \
     .dt = T_u32,                                                                                                      \
     .st = {T_s32, T_s32, T_u32},                                                                                      \
     .key = K_PACK | K_SAT,                                                                                            \
     .imm = (bits) | (is_signed) << 8 | 1 << 9,                                                                        \
     .fn = cvt_pack},
static const struct alu_row rows[] = {
    ROW_TESTP(1) ROW_TESTP(2) ROW_TESTP(3) ROW_TESTP(4) ROW_TESTP(5)
        ROW_TESTP(6){.op = MG_OP_fns, .t = {T_(b32)}, .dt = T_u32, .st = {T_(b32), T_u32, T_s32}, .fn = fns},
    ROW_PACK2(u16, 16, 0) ROW_PACK2(s16, 16, 1) ROW_PACK3(u8, 8, 0) ROW_PACK3(s8, 8, 1) ROW_PACK3(u4, 4, 0)
        ROW_PACK3(s4, 4, 1) ROW_PACK3(u2, 2, 0) ROW_PACK3(s2, 2, 1)};
const struct alu_table alu_rare = {rows, MG_COUNT_OF(rows)};
