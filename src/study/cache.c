#include <stdlib.h>
#include <string.h>

#include "study/cache.h"
#include "study/reuse.h"

enum {
    LINE = 128,
    SECTOR = 32,
    WAYS = 16,
    THREADS_OF_SM = 2048,
    CTAS_OF_SM = 32,
    LEAST_L1 = 28 << 10,
    MOST_ACCESS = 1 << 20
};

struct touch {
    uint64_t line;
    uint8_t sectors;
};                                 /* of one access: a line, in order of address */
struct access {                    /* of a warp */
    uint32_t sm, cta, warp, place; /* place: of the CTA among those of its SM, by first access */
    uint32_t turn;                 /* accesses of the warp before it */
    uint32_t first, n;             /* touches */
    uint32_t site;
    uint8_t kind; /* enum mg_access_kind */
    bool passes;  /* a load that does not look into L1 */
};
struct set {
    uint64_t line[WAYS];
    uint8_t sectors[WAYS];
}; /* newest first; sectors 0: free */
struct run {
    uint64_t hits[MG_CACHE_SIZES + 1], l1_hits, first;
};

struct mg_cache {
    struct mg_cache_result result;
    MG_VEC(struct access) accesses; /* of a launch */
    MG_VEC(struct touch) touches;
    struct mg_map sites; /* site of the trace to its index */
    uint32_t *order;
    uint8_t *missing; /* by touch: sectors that L1 does not have */
    struct mg_reuse l1, l2;
    struct set *half; /* L2 of half its size, 16-way */
    uint64_t n_sets, half_hits;
    uint64_t l2_hits[MG_CACHE_SIZES + 1];
    struct mg_dram *dram; /* NULL: nobody asks */
    bool finished;
};

uint64_t mg_cache_size(uint32_t ix)
{
    uint64_t base = (uint64_t)4096 << ix / 2;
    return ix % 2 ? base + base / 2 : base;
}

const char *mg_cache_order_name(enum mg_cache_order o)
{
    static const char *const names[] = {"trace", "turns", "ctas"};
    return names[o];
}

struct mg_cache *mg_cache_new(const struct mg_cache_opts *o)
{
    struct mg_cache *c = mg_xcalloc(1, sizeof *c);
    c->result.opts = *o;
    c->n_sets = MG_MAX(o->l2_bytes / 2 / LINE / WAYS, (uint64_t)1);
    c->half = mg_xcalloc(c->n_sets, sizeof *c->half);
    c->result.knows_sm = true;
    if (o->memory) c->dram = mg_dram_new(o->l2_bytes, o->memory, o->user);
    return c;
}

void mg_cache_free(struct mg_cache *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->result.kernels.n; i++) free(c->result.kernels.at[i].name);
    for (uint32_t i = 0; i < c->result.sites.n; i++) {
        free(c->result.sites.at[i].kernel);
        free(c->result.sites.at[i].file);
        free(c->result.sites.at[i].op);
    }
    mg_vec_release(&c->result.kernels);
    mg_vec_release(&c->result.sites);
    mg_map_release(&c->sites);
    mg_vec_release(&c->accesses);
    mg_vec_release(&c->touches);
    mg_reuse_release(&c->l1);
    mg_reuse_release(&c->l2);
    free(c->order);
    free(c->missing);
    free(c->half);
    mg_dram_free(c->dram);
    free(c);
}

/* ---- accesses as lines and sectors -------------------------------------------------------------------- */

static void add_touch(struct mg_cache *c, uint32_t first, uint64_t line, unsigned sectors)
{
    uint32_t at = c->touches.n;
    for (uint32_t i = first; i < c->touches.n; i++)
        if (c->touches.at[i].line == line) {
            c->touches.at[i].sectors |= (uint8_t)sectors;
            return;
        }
    (void)mg_vec_push(&c->touches);
    for (; at > first && c->touches.at[at - 1].line > line; at--) c->touches.at[at] = c->touches.at[at - 1];
    c->touches.at[at] = (struct touch){line, (uint8_t)sectors};
}

static void add_lane(struct mg_cache *c, uint32_t first, uint64_t address, uint32_t bytes)
{
    for (uint64_t sector = address / SECTOR; sector <= (address + bytes - 1) / SECTOR; sector++)
        add_touch(c, first, sector / (LINE / SECTOR), 1u << sector % (LINE / SECTOR));
}

