/* The work of all kernels together, which diff compares: by the cost model (cost.c) as it stands, and by each setting
 * of what the model does not know. A comparison that turns with the setting is none. */
#include <stdlib.h>

#include "report/advice/priv.h"

/* What a warp waits lies between these parts of what the model says: of an instruction and an access to shared memory
 * half and twice; of one to global memory a quarter, which is what L1 gives, and four times, which is memory itself.
 * Launching a CTA takes between half of it and all: what it was said to take was too much rather than too little. */
static const double waits[4][2] = {{.5, 2}, {.5, 2}, {.25, 4}, {.5, 1}};

struct waiting { /* of a kernel's warps for their requests, in cycles */
    double shared, global;
    double held; /* fewer for sectors, if L1 holds them till they come again */
};

/* More bytes come than lie between the lowest and the highest: some again, in another round of a loop. What L1 holds
 * takes its passes alone. */
static double held_by_l1(const struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site,
                         const struct site_use *use)
{
    double span = (double)span_of_site(a, k, site);
    if (span <= 0 || 32 * use->together <= 1.05 * span || !is_kept_by_l1(mg_jval_text(site, "op"))) return 0;
    double passes = MG_MAX(mg_jval_f64(site, "lines"), PASS_CYCLES * mg_jval_f64(site, "sectors"));
    return MG_MAX(use->cycles - MG_MAX(use->ideal, passes), 0.);
}

static struct waiting *sum_waiting(struct advice *a)
{
    struct waiting *of = mg_xcalloc(a->facts->p->n_kernels + 1, sizeof *of);
    const struct mg_jval *memory = a->without & MG_WORK_NO_MEMORY ? NULL : mg_facts_tool(a->facts, "memory");
    const struct site_use *use = a->uses;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "sites")); v; v = v->next, use++) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k)) continue;
        *(is_shared(v) ? &of[k->id].shared : &of[k->id].global) += use->wait;
        of[k->id].held += held_by_l1(a, k, v, use);
    }
    return of;
}

/* The bits of `setting`: waits of instructions, shared memory, global memory; do parts overlap; are warps of a CTA as
 * unequal as its CTAs, or equal; are accesses as unequal as instructions, or equal; launching; does L1 hold sectors
 * that come again; do bytes come from memory as few or as many as can be? */
static double cycles_if(const struct kernel_cost *c, const struct waiting *r, struct spread x, unsigned setting)
{
    struct kernel_cost other = *c;
    double wait = waits[0][setting & 1];
    other.chain += c->issues * INST_LATENCY * (wait - 1) + r->shared * (waits[1][setting >> 1 & 1] - 1) +
                   r->global * (waits[2][setting >> 2 & 1] - 1);
    other.launching *= waits[3][setting >> 6 & 1];
    double held = setting >> 7 & 1 ? MG_MIN(r->held, c->parts[PART_GLOBAL]) : 0;
    other.parts[PART_GLOBAL] -= held;
    other.chain -= held;
    other.from_memory = c->memory_range[setting >> 8 & 1];
    if (setting >> 4 & 1) x.warps = MG_MIN(x.length, (c->most_threads + 31) / 32);
    return cycles_of_spread(&other, x, c->issues * INST_LATENCY * wait, setting >> 5 & 1, setting >> 3 & 1);
}

static double cycles_with_imbalance(const struct kernel_cost *c, struct spread x)
{
    return .5 * (cycles_of_spread(c, x, c->chain, true, false) + cycles_of_spread(c, x, c->chain, true, true));
}

static double cycles_if_full(const struct kernel_cost *c, struct spread x)
{
    struct kernel_cost full = *c;
    full.chain = full.issues = 0;
    return cycles_with_imbalance(&full, x);
}

static bool is_by_timing(const struct mg_pkernel *k)
{
    for (uint32_t b = 0; b < k->n_blocks; b++)
        if (k->blocks[b].timing_dependent == 1) return true;
    return false;
}

/* By kernel id. */
static struct spread *spreads_of(struct mg_facts *f, unsigned without)
{
    struct spread *of = mg_xcalloc(f->p->n_kernels + 1, sizeof *of);
    const struct mg_jval *ctas = without & MG_WORK_NO_CTAS ? NULL : mg_facts_tool(f, "ctas");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(ctas, "kernels")); v; v = v->next)
        if (mg_jval_u64(v, "kernel") < f->p->n_kernels) of[mg_jval_u64(v, "kernel")] = spread_of_ctas(v);
    return of;
}

/* One kernel: what its launches with counts tell of all of them. */
static void add_kernel(struct mg_work *w, struct kernel_cost *c, const struct waiting *r, struct spread x)
{
    const double whole = 1 / c->counted;
    w->launches += (double)c->launches;
    w->counted += c->counted * (double)c->launches;
    if (c->counted <= 0) return;
    double even = modelled_cycles(c), all = cycles_with_imbalance(c, x);
    for (int i = 0; i < PART_COUNT; i++) w->parts[i] += whole * c->parts[i] / MG_MAX(busy_sms(c), 1.);
    w->parts[MG_WORK_IMBALANCE] += whole * (all - even);
    w->parts[MG_WORK_LAUNCHING] += whole * c->launching / MG_MAX(busy_sms(c), 1.);
    w->ctas += whole * c->all_ctas;
    w->all += whole * all;
    w->by_timing += is_by_timing(c->k) ? whole * all : 0;
    w->full += whole * cycles_if_full(c, x);
    for (unsigned i = 0; i < MG_WORK_SETTINGS; i++) w->set[i] += whole * cycles_if(c, r, x, i);
}

void mg_work_init(struct mg_work *w, struct mg_facts *f, unsigned without)
{
    struct mg_findings unused = {0};
    struct advice a;
    *w = (struct mg_work){0};
    struct spread *spreads = spreads_of(f, without);
    advice_init(&a, f, &unused, without);
    struct waiting *waiting = sum_waiting(&a);
    for (uint32_t k = 0; k < f->p->n_kernels; k++)
        if (mg_report_shows(f->o, a.costs[k].k)) add_kernel(w, &a.costs[k], &waiting[k], spreads[k]);
    advice_release(&a);
    free(waiting);
    free(spreads);
}
