/* Checks that hold for CTAs to come (whole-CTA code). A CTA's neighbours in x compute what it computes, of registers
 * that grow by the same from one to the next (device/cpu/walk.c). So whoever finds that an access lies inside, or that
 * no lane's word wraps where it is extended, finds it for all warps of the next CTAs, too, and notes up to which one.
 * Those that come to the same check only compare their number with that. Nothing is noted beyond a row of the grid. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#define B e->b

enum {
    MOST_CTAS = 255,    /* ahead; the row's last CTAs may fail, and what fails is looked at again by each */
    MOST_ACCESSES = 32, /* of global memory: the code grows by each */
};

void emit_walk_new(struct emit *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->f->n_insts; i++)
        n += (e->f->insts[i].kind == CPU_LOAD || e->f->insts[i].kind == CPU_STORE) &&
             e->f->insts[i].where == EMU_AT_GLOBAL;
    if (n > MOST_ACCESSES) return;
    for (unsigned k = 0; k < WALKS; k++) e->ahead.walks[k] = mg_xcalloc(e->f->n_insts + 1, sizeof *e->ahead.walks[k]);
}

static struct walk_slot *slot_of(struct emit *e, enum walk_which which, uint32_t ix)
{
    struct walk_slot *s = &e->ahead.walks[which][ix];
    if (s->until) return s;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(e->fn)));
    s->until = LLVMBuildAlloca(B, e->t.i32, "");
    LLVMSetVolatile(LLVMBuildStore(B, k32(e, 0), s->until), 1);
    LLVMPositionBuilderAtEnd(B, here);
    return s;
}

/* Not kept in a register: there are many, and each is read once a warp. */
static val until(struct emit *e, const struct walk_slot *s)
{
    val v = LLVMBuildLoad2(B, e->t.i32, s->until, "");
    LLVMSetVolatile(v, 1);
    return v;
}

bool emit_walk_begin(struct emit *e, struct walk_check *w, enum walk_which which, uint32_t reg, int64_t least,
                     uint64_t span, uint32_t align)
{
    const struct cpu_func *f = e->f;
    const struct cpu_reg *r = reg ? &f->regs[reg - 1] : NULL;
    uint32_t warps = f->region.n_warps - 1;
    *w = (struct walk_check){.reg = r, .least = least, .span = span};
    if (!e->ahead.walks[0] || e->version > PART || !r || r->kind != CPU_REG_PLAIN || !r->walks || r->known ||
        r->shape.varying || r->walk[0] % align || (warps && r->walk[1] % align))
        return false;
    if (warps) w->step = r->walk[1];
    struct walk_slot *s = slot_of(e, which, e->ix);
    if (s->used && (s->least != least || s->span != span)) return false;
    s->used = true, s->least = least, s->span = span;
    w->slot = s;
    w->from = LLVMGetInsertBlock(B);
    w->on = emit_block(e, "holds");
    LLVMBasicBlockRef look = emit_block(e, "look");
    emit_usually(e, LLVMBuildICmp(B, LLVMIntULT, emit_ctaid(e, 0), until(e, s), ""), w->on, look);
    LLVMPositionBuilderAtEnd(B, look);
    w->width = emit_field(e, e->t.i32, offsetof(struct cpu_call, nctaid));
    LLVMSetVolatile(w->width, 1); /* what follows stays here */
    return true;
}

val emit_walk_end(struct emit *e, const struct walk_check *w, val ok, const val *base, unsigned n, val lo, val size)
{
    int64_t far = w->step * (e->f->region.n_warps - 1), by = w->reg->walk[0];
    val x = emit_ctaid(e, 0), rest = LLVMBuildSub(B, LLVMBuildSub(B, w->width, k32(e, 1), ""), x, "");
    val args[2] = {rest, k32(e, MOST_CTAS)}, ctas = emit_intrinsic(e, "llvm.umin", &e->t.i32, 1, args, 2), good = NULL;
    LLVMBasicBlockRef some = emit_block(e, "next"), last, none = LLVMGetInsertBlock(B);
    LLVMBuildCondBr(B, LLVMBuildAnd(B, ok, LLVMBuildICmp(B, LLVMIntNE, rest, k32(e, 0), ""), ""), some, w->on);
    LLVMPositionBuilderAtEnd(B, some);
    val wide = LLVMBuildZExt(B, ctas, e->t.i64, ""), moved = LLVMBuildMul(B, wide, k64(e, (uint64_t)by), "");
    val own = LLVMBuildMul(B, LLVMBuildZExt(B, e->warp, e->t.i64, ""), k64(e, (uint64_t)w->step), "");
    val bytes = LLVMBuildAdd(B, LLVMBuildMul(B, wide, k64(e, (uint64_t)llabs(by)), ""),
                             k64(e, w->span + (uint64_t)llabs(far) - 1), "");
    for (unsigned k = 0; k < n; k++) {
        val from = LLVMBuildAdd(B, base[k], k64(e, (uint64_t)(w->least + MG_MIN(far, 0))), "");
        from = LLVMBuildSub(B, from, own, "");
        if (by < 0) from = LLVMBuildAdd(B, from, moved, "");
        val two[2] = {size, bytes};
        val all = LLVMBuildICmp(B, LLVMIntULT, LLVMBuildSub(B, from, lo, ""),
                                emit_intrinsic(e, "llvm.usub.sat", &e->t.i64, 1, two, 2), "");
        good = good ? LLVMBuildAnd(B, good, all, "") : all;
    }
    val to = LLVMBuildAdd(B, LLVMBuildAdd(B, x, ctas, ""), k32(e, 1), "");
    if (w->reg->widened) {
        val two[2] = {to, until(e, slot_of(e, WALK_ALL, w->reg->widened - 1))};
        to = emit_intrinsic(e, "llvm.umin", &e->t.i32, 1, two, 2);
    }
    LLVMSetVolatile(LLVMBuildStore(B, LLVMBuildSelect(B, good, to, k32(e, 0), ""), w->slot->until), 1);
    last = LLVMGetInsertBlock(B);
    LLVMBuildBr(B, w->on);
    LLVMPositionBuilderAtEnd(B, w->on);
    val all = LLVMBuildPhi(B, e->t.i1, ""), yes = LLVMConstInt(e->t.i1, 1, 0);
    LLVMAddIncoming(all, &yes, (LLVMBasicBlockRef *)&w->from, 1);
    LLVMAddIncoming(all, &ok, &none, 1);
    LLVMAddIncoming(all, &yes, &last, 1);
    return all;
}

void emit_walk_row(struct emit *e, LLVMBasicBlockRef bb)
{
    val at = LLVMGetFirstInstruction(bb);
    LLVMPositionBuilderBefore(B, at);
    for (unsigned k = 0; k < WALKS; k++)
        for (uint32_t i = 0; i < e->f->n_insts && e->ahead.walks[k]; i++)
            if (e->ahead.walks[k][i].until)
                LLVMSetVolatile(LLVMBuildStore(B, k32(e, 0), e->ahead.walks[k][i].until), 1);
}
