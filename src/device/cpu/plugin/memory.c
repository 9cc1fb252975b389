/* Loads and stores.
 *
 * As in the emulator every access is checked against the allocation that the operation hit last
 * (shared memory: the CTA's size). What is not inside, or not aligned, is done by the emulator's own
 * function, which finds the right allocation or faults. Linear addresses are one or two wide
 * accesses; a load may fetch inactive lanes too, since all 32 lie inside. Lanes whose offsets follow from the block's
 * shape (rows) are runs of wide accesses; of lanes that a branch by thread numbers lets through (split.c) only these
 * are accessed; others go lane by lane. All these ways share struct access and its check.
 */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>
#include <string.h>

#define B e->b

/* ---- addresses -------------------------------------------------------------------------------------------- */

struct access {
    bool linear, halves, exact; /* exact: only active lanes were checked */
    int32_t stride;
    unsigned bytes, vec;
    bool sign;
    val at[2];    /* addresses (i64) of lanes 0 and 16 when linear */
    val p[2];     /* the same as host pointers */
    val lo, size; /* what may be accessed */
    val many;     /* <32 x i64> otherwise */
};

static bool is_wide(unsigned elem)
{
    return elem >= EMU_E_U8D && elem <= EMU_E_B64D;
}
static bool sign_extends(unsigned elem)
{
    return elem == EMU_E_S8W || elem == EMU_E_S8H || elem == EMU_E_S16W || elem == EMU_E_S8D || elem == EMU_E_S16D ||
           elem == EMU_E_S32D;
}

/* The program's address as 64 bits. */
val emit_address(struct emit *e, const struct cpu_inst *in, bool vec, int half)
{
    enum emu_class c = !in->s[0] ? EMU_D : (enum emu_class)e->f->regs[in->s[0] - 1].cls;
    val a = in->s[0] ? vec ? emit_vec(e, in->s[0], false) : emit_scalar(e, in->s[0], half, false)
                     : emit_int(e, EMU_D, 0, vec);
    bool narrow = in->where == EMU_AT_SHARED || c == EMU_W;
    if (c == EMU_D && narrow) a = LLVMBuildTrunc(B, a, emit_type(e, EMU_W, vec), "");
    a = LLVMBuildAdd(B, a, emit_int(e, narrow ? EMU_W : EMU_D, (uint64_t)in->off, vec), "");
    return narrow ? LLVMBuildZExt(B, a, emit_type(e, EMU_D, vec), "") : a;
}

struct bounds {
    val lo, size;
}; /* allocas; NULL: none */

static void load_bounds(struct emit *e, const struct cpu_inst *in, val *lo, val *size)
{
    val r = emit_at(e, e->arg.ranges, (uint64_t)in->cache * sizeof(struct emu_range));
    *lo = LLVMBuildLoad2(B, e->t.i64, emit_at(e, r, offsetof(struct emu_range, lo)), "");
    val hi = LLVMBuildLoad2(B, e->t.i64, emit_at(e, r, offsetof(struct emu_range, hi)), "");
    *size = in->kind == CPU_TEXEL ? hi : LLVMBuildSub(B, hi, *lo, "");
}

/* Only the operation itself changes what it may access; what another thread made of it since is no less right. */
void emit_look_up_bounds(struct emit *e)
{
    val lo, size;
    struct bounds *to = e->bounds ? &e->bounds[e->ix] : NULL;
    if (!to || !to->lo) return;
    load_bounds(e, e->in, &lo, &size);
    LLVMBuildStore(B, lo, to->lo);
    LLVMBuildStore(B, size, to->size);
}

static bool has_range(const struct cpu_inst *in)
{
    return (in->kind == CPU_LOAD || in->kind == CPU_STORE || in->kind == CPU_ATOM || in->kind == CPU_TEXEL) &&
           in->where == EMU_AT_GLOBAL;
}

void emit_keep_bounds(struct emit *e)
{
    enum { MOST = 32 }; /* more are not kept in registers */
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->f->n_insts; i++) n += has_range(&e->f->insts[i]);
    if (!n || n > MOST) return;
    e->bounds = mg_xcalloc(e->f->n_insts, sizeof *e->bounds);
    for (e->ix = 0; e->ix < e->f->n_insts; e->ix++) {
        e->in = &e->f->insts[e->ix];
        if (!has_range(e->in)) continue;
        e->bounds[e->ix].lo = LLVMBuildAlloca(B, e->t.i64, "");
        e->bounds[e->ix].size = LLVMBuildAlloca(B, e->t.i64, "");
        emit_look_up_bounds(e);
    }
}

void emit_bounds(struct emit *e, const struct cpu_inst *in, val *lo, val *size)
{
    const struct bounds *kept = e->bounds ? &e->bounds[in - e->f->insts] : NULL;
    if (in->where == EMU_AT_SHARED) {
        *lo = k64(e, 0);
        *size = e->arg.shared_bytes;
    } else if (kept && kept->lo) {
        *lo = LLVMBuildLoad2(B, e->t.i64, kept->lo, "");
        *size = LLVMBuildLoad2(B, e->t.i64, kept->size, "");
    } else
        load_bounds(e, in, lo, size);
}

/* [from, from + span) inside and aligned */
static val inside(struct emit *e, const struct access *a, val from, val span, unsigned align)
{
    val two[2] = {a->size, LLVMBuildSub(B, span, k64(e, 1), "")};
    val ok = LLVMBuildICmp(B, LLVMIntULT, LLVMBuildSub(B, from, a->lo, ""),
                           emit_intrinsic(e, "llvm.usub.sat", &e->t.i64, 1, two, 2), "");
    if (align > 1) {
        val low = LLVMBuildAnd(B, from, k64(e, align - 1), "");
        ok = LLVMBuildAnd(B, ok, LLVMBuildICmp(B, LLVMIntEQ, low, k64(e, 0), ""), "");
    }
    return ok;
}

/* The 32 bits that lanes' addresses of 64 come from; NULL: others. */
val emit_narrow(struct emit *e, val many)
{
    val from = many && LLVMIsAZExtInst(many) ? LLVMGetOperand(many, 0) : NULL;
    return from && LLVMTypeOf(from) == e->t.v32 ? from : NULL;
}

/* ... so many bytes from there on */
static val all_inside(struct emit *e, val many, val lo, val limit, uint64_t span, uint32_t bytes, val lanes)
{
    bool at_0 = LLVMIsAConstantInt(lo) && !LLVMConstIntGetZExtValue(lo); /* shared memory, of less than 4 GiB */
    val narrow = at_0 ? emit_narrow(e, many) : NULL, two[2] = {limit, k64(e, span - 1)},
        off = narrow ? narrow : LLVMBuildSub(B, many, emit_splat(e, lo), ""),
        most = emit_intrinsic(e, "llvm.usub.sat", &e->t.i64, 1, two, 2);
    enum emu_class c = narrow ? EMU_W : EMU_D;
    if (narrow) most = LLVMBuildTrunc(B, most, e->t.i32, "");
    val good = LLVMBuildICmp(B, LLVMIntULT, off, emit_splat(e, most), "");
    if (bytes > 1) {
        val low = LLVMBuildAnd(B, narrow ? narrow : many, emit_int(e, c, bytes - 1, true), "");
        good = LLVMBuildAnd(B, good, LLVMBuildICmp(B, LLVMIntEQ, low, emit_int(e, c, 0, true), ""), "");
    }
    val bad = LLVMBuildNot(B, good, "");
    if (lanes) bad = LLVMBuildAnd(B, bad, lanes, "");
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i32, ""), k32(e, 0), "");
}

val emit_all_inside(struct emit *e, val many, val lo, val limit, uint32_t bytes, val lanes)
{
    return all_inside(e, many, lo, limit, bytes, bytes, lanes);
}

val emit_host_pointer(struct emit *e, const struct cpu_inst *in, val at)
{
    if (in->where != EMU_AT_SHARED) return LLVMBuildIntToPtr(B, at, e->t.ptr, "");
    return LLVMBuildGEP2(B, e->t.i8, e->arg.shared, &at, 1, "");
}

LLVMTypeRef emit_mem_type(struct emit *e, unsigned bytes)
{
    return bytes == 1 ? e->t.i8 : bytes == 2 ? e->t.i16 : bytes == 4 ? e->t.i32 : e->t.i64;
}

/* From the memory's element to the register's lane. */
val emit_extended(struct emit *e, const struct cpu_inst *in, val v, bool vec)
{
    LLVMTypeRef to = emit_type(e, is_wide(in->elem) ? EMU_D : EMU_W, vec);
    if (in->elem == EMU_E_S8H) {
        LLVMTypeRef h = vec ? LLVMVectorType(e->t.i16, (unsigned)LLVMGetVectorSize(LLVMTypeOf(v))) : e->t.i16;
        v = LLVMBuildSExt(B, v, h, "");
        return LLVMBuildZExt(B, v, to, "");
    }
    if (in->bytes == (is_wide(in->elem) ? 8 : 4)) return v;
    return sign_extends(in->elem) ? LLVMBuildSExt(B, v, to, "") : LLVMBuildZExt(B, v, to, "");
}

static val load(struct emit *e, LLVMTypeRef t, val p, unsigned align)
{
    return emit_single(e, LLVMBuildLoad2(B, t, p, ""), align);
}

/* Are there loads and stores of some lanes in a row? Stores to shared memory can do without. */
static bool has_masked(struct emit *e, const struct cpu_inst *in)
{
    return emit_is(e, EMU_ISA_AVX512) || (emit_is(e, EMU_ISA_AVX2) && in->bytes >= 4);
}
static bool blends(struct emit *e, const struct cpu_inst *in)
{
    return in->kind == CPU_STORE && in->where == EMU_AT_SHARED && !emit_is(e, EMU_ISA_AVX512);
}

