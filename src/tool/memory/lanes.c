/* memory: what the addresses of a request's lanes ask for together, lane against lane. See tool/memory/count.c for
 * when.
 *
 *   in order    sectors follow from which lanes there are and where in its sector the first begins
 *   ascending   from neighbour to neighbour
 *   others      lines by match.any, sectors by a ballot for each of the two bits that tell those of a line apart; banks
 *               by five ballots: match.any takes longer, the more values there are
 *
 * All lanes at the spot run the code together; those that do not make the access stand in with the address of one
 * that does, and are left out where that would count. */
#include "tool/memory/code.h"

/* From `peers` (b32, each lane its own) go the lanes whose v has not this bit as mine has. */
static void keep_bit(struct mg_memory_request *q, mg_id v, struct mg_opnd bit, mg_id peers)
{
    mg_id mine = reg32(q), b = reg32(q), p = pred(q);
    EMIT("and.b32", mine, v, bit);
    EMIT("setp.ne.u32", p, mine, 0);
    EMIT("vote.sync.ballot.b32", b, p, mask_of(q));
    EMIT("selp.b32", mine, 0, I(UINT32_MAX), p);
    EMIT("xor.b32", b, b, mine);
    EMIT("and.b32", peers, peers, b);
}

/* The same with all bits. */
static void keep_equal(struct mg_memory_request *q, mg_id v, mg_id peers)
{
    mg_id equal = reg32(q);
    EMIT("match.any.sync.b32", equal, v, mask_of(q));
    EMIT("and.b32", peers, peers, equal);
}

/* In every lane: the lanes that make the access and are the lowest of their peers. */
static mg_id firsts_of(struct mg_memory_request *q, mg_id peers)
{
    mg_id lower = reg32(q), first = pred(q), firsts = reg32(q);
    EMIT("and.b32", lower, peers, mg_value_lt(q->at));
    if (q->makes)
        EMIT("setp.eq.and.u32", first, lower, 0, q->makes);
    else
        EMIT("setp.eq.u32", first, lower, 0);
    EMIT("vote.sync.ballot.b32", firsts, first, mask_of(q));
    return firsts;
}

/* ---- sectors --------------------------------------------------------------------------------------------------- */

static void compare_sectors(struct mg_memory_request *q, mg_id sectors, mg_id lines)
{
    mg_id line = reg64(q), part = reg32(q), peers = reg32(q), lo, hi;
    EMIT("mov.u32", peers, q->active);
    EMIT("shr.u64", line, q->addr, 7);
    split(q, line, &lo, &hi);
    keep_equal(q, lo, peers);
    mg_id any = reg32(q), all = pred(q), near = mg_code_label(q->at);
    EMIT("match.all.sync.b32", pair_of(q, MG_OPND_pair, any, all), hi, mask_of(q));
    jump(q, all, false, near);
    keep_equal(q, hi, peers);
    mg_code_place(q->at, near);
    EMIT("popc.b32", lines, firsts_of(q, peers));
    EMIT("cvt.u32.u64", part, q->addr);
    keep_bit(q, part, I(32), peers);
    keep_bit(q, part, I(64), peers);
    EMIT("popc.b32", sectors, firsts_of(q, peers));
}

void mg_memory_sectors_of_all(struct mg_memory_request *q, mg_id before, mg_id sectors, mg_id lines)
{
    mg_id mine = reg64(q), theirs = reg64(q), p = pred(q), some = pred(q), b = reg32(q), slow = mg_code_label(q->at),
          done = mg_code_label(q->at);
    EMIT("shr.u64", mine, q->addr, 5);
    EMIT("shr.u64", theirs, before, 5);
    EMIT("setp.gt.u64", p, theirs, mine);
    EMIT("vote.sync.any.pred", some, p, mask_of(q));
    jump(q, some, false, slow);
    for (int k = 0; k < 2; k++) {
        if (k) EMIT("shr.u64", mine, mine, 2);
        if (k) EMIT("shr.u64", theirs, theirs, 2);
        EMIT("setp.ne.u64", p, mine, theirs);
        EMIT("vote.sync.ballot.b32", b, p, mask_of(q));
        EMIT("popc.b32", b, b);
        EMIT("add.u32", k ? lines : sectors, b, 1);
    }
    jump(q, 0, false, done);
    mg_code_place(q->at, slow);
    compare_sectors(q, sectors, lines);
    mg_code_place(q->at, done);
}

