/* Cells near the threads: words of 32 bits in the CTA's shared memory, which one instruction adds to and nobody waits
 * for, where an atomic on global memory takes ten times as long.
 *
 *     entry     all threads zero the words, the first one notes how many threads there are;  bar.sync
 *     adding    red.shared.add.u32 [word], v: in code that a thread runs once, the kernel's own outside of loops. So 32
 *               bits hold what 1,024 lanes add, up to 64 each
 *     leaving   lanes take themselves off the number of threads; the last take all words to memory
 *
 * Never in loops: in some of them, and not only in those whose end it does not see, ptxas puts YIELD where an atomic
 * stands on shared memory. With YIELD lanes that branches parted no longer meet (seen on an H200: BSYNC lets them go on
 * piece by piece), and which lanes run together is what several tools measure.
 *
 * Words lie behind the cells of a copy in the launch's memory like sums, each belonging to a cell. On GPUs alone,
 * and where no function that the kernel calls ends threads. */
#include "count/regs.h"
#include "patch/priv.h"

enum {
    MOST_BYTES = 8192,
    WARP = 32,
    GUARDS = 1 /* word in front of ours and behind, looked at when all have left */,
    GUARD = MG_SHARED_GUARD
};

/* Is there dynamic shared memory, which would move? */
static bool is_dynamic(const struct mg_module *m)
{
    for (mg_id v = 1; v < m->vars.n; v++)
        if (m->vars.at[v].space == MG_SPACE_shared && !m->vars.at[v].is_param && !mg_var_bytes(&m->vars.at[v]))
            return true;
    return false;
}

/* May there be any? The variable is declared then; how large it is becomes known at the end. */
static bool begin(struct mg_patch *p)
{
    struct mg_patches *all = p->all;
    struct mg_patch_near *k = &p->near;
    if (k->tried) return k->var != 0;
    k->tried = true;
    if (!all->o->reduce || all->m->sm < 70 || mg_patch_ends_elsewhere(p, 0) || is_dynamic(all->m) ||
        !mg_shared_room(all->m, MOST_BYTES))
        return false;
    k->var = mg_shared_declare(all->m, all->sites->n_funcs == 1 ? all->twin->funcs[0] : 0, MOST_BYTES / 4);
    *mg_vec_push(&k->cells) = 0; /* the first counts threads */
    return true;
}

/* Does a thread run code here once at most? */
static bool runs_once(struct mg_code_at *at)
{
    return at->kind != MG_AT_EDGE && !at->called && !at->func_ix && !mg_at_repeats(at);
}

/* Word of the cell `first`, behind which lie those of n - 1 more; 0: in memory alone. Cells of a strip are taken
 * together. */
static uint32_t word_of(struct mg_code_at *at, uint32_t first, uint32_t n)
{
    struct mg_patch *p = at->p;
    struct mg_patch_near *k = &p->near;
    uint64_t known;
    if (!k->wanted || !runs_once(at) || !begin(p)) return 0;
    if (mg_map_get(&k->word_of, first, &known)) return (uint32_t)known;
    uint32_t from = first, to = first + n;
    for (uint32_t i = 0; i < p->strips.n; i++)
        if (first >= p->strips.at[i].first && first < p->strips.at[i].first + p->strips.at[i].n)
            from = p->strips.at[i].first, to = MG_MAX(to, from + p->strips.at[i].n);
    if (k->cells.n + (to - from) + WARP + 2 * GUARDS > MOST_BYTES / 4) return 0;
    for (uint32_t i = from; i < to; i++) {
        mg_map_set(&k->word_of, i, k->cells.n);
        *mg_vec_push(&k->cells) = i;
    }
    return (uint32_t)k->cells.n - (to - first);
}

static struct mg_opnd word_at(const struct mg_patch *p, uint32_t word)
{
    return mg_o_addr_var(p->near.var, 4 * ((int64_t)word + GUARDS));
}

/* Address of the word that many behind the first. */
static mg_id indexed(struct mg_code_at *at, mg_id ix)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "mov.u32", r, mg_o_var(at->p->near.var));
    MG_PURE(at, "add.u32", r, r, 4 * GUARDS);
    MG_PURE(at, "mad.lo.u32", r, ix, 4, r);
    return r;
}

/* Address of this lane's word in a strip that begins with word 0. */
static mg_id own_place(struct mg_code_at *at)
{
    struct mg_patch_near *k = &at->p->near;
    mg_id lane = mg_value_lane(at);
    if (!k->lane) k->lane = indexed(mg_at_prologue(at->p, 0), lane);
    return k->lane;
}

static mg_id near_place(struct mg_code_at *at, mg_id ix)
{
    mg_id own = own_place(at), r = mg_code_temp(at, MG_TYPE_b32), lane = mg_value_lane(at);
    MG_PURE(at, "sub.u32", r, ix, lane);
    MG_PURE(at, "mad.lo.u32", r, r, 4, own);
    return r;
}

/* Adds v at a place of this lane's, behind `word`. Lanes that have nothing to add add 0 to a word of their own: under a
 * predicate the assembler makes a branch of it, which takes four times as long. */