/* n lanes from p, element k of vec */
static val lanes_at(struct emit *e, const struct cpu_inst *in, val wide, unsigned n, unsigned k)
{
    val pick[32];
    if (in->vec == 1) return wide;
    for (unsigned i = 0; i < n; i++) pick[i] = k32(e, i * in->vec + k);
    return LLVMBuildShuffleVector(B, wide, LLVMGetPoison(LLVMTypeOf(wide)), LLVMConstVector(pick, n), "");
}

static void set_loaded(struct emit *e, uint32_t reg, val vec)
{
    emit_set_vec(e, reg, vec, e->in->guard ? emit_active(e) : NULL);
}

/* 16 lanes and 16 lanes */
static val both(struct emit *e, val lo, val hi)
{
    val pick[32];
    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i);
    return LLVMBuildShuffleVector(B, lo, hi, LLVMConstVector(pick, 32), "");
}

/* A masked access; LLVM 22 has no operand for the alignment, which stands at `align`. */
val emit_masked(struct emit *e, const char *name, LLVMTypeRef *types, val args[4], unsigned align)
{
#if LLVM_VERSION_MAJOR >= 22
    for (unsigned i = align; i < 3; i++) args[i] = args[i + 1];
    return emit_program(e, emit_intrinsic(e, name, types, 2, args, 3));
#else
    (void)align;
    return emit_program(e, emit_intrinsic(e, name, types, 2, args, 4));
#endif
}

/* Lanes in a row begin at a multiple of a lane. */
static unsigned row_align(const struct cpu_inst *in)
{
    return (unsigned)in->bytes * in->vec;
}

/* The elements at p, one lane's. */
static void load_lane(struct emit *e, val p, val *elements)
{
    const struct cpu_inst *in = e->in;
    if (emit_is_single(in))
        emit_lane_get(e, p, elements);
    else
        for (unsigned k = 0; k < in->vec; k++)
            elements[k] = load(e, emit_mem_type(e, in->bytes), emit_at(e, p, (uint64_t)k * in->bytes), in->bytes);
}

static void load_linear(struct emit *e, const struct access *a)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    const val *p = a->p;
    if (!a->stride) {
        val each[2][8];
        for (int h = 0; h < (a->halves ? 2 : 1); h++) load_lane(e, p[h], each[h]);
        for (unsigned k = 0; k < in->vec; k++) {
            uint32_t reg = in->list[k];
            if (!reg) continue;
            const struct cpu_reg *r = &e->f->regs[reg - 1];
            val s[2] = {NULL, NULL};
            for (int h = 0; h < (a->halves ? 2 : 1); h++) s[h] = emit_extended(e, in, each[h][k], false);
            if (r->shape.varying) {
                val v = emit_splat(e, s[0]);
                if (a->halves) {
                    val pick[32], hi = emit_splat(e, s[1]);
                    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i < 16 ? i : 32 + i);
                    v = LLVMBuildShuffleVector(B, v, hi, LLVMConstVector(pick, 32), "");
                }
                set_loaded(e, reg, v);
                continue;
            }
            val g = in->guard ? emit_guard_scalar(e) : NULL;
            emit_set_scalar(e, reg, 0, s[0], g);
            if (r->shape.halves) emit_set_scalar(e, reg, 1, a->halves ? s[1] : s[0], g);
        }
        return;
    }
    unsigned n = a->halves ? 16 : 32;
    val wide[2];
    if (emit_in_pieces(e, in)) {
        set_loaded(e, in->list[0], emit_load_pieces(e, UINT32_MAX));
        return;
    }
    if (a->exact) {
        LLVMTypeRef vt = LLVMVectorType(t, 32), types[2] = {vt, e->t.ptr};
        val args[4] = {p[0], k32(e, in->bytes), emit_lanes(e), LLVMConstNull(vt)};
        if (in->list[0])
            set_loaded(e, in->list[0], emit_extended(e, in, emit_masked(e, "llvm.masked.load", types, args, 1), true));
        return;
    }
    for (int h = 0; h < (a->halves ? 2 : 1); h++)
        wide[h] = load(e, LLVMVectorType(t, n * in->vec), p[h], row_align(in));
    for (unsigned k = 0; k < in->vec; k++) {
        if (!in->list[k]) continue;
        val v = lanes_at(e, in, wide[0], n, k);
        if (a->halves) v = both(e, v, lanes_at(e, in, wide[1], n, k));
        set_loaded(e, in->list[k], emit_extended(e, in, v, true));
    }
}

static val value(struct emit *e, uint32_t reg, unsigned bytes, bool vec, int half)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    bool lazy = vec && r->lazy && r->shape.varying;
    val v = vec ? emit_vec(e, reg, lazy) : emit_scalar(e, reg, half, false);
    if (lazy) v = emit_canon_seldom(e, v);
    LLVMTypeRef t = emit_mem_type(e, bytes), to = vec ? LLVMVectorType(t, 32) : t;
    return LLVMTypeOf(v) == to ? v : LLVMBuildTrunc(B, v, to, "");
}

static void masked_store(struct emit *e, val v, val p, unsigned align, val lanes)
{
    LLVMTypeRef types[2] = {LLVMTypeOf(v), e->t.ptr};
    if (!lanes) {
        emit_single(e, LLVMBuildStore(B, v, p), align);
        return;
    }
    val args[4] = {v, p, k32(e, align), lanes};
    emit_masked(e, "llvm.masked.store", types, args, 2);
}

static val half_of(struct emit *e, val v, int h)
{
    val pick[16];
    if (!v) return NULL;
    for (unsigned i = 0; i < 16; i++) pick[i] = k32(e, i + 16 * (unsigned)h);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, 16), "");
}

/* The last of the lanes in the mask, which is not 0. */
static val last_lane(struct emit *e, val mask)
{
    val args[2] = {mask, LLVMConstInt(e->t.i1, 1, 0)};
    return LLVMBuildSub(B, k32(e, 31), emit_intrinsic(e, "llvm.ctlz", &e->t.i32, 1, args, 2), "");
}

/* Of n lanes that all store at one place, the last active one's. mask: who is active, NULL: all */
static void store_last(struct emit *e, val v, unsigned first, unsigned n, val p, val mask)
{
    LLVMBasicBlockRef some = NULL, next = NULL;
    val last = k32(e, first + n - 1);
    if (mask) {
        val m = LLVMBuildAnd(B, mask, k32(e, ((1u << n) - 1) << first), "");
        some = emit_block(e, "some");
        next = emit_block(e, "none");
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntNE, m, k32(e, 0), ""), some, next);
        LLVMPositionBuilderAtEnd(B, some);
        last = last_lane(e, m);
    }
    emit_single(e, LLVMBuildStore(B, LLVMBuildExtractElement(B, v, last, ""), p), e->in->bytes);
    if (!mask) return;
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
}

/* Lanes in a row. Where they blend idle ones lie inside, too, and get what they had: nobody else is in a CTA's shared
 * memory. */
static void store_row(struct emit *e, val v, val p, val lanes)
{
    unsigned align = e->in->bytes;
    if (lanes && blends(e, e->in)) {
        v = LLVMBuildSelect(B, lanes, v, load(e, LLVMTypeOf(v), p, align), "");
        lanes = NULL;
    }
    masked_store(e, v, p, align, lanes);
}

static void store_linear(struct emit *e, const struct access *a)
{
    const struct cpu_inst *in = e->in;
    val lanes = in->guard ? emit_active(e) : emit_lanes(e);
    const val *p = a->p;
    if (!a->stride && a->halves) {
        val v = value(e, in->list[0], in->bytes, true, 0), mask = lanes ? emit_active_bits(e) : NULL;
        for (unsigned h = 0; h < 2; h++) store_last(e, v, 16 * h, 16, p[h], mask);
        return;
    }
    if (!a->stride) { /* the last lane wins */
        val last = last_lane(e, emit_active_bits(e)), each[8];
        for (unsigned k = 0; k < in->vec; k++) {
            const struct cpu_reg *r = &e->f->regs[in->list[k] - 1];
            bool flat = r->kind == CPU_REG_CONST || cpu_is_uniform(r->shape);
            each[k] = flat ? value(e, in->list[k], in->bytes, false, 0)
                           : LLVMBuildExtractElement(B, value(e, in->list[k], in->bytes, true, 0), last, "");
            if (!emit_is_single(in))
                emit_single(e, LLVMBuildStore(B, each[k], emit_at(e, p[0], (uint64_t)k * in->bytes)), in->bytes);
        }
        if (emit_is_single(in)) emit_lane_put(e, p[0], each);
        return;
    }
    if (a->halves) {
        val v = value(e, in->list[0], in->bytes, true, 0);
        for (int h = 0; h < 2; h++) store_row(e, half_of(e, v, h), p[h], half_of(e, lanes, h));
        return;
    }
    if (in->vec == 1) {
        store_row(e, value(e, in->list[0], in->bytes, true, 0), p[0], lanes);
        return;
    }
    /* elements of a lane lie together: interleave */
    unsigned n = in->vec;
    val parts[8], pick[128];
    for (unsigned k = 0; k < n; k++) parts[k] = value(e, in->list[k], in->bytes, true, 0);
    for (unsigned i = 0; i < 64; i++) pick[i] = k32(e, i);
    if (n == 2) {
        for (unsigned i = 0; i < 64; i++) pick[i] = k32(e, i / 2 + (i & 1) * 32);
        masked_store(e, LLVMBuildShuffleVector(B, parts[0], parts[1], LLVMConstVector(pick, 64), ""), p[0],
                     row_align(in), NULL);
        return;
    }
    val lo = LLVMBuildShuffleVector(B, parts[0], parts[1], LLVMConstVector(pick, 64), ""),
        hi = LLVMBuildShuffleVector(B, parts[2], parts[3], LLVMConstVector(pick, 64), "");
    for (unsigned i = 0; i < 128; i++) pick[i] = k32(e, i / 4 + (i & 3) * 32);
    masked_store(e, LLVMBuildShuffleVector(B, lo, hi, LLVMConstVector(pick, 128), ""), p[0], row_align(in), NULL);
}

