/* Lane by lane: atomics on shared memory, which a CTA has to itself, and on global memory, and accesses of few lanes
 * that lie anywhere. Vectors pass through arrays in the frame of the compiled function. */
#include "device/cpu/plugin/emit.h"

#include "device/emu/alu_form.h"

#define B   e->b
#define FEW 8 /* lanes for which a loop is cheaper than a gather */

/* Room for 32 lanes, one for each use: addresses, values, results. */
val emit_room(struct emit *e, unsigned use)
{
    if (e->room.at[use]) return e->room.at[use];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B), first = LLVMGetEntryBasicBlock(e->fn);
    val at = LLVMGetFirstInstruction(first);
    if (at)
        LLVMPositionBuilderBefore(B, at);
    else
        LLVMPositionBuilderAtEnd(B, first);
    e->room.at[use] = LLVMBuildAlloca(B, e->t.v64, "");
    LLVMSetAlignment(e->room.at[use], 64);
    LLVMPositionBuilderAtEnd(B, here);
    return e->room.at[use];
}

val emit_lane_of(struct emit *e, LLVMTypeRef t, val array, val lane)
{
    val ix = LLVMBuildZExt(B, lane, e->t.i64, "");
    return LLVMBuildGEP2(B, t, array, &ix, 1, "");
}

static void store_room(struct emit *e, val v, val array)
{
    LLVMSetAlignment(LLVMBuildStore(B, v, array), 64);
}

/* For each lane of the mask, ascending. The body goes on at the builder's place. */
val emit_begin_lanes(struct emit *e, struct lane_loop *l, val mask)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
    l->head = emit_block(e, "lane");
    l->on = emit_block(e, "lanes");
    LLVMBuildBr(B, l->head);
    LLVMPositionBuilderAtEnd(B, l->head);
    l->mask = LLVMBuildPhi(B, e->t.i32, "");
    LLVMAddIncoming(l->mask, &mask, &before, 1);
    val args[2] = {l->mask, LLVMConstInt(e->t.i1, 1, 0)};
    return emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2);
}

void emit_end_lanes(struct emit *e, struct lane_loop *l)
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
    bool sign = in->type == MG_TYPE_s32 || in->type == MG_TYPE_s64;
    LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;
    switch ((enum emu_atom)in->sub) {
    case EMU_ATOM_ADD:
        return LLVMBuildAdd(B, old, x, "");
    case EMU_ATOM_MIN:
        return LLVMBuildSelect(B, LLVMBuildICmp(B, less, old, x, ""), old, x, "");
    case EMU_ATOM_MAX:
        return LLVMBuildSelect(B, LLVMBuildICmp(B, less, old, x, ""), x, old, "");
    case EMU_ATOM_AND:
        return LLVMBuildAnd(B, old, x, "");
    case EMU_ATOM_OR:
        return LLVMBuildOr(B, old, x, "");
    case EMU_ATOM_XOR:
        return LLVMBuildXor(B, old, x, "");
    default:
        return x; /* exchange */
    }
}

/* off: 64 bits; returns what was there. */
static val change(struct emit *e, val off, val x)
{
    val p = LLVMBuildGEP2(B, e->t.i8, e->arg.shared, &off, 1, ""),
        old = emit_program(e, LLVMBuildLoad2(B, e->t.i32, p, ""));
    emit_program(e, LLVMBuildStore(B, combined(e, e->in, old, x), p));
    return old;
}

static void one_lane(struct emit *e, val lane, val at, val value, val uniform, val result)
{
    val off = LLVMBuildZExt(B, LLVMBuildLoad2(B, e->t.i32, emit_lane_of(e, e->t.i32, at, lane), ""), e->t.i64, "");
    val old =
        change(e, off, uniform ? uniform : LLVMBuildLoad2(B, e->t.i32, emit_lane_of(e, e->t.i32, value, lane), ""));
    if (result) LLVMBuildStore(B, old, emit_lane_of(e, e->t.i32, result, lane));
}

/* Lane k of 32 words, as 64 bits: two come out of a vector at once. */
static val lane_word(struct emit *e, val pairs, uint32_t k)
{
    val two = LLVMBuildExtractElement(B, pairs, k32(e, k / 2), "");
    return k & 1 ? LLVMBuildLShr(B, two, k64(e, 32), "") : LLVMBuildAnd(B, two, k64(e, UINT32_MAX), "");
}

