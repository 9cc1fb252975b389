/* Memory that a CTA touches next is fetched before (whole-CTA code).
 *
 * All loads of a CTA, or of a round of a loop with barriers in it, come together, then all warps compute; loops without
 * barriers step over the whole grid: the processor's own prefetchers see no stream. But most addresses move by the same
 * amount from one time to the next. So an access whose lanes lie together remembers how far it moved, in warp 0 unless
 * its warp goes round a loop alone, and asks for what lies as far ahead. A warp that goes round such a loop a few times
 * also asks for what the next warp will load there, which is later and nearer: often in the same pages; into the second
 * cache, since rounds may lie so that they share few places in the first. What every CTA touches once is asked for bit
 * by bit where its other regions begin, since all at once would wait for memory; where those are few, by each warp for
 * several CTAs later. A wrong guess costs a fetch and cannot fault. */
#include "device/cpu/plugin/emit.h"

#include <stdlib.h>

#define B          e->b
#define LINE       64
#define MOST_LINES 8
#define ROUNDS     4 /* of a loop that a warp goes round alone: so far ahead */
#define LEAST                                                                                                          \
    (4 *                                                                                                               \
     ROUNDS) /* of such a loop: what is asked for in fewer is not asked for in time, and costs more than it brings */
#define CTAS                                                                                                           \
    2 /* so far ahead; where a CTA's warps touch memory in different places neighbours often share its edges           \
       */
#define FAR_CTAS     8 /* where there are few regions */
#define SPREAD_LINES 64
#define SHARE_LINES  8    /* where one region begins: more at once hold up what is loaded next */
#define LOOP_LINES   1024 /* that the next warp may load in a loop: they have to stay in the cache so long */

static val variable(struct emit *e, uint64_t v)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
    LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(LLVMGetEntryBasicBlock(e->fn)));
    val at = LLVMBuildAlloca(B, e->t.i64, "");
    LLVMBuildStore(B, k64(e, v), at);
    LLVMPositionBuilderAtEnd(B, here);
    return at;
}

/* Does the warp come to this block again; before it stops? */
static bool comes_again(struct emit *e, bool before_stop)
{
    const struct cpu_func *f = e->f;
    uint64_t *after = mg_xcalloc(f->block_words, sizeof *after);
    mg_graph_after(before_stop ? &f->within : &f->succ, e->block, after, NULL);
    bool again = mg_has(after, e->block);
    free(after);
    return again;
}

/* near: into the first cache as well, which has no room for what a whole round of a loop loads. */
static void fetch(struct emit *e, val p, val ahead, bool write, bool near)
{
    val args[4] = {LLVMBuildGEP2(B, e->t.i8, p, &ahead, 1, ""), LLVMConstInt(e->t.i32, write, 0),
                   LLVMConstInt(e->t.i32, near ? 3 : 2, 0), LLVMConstInt(e->t.i32, 1, 0)};
    emit_intrinsic(e, "llvm.prefetch", &e->t.ptr, 1, args, 4);
}

static val get(struct emit *e, val at)
{
    return LLVMBuildLoad2(B, e->t.i64, at, "");
}
static val holds(struct emit *e, val at)
{
    return LLVMBuildICmp(B, LLVMIntNE, get(e, at), k64(e, 0), "");
}
static void keep(struct emit *e, val yes, val at)
{
    LLVMBuildStore(B, LLVMBuildZExt(B, yes, e->t.i64, ""), at);
}

/* In a block of a loop: does a warp come here for the first time, did the one before it come so seldom that what this
 * one fetches for the next stays in the cache; and is it worth while (returned)? */
static val look_at_warp(struct emit *e, uint64_t lines)
{
    struct turn *t = &e->ahead.turns[e->block];
    if (t->region == 1 + emit_region(e)) return holds(e, t->worth);
    t->region = 1 + emit_region(e);
    if (!t->warp) {
        t->warp = variable(e, UINT64_MAX), t->rounds = variable(e, LOOP_LINES), t->before = variable(e, LOOP_LINES);
        t->begins = variable(e, 0), t->few = variable(e, 0), t->worth = variable(e, 0);
    }
    val warp = emit_warp_number(e), rounds = get(e, t->rounds);
    val begins = LLVMBuildICmp(B, LLVMIntNE, warp, get(e, t->warp), "");
    val before = LLVMBuildSelect(B, begins, rounds, get(e, t->before), "");
    rounds = LLVMBuildSelect(B, begins, k64(e, 1), LLVMBuildAdd(B, rounds, k64(e, 1), ""), "");
    LLVMBuildStore(B, warp, t->warp);
    LLVMBuildStore(B, before, t->before);
    LLVMBuildStore(B, rounds, t->rounds);
    keep(e, begins, t->begins);
    keep(e, LLVMBuildICmp(B, LLVMIntULT, before, k64(e, LOOP_LINES / lines), ""), t->few);
    val worth = LLVMBuildICmp(B, LLVMIntUGT, LLVMBuildOr(B, before, rounds, ""), k64(e, LEAST - 1), "");
    keep(e, worth, t->worth);
    return worth;
}

/* How far from its loads in a loop those of the next warp lie, if there is one; `otherwise` where they are many, or
 * that is not known. */
static void to_next_warp(struct emit *e, struct ahead *a, val at, val otherwise)
{
    if (e->f->region.n_warps == 1) return;
    const struct turn *t = &e->ahead.turns[e->block];
    if (!a->first) a->first = variable(e, 0), a->step = variable(e, 0), a->far = variable(e, 0);
    val first = get(e, a->first), begins = holds(e, t->begins),
        steps = LLVMBuildAnd(B, begins, LLVMBuildICmp(B, LLVMIntNE, e->warp, LLVMConstInt(e->t.i32, 0, 0), ""), "");
    val step = LLVMBuildSelect(B, steps, LLVMBuildSub(B, at, first, ""), get(e, a->step), "");
    LLVMBuildStore(B, step, a->step);
    LLVMBuildStore(B, LLVMBuildSelect(B, begins, at, first, ""), a->first);
    LLVMBuildStore(B, LLVMBuildSelect(B, holds(e, t->few), step, otherwise, ""), a->far);
}

