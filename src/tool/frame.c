/* Frames: see frame.h. The lowest lane of a group writes; what it does stands under guards, without a branch. Where records
 * are staged, each warp has some in shared memory: how many, how many of its lanes have not left yet, then the records. */
#include "tool/frame.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)
#define HEAD(field) mg_o_addr_reg(list, (int64_t)offsetof(struct mg_frame_head, field))
#define RECORD(to, field) mg_o_addr_reg((to), (int64_t)(sizeof(struct mg_frame_head) + offsetof(struct mg_frame_record, field)))

enum { STAGE_COUNT = 0, STAGE_LIVE = 4, STAGE_HEAD = 8, STAGE_CLOCK = STAGE_HEAD, STAGE_LANES = STAGE_HEAD + 8, STAGE_WHAT = STAGE_HEAD + 16, STAGED_BYTES = 24 };
#define STAGE(at) mg_o_addr_reg(f->stage, (at))

void mg_frame_reserve(struct mg_patch *p, uint32_t records)
{
    mg_patch_list(p, MG_FRAME_HEAD_WORDS + records * MG_FRAME_RECORD_WORDS);
}

static mg_id t64(struct mg_code_at *at) { return mg_code_temp(at, MG_TYPE_b64); }
static mg_id t32(struct mg_code_at *at) { return mg_code_temp(at, MG_TYPE_b32); }
static mg_id tp(struct mg_code_at *at) { return mg_code_temp(at, MG_TYPE_pred); }

void mg_frame_begin(struct mg_frame_code *f, struct mg_patch *p, uint32_t records, uint32_t staged)
{
    *f = (struct mg_frame_code){.p = p, .records = records, .staged = staged};
    if (staged && mg_patch_sites(p)->n_funcs == 1) f->stage = mg_patch_warp_bytes(p, (STAGE_HEAD + staged * STAGED_BYTES + 15) / 16 * 16);
    if (!f->stage) return;
    struct mg_code_at *at = mg_at_entry(p, 0);
    mg_id n = mg_value_n_active(at);
    mg_code_push_guard(at, mg_value_leader(at), false);
    MG_CODE(at, "st.shared.u32", STAGE(STAGE_COUNT), I(0));
    MG_CODE(at, "st.shared.u32", STAGE(STAGE_LIVE), R(n));
    mg_code_pop_guard(at);
}

/* ---- into the frame: by one lane ------------------------------------------------------------------------- */

/* Guards what follows: the host has not switched it off. */
static void push_on(struct mg_code_at *at, mg_id list)
{
    mg_id on = tp(at), word = t64(at);
    MG_CODE(at, "ld.volatile.global.u64", R(word), HEAD(off));
    MG_CODE(at, "setp.eq.u64", R(on), R(word), I(0));
    mg_code_push_guard(at, on, false);
}

/* to = where the record with this number goes, less the header. Guards what follows: there is room; else it is lost. */
static void push_room(const struct mg_frame_code *f, struct mg_code_at *at, mg_id list, mg_id slot, mg_id to)
{
    mg_id in = tp(at), first = tp(at), word = t64(at);
    MG_CODE(at, "ld.volatile.global.u64", R(word), HEAD(less));
    MG_CODE(at, "add.u64", R(word), R(word), R(slot));
    MG_CODE(at, "setp.lt.u64", R(in), R(word), I(f->records));
    mg_code_push_guard(at, in, true);
    MG_CODE(at, "red.global.add.u64", HEAD(lost), I(1));
    MG_CODE(at, "red.global.max.u64", HEAD(status), I(MG_FRAME_FULL));
    mg_code_pop_guard(at);
    mg_code_push_guard(at, in, false);
    MG_CODE(at, "setp.eq.u64", R(first), R(slot), I(0));
    mg_code_push_guard(at, first, false);
    MG_CODE(at, "red.global.max.u64", HEAD(status), I(MG_FRAME_WRITTEN));
    mg_code_pop_guard(at);
    MG_CODE(at, "shl.b64", R(to), R(slot), I(5));
    MG_CODE(at, "add.u64", R(to), R(to), R(list));
}

