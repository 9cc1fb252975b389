/* What inserted code asks about the values that lanes carry (CPU_CARRIED). Of a whole warp vectors keep each lane's
 * extremes until the worker is done (device/cpu/tally.c); three lanes tell that the others need not be looked at for
 * one step. What some lanes carry the emulator's function looks at. */
#include "device/cpu/plugin/emit.h"
#include "isa/request.h"

#define B e->b

struct carried { /* an operation under work */
    struct emit *e;
    val x; /* of 32 or 64 bits, none above the value's own */
    unsigned bits, width;
    val at; /* its words of the array of counts */
    uint32_t key_words;
};

static val splat(struct carried *c, uint64_t v)
{
    return emit_int(c->e, c->width > 32 ? EMU_D : EMU_W, v, true);
}

static uint64_t low_bits(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

static val as_bits(struct carried *c, val lanes)
{
    struct emit *e = c->e;
    return LLVMBuildBitCast(B, lanes, e->t.i32, "");
}

static val is_none(struct carried *c, val lanes)
{
    struct emit *e = c->e;
    return LLVMBuildICmp(B, LLVMIntEQ, as_bits(c, lanes), k32(e, 0), "");
}

static void add(struct carried *c, unsigned sum, val n)
{
    struct emit *e = c->e;
    emit_tally(e, emit_at(e, c->at, 8 * (uint64_t)(c->key_words + sum)), n);
}

static void add_lanes(struct carried *c, unsigned sum, val lanes)
{
    struct emit *e = c->e;
    val bits = as_bits(c, lanes);
    add(c, sum, LLVMBuildZExt(B, emit_intrinsic(e, "llvm.ctpop", &e->t.i32, 1, &bits, 1), e->t.i64, ""));
}

/* The greatest so far, of each lane: 0 most, 1 least (of complements). */
static void keep_most(struct carried *c, unsigned which, val key)
{
    struct emit *e = c->e;
    val at = emit_at(e, c->at, which * (uint64_t)(EMU_LANES * c->width / 8));
    LLVMTypeRef t = LLVMTypeOf(key);
    val both[2] = {emit_counted(e, LLVMBuildLoad2(B, t, at, "")), key};
    LLVMSetAlignment(both[0], 64);
    val s = emit_counted(e, LLVMBuildStore(B, emit_intrinsic(e, "llvm.umax", &t, 1, both, 2), at));
    LLVMSetAlignment(s, 64);
}

/* In an order in which unsigned comparison is the type's. */
static val key_of(struct carried *c)
{
    struct emit *e = c->e;
    uint64_t top = 1ull << (c->bits - 1);
    if (e->in->mode == MG_CK_UNSIGNED) return c->x;
    if (e->in->mode == MG_CK_SIGNED) return LLVMBuildXor(B, c->x, splat(c, top), "");
    val all = LLVMBuildAShr(B, c->x, splat(c, c->width - 1), "");
    return LLVMBuildXor(B, c->x, LLVMBuildOr(B, all, splat(c, top), ""), "");
}

static void count_sizes(struct carried *c)
{
    struct emit *e = c->e;
    bool is_float = e->in->mode >= MG_CK_F32;
    val size = is_float ? LLVMBuildAnd(B, c->x, splat(c, low_bits(c->bits - 1)), "") : c->x,
        inf = splat(c, e->in->mode == MG_CK_F32 ? 0x7f800000 : 0x7ff0000000000000);
    add_lanes(c, MG_CR_ZEROS, LLVMBuildICmp(B, LLVMIntEQ, size, splat(c, 0), ""));
    if (!is_float) return;
    val nan = LLVMBuildICmp(B, LLVMIntSGT, size, inf, ""); /* of sizes: not negative */
    LLVMBasicBlockRef some = emit_block(e, "nan"), next = emit_block(e, "");
    LLVMBuildCondBr(B, is_none(c, nan), next, some);
    LLVMPositionBuilderAtEnd(B, some);
    add_lanes(c, MG_CR_NANS, nan);
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
}

/* One step from lane to lane, or none? */
static void count_steps(struct carried *c)
{
    struct emit *e = c->e;
    LLVMTypeRef t = c->width > 32 ? e->t.i64 : e->t.i32;
    val x[3], low = LLVMConstInt(t, low_bits(c->bits), 0), zero = LLVMConstInt(t, 0, 0), one = k64(e, 1);
    for (unsigned i = 0; i < 3; i++) x[i] = LLVMBuildExtractElement(B, c->x, k64(e, i), "");
    val step = LLVMBuildSub(B, x[1], x[0], ""), bend = LLVMBuildSub(B, LLVMBuildSub(B, x[2], x[1], ""), step, "");
    LLVMBasicBlockRef look = emit_block(e, "even"), found = emit_block(e, "step"), next = emit_block(e, "");
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, bend, low, ""), zero, ""), look, next);
    LLVMPositionBuilderAtEnd(B, look);
    val expected =
            LLVMBuildAdd(B, emit_splat(e, x[0]), LLVMBuildMul(B, emit_splat(e, step), emit_iota(e, t, 1), ""), ""),
        differ = LLVMBuildAnd(B, LLVMBuildXor(B, c->x, expected, ""), splat(c, low_bits(c->bits)), "");
    LLVMBuildCondBr(B, is_none(c, LLVMBuildICmp(B, LLVMIntNE, differ, splat(c, 0), "")), found, next);
    LLVMPositionBuilderAtEnd(B, found);
    val flat = LLVMBuildZExt(B, LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, step, low, ""), zero, ""), e->t.i64, "");
    add(c, MG_CR_UNIFORM, flat);
    add(c, MG_CR_AFFINE, LLVMBuildSub(B, one, flat, ""));
    LLVMBuildBr(B, next);
    LLVMPositionBuilderAtEnd(B, next);
}