static void add_word(struct mg_code_at *at, mg_id place, uint32_t word, mg_id v)
{
    MG_CODE(at, "red.shared.add.u32", mg_o_addr_reg(place, 4 * (int64_t)word), v);
}

static void add_one(struct mg_code_at *at, mg_id place, uint32_t word, struct mg_opnd v, mg_id one)
{
    mg_id own = own_place(at), to = mg_code_temp(at, MG_TYPE_b32), add = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "selp.b32", to, place, own, one);
    MG_PURE(at, "selp.b32", add, v, 0, one);
    add_word(at, to, word, add);
}

bool mg_near_is(struct mg_code_at *at)
{
    return at->p->near.wanted && runs_once(at) && begin(at->p);
}

bool mg_near_strip(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id v)
{
    uint32_t word = word_of(at, first, n);
    if (word) add_word(at, own_place(at), word, v);
    return word != 0;
}

bool mg_near_strip_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k, mg_id v)
{
    uint32_t word = word_of(at, first, n);
    if (word) add_word(at, near_place(at, k), word, v);
    return word != 0;
}

bool mg_near_tally(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix)
{
    uint32_t word = word_of(at, first, n);
    if (word) add_one(at, near_place(at, ix), word, mg_o_imm(1), mg_value_leader(at));
    return word != 0;
}

/* All lanes at once, which hardware does in one step. */
bool mg_near_lanes(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix)
{
    uint32_t word = word_of(at, first, n);
    if (!word) return false;
    struct mg_code_at *pro = mg_at_prologue(at->p, 0);
    mg_id *base = &at->p->near.base, a = mg_code_temp(at, MG_TYPE_b32);
    if (!*base) {
        *base = mg_code_reg(pro, MG_TYPE_b32);
        MG_PURE(pro, "mov.u32", *base, mg_o_var(at->p->near.var));
        MG_PURE(pro, "add.u32", *base, *base, 4 * GUARDS);
    }
    MG_PURE(at, "mad.lo.u32", a, ix, 4, *base);
    MG_CODE(at, "red.shared.add.u32", mg_o_addr_reg(a, 4 * (int64_t)word), 1);
    return true;
}

bool mg_near_cell(struct mg_code_at *at, uint32_t cell, struct mg_opnd v, mg_id one)
{
    uint32_t word = word_of(at, cell, 1);
    mg_id begin = word ? mg_code_temp(at, MG_TYPE_b32) : 0;
    if (!word) return false;
    MG_PURE(at, "mad.lo.u32", begin, mg_value_lane(at), -4, own_place(at));
    add_one(at, begin, word, v, one);
    return true;
}

/* ---- code at the end of the tool's work ------------------------------------------------------------------------ */

/* Takes words first, first + step, ... to memory; by the lanes here with the spot's guard. Each word is taken once,
 * whoever else takes words meanwhile: two groups of lanes that leave after one another may meet at a branch in between.
 */
static void drain_words(struct mg_code_at *at, mg_id first, mg_id step)
{
    struct mg_patch *p = at->p;
    mg_id i = mg_code_temp(at, MG_TYPE_b32), from = mg_code_temp(at, MG_TYPE_b32), v = mg_code_temp(at, MG_TYPE_b32),
          over = mg_code_temp(at, MG_TYPE_pred), some = mg_code_temp(at, MG_TYPE_pred);
    mg_id wide = mg_code_temp(at, MG_TYPE_b64), to = mg_code_temp(at, MG_TYPE_b64), again = mg_code_label(at),
          done = mg_code_label(at);
    mg_id rounds = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "add.u32", i, first, 1);
    MG_CODE(at, "mov.u32", rounds, 0);
    MG_CODE(at, "mad.wide.u32", to, first, 8, mg_value_base(at));
    mg_code_rolled(at);
    mg_code_place(at, again);
    MG_CODE(at, "setp.ge.u32", over, i, mg_o_imm(p->near.cells.n));
    mg_code_push_guard(at, over, false);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    MG_CODE(at, "mov.u32", from, mg_o_var(p->near.var));
    MG_CODE(at, "mad.lo.u32", from, i, 4, from);
    MG_CODE(at, "atom.shared.exch.b32", v, mg_o_addr_reg(from, 4 * GUARDS), 0);
    MG_CODE(at, "cvt.u64.u32", wide, v);
    MG_CODE(at, "setp.ne.u32", some, v, 0);
    mg_code_push_guard(at, some, false);
    MG_CODE(at, "red.global.add.u64", mg_o_addr_reg(to, 8 * ((int64_t)p->rules.n + 1)), wide);
    mg_code_pop_guard(at);
    MG_CODE(at, "add.u32", i, i, step);
    MG_CODE(at, "mad.wide.u32", to, step, 8, to);
    MG_CODE(at, "add.u32", rounds, rounds, 1); /* so that ptxas sees its end, and puts no YIELD */
    MG_CODE(at, "setp.lt.u32", over, rounds, mg_o_imm(p->near.cells.n));
    mg_code_push_guard(at, over, false);
    MG_CODE(at, "bra", mg_o_label(again));
    mg_code_pop_guard(at);
    mg_code_place(at, done);
}

