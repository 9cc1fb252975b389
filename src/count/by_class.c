/* Scheme class of the tool blocks: made of plain PTX without a new basic block, and known by sight to
 * the emulator (device/emu/decode_probe.c).
 *
 *   entry of a function      mov.u64 c_i, 0                       one 64-bit register per counter
 *   head of a block          add.u64 c_i, c_i, 1
 *   before ret and exit      ld.global.u64 base, [ctx];  red.global.add.u64 [base + 8*i], c_i
 *
 * Blocks that are entered equally often (analysis/equiv.h) share a counter, which one of them, the
 * class's representative, keeps; a kernel's blocks that every thread enters once need no register
 * at all. Only the counters a path can have touched are flushed at its end, and a guarded ret or
 * exit guards its flush. Functions have registers of their own and flush at their return; before a
 * call whose callee may leave by `exit` the caller flushes and begins again at zero, because the
 * lanes that exit never come back. In a function (not a kernel) a class outside every cycle has no
 * register: it adds 1 to memory at once.
 *
 * Warp entries. Lanes of a cohort (analysis/uniform.h) move together, so its first lane's thread
 * count is the warp's: nothing is added in the block, and the flush adds the leader's c_i. Elsewhere
 * the lowest active lane counts, in this order, which the emulator knows by sight (the first add
 * only in a representative):
 *
 *     add.u64 c, c, 1;  activemask.b32 m;  and.b32 t, m, lt;  setp.eq.u32 p, t, 0;  @p add.u64 w, w, 1;
 *
 * scope=cta|warp: a predicate computed at the entry guards every flush; nothing else changes.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/equiv.h"
#include "analysis/loop.h"
#include "analysis/uniform.h"
#include "count/schemes.h"

/* ---- instrumentation of one function ---------------------------------------------------------- */

enum warp_rule { WARP_NONE, WARP_LEADER, WARP_LOWEST };

struct block_plan {
    uint32_t dense; /* id among the kernel's blocks */
    uint32_t cls;   /* class of equally frequent blocks; MG_NO_CLASS: never entered */
    bool begins;    /* a cohort begins here */
    enum warp_rule rule;
    mg_id warps;       /* register, WARP_LOWEST and not direct */
    uint32_t warps_at; /* counter of its warp entries; UINT32_MAX: another block of its group flushes it */
    mg_id leader;      /* predicate of its cohort's first lane, WARP_LEADER */
};

enum class_kind {
    CLASS_REGISTER, /* counts in `reg`, flushed */
    CLASS_DIRECT,   /* adds to memory at its representative's head */
    CLASS_ONE,      /* every thread enters it once: the flush adds 1 */
};
struct class_plan {
    enum class_kind kind;
    bool once;    /* CLASS_REGISTER: the register starts at 1, nothing is added */
    uint32_t rep; /* block that counts */
    uint32_t at;  /* counter */
    mg_id reg;
};

struct emitter {
    struct mg_emit x;
    const struct mg_counter_opts *o;
    struct mg_counter_layout *layout;
    struct block_plan *plans;
    struct class_plan *classes;
    uint32_t n_classes;
    bool *may_leave; /* block -> its call may end the lane */
    mg_id base, mask, below, low, lt, mine, always;
    bool ballot; /* vote.ballot stands in for activemask */
};

#define EMIT(e, ...) EMIT_AT(&(e)->x, __VA_ARGS__)

static void emit_lowest(struct emitter *e, mg_id pred)
{
    if (e->ballot)
        EMIT(e, "vote.ballot.b32", mg_o_reg(e->mask), mg_o_reg(e->always));
    else
        EMIT(e, "activemask.b32", mg_o_reg(e->mask));
    EMIT(e, "and.b32", mg_o_reg(e->below), mg_o_reg(e->mask), mg_o_reg(e->lt));
    EMIT(e, "setp.eq.u32", mg_o_reg(pred), mg_o_reg(e->below), mg_o_imm(0));
}

static struct mg_opnd counter_at(const struct emitter *e, uint32_t counter)
{
    return mg_o_addr_reg(e->base, 8 * (int64_t)counter);
}

