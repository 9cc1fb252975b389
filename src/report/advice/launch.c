/* Rules about launches: threads that fill no warp, how many warps fit, how the last wave fills the device, launches too
 * short to pay. */
#include <math.h>
#include <string.h>

#include "report/advice/priv.h"

/* On the host of an H100: 2,000 launches of an empty kernel took 3.5 us each, 9.9 us where each was waited for, 1 us in
 * a graph. */
static const double launch_us = 3.5, /* what launching a kernel takes the host, about */
    gap_us = 1, graph_gap_us = .5,   /* between kernels of a stream, and of a graph */
    wait_us = 8;                     /* from a kernel's end to the next one's begin, where the program waits for each */

/* If as many warps as needed did the work; `merged`: in CTAs of eight, so that fewer are to be launched. */
static double gain_if_full(const struct kernel_cost *c, double needed, bool merged)
{
    struct kernel_cost full = *c;
    full.parts[PART_ISSUE] *= needed;
    full.chain *= needed;
    full.warps *= needed;
    full.by_wait.turns = MG_MAX(c->by_wait.turns * needed, c->by_wait.launches); /* one at least */
    if (merged)                                                                  /* one at least */
        full.launching =
            MG_MIN(c->launching, CTA_CYCLES * c->counted * MG_MAX(c->warps * needed / 8, (double)c->launches));
    return gain_if(c, &full);
}

/* "the last warp of each CTA of 91 threads has 27 of 32 lanes: 24 % of the lanes of its warps have no thread" */
static const char *say_empty_lanes(struct advice *a, const struct kernel_cost *c, double empty)
{
    uint32_t size = emptiest_size(a, c), warps = (size + 31) / 32, last = size - 32 * (warps - 1);
    const char *of_size = mg_arena_printf(&a->out->arena, "the %swarp of each CTA of %u thread%s has %u of 32 lanes",
                                          warps > 1 ? "last " : "", size, size == 1 ? "" : "s", last);
    if (c->least_threads == c->most_threads)
        return mg_arena_printf(&a->out->arena, "%s: %.0f %% of the lanes of its warps have no thread", of_size,
                               100 * empty);
    return mg_arena_printf(
        &a->out->arena,
        "%s: %.0f %% of the lanes of such CTAs have no thread. CTAs of its launches have %u to %u threads; of all their "
        "warps' lanes %.0f %% have none",
        of_size, 100. * (32 - last) / (32 * warps), c->least_threads, c->most_threads, 100 * empty);
}

void mg_rule_partial_warp(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        double empty = c->warps > 0 ? c->empty_lanes / (32 * c->warps) : 0, gain = gain_if_full(c, 1 - empty, true),
               of_lanes = gain_if_full(c, 1 - empty, false);
        /* more warps than one a CTA: they are taken to execute alike */
        bool exact = c->most_threads < 32 && c->least_threads == c->most_threads;
        bool launching = gain - of_lanes > .02;
        if (empty < .1 || 100 * gain < LEAST_GAIN_PCT) continue;
        struct mg_finding *f = add_finding(a, c, gain, exact);
        place_at_kernel(f, c->k);
        f->measure = 100 * empty;
        f->unit = "% of the lanes of launched warps have no thread";
        f->text = mg_arena_printf(
            &a->out->arena, "%s. Use %s.", say_empty_lanes(a, c, empty),
            launching ? "fewer CTAs of 256 threads, each with the work of several"
                      : "a multiple of 32 threads, with the work of several CTAs in one where it is small");
        if (launching)
            f->limit = mg_arena_printf(&a->out->arena,
                                       "Gain: launching its CTAs takes long, and those of 256 threads are fewer. Full "
                                       "warps in CTAs that are as many would gain %.0f %%.",
                                       100 * of_lanes);
    }
}

void mg_rule_occupancy(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        if (!c->warps_most || c->imbalanced || c->waves.all < c->waves.launches) continue;
        bool mendable = !strcmp(c->limit, "registers") || !strcmp(c->limit, "shared memory");
        double share = (double)c->warps_resident / c->warps_most;
        double gain = share < .5 ? c->share * .25 * (1 - share / .5) : 0; /* at most a quarter, with no warp at all */
        if (!mendable || 100 * gain < LEAST_GAIN_PCT) continue;
        struct mg_finding *f = add_finding(a, c, gain, false);
        place_at_kernel(f, c->k);
        f->measure = 100 * share;
        f->unit = "% of the warps that a multiprocessor holds";
        bool registers = !strcmp(c->limit, "registers");
        f->text = mg_arena_printf(&a->out->arena, "%u of %u warps fit on a multiprocessor: %s%llu %s limit them. %s",
                                  c->warps_resident, c->warps_most, registers && c->k->regs_estimated ? "about " : "",
                                  registers ? (unsigned long long)c->registers : (unsigned long long)c->shared_bytes,
                                  registers ? "registers a thread" : "bytes of shared memory a CTA",
                                  registers ? "Try __launch_bounds__, or fewer values alive at once."
                                            : "Try smaller tiles, or more threads for each.");
    }
}

