#include <stdlib.h>
#include <string.h>

#include "study/cache.h"
#include "study/cache_buffers.h"
#include "study/l2.h"
#include "study/reuse.h"

enum {
    LINE = 128,
    SECTOR = 32,
    WARP = 32,
    THREADS_OF_SM = 2048,
    CTAS_OF_SM = 32,
    LEAST_L1 = 28 << 10,
    MOST_ACCESS = 1 << 20
};

struct touch {
    uint64_t line;
    uint32_t buffer; /* of the result */
    uint32_t number; /* of the line among those of the launch */
    uint8_t sectors;
};                            /* of one access: a line, in order of address */
struct access {               /* of a warp */
    uint32_t sm, cta, place;  /* place: of the CTA among those of its SM, by first access */
    uint32_t warp, of_launch; /* warp: in its CTA; of_launch: which of all, by first access */
    uint32_t turn;            /* accesses of the warp before it */
    uint32_t first, n;        /* touches */
    uint32_t site;
    uint8_t kind;  /* enum mg_access_kind */
    bool passes;   /* a load that does not look into L1 */
    bool acquires; /* L1 is empty behind it */
};
struct run {
    uint64_t hits[MG_CACHE_SIZES + 1], l1_hits, first;
};
struct tally { /* sectors of loads that look into L1, as mg_cache_part has them */
    uint64_t hits, first, capacity;
};
struct around { /* of one launch: in this run, the least and the most so far */
    struct tally now, least, most;
};
enum order { TRACED, TURNS, CTAS, SEEDED /* and more: by the seed */ };

struct mg_cache {
    struct mg_cache_result result;
    MG_VEC(struct access) accesses; /* of a launch */
    MG_VEC(struct touch) touches;
    struct mg_map sites; /* site of the trace to its index */
    MG_VEC(struct around) by_site, by_buffer;
    MG_VEC(uint64_t) when; /* by warp of the launch, of an interleaving */
    struct mg_cache_buffers live;
    struct mg_map lines;   /* of the launch: line to its number */
    MG_VEC(uint8_t) split; /* by number: sectors whose 64 bytes a load asks for in part */
    uint32_t *order;
    uint64_t *rank;   /* by access: what it is sorted by, after multiprocessor and CTAs that run together */
    uint8_t *missing; /* by touch: sectors that L1 does not have */
    struct mg_reuse l1;
    struct mg_l2 *l2;
    uint64_t turn; /* of L2: an access of each multiprocessor */
    uint64_t alone_hits[MG_CACHE_SIZES + 1], paired_hits[MG_CACHE_SIZES + 1]; /* of L2, as mg_l2_answer has them */
    struct mg_dram *dram;                                                     /* NULL: nobody asks */
    bool finished;
};

uint64_t mg_cache_size(uint32_t ix)
{
    uint64_t base = (uint64_t)4096 << ix / 2;
    return ix % 2 ? base + base / 2 : base;
}

struct mg_cache *mg_cache_new(const struct mg_cache_opts *o)
{
    struct mg_cache *c = mg_xcalloc(1, sizeof *c);
    c->result.opts = *o;
    c->l2 = mg_l2_new(o->l2_bytes);
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
        free(c->result.sites.at[i].function);
        free(c->result.sites.at[i].place);
        free(c->result.sites.at[i].buffer);
    }
    for (uint32_t i = 0; i < c->result.buffers.n; i++) {
        free(c->result.buffers.at[i].call);
        free(c->result.buffers.at[i].name);
    }
    mg_vec_release(&c->result.buffers);
    mg_vec_release(&c->by_site);
    mg_vec_release(&c->by_buffer);
    mg_vec_release(&c->when);
    mg_cache_buffers_release(&c->live);
    mg_map_release(&c->lines);
    mg_vec_release(&c->split);
    mg_vec_release(&c->result.kernels);
    mg_vec_release(&c->result.sites);
    mg_map_release(&c->sites);
    mg_vec_release(&c->accesses);
    mg_vec_release(&c->touches);
    mg_reuse_release(&c->l1);
    mg_l2_free(c->l2);
    free(c->order);
    free(c->rank);
    free(c->missing);
    mg_dram_free(c->dram);
    free(c);
}

/* ---- accesses as lines and sectors -------------------------------------------------------------------- */

