/* Arithmetic: code for the rows of arithmetic.def, with the emulator's bits (vec_alu_*.c).
 * The same code makes scalars for linear registers and vectors for the others. */
#include "device/cpu/plugin/work.h"

#define B e->b

static val product_wide(struct work *w)
{
    struct emit *e = w->e;
    unsigned t = w->in->t[0];
    val x = widened(w, w->x[0], t), y = widened(w, w->x[1], t);
    if (bits_of(t) == 32) x = to64(w, x, is_signed(t)), y = to64(w, y, is_signed(t));
    return LLVMBuildMul(B, x, y, "");
}

/* ---- floating point ----------------------------------------------------------------------------------- */

void emit_begin_nans(struct work *w, struct nan_case *c, val x)
{
    struct emit *e = w->e;
    *c = (struct nan_case){0};
    if (e->chain.mode == NANS_MADE) return;
    val some = LLVMBuildFCmp(B, LLVMRealUNO, x, x, "");
    if (w->vec) some = LLVMBuildICmp(B, LLVMIntNE, LLVMBuildBitCast(B, some, e->t.i32, ""), k32(e, 0), "");
    c->before = LLVMGetInsertBlock(B);
    c->nans = emit_block(e, "nans");
    c->on = emit_block(e, "numbers");
    if (w->vec)
        LLVMBuildCondBr(B, some, c->nans, c->on);
    else /* LLVM would make choices of it, thrice the code */
        emit_usually(e, LLVMBuildNot(B, some, ""), c->on, c->nans);
    LLVMPositionBuilderAtEnd(B, c->nans);
}

/* Is a NaN looked for later? */
bool emit_later(struct work *w, val result)
{
    if (w->e->chain.mode != NANS_LATER) return false;
    emit_link_chain(w->e, result);
    return true;
}

/* f64: the payload of an operand that is a NaN survives, the last of the list first. Where no result is a NaN, none of
 * them was. */
static val payload(struct work *w, val r, const val *from, unsigned n)
{
    struct emit *e = w->e;
    struct nan_case c;
    if (emit_later(w, r)) return as_bits(w, r, true);
    val bits = as_bits(w, r, true), keep = lit(w, EMU_D, NAN64);
    emit_begin_nans(w, &c, r);
    for (unsigned k = 0; k < n; k++) {
        val quiet = LLVMBuildOr(B, as_bits(w, from[k], true), lit(w, EMU_D, QUIET64), "");
        keep = LLVMBuildSelect(B, ordered(w, from[k]), keep, quiet, "");
    }
    return emit_end_nans(e, &c, bits, LLVMBuildSelect(B, ordered(w, r), bits, keep, ""));
}

static val call_float(struct work *w, const char *name, bool wide, val *args, unsigned n)
{
    LLVMTypeRef t = ftype(w, wide);
    return emit_intrinsic(w->e, name, &t, 1, args, n);
}

val emit_one_nan(struct work *w, val bits, bool wide)
{
    struct emit *e = w->e;
    if (!wide) return emit_canon(e, bits);
    val quiet = LLVMBuildOr(B, bits, lit(w, EMU_D, QUIET64), "");
    return LLVMBuildSelect(B, ordered(w, as_float(w, bits, true)), bits, quiet, "");
}

/* x where it is smaller (greater); y where they are equal, too, or one is a NaN. */
static val preferred(struct work *w, val x, val y, bool max, bool wide)
{
    struct emit *e = w->e;
    val first = LLVMBuildFCmp(B, max ? LLVMRealOGT : LLVMRealOLT, x, y, "");
    return as_bits(w, LLVMBuildSelect(B, first, x, y, ""), wide);
}

/* NaNs of arithmetic are quiet; those of others become so. */
static val quieted(struct work *w, unsigned k, val x)
{
    return w->e->f->regs[w->in->s[k] - 1].lazy ? x : as_float(w, emit_canon(w->e, as_bits(w, x, false)), false);
}

/* Is operand k a constant that preferred() gives where it should, as y? No NaN, nor a zero that another one lies below
 * (above). What .ftz would make a zero does not count. */