/* All lanes, and nobody asks what was there: straight from registers. Read back from memory each would wait for the
 * vector stored there. */
static void all_lanes(struct emit *e, val at, val value, val uniform)
{
    LLVMTypeRef t = LLVMVectorType(e->t.i64, 16);
    val places = LLVMBuildBitCast(B, at, t, ""), values = value ? LLVMBuildBitCast(B, value, t, "") : NULL;
    for (uint32_t k = 0; k < 32; k++)
        change(e, lane_word(e, places, k),
               uniform ? uniform : LLVMBuildTrunc(B, lane_word(e, values, k), e->t.i32, ""));
}

bool emit_is_live_after(struct emit *e, uint32_t reg)
{
    cpu_live_at(e->f, e->block, e->ix + 1, e->scratch);
    return mg_has(e->scratch, reg - 1) || mg_has(e->f->blocks[e->block].keep, reg - 1);
}

static void set_result(struct emit *e, LLVMTypeRef t, val room)
{
    const struct cpu_inst *in = e->in;
    val old = LLVMBuildLoad2(B, t, room, "");
    LLVMSetAlignment(old, 64);
    if (e->f->regs[in->d - 1].shape.varying) emit_set_vec(e, in->d, old, in->guard ? emit_active(e) : NULL);
}

/* As emu_mark_suspect. */
static void mark_suspect(struct emit *e)
{
    val w = LLVMBuildLoad2(B, e->t.ptr, emit_at(e, emit_frame(e), offsetof(struct emu_frame, w)), "");
    LLVMBuildStore(B, LLVMConstInt(e->t.i8, 1, 0), emit_at(e, w, offsetof(struct emu_warp, suspect)));
}

static bool is_uniform(struct emit *e, uint32_t reg)
{
    return emit_is_linear(e, reg) &&
           (cpu_is_constant(&e->f->regs[reg - 1]) || cpu_is_uniform(e->f->regs[reg - 1].shape));
}

static void emit_shared_atomic(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    val many = emit_address(e, in, true, 0), lanes = in->guard ? emit_active(e) : emit_lanes(e);
    val ok = emit_all_inside(e, many, k64(e, 0), e->arg.shared_bytes, 4, lanes), cached = e->lanes;
    if (e->f->static_shared >= 4) /* masked addresses are surely inside: that is seen from the constant */
        ok = LLVMBuildOr(B, emit_all_inside(e, many, k64(e, 0), k64(e, e->f->static_shared), 4, lanes), ok, "");
    LLVMBasicBlockRef next = emit_call_unless(e, ok);
    val at = emit_room(e, 0), value = NULL, uniform = NULL,
        result = in->d && emit_is_live_after(e, in->d) ? emit_room(e, 2) : NULL,
        places = LLVMBuildTrunc(B, many, e->t.v32, ""), values = NULL;
    if (is_uniform(e, in->s[1]))
        uniform = emit_scalar(e, in->s[1], 0, false);
    else
        values = emit_vec(e, in->s[1], false);
    if (lanes || result) {
        store_room(e, places, at);
        if (values) store_room(e, values, value = emit_room(e, 1));
    }
    if (!lanes && !result)
        all_lanes(e, places, values, uniform);
    else if (lanes) {
        struct lane_loop l;
        val mask = LLVMBuildBitCast(B, lanes, e->t.i32, "");
        LLVMBasicBlockRef some = emit_block(e, "some"), none = emit_block(e, "none");
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, mask, k32(e, 0), ""), some, none);
        LLVMPositionBuilderAtEnd(B, some);
        one_lane(e, emit_begin_lanes(e, &l, mask), at, value, uniform, result);
        emit_end_lanes(e, &l);
        LLVMBuildBr(B, none);
        LLVMPositionBuilderAtEnd(B, none);
    } else { /* four a turn */
        LLVMBasicBlockRef before = LLVMGetInsertBlock(B), head = emit_block(e, "lane"), on = emit_block(e, "lanes");
        LLVMBuildBr(B, head);
        LLVMPositionBuilderAtEnd(B, head);
        val i = LLVMBuildPhi(B, e->t.i32, ""), zero = k32(e, 0);
        LLVMAddIncoming(i, &zero, &before, 1);
        for (uint32_t k = 0; k < 4; k++) one_lane(e, LLVMBuildAdd(B, i, k32(e, k), ""), at, value, uniform, result);
        val step = LLVMBuildAdd(B, i, k32(e, 4), "");
        LLVMAddIncoming(i, &step, &head, 1);
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, step, k32(e, 32), ""), head, on);
        LLVMPositionBuilderAtEnd(B, on);
    }
    if (result) set_result(e, e->t.v32, result);
    if (in->waits) mark_suspect(e);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    e->lanes = cached;
}

