/* Flushing the counters of scheme register.
 *
 *     activemask m;  x = or of all counters;  vote.any(x) or skip
 *     i = %laneid;  address = counters + shard(%smid) + 8 * i
 *     a whole warp: one lane for each counter, one instruction for all
 *         packed registers   6 groups of 5 bits, 6 bits apart: v |= redux.add((K >> g) & 0x01041041) >> 6 * i' & 63
 *         four others        all of them below 8 in every lane: v |= redux.add(a + b << 8 + c << 16 + d << 24) >>
 *                            8 * i' & 255
 *         else one by one    if (i is its number) v = redux.add c      as long as all are below 2^27; else lane by
 *                            lane
 *         if (v) red.global.add [address], v
 *     else, a few at a time: activemask m;  v = redux.add by m;  the lowest lane: red.global.add
 *
 * More counters than lanes come in banks. Without redux (before sm_80) whole warps add by shuffles,
 * others lane by lane. Before sm_70 everything is added lane by lane. No lane waits for one that is
 * not in the flush with it, so a warp may leave in pieces, and in front of a barrier.
 *
 * Pieces of a warp that are in the flush at once may meet in it at any branch, and ptxas takes what
 * activemask told for equal in all lanes that run together: a sum by a mask from before a branch is that
 * of whoever has come to it (seen on an H200: each piece added both; even by a mask asked for right in
 * front, since it puts a branch of its own between). So sums are by -1, or by a mask that differs by lane
 * for all that ptxas can know, for which it emits WARPSYNC.EXCLUSIVE.
 */
#include "count/storage/storage.h"

#define EMIT(...)  EMIT_AT(x, __VA_ARGS__)
#define FIELDS     0x01041041
#define FEW_FIELDS 0x03030303
#define BY_LOWEST  3 /* bits that the lowest lane adds one by one */
#define AT_ONCE    8 /* sums by one mask */
#define SMALL      7 /* at most so much in each lane, and a warp's sum fits 8 bits */
#define SMALL_FROM 4

/* May any counter of a class in memory have counted? untold: one of which no register tells. */
static bool any_in_memory(const struct mg_rfunc *f, const uint64_t *set, bool untold)
{
    for (uint32_t kind = 0; mg_storage_at(kind); kind++)
        if (!(untold && mg_storage_at(kind)->told) && mg_storage_any(f, kind, set)) return true;
    return false;
}

/* ---- by warps ---------------------------------------------------------------------------------------- */

struct bank { /* what one round of adding takes: slots [slot, slot + n) */
    mg_id bits;
    uint32_t n_bits;
    const struct mg_rc **words;
    uint32_t n_words;
    uint32_t slot, n;
    mg_id lead;  /* only lanes for which this predicate holds; 0: all */
    mg_id round; /* of the loop over banks that lanes are in: those of other rounds may be here, too; 0: no loop */
};

/* d = sum of s over the lanes of the mask; 0: a whole warp. */
void mg_flush_sum(struct mg_rfunc *f, mg_id d, mg_id s, mg_id mask)
{
    struct mg_emit *x = &f->x;
    if (f->redux) {
        EMIT("redux.sync.add.u32", d, s, mask ? mg_o_reg(mask) : mg_o_imm(-1));
        return;
    }
    mg_id t = mg_rc_t32(f, 5);
    if (d != s) EMIT("mov.u32", d, s);
    for (unsigned apart = 16; apart; apart /= 2) {
        EMIT("shfl.sync.bfly.b32", t, d, mg_o_imm(apart), 31, -1);
        EMIT("add.u32", d, d, t);
    }
}

enum {
    MASK = MG_FLUSH_MASK,
    RANK = MG_FLUSH_RANK,
    LANES = MG_FLUSH_LANES,
    SHIFT = MG_FLUSH_SHIFT,
    VALUE = MG_FLUSH_VALUE
};

/* Fields of 8 bits are summed in pairs, 16 bits apart; the lower one of a pair comes two words earlier. */
static void add_field(struct mg_rfunc *f, const struct bank *k, uint32_t w, mg_id v, mg_id i)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = k->words[w], *lower = w > 1 ? k->words[w - 2] : NULL;
    mg_id pair = mg_rc_t32(f, c->bit % 16 ? 9 : 8), one = mg_rc_t32(f, 7);
    bool summed = lower && lower->kind == MG_RC_FIELD && lower->reg == c->reg && lower->bit + 16 == c->bit;
    if (!summed) {
        if (c->bit % 16) EMIT("shr.u32", pair, c->reg, 8);
        EMIT("and.b32", pair, c->bit % 16 ? pair : c->reg, 0x00ff00ff);
        if (k->lead) EMIT("selp.b32", pair, pair, 0, k->lead);
        mg_flush_sum(f, pair, pair, 0);
    }
    if (c->bit >= 16)
        EMIT("shr.u32", one, pair, 16);
    else
        EMIT("and.b32", one, pair, 0xffff);
    EMIT("setp.eq.u32", mg_rc_tp(f, 1), i, mg_o_imm(k->n_bits + w));
    EMIT("selp.b32", v, one, v, mg_rc_tp(f, 1));
}

