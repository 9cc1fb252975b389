/* Bits: what happens at most once in an activation is a bit of a packed register, 30 of them in each. */
#include "count/storage/storage.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

static const char *bit_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    bool room = !k->saved && k->f->n_bits < MG_BANK * MG_BIT_BANKS;
    return w->width == MG_WIDTH_BIT && room ? "at most once in an activation" : NULL;
}

static void bit_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    k->f->counters[w->counter].slot = k->f->n_bits++;
}

static mg_id bit_reg(struct mg_rfunc *f, struct mg_rc *c)
{
    c->bit = mg_rc_bit(c->slot);
    return f->packed.banks[f->packed.n_cuts ? 0 : c->slot / MG_BANK];
}

static void bit_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    EMIT("or.b32", c->reg, c->reg, (int64_t)1 << c->bit);
}

static void bit_begin(struct mg_rfunc *f, bool at_call)
{
    struct mg_emit *x = &f->x;
    (void)at_call;
    for (uint32_t k = 0; k < f->packed.n_banks; k++) EMIT("mov.u32", f->packed.banks[k], 0);
}

static struct mg_opnd bit_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id bit = mg_rc_t32(f, 7);
    EMIT("and.b32", bit, c->reg, (int64_t)1 << c->bit);
    EMIT("setp.ne.u32", p, bit, 0);
    return mg_o_imm(1);
}

const struct mg_storage mg_storage_bit = {.name = "bit",
                                          .packed = true,
                                          .alike = true,
                                          .holds = bit_holds,
                                          .take = bit_take,
                                          .reg = bit_reg,
                                          .event = bit_event,
                                          .begin = bit_begin,
                                          .lane = bit_lane,
                                          .told = mg_storage_register};
