/* Functions of arithmetic alone (device/cpu/pure.c) as functions of the module: one of vectors, under a mask, and one
 * of a lane's numbers, for where one lane runs or all have the same. */
#include "device/cpu/plugin/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define B e->b

enum { ROOM = 256 }; /* bytes of a vector of 64 bits */

static LLVMTypeRef class_type(struct emit *e, const struct cpu_func *f, uint32_t reg, bool vec)
{
    return emit_type(e, (enum emu_class)f->regs[reg - 1].cls, vec);
}
static uint32_t param(const struct cpu_func *f, uint32_t k)
{
    return cpu_reg_at(f, f->fn->params[k].to);
}
static uint32_t result(const struct cpu_func *f)
{
    return cpu_reg_at(f, f->fn->rets[0].from);
}
static bool is_read(const struct cpu_func *f, uint32_t reg)
{
    return reg && mg_has(f->blocks[f->entry].live, reg - 1);
}

/* ---- the functions ------------------------------------------------------------------------------------------ */

void emit_pure_end(struct emit *e)
{
    val v = e->pure.here->lane ? emit_scalar(e, result(e->f), 0, false) : emit_vec(e, result(e->f), false);
    if (e->pure.here->lane) {
        LLVMBuildRet(B, v);
        return;
    }
    LLVMSetAlignment(LLVMBuildStore(B, v, e->pure.here->result), 64);
    LLVMBuildRetVoid(B);
}

/* void (mask, arguments, result): vectors in memory, ROOM bytes apart */
static bool vectors(struct emit *e)
{
    struct cpu_func *f = e->f;
    val mask = LLVMGetParam(e->fn, 0), in = LLVMGetParam(e->fn, 1);
    e->pure.here->result = LLVMGetParam(e->fn, 2);
    emit_slots(e);
    emit_clear(e);
    for (uint32_t k = 0; k < f->fn->n_params; k++) {
        uint32_t reg = param(f, k);
        if (!is_read(f, reg)) continue;
        val v = LLVMBuildLoad2(B, class_type(e, f, reg, true), emit_at(e, in, (uint64_t)k * ROOM), "");
        LLVMSetAlignment(v, 64);
        LLVMBuildStore(B, v, e->vars[reg - 1].at[0]);
    }
    LLVMBuildStore(B, mask, e->cur);
    val all = LLVMBuildICmp(B, LLVMIntEQ, mask, k32(e, UINT32_MAX), "");
    LLVMBuildCondBr(B, all, emit_target(e, FULL, f->entry), emit_target(e, PART, f->entry));
    return emit_bodies(e);
}

/* result (arguments) */
static bool lane(struct emit *e)
{
    struct cpu_func *f = e->f;
    e->version = LANE;
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (reg->kind != CPU_REG_PLAIN || reg->cls == EMU_Q) continue;
        LLVMTypeRef t = class_type(e, f, r + 1, false);
        e->serial.vars[r] = LLVMBuildAlloca(B, t, "");
        LLVMBuildStore(B, LLVMConstNull(t), e->serial.vars[r]);
    }
    for (uint32_t k = 0; k < f->fn->n_params; k++)
        if (is_read(f, param(f, k))) LLVMBuildStore(B, LLVMGetParam(e->fn, k), e->serial.vars[param(f, k) - 1]);
    LLVMBuildBr(B, emit_target(e, LANE, f->entry));
    for (uint32_t b = 0; b < f->n_blocks; b++) {
        if (!e->bb[LANE][b]) continue;
        e->block = b;
        LLVMPositionBuilderAtEnd(B, e->bb[LANE][b]);
        for (e->ix = f->blocks[b].first; e->ix < f->blocks[b].end; e->ix++) {
            e->in = &f->insts[e->ix];
            if (e->in->kind != CPU_CTL && !emit_instruction(e)) return false;
        }
        e->ix = f->blocks[b].end - 1;
        emit_end(e);
    }
    return true;
}

static val make(struct emit *e, uint32_t callee, bool one)
{
    struct cpu_func *f = e->f->pures[callee];
    val *at = one ? &e->pure.code[callee].lane : &e->pure.code[callee].vectors;
    if (*at) return *at;
    char name[40];
    LLVMTypeRef args[32], t;
    uint32_t n = f->fn->n_params;
    snprintf(name, sizeof name, "pure.%u.%s", callee, one ? "lane" : "vectors");
    for (uint32_t k = 0; k < n && one; k++) args[k] = class_type(e, f, param(f, k), false);
    if (one)
        t = LLVMFunctionType(class_type(e, f, result(f), false), args, n, 0);
    else
        t = LLVMFunctionType(e->t.voidt, (LLVMTypeRef[3]){e->t.i32, e->t.ptr, e->t.ptr}, 3, 0);
    *at = LLVMAddFunction(e->m, name, t);
    LLVMSetLinkage(*at, LLVMInternalLinkage);
    struct pure p = {.lane = one};
    struct emit inner = {.f = f, .pure.here = &p};
    bool ok = emit_begin_in(&inner, e->m, f, *at) && (one ? lane(&inner) : vectors(&inner));
    emit_finish(&inner);
    return ok ? *at : NULL;
}

/* ---- the call ------------------------------------------------------------------------------------------------ */

static val room(struct emit *e, uint64_t bytes)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->fn)));
    val at = LLVMBuildAlloca(B, LLVMArrayType2(e->t.i8, bytes), "");
    LLVMSetAlignment(at, 64);
    LLVMPositionBuilderAtEnd(B, here);
    return at;
}

static val call_lane(struct emit *e, int half)
{
    const struct cpu_inst *in = e->in;
    val fn = make(e, in->callee, true), args[32];
    for (uint32_t k = 0; k < in->n_list; k++) args[k] = emit_scalar(e, in->list[k], half, false);
    return LLVMBuildCall2(B, LLVMGlobalGetValueType(fn), fn, args, in->n_list, "");
}

static val call_vectors(struct emit *e)
{
    enum { MOST_ARGS = 16 };
    const struct cpu_inst *in = e->in;
    val fn = make(e, in->callee, false);
    if (!e->pure.room) e->pure.room = room(e, (uint64_t)(MOST_ARGS + 1) * ROOM);
    for (uint32_t k = 0; k < in->n_list; k++)
        LLVMSetAlignment(
            LLVMBuildStore(B, emit_vec(e, in->list[k], false), emit_at(e, e->pure.room, (uint64_t)(k + 1) * ROOM)), 64);
    val args[3] = {emit_mask(e), emit_at(e, e->pure.room, ROOM), e->pure.room};
    LLVMBuildCall2(B, LLVMGlobalGetValueType(fn), fn, args, 3, "");
    val v = LLVMBuildLoad2(B, class_type(e, e->f, in->d, true), e->pure.room, "");
    LLVMSetAlignment(v, 64);
    return v;
}

void emit_pure_call(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    bool same = e->version != LANE; /* in all lanes */
    for (uint32_t k = 0; k < in->n_list && same; k++) same = cpu_is_uniform(e->f->regs[in->list[k] - 1].shape);
    if (emit_is_vec(e, in->d)) {
        emit_set_vec(e, in->d, same ? emit_splat(e, call_lane(e, 0)) : call_vectors(e), NULL);
        return;
    }
    val v[2] = {NULL, NULL};
    for (int h = 0; h < emit_parts(e, in->d); h++) v[h] = call_lane(e, h);
    for (int h = 0; h < 2; h++)
        if (v[h]) emit_set_scalar(e, in->d, h, v[h], NULL);
}
