/* Forms of arithmetic: an opcode, types, and the key that its modifiers come to. A form that the emulator knows is a
 * row of a table in vec_alu_*.c or alu_rare.c, and the number of the row is the opcode of the decoded operation
 * (operations.h). The compiler of the CPU device asks for the row to learn what the operation is. */
#ifndef MG_DEVICE_EMU_ALU_FORM_H
#define MG_DEVICE_EMU_ALU_FORM_H

#include "device/emu/operations.h"

/* What an instruction's modifiers come to: a row matches when its key is equal. */
enum alu_key {
    K_ROUND = 15,
    K_RN = 1,
    K_RZ,
    K_RM,
    K_RP,
    K_RNI,
    K_RZI,
    K_RMI,
    K_RPI, /* bits 0-3 */
    K_FTZ = 1 << 4,
    K_SAT = 1 << 5,
    K_APPROX = 1 << 6,
    K_FULL = 1 << 7,
    K_LO = 1 << 8,
    K_HI = 2 << 8,
    K_WIDE = 3 << 8,
    K_PART = 3 << 8,
    K_SUB_SHIFT = 10,
    K_SUB = 31 << 10, /* comparison, class of testp, mode of prmt */
    K_BOOL_SHIFT = 15,
    K_BOOL = 3 << 15,
    K_AND = 1 << 15,
    K_OR = 2 << 15,
    K_XOR = 3 << 15,
    K_NAN = 1 << 17,
    K_ABS = 1 << 18,
    K_XORSIGN = 1 << 19,
    K_RELU = 1 << 20,
    K_CC = 1 << 21,
    K_CLAMP = 1 << 22,
    K_WRAP = 1 << 23,
    K_SHIFTAMT = 1 << 24,
    K_L = 1 << 25,
    K_R = 1 << 26,
    K_PACK = 1 << 27,
    K_PO = 1 << 28,
    K_SHR7 = 1 << 29,
    K_SHR15 = 1 << 30
};
enum alu_cmp { /* ORDER CMP: 1..6 are those of integers */
               CMP_none,
               CMP_eq,
               CMP_ne,
               CMP_lt,
               CMP_le,
               CMP_gt,
               CMP_ge,
               CMP_equ,
               CMP_neu,
               CMP_ltu,
               CMP_leu,
               CMP_gtu,
               CMP_geu,
               CMP_num,
               CMP_nan
};

struct alu_row {
    uint16_t op;     /* enum mg_op */
    uint8_t t[3];    /* types in text order, 0 = none */
    uint8_t dt, d2t; /* types of the destinations; their classes follow from them */
    uint8_t st[4];   /* types of the sources, 0 = none */
    uint8_t sets_imm, uses_cc;
    uint32_t key, imm;
    emu_alu_fn fn;
};
struct alu_table {
    const struct alu_row *rows;
    uint32_t n;
};
#define T_(t)  MG_TYPE_##t
#define T_none MG_TYPE_none

/* Row of an opcode that is not in operations.def; NULL: no such row. */
const struct alu_row *emu_alu_row(unsigned opcode, enum emu_isa isa);

/* Values that results have in common on all devices */
#define NAN32   0x7fffffffu
#define NAN64   0xfff8000000000000ull /* what an f64 operation makes of numbers */
#define QUIET64 0x0008000000000000ull

/* Roundings, in emu_alu.imm of the rows that have several: as in MXCSR bits 13-14; MX_FTZ is a bit: FTZ and DAZ. */
enum { MX_RN, MX_RM, MX_RP, MX_RZ, MX_FTZ };

#endif
