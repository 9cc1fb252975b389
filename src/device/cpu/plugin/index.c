/* Lanes anywhere, as compilers address arrays: base[index[lane]], where the base is one address for all lanes and the
 * index has 32 bits. PTX has addresses of 64 bits: an addition of the base and a product or a conversion of the index,
 * which lie in front of the access. So indices are compared, 16 at once instead of 8, with the first and the last that
 * lie inside, and gathers take the base and the indices as they are. */
#include "device/cpu/plugin/emit.h"

#include "device/emu/alu_form.h"

#define B e->b

/* The operation of the block in front of `before` that last wrote the register; NULL: none there. */
static const struct cpu_inst *writer(struct emit *e, uint32_t reg, const struct cpu_inst *before)
{
    const struct cpu_inst *first = &e->f->insts[e->f->blocks[e->block].first];
    while (before-- > first)
        if (cpu_defines(e->f, before, reg)) return before->guard || before->d != reg ? NULL : before;
    return NULL;
}

/* Has the register at the access what it had at operation `from`? */
static bool is_kept(struct emit *e, uint32_t reg, const struct cpu_inst *from)
{
    for (; from < e->in; from++)
        if (cpu_defines(e->f, from, reg)) return false;
    return true;
}

static bool is_flat(struct emit *e, uint32_t reg)
{
    return reg && (cpu_is_constant(&e->f->regs[reg - 1]) || cpu_is_uniform(e->f->regs[reg - 1].shape));
}

struct found {
    uint32_t reg, base; /* of 32 bits, of 64 */
    uint64_t mask;
    int64_t scale;
    bool is_signed;
};

/* A product of 32 bits and a constant, as 64 */
static bool is_product(struct emit *e, const struct cpu_inst *w, struct found *x)
{
    if (w->kind != CPU_ALU || (w->op != MG_OP_mul && w->op != MG_OP_mad) || w->key != K_WIDE ||
        (w->t[0] != MG_TYPE_s32 && w->t[0] != MG_TYPE_u32) || !cpu_constant_of(e->f, w->s[1], &x->scale))
        return false;
    x->reg = w->s[0];
    x->is_signed = w->t[0] == MG_TYPE_s32;
    return true;
}

/* 32 bits as 64 */
static bool is_extension(struct emit *e, const struct cpu_inst *w, struct found *x)
{
    bool cvt = w->kind == CPU_ALU && w->op == MG_OP_cvt && (w->t[0] == MG_TYPE_u64 || w->t[0] == MG_TYPE_s64) &&
               (w->t[1] == MG_TYPE_u32 || w->t[1] == MG_TYPE_s32);
    if (!cvt && w->kind != CPU_ZEXT && w->kind != CPU_SEXT) return false;
    x->reg = w->s[0];
    x->is_signed = cvt ? w->t[1] == MG_TYPE_s32 : w->kind == CPU_SEXT;
    return is_kept(e, x->reg, w);
}

/* By how much the register `reg`, of 64 bits, differs from the base: index times scale. */
static bool find_offset(struct emit *e, uint32_t reg, const struct cpu_inst *before, struct found *x)
{
    int64_t c;
    const struct cpu_inst *w = writer(e, reg, before);
    if (w && is_product(e, w, x)) return w->op == MG_OP_mul && is_kept(e, x->reg, w);
    if (w && w->kind == CPU_ALU && w->op == MG_OP_shl && cpu_constant_of(e->f, w->s[1], &c) && c >= 0 && c < 4) {
        x->scale = 1ll << c;
        w = writer(e, w->s[0], w);
    }
    if (w && w->kind == CPU_ALU && w->op == MG_OP_and && cpu_constant_of(e->f, w->s[1], &c) &&
        (uint64_t)c < 1ull << 32) {
        x->mask = (uint64_t)c;
        w = writer(e, w->s[0], w);
        return w && is_extension(e, w, x) && !x->is_signed;
    }
    return w && is_extension(e, w, x);
}

static bool find(struct emit *e, struct found *x)
{
    const struct cpu_inst *in = e->in, *w = in->s[0] ? writer(e, in->s[0], in) : NULL;
    if (!w || w->kind != CPU_ALU || e->f->regs[in->s[0] - 1].cls != EMU_D) return false;
    if (w->op == MG_OP_mad) {
        x->base = w->s[2];
        if (!is_product(e, w, x) || !is_kept(e, x->reg, w)) return false;
    } else {
        uint32_t flat = is_flat(e, w->s[0]) ? 0 : 1;
        if (w->op != MG_OP_add || !cpu_is_integer(w->t[0])) return false;
        x->base = w->s[flat];
        if (!find_offset(e, w->s[!flat], w, x)) return false;
    }
    return is_flat(e, x->base) && is_kept(e, x->base, w) && e->f->regs[x->reg - 1].cls == EMU_W &&
           e->f->regs[x->reg - 1].shape.varying && x->scale > 0 && x->scale <= 8 && !(x->scale & (x->scale - 1));
}

