/* Profile -> sequence of launches with counts, bytes, times and synchronising calls. */
#include "study/subset_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cu.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "isa/isa.h"
#include "span/span.h"
#include "study/subset_noise.h"

static const char *const names[] = {/* ORDER OPCLASSES */
                                    "integer",       "float",       "double",       "special",       "matrix",
                                    "move",          "control",     "barrier",      "global_load",   "global_store",
                                    "global_atomic", "shared_load", "shared_store", "shared_atomic", "local_load",
                                    "local_store",   "constant",    "texture",      "other"};
_Static_assert(MG_COUNT_OF(names) == MG_OPCLASS_COUNT, "ORDER OPCLASSES");

const char *mg_opclass_name(enum mg_opclass c)
{
    return names[c];
}

/* ---- what one instruction is -------------------------------------------------------------------- */

static bool is_special(const struct mg_form *f)
{
    switch (f->op) {
    case MG_OP_sin:
    case MG_OP_cos:
    case MG_OP_ex2:
    case MG_OP_lg2:
    case MG_OP_rcp:
    case MG_OP_rsqrt:
    case MG_OP_sqrt:
    case MG_OP_tanh:
    case MG_OP_div:
    case MG_OP_rem:
        return true;
    default:
        return false;
    }
}

static enum mg_opclass class_of_access(const struct mg_form *f)
{
    bool atomic = f->op_flags & MG_OPF_ATOMIC, writes = !(f->op_flags & MG_OPF_READS);
    switch (f->space) {
    case MG_SPACE_shared:
        return atomic ? MG_OPCLASS_SHARED_ATOMIC : writes ? MG_OPCLASS_SHARED_STORE : MG_OPCLASS_SHARED_LOAD;
    case MG_SPACE_local:
        return writes ? MG_OPCLASS_LOCAL_STORE : MG_OPCLASS_LOCAL_LOAD;
    case MG_SPACE_param:
    case MG_SPACE_const:
        return MG_OPCLASS_CONSTANT;
    default:
        return atomic ? MG_OPCLASS_GLOBAL_ATOMIC : writes ? MG_OPCLASS_GLOBAL_STORE : MG_OPCLASS_GLOBAL_LOAD;
    }
}

static enum mg_opclass class_of(const struct mg_form *f)
{
    switch (f->op) {
    case MG_OP_mma:
    case MG_OP_wmma:
    case MG_OP_wgmma:
    case MG_OP_tcgen05:
        return MG_OPCLASS_MATRIX;
    case MG_OP_mov:
    case MG_OP_cvt:
    case MG_OP_cvta:
    case MG_OP_selp:
    case MG_OP_shfl:
    case MG_OP_prmt:
        return MG_OPCLASS_MOVE;
    case MG_OP_bra:
    case MG_OP_brx:
    case MG_OP_call:
    case MG_OP_ret:
    case MG_OP_exit:
    case MG_OP_trap:
        return MG_OPCLASS_CONTROL;
    case MG_OP_tex:
    case MG_OP_tld4:
    case MG_OP_suld:
    case MG_OP_sust:
    case MG_OP_sured:
        return MG_OPCLASS_TEXTURE;
    case MG_OP_ld:
    case MG_OP_ldu:
    case MG_OP_st:
    case MG_OP_atom:
    case MG_OP_red:
        return class_of_access(f);
    case MG_OP_cp:
        return mg_form_has(f, MG_MOD_async) ? MG_OPCLASS_GLOBAL_LOAD : MG_OPCLASS_OTHER;
    default:
        break;
    }
    if (f->op_flags & MG_OPF_BARRIER) return MG_OPCLASS_BARRIER;
    if (f->op == MG_OP_none || (f->op_flags & (MG_OPF_READS | MG_OPF_WRITES | MG_OPF_CONVERGENT)))
        return MG_OPCLASS_OTHER;
    enum mg_type t = f->n_types ? (enum mg_type)f->types[f->n_types - 1] : MG_TYPE_none;
    bool real = mg_type_kind(t) == MG_TK_FLOAT;
    if (is_special(f)) return MG_OPCLASS_SPECIAL;
    if (real) return mg_type_bits(t) == 64 ? MG_OPCLASS_DOUBLE : MG_OPCLASS_FLOAT;
    return MG_OPCLASS_INTEGER;
}