static uint32_t number_of(struct mg_cache *c, uint64_t line)
{
    uint64_t number = c->split.n;
    if (mg_map_get(&c->lines, line, &number)) return (uint32_t)number;
    mg_map_set(&c->lines, line, number);
    *mg_vec_push(&c->split) = 0;
    return (uint32_t)number;
}

/* A sector that a lane at this address reaches. */
static void add_touch(struct mg_cache *c, const struct access *a, uint64_t sector, uint64_t address)
{
    uint64_t line = sector / (LINE / SECTOR);
    uint8_t bit = (uint8_t)(1u << sector % (LINE / SECTOR));
    uint32_t at = c->touches.n;
    while (at > a->first && c->touches.at[at - 1].line > line) at--;
    if (at > a->first && c->touches.at[at - 1].line == line) {
        c->touches.at[at - 1].sectors |= bit;
        return;
    }
    uint32_t buffer = mg_cache_buffers_find(&c->live, &c->result, address, a->site);
    (void)mg_vec_push(&c->touches);
    memmove(&c->touches.at[at + 1], &c->touches.at[at], (c->touches.n - 1 - at) * sizeof *c->touches.at);
    c->touches.at[at] = (struct touch){line, buffer, number_of(c, line), bit};
}

static void add_lanes(struct mg_cache *c, const struct access *a, const struct mg_trace_access *x)
{
    uint64_t done = UINT64_MAX; /* the sector of the lane before */
    for (uint32_t left = x->mask; left; left &= left - 1) {
        uint64_t address = x->address[__builtin_ctz(left)], last = (address + x->site->bytes - 1) / SECTOR;
        if (address >> 56) continue;
        for (uint64_t sector = address / SECTOR; sector <= last; sector++)
            if (sector != done) add_touch(c, a, done = sector, address);
    }
}

/* Which lines have 64 bytes that this load asks for in part. */
static void note_split(struct mg_cache *c, const struct access *a)
{
    for (uint32_t i = a->first; i < a->first + a->n && a->kind == MG_ACCESS_LOAD; i++) {
        const struct touch *t = &c->touches.at[i];
        c->split.at[t->number] |= (uint8_t)mg_l2_pairs(mg_l2_pairs(t->sectors) & ~(unsigned)t->sectors);
    }
}

static bool passes_l1(const char *op)
{
    static const char *const marks[] = {".cg", ".cv", ".volatile", ".relaxed", ".acquire", ".mmio"};
    for (size_t i = 0; i < MG_COUNT_OF(marks); i++)
        if (strstr(op, marks[i])) return !strstr(op, ".cta");
    return false;
}

