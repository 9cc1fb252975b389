/* Frames: see frame.h. The lowest lane of a group writes, under guards; all lanes of the group go the same way, since
 * what branches depends on a vote. Where records are staged, each warp has some in shared memory: how many, how many of
 * its lanes have not left yet, then the records. */
#include "record/frame.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "patch/priv.h"

#define P(...)            MG_PURE(at, __VA_ARGS__)
#define IF(p, ...)        MG_GUARDED(at, (p), __VA_ARGS__)
#define HEAD(part, field) mg_o_addr_reg((part), (int64_t)offsetof(struct mg_frame_head, field))
#define PLACE(to, field)                                                                                               \
    mg_o_addr_reg((to), (int64_t)(sizeof(struct mg_frame_head) + offsetof(struct mg_frame_place, field)))

enum {
    STAGE_COUNT = 0,
    STAGE_LIVE = 4,
    STAGE_HEAD = 8,
    STAGE_CLOCK = STAGE_HEAD,
    STAGE_RECORD = STAGE_HEAD + 8,
    STAGED_BYTES = 16
};
#define STAGE(at) mg_o_addr_reg(f->stage, (at))

/* ---- shape ------------------------------------------------------------------------------------------------- */

enum { HEAD_WORDS = MG_FRAME_HEAD_WORDS, RECORD_WORDS = MG_FRAME_RECORD_WORDS };

/* The largest power of two that leaves each part `least`. */
static uint32_t parts_of(uint64_t all, uint32_t least)
{
    uint32_t n = 1;
    while (2 * n <= MG_FRAME_MOST_PARTS && all / (2 * n) >= least) n *= 2;
    return n;
}

static uint32_t place_words(uint32_t payload)
{
    return RECORD_WORDS + (payload + 1) / 2 * 2;
}

uint32_t mg_frame_words_of(uint64_t records, uint32_t payload)
{
    uint32_t n = parts_of(records, MG_FRAME_LEAST_RECORDS);
    return n * (HEAD_WORDS + (uint32_t)((records + n - 1) / n) * place_words(payload));
}

struct mg_frame_shape mg_frame_shape_of(uint32_t n_words, uint32_t payload)
{
    uint32_t place = place_words(payload), n = parts_of(n_words, HEAD_WORDS + MG_FRAME_LEAST_RECORDS * place),
             stride = n_words / n;
    return (struct mg_frame_shape){
        .parts = n, .stride = stride, .place = place, .room = stride < HEAD_WORDS ? 0 : (stride - HEAD_WORDS) / place};
}

void mg_frame_reserve(struct mg_patch *p, uint32_t records, uint32_t payload)
{
    p->region->n_frame = mg_frame_words_of(records, payload);
    p->region->frame_payload = payload;
    mg_patch_list(p, p->region->n_frame);
}

static mg_id t64(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_b64);
}
static mg_id t32(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_b32);
}
static mg_id tp(struct mg_code_at *at)
{
    return mg_code_temp(at, MG_TYPE_pred);
}

void mg_frame_begin(struct mg_frame_code *f, struct mg_patch *p, uint32_t records, uint32_t staged)
{
    const uint32_t payload = p->region->frame_payload;
    *f = (struct mg_frame_code){.p = p,
                                .shape = mg_frame_shape_of(mg_frame_words_of(records, payload), payload),
                                .staged = staged,
                                .payload = payload};
    if (staged && !payload && mg_patch_sites(p)->n_funcs == 1)
        f->stage = mg_patch_warp_bytes(p, (STAGE_HEAD + staged * STAGED_BYTES + 15) / 16 * 16);
    if (!f->stage) return;
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id n = mg_value_n_active(at);
    mg_code_push_guard(at, mg_value_leader(at), false);
    MG_CODE(at, "st.shared.u32", STAGE(STAGE_COUNT), 0);
    MG_CODE(at, "st.shared.u32", STAGE(STAGE_LIVE), n);
    mg_code_pop_guard(at);
}

/* ---- places: for the lane where `who` is true, one of `mask` at most; all of these go through it ---------------- */

struct place {
    mg_id list, ix /* b32: of the multiprocessor's part */, own /* its address */, less, next,
        status;          /* what its header says */
    mg_id on, fresh, in; /* preds: not switched off; and nobody has found the part full; there is room: */
    mg_id part, slot;
};

