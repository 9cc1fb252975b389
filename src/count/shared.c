/* Counters in shared memory: a kernel with more counters than registers should hold keeps most of them in its
 * CTA's shared memory. One instruction counts for all lanes that are together, and nobody waits for it:
 *
 *     entry     all threads zero the words;  bar.sync
 *     event     red.shared.add.u32 [counters + 4 * i], 1
 *     drain     for (i = rank; i < n; i += lanes)  v = atom.shared.exch [counters + 4 * i], 0;  if (v)
 *               red.global.add
 *
 * Where some lanes leave without having counted there, whoever leaves drains what is there: his own events are in it
 * or somebody else has taken them along, so the last to leave finds the rest. Else one more word counts those that
 * leave, and only the last drain:
 *
 *     leave     old = atom.shared.add [left], lanes   (the first of them);  any of them with old + lanes ==
 *               threads of the CTA: drain
 *
 * (a lane that leaves alone takes a word at a time: the elected one of a GEMM's producers took 2 us for 41 of them).
 * No word can overflow: one register counts the rounds of all loops in which such counters stand, and every 2^12
 * rounds of a lane it drains; a loop whose rounds an induction variable tells adds them there when they are fewer
 * than 2^9, else to memory (1,024 threads add less than 2^32 meanwhile). Rounds are counted at the loop's header; in
 * a loop that is left in the midst where it goes around, so that who leaves at once does nothing: then the loop
 * around it counts its own as well. In front of a brkpt, which ends the kernel on a GPU, no round is counted; one
 * more round of a wait for an mbarrier, which hardly ever is, goes to memory at once. Guard words stand in front of
 * them and behind (an application that writes past its arrays hits those first): stored when they are cleared,
 * looked at when they are drained; where one is not what it was the launch's context block is told, and it has no
 * counts. What lies behind moves by whole kilobytes, so that it is aligned as ever: programs read arrays of words by
 * fours because they happen to lie well. */
#include "count/storage/storage.h"

#include <stdio.h>
#include <stdlib.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

enum {
    MOST_BYTES = 4096,
    MOST_SHARED = 49152,
    KEPT = 1024,
    MOST_ROUNDS = 1 << 12,
    MOST_STEPS = (1 << 9) - 1,
    BASE_FROM = 8,
    GUARDS = 1 /* word on either side, the outermost of the variable */,
    WARP = 32,
    GUARD = MG_SHARED_GUARD
};

uint32_t mg_shared_whole(uint32_t bytes)
{
    return (bytes + KEPT - 1) / KEPT * KEPT;
}

uint32_t mg_shared_room(const struct mg_module *m, uint32_t bytes)
{
    bool dynamic;
    uint64_t sum = mg_twin_shared_bytes(m, &dynamic);
    bytes = mg_shared_whole(bytes);
    return sum + bytes <= MOST_SHARED ? bytes : 0;
}

bool mg_shared_may(const struct mg_rfunc *f)
{
    if (f->x.ix || f->lone.is || !f->sync || f->o->warps || f->x.t->keeps_lanes || f->o->scope == MG_COUNT_WARP)
        return false;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++)
        if (f->live.may_leave[b]) return false; /* in front of such a call counters are added without a branch */
    return true;
}

bool mg_shared_has_room(const struct mg_rfunc *f)
{
    return mg_shared_room(f->x.m, MOST_BYTES) != 0;
}

uint32_t mg_shared_loop(const struct mg_rfunc *f, uint32_t counter)
{
    const struct mg_count *k = &f->plan->list[counter];
    const struct mg_loops *l = f->plan->loops;
    if (k->kind == MG_COUNT_ENTRY) return MG_NO_LOOP;
    return k->kind == MG_COUNT_IV ? l->loops[f->plan->ivs->list[k->iv].loop].parent : l->loop_of[k->block];
}

bool mg_shared_takes(const struct mg_rfunc *f, uint32_t counter)
{
    const struct mg_count *k = &f->plan->list[counter];
    if ((k->kind == MG_COUNT_IV && k->carries) || f->shared.n == MOST_BYTES / 4 - 1 - 2 * GUARDS - WARP) return false;
    for (uint32_t loop = mg_shared_loop(f, counter); loop != MG_NO_LOOP; loop = f->plan->loops->loops[loop].parent)
        if (f->plan->loops->loops[loop].n_headers != 1) return false;
    return true;
}

