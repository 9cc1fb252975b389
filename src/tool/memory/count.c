/* memory: the code that classifies one request. See memory.c for what is counted.
 *
 *   full     all 32 lanes make the access: what it adds to the cells lies side by side in the lanes, as a strip.
 *            Addresses less what neighbours are apart agree where lanes are in order; shuffles tell any other stride;
 *            closed forms give the rest
 *   partial  fewer lanes: one; in order or not. As a strip where the lanes of its cells are here, else the lowest lanes
 *            add, one for each cell
 *   fixed    what all lanes ask for is known when the twin is made: the lowest lane counts in a bit or a register what
 *            parts of a warp mostly ask for; what is left goes to memory
 *   class    of addresses in shared memory that are made once and used often: what holds for the lanes there
 *            holds for those of them that are at the use
 *
 * What closed forms do not tell is compared lane against lane (tool/memory/lanes.c). */
#include "isa/request.h"
#include "tool/memory/code.h"

enum { FEW_FOLLOWERS = 3 };
#define SLOT(cell) ((cell)-MG_MC_SECTORS) /* lane of the strip */

/* The value that lane `from` has, in every lane here. Of shared memory's addresses the low half is all. */
static mg_id of_lane(struct mg_memory_request *q, mg_id v, struct mg_opnd from)
{
    mg_id lo, hi, r = reg64(q);
    split(q, v, &lo, &hi);
    EMIT("shfl.sync.idx.b32", lo, lo, from, ALL, mask_of(q));
    if (q->space == MG_SPACE_shared) {
        EMIT("cvt.u64.u32", r, lo);
        return r;
    }
    EMIT("shfl.sync.idx.b32", hi, hi, from, ALL, mask_of(q));
    EMIT("mov.b64", r, pair_of(q, MG_OPND_vec, lo, hi));
    return r;
}

/* Is a = b in every lane here? */
static mg_id all_equal(struct mg_memory_request *q, mg_id a, mg_id b)
{
    mg_id p = pred(q), all = pred(q);
    EMIT("setp.eq.u64", p, a, b);
    EMIT("vote.sync.all.pred", all, p, mask_of(q));
    return all;
}

/* Are lanes in order: do their addresses agree, less what neighbours are apart? That difference in *from, which is the
 * low half of the first lane's address. Only lanes of the mask run this. */
mg_id mg_memory_in_order(struct mg_memory_request *q, mg_id *from)
{
    mg_id p = pred(q), any = reg32(q), by = reg64(q);
    *from = reg32(q);
    if (q->space == MG_SPACE_shared) {
        EMIT("cvt.u32.u64", *from, q->addr);
        EMIT("mad.lo.u32", *from, mg_value_lane(q->at), I(-(int64_t)q->bytes), *from);
        EMIT("match.all.sync.b32", pair_of(q, MG_OPND_pair, any, p), *from, mask_of(q));
        return p;
    }
    EMIT("mul.wide.u32", by, mg_value_lane(q->at), I(q->bytes));
    EMIT("sub.s64", by, q->addr, by);
    EMIT("match.all.sync.b64", pair_of(q, MG_OPND_pair, any, p), by, mask_of(q));
    EMIT("cvt.u32.u64", *from, by);
    return p;
}

/* strip = v in the lane of that cell. */
static void set_slot(struct mg_memory_request *q, mg_id strip, uint32_t cell, struct mg_opnd v)
{
    mg_id p = pred(q);
    EMIT("setp.eq.u32", p, mg_value_lane(q->at), I(SLOT(cell)));
    EMIT("selp.u32", strip, v, strip, p);
}

/* strip = 1 in the lane of the pattern, whose slot is in a register, 0 elsewhere. */
void mg_memory_set_pattern(struct mg_memory_request *q, mg_id strip, struct mg_opnd slot)
{
    mg_id p = pred(q);
    EMIT("setp.eq.u32", p, mg_value_lane(q->at), slot);
    EMIT("selp.u32", strip, 1, 0, p);
}

/* ---- all 32 lanes ---------------------------------------------------------------------------------------- */

/* Slot of the pattern of one stride, of so many bytes. */
static mg_id stride_slot(struct mg_memory_request *q, mg_id step)
{
    mg_id size = reg32(q), slot = reg32(q), p = pred(q);
    EMIT("abs.s32", size, step);
    EMIT("setp.gt.u32", p, size, 128);
    EMIT("selp.u32", slot, I(SLOT(MG_MC_STRIDE_MORE)), I(SLOT(MG_MC_STRIDE_128)), p);
    EMIT("setp.gt.u32", p, size, 32);
    EMIT("selp.u32", slot, slot, I(SLOT(MG_MC_STRIDE_32)), p);
    return slot;
}

/* n = how many aligned units of 2^shift bytes 32 lanes with one stride touch. */
static mg_id touched(struct mg_memory_request *q, mg_id lowest, mg_id size, int64_t shift)
{
    mg_id n = reg32(q), p = pred(q);
    EMIT("and.b32", n, lowest, I(((int64_t)1 << shift) - 1));
    EMIT("mad.lo.u32", n, size, 31, n);
    EMIT("shr.u32", n, n, I(shift));
    EMIT("add.u32", n, n, 1);
    EMIT("setp.ge.u32", p, size, (int64_t)1 << shift);
    EMIT("selp.u32", n, 32, n, p);
    return n;
}

void mg_memory_add_step(struct mg_memory_request *q, mg_id strip, mg_id from, int64_t step)
{
    mg_id size = reg32(q), lowest = reg32(q);
    EMIT("mov.u32", size, I(step < 0 ? -step : step));
    EMIT("add.u32", lowest, from, I(step < 0 ? 31 * step : 0));
    set_slot(q, strip, MG_MC_SECTORS, R(touched(q, lowest, size, 5)));
    set_slot(q, strip, MG_MC_LINES, R(touched(q, lowest, size, 7)));
}