static bool passes_l1(const char *op)
{
    static const char *const marks[] = {".cg", ".cv", ".volatile", ".relaxed", ".acquire", ".mmio"};
    for (size_t i = 0; i < MG_COUNT_OF(marks); i++)
        if (strstr(op, marks[i])) return true;
    return false;
}

static uint32_t find_site(struct mg_cache *c, const struct mg_access_site *s)
{
    uint64_t known;
    if (mg_map_get(&c->sites, (uintptr_t)s, &known)) return (uint32_t)known;
    for (uint32_t i = 0; i < c->result.sites.n; i++) { /* the kernel in another context */
        const struct mg_cache_site *x = &c->result.sites.at[i];
        if (x->ptx_line != s->ptx_line || strcmp(x->op, s->op) || strcmp(x->kernel, s->kernel)) continue;
        mg_map_set(&c->sites, (uintptr_t)s, i);
        return i;
    }
    mg_map_set(&c->sites, (uintptr_t)s, c->result.sites.n);
    *mg_vec_push(&c->result.sites) = (struct mg_cache_site){.kernel = mg_xstrdup(s->kernel),
                                                            .file = mg_xstrdup(s->file),
                                                            .op = mg_xstrdup(s->op),
                                                            .line = s->line,
                                                            .ptx_line = s->ptx_line};
    return c->result.sites.n - 1;
}

static struct mg_cache_kernel *find_kernel(struct mg_cache *c, const char *name)
{
    for (uint32_t i = 0; i < c->result.kernels.n; i++)
        if (!strcmp(c->result.kernels.at[i].name, name)) return &c->result.kernels.at[i];
    struct mg_cache_kernel *k = mg_vec_push(&c->result.kernels);
    *k = (struct mg_cache_kernel){.name = mg_xstrdup(name)};
    return k;
}

static uint64_t sectors_of(const struct mg_cache *c, const struct access *a)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) n += (unsigned)__builtin_popcount(c->touches.at[a->first + i].sectors);
    return n;
}

static void count(struct mg_cache *c, struct mg_cache_counts *k, const struct access *a)
{
    uint64_t n = sectors_of(c, a);
    struct mg_cache_site *s = &c->result.sites.at[a->site];
    k->load_requests += a->kind == MG_ACCESS_LOAD;
    k->store_requests += a->kind == MG_ACCESS_STORE;
    k->atomic_requests += a->kind == MG_ACCESS_ATOMIC;
    if (a->kind == MG_ACCESS_LOAD)
        k->load_sectors += n;
    else if (a->kind == MG_ACCESS_STORE)
        k->store_sectors += n;
    else
        k->atomic_sectors += n;
    s->requests++;
    s->sectors += n;
}

/* ---- orders ------------------------------------------------------------------------------------------- */

struct sorting {
    const struct mg_cache *c;
    enum mg_cache_order order;
    uint32_t resident;
};

static int compare(uint32_t x, uint32_t y)
{
    return x < y ? -1 : x > y;
}

static int by_order(const void *pa, const void *pb, void *arg)
{
    const struct sorting *s = arg;
    uint32_t i = *(const uint32_t *)pa, k = *(const uint32_t *)pb;
    const struct access *a = &s->c->accesses.at[i], *b = &s->c->accesses.at[k];
    int d = compare(a->sm, b->sm);
    if (!d && s->order == MG_CACHE_CTAS) d = compare(a->place, b->place);
    if (!d && s->order == MG_CACHE_TURNS) {
        d = compare(a->place / s->resident, b->place / s->resident);
        if (!d) d = compare(a->turn, b->turn);
        if (!d) d = compare(a->place, b->place);
        if (!d) d = compare(a->warp, b->warp);
    }
    return d ? d : compare(i, k);
}

static void sort_accesses(struct mg_cache *c, enum mg_cache_order order, uint32_t resident)
{
    struct sorting s = {c, order, resident};
    for (uint32_t i = 0; i < c->accesses.n; i++) c->order[i] = i;
    qsort_r(c->order, c->accesses.n, sizeof *c->order, by_order, &s);
}

