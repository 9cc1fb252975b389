/* Arithmetic: code for the rows of arithmetic.def, with the emulator's bits (vec_alu_*.c).
 * The same code makes scalars for linear registers and vectors for the others. */
#include "device/cpu/plugin/emit.h"

#include "device/emu/alu_form.h"

#define B e->b

static unsigned bits_of(unsigned t)
{
    switch (t) {
    case MG_TYPE_u8:
    case MG_TYPE_s8:
    case MG_TYPE_b8:
        return 8;
    case MG_TYPE_u16:
    case MG_TYPE_s16:
    case MG_TYPE_b16:
        return 16;
    case MG_TYPE_u64:
    case MG_TYPE_s64:
    case MG_TYPE_b64:
    case MG_TYPE_f64:
        return 64;
    default:
        return 32;
    }
}
static bool is_signed(unsigned t)
{
    return t == MG_TYPE_s8 || t == MG_TYPE_s16 || t == MG_TYPE_s32 || t == MG_TYPE_s64;
}
static bool is_float(unsigned t)
{
    return t == MG_TYPE_f32 || t == MG_TYPE_f64;
}

/* One computation: its operands, vectors or scalars. */
struct work {
    struct emit *e;
    const struct cpu_inst *in;
    bool vec;
    val x[3];
    bool other; /* the second predicate of setp */
};

static val lit(struct work *w, enum emu_class c, uint64_t v)
{
    return emit_int(w->e, c, v, w->vec);
}
static LLVMTypeRef type(struct work *w, enum emu_class c)
{
    return emit_type(w->e, c, w->vec);
}
static LLVMTypeRef ftype(struct work *w, bool wide)
{
    return wide ? w->vec ? w->e->t.vf64 : w->e->t.f64 : w->vec ? w->e->t.vf32 : w->e->t.f32;
}
static val as_float(struct work *w, val v, bool wide)
{
    return LLVMBuildBitCast(w->e->b, v, ftype(w, wide), "");
}
static val as_bits(struct work *w, val v, bool wide)
{
    return LLVMBuildBitCast(w->e->b, v, type(w, wide ? EMU_D : EMU_W), "");
}
static val flit(struct work *w, bool wide, double v)
{
    val s = LLVMConstReal(wide ? w->e->t.f64 : w->e->t.f32, v);
    return w->vec ? emit_splat(w->e, s) : s;
}

/* The operand's value as its type has it, in a lane of its class. */
static val widened(struct work *w, val x, unsigned t)
{
    struct emit *e = w->e;
    unsigned n = bits_of(t);
    if (n >= 32) return x;
    if (is_signed(t)) return LLVMBuildAShr(B, LLVMBuildShl(B, x, lit(w, EMU_W, 32 - n), ""), lit(w, EMU_W, 32 - n), "");
    return LLVMBuildAnd(B, x, lit(w, EMU_W, (1u << n) - 1), "");
}

static val to64(struct work *w, val x, bool sign)
{
    struct emit *e = w->e;
    return sign ? LLVMBuildSExt(B, x, type(w, EMU_D), "") : LLVMBuildZExt(B, x, type(w, EMU_D), "");
}

static val product_wide(struct work *w)
{
    struct emit *e = w->e;
    unsigned t = w->in->t[0];
    val x = widened(w, w->x[0], t), y = widened(w, w->x[1], t);
    if (bits_of(t) == 32) x = to64(w, x, is_signed(t)), y = to64(w, y, is_signed(t));
    return LLVMBuildMul(B, x, y, "");
}

static val code_shift(struct work *w)
{
    struct emit *e = w->e;
    unsigned n = bits_of(w->in->t[0]);
    enum emu_class c = n == 64 ? EMU_D : EMU_W;
    val s = w->x[1], in = LLVMBuildICmp(B, LLVMIntULT, s, lit(w, EMU_W, n), "");
    val amount = n == 64 ? LLVMBuildZExt(B, s, type(w, EMU_D), "") : s;
    if (w->in->op == MG_OP_shr && is_signed(w->in->t[0]))
        return LLVMBuildAShr(B, w->x[0], LLVMBuildSelect(B, in, amount, lit(w, c, n - 1), ""), "");
    amount = LLVMBuildAnd(B, amount, lit(w, c, n - 1), "");
    val r = w->in->op == MG_OP_shl ? LLVMBuildShl(B, w->x[0], amount, "") : LLVMBuildLShr(B, w->x[0], amount, "");
    return LLVMBuildSelect(B, in, r, lit(w, c, 0), "");
}