/* Bytes that loads, stores and atomics of global, generic and local memory move. */
static void add_bytes(const struct mg_form *f, double times, struct mg_block_facts *b)
{
    bool plain =
        f->op == MG_OP_ld || f->op == MG_OP_ldu || f->op == MG_OP_st || f->op == MG_OP_atom || f->op == MG_OP_red;
    bool far = f->space == MG_SPACE_generic || f->space == MG_SPACE_global || f->space == MG_SPACE_local;
    if (!plain || !far || !f->n_types) return;
    double bytes = times * (mg_type_bits((enum mg_type)f->types[f->n_types - 1]) / 8) * (f->vec ? f->vec : 1);
    if (f->op != MG_OP_st) b->read_bytes += bytes;
    if (f->op == MG_OP_st || (f->op_flags & MG_OPF_ATOMIC)) b->written_bytes += bytes;
}

static void look_at_kernel(struct mg_subset_program *s, const struct mg_pkernel *k, struct mg_kernel_facts *facts)
{
    facts->key = mg_hash64(k->name, strlen(k->name), mg_hash64(k->module, strlen(k->module), 1));
    facts->blocks = mg_arena_array(&s->arena, struct mg_block_facts, k->n_blocks + 1);
    for (uint32_t i = 0; i < k->n_blocks; i++)
        for (uint32_t j = 0; j < k->blocks[i].n_ops; j++) {
            const struct mg_site_op *op = &k->blocks[i].ops[j];
            struct mg_form f = {0};
            mg_form_parse(&f, op->op, strlen(op->op));
            facts->blocks[i].ops[class_of(&f)] += op->n;
            add_bytes(&f, op->n, &facts->blocks[i]);
        }
}

/* ---- launches ------------------------------------------------------------------------------------ */

static void look_at_launch(struct mg_subset_program *s, const struct mg_plaunch *l, struct mg_subset_launch *out)
{
    const struct mg_pkernel *k = &s->p->kernels[l->kernel];
    bool counted = l->threads && l->complete && l->n_counts >= k->n_blocks && k->n_blocks;
    *out = (struct mg_subset_launch){.l = l,
                                     .insts = NAN,
                                     .warp_insts = NAN,
                                     .time_ns = NAN,
                                     .plain_call = !l->cooperative && !l->graph && l->cluster[0] <= 1};
    if (l->timed && l->complete) {
        out->time_ns = (double)l->time_ns;
        s->n_timed++;
        if (l->ran == MG_RAN_INSTRUMENTED) s->native_times = false;
    }
    if (!counted || s->p->processes[l->process].scope != MG_COUNT_FULL) return;
    out->insts = 0;
    if (l->warps) out->warp_insts = 0;
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        const struct mg_block_facts *f = &s->kernels[l->kernel].blocks[b];
        double n = (double)l->threads[b];
        out->insts += n * k->blocks[b].n_insts;
        out->read_bytes += n * f->read_bytes;
        out->written_bytes += n * f->written_bytes;
        if (l->warps) out->warp_insts += (double)l->warps[b] * k->blocks[b].n_insts;
    }
    if (out->insts <= 0)
        out->insts = NAN;
    else
        s->n_counted++;
}

/* ---- synchronising calls, from the time line ------------------------------------------------------- */

struct call_epoch {
    uint32_t pid, thread;
    uint64_t launch, epoch, time_ns; /* 0: of no better source than the profile's */
    uint64_t correlation;
    bool plain;
};
struct epochs {
    struct mg_map calls, of_call; /* pid -> synchronising calls so far; pid and correlation -> 2 * epoch + plain */
    struct mg_map thread_of;      /* pid and correlation -> thread */
    MG_VEC(struct call_epoch) found;
};

static uint64_t call_key(uint32_t pid, uint64_t correlation)
{
    return mg_mix64(correlation) ^ pid;
}

/* One of GT-Pin's seven: calls.def says which call of CUDA stands for which. */
static bool is_synchronising(const struct mg_span *x)
{
    int entry = x->layer == MG_LAYER_driver ? mg_cu_entry_find(x->name) : -1;
    const struct mg_cu_call *c = entry < 0 ? NULL : mg_call_of_entry((uint32_t)entry);
    return c && *c->opencl;
}

