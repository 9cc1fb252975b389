/* Small fields: what happens at most MG_COUNT_FEW times in an activation is 2 bits of a packed register. What happens
 * in loops may be 8 bits of one, which spill.c empties in time. */
#include "count/storage/storage.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

static const char *few_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)k;
    return w->few ? "at most 3 times in an activation" : NULL;
}

static void few_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    k->f->counters[w->counter].width = 2;
    k->f->n_words++;
}

static mg_id few_reg(struct mg_rfunc *f, struct mg_rc *c)
{
    (void)c; /* kinds.c knows its bits */
    if (!f->packed.few) f->packed.few = mg_emit_reg(&f->x, "__mg_few", MG_TYPE_u32);
    return f->packed.few;
}

static void few_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    EMIT("add.u32", c->reg, c->reg, (int64_t)1 << c->bit);
}

void mg_few_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, bool minus)
{
    struct mg_emit *x = &f->x;
    const struct mg_rc *c = &f->counters[counter];
    if (wide) {
        mg_id narrow = mg_emit_reg(x, "__mg_v", MG_TYPE_u32);
        EMIT("cvt.u32.u64", narrow, d);
        d = narrow;
    }
    EMIT("mad.lo.u32", c->reg, d, mg_o_imm(minus ? -((int64_t)1 << c->bit) : (int64_t)1 << c->bit), c->reg);
}

static void few_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, struct mg_spot s)
{
    (void)s;
    mg_few_add(f, counter, d, wide, false);
}

static void few_begin(struct mg_rfunc *f, bool at_call)
{
    struct mg_emit *x = &f->x;
    (void)at_call;
    if (f->packed.n_few) EMIT("mov.u32", f->packed.few, 0);
}

static struct mg_opnd few_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id p)
{
    struct mg_emit *x = &f->x;
    mg_id wide = mg_rc_t64(f, 0), bit = mg_rc_t32(f, 7);
    EMIT("bfe.u32", bit, c->reg, mg_o_imm(c->bit), mg_o_imm(c->width));
    EMIT("setp.ne.u32", p, bit, 0);
    EMIT("cvt.u64.u32", wide, bit);
    return mg_o_reg(wide);
}

static void few_part(struct mg_rfunc *f, const struct mg_rc *c, mg_id d)
{
    struct mg_emit *x = &f->x;
    EMIT("bfe.u32", d, c->reg, mg_o_imm(c->bit), mg_o_imm(c->width));
}

/* ---- fields of 8 bits -------------------------------------------------------------------------------- */

static const char *field_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)k;
    return w->field ? "rounds of its loop are counted, so a byte does" : NULL;
}

static void field_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    struct mg_rc *c = &k->f->counters[w->counter];
    c->width = 8;
    c->bit = k->f->packed.n_fields % 4 * 8;
    c->cell = k->f->packed.n_fields++ / 4;
    k->cells += !c->bit;
    k->f->n_words++;
}

static mg_id field_reg(struct mg_rfunc *f, struct mg_rc *c)
{
    if (!f->packed.fields)
        f->packed.fields = mg_module_add_regs(f->x.m, f->x.func, "__mg_f", MG_TYPE_b32, (f->packed.n_fields + 3) / 4);
    return f->packed.fields + c->cell;
}

/* The register's first field stands for all; of a call, one by one. */
static void field_clear(struct mg_rfunc *f, const struct mg_rc *c, bool at_call)
{
    struct mg_emit *x = &f->x;
    if (at_call)
        EMIT("and.b32", c->reg, c->reg, mg_o_imm(~(255u << c->bit)));
    else if (!c->bit)
        EMIT("mov.u32", c->reg, 0);
}

const struct mg_storage mg_storage_few = {.name = "few",
                                          .packed = true,
                                          .alike = true,
                                          .holds = few_holds,
                                          .take = few_take,
                                          .reg = few_reg,
                                          .event = few_event,
                                          .add = few_add,
                                          .begin = few_begin,
                                          .lane = few_lane,
                                          .part = few_part,
                                          .told = mg_storage_register};
/* Those that travel with calls are given out by carry.c, and emptied by spill.c. */
const struct mg_storage mg_storage_field = {.name = "field",
                                            .packed = true,
                                            .holds = field_holds,
                                            .take = field_take,
                                            .reg = field_reg,
                                            .event = few_event,
                                            .clear = field_clear,
                                            .lane = few_lane,
                                            .part = few_part,
                                            .told = mg_storage_register};