/* A field of bits at a place known now. */
static val field(struct work *w, bool insert)
{
    struct emit *e = w->e;
    const struct cpu_reg *regs = e->f->regs;
    const uint32_t *s = w->in->s + (insert ? 2 : 1);
    uint64_t at = (uint32_t)regs[s[0] - 1].value, n = (uint32_t)regs[s[1] - 1].value;
    unsigned all = bits_of(w->in->t[0]);
    enum emu_class c = all == 64 ? EMU_D : EMU_W;
    if (insert) {
        uint64_t mask = ((1ull << n) - 1) << at;
        val x = LLVMBuildAnd(B, LLVMBuildShl(B, w->x[0], lit(w, c, at), ""), lit(w, c, mask), "");
        return LLVMBuildOr(B, LLVMBuildAnd(B, w->x[1], lit(w, c, ~mask), ""), x, "");
    }
    val top = LLVMBuildShl(B, w->x[0], lit(w, c, all - at - n), "");
    return is_signed(w->in->t[0]) ? LLVMBuildAShr(B, top, lit(w, c, all - n), "")
                                  : LLVMBuildLShr(B, top, lit(w, c, all - n), "");
}

static val code_bfe(struct work *w)
{
    return field(w, false);
}
static val code_bfi(struct work *w)
{
    return field(w, true);
}

static val code_count_bits(struct work *w)
{
    struct emit *e = w->e;
    bool wide = bits_of(w->in->t[0]) == 64;
    LLVMTypeRef t = type(w, wide ? EMU_D : EMU_W);
    val args[2] = {w->x[0], LLVMConstInt(e->t.i1, 0, 0)}, v;
    if (w->in->op == MG_OP_brev) return emit_intrinsic(e, "llvm.bitreverse", &t, 1, args, 1);
    v = w->in->op == MG_OP_popc ? emit_intrinsic(e, "llvm.ctpop", &t, 1, args, 1)
                                : emit_intrinsic(e, "llvm.ctlz", &t, 1, args, 2);
    return wide ? LLVMBuildTrunc(B, v, type(w, EMU_W), "") : v;
}

/* ---- floating point ----------------------------------------------------------------------------------- */

static val ordered(struct work *w, val x)
{
    return LLVMBuildFCmp(w->e->b, LLVMRealORD, x, x, "");
}

/* f64: the payload of an operand that is a NaN survives, the last of the list first. */
static val payload(struct work *w, val r, const val *from, unsigned n)
{
    struct emit *e = w->e;
    val keep = lit(w, EMU_D, NAN64);
    for (unsigned k = 0; k < n; k++) {
        val quiet = LLVMBuildOr(B, as_bits(w, from[k], true), lit(w, EMU_D, QUIET64), "");
        keep = LLVMBuildSelect(B, ordered(w, from[k]), keep, quiet, "");
    }
    return LLVMBuildSelect(B, ordered(w, r), as_bits(w, r, true), keep, "");
}

static val call_float(struct work *w, const char *name, bool wide, val *args, unsigned n)
{
    LLVMTypeRef t = ftype(w, wide);
    return emit_intrinsic(w->e, name, &t, 1, args, n);
}

/* A NaN as the operation gives it: f32 has one, f64 keeps the operand's. */
static val one_nan(struct work *w, val bits, bool wide)
{
    struct emit *e = w->e;
    if (!wide) return emit_canon(e, bits);
    val quiet = LLVMBuildOr(B, bits, lit(w, EMU_D, QUIET64), "");
    return LLVMBuildSelect(B, ordered(w, as_float(w, bits, true)), bits, quiet, "");
}

