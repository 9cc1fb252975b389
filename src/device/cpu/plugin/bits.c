/* Bits and whole numbers: shifts, fields, counts, permutations, logic of three operands, quotients; with the emulator's
 * results (vec_alu_bits.c, vec_alu_int.c). */
#include "device/cpu/plugin/work.h"

#define B e->b

val code_shift(struct work *w)
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

/* x, moved up or down by so many bits, from the width of its type on 0 */
static val moved_by(struct work *w, val x, val by, unsigned n, bool up)
{
    struct emit *e = w->e;
    enum emu_class c = n == 64 ? EMU_D : EMU_W;
    val in = LLVMBuildICmp(B, LLVMIntULT, by, lit(w, EMU_W, n), "");
    val amount = LLVMBuildAnd(B, n == 64 ? to64(w, by, false) : by, lit(w, c, n - 1), "");
    val r = up ? LLVMBuildShl(B, x, amount, "") : LLVMBuildLShr(B, x, amount, "");
    return LLVMBuildSelect(B, in, r, lit(w, c, 0), "");
}
/* The lowest `length` bits, all from the width on */
static val low_bits(struct work *w, val length, unsigned n)
{
    struct emit *e = w->e;
    enum emu_class c = n == 64 ? EMU_D : EMU_W;
    return LLVMBuildSub(B, moved_by(w, lit(w, c, 1), length, n, true), lit(w, c, 1), "");
}
/* Positions and lengths: modulo 256 where the field is one of 32 bits */
static val place(struct work *w, val x, unsigned n)
{
    struct emit *e = w->e;
    return n == 32 ? LLVMBuildAnd(B, x, lit(w, EMU_W, 255), "") : x;
}

val code_bfe(struct work *w)
{
    struct emit *e = w->e;
    unsigned n = bits_of(w->in->t[0]);
    enum emu_class c = n == 64 ? EMU_D : EMU_W;
    val at = place(w, w->x[1], n), length = place(w, w->x[2], n), zero = lit(w, c, 0);
    if (!is_signed(w->in->t[0])) {
        val down = moved_by(w, w->x[0], at, n, false);
        return LLVMBuildAnd(B, down, low_bits(w, length, n), "");
    }
    val last = lit(w, EMU_W, n - 1), inside = LLVMBuildICmp(B, LLVMIntULT, at, last, "");
    val down = LLVMBuildSelect(B, inside, at, last, ""), up = LLVMBuildSub(B, lit(w, EMU_W, n), length, "");
    up = LLVMBuildAnd(B, up, last, "");
    if (n == 64) down = to64(w, down, false), up = to64(w, up, false);
    val all = LLVMBuildAShr(B, w->x[0], down, ""), cut = LLVMBuildAShr(B, LLVMBuildShl(B, all, up, ""), up, "");
    val whole = LLVMBuildICmp(B, LLVMIntUGE, length, lit(w, EMU_W, n), "");
    val none = LLVMBuildICmp(B, LLVMIntEQ, length, lit(w, EMU_W, 0), "");
    return LLVMBuildSelect(B, none, zero, LLVMBuildSelect(B, whole, all, cut, ""), "");
}

val code_bfi(struct work *w)
{
    struct emit *e = w->e;
    unsigned n = bits_of(w->in->t[0]);
    val at = place(w, w->x[2], n), cut = low_bits(w, place(w, w->x[3], n), n);
    val mask = moved_by(w, cut, at, n, true), field = moved_by(w, LLVMBuildAnd(B, w->x[0], cut, ""), at, n, true);
    return LLVMBuildOr(B, LLVMBuildAnd(B, w->x[1], LLVMBuildNot(B, mask, ""), ""), field, "");
}

val code_count_bits(struct work *w)
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