/* This lane's place among those here with the spot's guard. */
static mg_id rank_of(struct mg_code_at *at)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b32);
    MG_PURE(at, "and.b32", r, mg_value_lt(at), mg_value_active(at));
    MG_PURE(at, "popc.b32", r, r);
    return r;
}

static struct mg_opnd guard_at(const struct mg_patch *p, bool back)
{
    return mg_o_addr_var(p->near.var,
                         4 * (back ? (int64_t)p->all->m->vars.at[p->near.var].dims[0] - GUARDS : GUARDS - 1));
}

/* Where one was written by somebody else, so may our words have been: the launch has no counts. */
static void look_at_guards(struct mg_code_at *at)
{
    mg_id front = mg_code_temp(at, MG_TYPE_b32), back = mg_code_temp(at, MG_TYPE_b32),
          other = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "ld.volatile.shared.u32", front, guard_at(at->p, false));
    MG_CODE(at, "ld.volatile.shared.u32", back, guard_at(at->p, true));
    MG_CODE(at, "xor.b32", front, front, GUARD);
    MG_CODE(at, "xor.b32", back, back, GUARD);
    MG_CODE(at, "or.b32", front, front, back);
    MG_CODE(at, "setp.ne.u32", other, front, 0);
    mg_code_push_guard(at, other, false); /* with the spot's own: other lanes have not asked */
    MG_CODE(at, "st.global.u64", mg_o_addr_reg(at->p->all->twin->ctx_reg[0], MG_CTX_SPOILT), 1);
    mg_code_pop_guard(at);
}

static void leave(struct mg_code_at *at, void *user)
{
    mg_id old = mg_code_temp(at, MG_TYPE_b32), off = mg_code_temp(at, MG_TYPE_b32),
          last = mg_code_temp(at, MG_TYPE_pred), n, rank, lead, done = mg_code_label(at);
    (void)user;
    n = mg_code_temp(at, MG_TYPE_b32), rank = rank_of(at), lead = mg_value_leader(at);
    MG_PURE(at, "popc.b32", n, mg_value_own(at)); /* groups that meet here leave one by one */
    MG_PURE(at, "neg.s32", off, n);
    MG_PURE(at, "mov.u32", old, 0);
    mg_code_emit(at, 0, false, "membar.cta", NULL, 0);
    MG_GUARDED(at, lead, "atom.shared.add.u32", old, word_at(at->p, 0), off);
    MG_PURE(at, "setp.eq.u32", last, old, n); /* nobody else has 0 left to leave */
    MG_CODE(at, "vote.sync.any.pred", last, last,
            mg_value_active(at)); /* of two groups of a warp that come together here, too: no harm */
    mg_code_push_guard(at, last, true);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    look_at_guards(at);
    drain_words(at, rank, n);
    mg_code_place(at, done);
}

static void enter(struct mg_patch *p)
{
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id i = mg_code_temp(at, MG_TYPE_b32), n = mg_code_temp(at, MG_TYPE_b32), v = mg_code_temp(at, MG_TYPE_b32), to,
          over = mg_code_temp(at, MG_TYPE_pred), again = mg_code_label(at), done = mg_code_label(at);
    mg_id all = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "mov.u32", n, mg_o_sreg(MG_SREG_ntid, 1));
    for (uint8_t axis = 2; axis <= 3; axis++) {
        MG_CODE(at, "mov.u32", v, mg_o_sreg(MG_SREG_ntid, axis));
        MG_CODE(at, "mul.lo.u32", n, n, v);
    }
    MG_CODE(at, "mov.u32", all, n);
    MG_CODE(at, "mov.u32", i, mg_value_tid(at));
    mg_code_rolled(at);
    mg_code_place(at, again);
    MG_CODE(at, "setp.ge.u32", over, i, mg_o_imm(p->near.cells.n));
    mg_code_push_guard(at, over, false);
    MG_CODE(at, "bra", mg_o_label(done));
    mg_code_pop_guard(at);
    to = indexed(at, i);
    MG_CODE(at, "setp.eq.u32", over, i, 0);
    MG_CODE(at, "selp.u32", v, all, 0, over);
    MG_CODE(at, "st.shared.u32", mg_o_addr_reg(to, 0), v);
    MG_CODE(at, "add.u32", i, i, n);
    MG_CODE(at, "bra", mg_o_label(again));
    mg_code_place(at, done);
    for (int back = 0; back < 2; back++) MG_CODE(at, "st.shared.u32", guard_at(p, back), GUARD);
    MG_CODE(at, "bar.sync", 0);
}

void mg_near_end(struct mg_patch *p)
{
    struct mg_patch_near *k = &p->near;
    if (!k->var) return;
    p->all->m->vars.at[k->var].dims[0] =
        mg_shared_whole(4 * ((uint32_t)k->cells.n + WARP + 2 * GUARDS)) / 4; /* a strip ends before its 32 lanes do */
    enter(p);
    mg_at_exits(p, 0, leave, NULL);
}
