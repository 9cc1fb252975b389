#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/comm_print.h"
#include "study/comm_worker.h"

const char *mg_comm_entity_name(enum mg_comm_entity e)
{
    static const char *const names[] = {"cta", "warp", "thread", "sm", "kernel"};
    return names[e];
}

const char *const *mg_comm_rules(void)
{
    static const char *const rules[] = {
        "superstep: a launch, numbered in its stream from 0, all kernels counted; a graph's node is a launch each time "
        "it runs",
        "communication: bytes that one launch writes and a later one reads before anybody overwrites them",
        "launches are ordered as they were called, those of several streams, too",
        "volumes KDV CDV SDV: executed bytes, lanes times width; KCV CCV SCV: those of bytes that communicate",
        "a store communicates when a later launch reads the byte before it is overwritten; each store of the launch to "
        "it counts",
        "an atomic reads and writes: a column of its own; its read takes the value from before the launch, and it "
        "counts once",
        "bytes of a transfer are distinct bytes of source and target, executed counts every read again, reads are "
        "those of lanes",
        "several: more than one entity of a launch stored to the byte; whose value stayed is not looked for",
        "in the launch itself: a read behind a store of its CTA in the order of the warp or behind a barrier is "
        "internal",
        "ambiguous: a read of bytes that another entity of the same launch stores to, with no order known; in no "
        "transfer",
        "copies, memsets, allocations and frees end what launches wrote; copies to the host are in host_transfers",
        "in- and out-degree: partners of each entity of each launch; the same CTA number in another launch is another "
        "partner",
        "bisection: each launch's own grid, index >= ceil(size / 2); transfers with several sources have no place",
        "stride: gaps between sorted distinct start addresses of a CTA in a launch",
        NULL};
    return rules;
}

struct mg_comm_volume mg_comm_sum(const struct mg_comm_volume *v, uint32_t n)
{
    struct mg_comm_volume sum = {0};
    for (uint32_t i = 0; i < n; i++) {
        sum.load += v[i].load;
        sum.store += v[i].store;
        sum.atomic += v[i].atomic;
    }
    return sum;
}

uint32_t mg_comm_n_sms(const struct mg_comm_step *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ctas; i++)
        if (s->sm[i] != MG_COMM_NO_SM) n = MG_MAX(n, s->sm[i] + 1u);
    return n;
}

void mg_comm_sum_sms(const struct mg_comm_step *s, const struct mg_comm_volume *by_cta, struct mg_comm_volume *by_sm,
                     uint32_t n_sms)
{
    memset(by_sm, 0, n_sms * sizeof *by_sm);
    for (uint32_t i = 0; i < s->n_ctas; i++) {
        if (s->sm[i] >= n_sms) continue;
        by_sm[s->sm[i]].load += by_cta[i].load;
        by_sm[s->sm[i]].store += by_cta[i].store;
        by_sm[s->sm[i]].atomic += by_cta[i].atomic;
    }
}

/* ---- the data sets ------------------------------------------------------------------------------------ */

static void print_volume(struct mg_json *j, struct mg_comm_volume v)
{
    mg_json_obj(j);
    mg_json_key_u64(j, "load", v.load);
    mg_json_key_u64(j, "store", v.store);
    mg_json_key_u64(j, "atomic", v.atomic);
    mg_json_end(j, '}');
}

struct selection { /* steps of a data set: of one stream, or of all */
    const struct mg_comm_result *r;
    const struct mg_comm_step *stream; /* any step of it; NULL: all */
    uint32_t *ix;                      /* chosen steps, by kernel, superstep, then as they ran */
    uint32_t n;
};

static bool is_of(const struct mg_comm_step *s, const struct mg_comm_step *stream)
{
    return !stream || (s->device == stream->device && s->context == stream->context && s->stream == stream->stream);
}

static int by_kernel(const void *a, const void *b, void *steps)
{
    const struct mg_comm_step *all = steps, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
    if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
    if (x->superstep != y->superstep) return x->superstep < y->superstep ? -1 : 1;
    return x < y ? -1 : x > y;
}

