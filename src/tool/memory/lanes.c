/* memory: what the addresses of a request's lanes ask for together, lane against lane. See tool/memory/count.c for
 * when.
 *
 *   in order    sectors follow from which lanes there are and where in its sector the first begins
 *   ascending   from neighbour to neighbour
 *   others      a ballot for each bit in which lanes differ: match.any takes longer, the more values there are
 *
 * All lanes at the spot run the code together; those that do not make the access stand in with the address of one
 * that does, and are left out where that would count. */
#include "tool/memory/code.h"

/* From `peers` (b32, each lane its own) go the lanes whose v has not this bit as mine has. */
static void keep_bit(struct mg_memory_request *q, mg_id v, struct mg_opnd bit, mg_id peers)
{
    mg_id mine = reg32(q), b = reg32(q), p = pred(q);
    EMIT("and.b32", R(mine), R(v), bit);
    EMIT("setp.ne.u32", R(p), R(mine), I(0));
    EMIT("vote.sync.ballot.b32", R(b), R(p), mask_of(q));
    EMIT("selp.b32", R(mine), I(0), I(UINT32_MAX), R(p));
    EMIT("xor.b32", R(b), R(b), R(mine));
    EMIT("and.b32", R(peers), R(peers), R(b));
}

/* The same with all bits in which any lanes differ. */
static void keep_equal(struct mg_memory_request *q, mg_id v, mg_id peers)
{
    if (q->m->sm < 80) {
        mg_id equal = reg32(q);
        EMIT("match.any.sync.b32", R(equal), R(v), mask_of(q));
        EMIT("and.b32", R(peers), R(peers), R(equal));
        return;
    }
    mg_id left = reg32(q), common = reg32(q), bit = reg32(q), p = pred(q), again = mg_code_label(q->at),
          out = mg_code_label(q->at);
    EMIT("redux.sync.or.b32", R(left), R(v), mask_of(q));
    EMIT("redux.sync.and.b32", R(common), R(v), mask_of(q));
    EMIT("xor.b32", R(left), R(left), R(common));
    EMIT("setp.eq.u32", R(p), R(left), I(0));
    jump(q, p, false, out);
    mg_code_place(q->at, again);
    EMIT("neg.s32", R(bit), R(left));
    EMIT("and.b32", R(bit), R(bit), R(left));
    EMIT("xor.b32", R(left), R(left), R(bit));
    keep_bit(q, v, R(bit), peers);
    EMIT("setp.ne.u32", R(p), R(left), I(0));
    jump(q, p, false, again);
    mg_code_place(q->at, out);
}

/* In every lane: the lanes that make the access and are the lowest of their peers. */
static mg_id firsts_of(struct mg_memory_request *q, mg_id peers)
{
    mg_id lower = reg32(q), first = pred(q), firsts = reg32(q);
    EMIT("mov.u32", R(lower), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", R(lower), R(lower), R(peers));
    if (q->makes)
        EMIT("setp.eq.and.u32", R(first), R(lower), I(0), R(q->makes));
    else
        EMIT("setp.eq.u32", R(first), R(lower), I(0));
    EMIT("vote.sync.ballot.b32", R(firsts), R(first), mask_of(q));
    return firsts;
}

/* ---- sectors --------------------------------------------------------------------------------------------------- */

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
    keep_bit(q, part, I(32), peers);
    keep_bit(q, part, I(64), peers);
    EMIT("popc.b32", R(sectors), R(firsts_of(q, peers)));
}

