/* The analysis of communication against a plain one: every byte of a small memory, every pair looked at. */
#include <stdlib.h>
#include <string.h>

#include "study/comm.h"
#include "study/comm_whole.h"
#include "test.h"

enum { BYTES = 512, LAUNCHES = 6, CTAS = 5, WARPS = 3, ACCESSES = 40, UNITS = CTAS * WARPS * 32, EDGES = 1 << 16 };
#define BASE (((uint64_t)0x7f00 << 24) + (1 << 21) - BYTES / 2) /* across two pages */

static uint64_t draw(uint64_t *s)
{
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

/* ---- planted launches -------------------------------------------------------------------------------- */

struct planted {
    struct mg_comm_access a[LAUNCHES][ACCESSES];
    uint64_t listed[LAUNCHES][ACCESSES * 32];
    struct mg_comm_launch l[LAUNCHES];
};

static void plant_access(struct mg_comm_access *a, uint64_t *listed, uint32_t *used, uint64_t *s)
{
    static const uint8_t widths[] = {1, 2, 4, 4, 4, 8, 16};
    uint32_t lanes;
    *a = (struct mg_comm_access){.cta = (uint32_t)(draw(s) % CTAS),
                                 .warp = (uint16_t)(draw(s) % WARPS),
                                 .bytes = widths[draw(s) % 7],
                                 .kind = draw(s) % 8 ? (uint8_t)(draw(s) % 2) : (uint8_t)MG_COMM_ATOMIC};
    a->mask = draw(s) % 2 ? UINT32_MAX >> draw(s) % 32 : (uint32_t)draw(s) | 1;
    a->sm = (uint16_t)(a->cta % 3);
    if (a->kind == MG_COMM_ATOMIC) a->bytes = 4;
    lanes = (uint32_t)__builtin_popcount(a->mask);
    uint64_t slots = BYTES / a->bytes;
    a->stride = (int32_t)(a->bytes * (draw(s) % 3));
    a->base = BASE + draw(s) % slots * a->bytes;
    if (a->base + (uint64_t)a->stride * (lanes - 1) + a->bytes > BASE + BYTES || draw(s) % 3 == 0) {
        a->stride = MG_COMM_LISTED;
        a->first = *used;
        uint64_t row = draw(s) % 2 ? 1 : 2 + draw(s) % 15, slot = 0; /* rows of adjacent lanes, as of a tile, or none */
        for (uint32_t i = 0; i < lanes; i++) {
            slot = i % row && slot + 1 < slots ? slot + 1 : draw(s) % slots;
            listed[(*used)++] = BASE + slot * a->bytes;
        }
    }
}

static void plant(struct planted *p, uint64_t *s)
{
    static const char *const names[] = {"one", "two", "three"};
    memset(p, 0, sizeof *p);
    for (int i = 0; i < LAUNCHES; i++) {
        uint32_t phase[CTAS * WARPS] = {0}, used = 0;
        for (uint32_t k = 0; k < ACCESSES; k++) {
            struct mg_comm_access *a = &p->a[i][k];
            plant_access(a, p->listed[i], &used, s);
            a->order = k + 1;
            uint32_t *at = &phase[a->cta * WARPS + a->warp];
            if (draw(s) % 6 == 0) ++*at;
            a->phase = *at;
        }
        p->l[i] = (struct mg_comm_launch){.id = (unsigned)i,
                                          .kernel = names[i % 3],
                                          .grid = {CTAS, 1, 1},
                                          .block = {WARPS * 32, 1, 1},
                                          .accesses = p->a[i],
                                          .n_accesses = draw(s) % 9 ? ACCESSES : 0,
                                          .addresses = p->listed[i]};
    }
}

/* ---- the plain analysis ------------------------------------------------------------------------------ */

struct write {
    uint32_t unit, cta, warp, order, phase, bytes;
    bool atomic, start;
};
struct plain_byte {
    struct write w[2000];
    uint32_t n;
    int launch;
    bool used;
}; /* writes of the last launch that wrote it; launch -1: none */
struct plain {
    enum mg_comm_entity entity;
    bool by_start;
    struct plain_byte old[BYTES], now[BYTES];
    struct mg_comm_volume used[LAUNCHES][CTAS];
    struct mg_comm_edge edges[EDGES];
    uint32_t n_edges;
    uint64_t in_launch, in_launch_atomic, ambiguous, ambiguous_most;
    bool loads[CTAS][BYTES], stores[LAUNCHES][CTAS][BYTES]; /* start addresses that communicate */
    uint64_t load_gaps[BYTES], store_gaps[BYTES];
    uint8_t seen[UNITS][BYTES]; /* bytes counted, by target, of a launch */
};

static uint64_t address_of(const struct mg_comm_launch *l, const struct mg_comm_access *a, uint32_t ix)
{
    return a->stride == MG_COMM_LISTED ? l->addresses[a->first + ix] : a->base + (uint64_t)a->stride * ix;
}

static uint32_t unit_of(const struct plain *p, const struct mg_comm_access *a, uint32_t lane)
{
    if (p->entity == MG_COMM_THREAD) return (a->cta * WARPS + a->warp) * 32 + lane;
    return p->entity == MG_COMM_WARP ? a->cta * WARPS + a->warp : a->cta;
}

static uint32_t entity_of(const struct plain *p, uint32_t unit, uint32_t cta)
{
    return p->entity == MG_COMM_KERNEL ? 0 : p->entity == MG_COMM_SM ? cta % 3 : unit;
}

/* 0: the value from before the launch, 1: its own, 2: of the launch, 3: nobody knows. */
static int plain_order(const struct plain *p, const struct plain_byte *b, const struct mg_comm_access *a, uint32_t unit)
{
    uint32_t phase = UINT32_MAX, order = UINT32_MAX;
    bool store = false, own = true, other_warp = false;
    for (uint32_t i = 0; i < b->n; i++) {
        store |= !b->w[i].atomic;
        phase = MG_MIN(phase, b->w[i].phase);
        own &= entity_of(p, b->w[i].unit, b->w[i].cta) == entity_of(p, unit, a->cta);
    }
    if (!b->n || (a->kind == MG_COMM_ATOMIC && !store)) return 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->w[i].cta != a->cta) return 3;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->w[i].phase != phase) continue;
        other_warp |= b->w[i].warp != a->warp;
        order = MG_MIN(order, b->w[i].order);
    }
    bool after = a->phase > phase;
    if (a->phase == phase && other_warp) return 3;
    if (a->phase == phase) after = a->order > order;
    return !after ? 0 : own ? 1 : 2;
}