/* The place of the highest bit that is not the sign's; all ones: there is none */
val code_bfind(struct work *w)
{
    struct emit *e = w->e;
    unsigned n = bits_of(w->in->t[0]);
    enum emu_class c = n == 64 ? EMU_D : EMU_W;
    LLVMTypeRef t = type(w, c);
    val x = w->x[0];
    if (is_signed(w->in->t[0])) x = LLVMBuildXor(B, x, LLVMBuildAShr(B, x, lit(w, c, n - 1), ""), "");
    val args[2] = {x, LLVMConstInt(e->t.i1, 0, 0)}, zeros = emit_intrinsic(e, "llvm.ctlz", &t, 1, args, 2);
    if (n == 64) zeros = LLVMBuildTrunc(B, zeros, type(w, EMU_W), "");
    val at = w->in->key & K_SHIFTAMT ? zeros : LLVMBuildSub(B, lit(w, EMU_W, n - 1), zeros, "");
    val none = LLVMBuildICmp(B, LLVMIntEQ, x, lit(w, c, 0), "");
    return LLVMBuildSelect(B, none, lit(w, EMU_W, UINT32_MAX), at, "");
}

/* Each bit of the table: an entry for a, b and c */
val code_lop3(struct work *w)
{
    struct emit *e = w->e;
    val no = LLVMBuildNot(B, w->x[2], ""), part[4];
    for (unsigned k = 0; k < 4; k++) {
        unsigned pair = w->in->imm >> 2 * k & 3;
        part[k] = pair == 0 ? lit(w, EMU_W, 0) : pair == 1 ? no : pair == 2 ? w->x[2] : lit(w, EMU_W, UINT32_MAX);
    }
    for (unsigned n = 2; n; n--) /* by b, then by a */
        for (unsigned k = 0; k < n; k++) {
            val by = w->x[n - 1];
            part[k] = LLVMBuildOr(B, LLVMBuildAnd(B, by, part[2 * k + 1], ""),
                                  LLVMBuildAnd(B, LLVMBuildNot(B, by, ""), part[2 * k], ""), "");
        }
    return part[0];
}

val code_shf(struct work *w)
{
    struct emit *e = w->e;
    bool left = w->in->key & K_L;
    LLVMTypeRef t = type(w, EMU_W);
    val args[3] = {w->x[1], w->x[0], w->x[2]}, r = emit_intrinsic(e, left ? "llvm.fshl" : "llvm.fshr", &t, 1, args, 3);
    if (w->in->key & K_WRAP) return r;
    val in = LLVMBuildICmp(B, LLVMIntULT, w->x[2], lit(w, EMU_W, 32), "");
    return LLVMBuildSelect(B, in, r, w->x[left ? 0 : 1], "");
}

/* Each byte of the result: one of the eight of b and a, or eight times its sign */
val code_prmt(struct work *w)
{
    struct emit *e = w->e;
    val both = LLVMBuildOr(B, LLVMBuildShl(B, to64(w, w->x[1], false), lit(w, EMU_D, 32), ""), to64(w, w->x[0], false),
                           ""),
        r = lit(w, EMU_W, 0);
    for (unsigned k = 0; k < 4; k++) {
        val sel = LLVMBuildLShr(B, w->x[2], lit(w, EMU_W, 4 * k), "");
        val by = LLVMBuildShl(B, LLVMBuildAnd(B, sel, lit(w, EMU_W, 7), ""), lit(w, EMU_W, 3), "");
        val byte = LLVMBuildTrunc(B, LLVMBuildLShr(B, both, to64(w, by, false), ""), type(w, EMU_W), "");
        val top = LLVMBuildShl(B, byte, lit(w, EMU_W, 24), ""), sign = LLVMBuildAShr(B, top, lit(w, EMU_W, 31), "");
        val signs = LLVMBuildICmp(B, LLVMIntNE, LLVMBuildAnd(B, sel, lit(w, EMU_W, 8), ""), lit(w, EMU_W, 0), "");
        byte = LLVMBuildAnd(B, LLVMBuildSelect(B, signs, sign, byte, ""), lit(w, EMU_W, 255), "");
        r = LLVMBuildOr(B, r, LLVMBuildShl(B, byte, lit(w, EMU_W, 8 * k), ""), "");
    }
    return r;
}

