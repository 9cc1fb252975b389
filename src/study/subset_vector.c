/* Launches -> intervals -> feature vectors. */
#include "study/subset_vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

const char *const mg_interval_names[MG_INTERVAL_COUNT] = {"launch", "sync", "instructions"};

const struct mg_feature mg_features[MG_FEATURE_COUNT] = {
    /* ORDER FEATURES */
    {"KN", "kernel"},
    {"KN-ARGS", "kernel, argument values"},
    {"KN-GWS", "kernel, threads launched"},
    {"KN-ARGS-GWS", "kernel, argument values, threads launched"},
    {"KN-RW", "kernel, bytes read, bytes written"},
    {"BB", "basic block"},
    {"BB-R", "basic block, bytes it read in the launch"},
    {"BB-W", "basic block, bytes it wrote in the launch"},
    {"BB-R-W", "basic block, bytes read, bytes written"},
    {"BB-(R+W)", "basic block, bytes read and written"},
    {"BB+BYTES", "basic block; bytes read and bytes written by block beside"},
    {"BB+WARPS", "basic block; lanes of its warps beside: divergence"},
    {"OPS", "opcode class"},
};

int mg_feature_find(const char *name)
{
    for (int i = 0; i < MG_FEATURE_COUNT; i++)
        if (!strcmp(mg_features[i].name, name)) return i;
    return -1;
}

/* ---- one launch's entries ----------------------------------------------------------------------- */

static void add(struct mg_feature_values *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, double value)
{
    uint64_t words[] = {a, b, c, d};
    if (value > 0) *mg_vec_push(&e->list) = (struct mg_feature_value){mg_hash64(words, sizeof words, 7), value};
}

/* Pointers as allocation and offset, which runs agree on; all else as the bytes that were passed. */
static uint64_t key_of_arguments(const struct mg_plaunch *l)
{
    uint64_t key = 11;
    for (uint32_t i = 0; i < l->n_args; i++) {
        const struct mg_store_arg *a = &l->args[i];
        uint64_t words[] = {a->offset, a->bytes, a->allocation, a->allocation_off};
        key = mg_hash64(words, sizeof words, key);
        if (a->kind == MG_ARG_VALUE && a->value) key = mg_hash64(a->value, a->bytes, key);
    }
    return key;
}

static uint64_t key_of_threads(const struct mg_plaunch *l)
{
    uint64_t words[3];
    for (int i = 0; i < 3; i++) words[i] = (uint64_t)l->grid[i] * l->block[i];
    return mg_hash64(words, sizeof words, 13);
}

static void add_kernel_entry(struct mg_feature_values *e, const struct mg_subset_launch *x, uint64_t kernel,
                             enum mg_feature_kind f)
{
    bool args = f == MG_FEATURE_KN_ARGS || f == MG_FEATURE_KN_ARGS_GWS;
    bool gws = f == MG_FEATURE_KN_GWS || f == MG_FEATURE_KN_ARGS_GWS;
    uint64_t b = args ? key_of_arguments(x->l) : 0, c = gws ? key_of_threads(x->l) : 0, bytes = 0;
    if (f == MG_FEATURE_KN_RW) {
        uint64_t words[] = {(uint64_t)x->read_bytes, (uint64_t)x->written_bytes};
        bytes = mg_hash64(words, sizeof words, 17);
    }
    add(e, kernel, b, c, bytes, x->insts);
}

/* Which bytes are part of a block's key. */
static void bytes_in_key(enum mg_feature_kind f, double read, double written, uint64_t out[2])
{
    out[0] = f == MG_FEATURE_BB_R || f == MG_FEATURE_BB_R_W ? (uint64_t)read : 0;
    out[1] = f == MG_FEATURE_BB_W || f == MG_FEATURE_BB_R_W ? (uint64_t)written : 0;
    if (f == MG_FEATURE_BB_RW) out[0] = (uint64_t)(read + written);
}

static void add_block_entries(struct mg_feature_values *e, const struct mg_subset_program *s,
                              const struct mg_subset_launch *x, enum mg_feature_kind f)
{
    const struct mg_pkernel *k = &s->p->kernels[x->l->kernel];
    const struct mg_kernel_facts *facts = &s->kernels[x->l->kernel];
    double ops[MG_OPCLASS_COUNT] = {0};
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        double n = (double)x->l->threads[b], insts = n * k->blocks[b].n_insts;
        double read = n * facts->blocks[b].read_bytes, written = n * facts->blocks[b].written_bytes;
        uint64_t bytes[2];
        if (f == MG_FEATURE_OPS) {
            for (int c = 0; c < MG_OPCLASS_COUNT; c++) ops[c] += n * facts->blocks[b].ops[c];
            continue;
        }
        bytes_in_key(f, read, written, bytes);
        add(e, facts->key, b + 1, bytes[0], bytes[1], insts);
        if (f == MG_FEATURE_BB_AND_BYTES) { /* in words, the size of what most instructions move */
            add(e, facts->key, b + 1, 1, UINT64_MAX, read / 4);
            add(e, facts->key, b + 1, 2, UINT64_MAX, written / 4);
        }
        if (f == MG_FEATURE_BB_AND_WARPS && x->l->warps)
            add(e, facts->key, b + 1, 3, UINT64_MAX, 32.0 * (double)x->l->warps[b] * k->blocks[b].n_insts);
    }
    for (int c = 0; c < MG_OPCLASS_COUNT; c++) add(e, 19, (uint64_t)c, 0, 0, ops[c]);
}

