/* Arithmetic of the emulator: one function per instruction form, over 32 lanes at once.
 *
 * A warp's registers lie in one file of 32-lane arrays (structure of arrays). Classes:
 *   EMU_P predicate: one uint32_t bit mask        EMU_W up to 32 bits: uint32_t[32]; 8- and 16-bit
 *   EMU_D 64 bits: uint64_t[32]                         values are zero-extended, always
 *   EMU_Q 128 bits: two uint64_t per lane, [32][2]
 * Operands are byte offsets into the file; constants are pre-broadcast arrays in the file's head,
 * so every source looks the same. Only lanes of `mask` (guard applied) may be written; a predicate
 * destination keeps its other bits. No function reads or writes anything else.
 *
 * What callers see to: arrays of W, D and Q lie at multiples of 64 bytes and never overlap in part
 * (a destination may be one of the sources); d2 = 0 means no second destination, so offset 0 is none;
 * a negated predicate source is inverted before; every thread runs with MXCSR = 0x1f80 (a new thread
 * inherits its parent's, which -ffast-math programs change).
 *
 * The same sources are compiled once per vector ISA (x86-64 baseline, AVX2, AVX-512); results are
 * bit-equal on all of them: no contraction, no fast-math, software fma where the CPU has none.
 */
#ifndef MG_DEVICE_EMU_ALU_H
#define MG_DEVICE_EMU_ALU_H

#include "isa/isa.h"

enum emu_class { EMU_NONE, EMU_P, EMU_W, EMU_D, EMU_Q };
enum emu_isa { EMU_ISA_BASE, EMU_ISA_AVX2, EMU_ISA_AVX512, EMU_ISA_COUNT };

struct emu_alu;
typedef void (*emu_alu_fn)(const struct emu_alu *o, char *regs, uint32_t mask);
struct emu_alu { /* the head of every decoded operation */
    emu_alu_fn fn;
    uint32_t d, d2; /* destination, second destination (setp p|q, shfl d|p, carry) */
    uint32_t s[4];  /* sources */
    uint32_t imm;   /* what the form needs beyond operands (lop3 table, prmt mode, selector, ...) */
    uint32_t cc;    /* offset of the warp's carry flag mask (EMU_P), for add.cc and friends */
};

struct emu_alu_desc { /* how the decoder must feed the function */
    uint16_t opcode;  /* operations.h: of a row, or of operations.def */
    uint8_t d, d2;    /* enum emu_class; EMU_NONE: no such operand */
    uint8_t n_src;
    uint8_t src[4];      /* enum emu_class */
    uint8_t src_type[4]; /* enum mg_type an immediate of that place is converted to */
    uint8_t uses_cc;     /* reads or writes the carry flag */
    uint8_t sets_imm;    /* an immediate among the sources goes to emu_alu.imm and is not counted in
                          * n_src: 1 + its place in the text; it is the last one but for lop3.BoolOp */
    uint32_t imm;        /* initial value of emu_alu.imm */
};
/* Finds the function for a form (arithmetic, logic, compare, select, convert, mov of registers,
 * video and so on; not memory, control, warp-level operations). sm and ftz_implied carry the rules
 * of PTX 1.x (implied .ftz on sm_1x, map_f64_to_f32). False: not arithmetic, or not known. */
bool emu_alu_find(const struct mg_form *f, uint32_t n_opnds, unsigned sm, bool ftz_implied, enum emu_isa isa,
                  struct emu_alu_desc *out);
enum emu_isa emu_isa_best(void); /* what this CPU has; MARGAY_ISA=sse|base|avx2|avx512 lowers it */

/* The selector of a video operand (r.b0, -r.h1; place 0 = destination, 1 .. 3 = a, b, c) as it is
 * ORed into emu_alu.imm. sel: enum mg_sel of ir.h. */
static inline uint32_t emu_video_selector(unsigned place, unsigned sel, bool neg)
{
    return ((sel & 15) | (neg || sel & 16 ? 16u : 0)) << 5 * (place & 3);
}

/* Scalar versions of the approx family, shared with the CPU device: the bits of an H200. */
#define MG_APPROX_LIST(X) X(ex2) X(lg2) X(sin) X(cos) X(rcp) X(rsqrt) X(sqrt)
#define X(name)           float mg_##name##_approx_f32(float x), mg_##name##_approx_ftz_f32(float x);
MG_APPROX_LIST(X)
#undef X
float mg_tanh_approx_f32(float x);
float mg_div_approx_f32(float x, float y), mg_div_approx_ftz_f32(float x, float y);
float mg_div_full_f32(float x, float y), mg_div_full_ftz_f32(float x, float y);
double mg_rcp_approx_f64(double x); /* rcp.approx.ftz.f64 */
double mg_rsqrt_approx_f64(double x);

#endif
