/* From launches to kernels: sums, and what CUDA Flux does with a partial count.
 *
 * Blocks can be counted in one CTA or one warp of a launch (enum mg_count_scope). Such counts are scaled by
 * how many of them the grid holds, and are estimates: how far off they are is known only where the
 * same kernel was also counted in full with the same geometry (another run, joined by `merge`). */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "store/priv.h"

void mg_scope_parse(struct mg_pprocess *process)
{
    for (const char *at = process->tools; *at; at += strcspn(at, ",;"), at += *at != 0) {
        if (!strncmp(at, "scope=cta", 9)) process->scope = MG_COUNT_CTA;
        if (!strncmp(at, "scope=warp", 10)) process->scope = MG_COUNT_WARP;
        if (!strncmp(at, "cta=", 4)) process->scope_cta = strtoull(at + 4, NULL, 0);
        if (!strncmp(at, "warp=", 5)) process->scope_warp = (uint32_t)strtoul(at + 5, NULL, 0);
    }
}

void mg_scope_read(struct mg_pprocess *process, const char *json)
{
    struct mg_arena arena = MG_ARENA_INIT;
    const struct mg_jval *v = mg_jval_parse(&arena, json, strlen(json));
    const char *scope = mg_jval_text(v, "scope");
    if (scope && (!strcmp(scope, "cta") || !strcmp(scope, "warp")))
        process->scope = *scope == 'c' ? MG_COUNT_CTA : MG_COUNT_WARP;
    process->scope_cta = mg_jval_u64(v, "cta");
    process->scope_warp = (uint32_t)mg_jval_u64(v, "warp");
    mg_arena_release(&arena);
}

struct factor {
    uint64_t mul, div, warp_mul;
}; /* counts * mul / div; div 0: the launch has no such CTA or warp */

static struct factor factor_of(const struct mg_pprocess *process, const struct mg_plaunch *l)
{
    uint64_t ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2],
             threads = (uint64_t)l->block[0] * l->block[1] * l->block[2], warps = (threads + 31) / 32;
    if (process->scope == MG_COUNT_FULL) return (struct factor){1, 1, 1};
    if (process->scope_cta >= ctas) return (struct factor){0};
    if (process->scope == MG_COUNT_CTA) return (struct factor){ctas, 1, ctas};
    if (process->scope_warp >= warps) return (struct factor){0};
    uint64_t lanes = MG_MIN(threads - 32 * (uint64_t)process->scope_warp, 32);
    return (struct factor){ctas * threads, lanes, ctas * warps};
}

static uint64_t scaled(uint64_t v, uint64_t mul, uint64_t div)
{
    unsigned __int128 wide = (unsigned __int128)v * mul;
    return (uint64_t)((wide + div / 2) / div);
}

static void add_counts(struct mg_pkernel *k, const struct mg_plaunch *l, const struct mg_pprocess *process)
{
    struct factor f = factor_of(process, l);
    if (!f.div || !l->n_counts) return;
    if (process->scope != MG_COUNT_FULL) {
        k->estimated = true;
        k->scope = process->scope;
    }
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        struct mg_pblock *to = &k->blocks[b];
        if (l->threads) {
            to->threads += scaled(l->threads[b], f.mul, f.div);
            if (process->scope != MG_COUNT_FULL) k->measured_thread_insts += l->threads[b] * to->n_insts;
        }
        if (l->warps) to->warps += l->warps[b] * f.warp_mul;
        to->has_threads |= l->threads != NULL;
        to->has_warps |= l->warps != NULL;
    }
}

static bool counts(const struct mg_plaunch *l)
{
    return l->complete && l->ran == MG_RAN_INSTRUMENTED && l->threads && !l->repeat;
}

/* ---- the error of scaling ------------------------------------------------------------------------- */

struct sample {
    const struct mg_plaunch *l;
    bool full;
    double insts;
};

static int by_geometry(const void *a, const void *b)
{
    const struct mg_plaunch *x = ((const struct sample *)a)->l, *y = ((const struct sample *)b)->l;
    if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
    int c = memcmp(x->grid, y->grid, sizeof x->grid);
    return c ? c : memcmp(x->block, y->block, sizeof x->block);
}

static double insts_of(const struct mg_recording *p, const struct mg_plaunch *l)
{
    const struct mg_pkernel *k = &p->kernels[l->kernel];
    struct factor f = factor_of(&p->processes[l->process], l);
    double sum = 0;
    for (uint32_t b = 0; b < l->n_counts; b++) sum += (double)l->threads[b] * k->blocks[b].n_insts;
    return sum * (double)f.mul / (double)f.div / (double)(l->replays ? l->replays : 1);
}