/* What one stride other than 0 asks of the memory. */
static void add_strided(struct mg_memory_request *q, mg_id strip, mg_id step)
{
    mg_id size = reg32(q), lowest = reg32(q);
    if (q->space == MG_SPACE_shared) { /* as many lanes in a bank as the stride in words and the banks divide by */
        uint32_t groups = q->bytes > 8 ? 4 : q->bytes > 4 ? 2 : 1, lanes = 32 / groups;
        mg_id low = reg32(q);
        EMIT("shr.s32", size, step, I(log2_of(q->bytes)));
        EMIT("or.b32", size, size, I(lanes));
        EMIT("neg.s32", low, size);
        EMIT("and.b32", low, low, size);
        EMIT("mad.lo.u32", low, low, I(groups), I(-(int64_t)groups));
        set_slot(q, strip, MG_MC_CONFLICTS, R(low));
    } else if (has_sectors(q)) {
        mg_id p = pred(q), back = reg32(q);
        EMIT("cvt.u32.u64", lowest, q->addr);
        EMIT("shfl.sync.idx.b32", lowest, lowest, 0, ALL, mask_of(q));
        EMIT("abs.s32", size, step);
        EMIT("mad.lo.u32", back, step, 31, lowest);
        EMIT("setp.lt.s32", p, step, 0);
        EMIT("selp.u32", lowest, back, lowest, p);
        set_slot(q, strip, MG_MC_SECTORS, R(touched(q, lowest, size, 5)));
        set_slot(q, strip, MG_MC_LINES, R(touched(q, lowest, size, 7)));
    }
}

/* Anything that 32 lanes can ask for. before: each lane's neighbour's address (lane 0: its own); not of shared memory.
 */
static void add_any(struct mg_memory_request *q, mg_id strip, mg_id before)
{
    if (q->space == MG_SPACE_shared) {
        mg_id total = reg32(q);
        mg_memory_conflicts(q, total);
        set_slot(q, strip, MG_MC_CONFLICTS, R(total));
    } else if (has_sectors(q)) {
        mg_id sectors = reg32(q), lines = reg32(q);
        mg_memory_sectors_of_all(q, before, sectors, lines);
        set_slot(q, strip, MG_MC_SECTORS, R(sectors));
        set_slot(q, strip, MG_MC_LINES, R(lines));
    }
}

/* What neighbours in order ask for: where that depends on the place of the first in its line, of it. */
static void add_in_order(struct mg_memory_request *q, mg_id strip, mg_id from)
{
    if (!has_sectors(q)) { /* constants and local memory may lie elsewhere in a twin */
        mg_memory_set_pattern(q, strip, I(SLOT(MG_MC_UNIT)));
        return;
    }
    mg_id low = reg32(q), size = reg32(q), slot = reg32(q), p = pred(q);
    EMIT("and.b32", low, from, 127);
    EMIT("setp.eq.u32", p, low, 0);
    EMIT("selp.u32", slot, I(SLOT(MG_MC_ALIGNED)), I(SLOT(MG_MC_UNIT)), p);
    mg_memory_set_pattern(q, strip, R(slot));
    EMIT("mov.u32", size, I(q->bytes));
    for (int k = 0; k < 2; k++) {
        mg_id n = touched(q, low, size, k ? 7 : 5);
        EMIT("selp.u32", n, 0, n, p); /* of aligned ones it is known */
        set_slot(q, strip, k ? MG_MC_LINES : MG_MC_SECTORS, R(n));
    }
}

/* Is each lane's address one step away from the lane's before: the step of 32 bits, and these addresses (lane 0: its
 * own; of shared memory none). */
static mg_id is_strided(struct mg_memory_request *q, mg_id step, mg_id *before)
{
    mg_id p = pred(q), all = pred(q), lo, hi;
    split(q, q->addr, &lo, &hi);
    mg_id below = reg32(q), far = reg64(q), by = reg64(q);
    EMIT("shfl.sync.up.b32", below, lo, 1, 0, mask_of(q));
    *before = 0;
    if (q->space == MG_SPACE_shared) {
        mg_id apart = reg32(q);
        EMIT("sub.u32", apart, lo, below);
        EMIT("shfl.sync.idx.b32", step, apart, 1, ALL, mask_of(q));
        EMIT("setp.eq.u32", p, apart, step);
    } else {
        *before = reg64(q);
        EMIT("shfl.sync.up.b32", hi, hi, 1, 0, mask_of(q));
        EMIT("mov.b64", *before, pair_of(q, MG_OPND_vec, below, hi));
        EMIT("sub.s64", far, q->addr, *before);
        EMIT("cvt.u32.u64", step, far);
        EMIT("shfl.sync.idx.b32", step, step, 1, ALL, mask_of(q));
        EMIT("cvt.s64.s32", by, step);
        EMIT("setp.eq.s64", p, far, by);
    }
    EMIT("setp.eq.or.u32", p, mg_value_lane(q->at), 0, p);
    EMIT("vote.sync.all.pred", all, p, mask_of(q));
    return all;
}

/* strip = what the request of all lanes adds that are not in order. All at one address: jumps to `at_one`; 0: they are
 * like any other. */
