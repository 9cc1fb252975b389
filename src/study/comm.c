/* The analysis of communication: its steps, the order of a launch's accesses, workers, and what they found. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "base/search.h"
#include "study/comm_print.h"
#include "study/comm_worker.h"

enum { MOST_WORKERS = 64, WORTH_THREADS = 4096 /* accesses of a launch */ };

struct mg_comm *mg_comm_new(const struct mg_comm_opts *o)
{
    struct mg_comm *c = mg_xcalloc(1, sizeof *c);
    c->opts = *o;
    if (!c->opts.workers) c->opts.workers = mg_thread_cpus();
    c->opts.workers = MG_MIN(c->opts.workers, (unsigned)MOST_WORKERS);
    c->opts.ranks = MG_MAX(c->opts.ranks, 1u);
    c->n_shares = c->opts.ranks * c->opts.workers;
    c->workers = mg_xcalloc(c->opts.workers, sizeof *c->workers);
    for (uint32_t i = 0; i < c->opts.workers; i++) {
        c->workers[i].comm = c;
        c->workers[i].number = i;
    }
    return c;
}

static void release_worker(struct comm_worker *w)
{
    shadow_release(&w->shadow);
    free(w->sources_at);
    mg_vec_release(&w->sources);
    mg_vec_release(&w->keys);
    mg_vec_release(&w->edges);
    mg_vec_release(&w->loads);
    mg_vec_release(&w->load_spans);
    mg_vec_release(&w->stores);
}

void mg_comm_free(struct mg_comm *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->opts.workers; i++) release_worker(&c->workers[i]);
    free(c->workers);
    for (uint32_t i = 0; i < c->steps.n; i++) {
        free(c->steps.at[i].total);
        free(c->steps.at[i].used);
        free(c->steps.at[i].sm);
    }
    for (uint32_t i = 0; i < c->kernels.n; i++) free(c->kernels.at[i]);
    mg_vec_release(&c->kernels);
    mg_vec_release(&c->steps);
    mg_vec_release(&c->first_entity);
    mg_vec_release(&c->edges);
    mg_vec_release(&c->spans);
    mg_vec_release(&c->streams);
    mg_vec_release(&c->result.load_gaps);
    mg_vec_release(&c->result.store_gaps);
    mg_map_release(&c->load_gaps);
    mg_map_release(&c->store_gaps);
    free(c);
}

/* ---- steps -------------------------------------------------------------------------------------------- */

const struct mg_comm_step *comm_step_of_unit(const struct mg_comm *c, uint32_t unit)
{
    uint32_t next;
    MG_FIND_FIRST(next, c->steps.n, c->steps.at[next].first_unit <= unit);
    return &c->steps.at[next ? next - 1 : 0];
}

uint32_t comm_entity_of_unit(const struct mg_comm *c, const struct mg_comm_step *s, uint32_t unit)
{
    if (c->opts.entity == MG_COMM_KERNEL) return 0;
    if (c->opts.entity == MG_COMM_SM) return s->sm[unit];
    return unit;
}

uint32_t mg_comm_entities(const struct mg_comm_result *r, const struct mg_comm_step *s)
{
    if (r->opts.entity == MG_COMM_KERNEL) return 1;
    if (r->opts.entity != MG_COMM_SM) return s->n_ctas * s->per_cta;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n_ctas; i++)
        if (s->sm[i] != MG_COMM_NO_SM) most = MG_MAX(most, s->sm[i] + 1u);
    return most;
}

uint32_t mg_comm_cta_of(const struct mg_comm_step *s, uint32_t entity)
{
    return entity / s->per_cta;
}

static uint32_t kernel_ix(struct mg_comm *c, const char *name)
{
    c->longest = MG_MAX(c->longest, (uint64_t)strlen(name));
    for (uint32_t i = 0; i < c->kernels.n; i++)
        if (!strcmp(c->kernels.at[i], name)) return i;
    *mg_vec_push(&c->kernels) = mg_xstrdup(name);
    return c->kernels.n - 1;
}

