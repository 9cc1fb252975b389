/* What a kernel costs, in cycles of one multiprocessor, and what share of the program it is.
 *
 *   issue    machine instructions of warps / 4: four schedulers; how many one of PTX becomes: issue.c
 *   shared   passes through shared memory, one a cycle; more of atomics that the machine does in a loop
 *   global   32-byte sectors of global and local memory, one a cycle: between what L2 and what memory gives on an
 *            H200; those that a load of the same struct has just brought a line of 128 bytes a
 *            cycle, since L1 has them
 *   atomic   lanes that follow one another at one address, one a cycle
 *
 * A kernel takes the mean of the sum of its parts (no overlap) and the largest of them (full overlap), and never less
 * than least_time(). Its share of the program is that of its time where the device measured it and no tool slowed
 * some kernels much more than others, else that of what it takes by this model. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "isa/resident.h"
#include "report/advice/priv.h"

#define REACHED .92 /* of the published bandwidth by the best of kernels that copy or add up, on an H200 */

static const struct peak peaks[] = {
#define PEAK(sm, name, bytes, mhz, l2) {sm, name, REACHED * bytes, mhz, l2},
#include "report/advice/peaks.def"
#undef PEAK
};

const struct peak *find_peak(uint32_t sm, const char *device)
{
    const struct peak *found = &peaks[0];
    for (size_t i = 0; i < MG_COUNT_OF(peaks) && peaks[i].sm <= sm; i++) {
        bool named = found->sm == peaks[i].sm && *found->name; /* the row before is of this device */
        if (!named && (device || !*peaks[i].name) && strstr(device ? device : "", peaks[i].name)) found = &peaks[i];
    }
    return found;
}

static double largest_part(const struct kernel_cost *c)
{
    double most = 0;
    for (int i = 0; i < PART_COUNT; i++) most = c->parts[i] > most ? c->parts[i] : most;
    return most;
}

static double sum_of_parts(const struct kernel_cost *c)
{
    double sum = 0;
    for (int i = 0; i < PART_COUNT; i++) sum += c->parts[i];
    return sum;
}

double busy_sms(const struct kernel_cost *c)
{
    return c->sm_work > 0 ? c->cta_work / c->sm_work : 1;
}

struct least_times least_times(const struct kernel_cost *c)
{
    return (struct least_times){.alone = c->warps > 0 ? c->chain / c->warps * c->by_wait.turns * busy_sms(c) : 0,
                                .launching = c->launching,
                                .memory = c->from_memory};
}

static double least_time(const struct kernel_cost *c)
{
    struct least_times t = least_times(c);
    return MG_MAX(MG_MAX(t.alone, t.launching), t.memory);
}

double busy_cycles(const struct kernel_cost *c, bool overlap)
{
    return overlap ? largest_part(c) : sum_of_parts(c);
}

double cycles_at(const struct kernel_cost *c, bool overlap)
{
    return MG_MAX(busy_cycles(c, overlap), least_time(c)) / MG_MAX(busy_sms(c), 1.);
}

double modelled_cycles(const struct kernel_cost *c)
{
    return .5 * (cycles_at(c, false) + cycles_at(c, true));
}

double gain_if(const struct kernel_cost *c, const struct kernel_cost *mended)
{
    double least = least_time(c), after = least_time(mended);
    double apart = MG_MAX(sum_of_parts(c), least), together = MG_MAX(largest_part(c), least);
    if (sum_of_parts(c) <= 0) return 0;
    return c->share * .5 *
           ((1 - MG_MAX(sum_of_parts(mended), after) / apart) + (1 - MG_MAX(largest_part(mended), after) / together));
}

struct kernel_cost without_cycles(const struct kernel_cost *c, enum part part, double cycles)
{
    struct kernel_cost mended = *c;
    cycles = MG_MIN(cycles, c->parts[part]);
    mended.parts[part] -= cycles;
    mended.chain -= part == PART_ISSUE ? 4 * INST_LATENCY * cycles : cycles;
    if (part == PART_GLOBAL) mended.from_memory = MG_MAX(c->used, c->from_memory - cycles * c->sector_cycles);
    return mended;
}

double gain_of(const struct kernel_cost *c, enum part part, double cycles)
{
    struct kernel_cost mended = without_cycles(c, part, cycles);
    return gain_if(c, &mended);
}

