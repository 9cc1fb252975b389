#include <stdlib.h>
#include <string.h>

#include "study/comm_appendix.h"
#include "study/nest.h"

/* ---- volumes ------------------------------------------------------------------------------------------ */

enum level { BY_KERNEL, BY_CTA, BY_SM };

static void print_volume(struct mg_nest *n, struct mg_comm_volume v)
{
    mg_nest_dict(n);
    mg_nest_pair(n, "Load", v.load);
    mg_nest_pair(n, "Store", v.store);
    mg_nest_pair(n, "Atomic", v.atomic);
    mg_nest_close_dict(n);
}

static void print_step(struct mg_nest *n, const struct mg_comm_step *s, enum level level, bool used)
{
    const struct mg_comm_volume *v = used ? s->used : s->total;
    uint32_t m = level == BY_SM ? mg_comm_n_sms(s) : s->n_ctas;
    if (level == BY_KERNEL) {
        print_volume(n, mg_comm_sum(v, s->n_ctas));
        return;
    }
    struct mg_comm_volume *by_sm = mg_xcalloc(m + 1, sizeof *by_sm);
    if (level == BY_SM) mg_comm_sum_sms(s, v, by_sm, m);
    mg_nest_dict(n);
    for (uint32_t i = 0; i < m; i++) {
        mg_nest_key_u64(n, i);
        print_volume(n, level == BY_SM ? by_sm[i] : v[i]);
    }
    mg_nest_close_dict(n);
    free(by_sm);
}

static void print_set(struct mg_nest *n, const struct mg_comm_result *r, const char *name, enum level level, bool used)
{
    mg_nest_key(n, name);
    mg_nest_dict(n);
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        mg_nest_key(n, r->kernels[k]);
        mg_nest_dict(n);
        for (uint32_t i = 0; i < r->n_steps; i++) {
            if (r->steps[i].kernel != k) continue;
            mg_nest_key_u64(n, r->steps[i].superstep);
            print_step(n, &r->steps[i], level, used);
        }
        mg_nest_close_dict(n);
    }
    mg_nest_close_dict(n);
}

/* ---- transfers ---------------------------------------------------------------------------------------- */

enum { PARTS = 6 }; /* source kernel, CTA, superstep, target kernel, CTA, superstep */
struct path {
    uint32_t part[PARTS];
    uint64_t size, count;
};

static int by_path(const void *a, const void *b)
{
    const struct path *x = a, *y = b;
    for (int i = 0; i < PARTS; i++)
        if (x->part[i] != y->part[i]) return x->part[i] < y->part[i] ? -1 : 1;
    return 0;
}

static struct path *make_paths(const struct mg_comm_result *r, uint32_t *n)
{
    struct path *paths = mg_xmalloc((r->n_edges + 1) * sizeof *paths);
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        const struct mg_comm_step *a = &r->steps[e->source_step], *b = &r->steps[e->target_step];
        paths[i] =
            (struct path){{a->kernel, e->source, a->superstep, b->kernel, e->target, b->superstep}, e->bytes, e->reads};
    }
    qsort(paths, r->n_edges, sizeof *paths, by_path);
    *n = 0;
    for (uint32_t i = 0; i < r->n_edges; i++) { /* of several streams */
        if (*n && !by_path(&paths[*n - 1], &paths[i])) {
            paths[*n - 1].size += paths[i].size;
            paths[*n - 1].count += paths[i].count;
        } else {
            paths[(*n)++] = paths[i];
        }
    }
    return paths;
}

static void open_part(struct mg_nest *n, const struct mg_comm_result *r, const struct path *p, int part)
{
    if (part % 3 == 0)
        mg_nest_key(n, r->kernels[p->part[part]]);
    else if (p->part[part] == MG_COMM_SEVERAL)
        mg_nest_key(n, "several");
    else
        mg_nest_key_u64(n, p->part[part]);
    mg_nest_dict(n);
}

static void print_transfers(struct mg_nest *n, const struct mg_comm_result *r)
{
    uint32_t count, depth = 0;
    struct path *p = make_paths(r, &count);
    mg_nest_dict(n);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t same = 0;
        while (i && same < depth && p[i].part[same] == p[i - 1].part[same]) same++;
        for (; depth > same; depth--) mg_nest_close_dict(n);
        for (; depth < PARTS; depth++) open_part(n, r, &p[i], (int)depth);
        mg_nest_pair(n, "Size", p[i].size);
        mg_nest_pair(n, "cnt", p[i].count);
    }
    for (; depth; depth--) mg_nest_close_dict(n);
    mg_nest_close_dict(n);
    free(p);
}

/* ---- addresses ---------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct mg_comm_op *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    if (x->cta != y->cta) return x->cta < y->cta ? -1 : 1;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static void print_addresses(struct mg_nest *n, const struct mg_comm_result *r, mg_comm_ops *ops)
{
    if (ops->n) qsort(ops->at, ops->n, sizeof *ops->at, by_address);
    mg_nest_dict(n);
    for (uint32_t i = 0; i < ops->n; i++) {
        const struct mg_comm_op *o = &ops->at[i];
        const struct mg_comm_step *s = &r->steps[o->step];
        if (!i || ops->at[i - 1].address != o->address) {
            if (i) mg_nest_close_list(n);
            mg_nest_key_u64(n, o->address);
            mg_nest_list(n);
        }
        mg_nest_dict(n);
        mg_nest_key(n, "kernel");
        mg_nest_text(n, r->kernels[s->kernel]);
        mg_nest_pair(n, "it", s->superstep);
        mg_nest_pair(n, "cta", o->cta);
        mg_nest_pair(n, "addr", o->address);
        mg_nest_pair(n, "smid", o->sm);
        mg_nest_pair(n, "size", o->bytes);
        mg_nest_pair(n, "type", o->type);
        mg_nest_close_dict(n);
    }
    if (ops->n) mg_nest_close_list(n);
    mg_nest_close_dict(n);
}

static void print_volumes(struct mg_nest *n, const struct mg_comm_result *r)
{
    mg_nest_dict(n);
    print_set(n, r, "KCV", BY_KERNEL, true);
    print_set(n, r, "KDV", BY_KERNEL, false);
    print_set(n, r, "CCV", BY_CTA, true);
    print_set(n, r, "CDV", BY_CTA, false);
    print_set(n, r, "SCV", BY_SM, true);
    print_set(n, r, "SDV", BY_SM, false);
    mg_nest_close_dict(n);
}

void mg_comm_print_appendix(const struct mg_comm_study *s, mg_comm_ops *ops, bool pickle, struct mg_buf *out)
{
    struct mg_nest n;
    mg_nest_begin(&n, out, pickle);
    if (!pickle) {
        mg_nest_dict(&n);
        mg_nest_key(&n, "volumes");
    }
    print_volumes(&n, s->r);
    if (!pickle)
        mg_nest_key(&n, "transfers");
    else
        mg_nest_end(&n), mg_nest_begin(&n, out, pickle);
    print_transfers(&n, s->r);
    if (!pickle)
        mg_nest_key(&n, "addresses");
    else
        mg_nest_end(&n), mg_nest_begin(&n, out, pickle);
    print_addresses(&n, s->r, ops);
    if (!pickle) mg_nest_close_dict(&n);
    mg_nest_end(&n);
}
