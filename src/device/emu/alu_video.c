/* Video instructions: vadd vsub vabsdiff vmin vmax vshl vshr vmad vset on parts of 32-bit registers,
 * and their forms over two halfwords or four bytes. Built once; one active lane at a time, since
 * almost no program runs them. The variant lies in emu_alu.imm: bits 0-19 the selectors of d, a, b
 * and c (emu_video_selector), above them what alu_video_find puts there.
 * This is the PTX manual's arithmetic. ptxas 13.0 for sm_90 deviates in forms nobody uses (saturation
 * to a part, .h1 destinations, vmad with a shift or .sat takes unsigned operands as signed): those
 * give other results on an H200.
 * Not known: selectors and masks of the two- and four-lane forms (.h32, .b3210), which are refused
 * by the decoder as operands.
 */
#include "device/emu/alu_priv.h"

#include "ir/ir.h"

enum video_op { V_add, V_sub, V_absdiff, V_min, V_max, V_shl, V_shr, V_avrg, V_set /* + comparison - 1 */ };
enum {
    V_D_SIGNED = 1 << 24,
    V_A_SIGNED = 1 << 25,
    V_B_SIGNED = 1 << 26,
    V_SAT = 1 << 27,
    V_SECOND_SHIFT = 28,
    V_WRAP = 1 << 30
};

static unsigned selector(uint32_t imm, unsigned place)
{
    return imm >> 5 * place & 15;
}
static bool negated(uint32_t imm, unsigned place)
{
    return imm >> 5 * place & 16;
}

static int64_t part(uint32_t v, unsigned sel, bool is_signed)
{
    if (sel >= MG_SEL_b0 && sel <= MG_SEL_b3) {
        v >>= 8 * (sel - MG_SEL_b0);
        return is_signed ? (int8_t)v : (uint8_t)v;
    }
    if (sel == MG_SEL_h0 || sel == MG_SEL_h1) {
        v >>= 16 * (sel - MG_SEL_h0);
        return is_signed ? (int16_t)v : (uint16_t)v;
    }
    return is_signed ? (int32_t)v : (int64_t)v;
}
static unsigned part_bits(unsigned sel)
{
    return sel == MG_SEL_none ? 32 : sel <= MG_SEL_b3 ? 8 : 16;
}
static int64_t clamp_to(int64_t v, unsigned bits, bool is_signed)
{
    int64_t most = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1, least = is_signed ? -most - 1 : 0;
    return v > most ? most : v < least ? least : v;
}
static bool holds(unsigned cmp, int64_t a, int64_t b)
{
    switch (cmp) {
    case CMP_eq:
        return a == b;
    case CMP_ne:
        return a != b;
    case CMP_lt:
        return a < b;
    case CMP_le:
        return a <= b;
    case CMP_gt:
        return a > b;
    default:
        return a >= b;
    }
}
static int64_t operate(unsigned op, int64_t a, int64_t b, bool wrap)
{
    switch (op) {
    case V_add:
        return a + b;
    case V_sub:
        return a - b;
    case V_absdiff:
        return a < b ? b - a : a - b;
    case V_min:
        return a < b ? a : b;
    case V_max:
        return a > b ? a : b;
    case V_avrg:
        return (a + b + (a + b >= 0)) >> 1;
    case V_shl:
    case V_shr: {
        uint32_t n = (uint32_t)b;
        n = wrap ? n & 31 : n > 32 ? 32 : n;
        return op == V_shr ? a >> n : (int64_t)((uint64_t)a << n);
    }
    default:
        return holds(op - V_set + 1, a, b);
    }
}

