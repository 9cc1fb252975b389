/* Channels, the device's side: the code that writes records. See channel.h.
 *
 * Three registers of every function that writes: where its lane's open segment goes on (0: it has none),
 * the highest number of a record that the lane took part in, and the number that the next record in the
 * segment has by itself. The short way costs the leader an addition, a comparison and a store; taking,
 * closing and waiting stand behind branches that are rarely taken. */
#include "analysis/callgraph.h"
#include "tool/channel.h"
#include "tool/patch_priv.h"

#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)
#define AT(r, off) mg_o_addr_reg((r), (off))
#define P(...) MG_PURE(at, __VA_ARGS__)
#define IF(p, ...) MG_GUARDED(at, (p), __VA_ARGS__)
#define UNLESS(p, form, ...) mg_code_emit(at, (p), true, (form), (const struct mg_opnd[]){__VA_ARGS__}, sizeof((const struct mg_opnd[]){__VA_ARGS__}) / sizeof(struct mg_opnd))
#define CONTROL(field) ((int64_t)offsetof(struct mg_channel_control, field))

#define RING(field) ((int64_t)(MG_CHANNEL_HEAD + offsetof(struct mg_channel_ring, field)))

enum { SEGMENT = MG_CHANNEL_SEGMENT, WARP_BYTES = 24, NUMBER_BYTES = 8 };

struct mg_channel_func { mg_id next, seen, follows, last; };

void mg_patch_channel(struct mg_patch *p)
{
    if (!p->in_analyze) mg_patch_refuse(p, MG_ERR_STATE, "a channel has to be asked for by analyze");
    if (mg_patch_sm(p) < 80) mg_patch_refuse(p, MG_ERR_UNSUPPORTED, "records for the host need a device of compute capability 8.0");
    p->region->has_channel = true;
    p->region->channel_word = mg_patch_words(p, 2);
    p->channel = mg_arena_array(&p->scratch, struct mg_channel_func, p->all->sites->n_funcs + 1);
}

static struct mg_channel_func *of_function(struct mg_code_at *at)
{
    struct mg_channel_func *f = &at->p->channel[at->func_ix];
    if (f->next) return f;
    struct mg_code_at *entry = mg_at_entry(at->p, at->func_ix);
    f->next = mg_code_reg(at, MG_TYPE_b64);
    f->seen = mg_code_reg(at, MG_TYPE_b32);
    f->follows = mg_code_reg(at, MG_TYPE_b32);
    f->last = mg_code_reg(at, MG_TYPE_b64); /* position of the segment that it wrote to last */
    MG_PURE(entry, "mov.u64", R(f->next), I(0));
    MG_PURE(entry, "mov.u32", R(f->seen), I(0));
    MG_PURE(entry, "mov.u32", R(f->follows), I(0));
    MG_PURE(entry, "mov.u64", R(f->last), I(0));
    return f;
}

static mg_id t32(struct mg_code_at *at) { return mg_code_temp(at, MG_TYPE_b32); }
static mg_id t64(struct mg_code_at *at) { return mg_code_temp(at, MG_TYPE_b64); }
static mg_id tp(struct mg_code_at *at) { return mg_code_temp(at, MG_TYPE_pred); }

/* ---- segments: by one lane, wherever it is ------------------------------------------------------------------- */

struct lane { mg_id control, a, b, c, x, y, p; }; /* temporaries of what follows */

static struct lane lane_of(struct mg_code_at *at)
{
    return (struct lane){mg_value_word(at, at->p->region->channel_word), t64(at), t64(at), t64(at), t32(at), t32(at), tp(at)};
}

/* x = the field; control block's. */
static void field(struct mg_code_at *at, const struct lane *l, mg_id to, int64_t at_byte)
{
    P("ld.global.u32", R(to), AT(l->control, at_byte));
}

/* The open segment that ends at `next` is closed: its first word says how much of it is in use, and the host
 * is told when that was the last of its chunk. */
