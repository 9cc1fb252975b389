/* memory: the code that classifies one request. See memory.c for what is counted.
 *
 *   full     all 32 lanes make the access: what it adds to the cells lies side by side in the lanes, as a strip.
 *            Addresses less what neighbours are apart agree where lanes are in order; two shuffles tell any other
 *            stride; closed forms give the rest
 *   partial  fewer lanes: in order or not; the lowest adds
 *   class    of addresses in shared memory that are made once and used often: what holds for the lanes there
 *            holds for those of them that are at the use
 *
 * What closed forms do not tell is compared lane against lane (tool/memory/lanes.c). */
#include "isa/request.h"
#include "tool/memory/code.h"

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

/* What one stride other than 0 asks of the memory. */
static void add_strided(struct mg_memory_request *q, mg_id strip, mg_id first, mg_id step)
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
        EMIT("cvt.u32.u64", lowest, first);
        EMIT("abs.s32", size, step);
        EMIT("mad.lo.u32", back, step, 31, lowest);
        EMIT("setp.lt.s32", p, step, 0);
        EMIT("selp.u32", lowest, back, lowest, p);
        set_slot(q, strip, MG_MC_SECTORS, R(touched(q, lowest, size, 5)));
        set_slot(q, strip, MG_MC_LINES, R(touched(q, lowest, size, 7)));
    }
}

/* Anything that 32 lanes can ask for. */
static void add_any(struct mg_memory_request *q, mg_id strip)
{
    if (q->space == MG_SPACE_shared) {
        mg_id total = reg32(q);
        mg_memory_conflicts(q, total);
        set_slot(q, strip, MG_MC_CONFLICTS, R(total));
    } else if (has_sectors(q)) {
        mg_id sectors = reg32(q), lines = reg32(q);
        mg_memory_sectors(q, sectors, lines);
        set_slot(q, strip, MG_MC_SECTORS, R(sectors));
        set_slot(q, strip, MG_MC_LINES, R(lines));
    }
}

/* What neighbours in order ask for: where that depends on the place of the first in its line, of it. */
static void add_in_order(struct mg_memory_request *q, mg_id strip, mg_id from)
{
    if (q->space == MG_SPACE_shared || q->space == MG_SPACE_const) { /* constants may lie elsewhere in a twin */
        mg_memory_set_pattern(q, strip, I(SLOT(MG_MC_UNIT)));
        return;
    }
    mg_id low = reg32(q), size = reg32(q), slot = reg32(q), p = pred(q);
    EMIT("and.b32", low, from, 127);
    EMIT("setp.eq.u32", p, low, 0);
    EMIT("selp.u32", slot, I(SLOT(MG_MC_ALIGNED)), I(SLOT(MG_MC_UNIT)), p);
    mg_memory_set_pattern(q, strip, R(slot));
    if (!has_sectors(q)) return;
    EMIT("mov.u32", size, I(q->bytes));
    for (int k = 0; k < 2; k++) {
        mg_id n = touched(q, low, size, k ? 7 : 5);
        EMIT("selp.u32", n, 0, n, p); /* of aligned ones it is known */
        set_slot(q, strip, k ? MG_MC_LINES : MG_MC_SECTORS, R(n));
    }
}

/* strip = what the request adds. Neighbours in order, where places in a line are counted: jumps to `ordered`, with
 * the low half of the first lane's address in `from`; all at one address: to `at_one`. 0: they are strips like any
 * other. unit: are they neighbours in order? */
