/* Updates of cells and tables: by atomics on memory, with as few of them as the spread allows. */
#include "patch/priv.h"

#include <string.h>

enum { WARP = 32 };

mg_id mg_value_base(struct mg_code_at *at)
{
    struct mg_patch_own *own = &at->p->own[at->func_ix];
    if (at->kind == MG_AT_CALLED) return at->base;
    if (!own->base) own->base = mg_code_reg(at, MG_TYPE_b64);
    return own->base;
}

mg_id mg_cell_place(struct mg_code_at *at, uint32_t first)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "add.u64", r, mg_value_base(at), mg_o_imm(8 * (int64_t)first));
    return r;
}

mg_id mg_value_list(struct mg_code_at *at)
{
    struct mg_patch_own *own = &at->p->own[at->func_ix];
    if (!own->list) own->list = mg_code_reg(at, MG_TYPE_b64);
    return own->list;
}

static const char *red_form(enum mg_merge rule)
{
    return rule == MG_MERGE_SUM   ? "red.global.add.u64"
           : rule == MG_MERGE_MAX ? "red.global.max.u64"
                                  : "red.global.or.b64";
}

static bool is_zero(struct mg_opnd v)
{
    return v.kind == MG_OPND_imm && !v.val;
}

/* v as an operand of 64 bits. */
static struct mg_opnd wide(struct mg_code_at *at, struct mg_opnd v)
{
    if (v.kind == MG_OPND_imm) return mg_o_imm((int64_t)v.val);
    if (v.kind == MG_OPND_reg && !v.sub && !v.val &&
        mg_type_bits((enum mg_type)mg_at_module(at)->regs.at[v.id].type) == 64 &&
        mg_type_kind((enum mg_type)mg_at_module(at)->regs.at[v.id].type) != MG_TK_FLOAT)
        return v;
    return mg_o_reg(mg_value_wide(at, v));
}

/* n times v, n in 32 bits. */
static mg_id times(struct mg_code_at *at, mg_id n, struct mg_opnd v)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    if (v.kind == MG_OPND_imm && v.val <= UINT32_MAX) {
        if (v.val == 1)
            MG_PURE(at, "cvt.u64.u32", r, n);
        else
            MG_PURE(at, "mul.wide.u32", r, n, v);
        return r;
    }
    MG_PURE(at, "cvt.u64.u32", r, n);
    MG_PURE(at, "mul.lo.u64", r, r, wide(at, v));
    return r;
}

/* ---- over a warp -------------------------------------------------------------------------------------------
 *
 * redux.sync works on 32 bits. A sum over 32 lanes is exact where each has at most 27: wider values are
 * taken in pieces. A maximum of 64 bits is that of the high halves, then of the low ones that go with it.
 * Sums are by a mask that ptxas does not take for that of whoever runs together (mg_value_own). A maximum of more
 * lanes than its own does no harm, nor does a match of which all see the same. */

static mg_id redux(struct mg_code_at *at, const char *form, mg_id v, mg_id mask)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    mg_id r = mg_code_temp(at, MG_TYPE_b32);
    mg_code_emit(at, g->pred, g->is_not, MG_INST(form, r, v, mask));
    return r;
}

/* Bits [from, from + n) of a value of 32 or 64 bits. */
static mg_id piece(struct mg_code_at *at, struct mg_opnd v, bool is64, unsigned from, unsigned n)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b32), t = is64 ? mg_code_temp(at, MG_TYPE_b64) : r;
    if (is64) {
        MG_PURE(at, "shr.u64", t, v, mg_o_imm(from));
        MG_PURE(at, "cvt.u32.u64", r, t);
    } else {
        MG_PURE(at, "shr.u32", r, v, mg_o_imm(from));
    }
    if (n < 32) MG_PURE(at, "and.b32", r, r, mg_o_imm(((int64_t)1 << n) - 1));
    return r;
}

/* into = into + x * 2^shift */
static void add_piece(struct mg_code_at *at, mg_id into, mg_id x, unsigned shift)
{
    mg_id w = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "cvt.u64.u32", w, x);
    MG_PURE(at, "shl.b64", w, w, mg_o_imm(shift));
    MG_PURE(at, "add.u64", into, into, w);
}

static mg_id sum_of_warp(struct mg_code_at *at, struct mg_opnd v, bool is64)
{
    mg_id sum = mg_code_temp(at, MG_TYPE_b64), own = mg_value_own(at);
    unsigned width = is64 ? 27 : 16;
    MG_PURE(at, "cvt.u64.u32", sum, redux(at, "redux.sync.add.u32", piece(at, v, is64, 0, width), own));
    for (unsigned from = width; from < (is64 ? 64u : 32u); from += width)
        add_piece(at, sum, redux(at, "redux.sync.add.u32", piece(at, v, is64, from, width), own), from);
    return sum;
}