/* d = where this multiprocessor's copy of the counters begins, in words, + n (another register than d; 0: none). */
void mg_rc_copy(struct mg_rfunc *f, mg_id d, mg_id n)
{
    struct mg_emit *x = &f->x;
    EMIT("mov.u32", d, mg_o_sreg(MG_SREG_smid, 0));
    EMIT("and.b32", d, d, mg_o_imm(f->layout->n_copies - 1));
    EMIT("mad.lo.u32", d, d, mg_o_imm(f->layout->copy_words), n ? mg_o_reg(n) : mg_o_imm(0));
}

void mg_rc_address(struct mg_rfunc *f, mg_id base)
{
    struct mg_emit *x = &f->x;
    if (f->layout->n_copies > 1) {
        mg_rc_copy(f, mg_rc_t32(f, 5), 0);
        EMIT("mad.wide.u32", base, mg_rc_t32(f, 5), 8, x->ctx);
        EMIT("add.u64", base, base, mg_o_imm(MG_CTX_BYTES + 8 * (int64_t)f->at));
    } else {
        EMIT("add.u64", base, x->ctx, mg_o_imm(MG_CTX_BYTES + 8 * (int64_t)f->at));
    }
}

/* Where the base is not known yet, code that needs it as a whole asks for it. */
static mg_id whole_base(struct mg_rfunc *f, mg_id base)
{
    if (base) return base;
    base = mg_rc_temp(f, &f->t.base, "__mg_base", MG_TYPE_b64);
    mg_rc_address(f, base);
    return base;
}

void mg_rc_own(struct mg_rfunc *f, mg_id d, mg_id mask, mg_id t)
{
    struct mg_emit *x = &f->x;
    EMIT("mov.u32", t, mg_o_sreg(MG_SREG_lanemask_eq, 0));
    EMIT("or.b32", d, mask, t);
}

/* p: this is the lowest of the lanes that are here now; returns a register that holds them all. round: of the loop that
 * we are in (0: none); groups that met here may be in different ones. */