/* Bytes from where the variable begins to word i. */
static int64_t off(uint32_t i)
{
    return 4 * ((int64_t)i + GUARDS);
}
static uint32_t behind(const struct mg_rfunc *f)
{
    return (uint32_t)f->x.m->vars.at[f->shared.var].dims[0] - GUARDS;
}

/* Where the variable begins. */
static struct mg_opnd begin_of(const struct mg_rfunc *f)
{
    return f->shared.base ? mg_o_reg(f->shared.base) : mg_o_var(f->shared.var);
}
static struct mg_opnd word_of(const struct mg_rfunc *f, uint32_t i)
{
    return f->shared.base ? mg_o_addr_reg(f->shared.base, off(i)) : mg_o_addr_var(f->shared.var, off(i));
}

static const char *shared_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    if (k->f->shared.all) return "CTAs wait in loops and registers are few";
    if (k->in_loops) return "a word of its loop: CTAs wait in loops and registers are few";
    return k->shares && k->cells + k->need > k->most && mg_shared_takes(k->f, w->counter)
               ? "registers for counters are full"
               : NULL;
}

static void shared_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)w;
    k->f->shared.n++;
}

static void shared_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    EMIT("red.shared.add.u32", word_of(f, f->counters[counter].slot - f->shared.slot), 1);
}

static void shared_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    mg_id p = mg_rc_tp(f, 0), few = mg_rc_t32(f, 5), all = mg_rc_t64(f, 0);
    EMIT(wide ? "cvt.u32.u64" : "mov.b32", few, d);
    EMIT(wide ? "mov.b64" : "cvt.u64.u32", all, d);
    mg_emit_guard(x, 0, false);
    EMIT("setp.lt.u64", p, all, MOST_STEPS);
    mg_emit_guard_by(x, s.guard, s.guard_not, p);
    EMIT("red.shared.add.u32", word_of(f, c->slot - f->shared.slot), few);
    mg_emit_guard(x, 0, false);
    EMIT("setp.ge.u64", p, all, MOST_STEPS);
    if (s.guard) EMIT("and.pred", p, p, s.guard_not ? mg_o_not(s.guard) : mg_o_reg(s.guard));
    struct mg_apart a = mg_rc_begin_apart(f, p);
    mg_id mine = mg_count_mine(x, f->o);
    mg_emit_guard(x, mine, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(x->ctx, MG_CTX_BYTES + 8 * ((int64_t)f->at + c->slot)), all);
    mg_emit_guard(x, 0, false);
    mg_rc_end_apart(f, a);
}

mg_id mg_shared_declare(struct mg_module *m, mg_id func, uint32_t words)
{
    return mg_module_add_shared(m, func, "__mg_shared", MG_TYPE_b32, 4, words);
}

static void clear_by(struct mg_rfunc *f, struct mg_rrange r, mg_id i, mg_id n)
{
    struct mg_emit *x = &f->x;
    mg_id at = mg_rc_t32(f, 9), p = mg_rc_tp(f, 0), again = mg_rc_label(f), done = mg_rc_label(f);
    mg_rc_put_label(f, again);
    EMIT("setp.ge.u32", p, i, mg_o_imm(r.n));
    mg_rc_branch(f, p, false, done);
    EMIT("mov.u32", at, begin_of(f));
    EMIT("mad.lo.u32", at, i, 4, at);
    EMIT("st.shared.u32", mg_o_addr_reg(at, off(r.first)), 0);
    EMIT("add.u32", i, i, n);
    mg_rc_branch(f, 0, false, again);
    mg_rc_put_label(f, done);
}

/* The guard word next to ours: in front, behind. */
static struct mg_opnd guard_of(const struct mg_rfunc *f, uint32_t side)
{
    int64_t at = 4 * (int64_t)(side ? behind(f) : GUARDS - 1);
    return f->shared.base ? mg_o_addr_reg(f->shared.base, at) : mg_o_addr_var(f->shared.var, at);
}

static void look_at_guards(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    mg_id front = mg_rc_t32(f, 7), back = mg_rc_t32(f, 8), p = mg_rc_tp(f, 1);
    EMIT("ld.volatile.shared.u32", front, guard_of(f, 0));
    EMIT("ld.volatile.shared.u32", back, guard_of(f, 1));
    EMIT("setp.ne.u32", p, front, GUARD);
    EMIT("setp.ne.or.u32", p, back, GUARD, p);
    mg_emit_guard(x, p, false);
    EMIT("st.global.u64", mg_o_addr_reg(x->ctx, MG_CTX_SPOILT), 1);
    mg_emit_guard(x, 0, false);
}

