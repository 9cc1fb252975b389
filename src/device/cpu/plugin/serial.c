/* Loops that lanes go through one after the other (device/cpu/serial.c): registers that a lane begins with are
 * spilled to the frame as vectors and loaded as scalars, what it brings to a stop is stored back, and then it
 * waits there as pending lanes do; when all have stopped the first such block goes on. From heads inside
 * lanes go on as vectors. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#define B               e->b
#define TOLD_ROUNDS     1024 /* where it counts which round a lane is in */
#define EVEN_ROUNDS     1024 /* fewer are not worth it: lanes that go further stop and begin again */
#define FORESEEN_ROUNDS 16

static val load32(struct emit *e, val at)
{
    return LLVMBuildLoad2(B, e->t.i32, at, "");
}
static val not_zero(struct emit *e, val v)
{
    return LLVMBuildICmp(B, LLVMIntNE, v, k32(e, 0), "");
}

static const struct cpu_serial *loop_of(const struct emit *e)
{
    return &e->f->serials[e->f->serial_of[e->block] - 1];
}
static val variable(struct emit *e, LLVMTypeRef t)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->fn)));
    val at = LLVMBuildAlloca(B, t, "");
    LLVMPositionBuilderAtEnd(B, here);
    return at;
}

void emit_lane_needs(void *user, uint32_t r)
{
    struct emit *e = user;
    const struct cpu_reg *reg = &e->f->regs[r];
    if (!e->serial.vars[r] && !cpu_is_constant(reg))
        e->serial.vars[r] = variable(e, emit_type(e, (enum emu_class)reg->cls, false));
}
void emit_lane_needs_def(void *user, uint32_t r, bool must)
{
    (void)must;
    emit_lane_needs(user, r);
}

/* ---- the lane's registers in the frame ------------------------------------------------------------------ */

static val lane_place(struct emit *e, uint32_t reg)
{
    val ix = LLVMBuildZExt(B, e->serial.lane, e->t.i64, "");
    return LLVMBuildGEP2(B, emit_type(e, (enum emu_class)e->f->regs[reg - 1].cls, false), emit_slot(e, reg), &ix, 1,
                         "");
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

/* NULL: not to global memory. */
static const struct cpu_lane_access *access_at(const struct cpu_serial *s, uint32_t ix)
{
    for (uint32_t k = 0; k < s->n_accesses; k++)
        if (s->accesses[k].at == ix) return &s->accesses[k];
    return NULL;
}
static const struct cpu_lane_access *access_here(const struct emit *e)
{
    return access_at(loop_of(e), e->ix);
}

static bool is_aligned(const struct cpu_lane_access *a)
{
    return a && a->aligned;
}

static val is_inside(struct emit *e, uint32_t ix, val at)
{
    const struct lane_room *room = &e->serial.rooms[ix];
    val off = LLVMBuildAdd(B, at, LLVMBuildLoad2(B, e->t.i64, room->minus, ""), "");
    val args[3] = {off, off,
                   k64(e, (uint64_t)__builtin_ctzll(
                              cpu_access_bytes(&e->f->insts[ix])))}; /* what is not aligned is far away then */
    if (!is_aligned(access_at(loop_of(e), ix))) off = emit_intrinsic(e, "llvm.fshr", &e->t.i64, 1, args, 3);
    return LLVMBuildICmp(B, LLVMIntULT, off, LLVMBuildLoad2(B, e->t.i64, room->n, ""), "");
}

/* What the operation at ix may access: from lo on so many elements, or bytes where addresses are known to be aligned; 0
 * where lo is not. Kept while lanes run, since the emulator's functions alone change it. */
static void find_room(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct lane_room *room = &e->serial.rooms[e->ix];
    uint64_t size = cpu_access_bytes(in);
    val lo, bytes, zero = k64(e, 0);
    emit_bounds(e, in, &lo, &bytes);
    const struct cpu_lane_access *a = access_here(e);
    val args[2] = {bytes, k64(e, a ? a->below + a->above : 0)},
        first = LLVMBuildAdd(B, lo, k64(e, a ? a->below : 0), "");
    val inner = emit_intrinsic(e, "llvm.usub.sat", &e->t.i64, 1, args, 2);
    val n = is_aligned(a) ? LLVMBuildAnd(B, inner, k64(e, ~(size - 1)), "") : LLVMBuildUDiv(B, inner, k64(e, size), ""),
        low = lo;
    for (uint32_t k = 0; is_aligned(a) && k < a->n_params; k++) {
        val p = LLVMBuildLoad2(B, e->t.i64, emit_at(e, e->arg.params, a->params[k]), "");
        LLVMSetAlignment(p, 1);
        low = LLVMBuildOr(B, low, p, "");
    }
    if (!room->minus) room->minus = variable(e, e->t.i64), room->n = variable(e, e->t.i64);
    LLVMBuildStore(B, LLVMBuildNeg(B, first, ""), room->minus);
    LLVMBuildStore(B,
                   LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, low, k64(e, size - 1), ""), zero, ""),
                                   n, zero, ""),
                   room->n);
}

/* There is code for lanes of which more is known: accesses that move evenly, and those that others stand for, are not
 * looked at. */