static uint32_t second(uint32_t imm, int64_t t, uint32_t c)
{
    bool is_signed = imm & V_D_SIGNED;
    unsigned sel = selector(imm, 0);
    switch (imm >> V_SECOND_SHIFT & 3) {
    case 1:
        return (uint32_t)t + c;
    case 2:
        return is_signed ? ((int32_t)t < (int32_t)c ? (uint32_t)t : c) : (uint32_t)t < c ? (uint32_t)t : c;
    case 3:
        return is_signed ? ((int32_t)t > (int32_t)c ? (uint32_t)t : c) : (uint32_t)t > c ? (uint32_t)t : c;
    }
    if (sel == MG_SEL_none) return (uint32_t)t;
    unsigned bits = part_bits(sel), shift = bits == 8 ? 8 * (sel - MG_SEL_b0) : 16 * (sel - MG_SEL_h0);
    uint32_t field = ((1u << bits) - 1) << shift;
    return (c & ~field) | ((uint32_t)t << shift & field);
}
void emu_video_scalar(ALU_ARGS)
{
    uint32_t imm = o->imm;
    unsigned op = imm >> 20 & 15;
    ALU_EACH(i)
    {
        int64_t a = part(AT(lane32, o->s[0])[i], selector(imm, 1), imm & V_A_SIGNED);
        int64_t b = part(AT(lane32, o->s[1])[i], selector(imm, 2), imm & V_B_SIGNED);
        int64_t t = operate(op, a, b, imm & V_WRAP);
        if (imm & V_SAT) t = clamp_to(t, part_bits(selector(imm, 0)), imm & V_D_SIGNED);
        AT(lane32, o->d)[i] = second(imm, t, AT(lane32, o->s[2])[i]);
    }
}

void emu_vmad(ALU_ARGS) /* bits 28-29 of imm: .shr7, .shr15; V_WRAP: .po */
{
    uint32_t imm = o->imm;
    bool flip = negated(imm, 1) != negated(imm, 2), minus_c = negated(imm, 3);
    bool is_signed = (imm & (V_A_SIGNED | V_B_SIGNED)) || flip || minus_c;
    unsigned shift = (imm >> V_SECOND_SHIFT & 3) == 1 ? 7 : (imm >> V_SECOND_SHIFT & 3) == 2 ? 15 : 0;
    ALU_EACH(i)
    {
        uint32_t c = AT(lane32, o->s[2])[i];
        __int128 t = (__int128)part(AT(lane32, o->s[0])[i], selector(imm, 1), imm & V_A_SIGNED) *
                     part(AT(lane32, o->s[1])[i], selector(imm, 2), imm & V_B_SIGNED);
        bool one = true;
        if (imm & V_WRAP) {
        } else if (flip)
            t = ~t;
        else if (minus_c)
            c = ~c;
        else
            one = false;
        t += (is_signed ? (__int128)(int32_t)c : (__int128)c) + one;
        int64_t r = (int64_t)(t >> shift);
        if (imm & V_SAT) r = clamp_to(r, 32, is_signed);
        AT(lane32, o->d)[i] = (uint32_t)r;
    }
}

static uint32_t packed(uint32_t imm, unsigned bits, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r = 0, sum = c, cut = (1u << bits) - 1;
    unsigned op = imm >> 20 & 15, first = bits == 8 ? MG_SEL_b0 : MG_SEL_h0;
    for (unsigned k = 0; k < 32 / bits; k++) {
        int64_t t = operate(op, part(a, first + k, imm & V_A_SIGNED), part(b, first + k, imm & V_B_SIGNED), false);
        if (imm & V_SAT) t = clamp_to(t, bits, imm & V_D_SIGNED);
        r |= ((uint32_t)t & cut) << bits * k;
        sum += (uint32_t)t;
    }
    return imm >> V_SECOND_SHIFT & 3 ? sum : r;
}
void emu_video_packed2(ALU_ARGS)
{
    ALU_EACH(i)
    AT(lane32, o->d)[i] = packed(o->imm, 16, AT(lane32, o->s[0])[i], AT(lane32, o->s[1])[i], AT(lane32, o->s[2])[i]);
}
void emu_video_packed4(ALU_ARGS)
{
    ALU_EACH(i)
    AT(lane32, o->d)[i] = packed(o->imm, 8, AT(lane32, o->s[0])[i], AT(lane32, o->s[1])[i], AT(lane32, o->s[2])[i]);
}

