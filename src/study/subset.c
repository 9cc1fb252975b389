/* Selections: what methods share, the simple methods, and how a selection is judged. */
#include "study/subset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

const struct mg_method mg_methods[] = {
    {"simpoint", "clusters of feature vectors, the interval nearest to each centre (GT-Pin)", false, true,
     mg_select_simpoint},
    {"pka", "clusters of ten counts after principal components, the first launch of each", true, false, mg_select_pka},
    {"sieve", "strata by kernel and instruction counts, one launch of each", false, false, mg_select_sieve},
    {"stem", "strata by kernel and time (ROOT), samples of each (STEM)", true, false, mg_select_stem},
    {"random", "drawn at random", false, false, mg_select_random},
    {"systematic", "every n-th", false, false, mg_select_systematic},
    {"first", "the first ones", false, false, mg_select_first},
    {"name", "the first of every kernel", false, false, mg_select_name},
    {"margay", "strata by kernel, shape and counts, samples of each, ratios to exact counts", false, false,
     mg_select_strata},
};
const uint32_t mg_n_methods = MG_COUNT_OF(mg_methods);

const struct mg_method *mg_method_find(const char *name)
{
    for (uint32_t i = 0; i < mg_n_methods; i++)
        if (!strcmp(mg_methods[i].name, name)) return &mg_methods[i];
    return NULL;
}

static int by_interval(const void *a, const void *b)
{
    const struct mg_pick *x = a, *y = b;
    return x->interval < y->interval ? -1 : x->interval > y->interval;
}

enum mg_err mg_subset_init(struct mg_subset *s, const struct mg_vectors *v, const struct mg_subset_opts *o,
                           struct mg_diag *d)
{
    const struct mg_method *m = mg_method_find(o->method ? o->method : "simpoint");
    *s = (struct mg_subset){.v = v, .seed = o->seed};
    if (!m) return mg_diag_err(d, MG_ERR_NOT_FOUND, "no method %.100s", o->method);
    s->method = m->name;
    s->has_features = m->has_features;
    if (m->needs_times && isnan(v->time_ns))
        return mg_diag_err(d, MG_ERR_INPUT,
                           "method %s selects by time, and not every launch of the first profile was timed", m->name);
    s->picks = mg_arena_array(&s->arena, struct mg_pick, v->n);
    s->of_design = mg_arena_array(&s->arena, struct mg_errors, 1);
    s->of_joined = mg_arena_array(&s->arena, uint32_t, 1);
    enum mg_err err = m->select(s, o, d);
    if (err) return err;
    qsort(s->picks, s->n_picks, sizeof *s->picks, by_interval);
    return MG_ERR_OK;
}

void mg_subset_release(struct mg_subset *s)
{
    mg_arena_release(&s->arena);
}

void mg_subset_pick(struct mg_subset *s, uint32_t interval, double times)
{
    s->picks[s->n_picks++] = (struct mg_pick){interval, times};
}

double mg_pick_weight(const struct mg_subset *s, const struct mg_pick *p)
{
    return p->times * s->v->intervals[p->interval].insts / s->v->insts;
}

struct mg_speedup mg_subset_speedup(const struct mg_subset *s)
{
    double insts = 0, launches = 0, time = 0;
    for (uint32_t i = 0; i < s->n_picks; i++) {
        const struct mg_interval *x = &s->v->intervals[s->picks[i].interval];
        insts += x->insts;
        launches += (double)x->n_launches;
        time += x->time_ns;
    }
    return (struct mg_speedup){s->v->insts / insts, (double)s->v->n_launches / launches, s->v->time_ns / time};
}

/* ---- judging ------------------------------------------------------------------------------------------------ */

struct side {
    double *time, *insts;
    double time_ns, all_insts;
}; /* of each interval, and in all */

static void look_at_run(const struct mg_subset *s, const struct mg_subset_program *run, struct side *x)
{
    x->time = mg_xcalloc(s->v->n, sizeof *x->time);
    x->insts = mg_xcalloc(s->v->n, sizeof *x->insts);
    bool counted = true;
    for (uint32_t i = 0; i < s->v->n; i++) {
        const struct mg_interval *v = &s->v->intervals[i];
        for (uint64_t j = v->member; j < v->member + v->n_launches; j++) {
            x->time[i] += run->launches[s->v->members[j]].time_ns;
            x->insts[i] += run->launches[s->v->members[j]].insts;
        }
        counted = counted && !isnan(x->insts[i]);
        x->time_ns += x->time[i];
        x->all_insts += x->insts[i];
    }
    if (counted) return;
    x->all_insts = s->v->insts; /* a run for its times: counts are those of the selecting run */
    for (uint32_t i = 0; i < s->v->n; i++) x->insts[i] = s->v->intervals[i].insts;
}

static struct mg_design design_of(const struct mg_subset *s, const uint32_t *order)
{
    return (struct mg_design){s->stratum, s->size, order, s->v->n, s->n_strata, s->spread};
}