static void emit_head(struct emitter *e, uint32_t b)
{
    const struct block_plan *p = &e->plans[b];
    if (p->cls == MG_NO_CLASS) return;
    const struct class_plan *k = &e->classes[p->cls];
    e->x.at = mg_block_head(e->x.m, &e->x.c->blocks[b]);
    e->x.guard = 0;
    e->x.guard_not = false;
    if (k->rep == b && k->kind == CLASS_DIRECT) {
        e->x.guard = e->mine;
        EMIT(e, "red.global.add.u64", counter_at(e, k->at), mg_o_imm(1));
        e->x.guard = 0;
    } else if (k->rep == b && k->kind == CLASS_REGISTER && !k->once) {
        EMIT(e, "add.u64", mg_o_reg(k->reg), mg_o_reg(k->reg), mg_o_imm(1));
    }
    if (p->begins && b != 0) emit_lowest(e, p->leader);
    if (p->rule != WARP_LOWEST) return;
    emit_lowest(e, e->low);
    if (!p->warps) {
        mg_emit_guard_by(&e->x, e->mine, false, e->low);
        EMIT(e, "red.global.add.u64", counter_at(e, p->warps_at), mg_o_imm(1));
    } else {
        e->x.guard = e->low;
        EMIT(e, "add.u64", mg_o_reg(p->warps), mg_o_reg(p->warps), mg_o_imm(1));
    }
    e->x.guard = 0;
}

static struct mg_opnd class_value(const struct class_plan *k)
{
    return k->kind == CLASS_ONE ? mg_o_imm(1) : mg_o_reg(k->reg);
}

static bool flushes_class(const struct class_plan *k, const uint64_t *reach)
{
    return k->kind == CLASS_ONE || (k->kind == CLASS_REGISTER && (k->once || mg_has(reach, k->rep)));
}

static bool flushes_block(const struct emitter *e, uint32_t b, const uint64_t *reach)
{
    const struct block_plan *p = &e->plans[b];
    if (p->cls == MG_NO_CLASS || p->rule == WARP_NONE || p->warps_at == UINT32_MAX) return false;
    if (p->rule == WARP_LOWEST) return p->warps && mg_has(reach, b);
    return flushes_class(&e->classes[p->cls], reach);
}

/* The guard for a flush: `both` is left free for the leaders. */
static void guard_flush(struct emitter *e, mg_id guard, bool guard_not)
{
    mg_emit_guard_by(&e->x, guard, guard_not, e->mine);
    if (!guard || !e->mine) return;
    mg_id copy = mg_emit_reg(&e->x, "__mg_g", MG_TYPE_pred), both = e->x.guard;
    e->x.guard = 0;
    EMIT(e, "mov.pred", mg_o_reg(copy), mg_o_reg(both));
    e->x.guard = copy;
}

/* Adds the registers that blocks in `reach` may have counted in to memory, for the lanes with guard
 * (and mine). */
static void emit_flush(struct emitter *e, const uint64_t *reach, mg_id guard, bool guard_not)
{
    uint32_t n = e->x.c->n_blocks;
    bool any = false;
    for (uint32_t k = 0; k < e->n_classes; k++) any |= flushes_class(&e->classes[k], reach);
    for (uint32_t b = 0; b < n; b++) any |= flushes_block(e, b, reach);
    if (!any) return;
    guard_flush(e, guard, guard_not);
    mg_id flush_guard = e->x.guard;
    bool flush_not = e->x.guard_not;
    EMIT(e, "ld.global.u64", mg_o_reg(e->base), mg_o_addr_reg(e->x.ctx, MG_CTX_COUNTERS));
    for (uint32_t k = 0; k < e->n_classes; k++)
        if (flushes_class(&e->classes[k], reach))
            EMIT(e, "red.global.add.u64", counter_at(e, e->classes[k].at), class_value(&e->classes[k]));
    for (uint32_t b = 0; b < n; b++)
        if (flushes_block(e, b, reach) && e->plans[b].rule == WARP_LOWEST)
            EMIT(e, "red.global.add.u64", counter_at(e, e->plans[b].warps_at), mg_o_reg(e->plans[b].warps));
    mg_id leader = 0;
    for (uint32_t b = 0; b < n; b++) {
        const struct block_plan *p = &e->plans[b];
        if (!flushes_block(e, b, reach) || p->rule != WARP_LEADER) continue;
        if (p->leader != leader) mg_emit_guard_by(&e->x, flush_guard, flush_not, leader = p->leader);
        EMIT(e, "red.global.add.u64", counter_at(e, p->warps_at), class_value(&e->classes[p->cls]));
    }
    e->x.guard = 0;
    e->x.guard_not = false;
}

