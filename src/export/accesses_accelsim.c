/* Accel-Sim: kernelslist.g and a file for each launch, of memory instructions alone ("memory" form): global loads,
 * stores, atomics and each warp's exit. It drives caches and DRAM. It is no trace of a program's instructions: there
 * are no other instructions, no dependences through registers, no barriers, and cycles of a simulation of it mean
 * nothing.
 *
 * A CTA's accesses stand together, warp by warp, so a launch is read several times: once to count, then for as many
 * CTAs at a time as fit into memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "export/accelsim.h"

enum {
    WINDOW = 1 << 18, /* accesses that are held */
    MOST_CTAS = 1 << 28,
    MOST_THREADS = 1024,
    BINARY_VERSION = 80, /* whose names of instructions these are */
    TRACER_VERSION = 4,  /* lines without CTA and warp */
    FIRST_REG = 8,
    N_REGS = 64,
};

/* More than 2^64 - 1 are as many. */
static uint64_t n_ctas(const struct mg_trace_step *s)
{
    uint64_t n = (uint64_t)s->grid[0] * s->grid[1];
    return s->grid[2] && n > UINT64_MAX / s->grid[2] ? UINT64_MAX : n * s->grid[2];
}
static uint64_t n_threads(const struct mg_trace_step *s)
{
    return (uint64_t)s->block[0] * s->block[1] * s->block[2];
}

static bool has_result(const struct mg_access_site *s)
{
    return s->kind == MG_ACCESS_LOAD || (s->kind == MG_ACCESS_ATOMIC && strncmp(s->op, "red", 3));
}

static void put_opcode(struct mg_buf *out, const struct mg_access_site *s)
{
    const char *name = s->kind == MG_ACCESS_LOAD    ? "LDG.E"
                       : s->kind == MG_ACCESS_STORE ? "STG.E"
                       : has_result(s)              ? "ATOMG.E"
                                                    : "RED.E";
    mg_buf_adds(out, name);
    if (s->bytes == 1 || s->bytes == 2)
        mg_buf_printf(out, ".U%u", 8 * s->bytes);
    else if (s->bytes != 4)
        mg_buf_printf(out, ".%u", 8 * s->bytes);
}

/* One run of lanes with one stride is base and stride; else each address. */
void mg_accelsim_put_addresses(struct mg_buf *out, const struct mg_accelsim_held *h)
{
    uint32_t first = (uint32_t)__builtin_ctz(h->mask), row = h->mask >> first;
    bool run = !(row & (row + 1));
    int64_t stride = row & 2 ? (int64_t)(h->address[first + 1] - h->address[first]) : 0;
    for (uint32_t m = h->mask; run && m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        run = h->address[lane] == h->address[first] + (uint64_t)(stride * (int64_t)(lane - first));
    }
    if (run && stride >= INT32_MIN && stride <= INT32_MAX) {
        mg_buf_printf(out, " 1 0x%" PRIx64 " %" PRId64, h->address[first], stride);
        return;
    }
    mg_buf_adds(out, " 0");
    for (uint32_t m = h->mask; m; m &= m - 1) mg_buf_printf(out, " 0x%" PRIx64, h->address[__builtin_ctz(m)]);
}

static void put_access(struct mg_accelsim_writer *w, const struct mg_accelsim_held *h, struct mg_buf *out)
{
    mg_buf_printf(out, "%04x %08x ", h->site->number * MG_ACCELSIM_PC_BYTES, h->mask);
    if (has_result(h->site))
        mg_buf_printf(out, "1 R%u ", FIRST_REG + (unsigned)(w->sums->accesses % N_REGS));
    else
        mg_buf_adds(out, "0 ");
    put_opcode(out, h->site);
    mg_buf_printf(out, " 0 %u", h->site->bytes);
    mg_accelsim_put_addresses(out, h);
    mg_buf_addc(out, '\n');
    w->sums->accesses++;
    w->sums->lanes += (unsigned)__builtin_popcount(h->mask);
}

