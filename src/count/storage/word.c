/* Registers of 32 bits. Where more events are possible they are either counted round by round (shared.c), so that the
 * register never fills up, or the overflow goes to memory at once (below). */
#include "count/storage/storage.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

static const char *word_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    if (k->guarded[w->counter]) return "rounds of its loop are counted, so 32 bits do";
    return w->width != MG_WIDTH_64 ? "fewer than 2^32 events" : NULL;
}

static void word_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    struct mg_rc *c = &k->f->counters[w->counter];
    c->small = c->guarded = k->guarded[w->counter];
    k->cells += k->need;
    k->f->n_words++;
}

static void word_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    EMIT("add.u32", c->reg, c->reg, 1);
}

static void word_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    (void)wide, (void)s;
    EMIT("add.u32", c->reg, c->reg, d);
}

static void word_clear(struct mg_rfunc *f, const struct mg_rc *c, bool at_call)
{
    struct mg_emit *x = &f->x;
    (void)at_call;
    EMIT("mov.u32", c->reg, 0);
}

static struct mg_opnd word_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id wide = mg_rc_t64(f, 0);
    EMIT("setp.ne.u32", p, c->reg, 0);
    EMIT("cvt.u64.u32", wide, c->reg);
    return mg_o_reg(wide);
}

static void word_part(struct mg_rfunc *f, const struct mg_rc *c, mg_id d)
{
    struct mg_emit *x = &f->x;
    EMIT("mov.b32", d, c->reg);
}

const struct mg_storage mg_storage_32 = {.name = "32",
                                         .alike = true,
                                         .holds = word_holds,
                                         .take = word_take,
                                         .event = word_event,
                                         .add = word_add,
                                         .clear = word_clear,
                                         .lane = word_lane,
                                         .part = word_part};

/* ---- overflow to memory ----------------------------------------------------------------------------- */

static const char *carry_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)k, (void)w;
    return "2^32 events or more, not in an innermost loop";
}

static void carry_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)w;
    k->cells += k->need;
    k->f->n_words++;
}

/* Adds n; on overflow 2^32 goes to memory at once. */
static void add_carry(struct mg_rfunc *f, uint32_t counter, struct mg_opnd n)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    mg_id p = mg_rc_tp(f, 0), big = mg_rc_t64(f, 0), guard = x->guard;
    bool one = n.kind == MG_OPND_imm, not_guard = x->guard_not;
    EMIT("add.u32", c->reg, c->reg, n);
    mg_emit_guard(x, 0, false);
    if (!guard)
        EMIT(one ? "setp.eq.u32" : "setp.lt.u32", p, c->reg, one ? mg_o_imm(0) : n);
    else
        EMIT(one ? "setp.eq.and.u32" : "setp.lt.and.u32", p, c->reg, one ? mg_o_imm(0) : n,
             not_guard ? mg_o_not(guard) : mg_o_reg(guard));
    EMIT("mov.u64", big, (int64_t)1 << 32);
    mg_emit_guard(x, p, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(x->ctx, MG_CTX_BYTES + 8 * ((int64_t)f->at + c->slot)), big);
    mg_emit_guard(x, guard, not_guard);
}

static void carry_event(struct mg_rfunc *f, uint32_t counter)
{
    add_carry(f, counter, mg_o_imm(1));
}

static void carry_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, struct mg_spot s)
{
    (void)wide, (void)s;
    add_carry(f, counter, mg_o_reg(d));
}

const struct mg_storage mg_storage_carry = {.name = "carry",
                                            .holds = carry_holds,
                                            .take = carry_take,
                                            .event = carry_event,
                                            .add = carry_add,
                                            .clear = word_clear,
                                            .lane = word_lane,
                                            .part = word_part};