static bool settles(struct work *w, unsigned k, bool max, bool wide)
{
    const struct cpu_reg *r = &w->e->f->regs[w->in->s[k] - 1];
    if (!cpu_is_constant(r)) return false;
    uint64_t c = wide ? r->value : r->value << 32, exponent = wide ? 0x7ffull << 52 : 0xffull << 55;
    if (!(c << 1)) return max == !c;
    return (c & exponent) && (c & exponent) != exponent;
}

/* r, of numbers the smaller (greater) one: where an operand is a NaN the other one, with .NaN a NaN */
static val of_numbers_and_nans(struct work *w, const val *x, val r, bool wide)
{
    struct emit *e = w->e;
    if (w->in->key & K_NAN) {
        val both = LLVMBuildFCmp(B, LLVMRealORD, x[0], x[1], "");
        return LLVMBuildSelect(B, both, r, lit(w, EMU_W, NAN32), "");
    }
    val xb = as_bits(w, x[0], wide), yb = as_bits(w, x[1], wide);
    val one = wide ? ordered(w, x[1]) : ordered(w, x[0]), other = wide ? ordered(w, x[0]) : ordered(w, x[1]);
    r = LLVMBuildSelect(B, one, r, wide ? xb : yb, "");
    r = LLVMBuildSelect(B, other, r, wide ? yb : xb, "");
    return wide ? emit_one_nan(w, r, true) : r;
}

/* Without mask registers: the processor gives y where an operand is a NaN, or both are zeros. So what it makes of x and
 * y, and of y and x, differs there alone. */
static val min_max_by_two(struct work *w, const val *x, bool max)
{
    enum { N = 8, PARTS = EMU_LANES / N };
    struct emit *e = w->e;
    val of[2][PARTS], all[2];
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < PARTS; k++) {
            val two[2] = {emit_lanes_from(e, x[i], k * N, N), emit_lanes_from(e, x[!i], k * N, N)};
            const char *name = max ? "llvm.x86.avx.max.ps.256" : "llvm.x86.avx.min.ps.256";
            of[i][k] = emit_intrinsic(e, name, NULL, 0, two, 2);
        }
        all[i] = as_bits(w, emit_joined(e, of[i], PARTS), false);
    }
    val either = LLVMBuildOr(B, all[0], all[1], ""), r = max ? LLVMBuildAnd(B, all[0], all[1], "") : either;
    struct nan_case c;
    emit_begin_nans32(e, &c, as_float(w, either, false));
    return emit_end_nans(e, &c, r, of_numbers_and_nans(w, x, r, false));
}

/* A number wins over a NaN; .NaN: loses. f32: whoever writes makes a NaN canonical */
static val min_max(struct work *w, val *x, bool max, bool wide)
{
    struct emit *e = w->e;
    bool loses = w->in->key & K_NAN, keeps = !wide && !loses && emit_is(e, EMU_ISA_AVX512); /* shape.c: lazy */
    for (unsigned k = 0; k < 2 && !loses; k++)
        if (settles(w, k, max, wide)) return preferred(w, x[!k], x[k], max, wide);
    for (unsigned k = 0; k < 2 && keeps; k++) x[k] = quieted(w, k, x[k]);
    if (keeps && w->vec) return as_bits(w, emit_smaller_or_greater(e, max, x), false);
    if (!wide && w->vec && emit_is(e, EMU_ISA_AVX2)) return min_max_by_two(w, x, max);
    val a = preferred(w, x[0], x[1], max, wide), b = preferred(w, x[1], x[0], max, wide);
    return of_numbers_and_nans(w, x, max ? LLVMBuildAnd(B, a, b, "") : LLVMBuildOr(B, a, b, ""), wide);
}

