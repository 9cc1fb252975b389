/* Loops that lanes go through one after the other (device/cpu/serial.c): registers that a lane begins with are
 * spilled to the frame as vectors and loaded as scalars, what it brings to a stop is stored back, and then it
 * waits there as pending lanes do; when all have stopped the first such block goes on. From heads inside
 * lanes go on as vectors. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#define B e->b
#define LEADER_ROUNDS 1024 /* where it counts which round a lane is in */

static val k32(struct emit *e, uint64_t v) { return LLVMConstInt(e->i32, v, 0); }
static val k64(struct emit *e, uint64_t v) { return LLVMConstInt(e->i64, v, 0); }
static val load32(struct emit *e, val at) { return LLVMBuildLoad2(B, e->i32, at, ""); }
static val not_zero(struct emit *e, val v) { return LLVMBuildICmp(B, LLVMIntNE, v, k32(e, 0), ""); }

static const struct cpu_serial *loop_of(const struct emit *e) { return &e->f->serials[e->f->serial_of[e->block] - 1]; }
static bool is_sum(const struct emit *e, uint32_t r) { return e->whole && e->f->regs[r].sum; }

static val variable(struct emit *e, LLVMTypeRef t)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->fn)));
    val at = LLVMBuildAlloca(B, t, "");
    LLVMPositionBuilderAtEnd(B, here);
    return at;
}

static void need(void *user, uint32_t r)
{
    struct emit *e = user;
    const struct cpu_reg *reg = &e->f->regs[r];
    if (!e->lane_vars[r] && !cpu_is_constant(reg)) e->lane_vars[r] = variable(e, emit_type(e, (enum emu_class)reg->cls, false));
}
static void need_def(void *user, uint32_t r, bool must)
{
    (void)must;
    need(user, r);
}

/* ---- the lane's registers in the frame ------------------------------------------------------------------ */

static val lane_place(struct emit *e, uint32_t reg)
{
    val ix = LLVMBuildZExt(B, e->lane, e->i64, "");
    return LLVMBuildGEP2(B, emit_type(e, (enum emu_class)e->f->regs[reg - 1].cls, false), emit_slot(e, reg), &ix, 1, "");
}

static val lane_load(struct emit *e, uint32_t reg)
{
    enum emu_class c = (enum emu_class)e->f->regs[reg - 1].cls;
    if (c == EMU_P) return not_zero(e, LLVMBuildAnd(B, load32(e, emit_slot(e, reg)), e->mask, ""));
    return LLVMBuildLoad2(B, emit_type(e, c, false), lane_place(e, reg), "");
}

static void lane_store(struct emit *e, uint32_t reg)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (r->kind == CPU_REG_CONST) return;
    val v = emit_scalar(e, reg, 0, false);
    if (r->cls != EMU_P) {
        LLVMBuildStore(B, v, lane_place(e, reg));
        return;
    }
    val all = load32(e, emit_slot(e, reg)), rest = LLVMBuildAnd(B, all, LLVMBuildNot(B, e->mask, ""), "");
    LLVMBuildStore(B, LLVMBuildSelect(B, v, LLVMBuildOr(B, all, e->mask, ""), rest, ""), emit_slot(e, reg));
}

/* ---- accesses --------------------------------------------------------------------------------------------- */

/* NULL: not known. */
static const struct cpu_aligned *aligned(const struct emit *e, const struct cpu_serial *s)
{
    for (uint32_t k = 0; k < s->n_aligned; k++)
        if (s->aligned[k].at == e->ix) return &s->aligned[k];
    return NULL;
}

/* What the operation at ix may access: from lo on so many elements, or bytes where addresses are known to be aligned; 0 where lo is not.
 * Kept while lanes run, since the emulator's functions alone change it. */
static void find_room(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct lane_room *room = &e->lane_rooms[e->ix];
    uint64_t size = (uint64_t)in->bytes * in->vec;
    val lo, bytes, zero = k64(e, 0);
    emit_bounds(e, in, &lo, &bytes);
    const struct cpu_aligned *a = aligned(e, loop_of(e));
    val n = a ? LLVMBuildAnd(B, bytes, k64(e, ~(size - 1)), "") : LLVMBuildUDiv(B, bytes, k64(e, size), ""), low = lo;
    for (uint32_t k = 0; a && k < a->n_params; k++) {
        val p = LLVMBuildLoad2(B, e->i64, emit_at(e, e->params, a->params[k]), "");
        LLVMSetAlignment(p, 1);
        low = LLVMBuildOr(B, low, p, "");
    }
    if (!room->minus) room->minus = variable(e, e->i64), room->n = variable(e, e->i64);
    LLVMBuildStore(B, LLVMBuildNeg(B, lo, ""), room->minus);
    LLVMBuildStore(B, LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, low, k64(e, size - 1), ""), zero, ""), n, zero, ""), room->n);
}

