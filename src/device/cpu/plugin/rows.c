/* Lanes of which some run, and which most likely lie in rows of 16 (cpu_reg.row), in shared memory: with AVX-512 the
 * first lane that runs is compressed out of its row. Taken out of the vector by its number it would go by way of
 * memory. Where it is known in which places rows most likely lie (cpu_reg.likely), lanes are compared with these. */
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

/* Does the lane lie inside in every warp, if its row lies where it is likely to? */
static bool is_inside(const struct emit *e, const struct cpu_reg *r, unsigned lane)
{
    const struct cpu_inst *in = e->in;
    int64_t at = (int32_t)r->base[lane / ROW] + (int64_t)r->row_step * (lane % ROW) + in->off,
            far = r->step * (e->f->region.n_warps - 1);
    return at + MG_MIN(far, 0) >= 0 && at + MG_MAX(far, 0) + in->bytes <= e->f->static_shared && at % in->bytes == 0 &&
           r->step % in->bytes == 0;
}

/* Do all lanes that run lie where their rows are likely to (cpu_reg.likely), inside? bases: where these begin, which
 * may be in front of the memory. NULL: no code for such */
val emit_places_hold(struct emit *e, val lanes, val *bases)
{
    const struct cpu_inst *in = e->in;
    const struct cpu_reg *r = &e->f->regs[in->s[0] - 1];
    val at, warp, bad = NULL;
    if (!r->likely || r->row != ROW || r->cls != EMU_W || in->where != EMU_AT_SHARED || !emit_is(e, EMU_ISA_AVX512))
        return NULL;
    at = emit_vec(e, in->s[0], false);
    warp = LLVMBuildMul(B, e->warp, k32(e, (uint32_t)r->step), "");
    for (unsigned h = 0; h < EMU_LANES / ROW; h++) {
        val places[ROW], outside[ROW];
        bool all = true;
        for (unsigned i = 0; i < ROW; i++) {
            places[i] = k32(e, (uint32_t)r->base[h] + (uint32_t)r->row_step * i);
            outside[i] = LLVMConstInt(e->t.i1, !is_inside(e, r, h * ROW + i), 0);
            all &= is_inside(e, r, h * ROW + i);
        }
        val own = LLVMBuildSub(B, emit_lanes_from(e, at, h * ROW, ROW), LLVMConstVector(places, ROW), "");
        val same = LLVMBuildInsertElement(B, LLVMGetPoison(LLVMTypeOf(own)), warp, k32(e, 0), "");
        same = LLVMBuildShuffleVector(B, same, LLVMGetPoison(LLVMTypeOf(own)),
                                      LLVMConstNull(LLVMVectorType(e->t.i32, ROW)), "");
        val differ = LLVMBuildICmp(B, LLVMIntNE, own, same, "");
        if (!all) differ = LLVMBuildOr(B, differ, LLVMConstVector(outside, ROW), "");
        if (lanes) differ = LLVMBuildAnd(B, differ, emit_lanes_from(e, lanes, h * ROW, ROW), "");
        bad = bad ? LLVMBuildOr(B, bad, differ, "") : differ;
        bases[h] =
            LLVMBuildSExt(B, LLVMBuildAdd(B, warp, k32(e, (uint32_t)r->base[h] + (uint32_t)in->off), ""), e->t.i64, "");
    }
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i16, ""), LLVMConstInt(e->t.i16, 0, 0), "");
}