static void read_epochs(struct mg_spans *spans, struct epochs *e)
{
    const struct mg_span *x;
    while ((x = mg_spans_next(spans))) {
        uint64_t so_far = 0;
        mg_map_get(&e->calls, x->process, &so_far);
        if (x->kind == MG_SPAN_CALL) {
            if (is_synchronising(x)) mg_map_set(&e->calls, x->process, so_far + 1);
            mg_map_set(&e->of_call, call_key(x->process, x->correlation),
                       2 * so_far + !strcmp(x->name, "cuLaunchKernel"));
            mg_map_set(&e->thread_of, call_key(x->process, x->correlation), x->thread);
        } else if (x->kind == MG_SPAN_KERNEL && x->launch != MG_SPAN_NONE &&
                   (x->replay == MG_SPAN_NONE || !x->replay)) {
            uint64_t time_ns = x->source == MG_SOURCE_cupti ? x->end_ns - x->begin_ns : 0;
            *mg_vec_push(&e->found) = (struct call_epoch){.pid = x->process,
                                                          .launch = x->launch,
                                                          .epoch = so_far,
                                                          .time_ns = time_ns,
                                                          .correlation = x->correlation};
        }
    }
    for (uint32_t i = 0; i < e->found.n; i++) { /* a kernel of unknown time may stand in front of its call */
        struct call_epoch *c = &e->found.at[i];
        uint64_t call = 2 * c->epoch, thread = 0;
        mg_map_get(&e->of_call, call_key(c->pid, c->correlation), &call);
        mg_map_get(&e->thread_of, call_key(c->pid, c->correlation), &thread);
        c->thread = (uint32_t)thread;
        c->epoch = call / 2;
        c->plain = call % 2;
    }
}

static int by_launch(const void *a, const void *b)
{
    const struct call_epoch *x = a, *y = b;
    if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
    return x->launch < y->launch ? -1 : x->launch > y->launch;
}

/* CUPTI's times are those of the device alone; distances of events hold what the host did between these, too. */
static void give_time(struct mg_subset_program *s, struct mg_subset_launch *x, uint64_t time_ns)
{
    s->n_timed += isnan(x->time_ns);
    x->time_ns = (double)time_ns;
    if (x->l->ran == MG_RAN_INSTRUMENTED) s->native_times = false;
}

/* Launches of a process and those of its time line, both in order, are the same ones where there are as many. */
static bool give_epochs(struct mg_subset_program *s, struct epochs *e)
{
    uint32_t n = 0;
    if (e->found.n) qsort(e->found.at, e->found.n, sizeof *e->found.at, by_launch);
    for (uint32_t i = 0; i < e->found.n; i++)
        if (!i || by_launch(&e->found.at[i - 1], &e->found.at[i])) e->found.at[n++] = e->found.at[i];
    for (uint64_t i = 0; i < s->n_launches;) {
        uint32_t process = s->launches[i].l->process, pid = s->p->processes[process].pid, at = 0;
        while (at < n && e->found.at[at].pid != pid) at++;
        for (; i < s->n_launches && s->launches[i].l->process == process; i++, at++) {
            if (at >= n || e->found.at[at].pid != pid) return false;
            s->launches[i].epoch = e->found.at[at].epoch;
            s->launches[i].plain_call = e->found.at[at].plain;
            s->launches[i].thread = e->found.at[at].thread;
            if (e->found.at[at].time_ns) give_time(s, &s->launches[i], e->found.at[at].time_ns);
        }
        if (at < n && e->found.at[at].pid == pid) return false;
    }
    return true;
}