/* Is there code for lanes that lie anywhere? AVX2 has some for loads by index. */
static bool can_gather(struct emit *e, const struct cpu_inst *in, bool indexed)
{
    bool avx2 = indexed && in->kind == CPU_LOAD && !e->f->slow_gathers;
    return emit_is(e, avx2 ? EMU_ISA_AVX2 : EMU_ISA_AVX512) && (in->bytes == 4 || in->bytes == 8);
}

/* Where the function has many accesses of lanes anywhere, gathers leave the processor more room to load ahead. */
static bool few_apart(const struct emit *e)
{
    enum { FEW_ACCESSES = 2 };
    unsigned n = 0;
    for (uint32_t i = 0; i < e->f->n_insts; i++) {
        const struct cpu_inst *in = &e->f->insts[i];
        n += has_range(in) && in->s[0] && e->f->regs[in->s[0] - 1].shape.varying && !cpu_in_rows(e->f, in);
    }
    return n <= FEW_ACCESSES;
}

/* Two elements of 4 bytes that are accessed as one of 8? */
static bool is_pair(const struct cpu_inst *in)
{
    return in->vec == 2 && in->bytes == 4 && emit_is_single(in);
}

/* Whole warps whose lanes lie anywhere, one lane after the other: with AVX2, which has no stores of that kind, and on
 * processors whose gathers take longer. Not in large functions, since it is much code. */
static bool one_by_one(struct emit *e, const struct cpu_inst *in, bool masked, bool indexed)
{
    enum { MOST_OPS = 1000 };
    return !masked && (in->vec == 1 || is_pair(in)) && e->f->n_insts <= MOST_OPS && emit_is(e, EMU_ISA_AVX2) &&
           (!can_gather(e, in, indexed) || (e->f->slow_gathers && few_apart(e)));
}

/* Two elements of 4 bytes as one of 8: of a load in, of a store out. */
static val pair(struct emit *e)
{
    val pick[64];
    for (unsigned i = 0; i < 64; i++) pick[i] = k32(e, i / 2 + (i & 1) * 32);
    val v = LLVMBuildShuffleVector(B, value(e, e->in->list[0], 4, true, 0), value(e, e->in->list[1], 4, true, 0),
                                   LLVMConstVector(pick, 64), "");
    return LLVMBuildBitCast(B, v, e->t.v64, "");
}
static val part(struct emit *e, val pairs, unsigned k)
{
    val pick[32];
    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, 2 * i + k);
    pairs = LLVMBuildBitCast(B, pairs, LLVMVectorType(e->t.i32, 64), "");
    return LLVMBuildShuffleVector(B, pairs, LLVMGetPoison(LLVMTypeOf(pairs)), LLVMConstVector(pick, 32), "");
}

static void set_gathered(struct emit *e, val loaded, bool paired)
{
    const struct cpu_inst *in = e->in;
    for (unsigned k = 0; k < in->vec; k++)
        if (in->list[k]) set_loaded(e, in->list[k], emit_extended(e, in, paired ? part(e, loaded, k) : loaded, true));
}

val emit_lanes_from(struct emit *e, val v, unsigned first, unsigned n)
{
    val pick[32];
    for (unsigned i = 0; i < n; i++) pick[i] = k32(e, first + i);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, n), "");
}

val emit_joined(struct emit *e, val *rows, unsigned n)
{
    for (; n > 1; n /= 2)
        for (unsigned k = 0; k < n / 2; k++) {
            unsigned size = 2 * LLVMGetVectorSize(LLVMTypeOf(rows[2 * k]));
            val pick[32];
            for (unsigned i = 0; i < size; i++) pick[i] = k32(e, i);
            rows[k] = LLVMBuildShuffleVector(B, rows[2 * k], rows[2 * k + 1], LLVMConstVector(pick, size), "");
        }
    return rows[0];
}

/* Where lane i is, of addresses that lie at `kept` */
static val pointer_of(struct emit *e, const struct lane_addresses *at, val kept, unsigned i)
{
    if (!kept) return emit_at(e, emit_host_pointer(e, e->in, at->first), (uint64_t)(at->step * i));
    LLVMTypeRef word = at->index || emit_narrow(e, at->many) ? e->t.i32 : e->t.i64;
    val a = LLVMBuildLoad2(B, word, emit_lane_of(e, word, kept, k32(e, i)), "");
    LLVMSetVolatile(a, 1); /* taken out of the vector it is slower */
    if (at->index) return emit_index_pointer(e, at, a);
    return emit_host_pointer(e, e->in, LLVMBuildZExt(B, a, e->t.i64, ""));
}

static void access_one_by_one(struct emit *e, const struct lane_addresses *at, bool paired)
{
    enum { EACH = 4 };
    const struct cpu_inst *in = e->in;
    unsigned bytes = paired ? 8 : in->bytes;
    LLVMTypeRef t = emit_mem_type(e, bytes);
    bool store = in->kind == CPU_STORE;
    val word = at->index ? at->index : emit_narrow(e, at->many), kept = word || at->many ? emit_room(e, 0) : NULL,
        rows[32 / EACH],
        v = !store   ? NULL
            : paired ? pair(e)
                     : value(e, in->list[0], bytes, true, 0);
    if (!store && !paired && !in->list[0]) return;
    e->room.apart = true;
    if (kept) LLVMSetAlignment(LLVMBuildStore(B, word ? word : at->many, kept), 64);
    for (unsigned i = 0; i < 32; i++) {
        val p = pointer_of(e, at, kept, i);
        if (store) {
            emit_single(e, LLVMBuildStore(B, LLVMBuildExtractElement(B, v, k32(e, i), ""), p), bytes);
            continue;
        }
        val one = emit_program(e, LLVMBuildLoad2(B, t, p, "")), *row = &rows[i / EACH];
        LLVMSetAlignment(one, bytes);
        if (i % EACH == 0) *row = LLVMGetPoison(LLVMVectorType(t, EACH));
        *row = LLVMBuildInsertElement(B, *row, one, k32(e, i % EACH), "");
    }
    if (!store) set_gathered(e, emit_joined(e, rows, 32 / EACH), paired);
}

/* Lanes of one element, or of two as one. */
static void gather_elements(struct emit *e, const struct lane_addresses *at, bool paired)
{
    const struct cpu_inst *in = e->in;
    unsigned bytes = paired ? 8 : in->bytes;
    LLVMTypeRef t = emit_mem_type(e, bytes), vt = LLVMVectorType(t, 32), types[2] = {vt, LLVMVectorType(e->t.ptr, 32)};
    val lanes = in->guard ? emit_active(e) : emit_lanes(e), loaded = NULL, p, v = NULL;
    bool store = in->kind == CPU_STORE;
    if (store) v = paired ? pair(e) : value(e, in->list[0], in->bytes, true, 0);
    LLVMBasicBlockRef both_end = NULL;
    if (store || paired || in->list[0]) both_end = emit_few(e, t, at, lanes, v, &loaded);
    if (both_end) { /* few lanes: done; the builder stands where there are many */
        LLVMBasicBlockRef many = LLVMGetInsertBlock(B);
        LLVMPositionBuilderAtEnd(B, e->room.few_end);
        if (loaded) set_gathered(e, loaded, paired);
        LLVMBuildBr(B, both_end);
        LLVMPositionBuilderAtEnd(B, many);
    }
    if (!lanes) lanes = emit_int(e, EMU_P, 1, true);
    if (at->index) {
        if (store || paired || in->list[0]) emit_gather_index(e, at, bytes, lanes, v, &loaded);
        if (loaded) set_gathered(e, loaded, paired);
        if (!both_end) return;
        LLVMBuildBr(B, both_end);
        LLVMPositionBuilderAtEnd(B, both_end);
        return;
    }
    if (!at->many) {
        val off = emit_iota(e, e->t.i64, at->step);
        p = LLVMBuildGEP2(B, e->t.i8, emit_host_pointer(e, in, at->first), &off, 1, "");
    } else if (in->where == EMU_AT_SHARED) { /* inside, so below 2 GiB: indices of 32 bits */
        val narrow = emit_narrow(e, at->many), off = narrow ? LLVMBuildSExt(B, narrow, e->t.v64, "") : at->many;
        p = LLVMBuildGEP2(B, e->t.i8, e->arg.shared, &off, 1, "");
    } else
        p = LLVMBuildIntToPtr(B, at->many, types[1], "");
    bool half = e->whole && emit_never_all(e) && e->f->region.tail <= 0xffff; /* CTAs of 16 threads and fewer */
    if (half) {
        p = half_of(e, p, 0), lanes = half_of(e, lanes, 0), v = half_of(e, v, 0);
        types[0] = vt = LLVMVectorType(t, 16), types[1] = LLVMVectorType(e->t.ptr, 16);
    }
    if (!store && (paired || in->list[0])) {
        val args[4] = {p, k32(e, bytes), lanes, LLVMGetPoison(vt)};
        val got = emit_masked(e, "llvm.masked.gather", types, args, 1);
        set_gathered(e, half ? both(e, got, LLVMGetPoison(vt)) : got, paired);
    } else if (store) {
        val args[4] = {v, p, k32(e, bytes), lanes};
        emit_masked(e, "llvm.masked.scatter", types, args, 2);
    }
    if (!both_end) return;
    LLVMBuildBr(B, both_end);
    LLVMPositionBuilderAtEnd(B, both_end);
}

/* Several elements a lane in the CTA's own memory: one after the other. */
static void gather_shared(struct emit *e, val at)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef vt = LLVMVectorType(emit_mem_type(e, in->bytes), 32), types[2] = {vt, LLVMVectorType(e->t.ptr, 32)};
    val lanes = in->guard ? emit_active(e) : emit_lanes(e);
    if (!lanes) lanes = emit_int(e, EMU_P, 1, true);
    for (unsigned k = 0; k < in->vec; k++) {
        val off = k64(e, (uint64_t)k * in->bytes), p = LLVMBuildGEP2(B, e->t.i8, e->arg.shared, &at, 1, "");
        if (k) p = LLVMBuildGEP2(B, e->t.i8, p, &off, 1, "");
        if (in->kind == CPU_LOAD) {
            val args[4] = {p, k32(e, in->bytes), lanes, LLVMGetPoison(vt)};
            if (in->list[k])
                set_loaded(e, in->list[k],
                           emit_extended(e, in, emit_masked(e, "llvm.masked.gather", types, args, 1), true));
        } else {
            val args[4] = {value(e, in->list[k], in->bytes, true, 0), p, k32(e, in->bytes), lanes};
            emit_masked(e, "llvm.masked.scatter", types, args, 2);
        }
    }
}