/* L1 is not coherent: what acquires beyond its CTA invalidates it (ptxas puts CCTL.IVALL behind). */
static bool acquires(const char *op)
{
    return (strstr(op, ".acquire") || strstr(op, ".acq_rel")) && !strstr(op, ".cta");
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
    const struct mg_cache_opts *o = &c->result.opts;
    const char *place = o->place ? o->place(o->buffers, s) : NULL;
    *mg_vec_push(&c->result.sites) = (struct mg_cache_site){.kernel = mg_xstrdup(s->kernel),
                                                            .function = mg_xstrdup(s->function),
                                                            .file = mg_xstrdup(s->file),
                                                            .op = mg_xstrdup(s->op),
                                                            .place = place ? mg_xstrdup(place) : NULL,
                                                            .kind = (uint8_t)s->kind,
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

static unsigned bits(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static void count(struct mg_cache *c, struct mg_cache_counts *k, const struct access *a)
{
    struct mg_cache_part *site = &c->result.sites.at[a->site].part;
    uint64_t n = 0;
    for (uint32_t i = a->first; i < a->first + a->n; i++) {
        const struct touch *t = &c->touches.at[i];
        struct mg_cache_part *buffer = &c->result.buffers.at[t->buffer].part;
        bool again = false;
        for (uint32_t b = a->first; b < i && !again; b++) again = c->touches.at[b].buffer == t->buffer;
        buffer->requests[a->kind] += !again;
        buffer->sectors[a->kind] += bits(t->sectors);
        n += bits(t->sectors);
    }
    site->requests[a->kind]++;
    site->sectors[a->kind] += n;
    k->load_requests += a->kind == MG_ACCESS_LOAD;
    k->store_requests += a->kind == MG_ACCESS_STORE;
    k->atomic_requests += a->kind == MG_ACCESS_ATOMIC;
    *(a->kind == MG_ACCESS_LOAD    ? &k->load_sectors
      : a->kind == MG_ACCESS_STORE ? &k->store_sectors
                                   : &k->atomic_sectors) += n;
}

/* ---- orders ------------------------------------------------------------------------------------------- */

struct sorting {
    const struct mg_cache *c;
    uint32_t resident; /* CTAs that run together */
};

static int compare(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int by_order(const void *pa, const void *pb, void *arg)
{
    const struct sorting *s = arg;
    uint32_t i = *(const uint32_t *)pa, k = *(const uint32_t *)pb;
    const struct access *a = &s->c->accesses.at[i], *b = &s->c->accesses.at[k];
    int d = compare(a->sm, b->sm);
    if (!d) d = compare(a->place / s->resident, b->place / s->resident);
    if (!d) d = compare(s->c->rank[i], s->c->rank[k]);
    if (!d) d = compare(a->place, b->place);
    if (!d) d = compare(a->warp, b->warp);
    return d ? d : compare(i, k);
}

/* A number of the seed, the warp and its turn: how long the warp waits until then. */
static uint64_t wait_of(uint64_t seed, const struct access *a)
{
    uint64_t x =
        seed * 0x9e3779b97f4a7c15u ^ ((uint64_t)a->cta << 38 ^ (uint64_t)a->warp << 32 ^ a->turn) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 31) * 0x94d049bb133111ebu;
    return 1 + (x >> 32) % 1024;
}

static void rank_accesses(struct mg_cache *c, uint32_t order)
{
    uint64_t seed = order < SEEDED ? 0 : c->result.opts.seed + order - SEEDED;
    for (uint32_t i = 0; i < c->when.n; i++) c->when.at[i] = 0;
    for (uint32_t i = 0; i < c->accesses.n; i++) {
        const struct access *a = &c->accesses.at[i];
        if (order >= SEEDED)
            c->rank[i] = c->when.at[a->of_launch] += wait_of(seed, a);
        else
            c->rank[i] = order == TURNS ? a->turn : i;
    }
}

static void sort_accesses(struct mg_cache *c, uint32_t order, uint32_t resident)
{
    struct sorting s = {c, order == TRACED ? UINT32_MAX : order == CTAS ? 1 : resident};
    for (uint32_t i = 0; i < c->accesses.n; i++) c->order[i] = i;
    rank_accesses(c, order);
    qsort_r(c->order, c->accesses.n, sizeof *c->order, by_order, &s);
}

/* ---- L1 ----------------------------------------------------------------------------------------------- */

/* Counts by the smallest size that hits. */
static void note_distance(uint64_t hits[MG_CACHE_SIZES + 1], uint32_t distance)
{
    uint32_t ix = distance < 32 ? 0 : 2 * (31 - (uint32_t)__builtin_clz(distance) - 5); /* size 0: 32 lines */
    while (ix < MG_CACHE_SIZES && (distance == MG_REUSE_FIRST || mg_cache_size(ix) / LINE <= distance)) ix++;
    hits[MG_MIN(ix, (uint32_t)MG_CACHE_SIZES)]++;
}

static void add_tally(struct tally *t, const struct tally *more)
{
    t->hits += more->hits;
    t->first += more->first;
    t->capacity += more->capacity;
}

/* A load's sectors of one line. */
static void note_load(struct mg_cache *c, const struct access *a, const struct touch *t, const uint32_t *distance,
                      uint32_t l1_lines, struct run *run, uint8_t *missing)
{
    struct tally now = {0};
    for (int k = 0; k < MG_REUSE_SECTORS; k++) {
        if (!(t->sectors >> k & 1)) continue;
        bool hit = distance[k] < l1_lines, first = distance[k] == MG_REUSE_FIRST;
        note_distance(run->hits, distance[k]);
        now.hits += hit;
        now.first += first;
        now.capacity += !hit && !first;
        *missing &= (uint8_t) ~((unsigned)hit << k);
    }
    run->l1_hits += now.hits;
    run->first += now.first;
    add_tally(&c->by_site.at[a->site].now, &now);
    add_tally(&c->by_buffer.at[t->buffer].now, &now);
}

static void look_up(struct mg_cache *c, const struct access *a, bool allocate, uint32_t l1_lines, struct run *run)
{
    uint32_t distance[MG_REUSE_SECTORS];
    for (uint32_t i = a->first; i < a->first + a->n; i++) {
        const struct touch *t = &c->touches.at[i];
        c->missing[i] = t->sectors;
        if (a->kind == MG_ACCESS_ATOMIC || a->passes || (a->kind == MG_ACCESS_STORE && !allocate)) continue;
        mg_reuse_access(&c->l1, t->number, t->sectors, distance);
        if (a->kind == MG_ACCESS_LOAD)
            note_load(c, a, t, distance, l1_lines, run, &c->missing[i]);
        else
            for (int k = 0; k < MG_REUSE_SECTORS; k++)
                run->first += t->sectors >> k & 1 && distance[k] == MG_REUSE_FIRST;
    }
}

static struct run run_l1(struct mg_cache *c, bool allocate, uint32_t l1_lines)
{
    struct run run = {0};
    for (uint32_t i = 0; i < c->accesses.n; i++) {
        const struct access *a = &c->accesses.at[c->order[i]];
        if (!i || a->sm != c->accesses.at[c->order[i - 1]].sm) mg_reuse_reset_numbered(&c->l1, c->split.n);
        look_up(c, a, allocate, l1_lines, &run);
        if (a->acquires) mg_reuse_invalidate(&c->l1);
    }
    for (uint32_t i = 1; i < MG_CACHE_SIZES; i++) run.hits[i] += run.hits[i - 1];
    return run;
}

static void note_sites(struct mg_cache *c)
{
    for (uint32_t i = 0; i < c->accesses.n; i++) {
        const struct access *a = &c->accesses.at[i];
        for (uint32_t k = a->first; a->kind == MG_ACCESS_LOAD && k < a->first + a->n; k++)
            c->result.sites.at[a->site].hits += bits(c->touches.at[k].sectors & ~c->missing[k]);
    }
}

static void add_span(struct mg_cache_span *s, uint64_t least, uint64_t most)
{
    s->least += least;
    s->most += most;
}

/* What a run counted joins the least and the most of the launch's runs. */
static void note_run(struct around *x, uint32_t n, bool first)
{
    for (uint32_t i = 0; i < n; i++, x++) {
        if (first) x->least = x->most = x->now;
        x->least.hits = MG_MIN(x->least.hits, x->now.hits), x->most.hits = MG_MAX(x->most.hits, x->now.hits);
        x->least.first = MG_MIN(x->least.first, x->now.first), x->most.first = MG_MAX(x->most.first, x->now.first);
        x->least.capacity = MG_MIN(x->least.capacity, x->now.capacity);
        x->most.capacity = MG_MAX(x->most.capacity, x->now.capacity);
        x->now = (struct tally){0};
    }
}

static void add_around(struct mg_cache_part *p, const struct around *x)
{
    add_span(&p->l1_hits, x->least.hits, x->most.hits);
    add_span(&p->l1_first, x->least.first, x->most.first);
    add_span(&p->l1_capacity, x->least.capacity, x->most.capacity);
}

static void add_parts(struct mg_cache *c)
{
    for (uint32_t i = 0; i < c->by_site.n; i++) add_around(&c->result.sites.at[i].part, &c->by_site.at[i]);
    for (uint32_t i = 0; i < c->by_buffer.n; i++) add_around(&c->result.buffers.at[i].part, &c->by_buffer.at[i]);
}

/* ---- L2 ----------------------------------------------------------------------------------------------- */

static void note_l2(struct mg_cache_part *p, const struct mg_l2_answer *x, unsigned sectors)
{
    p->l2_sectors += bits(sectors);
    p->l2_first += bits(x->first);
    p->l2_guess += bits(x->guess);
    add_span(&p->l2_hits, bits(x->least), bits(x->most));
    add_span(&p->l2_capacity, bits(x->lost_least), bits(x->lost_most));
}

static void send_touch(struct mg_cache *c, const struct access *a, const struct touch *t, unsigned sectors,
                       uint32_t window)
{
    struct mg_cache_l2 *l2 = &c->result.l2;
    struct mg_l2_request q = {.line = t->line,
                              .turn = c->turn,
                              .window = window,
                              .sm = a->sm,
                              .sectors = (uint8_t)sectors,
                              .split = c->split.at[t->number],
                              .reads = a->kind != MG_ACCESS_STORE,
                              .writes = a->kind != MG_ACCESS_LOAD};
    struct mg_l2_answer x;
    mg_l2_access(c->l2, &q, &x);
    if (c->dram) mg_dram_access(c->dram, t->line, sectors, q.reads, q.writes);
    for (int k = 0; k < MG_REUSE_SECTORS; k++) {
        if (!(sectors >> k & 1)) continue;
        note_distance(c->alone_hits, x.alone[k]);
        note_distance(c->paired_hits, x.paired[k]);
    }
    l2->sectors += bits(sectors);
    l2->first += bits(x.first);
    l2->guess += bits(x.guess);
    add_span(&l2->hits, bits(x.least), bits(x.most));
    if (a->kind == MG_ACCESS_LOAD) {
        l2->load_sectors += bits(sectors);
        l2->load_guess += bits(x.guess);
        add_span(&l2->load_hits, bits(x.least), bits(x.most));
    }
    note_l2(&c->result.sites.at[a->site].part, &x, sectors);
    note_l2(&c->result.buffers.at[t->buffer].part, &x, sectors);
}

static void send(struct mg_cache *c, const struct access *a, uint32_t window)
{
    for (uint32_t i = a->first; i < a->first + a->n; i++)
        if (c->missing[i]) send_touch(c, a, &c->touches.at[i], c->missing[i], window);
}

/* The multiprocessors in turn, an access each. A launch finds nothing on its way. */
static void send_all(struct mg_cache *c, uint32_t window)
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
            send(c, &c->accesses.at[c->order[at.at[k]++]], window);
            any = true;
        }
        c->turn++;
    }
    c->turn += window;
    mg_vec_release(&at);
    mg_vec_release(&end);
}