void mg_memory_classify_full(struct mg_memory_request *q, mg_id strip, mg_id from, mg_id unit, mg_id ordered,
                             mg_id at_one)
{
    mg_id far = reg64(q), by = reg64(q), step = reg32(q), other = reg32(q), next = mg_code_label(q->at),
          any = mg_code_label(q->at), done = mg_code_label(q->at);
    mg_id low = reg64(q), begin;
    struct mg_opnd addr = R(q->addr), was = q->mask;
    q->mask = I(0xffffffff); /* a constant: the assembler then waits for nobody */
    EMIT("mov.pred", unit, mg_memory_in_order(q, &begin));
    EMIT("mov.u32", from, begin);
    if (ordered) {
        jump(q, unit, false, ordered);
    } else {
        jump(q, unit, true, next);
        if (q->group) EMIT("mov.u32", q->group->slot, I(SLOT(MG_MC_UNIT)));
        add_in_order(q, strip, from);
        jump(q, 0, false, done);
        mg_code_place(q->at, next);
    }
    if (q->space == MG_SPACE_shared) EMIT("and.b64", low, addr, I(UINT32_MAX)), addr = R(low);
    mg_id first = of_lane(q, q->addr, I(0));
    EMIT("sub.s64", far, addr, first);
    EMIT("cvt.u32.u64", step, far);
    EMIT("shfl.sync.idx.b32", step, step, 1, ALL, mask_of(q));
    EMIT("mul.wide.s32", by, step, mg_value_lane(q->at));
    mg_id strided = all_equal(q, far, by), same = pred(q);
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
        add_any(q, strip);
    else
        add_strided(q, strip, first, step);
    jump(q, 0, false, done);
    mg_code_place(q->at, any);
    if (q->group) EMIT("mov.u32", q->group->slot, I(SLOT(MG_MC_IRREGULAR)));
    mg_memory_set_pattern(q, strip, I(SLOT(MG_MC_IRREGULAR)));
    add_any(q, strip);
    mg_code_place(q->at, done);
    q->mask = was;
}

/* ---- fewer lanes ------------------------------------------------------------------------------------------- */

/* Sectors and lines of lanes of which it is known whether they are in order. */
static void count_sectors(struct mg_memory_request *q, mg_id unit, mg_id sectors, mg_id lines)
{
    mg_id any = mg_code_label(q->at), done = mg_code_label(q->at);
    if (q->bytes > 32 || q->bytes & (q->bytes - 1)) {
        mg_memory_sectors(q, sectors, lines);
        return;
    }
    jump(q, unit, true, any);
    mg_memory_sectors_in_order(q, sectors, lines);
    jump(q, 0, false, done);
    mg_code_place(q->at, any);
    mg_memory_sectors(q, sectors, lines);
    mg_code_place(q->at, done);
}

/* The lowest of the lanes that make the access. They are known: nobody is asked, as for the lowest lane here. */
static mg_id lowest(struct mg_memory_request *q)
{
    mg_id t = reg32(q), mine = reg32(q), p = pred(q);
    EMIT("neg.s32", t, q->active);
    EMIT("and.b32", t, t, q->active);
    EMIT("shl.b32", mine, 1, mg_value_lane(q->at));
    EMIT("setp.eq.u32", p, t, mine);
    return p;
}

/* It adds. */
static void put_by_one(struct mg_memory_request *q, uint32_t cell, mg_id v)
{
    if (q->place)
        mg_place_put(q->at, q->place, I(SLOT(cell)), R(v), lowest(q));
    else
        mg_strip_put(q->at, q->strip, SLOT(cell), R(v), lowest(q));
}

/* Each lane to its own cell. */
static void add_strip(struct mg_memory_request *q, mg_id strip)
{
    if (q->place)
        mg_place_add(q->at, q->place, strip);
    else
        mg_strip_add(q->at, q->strip, strip);
}

/* It tells of the pattern, a number from MG_MC_SAME on. */
static void tell_pattern(struct mg_memory_request *q, mg_id slot)
{
    if (q->place) {
        mg_id k = reg32(q);
        EMIT("add.u32", k, slot, I(SLOT(MG_MC_SAME)));
        mg_place_put(q->at, q->place, R(k), I(1), lowest(q));
        return;
    }
    mg_tally_put(q->at, q->cell + MG_MC_SAME, MG_MC_SAME_ALL - MG_MC_SAME + 1, slot, lowest(q));
}

