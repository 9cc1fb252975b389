/* A function as LLVM IR: entries, blocks in both versions, ways out. */
#include "device/cpu/plugin/emit.h"
#include "device/cpu/plugin/jit.h"

#include <stdlib.h>
#include <string.h>

#define B e->b

static void types(struct emit *e)
{
    e->t.i1 = LLVMInt1TypeInContext(e->c);
    e->t.i8 = LLVMInt8TypeInContext(e->c);
    e->t.i16 = LLVMInt16TypeInContext(e->c);
    e->t.i32 = LLVMInt32TypeInContext(e->c);
    e->t.i64 = LLVMInt64TypeInContext(e->c);
    e->t.f32 = LLVMFloatTypeInContext(e->c);
    e->t.f64 = LLVMDoubleTypeInContext(e->c);
    e->t.ptr = LLVMPointerTypeInContext(e->c, 0);
    e->t.voidt = LLVMVoidTypeInContext(e->c);
    e->t.v1 = LLVMVectorType(e->t.i1, 32);
    e->t.v32 = LLVMVectorType(e->t.i32, 32);
    e->t.v64 = LLVMVectorType(e->t.i64, 32);
    e->t.vf32 = LLVMVectorType(e->t.f32, 32);
    e->t.vf64 = LLVMVectorType(e->t.f64, 32);
}

/* ---- what may alias ---------------------------------------------------------------------------------------- */

static unsigned kind_of(const char *name)
{
    return LLVMGetMDKindID(name, (unsigned)strlen(name));
}
static val node(struct emit *e, LLVMMetadataRef *parts, size_t n)
{
    return LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, parts, n));
}

val emit_program(struct emit *e, val access)
{
    LLVMSetMetadata(access, kind_of("alias.scope"), e->alias.program);
    return access;
}
val emit_counted(struct emit *e, val access)
{
    LLVMSetMetadata(access, kind_of("alias.scope"), e->alias.counted);
    return access;
}

static void name_scopes(struct emit *e)
{
    LLVMMetadataRef domain = LLVMMDStringInContext2(e->c, "margay", 6),
                    names[2] = {LLVMMDStringInContext2(e->c, "program", 7), LLVMMDStringInContext2(e->c, "counts", 6)},
                    list[2];
    domain = LLVMMDNodeInContext2(e->c, &domain, 1);
    for (int k = 0; k < 2; k++) {
        LLVMMetadataRef scope[2] = {names[k], domain};
        list[k] = LLVMMDNodeInContext2(e->c, scope, 2);
    }
    e->alias.program = node(e, &list[0], 1);
    e->alias.counted = node(e, &list[1], 1);
    e->alias.both = node(e, list, 2);
    e->alias.nothing = node(e, NULL, 0);
    e->alias.invariant = kind_of("invariant.load");
}

/* The program reaches nothing of ours, nor do counts: what stays the same while loops run is loaded before them. */
static void part_ours(struct emit *e)
{
    unsigned scope = kind_of("alias.scope"), others = kind_of("noalias");
    for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(e->fn); bb; bb = LLVMGetNextBasicBlock(bb))
        for (val v = LLVMGetFirstInstruction(bb); v; v = LLVMGetNextInstruction(v)) {
            bool load = LLVMIsALoadInst(v) != NULL;
            if ((!load && !LLVMIsAStoreInst(v)) || LLVMIsAAllocaInst(LLVMGetOperand(v, load ? 0 : 1))) continue;
            val mine = LLVMGetMetadata(v, scope);
            LLVMSetMetadata(v, others,
                            !mine                      ? e->alias.both
                            : mine == e->alias.program ? e->alias.counted
                                                       : e->alias.program);
        }
}

/* The pointer's target may be read at any time. */
static val readable(struct emit *e, val pointer, uint64_t bytes, unsigned align)
{
    LLVMMetadataRef n = LLVMValueAsMetadata(LLVMConstInt(e->t.i64, bytes, 0)),
                    a = LLVMValueAsMetadata(LLVMConstInt(e->t.i64, align, 0));
    if (bytes) LLVMSetMetadata(pointer, kind_of("dereferenceable"), node(e, &n, 1));
    if (bytes) LLVMSetMetadata(pointer, kind_of("align"), node(e, &a, 1));
    return pointer;
}