static mg_id any_of(struct mg_code_at *at, mg_id mask, mg_id p)
{
    mg_id r = tp(at);
    if (at->p->all->ballot)
        P("vote.any.pred", r, p);
    else
        P("vote.sync.any.pred", r, p, mask);
    return r;
}
static mg_id ballot_of(struct mg_code_at *at, mg_id mask, mg_id p)
{
    mg_id r = t32(at);
    if (at->p->all->ballot)
        P("vote.ballot.b32", r, p);
    else
        P("vote.sync.ballot.b32", r, p, mask);
    return r;
}
static void unless(struct mg_code_at *at, mg_id p, mg_id label)
{
    mg_code_emit(at, p, true, MG_INST("bra", mg_o_label(label)));
}

/* The part so many behind the multiprocessor's. */
static void part_behind(const struct mg_frame_code *f, struct mg_code_at *at, const struct place *x, mg_id behind,
                        mg_id part)
{
    mg_id k = t32(at);
    P("add.u32", k, x->ix, behind);
    P("and.b32", k, k, mg_o_imm(f->shape.parts - 1));
    P("mad.wide.u32", part, k, mg_o_imm(8 * (int64_t)f->shape.stride), x->list);
}

/* The part of the lane's multiprocessor; `on`: who is there, and the host has not switched it off. */
static struct place find_part(const struct mg_frame_code *f, struct mg_code_at *at, mg_id who)
{
    struct place x = {.list = mg_value_list(at),
                      .ix = t32(at),
                      .own = mg_value_list(at),
                      .less = t32(at),
                      .next = t32(at),
                      .status = t32(at),
                      .on = tp(at),
                      .fresh = tp(at),
                      .in = tp(at),
                      .part = t64(at),
                      .slot = t64(at)};
    mg_id off = t32(at), zero = t32(at);
    if (f->shape.parts > 1) {
        x.own = t64(at);
        P("mov.u32", zero, 0);
        P("mov.u32", x.ix, mg_value_sm(at));
        part_behind(f, at, &x, zero, x.own);
    }
    P("mov.u32", off, 1);
    P("mov.u64", x.slot, 0);
    P("mov.u64", x.part, x.own);
    IF(who, "ld.volatile.global.v4.u32", mg_code_vec(at, (const mg_id[]){off, x.less, x.next, x.status}, 4),
       HEAD(x.own, off));
    P("setp.eq.and.u32", x.on, off, 0, who);
    P("setp.eq.and.u32", x.fresh, x.next, 0, x.on);
    return x;
}

/* Is the place in the part? */
static void ask_room(const struct mg_frame_code *f, struct mg_code_at *at, mg_id slot, mg_id less, mg_id who, mg_id in)
{
    mg_id end = t64(at);
    P("cvt.u64.u32", end, less);
    P("add.u64", end, end, slot);
    P("setp.lt.and.u64", in, end, (int64_t)f->shape.room, who);
}

/* Whose part is full looks for room in others, each lane of the group into one, and leaves behind how far it had to go.
 * Two groups of a warp may go through this together, and a vote is then of both: what it says is taken for a hint, and
 * a group goes on until its own record has a place or there is none. */
static void look_elsewhere(const struct mg_frame_code *f, struct mg_code_at *at, const struct place *x, mg_id mask,
                           mg_id full)
{
    const uint32_t parts = f->shape.parts;
    mg_id off = t32(at), less = t32(at), was = t32(at), next = t32(at), status = t32(at), rank = t32(at), n = t32(at),
          k = t32(at), behind = t32(at), bits = t32(at), other = t64(at), slot = t64(at);
    mg_id seeks = tp(at), some = tp(at), got = tp(at), need = tp(at), at_next = t32(at), again = mg_code_label(at),
          out = mg_code_label(at);
    P("ld.volatile.global.v4.u32", mg_code_vec(at, (const mg_id[]){off, less, was, status}, 4), HEAD(x->own, off));
    P("max.u32", next, was, 1);
    P("and.b32", rank, mg_value_lt(at), mask);
    P("popc.b32", rank, rank);
    P("popc.b32", n, mask);
    P("mov.u32", at_next, mg_o_imm(parts));
    P("mov.pred", need, full);
    mg_code_place(at, again);
    P("add.u32", behind, next, rank);
    P("setp.lt.u32", seeks, behind, mg_o_imm(parts));
    unless(at, any_of(at, mask, seeks), out);
    part_behind(f, at, x, behind, other);
    P("mov.u64", slot, 0);
    IF(seeks, "ld.volatile.global.u64", slot, HEAD(other, fill));
    ask_room(f, at, slot, less, seeks, some);
    mg_id found = ballot_of(at, mask, some);
    P("and.b32", bits, found, mask);
    P("setp.eq.u32", some, bits, 0);
    IF(some, "add.u32", next, next, n);
    IF(some, "bra", mg_o_label(again));
    P("sub.u32", k, bits, 1); /* the lanes below the first that found room */
    P("not.b32", bits, bits);
    P("and.b32", bits, bits, k);
    P("and.b32", bits, bits, mask);
    P("popc.b32", bits, bits);
    P("add.u32", next, next, bits);
    part_behind(f, at, x, next, other);
    P("mov.u64", slot, 0);
    IF(need, "atom.global.add.u64", slot, HEAD(other, fill), 1);
    ask_room(f, at, slot, less, need, got);
    IF(got, "mov.u32", at_next, next);
    IF(got, "mov.u64", x->part, other);
    IF(got, "mov.u64", x->slot, slot);
    P("or.pred", x->in, x->in, got);
    P("not.pred", got, got);
    P("and.pred", need, need, got);
    unless(at, any_of(at, mask, need), out);
    P("add.u32", next, next, 1);
    P("bra", mg_o_label(again));
    mg_code_place(at, out);
    P("setp.ne.and.u32", got, at_next, was, full);
    IF(got, "st.volatile.global.u32", HEAD(x->own, next), at_next);
}

