#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "study/comm_appendix.h"
#include "study/comm_feed.h"

enum { MOST_CTAS = 1 << 27, MOST_ROWS = 1 << 24 /* of a copy */ };

struct mg_comm_feeder {
    struct mg_accesses *from;
    struct mg_comm *to;
    struct mg_comm_source *source;
    bool graph_runs; /* copies and memsets of graphs are in the trace each time they run */
    MG_VEC(struct mg_comm_access) accesses;
    MG_VEC(uint64_t) addresses;
    struct warp_at {
        uint32_t order, phase;
    } * warps; /* of the launch: where each stands */
};

bool mg_comm_note_unseen(struct mg_comm_source *s, const struct mg_trace_access *x)
{
    if (x->site->kind != MG_ACCESS_UNSEEN) return false;
    s->unseen += x->n_lanes;
    mg_names_add(s->unseen_ops, sizeof s->unseen_ops, x->site->op);
    return true;
}

void mg_comm_print_unseen(const struct mg_comm_source *s, struct mg_json *j)
{
    mg_json_key_u64(j, "unseen", s->unseen);
    mg_json_key_str(j, "unseen_ops", s->unseen_ops);
}

static int32_t stride_of(const uint64_t *address, uint32_t n)
{
    int64_t step = n > 1 ? (int64_t)(address[1] - address[0]) : 0;
    if (step <= INT32_MIN || step > INT32_MAX) return MG_COMM_LISTED;
    for (uint32_t i = 2; i < n; i++)
        if (address[i] - address[i - 1] != (uint64_t)step) return MG_COMM_LISTED;
    return (int32_t)step;
}

static void add_access(struct mg_comm_feeder *f, const struct mg_trace_access *x, struct warp_at *w)
{
    static const uint8_t kinds[] = {
        [MG_ACCESS_LOAD] = MG_COMM_LOAD, [MG_ACCESS_STORE] = MG_COMM_STORE, [MG_ACCESS_ATOMIC] = MG_COMM_ATOMIC};
    uint64_t address[32];
    uint32_t n = 0;
    for (uint32_t left = x->mask; left; left &= left - 1) address[n++] = x->address[__builtin_ctz(left)];
    if (!n || !x->site->bytes) return;
    struct mg_comm_access *a = mg_vec_push(&f->accesses);
    *a = (struct mg_comm_access){.base = address[0],
                                 .stride = stride_of(address, n),
                                 .mask = x->mask,
                                 .cta = (uint32_t)x->cta,
                                 .order = ++w->order,
                                 .phase = w->phase,
                                 .bytes = x->site->bytes,
                                 .warp = (uint16_t)x->warp,
                                 .sm = x->sm < MG_COMM_NO_SM ? (uint16_t)x->sm : (uint16_t)MG_COMM_NO_SM,
                                 .kind = kinds[x->site->kind]};
    if (a->stride != MG_COMM_LISTED) return;
    a->first = f->addresses.n;
    for (uint32_t i = 0; i < n; i++) *mg_vec_push(&f->addresses) = address[i];
}

/* Barriers order the warps of a CTA where all of them pass equally many. */
static void check_phases(struct mg_comm_feeder *f, uint64_t ctas, uint32_t warps)
{
    bool any = false;
    for (uint64_t i = 0; i < ctas * warps; i++) any |= f->warps[i].phase != 0;
    for (uint32_t i = 0; any && i < f->accesses.n; i++) {
        struct mg_comm_access *a = &f->accesses.at[i];
        const struct warp_at *w = &f->warps[(uint64_t)a->cta * warps];
        for (uint32_t k = 1; k < warps; k++)
            if (w[k].phase != w[0].phase) a->phase = 0;
    }
}

