/* Cells near the threads: words of 32 bits in the CTA's shared memory, which one instruction adds to and nobody waits
 * for, where an atomic on global memory takes ten times as long.
 *
 *     entry     all threads zero the words, the first one notes how many threads there are;  bar.sync
 *     adding    red.shared.add.u32 [word], v
 *     loops     every 2^20 rounds of a lane it takes what is there to memory: 1,024 lanes add up to 64 a round to
 *               a strip's
 *               cell (32 of them) or 1 to any other, which 32 bits hold
 *     leaving   lanes take themselves off the number of threads; the last take all words to memory
 *
 *     callees   who enters one, and every 2^12 rounds of a lane in its loops, notes 2^12 for each lane in one more
 *               word; whoever
 *               finds 2^31 there takes what is there to memory (what all lanes add to together, in callees that
 *                 call nobody)
 *
 * Words lie behind the cells of a copy in the launch's memory like sums, each belonging to a cell. On GPUs alone,
 * and where no function that the kernel calls ends threads. */
#include "count/regs.h"
#include "patch/priv.h"

enum {
    MOST_BYTES = 8192,
    MOST_ROUNDS = 1 << 20,
    CALLEE_ROUNDS = 1 << 12,
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
    k->funcs = mg_arena_array(&p->scratch, struct mg_patch_near_func, all->sites->n_funcs);
    for (uint32_t f = 0; f < all->sites->n_funcs; f++)
        k->funcs[f].loops = mg_arena_array(&p->scratch, bool, mg_patch_loops(p, f)->n_loops + 1);
    k->var = mg_shared_declare(all->m, all->sites->n_funcs == 1 ? all->twin->funcs[0] : 0, MOST_BYTES / 4);
    *mg_vec_push(&k->cells) = 0; /* the first counts threads */
    return true;
}

static bool ends_with_call(const struct mg_cfg *c, uint32_t b)
{
    return mg_node_form(c->m, &c->m->nodes.at[c->blocks[b].last])->op == MG_OP_call;
}

/* Is some function called in a loop? What callees do may end up there. */
static bool calls_in_loops(struct mg_patch *p)
{
    for (uint32_t f = 0; f < p->all->sites->n_funcs; f++) {
        const struct mg_cfg *c = mg_patch_cfg(p, f);
        for (uint32_t b = 0; b < c->n_blocks; b++)
            if (mg_patch_loops(p, f)->loop_of[b] != MG_NO_LOOP && ends_with_call(c, b)) return true;
    }
    return false;
}

/* Can the rounds of the loop around the spot be counted, and do lanes meet in it as before when it adds to words? */
static bool bounds_rounds(struct mg_code_at *at)
{
    const struct mg_loops *l = mg_patch_loops(at->p, at->func_ix);
    uint32_t b = at->kind < MG_AT_BEFORE || at->kind == MG_AT_EXIT
                     ? MG_NO_BLOCK
                     : mg_cfg_block_of(mg_patch_cfg(at->p, at->func_ix), at->node);
    if (at->kind == MG_AT_EDGE || at->called || (at->func_ix && calls_in_loops(at->p))) return false;
    uint32_t loop = b == MG_NO_BLOCK ? MG_NO_LOOP : l->loop_of[b];
    if (loop == MG_NO_LOOP) return true;
    if (mg_patch_may_spin(at->p, at->func_ix)[loop]) return false; /* irreducible ones, too */
    at->p->near.funcs[at->func_ix].loops[loop] = true;
    return true;
}

/* Word of the cell `first`, behind which lie those of n - 1 more; 0: in memory alone. Cells of a strip are taken
 * together. */
static uint32_t word_of(struct mg_code_at *at, uint32_t first, uint32_t n)
{
    struct mg_patch *p = at->p;
    struct mg_patch_near *k = &p->near;
    uint64_t known;
    if (!k->wanted || !begin(p) || !bounds_rounds(at)) return 0;
    if (mg_map_get(&k->word_of, first, &known)) return (uint32_t)known;
    uint32_t from = first, to = first + n;
    for (uint32_t i = 0; i < p->strips.n; i++)
        if (first >= p->strips.at[i].first && first < p->strips.at[i].first + p->strips.at[i].n)
            from = p->strips.at[i].first, to = MG_MAX(to, from + p->strips.at[i].n);
    if (k->cells.n + (to - from) + WARP + 1 + 2 * GUARDS > MOST_BYTES / 4)
        return 0; /* one is what callees note their work in */
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

/* The same where the kernel's own code knows this lane's word, without asking where the CTA's shared memory is. */
static mg_id near_place(struct mg_code_at *at, mg_id ix)
{
    if (at->func_ix) return indexed(at, ix);
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
    return at->p->near.wanted && !at->func_ix && begin(at->p);
}

bool mg_near_strip(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id v)
{
    uint32_t word = at->func_ix ? 0 : word_of(at, first, n);
    if (word) add_word(at, own_place(at), word, v);
    return word != 0;
}

bool mg_near_strip_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k, mg_id v)
{
    uint32_t word = at->func_ix ? 0 : word_of(at, first, n);
    if (word) add_word(at, near_place(at, k), word, v);
    return word != 0;
}