static void emit_zeros(struct emitter *e, const uint64_t *reach, mg_id guard, bool guard_not)
{
    e->x.guard = guard;
    e->x.guard_not = guard_not;
    for (uint32_t k = 0; k < e->n_classes; k++)
        if (flushes_class(&e->classes[k], reach)) EMIT(e, "mov.u64", mg_o_reg(e->classes[k].reg), mg_o_imm(0));
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++)
        if (flushes_block(e, b, reach) && e->plans[b].rule == WARP_LOWEST)
            EMIT(e, "mov.u64", mg_o_reg(e->plans[b].warps), mg_o_imm(0));
    e->x.guard = 0;
    e->x.guard_not = false;
}

/* ---- entry ----------------------------------------------------------------------------------- */
static void emit_entry(struct emitter *e)
{
    e->x.at = e->x.t->entry_at[e->x.ix];
    e->mine = mg_count_mine(&e->x, e->o);
    bool lowest = false, direct = false;
    for (uint32_t k = 0; k < e->n_classes; k++) {
        direct |= e->classes[k].kind == CLASS_DIRECT;
        if (e->classes[k].kind == CLASS_REGISTER)
            EMIT(e, "mov.u64", mg_o_reg(e->classes[k].reg), mg_o_imm(e->classes[k].once));
    }
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++) {
        const struct block_plan *p = &e->plans[b];
        lowest |= p->rule == WARP_LOWEST || p->begins;
        direct |= p->rule == WARP_LOWEST && !p->warps;
        if (p->rule == WARP_LOWEST && p->warps) EMIT(e, "mov.u64", mg_o_reg(p->warps), mg_o_imm(0));
    }
    if (direct) EMIT(e, "ld.global.u64", mg_o_reg(e->base), mg_o_addr_reg(e->x.ctx, MG_CTX_COUNTERS));
    if (!lowest) return;
    EMIT(e, "mov.u32", mg_o_reg(e->lt), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    if (e->ballot) EMIT(e, "setp.eq.u32", mg_o_reg(e->always), mg_o_reg(e->lt), mg_o_reg(e->lt));
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++) { /* cohorts that begin later have no leader yet */
        const struct block_plan *p = &e->plans[b];
        if (!p->begins) continue;
        if (b == 0)
            emit_lowest(e, p->leader);
        else
            EMIT(e, "setp.ne.u32", mg_o_reg(p->leader), mg_o_reg(e->lt), mg_o_reg(e->lt));
    }
}

/* ---- planning -------------------------------------------------------------------------------- */
/* Which classes there are and how each counts. A block that counts warps by its lowest lane is the
 * best representative: the emulator does both adds at once. */
static bool plan_classes(struct emitter *e, const struct mg_equiv *q, const struct mg_loops *l)
{
    const struct mg_cfg *c = e->x.c;
    bool kernel = e->x.ix == 0, leaves_in_call = false;
    for (uint32_t b = 0; b < c->n_blocks; b++) leaves_in_call |= e->may_leave[b];
    e->n_classes = q->n_classes;
    e->classes = mg_xcalloc(q->n_classes + 1, sizeof *e->classes);
    for (uint32_t k = 0; k < q->n_classes; k++) e->classes[k].rep = UINT32_MAX;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        if (e->plans[b].cls == MG_NO_CLASS) continue;
        struct class_plan *k = &e->classes[e->plans[b].cls];
        bool better = k->rep == UINT32_MAX || (e->plans[b].rule == WARP_LOWEST && e->plans[k->rep].rule != WARP_LOWEST);
        if (better) k->rep = b;
    }
    for (uint32_t i = 0; i < q->n_classes; i++) {
        struct class_plan *k = &e->classes[i];
        bool once = i == q->once;
        k->at = e->layout->n_counters++;
        if (!kernel && l->loop_of[k->rep] == MG_NO_LOOP)
            k->kind = CLASS_DIRECT;
        else if (kernel && once && !leaves_in_call)
            k->kind = CLASS_ONE;
        else
            k->once = once;
    }
    return kernel;
}