static void find_epochs(struct mg_subset_program *s)
{
    struct mg_span_query q = {.size = sizeof q, .kinds = 1u << MG_SPAN_CALL | 1u << MG_SPAN_KERNEL};
    struct mg_spans *spans;
    struct epochs e = {0};
    struct mg_diag d = MG_DIAG_INIT;
    s->why_no_epochs = "it has no time line: run with -t blocks -t timeline";
    if (!mg_spans_open(s->dir, &q, &spans, &d)) {
        if (mg_spans_n_processes(spans)) {
            read_epochs(spans, &e);
            s->has_epochs = give_epochs(s, &e);
            for (uint64_t i = 0; !s->has_epochs && i < s->n_launches; i++)
                s->launches[i].epoch = s->launches[i].thread = 0;
            s->why_no_epochs = "its time line does not have every launch of the profile";
        }
        mg_spans_close(spans);
    }
    mg_diag_release(&d);
    mg_map_release(&e.calls);
    mg_map_release(&e.of_call);
    mg_map_release(&e.thread_of);
    mg_vec_release(&e.found);
}

/* ---- opening ----------------------------------------------------------------------------- */

enum mg_err mg_subset_program_open(const char *dir, struct mg_subset_program **out, struct mg_diag *d)
{
    struct mg_recording *p;
    enum mg_err err = mg_recording_open(dir, &p, d);
    if (err) return err;
    struct mg_subset_program *s = mg_xcalloc(1, sizeof *s);
    s->p = p;
    s->dir = mg_arena_printf(&s->arena, "%s", dir);
    s->native_times = true;
    s->kernels = mg_arena_array(&s->arena, struct mg_kernel_facts, p->n_kernels + 1);
    for (uint32_t i = 0; i < p->n_kernels; i++) look_at_kernel(s, &p->kernels[i], &s->kernels[i]);
    s->launches = mg_arena_array(&s->arena, struct mg_subset_launch, p->n_launches + 1);
    for (uint64_t i = 0; i < p->n_launches; i++)
        if (!p->launches[i].repeat) look_at_launch(s, &p->launches[i], &s->launches[s->n_launches++]);
    if (p->n_damaged)
        err = mg_diag_err(d, MG_ERR_INPUT, "%s", p->damaged[0]);
    else if (!s->n_launches)
        err = mg_diag_err(d, MG_ERR_INPUT, "%s: it has no launches", dir);
    if (err) {
        mg_subset_program_free(s);
        return err;
    }
    find_epochs(s);
    *out = s;
    return MG_ERR_OK;
}

void mg_subset_program_free(struct mg_subset_program *s)
{
    if (!s) return;
    mg_recording_free(s->p);
    mg_arena_release(&s->arena);
    free(s->trials.times);
    free(s);
}

void mg_subset_program_times(struct mg_subset_program *s, struct mg_subset_program *from)
{
    for (uint64_t i = 0; i < s->n_launches; i++) s->launches[i].time_ns = from->launches[i].time_ns;
    s->n_timed = from->n_timed;
    s->native_times = from->native_times;
    free(s->trials.times);
    s->trials = from->trials;
    from->trials = (struct mg_subset_trials){0};
}

/* ---- trials ------------------------------------------------------------------------------------------- */

enum mg_err mg_subset_trials_init(struct mg_subset_trials *t, const struct mg_subset_program *s, uint32_t runs,
                                  struct mg_diag *d)
{
    if (runs > MG_JOINED_MOST)
        return mg_diag_err(d, MG_ERR_LIMIT, "%s: more than %d runs of one kind", s->dir, MG_JOINED_MOST);
    *t = (struct mg_subset_trials){.times = mg_xcalloc(s->n_launches * runs + 1, sizeof(double)), .cap = runs};
    return MG_ERR_OK;
}

void mg_subset_trials_add(struct mg_subset_trials *t, const struct mg_subset_program *run)
{
    mg_assert(t->n < t->cap);
    for (uint64_t i = 0; i < run->n_launches; i++) t->times[i * t->cap + t->n] = run->launches[i].time_ns;
    t->n++;
}

void mg_subset_trials_end(struct mg_subset_trials *t, bool least, struct mg_subset_program *s)
{
    double *times = mg_xcalloc(t->n + 1, sizeof *times);
    s->n_timed = 0;
    for (uint64_t i = 0; i < s->n_launches; i++) {
        memcpy(times, t->times + i * t->cap, t->n * sizeof *times);
        s->launches[i].time_ns = mg_join_times(times, t->n, least);
        s->n_timed += !isnan(s->launches[i].time_ns);
    }
    free(times);
    s->trials = *t;
    s->trials.least = least;
    *t = (struct mg_subset_trials){0};
}
