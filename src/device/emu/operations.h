/* Opcodes of decoded code (operations.def) and the emulator's function for each.
 *
 * An operation keeps its opcode for as long as it lives: whoever asks what it does (the compiler of device/cpu, tests)
 * reads emu_op.opcode, and for arithmetic the row; the function pointer is there for the run loop alone. */
/* clang-format off */
#ifndef MG_DEVICE_EMU_OPERATIONS_H
#define MG_DEVICE_EMU_OPERATIONS_H

#include "device/emu/alu.h"

enum emu_opcode {
    EMU_OP_none, /* control operations: see emu_op.ctl and sub */
#define ONE(name, operands, kind) EMU_OP_##name,
#define ISA(name, operands, kind) EMU_OP_##name,
#define ACCESS(name, operands, kind) EMU_OP_##name,
#include "device/emu/operations.def"
    EMU_OP_COUNT /* from here on rows of arithmetic: emu_alu_row() */
};

enum emu_elem { /* memory element to register */
    EMU_E_U8W, EMU_E_S8W, EMU_E_S8H, EMU_E_U16W, EMU_E_S16W, EMU_E_B32W,
    EMU_E_U8D, EMU_E_S8D, EMU_E_U16D, EMU_E_S16D, EMU_E_U32D, EMU_E_S32D, EMU_E_B64D, EMU_E_B128Q,
    EMU_E_COUNT
};

#define EMU_FN(name) void name(const struct emu_alu *o, char *regs, uint32_t mask);
#define EMU_FN_TABLE(name) extern const emu_alu_fn name[EMU_E_COUNT][2];
#define ONE(name, operands, kind) EMU_FN(emu_##name)
#define ISA(name, operands, kind) EMU_FN(emu_##name##_base) EMU_FN(emu_##name##_avx2) EMU_FN(emu_##name##_avx512)
#define ACCESS(name, operands, kind) EMU_FN_TABLE(emu_##name##_base) EMU_FN_TABLE(emu_##name##_avx2) EMU_FN_TABLE(emu_##name##_avx512)
#include "device/emu/operations.def"
EMU_FN(emu_guarded_base) EMU_FN(emu_guarded_avx2) EMU_FN(emu_guarded_avx512)
#undef EMU_FN
#undef EMU_FN_TABLE

/* The function of an opcode; elem and several count for memory accesses alone. NULL: there is none. */
emu_alu_fn emu_function(unsigned opcode, enum emu_isa isa, enum emu_elem elem, bool several);
emu_alu_fn emu_guarded(enum emu_isa isa); /* narrows the mask by emu_op.guard, then calls emu_op.real */
const char *emu_opcode_name(unsigned opcode); /* of an operation of operations.def */

#endif