static void close_segment(struct mg_code_at *at, const struct lane *l, mg_id next)
{
    P("and.b64", R(l->a), R(next), I(SEGMENT - 1));
    P("sub.u64", R(l->b), R(next), R(l->a));
    P("membar.gl"); /* the records are there before it says so */
    P("st.volatile.global.u64", AT(l->b, 0), R(l->a));
    P("ld.global.u64", R(l->a), AT(l->control, CONTROL(data)));
    P("sub.u64", R(l->b), R(l->b), R(l->a));
    field(at, l, l->x, CONTROL(ring_shift));
    P("shr.u64", R(l->a), R(l->b), R(l->x)); /* which ring */
    field(at, l, l->x, CONTROL(chunk_shift));
    P("shr.u64", R(l->b), R(l->b), R(l->x));
    P("cvt.u32.u64", R(l->x), R(l->b));
    field(at, l, l->y, CONTROL(chunk_mask));
    P("and.b32", R(l->x), R(l->x), R(l->y)); /* which of its chunks */
    P("cvt.u32.u64", R(l->y), R(l->a));
    P("mad.wide.u32", R(l->a), R(l->y), I(MG_CHANNEL_RING), R(l->control));
    P("mad.wide.u32", R(l->a), R(l->x), I(8), R(l->a));
    P("mad.lo.u32", R(l->y), R(l->y), I(MG_CHANNEL_CHUNKS), R(l->x));
    P("membar.gl");
    P("atom.global.add.u64", R(l->b), AT(l->a, RING(closed)), I(SEGMENT));
    P("add.u64", R(l->b), R(l->b), I(SEGMENT));
    field(at, l, l->x, CONTROL(chunk_shift));
    P("shr.u64", R(l->c), R(l->b), R(l->x));
    P("shl.b64", R(l->c), R(l->c), R(l->x));
    P("setp.eq.u64", R(l->p), R(l->c), R(l->b));
    P("ld.global.u64", R(l->a), AT(l->control, CONTROL(full)));
    P("mad.wide.u32", R(l->a), R(l->y), I(8), R(l->a));
    IF(l->p, "membar.sys");
    IF(l->p, "st.volatile.global.u64", AT(l->a, 0), R(l->b));
}

/* a = address of the ring of this multiprocessor, less MG_CHANNEL_HEAD. */
static void ring_address(struct mg_code_at *at, const struct lane *l)
{
    P("mov.u32", R(l->x), mg_o_sreg(MG_SREG_smid, 0));
    field(at, l, l->y, CONTROL(ring_mask));
    P("and.b32", R(l->x), R(l->x), R(l->y));
    P("mad.wide.u32", R(l->a), R(l->x), I(MG_CHANNEL_RING), R(l->control));
}

#define LINK ((int64_t)MG_CHANNEL_LINK)
#define LINK_BITS MG_CHANNEL_LINK_BITS

/* c = what the ring's stack becomes when b is on top of it: its number of changes, and b. */
static void new_top(struct mg_code_at *at, const struct lane *l, mg_id old)
{
    P("shr.u64", R(l->c), R(old), I(LINK_BITS));
    P("add.u64", R(l->c), R(l->c), I(1));
    P("shl.b64", R(l->c), R(l->c), I(LINK_BITS));
    P("or.b64", R(l->c), R(l->c), R(l->b));
}

/* Lanes with an open segment leave it to whom comes next. */
static void put_back(struct mg_code_at *at, void *user)
{
    const struct mg_channel_func *f = &at->p->channel[at->func_ix];
    (void)user;
    if (!f->next) return;
    struct lane l = lane_of(at);
    const struct mg_code_guard g = *mg_at_guard(at);
    mg_id out = mg_code_label(at), again = mg_code_label(at), none = tp(at), top = t64(at), seg = t64(at), state = t64(at), word = t64(at), old = t64(at);
    P("setp.eq.u64", R(none), R(f->next), I(0));
    if (g.pred) mg_code_emit(at, g.pred, !g.is_not, "bra", (const struct mg_opnd[]){mg_o_label(out)}, 1);
    IF(none, "bra", mg_o_label(out));
    ring_address(at, &l);
    P("and.b64", R(state), R(f->next), I(SEGMENT - 1));
    P("sub.u64", R(seg), R(f->next), R(state));
    P("shl.b64", R(state), R(state), I(MG_CHANNEL_USED_SHIFT));
    P("or.b64", R(state), R(state), I((int64_t)MG_CHANNEL_OPEN));
    mg_code_place(at, again);
    P("ld.volatile.global.u64", R(top), AT(l.a, RING(stack)));
    P("and.b64", R(word), R(top), I(LINK));
    P("or.b64", R(word), R(word), R(state));
    P("st.volatile.global.u64", AT(seg, 0), R(word));
    P("membar.gl"); /* the records are there before anybody goes on behind them */
    P("shr.u64", R(l.b), R(seg), I(12));
    new_top(at, &l, top);
    P("atom.global.cas.b64", R(old), AT(l.a, RING(stack)), R(top), R(l.c));
    P("setp.ne.u64", R(none), R(old), R(top));
    IF(none, "bra", mg_o_label(again));
    P("mov.u64", R(f->next), I(0));
    mg_code_place(at, out);
}

