/* Registers as LLVM values: scalars for linear ones, vectors for the others. */
#include "device/cpu/plugin/emit.h"

#include <string.h>

#define B e->b

LLVMTypeRef emit_type(struct emit *e, enum emu_class c, bool vec)
{
    if (c == EMU_P) return vec ? e->t.v1 : e->t.i1;
    if (c == EMU_W) return vec ? e->t.v32 : e->t.i32;
    return vec ? e->t.v64 : e->t.i64;
}

val emit_splat(struct emit *e, val s)
{
    LLVMTypeRef vt = LLVMVectorType(LLVMTypeOf(s), 32);
    if (LLVMIsConstant(s)) {
        val all[32];
        for (int i = 0; i < 32; i++) all[i] = s;
        return LLVMConstVector(all, 32);
    }
    if (LLVMTypeOf(s) == e->t.i1 && emit_is(e, EMU_ISA_AVX512)) /* a mask register from a word */
        return LLVMBuildBitCast(B, LLVMBuildSExt(B, s, e->t.i32, ""), vt, "");
    val one = LLVMBuildInsertElement(B, LLVMGetPoison(vt), s, LLVMConstInt(e->t.i32, 0, 0), "");
    return LLVMBuildShuffleVector(B, one, LLVMGetPoison(vt), LLVMConstNull(e->t.v32), "");
}

val emit_int(struct emit *e, enum emu_class c, uint64_t v, bool vec)
{
    val s = LLVMConstInt(emit_type(e, c, false), c == EMU_P ? v & 1 : v, 0);
    return vec ? emit_splat(e, s) : s;
}

val emit_iota(struct emit *e, LLVMTypeRef t, int64_t step)
{
    val all[32];
    (void)e;
    for (int i = 0; i < 32; i++) all[i] = LLVMConstInt(t, (uint64_t)(step * i), 0);
    return LLVMConstVector(all, 32);
}

val emit_at(struct emit *e, val base, uint64_t off)
{
    val ix = LLVMConstInt(e->t.i64, off, 0);
    return off ? LLVMBuildGEP2(B, e->t.i8, base, &ix, 1, "") : base;
}

val emit_field(struct emit *e, LLVMTypeRef t, size_t off)
{
    return LLVMBuildLoad2(B, t, emit_at(e, e->call, off), "");
}
void emit_set_field(struct emit *e, size_t off, val v)
{
    LLVMBuildStore(B, v, emit_at(e, e->call, off));
}

val emit_state(struct emit *e, LLVMTypeRef t, size_t off)
{
    return LLVMBuildLoad2(B, t, emit_at(e, e->state, off), "");
}
void emit_set_state(struct emit *e, size_t off, val v)
{
    LLVMBuildStore(B, v, emit_at(e, e->state, off));
}

static val pointer_of_warp(struct emit *e, size_t off)
{
    val v = emit_state(e, e->t.ptr, off);
    LLVMSetMetadata(v, e->alias.invariant, e->alias.nothing);
    return v;
}
val emit_frame(struct emit *e)
{
    return pointer_of_warp(e, offsetof(struct cpu_warp, frame));
}
val emit_regs(struct emit *e)
{
    return emit_at(e, emit_frame(e), offsetof(struct emu_frame, regs));
}
val emit_linear(struct emit *e)
{
    return pointer_of_warp(e, offsetof(struct cpu_warp, linear));
}
val emit_masks(struct emit *e)
{
    return pointer_of_warp(e, offsetof(struct cpu_warp, masks));
}

val emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef *types, unsigned n_types, val *args, unsigned n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    val fn = LLVMGetIntrinsicDeclaration(e->m, id, types, n_types);
    return LLVMBuildCall2(B, LLVMIntrinsicGetType(e->c, id, types, n_types), fn, args, n, "");
}

LLVMBasicBlockRef emit_block(struct emit *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->c, e->fn, name);
}

val emit_canon(struct emit *e, val bits)
{
    bool vec = LLVMGetTypeKind(LLVMTypeOf(bits)) == LLVMVectorTypeKind;
    val x = LLVMBuildBitCast(B, bits, vec ? e->t.vf32 : e->t.f32, "");
    val nan = LLVMBuildFCmp(B, LLVMRealUNO, x, x, "");
    return LLVMBuildSelect(B, nan, emit_int(e, EMU_W, 0x7fffffff, vec), bits, "");
}

/* Two registers are looked at in one comparison: a fifth of what a choice for each lane takes without mask registers.
 */