static uint64_t range_bytes(const struct cpu_func *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_insts; i++)
        if (f->insts[i].kind == CPU_LOAD || f->insts[i].kind == CPU_STORE || f->insts[i].kind == CPU_TEXEL)
            n = MG_MAX(n, f->insts[i].cache + 1);
    return n * sizeof(struct emu_range);
}

static uint64_t param_bytes(const struct cpu_func *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n_insts; i++)
        if (f->insts[i].kind == CPU_PARAM)
            n = MG_MAX(n, (uint64_t)f->insts[i].off + f->insts[i].bytes * f->insts[i].vec);
    return n;
}

static val slot(struct emit *e, LLVMTypeRef t)
{
    return LLVMBuildAlloca(e->b, t, "");
}

/* Variables */
void emit_slots(struct emit *e)
{
    struct cpu_func *f = e->f;
    val *const all[] = {&e->live, &e->budget, &e->cur, &e->out.mask, &e->out.next, &e->out.stop, &e->out.from};
    for (unsigned i = 0; i < MG_COUNT_OF(all); i++) *all[i] = slot(e, e->t.i32);
    for (uint32_t b = 0; b < f->n_blocks; b++)
        if (f->blocks[b].merges && !f->region.masks_settled) e->pend[b] = slot(e, e->t.i32);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (reg->kind != CPU_REG_PLAIN || reg->cls == EMU_Q || reg->settled) continue;
        LLVMTypeRef t = emit_type(e, (enum emu_class)reg->cls, reg->shape.varying);
        for (int h = 0; h < (reg->shape.halves && !reg->shape.varying ? 2 : 1); h++) e->vars[r].at[h] = slot(e, t);
    }
}

/* Once per call. */
void emit_state_vars(struct emit *e)
{
    struct cpu_func *f = e->f;
    e->arg.ops = emit_field(e, e->t.ptr, offsetof(struct cpu_call, ops));
    e->arg.ranges = readable(e, emit_field(e, e->t.ptr, offsetof(struct cpu_call, ranges)), range_bytes(f),
                             _Alignof(struct emu_range));
    e->arg.params = readable(e, emit_field(e, e->t.ptr, offsetof(struct cpu_call, params)), param_bytes(f), 8);
    e->arg.shared = emit_field(e, e->t.ptr, offsetof(struct cpu_call, shared));
    e->arg.shared_bytes = emit_field(e, e->t.i64, offsetof(struct cpu_call, shared_bytes));
    e->arg.outside = e->whole ? k32(e, 0) : emit_field(e, e->t.i32, offsetof(struct cpu_call, outside));
    e->arg.alone = e->whole ? k32(e, 0) : emit_field(e, e->t.i32, offsetof(struct cpu_call, alone));
    e->arg.n_warps = e->whole ? k32(e, f->region.n_warps) : emit_field(e, e->t.i32, offsetof(struct cpu_call, n_warps));
    emit_slots(e);
    e->out.pc = emit_at(e, e->call, offsetof(struct cpu_call, pc));
    e->at_warp = slot(e, e->t.i32);
}

void emit_place(struct emit *e)
{
    bool one = e->whole && e->f->region.n_warps == 1;
    e->warp = one ? k32(e, 0) : LLVMBuildLoad2(B, e->t.i32, e->at_warp, "");
    val ix = LLVMBuildMul(B, LLVMBuildZExt(B, e->warp, e->t.i64, ""),
                          LLVMConstInt(e->t.i64, sizeof(struct cpu_warp), 0), "");
    val first = emit_at(e, e->call, offsetof(struct cpu_call, warps));
    e->state = LLVMBuildGEP2(B, e->t.i8, first, &ix, 1, "");
    for (uint32_t b = 0; b < e->f->n_blocks && e->f->region.masks_settled; b++)
        if (e->f->blocks[b].merges) e->pend[b] = emit_at(e, emit_masks(e), 4 * b);
    for (uint32_t r = 0; r < e->f->n_regs; r++) {
        const struct cpu_reg *reg = &e->f->regs[r];
        if (!reg->settled) continue;
        for (int h = 0; h < (reg->linear && reg->shape.halves ? 2 : 1); h++)
            e->vars[r].at[h] = reg->linear ? emit_linear_place(e, reg, h) : emit_slot(e, r + 1);
    }
}