/* next = an open segment from the ring's stack, as far as it is written; 0: there is none. The ring is at a. A number
 * of changes in the word keeps apart a top that went away and came back. */
static void pop_segment(struct mg_code_at *at, const struct lane *l, mg_id next)
{
    mg_id again = mg_code_label(at), out = mg_code_label(at), top = t64(at), seg = t64(at), word = t64(at), old = t64(at);
    mg_code_place(at, again);
    P("ld.volatile.global.u64", R(top), AT(l->a, RING(stack)));
    P("and.b64", R(seg), R(top), I(LINK));
    P("shl.b64", R(seg), R(seg), I(12));
    P("mov.u64", R(next), I(0));
    P("setp.eq.u64", R(l->p), R(seg), I(0));
    IF(l->p, "bra", mg_o_label(out));
    P("ld.volatile.global.u64", R(word), AT(seg, 0));
    P("and.b64", R(l->b), R(word), I(LINK));
    new_top(at, l, top);
    P("atom.global.cas.b64", R(old), AT(l->a, RING(stack)), R(top), R(l->c));
    P("setp.ne.u64", R(l->p), R(old), R(top));
    IF(l->p, "bra", mg_o_label(again));
    P("membar.gl");
    P("shr.u64", R(word), R(word), I(MG_CHANNEL_USED_SHIFT));
    P("and.b64", R(word), R(word), I(SEGMENT - 1));
    P("add.u64", R(next), R(seg), R(word));
    P("st.volatile.global.u64", AT(seg, 0), I(0));
    mg_code_place(at, out);
}