/* Is one of the active lanes, whose addresses ascend, not in order with the lowest: is there a break between them? */
static mg_id is_broken(struct mg_memory_request *q, mg_id breaks)
{
    mg_id t = reg32(q), low = reg32(q), p = pred(q);
    EMIT("neg.s32", t, q->active);
    EMIT("and.b32", t, t, q->active);
    EMIT("shl.b32", t, t, 1); /* breaks above the lowest lane: any lane at or above the first of them? */
    EMIT("neg.s32", t, t);
    EMIT("and.b32", t, t, breaks);
    EMIT("neg.s32", low, t);
    EMIT("and.b32", t, t, low);
    EMIT("neg.s32", t, t);
    EMIT("and.b32", t, t, q->active);
    EMIT("setp.ne.u32", p, t, 0);
    return p;
}

/* Lanes of a class: jumps to `tell` with their pattern, to `look` where it is not known. */
static void count_classed(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id slot, mg_id look,
                          mg_id tell)
{
    mg_id t = reg32(q), low = reg32(q), p = pred(q), one = pred(q), some = pred(q), words = reg32(q), total = reg32(q);
    EMIT("not.b32", t, k->lanes);
    EMIT("and.b32", t, t, q->active);
    EMIT("and.b32", low, k->breaks, 1);
    EMIT("or.b32", t, t, low);
    EMIT("setp.ne.u32", p, t, 0);
    if (k->changes) EMIT("vote.sync.any.pred", p, p, mask_of(q));
    jump(q, p, false, look);
    EMIT("add.u32", t, q->active, -1);
    EMIT("and.b32", t, t, q->active);
    EMIT("setp.eq.u32", one, t, 0);
    EMIT("mov.pred", p, is_broken(q, k->breaks));
    EMIT("selp.u32", slot, MG_MC_IRREGULAR - MG_MC_SAME, MG_MC_UNIT - MG_MC_SAME, p);
    EMIT("selp.u32", slot, 0, slot, one);
    jump(q, p, true, tell);
    mg_memory_rivals(q, words, R(q->active));
    EMIT("popc.b32", words, words);
    mg_memory_passes(q, words, total);
    EMIT("setp.ne.u32", some, total, 0);
    jump(q, some, true, tell);
    put_by_one(q, MG_MC_CONFLICTS, total);
    jump(q, 0, false, tell);
}

/* unit, same: are the lanes in order, all at one address? Those that do not make the access stand in. */
static void classify_partial(struct mg_memory_request *q, mg_id unit, mg_id same)
{
    mg_id ref = reg32(q), p = pred(q), far = reg64(q), by = reg64(q), addr = reg64(q), back = reg32(q), t = reg32(q),
          begin, out = mg_code_label(q->at);
    if (!q->makes) {
        EMIT("mov.pred", unit, mg_memory_in_order(q, &begin));
        EMIT("add.u32", t, q->active, -1);
        EMIT("and.b32", t, t, q->active);
        EMIT("setp.eq.u32", same, t, 0); /* one lane */
        jump(q, unit, false, out);
    }
    EMIT("bfind.u32", ref, q->active);
    mg_id first = of_lane(q, q->addr, R(ref));
    EMIT("mov.u64", addr, q->addr);
    if (q->space == MG_SPACE_shared) EMIT("and.b64", addr, addr, I(UINT32_MAX));
    if (q->makes) EMIT("selp.b64", addr, addr, first, q->makes);
    EMIT("mov.pred", same, all_equal(q, addr, first));
    if (q->makes) {
        q->addr = addr;
        mg_id stands_in = pred(q);
        EMIT("sub.s64", far, addr, first);
        EMIT("sub.s32", back, mg_value_lane(q->at), ref);
        EMIT("mul.wide.s32", by, back, I(q->bytes));
        EMIT("setp.eq.s64", p, far, by);
        EMIT("not.pred", stands_in, q->makes);
        EMIT("or.pred", p, p, stands_in);
        EMIT("vote.sync.all.pred", unit, p, mask_of(q));
    }
    mg_code_place(q->at, out);
}