mg_id mg_memory_before(struct mg_memory_request *q, mg_id *first)
{
    mg_id below = reg32(q), from = reg32(q), before = reg64(q), lo, hi;
    *first = pred(q);
    EMIT("and.b32", below, q->active, mg_value_lt(q->at));
    EMIT("setp.eq.u32", *first, below, 0);
    EMIT("bfind.u32", from, below);
    split(q, q->addr, &lo, &hi);
    EMIT("shfl.sync.idx.b32", lo, lo, from, ALL, mask_of(q));
    if (q->space == MG_SPACE_shared) {
        EMIT("cvt.u64.u32", before, lo);
        return before;
    }
    EMIT("shfl.sync.idx.b32", hi, hi, from, ALL, mask_of(q));
    EMIT("mov.b64", before, pair_of(q, MG_OPND_vec, lo, hi));
    return before;
}

void mg_memory_sectors(struct mg_memory_request *q, mg_id before, mg_id first, mg_id sectors, mg_id lines)
{
    mg_id mine = reg64(q), theirs = reg64(q), counts = q->makes, p = pred(q), some = pred(q), b = reg32(q),
          slow = mg_code_label(q->at), done = mg_code_label(q->at);
    EMIT("shr.u64", mine, q->addr, 5);
    EMIT("shr.u64", theirs, before, 5);
    EMIT("setp.gt.u64", p, theirs, mine);
    if (counts) EMIT("and.pred", p, p, counts);
    mg_code_push_guard(q->at, first, false);
    EMIT("setp.ne.u32", p, q->here, q->here);
    mg_code_pop_guard(q->at);
    EMIT("vote.sync.any.pred", some, p, mask_of(q));
    jump(q, some, false, slow);
    for (int k = 0; k < 2; k++) {
        if (k) EMIT("shr.u64", mine, mine, 2);
        if (k) EMIT("shr.u64", theirs, theirs, 2);
        EMIT("setp.ne.or.u64", p, mine, theirs, first);
        if (counts) EMIT("and.pred", p, p, counts);
        EMIT("vote.sync.ballot.b32", b, p, mask_of(q));
        EMIT("popc.b32", k ? lines : sectors, b);
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
    EMIT("not.b32", inner, ends);
    EMIT("and.b32", x, q->active, inner);
    EMIT("add.u32", x, x, inner);
    EMIT("or.b32", x, x, q->active);
    EMIT("and.b32", x, x, ends);
    EMIT("popc.b32", n, x);
}

void mg_memory_sectors_in_order(struct mg_memory_request *q, mg_id sectors, mg_id lines)
{
    mg_id low = reg32(q), place = reg32(q), ends = reg32(q);
    EMIT("cvt.u32.u64", low, q->addr);
    EMIT("mad.lo.u32", low, mg_value_lane(q->at), I(-(int64_t)q->bytes), low); /* where lane 0 is, or would be */
    EMIT("shr.u32", low, low, I(log2_of(q->bytes)));
    for (int k = 0; k < 2; k++) {
        uint32_t lanes = (k ? 128 : 32) / q->bytes; /* in a sector, a line */
        EMIT("and.b32", place, low, I(lanes - 1));
        if (lanes <= 32) {
            uint32_t every = 0;
            for (uint32_t l = lanes; l <= 32; l += lanes) every |= 1u << (l - 1);
            EMIT("shr.u32", ends, I(every), place);
        } else { /* one of them ends here at most */
            EMIT("sub.u32", place, I(lanes - 1), place);
            EMIT("shl.b32", ends, 1, place);
        }
        EMIT("or.b32", ends, ends, I(0x80000000));
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
        EMIT("redux.sync.max.u32", most, v, mask_of(q));
        return most;
    }
    mg_id in = reg32(q), bit = reg32(q), some = reg32(q), p = pred(q), any = pred(q);
    EMIT("mov.u32", most, 0);
    EMIT("mov.u32", in, 1); /* still among the largest */
    for (int shift = 5; shift >= 0; shift--) {
        EMIT("shr.u32", bit, v, I(shift));
        EMIT("and.b32", bit, bit, in);
        EMIT("setp.ne.u32", p, bit, 0);
        EMIT("vote.sync.ballot.b32", some, p, mask_of(q));
        EMIT("setp.ne.u32", any, some, 0);
        EMIT("selp.u32", in, bit, in, any);
        EMIT("selp.u32", some, 1, 0, any);
        EMIT("shl.b32", some, some, I(shift));
        EMIT("or.b32", most, most, some);
    }
    return most;
}

void mg_memory_passes(struct mg_memory_request *q, mg_id words, mg_id total)
{
    uint32_t groups = groups_of(q), lanes = 32 / groups;
    mg_id group = reg32(q), mine = reg32(q);
    EMIT("mov.u32", total, 0);
    if (q->makes) EMIT("selp.b32", words, words, 1, q->makes);
    if (groups > 1) EMIT("shr.u32", group, mg_value_lane(q->at), I(log2_of(lanes)));
    for (uint32_t g = 0; g < groups; g++) { /* a group without lanes takes no pass beyond the first */
        mg_id in = pred(q), extra = reg32(q);
        if (groups > 1) EMIT("setp.eq.u32", in, group, I(g));
        if (groups > 1)
            EMIT("selp.u32", mine, words, 1, in);
        else
            EMIT("mov.u32", mine, words);
        EMIT("add.u32", extra, largest(q, mine), -1);
        EMIT("add.u32", total, total, extra);
    }
}

/* The unit that a bank has of each word of memory, in `word`. */
static void find_word(struct mg_memory_request *q, mg_id word)
{
    mg_id wide = reg64(q);
    EMIT("shr.u64", wide, q->addr, I(log2_of(MG_MAX(q->bytes, 4u))));
    EMIT("cvt.u32.u64", word, wide);
}

void mg_memory_rivals(struct mg_memory_request *q, mg_id rivals, struct mg_opnd mask)
{
    uint32_t groups = groups_of(q), lanes = 32 / groups;
    mg_id word = reg32(q);
    find_word(q, word);
    EMIT("mov.b32", rivals, mask);
    if (groups > 1) { /* each group has banks of its own */
        mg_id begin = reg32(q), members = reg32(q);
        EMIT("and.b32", begin, mg_value_lane(q->at), I(32 - lanes));
        EMIT("shl.b32", members, I((1u << lanes) - 1), begin);
        EMIT("and.b32", rivals, rivals, members);
    }
    for (uint32_t bit = 1; bit < lanes; bit <<= 1) keep_bit(q, word, I(bit), rivals);
}

void mg_memory_conflicts(struct mg_memory_request *q, mg_id total)
{
    uint32_t lanes = 32 / groups_of(q);
    mg_id word = reg32(q), rivals = reg32(q), equal = reg32(q), p = pred(q), some = pred(q),
          done = mg_code_label(q->at);
    mg_memory_rivals(q, rivals, R(q->active));
    EMIT("mov.u32", total, 0);
    EMIT("add.u32", equal, rivals, -1);
    EMIT("and.b32", equal, equal, rivals);
    EMIT("setp.ne.u32", p, equal, 0);
    EMIT("vote.sync.any.pred", some, p, mask_of(q));
    jump(q, some, true, done);
    find_word(q, word);
    EMIT("shr.u32", word, word, I(log2_of(lanes)));
    EMIT("mov.u32", equal, rivals);
    keep_equal(q, word, equal);
    EMIT("and.b32", rivals, rivals, firsts_of(q, equal));
    EMIT("popc.b32", rivals, rivals);
    mg_memory_passes(q, rivals, total);
    mg_code_place(q->at, done);
}