/* f->next = a segment with room for what a warp's first record needs; 0: there is none and it drops. */
static void take_segment(struct mg_code_at *at, const struct lane *l, struct mg_channel_func *f, mg_id need, mg_id number)
{
    mg_id again = mg_code_label(at), got = mg_code_label(at), wait = mg_code_label(at), out = mg_code_label(at), fresh = mg_code_label(at), drop = mg_code_label(at);
    mg_id d = t64(at), e = t64(at), ring = t64(at), rounds = t32(at);
    ring_address(at, l);
    P("mov.u64", R(ring), R(l->a));
    pop_segment(at, l, f->next);
    P("setp.eq.u64", R(l->p), R(f->next), I(0));
    IF(l->p, "bra", mg_o_label(fresh));
    P("and.b64", R(d), R(f->next), I(SEGMENT - 1));
    P("cvt.u32.u64", R(l->x), R(d));
    P("sub.u64", R(d), R(f->next), R(d));
    P("ld.volatile.global.u64", R(d), AT(d, 8));
    P("add.u32", R(l->x), R(l->x), R(need));
    P("setp.ge.u64", R(l->p), R(d), R(f->last)); /* nothing older than what it wrote to before */
    P("setp.lt.and.u32", R(l->p), R(l->x), I(SEGMENT - WARP_BYTES - NUMBER_BYTES), R(l->p));
    IF(l->p, "mov.u64", R(f->last), R(d));
    IF(l->p, "bra", mg_o_label(got));
    P("mov.u64", R(e), R(f->next));
    close_segment(at, l, e);
    mg_code_place(at, fresh);
    P("mov.u32", R(rounds), I(0));
    mg_code_place(at, again);
    P("mov.u64", R(l->a), R(ring));
    P("ld.volatile.global.u64", R(l->b), AT(l->a, RING(head)));
    P("ld.volatile.global.u64", R(d), AT(l->a, RING(limit)));
    P("setp.ge.u64", R(l->p), R(l->b), R(d));
    IF(l->p, "bra", mg_o_label(wait));
    field(at, l, l->y, CONTROL(chunk_shift));
    P("shr.u64", R(l->c), R(l->b), R(l->y));
    P("cvt.u32.u64", R(l->x), R(l->c));
    P("and.b32", R(l->x), R(l->x), I(MG_CHANNEL_CHUNKS - 1));
    P("mad.wide.u32", R(l->c), R(l->x), I(4), R(l->a));
    P("ld.volatile.global.u32", R(l->x), AT(l->c, RING(map))); /* holds as long as the chunk is not taken as a whole */
    P("add.u64", R(l->c), R(l->b), I(SEGMENT));
    P("atom.global.cas.b64", R(d), AT(l->a, RING(head)), R(l->b), R(l->c));
    P("setp.ne.u64", R(l->p), R(d), R(l->b));
    IF(l->p, "bra", mg_o_label(again));
    P("mov.u64", R(f->last), R(l->b));
    P("cvt.u64.u32", R(l->c), R(l->x));
    P("shl.b64", R(l->c), R(l->c), R(l->y)); /* the chunk in the ring's memory */
    P("mov.u64", R(d), I(1));
    P("shl.b64", R(d), R(d), R(l->y));
    P("sub.u64", R(d), R(d), I(1));
    P("and.b64", R(l->b), R(l->b), R(d)); /* the segment in the chunk */
    P("sub.u64", R(d), R(l->a), R(l->control));
    P("shr.u64", R(d), R(d), I(7)); /* which ring */
    field(at, l, l->y, CONTROL(ring_shift));
    P("shl.b64", R(d), R(d), R(l->y));
    P("add.u64", R(l->b), R(l->b), R(l->c));
    P("add.u64", R(l->b), R(l->b), R(d));
    P("ld.global.u64", R(d), AT(l->control, CONTROL(data)));
    P("add.u64", R(f->next), R(l->b), R(d));
    P("st.volatile.global.u64", AT(f->next, 0), I(0));
    P("st.global.u64", AT(f->next, 8), R(f->last));
    P("add.u64", R(f->next), R(f->next), I(16));
    P("bra", mg_o_label(got));
    mg_code_place(at, wait);
    P("ld.volatile.global.u32", R(l->x), AT(l->control, CONTROL(rounds)));
    P("add.u32", R(rounds), R(rounds), I(1));
    P("setp.gt.u32", R(l->p), R(rounds), R(l->x));
    IF(l->p, "bra", mg_o_label(drop));
    P("nanosleep.u32", I(400));
    pop_segment(at, l, e); /* one that nobody holds */
    P("setp.eq.u64", R(l->p), R(e), I(0));
    IF(l->p, "bra", mg_o_label(again));
    close_segment(at, l, e);
    P("bra", mg_o_label(again));
    mg_code_place(at, drop);
    P("mov.u32", R(l->x), I(MG_CHANNEL_FEW_ROUNDS));
    P("st.volatile.global.u32", AT(l->control, CONTROL(rounds)), R(l->x));
    P("red.global.add.u64", AT(l->a, RING(dropped)), I(1));
    P("mov.u64", R(f->next), I(0));
    P("bra", mg_o_label(out));
    mg_code_place(at, got); /* whose records follow */
    mg_id warp = mg_value_warp(at), cta = mg_value_cta(at), lane = mg_value_lane(at), launch = mg_value_word(at, at->p->region->channel_word + 1);
    P("shl.b32", R(l->x), R(warp), I(5));
    P("or.b32", R(l->x), R(l->x), R(lane));
    P("cvt.u64.u32", R(l->a), R(l->x));
    P("shl.b64", R(l->b), R(launch), I(16));
    P("or.b64", R(l->a), R(l->a), R(l->b));
    P("or.b64", R(l->a), R(l->a), I((int64_t)((uint64_t)MG_RECORD_WARP << 60)));
    P("st.global.u64", AT(f->next, 0), R(l->a));
    P("st.global.u64", AT(f->next, 8), R(cta));
    P("cvt.u64.u32", R(l->a), R(number));
    P("st.global.u64", AT(f->next, 16), R(l->a));
    P("add.u64", R(f->next), R(f->next), I(WARP_BYTES));
    P("mov.u32", R(f->follows), R(number));
    mg_code_place(at, out);
}

/* ---- records: by the lanes of a spot ----------------------------------------------------------------------------- */

struct write {
    struct mg_channel_func *f;
    mg_id out;                 /* behind it all */
    mg_id mask, n, leader, rank, number; /* b32 */
    mg_id lead;                /* pred */
};

