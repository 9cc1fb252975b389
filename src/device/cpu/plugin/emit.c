/* A function as LLVM IR: entries, blocks in both versions, ways out. */
#include "device/cpu/plugin/emit.h"
#include "device/cpu/plugin/jit.h"

#include <stdlib.h>
#include <string.h>

#define B e->b

static val k32(struct emit *e, uint64_t v) { return LLVMConstInt(e->i32, v, 0); }

static void types(struct emit *e)
{
    e->i1 = LLVMInt1TypeInContext(e->c);
    e->i8 = LLVMInt8TypeInContext(e->c);
    e->i16 = LLVMInt16TypeInContext(e->c);
    e->i32 = LLVMInt32TypeInContext(e->c);
    e->i64 = LLVMInt64TypeInContext(e->c);
    e->f32 = LLVMFloatTypeInContext(e->c);
    e->f64 = LLVMDoubleTypeInContext(e->c);
    e->ptr = LLVMPointerTypeInContext(e->c, 0);
    e->voidt = LLVMVoidTypeInContext(e->c);
    e->v1 = LLVMVectorType(e->i1, 32);
    e->v32 = LLVMVectorType(e->i32, 32);
    e->v64 = LLVMVectorType(e->i64, 32);
    e->vf32 = LLVMVectorType(e->f32, 32);
    e->vf64 = LLVMVectorType(e->f64, 32);
}

static val state(struct emit *e, LLVMTypeRef t, val init)
{
    val a = LLVMBuildAlloca(B, t, "");
    LLVMBuildStore(B, init, a);
    return a;
}

static void prologue(struct emit *e)
{
    struct cpu_func *f = e->f;
    val frame = emit_field(e, e->ptr, offsetof(struct cpu_call, frame));
    e->regs = emit_at(e, frame, offsetof(struct emu_frame, regs));
    e->ops = emit_field(e, e->ptr, offsetof(struct cpu_call, ops));
    e->ranges = emit_field(e, e->ptr, offsetof(struct cpu_call, ranges));
    e->params = emit_field(e, e->ptr, offsetof(struct cpu_call, params));
    e->shared = emit_field(e, e->ptr, offsetof(struct cpu_call, shared));
    e->shared_bytes = emit_field(e, e->i64, offsetof(struct cpu_call, shared_bytes));
    e->outside = emit_field(e, e->i32, offsetof(struct cpu_call, outside));
    e->live = state(e, e->i32, emit_field(e, e->i32, offsetof(struct cpu_call, live)));
    e->budget = state(e, e->i32, emit_field(e, e->i32, offsetof(struct cpu_call, budget)));
    e->cur = state(e, e->i32, k32(e, 0));
    e->leave_pc = state(e, e->i32, k32(e, 0));
    e->leave_mask = state(e, e->i32, k32(e, 0));
    e->leave_code = state(e, e->i32, k32(e, 0));
    for (uint32_t b = 0; b < f->n_blocks; b++)
        if (f->blocks[b].merges) e->pend[b] = state(e, e->i32, k32(e, 0));
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (reg->kind != CPU_REG_PLAIN || reg->cls == EMU_Q) continue;
        LLVMTypeRef t = emit_type(e, (enum emu_class)reg->cls, reg->shape.varying);
        for (int h = 0; h < (reg->shape.halves && !reg->shape.varying ? 2 : 1); h++) e->vars[r].at[h] = state(e, t, LLVMConstNull(t));
    }
    emit_spots(e);
}

static val lowest(struct emit *e, val mask)
{
    val args[2] = {mask, LLVMConstInt(e->i1, 0, 0)};
    return LLVMBuildAnd(B, emit_intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2), k32(e, 31), "");
}