/* A number wins over a NaN; .NaN: loses */
static val min_max(struct work *w, const val *x, bool max, bool wide)
{
    struct emit *e = w->e;
    val less = LLVMBuildFCmp(B, max ? LLVMRealOGT : LLVMRealOLT, x[0], x[1], ""),
        more = LLVMBuildFCmp(B, max ? LLVMRealOLT : LLVMRealOGT, x[0], x[1], "");
    val xb = as_bits(w, x[0], wide), yb = as_bits(w, x[1], wide);
    val tie = max ? LLVMBuildAnd(B, xb, yb, "") : LLVMBuildOr(B, xb, yb, "");
    val r = LLVMBuildSelect(B, less, xb, LLVMBuildSelect(B, more, yb, tie, ""), "");
    if (w->in->key & K_NAN) {
        val both = LLVMBuildFCmp(B, LLVMRealORD, x[0], x[1], "");
        return LLVMBuildSelect(B, both, r, lit(w, EMU_W, NAN32), "");
    }
    val one = wide ? ordered(w, x[1]) : ordered(w, x[0]), other = wide ? ordered(w, x[0]) : ordered(w, x[1]);
    r = LLVMBuildSelect(B, one, r, wide ? xb : yb, "");
    r = LLVMBuildSelect(B, other, r, wide ? yb : xb, "");
    return one_nan(w, r, wide);
}

static val sign_changed(struct work *w, val x, bool wide)
{
    struct emit *e = w->e;
    val bits = as_bits(w, x, wide), sign = lit(w, wide ? EMU_D : EMU_W, wide ? 1ull << 63 : 0x80000000);
    val r =
        w->in->op == MG_OP_neg ? LLVMBuildXor(B, bits, sign, "") : LLVMBuildAnd(B, bits, LLVMBuildNot(B, sign, ""), "");
    if (!wide) return emit_canon(e, r);
    return LLVMBuildSelect(B, ordered(w, x), r, one_nan(w, bits, true), "");
}

/* Rounded to nearest. from: of whom a NaN's payload comes, the last first */
static val arithmetic(struct work *w, enum mg_op op, val *x, bool wide, val *from, unsigned *n)
{
    struct emit *e = w->e;
    *n = op == MG_OP_rcp || op == MG_OP_sqrt ? 1 : 2;
    from[0] = x[0];
    from[1] = x[1];
    switch (op) {
    case MG_OP_add:
        return LLVMBuildFAdd(B, x[0], x[1], "");
    case MG_OP_sub:
        return LLVMBuildFSub(B, x[0], x[1], "");
    case MG_OP_mul:
        return LLVMBuildFMul(B, x[0], x[1], "");
    case MG_OP_div:
        from[0] = x[1];
        from[1] = x[0];
        return LLVMBuildFDiv(B, x[0], x[1], "");
    case MG_OP_rcp:
        return LLVMBuildFDiv(B, flit(w, wide, 1.0), x[0], "");
    case MG_OP_sqrt:
        return call_float(w, "llvm.sqrt", wide, x, 1);
    default:
        from[1] = x[2];
        from[2] = x[1];
        *n = 3;
        return call_float(w, "llvm.fma", wide, x, 3);
    }
}

static val arithmetic_ftz(struct work *w, enum mg_op op, val *x)
{
    val from[3];
    unsigned n;
    switch (op) {
    case MG_OP_rcp:
        return emit_flushed_result(w->e, MG_OP_div, flit(w, false, 1), x[0], NULL);
    case MG_OP_mul:
    case MG_OP_div:
        return emit_flushed_result(w->e, op, x[0], x[1], NULL);
    case MG_OP_mad:
    case MG_OP_fma:
        return emit_flushed_result(w->e, MG_OP_fma, x[0], x[1], x[2]);
    default: /* a sum below 2^-126 is exact, a root is not as small */
        return emit_flushed(w->e, arithmetic(w, op, x, false, from, &n));
    }
}

/* In a rounding that is not to nearest: vectors only */
static val directed(struct work *w, const val *x)
{
    struct emit *e = w->e;
    val v[3];
    for (unsigned k = 0; k < 3; k++) v[k] = x[k] && !w->vec ? emit_splat(e, x[k]) : x[k];
    val r = emit_rounded(e, (enum mg_op)w->in->op, w->in->imm, v);
    return w->vec ? r : LLVMBuildExtractElement(B, r, LLVMConstInt(e->t.i32, 0, 0), "");
}

static val saturated(struct work *w, val r, bool wide)
{
    struct emit *e = w->e;
    val top = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, r, flit(w, wide, 1), ""), r, flit(w, wide, 1), "");
    r = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, r, flit(w, wide, 0), ""), top, flit(w, wide, 0), "");
    return as_bits(w, r, wide);
}