/* "a launch has 1,057 CTAs: 1 full wave of 1,056 and a last one of 1" */
static const char *say_waves(struct advice *a, const struct kernel_cost *c)
{
    const struct tail *t = &c->tail;
    uint64_t full = t->ctas / t->wave;
    return mg_arena_printf(&a->out->arena, "%s %s CTAs: %s full wave%s of %s and a last one of %s",
                           has_one_grid(c)
                               ? "a launch has"
                               : mg_arena_printf(&a->out->arena,
                                                 "%s of %s launches end%s in a wave that is not full; the one that "
                                                 "loses most has",
                                                 say_number(a, t->all), say_number(a, c->waves.launches),
                                                 t->all < 2 ? "s" : ""),
                           say_number(a, (double)t->ctas), say_number(a, (double)full), full == 1 ? "" : "s",
                           say_number(a, t->wave), say_number(a, (double)(t->ctas % t->wave)));
}

/* Why a tail's gain is not the part of their time in which multiprocessors stay empty. */
static const char *say_tail_limit(const struct kernel_cost *c)
{
    struct least_times t = least_times(c);
    if (MG_MAX(t.launching, t.memory) > .9 * modelled_cycles(c) * busy_sms(c))
        return t.launching > t.memory ? "Gain: launching all its CTAs takes most of the time, waves or not."
                                      : "Gain: what memory has to bring takes most of the time, waves or not.";
    return "Gain: CTAs of the last wave are faster, since they have multiprocessors for themselves.";
}

void mg_rule_tail(struct advice *a, const struct mg_rule *self)
{
    const struct mg_jval *clock = a->nvidia ? mg_facts_tool(a->facts, "clock") : NULL;
    (void)self;
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        if (c->imbalanced || c->tail.all <= 0) continue;
        double waves = c->waves.long_all / c->waves.long_launches, idle = idle_in_tail(c);
        bool measured = false;
        for (const struct mg_jval *v = mg_jval_first(mg_jval_get(clock, "kernels")); v; v = v->next)
            if (mg_jval_u64(v, "kernel") == c->k->id && mg_jval_is_number(mg_jval_get(v, "tail"))) {
                measured = mg_jval_f64(v, "tail") < idle; /* longer: what instrumenting made of it */
                idle = MG_MIN(idle, mg_jval_f64(v, "tail"));
            }
        double part = MG_MIN(part_of_tail(c), idle), gain = c->share * part * part_of_long(c);
        if (idle < .1 || 100 * gain < LEAST_GAIN_PCT) continue;
        struct mg_finding *f = add_finding(a, c, gain, false);
        place_at_kernel(f, c->k);
        f->measure = waves;
        f->unit = "waves of CTAs";
        f->text = mg_arena_printf(
            &a->out->arena,
            "%s, for which multiprocessors wait%s. Choose the grid as a multiple of %s CTAs, or use smaller CTAs.",
            say_waves(a, c),
            measured ? mg_arena_printf(&a->out->arena, " (%.0f %% of their time, measured)", 100 * idle) : "",
            say_number(a, c->tail.wave));
        if (part < .8 * idle) f->limit = say_tail_limit(c);
    }
}

/* A multiprocessor with fewer warps waits more than it works. */
enum { WARPS_THAT_HIDE = 16 };

/* "12 of these get 2, the others 1" */
static const char *say_shares(struct advice *a, const struct kernel_cost *c)
{
    unsigned long long most = (c->ctas + a->sms - 1) / a->sms, with_most = c->ctas - (most - 1) * a->sms;
    if (with_most == a->sms) return mg_arena_printf(&a->out->arena, "each gets %llu", most);
    return most == 1 ? mg_arena_printf(&a->out->arena, "%llu get%s one, %llu none", with_most,
                                       with_most == 1 ? "s" : "", a->sms - with_most)
                     : mg_arena_printf(&a->out->arena, "%llu get %llu, the others %llu", with_most, most, most - 1);
}

