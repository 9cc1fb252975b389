/* Registers of 64 bits, for as many events as there may be. Devices that add doubles at half the speed of floats count
 * in those: one instruction instead of two. The register then begins at 2^52, so that its lower bits are the count. */
#include "count/storage/storage.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)
#define ONE       0x3ff0000000000000 /* doubles: 1 and 2^52 */
#define BIAS      0x4330000000000000

int64_t mg_rc_zero(const struct mg_rc *c)
{
    return c->real ? BIAS : 0;
}

void mg_rc_unreal(struct mg_rfunc *f, const uint64_t *set)
{
    struct mg_emit *x = &f->x;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->counters[i].real && mg_rc_in(set, i)) EMIT("sub.s64", f->counters[i].reg, f->counters[i].reg, BIAS);
}

static const char *wide_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    if (k->need != 2 && (k->need || w->width != MG_WIDTH_64)) return NULL;
    return k->need ? "2^32 events or more" : "2^32 events or more, begins where its loop has ended";
}

static void wide_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    k->f->counters[w->counter].real = mg_kinds_in_reals(k->f, w->counter);
    k->cells += k->need;
    k->f->n_words++;
}

/* ptxas makes a sum, a copy and two selections of a double's addition under a guard; of this a selection and a sum. */
static void add_guarded(struct mg_rfunc *f, mg_id real)
{
    struct mg_emit *x = &f->x;
    mg_id guard = x->guard, low = mg_rc_t32(f, 5), high = mg_rc_t32(f, 6), one = mg_rc_t64(f, 0);
    struct mg_opnd some = mg_o_imm(ONE >> 32), none = mg_o_imm(0);
    bool is_not = x->guard_not;
    mg_emit_guard(x, 0, false);
    EMIT("mov.b32", low, 0);
    EMIT("selp.b32", high, is_not ? none : some, is_not ? some : none, guard);
    struct mg_opnd pair = mg_rc_pair(f, low, high);
    EMIT("mov.b64", one, pair);
    EMIT("add.f64", real, real, one);
    mg_emit_guard(x, guard, is_not);
}

static void wide_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    if (c->real && x->guard)
        add_guarded(f, c->reg);
    else if (c->real)
        EMIT("add.f64", c->reg, c->reg, ((struct mg_opnd){.kind = MG_OPND_f64, .val = ONE}));
    else
        EMIT("add.u64", c->reg, c->reg, 1);
}

static void wide_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    mg_id all = wide ? d : mg_emit_reg(x, "__mg_v", MG_TYPE_u64);
    (void)s;
    if (!wide) EMIT("cvt.u64.u32", all, d);
    EMIT("add.u64", c->reg, c->reg, all);
}

static void wide_clear(struct mg_rfunc *f, const struct mg_rc *c, bool at_call)
{
    struct mg_emit *x = &f->x;
    (void)at_call;
    EMIT("mov.u64", c->reg, mg_o_imm(mg_rc_zero(c)));
}

static struct mg_opnd wide_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id p)
{
    struct mg_emit *x = &f->x;
    EMIT("setp.ne.u64", p, c->reg, 0);
    return mg_o_reg(c->reg);
}

static void wide_part(struct mg_rfunc *f, const struct mg_rc *c, mg_id d)
{
    struct mg_emit *x = &f->x;
    EMIT("cvt.u32.u64", d, c->reg);
}

const struct mg_storage mg_storage_64 = {.name = "64",
                                         .wide = true,
                                         .alike = true,
                                         .holds = wide_holds,
                                         .take = wide_take,
                                         .event = wide_event,
                                         .add = wide_add,
                                         .clear = wide_clear,
                                         .lane = wide_lane,
                                         .part = wide_part};