/* The place x->slot of the own part, or another where that is full; who finds none counts itself as lost. */
static void find_room(const struct mg_frame_code *f, struct mg_code_at *at, const struct place *x, mg_id mask)
{
    mg_id full = tp(at), p = tp(at), skip = mg_code_label(at);
    ask_room(f, at, x->slot, x->less, x->fresh, x->in);
    P("not.pred", full, x->in);
    P("and.pred", full, full, x->on);
    unless(at, any_of(at, mask, full), skip);
    if (f->shape.parts > 1) {
        look_elsewhere(f, at, x, mask, full);
        P("not.pred", p, x->in);
        P("and.pred", full, full, p);
    } else {
        mg_id one = t32(at);
        P("mov.u32", one, 1);
        P("and.pred", p, full, x->fresh);
        IF(p, "st.volatile.global.u32", HEAD(x->own, next), one);
    }
    IF(full, "red.global.add.u64", HEAD(x->own, lost), 1);
    P("setp.ne.and.u32", p, x->status, MG_FRAME_FULL, full);
    IF(p, "red.global.max.u32", HEAD(x->own, status), MG_FRAME_FULL);
    mg_code_place(at, skip);
    P("setp.eq.and.u64", p, x->slot, 0, x->in);
    IF(p, "red.global.max.u32", HEAD(x->part, status), MG_FRAME_WRITTEN);
}

/* Where the record goes, less the header. */
static mg_id record_at(const struct mg_frame_code *f, struct mg_code_at *at, const struct place *x)
{
    mg_id to = t64(at);
    if (f->shape.place == RECORD_WORDS)
        P("shl.b64", to, x->slot, 5);
    else
        P("mul.lo.u64", to, x->slot, mg_o_imm(8 * (int64_t)f->shape.place));
    P("add.u64", to, to, x->part);
    return to;
}

/* ---- records of one lane ---------------------------------------------------------------------------------------- */

/* The first two words of a place. */
static struct mg_opnd segment_of(struct mg_code_at *at, uint32_t values)
{
    mg_id head = t64(at), cta = t64(at);
    P("mov.b64", head, mg_code_pair(at, mg_value_sm(at), mg_value_warp(at)));
    P("or.b64", head, head, (int64_t)mg_frame_segment_head(values));
    P("or.b64", cta, mg_value_cta(at), (int64_t)MG_FRAME_UNNUMBERED);
    return mg_code_pair(at, head, cta);
}

static mg_id record_of(struct mg_code_at *at, mg_id mask, uint32_t site, uint32_t values)
{
    mg_id record = t64(at), head = t32(at);
    P("mov.u32", head, (int64_t)(mg_frame_record_head(site, values) >> 32));
    P("mov.b64", record, mg_code_pair(at, mask, head));
    return record;
}

static mg_id clock_of(const struct mg_frame_code *f, struct mg_code_at *at)
{
    mg_id clock = t64(at);
    P("max.u64", clock, f->global ? mg_value_globaltimer(at) : mg_value_clock(at), 1);
    return clock;
}