/* rare: it is not worth much code */
static void gather(struct emit *e, const struct lane_addresses *at, bool rare)
{
    const struct cpu_inst *in = e->in;
    val each[8];
    if (!rare && one_by_one(e, in, e->version == PART || in->guard, at->index))
        access_one_by_one(e, at, in->vec == 2);
    else if (in->vec == 1)
        gather_elements(e, at, false);
    else if (!emit_is_single(in))
        gather_shared(e, at->many);
    else if (is_pair(in))
        gather_elements(e, at, true);
    else {
        for (unsigned k = 0; k < in->vec && in->kind == CPU_STORE; k++)
            each[k] = value(e, in->list[k], in->bytes, true, 0);
        emit_lanes_apart(e, at->many, each);
        for (unsigned k = 0; k < in->vec && in->kind == CPU_LOAD; k++)
            if (in->list[k]) set_loaded(e, in->list[k], emit_extended(e, in, each[k], true));
    }
}

/* ---- rows of lanes (cpu_reg.row) --------------------------------------------------------------------------------- */

/* Are all lanes where the first of their row says? at: their registers */
static val rows_hold(struct emit *e, val at, unsigned row, unsigned step)
{
    val pick[32], off[32];
    LLVMTypeRef t = LLVMGetElementType(LLVMTypeOf(at));
    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i - i % row), off[i] = LLVMConstInt(t, i % row * step, 0);
    val first = LLVMBuildShuffleVector(B, at, LLVMGetPoison(LLVMTypeOf(at)), LLVMConstVector(pick, 32), "");
    val bad = LLVMBuildICmp(B, LLVMIntNE, at, LLVMBuildAdd(B, first, LLVMConstVector(off, 32), ""), "");
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i32, ""), k32(e, 0), "");
}

/* The address that the first lane of each row has, or would have if it were active: told from one that is, since
 * compilers clamp indices where nobody reads them. */
static void find_row_bases(struct emit *e, val at, unsigned row, unsigned step, val lanes, val *bases)
{
    val bits = lanes && row >= 16 ? LLVMBuildBitCast(B, lanes, e->t.i32, "") : NULL;
    for (unsigned r = 0; r < 32 / row; r++) {
        if (!bits) {
            bases[r] = LLVMBuildExtractElement(B, at, k32(e, r * row), "");
            continue;
        }
        val args[2] = {
            LLVMBuildOr(B, r ? LLVMBuildLShr(B, bits, k32(e, r * row), "") : bits, k32(e, 1u << (row - 1)), ""),
            LLVMConstInt(e->t.i1, 1, 0)};
        val one = emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2),
            its = LLVMBuildExtractElement(B, at, LLVMBuildAdd(B, one, k32(e, r * row), ""), "");
        bases[r] = LLVMBuildSub(B, its, LLVMBuildMul(B, LLVMBuildZExt(B, one, e->t.i64, ""), k64(e, step), ""), "");
    }
}

/* Are all active lanes where the bases of their rows say? */
static val rows_follow(struct emit *e, val at, unsigned row, unsigned step, val lanes, const val *bases)
{
    val narrow = emit_narrow(e, at), pick[32], off[32];
    LLVMTypeRef t = narrow ? e->t.i32 : e->t.i64;
    val v = LLVMGetPoison(LLVMVectorType(t, 32 / row));
    if (narrow) at = narrow;
    for (unsigned r = 0; r < 32 / row; r++)
        v = LLVMBuildInsertElement(B, v, narrow ? LLVMBuildTrunc(B, bases[r], t, "") : bases[r], k32(e, r), "");
    for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i / row), off[i] = LLVMConstInt(t, i % row * step, 0);
    v = LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, 32), "");
    val bad = LLVMBuildICmp(B, LLVMIntNE, at, LLVMBuildAdd(B, v, LLVMConstVector(off, 32), ""), "");
    if (lanes) bad = LLVMBuildAnd(B, bad, lanes, "");
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i32, ""), k32(e, 0), "");
}

/* A row's lanes from one place, in its first lane's element; a row without active lanes may lie anywhere. */
static val load_row_flat(struct emit *e, LLVMTypeRef t, val p, val lanes)
{
    unsigned bytes = e->in->bytes;
    if (lanes) {
        unsigned n = LLVMGetVectorSize(LLVMTypeOf(lanes));
        val some = LLVMBuildICmp(B, LLVMIntNE, LLVMBuildBitCast(B, lanes, LLVMIntTypeInContext(e->c, n), ""),
                                 LLVMConstNull(LLVMIntTypeInContext(e->c, n)), "");
        p = LLVMBuildSelect(B, some, p, e->call, "");
    }
    return load(e, t, p, bytes);
}

static val splat_row(struct emit *e, val one, unsigned n)
{
    LLVMTypeRef vt = LLVMVectorType(LLVMTypeOf(one), n);
    val v = LLVMBuildInsertElement(B, LLVMGetPoison(vt), one, k32(e, 0), "");
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(vt), LLVMConstNull(LLVMVectorType(e->t.i32, n)), "");
}

static val load_row(struct emit *e, LLVMTypeRef vt, val p, val lanes)
{
    unsigned bytes = e->in->bytes;
    if (!lanes) return load(e, vt, p, bytes);
    LLVMTypeRef types[2] = {vt, e->t.ptr};
    val args[4] = {p, k32(e, bytes), lanes, LLVMConstNull(vt)};
    return emit_masked(e, "llvm.masked.load", types, args, 1);
}

/* bases: addresses of the rows' first lanes, from which the access is `off` bytes away */
static void access_rows(struct emit *e, const val *bases, int64_t off, unsigned row, bool flat, val lanes)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes), vt = LLVMVectorType(t, row);
    bool store = in->kind == CPU_STORE;
    val rows[8], each = LLVMGetPoison(LLVMVectorType(t, 32 / row)), v = NULL;
    if (store) v = value(e, in->list[0], in->bytes, true, 0);
    for (unsigned r = 0; r < 32 / row && in->list[0]; r++) {
        val p = emit_at(e, emit_host_pointer(e, in, bases[r]), (uint64_t)off),
            some = lanes ? emit_lanes_from(e, lanes, r * row, row) : NULL;
        if (store)
            masked_store(e, emit_lanes_from(e, v, r * row, row), p, in->bytes, some);
        else if (flat)
            each = LLVMBuildInsertElement(B, each, load_row_flat(e, t, p, some), k32(e, r), "");
        else
            rows[r] = load_row(e, vt, p, some);
    }
    if (store || !in->list[0]) return;
    if (flat) {
        val pick[32];
        for (unsigned i = 0; i < 32; i++) pick[i] = k32(e, i / row);
        v = LLVMBuildShuffleVector(B, each, LLVMGetPoison(LLVMTypeOf(each)), LLVMConstVector(pick, 32), "");
    } else
        v = emit_joined(e, rows, 32 / row);
    set_loaded(e, in->list[0], emit_extended(e, in, v, true));
}

static void load_param(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    for (unsigned k = 0; k < in->vec; k++) {
        if (!in->list[k]) continue;
        val v = LLVMBuildLoad2(B, emit_mem_type(e, in->bytes),
                               emit_at(e, e->arg.params, (uint64_t)in->off + (uint64_t)k * in->bytes), "");
        LLVMSetMetadata(v, e->alias.invariant, e->alias.nothing);
        LLVMSetAlignment(v, 1);
        v = emit_extended(e, in, v, false);
        const struct cpu_reg *r = &e->f->regs[in->list[k] - 1];
        if (r->shape.varying)
            set_loaded(e, in->list[k], emit_splat(e, v));
        else
            for (int h = 0; h < (r->shape.halves ? 2 : 1); h++)
                emit_set_scalar(e, in->list[k], h, v, in->guard ? emit_guard_scalar(e) : NULL);
    }
}

/* Shape of an access and what kind of code it gets. */
struct plan {
    bool known, linear, flat; /* flat: the lanes of a row lie at one place */
    bool strided;             /* lane by lane the same distance, another one than linear has */
    unsigned row;             /* lanes that are likely to lie in rows of so many; 0: no */
    unsigned run;             /* of a tile: lanes that lie in a row, or at one place; 0: no */
    const int32_t *tile;
    struct cpu_shape s;
    uint32_t size;
};

/* Lanes so near each other that all memory between them is loaded: how many elements from one to the next? 0: no */
static unsigned takes_apart(const struct cpu_inst *in, const struct plan *p, bool masked)
{
    enum { MOST = 8 };
    unsigned n = p->s.stride > 0 ? (unsigned)p->s.stride / p->size : 0;
    return in->kind == CPU_LOAD && !masked && (in->bytes == 4 || in->bytes == 8) && n <= MOST ? n : 0;
}

static bool is_flat_run(const int32_t *tile, unsigned from)
{
    return tile[from] == tile[from + 1];
}

/* How many lanes of a tile lie in a row, or at one place, in all parts of it? 0: too few */
static unsigned run_of(const struct cpu_inst *in, const int32_t *tile)
{
    for (unsigned n = 16; n >= 4; n /= 2) {
        bool good = true;
        for (unsigned i = 0; i < 32 && good; i += n) {
            int32_t step = is_flat_run(tile, i) ? 0 : in->bytes;
            good = tile[i] % in->bytes == 0;
            for (unsigned k = 1; k < n; k++) good &= tile[i + k] - tile[i + k - 1] == step;
        }
        if (good) return n;
    }
    return 0;
}