static bool has_sure(const struct cpu_serial *s)
{
    for (uint32_t k = 0; k < s->n_accesses; k++)
        if (s->accesses[k].even || s->accesses[k].leader) return true;
    return false;
}

/* Is the lanes' access inside, from where they begin for *rounds? Those are an eighth of what there is room for. */
static val even_inside(struct emit *e, const struct cpu_lane_access *a, val lanes, val *rounds)
{
    const struct cpu_inst *in = &e->f->insts[a->at];
    const struct cpu_shape *shape = &e->f->regs[in->s[0] - 1].shape;
    const struct lane_room *room = &e->serial.rooms[a->at];
    uint64_t step = (uint64_t)(a->step > 0 ? a->step : -a->step), size = cpu_access_bytes(in);
    val lo = LLVMBuildNeg(B, LLVMBuildLoad2(B, e->t.i64, room->minus, ""), ""),
        bytes = LLVMBuildLoad2(B, e->t.i64, room->n, "");
    if (!a->aligned) bytes = LLVMBuildMul(B, bytes, k64(e, size), "");
    if (step) {
        val args[2] = {LLVMBuildUDiv(B, bytes, k64(e, 8 * step), ""), *rounds};
        *rounds = emit_intrinsic(e, "llvm.umin", &e->t.i64, 1, args, 2);
        val far = LLVMBuildMul(B, *rounds, k64(e, step), "");
        bytes = LLVMBuildSub(B, bytes, far, "");
        if (a->step < 0) lo = LLVMBuildAdd(B, lo, far, "");
    }
    if (!a->aligned) return emit_all_inside(e, emit_address(e, in, true, 0), lo, bytes, (uint32_t)size, lanes);
    if (!shape->varying && !shape->halves && !shape->tile && shape->stride >= 0) { /* from the first lane on */
        val args[2] = {bytes, k64(e, 31 * (uint64_t)shape->stride)};
        return LLVMBuildICmp(B, LLVMIntULT, LLVMBuildSub(B, emit_address(e, in, false, 0), lo, ""),
                             emit_intrinsic(e, "llvm.usub.sat", &e->t.i64, 1, args, 2), "");
    }
    return emit_all_inside(e, emit_address(e, in, true, 0), lo, bytes, 1, lanes);
}

/* May an access touch at least what the one that stands for it may? */
static val covered(struct emit *e, const struct cpu_lane_access *a, const struct cpu_lane_access *leader)
{
    val lo[2], bytes[2];
    const struct cpu_lane_access *both[2] = {a, leader};
    for (int k = 0; k < 2; k++) emit_bounds(e, &e->f->insts[both[k]->at], &lo[k], &bytes[k]);
    val end[2] = {LLVMBuildAdd(B, lo[0], bytes[0], ""), LLVMBuildAdd(B, lo[1], bytes[1], "")};
    return LLVMBuildAnd(B, LLVMBuildICmp(B, LLVMIntULE, lo[0], lo[1], ""),
                        LLVMBuildICmp(B, LLVMIntUGE, end[0], end[1], ""), "");
}

static bool is_even_load(const struct emit *e, const struct cpu_serial *s, uint32_t ix)
{
    const struct cpu_lane_access *a = access_at(s, ix);
    return e->f->insts[ix].kind == CPU_LOAD && a && a->even;
}

static void find_sure(struct emit *e, const struct cpu_serial *s, val mask)
{
    val lanes = emit_lanes_of(e, mask), rounds = LLVMBuildZExt(B, e->serial.limit, e->t.i64, ""),
        sure = LLVMConstInt(e->t.i1, 1, 0);
    if (!has_sure(s)) return;
    for (uint32_t k = 0; k < s->n_accesses; k++) {
        const struct cpu_lane_access *a = &s->accesses[k];
        if (a->even) sure = LLVMBuildAnd(B, sure, even_inside(e, a, lanes, &rounds), "");
        if (a->leader) sure = LLVMBuildAnd(B, sure, covered(e, a, &s->accesses[a->leader - 1]), "");
    }
    val least[2] = {LLVMBuildZExt(B, e->serial.limit, e->t.i64, ""), k64(e, EVEN_ROUNDS)};
    sure = LLVMBuildAnd(
        B, sure, LLVMBuildICmp(B, LLVMIntUGE, rounds, emit_intrinsic(e, "llvm.umin", &e->t.i64, 1, least, 2), ""), "");
    e->serial.limit = LLVMBuildSelect(B, sure, LLVMBuildTrunc(B, rounds, e->t.i32, ""), e->serial.limit, "");
    if (!e->serial.all_sure) e->serial.all_sure = variable(e, e->t.i1), e->serial.foresees = variable(e, e->t.i1);
    LLVMBuildStore(B, sure, e->serial.all_sure);
    sure = LLVMBuildAnd(B, sure, LLVMBuildICmp(B, LLVMIntUGE, rounds, k64(e, FORESEEN_ROUNDS), ""), "");
    for (uint32_t k = 0; k < s->n_ahead; k++) { /* the program's own memory is not touched before its time */
        if (!is_even_load(e, s, s->ahead[k])) continue;
        val lo = LLVMBuildNeg(B, LLVMBuildLoad2(B, e->t.i64, e->serial.rooms[s->ahead[k]].minus, ""), "");
        lo = LLVMBuildSub(B, lo, emit_field(e, e->t.i64, offsetof(struct cpu_call, arena)), "");
        sure = LLVMBuildAnd(
            B, sure, LLVMBuildICmp(B, LLVMIntULT, lo, emit_field(e, e->t.i64, offsetof(struct cpu_call, arena[1])), ""),
            "");
    }
    if (s->n_ahead) LLVMBuildStore(B, sure, e->serial.foresees);
}

