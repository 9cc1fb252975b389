/* Packed pairs of f32 in 64-bit registers: add, sub, mul, fma of f32x2. A register is 64 floats, lane
 * by lane. Built once per vector ISA. */
#include "device/emu/alu_half.h"
#include "device/emu/alu_priv.h"

#define EACH for (int i = 0; i < 64; i++)

/* Keeps what lanes outside of mask had. */
static void put(char *regs, uint32_t off, const float *r, uint32_t mask)
{
    lane64 *d = AT(lane64, off);
    uint64_t v[32];
    memcpy(v, r, sizeof v);
    for (int i = 0; i < 32; i++) d[i] = mask >> i & 1 ? v[i] : d[i];
}

#define BINARY(name, op)                                                                                               \
    static void name(ALU_ARGS)                                                                                         \
    {                                                                                                                  \
        const lanef *a = AT(lanef, o->s[0]), *b = AT(lanef, o->s[1]);                                                  \
        float r[64];                                                                                                   \
        unsigned csr = begin_rounding(o->imm);                                                                         \
        EACH r[i] = a[i] op b[i];                                                                                      \
        end_rounding(csr);                                                                                             \
        EACH r[i] = canon32(r[i]);                                                                                     \
        put(regs, o->d, r, mask);                                                                                      \
    }
BINARY(add_f32x2, +)
BINARY(sub_f32x2, -)
BINARY(mul_f32x2, *)

static void fma_f32x2(ALU_ARGS)
{
    const lanef *a = AT(lanef, o->s[0]), *b = AT(lanef, o->s[1]), *c = AT(lanef, o->s[2]);
    float r[64];
#if defined(__FMA__)
    unsigned csr = begin_rounding(o->imm);
    EACH r[i] = __builtin_fmaf(a[i], b[i], c[i]);
    end_rounding(csr);
#else
    double wide[64]; /* with a sticky last bit: rounding it once more is right in every mode */
    bool ftz = o->imm & MX_FTZ;
    EACH wide[i] = ftz ? fma_odd(flush32(a[i]), flush32(b[i]), flush32(c[i])) : fma_odd(a[i], b[i], c[i]);
    unsigned csr = begin_rounding(o->imm);
    EACH r[i] = (float)wide[i];
    end_rounding(csr);
#endif
    EACH r[i] = canon32(r[i]);
    put(regs, o->d, r, mask);
}

#define ROW(o_, f_, n_, k_, mx)                                                                                        \
    {.op = MG_OP_##o_,                                                                                                 \
     .t = {T_(f32x2)},                                                                                                 \
     .dt = T_(f32x2),                                                                                                  \
     .st = {T_(f32x2), T_(f32x2), n_},                                                                                 \
     .key = (k_),                                                                                                      \
     .fn = f_,                                                                                                         \
     .imm = (mx)},                                                                                                     \
        {.op = MG_OP_##o_,                                                                                             \
         .t = {T_(f32x2)},                                                                                             \
         .dt = T_(f32x2),                                                                                              \
         .st = {T_(f32x2), T_(f32x2), n_},                                                                             \
         .key = (k_) | K_FTZ,                                                                                          \
         .fn = f_,                                                                                                     \
         .imm = (mx) | MX_FTZ},
#define ROWS(o_, f_, n_)                                                                                               \
    ROW(o_, f_, n_, K_RN, MX_RN) ROW(o_, f_, n_, K_RZ, MX_RZ) ROW(o_, f_, n_, K_RM, MX_RM) ROW(o_, f_, n_, K_RP, MX_RP)
static const struct alu_row rows[] = {ROWS(add, add_f32x2, MG_TYPE_none) ROWS(sub, sub_f32x2, MG_TYPE_none)
                                          ROWS(mul, mul_f32x2, MG_TYPE_none) ROWS(fma, fma_f32x2, T_(f32x2))};
const struct alu_table ALU_TABLE(alu_x2) = {rows, MG_COUNT_OF(rows)};