static struct plan plan_of(struct emit *e, const struct cpu_inst *in, int version)
{
    struct plan p = {.size = (uint32_t)in->bytes * in->vec, .known = in->where != EMU_AT_LOCAL};
    bool store = in->kind == CPU_STORE, masked = version == PART || in->guard;
    if (in->s[0] && e->f->regs[in->s[0] - 1].kind != CPU_REG_CONST) p.s = e->f->regs[in->s[0] - 1].shape;
    bool scatters = p.s.halves && in->vec > 1;
    p.linear = !p.s.varying && !p.s.tile && (!p.s.stride || p.s.stride == (int32_t)p.size) && !(store && scatters) &&
               !(p.s.stride && p.s.halves && in->vec > 4);
    if (in->vec == 3 || in->vec > 4) p.known = p.linear && !p.s.stride;
    if (store && p.linear && p.s.stride && masked && (in->vec > 1 || !(has_masked(e, in) || blends(e, in))))
        p.linear = false;
    p.row = cpu_in_rows(e->f, in) ? e->f->regs[in->s[0] - 1].row : 0;
    p.flat = p.row && !e->f->regs[in->s[0] - 1].row_step;
    p.strided = !p.linear && !p.row && !p.s.varying && !p.s.halves && !p.s.tile && in->vec == 1 && p.known &&
                p.s.stride % (int32_t)p.size == 0;
    bool wide = in->where == EMU_AT_SHARED || (p.s.tile && e->f->regs[in->s[0] - 1].cls == EMU_D);
    if (p.s.tile) p.tile = e->f->tiles[p.s.tile - 1];
    if (p.s.tile && wide && in->vec == 1 && p.known && emit_is(e, EMU_ISA_AVX2) && (!masked || has_masked(e, in)))
        p.run = run_of(in, p.tile);
    if (!p.linear && !p.row && !p.run && !can_gather(e, in, false) && !one_by_one(e, in, masked, false) &&
        !(p.strided && takes_apart(in, &p, masked)))
        p.known = false;
    return p;
}

/* A tile in rows of 8 whose places in shared memory thread numbers and constants alone tell, in CTAs of few warps: what
 * they have stored is not yet in the cache (stored.c). false: it is none */
static bool load_as_stored(struct emit *e, const struct plan *plan, val p)
{
    enum { FEW_WARPS = 4, ROW = 8 };
    const struct cpu_inst *in = e->in;
    const struct cpu_reg *r = in->s[0] ? &e->f->regs[in->s[0] - 1] : NULL;
    int64_t place[EMU_LANES / ROW];
    val at[EMU_LANES / ROW], rows[2];
    if (!e->whole || !emit_is(e, EMU_ISA_AVX512) || e->f->region.n_warps > FEW_WARPS || in->kind != CPU_LOAD ||
        in->where != EMU_AT_SHARED || in->space == MG_SPACE_generic || in->bytes != 4 || plan->run != ROW || !r ||
        r->kind != CPU_REG_PLAIN || r->known || !r->fixed || !in->list[0])
        return false;
    for (unsigned k = 0; k < EMU_LANES / ROW; k++) {
        int32_t off = plan->tile[k * ROW];
        if (is_flat_run(plan->tile, k * ROW)) return false;
        at[k] = emit_at(e, p, (uint64_t)(int64_t)off);
        place[k] = (int32_t)r->base[0] + in->off + off;
    }
    for (unsigned k = 0; k < 2; k++) rows[k] = emit_load_as_stored(e, at + 2 * k, place + 2 * k, 2, r->step, ROW);
    set_loaded(e, in->list[0], emit_extended(e, in, emit_joined(e, rows, 2), true));
    return true;
}

/* Runs of a tile whose base is p. sure: idle lanes lie inside, too */
static void access_runs(struct emit *e, const struct plan *plan, val p, bool sure)
{
    const struct cpu_inst *in = e->in;
    unsigned n = plan->run;
    LLVMTypeRef t = emit_mem_type(e, in->bytes), vt = LLVMVectorType(t, n);
    bool store = in->kind == CPU_STORE;
    if (sure && load_as_stored(e, plan, p)) return;
    val lanes = sure && !store ? NULL : in->guard ? emit_active(e) : emit_lanes(e);
    val rows[8], v = store ? value(e, in->list[0], in->bytes, true, 0) : NULL,
                 bits = lanes ? emit_active_bits(e) : NULL;
    for (unsigned r = 0; r < 32 / n && in->list[0]; r++) {
        const int32_t *off = plan->tile + r * n;
        val at = emit_at(e, p, (uint64_t)(int64_t)*off), some = lanes ? emit_lanes_from(e, lanes, r * n, n) : NULL;
        unsigned same = r;
        if (store) emit_ahead_row(e, at);
        for (unsigned k = 0; k < r && !some; k++)
            if (same == r && !memcmp(plan->tile + k * n, off, n * sizeof *off)) same = k;
        if (store && is_flat_run(plan->tile, r * n))
            store_last(e, v, r * n, n, at, bits);
        else if (store && sure)
            store_row(e, emit_lanes_from(e, v, r * n, n), at, some);
        else if (store)
            masked_store(e, emit_lanes_from(e, v, r * n, n), at, in->bytes, some);
        else if (same < r)
            rows[r] = rows[same];
        else if (is_flat_run(plan->tile, r * n))
            rows[r] = splat_row(e, load_row_flat(e, t, at, some), n);
        else
            rows[r] = load_row(e, vt, at, some);
    }
    if (!store && in->list[0]) set_loaded(e, in->list[0], emit_extended(e, in, emit_joined(e, rows, 32 / n), true));
}

/* Do the (active) lanes of a tile lie inside? Idle ones of shared memory often do not: there each is looked at. */
static val runs_inside(struct emit *e, const struct plan *p, const struct access *a, val lanes)
{
    const struct cpu_inst *in = e->in;
    bool shared = in->where == EMU_AT_SHARED;
    int64_t least, most;
    val all = NULL;
    cpu_lane_span(e->f, p->s, UINT32_MAX, &least, &most);
    if (!lanes || !shared)
        all = inside(e, a, LLVMBuildAdd(B, emit_address(e, in, false, 0), k64(e, (uint64_t)least), ""),
                     k64(e, (uint64_t)(most - least) + p->size), p->size);
    if (!lanes) return all;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(B), look = emit_block(e, "look"), on = emit_block(e, "looked");
    if (all)
        LLVMBuildCondBr(B, all, on, look);
    else
        LLVMBuildBr(B, look);
    LLVMPositionBuilderAtEnd(B, look);
    val each = emit_all_inside(e, emit_address(e, in, true, 0), a->lo, a->size, p->size, lanes),
        yes = LLVMConstInt(e->t.i1, 1, 0);
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
    val ok = LLVMBuildPhi(B, e->t.i1, "");
    if (all) LLVMAddIncoming(ok, &yes, &before, 1);
    LLVMAddIncoming(ok, &each, &look, 1);
    return ok;
}

/* Do the active lanes of a row that is blended lie inside, and the others within reach? */
static val blend_inside(struct emit *e, const struct access *a, unsigned size)
{
    val bits = emit_active_bits(e), args[2] = {bits, LLVMConstInt(e->t.i1, 0, 0)};
    val first = LLVMBuildZExt(B, emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2), e->t.i64, "");
    val behind = LLVMBuildZExt(B, emit_intrinsic(e, "llvm.ctlz", &e->t.i32, 1, args, 2), e->t.i64, "");
    val n = LLVMBuildSub(B, k64(e, EMU_LANES), LLVMBuildAdd(B, first, behind, ""), "");
    val from = LLVMBuildAdd(B, a->at[0], LLVMBuildMul(B, first, k64(e, size), ""), "");
    val good = inside(e, a, from, LLVMBuildMul(B, n, k64(e, size), ""), size);
    good = LLVMBuildOr(B, good, LLVMBuildICmp(B, LLVMIntEQ, bits, k32(e, 0), ""), "");
    val last = LLVMBuildAdd(B, a->size, k64(e, EMU_SHARED_SLACK - (uint64_t)size * EMU_LANES), "");
    return LLVMBuildAnd(B, good, LLVMBuildICmp(B, LLVMIntULE, a->at[0], last, ""), "");
}

/* ---- lanes that are known (split.c) -------------------------------------------------------------------------- */

enum { MOST_RUNS = 4, LONGEST_RUN = 16 };
struct run {
    unsigned first, n;
};

/* Known lanes as runs of such as lie one behind the other; how many these are. 0: too many */
static unsigned known_runs(struct emit *e, uint32_t lanes, struct run *runs)
{
    const struct cpu_inst *in = e->in;
    struct cpu_shape s = e->f->regs[in->s[0] - 1].shape;
    unsigned n = 0;
    for (unsigned i = 0; i < EMU_LANES; i++) {
        if (!(lanes >> i & 1)) continue;
        if (i && lanes >> (i - 1) & 1 && cpu_lane_offset(e->f, s, i) - cpu_lane_offset(e->f, s, i - 1) == in->bytes) {
            if (++runs[n - 1].n > LONGEST_RUN) return 0;
            continue;
        }
        if (n == MOST_RUNS) return 0;
        runs[n++] = (struct run){i, 1};
    }
    return n;
}

/* The lanes that the access is made for, if they are those that run; 0: it is made for any. */
static uint32_t known_lanes(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    const struct cpu_reg *r = in->s[0] ? &e->f->regs[in->s[0] - 1] : NULL;
    uint32_t lanes = e->whole && e->version == PART ? e->f->blocks[e->block].few : 0;
    bool wide = in->where == EMU_AT_SHARED || (in->where == EMU_AT_GLOBAL && r && r->cls == EMU_D);
    if (!lanes || !r || !wide || r->kind != CPU_REG_PLAIN || r->known || r->shape.varying || r->shape.halves ||
        cpu_is_uniform(r->shape) || in->guard || in->vec > 1 || in->space == MG_SPACE_generic || !in->list[0])
        return 0;
    if (emit_in_pieces(e, in)) return lanes;
    return known_runs(e, lanes, (struct run[MOST_RUNS]){0}) ? lanes : 0;
}