/* The access's addresses as a base and indices; false: others. sign: an index may be below 0 */
bool emit_find_index(struct emit *e, struct lane_addresses *at, bool *sign)
{
    struct found x = {.mask = UINT32_MAX, .scale = 1};
    if (e->in->where != EMU_AT_GLOBAL || !find(e, &x)) return false;
    val base = emit_scalar(e, x.base, 0, false), index = emit_vec(e, x.reg, false);
    if (x.mask != UINT32_MAX) index = LLVMBuildAnd(B, index, emit_int(e, EMU_W, x.mask, true), "");
    *at = (struct lane_addresses){
        .first = LLVMBuildAdd(B, base, k64(e, (uint64_t)e->in->off), ""), .index = index, .scale = (unsigned)x.scale};
    *sign = x.is_signed;
    return true;
}

static val extreme(struct emit *e, bool most, val a, int64_t b)
{
    val two[2] = {a, k64(e, (uint64_t)b)};
    return emit_intrinsic(e, most ? "llvm.smax" : "llvm.smin", &e->t.i64, 1, two, 2);
}

/* Do all (active) lanes lie inside, `bytes` each, at multiples of as many? Inside are indices from `least` to `most`:
 * what lies further on than 2^31 - 1 is said to lie outside, so that an index is its own signed value. */
val emit_index_inside(struct emit *e, const struct lane_addresses *at, bool sign, val lo, val size, unsigned bytes,
                      val lanes)
{
    val shift = k64(e, (uint64_t)__builtin_ctz(at->scale)), from = LLVMBuildSub(B, lo, at->first, ""),
        to = LLVMBuildAdd(B, from, LLVMBuildSub(B, size, k64(e, bytes), ""), "");
    val least = LLVMBuildAShr(B, LLVMBuildAdd(B, from, k64(e, at->scale - 1), ""), shift, ""),
        most = LLVMBuildAShr(B, to, shift, "");
    least = extreme(e, true, least, sign ? INT32_MIN : 0);
    most = extreme(e, false, most, INT32_MAX);
    val some = LLVMBuildICmp(B, LLVMIntSLE, least, most, ""),
        even = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, at->first, k64(e, bytes - 1), ""), k64(e, 0), "");
    val off = LLVMBuildSub(B, at->index, emit_splat(e, LLVMBuildTrunc(B, least, e->t.i32, "")), ""),
        range = emit_splat(e, LLVMBuildTrunc(B, LLVMBuildSub(B, most, least, ""), e->t.i32, ""));
    val bad = LLVMBuildICmp(B, LLVMIntUGT, off, range, "");
    if (bytes > at->scale) {
        val low = LLVMBuildAnd(B, at->index, emit_int(e, EMU_W, bytes / at->scale - 1, true), "");
        bad = LLVMBuildOr(B, bad, LLVMBuildICmp(B, LLVMIntNE, low, emit_int(e, EMU_W, 0, true), ""), "");
    }
    if (lanes) bad = LLVMBuildAnd(B, bad, lanes, "");
    val good = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, bad, e->t.i32, ""), k32(e, 0), "");
    return LLVMBuildAnd(B, good, LLVMBuildAnd(B, some, even, ""), "");
}

/* Where the lane with this index is. */
val emit_index_pointer(struct emit *e, const struct lane_addresses *at, val index)
{
    val off = LLVMBuildMul(B, LLVMBuildSExt(B, index, e->t.i64, ""), k64(e, at->scale), "");
    return emit_host_pointer(e, e->in, LLVMBuildAdd(B, at->first, off, ""));
}

/* Loads lanes of `bytes`, or with AVX-512 stores v where it is not NULL. lanes: all that are active */
void emit_gather_index(struct emit *e, const struct lane_addresses *at, unsigned bytes, val lanes, val v, val *loaded)
{
    static const char *const names[3][2] = {
        {"llvm.x86.avx2.gather.d.d.256", "llvm.x86.avx2.gather.d.q.256"},
        {"llvm.x86.avx512.mask.gather.dpi.512", "llvm.x86.avx512.mask.gather.dpq.512"},
        {"llvm.x86.avx512.mask.scatter.dpi.512", "llvm.x86.avx512.mask.scatter.dpq.512"}};
    bool wide = emit_is(e, EMU_ISA_AVX512);
    unsigned n = (wide ? 64 : 32) / bytes;
    LLVMTypeRef t = emit_mem_type(e, bytes), vt = LLVMVectorType(t, n);
    val p = emit_host_pointer(e, e->in, at->first), scale = LLVMConstInt(wide ? e->t.i32 : e->t.i8, at->scale, 0),
        got[8];
    for (unsigned k = 0; k < 32 / n; k++) {
        val index = emit_lanes_from(e, at->index, k * n, n), some = emit_lanes_from(e, lanes, k * n, n),
            of = v ? emit_lanes_from(e, v, k * n, n) : LLVMGetPoison(vt);
        if (!wide) some = LLVMBuildSExt(B, some, vt, "");
        val load[5] = {of, p, index, some, scale}, store[5] = {p, some, index, of, scale};
        got[k] =
            emit_program(e, emit_intrinsic(e, names[wide + (v != NULL)][bytes == 8], NULL, 0, v ? store : load, 5));
    }
    if (!v) *loaded = emit_joined(e, got, 32 / n);
}
