/* cvt to and from the small formats: tf32, 8-, 6- and 4-bit floats and exponents alone, and the
 * .satfinite conversions to half formats. Built once, one active lane at a time.
 *
 * A value is exact in double; it is rounded once, in units of its last bit. Pairs: the first source
 * goes to the upper half. NaN becomes the format's NaN, or its largest number where it has none.
 */
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

#include <math.h>

struct small {          /* a format; codes without sign */
    uint8_t type, pair; /* enum mg_type of one, of two packed */
    uint8_t mant, exp;  /* bits stored */
    int8_t bias;
    uint32_t most, nan, inf; /* inf 0: it has none */
    uint8_t shift;           /* position in its register */
};
static const struct small smalls[] = {
    {MG_TYPE_tf32, 0, 10, 8, 127, 0x3fbff, 0x3ffff, 0x3fc00, 13},
    {MG_TYPE_e4m3, MG_TYPE_e4m3x2, 3, 4, 7, 0x7e, 0x7f, 0, 0},
    {MG_TYPE_e5m2, MG_TYPE_e5m2x2, 2, 5, 15, 0x7b, 0x7f, 0x7c, 0},
    {MG_TYPE_e2m3, MG_TYPE_e2m3x2, 3, 2, 1, 0x1f, 0x1f, 0, 0},
    {MG_TYPE_e3m2, MG_TYPE_e3m2x2, 2, 3, 3, 0x1f, 0x1f, 0, 0},
    {MG_TYPE_e2m1, MG_TYPE_e2m1x2, 1, 2, 1, 0x07, 0x07, 0, 0},
    {MG_TYPE_f16, MG_TYPE_f16x2, 10, 5, 15, 0x7bff, 0x7fff, 0x7c00, 0},
    {MG_TYPE_bf16, MG_TYPE_bf16x2, 7, 8, 127, 0x7f7f, 0x7fff, 0x7f80, 0},
    {MG_TYPE_ue8m0, MG_TYPE_ue8m0x2, 0, 8, 127, 0xfe, 0xff, 0, 0}, /* no sign, no zero: 2^(code - 127) */
};
enum { FORMATS = MG_COUNT_OF(smalls), EXPONENT_ONLY = FORMATS - 1 };
enum { TO_EVEN, TO_ZERO, TO_AWAY, UPWARD }; /* UPWARD: away from zero whenever inexact */

/* Bits from one element to the next of a packed pair. */
static unsigned stride(const struct small *f)
{
    return f->type == MG_TYPE_f16 || f->type == MG_TYPE_bf16 ? 16 : f->type == MG_TYPE_e2m1 ? 4 : 8;
}

static uint32_t encode_exponent(double v, unsigned mode)
{
    if (v != v) return 0xff;
    if (v < 0) v = -v;
    if (isinf(v)) return 0xfe; /* satfinite */
    if (v < 0x1p-127) return 0;
    int e = ilogb(v);
    if (mode == UPWARD && v != ldexp(1, e)) e++;
    return e > 127 ? 0xfe : (uint32_t)(e + 127);
}

static uint32_t encode(const struct small *f, double v, unsigned mode, bool satfinite, bool relu)
{
    uint32_t sign = signbit(v) ? 1u << (f->mant + f->exp) : 0;
    if (f == &smalls[EXPONENT_ONLY]) return encode_exponent(v, mode);
    if (v != v) return f->nan;
    if (relu && sign) return 0;
    double size = fabs(v), unit;
    if (isinf(size)) return sign | (satfinite || !f->inf ? f->most : f->inf);
    int least = 1 - f->bias, e = size > 0 ? ilogb(size) : least;
    if (e < least) e = least;
    unit = ldexp(1, e - f->mant);
    double n = size / unit, whole = floor(n), rest = n - whole;
    bool up = mode == TO_AWAY   ? rest >= 0.5
              : mode == TO_EVEN ? rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0)
                                : false;
    uint32_t m = (uint32_t)whole + up, code;
    if (m >> (f->mant + 1)) m >>= 1, e++;
    code = m >> f->mant ? (uint32_t)(e - least + 1) << f->mant | (m & ((1u << f->mant) - 1)) : m;
    if (code > f->most) code = satfinite || !f->inf ? f->most : f->inf;
    return sign | code;
}