/* A function of the module's that calls the emulator's one and keeps all registers but those of vectors: seldom called, and what
 * lives in the loop should not make room for it. */
static val rare_call(struct emit *e, LLVMTypeRef *type)
{
    LLVMTypeRef args_t[3] = {e->ptr, e->ptr, e->i32};
    *type = LLVMFunctionType(e->voidt, args_t, 3, 0);
    val fn = LLVMGetNamedFunction(e->m, "rare"), args[3];
    if (fn) return fn;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    fn = LLVMAddFunction(e->m, "rare", *type);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    LLVMSetFunctionCallConv(fn, LLVMPreserveMostCallConv);
    LLVMPositionBuilderAtEnd(B, LLVMAppendBasicBlockInContext(e->c, fn, ""));
    for (unsigned k = 0; k < 3; k++) args[k] = LLVMGetParam(fn, k);
    LLVMBuildCall2(B, *type, LLVMBuildLoad2(B, e->ptr, args[0], ""), args, 3, "");
    LLVMBuildRetVoid(B);
    LLVMPositionBuilderAtEnd(B, here);
    return fn;
}

/* The emulator's function, for this lane. */
static void lane_call(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (in->guard) lane_store(e, in->guard);
    if (in->s[0]) lane_store(e, in->s[0]);
    for (uint32_t k = 0; k < in->n_list && in->kind == CPU_STORE; k++) lane_store(e, in->list[k]);
    LLVMTypeRef type;
    val fn = rare_call(e, &type), args[3] = {emit_op_address(e), emit_regs(e), e->mask};
    LLVMSetInstructionCallConv(LLVMBuildCall2(B, type, fn, args, 3, ""), LLVMPreserveMostCallConv);
    for (uint32_t k = 0; k < in->n_list && in->kind == CPU_LOAD; k++)
        if (in->list[k]) {
            val v = lane_load(e, in->list[k]);
            if (LLVMIsALoadInst(v)) LLVMSetVolatile(v, 1); /* not to be made one with the access itself */
            emit_set_scalar(e, in->list[k], 0, v, NULL);
        }
    find_room(e);
}

static void access(struct emit *e, val p)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    for (uint32_t k = 0; k < in->vec; k++) {
        val at = emit_at(e, p, (uint64_t)k * in->bytes);
        if (!in->list[k]) continue;
        if (in->kind == CPU_STORE) {
            val v = emit_scalar(e, in->list[k], 0, false);
            LLVMSetAlignment(emit_program(e, LLVMBuildStore(B, LLVMTypeOf(v) == t ? v : LLVMBuildTrunc(B, v, t, ""), at)), in->bytes);
            continue;
        }
        val v = LLVMBuildLoad2(B, t, at, "");
        if (in->kind == CPU_LOAD) emit_program(e, v);
        else LLVMSetMetadata(v, e->invariant, e->nothing);
        LLVMSetAlignment(v, in->kind == CPU_PARAM ? 1 : in->bytes);
        emit_set_scalar(e, in->list[k], 0, emit_extended(e, in, v, false), NULL);
    }
}

/* The first way is the common one. */
static void mostly_first(struct emit *e, val branch)
{
    LLVMMetadataRef md[3] = {LLVMMDStringInContext2(e->c, "branch_weights", 14)};
    for (unsigned k = 0; k < 2; k++) md[k + 1] = LLVMValueAsMetadata(k32(e, k ? 1 : 1000));
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->c, "prof", 4), LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, md, 3)));
}

void emit_lane_memory(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    LLVMBasicBlockRef next = emit_block(e, "accessed");
    if (in->guard) {
        LLVMBasicBlockRef yes = emit_block(e, "guarded");
        LLVMBuildCondBr(B, emit_guard_scalar(e), yes, next);
        LLVMPositionBuilderAtEnd(B, yes);
    }
    if (in->kind == CPU_PARAM) access(e, emit_at(e, e->params, (uint64_t)in->off));
    else {
        LLVMBasicBlockRef fast = emit_block(e, "access"), slow = emit_block(e, "elsewhere");
        const struct lane_room *room = &e->lane_rooms[e->ix];
        val at = emit_address(e, in, false, 0), off = LLVMBuildAdd(B, at, LLVMBuildLoad2(B, e->i64, room->minus, ""), "");
        val args[3] = {off, off, k64(e, (uint64_t)__builtin_ctz(in->bytes * in->vec))}; /* what is not aligned is far away then */
        if (!aligned(e, loop_of(e))) off = emit_intrinsic(e, "llvm.fshr", &e->i64, 1, args, 3);
        mostly_first(e, LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, off, LLVMBuildLoad2(B, e->i64, room->n, ""), ""), fast, slow));
        LLVMPositionBuilderAtEnd(B, slow);
        lane_call(e);
        LLVMBuildBr(B, next);
        LLVMPositionBuilderAtEnd(B, fast);
        access(e, emit_host_pointer(e, in, at));
    }
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
}

