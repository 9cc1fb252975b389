#include <stdlib.h>
#include <string.h>

#include "study/comm_scale.h"

enum { PASSES = 8 /* of the cut */, MOST_CUT_CTAS = 1 << 20 };

/* ---- launches that could be one, clusters ------------------------------------------------------------- */

static bool same_stream(const struct mg_comm_step *a, const struct mg_comm_step *b)
{
    return a->device == b->device && a->context == b->context && a->stream == b->stream;
}

/* The launch in front of ix in its stream; UINT32_MAX: there is none. */
static uint32_t step_before(const struct mg_comm_result *r, uint32_t ix)
{
    for (uint32_t i = ix; i-- > 0;)
        if (same_stream(&r->steps[i], &r->steps[ix])) return i;
    return UINT32_MAX;
}

static struct mg_comm_pair *pair_of(struct mg_comm_advice *a, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < a->pairs.n; i++)
        if (a->pairs.at[i].from == from && a->pairs.at[i].to == to) return &a->pairs.at[i];
    struct mg_comm_pair *p = mg_vec_push(&a->pairs);
    *p = (struct mg_comm_pair){.from = from, .to = to};
    return p;
}

static void add_edge(struct mg_comm_advice *a, const struct mg_comm_edge *e, uint32_t source, uint32_t target)
{
    a->next_bytes += e->bytes;
    if (e->source == MG_COMM_SEVERAL) return;
    if (source == target) a->same_cta += e->bytes;
    for (uint32_t k = 0; k < MG_COUNT_OF(a->in_cluster); k++)
        if (source >> (k + 1) == target >> (k + 1)) a->in_cluster[k] += e->bytes;
}

void mg_comm_advice_init(struct mg_comm_advice *a, const struct mg_comm_result *r)
{
    memset(a, 0, sizeof *a);
    for (uint32_t i = 0; mg_comm_has_ctas(r) && i < r->n_steps; i++) {
        const struct mg_comm_step *s = &r->steps[i];
        uint32_t before = step_before(r, i);
        uint64_t bytes = 0;
        bool own = true;
        if (before == UINT32_MAX) continue;
        const struct mg_comm_step *b = &r->steps[before];
        for (uint32_t k = s->first_edge; k < s->first_edge + s->n_edges; k++) {
            const struct mg_comm_edge *e = &r->edges[k];
            if (e->source_step != before) continue;
            uint32_t source = e->source == MG_COMM_SEVERAL ? 0 : mg_comm_cta_of(b, e->source),
                     target = mg_comm_cta_of(s, e->target);
            bytes += e->bytes;
            own &= e->source != MG_COMM_SEVERAL && source == target;
            add_edge(a, e, source, target);
        }
        own &= s->n_ctas == b->n_ctas && !s->ambiguous;
        struct mg_comm_pair *p = pair_of(a, b->kernel, s->kernel);
        p->times++;
        p->bytes += bytes;
        p->free += !bytes;
        p->own += bytes && own;
        if (own) p->own_bytes += bytes;
    }
}

void mg_comm_advice_release(struct mg_comm_advice *a)
{
    mg_vec_release(&a->pairs);
}

/* ---- several GPUs ------------------------------------------------------------------------------------- */

const char *mg_comm_placement_name(enum mg_comm_placement p)
{
    static const char *const names[] = {"blocks", "cyclic", "cut"};
    _Static_assert(MG_COUNT_OF(names) == MG_COMM_PLACEMENT_COUNT, "a name for each");
    return names[p];
}

enum { MOST_GPUS = 16, MOST_PLANS = 16 };
struct plan { /* where CTAs go */
    enum mg_comm_placement placement;
    uint32_t gpus;
    uint8_t *gpu_of; /* MG_COMM_CUT: by CTA number */
    uint32_t n;
};
struct plans {
    struct plan at[MOST_PLANS];
    uint32_t n;
    uint32_t *first;            /* CTA of each step, in one row of all steps */
    uint8_t (*gpu)[MOST_PLANS]; /* by CTA and plan */
};