/* ---- atomics on global memory ------------------------------------------------------------------------------ */

static LLVMAtomicRMWBinOp host_operation(const struct cpu_inst *in)
{
    bool sign = in->type == MG_TYPE_s32 || in->type == MG_TYPE_s64;
    switch ((enum emu_atom)in->sub) {
    case EMU_ATOM_ADD:
        return in->type == MG_TYPE_f32 || in->type == MG_TYPE_f64 ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
    case EMU_ATOM_MIN:
        return sign ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case EMU_ATOM_MAX:
        return sign ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case EMU_ATOM_AND:
        return LLVMAtomicRMWBinOpAnd;
    case EMU_ATOM_OR:
        return LLVMAtomicRMWBinOpOr;
    case EMU_ATOM_XOR:
        return LLVMAtomicRMWBinOpXor;
    default:
        return LLVMAtomicRMWBinOpXchg;
    }
}

/* The host's own atomic operation at a 64-bit address, sequentially consistent as the emulator's. */
static val change_global(struct emit *e, val at, val x)
{
    LLVMAtomicRMWBinOp op = host_operation(e->in);
    LLVMTypeRef word = LLVMTypeOf(x);
    if (op == LLVMAtomicRMWBinOpFAdd) x = LLVMBuildBitCast(B, x, e->in->bytes == 4 ? e->t.f32 : e->t.f64, "");
    val old = emit_program(e, LLVMBuildAtomicRMW(B, op, LLVMBuildIntToPtr(B, at, e->t.ptr, ""), x,
                                                 LLVMAtomicOrderingSequentiallyConsistent, 0));
    return op == LLVMAtomicRMWBinOpFAdd ? LLVMBuildBitCast(B, old, word, "") : old;
}

/* What one operation with all active lanes' values is done with; NULL: there is
 * none. */
static val all_as_one(struct emit *e, LLVMTypeRef t, val values, val uniform, val lanes)
{
    static const struct {
        LLVMAtomicRMWBinOp op;
        const char *name;
        uint64_t idle[2]; /* of 32 bits, of 64 */
    } ways[] = {{LLVMAtomicRMWBinOpAdd, "llvm.vector.reduce.add", {0, 0}},
                {LLVMAtomicRMWBinOpAnd, "llvm.vector.reduce.and", {UINT64_MAX, UINT64_MAX}},
                {LLVMAtomicRMWBinOpOr, "llvm.vector.reduce.or", {0, 0}},
                {LLVMAtomicRMWBinOpXor, "llvm.vector.reduce.xor", {0, 0}},
                {LLVMAtomicRMWBinOpMin, "llvm.vector.reduce.smin", {INT32_MAX, INT64_MAX}},
                {LLVMAtomicRMWBinOpMax, "llvm.vector.reduce.smax", {1ull << 31, 1ull << 63}},
                {LLVMAtomicRMWBinOpUMin, "llvm.vector.reduce.umin", {UINT64_MAX, UINT64_MAX}},
                {LLVMAtomicRMWBinOpUMax, "llvm.vector.reduce.umax", {0, 0}}};
    LLVMAtomicRMWBinOp op = host_operation(e->in);
    if (uniform && op == LLVMAtomicRMWBinOpAdd) {
        val mask = lanes ? LLVMBuildBitCast(B, lanes, e->t.i32, "") : k32(e, UINT32_MAX),
            n = emit_intrinsic(e, "llvm.ctpop", &e->t.i32, 1, &mask, 1);
        return LLVMBuildMul(B, uniform, LLVMBuildZExtOrBitCast(B, n, t, ""), "");
    }
    for (size_t k = 0; k < MG_COUNT_OF(ways); k++) {
        if (ways[k].op != op) continue;
        if (uniform && op != LLVMAtomicRMWBinOpXor) return uniform;
        if (uniform) values = emit_splat(e, uniform);
        LLVMTypeRef vt = LLVMTypeOf(values);
        val idle = emit_splat(e, LLVMConstInt(t, ways[k].idle[e->in->bytes == 8], 0));
        if (lanes) values = LLVMBuildSelect(B, lanes, values, idle, "");
        return emit_intrinsic(e, ways[k].name, &vt, 1, &values, 1);
    }
    return NULL;
}