static struct selection choose(const struct mg_comm_result *r, const struct mg_comm_step *stream)
{
    struct selection s = {.r = r, .stream = stream, .ix = mg_xmalloc((r->n_steps + 1) * sizeof *s.ix)};
    for (uint32_t i = 0; i < r->n_steps; i++)
        if (is_of(&r->steps[i], stream)) s.ix[s.n++] = i;
    qsort_r(s.ix, s.n, sizeof *s.ix, by_kernel, (void *)r->steps);
    return s;
}

enum level { BY_KERNEL, BY_CTA, BY_SM };

static void print_superstep(struct mg_json *j, const struct selection *s, uint32_t from, uint32_t to, enum level level,
                            bool used)
{
    uint32_t n = level == BY_KERNEL ? 1 : 0;
    char key[16];
    for (uint32_t i = from; i < to && level != BY_KERNEL; i++) {
        const struct mg_comm_step *step = &s->r->steps[s->ix[i]];
        n = MG_MAX(n, level == BY_CTA ? step->n_ctas : mg_comm_n_sms(step));
    }
    struct mg_comm_volume *sum = mg_xcalloc(n + 1, sizeof *sum), *one = mg_xcalloc(n + 1, sizeof *one);
    for (uint32_t i = from; i < to; i++) {
        const struct mg_comm_step *step = &s->r->steps[s->ix[i]];
        const struct mg_comm_volume *v = used ? step->used : step->total, *from_step = v;
        uint32_t m = step->n_ctas;
        if (level == BY_KERNEL) one[0] = mg_comm_sum(v, step->n_ctas), from_step = one, m = 1;
        if (level == BY_SM) mg_comm_sum_sms(step, v, one, n), from_step = one, m = n;
        for (uint32_t k = 0; k < m; k++) {
            sum[k].load += from_step[k].load;
            sum[k].store += from_step[k].store;
            sum[k].atomic += from_step[k].atomic;
        }
    }
    if (level == BY_KERNEL) {
        print_volume(j, sum[0]);
    } else {
        mg_json_obj(j);
        for (uint32_t k = 0; k < n; k++) {
            snprintf(key, sizeof key, "%lu", (unsigned long)k);
            mg_json_key(j, key);
            print_volume(j, sum[k]);
        }
        mg_json_end(j, '}');
    }
    free(sum);
    free(one);
}

