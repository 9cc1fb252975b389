/* The report for people: hottest kernels, and of the hottest their blocks with source lines, their
 * opcodes by kind, and how many lanes were in use; coverage last. Shares are of thread instructions. */
#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"
#include "report/advice/advice.h"
#include "report/lines.h"
#include "report/priv.h"
#include "store/sample.h"

#define TOP_KERNELS  10
#define TOP_DETAILS  3
#define TOP_FINDINGS 10
#define TOP_ROWS     8
#define CHECKED_ROWS 20
#define BAR_WIDTH    24
#define LEAST_PLACE  22u

struct view { /* the report being written */
    const struct mg_recording *p;
    const struct mg_report_opts *o;
    struct mg_buf *out;
    struct mg_sources *sources;
    struct mg_lines *modules;
    struct mg_findings findings; /* none where one tool alone is shown */
    uint32_t columns, rows;
};

static void trim_line(struct mg_buf *out)
{
    while (out->n && out->at[out->n - 1] == ' ') out->at[--out->n] = 0;
    mg_buf_addc(out, '\n');
}

static void heading(struct view *v, const char *text)
{
    mg_buf_printf(v->out, v->o->color ? "\033[1m%s\033[0m\n" : "%s\n", text);
}

/* Two modules have a kernel of this name. */
static bool is_ambiguous(const struct mg_recording *p, const struct mg_pkernel *k)
{
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (i != k->id && !strcmp(p->kernels[i].demangled, k->demangled)) return true;
    return false;
}

static void add_title(struct view *v, const struct mg_pkernel *k, uint32_t width)
{
    bool ambiguous = is_ambiguous(v->p, k);
    struct mg_buf name = MG_BUF_INIT;
    uint32_t room = ambiguous ? width - 11 : width;
    mg_add_kernel_name(&name, v->p, k, room);
    mg_add_left(v->out, name.n ? name.at : "", room);
    mg_buf_release(&name);
    if (ambiguous) mg_buf_printf(v->out, " [%.8s]", k->module);
}

static void bar_cell(struct view *v, double share)
{
    size_t cells = 0, from = v->out->n;
    mg_add_bar(v->out, share, BAR_WIDTH, v->o->ascii);
    for (size_t c = from; c < v->out->n; c++) cells += (v->out->at[c] & 0xc0) != 0x80; /* characters, not bytes */
    for (; cells <= BAR_WIDTH; cells++) mg_buf_addc(v->out, ' ');
}

