/* Accesses that other workers may make at the same time: a lane's 8 or 16 bytes by one move (docs/schedule.md,
 * "Memory").
 *
 * LLVM may take an access apart, or do it twice, unless it is atomic or volatile. Atomic ones of up to 8 bytes may
 * still be moved and shared; 16 bytes are a volatile <2 x i64>, one aligned instruction. Shared memory is a CTA's, and
 * a CTA is one worker's.
 */
#include "device/cpu/plugin/emit.h"

#define B e->b

bool emit_is_single(const struct cpu_inst *in)
{
    return in->where == EMU_AT_GLOBAL && in->kind != CPU_PARAM;
}

val emit_single(struct emit *e, val access, unsigned bytes)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = LLVMIsALoadInst(access) ? LLVMTypeOf(access) : LLVMTypeOf(LLVMGetOperand(access, 0));
    emit_program(e, access);
    LLVMSetAlignment(access, bytes);
    if (!emit_is_single(in)) return access;
    bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    if (in->mode || (vector && in->vec > 1)) LLVMSetVolatile(access, 1);
    if (!vector) LLVMSetOrdering(access, LLVMAtomicOrderingUnordered);
    return access;
}

/* A lane's n elements of in->bytes are pieces of up to 16 bytes. */
struct pieces {
    unsigned bytes, n, each;
    LLVMTypeRef t, elements;
};
static struct pieces pieces_of(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct pieces p = {.bytes = MG_MIN((unsigned)in->bytes * in->vec, 16)};
    p.n = (unsigned)in->bytes * in->vec / p.bytes;
    p.each = in->vec / p.n;
    p.t = p.bytes == 16 ? LLVMVectorType(e->t.i64, 2) : emit_mem_type(e, p.bytes);
    p.elements = LLVMVectorType(emit_mem_type(e, in->bytes), p.each);
    return p;
}

void emit_lane_get(struct emit *e, val p, val *elements)
{
    struct pieces w = pieces_of(e);
    for (unsigned k = 0; k < w.n; k++) {
        val v = emit_single(e, LLVMBuildLoad2(B, w.t, emit_at(e, p, (uint64_t)k * w.bytes), ""), w.bytes);
        if (w.bytes == 16) LLVMSetVolatile(v, 1);
        v = LLVMBuildBitCast(B, v, w.elements, "");
        for (unsigned i = 0; i < w.each; i++) elements[k * w.each + i] = LLVMBuildExtractElement(B, v, k32(e, i), "");
    }
}

void emit_lane_put(struct emit *e, val p, const val *elements)
{
    struct pieces w = pieces_of(e);
    for (unsigned k = 0; k < w.n; k++) {
        val v = LLVMGetPoison(w.elements);
        for (unsigned i = 0; i < w.each; i++) v = LLVMBuildInsertElement(B, v, elements[k * w.each + i], k32(e, i), "");
        v = emit_single(e, LLVMBuildStore(B, LLVMBuildBitCast(B, v, w.t, ""), emit_at(e, p, (uint64_t)k * w.bytes)),
                        w.bytes);
        if (w.bytes == 16) LLVMSetVolatile(v, 1);
    }
}

/* ---- lanes anywhere ------------------------------------------------------------------------------------------ */

/* Room for 32 lanes of up to 32 bytes, in the frame of the compiled function. */
static val table(struct emit *e)
{
    if (e->room.table) return e->room.table;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B), first = LLVMGetEntryBasicBlock(e->fn);
    val at = LLVMGetFirstInstruction(first);
    if (at)
        LLVMPositionBuilderBefore(B, at);
    else
        LLVMPositionBuilderAtEnd(B, first);
    e->room.table = LLVMBuildAlloca(B, LLVMArrayType2(e->t.i64, 128), "");
    LLVMSetAlignment(e->room.table, 64);
    LLVMPositionBuilderAtEnd(B, here);
    return e->room.table;
}