static uint8_t gpu_of(const struct plan *p, const struct mg_comm_step *s, uint32_t cta)
{
    if (p->placement == MG_COMM_CUT && cta < p->n) return p->gpu_of[cta];
    if (p->placement == MG_COMM_CYCLIC) return (uint8_t)(cta % p->gpus);
    return (uint8_t)((uint64_t)cta * p->gpus / s->n_ctas);
}

static void place_all(struct plans *p, const struct mg_comm_result *r)
{
    uint32_t n = 0;
    p->first = mg_xmalloc(((size_t)r->n_steps + 1) * sizeof *p->first);
    for (uint32_t i = 0; i < r->n_steps; n += r->steps[i++].n_ctas) p->first[i] = n;
    p->gpu = mg_xcalloc((size_t)n + 1, sizeof *p->gpu);
    for (uint32_t i = 0; i < r->n_steps; i++)
        for (uint32_t k = 0; k < p->n; k++)
            for (uint32_t cta = 0; cta < r->steps[i].n_ctas; cta++)
                p->gpu[p->first[i] + cta][k] = gpu_of(&p->at[k], &r->steps[i], cta);
}

struct graph { /* of CTA numbers, both ways: bytes between them */
    uint32_t n, *first, *to;
    uint64_t *bytes;
};

static struct graph make_graph(const struct mg_comm_metrics *m)
{
    struct graph g = {.n = m->density_ctas};
    g.first = mg_xcalloc((size_t)g.n + 2, sizeof *g.first);
    g.to = mg_xmalloc(((size_t)m->density.n * 2 + 1) * sizeof *g.to);
    g.bytes = mg_xmalloc(((size_t)m->density.n * 2 + 1) * sizeof *g.bytes);
    for (uint32_t i = 0; i < m->density.n; i++) {
        g.first[m->density.at[i].source + 2]++;
        g.first[m->density.at[i].target + 2]++;
    }
    for (uint32_t i = 2; i < g.n + 2; i++) g.first[i] += g.first[i - 1];
    for (uint32_t i = 0; i < m->density.n; i++) {
        const struct mg_comm_cell *c = &m->density.at[i];
        uint32_t a = g.first[c->source + 1]++, b = g.first[c->target + 1]++;
        g.to[a] = c->target;
        g.to[b] = c->source;
        g.bytes[a] = g.bytes[b] = c->bytes;
    }
    return g;
}

static uint64_t cut_of(const struct graph *g, const uint8_t *gpu)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++)
            if (gpu[i] != gpu[g->to[k]]) sum += g->bytes[k];
    return sum / 2;
}

/* Moves CTAs to the GPU with which they exchange most, while no GPU has 5 % more than its share. */
static void improve(const struct graph *g, uint8_t *gpu, uint32_t gpus)
{
    uint32_t size[16] = {0}, most = (g->n + gpus - 1) / gpus;
    most += most / 20 + 1;
    for (uint32_t i = 0; i < g->n; i++) size[gpu[i]]++;
    for (int pass = 0; pass < PASSES; pass++) {
        bool moved = false;
        for (uint32_t i = 0; i < g->n; i++) {
            uint64_t pull[16] = {0};
            uint32_t best = gpu[i];
            for (uint32_t k = g->first[i]; k < g->first[i + 1]; k++)
                if (g->to[k] != i) pull[gpu[g->to[k]]] += g->bytes[k];
            for (uint32_t p = 0; p < gpus; p++)
                if (pull[p] > pull[best] && size[p] < most) best = p;
            if (best == gpu[i]) continue;
            size[gpu[i]]--;
            size[best]++;
            gpu[i] = (uint8_t)best;
            moved = true;
        }
        if (!moved) return;
    }
}

/* From blocks and from cyclic placement, whichever ends better. */
static uint8_t *find_cut(const struct graph *g, uint32_t gpus)
{
    uint8_t *blocks = mg_xmalloc((size_t)g->n + 1), *cyclic = mg_xmalloc((size_t)g->n + 1);
    for (uint32_t i = 0; i < g->n; i++) {
        blocks[i] = (uint8_t)((uint64_t)i * gpus / g->n);
        cyclic[i] = (uint8_t)(i % gpus);
    }
    improve(g, blocks, gpus);
    improve(g, cyclic, gpus);
    if (cut_of(g, cyclic) < cut_of(g, blocks)) memcpy(blocks, cyclic, g->n);
    free(cyclic);
    return blocks;
}