void emit_clear(struct emit *e)
{
    struct cpu_func *f = e->f;
    emit_clear_place(e);
    for (uint32_t r = 0; r < f->n_regs; r++)
        for (int h = 0; h < 2; h++)
            if (e->vars[r].at[h] && !f->regs[r].settled)
                LLVMBuildStore(B, LLVMConstNull(LLVMGetAllocatedType(e->vars[r].at[h])), e->vars[r].at[h]);
}

void emit_clear_place(struct emit *e)
{
    struct cpu_func *f = e->f;
    val *const clear[] = {&e->cur, &e->out.mask, &e->out.next, &e->out.stop, &e->out.from};
    for (unsigned i = 0; i < MG_COUNT_OF(clear); i++) LLVMBuildStore(B, k32(e, 0), *clear[i]);
    for (uint32_t b = 0; b < f->n_blocks && !f->region.masks_settled; b++)
        if (e->pend[b]) LLVMBuildStore(B, k32(e, 0), e->pend[b]);
}

/* The warp stops or has ended: the next one that can run, if any. */
static void end_warp(struct emit *e)
{
    LLVMBasicBlockRef look = emit_block(e, "look"), test = emit_block(e, "test"), over = emit_block(e, "over"),
                      start = e->next_warp;
    LLVMBasicBlockRef again = emit_block(e, "again");
    LLVMBuildBr(B, look);
    LLVMPositionBuilderAtEnd(B, look);
    val k = LLVMBuildAdd(B, LLVMBuildLoad2(B, e->t.i32, e->at_warp, ""), k32(e, 1), "");
    LLVMBuildStore(B, k, e->at_warp);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, k, e->arg.n_warps, ""), test, over);
    LLVMPositionBuilderAtEnd(B, test);
    val ix = LLVMBuildMul(B, LLVMBuildZExt(B, k, e->t.i64, ""), LLVMConstInt(e->t.i64, sizeof(struct cpu_warp), 0), "");
    val s = LLVMBuildGEP2(B, e->t.i8, emit_at(e, e->call, offsetof(struct cpu_call, warps)), &ix, 1, "");
    val live = LLVMBuildLoad2(B, e->t.i32, emit_at(e, s, offsetof(struct cpu_warp, live)), ""),
        at = LLVMBuildLoad2(B, e->t.i32, emit_at(e, s, offsetof(struct cpu_warp, at)), "");
    val can = LLVMBuildAnd(B, LLVMBuildICmp(B, LLVMIntNE, live, k32(e, 0), ""),
                           LLVMBuildICmp(B, LLVMIntEQ, at, k32(e, 0), ""), "");
    LLVMBuildCondBr(B, can, again, look);
    LLVMPositionBuilderAtEnd(B, again);
    LLVMBuildBr(B, start);
    LLVMPositionBuilderAtEnd(B, over);
    LLVMBuildRet(B, k32(e, CPU_DONE));
}

/* Once per warp. */
static void begin_warp(struct emit *e)
{
    emit_place(e);
    emit_clear(e);
    LLVMBuildStore(B, emit_state(e, e->t.i32, offsetof(struct cpu_warp, live)), e->live);
    LLVMBuildStore(B, emit_state(e, e->t.i32, offsetof(struct cpu_warp, budget)), e->budget);
}

/* From the emulator into block b. */
static void entry(struct emit *e, uint32_t b)
{
    struct cpu_func *f = e->f;
    const struct cpu_block *blk = &f->blocks[b];
    val mask = emit_state(e, e->t.i32, offsetof(struct cpu_warp, mask));
    e->in = NULL;
    for (uint32_t x = 0; x < f->n_blocks && !f->region.masks_settled; x++)
        if (mg_has(blk->front, x) && e->pend[x]) {
            LLVMBuildStore(B, LLVMBuildLoad2(B, e->t.i32, emit_at(e, emit_masks(e), 4 * x), ""), e->pend[x]);
            LLVMBuildStore(B, k32(e, 0), emit_at(e, emit_masks(e), 4 * x));
        }
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(blk->live, r) || mg_has(blk->keep, r)) emit_restore(e, r + 1);
    LLVMBuildStore(B, mask, e->cur);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, mask, k32(e, UINT32_MAX), ""), emit_target(e, FULL, b),
                    emit_target(e, PART, b));
}