static uint32_t next_superstep(struct mg_comm *c, const struct mg_comm_launch *l)
{
    for (uint32_t i = 0; i < c->streams.n; i++) {
        struct stream_steps *s = &c->streams.at[i];
        if (s->device == l->device && s->context == l->context && s->stream == l->stream) return s->n++;
    }
    *mg_vec_push(&c->streams) = (struct stream_steps){l->device, l->context, l->stream, 1};
    return 0;
}

static uint64_t product(const uint32_t v[3])
{
    uint64_t n = (uint64_t)MG_MAX(v[0], 1u) * MG_MAX(v[1], 1u);
    return n >> 32 ? n : n * MG_MAX(v[2], 1u);
}

static enum mg_err check_launch(const struct mg_comm *c, const struct mg_comm_launch *l, struct mg_diag *d)
{
    uint64_t ctas = product(l->grid), threads = product(l->block), warps = (threads + 31) / 32;
    if (threads > 1024)
        return mg_diag_err(d, MG_ERR_INPUT, "launch %llu has blocks of %llu threads", (unsigned long long)l->id,
                           (unsigned long long)threads);
    uint64_t units = c->opts.entity == MG_COMM_THREAD ? warps * 32 : c->opts.entity == MG_COMM_WARP ? warps : 1;
    if (ctas >> 31 || c->units + ctas * units >= SHADOW_LIST - 1)
        return mg_diag_err(d, MG_ERR_LIMIT, "more than 2^31 entities up to launch %llu: take a coarser --entity",
                           (unsigned long long)l->id);
    if (l->n_accesses > UINT32_MAX)
        return mg_diag_err(d, MG_ERR_LIMIT, "launch %llu has more than 2^32 records", (unsigned long long)l->id);
    for (uint64_t i = 0; i < l->n_accesses; i++) {
        const struct mg_comm_access *a = &l->accesses[i];
        bool far = a->stride != MG_COMM_LISTED && a->base >> 56;
        for (int k = 0; a->stride == MG_COMM_LISTED && k < __builtin_popcount(a->mask); k++)
            far |= (l->addresses[a->first + (unsigned)k] >> 56) != 0;
        int64_t reach = a->stride == MG_COMM_LISTED ? 0 : (int64_t)a->stride * 31;
        if (reach < 0 && (uint64_t)-reach > a->base) far = true;
        if (far || !a->mask || a->cta >= ctas || a->warp >= warps || !a->bytes || a->bytes >> 28)
            return mg_diag_err(d, MG_ERR_INPUT,
                               "launch %llu has an access that cannot be: CTA %lu, warp %u, %lu bytes at 0x%llx",
                               (unsigned long long)l->id, (unsigned long)a->cta, (unsigned)a->warp,
                               (unsigned long)a->bytes, (unsigned long long)a->base);
    }
    return MG_ERR_OK;
}

static void add_step(struct mg_comm *c, const struct mg_comm_launch *l)
{
    struct mg_comm_step *s = mg_vec_push(&c->steps);
    uint64_t threads = product(l->block), warps = (threads + 31) / 32;
    *s = (struct mg_comm_step){.id = l->id,
                               .replay = l->replay,
                               .kernel = kernel_ix(c, l->kernel),
                               .device = l->device,
                               .context = l->context,
                               .stream = l->stream,
                               .superstep = next_superstep(c, l),
                               .n_ctas = (uint32_t)product(l->grid),
                               .per_cta = 1,
                               .first_unit = (uint32_t)c->units};
    if (c->opts.entity == MG_COMM_WARP) s->per_cta = (uint32_t)warps;
    if (c->opts.entity == MG_COMM_THREAD) s->per_cta = (uint32_t)warps * 32;
    memcpy(s->grid, l->grid, sizeof s->grid);
    memcpy(s->block, l->block, sizeof s->block);
    s->total = mg_xcalloc(s->n_ctas, sizeof *s->total);
    s->used = mg_xcalloc(s->n_ctas, sizeof *s->used);
    s->sm = mg_xmalloc(s->n_ctas * sizeof *s->sm);
    memset(s->sm, 0xff, s->n_ctas * sizeof *s->sm);
    c->units += (uint64_t)s->n_ctas * s->per_cta;
}

