#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "study/comm_metrics.h"

const char *mg_comm_pattern_name(enum mg_comm_pattern p)
{
    static const char *const names[] = {"point_to_point", "gather", "scatter", "multicast", "all_to_all"};
    _Static_assert(MG_COUNT_OF(names) == MG_COMM_PATTERN_COUNT, "a name for each");
    return names[p];
}

bool mg_comm_has_ctas(const struct mg_comm_result *r)
{
    return r->opts.entity <= MG_COMM_THREAD;
}

/* ---- how often each value ----------------------------------------------------------------------------- */

enum { SMALL = 4096 };
struct tally {
    uint64_t small[SMALL]; /* by value */
    struct mg_map large;
};

static void tell(struct tally *t, uint64_t value, uint64_t count)
{
    uint64_t before = 0;
    if (value < SMALL) {
        t->small[value] += count;
        return;
    }
    mg_map_get(&t->large, value, &before);
    mg_map_set(&t->large, value, before + count);
}

static int by_value(const void *a, const void *b)
{
    const struct mg_comm_bin *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* By value; the tally is empty after it. */
static void list_tally(struct tally *t, mg_comm_bins *out)
{
    uint64_t value, count;
    for (uint32_t i = 0; i < SMALL; i++)
        if (t->small[i]) *mg_vec_push(out) = (struct mg_comm_bin){i, t->small[i]};
    uint32_t first = out->n;
    for (uint32_t i = 0; mg_map_next(&t->large, &i, &value, &count);)
        *mg_vec_push(out) = (struct mg_comm_bin){value, count};
    if (out->n > first) qsort(out->at + first, out->n - first, sizeof *out->at, by_value);
    mg_map_release(&t->large);
    memset(t, 0, sizeof *t);
}

static void count_sizes(struct mg_comm_metrics *m, const struct mg_comm_result *r, struct tally *t)
{
    for (uint32_t i = 0; i < r->n_edges; i++) {
        tell(t, r->edges[i].bytes, 1);
        m->bytes += r->edges[i].bytes;
    }
    list_tally(t, &m->sizes);
}

static bool same_stream(const struct mg_comm_step *a, const struct mg_comm_step *b)
{
    return a->device == b->device && a->context == b->context && a->stream == b->stream;
}

static void count_distances(struct mg_comm_metrics *m, const struct mg_comm_result *r, struct tally *t)
{
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_step *a = &r->steps[r->edges[i].source_step], *b = &r->steps[r->edges[i].target_step];
        if (!same_stream(a, b))
            m->other_stream += r->edges[i].bytes;
        else
            tell(t, b->superstep - a->superstep - 1, r->edges[i].bytes);
    }
    list_tally(t, &m->distance);
}

/* ---- the grid ----------------------------------------------------------------------------------------- */

static uint32_t index_in(const struct mg_comm_step *s, uint32_t cta, int dim)
{
    uint32_t x = MG_MAX(s->grid[0], 1u), y = MG_MAX(s->grid[1], 1u);
    return dim == 0 ? cta % x : dim == 1 ? cta / x % y : cta / x / y;
}

static bool upper_half(const struct mg_comm_step *s, uint32_t cta, int dim)
{
    return index_in(s, cta, dim) >= (s->grid[dim] + 1) / 2;
}

static void count_bisection(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        const struct mg_comm_step *a = &r->steps[e->source_step], *b = &r->steps[e->target_step];
        if (!mg_comm_has_ctas(r) || e->source == MG_COMM_SEVERAL) {
            m->unplaced += e->bytes;
            continue;
        }
        uint32_t from = mg_comm_cta_of(a, e->source), to = mg_comm_cta_of(b, e->target);
        for (int dim = 0; dim < 3; dim++) {
            if (a->grid[dim] < 2 && b->grid[dim] < 2) continue;
            m->bisection[dim].is_known = true;
            if (upper_half(a, from, dim) != upper_half(b, to, dim)) m->bisection[dim].bytes += e->bytes;
        }
    }
}

static void count_density(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    uint32_t n = 0;
    if (!mg_comm_has_ctas(r) || !r->n_edges) return;
    struct mg_sort_key *keys = mg_xmalloc((size_t)r->n_edges * 2 * sizeof *keys);
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        if (e->source == MG_COMM_SEVERAL) continue;
        uint32_t source = mg_comm_cta_of(&r->steps[e->source_step], e->source),
                 target = mg_comm_cta_of(&r->steps[e->target_step], e->target);
        m->density_ctas = MG_MAX(m->density_ctas, MG_MAX(source, target) + 1);
        keys[n++] = (struct mg_sort_key){(uint64_t)source << 32 | target, i};
    }
    mg_sort_keys(keys, keys + r->n_edges, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_comm_edge *e = &r->edges[keys[i].ix];
        if (!i || keys[i].key != keys[i - 1].key)
            *mg_vec_push(&m->density) =
                (struct mg_comm_cell){.source = (uint32_t)(keys[i].key >> 32), .target = (uint32_t)keys[i].key};
        m->density.at[m->density.n - 1].reads += e->reads;
        m->density.at[m->density.n - 1].bytes += e->bytes;
    }
    free(keys);
}

/* ---- degrees ------------------------------------------------------------------------------------------ */

struct degrees {                /* of the entities of all steps, in one row */
    uint32_t *first, *out, *in; /* first: place of each step's first entity */
    uint32_t n;
};

