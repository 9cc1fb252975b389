/* What inserted code asks about a request (CPU_REQUEST). Where the distances between lanes' addresses are known, only
 * their place in a line is counted, and of some lanes, which: what they ask for is found when the worker is done
 * (device/cpu/tally.c). Anything else the emulator's function looks at. */
#include "device/cpu/plugin/emit.h"

#define B e->b

static const struct cpu_request *request_of(struct emit *e)
{
    return &e->f->tally.requests[e->f->tally.site_at[e->ix] - 1];
}

/* Where the first lane's address lies: in its line, or its word. */
static val place_of(struct emit *e, const struct cpu_request *r, val first)
{
    uint64_t bytes = e->in->bytes;
    if (r->n_places == 1) return k64(e, 0);
    val low = LLVMBuildAnd(B, first, k64(e, r->n_places * bytes - 1), "");
    return LLVMBuildLShr(B, low, k64(e, (uint64_t)__builtin_ctz((unsigned)bytes)), "");
}

static void count_place(struct emit *e, const struct cpu_request *r, val first)
{
    val ix = place_of(e, r, first), at = emit_at(e, e->counts, 8 * (uint64_t)r->count);
    emit_tally(e, LLVMBuildGEP2(B, e->t.i64, at, &ix, 1, ""), k64(e, 1));
}

struct way { /* code under a condition */
    LLVMBasicBlockRef out;
};

/* What follows runs where `is`, up to end_way. */
static struct way begin_way(struct emit *e, val is)
{
    struct way w = {emit_block(e, "")};
    LLVMBasicBlockRef in = emit_block(e, "request");
    LLVMBuildCondBr(B, is, in, w.out);
    LLVMPositionBuilderAtEnd(B, in);
    return w;
}

static void end_way(struct emit *e, struct way w)
{
    LLVMBuildBr(B, w.out);
    LLVMPositionBuilderAtEnd(B, w.out);
}

/* `is`: counted by the first lane's place; else the emulator looks. */
static void count_or_call(struct emit *e, const struct cpu_request *r, val is, val first)
{
    LLVMBasicBlockRef in = emit_block(e, "ordered"), other = emit_block(e, "any"), out = emit_block(e, "");
    LLVMBuildCondBr(B, is, in, other);
    LLVMPositionBuilderAtEnd(B, in);
    count_place(e, r, first);
    LLVMBuildBr(B, out);
    LLVMPositionBuilderAtEnd(B, other);
    emit_call(e);
    LLVMBuildBr(B, out);
    LLVMPositionBuilderAtEnd(B, out);
}

/* How far lane 16 is from lane 0, of a register of halves; *fits: in the key's bits. */
static val apart_of(struct emit *e, val first, val *fits)
{
    val far = LLVMBuildSub(B, emit_address(e, e->in, false, 1), first, ""), bits = k64(e, CPU_CASE_APART),
        key = LLVMBuildShl(B, far, bits, "");
    *fits = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAShr(B, key, bits, ""), far, "");
    return key;
}

/* Which of the cases: one beside the other for places that follow one another. */
static val case_of(struct emit *e, val key, val place)
{
    val which = LLVMBuildAnd(B, key, k64(e, ~(127ull << CPU_CASE_PLACE)), ""),
        mixed = LLVMBuildMul(B, which, k64(e, 0x9e3779b97f4a7c15), ""),
        ix = LLVMBuildAdd(B, LLVMBuildLShr(B, mixed, k64(e, 40), ""), place, "");
    ix = LLVMBuildAnd(B, ix, k64(e, CPU_CASES - 1), "");
    return LLVMBuildMul(B, ix, k64(e, sizeof(struct cpu_case)), "");
}

/* Lanes of a known shape: a case, or where there is no room for it the emulator looks. */
static void count_case(struct emit *e, const struct cpu_request *r, val lanes)
{
    struct way some = begin_way(e, LLVMBuildICmp(B, LLVMIntNE, lanes, k32(e, 0), ""));
    val first = emit_address(e, e->in, false, 0), place = place_of(e, r, first), near = NULL,
        key = LLVMBuildOr(B, LLVMBuildZExt(B, lanes, e->t.i64, ""), LLVMBuildShl(B, place, k64(e, CPU_CASE_PLACE), ""),
                          ""),
        from = emit_at(e, e->counts, 8 * (uint64_t)(r->count + r->n_places));
    if (e->f->regs[e->in->s[0] - 1].shape.halves) key = LLVMBuildOr(B, key, apart_of(e, first, &near), "");
    val ix = case_of(e, key, place), at = LLVMBuildGEP2(B, e->t.i8, from, &ix, 1, ""),
        is = emit_counted(e, LLVMBuildLoad2(B, e->t.i64, at, "")),
        fits = LLVMBuildOr(B, LLVMBuildICmp(B, LLVMIntEQ, is, key, ""), LLVMBuildICmp(B, LLVMIntEQ, is, k64(e, 0), ""),
                           "");
    if (near) fits = LLVMBuildAnd(B, fits, near, "");
    LLVMBasicBlockRef in = emit_block(e, "case"), other = emit_block(e, "any"), out = emit_block(e, "");
    LLVMBuildCondBr(B, fits, in, other);
    LLVMPositionBuilderAtEnd(B, in);
    emit_counted(e, LLVMBuildStore(B, key, at));
    emit_tally(e, emit_at(e, at, offsetof(struct cpu_case, n)), k64(e, 1));
    LLVMBuildBr(B, out);
    LLVMPositionBuilderAtEnd(B, other);
    emit_call(e);
    LLVMBuildBr(B, out);
    LLVMPositionBuilderAtEnd(B, out);
    end_way(e, some);
}

/* All lanes, anywhere: are they in order? */
static void count_many(struct emit *e, const struct cpu_request *r)
{
    val many = emit_address(e, e->in, true, 0), first = LLVMBuildExtractElement(B, many, k64(e, 0), ""),
        expected = LLVMBuildAdd(B, emit_splat(e, first), emit_iota(e, e->t.i64, e->in->bytes), ""),
        differ = LLVMBuildICmp(B, LLVMIntNE, many, expected, "");
    count_or_call(e, r, LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, differ, e->t.i32, ""), k32(e, 0), ""), first);
}

void emit_request(struct emit *e)
{
    const struct cpu_request *r = request_of(e);
    bool all = e->version == FULL && cpu_uniform_guard(e->f, e->in), placed = cpu_is_placed(e->f, e->in);
    if (placed && (!all || e->f->regs[e->in->s[0] - 1].shape.halves)) {
        count_case(e, r, emit_active_bits(e));
        return;
    }
    struct way w = {0};
    if (all && e->in->guard) w = begin_way(e, emit_guard_scalar(e));
    if (!all)
        emit_call(e);
    else if (placed)
        count_place(e, r, emit_address(e, e->in, false, 0));
    else
        count_many(e, r);
    if (w.out) end_way(e, w);
}