static void count_volumes(struct mg_comm_step *s, const struct mg_comm_launch *l)
{
    for (uint64_t i = 0; i < l->n_accesses; i++) {
        const struct mg_comm_access *a = &l->accesses[i];
        struct mg_comm_volume *v = &s->total[a->cta];
        uint64_t bytes = (uint64_t)a->bytes * (unsigned)__builtin_popcount(a->mask);
        if (a->kind == MG_COMM_LOAD)
            v->load += bytes;
        else if (a->kind == MG_COMM_STORE)
            v->store += bytes;
        else
            v->atomic += bytes;
        s->sm[a->cta] = a->sm;
    }
}

/* ---- the order of accesses ---------------------------------------------------------------------------- */

/* Where each CTA stands among those of the launch: by number, or by SM first. */
static uint32_t *cta_places(const struct mg_comm *c, const struct mg_comm_step *s)
{
    uint32_t *place = mg_xmalloc(s->n_ctas * sizeof *place);
    if (c->opts.entity != MG_COMM_SM) {
        for (uint32_t i = 0; i < s->n_ctas; i++) place[i] = i;
        return place;
    }
    uint32_t *count = mg_xcalloc((size_t)UINT16_MAX + 2, sizeof *count);
    for (uint32_t i = 0; i < s->n_ctas; i++) count[s->sm[i] + 1u]++;
    for (uint32_t i = 1; i <= UINT16_MAX; i++) count[i] += count[i - 1];
    for (uint32_t i = 0; i < s->n_ctas; i++) place[i] = count[s->sm[i]]++;
    free(count);
    return place;
}

/* Accesses of a target together, those of a CTA in any case, otherwise as they came: a counting sort. */
static uint32_t *sort_accesses(const struct mg_comm *c, const struct mg_comm_step *s, const struct mg_comm_launch *l)
{
    uint32_t warps = (uint32_t)(product(l->block) + 31) / 32;
    bool by_warp = c->opts.entity == MG_COMM_WARP || c->opts.entity == MG_COMM_THREAD;
    uint64_t keys = (uint64_t)s->n_ctas * (by_warp ? warps : 1);
    uint32_t *place = cta_places(c, s), *order = mg_xmalloc((l->n_accesses + 1) * sizeof *order);
    uint64_t *at = mg_xcalloc(keys + 1, sizeof *at);
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < l->n_accesses; i++) {
            const struct mg_comm_access *a = &l->accesses[i];
            uint64_t key = by_warp ? (uint64_t)place[a->cta] * warps + a->warp : place[a->cta];
            if (!round)
                at[key + 1]++;
            else
                order[at[key]++] = (uint32_t)i;
        }
        for (uint64_t k = 1; !round && k <= keys; k++) at[k] += at[k - 1];
    }
    free(at);
    free(place);
    return order;
}

/* ---- workers ------------------------------------------------------------------------------------------ */

static void *run_worker(void *arg)
{
    comm_pass(arg);
    return NULL;
}

static void run_workers(struct mg_comm *c)
{
    pthread_t threads[MOST_WORKERS];
    bool started[MOST_WORKERS] = {false};
    bool alone = c->launch->n_accesses < WORTH_THREADS;
    for (uint32_t i = 1; i < c->opts.workers; i++)
        started[i] = !alone && mg_thread_start(run_worker, &c->workers[i], 0, &threads[i]);
    for (uint32_t i = 0; i < c->opts.workers; i++)
        if (!started[i]) comm_pass(&c->workers[i]);
    for (uint32_t i = 1; i < c->opts.workers; i++)
        if (started[i]) pthread_join(threads[i], NULL);
}