double gain_of_full_warps(const struct kernel_cost *c, double cycles, double latency, double sectors)
{
    struct kernel_cost mended = without_cycles(c, PART_ISSUE, cycles);
    mended = without_cycles(&mended, PART_GLOBAL, sectors);
    mended.chain -= latency;
    return gain_if(c, &mended);
}

bool is_worth_if_full(const struct kernel_cost *c, enum part part, double cycles)
{
    struct kernel_cost full = *c;
    full.chain = full.launching = full.from_memory = 0;
    return 100 * gain_of(&full, part, cycles) >= LEAST_GAIN_PCT;
}

bool is_worth(const struct kernel_cost *c, enum part part, double cycles)
{
    return is_worth_if_full(c, part, cycles) && gain_of(c, part, cycles) > 0;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void add_issue(struct advice *a, struct kernel_cost *c)
{
    const struct mg_pkernel *k = c->k;
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        const struct mg_pblock *x = &k->blocks[b];
        double warps = x->has_warps ? (double)x->warps : x->has_threads ? (double)x->threads / 32 : 0;
        c->warp_insts += warps * x->n_insts;
        c->issues += warps * issues_of(a, k, x);
    }
}

/* Where blocks were not counted by warps, tool lanes was: its entries by active lanes. */
static void add_lanes(struct advice *a)
{
    const struct mg_jval *lanes = mg_facts_tool(a->facts, "lanes");
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(lanes, "kernels")); v; v = v->next) {
        const struct mg_pkernel *k;
        double insts = 0, issues = 0, threads;
        if (!is_shown(a, v, &k)) continue;
        for (const struct mg_jval *b = mg_jval_first(mg_jval_get(v, "blocks")); b; b = b->next) {
            uint64_t id = mg_jval_u64(b, "id");
            if (id >= k->n_blocks) continue;
            double warps = warps_of(b, &threads);
            insts += warps * k->blocks[id].n_insts;
            issues += warps * issues_of(a, k, &k->blocks[id]);
        }
        if (insts <= 0) continue;
        a->costs[k->id].warp_insts = insts;
        a->costs[k->id].issues = issues;
    }
}

static bool is_of_space(const struct mg_jval *site, const char *which)
{
    const char *space = mg_jval_text(site, "space");
    return space && !strcmp(space, which);
}

bool is_shared(const struct mg_jval *site)
{
    return is_of_space(site, "shared");
}

bool is_local(const struct mg_jval *site)
{
    return is_of_space(site, "local");
}

/* A buffer of which at most so many bytes are accessed stays in L1 when a multiprocessor reads it as many times over.
 */
#define L1_BYTES   (64u << 10)
#define TIMES_OVER 4

struct small {                         /* a buffer that L1 can hold */
    const struct mg_buffer_name *name; /* NULL: none, or nobody knows */
    uint64_t bytes;
};

/* What a load that L1 keeps reads from. */
static struct small kept_buffer(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site)
{
    const char *function = mg_jval_text(site, "function"), *op = mg_jval_text(site, "op");
    if (!a->buffers || !function || is_shared(site) || !is_kept_by_l1(op)) return (struct small){0};
    const struct mg_buffer_name *b =
        mg_buffer_name_at(a->buffers, k, function, (uint32_t)mg_jval_u64(site, "ptx_line"));
    uint64_t bytes = b && b->bytes ? bytes_of_buffer(a, k, site, b) : 0;
    return bytes && bytes <= L1_BYTES ? (struct small){b, bytes} : (struct small){0};
}

static uint64_t key_of(const struct mg_pkernel *k, const struct mg_buffer_name *b)
{
    return mg_hash64(b->text, strlen(b->text), k->id);
}

struct small_buffers {
    struct small *of;      /* by place in tool memory's list */
    struct mg_map sectors; /* that a kernel's loads read of each: of an unrolled loop many read one */
};

