/* memory: the code that classifies one request. See memory.c for what is counted.
 *
 *   full     all 32 lanes make the access: what it adds to the cells lies side by side in the lanes, as a row.
 *            Two shuffles tell neighbours in order, one more any other stride; closed forms give the rest
 *   partial  fewer lanes: the lowest adds to memory. No closed forms
 *   others   sectors of ascending addresses are told from neighbour to neighbour; banks that each are asked by
 *            one lane by a bit a bank (redux). What is left is compared lane against lane, a ballot for each bit
 *            in which lanes differ: match.any takes longer, the more values there are
 *
 * All lanes at the spot run the code together; those that do not make the access stand in with the address
 * of the lowest that does, and are left out where that would count. */
#include "tool/memory.h"

#define R mg_o_reg
#define I mg_o_imm
#define EMIT(form, ...) MG_CODE(q->at, form, __VA_ARGS__)
#define SLOT(cell) ((cell) - MG_MC_SECTORS) /* lane of the row */

enum { ALL = 31 };

static mg_id reg32(struct mg_memory_request *q) { return mg_code_temp(q->at, MG_TYPE_b32); }
static mg_id reg64(struct mg_memory_request *q) { return mg_code_temp(q->at, MG_TYPE_b64); }
static mg_id pred(struct mg_memory_request *q) { return mg_code_temp(q->at, MG_TYPE_pred); }

static int64_t log2_of(uint32_t v)
{
    int64_t n = 0;
    while (v > 1) v >>= 1, n++;
    return n;
}

static bool has_sectors(const struct mg_memory_request *q) { return q->space == MG_SPACE_global || q->space == MG_SPACE_generic; }

static void jump(struct mg_memory_request *q, mg_id p, bool negated, mg_id to)
{
    if (p) mg_code_push_guard(q->at, p, negated);
    EMIT("bra.uni", mg_o_label(to));
    if (p) mg_code_pop_guard(q->at);
}

/* The two halves of a value of 64 bits. */
static void split(struct mg_memory_request *q, mg_id v, mg_id *lo, mg_id *hi)
{
    mg_id pair = mg_opnd_alloc(q->m, 2);
    *lo = reg32(q), *hi = reg32(q);
    q->m->opnds.at[pair] = R(*lo), q->m->opnds.at[pair + 1] = R(*hi);
    EMIT("mov.b64", (struct mg_opnd){.kind = MG_OPND_vec, .id = pair, .n = 2}, R(v));
}

/* The value that lane `from` has, in every lane here. Of shared memory's addresses the low half is all. */
static mg_id of_lane(struct mg_memory_request *q, mg_id v, struct mg_opnd from)
{
    mg_id lo, hi, r = reg64(q), pair = mg_opnd_alloc(q->m, 2);
    split(q, v, &lo, &hi);
    EMIT("shfl.sync.idx.b32", R(lo), R(lo), from, I(ALL), q->mask);
    if (q->space == MG_SPACE_shared) {
        EMIT("cvt.u64.u32", R(r), R(lo));
        return r;
    }
    EMIT("shfl.sync.idx.b32", R(hi), R(hi), from, I(ALL), q->mask);
    q->m->opnds.at[pair] = R(lo), q->m->opnds.at[pair + 1] = R(hi);
    EMIT("mov.b64", R(r), (struct mg_opnd){.kind = MG_OPND_vec, .id = pair, .n = 2});
    return r;
}

/* Is a = b in every lane here? */
static mg_id all_equal(struct mg_memory_request *q, mg_id a, mg_id b)
{
    mg_id p = pred(q), all = pred(q);
    EMIT("setp.eq.u64", R(p), R(a), R(b));
    EMIT("vote.sync.all.pred", R(all), R(p), q->mask);
    return all;
}

/* row = v in the lane of that cell. */
static void set_slot(struct mg_memory_request *q, mg_id row, uint32_t cell, struct mg_opnd v)
{
    mg_id p = pred(q);
    EMIT("setp.eq.u32", R(p), R(mg_value_lane(q->at)), I(SLOT(cell)));
    EMIT("selp.u32", R(row), v, R(row), R(p));
}

