#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts by value and adds up the counts of equal ones. */
static void join_bins(mg_comm_bins *b)
{
    uint32_t to = 0;
    if (b->n) qsort(b->at, b->n, sizeof *b->at, by_value);
    for (uint32_t i = 0; i < b->n; i++) {
        if (to && b->at[to - 1].value == b->at[i].value)
            b->at[to - 1].count += b->at[i].count;
        else
            b->at[to++] = b->at[i];
    }
    b->n = to;
}

static void count_sizes(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    for (uint32_t i = 0; i < r->n_edges; i++) {
        *mg_vec_push(&m->sizes) = (struct mg_comm_bin){r->edges[i].bytes, 1};
        m->bytes += r->edges[i].bytes;
    }
    join_bins(&m->sizes);
}

static bool same_stream(const struct mg_comm_step *a, const struct mg_comm_step *b)
{
    return a->device == b->device && a->context == b->context && a->stream == b->stream;
}

static void count_distances(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_step *a = &r->steps[r->edges[i].source_step], *b = &r->steps[r->edges[i].target_step];
        if (!same_stream(a, b))
            m->other_stream += r->edges[i].bytes;
        else
            *mg_vec_push(&m->distance) = (struct mg_comm_bin){b->superstep - a->superstep - 1, r->edges[i].bytes};
    }
    join_bins(&m->distance);
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

static int by_cell(const void *a, const void *b)
{
    const struct mg_comm_cell *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

static void count_density(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    uint32_t to = 0;
    for (uint32_t i = 0; mg_comm_has_ctas(r) && i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        if (e->source == MG_COMM_SEVERAL) continue;
        struct mg_comm_cell c = {mg_comm_cta_of(&r->steps[e->source_step], e->source),
                                 mg_comm_cta_of(&r->steps[e->target_step], e->target), e->reads, e->bytes};
        m->density_ctas = MG_MAX(m->density_ctas, MG_MAX(c.source, c.target) + 1);
        *mg_vec_push(&m->density) = c;
    }
    if (m->density.n) qsort(m->density.at, m->density.n, sizeof *m->density.at, by_cell);
    for (uint32_t i = 0; i < m->density.n; i++) {
        struct mg_comm_cell *last = to ? &m->density.at[to - 1] : NULL, *c = &m->density.at[i];
        if (last && last->source == c->source && last->target == c->target) {
            last->reads += c->reads;
            last->bytes += c->bytes;
        } else {
            m->density.at[to++] = *c;
        }
    }
    m->density.n = to;
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

static void list_degrees(mg_comm_bins *b, const uint32_t *degree, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = MG_MAX(most, degree[i]);
    uint64_t *count = mg_xcalloc((size_t)most + 1, sizeof *count);
    for (uint32_t i = 0; i < n; i++) count[degree[i]]++;
    for (uint32_t i = 0; i <= most; i++)
        if (count[i]) *mg_vec_push(b) = (struct mg_comm_bin){i, count[i]};
    free(count);
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

struct fan {
    uint32_t step, entity, targets;
    uint64_t bytes, fresh;
}; /* of a source, over the edges into one step */

static int by_source(const void *a, const void *b)
{
    const struct fan *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return x->entity < y->entity ? -1 : x->entity > y->entity;
}

static uint32_t make_fans(const struct mg_comm_edge *e, uint32_t n, struct fan *fans)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < n; i++) fans[i] = (struct fan){e[i].source_step, e[i].source, 1, e[i].bytes, e[i].fresh};
    qsort(fans, n, sizeof *fans, by_source);
    for (uint32_t i = 0; i < n; i++) {
        if (!to || by_source(&fans[to - 1], &fans[i])) {
            fans[to++] = fans[i];
            continue;
        }
        fans[to - 1].targets++;
        fans[to - 1].bytes += fans[i].bytes;
        fans[to - 1].fresh += fans[i].fresh;
    }
    return to;
}

static void count_patterns(const struct mg_comm_result *r, const struct mg_comm_step *s, struct mg_comm_by_step *out)
{
    if (!s->n_edges) return;
    const struct mg_comm_edge *e = r->edges + s->first_edge;
    struct fan *fans = mg_xmalloc(s->n_edges * sizeof *fans);
    uint32_t n = make_fans(e, s->n_edges, fans);
    for (uint32_t i = 0, to; i < s->n_edges; i = to) {
        for (to = i + 1; to < s->n_edges && e[to].target == e[i].target; to++) {
        }
        for (uint32_t k = i; k < to; k++) {
            struct fan key = {e[k].source_step, e[k].source, 0, 0, 0};
            const struct fan *f = bsearch(&key, fans, n, sizeof *fans, by_source);
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
    free(fans);
}

void mg_comm_metrics_init(struct mg_comm_metrics *m, const struct mg_comm_result *r)
{
    memset(m, 0, sizeof *m);
    count_sizes(m, r);
    count_distances(m, r);
    count_bisection(m, r);
    count_density(m, r);
    struct degrees d = count_degrees(r);
    list_degrees(&m->in_degree, d.in, d.n);
    list_degrees(&m->out_degree, d.out, d.n);
    m->steps = mg_xcalloc((size_t)r->n_steps + 1, sizeof *m->steps);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const struct mg_comm_step *s = &r->steps[i];
        spread(d.out + d.first[i], d.first[i + 1] - d.first[i], &m->steps[i]);
        count_patterns(r, s, &m->steps[i]);
        for (uint32_t k = 0; k < s->n_ctas; k++) {
            m->total.load += s->total[k].load;
            m->total.store += s->total[k].store;
            m->total.atomic += s->total[k].atomic;
            m->used.load += s->used[k].load;
            m->used.store += s->used[k].store;
            m->used.atomic += s->used[k].atomic;
        }
    }
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