static void find_small_buffers(struct advice *a, const struct mg_jval *memory, struct small_buffers *small)
{
    const struct mg_jval *sites = mg_jval_first(mg_jval_get(memory, "sites"));
    uint32_t n = 0, ix = 0;
    for (const struct mg_jval *v = sites; v; v = v->next) n++;
    *small = (struct small_buffers){.of = mg_xcalloc(n + 1, sizeof *small->of)};
    for (const struct mg_jval *v = sites; v; v = v->next, ix++) {
        const struct mg_pkernel *k;
        uint64_t sum = 0;
        if (!is_shown(a, v, &k)) continue;
        const struct small *b = &small->of[ix];
        small->of[ix] = kept_buffer(a, k, v);
        if (!b->name) continue;
        mg_map_get(&small->sectors, key_of(k, b->name), &sum);
        mg_map_set(&small->sectors, key_of(k, b->name), sum + (uint64_t)mg_jval_f64(v, "sectors"));
    }
}

/* Does each multiprocessor read a buffer that its L1 holds many times over? */
static bool is_cached(const struct small_buffers *small, const struct kernel_cost *c, const struct small *b)
{
    uint64_t sum = 0;
    if (!b->name || !mg_map_get(&small->sectors, key_of(c->k, b->name), &sum)) return false;
    return 32 * (double)sum >= TIMES_OVER * (double)b->bytes * c->counted * (double)c->launches * busy_sms(c);
}

/* What warps wait for the requests of a site, of all warps together. Nobody waits for a store. */
static double wait_of_site(const struct mg_jval *site, bool cached)
{
    const char *op = mg_jval_text(site, "op");
    bool writes = op && (!strncmp(op, "st.", 3) || !strncmp(op, "red.", 4));
    double each = is_shared(site) ? SHARED_LATENCY : writes ? 0 : cached ? CACHED_LATENCY : GLOBAL_LATENCY;
    return mg_jval_f64(site, "requests") * each;
}

bool is_added_up(struct advice *a, const struct mg_pkernel *k, const struct mg_jval *site)
{
    const char *function = mg_jval_text(site, "function");
    bool full = mg_jval_u64(site, "accesses") == 32 * mg_jval_u64(site, "requests");
    return a->buffers && function &&
           mg_buffer_is_added_up(a->buffers, k, function, (uint32_t)mg_jval_u64(site, "ptx_line"), full);
}

static bool loops(const char *op, bool shared)
{
    return shared && op && issues_of_op(op) > 1;
}

double cycles_at_one_address(const char *op, bool shared, double width)
{
    return !loops(op, shared) ? 1 : width > 4 ? WIDE_ROUND_CYCLES : ROUND_CYCLES;
}