void mg_memory_sectors(struct mg_memory_request *q, mg_id sectors, mg_id lines)
{
    mg_id below = reg32(q), from = reg32(q), lo, hi, mine = reg64(q), theirs = reg64(q), first = pred(q), p = pred(q),
          some = pred(q), b = reg32(q);
    mg_id slow = mg_code_label(q->at), done = mg_code_label(q->at);
    EMIT("mov.u32", R(below), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", R(below), R(below), R(q->active));
    EMIT("setp.eq.u32", R(first), R(below), I(0)); /* none below makes the access */
    EMIT("bfind.u32", R(from), R(below));
    EMIT("shr.u64", R(mine), R(q->addr), I(5));
    split(q, mine, &lo, &hi);
    EMIT("shfl.sync.idx.b32", R(lo), R(lo), R(from), I(ALL), mask_of(q));
    EMIT("shfl.sync.idx.b32", R(hi), R(hi), R(from), I(ALL), mask_of(q));
    EMIT("mov.b64", R(theirs), pair_of(q, MG_OPND_vec, lo, hi));
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
    EMIT("vote.sync.any.pred", R(some), R(p), mask_of(q));
    jump(q, some, false, slow);
    for (int k = 0; k < 2; k++) {
        if (k) EMIT("shr.u64", R(mine), R(mine), I(2));
        if (k) EMIT("shr.u64", R(theirs), R(theirs), I(2));
        EMIT("setp.ne.or.u64", R(p), R(mine), R(theirs), R(first));
        EMIT("and.pred", R(p), R(p), R(counts));
        EMIT("vote.sync.ballot.b32", R(b), R(p), mask_of(q));
        EMIT("popc.b32", R(k ? lines : sectors), R(b));
    }
    jump(q, 0, false, done);
    mg_code_place(q->at, slow);
    compare_sectors(q, sectors, lines);
    mg_code_place(q->at, done);
}

/* n = in how many of the runs of lanes that end at the lanes of `ends` (lane 31 among them) there is an active one:
 * adding all lanes of a run but its end to those of them that are active carries into the end if there is any. */
static void count_runs(struct mg_memory_request *q, mg_id ends, mg_id n)
{
    mg_id inner = reg32(q), x = reg32(q);
    EMIT("not.b32", R(inner), R(ends));
    EMIT("and.b32", R(x), R(q->active), R(inner));
    EMIT("add.u32", R(x), R(x), R(inner));
    EMIT("or.b32", R(x), R(x), R(q->active));
    EMIT("and.b32", R(x), R(x), R(ends));
    EMIT("popc.b32", R(n), R(x));
}

void mg_memory_sectors_in_order(struct mg_memory_request *q, mg_id sectors, mg_id lines)
{
    mg_id low = reg32(q), place = reg32(q), ends = reg32(q);
    EMIT("cvt.u32.u64", R(low), R(q->addr));
    EMIT("mad.lo.u32", R(low), R(mg_value_lane(q->at)), I(-(int64_t)q->bytes),
         R(low)); /* where lane 0 is, or would be */
    EMIT("shr.u32", R(low), R(low), I(log2_of(q->bytes)));
    for (int k = 0; k < 2; k++) {
        uint32_t lanes = (k ? 128 : 32) / q->bytes; /* in a sector, a line */
        EMIT("and.b32", R(place), R(low), I(lanes - 1));
        if (lanes <= 32) {
            uint32_t every = 0;
            for (uint32_t l = lanes; l <= 32; l += lanes) every |= 1u << (l - 1);
            EMIT("shr.u32", R(ends), I(every), R(place));
        } else { /* one of them ends here at most */
            EMIT("sub.u32", R(place), I(lanes - 1), R(place));
            EMIT("shl.b32", R(ends), I(1), R(place));
        }
        EMIT("or.b32", R(ends), R(ends), I(0x80000000));
        count_runs(q, ends, k ? lines : sectors);
    }
}

/* ---- banks ----------------------------------------------------------------------------------------------------- */

static uint32_t groups_of(const struct mg_memory_request *q)
{
    return q->bytes > 8 ? 4 : q->bytes > 4 ? 2 : 1;
}

/* The largest value of v (below 64) over the lanes here, in each of them. */
static mg_id largest(struct mg_memory_request *q, mg_id v)
{
    mg_id most = reg32(q);
    if (q->m->sm >= 80) {
        EMIT("redux.sync.max.u32", R(most), R(v), mask_of(q));
        return most;
    }
    mg_id in = reg32(q), bit = reg32(q), some = reg32(q), p = pred(q), any = pred(q);
    EMIT("mov.u32", R(most), I(0));
    EMIT("mov.u32", R(in), I(1)); /* still among the largest */
    for (int shift = 5; shift >= 0; shift--) {
        EMIT("shr.u32", R(bit), R(v), I(shift));
        EMIT("and.b32", R(bit), R(bit), R(in));
        EMIT("setp.ne.u32", R(p), R(bit), I(0));
        EMIT("vote.sync.ballot.b32", R(some), R(p), mask_of(q));
        EMIT("setp.ne.u32", R(any), R(some), I(0));
        EMIT("selp.u32", R(in), R(bit), R(in), R(any));
        EMIT("selp.u32", R(some), I(1), I(0), R(any));
        EMIT("shl.b32", R(some), R(some), I(shift));
        EMIT("or.b32", R(most), R(most), R(some));
    }
    return most;
}

void mg_memory_passes(struct mg_memory_request *q, mg_id words, mg_id total)
{
    uint32_t groups = groups_of(q), lanes = 32 / groups;
    mg_id group = reg32(q), mine = reg32(q);
    EMIT("mov.u32", R(total), I(0));
    if (q->makes) EMIT("selp.b32", R(words), R(words), I(1), R(q->makes));
    if (groups > 1) EMIT("shr.u32", R(group), R(mg_value_lane(q->at)), I(log2_of(lanes)));
    for (uint32_t g = 0; g < groups; g++) { /* a group without lanes takes no pass beyond the first */
        mg_id in = pred(q), extra = reg32(q);
        if (groups > 1) EMIT("setp.eq.u32", R(in), R(group), I(g));
        if (groups > 1)
            EMIT("selp.u32", R(mine), R(words), I(1), R(in));
        else
            EMIT("mov.u32", R(mine), R(words));
        EMIT("add.u32", R(extra), R(largest(q, mine)), I(-1));
        EMIT("add.u32", R(total), R(total), R(extra));
    }
}

/* The unit that a bank has of each word of memory, in `word`. */
static void find_word(struct mg_memory_request *q, mg_id word)
{
    mg_id wide = reg64(q);
    EMIT("shr.u64", R(wide), R(q->addr), I(log2_of(MG_MAX(q->bytes, 4u))));
    EMIT("cvt.u32.u64", R(word), R(wide));
}

void mg_memory_rivals(struct mg_memory_request *q, mg_id rivals, struct mg_opnd mask)
{
    uint32_t groups = groups_of(q), lanes = 32 / groups;
    mg_id word = reg32(q);
    find_word(q, word);
    EMIT("mov.b32", R(rivals), mask);
    if (groups > 1) { /* each group has banks of its own */
        mg_id begin = reg32(q), members = reg32(q);
        EMIT("and.b32", R(begin), R(mg_value_lane(q->at)), I(32 - lanes));
        EMIT("shl.b32", R(members), I((1u << lanes) - 1), R(begin));
        EMIT("and.b32", R(rivals), R(rivals), R(members));
    }
    for (uint32_t bit = 1; bit < lanes; bit <<= 1) keep_bit(q, word, I(bit), rivals);
}

void mg_memory_conflicts(struct mg_memory_request *q, mg_id total)
{
    uint32_t lanes = 32 / groups_of(q);
    mg_id word = reg32(q), rivals = reg32(q), equal = reg32(q), p = pred(q), some = pred(q),
          done = mg_code_label(q->at);
    mg_memory_rivals(q, rivals, R(q->active));
    EMIT("mov.u32", R(total), I(0));
    EMIT("add.u32", R(equal), R(rivals), I(-1));
    EMIT("and.b32", R(equal), R(equal), R(rivals));
    EMIT("setp.ne.u32", R(p), R(equal), I(0));
    EMIT("vote.sync.any.pred", R(some), R(p), mask_of(q));
    jump(q, some, true, done);
    find_word(q, word);
    EMIT("shr.u32", R(word), R(word), I(log2_of(lanes)));
    EMIT("mov.u32", R(equal), R(rivals));
    keep_equal(q, word, equal);
    EMIT("and.b32", R(rivals), R(rivals), R(firsts_of(q, equal)));
    EMIT("popc.b32", R(rivals), R(rivals));
    mg_memory_passes(q, rivals, total);
    mg_code_place(q->at, done);
}
