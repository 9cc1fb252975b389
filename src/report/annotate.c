/* Source with what each line costs, for the terminal.
 *
 *   lines of kernels (lines.h)  ─► instructions by line: threads, warps     ┐
 *   rows of tools (facts.h)     ─► sectors, conflicts, idle slots, latency  ├─► lines of a file ─► gutter and text
 *                                                                           ┘
 * Rows of one line are added up over instructions and kernels. A column is there when a tool of the run fills it. */
#include "report/annotate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/advice/advice.h"
#include "report/buffers.h"
#include "report/facts.h"
#include "report/lines.h"
#include "report/priv.h"

enum { CONTEXT = 2, GAP = 8 /* lines without a number between two parts that are shown as one */ };

struct part { /* instructions of one block of a line, for --ptx */
    const struct mg_pkernel *k;
    uint32_t block, ptx_line, n_insts;
};
struct machine { /* a machine instruction of a line, for --sass */
    const char *address, *instruction;
    bool guarded, known;
    double threads;
};
struct line {
    const char *file;
    uint32_t line;
    double threads, warps;
    double requests, sectors, shared_requests, conflicts, idle, slots, waits, cycles;
    MG_VEC(struct part) parts;
    MG_VEC(struct machine) machine;
    MG_VEC(const char *) inlined; /* chains of calls */
    MG_VEC(const char *) buffers;
};
struct notes {
    const struct mg_recording *p;
    const struct mg_annotate_opts *o;
    struct mg_buf *out;
    struct mg_sources *sources;
    struct mg_arena arena;
    struct mg_lines *modules;
    struct mg_buffers *buffers;
    struct mg_findings findings;
    MG_VEC(struct line) lines;
    double all_threads, all_slots;
    bool has_warps, has_sectors, has_conflicts, has_idle, has_latency, has_machine;
};

/* ---- which lines --------------------------------------------------------------------------------------------- */

static bool ends_with_path(const char *file, const char *part)
{
    size_t n = strlen(file), m = strlen(part);
    return n >= m && !strcmp(file + n - m, part) && (n == m || file[n - m - 1] == '/');
}

/* A pattern that names a file of the profile is one; else it is of functions. */
static bool names_file(const struct notes *x)
{
    for (uint32_t i = 0; i < x->lines.n; i++)
        if (ends_with_path(x->lines.at[i].file, x->o->what)) return true;
    return false;
}

static struct line *line_at(struct notes *x, const char *file, uint32_t line)
{
    for (uint32_t i = x->lines.n; i > 0; i--) {
        struct line *l = &x->lines.at[i - 1];
        if (l->line == line && !strcmp(l->file, file)) return l;
    }
    struct line *l = mg_vec_push(&x->lines);
    *l = (struct line){.file = file, .line = line};
    return l;
}

static bool wants_function(const struct notes *x, const char *function)
{
    return !x->o->function || mg_name_matches(x->o->function, function);
}

static void add_kernel(struct notes *x, const struct mg_pkernel *k)
{
    struct mg_kernel_lines of;
    if (!mg_lines_of(x->modules, k, &of)) return;
    for (uint32_t i = 0; i < of.rows.n; i++) {
        const struct mg_line_row *r = &of.rows.at[i];
        const struct mg_pblock *b = &k->blocks[r->block];
        double threads = (double)b->threads * r->n_insts;
        x->all_threads += threads;
        if (!r->file || !r->line || !wants_function(x, b->function)) continue;
        const char *file = mg_arena_strndup(&x->arena, r->file, strlen(r->file));
        struct line *l = line_at(x, file, r->line);
        l->threads += threads;
        l->warps += (double)b->warps * r->n_insts;
        x->has_warps = x->has_warps || b->has_warps;
        *mg_vec_push(&l->parts) = (struct part){k, r->block, r->ptx_line, r->n_insts};
    }
    mg_kernel_lines_release(&of);
}

/* ---- what tools say of them -------------------------------------------------------------------------------------- */

static void add_text(struct notes *x, struct line *l, const char *text, bool buffer)
{
    const char **at = buffer ? l->buffers.at : l->inlined.at;
    for (uint32_t i = 0; i < (buffer ? l->buffers.n : l->inlined.n); i++)
        if (!strcmp(at[i], text)) return;
    text = mg_arena_strndup(&x->arena, text, strlen(text));
    if (buffer)
        *mg_vec_push(&l->buffers) = text;
    else
        *mg_vec_push(&l->inlined) = text;
}