static struct write begin(struct mg_code_at *at, uint32_t site, uint32_t width)
{
    struct write w = {.f = of_function(at), .out = mg_code_label(at)};
    const struct mg_code_guard g = *mg_at_guard(at);
    if (site >= MG_CHANNEL_MOST_SITES) mg_patch_refuse(at->p, MG_ERR_LIMIT, "more than %d places that write records", (int)MG_CHANNEL_MOST_SITES);
    while (at->p->widths.n <= MG_MIN(site, (uint32_t)MG_CHANNEL_MOST_SITES)) *mg_vec_push(&at->p->widths) = 0;
    at->p->widths.at[MG_MIN(site, (uint32_t)MG_CHANNEL_MOST_SITES)] = (uint8_t)width;
    w.mask = mg_value_active(at);
    w.lead = mg_value_leader(at);
    w.n = t32(at);
    w.leader = t32(at);
    w.rank = t32(at);
    w.number = t32(at);
    if (g.pred) mg_code_emit(at, g.pred, !g.is_not, "bra", (const struct mg_opnd[]){mg_o_label(w.out)}, 1);
    P("popc.b32", R(w.n), R(w.mask));
    P("brev.b32", R(w.leader), R(w.mask));
    P("clz.b32", R(w.leader), R(w.leader));
    P("mov.u32", R(w.rank), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    P("and.b32", R(w.rank), R(w.rank), R(w.mask));
    P("popc.b32", R(w.rank), R(w.rank));
    P("redux.sync.max.u32", R(w.number), R(w.f->seen), R(w.mask));
    P("add.u32", R(w.f->seen), R(w.number), I(1));
    if (at->p->all->o->channel_every > 1) {
        mg_id part = t32(at), p = tp(at);
        P("rem.u32", R(part), R(w.number), I(at->p->all->o->channel_every));
        P("setp.ne.u32", R(p), R(part), I(0));
        IF(p, "bra", mg_o_label(w.out));
    }
    return w;
}

/* dst: where the record of `need` bytes goes, in the leader; 0: dropped. Others go on with dst = 0. */
static mg_id make_room(struct mg_code_at *at, const struct write *w, mg_id need)
{
    mg_id have = mg_code_label(at), done = mg_code_label(at), room = t32(at), p = tp(at), q = tp(at), word = t64(at), dst = t64(at);
    struct lane l = lane_of(at);
    P("mov.u64", R(dst), I(0));
    UNLESS(w->lead, "bra", mg_o_label(done));
    P("cvt.u32.u64", R(room), R(w->f->next));
    P("and.b32", R(room), R(room), I(SEGMENT - 1)); /* 0 of no segment, never of one */
    P("setp.ne.u32", R(q), R(room), I(0));
    P("add.u32", R(room), R(room), R(need));
    P("setp.lt.and.u32", R(p), R(room), I(SEGMENT - NUMBER_BYTES), R(q));
    IF(p, "bra", mg_o_label(have));
    mg_id take = mg_code_label(at), e = t64(at);
    UNLESS(q, "bra", mg_o_label(take));
    P("mov.u64", R(e), R(w->f->next));
    close_segment(at, &l, e);
    mg_code_place(at, take);
    take_segment(at, &l, w->f, need, w->number);
    P("setp.eq.u64", R(p), R(w->f->next), I(0));
    IF(p, "bra", mg_o_label(done));
    mg_code_place(at, have);
    P("setp.ne.u32", R(p), R(w->number), R(w->f->follows));
    P("cvt.u64.u32", R(word), R(w->number));
    P("or.b64", R(word), R(word), I((int64_t)((uint64_t)MG_RECORD_NUMBER << 60)));
    IF(p, "st.global.u64", AT(w->f->next, 0), R(word));
    IF(p, "add.u64", R(w->f->next), R(w->f->next), I(NUMBER_BYTES));
    P("add.u32", R(w->f->follows), R(w->number), I(1));
    P("mov.u64", R(dst), R(w->f->next));
    P("cvt.u64.u32", R(word), R(need));
    P("add.u64", R(w->f->next), R(w->f->next), R(word));
    mg_code_place(at, done);
    return dst;
}

/* The leader's value, for all lanes of the record. */
static mg_id from_leader(struct mg_code_at *at, const struct write *w, mg_id v)
{
    mg_id lo = t32(at), hi = t32(at), all = t64(at);
    P("cvt.u32.u64", R(lo), R(v));
    P("shr.u64", R(all), R(v), I(32));
    P("cvt.u32.u64", R(hi), R(all));
    P("shfl.sync.idx.b32", R(lo), R(lo), R(w->leader), I(31), R(w->mask));
    P("shfl.sync.idx.b32", R(hi), R(hi), R(w->leader), I(31), R(w->mask));
    P("cvt.u64.u32", R(all), R(hi));
    P("shl.b64", R(all), R(all), I(32));
    mg_id low = t64(at);
    P("cvt.u64.u32", R(low), R(lo));
    P("or.b64", R(all), R(all), R(low));
    return all;
}

static int64_t head_of(enum mg_record_kind kind, uint32_t site) { return (int64_t)((uint64_t)kind << 60 | (uint64_t)site << 49); }

void mg_channel_access(struct mg_code_at *at, uint32_t site, mg_id node)
{
    struct mg_access a;
    if (!mg_access_of(mg_at_module(at), node, &a)) {
        mg_patch_refuse(at->p, MG_ERR_STATE, "a record of an access of an instruction that makes none");
        return;
    }
    mg_id addr = mg_value_address(at, node);
    int64_t width = (int64_t)a.bytes * MG_MAX(a.vec, 1);
    struct write w = begin(at, site, (uint32_t)width);
    mg_id first = from_leader(at, &w, addr), expect = t64(at), head = t64(at), need = t32(at), pad = t32(at), form = t32(at);
    mg_id unit = tp(at), same = tp(at), full = tp(at), near = tp(at), far = tp(at), p = tp(at), word = t64(at), low = t32(at);
    P("mad.wide.u32", R(expect), R(w.rank), I(width), R(first));
    P("setp.eq.u64", R(p), R(addr), R(expect));
    P("vote.sync.all.pred", R(unit), R(p), R(w.mask));
    P("setp.eq.u64", R(p), R(addr), R(first));
    P("vote.sync.all.pred", R(same), R(p), R(w.mask));
    P("sub.u64", R(expect), R(addr), R(first)); /* the distance, from here on */
    P("cvt.u32.u64", R(low), R(expect));
    P("cvt.s64.s32", R(word), R(low));
    P("setp.eq.s64", R(p), R(word), R(expect));
    P("vote.sync.all.pred", R(near), R(p), R(w.mask));
    P("setp.eq.u32", R(full), R(w.mask), I(0xffffffff));
    P("and.pred", R(full), R(full), R(unit));
    /* form and size: the later the shorter */
    P("mov.u32", R(form), I(MG_RECORD_FAR));
    P("mad.lo.u32", R(need), R(w.n), I(8), I(16));
    P("add.u32", R(pad), R(w.n), I(1));
    P("and.b32", R(pad), R(pad), I(0x7e));
    P("mad.lo.u32", R(pad), R(pad), I(4), I(16));
    IF(near, "mov.u32", R(form), I(MG_RECORD_NEAR));
    IF(near, "mov.u32", R(need), R(pad));
    IF(same, "mov.u32", R(form), I(MG_RECORD_SAME));
    IF(same, "mov.u32", R(need), I(16));
    IF(unit, "mov.u32", R(form), I(MG_RECORD_UNIT));
    IF(unit, "mov.u32", R(need), I(16));
    IF(full, "mov.u32", R(form), I(MG_RECORD_FULL));
    IF(full, "mov.u32", R(need), I(8));
    mg_id dst = make_room(at, &w, need), mine = tp(at), lists = tp(at), tail = mg_code_label(at);
    P("cvt.u64.u32", R(head), R(form));
    P("shl.b64", R(head), R(head), I(60));
    P("and.b64", R(word), R(first), I((int64_t)0x1ffffffffffff));
    P("or.b64", R(head), R(head), R(word));
    P("or.b64", R(head), R(head), I(head_of(MG_RECORD_NONE, site)));
    P("setp.ne.u64", R(mine), R(dst), I(0));
    IF(mine, "st.global.u64", AT(dst, 0), R(head));
    P("setp.ge.u32", R(lists), R(form), I(MG_RECORD_UNIT));
    P("and.pred", R(mine), R(mine), R(lists));
    P("cvt.u64.u32", R(word), R(w.mask));
    IF(mine, "st.global.u64", AT(dst, 8), R(word));
    P("setp.lt.u32", R(lists), R(form), I(MG_RECORD_NEAR));
    IF(lists, "bra", mg_o_label(tail)); /* all lanes go the same way */
    P("setp.eq.u32", R(far), R(form), I(MG_RECORD_FAR));
    mg_id to = from_leader(at, &w, dst), each = t64(at);
    P("setp.eq.u64", R(p), R(to), I(0));
    IF(p, "bra", mg_o_label(tail));
    P("mad.wide.u32", R(each), R(w.rank), I(8), R(to));
    IF(far, "st.global.u64", AT(each, 16), R(addr));
    P("mad.wide.u32", R(each), R(w.rank), I(4), R(to));
    UNLESS(far, "st.global.u32", AT(each, 16), R(low));
    mg_code_place(at, tail);
    P("bar.warp.sync", R(w.mask));
    mg_code_place(at, w.out);
}

void mg_channel_lanes(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n)
{
    if (!n || n > MG_CHANNEL_MOST_WORDS) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "a record of %u words a lane", (unsigned)n);
        return;
    }
    struct write w = begin(at, site, 0);
    mg_id need = t32(at), mine = tp(at), head = t64(at), tail = mg_code_label(at), each = t64(at), p = tp(at);
    P("mad.lo.u32", R(need), R(w.n), I(8 * (int64_t)n), I(8));
    mg_id dst = make_room(at, &w, need);
    P("setp.ne.u64", R(mine), R(dst), I(0));
    P("cvt.u64.u32", R(head), R(w.mask));
    P("or.b64", R(head), R(head), I(head_of(MG_RECORD_LANES, site) | (int64_t)n << 32));
    IF(mine, "st.global.u64", AT(dst, 0), R(head));
    mg_id to = from_leader(at, &w, dst);
    P("setp.eq.u64", R(p), R(to), I(0));
    IF(p, "bra", mg_o_label(tail));
    P("mad.wide.u32", R(each), R(w.rank), I(8 * (int64_t)n), R(to));
    for (uint32_t i = 0; i < n; i++) P("st.global.u64", AT(each, 8 + 8 * (int64_t)i), R(words[i]));
    mg_code_place(at, tail);
    P("bar.warp.sync", R(w.mask));
    mg_code_place(at, w.out);
}