static void add_memory(struct advice *a)
{
    const struct mg_jval *memory = mg_facts_tool(a->facts, "memory");
    struct site_use *use = a->uses;
    struct small_buffers small;
    find_small_buffers(a, memory, &small);
    for (const struct mg_jval *v = mg_jval_first(mg_jval_get(memory, "sites")); v; v = v->next, use++) {
        const struct mg_pkernel *k;
        if (!is_shown(a, v, &k)) continue;
        struct kernel_cost *c = &a->costs[k->id];
        const char *op = mg_jval_text(v, "op");
        bool atomic = op && (!strncmp(op, "atom", 4) || !strncmp(op, "red", 3));
        double requests = mg_jval_f64(v, "requests"), accesses = mg_jval_f64(v, "accesses"),
               width = mg_jval_f64(v, "width");
        double passes = width > 4 ? width / 4 : 1;
        bool shared = is_shared(v);
        use->wait = wait_of_site(v, is_cached(&small, c, &small.of[use - a->uses]));
        c->chain += use->wait;
        if (mg_jval_is_number(mg_jval_get(v, "bank_conflicts")))
            c->parts[PART_SHARED] += ((shared ? requests * passes : 0) + mg_jval_f64(v, "bank_conflicts")) *
                                     (atomic && loops(op, shared) ? ROUND_CYCLES : 1);
        bool counted = mg_jval_is_number(mg_jval_get(v, "sectors")), local = is_local(v);
        c->parts[PART_GLOBAL] += counted ? use->cycles : local ? accesses * width / 32 : 0;
        c->bytes += counted ? 32 * use->sectors : local ? accesses * width : 0;
        if (atomic && requests > 0 && !is_added_up(a, k, v))
            c->parts[PART_ATOMIC] += (accesses - requests) * mg_jval_f64(mg_jval_get(v, "patterns"), "same") /
                                     requests * cycles_at_one_address(op, shared, width);
    }
    mg_map_release(&small.sectors);
    free(small.of);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static uint32_t up(uint64_t v, uint32_t unit)
{
    return (uint32_t)((v + unit - 1) / unit);
}

/* Instructions of warps; 0: not known. */
static double insts_of_launch(const struct mg_pkernel *k, const struct mg_plaunch *l)
{
    double sum = 0;
    for (uint32_t b = 0; b < l->n_counts && b < k->n_blocks; b++)
        sum += (l->warps ? (double)l->warps[b] : l->threads ? (double)l->threads[b] / 32 : 0) * k->blocks[b].n_insts;
    return sum;
}

static uint64_t ctas_of(const struct mg_plaunch *l)
{
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

static uint32_t threads_of_cta(const struct mg_plaunch *l)
{
    return l->block[0] * l->block[1] * l->block[2];
}

static uint32_t warps_of_cta(const struct mg_plaunch *l)
{
    return up(threads_of_cta(l), 32);
}

static bool takes_part(const struct mg_plaunch *l)
{
    return !l->repeat && l->ran != MG_RAN_UNKNOWN && ctas_of(l) && threads_of_cta(l);
}

uint32_t emptiest_size(const struct advice *a, const struct kernel_cost *c)
{
    enum { MOST_THREADS = 1024 };
    const struct mg_recording *p = a->facts->p;
    double *lost = mg_xcalloc(MOST_THREADS + 1, sizeof *lost);
    uint32_t worst = 0;
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        uint32_t threads = MG_MIN(threads_of_cta(l), (uint32_t)MOST_THREADS);
        if (l->kernel != c->k->id || !takes_part(l)) continue;
        lost[threads] += (double)(32 * up(threads, 32) - threads) * (double)ctas_of(l) * (l->replays ? l->replays : 1);
        if (lost[threads] > lost[worst]) worst = threads;
    }
    free(lost);
    return worst;
}

struct mean { /* over launches with counts: instructions of a CTA, and of a warp */
    double insts, ctas, warps;
};

/* By kernel id. */
static struct mean *means_of_launches(struct advice *a)
{
    const struct mg_recording *p = a->facts->p;
    struct mean *of = mg_xcalloc(p->n_kernels + 1, sizeof *of);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        double insts = l->repeat ? 0 : insts_of_launch(&p->kernels[l->kernel], l),
               ctas = (double)(ctas_of(l) * (l->replays ? l->replays : 1));
        if (insts <= 0) continue;
        of[l->kernel].insts += insts;
        of[l->kernel].ctas += ctas;
        of[l->kernel].warps += ctas * warps_of_cta(l);
    }
    return of;
}

/* What its own counts say; launches without are taken to be like the others. */
static struct weight weigh(struct advice *a, const struct mg_plaunch *l, const struct mean *m)
{
    struct kernel_cost *c = &a->costs[l->kernel];
    double insts = m->insts > 0 ? insts_of_launch(c->k, l) : 0,
           ctas = (double)(ctas_of(l) * (l->replays ? l->replays : 1));
    if (insts <= 0) return (struct weight){1, 1};
    return (struct weight){insts / ctas * m->ctas / m->insts, insts / (ctas * warps_of_cta(l)) * m->warps / m->insts};
}