static void print_set(struct mg_json *j, const struct selection *s, const char *name, enum level level, bool used)
{
    char key[16];
    mg_json_key(j, name);
    if (level == BY_SM && !s->r->knows_sm) {
        mg_json_null(j);
        return;
    }
    mg_json_obj(j);
    for (uint32_t i = 0, next; i < s->n; i = next) {
        const struct mg_comm_step *first = &s->r->steps[s->ix[i]];
        mg_json_key(j, s->r->kernels[first->kernel]);
        mg_json_obj(j);
        for (next = i; next < s->n && s->r->steps[s->ix[next]].kernel == first->kernel;) {
            uint32_t from = next, superstep = s->r->steps[s->ix[from]].superstep;
            while (next < s->n && s->r->steps[s->ix[next]].kernel == first->kernel &&
                   s->r->steps[s->ix[next]].superstep == superstep)
                next++;
            snprintf(key, sizeof key, "%lu", (unsigned long)superstep);
            mg_json_key(j, key);
            print_superstep(j, s, from, next, level, used);
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, '}');
}

static void print_sets(struct mg_json *j, const struct mg_comm_result *r, const struct mg_comm_step *stream)
{
    struct selection s = choose(r, stream);
    mg_json_key(j, "bytes");
    mg_json_obj(j);
    print_set(j, &s, "KDV", BY_KERNEL, false);
    print_set(j, &s, "KCV", BY_KERNEL, true);
    print_set(j, &s, "CDV", BY_CTA, false);
    print_set(j, &s, "CCV", BY_CTA, true);
    print_set(j, &s, "SDV", BY_SM, false);
    print_set(j, &s, "SCV", BY_SM, true);
    mg_json_end(j, '}');
    free(s.ix);
}

static void print_streams(struct mg_json *j, const struct mg_comm_result *r)
{
    mg_json_key(j, "streams");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++) seen = is_of(&r->steps[k], &r->steps[i]);
        if (seen) continue;
        mg_json_obj(j);
        mg_json_key_u64(j, "device", r->steps[i].device);
        mg_json_key_u64(j, "context", r->steps[i].context);
        mg_json_key_u64(j, "stream", r->steps[i].stream);
        print_sets(j, r, &r->steps[i]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

/* ---- transfers ---------------------------------------------------------------------------------------- */

static void print_end(struct mg_json *j, const struct mg_comm_result *r, const char *key, uint32_t step,
                      uint32_t entity)
{
    const struct mg_comm_step *s = &r->steps[step];
    bool several = entity == MG_COMM_SEVERAL;
    mg_json_key(j, key);
    mg_json_obj(j);
    mg_json_key_str(j, "kernel", r->kernels[s->kernel]);
    if (mg_comm_has_ctas(r)) mg_json_key_u64_if(j, "cta", !several, several ? 0 : mg_comm_cta_of(s, entity));
    if (r->opts.entity == MG_COMM_WARP) mg_json_key_u64_if(j, "warp", !several, entity % s->per_cta);
    if (r->opts.entity == MG_COMM_THREAD) mg_json_key_u64_if(j, "thread", !several, entity % s->per_cta);
    if (r->opts.entity == MG_COMM_SM) mg_json_key_u64_if(j, "sm", !several, entity);
    if (several) mg_json_key_bool(j, "several", true);
    mg_json_key_u64(j, "superstep", s->superstep);
    mg_json_key_u64(j, "launch", s->id);
    mg_json_key_u64(j, "device", s->device);
    mg_json_key_u64(j, "context", s->context);
    mg_json_key_u64(j, "stream", s->stream);
    mg_json_end(j, '}');
}

static void print_transfers(struct mg_json *j, const struct mg_comm_study *s)
{
    const struct mg_comm_result *r = s->r;
    mg_json_key_u64(j, "transfer_count", r->n_edges);
    mg_json_key(j, "transfers");
    if (r->n_edges > MG_COMM_MOST_TRANSFERS) {
        mg_json_null(j);
        mg_json_key_str(j, "transfers_file", s->transfers_file);
        return;
    }
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        mg_json_obj(j);
        print_end(j, r, "source", e->source_step, e->source);
        print_end(j, r, "target", e->target_step, e->target);
        mg_json_key_u64(j, "bytes", e->bytes);
        mg_json_key_u64(j, "executed", e->executed);
        mg_json_key_u64(j, "reads", e->reads);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void print_host(struct mg_json *j, const struct mg_comm_result *r)
{
    mg_json_key(j, "host_transfers");
    mg_json_obj(j);
    mg_json_key_u64(j, "to_device_bytes", r->copied_in);
    mg_json_key_u64(j, "from_device_bytes", r->copied_out);
    mg_json_key_u64(j, "within_device_bytes", r->copied_within);
    mg_json_key_u64(j, "memset_bytes", r->cleared);
    mg_json_key(j, "written_by");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        if (!r->steps[i].read_by_host) continue;
        mg_json_obj(j);
        mg_json_key_str(j, "kernel", r->kernels[r->steps[i].kernel]);
        mg_json_key_u64(j, "superstep", r->steps[i].superstep);
        mg_json_key_u64(j, "stream", r->steps[i].stream);
        mg_json_key_u64(j, "bytes", r->steps[i].read_by_host);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

/* ---- metrics ------------------------------------------------------------------------------------------ */

static void print_bins(struct mg_json *j, const char *key, const char *value, const char *count, const mg_comm_bins *b,
                       bool shares)
{
    uint64_t sum = 0, all = 0;
    for (uint32_t i = 0; i < b->n; i++) all += b->at[i].count;
    mg_json_key(j, key);
    mg_json_arr(j);
    for (uint32_t i = 0; i < b->n; i++) {
        sum += b->at[i].count;
        mg_json_obj(j);
        mg_json_key_u64(j, value, b->at[i].value);
        mg_json_key_u64(j, count, b->at[i].count);
        if (shares) {
            mg_json_key_f64(j, "cumulative", all ? (double)sum / (double)all : 0);
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void print_gaps(struct mg_json *j, const char *kind, const mg_comm_gaps *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        mg_json_obj(j);
        mg_json_key_str(j, "kind", kind);
        mg_json_key_u64(j, "bytes", g->at[i].bytes);
        mg_json_key_u64(j, "count", g->at[i].count);
        mg_json_end(j, '}');
    }
}

static void print_bisection(struct mg_json *j, const struct mg_comm_metrics *m)
{
    static const char *const dims[] = {"x", "y", "z"};
    mg_json_key(j, "bisection");
    mg_json_arr(j);
    for (int i = 0; i < 3; i++) {
        mg_json_obj(j);
        mg_json_key_str(j, "dimension", dims[i]);
        mg_json_key_u64_if(j, "bytes", m->bisection[i].is_known, m->bisection[i].bytes);
        mg_json_key_f64_if(j, "share", m->bisection[i].is_known && m->bytes,
                           (double)m->bisection[i].bytes / (double)m->bytes);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void print_steps(struct mg_json *j, const struct mg_comm_result *r, const struct mg_comm_metrics *m)
{
    mg_json_key(j, "connectivity");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "superstep", r->steps[i].superstep);
        mg_json_key_u64(j, "stream", r->steps[i].stream);
        mg_json_key(j, "mean"), mg_json_f64(j, m->steps[i].mean);
        mg_json_key(j, "deviation"), mg_json_f64(j, m->steps[i].deviation);
        mg_json_key_u64(j, "active", m->steps[i].active);
        mg_json_key(j, "active_mean"), mg_json_f64(j, m->steps[i].active_mean);
        mg_json_key(j, "active_deviation"), mg_json_f64(j, m->steps[i].active_deviation);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "collectives");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "superstep", r->steps[i].superstep);
        mg_json_key_u64(j, "stream", r->steps[i].stream);
        for (int p = 0; p < MG_COMM_PATTERN_COUNT; p++) {
            mg_json_key(j, mg_comm_pattern_name(p));
            mg_json_obj(j);
            mg_json_key_u64(j, "transfers", m->steps[i].pattern[p].edges);
            mg_json_key_u64(j, "bytes", m->steps[i].pattern[p].bytes);
            mg_json_end(j, '}');
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void print_metrics(struct mg_json *j, const struct mg_comm_result *r, const struct mg_comm_metrics *m)
{
    mg_json_key(j, "metrics");
    mg_json_obj(j);
    mg_json_key(j, "total"), print_volume(j, m->total);
    mg_json_key(j, "communicated"), print_volume(j, m->used);
    print_bins(j, "transfer_size", "bytes", "transfers", &m->sizes, true);
    print_bins(j, "in_degree", "partners", "entities", &m->in_degree, true);
    print_bins(j, "out_degree", "partners", "entities", &m->out_degree, true);
    print_bisection(j, m);
    mg_json_key_u64(j, "unplaced_bytes", m->unplaced);
    mg_json_key(j, "stride");
    mg_json_arr(j);
    print_gaps(j, "load", &r->load_gaps);
    print_gaps(j, "store", &r->store_gaps);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "density_ctas", m->density_ctas);
    mg_json_key(j, "density");
    mg_json_arr(j);
    for (uint32_t i = 0; i < m->density.n && i < MG_COMM_MOST_TRANSFERS; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "source", m->density.at[i].source);
        mg_json_key_u64(j, "target", m->density.at[i].target);
        mg_json_key_u64(j, "reads", m->density.at[i].reads);
        mg_json_key_u64(j, "bytes", m->density.at[i].bytes);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key_bool(j, "density_cut", m->density.n > MG_COMM_MOST_TRANSFERS);
    print_bins(j, "distance", "supersteps", "bytes", &m->distance, false);
    mg_json_key_u64(j, "other_stream_bytes", m->other_stream);
    print_steps(j, r, m);
    mg_json_end(j, '}');
}

static void print_launches(struct mg_json *j, const struct mg_comm_result *r)
{
    mg_json_key(j, "launches");
    mg_json_arr(j);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        const struct mg_comm_step *s = &r->steps[i];
        mg_json_obj(j);
        mg_json_key_u64(j, "launch", s->id);
        mg_json_key_u64(j, "replay", s->replay);
        mg_json_key_str(j, "kernel", r->kernels[s->kernel]);
        mg_json_key_u64(j, "superstep", s->superstep);
        mg_json_key_u64(j, "device", s->device);
        mg_json_key_u64(j, "context", s->context);
        mg_json_key_u64(j, "stream", s->stream);
        mg_json_key_dim(j, "grid", s->grid);
        mg_json_key_dim(j, "block", s->block);
        mg_json_key_u64(j, "in_launch", s->in_launch);
        mg_json_key_u64(j, "in_launch_atomic", s->in_launch_atomic);
        mg_json_key_u64(j, "ambiguous", s->ambiguous);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void print_source(struct mg_json *j, const struct mg_comm_source *s)
{
    mg_json_key(j, "trace");
    mg_json_obj(j);
    mg_json_key_u64(j, "launches", s->launches);
    mg_json_key_u64(j, "untraced", s->untraced);
    mg_json_key_u64(j, "graph_copies", s->graph_copies);
    mg_json_key_u64(j, "array_copies", s->array_copies);
    mg_json_key_u64(j, "host_memory_bytes", s->host_bytes);
    mg_json_key_u64(j, "damaged", s->damaged);
    mg_json_key_bool(j, "partial", s->is_partial);
    mg_comm_print_unseen(s, j);
    mg_json_end(j, '}');
}

void mg_comm_print_json(const struct mg_comm_study *s, struct mg_json *j)
{
    const struct mg_comm_result *r = s->r;
    uint64_t in_launch = 0, atomic = 0, most = 0, unsure = 0;
    for (uint32_t i = 0; i < r->n_steps; i++) {
        in_launch += r->steps[i].in_launch;
        atomic += r->steps[i].in_launch_atomic;
        unsure += r->steps[i].ambiguous;
        most += r->steps[i].ambiguous_most;
    }
    mg_json_obj(j);
    mg_json_key(j, "rules");
    mg_json_arr(j);
    for (const char *const *rule = mg_comm_rules(); *rule; rule++) mg_json_str(j, *rule);
    mg_json_end(j, ']');
    mg_json_key_str(j, "entity", mg_comm_entity_name(r->opts.entity));
    mg_json_key_str(j, "match", r->opts.match == MG_COMM_START ? "start" : "byte");
    if (s->source) print_source(j, s->source);
    print_launches(j, r);
    print_sets(j, r, NULL);
    print_streams(j, r);
    print_transfers(j, s);
    print_host(j, r);
    print_metrics(j, r, s->m);
    mg_json_key(j, "in_launch");
    mg_json_obj(j);
    mg_json_key_u64(j, "bytes", in_launch);
    mg_json_key_u64(j, "atomic_bytes", atomic);
    mg_json_end(j, '}');
    mg_json_key(j, "ambiguous"); /* of transfers between launches: what these reads add to them */
    mg_json_obj(j);
    mg_json_key_u64(j, "min", 0);
    mg_json_key_u64(j, "max", most);
    mg_json_key_u64(j, "bytes", unsure);
    mg_json_end(j, '}');
    if (s->advice) mg_comm_print_advice_json(s, j);
    mg_json_end(j, '}');
}

/* What a launch, one of its volumes, a transfer and a distance take; numbers seldom have more than ten digits. */
uint64_t mg_comm_json_most(const struct mg_comm *c)
{
    enum { REST = 1 << 16, LAUNCH = 2000, VOLUME = 4 * 64, TRANSFER = 500, GAP = 2 * 80 };
    const uint64_t transfers = MG_MIN(c->edges.n, (uint32_t)MG_COMM_MOST_TRANSFERS);
    return REST + c->steps.n * (LAUNCH + c->longest) + c->volumes * VOLUME + transfers * (TRANSFER + 2 * c->longest) +
           (uint64_t)c->load_gaps.n * GAP;
}