static double decode(const struct small *f, uint32_t u)
{
    uint32_t code = u & ((1u << (f->mant + f->exp)) - 1), e = code >> f->mant, m = code & ((1u << f->mant) - 1);
    double v;
    if (f == &smalls[EXPONENT_ONLY]) return code == 0xff ? NAN : ldexp(1, (int)code - 127);
    if (code == f->inf && f->inf)
        v = INFINITY;
    else if (code > f->most)
        v = NAN;
    else
        v = ldexp((e ? 1u << f->mant : 0) + m, (int)(e ? e : 1) - f->bias - f->mant);
    return u >> (f->mant + f->exp) & 1 ? -v : v;
}

/* imm: destination format | source format << 4 (15: f32) | mode << 8 | satfinite << 10 | relu << 11 | pair << 12 */
#define FROM_F32 15u
void emu_cvt_small(ALU_ARGS)
{
    const struct small *d = &smalls[o->imm & 15],
                       *s = (o->imm >> 4 & 15) == FROM_F32 ? NULL : &smalls[o->imm >> 4 & 15];
    unsigned mode = o->imm >> 8 & 3;
    bool sat = o->imm >> 10 & 1, relu = o->imm >> 11 & 1, pair = o->imm >> 12 & 1;
    ALU_EACH(i)
    {
        double hi, lo = 0;
        uint32_t a = AT(lane32, o->s[0])[i], b = pair && !s ? AT(lane32, o->s[1])[i] : 0;
        if (s) { /* a packed pair */
            uint32_t part = (1u << stride(s)) - 1;
            hi = decode(s, a >> stride(s) & part);
            lo = decode(s, a & part);
        } else
            hi = float32(a), lo = float32(b);
        uint32_t r = encode(d, hi, mode, sat, relu) << d->shift;
        if (pair)
            r = r << stride(d) | encode(d, lo, mode, sat, relu);
        else if (d->type == MG_TYPE_tf32 && hi != hi)
            r = NAN32;
        AT(lane32, o->d)[i] = r;
    }
}

static uint32_t find(unsigned type, bool *pair)
{
    for (uint32_t i = 0; i < FORMATS; i++)
        if (smalls[i].type == type || (smalls[i].pair && smalls[i].pair == type)) {
            *pair = smalls[i].type != type;
            return i;
        }
    return FORMATS;
}

bool alu_cvt_small(const struct mg_form *f, unsigned n_src, struct emu_alu_desc *out)
{
    bool pair = false, s_pair = false, satfinite = mg_form_has(f, MG_MOD_satfinite), relu = mg_form_has(f, MG_MOD_relu);
    unsigned mode = TO_EVEN;
    if (f->op != MG_OP_cvt || f->n_types != 2 || f->unknown || f->vec) return false;
    for (unsigned i = 0; i < f->n_mods; i++) {
        unsigned m = f->mods[i];
        if (mg_mod_class((enum mg_mod)m) == MG_MC_TYPE || m == MG_MOD_satfinite || m == MG_MOD_relu || m == MG_MOD_rn)
            continue;
        if (m == MG_MOD_rz)
            mode = TO_ZERO;
        else if (m == MG_MOD_rna)
            mode = TO_AWAY;
        else if (m == MG_MOD_rp)
            mode = UPWARD;
        else
            return false;
    }
    uint32_t d = find(f->types[0], &pair), s = f->types[1] == MG_TYPE_f32 ? FROM_F32 : find(f->types[1], &s_pair);
    if (d == FORMATS || s == FORMATS) return false;
    bool half_d = smalls[d].type == MG_TYPE_f16 || smalls[d].type == MG_TYPE_bf16;
    bool half_s = s != FROM_F32 && (smalls[s].type == MG_TYPE_f16 || smalls[s].type == MG_TYPE_bf16);
    if (half_d && (half_s || (s == FROM_F32 && !satfinite))) return false; /* vec_alu_cvt.c, alu_rare.c */
    if (!half_d && !pair && smalls[d].type != MG_TYPE_tf32) return false;
    if (s != FROM_F32 && (!s_pair || !pair || (!half_d && !half_s))) return false;
    if ((mode == UPWARD) != (d == EXPONENT_ONLY && mg_form_has(f, MG_MOD_rp))) return false;
    if (n_src != (pair && s == FROM_F32 ? 2u : 1u)) return false;
    *out = (struct emu_alu_desc){.opcode = EMU_OP_cvt_small,
                                 .d = EMU_W,
                                 .n_src = (uint8_t)n_src,
                                 .imm = d | s << 4 | mode << 8 | (uint32_t)satfinite << 10 | (uint32_t)relu << 11 |
                                        (uint32_t)pair << 12};
    for (unsigned i = 0; i < n_src; i++) {
        out->src[i] = EMU_W;
        out->src_type[i] = s == FROM_F32 ? MG_TYPE_f32 : MG_TYPE_b32;
    }
    return true;
}