static val code_float(struct work *w)
{
    struct emit *e = w->e;
    enum mg_op op = (enum mg_op)w->in->op;
    bool wide = w->in->t[0] == MG_TYPE_f64, ftz = w->in->key & K_FTZ;
    val x[3] = {NULL}, from[3], r;
    unsigned n;
    if (w->in->key & K_APPROX && op != MG_OP_div) return emit_approx(e, op, ftz, w->x[0]);
    for (unsigned k = 0; k < 3; k++) {
        if (w->x[k]) x[k] = as_float(w, w->x[k], wide);
        if (w->x[k] && ftz) x[k] = emit_flushed(e, x[k]);
    }
    if (op == MG_OP_min || op == MG_OP_max) return min_max(w, x, op == MG_OP_max, wide);
    if (op == MG_OP_neg || op == MG_OP_abs) return sign_changed(w, x[0], wide);
    if (w->in->key & (K_APPROX | K_FULL)) {
        emit_approx_quotient(e, w->in->key & K_FULL, ftz, x);
        op = x[2] ? MG_OP_fma : MG_OP_mul;
    }
    if (ftz)
        r = arithmetic_ftz(w, op, x);
    else
        r = w->in->imm ? directed(w, x) : arithmetic(w, op, x, wide, from, &n);
    if (w->in->key & K_SAT) return saturated(w, r, wide);
    return wide ? payload(w, r, from, n) : as_bits(w, r, false); /* f32: whoever writes makes it canonical */
}

/* ---- comparison ------------------------------------------------------------------------------------------ */

static val combine(struct work *w, val m, val c)
{
    struct emit *e = w->e;
    switch (w->in->imm & 3) {
    case K_AND >> K_BOOL_SHIFT:
        return LLVMBuildAnd(B, m, c, "");
    case K_OR >> K_BOOL_SHIFT:
        return LLVMBuildOr(B, m, c, "");
    case K_XOR >> K_BOOL_SHIFT:
        return LLVMBuildXor(B, m, c, "");
    default:
        return m;
    }
}

static val code_compare(struct work *w)
{
    struct emit *e = w->e;
    static const LLVMRealPredicate reals[] = {0,           LLVMRealOEQ, LLVMRealONE, LLVMRealOLT, LLVMRealOLE,
                                              LLVMRealOGT, LLVMRealOGE, LLVMRealUEQ, LLVMRealUNE, LLVMRealULT,
                                              LLVMRealULE, LLVMRealUGT, LLVMRealUGE, LLVMRealORD, LLVMRealUNO};
    static const LLVMIntPredicate ints[][2] = {{0, 0},
                                               {LLVMIntEQ, LLVMIntEQ},
                                               {LLVMIntNE, LLVMIntNE},
                                               {LLVMIntULT, LLVMIntSLT},
                                               {LLVMIntULE, LLVMIntSLE},
                                               {LLVMIntUGT, LLVMIntSGT},
                                               {LLVMIntUGE, LLVMIntSGE}};
    unsigned t = w->in->t[0], sub = (w->in->key & K_SUB) >> K_SUB_SHIFT;
    val m;
    if (is_float(t)) {
        val x[2];
        for (unsigned k = 0; k < 2; k++) {
            x[k] = as_float(w, w->x[k], t == MG_TYPE_f64);
            if (w->in->key & K_FTZ) x[k] = emit_flushed(e, x[k]);
        }
        m = LLVMBuildFCmp(B, reals[sub], x[0], x[1], "");
    } else
        m = LLVMBuildICmp(B, ints[sub][is_signed(t)], widened(w, w->x[0], t), widened(w, w->x[1], t), "");
    if (w->other) m = LLVMBuildNot(B, m, "");
    return w->in->imm & 3 ? combine(w, m, w->x[2]) : m;
}

/* ---- conversion ------------------------------------------------------------------------------------------- */

static val f32_to_int(struct work *w, bool sign)
{
    struct emit *e = w->e;
    val x = as_float(w, w->x[0], false);
    val low = flit(w, false, sign ? -0x1p31 : 0), top = flit(w, false, sign ? 2147483520.0 : 4294967040.0),
        limit = flit(w, false, sign ? 0x1p31 : 0x1p32);
    val c = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, x, low, ""), x, low, "");
    c = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, c, top, ""), c, top, "");
    val r = sign ? LLVMBuildFPToSI(B, c, type(w, EMU_W), "") : LLVMBuildFPToUI(B, c, type(w, EMU_W), "");
    r = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGE, x, limit, ""), lit(w, EMU_W, sign ? INT32_MAX : UINT32_MAX), r,
                        "");
    return LLVMBuildSelect(B, ordered(w, x), r, lit(w, EMU_W, 0), "");
}