/* Loads or stores the lanes of one run; loaded ones come in front of the others in `v`. */
static val access_known_run(struct emit *e, struct run r, val p, val v)
{
    const struct cpu_inst *in = e->in;
    LLVMTypeRef t = emit_mem_type(e, in->bytes);
    val pick[EMU_LANES], got;
    p = emit_at(e, p, (uint64_t)cpu_lane_offset(e->f, e->f->regs[in->s[0] - 1].shape, r.first));
    if (in->kind == CPU_STORE) {
        val its = r.n > 1 ? emit_lanes_from(e, v, r.first, r.n) : LLVMBuildExtractElement(B, v, k32(e, r.first), "");
        masked_store(e, its, p, in->bytes, NULL);
        return v;
    }
    if (r.n == 1) return LLVMBuildInsertElement(B, v, load(e, t, p, in->bytes), k32(e, r.first), "");
    got = load(e, LLVMVectorType(t, r.n), p, in->bytes);
    for (unsigned i = 0; i < EMU_LANES; i++)
        pick[i] = i >= r.first && i < r.first + r.n ? k32(e, i - r.first) : LLVMGetPoison(e->t.i32);
    got = LLVMBuildShuffleVector(B, got, LLVMGetPoison(LLVMTypeOf(got)), LLVMConstVector(pick, EMU_LANES), "");
    if (LLVMIsPoison(v)) return got;
    for (unsigned i = 0; i < EMU_LANES; i++) pick[i] = k32(e, i >= r.first && i < r.first + r.n ? i : EMU_LANES + i);
    return LLVMBuildShuffleVector(B, got, v, LLVMConstVector(pick, EMU_LANES), "");
}

static void access_known(struct emit *e, uint32_t lanes, val p)
{
    const struct cpu_inst *in = e->in;
    bool store = in->kind == CPU_STORE;
    struct run runs[MOST_RUNS];
    unsigned n = known_runs(e, lanes, runs);
    if (emit_in_pieces(e, in) && !(n == 1 && runs[0].n > 1)) {
        if (store)
            emit_store_pieces(e, value(e, in->list[0], in->bytes, true, 0), lanes);
        else
            set_loaded(e, in->list[0], LLVMBuildFreeze(B, emit_load_pieces(e, lanes), ""));
        return;
    }
    val v = store ? value(e, in->list[0], in->bytes, true, 0)
                  : LLVMGetPoison(LLVMVectorType(emit_mem_type(e, in->bytes), EMU_LANES));
    for (unsigned k = 0; k < n; k++) v = access_known_run(e, runs[k], p, v);
    if (!store) set_loaded(e, in->list[0], emit_extended(e, in, LLVMBuildFreeze(B, v, ""), true)); /* idle lanes: any */
}

/* May accesses a and b share one check? The same register, place and size, at multiples of the size. */
static bool shares(const struct cpu_inst *a, const struct cpu_inst *b)
{
    return a->kind == b->kind && a->s[0] == b->s[0] && a->where == b->where && a->space == b->space &&
           a->bytes == b->bytes && a->vec == b->vec && !b->guard && a->base_w == b->base_w && a->probe == b->probe &&
           (b->off - a->off) % (int64_t)((uint32_t)a->bytes * a->vec) == 0 && llabs(b->off - a->off) < 1 << 20;
}

/* Linear accesses without a guard have no code for what lies elsewhere: the emulator does it, and what
 * follows. Some lanes only: where there are masked loads and stores, so that idle lanes may lie anywhere. */
static bool leaves_whole(struct emit *e, const struct cpu_inst *in)
{
    struct plan p = plan_of(e, in, e->version);
    if (p.row)
        return e->version == FULL && !in->guard && in->space != MG_SPACE_generic && e->f->regs[in->s[0] - 1].row_sure;
    if (p.run) return e->version == FULL && !in->guard && in->space != MG_SPACE_generic;
    if (!p.known || !p.linear || in->guard || in->space == MG_SPACE_generic) return false;
    if (e->version == FULL || (!p.s.stride && !(in->kind == CPU_STORE && p.s.halves))) return true;
    return !p.s.halves && has_masked(e, in) && (emit_is(e, EMU_ISA_AVX512) || (in->vec == 1 && !blends(e, in)));
}

/* The accesses behind this one in the block that its check may stand for: least and greatest offset. */
static void gather_group(struct emit *e, int64_t *lo, int64_t *hi)
{
    const struct cpu_inst *in = e->in;
    bool redefined = false;
    *lo = *hi = in->off;
    if (in->guard || !in->s[0] || known_lanes(e)) return;
    for (uint32_t i = e->ix; i < e->f->blocks[e->block].end && !redefined; i++) {
        const struct cpu_inst *o = &e->f->insts[i];
        if (o->kind == CPU_CTL && i > e->ix) break; /* what waits here may change what follows */
        if ((o->kind == CPU_LOAD || o->kind == CPU_STORE) && shares(in, o) && leaves_whole(e, o)) {
            if (o->off < *lo) *lo = o->off;
            if (o->off > *hi) *hi = o->off;
            e->checked[i] = e->ix + 1;
        }
        redefined = cpu_defines(e->f, o, in->s[0]);
    }
}

/* Does the check look at the active lanes only? */
static bool exact(struct emit *e, const struct plan *p, const struct cpu_inst *in)
{
    return e->version == PART && p->s.stride && !p->s.halves && in->vec == 1;
}

/* Is the access of these lanes inside shared memory, in warps from the first to the second? Known of addresses that
 * come from thread numbers and constants alone. */
static bool lanes_surely_inside(struct emit *e, const struct plan *p, uint32_t lanes, const uint32_t warps[2])
{
    const struct cpu_inst *in = e->in;
    const struct cpu_reg *r = in->s[0] ? &e->f->regs[in->s[0] - 1] : NULL;
    int64_t size = p->size, step = r ? r->step : 0, first = step * warps[0], last = step * warps[1], least, most;
    cpu_lane_span(e->f, p->s, lanes, &least, &most);
    if (in->where != EMU_AT_SHARED || !e->whole || (r && !cpu_is_constant(r) && !r->fixed)) return false;
    for (int h = 0; h < (p->s.halves ? 2 : 1); h++) {
        int64_t at = (r ? cpu_is_constant(r) ? (int32_t)r->value : (int32_t)r->base[h] : 0) + in->off;
        if (at + MG_MIN(first, last) + least < 0 || at + MG_MAX(first, last) + most + size > e->f->static_shared)
            return false;
        if (at % size || (r && r->step % size) || p->s.stride % size) return false;
    }
    return true;
}

static bool surely_inside(struct emit *e, const struct plan *p)
{
    return lanes_surely_inside(e, p, UINT32_MAX, (uint32_t[2]){0, e->f->region.n_warps - 1});
}

bool emit_may_leave(struct emit *e)
{
    struct plan p = plan_of(e, e->in, e->version);
    bool done = e->checked[e->ix] && e->checked[e->ix] != e->ix + 1;
    return leaves_whole(e, e->in) && !done && (p.row || !surely_inside(e, &p));
}

/* What lies elsewhere most often does so again, as at the edge of an array, and a CTA that has left its code runs
 * long. So a load whose check is its own is done by a call, where there is little that has to be kept around it. */
static bool calls_here(struct emit *e)
{
    enum { MOST_VECTORS = 4 };
    const struct cpu_inst *in = e->in;
    unsigned n = 0;
    if (!e->whole || in->kind != CPU_LOAD || in->where != EMU_AT_GLOBAL) return false;
    for (uint32_t i = e->ix + 1; i < e->f->blocks[e->block].end; i++)
        if (e->checked[i] == e->ix + 1) return false;
    cpu_live_at(e->f, e->block, e->ix, e->scratch);
    for (uint32_t r = 0; r < e->f->n_regs; r++) n += mg_has(e->scratch, r) && e->f->regs[r].shape.varying;
    return n <= MOST_VECTORS;
}

/* A check of an access that may hold for CTAs to come (walk.c): `least` from its address on, in lane 0. */
static bool begin_walk(struct emit *e, struct walk_check *w, const struct plan *p, enum walk_which which, int64_t least,
                       uint64_t span)
{
    const struct cpu_inst *in = e->in;
    if (in->where != EMU_AT_GLOBAL || in->base_w || !in->s[0] || e->f->regs[in->s[0] - 1].cls != EMU_D) return false;
    return emit_walk_begin(e, w, which, in->s[0], least, span, p->size);
}