static void fetch_all(struct emit *e, const val *p, unsigned n, uint64_t lines, val by, bool near)
{
    for (uint64_t k = 0; k < n * lines; k++)
        fetch(e, p[k / lines], LLVMBuildAdd(B, by, k64(e, k % lines * LINE), ""), e->in->kind != CPU_LOAD, near);
}

/* The leader of its check: remembers where it was and how far it moved. */
static void remember(struct emit *e, struct ahead *a, const val *p, bool alone)
{
    if (!a->last) a->last = variable(e, 0), a->by = variable(e, 0);
    val at = LLVMBuildPtrToInt(B, p[0], e->t.i64, ""), last = get(e, a->last), by = LLVMBuildSub(B, at, last, "");
    if (!alone) {
        val first = LLVMBuildICmp(B, LLVMIntEQ, e->warp, LLVMConstInt(e->t.i32, 0, 0), "");
        by = LLVMBuildSelect(B, first, by, get(e, a->by), "");
        at = LLVMBuildSelect(B, first, at, last, "");
    }
    LLVMBuildStore(B, at, a->last);
    LLVMBuildStore(B, by, a->by);
    if (alone) to_next_warp(e, a, at, LLVMBuildMul(B, by, k64(e, ROUNDS), ""));
}

/* In a loop that a warp goes round alone, where its rounds are many. */
static void ahead_alone(struct emit *e, struct ahead *a, bool leads, const val *p, unsigned n, uint64_t lines)
{
    val worth = look_at_warp(e, lines * n);
    LLVMBasicBlockRef yes = emit_block(e, "ahead"), on = emit_block(e, "on");
    LLVMBuildCondBr(B, worth, yes, on);
    LLVMPositionBuilderAtEnd(B, yes);
    if (leads) remember(e, a, p, true);
    if (a->by) fetch_all(e, p, n, lines, LLVMBuildMul(B, get(e, a->by), k64(e, ROUNDS), ""), true);
    if (a->far) fetch_all(e, p, n, lines, get(e, a->far), false);
    LLVMBuildBr(B, on);
    LLVMPositionBuilderAtEnd(B, on);
}

/* p: where the access is, n of them; moves: the operation whose check stands for it. */
void emit_ahead(struct emit *e, uint32_t moves, const val *p, unsigned n, uint64_t bytes)
{
    struct ahead *a = &e->ahead.ops[moves];
    const struct cpu_reg *r = e->in->s[0] ? &e->f->regs[e->in->s[0] - 1] : NULL;
    bool again = comes_again(e, false), alone = comes_again(e, true), load = e->in->kind == CPU_LOAD;
    uint64_t lines = MG_MIN((bytes + LINE - 1) / LINE, MOST_LINES);
    bool bits = !again && r && r->cta && r->step > 0; /* the CTA's warps follow one another */
    if (again ? alone && !load : e->f->region.n_starts == 1 || !r) return;
    if (alone) {
        ahead_alone(e, a, moves == e->ix, p, n, lines);
        return;
    }
    if (moves == e->ix) {
        remember(e, a, p, false);
        if (bits) a->lines = (uint32_t)MG_MIN((uint64_t)r->step * e->f->region.n_warps / LINE, SPREAD_LINES);
        if (a->lines > (e->f->region.n_starts - 1) * SHARE_LINES) a->lines = 0;
    }
    if (!a->by || a->lines || (bits && !load)) return;
    val by = LLVMBuildMul(B, get(e, a->by), k64(e, again ? 1 : bits ? FAR_CTAS : CTAS), "");
    fetch_all(e, p, n, lines, by, !again);
}

/* A row of a tile is stored at p: that of a CTA to come is asked for. Stores reach the cache in order, and loads from
 * shared memory that overlap two of them wait so long. */
void emit_ahead_row(struct emit *e, val p)
{
    const struct cpu_reg *r = e->in->s[0] ? &e->f->regs[e->in->s[0] - 1] : NULL;
    if (!e->whole || e->in->where != EMU_AT_GLOBAL || !r || !r->walks || !r->walk[0]) return;
    fetch(e, p, k64(e, (uint64_t)(CTAS * r->walk[0])), true, true);
}

/* Region `which` (not the first) begins at bb: its part of what the CTA's accesses touch the next time. */
void emit_ahead_start(struct emit *e, uint32_t which, LLVMBasicBlockRef bb)
{
    LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(bb));
    for (uint32_t i = 0; i < e->f->n_insts; i++) {
        const struct ahead *a = &e->ahead.ops[i];
        uint32_t share = (a->lines + e->f->region.n_starts - 2) / (e->f->region.n_starts - 1),
                 from = (which - 1) * share;
        if (from >= a->lines) continue;
        val p = LLVMBuildIntToPtr(B, LLVMBuildLoad2(B, e->t.i64, a->last, ""), e->t.ptr, ""),
            by = LLVMBuildMul(B, LLVMBuildLoad2(B, e->t.i64, a->by, ""), k64(e, CTAS), "");
        for (uint32_t k = from; k < MG_MIN(from + share, a->lines); k++)
            fetch(e, p, LLVMBuildAdd(B, by, k64(e, (uint64_t)k * LINE), ""), e->f->insts[i].kind == CPU_STORE, true);
    }
}