/* From the emulator into block b. */
static void entry(struct emit *e, uint32_t b)
{
    struct cpu_func *f = e->f;
    const struct cpu_block *blk = &f->blocks[b];
    val mask = emit_field(e, e->i32, offsetof(struct cpu_call, mask));
    val *masks = calloc(f->n_blocks, sizeof *masks);
    e->in = NULL;
    for (uint32_t x = 0; masks && x < f->n_blocks; x++)
        if (mg_has(blk->front, x) && e->pend[x]) {
            masks[x] = emit_field(e, e->i32, offsetof(struct cpu_call, masks) + 4 * x);
            LLVMBuildStore(B, masks[x], e->pend[x]);
        }
    for (uint32_t r = 0; r < f->n_regs; r++) {
        if (f->regs[r].kind != CPU_REG_PLAIN || f->regs[r].cls == EMU_Q || (!mg_has(blk->live, r) && !mg_has(blk->keep, r))) continue;
        val of = NULL;
        if (!f->regs[r].shape.varying) { /* lanes where the register is live */
            of = mg_has(blk->live, r) ? mask : k32(e, 0);
            for (uint32_t x = 0; masks && x < f->n_blocks; x++)
                if (masks[x] && mg_has(f->blocks[x].live, r)) of = LLVMBuildOr(B, of, masks[x], "");
        }
        if (!of) emit_reload(e, r + 1, NULL, NULL, NULL);
        else
            emit_reload(e, r + 1, lowest(e, of), lowest(e, LLVMBuildOr(B, LLVMBuildAnd(B, of, k32(e, 0xffff), ""), k32(e, 1u << 15), "")),
                        lowest(e, LLVMBuildOr(B, LLVMBuildAnd(B, of, k32(e, 0xffff0000), ""), k32(e, 1u << 31), "")));
    }
    free(masks);
    LLVMBuildStore(B, mask, e->cur);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, mask, k32(e, UINT32_MAX), ""), e->bb[FULL][b], e->bb[PART][b]);
}

static void begin_part(struct emit *e, uint32_t b)
{
    struct cpu_func *f = e->f;
    e->mask = LLVMBuildLoad2(B, e->i32, e->cur, "");
    if (!f->blocks[b].merges) return;
    e->mask = LLVMBuildOr(B, e->mask, LLVMBuildLoad2(B, e->i32, e->pend[b], ""), "");
    LLVMBuildStore(B, k32(e, 0), e->pend[b]);
    LLVMBasicBlockRef full = emit_block(e, "whole"), rest = emit_block(e, "");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, e->mask, k32(e, UINT32_MAX), ""), full, rest);
    LLVMPositionBuilderAtEnd(B, full);
    for (uint32_t x = 0; x < f->n_blocks; x++) /* all zero now: let the compiler know */
        if (e->pend[x]) LLVMBuildStore(B, k32(e, 0), e->pend[x]);
    LLVMBuildBr(B, e->bb[FULL][b]);
    LLVMPositionBuilderAtEnd(B, rest);
}

static bool instruction(struct emit *e)
{
    switch ((enum cpu_kind)e->in->kind) {
    case CPU_NOP: return true;
    case CPU_CALL: emit_call(e); return true;
    case CPU_ALU: return emit_alu(e);
    case CPU_LOAD: case CPU_STORE: case CPU_PARAM: emit_memory(e); return true;
    case CPU_FENCE: LLVMBuildFence(B, LLVMAtomicOrderingSequentiallyConsistent, 0, ""); return true;
    case CPU_CTL: emit_sync(e); return true;
    default: return emit_move(e);
    }
}

static void leave_block(struct emit *e, uint32_t b)
{
    struct cpu_func *f = e->f;
    struct leave *l = &e->leaves[e->version][b];
    if (!l->used) return;
    LLVMPositionBuilderAtEnd(B, l->bb);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(l->live, r) || (e->version == PART && mg_has(f->blocks[b].keep, r))) emit_spill(e, r + 1);
    for (uint32_t x = 0; x < f->n_blocks; x++)
        if (mg_has(f->blocks[b].front, x) && e->pend[x])
            emit_set_field(e, offsetof(struct cpu_call, masks) + 4 * x, e->version == FULL ? k32(e, 0) : LLVMBuildLoad2(B, e->i32, e->pend[x], ""));
    emit_set_field(e, offsetof(struct cpu_call, pc), LLVMBuildLoad2(B, e->i32, e->leave_pc, ""));
    emit_set_field(e, offsetof(struct cpu_call, mask), LLVMBuildLoad2(B, e->i32, e->leave_mask, ""));
    emit_set_field(e, offsetof(struct cpu_call, block), k32(e, b));
    emit_set_field(e, offsetof(struct cpu_call, live), LLVMBuildLoad2(B, e->i32, e->live, ""));
    emit_set_field(e, offsetof(struct cpu_call, budget), LLVMBuildLoad2(B, e->i32, e->budget, ""));
    LLVMBuildRet(B, LLVMBuildLoad2(B, e->i32, e->leave_code, ""));
}