/* A linear access that is checked here or was by one before it. */
static void access_all(struct emit *e, const struct plan *p)
{
    const struct cpu_inst *in = e->in;
    struct access a = {.bytes = in->bytes,
                       .vec = in->vec,
                       .linear = true,
                       .halves = p->s.halves,
                       .exact = exact(e, p, in),
                       .stride = p->s.stride};
    bool done = e->checked[e->ix] && e->checked[e->ix] != e->ix + 1, sure = !done && surely_inside(e, p);
    LLVMBasicBlockRef next = NULL;
    val cached = e->lanes;
    for (int h = 0; h < (p->s.halves ? 2 : 1) && !done; h++) a.at[h] = emit_address(e, in, false, h);
    if (sure) {
        a.exact = a.exact && in->kind == CPU_STORE; /* idle lanes may be loaded */
        for (int h = 0; h < (p->s.halves ? 2 : 1); h++) a.p[h] = emit_host_pointer(e, in, a.at[h]);
    } else if (!done) {
        int64_t lo, hi, least, most;
        val ok = NULL;
        cpu_lane_span(e->f, p->s, UINT32_MAX, &least, &most);
        uint64_t span = (uint64_t)(most - least) + p->size;
        gather_group(e, &lo, &hi);
        emit_bounds(e, in, &a.lo, &a.size);
        struct walk_check w;
        bool walks = begin_walk(e, &w, p, e->version == FULL ? WALK_ALL : WALK_SOME, lo - in->off + least,
                                span + (uint64_t)(hi - lo));
        for (int h = 0; h < (p->s.halves ? 2 : 1); h++) {
            val from = LLVMBuildAdd(B, a.at[h], k64(e, (uint64_t)(lo - in->off + least)), ""),
                bytes = k64(e, span + (uint64_t)(hi - lo));
            if (exact(e, p, in)) {
                val m = e->mask, args[2] = {m, LLVMConstInt(e->t.i1, 1, 0)};
                val first = LLVMBuildZExt(B, emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2), e->t.i64, "");
                val off = LLVMBuildZExt(B, emit_intrinsic(e, "llvm.ctlz", &e->t.i32, 1, args, 2), e->t.i64, "");
                val idle = LLVMBuildMul(B, LLVMBuildAdd(B, first, off, ""), k64(e, p->size), "");
                val skip = LLVMBuildMul(B, first, k64(e, p->size), "");
                from = LLVMBuildAdd(B, from, skip, "");
                bytes = LLVMBuildSub(B, bytes, idle, "");
                if (in->where == EMU_AT_SHARED || in->base_w) { /* lanes before the first may lie below 0 */
                    from = LLVMBuildAnd(B, from, k64(e, UINT32_MAX), "");
                    a.at[h] = LLVMBuildSub(B, LLVMBuildSub(B, from, skip, ""), k64(e, (uint64_t)(lo - in->off)), "");
                }
            }
            val one = inside(e, &a, from, bytes, p->size);
            ok = ok ? LLVMBuildAnd(B, ok, one, "") : one;
        }
        if (walks) ok = emit_walk_end(e, &w, ok, a.at, p->s.halves ? 2 : 1, a.lo, a.size);
        if (calls_here(e))
            next = emit_call_unless(e, ok);
        else
            emit_leave_if(e, LLVMBuildNot(B, ok, ""));
        for (int h = 0; h < (p->s.halves ? 2 : 1); h++) e->group[e->ix][h] = a.p[h] = emit_host_pointer(e, in, a.at[h]);
    } else { /* no address of the group wraps: the check says so */
        uint32_t first = e->checked[e->ix] - 1;
        for (int h = 0; h < (p->s.halves ? 2 : 1); h++)
            a.p[h] = emit_at(e, e->group[first][h], (uint64_t)(in->off - e->f->insts[first].off));
    }
    if (e->whole && (e->version == FULL || emit_never_all(e)) && in->where == EMU_AT_GLOBAL && p->s.stride)
        emit_ahead(e, done ? e->checked[e->ix] - 1 : e->ix, a.p, p->s.halves ? 2 : 1,
                   (uint64_t)p->size * (p->s.halves ? 16 : 32));
    if (p->run)
        access_runs(e, p, a.p[0], true);
    else if (in->kind == CPU_STORE)
        store_linear(e, &a);
    else
        load_linear(e, &a);
    if (!next) return;
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    e->lanes = cached;
}

/* Rows of a full warp, checked here or by an access before. All lanes lie inside, so that none has wrapped where
 * registers of 32 bits form rows. */
static void access_all_rows(struct emit *e, const struct plan *p)
{
    const struct cpu_inst *in = e->in;
    bool done = e->checked[e->ix] && e->checked[e->ix] != e->ix + 1;
    val *group = e->group[done ? e->checked[e->ix] - 1 : e->ix]; /* addresses at the group's least offset, and this */
    if (!done) {
        struct cpu_inst least = *in;
        int64_t hi;
        val lo, size;
        gather_group(e, &least.off, &hi);
        emit_bounds(e, in, &lo, &size);
        group[0] = emit_address(e, &least, true, 0);
        group[1] = k64(e, (uint64_t)least.off);
        val ok = all_inside(e, group[0], lo, size, p->size + (uint64_t)(hi - least.off), p->size, NULL),
            rows = rows_hold(e, emit_vec(e, in->s[0], false), p->row, p->flat ? 0 : in->bytes);
        emit_leave_if(e, LLVMBuildNot(B, LLVMBuildAnd(B, ok, rows, ""), ""));
    }
    val bases[8];
    find_row_bases(e, group[0], p->row, 0, NULL, bases);
    access_rows(e, bases, in->off - LLVMConstIntGetSExtValue(group[1]), p->row, p->flat, NULL);
}

/* Lanes that lie in rows, where `rows` says so; NULL: they do. */
static void access_likely_rows(struct emit *e, const struct plan *p, val at, const val *bases, val rows)
{
    LLVMBasicBlockRef yes = rows ? emit_block(e, "rows") : NULL, no = rows ? emit_block(e, "apart") : NULL,
                      on = rows ? emit_block(e, "accessed") : NULL;
    if (rows) {
        val cached = e->lanes;
        LLVMBuildCondBr(B, rows, yes, no);
        LLVMPositionBuilderAtEnd(B, no);
        gather(e, &(struct lane_addresses){.many = at}, true);
        LLVMBuildBr(B, on);
        LLVMPositionBuilderAtEnd(B, yes);
        e->lanes = cached;
    }
    access_rows(e, bases, 0, p->row, p->flat, e->in->guard ? emit_active(e) : emit_lanes(e));
    if (!rows) return;
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
}

/* ---- lanes at a distance ------------------------------------------------------------------------------------ */

/* Lane 0's address, where it would lie if it is idle, and whether all active lanes lie inside; NULL: surely. */
static val strided_inside(struct emit *e, struct access *a, const struct plan *p, val lanes, val *ok)
{
    const struct cpu_inst *in = e->in;
    bool narrow = in->where == EMU_AT_SHARED || in->base_w || !in->s[0] || e->f->regs[in->s[0] - 1].cls == EMU_W;
    val at = emit_address(e, in, false, 0), low = k64(e, p->s.stride > 0 ? 0 : 31), far = k64(e, 31), none = NULL;
    *ok = NULL;
    if (surely_inside(e, p)) return at;
    if (lanes) {
        val bits = LLVMBuildBitCast(B, lanes, e->t.i32, ""), args[2] = {bits, LLVMConstInt(e->t.i1, 0, 0)};
        val first = LLVMBuildZExt(B, emit_intrinsic(e, "llvm.cttz", &e->t.i32, 1, args, 2), e->t.i64, "");
        val behind = LLVMBuildZExt(B, emit_intrinsic(e, "llvm.ctlz", &e->t.i32, 1, args, 2), e->t.i64, "");
        val last = LLVMBuildSub(B, k64(e, 31), behind, "");
        low = p->s.stride > 0 ? first : last;
        far = LLVMBuildSub(B, last, first, "");
        none = LLVMBuildICmp(B, LLVMIntEQ, bits, k32(e, 0), "");
    }
    val skip = LLVMBuildMul(B, low, k64(e, (uint64_t)(int64_t)p->s.stride), ""), from = LLVMBuildAdd(B, at, skip, "");
    if (narrow) from = LLVMBuildAnd(B, from, k64(e, UINT32_MAX), "");
    val bytes = LLVMBuildMul(B, far, k64(e, (uint64_t)llabs(p->s.stride)), "");
    *ok = inside(e, a, from, LLVMBuildAdd(B, bytes, k64(e, p->size), ""), p->size);
    if (none) *ok = LLVMBuildOr(B, *ok, none, "");
    return LLVMBuildSub(B, from, skip, "");
}

/* Loads all that lies between the first lane and the last, n elements from one to the next, and takes the lanes out.
 * Nothing is loaded behind the last: the last vector lies further in front. */
static val load_apart(struct emit *e, val p, unsigned n)
{
    const struct cpu_inst *in = e->in;
    unsigned per = (emit_is(e, EMU_ISA_AVX512) ? 64u : 32u) / in->bytes, span = 31 * n + 1;
    LLVMTypeRef vt = LLVMVectorType(emit_mem_type(e, in->bytes), per);
    val rows[16];
    for (unsigned k = 0; k < 32 / per; k++) {
        for (unsigned j = k * n; j < (k + 1) * n; j++) {
            unsigned at = MG_MIN(j * per, span - per);
            val v = NULL, pick[16];
            bool any = false;
            for (unsigned i = 0; i < per; i++) {
                unsigned element = (k * per + i) * n;
                bool here = element / per == j;
                any |= here;
                pick[i] = k32(e, here ? per + element - at : i);
            }
            if (!any) continue;
            v = load(e, vt, emit_at(e, p, (uint64_t)at * in->bytes), in->bytes);
            rows[k] =
                LLVMBuildShuffleVector(B, j == k * n ? LLVMGetPoison(vt) : rows[k], v, LLVMConstVector(pick, per), "");
        }
    }
    return emit_joined(e, rows, 32 / per);
}

static void access_strided(struct emit *e, const struct plan *p, val at)
{
    const struct cpu_inst *in = e->in;
    unsigned n = takes_apart(in, p, e->version == PART || in->guard);
    const struct lane_addresses lanes = {.first = at, .step = p->s.stride};
    bool masked = e->version == PART || in->guard;
    if (!n && one_by_one(e, in, masked, false))
        access_one_by_one(e, &lanes, false);
    else if (!n)
        gather_elements(e, &lanes, false);
    else if (in->list[0])
        set_loaded(e, in->list[0], emit_extended(e, in, load_apart(e, emit_host_pointer(e, in, at), n), true));
}

/* Where lane 0 would lie if it is idle: in shared memory, of less than 2 GiB, maybe in front of it. */
static val base_of_runs(struct emit *e)
{
    val at = emit_address(e, e->in, false, 0);
    if (e->in->where == EMU_AT_SHARED) at = LLVMBuildSExt(B, LLVMBuildTrunc(B, at, e->t.i32, ""), e->t.i64, "");
    return emit_host_pointer(e, e->in, at);
}

/* As runs_inside; the check may hold for CTAs to come. */
static val runs_inside_ahead(struct emit *e, const struct plan *p, const struct access *a, val lanes)
{
    struct walk_check w;
    int64_t least, most;
    cpu_lane_span(e->f, p->s, UINT32_MAX, &least, &most);
    val at = emit_address(e, e->in, false, 0);
    bool walks = begin_walk(e, &w, p, WALK_SOME, least, (uint64_t)(most - least) + p->size);
    val ok = runs_inside(e, p, a, lanes);
    return walks ? emit_walk_end(e, &w, ok, &at, 1, a->lo, a->size) : ok;
}