/* ---- intervals ------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct mg_feature_value *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

void mg_vector_store(struct mg_vectors *v, struct mg_feature_values *e, struct mg_vector *out)
{
    uint32_t n = 0;
    if (e->list.n) qsort(e->list.at, e->list.n, sizeof *e->list.at, by_key);
    for (uint32_t i = 0; i < e->list.n; i++) {
        if (n && e->list.at[n - 1].key == e->list.at[i].key)
            e->list.at[n - 1].value += e->list.at[i].value;
        else
            e->list.at[n++] = e->list.at[i];
    }
    out->n = n;
    out->keys = mg_arena_array(&v->arena, uint64_t, n + 1);
    out->values = mg_arena_array(&v->arena, double, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        out->keys[i] = e->list.at[i].key;
        out->values[i] = e->list.at[i].value;
        out->sum += e->list.at[i].value;
    }
    e->list.n = 0;
}

static bool begins(const struct mg_subset_program *s, const struct mg_interval *now, const struct mg_subset_launch *x,
                   enum mg_interval_kind kind, double interval_insts)
{
    const struct mg_subset_launch *last = &s->launches[now->last];
    if (kind == MG_INTERVAL_LAUNCH || last->l->process != x->l->process || last->epoch != x->epoch) return true;
    return kind == MG_INTERVAL_INSTRUCTIONS && now->insts + x->insts / 2 > interval_insts;
}

static void extend(struct mg_interval *now, const struct mg_subset_program *s, uint64_t at)
{
    const struct mg_subset_launch *x = &s->launches[at];
    for (uint32_t b = 0; b < s->p->kernels[x->l->kernel].n_blocks; b++)
        for (int c = 0; c < MG_OPCLASS_COUNT; c++)
            now->ops[c] += (double)x->l->threads[b] * s->kernels[x->l->kernel].blocks[b].ops[c];
    now->last = at;
    now->n_launches++;
    now->insts += x->insts;
    now->warp_insts += x->warp_insts;
    now->time_ns += x->time_ns;
    now->ctas += mg_launch_ctas(x->l);
}

/* Of each interval its time in each run that the times are joined from. */
static void add_run_times(struct mg_vectors *v, const struct mg_subset_program *s)
{
    const struct mg_subset_trials *t = &s->trials;
    if (isnan(v->time_ns)) return;
    v->n_runs = MG_MAX(t->n, 1u);
    v->least = t->least;
    v->run_times = mg_arena_array(&v->arena, double, (size_t)v->n * v->n_runs);
    for (uint32_t i = 0; i < v->n; i++)
        for (uint64_t j = v->intervals[i].member; j < v->intervals[i].member + v->intervals[i].n_launches; j++)
            for (uint32_t r = 0; r < v->n_runs; r++)
                v->run_times[(size_t)i * v->n_runs + r] +=
                    t->n ? t->times[v->members[j] * t->cap + r] : s->launches[v->members[j]].time_ns;
}

enum mg_err mg_vectors_init(struct mg_vectors *v, const struct mg_subset_program *s, enum mg_interval_kind kind,
                            enum mg_feature_kind feature, double interval_insts, struct mg_diag *d)
{
    struct mg_feature_values e = {0};
    uint32_t n = 0;
    *v = (struct mg_vectors){0};
    if (!s->n_counted)
        return mg_diag_err(d, MG_ERR_INPUT,
                           "%s: no launch has counts: record it with -t blocks, without scope=", s->dir);
    if (kind == MG_INTERVAL_SYNC && !s->has_epochs)
        return mg_diag_err(d, MG_ERR_INPUT, "%s: its synchronising calls are not known, %s", s->dir, s->why_no_epochs);
    if (s->n_counted > UINT32_MAX / 2) return mg_diag_err(d, MG_ERR_LIMIT, "%s: too many launches", s->dir);
    v->intervals = mg_arena_array(&v->arena, struct mg_interval, s->n_counted);
    v->vectors = mg_arena_array(&v->arena, struct mg_vector, s->n_counted);
    v->members = mg_arena_array(&v->arena, uint64_t, s->n_counted);
    for (uint64_t i = 0; i < s->n_launches; i++) {
        const struct mg_subset_launch *x = &s->launches[i];
        if (isnan(x->insts)) continue;
        if (!n || begins(s, &v->intervals[n - 1], x, kind, interval_insts)) {
            if (n) mg_vector_store(v, &e, &v->vectors[n - 1]);
            v->intervals[n++] = (struct mg_interval){.first = i,
                                                     .member = v->n_launches,
                                                     .kernel = x->l->kernel,
                                                     .kernel_key = s->kernels[x->l->kernel].key,
                                                     .shape_key = mg_hash64(x->l->block, sizeof x->l->block, 23)};
        }
        extend(&v->intervals[n - 1], s, i);
        if (feature <= MG_FEATURE_KN_RW)
            add_kernel_entry(&e, x, s->kernels[x->l->kernel].key, feature);
        else
            add_block_entries(&e, s, x, feature);
        v->insts += x->insts;
        v->time_ns += x->time_ns;
        v->members[v->n_launches++] = i;
    }
    mg_vector_store(v, &e, &v->vectors[n - 1]);
    v->n = n;
    add_run_times(v, s);
    mg_vec_release(&e.list);
    return MG_ERR_OK;
}

void mg_vectors_release(struct mg_vectors *v)
{
    mg_arena_release(&v->arena);
}