static val code_convert(struct work *w)
{
    struct emit *e = w->e;
    unsigned d = w->in->t[0], s = w->in->t[1];
    val x = w->x[0];
    if (d == MG_TYPE_f64 && s == MG_TYPE_f32) {
        val v = as_float(w, x, false), r = LLVMBuildFPExt(B, v, ftype(w, true), ""), u = to64(w, x, false);
        val nan =
            LLVMBuildOr(B, LLVMBuildShl(B, LLVMBuildAnd(B, u, lit(w, EMU_D, 0x80000000), ""), lit(w, EMU_D, 32), ""),
                        LLVMBuildShl(B, LLVMBuildAnd(B, u, lit(w, EMU_D, 0x7fffff), ""), lit(w, EMU_D, 29), ""), "");
        nan = LLVMBuildOr(B, nan, lit(w, EMU_D, 0x7ff8000000000000ull), "");
        return LLVMBuildSelect(B, ordered(w, v), as_bits(w, r, true), nan, "");
    }
    if (d == MG_TYPE_f32 && s == MG_TYPE_f32) { /* .sat */
        val v = as_float(w, x, false),
            top = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, v, flit(w, false, 1), ""), v, flit(w, false, 1), "");
        return as_bits(
            w, LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, v, flit(w, false, 0), ""), top, flit(w, false, 0), ""),
            false);
    }
    if (d == MG_TYPE_f32 && s == MG_TYPE_f64) {
        val v = as_float(w, x, true), r = LLVMBuildFPTrunc(B, v, ftype(w, false), "");
        val sign = LLVMBuildAnd(B, LLVMBuildLShr(B, x, lit(w, EMU_D, 32), ""), lit(w, EMU_D, 0x80000000), "");
        val nan = LLVMBuildOr(
            B, sign, LLVMBuildAnd(B, LLVMBuildLShr(B, x, lit(w, EMU_D, 29), ""), lit(w, EMU_D, 0x7fffff), ""), "");
        nan = LLVMBuildTrunc(B, LLVMBuildOr(B, nan, lit(w, EMU_D, 0x7fc00000), ""), type(w, EMU_W), "");
        return LLVMBuildSelect(B, ordered(w, v), as_bits(w, r, false), nan, "");
    }
    if (is_float(s)) return f32_to_int(w, is_signed(d));
    if (bits_of(s) < 64) x = widened(w, x, s);
    if (is_float(d)) {
        LLVMTypeRef t = ftype(w, d == MG_TYPE_f64);
        val r = is_signed(s) ? LLVMBuildSIToFP(B, x, t, "") : LLVMBuildUIToFP(B, x, t, "");
        return as_bits(w, r, d == MG_TYPE_f64);
    }
    if (bits_of(d) == 64) return bits_of(s) == 64 ? x : to64(w, x, is_signed(s));
    if (bits_of(s) == 64) x = LLVMBuildTrunc(B, x, type(w, EMU_W), "");
    return bits_of(d) < 32 ? LLVMBuildAnd(B, x, lit(w, EMU_W, (1u << bits_of(d)) - 1), "") : x;
}

/* ---- the operations ------------------------------------------------------------------------------------- */

static bool real(const struct work *w)
{
    return is_float(w->in->t[0]);
}

static val code_add(struct work *w)
{
    return real(w) ? code_float(w) : LLVMBuildAdd(w->e->b, w->x[0], w->x[1], "");
}
static val code_sub(struct work *w)
{
    return real(w) ? code_float(w) : LLVMBuildSub(w->e->b, w->x[0], w->x[1], "");
}
static val code_not(struct work *w)
{
    return LLVMBuildNot(w->e->b, w->x[0], "");
}
static val code_and(struct work *w)
{
    return LLVMBuildAnd(w->e->b, w->x[0], w->x[1], "");
}
static val code_or(struct work *w)
{
    return LLVMBuildOr(w->e->b, w->x[0], w->x[1], "");
}
static val code_xor(struct work *w)
{
    return LLVMBuildXor(w->e->b, w->x[0], w->x[1], "");
}
static val code_neg(struct work *w)
{
    return real(w) ? code_float(w) : LLVMBuildNeg(w->e->b, w->x[0], "");
}
static val code_mov(struct work *w)
{
    return w->x[0];
}
static val code_selp(struct work *w)
{
    return LLVMBuildSelect(w->e->b, w->x[2], w->x[0], w->x[1], "");
}