static struct mg_comm_edge *edge_of(struct plain *p, uint32_t from, uint32_t source, uint32_t to, uint32_t target)
{
    for (uint32_t i = 0; i < p->n_edges; i++) {
        struct mg_comm_edge *e = &p->edges[i];
        if (e->source_step == from && e->source == source && e->target_step == to && e->target == target) return e;
    }
    mg_assert(p->n_edges < EDGES);
    p->edges[p->n_edges] =
        (struct mg_comm_edge){.source_step = from, .source = source, .target_step = to, .target = target};
    return &p->edges[p->n_edges++];
}

static void plain_write(struct plain *p, const struct mg_comm_launch *l, const struct mg_comm_access *a)
{
    uint32_t ix = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(a->mask >> lane & 1)) continue;
        uint64_t at = address_of(l, a, ix++) - BASE;
        for (uint32_t k = 0; k < (p->by_start ? 1 : a->bytes); k++) {
            struct plain_byte *b = &p->now[at + k];
            mg_assert(b->n < MG_COUNT_OF(b->w));
            b->w[b->n++] = (struct write){
                unit_of(p, a, lane),       a->cta, a->warp, a->order, a->phase, p->by_start ? a->bytes : 1,
                a->kind == MG_COMM_ATOMIC, !k};
        }
    }
}

/* All that the byte's writers stored is used; atomics that were readers, too, count there. */
static void plain_use(struct plain *p, struct plain_byte *b, uint64_t at)
{
    bool start = false;
    if (b->used) return;
    b->used = true;
    for (uint32_t i = 0; i < b->n; i++) start |= b->w[i].start;
    for (uint32_t i = 0; i < b->n; i++) p->stores[b->launch][b->w[i].cta][at] |= start;
    for (uint32_t i = 0; i < b->n; i++) {
        struct mg_comm_volume *v = &p->used[b->launch][b->w[i].cta];
        if (!b->w[i].atomic)
            v->store += b->w[i].bytes;
        else
            v->atomic += b->w[i].bytes;
    }
}