mg_id mg_flush_lowest(struct mg_rfunc *f, mg_id p, mg_id round)
{
    struct mg_emit *x = &f->x;
    mg_id here = mg_rc_t32(f, LANES), t = mg_rc_t32(f, 5);
    EMIT("activemask.b32", here);
    if (round) EMIT("match.any.sync.b64", here, round, here);
    mg_rc_own(f, here, here, t);
    EMIT("mov.u32", t, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", t, t, here);
    EMIT("setp.eq.u32", p, t, 0);
    return here;
}

/* Is it neither a small field nor one that travels? */
static bool is_plain(const struct mg_rc *c)
{
    return !mg_storage_of(c)->packed;
}

/* acc |= r; the first: acc = r. */
static void or_to(struct mg_rfunc *f, mg_id acc, mg_id r, bool is64, bool *any)
{
    struct mg_emit *x = &f->x;
    if (*any)
        EMIT(is64 ? "or.b64" : "or.b32", acc, acc, r);
    else
        EMIT(is64 ? "mov.u64" : "mov.u32", acc, r);
    *any = true;
}

/* acc = or of the bank's plain words of 64 bits, or of the others; but for those that are small anyhow: of what may be
 * large. False: there are none. */
static bool or_words(struct mg_rfunc *f, const struct bank *k, bool is64, bool large, mg_id acc)
{
    bool any = false;
    for (uint32_t w = 0; w < k->n_words; w++) {
        const struct mg_rc *c = k->words[w];
        if (is_plain(c) && mg_storage_of(c)->wide == is64 && !(large && c->small)) or_to(f, acc, c->reg, is64, &any);
    }
    return any;
}

/* Sets p: some lane's word counter does not fit a sum of 32 bits. */
static bool test_size(struct mg_rfunc *f, const struct bank *k, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id wide = mg_rc_t64(f, 1), narrow = mg_rc_t32(f, 5);
    bool any64 = or_words(f, k, true, true, wide), any32 = or_words(f, k, false, true, narrow);
    if (any64) EMIT("setp.gt.u64", p, wide, (1 << 27) - 1);
    if (any32) EMIT("setp.gt.u32", any64 ? mg_rc_tp(f, 2) : p, narrow, (1 << 27) - 1);
    if (any64 && any32) EMIT("or.pred", p, p, mg_rc_tp(f, 2));
    return any64 || any32;
}

void mg_flush_any(struct mg_rfunc *f, mg_id p)
{
    struct mg_emit *x = &f->x;
    EMIT("vote.sync.any.pred", p, p, mg_rc_t32(f, MASK));
}

/* What does not fit sums of 32 bits its lane adds to memory at once, and is 0 in the sums. */
static void add_big(struct mg_rfunc *f, const struct bank *k, mg_id base)
{
    struct mg_emit *x = &f->x;
    struct mg_apart a = mg_rc_begin_apart(f, mg_rc_tp(f, 1));
    base = whole_base(f, base);
    for (uint32_t w = 0; w < k->n_words; w++) {
        const struct mg_rc *c = k->words[w];
        if (!is_plain(c)) continue;
        mg_rc_add_lane(f, c, base, 0);
        EMIT(mg_storage_of(c)->wide ? "mov.u64" : "mov.u32", c->reg, 0);
    }
    mg_rc_end_apart(f, a);
}

/* Fields of the sums of groups [from, to): the lane of rank i among those that are here takes the i-th of each group,
 * if they are fewer than five also what is behind. */
static void add_fields(struct mg_rfunc *f, const struct bank *k, mg_id base, mg_id here, uint32_t from, uint32_t to)
{
    struct mg_emit *x = &f->x;
    mg_id i = mg_rc_t32(f, 6), n = here, v = mg_rc_t32(f, 5), shift = mg_rc_t32(f, SHIFT), p = mg_rc_tp(f, 1),
          at = mg_rc_t64(f, 1), wide = mg_rc_t64(f, 2), again = mg_rc_label(f);
    EMIT("mov.u32", v, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", v, v, here);
    EMIT("popc.b32", i, v);
    EMIT("popc.b32", n, here);
    mg_rc_put_label(f, again);
    EMIT("mul.lo.u32", shift, i, 6);
    EMIT("mad.wide.u32", at, i, 8, base);
    for (uint32_t j = from; j < to; j++) {
        EMIT("shr.u32", v, f->t.sums[j - from], shift);
        EMIT("and.b32", v, v, 63);
        EMIT("setp.ne.u32", p, v, 0);
        EMIT("cvt.u64.u32", wide, v);
        mg_emit_guard(x, p, false);
        EMIT("red.global.add.u64", mg_o_addr_reg(at, 8 * (int64_t)(k->slot + 5 * j)), wide);
        mg_emit_guard(x, 0, false);
    }
    EMIT("add.u32", i, i, n);
    EMIT("setp.lt.u32", p, i, 5);
    mg_rc_branch(f, p, false, again);
}

/* Some lanes of a warp, as many counters at once as there are temporaries for: one mask, all sums by it, no branch
 * between; then they add them, counters in registers the lowest lane. Lanes that are together differently at the next
 * few are all in that sum again. */
static void add_some(struct mg_rfunc *f, const struct bank *k, mg_id base)
{
    struct mg_emit *x = &f->x;
    uint32_t groups = (k->n_bits + 4) / 5, n = groups + k->n_words;
    bool few = k->n_bits <= BY_LOWEST;
    mg_id low = mg_rc_tp(f, 3), p = mg_rc_tp(f, 1), one = mg_rc_t32(f, 5), wide = mg_rc_t64(f, 2);
    base = whole_base(f, base);
    for (uint32_t from = 0; from < n; from += AT_ONCE) {
        uint32_t to = MG_MIN(from + AT_ONCE, n);
        mg_id here = mg_flush_lowest(f, low, k->round);
        for (uint32_t j = from; j < to; j++) {
            mg_id s = mg_rc_temp(f, &f->t.sums[j - from], "__mg_t", MG_TYPE_b32);
            const struct mg_rc *c = j < groups ? NULL : k->words[j - groups];
            if (!c && j) EMIT("shr.u32", s, k->bits, mg_o_imm(j));
            if (!c)
                EMIT("and.b32", s, j ? s : k->bits, FIELDS);
            else
                mg_storage_of(c)->part(f, c, s);
            if (k->lead) EMIT("selp.b32", s, s, 0, k->lead);
            mg_flush_sum(f, s, s, here);
        }
        for (uint32_t j = few ? from : MG_MAX(from, groups); j < to; j++)
            for (uint32_t i = 0; i < (j < groups ? MG_MIN(5u, k->n_bits - 5 * j) : 1); i++) {
                mg_id v = j < groups ? one : f->t.sums[j - from];
                if (j < groups) EMIT("bfe.u32", v, f->t.sums[j - from], mg_o_imm(6 * i), 6);
                EMIT("setp.ne.and.u32", p, v, 0, low);
                EMIT("cvt.u64.u32", wide, v);
                mg_emit_guard(x, p, false);
                EMIT("red.global.add.u64",
                     mg_o_addr_reg(base, 8 * (int64_t)(k->slot + (j < groups ? 5 * j + i : k->n_bits + j - groups))),
                     wide);
                mg_emit_guard(x, 0, false);
            }
        if (!few && from < groups) add_fields(f, k, base, here, from, MG_MIN(to, groups));
    }
}

/* v of lane i goes to its counter. */
static void add_sum(struct mg_rfunc *f, const struct bank *k, mg_id i, mg_id v, mg_id base)
{
    struct mg_emit *x = &f->x;
    mg_id at = mg_rc_t64(f, 1), sum = mg_rc_t64(f, 2), word = mg_rc_t32(f, 5);
    int64_t off = 8 * (int64_t)k->slot;
    bool copies = !base && f->layout->n_copies > 1;
    if (copies) mg_rc_copy(f, word, i);
    EMIT("mad.wide.u32", at, copies ? word : i, 8, base ? base : x->ctx);
    if (!base) off += MG_CTX_BYTES + 8 * (int64_t)f->at;
    EMIT("cvt.u64.u32", sum, v);
    EMIT("setp.ne.u32", mg_rc_tp(f, 1), v, 0);
    mg_emit_guard(x, mg_rc_tp(f, 1), false);
    EMIT("red.global.add.u64", mg_o_addr_reg(at, off), sum);
    mg_emit_guard(x, 0, false);
}

/* d = the sums over a warp of a group of fields of 2 bits, which take 8 each. */
static void sum_few(struct mg_rfunc *f, const struct bank *k, uint32_t group, mg_id d)
{
    struct mg_emit *x = &f->x;
    if (group) EMIT("shr.u32", d, f->packed.few, mg_o_imm(2 * group));
    EMIT("and.b32", d, group ? d : f->packed.few, FEW_FIELDS);
    if (k->lead) EMIT("selp.b32", d, d, 0, k->lead);
    mg_flush_sum(f, d, d, 0);
}

/* Sums of groups of four in `low`, and in `high` (0: there is none), of which the first is the bank's number `at`, go
 * to their lanes: v |= theirs. Both are shifted as one number; for another lane it is shifted by more than it has. */
static void add_groups(struct mg_rfunc *f, uint32_t at, mg_id low, mg_id high, mg_id i, mg_id v)
{
    struct mg_emit *x = &f->x;
    mg_id shift = mg_rc_t32(f, SHIFT), both = mg_rc_t64(f, 2);
    EMIT("mad.lo.u32", shift, i, 8, mg_o_imm(-8 * (int64_t)at));
    if (high) {
        struct mg_opnd pair = mg_rc_pair(f, low, high);
        EMIT("mov.b64", both, pair);
        EMIT("shr.u64", both, both, shift);
        EMIT("cvt.u32.u64", low, both);
    } else {
        EMIT("shr.u32", low, low, shift);
    }
    EMIT("and.b32", low, low, 255);
    EMIT("or.b32", v, v, low);
}

/* The bank's first n words are such fields, 4 to a group; 0 in v so far for those lanes. */
static void add_few(struct mg_rfunc *f, const struct bank *k, uint32_t n, mg_id i, mg_id v)
{
    mg_id low = mg_rc_t32(f, 7), high = mg_rc_t32(f, 6);
    for (uint32_t g = 0; g * MG_FEW_COLUMNS < n; g += 2) {
        bool two = (g + 1) * MG_FEW_COLUMNS < n;
        sum_few(f, k, g, low);
        if (two) sum_few(f, k, g + 1, high);
        add_groups(f, k->n_bits + g * MG_FEW_COLUMNS, low, two ? high : 0, i, v);
    }
}

/* d = the sums over a warp of words [from, to), four at most and each below 8, side by side. */
static void sum_small(struct mg_rfunc *f, const struct bank *k, uint32_t from, uint32_t to, mg_id d)
{
    struct mg_emit *x = &f->x;
    mg_id word = mg_rc_t32(f, 5);
    for (uint32_t w = from; w < to; w++) {
        mg_id low = k->words[w]->reg;
        if (mg_storage_of(k->words[w])->wide) EMIT("cvt.u32.u64", low = word, k->words[w]->reg);
        if (w == from)
            EMIT("mov.b32", d, low);
        else
            EMIT("mad.lo.u32", d, low, (int64_t)1 << 8 * (w - from), d);
    }
    mg_flush_sum(f, d, d, 0);
}

/* Plain words from w on, eight at most; returns how many. */
static uint32_t take_small(struct mg_rfunc *f, const struct bank *k, uint32_t w, mg_id i, mg_id v)
{
    mg_id low = mg_rc_t32(f, 7), high = mg_rc_t32(f, 6);
    uint32_t n = 0;
    while (n < 8 && w + n < k->n_words && is_plain(k->words[w + n])) n++;
    sum_small(f, k, w, w + MG_MIN(n, 4u), low);
    if (n > 4) sum_small(f, k, w + 4, w + n, high);
    add_groups(f, k->n_bits + w, low, n > 4 ? high : 0, i, v);
    return n;
}

/* Each lane of a whole warp takes its counter's sum, and adds it to memory; small: no plain word is above 7 in any
 * lane. */
static void add_lanes(struct mg_rfunc *f, const struct bank *k, mg_id base, bool small)
{
    struct mg_emit *x = &f->x;
    uint32_t groups = (k->n_bits + 4) / 5, n_few = 0;
    mg_id shift = mg_rc_t32(f, SHIFT), v = mg_rc_t32(f, VALUE), i = mg_rc_t32(f, RANK), sum = mg_rc_t32(f, 7);
    if (!base) EMIT("mov.u32", i, mg_o_sreg(MG_SREG_laneid, 0));
    if (k->n == 1 && k->n_bits && !k->lead) { /* the first lane adds it */
        mg_flush_sum(f, v, k->bits, 0);
        EMIT("setp.eq.u32", mg_rc_tp(f, 1), i, 0);
        EMIT("selp.b32", v, v, 0, mg_rc_tp(f, 1));
        add_sum(f, k, i, v, base);
        return;
    }
    if (groups)
        EMIT("mul.lo.u32", shift, i, 6);
    else
        EMIT("mov.u32", v, 0);
    for (uint32_t g = 0; g < groups; g++) {
        mg_id from = k->bits;
        if (groups > 1) {
            if (g) EMIT("shr.u32", sum, k->bits, mg_o_imm(g));
            EMIT("and.b32", sum, g ? sum : k->bits, FIELDS);
            from = sum;
        }
        if (k->lead) {
            EMIT("selp.b32", sum, from, 0, k->lead);
            from = sum;
        }
        mg_flush_sum(f, sum, from, 0);
        if (g) EMIT("sub.u32", shift, shift, 30);
        EMIT("shr.u32", sum, sum, shift);
        EMIT("and.b32", g ? sum : v, sum, 63);
        if (g) EMIT("or.b32", v, v, sum);
    }
    while (n_few < k->n_words && k->words[n_few]->kind == MG_RC_FEW) n_few++;
    if (n_few) add_few(f, k, n_few, i, v);
    for (uint32_t w = n_few; w < k->n_words; w++) {
        mg_id low = k->words[w]->reg;
        if (k->words[w]->kind == MG_RC_FIELD) {
            add_field(f, k, w, v, i);
            continue;
        }
        if (small && is_plain(k->words[w])) {
            w += take_small(f, k, w, i, v) - 1;
            continue;
        }
        const struct mg_storage *s = mg_storage_of(k->words[w]);
        if (s->packed || s->wide) s->part(f, k->words[w], low = sum);
        if (k->lead) {
            EMIT("selp.b32", sum, low, 0, k->lead);
            low = sum;
        }
        mg_flush_sum(f, sum, low, 0);
        EMIT("setp.eq.u32", mg_rc_tp(f, 1), i, mg_o_imm(k->n_bits + w));
        EMIT("selp.b32", v, sum, v, mg_rc_tp(f, 1));
    }
    add_sum(f, k, i, v, base);
}

/* A whole warp, a lane for each counter; what is not one adds apart. base 0: asked for where it is needed. */
static void add_fast(struct mg_rfunc *f, const struct bank *k, mg_id base)
{
    mg_id p = mg_rc_tp(f, 1), done = 0;
    if (f->redux && !mg_rc_n_led(f) && test_size(f, k, p)) add_big(f, k, base);
    if (f->redux) {
        struct mg_emit *x = &f->x;
        EMIT("setp.ne.u32", p, mg_rc_t32(f, MASK), -1);
        struct mg_apart a = mg_rc_begin_apart(f, p);
        add_some(f, k, base);
        mg_rc_end_apart_at(f, a, done = mg_rc_label(f));
    }
    add_lanes(f, k, base, false);
    if (done) mg_rc_put_label(f, done);
}

/* Sets p: this is no whole warp, or some lane's plain word is above 7. False: there are too few of them to be worth the
 * question. */
static bool test_small(struct mg_rfunc *f, const struct bank *k, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id wide = mg_rc_t64(f, 1), narrow = mg_rc_t32(f, 5);
    uint32_t n = 0;
    for (uint32_t w = 0; w < k->n_words; w++) n += is_plain(k->words[w]);
    if (n < SMALL_FROM) return false;
    EMIT("setp.ne.u32", p, mg_rc_t32(f, MASK), -1);
    if (or_words(f, k, true, false, wide)) EMIT("setp.gt.or.u64", p, wide, SMALL, p);
    if (or_words(f, k, false, false, narrow)) EMIT("setp.gt.or.u32", p, narrow, SMALL, p);
    mg_flush_any(f, p);
    return true;
}

/* What p (test_small) leaves. */
static void add_small(struct mg_rfunc *f, const struct bank *k, mg_id base, mg_id p)
{
    struct mg_apart a = mg_rc_begin_apart(f, p);
    mg_id done = mg_rc_label(f);
    add_fast(f, k, base);
    mg_rc_end_apart_at(f, a, done);
    add_lanes(f, k, base, true);
    mg_rc_put_label(f, done);
}

static void add_bank(struct mg_rfunc *f, const struct bank *k, mg_id base, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    mg_id slow = 0, done = 0, p = mg_rc_tp(f, 1);
    if (f->redux && !mg_rc_n_led(f)) {
        if (test_small(f, k, p))
            add_small(f, k, base, p);
        else
            add_fast(f, k, base);
        return;
    }
    if (!f->redux) {
        EMIT("setp.ne.u32", p, mg_rc_t32(f, MASK), -1);
        mg_rc_branch(f, p, false, slow = mg_rc_label(f));
    }
    if (test_size(f, k, p)) {
        mg_flush_any(f, p);
        mg_rc_branch(f, p, false, slow = slow ? slow : mg_rc_label(f));
    }
    add_fast(f, k, base);
    if (!slow) return;
    mg_rc_branch(f, 0, false, done = mg_rc_label(f));
    mg_rc_put_label(f, slow);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct mg_rc *c = &f->counters[i];
        if (!mg_rc_in_memory(c) && mg_rc_in(set, i) && c->slot >= k->slot && c->slot < k->slot + k->n)
            mg_rc_add_lane(f, c, base, k->lead);
    }
    mg_rc_put_label(f, done);
}

static void emit_rank(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    mg_id rank = mg_rc_t32(f, RANK);
    EMIT("mov.u32", rank, mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", rank, rank, mg_rc_t32(f, MASK));
    EMIT("popc.b32", rank, rank);
}

/* acc |= what tells whether packed counters of the set have counted, each register once. */
static void or_packed(struct mg_rfunc *f, const uint64_t *set, mg_id acc, bool *any)
{
    mg_id *asked = mg_xcalloc(f->n + 1, sizeof *asked);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct mg_rc *c = &f->counters[i];
        const struct mg_storage *s = mg_storage_of(c);
        if (!s->packed || !mg_rc_in(set, i)) continue;
        mg_id r = s->told(f, c);
        uint32_t k = 0;
        while (k < n && asked[k] != r) k++;
        if (!r || k < n) continue;
        asked[n++] = r;
        or_to(f, acc, r, false, any);
    }
    free(asked);
}

/* Skips the flush when no counter of no lane in it has anything. Words first, in the order in which their size is asked
 * for. */
static void skip_empty(struct mg_rfunc *f, const struct mg_rc **words, const uint64_t *set, mg_id out)
{
    struct mg_emit *x = &f->x;
    mg_id narrow = mg_rc_t32(f, 5), wide = mg_rc_t64(f, 1), p = mg_rc_tp(f, 1);
    struct bank k = {.words = words, .n_words = f->n_words};
    bool any64 = or_words(f, &k, true, false, wide), any32 = or_words(f, &k, false, false, narrow);
    or_packed(f, set, narrow, &any32);
    if (!any64 && !any32) or_packed(f, NULL, narrow, &any32); /* cohorts alone may have to add something */
    for (uint32_t kind = 0; mg_storage_at(kind); kind++) {
        const struct mg_storage *s = mg_storage_at(kind);
        mg_id r = s->in_memory && s->told ? s->told(f, NULL) : 0;
        if (r) or_to(f, narrow, r, false, &any32);
    }
    if (any64) EMIT("setp.ne.u64", p, wide, 0);
    if (any32) EMIT("setp.ne.u32", any64 ? mg_rc_tp(f, 2) : p, narrow, 0);
    if (any64 && any32) EMIT("or.pred", p, p, mg_rc_tp(f, 2));
    if (!any64 && !any32) return;
    mg_flush_any(f, p);
    mg_rc_branch(f, p, true, out);
}

/* Saved bank after saved bank, as far as some lane has come. */
static void add_saved(struct mg_rfunc *f, mg_id base)
{
    struct mg_emit *x = &f->x;
    mg_id off = mg_rc_temp(f, &f->t.saved[0], "__mg_o", MG_TYPE_b32),
          last = mg_rc_temp(f, &f->t.saved[1], "__mg_o", MG_TYPE_b32),
          bits = mg_rc_temp(f, &f->t.saved[2], "__mg_o", MG_TYPE_b32);
    mg_id own = mg_rc_temp(f, &f->t.saved_base, "__mg_o", MG_TYPE_b64), at = mg_rc_t64(f, 1), p = mg_rc_tp(f, 1),
          again = mg_rc_label(f), next = mg_rc_label(f);
    struct bank k = {.bits = bits, .n_bits = MG_BANK, .n = MG_BANK, .round = own};
    EMIT("cvt.u64.u32", at, f->packed.saved_at);
    EMIT("add.u64", at, at, f->local.reg);
    EMIT("st.local.u32", mg_o_addr_reg(at, f->packed.saved_off), f->packed.banks[0]);
    EMIT("redux.sync.max.u32", last, f->packed.saved_at, mg_rc_t32(f, MASK));
    EMIT("mov.u32", off, 0);
    EMIT("mov.b64", own, base);
    mg_rc_put_label(f, again);
    EMIT("setp.le.u32", p, off, f->packed.saved_at);
    EMIT("cvt.u64.u32", at, off);
    EMIT("add.u64", at, at, f->local.reg);
    EMIT("mov.u32", bits, 0);
    mg_emit_guard(x, p, false);
    EMIT("ld.local.u32", bits, mg_o_addr_reg(at, f->packed.saved_off));
    mg_emit_guard(x, 0, false);
    EMIT("and.b32", bits, bits, INT32_MAX); /* but for the bit that tells of banks before */
    EMIT("setp.ne.u32", p, bits, 0);
    mg_flush_any(f, p);
    mg_rc_branch(f, p, true, next);
    add_fast(f, &k, own);
    mg_rc_put_label(f, next);
    EMIT("add.u64", own, own, 8 * MG_BANK);
    EMIT("add.u32", off, off, 4);
    EMIT("setp.le.u32", p, off, last);
    mg_rc_branch(f, p, false, again);
}

/* All counters but local ones to [base + 8 * slot]. */
static void add_banks(struct mg_rfunc *f, const struct mg_rc **words, mg_id base, mg_id lead, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    uint32_t n_sent = f->calls.settles ? f->calls.n_sources : 0, n_words = f->n_words - n_sent,
             n_banks = f->packed.n_cuts ? 0 : f->packed.n_banks;
    if (f->packed.n_cuts) add_saved(f, base);
    words += n_sent;
    if (!n_sent && f->n_bits <= MG_BANK && f->n_bits + n_words <= 32) {
        struct bank k = {.bits = f->packed.n_banks ? f->packed.banks[0] : 0,
                         .n_bits = f->n_bits,
                         .words = words,
                         .n_words = n_words,
                         .n = f->n_bits + n_words,
                         .lead = lead};
        if (k.n) add_bank(f, &k, base, set);
        return;
    }
    for (uint32_t b = 0; b < n_banks; b++) {
        struct bank k = {.bits = f->packed.banks[b], .slot = b * MG_BANK, .lead = lead};
        k.n = k.n_bits = MG_MIN(f->n_bits - k.slot, MG_BANK);
        mg_id next = mg_rc_label(f);
        EMIT("setp.ne.u32", mg_rc_tp(f, 1), k.bits, 0);
        mg_flush_any(f, mg_rc_tp(f, 1));
        mg_rc_branch(f, mg_rc_tp(f, 1), true, next);
        add_bank(f, &k, base, set);
        mg_rc_put_label(f, next);
    }
    for (uint32_t w = 0; w < n_words; w += 32) {
        struct bank k = {
            .words = words + w, .n_words = MG_MIN(n_words - w, 32u), .slot = f->n_bits + n_sent + w, .lead = lead};
        k.n = k.n_words;
        add_bank(f, &k, base, set);
    }
}

void mg_rc_clear_sources(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    for (uint32_t i = f->n - f->calls.n_sources; i < f->n; i++) {
        const struct mg_rc *c = &f->counters[i];
        if (c->kind != MG_RC_FIELD || !c->bit) EMIT(mg_storage_of(c)->wide ? "mov.u64" : "mov.u32", c->reg, 0);
    }
}

void mg_rc_settle(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc **words = mg_xcalloc(f->calls.n_sources + 1, sizeof *words);
    mg_id base = mg_rc_temp(f, &f->t.base, "__mg_base", MG_TYPE_b64), mask = mg_rc_t32(f, MASK), out = mg_rc_label(f);
    EMIT("activemask.b32", mask);
    mg_id mine = mg_count_mine(x, f->o);
    if (mine) mg_rc_branch(f, mine, true, out);
    mg_rc_address(f, base);
    emit_rank(f);
    for (uint32_t i = f->n - f->calls.n_sources; i < f->n; i++)
        words[f->counters[i].slot - f->n_bits] = &f->counters[i];
    for (uint32_t w = 0; w < f->calls.n_sources; w += 32) {
        struct bank k = {.words = words + w, .n_words = MG_MIN(f->calls.n_sources - w, 32u), .slot = f->n_bits + w};
        k.n = k.n_words;
        add_bank(f, &k, base, NULL);
    }
    mg_rc_put_label(f, out);
    free(words);
}

/* The entry's cohort. Of whole warps nothing is added: their entries are those of their threads by 32 (counters.c). Of
 * the CTA's last warp, where it is not whole, the first lane adds what it has counted. */
static void add_entry_cohort(struct mg_rfunc *f, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    if (!f->warps.n_cohorts || !mg_rc_is_entry(&f->warps.cohorts[0])) return;
    mg_id rest = mg_rc_t32(f, 5), p = mg_rc_tp(f, 1);
    EMIT("mov.u32", rest, mg_o_sreg(MG_SREG_ntid, 1));
    EMIT("and.b32", rest, rest, 31);
    EMIT("setp.ne.u32", p, rest, 0);
    struct mg_apart a = mg_rc_begin_apart(f, p);
    mg_rc_add_partial(f, set, &f->warps.cohorts[0]);
    mg_rc_end_apart(f, a);
}

static void add_cohort_banks(struct mg_rfunc *f, const struct mg_rc **words, mg_id base, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    for (uint32_t k = 0; k < f->warps.n_cohorts; k++) {
        if (mg_rc_is_entry(&f->warps.cohorts[k])) continue;
        mg_id lead = mg_rc_lead(f, &f->warps.cohorts[k]), next = mg_rc_label(f), own = mg_rc_t64(f, 3);
        EMIT("mov.pred", mg_rc_tp(f, 1), lead);
        mg_flush_any(f, mg_rc_tp(f, 1));
        mg_rc_branch(f, mg_rc_tp(f, 1), true, next);
        EMIT("add.u64", own, base, mg_o_imm(8 * ((int64_t)f->warps.cohorts[k].at - (int64_t)f->at)));
        add_banks(f, words, own, lead, set);
        for (uint32_t i = 0; i < f->n_measured; i++)
            if (mg_rc_in_memory(&f->counters[i]) && mg_rc_in(set, i)) mg_rc_add_lane(f, &f->counters[i], own, lead);
        mg_rc_put_label(f, next);
    }
}

void mg_rc_drain_range(struct mg_rfunc *f, struct mg_rrange r)
{
    struct mg_emit *x = &f->x;
    mg_id mask = mg_rc_t32(f, MASK), rank = mg_rc_t32(f, RANK), p = mg_rc_tp(f, 1), some = mg_rc_label(f),
          out = mg_rc_label(f);
    EMIT("activemask.b32", mask);
    EMIT("setp.ne.u32", p, mask, -1);
    mg_rc_branch(f, p, false, some);
    mg_shared_drain_all(f, r, mask, out);
    mg_rc_branch(f, 0, false, out);
    mg_rc_put_label(f, some);
    mg_id base = whole_base(f, 0);
    emit_rank(f);
    mg_shared_drain(f, r, base, mask, rank, 0);
    mg_rc_put_label(f, out);
}

void mg_rc_drain_apart(struct mg_rfunc *f, struct mg_rrange r, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id base = mg_rc_temp(f, &f->t.base, "__mg_base", MG_TYPE_b64), sum = mg_rc_t32(f, 5), many = mg_rc_tp(f, 1);
    struct mg_apart a = mg_rc_begin_apart(f, p);
    EMIT("activemask.b32", mg_rc_t32(f, MASK));
    mg_id mine = mg_count_mine(x, f->o);
    mg_rc_address(f, base);
    emit_rank(f);
    if (r.n) mg_shared_drain(f, r, base, mg_rc_t32(f, MASK), mg_rc_t32(f, RANK), mine);
    bool any = false;
    for (uint32_t i = 0; i < f->n_measured; i++) {
        if (!f->counters[i].guarded) continue;
        or_to(f, sum, f->counters[i].reg, false, &any);
    }
    if (any) { /* those in registers are summed over a warp in 32 bits at the end, so they stay below 2^27 */
        mg_id skip = mg_rc_label(f);
        EMIT("and.b32", sum, sum, mg_o_imm(0xfc000000));
        EMIT("setp.eq.u32", many, sum, 0);
        mg_rc_branch(f, many, false, skip);
        for (uint32_t i = 0; i < f->n_measured; i++) {
            if (!f->counters[i].guarded) continue;
            mg_rc_add_lane(f, &f->counters[i], base, mine);
            EMIT("mov.u32", f->counters[i].reg, 0);
        }
        mg_rc_put_label(f, skip);
    }
    mg_rc_end_apart(f, a);
}

/* Of a function that counts in shared memory alone. */
static void flush_words(struct mg_rfunc *f, mg_id mask, mg_id rank, mg_id out)
{
    struct mg_emit *x = &f->x;
    EMIT("setp.ne.u32", mg_rc_tp(f, 1), mask, -1);
    struct mg_apart a = mg_rc_begin_apart(f, mg_rc_tp(f, 1));
    emit_rank(f);
    if (f->shared.arrives) mg_shared_leave(f, false, mask, rank, out);
    mg_shared_drain(f, mg_shared_whole_range(f), whole_base(f, 0), mask, rank, 0);
    mg_rc_end_apart_at(f, a, out);
    if (f->shared.arrives) {
        EMIT("mov.u32", rank, mg_o_sreg(MG_SREG_laneid, 0));
        mg_shared_leave(f, true, mask, rank, out);
    }
    mg_shared_drain_all(f, mg_shared_whole_range(f), mask, out);
    mg_rc_put_label(f, out);
}

static void flush_warps(struct mg_rfunc *f, const uint64_t *set, bool look)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc **words = mg_xcalloc(f->n_words + 1, sizeof *words);
    mg_id base = 0, mask = mg_rc_t32(f, MASK), rank = mg_rc_t32(f, RANK), out = mg_rc_label(f);
    EMIT("activemask.b32", mask);
    if (f->shared.all) {
        flush_words(f, mask, rank, out);
        free(words);
        return;
    }
    /* slots in order: what the set leaves out is 0 and costs nothing but its place */
    for (uint32_t i = 0; i < f->n; i++)
        if (f->counters[i].slot >= f->n_bits && f->counters[i].slot < f->n_bits + f->n_words)
            words[f->counters[i].slot - f->n_bits] = &f->counters[i];
    if (look && !any_in_memory(f, set, true))
        skip_empty(f, words, set, out); /* of those no register tells whether they have counted */
    mg_id mine = mg_count_mine(x, f->o);
    if (mine) mg_rc_branch(f, mine, true, out);
    add_entry_cohort(f, set);
    if (!f->redux || mg_rc_n_led(f) || f->packed.n_cuts || any_in_memory(f, set, false)) {
        base = whole_base(f, 0);
        emit_rank(f);
    }
    add_banks(f, words, base, 0, set);
    add_cohort_banks(f, words, base, set);
    const struct mg_flush w = {.base = base, .mask = mask, .rank = rank, .out = out, .set = set};
    for (unsigned leaves = 0; leaves < 2; leaves++)
        for (uint32_t kind = 0; mg_storage_at(kind); kind++)
            if (mg_storage_at(kind)->leaves == leaves && mg_storage_any(f, kind, set))
                mg_storage_at(kind)->flush(f, &w);
    mg_rc_put_label(f, out);
    free(words);
}