val code_slct(struct work *w)
{
    struct emit *e = w->e;
    if (w->in->t[1] != MG_TYPE_f32)
        return LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSGE, w->x[2], lit(w, EMU_W, 0), ""), w->x[0], w->x[1], "");
    val c = as_float(w, w->x[2], false);
    if (w->in->key & K_FTZ) c = emit_flushed(e, c);
    return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGE, c, flit(w, false, 0), ""), w->x[0], w->x[1], "");
}

/* By the quotient of doubles, cut: exact for 32 bits; y is not 0 */
static val quotient_by_double(struct work *w, val x, val y)
{
    struct emit *e = w->e;
    LLVMTypeRef t = ftype(w, true);
    if (is_signed(w->in->t[0])) {
        val q = LLVMBuildFDiv(B, LLVMBuildSIToFP(B, x, t, ""), LLVMBuildSIToFP(B, y, t, ""), "");
        return LLVMBuildFPToSI(B, q, type(w, EMU_W), "");
    }
    val q = LLVMBuildFDiv(B, LLVMBuildUIToFP(B, x, t, ""), LLVMBuildUIToFP(B, y, t, ""), "");
    return LLVMBuildFPToUI(B, q, type(w, EMU_W), "");
}

/* Quotient and remainder; by zero both are all ones, by -1 there is no trap. */
val code_quotient(struct work *w)
{
    struct emit *e = w->e;
    unsigned n = bits_of(w->in->t[0]);
    enum emu_class c = n == 64 ? EMU_D : EMU_W;
    bool sign = is_signed(w->in->t[0]);
    val x = w->x[0], y = w->x[1], zero = lit(w, c, 0), one = lit(w, c, 1), q;
    val none = LLVMBuildICmp(B, LLVMIntEQ, y, zero, ""), odd = none, minus = NULL;
    if (sign) {
        minus = LLVMBuildICmp(B, LLVMIntEQ, y, lit(w, c, UINT64_MAX), "");
        odd = LLVMBuildOr(B, none, minus, "");
    }
    val by = LLVMBuildSelect(B, odd, one, y, "");
    if (w->vec && n <= 32 && !LLVMIsConstant(by))
        q = quotient_by_double(w, x, by);
    else
        q = sign ? LLVMBuildSDiv(B, x, by, "") : LLVMBuildUDiv(B, x, by, "");
    if (sign) q = LLVMBuildSelect(B, minus, LLVMBuildNeg(B, x, ""), q, "");
    if (w->in->op == MG_OP_rem) q = LLVMBuildSub(B, x, LLVMBuildMul(B, q, y, ""), "");
    return LLVMBuildSelect(B, none, lit(w, c, UINT64_MAX), q, "");
}

/* Products of 24 bits: the lower 32 of their 48, or the upper */
static val product24(struct work *w)
{
    struct emit *e = w->e;
    bool sign = is_signed(w->in->t[0]);
    val x[2], eight = lit(w, EMU_W, 8);
    for (unsigned k = 0; k < 2; k++) {
        val top = LLVMBuildShl(B, w->x[k], eight, "");
        x[k] = sign ? LLVMBuildAShr(B, top, eight, "") : LLVMBuildLShr(B, top, eight, "");
    }
    if ((w->in->key & K_PART) == K_LO) return LLVMBuildMul(B, x[0], x[1], "");
    val wide = LLVMBuildMul(B, to64(w, x[0], sign), to64(w, x[1], sign), "");
    return LLVMBuildTrunc(B, LLVMBuildLShr(B, wide, lit(w, EMU_D, 16), ""), type(w, EMU_W), "");
}
val code_mul24(struct work *w)
{
    return product24(w);
}
val code_mad24(struct work *w)
{
    return LLVMBuildAdd(w->e->b, product24(w), w->x[2], "");
}

val code_sad(struct work *w)
{
    struct emit *e = w->e;
    val less = LLVMBuildICmp(B, is_signed(w->in->t[0]) ? LLVMIntSLT : LLVMIntULT, w->x[0], w->x[1], "");
    val d = LLVMBuildSub(B, w->x[0], w->x[1], "");
    return LLVMBuildAdd(B, w->x[2], LLVMBuildSelect(B, less, LLVMBuildNeg(B, d, ""), d, ""), "");
}