/* ---- L1 ----------------------------------------------------------------------------------------------- */

/* Counts by the smallest size that hits. */
static void note_distance(uint64_t hits[MG_CACHE_SIZES + 1], uint32_t distance)
{
    uint32_t ix = 0;
    while (ix < MG_CACHE_SIZES && (distance == MG_REUSE_FIRST || mg_cache_size(ix) / LINE <= distance)) ix++;
    hits[ix]++;
}

static void look_up(struct mg_cache *c, const struct access *a, bool allocate, uint32_t l1_lines, struct run *run)
{
    uint32_t distance[MG_REUSE_SECTORS];
    for (uint32_t i = 0; i < a->n; i++) {
        struct touch *t = &c->touches.at[a->first + i];
        c->missing[a->first + i] = t->sectors;
        if (a->kind == MG_ACCESS_ATOMIC || a->passes || (a->kind == MG_ACCESS_STORE && !allocate)) continue;
        mg_reuse_access(&c->l1, t->line, t->sectors, distance);
        for (int k = 0; k < MG_REUSE_SECTORS; k++) {
            if (!(t->sectors >> k & 1)) continue;
            run->first += distance[k] == MG_REUSE_FIRST;
            if (a->kind != MG_ACCESS_LOAD) continue;
            note_distance(run->hits, distance[k]);
            if (distance[k] >= l1_lines) continue;
            run->l1_hits++;
            c->missing[a->first + i] &= (uint8_t) ~(1u << k);
        }
    }
}

static struct run run_l1(struct mg_cache *c, bool allocate, uint32_t l1_lines)
{
    struct run run = {0};
    for (uint32_t i = 0; i < c->accesses.n; i++) {
        const struct access *a = &c->accesses.at[c->order[i]];
        if (!i || a->sm != c->accesses.at[c->order[i - 1]].sm) mg_reuse_reset(&c->l1);
        look_up(c, a, allocate, l1_lines, &run);
    }
    for (uint32_t i = 1; i < MG_CACHE_SIZES; i++) run.hits[i] += run.hits[i - 1];
    return run;
}

static void note_sites(struct mg_cache *c)
{
    for (uint32_t i = 0; i < c->accesses.n; i++) {
        const struct access *a = &c->accesses.at[i];
        for (uint32_t k = a->first; a->kind == MG_ACCESS_LOAD && k < a->first + a->n; k++)
            c->result.sites.at[a->site].hits += (unsigned)__builtin_popcount(c->touches.at[k].sectors & ~c->missing[k]);
    }
}

static void add_span(struct mg_cache_span *s, uint64_t least, uint64_t most)
{
    s->least += least;
    s->most += most;
}

/* ---- L2 ----------------------------------------------------------------------------------------------- */

static void look_up_half(struct mg_cache *c, uint64_t line, unsigned sectors, bool loads)
{
    struct set *s = &c->half[line % c->n_sets];
    uint32_t at = 0;
    while (at < WAYS - 1 && s->sectors[at] && s->line[at] != line) at++;
    unsigned has = s->sectors[at] && s->line[at] == line ? s->sectors[at] : 0;
    c->half_hits += (unsigned)__builtin_popcount(has & sectors);
    if (loads) c->result.l2.load_hits.least += (unsigned)__builtin_popcount(has & sectors);
    memmove(s->line + 1, s->line, at * sizeof *s->line);
    memmove(s->sectors + 1, s->sectors, at * sizeof *s->sectors);
    s->line[0] = line;
    s->sectors[0] = (uint8_t)(has | sectors);
}

static void send(struct mg_cache *c, const struct access *a)
{
    uint32_t distance[MG_REUSE_SECTORS];
    for (uint32_t i = a->first; i < a->first + a->n; i++) {
        if (!c->missing[i]) continue;
        mg_reuse_access(&c->l2, c->touches.at[i].line, c->missing[i], distance);
        look_up_half(c, c->touches.at[i].line, c->missing[i], a->kind == MG_ACCESS_LOAD);
        if (c->dram)
            mg_dram_access(c->dram, c->touches.at[i].line, c->missing[i], a->kind != MG_ACCESS_STORE,
                           a->kind != MG_ACCESS_LOAD);
        for (int k = 0; k < MG_REUSE_SECTORS; k++) {
            if (!(c->missing[i] >> k & 1)) continue;
            c->result.l2.sectors++;
            c->result.l2.first += distance[k] == MG_REUSE_FIRST;
            note_distance(c->l2_hits, distance[k]);
            bool hit = distance[k] < c->result.opts.l2_bytes / LINE, load = a->kind == MG_ACCESS_LOAD;
            c->result.l2.hits.most += hit;
            c->result.l2.load_sectors += load;
            c->result.l2.load_hits.most += hit && load;
        }
    }
}