/* row = 1 in the lane of the pattern, whose slot is in a register, 0 elsewhere. */
static void set_pattern(struct mg_memory_request *q, mg_id row, struct mg_opnd slot)
{
    mg_id p = pred(q);
    EMIT("setp.eq.u32", R(p), R(mg_value_lane(q->at)), slot);
    EMIT("selp.u32", R(row), I(1), I(0), R(p));
}

/* ---- lane against lane ------------------------------------------------------------------------------------ */

/* Takes from `peers` (b32, each lane its own) the lanes whose v (b32) differs: bit by bit of those in which any differ. */
static void keep_equal(struct mg_memory_request *q, mg_id v, mg_id peers)
{
    if (q->m->sm < 80) {
        mg_id equal = reg32(q);
        EMIT("match.any.sync.b32", R(equal), R(v), q->mask);
        EMIT("and.b32", R(peers), R(peers), R(equal));
        return;
    }
    mg_id left = reg32(q), common = reg32(q), bit = reg32(q), mine = reg32(q), b = reg32(q), p = pred(q), again = mg_code_label(q->at), out = mg_code_label(q->at);
    EMIT("redux.sync.or.b32", R(left), R(v), q->mask);
    EMIT("redux.sync.and.b32", R(common), R(v), q->mask);
    EMIT("xor.b32", R(left), R(left), R(common));
    mg_code_place(q->at, again);
    EMIT("setp.eq.u32", R(p), R(left), I(0));
    jump(q, p, false, out);
    EMIT("neg.s32", R(bit), R(left));
    EMIT("and.b32", R(bit), R(bit), R(left));
    EMIT("xor.b32", R(left), R(left), R(bit));
    EMIT("and.b32", R(mine), R(v), R(bit));
    EMIT("setp.ne.u32", R(p), R(mine), I(0));
    EMIT("vote.sync.ballot.b32", R(b), R(p), q->mask);
    mg_code_push_guard(q->at, p, true);
    EMIT("not.b32", R(b), R(b));
    mg_code_pop_guard(q->at);
    EMIT("and.b32", R(peers), R(peers), R(b));
    jump(q, 0, false, again);
    mg_code_place(q->at, out);
}

