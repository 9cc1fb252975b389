/* The figures that every output shares: coverage, opcode sums, which command this was. */
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/vec.h"
#include "report/priv.h"

const char *mg_ran_text(enum mg_ran r)
{
    static const char *const texts[] = {[MG_RAN_INSTRUMENTED] = "instrumented",
                                        [MG_RAN_NATIVE] = "native",
                                        [MG_RAN_FAILED] = "failed",
                                        [MG_RAN_UNKNOWN] = "unknown"};
    return r < MG_RAN_COUNT ? texts[r] : "rejected"; /* a coverage row of a kernel that never came to a launch */
}

uint32_t mg_timing_blocks(const struct mg_pkernel *k)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < k->n_blocks; b++) n += k->blocks[b].timing_dependent == 1;
    return n;
}

uint32_t mg_apart_blocks(const struct mg_pkernel *k)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < k->n_blocks; b++) n += k->blocks[b].apart == 1;
    return n;
}

uint32_t mg_told_apart(const struct mg_recording *p, const struct mg_pkernel *k)
{
    uint32_t n = 0;
    if (mg_has_host_times(p)) return 0;
    bool tells = mg_report_has_tool(p, "lanes") || mg_report_has_tool(p, "memory");
    for (uint32_t b = 0; b < k->n_blocks; b++)
        n += k->blocks[b].apart == 1 && k->blocks[b].threads && (tells || k->blocks[b].has_warps);
    return n;
}

bool mg_report_shows(const struct mg_report_opts *o, const struct mg_pkernel *k)
{
    if (!o || !o->kernel_glob) return true;
    return mg_name_matches(o->kernel_glob, k->name);
}

void mg_report_command(const struct mg_recording *p, const char *const **argv, uint32_t *argc, int *exit_code)
{
    *argv = NULL;
    *argc = 0;
    *exit_code = -1;
    if (p->n_runs) {
        *argv = p->runs[0].argv;
        *argc = p->runs[0].argc;
        *exit_code = p->runs[0].exit_code;
    } else if (p->n_processes) {
        *argv = p->processes[0].argv;
        *argc = p->processes[0].argc;
        *exit_code = p->processes[0].exit_code;
    }
}

/* ---- coverage ---------------------------------------------------------------------------------- */

struct keyed_row {
    struct mg_coverage_row row;
    uint64_t kernel;
};

static int by_kernel(const void *a, const void *b)
{
    const struct keyed_row *x = a, *y = b;
    if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
    if (x->row.ran != y->row.ran) return x->row.ran < y->row.ran ? -1 : 1;
    int c = strcmp(x->row.kernel, y->row.kernel);
    return c ? c : strcmp(x->row.reason, y->row.reason);
}

void mg_coverage_init(struct mg_coverage *c, const struct mg_recording *p)
{
    MG_VEC(struct keyed_row) rows = {0};
    uint64_t timed = 0, time_ns = 0, instrumented_ns = 0;
    *c = (struct mg_coverage){0};
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        c->spoilt += l->spoilt ? l->replays : 0;
        if (l->repeat) {
            c->repeats++;
            continue;
        }
        bool broken = l->ran == MG_RAN_INSTRUMENTED && !l->complete, has_end = l->why && !l->unended;
        if (broken && has_end) c->incomplete += l->replays;
        if (l->graph == MG_GRAPH_DEVICE) { /* inside the time of its parent */
            c->device_launches += l->replays;
            continue;
        }
        if (l->ran == MG_RAN_UNKNOWN)
            c->unknown += l->replays;
        else
            c->launches += l->replays;
        if (l->ran == MG_RAN_INSTRUMENTED) c->instrumented += l->replays;
        if (broken && !has_end) c->no_end += l->replays;
        if (l->ran == MG_RAN_FAILED) c->failed += l->replays;
        if (l->timed) {
            timed += l->replays;
            time_ns += l->time_ns;
            if (l->ran == MG_RAN_INSTRUMENTED) instrumented_ns += l->time_ns;
        }
        if (l->ran != MG_RAN_INSTRUMENTED)
            *mg_vec_push(&rows) = (struct keyed_row){
                {p->kernels[l->kernel].name, l->reason ? l->reason : "no reason recorded", l->replays, l->ran},
                l->kernel};
    }
    for (uint32_t i = 0; i < p->n_unknowns; i++) {
        if (p->unknowns[i].not_written)
            c->launches += p->unknowns[i].n, c->not_written += p->unknowns[i].n;
        else
            c->unknown += p->unknowns[i].n;
        *mg_vec_push(&rows) = (struct keyed_row){{p->unknowns[i].what, p->unknowns[i].reason, p->unknowns[i].n,
                                                  p->unknowns[i].n ? MG_RAN_UNKNOWN : MG_RAN_COUNT},
                                                 UINT64_MAX};
    }
    for (uint32_t i = 0; i < p->n_processes; i++) c->open += !p->processes[i].closed;
    c->empty = p->n_empty;
    c->timed = timed != 0 && c->launches;
    if (c->timed) {
        c->time_pct = time_ns ? 100.0 * (double)instrumented_ns / (double)time_ns
                              : 100.0 * (double)c->instrumented / (double)c->launches;
        c->timed_pct = 100.0 * (double)timed / (double)c->launches;
    }
    if (rows.n) qsort(rows.at, rows.n, sizeof *rows.at, by_kernel);
    c->rows = mg_xcalloc(rows.n + 1, sizeof *c->rows);
    for (uint32_t i = 0; i < rows.n; i++) {
        if (i && !by_kernel(&rows.at[i - 1], &rows.at[i]))
            c->rows[c->n_rows - 1].launches += rows.at[i].row.launches;
        else
            c->rows[c->n_rows++] = rows.at[i].row;
    }
    mg_vec_release(&rows);
}