/* at = address of this lane's word among the first 32. */
static void lane_word(struct mg_rfunc *f, mg_id at, mg_id lane)
{
    struct mg_emit *x = &f->x;
    EMIT("mov.u32", lane, mg_o_sreg(MG_SREG_laneid, 0));
    EMIT("mov.u32", at, begin_of(f));
    EMIT("mad.lo.u32", at, lane, 4, at);
}

/* Where the words begin, in a register: else ptxas asks at every event where shared memory begins, and waits for the
 * answer. */
static void load_base(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    mg_id one = mg_rc_t32(f, 5);
    EMIT("mov.u32", f->shared.base, mg_o_var(f->shared.var));
    mg_rc_one(f, one);
    EMIT("mul.lo.u32", f->shared.base, f->shared.base, one);
}

void mg_shared_clear(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    if (!f->shared.n) return;
    uint32_t words = (f->shared.n + f->shared.arrives + WARP - 1) / WARP * WARP + 2 * GUARDS;
    f->shared.var = mg_shared_declare(x->m, x->func, mg_shared_whole(4 * words) / 4);
    if (f->shared.n >= BASE_FROM) f->shared.base = mg_emit_reg(x, "__mg_words", MG_TYPE_b32);
    struct mg_rrange all = mg_shared_whole_range(f);
    all.n += f->shared.arrives;
    if (!f->shared.ranges) mg_shared_clear_range(f, all);
}

/* Few words are cleared by each warp, one store for 32 of them (what is declared is whole kilobytes); many by all
 * threads together. */
void mg_shared_clear_range(struct mg_rfunc *f, struct mg_rrange r)
{
    struct mg_emit *x = &f->x;
    mg_id i = mg_rc_t32(f, 7), n = mg_rc_t32(f, 8), at = mg_rc_t32(f, 9), p = mg_rc_tp(f, 1);
    if (f->shared.base) load_base(f);
    for (uint32_t side = 0; side < 2; side++)
        EMIT("st.shared.u32", guard_of(f, side), GUARD); /* by all, with the same value */
    if (r.n <= MG_SHARED_FEW) {
        EMIT("activemask.b32", n);
        EMIT("setp.ne.u32", p, n, -1);
        struct mg_apart a = mg_rc_begin_apart(f, p);
        EMIT("mov.u32", i, mg_o_sreg(MG_SREG_lanemask_lt, 0));
        EMIT("and.b32", i, i, n);
        EMIT("popc.b32", i, i);
        EMIT("popc.b32", n, n);
        clear_by(f, r, i, n);
        mg_rc_end_apart(f, a);
        lane_word(f, at, i);
        for (uint32_t k = 0; k < r.n; k += 32) EMIT("st.shared.u32", mg_o_addr_reg(at, off(r.first + k)), 0);
    } else {
        mg_rc_number_threads(f, i, n);
        clear_by(f, r, i, n);
    }
    EMIT("bar.sync", 0);
}

void mg_shared_drain_all(struct mg_rfunc *f, struct mg_rrange r, mg_id mask, mg_id out)
{
    struct mg_emit *x = &f->x;
    mg_id lane = mg_rc_t32(f, 7), at = mg_rc_t32(f, 8), any = mg_rc_t32(f, 5), p = mg_rc_tp(f, 1), to = mg_rc_t64(f, 2),
          wide = mg_rc_t64(f, 1);
    uint32_t n = (r.n + 31) / 32;
    look_at_guards(f);
    lane_word(f, at, lane);
    for (uint32_t k = 0; k < n; k++) {
        mg_id v = mg_rc_temp(f, &f->t.sums[k], "__mg_t", MG_TYPE_b32);
        EMIT("ld.volatile.shared.u32", v, mg_o_addr_reg(at, off(r.first + 32 * k)));
        if (k)
            EMIT("or.b32", any, any, v);
        else
            EMIT("mov.b32", any, v);
    }
    EMIT("setp.ne.u32", p, any, 0);
    EMIT("vote.sync.any.pred", p, p, mask);
    mg_rc_branch(f, p, true, out);
    mg_rc_copy(f, any, lane);
    EMIT("mad.wide.u32", to, any, 8, x->ctx);
    for (uint32_t k = 0; k < n; k++) {
        mg_id v = f->t.sums[k];
        EMIT("setp.ne.u32", p, v, 0);
        if (r.n < 32 * (k + 1)) /* behind them stands how many threads have left */
            EMIT("setp.lt.and.u32", p, lane, mg_o_imm(r.n - 32 * k), p);
        mg_emit_guard(x, p, false);
        EMIT("atom.shared.exch.b32", v, mg_o_addr_reg(at, off(r.first + 32 * k)), 0);
        EMIT("cvt.u64.u32", wide, v);
        EMIT("red.global.add.u64",
             mg_o_addr_reg(to, MG_CTX_BYTES + 8 * ((int64_t)f->at + f->shared.slot + r.first + 32 * k)), wide);
        mg_emit_guard(x, 0, false);
    }
}