void mg_channel_once(struct mg_code_at *at, uint32_t site, const mg_id *words, uint32_t n)
{
    if (n > MG_CHANNEL_MOST_WORDS) {
        mg_patch_refuse(at->p, MG_ERR_LIMIT, "a record of %u words", (unsigned)n);
        return;
    }
    struct write w = begin(at, site, 0);
    mg_id need = t32(at), mine = tp(at), head = t64(at);
    P("mov.u32", R(need), I(8 + 8 * (int64_t)n));
    mg_id dst = make_room(at, &w, need);
    P("setp.ne.u64", R(mine), R(dst), I(0));
    P("cvt.u64.u32", R(head), R(w.mask));
    P("or.b64", R(head), R(head), I(head_of(MG_RECORD_ONCE, site) | (int64_t)n << 32));
    IF(mine, "st.global.u64", AT(dst, 0), R(head));
    for (uint32_t i = 0; i < n; i++) IF(mine, "st.global.u64", AT(dst, 8 + 8 * (int64_t)i), R(words[i]));
    P("bar.warp.sync", R(w.mask)); /* the leader catches up: the next record is of all lanes again */
    mg_code_place(at, w.out);
}

/* ---- ways out ------------------------------------------------------------------------------------------------------ */

void mg_channel_end(struct mg_patch *p)
{
    const struct mg_sites *s = p->all->sites;
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    for (uint32_t f = 0; f < s->n_funcs; f++)
        if (f && p->channel[f].next) mg_at_exits(p, f, put_back, NULL);
    mg_at_exits(p, 0, put_back, NULL); /* `exit` in any function, too */
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_node *node = &p->all->m->nodes.at[insts[i].node];
        unsigned op = mg_node_form(p->all->m, node)->op;
        if (!p->channel[insts[i].func_ix].next) continue;
        if (op == MG_OP_bar || op == MG_OP_barrier) put_back(mg_at_before(p, insts[i].node), NULL); /* nobody waits for room while another holds it here */
        if (op != MG_OP_call) continue;
        struct mg_call call;
        mg_call_read(p->all->m, insts[i].node, &call);
        bool calls_ours = call.indirect || (call.func && mg_func_body(p->all->m, call.func));
        if (calls_ours) put_back(mg_at_before(p, insts[i].node), NULL); /* the callee writes, or ends the lane */
    }
}
