/* Lanes of which some run, and which most likely lie in rows of 16 (cpu_reg.row), in shared memory: with AVX-512 the
 * first lane that runs is compressed out of its row. Taken out of the vector by its number it would go by way of
 * memory. */
#include "device/cpu/plugin/emit.h"

#define B e->b

enum { ROW = 16 };

/* The 32 bits of the first lane that runs; mask: NULL: all do */
static val first_of(struct emit *e, val row, val mask)
{
    if (!mask) return LLVMBuildExtractElement(B, row, k32(e, 0), "");
    val ends[ROW];
    for (unsigned i = 0; i < ROW; i++) ends[i] = LLVMConstInt(e->t.i1, i == ROW - 1, 0);
    LLVMTypeRef t = LLVMTypeOf(row);
    val args[3] = {row, LLVMGetPoison(t), LLVMBuildOr(B, mask, LLVMConstVector(ends, ROW), "")};
    return LLVMBuildExtractElement(B, emit_intrinsic(e, "llvm.x86.avx512.mask.compress", &t, 1, args, 3), k32(e, 0),
                                   "");
}

/* bases: where the first lane of each row lies, or would lie if it ran, which may be in front of the memory. The
 * result: do all lanes that run follow from them? NULL: no code for such */
val emit_narrow_rows(struct emit *e, val at, unsigned row, unsigned step, val lanes, val *bases)
{
    val narrow = emit_narrow(e, at), off[ROW], bad = NULL;
    if (!narrow || row != ROW || !emit_is(e, EMU_ISA_AVX512) || e->in->where != EMU_AT_SHARED) return NULL;
    for (unsigned i = 0; i < ROW; i++) off[i] = k32(e, i * step);
    for (unsigned r = 0; r < 2; r++) {
        val base = LLVMBuildSub(B, emit_lanes_from(e, narrow, r * ROW, ROW), LLVMConstVector(off, ROW), ""),
            mask = lanes ? emit_lanes_from(e, lanes, r * ROW, ROW) : NULL, first = first_of(e, base, mask), pick[ROW];
        bases[r] = LLVMBuildSExt(B, first, e->t.i64, "");
        for (unsigned i = 0; i < ROW; i++) pick[i] = k32(e, 0);
        val same = LLVMBuildInsertElement(B, LLVMGetPoison(LLVMTypeOf(base)), first, k32(e, 0), "");
        same = LLVMBuildShuffleVector(B, same, LLVMGetPoison(LLVMTypeOf(base)), LLVMConstVector(pick, ROW), "");
        val differ = LLVMBuildICmp(B, LLVMIntNE, base, same, "");
        if (mask) differ = LLVMBuildAnd(B, differ, mask, "");
        bad = bad ? LLVMBuildOr(B, bad, differ, "") : differ;
    }
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i16, ""), LLVMConstInt(e->t.i16, 0, 0), "");
}
