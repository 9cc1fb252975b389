/* The work of all kernels together, which diff compares: by the cost model (cost.c) as it stands, and by each setting
 * of what the model does not know. A comparison that turns with the setting is none. */
#include <stdlib.h>

#include "report/advice/priv.h"

/* What a warp waits lies between these parts of what the model says: of an instruction and an access to shared memory
 * half and twice; of one to global memory a quarter, which is what L1 gives, and four times, which is memory itself. */
static const double waits[3][2] = {{.5, 2}, {.5, 2}, {.25, 4}};

struct waiting { /* of a kernel's warps for their requests, in cycles */
    double shared, global;
};

static struct waiting *sum_waiting(struct advice *a)
{
    struct waiting *of = mg_xcalloc(a->facts->p->n_kernels + 1, sizeof *of);
    const struct mg_jval *memory = a->without & MG_WORK_NO_MEMORY ? NULL : mg_facts_tool(a->facts, "memory");
    const struct site_use *use = a->uses;
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "sites")); v; v = v->next, use++) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k)) continue;
        *(is_shared(v) ? &of[k->id].shared : &of[k->id].global) += use->wait;
    }
    return of;
}

/* How many times as long as in even shares the busiest multiprocessor takes: because it has a CTA more than others, and
 * because its CTAs are longer. */
struct excess {
    double number, length;
    double warps; /* how many times as long as the mean its longest warp takes */
};

/* As long as the kernel takes on the busiest multiprocessor: all that longer CTAs do is more (`whole`), or their
 * instructions alone are. A CTA more brings all that it does, but waits beside the others while it fits there.
 * Launching is the same for all CTAs. */
static double cycles_of_longest(const struct kernel_cost *c, double wait, struct excess x, bool whole, bool overlap)
{
    struct kernel_cost longest = *c;
    for (int i = 0; i < PART_COUNT; i++) longest.parts[i] *= x.number * (whole || i == PART_ISSUE ? x.length : 1);
    longest.chain += (x.length * x.warps - 1) * (whole ? c->chain : c->issues * INST_LATENCY * wait);
    longest.turns += (x.number - 1) * c->long_waves; /* what is less than a wave fits at once */
    longest.from_memory *= whole ? x.length : 1;
    return cycles_at(&longest, overlap);
}

/* The bits of `setting`: waits of instructions, shared memory, global memory; do parts overlap; are warps of a CTA as
 * unequal as its CTAs, or equal; are accesses as unequal as instructions, or equal? */
static double cycles_if(const struct kernel_cost *c, const struct waiting *r, struct excess x, unsigned setting)
{
    struct kernel_cost other = *c;
    double wait = waits[0][setting & 1];
    other.chain += c->issues * INST_LATENCY * (wait - 1) + r->shared * (waits[1][setting >> 1 & 1] - 1) +
                   r->global * (waits[2][setting >> 2 & 1] - 1);
    if (setting >> 4 & 1) x.warps = MG_MIN(x.length, (c->most_threads + 31) / 32);
    return cycles_of_longest(&other, wait, x, setting >> 5 & 1, setting >> 3 & 1);
}

static double cycles_with_imbalance(const struct kernel_cost *c, struct excess x)
{
    double sum = 0;
    for (unsigned way = 0; way < 4; way++) sum += cycles_of_longest(c, 1, x, way & 1, way >> 1);
    return sum / 4;
}

static double cycles_if_full(const struct kernel_cost *c, struct excess x)
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
static struct excess *excess_of_ctas(struct mg_facts *f, unsigned without)
{
    struct excess *of = mg_xcalloc(f->p->n_kernels + 1, sizeof *of);
    const struct mg_jval *ctas = without & MG_WORK_NO_CTAS ? NULL : mg_facts_tool(f, "ctas");
    for (uint32_t k = 0; k < f->p->n_kernels; k++) of[k] = (struct excess){1, 1, 1};
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(ctas, "kernels")); v; v = v->next) {
        double even = mg_jval_f64(v, "even_share"), equal = mg_jval_f64(v, "grid_share");
        if (mg_jval_u64(v, "kernel") < f->p->n_kernels && even > 0 && equal > 0)
            of[mg_jval_u64(v, "kernel")] = (struct excess){MG_MAX(1 / equal, 1.), MG_MAX(equal / even, 1.), 1};
    }
    return of;
}

/* One kernel: what its launches with counts tell of all of them. */
static void add_kernel(struct mg_work *w, struct kernel_cost *c, const struct waiting *r, struct excess x)
{
    const double whole = 1 / c->counted;
    w->launches += (double)c->launches;
    w->counted += c->counted * (double)c->launches;
    if (c->counted <= 0) return;
    double even = modelled_cycles(c), all = cycles_with_imbalance(c, x);
    for (int i = 0; i < PART_COUNT; i++) w->parts[i] += whole * c->parts[i] / MG_MAX(busy_sms(c), 1.);
    w->parts[MG_WORK_IMBALANCE] += whole * (all - even);
    w->parts[MG_WORK_LAUNCHING] += whole * c->all_ctas * CTA_CYCLES / MG_MAX(busy_sms(c), 1.);
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
    struct excess *excess = excess_of_ctas(f, without);
    advice_init(&a, f, &unused, without);
    struct waiting *waiting = sum_waiting(&a);
    for (uint32_t k = 0; k < f->p->n_kernels; k++)
        if (mg_report_shows(f->o, a.costs[k].k)) add_kernel(w, &a.costs[k], &waiting[k], excess[k]);
    advice_release(&a);
    free(waiting);
    free(excess);
}
