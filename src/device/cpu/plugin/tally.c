/* What inserted code counts: who passes where (device/cpu/tally.c). The array of counts is the worker's own and nothing
 * else points there, which the compiler is told. */
#include "device/cpu/plugin/emit.h"

#define B e->b

void emit_tally(struct emit *e, val at, val v)
{
    val old = emit_counted(e, LLVMBuildLoad2(B, LLVMTypeOf(v), at, ""));
    emit_counted(e, LLVMBuildStore(B, LLVMBuildAdd(B, old, v, ""), at));
}

static void count(struct emit *e, uint32_t place, val v)
{
    emit_tally(e, emit_at(e, e->counts, 8 * (uint64_t)place), v);
}

static val one(struct emit *e)
{
    return LLVMConstInt(e->t.i64, 1, 0);
}

static val n_lanes(struct emit *e, val mask)
{
    return LLVMBuildZExt(B, emit_intrinsic(e, "llvm.ctpop", &e->t.i32, 1, &mask, 1), e->t.i64, "");
}

/* Lanes 8 * k to 8 * k + 7 */
static val eighth(struct emit *e, val v, unsigned k)
{
    val pick[8];
    for (unsigned i = 0; i < 8; i++) pick[i] = LLVMConstInt(e->t.i32, 8 * k + i, 0);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, 8), "");
}

/* Of those that run, as bits: who has the guard. */
static val active(struct emit *e)
{
    return e->in->guard ? LLVMBuildBitCast(B, emit_active(e), e->t.i32, "") : emit_mask(e);
}

/* What a register holds: in all lanes, or in the lowest. */
static void add_value(struct emit *e, const struct cpu_site *s)
{
    val v = emit_vec(e, e->in->s[0], false), m = active(e);
    if (s->times) m = LLVMBuildAnd(B, m, LLVMBuildNeg(B, m, ""), "");
    if (s->times || e->in->guard || e->version != FULL)
        v = LLVMBuildSelect(B, emit_lanes_of(e, m), v, LLVMConstNull(e->t.v64), "");
    count(e, s->count,
          LLVMBuildAdd(B, LLVMBuildAdd(B, eighth(e, v, 0), eighth(e, v, 1), ""),
                       LLVMBuildAdd(B, eighth(e, v, 2), eighth(e, v, 3), ""), ""));
}

static const struct cpu_site *site_at(const struct emit *e, uint32_t ix)
{
    return &e->f->tally.sites[e->f->tally.site_at[ix] - 1];
}

void emit_count(struct emit *e)
{
    const struct cpu_site *s = site_at(e, e->ix);
    if (e->in->s[0]) {
        add_value(e, s);
    } else if (e->version == LANE) {
        emit_lane_pass(e);
    } else if (!s->guarded && e->version == FULL) {
        if (!e->whole || !cpu_site_always(e->f, emit_region(e), s)) count(e, s->count, one(e));
    } else {
        val m = active(e);
        if (s->lanes) count(e, s->count + 1, n_lanes(e, m));
        if (s->times)
            count(e, s->count + 2,
                  s->guarded
                      ? LLVMBuildZExt(B, LLVMBuildICmp(B, LLVMIntNE, m, LLVMConstInt(e->t.i32, 0, 0), ""), e->t.i64, "")
                      : one(e));
    }
}

void emit_count_lanes(struct emit *e, uint32_t ix, val lanes, val times)
{
    const struct cpu_site *s = site_at(e, ix);
    if (s->lanes) count(e, s->count + 1, lanes);
    if (s->times) count(e, s->count + 2, times);
}

void emit_count_round(struct emit *e)
{
    const struct cpu_func *f = e->f;
    for (uint32_t i = 0; i < f->tally.n; i++)
        if (cpu_site_always(f, emit_region(e), &f->tally.sites[i])) {
            count(e, f->region.starts[emit_region(e)].rounds, one(e));
            return;
        }
}