/* What sampled values are compared with, for a run of these counts (NULL: of the selecting run's): instructions, or
 * the times that the selecting run, or half of its trials, would have with them. */
enum compared { WITH_COUNTS, WITH_TIMES, WITH_HALF };
static double *sizes_for(const struct mg_subset *s, enum compared with, const double *insts)
{
    double *sizes = mg_xcalloc(s->v->n, sizeof *sizes);
    for (uint32_t i = 0; i < s->v->n; i++) {
        const struct mg_interval *x = &s->v->intervals[i];
        double n = insts ? insts[i] : x->insts;
        sizes[i] = with == WITH_COUNTS ? n : (with == WITH_HALF ? s->half[i] : fmax(x->time_ns, 1)) * n / x->insts;
    }
    return sizes;
}
static enum compared usual(const struct mg_subset *s)
{
    return s->by_times ? WITH_TIMES : WITH_COUNTS;
}

static struct mg_errors errors_of_design(const struct mg_subset *s, enum compared with, enum mg_estimator estimator,
                                         const struct mg_recorded *runs)
{
    if (*s->of_joined != runs->joined) {
        struct mg_design g = design_of(s, NULL);
        double *sizes = sizes_for(s, with, NULL);
        *s->of_design = mg_design_errors(&g, sizes, runs, estimator, s->seed);
        *s->of_joined = runs->joined;
        free(sizes);
    }
    return *s->of_design;
}

/* The wider of what the sample says and what recorded runs do, or the one that is known. Recorded runs whose times the
 * estimator knows would say too little of others: those of one half are then judged with times of the other half. */
static void find_interval(const struct mg_subset *s, const struct mg_stratified *st, const struct mg_total *t,
                          const struct side *x, uint32_t joined, struct mg_judged *j)
{
    struct mg_recorded runs = {s->v->run_times, s->v->n_runs, s->v->n_runs, 1, joined, s->v->least};
    struct mg_errors e = {NAN, NAN};
    struct mg_stratified known = *st;
    if (runs.values) {
        enum compared with = s->half ? WITH_HALF : WITH_COUNTS;
        double *sizes = sizes_for(s, with, x->insts);
        if (s->half) runs.values++, runs.n_runs /= 2, runs.step = 2;
        if (s->by_times && !s->half) known.estimator = MG_ESTIMATE_SIZE;
        known.size = sizes;
        j->scatter_ratio = mg_scatter_ratio(&known, x->time, &runs);
        double wider = fmax(j->scatter_ratio, 1);
        e = errors_of_design(s, with, known.estimator, &runs);
        e.low *= wider;
        e.high *= wider;
        free(sizes);
    }
    j->low_pct = 100 * fmax(fmin(t->low / t->value - 1, e.low), -1); /* no time is below 0 */
    j->high_pct = 100 * fmax(t->high / t->value - 1, e.high);
}