static mg_id max_of_warp(struct mg_code_at *at, struct mg_opnd v, bool is64)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    if (!is64) {
        mg_id bare = mg_code_temp(at, MG_TYPE_b32);
        MG_PURE(at, "mov.b32", bare, v);
        MG_PURE(at, "cvt.u64.u32", r, redux(at, "redux.sync.max.u32", bare, mg_value_active(at)));
        return r;
    }
    mg_id high = piece(at, v, true, 32, 32), low = piece(at, v, true, 0, 32),
          top = redux(at, "redux.sync.max.u32", high, mg_value_active(at)), mine = mg_code_temp(at, MG_TYPE_pred);
    MG_PURE(at, "setp.eq.u32", mine, high, top);
    MG_PURE(at, "selp.b32", low, low, 0, mine);
    MG_PURE(at, "cvt.u64.u32", r, redux(at, "redux.sync.max.u32", low, mg_value_active(at)));
    add_piece(at, r, top, 32);
    return r;
}

static mg_id or_of_warp(struct mg_code_at *at, struct mg_opnd v, bool is64)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_PURE(at, "cvt.u64.u32", r, redux(at, "redux.sync.or.b32", piece(at, v, is64, 0, 32), mg_value_active(at)));
    if (is64) add_piece(at, r, redux(at, "redux.sync.or.b32", piece(at, v, true, 32, 32), mg_value_active(at)), 32);
    return r;
}

static bool reduces(const struct mg_code_at *at)
{
    return at->p->all->o->reduce && at->p->all->m->sm >= 80;
}

static void update(struct mg_code_at *at, mg_id base, int64_t off, enum mg_merge rule, struct mg_opnd v,
                   enum mg_spread spread)
{
    struct mg_opnd to = mg_o_addr_reg(base, off);
    if (is_zero(v)) return;
    if (spread == MG_EACH && v.kind == MG_OPND_imm) spread = MG_TIMES;
    if (spread == MG_ALONE || (spread == MG_EACH && !reduces(at))) {
        struct mg_opnd w = wide(at, v);
        MG_CODE(at, red_form(rule), to, w);
        return;
    }
    mg_id lead = mg_value_leader(at);
    struct mg_opnd w;
    if (spread == MG_EACH) {
        const struct mg_reg *r = v.kind == MG_OPND_reg && !v.sub && !v.val ? &mg_at_module(at)->regs.at[v.id] : NULL;
        bool is32 =
            r && mg_type_bits((enum mg_type)r->type) == 32 && mg_type_kind((enum mg_type)r->type) != MG_TK_FLOAT;
        struct mg_opnd x = is32 ? v : wide(at, v);
        w = mg_o_reg(rule == MG_MERGE_SUM   ? sum_of_warp(at, x, !is32)
                     : rule == MG_MERGE_MAX ? max_of_warp(at, x, !is32)
                                            : or_of_warp(at, x, !is32));
    } else {
        w = spread == MG_TIMES && rule == MG_MERGE_SUM ? mg_o_reg(times(at, mg_value_n_active(at), v)) : wide(at, v);
    }
    MG_GUARDED(at, lead, red_form(rule), to, w);
}

/* Each lane has an address of its own. Lanes that add one constant to one address do it together: `same` is
 * what tells their addresses apart. */
static void update_each(struct mg_code_at *at, mg_id base, int64_t off, enum mg_merge rule, struct mg_opnd v,
                        mg_id same)
{
    if (is_zero(v)) return;
    if (v.kind == MG_OPND_imm && reduces(at)) {
        const struct mg_code_guard *g = mg_at_guard(at);
        mg_id mask = mg_value_active(at), lt = mg_value_lt(at), mates = mg_code_temp(at, MG_TYPE_b32),
              below = mg_code_temp(at, MG_TYPE_b32), lead = mg_code_temp(at, MG_TYPE_pred);
        mg_code_emit(at, g->pred, g->is_not, "match.any.sync.b32",
                     (const struct mg_opnd[]){mg_o_reg(mates), mg_o_reg(same), mg_o_reg(mask)}, 3);
        MG_PURE(at, "and.b32", below, lt, mates);
        if (g->pred)
            MG_PURE(at, "setp.eq.and.u32", lead, below, 0, g->is_not ? mg_o_not(g->pred) : mg_o_reg(g->pred));
        else
            MG_PURE(at, "setp.eq.u32", lead, below, 0);
        if (rule == MG_MERGE_SUM) MG_PURE(at, "popc.b32", below, mates);
        MG_GUARDED(at, lead, red_form(rule), mg_o_addr_reg(base, off),
                   rule == MG_MERGE_SUM ? mg_o_reg(times(at, below, v)) : wide(at, v));
        return;
    }
    struct mg_opnd w = wide(at, v);
    MG_CODE(at, red_form(rule), mg_o_addr_reg(base, off), w);
}

