/* Lane by lane: atomics on shared memory, which a CTA has to itself, and accesses of few lanes that lie
 * anywhere. Vectors pass through arrays in the frame of the compiled function. */
#include "device/cpu/plugin/emit.h"

#include "device/emu/alu_priv.h"

#define B e->b
#define FEW 8 /* lanes for which a loop is cheaper than a gather */

static val k32(struct emit *e, uint64_t v) { return LLVMConstInt(e->i32, v, 0); }
static val k64(struct emit *e, uint64_t v) { return LLVMConstInt(e->i64, v, 0); }

/* Room for 32 lanes, one for each use: addresses, values, results. */
static val room(struct emit *e, unsigned use)
{
    if (e->lane_room[use]) return e->lane_room[use];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B), first = LLVMGetEntryBasicBlock(e->fn);
    val at = LLVMGetFirstInstruction(first);
    if (at) LLVMPositionBuilderBefore(B, at);
    else LLVMPositionBuilderAtEnd(B, first);
    e->lane_room[use] = LLVMBuildAlloca(B, e->v64, "");
    LLVMSetAlignment(e->lane_room[use], 64);
    LLVMPositionBuilderAtEnd(B, here);
    return e->lane_room[use];
}

static val lane_of(struct emit *e, LLVMTypeRef t, val array, val lane)
{
    val ix = LLVMBuildZExt(B, lane, e->i64, "");
    return LLVMBuildGEP2(B, t, array, &ix, 1, "");
}

static void store_room(struct emit *e, val v, val array) { LLVMSetAlignment(LLVMBuildStore(B, v, array), 64); }

struct loop { LLVMBasicBlockRef head, on; val left, mask; };

/* For each lane of the mask, ascending. The body goes on at the builder's place. */
static val begin_lanes(struct emit *e, struct loop *l, val mask)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
    l->head = emit_block(e, "lane");
    l->on = emit_block(e, "lanes");
    LLVMBuildBr(B, l->head);
    LLVMPositionBuilderAtEnd(B, l->head);
    l->mask = LLVMBuildPhi(B, e->i32, "");
    LLVMAddIncoming(l->mask, &mask, &before, 1);
    val args[2] = {l->mask, LLVMConstInt(e->i1, 1, 0)};
    return emit_intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2);
}

static void end_lanes(struct emit *e, struct loop *l)
{
    val rest = LLVMBuildAnd(B, l->mask, LLVMBuildSub(B, l->mask, k32(e, 1), ""), "");
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMAddIncoming(l->mask, &rest, &here, 1);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, rest, k32(e, 0), ""), l->head, l->on);
    LLVMPositionBuilderAtEnd(B, l->on);
}

/* ---- atomics on shared memory ------------------------------------------------------------------------------ */

static val combined(struct emit *e, const struct cpu_inst *in, val old, val x)
{
    bool sign = in->type == MG_TYPE_s32;
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;
    switch ((enum emu_atom)in->sub) {
    case EMU_ATOM_ADD: return LLVMBuildAdd(B, old, x, "");
    case EMU_ATOM_MIN: return LLVMBuildSelect(B, LLVMBuildICmp(B, less, old, x, ""), old, x, "");
    case EMU_ATOM_MAX: return LLVMBuildSelect(B, LLVMBuildICmp(B, less, old, x, ""), x, old, "");
    case EMU_ATOM_AND: return LLVMBuildAnd(B, old, x, "");
    case EMU_ATOM_OR: return LLVMBuildOr(B, old, x, "");
    case EMU_ATOM_XOR: return LLVMBuildXor(B, old, x, "");
    default: return x; /* exchange */
    }
}

/* off: 64 bits; returns what was there. */
static val change(struct emit *e, val off, val x)
{
    val p = LLVMBuildGEP2(B, e->i8, e->shared, &off, 1, ""), old = emit_program(e, LLVMBuildLoad2(B, e->i32, p, ""));
    emit_program(e, LLVMBuildStore(B, combined(e, e->in, old, x), p));
    return old;
}