/* Launches of less than one wave. How much more CTAs would gain nobody can tell from counts: a verdict. */
void mg_rule_few_ctas(struct advice *a, const struct mg_rule *self)
{
    (void)self;
    if (!mg_facts_tool(a->facts, "ctas")) return; /* not known to be imbalanced */
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        struct kernel_cost *c = &a->costs[i];
        uint64_t most = (c->ctas + a->sms - 1) / a->sms;
        uint32_t warps = (c->threads + 31) / 32;
        double idle = most ? 1 - (double)c->ctas / (double)(most * a->sms) : 0;
        if (c->share < .05 || c->by_wait.all >= c->by_wait.launches || (idle < .1 && most * warps >= WARPS_THAT_HIDE))
            continue;
        if (c->imbalanced && c->uneven >= idle) continue; /* that explains more */
        bool launching = 2 * c->launching >= modelled_cycles(c) * busy_sms(c);
        struct mg_finding *f = add_finding(a, c, 0, false);
        place_at_kernel(f, c->k);
        f->measure = (double)c->ctas / a->sms;
        f->unit = "CTAs a multiprocessor";
        c->few_ctas = c->ctas < a->sms; /* no peak of the device is near */
        f->text = mg_arena_printf(
            &a->out->arena,
            "%s %s CTA%s of %u warp%s for %u multiprocessors: %s. A multiprocessor has %llu warp%s "
            "at most, where %u fit. %s other kernels beside it.",
            c->launches > 1 ? "its launch with most work has" : "it has", say_number(a, (double)c->ctas),
            c->ctas == 1 ? "" : "s", warps, warps == 1 ? "" : "s", a->sms, say_shares(a, c),
            (unsigned long long)(most * warps), most * warps == 1 ? "" : "s", c->warps_resident,
            launching                        ? "Launching its CTAs takes long, so smaller ones do not help: run"
            : most * warps < WARPS_THAT_HIDE ? "Use more CTAs, or more threads in each, or run"
                                             : "Use more CTAs that are smaller, or run");
    }
}

/* Part of the direct launches that the program waits for before it goes on. */
static double waited_for(struct advice *a)
{
    const struct mg_recording *p = a->facts->p;
    double waited = 0, launches = 0;
    for (uint32_t i = 0; i < p->n_tools; i++) {
        const struct mg_ptool *t = &p->tools[i];
        if (strcmp(t->tool, "margay") || strcmp(t->key, "waited_for")) continue;
        waited += mg_jval_f64(mg_jval_parse(&a->facts->arena, t->json, strlen(t->json)), "launches");
    }
    for (uint32_t i = 0; i < p->n_kernels; i++) launches += (double)a->costs[i].direct;
    return launches > 0 ? MG_MIN(waited / launches, 1.) : 0;
}

static double us_of_launch(const struct advice *a, const struct kernel_cost *c)
{
    if (!c->launches) return 0;
    if (a->out->timed && c->k->timed_launches) return (double)c->k->time_ns / (double)c->k->timed_launches / 1e3;
    return c->counted > 0 ? modelled_cycles(c) / (c->counted * (double)c->launches) / a->peak->mhz : 0;
}

/* From its begin to the begin of the next one. */
static double us_until_next(double us, double waited)
{
    return waited * (us + wait_us) + (1 - waited) * fmax(us + gap_us, launch_us);
}

/* From the first kernel's begin to the last one's end: as measured, else by the model. */
static double us_of_all(const struct advice *a, double waited)
{
    const struct mg_recording *p = a->facts->p;
    uint64_t begin = UINT64_MAX, end = 0;
    double sum = 0;
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (!l->timed || l->repeat) continue;
        begin = MG_MIN(begin, l->start_ns);
        end = MG_MAX(end, l->start_ns + l->time_ns);
    }
    if (a->out->timed && p->n_processes == 1 && end > begin) return (double)(end - begin) / 1e3;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        double us = us_of_launch(a, c), direct = MG_MIN((double)c->direct, (double)c->launches);
        sum += direct * us_until_next(us, waited) + ((double)c->launches - direct) * (us + graph_gap_us);
    }
    return sum;
}

void mg_rule_tiny_launch(struct advice *a, const struct mg_rule *self)
{
    double waited = waited_for(a), all = us_of_all(a, waited);
    (void)self;
    for (uint32_t i = 0; i < a->facts->p->n_kernels; i++) {
        const struct kernel_cost *c = &a->costs[i];
        double us = us_of_launch(a, c), saved = us_until_next(us, waited) - us - graph_gap_us,
               gain = all > 0 ? (double)c->direct * saved / all : 0;
        if (c->direct < 100 || us <= 0 || us > 10 || 100 * gain < LEAST_GAIN_PCT) continue;
        struct mg_finding *f = add_finding(a, c, MG_MIN(gain, 1.), false);
        place_at_kernel(f, c->k);
        f->measure = us;
        f->unit = "us a launch";
        f->text = mg_arena_printf(
            &a->out->arena,
            "%llu launches of %s us each, one every %.1f us%s. Put them into a graph, or do more in one launch. The gain is of the "
            "time from the first kernel to the last.",
            (unsigned long long)c->direct,
            us < .1 ? "less than 0.1" : mg_arena_printf(&a->out->arena, "%s%.2g", a->out->timed ? "" : "about ", us),
            us_until_next(us, waited),
            waited < .5
                ? ""
                : mg_arena_printf(&a->out->arena, ", since the program waits for %s", waited > .95 ? "each" : "most"));
    }
}