static double seconds_of(const struct mg_comm_step *s, const struct mg_comm_link *link)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_ctas; i++) bytes += s->total[i].load + s->total[i].store + s->total[i].atomic;
    return (double)bytes / (link->memory_gbs * 1e9);
}

struct traffic { /* between GPUs, of one step and plan */
    uint64_t bytes, into[MOST_GPUS];
};

/* Returns the bytes that several wrote. */
static uint64_t add_traffic(const struct plans *p, const struct mg_comm_result *r, uint32_t ix, struct traffic *t)
{
    const struct mg_comm_step *s = &r->steps[ix];
    uint64_t several = 0;
    memset(t, 0, MOST_PLANS * sizeof *t);
    for (uint32_t i = s->first_edge; i < s->first_edge + s->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        const struct mg_comm_step *f = &r->steps[e->source_step];
        bool unplaced = e->source == MG_COMM_SEVERAL;
        const uint8_t *to = p->gpu[p->first[ix] + mg_comm_cta_of(s, e->target)],
                      *from = p->gpu[p->first[e->source_step] + (unplaced ? 0 : mg_comm_cta_of(f, e->source))];
        if (unplaced) several += e->bytes;
        for (uint32_t k = 0; k < p->n; k++) {
            uint64_t bytes = unplaced || from[k] != to[k] ? e->bytes : 0;
            t[k].bytes += bytes;
            t[k].into[to[k]] += bytes;
        }
    }
    return several;
}

static void scale_all(const struct mg_comm_result *r, const struct mg_comm_link *link, const struct plans *p,
                      struct mg_comm_scale *out)
{
    struct traffic t[MOST_PLANS];
    double one = 0, many[MOST_PLANS] = {0};
    for (uint32_t k = 0; k < p->n; k++)
        out[k] = (struct mg_comm_scale){.gpus = p->at[k].gpus, .placement = p->at[k].placement};
    for (uint32_t i = 0; i < r->n_steps; i++) {
        uint64_t several = add_traffic(p, r, i, t);
        double seconds = seconds_of(&r->steps[i], link);
        one += seconds;
        for (uint32_t k = 0; k < p->n; k++) {
            uint64_t most = 0;
            for (uint32_t g = 0; g < out[k].gpus; g++) most = MG_MAX(most, t[k].into[g]);
            out[k].unplaced += several;
            out[k].bytes += t[k].bytes;
            out[k].most_bytes = MG_MAX(out[k].most_bytes, t[k].bytes);
            many[k] += seconds / out[k].gpus + (double)most / (link->link_gbs * 1e9) +
                       (t[k].bytes ? link->latency_us * 1e-6 : 0);
        }
    }
    for (uint32_t k = 0; k < p->n; k++) out[k].speedup = many[k] > 0 ? one / many[k] : 0;
}

void mg_comm_scale(const struct mg_comm_result *r, const struct mg_comm_metrics *m, const struct mg_comm_link *link,
                   mg_comm_scales *out)
{
    struct mg_comm_scale found[MOST_PLANS];
    struct plans p = {.n = 0};
    if (!mg_comm_has_ctas(r)) return;
    struct graph g = make_graph(m);
    for (uint32_t gpus = 2; gpus <= MOST_GPUS; gpus *= 2) {
        for (int i = 0; i < MG_COMM_PLACEMENT_COUNT; i++) {
            if (i == MG_COMM_CUT && (!g.n || g.n > MOST_CUT_CTAS)) continue;
            struct plan *one = &p.at[p.n++];
            *one = (struct plan){.placement = (enum mg_comm_placement)i, .gpus = gpus, .n = g.n};
            if (i == MG_COMM_CUT) one->gpu_of = find_cut(&g, gpus);
        }
    }
    place_all(&p, r);
    scale_all(r, link, &p, found);
    for (uint32_t k = 0; k < p.n; k++) {
        *mg_vec_push(out) = found[k];
        free(p.at[k].gpu_of);
    }
    free(p.first);
    free(p.gpu);
    free(g.first);
    free(g.to);
    free(g.bytes);
}
