/* What limits a finding's gain, in one line: what else the kernel's time consists of, by the cost model (cost.c). A
 * kernel that waits gains little by less work, however much of that nobody needs. */
#include "report/advice/priv.h"
#include "report/priv.h"

static const char *const parts[] = {
    [PART_ISSUE] = "instructions",
    [PART_SHARED] = "passes through shared memory",
    [PART_GLOBAL] = "accesses to global memory",
    [PART_ATOMIC] = "atomics at one address",
};

const char *say_number(struct advice *a, double v)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_add_grouped(&text, (uint64_t)(v + .5));
    const char *kept = mg_arena_strndup(&a->out->arena, text.at, text.n);
    mg_buf_release(&text);
    return kept;
}

double warps_held(const struct advice *a, const struct kernel_cost *c)
{
    double warps = (c->threads + 31) / 32, busy = MG_MIN((double)c->ctas, (double)a->sms);
    double ctas = busy > 0 ? (double)((uint64_t)((double)c->ctas / busy + .999)) : 0;
    return MG_MIN((double)c->warps_resident, ctas * warps);
}

/* What takes longest of what work does not tell, in cycles of a multiprocessor; `what`: in words. */
static double floor_of(const struct kernel_cost *c, const char **what)
{
    struct least_times t = least_times(c);
    double most = MG_MAX(t.alone, MG_MAX(t.launching, t.memory));
    *what = most <= t.alone       ? "a warp by itself, mostly waiting, takes"
            : most <= t.launching ? "launching its CTAs takes"
                                  : "what memory has to bring takes";
    return most / MG_MAX(busy_sms(c), 1.);
}

const char *say_limit(struct advice *a, const struct kernel_cost *c, enum part part)
{
    double busy = MG_MAX(busy_sms(c), 1.), work = c->parts[part] / busy, sum = busy_cycles(c, false) / busy,
           most = busy_cycles(c, true) / busy;
    const char *what, *what_else;
    struct kernel_cost without = without_cycles(c, part, c->parts[part]);
    double least = floor_of(c, &what), rest = floor_of(&without, &what_else);
    if (sum <= 0 || !c->warps_resident) return NULL;
    const char *all = say_number(a, modelled_cycles(c)),
               *base = busy < 1.5 ? "on the one multiprocessor with CTAs"
                                  : mg_arena_printf(&a->out->arena, "the mean of %.0f multiprocessors with CTAs", busy);
    if (least > most)
        return mg_arena_printf(&a->out->arena,
                               "Gain: by the model it takes %s cycles: %s %s, all its %s %s (%s, which hold%s "
                               "%.0f of %u warps).",
                               all, what, say_number(a, least), parts[part], say_number(a, work), base,
                               busy < 1.5 ? "s" : "", warps_held(a, c), c->warps_most);
    if (rest > sum - work)
        return mg_arena_printf(&a->out->arena,
                               "Gain: by the model it takes %s cycles, all its %s %s (%s); without any, %s %s.", all,
                               parts[part], say_number(a, work), base, what_else, say_number(a, rest));
    return mg_arena_printf(&a->out->arena, "Gain: by the model %s are %.0f %% of what it does.", parts[part],
                           100 * work / sum);
}