static void begin_part(struct emit *e, uint32_t b)
{
    struct cpu_func *f = e->f;
    if (e->known[b].yes) {
        e->mask = k32(e, e->known[b].mask);
        if (f->blocks[b].merges) LLVMBuildStore(B, k32(e, 0), e->pend[b]);
        return;
    }
    e->mask = LLVMBuildLoad2(B, e->t.i32, e->cur, "");
    if (!f->blocks[b].merges) return;
    e->mask = LLVMBuildOr(B, e->mask, LLVMBuildLoad2(B, e->t.i32, e->pend[b], ""), "");
    LLVMBuildStore(B, k32(e, 0), e->pend[b]);
    if (f->serial_of[b] || (e->whole && emit_never_all(e)))
        return; /* rare in a loop lane by lane: no version for all */
    LLVMBasicBlockRef full = emit_block(e, "whole"), rest = emit_block(e, "");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, e->mask, k32(e, UINT32_MAX), ""), full, rest);
    LLVMPositionBuilderAtEnd(B, full);
    for (uint32_t x = 0; x < f->n_blocks && !f->region.masks_settled; x++) /* all zero now: let the compiler know */
        if (e->pend[x]) LLVMBuildStore(B, k32(e, 0), e->pend[x]);
    LLVMBuildBr(B, emit_target(e, FULL, b));
    LLVMPositionBuilderAtEnd(B, rest);
}

bool emit_instruction(struct emit *e)
{
    if (emit_lone(e)) return true;
    switch ((enum cpu_kind)e->in->kind) {
    case CPU_NOP:
        return true;
    case CPU_CALL:
        emit_call(e);
        return true;
    case CPU_TEXEL:
        emit_texel(e);
        return true;
    case CPU_ATOM:
        emit_atomic(e);
        return true;
    case CPU_ALU:
        return emit_alu(e);
    case CPU_LOAD:
    case CPU_STORE:
    case CPU_PARAM:
        emit_memory(e);
        return true;
    case CPU_PURE:
        emit_pure_call(e);
        return true;
    case CPU_FENCE:
        LLVMBuildFence(B, LLVMAtomicOrderingSequentiallyConsistent, 0, "");
        return true;
    case CPU_COUNT:
        emit_count(e);
        return true;
    case CPU_REQUEST:
        emit_request(e);
        return true;
    case CPU_CARRIED:
        emit_carried(e);
        return true;
    case CPU_CTL:
        emit_sync(e);
        return true;
    default:
        return emit_move(e);
    }
}

/* Out of block b, from either version: registers and pending lanes are saved. */
static void leave_block(struct emit *e, uint32_t b)
{
    struct cpu_func *f = e->f;
    struct leave *l = &e->leaves[b];
    if (!l->used) return;
    LLVMPositionBuilderAtEnd(B, l->bb);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(l->live, r) || mg_has(f->blocks[b].keep, r)) {
            if (mg_has(l->dirty, r) || (e->whole && emit_unsaved(e, r))) emit_save(e, r + 1);
            mg_put(f->blocks[b].saved, r);
        }
    for (uint32_t x = 0; x < f->n_blocks && !f->region.masks_settled; x++)
        if (mg_has(f->blocks[b].front, x) && e->pend[x])
            LLVMBuildStore(B, LLVMBuildLoad2(B, e->t.i32, e->pend[x], ""), emit_at(e, emit_masks(e), 4 * x));
    LLVMBuildStore(B, k32(e, b), e->out.from);
    LLVMBuildBr(B, e->out.tail);
}