static struct degrees count_degrees(const struct mg_comm_result *r)
{
    struct degrees d = {.first = mg_xmalloc((r->n_steps + 1) * sizeof *d.first)};
    for (uint32_t i = 0; i < r->n_steps; i++) {
        d.first[i] = d.n;
        d.n += mg_comm_entities(r, &r->steps[i]);
    }
    d.first[r->n_steps] = d.n;
    d.out = mg_xcalloc((size_t)d.n + 1, sizeof *d.out);
    d.in = mg_xcalloc((size_t)d.n + 1, sizeof *d.in);
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        d.in[d.first[e->target_step] + e->target]++;
        if (e->source != MG_COMM_SEVERAL) d.out[d.first[e->source_step] + e->source]++;
    }
    return d;
}

static void list_degrees(struct tally *t, mg_comm_bins *b, const uint32_t *degree, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) tell(t, degree[i], 1);
    list_tally(t, b);
}

static void spread(const uint32_t *degree, uint32_t n, struct mg_comm_by_step *out)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += degree[i];
        squares += (double)degree[i] * degree[i];
        out->active += degree[i] != 0;
    }
    out->mean = n ? sum / n : 0;
    out->deviation = n ? sqrt(fmax(0, squares / n - out->mean * out->mean)) : 0;
    double k = (double)out->active;
    out->active_mean = k ? sum / k : 0;
    out->active_deviation = k ? sqrt(fmax(0, squares / k - out->active_mean * out->active_mean)) : 0;
}

/* ---- patterns ----------------------------------------------------------------------------------------- */

struct fan { /* of a source, over the edges into one step */
    uint64_t targets, bytes, fresh;
};
struct fans {
    uint32_t *of; /* by entity, of those with several sources by step behind them: index + 1; 0: none */
    MG_VEC(struct fan) at;
};

static uint32_t *fan_of(const struct fans *f, const struct degrees *d, const struct mg_comm_edge *e)
{
    return &f->of[e->source == MG_COMM_SEVERAL ? (size_t)d->n + e->source_step
                                               : (size_t)d->first[e->source_step] + e->source];
}

static void make_fans(struct fans *f, const struct degrees *d, const struct mg_comm_edge *e, uint32_t n)
{
    f->at.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *ix = fan_of(f, d, &e[i]);
        if (!*ix) {
            *mg_vec_push(&f->at) = (struct fan){0};
            *ix = f->at.n;
        }
        struct fan *to = &f->at.at[*ix - 1];
        to->targets++;
        to->bytes += e[i].bytes;
        to->fresh += e[i].fresh;
    }
}

static void count_patterns(const struct mg_comm_result *r, const struct mg_comm_step *s, const struct degrees *d,
                           struct fans *fans, struct mg_comm_by_step *out)
{
    if (!s->n_edges) return;
    const struct mg_comm_edge *e = r->edges + s->first_edge;
    make_fans(fans, d, e, s->n_edges);
    for (uint32_t i = 0, to; i < s->n_edges; i = to) {
        for (to = i + 1; to < s->n_edges && e[to].target == e[i].target; to++) {
        }
        for (uint32_t k = i; k < to; k++) {
            const struct fan *f = &fans->at.at[*fan_of(fans, d, &e[k]) - 1];
            enum mg_comm_pattern p = MG_COMM_POINT_TO_POINT;
            if (f->targets > 1 && to - i > 1)
                p = MG_COMM_ALL;
            else if (f->targets > 1)
                p = f->fresh < f->bytes ? MG_COMM_MULTICAST : MG_COMM_SCATTER;
            else if (to - i > 1)
                p = MG_COMM_GATHER;
            out->pattern[p].edges++;
            out->pattern[p].bytes += e[k].bytes;
        }
    }
    for (uint32_t i = 0; i < s->n_edges; i++) *fan_of(fans, d, &e[i]) = 0;
}

void mg_comm_metrics_init(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    memset(m, 0, sizeof *m);
    struct tally *t = mg_xcalloc(1, sizeof *t);
    count_sizes(m, r, t);
    count_distances(m, r, t);
    count_bisection(m, r);
    count_density(m, r);
    struct degrees d = count_degrees(r);
    struct fans fans = {.of = mg_xcalloc((size_t)d.n + r->n_steps + 1, sizeof *fans.of)};
    list_degrees(t, &m->in_degree, d.in, d.n);
    list_degrees(t, &m->out_degree, d.out, d.n);
    m->steps = mg_xcalloc((size_t)r->n_steps + 1, sizeof *m->steps);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const struct mg_comm_step *s = &r->steps[i];
        spread(d.out + d.first[i], d.first[i + 1] - d.first[i], &m->steps[i]);
        count_patterns(r, s, &d, &fans, &m->steps[i]);
        for (uint32_t k = 0; k < s->n_ctas; k++) {
            m->total.load += s->total[k].load;
            m->total.store += s->total[k].store;
            m->total.atomic += s->total[k].atomic;
            m->used.load += s->used[k].load;
            m->used.store += s->used[k].store;
            m->used.atomic += s->used[k].atomic;
        }
    }
    mg_vec_release(&fans.at);
    free(fans.of);
    free(t);
    free(d.first);
    free(d.out);
    free(d.in);
}

void mg_comm_metrics_release(struct mg_comm_metrics *m)
{
    mg_vec_release(&m->sizes);
    mg_vec_release(&m->in_degree);
    mg_vec_release(&m->out_degree);
    mg_vec_release(&m->density);
    mg_vec_release(&m->distance);
    free(m->steps);
}