void emit_begin_nans32(struct emit *e, struct nan_case *c, val x)
{
    unsigned n = emit_is(e, EMU_ISA_AVX512) ? 16 : 8;
    LLVMTypeRef bits = LLVMIntTypeInContext(e->c, n);
    val any = NULL;
    if (e->version != FULL) x = LLVMBuildFreeze(B, x, ""); /* lanes that do not run may have no value */
    for (unsigned k = 0; k < EMU_LANES; k += 2 * n) {
        val nan = LLVMBuildFCmp(B, LLVMRealUNO, emit_lanes_from(e, x, k, n), emit_lanes_from(e, x, k + n, n), "");
        any = any ? LLVMBuildOr(B, any, nan, "") : nan;
    }
    *c = (struct nan_case){LLVMGetInsertBlock(B), emit_block(e, "nans"), emit_block(e, "numbers")};
    val none = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, any, bits, ""), LLVMConstNull(bits), "");
    emit_usually(e, none, c->on, c->nans);
    LLVMPositionBuilderAtEnd(B, c->nans);
}

val emit_end_nans(struct emit *e, const struct nan_case *c, val usual, val seldom)
{
    if (!c->on) return seldom;
    LLVMBuildBr(B, c->on);
    LLVMPositionBuilderAtEnd(B, c->on);
    val both = LLVMBuildPhi(B, LLVMTypeOf(usual), "");
    LLVMAddIncoming(both, &usual, (LLVMBasicBlockRef *)&c->before, 1);
    LLVMAddIncoming(both, &seldom, (LLVMBasicBlockRef *)&c->nans, 1);
    return both;
}

val emit_canon_seldom(struct emit *e, val bits)
{
    if (!emit_is(e, EMU_ISA_AVX2)) return emit_canon(e, bits);
    struct nan_case c;
    emit_begin_nans32(e, &c, LLVMBuildBitCast(B, bits, e->t.vf32, ""));
    return emit_end_nans(e, &c, bits, emit_canon(e, bits));
}

/* ---- masks ------------------------------------------------------------------------------------------ */

val emit_mask(struct emit *e)
{
    return e->version == FULL ? LLVMConstInt(e->t.i32, UINT32_MAX, 0) : e->mask;
}

/* Where there are no mask registers LLVM would take a number apart bit by bit. */
val emit_lanes_of(struct emit *e, val bits)
{
    if (emit_is(e, EMU_ISA_AVX512) || LLVMIsConstant(bits)) return LLVMBuildBitCast(B, bits, e->t.v1, "");
    val own[32];
    for (unsigned i = 0; i < 32; i++) own[i] = LLVMConstInt(e->t.i32, 1u << i, 0);
    val bit = LLVMConstVector(own, 32);
    return LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, emit_splat(e, bits), bit, ""), bit, "");
}

val emit_lanes(struct emit *e)
{
    if (e->version == FULL) return NULL;
    if (!e->lanes) e->lanes = emit_lanes_of(e, e->mask);
    return e->lanes;
}

val emit_guard_scalar(struct emit *e)
{
    val g = emit_scalar(e, e->in->guard, 0, true);
    return e->in->guard_not ? LLVMBuildNot(B, g, "") : g;
}

val emit_guard(struct emit *e)
{
    if (!e->in->guard) return NULL;
    val g = emit_vec(e, e->in->guard, true);
    return e->in->guard_not ? LLVMBuildNot(B, g, "") : g;
}

val emit_active(struct emit *e)
{
    val g = emit_guard(e), l = emit_lanes(e);
    return !g ? l : !l ? g : LLVMBuildAnd(B, g, l, "");
}

/* ---- special registers ------------------------------------------------------------------------------ */

/* tid at lane 16 * half, from the warp's number and the block's shape. */
static val spot(struct emit *e, unsigned comp, int half)
{
    const uint32_t *d = e->f->dims;
    val t = LLVMBuildShl(B, e->warp, LLVMConstInt(e->t.i32, 5, 0), "");
    if (half) t = LLVMBuildAdd(B, t, LLVMConstInt(e->t.i32, 16, 0), "");
    bool line = d[1] == 1 && d[2] == 1;
    if (line) return comp ? LLVMConstInt(e->t.i32, 0, 0) : t;
    val x = LLVMConstInt(e->t.i32, d[0], 0), y = LLVMConstInt(e->t.i32, d[1], 0);
    if (comp == 0) return LLVMBuildURem(B, t, x, "");
    t = LLVMBuildUDiv(B, t, x, "");
    return comp == 1 ? LLVMBuildURem(B, t, y, "") : LLVMBuildUDiv(B, t, y, "");
}