static void plain_read(struct plain *p, int launch, const struct mg_comm_launch *l, const struct mg_comm_access *a)
{
    uint32_t ix = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(a->mask >> lane & 1)) continue;
        uint64_t at = address_of(l, a, ix++) - BASE;
        struct mg_comm_edge *counted[16];
        uint32_t n_counted = 0, unit = unit_of(p, a, lane), target = entity_of(p, unit, a->cta);
        for (uint32_t k = 0; k < (p->by_start ? 1 : a->bytes); k++) {
            struct plain_byte *o = &p->old[at + k], *n = &p->now[at + k];
            uint32_t weight = p->by_start ? a->bytes : 1;
            int order = plain_order(p, n, a, unit);
            bool many = false, atomic = a->kind == MG_COMM_ATOMIC;
            for (uint32_t i = 1; i < n->n; i++) many |= n->w[i].unit != n->w[0].unit;
            if (atomic && many) p->in_launch_atomic += weight;
            if (atomic && o->launch >= 0) p->used[launch][a->cta].atomic += weight;
            if (order == 2) p->in_launch += weight;
            if (order == 3) p->ambiguous += weight;
            if (order == 3 && o->launch >= 0) p->ambiguous_most += weight;
            if (order || o->launch < 0) continue;
            uint32_t source = entity_of(p, o->w[0].unit, o->w[0].cta);
            for (uint32_t i = 1; i < o->n; i++)
                if (entity_of(p, o->w[i].unit, o->w[i].cta) != source) source = MG_COMM_SEVERAL;
            struct mg_comm_edge *e = edge_of(p, (uint32_t)o->launch, source, (uint32_t)launch, target);
            bool again = false;
            for (uint32_t i = 0; i < n_counted; i++) again |= counted[i] == e;
            if (!again) counted[n_counted++] = e, e->reads++;
            e->executed += weight;
            if (weight > p->seen[target][at + k]) {
                e->bytes += weight - p->seen[target][at + k];
                p->seen[target][at + k] = (uint8_t)weight;
            }
            if (!atomic) p->used[launch][a->cta].load += weight;
            plain_use(p, o, at + k);
            if (!atomic) p->loads[a->cta][at] = true;
        }
    }
}

static void plain_gaps(const bool *set, uint64_t *gaps)
{
    int last = -1;
    for (int i = 0; i < BYTES; i++) {
        if (!set[i]) continue;
        if (last >= 0) gaps[i - last]++;
        last = i;
    }
}

static void plain_launch(struct plain *p, int launch, const struct mg_comm_launch *l)
{
    for (int i = 0; i < BYTES; i++) p->now[i].n = 0;
    memset(p->seen, 0, sizeof p->seen);
    memset(p->loads, 0, sizeof p->loads);
    for (uint64_t i = 0; i < l->n_accesses; i++)
        if (l->accesses[i].kind != MG_COMM_LOAD) plain_write(p, l, &l->accesses[i]);
    for (uint64_t i = 0; i < l->n_accesses; i++)
        if (l->accesses[i].kind != MG_COMM_STORE) plain_read(p, launch, l, &l->accesses[i]);
    for (int i = 0; i < CTAS; i++) plain_gaps(p->loads[i], p->load_gaps);
    for (int i = 0; i < BYTES; i++) {
        struct plain_byte *n = &p->now[i], *o = &p->old[i];
        if (!n->n) continue;
        for (uint32_t k = 0; o->launch >= 0 && k < n->n; k++)
            if (n->w[k].atomic) n->w[k].bytes = 0; /* counted as readers */
        n->launch = launch;
        n->used = false;
        *o = *n;
    }
}

/* ---- together ---------------------------------------------------------------------------------------- */

static const struct mg_comm_edge *find_edge(const struct mg_comm_result *r, const struct mg_comm_edge *e)
{
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *x = &r->edges[i];
        if (x->source_step == e->source_step && x->source == e->source && x->target_step == e->target_step &&
            x->target == e->target)
            return x;
    }
    return NULL;
}

static void compare_gaps(const mg_comm_gaps *got, const uint64_t *want)
{
    uint32_t n = 0;
    for (int i = 0; i < BYTES; i++) n += want[i] != 0;
    MG_CHECK_EQ(got->n, n);
    for (uint32_t i = 0; i < got->n; i++) MG_CHECK_EQ(got->at[i].count, want[got->at[i].bytes]);
}