/* One counter for the blocks of one class and one cohort. */
static void share_leader_counters(struct emitter *e, const struct mg_uniform *u)
{
    struct mg_map group = MG_MAP_INIT;
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        if (p->rule != WARP_LEADER) continue;
        uint64_t key = (uint64_t)p->cls << 32 | u->cohort[b], known;
        if (mg_map_get(&group, key, &known)) {
            e->layout->warps[p->dense] = (uint32_t)known;
            p->warps_at = UINT32_MAX;
            continue;
        }
        e->layout->warps[p->dense] = p->warps_at = e->layout->n_counters++;
        mg_map_set(&group, key, p->warps_at);
    }
    mg_map_release(&group);
}

static void assign_registers(struct emitter *e, const struct mg_uniform *u, bool kernel)
{
    uint32_t n_counts = 0, n_warps = 0, n_leaders = 0, n = e->x.c->n_blocks;
    for (uint32_t k = 0; k < e->n_classes; k++) n_counts += e->classes[k].kind == CLASS_REGISTER;
    for (uint32_t b = 0; b < n; b++) {
        const struct block_plan *p = &e->plans[b];
        n_warps += p->rule == WARP_LOWEST && (kernel || e->classes[p->cls].kind != CLASS_DIRECT);
        n_leaders += p->begins;
    }
    mg_id counts = n_counts ? mg_module_add_regs(e->x.m, e->x.func, "__mg_c", MG_TYPE_u64, n_counts) : 0;
    mg_id warps = n_warps ? mg_module_add_regs(e->x.m, e->x.func, "__mg_w", MG_TYPE_u64, n_warps) : 0;
    mg_id leaders = n_leaders ? mg_module_add_regs(e->x.m, e->x.func, "__mg_leader", MG_TYPE_pred, n_leaders) : 0;
    for (uint32_t k = 0; k < e->n_classes; k++)
        if (e->classes[k].kind == CLASS_REGISTER) e->classes[k].reg = counts++;
    for (uint32_t b = 0; b < n; b++) {
        struct block_plan *p = &e->plans[b];
        if (p->rule == WARP_LOWEST && (kernel || e->classes[p->cls].kind != CLASS_DIRECT)) p->warps = warps++;
        if (p->begins) p->leader = leaders++;
    }
    for (uint32_t b = 0; b < n; b++)
        if (e->plans[b].rule == WARP_LEADER) e->plans[b].leader = e->plans[u->cohort[b]].leader;
}

static void plan_blocks(struct emitter *e, const struct mg_sites *s, uint32_t zero_at)
{
    const struct mg_cfg *c = e->x.c;
    struct mg_loops *l = mg_loops_new(c);
    struct mg_uniform *u = mg_uniform_new(c, l);
    struct mg_equiv *q = mg_equiv_new(c, e->may_leave);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        p->dense = s->first_block[e->x.ix] + b;
        p->cls = q->class_of[b];
        if (e->layout->warps && p->cls != MG_NO_CLASS) {
            p->rule = u->cohort[b] != MG_NO_COHORT ? WARP_LEADER : WARP_LOWEST;
            p->begins = p->rule == WARP_LEADER && u->cohort[b] == b;
        }
    }
    bool kernel = plan_classes(e, q, l);
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        struct block_plan *p = &e->plans[b];
        e->layout->threads[p->dense] = p->cls == MG_NO_CLASS ? zero_at : e->classes[p->cls].at;
        if (e->layout->warps) e->layout->warps[p->dense] = zero_at;
        if (p->rule == WARP_LOWEST) e->layout->warps[p->dense] = p->warps_at = e->layout->n_counters++;
    }
    if (e->layout->warps) share_leader_counters(e, u);
    assign_registers(e, u, kernel);
    mg_equiv_free(q);
    mg_uniform_free(u);
    mg_loops_free(l);
    e->base = mg_emit_reg(&e->x, "__mg_base", MG_TYPE_b64);
    if (!e->layout->warps) return;
    e->mask = mg_emit_reg(&e->x, "__mg_m", MG_TYPE_b32);
    e->below = mg_emit_reg(&e->x, "__mg_t", MG_TYPE_b32);
    e->lt = mg_emit_reg(&e->x, "__mg_lt", MG_TYPE_b32);
    e->low = mg_emit_reg(&e->x, "__mg_p", MG_TYPE_pred);
    if (e->ballot) e->always = mg_emit_reg(&e->x, "__mg_true", MG_TYPE_pred);
}