/* What all ways out share: back to the caller, or on to the next warp. */
static void leave_tail(struct emit *e)
{
    LLVMPositionBuilderAtEnd(B, e->out.tail);
    emit_set_state(e, offsetof(struct cpu_warp, live), LLVMBuildLoad2(B, e->t.i32, e->live, ""));
    emit_set_state(e, offsetof(struct cpu_warp, budget), LLVMBuildLoad2(B, e->t.i32, e->budget, ""));
    LLVMBasicBlockRef out = emit_block(e, "out"), stop = emit_block(e, "stop");
    val kind = LLVMBuildLoad2(B, e->t.i32, e->out.stop, ""), pc = LLVMBuildLoad2(B, e->t.i32, e->out.pc, ""),
        mask = LLVMBuildLoad2(B, e->t.i32, e->out.mask, "");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, kind, k32(e, 0), ""), out, stop);
    LLVMPositionBuilderAtEnd(B, out);
    emit_set_field(e, offsetof(struct cpu_call, mask), mask);
    emit_set_field(e, offsetof(struct cpu_call, block), LLVMBuildLoad2(B, e->t.i32, e->out.from, ""));
    emit_set_field(e, offsetof(struct cpu_call, warp), e->warp);
    LLVMBuildRet(B, k32(e, CPU_AT));
    LLVMPositionBuilderAtEnd(B, stop);
    val pause = LLVMBuildICmp(B, LLVMIntEQ, kind, k32(e, 2), "");
    emit_set_state(e, offsetof(struct cpu_warp, mask), mask);
    emit_set_state(e, offsetof(struct cpu_warp, entry), LLVMBuildLoad2(B, e->t.i32, e->out.next, ""));
    emit_set_state(e, offsetof(struct cpu_warp, at),
                   LLVMBuildSelect(B, pause, k32(e, 0), LLVMBuildAdd(B, pc, k32(e, 1), ""), ""));
    val pauses = emit_state(e, e->t.i32, offsetof(struct cpu_warp, pauses));
    emit_set_state(e, offsetof(struct cpu_warp, pauses),
                   LLVMBuildSub(B, pauses, LLVMBuildZExt(B, pause, e->t.i32, ""), ""));
    LLVMBuildBr(B, e->out.done);
}

static bool body(struct emit *e, int version, uint32_t b)
{
    struct cpu_func *f = e->f;
    const struct cpu_block *blk = &f->blocks[b];
    e->version = version;
    e->block = b;
    e->mask = e->lanes = NULL;
    e->in = &f->insts[blk->first];
    for (uint32_t i = blk->first; i < blk->end; i++) e->checked[i] = 0;
    LLVMPositionBuilderAtEnd(B, e->bb[version][b]);
    if (version == PART) begin_part(e, b);
    bool done = false;
    if (!emit_few_lanes(e, b, &done)) return false;
    if (done) {
        e->ix = blk->end - 1;
        e->in = &f->insts[e->ix];
        emit_end(e);
        return true;
    }
    for (e->ix = blk->first; e->ix < blk->end; e->ix++) {
        e->in = &f->insts[e->ix];
        bool last = e->ix + 1 == blk->end,
             control = e->in->kind == CPU_CTL && !(e->in->ctl == EMU_CTL_SYNC && cpu_sync_has_code(e->in->sub));
        emit_step_chain(e);
        if (!control && !emit_instruction(e)) return false;
        if (last) {
            emit_end_chain(e);
            emit_end(e);
        }
    }
    return true;
}

LLVMBasicBlockRef emit_target(struct emit *e, int version, uint32_t b)
{
    LLVMBasicBlockRef *bb = &e->bb[version][b];
    uint32_t serial = version >= LANE ? 0 : e->f->serial_of[b];
    const struct cpu_serial *s = serial ? &e->f->serials[serial - 1] : NULL;
    if (s && s->head == b && !(e->in && mg_has(s->blocks, e->block)))
        return emit_serial_entry(e, version, serial - 1); /* from outside */
    if (!*bb) *bb = emit_block(e, version == FULL ? "full" : "part");
    return *bb;
}

bool emit_bodies(struct emit *e)
{
    for (bool again = true; again;) {
        again = false;
        for (int v = 0; v < 2; v++)
            for (uint32_t b = 0; b < e->f->n_blocks; b++) {
                if (!e->bb[v][b] || e->built[v][b]) continue;
                e->built[v][b] = 1;
                again = true;
                if (!body(e, v, b)) return false;
            }
        if (!emit_serials(e, &again)) return false;
    }
    return true;
}

void emit_leave_blocks(struct emit *e)
{
    for (uint32_t b = 0; b < e->f->n_blocks; b++) leave_block(e, b);
}

bool emit_begin(struct emit *e, LLVMModuleRef m, struct cpu_func *f, const char *name)
{
    LLVMContextRef c = LLVMGetModuleContext(m);
    LLVMTypeRef ptr = LLVMPointerTypeInContext(c, 0), two[2] = {ptr, ptr};
    val fn = LLVMAddFunction(m, name, LLVMFunctionType(LLVMInt32TypeInContext(c), two, 2, 0));
    unsigned noalias = LLVMGetEnumAttributeKindForName("noalias", 7);
    LLVMAddAttributeAtIndex(fn, 2, LLVMCreateEnumAttribute(c, noalias, 0));
    e->call = LLVMGetParam(fn, 0);
    e->counts = LLVMGetParam(fn, 1);
    return emit_begin_in(e, m, f, fn);
}

