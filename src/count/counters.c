/* Reading a launch's counters: copies are added up, what was not measured is solved for. */
#include "count/flow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARP = 32 };

void mg_counter_layout_release(struct mg_counter_layout *l)
{
    for (uint32_t i = 0; i < l->n_flows; i++) {
        struct mg_counter_flow *f = &l->flows[i];
        mg_flow_release(&f->flow);
        for (uint32_t k = 0; k < f->n_cohorts; k++) free(f->cohorts[k].blocks);
        free(f->cohorts);
        free(f->callers);
        free(f->slots);
        free(f->lowest);
    }
    free(l->flows);
    free(l->threads);
    free(l->warps);
    *l = (struct mg_counter_layout){.other_at = UINT32_MAX};
}

static uint64_t volume(const uint32_t d[3])
{
    return (uint64_t)d[0] * d[1] * d[2];
}

static uint64_t all_threads(const struct mg_counter_launch *g)
{
    return volume(g->grid) * volume(g->block);
}

uint64_t mg_counters_words(const struct mg_counter_layout *l, const struct mg_counter_launch *g)
{
    if (!l->n_counters) return 0;
    if (!l->n_copies) return l->n_counters * all_threads(g);
    return (uint64_t)(l->n_copies - 1) * l->copy_words + (uint64_t)(l->n_counters - 1) * l->counter_words + 1;
}

static uint64_t sum_copies(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw,
                           uint32_t counter)
{
    uint64_t n = l->n_copies ? l->n_copies : all_threads(g), apart = l->n_copies ? l->copy_words : 1, sum = 0;
    const uint64_t *at = raw + counter * (l->n_copies ? l->counter_words : n);
    for (uint64_t i = 0; i < n; i++) sum += at[i * apart];
    return sum;
}

enum mg_err mg_counters_write_each(const struct mg_counter_layout *l, const struct mg_counter_launch *g,
                                   const uint64_t *raw, const char *path, struct mg_diag *d)
{
    uint64_t n = all_threads(g);
    FILE *f = l->n_copies ? NULL : fopen(path, "we");
    if (!f) return mg_diag_err(d, MG_ERR_IO, "%s: cannot be written", path);
    fputs("block,thread,entries\n", f);
    for (uint32_t b = 0; b < l->n_blocks; b++)
        for (uint64_t t = 0; t < n; t++) {
            uint64_t entries = raw[l->threads[b] * n + t];
            if (entries) fprintf(f, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 "\n", b, t, entries);
        }
    bool bad = ferror(f);
    return fclose(f) || bad ? mg_diag_err(d, MG_ERR_IO, "%s: cannot be written", path) : MG_ERR_OK;
}

uint64_t mg_counters_other(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw)
{
    return l->other_at == UINT32_MAX ? 0 : sum_copies(l, g, raw, l->other_at);
}

struct reader {
    const struct mg_counter_layout *l;
    uint64_t *sums;            /* by counter */
    uint64_t *threads, *warps; /* results */
    uint64_t n_threads, n_warps, n_ctas;
    uint64_t rest; /* threads of a CTA's last warp, where it is not whole */
};

/* Warps that are not whole, of those that count. */
static uint64_t partial_warps(const struct reader *r)
{
    return r->rest ? (WARP * r->n_warps - r->n_threads) / (WARP - r->rest) : 0;
}

static bool read_flow(const struct reader *r, const struct mg_counter_flow *f)
{
    bool good;
    uint64_t entries = f->by_launch ? r->n_threads : 0;
    for (uint32_t i = 0; i < f->n_alike; i++) r->sums[f->at + i] *= r->n_ctas;
    for (uint32_t i = 0; i < f->n_callers; i++) entries += r->threads[f->callers[i]];
    if (f->slots) {
        uint64_t *measured = mg_xcalloc(f->n + 1, sizeof *measured);
        for (uint32_t i = 0; i < f->n_copies * f->n; i++) measured[i % f->n] += r->sums[f->slots[i]];
        good = mg_flow_solve(&f->flow, entries, measured, r->threads + f->first_block);
        for (uint32_t b = 0; f->lowest && b < f->flow.n_blocks; b++)
            if (f->lowest[b] != UINT32_MAX) r->warps[f->first_block + b] = measured[f->lowest[b]];
        free(measured);
    } else {
        good = mg_flow_solve(&f->flow, entries, r->sums + f->at, r->threads + f->first_block);
    }
    if (!f->n_cohorts) return good;
    uint64_t *leaders = mg_xcalloc(f->flow.n_blocks + 1, sizeof *leaders);
    for (uint32_t i = 0; i < f->n_cohorts; i++) {
        const struct mg_counter_cohort *q = &f->cohorts[i];
        bool at_entry = q->entries_at == UINT32_MAX;
        mg_flow_solve(&f->flow, at_entry ? partial_warps(r) : r->sums[q->entries_at], r->sums + q->at, leaders);
        for (uint32_t k = 0; k < q->n_blocks; k++) {
            uint32_t b = f->first_block + q->blocks[k];
            uint64_t first = leaders[q->blocks[k]];
            r->warps[b] = at_entry ? first + (r->threads[b] - r->rest * first) / WARP : first;
        }
    }
    free(leaders);
    return good;
}

bool mg_counters_read(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *raw,
                      uint64_t *threads, uint64_t *warps)
{
    struct reader r = {.l = l,
                       .n_ctas = volume(g->grid),
                       .rest = volume(g->block) % WARP,
                       .sums = mg_xcalloc(l->n_counters + 1, sizeof *r.sums)};
    bool good = true;
    mg_counters_launched(l->scope, l->cta, l->warp, g, &r.n_threads, &r.n_warps);
    for (uint32_t i = 0; i < l->n_counters; i++) r.sums[i] = sum_copies(l, g, raw, i);
    r.threads = mg_xcalloc(l->n_blocks + 1, sizeof *r.threads);
    r.warps = mg_xcalloc(l->n_blocks + 1, sizeof *r.warps);
    for (uint32_t i = 0; l->warps && i < l->n_blocks; i++)
        if (l->warps[i] != UINT32_MAX) r.warps[i] = r.sums[l->warps[i]];
    for (uint32_t i = 0; !l->n_flows && i < l->n_blocks; i++) r.threads[i] = r.sums[l->threads[i]];
    for (uint32_t i = 0; i < l->n_flows; i++) good &= read_flow(&r, &l->flows[i]);
    for (uint32_t i = 0; i < l->n_blocks; i++) {
        if (threads) threads[i] = r.threads[i];
        if (warps && l->warps) warps[i] = r.warps[i];
    }
    free(r.sums);
    free(r.threads);
    free(r.warps);
    return good;
}
