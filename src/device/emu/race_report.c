/* --check: races on global memory in words. */
#include "device/emu/race.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/mem.h"

void emu_race_found(struct emu_frame *f, const struct emu_race_fact *x)
{
    const struct emu_cta *c = f->w->cta;
    unsigned kind = EMU_RACE_KIND_OF(x->other);
    struct emu_found e = {
        .kind = x->same ? MG_FINDING_NOTE : MG_FINDING_RACE,
        .global = true,
        .what = (uint8_t)(x->what | (x->what == (EMU_CHECK_READ | EMU_CHECK_WRITE) ? EMU_CK_ATOMIC << 4 : 0)),
        .other_what = (uint8_t)(kind == EMU_RACE_ATOMIC && x->other_what & EMU_CHECK_WRITE
                                    ? EMU_CHECK_READ | EMU_CHECK_WRITE | EMU_CK_ATOMIC << 4
                                    : x->other_what),
        .site = x->site,
        .other_site = EMU_RACE_SITE_OF(x->other),
        .thread = f->w->ix * EMU_LANES + x->lane,
        .other_thread = EMU_RACE_WARP_OF(x->other) * EMU_LANES + EMU_RACE_LANE_OF(x->other),
        .other_linear = EMU_RACE_CTA_OF(x->other),
        .address = x->address,
        .bytes = x->bytes,
        .linear = c->linear,
        .times = 1};
    memcpy(e.cta, c->id, sizeof e.cta);
    emu_check_found(f, &e);
}

/* The kernel's parameter that points into the allocation; UINT32_MAX: none. */
static uint32_t argument_of(const struct emu_launch *l, const struct mg_alloc *a)
{
    const struct mg_dkernel *k = l->code->kernel;
    for (uint32_t i = 0; i < k->n_params; i++) {
        uint64_t v;
        if (k->param_sizes[i] != 8 || k->param_offsets[i] + 8 > l->param_bytes) continue;
        memcpy(&v, l->params + k->param_offsets[i], 8);
        if (v - a->base < a->bytes) return i;
    }
    return UINT32_MAX;
}

static void name_place(const struct emu_launch *l, uint64_t address, struct mg_finding *f)
{
    struct mg_alloc a;
    snprintf(f->allocation, sizeof f->allocation, "global memory");
    if (!mg_mem_find(address, &a)) return;
    f->allocation_address = a.base;
    f->allocation_bytes = a.bytes;
    uint32_t argument = argument_of(l, &a);
    if (emu_variable_name(l->dev, &a, f->allocation, sizeof f->allocation)) return;
    if (argument != UINT32_MAX)
        snprintf(f->allocation, sizeof f->allocation, "the buffer of arg %u", argument);
    else
        snprintf(f->allocation, sizeof f->allocation, "allocation %" PRIu64, a.id);
}

static const char *why(const struct emu_found *x)
{
    if (x->linear == x->other_linear && x->thread / EMU_LANES == x->other_thread / EMU_LANES)
        return "lanes of one warp, different values";
    if (x->kind == MG_FINDING_NOTE) return "nothing orders them, both store the same value";
    return x->linear == x->other_linear ? "no barrier or fence with a flag orders them" : "nothing orders these CTAs";
}

void emu_race_describe(struct emu_launch *l, const struct emu_found *x, struct mg_finding *f)
{
    struct mg_buf b = MG_BUF_INIT;
    const struct mg_dim3 *g = &l->l->grid;
    const uint32_t *c = f->cta, *t = f->at.thread, *o = f->other.thread, *d = f->other_cta;
    f->other_cta[0] = (uint32_t)(x->other_linear % g->x), f->other_cta[1] = (uint32_t)(x->other_linear / g->x % g->y),
    f->other_cta[2] = (uint32_t)(x->other_linear / g->x / g->y);
    f->address = x->address;
    name_place(l, x->address, f);
    mg_buf_printf(&b, "kernel %s: %s: %s of %u bytes of global memory at ", l->code->kernel->name,
                  x->kind == MG_FINDING_NOTE ? "note" : "race", f->at.access, x->bytes);
    emu_check_place(l, x->site, &b);
    mg_buf_printf(&b, ", CTA (%u,%u,%u), thread (%u,%u,%u) and %s at ", c[0], c[1], c[2], t[0], t[1], t[2],
                  x->other_site ? f->other.access : "an access");
    if (x->other_site)
        emu_check_place(l, x->other_site, &b);
    else
        mg_buf_adds(&b, "a place that was not kept");
    mg_buf_printf(&b, ", CTA (%u,%u,%u), thread (%u,%u,%u), %s; address 0x%" PRIx64 " in %s", d[0], d[1], d[2], o[0],
                  o[1], o[2], why(x), f->address, f->allocation);
    if (f->allocation_bytes)
        mg_buf_printf(&b, " of %" PRIu64 " bytes at 0x%" PRIx64, f->allocation_bytes, f->allocation_address);
    mg_buf_printf(&b, " (%" PRIu64 " %s)", f->times, f->times == 1 ? "time" : "times");
    snprintf(f->text, sizeof f->text, "%s", b.at);
    mg_buf_release(&b);
}
