/* Frames: see frame.h. The lowest lane of a group writes; what it does stands under guards, without a branch. */
#include "tool/frame.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define R(r) mg_o_reg(r)
#define I(n) mg_o_imm(n)
#define HEAD(field) mg_o_addr_reg(list, (int64_t)offsetof(struct mg_frame_head, field))
#define RECORD(field) mg_o_addr_reg(to, (int64_t)(sizeof(struct mg_frame_head) + offsetof(struct mg_frame_record, field)))

void mg_frame_reserve(struct mg_patch *p, uint32_t records)
{
    mg_patch_list(p, MG_FRAME_HEAD_WORDS + records * MG_FRAME_RECORD_WORDS);
}

void mg_frame_write(struct mg_code_at *at, uint32_t records, uint32_t what, bool late)
{
    mg_id list = mg_value_list(at), mask = mg_value_active(at), lead = mg_value_leader(at), cta = mg_value_cta(at), warp = mg_value_warp(at), sm = mg_value_sm(at);
    mg_id clock = late ? 0 : mg_value_clock(at), on = mg_code_temp(at, MG_TYPE_pred), in = mg_code_temp(at, MG_TYPE_pred), first = mg_code_temp(at, MG_TYPE_pred);
    mg_id slot = mg_code_temp(at, MG_TYPE_b64), word = mg_code_temp(at, MG_TYPE_b64), to = mg_code_temp(at, MG_TYPE_b64);
    mg_code_push_guard(at, lead, false);
    MG_CODE(at, "ld.volatile.global.u64", R(word), HEAD(off));
    MG_CODE(at, "setp.eq.u64", R(on), R(word), I(0));
    mg_code_push_guard(at, on, false);
    MG_CODE(at, "atom.global.add.u64", R(slot), HEAD(fill), I(1));
    MG_CODE(at, "ld.volatile.global.u64", R(word), HEAD(less));
    MG_CODE(at, "add.u64", R(word), R(word), R(slot));
    MG_CODE(at, "setp.lt.u64", R(in), R(word), I(records));
    mg_code_push_guard(at, in, false);
    MG_CODE(at, "setp.eq.u64", R(first), R(slot), I(0));
    MG_CODE(at, "shl.b64", R(to), R(slot), I(5));
    MG_CODE(at, "add.u64", R(to), R(to), R(list));
    MG_CODE(at, "cvt.u64.u32", R(slot), R(warp));
    MG_CODE(at, "shl.b64", R(word), R(cta), I(5));
    MG_CODE(at, "or.b64", R(word), R(word), R(slot));
    MG_CODE(at, "or.b64", R(word), R(word), I(INT64_MIN));
    MG_CODE(at, "st.global.u64", RECORD(where), R(word));
    MG_CODE(at, "cvt.u64.u32", R(word), R(sm));
    MG_CODE(at, "shl.b64", R(word), R(word), I(32));
    MG_CODE(at, "cvt.u64.u32", R(slot), R(mask));
    MG_CODE(at, "or.b64", R(word), R(word), R(slot));
    MG_CODE(at, "st.global.u64", RECORD(lanes), R(word));
    MG_CODE(at, "st.global.u64", RECORD(what), I(what));
    mg_code_push_guard(at, first, false);
    MG_CODE(at, "red.global.max.u64", HEAD(status), I(MG_FRAME_WRITTEN));
    mg_code_pop_guard(at);
    if (late) clock = mg_value_clock(at);
    MG_CODE(at, "max.u64", R(word), R(clock), I(1));
    MG_CODE(at, "st.global.u64", RECORD(clock), R(word));
    mg_code_pop_guard(at);
    mg_code_push_guard(at, in, true);
    MG_CODE(at, "red.global.add.u64", HEAD(lost), I(1));
    MG_CODE(at, "red.global.max.u64", HEAD(status), I(MG_FRAME_FULL));
    mg_code_pop_guard(at);
    mg_code_pop_guard(at);
    mg_code_pop_guard(at);
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