static enum mg_merge rule_of(struct mg_code_at *at, uint32_t cell)
{
    if (cell < at->p->rules.n) return (enum mg_merge)at->p->rules.at[cell];
    mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)cell);
    return MG_MERGE_SUM;
}

/* For devices that take probes by what they mean; where the region begins is added when it is known (link.c). */
static void count(struct mg_code_at *at, uint32_t cell, struct mg_opnd v, bool per_warp)
{
    struct mg_opnd w = wide(at, v);
    MG_CODE(at, per_warp ? "count_warps" : "count_threads", mg_o_imm(cell), w);
}

void mg_cell_update(struct mg_code_at *at, uint32_t cell, struct mg_opnd v, enum mg_spread spread)
{
    if (mg_at_module(at)->marked && rule_of(at, cell) == MG_MERGE_SUM) {
        if (!is_zero(v)) count(at, cell, v, spread == MG_ONCE);
        return;
    }
    update(at, mg_value_base(at), 8 * (int64_t)cell, rule_of(at, cell), v, spread);
}

/* What was read may be of before, which costs an update more: cells only grow. */
void mg_cell_raise(struct mg_code_at *at, uint32_t cell, mg_id v)
{
    mg_id there = mg_code_temp(at, MG_TYPE_b64), more = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "ld.global.u64", there, mg_o_addr_reg(mg_value_base(at), 8 * (int64_t)cell));
    MG_PURE(at, "setp.gt.u64", more, v, there);
    mg_code_push_guard(at, more, false);
    mg_cell_update(at, cell, mg_o_reg(v), MG_EACH);
    mg_code_pop_guard(at);
}

void mg_cell_update_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix, struct mg_opnd v,
                       enum mg_spread spread)
{
    enum mg_merge rule = rule_of(at, first);
    mg_id inside = mg_code_temp(at, MG_TYPE_pred), a = mg_code_temp(at, MG_TYPE_b64);
    if (!n || n > at->p->rules.n - first)
        mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)(first + n));
    MG_PURE(at, "setp.lt.u32", inside, ix, mg_o_imm(n));
    MG_PURE(at, "mad.wide.u32", a, ix, 8, mg_value_base(at));
    mg_code_push_guard(at, inside, false);
    if (spread == MG_ONCE || spread == MG_ALONE)
        update(at, a, 8 * (int64_t)first, rule, v, spread);
    else
        update_each(at, a, 8 * (int64_t)first, rule, v, ix);
    mg_code_pop_guard(at);
}

void mg_cell_set_at(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id ix, struct mg_opnd v)
{
    mg_id a = mg_code_temp(at, MG_TYPE_b64);
    if (!n || first > at->p->rules.n || n > at->p->rules.n - first)
        mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)(first + n));
    MG_PURE(at, "mad.wide.u32", a, ix, 8, mg_value_base(at));
    struct mg_opnd w = wide(at, v);
    MG_CODE(at, "st.global.u64", mg_o_addr_reg(a, 8 * (int64_t)first), w);
}

/* The lowest lane of the mask, where the code's guard is true. */
static mg_id lowest_of(struct mg_code_at *at, mg_id mask)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    mg_id below = mg_code_temp(at, MG_TYPE_b32), lowest = mg_code_temp(at, MG_TYPE_pred), lt = mg_value_lt(at);
    MG_PURE(at, "and.b32", below, lt, mask);
    if (g->pred)
        MG_PURE(at, "setp.eq.and.u32", lowest, below, 0, g->is_not ? mg_o_not(g->pred) : mg_o_reg(g->pred));
    else
        MG_PURE(at, "setp.eq.u32", lowest, below, 0);
    return lowest;
}