static val code_mul(struct work *w)
{
    struct emit *e = w->e;
    if (real(w)) return code_float(w);
    if (w->in->key == K_WIDE) return product_wide(w);
    if (w->in->key == K_HI)
        return LLVMBuildTrunc(B, LLVMBuildLShr(B, product_wide(w), lit(w, EMU_D, 32), ""), type(w, EMU_W), "");
    return LLVMBuildMul(B, w->x[0], w->x[1], "");
}

static val code_mad(struct work *w)
{
    struct emit *e = w->e;
    if (real(w)) return code_float(w);
    return LLVMBuildAdd(B, w->in->key == K_WIDE ? product_wide(w) : LLVMBuildMul(B, w->x[0], w->x[1], ""), w->x[2], "");
}

static val smaller_or_greater(struct work *w, LLVMIntPredicate of_signed, LLVMIntPredicate of_unsigned)
{
    struct emit *e = w->e;
    val first = LLVMBuildICmp(B, is_signed(w->in->t[0]) ? of_signed : of_unsigned, w->x[0], w->x[1], "");
    return LLVMBuildSelect(B, first, w->x[0], w->x[1], "");
}
static val code_min(struct work *w)
{
    return real(w) ? code_float(w) : smaller_or_greater(w, LLVMIntSLT, LLVMIntULT);
}
static val code_max(struct work *w)
{
    return real(w) ? code_float(w) : smaller_or_greater(w, LLVMIntSGT, LLVMIntUGT);
}

static val code_abs(struct work *w)
{
    struct emit *e = w->e;
    enum emu_class c = bits_of(w->in->t[0]) == 64 ? EMU_D : EMU_W;
    if (real(w)) return code_float(w);
    return LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, w->x[0], lit(w, c, 0), ""), LLVMBuildNeg(B, w->x[0], ""),
                           w->x[0], "");
}

static val (*const codes[MG_OP_COUNT])(struct work *) = {
#define ARITH(opcode, forms, code) [MG_OP_##opcode] = code_##code,
#include "device/cpu/arithmetic.def"
};

/* Do operand bits count as floats only, so that NaNs need not be canonical? */
static bool reads_raw(const struct cpu_inst *in, unsigned k)
{
    if (in->op == MG_OP_setp) return is_float(in->t[0]) && k < 2;
    if (in->op == MG_OP_cvt) return in->t[1] == MG_TYPE_f32 && in->t[0] != MG_TYPE_f64;
    if (in->op == MG_OP_neg || in->op == MG_OP_abs) return false;
    return in->t[0] == MG_TYPE_f32 && in->op != MG_OP_mov && in->op != MG_OP_selp;
}

static val run(struct emit *e, const struct cpu_inst *in, bool vec, int half, bool other, uint32_t dest)
{
    struct work w = {.e = e, .in = in, .vec = vec, .other = other};
    bool move = in->op == MG_OP_mov;
    for (unsigned k = 0; k < 3; k++) {
        if (!in->s[k]) continue;
        bool raw = reads_raw(in, k) || (move && e->f->regs[dest - 1].lazy);
        w.x[k] = vec ? emit_vec(e, in->s[k], raw) : emit_scalar(e, in->s[k], half, raw);
    }
    val v = codes[in->op](&w);
    bool arithmetic32 =
        in->t[0] == MG_TYPE_f32 && in->op != MG_OP_setp && in->op != MG_OP_cvt && !move && in->op != MG_OP_selp;
    if (arithmetic32 && !e->f->regs[dest - 1].lazy && !(in->key & K_SAT)) v = emit_canon(e, v);
    return v;
}

