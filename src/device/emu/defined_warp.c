/* --check: operations among the lanes of a warp (defined.h), before the values are exchanged. A shuffled
 * value brings its undefined bits along, a ballot has a bit for each lane, a vote is undefined where the
 * lanes that are defined do not decide it. */
#include "device/emu/defined.h"

struct value {
    uint64_t bits, value;
    uint32_t origin;
};

static void gather(const struct emu_part *parts, uint32_t n, struct value *v, uint32_t *some)
{
    for (uint32_t k = 0; k < n; k++) {
        struct emu_frame *f = EMU_FRAME(parts[k].regs);
        const struct emu_def *d = parts[k].op->ext;
        EMU_FOR_LANES(i, parts[k].mask)
        {
            v[i] = (struct value){0};
            v[i].bits = emu_defined_get(f, &d->src[0], i, &v[i].origin);
            v[i].value = emu_defined_value(f, &d->src[0], i);
            if (v[i].bits) *some |= 1u << i;
        }
    }
}

static void shuffle(const struct emu_part *part, const struct value *v, uint32_t lanes, const struct emu_def *d)
{
    struct emu_frame *f = EMU_FRAME(part->regs);
    struct value out[EMU_LANES];
    EMU_FOR_LANES(i, part->mask)
    {
        uint32_t from, origin = 0;
        uint64_t u = emu_defined_get(f, &d->src[1], i, &origin);
        emu_shfl_source(part->op->mode, i, (uint32_t)emu_defined_value(f, &d->src[1], i),
                        (uint32_t)emu_defined_value(f, &d->src[2], i), &from);
        if (!(lanes >> from & 1)) from = i;
        out[i] = v[from];
        if (u) out[i].bits = UINT64_MAX, out[i].origin = origin;
    }
    EMU_FOR_LANES(i, part->mask)
    {
        emu_defined_put(f, &d->dst[0], i, out[i].bits, out[i].origin);
        for (uint32_t k = 1; k < d->n_dst; k++) emu_defined_put(f, &d->dst[k], i, 0, 0);
    }
}

/* Undefined bits of the one result of all lanes. */
static uint64_t combined(const struct emu_part *part, const struct value *v, uint32_t lanes, uint32_t some,
                         const struct emu_def *d)
{
    const struct mg_form *form =
        mg_node_form(EMU_FRAME(part->regs)->fn->mod->ir, &EMU_FRAME(part->regs)->fn->mod->ir->nodes.at[part->op->node]);
    uint64_t zeros = 0, ones = 0, u = 0;
    EMU_FOR_LANES(i, lanes)
    {
        u |= v[i].bits;
        zeros |= ~v[i].value & ~v[i].bits;
        ones |= v[i].value & ~v[i].bits;
    }
    if (d->op == MG_OP_vote) {
        if (mg_form_has(form, MG_MOD_ballot)) return some;
        if (mg_form_has(form, MG_MOD_all)) return zeros & 1 ? 0 : 1;
        if (mg_form_has(form, MG_MOD_any)) return ones & 1 ? 0 : 1;
        return zeros & ones & 1 ? 0 : 1;
    }
    if (d->op == MG_OP_redux && mg_form_has(form, MG_MOD_and)) return u & ~zeros;
    if (d->op == MG_OP_redux && mg_form_has(form, MG_MOD_or)) return u & ~ones;
    if (d->op == MG_OP_redux && mg_form_has(form, MG_MOD_xor)) return u;
    return UINT64_MAX;
}

void emu_defined_sync(const struct emu_part *parts, uint32_t n, uint32_t lanes)
{
    struct value v[EMU_LANES];
    uint32_t some = 0;
    const struct emu_def *d = parts[0].op->ext;
    if (!d || d->op == MG_OP_elect) {
        for (uint32_t k = 0; d && k < n; k++)
            for (uint32_t j = 0; j < d->n_dst; j++)
                emu_defined_clear(EMU_FRAME(parts[k].regs), ((const struct emu_def *)parts[k].op->ext)->dst[j].mark,
                                  parts[k].mask);
        return;
    }
    gather(parts, n, v, &some);
    for (uint32_t k = 0; k < n; k++) {
        struct emu_frame *f = EMU_FRAME(parts[k].regs);
        const struct emu_def *own = parts[k].op->ext;
        uint64_t bits = some && d->op != MG_OP_shfl ? combined(&parts[k], v, lanes, some, own) : 0;
        if (d->op == MG_OP_shfl && (some || f->shade->marks[own->src[1].mark].some & parts[k].mask)) {
            shuffle(&parts[k], v, lanes, own);
            continue;
        }
        EMU_FOR_LANES(i, bits ? parts[k].mask : 0)
        for (uint32_t j = 0; j < own->n_dst; j++) emu_defined_put(f, &own->dst[j], i, bits, v[emu_first(some)].origin);
        for (uint32_t j = 0; !bits && j < own->n_dst; j++) emu_defined_clear(f, own->dst[j].mark, parts[k].mask);
    }
}