/* Sets the group's `covered` where the request is counted for the whole group. */
static void count_partial(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    const struct mg_memory_group *g = q->group;
    mg_id slot = reg32(q), unit = pred(q), same = pred(q), was = q->addr, tell = mg_code_label(q->at),
          next = mg_code_label(q->at);
    if (k) {
        mg_id look = mg_code_label(q->at);
        count_classed(q, k, slot, look, tell);
        mg_code_place(q->at, look);
    }
    classify_partial(q, unit, same);
    if (g) EMIT("mov.pred", g->covered, same);
    jump(q, same, true, next);
    EMIT("mov.u32", slot, I((g ? MG_MC_SAME_ALL : MG_MC_SAME) - MG_MC_SAME));
    jump(q, 0, false, tell);
    mg_code_place(q->at, next);
    EMIT("selp.u32", slot, MG_MC_UNIT - MG_MC_SAME, MG_MC_IRREGULAR - MG_MC_SAME, unit);
    if (g) EMIT("add.u32", g->slot, slot, I(SLOT(MG_MC_SAME)));
    if (q->space == MG_SPACE_shared) {
        mg_id total = reg32(q);
        jump(q, unit, false, tell);
        mg_memory_conflicts(q, total);
        put_by_one(q, MG_MC_CONFLICTS, total);
    } else if (has_sectors(q)) {
        mg_id sectors = reg32(q), lines = reg32(q);
        count_sectors(q, unit, sectors, lines);
        put_by_one(q, MG_MC_SECTORS, sectors);
        put_by_one(q, MG_MC_LINES, lines);
    }
    mg_code_place(q->at, tell);
    tell_pattern(q, slot);
    q->addr = was;
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
    mg_memory_classify_full(q, strip, from, unit, 0, 0);
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
    mg_id full = mg_memory_ask_lanes(q, 0), others = reg32(q), slot = reg32(q), one = pred(q),
          lead = mg_value_leader(q->at);
    EMIT("mov.u32", k->lanes, q->active);
    EMIT("mov.u32", k->breaks, 0);
    EMIT("mov.u32", strip, 0);
    EMIT("mov.u32", place, mg_value_lane(q->at));
    jump(q, full, true, few);
    if (q->called) {
        mg_memory_classify_called(q, strip);
        jump(q, 0, false, pack);
    } else {
        classify_whole(q, k, strip, pack);
    }
    mg_code_place(q->at, few); /* the lowest tells for all */
    q->mask = (struct mg_opnd){0};
    unit = mg_memory_in_order(q, &begin);
    EMIT("add.u32", others, q->active, -1);
    EMIT("and.b32", others, others, q->active);
    EMIT("setp.eq.u32", one, others, 0);
    EMIT("selp.u32", slot, I(SLOT(MG_MC_SAME)), I(SLOT(MG_MC_UNIT)), one);
    EMIT("selp.u32", place, slot, place, lead);
    EMIT("selp.u32", strip, 1, 0, lead);
    if (goes_anywhere(q, k))
        EMIT("selp.b32", k->lanes, k->lanes, 0, unit);
    else
        EMIT("mov.u32", k->lanes, 0);
    mg_code_place(q->at, pack);
    EMIT("mad.lo.u32", k->strip, place, 1024, strip);
}