static enum mg_err feed_launch(struct mg_comm_feeder *f, const struct mg_trace_step *s, struct mg_diag *d)
{
    uint64_t ctas = (uint64_t)MG_MAX(s->grid[0], 1u) * MG_MAX(s->grid[1], 1u) * MG_MAX(s->grid[2], 1u);
    uint64_t threads = (uint64_t)MG_MAX(s->block[0], 1u) * MG_MAX(s->block[1], 1u) * MG_MAX(s->block[2], 1u);
    uint32_t warps = (uint32_t)((threads + 31) / 32);
    const struct mg_trace_access *x;
    if (ctas > MOST_CTAS || threads > 1024)
        return mg_diag_err(d, MG_ERR_LIMIT, "launch %llu: more than 2^27 CTAs, or 1024 threads a CTA",
                           (unsigned long long)s->launch);
    f->accesses.n = f->addresses.n = 0;
    f->warps = mg_xcalloc(ctas * warps, sizeof *f->warps);
    f->source->launches++;
    if (!(s->flags & MG_STEP_TRACED)) f->source->untraced++;
    mg_accesses_begin(f->from, s->flags & MG_STEP_TRACED ? s : NULL);
    while ((x = mg_accesses_next(f->from))) {
        if (x->cta >= ctas || x->warp >= warps || f->accesses.n == UINT32_MAX - 64 ||
            f->addresses.n >= UINT32_MAX - 64) {
            free(f->warps);
            return mg_diag_err(d, MG_ERR_INPUT, "launch %llu: a record of CTA %llu, warp %lu cannot be",
                               (unsigned long long)s->launch, (unsigned long long)x->cta, (unsigned long)x->warp);
        }
        struct warp_at *w = &f->warps[x->cta * warps + x->warp];
        if (mg_comm_note_unseen(f->source, x) || x->site->kind > MG_ACCESS_BARRIER) continue; /* blocks */
        if (x->site->kind == MG_ACCESS_BARRIER)
            w->phase++;
        else
            add_access(f, x, w);
    }
    check_phases(f, ctas, warps);
    free(f->warps);
    struct mg_comm_launch l = {.id = s->launch,
                               .replay = s->replay,
                               .kernel = s->name,
                               .device = s->device,
                               .context = (uint32_t)s->context,
                               .stream = (uint32_t)s->stream,
                               .accesses = f->accesses.at,
                               .n_accesses = f->accesses.n,
                               .addresses = f->addresses.at};
    memcpy(l.grid, s->grid, sizeof l.grid);
    memcpy(l.block, s->block, sizeof l.block);
    return mg_comm_add_launch(f->to, &l, d);
}

/* fn for each row of a copy's or memset's bytes. */
static void feed_rows(struct mg_comm_feeder *f, const struct mg_trace_step *s)
{
    bool whole = s->height <= 1 && s->depth <= 1;
    uint64_t rows = whole ? 1 : MG_MAX(s->height, 1u), planes = whole ? 1 : MG_MAX(s->depth, 1u),
             width = whole ? s->bytes : s->width;
    if (rows > MOST_ROWS || planes > MOST_ROWS / rows) return; /* no copy has so many */
    bool in = s->flags & MG_STEP_FROM_HOST, out = s->flags & MG_STEP_TO_HOST;
    for (uint64_t z = 0; z < planes; z++)
        for (uint64_t y = 0; y < rows; y++) {
            uint64_t dst = s->dst + z * s->dst_slice + y * s->dst_pitch,
                     src = s->src + z * s->src_slice + y * s->src_pitch;
            if (s->kind == MG_STEP_MEMSET)
                mg_comm_add_memset(f->to, dst, width);
            else if (in && out)
                continue;
            else if (in)
                mg_comm_add_copy_in(f->to, dst, width);
            else if (out)
                mg_comm_add_copy_out(f->to, src, width);
            else
                mg_comm_add_copy_within(f->to, dst, src, width);
        }
}

enum mg_err mg_comm_feeder_step(struct mg_comm_feeder *f, const struct mg_trace_step *s, struct mg_diag *d)
{
    switch (s->kind) {
    case MG_STEP_LAUNCH:
        return feed_launch(f, s, d);
    case MG_STEP_ALLOC:
        if (s->flags & (MG_STEP_MANAGED | MG_STEP_HOST_MEMORY)) f->source->host_bytes += s->bytes;
        mg_comm_add_allocation(f->to, s->dst, s->bytes);
        return MG_ERR_OK;
    case MG_STEP_FREE:
        mg_comm_add_allocation(f->to, s->dst, s->bytes);
        return MG_ERR_OK;
    case MG_STEP_COPY:
    case MG_STEP_MEMSET:
        f->graph_runs |= !strcmp(s->name, "graph");
        if (s->flags & MG_STEP_GRAPH)
            f->source->graph_copies++;
        else if (s->flags & MG_STEP_ARRAY)
            f->source->array_copies++;
        else
            feed_rows(f, s);
        return MG_ERR_OK;
    case MG_STEP_KIND_COUNT:
        break;
    }
    return MG_ERR_OK;
}