/* CPU_LEADER. That the lane was here in this round is noted; the first one leads its set, since lanes come in ascending order. */
void emit_lane_leader(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    const uint32_t sums[2] = {in->s[0] && !is_sum(e, in->s[0] - 1) ? in->s[0] : 0, in->d2 && !is_sum(e, in->d2 - 1) ? in->d2 : 0};
    val round = LLVMBuildZExt(B, LLVMBuildSub(B, e->limit, load32(e, e->rounds), ""), e->i64, ""), word = LLVMBuildLShr(B, round, k64(e, 6), "");
    val at = LLVMBuildGEP2(B, e->i64, e->lane_rooms[e->ix].rounds, &word, 1, ""), bit = LLVMBuildShl(B, k64(e, 1), LLVMBuildAnd(B, round, k64(e, 63), ""), "");
    val old = LLVMBuildLoad2(B, e->i64, at, ""), first = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, old, bit, ""), k64(e, 0), "");
    LLVMBuildStore(B, LLVMBuildOr(B, old, bit, ""), at);
    for (int k = 0; k < 2; k++)
        if (sums[k]) emit_set_scalar(e, sums[k], 0, LLVMBuildAdd(B, emit_scalar(e, sums[k], 0, false), k ? LLVMBuildZExt(B, first, e->i64, "") : k64(e, 1), ""), NULL);
    if (in->d && emit_is_live_after(e, in->d)) emit_set_scalar(e, in->d, 0, first, NULL);
}

/* How many rounds those are. */
static val count_rounds(struct emit *e, uint32_t ix)
{
    LLVMTypeRef t = LLVMVectorType(e->i64, LEADER_ROUNDS / 64);
    val all = LLVMBuildLoad2(B, t, e->lane_rooms[ix].rounds, "");
    LLVMSetAlignment(all, 8);
    all = emit_intrinsic(e, "llvm.ctpop", &t, 1, &all, 1);
    return emit_intrinsic(e, "llvm.vector.reduce.add", &t, 1, &all, 1);
}

static void forget_rounds(struct emit *e)
{
    val *at = &e->lane_rooms[e->ix].rounds;
    if (!*at) *at = variable(e, LLVMArrayType2(e->i64, LEADER_ROUNDS / 64));
    LLVMBuildMemSet(B, *at, LLVMConstInt(e->i8, 0, 0), k64(e, LEADER_ROUNDS / 8), 8);
}

/* ---- jumps -------------------------------------------------------------------------------------------------- */

static void go(struct emit *e, uint32_t t)
{
    const struct cpu_serial *s = loop_of(e);
    bool inside = mg_has(s->blocks, t);
    if (inside && t > e->block) {
        LLVMBuildBr(B, emit_target(e, LANE, t));
        return;
    }
    if (inside) {
        LLVMBasicBlockRef stop = emit_block(e, "stop");
        val left = LLVMBuildSub(B, load32(e, e->rounds), k32(e, 1), "");
        LLVMBuildStore(B, left, e->rounds);
        mostly_first(e, LLVMBuildCondBr(B, not_zero(e, left), emit_target(e, LANE, t), stop));
        LLVMPositionBuilderAtEnd(B, stop);
    }
    for (uint32_t r = 0; r < e->f->n_regs; r++)
        if (mg_has(s->out, r) && mg_has(e->f->blocks[t].live, r) && !is_sum(e, r)) lane_store(e, r + 1);
    LLVMBuildStore(B, LLVMBuildOr(B, load32(e, e->pend[t]), e->mask, ""), e->pend[t]);
    LLVMBuildBr(B, e->lane_over);
}