static void add_fact(const struct mg_fact *f, void *user)
{
    struct notes *x = user;
    const struct mg_jval *v = f->values;
    if (!f->file || !f->line || !wants_function(x, f->function)) return;
    struct line *l = line_at(x, mg_arena_strndup(&x->arena, f->file, strlen(f->file)), f->line);
    double requests = mg_jval_f64(v, "requests");
    if (!strcmp(f->tool, "memory")) {
        if (mg_jval_is_number(mg_jval_get(v, "sectors"))) {
            l->requests += requests;
            l->sectors += mg_jval_f64(v, "sectors");
            x->has_sectors = true;
        }
        if (mg_jval_is_number(mg_jval_get(v, "bank_conflicts"))) {
            l->shared_requests += requests;
            l->conflicts += mg_jval_f64(v, "bank_conflicts");
            x->has_conflicts = true;
        }
        const char *buffer = mg_buffer_of(x->buffers, f);
        if (buffer) add_text(x, l, buffer, true);
    } else if (!strcmp(f->tool, "lanes") && !strcmp(f->list, "branches")) {
        l->idle += mg_jval_f64(v, "idle_slots");
    } else if (!strcmp(f->tool, "latency")) {
        l->waits += mg_jval_f64(v, "warps");
        l->cycles += mg_jval_f64(v, "cycles");
        x->has_latency = true;
    } else if (x->o->sass && !strcmp(f->tool, "opcodes") && !strcmp(f->list, "code_at")) {
        const struct mg_jval *n = mg_jval_get(v, "executions");
        const char *address = mg_jval_text(v, "address"), *instruction = mg_jval_text(v, "instruction");
        *mg_vec_push(&l->machine) =
            (struct machine){address ? address : "", instruction ? instruction : "", mg_jval_yes(v, "guarded"),
                             mg_jval_is_number(n), mg_jval_number(n)};
        x->has_machine = true;
    }
    if (f->inlined) add_text(x, l, f->inlined, false);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void add_figure(struct mg_buf *out, bool has, const char *fmt, double v, int width)
{
    char cell[32] = "";
    if (has) snprintf(cell, sizeof cell, fmt, v);
    mg_buf_printf(out, "%*s", width, cell);
}

/* 1234567 as 1.23M: three digits say enough here. */
static void add_short(struct mg_buf *out, double v, int width)
{
    static const char units[] = " kMGTP";
    char cell[32];
    int u = 0;
    for (; v >= 999.5 && units[u + 1]; u++) v /= 1000;
    snprintf(cell, sizeof cell, u ? "%.3g%c" : "%.0f", v, units[u]);
    mg_buf_printf(out, "%*s", width, cell);
}

static int gutter_width(const struct notes *x)
{
    return 8 + 9 + (x->has_warps ? 7 : 0) + (x->has_idle ? 7 : 0) + (x->has_sectors ? 9 : 0) +
           (x->has_conflicts ? 9 : 0) + (x->has_latency ? 8 : 0);
}

static void add_heading(struct notes *x, const char *file)
{
    if (x->out->n) mg_buf_addc(x->out, '\n');
    const char *doubt = mg_sources_doubt(x->sources, file);
    mg_buf_printf(x->out, x->o->color ? "\033[1m%s\033[0m%s%s\n" : "%s%s%s\n", file, doubt ? " " : "",
                  doubt ? doubt : "");
    mg_buf_adds(x->out, "share, instr.: of thread instructions, not of time");
    if (x->has_warps) mg_buf_adds(x->out, "; lanes: active, of 32");
    if (x->has_idle) mg_buf_adds(x->out, "; idle: lane slots that its branch leaves, of all");
    mg_buf_adds(x->out, "\n");
    if (x->has_sectors) mg_buf_adds(x->out, "sectors: of 32 bytes a request; ");
    if (x->has_conflicts) mg_buf_adds(x->out, "conflicts: passes too many a request to shared memory; ");
    if (x->has_latency) mg_buf_adds(x->out, "cycles: that a warp waits; ");
    mg_buf_adds(x->out, "^: of the line above\n   share   instr.");
    if (x->has_warps) mg_buf_adds(x->out, "  lanes");
    if (x->has_idle) mg_buf_adds(x->out, "   idle");
    if (x->has_sectors) mg_buf_adds(x->out, " sectors ");
    if (x->has_conflicts) mg_buf_adds(x->out, "conflicts");
    if (x->has_latency) mg_buf_adds(x->out, "  cycles");
    mg_buf_adds(x->out, " |  line\n");
}

static void add_gutter(struct notes *x, const struct line *l)
{
    struct mg_buf *out = x->out;
    bool ran = l && l->threads > 0;
    add_figure(out, ran && x->all_threads > 0, "%.1f %%", ran ? 100 * l->threads / x->all_threads : 0, 8);
    if (ran)
        add_short(out, l->threads, 9);
    else
        mg_buf_printf(out, "%9s", "");
    if (x->has_warps)
        add_figure(out, ran && l->warps > 0, "%.0f %%", ran && l->warps > 0 ? 100 * l->threads / (32 * l->warps) : 0,
                   7);
    if (x->has_idle)
        add_figure(out, l && l->idle > 0 && x->all_slots > 0, "%.0f %%",
                   l && x->all_slots > 0 ? 100 * l->idle / x->all_slots : 0, 7);
    if (x->has_sectors)
        add_figure(out, l && l->requests > 0, "%.1f", l && l->requests > 0 ? l->sectors / l->requests : 0, 9);
    if (x->has_conflicts)
        add_figure(out, l && l->shared_requests > 0, "%.1f",
                   l && l->shared_requests > 0 ? l->conflicts / l->shared_requests : 0, 9);
    if (x->has_latency) add_figure(out, l && l->waits > 0, "%.0f", l && l->waits > 0 ? l->cycles / l->waits : 0, 8);
    mg_buf_adds(out, " | ");
}

/* The text of a line as it stands, tabs as eight. */
static void add_source(struct notes *x, const char *file, uint32_t line)
{
    size_t bytes = 0;
    const char *text = mg_sources_text(x->sources, file, &bytes);
    mg_buf_printf(x->out, "%5u  ", line);
    for (uint32_t i = 1; text && i < line; i++) {
        const char *nl = memchr(text, '\n', bytes);
        if (!nl) return;
        bytes -= (size_t)(nl + 1 - text);
        text = nl + 1;
    }
    for (; text && bytes && *text != '\n'; text++, bytes--) {
        if (*text == '\t')
            mg_buf_adds(x->out, "        ");
        else if ((unsigned char)*text >= ' ')
            mg_buf_addc(x->out, *text);
    }
}

/* Instructions of the PTX that a line became, with how often threads executed them. */
static void add_ptx(struct notes *x, const struct line *l)
{
    for (uint32_t i = 0; i < l->parts.n; i++) {
        const struct part *q = &l->parts.at[i];
        size_t bytes = 0;
        for (uint32_t at = q->ptx_line, n = 0; n < q->n_insts && at < q->ptx_line + 8 * q->n_insts + 8; at++) {
            const char *text = mg_sources_ptx(x->sources, q->k->module, at, &bytes);
            if (!text || *text == '.' || *text == '/' || *text == '$' || *text == '}' || (*text == '{' && bytes < 3))
                continue;
            mg_buf_printf(x->out, "%8s", "");
            add_short(x->out, (double)q->k->blocks[q->block].threads, 9);
            mg_buf_printf(x->out, "%*s |        ptx:%u  %.*s\n", gutter_width(x) - 17, "", at,
                          (int)MG_MIN(bytes, (size_t)100), text);
            n++;
        }
    }
}

/* Machine instructions that a line became; without a count where none was mapped. */
static void add_machine(struct notes *x, const struct line *l)
{
    for (uint32_t i = 0; i < l->machine.n; i++) {
        const struct machine *m = &l->machine.at[i];
        mg_buf_printf(x->out, "%8s", "");
        if (m->known)
            add_short(x->out, m->threads, 9);
        else
            mg_buf_printf(x->out, "%9s", "-");
        mg_buf_printf(x->out, "%*s |        sass:%s  %s%s\n", gutter_width(x) - 17, "", m->address,
                      m->guarded ? "@" : "", m->instruction);
    }
}

/* What was found at the line, as `margay report` tells it. */
static void add_findings(struct notes *x, const char *file, uint32_t line)
{
    for (uint32_t i = 0; i < x->findings.n; i++) {
        const struct mg_finding *f = &x->findings.at[i];
        if (f->gain_pct <= 0 || !f->file || f->line != line || strcmp(f->file, file)) continue;
        mg_buf_printf(x->out, "%*s |        ^ %s: fixing it could gain ", gutter_width(x), "", mg_finding_rule(f));
        mg_add_gain(x->out, f);
        mg_buf_addc(x->out, '\n');
    }
}

static void add_line(struct notes *x, const char *file, uint32_t number, const struct line *l)
{
    add_gutter(x, l);
    add_source(x, file, number);
    while (x->out->n && x->out->at[x->out->n - 1] == ' ') x->out->at[--x->out->n] = 0;
    mg_buf_addc(x->out, '\n');
    if (l) add_findings(x, file, number);
    for (uint32_t i = 0; l && i < l->buffers.n; i++)
        mg_buf_printf(x->out, "%*s |        ^ %s\n", gutter_width(x), "", l->buffers.at[i]);
    for (uint32_t i = 0; l && i < l->inlined.n; i++)
        mg_buf_printf(x->out, "%*s |        ^ inlined at %s\n", gutter_width(x), "", l->inlined.at[i]);
    if (l && x->o->ptx) add_ptx(x, l);
    if (l) add_machine(x, l);
}

static int by_place(const void *a, const void *b)
{
    const struct line *p = a, *q = b;
    int c = strcmp(p->file, q->file);
    return c ? c : (p->line > q->line) - (p->line < q->line);
}

/* All lines of a file from the first with a number to the last; long parts without any are left out. */
static void add_file(struct notes *x, uint32_t first, uint32_t end)
{
    const char *file = x->lines.at[first].file;
    uint32_t shown = 0; /* last line that was */
    add_heading(x, file);
    for (uint32_t i = first; i < end; i++) {
        uint32_t at = x->lines.at[i].line, from = at > CONTEXT ? at - CONTEXT : 1;
        if (shown && from <= shown + GAP)
            from = shown + 1;
        else if (shown)
            mg_buf_printf(x->out, "%*s |    ...\n", gutter_width(x), "");
        for (uint32_t line = from; line < at; line++) add_line(x, file, line, NULL);
        add_line(x, file, at, &x->lines.at[i]);
        shown = at;
    }
}

struct file_share {
    uint32_t first, end;
    double threads;
};

static int by_share(const void *a, const void *b)
{
    const struct file_share *p = a, *q = b;
    if (p->threads != q->threads) return p->threads > q->threads ? -1 : 1;
    return p->first < q->first ? -1 : 1;
}

static void add_files(struct notes *x)
{
    MG_VEC(struct file_share) files = {0};
    for (uint32_t i = 0; i < x->lines.n; i++) {
        bool same = i && !strcmp(x->lines.at[i].file, x->lines.at[i - 1].file);
        if (!same) *mg_vec_push(&files) = (struct file_share){.first = i};
        files.at[files.n - 1].end = i + 1;
        files.at[files.n - 1].threads += x->lines.at[i].threads;
    }
    if (files.n) qsort(files.at, files.n, sizeof *files.at, by_share);
    for (uint32_t i = 0; i < files.n; i++)
        if (!x->o->file || ends_with_path(x->lines.at[files.at[i].first].file, x->o->file))
            add_file(x, files.at[i].first, files.at[i].end);
    mg_vec_release(&files);
}

static void release_lines(struct notes *x)
{
    for (uint32_t i = 0; i < x->lines.n; i++) {
        mg_vec_release(&x->lines.at[i].parts);
        mg_vec_release(&x->lines.at[i].machine);
        mg_vec_release(&x->lines.at[i].inlined);
        mg_vec_release(&x->lines.at[i].buffers);
    }
    x->lines.n = 0;
}

bool mg_report_annotate(const struct mg_recording *p, const struct mg_annotate_opts *given, struct mg_buf *out)
{
    struct mg_annotate_opts o = *given;
    struct notes x = {.p = p, .o = &o, .out = out, .sources = mg_sources_new(p), .modules = mg_lines_new(p)};
    struct mg_report_opts shown = {.size = sizeof shown, .kernel_glob = o.kernel_glob};
    struct mg_facts facts;
    size_t before = out->n;
    x.buffers = mg_buffers_new(p, x.modules);
    mg_facts_init(&facts, p, &shown);
    for (int pass = 0; pass < 2; pass++) { /* the first finds out what the pattern names */
        release_lines(&x);
        x.all_threads = x.all_slots = 0;
        for (uint32_t k = 0; k < p->n_kernels; k++) {
            if (!mg_report_shows(&shown, &p->kernels[k])) continue;
            add_kernel(&x, &p->kernels[k]);
            for (uint32_t b = 0; b < p->kernels[k].n_blocks; b++)
                x.all_slots += 32.0 * (double)p->kernels[k].blocks[b].warps * p->kernels[k].blocks[b].n_insts;
        }
        mg_facts_each(&facts, add_fact, &x);
        if (pass || !o.what) break;
        if (names_file(&x)) {
            o.file = o.what;
            break;
        }
        o.function = o.what;
    }
    if (x.lines.n) qsort(x.lines.at, x.lines.n, sizeof *x.lines.at, by_place);
    if (o.sass && !x.has_machine && x.lines.n)
        mg_buf_adds(out,
                    "no machine code was mapped: margay run -t opcodes,level=sass, and nvdisasm when this is shown\n");
    mg_findings_init(&x.findings, &facts);
    x.has_idle = mg_facts_tool(&facts, "lanes") != NULL;
    add_files(&x);
    mg_findings_release(&x.findings);
    release_lines(&x);
    mg_vec_release(&x.lines);
    mg_facts_release(&facts);
    mg_buffers_free(x.buffers);
    mg_lines_free(x.modules);
    mg_sources_free(x.sources);
    mg_arena_release(&x.arena);
    return out->n > before;
}