/* A function of the module's that calls the emulator's one and keeps all registers but those of vectors: seldom called,
 * and what lives in the loop should not make room for it. */
static val rare_call(struct emit *e, LLVMTypeRef *type)
{
    LLVMTypeRef args_t[3] = {e->t.ptr, e->t.ptr, e->t.i32};
    *type = LLVMFunctionType(e->t.voidt, args_t, 3, 0);
    val fn = LLVMGetNamedFunction(e->m, "rare"), args[3];
    if (fn) return fn;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    fn = LLVMAddFunction(e->m, "rare", *type);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    LLVMSetFunctionCallConv(fn, LLVMPreserveMostCallConv);
    LLVMPositionBuilderAtEnd(B, LLVMAppendBasicBlockInContext(e->c, fn, ""));
    for (unsigned k = 0; k < 3; k++) args[k] = LLVMGetParam(fn, k);
    LLVMBuildCall2(B, *type, LLVMBuildLoad2(B, e->t.ptr, args[0], ""), args, 3, "");
    LLVMBuildRetVoid(B);
    LLVMPositionBuilderAtEnd(B, here);
    return fn;
}

/* What arithmetic reads: forward.c may have put something else into s. */
static void store_operands(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    bool access = in->kind == CPU_LOAD || in->kind == CPU_STORE;
    for (int k = 0; k < (access ? 1 : 4); k++) {
        uint32_t was = !access && k < 3 ? in->was[k] : 0;
        if (in->s[k]) lane_store(e, was ? was : in->s[k]);
    }
    for (int k = 0; in->guard && !access && k < 2; k++)
        if (k ? in->d2 : in->d) lane_store(e, k ? in->d2 : in->d);
}

static void load_result(struct emit *e, uint32_t reg)
{
    if (!reg) return;
    val v = lane_load(e, reg);
    if (LLVMIsALoadInst(v)) LLVMSetVolatile(v, 1); /* not to be made one with the access itself */
    emit_set_scalar(e, reg, 0, v, NULL);
}

/* The emulator's function, for this lane. */
static void lane_call(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (in->guard) lane_store(e, in->guard);
    store_operands(e);
    for (uint32_t k = 0; k < in->n_list && in->kind == CPU_STORE; k++) lane_store(e, in->list[k]);
    LLVMTypeRef type;
    val fn = rare_call(e, &type), args[3] = {emit_op_address(e), emit_regs(e), e->mask};
    emit_tell_place(e);
    LLVMSetInstructionCallConv(LLVMBuildCall2(B, type, fn, args, 3, ""), LLVMPreserveMostCallConv);
    emit_look_up_bounds(e);
    for (uint32_t k = 0; k < in->n_list && in->kind == CPU_LOAD; k++) load_result(e, in->list[k]);
    if (in->kind != CPU_LOAD && in->kind != CPU_STORE) {
        load_result(e, in->d);
        load_result(e, in->d2);
    }
    if (loop_of(e)->lone) return;
    find_room(e);
    if (has_sure(loop_of(e))) LLVMBuildStore(B, LLVMConstInt(e->t.i1, 0, 0), e->serial.all_sure);
}

static void single_access(struct emit *e, val p)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    val each[8];
    for (uint32_t k = 0; k < in->vec && in->kind == CPU_STORE; k++) {
        val v = emit_scalar(e, in->list[k], 0, false);
        each[k] = LLVMTypeOf(v) == t ? v : LLVMBuildTrunc(B, v, t, "");
    }
    if (in->kind == CPU_STORE)
        emit_lane_put(e, p, each);
    else
        emit_lane_get(e, p, each);
    for (uint32_t k = 0; k < in->vec && in->kind == CPU_LOAD; k++)
        if (in->list[k]) emit_set_scalar(e, in->list[k], 0, emit_extended(e, in, each[k], false), NULL);
}

static void access(struct emit *e, val p)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    if (emit_is_single(in)) {
        single_access(e, p);
        return;
    }
    for (uint32_t k = 0; k < in->vec; k++) {
        val at = emit_at(e, p, (uint64_t)k * in->bytes);
        if (!in->list[k]) continue;
        if (in->kind == CPU_STORE) {
            val v = emit_scalar(e, in->list[k], 0, false);
            LLVMSetAlignment(
                emit_program(e, LLVMBuildStore(B, LLVMTypeOf(v) == t ? v : LLVMBuildTrunc(B, v, t, ""), at)),
                in->bytes);
            continue;
        }
        val v = LLVMBuildLoad2(B, t, at, "");
        if (in->kind == CPU_LOAD)
            emit_program(e, v);
        else
            LLVMSetMetadata(v, e->alias.invariant, e->alias.nothing);
        LLVMSetAlignment(v, in->kind == CPU_PARAM ? 1 : in->bytes);
        emit_set_scalar(e, in->list[k], 0, emit_extended(e, in, v, false), NULL);
    }
}

