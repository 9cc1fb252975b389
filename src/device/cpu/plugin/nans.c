/* f64 arithmetic of a block, looked through for NaNs once.
 *
 * What becomes of a NaN's payload is not what the processor does with it, so results have to be looked at. Every
 * operation here makes a NaN of a NaN: where none of the last results is one, none was before them. So operations that
 * lie together in a block are made as the processor does them (a chain), up to one that reads a result otherwise, or
 * may leave the code; if there is a NaN among the results that no operation of the chain has read, all of them are made
 * once more, from what their registers held before, as the emulator does them.
 */
#include "device/cpu/plugin/work.h"

#include <stdlib.h>

#define B e->b

enum { MOST_IN_CHAIN = 16 };

/* Does the operation make a NaN of each lane where an operand is one, and nothing but a vector? */
static bool joins(struct emit *e, const struct cpu_inst *in)
{
    if (in->kind != CPU_ALU || e->version > PART || in->guard || in->d2 || !in->d || !emit_is_vec(e, in->d))
        return false;
    if (e->f->regs[in->d - 1].settled || in->key & (K_SAT | K_FTZ | K_APPROX | K_FULL) || in->imm) return false;
    if (in->op == MG_OP_cvt)
        return (in->t[0] == MG_TYPE_f64 && in->t[1] == MG_TYPE_f32) ||
               (in->t[0] == MG_TYPE_f32 && in->t[1] == MG_TYPE_f64);
    if (in->t[0] != MG_TYPE_f64) return false;
    switch (in->op) {
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_mul:
    case MG_OP_mad:
    case MG_OP_fma:
    case MG_OP_div:
    case MG_OP_rcp:
    case MG_OP_sqrt:
        return true;
    default:
        return false;
    }
}

/* May the operation have to leave the code, so that the emulator sees all registers? */
static bool may_leave(struct emit *e, const struct cpu_inst *in)
{
    switch ((enum cpu_kind)in->kind) {
    case CPU_NOP:
    case CPU_PARAM:
    case CPU_MOV:
    case CPU_NOT_P:
    case CPU_LOW:
        return false;
    case CPU_ALU: /* scalars of 64 bits from such of 32: lanes may wrap */
        return in->d2 || (in->d && !emit_is_vec(e, in->d) && (in->key == K_WIDE || in->op == MG_OP_cvt));
    case CPU_ZEXT:
    case CPU_SEXT:
        return in->d && !emit_is_vec(e, in->d);
    case CPU_LOAD:
        return in->mode || emit_may_leave(e);
    default:
        return true;
    }
}

struct touch {
    const struct nan_chain *c;
    bool any;
};
static void touches_written(void *user, uint32_t r)
{
    struct touch *t = user;
    t->any |= mg_has(t->c->written, r);
}
static void touches_read(void *user, uint32_t r, bool must)
{
    struct touch *t = user;
    (void)must;
    t->any |= mg_has(t->c->written, r) || mg_has(t->c->read, r);
}

static bool touches(struct emit *e, const struct cpu_inst *in)
{
    struct touch t = {.c = &e->chain};
    cpu_each_use(e->f, in, touches_written, &t);
    cpu_each_def(e->f, in, touches_read, &t);
    return t.any;
}

/* No NaN in a and b so far: with mask registers each comparison takes in what the one before it has found, so that
 * these are as wide as one register. */
static val add_numbers(struct emit *e, val so_far, val a, val b)
{
    unsigned n = LLVMGetTypeKind(LLVMGetElementType(LLVMTypeOf(a))) == LLVMDoubleTypeKind ? 8 : 16;
    if (!emit_is(e, EMU_ISA_AVX512)) n = EMU_LANES;
    for (unsigned k = 0; k < EMU_LANES; k += n) {
        val one = a == b ? emit_lanes_from(e, a, k, n) : NULL;
        val good = LLVMBuildFCmp(B, LLVMRealORD, one ? one : emit_lanes_from(e, a, k, n),
                                 one ? one : emit_lanes_from(e, b, k, n), "");
        so_far = so_far ? LLVMBuildAnd(B, so_far, good, "") : good;
    }
    return so_far;
}