static mg_id where_of(struct mg_code_at *at)
{
    mg_id warp = t64(at), where = t64(at);
    MG_CODE(at, "cvt.u64.u32", R(warp), R(mg_value_warp(at)));
    MG_CODE(at, "shl.b64", R(where), R(mg_value_cta(at)), I(5));
    MG_CODE(at, "or.b64", R(where), R(where), R(warp));
    MG_CODE(at, "or.b64", R(where), R(where), I(INT64_MIN));
    return where;
}

static mg_id lanes_of(struct mg_code_at *at, mg_id mask)
{
    mg_id lanes = t64(at), sm = t64(at);
    MG_CODE(at, "cvt.u64.u32", R(sm), R(mg_value_sm(at)));
    MG_CODE(at, "shl.b64", R(sm), R(sm), I(32));
    MG_CODE(at, "cvt.u64.u32", R(lanes), R(mask));
    MG_CODE(at, "or.b64", R(lanes), R(lanes), R(sm));
    return lanes;
}

static mg_id clock_of(struct mg_code_at *at)
{
    mg_id clock = t64(at);
    MG_CODE(at, "max.u64", R(clock), R(mg_value_clock(at)), I(1));
    return clock;
}

static void write_now(const struct mg_frame_code *f, struct mg_code_at *at, mg_id lanes, uint32_t what, mg_id early)
{
    mg_id list = mg_value_list(at), slot = t64(at), to = t64(at);
    push_on(at, list);
    MG_CODE(at, "atom.global.add.u64", R(slot), HEAD(fill), I(1));
    push_room(f, at, list, slot, to);
    MG_CODE(at, "st.global.u64", RECORD(to, where), R(where_of(at)));
    MG_CODE(at, "st.global.u64", RECORD(to, lanes), R(lanes));
    MG_CODE(at, "st.global.u64", RECORD(to, what), I(what));
    MG_CODE(at, "st.global.u64", RECORD(to, clock), R(early ? early : clock_of(at)));
    mg_code_pop_guard(at);
    mg_code_pop_guard(at);
}

/* ---- staged ------------------------------------------------------------------------------------------------ */

static void stage(const struct mg_frame_code *f, struct mg_code_at *at, mg_id lanes, uint32_t what, mg_id early)
{
    mg_id ix = t32(at), to = t32(at), in = tp(at);
    MG_CODE(at, "atom.shared.add.u32", R(ix), STAGE(STAGE_COUNT), I(1));
    MG_CODE(at, "setp.lt.u32", R(in), R(ix), I(f->staged));
    mg_code_push_guard(at, in, true);
    write_now(f, at, lanes, what, early);
    mg_code_pop_guard(at);
    mg_code_push_guard(at, in, false);
    MG_CODE(at, "mad.lo.u32", R(to), R(ix), I(STAGED_BYTES), R(f->stage));
    MG_CODE(at, "st.shared.u64", mg_o_addr_reg(to, STAGE_LANES), R(lanes));
    MG_CODE(at, "st.shared.u64", mg_o_addr_reg(to, STAGE_WHAT), I(what));
    MG_CODE(at, "st.shared.u64", mg_o_addr_reg(to, STAGE_CLOCK), R(early ? early : clock_of(at)));
    mg_code_pop_guard(at);
}