/* Counts by the class, if these are all of its lanes; else goes on behind. */
void mg_memory_count_by_class(struct mg_memory_request *q, const struct mg_memory_class *k, mg_id done)
{
    mg_id fast = pred(q), slow = mg_code_label(q->at), v = reg32(q), place = reg32(q);
    EMIT("setp.eq.u32", fast, q->active, k->lanes);
    if (k->changes) EMIT("vote.sync.all.pred", fast, fast, mask_of(q));
    jump(q, fast, true, slow);
    EMIT("and.b32", v, k->strip, 255);
    EMIT("shr.u32", place, k->strip, 10);
    if (goes_anywhere(q, k))
        mg_strip_add_at(q->at, q->strip, place, v);
    else
        mg_strip_add(q->at, q->strip, v);
    jump(q, 0, false, done);
    mg_code_place(q->at, slow);
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
void mg_memory_add_place(struct mg_memory_request *q, mg_id strip, mg_id from)
{
    mg_id place = reg32(q), p = pred(q); /* all lanes are here, that of the place too */
    EMIT("and.b32", place, from, 127);
    EMIT("shr.u32", place, place, I(log2_of(q->bytes)));
    EMIT("setp.eq.u32", p, place, mg_value_lane(q->at));
    EMIT("selp.u32", strip, 1, 0, p);
    mg_strip_add(q->at, q->place_strip, strip);
}

void mg_memory_add_pattern(struct mg_memory_request *q, mg_id strip, uint32_t cell)
{
    mg_memory_set_pattern(q, strip, I(SLOT(cell)));
    add_strip(q, strip);
}

void mg_memory_count_here(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    mg_id covered = q->group ? q->group->covered : 0;
    bool places = q->places;
    mg_id partial = mg_code_label(q->at), done = mg_code_label(q->at), ordered = places ? mg_code_label(q->at) : 0,
          at_one = covered ? mg_code_label(q->at) : 0, strip = reg32(q), from = reg32(q), unit = pred(q);
    if (covered) { /* nobody makes it: nobody will */
        EMIT("mov.u32", strip, 0);
        EMIT("setp.eq.u32", covered, strip, 0);
    }
    mg_id full = mg_memory_ask_lanes(q, done);
    if (k) mg_memory_count_by_class(q, k, done);
    jump(q, full, true, partial);
    mg_memory_classify_full(q, strip, from, unit, ordered, at_one);
    add_strip(q, strip);
    if (covered) EMIT("setp.ne.u32", covered, q->here, q->here);
    jump(q, 0, false, done);
    if (ordered) {
        mg_code_place(q->at, ordered);
        mg_memory_add_place(q, strip, from);
        jump(q, 0, false, done);
    }
    if (at_one) {
        mg_code_place(q->at, at_one);
        mg_memory_add_pattern(q, strip, MG_MC_SAME_ALL);
        jump(q, 0, false, done);
    }
    mg_code_place(q->at, partial);
    count_partial(q, k);
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

void mg_memory_count_same(struct mg_memory_request *q)
{
    mg_id slot = reg32(q), done = mg_code_label(q->at);
    EMIT("mov.u32", slot, I((q->group ? MG_MC_SAME_ALL : MG_MC_SAME) - MG_MC_SAME));
    if (q->group) EMIT("setp.eq.u32", q->group->covered, slot, slot);
    mg_memory_ask_lanes(q, done);
    tell_pattern(q, slot);
    mg_code_place(q->at, done);
}

/* Lanes of a request of which it is known what all of them would ask for: from which lanes there are. Jumps to nowhere.
 */
static void count_some(struct mg_memory_request *q, const struct mg_memory_fixed *x)
{
    mg_id slot = reg32(q), t = reg32(q), one = pred(q), p = pred(q), total = reg32(q), tell = mg_code_label(q->at);
    EMIT("add.u32", t, q->active, -1);
    EMIT("and.b32", t, t, q->active);
    EMIT("setp.eq.u32", one, t, 0);
    if (x->pattern == MG_MC_SAME) {
        EMIT("mov.u32", slot, 0);
    } else if (!x->breaks || x->breaks == UINT32_MAX - 1) {
        EMIT("selp.u32", slot, 0, I((x->breaks ? MG_MC_IRREGULAR : MG_MC_UNIT) - MG_MC_SAME), one);
    } else {
        mg_id breaks = reg32(q);
        EMIT("mov.u32", breaks, I(x->breaks));
        EMIT("mov.pred", p, is_broken(q, breaks));
        EMIT("selp.u32", slot, MG_MC_IRREGULAR - MG_MC_SAME, MG_MC_UNIT - MG_MC_SAME, p);
        EMIT("selp.u32", slot, 0, slot, one);
    }
    if (x->conflicts) {
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
        put_by_one(q, MG_MC_CONFLICTS, total);
    }
    mg_code_place(q->at, tell);
    tell_pattern(q, slot);
}

void mg_memory_count_fixed(struct mg_memory_request *q, const struct mg_memory_fixed *x, mg_id in_row, uint32_t sum)
{
    mg_id full = pred(q), p = pred(q), some = mg_code_label(q->at), any = mg_code_label(q->at),
          done = mg_code_label(q->at);
    mg_memory_ask_lanes(q, done);
    EMIT("setp.eq.u32", full, q->active, in_row);
    if (sum != UINT32_MAX) {
        mg_code_push_guard(q->at, full, false);
        mg_sum_add(q->at, sum, I(1));
        mg_code_pop_guard(q->at);
        jump(q, full, false, done);
    } else {
        mg_id strip = reg32(q);
        jump(q, full, true, some);
        mg_memory_set_pattern(q, strip, I(SLOT(x->pattern)));
        if (x->conflicts) set_slot(q, strip, MG_MC_CONFLICTS, I(x->conflicts));
        mg_strip_add(q->at, q->strip, strip);
        jump(q, 0, false, done);
        mg_code_place(q->at, some);
    }
    if (q->called) {
        mg_memory_count_away(q);
        mg_code_place(q->at, done);
        return;
    }
    if (x->ascends || x->pattern == MG_MC_SAME) {
        EMIT("setp.eq.u32", p, in_row, 0);
        jump(q, p, false, any);
        count_some(q, x);
        jump(q, 0, false, done);
        mg_code_place(q->at, any);
    }
    mg_memory_count(q, NULL);
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

void mg_memory_follow_one(struct mg_memory_request *q, mg_id full, const struct mg_memory_group *g)
{
    mg_id done = mg_code_label(q->at), partial = mg_code_label(q->at), sectors = reg32(q), lines = reg32(q),
          strip = reg32(q), unit = pred(q);
    EMIT("setp.eq.u32", unit, g->slot, I(SLOT(MG_MC_UNIT)));
    if (!q->places) follow_in_order(q, full, unit, strip, done);
    if (has_sectors(q)) count_sectors(q, unit, sectors, lines);
    jump(q, full, true, partial);
    mg_memory_set_pattern(q, strip, R(g->slot));
    if (has_sectors(q)) set_slot(q, strip, MG_MC_SECTORS, R(sectors));
    if (has_sectors(q)) set_slot(q, strip, MG_MC_LINES, R(lines));
    add_strip(q, strip);
    jump(q, 0, false, done);
    mg_code_place(q->at, partial);
    if (q->place)
        mg_place_put(q->at, q->place, R(g->slot), I(1), lowest(q));
    else
        mg_tally_put(q->at, q->cell + MG_MC_SECTORS, MG_MC_COUNT - MG_MC_SECTORS, g->slot, lowest(q));
    if (has_sectors(q)) put_by_one(q, MG_MC_SECTORS, sectors);
    if (has_sectors(q)) put_by_one(q, MG_MC_LINES, lines);
    mg_code_place(q->at, done);
}

void mg_memory_follow(const struct mg_memory_request *first, const struct mg_memory_group *g,
                      const struct mg_memory_follower *f, uint32_t n)
{
    struct mg_memory_request one = *first, *q = &one;
    mg_id done = mg_code_label(q->at), addr = reg64(q);
    q->group = NULL;
    jump(q, g->covered, false, done);
    mg_id full = mg_memory_ask_lanes(q, done);
    for (uint32_t i = 0; i < n; i++) {
        EMIT("add.s64", addr, first->addr, I(f[i].apart));
        q->addr = addr, q->cell = f[i].cell, q->strip = f[i].strip;
        if (q->called)
            mg_memory_follow_called(q, g->slot);
        else
            mg_memory_follow_one(q, full, g);
    }
    mg_code_place(q->at, done);
}
