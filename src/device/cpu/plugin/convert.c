/* Conversions, with the emulator's results (vec_alu_cvt.c). */
#include "device/cpu/plugin/work.h"

#define B e->b

/* To an integral value of its own type */
static val rounded(struct work *w, val x, bool wide)
{
    static const char *const names[] = {
        [K_RNI] = "llvm.rint", [K_RZI] = "llvm.trunc", [K_RMI] = "llvm.floor", [K_RPI] = "llvm.ceil"};
    LLVMTypeRef t = ftype(w, wide);
    return emit_intrinsic(w->e, names[w->in->key & K_ROUND], &t, 1, &x, 1);
}

/* What a conversion to an integer clamps to: the least, the largest float below 2^n, where `most` begins */
struct range {
    double low, top, limit;
    uint64_t most, nan;
};
static struct range range_of(unsigned t, bool wide)
{
    unsigned n = bits_of(t);
    bool sign = is_signed(t);
    double limit = n == 64 ? (sign ? 0x1p63 : 0x1p64) : (sign ? 0x1p31 : 0x1p32);
    struct range r = {.low = sign ? -limit : 0, .limit = limit, .most = UINT64_MAX >> (64 - n + sign)};
    r.top = wide ? limit - (n == 64 ? (sign ? 0x1p10 : 0x1p11) : 1) : limit * (1 - 0x1p-24);
    if (wide && n == 32) r.limit = r.top;
    if (wide || n == 64) r.nan = 1ull << (n - 1);
    return r;
}

static val to_integer(struct work *w, bool wide)
{
    struct emit *e = w->e;
    unsigned d = w->in->t[0];
    enum emu_class c = bits_of(d) == 64 ? EMU_D : EMU_W;
    struct range to = range_of(d, wide);
    val x = as_float(w, w->x[0], wide);
    if (w->in->key & K_FTZ) x = emit_flushed(e, x);
    if ((w->in->key & K_ROUND) != K_RZI) x = rounded(w, x, wide);
    val low = flit(w, wide, to.low), top = flit(w, wide, to.top);
    val in = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, x, low, ""), x, low, "");
    in = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, in, top, ""), in, top, "");
    val r = is_signed(d) ? LLVMBuildFPToSI(B, in, type(w, c), "") : LLVMBuildFPToUI(B, in, type(w, c), "");
    val over = LLVMBuildFCmp(B, LLVMRealOGE, x, flit(w, wide, to.limit), "");
    r = LLVMBuildSelect(B, over, lit(w, c, to.most), r, "");
    return LLVMBuildSelect(B, ordered(w, x), r, lit(w, c, to.nan), "");
}

static val widen(struct work *w, val x)
{
    struct emit *e = w->e;
    struct nan_case c;
    val v = as_float(w, x, false), wide = LLVMBuildFPExt(B, v, ftype(w, true), ""), r = as_bits(w, wide, true);
    if (emit_later(w, wide)) return r;
    emit_begin_nans(w, &c, v);
    val u = to64(w, x, false);
    val nan = LLVMBuildOr(B, LLVMBuildShl(B, LLVMBuildAnd(B, u, lit(w, EMU_D, 0x80000000), ""), lit(w, EMU_D, 32), ""),
                          LLVMBuildShl(B, LLVMBuildAnd(B, u, lit(w, EMU_D, 0x7fffff), ""), lit(w, EMU_D, 29), ""), "");
    nan = LLVMBuildOr(B, nan, lit(w, EMU_D, 0x7ff8000000000000ull), "");
    return emit_end_nans(e, &c, r, LLVMBuildSelect(B, ordered(w, v), r, nan, ""));
}

static val narrow(struct work *w, val x)
{
    struct emit *e = w->e;
    struct nan_case c;
    val v = as_float(w, x, true), less = LLVMBuildFPTrunc(B, v, ftype(w, false), ""), r = as_bits(w, less, false);
    if (emit_later(w, less)) return r;
    emit_begin_nans(w, &c, v);
    val sign = LLVMBuildAnd(B, LLVMBuildLShr(B, x, lit(w, EMU_D, 32), ""), lit(w, EMU_D, 0x80000000), "");
    val nan = LLVMBuildOr(B, sign,
                          LLVMBuildAnd(B, LLVMBuildLShr(B, x, lit(w, EMU_D, 29), ""), lit(w, EMU_D, 0x7fffff), ""), "");
    nan = LLVMBuildTrunc(B, LLVMBuildOr(B, nan, lit(w, EMU_D, 0x7fc00000), ""), type(w, EMU_W), "");
    return emit_end_nans(e, &c, r, LLVMBuildSelect(B, ordered(w, v), r, nan, ""));
}