static void classify_other(struct mg_memory_request *q, mg_id strip, mg_id at_one)
{
    mg_id step = reg32(q), other = reg32(q), any = mg_code_label(q->at), done = mg_code_label(q->at), before;
    mg_id strided = is_strided(q, step, &before), same = pred(q);
    jump(q, strided, true, any);
    EMIT("mov.u32", other, stride_slot(q, step));
    EMIT("setp.eq.u32", same, step, 0);
    if (at_one) {
        if (q->group) EMIT("mov.u32", q->group->slot, other);
        jump(q, same, false, at_one);
        mg_memory_set_pattern(q, strip, R(other));
    } else {
        EMIT("selp.u32", other, I(SLOT(MG_MC_SAME)), other, same);
        mg_memory_set_pattern(q, strip, R(other));
        jump(q, same, false, done);
    }
    if (q->space == MG_SPACE_shared && q->bytes < 4)
        add_any(q, strip, before);
    else
        add_strided(q, strip, step);
    jump(q, 0, false, done);
    mg_code_place(q->at, any);
    if (q->group) EMIT("mov.u32", q->group->slot, I(SLOT(MG_MC_IRREGULAR)));
    mg_memory_set_pattern(q, strip, I(SLOT(MG_MC_IRREGULAR)));
    add_any(q, strip, before);
    mg_code_place(q->at, done);
}

void mg_memory_classify_full(struct mg_memory_request *q, mg_id strip, mg_id from, mg_id unit)
{
    mg_id next = mg_code_label(q->at), done = mg_code_label(q->at), begin;
    struct mg_opnd was = q->mask;
    q->mask = I(0xffffffff); /* a constant: the assembler then waits for nobody */
    EMIT("mov.pred", unit, mg_memory_in_order(q, &begin));
    EMIT("mov.u32", from, begin);
    jump(q, unit, true, next);
    add_in_order(q, strip, from);
    jump(q, 0, false, done);
    mg_code_place(q->at, next);
    classify_other(q, strip, 0);
    mg_code_place(q->at, done);
    q->mask = was;
}

/* ---- fewer lanes ------------------------------------------------------------------------------------------- */

/* Sectors and lines of lanes of which it is known whether they are in order; not: by where those before are (0: that is
 * not known). */
static void count_sectors(struct mg_memory_request *q, mg_id unit, mg_id before, mg_id first, mg_id sectors,
                          mg_id lines)
{
    mg_id any = mg_code_label(q->at), done = mg_code_label(q->at);
    bool forms = q->bytes <= 32 && !(q->bytes & (q->bytes - 1));
    if (forms) {
        jump(q, unit, true, any);
        mg_memory_sectors_in_order(q, sectors, lines);
        jump(q, 0, false, done);
    }
    mg_code_place(q->at, any);
    if (!before || !forms) before = mg_memory_before(q, &first);
    mg_memory_sectors(q, before, first, sectors, lines);
    mg_code_place(q->at, done);
}

/* Each lane to its own cell. */
static void add_strip(struct mg_memory_request *q, mg_id strip)
{
    if (q->place)
        mg_place_add(q->at, q->place, strip);
    else
        mg_strip_add(q->at, q->strip, strip);
}

/* Cells that a request of some lanes adds to, beside that of its pattern, and what. */
struct parts {
    uint32_t n, cell[2];
    mg_id v[2];
};

/* The lane of each cell is here: as of all lanes. Else jumps to `spread`. */
static void put_side_by_side(struct mg_memory_request *q, mg_id k, const struct parts *a, mg_id spread)
{
    mg_id m = reg32(q), strip = reg32(q), p = pred(q);
    uint32_t others = 0;
    for (uint32_t i = 0; i < a->n; i++) others |= 1u << SLOT(a->cell[i]);
    EMIT("shl.b32", m, 1, k);
    EMIT("or.b32", m, m, I(others));
    EMIT("and.b32", strip, m, q->active);
    EMIT("setp.ne.u32", p, strip, m);
    jump(q, p, false, spread);
    mg_memory_set_pattern(q, strip, R(k));
    for (uint32_t i = 0; i < a->n; i++) set_slot(q, strip, a->cell[i], R(a->v[i]));
    add_strip(q, strip);
}

/* v of each lane where p holds to its k-th cell; one: in one lane alone. */
static void put_each(struct mg_memory_request *q, mg_id place, mg_id k, mg_id v, mg_id p, bool one)
{
    if (place) {
        if (one)
            mg_place_put(q->at, place, R(k), R(v), p);
        else
            mg_place_put_each(q->at, place, R(k), R(v), p);
        return;
    }
    EMIT("selp.u32", k, k, mg_value_lane(q->at), p);
    EMIT("selp.u32", v, v, 0, p);
    mg_strip_add_at(q->at, q->strip, k, v);
}

/* The lowest lanes add, one for each cell; where there are fewer lanes, the lowest one by one. */
static void put_by_rank(struct mg_memory_request *q, mg_id k, const struct parts *a, mg_id done)
{
    mg_id rank = reg32(q), to = reg32(q), v = reg32(q), p = pred(q), place = q->place, few = mg_code_label(q->at);
    if (!place && !mg_strip_goes_anywhere(q->at)) place = mg_strip_place(q->at, q->strip);
    EMIT("mov.u32", v, 1);
    EMIT("mov.u32", to, k);
    if (a->n) {
        EMIT("popc.b32", rank, q->active);
        EMIT("setp.le.u32", p, rank, I(a->n));
        jump(q, p, false, few);
        EMIT("and.b32", rank, q->active, mg_value_lt(q->at));
        EMIT("popc.b32", rank, rank);
        for (uint32_t i = 0; i < a->n; i++) {
            EMIT("setp.eq.u32", p, rank, I(i + 1));
            EMIT("selp.u32", to, I(SLOT(a->cell[i])), to, p);
            EMIT("selp.u32", v, a->v[i], v, p);
        }
        if (q->makes)
            EMIT("setp.le.and.u32", p, rank, I(a->n), q->makes);
        else
            EMIT("setp.le.u32", p, rank, I(a->n));
        put_each(q, place, to, v, p, false);
        jump(q, 0, false, done);
        mg_code_place(q->at, few);
        EMIT("mov.u32", v, 1);
        EMIT("mov.u32", to, k);
    }
    mg_id one = lowest(q, 0);
    put_each(q, place, to, v, one, true);
    for (uint32_t i = 0; i < a->n; i++) {
        EMIT("mov.u32", v, a->v[i]);
        EMIT("mov.u32", to, I(SLOT(a->cell[i])));
        EMIT("setp.ne.and.u32", p, v, 0, one);
        put_each(q, place, to, v, p, true);
    }
}