static void compare(const struct plain *p, const struct mg_comm_result *r)
{
    uint64_t in_launch = 0, atomic = 0, ambiguous = 0, most = 0;
    MG_CHECK_EQ(r->n_edges, p->n_edges);
    for (uint32_t i = 0; i < p->n_edges; i++) {
        const struct mg_comm_edge *e = find_edge(r, &p->edges[i]);
        MG_CHECK(e != NULL);
        if (!e) continue;
        MG_CHECK_EQ(e->bytes, p->edges[i].bytes);
        MG_CHECK_EQ(e->executed, p->edges[i].executed);
        MG_CHECK_EQ(e->reads, p->edges[i].reads);
    }
    for (uint32_t i = 0; i < r->n_steps; i++) {
        in_launch += r->steps[i].in_launch;
        atomic += r->steps[i].in_launch_atomic;
        ambiguous += r->steps[i].ambiguous;
        most += r->steps[i].ambiguous_most;
        for (uint32_t k = 0; k < CTAS; k++) {
            MG_CHECK_EQ(r->steps[i].used[k].load, p->used[i][k].load);
            MG_CHECK_EQ(r->steps[i].used[k].store, p->used[i][k].store);
            MG_CHECK_EQ(r->steps[i].used[k].atomic, p->used[i][k].atomic);
        }
    }
    MG_CHECK_EQ(in_launch, p->in_launch);
    MG_CHECK_EQ(atomic, p->in_launch_atomic);
    MG_CHECK_EQ(ambiguous, p->ambiguous);
    MG_CHECK_EQ(most, p->ambiguous_most);
}

static void host_clears(struct plain *p, struct mg_comm *c, uint64_t *s)
{
    uint64_t at = draw(s) % BYTES, n = draw(s) % 70 + 1;
    if (draw(s) % 2) return;
    n = MG_MIN(n, BYTES - at);
    for (uint64_t i = at; i < at + n; i++) p->old[i].launch = -1;
    mg_comm_add_memset(c, BASE + at, n);
}

/* What is set aside for the results holds them. */
static void compare_size(const struct mg_comm_whole *w, uint64_t most)
{
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &text, 0);
    mg_comm_print_json(&w->study, &j);
    MG_CHECK(text.n <= most);
    mg_buf_release(&text);
}

static void run_both(enum mg_comm_entity entity, enum mg_comm_match match, unsigned workers, uint64_t seed)
{
    struct planted *in = malloc(sizeof *in);
    struct plain *p = calloc(1, sizeof *p);
    uint64_t s = seed * 0x9e3779b97f4a7c15u + 1, clears = seed + 77;
    struct mg_comm_opts o = {.size = sizeof o, .entity = entity, .match = match, .workers = workers};
    const struct mg_comm_link link = MG_COMM_H200;
    struct mg_comm *c = mg_comm_new(&o);
    struct mg_comm_whole w = {.comm = c};
    struct mg_diag d = MG_DIAG_INIT;
    plant(in, &s);
    p->entity = entity;
    p->by_start = match == MG_COMM_START;
    for (int i = 0; i < BYTES; i++) p->old[i].launch = -1;
    for (int i = 0; i < LAUNCHES; i++) {
        host_clears(p, c, &clears);
        MG_CHECK_EQ(mg_comm_add_launch(c, &in->l[i], &d), MG_ERR_OK);
        plain_launch(p, i, &in->l[i]);
    }
    for (int i = 0; i < LAUNCHES * CTAS; i++) plain_gaps(p->stores[i / CTAS][i % CTAS], p->store_gaps);
    const uint64_t most = mg_comm_json_most(c);
    const struct mg_comm_result *r = mg_comm_finish(c);
    mg_comm_whole_finish(&w, &link);
    compare_size(&w, most);
    compare(p, r);
    compare_gaps(&r->load_gaps, p->load_gaps);
    compare_gaps(&r->store_gaps, p->store_gaps);
    mg_comm_whole_release(&w);
    mg_diag_release(&d);
    free(in);
    free(p);
}

MG_TEST(comm_plain)
{
    for (unsigned seed = 0; seed < 12; seed++)
        for (int entity = MG_COMM_CTA; entity <= MG_COMM_KERNEL && mg_test_takes(seed); entity++)
            run_both((enum mg_comm_entity)entity, seed % 4 == 3 ? MG_COMM_START : MG_COMM_BYTE, 1 + seed % 3,
                     seed * 5 + (unsigned)entity);
}