static void one_lane(struct emit *e, val lane, val at, val value, val uniform, val result)
{
    val off = LLVMBuildZExt(B, LLVMBuildLoad2(B, e->i32, lane_of(e, e->i32, at, lane), ""), e->i64, "");
    val old = change(e, off, uniform ? uniform : LLVMBuildLoad2(B, e->i32, lane_of(e, e->i32, value, lane), ""));
    if (result) LLVMBuildStore(B, old, lane_of(e, e->i32, result, lane));
}

/* Lane k of 32 words, as 64 bits: two come out of a vector at once. */
static val lane_word(struct emit *e, val pairs, uint32_t k)
{
    val two = LLVMBuildExtractElement(B, pairs, k32(e, k / 2), "");
    return k & 1 ? LLVMBuildLShr(B, two, k64(e, 32), "") : LLVMBuildAnd(B, two, k64(e, UINT32_MAX), "");
}

/* All lanes, and nobody asks what was there: straight from registers. Read back from memory each would wait for the vector stored there. */
static void all_lanes(struct emit *e, val at, val value, val uniform)
{
    LLVMTypeRef t = LLVMVectorType(e->i64, 16);
    val places = LLVMBuildBitCast(B, at, t, ""), values = value ? LLVMBuildBitCast(B, value, t, "") : NULL;
    for (uint32_t k = 0; k < 32; k++) change(e, lane_word(e, places, k), uniform ? uniform : LLVMBuildTrunc(B, lane_word(e, values, k), e->i32, ""));
}

bool emit_is_live_after(struct emit *e, uint32_t reg)
{
    cpu_live_at(e->f, e->block, e->ix + 1, e->scratch);
    return mg_has(e->scratch, reg - 1) || mg_has(e->f->blocks[e->block].keep, reg - 1);
}

void emit_shared_atomic(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    val many = emit_address(e, in, true, 0), lanes = in->guard ? emit_active(e) : emit_lanes(e);
    val ok = emit_all_inside(e, many, k64(e, 0), e->shared_bytes, 4, lanes), cached = e->lanes;
    if (e->f->static_shared >= 4) /* masked addresses are surely inside: that is seen from the constant */
        ok = LLVMBuildOr(B, emit_all_inside(e, many, k64(e, 0), k64(e, e->f->static_shared), 4, lanes), ok, "");
    LLVMBasicBlockRef fast = emit_block(e, "atomic"), slow = emit_block(e, "elsewhere"), next = emit_block(e, "done");
    LLVMBuildCondBr(B, ok, fast, slow);
    LLVMPositionBuilderAtEnd(B, slow);
    e->lanes = NULL;
    emit_call(e);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, fast);
    e->lanes = cached;
    val at = room(e, 0), value = NULL, uniform = NULL, result = in->d && emit_is_live_after(e, in->d) ? room(e, 2) : NULL, places = LLVMBuildTrunc(B, many, e->v32, ""), values = NULL;
    if (emit_is_linear(e, in->s[1]) && (cpu_is_constant(&e->f->regs[in->s[1] - 1]) || cpu_is_uniform(e->f->regs[in->s[1] - 1].shape))) uniform = emit_scalar(e, in->s[1], 0, false);
    else values = emit_vec(e, in->s[1], false);
    if (lanes || result) {
        store_room(e, places, at);
        if (values) store_room(e, values, value = room(e, 1));
    }
    if (!lanes && !result) all_lanes(e, places, values, uniform);
    else if (lanes) {
        struct loop l;
        val mask = LLVMBuildBitCast(B, lanes, e->i32, "");
        LLVMBasicBlockRef some = emit_block(e, "some"), none = emit_block(e, "none");
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, mask, k32(e, 0), ""), some, none);
        LLVMPositionBuilderAtEnd(B, some);
        one_lane(e, begin_lanes(e, &l, mask), at, value, uniform, result);
        end_lanes(e, &l);
        LLVMBuildBr(B, none);
        LLVMPositionBuilderAtEnd(B, none);
    } else { /* four a turn */
        LLVMBasicBlockRef before = LLVMGetInsertBlock(B), head = emit_block(e, "lane"), on = emit_block(e, "lanes");
        LLVMBuildBr(B, head);
        LLVMPositionBuilderAtEnd(B, head);
        val i = LLVMBuildPhi(B, e->i32, ""), zero = k32(e, 0);
        LLVMAddIncoming(i, &zero, &before, 1);
        for (uint32_t k = 0; k < 4; k++) one_lane(e, LLVMBuildAdd(B, i, k32(e, k), ""), at, value, uniform, result);
        val step = LLVMBuildAdd(B, i, k32(e, 4), "");
        LLVMAddIncoming(i, &step, &head, 1);
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, step, k32(e, 32), ""), head, on);
        LLVMPositionBuilderAtEnd(B, on);
    }
    if (result) {
        val old = LLVMBuildLoad2(B, e->v32, result, "");
        LLVMSetAlignment(old, 64);
        if (e->f->regs[in->d - 1].shape.varying) emit_set_vec(e, in->d, old, in->guard ? emit_active(e) : NULL);
    }
    if (in->waits) { /* as emu_mark_suspect */
        val w = LLVMBuildLoad2(B, e->ptr, emit_at(e, emit_frame(e), offsetof(struct emu_frame, w)), "");
        LLVMBuildStore(B, LLVMConstInt(e->i8, 1, 0), emit_at(e, w, offsetof(struct emu_warp, suspect)));
    }
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    e->lanes = cached;
}