static int by_place(const void *a, const void *b)
{
    const struct mg_comm_edge *x = a, *y = b;
    if (x->target_step != y->target_step) return x->target_step < y->target_step ? -1 : 1;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    if (x->source_step != y->source_step) return x->source_step < y->source_step ? -1 : 1;
    return x->source < y->source ? -1 : x->source > y->source;
}

/* The edge is the next one, or one more part of the last. */
static void add_edge(struct mg_comm *c, uint32_t first, const struct mg_comm_edge *e)
{
    struct mg_comm_edge *last = c->edges.n > first ? &c->edges.at[c->edges.n - 1] : NULL;
    int order = last ? by_place(last, e) : -1;
    mg_assert(order <= 0);
    if (order) {
        *mg_vec_push(&c->edges) = *e;
        return;
    }
    last->bytes += e->bytes;
    last->executed += e->executed;
    last->reads += e->reads;
    last->fresh += e->fresh;
}

/* Each worker's edges are sorted. */
static void join_edges(struct mg_comm *c, struct mg_comm_step *s)
{
    uint32_t first = c->edges.n, at[MOST_WORKERS] = {0};
    for (;;) {
        const struct mg_comm_edge *next = NULL;
        uint32_t of = 0;
        for (uint32_t i = 0; i < c->opts.workers; i++) {
            const struct comm_worker *w = &c->workers[i];
            if (at[i] == w->edges.n || (next && by_place(next, &w->edges.at[at[i]]) <= 0)) continue;
            next = &w->edges.at[at[i]];
            of = i;
        }
        if (!next) break;
        add_edge(c, first, next);
        at[of]++;
    }
    for (uint32_t i = 0; i < c->opts.workers; i++) c->workers[i].edges.n = 0;
    s->first_edge = first;
    s->n_edges = c->edges.n - first;
}

/* Those of other ranks stand behind them. */
static void join_ranks(struct mg_comm *c)
{
    uint32_t at = 0, n = c->edges.n;
    if (n) qsort(c->edges.at, n, sizeof *c->edges.at, by_place);
    c->edges.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_comm_edge e = c->edges.at[i];
        add_edge(c, 0, &e);
    }
    for (uint32_t i = 0; i < c->steps.n; i++) {
        struct mg_comm_step *s = &c->steps.at[i];
        s->first_edge = at;
        while (at < c->edges.n && c->edges.at[at].target_step == i) at++;
        s->n_edges = at - s->first_edge;
    }
}

static void join_spans(struct mg_comm *c)
{
    for (uint32_t i = 0; i < c->opts.workers; i++) {
        struct gap_spans *s = &c->workers[i].load_spans;
        for (uint32_t k = 0; k < s->n; k++) *mg_vec_push(&c->spans) = s->at[k];
        s->n = 0;
    }
    if (c->opts.ranks == 1) gap_count_spans(&c->spans, &c->load_gaps);
}

enum mg_err mg_comm_add_launch(struct mg_comm *c, const struct mg_comm_launch *l, struct mg_diag *d)
{
    enum mg_err err = check_launch(c, l, d);
    if (err) return err;
    add_step(c, l);
    struct mg_comm_step *s = &c->steps.at[c->steps.n - 1];
    c->launch = l;
    c->step = s;
    c->entity_base = (uint32_t)c->entities;
    count_volumes(s, l);
    c->order = sort_accesses(c, s, l);
    run_workers(c);
    free(c->order);
    join_edges(c, s);
    join_spans(c);
    for (uint32_t i = 0; i < c->opts.workers; i++) {
        struct comm_worker *w = &c->workers[i];
        s->in_launch += w->in_launch;
        s->in_launch_atomic += w->in_launch_atomic;
        s->ambiguous += w->ambiguous;
        s->ambiguous_most += w->ambiguous_most;
        w->in_launch = w->in_launch_atomic = w->ambiguous = w->ambiguous_most = 0;
    }
    struct mg_comm_result r = {.opts = c->opts};
    c->entities += mg_comm_entities(&r, s) + 1;
    c->volumes += s->n_ctas + mg_comm_n_sms(s);
    c->launch = NULL;
    return MG_ERR_OK;
}