bool emit_begin_in(struct emit *e, LLVMModuleRef m, struct cpu_func *f, val fn)
{
    e->f = f;
    e->m = m;
    e->fn = fn;
    e->c = LLVMGetModuleContext(m);
    e->b = LLVMCreateBuilderInContext(e->c);
    types(e);
    name_scopes(e);
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(e->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->c, nounwind, 0));
    LLVMAddAttributeAtIndex(e->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(e->c, "warn-stack-size", 15, "1048576", 7)); /* jit.c */
    e->vars = calloc(f->n_regs + 1, sizeof *e->vars);
    e->pend = calloc(f->n_blocks + 1, sizeof *e->pend);
    e->scratch = calloc(f->reg_words, sizeof *e->scratch);
    e->leaves = calloc(f->n_blocks + 1, sizeof *e->leaves);
    e->checked = calloc(f->n_insts + 1, sizeof *e->checked);
    e->group = calloc(f->n_insts + 1, sizeof *e->group);
    e->ahead.ops = calloc(f->n_insts + 1, sizeof *e->ahead.ops);
    e->ahead.turns = calloc(f->n_blocks + 1, sizeof *e->ahead.turns);
    e->serial.loops = calloc(f->n_serials + 1, sizeof *e->serial.loops);
    e->serial.vars = calloc(f->n_regs + 1, sizeof *e->serial.vars);
    e->serial.rooms = calloc(f->n_serials ? f->n_insts : 1, sizeof *e->serial.rooms);
    e->known = calloc(f->n_blocks + 1, sizeof *e->known);
    e->pure.code = calloc(f->n_pures + 1, sizeof *e->pure.code);
    bool ok = emit_chain_new(e) && e->known && e->pure.code && e->serial.rooms && e->vars && e->pend && e->scratch &&
              e->leaves && e->checked && e->group && e->ahead.ops && e->ahead.turns && e->serial.loops &&
              e->serial.vars;
    for (int v = 0; v < VERSIONS; v++) {
        e->bb[v] = calloc(f->n_blocks + 1, sizeof *e->bb[v]);
        e->built[v] = calloc(f->n_blocks + 1, 1);
        ok &= e->bb[v] && e->built[v];
    }
    e->version = FULL;
    LLVMPositionBuilderAtEnd(B, emit_block(e, "start"));
    return ok;
}

void emit_finish(struct emit *e)
{
    part_ours(e);
    free(e->vars);
    free(e->pend);
    free(e->scratch);
    free(e->checked);
    free(e->bounds);
    free(e->leaves);
    free(e->group);
    free(e->ahead.ops);
    free(e->ahead.turns);
    for (unsigned k = 0; k < WALKS; k++) free(e->ahead.walks[k]);
    free(e->serial.loops);
    free(e->serial.vars);
    free(e->serial.rooms);
    free(e->known);
    free(e->pure.code);
    emit_chain_free(e);
    for (int v = 0; v < VERSIONS; v++) {
        free(e->bb[v]);
        free(e->built[v]);
    }
    LLVMDisposeBuilder(e->b);
}

bool mg_emit_function(LLVMModuleRef m, struct cpu_func *f, const char *name)
{
    struct emit em = {.f = f}, *e = &em;
    bool ok = emit_begin(e, m, f, name);
    if (ok) {
        e->out.done = emit_block(e, "done");
        e->out.tail = emit_block(e, "tail");
        emit_state_vars(e);
        LLVMBuildStore(B, emit_field(e, e->t.i32, offsetof(struct cpu_call, warp)), e->at_warp);
        e->next_warp = emit_block(e, "warp");
        LLVMBuildBr(B, e->next_warp);
        LLVMPositionBuilderAtEnd(B, e->next_warp);
        begin_warp(e);
        val which = emit_state(e, e->t.i32, offsetof(struct cpu_warp, entry));
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
        ok = emit_bodies(e);
        emit_leave_blocks(e);
        leave_tail(e);
        LLVMPositionBuilderAtEnd(B, e->out.done);
        end_warp(e);
    }
    emit_finish(e);
    return ok;
}