static val special(struct emit *e, const struct cpu_reg *r, int half)
{
    unsigned c = r->comp;
    uint64_t lane = half ? 16 : 0;
    switch (r->sreg) {
    case MG_SREG_tid:
        return c > 2 ? LLVMConstInt(e->t.i32, 0, 0) : spot(e, c, half);
    case MG_SREG_laneid:
        return LLVMConstInt(e->t.i32, lane, 0);
    case MG_SREG_WARP_SZ:
        return LLVMConstInt(e->t.i32, 32, 0);
    case MG_SREG_warpid:
        return e->warp;
    case MG_SREG_ntid:
        if (c > 2) return LLVMConstInt(e->t.i32, 0, 0);
        if (e->f->dims[0]) return LLVMConstInt(e->t.i32, e->f->dims[c], 0);
        break;
    case MG_SREG_ctaid:
        if (e->whole && c <= 2) return emit_ctaid(e, c);
        return c > 2 ? LLVMConstInt(e->t.i32, 0, 0) : emit_field(e, e->t.i32, offsetof(struct cpu_call, ctaid) + 4 * c);
    case MG_SREG_nctaid:
        return c > 2 ? LLVMConstInt(e->t.i32, 0, 0)
                     : emit_field(e, e->t.i32, offsetof(struct cpu_call, nctaid) + 4 * c);
    default:
        break;
    }
    LLVMTypeRef t = emit_type(e, (enum emu_class)r->cls, false);
    if (r->cls == EMU_P)
        return LLVMBuildTrunc(B, LLVMBuildLoad2(B, e->t.i32, emit_at(e, emit_regs(e), r->off), ""), e->t.i1, "");
    return LLVMBuildLoad2(B, t, emit_at(e, emit_regs(e), r->off), "");
}

static val lanemask(struct emit *e, unsigned sreg)
{
    val all[32];
    for (unsigned i = 0; i < 32; i++) {
        uint32_t lt = (1u << i) - 1, le = (uint32_t)((2ull << i) - 1);
        uint32_t v = sreg == MG_SREG_lanemask_eq   ? 1u << i
                     : sreg == MG_SREG_lanemask_lt ? lt
                     : sreg == MG_SREG_lanemask_le ? le
                     : sreg == MG_SREG_lanemask_gt ? ~le
                                                   : ~lt;
        all[i] = LLVMConstInt(e->t.i32, v, 0);
    }
    return LLVMConstVector(all, 32);
}

/* The warp's own array of thread numbers. */
static val tid_array(struct emit *e, unsigned comp)
{
    val w = LLVMBuildLoad2(B, e->t.ptr, emit_at(e, emit_frame(e), offsetof(struct emu_frame, w)), "");
    val at = emit_at(e, w, offsetof(struct emu_warp, tid) + comp * sizeof(uint32_t) * EMU_LANES);
    val v = LLVMBuildLoad2(B, e->t.v32, at, "");
    LLVMSetAlignment(v, 4);
    return v;
}

/* ---- reading ------------------------------------------------------------------------------------------ */

/* Variables are allocas, or of settled registers, places in the frame. */
static unsigned var_alignment(const struct cpu_reg *r)
{
    return !r->shape.varying ? r->cls == EMU_P ? 1 : r->cls == EMU_W ? 4 : 8 : r->cls == EMU_P ? 4 : 64;
}

static val read_var(struct emit *e, uint32_t reg, LLVMTypeRef t, int half)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (e->version == LANE) return LLVMBuildLoad2(B, t, e->serial.vars[reg - 1], "");
    val v = LLVMBuildLoad2(B, t, e->vars[reg - 1].at[half], "");
    if (r->settled) LLVMSetAlignment(v, var_alignment(r));
    return v;
}

static void write_var(struct emit *e, uint32_t reg, int half, val v)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (e->version == LANE) {
        if (e->serial.vars[reg - 1]) LLVMBuildStore(B, v, e->serial.vars[reg - 1]); /* else a constant */
        return;
    }
    val s = LLVMBuildStore(B, v, e->vars[reg - 1].at[half]);
    if (r->settled) LLVMSetAlignment(s, var_alignment(r));
}

bool emit_is_linear(struct emit *e, uint32_t reg)
{
    return e->f->regs[reg - 1].kind == CPU_REG_CONST || !e->f->regs[reg - 1].shape.varying;
}