/* Of inserted code: an operation that changes nothing, as most of the least and
 * the greatest so far, is left out. */
static void change_if_new(struct emit *e, val at, val x)
{
    LLVMAtomicRMWBinOp op = host_operation(e->in);
    if (!e->in->probe || op == LLVMAtomicRMWBinOpAdd || op == LLVMAtomicRMWBinOpXor) {
        change_global(e, at, x);
        return;
    }
    LLVMBasicBlockRef change = emit_block(e, "change"), on = emit_block(e, "changed");
    val old = emit_program(e, LLVMBuildLoad2(B, LLVMTypeOf(x), LLVMBuildIntToPtr(B, at, e->t.ptr, ""), ""));
    LLVMSetOrdering(old, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(old, e->in->bytes);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, combined(e, e->in, old, x), old, ""), change, on);
    LLVMPositionBuilderAtEnd(B, change);
    change_global(e, at, x);
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
}

/* Adds of all lanes to places in a row that begins at a multiple of 16 bytes: an exchange of 16 bytes takes a processor
 * hardly longer than one lane's add, and does two or four. values NULL: all add `uniform`. */
static void add_wide(struct emit *e, val base, val values, val uniform)
{
    unsigned bytes = e->in->bytes, n = 16 / bytes;
    bool real = host_operation(e->in) == LLVMAtomicRMWBinOpFAdd;
    LLVMTypeRef lane = real         ? bytes == 4 ? e->t.f32 : e->t.f64
                       : bytes == 4 ? e->t.i32
                                    : e->t.i64,
                part = LLVMVectorType(lane, n), wide = LLVMIntTypeInContext(e->c, 128);
    values = LLVMBuildBitCast(B, values ? values : emit_splat(e, uniform), LLVMVectorType(lane, 32), "");
    for (unsigned k = 0; k < 32; k += n) {
        val pick[4], p = LLVMBuildIntToPtr(B, LLVMBuildAdd(B, base, k64(e, (uint64_t)k * bytes), ""), e->t.ptr, "");
        for (unsigned i = 0; i < n; i++) pick[i] = k32(e, k + i);
        val x = LLVMBuildShuffleVector(B, values, LLVMGetUndef(LLVMTypeOf(values)), LLVMConstVector(pick, n), "");
        val first = emit_program(e, LLVMBuildLoad2(B, part, p, ""));
        LLVMSetVolatile(first, 1); /* others change it: torn or not, the exchange finds out */
        LLVMSetAlignment(first, 16);
        first = LLVMBuildBitCast(B, first, wide, "");
        LLVMBasicBlockRef before = LLVMGetInsertBlock(B), again = emit_block(e, "again"), on = emit_block(e, "added");
        LLVMBuildBr(B, again);
        LLVMPositionBuilderAtEnd(B, again);
        val old = LLVMBuildPhi(B, wide, ""), sum = LLVMBuildBitCast(B, old, part, "");
        sum = LLVMBuildBitCast(B, real ? LLVMBuildFAdd(B, sum, x, "") : LLVMBuildAdd(B, sum, x, ""), wide, "");
        val did = emit_program(e, LLVMBuildAtomicCmpXchg(B, p, old, sum, LLVMAtomicOrderingSequentiallyConsistent,
                                                         LLVMAtomicOrderingSequentiallyConsistent, 0));
        val found = LLVMBuildExtractValue(B, did, 0, "");
        LLVMAddIncoming(old, &first, &before, 1);
        LLVMAddIncoming(old, &found, &again, 1);
        LLVMBuildCondBr(B, LLVMBuildExtractValue(B, did, 1, ""), on, again);
        LLVMPositionBuilderAtEnd(B, on);
    }
}