static void write_now(const struct mg_frame_code *f, struct mg_code_at *at, mg_id who, mg_id mask, mg_id record,
                      mg_id early, const mg_id *values, uint32_t n)
{
    struct place x = find_part(f, at, who);
    IF(x.fresh, "atom.global.add.u64", x.slot, HEAD(x.own, fill), 1);
    find_room(f, at, &x, mask);
    mg_id to = record_at(f, at, &x);
    for (uint32_t i = 0; i < n; i++)
        IF(x.in, "st.global.u64",
           mg_o_addr_reg(to, (int64_t)(sizeof(struct mg_frame_head) + sizeof(struct mg_frame_place) + 8 * i)),
           values[i]);
    IF(x.in, "st.global.v2.u64", PLACE(to, head), segment_of(at, n));
    IF(x.in, "st.global.v2.u64", PLACE(to, record), mg_code_pair(at, record, early ? early : clock_of(f, at)));
}

/* ---- staged ------------------------------------------------------------------------------------------------ */

/* What finds no room in shared memory is written at once. */
static void stage(const struct mg_frame_code *f, struct mg_code_at *at, mg_id lead, mg_id mask, mg_id record,
                  mg_id early)
{
    mg_id ix = t32(at), to = t32(at), in = tp(at), over = tp(at), skip = mg_code_label(at);
    P("mov.u32", ix, 0);
    IF(lead, "atom.shared.add.u32", ix, STAGE(STAGE_COUNT), 1);
    P("setp.lt.and.u32", in, ix, mg_o_imm(f->staged), lead);
    P("setp.ge.and.u32", over, ix, mg_o_imm(f->staged), lead);
    P("mad.lo.u32", to, ix, STAGED_BYTES, f->stage);
    IF(in, "st.shared.u64", mg_o_addr_reg(to, STAGE_RECORD), record);
    IF(in, "st.shared.u64", mg_o_addr_reg(to, STAGE_CLOCK), early ? early : clock_of(f, at));
    unless(at, any_of(at, mask, over), skip);
    write_now(f, at, over, mask, record, early, NULL, 0);
    mg_code_place(at, skip);
}

/* Lanes leave: the last of the warp takes what is staged into the frame. */
static void leave(struct mg_code_at *at, void *user)
{
    const struct mg_frame_code *f = user;
    mg_id n = mg_value_n_active(at), less = t32(at), old = t32(at), count = mg_code_reg(at, MG_TYPE_b32),
          from = mg_code_reg(at, MG_TYPE_b32);
    mg_id last = tp(at), none = tp(at), more = tp(at), mask = t32(at), again = mg_code_label(at),
          out = mg_code_label(at), word[2] = {t64(at), t64(at)};
    mg_code_push_guard(at, mg_value_leader(at), false);
    mg_id lead = mg_at_guard(at)->pred;
    mg_code_pop_guard(at);
    P("neg.s32", less, n);
    P("mov.u32", old, 0);
    P("mov.u32", count, 0);
    IF(lead, "atom.shared.add.u32", old, STAGE(STAGE_LIVE), less);
    P("setp.eq.and.u32", last, old, n, lead);
    IF(last, "ld.volatile.shared.u32", count, STAGE(STAGE_COUNT));
    P("min.u32", count, count, mg_o_imm(f->staged));
    P("setp.eq.u32", none, count, 0);
    IF(none, "bra", mg_o_label(out));
    P("mov.u32", mask, 1); /* one lane from here on */
    P("shl.b32", mask, mask, mg_value_lane(at));
    struct place x = find_part(f, at, last);
    P("cvt.u64.u32", word[0], count);
    IF(x.fresh, "atom.global.add.u64", x.slot, HEAD(x.own, fill), word[0]);
    P("mov.u32", from, f->stage);
    mg_id slot = mg_code_reg(at, MG_TYPE_b64);
    P("mov.u64", slot, x.slot);
    mg_code_place(at, again);
    P("mov.u64", x.part, x.own);
    P("mov.u64", x.slot, slot);
    find_room(f, at, &x, mask);
    mg_id to = record_at(f, at, &x);
    P("ld.volatile.shared.u64", word[0], mg_o_addr_reg(from, STAGE_RECORD));
    P("ld.volatile.shared.u64", word[1], mg_o_addr_reg(from, STAGE_CLOCK));
    IF(x.in, "st.global.v2.u64", PLACE(to, head), segment_of(at, 0));
    IF(x.in, "st.global.v2.u64", PLACE(to, record), mg_code_pair(at, word[0], word[1]));
    P("add.u64", slot, slot, 1);
    P("add.u32", from, from, STAGED_BYTES);
    P("sub.u32", count, count, 1);
    P("setp.ne.u32", more, count, 0);
    IF(more, "bra", mg_o_label(again));
    mg_code_place(at, out);
}

/* ---- records ------------------------------------------------------------------------------------------------ */