/* The lowest lane of each mask adds for its lanes: groups that were apart when they asked may have met here. */
void mg_count_lanes(struct mg_code_at *at, uint32_t first, uint32_t n, mg_id k, mg_id mask, bool often)
{
    if (first > at->p->rules.n || n > at->p->rules.n - first)
        mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)(first + n));
    if (often && mg_near_lanes(at, first, n, k)) return;
    mg_id a = mg_code_temp(at, MG_TYPE_b64), lanes = mg_code_temp(at, MG_TYPE_b32),
          wide = mg_code_temp(at, MG_TYPE_b64), lowest = lowest_of(at, mask);
    MG_PURE(at, "mad.wide.u32", a, k, 8, mg_value_base(at));
    MG_PURE(at, "popc.b32", lanes, mask);
    MG_PURE(at, "cvt.u64.u32", wide, lanes);
    MG_GUARDED(at, lowest, "red.global.add.u64", mg_o_addr_reg(a, 8 * (int64_t)first), wide);
}

void mg_count_run(struct mg_code_at *at, uint32_t first, mg_id mask, mg_id times)
{
    mg_id a = mg_code_temp(at, MG_TYPE_b64), k = mg_code_temp(at, MG_TYPE_b32), lanes = mg_code_temp(at, MG_TYPE_b64),
          wide = mg_code_temp(at, MG_TYPE_b64), lowest = lowest_of(at, mask);
    if (first > at->p->rules.n || WARP >= at->p->rules.n - first)
        mg_patch_refuse(at->p, MG_ERR_STATE, "cell %u was not reserved", (unsigned)(first + WARP));
    MG_PURE(at, "setp.neu.and.f64", lowest, times, ((struct mg_opnd){.kind = MG_OPND_f64}), lowest);
    MG_PURE(at, "popc.b32", k, mask);
    MG_PURE(at, "mad.wide.u32", a, k, 8, mg_value_base(at));
    MG_PURE(at, "cvt.u64.u32", lanes, k);
    MG_PURE(at, "cvt.rzi.u64.f64", wide, times);
    MG_PURE(at, "mul.lo.u64", wide, wide, lanes);
    MG_GUARDED(at, lowest, "red.global.add.u64", mg_o_addr_reg(a, 8 * (int64_t)first), wide);
}

void mg_sum_add(struct mg_code_at *at, uint32_t sum, struct mg_opnd v)
{
    const struct mg_code_guard *g = mg_at_guard(at);
    if (sum >= at->p->sums.n) {
        mg_patch_refuse(at->p, MG_ERR_STATE, "sum %u was not reserved", (unsigned)sum);
        return;
    }
    if (is_zero(v)) return;
    if (mg_at_module(at)->marked && at->p->sums.at[sum] != UINT32_MAX) {
        count(at, at->p->sums.at[sum], v, false);
        return;
    }
    struct mg_opnd w = wide(at, v);
    *mg_vec_push(&at->items) =
        (struct mg_code_item){.guard = g->pred, .guard_not = g->is_not, .sum = sum, .v = w, .most = mg_sum_most(at, w)};
}

/* ---- tables ------------------------------------------------------------------------------------------------
 *
 *   word 0            updates that found no room
 *   entry i, at 1 + i * (1 + keys + cells):   mark, keys, cells
 *
 * The mark is a mix of the keys, never 0: of one key it is a bijection, so that the mark is the key; of
 * several it is 64 bits that two sets of keys share once in 2^64. An entry is taken by the lane that puts
 * its mark there, in one step; the keys are written for the host alone. Nobody waits for anybody. */

enum { MOST_PROBES = 64 };

mg_id mg_value_table(struct mg_code_at *at, uint32_t table)
{
    struct mg_patch_own *own = &at->p->own[at->func_ix];
    if (table >= own->n_tables) { /* tables come while code is made */
        uint32_t n = MG_MAX(at->p->tables.n, table + 1) + 64;
        mg_id *more = mg_arena_array(&at->p->scratch, mg_id, n);
        if (own->n_tables) memcpy(more, own->tables, own->n_tables * sizeof *more);
        own->tables = more;
        own->n_tables = n;
    }
    if (!own->tables[table]) own->tables[table] = mg_code_reg(at, MG_TYPE_b64);
    return own->tables[table];
}

/* Of Stafford's thirteenth variant of MurmurHash3's finaliser: x ^= x >> 30, x *= a, x ^= x >> 27, x *= b, x ^= x
 * >> 31. */
static void mix(struct mg_code_at *at, mg_id h)
{
    mg_id t = mg_code_temp(at, MG_TYPE_b64);
    static const struct {
        unsigned shift;
        uint64_t by;
    } steps[] = {{30, 0xbf58476d1ce4e5b9}, {27, 0x94d049bb133111eb}, {31, 0}};
    for (unsigned i = 0; i < MG_COUNT_OF(steps); i++) {
        MG_PURE(at, "shr.u64", t, h, mg_o_imm(steps[i].shift));
        MG_PURE(at, "xor.b64", h, h, t);
        if (steps[i].by) MG_PURE(at, "mul.lo.u64", h, h, (int64_t)steps[i].by);
    }
}