static void access_any(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    if (e->version == LANE) {
        emit_lane_memory(e);
        return;
    }
    if (in->kind == CPU_PARAM) {
        load_param(e);
        return;
    }
    struct plan p = plan_of(e, in, e->version);
    struct cpu_shape s = p.s;
    struct access a = {.bytes = in->bytes, .vec = in->vec, .linear = p.linear, .halves = s.halves, .stride = s.stride};
    uint32_t size = p.size;
    bool store = in->kind == CPU_STORE, known = p.known, masked = e->version == PART || in->guard;
    if (leaves_whole(e, in)) {
        p.row ? access_all_rows(e, &p) : access_all(e, &p);
        return;
    }
    struct lane_addresses at = {0};
    bool sign, anywhere = !p.linear && !p.row && !p.run && !p.strided && (in->vec == 1 || is_pair(in)),
               indexed = anywhere && (known || can_gather(e, in, true)) && emit_find_index(e, &at, &sign);
    if (!known && !indexed) {
        emit_call(e);
        return;
    }
    if (a.linear && (!store || s.stride || s.halves || !masked) && surely_inside(e, &p)) {
        for (int h = 0; h < (s.halves ? 2 : 1); h++) a.p[h] = emit_host_pointer(e, in, emit_address(e, in, false, h));
        store ? store_linear(e, &a) : load_linear(e, &a);
        return;
    }
    if (p.run && surely_inside(e, &p)) {
        access_runs(e, &p, emit_host_pointer(e, in, emit_address(e, in, false, 0)), true);
        return;
    }
    emit_bounds(e, in, &a.lo, &a.size);
    val ok = NULL, rows = NULL, bases[8];
    if (p.run) {
        val lanes = in->guard ? emit_active(e) : emit_lanes(e);
        ok = store && masked ? runs_inside_ahead(e, &p, &a, lanes) : runs_inside(e, &p, &a, lanes);
    } else if (a.linear) {
        uint64_t span = s.stride ? (uint64_t)size * (s.halves ? 16 : 32) : size;
        for (int h = 0; h < (s.halves ? 2 : 1); h++) {
            a.at[h] = emit_address(e, in, false, h);
            bool blend = masked && s.stride && !s.halves && blends(e, in);
            val one = blend ? blend_inside(e, &a, size) : inside(e, &a, a.at[h], k64(e, span), size);
            ok = ok ? LLVMBuildAnd(B, ok, one, "") : one;
        }
        if (store && !s.stride && !s.halves && masked)
            ok = LLVMBuildAnd(B, ok, LLVMBuildICmp(B, LLVMIntNE, emit_active_bits(e), k32(e, 0), ""), "");
    } else if (p.strided) {
        a.at[0] = strided_inside(e, &a, &p, in->guard ? emit_active(e) : emit_lanes(e), &ok);
        if (!ok) {
            access_strided(e, &p, a.at[0]);
            return;
        }
    } else if (indexed) {
        ok = emit_index_inside(e, &at, sign, a.lo, a.size, size, in->guard ? emit_active(e) : emit_lanes(e));
    } else {
        val lanes = in->guard ? emit_active(e) : emit_lanes(e);
        at.many = a.many = emit_address(e, in, true, 0);
        unsigned step = p.flat ? 0 : in->bytes;
        bool only_rows = p.row && !can_gather(e, in, false), by_rows = only_rows && !lanes;
        if (!by_rows) ok = emit_all_inside(e, a.many, a.lo, a.size, size, lanes);
        if (p.row) rows = emit_narrow_rows(e, a.many, p.row, step, lanes, bases);
        if (p.row && !rows) {
            find_row_bases(e, a.many, p.row, step, lanes, bases);
            rows = rows_follow(e, a.many, p.row, step, lanes, bases);
        }
        for (unsigned r = 0; by_rows && r < EMU_LANES / p.row; r++) {
            val one = inside(e, &a, bases[r], k64(e, p.flat ? size : (uint64_t)size * p.row), size);
            ok = ok ? LLVMBuildAnd(B, ok, one, "") : one;
        }
        if (only_rows) ok = LLVMBuildAnd(B, ok, rows, ""), rows = NULL;
    }
    val cached = e->lanes;
    LLVMBasicBlockRef next = emit_call_unless(e, ok);
    for (int h = 0; h < (s.halves ? 2 : 1) && a.linear; h++) a.p[h] = emit_host_pointer(e, in, a.at[h]);
    if (p.run)
        access_runs(e, &p, base_of_runs(e), false);
    else if (a.linear)
        store ? store_linear(e, &a) : load_linear(e, &a);
    else if (p.strided)
        access_strided(e, &p, a.at[0]);
    else if (p.row)
        access_likely_rows(e, &p, a.many, bases, rows);
    else
        gather(e, &at, false);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
    e->lanes = cached;
}

/* Emits the access of lanes that are known, if it is those that run, and leaves the builder where others do. Returns
 * where both meet; NULL: none are known. */
static LLVMBasicBlockRef emit_known(struct emit *e)
{
    uint32_t lanes = known_lanes(e);
    if (!lanes) return NULL;
    const struct cpu_inst *in = e->in;
    struct plan p = plan_of(e, in, e->version);
    LLVMBasicBlockRef few = emit_block(e, "few"), other = emit_block(e, "other"), next = emit_block(e, "accessed");
    val those = LLVMBuildICmp(B, LLVMIntEQ, e->mask, k32(e, lanes), ""), ok = those;
    if (!lanes_surely_inside(e, &p, lanes, e->f->blocks[e->block].few_warps)) {
        struct access a = {0};
        int64_t least, most;
        cpu_lane_span(e->f, p.s, lanes, &least, &most);
        emit_bounds(e, in, &a.lo, &a.size);
        LLVMBasicBlockRef here = emit_block(e, "those");
        LLVMBuildCondBr(B, those, here, other);
        LLVMPositionBuilderAtEnd(B, here);
        struct walk_check w;
        uint64_t span = (uint64_t)(most - least) + p.size;
        val at = emit_address(e, in, false, 0);
        bool walks = begin_walk(e, &w, &p, WALK_KNOWN, least, span);
        val from = LLVMBuildAdd(B, at, k64(e, (uint64_t)least), "");
        if (in->where == EMU_AT_SHARED) from = LLVMBuildAnd(B, from, k64(e, UINT32_MAX), "");
        ok = inside(e, &a, from, k64(e, span), p.size);
        if (walks) ok = emit_walk_end(e, &w, ok, &at, 1, a.lo, a.size);
        for (unsigned i = 0; i < 32; i++) /* they lie at multiples of their size if the least does */
            if (lanes >> i & 1 && (cpu_lane_offset(e->f, p.s, i) - least) % (int64_t)p.size)
                ok = LLVMConstInt(e->t.i1, 0, 0);
    }
    LLVMBuildCondBr(B, ok, few, other);
    LLVMPositionBuilderAtEnd(B, few);
    val cached = e->lanes;
    access_known(e, lanes, base_of_runs(e));
    e->lanes = cached;
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, other);
    return next;
}

/* ... a load of some lanes of a tile, if all lie inside: then idle ones are loaded, too. */
static LLVMBasicBlockRef emit_all_runs(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct plan p = plan_of(e, in, e->version);
    struct access a = {0};
    if (!p.run || in->kind != CPU_LOAD || in->where != EMU_AT_GLOBAL || (e->version == FULL && !in->guard)) return NULL;
    LLVMBasicBlockRef sure = emit_block(e, "sure"), other = emit_block(e, "other"), next = emit_block(e, "accessed");
    emit_bounds(e, in, &a.lo, &a.size);
    LLVMBuildCondBr(B, runs_inside_ahead(e, &p, &a, NULL), sure, other);
    LLVMPositionBuilderAtEnd(B, sure);
    val cached = e->lanes;
    access_runs(e, &p, base_of_runs(e), true);
    e->lanes = cached;
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, other);
    return next;
}

/* ... of lanes that lie in rows whose places in shared memory are known, if those that run lie there. */
static LLVMBasicBlockRef emit_likely_rows(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct plan p = plan_of(e, in, e->version);
    val bases[2], lanes = in->guard ? emit_active(e) : emit_lanes(e);
    if (!p.row || p.flat || !e->whole || (e->version == PART && !has_masked(e, in)) || in->space == MG_SPACE_generic)
        return NULL;
    val likely = emit_places_hold(e, lanes, bases);
    if (!likely) return NULL;
    LLVMBasicBlockRef there = emit_block(e, "there"), other = emit_block(e, "other"), next = emit_block(e, "accessed");
    emit_usually(e, likely, there, other);
    LLVMPositionBuilderAtEnd(B, there);
    val cached = e->lanes;
    access_rows(e, bases, 0, p.row, false, lanes);
    e->lanes = cached;
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, other);
    return next;
}

static void emit_access(struct emit *e)
{
    val cached = e->lanes;
    bool whole = e->version != LANE && e->in->kind != CPU_PARAM;
    LLVMBasicBlockRef next = whole ? emit_known(e) : NULL;
    if (whole && !next) next = emit_all_runs(e);
    if (whole && !next) next = emit_likely_rows(e);
    access_any(e);
    if (!next) return;
    e->lanes = cached;
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
}
/* x86-64 keeps loads in order, and stores; LLVM would not. */
void emit_memory(struct emit *e)
{
    if (e->in->kind == CPU_STORE && e->in->mode == EMU_ORDER_RELEASE)
        LLVMBuildFence(B, LLVMAtomicOrderingRelease, 1, "");
    emit_access(e);
    if (e->in->kind == CPU_LOAD && e->in->mode == EMU_ORDER_ACQUIRE)
        LLVMBuildFence(B, LLVMAtomicOrderingAcquire, 1, "");
}