static void write_record(struct mg_frame_code *f, struct mg_code_at *at, uint32_t site, bool late, const mg_id *values,
                         uint32_t n)
{
    const struct mg_code_guard g = *mg_at_guard(at);
    mg_id mask = mg_value_active(at), lead = mg_value_leader(at), early = late ? 0 : clock_of(f, at),
          out = mg_code_label(at);
    if (g.pred) mg_code_emit(at, g.pred, !g.is_not, MG_INST("bra", mg_o_label(out)));
    mg_id record = record_of(at, mask, site, n);
    if (f->stage)
        stage(f, at, lead, mask, record, early);
    else
        write_now(f, at, lead, mask, record, early, values, n);
    mg_code_place(at, out);
}

void mg_frame_write(struct mg_frame_code *f, struct mg_code_at *at, uint32_t site, bool late)
{
    write_record(f, at, site, late, NULL, 0);
}

void mg_frame_write_values(struct mg_frame_code *f, struct mg_code_at *at, uint32_t site, const mg_id *values,
                           uint32_t n)
{
    if (n > f->payload || site > MG_CHANNEL_MOST_SITES)
        mg_patch_refuse(f->p, MG_ERR_LIMIT, "a record of %u values in a frame for %u, of place %u", (unsigned)n,
                        (unsigned)f->payload, (unsigned)site);
    else
        write_record(f, at, site, false, values, n);
}

void mg_frame_end(struct mg_frame_code *f)
{
    if (f->stage) mg_at_exits(f->p, 0, leave, f);
}

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static const struct mg_frame_head *head_of(const uint64_t *list, const struct mg_frame_shape *s, uint32_t part)
{
    return (const void *)(list + (size_t)part * s->stride);
}
static uint64_t filled(const struct mg_frame_head *h, const struct mg_frame_shape *s)
{
    return MG_MIN(__atomic_load_n(&h->fill, __ATOMIC_RELAXED), s->room);
}

struct mg_frame_head mg_frame_sums_of(const uint64_t *list, uint32_t n, uint32_t payload)
{
    const struct mg_frame_shape s = mg_frame_shape_of(n, payload);
    struct mg_frame_head all = {.off = head_of(list, &s, 0)->off, .less = head_of(list, &s, 0)->less};
    for (uint32_t k = 0; k < s.parts; k++) {
        const struct mg_frame_head *h = head_of(list, &s, k);
        all.status = MG_MAX(all.status, h->status);
        all.fill += filled(h, &s);
        all.lost += h->lost;
    }
    return all;
}

/* Not while it is being written, nor where the program wrote. */
static bool is_whole(const struct mg_frame_place *p)
{
    return p->head && p->cta >> 63 && p->record && p->clock;
}

/* Any site may be: a frame's records are of no access. */
static const uint8_t *no_widths(void *user, uint32_t launch, uint32_t *n)
{
    static const uint8_t none[MG_CHANNEL_MOST_SITES + 1];
    (void)user, (void)launch;
    *n = MG_COUNT_OF(none);
    return none;
}

struct numbering {
    const struct mg_frame_shape *s;
    uint32_t part;
    uint64_t i;
    void (*fn)(void *user, const struct mg_record *r);
    void *user;
};

/* Who finds a part full goes on to the next ones. */
static void number_record(void *user, const struct mg_record *r)
{
    const struct numbering *x = user;
    struct mg_record one = *r;
    one.number = (uint32_t)(((x->part - r->launch) & (x->s->parts - 1)) * x->s->room + x->i);
    x->fn(x->user, &one);
}

uint64_t mg_frame_read_of(const uint64_t *list, uint32_t n, uint32_t payload, const uint64_t *before,
                          void (*fn)(void *user, const struct mg_record *r), void *user)
{
    const struct mg_frame_shape s = mg_frame_shape_of(n, payload);
    uint64_t whole = 0;
    for (uint32_t k = 0; s.room && k < s.parts; k++) {
        const struct mg_frame_head *h = head_of(list, &s, k);
        uint64_t end = filled(h, &s);
        for (uint64_t i = before ? filled(head_of(before, &s, k), &s) : 0; i < end; i++) {
            uint64_t one[RECORD_WORDS + MG_CHANNEL_MOST_WORDS]; /* as it is now: the kernel may run */
            memcpy(one, (const uint64_t *)(h + 1) + i * s.place, 8 * s.place);
            uint32_t words = (uint32_t)(one[0] >> MG_SEGMENT_USED_SHIFT & 0x3ff);
            if (is_whole((const void *)one) && words <= s.place)
                whole += mg_channel_read(one, 8 * words, no_widths, NULL, number_record,
                                         &(struct numbering){&s, k, i, fn, user});
        }
    }
    return whole;
}