/* A linear 32-bit register is extended to 64 bits: that holds for all lanes only when none wraps. */
static void check_wrap(struct emit *e, uint32_t reg, bool sign)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    bool across = e->whole && r->cta && r->step; /* nor between warps: the 64-bit register is to be the CTA's too */
    if (r->kind != CPU_REG_PLAIN || r->cls != EMU_W || r->shape.varying || (!r->shape.stride && !across)) return;
    if (across) {
        int64_t lanes = (int64_t)r->shape.stride * (r->shape.halves ? 15 : 31),
                warps = r->step * (e->f->region.n_warps - 1);
        int64_t ends[2] = {MG_MIN(lanes, 0) + MG_MIN(warps, 0), MG_MAX(lanes, 0) + MG_MAX(warps, 0)};
        for (int h = 0; h < (r->shape.halves ? 2 : 1); h++) {
            val zero = LLVMBuildSub(B, emit_scalar(e, reg, h, true),
                                    LLVMBuildMul(B, e->warp, LLVMConstInt(e->t.i32, (uint64_t)r->step, 0), ""), "");
            val wide = sign ? LLVMBuildSExt(B, zero, e->t.i64, "") : LLVMBuildZExt(B, zero, e->t.i64, "");
            for (int k = 0; k < 2; k++) {
                if (!ends[k]) continue;
                val end = LLVMBuildAdd(B, wide, LLVMConstInt(e->t.i64, (uint64_t)ends[k], 0), ""),
                    cut = LLVMBuildTrunc(B, end, e->t.i32, "");
                emit_leave_if(
                    e, LLVMBuildICmp(B, LLVMIntNE, end,
                                     sign ? LLVMBuildSExt(B, cut, e->t.i64, "") : LLVMBuildZExt(B, cut, e->t.i64, ""),
                                     ""));
            }
        }
        return;
    }
    for (int h = 0; h < (r->shape.halves ? 2 : 1); h++) {
        val base = emit_scalar(e, reg, h, true);
        int64_t span = (int64_t)r->shape.stride * (r->shape.halves ? 15 : 31);
        val wide = sign ? LLVMBuildSExt(B, base, e->t.i64, "") : LLVMBuildZExt(B, base, e->t.i64, "");
        val end = LLVMBuildAdd(B, wide, LLVMConstInt(e->t.i64, (uint64_t)span, 0), ""),
            cut = LLVMBuildTrunc(B, end, e->t.i32, "");
        val back = sign ? LLVMBuildSExt(B, cut, e->t.i64, "") : LLVMBuildZExt(B, cut, e->t.i64, "");
        emit_leave_if(e, LLVMBuildICmp(B, LLVMIntNE, end, back, ""));
    }
}

static void write_one(struct emit *e, uint32_t reg, bool other)
{
    const struct cpu_inst *in = e->in;
    if (emit_is_vec(e, reg)) {
        emit_set_vec(e, reg, run(e, in, true, 0, other, reg), in->guard ? emit_active(e) : NULL);
        return;
    }
    val g = in->guard ? emit_guard_scalar(e) : NULL, v[2] = {NULL, NULL};
    for (int h = 0; h < emit_parts(e, reg); h++) v[h] = run(e, in, false, h, other, reg);
    for (int h = 0; h < 2; h++)
        if (v[h]) emit_set_scalar(e, reg, h, v[h], g);
}

bool emit_alu(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    bool linear = in->d && !e->f->regs[in->d - 1].shape.varying && e->version != LANE;
    bool wide = (in->op == MG_OP_mul || in->op == MG_OP_mad) && in->key == K_WIDE;
    if (linear && wide) {
        check_wrap(e, in->s[0], is_signed(in->t[0]));
        check_wrap(e, in->s[1], is_signed(in->t[0]));
    }
    if (linear && in->op == MG_OP_cvt && bits_of(in->t[0]) == 64 && bits_of(in->t[1]) == 32)
        check_wrap(e, in->s[0], is_signed(in->t[1]));
    if (in->d && in->d2) { /* both from the same operands: neither may be written before the other is computed */
        bool va = emit_is_vec(e, in->d), vb = emit_is_vec(e, in->d2);
        val x = run(e, in, va, 0, false, in->d), y = run(e, in, vb, 0, true, in->d2);
        val act = in->guard && (va || vb) ? emit_active(e) : NULL,
            g = in->guard && !(va && vb) ? emit_guard_scalar(e) : NULL;
        if (va)
            emit_set_vec(e, in->d, x, act);
        else
            emit_set_scalar(e, in->d, 0, x, g);
        if (vb)
            emit_set_vec(e, in->d2, y, act);
        else
            emit_set_scalar(e, in->d2, 0, y, g);
        return true;
    }
    if (in->d) write_one(e, in->d, false);
    if (in->d2) write_one(e, in->d2, true);
    return true;
}