static val sign_changed(struct work *w, val x, bool wide)
{
    struct emit *e = w->e;
    val bits = as_bits(w, x, wide), sign = lit(w, wide ? EMU_D : EMU_W, wide ? 1ull << 63 : 0x80000000);
    val r =
        w->in->op == MG_OP_neg ? LLVMBuildXor(B, bits, sign, "") : LLVMBuildAnd(B, bits, LLVMBuildNot(B, sign, ""), "");
    if (!wide) return r; /* whoever writes makes a NaN canonical */
    return LLVMBuildSelect(B, ordered(w, x), r, emit_one_nan(w, bits, true), "");
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

val emit_saturated(struct work *w, val r, bool wide)
{
    struct emit *e = w->e;
    val top = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, r, flit(w, wide, 1), ""), r, flit(w, wide, 1), "");
    r = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, r, flit(w, wide, 0), ""), top, flit(w, wide, 0), "");
    return as_bits(w, r, wide);
}

static val approx_double(struct work *w)
{
    bool ftz = w->in->key & K_FTZ;
    val r = emit_approx_double(w->e, (enum mg_op)w->in->op, ftz, w->x[0]);
    if (ftz) return r;
    return LLVMBuildSelect(w->e->b, ordered(w, as_float(w, w->x[0], true)), r, emit_one_nan(w, w->x[0], true), "");
}

val code_float(struct work *w)
{
    struct emit *e = w->e;
    enum mg_op op = (enum mg_op)w->in->op;
    bool wide = w->in->t[0] == MG_TYPE_f64, ftz = w->in->key & K_FTZ;
    val x[3] = {NULL}, from[3], r;
    unsigned n;
    if (w->in->key & K_APPROX && op != MG_OP_div) return wide ? approx_double(w) : emit_approx(e, op, ftz, w->x[0]);
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
        r = w->in->imm ? emit_rounded(e, op, w->in->imm, x) : arithmetic(w, op, x, wide, from, &n);
    if (w->in->key & K_SAT) return emit_saturated(w, r, wide);
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

val code_compare(struct work *w)
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

/* ---- the operations ------------------------------------------------------------------------------------- */

static bool real(const struct work *w)
{
    return is_float(w->in->t[0]);
}

val code_add(struct work *w)
{
    return real(w) ? code_float(w) : LLVMBuildAdd(w->e->b, w->x[0], w->x[1], "");
}
val code_sub(struct work *w)
{
    return real(w) ? code_float(w) : LLVMBuildSub(w->e->b, w->x[0], w->x[1], "");
}
val code_not(struct work *w)
{
    return LLVMBuildNot(w->e->b, w->x[0], "");
}
val code_and(struct work *w)
{
    return LLVMBuildAnd(w->e->b, w->x[0], w->x[1], "");
}
val code_or(struct work *w)
{
    return LLVMBuildOr(w->e->b, w->x[0], w->x[1], "");
}
val code_xor(struct work *w)
{
    return LLVMBuildXor(w->e->b, w->x[0], w->x[1], "");
}
val code_neg(struct work *w)
{
    return real(w) ? code_float(w) : LLVMBuildNeg(w->e->b, w->x[0], "");
}
val code_mov(struct work *w)
{
    return w->x[0];
}
val code_selp(struct work *w)
{
    return LLVMBuildSelect(w->e->b, w->x[2], w->x[0], w->x[1], "");
}

val code_div(struct work *w)
{
    return real(w) ? code_float(w) : code_quotient(w);
}

val code_mul(struct work *w)
{
    struct emit *e = w->e;
    if (real(w)) return code_float(w);
    if (w->in->key == K_WIDE) return product_wide(w);
    if (w->in->key == K_HI)
        return LLVMBuildTrunc(B, LLVMBuildLShr(B, product_wide(w), lit(w, EMU_D, 32), ""), type(w, EMU_W), "");
    return LLVMBuildMul(B, w->x[0], w->x[1], "");
}

val code_mad(struct work *w)
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
val code_min(struct work *w)
{
    return real(w) ? code_float(w) : smaller_or_greater(w, LLVMIntSLT, LLVMIntULT);
}
val code_max(struct work *w)
{
    return real(w) ? code_float(w) : smaller_or_greater(w, LLVMIntSGT, LLVMIntUGT);
}

val code_abs(struct work *w)
{
    struct emit *e = w->e;
    enum emu_class c = bits_of(w->in->t[0]) == 64 ? EMU_D : EMU_W;
    if (real(w)) return code_float(w);
    return LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, w->x[0], lit(w, c, 0), ""), LLVMBuildNeg(B, w->x[0], ""),
                           w->x[0], "");
}