static void add_launch(struct advice *a, const struct mg_plaunch *l, const struct mean *mean)
{
    struct kernel_cost *c = &a->costs[l->kernel];
    uint64_t ctas = ctas_of(l);
    uint32_t threads = threads_of_cta(l), warps = warps_of_cta(l);
    uint64_t shared_bytes = (uint64_t)l->static_shared_bytes + l->dyn_shared_bytes, times = l->replays ? l->replays : 1;
    const struct mg_sm_limits *limits = mg_sm_limits(a->peak->sm);
    const char *limit;
    if (!takes_part(l)) return;
    uint32_t registers = c->k->regs_native > 0 ? (uint32_t)c->k->regs_native : 0;
    uint32_t resident = mg_resident_ctas(limits, warps, registers, shared_bytes, &limit);
    c->launches += times;
    c->counted += l->ran == MG_RAN_INSTRUMENTED ? (double)times : 0;
    c->direct += l->graph ? 0 : 1;
    struct weight weight = weigh(a, l, mean);
    add_waves(c, ctas, a->sms * resident, a->sms, (double)times, weight);
    c->unweighed = c->unweighed || (l->ran == MG_RAN_INSTRUMENTED && !l->n_counts);
    c->warps += (double)(ctas * warps * times);
    c->all_ctas += (double)(ctas * times);
    c->cta_work += weight.work * (double)(ctas * times);
    c->sm_work += weight.work * (double)(ctas * times) / (double)MG_MIN(ctas, (uint64_t)a->sms);
    c->empty_lanes += (double)(ctas * (32ull * warps - threads) * times);
    if (!c->least_threads || threads < c->least_threads) c->least_threads = threads;
    c->most_threads = MG_MAX(c->most_threads, threads);
    if ((double)(ctas * threads) * weight.wait <= c->most) return;
    c->most = (double)(ctas * threads) * weight.wait;
    c->ctas = ctas;
    c->threads = threads;
    c->row_threads = l->block[0];
    c->registers = registers;
    c->shared_bytes = shared_bytes;
    c->warps_resident = resident * warps;
    c->warps_most = limits->warps;
    c->limit = limit;
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

static bool all_timed(const struct advice *a)
{
    bool any = false;
    for (uint32_t k = 0; k < a->facts->p->n_kernels; k++) {
        const struct mg_pkernel *x = &a->facts->p->kernels[k];
        if (!mg_report_shows(a->facts->o, x) || !x->launches) continue;
        if (!x->timed_launches) return false;
        any = true;
    }
    /* elsewhere the time is the host's; these tools cost some kernels much more than others */
    return any && a->nvidia && !mg_facts_tool(a->facts, "memory") && !mg_facts_tool(a->facts, "lanes") &&
           !mg_facts_tool(a->facts, "values");
}

void costs_init(struct advice *a)
{
    const struct mg_recording *p = a->facts->p;
    double all = 0;
    a->costs = mg_xcalloc(p->n_kernels + 1, sizeof *a->costs);
    a->out->timed = all_timed(a);
    find_divisions(a);
    for (uint32_t k = 0; k < p->n_kernels; k++) {
        a->costs[k].k = &p->kernels[k];
        add_issue(a, &a->costs[k]);
    }
    struct mean *means = means_of_launches(a);
    for (uint64_t i = 0; i < p->n_launches; i++) add_launch(a, &p->launches[i], &means[p->launches[i].kernel]);
    free(means);
    for (uint32_t k = 0; k < p->n_kernels; k++)
        if (a->costs[k].launches) a->costs[k].counted /= (double)a->costs[k].launches;
    a->uses = uses_of_sites(a);
    if (!(a->without & MG_WORK_NO_LANES)) add_lanes(a);
    if (!(a->without & MG_WORK_NO_MEMORY)) add_memory(a);
    for (uint32_t k = 0; k < p->n_kernels; k++) {
        struct kernel_cost *c = &a->costs[k];
        if (!mg_report_shows(a->facts->o, c->k)) continue;
        c->all_ctas *= c->counted; /* as all else that is counted */
        c->launching = c->all_ctas * CTA_CYCLES;
        c->parts[PART_ISSUE] = c->issues / 4;
        c->chain += INST_LATENCY * c->issues;
        for (int i = PART_ISSUE + 1; i < PART_COUNT; i++) c->chain += c->parts[i];
        a->counted = a->counted || c->warp_insts > 0;
        /* Of some launches only: the others are taken as these. */
        double scale = c->k->timed_launches ? (double)c->k->launches / (double)c->k->timed_launches : 1;
        c->share = a->out->timed ? (double)c->k->time_ns * scale : c->counted > 0 ? modelled_cycles(c) / c->counted : 0;
        all += c->share;
    }
    for (uint32_t k = 0; k < p->n_kernels && all > 0; k++) {
        struct kernel_cost *c = &a->costs[k];
        c->share /= all;
        if (!a->buffers || c->share < .05) continue;
        struct memory_bytes m = bytes_from_memory(a, c);
        c->from_memory = m.all / a->peak->bytes_cycle;
        c->used = m.used / a->peak->bytes_cycle;
        c->memory_range[0] = m.least / a->peak->bytes_cycle;
        c->memory_range[1] = m.most / a->peak->bytes_cycle;
        c->sector_cycles = 32 / a->peak->bytes_cycle;
    }
}
