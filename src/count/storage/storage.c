/* The storage classes, and what asks each of them. */
#include "count/storage/storage.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

static const struct mg_storage *const classes[] = {
    /* by enum mg_rc_kind */
    [MG_RC_BIT] = &mg_storage_bit,       [MG_RC_32] = &mg_storage_32,       [MG_RC_CARRY] = &mg_storage_carry,
    [MG_RC_64] = &mg_storage_64,         [MG_RC_LOCAL] = &mg_storage_local, [MG_RC_FLAG] = &mg_storage_flag,
    [MG_RC_SHARED] = &mg_storage_shared, [MG_RC_FEW] = &mg_storage_few,     [MG_RC_FIELD] = &mg_storage_field,
    [MG_RC_ALONE] = &mg_storage_alone,
};
_Static_assert(MG_COUNT_OF(classes) == MG_RC_KINDS, "a class for each kind");
/* In which order they are asked. What happens a bounded number of times goes first; then memory, which holds a counter
 * only when registers are full; then registers, the last of which holds anything. carry.c asks none: it gives field to
 * functions whose counters travel. */
static const enum mg_rc_kind order[] = {MG_RC_FEW,    MG_RC_ALONE, MG_RC_BIT, MG_RC_FLAG, MG_RC_FIELD,
                                        MG_RC_SHARED, MG_RC_LOCAL, MG_RC_64,  MG_RC_32,   MG_RC_CARRY};

uint32_t mg_storage_unasked;

const struct mg_storage *mg_storage_of(const struct mg_rc *c)
{
    return classes[c->kind];
}

const struct mg_storage *mg_storage_at(uint32_t kind)
{
    return kind < MG_COUNT_OF(classes) ? classes[kind] : NULL;
}

bool mg_storage_any(const struct mg_rfunc *f, enum mg_rc_kind kind, const uint64_t *set)
{
    if (!classes[kind]->flush) return false;
    if (classes[kind]->any) return classes[kind]->any(f, set);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->counters[i].kind == kind && mg_rc_in(set, i)) return true;
    return false;
}

bool mg_rc_in_memory(const struct mg_rc *c)
{
    return classes[c->kind]->in_memory;
}

void mg_storage_choose(struct mg_kinds *k, const struct mg_wanted *w)
{
    struct mg_rc *c = &k->f->counters[w->counter];
    for (size_t i = 0; i < MG_COUNT_OF(order); i++) {
        const struct mg_storage *s = classes[order[i]];
        bool beside = order[i] != MG_RC_SHARED && order[i] != MG_RC_FEW;
        if (beside && (k->f->shared.all || k->in_loops)) continue; /* nothing else is flushed then */
        if (mg_storage_unasked >> order[i] & 1) continue;
        const char *why = s->holds(k, w);
        if (!why) continue;
        c->kind = order[i];
        c->why = why;
        s->take(k, w);
        return;
    }
}

void mg_rc_event(struct mg_rfunc *f, uint32_t counter, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    x->at = s.at;
    mg_emit_guard(x, s.guard, s.guard_not);
    mg_storage_of(&f->counters[counter])->event(f, counter);
    mg_emit_guard(x, 0, false);
}

static void begin_classes(struct mg_rfunc *f, bool in_memory, bool at_call)
{
    for (size_t i = 0; i < MG_COUNT_OF(classes); i++)
        if (classes[i]->begin && classes[i]->in_memory == in_memory) classes[i]->begin(f, at_call);
}

void mg_rc_clear(struct mg_rfunc *f, const uint64_t *set)
{
    begin_classes(f, false, set != NULL);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct mg_storage *s = mg_storage_of(&f->counters[i]);
        if (mg_rc_in(set, i) && s->clear) s->clear(f, &f->counters[i], set != NULL);
    }
    begin_classes(f, true, set != NULL);
}

void mg_rc_add_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id base, mg_id guard)
{
    struct mg_emit *x = &f->x;
    mg_id p = mg_rc_tp(f, 1);
    (void)mg_rc_t64(f, 0), (void)mg_rc_t32(f, 7);
    if (!mg_storage_of(c)->lane) return;
    struct mg_opnd v = mg_storage_of(c)->lane(f, c, p);
    if (guard) EMIT("and.pred", p, p, guard);
    mg_emit_guard(x, p, false);
    EMIT("red.global.add.u64", mg_o_addr_reg(base, 8 * (int64_t)c->slot), v);
    mg_emit_guard(x, 0, false);
}

mg_id mg_storage_register(const struct mg_rfunc *f, const struct mg_rc *c)
{
    (void)f;
    return c->reg;
}
