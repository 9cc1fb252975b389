/* Estimates from a sample of a kernel's launches, see sample.h. */
#include "store/sample.h"

#include <stdlib.h>
#include <string.h>

struct records { /* rows of launches, by geometry: a launch, or replays that were counted together */
    const struct mg_plaunch **of;
    struct mg_member *m;
    uint64_t n;
    double times, times_counted;
};

static bool is_counted(const struct mg_plaunch *l, const struct mg_pkernel *k)
{
    return l->ran == MG_RAN_INSTRUMENTED && l->complete && l->threads && l->n_counts >= k->n_blocks;
}

static int by_geometry(const void *a, const void *b)
{
    const struct mg_plaunch *x = *(const struct mg_plaunch *const *)a, *y = *(const struct mg_plaunch *const *)b;
    int c = memcmp(x->grid, y->grid, sizeof x->grid);
    if (!c) c = memcmp(x->block, y->block, sizeof x->block);
    return c ? c : (x->dyn_shared_bytes > y->dyn_shared_bytes) - (x->dyn_shared_bytes < y->dyn_shared_bytes);
}

/* Every launch of the kernel, by geometry. Those that were to be counted and did not complete are left out. */
static struct records records_of(const struct mg_recording *p, const struct mg_pkernel *k)
{
    struct records r = {.of = calloc(k->launches + 1, sizeof *r.of), .m = calloc(k->launches + 1, sizeof *r.m)};
    for (uint64_t i = 0; r.of && r.m && i < p->n_launches && r.n <= k->launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (l->kernel == k->id && !l->repeat && l->ran != MG_RAN_UNKNOWN &&
            (l->ran != MG_RAN_INSTRUMENTED || is_counted(l, k)))
            r.of[r.n++] = l;
    }
    if (r.n) qsort(r.of, r.n, sizeof *r.of, by_geometry);
    for (uint64_t i = 0; i < r.n; i++) {
        const struct mg_plaunch *l = r.of[i];
        r.m[i] = (struct mg_member){.stratum = i ? r.m[i - 1].stratum + (by_geometry(&r.of[i - 1], &r.of[i]) != 0) : 0,
                                    .counted = is_counted(l, k),
                                    .times = (double)(l->replays ? l->replays : 1),
                                    .size = 1};
        for (int d = 0; d < 3; d++) r.m[i].size *= (double)l->grid[d] * l->block[d];
        r.times += r.m[i].times;
        r.times_counted += r.m[i].counted ? r.m[i].times : 0;
    }
    return r;
}

/* What one launch of the record counted: entries of a block, or instructions. */
static double count_of(const struct mg_plaunch *l, const struct mg_pkernel *k, uint32_t block, double times)
{
    double sum = 0;
    if (block < k->n_blocks)
        sum = (double)l->threads[block];
    else
        for (uint32_t b = 0; b < k->n_blocks; b++) sum += (double)l->threads[b] * k->blocks[b].n_insts;
    return sum / times;
}

static struct mg_estimate estimate(struct records *r, const struct mg_pkernel *k, uint32_t block,
                                   enum mg_sample_method method)
{
    for (uint64_t i = 0; i < r->n; i++)
        if (r->m[i].counted) r->m[i].count = count_of(r->of[i], k, block, r->m[i].times);
    return mg_estimate_total(r->m, r->n, method);
}

bool mg_sample_of(const struct mg_recording *p, const struct mg_pkernel *k, struct mg_sample *out)
{
    *out = (struct mg_sample){0};
    if (k->estimated || !k->instrumented || k->instrumented >= k->launches || !k->n_blocks) return false;
    struct records r = records_of(p, k);
    if (r.n && r.times_counted > 0 && r.times_counted < r.times) out->blocks = calloc(k->n_blocks, sizeof *out->blocks);
    if (out->blocks) {
        out->launches = (uint64_t)r.times;
        out->counted = (uint64_t)r.times_counted;
        out->method = mg_estimate_method(r.m, r.n);
        for (uint32_t b = 0; b < k->n_blocks; b++) out->blocks[b] = estimate(&r, k, b, out->method);
        out->insts = estimate(&r, k, k->n_blocks, out->method);
    }
    free(r.of);
    free(r.m);
    return out->blocks != NULL;
}

void mg_sample_release(struct mg_sample *s)
{
    free(s->blocks);
    s->blocks = NULL;
}

/* ---- times of either code ------------------------------------------------------------------------------------ */

static bool has_time(const struct mg_plaunch *l)
{
    return l->timed && l->complete && l->replays <= 1;
}

/* By geometry, then code, then time; those without a time last. */
static int by_time(const void *a, const void *b)
{
    const struct mg_plaunch *x = *(const struct mg_plaunch *const *)a, *y = *(const struct mg_plaunch *const *)b;
    int c = by_geometry(a, b);
    if (!c) c = has_time(y) - has_time(x);
    if (!c) c = (x->ran == MG_RAN_INSTRUMENTED) - (y->ran == MG_RAN_INSTRUMENTED);
    return c ? c : (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static double median(const struct mg_plaunch *const *of, uint64_t n)
{
    return ((double)of[(n - 1) / 2]->time_ns + (double)of[n / 2]->time_ns) / 2;
}

bool mg_sample_times(const struct mg_recording *p, const struct mg_pkernel *k, struct mg_both_times *out)
{
    *out = (struct mg_both_times){0};
    const uint64_t all = k->launches + k->repeats;
    const struct mg_plaunch **of =
        k->instrumented && (k->repeats || k->instrumented < k->launches) ? calloc(all + 1, sizeof *of) : NULL;
    uint64_t n = 0;
    for (uint64_t i = 0; of && i < p->n_launches && n <= all; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (l->kernel == k->id && l->ran != MG_RAN_UNKNOWN) of[n++] = l;
    }
    if (n) qsort(of, n, sizeof *of, by_time);
    for (uint64_t i = 0, end; i < n; i = end) {
        uint64_t native = 0, counted = 0, times = 0;
        for (end = i; end < n && !by_geometry(&of[i], &of[end]); end++) {
            if (!of[end]->repeat) times += of[end]->replays ? of[end]->replays : 1;
            if (has_time(of[end])) *(of[end]->ran == MG_RAN_INSTRUMENTED ? &counted : &native) += 1;
        }
        if (!native || !counted) continue;
        out->launches += times;
        out->native_ns += (double)times * median(&of[i], native);
        out->instrumented_ns += (double)times * median(&of[i + native], counted);
    }
    free(of);
    return out->launches != 0;
}