/* ---- loads and stores of few lanes ---------------------------------------------------------------------------- */

/* Emits the access as a loop when there are FEW lanes, and leaves the builder where there are more.
 * Returns where both meet; NULL: no loop. t: the memory's element; value: of a store, in t. */
LLVMBasicBlockRef emit_few(struct emit *e, LLVMTypeRef t, val at, val lanes, val value, val *loaded)
{
    if (!lanes) return NULL;
    struct loop l;
    LLVMBasicBlockRef few = emit_block(e, "few"), more = emit_block(e, "more"), next = emit_block(e, "accessed");
    LLVMTypeRef vt = LLVMVectorType(t, 32);
    val mask = LLVMBuildBitCast(B, lanes, e->i32, ""), addresses = room(e, 0), values = value ? room(e, 1) : NULL;
    val n = emit_intrinsic(e, "llvm.ctpop", &e->i32, 1, &mask, 1), less = LLVMBuildSub(B, n, k32(e, 1), "");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, less, k32(e, FEW), ""), few, more);
    LLVMPositionBuilderAtEnd(B, few);
    store_room(e, at, addresses);
    if (value) store_room(e, value, values);
    val lane = begin_lanes(e, &l, mask), so_far = NULL;
    if (!value) { /* a vector that lanes are put into: reading back what they stored would wait for all of it */
        LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(l.head));
        so_far = LLVMBuildPhi(B, vt, "");
        LLVMPositionBuilderAtEnd(B, l.head);
    }
    val a = LLVMBuildLoad2(B, e->i64, lane_of(e, e->i64, addresses, lane), "");
    val p = e->in->where == EMU_AT_SHARED ? LLVMBuildGEP2(B, e->i8, e->shared, &a, 1, "") : LLVMBuildIntToPtr(B, a, e->ptr, "");
    if (value) emit_program(e, LLVMBuildStore(B, LLVMBuildLoad2(B, t, lane_of(e, t, values, lane), ""), p));
    else {
        val one = LLVMBuildBitCast(B, LLVMBuildAnd(B, l.mask, LLVMBuildNeg(B, l.mask, ""), ""), e->v1, ""), none = LLVMConstNull(vt);
        *loaded = LLVMBuildSelect(B, one, emit_splat(e, emit_program(e, LLVMBuildLoad2(B, t, p, ""))), so_far, "");
        LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
        LLVMAddIncoming(so_far, &none, &few, 1);
        LLVMAddIncoming(so_far, loaded, &here, 1);
    }
    end_lanes(e, &l);
    e->few_end = LLVMGetInsertBlock(B);
    LLVMPositionBuilderAtEnd(B, more);
    return next;
}