/* What requests to this space add to, beside their pattern's cell; v is 0. */
static struct parts parts_of(struct mg_memory_request *q)
{
    struct parts a = {.cell = {MG_MC_CONFLICTS}};
    if (q->space == MG_SPACE_shared)
        a.n = 1;
    else if (has_sectors(q))
        a = (struct parts){.n = 2, .cell = {MG_MC_SECTORS, MG_MC_LINES}};
    for (uint32_t i = 0; i < a.n; i++) {
        a.v[i] = reg32(q);
        EMIT("mov.u32", a.v[i], 0);
    }
    return a;
}

/* Adds 1 to the k-th cell of the strip and the parts to theirs. */
static void put(struct mg_memory_request *q, mg_id k, const struct parts *a)
{
    mg_id spread = mg_code_label(q->at), done = mg_code_label(q->at);
    if (!q->place && mg_at_repeats(q->at)) { /* in a register */
        put_side_by_side(q, k, a, spread);
        jump(q, 0, false, done);
        mg_code_place(q->at, spread);
    }
    put_by_rank(q, k, a, done);
    mg_code_place(q->at, done);
}

/* Not 0: one of the active lanes, whose addresses ascend, is not in order with the lowest. It is at or above the first
 * break above that. */
static mg_id broken(struct mg_memory_request *q, struct mg_opnd breaks)
{
    mg_id t = reg32(q), above = reg32(q);
    EMIT("add.u32", t, q->active, -1);
    EMIT("xor.b32", t, t, q->active);
    EMIT("not.b32", t, t);
    EMIT("and.b32", t, t, breaks);
    EMIT("neg.s32", above, t);
    EMIT("or.b32", t, t, above);
    EMIT("and.b32", t, t, q->active);
    return t;
}

/* Not 0: more than one lane makes the access. */
static mg_id several(struct mg_memory_request *q)
{
    mg_id t = reg32(q);
    EMIT("add.u32", t, q->active, -1);
    EMIT("and.b32", t, t, q->active);
    return t;
}

/* Lanes of a class: jumps to `tell` with their pattern and passes beyond the first, to `look` where it is not known. */
static void count_classed(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id slot, mg_id total,
                          mg_id look, mg_id tell)
{
    mg_id t = reg32(q), low = reg32(q), p = pred(q), words = reg32(q);
    EMIT("not.b32", t, k->lanes);
    EMIT("and.b32", t, t, q->active);
    EMIT("and.b32", low, k->breaks, 1);
    EMIT("or.b32", t, t, low);
    EMIT("setp.ne.u32", p, t, 0);
    if (k->changes) EMIT("vote.sync.any.pred", p, p, mask_of(q));
    jump(q, p, false, look);
    EMIT("setp.ne.u32", p, broken(q, R(k->breaks)), 0);
    EMIT("selp.u32", slot, MG_MC_IRREGULAR - MG_MC_SAME, MG_MC_UNIT - MG_MC_SAME, p);
    jump(q, p, true, tell);
    mg_memory_rivals(q, words, R(q->active));
    EMIT("popc.b32", words, words);
    mg_memory_passes(q, words, total);
    jump(q, 0, false, tell);
}

/* unit, same: are the lanes in order, all at one address? Those that do not make the access stand in. Returns where
 * lanes before are, which is known of such as are not in order; 0: it is not; first: none is before. */
static mg_id classify_partial(struct mg_memory_request *q, mg_id unit, mg_id same, mg_id *first)
{
    mg_id ref = reg32(q), p = pred(q), far = reg64(q), by = reg64(q), addr = reg64(q), back = reg32(q), begin,
          out = mg_code_label(q->at);
    if (!q->makes) {
        EMIT("mov.pred", unit, mg_memory_in_order(q, &begin));
        EMIT("setp.ne.u32", same, q->active, q->active);
        jump(q, unit, false, out);
        mg_id before = mg_memory_before(q, first);
        if (q->space == MG_SPACE_shared)
            EMIT("and.b64", addr, q->addr, I(UINT32_MAX));
        else
            EMIT("mov.u64", addr, q->addr);
        EMIT("setp.eq.or.u64", p, addr, before, *first);
        EMIT("vote.sync.all.pred", same, p, mask_of(q));
        mg_code_place(q->at, out);
        return before;
    }
    EMIT("bfind.u32", ref, q->active);
    mg_id one = of_lane(q, q->addr, R(ref));
    EMIT("mov.u64", addr, q->addr);
    if (q->space == MG_SPACE_shared) EMIT("and.b64", addr, addr, I(UINT32_MAX));
    EMIT("selp.b64", addr, addr, one, q->makes);
    EMIT("mov.pred", same, all_equal(q, addr, one));
    q->addr = addr;
    mg_id stands_in = pred(q);
    EMIT("sub.s64", far, addr, one);
    EMIT("sub.s32", back, mg_value_lane(q->at), ref);
    EMIT("mul.wide.s32", by, back, I(q->bytes));
    EMIT("setp.eq.s64", p, far, by);
    EMIT("not.pred", stands_in, q->makes);
    EMIT("or.pred", p, p, stands_in);
    EMIT("vote.sync.all.pred", unit, p, mask_of(q));
    return 0;
}