/* Is there no NaN among the results that nobody in the chain has read? One comparison looks at two. */
static val all_numbers(struct emit *e)
{
    struct nan_chain *c = &e->chain;
    val good[2] = {NULL}, waits[2] = {NULL}, all = NULL;
    for (uint32_t k = 0; k < c->n; k++) {
        struct nan_link *l = &c->links[k];
        bool wide = e->f->insts[l->at].t[0] == MG_TYPE_f64;
        if (l->covered) continue;
        if (waits[wide]) good[wide] = add_numbers(e, good[wide], waits[wide], l->result);
        waits[wide] = waits[wide] ? NULL : l->result;
    }
    for (unsigned w = 0; w < 2; w++) {
        if (waits[w]) good[w] = add_numbers(e, good[w], waits[w], waits[w]);
        if (!good[w]) continue;
        LLVMTypeRef bits = LLVMIntTypeInContext(e->c, LLVMGetVectorSize(LLVMTypeOf(good[w])));
        val one = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildBitCast(B, good[w], bits, ""), LLVMConstAllOnes(bits), "");
        all = all ? LLVMBuildAnd(B, all, one, "") : one;
    }
    return all;
}

/* All operations once more, from what registers held when the chain began. */
static void make_again(struct emit *e)
{
    struct nan_chain *c = &e->chain;
    for (uint32_t k = 0; k < c->n; k++)
        if (c->links[k].before) LLVMBuildStore(B, c->links[k].before, e->vars[e->f->insts[c->links[k].at].d - 1].at[0]);
    c->mode = NANS_MADE;
    for (uint32_t k = 0; k < c->n; k++) {
        e->ix = c->links[k].at;
        e->in = &e->f->insts[e->ix];
        emit_alu(e);
    }
    c->mode = NANS_EACH;
}

void emit_end_chain(struct emit *e)
{
    struct nan_chain *c = &e->chain;
    if (!c->n) return;
    const struct cpu_inst *in = e->in;
    uint32_t ix = e->ix;
    val cached = e->lanes;
    LLVMBasicBlockRef nans = emit_block(e, "nans"), on = emit_block(e, "numbers");
    emit_usually(e, all_numbers(e), on, nans);
    LLVMPositionBuilderAtEnd(B, nans);
    make_again(e);
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
    e->in = in;
    e->ix = ix;
    e->lanes = cached;
    for (uint32_t i = 0; i < e->f->reg_words; i++) c->read[i] = c->written[i] = 0;
    c->n = 0;
}

static void read_by_chain(void *user, uint32_t r)
{
    struct nan_chain *c = user;
    mg_put(c->read, r);
    for (uint32_t k = c->n; k-- > 0;)
        if (c->links[k].reg == r) {
            c->links[k].covered = true;
            return;
        }
}

/* Before an operation: does it go on with the chain, begin one, or end it? */
void emit_step_chain(struct emit *e)
{
    struct nan_chain *c = &e->chain;
    const struct cpu_inst *in = e->in;
    bool member = joins(e, in);
    c->mode = NANS_EACH;
    if (c->n && (member ? c->n == MOST_IN_CHAIN : may_leave(e, in) || touches(e, in))) emit_end_chain(e);
    if (!member) return;
    c->mode = NANS_LATER;
    cpu_each_use(e->f, in, read_by_chain, c);
    struct nan_link *l = &c->links[c->n++];
    *l = (struct nan_link){.at = e->ix, .reg = in->d - 1};
    if (!mg_has(c->written, l->reg)) {
        val at = e->vars[l->reg].at[0];
        l->before = LLVMBuildLoad2(B, LLVMGetAllocatedType(at), at, "");
    }
    mg_put(c->written, l->reg);
}

void emit_link_chain(struct emit *e, val result)
{
    e->chain.links[e->chain.n - 1].result = result;
}

bool emit_chain_new(struct emit *e)
{
    struct nan_chain *c = &e->chain;
    c->links = calloc(MOST_IN_CHAIN, sizeof *c->links);
    c->read = calloc(e->f->reg_words + 1, sizeof *c->read);
    c->written = calloc(e->f->reg_words + 1, sizeof *c->written);
    return c->links && c->read && c->written;
}

void emit_chain_free(struct emit *e)
{
    free(e->chain.links);
    free(e->chain.read);
    free(e->chain.written);
}