static uint32_t put_memory(struct mg_accelsim_writer *w, const struct mg_accelsim_held *h, uint32_t n, uint32_t lanes,
                           struct mg_buf *out, uint32_t *n_lines)
{
    for (uint32_t i = 0; i < n; i++) put_access(w, &h[i], out);
    *n_lines = n;
    return lanes;
}

static void put_cta(struct mg_accelsim_writer *w, const struct mg_trace_step *s, uint64_t cta,
                    const struct mg_accelsim_held *h, uint32_t n, uint32_t exit_pc)
{
    const uint32_t threads = (uint32_t)n_threads(s);
    uint32_t at[3], i = 0;
    mg_convert_cta(s, cta, at);
    fprintf(w->f, "\n#BEGIN_TB\n\nthread block = %u,%u,%u\n", at[0], at[1], at[2]);
    for (uint32_t warp = 0; warp * 32 < threads; warp++) {
        uint32_t end = i, lanes = threads - warp * 32, lines = 0;
        while (end < n && h[end].warp == warp) end++;
        w->text.n = 0;
        uint32_t left = w->put_warp(w, h + i, end - i, lanes >= 32 ? UINT32_MAX : (1u << lanes) - 1, &w->text, &lines);
        fprintf(w->f, "\nwarp = %u\ninsts = %u\n", warp, lines + (left != 0));
        fwrite(w->text.at, 1, w->text.n, w->f);
        if (left) fprintf(w->f, "%04x %08x 0 EXIT 0 0\n", exit_pc, left);
        i = end;
    }
    fputs("\n#END_TB\n", w->f);
}