static void find_errors(struct mg_recording *p)
{
    uint64_t n = 0;
    struct sample *s = mg_xcalloc(p->n_launches + 1, sizeof *s);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (!p->kernels[l->kernel].estimated || !counts(l) || !factor_of(&p->processes[l->process], l).div) continue;
        s[n++] = (struct sample){l, p->processes[l->process].scope == MG_COUNT_FULL, insts_of(p, l)};
    }
    qsort(s, n, sizeof *s, by_geometry);
    for (uint64_t i = 0, end; i < n; i = end) {
        double sum[2] = {0, 0}, count[2] = {0, 0};
        for (end = i; end < n && !by_geometry(&s[i], &s[end]); end++) {
            sum[s[end].full] += s[end].insts;
            count[s[end].full]++;
        }
        if (count[0] == 0 || count[1] == 0 || sum[1] == 0) continue;
        struct mg_pkernel *k = &p->kernels[s[i].l->kernel];
        double full = sum[1] / count[1], off = sum[0] / count[0] - full, pct = 100 * (off < 0 ? -off : off) / full;
        if (!k->has_error || pct > k->error_pct) k->error_pct = pct;
        k->has_error = true;
    }
    free(s);
}

/* ---- counts that the program wrote into ------------------------------------------------------------ */

static struct mg_fit fit_of(struct mg_arena *arena, const struct mg_pkernel *k)
{
    struct mg_fit f = {.blocks = mg_arena_array(arena, struct mg_fit_block, k->n_blocks + 1), .n = k->n_blocks};
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        const struct mg_pblock *at = &k->blocks[b];
        bool begins = !b || strcmp(at->function, k->blocks[b - 1].function);
        f.blocks[b] = mg_fit_block_of(at->succs, at->n_succs, at->ops, at->n_ops, begins);
    }
    return f;
}

static bool fits(const struct mg_fit *f, const struct mg_pprocess *process, const struct mg_plaunch *l)
{
    const struct mg_counter_launch g = {.grid = {l->grid[0], l->grid[1], l->grid[2]},
                                        .block = {l->block[0], l->block[1], l->block[2]},
                                        .times = l->replays};
    uint64_t threads, warps;
    mg_counters_launched(process->scope, process->scope_cta, process->scope_warp, &g, &threads, &warps);
    return l->n_counts != f->n || mg_counts_fit(f, threads, l->threads, l->warps);
}

/* Tools that counted in the launch: what they had of the kernel was merged with it. */
static void spoil_tools(struct mg_recording *p, const struct mg_plaunch *l)
{
    for (uint32_t i = 0; i < p->n_regions; i++) {
        struct mg_pregion *g = &p->regions[i];
        if ((g->n_cells || g->n_tables) && g->kernel == l->kernel && g->use < 63 && l->tools >> g->use & 1 &&
            !g->reason)
            g->reason = MG_SPOILT_COUNTS;
    }
}

/* Profiles of before these counts were looked at when they came hold them; they are none here either. */
static void spoil(struct mg_recording *p)
{
    struct mg_fit *fit = mg_xcalloc((size_t)p->n_kernels + 1, sizeof *fit);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        struct mg_plaunch *l = &p->launches[i];
        if (!l->complete || l->ran != MG_RAN_INSTRUMENTED) continue;
        l->spoilt = l->why && !strncmp(l->why, MG_SPOILT, sizeof MG_SPOILT - 1);
        if (l->spoilt || !l->threads) continue;
        if (!fit[l->kernel].blocks) fit[l->kernel] = fit_of(&p->arena, &p->kernels[l->kernel]);
        if (fits(&fit[l->kernel], &p->processes[l->process], l)) continue;
        l->spoilt = true;
        l->why = MG_SPOILT_COUNTS;
        l->threads = l->warps = NULL;
        l->n_counts = 0;
        spoil_tools(p, l);
    }
    free(fit);
}

void mg_recording_sum(struct mg_recording *p)
{
    bool any = false;
    spoil(p);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        struct mg_pkernel *k = &p->kernels[l->kernel];
        uint64_t times = l->replays, threads = 1;
        if (l->ran == MG_RAN_UNKNOWN) continue;
        k->repeats += l->repeat;
        if (l->repeat) continue;
        for (int d = 0; d < 3; d++) threads *= (uint64_t)l->grid[d] * l->block[d];
        k->launches += times;
        k->threads_launched += threads * times;
        if (!l->complete) k->incomplete += times;
        if (l->spoilt) k->spoilt += times;
        if (l->ran == MG_RAN_INSTRUMENTED) k->instrumented += times;
        if (l->complete && k->schedule_dependent != 1 && l->schedule_dependent)
            k->schedule_dependent = l->schedule_dependent;
        if (l->timed) {
            k->time_ns += l->time_ns;
            k->timed_launches += times;
        }
        if (l->complete && l->ran == MG_RAN_INSTRUMENTED) add_counts(k, l, &p->processes[l->process]);
        any |= k->estimated;
    }
    if (any) find_errors(p);
}