/* One lane alone makes the access. */
static void count_single(struct mg_memory_request *q)
{
    uint32_t cell = q->group ? MG_MC_SAME_ALL : MG_MC_SAME;
    if (q->place) {
        mg_place_put(q->at, q->place, I(SLOT(cell)), I(1), lowest(q, 0));
        return;
    }
    if (q->makes) mg_code_push_guard(q->at, q->makes, false);
    mg_cell_update(q->at, q->cell + cell, I(1), MG_ALONE);
    if (q->makes) mg_code_pop_guard(q->at);
}

/* Sets the group's `covered` where the request is counted for the whole group. */
static void count_partial(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    const struct mg_memory_group *g = q->group;
    mg_id slot = reg32(q), unit = pred(q), same = pred(q), was = q->addr, tell = mg_code_label(q->at),
          more = mg_code_label(q->at), done = mg_code_label(q->at), first = 0;
    EMIT("setp.ne.u32", same, several(q), 0);
    jump(q, same, false, more);
    if (g) EMIT("setp.eq.u32", g->covered, slot, slot);
    count_single(q);
    jump(q, 0, false, done);
    mg_code_place(q->at, more);
    const struct parts a = parts_of(q);
    if (k) {
        mg_id look = mg_code_label(q->at);
        count_classed(q, k, slot, a.v[0], look, tell);
        mg_code_place(q->at, look);
        EMIT("mov.u32", a.v[0], 0);
    }
    mg_id before = classify_partial(q, unit, same, &first);
    if (g) EMIT("mov.pred", g->covered, same);
    EMIT("mov.u32", slot, I((g ? MG_MC_SAME_ALL : MG_MC_SAME) - MG_MC_SAME));
    jump(q, same, false, tell);
    EMIT("selp.u32", slot, MG_MC_UNIT - MG_MC_SAME, MG_MC_IRREGULAR - MG_MC_SAME, unit);
    if (g) EMIT("add.u32", g->slot, slot, I(SLOT(MG_MC_SAME)));
    if (q->space == MG_SPACE_shared) {
        jump(q, unit, false, tell);
        mg_memory_conflicts(q, a.v[0]);
    } else if (has_sectors(q)) {
        count_sectors(q, unit, before, first, a.v[0], a.v[1]);
    }
    mg_code_place(q->at, tell);
    EMIT("add.u32", slot, slot, I(SLOT(MG_MC_SAME)));
    put(q, slot, &a);
    q->addr = was;
    mg_code_place(q->at, done);
}

/* ---- a request --------------------------------------------------------------------------------------------- */

/* here, active, full; jumps to `none` where no lane makes the access. */
mg_id mg_memory_ask_lanes(struct mg_memory_request *q, mg_id none)
{
    mg_id full = pred(q);
    q->here = q->active = mg_value_active(q->at), q->mask = (struct mg_opnd){0};
    if (q->makes) {
        mg_id p = pred(q);
        q->active = reg32(q);
        EMIT("vote.sync.ballot.b32", q->active, q->makes, mask_of(q));
        EMIT("setp.eq.u32", p, q->active, 0);
        jump(q, p, false, none);
    }
    EMIT("setp.eq.u32", full, q->active, I(0xffffffff));
    return full;
}

/* All lanes of a class. */
static void classify_whole(struct mg_memory_request *q, struct mg_memory_class *k, mg_id strip, mg_id pack)
{
    mg_id from = reg32(q), unit = pred(q), before = reg32(q), p = pred(q);
    mg_memory_classify_full(q, strip, from, unit);
    EMIT("selp.b32", k->ordered, q->active, 0, unit);
    jump(q, unit, false, pack);
    q->mask = I(0xffffffff);
    EMIT("shfl.sync.up.b32", before, from, 1, 0, mask_of(q));
    EMIT("setp.ne.u32", p, from, before);
    EMIT("vote.sync.ballot.b32", k->breaks, p, mask_of(q));
    EMIT("setp.lt.s32", p, from, before);
    EMIT("vote.sync.any.pred", p, p, mask_of(q));
    mg_code_push_guard(q->at, p, false);
    EMIT("or.b32", k->breaks, k->breaks, 1);
    mg_code_pop_guard(q->at);
    jump(q, 0, false, pack);
}

/* May a class's lanes add to other cells than their own? In registers they cannot. */
static bool goes_anywhere(const struct mg_memory_request *q, const struct mg_memory_class *k)
{
    return !k->own && mg_strip_goes_anywhere(q->at);
}

void mg_memory_classify(struct mg_memory_request *q, struct mg_memory_class *k)
{
    mg_id unit, place = reg32(q), strip = reg32(q), begin, few = mg_code_label(q->at), pack = mg_code_label(q->at);
    k->lanes = mg_code_reg(q->at, MG_TYPE_b32);
    k->strip = mg_code_reg(q->at, MG_TYPE_b32);
    k->breaks = mg_code_reg(q->at, MG_TYPE_b32);
    k->ordered = mg_code_reg(q->at, MG_TYPE_b32);
    mg_id full = mg_memory_ask_lanes(q, 0), others = reg32(q), slot = reg32(q), one = pred(q),
          lead = mg_value_leader(q->at);
    EMIT("mov.u32", k->lanes, q->active);
    EMIT("mov.u32", k->breaks, 0);
    EMIT("mov.u32", k->ordered, 0);
    EMIT("mov.u32", strip, 0);
    EMIT("mov.u32", place, mg_value_lane(q->at));
    jump(q, full, true, few);
    if (q->called) {
        mg_memory_classify_called(q, strip, k->ordered);
        jump(q, 0, false, pack);
    } else {
        classify_whole(q, k, strip, pack);
    }
    mg_code_place(q->at, few); /* the lowest tells for all */
    q->mask = (struct mg_opnd){0};
    unit = mg_memory_in_order(q, &begin);
    EMIT("selp.b32", k->ordered, q->active, 0, unit);
    EMIT("add.u32", others, q->active, -1);
    EMIT("and.b32", others, others, q->active);
    EMIT("setp.eq.u32", one, others, 0);
    EMIT("selp.u32", slot, I(SLOT(MG_MC_SAME)), I(SLOT(MG_MC_UNIT)), one);
    if (goes_anywhere(q, k)) {
        EMIT("selp.u32", place, slot, place, lead);
        EMIT("selp.u32", strip, 1, 0, lead);
        EMIT("selp.b32", k->lanes, k->lanes, 0, unit);
    } else { /* if the lane of that cell is here */
        mg_memory_set_pattern(q, strip, R(slot));
        EMIT("shr.u32", others, q->active, slot);
        EMIT("and.b32", others, others, 1);
        EMIT("setp.ne.and.u32", one, others, 0, unit);
        EMIT("selp.b32", k->lanes, k->lanes, 0, one);
    }
    mg_code_place(q->at, pack);
    EMIT("mad.lo.u32", k->strip, place, 1024, strip);
}

