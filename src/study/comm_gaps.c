#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "study/comm_gaps.h"
#include "study/shadow.h"

/* True: the address continues the run. Runs end with their page, so that those of several workers do not overlap. */
static bool extend(struct gap_run *r, uint64_t address)
{
    uint64_t last = r->first + (uint64_t)r->step * (r->n - 1), step = address - last;
    if (address <= last || (address ^ last) >> SHADOW_PAGE_SHIFT || r->n == UINT32_MAX) return false;
    if (r->n > 1 && step != r->step) return false;
    r->step = (uint32_t)step;
    r->n++;
    return true;
}

static uint64_t last_of(const struct gap_run *r)
{
    return r->first + (uint64_t)r->step * (r->n - 1);
}

void gap_runs_add(struct gap_runs *r, uint64_t address, uint32_t step, uint32_t n)
{
    struct gap_run *last = r->n ? &r->at[r->n - 1] : NULL;
    if (last && n == 1 && (address == last_of(last) || extend(last, address))) return;
    if (last && n > 1 && last->step == step && last->first == address && last->n == n) return; /* again */
    if (last && n > 1 && last->step == step && last_of(last) + step == address && last->n < UINT32_MAX - n &&
        !((last->first ^ address) >> SHADOW_PAGE_SHIFT)) {
        last->n += n;
        return;
    }
    *mg_vec_push(r) = (struct gap_run){.first = address, .step = n > 1 ? step : 0, .n = n};
}

static int by_first(const void *a, const void *b)
{
    const struct gap_run *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void append(struct gap_spans *out, struct gap_span of, uint64_t address)
{
    struct gap_span *last = out->n ? &out->at[out->n - 1] : NULL;
    if (last && last->cta == of.cta && last->step == of.step && extend(&last->run, address)) return;
    of.run = (struct gap_run){.first = address, .n = 1};
    *mg_vec_push(out) = of;
}

static bool overlap(const struct gap_runs *r)
{
    for (uint32_t i = 1; i < r->n; i++)
        if (r->at[i].first <= last_of(&r->at[i - 1])) return true;
    return false;
}

/* All addresses lie on one grid, without gaps inside of runs: sorted runs are joined as intervals. */
static bool on_one_grid(const struct gap_runs *r, uint32_t *step)
{
    *step = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->at[i].n < 2) continue;
        if (*step && r->at[i].step != *step) return false;
        *step = r->at[i].step;
    }
    if (!*step) *step = 1; /* single addresses */
    for (uint32_t i = 1; i < r->n; i++)
        if ((r->at[i].first - r->at[0].first) % *step) return false;
    return true;
}

static void join_intervals(const struct gap_runs *r, struct gap_span of, uint32_t step, struct gap_spans *out)
{
    struct gap_run now = r->at[0];
    for (uint32_t i = 1; i <= r->n; i++) {
        bool meets = i < r->n && r->at[i].first <= last_of(&now) + (now.n > 1 || r->at[i].n > 1 ? step : 0) &&
                     !((r->at[i].first ^ now.first) >> SHADOW_PAGE_SHIFT);
        if (!meets) {
            of.run = now;
            *mg_vec_push(out) = of;
            if (i < r->n) now = r->at[i];
            continue;
        }
        uint64_t last = MG_MAX(last_of(&now), last_of(&r->at[i]));
        if (last > now.first) now.step = step;
        now.n = (uint32_t)((last - now.first) / step) + 1;
    }
}

/* Of any runs: each address alone. */
static void join_addresses(const struct gap_runs *r, struct gap_span of, struct gap_spans *out)
{
    uint64_t total = 0, n = 0, *all;
    for (uint32_t i = 0; i < r->n; i++) total += r->at[i].n;
    all = mg_xmalloc(total * sizeof *all);
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->at[i].n; k++) all[n++] = r->at[i].first + (uint64_t)r->at[i].step * k;
    qsort(all, n, sizeof *all, mg_by_u64);
    for (uint64_t i = 0; i < n; i++)
        if (!i || all[i] != all[i - 1]) append(out, of, all[i]);
    free(all);
}

void gap_runs_close(struct gap_runs *r, uint32_t cta, uint32_t step_ix, struct gap_spans *out)
{
    struct gap_span of = {.cta = cta, .step = step_ix};
    uint32_t step;
    if (!r->n) return;
    qsort(r->at, r->n, sizeof *r->at, by_first);
    if (!overlap(r))
        for (uint32_t i = 0; i < r->n; i++) {
            of.run = r->at[i];
            *mg_vec_push(out) = of;
        }
    else if (on_one_grid(r, &step))
        join_intervals(r, of, step, out);
    else
        join_addresses(r, of, out);
    r->n = 0;
}

void gap_stores_add(struct gap_stores *s, uint32_t unit, uint64_t address)
{
    if (s->n && s->at[s->n - 1].unit == unit && extend(&s->at[s->n - 1].run, address)) return;
    *mg_vec_push(s) = (struct gap_store){.unit = unit, .run = {.first = address, .n = 1}};
}

/* ---- counting ----------------------------------------------------------------------------------------- */

static void count(struct mg_map *out, uint64_t bytes, uint64_t n)
{
    uint64_t before = 0;
    mg_map_get(out, bytes, &before);
    mg_map_set(out, bytes, before + n);
}

static int by_cta(const void *a, const void *b)
{
    const struct gap_span *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->cta != y->cta) return x->cta < y->cta ? -1 : 1;
    return by_first(&x->run, &y->run);
}

static void count_runs(struct mg_map *out, const struct gap_run *before, const struct gap_run *r)
{
    if (before) count(out, r->first - before->first - (uint64_t)before->step * (before->n - 1), 1);
    if (r->n > 1) count(out, r->step, r->n - 1);
}

void gap_count_spans(struct gap_spans *s, struct mg_map *out)
{
    if (s->n) qsort(s->at, s->n, sizeof *s->at, by_cta);
    for (uint32_t i = 0; i < s->n; i++)
        count_runs(
            out, i && s->at[i - 1].step == s->at[i].step && s->at[i - 1].cta == s->at[i].cta ? &s->at[i - 1].run : NULL,
            &s->at[i].run);
    s->n = 0;
}

static int by_unit(const void *a, const void *b)
{
    const struct gap_store *x = a, *y = b;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    return by_first(&x->run, &y->run);
}

/* Runs of one unit may interleave: a CTA reads every other word, another one the rest. Each address is there once. */
void gap_count_stores(struct gap_stores *s, struct mg_map *out)
{
    struct gap_runs r = {0};
    struct gap_spans spans = {0};
    if (s->n) qsort(s->at, s->n, sizeof *s->at, by_unit);
    for (uint32_t i = 0; i < s->n; i++) {
        *mg_vec_push(&r) = s->at[i].run;
        if (i + 1 < s->n && s->at[i + 1].unit == s->at[i].unit) continue;
        gap_runs_close(&r, 0, 0, &spans);
        gap_count_spans(&spans, out);
    }
    mg_vec_release(&r);
    mg_vec_release(&spans);
}

static int by_bytes(const void *a, const void *b)
{
    return mg_by_u64(&((const struct mg_comm_gap *)a)->bytes, &((const struct mg_comm_gap *)b)->bytes);
}

void gap_list(const struct mg_map *counts, mg_comm_gaps *out)
{
    uint64_t bytes, n;
    out->n = 0;
    for (uint32_t i = 0; mg_map_next(counts, &i, &bytes, &n);) *mg_vec_push(out) = (struct mg_comm_gap){bytes, n};
    if (out->n) qsort(out->at, out->n, sizeof *out->at, by_bytes);
}
