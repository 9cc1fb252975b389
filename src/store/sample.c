/* Estimates from a sample of a kernel's launches, see sample.h. */
#include "store/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct record { /* one row of launches: a launch, or replays that were counted together */
    const struct mg_plaunch *l;
    double times, threads; /* of one launch */
    bool counted;
};
struct records { struct record *at; uint64_t n; double times, times_counted; };

static bool is_counted(const struct mg_plaunch *l, const struct mg_pkernel *k)
{
    return l->ran == MG_RAN_INSTRUMENTED && l->complete && l->threads && l->n_counts >= k->n_blocks;
}

static int by_geometry(const void *a, const void *b)
{
    const struct mg_plaunch *x = ((const struct record *)a)->l, *y = ((const struct record *)b)->l;
    int c = memcmp(x->grid, y->grid, sizeof x->grid);
    if (!c) c = memcmp(x->block, y->block, sizeof x->block);
    return c ? c : (x->dyn_shared_bytes > y->dyn_shared_bytes) - (x->dyn_shared_bytes < y->dyn_shared_bytes);
}

/* Every launch of the kernel, by geometry. Those that were to be counted and did not complete are left out. */
static struct records records_of(const struct mg_profile *p, const struct mg_pkernel *k)
{
    struct records r = {.at = calloc(k->launches + 1, sizeof *r.at)};
    for (uint64_t i = 0; r.at && i < p->n_launches && r.n <= k->launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (l->kernel != k->id || l->ran == MG_RAN_UNKNOWN || (l->ran == MG_RAN_INSTRUMENTED && !is_counted(l, k))) continue;
        struct record *to = &r.at[r.n++];
        *to = (struct record){.l = l, .times = (double)(l->replays ? l->replays : 1), .threads = 1, .counted = is_counted(l, k)};
        for (int d = 0; d < 3; d++) to->threads *= (double)l->grid[d] * l->block[d];
        r.times += to->times;
        r.times_counted += to->counted ? to->times : 0;
    }
    if (r.at) qsort(r.at, r.n, sizeof *r.at, by_geometry);
    return r;
}

/* What one launch of the record counted: entries of a block, or instructions. */
static double count_of(const struct record *r, const struct mg_pkernel *k, uint32_t block)
{
    double sum = 0;
    if (block < k->n_blocks) sum = (double)r->l->threads[block];
    else for (uint32_t b = 0; b < k->n_blocks; b++) sum += (double)r->l->threads[b] * k->blocks[b].n_insts;
    return sum / r->times;
}

/* Two-sided 95 % quantile of Student's t. */
static double quantile(double freedom)
{
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                               2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    if (freedom > (double)MG_COUNT_OF(t)) return 1.96 + 2.46 / freedom;
    return t[freedom < 1 ? 0 : (size_t)freedom - 1];
}

struct stratum { double times, counted, records, mean, square; }; /* square: sum of squared distances from the mean */

/* Counted records from..to, their distances from `ratio` times the threads, or (ratio < 0) from their mean. */
static struct stratum look_at(const struct records *r, uint64_t from, uint64_t to, const struct mg_pkernel *k, uint32_t block, double ratio)
{
    struct stratum s = {0};
    for (uint64_t i = from; i < to; i++) {
        const struct record *one = &r->at[i];
        s.times += one->times;
        if (!one->counted) continue;
        s.counted += one->times;
        s.records++;
        s.mean += one->times * count_of(one, k, block);
    }
    s.mean = s.counted > 0 ? s.mean / s.counted : 0;
    for (uint64_t i = from; i < to; i++) {
        const struct record *one = &r->at[i];
        double off = one->counted ? count_of(one, k, block) - (ratio < 0 ? s.mean : ratio * one->threads) : 0;
        s.square += one->times * off * off;
    }
    return s;
}

/* Variance of the stratum's total; *freedom becomes the least seen. */
static double variance(const struct stratum *s, double *freedom)
{
    if (s->counted >= s->times) return 0;
    *freedom = MG_MIN(*freedom, s->records - 1);
    if (s->records < 2) return 0;
    double one = s->square / s->counted * s->records / (s->records - 1);
    return s->times * s->times * (1 - s->counted / s->times) * one / s->records;
}

static uint64_t stratum_end(const struct records *r, uint64_t from)
{
    uint64_t to = from;
    while (to < r->n && !by_geometry(&r->at[from], &r->at[to])) to++;
    return to;
}

static struct mg_estimate finish(double value, double square, double freedom)
{
    return (struct mg_estimate){value, freedom < 1 ? -1 : quantile(freedom) * sqrt(square)};
}

static struct mg_estimate by_strata(const struct records *r, const struct mg_pkernel *k, uint32_t block)
{
    double value = 0, square = 0, freedom = INFINITY;
    for (uint64_t i = 0, to; i < r->n; i = to) {
        to = stratum_end(r, i);
        struct stratum s = look_at(r, i, to, k, block, -1);
        value += s.times * s.mean;
        square += variance(&s, &freedom);
    }
    return finish(value, square, freedom);
}

static struct mg_estimate by_threads(const struct records *r, const struct mg_pkernel *k, uint32_t block)
{
    double threads[2] = {0, 0}, sum = 0, freedom = INFINITY;
    for (uint64_t i = 0; i < r->n; i++) {
        const struct record *one = &r->at[i];
        threads[one->counted] += one->times * one->threads;
        sum += one->counted ? one->times * count_of(one, k, block) : 0;
    }
    double ratio = threads[1] > 0 ? sum / threads[1] : 0;
    struct stratum s = look_at(r, 0, r->n, k, block, ratio);
    double square = variance(&s, &freedom);
    return finish(ratio * (threads[0] + threads[1]), square, freedom);
}

static enum mg_sample_method method_of(const struct records *r)
{
    for (uint64_t i = 0, to; i < r->n; i = to) {
        uint64_t counted = 0;
        to = stratum_end(r, i);
        for (uint64_t j = i; j < to; j++) counted += r->at[j].counted;
        if (counted < 2 && counted < to - i) return MG_SAMPLE_THREADS;
    }
    return MG_SAMPLE_GEOMETRY;
}

bool mg_sample_of(const struct mg_profile *p, const struct mg_pkernel *k, struct mg_sample *out)
{
    *out = (struct mg_sample){0};
    if (k->estimated || !k->instrumented || k->instrumented >= k->launches || !k->n_blocks) return false;
    struct records r = records_of(p, k);
    bool some = r.at && r.times_counted > 0 && r.times_counted < r.times;
    if (some) out->blocks = calloc(k->n_blocks, sizeof *out->blocks);
    if (out->blocks) {
        out->launches = (uint64_t)r.times;
        out->counted = (uint64_t)r.times_counted;
        out->method = method_of(&r);
        struct mg_estimate (*estimate)(const struct records *, const struct mg_pkernel *, uint32_t) = out->method == MG_SAMPLE_GEOMETRY ? by_strata : by_threads;
        for (uint32_t b = 0; b < k->n_blocks; b++) out->blocks[b] = estimate(&r, k, b);
        out->insts = estimate(&r, k, k->n_blocks);
    }
    free(r.at);
    return out->blocks != NULL;
}

void mg_sample_release(struct mg_sample *s)
{
    free(s->blocks);
    s->blocks = NULL;
}