/* Counts by the class, if these are all of its lanes; else jumps to `slow`. */
void mg_memory_count_by_class(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id slow)
{
    mg_id fast = pred(q), v = reg32(q), place = reg32(q);
    EMIT("setp.eq.u32", fast, q->active, k->lanes);
    if (k->changes) EMIT("vote.sync.all.pred", fast, fast, mask_of(q));
    jump(q, fast, true, slow);
    if (!k->changes && mg_strip_add_kept(q->at, q->strip, k->strip)) return;
    EMIT("and.b32", v, k->strip, 255);
    EMIT("shr.u32", place, k->strip, 10);
    if (goes_anywhere(q, k))
        mg_strip_add_at(q->at, q->strip, place, v);
    else
        mg_strip_add(q->at, q->strip, v);
}

void mg_memory_count_part(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id done)
{
    mg_id others = reg32(q), p = pred(q);
    EMIT("not.b32", others, q->alike ? q->alike : k->ordered);
    EMIT("and.b32", others, others, q->active);
    EMIT("setp.eq.u32", p, others, 0);
    if (!q->alike) EMIT("setp.ne.and.u32", p, several(q), 0, p);
    if (!q->alike && k->changes) EMIT("vote.sync.all.pred", p, p, mask_of(q));
    mg_memory_add_one_and_go(q, q->cell + (q->alike ? MG_MC_SAME : MG_MC_UNIT), q->part_sum, p, done);
}

_Static_assert(MG_MC_IRREGULAR - MG_MC_SECTORS == MG_RQ_IRREGULAR && MG_MC_SAME - MG_MC_SECTORS == MG_RQ_SAME,
               "cells in the order of MG_RQ_*");

/* For devices that take probes by what they mean. */
static void say(struct mg_memory_request *q)
{
    if (q->makes) mg_code_push_guard(q->at, q->makes, false);
    EMIT("count_request", I(q->cell + MG_MC_SECTORS), I(mg_request_pack(q->bytes, q->space)), q->addr, I(q->off));
    if (q->makes) mg_code_pop_guard(q->at);
}

/* Each lane to its own cell, by where in its line the first one of a whole warp in order begins. */
void mg_memory_add_place(struct mg_memory_request *q, mg_id from)
{
    mg_id place = reg32(q), p = pred(q); /* all lanes are here, that of the place too */
    EMIT("and.b32", place, from, 127);
    EMIT("shr.u32", place, place, I(log2_of(q->bytes)));
    EMIT("setp.eq.u32", p, place, mg_value_lane(q->at));
    mg_strip_mark(q->at, q->place_strip, p);
}

void mg_memory_add_pattern(struct mg_memory_request *q, mg_id strip, uint32_t cell)
{
    mg_memory_set_pattern(q, strip, I(SLOT(cell)));
    add_strip(q, strip);
}

/* All lanes are here: in order falls through, counted; else jumps to `other`. */
static void count_in_order(struct mg_memory_request *q, mg_id other)
{
    mg_id from, strip = reg32(q), unit = mg_memory_in_order(q, &from);
    jump(q, unit, true, other);
    if (q->places) {
        mg_memory_add_place(q, from);
        return;
    }
    if (q->group) EMIT("mov.u32", q->group->slot, I(SLOT(MG_MC_UNIT)));
    add_in_order(q, strip, from);
    add_strip(q, strip);
    if (q->group) EMIT("setp.ne.u32", q->group->covered, q->here, q->here);
}

void mg_memory_count_here(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    mg_id covered = q->group ? q->group->covered : 0, strip = reg32(q);
    mg_id other = mg_code_label(q->at), partial = mg_code_label(q->at), done = mg_code_label(q->at),
          at_one = covered ? mg_code_label(q->at) : 0, slow = mg_code_label(q->at);
    if (covered) { /* nobody makes it: nobody will */
        EMIT("mov.u32", strip, 0);
        EMIT("setp.eq.u32", covered, strip, 0);
    }
    mg_id full = mg_memory_ask_lanes(q, done);
    if (k) {
        mg_memory_count_by_class(q, k, slow);
        jump(q, 0, false, done);
        mg_code_place(q->at, slow);
        mg_memory_count_part(q, k, done);
        if (mg_at_repeats(q->at)) q->place = mg_strip_place(q->at, q->strip); /* no registers for what is rare */
    }
    jump(q, full, true, partial);
    q->mask = I(0xffffffff); /* a constant: the assembler then waits for nobody */
    count_in_order(q, other);
    jump(q, 0, false, done);
    mg_code_place(q->at, other);
    classify_other(q, strip, at_one);
    add_strip(q, strip);
    if (covered) EMIT("setp.ne.u32", covered, q->here, q->here);
    jump(q, 0, false, done);
    if (at_one) {
        mg_code_place(q->at, at_one);
        mg_memory_add_pattern(q, strip, MG_MC_SAME_ALL);
        jump(q, 0, false, done);
    }
    q->mask = (struct mg_opnd){0};
    mg_code_place(q->at, partial);
    count_partial(q, k);
    if (k) q->place = 0;
    mg_code_place(q->at, done);
}