void mg_shared_drain(struct mg_rfunc *f, struct mg_rrange r, mg_id base, mg_id mask, mg_id rank, mg_id mine)
{
    struct mg_emit *x = &f->x;
    mg_id i = mg_rc_t32(f, 7), at = mg_rc_t32(f, 8), v = mg_rc_t32(f, 9), n = mg_rc_t32(f, 5), p = mg_rc_tp(f, 1),
          wide = mg_rc_t64(f, 1), to = mg_rc_t64(f, 2);
    mg_id again = mg_rc_label(f), done = mg_rc_label(f);
    look_at_guards(f);
    mg_rc_own(f, n, mask, n); /* groups that come together here keep their own steps */
    EMIT("popc.b32", n, n);
    EMIT("mov.u32", i, rank);
    mg_rc_put_label(f, again);
    EMIT("setp.ge.u32", p, i, mg_o_imm(r.n));
    mg_rc_branch(f, p, false, done);
    EMIT("mov.u32", at, begin_of(f));
    EMIT("mad.lo.u32", at, i, 4, at);
    EMIT("atom.shared.exch.b32", v, mg_o_addr_reg(at, off(r.first)), 0);
    EMIT("setp.ne.u32", p, v, 0);
    if (mine) EMIT("and.pred", p, p, mine);
    EMIT("cvt.u64.u32", wide, v);
    EMIT("mad.wide.u32", to, i, 8, base);
    mg_emit_guard(x, p, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(to, 8 * ((int64_t)f->shared.slot + r.first)), wide);
    mg_emit_guard(x, 0, false);
    EMIT("add.u32", i, i, n);
    mg_rc_branch(f, 0, false, again);
    mg_rc_put_label(f, done);
}

void mg_shared_leave(struct mg_rfunc *f, bool whole, mg_id mask, mg_id rank, mg_id out)
{
    struct mg_emit *x = &f->x;
    mg_id old = mg_rc_t32(f, 5), n = mg_rc_t32(f, 6), own = mg_rc_t32(f, 7), all = mg_rc_t32(f, 8),
          at = mg_rc_t32(f, 9), p = mg_rc_tp(f, 1);
    EMIT("mov.u32", all, mg_o_sreg(MG_SREG_ntid, 1));
    for (uint8_t axis = 2; axis <= 3; axis++) {
        EMIT("mov.u32", n, mg_o_sreg(MG_SREG_ntid, axis));
        EMIT("mul.lo.u32", all, all, n);
    }
    if (whole) {
        EMIT("mov.u32", n, 32);
    } else {
        mg_rc_own(f, own, mask, n);
        EMIT("popc.b32", n, own);
    }
    EMIT("setp.eq.u32", p, rank, 0);
    EMIT("mov.u32", at, begin_of(f));
    EMIT("mad.lo.u32", at, rank, 4,
         at); /* an address that ptxas cannot tell from those of events, which stay in front of it */
    EMIT("mov.u32", old, 0);
    mg_emit_guard(x, p, false);
    EMIT("atom.shared.add.u32", old, mg_o_addr_reg(at, off(f->shared.n)), n);
    mg_emit_guard(x, 0, false);
    EMIT("add.u32", old, old, n);
    EMIT("setp.eq.and.u32", p, old, all, p);
    EMIT("vote.sync.any.pred", p, p, whole ? mg_o_imm(-1) : mg_o_reg(own));
    mg_rc_branch(f, p, true, out);
}

/* Does who comes by there go on to a brkpt or trap? */
static bool stops(const struct mg_rfunc *f, const struct mg_count *k)
{
    const bool *at = f->plan->freq->stops;
    return (k->kind == MG_COUNT_BLOCK || k->kind == MG_COUNT_EDGE) &&
           (at[k->block] || (k->kind == MG_COUNT_EDGE && at[f->x.c->edges[k->edge]]));
}