val code_copysign(struct work *w)
{
    struct emit *e = w->e;
    bool wide = bits_of(w->in->t[0]) == 64;
    val sign = lit(w, wide ? EMU_D : EMU_W, wide ? 1ull << 63 : 1u << 31);
    return LLVMBuildOr(B, LLVMBuildAnd(B, w->x[0], sign, ""), LLVMBuildAnd(B, w->x[1], LLVMBuildNot(B, sign, ""), ""),
                       "");
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
    if (in->op == MG_OP_slct) return k == 2;
    return in->t[0] == MG_TYPE_f32 && in->op != MG_OP_mov && in->op != MG_OP_selp && in->op != MG_OP_copysign;
}

static bool is_shift(const struct cpu_inst *in)
{
    return in->op == MG_OP_shl || in->op == MG_OP_shr;
}
/* Arithmetic of 16 bits is done with 32; a register has zeros above. */
static bool is_narrow(const struct cpu_inst *in)
{
    bool moves = in->op == MG_OP_setp || in->op == MG_OP_cvt || in->op == MG_OP_mov || in->op == MG_OP_selp;
    return !moves && in->key != K_WIDE && !is_float(in->t[0]) && bits_of(in->t[0]) == 16;
}

static val run(struct emit *e, const struct cpu_inst *in, bool vec, int half, bool other, uint32_t dest)
{
    struct work w = {.e = e, .in = in, .vec = vec, .other = other};
    bool move = in->op == MG_OP_mov || in->op == MG_OP_selp;
    for (unsigned k = 0; k < 4; k++) {
        if (!in->s[k]) continue;
        bool raw = reads_raw(in, k) || e->chain.mode == NANS_LATER || (move && k < 2 && e->f->regs[dest - 1].lazy);
        w.x[k] = vec ? emit_vec(e, in->s[k], raw) : emit_scalar(e, in->s[k], half, raw);
        if (is_narrow(in) && !(k == 1 && is_shift(in))) w.x[k] = widened(&w, w.x[k], in->t[0]);
    }
    val v = codes[in->op](&w);
    if (is_narrow(in)) v = LLVMBuildAnd(B, v, lit(&w, EMU_W, 0xffff), "");
    bool arithmetic32 = in->t[0] == MG_TYPE_f32 && in->op != MG_OP_setp && in->op != MG_OP_cvt && !move &&
                        in->op != MG_OP_slct && in->op != MG_OP_copysign;
    if (arithmetic32 && !e->f->regs[dest - 1].lazy && !(in->key & K_SAT) && !cpu_is_canonical(in)) v = emit_canon(e, v);
    return v;
}

/* One value in each half of a warp? */
static bool is_of_halves(struct emit *e, uint32_t reg)
{
    const struct cpu_reg *r = reg ? &e->f->regs[reg - 1] : NULL;
    if (!r || cpu_is_constant(r)) return true;
    for (uint32_t i = 0; i < EMU_LANES && !r->shape.varying; i++)
        if (cpu_lane_offset(e->f, r->shape, i) != cpu_lane_offset(e->f, r->shape, i & 16)) return false;
    return !r->shape.varying;
}

/* A comparison of what each half of a warp has one of: of scalars, two bits that become lanes. Vectors of one value
 * would be made, compared and their masks joined where there is one place in a processor for all three. */
