#include "study/comm_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/hash.h"
#include "study/comm_worker.h"

static const char magic[8] = "MGCPART1";
struct head {
    char magic[8];
    uint32_t crc; /* of what stands behind it */
    uint32_t sizes, n_steps, n_edges, n_spans, n_stores;
};
struct step_part { /* then `used` of its CTAs */
    uint64_t in_launch, in_launch_atomic, ambiguous, ambiguous_most, read_by_host;
    uint32_t n_ctas, zero;
};

/* Of the structures below: parts are exchanged by processes of one program alone. */
static uint32_t sizes(void)
{
    return (uint32_t)(sizeof(struct mg_comm_edge) << 20 | sizeof(struct gap_span) << 10 | sizeof(struct gap_store));
}

uint64_t mg_comm_part_of(const struct mg_comm *c)
{
    uint64_t what[] = {c->opts.entity, c->opts.match, c->opts.ranks, sizes()};
    uint64_t h = mg_hash64(what, sizeof what, 1);
    for (uint32_t i = 0; i < c->steps.n; i++) {
        const struct mg_comm_step *s = &c->steps.at[i];
        h = mg_hash64(s->total, s->n_ctas * sizeof *s->total, h);
    }
    return h;
}

static void add_list(struct mg_buf *out, const void *at, size_t bytes)
{
    if (bytes) mg_buf_add(out, at, bytes);
}

void mg_comm_part_print(struct mg_comm *c, struct mg_buf *out)
{
    const struct gap_stores *stores = comm_join_stores(c);
    struct head h = {
        .sizes = sizes(), .n_steps = c->steps.n, .n_edges = c->edges.n, .n_spans = c->spans.n, .n_stores = stores->n};
    size_t at = out->n;
    memcpy(h.magic, magic, sizeof magic);
    mg_buf_add(out, &h, sizeof h);
    for (uint32_t i = 0; i < c->steps.n; i++) {
        const struct mg_comm_step *s = &c->steps.at[i];
        const struct step_part p = {
            s->in_launch, s->in_launch_atomic, s->ambiguous, s->ambiguous_most, s->read_by_host, s->n_ctas, 0};
        mg_buf_add(out, &p, sizeof p);
        mg_buf_add(out, s->used, s->n_ctas * sizeof *s->used);
    }
    add_list(out, c->edges.at, c->edges.n * sizeof *c->edges.at);
    add_list(out, c->spans.at, c->spans.n * sizeof *c->spans.at);
    add_list(out, stores->at, stores->n * sizeof *stores->at);
    h.crc = mg_crc32c(0, out->at + at + offsetof(struct head, sizes), out->n - at - offsetof(struct head, sizes));
    memcpy(out->at + at, &h, sizeof h);
}

/* ---- adding one --------------------------------------------------------------------------------------- */

struct reading {
    const char *at;
    size_t n;
};

static const void *take(struct reading *r, size_t bytes)
{
    const char *at = r->at;
    if (bytes > r->n) return NULL;
    r->at += bytes;
    r->n -= bytes;
    return at;
}

static bool is_edge(const struct mg_comm *c, const char *at)
{
    struct mg_comm_edge e;
    struct mg_comm_result r = {.opts = c->opts};
    memcpy(&e, at, sizeof e);
    return e.source_step < c->steps.n && e.target_step < c->steps.n &&
           e.target < mg_comm_entities(&r, &c->steps.at[e.target_step]) &&
           (e.source == MG_COMM_SEVERAL || e.source < mg_comm_entities(&r, &c->steps.at[e.source_step]));
}

/* All of it is of these launches. */
static bool is_part(const struct mg_comm *c, struct reading r, const struct head *h)
{
    const char *at;
    if (memcmp(h->magic, magic, sizeof magic) || h->sizes != sizes() || h->n_steps != c->steps.n) return false;
    for (uint32_t i = 0; i < h->n_steps; i++) {
        struct step_part p;
        if (!(at = take(&r, sizeof p))) return false;
        memcpy(&p, at, sizeof p);
        if (p.n_ctas != c->steps.at[i].n_ctas || !take(&r, p.n_ctas * sizeof(struct mg_comm_volume))) return false;
    }
    for (uint32_t i = 0; i < h->n_edges; i++)
        if (!(at = take(&r, sizeof(struct mg_comm_edge))) || !is_edge(c, at)) return false;
    for (uint32_t i = 0; i < h->n_spans; i++) {
        struct gap_span s;
        if (!(at = take(&r, sizeof s))) return false;
        memcpy(&s, at, sizeof s);
        if (s.step >= c->steps.n || !s.run.n) return false;
    }
    for (uint32_t i = 0; i < h->n_stores; i++) {
        struct gap_store s;
        if (!(at = take(&r, sizeof s))) return false;
        memcpy(&s, at, sizeof s);
        if (!s.run.n) return false;
    }
    return !r.n;
}

static void add_steps(struct mg_comm *c, struct reading *r)
{
    for (uint32_t i = 0; i < c->steps.n; i++) {
        struct mg_comm_step *s = &c->steps.at[i];
        struct step_part p;
        memcpy(&p, take(r, sizeof p), sizeof p);
        s->in_launch += p.in_launch;
        s->in_launch_atomic += p.in_launch_atomic;
        s->ambiguous += p.ambiguous;
        s->ambiguous_most += p.ambiguous_most;
        s->read_by_host += p.read_by_host;
        for (uint32_t k = 0; k < s->n_ctas; k++) {
            struct mg_comm_volume v;
            memcpy(&v, take(r, sizeof v), sizeof v);
            s->used[k].load += v.load;
            s->used[k].store += v.store;
            s->used[k].atomic += v.atomic;
        }
    }
}

enum mg_err mg_comm_part_add(struct mg_comm *c, const void *bytes, size_t n, struct mg_diag *d)
{
    struct reading r = {bytes, n};
    struct head h;
    const void *at = take(&r, sizeof h);
    if (at) memcpy(&h, at, sizeof h);
    if (!at ||
        h.crc != mg_crc32c(0, (const char *)bytes + offsetof(struct head, sizes), n - offsetof(struct head, sizes)) ||
        !is_part(c, r, &h))
        return mg_diag_err(d, MG_ERR_INPUT, "what another process found is damaged, or of another trace");
    add_steps(c, &r);
    for (uint32_t i = 0; i < h.n_edges; i++)
        memcpy(mg_vec_push(&c->edges), take(&r, sizeof(struct mg_comm_edge)), sizeof(struct mg_comm_edge));
    for (uint32_t i = 0; i < h.n_spans; i++)
        memcpy(mg_vec_push(&c->spans), take(&r, sizeof(struct gap_span)), sizeof(struct gap_span));
    struct gap_stores *stores = &c->workers[0].stores;
    for (uint32_t i = 0; i < h.n_stores; i++)
        memcpy(mg_vec_push(stores), take(&r, sizeof(struct gap_store)), sizeof(struct gap_store));
    return MG_ERR_OK;
}