/* Does what one lane alone comes to have no code of its own? */
static bool is_called(const struct cpu_inst *in)
{
    return in->kind == CPU_CALL || in->where == EMU_AT_LOCAL || (in->kind != CPU_ALU && !cpu_has_lane_code(in));
}

bool emit_lone(struct emit *e)
{
    if (e->version != LANE || !e->f->serial_of[e->block] || !loop_of(e)->lone) return false; /* few.c has no loop */
    if (e->in->kind == CPU_PARAM || !is_called(e->in)) return false;
    lane_call(e);
    return true;
}

/* A lone lane's access is looked at where it is. */
static val lone_inside(struct emit *e, val at)
{
    uint64_t bytes = cpu_access_bytes(e->in);
    val lo, size;
    emit_bounds(e, e->in, &lo, &size);
    val args[2] = {size, k64(e, bytes - 1)}, low = LLVMBuildAnd(B, at, k64(e, bytes - 1), "");
    val in = LLVMBuildICmp(B, LLVMIntULT, LLVMBuildSub(B, at, lo, ""),
                           emit_intrinsic(e, "llvm.usub.sat", &e->t.i64, 1, args, 2), "");
    return LLVMBuildAnd(B, in, LLVMBuildICmp(B, LLVMIntEQ, low, k64(e, 0), ""), "");
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
    if (in->kind == CPU_PARAM)
        access(e, emit_at(e, e->arg.params, (uint64_t)in->off));
    else {
        LLVMBasicBlockRef fast = emit_block(e, "access"), *look = &e->serial.rooms[e->ix].look;
        const struct cpu_lane_access *a = access_here(e);
        if (e->serial.sure)
            *look = a && (a->even || a->leader) ? NULL : emit_block(e, "look");
        else if (*look) {
            LLVMBuildBr(B, *look);
            LLVMPositionBuilderAtEnd(B, *look);
        }
        val at = emit_address(e, in, false, 0);
        if (e->serial.sure && !*look)
            LLVMBuildBr(B, fast);
        else if (e->serial.sure)
            emit_usually(e, is_inside(e, e->ix, at), fast, *look);
        else {
            LLVMBasicBlockRef slow = emit_block(e, "elsewhere");
            emit_usually(e, loop_of(e)->lone ? lone_inside(e, at) : is_inside(e, e->ix, at), fast, slow);
            LLVMPositionBuilderAtEnd(B, slow);
            lane_call(e);
            LLVMBuildBr(B, next);
        }
        LLVMPositionBuilderAtEnd(B, fast);
        access(e, emit_host_pointer(e, in, at));
    }
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
}

/* ---- counts --------------------------------------------------------------------------------------------------- */

static bool is_always(const struct emit *e, uint32_t block)
{
    return mg_has(e->f->serials[e->f->serial_of[block] - 1].always, block);
}

/* In which rounds lanes have been at the operation is kept as bits where it counts warps: those of the round's 64 in a
 * variable, put to the others' when they are over or the lane stops. Blocks passed in every round need none. */
static bool keeps_rounds(const struct emit *e, uint32_t block, uint32_t ix)
{
    return cpu_counts_warps(&e->f->insts[ix]) && !is_always(e, block) &&
           !e->f->serials[e->f->serial_of[block] - 1].lone;
}

static val round_of(struct emit *e, val left)
{
    return LLVMBuildZExt(B, LLVMBuildSub(B, e->serial.limit, left, ""), e->t.i64, "");
}

static val place_of(struct emit *e, uint32_t ix, val round)
{
    val word = LLVMBuildLShr(B, round, k64(e, 6), "");
    return LLVMBuildGEP2(B, e->t.i64, e->serial.rooms[ix].rounds, &word, 1, "");
}

static void add_to(struct emit *e, val at, val n)
{
    LLVMBuildStore(B, LLVMBuildAdd(B, LLVMBuildLoad2(B, e->t.i64, at, ""), n, ""), at);
}
static void or_to(struct emit *e, val at, val bits)
{
    LLVMBuildStore(B, LLVMBuildOr(B, LLVMBuildLoad2(B, e->t.i64, at, ""), bits, ""), at);
}

/* Where rounds tell how many lanes pass, nothing is done. */
void emit_lane_pass(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    const struct lane_room *room = &e->serial.rooms[e->ix];
    if (loop_of(e)->lone) {
        val n = in->guard ? LLVMBuildZExt(B, emit_guard_scalar(e), e->t.i64, "") : k64(e, 1);
        emit_count_lanes(e, e->ix, n, n);
        return;
    }
    if (keeps_rounds(e, e->block, e->ix)) or_to(e, room->word, LLVMBuildLoad2(B, e->t.i64, e->serial.turn, ""));
    if (is_always(e, e->block) && !in->guard) return;
    add_to(e, room->passes, in->guard ? LLVMBuildZExt(B, emit_guard_scalar(e), e->t.i64, "") : k64(e, 1));
}