struct mg_judged mg_subset_judge(const struct mg_subset *s, const struct mg_subset_program *run)
{
    struct mg_judged j = {NAN, NAN, NAN, NAN, NAN, NAN};
    struct side x = {0};
    double projected = 0;
    look_at_run(s, run, &x);
    if (s->stratum) {
        double *sizes = sizes_for(s, usual(s), x.insts);
        struct mg_stratified st = {s->v->n, s->n_strata, s->stratum, sizes, s->sampled, s->estimator};
        struct mg_total t = mg_stratified_total(&st, x.time, s->seed);
        projected = s->by_times ? mg_stratified_robust(&st, x.time) : t.value;
        find_interval(s, &st, &t, &x, MG_MAX(run->trials.n, 1u), &j);
        free(sizes);
    } else {
        for (uint32_t i = 0; i < s->n_picks; i++) {
            uint32_t at = s->picks[i].interval;
            if (s->per_launch)
                projected += s->picks[i].times * x.time[at];
            else
                projected += mg_pick_weight(s, &s->picks[i]) * x.time[at] / x.insts[at] * x.all_insts;
        }
    }
    j.projected_ns = projected;
    j.measured_ns = x.time_ns;
    j.error_pct = x.time_ns > 0 ? 100 * fabs(x.time_ns - projected) / x.time_ns : NAN;
    free(x.time);
    free(x.insts);
    return j;
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

struct ordered {
    uint64_t kernel, shape;
    double insts, ctas;
    uint32_t ix;
};

static int by_content(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
    if (x->shape != y->shape) return x->shape < y->shape ? -1 : 1;
    if (x->insts != y->insts) return x->insts < y->insts ? -1 : 1;
    if (x->ctas != y->ctas) return x->ctas < y->ctas ? -1 : 1;
    return x->ix < y->ix ? -1 : x->ix > y->ix;
}

uint32_t *mg_subset_order(const struct mg_subset *s)
{
    struct ordered *o = mg_xcalloc(s->v->n, sizeof *o);
    uint32_t *out = mg_xcalloc(s->v->n, sizeof *out);
    for (uint32_t i = 0; i < s->v->n; i++) {
        const struct mg_interval *x = &s->v->intervals[i];
        o[i] = (struct ordered){x->kernel_key, x->shape_key, x->insts, x->ctas, i};
    }
    qsort(o, s->v->n, sizeof *o, by_content);
    for (uint32_t i = 0; i < s->v->n; i++) out[i] = o[i].ix;
    free(o);
    return out;
}

void mg_subset_draw(struct mg_subset *s, uint64_t seed)
{
    uint32_t *order = s->spread ? NULL : mg_subset_order(s);
    struct mg_design g = design_of(s, order);
    s->sampled = mg_arena_array(&s->arena, bool, s->v->n);
    mg_design_draw(&g, seed, s->sampled);
    free(order);
}

void mg_subset_pick_sampled(struct mg_subset *s)
{
    double *sizes = sizes_for(s, usual(s), NULL), *times = mg_xcalloc(s->v->n, sizeof *times);
    struct mg_stratified st = {s->v->n, s->n_strata, s->stratum, sizes, s->sampled, s->estimator};
    mg_stratified_times(&st, times);
    for (uint32_t i = 0; i < s->v->n; i++)
        if (s->sampled[i]) mg_subset_pick(s, i, times[i]);
    free(sizes);
    free(times);
}

/* ---- simple methods ---------------------------------------------------------------------------------------------- */

static uint32_t wanted(const struct mg_subset *s, const struct mg_subset_opts *o)
{
    uint32_t n = o->n ? o->n : o->max_clusters ? o->max_clusters : 10;
    return MG_MIN(n, s->v->n);
}

enum mg_err mg_select_random(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    uint32_t n = wanted(s, o);
    (void)d;
    s->stratum = mg_arena_array(&s->arena, uint32_t, s->v->n);
    s->size = mg_arena_array(&s->arena, uint32_t, 1);
    *s->size = n;
    s->n_strata = s->clusters = 1;
    mg_subset_draw(s, o->seed);
    mg_subset_pick_sampled(s);
    return MG_ERR_OK;
}

/* Every one of these stands for its part of all instructions. */
static void share_out(struct mg_subset *s, const uint32_t *at, uint32_t n)
{
    double insts = 0;
    for (uint32_t i = 0; i < n; i++) insts += s->v->intervals[at[i]].insts;
    for (uint32_t i = 0; i < n; i++) mg_subset_pick(s, at[i], s->v->insts / insts);
    s->clusters = 1;
    s->per_launch = true;
}

enum mg_err mg_select_systematic(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    uint32_t n = wanted(s, o), *at = mg_arena_array(&s->arena, uint32_t, n);
    (void)d;
    for (uint32_t i = 0; i < n; i++) at[i] = (uint32_t)(((uint64_t)2 * i + 1) * s->v->n / (2 * (uint64_t)n));
    share_out(s, at, n);
    return MG_ERR_OK;
}

enum mg_err mg_select_first(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    uint32_t n = wanted(s, o), *at = mg_arena_array(&s->arena, uint32_t, n);
    (void)d;
    for (uint32_t i = 0; i < n; i++) at[i] = i;
    share_out(s, at, n);
    return MG_ERR_OK;
}

enum mg_err mg_select_name(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    uint32_t *order = mg_subset_order(s);
    (void)o;
    (void)d;
    for (uint32_t i = 0; i < s->v->n;) {
        uint64_t key = s->v->intervals[order[i]].kernel_key;
        uint32_t first = UINT32_MAX;
        double insts = 0;
        for (; i < s->v->n && s->v->intervals[order[i]].kernel_key == key; i++) {
            insts += s->v->intervals[order[i]].insts;
            first = MG_MIN(first, order[i]);
        }
        mg_subset_pick(s, first, insts / s->v->intervals[first].insts);
        s->clusters++;
    }
    free(order);
    return MG_ERR_OK;
}

/* ---- SimPoint ---------------------------------------------------------------------------------------------------- */

enum mg_err mg_select_simpoint(struct mg_subset *s, const struct mg_subset_opts *o, struct mg_diag *d)
{
    struct mg_cluster_opts c = MG_CLUSTER_OPTS;
    struct mg_points p;
    struct mg_clustering k;
    double *weights = mg_arena_array(&s->arena, double, s->v->n);
    (void)d;
    if (o->max_clusters) c.max_k = o->max_clusters;
    c.seed = o->seed;
    for (uint32_t i = 0; i < s->v->n; i++) weights[i] = s->v->intervals[i].insts;
    mg_points_project(&p, s->v, c.dims, c.seed, &s->arena);
    mg_clustering_init(&k, &p, weights, &c, &s->arena);
    for (uint32_t j = 0; j < k.k; j++) mg_subset_pick(s, k.nearest[j], k.weight[j] / weights[k.nearest[j]]);
    s->clusters = k.k;
    s->label = k.of;
    s->bic = k.bic;
    s->n_bic = k.n_bic;
    return MG_ERR_OK;
}