void mg_coverage_release(struct mg_coverage *c)
{
    free(c->rows);
    *c = (struct mg_coverage){0};
}

/* ---- opcodes ----------------------------------------------------------------------------------- */

static int by_op(const void *a, const void *b)
{
    return strcmp(((const struct mg_opcount *)a)->op, ((const struct mg_opcount *)b)->op);
}

void mg_kernel_sums_init(struct mg_kernel_sums *s, const struct mg_pkernel *k)
{
    MG_VEC(struct mg_opcount) ops = {0};
    *s = (struct mg_kernel_sums){.measured = k->n_blocks != 0, .has_warps = k->n_blocks != 0};
    for (uint32_t i = 0; i < k->n_blocks; i++) {
        const struct mg_pblock *b = &k->blocks[i];
        s->measured &= b->has_threads;
        s->has_warps &= b->has_warps;
        s->thread_insts += b->threads * b->n_insts;
        s->warp_insts += b->warps * b->n_insts;
        s->thread_entries += b->threads;
        s->warp_entries += b->warps;
        for (uint32_t j = 0; j < b->n_ops; j++)
            *mg_vec_push(&ops) = (struct mg_opcount){.op = b->ops[j].op,
                                                     .threads = b->threads * b->ops[j].n,
                                                     .warps = b->warps * b->ops[j].n,
                                                     .has_warps = b->has_warps,
                                                     .guarded = b->ops[j].n_guarded && b->threads};
    }
    if (ops.n) qsort(ops.at, ops.n, sizeof *ops.at, by_op);
    for (uint32_t i = 0; i < ops.n; i++) {
        struct mg_opcount *to = s->n_ops ? &ops.at[s->n_ops - 1] : NULL;
        if (to && !strcmp(to->op, ops.at[i].op)) {
            to->threads += ops.at[i].threads;
            to->warps += ops.at[i].warps;
            to->guarded |= ops.at[i].guarded;
        } else {
            ops.at[s->n_ops++] = ops.at[i];
        }
    }
    s->ops = ops.at;
}

void mg_launch_sums_init(struct mg_kernel_sums *s, const struct mg_pkernel *k, const struct mg_plaunch *l)
{
    struct mg_pkernel one = *k;
    one.blocks = mg_xcalloc(k->n_blocks + 1, sizeof *one.blocks);
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        one.blocks[b] = k->blocks[b];
        one.blocks[b].has_threads = l->threads != NULL;
        one.blocks[b].has_warps = l->warps != NULL;
        one.blocks[b].threads = l->threads ? l->threads[b] : 0;
        one.blocks[b].warps = l->warps ? l->warps[b] : 0;
    }
    mg_kernel_sums_init(s, &one);
    free(one.blocks);
}

void mg_kernel_sums_release(struct mg_kernel_sums *s)
{
    free(s->ops);
    *s = (struct mg_kernel_sums){0};
}