/* In every lane: the lanes that make the access and are the lowest of their peers. */
static mg_id firsts_of(struct mg_memory_request *q, mg_id peers)
{
    mg_id lower = reg32(q), first = pred(q), firsts = reg32(q);
    EMIT("mov.u32", R(lower), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", R(lower), R(lower), R(peers));
    if (q->makes) EMIT("setp.eq.and.u32", R(first), R(lower), I(0), R(q->makes));
    else EMIT("setp.eq.u32", R(first), R(lower), I(0));
    EMIT("vote.sync.ballot.b32", R(firsts), R(first), q->mask);
    return firsts;
}

/* Sectors and lines, lane against lane. */
static void compare_sectors(struct mg_memory_request *q, mg_id sectors, mg_id lines)
{
    mg_id line = reg64(q), part = reg32(q), peers = reg32(q), lo, hi;
    EMIT("mov.u32", R(peers), R(q->active));
    EMIT("shr.u64", R(line), R(q->addr), I(7));
    split(q, line, &lo, &hi);
    keep_equal(q, lo, peers);
    keep_equal(q, hi, peers);
    EMIT("popc.b32", R(lines), R(firsts_of(q, peers)));
    EMIT("cvt.u32.u64", R(part), R(q->addr));
    EMIT("and.b32", R(part), R(part), I(96));
    keep_equal(q, part, peers);
    EMIT("popc.b32", R(sectors), R(firsts_of(q, peers)));
}

/* Sectors and lines of any lanes. */
static void count_sectors(struct mg_memory_request *q, mg_id sectors, mg_id lines)
{
    mg_id below = reg32(q), from = reg32(q), lo, hi, mine = reg64(q), theirs = reg64(q), pair = mg_opnd_alloc(q->m, 2), first = pred(q), p = pred(q), some = pred(q), b = reg32(q);
    mg_id slow = mg_code_label(q->at), done = mg_code_label(q->at);
    EMIT("mov.u32", R(below), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", R(below), R(below), R(q->active));
    EMIT("setp.eq.u32", R(first), R(below), I(0)); /* none below makes the access */
    EMIT("bfind.u32", R(from), R(below));
    EMIT("shr.u64", R(mine), R(q->addr), I(5));
    split(q, mine, &lo, &hi);
    EMIT("shfl.sync.idx.b32", R(lo), R(lo), R(from), I(ALL), q->mask);
    EMIT("shfl.sync.idx.b32", R(hi), R(hi), R(from), I(ALL), q->mask);
    q->m->opnds.at[pair] = R(lo), q->m->opnds.at[pair + 1] = R(hi);
    EMIT("mov.b64", R(theirs), (struct mg_opnd){.kind = MG_OPND_vec, .id = pair, .n = 2});
    EMIT("setp.gt.u64", R(p), R(theirs), R(mine));
    mg_id counts = q->makes;
    if (!counts) {
        counts = pred(q);
        EMIT("setp.eq.u32", R(counts), R(q->here), R(q->here));
    }
    EMIT("and.pred", R(p), R(p), R(counts));
    mg_code_push_guard(q->at, first, false);
    EMIT("setp.ne.u32", R(p), R(q->here), R(q->here));
    mg_code_pop_guard(q->at);
    EMIT("vote.sync.any.pred", R(some), R(p), q->mask);
    jump(q, some, false, slow);
    for (int k = 0; k < 2; k++) {
        if (k) EMIT("shr.u64", R(mine), R(mine), I(2));
        if (k) EMIT("shr.u64", R(theirs), R(theirs), I(2));
        EMIT("setp.ne.or.u64", R(p), R(mine), R(theirs), R(first));
        EMIT("and.pred", R(p), R(p), R(counts));
        EMIT("vote.sync.ballot.b32", R(b), R(p), q->mask);
        EMIT("popc.b32", R(k ? lines : sectors), R(b));
    }
    jump(q, 0, false, done);
    mg_code_place(q->at, slow);
    compare_sectors(q, sectors, lines);
    mg_code_place(q->at, done);
}

/* The largest value of v (below 64) over the lanes here, in each of them. */
static mg_id largest(struct mg_memory_request *q, mg_id v)
{
    mg_id most = reg32(q);
    if (q->m->sm >= 80) {
        EMIT("redux.sync.max.u32", R(most), R(v), q->mask);
        return most;
    }
    mg_id in = reg32(q), bit = reg32(q), some = reg32(q), p = pred(q), any = pred(q);
    EMIT("mov.u32", R(most), I(0));
    EMIT("mov.u32", R(in), I(1)); /* still among the largest */
    for (int shift = 5; shift >= 0; shift--) {
        EMIT("shr.u32", R(bit), R(v), I(shift));
        EMIT("and.b32", R(bit), R(bit), R(in));
        EMIT("setp.ne.u32", R(p), R(bit), I(0));
        EMIT("vote.sync.ballot.b32", R(some), R(p), q->mask);
        EMIT("setp.ne.u32", R(any), R(some), I(0));
        EMIT("selp.u32", R(in), R(bit), R(in), R(any));
        EMIT("selp.u32", R(some), I(1), I(0), R(any));
        EMIT("shl.b32", R(some), R(some), I(shift));
        EMIT("or.b32", R(most), R(most), R(some));
    }
    return most;
}

/* Groups of lanes are served one after another; in each, the busiest bank's different words. */
static void count_conflicts(struct mg_memory_request *q, mg_id total)
{
    uint32_t unit = MG_MAX(q->bytes, 4u), groups = unit > 8 ? 4 : unit > 4 ? 2 : 1, lanes = 32 / groups;
    mg_id group = reg32(q), wide = reg64(q), word = reg32(q), bank = reg32(q), mine = reg32(q), peers = reg32(q), equal = reg32(q), done = mg_code_label(q->at);
    EMIT("shr.u32", R(group), R(mg_value_lane(q->at)), I(log2_of(lanes)));
    EMIT("shr.u64", R(wide), R(q->addr), I(log2_of(unit)));
    EMIT("cvt.u32.u64", R(word), R(wide));
    EMIT("and.b32", R(bank), R(word), I(lanes - 1));
    EMIT("mad.lo.u32", R(bank), R(group), I(lanes), R(bank)); /* each group has banks of its own: 32 in all */
    EMIT("mov.u32", R(total), I(0));
    if (q->m->sm >= 80) { /* are as many asked as there are lanes? */
        mg_id bit = reg32(q), n = reg32(q), p = pred(q);
        EMIT("shl.b32", R(bit), I(1), R(bank));
        if (q->makes) EMIT("selp.b32", R(bit), R(bit), I(0), R(q->makes));
        EMIT("redux.sync.or.b32", R(bit), R(bit), q->mask);
        EMIT("popc.b32", R(bit), R(bit));
        EMIT("popc.b32", R(n), R(q->active));
        EMIT("setp.eq.u32", R(p), R(bit), R(n));
        jump(q, p, false, done);
    }
    EMIT("mov.u32", R(peers), R(q->active));
    keep_equal(q, bank, peers);
    EMIT("mov.u32", R(equal), R(peers));
    EMIT("shr.u32", R(word), R(word), I(log2_of(lanes)));
    keep_equal(q, word, equal);
    EMIT("and.b32", R(peers), R(peers), R(firsts_of(q, equal)));
    EMIT("popc.b32", R(peers), R(peers));
    if (q->makes) EMIT("selp.b32", R(peers), R(peers), I(1), R(q->makes));
    for (uint32_t g = 0; g < groups; g++) { /* a group without lanes takes no pass beyond the first */
        mg_id in = pred(q), extra = reg32(q);
        if (groups > 1) EMIT("setp.eq.u32", R(in), R(group), I(g));
        if (groups > 1) EMIT("selp.u32", R(mine), R(peers), I(1), R(in));
        else EMIT("mov.u32", R(mine), R(peers));
        EMIT("add.u32", R(extra), R(largest(q, mine)), I(-1));
        EMIT("add.u32", R(total), R(total), R(extra));
    }
    mg_code_place(q->at, done);
}

/* ---- all 32 lanes ---------------------------------------------------------------------------------------- */

/* Slot of the pattern of one stride, of so many bytes. */
static mg_id stride_slot(struct mg_memory_request *q, mg_id step)
{
    mg_id size = reg32(q), slot = reg32(q), p = pred(q);
    EMIT("abs.s32", R(size), R(step));
    EMIT("setp.gt.u32", R(p), R(size), I(128));
    EMIT("selp.u32", R(slot), I(SLOT(MG_MC_STRIDE_MORE)), I(SLOT(MG_MC_STRIDE_128)), R(p));
    EMIT("setp.gt.u32", R(p), R(size), I(32));
    EMIT("selp.u32", R(slot), R(slot), I(SLOT(MG_MC_STRIDE_32)), R(p));
    return slot;
}

/* n = how many aligned units of 2^shift bytes 32 lanes with one stride touch. */
static mg_id touched(struct mg_memory_request *q, mg_id lowest, mg_id size, int64_t shift)
{
    mg_id n = reg32(q), p = pred(q);
    EMIT("and.b32", R(n), R(lowest), I(((int64_t)1 << shift) - 1));
    EMIT("mad.lo.u32", R(n), R(size), I(31), R(n));
    EMIT("shr.u32", R(n), R(n), I(shift));
    EMIT("add.u32", R(n), R(n), I(1));
    EMIT("setp.ge.u32", R(p), R(size), I((int64_t)1 << shift));
    EMIT("selp.u32", R(n), I(32), R(n), R(p));
    return n;
}

/* What one stride other than 0 asks of the memory. */
static void add_strided(struct mg_memory_request *q, mg_id row, mg_id first, mg_id step)
{
    mg_id size = reg32(q), lowest = reg32(q);
    if (q->space == MG_SPACE_shared) { /* as many lanes in a bank as the stride in words and the banks divide by */
        uint32_t groups = q->bytes > 8 ? 4 : q->bytes > 4 ? 2 : 1, lanes = 32 / groups;
        mg_id low = reg32(q);
        EMIT("shr.s32", R(size), R(step), I(log2_of(q->bytes)));
        EMIT("or.b32", R(size), R(size), I(lanes));
        EMIT("neg.s32", R(low), R(size));
        EMIT("and.b32", R(low), R(low), R(size));
        EMIT("mad.lo.u32", R(low), R(low), I(groups), I(-(int64_t)groups));
        set_slot(q, row, MG_MC_CONFLICTS, R(low));
    } else if (has_sectors(q)) {
        mg_id p = pred(q), back = reg32(q);
        EMIT("cvt.u32.u64", R(lowest), R(first));
        EMIT("abs.s32", R(size), R(step));
        EMIT("mad.lo.u32", R(back), R(step), I(31), R(lowest));
        EMIT("setp.lt.s32", R(p), R(step), I(0));
        EMIT("selp.u32", R(lowest), R(back), R(lowest), R(p));
        set_slot(q, row, MG_MC_SECTORS, R(touched(q, lowest, size, 5)));
        set_slot(q, row, MG_MC_LINES, R(touched(q, lowest, size, 7)));
    }
}

/* Anything that 32 lanes can ask for. */
static void add_any(struct mg_memory_request *q, mg_id row)
{
    if (q->space == MG_SPACE_shared) {
        mg_id total = reg32(q);
        count_conflicts(q, total);
        set_slot(q, row, MG_MC_CONFLICTS, R(total));
    } else if (has_sectors(q)) {
        mg_id sectors = reg32(q), lines = reg32(q);
        count_sectors(q, sectors, lines);
        set_slot(q, row, MG_MC_SECTORS, R(sectors));
        set_slot(q, row, MG_MC_LINES, R(lines));
    }
}

/* What neighbours in order ask for: where that depends on the place of the first in its line, of it. */
static void add_in_order(struct mg_memory_request *q, mg_id row, mg_id first)
{
    if (q->space == MG_SPACE_shared) {
        set_pattern(q, row, I(SLOT(MG_MC_UNIT)));
        return;
    }
    mg_id low = reg32(q), size = reg32(q), slot = reg32(q), p = pred(q);
    EMIT("cvt.u32.u64", R(low), R(first));
    EMIT("and.b32", R(low), R(low), I(127));
    EMIT("setp.eq.u32", R(p), R(low), I(0));
    EMIT("selp.u32", R(slot), I(SLOT(MG_MC_ALIGNED)), I(SLOT(MG_MC_UNIT)), R(p));
    set_pattern(q, row, R(slot));
    if (!has_sectors(q)) return;
    EMIT("mov.u32", R(size), I(q->bytes));
    for (int k = 0; k < 2; k++) {
        mg_id n = touched(q, low, size, k ? 7 : 5);
        EMIT("selp.u32", R(n), I(0), R(n), R(p)); /* of aligned ones it is known */
        set_slot(q, row, k ? MG_MC_LINES : MG_MC_SECTORS, R(n));
    }
}

/* row = what the request adds. Neighbours in order, where places in a line are counted: jumps to `in_order`, with
 * the first lane's address in `first`; all at one address: to `at_one`. 0: they are rows like any other. unit: are
 * they neighbours in order? */
static void classify_full(struct mg_memory_request *q, mg_id row, mg_id first, mg_id unit, mg_id in_order, mg_id at_one)
{
    mg_id far = reg64(q), by = reg64(q), step = reg32(q), other = reg32(q), p = pred(q), next = mg_code_label(q->at), any = mg_code_label(q->at), done = mg_code_label(q->at);
    mg_id low = reg64(q);
    struct mg_opnd addr = R(q->addr), was = q->mask;
    q->mask = I(0xffffffff); /* a constant: the assembler then waits for nobody */
    if (q->space == MG_SPACE_shared) EMIT("and.b64", R(low), addr, I(UINT32_MAX)), addr = R(low);
    EMIT("mov.u64", R(first), R(of_lane(q, q->addr, I(0))));
    EMIT("sub.s64", R(far), addr, R(first));
    EMIT("mul.wide.u32", R(by), R(mg_value_lane(q->at)), I(q->bytes));
    EMIT("mov.pred", R(unit), R(all_equal(q, far, by)));
    if (in_order) {
        jump(q, unit, false, in_order);
    } else {
        jump(q, unit, true, next);
        add_in_order(q, row, first);
        jump(q, 0, false, done);
        mg_code_place(q->at, next);
    }
    EMIT("cvt.u32.u64", R(step), R(far));
    EMIT("shfl.sync.idx.b32", R(step), R(step), I(1), I(ALL), q->mask);
    EMIT("mul.wide.s32", R(by), R(step), R(mg_value_lane(q->at)));
    mg_id strided = all_equal(q, far, by);
    mg_code_push_guard(q->at, strided, false);
    EMIT("mov.u32", R(other), R(stride_slot(q, step)));
    mg_code_pop_guard(q->at);
    mg_code_push_guard(q->at, strided, true);
    EMIT("mov.u32", R(other), I(SLOT(MG_MC_IRREGULAR)));
    mg_code_pop_guard(q->at);
    if (q->group) EMIT("mov.u32", R(q->group->slot), R(other));
    EMIT("setp.eq.u32", R(p), R(step), I(0));
    mg_id same = pred(q);
    EMIT("and.pred", R(same), R(p), R(strided));
    if (at_one) {
        jump(q, same, false, at_one);
        set_pattern(q, row, R(other));
    } else {
        EMIT("selp.u32", R(other), I(SLOT(MG_MC_SAME)), R(other), R(same));
        set_pattern(q, row, R(other));
        jump(q, same, false, done);
    }
    if (q->space == MG_SPACE_shared && q->bytes < 4) {
        add_any(q, row);
    } else {
        jump(q, strided, true, any);
        add_strided(q, row, first, step);
        jump(q, 0, false, done);
        mg_code_place(q->at, any);
        add_any(q, row);
    }
    mg_code_place(q->at, done);
    q->mask = was;
}

/* ---- fewer lanes ------------------------------------------------------------------------------------------- */

static void add_cell(struct mg_memory_request *q, uint32_t cell, struct mg_opnd v)
{
    mg_row_put(q->at, q->row, SLOT(cell), v);
}

/* covered: predicate to be set where the request is counted for the whole group; 0: of no group. */
static void count_partial(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    mg_id covered = q->group ? q->group->covered : 0;
    mg_id low = reg32(q), rev = reg32(q), first, lead = pred(q), p = pred(q), far = reg64(q), by = reg64(q), addr = reg64(q), back = reg32(q), unit = pred(q), tell = mg_code_label(q->at);
    mg_id slot = reg32(q), next = mg_code_label(q->at);
    if (k) { /* some of 32 neighbours in order: none in another's way */
        mg_id look = mg_code_label(q->at), n = reg32(q), one = pred(q);
        jump(q, k->unit, true, look);
        EMIT("popc.b32", R(n), R(q->active));
        EMIT("setp.eq.u32", R(one), R(n), I(1));
        EMIT("selp.u32", R(slot), I(0), I(MG_MC_UNIT - MG_MC_SAME), R(one));
        jump(q, 0, false, tell);
        mg_code_place(q->at, look);
    }
    EMIT("brev.b32", R(rev), R(q->active));
    EMIT("clz.b32", R(low), R(rev));
    EMIT("setp.eq.u32", R(lead), R(mg_value_lane(q->at)), R(low));
    first = of_lane(q, q->addr, R(low));
    EMIT("mov.u64", R(addr), R(q->addr));
    if (q->space == MG_SPACE_shared) EMIT("and.b64", R(addr), R(addr), I(UINT32_MAX));
    if (q->makes) EMIT("selp.b64", R(addr), R(addr), R(first), R(q->makes));
    mg_id same = all_equal(q, addr, first), was = q->addr;
    q->addr = addr;
    if (covered) EMIT("mov.pred", R(covered), R(same));
    jump(q, same, true, next);
    EMIT("mov.u32", R(slot), I((covered ? MG_MC_SAME_ALL : MG_MC_SAME) - MG_MC_SAME));
    jump(q, 0, false, tell);
    mg_code_place(q->at, next);
    EMIT("sub.s64", R(far), R(addr), R(first));
    EMIT("sub.s32", R(back), R(mg_value_lane(q->at)), R(low));
    EMIT("mul.wide.s32", R(by), R(back), I(q->bytes));
    EMIT("setp.eq.s64", R(p), R(far), R(by));
    if (q->makes) {
        mg_id stands_in = pred(q);
        EMIT("not.pred", R(stands_in), R(q->makes));
        EMIT("or.pred", R(p), R(p), R(stands_in));
    }
    EMIT("vote.sync.all.pred", R(unit), R(p), q->mask);
    EMIT("selp.u32", R(slot), I(MG_MC_UNIT - MG_MC_SAME), I(MG_MC_IRREGULAR - MG_MC_SAME), R(unit));
    if (q->group) EMIT("add.u32", R(q->group->slot), R(slot), I(SLOT(MG_MC_SAME)));
    if (q->space == MG_SPACE_shared) {
        mg_id total = reg32(q), some = pred(q);
        jump(q, unit, false, tell);
        count_conflicts(q, total);
        EMIT("setp.ne.and.u32", R(some), R(total), I(0), R(lead));
        mg_code_push_guard(q->at, some, false);
        add_cell(q, MG_MC_CONFLICTS, R(total));
        mg_code_pop_guard(q->at);
    } else if (has_sectors(q)) {
        mg_id sectors = reg32(q), lines = reg32(q);
        count_sectors(q, sectors, lines);
        mg_code_push_guard(q->at, lead, false);
        add_cell(q, MG_MC_SECTORS, R(sectors));
        add_cell(q, MG_MC_LINES, R(lines));
        mg_code_pop_guard(q->at);
    }
    mg_code_place(q->at, tell);
    mg_tally_add(q->at, q->cell + MG_MC_SAME, MG_MC_SAME_ALL - MG_MC_SAME + 1, slot);
    q->addr = was;
}

/* ---- a request --------------------------------------------------------------------------------------------- */

/* here, active, full; jumps to `none` where no lane makes the access. */
static mg_id ask_lanes(struct mg_memory_request *q, mg_id none)
{
    mg_id full = pred(q);
    q->here = q->active = mg_value_active(q->at), q->mask = R(q->here);
    if (q->makes) {
        mg_id p = pred(q);
        q->active = reg32(q);
        EMIT("vote.sync.ballot.b32", R(q->active), R(q->makes), q->mask);
        EMIT("setp.eq.u32", R(p), R(q->active), I(0));
        jump(q, p, false, none);
    }
    EMIT("setp.eq.u32", R(full), R(q->active), I(0xffffffff));
    return full;
}

void mg_memory_classify(struct mg_memory_request *q, struct mg_memory_class *k)
{
    mg_id first = reg64(q), full, none = mg_code_label(q->at);
    k->known = mg_code_reg(q->at, MG_TYPE_pred);
    k->row = mg_code_reg(q->at, MG_TYPE_b32);
    k->unit = mg_code_reg(q->at, MG_TYPE_pred);
    full = ask_lanes(q, 0);
    EMIT("mov.pred", R(k->known), R(full));
    EMIT("mov.pred", R(k->unit), R(full));
    EMIT("mov.u32", R(k->row), I(0));
    jump(q, full, true, none);
    classify_full(q, k->row, first, k->unit, 0, 0);
    mg_code_place(q->at, none);
}

void mg_memory_count(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    mg_id covered = q->group ? q->group->covered : 0;
    bool places = q->places != UINT32_MAX;
    mg_id partial = mg_code_label(q->at), done = mg_code_label(q->at), in_order = places ? mg_code_label(q->at) : 0, at_one = covered ? mg_code_label(q->at) : 0, row = reg32(q), first = reg64(q), unit = pred(q);
    if (covered) { /* nobody makes it: nobody will */
        EMIT("mov.u32", R(row), I(0));
        EMIT("setp.eq.u32", R(covered), R(row), I(0));
    }
    mg_id full = ask_lanes(q, done);
    if (k) {
        mg_id fast = pred(q), slow = mg_code_label(q->at);
        EMIT("and.pred", R(fast), R(full), R(k->known));
        jump(q, fast, true, slow);
        mg_row_add(q->at, q->row, k->row);
        jump(q, 0, false, done);
        mg_code_place(q->at, slow);
    }
    jump(q, full, true, partial);
    classify_full(q, row, first, unit, in_order, at_one);
    mg_row_add(q->at, q->row, row);
    if (covered) EMIT("setp.ne.u32", R(covered), R(q->here), R(q->here));
    jump(q, 0, false, done);
    if (in_order) {
        mg_id place = reg32(q), p = pred(q);
        mg_code_place(q->at, in_order);
        EMIT("cvt.u32.u64", R(place), R(first));
        EMIT("and.b32", R(place), R(place), I(127));
        EMIT("shr.u32", R(place), R(place), I(log2_of(q->bytes)));
        EMIT("setp.eq.u32", R(p), R(place), R(mg_value_lane(q->at)));
        EMIT("selp.u32", R(row), I(1), I(0), R(p));
        mg_row_add(q->at, q->places, row);
        jump(q, 0, false, done);
    }
    if (at_one) {
        mg_code_place(q->at, at_one);
        set_pattern(q, row, I(SLOT(MG_MC_SAME_ALL)));
        mg_row_add(q->at, q->row, row);
        jump(q, 0, false, done);
    }
    mg_code_place(q->at, partial);
    count_partial(q, k);
    mg_code_place(q->at, done);
}

void mg_memory_follow(struct mg_memory_request *q, const struct mg_memory_group *g)
{
    mg_id done = mg_code_label(q->at), partial = mg_code_label(q->at), sectors = reg32(q), lines = reg32(q), row = reg32(q), low = reg32(q), lead = pred(q);
    jump(q, g->covered, false, done);
    mg_id full = ask_lanes(q, done);
    if (has_sectors(q)) count_sectors(q, sectors, lines);
    jump(q, full, true, partial);
    set_pattern(q, row, R(g->slot));
    if (has_sectors(q)) set_slot(q, row, MG_MC_SECTORS, R(sectors));
    if (has_sectors(q)) set_slot(q, row, MG_MC_LINES, R(lines));
    mg_row_add(q->at, q->row, row);
    jump(q, 0, false, done);
    mg_code_place(q->at, partial);
    mg_tally_add(q->at, q->cell + MG_MC_SECTORS, MG_MC_COUNT - MG_MC_SECTORS, g->slot);
    EMIT("brev.b32", R(low), R(q->active));
    EMIT("clz.b32", R(low), R(low));
    EMIT("setp.eq.u32", R(lead), R(low), R(mg_value_lane(q->at)));
    mg_code_push_guard(q->at, lead, false);
    if (has_sectors(q)) add_cell(q, MG_MC_SECTORS, R(sectors));
    if (has_sectors(q)) add_cell(q, MG_MC_LINES, R(lines));
    mg_code_pop_guard(q->at);
    mg_code_place(q->at, done);
}