/* Other CTAs than the first leave: that one counts for all. */
static mg_id leave_to_first(struct mg_rfunc *f, mg_id out)
{
    struct mg_emit *x = &f->x;
    mg_id p = mg_rc_tp(f, 1), some = mg_rc_t32(f, 5), one = mg_rc_t32(f, 6);
    EMIT("mov.u32", some, mg_o_sreg(MG_SREG_ctaid, 1));
    for (uint8_t axis = 2; axis <= 3; axis++) {
        EMIT("mov.u32", one, mg_o_sreg(MG_SREG_ctaid, axis));
        EMIT("or.b32", some, some, one);
    }
    EMIT("setp.ne.u32", p, some, 0);
    out = out ? out : mg_rc_label(f);
    mg_rc_branch(f, p, false, out);
    return out;
}

void mg_rc_flush(struct mg_rfunc *f, const uint64_t *set, mg_id guard, bool guard_not, bool look)
{
    struct mg_emit *x = &f->x;
    bool any = f->warps.n_cohorts;
    for (uint32_t i = 0; i < f->n; i++) any |= mg_rc_in(set, i);
    if (!any) return;
    mg_id out = 0;
    if (guard) mg_rc_branch(f, guard, !guard_not, out = mg_rc_label(f));
    if (f->alike) out = leave_to_first(f, out);
    mg_rc_unreal(f, NULL); /* words that the set leaves out are summed, too */
    if (f->sync) {
        flush_warps(f, set, look);
    } else {
        mg_id mine = mg_count_mine(x, f->o);
        if (mine) mg_rc_branch(f, mine, true, out = out ? out : mg_rc_label(f));
        mg_rc_add_all(f, set, 0);
    }
    if (out) mg_rc_put_label(f, out);
}
