/* --check: shadow registers and the step before an arithmetic instruction (defined.h). As long as all
 * sources are defined a step is a handful of masks; only lanes with undefined bits are looked at one by one. */
#include "device/emu/defined.h"
#include "device/emu/check.h"

#include <stdlib.h>
#include <string.h>

#define OP(o) ((const struct emu_op *)(const void *)(o))

/* ---- frames ---------------------------------------------------------------------------------------- */

static bool make_room(struct emu_frame *f)
{
    uint32_t n = f->fn->n_marks;
    struct emu_shade *s = calloc(1, sizeof *s);
    if (!s) return false;
    s->marks = calloc(n, sizeof *s->marks);
    f->shade = s;
    if (s->marks) return true;
    emu_defined_free(f);
    return false;
}

/* Bits and origins, once there is something undefined to be kept. Without memory for them it counts as defined. */
static bool make_bits(struct emu_frame *f)
{
    struct emu_shade *s = f->shade;
    uint32_t n = f->fn->n_marks;
    if (!s->bits) s->bits = malloc(n * sizeof *s->bits);
    if (!s->origin) s->origin = malloc(n * sizeof *s->origin);
    return s->bits && s->origin;
}

void emu_defined_enter(struct emu_frame *f)
{
    const struct emu_func *fn = f->fn;
    if (!f->shade && !make_room(f)) {
        if (f->parent)
            emu_fault(f->parent, f->call, MG_FAULT_MEMORY, emu_first(f->mask), 0, 0, "host memory ran out for a call");
        return;
    }
    emu_defined_activation(f);
    for (uint32_t i = 1; i < fn->n_marks; i++) f->shade->marks[i] = (struct emu_mark){UINT32_MAX, UINT32_MAX};
}

void emu_defined_free(struct emu_frame *f)
{
    struct emu_shade *s = f->shade;
    if (!s) return;
    free(s->marks);
    free(s->bits);
    free(s->origin);
    free(s);
    f->shade = NULL;
}

/* ---- one operand of one lane ------------------------------------------------------------------------ */