/* Before the first lane. */
static void begin_counts(struct emit *e)
{
    struct lane_room *room = &e->serial.rooms[e->ix];
    val *const all[] = {&e->serial.turn, &e->serial.passed, &e->serial.total,
                        &e->serial.most, &room->passes,     &room->word};
    if (e->in->kind != CPU_COUNT) return;
    for (unsigned k = 0; k < MG_COUNT_OF(all); k++) {
        if (!*all[k]) *all[k] = variable(e, e->t.i64);
        LLVMBuildStore(B, k64(e, 0), *all[k]);
    }
    if (!keeps_rounds(e, e->block, e->ix)) return;
    if (!room->rounds) room->rounds = variable(e, LLVMArrayType2(e->t.i64, TOLD_ROUNDS / 64));
    LLVMBuildMemSet(B, room->rounds, LLVMConstInt(e->t.i8, 0, 0), k64(e, TOLD_ROUNDS / 8), 8);
}

/* What this lane's rounds up to `round` were, to the others'. */
static void put_rounds(struct emit *e, val round)
{
    const struct cpu_serial *s = loop_of(e);
    for (uint32_t b = s->head; b < e->f->n_blocks; b++)
        for (uint32_t i = e->f->blocks[b].first; mg_has(s->blocks, b) && i < e->f->blocks[b].end; i++) {
            val word = e->serial.rooms[i].word;
            if (!keeps_rounds(e, b, i)) continue;
            or_to(e, place_of(e, i, round), LLVMBuildLoad2(B, e->t.i64, word, ""));
            LLVMBuildStore(B, k64(e, 0), word);
        }
}

static val count_rounds(struct emit *e, uint32_t ix)
{
    LLVMTypeRef t = LLVMVectorType(e->t.i64, TOLD_ROUNDS / 64);
    val all = LLVMBuildLoad2(B, t, e->serial.rooms[ix].rounds, "");
    LLVMSetAlignment(all, 8);
    all = emit_intrinsic(e, "llvm.ctpop", &t, 1, &all, 1);
    return emit_intrinsic(e, "llvm.vector.reduce.add", &t, 1, &all, 1);
}

/* A lane has stopped. */
static void end_lane(struct emit *e)
{
    if (!e->serial.turn) return;
    val passed = LLVMBuildLoad2(B, e->t.i64, e->serial.passed, ""),
        two[2] = {passed, LLVMBuildLoad2(B, e->t.i64, e->serial.most, "")};
    add_to(e, e->serial.total, passed);
    LLVMBuildStore(B, emit_intrinsic(e, "llvm.umax", &e->t.i64, 1, two, 2), e->serial.most);
}

/* All have. */
static void end_counts(struct emit *e, const struct cpu_serial *s)
{
    for (uint32_t b = s->head; b < e->f->n_blocks; b++)
        for (uint32_t i = e->f->blocks[b].first; mg_has(s->blocks, b) && i < e->f->blocks[b].end; i++) {
            const struct cpu_inst *in = &e->f->insts[i];
            if (in->kind != CPU_COUNT) continue;
            val lanes = LLVMBuildLoad2(B, e->t.i64,
                                       is_always(e, b) && !in->guard ? e->serial.total : e->serial.rooms[i].passes, "");
            emit_count_lanes(e, i, lanes,
                             keeps_rounds(e, b, i) ? count_rounds(e, i)
                                                   : LLVMBuildLoad2(B, e->t.i64, e->serial.most, ""));
        }
}

/* ---- jumps -------------------------------------------------------------------------------------------------- */

static LLVMBasicBlockRef target(struct emit *e, uint32_t t)
{
    return emit_target(e, e->serial.sure ? SURE : LANE, t);
}

static void go(struct emit *e, uint32_t t)
{
    if (e->pure.here) {
        LLVMBuildBr(B, target(e, t));
        return;
    }
    const struct cpu_serial *s = loop_of(e);
    bool inside = mg_has(s->blocks, t);
    if (inside && t > e->block) {
        LLVMBuildBr(B, target(e, t));
        return;
    }
    val had = load32(e, e->serial.rounds);
    if (inside) {
        LLVMBasicBlockRef stop = emit_block(e, "stop"), again = target(e, t);
        val left = LLVMBuildSub(B, had, k32(e, 1), "");
        LLVMBuildStore(B, left, e->serial.rounds);
        if (e->serial.turn) { /* the next bit; the first one again: the word is full */
            LLVMBasicBlockRef full = emit_block(e, "word"), on = emit_block(e, "");
            val turn = LLVMBuildLoad2(B, e->t.i64, e->serial.turn, ""), args[3] = {turn, turn, k64(e, 1)};
            turn = emit_intrinsic(e, "llvm.fshl", &e->t.i64, 1, args, 3);
            LLVMBuildStore(B, turn, e->serial.turn);
            emit_usually(e, LLVMBuildICmp(B, LLVMIntNE, turn, k64(e, 1), ""), on, full);
            LLVMPositionBuilderAtEnd(B, full);
            put_rounds(e, round_of(e, had));
            LLVMBuildBr(B, on);
            LLVMPositionBuilderAtEnd(B, on);
        }
        emit_usually(e, not_zero(e, left), again, stop);
        LLVMPositionBuilderAtEnd(B, stop);
    }
    if (e->serial.turn) {
        val round = round_of(e, had);
        put_rounds(e, round);
        LLVMBuildStore(B, LLVMBuildAdd(B, round, k64(e, 1), ""), e->serial.passed);
    }
    for (uint32_t r = 0; r < e->f->n_regs; r++)
        if (mg_has(s->out, r) && mg_has(e->f->blocks[t].live, r)) lane_store(e, r + 1);
    LLVMBuildStore(B, LLVMBuildOr(B, load32(e, e->pend[t]), e->mask, ""), e->pend[t]);
    LLVMBuildBr(B, e->serial.over);
}

