/* The emulator's functions by opcode; the list is operations.def. */
/* clang-format off */
#include "device/emu/operations.h"

#include "device/emu/alu_form.h"

static const emu_alu_fn functions[EMU_OP_COUNT][EMU_ISA_COUNT] = {
#define ONE(name, operands, kind) [EMU_OP_##name] = {emu_##name, emu_##name, emu_##name},
#define ISA(name, operands, kind) [EMU_OP_##name] = {emu_##name##_base, emu_##name##_avx2, emu_##name##_avx512},
#define ACCESS(name, operands, kind)
#include "device/emu/operations.def"
};

typedef const emu_alu_fn by_count[2];
static by_count *const accesses[EMU_OP_COUNT][EMU_ISA_COUNT] = { /* by element */
#define ONE(name, operands, kind)
#define ISA(name, operands, kind)
#define ACCESS(name, operands, kind) [EMU_OP_##name] = {emu_##name##_base, emu_##name##_avx2, emu_##name##_avx512},
#include "device/emu/operations.def"
};

static const char *const names[EMU_OP_COUNT] = {
    [EMU_OP_none] = "none",
#define ONE(name, operands, kind) [EMU_OP_##name] = #name,
#define ISA(name, operands, kind) [EMU_OP_##name] = #name,
#define ACCESS(name, operands, kind) [EMU_OP_##name] = #name,
#include "device/emu/operations.def"
};

emu_alu_fn emu_function(unsigned opcode, enum emu_isa isa, enum emu_elem elem, bool several)
{
    if (opcode >= EMU_OP_COUNT) {
        const struct alu_row *row = emu_alu_row(opcode, isa);
        return row ? row->fn : NULL;
    }
    return accesses[opcode][isa] ? accesses[opcode][isa][elem][several] : functions[opcode][isa];
}

emu_alu_fn emu_guarded(enum emu_isa isa)
{
    static const emu_alu_fn guarded[EMU_ISA_COUNT] = {emu_guarded_base, emu_guarded_avx2, emu_guarded_avx512};
    return guarded[isa];
}

const char *emu_opcode_name(unsigned opcode) { return opcode < EMU_OP_COUNT ? names[opcode] : NULL; }