static void put_head(struct mg_accelsim_writer *w, const struct mg_trace_step *s)
{
    fprintf(w->f, "-kernel name = %s\n-kernel id = %" PRIu64 "\n-grid dim = (%u,%u,%u)\n-block dim = (%u,%u,%u)\n",
            s->name, w->n_kernels, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2]);
    fprintf(w->f, "-shmem = %u\n-nregs = %u\n-binary version = %d\n-cuda stream id = %" PRIu64 "\n", s->shared_bytes,
            FIRST_REG + N_REGS, BINARY_VERSION, s->stream);
    fprintf(w->f, "-shmem base_addr = 0x0\n-local mem base_addr = 0x0\n-nvbit version = none: %s\n", w->by);
    fprintf(w->f, "-accelsim tracer version = %d\n-enable lineinfo = 0\n\n", TRACER_VERSION);
    fputs("#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [addresses]\n", w->f);
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct mg_accelsim_writer *w = arg;
    const struct mg_accelsim_held *x = a, *y = b;
    if (x->cta != y->cta) return x->cta < y->cta ? -1 : 1;
    if (x->warp != y->warp) return x->warp < y->warp ? -1 : 1;
    if (!w->instructions && x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static bool holds(const struct mg_accelsim_writer *w, const struct mg_access_site *s)
{
    return s->bytes || w->instructions;
}

/* CTAs first to last - 1, whose accesses fit. */
static void put_window(struct mg_accelsim_writer *w, const struct mg_trace_step *s, uint64_t first, uint64_t last,
                       uint32_t exit_pc)
{
    const struct mg_trace_access *x;
    w->held.n = 0;
    mg_accesses_begin(w->a, s);
    while ((x = mg_accesses_next(w->a))) {
        if (!holds(w, x->site) || x->cta < first || x->cta >= last) continue;
        struct mg_accelsim_held *h = mg_vec_push(&w->held);
        *h = (struct mg_accelsim_held){
            .cta = x->cta, .warp = x->warp, .number = x->number, .order = w->held.n, .mask = x->mask, .site = x->site};
        memcpy(h->address, x->address, sizeof h->address);
    }
    if (w->held.n) qsort_r(w->held.at, w->held.n, sizeof *w->held.at, compare, w);
    uint32_t i = 0;
    for (uint64_t cta = first; cta < last; cta++) {
        uint32_t end = i;
        while (end < w->held.n && w->held.at[end].cta == cta) end++;
        put_cta(w, s, cta, w->held.at + i, end - i, exit_pc);
        i = end;
    }
}

static enum mg_err put_kernel(struct mg_accelsim_writer *w, const struct mg_trace_step *s, struct mg_diag *d)
{
    const uint64_t ctas = n_ctas(s);
    char name[64];
    if (ctas > MOST_CTAS)
        return mg_diag_err(d, MG_ERR_LIMIT, "launch %" PRIu64 " has %" PRIu64 " CTAs, more than %d", s->launch, ctas,
                           MOST_CTAS);
    if (!n_threads(s) || n_threads(s) > MOST_THREADS || s->block[0] > MOST_THREADS || s->block[1] > MOST_THREADS ||
        s->block[2] > MOST_THREADS)
        return mg_diag_err(d, MG_ERR_INPUT, "launch %" PRIu64 " has CTAs of a size that is none", s->launch);
    uint32_t *of_cta = mg_xcalloc(ctas + 1, sizeof *of_cta), exit_pc = 0;
    const struct mg_trace_access *x;
    bool blocks = false;
    mg_accesses_begin(w->a, s);
    while ((x = mg_accesses_next(w->a))) {
        uint32_t last = x->site->number + (x->site->n_instructions ? x->site->n_instructions - 1 : 0);
        exit_pc = MG_MAX(exit_pc, last * MG_ACCELSIM_PC_BYTES);
        blocks |= x->site->kind == MG_ACCESS_BLOCK;
        if (holds(w, x->site) && x->cta < ctas) of_cta[x->cta]++;
    }
    if (w->instructions && !blocks) {
        free(of_cta);
        return mg_diag_err(d, MG_ERR_INPUT,
                           "launch %" PRIu64 " has no instructions in the trace: -t trace,instructions=on", s->launch);
    }
    snprintf(name, sizeof name, "kernel-%" PRIu64 ".traceg", ++w->n_kernels);
    struct mg_io_part part;
    enum mg_err err = mg_convert_create(&part, w->o->out, name, d);
    if (err) {
        free(of_cta);
        return err;
    }
    w->f = part.file;
    put_head(w, s);
    for (uint64_t first = 0, last; first < ctas; first = last) {
        uint64_t n = 0;
        for (last = first; last < ctas && (last == first || n + of_cta[last] <= WINDOW); last++) n += of_cta[last];
        put_window(w, s, first, last, exit_pc + MG_ACCELSIM_PC_BYTES);
    }
    free(of_cta);
    long at = ftell(w->f);
    w->sums->bytes += at > 0 ? (uint64_t)at : 0;
    fprintf(w->list, "%s\n", name);
    return mg_convert_finish(&part, MG_ERR_OK, d);
}

static enum mg_err put_step(void *user, const struct mg_trace_step *s, struct mg_diag *d)
{
    struct mg_accelsim_writer *w = user;
    if (s->kind == MG_STEP_LAUNCH && s->flags & MG_STEP_TRACED) return put_kernel(w, s, d);
    if (s->kind == MG_STEP_COPY && s->flags & MG_STEP_FROM_HOST && s->dst && !(s->flags & MG_STEP_GRAPH))
        fprintf(w->list, "MemcpyHtoD,0x%016" PRIx64 ",%" PRIu64 "\n", s->dst, s->bytes);
    return MG_ERR_OK;
}

enum mg_err mg_accelsim_write(struct mg_accelsim_writer *w, struct mg_diag *d)
{
    enum mg_err err = mg_convert_make_folder(w->o->out, d);
    struct mg_io_part list = {0};
    if (!err) err = mg_convert_create(&list, w->o->out, "kernelslist.g", d);
    w->list = list.file;
    if (!err) err = mg_convert_each(w->a, w->o, w->sums, true, put_step, w, d);
    err = mg_convert_finish(&list, err, d);
    mg_vec_release(&w->held);
    mg_buf_release(&w->text);
    return err;
}

static enum mg_err write_memory(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out,
                                struct mg_diag *d)
{
    struct mg_accelsim_writer w = {
        .a = a, .o = o, .sums = out, .put_warp = put_memory, .by = "memory accesses of Margay"};
    return mg_accelsim_write(&w, d);
}

const struct mg_convert_format mg_convert_accelsim = {
    "accelsim-memory", "Accel-Sim: memory instructions alone; caches and DRAM, no cycles", true, write_memory};
