/* What probes count, in code for whole CTAs: who passes where (device/cpu/tally.c). The array of counts is the worker's
 * own and nothing else points there, which the compiler is told. */
#include "device/cpu/plugin/emit.h"

#define B e->b

static void count(struct emit *e, uint32_t place, val v)
{
    val at = emit_at(e, e->counts, 8 * (uint64_t)place),
        old = emit_counted(e, LLVMBuildLoad2(B, LLVMTypeOf(v), at, ""));
    emit_counted(e, LLVMBuildStore(B, LLVMBuildAdd(B, old, v, ""), at));
}

static val one(struct emit *e)
{
    return LLVMConstInt(e->t.i64, 1, 0);
}

static val n_lanes(struct emit *e, val mask)
{
    return LLVMBuildZExt(B, emit_intrinsic(e, "llvm.ctpop", &e->t.i32, 1, &mask, 1), e->t.i64, "");
}

/* Of those that run, as bits: who has the guard. */
static val active(struct emit *e)
{
    if (!e->in->guard) return emit_mask(e);
    if (e->version == LANE) return LLVMBuildSelect(B, emit_guard_scalar(e), e->mask, LLVMConstInt(e->t.i32, 0, 0), "");
    return LLVMBuildBitCast(B, emit_active(e), e->t.i32, "");
}

/* Lanes 8 * k to 8 * k + 7 */
static val eighth(struct emit *e, val v, unsigned k)
{
    val pick[8];
    for (unsigned i = 0; i < 8; i++) pick[i] = LLVMConstInt(e->t.i32, 8 * k + i, 0);
    return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, 8), "");
}

static void add_value(struct emit *e, const struct cpu_tally *t)
{
    val v = emit_vec(e, t->reg, false), act = e->in->guard ? emit_active(e) : emit_lanes(e);
    if (act) v = LLVMBuildSelect(B, act, v, LLVMConstNull(e->t.v64), "");
    count(e, t->count,
          LLVMBuildAdd(B, LLVMBuildAdd(B, eighth(e, v, 0), eighth(e, v, 1), ""),
                       LLVMBuildAdd(B, eighth(e, v, 2), eighth(e, v, 3), ""), ""));
}

static void pass(struct emit *e, const struct cpu_site *s)
{
    if (!s->guarded && e->version == FULL) {
        if (!cpu_site_always(e->f, emit_region(e), s)) count(e, s->count, one(e));
        return;
    }
    bool lane = e->version == LANE;
    if (lane && s->wants & 1u << CPU_TALLY_LANES) emit_lane_pass(e);
    if (!lane && s->wants & 1u << CPU_TALLY_LANES) count(e, s->count + 1 + CPU_TALLY_LANES, n_lanes(e, active(e)));
    if (s->wants & 1u << CPU_TALLY_ONCE && !lane) count(e, s->count + 1 + CPU_TALLY_ONCE, one(e));
    if (s->wants & 1u << CPU_TALLY_FIRST)
        count(e, s->count + 1 + CPU_TALLY_FIRST,
              LLVMBuildZExt(B, LLVMBuildAnd(B, emit_mask(e), LLVMConstInt(e->t.i32, 1, 0), ""), e->t.i64, ""));
}

/* Of those that run, as bits: who has predicate reg. */
static val under(struct emit *e, uint32_t reg)
{
    if (e->version == LANE)
        return LLVMBuildSelect(B, emit_scalar(e, reg, 0, true), e->mask, LLVMConstInt(e->t.i32, 0, 0), "");
    return LLVMBuildAnd(B, emit_mask(e), LLVMBuildBitCast(B, emit_vec(e, reg, true), e->t.i32, ""), "");
}

void emit_tally_lanes(struct emit *e, uint32_t ix, val lanes, val times)
{
    for (uint32_t i = 0; i < e->f->tally.n_sites; i++) {
        const struct cpu_site *s = &e->f->tally.sites[i];
        if (s->at != ix) continue;
        if (s->wants & 1u << CPU_TALLY_LANES && lanes) count(e, s->count + 1 + CPU_TALLY_LANES, lanes);
        if (s->wants & 1u << CPU_TALLY_ONCE && times) count(e, s->count + 1 + CPU_TALLY_ONCE, times);
    }
}

static bool is_told(const struct cpu_func *f, uint32_t reg)
{
    return !reg || f->regs[reg - 1].sum;
}

bool emit_tally(struct emit *e)
{
    const struct cpu_func *f = e->f;
    const struct cpu_inst *in = e->in;
    const struct cpu_site *s = NULL;
    for (uint32_t k = f->tally.first_at[e->ix]; k && k <= f->tally.n && f->tally.list[k - 1].at == e->ix; k++) {
        const struct cpu_tally *t = &f->tally.list[k - 1];
        if (t->kind == CPU_TALLY_VALUE)
            add_value(e, t);
        else if (t->kind == CPU_TALLY_UNDER)
            count(e, t->count, n_lanes(e, under(e, t->reg)));
        else
            s = &f->tally.sites[t->site];
    }
    if (s) pass(e, s);
    if (in->offs) return true;
    if (in->kind == CPU_LEADER)
        return e->version != LANE && is_told(f, in->d) && is_told(f, in->s[0]) &&
               is_told(f, in->d2); /* else emit_move sees to it */
    uint32_t d = in->kind == CPU_LOAD || in->kind == CPU_PARAM ? in->vec == 1 ? in->list[0] : 0 : in->d;
    return d && is_told(f, d) && is_told(f, in->d2);
}

void emit_tally_round(struct emit *e)
{
    const struct cpu_func *f = e->f;
    for (uint32_t i = 0; i < f->tally.n_sites; i++)
        if (cpu_site_always(f, emit_region(e), &f->tally.sites[i])) {
            count(e, f->region.starts[emit_region(e)].rounds, one(e));
            return;
        }
}