void emit_lane_end(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (in->kind != CPU_CTL) {
        go(e, e->block + 1);
        return;
    }
    if (e->pure.here && in->ctl == EMU_CTL_RET) {
        emit_pure_end(e);
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
    LLVMBasicBlockRef *bb = &e->serial.loops[loop].in[version];
    if (!*bb) *bb = emit_block(e, "serial");
    return *bb;
}

/* The lanes that come to the loop. They go on as vectors where others wait somewhere inside it, and when the turn is
 * up. */
static val arrive(struct emit *e, const struct cpu_serial *s)
{
    struct cpu_func *f = e->f;
    val mask = load32(e, e->cur), most = k32(e, s->tells_rounds ? TOLD_ROUNDS : EMU_TURN_BUDGET),
        args[2] = {most, LLVMBuildSub(B, load32(e, e->budget), k32(e, 1), "")};
    e->serial.limit = emit_intrinsic(e, "llvm.smin", &e->t.i32, 1, args, 2);
    val other = LLVMBuildICmp(B, LLVMIntSLE, e->serial.limit, k32(e, 0), "");
    if (e->pend[s->head]) {
        mask = LLVMBuildOr(B, mask, load32(e, e->pend[s->head]), "");
        LLVMBuildStore(B, k32(e, 0), e->pend[s->head]);
    }
    if (s->lone && !s->turns) return mask;
    for (uint32_t x = s->head + 1; x < f->n_blocks; x++) {
        if (!mg_has(s->blocks, x) || !mg_has(f->blocks[s->head].front, x) || !e->pend[x]) continue;
        other = LLVMBuildOr(B, other, not_zero(e, load32(e, e->pend[x])), "");
    }
    LLVMBasicBlockRef vectors = emit_block(e, "inside"), on = emit_block(e, "lanes");
    LLVMBuildCondBr(B, other, vectors, on);
    LLVMPositionBuilderAtEnd(B, vectors);
    if (s->lone) {
        e->mask = mask;
        emit_leave(e);
        e->mask = NULL;
    } else {
        LLVMBuildStore(B, mask, e->cur);
        LLVMBuildBr(B, emit_target(e, PART, s->head));
    }
    LLVMPositionBuilderAtEnd(B, on);
    return mask;
}

/* Where the turn of a lane is up that came there alone: the emulator goes on. */
static LLVMBasicBlockRef given_up(struct emit *e, uint32_t x)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B), out = emit_block(e, "given_up");
    uint32_t block = e->block, ix = e->ix;
    LLVMPositionBuilderAtEnd(B, out);
    e->block = x;
    e->ix = e->f->blocks[x].first;
    e->mask = load32(e, e->pend[x]);
    LLVMBuildStore(B, k32(e, 0), e->pend[x]);
    emit_leave(e);
    e->block = block;
    e->ix = ix;
    e->mask = NULL;
    LLVMPositionBuilderAtEnd(B, here);
    return out;
}

static LLVMBasicBlockRef after_stop(struct emit *e, const struct cpu_serial *s, uint32_t x, LLVMBasicBlockRef begin)
{
    if (s->lone && mg_has(s->blocks, x)) return given_up(e, x);
    return x == s->head ? begin : emit_target(e, PART, x);
}

/* All lanes have stopped: the first block with any. Those at the head begin again, as vectors when the turn is up. */
static void go_on(struct emit *e, const struct cpu_serial *s, LLVMBasicBlockRef begin)
{
    uint32_t last = 0;
    for (uint32_t x = 0; x < e->f->n_blocks; x++)
        if (mg_has(s->stops, x)) last = x;
    LLVMBuildStore(B, k32(e, 0), e->cur);
    for (uint32_t x = 0; x < last; x++) {
        if (!e->pend[x] || !(mg_has(s->stops, x) || mg_has(e->f->blocks[s->head].front, x))) continue;
        LLVMBasicBlockRef no = emit_block(e, "");
        LLVMBuildCondBr(B, not_zero(e, load32(e, e->pend[x])), after_stop(e, s, x, begin), no);
        LLVMPositionBuilderAtEnd(B, no);
    }
    LLVMBuildBr(B, after_stop(e, s, last, begin));
}

static bool body(struct emit *e, const struct cpu_serial *s)
{
    for (uint32_t b = s->head; b < e->f->n_blocks; b++) {
        LLVMBasicBlockRef at = e->bb[e->serial.sure ? SURE : LANE][b];
        if (!mg_has(s->blocks, b) || !at) continue;
        e->block = b;
        LLVMPositionBuilderAtEnd(B, at);
        for (e->ix = e->f->blocks[b].first; e->ix < e->f->blocks[b].end; e->ix++) {
            e->in = &e->f->insts[e->ix];
            if (e->in->kind != CPU_CTL && !emit_instruction(e)) return false;
            if (e->ix + 1 == e->f->blocks[b].end) emit_end(e);
        }
    }
    return true;
}