static uint64_t all_of(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

uint64_t emu_defined_get(const struct emu_frame *f, const struct emu_def_opnd *s, uint32_t lane, uint32_t *origin)
{
    const struct emu_mark *m = &f->shade->marks[s->mark];
    if (!(m->some >> lane & 1)) return 0;
    if (m->fresh >> lane & 1) {
        if (origin && !*origin) *origin = EMU_ORIGIN(EMU_ORIGIN_REGISTER, f->fn->marks[s->mark].reg);
        return all_of(f->fn->marks[s->mark].bits);
    }
    if (origin && !*origin) *origin = f->shade->origin[s->mark][lane];
    return f->shade->bits[s->mark][lane];
}

void emu_defined_put(struct emu_frame *f, const struct emu_def_opnd *d, uint32_t lane, uint64_t bits, uint32_t origin)
{
    struct emu_mark *m = &f->shade->marks[d->mark];
    bits &= all_of(d->bits);
    if (!d->mark || !bits || !make_bits(f)) {
        m->some &= ~(1u << lane);
        return;
    }
    m->some |= 1u << lane;
    m->fresh &= ~(1u << lane);
    f->shade->bits[d->mark][lane] = bits;
    f->shade->origin[d->mark][lane] = origin;
}

void emu_defined_clear(struct emu_frame *f, uint32_t mark, uint32_t mask)
{
    f->shade->marks[mark].some &= ~mask;
}

uint64_t emu_defined_value(const struct emu_frame *f, const struct emu_def_opnd *s, uint32_t lane)
{
    const char *r = f->regs + s->off;
    if (!s->off) return s->value;
    switch ((enum emu_class)s->cls) {
    case EMU_P:
        return ((*(const uint32_t *)(const void *)r >> lane) ^ s->flip) & 1;
    case EMU_W:
        return ((const uint32_t *)(const void *)r)[lane];
    case EMU_Q:
        return ((const uint64_t *)(const void *)r)[2 * lane];
    default:
        return ((const uint64_t *)(const void *)r)[lane];
    }
}

/* ---- steps ----------------------------------------------------------------------------------------- */

/* Lanes that execute the instruction; those with an undefined guard count. */
static uint32_t on(const struct emu_op *op, const struct emu_mark *marks, const char *regs, uint32_t mask)
{
    return op->guard
               ? mask & ((*(const uint32_t *)(const void *)(regs + op->guard) ^ op->guard_flip) | marks[op->a.cc].some)
               : mask;
}

/* ORDER STEP: a.s[0..3] marks of sources, a.cc of the guard, a.d and a.d2 of results; ext has the rest. */
void emu_defined_step(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_mark *marks = f->shade->marks;
    uint32_t m = on(op, marks, regs, mask), some = marks[o->s[0]].some | marks[o->s[1]].some | marks[o->s[2]].some |
                                                   marks[o->s[3]].some | marks[o->cc].some;
    const struct emu_def *d = op->ext;
    for (uint32_t i = 4; i < d->n_src; i++) some |= marks[d->src[i].mark].some;
    some &= m;
    marks[o->d].some &= ~(m & ~some);
    marks[o->d2].some &= ~(m & ~some);
    for (uint32_t i = 2; i < d->n_dst; i++) marks[d->dst[i].mark].some &= ~(m & ~some);
    if (MG_LIKELY(!some)) return;
    uint32_t unsure = marks[o->cc].some & some;
    EMU_FOR_LANES(i, some & ~unsure) emu_defined_lane(d, f, i);
    EMU_FOR_LANES(i, unsure) /* who knows whether it is executed: nothing is left of the results */
    {
        uint32_t origin = 0;
        struct emu_def_opnd g = {.mark = o->cc};
        emu_defined_get(f, &g, i, &origin);
        for (uint32_t k = 0; k < d->n_dst; k++) emu_defined_put(f, &d->dst[k], i, UINT64_MAX, origin);
    }
}

void emu_defined_told(struct emu_frame *f, const struct emu_op *op, enum emu_use use, uint32_t lane, uint32_t times,
                      uint32_t origin, uint32_t bytes, uint8_t store)
{
    const struct emu_cta *c = f->w->cta;
    uint32_t space = EMU_ORIGIN_SPACE(origin), what = EMU_ORIGIN_WHAT(origin);
    uint64_t address = 0;
    struct emu_found x = {.kind = MG_FINDING_UNINIT,
                          .misuse = (uint8_t)use,
                          .what = use == EMU_USE_COPIED ? store : EMU_CHECK_READ,
                          .other_what = (uint8_t)space,
                          .site = op->site,
                          .thread = f->w->ix * EMU_LANES + lane,
                          .bytes = bytes,
                          .linear = c->linear,
                          .times = times};
    if (space == EMU_ORIGIN_REGISTER)
        x.at = what;
    else {
        x.other_site = what;
        x.other_thread = x.thread;
        mg_map_get(&f->wk->origins, origin, &address);
        x.n[0] = (uint32_t)address, x.n[1] = (uint32_t)(address >> 32);
    }
    memcpy(x.cta, c->id, sizeof x.cta);
    emu_check_found(f, &x);
}

void emu_defined_use(struct emu_frame *f, const struct emu_op *op, const struct emu_def_opnd *s, enum emu_use use,
                     uint32_t mask, uint32_t bytes)
{
    uint32_t some = f->shade->marks[s->mark].some & mask;
    if (!some) return;
    uint32_t lane = (uint32_t)emu_first(some), origin = 0;
    emu_defined_get(f, s, lane, &origin);
    emu_defined_told(f, op, use, lane, emu_popc(some), origin, bytes, 0);
    emu_defined_clear(f, s->mark, some);
}

/* A guard, and sources that decide where the lanes go or what others see. a.cc: the guard; ext: the rest. */
void emu_defined_check(const struct emu_alu *o, char *regs, uint32_t mask)
{
    const struct emu_op *op = OP(o);
    struct emu_frame *f = EMU_FRAME(regs);
    struct emu_mark *marks = f->shade->marks;
    const struct emu_def *d = op->ext;
    uint32_t some = marks[o->cc].some & mask, m = mask;
    if (MG_UNLIKELY(some)) {
        struct emu_def_opnd g = {.mark = o->cc};
        emu_defined_use(f, op, &g, EMU_USE_BRANCH, mask, 0);
    }
    if (!d) return;
    if (op->guard) m &= *(const uint32_t *)(const void *)(regs + op->guard) ^ op->guard_flip;
    for (uint32_t i = 0; i < d->n_src; i++) emu_defined_use(f, op, &d->src[i], (enum emu_use)d->use, m, 0);
    for (uint32_t i = 0; i < d->n_dst; i++) emu_defined_clear(f, d->dst[i].mark, m);
}