/* ---- moves ------------------------------------------------------------------------------------------------ */

static val moved(struct emit *e, const struct cpu_inst *in, bool vec, int half)
{
    struct work w = {.e = e, .in = in, .vec = vec};
    bool raw = in->kind == CPU_MOV && e->f->regs[in->d - 1].lazy;
    val x = in->s[0] ? vec ? emit_vec(e, in->s[0], raw) : emit_scalar(e, in->s[0], half, raw) : NULL, y;
    switch ((enum cpu_kind)in->kind) {
    case CPU_NOT_P:
        return LLVMBuildNot(B, x, "");
    case CPU_LOW:
        return LLVMBuildTrunc(B, x, type(&w, EMU_W), "");
    case CPU_ZEXT:
        return to64(&w, x, false);
    case CPU_SEXT:
        return to64(&w, x, true);
    case CPU_SEXT8:
        return widened(&w, x, MG_TYPE_s8);
    case CPU_SEXT16:
        return widened(&w, x, MG_TYPE_s16);
    case CPU_SEXT8H:
        return LLVMBuildAnd(B, widened(&w, x, MG_TYPE_s8), lit(&w, EMU_W, 0xffff), "");
    case CPU_CVTA: {
        val base = LLVMBuildPtrToInt(B, e->arg.shared, e->t.i64, "");
        if (vec) base = emit_splat(e, base);
        return in->mode ? LLVMBuildSub(B, x, base, "") : LLVMBuildAdd(B, x, base, "");
    }
    case CPU_PACK:
        y = vec ? emit_vec(e, in->s[1], false) : emit_scalar(e, in->s[1], half, false);
        return LLVMBuildOr(B, to64(&w, x, false), LLVMBuildShl(B, to64(&w, y, false), lit(&w, EMU_D, 32), ""), "");
    default:
        return x;
    }
}

static void put(struct emit *e, uint32_t reg, val vec, val lo, val hi)
{
    if (emit_is_vec(e, reg)) {
        emit_set_vec(e, reg, vec, e->in->guard ? emit_active(e) : NULL);
        return;
    }
    val g = e->in->guard ? emit_guard_scalar(e) : NULL;
    emit_set_scalar(e, reg, 0, lo, g);
    if (emit_parts(e, reg) > 1) emit_set_scalar(e, reg, 1, hi, g);
}

bool emit_move(struct emit *e)
{
    const struct cpu_inst *in = e->in;
    struct work w = {.e = e, .in = in};
    if (in->kind == CPU_ACTIVEMASK) {
        val m = emit_mask(e);
        if (in->guard) m = LLVMBuildBitCast(B, emit_active(e), e->t.i32, "");
        if (in->d) put(e, in->d, e->f->regs[in->d - 1].shape.varying ? emit_splat(e, m) : NULL, m, m);
        return true;
    }
    if (in->kind == CPU_UNPACK) {
        for (int k = 0; k < 2; k++) {
            uint32_t d = k ? in->d2 : in->d;
            if (!d) continue;
            bool vec = emit_is_vec(e, d);
            val part[2];
            for (int h = 0; h < 2; h++) {
                w.vec = vec;
                val x = vec ? emit_vec(e, in->s[0], false) : emit_scalar(e, in->s[0], h, false);
                if (k) x = LLVMBuildLShr(B, x, lit(&w, EMU_D, 32), "");
                part[h] = LLVMBuildTrunc(B, x, type(&w, EMU_W), "");
            }
            put(e, d, part[0], part[0], part[1]);
        }
        return true;
    }
    if (!in->d) return true;
    bool vec = emit_is_vec(e, in->d);
    if (!vec && e->version != LANE && (in->kind == CPU_ZEXT || in->kind == CPU_SEXT))
        check_wrap(e, in->s[0], in->kind == CPU_SEXT);
    val v0 = moved(e, in, vec, 0), v1 = vec || emit_parts(e, in->d) == 1 ? v0 : moved(e, in, false, 1);
    put(e, in->d, v0, v0, v1);
    return true;
}