/* The address register, where lanes' addresses are steps from lane 0's; NULL otherwise. */
static const struct cpu_reg *line_of(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    const struct cpu_reg *r = in->s[0] ? &e->f->regs[in->s[0] - 1] : NULL;
    return r && emit_is_linear(e, in->s[0]) && !r->shape.halves && !r->shape.tile && !in->base_w ? r : NULL;
}

/* Lane by lane, in order. */
static void change_each(struct emit *e, val many, val lanes, val result, val values, val uniform)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    if (!lanes && !result && host_operation(in) == LLVMAtomicRMWBinOpAdd) {
        const struct cpu_reg *line = line_of(e);
        val base = line ? emit_address(e, in, false, 0) : NULL;
        for (uint32_t k = 0; k < 32; k++) {
            val at = line ? LLVMBuildAdd(B, base, k64(e, (uint64_t)((int64_t)line->shape.stride * k)), "")
                          : LLVMBuildExtractElement(B, many, k32(e, k), "");
            change_global(e, at, uniform ? uniform : LLVMBuildExtractElement(B, values, k32(e, k), ""));
        }
        return;
    }
    val at = emit_room(e, 0), kept = values ? emit_room(e, 1) : NULL;
    store_room(e, many, at);
    if (values) store_room(e, values, kept);
    struct lane_loop l;
    val lane = emit_begin_lanes(e, &l, lanes ? LLVMBuildBitCast(B, lanes, e->t.i32, "") : k32(e, UINT32_MAX));
    val old = change_global(e, LLVMBuildLoad2(B, e->t.i64, emit_lane_of(e, e->t.i64, at, lane), ""),
                            uniform ? uniform : LLVMBuildLoad2(B, t, emit_lane_of(e, t, kept, lane), ""));
    if (result) LLVMBuildStore(B, old, emit_lane_of(e, t, result, lane));
    emit_end_lanes(e, &l);
}

/* One operation where all change one place and nobody asks what was there; rows
 * of 16 bytes at once; else lane by lane.
 */
static void change_lanes(struct emit *e, val many, val lanes, val result)
{
    const struct cpu_inst *in = e->in;
    LLVMAtomicRMWBinOp op = host_operation(in);
    val uniform = is_uniform(e, in->s[1]) ? emit_scalar(e, in->s[1], 0, false) : NULL,
        values = uniform ? NULL : emit_vec(e, in->s[1], false);
    val one = !result && (!in->s[0] || is_uniform(e, in->s[0]))
                  ? all_as_one(e, emit_mem_type(e, in->bytes), values, uniform, lanes)
                  : NULL;
    if (one) {
        change_if_new(e, emit_address(e, in, false, 0), one);
        return;
    }
    const struct cpu_reg *line = line_of(e);
    bool adds = !lanes && !result && (op == LLVMAtomicRMWBinOpAdd || op == LLVMAtomicRMWBinOpFAdd);
    if (!adds || !line || line->shape.stride != in->bytes || !emit_is(e, EMU_ISA_AVX2)) {
        change_each(e, many, lanes, result, values, uniform);
        return;
    }
    val base = emit_address(e, in, false, 0);
    LLVMBasicBlockRef wide = emit_block(e, "wide"), each = emit_block(e, "each"), on = emit_block(e, "added");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, base, k64(e, 15), ""), k64(e, 0), ""), wide, each);
    LLVMPositionBuilderAtEnd(B, wide);
    add_wide(e, base, values, uniform);
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, each);
    change_each(e, many, lanes, result, values, uniform);
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
}