void mg_memory_count(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    if (q->m->marked)
        say(q);
    else if (q->called)
        mg_memory_count_called(q, k);
    else
        mg_memory_count_here(q, k);
}

/* Lanes of a request of which it is known what all of them would ask for: from which lanes there are. conflicts: may
 * there be any? Jumps to nowhere. */
static void count_some(struct mg_memory_request *q, const struct mg_memory_fixed *x, bool conflicts)
{
    mg_id slot = reg32(q), t = reg32(q), one = pred(q), p = pred(q), tell = mg_code_label(q->at);
    struct parts a = parts_of(q);
    mg_id total = a.v[0];
    if (!conflicts) a.n = 0;
    EMIT("setp.eq.u32", one, several(q), 0);
    if (x->pattern == MG_MC_SAME) {
        EMIT("mov.u32", slot, 0);
    } else if (!x->breaks || x->breaks == UINT32_MAX - 1) {
        EMIT("selp.u32", slot, 0, I((x->breaks ? MG_MC_IRREGULAR : MG_MC_UNIT) - MG_MC_SAME), one);
    } else {
        EMIT("setp.ne.u32", p, broken(q, I(x->breaks)), 0);
        EMIT("selp.u32", slot, MG_MC_IRREGULAR - MG_MC_SAME, MG_MC_UNIT - MG_MC_SAME, p);
        EMIT("selp.u32", slot, 0, slot, one);
    }
    if (conflicts) {
        jump(q, one, false, tell);
        if (x->period == 16) {
            EMIT("shr.u32", t, q->active, 16);
            EMIT("and.b32", t, t, q->active);
            EMIT("setp.ne.u32", p, t, 0);
            EMIT("selp.u32", total, 1, 0, p);
        } else {
            mg_id words = reg32(q);
            if (x->period) {
                uint32_t mine = 0;
                for (uint32_t l = 0; l < 32; l += x->period) mine |= 1u << l;
                EMIT("and.b32", t, mg_value_lane(q->at), I(x->period - 1));
                EMIT("shl.b32", words, I(mine), t);
                EMIT("and.b32", words, words, q->active);
            } else {
                mg_memory_rivals(q, words, R(q->active));
            }
            EMIT("popc.b32", words, words);
            mg_memory_passes(q, words, total);
        }
    }
    mg_code_place(q->at, tell);
    EMIT("add.u32", slot, slot, I(SLOT(MG_MC_SAME)));
    put(q, slot, &a);
}

bool mg_memory_is_steady(const struct mg_memory_fixed *x)
{
    bool alike =
        x->pattern == MG_MC_SAME || (x->ascends && (x->pattern == MG_MC_UNIT || x->pattern == MG_MC_IRREGULAR));
    return alike && (!x->conflicts || (x->conflicts == 1 && x->period == 16 && x->pattern == MG_MC_IRREGULAR));
}

/* p: those that are here ask for what all 32 lanes would, in a warp in one row. */
static mg_id is_as_all(struct mg_memory_request *q, const struct mg_memory_fixed *x, mg_id in_row)
{
    mg_id t = 0, all = reg32(q), p = pred(q);
    if (x->pattern != MG_MC_SAME && x->conflicts) { /* two lanes that are 16 apart: in one bank, hence not in order */
        t = reg32(q);
        EMIT("shr.u32", t, q->active, 16);
        EMIT("and.b32", t, t, q->active);
    } else if (x->pattern != MG_MC_SAME) {
        t = !x->breaks || x->breaks == UINT32_MAX - 1 ? several(q) : broken(q, I(x->breaks));
    }
    if (t)
        EMIT("and.b32", all, t, in_row);
    else
        EMIT("mov.b32", all, in_row);
    EMIT("setp.ne.u32", p, all, 0);
    return p;
}

/* Requests of which parts of warps ask for the same as whole ones: one way for both. What is left goes to memory at
 * once. */
static void count_steady(struct mg_memory_request *q, const struct mg_memory_fixed *x, mg_id in_row, uint32_t sum)
{
    mg_id done = mg_code_label(q->at), any = mg_code_label(q->at), elsewhere = pred(q);
    mg_memory_ask_lanes(q, done);
    mg_id p = is_as_all(q, x, in_row);
    mg_memory_add_one(q, 0, sum, p);
    jump(q, p, false, done);
    if (x->pattern != MG_MC_SAME) {
        EMIT("setp.eq.u32", elsewhere, in_row, 0);
        jump(q, elsewhere, false, any);
        q->place = mg_strip_place(q->at, q->strip);
        count_some(q, x, false);
        jump(q, 0, false, done);
        mg_code_place(q->at, any);
    }
    if (q->called) {
        mg_memory_count_away(q);
    } else {
        q->place = mg_strip_place(q->at, q->strip);
        mg_memory_count(q, NULL);
    }
    q->place = 0;
    mg_code_place(q->at, done);
}

struct mg_memory_fixed mg_memory_parts_of(const struct mg_memory_fixed *x)
{
    struct mg_memory_fixed y = *x;
    if (y.pattern > MG_MC_UNIT) y.pattern = MG_MC_IRREGULAR; /* strides are told of all 32 lanes */
    return y;
}