bool mg_near_tally(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix, mg_id one)
{
    uint32_t word = at->func_ix ? 0 : word_of(at, first, n);
    if (word) add_one(at, near_place(at, ix), word, mg_o_imm(1), one ? one : mg_value_leader(at));
    return word != 0;
}

/* Callees that call others keep too much in registers to have it pay. */
static bool is_leaf(struct mg_patch *p, uint32_t f)
{
    const struct mg_cfg *c = mg_patch_cfg(p, f);
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (ends_with_call(c, b)) return false;
    return true;
}

/* All lanes at once, which hardware does in one step. */
bool mg_near_lanes(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix)
{
    uint32_t word = at->func_ix && !is_leaf(at->p, at->func_ix) ? 0 : word_of(at, first, n);
    if (!word) return false;
    struct mg_code_at *pro = mg_at_prologue(at->p, at->func_ix);
    mg_id *base = &at->p->near.funcs[at->func_ix].base, a = mg_code_temp(at, MG_TYPE_b32);
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
    uint32_t word = at->func_ix ? 0 : word_of(at, cell, 1);
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
    MG_CODE(at, "add.u32", rounds, rounds, 1); /* tells ptxas that this ends (analysis/spin.h) */
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
    MG_GUARDED(at, other, "st.global.u64", mg_o_addr_reg(at->p->all->twin->ctx_reg[0], MG_CTX_SPOILT), 1);
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
    MG_CODE(at, "setp.ge.u32", over, i, mg_o_imm(p->near.cells.n + p->near.has_work));
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

/* One of the lanes here notes what they may add from here on. */
static void note_work(struct mg_code_at *at)
{
    mg_id n = mg_code_temp(at, MG_TYPE_b32), old = mg_code_temp(at, MG_TYPE_b32),
          little = mg_code_temp(at, MG_TYPE_pred), none = mg_code_temp(at, MG_TYPE_b32),
          one = mg_code_temp(at, MG_TYPE_b32), on = mg_code_label(at);
    struct mg_opnd work = word_at(at->p, at->p->near.cells.n);
    at->p->near.has_work = true;
    MG_CODE(at, "popc.b32", n, mg_value_own(at));
    MG_CODE(at, "mul.lo.u32", n, n, CALLEE_ROUNDS);
    MG_CODE(at, "mov.u32", old, 0);
    MG_GUARDED(at, mg_value_leader(at), "atom.shared.add.u32", old, work, n);
    MG_CODE(at, "setp.lt.u32", little, old, (int64_t)1 << 31);
    mg_code_push_guard(at, little, false);
    MG_CODE(at, "bra", mg_o_label(on));
    mg_code_pop_guard(at);
    MG_CODE(at, "atom.shared.exch.b32", old, work, 0);
    MG_CODE(at, "mov.u32", none, 0);
    MG_CODE(at, "mov.u32", one, 1);
    drain_words(at, none, one);
    mg_code_place(at, on);
}

/* At the head of each loop in which words are added to. */
static void count_rounds(struct mg_patch *p, uint32_t f)
{
    const struct mg_loops *l = mg_patch_loops(p, f);
    const struct mg_sites *s = mg_patch_sites(p);
    mg_id rounds = 0;
    for (uint32_t k = 0; k < l->n_loops; k++) {
        if (!p->near.funcs[f].loops[k]) continue;
        struct mg_code_at *at = mg_at_block(p, s->first_block[f] + l->loops[k].header);
        if (!rounds) {
            rounds = mg_code_reg(at, MG_TYPE_b32);
            MG_CODE(mg_at_entry(p, f), "mov.u32", rounds, 0);
        }
        mg_id few = mg_code_temp(at, MG_TYPE_pred), n = mg_code_temp(at, MG_TYPE_b32), on = mg_code_label(at), rank;
        MG_CODE(at, "add.u32", rounds, rounds, mg_o_imm((int64_t)(UINT32_MAX / (f ? CALLEE_ROUNDS : MOST_ROUNDS) + 1)));
        MG_CODE(at, "setp.ne.u32", few, rounds, 0);
        mg_code_push_guard(at, few, false);
        MG_CODE(at, "bra", mg_o_label(on));
        mg_code_pop_guard(at);
        if (f) {
            note_work(at);
        } else {
            rank = rank_of(at);
            MG_CODE(at, "mov.u32", n, mg_value_n_active(at));
            drain_words(at, rank, n);
        }
        mg_code_place(at, on);
    }
}

void mg_near_end(struct mg_patch *p)
{
    struct mg_patch_near *k = &p->near;
    if (!k->var) return;
    for (uint32_t f = 0; f < p->all->sites->n_funcs; f++) {
        count_rounds(p, f);
        if (f && k->funcs[f].base) note_work(mg_at_entry(p, f));
    }
    p->all->m->vars.at[k->var].dims[0] = mg_shared_whole(4 * ((uint32_t)k->cells.n + k->has_work + WARP + 2 * GUARDS)) /
                                         4; /* a strip ends before its 32 lanes do */
    enter(p);
    mg_at_exits(p, 0, leave, NULL);
}
