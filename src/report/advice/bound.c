/* Verdicts: is a kernel bound by memory or by its instructions, from counts and the device's peaks: a roofline, which
 * knows no caches and no latency. They gain nothing by themselves; they say where to look. */
#include "report/advice/priv.h"

#define CLEARLY 1.25 /* a peak is not known any better */

/* What the other rules found of the kernel stands above its verdict. */
static bool has_gain(const struct advice *a, const struct mg_pkernel *k)
{
    for (uint32_t i = 0; i < a->out->n; i++)
        if (a->out->at[i].kernel == k && a->out->at[i].gain_pct > 0) return true;
    return false;
}

static void judge(struct advice *a, bool memory)
{
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        double bytes = 32 * c->parts[PART_GLOBAL], moving = bytes / a->peak->bytes_cycle,
               issuing = c->parts[PART_ISSUE];
        double other = MG_MAX(c->parts[PART_SHARED],
                              c->parts[PART_ATOMIC]); /* neither bytes nor instructions hold such a kernel up */
        if (other > moving && other > issuing) continue;
        if (c->share < .05 || issuing <= 0 || bytes <= 0 || (moving > issuing) != memory) continue;
        double ratio = memory ? moving / issuing : issuing / moving;
        if (ratio < CLEARLY) continue;
        bool more = has_gain(a, c->k);
        struct mg_finding *f = add_finding(a, c, 0, false);
        place_at_kernel(f, c->k);
        f->measure = ratio;
        f->unit = memory ? "time for bytes / time for instructions" : "time for instructions / time for bytes";
        f->text = mg_arena_printf(
            &a->out->arena,
            "at the device's peaks its %s take %.1f times as long as its %s (%.2f bytes a warp instruction; caches are not "
            "counted). %s fewer %s %s.",
            memory ? "bytes" : "instructions", f->measure, memory ? "instructions" : "bytes", bytes / c->warp_insts,
            memory ? "Move" : "Execute", memory ? "bytes" : "instructions",
            more ? "when the findings above are mended" : "first");
    }
}

void mg_rule_memory_bound(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    judge(a, true);
}

void mg_rule_compute_bound(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    judge(a, false);
}