static bool body(struct emit *e, int version, uint32_t b)
{
    struct cpu_func *f = e->f;
    const struct cpu_block *blk = &f->blocks[b];
    e->version = version;
    e->block = b;
    e->mask = e->lanes = NULL;
    LLVMPositionBuilderAtEnd(B, e->bb[version][b]);
    if (version == PART) begin_part(e, b);
    for (e->ix = blk->first; e->ix < blk->end; e->ix++) {
        e->in = &f->insts[e->ix];
        bool last = e->ix + 1 == blk->end, control = e->in->kind == CPU_CTL && !(e->in->ctl == EMU_CTL_SYNC && e->in->sub <= EMU_SYNC_ELECT);
        if (!control && !instruction(e)) return false;
        if (last) emit_end(e);
    }
    leave_block(e, b);
    return true;
}

val mg_emit_function(LLVMModuleRef m, struct cpu_func *f, const char *name)
{
    struct emit em = {.f = f, .m = m, .c = LLVMGetModuleContext(m)}, *e = &em;
    e->b = LLVMCreateBuilderInContext(e->c);
    types(e);
    e->fn = LLVMAddFunction(m, name, LLVMFunctionType(e->i32, &e->ptr, 1, 0));
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(e->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->c, nounwind, 0));
    e->call = LLVMGetParam(e->fn, 0);
    e->vars = calloc(f->n_regs + 1, sizeof *e->vars);
    e->pend = calloc(f->n_blocks + 1, sizeof *e->pend);
    e->scratch = calloc(f->reg_words, sizeof *e->scratch);
    for (int v = 0; v < 2; v++) {
        e->bb[v] = calloc(f->n_blocks + 1, sizeof(LLVMBasicBlockRef));
        e->leaves[v] = calloc(f->n_blocks + 1, sizeof(struct leave));
    }
    LLVMBasicBlockRef start = emit_block(e, "start");
    for (int v = 0; v < 2; v++)
        for (uint32_t b = 0; b < f->n_blocks; b++) e->bb[v][b] = emit_block(e, v ? "part" : "full");
    e->done = emit_block(e, "done");
    LLVMPositionBuilderAtEnd(B, start);
    e->version = FULL;
    prologue(e);
    val which = emit_field(e, e->i32, offsetof(struct cpu_call, entry));
    LLVMBasicBlockRef bad = emit_block(e, "bad");
    val sw = LLVMBuildSwitch(B, which, bad, 8);
    LLVMPositionBuilderAtEnd(B, bad);
    LLVMBuildUnreachable(B);
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        if (!f->blocks[b].entry) continue;
        LLVMBasicBlockRef in = emit_block(e, "enter");
        LLVMAddCase(sw, k32(e, b), in);
        LLVMPositionBuilderAtEnd(B, in);
        entry(e, b);
    }
    bool ok = true;
    for (int v = 0; v < 2; v++)
        for (uint32_t b = 0; b < f->n_blocks && ok; b++) ok = body(e, v, b);
    LLVMPositionBuilderAtEnd(B, e->done);
    emit_set_field(e, offsetof(struct cpu_call, live), LLVMBuildLoad2(B, e->i32, e->live, ""));
    emit_set_field(e, offsetof(struct cpu_call, budget), LLVMBuildLoad2(B, e->i32, e->budget, ""));
    LLVMBuildRet(B, k32(e, CPU_DONE));
    free(e->vars);
    free(e->pend);
    free(e->scratch);
    for (int v = 0; v < 2; v++) {
        free(e->bb[v]);
        free(e->leaves[v]);
    }
    LLVMDisposeBuilder(e->b);
    return ok ? e->fn : NULL;
}