/* What the lane begins with. base: of registers that are no vectors. */
static val first_value(struct emit *e, uint32_t r, const val base[2])
{
    const struct cpu_reg *reg = &e->f->regs[r];
    if (reg->shape.varying) return lane_load(e, r + 1);
    val v = base[0];
    if (reg->shape.halves)
        v = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntULT, e->serial.lane, k32(e, 16), ""), v, base[1], "");
    val off = emit_lane_offset(e, reg->shape, LLVMTypeOf(v), e->serial.lane);
    return off ? LLVMBuildAdd(B, v, off, "") : v;
}

/* Does the loop store to where it loads? Another core's line is then asked for once, for both. */
static bool is_stored_to(const struct emit *e, const struct cpu_serial *s, uint32_t ix)
{
    for (uint32_t k = 0; k < s->n_accesses; k++)
        if (s->accesses[k].leader && s->accesses[s->accesses[k].leader - 1].at == ix &&
            e->f->insts[s->accesses[k].at].kind == CPU_STORE)
            return true;
    return false;
}

/* A lane waits for what it loads from all over memory: what the next one's first rounds will load so is fetched before.
 * Those rounds run here, in registers of their own, as far as addresses depend on them. */
static void foresee(struct emit *e, const struct cpu_serial *s, val (*base)[2], val rest)
{
    struct cpu_func *f = e->f;
    const struct cpu_inst *test = &f->insts[s->ahead_test];
    val *own = calloc(f->n_regs, sizeof *own), *lane_vars = e->serial.vars, lane = e->serial.lane, mask = e->mask;
    if (!own) abort();
    if (!s->n_ahead) goto done;
    LLVMBasicBlockRef begin = emit_block(e, "foresee"), round = emit_block(e, "round"), end = emit_block(e, "");
    LLVMBuildCondBr(B, LLVMBuildAnd(B, LLVMBuildLoad2(B, e->t.i1, e->serial.foresees, ""), not_zero(e, rest), ""),
                    begin, end);
    LLVMPositionBuilderAtEnd(B, begin);
    val args[2] = {rest, LLVMConstInt(e->t.i1, 1, 0)};
    e->serial.lane = emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2);
    e->mask = LLVMBuildAnd(B, rest, LLVMBuildNeg(B, rest, ""), "");
    e->serial.vars = own;
    for (uint32_t k = 0; k < s->n_ahead; k++) {
        cpu_each_use(f, &f->insts[s->ahead[k]], emit_lane_needs, e);
        cpu_each_def(f, &f->insts[s->ahead[k]], emit_lane_needs_def, e);
    }
    if (test->guard) emit_lane_needs(e, test->guard - 1);
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (own[r] && mg_has(s->in, r)) LLVMBuildStore(B, first_value(e, r, base[r]), own[r]);
    val rounds = variable(e, e->t.i32);
    LLVMBuildStore(B, k32(e, FORESEEN_ROUNDS), rounds);
    LLVMBuildBr(B, round);
    LLVMPositionBuilderAtEnd(B, round);
    for (uint32_t k = 0; k < s->n_ahead; k++) {
        e->in = &f->insts[e->ix = s->ahead[k]];
        if (e->in->kind != CPU_LOAD)
            emit_instruction(e);
        else if (is_even_load(e, s, e->ix))
            access(e, emit_host_pointer(e, e->in, emit_address(e, e->in, false, 0)));
        else {
            val fetch[4] = {emit_host_pointer(e, e->in, emit_address(e, e->in, false, 0)),
                            k32(e, is_stored_to(e, s, e->ix)), k32(e, 3), k32(e, 1)};
            emit_intrinsic(e, "llvm.prefetch", &e->t.ptr, 1, fetch, 4);
        }
    }
    val left = LLVMBuildSub(B, load32(e, rounds), k32(e, 1), ""), on = not_zero(e, left);
    LLVMBuildStore(B, left, rounds);
    e->in = test;
    if (test->guard && test->target != test->fall) {
        val taken = emit_guard_scalar(e);
        on = LLVMBuildAnd(B, on, test->target == s->head ? taken : LLVMBuildNot(B, taken, ""), "");
    }
    LLVMBuildCondBr(B, on, round, end);
    LLVMPositionBuilderAtEnd(B, end);
    e->serial.vars = lane_vars;
    e->serial.lane = lane;
    e->mask = mask;
done:
    free(own);
}