/* ---- launches ----------------------------------------------------------------------------------------- */

static void clear_parts(struct mg_cache *c)
{
    c->by_site.n = c->by_buffer.n = 0;
    for (uint32_t i = 0; i < c->result.sites.n; i++) *mg_vec_push(&c->by_site) = (struct around){0};
    for (uint32_t i = 0; i < c->result.buffers.n; i++) *mg_vec_push(&c->by_buffer) = (struct around){0};
}

static void run_launch(struct mg_cache *c, struct mg_cache_kernel *k, const struct mg_trace_step *s)
{
    uint32_t threads = MG_MAX(s->block[0], 1u) * MG_MAX(s->block[1], 1u) * MG_MAX(s->block[2], 1u);
    uint32_t resident = MG_MAX(1u, MG_MIN((uint32_t)CTAS_OF_SM, THREADS_OF_SM / MG_MAX(threads, 1u)));
    uint64_t shared = (uint64_t)s->shared_bytes * resident, l1 = c->result.opts.l1_bytes;
    uint32_t lines = (uint32_t)(MG_MAX(l1 > shared ? l1 - shared : 0, MG_MIN((uint64_t)LEAST_L1, l1)) / LINE);
    struct run least = {0}, most = {0};
    c->order = mg_xrealloc(c->order, ((size_t)c->accesses.n + 1) * sizeof *c->order);
    c->rank = mg_xrealloc(c->rank, ((size_t)c->accesses.n + 1) * sizeof *c->rank);
    c->missing = mg_xrealloc(c->missing, (size_t)c->touches.n + 1);
    clear_parts(c);
    for (uint32_t i = 0; i < c->accesses.n; i++) count(c, &k->counts, &c->accesses.at[i]);
    uint32_t orders = SEEDED + (uint32_t)c->result.opts.interleavings;
    for (uint32_t o = orders; o-- > 0;) /* the trace's own order last: its misses go to L2 */
        for (int allocate = 1; allocate >= 0; allocate--) {
            if (allocate) sort_accesses(c, o, resident);
            struct run run = run_l1(c, allocate, lines);
            bool first = o == orders - 1 && allocate;
            note_run(c->by_site.at, c->by_site.n, first);
            note_run(c->by_buffer.at, c->by_buffer.n, first);
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
    add_parts(c);
    send_all(c, resident * ((threads + WARP - 1) / WARP)); /* each warp has one access on its way */
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
    struct mg_map places = MG_MAP_INIT, sms = MG_MAP_INIT, warps = MG_MAP_INIT;
    const struct mg_trace_access *x;
    enum mg_err err = MG_ERR_OK;
    c->accesses.n = c->touches.n = c->when.n = c->split.n = 0;
    mg_map_release(&c->lines);
    c->lines = (struct mg_map)MG_MAP_INIT;
    mg_accesses_begin(from, s);
    while (!err && (x = mg_accesses_next(from))) {
        uint64_t warp = c->when.n;
        if (mg_comm_note_unseen(source, x) || !x->site->bytes || !x->mask) continue;
        if (x->site->bytes > MOST_ACCESS || c->touches.n > UINT32_MAX - MOST_ACCESS || c->accesses.n > UINT32_MAX - 2)
            err = mg_diag_err(d, MG_ERR_LIMIT, "launch %llu has more accesses than the model takes",
                              (unsigned long long)s->launch);
        if (err) break;
        if (x->sm >= UINT16_MAX) c->result.knows_sm = false;
        if (!mg_map_get(&warps, x->cta << 6 ^ x->warp, &warp)) {
            mg_map_set(&warps, x->cta << 6 ^ x->warp, warp);
            *mg_vec_push(&c->when) = 0;
        }
        struct access a = {.sm = x->sm,
                           .cta = (uint32_t)x->cta,
                           .warp = x->warp,
                           .of_launch = (uint32_t)warp,
                           .turn = (uint32_t)c->when.at[warp]++,
                           .first = c->touches.n,
                           .site = find_site(c, x->site),
                           .kind = (uint8_t)x->site->kind,
                           .passes = passes_l1(x->site->op),
                           .acquires = acquires(x->site->op),
                           .place = place_of_cta(&places, &sms, x->sm, x->cta)};
        add_lanes(c, &a, x);
        a.n = c->touches.n - a.first;
        note_split(c, &a);
        if (a.n) *mg_vec_push(&c->accesses) = a;
    }
    mg_map_release(&places);
    mg_map_release(&sms);
    mg_map_release(&warps);
    if (err || !c->accesses.n) return err;
    struct mg_cache_kernel *k = find_kernel(c, s->name);
    k->launches++;
    run_launch(c, k, s);
    return MG_ERR_OK;
}

enum mg_err mg_cache_step(struct mg_cache *c, struct mg_accesses *from, const struct mg_trace_step *s,
                          struct mg_comm_source *source, struct mg_diag *d)
{
    const struct mg_cache_opts *o = &c->result.opts;
    mg_cache_buffers_step(&c->live, s);
    if (s->kind != MG_STEP_LAUNCH || s->launch < o->first || (o->end && s->launch >= o->end)) return MG_ERR_OK;
    source->launches++;
    if (s->flags & MG_STEP_TRACED) return feed_launch(c, from, s, source, d);
    source->untraced++;
    return MG_ERR_OK;
}

void mg_cache_steps_end(const struct mg_accesses *from, struct mg_comm_source *source)
{
    source->is_partial = mg_accesses_is_partial(from);
    source->damaged = mg_accesses_damaged(from, NULL);
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
    for (uint64_t i = 0; i < n && !err; i++) err = mg_cache_step(c, from, &steps[i], source, d);
    mg_cache_steps_end(from, source);
    mg_accesses_close(from);
    return err;
}

static void name_sites(struct mg_cache_result *r)
{
    for (uint32_t i = 0; r->opts.buffer && i < r->sites.n; i++) {
        struct mg_cache_site *x = &r->sites.at[i];
        const struct mg_access_site s = {.kernel = x->kernel, .function = x->function, .ptx_line = x->ptx_line};
        const char *name = r->opts.buffer(r->opts.buffers, &s);
        x->buffer = name ? mg_xstrdup(name) : NULL;
    }
}

const struct mg_cache_result *mg_cache_finish(struct mg_cache *c)
{
    struct mg_cache_l2 *l2 = &c->result.l2;
    if (c->finished) return &c->result;
    c->finished = true;
    for (uint32_t i = 0; i < MG_CACHE_SIZES; i++) {
        if (i) c->alone_hits[i] += c->alone_hits[i - 1];
        if (i) c->paired_hits[i] += c->paired_hits[i - 1];
        l2->sizes[i] = (struct mg_cache_span){c->alone_hits[i], c->paired_hits[i]};
    }
    name_sites(&c->result);
    mg_cache_buffers_finish(&c->live, &c->result);
    c->result.lines = mg_l2_lines(c->l2);
    return &c->result;
}

uint64_t mg_cache_json_most(const struct mg_cache *c)
{
    enum { REST = 1 << 16, ROW = 4096 };
    const struct mg_cache_result *r = &c->result;
    return REST + ((uint64_t)r->sites.n + r->buffers.n + r->kernels.n) * ROW;
}