void mg_memory_count_fixed(struct mg_memory_request *q, const struct mg_memory_fixed *x, mg_id in_row, uint32_t sum,
                           uint32_t some_sum)
{
    if (mg_memory_is_steady(x) && sum != UINT32_MAX) {
        count_steady(q, x, in_row, sum);
        return;
    }
    mg_id full = pred(q), p = pred(q), some = mg_code_label(q->at), any = mg_code_label(q->at),
          done = mg_code_label(q->at), strip = reg32(q);
    mg_memory_ask_lanes(q, done);
    EMIT("setp.eq.u32", full, q->active, in_row);
    if (sum != UINT32_MAX) {
        mg_code_push_guard(q->at, full, false);
        mg_sum_add(q->at, sum, I(1));
        mg_code_pop_guard(q->at);
        jump(q, full, false, done);
    } else {
        jump(q, full, true, some);
        mg_memory_set_pattern(q, strip, I(SLOT(x->pattern)));
        if (x->conflicts) set_slot(q, strip, MG_MC_CONFLICTS, I(x->conflicts));
        mg_strip_add(q->at, q->strip, strip);
        jump(q, 0, false, done);
        mg_code_place(q->at, some);
    }
    if (some_sum != UINT32_MAX) {
        const struct mg_memory_fixed y = mg_memory_parts_of(x);
        count_steady(q, &y, in_row, some_sum);
    } else if (q->called) {
        mg_memory_count_away(q);
    } else {
        if (x->ascends || x->pattern == MG_MC_SAME) {
            EMIT("setp.eq.u32", p, in_row, 0);
            jump(q, p, false, any);
            count_some(q, x, x->conflicts);
            jump(q, 0, false, done);
            mg_code_place(q->at, any);
        }
        mg_memory_count(q, NULL);
    }
    mg_code_place(q->at, done);
}

/* All lanes, in order: of a group whose first does not count for all by places. */
static void follow_in_order(struct mg_memory_request *q, mg_id full, mg_id unit, mg_id strip, mg_id done)
{
    mg_id p = pred(q), from = reg32(q), next = mg_code_label(q->at);
    EMIT("and.pred", p, full, unit);
    jump(q, p, true, next);
    EMIT("cvt.u32.u64", from, q->addr);
    EMIT("mad.lo.u32", from, mg_value_lane(q->at), I(-(int64_t)q->bytes), from);
    add_in_order(q, strip, from);
    add_strip(q, strip);
    jump(q, 0, false, done);
    mg_code_place(q->at, next);
}

void mg_memory_follow_one(struct mg_memory_request *q, mg_id full, const struct mg_memory_group *g, mg_id before,
                          mg_id first)
{
    mg_id done = mg_code_label(q->at), partial = mg_code_label(q->at), strip = reg32(q), unit = pred(q);
    const struct parts a = parts_of(q);
    EMIT("setp.eq.u32", unit, g->slot, I(SLOT(MG_MC_UNIT)));
    if (!q->places) follow_in_order(q, full, unit, strip, done);
    if (has_sectors(q)) count_sectors(q, unit, before, first, a.v[0], a.v[1]);
    jump(q, full, true, partial);
    mg_memory_set_pattern(q, strip, R(g->slot));
    for (uint32_t i = 0; i < a.n; i++) set_slot(q, strip, a.cell[i], R(a.v[i]));
    add_strip(q, strip);
    jump(q, 0, false, done);
    mg_code_place(q->at, partial);
    put(q, g->slot, &a);
    mg_code_place(q->at, done);
}

/* Are their places and cells as far from one another, each from the one before? */
static bool are_in_steps(const struct mg_memory_follower *f, uint32_t n)
{
    for (uint32_t i = 2; i < n; i++)
        if (f[i].apart - f[i - 1].apart != f[1].apart - f[0].apart ||
            f[i].cell - f[i - 1].cell != f[1].cell - f[0].cell)
            return false;
    return n >= FEW_FOLLOWERS;
}

void mg_memory_follow(const struct mg_memory_request *first, const struct mg_memory_group *g,
                      const struct mg_memory_follower *f, uint32_t n)
{
    struct mg_memory_request one = *first, *q = &one;
    mg_id done = mg_code_label(q->at), addr = reg64(q), before = 0, lowest = 0, was = 0;
    q->group = NULL;
    jump(q, g->covered, false, done);
    if (g->in_step) mg_memory_follow_step(q, g, f, n, done);
    mg_id full = mg_memory_ask_lanes(q, done);
    if (has_sectors(q) && !q->called) was = mg_memory_before(q, &lowest), before = reg64(q);
    if (!q->called && are_in_steps(f, n)) { /* one after the other, by the same code */
        mg_id i = reg32(q), p = pred(q), again = mg_code_label(q->at);
        int64_t step = f[1].apart - f[0].apart;
        q->place = reg64(q);
        EMIT("mov.b64", q->place, mg_strip_place(q->at, f[0].strip));
        EMIT("add.s64", addr, q->addr, I(f[0].apart));
        if (was) EMIT("add.s64", before, was, I(f[0].apart));
        EMIT("mov.u32", i, 0);
        q->addr = addr;
        mg_code_rolled(q->at);
        mg_code_place(q->at, again);
        mg_memory_follow_one(q, full, g, before, lowest);
        EMIT("add.s64", addr, addr, I(step));
        if (was) EMIT("add.s64", before, before, I(step));
        EMIT("add.s64", q->place, q->place, I(8 * ((int64_t)f[1].cell - f[0].cell)));
        EMIT("add.u32", i, i, 1);
        EMIT("setp.lt.u32", p, i, I(n));
        jump(q, p, false, again);
        mg_code_place(q->at, done);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        EMIT("add.s64", addr, first->addr, I(f[i].apart));
        if (was) EMIT("add.s64", before, was, I(f[i].apart));
        q->addr = addr, q->cell = f[i].cell, q->strip = f[i].strip;
        if (q->called)
            mg_memory_follow_called(q, g->slot);
        else
            mg_memory_follow_one(q, full, g, before, lowest);
    }
    mg_code_place(q->at, done);
}