void emit_lane_end(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (in->kind != CPU_CTL) {
        go(e, e->block + 1);
        return;
    }
    if (in->guard && in->target != in->fall) {
        LLVMBasicBlockRef yes = emit_block(e, "taken"), no = emit_block(e, "");
        LLVMBuildCondBr(B, emit_guard_scalar(e), yes, no);
        LLVMPositionBuilderAtEnd(B, no);
        go(e, in->fall);
        LLVMPositionBuilderAtEnd(B, yes);
    }
    go(e, in->target);
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

LLVMBasicBlockRef emit_serial_entry(struct emit *e, int version, uint32_t loop)
{
    LLVMBasicBlockRef *bb = &e->serials[loop].in[version];
    if (!*bb) *bb = emit_block(e, "serial");
    return *bb;
}

/* The lanes that come to the loop. They go on as vectors where others wait somewhere inside it, and when the turn is up. */
static val arrive(struct emit *e, const struct cpu_serial *s)
{
    struct cpu_func *f = e->f;
    val mask = load32(e, e->cur), most = k32(e, s->leaders ? LEADER_ROUNDS : EMU_TURN_BUDGET), args[2] = {most, LLVMBuildSub(B, load32(e, e->budget), k32(e, 1), "")};
    e->limit = emit_intrinsic(e, "llvm.smin", &e->i32, 1, args, 2);
    val other = LLVMBuildICmp(B, LLVMIntSLE, e->limit, k32(e, 0), "");
    mask = LLVMBuildOr(B, mask, load32(e, e->pend[s->head]), "");
    LLVMBuildStore(B, k32(e, 0), e->pend[s->head]);
    for (uint32_t x = s->head + 1; x < f->n_blocks; x++) {
        if (!mg_has(s->blocks, x) || !mg_has(f->blocks[s->head].front, x) || !e->pend[x]) continue;
        other = LLVMBuildOr(B, other, not_zero(e, load32(e, e->pend[x])), "");
    }
    LLVMBasicBlockRef vectors = emit_block(e, "inside"), on = emit_block(e, "lanes");
    LLVMBuildCondBr(B, other, vectors, on);
    LLVMPositionBuilderAtEnd(B, vectors);
    LLVMBuildStore(B, mask, e->cur);
    LLVMBuildBr(B, emit_target(e, PART, s->head));
    LLVMPositionBuilderAtEnd(B, on);
    return mask;
}

/* All lanes have stopped: the first block with any. */
static void go_on(struct emit *e, const struct cpu_serial *s)
{
    uint32_t last = 0;
    for (uint32_t x = 0; x < e->f->n_blocks; x++)
        if (mg_has(s->stops, x)) last = x;
    LLVMBuildStore(B, k32(e, 0), e->cur);
    for (uint32_t x = 0; x < last; x++) {
        if (!e->pend[x] || !(mg_has(s->stops, x) || mg_has(e->f->blocks[s->head].front, x))) continue;
        LLVMBasicBlockRef no = emit_block(e, "");
        LLVMBuildCondBr(B, not_zero(e, load32(e, e->pend[x])), emit_target(e, PART, x), no);
        LLVMPositionBuilderAtEnd(B, no);
    }
    LLVMBuildBr(B, emit_target(e, PART, last));
}

static bool body(struct emit *e, const struct cpu_serial *s)
{
    for (uint32_t b = s->head; b < e->f->n_blocks; b++) {
        if (!mg_has(s->blocks, b) || !e->bb[LANE][b]) continue;
        e->block = b;
        LLVMPositionBuilderAtEnd(B, e->bb[LANE][b]);
        for (e->ix = e->f->blocks[b].first; e->ix < e->f->blocks[b].end; e->ix++) {
            e->in = &e->f->insts[e->ix];
            if (e->in->kind != CPU_CTL && !emit_instruction(e)) return false;
            if (e->ix + 1 == e->f->blocks[b].end) emit_end(e);
        }
    }
    return true;
}

static bool emit_serial(struct emit *e, uint32_t k)
{
    struct cpu_func *f = e->f;
    const struct cpu_serial *s = &f->serials[k];
    LLVMBasicBlockRef begin = emit_block(e, "lanes"), next = emit_block(e, "lane"), done = emit_block(e, "done");
    val (*base)[2] = calloc(f->n_regs + 1, sizeof *base);
    if (!base) return false;
    for (int v = 0; v < 2; v++) {
        if (!e->serials[k].in[v]) continue;
        LLVMPositionBuilderAtEnd(B, e->serials[k].in[v]);
        if (v == FULL) LLVMBuildStore(B, k32(e, UINT32_MAX), e->cur);
        LLVMBuildBr(B, begin);
    }
    LLVMPositionBuilderAtEnd(B, begin);
    e->version = PART;
    e->block = s->head;
    e->ix = f->blocks[s->head].first;
    e->in = &f->insts[e->ix];
    e->mask = e->lanes = NULL;
    if (!e->rounds) e->rounds = variable(e, e->i32), e->least = variable(e, e->i32);
    val all = arrive(e, s);
    for (uint32_t b = s->head; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; mg_has(s->blocks, b) && i < f->blocks[b].end; i++) {
            cpu_each_use(f, &f->insts[i], need, e);
            cpu_each_def(f, &f->insts[i], need_def, e);
            e->ix = i;
            e->in = &f->insts[i];
            if (e->in->kind == CPU_LOAD || e->in->kind == CPU_STORE) find_room(e);
            if (e->in->kind == CPU_LEADER) forget_rounds(e);
        }
    e->in = &f->insts[e->ix = f->blocks[s->head].first];
    LLVMBuildStore(B, e->limit, e->least);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        bool in = mg_has(s->in, r);
        if (is_sum(e, r)) continue;
        if (reg->shape.varying ? in || mg_has(s->out, r) : false) emit_spill(e, r + 1);
        for (int h = 0; in && !reg->shape.varying && h < (reg->shape.halves ? 2 : 1); h++) base[r][h] = emit_scalar(e, r + 1, h, false);
    }
    LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    val left = LLVMBuildPhi(B, e->i32, ""), args[2] = {left, LLVMConstInt(e->i1, 1, 0)};
    e->lane = emit_intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2);
    e->mask = LLVMBuildAnd(B, left, LLVMBuildNeg(B, left, ""), "");
    e->lane_over = emit_block(e, "stopped");
    e->version = LANE;
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        if (!mg_has(s->in, r) || is_sum(e, r)) continue;
        val v = reg->shape.varying ? lane_load(e, r + 1) : base[r][0];
        if (!reg->shape.varying && (reg->shape.stride || reg->shape.halves)) {
            LLVMTypeRef t = LLVMTypeOf(v);
            val lane = LLVMBuildIntCast2(B, reg->shape.halves ? LLVMBuildAnd(B, e->lane, k32(e, 15), "") : e->lane, t, 0, "");
            if (reg->shape.halves) v = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntULT, e->lane, k32(e, 16), ""), v, base[r][1], "");
            if (reg->shape.stride) v = LLVMBuildAdd(B, v, LLVMBuildMul(B, lane, LLVMConstInt(t, (uint64_t)(int64_t)reg->shape.stride, 0), ""), "");
        }
        LLVMBuildStore(B, v, e->lane_vars[r]);
    }
    free(base);
    LLVMBuildStore(B, e->limit, e->rounds);
    LLVMBuildBr(B, emit_target(e, LANE, s->head));
    if (!body(e, s)) return false;
    LLVMPositionBuilderAtEnd(B, e->lane_over);
    val rounds[2] = {load32(e, e->rounds), load32(e, e->least)};
    LLVMBuildStore(B, emit_intrinsic(e, "llvm.smin", &e->i32, 1, rounds, 2), e->least);
    val rest = LLVMBuildAnd(B, left, LLVMBuildSub(B, left, k32(e, 1), ""), "");
    LLVMBuildCondBr(B, not_zero(e, rest), next, done);
    LLVMAddIncoming(left, (val[]){all, rest}, (LLVMBasicBlockRef[]){before, e->lane_over}, 2);
    LLVMPositionBuilderAtEnd(B, done);
    e->version = PART;
    e->block = s->head;
    e->in = &f->insts[f->blocks[s->head].first];
    e->mask = NULL;
    LLVMBuildStore(B, LLVMBuildSub(B, load32(e, e->budget), LLVMBuildSub(B, e->limit, load32(e, e->least), ""), ""), e->budget); /* as if they had gone together */
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(s->out, r) && !is_sum(e, r)) emit_reload(e, r + 1, NULL, NULL, NULL);
    for (uint32_t b = s->head; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; e->whole && f->n_tallies && mg_has(s->blocks, b) && i < f->blocks[b].end; i++)
            if (f->insts[i].kind == CPU_LEADER && f->tally_of[i]) emit_tally_once(e, i, count_rounds(e, i));
    go_on(e, s);
    return true;
}

bool emit_serials(struct emit *e, bool *any)
{
    for (uint32_t k = 0; k < e->f->n_serials; k++) {
        struct serial_code *c = &e->serials[k];
        if (c->built || (!c->in[FULL] && !c->in[PART])) continue;
        c->built = *any = true;
        if (!emit_serial(e, k)) return false;
    }
    return true;
}