/* Stand counters whose rounds have to be known in the loop itself, not in one inside it? */
static bool is_guarded(const struct mg_rfunc *f, uint32_t loop)
{
    for (uint32_t i = 0; i < f->n_measured; i++) {
        bool grows = f->counters[i].kind == MG_RC_SHARED && f->plan->list[i].width != MG_WIDTH_BIT &&
                     !stops(f, &f->plan->list[i]);
        if ((grows || f->counters[i].guarded) && mg_shared_loop(f, i) == loop) return true;
    }
    return false;
}

/* The block behind which a loop that is left in the midst goes around: its end is passed once for each round but the
 * last. UINT32_MAX: there is none. */
static uint32_t sole_latch(const struct mg_rfunc *f, uint32_t loop)
{
    const struct mg_cfg *c = f->x.c;
    const struct mg_block *head = &c->blocks[f->plan->loops->loops[loop].header];
    uint32_t latch = UINT32_MAX, n = 0;
    for (uint32_t i = 0; i < head->n_preds; i++) {
        uint32_t from = c->preds[head->pred_at + i];
        if (mg_loops_contains(f->plan->loops, loop, from)) latch = from, n++;
    }
    return n == 1 && c->blocks[latch].n_succs == 1 && latch != f->plan->loops->loops[loop].header ? latch : UINT32_MAX;
}

void mg_shared_rounds(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    const struct mg_loops *l = f->plan->loops;
    mg_id rounds = 0, p = mg_rc_tp(f, 1);
    bool *counts = mg_xcalloc(l->n_loops + 1, sizeof *counts);
    for (uint32_t k = l->n_loops; k-- > 0;) { /* inner loops first */
        counts[k] = counts[k] || is_guarded(f, k);
        if (!counts[k]) continue;
        uint32_t latch = sole_latch(f, k);
        if (latch != UINT32_MAX && l->loops[k].parent != MG_NO_LOOP)
            counts[l->loops[k].parent] = true; /* whose rounds are those which end there at once */
        if (!rounds) {
            rounds = mg_emit_reg(x, "__mg_r", MG_TYPE_u32);
            x->at = x->t->entry_at[x->ix];
            EMIT("mov.u32", rounds, 0);
        }
        x->at = latch != UINT32_MAX ? x->c->blocks[latch].last : mg_block_head(x->m, &x->c->blocks[l->loops[k].header]);
        EMIT("add.u32", rounds, rounds, mg_o_imm((int64_t)(UINT32_MAX / MOST_ROUNDS + 1)));
        EMIT("setp.eq.u32", p, rounds, 0);
        mg_rc_drain_apart(f, f->shared.ranges ? mg_loop_words_of(f, k) : mg_shared_whole_range(f), p);
    }
    free(counts);
}

/* Words of loops are drained where their loops end. */
static bool shared_any(const struct mg_rfunc *f, const uint64_t *set)
{
    bool any = false;
    for (uint32_t i = 0; i < f->n && !any && !f->shared.ranges; i++)
        any = f->counters[i].kind == MG_RC_SHARED && mg_rc_in(set, i);
    return any;
}

bool mg_rc_all_drain(const struct mg_rfunc *f)
{
    const struct mg_cfg *c = f->x.c;
    bool all = f->shared.n && !f->shared.ranges && f->sync;
    for (uint32_t b = 0; all && b < c->n_blocks; b++) {
        unsigned op = mg_node_form(c->m, &c->m->nodes.at[c->blocks[b].last])->op;
        all = !c->reachable[b] || (op != MG_OP_ret && op != MG_OP_exit) || shared_any(f, f->live.sets[b]);
    }
    return all;
}

static void shared_flush(struct mg_rfunc *f, const struct mg_flush *w)
{
    if (f->shared.arrives) mg_shared_leave(f, false, w->mask, w->rank, w->out);
    mg_shared_drain(f, mg_shared_whole_range(f), w->base, w->mask, w->rank, 0);
}

const struct mg_storage mg_storage_shared = {.name = "shared",
                                             .in_memory = true,
                                             .leaves = true,
                                             .holds = shared_holds,
                                             .take = shared_take,
                                             .event = shared_event,
                                             .add = shared_add,
                                             .any = shared_any,
                                             .flush = shared_flush};