/* .ftz: what lies below 2^-126 when 24 bits are rounded with any exponent is a zero */
static val narrow_ftz(struct work *w, val x)
{
    struct emit *e = w->e;
    val size = LLVMBuildAnd(B, x, lit(w, EMU_D, INT64_MAX), ""), r = narrow(w, x);
    val small = LLVMBuildFCmp(B, LLVMRealOLT, as_float(w, size, true), flit(w, true, 0x1p-126 - 0x1p-151), "");
    return LLVMBuildSelect(B, small, LLVMBuildAnd(B, r, lit(w, EMU_W, 0x80000000), ""), r, "");
}

/* Half precision: by the processor, NaNs as the emulator has them */
static LLVMTypeRef half_type(struct work *w)
{
    LLVMTypeRef t = LLVMHalfTypeInContext(w->e->c);
    return w->vec ? LLVMVectorType(t, 32) : t;
}
static LLVMTypeRef short_type(struct work *w)
{
    return w->vec ? LLVMVectorType(w->e->t.i16, 32) : w->e->t.i16;
}
static val from_half(struct work *w, val x)
{
    struct emit *e = w->e;
    val h = LLVMBuildBitCast(B, LLVMBuildTrunc(B, x, short_type(w), ""), half_type(w), "");
    return emit_canon(e, as_bits(w, LLVMBuildFPExt(B, h, ftype(w, false), ""), false));
}
static val to_half(struct work *w, val x)
{
    struct emit *e = w->e;
    val f = as_float(w, x, false), h = LLVMBuildBitCast(B, LLVMBuildFPTrunc(B, f, half_type(w), ""), short_type(w), "");
    return LLVMBuildSelect(B, ordered(w, f), LLVMBuildZExt(B, h, type(w, EMU_W), ""), lit(w, EMU_W, 0x7fff), "");
}
static val to_bf16(struct work *w, val x)
{
    struct emit *e = w->e;
    val odd = LLVMBuildAnd(B, LLVMBuildLShr(B, x, lit(w, EMU_W, 16), ""), lit(w, EMU_W, 1), "");
    val up = LLVMBuildAdd(B, LLVMBuildAdd(B, x, lit(w, EMU_W, 0x7fff), ""), odd, "");
    return LLVMBuildSelect(B, ordered(w, as_float(w, x, false)), LLVMBuildLShr(B, up, lit(w, EMU_W, 16), ""),
                           lit(w, EMU_W, 0x7fff), "");
}

static val float_to_float(struct work *w, unsigned d, unsigned s)
{
    struct emit *e = w->e;
    bool ftz = w->in->key & K_FTZ;
    val x = w->x[0];
    if (d == MG_TYPE_f32 && s == MG_TYPE_f64) return ftz ? narrow_ftz(w, x) : narrow(w, x);
    val v = as_float(w, x, s == MG_TYPE_f64);
    if (ftz) v = emit_flushed(e, v);
    if (d != s) return widen(w, ftz ? emit_canon(e, as_bits(w, v, false)) : x);
    if (w->in->key & K_SAT) return emit_saturated(w, v, d == MG_TYPE_f64);
    if (!(w->in->key & K_ROUND)) return emit_canon(e, as_bits(w, v, false));
    val r = rounded(w, v, d == MG_TYPE_f64);
    if (d == MG_TYPE_f32) return emit_canon(e, as_bits(w, r, false));
    return LLVMBuildSelect(B, ordered(w, v), as_bits(w, r, true), emit_one_nan(w, x, true), "");
}

val code_convert(struct work *w)
{
    struct emit *e = w->e;
    unsigned d = w->in->t[0], s = w->in->t[1];
    val x = w->x[0];
    if (s == MG_TYPE_f16) return from_half(w, x);
    if (s == MG_TYPE_bf16) return LLVMBuildShl(B, x, lit(w, EMU_W, 16), "");
    if (d == MG_TYPE_f16) return to_half(w, x);
    if (d == MG_TYPE_bf16) return to_bf16(w, x);
    if (is_float(s)) return is_float(d) ? float_to_float(w, d, s) : to_integer(w, s == MG_TYPE_f64);
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