static bool emit_serial(struct emit *e, uint32_t k)
{
    struct cpu_func *f = e->f;
    const struct cpu_serial *s = &f->serials[k];
    LLVMBasicBlockRef begin = emit_block(e, "lanes"), next = emit_block(e, "lane"), done = emit_block(e, "done");
    val(*base)[2] = calloc(f->n_regs + 1, sizeof *base);
    if (!base) return false;
    e->serial.loops[k].begin = begin;
    LLVMPositionBuilderAtEnd(B, begin);
    e->version = PART;
    e->block = s->head;
    e->ix = f->blocks[s->head].first;
    e->in = &f->insts[e->ix];
    e->mask = e->lanes = NULL;
    if (!e->serial.rounds) e->serial.rounds = variable(e, e->t.i32), e->serial.least = variable(e, e->t.i32);
    val all = arrive(e, s);
    for (uint32_t b = s->head; b < f->n_blocks; b++)
        for (uint32_t i = f->blocks[b].first; mg_has(s->blocks, b) && i < f->blocks[b].end; i++) {
            cpu_each_use(f, &f->insts[i], emit_lane_needs, e);
            cpu_each_def(f, &f->insts[i], emit_lane_needs_def, e);
            e->ix = i;
            e->in = &f->insts[i];
            if (s->lone) continue;
            if (e->in->kind == CPU_LOAD || e->in->kind == CPU_STORE) find_room(e);
            e->block = b;
            begin_counts(e);
            e->block = s->head;
        }
    find_sure(e, s, all);
    e->in = &f->insts[e->ix = f->blocks[s->head].first];
    LLVMBuildStore(B, e->serial.limit, e->serial.least);
    for (uint32_t r = 0; r < f->n_regs; r++) {
        const struct cpu_reg *reg = &f->regs[r];
        bool in = mg_has(s->in, r);
        if (in) emit_lane_needs(e, r);
        if (reg->shape.varying ? in || mg_has(s->out, r) : false) emit_spill(e, r + 1);
        for (int h = 0; in && !reg->shape.varying && h < (reg->shape.halves ? 2 : 1); h++)
            base[r][h] = emit_scalar(e, r + 1, h, false);
    }
    LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    val left = LLVMBuildPhi(B, e->t.i32, ""), args[2] = {left, LLVMConstInt(e->t.i1, 1, 0)};
    e->serial.lane = emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2);
    e->mask = LLVMBuildAnd(B, left, LLVMBuildNeg(B, left, ""), "");
    e->serial.over = emit_block(e, "stopped");
    e->version = LANE;
    for (uint32_t r = 0; r < f->n_regs; r++) {
        if (!mg_has(s->in, r)) continue;
        LLVMBuildStore(B, first_value(e, r, base[r]), e->serial.vars[r]);
    }
    foresee(e, s, base, LLVMBuildAnd(B, left, LLVMBuildSub(B, left, k32(e, 1), ""), ""));
    free(base);
    LLVMBuildStore(B, e->serial.limit, e->serial.rounds);
    if (e->serial.turn) LLVMBuildStore(B, k64(e, 1), e->serial.turn);
    if (has_sure(s)) {
        LLVMBuildCondBr(B, LLVMBuildLoad2(B, e->t.i1, e->serial.all_sure, ""), emit_target(e, SURE, s->head),
                        emit_target(e, LANE, s->head));
        e->serial.sure = true;
        if (!body(e, s)) return false;
        e->serial.sure = false;
    } else
        LLVMBuildBr(B, emit_target(e, LANE, s->head));
    if (!body(e, s)) return false;
    LLVMPositionBuilderAtEnd(B, e->serial.over);
    val rounds[2] = {load32(e, e->serial.rounds), load32(e, e->serial.least)};
    LLVMBuildStore(B, emit_intrinsic(e, "llvm.smin", &e->t.i32, 1, rounds, 2), e->serial.least);
    end_lane(e);
    val rest = LLVMBuildAnd(B, left, LLVMBuildSub(B, left, k32(e, 1), ""), "");
    LLVMBuildCondBr(B, not_zero(e, rest), next, done);
    LLVMAddIncoming(left, (val[]){all, rest}, (LLVMBasicBlockRef[]){before, e->serial.over}, 2);
    LLVMPositionBuilderAtEnd(B, done);
    e->version = PART;
    e->block = s->head;
    e->in = &f->insts[f->blocks[s->head].first];
    e->mask = NULL;
    LLVMBuildStore(
        B, LLVMBuildSub(B, load32(e, e->budget), LLVMBuildSub(B, e->serial.limit, load32(e, e->serial.least), ""), ""),
        e->budget); /* as if they had gone together */
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (mg_has(s->out, r)) emit_reload(e, r + 1, NULL, NULL, NULL);
    if (!s->lone) end_counts(e, s);
    go_on(e, s, begin);
    return true;
}

/* From where warps come to it; what is emitted after the loop may be the first to come from one of the versions. */
static void enter(struct emit *e, struct serial_code *c)
{
    for (int v = 0; v < 2; v++) {
        if (!c->in[v] || LLVMGetBasicBlockTerminator(c->in[v])) continue;
        LLVMPositionBuilderAtEnd(B, c->in[v]);
        if (v == FULL) LLVMBuildStore(B, k32(e, UINT32_MAX), e->cur);
        LLVMBuildBr(B, c->begin);
    }
}

bool emit_serials(struct emit *e, bool *any)
{
    for (uint32_t k = 0; k < e->f->n_serials; k++) {
        struct serial_code *c = &e->serial.loops[k];
        if (!c->in[FULL] && !c->in[PART]) continue;
        if (!c->begin) {
            *any = true;
            if (!emit_serial(e, k)) return false;
        }
        enter(e, c);
    }
    return true;
}