static void write_title(struct view *v)
{
    const char *const *argv;
    uint32_t argc;
    int exit_code;
    struct mg_buf line = MG_BUF_INIT;
    mg_report_command(v->p, &argv, &argc, &exit_code);
    for (uint32_t i = 0; i < argc; i++) mg_buf_printf(&line, "%s%s", i ? " " : "", argv[i]);
    heading(v, line.n ? line.at : "(no command recorded)");
    mg_buf_release(&line);
    if (v->p->n_processes) {
        const struct mg_pprocess *q = &v->p->processes[0];
        if (mg_has_host_times(v->p))
            mg_buf_printf(v->out, "on the %s as an %s of %u SMs: counts are its, times are the host's",
                          strcmp(q->device_kind, "emu") ? "CPU" : "emulator", q->device_name, q->sms);
        else
            mg_buf_printf(v->out, "on %s: %s, %u SMs", q->device_kind, q->device_name, q->sms);
    } else {
        mg_buf_adds(v->out, v->p->n_empty ? "CUDA was used, but nothing could be recorded" : "no CUDA call was made");
    }
    if (v->p->n_processes > 1) mg_buf_printf(v->out, "; %u processes", v->p->n_processes);
    if (exit_code >= 0) mg_buf_printf(v->out, "; exit status %d", exit_code);
    mg_buf_addc(v->out, '\n');
    for (uint32_t i = 0; i < v->p->n_processes; i++)
        if (!v->p->processes[i].closed)
            mg_buf_printf(v->out, "process %u has not ended: it runs still, or was killed\n", v->p->processes[i].pid);
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

static void write_kernels(struct view *v, const struct mg_hot_kernel *hot, uint32_t n, double total)
{
    uint32_t shown = MG_MIN(n, v->o->top ? v->o->top : TOP_KERNELS);
    struct mg_buf time = MG_BUF_INIT;
    mg_buf_addc(v->out, '\n');
    heading(v, mg_has_host_times(v->p)
                   ? "of instr  launches   thread instructions     warp instructions    lanes host time  kernel"
                   : "of instr  launches   thread instructions     warp instructions    lanes      time  kernel");
    for (uint32_t i = 0; i < shown; i++) {
        const struct mg_pkernel *k = hot[i].k;
        const struct mg_kernel_sums *s = &hot[i].s;
        if (s->measured && total > 0)
            mg_buf_printf(v->out, " %5.1f %%", 100.0 * (double)s->thread_insts / total);
        else
            mg_buf_adds(v->out, "       -");
        mg_add_count(v->out, k->launches, true, false, 10);
        mg_add_count(v->out, s->thread_insts, s->measured, k->estimated, 22);
        mg_add_count(v->out, s->warp_insts, s->has_warps, k->estimated, 22);
        if (s->has_warps && s->warp_insts)
            mg_buf_printf(v->out, "  %5.1f %%", 100.0 * (double)s->thread_insts / (32.0 * (double)s->warp_insts));
        else
            mg_buf_adds(v->out, "        -");
        mg_buf_reset(&time);
        if (k->timed_launches)
            mg_add_time(&time, k->time_ns);
        else
            mg_buf_adds(&time, "-");
        mg_add_right(v->out, time.at, 10);
        mg_buf_adds(v->out, "  ");
        add_title(v, k, v->columns > 130 ? v->columns - 90 : 40);
        trim_line(v->out);
    }
    if (n > shown) mg_buf_printf(v->out, "   and %u more kernels (--top %u)\n", n - shown, n);
    mg_buf_release(&time);
}

/* ---- one kernel ---------------------------------------------------------------------------------------- */

static int by_block_heat(const void *a, const void *b)
{
    const struct mg_pblock *x = *(const struct mg_pblock *const *)a, *y = *(const struct mg_pblock *const *)b;
    uint64_t u = x->threads * x->n_insts, w = y->threads * y->n_insts;
    if (u != w) return u > w ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The finding of most gain whose line lies in the block; NULL: none. */
static const struct mg_finding *finding_in(const struct view *v, const struct mg_pkernel *k,
                                           const struct mg_kernel_lines *of, const struct mg_pblock *b)
{
    struct mg_block_rows rows = mg_block_rows_of(of, b->id);
    for (uint32_t i = 0; i < v->findings.n; i++) {
        const struct mg_finding *f = &v->findings.at[i];
        if (f->kernel != k || f->gain_pct <= 0 || !f->file) continue;
        const char *file = f->header ? f->header : f->file;
        uint32_t line = f->header ? f->header_line : f->line;
        for (uint32_t r = 0; r < rows.n; r++)
            if (rows.at[r].line == line && rows.at[r].file && !strcmp(rows.at[r].file, file)) return f;
    }
    return NULL;
}

static void write_source(struct view *v, const char *text, size_t bytes, uint32_t room)
{
    for (uint32_t n = 0; bytes && n < room; text++, bytes--) {
        bool space = *text == ' ' || *text == '\t';
        if (space && v->out->at[v->out->n - 1] == ' ' && n) continue;
        mg_buf_addc(v->out, space || (unsigned char)*text < ' ' ? ' ' : *text);
        n++;
    }
}

/* "a.cu:17 (15-17)" */
static void format_place(const struct mg_block_place *at, const struct mg_pblock *b, struct mg_buf *out)
{
    mg_buf_reset(out);
    if (at->file && at->line)
        mg_buf_printf(out, "%s:%u", base_name(at->file), at->line);
    else if (at->file) /* the compiler made it: no line */
        mg_buf_printf(out, "%s, ptx:%u", base_name(at->file), b->ptx_line);
    else
        mg_buf_printf(out, "ptx:%u", b->ptx_line);
    if (at->first < at->last) mg_buf_printf(out, " (%u-%u)", at->first, at->last);
}

/* The place, its text, and the finding that lies there. */
static void write_place(struct view *v, const struct mg_pkernel *k, const struct mg_kernel_lines *of,
                        const struct mg_pblock *b, uint32_t width)
{
    struct mg_buf place = MG_BUF_INIT, mark = MG_BUF_INIT;
    size_t bytes = 0;
    struct mg_block_place main = mg_block_place_of(of, b);
    const struct mg_finding *f = finding_in(v, k, of, b);
    const char *text = mg_sources_line(v->sources, main.file, main.line, &bytes);
    format_place(&main, b, &place);
    if (f) {
        bool same = main.file && !strcmp(main.file, f->file);
        mg_buf_printf(&mark, "  <- %s:%u %s", same ? "" : base_name(f->file), f->line, mg_finding_rule(f));
    }
    if (!text) text = mg_sources_ptx(v->sources, k->module, b->ptx_line, &bytes);
    uint32_t room = (v->columns > 100 ? v->columns - 82 : 36) + LEAST_PLACE;
    room = room > width + mark.n ? room - width - (uint32_t)mark.n : 0;
    mg_add_left(v->out, place.at, width);
    if (text) write_source(v, text, bytes, room);
    if (f) mg_buf_adds(v->out, mark.at);
    mg_buf_release(&place);
    mg_buf_release(&mark);
}

static void write_blocks(struct view *v, const struct mg_pkernel *k, const struct mg_kernel_sums *s)
{
    const struct mg_pblock **hot = mg_xcalloc(k->n_blocks + 1, sizeof *hot);
    uint32_t shown = MG_MIN(k->n_blocks, v->rows), apart = mg_told_apart(v->p, k);
    struct mg_kernel_lines of;
    mg_lines_of(v->modules, k, &of);
    for (uint32_t i = 0; i < k->n_blocks; i++) hot[i] = &k->blocks[i];
    qsort(hot, k->n_blocks, sizeof *hot, by_block_heat);
    uint32_t width = LEAST_PLACE;
    struct mg_buf place = MG_BUF_INIT;
    for (uint32_t i = 0; i < shown && hot[i]->threads; i++) {
        struct mg_block_place at = mg_block_place_of(&of, hot[i]);
        format_place(&at, hot[i], &place);
        width = MG_MAX(width, (uint32_t)place.n + 2);
    }
    mg_buf_release(&place);
    heading(v, "  block   share of the instructions        thread entries    lanes  source");
    for (uint32_t i = 0; i < shown && hot[i]->threads; i++) {
        const struct mg_pblock *b = hot[i];
        double share = s->thread_insts ? (double)(b->threads * b->n_insts) / (double)s->thread_insts : 0;
        mg_buf_printf(v->out, "  %5u %5.1f %% ", b->id, 100 * share);
        bar_cell(v, share);
        mg_add_count(v->out, b->threads, b->has_threads, k->estimated, 18);
        mg_buf_adds(v->out, b->timing_dependent == 1 ? "*" : " ");
        if (b->has_warps && b->warps)
            mg_buf_printf(v->out, " %5.1f %%%s ", 100.0 * (double)b->threads / (32.0 * (double)b->warps),
                          apart && b->apart == 1 ? "~" : " ");
        else
            mg_buf_adds(v->out, "       -  ");
        write_place(v, k, &of, b, width);
        trim_line(v->out);
    }
    uint32_t more = 0;
    for (uint32_t i = shown; i < k->n_blocks; i++) more += hot[i]->threads != 0;
    if (more) mg_buf_printf(v->out, "        and %u more blocks that ran\n", more);
    uint32_t timing = mg_timing_blocks(k);
    if (timing)
        mg_buf_printf(v->out,
                      "        * its count may depend on timing (%u of %u blocks): another run may count otherwise\n",
                      timing, k->n_blocks);
    if (apart)
        mg_buf_printf(
            v->out,
            "        ~ lanes may meet elsewhere in native code (%u of %u blocks): entries of warps, active lanes\n"
            "          and requests may differ from native ones there (margay help docs/nvidia.md)\n",
            apart, k->n_blocks);
    mg_kernel_lines_release(&of);
    free(hot);
}

/* Parameters are not memory here: on every device they are constants. */
enum kind { KIND_MEMORY, KIND_FLOAT, KIND_INTEGER, KIND_CONTROL, KIND_SYNC, KIND_COUNT };

static enum kind kind_of(const char *op)
{
    struct mg_form f = {0};
    mg_form_parse(&f, op, strlen(op));
    if (f.op_flags & (MG_OPF_READS | MG_OPF_WRITES | MG_OPF_ATOMIC) && f.space != MG_SPACE_param) return KIND_MEMORY;
    if (f.op_flags & MG_OPF_ENDS_BLOCK) return KIND_CONTROL;
    if (f.op_flags & (MG_OPF_BARRIER | MG_OPF_CONVERGENT)) return KIND_SYNC;
    for (unsigned i = 0; i < f.n_types; i++)
        if (mg_type_kind((enum mg_type)f.types[i]) == MG_TK_FLOAT ||
            mg_type_kind((enum mg_type)f.types[i]) == MG_TK_PACKED)
            return KIND_FLOAT;
    return KIND_INTEGER;
}

static const char *const kind_names[KIND_COUNT] = {"memory", "float", "integer and moves", "control",
                                                   "warp and barrier"};

const char *mg_op_kind(const char *op)
{
    return kind_names[kind_of(op)];
}

static int by_op_heat(const void *a, const void *b)
{
    const struct mg_opcount *x = *(const struct mg_opcount *const *)a, *y = *(const struct mg_opcount *const *)b;
    if (x->threads != y->threads) return x->threads > y->threads ? -1 : 1;
    return strcmp(x->op, y->op);
}

/* Only some launches were counted: what all of them would have. */
static void write_sampled(struct view *v, const struct mg_pkernel *k)
{
    struct mg_sample s;
    if (!mg_sample_of(v->p, k, &s)) return;
    mg_buf_printf(v->out, "  %llu of %llu launches counted below; all of them about ", (unsigned long long)s.counted,
                  (unsigned long long)s.launches);
    mg_add_grouped(v->out, (uint64_t)(s.insts.value + 0.5));
    mg_buf_adds(v->out, " thread instructions");
    if (s.insts.bound < 0)
        mg_buf_adds(v->out, ", with no bound: too few were counted\n");
    else
        mg_buf_printf(v->out, ", +- %.2g %% (95 %%, were they drawn at random)\n",
                      s.insts.value > 0 ? 100 * s.insts.bound / s.insts.value : 0);
    mg_sample_release(&s);
}

/* Launches were timed either way: what the kernel takes natively, whose seconds the counts belong to. */
static void write_both_times(struct view *v, const struct mg_pkernel *k)
{
    struct mg_both_times t;
    if (!mg_sample_times(v->p, k, &t)) return;
    mg_buf_adds(v->out, "  natively ");
    mg_add_time(v->out, (uint64_t)(t.native_ns + 0.5));
    mg_buf_printf(v->out, " for %llu launches, %.3f times as long instrumented (medians of equal geometry)\n",
                  (unsigned long long)t.launches, t.native_ns > 0 ? t.instrumented_ns / t.native_ns : 1);
}

static void write_opcodes(struct view *v, const struct mg_pkernel *k, const struct mg_kernel_sums *s)
{
    const struct mg_opcount **hot = mg_xcalloc(s->n_ops + 1, sizeof *hot);
    double total = s->thread_insts ? (double)s->thread_insts : 1;
    uint64_t kinds[KIND_COUNT] = {0};
    for (uint32_t i = 0; i < s->n_ops; i++) {
        hot[i] = &s->ops[i];
        kinds[kind_of(s->ops[i].op)] += s->ops[i].threads;
    }
    qsort(hot, s->n_ops, sizeof *hot, by_op_heat);
    mg_buf_adds(v->out, "  instructions:");
    bool any = false;
    for (int i = 0; i < KIND_COUNT; i++)
        if (kinds[i]) {
            mg_buf_printf(v->out, "%s %s %.1f %%", any ? "," : "", kind_names[i], 100 * (double)kinds[i] / total);
            any = true;
        }
    mg_buf_addc(v->out, '\n');
    for (uint32_t i = 0; i < s->n_ops && i < v->rows && hot[i]->threads; i++) {
        double share = (double)hot[i]->threads / total;
        mg_buf_printf(v->out, "        %5.1f %% ", 100 * share);
        bar_cell(v, share);
        mg_add_count(v->out, hot[i]->threads, true, k->estimated, 18);
        mg_buf_printf(v->out, "           %s\n", hot[i]->op);
    }
    free(hot);
}

/* What gains are computed from. */
static void write_work(struct view *v, const struct mg_pkernel *k)
{
    static const char *const of[] = {"warp instructions", "passes through shared memory", "accesses to global memory",
                                     "atomics"};
    const double *parts = v->findings.work ? v->findings.work[k->id].parts : NULL;
    bool any = false;
    for (int i = 0; parts && !v->findings.without_memory && i < MG_WORK_IMBALANCE; i++) {
        if (parts[i] < 1) continue;
        mg_buf_adds(v->out, any ? ", " : "  work in cycles, of all multiprocessors together: ");
        mg_add_grouped(v->out, (uint64_t)(parts[i] + .5));
        mg_buf_printf(v->out, " for %s", of[i]);
        any = true;
    }
    if (any) mg_buf_addc(v->out, '\n');
}

static void write_part(struct view *v, const struct mg_part *p, const char *of, bool *any)
{
    if (p->lost < 1) return;
    mg_buf_adds(v->out, *any ? ", " : "  wasted: ");
    mg_add_grouped(v->out, (uint64_t)p->lost);
    mg_buf_adds(v->out, " of ");
    mg_add_grouped(v->out, (uint64_t)p->all);
    mg_buf_printf(v->out, " %s (%.1f %%)", of, 100 * p->lost / p->all);
    *any = true;
}

/* Sectors beyond what bytes fill, passes for conflicts, slots without a lane. */
static void write_lost(struct view *v, const struct mg_pkernel *k)
{
    const struct mg_kernel_work *w = v->findings.work ? &v->findings.work[k->id] : NULL;
    bool any = false;
    if (!w) return;
    write_part(v, &w->sectors, "sectors", &any);
    write_part(v, &w->passes, "passes through shared memory", &any);
    write_part(v, &w->slots, "lane slots", &any);
    if (any) mg_buf_addc(v->out, '\n');
}

static void write_kernel(struct view *v, const struct mg_hot_kernel *h)
{
    const struct mg_pkernel *k = h->k;
    uint32_t grids = 0;
    const struct mg_plaunch *first = NULL, *last = NULL;
    if (!h->s.measured) return;
    mg_buf_addc(v->out, '\n');
    struct mg_buf title = MG_BUF_INIT;
    mg_buf_adds(&title, k->demangled);
    if (is_ambiguous(v->p, k)) mg_buf_printf(&title, " [module %.8s]", k->module);
    heading(v, title.at);
    mg_buf_release(&title);
    for (uint64_t i = 0; i < v->p->n_launches; i++) {
        const struct mg_plaunch *l = &v->p->launches[i];
        if (l->kernel != k->id) continue;
        if (!first) first = l;
        if (!last || memcmp(last->grid, l->grid, sizeof l->grid) || memcmp(last->block, l->block, sizeof l->block))
            grids++;
        last = l;
    }
    mg_buf_adds(v->out, "  ");
    mg_add_grouped(v->out, k->launches);
    mg_buf_adds(v->out, k->launches == 1 ? " launch" : " launches");
    if (first)
        mg_buf_printf(v->out, " of %ux%ux%u CTAs of %ux%ux%u threads%s", first->grid[0], first->grid[1], first->grid[2],
                      first->block[0], first->block[1], first->block[2], grids > 1 ? " and other sizes" : "");
    if (k->regs_native >= 0)
        mg_buf_printf(v->out, ", %s%d registers", k->regs_estimated ? "about " : "", k->regs_native);
    if (k->regs_native >= 0 && k->regs_instrumented >= 0)
        mg_buf_printf(v->out, " (%d instrumented)", k->regs_instrumented);
    const struct mg_kernel_work *w = v->findings.work ? &v->findings.work[k->id] : NULL;
    if (w && w->warps_most)
        mg_buf_printf(v->out, ", %u of %u warps fit a multiprocessor", w->warps_resident, w->warps_most);
    mg_buf_addc(v->out, '\n');
    if (k->estimated) {
        mg_buf_printf(v->out, "  ~ scaled to the grid from one %s a launch", k->scope == MG_COUNT_CTA ? "CTA" : "warp");
        if (k->has_error)
            mg_buf_printf(v->out, ": off by %.3g %% from the launches counted in full\n", k->error_pct);
        else
            mg_buf_adds(v->out, "; how far that is off is known only beside a full count (margay merge)\n");
    }
    write_sampled(v, k);
    write_both_times(v, k);
    write_work(v, k);
    write_lost(v, k);
    write_blocks(v, k, &h->s);
    write_opcodes(v, k, &h->s);
}

/* ---- launches --------------------------------------------------------------------------------------------- */

static void write_launches(struct view *v)
{
    struct mg_buf cell = MG_BUF_INIT;
    mg_buf_addc(v->out, '\n');
    heading(v, "   launch            CTAs         threads       time   thread instructions  ran           kernel");
    for (uint64_t i = 0; i < v->p->n_launches; i++) {
        const struct mg_plaunch *l = &v->p->launches[i];
        const struct mg_pkernel *k = &v->p->kernels[l->kernel];
        uint64_t insts = 0;
        if (!mg_report_shows(v->o, k)) continue;
        for (uint32_t b = 0; l->threads && b < l->n_counts; b++) insts += l->threads[b] * k->blocks[b].n_insts;
        mg_add_count(v->out, l->id, true, false, 9);
        mg_buf_reset(&cell);
        mg_buf_printf(&cell, "%ux%ux%u", l->grid[0], l->grid[1], l->grid[2]);
        mg_add_right(v->out, cell.at, 16);
        mg_buf_reset(&cell);
        mg_buf_printf(&cell, "%ux%ux%u", l->block[0], l->block[1], l->block[2]);
        mg_add_right(v->out, cell.at, 16);
        mg_buf_reset(&cell);
        if (l->timed)
            mg_add_time(&cell, l->time_ns);
        else
            mg_buf_adds(&cell, "-");
        mg_add_right(v->out, cell.at, 11);
        mg_add_count(v->out, insts, l->threads != NULL, false, 22);
        mg_buf_adds(v->out, "  ");
        mg_add_left(v->out, l->complete ? mg_ran_text(l->ran) : "incomplete", 12);
        mg_buf_adds(v->out, "  ");
        add_title(v, k, 40);
        trim_line(v->out);
    }
    mg_buf_release(&cell);
}

/* Of the kernels shown. */
static bool none_ended(const struct mg_recording *p, const struct mg_report_opts *o)
{
    uint64_t instrumented = 0, lost = 0;
    for (uint32_t k = 0; k < p->n_kernels; k++) {
        if (!mg_report_shows(o, &p->kernels[k])) continue;
        instrumented += p->kernels[k].instrumented;
        lost += p->kernels[k].incomplete + p->kernels[k].spoilt;
    }
    return lost && lost >= instrumented;
}

static void write_findings(struct view *v)
{
    if (v->findings.n || v->findings.complete)
        mg_buf_addc(v->out, '\n');
    else if (none_ended(v->p, v->o))
        mg_buf_adds(v->out, "\nfindings: none: no launch ended with counts\n");
    else if (v->o->tool)
        mg_buf_adds(v->out, "\nfindings: none, but not all tools ran that rules read (margay run -t advise)\n");
    mg_add_findings(&v->findings, v->p, v->columns, v->o->top ? v->o->top : TOP_FINDINGS, v->out);
}

/* ---- all ---------------------------------------------------------------------------------------------------- */

void mg_report_text(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    struct view v = {.p = p, .o = o ? o : &defaults, .out = out};
    uint32_t n, details;
    double total = 0;
    struct mg_facts facts;
    struct mg_hot_kernel *hot = mg_hot_kernels(p, v.o, &n);
    v.sources = mg_sources_new(p);
    v.modules = mg_lines_new(p);
    v.columns = v.o->columns >= 60 ? v.o->columns : 120;
    v.rows = v.o->top ? v.o->top : TOP_ROWS;
    details = v.o->top ? v.o->top : v.o->kernel_glob ? TOP_KERNELS : TOP_DETAILS;
    for (uint32_t i = 0; i < n; i++) total += (double)hot[i].s.thread_insts;
    bool advice = v.o->tool && !strcmp(v.o->tool, MG_ADVICE);
    if (!v.o->tool || advice) {
        mg_facts_init(&facts, p, v.o);
        mg_findings_init(&v.findings, &facts);
        mg_facts_release(&facts);
    }
    write_title(&v);
    if (n && !v.o->tool) write_kernels(&v, hot, n, total);
    if (!v.o->tool || advice) write_findings(&v);
    for (uint32_t i = 0; i < n && i < details && !v.o->tool; i++) write_kernel(&v, &hot[i]);
    size_t before = out->n;
    mg_add_tools(p, v.o, v.o->top ? v.o->top : v.o->tool ? 0 : CHECKED_ROWS, false, out);
    if (v.o->tool && !advice && out->n == before)
        mg_buf_printf(out, "\n%s has no table of its own: see the kernels (margay report, --csv --table list)\n",
                      v.o->tool);
    if (!advice) mg_add_checked(p, v.columns, v.o->top ? v.o->top : CHECKED_ROWS, out);
    if (v.o->per_launch) write_launches(&v);
    mg_buf_addc(out, '\n');
    mg_add_coverage(p, out, UINT32_MAX);
    mg_findings_release(&v.findings);
    mg_lines_free(v.modules);
    mg_sources_free(v.sources);
    mg_hot_release(hot, n);
}