static mg_id mark_of(struct mg_code_at *at, const mg_id *keys, uint32_t n)
{
    mg_id h = mg_code_temp(at, MG_TYPE_b64), none = mg_code_temp(at, MG_TYPE_pred);
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            MG_PURE(at, "add.u64", h, h, keys[i]);
        else
            MG_PURE(at, "mov.b64", h, keys[i]);
        mix(at, h);
    }
    MG_PURE(at, "setp.eq.u64", none, h, 0);
    MG_PURE(at, "selp.b64", h, mg_o_imm((int64_t)0x9e3779b97f4a7c15), h, none);
    return h;
}

void mg_table_update(struct mg_code_at *at, uint32_t table, const mg_id *keys, const struct mg_opnd *v, uint32_t n,
                     enum mg_spread spread)
{
    if (table >= at->p->tables.n || n > at->p->tables.at[table].n_cells) {
        mg_patch_refuse(at->p, MG_ERR_STATE, "table %u was not reserved for that", (unsigned)table);
        return;
    }
    const struct mg_layout_table t = at->p->tables.at[table];
    int64_t entry = 8 * (1 + (int64_t)t.n_keys + (int64_t)t.n_cells);
    struct mg_opnd w[32];
    if (n > MG_COUNT_OF(w)) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "more than %d cells an entry", (int)MG_COUNT_OF(w));
        return;
    }
    mg_id base = mg_value_table(at, table), h = mark_of(at, keys, t.n_keys), slot = mg_code_temp(at, MG_TYPE_b32),
          a = mg_code_temp(at, MG_TYPE_b64);
    mg_id tries = mg_code_temp(at, MG_TYPE_b32), old = mg_code_temp(at, MG_TYPE_b64),
          p = mg_code_temp(at, MG_TYPE_pred);
    for (uint32_t i = 0; i < n; i++) w[i] = wide(at, v[i]);
    const struct mg_code_guard g =
        spread == MG_ONCE ? (struct mg_code_guard){mg_value_leader(at), false} : *mg_at_guard(at);
    mg_id again = mg_code_label(at), found = mg_code_label(at), out = mg_code_label(at), next = mg_code_label(at);
    MG_PURE(at, "cvt.u32.u64", slot, h);
    MG_PURE(at, "mov.u32", tries, 0);
    if (g.pred) mg_code_emit(at, g.pred, !g.is_not, MG_INST("bra", mg_o_label(out)));
    mg_code_place(at, again);
    MG_PURE(at, "and.b32", slot, slot, mg_o_imm(t.n_entries - 1));
    MG_PURE(at, "mad.wide.u32", a, slot, mg_o_imm(entry), base);
    MG_PURE(at, "ld.global.u64", old, mg_o_addr_reg(a, 8));
    MG_PURE(at, "setp.eq.u64", p, old, h);
    MG_GUARDED(at, p, "bra", mg_o_label(found));
    MG_PURE(at, "setp.ne.u64", p, old, 0);
    MG_GUARDED(at, p, "bra", mg_o_label(next));
    MG_PURE(at, "atom.global.cas.b64", old, mg_o_addr_reg(a, 8), 0, h);
    MG_PURE(at, "setp.eq.u64", p, old, 0);
    for (uint32_t i = 0; i < t.n_keys; i++)
        MG_GUARDED(at, p, "st.global.u64", mg_o_addr_reg(a, 16 + 8 * (int64_t)i), keys[i]);
    MG_GUARDED(at, p, "bra", mg_o_label(found));
    MG_PURE(at, "setp.eq.u64", p, old, h);
    MG_GUARDED(at, p, "bra", mg_o_label(found));
    mg_code_place(at, next);
    MG_PURE(at, "add.u32", slot, slot, 1);
    MG_PURE(at, "add.u32", tries, tries, 1);
    MG_PURE(at, "setp.lt.u32", p, tries, mg_o_imm(MG_MIN((uint32_t)MOST_PROBES, t.n_entries)));
    MG_GUARDED(at, p, "bra", mg_o_label(again));
    MG_PURE(at, "red.global.add.u64", mg_o_addr_reg(base, 0), 1);
    MG_PURE(at, "bra", mg_o_label(out));
    mg_code_place(at, found);
    for (uint32_t i = 0; i < n; i++)
        if (!is_zero(w[i])) MG_PURE(at, red_form(t.rule), mg_o_addr_reg(a, 16 + 8 * ((int64_t)t.n_keys + i)), w[i]);
    mg_code_place(at, out);
}