bool emit_is_vec(struct emit *e, uint32_t reg)
{
    return e->version != LANE && e->f->regs[reg - 1].shape.varying;
}
int emit_parts(struct emit *e, uint32_t reg)
{
    return e->version != LANE && e->f->regs[reg - 1].shape.halves ? 2 : 1;
}

val emit_scalar(struct emit *e, uint32_t reg, int half, bool raw)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    LLVMTypeRef t = emit_type(e, (enum emu_class)r->cls, false);
    if (cpu_is_constant(r)) return emit_int(e, (enum emu_class)r->cls, r->value, false);
    if (e->version == LANE && r->kind == CPU_REG_SREG && !cpu_is_uniform(r->shape))
        return LLVMBuildLoad2(B, t, e->serial.vars[reg - 1], "");
    if (r->kind == CPU_REG_SREG && (r->shape.halves || !half || r->sreg == MG_SREG_laneid || r->sreg == MG_SREG_tid))
        return special(e, r, half);
    if (r->kind == CPU_REG_SREG) return special(e, r, 0);
    val v = read_var(e, reg, t, half && r->shape.halves);
    int64_t off = half && !r->shape.halves ? cpu_lane_offset(e->f, r->shape, 16) : 0;
    if (off) v = LLVMBuildAdd(B, v, LLVMConstInt(t, (uint64_t)off, 0), "");
    return r->lazy && !raw ? emit_canon(e, v) : v;
}

/* What lanes have more than their base; NULL: nothing. */
static val lane_offsets(struct emit *e, struct cpu_shape s, LLVMTypeRef t)
{
    val steps[32];
    if (!s.stride && !s.tile) return NULL;
    for (unsigned i = 0; i < 32; i++) steps[i] = LLVMConstInt(t, (uint64_t)cpu_lane_offset(e->f, s, i), 0);
    return LLVMConstVector(steps, 32);
}

val emit_lane_offset(struct emit *e, struct cpu_shape s, LLVMTypeRef t, val lane)
{
    if (s.tile) return LLVMBuildExtractElement(B, lane_offsets(e, s, t), lane, "");
    if (!s.stride) return NULL;
    if (s.halves) lane = LLVMBuildAnd(B, lane, LLVMConstInt(e->t.i32, 15, 0), "");
    return LLVMBuildMul(B, LLVMBuildIntCast2(B, lane, t, 0, ""), LLVMConstInt(t, (uint64_t)(int64_t)s.stride, 0), "");
}

static val spread(struct emit *e, const struct cpu_reg *r, val b0, val b1)
{
    val v = emit_splat(e, b0), pick[32], off = lane_offsets(e, r->shape, LLVMTypeOf(b0));
    if (r->shape.halves) {
        for (unsigned i = 0; i < 32; i++) pick[i] = LLVMConstInt(e->t.i32, i < 16 ? i : 32 + i, 0);
        v = LLVMBuildShuffleVector(B, v, emit_splat(e, b1), LLVMConstVector(pick, 32), "");
    }
    return off ? LLVMBuildAdd(B, v, off, "") : v;
}

val emit_vec(struct emit *e, uint32_t reg, bool raw)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (cpu_is_constant(r)) return emit_int(e, (enum emu_class)r->cls, r->value, true);
    if (r->kind == CPU_REG_SREG && r->shape.varying)
        return r->sreg == MG_SREG_tid ? tid_array(e, r->comp) : lanemask(e, r->sreg);
    if (!r->shape.varying)
        return spread(e, r, emit_scalar(e, reg, 0, raw), r->shape.halves ? emit_scalar(e, reg, 1, raw) : NULL);
    val v = read_var(e, reg, emit_type(e, (enum emu_class)r->cls, true), 0);
    return r->lazy && !raw ? emit_canon(e, v) : v;
}

/* ---- writing ------------------------------------------------------------------------------------------ */

void emit_set_scalar(struct emit *e, uint32_t reg, int half, val v, val guard)
{
    if (guard) v = LLVMBuildSelect(B, guard, v, read_var(e, reg, LLVMTypeOf(v), half), "");
    write_var(e, reg, half, v);
}

void emit_set_vec(struct emit *e, uint32_t reg, val v, val active)
{
    if (!active && mg_has(e->f->blocks[e->block].keep, reg - 1)) active = emit_lanes(e);
    if (active) v = LLVMBuildSelect(B, active, v, read_var(e, reg, LLVMTypeOf(v), 0), "");
    write_var(e, reg, 0, v);
}