struct mg_comm_feeder *mg_comm_feeder_new(struct mg_accesses *from, struct mg_comm *to, struct mg_comm_source *out)
{
    struct mg_comm_feeder *f = mg_xcalloc(1, sizeof *f);
    f->from = from;
    f->to = to;
    f->source = out;
    memset(out, 0, sizeof *out);
    return f;
}

void mg_comm_feeder_end(struct mg_comm_feeder *f)
{
    if (!f) return;
    if (f->graph_runs) f->source->graph_copies = 0; /* what was recorded is known when it ran */
    f->source->is_partial = mg_accesses_is_partial(f->from);
    f->source->damaged = mg_accesses_damaged(f->from, NULL);
    mg_vec_release(&f->accesses);
    mg_vec_release(&f->addresses);
    free(f);
}

enum mg_err mg_comm_feed(struct mg_trace_reader *r, uint32_t file, struct mg_comm *c, struct mg_comm_source *out,
                         struct mg_diag *d)
{
    struct mg_accesses *from;
    uint64_t n = 0;
    enum mg_err err = mg_accesses_open(r, file, &from, d);
    memset(out, 0, sizeof *out);
    if (err) return err;
    struct mg_comm_feeder *f = mg_comm_feeder_new(from, c, out);
    const struct mg_trace_step *steps = mg_accesses_steps(from, &n);
    for (uint64_t i = 0; i < n && !err; i++) err = mg_comm_feeder_step(f, &steps[i], d);
    mg_comm_feeder_end(f);
    mg_accesses_close(from);
    return err;
}

/* ---- operations on addresses that communicate --------------------------------------------------------- */

static uint8_t type_of(const struct mg_access_site *site)
{
    static const char *const atomics[] = {"add", "sub", "exch", "min", "max", "inc", "dec", "cas", "and", "or", "xor"};
    if (site->kind != MG_ACCESS_ATOMIC) return site->kind == MG_ACCESS_LOAD ? 1 : 2;
    for (uint8_t i = 0; i < MG_COUNT_OF(atomics); i++) {
        const char *at = strstr(site->op, atomics[i]);
        size_t n = strlen(atomics[i]);
        if (at && at > site->op && at[-1] == '.' && (at[n] == '.' || !at[n])) return (uint8_t)(3 + i);
    }
    return 3;
}

static void add_ops(const struct mg_trace_access *x, const struct mg_comm *c, uint32_t step, mg_comm_ops *ops)
{
    for (uint32_t left = x->mask; left; left &= left - 1) {
        uint64_t address = x->address[__builtin_ctz(left)];
        if (!mg_comm_communicates(c, address, x->site->bytes)) continue;
        *mg_vec_push(ops) = (struct mg_comm_op){.address = address,
                                                .step = step,
                                                .cta = (uint32_t)x->cta,
                                                .bytes = x->site->bytes,
                                                .sm = (uint16_t)MG_MIN(x->sm, (uint32_t)MG_COMM_NO_SM),
                                                .type = type_of(x->site)};
    }
}

enum mg_err mg_comm_feed_ops(struct mg_trace_reader *r, uint32_t file, const struct mg_comm *c, mg_comm_ops *ops,
                             struct mg_diag *d)
{
    struct mg_accesses *from;
    uint64_t n = 0;
    uint32_t step = 0;
    enum mg_err err = mg_accesses_open(r, file, &from, d);
    if (err) return err;
    const struct mg_trace_step *steps = mg_accesses_steps(from, &n);
    for (uint64_t i = 0; i < n && !err; i++) {
        const struct mg_trace_access *x;
        if (steps[i].kind != MG_STEP_LAUNCH) continue;
        mg_accesses_begin(from, steps[i].flags & MG_STEP_TRACED ? &steps[i] : NULL);
        while ((x = mg_accesses_next(from)))
            if (x->site->kind < MG_ACCESS_BARRIER && ops->n < UINT32_MAX - 64) add_ops(x, c, step, ops);
        if (ops->n >= UINT32_MAX - 64)
            err = mg_diag_err(d, MG_ERR_LIMIT, "more than 2^32 operations on addresses that communicate");
        step++;
    }
    mg_accesses_close(from);
    return err;
}
