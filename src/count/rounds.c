/* Warps of a loop of one block that only computes (analysis/lone_loop.h), counted behind it. Lanes that enter such a
 * loop together stay together until they leave it, each after rounds of its own, so that the warp enters the block as
 * often as the lane with the most rounds:
 *
 *     on the way in      activemask m
 *     on the way out     n = redux.max of the lanes' rounds, over m;  the lowest lane of m adds n
 *
 * Lanes wait for each other on the way out, as they do behind the loop anyhow where paths join.
 *
 * Rounds of this lane are what the counter of its threads has counted: of a loop that runs once in an activation. */
#include "analysis/lone_loop.h"
#include "count/storage/storage.h"

#include <stdlib.h>

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

struct rounds { /* of one loop */
    struct mg_lone_loop loop;
    uint32_t counter; /* of the lane's rounds */
    bool less_one;    /* it has one less than there are */
};

/* The counter that tells how often this lane went around. */
static bool find_counter(const struct mg_rfunc *f, uint32_t b, uint32_t loop, struct rounds *r)
{
    for (uint32_t i = 0; i < f->n_measured; i++) {
        const struct mg_count *k = &f->plan->list[i];
        enum mg_rc_kind kind = f->counters[i].kind;
        if (kind != MG_RC_32 && kind != MG_RC_64) continue;
        bool here = k->kind == MG_COUNT_BLOCK && k->block == b,
             again = k->kind == MG_COUNT_EDGE && k->block == b && f->x.c->edges[k->edge] == b,
             iv = k->kind == MG_COUNT_IV && f->plan->ivs->list[k->iv].loop == loop && k->one_run && !k->n_ifs;
        if (!here && !again && !iv) continue;
        if (f->counters[i].guarded) return false; /* may have been taken to memory since */
        r->counter = i;
        r->less_one = again || (iv && k->less_one && !k->restores);
        return true;
    }
    return false;
}

static bool may_count(const struct mg_rfunc *f, uint32_t b, struct rounds *r)
{
    uint32_t loop = f->plan->loops->loop_of[b];
    if (!f->redux || f->warps.ballot || f->calls.carried || f->calls.adds || f->o->scope != MG_COUNT_FULL ||
        loop == MG_NO_LOOP)
        return false;
    const struct mg_loop *l = &f->plan->loops->loops[loop];
    return l->parent == MG_NO_LOOP && !mg_storage_of(&f->counters[f->warps.counter[b]])->packed &&
           mg_storage_of(&f->counters[f->warps.counter[b]])->add &&
           f->counters[f->warps.counter[b]].kind != MG_RC_CARRY &&
           mg_lone_loop_of(f->x.c, f->plan->loops, b, &r->loop) && find_counter(f, b, loop, r);
}

/* most = the most of all lanes of the mask, of 64 bits. */
static void find_most(struct mg_rfunc *f, const struct mg_rc *c, mg_id mask, mg_id most)
{
    struct mg_emit *x = &f->x;
    mg_id low = mg_rc_t32(f, 5), high = mg_rc_t32(f, 6), top = mg_rc_t32(f, 7), p = mg_rc_tp(f, 1),
          wide = mg_rc_t64(f, 2);
    EMIT("sub.s64", most, c->reg, mg_o_imm(mg_rc_zero(c)));
    EMIT("cvt.u32.u64", low, most);
    EMIT("shr.u64", most, most, 32);
    EMIT("cvt.u32.u64", high, most);
    EMIT("redux.sync.max.u32", top, high, mask);
    EMIT("setp.eq.u32", p, high, top);
    EMIT("selp.b32", low, low, 0, p);
    EMIT("redux.sync.max.u32", low, low, mask);
    EMIT("cvt.u64.u32", most, top);
    EMIT("shl.b64", most, most, 32);
    EMIT("cvt.u64.u32", wide, low);
    EMIT("or.b64", most, most, wide);
}

bool mg_rounds_emit(struct mg_rfunc *f, uint32_t b)
{
    struct mg_emit *x = &f->x;
    struct rounds r = {0};
    if (!may_count(f, b, &r)) return false;
    const struct mg_rc *c = &f->counters[r.counter], *w = &f->counters[f->warps.counter[b]];
    bool is_wide = mg_storage_of(w)->wide || mg_rc_in_memory(w); /* else it has fewer than 2^32 */
    mg_id mask = mg_emit_reg(x, "__mg_in", MG_TYPE_b32), t = mg_rc_t32(f, 5), most = mg_rc_t32(f, 6),
          all = mg_rc_t64(f, 1);
    struct mg_spot in = mg_place_edge(&f->place, r.loop.from, r.loop.in), out = mg_place_edge(&f->place, b, r.loop.out);
    mg_assert(!in.guard && !out.guard);
    x->at = in.at;
    EMIT("activemask.b32", mask);
    mg_rc_own(f, mask, mask, t);
    x->at = out.at;
    if (mg_storage_of(c)->wide)
        find_most(f, c, mask, all);
    else
        EMIT("redux.sync.max.u32", most, c->reg, mask);
    if (mg_storage_of(c)->wide && !is_wide) EMIT("cvt.u32.u64", most, all);
    if (!mg_storage_of(c)->wide && is_wide) EMIT("cvt.u64.u32", all, most);
    if (r.less_one) EMIT(is_wide ? "add.u64" : "add.u32", is_wide ? all : most, is_wide ? all : most, 1);
    EMIT("and.b32", t, mask, f->warps.lt);
    EMIT("setp.eq.u32", f->warps.low, t, 0);
    out.guard = f->warps.low;
    mg_emit_guard(x, out.guard, false);
    mg_storage_of(w)->add(f, f->warps.counter[b], is_wide ? all : most, is_wide, out);
    mg_emit_guard(x, 0, false);
    return true;
}