/* ---- the frame ------------------------------------------------------------------------------------------ */

val emit_slot(struct emit *e, uint32_t reg)
{
    return emit_at(e, emit_regs(e), e->f->regs[reg - 1].off);
}

void emit_spill(struct emit *e, uint32_t reg)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (r->cls == EMU_Q || r->kind == CPU_REG_CONST) return;
    if (r->kind == CPU_REG_SREG && r->sreg != MG_SREG_tid && r->sreg != MG_SREG_ctaid) {
        bool known = r->sreg == MG_SREG_laneid || r->sreg == MG_SREG_WARP_SZ || r->sreg == MG_SREG_warpid ||
                     r->sreg == MG_SREG_ntid || r->sreg == MG_SREG_nctaid ||
                     (r->sreg >= MG_SREG_lanemask_eq && r->shape.varying);
        if (!known) return; /* in the frame already */
    }
    if (r->settled && r->shape.varying) return; /* that is where it lives */
    val v = emit_vec(e, reg, false);
    if (r->cls == EMU_P) v = LLVMBuildBitCast(B, v, e->t.i32, "");
    val s = LLVMBuildStore(B, v, emit_slot(e, reg));
    LLVMSetAlignment(s, r->cls == EMU_P ? 4 : 64);
}

val emit_linear_place(struct emit *e, const struct cpu_reg *r, int half)
{
    return emit_at(e, emit_linear(e), (uint64_t)(r->linear - 1) * 16 + 8 * (unsigned)half);
}

/* On the way out and in: linear registers as their bases, the others as in the frame. */
void emit_save(struct emit *e, uint32_t reg)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (r->cls == EMU_Q || r->kind != CPU_REG_PLAIN || r->settled) return;
    if (!r->linear) {
        emit_spill(e, reg);
        return;
    }
    for (int h = 0; h < (r->shape.halves ? 2 : 1); h++)
        LLVMBuildStore(B, LLVMBuildZExt(B, emit_scalar(e, reg, h, false), e->t.i64, ""), emit_linear_place(e, r, h));
}

void emit_restore(struct emit *e, uint32_t reg)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (r->cls == EMU_Q || r->kind != CPU_REG_PLAIN || r->settled) return;
    if (!r->linear) {
        emit_reload(e, reg, NULL, NULL, NULL);
        return;
    }
    LLVMTypeRef t = emit_type(e, (enum emu_class)r->cls, false);
    for (int h = 0; h < (r->shape.halves ? 2 : 1); h++) {
        val v = LLVMBuildLoad2(B, e->t.i64, emit_linear_place(e, r, h), "");
        write_var(e, reg, h, r->cls == EMU_D ? v : LLVMBuildTrunc(B, v, t, ""));
    }
}

/* lane: one whose value counts; low and high: one in each half. */
void emit_reload(struct emit *e, uint32_t reg, val lane, val low, val high)
{
    const struct cpu_reg *r = &e->f->regs[reg - 1];
    if (r->cls == EMU_Q || r->kind != CPU_REG_PLAIN || (r->settled && r->shape.varying)) return;
    val slot = emit_slot(e, reg);
    LLVMTypeRef t = emit_type(e, (enum emu_class)r->cls, false);
    if (r->shape.varying) {
        val v = LLVMBuildLoad2(B, r->cls == EMU_P ? e->t.i32 : emit_type(e, (enum emu_class)r->cls, true), slot, "");
        LLVMSetAlignment(v, r->cls == EMU_P ? 4 : 64);
        if (r->cls == EMU_P) v = emit_lanes_of(e, v);
        write_var(e, reg, 0, v);
        return;
    }
    for (int h = 0; h < (r->shape.halves ? 2 : 1); h++) {
        val l = r->shape.halves ? h ? high : low : lane, v;
        if (r->cls == EMU_P) {
            v = LLVMBuildLoad2(B, e->t.i32, slot, "");
            v = LLVMBuildTrunc(B, LLVMBuildLShr(B, v, l, ""), e->t.i1, "");
        } else {
            val ix = LLVMBuildZExt(B, l, e->t.i64, "");
            v = LLVMBuildLoad2(B, t, LLVMBuildGEP2(B, t, slot, &ix, 1, ""), "");
            val off = emit_lane_offset(e, r->shape, t, l);
            if (off) v = LLVMBuildSub(B, v, off, "");
        }
        write_var(e, reg, h, v);
    }
}