/* ---- host events -------------------------------------------------------------------------------------- */

static void clear(struct mg_comm *c, uint64_t address, uint64_t bytes)
{
    if (address >> 56 || bytes >> 56) return;
    for (uint32_t i = 0; i < c->opts.workers; i++) shadow_clear(&c->workers[i].shadow, address, bytes);
}

static void note_read(void *user, uint32_t writer, uint32_t bytes)
{
    struct comm_worker *w = user;
    uint32_t unit = writer & SHADOW_LIST ? w->shadow.old_shares.at[writer & ~SHADOW_LIST].unit : writer - 1;
    const struct mg_comm_step *s = comm_step_of_unit(w->comm, unit);
    w->comm->steps.at[s - w->comm->steps.at].read_by_host += bytes;
}

void mg_comm_add_copy_in(struct mg_comm *c, uint64_t address, uint64_t bytes)
{
    c->result.copied_in += bytes;
    clear(c, address, bytes);
}

void mg_comm_add_copy_out(struct mg_comm *c, uint64_t address, uint64_t bytes)
{
    c->result.copied_out += bytes;
    if (address >> 56 || bytes >> 56) return;
    for (uint32_t i = 0; i < c->opts.workers; i++)
        shadow_each(&c->workers[i].shadow, address, bytes, note_read, &c->workers[i]);
}

void mg_comm_add_copy_within(struct mg_comm *c, uint64_t to, uint64_t from, uint64_t bytes)
{
    (void)from;
    c->result.copied_within += bytes;
    clear(c, to, bytes);
}

void mg_comm_add_memset(struct mg_comm *c, uint64_t address, uint64_t bytes)
{
    c->result.cleared += bytes;
    clear(c, address, bytes);
}

void mg_comm_add_allocation(struct mg_comm *c, uint64_t address, uint64_t bytes)
{
    clear(c, address, bytes);
}

struct gap_stores *comm_join_stores(struct mg_comm *c)
{
    struct gap_stores *all = &c->workers[0].stores;
    for (uint32_t i = 1; i < c->opts.workers; i++) {
        struct gap_stores *s = &c->workers[i].stores;
        for (uint32_t k = 0; k < s->n; k++) *mg_vec_push(all) = s->at[k];
        s->n = 0;
    }
    return all;
}

const struct mg_comm_result *mg_comm_finish(struct mg_comm *c)
{
    struct mg_comm_result *r = &c->result;
    if (c->finished) return r;
    c->finished = true;
    gap_count_stores(comm_join_stores(c), &c->store_gaps);
    if (c->opts.ranks > 1) {
        gap_count_spans(&c->spans, &c->load_gaps);
        join_ranks(c);
    }
    gap_list(&c->load_gaps, &r->load_gaps);
    gap_list(&c->store_gaps, &r->store_gaps);
    r->opts = c->opts;
    r->kernels = (const char *const *)c->kernels.at;
    r->n_kernels = c->kernels.n;
    r->steps = c->steps.at;
    r->n_steps = c->steps.n;
    r->edges = c->edges.at;
    r->n_edges = c->edges.n;
    r->knows_sm = r->n_steps > 0;
    for (uint32_t i = 0; i < r->n_steps; i++)
        for (uint32_t k = 0; k < r->steps[i].n_ctas; k++)
            if (r->steps[i].total[k].load + r->steps[i].total[k].store + r->steps[i].total[k].atomic &&
                r->steps[i].sm[k] == MG_COMM_NO_SM)
                r->knows_sm = false;
    return r;
}

bool mg_comm_communicates(const struct mg_comm *c, uint64_t address, uint64_t bytes)
{
    if (c->opts.match == MG_COMM_START) bytes = 1;
    for (uint64_t i = 0; i < bytes; i++)
        for (uint32_t k = 0; k < c->opts.workers; k++)
            if (shadow_was_read(&c->workers[k].shadow, address + i)) return true;
    return false;
}