static const struct {
    uint16_t op;
    uint8_t what, lanes;
} ops[] = {
    {MG_OP_vadd, V_add, 1},          {MG_OP_vsub, V_sub, 1},  {MG_OP_vabsdiff, V_absdiff, 1},
    {MG_OP_vmin, V_min, 1},          {MG_OP_vmax, V_max, 1},  {MG_OP_vshl, V_shl, 1},
    {MG_OP_vshr, V_shr, 1},          {MG_OP_vset, V_set, 1},  {MG_OP_vmad, 0, 1},
    {MG_OP_vadd2, V_add, 2},         {MG_OP_vsub2, V_sub, 2}, {MG_OP_vabsdiff2, V_absdiff, 2},
    {MG_OP_vmin2, V_min, 2},         {MG_OP_vmax2, V_max, 2}, {MG_OP_vavrg2, V_avrg, 2},
    {MG_OP_vset2, V_set, 2},         {MG_OP_vadd4, V_add, 4}, {MG_OP_vsub4, V_sub, 4},
    {MG_OP_vabsdiff4, V_absdiff, 4}, {MG_OP_vmin4, V_min, 4}, {MG_OP_vmax4, V_max, 4},
    {MG_OP_vavrg4, V_avrg, 4},       {MG_OP_vset4, V_set, 4},
};

bool alu_video_find(const struct mg_form *f, unsigned n_src, uint32_t key, struct emu_alu_desc *out)
{
    unsigned k = 0;
    while (k < MG_COUNT_OF(ops) && ops[k].op != f->op) k++;
    if (k == MG_COUNT_OF(ops)) return false;
    unsigned what = ops[k].what, lanes = ops[k].lanes;
    bool set = what == V_set, shift = what == V_shl || what == V_shr, mad = f->op == MG_OP_vmad;
    unsigned first = set ? 0 : 1; /* type of a; vset has none of its own for d */
    if (f->n_types != first + 2) return false;
    for (unsigned i = 0; i < f->n_types; i++)
        if (f->types[i] != MG_TYPE_u32 && f->types[i] != MG_TYPE_s32) return false;
    uint32_t cmp = (key & K_SUB) >> K_SUB_SHIFT, op2 = (key & K_BOOL) >> K_BOOL_SHIFT;
    uint32_t known = K_SAT | (set     ? K_SUB | K_BOOL
                              : shift ? K_CLAMP | K_WRAP | K_BOOL
                              : mad   ? K_PO | K_SHR7 | K_SHR15
                                      : K_BOOL);
    if ((key & ~known) || (set && (cmp < CMP_eq || cmp > CMP_ge))) return false;
    if (n_src != 3 && (n_src != 2 || lanes > 1 || mad || op2)) return false;
    uint32_t imm = (uint32_t)(set ? V_set + cmp - 1 : what) << 20;
    if (f->types[0] == MG_TYPE_s32 && (!set || f->types[1] == MG_TYPE_s32))
        imm |= V_D_SIGNED; /* for vset: .min, .max with c */
    if (f->types[first] == MG_TYPE_s32) imm |= V_A_SIGNED;
    if (f->types[first + 1] == MG_TYPE_s32) imm |= V_B_SIGNED;
    if (key & K_SAT) imm |= V_SAT;
    if (key & (K_WRAP | K_PO)) imm |= V_WRAP;
    imm |= (mad ? (key & K_SHR7 ? 1u : key & K_SHR15 ? 2u : 0u) : op2) << V_SECOND_SHIFT;
    *out = (struct emu_alu_desc){.opcode = mad          ? EMU_OP_vmad
                                           : lanes == 1 ? EMU_OP_video_scalar
                                           : lanes == 2 ? EMU_OP_video_packed2
                                                        : EMU_OP_video_packed4,
                                 .d = EMU_W,
                                 .n_src = (uint8_t)n_src,
                                 .src = {EMU_W, EMU_W, n_src == 3 ? EMU_W : EMU_NONE},
                                 .src_type = {f->types[first], f->types[first + 1], MG_TYPE_u32},
                                 .imm = imm};
    return true;
}