/* The multiprocessors in turn, an access each. */
static void send_all(struct mg_cache *c)
{
    MG_VEC(uint32_t) at = {0}, end = {0};
    bool any = true;
    for (uint32_t i = 0; i < c->accesses.n; i++) {
        if (i && c->accesses.at[c->order[i]].sm == c->accesses.at[c->order[i - 1]].sm) continue;
        if (i) *mg_vec_push(&end) = i;
        *mg_vec_push(&at) = i;
    }
    *mg_vec_push(&end) = c->accesses.n;
    while (any) {
        any = false;
        for (uint32_t k = 0; k < at.n; k++) {
            if (at.at[k] == end.at[k]) continue;
            send(c, &c->accesses.at[c->order[at.at[k]++]]);
            any = true;
        }
    }
    mg_vec_release(&at);
    mg_vec_release(&end);
}

/* ---- launches ----------------------------------------------------------------------------------------- */

static void run_launch(struct mg_cache *c, struct mg_cache_kernel *k, const struct mg_trace_step *s)
{
    uint32_t threads = MG_MAX(s->block[0], 1u) * MG_MAX(s->block[1], 1u) * MG_MAX(s->block[2], 1u);
    uint32_t resident = MG_MAX(1u, MG_MIN((uint32_t)CTAS_OF_SM, THREADS_OF_SM / MG_MAX(threads, 1u)));
    uint64_t shared = (uint64_t)s->shared_bytes * resident, l1 = c->result.opts.l1_bytes;
    uint32_t lines = (uint32_t)(MG_MAX(l1 > shared ? l1 - shared : 0, MG_MIN((uint64_t)LEAST_L1, l1)) / LINE);
    struct run least = {0}, most = {0};
    c->order = mg_xrealloc(c->order, ((size_t)c->accesses.n + 1) * sizeof *c->order);
    c->missing = mg_xrealloc(c->missing, (size_t)c->touches.n + 1);
    for (uint32_t i = 0; i < c->accesses.n; i++) count(c, &k->counts, &c->accesses.at[i]);
    for (int o = MG_CACHE_ORDER_COUNT - 1; o >= 0; o--) /* the trace's own order last: its misses go to L2 */
        for (int allocate = 1; allocate >= 0; allocate--) {
            if (allocate) sort_accesses(c, (enum mg_cache_order)o, resident);
            struct run run = run_l1(c, allocate, lines);
            bool first = o == MG_CACHE_ORDER_COUNT - 1 && allocate;
            if (first) least = most = run;
            if (first) k->counts.first_sectors += run.first; /* of loads and stores: the same in every order */
            for (uint32_t i = 0; i < MG_CACHE_SIZES; i++) {
                least.hits[i] = MG_MIN(least.hits[i], run.hits[i]);
                most.hits[i] = MG_MAX(most.hits[i], run.hits[i]);
            }
            least.l1_hits = MG_MIN(least.l1_hits, run.l1_hits);
            most.l1_hits = MG_MAX(most.l1_hits, run.l1_hits);
        }
    add_span(&k->counts.l1_hits, least.l1_hits, most.l1_hits);
    for (uint32_t i = 0; i < MG_CACHE_SIZES; i++) add_span(&k->sizes[i], least.hits[i], most.hits[i]);
    note_sites(c);
    send_all(c);
}

static uint32_t place_of_cta(struct mg_map *places, struct mg_map *sms, uint32_t sm, uint64_t cta)
{
    uint64_t place = 0, next = 0;
    if (mg_map_get(places, cta, &place)) return (uint32_t)place;
    mg_map_get(sms, sm, &next);
    mg_map_set(places, cta, next);
    mg_map_set(sms, sm, next + 1);
    return (uint32_t)next;
}