/* Lanes leave: the last of the warp takes what is staged into the frame. */
static void leave(struct mg_code_at *at, void *user)
{
    const struct mg_frame_code *f = user;
    mg_id n = mg_value_n_active(at), less = t32(at), old = t32(at), count = mg_code_reg(at, MG_TYPE_b32), from = mg_code_reg(at, MG_TYPE_b32), slot = mg_code_reg(at, MG_TYPE_b64);
    mg_id last = tp(at), none = tp(at), again = mg_code_label(at), out = mg_code_label(at), list = mg_value_list(at), word = t64(at), to = t64(at);
    MG_CODE(at, "mov.u32", R(count), I(0));
    mg_code_push_guard(at, mg_value_leader(at), false);
    MG_CODE(at, "neg.s32", R(less), R(n));
    MG_CODE(at, "atom.shared.add.u32", R(old), STAGE(STAGE_LIVE), R(less));
    MG_CODE(at, "setp.eq.u32", R(last), R(old), R(n));
    mg_code_push_guard(at, last, false);
    push_on(at, list);
    MG_CODE(at, "ld.volatile.shared.u32", R(count), STAGE(STAGE_COUNT));
    MG_CODE(at, "min.u32", R(count), R(count), I(f->staged));
    mg_code_pop_guard(at);
    mg_code_pop_guard(at);
    mg_code_pop_guard(at);
    MG_CODE(at, "setp.eq.u32", R(none), R(count), I(0));
    mg_code_push_guard(at, none, false);
    MG_CODE(at, "bra", mg_o_label(out));
    mg_code_pop_guard(at);
    MG_CODE(at, "cvt.u64.u32", R(word), R(count)); /* one lane from here on */
    MG_CODE(at, "atom.global.add.u64", R(slot), HEAD(fill), R(word));
    MG_CODE(at, "mov.u32", R(from), R(f->stage));
    mg_code_place(at, again);
    push_room(f, at, list, slot, to);
    MG_CODE(at, "st.global.u64", RECORD(to, where), R(where_of(at)));
    MG_CODE(at, "ld.volatile.shared.u64", R(word), mg_o_addr_reg(from, STAGE_LANES));
    MG_CODE(at, "st.global.u64", RECORD(to, lanes), R(word));
    MG_CODE(at, "ld.volatile.shared.u64", R(word), mg_o_addr_reg(from, STAGE_WHAT));
    MG_CODE(at, "st.global.u64", RECORD(to, what), R(word));
    MG_CODE(at, "ld.volatile.shared.u64", R(word), mg_o_addr_reg(from, STAGE_CLOCK));
    MG_CODE(at, "st.global.u64", RECORD(to, clock), R(word));
    mg_code_pop_guard(at);
    MG_CODE(at, "add.u64", R(slot), R(slot), I(1));
    MG_CODE(at, "add.u32", R(from), R(from), I(STAGED_BYTES));
    MG_CODE(at, "sub.u32", R(count), R(count), I(1));
    MG_CODE(at, "setp.ne.u32", R(none), R(count), I(0));
    mg_code_push_guard(at, none, false);
    MG_CODE(at, "bra", mg_o_label(again));
    mg_code_pop_guard(at);
    mg_code_place(at, out);
}

/* ---- records ------------------------------------------------------------------------------------------------ */

void mg_frame_write(struct mg_frame_code *f, struct mg_code_at *at, uint32_t what, bool late)
{
    mg_id mask = mg_value_active(at), lead = mg_value_leader(at), early = late ? 0 : clock_of(at);
    mg_code_push_guard(at, lead, false);
    mg_id lanes = lanes_of(at, mask);
    if (f->stage) stage(f, at, lanes, what, early);
    else write_now(f, at, lanes, what, early);
    mg_code_pop_guard(at);
}

void mg_frame_end(struct mg_frame_code *f)
{
    if (f->stage) mg_at_exits(f->p, 0, leave, f);
}

uint64_t mg_frame_read(const uint64_t *list, uint32_t n, uint64_t from, struct mg_frame_record **out)
{
    const struct mg_frame_head *h = (const void *)list;
    const struct mg_frame_record *r = (const void *)(list + MG_FRAME_HEAD_WORDS);
    uint64_t room = n < MG_FRAME_HEAD_WORDS ? 0 : (n - MG_FRAME_HEAD_WORDS) / MG_FRAME_RECORD_WORDS, whole = 0;
    uint64_t end = room ? MG_MIN(__atomic_load_n(&h->fill, __ATOMIC_RELAXED), room) : 0;
    *out = from < end ? malloc((end - from) * sizeof **out) : NULL;
    for (uint64_t i = from; *out && i < end; i++) {
        struct mg_frame_record one = r[i];
        if (one.clock && one.where && one.lanes && one.what) (*out)[whole++] = one; /* else it is being written, or the program wrote here */
    }
    return whole;
}