static val compared_by_halves(struct emit *e, const struct cpu_inst *in, bool other, uint32_t dest)
{
    val bits = NULL;
    if (in->op != MG_OP_setp || in->imm & 3 || !cpu_is_integer(in->t[0]) || !emit_is(e, EMU_ISA_AVX512)) return NULL;
    if (e->version == LANE || !is_of_halves(e, in->s[0]) || !is_of_halves(e, in->s[1])) return NULL;
    for (int h = 0; h < 2; h++) {
        val one = run(e, in, false, h, other, dest);
        one = LLVMBuildSelect(B, one, k32(e, h ? 0xffff0000 : 0xffff), k32(e, 0), "");
        bits = bits ? LLVMBuildOr(B, bits, one, "") : one;
    }
    return LLVMBuildBitCast(B, bits, e->t.v1, "");
}

/* A linear 32-bit register is extended to 64 bits: that holds for all lanes only when none wraps. */
static void check_wrap(struct emit *e, uint32_t reg, bool sign)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    bool across = e->whole && r->cta && r->step; /* nor between warps: the 64-bit register is to be the CTA's too */
    if (r->kind != CPU_REG_PLAIN || r->cls != EMU_W || r->shape.varying) return;
    int64_t ends[2], warps = across ? r->step * (e->f->region.n_warps - 1) : 0;
    unsigned parts = r->shape.halves ? 2 : 1;
    struct walk_check w;
    val ok = LLVMConstInt(e->t.i1, 1, 0), wide[2];
    cpu_lane_span(e->f, r->shape, UINT32_MAX, &ends[0], &ends[1]);
    bool walks = e->in->d && e->f->regs[e->in->d - 1].widened == e->ix + 1 && reg == e->in->s[0] &&
                 emit_walk_begin(e, &w, WALK_ALL, reg, ends[0], (uint64_t)(ends[1] - ends[0]) + 1, 1);
    ends[0] += MG_MIN(warps, 0);
    ends[1] += MG_MAX(warps, 0);
    for (unsigned h = 0; h < parts && (ends[0] || ends[1] || walks); h++) {
        val own = emit_scalar(e, reg, (int)h, true), base = own;
        if (across)
            base =
                LLVMBuildSub(B, base, LLVMBuildMul(B, e->warp, LLVMConstInt(e->t.i32, (uint64_t)r->step, 0), ""), "");
        val first = sign ? LLVMBuildSExt(B, base, e->t.i64, "") : LLVMBuildZExt(B, base, e->t.i64, "");
        wide[h] = sign ? LLVMBuildSExt(B, own, e->t.i64, "") : LLVMBuildZExt(B, own, e->t.i64, "");
        for (int k = 0; k < 2; k++) {
            if (!ends[k]) continue;
            val end = LLVMBuildAdd(B, first, LLVMConstInt(e->t.i64, (uint64_t)ends[k], 0), ""),
                cut = LLVMBuildTrunc(B, end, e->t.i32, "");
            val back = sign ? LLVMBuildSExt(B, cut, e->t.i64, "") : LLVMBuildZExt(B, cut, e->t.i64, "");
            ok = LLVMBuildAnd(B, ok, LLVMBuildICmp(B, LLVMIntEQ, end, back, ""), "");
        }
    }
    if (walks)
        ok = emit_walk_end(e, &w, ok, wide, parts, k64(e, sign ? (uint64_t)INT32_MIN : 0), k64(e, (uint64_t)1 << 32));
    emit_leave_if(e, LLVMBuildNot(B, ok, ""));
}

static void write_one(struct emit *e, uint32_t reg, bool other)
{
    const struct cpu_inst *in = e->in;
    if (emit_is_vec(e, reg)) {
        val v = compared_by_halves(e, in, other, reg);
        emit_set_vec(e, reg, v ? v : run(e, in, true, 0, other, reg), in->guard ? emit_active(e) : NULL);
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
    if (in->kind == CPU_CLOCK) {
        val now = emit_clock(e);
        if (in->mode) now = LLVMBuildLShr(B, now, LLVMConstInt(e->t.i64, 32, false), "");
        if (!in->d) return true;
        if (e->f->regs[in->d - 1].cls == EMU_W) now = LLVMBuildTrunc(B, now, e->t.i32, "");
        put(e, in->d, e->f->regs[in->d - 1].shape.varying ? emit_splat(e, now) : NULL, now, now);
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