static void emit_global_atomic(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    val many = emit_address(e, in, true, 0), lanes = in->guard ? emit_active(e) : emit_lanes(e), cached = e->lanes, lo,
        size;
    emit_bounds(e, in, &lo, &size);
    val ok = emit_all_inside(e, many, lo, size, in->bytes, lanes);
    LLVMBasicBlockRef next = emit_call_unless(e, ok);
    val result = in->d && emit_is_live_after(e, in->d) ? emit_room(e, 2) : NULL;
    LLVMBasicBlockRef none = lanes ? emit_block(e, "none") : NULL;
    if (lanes) { /* nobody's address has been looked at where nobody goes */
        LLVMBasicBlockRef some = emit_block(e, "some");
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, LLVMBuildBitCast(B, lanes, e->t.i32, ""), k32(e, 0), ""), some,
                        none);
        LLVMPositionBuilderAtEnd(B, some);
    }
    change_lanes(e, many, lanes, result);
    if (lanes) {
        LLVMBuildBr(B, none);
        LLVMPositionBuilderAtEnd(B, none);
    }
    if (result) set_result(e, in->bytes == 4 ? e->t.v32 : e->t.v64, result);
    if (in->waits) mark_suspect(e);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    e->lanes = cached;
}

void emit_atomic(struct emit *e)
{
    if (e->in->where == EMU_AT_SHARED)
        emit_shared_atomic(e);
    else
        emit_global_atomic(e);
}

/* ---- loads and stores of few lanes ---------------------------------------------------------------------------- */

/* Emits the access as a loop when there are FEW lanes, and leaves the builder where there are more.
 * Returns where both meet; NULL: no loop. t: the memory's element; value: of a store, in t. */
LLVMBasicBlockRef emit_few(struct emit *e, LLVMTypeRef t, const struct lane_addresses *at, val lanes, val value,
                           val *loaded)
{
    if (!lanes) return NULL;
    struct lane_loop l;
    LLVMBasicBlockRef few = emit_block(e, "few"), more = emit_block(e, "more"), next = emit_block(e, "accessed");
    LLVMTypeRef vt = LLVMVectorType(t, 32);
    val mask = LLVMBuildBitCast(B, lanes, e->t.i32, ""), narrow = at->index ? at->index : emit_narrow(e, at->many),
        addresses = narrow || at->many ? emit_room(e, 0) : NULL, values = value ? emit_room(e, 1) : NULL;
    val n = emit_intrinsic(e, "llvm.ctpop", &e->t.i32, 1, &mask, 1), less = LLVMBuildSub(B, n, k32(e, 1), "");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, less, k32(e, FEW), ""), few, more);
    LLVMPositionBuilderAtEnd(B, few);
    LLVMTypeRef word = narrow ? e->t.i32 : e->t.i64;
    if (addresses) store_room(e, narrow ? narrow : at->many, addresses);
    if (value) store_room(e, value, values);
    val lane = emit_begin_lanes(e, &l, mask), so_far = NULL;
    if (!value) { /* a vector that lanes are put into: reading back what they stored would wait for all of it */
        LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(l.head));
        so_far = LLVMBuildPhi(B, vt, "");
        LLVMPositionBuilderAtEnd(B, l.head);
    }
    val a = addresses ? LLVMBuildLoad2(B, word, emit_lane_of(e, word, addresses, lane), "") : NULL;
    if (a && !at->index)
        a = LLVMBuildZExt(B, a, e->t.i64, "");
    else if (!a)
        a = LLVMBuildAdd(B, at->first,
                         LLVMBuildMul(B, LLVMBuildZExt(B, lane, e->t.i64, ""), k64(e, (uint64_t)at->step), ""), "");
    val p = at->index ? emit_index_pointer(e, at, a) : emit_host_pointer(e, e->in, a);
    if (value)
        emit_single(e, LLVMBuildStore(B, LLVMBuildLoad2(B, t, emit_lane_of(e, t, values, lane), ""), p),
                    e->in->bytes * e->in->vec);
    else {
        val one = emit_lanes_of(e, LLVMBuildAnd(B, l.mask, LLVMBuildNeg(B, l.mask, ""), "")), none = LLVMConstNull(vt);
        *loaded = LLVMBuildSelect(
            B, one, emit_splat(e, emit_single(e, LLVMBuildLoad2(B, t, p, ""), e->in->bytes * e->in->vec)), so_far, "");
        LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
        LLVMAddIncoming(so_far, &none, &few, 1);
        LLVMAddIncoming(so_far, loaded, &here, 1);
    }
    emit_end_lanes(e, &l);
    e->room.few_end = LLVMGetInsertBlock(B);
    LLVMPositionBuilderAtEnd(B, more);
    return next;
}
