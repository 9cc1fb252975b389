/* Memory that a CTA touches next is fetched before (whole-CTA code).
 *
 * All loads of a CTA, or of a round of a loop with barriers in it, come together, then all warps compute; loops without
 * barriers step over the whole grid: the processor's own prefetchers see no stream. But most addresses move by the same
 * amount from one time to the next. So an access whose lanes lie together remembers how far it moved, in warp 0 unless its warp
 * goes round a loop alone, and asks for what lies as far ahead. What every CTA touches once is asked for bit by bit where its other
 * regions begin, since all at once would wait for memory. A wrong guess costs a fetch and cannot fault. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#define B e->b
#define LINE 64
#define MOST_LINES 8
#define ROUNDS 4 /* of a loop that a warp goes round alone: so far ahead */
#define CTAS 2 /* so far ahead where a CTA's warps touch memory in different places: neighbours often share its edges */
#define SPREAD_LINES 64

static val k64(struct emit *e, uint64_t v) { return LLVMConstInt(e->i64, v, 0); }

static val variable(struct emit *e)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(e->fn)));
    val at = LLVMBuildAlloca(B, e->i64, "");
    LLVMBuildStore(B, k64(e, 0), at);
    LLVMPositionBuilderAtEnd(B, here);
    return at;
}

/* Does the warp come to this block again; before it stops? */
static bool comes_again(struct emit *e, bool before_stop)
{
    const struct cpu_func *f = e->f;
    uint32_t *stack = calloc(f->n_blocks + 260, sizeof *stack), n = 0, succ[260];
    uint64_t *seen = calloc(f->block_words, sizeof *seen);
    bool found = false;
    if (!stack || !seen) abort();
    for (stack[n++] = e->block; n && !found;) {
        uint32_t x = stack[--n], m = before_stop && cpu_stop_of(f, x) ? 0 : cpu_successors(f, x, succ, MG_COUNT_OF(succ));
        for (uint32_t k = 0; k < m; k++) {
            found |= succ[k] == e->block;
            if (mg_has(seen, succ[k])) continue;
            mg_put(seen, succ[k]);
            stack[n++] = succ[k];
        }
    }
    free(stack);
    free(seen);
    return found;
}

static void fetch(struct emit *e, val p, val ahead, bool write)
{
    val args[4] = {LLVMBuildGEP2(B, e->i8, p, &ahead, 1, ""), LLVMConstInt(e->i32, write, 0), LLVMConstInt(e->i32, 3, 0), LLVMConstInt(e->i32, 1, 0)};
    emit_intrinsic(e, "llvm.prefetch", &e->ptr, 1, args, 4);
}

/* p: where the access is, n of them; moves: the operation whose check stands for it. */
void emit_ahead(struct emit *e, uint32_t moves, const val *p, unsigned n, uint64_t bytes)
{
    struct ahead *a = &e->ahead[moves];
    const struct cpu_reg *r = e->in->s[0] ? &e->f->regs[e->in->s[0] - 1] : NULL;
    bool again = comes_again(e, false), alone = comes_again(e, true), load = e->in->kind == CPU_LOAD;
    bool bits = !again && r && r->cta && r->step > 0; /* the CTA's warps follow one another */
    if (again ? alone && !load : e->f->n_starts == 1 || !r) return;
    if (moves == e->ix) {
        if (!a->last) a->last = variable(e), a->by = variable(e);
        val at = LLVMBuildPtrToInt(B, p[0], e->i64, ""), last = LLVMBuildLoad2(B, e->i64, a->last, ""), by = LLVMBuildSub(B, at, last, "");
        if (!alone) {
            val first = LLVMBuildICmp(B, LLVMIntEQ, e->warp, LLVMConstInt(e->i32, 0, 0), "");
            by = LLVMBuildSelect(B, first, by, LLVMBuildLoad2(B, e->i64, a->by, ""), "");
            at = LLVMBuildSelect(B, first, at, last, "");
        }
        LLVMBuildStore(B, at, a->last);
        LLVMBuildStore(B, by, a->by);
        if (bits) a->lines = (uint32_t)MG_MIN((uint64_t)r->step * e->f->n_warps / LINE, SPREAD_LINES);
    }
    if (!a->by || bits) return;
    val by = LLVMBuildMul(B, LLVMBuildLoad2(B, e->i64, a->by, ""), k64(e, alone ? ROUNDS : again ? 1 : CTAS), "");
    for (uint64_t k = 0, lines = MG_MIN((bytes + LINE - 1) / LINE, MOST_LINES); k < n * lines; k++) fetch(e, p[k / lines], LLVMBuildAdd(B, by, k64(e, k % lines * LINE), ""), !load);
}

/* Region `which` (not the first) begins at bb: its part of what the CTA's accesses touch the next time. */
void emit_ahead_start(struct emit *e, uint32_t which, LLVMBasicBlockRef bb)
{
    LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(bb));
    for (uint32_t i = 0; i < e->f->n_insts; i++) {
        const struct ahead *a = &e->ahead[i];
        uint32_t share = (a->lines + e->f->n_starts - 2) / (e->f->n_starts - 1), from = (which - 1) * share;
        if (from >= a->lines) continue;
        val p = LLVMBuildIntToPtr(B, LLVMBuildLoad2(B, e->i64, a->last, ""), e->ptr, ""), by = LLVMBuildLoad2(B, e->i64, a->by, "");
        for (uint32_t k = from; k < MG_MIN(from + share, a->lines); k++) fetch(e, p, LLVMBuildAdd(B, by, k64(e, (uint64_t)k * LINE), ""), e->f->insts[i].kind == CPU_STORE);
    }
}