/* ---- the function ---------------------------------------------------------------------------- */

/* What the end of block b asks for. */
static void emit_end(struct emitter *e, uint32_t b, uint64_t *reach)
{
    mg_id last = e->x.c->blocks[b].last;
    struct mg_node n = e->x.m->nodes.at[last];
    unsigned op = mg_node_form(e->x.m, &n)->op;
    bool leaves = op == MG_OP_ret || op == MG_OP_exit, call = op == MG_OP_call;
    if (!leaves && !e->may_leave[b]) return;
    mg_cfg_find_reaching(e->x.c, b, reach);
    e->x.at = last;
    struct mg_call c = {.indirect = false};
    if (call) mg_call_read(e->x.m, last, &c);
    if (c.indirect) n.guard = 0; /* two calls stand there: flush for the lanes of both */
    bool is_not = n.guard && (n.flags & MG_NF_GUARD_NOT);
    emit_flush(e, reach, n.guard, is_not);
    if (call) emit_zeros(e, reach, n.guard, is_not);
}
static void instrument_func(struct emitter *e, const struct mg_sites *s, uint32_t zero_at)
{
    uint32_t n_words = mg_bits_words(e->x.c->n_blocks);
    uint64_t *reach = mg_xcalloc(n_words + 1, sizeof *reach);
    e->plans = mg_xcalloc(e->x.c->n_blocks + 1, sizeof *e->plans);
    e->may_leave = mg_xcalloc(e->x.c->n_blocks + 1, sizeof *e->may_leave);
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++) {
        mg_id last = e->x.c->blocks[b].last;
        e->may_leave[b] = mg_node_form(e->x.m, &e->x.m->nodes.at[last])->op == MG_OP_call &&
                          mg_callee_may_exit(e->x.m, e->x.may_exit, last);
    }
    plan_blocks(e, s, zero_at);
    if (e->layout->warps || e->o->scope != MG_COUNT_FULL) e->x.both = mg_emit_reg(&e->x, "__mg_both", MG_TYPE_pred);
    emit_entry(e);
    for (uint32_t b = 0; b < e->x.c->n_blocks; b++) {
        emit_head(e, b);
        emit_end(e, b, reach);
    }
    e->x.at = mg_body_close(e->x.t, e->x.ix, e->x.c);
    if (e->x.at) {
        memset(reach, 0xff, n_words * sizeof *reach);
        emit_flush(e, reach, 0, false);
    }
    free(e->classes);
    free(e->plans);
    free(e->may_leave);
    free(reach);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static uint32_t begin_layout(struct mg_counter_layout *l, const struct mg_sites *s, bool warps, bool others)
{
    uint32_t n = s->n_blocks;
    *l = (struct mg_counter_layout){.n_blocks = n,
                                    .n_copies = 1,
                                    .counter_words = 1,
                                    .other_at = UINT32_MAX,
                                    .threads = mg_xcalloc(n + 1, sizeof *l->threads)};
    if (warps) l->warps = mg_xcalloc(n + 1, sizeof *l->warps);
    uint32_t zero_at = l->n_counters++; /* nothing adds to it: for blocks no path reaches */
    if (others) l->other_at = l->n_counters++;
    return zero_at;
}

enum mg_err mg_count_by_class(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                              struct mg_counter_layout *l, struct mg_diag *d)
{
    (void)d;
    bool ballot, warps = o->warps && mg_choose_mask(t->m, &ballot);
    if (!warps) ballot = false;
    uint32_t zero_at = begin_layout(l, s, warps, t->n_native_calls != 0);
    bool *may_exit = mg_funcs_may_exit(t->m, t);
    for (uint32_t i = 0; i < t->n_funcs; i++) {
        struct emitter e = {.o = o,
                            .layout = l,
                            .x = {.t = t,
                                  .m = t->m,
                                  .c = s->cfgs[i],
                                  .ix = i,
                                  .func = t->funcs[i],
                                  .ctx = t->ctx_reg[i],
                                  .may_exit = may_exit},
                            .ballot = ballot};
        instrument_func(&e, s, zero_at);
    }
    mg_count_others(t, l);
    free(may_exit);
    return MG_ERR_OK;
}