/* ---- one value in all lanes, or in all of a half ----------------------------------------------------------------- */

static val scalar(struct carried *c, uint64_t v)
{
    return LLVMConstInt(LLVMTypeOf(c->x), v, 0);
}

/* n where `is`, else 0. */
static val times(struct carried *c, val is, uint64_t n)
{
    struct emit *e = c->e;
    return LLVMBuildSelect(B, is, k64(e, n), k64(e, 0), "");
}

/* Of all lanes the first one keeps it. */
static void keep_scalar(struct carried *c, unsigned which, val key)
{
    struct emit *e = c->e;
    val at = emit_at(e, c->at, which * (uint64_t)(EMU_LANES * c->width / 8));
    LLVMTypeRef t = LLVMTypeOf(key);
    val both[2] = {emit_counted(e, LLVMBuildLoad2(B, t, at, "")), key};
    emit_counted(e, LLVMBuildStore(B, emit_intrinsic(e, "llvm.umax", &t, 1, both, 2), at));
}

/* c->x is what n lanes hold. */
static void count_scalar(struct carried *c, uint64_t n)
{
    struct emit *e = c->e;
    bool is_float = e->in->mode >= MG_CK_F32;
    uint64_t top = 1ull << (c->bits - 1);
    val size = is_float ? LLVMBuildAnd(B, c->x, scalar(c, low_bits(c->bits - 1)), "") : c->x, key = c->x;
    if (e->in->mode == MG_CK_SIGNED) key = LLVMBuildXor(B, key, scalar(c, top), "");
    if (is_float) {
        val all = LLVMBuildAShr(B, c->x, scalar(c, c->width - 1), "");
        key = LLVMBuildXor(B, key, LLVMBuildOr(B, all, scalar(c, top), ""), "");
        val inf = scalar(c, e->in->mode == MG_CK_F32 ? 0x7f800000 : 0x7ff0000000000000);
        add(c, MG_CR_NANS, times(c, LLVMBuildICmp(B, LLVMIntUGT, size, inf, ""), n));
    }
    add(c, MG_CR_ZEROS, times(c, LLVMBuildICmp(B, LLVMIntEQ, size, scalar(c, 0), ""), n));
    keep_scalar(c, 0, key);
    keep_scalar(c, 1, LLVMBuildNot(B, key, ""));
}

static bool is_flat(const struct emit *e)
{
    const struct cpu_reg *r = &e->f->regs[e->in->s[0] - 1];
    return !r->shape.varying && !r->shape.stride && !r->shape.tile;
}

static void count_flat(struct carried *c)
{
    struct emit *e = c->e;
    unsigned n = e->f->regs[e->in->s[0] - 1].shape.halves ? 2 : 1;
    val x[2];
    for (unsigned h = 0; h < n; h++) {
        c->x = emit_scalar(e, e->in->s[0], (int)h, false);
        if (c->bits < 32) c->x = LLVMBuildAnd(B, c->x, scalar(c, low_bits(c->bits)), "");
        x[h] = c->x;
        count_scalar(c, EMU_LANES / n);
    }
    add(c, MG_CR_UNIFORM, times(c, LLVMBuildICmp(B, LLVMIntEQ, x[0], x[n - 1], ""), 1));
}

void emit_carried(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    const struct cpu_carried *r = &e->f->tally.carried[e->f->tally.site_at[e->ix] - 1];
    if (e->version != FULL || in->guard) {
        emit_call(e);
        return;
    }
    struct carried c = {.e = e, .bits = 8u * in->bytes, .width = in->bytes > 4 ? 64 : 32, .key_words = r->key_words};
    c.at = emit_at(e, e->counts, 8 * (uint64_t)r->count);
    c.x = emit_vec(e, in->s[0], false);
    if (c.bits < 32) c.x = LLVMBuildAnd(B, c.x, splat(&c, low_bits(c.bits)), "");
    val same = LLVMBuildICmp(B, LLVMIntEQ, c.x, emit_vec(e, in->s[1], false), ""),
        had = LLVMBuildICmp(B, LLVMIntNE, emit_vec(e, in->s[2], false), emit_int(e, EMU_W, 0, true), "");
    add(&c, MG_CR_WARPS, k64(e, 1));
    add_lanes(&c, MG_CR_REDUNDANT, LLVMBuildAnd(B, same, had, ""));
    if (is_flat(e)) {
        count_flat(&c);
        return;
    }
    val key = key_of(&c);
    keep_most(&c, 0, key);
    keep_most(&c, 1, LLVMBuildNot(B, key, ""));
    count_sizes(&c);
    count_steps(&c);
}