/* Element k of each of n's lanes, or all of these together: lane by lane. */
static val element_of(struct emit *e, val lanes, unsigned k)
{
    unsigned n = e->in->vec;
    val pick[32];
    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i * n + k);
    return LLVMBuildShuffleVector(B, lanes, LLVMGetPoison(LLVMTypeOf(lanes)), LLVMConstVector(pick, 32), "");
}
static val joined(struct emit *e, const val *elements)
{
    unsigned n = e->in->vec;
    val pick[128], half[2] = {elements[0], elements[n - 1]};
    for (unsigned i = 0; i < 64; i++) pick[i] = k32(e, i);
    if (n == 4) {
        half[0] = LLVMBuildShuffleVector(B, elements[0], elements[1], LLVMConstVector(pick, 64), "");
        half[1] = LLVMBuildShuffleVector(B, elements[2], elements[3], LLVMConstVector(pick, 64), "");
    }
    for (unsigned i = 0; i < 32 * n; i++) pick[i] = k32(e, i / n + i % n * 32);
    return LLVMBuildShuffleVector(B, half[0], half[1], LLVMConstVector(pick, 32 * n), "");
}

static val copied(struct emit *e, val from)
{
    val v = LLVMBuildLoad2(B, LLVMVectorType(e->t.i64, 2), from, "");
    LLVMSetAlignment(v, 16);
    return v;
}

static void copy_lane(struct emit *e, val lane, val at)
{
    const struct cpu_inst *in = e->in;
    struct pieces w = pieces_of(e);
    LLVMTypeRef row = LLVMArrayType2(e->t.i8, (uint64_t)w.bytes * w.n);
    val mine = emit_lane_of(e, row, table(e), lane),
        a = LLVMBuildLoad2(B, e->t.i64, emit_lane_of(e, e->t.i64, at, lane), "");
    val p = LLVMBuildIntToPtr(B, a, e->t.ptr, "");
    for (unsigned k = 0; k < w.n; k++) {
        uint64_t off = (uint64_t)k * w.bytes;
        if (in->kind == CPU_LOAD) {
            val v = emit_single(e, LLVMBuildLoad2(B, w.t, emit_at(e, p, off), ""), 16);
            LLVMSetVolatile(v, 1);
            LLVMSetAlignment(LLVMBuildStore(B, v, emit_at(e, mine, off)), 16);
        } else
            LLVMSetVolatile(emit_single(e, LLVMBuildStore(B, copied(e, emit_at(e, mine, off)), emit_at(e, p, off)), 16),
                            1);
    }
}

void emit_lanes_apart(struct emit *e, val at, val *elements)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef all = LLVMVectorType(emit_mem_type(e, in->bytes), 32 * in->vec);
    val lanes = in->guard ? emit_active(e) : emit_lanes(e),
        mask = lanes ? LLVMBuildBitCast(B, lanes, e->t.i32, "") : k32(e, UINT32_MAX), room = emit_room(e, 0);
    LLVMBasicBlockRef some = emit_block(e, "some"), none = emit_block(e, "none");
    struct lane_loop l;
    LLVMSetAlignment(LLVMBuildStore(B, at, room), 64);
    if (in->kind == CPU_STORE) LLVMSetAlignment(LLVMBuildStore(B, joined(e, elements), table(e)), 64);
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, mask, k32(e, 0), ""), some, none);
    LLVMPositionBuilderAtEnd(B, some);
    copy_lane(e, emit_begin_lanes(e, &l, mask), room);
    emit_end_lanes(e, &l);
    LLVMBuildBr(B, none);
    LLVMPositionBuilderAtEnd(B, none);
    if (in->kind == CPU_STORE) return;
    val got = LLVMBuildLoad2(B, all, table(e), "");
    LLVMSetAlignment(got, 64);
    for (unsigned k = 0; k < in->vec; k++) elements[k] = element_of(e, got, k);
}