static enum mg_err feed_launch(struct mg_cache *c, struct mg_accesses *from, const struct mg_trace_step *s,
                               struct mg_comm_source *source, struct mg_diag *d)
{
    struct mg_map places = MG_MAP_INIT, sms = MG_MAP_INIT, turns = MG_MAP_INIT;
    const struct mg_trace_access *x;
    enum mg_err err = MG_ERR_OK;
    c->accesses.n = c->touches.n = 0;
    mg_accesses_begin(from, s);
    while (!err && (x = mg_accesses_next(from))) {
        uint64_t warp = x->cta << 6 ^ x->warp, turn = 0;
        if (mg_comm_note_unseen(source, x) || !x->site->bytes || !x->mask) continue;
        if (x->site->bytes > MOST_ACCESS || c->touches.n > UINT32_MAX - MOST_ACCESS || c->accesses.n > UINT32_MAX - 2)
            err = mg_diag_err(d, MG_ERR_LIMIT, "launch %llu has more accesses than the model takes",
                              (unsigned long long)s->launch);
        if (err) break;
        if (x->sm >= UINT16_MAX) c->result.knows_sm = false;
        mg_map_get(&turns, warp, &turn);
        mg_map_set(&turns, warp, turn + 1);
        struct access a = {.sm = x->sm,
                           .cta = (uint32_t)x->cta,
                           .warp = x->warp,
                           .turn = (uint32_t)turn,
                           .first = c->touches.n,
                           .site = find_site(c, x->site),
                           .kind = (uint8_t)x->site->kind,
                           .passes = passes_l1(x->site->op),
                           .place = place_of_cta(&places, &sms, x->sm, x->cta)};
        for (uint32_t left = x->mask; left; left &= left - 1)
            if (!(x->address[__builtin_ctz(left)] >> 56))
                add_lane(c, a.first, x->address[__builtin_ctz(left)], x->site->bytes);
        a.n = c->touches.n - a.first;
        if (a.n) *mg_vec_push(&c->accesses) = a;
    }
    mg_map_release(&places);
    mg_map_release(&sms);
    mg_map_release(&turns);
    if (err || !c->accesses.n) return err;
    struct mg_cache_kernel *k = find_kernel(c, s->name);
    k->launches++;
    run_launch(c, k, s);
    return MG_ERR_OK;
}

enum mg_err mg_cache_feed(struct mg_cache *c, struct mg_trace_reader *r, uint32_t file, struct mg_comm_source *source,
                          struct mg_diag *d)
{
    struct mg_accesses *from;
    uint64_t n = 0;
    memset(source, 0, sizeof *source);
    enum mg_err err = mg_accesses_open(r, file, &from, d);
    if (err) return err;
    const struct mg_trace_step *steps = mg_accesses_steps(from, &n);
    for (uint64_t i = 0; i < n && !err; i++) {
        const struct mg_cache_opts *o = &c->result.opts;
        if (steps[i].kind != MG_STEP_LAUNCH || steps[i].launch < o->first || (o->end && steps[i].launch >= o->end))
            continue;
        source->launches++;
        if (steps[i].flags & MG_STEP_TRACED)
            err = feed_launch(c, from, &steps[i], source, d);
        else
            source->untraced++;
    }
    source->is_partial = mg_accesses_is_partial(from);
    source->damaged = mg_accesses_damaged(from, NULL);
    mg_accesses_close(from);
    return err;
}

const struct mg_cache_result *mg_cache_finish(struct mg_cache *c)
{
    struct mg_cache_l2 *l2 = &c->result.l2;
    if (c->finished) return &c->result;
    c->finished = true;
    l2->hits.least = MG_MIN(c->half_hits, l2->hits.most);
    l2->load_hits.least = MG_MIN(l2->load_hits.least, l2->load_hits.most);
    for (uint32_t i = 0; i < MG_CACHE_SIZES; i++) {
        if (i) c->l2_hits[i] += c->l2_hits[i - 1];
        l2->sizes[i] = (struct mg_cache_span){c->l2_hits[i], c->l2_hits[i]};
    }
    c->result.lines = c->l2.lines.n;
    return &c->result;
}
